/*
 * call/tokens.c: the list of tokens as text and in memory; which of them a digest is, and what its patterns mean.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/secret.h"
#include "base/when.h"
#include "call/access.h"
#include "json/json.h"

#define NONE ((ew_str){NULL, 0})

/* ---- life ---- */

static ew__tokens *new_list(const ew_env *env, size_t n) {
    ew__tokens *tokens = ew__zalloc(env, sizeof *tokens);
    if (!tokens)
        return NULL;
    atomic_init(&tokens->refs, 1);
    tokens->env = env;
    ew__arena_init(&tokens->arena, env, NULL, 0);
    tokens->list = ew__arena_alloc(&tokens->arena, (n ? n : 1) * sizeof *tokens->list);
    if (tokens->list)
        return tokens;
    ew__tokens_unref(tokens);
    return NULL;
}

ew__tokens *ew__tokens_ref(ew__tokens *tokens) {
    atomic_fetch_add_explicit(&tokens->refs, 1, memory_order_relaxed);
    return tokens;
}

void ew__tokens_unref(ew__tokens *tokens) {
    if (!tokens || atomic_fetch_sub_explicit(&tokens->refs, 1, memory_order_acq_rel) != 1)
        return;
    ew__arena_done(&tokens->arena);
    ew__free(tokens->env, tokens, sizeof *tokens);
}

ew_err ew__tokens_one(const ew_env *env, ew_str token, ew__tokens **ret) {
    ew__tokens *tokens = new_list(env, 1);
    if (!tokens)
        return EW_ENOMEM;
    tokens->list[0] = (ew__token){.expires_ms = INT64_MAX};
    ew__sha256_of(token.ptr, token.len, tokens->list[0].digest);
    tokens->n = 1;
    *ret = tokens;
    return EW_OK;
}

/* ---- reading ---- */

/* A text without escapes: what we write has none. */
static ew_str plain_text(ew_str json) {
    ew_str text = ew_json_typeof(json) == EW_JSON_STRING ? ew__str(json.ptr + 1, json.len - 2) : NONE;
    return text.len && memchr(text.ptr, '\\', text.len) ? NONE : text;
}

static const char *read_texts(ew__arena *arena, ew_str array, const ew_str **ret, size_t *ret_n) {
    ew_json_iter it = {.offset_ = 0};
    size_t n = 0;
    if (array.len == 0)
        return NULL;
    if (ew_json_typeof(array) != EW_JSON_ARRAY)
        return "actions and wires are lists of texts";
    while (ew_json_next(array, &it))
        n++;
    ew_str *texts = n ? ew__arena_alloc(arena, n * sizeof *texts) : NULL;
    if (n && !texts)
        return "out of memory";
    it = (ew_json_iter){.offset_ = 0};
    for (size_t i = 0; ew_json_next(array, &it); i++) {
        ew_str text = plain_text(it.value);
        if (text.len == 0)
            return "actions and wires are lists of texts";
        if (ew__arena_str(arena, text, &texts[i]) != EW_OK)
            return "out of memory";
    }
    *ret = texts;
    *ret_n = n;
    return NULL;
}

static const char *read_time(ew_str line, const char *name, int64_t none, int64_t *ret) {
    ew_str member = ew_json_member(line, ew_str_from(name));
    *ret = none;
    if (member.len == 0)
        return NULL;
    return ew__when_parse(plain_text(member), ret) ? NULL
                                                   : "created and expires are times such as 2026-03-01T10:00:00Z";
}

static const char *read_token(ew__arena *arena, ew_str line, ew__token *token) {
    ew__json_doc doc;
    *token = (ew__token){.name = NONE};
    if (ew__json_parse(&doc, line) != EW_OK || doc.type != EW_JSON_OBJECT)
        return "not a JSON object";
    ew_str name = plain_text(ew_json_member(line, EW_STR("name")));
    if (!ew__unhex(plain_text(ew_json_member(line, EW_STR("digest"))), token->digest, sizeof token->digest))
        return "digest is no SHA-256 in hex digits";
    if (name.len == 0)
        return "the name is missing";
    if (ew__arena_str(arena, name, &token->name) != EW_OK)
        return "out of memory";
    const char *problem = read_time(line, "created", 0, &token->created_ms);
    if (!problem)
        problem = read_time(line, "expires", INT64_MAX, &token->expires_ms);
    if (!problem)
        problem = read_texts(arena, ew_json_member(line, EW_STR("actions")), &token->actions, &token->n_actions);
    if (!problem)
        problem = read_texts(arena, ew_json_member(line, EW_STR("wires")), &token->wires, &token->n_wires);
    return problem;
}

