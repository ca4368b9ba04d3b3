/*
 * fuzz/fuzz_stepflow_http.c: whole sessions of Stepflow over HTTP, as component server (with handlers that call back) or
 * as runtime, on three connections of one loop. The first byte of the input chooses the role and how the rest is read,
 * the second the pieces in which bytes arrive: as messages, one on each line, whose heads are written here, or as bytes.
 * 0xff with the byte behind it is something that happens: a call, a cancel, another connection, time, a peer that goes
 * or does not read. In messages the bytes 1 to 8 stand for the ids of calls back, or 1 for that of our last request.
 *
 * Whatever happens: events are lines of ASCII with JSON in them, what we ask is ASCII, every call of ours ends once, and
 * nothing is left behind.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "session.h"
#include "wire/http/http.h"
#include "wire/instance.h"
#include "wire/stepflow/stepflow.h"
#include <stdio.h>

#define CALLS 8
#define CONNS 3
#define CALLS_IN_ALL 60 /* of ours: those that begin anew at once must stop some time */

/* The first byte. */
enum {
    RUNTIME = 1,
    MESSAGES = 2,
    EAGER = 4,
    BUSY = 8,
    OTHERS = 16,
    SHARED = 32 /* the port */,
    NO_BLOBS = 64,
    BLOB_API = 128
};

typedef struct world world;

typedef struct side {
    ew__conn conn; /* first */
    world *w;
    ew__peer *peer; /* NULL: gone */
    bool over;      /* the wire has closed */
    bool stalled;   /* the other end does not read */
    bool was_full;
    bool streams; /* runtime: the present answer is a stream of events */
    ew__buf sent; /* bytes of a line that is not whole yet */
    char id[64];  /* runtime: of the last request that left */
} side;

struct world {
    uint8_t mode;
    ew__executor *executor;
    ew__site *site;
    side sides[CONNS], *now;
    void *scratch;
    ew__sf_scratch asked;
    ew_call *calls[CALLS]; /* of ours: calls back, or those to a server */
    unsigned n_calls, n_opened, n_ended;
};

static world *world_of(const ew_call *call) { return call->caller_ud; }

static bool is_runtime(const world *w) { return (w->mode & RUNTIME) != 0; }

/* ---- random bytes ---- */

/* Of calls back: the loop and 128 bits, of which only the last hexadecimal digit differs here. */
#define ID_HEAD "0-ew0000000000000000000000000000000"

static uint8_t n_drawn;

/* Draws of 16 bytes (ids, seeds of maps) count from 1 to 8 and start again, so that an input can name ids. */
static void counted_random(void *ud, void *bytes, size_t n) {
    fuzz_random(ud, bytes, n);
    if (n == 16)
        ((uint8_t *)bytes)[15] = (uint8_t)(n_drawn++ % 8 + 1);
}

/* ---- what leaves ---- */

static void check_line(side *s, ew_str line) {
    static const char id[] = "\"id\":\"";
    for (size_t i = 0; i < line.len; i++)
        check((unsigned char)line.ptr[i] < 0x7f || !is_runtime(s->w));
    if (!is_runtime(s->w) && line.len > 6 && memcmp(line.ptr, "data: ", 6) == 0) {
        check(ew_json_check(ew__str(line.ptr + 6, line.len - 6), NULL) == EW_OK);
        for (size_t i = 0; i < line.len; i++)
            check((unsigned char)line.ptr[i] < 0x7f);
    }
    const char *at = line.len ? memmem(line.ptr, line.len, id, sizeof id - 1) : NULL;
    if (is_runtime(s->w) && at) {
        const char *begin = at + sizeof id - 1, *end = memchr(begin, '"', (size_t)(line.ptr + line.len - begin));
        check(end != NULL);
        (void)snprintf(s->id, sizeof s->id, "%.*s", (int)(end - begin), begin);
    }
}

/* Bodies have no newline behind them: what is there at the end of a turn is a line, too. */
static void check_sent(side *s) {
    while (s->sent.len > 0) {
        const char *newline = memchr(s->sent.ptr, '\n', s->sent.len);
        size_t n = newline ? (size_t)(newline - s->sent.ptr) : s->sent.len;
        check_line(s, ew__str(s->sent.ptr, n));
        ew__buf_drop(&s->sent, newline ? n + 1 : n);
    }
}

static void take_output(side *s) {
    ew__out *out = &s->conn.out;
    while (!s->stalled && out->bytes > 0) {
        ew__out_vec vec[1];
        check(ew__out_peek(out, vec, 1) == 1);
        check(ew__buf_add(&s->sent, vec[0].ptr, vec[0].len) == EW_OK);
        ew__out_consume(out, vec[0].len);
    }
    if (out->bytes == 0)
        check_sent(s);
}

