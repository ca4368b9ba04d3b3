/*
 * tests/unit/endpoint/test_pool_listen.c: calls to runtimes that dial us: which one takes a call, what waits and for how
 * long, who comes and goes. The wire is a tiny one of lines, the runtimes are plain sockets on the same loop.
 *
 *     runtime: "hello ID NAME VERSION\n"   "ok N JSON\n"   "no N\n"       we: "list N\n"   "run N KEY\n"   "cancel N\n"
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/pool.h"
#include "endpoint/runtimes.h"
#include "unit/io/world.h"

#include <arpa/inet.h>

/* ---- the wire ---- */

typedef struct line_peer {
    ew__peer peer;
    ew_call *calls[64]; /* by number */
    unsigned next;
    bool greeted;
    size_t n;
    char line[4096];
} line_peer;

static void say(line_peer *p, const char *verb, unsigned number, ew_str key) {
    char text[600];
    int n = snprintf(text, sizeof text, "%s %u %.*s\n", verb, number, (int)key.len, key.len ? key.ptr : "");
    ew__out_add(&p->peer.conn->out, text, (size_t)n);
    p->peer.conn->ops->send(p->peer.conn);
}

static ew_call *take_call(line_peer *p, unsigned number) {
    ew_call *call = number < 64 ? p->calls[number] : NULL;
    if (number < 64)
        p->calls[number] = NULL;
    return call;
}

static void line_cancel(ew_call *call, ew__cancel_why why) {
    line_peer *p = call->callee_ud;
    (void)why;
    for (unsigned i = 0; i < 64; i++) {
        if (p->calls[i] != call)
            continue;
        p->calls[i] = NULL;
        say(p, "cancel", i, ew__str(NULL, 0));
    }
    ew__call_fail_as(call, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, EW_STR("cancelled"));
}

static const ew__callee_ops line_callee = {.cancel = line_cancel};

static ew_err line_open(ew__peer *peer, ew_call *call) {
    line_peer *p = (line_peer *)peer;
    call->callee = &line_callee;
    call->callee_ud = p;
    p->calls[p->next] = call;
    say(p, call->kind == EW__CALL_LIST ? "list" : "run", p->next, call->key);
    p->next = (p->next + 1) % 64;
    return EW_OK;
}

static uint32_t most = 60; /* calls on a connection */

static uint32_t line_capacity(const ew__peer *peer) {
    const line_peer *p = (const line_peer *)peer;
    uint32_t busy = 0;
    for (unsigned i = 0; i < 64; i++)
        busy += p->calls[i] != NULL;
    return p->greeted && busy < most ? most - busy : 0;
}

static void line_hello(line_peer *p, const char *rest) {
    char id[64] = "", name[64] = "", version[64] = "";
    (void)sscanf(rest, "%63s %63s %63s", id, name, version);
    ew__runtime_identity who = {
        .id = ew_str_from(id), .name = ew_str_from(name), .version = ew_str_from(version), .pid = 7};
    const char *refused = p->peer.conn->ops->greet(p->peer.conn, &who);
    p->greeted = refused == NULL;
    if (!p->greeted)
        p->peer.conn->ops->abort(p->peer.conn);
    else
        p->peer.conn->ops->ready(p->peer.conn);
}

static void on_line(line_peer *p, char *line) {
    unsigned number = 0;
    int at = 0;
    if (strncmp(line, "hello ", 6) == 0) {
        line_hello(p, line + 6);
    } else if (sscanf(line, "ok %u %n", &number, &at) >= 1) {
        ew_call *call = take_call(p, number);
        if (call)
            (void)ew__call_done_valid(call, ew_str_from(line + at));
        p->peer.conn->ops->ready(p->peer.conn);
    } else if (sscanf(line, "no %u", &number) == 1) {
        ew_call *call = take_call(p, number);
        if (call)
            ew__call_fail_as(call, EW_ORIGIN_ACTION, EW_STATUS_UNIMPLEMENTED, EW_STR("cannot"));
        p->peer.conn->ops->ready(p->peer.conn);
    }
}

static void line_input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    line_peer *p = (line_peer *)peer;
    for (size_t i = 0; i < n; i++) {
        assert_true(p->n < sizeof p->line);
        p->line[p->n++] = (char)bytes[i];
        if (bytes[i] != '\n')
            continue;
        p->line[p->n - 1] = '\0';
        p->n = 0;
        on_line(p, p->line);
    }
}

