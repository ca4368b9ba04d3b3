/*
 * everywire/status.h: how a call may end. The sixteen canonical statuses, their numbers and HTTP codes, and the fault
 * that carries one of them across every wire.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_STATUS_H
#define EVERYWIRE_STATUS_H

#include <everywire/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EW_STATUS_MAP(X)                                                                                               \
    X(OK, 0, 200)                                                                                                      \
    X(CANCELLED, 1, 499)                                                                                               \
    X(UNKNOWN, 2, 500)                                                                                                 \
    X(INVALID_ARGUMENT, 3, 400)                                                                                        \
    X(DEADLINE_EXCEEDED, 4, 504)                                                                                       \
    X(NOT_FOUND, 5, 404)                                                                                               \
    X(ALREADY_EXISTS, 6, 409)                                                                                          \
    X(PERMISSION_DENIED, 7, 403)                                                                                       \
    X(RESOURCE_EXHAUSTED, 8, 429)                                                                                      \
    X(FAILED_PRECONDITION, 9, 400)                                                                                     \
    X(ABORTED, 10, 409)                                                                                                \
    X(OUT_OF_RANGE, 11, 400)                                                                                           \
    X(UNIMPLEMENTED, 12, 501)                                                                                          \
    X(INTERNAL, 13, 500)                                                                                               \
    X(UNAVAILABLE, 14, 503)                                                                                            \
    X(DATA_LOSS, 15, 500)                                                                                              \
    X(UNAUTHENTICATED, 16, 401)

typedef enum ew_status {
#define EW_STATUS_ENUM(name, number, http) EW_STATUS_##name = number,
    EW_STATUS_MAP(EW_STATUS_ENUM)
#undef EW_STATUS_ENUM
} ew_status;

#define EW_STATUS_COUNT 17

/* Why a call failed. All slices are borrowed; functions that keep a fault copy it. */
typedef struct ew_fault {
    ew_status status;        /* never EW_STATUS_OK */
    ew_str message;          /* one line for people */
    ew_str details;          /* JSON text, or empty for none */
    bool retryable;          /* the same call may succeed later */
    bool refused;            /* reported by a peer: no handler was started, so another peer may run the call */
    uint64_t retry_after_ms; /* not before that many milliseconds; 0 for "no advice" */
} ew_fault;

/* "NOT_FOUND" and so on; "UNKNOWN" for a number outside the table. Any thread. */
EW_API const char *ew_status_name(ew_status status);

/* The HTTP code of a status, 500 for a number outside the table. Any thread. */
EW_API int ew_status_http(ew_status status);

/* Finds a status by its exact name. Returns EW_OK or EW_ENOTFOUND (then *ret_status is untouched). Any thread. */
EW_API ew_err ew_status_from_name(ew_str name, ew_status *ret_status);

/* The status that an HTTP error code stands for, when nothing better is known. Any thread. */
EW_API ew_status ew_status_from_http(int code);

#ifdef __cplusplus
}
#endif
#endif
