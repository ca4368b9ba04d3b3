/*
 * tests/unit/io/test_tls.c: TLS below a stream: all that a plain one does, whatever the transport makes of its bytes; its
 * limits; and peers that vanish. Certificates are made by openssl(1) when the tests begin.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/tls_state.h"
#include "unit/io/world.h"
#include <arpa/inet.h>

static char folder[] = "/tmp/everywire-tls-XXXXXX";

static const char *path(const char *name) {
    static char paths[8][128];
    static unsigned at;
    char *out = paths[at++ % 8];
    (void)snprintf(out, sizeof paths[0], "%s/%s", folder, name);
    return out;
}

static int make_certificates(void **state) {
    char command[1024];
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(
        command, sizeof command,
        "cd %s && exec 2>/dev/null </dev/null && k='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes' && "
        "openssl req -x509 $k -keyout ca.key -out ca.pem -days 2 -subj /CN=Test && "
        "printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' > ext && "
        "for n in server client; do openssl req $k -keyout $n.key -out $n.csr -subj \"/O=Us, Inc/CN=$n\" && "
        "openssl x509 -req -in $n.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out $n.pem -days 2 -extfile ext "
        "|| exit 1; done",
        folder);
    return system(command);
}

static int drop_certificates(void **state) {
    char command[64];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* ---- two ends, and between them a cable that the test moves by hand ---- */

typedef struct cable {
    int listening;
    uint16_t port;
    int near, far;           /* to the client, to the server; -1: not yet, or cut */
    size_t up, down;         /* bytes that went through */
    size_t piece;            /* at most so many at once */
    size_t cut_up, cut_down; /* it ends after so many; 0: never */
    bool held;               /* nothing goes down */
    size_t records;          /* of data that went up */
    uint8_t header[5];
    size_t n_header, left; /* of the present record */
} cable;

typedef struct pair {
    world w;
    ew__listener listener;
    ew__address address;
    ew__tls_context *listens, *dials;
    end server, client;
    cable cable;
    unsigned n_accepted, n_secured, n_door_closed;
    char subject[128];
} pair;

static void on_secured(ew__stream *stream) {
    pair *p = ew__container_of(ew__container_of(stream, end, stream), pair, server);
    const char *subject = ew__stream_client_cert(stream);
    p->n_secured++;
    (void)snprintf(p->subject, sizeof p->subject, "%s", subject ? subject : "(none)");
}

static const ew__stream_events server_events = {.reserve = on_reserve,
                                                .data = on_data,
                                                .eof = on_eof,
                                                .drained = on_drained,
                                                .secured = on_secured,
                                                .closed = on_closed};

static void on_connection(ew__listener *listener) {
    pair *p = ew__container_of(listener, pair, listener);
    end *e = &p->server;
    if (p->n_accepted++ > 0) {
        ew__accept_refuse(listener);
        return;
    }
    ew_err err = ew__accept(listener, &e->stream);
    if (err == EW_OK)
        err = ew__stream_secure_accepted(&e->stream, &p->w.loop, p->listens, true);
    ew__stream_start(&e->stream, &p->w.loop, &server_events, &e->out);
    if (err != EW_OK)
        ew__stream_close(&e->stream, err);
}

static void on_door_closed(ew__listener *listener) { ew__container_of(listener, pair, listener)->n_door_closed++; }

static void cable_open(cable *c) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof name;
    c->listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(c->listening, (struct sockaddr *)&name, n), 0);
    assert_int_equal(listen(c->listening, 4), 0);
    assert_int_equal(getsockname(c->listening, (struct sockaddr *)&name, &n), 0);
    c->port = ntohs(name.sin_port);
    c->near = c->far = -1;
    c->piece = 64 * 1024;
}

static int connect_to(uint16_t port) {
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void cable_cut(cable *c) {
    if (c->near >= 0)
        close(c->near);
    if (c->far >= 0)
        close(c->far);
    c->near = c->far = -1;
}

static void count_records(cable *c, const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (c->left > 0) {
            c->left--;
            continue;
        }
        c->header[c->n_header++] = bytes[i];
        if (c->n_header < 5)
            continue;
        c->n_header = 0;
        c->left = (size_t)(c->header[3] << 8 | c->header[4]);
        c->records += c->header[0] == 0x17;
    }
}