/* Takes one line off the front. */
static ew_str next_line(ew_str *text) {
    const char *end = memchr(text->ptr, '\n', text->len);
    ew_str line = ew__str(text->ptr, end ? (size_t)(end - text->ptr) : text->len);
    size_t skip = line.len + (end ? 1 : 0);
    *text = ew__str(text->ptr + skip, text->len - skip);
    return ew__str_trim(line);
}

static size_t count_lines(ew_str text) {
    size_t n = 0;
    while (text.len)
        n += next_line(&text).len > 0;
    return n;
}

ew_err ew__tokens_parse(const ew_env *env, ew_str text, ew__tokens **ret, unsigned *ret_line,
                        const char **ret_problem) {
    size_t n = count_lines(text);
    *ret_line = 0;
    *ret_problem = "more than 1024 tokens";
    if (n > EW__TOKENS_MAX)
        return EW_ESYNTAX;
    ew__tokens *tokens = new_list(env, n);
    const char *problem = NULL;
    if (!tokens)
        return EW_ENOMEM;
    while (text.len && !problem) {
        ew_str line = next_line(&text);
        ++*ret_line;
        if (line.len)
            problem = read_token(&tokens->arena, line, &tokens->list[tokens->n++]);
    }
    if (problem) {
        ew__tokens_unref(tokens);
        *ret_problem = problem;
        return EW_ESYNTAX;
    }
    *ret = tokens;
    return EW_OK;
}

/* ---- writing ---- */

static void write_texts(ew__buf *out, const char *name, const ew_str *texts, size_t n) {
    if (n == 0)
        return;
    (void)ew__json_format(out, ",%Q:[", name);
    for (size_t i = 0; i < n; i++)
        (void)ew__json_format(out, "%s%q", i ? "," : "", texts[i]);
    ew__buf_char(out, ']');
}

static void write_time(ew__buf *out, const char *name, int64_t ms) {
    char text[EW__WHEN_LEN];
    ew__when_write(ms > 0 ? (uint64_t)ms : 0, text);
    (void)ew__json_format(out, ",%Q:%q", name, ew__str(text, sizeof text));
}

void ew__token_write(ew__buf *out, const ew__token *token) {
    char digest[2 * EW__SHA256_SIZE];
    ew__hex(token->digest, sizeof token->digest, digest);
    (void)ew__json_format(out, "{\"name\":%q,\"digest\":%q", token->name, ew__str(digest, sizeof digest));
    write_time(out, "created", token->created_ms);
    if (token->expires_ms != INT64_MAX)
        write_time(out, "expires", token->expires_ms);
    write_texts(out, "actions", token->actions, token->n_actions);
    write_texts(out, "wires", token->wires, token->n_wires);
    ew__buf_cstr(out, "}\n");
}

/* ---- asking ---- */

/* Digests of 256 random bits: no two tokens have the same. */
const ew__token *ew__tokens_find(const ew__tokens *tokens, const uint8_t digest[EW__SHA256_SIZE], int64_t now_ms) {
    const ew__token *found = NULL;
    for (size_t i = 0; tokens && i < tokens->n; i++)
        if (ew__secret_same(tokens->list[i].digest, digest, EW__SHA256_SIZE))
            found = &tokens->list[i];
    return found && found->expires_ms > now_ms ? found : NULL;
}

/* The last star seen takes one byte more whenever the rest does not fit: no recursion, at most product of both lengths. */
bool ew__pattern_fits(ew_str pattern, ew_str key) {
    size_t p = 0, k = 0, star = SIZE_MAX, from = 0;
    while (k < key.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            from = k;
        } else if (p < pattern.len && pattern.ptr[p] == key.ptr[k]) {
            p++;
            k++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            k = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}
