/*
 * tests/unit/io/test_address.c: addresses as text.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/io/world.h"
#include <sys/un.h>

static void parse(const char *text, ew__address *ret) { assert_int_equal(ew__address_parse(text, ret), EW_OK); }

static void tcp(void **state) {
    ew__address address;
    (void)state;
    parse("localhost:80", &address);
    assert_int_equal(address.kind, EW__ADDR_TCP);
    assert_string_equal(address.text, "127.0.0.1:80");
    assert_int_equal(address.port, 80);
    assert_true(address.loopback);
    parse("0.0.0.0:0", &address);
    assert_false(address.loopback);
    parse("[::1]:65535", &address);
    assert_string_equal(address.text, "[::1]:65535");
    assert_true(address.loopback);
}

static void unix_path(void **state) {
    ew__address address;
    (void)state;
    parse("unix:/run/x.sock", &address);
    assert_int_equal(address.kind, EW__ADDR_UNIX);
    assert_string_equal(address.text, "unix:/run/x.sock");
    assert_int_equal(address.port, 0);
    assert_true(address.loopback);
    parse("unix:x:80", &address); /* a path may hold colons */
    assert_int_equal(address.kind, EW__ADDR_UNIX);
    assert_string_equal(address.text, "unix:x:80");
}

static void length_of_a_path(void **state) {
    char text[5 + sizeof((struct sockaddr_un *)0)->sun_path + 1] = "unix:";
    const size_t longest = sizeof((struct sockaddr_un *)0)->sun_path - 1;
    ew__address address;
    (void)state;
    memset(text + 5, 'a', longest);
    parse(text, &address);
    assert_string_equal(address.text, text);
    text[5 + longest] = 'a';
    assert_int_equal(ew__address_parse(text, &address), EW_EINVAL);
}

static void standard_input_and_output(void **state) {
    ew__address address;
    (void)state;
    parse("stdio", &address);
    assert_int_equal(address.kind, EW__ADDR_STDIO);
    assert_string_equal(address.text, "stdio");
    assert_true(address.loopback);
    assert_int_equal(ew__address_probe(&address), EW_OK);
}

static void nonsense(void **state) {
    static const char *const wrong[] = {"",     "unix:",     "unix",          "stdio:", "80",
                                        "x:80", "127.0.0.1", "1.2.3.4:65536", "[::1]",  "::1:80"};
    ew__address address;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(ew__address_parse(wrong[i], &address), EW_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp),
        cmocka_unit_test(unix_path),
        cmocka_unit_test(length_of_a_path),
        cmocka_unit_test(standard_input_and_output),
        cmocka_unit_test(nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
