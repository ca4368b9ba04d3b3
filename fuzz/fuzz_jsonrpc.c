/*
 * fuzz/fuzz_jsonrpc.c: a whole session of the jsonrpc wire, serving or calling, on a socket or on stdio, with actions
 * of ours and calls of ours. The first byte of the input chooses, also the dialect of a peer that is called; from then on bytes are what the peer says, and 0xff
 * with the byte behind it is something that happens: a call, input, a cancel, time, a peer that does not read.
 * Whatever happens: what leaves is whole lines of JSON, every call of ours ends once, and nothing is left behind.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "session.h"
#include "wire/jsonrpc/jsonrpc.h"

#define CALLS 8

typedef struct world {
    ew__conn conn;
    bool over;    /* the wire has closed */
    bool stalled; /* the peer does not read */
    bool reading;
    bool was_full;
    ew__buf sent; /* bytes of a line that is not whole yet */
    ew_call *calls[CALLS];
    unsigned n_calls, n_opened, n_ended;
    bool full; /* callers of ours take no chunk */
} world;

/* ---- the connection ---- */

static void check_lines(world *w) {
    const char *newline;
    while (w->sent.len > 0 && (newline = memchr(ew__buf_view(&w->sent).ptr, '\n', w->sent.len)) != NULL) {
        size_t n = (size_t)(newline - ew__buf_view(&w->sent).ptr);
        check(ew_json_check(ew__str(ew__buf_view(&w->sent).ptr, n), NULL) == EW_OK);
        ew__buf_drop(&w->sent, n + 1);
    }
}

static void take_output(world *w) {
    ew__out *out = &w->conn.out;
    const ew__jr_peer *peer = (const ew__jr_peer *)(const void *)w->conn.scratch;
    while (!w->stalled && out->bytes > 0) {
        ew__out_vec vec[1];
        check(ew__out_peek(out, vec, 1) == 1);
        if (peer->framing == EW__FRAMING_LINES)
            check(ew__buf_add(&w->sent, vec[0].ptr, vec[0].len) == EW_OK);
        ew__out_consume(out, vec[0].len);
    }
    check_lines(w);
}

static void on_send(ew__conn *conn) {
    world *w = (world *)(void *)conn;
    check(!w->over || conn->out.bytes == 0);
    w->was_full = w->was_full || conn->out.bytes >= conn->executor->limits->out_high_bytes;
}

static void on_read(ew__conn *conn, bool on) { ((world *)(void *)conn)->reading = on; }

static void on_over(ew__conn *conn) { ((world *)(void *)conn)->over = true; }

static const ew__conn_ops conn_ops = {.send = on_send, .read = on_read, .finish = on_over, .abort = on_over};

/* ---- calls of ours ---- */

static ew_err on_chunk(ew_call *call, ew_str json) {
    world *w = call->caller_ud;
    check(ew_json_check(json, NULL) == EW_OK);
    return w->full ? EW_FULL : EW_OK;
}

static void on_end(ew_call *call, const ew__end *end) {
    world *w = call->caller_ud;
    w->n_ended++;
    check(end->status != EW_STATUS_OK || ew_json_check(end->result, NULL) == EW_OK);
    for (unsigned i = 0; i < CALLS; i++)
        if (w->calls[i] == call)
            w->calls[i] = NULL;
    ew__call_release(call);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};

static void open_call(world *w, ew__peer *peer, unsigned how) {
    unsigned slot = w->n_calls % CALLS;
    if (w->calls[slot])
        return;
    ew_call *call = ew__call_new(w->conn.executor, &caller, w);
    check(call != NULL);
    w->n_calls++;
    w->n_opened++;
    call->kind = how & 8 ? EW__CALL_LIST : EW__CALL_RUN;
    call->key = EW_STR("k");
    call->input = EW_STR("[1,\n2]");
    call->wants_chunks = (how & 1) != 0;
    call->has_input = (how & 2) != 0;
    call->outgoing.notify = (how & 4) != 0;
    call->outgoing.wire_id = how & 16 ? EW_STR("a") : EW_STR("");
    call->hops = how & 16 ? 3 : 0;
    w->calls[slot] = call;
    ew__call_open_on(call, &opening, peer);
}

static void pass_time(world *w, uint64_t ms) {
    now_ns += EW__MS(ms);
    ew__executor_read_clock(w->conn.executor);
    ew__timers_run(&w->conn.executor->timers, w->conn.executor->now);
}

/* ---- what happens ---- */

