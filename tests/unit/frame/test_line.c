/*
 * tests/unit/frame/test_line.c: messages of JSON-RPC on a stream, in both framings and at every cut.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "frame/line.h"
#include "json/json.h"
#include "support/corpus.h"

typedef struct setup {
    ew__framing framing;
    size_t max;
    bool strict;
} setup;

static const setup lines = {EW__FRAMING_LINES, 1 << 20, false};
static const setup headers = {EW__FRAMING_HEADERS, 1 << 20, false};
static const setup any = {EW__FRAMING_AUTO, 1 << 20, false};
static const setup whole_lines = {EW__FRAMING_WHOLE_LINES, 1 << 20, false};
static const setup strict = {EW__FRAMING_AUTO, 1 << 20, true};

/* How a stream is cut: in pieces of `step`; or at `cut`; or, with a seed, at random. All zero: not at all. */
typedef struct cuts {
    size_t step, cut;
    uint64_t seed;
} cuts;

static size_t next_piece(cuts *c, size_t at) {
    if (c->seed != 0) {
        c->seed = c->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return 1 + (c->seed >> 33) % (c->seed >> 62 == 0 ? 9000 : 12);
    }
    return c->step > 0 ? c->step : at < c->cut ? c->cut - at : SIZE_MAX;
}

static bool is_json(ew_str text) {
    static ew__json_doc doc;
    return ew__json_parse(&doc, text) == EW_OK;
}

/*
 * Does what a user of the reader does with the bytes data[*at .. end) and writes what came out: V<value>| for JSON,
 * J<value>| for a value that is none, and BAD|, LONG|, FOREIGN|, HEADER|. Returns the event at which it stopped.
 */
static ew__line_event read_all(ew__line *line, const char *data, size_t *at, size_t end, FILE *out) {
    for (size_t turns = 4 * (end - *at) + 16;; turns--) {
        ew_str value;
        size_t used;
        size_t n = end - *at;
        char *copy = n <= 4096 ? malloc(n > 0 ? n : 1) : NULL; /* so that AddressSanitizer sees a read past its end */
        if (copy != NULL) {
            memcpy(copy, data + *at, n);
        }
        ew__line_event event = ew__line_read(line, ew__str(copy != NULL ? copy : data + *at, n), &value, &used);
        bool valid = value.len > 0 && is_json(value);
        bool closer = event == EW__LINE_LIKELY && !valid;
        assert_true(used <= n);
        assert_true(turns > 0);
        if (event == EW__LINE_BAD || event == EW__LINE_TOO_LONG) {
            (void)fputs(event == EW__LINE_BAD ? "BAD|" : "LONG|", out);
        } else if (event == EW__LINE_FOREIGN || event == EW__LINE_BAD_HEADER) {
            (void)fputs(event == EW__LINE_FOREIGN ? "FOREIGN|" : "HEADER|", out);
        } else if (closer) {
            ew__line_look_closer(line);
        } else if (event != EW__LINE_MORE) {
            (void)fputc(valid ? 'V' : 'J', out);
            (void)fwrite(value.ptr, 1, value.len, out);
            (void)fputc('|', out);
            if (!valid) {
                ew__line_skip(line);
            }
        }
        free(copy);
        *at += closer ? 0 : used;
        if (event == EW__LINE_MORE || event == EW__LINE_FOREIGN || event == EW__LINE_BAD_HEADER) {
            return event;
        }
    }
}

/* What comes out of a stream; "..." at its end when a message has begun. For free(). */
static char *trace(setup s, const char *data, size_t n, cuts c) {
    char *text = NULL;
    size_t text_len, at = 0;
    FILE *out = open_memstream(&text, &text_len);
    assert_non_null(out);
    ew__line line;
    ew__line_init(&line, s.framing, s.max, s.strict);
    ew__line_event event = EW__LINE_MORE;
    for (size_t end = 0; end < n && event == EW__LINE_MORE;) {
        size_t piece = next_piece(&c, end);
        end += piece < n - end ? piece : n - end;
        event = read_all(&line, data, &at, end, out);
        ew_str value;
        size_t used = 1;
        assert_int_equal(ew__line_read(&line, ew__str(data + at, end - at), &value, &used), event); /* nothing new */
        assert_int_equal(used, 0);
    }
    if (ew__line_is_inside(&line)) {
        (void)fputs("...", out);
    }
    (void)fclose(out);
    return text;
}

