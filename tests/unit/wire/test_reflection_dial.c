/*
 * tests/unit/wire/test_reflection_dial.c: the opening handshake of a runtime that has dialled: the request, answers of all
 * kinds, and frames that come with them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/reflection_world.h"

typedef struct dial {
    world w;
    char accept[EW__WS_ACCEPT_TEXT + 1];
} dial;

static unsigned n_ready;
static void count_ready(rig_end *end) { n_ready += end->side == RIG_SERVER; }

/* The wire has sent its request. */
static void dial_with(dial *d, rig_options options, const char *path) {
    static const ew__runtime_identity self = {
        .id = {"rig", 3}, .name = {"rig", 3}, .version = {"everywire/0", 11}, .pid = 1};
    memset(d, 0, sizeof *d);
    n_ready = 0;
    options.handshake = true;
    options.seed = 1;
    d->w.raw = RIG_CLIENT;
    rig_init(&d->w.r, &ew__wire_reflection, &options);
    d->w.r.on_ready = count_ready;
    d->w.r.side[RIG_SERVER].site.path = ew_str_from(path);
    d->w.r.side[RIG_SERVER].site.identity = &self;
    d->w.pair = rig_connect_raw(&d->w.r, RIG_CLIENT);
    rig_run(&d->w.r);
    assert_true(world_accept(&d->w, d->accept));
}

static void dial_plain(dial *d) {
    dial_with(d, (rig_options){.seed = 1}, "");
    rig_forget(d->w.pair, d->w.pair->end[RIG_CLIENT].got_len);
}

static void put_answer(dial *d, const char *more) {
    char text[1000];
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     "Sec-WebSocket-Accept: %s\r\n%s\r\n",
                     d->accept, more);
    rig_say(d->w.pair, text, (size_t)n);
}

static void say_text(dial *d, const char *text) { say_bytes(d->w.pair, text, strlen(text)); }

/* It has given up, without a word. */
static void check_gave_up(dial *d) {
    assert_true(world_over(&d->w));
    assert_int_equal(d->w.pair->end[RIG_CLIENT].got_len, 0);
    assert_null(d->w.pair->end[RIG_SERVER].peer);
    assert_int_equal(n_ready, 0);
    world_done(&d->w);
}

/* ---- the request ---- */

static void test_wire_reflection_dial__request(void **state) {
    (void)state;
    for (int with_path = 0; with_path < 2; with_path++) {
        dial d;
        char expected[300];
        dial_with(&d, (rig_options){.seed = 1}, with_path ? "/a?b=c" : "");
        const char *got = d.w.pair->end[RIG_CLIENT].got;
        (void)snprintf(expected, sizeof expected,
                       "GET %s HTTP/1.1\r\nHost: 127.0.0.1:3400\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       "Sec-WebSocket-Key: %.24s\r\nSec-WebSocket-Version: 13\r\n\r\n",
                       with_path ? "/a?b=c" : "/", strstr(got, "Key: ") + 5);
        assert_string_equal(got, expected); /* no extension, no subprotocol, and nothing before the answer */
        assert_int_equal(n_ready, 0);
        world_done(&d.w);
    }
}

/* Two connections have two keys. */
static void test_wire_reflection_dial__keys(void **state) {
    (void)state;
    dial d;
    dial_with(&d, (rig_options){.seed = 1}, "");
    rig_pair *second = rig_connect_raw(&d.w.r, RIG_CLIENT);
    rig_run(&d.w.r);
    assert_string_not_equal(d.w.pair->end[RIG_CLIENT].got, second->end[RIG_CLIENT].got);
    world_done(&d.w);
}

/* A target that cannot stand in a head: nothing is left behind. */
static void test_wire_reflection_dial__bad_path(void **state) {
    (void)state;
    rig r;
    rig_init(&r, &ew__wire_reflection, &(rig_options){.seed = 1, .handshake = true});
    r.side[RIG_SERVER].site.path = EW_STR("/a b");
    rig_pair *pair = rig_connect_raw(&r, RIG_CLIENT);
    rig_run(&r);
    assert_int_equal(pair->end[RIG_CLIENT].got_len, 0);
    rig_finish(&r);
}

/* ---- answers ---- */

static void test_wire_reflection_dial__open(void **state) {
    (void)state;
    dial d;
    dial_plain(&d);
    put_answer(&d, "Server: x\r\n");
    hear(&d.w, REGISTER);
    assert_int_equal(n_ready, 1);
    say(&d.w, RPC "'id':$9,'result':{}}");
    say(&d.w, RUN("1", "/test/echo", ""));
    hear(&d.w, STATE("1", "$1") RESULT("1", "null", "$1"));
    world_done(&d.w);
}

