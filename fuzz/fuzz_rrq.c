/*
 * fuzz/fuzz_rrq.c: whole sessions of the rrq wire, as runner or as orchestrator, on two connections of one loop, with
 * actions of ours and calls of ours. The first byte of the input chooses the role and how the rest is read, the second
 * the pieces in which bytes arrive: as messages, one on each line, whose lengths are written here, or as bytes. 0xff
 * with the byte behind it is something that happens: a call, a cancel, time, a peer that does not read or goes. In
 * messages to an orchestrator the bytes 1 to 8 stand for the ids of its requests, 14 to 21 for those of their jobs.
 *
 * Whatever happens: what leaves is whole frames of JSON and nothing after the end, no runner says more than it was
 * asked, every call of ours ends once, and nothing is left behind.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "session.h"
#include "wire/rrq/rrq.h"
#include <stdio.h>

#define CALLS 8
#define CONNS 2
#define CALLS_IN_ALL 60 /* of ours: callers that begin anew at once must stop some time */
#define PADDING ((size_t)40000)

/* The first byte. */
enum { ORCHESTRATOR = 1, MESSAGES = 2, ASIDE = 4, OTHERS = 8, PAD = 16, EAGER = 32, AGAIN = 64 };

typedef struct world world;

typedef struct side {
    ew__conn conn; /* first */
    world *w;
    ew__rrq_peer *peer; /* NULL: gone */
    bool over;          /* the wire has closed */
    bool stalled;       /* the other end does not read */
    bool was_full;
    unsigned n_came; /* messages, or what might be some */
    unsigned n_left;
    ew__buf sent; /* bytes of a frame that is not whole yet */
} side;

struct world {
    uint8_t mode;
    ew__executor *executor;
    side sides[CONNS], *now;
    void *scratch;
    ew__buf told; /* what the other loops are to be told, in lines */
    ew_call *calls[CALLS];
    char ids[CALLS][2][64]; /* of requests and jobs that left last, without quotes */
    unsigned n_ids, n_calls, n_opened, n_ended;
};

/* ---- actions that session.h does not have ---- */

static void deaf(ew_call *call, void *arg) { check(ew_call_after(call, 5000, look, arg) == EW_OK); }

static void hang(ew_call *call, void *arg) { (void)ew_call_on_cancel(call, on_cancel, arg); }

static void fail(ew_call *call, void *arg) {
    (void)arg;
    ew_fault fault = {.status = EW_STATUS_UNAVAILABLE, .message = EW_STR("m"), .details = ew_call_input(call)};
    fault.retryable = ew_call_context(call).len % 2 == 0;
    fault.retry_after_ms = ew_call_input(call).len % 3;
    (void)ew_call_fail_with(call, &fault);
}

/* ---- what comes ---- */

static bool is_same(ew_str a, ew_str b) { return a.len == b.len && (a.len == 0 || a.ptr == b.ptr); }

/* What is copied from a context that came is what would be written from its members. */
static void check_reuse(const ew__rrq_request *came) {
    ew__rrq_context context;
    ew__buf head, tail[2];
    if (came->spans.rest == 0)
        return;
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            ew__rrq_reuse_context(came->context, &came->spans, &context);
        else
            ew__rrq_read_context(came->context, &context);
        ew__rrq_ask ask = {.ids = {came->ids.request, context.value[EW__RRQ_JOB]},
                           .attempt = came->attempt,
                           .labels = came->labels,
                           .context = &context};
        ew__buf_init(&head, ew_env_default(), SIZE_MAX / 2);
        ew__buf_init(&tail[i], ew_env_default(), SIZE_MAX / 2);
        check(ew__rrq_write_request(&head, &tail[i], &ask) == EW_OK);
        ew__buf_done(&head);
    }
    check(ew__str_is(ew__buf_view(&tail[0]), ew__buf_view(&tail[1])));
    ew__buf_done(&tail[0]);
    ew__buf_done(&tail[1]);
}

