/*
 * wire/jsonrpc/send.c: messages to bytes. Who waits when there are too many of them is decided in wire/rpc_calls.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/jsonrpc/jsonrpc.h"

/* ---- messages ---- */

void ew__jr_send(ew__jr_peer *peer, const ew__rpc_out *message, ew_call *owner) {
    char head[EW__LINE_HEAD_ROOM];
    size_t n = peer->framing == EW__FRAMING_HEADERS ? ew__line_head(EW__FRAMING_HEADERS, message->len, head) : 0;
    ew__rpc_reader_send(&peer->reader, ew__str(head, n), message, owner);
}

void ew__jr_send_error(ew__jr_peer *peer, ew_str id, int64_t code, const char *message) {
    ew__rpc_out out;
    ew__buf error;
    ew__buf_init(&error, peer->peer.conn->executor->env, SIZE_MAX / 2);
    (void)ew__rpc_write_error(&error, code, ew_str_from(message), ew__str(NULL, 0));
    ew__rpc_put_error(&out, id,
                      error.err ? EW_STR("{\"code\":-32603,\"message\":\"out of memory\"}") : ew__buf_view(&error));
    ew__jr_send(peer, &out, NULL);
    ew__buf_done(&error);
}

ew_err ew__jr_one_line(const ew__jr_peer *peer, ew_str json, ew__buf *buf, ew_str *ret) {
    *ret = json;
    ew__buf_init(buf, peer->peer.conn->executor->env, SIZE_MAX / 2);
    if (EW__LIKELY(!ew__json_has_newline(json)) || peer->framing == EW__FRAMING_HEADERS)
        return EW_OK;
    ew_err err = ew__json_minify(buf, json);
    *ret = ew__buf_view(buf);
    return err;
}

/* ---- producers of ours ---- */

static bool may_send(const ew__jr_peer *peer, size_t len) {
    return ew__rpc_fits(&peer->calls, len) && ew__rpc_has_place(&peer->calls, len);
}

/* Input that we send is never made of events. */
static bool is_event(const ew__jr_call *entry) { return entry->events && !entry->base.sent; }

/* The ordinary way: a chunk that may be large, have newlines, or go behind a header. */
static ew_err send_any_chunk(ew__jr_call *entry, ew_str json) {
    ew__jr_peer *peer = ew__jr_peer_of(entry);
    ew__rpc_out message;
    ew__buf line;
    ew_err err = ew__jr_one_line(peer, json, &line, &json);
    if (is_event(entry))
        ew__rpc_put_event(&message, entry->base.id, EW__RPC_EVENT_CHUNK, json);
    else
        ew__rpc_put_frame(&message, entry->base.id, EW__RPC_STREAM_DATA, json);
    if (err == EW_OK && !may_send(peer, message.len))
        err = EW_ELIMIT;
    if (err == EW_OK)
        ew__jr_send(peer, &message, NULL);
    ew__buf_done(&line);
    return err;
}

/* Something was sent for it. */
static ew_err pace(ew__jr_call *entry) {
    if (ew__jr_peer_of(entry)->reader.closed)
        return EW_ENOMEM; /* a producer that does not wait must learn that nobody listens */
    return ew__rpc_call_pace(&entry->base);
}

ew_err ew__jr_send_chunk(ew__jr_call *entry, ew_str json) {
    ew__jr_peer *peer = ew__jr_peer_of(entry);
    size_t len = ew__rpc_data_frame_len(entry->base.id, json);
    bool small = len < EW__RPC_SMALL && entry->base.id.len && json.len && !is_event(entry);
    ew_err err = EW_OK;
    if (EW__UNLIKELY(!small || peer->framing != EW__FRAMING_LINES || ew__json_has_newline(json)))
        err = send_any_chunk(entry, json);
    else if (may_send(peer, len))
        ew__rpc_reader_send_frame(&peer->reader, entry->base.id, json);
    else
        err = EW_ELIMIT;
    return err == EW_OK ? pace(entry) : err;
}

ew_err ew__jr_send_row(ew__jr_call *entry, const ew_str *row, size_t *n) {
    ew__jr_peer *peer = ew__jr_peer_of(entry);
    ew_str id = entry->base.id;
    size_t around = ew__rpc_data_frame_len(id, ew__str(NULL, 0)) + 1;
    bool small = around + EW__ROW_CHUNK <= EW__RPC_SMALL && ew__rpc_fits(&peer->calls, around + EW__ROW_CHUNK);
    if (EW__UNLIKELY(!small || id.len == 0 || peer->framing != EW__FRAMING_LINES || is_event(entry))) {
        *n = 1;
        return ew__jr_send_chunk(entry, row[0]);
    }
    if (!ew__rpc_has_place(&peer->calls, *n * around + ew__row_bytes(row, *n)))
        return EW_ELIMIT;
    ew__rpc_reader_send_row(&peer->reader, id, row, *n);
    return pace(entry);
}
