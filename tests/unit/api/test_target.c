/*
 * tests/unit/api/test_target.c: what a target text says.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/target.h"
#include "frame/line.h"

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
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ew__target target;
        assert_int_equal(ew__target_parse(good[i].text, &target, NULL), EW_OK);
        assert_int_equal(target.kind, good[i].kind);
        assert_int_equal(target.framing, good[i].framing);
        assert_string_equal(target.host, good[i].host);
        assert_string_equal(target.path, good[i].path);
        assert_int_equal(target.port, good[i].port);
        assert_string_equal(target.wire->name, "jsonrpc");
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
                                      "jsonrpc://h:1?framing=cobs"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ew__target target;
        const char *problem = NULL;
        assert_int_equal(ew__target_parse(bad[i], &target, &problem), EW_EINVAL);
        assert_non_null(problem);
    }
    static const char *const later[] = {"https://h:1", "rrq://h:1", "stepflow+stdio:"};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        ew__target target;
        assert_int_equal(ew__target_parse(later[i], &target, NULL), EW_EUNSUPPORTED);
    }
    ew__target target;
    assert_int_equal(ew__target_parse(NULL, &target, NULL), EW_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_target__reads),
        cmocka_unit_test(test_api_target__reads_jsonrpc),
        cmocka_unit_test(test_api_target__reads_reflection),
        cmocka_unit_test(test_api_target__refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
