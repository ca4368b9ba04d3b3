/*
 * tests/unit/endpoint/test_exporter.c: texts on their way to a telemetry server that is well, away, slow, broken or
 * unwilling. The server is a real one on loopback (support/sink.h); the clock can be moved on.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/io/world.h"

#include "endpoint/exporter.h"
#include "support/port.h"
#include "support/sink.h"

typedef struct rig {
    world w;
    ew__exporter exporter;
    ew__exporter_news news;
    unsigned n_queued, n_taken; /* texts are {"n":0}, {"n":1} ... */
    unsigned n_sent, n_lost, n_told, n_closed;
    size_t pad; /* makes texts longer by this */
} rig;

static uint64_t leap_ns; /* how far the test has moved the clock */

static uint64_t leaping_clock(void *ud) {
    (void)ud;
    return ew_env_default()->now_ns(NULL) + leap_ns;
}

static bool next_text(void *ud, ew__buf *body) {
    rig *r = ud;
    if (r->n_taken == r->n_queued)
        return false;
    ew__buf_clear(body);
    (void)ew__buf_printf(body, "{\"n\":%u}", r->n_taken);
    for (size_t i = 0; i < r->pad; i++)
        ew__buf_char(body, ' ');
    r->n_taken++;
    if (body->err == EW_OK)
        return true;
    r->n_told++; /* no memory: lost already */
    r->n_lost++;
    return false;
}

static void told(void *ud, bool sent) {
    rig *r = ud;
    r->n_told++;
    r->n_sent += sent;
    r->n_lost += !sent;
}

static const ew__exporter_source source = {.next = next_text, .told = told};

static void on_exporter_closed(ew__exporter *exporter) { ew__container_of(exporter, rig, exporter)->n_closed++; }

static ew__export_target aim_at(const char *host, uint16_t port) {
    ew__export_target aim = {.port = port, .loopback_only = true};
    memcpy(aim.host, host, strlen(host));
    (void)snprintf(aim.authority, sizeof aim.authority, "%.60s:%u", host, port);
    memcpy(aim.path, "/api/traces", 12);
    return aim;
}

static void rig_init(rig *r, uint16_t port) {
    memset(r, 0, sizeof *r);
    leap_ns = 0;
    world_init(&r->w);
    r->w.env.now_ns = leaping_clock;
    ew__executor_read_clock(&r->w.loop.executor);
    ew__exporter_init(&r->exporter, &r->w.loop, &source, r, &r->news);
    ew__export_target aim = aim_at("127.0.0.1", port);
    if (port)
        assert_int_equal(ew__exporter_aim(&r->exporter, &aim), EW_OK);
}

static void rig_close(rig *r, uint64_t flush_ms) {
    ew__exporter_close(&r->exporter, flush_ms, on_exporter_closed);
    run_until(&r->w, &r->n_closed, 1);
}

static void rig_done(rig *r) {
    if (!r->n_closed)
        rig_close(r, 0);
    assert_int_equal(r->n_closed, 1);
    assert_int_equal(r->n_taken, r->n_told);
    assert_int_equal(r->news.away, 0);
    assert_int_equal(r->news.refusing, 0);
    ew__exporter_done(&r->exporter);
    world_done(&r->w);
}

static void queue(rig *r, unsigned n) {
    r->n_queued += n;
    ew__exporter_wake(&r->exporter);
}

static void leap(rig *r, uint64_t ms) {
    leap_ns += EW__MS(ms);
    ew__executor_read_clock(&r->w.loop.executor);
}

