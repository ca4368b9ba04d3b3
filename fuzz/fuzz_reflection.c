/*
 * fuzz/fuzz_reflection.c: a whole session of the reflection wire, as runtime or as manager, with actions of ours and calls
 * of ours. The first byte of the input chooses the role and how the rest is read: as messages, one on each line, which
 * are framed here (one that is interrupted goes on in the next fragment), or as the bytes of frames, also with the opening
 * handshake before them. 0xff with the byte behind it is something that happens: a call, input, a cancel, time, a peer that
 * does not read. Whatever happens: what leaves is whole frames of JSON and nothing after a close frame, every call of
 * ours ends once, and nothing is left behind.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "session.h"
#include "wire/reflection/reflection.h"

#define CALLS 8
#define CALLS_IN_ALL 60 /* of ours: callers that begin anew at once must stop some time */

/* The first byte. */
enum { MANAGER = 1, BYTES = 2, HANDSHAKE = 4, NOT_REGISTERED = 8, OWN = 16, GO = 32, EAGER = 64, AGAIN = 128 };

typedef struct world {
    ew__conn conn; /* first */
    ew__peer *peer;
    uint8_t mode;
    bool over;    /* the wire has closed */
    bool stalled; /* the peer does not read */
    bool was_full;
    bool headed;   /* the request of the handshake has been seen */
    bool close;    /* a close frame has left */
    bool fragment; /* the last frame of ours goes on */
    ew__buf sent;  /* bytes of a frame that is not whole yet */
    ew_call *calls[CALLS];
    unsigned n_calls, n_opened, n_ended;
    bool full; /* callers of ours take no chunk */
} world;

/* ---- what leaves ---- */

/* The size of the frame that the bytes begin with; 0: it is not whole. Keys are zero, so that a mask changes nothing. */
static size_t frame_size(const uint8_t *p, size_t n, size_t *ret_head) {
    uint64_t len = n >= 2 ? p[1] & 0x7f : 0;
    size_t more = len == 127 ? 8 : len == 126 ? 2 : 0;
    *ret_head = 2 + more + (n >= 2 && p[1] & 0x80 ? 4 : 0);
    if (n < *ret_head)
        return 0;
    for (size_t i = 0; i < more; i++)
        len = (i ? len << 8 : 0) | p[2 + i];
    return n - *ret_head < len ? 0 : *ret_head + (size_t)len;
}

static void check_frame(world *w, const uint8_t *p, size_t head, size_t size) {
    unsigned opcode = p[0] & 0x0f;
    check((p[0] & 0xf0) == 0x80 && !w->close);
    check(((p[1] & 0x80) != 0) == !(w->mode & MANAGER)); /* whoever has dialled masks */
    check(opcode == 1 || (opcode >= 8 && opcode <= 10 && size - head <= 125));
    if (opcode == 1)
        check(ew_json_check(ew__str((const char *)p + head, size - head), NULL) == EW_OK);
    w->close = opcode == 8;
}

static void check_sent(world *w) {
    size_t head, size;
    if (!w->headed && w->sent.len >= 4 && memcmp(w->sent.ptr + w->sent.len - 4, "\r\n\r\n", 4) == 0) {
        w->headed = true;
        ew__buf_clear(&w->sent);
    }
    while (w->headed && w->sent.len > 0 && (size = frame_size((uint8_t *)w->sent.ptr, w->sent.len, &head)) > 0) {
        check_frame(w, (uint8_t *)w->sent.ptr, head, size);
        ew__buf_drop(&w->sent, size);
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
    check_sent(w);
}

/* ---- the connection ---- */

static void on_send(ew__conn *conn) {
    world *w = (world *)(void *)conn;
    check(!w->over || conn->out.bytes == 0);
    w->was_full = w->was_full || conn->out.bytes >= conn->executor->limits->out_high_bytes;
}

static void on_hurry(ew__conn *conn) { take_output((world *)(void *)conn); }

static void on_read(ew__conn *conn, bool on) {
    (void)conn;
    (void)on;
}

static void on_over(ew__conn *conn) { ((world *)(void *)conn)->over = true; }

static void open_call(world *w, unsigned how);

static void on_ready(ew__conn *conn) {
    world *w = (world *)(void *)conn;
    if ((w->mode & EAGER) && w->mode & MANAGER && w->peer->wire->capacity(w->peer) > 0)
        open_call(w, 1);
}

static const char *on_greet(ew__conn *conn, const ew__runtime_identity *who) {
    (void)conn;
    check(who->id.len > 0);
    return who->id.ptr[0] == '-' ? "no" : NULL;
}

static const ew__conn_ops conn_ops = {.send = on_send,
                                      .hurry = on_hurry,
                                      .read = on_read,
                                      .finish = on_over,
                                      .abort = on_over,
                                      .ready = on_ready,
                                      .greet = on_greet};

static void on_telemetry(ew__site *site, ew_str url) {
    (void)site;
    check(url.len > 0);
}

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
    if (w->mode & AGAIN)
        open_call(w, w->n_opened);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};