static void expect_cut(setup s, const char *data, size_t n, cuts c, const char *expected) {
    char *text = trace(s, data, n, c);
    if (strcmp(text, expected) != 0) {
        print_error("%.*s\nin pieces of %zu, cut at %zu, seed %llu:\n%s\ninstead of\n%s\n", (int)n, data, c.step, c.cut,
                    (unsigned long long)c.seed, text, expected);
        fail();
    }
    free(text);
}

/* Whole, byte by byte, in two pieces (short ones everywhere) and at random. */
static void expect_bytes(setup s, const char *data, size_t n, const char *expected) {
    expect_cut(s, data, n, (cuts){0}, expected);
    expect_cut(s, data, n, (cuts){.step = 1}, expected);
    for (size_t cut = 1; cut < n && n < 500; cut++) {
        expect_cut(s, data, n, (cuts){.cut = cut}, expected);
    }
    for (uint64_t seed = 1; seed < 20; seed++) {
        expect_cut(s, data, n, (cuts){.seed = seed * 77}, expected);
    }
}

static void expect(setup s, const char *text, const char *expected) { expect_bytes(s, text, strlen(text), expected); }

static setup with_max(setup s, size_t max) { return (setup){s.framing, max, s.strict}; }

/* ---- lines ---- */

static void test_frame_line__values(void **state) {
    (void)state;
    expect(lines, "", "");
    expect(lines, " \t\r\n\n\r\n ", "");
    expect(lines, "{\"a\":1}\n{\"b\":[2,{}]}\n[]\n", "V{\"a\":1}|V{\"b\":[2,{}]}|V[]|");
    expect(lines, "\r\n  {\"a\" : 1 } \t\r\n\n\t[1]\r\n", "V{\"a\" : 1 }|V[1]|");
    expect(lines, "{\"a\":1}", "V{\"a\":1}|"); /* ends where its JSON ends */
    expect(lines, "{\"a\":1}{\"b\":2}[3]\n{}", "V{\"a\":1}|V{\"b\":2}|V[3]|V{}|");
    expect(lines, "{} {}\n{} []\n[] []\n", "V{}|V{}|V{}|V[]|V[]|V[]|");
    expect(lines, "{\n \"a\":\r\n1,\n\"b\":[\n]\n}\n{}\n", "V{\n \"a\":\r\n1,\n\"b\":[\n]\n}|V{}|");
    expect(lines, "[[1],[2]\n,[3]]\n[4]\n", "V[[1],[2]\n,[3]]|V[4]|"); /* the first line looks whole */
    expect(lines, "{\"}\":\"{[\\\"\\\\\",\"]\":[\"}\"]}\n", "V{\"}\":\"{[\\\"\\\\\",\"]\":[\"}\"]}|");
    expect(lines, "[\"\xe2\x82\xac \x7f\", \"0123456789abcdef\\u0041\\n\"]",
           "V[\"\xe2\x82\xac \x7f\", \"0123456789abcdef\\u0041\\n\"]|");
    expect(lines, "[1,-2.5e+3,true,false,null,\"\"]", "V[1,-2.5e+3,true,false,null,\"\"]|");
}

static void test_frame_line__scalars(void **state) {
    (void)state;
    expect(lines, "null\n{}\n", "Vnull|V{}|");
    expect(lines, "1 2\n\"x\"\"y\"true{}-1.5e3[]", "V1|V2|V\"x\"|V\"y\"|Vtrue|V{}|V-1.5e3|V[]|");
    expect(lines, "null", "..."); /* could go on */
    expect(lines, "nullx\n1\n", "Jnullx|V1|");
    expect(lines, "tru {}\n1\n", "Jtru|V1|");
    expect(lines, "1.2.3\n\n4\n", "J1.2.3|V4|");
}

