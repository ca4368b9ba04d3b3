/*
 * compat/rrq/toml.c: the tables and keys of a TOML file. See toml.h. Syntax that is wrong ends the reading; a key or table that is
 * there already is a problem, and the reading goes on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "compat/rrq/toml.h"
#include "base/list.h"
#include "base/map.h"
#include "base/util.h"
#include <stdarg.h>
#include <stdio.h>

#define FEW_MEMBERS 16 /* up to here repeated keys are looked for one by one */

/* How a table or list came to be, which tells what may still be added to it. */
typedef enum made_by {
    HEADER,  /* [a], or one of [[a]], or the file itself */
    IMPLIED, /* by [a.b]: [a] may follow */
    DOTTED,  /* by a.b = 1: tables may follow below it */
    TABLES,  /* the list of all [[a]] */
    CLOSED   /* written as one value */
} made_by;

/* A table or list of the tree, with what its making needs. */
typedef struct ew__toml_table {
    ew__node node; /* comes first */
    ew__node *last;
    made_by origin;
    size_t depth;
    ew__map names; /* of a table with many members */
    bool has_names;
    struct ew__toml_table *indexed; /* the next one that has such */
} table;

static table *table_of(ew__node *node) { return ew__container_of(node, table, node); }

/* ---- places ---- */

static bool is_inside(char byte) { return ((unsigned char)byte & 0xc0) == 0x80; } /* of a character */

unsigned ew__toml_column(ew__toml *t, size_t at) {
    if (at < t->mark) {
        t->mark = t->start;
        t->columns = 0;
    }
    for (; t->mark < at && t->mark < t->text.len; t->mark++) {
        t->columns += !is_inside(t->text.ptr[t->mark]);
    }
    return t->columns + 1;
}

bool ew__toml_bad(ew__toml *t, size_t at, const char *format, ...) {
    char message[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    ew__problem_add(t->problems, t->line, ew__toml_column(t, at), "%s", message);
    return false;
}

char ew__toml_peek(const ew__toml *t, size_t ahead) {
    return t->at + ahead < t->text.len ? t->text.ptr[t->at + ahead] : 0;
}

bool ew__toml_newline(ew__toml *t) {
    size_t n = ew__toml_peek(t, 0) == '\n' ? 1 : ew__toml_peek(t, 0) == '\r' && ew__toml_peek(t, 1) == '\n' ? 2 : 0;
    if (n) {
        t->at += n;
        t->line++;
        t->start = t->mark = t->at;
        t->columns = 0;
    }
    return n > 0;
}

static void skip_blanks(ew__toml *t) {
    while (ew__toml_peek(t, 0) == ' ' || ew__toml_peek(t, 0) == '\t') {
        t->at++;
    }
}

static bool skip_comment(ew__toml *t) {
    if (ew__toml_peek(t, 0) != '#') {
        return true;
    }
    for (; t->at < t->text.len && t->text.ptr[t->at] != '\n'; t->at++) {
        unsigned char c = (unsigned char)t->text.ptr[t->at];
        if (c == '\r' && ew__toml_peek(t, 1) == '\n') {
            return true;
        }
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return ew__toml_bad(t, t->at, "a control character in a comment");
        }
    }
    return true;
}

/* White space, comments and line ends. */
static bool skip_lines(ew__toml *t) {
    do {
        skip_blanks(t);
        if (!skip_comment(t)) {
            return false;
        }
    } while (ew__toml_newline(t));
    return true;
}

/* ---- nodes ---- */

static bool no_memory(ew__toml *t) {
    t->problems->no_memory = true;
    return false;
}

/* size: of an ew__node, or of a table. NULL: no memory, or too many. */
static void *new_node(ew__toml *t, ew__node_kind kind, size_t size, unsigned line, unsigned column) {
    if (++t->n_nodes > EW__CONFIG_NODES) {
        ew__problem_add(t->problems, line, column, "more than %d values", EW__CONFIG_NODES);
        return NULL;
    }
    ew__node *node = ew__arena_alloc(t->arena, size);
    if (!node) {
        (void)no_memory(t);
        return NULL;
    }
    memset(node, 0, size);
    *node = (ew__node){.kind = kind, .line = line, .column = column, .text = EW_STR("")};
    return node;
}

static table *new_table(ew__toml *t, ew__node_kind kind, made_by origin, size_t depth, unsigned line, unsigned column) {
    if (depth > EW__CONFIG_DEPTH) {
        ew__problem_add(t->problems, line, column, "lists and tables are more than %d levels deep", EW__CONFIG_DEPTH);
        return NULL;
    }
    table *made = new_node(t, kind, sizeof *made, line, column);
    if (made) {
        made->origin = origin;
        made->depth = depth;
    }
    return made;
}

