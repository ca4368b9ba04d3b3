/*
 * schema/regex_tree.c: reading a pattern. Where ECMA-262 lets a browser be lenient (a lone brace, [\w-.], \- and the
 * like) this is lenient too, for such patterns are common in schemas.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "schema/regex_tree.h"
#include "json/text.h"

typedef struct reader {
    ew__rx_tree *tree;
    const uint32_t *points;
    size_t n, at;
    unsigned depth;
    ew_err err; /* the first one; nothing is read after it */
    ew__regex_problem *problem;
    ew__ranges set; /* of the class that is being read */
} reader;

#define NONE UINT32_MAX

static uint32_t fail(reader *r, ew_err err, const char *what) {
    if (r->err == EW_OK) {
        r->err = err;
        *r->problem = (ew__regex_problem){what, r->at};
    }
    return 0;
}

static uint32_t refuse(reader *r, const char *what) { return fail(r, EW_EINVAL, what); }

/* What a helper that knows no reader has answered. */
static void note(reader *r, ew_err err) {
    if (err != EW_OK) {
        (void)fail(r, err, "its classes of characters are too large");
    }
}

static uint32_t peek(const reader *r, size_t ahead) { return r->at + ahead < r->n ? r->points[r->at + ahead] : NONE; }

static bool take(reader *r, uint32_t point) {
    bool there = peek(r, 0) == point;
    r->at += there;
    return there;
}

/* ---- the tree ---- */

static uint32_t add_node(reader *r, ew__rx_node node) {
    ew__rx_tree *tree = r->tree;
    if (r->err != EW_OK) {
        return 0;
    }
    if (tree->n == tree->cap) {
        uint32_t cap = tree->cap != 0 ? tree->cap * 2 : 64;
        ew__rx_node *nodes = ew__realloc(tree->env, tree->nodes, tree->cap * sizeof *nodes, cap * sizeof *nodes);
        if (nodes == NULL) {
            return fail(r, EW_ENOMEM, "out of memory");
        }
        tree->nodes = nodes;
        tree->cap = cap;
        tree->n += tree->n == 0; /* 0 means none */
    }
    tree->nodes[tree->n] = node;
    return tree->n++;
}

static uint32_t add_leaf(reader *r, ew__regex_op op, uint32_t x) {
    return add_node(r, (ew__rx_node){.kind = EW__RX_LEAF, .op = op, .x = x});
}

/* What is in r->set, or all else. */
static uint32_t add_class(reader *r, bool others) {
    ew__rx_tree *tree = r->tree;
    if (r->err == EW_OK && tree->n_classes == tree->cap_classes) {
        uint32_t cap = tree->cap_classes != 0 ? tree->cap_classes * 2 : 8;
        ew__regex_class *classes =
            ew__realloc(tree->env, tree->classes, tree->cap_classes * sizeof *classes, cap * sizeof *classes);
        if (classes == NULL) {
            return fail(r, EW_ENOMEM, "out of memory");
        }
        tree->classes = classes;
        tree->cap_classes = cap;
    }
    if (r->err == EW_OK) {
        note(r, ew__ranges_finish(&r->set, others, tree->arena, &tree->classes[tree->n_classes]));
    }
    return r->err == EW_OK ? add_leaf(r, EW__RX_CLASS, tree->n_classes++) : 0;
}

/* ---- escapes ---- */

static int hex_value(uint32_t c) {
    if (c >= '0' && c <= '9') {
        return (int)(c - '0');
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? (int)(c - 'a') + 10 : -1;
}

/* Exactly n digits at `ahead`, or NONE. */
static uint32_t peek_hex(const reader *r, size_t ahead, size_t n) {
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t c = peek(r, ahead + i);
        int digit = c < 128 ? hex_value(c) : -1;
        if (digit < 0) {
            return NONE;
        }
        value = value * 16 + (uint32_t)digit;
    }
    return value;
}

static uint32_t read_hex(reader *r, size_t n) {
    uint32_t value = peek_hex(r, 0, n);
    if (value == NONE) {
        return refuse(r, "\\x wants two and \\u four hexadecimal digits, or \\u{...}");
    }
    r->at += n;
    return value;
}