static unsigned count_lines(const rig *r, const char *text) {
    unsigned n = 0;
    for (const char *at = r->w.log; (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

static void assert_posts(sink *s, unsigned from, unsigned n) {
    char text[32];
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(text, sizeof text, "{\"n\":%u}", from + i);
        assert_non_null(sink_body(s, i));
        assert_string_equal(sink_body(s, i), text);
    }
    assert_null(sink_body(s, n));
}

/* ---- all is well ---- */

static void test_exporter__sends_in_order(void **state) {
    rig r;
    sink s;
    char wanted[256];
    (void)state;
    assert_true(sink_start(&s, 0, true));
    rig_init(&r, s.port);
    queue(&r, 1);
    assert_int_equal(r.n_taken, 0); /* not before the next turn */
    run_until(&r.w, &r.n_sent, 1);
    queue(&r, 49);
    run_until(&r.w, &r.n_sent, 50);
    assert_posts(&s, 0, 50);
    assert_int_equal(s.n_connections, 1);
    (void)snprintf(wanted, sizeof wanted,
                   "POST /api/traces HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAccept: application/json\r\n"
                   "Content-Type: application/json\r\nContent-Length: 7\r\n\r\n",
                   s.port);
    assert_string_equal(sink_head(&s, 0), wanted);
    assert_int_equal(r.w.n_lines, 0);
    rig_done(&r);
    sink_stop(&s);
}

static void test_exporter__base_path_name_and_odd_answers(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    rig_init(&r, 0);
    queue(&r, 1);
    run_ms(&r.w, 50);
    assert_int_equal(r.n_taken, 0); /* no aim: they wait */
    ew__export_target aim = aim_at("localhost", s.port);
    memcpy(aim.path, "/some/base/api/traces", 22);
    assert_int_equal(ew__exporter_aim(&r.exporter, &aim), EW_OK);
    run_until(&r.w, &r.n_sent, 1);
    assert_non_null(strstr(sink_head(&s, 0), "POST /some/base/api/traces HTTP/1.1\r\nHost: localhost:"));
    atomic_store(&s.mode, SINK_CHUNKED);
    queue(&r, 3);
    run_until(&r.w, &r.n_sent, 4);
    atomic_store(&s.mode, SINK_OK);
    r.pad = 3 * 1024 * 1024; /* more than the socket takes at once */
    queue(&r, 1);
    run_until(&r.w, &r.n_sent, 5);
    assert_int_equal(strlen(sink_body(&s, 4)), 7 + r.pad);
    assert_int_equal(s.n_connections, 1);
    rig_done(&r);
    sink_stop(&s);
}

/* Bytes behind an answer are not the beginning of the next one. */
static void test_exporter__bytes_after_answer(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    rig_init(&r, s.port);
    atomic_store(&s.once, SINK_EXTRA);
    queue(&r, 2);
    run_until(&r.w, &r.n_told, 2);
    assert_int_equal(r.n_sent, 2);
    assert_posts(&s, 0, 2);
    assert_int_equal(s.n_connections, 2);
    rig_done(&r);
    sink_stop(&s);
}

static void test_exporter__another_aim(void **state) {
    rig r;
    sink a, b;
    (void)state;
    assert_true(sink_start(&a, 0, true));
    assert_true(sink_start(&b, 0, true));
    rig_init(&r, a.port);
    queue(&r, 1);
    run_until(&r.w, &r.n_sent, 1);
    ew__export_target aim = aim_at("127.0.0.1", b.port);
    assert_int_equal(ew__exporter_aim(&r.exporter, &aim), EW_OK);
    assert_int_equal(ew__exporter_aim(&r.exporter, &aim), EW_OK);
    queue(&r, 2);
    run_until(&r.w, &r.n_sent, 3);
    assert_posts(&a, 0, 1);
    assert_posts(&b, 1, 2);
    aim = aim_at("127.0.0.1", a.port); /* while it waits for an answer, and while it dials */
    queue(&r, 1);
    RUN_WHILE(&r.w, r.exporter.state != EW__EXPORTER_WAITING);
    assert_int_equal(ew__exporter_aim(&r.exporter, &aim), EW_OK);
    queue(&r, 1);
    RUN_WHILE(&r.w, r.exporter.state != EW__EXPORTER_DIALLING);
    aim = aim_at("127.0.0.1", b.port);
    assert_int_equal(ew__exporter_aim(&r.exporter, &aim), EW_OK);
    run_until(&r.w, &r.n_sent, 5);
    assert_posts(&a, 0, 1);
    assert_posts(&b, 1, 4);
    assert_int_equal(r.w.n_lines, 0);
    rig_done(&r);
    sink_stop(&a);
    sink_stop(&b);
}

/* ---- it is not ---- */

static void test_exporter__away_and_back(void **state) {
    rig r;
    sink s;
    uint16_t port = free_port();
    (void)state;
    rig_init(&r, port);
    queue(&r, 5);
    run_until_logged(&r.w, "is away");
    for (int i = 0; i < 20; i++) { /* many tries, one line */
        leap(&r, 31000);
        run_ms(&r.w, 30);
    }
    assert_int_equal(r.w.n_lines, 1);
    assert_int_equal(r.exporter.backoff_ms, 30000);
    assert_int_equal(r.n_taken, 1);
    assert_int_equal(r.n_told, 0);
    assert_true(sink_start(&s, port, true));
    leap(&r, 31000);
    run_until(&r.w, &r.n_sent, 5);
    assert_posts(&s, 0, 5);
    assert_int_equal(count_lines(&r, "is back"), 1);
    assert_int_equal(r.w.n_lines, 2);
    sink_stop(&s); /* away again: told again */
    queue(&r, 1);
    run_until_logged(&r.w, "is back");
    leap(&r, 1000);
    RUN_WHILE(&r.w, count_lines(&r, "is away") < 2);
    assert_true(r.exporter.backoff_ms <= 2000);
    rig_done(&r);
    assert_int_equal(r.n_lost, 1);
}

/* What several loops find is one line. */
static void test_exporter__news_are_shared(void **state) {
    rig r;
    ew__exporter other;
    uint16_t port = free_port();
    (void)state;
    rig_init(&r, port);
    ew__exporter_init(&other, &r.w.loop, &source, &r, &r.news);
    ew__export_target aim = aim_at("127.0.0.1", port);
    assert_int_equal(ew__exporter_aim(&other, &aim), EW_OK);
    queue(&r, 2);
    ew__exporter_wake(&other);
    RUN_WHILE(&r.w, !r.exporter.away || !other.away);
    assert_int_equal(r.w.n_lines, 1);
    ew__exporter_close(&other, 0, NULL);
    run_ms(&r.w, 20);
    ew__exporter_done(&other);
    rig_done(&r);
}

static void test_exporter__refused(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    atomic_store(&s.mode, SINK_500);
    rig_init(&r, s.port);
    queue(&r, 10);
    run_until(&r.w, &r.n_lost, 10);
    assert_int_equal(r.w.n_lines, 1);
    assert_true(logged(&r.w, "HTTP 500"));
    atomic_store(&s.mode, SINK_OK);
    queue(&r, 1);
    run_until(&r.w, &r.n_sent, 1);
    assert_posts(&s, 0, 11); /* each once */
    assert_int_equal(s.n_connections, 1);
    rig_done(&r);
    sink_stop(&s);
}

static void test_exporter__closed_between_posts(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    atomic_store(&s.mode, SINK_CLOSE_AFTER);
    rig_init(&r, s.port);
    for (unsigned i = 1; i <= 5; i++) {
        queue(&r, 1);
        run_until(&r.w, &r.n_sent, i);
        run_ms(&r.w, 30);
    }
    queue(&r, 20); /* and right behind the answer */
    run_until(&r.w, &r.n_told, 25);
    assert_int_equal(r.n_sent, 25);
    assert_int_equal(r.w.n_lines, 0);
    rig_done(&r);
    sink_stop(&s);
}

static void test_exporter__dies_before_the_answer(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    rig_init(&r, s.port);
    queue(&r, 1);
    run_until(&r.w, &r.n_sent, 1);
    atomic_store(&s.once, SINK_CLOSE_BEFORE);
    queue(&r, 1);
    run_until(&r.w, &r.n_sent, 2);
    assert_int_equal(s.n_posts, 3);
    assert_string_equal(sink_body(&s, 1), sink_body(&s, 2));
    assert_int_equal(r.w.n_lines, 0);
    atomic_store(&s.mode, SINK_CLOSE_BEFORE);
    queue(&r, 1);
    run_until(&r.w, &r.n_lost, 1); /* twice is enough */
    assert_int_equal(s.n_posts, 5);
    assert_int_equal(count_lines(&r, "is away"), 1);
    assert_true(logged(&r.w, "it closed the connection without an answer"));
    atomic_store(&s.mode, SINK_OK);
    queue(&r, 1);
    run_until(&r.w, &r.n_sent, 3);
    assert_int_equal(count_lines(&r, "is back"), 1);
    rig_done(&r);
    sink_stop(&s);
}

static void test_exporter__garbage(void **state) {
    static const sink_mode modes[] = {SINK_GARBAGE, SINK_CUT};
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        rig r;
        sink s;
        assert_true(sink_start(&s, 0, true));
        atomic_store(&s.mode, modes[i]);
        rig_init(&r, s.port);
        queue(&r, 1);
        run_until(&r.w, &r.n_lost, 1);
        assert_true(logged(&r.w, "its answer is no HTTP"));
        assert_int_equal(r.w.n_lines, 1);
        rig_done(&r);
        sink_stop(&s);
    }
}

static void test_exporter__answer_until_close(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    atomic_store(&s.mode, SINK_UNTIL_CLOSE);
    rig_init(&r, s.port);
    queue(&r, 3);
    run_until(&r.w, &r.n_sent, 3);
    assert_posts(&s, 0, 3);
    assert_int_equal(s.n_connections, 3);
    assert_int_equal(r.w.n_lines, 0);
    rig_done(&r);
    sink_stop(&s);
}

static void test_exporter__silent(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    atomic_store(&s.mode, SINK_SILENT);
    rig_init(&r, s.port);
    queue(&r, 1);
    for (unsigned i = 1; i <= 2; i++) {
        RUN_WHILE(&r.w, r.exporter.state != EW__EXPORTER_WAITING || r.exporter.tries != i);
        leap(&r, 9000);
        run_ms(&r.w, 50);
        assert_int_equal(r.exporter.state, EW__EXPORTER_WAITING);
        leap(&r, 1100);
    }
    run_until(&r.w, &r.n_lost, 1);
    assert_true(logged(&r.w, "does not answer"));
    rig_done(&r);
    sink_stop(&s);
}

/* Of what a name means, only this machine's addresses are tried when a peer named it. */
static void test_exporter__loopback_only(void **state) {
    static const char *const hosts[] = {"192.0.2.1", "0.0.0.0", "::ffff:127.0.0.1", "::"};
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        rig r;
        rig_init(&r, 0);
        ew__export_target aim = aim_at(hosts[i], s.port);
        assert_int_equal(ew__exporter_aim(&r.exporter, &aim), EW_OK);
        queue(&r, 1);
        run_until_logged(&r.w, "is away");
        assert_true(logged(&r.w, "address not available"));
        rig_done(&r);
    }
    assert_int_equal(s.n_connections, 0);
    sink_stop(&s);
}