/* ---- connections ---- */

static side *side_of(ew__conn *conn) { return (side *)(void *)conn; }

static void on_send(ew__conn *conn) {
    side *s = side_of(conn);
    s->was_full = s->was_full || conn->out.bytes >= conn->executor->limits->out_high_bytes;
}

static void on_read(ew__conn *conn, bool on) {
    (void)conn;
    (void)on;
}

static void on_over(ew__conn *conn) { side_of(conn)->over = true; }

static ew_err on_aside(ew__conn *conn, const void *bytes, size_t n) {
    const char *body = memmem(bytes, n, "\r\n\r\n", 4), *end = (const char *)bytes + n;
    check(body != NULL);
    body += 4;
    check(ew_json_check(ew__str(body, (size_t)(end - body)), NULL) == EW_OK);
    for (const char *at = body; at < end; at++) /* in the head the server's own name may be anything */
        check((unsigned char)*at < 0x7f);
    return side_of(conn)->w->mode & BUSY ? EW_EBUSY : EW_OK;
}

static void *on_shared(ew__conn *conn, const ew__wire *wire) {
    check(wire == &ew__wire_stepflow);
    return &side_of(conn)->w->asked;
}

static const ew__conn_ops conn_ops = {
    .send = on_send, .read = on_read, .finish = on_over, .abort = on_over, .one_shot = on_aside, .shared = on_shared};

static const ew__wire *wire_of(const world *w) { return is_runtime(w) ? &ew__wire_stepflow_http : &ew__wire_http; }

static void connect(world *w, side *s) {
    const ew__wire *wire = wire_of(w);
    *s = (side){.w = w, .conn = {.ops = &conn_ops, .executor = w->executor, .site = w->site, .scratch = w->scratch}};
    ew__out_init(&s->conn.out, &w->executor->blocks);
    ew__buf_init(&s->sent, ew_env_default(), SIZE_MAX / 2);
    s->peer = calloc(1, is_runtime(w) ? wire->call_size : wire->serve_size);
    if (!s->peer)
        abort();
    *s->peer = (ew__peer){.wire = wire, .conn = &s->conn, .role = is_runtime(w) ? EW__CALL : EW__SERVE};
    check(wire->init(s->peer) == EW_OK);
}

static void lose(side *s, ew_err why) {
    if (!s->peer)
        return;
    s->over = true;
    s->peer->wire->gone(s->peer, why);
    free(s->peer);
    s->peer = NULL;
    s->stalled = true; /* nobody reads what was left */
    ew__buf_done(&s->sent);
    ew__out_done(&s->conn.out);
}

static void after(world *w) {
    for (unsigned i = 0; i < CONNS; i++) {
        side *s = &w->sides[i];
        if (!s->peer)
            continue;
        take_output(s);
        if (!s->over && s->was_full && s->conn.out.bytes <= w->executor->limits->out_low_bytes) {
            s->was_full = false;
            if (s->peer->wire->drained)
                s->peer->wire->drained(s->peer);
            take_output(s);
        }
        if (s->over)
            lose(s, EW_OK);
    }
}

static void pass_time(world *w, uint64_t ms) {
    now_ns += EW__MS(ms);
    ew__executor_read_clock(w->executor);
    ew__timers_run(&w->executor->timers, w->executor->now);
    after(w);
}

/* ---- calls of ours ---- */

static void call_back(ew_call *origin, ew_str params, bool eager);
static void open_call(side *s, unsigned how);

static ew_err no_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static void forget(world *w, const ew_call *call) {
    for (unsigned i = 0; i < CALLS; i++)
        if (w->calls[i] == call)
            w->calls[i] = NULL;
    w->n_ended++;
}

static void remember(world *w, ew_call *call) {
    if (!w->calls[w->n_calls % CALLS])
        w->calls[w->n_calls % CALLS] = call;
    w->n_calls++;
    w->n_opened++;
}

static void on_end(ew_call *call, const ew__end *end) {
    world *w = world_of(call);
    check(end->status != EW_STATUS_OK || ew_json_check(end->result, NULL) == EW_OK);
    forget(w, call);
    ew__call_release(call);
    if (w->mode & EAGER && w->n_calls < CALLS_IN_ALL)
        open_call(&w->sides[w->n_calls % CONNS], w->n_calls % 8);
}

static const ew__caller_ops caller = {.chunk = no_chunk, .end = on_end};