/* What the short way of reading takes, the ordinary one takes, and both say the same. */
static void check_known(ew_str text) {
    ew__rrq_request known, other;
    ew__rrq_message m;
    if (!ew__rrq_read_known(text, &known))
        return;
    check(ew__json_validate(text, NULL) == EW_OK);
    check(ew__rrq_read(text, &m) == NULL && m.kind == EW__RRQ_REQUEST && !ew__rrq_read_request(&m, &other));
    check(!known.foreign && !other.foreign && known.attempt == other.attempt && known.hops == other.hops);
    check(known.has_deadline == other.has_deadline && (!known.has_deadline || known.deadline_ms == other.deadline_ms));
    check(is_same(known.ids.request, other.ids.request) && is_same(known.ids.job, other.ids.job));
    check(is_same(known.function, other.function) && is_same(known.params, other.params));
    check(is_same(known.context, other.context));
    check(is_same(known.labels, other.labels) && is_same(known.trace, other.trace));
    check_reuse(&known);
}

/* ---- what leaves ---- */

/* What the ids of a request are, the input can say by one byte. */
static void note_ids(world *w, ew_str payload) {
    static const char *const names[2] = {"request_id", "job_id"};
    for (unsigned i = 0; i < 2; i++) {
        ew_str id = ew_json_member(payload, ew_str_from(names[i]));
        check(id.len > 2 && id.ptr[0] == '"');
        (void)snprintf(w->ids[w->n_ids % CALLS][i], sizeof w->ids[0][0], "%.*s", (int)(id.len - 2), id.ptr + 1);
    }
    w->n_ids++;
}

static void check_outcome(side *s, ew_str payload) {
    ew_str status = ew_json_member(payload, EW_STR("status")), error = ew_json_member(payload, EW_STR("error"));
    bool success = ew__str_is(status, EW_STR("\"success\""));
    check(ew_json_member(payload, EW_STR("job_id")).len > 0 && status.len > 0);
    check(success == (error.len == 0) && success == (ew_json_member(payload, EW_STR("result")).len > 0));
    check(success || ew_json_member(error, EW_STR("code")).len > 0);
    check(++s->n_left <= s->n_came);
}

static void check_message(side *s, ew_str text) {
    check(ew_json_check(text, NULL) == EW_OK);
    ew_str type = ew_json_member(text, EW_STR("type")), payload = ew_json_member(text, EW_STR("payload"));
    check(ew_json_typeof(payload) == EW_JSON_OBJECT);
    if (!(s->w->mode & ORCHESTRATOR)) {
        check(ew__str_is(type, EW_STR("\"response\"")));
        check_outcome(s, payload);
    } else if (ew__str_is(type, EW_STR("\"request\""))) {
        note_ids(s->w, payload);
    } else {
        check(ew__str_is(type, EW_STR("\"cancel\"")) && ew_json_member(payload, EW_STR("job_id")).len > 0);
    }
}

static void check_sent(side *s) {
    while (s->sent.len >= 4) {
        const uint8_t *p = (const uint8_t *)s->sent.ptr;
        size_t len = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
        check(len > 0 && len <= s->conn.executor->limits->frame_bytes);
        if (s->sent.len - 4 < len)
            break;
        check_message(s, ew__str(s->sent.ptr + 4, len));
        ew__buf_drop(&s->sent, len + 4);
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
    check_sent(s);
}

/* ---- the connections ---- */

static side *side_of(ew__conn *conn) { return (side *)(void *)conn; }

static void on_send(ew__conn *conn) {
    side *s = side_of(conn);
    check(!s->over || conn->out.bytes == 0);
    s->was_full = s->was_full || conn->out.bytes >= conn->executor->limits->out_high_bytes;
}

static void on_read(ew__conn *conn, bool on) {
    (void)conn;
    (void)on;
}

static void on_over(ew__conn *conn) { side_of(conn)->over = true; }

static void open_call(side *s, unsigned how);

static void on_ready(ew__conn *conn) {
    side *s = side_of(conn);
    if ((s->w->mode & EAGER) && s->peer && s->peer->peer.wire->capacity(&s->peer->peer) > 0)
        open_call(s, 1);
}

static ew_err on_aside(ew__conn *conn, const void *bytes, size_t n) {
    side *s = side_of(conn);
    check(n > 4 && ew_json_check(ew__str((const char *)bytes + 4, n - 4), NULL) == EW_OK);
    return s->w->mode & ASIDE ? EW_OK : EW_EBUSY;
}

static const ew__conn_ops conn_ops = {
    .send = on_send, .read = on_read, .finish = on_over, .abort = on_over, .ready = on_ready, .one_shot = on_aside};

/* The other loops are played by this one, which is told what it knows already, later. */
typedef struct fuzz_others {
    struct ew__broadcast base; /* first */
    world *w;
} fuzz_others;

static bool on_tell(struct ew__broadcast *others, const ew__executor *from, const ew__wire *wire, unsigned to,
                    const ew__principal *sender, ew_str text) {
    (void)to;
    world *w = ((fuzz_others *)(void *)others)->w;
    check(from == w->executor && sender->kind == EW__WHO_STRANGER && wire == &ew__wire_rrq &&
          ew_json_check(text, NULL) == EW_OK);
    check(ew__buf_str(&w->told, text) == EW_OK && ew__buf_char(&w->told, '\n') == EW_OK);
    return true;
}

static void tell_all(world *w) {
    while (w->told.len > 0) {
        const char *newline = memchr(w->told.ptr, '\n', w->told.len);
        size_t n = (size_t)(newline - w->told.ptr);
        ew__wire_rrq.on_broadcast(w->scratch, w->executor, &(ew__principal){.kind = EW__WHO_STRANGER},
                                  ew__str(w->told.ptr, n));
        ew__buf_drop(&w->told, n + 1);
    }
}

/* ---- calls of ours ---- */

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    abort(); /* this wire has none */
}