static void open_call(world *w, unsigned how) {
    unsigned slot = w->n_calls % CALLS;
    if (w->calls[slot] || w->n_opened >= CALLS_IN_ALL || !(w->mode & MANAGER))
        return;
    ew_call *call = ew__call_new(w->conn.executor, &caller, w);
    if (!call)
        abort();
    w->n_calls++;
    w->n_opened++;
    call->kind = how & 8 ? EW__CALL_LIST : EW__CALL_RUN;
    call->key = EW_STR("/f/k");
    call->input = EW_STR("[1,\n2]");
    call->wants_chunks = (how & 1) != 0;
    call->has_input = (how & 2) != 0;
    if (how & 4) {
        call->context = EW_STR("{}");
        call->labels = EW_STR("{\"a\":\"b\"}");
        call->hops = 3;
    }
    if (how & 16) {
        call->key = EW_STR("/f/\"k\"");
        call->deadline = w->conn.executor->now + EW__MS(1000);
    }
    w->calls[slot] = call;
    ew__call_open_on(call, &opening, w->peer);
}

static void pass_time(world *w, uint64_t ms) {
    now_ns += EW__MS(ms);
    ew__executor_read_clock(w->conn.executor);
    ew__timers_run(&w->conn.executor->timers, w->conn.executor->now);
}

/* ---- what happens ---- */

/* What the owner of the connection does after everything. */
static void settle(world *w) {
    take_output(w);
    if (!w->over && w->was_full && w->conn.out.bytes <= w->conn.executor->limits->out_low_bytes) {
        w->was_full = false;
        w->peer->wire->drained(w->peer);
    }
    pass_time(w, 0);
    take_output(w);
}

static void say(world *w, const uint8_t *bytes, size_t n, size_t step) {
    for (size_t at = 0; at < n && !w->over; at += step) {
        step = step && step < n - at ? step : n - at;
        uint8_t *copy = malloc(step); /* of exactly this size, so that reading past it is seen */
        if (!copy)
            abort();
        memcpy(copy, bytes + at, step);
        w->peer->wire->input(w->peer, copy, step); /* also when it has asked to stop: a read may be on its way */
        free(copy);
        settle(w);
    }
}

/* fin false: the rest of the message comes in another frame. */
static void say_frame(world *w, unsigned opcode, bool fin, const uint8_t *payload, size_t n, size_t step) {
    bool mask = (w->mode & MANAGER) != 0, control = opcode >= 8;
    uint8_t *frame = malloc(n + 8);
    check(frame != NULL && n <= UINT16_MAX);
    size_t at = 0;
    frame[at++] = (uint8_t)((fin ? 0x80 : 0) | (w->fragment && !control ? 0 : opcode));
    frame[at++] = (uint8_t)((mask ? 0x80 : 0) | (n > 125 ? 126 : n));
    if (n > 125) {
        frame[at++] = (uint8_t)(n >> 8);
        frame[at++] = (uint8_t)n;
    }
    memset(frame + at, 0, mask ? 4 : 0);
    at += mask ? 4 : 0;
    if (n > 0)
        memcpy(frame + at, payload, n);
    say(w, frame, at + n, step);
    free(frame);
    w->fragment = control ? w->fragment : !fin;
}

static void act_rest(world *w, uint8_t what) {
    switch (what & 31) {
    case 0:
        w->peer->wire->drain(w->peer);
        break;
    case 1:
    case 2:
        say_frame(w, what & 1 ? 9 : 10, true, NULL, 0, 0);
        break;
    case 3:
        say_frame(w, 8, true, NULL, 0, 0);
        break;
    case 4:
    case 5:
        w->full = (what & 1) != 0;
        for (unsigned i = 0; i < CALLS && !w->full; i++)
            if (w->calls[i])
                ew__call_room(w->calls[i]);
        break;
    default:
        w->stalled = (what & 1) != 0;
    }
}

