/*
 * tests/unit/io/test_address.c: addresses as text.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/io/world.h"
#include "io/address.h"
#include <arpa/inet.h>
#include <netdb.h>
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
    assert_int_equal(ew__address_pick(&address, NULL), EW_OK);
    assert_true(address.port > 0 && address.port != 80);
    char text[32];
    (void)snprintf(text, sizeof text, "127.0.0.1:%u", address.port);
    assert_string_equal(address.text, text);
    int fd = bound(address.port, &name);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(ew__address_probe(&address), EW_EADDRINUSE);
    close(fd);
    parse("unix:/x", &address);
    assert_int_equal(ew__address_pick(&address, NULL), EW_EINVAL);
}

static int try_to_bind(uint16_t port, bool reuse) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = reuse;
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    if (bind(fd, (struct sockaddr *)&name, sizeof name) == 0 && listen(fd, 1) == 0)
        return fd;
    assert_int_equal(errno, EADDRINUSE);
    close(fd);
    return -1;
}

/* A port that is reserved: the program that it is for can listen there, others cannot come upon it. */
static void holds(void **state) {
    ew__address address;
    int hold = -1;
    (void)state;
    parse("localhost:0", &address);
    assert_int_equal(ew__address_pick(&address, &hold), EW_OK);
    assert_true(hold >= 0);
    assert_int_equal(try_to_bind(address.port, false), -1);
    int fd = try_to_bind(address.port, true);
    assert_true(fd >= 0);
    close(fd);
    close(hold);
    fd = try_to_bind(address.port, true);
    assert_true(fd >= 0);
    close(fd);
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

/* ---- addresses that a URL of a peer must not lead to ---- */

/* Resolves a numeric host as a dial does, in every spelling that the resolver takes. */
static bool is_special(const char *host) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *found = NULL;
    if (getaddrinfo(host, "80", &hints, &found) != 0)
        fail_msg("cannot resolve %s", host);
    bool special = ew__is_special_address(found->ai_addr);
    freeaddrinfo(found);
    return special;
}

static void special_addresses(void **state) {
    static const char *const special[] = {
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "0xa9.0xfe.1",
        "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe",
        "::169.254.169.254",
        "::ffff:0:169.254.1.1",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "169.254.0.0",
        "169.254.255.255",
        "fe80::1",
        "febf::1",
        "0.0.0.0",
        "0",
        "0.1.2.3",
        "::",
        "::ffff:0.0.0.0",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "ff02::1",
        "::ffff:224.0.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
    };
    (void)state;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (!is_special(special[i]))
            fail_msg("%s is taken for an ordinary address", special[i]);
}

static void ordinary_addresses(void **state) {
    static const char *const ordinary[] = {
        "127.0.0.1",       "127.255.255.255", "2130706433",  "::1",           "::ffff:127.0.0.1", "10.0.0.1",
        "192.168.1.1",     "169.253.255.255", "169.255.0.0", "1.0.0.0",       "223.255.255.255",  "100.100.100.199",
        "8.8.8.8",         "fec0::1",         "fe7f::1",     "fd00:ec2::253", "2001:db8::1",      "64:ff9b::808:808",
        "2002:808:808::1",
    };
    const struct sockaddr_un path = {.sun_family = AF_UNIX};
    (void)state;
    for (size_t i = 0; i < sizeof ordinary / sizeof *ordinary; i++)
        if (is_special(ordinary[i]))
            fail_msg("%s is taken for a special address", ordinary[i]);
    assert_true(ew__is_special_address((const struct sockaddr *)&path)); /* neither IPv4 nor IPv6 */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp),
        cmocka_unit_test(unix_path),
        cmocka_unit_test(length_of_a_path),
        cmocka_unit_test(standard_input_and_output),
        cmocka_unit_test(picks),
        cmocka_unit_test(holds),
        cmocka_unit_test(meets_itself),
        cmocka_unit_test(nonsense),
        cmocka_unit_test(special_addresses),
        cmocka_unit_test(ordinary_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
