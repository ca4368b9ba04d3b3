/*
 * fuzz/fuzz_http_call.c: the calling side of the http wire, unary and streamed, against a hostile server:
 * see http_client.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/http/http.h"

#define CLIENT_WIRE ew__wire_http
#include "http_client.h"

static void fill_call(ew_call *call, unsigned how) {
    call->wants_chunks = (how & 1) != 0;
    call->kind = how & 2 ? EW__CALL_LIST : EW__CALL_RUN;
    call->key = EW_STR("/flow/a b");
}