static void line_gone(ew__peer *peer, ew_err why) {
    line_peer *p = (line_peer *)peer;
    (void)why;
    for (unsigned i = 0; i < 64; i++) {
        ew_call *call = take_call(p, i);
        if (call)
            ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("lost"));
    }
}

static ew_err line_init(ew__peer *peer) {
    (void)peer;
    return EW_OK;
}

static void line_eof(ew__peer *peer) { peer->conn->ops->abort(peer->conn); }

static const ew__wire line_wire = {.name = "line",
                                   .caps = EW__CAN_CALL | EW__CAN_MANY,
                                   .call_size = sizeof(line_peer),
                                   .init = line_init,
                                   .input = line_input,
                                   .eof = line_eof,
                                   .gone = line_gone,
                                   .open = line_open,
                                   .capacity = line_capacity};

/* ---- the world: a pool, calls, runtimes ---- */

typedef struct asked {
    unsigned n_ends;
    ew_status status;
    ew_origin origin;
    char text[600];
    ew_call *call;
} asked;

static world w;
static ew__pool *pool;
static ew__address address;
static unsigned n_pool_closed;

static ew_err asked_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static void asked_end(ew_call *call, const ew__end *how) {
    asked *a = call->caller_ud;
    ew_str text = how->status == EW_STATUS_OK ? how->result : how->fault.message;
    a->n_ends++;
    a->status = how->status;
    a->origin = how->origin;
    a->call = NULL;
    (void)snprintf(a->text, sizeof a->text, "%.*s", (int)text.len, text.ptr);
    ew__call_release(call);
}

static const ew__caller_ops asker = {.chunk = asked_chunk, .end = asked_end};

static void start_call(asked *a, const char *action, uint64_t ms) {
    memset(a, 0, sizeof *a);
    ew__executor_read_clock(&w.loop.executor);
    a->call = ew__call_new(&w.loop.executor, &asker, a);
    assert_non_null(a->call);
    a->call->kind = action ? EW__CALL_RUN : EW__CALL_LIST;
    a->call->key = ew_str_from(action ? action : "");
    if (ms)
        a->call->deadline = w.loop.executor.now + EW__MS(ms);
    ew__pool_open(pool, a->call);
}

static void expect(asked *a, ew_status status, const char *text) {
    run_until(&w, &a->n_ends, 1);
    assert_int_equal(a->status, status);
    if (!strstr(a->text, text))
        fail_msg("%s is not in: %s", text, a->text);
    assert_int_equal(a->n_ends, 1);
}

static void begin(const char *const *argv) {
    world_init(&w);
    most = 60;
    n_pool_closed = 0;
    assert_int_equal(ew__address_parse("127.0.0.1:0", &address), EW_OK);
    ew__where where = {.kind = EW__WHERE_LISTEN, .argv = argv};
    ew__pool_config config = {.loop = &w.loop, .wire = &line_wire, .site = &(ew__site){.port = 0}, .where = &where};
    assert_int_equal(ew__pool_listen(&config, &address, NULL, &pool), EW_OK);
    assert_true(address.port > 0);
}

static void on_pool_closed(ew__pool *closed) {
    (void)closed;
    n_pool_closed++;
}

static void finish(void) {
    ew__pool_close(pool, on_pool_closed);
    run_until(&w, &n_pool_closed, 1);
    ew__pool_free(pool);
    assert_int_equal(w.loop.executor.calls->live, 0);
    world_done(&w);
}

static void connect_to_pool(end *e) {
    ew__where where = {.kind = EW__WHERE_TCP, .host = "127.0.0.1", .port = address.port};
    end_init(e, &w);
    assert_int_equal(end_dial(e, &where), EW_OK);
}

/* The runtime's memory is not what is short. */
static void tell(end *e, const char *text) {
    uint64_t fail_at = w.fail_at, n = w.n_allocations;
    w.fail_at = 0;
    end_send(e, text, strlen(text));
    w.fail_at = fail_at;
    w.n_allocations = n;
}