/* Frames in the same segment as the answer, in any pieces. */
static void test_wire_reflection_dial__early_frames(void **state) {
    (void)state;
    for (int split = RIG_WHOLE; split <= RIG_RANDOM; split++) {
        dial d;
        dial_with(&d, (rig_options){.split = (rig_split)split}, "");
        rig_forget(d.w.pair, d.w.pair->end[RIG_CLIENT].got_len);
        put_answer(&d, "");
        put_frame(&d.w, WS_FIN | WS_PING, "x", 1);
        put(&d.w, RUN("1", "/test/echo", ",'input':7"));
        say(&d.w, RUN("2", "/test/echo", ",'input':8"));
        hear(&d.w,
             REGISTER "(pong) x\n" STATE("1", "$1") RESULT("1", "7", "$1") STATE("2", "$2") RESULT("2", "8", "$2"));
        world_done(&d.w);
    }
}

static void test_wire_reflection_dial__refused(void **state) {
    (void)state;
    static const char *const answers[] = {
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 503\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\n",
        "HTTP/1.1 301 Moved\r\nLocation: ws://elsewhere\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        dial d;
        dial_plain(&d);
        say_text(&d, answers[i]);
        check_gave_up(&d);
    }
}

static void test_wire_reflection_dial__bad_answers(void **state) {
    (void)state;
    static const char *const answers[] = {
        "SSH-2.0-OpenSSH_9.2\r\n",
        "\x81\x02{}",
        "{\"jsonrpc\":\"2.0\"}\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"),
        "HTTP/1.1 101 Switching Protocols\nUpgrade: websocket\n\n",
    };
    static const char *const fields[] = {"Sec-WebSocket-Extensions: permessage-deflate\r\n",
                                         "Sec-WebSocket-Protocol: x\r\n",
                                         "Upgrade: h2c\r\n",
                                         "Content-Length: 3\r\n",
                                         "Transfer-Encoding: chunked\r\n",
                                         "a b: c\r\n"};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        dial d;
        dial_plain(&d);
        say_text(&d, answers[i]);
        check_gave_up(&d);
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        dial d;
        dial_plain(&d);
        put_answer(&d, fields[i]);
        rig_run(&d.w.r);
        check_gave_up(&d);
    }
}

static void test_wire_reflection_dial__endless_head(void **state) {
    (void)state;
    dial d;
    dial_plain(&d);
    say_text(&d, "HTTP/1.1 101 Switching Protocols\r\n");
    for (int i = 0; i < 1000 && !world_over(&d.w); i++)
        say_text(&d, "X-More: and more\r\n");
    check_gave_up(&d);
}

/* ---- time ---- */

static void test_wire_reflection_dial__slow(void **state) {
    (void)state;
    for (int drip = 0; drip < 2; drip++) { /* silence, and a byte now and then */
        dial d;
        dial_plain(&d);
        for (int i = 0; i < 9; i++) {
            rig_advance(&d.w.r, 1000);
            if (drip)
                say_bytes(d.w.pair, &"HTTP/1.1 101"[i], 1);
        }
        rig_advance(&d.w.r, 999);
        assert_false(world_over(&d.w));
        rig_advance(&d.w.r, 1);
        check_gave_up(&d);
    }
}

/* The clock of the pings begins with the WebSocket. */
static void test_wire_reflection_dial__late_but_open(void **state) {
    (void)state;
    dial d;
    dial_plain(&d);
    rig_advance(&d.w.r, 9000);
    put_answer(&d, "");
    hear(&d.w, REGISTER);
    rig_advance(&d.w.r, 19999);
    hear_nothing(&d.w);
    rig_advance(&d.w.r, 1);
    hear(&d.w, "(ping)\n");
    world_done(&d.w);
}

/* ---- ends ---- */

static void test_wire_reflection_dial__gone(void **state) {
    (void)state;
    for (int half = 0; half < 2; half++) {
        dial d;
        dial_plain(&d);
        if (half)
            say_text(&d, "HTTP/1.1 101 Switching");
        rig_say_eof(d.w.pair);
        rig_run(&d.w.r);
        check_gave_up(&d);
    }
}

static void test_wire_reflection_dial__drain(void **state) {
    (void)state;
    dial d;
    dial_plain(&d);
    world_peer(&d.w)->peer.wire->drain(&world_peer(&d.w)->peer);
    put_answer(&d, "");
    rig_run(&d.w.r);
    assert_true(world_over(&d.w));
    assert_int_equal(d.w.pair->end[RIG_CLIENT].got_len, 0);
    assert_int_equal(n_ready, 0);
    world_done(&d.w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_reflection_dial__request),
        cmocka_unit_test(test_wire_reflection_dial__keys),
        cmocka_unit_test(test_wire_reflection_dial__bad_path),
        cmocka_unit_test(test_wire_reflection_dial__open),
        cmocka_unit_test(test_wire_reflection_dial__early_frames),
        cmocka_unit_test(test_wire_reflection_dial__refused),
        cmocka_unit_test(test_wire_reflection_dial__bad_answers),
        cmocka_unit_test(test_wire_reflection_dial__endless_head),
        cmocka_unit_test(test_wire_reflection_dial__slow),
        cmocka_unit_test(test_wire_reflection_dial__late_but_open),
        cmocka_unit_test(test_wire_reflection_dial__gone),
        cmocka_unit_test(test_wire_reflection_dial__drain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
