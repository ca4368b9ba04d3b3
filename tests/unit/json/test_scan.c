/*
 * tests/unit/json/test_scan.c: validation and the notes on the first two levels; both scanners against the plain
 * checker. SPDX-License-Identifier: Apache-2.0
 */
#include "unit/json/verdict.h"

#include <everywire/limits.h>

static void test_json_scan__accepts(void **state) {
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0",
        "-1",
        "10",
        "0.5",
        "-0.0e-0",
        "1e5",
        "1E+5",
        "12.34e-56",
        "1.0E0",
        "123456789012345678901234567890",
        "true",
        "false",
        "null",
        "\"\"",
        "\"a\"",
        "[]",
        "{}",
        "[[]]",
        "[{}]",
        "{\"\":{}}",
        "[[],[],{},[1],{\"a\":[]}]",
        " [ 1 , 2 ] ",
        "\t{\r\n\"a\" : null , \"b\":[ true , false ]\n}\t",
        "{\"a\":1,\"a\":2}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uABCD\\uabcd\"",
        "\"\\ud800\"",
        "\"\\\\\"",
        "\"\\\\\\\\\\\"\"",
        "[\"\\\\\",\"\\\"\"]",
        "\"\x7f\"",
        "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"",
        "[1,2.5,-3e4,\"x\",true,null,{\"k\":[{}]}]",
        "{\"a\":\"b:c,d{e}[f]\",\"g\":\":\"}",
        "[\"a\",\"b\"]",
        "[1e1,0e1,0.1e1]",
        "[ ]",
        "{ }",
        "[\n]",
        "{\"a\" :[ ]}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (verdict_shifted(ew_str_from(texts[i])) != EW_OK) {
            fail_msg("refused: %s", texts[i]);
        }
    }
}

