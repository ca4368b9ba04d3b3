/*
 * fuzz/fuzz_json.c: any bytes through both scanners and the plain checker, which must agree; what is valid must stay
 * valid minified and in ASCII, all of it can be walked, and a skim finds the members that the parser finds. The first
 * byte of an input is text like the rest.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "call/stack_trace.h"
#include "json/scan.h"
#include "json/skim.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds) {
        abort();
    }
}

/* Visits every value down to the leaves; the depth of valid text is limited, so the recursion is. */
static size_t walk(ew_str value) {
    ew_json_iter it = {{NULL, 0}, {NULL, 0}, 0};
    size_t n = 1;
    while (ew_json_next(value, &it)) {
        must(ew_json_check(it.value, NULL) == EW_OK);
        must(it.value.ptr > value.ptr && it.value.ptr + it.value.len < value.ptr + value.len);
        n += walk(it.value);
    }
    return n;
}

static void same_docs(const ew__json_doc *a, const ew__json_doc *b) {
    must(a->n_nodes == b->n_nodes && a->complete == b->complete && a->root_complete == b->root_complete);
    must(a->has_newline == b->has_newline && a->escaped_keys == b->escaped_keys && a->type == b->type);
    for (unsigned i = 1; i < a->n_nodes; i++) {
        const ew__json_node *x = &a->nodes[i], *y = &b->nodes[i];
        must(x->key == y->key && x->key_len == y->key_len && x->value == y->value && x->value_len == y->value_len);
        must(x->next == y->next && x->type == y->type && x->level == y->level);
        must(ew_json_check(ew__str(a->text.ptr + x->value, x->value_len), NULL) == EW_OK);
    }
}

static void change_and_check(ew_str text) {
    ew__buf out;
    ew__buf_init(&out, ew_env_default(), SIZE_MAX / 2);
    must(ew__json_minify(&out, text) == EW_OK && ew__json_validate(ew__buf_view(&out), NULL) == EW_OK);
    must(!ew__json_has_newline(ew__buf_view(&out)) && out.len <= text.len);
    size_t values = walk(ew_json_get(ew__buf_view(&out), ""));
    ew__buf_clear(&out);
    must(ew__json_write_ascii(&out, text) == EW_OK && ew__json_validate(ew__buf_view(&out), NULL) == EW_OK);
    for (size_t i = 0; i < out.len; i++) {
        must((unsigned char)out.ptr[i] < 0x7f);
    }
    must(walk(ew_json_get(ew__buf_view(&out), "")) == values);
    ew__buf_done(&out);
}

/* The member as a skim reports it: a scalar as written, the bracket of a container, nothing if it is repeated. */
static void same_member(ew_str object, const char *name, ew_str skimmed) {
    bool repeated = false;
    ew_str value = ew__json_find_in(object, ew_str_from(name), &repeated);
    ew_json_type type = value.len ? ew_json_typeof(value) : EW_JSON_NULL;
    if (repeated) {
        value.len = 0;
    } else if (type == EW_JSON_OBJECT || type == EW_JSON_ARRAY) {
        value.len = 1;
    }
    must(value.len > EW__SKIM_ROOM / 4 || ew__str_is(skimmed, value));
}

/* doc: what the parser made of the text, which is valid. Names with escapes are not found by a skim. */
static void skim_agrees(ew_str text, const ew__json_doc *doc) {
    static const ew__skim_name names[] = {{NULL, "id"}, {NULL, "a"}, {"payload", "id"}};
    for (size_t cut = 0; cut <= text.len; cut += text.len / 3 + 1) {
        ew__skim skim;
        ew__skim_init(&skim, names, 3);
        size_t used = ew__skim_feed(&skim, ew__str(text.ptr, cut));
        used += ew__skim_feed(&skim, ew__str(text.ptr + cut, text.len - cut));
        bool container = doc->type == EW_JSON_OBJECT || doc->type == EW_JSON_ARRAY;
        must(skim.done == container && skim.stray == !container && used <= text.len);
        if (doc->type == EW_JSON_OBJECT && !doc->escaped_keys) {
            same_member(doc->root, "id", ew__skim_value(&skim, 0));
            same_member(doc->root, "a", ew__skim_value(&skim, 1));
        }
    }
}

/* What is left without stack traces is valid, and has none. */
static void remove_stack_traces(ew_str text) {
    char room[512];
    ew__arena arena;
    ew_str once = text;
    ew__arena_init(&arena, ew_env_default(), room, sizeof room);
    ew__stack_trace_remove(&arena, ew_env_default(), &once);
    must(once.len <= text.len && (once.len == 0 || ew__json_validate(once, NULL) == EW_OK));
    ew_str twice = once;
    ew__stack_trace_remove(&arena, ew_env_default(), &twice);
    must(twice.ptr == once.ptr && twice.len == once.len);
    ew__arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static ew__json_doc best, portable;
    ew_str text = ew__str(data, size);
    size_t position = 0;
    ew_err err = ew__json_locate(text, EW_JSON_DEPTH, &position);
    must(ew__json_parse(&best, text) == err && ew__json_parse_portable(&portable, text) == err);
    size_t payload_at = 0;
    ew_err payload = ew__json_locate(text, EW_PAYLOAD_DEPTH, &payload_at);
    must(ew__json_scan_portable(NULL, text, EW_JSON_DEPTH) == (err == EW_OK));
    must(ew__json_validate(text, NULL) == payload && (err != EW_OK || best.deep == (payload == EW_ELIMIT)));
    if (payload == EW_OK) {
        same_docs(&best, &portable);
        skim_agrees(text, &best);
        remove_stack_traces(text);
        change_and_check(text);
    } else if (err != EW_OK) {
        must(best.error_at == position && portable.error_at == position && position <= size);
    }
    bool repeated; /* readers expect valid text, but must stay inside any */
    ew__json_find_in(text, EW_STR("a"), &repeated);
    ew_json_get(text, "/a~1b/0/c");
    double number;
    (void)ew_json_double(ew_json_get(text, "/0"), &number);
    return 0;
}