static void test_frame_line__unfinished(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{",   "[",   "{\"",   "{\"a",      "{\"a\"", "{\"a\":",    "{\"a\":1",  "{\"a\":1,", "[1",
        "[1,", "[[]", "[\"\\", "[\"\\\"]}", "\"x",    "{\"a\":1\n", "[\n\n[],1", "{\"a\":[]", "-"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        expect(lines, texts[i], "...");
    }
}

static void test_frame_line__bad(void **state) {
    (void)state;
    /* One each, although brackets and strings are open; the next line is read. */
    static const char texts[] =
        "{\"a\": \"b, \"c\": \"d\", \"e]\n{\"a\":\"b}\n[\"a\\\n[\"\\\\\", \"]\n[\"tab\there\"]\n"
        "}\n]\n,\n:\n{]\n[}\n[1}\n{\"a\":1]\n{,}\n[,]\n[1,]\n[[[}]]]\n{\"a\":{]}\n{\"a\":}\n"
        "{\"a\":1,}\n{\"a\"}\n{\"a\",1}\n{\"a\" 1}\n{1:2}\n{\"a\"::1}\n{\"a\":1 \"b\":2}\n{a:1}\n"
        "[1 2]\n[\"a\" \"b\"]\n[{} {}]\n[1:2]\n['a']\n[NaN]\n[1,/**/2]\n[\x80]\n\xef\xbb\xbf{}\n"
        "#\nhello world\n<html>\n[\"\x1f\"]\n[\"0123456789abc\x10 0123456789\"]\n";
    for (const char *at = texts, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        char text[128];
        (void)snprintf(text, sizeof(text), "%.*s\n{\"next\":1}\n", (int)(end - at), at);
        expect(lines, text, "BAD|V{\"next\":1}|");
        (void)snprintf(text, sizeof(text), "[0] %.*s\r\n\n{\"next\":1}", (int)(end - at), at);
        expect(lines, text, "V[0]|BAD|V{\"next\":1}|");
    }
    expect_bytes(lines, "\0\n1\n", 4, "BAD|V1|");
    expect_bytes(lines, "[\"\0\"]\n1\n", 8, "BAD|V1|");
    expect(lines, "}", "BAD|");
    expect(lines, "} {} {}", "BAD|");
    expect(lines, "{}}{}\n{}\n", "V{}|BAD|V{}|");
    expect(lines, "{\"a\":1\n}]\n2\n", "V{\"a\":1\n}|BAD|V2|");
    expect(lines, "Content-Length: 2\r\n\r\n{}\n", "BAD|V{}|");
    expect(lines, "content-type", "...");
    expect(lines, "Cat\n{}\n", "BAD|V{}|");
}

/* Values whose structure is right and whose text is not are told by whoever parses them. */
static void test_frame_line__no_json(void **state) {
    (void)state;
    expect(lines, "{\"a\":tru}\n1\n", "J{\"a\":tru}|V1|");
    expect(lines, "{\"a\":01} {}\n[\"\\x\"]\n1\n", "J{\"a\":01}|J[\"\\x\"]|V1|");
    expect(lines, "[1]{\"a\":-} x\n1\n", "V[1]|J{\"a\":-}|V1|");
    expect(lines, "[\"\xff\"]\r\n1\n", "J[\"\xff\"]|V1|");
    expect(lines, "[t", "...");
    expect(lines, "[ttt] [2]", "J[ttt]|");
}

static void test_frame_line__depth(void **state) {
    (void)state;
    char text[3 * EW_JSON_DEPTH + 16], expected[3 * EW_JSON_DEPTH + 32];
    for (size_t depth = EW_JSON_DEPTH - 1; depth <= EW_JSON_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        (void)snprintf(text + 2 * depth, 8, "\n[1]\n");
        char kind = depth <= EW_JSON_DEPTH ? 'V' : 'J'; /* delimited all the same, for the parser that refuses it */
        (void)snprintf(expected, sizeof(expected), "%c%.*s|V[1]|", kind, (int)(2 * depth), text);
        expect(lines, text, expected);
    }
    /* Objects and arrays in turn: each closer must find its partner. */
    size_t n = 0;
    for (size_t i = 0; i < 64; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, i % 3 == 0 ? "[" : "{\"\":");
    }
    n += (size_t)snprintf(text + n, sizeof(text) - n, "0");
    for (size_t i = 64; i-- > 0;) {
        text[n++] = i % 3 == 0 ? ']' : '}';
    }
    text[n] = '\0';
    (void)snprintf(expected, sizeof(expected), "V%s|", text);
    expect(lines, text, expected);
    text[n - 2] = ']';
    expect(lines, text, "BAD|");
}

static void test_frame_line__too_long(void **state) {
    (void)state;
    setup ten = with_max(lines, 10);
    expect(ten, "{\"a\":1234}\n{\"a\":12345}\n{}\n", "V{\"a\":1234}|LONG|V{}|");
    expect(ten, "   \n   [1,2,3,45]   \n 1\n", "V[1,2,3,45]|V1|");
    expect(ten, "{\"a\":1}{\"b\":2}{\"c\":3}\n", "V{\"a\":1}|V{\"b\":2}|V{\"c\":3}|"); /* the line may be longer */
    expect(ten, "1234567890\n12345678901\n1\n", "V1234567890|LONG|V1|");
    expect(ten, "1234567890", "...");
    expect(ten, "12345678901", "LONG|");
    expect(ten, "\"12345678\"\"123456789\"x\n2\n", "V\"12345678\"|LONG|V2|");
    expect(ten, "[         \n1]\n2\n", "LONG|V1|BAD|V2|"); /* the newline is the first byte too many */
    expect(ten, "[12345678}}\n2\n", "BAD|V2|");
    expect(ten, "[123456789}\n2\n", "LONG|V2|");
    expect(ten, "[123456789}", "LONG|");
    expect(with_max(lines, 0), "1\n[]\n\n", "LONG|LONG|");
}

/* ---- headers ---- */

#define BODY "{\"a\":1}"

static void test_frame_line__headers(void **state) {
    (void)state;
    expect(headers, "Content-Length: 7\r\n\r\n" BODY, "V" BODY "|");
    expect(headers, "Content-Length: 7\r\n\r\n" BODY "Content-Length:7\n\n" BODY, "V" BODY "|V" BODY "|");
    expect(headers, "content-LENGTH: \t 007 \t\r\nX-Other: a:b\xff\r\nA:\r\n\r\n" BODY, "V" BODY "|");
    expect(headers, " \r\n\nContent-Length: 7\n\r\n" BODY "\r\n\r\n  Content-Length: 1\r\n\n1 ", "V" BODY "|V1|");
    expect(headers, "Content-Length: 7\r\nContent-Length: 7\r\n\r\n" BODY, "V" BODY "|");
    expect(headers, "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 1\r\n\r\n1", "V1|");
    expect(headers, "Content-Length: 1\r\nContent-type: a/b;x=y; Charset=\"UTF8\" ;z\r\n\r\n1", "V1|");
    expect(headers, "Content-Length: 1\r\nContent-type: a/b;;charset\r\n\r\n1", "V1|");
    expect(headers, "Content-Length: 2\r\n\r\n}{Content-Length: 3\r\n\r\n\n1\nContent-Length: 1\n\n2",
           "J}{|V\n1\n|V2|");
    expect(headers, "", "");
    expect(headers, "\r\n\r\n", "");
    expect(headers, "C", "...");
    expect(headers, "Content-Length: 7\r\n", "...");
    expect(headers, "Content-Length: 7\r\n\r\n{\"a\":1", "...");
}

static void test_frame_line__bad_headers(void **state) {
    (void)state;
    static const char *const texts[] = {"Content-Length: 7\r\nContent-Length: 8\r\n\r\n" BODY,
                                        "Content-Length: 0\r\n\r\n",
                                        "Content-Length: -1\r\n\r\n",
                                        "Content-Length: +7\r\n\r\n",
                                        "Content-Length: 0x7\r\n\r\n",
                                        "Content-Length: 7 7\r\n\r\n",
                                        "Content-Length: 7,7\r\n\r\n",
                                        "Content-Length:\r\n\r\n",
                                        "Content-Length: 18446744073709551616\r\n\r\n",
                                        "Content-Length : 7\r\n\r\n",
                                        "Content-Length\r\n\r\n",
                                        "X: y\r\n\r\n" BODY,
                                        ": y\r\n",
                                        "X: y\r\n folded\r\n",
                                        "X: y\r\n{",
                                        "Content-Length: 7\r\r\n",
                                        "Content-Type: a/b; charset=latin1\r\n",
                                        "Content-Type: a/b; charset=utf-8; charset=utf-16\r\n",
                                        "Content-Type: a/b; charset=\"\"\r\n",
                                        "{",
                                        "\n\n" BODY "\n",
                                        "GET / HTTP/1.1\r\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        expect(headers, texts[i], "HEADER|");
    }
    expect(headers, "Content-Length: 7\r\n\r\n" BODY BODY, "V" BODY "|HEADER|");
    expect_bytes(headers, "A\0: b\n", 6, "HEADER|");
}

static void test_frame_line__long_headers(void **state) {
    (void)state;
    static const char start[] = "Content-Length: 1\r\nX: ";
    char *text = malloc(EW__LINE_HEAD_MAX + 64);
    assert_non_null(text);
    for (size_t over = 0; over < 2; over++) {
        memset(text, 'x', EW__LINE_HEAD_MAX + 64);
        memcpy(text, start, sizeof(start) - 1);
        memcpy(text + EW__LINE_HEAD_MAX - 4 + over, "\r\n\r\n1\n", 6);
        for (uint64_t seed = 0; seed < 10; seed++) {
            expect_cut(headers, text, EW__LINE_HEAD_MAX + 1 + over, (cuts){.seed = seed}, over ? "HEADER|" : "V1|");
        }
        expect_cut(headers, text, EW__LINE_HEAD_MAX + 1 + over, (cuts){.step = 1}, over ? "HEADER|" : "V1|");
    }
    memset(text, 'x', EW__LINE_HEAD_MAX + 1);
    expect_cut(headers, text, EW__LINE_HEAD_MAX, (cuts){.step = 1}, "...");
    expect_cut(headers, text, EW__LINE_HEAD_MAX, (cuts){0}, "...");
    expect_cut(headers, text, EW__LINE_HEAD_MAX + 1, (cuts){.step = 1}, "HEADER|");
    expect_cut(headers, text, EW__LINE_HEAD_MAX + 1, (cuts){0}, "HEADER|");
    free(text);
}

static void test_frame_line__long_bodies(void **state) {
    (void)state;
    setup ten = with_max(headers, 10);
    expect(ten, "Content-Length: 10\n\n[12345678]Content-Length: 11\n\n[123456789]Content-Length: 1\n\n2",
           "V[12345678]|LONG|V2|");
    expect(ten, "Content-Length: 11\n\n", "LONG|...");
    expect(ten, "Content-Length: 11\n\n[\n23456789", "LONG|...");
    expect(ten, "Content-Length: 11\n\n[\n234567890", "LONG|");
    expect(ten, "Content-Length: 18446744073709551615\n\n[\n\n1]\n", "LONG|...");
}

/* ---- which of them ---- */

static void test_frame_line__auto(void **state) {
    (void)state;
    const setup both[] = {any, strict};
    for (size_t i = 0; i < 2; i++) {
        expect(both[i], "\r\n {\"a\":1}\nContent-Length: 1\n\n1\n", "V{\"a\":1}|BAD|V1|");
        expect(both[i], "[1]hello\n2\n", "V[1]|BAD|V2|");
        expect(both[i], "\r\n Content-Length: 1\r\n\r\n1Content-Length: 1\r\n\r\n2", "V1|V2|");
        expect(both[i], "cONTENT-tYPE: x\ncontent-length: 1\n\n1", "V1|");
        expect(both[i], "Content-Length: 0\n\n1", "HEADER|");
        expect(both[i], "Content-Length", "...");
        expect(both[i], "c", "...");
        expect(both[i], "  \n", "");
        expect(both[i], "{hello\n{}\n", "BAD|V{}|");
    }
}

static void test_frame_line__foreign(void **state) {
    (void)state;
    static const char *const texts[] = {"GET / HTTP/1.1\r\n\r\n",
                                        "\r\n\r\n1\n{}\n",
                                        "hello\n",
                                        "\"x\"\n",
                                        "null\n",
                                        "CONNECT x:1 HTTP/1.1\r\n\r\n",
                                        "Content-Encoding: x\n",
                                        "content-length 1\n",
                                        "\xef\xbb\xbf{}\n",
                                        "}",
                                        "Cat",
                                        "Content_"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        expect(strict, texts[i], "FOREIGN|");
    }
    expect((setup){EW__FRAMING_LINES, 100, true}, " hello\n", "FOREIGN|");
    expect((setup){EW__FRAMING_LINES, 100, true}, "{}\nhello\n{}\n", "V{}|BAD|V{}|");
}

/* Text before the first message does not tell the framing. */
static void test_frame_line__banner(void **state) {
    (void)state;
    expect(any, "hello { world\n\nContent-Length: 1\r\n\r\n1", "BAD|V1|");
    expect(any, "Copyright\nContent-Length: 1\r\n\r\n1", "BAD|V1|");
    expect(any, "null\n\"x\" tru\nContent-Length: 1\r\n\r\n1", "Vnull|V\"x\"|Jtru|V1|");
    expect(any, "1 Content-Length: 1\n\n2\n", "V1|BAD|V2|"); /* not at the start of a line */
    expect(any, "hello\n{}\nContent-Length: 1\n", "BAD|V{}|BAD|");
    expect(with_max(any, 3), "1234\nContent-Length: 1\r\n\r\n1", "LONG|V1|");
}

/* ---- the calls themselves ---- */

static void test_frame_line__likely(void **state) {
    (void)state;
    ew__line line;
    ew_str value;
    size_t used;
    ew__line_init(&line, EW__FRAMING_AUTO, 100, true);
    ew_str bytes = EW_STR("\n {\"a\":1} \r\n[2]\n[3]");
    assert_int_equal(ew__line_read(&line, bytes, &value, &used), EW__LINE_LIKELY);
    assert_true(ew__str_is(value, EW_STR("{\"a\":1}")));
    assert_int_equal(used, 12);
    assert_int_equal(line.framing, EW__FRAMING_LINES);
    bytes = ew__str(bytes.ptr + used, bytes.len - used);
    assert_int_equal(ew__line_read(&line, bytes, &value, &used), EW__LINE_LIKELY);
    assert_int_equal(used, 4);
    bytes = ew__str(bytes.ptr + used, bytes.len - used);
    assert_int_equal(ew__line_read(&line, bytes, &value, &used), EW__LINE_VALUE); /* no newline yet */
    assert_int_equal(used, 3);
    /* A second look at the same bytes, blank lines before them included, is exact. */
    bytes = EW_STR("\n\n[4] [5]\n[6]\n");
    assert_int_equal(ew__line_read(&line, bytes, &value, &used), EW__LINE_LIKELY);
    assert_true(ew__str_is(value, EW_STR("[4] [5]")));
    ew__line_look_closer(&line);
    assert_int_equal(ew__line_read(&line, bytes, &value, &used), EW__LINE_VALUE);
    assert_true(ew__str_is(value, EW_STR("[4]")));
    assert_int_equal(used, 5);
    bytes = ew__str(bytes.ptr + used, bytes.len - used);
    assert_int_equal(ew__line_read(&line, bytes, &value, &used), EW__LINE_VALUE); /* the line is not searched again */
    assert_true(ew__str_is(value, EW_STR("[5]")));
    bytes = ew__str(bytes.ptr + used, bytes.len - used);
    assert_int_equal(ew__line_read(&line, bytes, &value, &used), EW__LINE_LIKELY);
    assert_true(ew__str_is(value, EW_STR("[6]")));
}

/* Nothing that is skipped has to be kept. */
static void test_frame_line__drops(void **state) {
    (void)state;
    ew__line line;
    ew_str value;
    size_t used;
    ew__line_init(&line, EW__FRAMING_LINES, 100, false);
    assert_int_equal(ew__line_read(&line, EW_STR("{\"a\":#"), &value, &used), EW__LINE_BAD);
    assert_int_equal(used, 5);
    assert_int_equal(ew__line_read(&line, EW_STR("# 12345"), &value, &used), EW__LINE_MORE);
    assert_int_equal(used, 7);
    assert_int_equal(ew__line_read(&line, EW_STR("12\n \n{\"b"), &value, &used), EW__LINE_MORE);
    assert_int_equal(used, 5);
    assert_true(ew__line_is_inside(&line));
    assert_int_equal(ew__line_read(&line, EW_STR("{\"b\":1"), &value, &used), EW__LINE_MORE);
    assert_int_equal(used, 0);
    assert_int_equal(ew__line_read(&line, ew__str(NULL, 0), &value, &used), EW__LINE_MORE);
    /* The text that shows the other framing is there when it is called bad. */
    ew__line_init(&line, EW__FRAMING_LINES, 100, false);
    assert_int_equal(ew__line_read(&line, EW_STR("\nContent-Length"), &value, &used), EW__LINE_MORE);
    assert_int_equal(used, 1);
    assert_int_equal(ew__line_read(&line, EW_STR("Content-Length:"), &value, &used), EW__LINE_BAD);
    assert_int_equal(used, 0);
    ew__line_init(&line, EW__FRAMING_HEADERS, 100, false);
    assert_int_equal(ew__line_read(&line, EW_STR("Content-Length: 101\n\n12"), &value, &used), EW__LINE_TOO_LONG);
    assert_int_equal(used, 21);
    assert_int_equal(ew__line_read(&line, EW_STR("12345"), &value, &used), EW__LINE_MORE);
    assert_int_equal(used, 5);
}

static void test_frame_line__writes_heads(void **state) {
    (void)state;
    char head[EW__LINE_HEAD_ROOM];
    assert_int_equal(ew__line_head(EW__FRAMING_LINES, 5, head), 0);
    assert_int_equal(ew__line_head(EW__FRAMING_AUTO, 5, head), 0);
    assert_int_equal(ew__line_tail(EW__FRAMING_LINES), 1);
    assert_int_equal(ew__line_tail(EW__FRAMING_HEADERS), 0);
    size_t n = ew__line_head(EW__FRAMING_HEADERS, 7, head);
    assert_true(ew__str_is(ew__str(head, n), EW_STR("Content-Length: 7\r\n\r\n")));
    assert_true(ew__line_head(EW__FRAMING_HEADERS, SIZE_MAX, head) <= sizeof(head));
}

/* ---- other people's texts ---- */

static void check_cuts(setup s, const char *data, size_t n) {
    char *whole = trace(s, data, n, (cuts){0});
    if (n < 20000) {
        expect_cut(s, data, n, (cuts){.step = 1}, whole);
    }
    for (uint64_t seed = 1; seed < 10; seed++) {
        expect_cut(s, data, n, (cuts){.seed = seed}, whole);
    }
    free(whole);
}

static void check_corpus(const char *name, size_t n_min) {
    corpus c;
    if (!corpus_open(&c, EW_SHARED, name)) {
        skip();
    }
    while (corpus_next(&c)) {
        size_t n = 0;
        char *data = corpus_text(&c, "/send");
        if (data != NULL) {
            n = strlen(data);
        } else {
            data = (char *)corpus_hex(&c, "/send_hex", &n);
        }
        check_cuts(lines, data, n);
        check_cuts(any, data, n);
        check_cuts(strict, data, n);
        check_cuts(with_max(any, 60), data, n);
        free(data);
    }
    assert_true(c.n_row >= n_min);
    corpus_close(&c);
}

static void test_frame_line__corpus_streams(void **state) {
    (void)state;
    check_corpus("own-ndjson-stream/ndjson-stream-cases.jsonl", 20);
}

static void test_frame_line__corpus_calls(void **state) {
    (void)state;
    check_corpus("own-jsonrpc/jsonrpc-cases.jsonl", 59);
}

static char *read_file(const char *name, size_t *ret_len) {
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/corpora/json-test-suite/test_parsing/%s", EW_SHARED, name);
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(1 << 20);
    assert_true(file != NULL && bytes != NULL);
    *ret_len = fread(bytes, 1, (1 << 20) - 1, file);
    (void)fclose(file);
    return bytes;
}

/* Whether exactly one value comes out, and nothing else; it must then be the whole text. */
static bool comes_out(const char *data, size_t n, uint64_t seed) {
    ew_str text = ew__str(data, n);
    while (text.len > 0 && strchr(" \r\n\t", text.ptr[0]) != NULL) {
        text = ew__str(text.ptr + 1, text.len - 1);
    }
    while (text.len > 0 && strchr(" \r\n\t", text.ptr[text.len - 1]) != NULL) {
        text.len--;
    }
    char *out = trace(lines, data, n, (cuts){.seed = seed});
    size_t len = strlen(out);
    bool is_one = len == text.len + 2 && out[0] == 'V' && out[len - 1] == '|' && !memcmp(out + 1, text.ptr, text.len);
    free(out);
    return is_one;
}

static void test_frame_line__json_test_suite(void **state) {
    (void)state;
    DIR *dir = opendir(EW_SHARED "/corpora/json-test-suite/test_parsing");
    size_t n_valid = 0, n_invalid = 0;
    if (dir == NULL) {
        printf("SKIP: corpus json-test-suite not present\n");
        skip();
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strstr(entry->d_name, ".json") == NULL) {
            continue;
        }
        size_t n;
        char *data = read_file(entry->d_name, &n);
        data[n++] = '\n'; /* for scalars */
        bool valid = entry->d_name[0] == 'y';
        for (uint64_t seed = 0; seed < 5; seed++) {
            if (entry->d_name[0] != 'i' && comes_out(data, n, seed) != valid) {
                fail_msg("%s, seed %d", entry->d_name, (int)seed);
            }
            bool bracket = n > 1 && (data[0] == '{' || data[0] == '[');
            if (valid && bracket && !comes_out(data, n - 1, seed)) {
                fail_msg("%s without a newline, seed %d", entry->d_name, (int)seed);
            }
        }
        check_cuts(any, data, n);
        n_valid += valid;
        n_invalid += entry->d_name[0] == 'n';
        free(data);
    }
    closedir(dir);
    assert_int_equal(n_valid, 95);
    assert_int_equal(n_invalid, 188);
}