/* Each with the byte where it fails. */
static const struct {
    const char *text;
    size_t position;
} bad[] = {
    {"", 0},
    {" ", 1},
    {"1 2", 2},
    {"1,2", 1},
    {"1:2", 1},
    {"[1 2]", 3},
    {"[1,]", 3},
    {"[,1]", 1},
    {"[,]", 1},
    {"[1,,2]", 3},
    {"[1", 2},
    {"[1,", 3},
    {"[", 1},
    {"]", 0},
    {"}", 0},
    {"[]]", 2},
    {"[][]", 2},
    {"[],[]", 2},
    {"{}{}", 2},
    {"[}", 1},
    {"{]", 1},
    {"[{]}", 2},
    {"{\"a\":1]", 6},
    {"[1}", 2},
    {"{", 1},
    {"{\"a\"}", 4},
    {"{\"a\":}", 5},
    {"{\"a\" 1}", 5},
    {"{\"a\":1,}", 7},
    {"{,}", 1},
    {"{1:2}", 1},
    {"{\"a\":1,2}", 7},
    {"{\"a\":1 \"b\":2}", 7},
    {"{\"a\"::1}", 5},
    {"{\"a\":1:2}", 6},
    {"{\"a\",\"b\"}", 4},
    {"{[]:1}", 1},
    {"{{}:1}", 1},
    {"{true:1}", 1},
    {"[\"a\":1]", 4},
    {"[1:2]", 2},
    {"\"a\":1", 3},
    {"{\"a\":\"b\":\"c\"}", 8},
    {"[{\"a\":1},\"b\":2]", 12},
    {"{\"a\":[1],2}", 9},
    {"{\"a\":{}\"b\":1}", 7},
    {"[[]1]", 3},
    {"[\"a\"\"b\"]", 4},
    {"[\"a\"1]", 4},
    {"[1\"a\"]", 2},
    {"[1[]]", 2},
    {"[true{}]", 5},
    {"[1{\"a\":2}]", 2},
    {":", 0},
    {",", 0},
    {"[:1]", 1},
    {"{:1}", 1},
    {"01", 1},
    {"-01", 2},
    {"00", 1},
    {"-", 1},
    {"--1", 1},
    {"+1", 0},
    {"1.", 2},
    {".5", 0},
    {"1.e1", 2},
    {"1e", 2},
    {"1e+", 3},
    {"1e+-1", 3},
    {"1ee1", 2},
    {"1e1e1", 3},
    {"1e1.5", 3},
    {"1.2.3", 3},
    {"1..2", 2},
    {"1-2", 1},
    {"1+2", 1},
    {"-a", 1},
    {"1a", 1},
    {"0x10", 1},
    {"1e5-", 3},
    {"[-]", 2},
    {"[1.]", 3},
    {"[1e]", 3},
    {"[0.1.2]", 4},
    {"[1,-]", 4},
    {"[- 1]", 2},
    {"[1 .5]", 3},
    {"Infinity", 0},
    {"NaN", 0},
    {"-Infinity", 1},
    {"[1e1,2e]", 7},
    {"[-0e+1,-00]", 9},
    {"tru", 3},
    {"truE", 3},
    {"truee", 4},
    {"true1", 4},
    {"true.5", 4},
    {"true-1", 4},
    {"truetrue", 4},
    {"nul", 3},
    {"nulll", 4},
    {"fals", 4},
    {"falsee", 5},
    {"True", 0},
    {"xtrue", 0},
    {"t", 1},
    {"f", 1},
    {"n", 1},
    {"[t]", 2},
    {"[truE]", 4},
    {"-true", 1},
    {"1true", 1},
    {"[nan]", 2},
    {"undefined", 0},
    {"{\"a\":tru}", 8},
    {"[false null]", 7},
    {"\"", 1},
    {"\"a", 2},
    {"\"\\\"", 3},
    {"\"\\", 2},
    {"\"\\x\"", 2},
    {"\"\\u\"", 3},
    {"\"\\u12\"", 5},
    {"\"\\u12g4\"", 5},
    {"\"\\u123", 6},
    {"\"\\U0000\"", 2},
    {"\"\\'\"", 2},
    {"\"\\0\"", 2},
    {"\"a\nb\"", 2},
    {"\"\t\"", 1},
    {"\"\x1f\"", 1},
    {"'a'", 0},
    {"\\\"a\"", 0},
    {"[\\]", 1},
    {"\"a\"\\", 3},
    {"[\"a\\\\\"b\"]", 6},
    {"\"a\" \"", 4},
    {"\x0c[]", 0},
    {"[\x0c]", 1},
    {"[1\x0b]", 2},
    {"\xc2\xa0[]", 0},
    {"[\xe2\x80\x83]", 1},
    {"[1]\xef\xbb\xbf", 3},
    {"\x7f", 0},
    {"\"\x80\"", 1},
    {"\"\xc0\x80\"", 1},
    {"\"\xed\xa0\x80\"", 1},
    {"\"\xf4\x90\x80\x80\"", 1},
    {"\"\xff\"", 1},
    {"\"a\xc3\"", 2},
    {"\"\xe2\x82\"", 1},
    {"\"\xf0\x9f\x98\"", 1},
    {"\"\xc3\xa4\xa4\"", 3},
    {"[1]x", 3},
    {"// c\n1", 0},
    {"[1]/**/", 3},
    {"#", 0},
    {"{a:1}", 1},
};

static void test_json_scan__refuses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t position;
        ew_str text = ew_str_from(bad[i].text);
        if (verdict_shifted(text) != EW_ESYNTAX) {
            fail_msg("accepted: %s", bad[i].text);
        }
        for (size_t shift = 0; shift < 64; shift += 21) {
            verdict(text, shift, &position);
            if (position != bad[i].position) {
                fail_msg("%s: failed at %zu, not %zu", bad[i].text, position, bad[i].position);
            }
        }
        assert_int_equal(ew_json_check(text, NULL), EW_ESYNTAX);
        assert_int_equal(ew_json_check(text, &position), EW_ESYNTAX);
        assert_int_equal(position, bad[i].position);
    }
}

/* Every bad text as a value deep inside a good one, where the scanner takes another way. */
static void test_json_scan__refuses_inside(void **state) {
    (void)state;
    char text[512];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (size_t pad = 0; pad < 64; pad++) {
            snprintf(text, sizeof text, "[[[[{\"%0*d\":%s}]],[1,2,\"three\",4.5,{\"six\":7}]]]", (int)pad + 1, 0,
                     bad[i].text);
            assert_int_not_equal(verdict(ew_str_from(text), 0, NULL), EW_OK);
        }
    }
}

