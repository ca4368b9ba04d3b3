/*
 * gateway/tokens.h: the file of tokens, read.
 */
#ifndef EW_GATEWAY_TOKENS_H
#define EW_GATEWAY_TOKENS_H

#include "call/access.h"
#include <everywire/access.h>
#include <limits.h>
#include <sys/stat.h>

/* The file that is meant when none is named: EVERYWIRE_TOKENS, or the usual one. EW_OK, or EW_EINVAL and a line. */
ew_err ew__tokens_usual(char out[PATH_MAX], char *problem, size_t problem_size);

/*
 * Reads a file that nobody else can read or write, in a folder that nobody else can write. *seen, if not NULL, is what
 * it was like. EW_OK; EW_ENOTFOUND; EW_EACCESS, EW_ESYNTAX, EW_EIO, EW_ENOMEM: problem gets a line for people.
 */
ew_err ew__tokens_load(const ew_env *env, const char *path, ew__tokens **ret, struct stat *seen, char *problem,
                       size_t problem_size);

/* The functions of the public headers, once src/api has checked their arguments. */
ew_err ew__token_new(const char *file, const ew_token_options *options, char token[EW_TOKEN_SIZE], char *problem,
                     size_t problem_size);
ew_err ew__token_list(const char *file, void (*each)(const ew_token_info *token, void *ud), void *ud, char *problem,
                      size_t problem_size);
ew_err ew__token_revoke(const char *file, const char *name, char *problem, size_t problem_size);

#endif
