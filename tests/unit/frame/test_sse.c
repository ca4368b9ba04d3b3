/*
 * tests/unit/frame/test_sse.c: blocks of a streamed answer, in every shape that a known server sends and at every cut.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "frame/sse.h"
#include "support/corpus.h"
#include "support/fail_env.h"

static bool spares_dry; /* a stream that is dry is not asked for more */

/* What came out: "D<payload>|" and "F<payload>|" for each block, "!<err>" when the stream is bad. For free(). */
static char *trace(const ew_env *env, const char *bytes, size_t n, size_t step, size_t cut, size_t max_block) {
    char *text = NULL;
    size_t text_len;
    FILE *out = open_memstream(&text, &text_len);
    assert_non_null(out);
    ew__sse sse;
    ew__sse_init(&sse, env, max_block);
    ew__sse_kind kind = EW__SSE_MORE;
    for (size_t at = 0; at <= n && kind != EW__SSE_BAD;) {
        size_t piece = step > 0 ? step : at == 0 && cut > 0 ? cut : n - at;
        piece = piece < n - at ? piece : n - at;
        char *copy = malloc(piece > 0 ? piece : 1); /* freed as soon as the reader may not look at it */
        assert_non_null(copy);
        memcpy(copy, bytes + at, piece);
        if (at == n) {
            ew__sse_feed_eof(&sse);
        } else {
            ew__sse_feed(&sse, copy, piece);
        }
        while (!(spares_dry && ew__sse_is_dry(&sse)) &&
               ((kind = ew__sse_next(&sse)) == EW__SSE_DATA || kind == EW__SSE_FAULT)) {
            ew_str payload = ew__sse_payload(&sse);
            (void)fprintf(out, "%c%.*s|", kind == EW__SSE_DATA ? 'D' : 'F', (int)payload.len,
                          payload.len > 0 ? payload.ptr : "");
        }
        free(copy);
        at += at == n ? 1 : piece;
    }
    if (kind == EW__SSE_BAD) {
        (void)fprintf(out, "!%s", ew_err_name(sse.err));
        assert_int_equal(ew__sse_next(&sse), EW__SSE_BAD);
    }
    ew__sse_done(&sse);
    (void)fclose(out);
    return text;
}

static void expect_bytes(const char *bytes, size_t n, size_t max_block, const char *expected) {
    for (size_t i = 0; i < 2 * (n + 3); i++) {
        /* Whole, in pieces of 1 to 3, cut in two everywhere; each of them with and without asking in vain. */
        size_t cut = i / 2;
        spares_dry = i % 2 != 0;
        char *text = trace(ew_env_default(), bytes, n, cut >= n ? cut - n + 1 : 0, cut < n ? cut : 0, max_block);
        if (strcmp(text, expected) != 0) {
            print_error("%.*s at %zu:\n%s\ninstead of\n%s\n", (int)n, bytes, cut, text, expected);
            fail();
        }
        free(text);
    }
}

#define BYTES(literal) literal, sizeof(literal) - 1

static void expect(const char *bytes, const char *expected) { expect_bytes(bytes, strlen(bytes), 1 << 20, expected); }

static void test_frame_sse__reads_what_servers_send(void **state) {
    (void)state;
    expect("", "");
    expect("data: {\"message\":1}\n\ndata: {\"result\":2}\n\n", "D{\"message\":1}|D{\"result\":2}|");
    expect("data:{\"message\":1}\n\n", "D{\"message\":1}|");
    expect("data:  a \n\n", "D a |");
    expect("data: 1\r\n\r\ndata: 2\r\n\r\n", "D1|D2|");
    expect("data: 1\r\rdata: 2\r\r", "D1|D2|");
    expect("data: 1\n\r\ndata: 2\r\n\n", "D1|D2|");
    expect("\xef\xbb\xbf"
           "data: 1\n\n",
           "D1|");
    expect("data: 0\n\ndata: 1\rdata: 2\n\ndata: 3\r\n\ndata: 4\n\n\ndata: 5\n\n", "D0|D1\n2|D3|D4|D5|");
    expect("data: 0\n\ndata: 1\ndata: 2\n\ndata: 3\nid: 1\n\ndata: 4\nerror: 5\n\n", "D0|D1\n2|D3|D4|F5|");
    expect("error: {\"error\":1}\n\n", "F{\"error\":1}|");
    expect("error:x\n\n", "Fx|");
    expect("\n\n\r\n\rdata: 1\n\n\n\n\n", "D1|");
}