static void test_json_scan__a_nul_is_no_text(void **state) {
    (void)state;
    assert_int_equal(verdict_shifted(ew__str("\0", 1)), EW_ESYNTAX);
    assert_int_equal(verdict_shifted(ew__str("[1]\0", 4)), EW_ESYNTAX);
    assert_int_equal(verdict_shifted(ew__str("\"\0\"", 3)), EW_ESYNTAX);
    assert_int_equal(verdict_shifted(ew__str("tru\0", 4)), EW_ESYNTAX);
    assert_int_equal(verdict_shifted(ew__str("1\0", 2)), EW_ESYNTAX);
    assert_int_equal(verdict(ew__str(NULL, 0), 0, NULL), EW_ESYNTAX);
}

static ew_err nest(size_t depth, char kind, const char *inner, size_t shift) {
    char text[2048];
    size_t len = 0;
    for (size_t i = 0; i < depth; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, kind == '[' ? "[" : "{\"a\":");
    }
    len += (size_t)snprintf(text + len, sizeof text - len, "%s", inner);
    memset(text + len, kind == '[' ? ']' : '}', depth);
    return verdict(ew__str(text, len + depth), shift, NULL);
}

static void test_json_scan__depth(void **state) {
    (void)state;
    for (size_t shift = 0; shift < 64; shift++) {
        for (size_t depth = 60; depth <= EW_JSON_DEPTH; depth += depth < 126 ? 3 : 1) {
            assert_int_equal(nest(depth, '[', "1", shift), EW_OK);
            assert_int_equal(nest(depth, '{', "1", shift), EW_OK);
        }
        assert_int_equal(nest(EW_JSON_DEPTH - 1, '[', "{}", shift), EW_OK);
        assert_int_equal(nest(EW_JSON_DEPTH, '[', "{}", shift), EW_ELIMIT);
        assert_int_equal(nest(EW_JSON_DEPTH + 1, '[', "", shift), EW_ELIMIT);
        assert_int_equal(nest(EW_JSON_DEPTH + 1, '{', "1", shift), EW_ELIMIT);
        assert_int_equal(nest(EW_JSON_DEPTH - 1, '[', "[],[],[],{}", shift), EW_OK);
        assert_int_equal(nest(EW_JSON_DEPTH - 1, '[', "[],[],[],{]", shift), EW_ESYNTAX);
    }
}

static void test_json_scan__many_brackets(void **state) {
    (void)state;
    size_t n = 100000, position;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, '[', n);
    assert_int_equal(verdict(ew__str(text, n), 0, &position), EW_ELIMIT);
    assert_int_equal(position, EW_JSON_DEPTH);
    free(text);
}

/* Depth that goes up and down around the border where the scanner changes its way of walking. */
static void test_json_scan__hills(void **state) {
    (void)state;
    char text[8192];
    for (size_t low = 0; low < 8; low++) {
        for (size_t high = 1; high < 100; high += 7) {
            size_t len = 0;
            memset(text, '[', low + 1);
            len += low + 1;
            for (int k = 0; k < 12; k++) {
                memset(text + len, '[', high);
                memset(text + len + high, ']', high);
                len += 2 * high;
                text[len++] = k < 11 ? ',' : ']';
            }
            memset(text + len, ']', low);
            len += low;
            assert_int_equal(verdict(ew__str(text, len), 0, NULL), EW_OK);
            text[len / 2] = '}';
            assert_int_equal(verdict(ew__str(text, len), 0, NULL), EW_ESYNTAX);
        }
    }
}

