/*
 * schema/find.c: which parts of a text are schemas, what identifies them, and where references lead.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "json/json.h"
#include "schema/program.h"
#include "schema/uri.h"
#include <stdio.h>

/* ---- where schemas are ---- */

typedef enum shape {
    ONE,         /* a schema */
    LIST,        /* an array of them */
    ONE_OR_LIST, /* items of draft-07 */
    MEMBERS      /* an object whose values are schemas (dependencies: or lists of names) */
} shape;

enum { NEW = 1 << EW__DRAFT_2020_12, OLD = 1 << EW__DRAFT_07, BOTH = NEW | OLD };

static const struct holder {
    const char *keyword;
    shape shape;
    unsigned drafts;
} holders[] = {
    {"additionalItems", ONE, OLD},
    {"additionalProperties", ONE, BOTH},
    {"allOf", LIST, BOTH},
    {"anyOf", LIST, BOTH},
    {"contains", ONE, BOTH},
    {"contentSchema", ONE, NEW},
    {"definitions", MEMBERS, BOTH},
    {"$defs", MEMBERS, NEW},
    {"dependencies", MEMBERS, BOTH},
    {"dependentSchemas", MEMBERS, NEW},
    {"else", ONE, BOTH},
    {"if", ONE, BOTH},
    {"items", ONE, NEW},
    {"items", ONE_OR_LIST, OLD},
    {"not", ONE, BOTH},
    {"oneOf", LIST, BOTH},
    {"patternProperties", MEMBERS, BOTH},
    {"prefixItems", LIST, NEW},
    {"properties", MEMBERS, BOTH},
    {"propertyNames", ONE, BOTH},
    {"then", ONE, BOTH},
    {"unevaluatedItems", ONE, NEW},
    {"unevaluatedProperties", ONE, NEW},
};

static const struct holder *find_holder(ew_str name, ew__draft draft) {
    for (size_t i = 0; i < sizeof holders / sizeof holders[0]; i++) {
        if ((holders[i].drafts >> draft & 1) != 0 && ew__json_name_is(name, ew_str_from(holders[i].keyword))) {
            return &holders[i];
        }
    }
    return NULL;
}

/* ---- identifiers ---- */

bool ew__compiler_text(ew__compiler *c, const ew__schema_doc *doc, uint32_t item, ew_str *ret) {
    ew_str value = ew__tape_scalar(&doc->tape, item);
    char *text = c->err == EW_OK ? ew__arena_alloc(&c->schema->arena, value.len) : NULL;
    size_t len = 0;
    if (text == NULL) {
        ew__compiler_fail(c, EW_ENOMEM, doc, item, NULL, "out of memory");
        return false;
    }
    if (ew_json_string(value, text, value.len, &len) != EW_OK) {
        ew__compiler_fail(c, EW_EINVAL, doc, item, NULL, "this must be a text (and of whole characters)");
        return false;
    }
    *ret = ew__str(text, len);
    return true;
}

static ew__resource *find_resource(const ew__compiler *c, ew_str uri) {
    for (ew__resource *resource = c->schema->resources; resource != NULL; resource = resource->next) {
        if (ew__str_is(resource->uri, uri)) {
            return resource;
        }
    }
    return NULL;
}

static ew_str resolve_uri(ew__compiler *c, ew_str base, ew_str ref) {
    ew__buf out;
    ew_str uri = {"", 0};
    ew__buf_init(&out, c->env, EW__SCHEMA_BYTES_MAX);
    (void)ew__uri_resolve(&out, base, ref);
    if (out.err != EW_OK || ew__arena_str(&c->schema->arena, ew__buf_view(&out), &uri) != EW_OK) {
        ew__compiler_fail(c, out.err != EW_OK ? out.err : EW_ENOMEM, NULL, 0, NULL, "an identifier is too long");
    }
    ew__buf_done(&out);
    return uri;
}

static ew__resource *new_resource(ew__compiler *c, ew_str uri, ew__draft draft, ew__schema_doc *doc, uint32_t item) {
    ew__resource *resource = c->err == EW_OK ? ew__arena_alloc(&c->schema->arena, sizeof *resource) : NULL;
    if (resource == NULL) {
        ew__compiler_fail(c, EW_ENOMEM, doc, item, NULL, "out of memory");
        return NULL;
    }
    if (find_resource(c, uri) != NULL && uri.len > 0) {
        ew__compiler_fail(c, EW_EINVAL, doc, item, "$id", "another schema has this identifier already");
        return NULL;
    }
    *resource = (ew__resource){.next = c->schema->resources, .uri = uri, .draft = draft, .doc = doc, .item = item};
    c->schema->resources = resource;
    return resource;
}