/* To a server. */
static void open_call(side *s, unsigned how) {
    static const char *const keys[] = {"k", "/k", "\xc3\xa9", "/a/b"};
    world *w = s->w;
    if (!s->peer || s->over || w->n_calls >= CALLS_IN_ALL)
        return;
    ew_call *call = ew__call_new(w->executor, &caller, w);
    if (!call)
        abort();
    call->kind = how & 4 ? EW__CALL_LIST : EW__CALL_RUN;
    call->key = ew_str_from(keys[how % 4]);
    call->input = EW_STR("[\"\xc3\xa9\",\n2]");
    call->context = how & 8 ? EW_STR("{\"run_id\":\"r\",\"x\":[\n\"\xc3\xa9\"]}") : EW_STR("");
    ew__trace_new(&call->trace, &w->executor->rng);
    if (how & 16)
        call->deadline = w->executor->now + EW__MS(300);
    remember(w, call);
    ew__call_open_on(call, &opening, s->peer);
}

/* ---- actions that session.h does not have: they ask their runtime first ---- */

static world *the_world; /* handlers have no other way to it */

typedef struct back {
    ew_call *origin; /* a reference */
    bool eager;
} back;

static void on_back_end(ew_call *call, const ew__end *end) {
    back b = *(back *)call->caller_ud;
    bool good = end->status == EW_STATUS_OK;
    check(!good || ew_json_check(end->result, NULL) == EW_OK);
    forget(the_world, call);
    if (!good && b.eager && the_world->n_calls < CALLS_IN_ALL)
        call_back(b.origin, EW_STR("{\"again\":1}"), true);
    else if (good)
        (void)ew_call_done(b.origin, end->result);
    else
        (void)ew_call_fail_with(b.origin, &end->fault);
    ew__call_release(call);
    ew_call_unref(b.origin);
}

static const ew__caller_ops back_caller = {.chunk = no_chunk, .end = on_back_end};

static void on_back_open(ew_call *call) {
    ew_call *origin = ((back *)call->caller_ud)->origin;
    if (!origin->caller_open || origin->caller->call_back(origin, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_UNAVAILABLE, EW_STR("not taken"));
}

static const ew__callee_ops back_opening = {.open = on_back_open};

static void call_back(ew_call *origin, ew_str params, bool eager) {
    ew_call *call = ew__call_new(origin->executor, &back_caller, NULL);
    back *b = call ? ew_call_alloc(call, sizeof *b) : NULL;
    if (!b)
        abort();
    *b = (back){.origin = ew_call_ref(origin), .eager = eager};
    call->caller_ud = b;
    call->key = EW_STR("blobs/put");
    call->input = params;
    ew__trace_new(&call->trace, &origin->executor->rng);
    remember(the_world, call);
    ew__call_open_on(call, &back_opening, NULL);
}

static void ask(ew_call *call, void *arg) {
    (void)ew_call_on_cancel(call, on_cancel, arg);
    call_back(call, ew_call_input(call), arg != NULL);
}

static void ask_twice(ew_call *call, void *arg) {
    ew_call_ref(call);
    ask(call, arg);
    ask(call, arg);
    ew_call_unref(call);
}

/* ---- what comes ---- */

static void say(side *s, const void *bytes, size_t n, size_t step) {
    for (size_t at = 0; at < n && s->peer && !s->over;) {
        size_t room = 0, some = step && step < n - at ? step : n - at;
        const ew__wire *wire = s->peer->wire;
        uint8_t *place = wire->reserve ? wire->reserve(s->peer, &room) : NULL;
        if (place) {
            some = some < room ? some : room;
            memcpy(place, (const char *)bytes + at, some);
        }
        wire->input(s->peer, place ? place : (const uint8_t *)bytes + at, some);
        at += some;
        after(s->w);
    }
}

/* The text with ids in the place of bytes. */
static void add_text(const side *s, ew__buf *out, const uint8_t *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (text[i] < 1 || text[i] > 8)
            (void)ew__buf_char(out, (char)text[i]);
        else if (is_runtime(s->w))
            (void)ew__buf_cstr(out, s->id);
        else
            (void)ew__buf_printf(out, ID_HEAD "%x", (unsigned)text[i]);
    }
}