/* Long tokens over many blocks: strings, numbers, white space, names. */
static void test_json_scan__long_tokens(void **state) {
    (void)state;
    char text[1024];
    for (size_t n = 1; n < 300; n++) {
        snprintf(text, sizeof text, "{\"a\":\"%0*d\",\"b\":1}", (int)n, 0);
        assert_int_equal(verdict(ew_str_from(text), n % 64, NULL), EW_OK);
        snprintf(text, sizeof text, "[1%0*d,1.%0*d,1e%0*d]", (int)n, 0, (int)n, 0, (int)n, 0);
        assert_int_equal(verdict(ew_str_from(text), n % 64, NULL), EW_OK);
        snprintf(text, sizeof text, "[1%0*dx]", (int)n, 0);
        assert_int_equal(verdict(ew_str_from(text), n % 64, NULL), EW_ESYNTAX);
        snprintf(text, sizeof text, "[0%0*d]", (int)n, 0);
        assert_int_equal(verdict(ew_str_from(text), n % 64, NULL), EW_ESYNTAX);
        snprintf(text, sizeof text, "{\"%0*d\"%*s:%*s1%*s,%*s\"b\":2}", (int)n, 0, (int)n, "", (int)n / 2, "",
                 (int)n / 3, "", 3, "");
        assert_int_equal(verdict(ew_str_from(text), n % 64, NULL), EW_OK);
        snprintf(text, sizeof text, "[1%*s2]", (int)n, "");
        assert_int_equal(verdict(ew_str_from(text), n % 64, NULL), EW_ESYNTAX);
        snprintf(text, sizeof text, "[1,%*s]", (int)n, "");
        assert_int_equal(verdict(ew_str_from(text), n % 64, NULL), EW_ESYNTAX);
        snprintf(text, sizeof text, "[%*s]", (int)n, "");
        assert_int_equal(verdict(ew_str_from(text), n % 64, NULL), EW_OK);
    }
}

/* Runs of backslashes of every length at every place. */
static void test_json_scan__backslashes(void **state) {
    (void)state;
    char text[256];
    for (size_t n = 0; n < 140; n++) {
        memset(text, '\\', sizeof text);
        text[0] = '"';
        text[1 + n] = '"';
        for (size_t shift = 0; shift < 64; shift += n < 70 ? 1 : 5) {
            assert_int_equal(verdict(ew__str(text, n + 2), shift, NULL), n % 2 == 0 ? EW_OK : EW_ESYNTAX);
        }
        text[2 + n] = '"';
        assert_int_equal(verdict(ew__str(text, n + 3), 0, NULL), n % 2 == 1 ? EW_OK : EW_ESYNTAX);
        text[1 + n] = 'x';
        assert_int_equal(verdict(ew__str(text, n + 3), 0, NULL), n % 2 == 0 ? EW_OK : EW_ESYNTAX);
    }
}

static uint64_t rng = 0x9e3779b97f4a7c15u;
static uint64_t draw(uint64_t n) {
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng % n;
}

static size_t grow(char *out, size_t room, int depth) {
    static const char *const scalars[] = {"0",
                                          "-1.5e+3",
                                          "true",
                                          "false",
                                          "null",
                                          "\"\"",
                                          "\"a\\u00e9\\n\"",
                                          "\"\xc3\xa9\xf0\x9f\x98\x80\"",
                                          "12345678901234567890",
                                          "\"long enough to cross a border of blocks now and then, isn't it?\"",
                                          "[]",
                                          "{}"};
    static const char *const gaps[] = {"", "", "", " ", "\n  ", "\t", "      "};
    size_t len = 0, kind = draw(depth > 6 ? 1 : 3);
    if (kind == 0 || room < 400) {
        return (size_t)snprintf(out, room, "%s", scalars[draw(12)]);
    }
    len += (size_t)snprintf(out, room, "%s", kind == 1 ? "[" : "{");
    for (size_t i = draw(6), k = 0; k <= i && len + 500 < room; k++) {
        len += (size_t)snprintf(out + len, room - len, "%s%s", k > 0 ? "," : "", gaps[draw(7)]);
        if (kind == 2) {
            len +=
                (size_t)snprintf(out + len, room - len, "\"k%d\"%s:%s", (int)draw(1000), gaps[draw(7)], gaps[draw(7)]);
        }
        len += grow(out + len, room - len - 100, depth + 1);
    }
    return len + (size_t)snprintf(out + len, room - len, "%s%s", gaps[draw(7)], kind == 1 ? "]" : "}");
}