static void add_anchor(ew__compiler *c, ew__resource *resource, ew_str name, uint32_t item, bool dynamic) {
    for (const ew__anchor *other = resource->anchors; other != NULL; other = other->next) {
        if (other->item != item && ew__str_is(other->name, name)) {
            ew__compiler_fail(c, EW_EINVAL, resource->doc, item, NULL, "another schema has this anchor already");
            return;
        }
    }
    ew__anchor *anchor = ew__arena_alloc(&c->schema->arena, sizeof *anchor);
    if (anchor == NULL) {
        ew__compiler_fail(c, EW_ENOMEM, resource->doc, item, NULL, "out of memory");
        return;
    }
    *anchor = (ew__anchor){.next = resource->anchors, .name = name, .item = item, .dynamic = dynamic};
    resource->anchors = anchor;
}

static void read_anchor(ew__compiler *c, ew__resource *resource, uint32_t item, const char *keyword, bool dynamic) {
    ew_str name;
    uint32_t value = ew__tape_member(&resource->doc->tape, item, ew_str_from(keyword));
    if (value != 0 && ew__compiler_text(c, resource->doc, value, &name)) {
        add_anchor(c, resource, name, item, dynamic);
    }
}

/* The dialect that $schema names in this schema, or the one around it. */
static ew__draft read_dialect(ew__compiler *c, ew__schema_doc *doc, uint32_t item, ew__draft outer) {
    ew_str text, uri, fragment;
    uint32_t value = ew__tape_member(&doc->tape, item, EW_STR("$schema"));
    if (value == 0 || !ew__compiler_text(c, doc, value, &text)) {
        return outer;
    }
    const char *ignored;
    ew__draft draft = outer;
    (void)ew__uri_split(text, &uri, &fragment);
    if (ew__meta_schema(uri, &ignored, &draft).len == 0) {
        ew__compiler_fail(c, EW_EINVAL, doc, item, "$schema",
                          "this dialect is not known: there are https://json-schema.org/draft/2020-12/schema and "
                          "http://json-schema.org/draft-07/schema#");
    }
    return draft;
}

/* The resource of a schema: a new one if it has an identifier. */
static ew__resource *read_identifier(ew__compiler *c, ew__schema_doc *doc, uint32_t item, ew__resource *outer) {
    ew_str text, uri, fragment;
    uint32_t value = ew__tape_member(&doc->tape, item, EW_STR("$id"));
    bool root = item == 0;
    ew__draft draft = value != 0 || root ? read_dialect(c, doc, item, root ? c->draft : outer->draft) : outer->draft;
    if (value != 0 && draft == EW__DRAFT_07 && ew__tape_member(&doc->tape, item, EW_STR("$ref")) != 0) {
        value = 0; /* what stands beside $ref is not looked at */
        draft = root ? draft : outer->draft;
    }
    if (value == 0) {
        return root ? new_resource(c, ew__str("", 0), draft, doc, item) : outer;
    }
    if (!ew__compiler_text(c, doc, value, &text)) {
        return NULL;
    }
    bool has_fragment = ew__uri_split(text, &uri, &fragment) && fragment.len > 0;
    if (has_fragment && draft != EW__DRAFT_07) {
        ew__compiler_fail(c, EW_EINVAL, doc, item, "$id", "an identifier has no fragment: use $anchor");
        return NULL;
    }
    ew__resource *resource = outer;
    if (uri.len > 0 || root) {
        resource = new_resource(c, resolve_uri(c, root ? ew__str("", 0) : outer->uri, uri), draft, doc, item);
    }
    if (has_fragment && resource != NULL) {
        add_anchor(c, resource, fragment, item, false);
    }
    return resource;
}

/* ---- looking through a text ---- */

static void visit(ew__compiler *c, ew__schema_doc *doc, uint32_t item, ew__resource *outer);