/* False: that side has ended. */
static bool carry(cable *c, int from, int to, size_t *count, size_t cut, bool up) {
    static uint8_t bytes[64 * 1024];
    size_t want = c->piece;
    if (cut && *count + want > cut)
        want = cut - *count;
    ssize_t n = want ? recv(from, bytes, want, 0) : 0;
    if (n > 0) {
        for (ssize_t done = 0; done < n;) {
            ssize_t sent = send(to, bytes + done, (size_t)(n - done), MSG_NOSIGNAL);
            if (sent < 0 && errno != EAGAIN)
                return true; /* the reader has gone: its own eof will show */
            done += sent > 0 ? sent : 0;
        }
        *count += (size_t)n;
        if (up)
            count_records(c, bytes, (size_t)n);
    }
    return n > 0 || (n < 0 && errno == EAGAIN);
}

static void cable_move(pair *p) {
    cable *c = &p->cable;
    if (c->near < 0 && c->up == 0) {
        c->near = accept4(c->listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        c->far = c->near >= 0 ? connect_to(p->address.port) : -1;
    }
    if (c->near < 0)
        return;
    bool up = carry(c, c->near, c->far, &c->up, c->cut_up, true);
    bool down = c->held || carry(c, c->far, c->near, &c->down, c->cut_down, false);
    if ((c->cut_up && c->up >= c->cut_up) || (c->cut_down && c->down >= c->cut_down))
        cable_cut(c);
    if (!up)
        (void)shutdown(c->far, SHUT_WR);
    if (!down)
        (void)shutdown(c->near, SHUT_WR);
}

static void pair_context(pair *p, ew__tls_role role, ew_tls_options options, ew__tls_context **ret) {
    char problem[EW__TLS_PROBLEM] = "";
    ew_err err = ew__tls_context_new(&p->w.env, role, &options, ret, problem);
    if (err != EW_OK)
        fail_msg("%s", problem);
}

static void pair_init(pair *p, bool client_certificates) {
    memset(p, 0, sizeof *p);
    world_init(&p->w);
    pair_context(p, EW__TLS_LISTENS,
                 (ew_tls_options){.certificate = path("server.pem"),
                                  .key = path("server.key"),
                                  .client_ca = client_certificates ? path("ca.pem") : NULL},
                 &p->listens);
    pair_context(p, EW__TLS_DIALS,
                 (ew_tls_options){.ca = path("ca.pem"),
                                  .certificate = client_certificates ? path("client.pem") : NULL,
                                  .key = client_certificates ? path("client.key") : NULL},
                 &p->dials);
    assert_int_equal(ew__address_parse("127.0.0.1:0", &p->address), EW_OK);
    assert_int_equal(ew__listen(&p->listener, &p->w.loop, &p->address, on_connection), EW_OK);
    cable_open(&p->cable);
    end_init(&p->server, &p->w);
    end_init(&p->client, &p->w);
}

/* Until *number is n, or (n is 0) for one turn. */
static void pair_run(pair *p, const unsigned *number, unsigned n) {
    uint64_t until = ew__executor_read_clock(&p->w.loop.executor) + PATIENCE_NS;
    do {
        if (ew__executor_read_clock(&p->w.loop.executor) > until)
            fail_msg("waited in vain: up %zu, down %zu; the log:\n%s", p->cable.up, p->cable.down, p->w.log);
        cable_move(p);
        uv_run(p->w.loop.uv, UV_RUN_NOWAIT);
    } while (number && *number < n);
}

static void pair_run_bytes(pair *p, const size_t *number, size_t n) {
    uint64_t until = ew__executor_read_clock(&p->w.loop.executor) + PATIENCE_NS;
    while (*number < n) {
        if (ew__executor_read_clock(&p->w.loop.executor) > until)
            fail_msg("waited in vain for %zu bytes, have %zu", n, *number);
        pair_run(p, NULL, 0);
    }
}

static ew__where where_of(const pair *p) {
    return (ew__where){
        .kind = EW__WHERE_TCP, .host = "127.0.0.1", .port = p->cable.port, .tls = p->dials, .tls_http = true};
}

static ew_err pair_dial(pair *p, uint64_t ms) {
    const ew__where where = where_of(p);
    ew_err err = ew__dial_start(&p->w.loop, &p->client.stream, &where, ms, on_dialled, &p->client.dial);
    if (err != EW_OK)
        return err;
    pair_run(p, &p->client.n_dialled, 1);
    return p->client.dialled;
}

static void pair_done(pair *p) {
    cable_cut(&p->cable);
    close(p->cable.listening);
    if (p->n_accepted && !p->server.n_closed) {
        ew__stream_close(&p->server.stream, EW_OK);
        run_until(&p->w, &p->server.n_closed, 1);
    }
    if (p->client.dialled == EW_OK && p->client.n_dialled && !p->client.n_closed) {
        ew__stream_close(&p->client.stream, EW_OK);
        run_until(&p->w, &p->client.n_closed, 1);
    }
    free(p->client.in);
    free(p->server.in);
    ew__listener_close(&p->listener, on_door_closed);
    run_until(&p->w, &p->n_door_closed, 1);
    ew__tls_context_free(p->listens);
    ew__tls_context_free(p->dials);
    world_done(&p->w);
}

static char *pattern(size_t n) {
    char *bytes = malloc(n);
    assert_non_null(bytes);
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (char)(x >> 24);
    }
    return bytes;
}

