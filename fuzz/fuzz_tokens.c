/*
 * fuzz/fuzz_tokens.c: the file of tokens, any bytes. What is read keeps the limits, each token is found
 * by its digest until it expires, and a list that is written again is read as the same list.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/access.h"
#include <stdlib.h>

static void check(bool holds) {
    if (!holds)
        abort();
}

static bool same(const ew__token *a, const ew__token *b) {
    bool equal = ew__str_is(a->name, b->name) && a->expires_ms == b->expires_ms && a->n_actions == b->n_actions &&
                 a->n_wires == b->n_wires && memcmp(a->digest, b->digest, sizeof a->digest) == 0;
    for (size_t i = 0; equal && i < a->n_actions; i++)
        equal = ew__str_is(a->actions[i], b->actions[i]);
    return equal;
}

static void check_token(const ew__tokens *tokens, const ew__token *token) {
    check(token->name.len > 0);
    check(ew__tokens_find(tokens, token->digest, INT64_MAX) == NULL);
    for (size_t i = 0; i < token->n_actions; i++) {
        check(token->actions[i].len > 0);
        check(token->actions[i].len > 1000 || ew__pattern_fits(token->actions[i], token->actions[i]));
    }
}

/* Texts with characters that are written as escapes are not read again: the file has none. */
static void check_again(const ew_env *env, const ew__tokens *tokens) {
    ew__buf text;
    ew__tokens *again = NULL;
    unsigned line;
    const char *problem;
    ew__buf_init(&text, env, SIZE_MAX / 2);
    for (size_t i = 0; i < tokens->n; i++)
        ew__token_write(&text, &tokens->list[i]);
    if (text.err == EW_OK && !memchr(text.ptr ? text.ptr : "", '\\', text.len)) {
        check(ew__tokens_parse(env, ew__buf_view(&text), &again, &line, &problem) == EW_OK);
        check(again->n == tokens->n);
        for (size_t i = 0; i < tokens->n; i++)
            check(tokens->list[i].expires_ms < 0 || same(&tokens->list[i], &again->list[i]));
        ew__tokens_unref(again);
    }
    ew__buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const ew_env *env = ew_env_default();
    ew__tokens *tokens = NULL;
    unsigned line = 0;
    const char *problem = NULL;
    ew_err err = ew__tokens_parse(env, ew__str(data, size), &tokens, &line, &problem);
    check(err == EW_OK || err == EW_ESYNTAX);
    check((err == EW_OK) == (tokens != NULL));
    if (err != EW_OK) {
        check(problem != NULL);
        return 0;
    }
    check(tokens->n <= EW__TOKENS_MAX);
    for (size_t i = 0; i < tokens->n; i++)
        check_token(tokens, &tokens->list[i]);
    check_again(env, tokens);
    ew__tokens_unref(tokens);
    return 0;
}