static void test_frame_sse__reads_other_lines(void **state) {
    (void)state;
    expect(": ping\n\nevent: message\nid: 7\nretry: 10\n:\ndata: 1\nid\n\nevent: x\n\n", "D1|");
    expect("data: {\"a\":\ndata: 1}\n\n", "D{\"a\":\n1}|");
    expect("data: a\n: between\ndata:\ndata: b\n\n", "Da\n\nb|");
    expect("error: a\nerror: b\n\n", "Fa\nb|");
    expect("data:\n\ndata\n\ndata: \n\nerror:\n\n", "F|");
    expect("data:\ndata: x\n\n", "D\nx|");
}

static void test_frame_sse__reads_the_end(void **state) {
    (void)state;
    expect("data: {\"result\":1}\n\nEND", "D{\"result\":1}|");
    expect("data: {\"result\":1}\n\nEND\n", "D{\"result\":1}|");
    expect("error: {\"status\":1}\nEND", "F{\"status\":1}|");
    expect("data: 1\n\nerror: 2", "D1|F2|");
    expect("data: 1\n\nerror: 2\n", "D1|F2|");
    expect("data: 1\nerror: 2", "D1|F2|");
    expect("data: 1\nerror: 2\ndata: 3\n\n", "D1|F2|D3|");
    expect("data:\nerror: 2\n\n", "F2|");
    expect("data: {\"res", "D{\"res|");
    expect("data: 1\n\ndata: 2\n", "D1|D2|");
}

static void test_frame_sse__refuses_other_texts(void **state) {
    (void)state;
    expect("<html>\n", "!EW_EPROTO");
    expect("data: 1\n\n{\"error\":1}\n\ndata: 2\n\n", "D1|!EW_EPROTO");
    expect("Data: 1\n\n", "!EW_EPROTO");
    expect(" data: 1\n\n", "!EW_EPROTO");
    expect("data : 1\n\n", "!EW_EPROTO");
    expect("data: 1\n\xef\xbb\xbf"
           "data: 2\n\n",
           "!EW_EPROTO");
    expect("data: 1\n\nENDE", "D1|!EW_EPROTO");
    expect_bytes(BYTES("data\0: 1\n\n"), 100, "!EW_EPROTO");
    expect_bytes(BYTES("data: \0\n\n"), 100,
                 "D|"); /* a NUL in a payload is for the JSON reader to refuse; the trace ends at it */
}

static void test_frame_sse__limits_a_block(void **state) {
    (void)state;
    expect_bytes(BYTES("data: 123456789\n\n"), 10, "D123456789|");
    expect_bytes(BYTES("data: 1234567890\n\n"), 10, "D1234567890|");
    expect_bytes(BYTES("data: 12345678901\n\n"), 10, "!EW_ELIMIT");
    expect_bytes(BYTES("data: 1234\ndata: 67890\n\n"), 10, "D1234\n67890|");
    expect_bytes(BYTES("data: 12345\ndata: 67890\n\n"), 10, "!EW_ELIMIT");
    expect_bytes(BYTES("error: 1234567890\n\n"), 10, "F1234567890|");
    expect_bytes(BYTES("error: 12345678901\n\n"), 10, "!EW_ELIMIT");
    /* Lines that carry nothing have a limit too. */
    expect_bytes(BYTES(": 345678901234567890123456\ndata: 1\n\n"), 10, "D1|");
    expect_bytes(BYTES(": 3456789012345678901234567\ndata: 1\n\n"), 10, "!EW_ELIMIT");
    expect_bytes(BYTES("data: 1\n\n: 34567890123456789012345678901234567890"), 10, "D1|!EW_ELIMIT");
}

