/*
 * tests/unit/wire/test_stepflow_http_greet.c: a component server is greeted once, by one of the connections to it; the
 * calls of the others wait for that.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/stepflow_http_call.h"

static void test_wire_stepflow_http_greet__once(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *a = server(&w), *b = server(&w), *c = server(&w), *d = server(&w);
    rig_call *one = open_call(a, "/e", "1"), *two = open_call(b, "/e", "2"), *three = open_call(c, "/e", "3");
    hear_initialize(&w, a);
    hear_nothing(b);
    answer(&w, a, WELCOME);
    hear_post(&w, a, INITIALIZED);
    hear_nothing(a); /* first that is taken, then calls go */
    hear_nothing(b);
    assert_int_equal(rig_capacity(b), 0);
    say_text(a, ACCEPTED);
    hear_execute(&w, a, 1, "'/e'", "1");
    hear_execute(&w, b, 2, "'/e'", "2");
    hear_execute(&w, c, 3, "'/e'", "3");
    rig_call *four = open_call(d, "/e", "4"); /* who comes later is known */
    hear_execute(&w, d, 4, "'/e'", "4");
    answer(&w, d, OUTPUT("$4", "4"));
    answer(&w, c, OUTPUT("$3", "3"));
    answer(&w, b, OUTPUT("$2", "2"));
    answer(&w, a, OUTPUT("$1", "1"));
    check_done(&w, one, "1");
    check_done(&w, two, "2");
    check_done(&w, three, "3");
    check_done(&w, four, "4");
    assert_false(ew__sf_greeting_of(client_site(&w))->everywire);
    world_done(&w);
}

/* How real servers take the notification. */
static void test_wire_stepflow_http_greet__taken(void **state) {
    (void)state;
    static const char *const bytes[] = {
        "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n\"\"",
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\"\"\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull",
    };
    for (size_t i = 0; i < N_OF(bytes); i++) {
        world w;
        world_init(&w, NULL, NULL, (rig_options){.split = i % 2 ? RIG_BYTES : RIG_WHOLE});
        rig_pair *pair = server(&w);
        rig_call *rc = open_call(pair, "/e", "1");
        hear_initialize(&w, pair);
        answer(&w, pair, RPC "'id':$9,'result':{'serverProtocolVersion':1,'supportsBlobRefs':true,'x-everywire':{}}}");
        hear_post(&w, pair, INITIALIZED);
        say_text(pair, bytes[i]);
        hear_execute(&w, pair, 1, "'/e'", "1");
        answer(&w, pair, OUTPUT("$1", "1"));
        check_done(&w, rc, "1");
        assert_true(ew__sf_greeting_of(client_site(&w))->everywire);
        world_done(&w);
    }
}

/* ---- servers that do not want ---- */

static const struct {
    const char *status, *body;
    ew_status code;
    const char *message;
} refusals[] = {
    {"200 OK", "{'id':$9,'error':{'code':-32600,'message':'not you'}}", EW_STATUS_INVALID_ARGUMENT,
     "the server refuses the handshake: not you"},
    {"400 Bad Request", "{'error':{'code':-32600,'message':'Object missing required field'}}",
     EW_STATUS_INVALID_ARGUMENT, "the server refuses the handshake: Object missing required field"},
    {"503 Service Unavailable", ERROR("$9", "{'code':-32300,'message':'busy'}"), EW_STATUS_UNAVAILABLE,
     "the server refuses the handshake: busy"},
    {"404 Not Found", "{'detail':'Not Found'}", EW_STATUS_NOT_FOUND, "the server refuses the handshake: Not Found"},
    {"415 Unsupported Media Type", "{'error':'Content-Type'}", EW_STATUS_INVALID_ARGUMENT,
     "the server refuses the handshake: Content-Type"},
    {"502 Bad Gateway", "<html>", EW_STATUS_UNAVAILABLE, "the server refuses the handshake: Bad Gateway"},
    {"500 Internal Server Error", RPC "'id':$9,'result':{'server_protocol_version':1}}", EW_STATUS_INTERNAL,
     "the server refuses the handshake: Internal Server Error"},
    {"200 OK", "<html>", EW_STATUS_INTERNAL, NO_SERVER},
    {"200 OK", "", EW_STATUS_INTERNAL, NO_SERVER},
    {"200 OK", "{'id':$9,'result':{}}", EW_STATUS_INTERNAL, NO_SERVER},
    {"200 OK", "{'id':$9,'result':{'protocolVersion':'2025-06-18'}}", EW_STATUS_INTERNAL, NO_SERVER},
    {"200 OK", "{'id':$9,'result':null}", EW_STATUS_INTERNAL, NO_SERVER},
    {"202 Accepted", "''", EW_STATUS_INTERNAL, NO_SERVER},
};

