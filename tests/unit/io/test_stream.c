/*
 * tests/unit/io/test_stream.c: TCP streams: the size of an idle one, keep-alive, a connection and its end, bytes that
 * may wait for others, a slow reader.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/io/world.h"
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

typedef struct door {
    ew__listener listener;
    end *next;
    unsigned n_closed;
} door;

static void on_connection(ew__listener *listener) {
    end *e = ew__container_of(listener, door, listener)->next;
    ew_err err = ew__accept(listener, &e->stream);
    end_start(e);
    assert_int_equal(err, EW_OK);
}

static void on_door_closed(ew__listener *listener) { ew__container_of(listener, door, listener)->n_closed++; }

static int option(int fd, int level, int name) {
    int value = -1;
    socklen_t n = sizeof value;
    assert_int_equal(getsockopt(fd, level, name, &value, &n), 0);
    return value;
}

static void check_options(int fd) {
    assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 60);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 10);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 6);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
}

static void echo_and_options(void **state) {
    world w;
    door d = {.n_closed = 0};
    end server, client;
    ew__address address;
    (void)state;
    world_init(&w);
    assert_int_equal(ew__address_parse("127.0.0.1:0", &address), EW_OK);
    assert_int_equal(ew__listen(&d.listener, &w.loop, &address, on_connection), EW_OK);
    assert_true(address.port > 0);
    end_init(&server, &w);
    server.echo = true;
    d.next = &server;
    end_init(&client, &w);
    const ew__where where = {.kind = EW__WHERE_TCP, .host = "127.0.0.1", .port = address.port};
    assert_int_equal(end_dial(&client, &where), EW_OK);
    int fd = client.stream.fd;
    check_options(fd);
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &(int){0}, sizeof(int)), 0);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_QUICKACK), 0);
    ew__stream_acknowledge(&client.stream);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_QUICKACK), 1);
    end_send(&client, "hello", 5);
    run_until_bytes(&w, &server.n_in, 5);
    check_options(server.stream.fd);
    ew__stream_finish(&client.stream);
    run_until(&w, &client.n_closed, 1);
    run_until(&w, &server.n_closed, 1);
    assert_int_equal(server.n_in, 5);
    assert_int_equal(server.n_eof, 1);
    end_free(&client);
    end_free(&server);
    ew__listener_close(&d.listener, on_door_closed);
    run_until(&w, &d.n_closed, 1);
    world_done(&w);
}

static void nobody_there(void **state) {
    world w;
    end e;
    (void)state;
    world_init(&w);
    end_init(&e, &w);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* a port that nobody listens on */
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof name;
    assert_int_equal(bind(fd, (struct sockaddr *)&name, n), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &n), 0);
    const ew__where where = {.kind = EW__WHERE_TCP, .host = "127.0.0.1", .port = ntohs(name.sin_port)};
    assert_int_equal(end_dial(&e, &where), EW_ECONNECT);
    assert_string_equal(e.detail, uv_strerror(UV_ECONNREFUSED));
    close(fd);
    world_done(&w);
}

static void add_unhurried(end *e, const char *text) {
    ew__out_add(&e->out, text, strlen(text));
    ew__stream_send_soon(&e->stream);
}

/* They leave with what is sent next, or by themselves a moment later; and may be overtaken by the stream's end. */
static void bytes_that_may_wait(void **state) {
    world w;
    door d = {.n_closed = 0};
    end server[3], client[3];
    ew__address address;
    (void)state;
    world_init(&w);
    assert_int_equal(ew__address_parse("127.0.0.1:0", &address), EW_OK);
    assert_int_equal(ew__listen(&d.listener, &w.loop, &address, on_connection), EW_OK);
    const ew__where where = {.kind = EW__WHERE_TCP, .host = "127.0.0.1", .port = address.port};
    for (int i = 0; i < 3; i++) {
        end_init(&server[i], &w);
        end_init(&client[i], &w);
        d.next = &server[i];
        assert_int_equal(end_dial(&client[i], &where), EW_OK);
        end_send(&client[i], "-", 1);
        run_until_bytes(&w, &server[i].n_in, 1);
    }
    for (int i = 0; i < 3; i++)
        add_unhurried(&client[i], "a");
    assert_ptr_equal(w.loop.soon.first, &client[0].stream.node);
    assert_ptr_equal(w.loop.soon.last, &client[2].stream.node);
    end_send(&client[1], "b", 1);
    assert_true(client[1].stream.dirty && !client[1].stream.soon);
    add_unhurried(&client[1], "c"); /* it goes along */
    assert_false(client[1].stream.soon);
    end_close(&client[2]); /* the last of the list */
    assert_ptr_equal(w.loop.soon.last, w.loop.soon.first);
    run_until_bytes(&w, &server[1].n_in, 4);
    assert_string_equal(server[1].in, "-abc");
    run_until_bytes(&w, &server[0].n_in, 2);
    assert_string_equal(server[0].in, "-a");
    assert_null(w.loop.soon.first);
    char many[9000];
    memset(many, 'x', sizeof many);
    ew__out_add(&client[0].out, many, sizeof many);
    ew__stream_send_soon(&client[0].stream);
    assert_null(w.loop.soon.first);
    add_unhurried(&client[1], "d");
    ew__stream_finish(&client[1].stream); /* what waits leaves before the end */
    run_until_bytes(&w, &server[0].n_in, 2 + sizeof many);
    run_until_bytes(&w, &server[1].n_in, 5);
    end_close(&client[0]);
    end_close(&client[1]);
    for (int i = 0; i < 3; i++)
        end_close(&server[i]);
    ew__listener_close(&d.listener, on_door_closed);
    run_until(&w, &d.n_closed, 1);
    world_done(&w);
}