static void test_frame_sse__copies_nothing_that_is_whole(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    static const char bytes[] = ": x\ndata: {\"message\":1}\n\nerror: 2\n\n";
    char *text = trace(&t.env, bytes, sizeof(bytes) - 1, 0, 0, 1000);
    assert_string_equal(text, "D{\"message\":1}|F2|");
    assert_int_equal(ew__test_env_allocations(&t), 0);
    free(text);
}

static void test_frame_sse__survives_failing_allocations(void **state) {
    (void)state;
    char bytes[4000];
    memset(bytes, 'x', sizeof(bytes));
    memcpy(bytes, "data: ", 6);
    memcpy(bytes + 1500, "\ndata:", 6);
    memcpy(bytes + 3000, "\n\ndata:", 7);
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        ew__test_env t;
        ew__test_env_init(&t, 1);
        ew__test_env_fail_at(&t, n, false);
        char *text = trace(&t.env, bytes, sizeof(bytes), 100, 0, 1 << 20);
        failed = ew__test_env_failed(&t) > 0;
        assert_int_equal(strstr(text, "!EW_ENOMEM") != NULL, failed);
        assert_int_equal(ew__test_env_live_blocks(&t), 0);
        free(text);
    }
    assert_true(n > 5);
}

/* How many blocks each case of the corpus has; what they mean is checked where they are understood. */
static void test_frame_sse__corpus(void **state) {
    (void)state;
    static const struct {
        const char *id;
        size_t n_blocks;
    } cases[] = {
        {"ok", 3},           {"no-space", 2},    {"error-as-data", 1}, {"crlf", 2},       {"cut-before-result", 1},
        {"cut-in-block", 2}, {"two-results", 2}, {"bad-json", 1},      {"multi-data", 2}, {"newline-in-string", 2},
        {"bom", 1},          {"empty-body", 0},  {"empty-object", 2},  {"nul-byte", 2},
    };
    corpus c;
    if (!corpus_open(&c, EW_SHARED, "own-genkit-stream/genkit-stream-cases.jsonl")) {
        skip();
    }
    while (corpus_next(&c)) {
        size_t n, n_blocks = 0, i = 0;
        char *id = corpus_text(&c, "/id");
        char *body = (char *)corpus_hex(&c, "/body_hex", &n);
        char *text = trace(ew_env_default(), body, n, 0, 0, 1 << 20);
        for (const char *p = text; (p = strchr(p, '|')) != NULL; p++) {
            n_blocks++;
        }
        assert_null(strchr(text, '!'));
        while (i < sizeof(cases) / sizeof(cases[0]) && strcmp(cases[i].id, id) != 0) {
            i++;
        }
        if (i < sizeof(cases) / sizeof(cases[0])) {
            assert_int_equal(n_blocks, cases[i].n_blocks);
        } else {
            (void)printf("case %s is new: only its cuts are checked\n", id);
        }
        expect_bytes(body, n, 1 << 20, text);
        free(text);
        free(body);
        free(id);
    }
    assert_true(c.n_row >= 14);
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_sse__reads_what_servers_send),
        cmocka_unit_test(test_frame_sse__reads_other_lines),
        cmocka_unit_test(test_frame_sse__reads_the_end),
        cmocka_unit_test(test_frame_sse__refuses_other_texts),
        cmocka_unit_test(test_frame_sse__limits_a_block),
        cmocka_unit_test(test_frame_sse__copies_nothing_that_is_whole),
        cmocka_unit_test(test_frame_sse__survives_failing_allocations),
        cmocka_unit_test(test_frame_sse__corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
