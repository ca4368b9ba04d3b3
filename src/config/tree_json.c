/*
 * config/tree_json.c: what the texts of a tree stand for, and a tree as JSON. See tree.h. The rules are those of YAML 1.2's
 * core schema; digits are kept as they are, so that no number is rounded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "config/tree.h"

static bool is_one_of(ew_str text, const char *const *words) {
    for (; *words; words++) {
        if (ew__str_is(text, ew_str_from(*words))) {
            return true;
        }
    }
    return false;
}

bool ew__node_is_null(const ew__node *node) {
    static const char *const words[] = {"", "~", "null", "Null", "NULL", NULL};
    return node->kind == EW__NODE_TEXT && node->plain && !node->bad && is_one_of(node->text, words);
}

bool ew__node_bool(const ew__node *node, bool *ret) {
    static const char *const yes[] = {"true", "True", "TRUE", NULL}, *const no[] = {"false", "False", "FALSE", NULL};
    if (node->kind != EW__NODE_TEXT || !node->plain) {
        return false;
    }
    *ret = is_one_of(node->text, yes);
    return *ret || is_one_of(node->text, no);
}

/* ---- numbers ---- */

/* A number's parts, none of which is checked against the others. */
typedef struct number {
    bool minus;
    ew_str whole, part, exponent; /* digits; the exponent with its sign */
    bool has_point, has_exponent;
} number;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static ew_str digits(ew_str text, size_t *at) {
    size_t start = *at;
    while (*at < text.len && is_digit(text.ptr[*at])) {
        (*at)++;
    }
    return ew__str(text.ptr + start, *at - start);
}

static bool take_any(ew_str text, size_t *at, char a, char b) {
    bool there = *at < text.len && (text.ptr[*at] == a || text.ptr[*at] == b);
    *at += there;
    return there;
}

/* [-+]? ( \.[0-9]+ | [0-9]+ ( \.[0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool read_number(ew_str text, number *n) {
    size_t at = 0;
    *n = (number){.minus = text.len && text.ptr[0] == '-'};
    (void)take_any(text, &at, '-', '+');
    n->whole = digits(text, &at);
    n->has_point = take_any(text, &at, '.', '.');
    if (n->has_point) {
        n->part = digits(text, &at);
    }
    if (n->whole.len == 0 && n->part.len == 0) {
        return false;
    }
    n->has_exponent = take_any(text, &at, 'e', 'E');
    if (n->has_exponent) {
        size_t start = at;
        (void)take_any(text, &at, '-', '+');
        bool some = digits(text, &at).len > 0;
        n->exponent = ew__str(text.ptr + start, at - start);
        return some && at == text.len;
    }
    return at == text.len;
}

/* JSON wants a digit on both sides of the point, and no zero before others. */
static void write_number(ew__buf *out, const number *n) {
    ew_str whole = n->whole;
    while (whole.len > 1 && whole.ptr[0] == '0') {
        whole = ew__str(whole.ptr + 1, whole.len - 1);
    }
    (void)ew__buf_cstr(out, n->minus ? "-" : "");
    (void)(whole.len ? ew__buf_str(out, whole) : ew__buf_char(out, '0'));
    if (n->has_point) {
        (void)ew__buf_char(out, '.');
        (void)(n->part.len ? ew__buf_str(out, n->part) : ew__buf_char(out, '0'));
    }
    if (n->has_exponent) {
        (void)ew__buf_char(out, 'e');
        (void)ew__buf_str(out, n->exponent);
    }
}

/* 0o17 and 0x1F. Whether it is one; then *ret_fits tells whether 64 bits hold it. */
static bool read_based(ew_str text, uint64_t *ret, bool *ret_fits) {
    if (text.len < 3 || text.ptr[0] != '0' || (text.ptr[1] != 'o' && text.ptr[1] != 'x')) {
        return false;
    }
    unsigned shift = text.ptr[1] == 'o' ? 3 : 4;
    *ret = 0;
    *ret_fits = true;
    for (size_t i = 2; i < text.len; i++) {
        char c = text.ptr[i];
        char letter = (char)(c | 0x20);
        bool hex = shift == 4 && letter >= 'a' && letter <= 'f';
        if (!hex && !(is_digit(c) && (shift == 4 || c < '8'))) {
            return false;
        }
        uint64_t digit = hex ? (uint64_t)(letter - 'a' + 10) : (uint64_t)(c - '0');
        *ret_fits = *ret_fits && *ret >> (64 - shift) == 0;
        *ret = *ret << shift | digit;
    }
    return true;
}

