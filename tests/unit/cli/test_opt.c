/*
 * Options, durations, nearest names: base/opt.c, parse.c and suggestion.c as the command line uses it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/opt.h"
#include "base/parse.h"
#include "base/suggestion.h"
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LISTEN = 1, DEMO, HELP };

static const ew__opt table[] = {
    {"listen", 'l', "ADDR", "where\nelse", LISTEN},
    {"demo", 0, NULL, "show", DEMO},
    {"help", 'h', NULL, "this", HELP},
    {NULL, 0, NULL, NULL, 0},
};

#define READ(opts, ...)                                                                                                \
    char *words_[] = {__VA_ARGS__, NULL};                                                                              \
    ew__opts_init(&(opts), table, (int)(sizeof words_ / sizeof *words_) - 1, words_, 0)

static void test_cli_opt__forms(void **state) {
    (void)state;
    ew__opts o;
    READ(o, "--listen", "a", "--listen=b", "--listen=", "-l", "c", "-ld", "--demo", "-h");
    const char *values[] = {"a", "b", "", "c", "d"};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ew__opts_next(&o), LISTEN);
        assert_string_equal(o.value, values[i]);
    }
    assert_int_equal(ew__opts_next(&o), DEMO);
    assert_null(o.value);
    assert_int_equal(ew__opts_next(&o), HELP);
    assert_int_equal(ew__opts_next(&o), EW__OPT_END);
    assert_int_equal(ew__opts_next(&o), EW__OPT_END);
}

static void test_cli_opt__operands_anywhere(void **state) {
    (void)state;
    ew__opts o;
    READ(o, "one", "--demo", "-", "-5", "-0.5", "", "--", "--demo");
    const char *words[] = {"one", NULL, "-", "-5", "-0.5", ""};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(ew__opts_next(&o), words[i] ? EW__OPT_WORD : DEMO);
        if (words[i]) {
            assert_string_equal(o.value, words[i]);
        }
    }
    assert_int_equal(ew__opts_next(&o), EW__OPT_REST);
    assert_string_equal(o.argv[o.at], "--demo");
}

static void test_cli_opt__option_as_value(void **state) {
    (void)state;
    ew__opts o;
    READ(o, "--listen", "--demo", "-l", "--");
    assert_int_equal(ew__opts_next(&o), LISTEN);
    assert_string_equal(o.value, "--demo");
    assert_int_equal(ew__opts_next(&o), LISTEN);
    assert_string_equal(o.value, "--");
    assert_int_equal(ew__opts_next(&o), EW__OPT_END);
}

static void expect_problem(char *word, const char *problem) {
    ew__opts o;
    READ(o, word);
    assert_int_equal(ew__opts_next(&o), EW__OPT_BAD);
    assert_string_equal(o.problem, problem);
}

static void test_cli_opt__problems(void **state) {
    (void)state;
    expect_problem((char[]){"--lisen"}, "unknown option --lisen; did you mean --listen?");
    expect_problem((char[]){"--lisetn=x"}, "unknown option --lisetn; did you mean --listen?");
    expect_problem((char[]){"--hel"}, "unknown option --hel; did you mean --help?");
    expect_problem((char[]){"--completely-else"}, "unknown option --completely-else");
    expect_problem((char[]){"-demo"}, "unknown option -demo; did you mean --demo?");
    expect_problem((char[]){"-x"}, "unknown option -x");
    expect_problem((char[]){"--listen"}, "--listen needs an argument ADDR");
    expect_problem((char[]){"-l"}, "--listen needs an argument ADDR");
    expect_problem((char[]){"--demo=1"}, "--demo takes no argument");
    expect_problem((char[]){"-hx"}, "--help takes no argument");
}

static void test_cli_opt__long_word_is_cut(void **state) {
    (void)state;
    char word[5000] = "--";
    memset(word + 2, 'x', sizeof word - 3);
    word[sizeof word - 1] = 0;
    ew__opts o;
    READ(o, word);
    assert_int_equal(ew__opts_next(&o), EW__OPT_BAD);
    assert_true(strlen(o.problem) < 120);
}

static void test_cli_opt__help(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    ew__opts_help(out, table, NULL);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, "  -l, --listen ADDR  where\n"
                              "                     else\n"
                              "      --demo         show\n"
                              "  -h, --help         this\n");
    free(text);
}

static void expect_ms(const char *text, uint64_t ms) {
    uint64_t got = 77;
    assert_int_equal(ew__duration_parse(ew_str_from(text), &got), EW_OK);
    assert_int_equal(got, ms);
}

static void test_cli_opt__durations(void **state) {
    (void)state;
    expect_ms("0", 0);
    expect_ms("0ms", 0);
    expect_ms("1", 1000);
    expect_ms("500ms", 500);
    expect_ms("2s", 2000);
    expect_ms("1m", 60000);
    expect_ms("1h", 3600000);
    expect_ms("1.5", 1500);
    expect_ms("0.25s", 250);
    expect_ms("1.5h", 5400000);
    expect_ms("0.0001", 1);           /* only zero is zero */
    expect_ms("0.0000000000001h", 1); /* also beyond the digits that count */
    expect_ms("0.0000000000000h", 0);
    expect_ms("1.0000000001ms", 2);
    expect_ms("000000000000000000000000000000000002s", 2000);
}