static void act(world *w, uint8_t what) {
    ew_call *call = w->calls[what % CALLS];
    switch (what >> 5) {
    case 0:
        open_call(w, what);
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
    default:
        act_rest(w, what);
    }
}

/* The next piece: up to something that happens, or in messages to the end of the line. */
static size_t piece(const world *w, const uint8_t *data, size_t size, bool *ret_line) {
    const uint8_t *mark = memchr(data, 0xff, size);
    size_t n = mark ? (size_t)(mark - data) : size;
    const uint8_t *newline = w->mode & BYTES || n == 0 ? NULL : memchr(data, '\n', n);
    *ret_line = newline != NULL;
    return newline ? (size_t)(newline - data) : n;
}

static void feed(world *w, const uint8_t *data, size_t size) {
    size_t step = size > 0 ? data[0] % 61 : 0; /* 0: all at once */
    for (size_t at = 1; at < size && !w->over;) {
        bool line;
        size_t n = piece(w, data + at, size - at, &line);
        if (n == 0 && !line) {
            act(w, at + 1 < size ? data[at + 1] : 0);
            at += 2;
        } else if (w->mode & BYTES) {
            say(w, data + at, n, step);
            at += n;
        } else {
            say_frame(w, 1, line, data + at, n, step);
            at += n + line;
        }
        settle(w);
    }
}

static void say_register(world *w) {
    static const char own[] = "{\"jsonrpc\":\"2.0\",\"method\":\"register\",\"params\":{\"id\":\"a\",\"pid\":1,"
                              "\"genkitVersion\":\"everywire/0\"}}";
    static const char go[] = "{\"jsonrpc\":\"2.0\",\"method\":\"register\",\"params\":{\"id\":\"a\",\"pid\":1,"
                             "\"genkitVersion\":\"go/1\"}}";
    static const char other[] = "{\"jsonrpc\":\"2.0\",\"method\":\"register\",\"params\":{\"id\":\"a\",\"pid\":1},"
                                "\"id\":\"1\"}";
    const char *text = w->mode & OWN ? own : w->mode & GO ? go : other;
    say_frame(w, 1, true, (const uint8_t *)text, strlen(text), 0);
}

static void run(world *w, const uint8_t *data, size_t size) {
    const ew__wire *wire = w->peer->wire;
    check(wire->init(w->peer) == EW_OK);
    settle(w);
    if ((w->mode & (MANAGER | NOT_REGISTERED)) == MANAGER)
        say_register(w);
    feed(w, data, size);
    if (!w->over)
        wire->eof(w->peer);
    pass_time(w, 100);
    wire->gone(w->peer, EW_OK);
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
                     .authority = EW_STR("localhost:1"),
                     .telemetry = EW_STR("http://t"),
                     .on_telemetry = on_telemetry};
    bool handshake = (data[0] & (MANAGER | BYTES | HANDSHAKE)) == (BYTES | HANDSHAKE);
    world w = {.conn = {.ops = &conn_ops, .executor = &executor, .site = &site, .upgraded = !handshake},
               .mode = data[0],
               .headed = !handshake};
    ew__rf_peer *peer = calloc(1, sizeof *peer);
    w.peer = &peer->peer;
    w.conn.scratch = calloc(1, ew__wire_reflection.scratch_size);
    check(peer != NULL && w.conn.scratch != NULL);
    ew__out_init(&w.conn.out, &executor.blocks);
    ew__buf_init(&w.sent, ew_env_default(), SIZE_MAX / 2);
    *w.peer =
        (ew__peer){.wire = &ew__wire_reflection, .conn = &w.conn, .role = w.mode & MANAGER ? EW__CALL : EW__SERVE};
    run(&w, data + 1, size - 1);
    ew__buf_done(&w.sent);
    ew__out_done(&w.conn.out);
    ew__wire_reflection.scratch_done(w.conn.scratch);
    ew__actions_unref(site.actions);
    ew__call_context_done(&calls);
    ew__executor_done(&executor);
    ew__registry_done(&registry);
    free(w.conn.scratch);
    free(peer);
    return 0;
}
