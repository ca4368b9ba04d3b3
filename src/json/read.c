/*
 * json/read.c: finding values in text that is known to be valid: members, elements, JSON pointers. Nothing is
 * allocated.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "json/json.h"
#include "json/text.h"

static const ew_str nothing = {NULL, 0};

/* The value that starts at `at`, as a slice. */
static ew_str value_at(const char *at, const char *end) {
    return ew__str(at, (size_t)(ew__json_skip_value(at, end) - at));
}

static ew_str inside_quotes(ew_str string) {
    return string.len >= 2 ? ew__str(string.ptr + 1, string.len - 2) : ew__str(string.ptr, 0);
}

ew_json_type ew_json_typeof(ew_str value) {
    const char *end = ew__json_end(value), *at = ew__json_space(value.ptr, end);
    return at < end ? ew__json_type_of_byte(*at) : EW_JSON_NONE;
}

/* ---- walking ---- */

/* On the first byte of a member or element; leaves the offset after its value. */
static bool take(ew_str container, ew_json_iter *it, const char *at, bool object) {
    const char *end = ew__json_end(container);
    it->key = nothing;
    if (object) {
        it->key = value_at(at, end);
        at = ew__json_space(it->key.ptr + it->key.len, end);
        at = at < end && *at == ':' ? ew__json_space(at + 1, end) : end;
    }
    it->value = value_at(at, end);
    it->offset_ = (size_t)(it->value.ptr + it->value.len - container.ptr);
    return it->value.len != 0;
}

bool ew_json_next(ew_str container, ew_json_iter *it) {
    const char *end = ew__json_end(container), *first = ew__json_space(container.ptr, end);
    if (first == end || (*first != '{' && *first != '[')) {
        return false;
    }
    const char *at = first;
    if (it->offset_ != 0) {
        at = it->offset_ < container.len ? ew__json_space(container.ptr + it->offset_, end) : end;
        if (at == end || *at != ',') {
            return false;
        }
    }
    at = ew__json_space(at + 1, end);
    if (at == end || *at == '}' || *at == ']') {
        return false;
    }
    return take(container, it, at, *first == '{');
}

/* ---- members ---- */

/* Goes on from where `it` is. With ret_repeated it looks at all members, else it stops at the first of that name. */
static ew_str find_from(ew_str object, ew_json_iter it, ew_str name, ew_str found, bool *ret_repeated) {
    while (ew_json_next(object, &it)) {
        if (it.key.len < 2 || !ew__json_name_is(inside_quotes(it.key), name)) {
            continue;
        }
        if (found.ptr != NULL) {
            *ret_repeated = true;
            break;
        }
        found = it.value;
        if (ret_repeated == NULL) {
            break;
        }
    }
    return found;
}

ew_str ew__json_find_in(ew_str object, ew_str name, bool *ret_repeated) {
    if (ret_repeated != NULL) {
        *ret_repeated = false;
    }
    return find_from(object, (ew_json_iter){.offset_ = 0}, name, nothing, ret_repeated);
}

ew_str ew_json_member(ew_str object, ew_str name) { return ew__json_find_in(object, name, NULL); }

static inline uint64_t differ8(const char *a, const char *b) {
    uint64_t x, y;
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    return x ^ y;
}

static inline uint32_t differ4(const char *a, const char *b) {
    uint32_t x, y;
    memcpy(&x, a, 4);
    memcpy(&y, b, 4);
    return x ^ y;
}

#define SHORT_NAME 16u

/*
 * memcmp for short names: two loads that overlap are cheaper than a call, and a function without calls is cheap
 * itself.
 */
static inline bool same_short(const char *a, const char *b, size_t n) {
    if (n >= 8) {
        return (differ8(a, b) | differ8(a + n - 8, b + n - 8)) == 0;
    }
    if (n >= 4) {
        return (differ4(a, b) | differ4(a + n - 4, b + n - 4)) == 0;
    }
    return n == 0 || (a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1]);
}

static inline bool same_name(const char *key, size_t len, ew_str name) {
    return len == name.len && (len <= SHORT_NAME ? same_short(key, name.ptr, len) : memcmp(key, name.ptr, len) == 0);
}

/* Whether names can be compared as they stand, in words. */
static inline bool is_plain_search(const ew__json_doc *doc, ew_str name) {
    return !doc->escaped_keys && name.len <= SHORT_NAME;
}

