/*
 * tests/unit/endpoint/test_connector.c: one connection to a manager, for ever.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/connector.h"
#include "unit/io/world.h"

/* ---- a runtime's wire: ready when the manager says 'r', ends when it says 'e' ---- */

static struct {
    unsigned n_init, n_gone, n_drain;
    ew__actions *actions; /* of the newest peer's site */
} seen;

static ew_err runtime_init(ew__peer *peer) {
    assert_int_equal(peer->role, EW__SERVE);
    seen.n_init++;
    seen.actions = peer->conn->site->actions;
    ew__out_str(&peer->conn->out, peer->conn->site->path);
    peer->conn->ops->send(peer->conn);
    seen.n_gone += peer->conn->out.err != EW_OK;
    return peer->conn->out.err;
}

static void runtime_input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    seen.actions = peer->conn->site->actions;
    for (size_t i = 0; i < n; i++)
        if (bytes[i] == 'r')
            peer->conn->ops->ready(peer->conn);
        else if (bytes[i] == 'e')
            peer->conn->ops->finish(peer->conn);
}

static void runtime_eof(ew__peer *peer) { peer->conn->ops->finish(peer->conn); }

static void runtime_drain(ew__peer *peer) {
    seen.n_drain++;
    ew__out_str(&peer->conn->out, EW_STR("bye"));
    peer->conn->ops->send(peer->conn);
    peer->conn->ops->finish(peer->conn);
}

static void runtime_gone(ew__peer *peer, ew_err why) {
    (void)peer;
    (void)why;
    seen.n_gone++;
}

static const ew__wire wire_runtime = {.name = "runtime",
                                      .caps = EW__CAN_SERVE,
                                      .serve_size = sizeof(ew__peer),
                                      .call_size = sizeof(ew__peer),
                                      .init = runtime_init,
                                      .input = runtime_input,
                                      .eof = runtime_eof,
                                      .drain = runtime_drain,
                                      .gone = runtime_gone};

/* ---- a manager that does as it is told ---- */

enum { MOST = 64 };

typedef struct manager {
    world w;
    ew__registry registry;
    ew__listener listener;
    ew__address address;
    ew__connector connector;
    end ends[MOST]; /* connections that came */
    unsigned n_ends, n_listener_closed, n_connector_closed;
    bool listens;
} manager;

static manager *m;

static void on_connection(ew__listener *listener) {
    assert_true(m->n_ends < MOST);
    end *e = &m->ends[m->n_ends++];
    end_init(e, &m->w);
    assert_int_equal(ew__accept(listener, &e->stream), EW_OK);
    end_start(e);
}

static void listen_again(void) {
    memset(&m->listener, 0, sizeof m->listener);
    assert_int_equal(ew__listen(&m->listener, &m->w.loop, &m->address, on_connection), EW_OK);
    m->listens = true;
}

static void on_listener_closed(ew__listener *listener) {
    (void)listener;
    m->n_listener_closed++;
}

static void stop_listening(void) {
    unsigned before = m->n_listener_closed;
    if (!m->listens)
        return;
    m->listens = false;
    ew__listener_close(&m->listener, on_listener_closed);
    run_until(&m->w, &m->n_listener_closed, before + 1);
}

static void manager_init(manager *manager_) {
    m = manager_;
    memset(m, 0, sizeof *m);
    memset(&seen, 0, sizeof seen);
    world_init(&m->w);
    assert_int_equal(ew__registry_init(&m->registry, &m->w.env), EW_OK);
    assert_int_equal(ew__address_parse("127.0.0.1:0", &m->address), EW_OK);
    listen_again();
    ew__site site = {.authority = EW_STR("127.0.0.1:7"), .path = EW_STR("/p?q")};
    ew__where where = {.kind = EW__WHERE_TCP, .port = m->address.port, .host = "127.0.0.1"};
    assert_int_equal(ew__connector_init(&m->connector, &m->w.loop, &wire_runtime, &site, &m->registry, &where), EW_OK);
}

static void on_connector_closed(ew__connector *connector) {
    assert_ptr_equal(connector, &m->connector);
    m->n_connector_closed++;
}

static void close_ends(void) {
    for (unsigned i = 0; i < m->n_ends; i++)
        if (m->ends[i].n_closed == 0)
            ew__stream_close(&m->ends[i].stream, EW_OK);
    for (unsigned i = 0; i < m->n_ends; i++) {
        run_until(&m->w, &m->ends[i].n_closed, 1);
        free(m->ends[i].in);
    }
    m->n_ends = 0;
}

static void manager_done(bool now) {
    ew__connector_close(&m->connector, now, on_connector_closed);
    run_until(&m->w, &m->n_connector_closed, 1);
    assert_int_equal(m->n_connector_closed, 1);
    close_ends();
    stop_listening();
    ew__connector_done(&m->connector);
    ew__registry_done(&m->registry);
    assert_int_equal(seen.n_init, seen.n_gone);
    world_done(&m->w);
}

