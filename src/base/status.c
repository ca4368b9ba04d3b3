/*
 * base/status.c: the table of canonical statuses read in every direction. What a wire makes of them is the wire's.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/status.h>

#include "base/util.h"

typedef struct row {
    ew_str name;
    int http;
} row;

/* The numbers run from 0 without a gap, so that a status is its own index. */
static const row rows[] = {
#define ROW(name, number, http) [number] = {{#name, sizeof(#name) - 1}, http},
    EW_STATUS_MAP(ROW)
#undef ROW
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) == EW_STATUS_COUNT, "EW_STATUS_COUNT counts the table");

static bool is_known(ew_status status) { return (unsigned)status < EW_STATUS_COUNT; }

const char *ew_status_name(ew_status status) { return is_known(status) ? rows[status].name.ptr : "UNKNOWN"; }

int ew_status_http(ew_status status) { return is_known(status) ? rows[status].http : 500; }

ew_err ew_status_from_name(ew_str name, ew_status *ret_status) {
    for (unsigned i = 0; i < EW_STATUS_COUNT; i++) {
        if (ew__str_is(rows[i].name, name)) {
            *ret_status = (ew_status)i;
            return EW_OK;
        }
    }
    return EW_ENOTFOUND;
}

/*
 * Several statuses share a code (400, 409, 500): the plainest one wins, as in the Genkit clients. The codes that no
 * status has are those of HTTP servers and proxies themselves; too large is RESOURCE_EXHAUSTED, as gRPC has it.
 */
ew_status ew_status_from_http(int code) {
    switch (code) {
    case 400:
    case 415:
    case 422:
        return EW_STATUS_INVALID_ARGUMENT;
    case 401:
        return EW_STATUS_UNAUTHENTICATED;
    case 403:
        return EW_STATUS_PERMISSION_DENIED;
    case 404:
        return EW_STATUS_NOT_FOUND;
    case 405:
    case 501:
        return EW_STATUS_UNIMPLEMENTED;
    case 408:
    case 504:
        return EW_STATUS_DEADLINE_EXCEEDED;
    case 409:
        return EW_STATUS_ABORTED;
    case 412:
        return EW_STATUS_FAILED_PRECONDITION;
    case 416:
        return EW_STATUS_OUT_OF_RANGE;
    case 413:
    case 414:
    case 429:
    case 431:
        return EW_STATUS_RESOURCE_EXHAUSTED;
    case 499:
        return EW_STATUS_CANCELLED;
    case 502:
    case 503:
        return EW_STATUS_UNAVAILABLE;
    default:
        break;
    }
    if (code >= 200 && code <= 299) {
        return EW_STATUS_OK;
    }
    return code >= 500 && code <= 599 ? EW_STATUS_INTERNAL : EW_STATUS_UNKNOWN;
}