/* Behind \u. */
static uint32_t read_unicode(reader *r) {
    uint32_t value = 0;
    if (!take(r, '{')) {
        value = read_hex(r, 4);
        bool high = value >= 0xd800 && value <= 0xdbff && peek(r, 0) == '\\' && peek(r, 1) == 'u';
        uint32_t low = high ? peek_hex(r, 2, 4) : NONE;
        if (low != NONE && low >= 0xdc00 && low <= 0xdfff) {
            r->at += 6;
            value = 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00);
        }
        return value;
    }
    size_t start = r->at;
    while (peek(r, 0) < 128 && hex_value(peek(r, 0)) >= 0 && value <= EW__POINT_MAX) {
        value = value * 16 + (uint32_t)hex_value(peek(r, 0));
        r->at++;
    }
    if (r->at == start || value > EW__POINT_MAX || !take(r, '}')) {
        return refuse(r, "\\u{...} wants the hexadecimal digits of a code point");
    }
    return value;
}

static bool is_letter(uint32_t c) { return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && c < 128; }

/* An escape that stands for one character; r->at is behind its letter. */
static uint32_t read_char_escape(reader *r, uint32_t letter) {
    switch (letter) {
    case 't':
        return '\t';
    case 'n':
        return '\n';
    case 'v':
        return '\v';
    case 'f':
        return '\f';
    case 'r':
        return '\r';
    case '0':
        return peek(r, 0) >= '0' && peek(r, 0) <= '9' ? refuse(r, "octal escapes are not supported: use \\xHH") : 0;
    case 'c':
        if (is_letter(peek(r, 0))) {
            return r->points[r->at++] % 32;
        }
        return refuse(r, "\\c wants a letter");
    case 'x':
        return read_hex(r, 2);
    case 'u':
        return read_unicode(r);
    default:
        if (letter >= '1' && letter <= '9') {
            return refuse(r, "back-references are not supported: they cannot be matched in linear time");
        }
        if (letter == 'k') {
            return refuse(r, "named back-references are not supported: they cannot be matched in linear time");
        }
        if (letter == NONE || is_letter(letter)) {
            return refuse(r, letter == NONE ? "a \\ at the end escapes nothing" : "ECMA-262 has no such escape");
        }
        return letter;
    }
}

/* \p{NAME} and \P{NAME}, behind the p. */
static void read_property(reader *r, bool others) {
    char name[48];
    size_t n = 0;
    bool closed = false;
    if (take(r, '{')) {
        for (uint32_t c = peek(r, 0); c < 128 && n < sizeof name && !closed; c = peek(r, 0)) {
            closed = c == '}';
            name[n] = (char)c;
            n += !closed;
            r->at++;
        }
    }
    ew_str given = ew__str(name, n);
    ew_str prefixes[] = {EW_STR("General_Category="), EW_STR("gc=")};
    for (size_t i = 0; i < 2; i++) {
        if (ew__str_has_prefix(given, prefixes[i])) {
            given = ew__str(given.ptr + prefixes[i].len, given.len - prefixes[i].len);
        }
    }
    uint32_t count = 0;
    const ew__range *ranges = closed ? ew__unicode_property(given, &count) : NULL;
    if (ranges == NULL) {
        (void)refuse(r, "\\p{...} knows L, Lu, Ll, M, N, Nd, P, S, Z (and their long names), Any and ASCII");
        return;
    }
    note(r, ew__ranges_add_all(&r->set, ranges, count, others));
}

/* If the escape at r->at (behind the \) is a class, it is added to the set. */
static bool read_class_escape(reader *r) {
    uint32_t letter = peek(r, 0);
    switch (letter) {
    case 'd':
    case 'D':
    case 'w':
    case 'W':
    case 's':
    case 'S':
        r->at++;
        note(r, ew__ranges_add_escape(&r->set, (char)letter));
        return true;
    case 'p':
    case 'P':
        r->at++;
        read_property(r, letter == 'P');
        return true;
    default:
        return false;
    }
}

