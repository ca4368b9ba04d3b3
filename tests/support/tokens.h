/*
 * tests/support/tokens.h: a fixed list of tokens for tests of access control; each has one purpose.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_TOKENS_H
#define EW_TESTS_TOKENS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "call/access.h"

/* In the order of `access_tokens`; the first two are never in the list. */
enum {
    TOKEN_NONE,
    TOKEN_WRONG,
    TOKEN_EXPIRED,
    TOKEN_RIGHT,   /* everything */
    TOKEN_ACTION,  /* one action that the tests do not call */
    TOKEN_RUNTIME, /* the reflection wire only */
    N_TOKENS
};

#define ACCESS_EXPIRES_MS 5000 /* of TOKEN_EXPIRED, wall clock */

static const char *const access_tokens[N_TOKENS] = {NULL,        "ewt_wrong",  "ewt_expired",
                                                    "ewt_right", "ewt_action", "ewt_runtime"};

static inline void access_add(ew__buf *text, int which, int64_t expires, const char *action, const char *wire) {
    ew_str actions[1] = {ew_str_from(action ? action : "")}, wires[1] = {ew_str_from(wire ? wire : "")};
    ew__token token = {.name = ew_str_from(access_tokens[which] + 4),
                       .created_ms = 1,
                       .expires_ms = expires,
                       .actions = actions,
                       .n_actions = action ? 1 : 0,
                       .wires = wires,
                       .n_wires = wire ? 1 : 0};
    ew__sha256_of(access_tokens[which], strlen(access_tokens[which]), token.digest);
    ew__token_write(text, &token);
}

/* The list; without TOKEN_RIGHT if that is revoked. */
static inline ew__tokens *access_list(const ew_env *env, bool revoked) {
    ew__buf text;
    ew__tokens *tokens = NULL;
    unsigned line;
    const char *problem;
    ew__buf_init(&text, env, 100000);
    access_add(&text, TOKEN_EXPIRED, ACCESS_EXPIRES_MS, NULL, NULL);
    if (!revoked)
        access_add(&text, TOKEN_RIGHT, INT64_MAX, NULL, NULL);
    access_add(&text, TOKEN_ACTION, INT64_MAX, "/other/action", NULL);
    access_add(&text, TOKEN_RUNTIME, INT64_MAX, NULL, "reflection");
    assert_int_equal(ew__tokens_parse(env, ew__buf_view(&text), &tokens, &line, &problem), EW_OK);
    ew__buf_done(&text);
    return tokens;
}

#endif