/* There and back, then both ends say goodbye. */
static void echo(pair *p, size_t n) {
    char *bytes = pattern(n);
    p->server.echo = true;
    assert_int_equal(pair_dial(p, 30000), EW_OK);
    end_send(&p->client, bytes, n);
    pair_run_bytes(p, &p->client.n_in, n);
    assert_int_equal(p->client.n_in, n);
    assert_memory_equal(p->client.in, bytes, n);
    free(bytes);
    ew__stream_finish(&p->client.stream);
    pair_run(p, &p->client.n_closed, 1);
    pair_run(p, &p->server.n_closed, 1);
    assert_int_equal(p->server.n_eof, 1);
    assert_int_equal(p->server.why, EW_OK);
    assert_int_equal(p->client.why, EW_OK);
}

/* ---- the tests ---- */

static void test_echo(void **state) {
    static const size_t sizes[] = {1, 100, 16383, 16384, 16385, 100000, 3000000};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pair p;
        pair_init(&p, false);
        echo(&p, sizes[i]);
        assert_int_equal(p.n_secured, 1);
        assert_string_equal(p.subject, "(none)");
        pair_done(&p);
    }
}

static void test_pieces(void **state) {
    static const size_t pieces[] = {1, 2, 3, 7, 61, 509};
    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        pair p;
        pair_init(&p, i % 2 == 1);
        p.cable.piece = pieces[i];
        echo(&p, pieces[i] * 100);
        pair_done(&p);
    }
}

static void test_client_certificate(void **state) {
    pair p;
    (void)state;
    pair_init(&p, true);
    echo(&p, 10);
    assert_string_equal(p.subject, "CN=client,O=Us\\, Inc");
    pair_done(&p);
}

/* What a turn has queued leaves in few records, however many pieces it was. */
static void test_few_records(void **state) {
    pair p;
    (void)state;
    pair_init(&p, false);
    p.server.echo = false;
    assert_int_equal(pair_dial(&p, 30000), EW_OK);
    pair_run(&p, &p.n_secured, 1);
    size_t before = p.cable.records;
    for (int i = 0; i < 200; i++)
        end_send(&p.client, "twenty bytes of text", 20);
    pair_run_bytes(&p, &p.server.n_in, 4000);
    assert_int_equal(p.cable.records - before, 1);
    before = p.cable.records;
    char *bytes = pattern(64 * 1024);
    for (size_t i = 0; i < 64 * 1024; i += 1024) {
        ew__out_add(&p.client.out, bytes + i, 1024);
    }
    ew__stream_send(&p.client.stream);
    pair_run_bytes(&p, &p.server.n_in, 4000 + 64 * 1024);
    assert_in_range(p.cable.records - before, 4, 6);
    free(bytes);
    pair_done(&p);
}

