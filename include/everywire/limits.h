/*
 * everywire/limits.h: everything that a peer could make grow without end, in one place, with its default. The answer
 * to a reached limit is an error that names it, and the end of the connection only where its framing is lost.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_LIMITS_H
#define EVERYWIRE_LIMITS_H

#include <everywire/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(member, default, what it limits and what happens when it is reached) */
#define EW_LIMITS_MAP(X)                                                                                               \
    X(head_bytes, 32 * 1024, "bytes of an HTTP head; 431 beyond")                                                      \
    X(head_fields, 100, "header fields of an HTTP head; 431 beyond")                                                   \
    X(target_bytes, 8 * 1024, "bytes of an HTTP request target; 414 beyond")                                           \
    X(frame_bytes, 16 * 1024 * 1024,                                                                                   \
      "bytes of one message, body or frame; 413 or the wire's error beyond. A payload: 64 KiB less")                   \
    X(chunk_extension_bytes, 4 * 1024, "bytes of chunk extensions in one HTTP body; 400 beyond")                       \
    X(head_ms, 10 * 1000, "milliseconds from the first byte of a head to its end; 408 beyond")                         \
    X(body_stall_ms, 30 * 1000, "milliseconds without progress in a body; 408 beyond")                                 \
    X(idle_ms, 120 * 1000, "milliseconds a connection may be idle between calls; closed beyond")                       \
    X(connect_ms, 10 * 1000, "milliseconds to reach a peer over all its addresses; UNAVAILABLE beyond")                \
    X(stall_ms, 30 * 1000, "milliseconds a reader may take nothing of what waits for it; its call is lost beyond")     \
    X(call_ms, 0, "milliseconds a served call may take when the caller names no deadline; 0 for no limit")             \
    X(out_high_bytes, 256 * 1024,                                                                                      \
      "bytes queued on a connection at which producers wait and http takes no further request")                        \
    X(out_low_bytes, 64 * 1024, "bytes waiting at which they may go on")                                               \
    X(out_max_bytes, 20 * 1024 * 1024, "bytes waiting on a connection; the call is lost beyond")                       \
    X(in_queue_bytes, 1024 * 1024, "bytes of input chunks not yet read by a handler; the sender waits beyond")         \
    X(in_queue_items, 64, "input chunks not yet read by a handler; the sender waits beyond")                           \
    X(pipeline_bytes, 256 * 1024, "bytes read ahead on a connection while its call runs; reading stops beyond")        \
    X(stream_idle_ms, 30 * 1000, "milliseconds a stream may be silent before its end; its call fails beyond")          \
    X(batch_items, 1000, "messages in one JSON-RPC batch; the batch is refused beyond")                                \
    X(connections, 16000, "connections of all listeners; refused beyond")                                              \
    X(calls_per_connection, 4096, "calls in flight on one connection, where a wire carries several (http: one)")       \
    X(connections_per_address, 1000,                                                                                   \
      "connections from one address (IPv6: /64); closed beyond; by hand also for this machine, else not")              \
    X(calls_per_second_per_address, 0,                                                                                 \
      "calls a second from one address, and so many at once; RESOURCE_EXHAUSTED beyond; 0 for no limit")               \
    X(auth_bytes, 64 * 1024,                                                                                           \
      "bytes of one message, body or frame before a token was accepted; the connection closes beyond")                 \
    X(auth_ms, 10 * 1000,                                                                                              \
      "milliseconds a connection may take to present a valid token, from its start; closed beyond")                    \
    X(auth_refusals, 8, "requests refused on a connection before a token was accepted; closed with the last")          \
    X(calls, 100000, "calls in flight in all; RESOURCE_EXHAUSTED beyond")                                              \
    X(worker_threads, 8, "threads for handlers that may block")                                                        \
    X(worker_queue, 1024, "calls waiting for such a thread; RESOURCE_EXHAUSTED beyond")                                \
    X(client_connections, 64, "connections of one client to its target; calls wait beyond")                            \
    X(import_connections, 1024, "connections of one loop to the target of an import; calls wait beyond")               \
    X(client_queue, 1024, "calls of one client waiting for a connection; RESOURCE_EXHAUSTED beyond")                   \
    X(runner_calls, 64, "requests in flight on one rrq connection; a runner says that it is busy beyond")              \
    X(runner_wait_ms, 15 * 1000, "milliseconds for a runner that was started to listen; UNAVAILABLE beyond")           \
    X(runner_grace_ms, 2 * 1000, "milliseconds for an end that was asked of a runner; it is given up beyond")          \
    X(runtime_wait_ms, 30 * 1000,                                                                                      \
      "milliseconds for a runtime to connect or a server to say a port; UNAVAILABLE beyond")                           \
    X(reconnect_ms, 5 * 1000, "milliseconds a call waits for a runtime that is away to come back; UNAVAILABLE beyond") \
    X(spin_us, 100,                                                                                                    \
      "microseconds that a loop looks for the answer to a call it sent on, before it sleeps; 1 for none")              \
    X(trace_queue_items, 4096, "starts and ends of spans waiting on a loop to be sent; dropped and counted beyond")    \
    X(trace_queue_bytes, 4 * 1024 * 1024, "bytes of them; dropped and counted beyond")                                 \
    X(blob_bytes, 256 * 1024 * 1024,                                                                                   \
      "bytes of blobs that a client keeps in memory; what servers put beyond is refused")                              \
    X(handshake_ms, 10 * 1000, "milliseconds a client may take for the TLS handshake; closed beyond")                  \
    X(list_actions, 10000, "actions in the list that a runtime or an import offers; the list is refused beyond")       \
    X(list_bytes, 8 * 1024 * 1024, "bytes of such a list; the list is refused beyond, and the previous one stays")     \
    X(memory_bytes, 1024 * 1024 * 1024,                                                                                \
      "bytes that the program or a client allocates in all; beyond, connections are closed and calls "                 \
      "RESOURCE_EXHAUSTED")

/* Zero in a member means its default. */
typedef struct ew_limits {
#define EW_LIMITS_MEMBER(member, value, text) uint64_t member;
    EW_LIMITS_MAP(EW_LIMITS_MEMBER)
#undef EW_LIMITS_MEMBER
} ew_limits;

/*
 * Limits of nesting; not settings. A payload (input, chunk, result, fault details, context) has at most
 * EW_PAYLOAD_DEPTH levels, a message with its envelope at most EW_JSON_DEPTH. No envelope adds more than the
 * difference, so a payload that one wire accepts fits every other.
 */
#define EW_JSON_DEPTH 128
#define EW_PAYLOAD_DEPTH 120

/*
 * The same for bytes: a payload has at most frame_bytes less EW_ENVELOPE_BYTES (less an eighth of frame_bytes, if that
 * is smaller). What the context and the labels of a call have beyond a quarter of that counts with its input. A call
 * with a larger payload fails with RESOURCE_EXHAUSTED; other calls on its connection go on.
 */
#define EW_ENVELOPE_BYTES (64 * 1024)

/* Fills in the default for every member that is zero. Any thread. */
EW_API void ew_limits_complete(ew_limits *limits);

#ifdef __cplusplus
}
#endif
#endif