static void visit_held(ew__compiler *c, ew__schema_doc *doc, uint32_t value, shape held, ew__resource *resource) {
    const ew__tape *tape = &doc->tape;
    ew_json_type type = ew__tape_type(tape, value);
    if (held == ONE || (held == ONE_OR_LIST && type != EW_JSON_ARRAY)) {
        visit(c, doc, value, resource);
        return;
    }
    if (type != (held == MEMBERS ? EW_JSON_OBJECT : EW_JSON_ARRAY)) {
        return; /* whoever makes its rules says what is wrong with it */
    }
    unsigned name = held == MEMBERS ? 1 : 0;
    for (uint32_t i = value + 1; i < ew__tape_end(tape, value); i = ew__tape_next_element(tape, i + name)) {
        visit(c, doc, i + name, resource);
    }
}

/* As deep as the text, whose depth is limited. */
static void visit(ew__compiler *c, ew__schema_doc *doc, uint32_t item, ew__resource *outer) {
    const ew__tape *tape = &doc->tape;
    ew__resource **where = c->where[ew__doc_index(c->schema, doc)];
    if (c->err != EW_OK || where[item] != NULL) {
        return;
    }
    bool object = ew__tape_type(tape, item) == EW_JSON_OBJECT;
    ew__resource *resource = object || item == 0 ? read_identifier(c, doc, item, outer) : outer;
    if (resource == NULL || c->err != EW_OK) {
        return;
    }
    where[item] = resource;
    if (!object) {
        return;
    }
    if (resource->draft == EW__DRAFT_2020_12) {
        read_anchor(c, resource, item, "$anchor", false);
        read_anchor(c, resource, item, "$dynamicAnchor", true);
    }
    for (uint32_t i = item + 1; i < ew__tape_end(tape, item); i = ew__tape_next_member(tape, i)) {
        const struct holder *holder = find_holder(ew__tape_string(tape, i), resource->draft);
        if (holder != NULL) {
            visit_held(c, doc, i + 1, holder->shape, resource);
        }
    }
}

ew__resource *ew__compiler_where(ew__compiler *c, ew__schema_doc *doc, uint32_t item, ew__resource *outer) {
    visit(c, doc, item, outer);
    return c->where[ew__doc_index(c->schema, doc)][item];
}

ew__schema_doc *ew__compiler_add_doc(ew__compiler *c, ew_str text, const char *uri, ew__draft draft) {
    ew__schema *schema = c->schema;
    unsigned index = schema->n_docs++;
    ew__schema_doc *doc = &schema->docs[index];
    doc->uri = uri;
    ew_err err = ew__tape_read(&doc->tape, c->env, text);
    if (err == EW_OK) {
        size_t size = doc->tape.n * sizeof(void *);
        c->where[index] = ew__zalloc(c->env, size);
        c->nodes[index] = ew__zalloc(c->env, size);
        err = c->where[index] != NULL && c->nodes[index] != NULL ? EW_OK : EW_ENOMEM;
    }
    if (err != EW_OK) {
        ew__compiler_fail(c, err, NULL, 0, NULL, "the schema is too large");
        return NULL;
    }
    ew__draft asked = c->draft;
    c->draft = draft;
    visit(c, doc, 0, NULL);
    c->draft = asked;
    return c->err == EW_OK ? doc : NULL;
}

/* ---- references ---- */

/* One step of a JSON pointer, ~0 and ~1 resolved in place. */
static ew_str plain_token(char *at, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        char ch = at[i];
        if (ch == '~' && i + 1 < n && (at[i + 1] == '0' || at[i + 1] == '1')) {
            ch = at[++i] == '1' ? '/' : '~';
        }
        at[kept++] = ch;
    }
    return ew__str(at, kept);
}

static uint32_t child_of(const ew__tape *tape, uint32_t item, ew_str token) {
    uint64_t index;
    if (ew__tape_type(tape, item) != EW_JSON_ARRAY) {
        return ew__tape_member(tape, item, token);
    }
    if (!ew__u64_parse(token, &index)) {
        return 0;
    }
    for (uint32_t i = item + 1; i < ew__tape_end(tape, item); i = ew__tape_next_element(tape, i)) {
        if (index-- == 0) {
            return i;
        }
    }
    return 0;
}

