/*
 * tests/unit/client/test_close.c: a client that is closed while its calls run: their cancels leave before
 * ew_client_free returns. The peer is a socket of the test that reads and never answers.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <everywire/everywire.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_S 120 /* only for hangs */

typedef struct peer {
    int listener;
    ew_client *client;
    char heard[8192];
} peer;

static void open_peer(peer *p, const char *scheme) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    char target[64];
    memset(p, 0, sizeof *p);
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(p->listener, 16), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&at, &size), 0);
    (void)snprintf(target, sizeof target, "%s://127.0.0.1:%d", scheme, ntohs(at.sin_port));
    assert_int_equal(ew_client_new(target, NULL, &p->client, NULL), EW_OK);
}

static int accept_one(const peer *p) {
    struct timeval limit = {.tv_sec = WAIT_S};
    assert_int_equal(setsockopt(p->listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    int fd = accept(p->listener, NULL, NULL);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    return fd;
}

/* Reads until `word` has come, or with NULL until eof. The text stays in p->heard, NUL bytes replaced. */
static void hear(peer *p, int fd, const char *word) {
    size_t n = strlen(p->heard);
    ssize_t more = 1;
    while (!(word && strstr(p->heard, word)) && more > 0 && n < sizeof p->heard - 1) {
        more = recv(fd, p->heard + n, sizeof p->heard - 1 - n, 0);
        for (ssize_t i = 0; i < more; i++, n++) {
            p->heard[n] = p->heard[n] ? p->heard[n] : '0';
        }
        p->heard[n] = '\0';
    }
    if (word) {
        assert_non_null(strstr(p->heard, word));
    }
}

/* Begins a call and waits until the peer has it. Returns the connection. */
static int begin(peer *p, const ew_request_options *options, ew_request **ret) {
    assert_int_equal(ew_client_call(p->client, options, ret), EW_OK);
    int fd = accept_one(p);
    hear(p, fd, "the-input");
    return fd;
}

static void test_api_client_close__running_call_is_cancelled(void **state) {
    static const struct {
        const char *scheme, *cancel;
        bool own_connection; /* for the cancel */
    } wires[] = {{"rrq", "\"type\":\"cancel\"", true}, {"jsonrpc", "$/cancelRequest", false}};
    (void)state;
    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++) {
        peer p;
        ew_request *request = NULL;
        open_peer(&p, wires[i].scheme);
        int fd =
            begin(&p, &(ew_request_options){.action = EW_STR("slow"), .input = EW_STR("{\"the-input\":1}")}, &request);
        assert_null(ew_client_free(p.client));
        ew_end end;
        assert_int_equal(ew_request_wait(request, 0, &end), EW_OK);
        assert_int_not_equal(end.status, EW_STATUS_OK);
        (void)ew_request_free(request);
        int other = wires[i].own_connection ? accept_one(&p) : fd;
        hear(&p, other, NULL);
        assert_non_null(strstr(p.heard, wires[i].cancel));
        if (other != fd) {
            close(other);
        }
        close(fd);
        close(p.listener);
    }
}

/* RRQ gives the runner some time to end a call by its deadline itself. A client that is closed meanwhile asks at once. */
static void test_api_client_close__late_call_is_cancelled(void **state) {
    peer p;
    ew_request *request = NULL;
    ew_end end;
    (void)state;
    open_peer(&p, "rrq");
    int fd = begin(
        &p, &(ew_request_options){.action = EW_STR("slow"), .input = EW_STR("{\"the-input\":1}"), .timeout_ms = 3000},
        &request);
    assert_int_equal(ew_request_wait(request, 0, &end), EW_OK);
    assert_int_equal(end.status, EW_STATUS_DEADLINE_EXCEEDED);
    (void)ew_request_free(request);
    assert_null(ew_client_free(p.client));
    int other = accept_one(&p);
    hear(&p, other, NULL);
    assert_non_null(strstr(p.heard, "\"type\":\"cancel\""));
    close(other);
    close(fd);
    close(p.listener);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_client_close__running_call_is_cancelled),
        cmocka_unit_test(test_api_client_close__late_call_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
