/*
 * api/tokens.c: the file of tokens (everywire/access.h): checks of arguments, then the gateway.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/tokens.h"

ew_err ew_token_new(const char *file, const ew_token_options *options, char token[EW_TOKEN_SIZE], char *problem,
                    size_t problem_size) {
    return token ? ew__token_new(file, options, token, problem, problem_size) : EW_EINVAL;
}

ew_err ew_token_list(const char *file, void (*each)(const ew_token_info *token, void *ud), void *ud, char *problem,
                     size_t problem_size) {
    return each ? ew__token_list(file, each, ud, problem, problem_size) : EW_EINVAL;
}

ew_err ew_token_revoke(const char *file, const char *name, char *problem, size_t problem_size) {
    return name ? ew__token_revoke(file, name, problem, problem_size) : EW_EINVAL;
}