/* Follows a pointer (its text is used up) from a resource's root. *resource becomes the one it ends in. NONE: nowhere. */
#define NOWHERE UINT32_MAX
static uint32_t follow(ew__compiler *c, ew__resource **resource, ew__buf *pointer) {
    ew__schema_doc *doc = (*resource)->doc;
    ew__resource **where = c->where[ew__doc_index(c->schema, doc)];
    uint32_t item = (*resource)->item;
    for (size_t at = 0; at < pointer->len;) {
        size_t start = at + 1, end = start;
        while (end < pointer->len && pointer->ptr[end] != '/') {
            end++;
        }
        item = child_of(&doc->tape, item, plain_token(pointer->ptr + start, end - start));
        if (item == 0) {
            return NOWHERE;
        }
        *resource = where[item] != NULL ? where[item] : *resource;
        at = end;
    }
    return item;
}

static uint32_t find_anchor(const ew__resource *resource, ew_str name, ew_str *ret_dynamic) {
    uint32_t item = NOWHERE;
    for (const ew__anchor *anchor = resource->anchors; anchor != NULL; anchor = anchor->next) {
        if (ew__str_is(anchor->name, name)) {
            item = anchor->item;
            if (anchor->dynamic) {
                *ret_dynamic = anchor->name;
            }
        }
    }
    return item;
}

/* The resource that a reference without its fragment means. */
static ew__resource *find_target(ew__compiler *c, const ew__schema_node *from, ew_str uri, const char *keyword) {
    if (uri.len == 0) {
        return (ew__resource *)(uintptr_t)from->resource;
    }
    ew_str whole = resolve_uri(c, from->resource->uri, uri);
    ew__resource *target = find_resource(c, whole);
    const char *name = NULL;
    ew__draft draft = c->draft;
    ew_str meta = target == NULL ? ew__meta_schema(whole, &name, &draft) : ew__str(NULL, 0);
    if (meta.len > 0 && ew__compiler_add_doc(c, meta, name, draft) != NULL) {
        target = find_resource(c, whole);
    }
    if (target == NULL) {
        ew__compiler_fail(c, EW_EINVAL, from->doc, from->item, keyword,
                          "%.*s%s is not in this document, and no other is ever read",
                          (int)(whole.len < 150 ? whole.len : 150), whole.ptr, whole.len < 150 ? "" : "...");
    }
    return target;
}

/* The item that a fragment means, or NOWHERE. */
static uint32_t find_fragment(ew__compiler *c, ew__resource **resource, ew_str fragment, ew_str *ret_anchor) {
    ew__buf plain;
    uint32_t item = NOWHERE;
    ew__buf_init(&plain, c->env, EW__SCHEMA_BYTES_MAX);
    ew_err err = ew__uri_decode(&plain, fragment);
    if (err == EW_ENOMEM) {
        ew__compiler_fail(c, err, NULL, 0, NULL, "out of memory");
    } else if (err == EW_OK && (plain.len == 0 || plain.ptr[0] == '/')) {
        item = follow(c, resource, &plain);
    } else if (err == EW_OK) {
        item = find_anchor(*resource, ew__buf_view(&plain), ret_anchor);
    }
    ew__buf_done(&plain);
    return item;
}

ew__schema_node *ew__compiler_resolve(ew__compiler *c, const ew__schema_node *from, uint32_t ref, const char *keyword,
                                      ew_str *ret_anchor) {
    ew_str text, uri, fragment;
    *ret_anchor = ew__str(NULL, 0);
    if (!ew__compiler_text(c, from->doc, ref, &text)) {
        return NULL;
    }
    (void)ew__uri_split(text, &uri, &fragment);
    ew__resource *resource = find_target(c, from, uri, keyword);
    if (resource == NULL || c->err != EW_OK) {
        return NULL;
    }
    uint32_t item = find_fragment(c, &resource, fragment, ret_anchor);
    if (item == NOWHERE) {
        ew__compiler_fail(c, EW_EINVAL, from->doc, from->item, keyword, "there is nothing at %.*s",
                          (int)(text.len < 150 ? text.len : 150), text.ptr);
        return NULL;
    }
    ew__schema_doc *doc = resource->doc;
    resource = ew__compiler_where(c, doc, item, resource);
    return c->err == EW_OK ? ew__compiler_node(c, resource, doc, item, keyword) : NULL;
}