static inline bool node_is(const ew__json_doc *doc, const ew__json_node *node, ew_str name, bool plain) {
    const char *key = doc->text.ptr + node->key;
    return plain ? node->key_len == name.len && same_short(key, name.ptr, name.len)
                 : ew__json_name_is(ew__str(key, node->key_len), name);
}

/*
 * Along the values of one parent, from `node` on: the first of that name; with ret_repeated it also looks for a
 * second.
 */
EW__JSON_INLINE const ew__json_node *find_nodes(const ew__json_doc *doc, const ew__json_node *node, ew_str name,
                                                bool *ret_repeated, bool plain) {
    const ew__json_node *found = NULL;
    for (;; node = &doc->nodes[node->next]) {
        if (node_is(doc, node, name, plain)) {
            if (found != NULL) {
                *ret_repeated = true;
                return found;
            }
            found = node;
            if (ret_repeated == NULL) {
                return found;
            }
        }
        if (node->next == 0) {
            return found;
        }
    }
}

static inline ew_str value_of(const ew__json_doc *doc, const ew__json_node *node) {
    return node != NULL ? ew__str(doc->text.ptr + node->value, node->value_len) : nothing;
}

/* Names with escapes, long names, more members than nodes. */
static ew_str find_slowly(const ew__json_doc *doc, ew_str name, bool *ret_repeated) {
    const ew__json_node *last = &doc->nodes[1];
    ew_str found = value_of(doc, find_nodes(doc, last, name, ret_repeated, false));
    if (doc->root_complete || (found.ptr != NULL && (ret_repeated == NULL || *ret_repeated))) {
        return found;
    }
    while (last->next != 0) {
        last = &doc->nodes[last->next];
    }
    size_t start = (size_t)(doc->root.ptr - doc->text.ptr);
    return find_from(doc->root, (ew_json_iter){.offset_ = last->value + last->value_len - start}, name, found,
                     ret_repeated);
}

ew_str ew__json_find(const ew__json_doc *doc, ew_str name, bool *ret_repeated) {
    if (ret_repeated != NULL) {
        *ret_repeated = false;
    }
    if (doc->type != EW_JSON_OBJECT || doc->n_nodes < 2) {
        return nothing;
    }
    if (EW__LIKELY(doc->root_complete && is_plain_search(doc, name))) {
        return value_of(doc, find_nodes(doc, &doc->nodes[1], name, ret_repeated, true));
    }
    return find_slowly(doc, name, ret_repeated);
}

/* The node of level 1 whose value begins at `at`, or NULL. */
static inline const ew__json_node *node_at(const ew__json_doc *doc, const char *at) {
    const ew__json_node *node = &doc->nodes[1];
    while (doc->text.ptr + node->value != at) {
        if (node->next == 0) {
            return NULL;
        }
        node = &doc->nodes[node->next];
    }
    return node;
}

ew_str ew__json_find_under(const ew__json_doc *doc, ew_str parent, ew_str name, bool *ret_repeated) {
    bool noted = doc->complete && doc->n_nodes > 1 && parent.len != 0 && is_plain_search(doc, name);
    const ew__json_node *node = noted ? node_at(doc, parent.ptr) : NULL;
    if (node == NULL) {
        return ew__json_find_in(parent, name, ret_repeated);
    }
    if (ret_repeated != NULL) {
        *ret_repeated = false;
    }
    bool members = node->type == EW_JSON_OBJECT && node + 1 < doc->nodes + doc->n_nodes && node[1].level == 2;
    return members ? value_of(doc, find_nodes(doc, node + 1, name, ret_repeated, true)) : nothing;
}

/* The first value of `object` that was noted; NULL: there is none. *ret_noted: whether that is all there is to know. */
static const ew__json_node *first_noted(const ew__json_doc *doc, ew_str object, bool *ret_noted) {
    *ret_noted = true;
    if (doc->n_nodes < 2) {
        return NULL;
    }
    if (object.ptr == doc->root.ptr) {
        *ret_noted = doc->root_complete && !doc->escaped_keys;
        return &doc->nodes[1];
    }
    const ew__json_node *node = doc->complete && !doc->escaped_keys ? node_at(doc, object.ptr) : NULL;
    *ret_noted = node != NULL;
    return node != NULL && node + 1 < doc->nodes + doc->n_nodes && node[1].level == 2 ? node + 1 : NULL;
}

