/*
 * tests/unit/wire/principals.h: access control for the serving side of a rig, with three tokens: ADA and BOB may do
 * everything, LOW may call /test/hold only.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_PRINCIPALS_H
#define EW_TESTS_PRINCIPALS_H

#include "support/guarded_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ADA "ewt_ada"
#define BOB "ewt_bob"
#define LOW "ewt_low"

static inline void put_token(ew__buf *out, const char *text, const ew_str *actions, size_t n_actions) {
    ew__token token = {.name = ew_str_from(text + 4),
                       .created_ms = 1,
                       .expires_ms = INT64_MAX,
                       .actions = actions,
                       .n_actions = n_actions};
    ew__sha256_of(text, strlen(text), token.digest);
    ew__token_write(out, &token);
}

static inline ew__tokens *principals(void) {
    const ew_env *env = ew_env_default();
    const ew_str hold = EW_STR("/test/hold");
    ew__tokens *tokens = NULL;
    unsigned line;
    const char *problem;
    ew__buf text;
    ew__buf_init(&text, env, 10000);
    put_token(&text, ADA, NULL, 0);
    put_token(&text, BOB, NULL, 0);
    put_token(&text, LOW, &hold, 1);
    assert_int_equal(ew__tokens_parse(env, ew__buf_view(&text), &tokens, &line, &problem), EW_OK);
    ew__buf_done(&text);
    return tokens;
}

static inline ew__principal principal_with(const char *token) {
    ew__principal principal = {.kind = EW__WHO_TOKEN};
    ew__sha256_of(token, strlen(token), principal.digest);
    return principal;
}

#endif