/* Waits for a line that begins so, and returns its number. What came before it is dropped. */
static unsigned await(end *e, const char *verb) {
    uint64_t until = ew__executor_read_clock(&w.loop.executor) + PATIENCE_NS;
    for (;;) {
        char *at = e->in ? strstr(e->in, verb) : NULL;
        char *newline = at ? strchr(at, '\n') : NULL;
        unsigned number = 0;
        if (newline) {
            assert_int_equal(sscanf(at + strlen(verb), " %u", &number), 1);
            size_t rest = strlen(newline + 1);
            memmove(e->in, newline + 1, rest + 1);
            e->n_in = rest;
            return number;
        }
        if (ew__executor_read_clock(&w.loop.executor) > until)
            fail_msg("no line %s: %s", verb, e->in ? e->in : "");
        uv_run(w.loop.uv, UV_RUN_ONCE);
    }
}

static void answer(end *e, unsigned number, const char *json) {
    char text[1000];
    (void)snprintf(text, sizeof text, "ok %u %s\n", number, json);
    tell(e, text);
}

/* A runtime that has registered and listed what it offers. */
static void come(end *e, const char *hello, const char *listing) {
    connect_to_pool(e);
    tell(e, hello);
    answer(e, await(e, "list"), listing);
}

static void leave(end *e) {
    uint32_t before = ew__pool_runtimes(pool);
    end_close(e);
    uint64_t until = ew__executor_read_clock(&w.loop.executor) + PATIENCE_NS;
    while (before > 0 && ew__pool_runtimes(pool) == before) {
        assert_true(ew__executor_read_clock(&w.loop.executor) < until);
        uv_run(w.loop.uv, UV_RUN_ONCE);
    }
}

#define ONE "{\"/flow/x\":{\"key\":\"/flow/x\"},\"/flow/y\":{},\"/tool/y\":{},\"/flow/bad\":1}"
#define EVERYWIRE "hello rt app everywire/1\n"

/* ---- tests ---- */

static void finds(void **state) {
    (void)state;
    end e;
    asked a;
    begin(NULL);
    come(&e, EVERYWIRE, ONE);
    static const char *const good[] = {"/flow/x", "x", "/x", "rt:/flow/x", "app:/flow/x", "rt:x", "/tool/y"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        start_call(&a, good[i], 0);
        answer(&e, await(&e, "run"), "\"done\"");
        expect(&a, EW_STATUS_OK, "\"done\"");
    }
    start_call(&a, "y", 0);
    expect(&a, EW_STATUS_INVALID_ARGUMENT, "rt:/flow/y");
    assert_non_null(strstr(a.text, "rt:/tool/y"));
    assert_int_equal(a.origin, EW_ORIGIN_ACTION);
    static const char *const bad[] = {"/flow/z", "z", "other:/flow/x", "/flow/bad", "rt:", ":/flow/x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        start_call(&a, bad[i], 0); /* it is asked again: what we know may be old */
        answer(&e, await(&e, "list"), ONE);
        expect(&a, EW_STATUS_NOT_FOUND, bad[i]);
        assert_int_equal(a.origin, EW_ORIGIN_ACTION);
    }
    start_call(&a, "/flow/xx", 0);
    answer(&e, await(&e, "list"), "{\"/flow/xx\":{}}"); /* and it may have become true */
    answer(&e, await(&e, "run"), "1");
    expect(&a, EW_STATUS_OK, "1");
    leave(&e);
    finish();
}

/* A list that exceeds a limit is refused as a whole, and the one before stays. */
static void list_limits(void **state) {
    (void)state;
    static const char *const refused[] = {
        "{\"/flow/x\":{},\"/flow/new\":{},\"/a/1\":{},\"/a/2\":{},\"/a/3\":{}}", /* too many actions */
        "{\"/flow/"
        "new\":{\"description\":\"12345678901234567890123456789012345678901234567890123456789012345678901234\"}}"};
    end e;
    asked a;
    begin(NULL);
    w.limits.list_actions = 4;
    w.limits.list_bytes = 100;
    come(&e, EVERYWIRE, ONE);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        start_call(&a, "/flow/new", 0);
        answer(&e, await(&e, "list"), refused[i]);
        expect(&a, EW_STATUS_NOT_FOUND, "/flow/new");
        start_call(&a, "/tool/y", 0);
        answer(&e, await(&e, "run"), "1");
        expect(&a, EW_STATUS_OK, "1");
    }
    start_call(&a, "/flow/new", 0);
    answer(&e, await(&e, "list"), "{\"/flow/new\":{}}");
    answer(&e, await(&e, "run"), "2");
    expect(&a, EW_STATUS_OK, "2");
    leave(&e);
    finish();
}

