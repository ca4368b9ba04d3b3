/*
 * tests/unit/json/verdict.h: the same text through every scanner and the byte by byte checker, which must all agree.
 * The text lies in a block of exactly its size, so that AddressSanitizer sees a read outside it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_JSON_VERDICT_H
#define EW_TESTS_JSON_VERDICT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "json/scan.h"

static inline bool docs_equal(const ew__json_doc *a, const ew__json_doc *b) {
    bool same = a->type == b->type && a->n_nodes == b->n_nodes && a->complete == b->complete &&
                a->root_complete == b->root_complete && a->has_newline == b->has_newline &&
                a->escaped_keys == b->escaped_keys && a->root.ptr == b->root.ptr && a->root.len == b->root.len;
    for (unsigned i = 1; same && i < a->n_nodes; i++) {
        const ew__json_node *x = &a->nodes[i], *y = &b->nodes[i];
        same = x->key == y->key && x->key_len == y->key_len && x->value == y->value && x->value_len == y->value_len &&
               x->next == y->next && x->type == y->type && x->level == y->level;
    }
    return same;
}

/* Shows the text that the scanners disagree about, then fails. */
static inline void disagree(const char *what, ew_str text) {
    fprintf(stderr, "%s on %zu bytes: ", what, text.len);
    for (size_t i = 0; i < text.len && i < 400; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        fprintf(stderr, c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", c);
    }
    fprintf(stderr, "\n");
    fail();
}

/*
 * The verdict on `shift` spaces and then the bytes; ret_position, if not NULL, gets where it failed (without the
 * spaces).
 */
static inline ew_err verdict(ew_str bytes, size_t shift, size_t *ret_position) {
    static ew__json_doc best, portable; /* 1 KiB each; static so that stale contents show */
    size_t len = shift + bytes.len, position = 0, other = 0;
    char *copy = malloc(len > 0 ? len : 1);
    assert_non_null(copy);
    memset(copy, ' ', shift);
    if (bytes.len > 0) {
        memcpy(copy + shift, bytes.ptr, bytes.len);
    }
    ew_str text = {copy, len};
    memset(&best, 0xa5, sizeof best);
    memset(&portable, 0x5a, sizeof portable);
    ew_err err = ew__json_locate(text, EW_JSON_DEPTH, &position);
    if (ew__json_parse(&best, text) != err || ew__json_parse_portable(&portable, text) != err) {
        disagree("the scanners and the checker differ", text);
    }
    size_t payload_at = 0;
    ew_err payload = ew__json_locate(text, EW_PAYLOAD_DEPTH, &payload_at);
    if (ew__json_validate(text, &other) != payload || (payload != EW_OK && other != payload_at) ||
        (err == EW_OK && best.deep != (payload == EW_ELIMIT)) || ew__json_is_payload(text) != (payload == EW_OK) ||
        ew__json_scan_portable(NULL, text, EW_JSON_DEPTH) != (err == EW_OK)) {
        disagree("validation alone differs", text);
    }
    if (err == EW_OK ? !docs_equal(&best, &portable) : best.error_at != position || portable.error_at != position) {
        disagree("what was noted differs", text);
    }
    free(copy);
    if (ret_position != NULL) {
        *ret_position = position - shift;
    }
    return err;
}

/* Every place that the text can have in a block. */
static inline ew_err verdict_shifted(ew_str bytes) {
    ew_err err = verdict(bytes, 0, NULL);
    for (size_t shift = 1; shift < 64; shift++) {
        if (verdict(bytes, shift, NULL) != err) {
            disagree("a shift changes the verdict", bytes);
        }
    }
    return err;
}

#endif