/* .inf and .nan */
static bool is_no_number(ew_str text) {
    static const char *const words[] = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN", NULL};
    bool sign = text.len > 1 && (text.ptr[0] == '-' || text.ptr[0] == '+');
    ew_str rest = sign ? ew__str(text.ptr + 1, text.len - 1) : text;
    return is_one_of(rest, words) && !(sign && (text.ptr[2] | 0x20) == 'n');
}

bool ew__node_is_string(const ew__node *node) {
    bool truth, fits;
    number n;
    uint64_t based;
    return node->kind == EW__NODE_TEXT &&
           (!node->plain || (!ew__node_is_null(node) && !ew__node_bool(node, &truth) && !read_number(node->text, &n) &&
                             !read_based(node->text, &based, &fits) && !is_no_number(node->text)));
}

/* ---- JSON ---- */

static void write_string(ew__buf *out, ew_str text) {
    static const char codes[] = "0123456789abcdef";
    (void)ew__buf_char(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '"' || c == '\\') {
            (void)ew__buf_char(out, '\\');
            (void)ew__buf_char(out, (char)c);
        } else if (c == '\n') {
            (void)ew__buf_cstr(out, "\\n");
        } else if (c < 0x20) {
            char escape[] = {'\\', 'u', '0', '0', codes[c >> 4], codes[c & 15]};
            (void)ew__buf_add(out, escape, sizeof escape);
        } else {
            (void)ew__buf_char(out, (char)c);
        }
    }
    (void)ew__buf_char(out, '"');
}

static ew_err write_text(const ew__node *node, ew__buf *out, ew__problems *problems) {
    bool truth = false, fits = false;
    number n;
    uint64_t based;
    if (ew__node_is_string(node)) {
        write_string(out, node->text);
    } else if (ew__node_is_null(node)) {
        (void)ew__buf_cstr(out, "null");
    } else if (ew__node_bool(node, &truth)) {
        (void)ew__buf_cstr(out, truth ? "true" : "false");
    } else if (read_number(node->text, &n)) {
        write_number(out, &n);
    } else if (read_based(node->text, &based, &fits) && fits) {
        (void)ew__buf_u64(out, based);
    } else {
        ew__problem_add(problems, node->line, node->column, "JSON has no number %s; quotes make a text of it",
                        ew__show(node->text).text);
        return EW_ESYNTAX;
    }
    return out->err;
}

/* The depth is limited by the tree's reader. */
ew_err ew__node_json(const ew__node *node, ew__buf *out, ew__problems *problems) {
    if (node->bad) {
        return EW_ESYNTAX;
    }
    if (node->kind == EW__NODE_TEXT) {
        return write_text(node, out, problems);
    }
    bool map = node->kind == EW__NODE_MAP;
    ew_err err = ew__buf_char(out, map ? '{' : '[');
    for (const ew__node *item = node->first; item; item = item->next) {
        (void)ew__buf_cstr(out, item == node->first ? "" : ",");
        if (map) {
            write_string(out, item->key->text);
            (void)ew__buf_char(out, ':');
        }
        ew_err bad = ew__node_json(item, out, problems);
        err = err == EW_OK ? bad : err; /* the others may have problems, too */
    }
    (void)ew__buf_char(out, map ? '}' : ']');
    return out->err != EW_OK ? out->err : err;
}

/* Lengths stand before texts, so that no text can look like two. */
static void print_text(const ew__node *node, ew__buf *out) {
    (void)ew__buf_char(out, node->plain ? 'p' : 'q');
    (void)ew__buf_u64(out, node->text.len);
    (void)ew__buf_char(out, ':');
    (void)ew__buf_str(out, node->text);
}

ew_err ew__node_print(const ew__node *node, ew__buf *out) {
    if (node->kind == EW__NODE_TEXT) {
        print_text(node, out);
        return out->err;
    }
    (void)ew__buf_char(out, node->kind == EW__NODE_MAP ? '{' : '[');
    for (const ew__node *item = node->first; item; item = item->next) {
        if (item->key) {
            print_text(item->key, out);
        }
        (void)ew__node_print(item, out);
    }
    return ew__buf_char(out, node->kind == EW__NODE_MAP ? '}' : ']');
}