/* Actions that a young runtime defines after it has connected. */
static void late_actions(void **state) {
    (void)state;
    end e;
    asked a;
    begin(NULL);
    start_call(&a, "x", 0);
    come(&e, "hello rt app go/1\n", "{}");
    answer(&e, await(&e, "list"), "{}");
    assert_int_equal(a.n_ends, 0);
    answer(&e, await(&e, "list"), "{\"/flow/x\":{}}");
    answer(&e, await(&e, "run"), "\"late\"");
    expect(&a, EW_STATUS_OK, "late");
    start_call(&a, "nope", 0); /* it does not wait for ever */
    while (a.n_ends == 0) {
        unsigned number = 0;
        run_ms(&w, 20);
        if (e.in && strstr(e.in, "list")) {
            number = await(&e, "list");
            answer(&e, number, "{\"/flow/x\":{}}");
        }
    }
    expect(&a, EW_STATUS_NOT_FOUND, "no action nope");
    leave(&e);
    finish();
}

/* An action is defined after the last list that was due: the runtime is asked once more before the verdict. */
static void asked_before_the_verdict(void **state) {
    (void)state;
    end e;
    asked a;
    begin(NULL);
    start_call(&a, "x", 0);
    come(&e, "hello rt app go/1\n", "{}");
    uint64_t defined_at =
        ew__executor_read_clock(&w.loop.executor) + EW__MS(2000); /* as long as it may still be starting */
    while (a.n_ends == 0 && !(e.in && strstr(e.in, "run"))) {
        uv_run(w.loop.uv, UV_RUN_ONCE);
        if (e.in && strstr(e.in, "list"))
            answer(&e, await(&e, "list"),
                   ew__executor_read_clock(&w.loop.executor) >= defined_at ? "{\"/flow/x\":{}}" : "{}");
    }
    assert_int_equal(a.n_ends, 0);
    answer(&e, await(&e, "run"), "\"late\"");
    expect(&a, EW_STATUS_OK, "late");
    leave(&e);
    finish();
}

static void several_runtimes(void **state) {
    (void)state;
    end first, second;
    asked a;
    begin(NULL);
    come(&first, "hello one same everywire/1\n", "{\"/flow/x\":{},\"/flow/1\":{}}");
    come(&second, "hello two same everywire/1\n", "{\"/flow/x\":{\"two\":2}}");
    run_ms(&w, 50); /* until both are known */
    start_call(&a, "two:/flow/x", 0);
    answer(&second, await(&second, "run"), "2");
    expect(&a, EW_STATUS_OK, "2");
    start_call(&a, "/flow/x", 0);
    expect(&a, EW_STATUS_INVALID_ARGUMENT, "one:/flow/x, two:/flow/x");
    start_call(&a, "same:/flow/x", 0);
    expect(&a, EW_STATUS_INVALID_ARGUMENT, "one:/flow/x, two:/flow/x");
    start_call(&a, "same:/flow/1", 0);
    answer(&first, await(&first, "run"), "1");
    expect(&a, EW_STATUS_OK, "1");
    start_call(&a, NULL, 0);
    answer(&first, await(&first, "list"), "{\"/flow/x\":{},\"/flow/1\":{}}");
    answer(&second, await(&second, "list"), "{\"/flow/x\":{\"two\":2}}");
    expect(&a, EW_STATUS_OK, "{\"one:/flow/x\":{},\"/flow/1\":{},\"two:/flow/x\":{\"two\":2}}");
    leave(&first);
    start_call(&a, "/flow/x", 0);
    answer(&second, await(&second, "run"), "\"the other\"");
    expect(&a, EW_STATUS_OK, "the other");
    leave(&second);
    finish();
}

/* The newer connection of an id wins: the older one is closed, its calls fail, and never both are there. */
static void same_id(void **state) {
    (void)state;
    end older, newer;
    asked a, b;
    begin(NULL);
    come(&older, EVERYWIRE, "{\"/flow/x\":{}}");
    start_call(&a, "x", 0);
    (void)await(&older, "run");
    come(&newer, EVERYWIRE, "{\"/flow/x\":{}}");
    expect(&a, EW_STATUS_UNAVAILABLE, "lost");
    assert_int_equal(a.origin, EW_ORIGIN_CONNECT);
    assert_int_equal(ew__pool_runtimes(pool), 1);
    start_call(&b, "x", 0);
    answer(&newer, await(&newer, "run"), "\"newer\"");
    expect(&b, EW_STATUS_OK, "newer");
    run_until(&w, &older.n_eof, 1);
    end_close(&older);
    tell(&newer, "hello rt2 renamed everywire/1\n"); /* the same connection under another name */
    start_call(&b, "rt2:x", 0);
    answer(&newer, await(&newer, "run"), "\"renamed\"");
    expect(&b, EW_STATUS_OK, "renamed");
    leave(&newer);
    finish();
}