/* A line: to a server a request; to a runtime an answer, or behind a '>' an event. */
static void say_message(side *s, const uint8_t *text, size_t n, size_t step) {
    ew__buf body, bytes;
    bool event = is_runtime(s->w) && n > 0 && text[0] == '>';
    ew__buf_init(&body, ew_env_default(), SIZE_MAX / 2);
    ew__buf_init(&bytes, ew_env_default(), SIZE_MAX / 2);
    add_text(s, &body, event ? text + 1 : text, event ? n - 1 : n);
    if (!is_runtime(s->w)) {
        (void)ew__buf_printf(&bytes,
                             "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                             "Content-Length: %zu\r\n\r\n",
                             body.len);
    } else if (event) {
        if (!s->streams)
            (void)ew__buf_cstr(&bytes, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                       "Transfer-Encoding: chunked\r\n\r\n");
        (void)ew__buf_printf(&bytes, "%zx\r\ndata: ", body.len + 8);
    } else {
        (void)ew__buf_printf(&bytes, "%sHTTP/1.1 %d OK\r\nContent-Length: %zu\r\n\r\n", s->streams ? "0\r\n\r\n" : "",
                             body.len ? 200 : 202, body.len);
    }
    s->streams = event;
    (void)ew__buf_str(&bytes, ew__buf_view(&body));
    if (event)
        (void)ew__buf_cstr(&bytes, "\n\n\r\n");
    check(bytes.err == EW_OK);
    say(s, bytes.ptr, bytes.len, step);
    ew__buf_done(&body);
    ew__buf_done(&bytes);
}

/* ---- what happens ---- */

static void hear_of_others(world *w, uint8_t what) {
    char text[100];
    int n = snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":\"" ID_HEAD "%d\",\"%s\":{}}", what & 7,
                     what & 8 ? "error" : "result");
    ew__wire_stepflow.on_broadcast(&w->asked, w->executor, &(ew__principal){.kind = EW__WHO_STRANGER},
                                   ew__str(text, (size_t)n));
}

static void act(world *w, uint8_t what) {
    ew_call *call = w->calls[what % CALLS];
    side *s = w->now;
    switch (what >> 5) {
    case 0:
        if (is_runtime(w))
            open_call(s, what);
        else
            hear_of_others(w, what);
        break;
    case 1:
        if (call)
            ew__call_cancel(call, what & 16 ? EW__CANCEL_ASKED : EW__CANCEL_GONE);
        break;
    case 2:
        w->now = &w->sides[what % CONNS];
        if (!w->now->peer)
            connect(w, w->now);
        break;
    case 3:
        if (s->peer && !s->over && (what & 1))
            s->peer->wire->eof(s->peer);
        else
            lose(s, what & 2 ? EW_ECLOSED : EW_OK);
        break;
    case 4:
        pass_time(w, (uint64_t)1 << (what & 15));
        break;
    case 5:
        w->site->draining = (what & 1) != 0;
        break;
    default:
        s->stalled = !s->peer || (what & 1) != 0;
    }
    after(w);
}

static void feed(world *w, const uint8_t *data, size_t size) {
    size_t step = size > 0 ? data[0] % 61 : 0; /* 0: all at once */
    for (size_t at = 1; at < size;) {
        const uint8_t *mark = memchr(data + at, 0xff, size - at);
        size_t n = mark ? (size_t)(mark - data) - at : size - at;
        const uint8_t *newline = w->mode & MESSAGES && n > 0 ? memchr(data + at, '\n', n) : NULL;
        if (n == 0) {
            act(w, at + 1 < size ? data[at + 1] : 0);
            at += 2;
            continue;
        }
        n = newline ? (size_t)(newline - data) - at : n;
        if (w->mode & MESSAGES)
            say_message(w->now, data + at, n, step);
        else
            say(w->now, data + at, n, step);
        at += n + (newline != NULL);
        pass_time(w, 0);
    }
}

/* ---- a session ---- */

static bool on_tell(struct ew__broadcast *others, const ew__executor *from, const ew__wire *wire, unsigned to,
                    const ew__principal *sender, ew_str text) {
    (void)others;
    (void)from;
    check(sender && wire == &ew__wire_stepflow && ew_json_check(text, NULL) == EW_OK);
    return to % 2 == 0;
}

static ew_err put(ew__blobs *blobs, ew_str json, ew_str type, char ret_id[EW__BLOB_ID_LEN]) {
    (void)blobs;
    check(ew_json_check(json, NULL) == EW_OK && type.len == 4);
    memset(ret_id, 'a', EW__BLOB_ID_LEN);
    return json.len % 3 ? EW_OK : EW_ELIMIT;
}

static ew_err get(ew__blobs *blobs, ew_str id, ew__buf *out, ew_str *ret_type) {
    (void)blobs;
    *ret_type = EW_STR("data");
    return id.len == 1 ? ew__buf_cstr(out, "[\"\xc3\xa4\"]") : EW_ENOTFOUND;
}

