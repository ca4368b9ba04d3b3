/*
 * tests/unit/client/test_target.c: what a target text says, and what a command beside it may be.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/jsonrpc/jsonrpc.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "client/client.h"
#include "frame/line.h"
#include <stdio.h>

static void test_api_target__reads(void **state) {
    (void)state;
    static const struct {
        const char *text, *host, *authority, *path;
        uint16_t port;
    } good[] = {
        {"http://127.0.0.1:3400", "127.0.0.1", "127.0.0.1:3400", "", 3400},
        {"http://localhost:1/", "localhost", "localhost:1", "", 1},
        {"http://example.test", "example.test", "example.test", "", 80},
        {"http://[::1]:65535/a/b/", "::1", "[::1]:65535", "/a/b", 65535},
        {"http://h:80//", "h", "h:80", "", 80},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ew__target target;
        assert_int_equal(ew__target_parse(good[i].text, &target, NULL), EW_OK);
        assert_string_equal(target.host, good[i].host);
        assert_string_equal(target.authority, good[i].authority);
        assert_string_equal(target.path, good[i].path);
        assert_int_equal(target.port, good[i].port);
        assert_string_equal(target.wire->name, "http");
    }
}

static void test_api_target__reads_jsonrpc(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int kind, framing;
        const char *host, *path;
        unsigned port;
    } good[] = {
        {"jsonrpc://127.0.0.1:9000", EW__WHERE_TCP, EW__FRAMING_AUTO, "127.0.0.1", "", 9000},
        {"jsonrpc://[::1]:9?framing=lsp", EW__WHERE_TCP, EW__FRAMING_HEADERS, "::1", "", 9},
        {"jsonrpc+unix:/run/x.sock", EW__WHERE_UNIX, EW__FRAMING_AUTO, "", "/run/x.sock", 0},
        {"jsonrpc+unix:x?framing=lines", EW__WHERE_UNIX, EW__FRAMING_LINES, "", "x", 0},
        {"jsonrpc+stdio:", EW__WHERE_CHILD, EW__FRAMING_AUTO, "", "", 0},
        {"jsonrpc+stdio:?framing=lsp", EW__WHERE_CHILD, EW__FRAMING_HEADERS, "", "", 0},
        {"jsonrpc+unix:a?b=c", EW__WHERE_UNIX, EW__FRAMING_AUTO, "", "a?b=c", 0},
        {"jsonrpc+unix:a?b?framing=lsp", EW__WHERE_UNIX, EW__FRAMING_HEADERS, "", "a?b", 0},
        {"jsonrpc://h:1?params=null&framing=lsp&discover=no", EW__WHERE_TCP, EW__FRAMING_HEADERS, "h", "", 1},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ew__target target;
        assert_int_equal(ew__target_parse(good[i].text, &target, NULL), EW_OK);
        assert_int_equal(target.kind, good[i].kind);
        assert_int_equal(target.options & EW__JR_FRAMING, good[i].framing);
        assert_string_equal(target.host, good[i].host);
        assert_string_equal(target.path, good[i].path);
        assert_int_equal(target.port, good[i].port);
        assert_string_equal(target.wire->name, "jsonrpc");
    }
}

static void test_api_target__reads_options(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t options;
    } good[] = {
        {"jsonrpc://h:1", 0},
        {"jsonrpc://h:1?framing=lsp", 0},
        {"jsonrpc://h:1?params=null", EW__JR_PEER_PARAMS},
        {"jsonrpc://h:1?stream=events", EW__JR_PEER_EVENTS},
        {"jsonrpc+unix:x?discover=no", EW__JR_PEER_FOREIGN},
        {"jsonrpc+stdio:?discover=no&params=null", EW__JR_PEER_PARAMS | EW__JR_PEER_FOREIGN},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ew__target target;
        assert_int_equal(ew__target_parse(good[i].text, &target, NULL), EW_OK);
        assert_int_equal(target.options & ~(uint32_t)EW__JR_FRAMING, good[i].options);
    }
}

static void test_api_target__reads_reflection(void **state) {
    (void)state;
    static const struct {
        const char *text, *address;
        unsigned port;
        bool loopback;
    } good[] = {
        {"reflection://127.0.0.1:3200", "127.0.0.1:3200", 3200, true},
        {"reflection://localhost:0/", "127.0.0.1:0", 0, true},
        {"reflection://[::1]:9", "[::1]:9", 9, true},
        {"reflection://0.0.0.0:1", "0.0.0.0:1", 1, false},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ew__target target;
        assert_int_equal(ew__target_parse(good[i].text, &target, NULL), EW_OK);
        assert_int_equal(target.kind, EW__WHERE_LISTEN);
        assert_string_equal(target.wire->name, "reflection");
        assert_string_equal(target.address.text, good[i].address);
        assert_string_equal(target.authority, good[i].address);
        assert_int_equal(target.port, good[i].port);
        assert_int_equal(target.address.loopback, good[i].loopback);
    }
}

static void test_api_target__reads_rrq(void **state) {
    (void)state;
    static const struct {
        const char *text, *host, *authority;
        unsigned port;
    } good[] = {
        {"rrq://127.0.0.1:9000", "127.0.0.1", "127.0.0.1:9000", 9000},
        {"rrq://localhost:0/", "localhost", "localhost:0", 0}, /* with a command only: the client looks */
        {"rrq://[::1]:9", "::1", "[::1]:9", 9},
        {"rrq://runner.internal:1", "runner.internal", "runner.internal:1", 1},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ew__target target;
        assert_int_equal(ew__target_parse(good[i].text, &target, NULL), EW_OK);
        assert_int_equal(target.kind, EW__WHERE_TCP);
        assert_int_equal(target.scheme->command, EW_SCHEME_COMMAND_MAY);
        assert_string_equal(target.wire->name, "rrq");
        assert_string_equal(target.host, good[i].host);
        assert_string_equal(target.authority, good[i].authority);
        assert_string_equal(target.path, "");
        assert_int_equal(target.port, good[i].port);
    }
}

