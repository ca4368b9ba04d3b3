/*
 * client/own_token.c: see own_token.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "client/own_token.h"
#include "base/util.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A token contains only bytes that are valid in a header field, a URL and a JSON string. */
static bool token_ok(ew_str token) {
    for (size_t i = 0; i < token.len; i++) {
        if ((unsigned char)token.ptr[i] <= 0x20 || (unsigned char)token.ptr[i] >= 0x7f || token.ptr[i] == '"' ||
            token.ptr[i] == '\\' || token.ptr[i] == ',') {
            return false;
        }
    }
    return token.len > 0;
}

/* The first line of a file that no other user can read. */
static const char *read_secret(const char *path, char out[EW__OWN_TOKEN_SIZE]) {
    struct stat at;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return "the file with the token cannot be read";
    }
    ssize_t n =
        fstat(fd, &at) == 0 && S_ISREG(at.st_mode) && (at.st_mode & 077) ? -2 : read(fd, out, EW__OWN_TOKEN_SIZE - 1);
    (void)close(fd);
    if (n < 0) {
        return n == -2 ? "others can read the file with the token: chmod 600 it"
                       : "the file with the token cannot be read";
    }
    out[n] = 0;
    out[strcspn(out, "\r\n")] = 0;
    return NULL;
}

const char *ew__token_read(const char *text, char out[EW__OWN_TOKEN_SIZE]) {
    const char *problem = NULL;
    if (text[0] == '@') {
        problem = read_secret(text + 1, out);
    } else if (strlen(text) < EW__OWN_TOKEN_SIZE) {
        memcpy(out, text, strlen(text) + 1);
    } else {
        out[0] = 0;
    }
    return problem                      ? problem
           : token_ok(ew_str_from(out)) ? NULL
                                        : "that is no token: want ewt_ and 64 digits, or @FILE";
}