/* What stands in scratch. */
static bool take_text(ew__toml *t, ew__node *node) {
    if (t->scratch.err != EW_OK) {
        return no_memory(t);
    }
    char *copy = ew__arena_alloc(t->arena, t->scratch.len + 1);
    if (!copy) {
        return no_memory(t);
    }
    if (t->scratch.len) {
        memcpy(copy, t->scratch.ptr, t->scratch.len);
    }
    copy[t->scratch.len] = 0;
    node->text = ew__str(copy, t->scratch.len);
    return true;
}

static void append(table *to, ew__node *node) {
    EW__TAIL_ADD(to->node.first, to->last, node);
    to->node.n++;
}

static bool index_names(ew__toml *t, table *map) {
    ew__map_init(&map->names, t->arena->env);
    map->has_names = true;
    map->indexed = t->indexed;
    t->indexed = map;
    for (ew__node *member = map->node.first; member; member = member->next) {
        if (ew__map_put(&map->names, member->key->text, member) != EW_OK) {
            return no_memory(t);
        }
    }
    return true;
}

static ew__node *find(const table *map, ew_str name) {
    if (map->has_names) {
        return ew__map_get(&map->names, name);
    }
    ew__node *member = map->node.first;
    while (member && !ew__str_is(member->key->text, name)) {
        member = member->next;
    }
    return member;
}

/* The name must be new. false: no memory. */
static bool add_member(ew__toml *t, table *map, const ew__node *key, ew__node *node) {
    node->key = key;
    append(map, node);
    if (map->has_names) {
        return ew__map_put(&map->names, key->text, node) == EW_OK || no_memory(t);
    }
    return map->node.n <= FEW_MEMBERS || index_names(t, map);
}

/* ---- keys ---- */