static void test_frame_line__whole_lines(void **state) {
    (void)state;
    expect(whole_lines, "", "");
    expect(whole_lines, "\n \r\n\t\n", "");
    expect(whole_lines, "{\n}\n", "J{|J}|");
    expect(whole_lines, " {\"a\" : 1 } \r\n\nx y\n[1][2]\n", "V{\"a\" : 1 }|Jx y|J[1][2]|");
    expect(whole_lines, "Content-Length: 1\r\n\r\n1\n", "JContent-Length: 1|V1|");
    const setup small = {EW__FRAMING_WHOLE_LINES, 4, false};
    expect(small, "1234\n123 \t \r\n  1234\n", "V1234|V123|V1234|");
    expect(small, "12345\n1\n", "LONG|V1|");
    expect(small, "12 45\n1\n", "LONG|V1|");
    expect(small, "{}", "...");
}

static void test_frame_line__begins(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int expected;
    } rows[] = {{"", 0},
                {" \r\n\t", 0},
                {"{", 1},
                {"\n[", 1},
                {"c", 0},
                {"Content-", 0},
                {"Content-Length", 0},
                {"Content-Length:", 1},
                {"CONTENT-TYPE:x", 1},
                {"content-type", 0},
                {" Content-Type:", 1},
                {"Content-Typo:", -1},
                {"CONNECT a:1 HTTP/1.1", -1},
                {"POST / HTTP/1.1", -1},
                {"Content-Encoding: x", -1},
                {"1", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(ew__line_begins(ew_str_from(rows[i].text)), rows[i].expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_line__values),       cmocka_unit_test(test_frame_line__scalars),
        cmocka_unit_test(test_frame_line__unfinished),   cmocka_unit_test(test_frame_line__bad),
        cmocka_unit_test(test_frame_line__no_json),      cmocka_unit_test(test_frame_line__depth),
        cmocka_unit_test(test_frame_line__too_long),     cmocka_unit_test(test_frame_line__headers),
        cmocka_unit_test(test_frame_line__bad_headers),  cmocka_unit_test(test_frame_line__long_headers),
        cmocka_unit_test(test_frame_line__long_bodies),  cmocka_unit_test(test_frame_line__auto),
        cmocka_unit_test(test_frame_line__foreign),      cmocka_unit_test(test_frame_line__banner),
        cmocka_unit_test(test_frame_line__likely),       cmocka_unit_test(test_frame_line__drops),
        cmocka_unit_test(test_frame_line__begins),       cmocka_unit_test(test_frame_line__whole_lines),
        cmocka_unit_test(test_frame_line__writes_heads), cmocka_unit_test(test_frame_line__corpus_streams),
        cmocka_unit_test(test_frame_line__corpus_calls), cmocka_unit_test(test_frame_line__json_test_suite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