/* ---- its share of the loop ---- */

/* With its credit used up it goes on, bit by bit; closing does not wait for credit. */
static void test_exporter__pace(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, false));
    rig_init(&r, s.port);
    queue(&r, 1);
    run_until(&r.w, &r.n_sent, 1);
    r.exporter.credit_ns = -(int64_t)EW__MS(1000);
    queue(&r, 10);
    run_ms(&r.w, 100);
    assert_int_equal(r.n_sent, 1);
    leap(&r, 40000);
    run_until(&r.w, &r.n_sent, 11);
    r.exporter.credit_ns = -(int64_t)EW__MS(1000000);
    queue(&r, 10);
    rig_close(&r, 20000);
    assert_int_equal(r.n_sent, 21);
    rig_done(&r);
    sink_stop(&s);
}

/* ---- the end ---- */

static void test_exporter__flush(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    rig_init(&r, s.port);
    queue(&r, 200);
    rig_close(&r, 20000);
    assert_int_equal(r.n_sent, 200);
    rig_done(&r);
    sink_stop(&s);
}

static void test_exporter__flush_has_a_limit(void **state) {
    rig r;
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, true));
    atomic_store(&s.mode, SINK_SILENT);
    rig_init(&r, s.port);
    queue(&r, 2);
    ew__exporter_close(&r.exporter, 500, on_exporter_closed);
    RUN_WHILE(&r.w, r.exporter.state != EW__EXPORTER_WAITING);
    assert_int_equal(r.n_closed, 0);
    leap(&r, 600);
    run_until(&r.w, &r.n_closed, 1);
    assert_int_equal(r.n_lost, 1);
    assert_int_equal(r.exporter.tries, 1); /* it was not the time for an answer that ended it */
    rig_done(&r);
    rig_init(&r, s.port);
    queue(&r, 1);
    ew__exporter_close(&r.exporter, 20000, on_exporter_closed);
    run_ms(&r.w, 50);
    rig_close(&r, 0); /* the second time: now */
    rig_done(&r);
    sink_stop(&s);
}