/* A reader that stops: what waits is plain text in the owner's queue, and a bounded number of records. */
static void test_slow_reader(void **state) {
    pair p;
    const size_t n = 8 * 1024 * 1024;
    (void)state;
    pair_init(&p, false);
    assert_int_equal(pair_dial(&p, 30000), EW_OK);
    pair_run(&p, &p.n_secured, 1);
    p.cable.held = true;
    char *bytes = pattern(n);
    end_send(&p.server, bytes, n);
    for (int i = 0; i < 200; i++)
        pair_run(&p, NULL, 0);
    assert_true(p.server.out.bytes > n / 4);
    assert_in_range(p.server.stream.raw->bytes, 1, 100 * 1024);
    assert_int_equal(p.server.n_drained, 0);
    p.cable.held = false;
    pair_run_bytes(&p, &p.client.n_in, n);
    assert_memory_equal(p.client.in, bytes, n);
    assert_int_equal(p.server.n_drained, 1);
    free(bytes);
    pair_done(&p);
}

/* The owner stops reading in the midst of it, and goes on. */
static void test_stopped_owner(void **state) {
    pair p;
    const size_t n = 1024 * 1024;
    (void)state;
    pair_init(&p, false);
    assert_int_equal(pair_dial(&p, 30000), EW_OK);
    pair_run(&p, &p.n_secured, 1);
    char *bytes = pattern(n);
    end_send(&p.client, bytes, n);
    while (p.server.n_in < n) {
        ew__stream_read(&p.server.stream, false);
        size_t before = p.server.n_in;
        for (int i = 0; i < 20; i++)
            pair_run(&p, NULL, 0);
        assert_int_equal(p.server.n_in, before);
        ew__stream_read(&p.server.stream, true);
        pair_run_bytes(&p, &p.server.n_in, before + 1);
    }
    assert_memory_equal(p.server.in, bytes, n);
    free(bytes);
    pair_done(&p);
}

/* The end of the transport is not the end of what was said. */
static void test_truncated(void **state) {
    pair p;
    (void)state;
    pair_init(&p, false);
    assert_int_equal(pair_dial(&p, 30000), EW_OK);
    end_send(&p.client, "half of", 7);
    pair_run_bytes(&p, &p.server.n_in, 7);
    (void)shutdown(p.cable.far, SHUT_WR);
    pair_run(&p, &p.server.n_closed, 1);
    assert_int_equal(p.server.n_eof, 0);
    assert_int_equal(p.server.why, EW_ECLOSED);
    pair_done(&p);
}

/* One that closes with nothing unsaid says goodbye even so. */
static void test_closed_with_a_word(void **state) {
    pair p;
    (void)state;
    pair_init(&p, false);
    assert_int_equal(pair_dial(&p, 30000), EW_OK);
    end_send(&p.client, "all", 3);
    pair_run_bytes(&p, &p.server.n_in, 3);
    ew__stream_close(&p.client.stream, EW_OK);
    pair_run(&p, &p.server.n_eof, 1);
    assert_int_equal(p.server.n_closed, 0);
    pair_done(&p);
}

/* Cut after each of the first bytes in either direction: the dial fails in words, the server is rid of it. */
static void test_vanished(void **state) {
    (void)state;
    for (size_t cut = 1; cut < 1200; cut += cut < 12 ? 1 : 97) {
        for (int down = 0; down < 2; down++) {
            pair p;
            pair_init(&p, false);
            p.cable.cut_up = down ? 0 : cut;
            p.cable.cut_down = down ? cut : 0;
            ew_err err = pair_dial(&p, 30000);
            if (err == EW_OK) { /* the cut came behind what the client needed */
                cable_cut(&p.cable);
                pair_run(&p, &p.client.n_closed, 1);
                assert_int_equal(p.client.why, EW_ECLOSED);
            } else {
                assert_int_equal(err, EW_ECONNECT);
                assert_true(strlen(p.client.detail) > 0);
            }
            pair_run(&p, &p.server.n_closed, 1);
            assert_int_equal(p.server.n_eof, 0);
            pair_done(&p);
        }
    }
}

static void test_broken_record(void **state) {
    pair p;
    (void)state;
    pair_init(&p, false);
    assert_int_equal(pair_dial(&p, 30000), EW_OK);
    pair_run(&p, &p.n_secured, 1);
    assert_int_equal(send(p.cable.far, "\x17\x03\x03\x00\x20_a_record_that_nobody_has_sealed", 37, MSG_NOSIGNAL), 37);
    pair_run(&p, &p.server.n_closed, 1);
    assert_int_equal(p.server.why, EW_EPROTO);
    assert_int_equal(p.server.n_in, 0);
    pair_done(&p);
}

/* ---- time ---- */

