/*
 * tests/unit/endpoint/test_choose.c: a connection whose first bytes are kept until they tell its wire.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/link.h"
#include "unit/io/world.h"

static world w;
static ew__listener listener;
static ew__address address;
static ew__scratches scratches;
static ew__traffic traffic;
static ew__site site;
static unsigned n_links, n_closed, n_listener_closed, n_asked;
static ew_err why_closed;

/* ---- two wires that send back what they get, in brackets of their own ---- */

static ew_err echo_init(ew__peer *peer) {
    assert_int_equal(peer->role, EW__SERVE);
    return EW_OK;
}

static void echo_input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    ew__out_str(&peer->conn->out, ew_str_from(peer->wire->name));
    ew__out_add(&peer->conn->out, bytes, n);
    peer->conn->ops->send(peer->conn);
}

static void echo_eof(ew__peer *peer) {
    ew__out_str(&peer->conn->out, EW_STR("."));
    peer->conn->ops->send(peer->conn);
    peer->conn->ops->finish(peer->conn);
}

static void echo_gone(ew__peer *peer, ew_err why) {
    (void)peer;
    (void)why;
}

#define ECHO_WIRE(text)                                                                                                \
    {                                                                                                                  \
        .name = text, .serve_size = sizeof(ew__peer), .init = echo_init, .input = echo_input, .eof = echo_eof,         \
        .gone = echo_gone                                                                                              \
    }
static const ew__wire even = ECHO_WIRE("e:"), odd = ECHO_WIRE("o:");

/* How many bytes there are before the first newline. */
static const ew__wire *choose(const uint8_t *bytes, size_t n, bool last) {
    const uint8_t *newline = memchr(bytes, '\n', n);
    n_asked++;
    assert_true(n > 0);
    if (!newline && !last)
        return NULL;
    return (newline ? (size_t)(newline - bytes) : n) % 2 ? &odd : &even;
}

/* ---- connections ---- */

static void owner_closed(ew__link *link, ew_err why) {
    assert_null(link->peer);
    assert_null(link->choosing);
    why_closed = why;
    n_closed++;
}

static const ew__link_owner owner = {.closed = owner_closed};

static void on_connection(ew__listener *from) {
    ew__link *link = ew__link_new(&w.loop, &site, &scratches, &traffic, &owner, NULL);
    n_links++;
    if (!link) {
        n_closed++;
        ew__accept_refuse(from);
        return;
    }
    assert_int_equal(ew__accept(from, &link->stream), EW_OK);
    ew__link_start_choosing(link, &w.loop, choose);
}

static void begin(end *client) {
    ew__where where = {.kind = EW__WHERE_TCP, .host = "127.0.0.1"};
    world_init(&w);
    memset(&scratches, 0, sizeof scratches);
    memset(&traffic, 0, sizeof traffic);
    n_links = n_closed = n_listener_closed = n_asked = 0;
    assert_int_equal(ew__address_parse("127.0.0.1:0", &address), EW_OK);
    assert_int_equal(ew__listen(&listener, &w.loop, &address, on_connection), EW_OK);
    where.port = address.port;
    end_init(client, &w);
    assert_int_equal(end_dial(client, &where), EW_OK);
    run_until(&w, &n_links, 1);
}

static void on_listener_closed(ew__listener *closed) {
    (void)closed;
    n_listener_closed = 1;
}

static void finish(end *client) {
    end_close(client);
    ew__listener_close(&listener, on_listener_closed);
    run_until(&w, &n_listener_closed, 1);
    run_until(&w, &n_closed, n_links);
    assert_int_equal(atomic_load(&traffic.open), 0);
    ew__scratches_done(&scratches, w.loop.executor.env);
    world_done(&w);
}

static void expect(end *client, const char *text) {
    run_until_bytes(&w, &client->n_in, strlen(text));
    assert_string_equal(client->in, text);
}

/* ---- tests ---- */

static void at_once(void **state) {
    end client;
    (void)state;
    begin(&client);
    end_send(&client, "ab\nrest", 7);
    expect(&client, "e:ab\nrest");
    assert_int_equal(n_asked, 1);
    end_send(&client, "!", 1);
    expect(&client, "e:ab\nreste:!");
    assert_int_equal(n_asked, 1);
    finish(&client);
}

static void in_pieces(void **state) {
    static const char text[] = "abc\nd";
    end client;
    (void)state;
    begin(&client);
    for (size_t i = 0; i + 1 < sizeof text; i++) {
        end_send(&client, &text[i], 1);
        run_ms(&w, 10);
    }
    expect(&client, "o:abc\no:d"); /* all that was kept, then what came later */
    finish(&client);
}

static void the_end_tells(void **state) {
    end client;
    (void)state;
    begin(&client);
    end_send(&client, "abc", 3);
    ew__stream_flush(&client.stream);
    assert_int_equal(shutdown(client.stream.fd, SHUT_WR), 0);
    run_until(&w, &client.n_eof, 1);
    expect(&client, "o:abc.");
    finish(&client);
    begin(&client); /* and if nothing was said, nobody is asked */
    assert_int_equal(shutdown(client.stream.fd, SHUT_WR), 0);
    run_until(&w, &n_closed, 1);
    assert_int_equal(why_closed, EW_OK);
    assert_int_equal(n_asked, 0);
    finish(&client);
}

/* What is never clear becomes so: after that many bytes, or that much time. */
static void must_decide(void **state) {
    static char big[200000];
    end client;
    (void)state;
    memset(big, 'x', sizeof big);
    begin(&client);
    w.limits.head_ms = 1000000;
    client.forget = true;
    end_send(&client, big, sizeof big);
    run_until_bytes(&w, &client.n_in, sizeof big + 2);
    finish(&client);
    begin(&client);
    w.limits.head_ms = 50;
    run_ms(&w, 150); /* silence may last */
    assert_int_equal(n_closed, 0);
    end_send(&client, "abcd", 4);
    expect(&client, "e:abcd");
    finish(&client);
}

static void closed_early(void **state) {
    end client;
    (void)state;
    begin(&client);
    end_send(&client, "ab", 2);
    run_until(&w, &n_asked, 1);
    finish(&client); /* with a reset or an end: nobody is left */
}

/* The client takes no memory for what it sends: that of the link fails. */
static void no_memory(void **state) {
    (void)state;
    for (uint64_t n = 1, quiet = 0; quiet < 1; n++) {
        end client;
        begin(&client);
        client.forget = true;
        w.n_allocations = 0;
        w.fail_at = n;
        assert_int_equal(send(client.stream.fd, "a", 1, MSG_NOSIGNAL), 1);
        run_ms(&w, 20);
        (void)!send(client.stream.fd, "b\n", 2, MSG_NOSIGNAL);
        run_ms(&w, 20);
        quiet = w.n_allocations < n;
        w.fail_at = 0;
        if (quiet)
            run_until_bytes(&w, &client.n_in, 5);
        finish(&client);
        assert_true(n < 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_once),     cmocka_unit_test(in_pieces),    cmocka_unit_test(the_end_tells),
        cmocka_unit_test(must_decide), cmocka_unit_test(closed_early), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
