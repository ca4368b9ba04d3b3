/*
 * tests/bridge/more_many.c: a thousand streams at once through one gateway, and readers that do not read: the memory of
 * the process stays bounded, the others go on, and the stalled ones end when their callers go.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/chain.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
#define STREAMS 200
#else
#define STREAMS 1000
#endif
#define GROWTH_MAX (150L * 1024 * 1024)
#define STALLED_MAX 20
#define CHUNK_BYTES 2000
#define SLOW_CHUNKS 4000 /* more than sockets hold, less than a gateway keeps for a stream on a shared connection */
#define CALLS 300

static long resident(void) {
    long pages = 0, shared = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &shared, &pages), 2);
    (void)fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void raise_files(void) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < 8192) {
        limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    }
}

/* A caller that asks for n chunks and does not read yet. */
static int open_stream(int port, int n_chunks) {
    char body[100];
    int body_len = snprintf(body, sizeof body, "{\"data\":{\"n\":%d,\"size\":%d}}", n_chunks, CHUNK_BYTES);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}, .sin_port = htons((uint16_t)port)};
    char head[400];
    int room = 4096, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    int n = snprintf(head, sizeof head,
                     "POST /flow/pour HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                     "Accept: text/event-stream\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
                     port, body_len, body);
    assert_int_equal(send(fd, head, (size_t)n, 0), n);
    return fd;
}

static ew_client *wide_client(int port) {
    ew_client *client = NULL;
    char target[64];
    ew_client_options options = {.limits = {.client_connections = STREAMS, .client_queue = 2 * STREAMS}};
    (void)snprintf(target, sizeof target, "http://127.0.0.1:%d", port);
    assert_int_equal(ew_client_new(target, &options, &client, NULL), EW_OK);
    return client;
}

static void run_streams(ew_client *client) {
    static outcome outcomes[STREAMS];
    static ew_request *requests[STREAMS];
    for (int i = 0; i < STREAMS; i++)
        requests[i] = begin_on(client,
                               &(ew_request_options){.action = EW_STR("/flow/count"),
                                                     .input = EW_STR("{\"n\":20,\"delay_ms\":20}"),
                                                     .stream = true},
                               &outcomes[i]);
    for (int i = 0; i < STREAMS; i++) {
        finish(requests[i], &outcomes[i]);
        must_be(&outcomes[i], "{\"count\":20}");
        assert_int_equal(atomic_load(&outcomes[i].n_chunks), 20);
        outcome_done(&outcomes[i]);
    }
}

static void stall(const char *far_name, int n_stalled) {
    const bridge_wire *far = bridge_wire_by_name(far_name);
    int port = free_port(), far_port = free_port(), stalled[STALLED_MAX];
    char target[64];
    raise_files();
    seen_reset();
    ew_app *origin = far->listen ? start_origin(far, "origin", far_port) : NULL;
    ew_app *gateway = make_gateway(&bridge_wires[0], port, NULL);
    import(gateway, target_of(far, far_port, target), NULL);
    start_app(gateway);
    if (!origin)
        origin = start_origin(far, "origin", far_port);
    ew_client *client = wide_client(port);
    ask_until(client, "/flow/echo", EW_STATUS_OK);
    run_streams(client); /* so that what stays for the next time is there already */
    long before = resident();
    for (int i = 0; i < n_stalled; i++)
        stalled[i] = open_stream(port, 1000000000);
    assert_true(becomes(&seen.pouring, n_stalled));
    run_streams(client);
    run_streams(client);
    long growth = resident() - before;
    printf("far %s: %d streams at a time beside %d stalled ones: %ld KiB more\n", far_name, STREAMS, n_stalled,
           growth / 1024);
#ifndef SANITIZED
    assert_true(growth < GROWTH_MAX);
#endif
    for (int i = 0; i < n_stalled; i++)
        (void)close(stalled[i]);
    assert_true(becomes(&seen.pouring, 0));
    ew_client_free(client);
    ew_app_free(gateway);
    ew_app_free(origin);
}

/* Reads to the end of the connection; the last bytes are a text. */
static size_t read_to_end(int fd, char tail[200]) {
    char piece[64 * 1024];
    size_t total = 0, kept = 0;
    ssize_t n;
    while ((n = recv(fd, piece, sizeof piece, 0)) > 0) {
        size_t len = (size_t)n, take = len < 199 ? len : 199, stay = kept < 199 - take ? kept : 199 - take;
        memmove(tail, tail + kept - stay, stay);
        memcpy(tail + stay, piece + len - take, take);
        kept = stay + take;
        total += len;
    }
    tail[kept] = '\0';
    return total;
}

/* While one caller does not read its stream, calls go on; and when it reads, nothing of the stream is missing. */
static void slow_reader(const char *far_name) {
    const bridge_wire *far = bridge_wire_by_name(far_name);
    int port = free_port(), far_port = free_port();
    char target[64], tail[200];
    seen_reset();
    ew_app *origin = far->listen ? start_origin(far, "origin", far_port) : NULL;
    ew_app *gateway = make_gateway(&bridge_wires[0], port, NULL);
    import(gateway, target_of(far, far_port, target), NULL);
    start_app(gateway);
    if (!origin)
        origin = start_origin(far, "origin", far_port);
    ew_client *client = wide_client(port);
    ask_until(client, "/flow/echo", EW_STATUS_OK);
    int fd = open_stream(port, SLOW_CHUNKS);
    char first; /* the stream has begun; where sockets hold all of it, the handler may have ended */
    assert_int_equal(recv(fd, &first, 1, MSG_PEEK), 1);
    for (int i = 0; i < CALLS; i++)
        ask_until(client, "/flow/echo", EW_STATUS_OK);
    assert_true(read_to_end(fd, tail) > (size_t)SLOW_CHUNKS * CHUNK_BYTES);
    if (!strstr(tail, "\"result\":"))
        fail_msg("%s: the stream ended with %s", far_name, tail);
    (void)close(fd);
    ew_client_free(client);
    ew_app_free(gateway);
    ew_app_free(origin);
}

static void slow_http(void **state) {
    (void)state;
    slow_reader("http");
}

static void slow_jsonrpc(void **state) {
    (void)state;
    slow_reader("jsonrpc");
}

static void slow_reflection(void **state) {
    (void)state;
    slow_reader("reflection");
}

/* Each stream has a connection of its own on both sides. */
static void stall_http(void **state) {
    (void)state;
    stall("http", STALLED_MAX);
}

static void stall_jsonrpc(void **state) {
    (void)state;
    stall("jsonrpc", STALLED_MAX);
}

/* All streams share one connection. */
static void stall_reflection(void **state) {
    (void)state;
    stall("reflection", 1);
}

const struct CMUnitTest tests_many[] = {cmocka_unit_test(slow_http),
                                        cmocka_unit_test(slow_jsonrpc),
                                        cmocka_unit_test(slow_reflection),
                                        cmocka_unit_test(stall_http),
                                        cmocka_unit_test(stall_jsonrpc),
                                        cmocka_unit_test(stall_reflection),
                                        {.name = NULL}};