static void on_end(ew_call *call, const ew__end *end) {
    side *s = call->caller_ud;
    world *w = s->w;
    w->n_ended++;
    check(end->status != EW_STATUS_OK || ew_json_check(end->result, NULL) == EW_OK);
    check(end->status == EW_STATUS_OK || end->fault.message.len > 0);
    check(end->fault.details.len == 0 || ew_json_check(end->fault.details, NULL) == EW_OK);
    for (unsigned i = 0; i < CALLS; i++)
        if (w->calls[i] == call)
            w->calls[i] = NULL;
    ew__call_release(call);
    if ((w->mode & AGAIN) && s->peer)
        open_call(s, w->n_opened);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};

static void open_call(side *s, unsigned how) {
    world *w = s->w;
    unsigned slot = w->n_calls % CALLS;
    if (w->calls[slot] || w->n_opened >= CALLS_IN_ALL || !(w->mode & ORCHESTRATOR) || !s->peer || s->over)
        return;
    ew_call *call = ew__call_new(w->executor, &caller, s);
    if (!call)
        abort();
    w->n_calls++;
    w->n_opened++;
    call->kind = how & 8 ? EW__CALL_LIST : EW__CALL_RUN;
    call->key = how & 1 ? EW_STR("f") : EW_STR("runner#f");
    call->input = how & 2 ? EW_STR("null") : EW_STR("{\"a\":\n1}");
    call->context = how & 4 ? EW_STR("{\"job_id\":\"j\",\"x\":1}") : EW_STR("");
    if (how & 16)
        call->deadline = w->executor->now + EW__MS(1000);
    w->calls[slot] = call;
    ew__call_open_on(call, &opening, &s->peer->peer);
}

/* ---- what happens ---- */

static void lose(side *s, ew_err why) {
    ew__rrq_peer *peer = s->peer;
    if (!peer)
        return;
    s->over = true;
    s->peer = NULL;
    ew__wire_rrq.gone(&peer->peer, why);
    free(peer);
}

/* What the owner of the connections does after everything. */
static void settle(world *w) {
    for (unsigned i = 0; i < CONNS; i++) {
        side *s = &w->sides[i];
        take_output(s);
        if (!s->over && s->was_full && s->conn.out.bytes <= w->executor->limits->out_low_bytes) {
            s->was_full = false;
            s->peer->peer.wire->drained(&s->peer->peer);
        }
    }
}

static void pass_time(world *w, uint64_t ms) {
    now_ns += EW__MS(ms);
    ew__executor_read_clock(w->executor);
    ew__timers_run(&w->executor->timers, w->executor->now);
    settle(w);
    tell_all(w);
    settle(w);
}