bool ew__json_members(const ew__json_doc *doc, ew_str object, const ew_str *names, size_t n, ew_str *values) {
    bool clean = true, repeated, noted;
    memset(values, 0, n * sizeof *values);
    if (object.len == 0 || object.ptr[0] != '{') {
        return true;
    }
    const ew__json_node *node = first_noted(doc, object, &noted);
    for (size_t k = 0; !noted && k < n; k++) {
        values[k] = ew__json_find_in(object, names[k], &repeated);
        clean = clean && !repeated;
    }
    size_t expected = 0; /* members mostly stand in the order in which they are asked for */
    for (; noted && node != NULL; node = node->next != 0 ? &doc->nodes[node->next] : NULL) {
        for (size_t i = 0; i < n; i++) {
            size_t k = expected + i < n ? expected + i : expected + i - n;
            if (!same_name(doc->text.ptr + node->key, node->key_len, names[k])) {
                continue;
            }
            clean = clean && values[k].ptr == NULL;
            if (values[k].ptr == NULL) {
                values[k] = value_of(doc, node);
            }
            expected = k + 1 < n ? k + 1 : 0;
            break;
        }
    }
    return clean;
}

/* ---- JSON pointers ---- */

/* One reference token of a pointer, ~0 and ~1 still in it. False when a tilde stands for nothing. */
static bool token_is_fine(ew_str token) {
    for (size_t i = 0; i < token.len; i++) {
        if (token.ptr[i] == '~' && (i + 1 == token.len || (token.ptr[i + 1] != '0' && token.ptr[i + 1] != '1'))) {
            return false;
        }
    }
    return true;
}

/* Whether the inside of a name in the text is what the token means, both decoded on the way. */
static bool name_is_token(ew_str raw, ew_str token) {
    const char *at = raw.ptr, *end = ew__json_end(raw);
    size_t done = 0;
    while (at < end) {
        char utf8[4];
        size_t n = ew__json_utf8_put(ew__json_char(&at, end), utf8);
        for (size_t i = 0; i < n; i++, done++) {
            if (done == token.len) {
                return false;
            }
            char c = token.ptr[done];
            if (c == '~') {
                c = token.ptr[++done] == '1' ? '/' : '~';
            }
            if (c != utf8[i]) {
                return false;
            }
        }
    }
    return done == token.len;
}

static ew_str member_at(ew_str object, ew_str token) {
    if (memchr(token.ptr, '~', token.len) == NULL) {
        return ew__json_find_in(object, token, NULL);
    }
    ew_json_iter it = {.offset_ = 0};
    while (ew_json_next(object, &it)) {
        if (name_is_token(inside_quotes(it.key), token)) {
            return it.value;
        }
    }
    return nothing;
}

static ew_str element_at(ew_str array, ew_str token) {
    uint64_t index = 0;
    if ((token.len > 1 && token.ptr[0] == '0') || !ew__u64_parse(token, &index)) {
        return nothing;
    }
    ew_json_iter it = {.offset_ = 0};
    while (ew_json_next(array, &it)) {
        if (index-- == 0) {
            return it.value;
        }
    }
    return nothing;
}

/* The member or element of a container that a token names; ptr NULL: there is none, or it is not a container. */
static ew_str child_at(ew_str container, ew_str token) {
    ew_json_type type = token_is_fine(token) ? ew_json_typeof(container) : EW_JSON_NONE;
    return type == EW_JSON_OBJECT  ? member_at(container, token)
           : type == EW_JSON_ARRAY ? element_at(container, token)
                                   : nothing;
}

ew_str ew__json_follow(ew_str json, const char **pointer) {
    const char *end = ew__json_end(json), *at = ew__json_space(json.ptr, end);
    ew_str value = at == end ? nothing : value_at(at, end);
    while (value.ptr != NULL && **pointer == '/') {
        ew_str token = ew__str(*pointer + 1, strcspn(*pointer + 1, "/"));
        ew_str child = child_at(value, token);
        if (child.ptr == NULL) {
            break;
        }
        value = child;
        *pointer = token.ptr + token.len;
    }
    return value;
}

ew_str ew_json_get(ew_str json, const char *pointer) {
    if (pointer == NULL) {
        return nothing;
    }
    ew_str value = ew__json_follow(json, &pointer);
    return *pointer == '\0' ? value : nothing;
}
