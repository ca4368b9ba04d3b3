/*
 * config/tree.c: libyaml's events become a tree. See tree.h. The one file that knows libyaml; what that allocates comes
 * from the C library and is gone when this returns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "config/tree.h"
#include "base/list.h"
#include "base/map.h"
#include "base/util.h"
#include <yaml.h>

#define FEW_MEMBERS 16 /* up to here repeated keys are looked for one by one */

/* A list or map that is being read. */
typedef struct frame {
    ew__node *node;
    ew__node *last;
    ew__node *key; /* waits for its value */
    ew__map names; /* of a map with many members */
    bool has_names;
} frame;

typedef struct reader {
    yaml_parser_t parser;
    ew__arena *arena;
    ew__problems *problems;
    ew_str source;
    ew__variable_fn variable;
    void *ud;
    frame frames[EW__CONFIG_DEPTH];
    size_t depth;
    size_t n_nodes;
    size_t n_documents;
    size_t brought; /* bytes of texts that variables are in */
    size_t at;      /* bytes of the source up to the character number at_index: marks count characters */
    size_t at_index;
    ew__node *root;
    ew__buf expanded;
} reader;

/* ---- places ---- */

static unsigned line_of(const yaml_mark_t *mark) { return (unsigned)mark->line + 1; }
static unsigned column_of(const yaml_mark_t *mark) { return (unsigned)mark->column + 1; }

static bool is_inside(char byte) { return ((unsigned char)byte & 0xc0) == 0x80; } /* of a character */

/* Marks come in the order of the file, but for the end of the one before. */
static size_t byte_of(reader *r, size_t index) {
    if (index < r->at_index) {
        r->at = r->at_index = 0;
    }
    while (r->at_index < index && r->at < r->source.len) {
        do {
            r->at++;
        } while (r->at < r->source.len && is_inside(r->source.ptr[r->at]));
        r->at_index++;
    }
    return r->at;
}

/* Moves a place, which is that of byte `from`, to byte `to`. */
static void walk(ew_str source, size_t from, size_t to, unsigned *line, unsigned *column) {
    for (size_t i = from; i < to && i < source.len; i++) {
        char c = source.ptr[i];
        if (c == '\n' || (c == '\r' && !(i + 1 < source.len && source.ptr[i + 1] == '\n'))) {
            (*line)++;
            *column = 1;
        } else if (c != '\r' && !is_inside(c)) {
            (*column)++;
        }
    }
}

/*
 * The place of "${..." at an offset of a text that was read from between two marks. Escapes and line breaks make a text
 * differ from its source, so it is looked for there: as the n-th of its kind, if it is that here.
 */
static void variable_place(reader *r, const yaml_event_t *event, ew_str text, size_t offset, unsigned *line,
                           unsigned *column) {
    size_t n = 2, before = 0;
    while (offset + n < text.len && text.ptr[offset + n] != '}' && text.ptr[offset + n] != ':' && n < 64) {
        n++;
    }
    const char *what = text.ptr + offset;
    for (size_t i = 0; i < offset; i++) {
        before += text.len - i >= n && memcmp(text.ptr + i, what, n) == 0;
    }
    size_t start = byte_of(r, event->start_mark.index), end = byte_of(r, event->end_mark.index);
    for (size_t i = start; i + n <= end && i + n <= r->source.len; i++) {
        if (memcmp(r->source.ptr + i, what, n) == 0 && before-- == 0) {
            walk(r->source, start, i, line, column);
            return;
        }
    }
}

/* ---- nodes ---- */

static ew__node *new_node(reader *r, ew__node_kind kind, const yaml_event_t *event) {
    ew__node *node = ew__arena_alloc(r->arena, sizeof *node);
    if (!node) {
        r->problems->no_memory = true;
        return NULL;
    }
    *node = (ew__node){
        .kind = kind, .line = line_of(&event->start_mark), .column = column_of(&event->start_mark), .text = EW_STR("")};
    return node;
}

static void node_problem(reader *r, ew__node *node, const char *message) {
    node->bad = true;
    ew__problem_add(r->problems, node->line, node->column, "%s", message);
}

static bool copy_text(reader *r, ew__node *node, ew_str text) {
    char *copy = ew__arena_alloc(r->arena, text.len + 1);
    if (!copy) {
        r->problems->no_memory = true;
        return false;
    }
    if (text.len) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = 0;
    node->text = ew__str(copy, text.len);
    return true;
}

/* A key stays as it is; in a value variables are put in. */
static bool take_text(reader *r, ew__node *node, const yaml_event_t *event, bool is_key) {
    ew_str text = ew__str(event->data.scalar.value, event->data.scalar.length);
    if (is_key || !memmem(text.ptr, text.len, "${", 2)) {
        return copy_text(r, node, text);
    }
    ew__expand_problem problem;
    ew__buf_clear(&r->expanded);
    ew_err err = ew__expand(text, r->variable, r->ud, &r->expanded, &problem);
    if (err == EW_EINVAL) {
        unsigned line = node->line, column = node->column;
        variable_place(r, event, text, problem.offset, &line, &column);
        ew__problem_add(r->problems, line, column, "%s", problem.message);
        node->bad = true;
        return copy_text(r, node, text);
    }
    r->brought += r->expanded.len;
    if (err == EW_ELIMIT || r->brought > EW__CONFIG_BYTES) {
        node_problem(r, node, "too much text comes from variables");
        return copy_text(r, node, text);
    }
    r->problems->no_memory = r->problems->no_memory || err != EW_OK;
    return err == EW_OK && copy_text(r, node, ew__buf_view(&r->expanded));
}