static void test_wire_stepflow_http_greet__refused(void **state) {
    (void)state;
    for (size_t i = 0; i < N_OF(refusals); i++) {
        world w;
        world_plain(&w);
        rig_pair *a = server(&w), *b = server(&w), *c = server(&w);
        rig_call *one = open_call(a, "/e", "1"), *two = open_call(b, "/e", "2");
        hear_initialize(&w, a);
        answer_as(&w, a, refusals[i].status, refusals[i].body);
        peer_check_failed(one, refusals[i].code, EW_ORIGIN_PROTOCOL, refusals[i].message, (int)i);
        peer_check_failed(two, refusals[i].code, EW_ORIGIN_PROTOCOL, refusals[i].message, (int)i);
        hear_nothing(b);
        assert_true(is_over(a) && is_over(b));
        rig_call *three = open_call(c, "/e", "3"); /* perhaps it has changed its mind */
        shake_hands(&w, c);
        hear_execute(&w, c, 1, "'/e'", "3");
        answer(&w, c, OUTPUT("$1", "3"));
        check_done(&w, three, "3");
        world_done(&w);
    }
}

static void test_wire_stepflow_http_greet__not_taken(void **state) {
    (void)state;
    static const char *const status[] = {"400 Bad Request", "302 Found", "500 Internal Server Error"};
    for (size_t i = 0; i < N_OF(status); i++) {
        static const char text[] = "the server did not take the notification that it is initialized";
        world w;
        world_plain(&w);
        rig_pair *a = server(&w), *b = server(&w);
        rig_call *one = open_call(a, "/e", "1"), *two = open_call(b, "/e", "2");
        hear_initialize(&w, a);
        answer(&w, a, WELCOME);
        hear_post(&w, a, INITIALIZED);
        answer_as(&w, a, status[i], "{'error':{'code':-32600,'message':'no'}}");
        check_failed(one, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, text);
        check_failed(two, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, text);
        assert_true(is_over(a) && is_over(b));
        world_done(&w);
    }
}