static ew_err open_way(struct ew__outbound *ways, ew__executor *executor, const ew__wire *wire, ew_str url,
                       ew_call *outgoing) {
    (void)ways;
    (void)executor;
    check(wire == &ew__wire_blobs && url.len > 0);
    if (url.len % 2)
        return EW_EINVAL;
    ew__call_fail_as(outgoing, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("no"));
    return EW_OK;
}

static void run(world *w, const uint8_t *data, size_t size) {
    for (unsigned i = 0; i < CONNS; i++)
        connect(w, &w->sides[i]);
    w->now = &w->sides[0];
    feed(w, data, size);
    w->mode = (uint8_t)(w->mode & ~EAGER);
    w->n_calls = CALLS_IN_ALL; /* now they stop */
    for (unsigned i = 0; i < CONNS; i++)
        if (w->sides[i].peer && !w->sides[i].over)
            w->sides[i].peer->wire->eof(w->sides[i].peer);
    pass_time(w, 100);
    for (unsigned i = 0; i < CONNS; i++)
        lose(&w->sides[i], EW_OK);
    pass_time(w, 1000); /* handlers that look late end their calls */
    check(w->n_ended == w->n_opened && w->executor->calls->live == 0);
    check(ew__timers_next(&w->executor->timers) == EW__NEVER);
    check(!w->asked.has_asked || w->asked.asked.n == 0);
    check(ew__sf_greeting_of(w->site)->n_peers == 0 && ew__sf_greeting_of(w->site)->waiting == NULL);
}

static void add_actions(ew__registry *registry, const ew_env *env) {
    static int eagerly;
    static const struct {
        const char *key;
        ew_handler_fn fn;
        void *arg;
    } table[] = {{"/f/hold", ask, NULL}, {"/f/again", ask, &eagerly}, {"/f/twice", ask_twice, NULL}};
    add_session_actions(registry, env);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        check(ew__registry_add(registry, table[i].key, &ew__local_callee, NULL, table[i].fn, table[i].arg, NULL) ==
              EW_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ew_env env = *ew_env_default();
    env.now_ns = fuzz_now;
    env.random = counted_random;
    n_drawn = 0;
    now_ns = 1000000000;
    ew_limits limits = {.frame_bytes = 4096,
                        .pipeline_bytes = 1024,
                        .out_high_bytes = 512,
                        .out_low_bytes = 128,
                        .out_max_bytes = 4096,
                        .runtime_wait_ms = 100,
                        .calls_per_connection = 3};
    ew_limits_complete(&limits);
    if (size < 1)
        return 0;
    ew__registry registry;
    ew__executor executor = {.ops = &executor_ops};
    add_actions(&registry, &env);
    ew__executor_init(&executor, &env, &limits);
    ew__call_context calls;
    ew__call_context_init(&calls, &executor);
    ew__blobs blobs = {.put = put, .get = get};
    struct ew__broadcast others = {.send = on_tell};
    struct ew__outbound ways = {.open = open_way};
    ew__instance instance = {.service = EW_STR("s"), .lock = PTHREAD_MUTEX_INITIALIZER};
    ew__site site = {.actions = ew__registry_get(&registry), .port = 80, .authority = EW_STR("localhost")};
    site.guest = data[0] & BLOB_API && !(data[0] & NO_BLOBS) ? &ew__blobs_guest : &ew__stepflow_guest;
    site.path = data[0] & BLOB_API ? EW_STR("/blobs") : EW_STR("");
    site.token = data[0] & BLOB_API ? EW_STR("t") : EW_STR("");
    site.blob_api = data[0] & BLOB_API ? EW_STR("http://b") : EW_STR("");
    site.instance = data[0] & OTHERS ? &instance : NULL;
    site.outbound = &ways;
    site.only_guest = !(data[0] & SHARED);
    site.broadcast = data[0] & OTHERS ? &others : NULL;
    site.blobs = data[0] & NO_BLOBS ? NULL : &blobs;
    world w = {.mode = data[0], .executor = &executor, .site = &site};
    w.scratch = calloc(1, wire_of(&w)->scratch_size);
    check(w.scratch != NULL);
    the_world = &w;
    run(&w, data + 1, size - 1);
    ew__sf_scratch_done(&w.asked);
    ew__actions_unref(site.actions);
    ew__call_context_done(&calls);
    ew__executor_done(&executor);
    ew__registry_done(&registry);
    free(w.scratch);
    return 0;
}
