/*
 * everywire/base.h: what every other public header uses: text slices, error codes, version.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_BASE_H
#define EVERYWIRE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EW_VERSION_MAJOR 0
#define EW_VERSION_MINOR 1
#define EW_VERSION_PATCH 0
#define EW_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#define EW_API __attribute__((visibility("default")))
#else
#define EW_API
#endif

/* The compiler warns about a call whose result is not used. */
#if defined(__GNUC__)
#define EW_MUST_USE __attribute__((warn_unused_result))
#else
#define EW_MUST_USE
#endif

/* A piece of text or bytes with its length: never owned, never ended by NUL. An empty slice may have ptr NULL. */
typedef struct ew_str {
    const char *ptr;
    size_t len;
} ew_str;

#ifdef __cplusplus
#define EW_STR(literal) (ew_str{(literal), sizeof(literal) - 1})
#else
#define EW_STR(literal) ((ew_str){(literal), sizeof(literal) - 1})
#endif

/*
 * What a function of this library answers. Zero is success, negative is an error; the one positive value, EW_FULL, is
 * success with the request to wait. These codes never cross a wire: what crosses is a status (status.h).
 */
#define EW_ERR_MAP(X)                                                                                                  \
    X(EW_ENOMEM, -1, "out of memory")                                                                                  \
    X(EW_EINVAL, -2, "invalid argument")                                                                               \
    X(EW_ELIMIT, -3, "a limit was reached")                                                                            \
    X(EW_ESYNTAX, -4, "the text is not valid JSON")                                                                    \
    X(EW_EPROTO, -5, "the peer broke the protocol")                                                                    \
    X(EW_ECONNECT, -6, "the peer could not be reached")                                                                \
    X(EW_ECLOSED, -7, "the connection or object is closed")                                                            \
    X(EW_ETIMEOUT, -8, "the time has run out")                                                                         \
    X(EW_ECANCELLED, -9, "the call was cancelled")                                                                     \
    X(EW_EENDED, -10, "the call has already ended")                                                                    \
    X(EW_ENOTFOUND, -11, "not found")                                                                                  \
    X(EW_EEXISTS, -12, "it exists already")                                                                            \
    X(EW_EADDRINUSE, -13, "the address is in use")                                                                     \
    X(EW_EACCESS, -14, "permission denied")                                                                            \
    X(EW_EUNSUPPORTED, -15, "not supported")                                                                           \
    X(EW_EBUSY, -16, "busy, try again later")                                                                          \
    X(EW_ETYPE, -17, "the value has another type or does not fit")                                                     \
    X(EW_EIO, -18, "a system call failed")                                                                             \
    X(EW_ESTALE, -19, "it is not so any more: somebody else has changed it")

typedef enum ew_err {
    EW_OK = 0,
    EW_FULL = 1, /* taken; wait for room before sending more */
#define EW_ERR_ENUM(name, number, text) name = number,
    EW_ERR_MAP(EW_ERR_ENUM)
#undef EW_ERR_ENUM
} ew_err;

/* The name of a code, such as "EW_ENOMEM". Never NULL. Any thread. */
EW_API const char *ew_err_name(ew_err err);

/* One line of English for a code. Never NULL. Any thread. */
EW_API const char *ew_err_text(ew_err err);

/* The version of the library in use, for example "0.1.0". Any thread. */
EW_API const char *ew_version(void);

/* A slice over a C string; NULL gives the empty slice. Any thread. */
EW_API ew_str ew_str_from(const char *text);

/* Whether two slices hold the same bytes. Any thread. */
EW_API bool ew_str_eq(ew_str a, ew_str b);

#ifdef __cplusplus
}
#endif
#endif
