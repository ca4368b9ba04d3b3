/*
 * fuzz/fuzz_json.c: any bytes through both scanners and the plain checker, which must agree; what is valid must stay
 * valid minified and in ASCII, and all of it can be walked. The first byte of an input is text like the rest.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "json/scan.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static ew__json_doc best, portable;
    ew_str text = ew__str(data, size);
    size_t position = 0;
    ew_err err = ew__json_locate(text, &position);
    must(ew__json_parse(&best, text) == err && ew__json_parse_portable(&portable, text) == err);
    must(ew__json_scan_portable(NULL, text, EW_JSON_DEPTH) == (err == EW_OK) && ew__json_validate(text, NULL) == err);
    if (err == EW_OK) {
        same_docs(&best, &portable);
        change_and_check(text);
    } else {
        must(best.error_at == position && portable.error_at == position && position <= size);
    }
    bool repeated; /* readers expect valid text, but must stay inside any */
    ew__json_find_in(text, EW_STR("a"), &repeated);
    ew_json_get(text, "/a~1b/0/c");
    ew_json_get_double(text, "/0", 0);
    return 0;
}