static void tell_drained(world *w, ew__peer *peer) {
    if (!w->over && w->was_full && w->conn.out.bytes <= w->conn.executor->limits->out_low_bytes) {
        w->was_full = false;
        peer->wire->drained(peer);
    }
}

static void act(world *w, ew__peer *peer, uint8_t what) {
    ew_call *call = w->calls[what % CALLS];
    switch (what >> 5) {
    case 0:
        open_call(w, peer, what);
        break;
    case 1:
        if (call)
            (void)ew__call_input(call, EW_STR("{\"a\":\n1}"));
        break;
    case 2:
        if (call)
            ew__call_input_end(call);
        break;
    case 3:
        if (call)
            ew__call_cancel(call, EW__CANCEL_ASKED);
        break;
    case 4:
        pass_time(w, (uint64_t)1 << (what & 15));
        break;
    case 5:
        w->stalled = (what & 1) != 0;
        break;
    case 6:
        w->full = (what & 1) != 0;
        for (unsigned i = 0; i < CALLS && !w->full; i++)
            if (w->calls[i])
                ew__call_room(w->calls[i]);
        break;
    default:
        if (what & 1)
            peer->wire->drain(peer);
        else if (what & 2 && peer->role == EW__CALL)
            peer->wire->leave(peer);
        else
            (void)peer->wire->sharing(peer);
    }
}

static void feed(world *w, ew__peer *peer, const uint8_t *data, size_t size) {
    size_t step = size > 0 ? data[0] % 61 : 0; /* 0: all at once */
    for (size_t at = 0; at < size && !w->over;) {
        const uint8_t *mark = memchr(data + at, 0xff, size - at);
        size_t n = mark ? (size_t)(mark - data) - at : size - at;
        if (n == 0) {
            act(w, peer, at + 1 < size ? data[at + 1] : 0);
            at += 2;
        } else {
            n = step && step < n ? step : n;
            peer->wire->input(peer, data + at, n); /* also when it has asked to stop: a read may be on its way */
            at += n;
        }
        take_output(w);
        tell_drained(w, peer);
        pass_time(w, 0);
        take_output(w);
    }
}

static void run(world *w, ew__peer *peer, const uint8_t *data, size_t size) {
    check(peer->wire->init(peer) == EW_OK);
    feed(w, peer, data, size);
    if (!w->over)
        peer->wire->eof(peer);
    pass_time(w, 100);
    peer->wire->gone(peer, EW_OK);
    pass_time(w, 1000); /* handlers that look late end their calls */
    check(w->n_ended == w->n_opened && w->conn.executor->calls->live == 0);
    check(ew__timers_next(&w->conn.executor->timers) == EW__NEVER);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ew_env env = *ew_env_default();
    env.now_ns = fuzz_now;
    env.random = fuzz_random;
    now_ns = 1000000000;
    ew_limits limits = {.frame_bytes = 4096,
                        .out_high_bytes = 512,
                        .out_low_bytes = 128,
                        .out_max_bytes = 8192,
                        .in_queue_items = 4,
                        .batch_items = 20,
                        .calls_per_connection = 10};
    ew_limits_complete(&limits);
    if (size < 1)
        return 0;
    ew__registry registry;
    ew__executor executor = {.ops = &executor_ops};
    add_session_actions(&registry, &env);
    ew__executor_init(&executor, &env, &limits);
    ew__call_context calls;
    ew__call_context_init(&calls, &executor);
    ew__site site = {.actions = ew__registry_get(&registry),
                     .token = data[0] & 4 ? EW_STR("t") : EW_STR(""),
                     .options = (data[0] >> 3 & 7u) << 2 /* EW__JR_PEER_... */};
    ew__role role = data[0] & 1 ? EW__CALL : EW__SERVE;
    ew__peer *peer = calloc(1, sizeof(ew__jr_peer));
    check(peer != NULL);
    world w = {
        .conn = {.ops = &conn_ops, .executor = &executor, .site = &site, .scratch = peer, .stdio = (data[0] & 2) != 0}};
    ew__out_init(&w.conn.out, &executor.blocks);
    ew__buf_init(&w.sent, ew_env_default(), SIZE_MAX / 2);
    *peer = (ew__peer){.wire = &ew__wire_jsonrpc, .conn = &w.conn, .role = role};
    run(&w, peer, data + 1, size - 1);
    ew__buf_done(&w.sent);
    ew__out_done(&w.conn.out);
    ew__actions_unref(site.actions);
    ew__call_context_done(&calls);
    ew__executor_done(&executor);
    ew__registry_done(&registry);
    free(peer);
    return 0;
}