/* ---- members ---- */

static const ew__node *find_name(const ew__node *map, ew_str name) {
    for (const ew__node *member = map->first; member; member = member->next) {
        if (ew__str_is(member->key->text, name)) {
            return member;
        }
    }
    return NULL;
}

/* Keeps an index of a map that is no longer small. */
static bool index_names(reader *r, frame *f) {
    if (f->has_names) {
        return true;
    }
    ew__map_init(&f->names, r->arena->env);
    f->has_names = true;
    for (ew__node *member = f->node->first; member; member = member->next) {
        if (ew__map_put(&f->names, member->key->text, member) != EW_OK) {
            return false;
        }
    }
    return true;
}

/* false: no memory. *ret_old is the member of that name that there is. */
static bool note_name(reader *r, frame *f, ew__node *member, const ew__node **ret_old) {
    if (f->node->n < FEW_MEMBERS) {
        *ret_old = find_name(f->node, member->key->text);
        return true;
    }
    if (!index_names(r, f)) {
        return false;
    }
    *ret_old = ew__map_get(&f->names, member->key->text);
    return *ret_old || ew__map_put(&f->names, member->key->text, member) == EW_OK;
}

static void append(frame *f, ew__node *node) {
    EW__TAIL_ADD(f->node->first, f->last, node);
    f->node->n++;
}

static bool add_member(reader *r, frame *f, ew__node *node) {
    const ew__node *key = f->key, *old = NULL;
    f->key = NULL;
    node->key = key;
    if (key->bad) {
        return true; /* it has no name to be found by */
    }
    if (key->plain && ew__str_is(key->text, EW_STR("<<"))) {
        ew__problem_add(r->problems, key->line, key->column, "merge keys (<<) are not supported: write the members");
        return true;
    }
    if (!note_name(r, f, node, &old)) {
        r->problems->no_memory = true;
        return false;
    }
    if (old) {
        ew__problem_add(r->problems, key->line, key->column, "the key %s is repeated; it is in line %u already",
                        ew__show(key->text).text, old->key->line);
        return true;
    }
    append(f, node);
    return true;
}

static bool wants_key(const reader *r) {
    const frame *f = r->depth ? &r->frames[r->depth - 1] : NULL;
    return f && f->node->kind == EW__NODE_MAP && !f->key;
}

/* Where a node belongs that begins now. false: no memory. */
static bool place(reader *r, ew__node *node) {
    if (r->depth == 0) {
        r->root = node;
        return true;
    }
    frame *f = &r->frames[r->depth - 1];
    if (f->node->kind == EW__NODE_LIST) {
        append(f, node);
        return true;
    }
    if (f->key) {
        return add_member(r, f, node);
    }
    if (node->kind != EW__NODE_TEXT) {
        node_problem(r, node, "a key must be a text");
    }
    f->key = node;
    return true;
}

static bool enter(reader *r, ew__node *node) {
    if (r->depth == EW__CONFIG_DEPTH) {
        ew__problem_add(r->problems, node->line, node->column, "lists and maps are more than %d levels deep",
                        EW__CONFIG_DEPTH);
        return false;
    }
    r->frames[r->depth++] = (frame){.node = node};
    return true;
}

static void leave(reader *r) {
    frame *f = &r->frames[--r->depth];
    if (f->has_names) {
        ew__map_done(&f->names);
    }
}

/* ---- events ---- */

/* What the text has that the tree cannot have. */
static void refuse_extras(reader *r, ew__node *node, const yaml_char_t *anchor, const yaml_char_t *tag) {
    if (anchor) {
        node_problem(r, node, "anchors (&NAME) are not supported: write the value again where it is needed");
    }
    if (tag) {
        node_problem(r, node, "tags (!TAG) are not supported; quotes make a text of anything");
    }
}

static bool take_node(reader *r, const yaml_event_t *event, ew__node_kind kind, const yaml_char_t *anchor,
                      const yaml_char_t *tag) {
    ew__node *node = new_node(r, kind, event);
    if (!node) {
        return false;
    }
    if (++r->n_nodes > EW__CONFIG_NODES) {
        ew__problem_add(r->problems, node->line, node->column, "more than %d values", EW__CONFIG_NODES);
        return false;
    }
    refuse_extras(r, node, anchor, tag);
    if (event->type == YAML_SCALAR_EVENT) {
        node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        if (!take_text(r, node, event, wants_key(r))) {
            return false;
        }
    } else if (event->type == YAML_ALIAS_EVENT) {
        node_problem(r, node, "aliases (*NAME) are not supported: write the value again");
    }
    return place(r, node) && (kind == EW__NODE_TEXT || enter(r, node));
}

