/*
 * fuzz/fuzz_stepflow_lines.c: a whole session of the stepflow wire on pipes, serving or calling, with components that
 * ask their runtime, and calls of ours. The first byte of the input chooses; from then on bytes are what the peer says,
 * and 0xff with the byte behind it is something that happens: a call, a cancel, time, a peer that does not read.
 * Whatever happens: what leaves is whole lines of JSON in ASCII, every call of ours ends once, and nothing is left.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "session.h"
#include "wire/stepflow/lines.h"
#include "wire/stepflow/sniff.h"

#define CALLS 8

typedef struct world {
    ew__conn conn;
    bool over;    /* the wire has closed */
    bool stalled; /* the peer does not read */
    bool was_full;
    ew__buf sent; /* bytes of a line that is not whole yet */
    ew_call *calls[CALLS];
    unsigned n_calls, n_opened, n_ended;
} world;

/* ---- the connection ---- */

static void check_lines(world *w) {
    const char *newline;
    while (w->sent.len > 0 && (newline = memchr(w->sent.ptr, '\n', w->sent.len)) != NULL) {
        size_t n = (size_t)(newline - w->sent.ptr);
        check(ew_json_check(ew__str(w->sent.ptr, n), NULL) == EW_OK);
        for (size_t i = 0; i < n; i++)
            check(w->sent.ptr[i] > 0 && w->sent.ptr[i] < 0x7f);
        ew__buf_drop(&w->sent, n + 1);
    }
}

static void take_output(world *w) {
    ew__out *out = &w->conn.out;
    while (!w->stalled && out->bytes > 0) {
        ew__out_vec vec[1];
        check(ew__out_peek(out, vec, 1) == 1);
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

static void on_read(ew__conn *conn, bool on) {
    (void)conn;
    (void)on;
}

static void on_over(ew__conn *conn) { ((world *)(void *)conn)->over = true; }

static const ew__conn_ops conn_ops = {.send = on_send, .read = on_read, .finish = on_over, .abort = on_over};

/* ---- a component that asks ---- */

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static void on_replied(ew_call *call, const ew__end *end) {
    ew_call *origin = call->caller_ud;
    check(end->status != EW_STATUS_OK || ew_json_check(end->result, NULL) == EW_OK);
    (void)ew_call_done(origin, end->status == EW_STATUS_OK ? end->result : EW_STR("\"refused\""));
    ew_call_unref(origin);
    ew__call_release(call);
}

static const ew__caller_ops asker = {.chunk = on_chunk, .end = on_replied};

static void on_ask(ew_call *call) {
    ew_call *origin = call->callee_ud;
    if (!origin->caller_open || origin->caller->call_back(origin, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_INTERNAL, EW_STR("busy"));
}

static const ew__callee_ops asking = {.open = on_ask};

static void ask(ew_call *call, void *arg) {
    ew_call *question = ew__call_new(call->executor, &asker, call);
    if (!question)
        abort();
    (void)ew_call_on_cancel(call, on_cancel, arg);
    question->key = EW_STR("blobs/put");
    question->input = ew_call_input(call);
    ew_call_ref(call);
    ew__call_open_on(question, &asking, call);
}

/* ---- calls of ours ---- */

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
    if (!call)
        abort();
    w->n_calls++;
    w->n_opened++;
    call->kind = how & 8 ? EW__CALL_LIST : EW__CALL_RUN;
    call->key = how & 1 ? EW_STR("/k") : EW_STR("k");
    call->input = EW_STR("[1,\n\"\xc3\xa4\"]");
    call->has_input = (how & 2) != 0;
    call->outgoing.notify = (how & 4) != 0;
    w->calls[slot] = call;
    ew__call_open_on(call, &opening, peer);
}

static void pass_time(world *w, uint64_t ms) {
    now_ns += EW__MS(ms);
    ew__executor_read_clock(w->conn.executor);
    ew__timers_run(&w->conn.executor->timers, w->conn.executor->now);
}

/* ---- what happens ---- */

static void act(world *w, ew__peer *peer, uint8_t what) {
    ew_call *call = w->calls[what % CALLS];
    switch (what >> 5) {
    case 0:
        open_call(w, peer, what);
        break;
    case 1:
        if (call)
            ew__call_cancel(call, EW__CANCEL_ASKED);
        break;
    case 2:
        pass_time(w, (uint64_t)1 << (what & 15));
        break;
    case 3:
        w->stalled = (what & 1) != 0;
        break;
    default:
        if (what == 0x81)
            peer->wire->drain(peer);
    }
}

static void after(world *w, ew__peer *peer) {
    take_output(w);
    if (!w->over && w->was_full && w->conn.out.bytes <= w->conn.executor->limits->out_low_bytes) {
        w->was_full = false;
        peer->wire->drained(peer);
    }
    pass_time(w, 0);
    take_output(w);
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
        after(w, peer);
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

/* ---- blobs, of which there is one ---- */

static ew_err put(ew__blobs *blobs, ew_str json, ew_str type, char ret_id[EW__BLOB_ID_LEN]) {
    (void)blobs;
    (void)type;
    check(ew_json_check(json, NULL) == EW_OK);
    memset(ret_id, 'a', EW__BLOB_ID_LEN);
    return json.len % 3 ? EW_OK : EW_ELIMIT;
}

static ew_err get(ew__blobs *blobs, ew_str id, ew__buf *out, ew_str *ret_type) {
    (void)blobs;
    *ret_type = EW_STR("data");
    return id.len == 1 ? ew__buf_cstr(out, "[\"\xc3\xa4\"]") : EW_ENOTFOUND;
}

/* A verdict about the first bytes of a stream does not change when more of them arrive. */
static void check_sniff(const uint8_t *data, size_t size) {
    int all = ew__sf_sniff_line(data, size), half = ew__sf_sniff_line(data, size / 2);
    check(all >= -1 && all <= 1 && (half == 0 || half == all));
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
                        .runtime_wait_ms = 100,
                        .calls_per_connection = 10};
    ew_limits_complete(&limits);
    if (size < 1)
        return 0;
    check_sniff(data + 1, size - 1);
    ew__registry registry;
    ew__executor executor = {.ops = &executor_ops};
    add_session_actions(&registry, &env);
    check(ew__registry_add(&registry, "/f/ask", &ew__local_callee, NULL, ask, NULL, NULL) == EW_OK);
    ew__executor_init(&executor, &env, &limits);
    ew__call_context calls;
    ew__call_context_init(&calls, &executor);
    ew__blobs blobs = {.put = put, .get = get};
    ew__site site = {.actions = ew__registry_get(&registry), .blobs = data[0] & 4 ? NULL : &blobs};
    ew__sl_peer peer = {.peer = {.wire = &ew__wire_stepflow, .conn = NULL, .role = data[0] & 1 ? EW__CALL : EW__SERVE}};
    ew__sf_scratch scratch = {.has_asked = false};
    world w = {
        .conn = {.ops = &conn_ops, .executor = &executor, .site = &site, .scratch = &scratch, .stdio = !(data[0] & 2)}};
    peer.peer.conn = &w.conn;
    ew__out_init(&w.conn.out, &executor.blocks);
    ew__buf_init(&w.sent, ew_env_default(), SIZE_MAX / 2);
    run(&w, &peer.peer, data + 1, size - 1);
    ew__buf_done(&w.sent);
    ew__out_done(&w.conn.out);
    ew__actions_unref(site.actions);
    ew__call_context_done(&calls);
    ew__executor_done(&executor);
    ew__registry_done(&registry);
    return 0;
}
