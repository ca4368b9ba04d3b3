/*
 * wire/jsonrpc/batch.c: messages that came as one array, and their answers, which leave as one when the last is there.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/jsonrpc/jsonrpc.h"

struct ew__jr_batch {
    unsigned refs; /* calls that still run, and whoever reads the array */
    const ew_env *env;
    ew__buf answers; /* without the brackets */
};

ew__jr_batch *ew__jr_batch_ref(ew__jr_batch *batch) {
    batch->refs++;
    return batch;
}

static void send_answers(ew__jr_peer *peer, const ew__jr_batch *batch) {
    ew__rpc_out out = {.n = 3};
    if (batch->answers.err) {
        ew__jr_send_error(peer, ew__str(NULL, 0), EW__RPC_SERVER_ERROR, "no memory for the answers of the batch");
        return;
    }
    if (batch->answers.len == 0)
        return; /* notifications and answers only */
    out.piece[0] = EW_STR("[");
    out.piece[1] = ew__buf_view(&batch->answers);
    out.piece[2] = EW_STR("]");
    out.len = batch->answers.len + 2;
    ew__jr_send(peer, &out, NULL);
}

void ew__jr_batch_unref(ew__jr_peer *peer, ew__jr_batch *batch) {
    if (--batch->refs > 0)
        return;
    peer->batch_bytes -= batch->answers.len;
    if (!peer->reader.closed)
        send_answers(peer, batch);
    const ew_env *env = batch->env;
    ew__buf_done(&batch->answers);
    ew__free(env, batch, sizeof *batch);
}

static void add_pieces(ew__jr_peer *peer, ew__buf *buf, const ew__rpc_out *message) {
    size_t before = buf->len;
    if (buf->len)
        (void)ew__buf_char(buf, ',');
    for (unsigned i = 0; i < message->n; i++)
        (void)ew__buf_str(buf, message->piece[i]);
    peer->batch_bytes += buf->len - before;
}

/*
 * Whether an answer may join its batch. The answers of all incomplete batches count as queued output: a peer that
 * keeps many batches open with one slow call each must not make us hold more than out_max_bytes.
 */
static bool has_place(const ew__jr_peer *peer, const ew__jr_batch *batch, size_t len) {
    return ew__rpc_fits(&peer->calls, batch->answers.len + len + 3) &&
           peer->batch_bytes + peer->peer.conn->out.bytes + len <= ew__jr_limits(peer)->out_max_bytes;
}

/* An answer for which there is no room left becomes an error: each request of a batch gets one. */
void ew__jr_batch_add(ew__jr_peer *peer, ew__jr_batch *batch, const ew__rpc_out *message) {
    ew__rpc_out shorter;
    if (has_place(peer, batch, message->len)) {
        add_pieces(peer, &batch->answers, message);
        return;
    }
    ew__rpc_put_error(&shorter, message->piece[1],
                      EW_STR("{\"code\":-32000,\"message\":\"the answers of the batch are too large\","
                             "\"data\":{\"status\":\"RESOURCE_EXHAUSTED\"}}"));
    add_pieces(peer, &batch->answers, &shorter);
}

static bool too_many(const ew__jr_peer *peer, ew_str array) {
    ew_json_iter it = {.offset_ = 0};
    uint64_t n = 0;
    while (ew_json_next(array, &it))
        if (++n > ew__jr_limits(peer)->batch_items)
            return true;
    return false;
}

void ew__jr_serve_batch(ew__jr_peer *peer, ew_str array) {
    const ew_env *env = peer->peer.conn->executor->env;
    ew_json_iter it = {.offset_ = 0};
    ew__json_doc doc;
    bool empty = !ew_json_next(array, &it);
    if (empty || too_many(peer, array)) {
        ew__jr_send_error(peer, ew__str(NULL, 0), EW__RPC_INVALID_REQUEST,
                          empty ? "the batch is empty" : "too many messages in a batch");
        return;
    }
    ew__jr_batch *batch = ew__zalloc(env, sizeof *batch);
    if (!batch) {
        ew__rpc_reader_abort(&peer->reader); /* nobody could be told about so many calls */
        return;
    }
    batch->refs = 1;
    batch->env = env;
    ew__buf_init(&batch->answers, env, SIZE_MAX / 2);
    it = (ew_json_iter){.offset_ = 0};
    while (!peer->reader.closed && ew_json_next(array, &it))
        if (ew__json_parse(&doc, it.value) == EW_OK)
            ew__jr_take(peer, &doc, batch);
    ew__jr_batch_unref(peer, batch);
}
