/*
 * tests/bridge/more_odd.c: origins that do not behave; gateways that are somebody's child.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/chain.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

/* ---- a listener that is no origin ---- */

typedef enum manner {
    CLOSES,  /* at once */
    BABBLES, /* says what belongs to no wire */
    SILENT,  /* takes everything, says nothing */
    N_MANNERS
} manner;

typedef struct odd_peer {
    manner manner;
    int fd, port;
    atomic_bool stop;
    pthread_t thread;
} odd_peer;

static void *odd_main(void *arg) {
    static const char babble[] = "\x01\x02 220 mail.example ESMTP {\"jsonrpc\":17}\r\n\r\n\xff\xff\xff\xff";
    odd_peer *peer = arg;
    int held[256], n = 0;
    while (!atomic_load(&peer->stop)) {
        int fd = accept(peer->fd, NULL, NULL);
        if (fd < 0)
            break;
        if (peer->manner == BABBLES)
            (void)send(fd, babble, sizeof babble - 1, MSG_NOSIGNAL);
        if (peer->manner == CLOSES || n == 256)
            (void)close(fd);
        else
            held[n++] = fd;
    }
    while (n > 0)
        (void)close(held[--n]);
    return NULL;
}

static void odd_start(odd_peer *peer, manner how) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    peer->manner = how;
    atomic_store(&peer->stop, false);
    peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(peer->fd >= 0);
    assert_int_equal(bind(peer->fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(peer->fd, 64), 0);
    assert_int_equal(getsockname(peer->fd, (struct sockaddr *)&address, &size), 0);
    peer->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&peer->thread, NULL, odd_main, peer), 0);
}

static void odd_stop(odd_peer *peer) {
    atomic_store(&peer->stop, true);
    (void)shutdown(peer->fd, SHUT_RDWR); /* accept returns */
    (void)pthread_join(peer->thread, NULL);
    (void)close(peer->fd);
}

/* Each call ends, the gateway lives, and what else it imports is not touched. */
static void one_odd(const bridge_wire *far, manner how) {
    static const char *const names[] = {"/flow/odd", NULL};
    char target[64];
    int port = free_port();
    odd_peer peer;
    outcome o = {.status = EW_STATUS_OK};
    odd_start(&peer, how);
    ew_app *origin = start_origin(&bridge_wires[0], "origin", 0);
    ew_app *gateway = make_gateway(&bridge_wires[0], port, NULL);
    import(gateway, target_of(far, peer.port, target), &(ew_import_options){.names = names, .refresh_ms = REFRESH_MS});
    import(gateway, target_of(&bridge_wires[0], port_of(origin, NULL), target), NULL);
    start_app(gateway);
    ew_client *client = client_to(target_of(&bridge_wires[0], port, target));
    for (int i = 0; i < 10; i++) {
        ask_on(client,
               &(ew_request_options){.action = EW_STR("/flow/odd"),
                                     .input = EW_STR("{}"),
                                     .stream = i % 2,
                                     .timeout_ms = how == SILENT ? 50 : WAIT_MS},
               &o);
        if (how == SILENT)
            must_fail(&o, EW_STATUS_DEADLINE_EXCEEDED);
        else if (o.status != EW_STATUS_UNAVAILABLE && o.status != EW_STATUS_INTERNAL && o.status != EW_STATUS_UNKNOWN)
            fail_msg("%s: ended %s: %s", far->name, ew_status_name(o.status), o.text);
    }
    ask_until(client, "/flow/echo", EW_STATUS_OK);
    outcome_done(&o);
    ew_client_free(client);
    ew_app_free(gateway);
    ew_app_free(origin);
    odd_stop(&peer);
}

static void odd_peers(void **state) {
    (void)state;
    for (size_t i = 0; i < N_NEAR; i++)
        for (int how = 0; how < N_MANNERS && bridge_wires[i].listen; how++)
            one_odd(&bridge_wires[i], (manner)how);
}

/* ---- a gateway that is started, and spoken with over its standard input and output ---- */

static void child_gateway(const char *near_target, const bridge_wire *far) {
    char target[64], option[96];
    outcome o = {.status = EW_STATUS_OK};
    seen_reset();
    ew_app *origin = start_origin(far, "origin", 0);
    ew_client *client = NULL;
    (void)snprintf(option, sizeof option, "there=%s", target_of(far, port_of(origin, NULL), target));
    const char *const command[] = {BRIDGE_CHILD, "--stdio", "--import", option, NULL};
    assert_int_equal(ew_client_new(near_target, &(ew_client_options){.command = command}, &client, NULL), EW_OK);
    world w = world_around(client, origin);
    ask_until(client, "/flow/there/echo", EW_STATUS_OK);
    ask(&w, "/flow/there/fail", "{\"status\":\"DATA_LOSS\",\"message\":\"m\",\"details\":[1]}", &o);
    must_fail(&o, EW_STATUS_DATA_LOSS);
    assert_string_equal(o.text, "m");
    assert_string_equal(o.details, "[1]");
    ask(&w, "/flow/who", "{}", &o);
    assert_non_null(strstr(o.text, "child"));
    ask(&w, "/flow/there/who", "{}", &o);
    assert_non_null(strstr(o.text, "origin"));
    ew_request *request =
        begin_on(client, &(ew_request_options){.action = EW_STR("/flow/there/forever"), .input = EW_STR("{}")}, &o);
    assert_true(becomes(&seen.running, 1));
    ew_request_cancel(request);
    finish(request, &o);
    must_fail(&o, EW_STATUS_CANCELLED);
    assert_true(becomes(&seen.running, 0));
    request =
        begin_on(client, &(ew_request_options){.action = EW_STR("/flow/there/forever"), .input = EW_STR("{}")}, &o);
    assert_true(becomes(&seen.running, 1));
    client = ew_client_free(client); /* and with it the child */
    ew_request_free(request);
    assert_true(becomes(&seen.running, 0));
    outcome_done(&o);
    ew_app_free(origin);
}

static void child_gateways(void **state) {
    (void)state;
    for (size_t i = 0; i < N_NEAR; i++) {
        if (!bridge_wires[i].listen)
            continue;
        child_gateway("stepflow+stdio:", &bridge_wires[i]);
        child_gateway("jsonrpc+stdio:", &bridge_wires[i]);
    }
}

const struct CMUnitTest tests_odd[] = {cmocka_unit_test(odd_peers), cmocka_unit_test(child_gateways), {.name = NULL}};