static void test_cli_opt__not_durations(void **state) {
    (void)state;
    static const char *const bad[] = {"",   "s",  "ms",   "-1",  "+1",   "1 s",   " 1",  "1 ",  "1.",  ".5",   "1.s",
                                      "1d", "1S", "1sec", "1e3", "0x10", "1.2.3", "1,5", "inf", "nan", "1mss", "1msm"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t ms = 77;
        assert_int_equal(ew__duration_parse(ew_str_from(bad[i]), &ms), EW_EINVAL);
        assert_int_equal(ms, 77);
    }
}

static void test_cli_opt__duration_limits(void **state) {
    (void)state;
    uint64_t ms = 0;
    expect_ms("3153599999999ms", EW__DURATION_MAX_MS - 1);
    expect_ms("3153600000000ms", EW__DURATION_MAX_MS);
    expect_ms("876000h", EW__DURATION_MAX_MS);
    static const char *const beyond[] = {"3153600000001ms",
                                         "3153600000.001s",
                                         "876000.1h",
                                         "876001h",
                                         "18446744073709551616",
                                         "18446744073709551615ms",
                                         "99999999999999999999999999999999999999h"};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        assert_int_equal(ew__duration_parse(ew_str_from(beyond[i]), &ms), EW_ELIMIT);
    }
}

static void expect_distance(const char *a, const char *b, unsigned distance) {
    assert_int_equal(ew__edit_distance(ew_str_from(a), ew_str_from(b)), distance);
    assert_int_equal(ew__edit_distance(ew_str_from(b), ew_str_from(a)), distance);
}

static void test_cli_opt__edit_distance(void **state) {
    (void)state;
    expect_distance("", "", 0);
    expect_distance("", "abc", 3);
    expect_distance("abc", "abc", 0);
    expect_distance("abc", "abd", 1);
    expect_distance("abc", "ab", 1);
    expect_distance("abc", "bac", 1); /* a swap is one slip */
    expect_distance("kitten", "sitting", 3);
    expect_distance("serve", "srevee", 2);
    char a[65], b[64];
    memset(a, 'a', 64);
    memset(b, 'b', 63);
    assert_int_equal(ew__edit_distance((ew_str){a, 63}, (ew_str){b, 63}), 63);
    assert_int_equal(ew__edit_distance((ew_str){a, 62}, (ew_str){b, 63}), 63);
    assert_int_equal(ew__edit_distance((ew_str){a, 64}, (ew_str){b, 63}), UINT_MAX);
}

static const char *nearest(const char *word) {
    static const char *const names[] = {"serve", "call", "list", "describe", "allow-host", "allow-remote"};
    ew__suggestion near;
    ew__suggestion_init(&near, ew_str_from(word));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ew__suggestion_try(&near, ew_str_from(names[i]));
    }
    return near.best.ptr;
}

static void test_cli_opt__nearest(void **state) {
    (void)state;
    assert_string_equal(nearest("lst"), "list");
    assert_string_equal(nearest("sevre"), "serve");
    assert_string_equal(nearest("desc"), "describe");
    assert_string_equal(nearest("descirbee"), "describe");
    assert_string_equal(nearest("alow-remot"), "allow-remote");
    assert_null(nearest("x"));
    assert_null(nearest("fetch"));
    assert_null(nearest(""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_opt__forms),
        cmocka_unit_test(test_cli_opt__operands_anywhere),
        cmocka_unit_test(test_cli_opt__option_as_value),
        cmocka_unit_test(test_cli_opt__problems),
        cmocka_unit_test(test_cli_opt__long_word_is_cut),
        cmocka_unit_test(test_cli_opt__help),
        cmocka_unit_test(test_cli_opt__durations),
        cmocka_unit_test(test_cli_opt__not_durations),
        cmocka_unit_test(test_cli_opt__duration_limits),
        cmocka_unit_test(test_cli_opt__edit_distance),
        cmocka_unit_test(test_cli_opt__nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