static uint32_t read_escape(reader *r) {
    uint32_t letter = peek(r, 0);
    if (letter == 'b' || letter == 'B') {
        r->at++;
        return add_leaf(r, letter == 'b' ? EW__RX_WORD : EW__RX_NO_WORD, 0);
    }
    r->set.n = 0;
    if (read_class_escape(r)) {
        return add_class(r, false);
    }
    r->at += letter != NONE;
    return add_leaf(r, EW__RX_CHAR, read_char_escape(r, letter));
}

/* ---- [...] ---- */

/* One character of a class, or (false) a class within it, which has been added. */
static bool read_class_char(reader *r, uint32_t *ret) {
    *ret = peek(r, 0);
    r->at++;
    if (*ret != '\\') {
        return true;
    }
    if (read_class_escape(r)) {
        return false;
    }
    uint32_t letter = peek(r, 0);
    r->at += letter != NONE;
    *ret = letter == 'b' ? '\b' : read_char_escape(r, letter);
    return true;
}

static uint32_t read_class(reader *r) {
    bool others = take(r, '^');
    r->set.n = 0;
    while (r->err == EW_OK && !take(r, ']')) {
        uint32_t low, high;
        if (r->at >= r->n) {
            return refuse(r, "a [ has no ]");
        }
        if (!read_class_char(r, &low)) {
            continue;
        }
        high = low;
        if (peek(r, 0) == '-' && peek(r, 1) != ']' && peek(r, 1) != NONE) {
            r->at++;
            if (!read_class_char(r, &high)) {
                high = low;
                note(r, ew__ranges_add(&r->set, '-', '-'));
            }
        }
        if (high < low) {
            return refuse(r, "a range in [...] goes backwards");
        }
        note(r, ew__ranges_add(&r->set, low, high));
    }
    return add_class(r, others);
}

/* . is all but the ends of lines. */
static uint32_t add_dot(reader *r) {
    static const ew__range ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
    r->set.n = 0;
    note(r, ew__ranges_add_all(&r->set, ends, 3, true));
    return add_class(r, false);
}

/* ---- groups, repetitions ---- */

static uint32_t read_choice(reader *r);

/* Behind (: what follows a ?. */
static void read_group_kind(reader *r) {
    if (!take(r, '?') || take(r, ':')) {
        return;
    }
    bool behind = peek(r, 0) == '<' && (peek(r, 1) == '=' || peek(r, 1) == '!');
    if (behind || peek(r, 0) == '=' || peek(r, 0) == '!') {
        (void)refuse(r, "lookaround is not supported: it cannot be matched in linear time");
    } else if (!take(r, '<')) {
        (void)refuse(r, "after (? only : and <name> are known");
    } else {
        while (r->at < r->n && !take(r, '>')) {
            r->at++;
        }
    }
}

static uint32_t read_group(reader *r) {
    if (++r->depth > EW__REGEX_NESTING_MAX) {
        return fail(r, EW_ELIMIT, "groups are nested too deeply");
    }
    read_group_kind(r);
    uint32_t node = r->err == EW_OK ? read_choice(r) : 0;
    if (r->err == EW_OK && !take(r, ')')) {
        return refuse(r, "a ( has no )");
    }
    r->depth--;
    return node;
}

static uint32_t read_atom(reader *r) {
    uint32_t c = r->points[r->at++];
    switch (c) {
    case '^':
        return add_leaf(r, EW__RX_BEGIN, 0);
    case '$':
        return add_leaf(r, EW__RX_END, 0);
    case '.':
        return add_dot(r);
    case '(':
        return read_group(r);
    case '[':
        return read_class(r);
    case '\\':
        return read_escape(r);
    case '*':
    case '+':
    case '?':
        r->at--;
        return refuse(r, "there is nothing to repeat");
    default:
        return add_leaf(r, EW__RX_CHAR, c);
    }
}