/* Bytes arrive: where the wire wants them, or in memory of exactly their size, so that reading past it is seen. */
static size_t say_piece(side *s, const uint8_t *bytes, size_t n) {
    size_t size = 0;
    uint8_t *place = ew__wire_rrq.reserve(&s->peer->peer, &size), *copy = NULL;
    if (place) {
        n = n < size ? n : size;
        check(n > 0);
    } else {
        place = copy = malloc(n);
        check(copy != NULL);
    }
    memcpy(place, bytes, n);
    ew__wire_rrq.input(&s->peer->peer, place, n);
    free(copy);
    return n;
}

static void say(side *s, const uint8_t *bytes, size_t n, size_t step) {
    for (size_t at = 0; at < n && !s->over;) {
        at += say_piece(s, bytes + at, step && step < n - at ? step : n - at);
        settle(s->w);
    }
}

/* The ids of the n-th request and its job, or NULL. */
static const char *id_of(const world *w, uint8_t byte) {
    if (!(w->mode & ORCHESTRATOR))
        return NULL;
    return byte >= 1 && byte <= 8 ? w->ids[byte - 1][0] : byte >= 14 && byte <= 21 ? w->ids[byte - 14][1] : NULL;
}

static void say_message(side *s, const uint8_t *text, size_t n, size_t step) {
    ew__buf frame;
    ew__buf_init(&frame, ew_env_default(), SIZE_MAX / 2);
    (void)ew__buf_add(&frame, "head", 4);
    for (size_t i = 0; i < n; i++) {
        const char *id = id_of(s->w, text[i]);
        (void)(id ? ew__buf_cstr(&frame, id) : ew__buf_char(&frame, (char)text[i]));
    }
    for (size_t i = 0; s->w->mode & PAD && i < PADDING; i++)
        (void)ew__buf_char(&frame, ' ');
    check(frame.err == EW_OK);
    for (unsigned i = 0; i < 4; i++)
        frame.ptr[i] = (char)((frame.len - 4) >> (24 - 8 * i) & 0xff);
    s->n_came++;
    check_known(ew__str(frame.ptr + 4, frame.len - 4));
    say(s, (const uint8_t *)frame.ptr, frame.len, step);
    ew__buf_done(&frame);
}

static void act(world *w, uint8_t what) {
    ew_call *call = w->calls[what % CALLS];
    side *s = w->now;
    switch (what >> 5) {
    case 0:
        open_call(s, what);
        break;
    case 1:
        if (call)
            ew__call_cancel(call, EW__CANCEL_ASKED);
        break;
    case 2:
        w->now = &w->sides[what % CONNS];
        break;
    case 3:
        if (!s->over && (what & 1))
            s->peer->peer.wire->eof(&s->peer->peer);
        else
            lose(s, what & 2 ? EW_ECLOSED : EW_OK);
        break;
    case 4:
        pass_time(w, (uint64_t)1 << (what & 15));
        break;
    case 5:
        if (!s->over)
            s->peer->peer.wire->drain(&s->peer->peer);
        break;
    default:
        s->stalled = (what & 1) != 0;
    }
}

/* The next piece: up to something that happens, or in messages to the end of the line. */
static size_t piece(const world *w, const uint8_t *data, size_t size, bool *ret_line) {
    const uint8_t *mark = memchr(data, 0xff, size);
    size_t n = mark ? (size_t)(mark - data) : size;
    const uint8_t *newline = !(w->mode & MESSAGES) || n == 0 ? NULL : memchr(data, '\n', n);
    *ret_line = newline != NULL;
    return newline ? (size_t)(newline - data) : n;
}

static void feed(world *w, const uint8_t *data, size_t size) {
    size_t step = size > 0 ? data[0] % 61 : 0; /* 0: all at once */
    for (size_t at = 1; at < size;) {
        bool line;
        size_t n = piece(w, data + at, size - at, &line);
        side *s = w->now;
        if (n == 0 && !line) {
            act(w, at + 1 < size ? data[at + 1] : 0);
            at += 2;
        } else if (s->over) {
            at += n + line; /* to nobody */
        } else if (w->mode & MESSAGES) {
            say_message(s, data + at, n, step);
            at += n + line;
        } else {
            s->n_came += (unsigned)n; /* at most */
            say(s, data + at, n, step);
            at += n;
        }
        pass_time(w, 0);
    }
}

