/*
 * api/request.c: requests of a client (everywire/client.h).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "client/request.h"

ew_err ew_call_back(ew_call *call, const ew_request_options *options, ew_request **ret_request) {
    return ew__client_call_back(call, options, ret_request);
}

ew_err ew_request_again(ew_request *request) { return ew__request_again(request); }

ew_err ew_request_wait(ew_request *request, uint64_t ms, ew_end *ret_end) {
    return ew__request_wait(request, ms, ret_end);
}

void ew_request_cancel(ew_request *request) { ew__request_cancel(request); }

ew_err ew_request_send(ew_request *request, ew_str json) { return ew__request_send(request, json); }

ew_err ew_request_wait_room(ew_request *request, uint64_t ms) { return ew__request_wait_room(request, ms); }

ew_err ew_request_send_end(ew_request *request) { return ew__request_send_end(request); }

ew_request *ew_request_free(ew_request *request) {
    if (request)
        ew__request_unref(request);
    return NULL;
}
