/*
 * tests/unit/json/test_number.c: decimals, compared and divided exactly; and references, resolved.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/json/verdict.h"

#include "json/number.h"
#include "schema/uri.h"

static void test_json_number__order(void **state) {
    static const struct {
        const char *a, *b;
        int order;
    } rows[] = {
        {"1", "1.0", 0},
        {"0", "-0.00e5", 0},
        {"100", "1e2", 0},
        {"0.001", "1E-3", 0},
        {"12.50", "1.25e+1", 0},
        {"-1", "1", -1},
        {"-2", "-1", -1},
        {"2", "10", -1},
        {"0.1", "0.09999999999999999999999999", 1},
        {"9007199254740993", "9007199254740992", 1}, /* equal as doubles */
        {"1e400", "1e399", 1},
        {"1e-400", "0", 1},
        {"-1e400", "0", -1},
        {"123456789012345678901234567890", "123456789012345678901234567891", -1},
        {"1.1", "1.10000000000000000000000000000001", -1},
        {"1e999999999999999999999", "1e5", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ew__decimal a = ew__decimal_read(ew_str_from(rows[i].a)), b = ew__decimal_read(ew_str_from(rows[i].b));
        assert_int_equal(ew__decimal_compare(&a, &b), rows[i].order);
        assert_int_equal(ew__decimal_compare(&b, &a), -rows[i].order);
    }
}

static void test_json_number__whole(void **state) {
    static const struct {
        const char *text;
        bool whole;
    } rows[] = {{"0", true},    {"1.0", true}, {"1.5", false}, {"15e-1", false}, {"150e-1", true},
                {"1e50", true}, {"-3", true},  {"0.0", true},  {"1e-1", false},  {"1.23e2", true}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ew__decimal a = ew__decimal_read(ew_str_from(rows[i].text));
        assert_int_equal(ew__decimal_is_integer(&a), rows[i].whole);
    }
}

static void test_json_number__counts(void **state) {
    static const struct {
        const char *text;
        bool ok;
        uint64_t count;
    } rows[] = {{"0", true, 0},
                {"2.0", true, 2},
                {"1e3", true, 1000},
                {"-1", false, 0},
                {"1.5", false, 0},
                {"1e30", true, UINT64_MAX},
                {"1234567890123456789", true, 1234567890123456789}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t count = 0;
        ew__decimal a = ew__decimal_read(ew_str_from(rows[i].text));
        assert_int_equal(ew__decimal_count(&a, &count), rows[i].ok);
        assert_true(!rows[i].ok || count == rows[i].count);
    }
}

static void test_json_number__multiples(void **state) {
    static const struct {
        const char *a, *of;
        bool multiple;
    } rows[] = {
        {"10", "2", true},
        {"7", "2", false},
        {"0", "3", true},
        {"-9", "3", true},
        {"0.3", "0.1", true},
        {"0.0075", "0.0001", true},
        {"0.00751", "0.0001", false},
        {"4.5", "1.5", true},
        {"35", "1.5", false},
        {"1e308", "0.5", true},
        {"1e308", "0.123456789", false},
        {"1e-5", "1e-4", false},
        {"12391239123", "1e-8", true},
        {"1", "3", false},
        {"1e1000000000", "7", false},
        {"7e1000000000", "7", true},
        {"123456789012345678901234567890", "10", true},
        {"123456789012345678901234567890", "999999999999999999", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ew__divisor of;
        ew__decimal a = ew__decimal_read(ew_str_from(rows[i].a)), b = ew__decimal_read(ew_str_from(rows[i].of));
        assert_true(ew__divisor_make(&b, &of));
        if (ew__decimal_is_multiple(&a, &of) != rows[i].multiple) {
            fail_msg("%s of %s", rows[i].a, rows[i].of);
        }
    }
    static const struct {
        const char *text;
        bool ok;
    } divisors[] = {
        {"0", false}, {"-1", false}, {"123456789012345678", true}, {"1234567890123456789", false}, {"1e-300", true}};
    for (size_t i = 0; i < sizeof divisors / sizeof divisors[0]; i++) {
        ew__divisor of;
        ew__decimal a = ew__decimal_read(ew_str_from(divisors[i].text));
        assert_int_equal(ew__divisor_make(&a, &of), divisors[i].ok);
    }
}

/* The examples of RFC 3986, 5.4, without their fragments, and a few without an authority. */
static void test_json_number__references(void **state) {
    static const struct {
        const char *base, *ref, *whole;
    } rows[] = {
        {"http://a/b/c/d;p?q", "g:h", "g:h"},
        {"http://a/b/c/d;p?q", "g", "http://a/b/c/g"},
        {"http://a/b/c/d;p?q", "./g", "http://a/b/c/g"},
        {"http://a/b/c/d;p?q", "g/", "http://a/b/c/g/"},
        {"http://a/b/c/d;p?q", "/g", "http://a/g"},
        {"http://a/b/c/d;p?q", "//g", "http://g"},
        {"http://a/b/c/d;p?q", "?y", "http://a/b/c/d;p?y"},
        {"http://a/b/c/d;p?q", "g?y", "http://a/b/c/g?y"},
        {"http://a/b/c/d;p?q", "", "http://a/b/c/d;p?q"},
        {"http://a/b/c/d;p?q", ".", "http://a/b/c/"},
        {"http://a/b/c/d;p?q", "./", "http://a/b/c/"},
        {"http://a/b/c/d;p?q", "..", "http://a/b/"},
        {"http://a/b/c/d;p?q", "../", "http://a/b/"},
        {"http://a/b/c/d;p?q", "../g", "http://a/b/g"},
        {"http://a/b/c/d;p?q", "../..", "http://a/"},
        {"http://a/b/c/d;p?q", "../../g", "http://a/g"},
        {"http://a/b/c/d;p?q", "../../../g", "http://a/g"},
        {"http://a/b/c/d;p?q", "/./g", "http://a/g"},
        {"http://a/b/c/d;p?q", "/../g", "http://a/g"},
        {"http://a/b/c/d;p?q", "g.", "http://a/b/c/g."},
        {"http://a/b/c/d;p?q", "..g", "http://a/b/c/..g"},
        {"http://a/b/c/d;p?q", "./../g", "http://a/b/g"},
        {"http://a/b/c/d;p?q", "./g/.", "http://a/b/c/g/"},
        {"http://a/b/c/d;p?q", "g/./h", "http://a/b/c/g/h"},
        {"http://a/b/c/d;p?q", "g/../h", "http://a/b/c/h"},
        {"http://a", "g", "http://a/g"},
        {"", "item.json", "item.json"},
        {"schemas/a.json", "b.json", "schemas/b.json"},
        {"urn:x:1", "urn:x:2/../3", "urn:x:2/../3"},
        {"file:///c:/folder/file.json", "other.json", "file:///c:/folder/other.json"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ew__buf out;
        ew__buf_init(&out, ew_env_default(), 1024);
        assert_int_equal(ew__uri_resolve(&out, ew_str_from(rows[i].base), ew_str_from(rows[i].ref)), EW_OK);
        if (!ew_str_eq(ew__buf_view(&out), ew_str_from(rows[i].whole))) {
            fail_msg("%s in %s: %.*s", rows[i].ref, rows[i].base, (int)out.len, out.ptr);
        }
        ew__buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_number__order),      cmocka_unit_test(test_json_number__whole),
        cmocka_unit_test(test_json_number__counts),     cmocka_unit_test(test_json_number__multiples),
        cmocka_unit_test(test_json_number__references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
