/*
 * tests/unit/gateway/test_outbound.c: where an app calls because a peer has named a URL: which URLs it takes, how many pools
 * there are, and what becomes of them. And what its listeners know of the app beside that.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gateway/app.h"
#include "support/fail_env.h"
#include "wire/stepflow/stepflow.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE 3000 /* times 10 ms */

/* ---- a wire: one call on a connection; a byte goes out, a byte is the end ---- */

typedef struct byte_peer {
    ew__peer peer;
    ew_call *call;
} byte_peer;

static char seen_path[64], seen_authority[64]; /* of the last call; read when it has ended */

static void byte_cancel(ew_call *call, ew__cancel_why why) {
    byte_peer *p = call->callee_ud;
    (void)why;
    p->call = NULL;
    p->peer.conn->ops->abort(p->peer.conn);
    ew__call_fail_as(call, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, EW_STR("cancelled"));
}

static const ew__callee_ops byte_callee = {.cancel = byte_cancel};

static ew_err byte_open(ew__peer *peer, ew_call *call) {
    byte_peer *p = (byte_peer *)peer;
    const ew__site *site = peer->conn->site;
    (void)snprintf(seen_path, sizeof seen_path, "%.*s", (int)site->path.len, site->path.ptr);
    (void)snprintf(seen_authority, sizeof seen_authority, "%.*s", (int)site->authority.len, site->authority.ptr);
    call->callee = &byte_callee;
    call->callee_ud = p;
    p->call = call;
    ew__out_str(&peer->conn->out, call->key);
    if (peer->conn->out.err == EW_OK)
        peer->conn->ops->send(peer->conn);
    else
        peer->conn->ops->abort(peer->conn);
    return EW_OK;
}

static void byte_end(byte_peer *p, bool lost) {
    ew_call *call = p->call;
    p->call = NULL;
    if (call && lost)
        ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("lost"));
    else if (call)
        (void)ew__call_done_valid(call, EW_STR("1"));
}

static void byte_input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    (void)bytes;
    (void)n;
    byte_end((byte_peer *)peer, false);
    peer->conn->ops->ready(peer->conn);
}

static void byte_eof(ew__peer *peer) { peer->conn->ops->abort(peer->conn); }

static void byte_gone(ew__peer *peer, ew_err why) {
    (void)why;
    byte_end((byte_peer *)peer, true);
}

static ew_err byte_init(ew__peer *peer) {
    (void)peer;
    return EW_OK;
}

static uint32_t byte_capacity(const ew__peer *peer) { return ((const byte_peer *)peer)->call ? 0 : 1; }

#define BYTE_WIRE                                                                                                      \
    {                                                                                                                  \
        .name = "byte", .caps = EW__CAN_CALL, .call_size = sizeof(byte_peer), .init = byte_init, .input = byte_input,  \
        .eof = byte_eof, .gone = byte_gone, .open = byte_open, .capacity = byte_capacity                               \
    }
static const ew__wire wire = BYTE_WIRE, other_wire = BYTE_WIRE;

/* ---- somebody who listens: answers each byte but "h" ---- */

typedef struct server {
    int fd;
    uint16_t port;
    atomic_uint n_accepted;
    pthread_t thread;
} server;

