/*
 * tests/unit/endpoint/test_exporter_url.c: which URLs of a telemetry server are used: the program's own, and those that
 * a peer pushes, who may send us to no other machine in any spelling.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "endpoint/exporter.h"

static ew_err parse(const char *url, bool pushed, ew__export_target *ret) {
    const char *problem = NULL;
    ew_err err = ew__export_target_parse(ew_str_from(url), pushed, ret, &problem);
    assert_true((err == EW_OK) == (problem == NULL));
    return err;
}

static void test_exporter_url__parts(void **state) {
    ew__export_target aim;
    (void)state;
    assert_int_equal(parse("http://localhost:4033", false, &aim), EW_OK);
    assert_string_equal(aim.host, "localhost");
    assert_int_equal(aim.port, 4033);
    assert_string_equal(aim.authority, "localhost:4033");
    assert_string_equal(aim.path, "/api/traces");
    assert_false(aim.loopback_only);
    assert_int_equal(parse("HTTP://[2001:db8::1]:80/a/b//", false, &aim), EW_OK);
    assert_string_equal(aim.host, "2001:db8::1");
    assert_string_equal(aim.authority, "[2001:db8::1]:80");
    assert_string_equal(aim.path, "/a/b/api/traces");
    assert_int_equal(parse("http://telemetry.example.com:1/", false, &aim), EW_OK);
    assert_string_equal(aim.path, "/api/traces");
    assert_int_equal(parse("http://127.0.0.1:65535", true, &aim), EW_OK);
    assert_true(aim.loopback_only);
}

static void test_exporter_url__pushed_ones_on_this_machine(void **state) {
    static const char *const good[] = {
        "http://localhost:4033",  "http://LocalHost:4033", "HTTP://localhost:4033",       "http://127.0.0.1:4033",
        "http://127.0.0.1:4033/", "http://127.1.2.3:1",    "http://127.255.255.254:80/x", "http://[::1]:4033",
    };
    ew__export_target aim;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (parse(good[i], true, &aim) != EW_OK || !aim.loopback_only)
            fail_msg("refused: %s", good[i]);
}

/* 169.254.169.254 and friends, as people have written them to get past such a check. */
static void test_exporter_url__pushed_ones_elsewhere(void **state) {
    static const char *const bad[] = {
        "http://169.254.169.254:80",
        "http://169.254.169.254:80/latest/meta-data",
        "http://2852039166:80", /* decimal */
        "http://0xa9fea9fe:80",
        "http://0xA9FEA9FE:80",
        "http://0xa9.0xfe.0xa9.0xfe:80",
        "http://0251.0376.0251.0376:80", /* octal */
        "http://00000251.0376.000251.0000376:80",
        "http://025177524776:80",
        "http://169.254.43518:80", /* short forms */
        "http://169.16689662:80",
        "http://0xa9.254.0251.254:80",
        "http://169.254.169.254.:80", /* a dot behind it */
        "http://[::ffff:169.254.169.254]:80",
        "http://[::ffff:a9fe:a9fe]:80",
        "http://[0:0:0:0:0:ffff:a9fe:a9fe]:80",
        "http://[::169.254.169.254]:80",
        "http://[64:ff9b::a9fe:a9fe]:80",
        "http://[fd00:ec2::254]:80",
        "http://[fe80::a9fe:a9fe]:80",
        "http://[::]:80",
        "http://[::ffff:127.0.0.1]:80",
        "http://[::1%25eth0]:80",
        "http://[0:0:0:0:0:0:0:1]:80", /* true, but not the one spelling */
        "http://0.0.0.0:80",
        "http://0:80",
        "http://127.1:80",
        "http://127:80",
        "http://2130706433:80",
        "http://0x7f000001:80",
        "http://0177.0.0.1:80",
        "http://127.0.0.01:80",
        "http://127.0.0.256:80",
        "http://127.0.0.1.:80",
        "http://127.0.0.1.example.com:80",
        "http://127.0.0.1.nip.io:80",
        "http://localhost.:80",
        "http://localhost.example.com:80",
        "http://xlocalhost:80",
        "http://localhost@169.254.169.254:80",
        "http://localhost:80@169.254.169.254:80",
        "http://127.0.0.1:4033@169.254.169.254/",
        "http://169.254.169.254:80#@localhost:80",
        "http://169.254.169.254:80?localhost:80",
        "http://169.254.169.254:80\\@localhost:80",
        "http://localhost\\@169.254.169.254:80",
        "http://%6c%6fcalhost:80",
        "http://%31%36%39.254.169.254:80",
        "http://\xe2\x91\xa0\xe2\x91\xa5\xe2\x91\xa8.254.169.254:80", /* digits in circles */
        "http://127.0.0.1\xe3\x80\x82:80",
        "http://metadata.google.internal:80",
        "http://10.0.0.1:80",
        "http://192.168.1.1:80",
        "http://128.0.0.1:80",
        "http://126.255.255.255:80",
    };
    ew__export_target aim;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parse(bad[i], true, &aim) == EW_OK)
            fail_msg("taken: %s", bad[i]);
}

static void test_exporter_url__not_one(void **state) {
    static const char *const bad[] = {
        "",
        "http",
        "http:",
        "http:/localhost:1",
        "http://",
        "http://:1",
        "http:///",
        "http://localhost",
        "http://localhost:",
        "http://localhost:0",
        "http://localhost:65536",
        "http://localhost:+80",
        "http://localhost: 80",
        "http://localhost:80 ",
        " http://localhost:80",
        "http://localhost:99999999999999999999",
        "http://local host:80",
        "http://localhost:80/a b",
        "http://localhost:80/\r\nX: y",
        "http://localhost\r\nX:80",
        "http://localhost:80/?a",
        "http://localhost:80/#a",
        "http://[::1:80",
        "http://[]:80",
        "http://[::1]",
        "http://[::1]80",
        "http://[localhost]:80",
        "http://a:b@localhost:80",
        "localhost:80",
        "//localhost:80",
        "ftp://localhost:80",
        "file:///etc/passwd",
        "gopher://localhost:80",
        "unix:/run/x.sock",
    };
    ew__export_target aim;
    char longer[2048] = "http://";
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int pushed = 0; pushed < 2; pushed++)
            if (parse(bad[i], pushed == 1, &aim) != EW_EINVAL)
                fail_msg("taken: %s", bad[i]);
    assert_int_equal(parse("https://localhost:80", true, &aim), EW_EUNSUPPORTED);
    assert_int_equal(parse("https://localhost:80", false, &aim), EW_OK);
    assert_true(aim.tls);
    assert_int_equal(parse("http://localhost:80", false, &aim), EW_OK);
    assert_false(aim.tls);
    memset(longer + 7, 'a', 300);
    memcpy(longer + 307, ":80", 4);
    assert_int_equal(parse(longer, false, &aim), EW_EINVAL);
    memcpy(longer, "http://h:80/", 12);
    memset(longer + 12, 'a', 1000);
    assert_int_equal(parse(longer, false, &aim), EW_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exporter_url__parts),
        cmocka_unit_test(test_exporter_url__pushed_ones_on_this_machine),
        cmocka_unit_test(test_exporter_url__pushed_ones_elsewhere),
        cmocka_unit_test(test_exporter_url__not_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