static void test_exporter__no_flush(void **state) {
    rig r;
    (void)state;
    rig_init(&r, free_port());
    queue(&r, 3);
    run_until_logged(&r.w, "is away");
    ew__exporter_close(&r.exporter, 20000, on_exporter_closed);
    assert_int_equal(r.n_closed, 1); /* it is away: not even a turn */
    rig_done(&r);
    rig_init(&r, free_port()); /* not known to be away yet: one try */
    queue(&r, 3);
    rig_close(&r, 20000);
    assert_int_equal(r.n_lost, 1);
    rig_done(&r);
    rig_init(&r, 0);
    ew__exporter_close(&r.exporter, 20000, on_exporter_closed);
    assert_int_equal(r.n_closed, 1);
    rig_done(&r);
}

static void test_exporter__no_memory(void **state) {
    sink s;
    (void)state;
    assert_true(sink_start(&s, 0, false));
    for (uint64_t n = 1; n < 40; n++) {
        rig r;
        rig_init(&r, 0);
        ew__export_target aim = aim_at("127.0.0.1", s.port);
        r.w.fail_at = r.w.n_allocations + n;
        if (ew__exporter_aim(&r.exporter, &aim) != EW_OK)
            assert_int_equal(ew__exporter_aim(&r.exporter, &aim), EW_OK);
        queue(&r, 3);
        for (int i = 0; i < 400 && r.n_told < r.n_queued; i++) {
            leap(&r, 100);
            ew__exporter_wake(&r.exporter);
            uv_run(r.w.loop.uv, UV_RUN_ONCE);
        }
        rig_close(&r, 20000);
        assert_int_equal(r.n_taken, r.n_told);
        rig_done(&r);
    }
    sink_stop(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exporter__sends_in_order),
        cmocka_unit_test(test_exporter__base_path_name_and_odd_answers),
        cmocka_unit_test(test_exporter__bytes_after_answer),
        cmocka_unit_test(test_exporter__another_aim),
        cmocka_unit_test(test_exporter__away_and_back),
        cmocka_unit_test(test_exporter__news_are_shared),
        cmocka_unit_test(test_exporter__refused),
        cmocka_unit_test(test_exporter__closed_between_posts),
        cmocka_unit_test(test_exporter__dies_before_the_answer),
        cmocka_unit_test(test_exporter__garbage),
        cmocka_unit_test(test_exporter__answer_until_close),
        cmocka_unit_test(test_exporter__silent),
        cmocka_unit_test(test_exporter__loopback_only),
        cmocka_unit_test(test_exporter__pace),
        cmocka_unit_test(test_exporter__flush),
        cmocka_unit_test(test_exporter__flush_has_a_limit),
        cmocka_unit_test(test_exporter__no_flush),
        cmocka_unit_test(test_exporter__no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
