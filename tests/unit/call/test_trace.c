/*
 * tests/unit/call/test_trace.c: W3C trace context.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/trace.h"
#include "support/corpus.h"
#include "support/fail_env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "world.h"

static const ew__caller_ops nobody = {.end = NULL};

static void seeded(ew__rng *rng) {
    ew__test_env t;
    ew__test_env_init(&t, 5);
    ew__rng_init(rng, &t.env);
}

static bool is_hex(const char *digits, size_t n) {
    bool zero = true;
    for (size_t i = 0; i < n; i++) {
        zero = zero && digits[i] == '0';
        if (!strchr("0123456789abcdef", digits[i]) || digits[i] == '\0')
            return false;
    }
    return !zero;
}

static void test_call_trace__new(void **state) {
    (void)state;
    ew__rng rng;
    ew__trace a, b;
    seeded(&rng);
    ew__trace_new(&a, &rng);
    ew__trace_new(&b, &rng);
    assert_true(is_hex(a.trace_id, 32) && is_hex(a.span_id, 16) && !a.has_parent && a.sampled);
    assert_memory_not_equal(a.trace_id, b.trace_id, 32);
}

static void test_call_trace__round(void **state) {
    (void)state;
    static const char text[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    ew__rng rng;
    ew__trace trace;
    char out[EW__TRACEPARENT_LEN];
    seeded(&rng);
    assert_int_equal(
        ew__trace_continue(&trace, &rng, EW_STR("  00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\t")), EW_OK);
    assert_memory_equal(trace.trace_id, text + 3, 32);
    assert_memory_equal(trace.parent_id, text + 36, 16);
    assert_memory_not_equal(trace.span_id, trace.parent_id, 16);
    assert_true(trace.has_parent && trace.sampled);
    ew__trace_parent(&trace, out);
    assert_memory_equal(out, text, 36);
    assert_memory_equal(out + 36, trace.span_id, 16);
    assert_memory_equal(out + 52, "-01", 3);
}

/* Every prefix and every changed byte of a good one is either refused or still well formed. */
static void test_call_trace__damaged(void **state) {
    (void)state;
    static const char good[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    ew__rng rng;
    ew__trace trace;
    seeded(&rng);
    for (size_t n = 0; n < sizeof good - 1; n++) {
        assert_int_equal(ew__trace_continue(&trace, &rng, ew__str(good, n)), EW_ESYNTAX);
        assert_true(is_hex(trace.trace_id, 32) && !trace.has_parent); /* a fresh one instead */
    }
    for (size_t i = 0; i < sizeof good - 1; i++) {
        char bad[sizeof good];
        memcpy(bad, good, sizeof good);
        bad[i] = 'G';
        assert_int_equal(ew__trace_continue(&trace, &rng, ew__str(bad, sizeof good - 1)), EW_ESYNTAX);
    }
}

/* What stands in the two ids: every byte, at every place, is taken if it is a digit of theirs and not otherwise. */
static void test_call_trace__each_byte(void **state) {
    (void)state;
    static const char good[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    ew__rng rng;
    ew__trace trace;
    seeded(&rng);
    for (size_t i = 3; i < 52; i++) {
        if (i == 35)
            continue;
        for (unsigned byte = 0; byte < 256; byte++) {
            char text[sizeof good];
            memcpy(text, good, sizeof good);
            text[i] = (char)byte;
            bool digit = byte != 0 && strchr("0123456789abcdef", (int)byte) != NULL;
            ew_err err = ew__trace_continue(&trace, &rng, ew__str(text, sizeof good - 1));
            if ((err == EW_OK) != digit)
                fail_msg("byte 0x%02x at %zu", byte, i);
        }
    }
}

/* However a carrier is written, the trace in it goes on. */
static void test_call_trace__carriers(void **state) {
    (void)state;
#define IDS "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
    static const struct {
        const char *text;
        bool goes_on, state;
    } cases[] = {
        {"{\"traceparent\":\"00-" IDS "-01\"}", true, false},
        {"{ \"traceparent\": \"00-" IDS "-01\" }", true, false},
        {"{\"traceparent\":\"\\u00300-" IDS "-01\"}", false, false}, /* nobody writes escapes there */
        {"{\"traceparent\":\"00-" IDS "-01\",\"tracestate\":\"a=b\"}", true, true},
        {"{\"tracestate\":\"a=b\",\"traceparent\":\"00-" IDS "-01\"}", true, true},
        {"{\"traceparent\":\"00-" IDS "-01\",\"traceparent\":\"00-0\"}", true, false},
        {"{\"traceparent\":\"00-" IDS "\",\"\":\"\"}", false, false}, /* as long as the usual one */
        {"{\"traceparent\":\"\\u0030-" IDS "\"}", false, false},
        {"{\"traceparenT\":\"00-" IDS "-01\"}", false, false},
        {"{}", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world w;
        world_init(&w, 7);
        ew_call *call = ew__call_new(&w.executor, &nobody, NULL);
        call->served.carrier = ew_str_from(cases[i].text);
        const ew__trace *trace = ew__call_trace(call);
        if (trace->has_parent != cases[i].goes_on || (call->tracestate.len > 0) != cases[i].state)
            fail_msg("%s", cases[i].text);
        assert_int_equal(memcmp(trace->trace_id, IDS, 32) == 0, cases[i].goes_on);
        ew_call_unref(call);
        world_done(&w);
    }
}

static void test_call_trace__tracestate(void **state) {
    (void)state;
    char text[600];
    assert_true(ew__tracestate_ok(EW_STR("a=1,b@c=2 , ,3d=e f")));
    assert_false(ew__tracestate_ok(EW_STR("")));
    assert_false(ew__tracestate_ok(EW_STR(" , ")));
    assert_false(ew__tracestate_ok(EW_STR("@a=1")));
    assert_false(ew__tracestate_ok(EW_STR("_a=1")));
    assert_false(ew__tracestate_ok(EW_STR("A=1")));
    assert_false(ew__tracestate_ok(EW_STR("a=1\r\nx: y")));
    assert_false(ew__tracestate_ok(EW_STR("a=\xc3\xa4")));
    for (unsigned members = 31; members <= 33; members++) { /* a=1,a=1 ... */
        for (unsigned i = 0; i < members; i++)
            memcpy(text + 4 * (size_t)i, "a=1,", 4);
        assert_int_equal(ew__tracestate_ok(ew__str(text, 4 * (size_t)members - 1)), members <= 32);
    }
    memset(text, 'v', sizeof text);
    text[0] = 'k';
    text[1] = '=';
    text[200] = text[400] = ',';
    text[202] = text[402] = '=';
    for (size_t n = 511; n <= 513; n++)
        assert_int_equal(ew__tracestate_ok(ew__str(text, n)), n <= 512);
}

/* ---- the corpus of the W3C tests ---- */

static unsigned headers(const corpus *c, const char *name, char *first, size_t size) {
    unsigned n = 0;
    for (unsigned i = 0; i < 10; i++) {
        char pointer[40];
        (void)snprintf(pointer, sizeof pointer, "/headers/%u/0", i);
        char *key = corpus_text(c, pointer);
        if (!key)
            break;
        (void)snprintf(pointer, sizeof pointer, "/headers/%u/1", i);
        char *value = corpus_text(c, pointer);
        if (ew__str_is_nocase(ew_str_from(key), ew_str_from(name)) && n++ == 0)
            (void)snprintf(first, size, "%s", value ? value : "");
        free(key);
        free(value);
    }
    return n;
}

static void test_call_trace__corpus(void **state) {
    (void)state;
    corpus c;
    if (!corpus_open(&c, EW_SHARED, "trace-context/trace-context-cases.jsonl"))
        skip();
    ew__rng rng;
    unsigned checked = 0, states = 0;
    seeded(&rng);
    while (corpus_next(&c)) {
        char parent[2000] = "", tracestate[4000] = "";
        unsigned parents = headers(&c, "traceparent", parent, sizeof parent);
        unsigned n_states = headers(&c, "tracestate", tracestate, sizeof tracestate);
        char *expected = corpus_text(&c, "/expect/trace_id");
        if (parents != 1) { /* none or several: the wire begins a new trace without asking */
            assert_string_equal(expected, "new");
            free(expected);
            continue;
        }
        ew__trace trace;
        ew_err err = ew__trace_continue(&trace, &rng, ew_str_from(parent));
        if ((err == EW_OK) != (strcmp(expected, "new") != 0) ||
            (err == EW_OK && memcmp(trace.trace_id, expected, 32) != 0))
            fail_msg("row %zu: %s", c.n_row, parent);
        checked++;
        if (err == EW_OK && n_states == 1) {
            bool goes_on = corpus_has(&c, "/expect/tracestate/0");
            if (ew__tracestate_ok(ew_str_from(tracestate)) != goes_on)
                fail_msg("row %zu: tracestate %s", c.n_row, tracestate);
            states++;
        }
        free(expected);
    }
    corpus_close(&c);
    assert_true(checked >= 40 && states >= 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_trace__new),      cmocka_unit_test(test_call_trace__round),
        cmocka_unit_test(test_call_trace__damaged),  cmocka_unit_test(test_call_trace__tracestate),
        cmocka_unit_test(test_call_trace__corpus),   cmocka_unit_test(test_call_trace__each_byte),
        cmocka_unit_test(test_call_trace__carriers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