static void test_silent_client(void **state) {
    pair p;
    (void)state;
    pair_init(&p, false);
    p.w.limits.handshake_ms = 30;
    int fd = connect_to(p.address.port);
    assert_int_equal(send(fd, "\x16\x03\x01", 3, MSG_NOSIGNAL), 3);
    run_until_logged(&p.w, "took too long");
    close(fd);
    run_until(&p.w, &p.server.n_closed, 1);
    pair_done(&p);
}

static void test_silent_server(void **state) {
    pair p;
    (void)state;
    pair_init(&p, false);
    p.cable.held = true;
    assert_int_equal(pair_dial(&p, 2000), EW_ETIMEOUT); /* long enough to connect on a busy machine */
    assert_string_equal(p.client.detail, "the TLS handshake timed out");
    pair_done(&p);
}

static void test_cancelled(void **state) {
    pair p;
    (void)state;
    pair_init(&p, false);
    p.cable.held = true;
    const ew__where where = where_of(&p);
    assert_int_equal(ew__dial_start(&p.w.loop, &p.client.stream, &where, 30000, on_dialled, &p.client.dial), EW_OK);
    while (p.cable.up == 0)
        pair_run(&p, NULL, 0);
    ew__dial_cancel(p.client.dial);
    pair_run(&p, &p.client.n_dialled, 1);
    assert_int_equal(p.client.dialled, EW_ECANCELLED);
    pair_done(&p);
}

/* ---- what is no TLS ---- */

static void test_plain_client(void **state) {
    pair p;
    char answer[256] = "";
    (void)state;
    pair_init(&p, false);
    int fd = connect_to(p.address.port);
    assert_int_equal(send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    run_until_logged(&p.w, "what came is no TLS");
    while (recv(fd, answer, sizeof answer - 1, 0) < 0)
        uv_run(p.w.loop.uv, UV_RUN_NOWAIT);
    assert_non_null(strstr(answer, "HTTP/1.1 400 Bad Request\r\n"));
    assert_non_null(strstr(answer, "https://"));
    const char *length = strstr(answer, "Content-Length: "), *body = strstr(answer, "\r\n\r\n");
    assert_int_equal(strtol(length + 16, NULL, 10), strlen(body + 4));
    close(fd);
    run_until(&p.w, &p.server.n_closed, 1);
    pair_done(&p);
}

/* ---- memory ---- */

static void test_no_memory(void **state) {
    uint64_t n = 1;
    bool failed = true;
    (void)state;
    for (; failed && n < 400; n++) {
        pair p;
        pair_init(&p, false);
        p.server.echo = true;
        p.w.fail_at = p.w.n_allocations + n;
        ew_err err = pair_dial(&p, 2000);
        if (err == EW_OK) {
            ew__out_add(&p.client.out, "some words", 10);
            ew__stream_send(&p.client.stream);
            while (p.client.n_in < 10 && !p.client.n_closed && p.client.out.err == EW_OK && p.server.out.err == EW_OK)
                pair_run(&p, NULL, 0);
        }
        failed = p.w.n_allocations >= p.w.fail_at;
        p.w.fail_at = 0;
        pair_done(&p);
    }
    assert_in_range(n, 5, 399);
}

/* ---- renewal ---- */

static void test_renewed(void **state) {
    pair p;
    char problem[EW__TLS_PROBLEM];
    (void)state;
    pair_init(&p, false);
    ew_tls_options options = {.certificate = path("server.pem"), .key = path("client.key")};
    assert_int_equal(ew__tls_context_renew(p.listens, &options, problem), EW_EINVAL);
    assert_non_null(strstr(problem, "does not belong to the certificate"));
    options.key = path("server.key");
    assert_int_equal(pair_dial(&p, 30000), EW_OK);
    assert_int_equal(ew__tls_context_renew(p.listens, &options, problem), EW_OK);
    end_send(&p.client, "still", 5);
    pair_run_bytes(&p, &p.server.n_in, 5);
    pair_done(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_client_certificate),
        cmocka_unit_test(test_few_records),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_stopped_owner),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_closed_with_a_word),
        cmocka_unit_test(test_vanished),
        cmocka_unit_test(test_broken_record),
        cmocka_unit_test(test_silent_client),
        cmocka_unit_test(test_silent_server),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_plain_client),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_renewed),
    };
    return cmocka_run_group_tests(tests, make_certificates, drop_certificates);
}
