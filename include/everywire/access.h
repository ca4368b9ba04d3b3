/*
 * everywire/access.h: bearer tokens: who may call which actions, over which wires. A token is 256 random bits as text,
 * shown once when it is made; the file of tokens, of mode 0600, keeps its SHA-256 digest and what it allows. A program
 * that listens beyond this machine asks for them (ew_app_options.tokens), a client shows one (ew_client_options.token).
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_ACCESS_H
#define EVERYWIRE_ACCESS_H

#include <everywire/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EW_TOKEN_SIZE 72 /* bytes that hold a token and its NUL */

/* What a new token is to allow. Everything is optional; zero means the default. */
typedef struct ew_token_options {
    const char *name; /* what it is listed and revoked by: letters, digits, '.', '_', '-'; NULL: one is made up */
    /*
     * Keys of actions, or patterns in which * stands for any text ("/flow/" and a star), NULL-ended; NULL: all.
     * What is no action has a key, too: "/metrics", the paths of "/jobs", and "/runtimes" for programs that dial in to offer theirs.
     */
    const char *const *actions;
    const char *const *wires; /* "http" and so on, NULL-ended; NULL: all */
    uint64_t lasts_ms;        /* from now; 0: until it is revoked */
} ew_token_options;

/* One token of a list. Borrowed for the callback. */
typedef struct ew_token_info {
    ew_str name;
    const ew_str *actions; /* none: all */
    size_t n_actions;
    const ew_str *wires; /* none: all */
    size_t n_wires;
    int64_t created_ms; /* since 1970 */
    int64_t expires_ms; /* INT64_MAX: never */
    bool expired;
} ew_token_info;

/*
 * Makes a token and adds it to a file, which is made if it is missing (with its folders, for this user only). file NULL:
 * EVERYWIRE_TOKENS, else `tokens` in the folder of everywire's state (XDG_STATE_HOME, ~/.local/state). token gets the
 * text, which nobody can find out afterwards. EW_OK; EW_EINVAL: a name, pattern or wire is none; EW_EEXISTS: the name is
 * taken; EW_EACCESS: others can read or write the file; EW_ESYNTAX: it holds something else; EW_ELIMIT, EW_EIO,
 * EW_ENOMEM. problem, if not NULL, gets a line for people. Programs that run see the new token within a second. Any
 * thread; several programs may do it at once.
 */
EW_API ew_err ew_token_new(const char *file, const ew_token_options *options, char token[EW_TOKEN_SIZE], char *problem,
                           size_t problem_size);

/* Tells each token of a file, in order. A missing file has none. Errors as ew_token_new. Any thread. */
EW_API ew_err ew_token_list(const char *file, void (*each)(const ew_token_info *token, void *ud), void *ud,
                            char *problem, size_t problem_size);

/*
 * Takes a token out of a file: programs that run refuse it within a second, and within another second
 * they close the connections that were opened with it. EW_OK; EW_ENOTFOUND: there is none of that
 * name; else as ew_token_new. Any thread.
 */
EW_API ew_err ew_token_revoke(const char *file, const char *name, char *problem, size_t problem_size);

#ifdef __cplusplus
}
#endif
#endif