static bool is_bare(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* One part of a key. NULL: a problem was added. */
static ew__node *read_key(ew__toml *t) {
    char c = ew__toml_peek(t, 0);
    unsigned line = t->line, column = ew__toml_column(t, t->at);
    if (c == '"' || c == '\'') {
        if (!ew__toml_string(t, false)) {
            return NULL;
        }
    } else {
        size_t n = 0;
        while (is_bare(ew__toml_peek(t, n))) {
            n++;
        }
        if (n == 0) {
            (void)ew__toml_bad(t, t->at,
                               t->at < t->text.len ? "a key is missing: letters, digits, _ and -, or in quotes"
                                                   : "the file ends where a key should be");
            return NULL;
        }
        ew__buf_clear(&t->scratch);
        (void)ew__buf_add(&t->scratch, t->text.ptr + t->at, n);
        t->at += n;
    }
    ew__node *key = new_node(t, EW__NODE_TEXT, sizeof *key, line, column);
    return key && take_text(t, key) ? key : NULL;
}

static bool repeated(ew__toml *t, const ew__node *key, const ew__node *old) {
    ew__problem_add(t->problems, key->line, key->column, "the key %s is repeated; it is in line %u already",
                    ew__show(key->text).text, old->key->line);
    return true;
}

/*
 * The table below `from` that a part of a key names, made if it is not there. *ret is NULL when it may not be added to: a
 * problem was added, and the reading goes on. false: the reading ends.
 */
static bool descend(ew__toml *t, table *from, const ew__node *key, made_by as, table **ret) {
    ew__node *node = find(from, key->text);
    *ret = NULL;
    if (!node) {
        *ret = new_table(t, EW__NODE_MAP, as, from->depth + 1, key->line, key->column);
        return *ret && add_member(t, from, key, &(*ret)->node);
    }
    table *found = node->kind == EW__NODE_TEXT ? NULL : table_of(node);
    if (found && found->origin == TABLES && as == IMPLIED) {
        *ret = table_of(found->last);
        return true;
    }
    bool open = found && found->node.kind == EW__NODE_MAP &&
                (as == IMPLIED ? found->origin != CLOSED : found->origin == DOTTED || found->origin == IMPLIED);
    if (!open) {
        ew__problem_add(t->problems, key->line, key->column, "%s is in line %u already, and cannot be added to here",
                        ew__show(key->text).text, node->key->line);
        return true;
    }
    found->origin = as == DOTTED ? DOTTED : found->origin;
    *ret = found;
    return true;
}

/* "a.b.c": goes down to b; *ret_key is c. *ret_table as in descend. false: the reading ends. */
static bool read_path(ew__toml *t, table *from, made_by as, table **ret_table, ew__node **ret_key) {
    table *at = from;
    for (;;) {
        *ret_key = read_key(t);
        if (!*ret_key) {
            return false;
        }
        skip_blanks(t);
        if (ew__toml_peek(t, 0) != '.') {
            *ret_table = at;
            return true;
        }
        t->at++;
        skip_blanks(t);
        if (at && !descend(t, at, *ret_key, as, &at)) {
            return false;
        }
    }
}

/* ---- values ---- */

static bool read_value(ew__toml *t, size_t depth, ew__node **ret);

/* "a.b = value" into a table. */
static bool read_pair(ew__toml *t, table *into) {
    table *map;
    ew__node *key, *value;
    if (!read_path(t, into, DOTTED, &map, &key)) {
        return false;
    }
    if (ew__toml_peek(t, 0) != '=') {
        return ew__toml_bad(t, t->at, "an = is missing behind the key");
    }
    t->at++;
    skip_blanks(t);
    if (!read_value(t, (map ? map : into)->depth + 1, &value)) {
        return false;
    }
    const ew__node *old = map ? find(map, key->text) : NULL;
    return !map || (old ? repeated(t, key, old) : add_member(t, map, key, value));
}

static bool read_list(ew__toml *t, table *list) {
    unsigned line = t->line;
    t->at++;
    for (;;) {
        ew__node *item;
        if (!skip_lines(t)) {
            return false;
        }
        if (ew__toml_peek(t, 0) == ']') {
            break;
        }
        if (t->at >= t->text.len) {
            return ew__toml_bad(t, t->at, "the list that begins in line %u does not end", line);
        }
        if (!read_value(t, list->depth + 1, &item)) {
            return false;
        }
        append(list, item);
        if (!skip_lines(t)) {
            return false;
        }
        if (ew__toml_peek(t, 0) != ',' && ew__toml_peek(t, 0) != ']') {
            return ew__toml_bad(t, t->at, "the list that begins in line %u wants a comma or ] here", line);
        }
        t->at += ew__toml_peek(t, 0) == ',';
    }
    t->at++;
    return true;
}

/* What was made below an inline table cannot be added to either. */
static void close_all(table *map) {
    map->origin = CLOSED;
    for (ew__node *member = map->node.first; member; member = member->next) {
        if (member->kind == EW__NODE_MAP && table_of(member)->origin != CLOSED) {
            close_all(table_of(member));
        }
    }
}

static bool read_inline(ew__toml *t, table *map) {
    t->at++;
    skip_blanks(t);
    while (ew__toml_peek(t, 0) != '}' || map->node.n > 0) {
        if (!read_pair(t, map)) {
            return false;
        }
        skip_blanks(t);
        if (ew__toml_peek(t, 0) == '}') {
            break;
        }
        if (ew__toml_peek(t, 0) != ',') {
            return ew__toml_bad(t, t->at, "a comma or } is missing: such a table stands in one line");
        }
        t->at++;
        skip_blanks(t);
    }
    t->at++;
    close_all(map);
    return true;
}

/* depth: of a list or table that it would be. */
static bool read_value(ew__toml *t, size_t depth, ew__node **ret) {
    char c = ew__toml_peek(t, 0);
    unsigned line = t->line, column = ew__toml_column(t, t->at);
    if (c == '[' || c == '{') {
        table *made =
            new_table(t, c == '[' ? EW__NODE_LIST : EW__NODE_MAP, c == '[' ? CLOSED : DOTTED, depth, line, column);
        *ret = made ? &made->node : NULL;
        return made && (c == '[' ? read_list(t, made) : read_inline(t, made));
    }
    bool plain = false;
    if (c == '"' || c == '\'' ? !ew__toml_string(t, true) : !ew__toml_scalar(t, &plain)) {
        return false;
    }
    *ret = new_node(t, EW__NODE_TEXT, sizeof **ret, line, column);
    if (!*ret) {
        return false;
    }
    (*ret)->plain = plain;
    return take_text(t, *ret);
}

/* ---- headers ---- */

/* [a.b]: *ret is the table that the next pairs belong to. */
static bool define(ew__toml *t, table *above, const ew__node *key, table **ret) {
    ew__node *node = find(above, key->text);
    if (!node) {
        *ret = new_table(t, EW__NODE_MAP, HEADER, above->depth + 1, key->line, key->column);
        return *ret && add_member(t, above, key, &(*ret)->node);
    }
    if (node->kind == EW__NODE_MAP && table_of(node)->origin == IMPLIED) {
        *ret = table_of(node);
        (*ret)->origin = HEADER;
        return true;
    }
    return repeated(t, key, node);
}

/* [[a.b]] */
static bool define_next(ew__toml *t, table *above, const ew__node *key, table **ret) {
    ew__node *node = find(above, key->text);
    if (node && (node->kind != EW__NODE_LIST || table_of(node)->origin != TABLES)) {
        return repeated(t, key, node);
    }
    table *list = node ? table_of(node) : NULL;
    if (!list) {
        list = new_table(t, EW__NODE_LIST, TABLES, above->depth + 1, key->line, key->column);
        if (!list || !add_member(t, above, key, &list->node)) {
            return false;
        }
    }
    *ret = new_table(t, EW__NODE_MAP, HEADER, list->depth + 1, key->line, key->column);
    if (*ret) {
        append(list, &(*ret)->node);
    }
    return *ret != NULL;
}

/* One of no tree, for the pairs of a header that had a problem. */
static bool nowhere(ew__toml *t, table **ret) {
    *ret = new_table(t, EW__NODE_MAP, HEADER, 1, t->line, 1);
    return *ret != NULL;
}

static bool read_header(ew__toml *t, table *root, table **ret) {
    bool next = ew__toml_peek(t, 1) == '[';
    table *above;
    ew__node *key;
    t->at += next ? 2 : 1;
    skip_blanks(t);
    if (!read_path(t, root, IMPLIED, &above, &key)) {
        return false;
    }
    if (ew__toml_peek(t, 0) != ']' || (next && ew__toml_peek(t, 1) != ']')) {
        return ew__toml_bad(t, t->at, "the name of a table ends with %s", next ? "]]" : "]");
    }
    t->at += next ? 2 : 1;
    *ret = NULL;
    if (above && !(next ? define_next(t, above, key, ret) : define(t, above, key, ret))) {
        return false;
    }
    return *ret || nowhere(t, ret);
}

/* ---- all ---- */

static bool read_file(ew__toml *t, table *root) {
    table *at = root;
    for (;;) {
        if (!skip_lines(t)) {
            return false;
        }
        if (t->at >= t->text.len) {
            return true;
        }
        if (ew__toml_peek(t, 0) == '[' ? !read_header(t, root, &at) : !read_pair(t, at)) {
            return false;
        }
        skip_blanks(t);
        if (!skip_comment(t)) {
            return false;
        }
        if (t->at < t->text.len && !ew__toml_newline(t)) {
            return ew__toml_bad(t, t->at, "the line should end here");
        }
    }
}

/* The first byte that is no part of UTF-8; the length: all are. */
static size_t utf8_length(ew_str text) {
    size_t i = 0;
    while (i < text.len) {
        unsigned char c = (unsigned char)text.ptr[i], second = i + 1 < text.len ? (unsigned char)text.ptr[i + 1] : 0;
        size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
        bool odd = (c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) || (c == 0xf0 && second < 0x90) ||
                   (c == 0xf4 && second > 0x8f);
        if (n == 0 || odd || n > text.len - i) {
            return i;
        }
        for (size_t k = 1; k < n; k++) {
            if (!is_inside(text.ptr[i + k])) {
                return i;
            }
        }
        i += n;
    }
    return i;
}

static bool check_text(ew__toml *t) {
    size_t bad = utf8_length(t->text);
    const char *nul = t->text.len ? memchr(t->text.ptr, 0, t->text.len) : NULL;
    bad = nul && (size_t)(nul - t->text.ptr) < bad ? (size_t)(nul - t->text.ptr) : bad;
    if (bad == t->text.len) {
        return true;
    }
    while (t->at < bad) {
        if (!ew__toml_newline(t)) {
            t->at++;
        }
    }
    return ew__toml_bad(t, bad, "not text in UTF-8");
}

ew_err ew__toml_read(ew__arena *arena, ew_str toml, ew__problems *problems, ew__node **ret_root) {
    if (ew__str_has_prefix(toml, EW_STR("\xef\xbb\xbf"))) {
        toml = ew__str(toml.ptr + 3, toml.len - 3);
    }
    *ret_root = NULL;
    if (toml.len > EW__CONFIG_BYTES) {
        ew__problem_add(problems, 0, 0, "larger than %zu bytes", EW__CONFIG_BYTES);
        return EW_ESYNTAX;
    }
    ew__toml t = {.arena = arena, .problems = problems, .text = toml, .line = 1};
    ew__buf_init(&t.scratch, arena->env, 2 * EW__CONFIG_BYTES);
    table *root = new_table(&t, EW__NODE_MAP, HEADER, 1, 1, 1);
    bool whole = root && check_text(&t) && read_file(&t, root);
    for (table *map = t.indexed; map; map = map->indexed) {
        ew__map_done(&map->names);
    }
    problems->no_memory = problems->no_memory || t.scratch.err != EW_OK;
    ew__buf_done(&t.scratch);
    *ret_root = whole && !problems->no_memory ? &root->node : NULL;
    return problems->no_memory ? EW_ENOMEM : whole ? EW_OK : EW_ESYNTAX;
}