static void test_api_target__reads_stepflow(void **state) {
    (void)state;
    static const struct {
        const char *text, *host, *authority, *path;
        unsigned port;
    } good[] = {
        {"stepflow+http://127.0.0.1:8080", "127.0.0.1", "127.0.0.1:8080", "/", 8080},
        {"stepflow+http://localhost:1/", "localhost", "localhost:1", "/", 1},
        {"stepflow+http://[::1]:9/api/jsonrpc/", "::1", "[::1]:9", "/api/jsonrpc/", 9}, /* as it stands */
        {"stepflow+http://worker.internal/x", "worker.internal", "worker.internal", "/x", 80},
        {"stepflow+http://127.0.0.1:0/x", "127.0.0.1", "127.0.0.1:0", "/x", 0}, /* with a command only */
        {"stepflow+http:", "127.0.0.1", "127.0.0.1:0", "/", 0},
    };
    ew__target target;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(ew__target_parse(good[i].text, &target, NULL), EW_OK);
        assert_int_equal(target.kind, EW__WHERE_TCP);
        assert_int_equal(target.scheme->command, EW_SCHEME_COMMAND_ANNOUNCES);
        assert_string_equal(target.wire->name, "stepflow+http");
        assert_string_equal(target.host, good[i].host);
        assert_string_equal(target.authority, good[i].authority);
        assert_string_equal(target.path, good[i].path);
        assert_int_equal(target.port, good[i].port);
        assert_int_equal(ew__target_is_here(&target), strcmp(target.host, "worker.internal") != 0);
    }
    assert_int_equal(ew__target_parse("stepflow+stdio:", &target, NULL), EW_OK);
    assert_int_equal(target.kind, EW__WHERE_CHILD);
    assert_int_equal(target.scheme->command, EW_SCHEME_COMMAND_MUST);
    assert_string_equal(target.wire->name, "stepflow");
}