/* false: the reading ends here. */
static bool take_event(reader *r, const yaml_event_t *event) {
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (r->n_documents++ > 0) {
            ew__problem_add(r->problems, line_of(&event->start_mark), column_of(&event->start_mark),
                            "a second document begins here (---): a configuration is one");
            return false;
        }
        return true;
    case YAML_SCALAR_EVENT:
        return take_node(r, event, EW__NODE_TEXT, event->data.scalar.anchor, event->data.scalar.tag);
    case YAML_SEQUENCE_START_EVENT:
        return take_node(r, event, EW__NODE_LIST, event->data.sequence_start.anchor, event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return take_node(r, event, EW__NODE_MAP, event->data.mapping_start.anchor, event->data.mapping_start.tag);
    case YAML_ALIAS_EVENT:
        return take_node(r, event, EW__NODE_TEXT, NULL, NULL);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        leave(r);
        return true;
    case YAML_STREAM_END_EVENT:
        return false;
    default:
        return true;
    }
}

/* What probably happened, where what the parser says does not tell. "[${NAME}]", for one, begins a map in a list. */
static const char *hint(reader *r) {
    const yaml_parser_t *p = &r->parser;
    size_t at = byte_of(r, p->problem_mark.index);
    size_t start = at > 1 ? at - 2 : 0, end = at + 2 < r->source.len ? at + 2 : r->source.len;
    if (p->context && strstr(p->context, "flow") && memmem(r->source.ptr + start, end - start, "${", 2)) {
        return "; a variable in [ ] or { } needs quotes around its text";
    }
    return p->problem && strstr(p->problem, "mapping values")
               ? "; a text that has \": \" in it or ends with \":\" needs quotes"
               : "";
}

/* What libyaml says. Its marks are those of the place where it gave up. */
static void parser_problem(reader *r) {
    const yaml_parser_t *p = &r->parser;
    unsigned line = line_of(&p->problem_mark), column = column_of(&p->problem_mark);
    if (p->error == YAML_MEMORY_ERROR) {
        r->problems->no_memory = true;
        return;
    }
    if (p->error == YAML_READER_ERROR) {
        line = column = 1;
        walk(r->source, 0, p->problem_offset, &line, &column);
        ew__problem_add(r->problems, line, column, "not text in UTF-8: %s", p->problem);
        return;
    }
    const char *problem = p->problem ? p->problem : "this is no YAML";
    if (p->context && p->context_mark.line != p->problem_mark.line) {
        ew__problem_add(r->problems, line, column, "%s (%s that begins in line %u)", problem, p->context,
                        line_of(&p->context_mark));
    } else {
        ew__problem_add(r->problems, line, column, "%s%s%s%s", problem, p->context ? " " : "",
                        p->context ? p->context : "", hint(r));
    }
}

/* false: there is no whole tree. */
static bool read_events(reader *r) {
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r->parser, &event)) {
            parser_problem(r);
            return false;
        }
        bool end = event.type == YAML_STREAM_END_EVENT;
        bool go_on = take_event(r, &event);
        yaml_event_delete(&event);
        if (!go_on) {
            return end;
        }
    }
}

ew_err ew__tree_read(ew__arena *arena, ew_str yaml, ew__variable_fn variable, void *ud, ew__problems *problems,
                     ew__node **ret_root) {
    if (ew__str_has_prefix(yaml, EW_STR("\xef\xbb\xbf"))) {
        yaml = ew__str(yaml.ptr + 3, yaml.len - 3);
    }
    *ret_root = NULL;
    if (yaml.len > EW__CONFIG_BYTES) {
        ew__problem_add(problems, 0, 0, "larger than %zu bytes", EW__CONFIG_BYTES);
        return EW_ESYNTAX;
    }
    reader r = {.arena = arena, .problems = problems, .source = yaml, .variable = variable, .ud = ud};
    if (!yaml_parser_initialize(&r.parser)) {
        return EW_ENOMEM;
    }
    ew__buf_init(&r.expanded, arena->env, EW__CONFIG_BYTES);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const yaml_char_t *)(yaml.len ? yaml.ptr : ""), yaml.len);
    bool whole = read_events(&r);
    while (r.depth > 0) {
        leave(&r);
    }
    ew__buf_done(&r.expanded);
    yaml_parser_delete(&r.parser);
    *ret_root = whole ? r.root : NULL;
    return problems->no_memory ? EW_ENOMEM : whole ? EW_OK : EW_ESYNTAX;
}

/* ---- reading the tree ---- */

const ew__node *ew__node_get(const ew__node *map, const char *name) {
    return map && map->kind == EW__NODE_MAP ? find_name(map, ew_str_from(name)) : NULL;
}

const ew__node *ew__node_at(const ew__node *node, size_t i) {
    if (!node || node->kind != EW__NODE_LIST) {
        return node;
    }
    const ew__node *item = node->first;
    while (item && i-- > 0) {
        item = item->next;
    }
    return item;
}
