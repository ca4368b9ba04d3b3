/*
 * tests/unit/io/test_address.c: addresses as text.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/io/world.h"
#include "io/address.h"
#include <arpa/inet.h>
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

static int bound(uint16_t port, struct sockaddr_in *name) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    *name =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof *name;
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)name, n), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)name, &n), 0);
    return fd;
}

/* A port that is free, and can be listened on at once. */
static void picks(void **state) {
    ew__address address;
    struct sockaddr_in name;
    (void)state;
    parse("localhost:80", &address);
    assert_int_equal(ew__address_pick(&address), EW_OK);
    assert_true(address.port > 0 && address.port != 80);
    char text[32];
    (void)snprintf(text, sizeof text, "127.0.0.1:%u", address.port);
    assert_string_equal(address.text, text);
    int fd = bound(address.port, &name);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(ew__address_probe(&address), EW_EADDRINUSE);
    close(fd);
    parse("unix:/x", &address);
    assert_int_equal(ew__address_pick(&address), EW_EINVAL);
}

static void meets_itself(void **state) {
    struct sockaddr_in name, other;
    (void)state;
    int fd = bound(0, &name);
    assert_false(ew__is_itself(fd)); /* it is not connected */
    assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof name), 0);
    assert_true(ew__is_itself(fd));
    close(fd);
    int door = bound(0, &name), client = bound(0, &other);
    assert_int_equal(listen(door, 1), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&name, sizeof name), 0);
    assert_false(ew__is_itself(client));
    close(client);
    close(door);
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
        cmocka_unit_test(picks),
        cmocka_unit_test(meets_itself),
        cmocka_unit_test(nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