static void test_api_target__command(void **state) {
    static const char *const some[] = {"true", NULL}, *const none[] = {NULL};
    static const struct {
        const char *target;
        bool command;
        unsigned processes;
        const char *problem; /* NULL: it is fine */
    } cases[] = {
        {"rrq://127.0.0.1:9000", false, 0, NULL},
        {"rrq://some.where:9000", false, 0, NULL},
        {"rrq://127.0.0.1:9000", true, 0, NULL},
        {"rrq://localhost:0", true, 64, NULL},
        {"rrq://[::1]:0", true, 2, NULL},
        {"rrq://127.8.9.1:65535", true, 1, NULL},
        {"rrq://127.0.0.1:65535", true, 2, "ports"},
        {"rrq://127.0.0.1:0", false, 0, "port 0 wants a command"},
        {"rrq://127.0.0.1:9000", true, 65, "at most 64"},
        {"rrq://127.0.0.1:9000", false, 2, "processes are for"},
        {"rrq://some.where:9000", true, 0, "on this machine"},
        {"rrq://10.0.0.1:9000", true, 0, "on this machine"},
        {"rrq://0.0.0.0:9000", true, 0, "on this machine"},
        {"rrq://[::]:9000", true, 0, "on this machine"},
        {"http://127.0.0.1:9000", true, 0, "takes no command"},
        {"http://127.0.0.1:9000", false, 1, "processes are for"},
        {"jsonrpc://127.0.0.1:9000", true, 0, "takes no command"},
        {"jsonrpc+stdio:", false, 0, "wants the command"},
        {"jsonrpc+stdio:", true, 0, NULL},
        {"jsonrpc+stdio:", true, 2, "processes are for"},
        {"stepflow+stdio:", false, 0, "wants the command"},
        {"stepflow+stdio:", true, 0, NULL},
        {"stepflow+http:", true, 0, NULL},
        {"stepflow+http:", false, 0, "port 0 wants a command"},
        {"stepflow+http://localhost:0/x", true, 0, NULL},
        {"stepflow+http://127.0.0.1:0", true, 2, "processes are for"},
        {"stepflow+http://127.0.0.1:8080", false, 0, NULL},
        {"stepflow+http://some.where:8080", false, 0, NULL},
        {"stepflow+http://127.0.0.1:8080", true, 0, "chooses its port itself"},
        {"stepflow+http://some.where:0", true, 0, "on this machine"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ew_client_options options = {.command = cases[i].command ? some : none, .processes = cases[i].processes};
        ew_client *client = NULL;
        const char *problem = NULL;
        ew_err err = ew_client_new(cases[i].target, &options, &client, &problem);
        if ((cases[i].problem && !(problem && strstr(problem, cases[i].problem))) || (!cases[i].problem && problem))
            fail_msg("%s, case %zu: %s", cases[i].target, i, problem ? problem : "no problem");
        assert_int_equal(err, cases[i].problem ? EW_EINVAL : EW_OK);
        if (client)
            assert_int_equal(ew_client_port(client), 0);
        assert_null(ew_client_free(client));
    }
}

static void test_api_target__blobs(void **state) {
    static const char *const some[] = {"true", NULL};
    static const struct {
        const char *target;
        bool command;
        const char *blobs, *api;
        bool listens; /* for blobs */
        ew_err err;
        const char *problem; /* NULL: it is fine */
    } cases[] = {
        {"stepflow+http://127.0.0.1:8080", false, NULL, NULL, true, EW_OK, NULL},
        {"stepflow+http://localhost:8080", false, "memory", NULL, true, EW_OK, NULL},
        {"stepflow+http:", true, NULL, NULL, true, EW_OK, NULL},
        {"stepflow+http://some.where:8080", false, "memory", NULL, false, EW_OK, NULL},
        {"stepflow+stdio:", true, "memory", NULL, false, EW_OK, NULL},
        {"stepflow+http:", true, NULL, "http://10.0.0.1:7840/api/v1/blobs", false, EW_OK, NULL},
        {"stepflow+http:", true, NULL, "https://some.where/blobs", false, EW_OK, NULL},
        {"stepflow+http:", true, NULL, "some.where/blobs", false, EW_EINVAL, "a blob API looks like"},
        {"stepflow+http:", true, NULL, "http://some where", false, EW_EINVAL, "a blob API looks like"},
        {"stepflow+http:", true, "redis:", NULL, false, EW_EINVAL, "\"memory\" or in \"sqlite:PATH\""},
        {"stepflow+http:", true, "sqlite:/nowhere/at/all.db", NULL, false, EW_EIO, "cannot be opened"},
        {"http://127.0.0.1:1", false, "memory", NULL, false, EW_EINVAL, "are for Stepflow targets"},
        {"jsonrpc+stdio:", true, NULL, "http://127.0.0.1:1", false, EW_EINVAL, "are for Stepflow targets"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ew_client_options options = {
            .command = cases[i].command ? some : NULL, .blobs = cases[i].blobs, .blob_api = cases[i].api};
        ew_client *client = NULL;
        const char *problem = NULL;
        ew_err err = ew_client_new(cases[i].target, &options, &client, &problem);
        if (err != cases[i].err || (cases[i].problem && !(problem && strstr(problem, cases[i].problem))))
            fail_msg("%s, case %zu: %d, %s", cases[i].target, i, err, problem ? problem : "no problem");
        if (!client)
            continue;
        char url[128];
        (void)snprintf(url, sizeof url, "http://127.0.0.1:%u%s",
                       client->blobs.server.n_listeners ? client->blobs.server.listeners[0].site.port : 0,
                       client->blobs.path);
        assert_int_equal(client->blobs.serves, cases[i].listens);
        assert_non_null(client->pool->site.blobs);
        assert_string_equal(client->blobs.url, cases[i].api ? cases[i].api : cases[i].listens ? url : "");
        assert_string_equal(client->pool->site.blob_api.ptr, client->blobs.url);
        assert_null(ew_client_free(client));
    }
}

static void test_api_target__refuses(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "127.0.0.1:3400",
                                      "http:",
                                      "http:/h",
                                      "http://",
                                      "http://:80",
                                      "http://h:0",
                                      "http://h:65536",
                                      "http://h:8x",
                                      "http://u@h:80",
                                      "http://h:80/a?b",
                                      "http://h:80/#f",
                                      "http://h /",
                                      "http://[::1",
                                      "http://[::1]80",
                                      "http://h\r\n",
                                      "nonsense://h:1",
                                      "jsonrpc://h",
                                      "jsonrpc://h:1/path",
                                      "jsonrpc:h:1",
                                      "jsonrpc+unix:",
                                      "jsonrpc+stdio:x",
                                      "reflection://",
                                      "reflection://127.0.0.1",
                                      "reflection://somewhere:3200",
                                      "reflection://127.0.0.1:3200/path",
                                      "reflection://unix:/x",
                                      "reflection://stdio",
                                      "reflection://127.0.0.1:70000",
                                      "rrq://127.0.0.1",
                                      "rrq://:9000",
                                      "rrq://127.0.0.1:",
                                      "rrq://127.0.0.1:70000",
                                      "rrq://127.0.0.1:9000/path",
                                      "rrq:127.0.0.1:9000",
                                      "jsonrpc://h:1?framing=cobs",
                                      "jsonrpc://h:1?",
                                      "jsonrpc://h:1?discover=no&",
                                      "jsonrpc://h:1?discover=no&x=y",
                                      "jsonrpc+unix:x?discover=yes",
                                      "jsonrpc+stdio:?x=y",
                                      "stepflow+http:x",
                                      "stepflow+http:/x",
                                      "stepflow+http://",
                                      "stepflow+http://h:70000",
                                      "stepflow+http://h:1/a?b",
                                      "stepflow+http://h:1/a b",
                                      "stepflow+stdio:x",
                                      "stepflow://h:1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ew__target target;
        const char *problem = NULL;
        assert_int_equal(ew__target_parse(bad[i], &target, &problem), EW_EINVAL);
        assert_non_null(problem);
    }
    ew__target target;
    assert_int_equal(ew__target_parse(NULL, &target, NULL), EW_EINVAL);
}

static void test_targets_with_tls(void **state) {
    (void)state;
    static const struct {
        const char *text, *wire, *path;
        uint16_t port;
        uint8_t kind;
        bool http;
    } rows[] = {
        {"https://h", "http", "", 443, EW__WHERE_TCP, true},
        {"https://h:8443/base/", "http", "/base", 8443, EW__WHERE_TCP, true},
        {"jsonrpcs://h:1", "jsonrpc", "", 1, EW__WHERE_TCP, false},
        {"rrqs://h:1", "rrq", "", 1, EW__WHERE_TCP, false},
        {"stepflow+https://h", "stepflow+http", "/", 443, EW__WHERE_TCP, true},
        {"reflections://127.0.0.1:1", "reflection", "", 1, EW__WHERE_LISTEN, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ew__target target;
        const char *problem = NULL;
        assert_int_equal(ew__target_parse(rows[i].text, &target, &problem), EW_OK);
        assert_true(target.scheme->tls);
        assert_int_equal(target.scheme->http, rows[i].http);
        assert_string_equal(target.wire->name, rows[i].wire);
        assert_string_equal(target.path, rows[i].path);
        assert_int_equal(target.port, rows[i].port);
        assert_int_equal(target.kind, rows[i].kind);
    }
    static const char *const bad[] = {"rrqs://h",        "jsonrpcs://h", "rrqs://h:0",
                                      "stepflow+https:", "https://h:0",  "httpss://h"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ew__target target;
        assert_int_equal(ew__target_parse(bad[i], &target, NULL), EW_EINVAL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_target__reads),         cmocka_unit_test(test_api_target__reads_jsonrpc),
        cmocka_unit_test(test_api_target__reads_options), cmocka_unit_test(test_api_target__reads_reflection),
        cmocka_unit_test(test_api_target__reads_rrq),     cmocka_unit_test(test_api_target__reads_stepflow),
        cmocka_unit_test(test_api_target__command),       cmocka_unit_test(test_api_target__blobs),
        cmocka_unit_test(test_api_target__refuses),       cmocka_unit_test(test_targets_with_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
