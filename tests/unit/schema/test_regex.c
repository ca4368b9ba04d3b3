/*
 * tests/unit/schema/test_regex.c: patterns: what they match, what is refused, and that no text makes them slow.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/json/verdict.h"

#include "schema/regex.h"
#include "support/fail_env.h"

typedef struct row {
    const char *pattern; /* the insides of JSON strings */
    const char *text;
    bool matches;
} row;

static bool match(const char *pattern, ew_str text, uint64_t *steps) {
    ew__arena arena;
    const ew__regex *regex = NULL;
    ew__regex_problem problem = {"", 0};
    bool matched = false;
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    ew_err err = ew__regex_compile(&arena, ew_str_from(pattern), &problem, &regex);
    if (err != EW_OK) {
        fail_msg("%s: %s at %zu: %s", pattern, ew_err_name(err), problem.at, problem.what);
    }
    uint32_t *words = malloc(ew__regex_words(regex) * sizeof *words);
    assert_int_equal(ew__regex_match(regex, text, words, steps, &matched), EW_OK);
    free(words);
    ew__arena_done(&arena);
    return matched;
}

static void test_json_regex__matches(void **state) {
    static const row rows[] = {
        {"", "", true},
        {"", "x", true},
        {"a", "bab", true},
        {"^a", "ba", false},
        {"a$", "ab", false},
        {"^$", "", true},
        {"^(a|bc|)d$", "bcd", true},
        {"^(a|bc|)d$", "d", true},
        {"^(a|bc|)d$", "abcd", false},
        {"^a{2,3}$", "aa", true},
        {"^a{2,3}$", "aaa", true},
        {"^a{2,3}$", "a", false},
        {"^a{2,3}$", "aaaa", false},
        {"^a{2,}$", "aaaaaa", true},
        {"^a{0}$", "", true},
        {"^(ab){2}$", "abab", true},
        {"^a*?b+?c??$", "aabb", true},
        {"^[a-c]+$", "abcabc", true},
        {"^[a-c]+$", "abd", false},
        {"^[^a-c]$", "d", true},
        {"^[^a-c]$", "b", false},
        {"^[]$", "x", false},
        {"^[^]$", "\\n", true},
        {"^[\\\\w-.]+$", "a-b.c_9", true},
        {"^[-a]+$", "-a-", true},
        {"^[a\\\\]]+$", "a]", true},
        {"^.$", "\\n", false},
        {"^.$", "\\ud83d\\udc32", true}, /* one character, though UTF-16 has two */
        {"^\\\\ud83d\\\\udc32$", "\xf0\x9f\x90\xb2", true},
        {"^\\\\u{1F432}$", "\xf0\x9f\x90\xb2", true},
        {"^\\\\x41\\\\u0042\\\\cA$", "AB\\u0001", true},
        {"^\\\\d\\\\D\\\\w\\\\W\\\\s\\\\S$", "1a_- x", true},
        {"^\\\\s$", "\\u00a0", true},
        {"^\\\\s$", "\\ufeff", true},
        {"^\\\\w$", "\xc3\xa9", false},
        {"^\\\\d$", "\xd9\xa3", false},
        {"^\\\\p{Nd}$", "\xd9\xa3", true},
        {"^\\\\p{L}+$", "\xc3\xa9t\xc3\xa9", true},
        {"^\\\\P{L}+$", "12", true},
        {"^\\\\p{Lu}\\\\p{Ll}$", "\xc3\x89\xc3\xa9", true},
        {"^\\\\p{General_Category=Lu}$", "e", false},
        {"^[\\\\p{P}\\\\p{S}]+$", "+-!\xe2\x82\xac", true},
        {"\\\\bfoo\\\\b", "a foo b", true},
        {"\\\\bfoo\\\\b", "afoo", false},
        {"\\\\Boo", "foo", true},
        {"^(?:a|b)(?<name>c)$", "bc", true},
        {"^{a}$", "{a}", true},
        {"^a{,2}$", "a{,2}", true},
        {"^a\\\\/b\\\\-c$", "a/b-c", true},
        {"^(a*)*$", "aaa", true},
        {"^(a*)*$", "aab", false},
        {"(^a|b)c", "xbc", true},
        {"(^a|b)c", "xac", false},
        {"\\u0061", "xax", true}, /* JSON's own escape */
        {"^\\\"$", "\\\"", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t steps = 100000;
        if (match(rows[i].pattern, ew_str_from(rows[i].text), &steps) != rows[i].matches) {
            fail_msg("/%s/ on '%s': expected %d", rows[i].pattern, rows[i].text, rows[i].matches);
        }
    }
}

static ew_err compile(const char *pattern, ew__regex_problem *problem) {
    ew__arena arena;
    const ew__regex *regex = NULL;
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    ew_err err = ew__regex_compile(&arena, ew_str_from(pattern), problem, &regex);
    ew__arena_done(&arena);
    return err;
}

static void test_json_regex__refused(void **state) {
    static const struct {
        const char *pattern;
        const char *why;
        size_t at;
    } rows[] = {
        {"(a)\\\\1", "back-references", 5},
        {"\\\\k<a>", "back-references", 2},
        {"(?=a)", "lookaround", 2},
        {"(?!a)", "lookaround", 2},
        {"(?<=a)", "lookaround", 2},
        {"(?<!a)", "lookaround", 2},
        {"(?i)a", "after (?", 2},
        {"(a", "has no )", 2},
        {"a)", "has no (", 1},
        {"[a", "has no ]", 2},
        {"*a", "nothing to repeat", 0},
        {"a|+", "nothing to repeat", 2},
        {"a{3,2}", "smaller", 6},
        {"[b-a]", "backwards", 4},
        {"\\\\", "escapes nothing", 1},
        {"\\\\a", "no such escape", 2},
        {"\\\\p{Greek}", "\\p{...} knows", 9},
        {"\\\\p", "\\p{...} knows", 2},
        {"\\\\u{110000}", "code point", 9},
        {"\\\\xg", "hexadecimal", 2},
        {"\\\\01", "octal", 2},
        {"\\\\c1", "wants a letter", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ew__regex_problem problem = {"", 0};
        assert_int_equal(compile(rows[i].pattern, &problem), EW_EINVAL);
        if (strstr(problem.what, rows[i].why) == NULL || problem.at != rows[i].at) {
            fail_msg("%s: '%s' at %zu", rows[i].pattern, problem.what, problem.at);
        }
    }
}

static void test_json_regex__limits(void **state) {
    ew__regex_problem problem = {"", 0};
    char text[EW__REGEX_LENGTH_MAX + 2];
    (void)state;
    assert_int_equal(compile("a{8191}", &problem), EW_OK); /* and the state that says so */
    assert_int_equal(compile("a{8192}", &problem), EW_ELIMIT);
    assert_int_equal(compile("((a{100}){100}){100}", &problem), EW_ELIMIT);
    assert_int_equal(compile("((((){99999}){99999}){99999}){99999}", &problem), EW_ELIMIT); /* no states, but time */
    for (unsigned depth = EW__REGEX_NESTING_MAX - 1; depth <= EW__REGEX_NESTING_MAX + 1; depth++) {
        memset(text, '(', depth);
        memset(text + depth, ')', depth);
        text[2 * depth] = '\0';
        assert_int_equal(compile(text, &problem), depth <= EW__REGEX_NESTING_MAX ? EW_OK : EW_ELIMIT);
    }
    memset(text, '^', sizeof text);
    text[EW__REGEX_LENGTH_MAX + 1] = '\0';
    assert_int_equal(compile(text, &problem), EW_ELIMIT);
}

/* What makes a backtracking matcher take for ever: here the steps are so many for each character, whatever the text. */
static void test_json_regex__linear(void **state) {
    static const char *const patterns[] = {"(a+)+$", "^(a|aa)+$", "(a*)*b", "(.*)(.*)(.*)(.*)[0-9]$",
                                           "^(([a-z])+.)+[A-Z]([a-z])+$"};
    size_t n = 64 * 1024;
    char *text = malloc(n);
    (void)state;
    memset(text, 'a', n);
    text[n - 1] = '!';
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        uint64_t steps = 40 * n, left = steps;
        assert_false(match(patterns[i], ew__str(text, n), &left));
        print_message("%s: %.1f steps a character\n", patterns[i], (double)(steps - left) / (double)n);
    }
    free(text);
}

static void test_json_regex__steps_end(void **state) {
    ew__arena arena;
    const ew__regex *regex = NULL;
    ew__regex_problem problem;
    uint32_t words[64];
    bool matched;
    (void)state;
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    assert_int_equal(ew__regex_compile(&arena, EW_STR("^a*$"), &problem, &regex), EW_OK);
    assert_true(ew__regex_words(regex) <= 64);
    uint64_t enough = 1000, left = enough;
    assert_int_equal(ew__regex_match(regex, EW_STR("aaaaaaaa"), words, &left, &matched), EW_OK);
    uint64_t used = enough - left;
    left = used;
    assert_int_equal(ew__regex_match(regex, EW_STR("aaaaaaaa"), words, &left, &matched), EW_OK);
    left = used - 1;
    assert_int_equal(ew__regex_match(regex, EW_STR("aaaaaaaa"), words, &left, &matched), EW_ELIMIT);
    ew__arena_done(&arena);
}

static void test_json_regex__memory_fails(void **state) {
    ew__test_env t;
    (void)state;
    ew__test_env_init(&t, 1);
    for (uint64_t n = 1;; n++) {
        ew__arena arena;
        const ew__regex *regex = NULL;
        ew__regex_problem problem;
        ew__test_env_fail_at(&t, n, false);
        ew__arena_init(&arena, &t.env, NULL, 0);
        ew_err err = ew__regex_compile(&arena, EW_STR("^([\\\\p{L}_]|[^x-z]){2,4}|(a|b)*c$"), &problem, &regex);
        ew__arena_done(&arena);
        assert_int_equal(ew__test_env_live_blocks(&t), 0);
        if (ew__test_env_failed(&t) == 0) {
            assert_int_equal(err, EW_OK);
            break;
        }
        assert_int_equal(err, EW_ENOMEM);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_regex__matches),   cmocka_unit_test(test_json_regex__refused),
        cmocka_unit_test(test_json_regex__limits),    cmocka_unit_test(test_json_regex__linear),
        cmocka_unit_test(test_json_regex__steps_end), cmocka_unit_test(test_json_regex__memory_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