static void waits(void **state) {
    (void)state;
    end e;
    asked a, b, c;
    begin(NULL);
    w.limits.runtime_wait_ms = 200;
    start_call(&a, "x", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "no runtime has connected to ws://127.0.0.1:");
    assert_non_null(strstr(a.text, "within 0.2 s"));
    assert_int_equal(a.origin, EW_ORIGIN_CONNECT);
    start_call(&a, NULL, 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "no runtime has connected");
    w.limits.runtime_wait_ms = 60000;
    start_call(&a, "x", 100); /* its own deadline */
    start_call(&b, "x", 0);
    start_call(&c, "x", 0);
    expect(&a, EW_STATUS_DEADLINE_EXCEEDED, "");
    ew__call_cancel(b.call, EW__CANCEL_ASKED);
    expect(&b, EW_STATUS_CANCELLED, "");
    come(&e, EVERYWIRE, "{\"/flow/x\":{}}");
    answer(&e, await(&e, "run"), "3");
    expect(&c, EW_STATUS_OK, "3");
    leave(&e);
    w.limits.client_queue = 1;
    start_call(&a, "x", 0);
    start_call(&b, "x", 0);
    expect(&b, EW_STATUS_RESOURCE_EXHAUSTED, "too many calls wait");
    finish(); /* with one that waits */
    assert_int_equal(a.n_ends, 1);
    assert_int_equal(a.status, EW_STATUS_CANCELLED);
}

/* Calls wait for room on a connection, and keep their order. */
static void order(void **state) {
    (void)state;
    end e;
    asked a[4];
    begin(NULL);
    come(&e, EVERYWIRE, "{\"/flow/x\":{},\"/flow/y\":{}}");
    most = 1;
    run_ms(&w, 50);
    for (int i = 0; i < 4; i++)
        start_call(&a[i], i % 2 ? "y" : "x", 0);
    for (int i = 0; i < 4; i++) {
        char verb[32];
        unsigned number = await(&e, "run");
        for (int k = i; k < 4; k++)
            assert_int_equal(a[k].n_ends, 0);
        (void)snprintf(verb, sizeof verb, "%d", i);
        answer(&e, number, verb);
        expect(&a[i], EW_STATUS_OK, verb);
    }
    leave(&e);
    finish();
}

/* A runtime that does not list may still have the action. */
static void does_not_list(void **state) {
    (void)state;
    end e;
    asked a, b;
    char text[32];
    begin(NULL);
    connect_to_pool(&e);
    tell(&e, EVERYWIRE);
    (void)snprintf(text, sizeof text, "no %u\n", await(&e, "list"));
    tell(&e, text);
    run_ms(&w, 50);
    start_call(&a, "/flow/x", 0);
    start_call(&b, NULL, 0);
    answer(&e, await(&e, "run"), "\"had it\"");
    expect(&a, EW_STATUS_OK, "had it");
    (void)snprintf(text, sizeof text, "no %u\n", await(&e, "list"));
    tell(&e, text);
    expect(&b, EW_STATUS_UNIMPLEMENTED, "cannot");
    leave(&e);
    finish();
}

/* One that never says what it has is called by key after a while, and from then on at once. */
static void never_lists(void **state) {
    (void)state;
    end e;
    asked a, b;
    begin(NULL);
    connect_to_pool(&e);
    tell(&e, EVERYWIRE);
    start_call(&a, "/flow/x", 0);
    answer(&e, await(&e, "run"), "1");
    expect(&a, EW_STATUS_OK, "1");
    start_call(&b, "/flow/x", 0);
    answer(&e, await(&e, "run"), "2");
    expect(&b, EW_STATUS_OK, "2");
    leave(&e);
    finish();
}

