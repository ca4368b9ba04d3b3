/*
 * fuzz/fuzz_rpc_envelope.c: any text as a message of JSON-RPC, as an error, as a document of rpc.discover. What was
 * read lies in the text; what is written from it is JSON and says the same again.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "wire/jsonrpc/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds)
        abort();
}

static void check_inside(ew_str text, ew_str slice) {
    check(!slice.len || (slice.ptr >= text.ptr && slice.ptr + slice.len <= text.ptr + text.len));
    check(!slice.len || ew_json_check(slice, NULL) == EW_OK);
}

/* The message once more, as we would write it. */
static void write_again(ew__buf *buf, const ew__rpc *rpc) {
    ew__rpc_out out;
    switch (rpc->kind) {
    case EW__RPC_REQUEST:
    case EW__RPC_NOTIFICATION:
        ew__rpc_put_request(&out, rpc->id, rpc->method, rpc->stream, rpc->params);
        break;
    case EW__RPC_RESULT:
        ew__rpc_put_result(&out, rpc->id, rpc->stream, rpc->result);
        break;
    case EW__RPC_ERROR:
        ew__rpc_put_error(&out, rpc->id, rpc->error);
        break;
    default:
        ew__rpc_put_frame(&out, rpc->id, rpc->stream, rpc->data);
    }
    for (unsigned i = 0; i < out.n; i++)
        (void)ew__buf_str(buf, out.piece[i]);
    check(buf->err == EW_OK && buf->len == out.len);
}

static void check_round(const ew__rpc *rpc) {
    ew__buf buf;
    ew__json_doc doc;
    ew__rpc again;
    ew__buf_init(&buf, ew_env_default(), SIZE_MAX / 2);
    write_again(&buf, rpc);
    check(ew__json_parse(&doc, ew__buf_view(&buf)) == EW_OK);
    ew__rpc_read(&doc, EW__RPC_WITH_STREAMS, &again);
    check(again.kind == rpc->kind && ew_str_eq(again.method, rpc->method) && ew_str_eq(again.params, rpc->params));
    check(ew_str_eq(again.data, rpc->data) || again.kind != EW__RPC_FRAME);
    check(ew_str_eq(again.id, rpc->id) || (!rpc->id.len && ew_str_eq(again.id, EW_STR("null"))));
    ew__buf_done(&buf);
}

static void check_strings(const ew__rpc *rpc) {
    char small[8], large[512];
    ew_str key = ew__rpc_key(rpc->id, large, sizeof large);
    check(key.len <= rpc->id.len || key.ptr == rpc->id.ptr);
    (void)ew__rpc_key(rpc->id, small, sizeof small);
    (void)ew__rpc_text(rpc->method, small, sizeof small);
    (void)ew__rpc_text(rpc->method, large, sizeof large);
}

/* A fault that was read can be written, and is then the same. */
static void check_fault(ew_str error) {
    char text[64], again_text[256];
    ew_fault fault, again;
    ew__buf buf;
    ew__jr_read_fault(error, text, sizeof text, &fault);
    check(fault.status != EW_STATUS_OK);
    ew__buf_init(&buf, ew_env_default(), SIZE_MAX / 2);
    check(ew__jr_write_fault(&buf, 0, &fault) == EW_OK && ew_json_check(ew__buf_view(&buf), NULL) == EW_OK);
    ew__jr_read_fault(ew__buf_view(&buf), again_text, sizeof again_text, &again);
    check(again.status == fault.status && again.retryable == fault.retryable);
    check(again.retry_after_ms == fault.retry_after_ms && ew_str_eq(again.details, fault.details));
    ew__buf_done(&buf);
}

static void check_document(ew_str document) {
    ew__buf listing, back;
    ew__buf_init(&listing, ew_env_default(), SIZE_MAX / 2);
    ew__buf_init(&back, ew_env_default(), SIZE_MAX / 2);
    (void)ew__jr_is_everywire(document);
    if (ew__jr_read_discover(&listing, document) == EW_OK) {
        check(ew_json_check(ew__buf_view(&listing), NULL) == EW_OK);
        check(ew__jr_write_discover(&back, ew__buf_view(&listing)) == EW_OK);
        check(ew_json_check(ew__buf_view(&back), NULL) != EW_ESYNTAX); /* it may be too deep now */
    }
    ew__buf_done(&back);
    ew__buf_done(&listing);
}

/* A frame that is told by its bytes alone says what the reader reads in it. */
static void check_frame(ew_str text, const ew__rpc *rpc) {
    ew_str data;
    if (rpc->id.len && ew__rpc_is_data_frame(text, rpc->id, &data))
        check(rpc->kind == EW__RPC_FRAME && rpc->stream == EW__RPC_STREAM_DATA && data.ptr == rpc->data.ptr &&
              data.len == rpc->data.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *copy = malloc(size ? size : 1); /* of its own, so that AddressSanitizer sees a read past its end */
    ew__json_doc doc;
    ew__rpc rpc;
    check(copy != NULL);
    if (size)
        memcpy(copy, data, size);
    ew_str text = ew__str(copy, size);
    if (ew__json_parse(&doc, text) == EW_OK) {
        for (unsigned with = 0; with <= EW__RPC_WITH_STREAMS; with++) {
            ew__rpc_read(&doc, with, &rpc);
            check((rpc.kind == EW__RPC_INVALID) == (rpc.problem != NULL));
            const ew_str slices[] = {rpc.id, rpc.method, rpc.params, rpc.result, rpc.error, rpc.data};
            for (size_t i = 0; i < sizeof slices / sizeof *slices; i++)
                check_inside(text, slices[i]);
            check_strings(&rpc);
            if (with)
                check_frame(text, &rpc);
            if (rpc.kind != EW__RPC_INVALID)
                check_round(&rpc);
        }
        check_fault(doc.root);
        check_document(doc.root);
    }
    free(copy);
    return 0;
}