/* Random texts, then the same with a few bytes changed: all three must always say the same. */
static void test_json_scan__mutations(void **state) {
    (void)state;
    static const char interesting[] =
        "{}[]:,\"\\ \n\t0123456789.-+eEtrufalsn/x\x01\x7f\x80\xbf\xc3\xe2\xed\xf0\xf4\xff";
    static char text[4096];
    size_t accepted = 0, refused = 0;
    for (int round = 0; round < 4000; round++) {
        size_t len = grow(text, sizeof text, 0);
        assert_int_equal(verdict(ew__str(text, len), draw(64), NULL), EW_OK);
        for (int k = 0; k < 6 && len > 1; k++) {
            size_t at = draw(len);
            switch (draw(3)) {
            case 0:
                text[at] = interesting[draw(sizeof interesting - 1)];
                break;
            case 1:
                memmove(text + at, text + at + 1, --len - at);
                break;
            default:
                if (len + 1 < sizeof text) {
                    memmove(text + at + 1, text + at, len++ - at);
                    text[at] = interesting[draw(sizeof interesting - 1)];
                }
            }
            if (verdict(ew__str(text, len), draw(64), NULL) == EW_OK) {
                accepted++;
            } else {
                refused++;
            }
        }
    }
    assert_true(accepted > 500 && refused > 5000);
}

/* Short texts over a small alphabet, all of them. */
static void test_json_scan__all_short_texts(void **state) {
    (void)state;
    static const char alphabet[] = "{}[]:,\"1-.e ";
    char text[5];
    size_t accepted = 0;
    for (size_t code = 0; code < 12 * 12 * 12 * 12 * 12; code++) {
        size_t rest = code;
        for (size_t i = 0; i < 5; i++, rest /= 12) {
            text[i] = alphabet[rest % 12];
        }
        accepted += verdict(ew__str(text, 5), code % 67, NULL) == EW_OK;
    }
    assert_true(accepted > 200);
}

static void test_json_scan__too_long(void **state) {
    (void)state;
    static ew__json_doc doc;
    size_t position = 7;
    ew_str text = {"[]", (size_t)UINT32_MAX}; /* refused by its length, before it is read */
    assert_int_equal(ew__json_parse(&doc, text), EW_ELIMIT);
    assert_int_equal(ew__json_validate(text, &position), EW_ELIMIT);
    assert_int_equal(position, 0);
    assert_int_equal(ew_json_check(text, NULL), EW_ELIMIT);
}