static void strangers(void **state) {
    (void)state;
    end silent, e;
    asked a;
    begin(NULL);
    connect_to_pool(&silent);
    start_call(&a, "x", 0);
    run_ms(&w, 50);
    assert_int_equal(a.n_ends, 0); /* whoever does not say who it is gets no call */
    come(&e, EVERYWIRE, "{\"/flow/x\":{}}");
    answer(&e, await(&e, "run"), "1");
    expect(&a, EW_STATUS_OK, "1");
    start_call(&a, "x", 0);
    (void)await(&e, "run");
    leave(&e);
    expect(&a, EW_STATUS_UNAVAILABLE, "lost");
    end_close(&silent);
    finish();
}

static void processes(void **state) {
    (void)state;
    asked a;
    static const char *const ends[] = {"sh", "-c", "echo out; echo err >&2; exit 3", NULL};
    static const char *const stays[] = {"sh", "-c",
                                        "trap 'echo got the signal; exit 0' TERM; echo ready; "
                                        "while :; do sleep 0.05; done",
                                        NULL};
    static const char *const missing[] = {"./there-is-no-such-program", NULL};
    begin(ends);
    start_call(&a, "x", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "sh ended with code 3 before it connected");
    assert_int_equal(a.origin, EW_ORIGIN_CONNECT);
    start_call(&a, "x", 0); /* it is started once */
    expect(&a, EW_STATUS_UNAVAILABLE, "ended with code 3");
    assert_true(logged(&w, "sh: out") && logged(&w, "sh: err"));
    finish();
    begin(missing);
    start_call(&a, "x", 0);
    expect(&a, EW_STATUS_UNAVAILABLE, "cannot start ./there-is-no-such-program");
    finish();
    begin(stays);
    start_call(&a, "x", 0);
    run_until_logged(&w, "ready");
    ew__pool_close(pool, on_pool_closed);
    run_until(&w, &n_pool_closed, 1);
    assert_true(logged(&w, "got the signal"));
    assert_int_equal(a.n_ends, 1);
    ew__pool_free(pool);
    world_done(&w);
    begin(stays); /* closed while it starts */
    start_call(&a, "x", 0);
    finish();
    begin(stays); /* never started */
    finish();
    assert_no_children();
}

static void in_use(void **state) {
    (void)state;
    ew__pool *second = NULL;
    ew__address taken;
    begin(NULL);
    assert_int_equal(ew__address_parse(address.text, &taken), EW_OK);
    ew__where where = {.kind = EW__WHERE_LISTEN};
    ew__pool_config config = {.loop = &w.loop, .wire = &line_wire, .site = &(ew__site){.port = 0}, .where = &where};
    assert_int_equal(ew__pool_listen(&config, &taken, NULL, &second), EW_EADDRINUSE);
    assert_null(second);
    finish();
}

/* Each allocation of a short life fails once: nothing hangs, nothing is lost or ended twice. */
static void no_memory(void **state) {
    (void)state;
    for (uint64_t n = 1, quiet = 0; quiet < 1; n++) {
        end e;
        asked a;
        begin(NULL);
        connect_to_pool(&e);
        run_ms(&w, 5);
        w.limits.runtime_wait_ms = 100;
        w.n_allocations = 0;
        w.fail_at = n;
        tell(&e, EVERYWIRE);
        ew__executor_read_clock(&w.loop.executor);
        memset(&a, 0, sizeof a);
        a.call = ew__call_new(&w.loop.executor, &asker, &a);
        if (a.call) {
            a.call->key = EW_STR("y");
            a.call->deadline = w.loop.executor.now + EW__MS(400);
            ew__pool_open(pool, a.call);
        }
        while (a.call && a.n_ends == 0) {
            run_ms(&w, 5);
            if (e.in && strstr(e.in, "list"))
                answer(&e, await(&e, "list"), "{\"/flow/x\":{}}");
        }
        assert_true(!a.call || a.n_ends == 1);
        quiet = w.n_allocations < n;
        w.fail_at = 0;
        end_close(&e);
        finish();
        assert_true(n < 300);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds),
        cmocka_unit_test(list_limits),
        cmocka_unit_test(late_actions),
        cmocka_unit_test(several_runtimes),
        cmocka_unit_test(asked_before_the_verdict),
        cmocka_unit_test(same_id),
        cmocka_unit_test(waits),
        cmocka_unit_test(order),
        cmocka_unit_test(does_not_list),
        cmocka_unit_test(never_lists),
        cmocka_unit_test(strangers),
        cmocka_unit_test(processes),
        cmocka_unit_test(in_use),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