/* What only children and standard input need is not paid for by every connection. */
static void size_of_an_idle_stream(void **state) {
    (void)state;
    assert_true(sizeof(ew__stream) <= sizeof(uv_tcp_t) + 192);
}

static void cannot_listen_on_stdio(void **state) {
    world w;
    ew__listener listener;
    ew__address address;
    (void)state;
    world_init(&w);
    memset(&listener, 0, sizeof listener);
    assert_int_equal(ew__address_parse("stdio", &address), EW_OK);
    assert_int_equal(ew__listen(&listener, &w.loop, &address, on_connection), EW_EINVAL);
    world_done(&w);
}

/* ---- a slow reader of one large write ---- */

#define LARGE ((size_t)12 << 20)
#define PIECE ((size_t)64 * 1024)

static void skip_ms(world *w, uint64_t ms) {
    w->skipped += EW__MS(ms);
    (void)ew__executor_read_clock(&w->loop.executor);
    for (int i = 0; i < 3; i++) /* the first turn wakes up by its tick, the next runs the timers that are due */
        uv_run(w->loop.uv, UV_RUN_ONCE);
}

/* Bytes that the reader's kernel has not acknowledged. */
static size_t count_left(const end *e) {
    int n = 0;
    assert_int_equal(ioctl(e->stream.fd, SIOCOUTQ, &n), 0);
    return uv_stream_get_write_queue_size(&ew__uv(&e->stream.handle)->stream) + (size_t)n;
}

/* The peer reads until the sender's side shows that bytes have been taken; how many it has read. */
static size_t read_some(world *w, const end *sender, int fd) {
    static char piece[PIECE];
    size_t before = count_left(sender), n = 0;
    uint64_t until = ew__executor_read_clock(&w->loop.executor) + PATIENCE_NS;
    while (!sender->n_closed && count_left(sender) >= before) {
        ssize_t got = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
        n += got > 0 ? (size_t)got : 0;
        assert_true(ew__executor_read_clock(&w->loop.executor) < until);
        uv_run(w->loop.uv, UV_RUN_ONCE);
    }
    return n;
}

static int connect_slowly(uint16_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = 32 * 1024;
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof name), 0);
    return fd;
}

static void on_released(void *ud) { (void)ud; }

/* One write lasts for many times stall_ms: each byte that the peer takes is progress. Then it takes nothing more. */
static void steady_reader(void **state) {
    world w;
    door d = {.n_closed = 0};
    end server;
    ew__address address;
    char *bytes = calloc(1, LARGE);
    (void)state;
    assert_non_null(bytes);
    world_init(&w);
    assert_int_equal(ew__address_parse("127.0.0.1:0", &address), EW_OK);
    assert_int_equal(ew__listen(&d.listener, &w.loop, &address, on_connection), EW_OK);
    end_init(&server, &w);
    d.next = &server;
    int fd = connect_slowly(address.port);
    while (!server.stream.loop)
        uv_run(w.loop.uv, UV_RUN_ONCE);
    ew__out_ref(&server.out, bytes, LARGE, on_released, NULL);
    ew__stream_flush(&server.stream);
    assert_true(server.stream.writing > LARGE / 4);
    size_t writing = server.stream.writing, taken = 0;
    for (int i = 0; i < 12; i++) { /* 120 s, in steps that are shorter than the 30 s */
        taken += read_some(&w, &server, fd);
        skip_ms(&w, 10000);
        assert_int_equal(server.n_closed, 0);
    }
    assert_true(taken > 0 && server.stream.writing == writing); /* still the same write */
    for (int i = 0; i < 3; i++) {                               /* what is under way may still be counted once */
        assert_int_equal(server.n_closed, 0);
        skip_ms(&w, 9000);
    }
    for (int i = 0; i < 4; i++)
        skip_ms(&w, 9000);
    run_until(&w, &server.n_closed, 1);
    assert_int_equal(server.why, EW_ETIMEOUT);
    close(fd);
    end_free(&server);
    ew__listener_close(&d.listener, on_door_closed);
    run_until(&w, &d.n_closed, 1);
    world_done(&w);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echo_and_options),       cmocka_unit_test(nobody_there),
        cmocka_unit_test(bytes_that_may_wait),    cmocka_unit_test(size_of_an_idle_stream),
        cmocka_unit_test(cannot_listen_on_stdio), cmocka_unit_test(steady_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