static bool read_number(const reader *r, size_t *ahead, uint32_t *ret) {
    size_t start = *ahead;
    uint32_t number = 0;
    for (; peek(r, *ahead) >= '0' && peek(r, *ahead) <= '9'; (*ahead)++) {
        number = number < 1000000 ? number * 10 + (peek(r, *ahead) - '0') : number;
    }
    *ret = number;
    return *ahead > start;
}

/* {n}, {n,} or {n,m}: else the brace is a character like others. */
static bool read_counts(reader *r, uint32_t *min, uint32_t *max) {
    size_t ahead = 1;
    if (peek(r, 0) != '{' || !read_number(r, &ahead, min)) {
        return false;
    }
    *max = *min;
    if (peek(r, ahead) == ',') {
        ahead++;
        if (!read_number(r, &ahead, max)) {
            *max = EW__RX_NO_MAX;
        }
    }
    if (peek(r, ahead) != '}') {
        return false;
    }
    r->at += ahead + 1;
    if (*max < *min) {
        (void)refuse(r, "in {n,m} the second number is the smaller one");
    }
    return true;
}

static uint32_t read_repeat(reader *r, uint32_t atom) {
    uint32_t min = 0, max = EW__RX_NO_MAX;
    if (take(r, '+')) {
        min = 1;
    } else if (take(r, '?')) {
        max = 1;
    } else if (!take(r, '*') && !read_counts(r, &min, &max)) {
        return atom;
    }
    (void)take(r, '?'); /* lazy: the same texts match */
    return add_node(r, (ew__rx_node){.kind = EW__RX_REPEAT, .first = atom, .min = min, .max = max});
}

static uint32_t read_row(reader *r) {
    uint32_t row = add_node(r, (ew__rx_node){.kind = EW__RX_ROW}), last = 0;
    while (r->err == EW_OK && r->at < r->n && peek(r, 0) != '|' && peek(r, 0) != ')') {
        uint32_t atom = read_atom(r);
        atom = r->err == EW_OK ? read_repeat(r, atom) : 0;
        if (r->err != EW_OK) {
            break;
        }
        if (last == 0) {
            r->tree->nodes[row].first = atom;
        } else {
            r->tree->nodes[last].next = atom;
        }
        last = atom;
    }
    return row;
}

static uint32_t read_choice(reader *r) {
    uint32_t first = read_row(r), last = first;
    if (r->err != EW_OK || peek(r, 0) != '|') {
        return first;
    }
    uint32_t choice = add_node(r, (ew__rx_node){.kind = EW__RX_CHOICE, .first = first});
    while (r->err == EW_OK && take(r, '|')) {
        uint32_t row = read_row(r);
        if (r->err == EW_OK) {
            r->tree->nodes[last].next = row;
            last = row;
        }
    }
    return choice;
}

/* ---- a whole pattern ---- */

static void read_all(reader *r) {
    r->tree->root = read_choice(r);
    if (r->err == EW_OK && r->at < r->n) {
        (void)refuse(r, "a ) has no (");
    }
}

ew_err ew__rx_tree_read(ew__rx_tree *tree, ew_str pattern, ew__regex_problem *problem) {
    reader r = {.tree = tree, .problem = problem, .set = {.env = tree->env}};
    const char *at = pattern.ptr, *end = ew__json_end(pattern);
    size_t size = (pattern.len + 1) * sizeof(uint32_t);
    uint32_t *points = ew__alloc(tree->env, size);
    if (points == NULL) {
        return EW_ENOMEM;
    }
    while (at < end) {
        points[r.n++] = ew__json_char(&at, end);
    }
    r.points = points;
    if (r.n > EW__REGEX_LENGTH_MAX) {
        (void)fail(&r, EW_ELIMIT, "the pattern is too long");
    } else {
        read_all(&r);
    }
    ew__ranges_done(&r.set);
    ew__free(tree->env, points, size);
    return r.err;
}

void ew__rx_tree_done(ew__rx_tree *tree) {
    ew__free(tree->env, tree->nodes, tree->cap * sizeof *tree->nodes);
    ew__free(tree->env, tree->classes, tree->cap_classes * sizeof *tree->classes);
}