static void *serve_one(void *arg) {
    int fd = (int)(intptr_t)arg;
    char byte;
    while (recv(fd, &byte, 1, 0) == 1)
        if (byte != 'h' && send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
            break;
    close(fd);
    return NULL;
}

static void *serve(void *arg) {
    server *s = arg;
    for (int fd; (fd = accept(s->fd, NULL, NULL)) >= 0;) {
        pthread_t thread;
        atomic_fetch_add(&s->n_accepted, 1);
        assert_int_equal(pthread_create(&thread, NULL, serve_one, (void *)(intptr_t)fd), 0);
        (void)pthread_detach(thread);
    }
    return NULL;
}

static void server_start(server *s) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof name;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&name, n), 0);
    assert_int_equal(listen(s->fd, 64), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&name, &n), 0);
    s->port = ntohs(name.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_stop(server *s) {
    (void)shutdown(s->fd, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    close(s->fd);
}

/* ---- an app, and calls on its loop ---- */

typedef struct world {
    ew__test_env env;
    ew_app *app;
    server server;
} world;

typedef struct asked {
    ew__task task;
    world *w;
    const ew__wire *by;
    char url[700];
    const char *key;
    ew_err err; /* what open said */
    ew_status status;
    atomic_uint n_ends;
    size_t n_pools; /* after it was opened */
} asked;

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static void on_end(ew_call *call, const ew__end *end) {
    asked *a = call->caller_ud;
    a->status = end->status;
    ew__call_release(call);
    atomic_fetch_add(&a->n_ends, 1);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};

/* The first callee of the call, as that of a call back is. */
static void first_open(ew_call *call) {
    asked *a = call->caller_ud;
    struct ew__outbound *outbound = &a->w->app->outbound;
    a->err = outbound->open(outbound, call->executor, a->by, ew_str_from(a->url), call);
    a->n_pools = a->w->app->loops[0].outbound.n;
    if (a->err != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_ABORTED, EW_STR("not taken"));
}

static const ew__callee_ops first = {.open = first_open};

static void open_there(ew__task *task) {
    asked *a = ew__container_of(task, asked, task);
    ew_call *call = ew__call_new(&a->w->app->loops[0].loop.executor, &caller, a);
    if (!call) {
        a->err = EW_ENOMEM;
        atomic_fetch_add(&a->n_ends, 1);
        return;
    }
    call->key = ew_str_from(a->key);
    ew__call_open_on(call, &first, NULL);
}

/* url: "%u" stands for the port of the server. */
static void start(world *w, asked *a, const ew__wire *by, const char *url, const char *key) {
    const char *mark = strstr(url, "%u");
    memset(a, 0, sizeof *a);
    a->w = w;
    a->by = by;
    a->key = key;
    a->task.fn = open_there;
    if (mark)
        (void)snprintf(a->url, sizeof a->url, "%.*s%u%s", (int)(mark - url), url, w->server.port, mark + 2);
    else
        (void)snprintf(a->url, sizeof a->url, "%s", url);
    ew__executor *executor = &w->app->loops[0].loop.executor;
    ew__executor_post(executor, &a->task);
}

static void await(asked *a) {
    for (int i = 0; i < PATIENCE && atomic_load(&a->n_ends) == 0; i++)
        (void)usleep(10000);
    assert_int_equal(atomic_load(&a->n_ends), 1);
}

static ew_status ask(world *w, const ew__wire *by, const char *url, ew_err err) {
    asked a;
    start(w, &a, by, url, "x");
    await(&a);
    if (a.err != err)
        fail_msg("%d, not %d: %s", a.err, err, a.url);
    return a.status;
}

static void nothing(ew__task *task) {
    asked *a = ew__container_of(task, asked, task);
    a->n_pools = a->w->app->loops[0].outbound.n;
    atomic_fetch_add(&a->n_ends, 1);
}

/* How many pools there are; all that was posted before has been done. */
static size_t count(world *w) {
    asked a = {.w = w, .task.fn = nothing};
    ew__executor *executor = &w->app->loops[0].loop.executor;
    ew__executor_post(executor, &a.task);
    await(&a);
    return a.n_pools;
}

static void world_init(world *w, bool allow_remote) {
    memset(w, 0, sizeof *w);
    ew__test_env_init(&w->env, 1);
    w->env.env.now_ns = ew_env_default()->now_ns; /* it does not look at ud */
    ew_app_options options = {.env = &w->env.env, .threads = 2, .allow_remote = allow_remote};
    w->app = ew_app_new_with("my app", &options);
    assert_non_null(w->app);
    assert_int_equal(ew_app_listen(w->app, "127.0.0.1:0"), EW_OK);
    assert_int_equal(ew_app_listen(w->app, "stepflow=127.0.0.1:0"), EW_OK);
    assert_int_equal(ew_app_listen(w->app, "http=127.0.0.1:0"), EW_OK);
    assert_int_equal(ew_app_start(w->app), EW_OK);
    server_start(&w->server);
}

static void world_done(world *w) {
    (void)ew_app_free(w->app);
    assert_int_equal(ew__test_env_live_blocks(&w->env), 0);
    server_stop(&w->server);
}

/* ---- tests ---- */

static void reaches(void **state) {
    world w;
    char authority[32];
    (void)state;
    world_init(&w, false);
    assert_int_equal(ask(&w, &wire, "http://127.0.0.1:%u/api/v1/blobs", EW_OK), EW_STATUS_OK);
    assert_string_equal(seen_path, "/api/v1/blobs");
    (void)snprintf(authority, sizeof authority, "127.0.0.1:%u", w.server.port);
    assert_string_equal(seen_authority, authority);
    assert_int_equal(ask(&w, &wire, "HTTP://localhost:%u//", EW_OK), EW_STATUS_OK);
    assert_string_equal(seen_path, "");
    assert_int_equal(ask(&w, &wire, "http://127.9.9.9:1/x", EW_OK), EW_STATUS_UNAVAILABLE); /* nobody is there */
    assert_int_equal(count(&w), 3);
    assert_int_equal(ask(&w, &wire, "http://127.0.0.1:%u/api/v1/blobs/", EW_OK), EW_STATUS_OK);
    assert_int_equal(count(&w), 3); /* one of them */
    assert_int_equal(ask(&w, &other_wire, "http://127.0.0.1:%u/api/v1/blobs", EW_OK), EW_STATUS_OK);
    assert_int_equal(count(&w), 4);
    world_done(&w);
}

static void refuses(void **state) {
    static const char *const bad[] = {
        "",
        "http:",
        "http://",
        "https://127.0.0.1:1/x",
        "ftp://127.0.0.1:1",
        "127.0.0.1:1",
        "http://:1/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:65536/",
        "http://127.0.0.1:%u/a?b",
        "http://127.0.0.1:%u/a b",
        "http://127.0.0.1:%u/a\r\nX: y",
        "http://a@127.0.0.1:%u/",
        "http://127.0.0.1@10.0.0.1/",
        "http://[::1:%u/",
        "http://0.0.0.0:%u/", /* these are others, or may be */
        "http://10.0.0.1/",
        "http://169.254.169.254/latest",
        "http://blobs.internal:%u/",
        "http://localhost.evil:%u/",
        "http://2130706433:%u/",
        "http://0177.0.0.1:%u/",
        "http://127.1:%u/",
    };
    static const char *const never[] = {/* these not even with allow_remote: the dial fails before it connects */
                                        "http://0.0.0.0:%u/",  "http://0:%u/",
                                        "http://[::]:%u/",     "http://169.254.169.254/latest",
                                        "http://0xa9fea9fe/",  "http://[::ffff:169.254.169.254]/",
                                        "http://224.0.0.1:%u/"};
    char text[700];
    world w;
    (void)state;
    world_init(&w, false);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(ask(&w, &wire, bad[i], EW_EINVAL), EW_STATUS_ABORTED);
    memset(text, 'a', sizeof text);
    memcpy(text, "http://127.0.0.1/", 17);
    text[600] = '\0';
    assert_int_equal(ask(&w, &wire, text, EW_EINVAL), EW_STATUS_ABORTED);
    assert_int_equal(count(&w), 0);
    assert_int_equal(w.env.n_logged, 1); /* of https, once */
    (void)ask(&w, &wire, "https://127.0.0.1:2/", EW_EINVAL);
    assert_int_equal(w.env.n_logged, 1);
    world_done(&w);
    world_init(&w, true);
    assert_int_equal(ask(&w, &wire, "http://2130706433:%u/", EW_OK), EW_STATUS_OK); /* 127.0.0.1 */
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        assert_int_equal(ask(&w, &wire, never[i], EW_OK), EW_STATUS_UNAVAILABLE);
    world_done(&w);
}

/* A few at a time: who was not used for longest makes room, if nobody uses it. */
static void makes_room(void **state) {
    asked held[EW__OUTBOUND_POOLS_MAX], more;
    char url[64];
    world w;
    (void)state;
    world_init(&w, false);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(url, sizeof url, "http://127.0.0.1:%%u/%d", i);
        assert_int_equal(ask(&w, &wire, url, EW_OK), EW_STATUS_OK);
        assert_int_equal(ask(&w, &wire, "http://127.0.0.1:%u/always", EW_OK), EW_STATUS_OK);
        assert_int_equal(count(&w), i < 3 ? (size_t)i + 2 : EW__OUTBOUND_POOLS_MAX);
    }
    assert_int_equal(atomic_load(&w.server.n_accepted), 21); /* the one that was used again and again stayed */
    for (int i = 0; i < EW__OUTBOUND_POOLS_MAX; i++) {
        (void)snprintf(url, sizeof url, "http://127.0.0.1:%%u/held%d", i);
        start(&w, &held[i], &wire, url, "h");
    }
    assert_int_equal(count(&w), EW__OUTBOUND_POOLS_MAX);
    (void)ask(&w, &wire, "http://127.0.0.1:%u/one/too/many", EW_EBUSY);
    (void)ask(&w, &wire, "http://127.0.0.1:%u/held1", EW_OK); /* a second call on one of them is none */
    start(&w, &more, &wire, "http://127.0.0.1:%u/held2", "h");
    assert_int_equal(count(&w), EW__OUTBOUND_POOLS_MAX);
    world_done(&w); /* with calls under way */
    for (int i = 0; i < EW__OUTBOUND_POOLS_MAX; i++)
        assert_int_equal(atomic_load(&held[i].n_ends), 1);
    assert_int_equal(atomic_load(&more.n_ends), 1);
}

static void no_memory(void **state) {
    (void)state;
    for (uint64_t n = 1, failed = 1; failed > 0; n++) {
        world w;
        asked a;
        world_init(&w, false);
        ew__test_env_fail_at(&w.env, n, false);
        start(&w, &a, &wire, "http://127.0.0.1:%u/", "x");
        await(&a);
        failed = ew__test_env_failed(&w.env);
        ew__test_env_fail_at(&w.env, 0, false);
        assert_true(failed > 0 || a.status == EW_STATUS_OK);
        assert_int_equal(ask(&w, &wire, "http://127.0.0.1:%u/", EW_OK), EW_STATUS_OK);
        world_done(&w);
        assert_true(n < 100);
    }
}

static const ew__site *site_of(const world *w, size_t loop, size_t listener) {
    return &w->app->loops[loop].server.listeners[listener].site;
}

/* What Stepflow's runtimes meet on the listeners. */
static void sites(void **state) {
    char id[EW__INSTANCE_ID_LEN];
    uint8_t bytes[EW__INSTANCE_ID_LEN / 2];
    world w;
    const char *name = NULL;
    int port = 0;
    (void)state;
    world_init(&w, false);
    for (size_t loop = 0; loop < 2; loop++) {
        for (size_t listener = 0; listener < 3; listener++) {
            const ew__site *site = site_of(&w, loop, listener);
            assert_ptr_equal(site->instance, &w.app->instance);
            assert_ptr_equal(site->outbound, &w.app->outbound);
            assert_int_equal(site->loop, loop);
            assert_ptr_equal(site->guest, listener < 2 ? &ew__stepflow_guest : NULL);
            assert_int_equal(site->only_guest, listener == 1);
        }
        assert_null(w.app->loops[loop].server.listeners[0].wire);
        assert_string_equal(w.app->loops[loop].server.listeners[1].wire->name, "http");
    }
    assert_int_equal(ew_app_listener(w.app, 1, &name, NULL, &port), EW_OK);
    assert_string_equal(name, "stepflow");
    assert_int_equal(port, site_of(&w, 0, 1)->port);
    memcpy(id, w.app->instance.id, sizeof id);
    assert_true(ew__unhex(ew__str(id, sizeof id), bytes, sizeof bytes));
    assert_true(ew__str_is(w.app->instance.service, EW_STR("my app")));
    world_done(&w);
    ew_app *app = ew_app_new("test");
    assert_int_equal(ew_app_listen(app, "stepflow+http=127.0.0.1:0"), EW_EINVAL); /* that is how it is called */
    assert_int_equal(ew_app_listen(app, "http=stdio"), EW_EINVAL);
    assert_non_null(strstr(ew_app_error(app), "stepflow=stdio"));
    assert_int_equal(ew_app_listen(app, "stepflow=stdio"), EW_OK);
    assert_int_equal(ew_app_listen(app, "stdio"), EW_OK);
    assert_int_equal(ew_app_listen(app, "any=stdio"), EW_OK);
    assert_int_equal(ew_app_listen(app, "stepflow=unix:/tmp/x"), EW_OK);
    assert_null(ew_app_free(app));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reaches),   cmocka_unit_test(refuses), cmocka_unit_test(makes_room),
        cmocka_unit_test(no_memory), cmocka_unit_test(sites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