/* What is said to be a value between two ends makes a valid text, with that value in it; and the usual ones are told. */
static void check_between(ew_str value, bool expected) {
    static ew__json_doc doc;
    char text[600] = "{\"a\":{\"b\":";
    ew_str got = ew__str(NULL, 0);
    memcpy(text + 10, value.ptr, value.len);
    memcpy(text + 10 + value.len, "}}", 2);
    ew_str whole = ew__str(text, value.len + 12);
    if (ew__json_value_between(whole, 10, 2, &got) != expected) {
        fail_msg("%.*s", (int)whole.len, whole.ptr);
    }
    if (!expected) {
        assert_null(got.ptr); /* left as it was */
    } else {
        assert_true(got.ptr == text + 10 && got.len == value.len);
        assert_int_equal(ew__json_parse(&doc, whole), EW_OK);
        ew_str inner = ew__json_find(&doc, EW_STR("a"), NULL);
        assert_true(ew__str_is(ew__json_find_in(inner, EW_STR("b"), NULL), value));
    }
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* The short way to a verdict on a small value is never another than the scanner's: every byte changed, left out, doubled. */
static void test_json_scan__small_values(void **state) {
    (void)state;
    static ew__json_doc doc;
    static const char *const values[] = {"{\"index\":10,\"text\":\"chunk number 10\"}",
                                         "[true,false,null,0,-0,-10.50,{},[]]",
                                         "\"a\"",
                                         "-1",
                                         "0.5",
                                         "[\"\\\\\",\"\\n\\t\\/\",{\"\\\"\":\"\\u0041\"}]",
                                         "{\"a\": {\"b\": [1, {\"c\": []}]}, \"d\": \"\"}"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        size_t n = strlen(values[i]);
        check_between(ew__str(values[i], n), true);
        for (size_t at = 0; at < n; at++) {
            for (unsigned byte = 0; byte < 258; byte++) { /* two more: left out, doubled */
                char text[100];
                size_t len = byte == 256 ? n - 1 : byte == 257 ? n + 1 : n, behind = byte == 256 ? at + 1 : at;
                memcpy(text, values[i], at);
                memcpy(text + (byte == 257 ? at + 1 : at), values[i] + behind, n - behind);
                if (byte < 256) {
                    text[at] = (char)byte;
                } else if (byte == 257) {
                    text[at] = values[i][at];
                }
                bool good = ew__json_parse(&doc, ew__str(text, len)) == EW_OK; /* by the scanner, always */
                assert_int_equal(ew__json_validate(ew__str(text, len), NULL) == EW_OK, good);
                check_between(ew__str(text, len), good && !is_space(text[0]) && !is_space(text[len - 1]));
            }
        }
    }
    for (size_t depth = 28; depth < 40; depth++) { /* beyond its own depth others are asked */
        char text[100];
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        check_between(ew__str(text, 2 * depth), true);
        check_between(ew__str(text, 2 * depth - 1), false);
        text[depth] = '}';
        check_between(ew__str(text, 2 * depth), false);
    }
}

/* Where a value ends is told also where more stands behind it, and never beyond the bytes that are there. */
static void test_json_scan__simple_end(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int len; /* of the value; -1: it is not told */
    } rows[] = {{"1}", 1},    {"{\"a\":1}}\n", 7}, {"\"x\"\"y\"", 3},  {"[1, 2],3", 6},      {"null]", 4},
                {"{}{}", 2},  {"-0.5}", 4},        {"\"\\n\"}", 4},    {"01}", 1},           {"", -1},
                {"}", -1},    {" 1", -1},          {"{\"a\" :1}", -1}, {"[1 ]", -1},         {"\"\x7f\"", -1},
                {"tru}", -1}, {"\"\\u0041\"", -1}, {"[[", -1},         {"\"\xc3\xa4\"", -1}, {"[1\n]", -1},
                {"-}", -1},   {"1.}", -1},         {"{\"a\",", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = strlen(rows[i].text);
        char *exact = malloc(n + 1); /* a byte too far is seen by the sanitizer */
        assert_non_null(exact);
        memcpy(exact, rows[i].text, n);
        const char *end = ew__json_simple_end(exact, exact + n);
        assert_int_equal(end ? end - exact : -1, rows[i].len);
        free(exact);
    }
    char text[EW__JSON_SIMPLE_MAX + 3];
    for (size_t n = EW__JSON_SIMPLE_MAX - 2; n <= EW__JSON_SIMPLE_MAX + 2; n++) {
        memset(text, 'x', n);
        text[0] = text[n - 1] = '"';
        const char *end = ew__json_simple_end(text, text + n);
        assert_ptr_equal(end, n <= EW__JSON_SIMPLE_MAX ? text + n : NULL);
    }
}

static void test_json_scan__value_between(void **state) {
    (void)state;
    static const char *const values[] = {"1", "\"x\"", "null", "[1, 2]", "{\"b\":{}}", "\"},\\\"\""};
    static const char *const others[] = {"",   " 1",   "1 ",         "\n1",      "1,\"b\":2", "1},\"a\":{\"b\":2",
                                         "01", "[1}]", "{\"b\":1}}", "\"\xff\"", "1 2",       "\"",
                                         "}}", "tru"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        check_between(ew_str_from(values[i]), true);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        check_between(ew_str_from(others[i]), false);
    }
    for (size_t depth = 100; depth < 140; depth++) { /* as many as a payload may have */
        char text[300];
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        check_between(ew__str(text, 2 * depth), depth <= EW_PAYLOAD_DEPTH);
    }
    ew_str got;
    assert_false(ew__json_value_between(EW_STR("ab"), 1, 1, &got));
    assert_false(ew__json_value_between(EW_STR("a"), 10, 2, &got));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_scan__accepts),         cmocka_unit_test(test_json_scan__refuses),
        cmocka_unit_test(test_json_scan__refuses_inside),  cmocka_unit_test(test_json_scan__a_nul_is_no_text),
        cmocka_unit_test(test_json_scan__depth),           cmocka_unit_test(test_json_scan__many_brackets),
        cmocka_unit_test(test_json_scan__hills),           cmocka_unit_test(test_json_scan__long_tokens),
        cmocka_unit_test(test_json_scan__backslashes),     cmocka_unit_test(test_json_scan__mutations),
        cmocka_unit_test(test_json_scan__all_short_texts), cmocka_unit_test(test_json_scan__too_long),
        cmocka_unit_test(test_json_scan__value_between),   cmocka_unit_test(test_json_scan__small_values),
        cmocka_unit_test(test_json_scan__simple_end),
    };
    return cmocka_run_group_tests_name("json_scan", tests, NULL, NULL);
}