/* ---- a session ---- */

static void connect(world *w, side *s, ew__site *site) {
    s->w = w;
    s->conn = (ew__conn){.ops = &conn_ops, .executor = w->executor, .site = site, .scratch = w->scratch};
    ew__out_init(&s->conn.out, &w->executor->blocks);
    ew__buf_init(&s->sent, ew_env_default(), SIZE_MAX / 2);
    s->peer = calloc(1, sizeof *s->peer);
    check(s->peer != NULL);
    s->peer->peer =
        (ew__peer){.wire = &ew__wire_rrq, .conn = &s->conn, .role = w->mode & ORCHESTRATOR ? EW__CALL : EW__SERVE};
    check(ew__wire_rrq.init(&s->peer->peer) == EW_OK);
}

static void run(world *w, ew__site *site, const uint8_t *data, size_t size) {
    for (unsigned i = 0; i < CONNS; i++)
        connect(w, &w->sides[i], site);
    w->now = &w->sides[0];
    feed(w, data, size);
    for (unsigned i = 0; i < CONNS; i++)
        if (!w->sides[i].over)
            w->sides[i].peer->peer.wire->eof(&w->sides[i].peer->peer);
    pass_time(w, 100);
    for (unsigned i = 0; i < CONNS; i++)
        lose(&w->sides[i], EW_OK);
    pass_time(w, 10000); /* handlers that do not listen end their calls */
    check(w->n_ended == w->n_opened && w->executor->calls->live == 0);
    check(ew__timers_next(&w->executor->timers) == EW__NEVER);
    for (unsigned i = 0; i < CONNS; i++) {
        ew__buf_done(&w->sides[i].sent);
        ew__out_done(&w->sides[i].conn.out);
    }
}

static void add_actions(ew__registry *registry, const ew_env *env) {
    static const struct {
        const char *key; /* the names that transcripts use */
        ew_handler_fn fn;
    } table[] = {{"/f/echo", echo}, {"/f/sleep", later}, {"/f/stubborn", deaf}, {"/f/never", hang}, {"/f/fail", fail}};
    check(ew__registry_init(registry, env) == EW_OK);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        check(ew__registry_add(registry, table[i].key, &ew__local_callee, NULL, table[i].fn, NULL, NULL) == EW_OK);
}

/* 2023-11-14T22:13:21Z, as in the transcripts. */
static uint64_t fuzz_wall(void *ud) {
    (void)ud;
    return 1700000000000u + now_ns / 1000000u;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ew_env env = *ew_env_default();
    env.now_ns = fuzz_now;
    env.wall_ms = fuzz_wall;
    env.random = fuzz_random;
    now_ns = 1000000000;
    ew_limits limits = {.frame_bytes = 64 * 1024,
                        .out_high_bytes = 512,
                        .out_low_bytes = 128,
                        .out_max_bytes = 8192,
                        .runner_calls = 4,
                        .runner_grace_ms = 200};
    ew_limits_complete(&limits);
    if (size < 1)
        return 0;
    ew__registry registry;
    ew__executor executor = {.ops = &executor_ops};
    add_actions(&registry, &env);
    ew__executor_init(&executor, &env, &limits);
    ew__call_context calls;
    ew__call_context_init(&calls, &executor);
    world w = {.mode = data[0], .executor = &executor, .scratch = calloc(1, ew__wire_rrq.scratch_size)};
    fuzz_others others = {.base = {.send = on_tell}, .w = &w};
    ew__site site = {.actions = ew__registry_get(&registry), .broadcast = w.mode & OTHERS ? &others.base : NULL};
    check(w.scratch != NULL);
    ew__buf_init(&w.told, ew_env_default(), SIZE_MAX / 2);
    run(&w, &site, data + 1, size - 1);
    ew__buf_done(&w.told);
    ew__wire_rrq.scratch_done(w.scratch);
    ew__actions_unref(site.actions);
    ew__call_context_done(&calls);
    ew__executor_done(&executor);
    ew__registry_done(&registry);
    free(w.scratch);
    return 0;
}
