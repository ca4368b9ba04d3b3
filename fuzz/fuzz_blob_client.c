/*
 * fuzz/fuzz_blob_client.c: the client of Stepflow's Blob HTTP API against a hostile server: see
 * http_client.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/stepflow.h"

#define CLIENT_WIRE ew__wire_blobs
#include "http_client.h"

static void fill_call(ew_call *call, unsigned how) {
    bool put = (how & 1) != 0;
    call->key = put ? EW_STR("blobs/put") : EW_STR("blobs/get");
    call->input = put ? EW_STR("{\"data\":1}") : EW_STR("{\"blob_id\":\"x\"}");
    if (how & 2)
        call->input = EW_STR("{}");
}