static unsigned count_lines(const char *text) {
    unsigned n = 0;
    for (const char *at = m->w.log; (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

/* ---- tests ---- */

static void test_reconnects(void **state) {
    (void)state;
    static manager manager_;
    manager_init(&manager_);
    assert_int_equal(ew__connector_start(&m->connector), EW_OK);
    run_until(&m->w, &m->n_ends, 1);
    run_until_bytes(&m->w, &m->ends[0].n_in, 4);
    assert_string_equal(m->ends[0].in, "/p?q");
    assert_int_equal(m->w.n_lines, 0);
    end_send(&m->ends[0], "r", 1);
    run_until_logged(&m->w, "I connected to 127.0.0.1:7\n");
    end_send(&m->ends[0], "r", 1); /* no second line */
    run_ms(&m->w, 20);
    ew__stream_close(&m->ends[0].stream, EW_OK);
    run_until_logged(&m->w, "W lost 127.0.0.1:7: ");
    run_until(&m->w, &m->n_ends, 2);
    end_send(&m->ends[1], "re", 2); /* connected, then we end it ourselves */
    run_until(&m->w, &m->n_ends, 3);
    assert_int_equal(count_lines("connected to"), 2);
    assert_int_equal(count_lines("lost"), 2);
    assert_int_equal(m->w.n_lines, 4);
    assert_int_equal(seen.n_init, 3);
    manager_done(true);
}

/* Nobody there, then somebody: one line for all the failures. */
static void test_away(void **state) {
    (void)state;
    static manager manager_;
    manager_init(&manager_);
    stop_listening();
    assert_int_equal(ew__connector_start(&m->connector), EW_OK);
    run_until_logged(&m->w, "W cannot connect to 127.0.0.1:7: ");
    RUN_WHILE(&m->w, m->connector.delay_ms < 4000); /* at least two more attempts */
    assert_int_equal(m->w.n_lines, 1);
    listen_again();
    run_until(&m->w, &m->n_ends, 1);
    end_send(&m->ends[0], "r", 1);
    run_until_logged(&m->w, "connected to");
    assert_int_equal(m->w.n_lines, 2);
    manager_done(false);
}

/* The wire does not say that it is ready: an answer and a while will do; a while alone will not. */
static void test_silent_wire(void **state) {
    (void)state;
    static manager manager_;
    manager_init(&manager_);
    assert_int_equal(ew__connector_start(&m->connector), EW_OK);
    run_until(&m->w, &m->n_ends, 1);
    run_ms(&m->w, 1300);
    assert_int_equal(m->w.n_lines, 0);
    end_send(&m->ends[0], "x", 1);
    run_until_logged(&m->w, "connected to");
    ew__stream_close(&m->ends[0].stream, EW_OK);
    run_until_logged(&m->w, "lost");
    manager_done(true);
}

static void lose(unsigned nth) {
    run_until(&m->w, &m->n_ends, nth);
    ew__stream_close(&m->ends[nth - 1].stream, EW_OK);
    RUN_WHILE(&m->w, m->connector.link);
}

/* The delays are looked at, not measured: a loaded machine is slow. */
static void test_delays(void **state) {
    (void)state;
    static manager manager_;
    static const uint32_t grows[] = {1000, 2000, 4000, 5000, 5000, 5000};
    manager_init(&manager_);
    assert_int_equal(m->connector.delay_ms, 500);
    assert_int_equal(ew__connector_start(&m->connector), EW_OK);
    uint32_t delay = 500;
    for (unsigned i = 0; i < sizeof grows / sizeof *grows; i++) {
        lose(i + 1);
        assert_int_equal(m->connector.delay_ms, grows[i]);
        assert_true(m->connector.waiting);
        uint64_t in = m->connector.timer.at - m->w.loop.executor.now;
        assert_true(in <= EW__MS(delay * 12 / 10));
        delay = grows[i];
        m->connector.timer.at = m->w.loop.executor.now; /* the only timer of this kind: no need to wait for it */
        assert_int_equal(ew__timer_set(&m->w.loop.executor.timers, &m->connector.timer, m->w.loop.executor.now,
                                       m->connector.timer.fn),
                         EW_OK);
    }
    assert_int_equal(count_lines("no manager at"), 1);
    run_until(&m->w, &m->n_ends, 7);
    end_send(&m->ends[6], "r", 1);
    run_until_logged(&m->w, "connected to");
    run_ms(&m->w, 1100); /* good for a while */
    lose(7);
    assert_int_equal(m->connector.delay_ms, 1000);
    manager_done(true);
}

static void test_chance(void **state) {
    (void)state;
    static manager manager_;
    uint64_t least = UINT64_MAX, most = 0;
    manager_init(&manager_);
    stop_listening();
    assert_int_equal(ew__connector_start(&m->connector), EW_OK);
    for (unsigned i = 0; i < 40; i++) {
        RUN_WHILE(&m->w, !m->connector.link);
        m->connector.delay_ms = 5000;
        RUN_WHILE(&m->w, m->connector.link);
        assert_true(m->connector.waiting);
        uint64_t at = m->connector.timer.at, now = m->w.loop.executor.now;
        uint64_t in = at > now ? at - now : 0;
        least = in < least ? in : least;
        most = in > most ? in : most;
        assert_int_equal(ew__timer_set(&m->w.loop.executor.timers, &m->connector.timer, now, m->connector.timer.fn),
                         EW_OK);
    }
    assert_true(most <= EW__MS(6000));
    assert_true(most - least > EW__MS(200));
    manager_done(true);
}

static void test_close_while_dialling(void **state) {
    (void)state;
    for (int now = 0; now < 2; now++) {
        static manager manager_;
        manager_init(&manager_);
        assert_int_equal(ew__connector_start(&m->connector), EW_OK);
        RUN_WHILE_IN(&m->w, UV_RUN_NOWAIT, !m->connector.dial) {}
        manager_done(now);
        assert_int_equal(seen.n_init, 0);
    }
}

static void test_close_while_waiting(void **state) {
    (void)state;
    static manager manager_;
    manager_init(&manager_);
    stop_listening();
    assert_int_equal(ew__connector_start(&m->connector), EW_OK);
    run_until_logged(&m->w, "cannot connect");
    manager_done(false);
}

static void test_never_started(void **state) {
    (void)state;
    static manager manager_;
    manager_init(&manager_);
    manager_done(false);
}

static void test_drain(void **state) {
    (void)state;
    static manager manager_;
    manager_init(&manager_);
    assert_int_equal(ew__connector_start(&m->connector), EW_OK);
    run_until(&m->w, &m->n_ends, 1);
    end_send(&m->ends[0], "r", 1);
    run_until_logged(&m->w, "connected to");
    ew__connector_drain(&m->connector);
    run_until(&m->w, &m->ends[0].n_eof, 1);
    assert_string_equal(m->ends[0].in, "/p?qbye");
    ew__stream_close(&m->ends[0].stream, EW_OK);
    RUN_WHILE(&m->w, m->connector.link);
    run_ms(&m->w, 700); /* it does not come back */
    assert_int_equal(m->n_ends, 1);
    assert_int_equal(seen.n_drain, 1);
    assert_int_equal(m->w.n_lines, 1);
    manager_done(false);
}

static void test_drain_while_away(void **state) {
    (void)state;
    static manager manager_;
    manager_init(&manager_);
    stop_listening();
    assert_int_equal(ew__connector_start(&m->connector), EW_OK);
    run_until_logged(&m->w, "cannot connect");
    listen_again();
    ew__connector_drain(&m->connector);
    run_ms(&m->w, 700);
    assert_int_equal(m->n_ends, 0);
    manager_done(false);
}

static void handler(ew_call *call, void *arg) {
    (void)call;
    (void)arg;
}

static void test_refresh(void **state) {
    (void)state;
    static manager manager_;
    manager_init(&manager_);
    assert_int_equal(ew__connector_start(&m->connector), EW_OK);
    run_until(&m->w, &m->n_ends, 1);
    run_until(&m->w, &seen.n_init, 1);
    const ew__actions *first = seen.actions;
    assert_int_equal(ew__registry_add(&m->registry, "/flow/x", NULL, NULL, handler, NULL, NULL), EW_OK);
    ew__connector_refresh(&m->connector);
    end_send(&m->ends[0], "r", 1);
    run_until_logged(&m->w, "connected to");
    assert_ptr_not_equal(seen.actions, first);
    assert_int_equal(seen.actions->by_key.n, 1);
    manager_done(true);
}

/* Whichever allocation fails, it goes on. */
static void test_no_memory(void **state) {
    (void)state;
    for (unsigned nth = 1; nth < 12; nth++) {
        static manager manager_;
        manager_init(&manager_);
        assert_int_equal(ew__connector_start(&m->connector), EW_OK);
        m->w.fail_at = m->w.n_allocations + nth;
        unsigned n_ready = 0;
        uint64_t until = ew__executor_read_clock(&m->w.loop.executor) + PATIENCE_NS;
        while (n_ready == 0) {
            assert_true(ew__executor_read_clock(&m->w.loop.executor) < until);
            uv_run(m->w.loop.uv, UV_RUN_ONCE);
            for (unsigned i = 0; i < m->n_ends; i++)
                n_ready += m->ends[i].n_in >= 4;
        }
        m->w.fail_at = 0;
        manager_done(true);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reconnects),
        cmocka_unit_test(test_away),
        cmocka_unit_test(test_silent_wire),
        cmocka_unit_test(test_delays),
        cmocka_unit_test(test_chance),
        cmocka_unit_test(test_close_while_dialling),
        cmocka_unit_test(test_close_while_waiting),
        cmocka_unit_test(test_never_started),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_drain_while_away),
        cmocka_unit_test(test_refresh),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