/* A stream is no answer to that. */
static void test_wire_stepflow_http_greet__streamed(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *pair = server(&w);
    rig_call *rc = open_call(pair, "/e", "1");
    hear_initialize(&w, pair);
    say_message(&w, pair, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n", "data: " WELCOME "\n\n");
    check_failed(rc, EW_STATUS_INTERNAL, EW_ORIGIN_PROTOCOL, NO_SERVER);
    world_done(&w);
}

/* A server that says nothing at all does not keep anybody for ever. */
static void test_wire_stepflow_http_greet__silence(void **state) {
    (void)state;
    static const char text[] = "the server has not answered initialize";
    for (int half = 0; half < 2; half++) {
        world w;
        world_init(&w, NULL, NULL, (rig_options){.limits = {.runtime_wait_ms = 500}});
        rig_pair *a = server(&w), *b = server(&w), *c = server(&w);
        rig_call *one = open_call(a, "/e", "1"), *two = open_call(b, "/e", "2");
        hear_initialize(&w, a);
        rig_advance(&w.r, 499);
        if (half) {
            answer(&w, a, WELCOME);
            hear_post(&w, a, INITIALIZED);
        }
        assert_int_equal(one->ended + two->ended, 0);
        rig_advance(&w.r, 1);
        check_failed(one, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, text);
        check_failed(two, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, text);
        assert_true(is_over(a) && is_over(b));
        rig_call *three = open_call(c, "/e", "3");
        shake_hands(&w, c);
        hear_execute(&w, c, 1, "'/e'", "3");
        rig_advance(&w.r, 1000); /* now it is the call's own time */
        assert_int_equal(three->ended, 0);
        answer(&w, c, OUTPUT("$1", "3"));
        check_done(&w, three, "3");
        world_done(&w);
    }
}

/* ---- who leaves ---- */

enum { BY_EOF, BY_RESET, BY_CANCEL, BY_DEADLINE, BY_GARBAGE, BY_HALF, N_WAYS };

static void lose(world *w, rig_pair *pair, rig_call *rc, int how) {
    if (how == BY_EOF)
        rig_say_eof(pair);
    else if (how == BY_RESET)
        rig_cut(pair, RIG_SERVER, RIG_RESET);
    else if (how == BY_CANCEL)
        rig_call_cancel(rc);
    else if (how == BY_DEADLINE)
        rig_advance(&w->r, 50);
    else if (how == BY_GARBAGE)
        say_text(pair, "220 ready\r\n\r\n");
    else
        say_text(pair, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
    if (how == BY_HALF)
        rig_say_eof(pair);
    rig_run(&w->r);
}

/* The one that greets is lost: another one greets. */
static void test_wire_stepflow_http_greet__passed_on(void **state) {
    (void)state;
    for (int how = 0; how < 2 * N_WAYS; how++) {
        world w;
        world_plain(&w);
        rig_pair *a = server(&w), *b = server(&w), *c = server(&w);
        rig_call *one = rig_open(a, &(rig_request){.key = "/e", .timeout_ms = 50});
        rig_call *two = open_call(b, "/e", "2"), *three = open_call(c, "/e", "3");
        hear_initialize(&w, a);
        if (how >= N_WAYS) { /* in the second half of the handshake */
            answer(&w, a, WELCOME);
            hear_post(&w, a, INITIALIZED);
        }
        lose(&w, a, one, how % N_WAYS);
        assert_int_equal(one->ended, 1);
        assert_int_equal(two->ended + three->ended, 0);
        rig_pair *next = raw_end(b)->got_len ? b : c, *last = next == b ? c : b;
        hear_nothing(last);
        shake_hands(&w, next);
        hear_execute(&w, next, 1, "'/e'", next == b ? "2" : "3");
        hear_execute(&w, last, 2, "'/e'", next == b ? "3" : "2");
        answer(&w, last, OUTPUT("$2", "7"));
        answer(&w, next, OUTPUT("$1", "7"));
        check_done(&w, two, "7");
        check_done(&w, three, "7");
        world_done(&w);
    }
}

/* Nobody waits: the next call greets. */
static void test_wire_stepflow_http_greet__again(void **state) {
    (void)state;
    for (int how = 0; how < N_WAYS; how++) {
        world w;
        world_plain(&w);
        rig_pair *a = server(&w), *b = server(&w);
        rig_call *one = rig_open(a, &(rig_request){.key = "/e", .timeout_ms = 50});
        rig_run(&w.r);
        hear_initialize(&w, a);
        lose(&w, a, one, how);
        assert_int_equal(one->ended, 1);
        rig_call *two = begin_call(&w, b);
        answer(&w, b, OUTPUT("$1", "2"));
        check_done(&w, two, "2");
        world_done(&w);
    }
}

/* While one connection is left it is the same server; when all have gone, it may be another one. */
static void test_wire_stepflow_http_greet__all_gone(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *a = server(&w), *b = server(&w);
    rig_call *rc = open_call(a, "/e", "1");
    shake_hands(&w, a);
    hear_execute(&w, a, 1, "'/e'", "1");
    rig_cut(a, RIG_SERVER, RIG_RESET);
    rig_run(&w.r);
    check_failed(rc, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST);
    rc = open_call(b, "/e", "2");
    hear_execute(&w, b, 1, "'/e'", "2");
    answer(&w, b, OUTPUT("$1", "2"));
    check_done(&w, rc, "2");
    rig_say_eof(b);
    rig_run(&w.r);
    a = server(&w);
    (void)open_call(a, "/e", "3");
    hear_initialize(&w, a);
    world_done(&w);
}

/* ---- those that wait ---- */

static void test_wire_stepflow_http_greet__waits_no_more(void **state) {
    (void)state;
    for (int how = 0; how < N_WAYS; how++) {
        world w;
        world_plain(&w);
        rig_pair *a = server(&w), *b = server(&w), *c = server(&w);
        rig_call *one = open_call(a, "/e", "1");
        rig_call *two = rig_open(b, &(rig_request){.key = "/e", .timeout_ms = 50});
        rig_call *three = open_call(c, "/e", "3");
        hear_initialize(&w, a);
        lose(&w, b, two, how);
        assert_int_equal(two->ended, 1);
        assert_true(is_over(b));
        answer(&w, a, WELCOME);
        hear_post(&w, a, INITIALIZED);
        say_text(a, ACCEPTED);
        hear_nothing(b);
        hear_execute(&w, a, 1, "'/e'", "1");
        hear_execute(&w, c, 2, "'/e'", "3");
        answer(&w, a, OUTPUT("$1", "1"));
        answer(&w, c, OUTPUT("$2", "3"));
        check_done(&w, one, "1");
        check_done(&w, three, "3");
        world_done(&w);
    }
}

/* What a server says to a connection on which it was asked nothing yet: some do before they close one. */
static void test_wire_stepflow_http_greet__unasked(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *a = server(&w), *b = server(&w);
    rig_call *one = open_call(a, "/e", "1"), *two = open_call(b, "/e", "2");
    hear_initialize(&w, a);
    answer_as(&w, b, "408 Request Timeout", "{}");
    check_failed(two, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, "the server closed the connection before it was asked");
    assert_true(is_over(b));
    answer(&w, a, WELCOME);
    hear_post(&w, a, INITIALIZED);
    say_text(a, ACCEPTED);
    hear_execute(&w, a, 1, "'/e'", "1");
    answer(&w, a, OUTPUT("$1", "1"));
    check_done(&w, one, "1");
    world_done(&w);
}

/*
 * One that waits is lost in the same turn of the loop in which the greeting ends, so that its wire has been told of its
 * end, but it was not taken away yet.
 */
static void test_wire_stepflow_http_greet__lost_meanwhile(void **state) {
    (void)state;
    static const char failed[] = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n";
    for (int how = 0; how < 3; how++) {
        world w;
        world_plain(&w);
        rig_pair *a = server(&w), *b = server(&w);
        rig_call *one = open_call(a, "/e", "1"), *two = open_call(b, "/e", "2");
        hear_initialize(&w, a);
        answer(&w, a, WELCOME);
        hear_post(&w, a, INITIALIZED);
        ew__peer *greeter = a->end[RIG_CLIENT].peer, *waits = b->end[RIG_CLIENT].peer;
        waits->wire->eof(waits);
        assert_int_equal(two->ended, 1);
        if (how == 0)
            greeter->wire->input(greeter, (const uint8_t *)ACCEPTED, sizeof ACCEPTED - 1);
        else if (how == 1)
            greeter->wire->input(greeter, (const uint8_t *)failed, sizeof failed - 1);
        else
            rig_call_cancel(one);
        rig_run(&w.r);
        hear_nothing(b);
        if (how == 0) {
            hear_execute(&w, a, 1, "'/e'", "1");
            answer(&w, a, OUTPUT("$1", "1"));
            check_done(&w, one, "1");
        } else {
            assert_int_equal(one->ended, 1);
        }
        world_done(&w);
    }
}

#define CLOSES "200 OK\r\nConnection: close"

/* A server that closes after each answer: the greeting goes on over other connections, and is remembered for a while. */
static void test_wire_stepflow_http_greet__closes(void **state) {
    (void)state;
    world w;
    world_plain(&w);
    rig_pair *a = server(&w), *b = server(&w);
    rig_call *one = open_call(a, "/e", "1"), *two = open_call(b, "/e", "2");
    hear_initialize(&w, a);
    answer_as(&w, a, CLOSES, WELCOME);
    rig_pair *c = w.r.pairs; /* where the call of a is now */
    assert_true(is_over(a) && c != b);
    hear_post(&w, b, INITIALIZED);
    hear_nothing(c);
    say_text(b, "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    rig_pair *d = w.r.pairs;
    assert_true(is_over(b) && d != c);
    hear_execute(&w, c, 1, "'/e'", "1");
    hear_execute(&w, d, 2, "'/e'", "2");
    answer_as(&w, c, CLOSES, OUTPUT("$1", "1"));
    answer_as(&w, d, CLOSES, OUTPUT("$2", "2"));
    check_done(&w, one, "1");
    check_done(&w, two, "2");
    rig_advance(&w.r, 9000);
    rig_pair *e = server(&w);
    rig_call *three = open_call(e, "e", "3");
    hear_execute(&w, e, 3, "'/e'", "3");
    answer_as(&w, e, CLOSES,
              ERROR("$3", "{'code':-32001,'message':'none'}")); /* it cannot be asked for the bare name */
    check_failed(three, EW_STATUS_NOT_FOUND, EW_ORIGIN_ACTION, "none");
    rig_advance(&w.r, 11000);
    rig_pair *f = server(&w);
    rig_call *four = open_call(f, "/e", "4"); /* it may be another by now */
    hear_initialize(&w, f);
    answer_as(&w, f, CLOSES, WELCOME);
    rig_pair *g = w.r.pairs;
    hear_post(&w, g, INITIALIZED);
    rig_cut(g, RIG_SERVER, RIG_RESET);
    rig_run(&w.r);
    check_failed(four, EW_STATUS_UNAVAILABLE, EW_ORIGIN_CONNECT, LOST);
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_stepflow_http_greet__once),
        cmocka_unit_test(test_wire_stepflow_http_greet__taken),
        cmocka_unit_test(test_wire_stepflow_http_greet__refused),
        cmocka_unit_test(test_wire_stepflow_http_greet__not_taken),
        cmocka_unit_test(test_wire_stepflow_http_greet__streamed),
        cmocka_unit_test(test_wire_stepflow_http_greet__silence),
        cmocka_unit_test(test_wire_stepflow_http_greet__passed_on),
        cmocka_unit_test(test_wire_stepflow_http_greet__again),
        cmocka_unit_test(test_wire_stepflow_http_greet__all_gone),
        cmocka_unit_test(test_wire_stepflow_http_greet__waits_no_more),
        cmocka_unit_test(test_wire_stepflow_http_greet__unasked),
        cmocka_unit_test(test_wire_stepflow_http_greet__lost_meanwhile),
        cmocka_unit_test(test_wire_stepflow_http_greet__closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
