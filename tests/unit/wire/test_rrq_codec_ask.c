/*
 * tests/unit/wire/test_rrq_codec_ask.c: requests that we write to runners, and what the codec does without memory. Texts
 * are written with ' for ".
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/rrq/codec.h"
#include "support/fail_env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))
#define NOW UINT64_C(1700000001000) /* 2023-11-14T22:13:21Z */

static char *quoted(const char *text) {
    size_t n = strlen(text);
    char *copy = malloc(n + 1);
    assert_non_null(copy);
    for (size_t i = 0; i <= n; i++)
        copy[i] = text[i] == '\'' ? '"' : text[i];
    return copy;
}

static ew__rrq_ask plain_ask(void) {
    return (ew__rrq_ask){.ids = {{"\"r\"", 3}, {"\"j\"", 3}}, .function = EW_STR("f"), .now_ms = NOW, .context = NULL};
}

static const ew__rrq_context *context_of(ew_str text) {
    static ew__rrq_context context;
    ew__rrq_read_context(text, &context);
    return &context;
}

/* The whole text, with these params; for free(). */
static char *write_ask(const ew__rrq_ask *ask, const char *params) {
    ew__buf head, tail;
    char *text = NULL;
    size_t n;
    ew__buf_init(&head, ew_env_default(), SIZE_MAX / 2);
    ew__buf_init(&tail, ew_env_default(), SIZE_MAX / 2);
    assert_int_equal(ew__rrq_write_request(&head, &tail, ask), EW_OK);
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    (void)fprintf(out, "%.*s%s%.*s", (int)head.len, head.ptr, params, (int)tail.len, tail.ptr);
    (void)fclose(out);
    ew__buf_done(&head);
    ew__buf_done(&tail);
    return text;
}

static void check_ask(const ew__rrq_ask *ask, const char *expected) {
    char *text = write_ask(ask, "{}"), *want = quoted(expected);
    assert_string_equal(text, want);
    free(text);
    free(want);
}

static void test_wire_rrq_codec_ask__plain(void **state) {
    (void)state;
    ew__rrq_ask ask = plain_ask();
    check_ask(&ask, "{'type':'request','payload':{'protocol_version':'2','request_id':'r','job_id':'j',"
                    "'function_name':'f','params':{},'context':{'job_id':'j','attempt':1,"
                    "'enqueue_time':'2023-11-14T22:13:21.000Z','queue_name':'everywire','worker_id':'everywire'}}}");
}

static void test_wire_rrq_codec_ask__everything(void **state) {
    (void)state;
    char *context = quoted("{'job_id':'j','attempt':3,'enqueue_time':'2020-01-01T00:00:00Z','queue_name':'q',"
                           "'deadline':'no','trace_context':7,'correlation_context':{'old':'1'},'worker_id':'w',"
                           "'b':[ 1],'a':null,'w\\u006frker_id':'x'}");
    ew__rrq_ask ask = plain_ask();
    ask.function = EW_STR("a \"b\"");
    ask.has_deadline = true;
    ask.deadline_ms = NOW + 1234;
    ask.context = context_of(ew_str_from(context));
    ask.traceparent = EW_STR("00-p");
    ask.tracestate = EW_STR("a=1");
    check_ask(&ask, "{'type':'request','payload':{'protocol_version':'2','request_id':'r','job_id':'j',"
                    "'function_name':'a \\'b\\'','params':{},'context':{'job_id':'j','attempt':3,"
                    "'enqueue_time':'2020-01-01T00:00:00Z','queue_name':'q','deadline':'2023-11-14T22:13:22.234Z',"
                    "'trace_context':{'traceparent':'00-p','tracestate':'a=1'},'correlation_context':{'old':'1'},"
                    "'worker_id':'w','b':[ 1],'a':null}}}");
    ask.attempt = 9; /* the call's own counts more, as do its labels */
    ask.labels = EW_STR("{\"new\":\"2\"}");
    ask.tracestate = ew__str(NULL, 0);
    ask.has_deadline = false;
    check_ask(&ask, "{'type':'request','payload':{'protocol_version':'2','request_id':'r','job_id':'j',"
                    "'function_name':'a \\'b\\'','params':{},'context':{'job_id':'j','attempt':9,"
                    "'enqueue_time':'2020-01-01T00:00:00Z','queue_name':'q',"
                    "'trace_context':{'traceparent':'00-p'},'correlation_context':{'new':'2'},"
                    "'worker_id':'w','b':[ 1],'a':null}}}");
    free(context);
}

/* What we write, we read: the two halves of the codec agree. */
static void test_wire_rrq_codec_ask__there_and_back(void **state) {
    (void)state;
    for (unsigned how = 0; how < 16; how++) {
        ew__rrq_message m;
        ew__rrq_request r;
        ew__rrq_ask ask = plain_ask();
        ask.has_deadline = (how & 1) != 0;
        ask.deadline_ms = NOW + how;
        ask.labels = how & 2 ? EW_STR("{\"k\":\"v\"}") : ew__str(NULL, 0);
        ask.traceparent = how & 4 ? EW_STR("00-p") : ew__str(NULL, 0);
        ask.context = how & 8 ? context_of(EW_STR("{\"queue_name\":\"\",\"attempt\":4294967295}")) : NULL;
        char *text = write_ask(&ask, "{\"a\": [1]}");
        assert_null(ew__rrq_read(ew_str_from(text), &m));
        assert_int_equal(m.kind, EW__RRQ_REQUEST);
        assert_null(ew__rrq_read_request(&m, &r));
        assert_true(ew_str_eq(r.ids.request, ask.ids.request) && ew_str_eq(r.ids.job, ask.ids.job));
        assert_true(ew_str_eq(r.function, EW_STR("\"f\"")) && ew_str_eq(r.params, EW_STR("{\"a\": [1]}")));
        assert_int_equal(r.has_deadline, ask.has_deadline);
        assert_true(!r.has_deadline || r.deadline_ms == (int64_t)ask.deadline_ms);
        assert_true(ew_str_eq(r.labels, ask.labels));
        assert_true(r.attempt == (how & 8 ? 4294967295 : 1));
        free(text);
    }
}

/* The longest of everything stays within what is said to be the most, in memory of exactly that size. */
static void test_wire_rrq_codec_ask__most(void **state) {
    (void)state;
    char control[40], broken[40];
    memset(control, 1, sizeof control);
    memset(broken, 0xff, sizeof broken);
    for (unsigned how = 0; how < 8; how++) {
        char *context = quoted(how & 4 ? "{'a':1,'b':[2],'correlation_context':{'k':'v'},'worker_id':'wwwwwwwwwwwwwww'}"
                                       : "{'a':1}");
        ew__rrq_ask ask = {.ids = {{"\"r\"", 3}, {"\"j\"", 3}},
                           .function = how & 1 ? ew__str(control, sizeof control) : ew__str(broken, sizeof broken),
                           .now_ms = NOW,
                           .deadline_ms = UINT64_MAX,
                           .has_deadline = true,
                           .attempt = UINT32_MAX,
                           .hops = UINT8_MAX,
                           .context = how & 2 ? context_of(ew_str_from(context)) : NULL,
                           .labels = how & 4 ? ew__str(NULL, 0) : EW_STR("{\"k\":\"v\"}"),
                           .traceparent = EW_STR("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"),
                           .tracestate = ew__str(control, sizeof control)};
        size_t most = ew__rrq_ask_most(&ask);
        char *text = malloc(most);
        assert_non_null(text);
        char *end = ew__rrq_put_tail(ew__rrq_put_head(text, &ask), &ask);
        assert_true((size_t)(end - text) <= most);
        free(text);
        free(context);
    }
}

/* ---- what a caller's context may be ---- */

static void test_wire_rrq_codec_ask__contexts(void **state) {
    (void)state;
    static const struct {
        const char *context;
        bool good;
    } rows[] = {{"", true},
                {"{}", true},
                {"[]", false},
                {"null", false},
                {"'x'", false},
                {"{'anything':{'goes':[1]}}", true},
                {"{'job_id':'j','attempt':0,'enqueue_time':'2020-01-01T00:00:00','queue_name':''}", true},
                {"{'job_id':7}", false},
                {"{'job_id':null}", false},
                {"{'attempt':'1'}", false},
                {"{'attempt':-1}", false},
                {"{'attempt':4294967296}", false},
                {"{'enqueue_time':'soon'}", false},
                {"{'enqueue_time':5}", false},
                {"{'queue_name':[]}", false},
                {"{'worker_id':null}", true},
                {"{'worker_id':5}", false},
                {"{'correlation_context':null}", true},
                {"{'correlation_context':{'a':'b'}}", true},
                {"{'correlation_context':{'a':1}}", false},
                {"{'correlation_context':[]}", false}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        char *text = quoted(rows[i].context);
        const char *problem = ew__rrq_context_problem(ew_str_from(text));
        if ((problem == NULL) != rows[i].good)
            fail_msg("%s: %s", rows[i].context, problem ? problem : "taken");
        free(text);
    }
}

/* What is taken must be a request that a runner can read. */
static void test_wire_rrq_codec_ask__good_contexts_are_readable(void **state) {
    (void)state;
    static const char *const members[] = {"'job_id':'x'",
                                          "'attempt':0",
                                          "'attempt':null",
                                          "'enqueue_time':'2020-01-01T00:00:00Z'",
                                          "'enqueue_time':null",
                                          "'enqueue_time':'2020-01-01T00:00:0\\u0030Z'",
                                          "'queue_name':''",
                                          "'queue_name':null",
                                          "'deadline':7",
                                          "'trace_context':[]",
                                          "'correlation_context':null",
                                          "'correlation_context':{'a':'b'}",
                                          "'worker_id':null",
                                          "'worker_id':'w'",
                                          "'d\\u0065adline':7",
                                          "'attempt':1,'attempt':2",
                                          "'attempt':1,'\\u0061ttempt':'x'",
                                          "'x':1,'x':2"};
    for (size_t i = 0; i < N_OF(members); i++) {
        char form[200];
        (void)snprintf(form, sizeof form, "{%s}", members[i]);
        char *context = quoted(form);
        if (!ew__rrq_context_problem(ew_str_from(context))) {
            ew__rrq_message m;
            ew__rrq_request r;
            ew__rrq_ask ask = plain_ask();
            ask.context = context_of(ew_str_from(context));
            char *text = write_ask(&ask, "{}");
            assert_null(ew__rrq_read(ew_str_from(text), &m));
            const char *problem = ew__rrq_read_request(&m, &r);
            if (problem)
                fail_msg("%s: %s: %s", members[i], problem, text);
            free(text);
        }
        free(context);
    }
}

static void test_wire_rrq_codec_ask__handlers(void **state) {
    (void)state;
    static const struct {
        const char *function, *handler;
    } rows[] = {{"f", "f"}, {"", ""}, {"a#b", "b"}, {"#b", "b"}, {"a#", ""}, {"#", ""}, {"a#b#c", "b#c"}, {"##", "#"}};
    for (size_t i = 0; i < N_OF(rows); i++)
        assert_true(ew_str_eq(ew__rrq_handler_of(ew_str_from(rows[i].function)), ew_str_from(rows[i].handler)));
    assert_true(ew__rrq_handler_of(ew__str(NULL, 0)).len == 0);
}

/* ---- without memory ---- */

static void test_wire_rrq_codec_ask__no_memory(void **state) {
    (void)state;
    static const char outcome[] =
        "{\"type\":\"response\",\"payload\":{\"status\":\"error\",\"error\":{\"message\":\"m\",\"code\":7}}}";
    ew__test_env t;
    ew__test_env_init(&t, 1);
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        ew__buf head, tail, fault;
        ew__rrq_message m;
        char room[16];
        ew__rrq_outcome o = {.text = room, .room = sizeof room};
        ew__rrq_ask ask = plain_ask();
        ew__test_env_fail_at(&t, n, false);
        ew__buf_init(&head, &t.env, SIZE_MAX / 2);
        ew__buf_init(&tail, &t.env, SIZE_MAX / 2);
        ew__buf_init(&fault, &t.env, SIZE_MAX / 2);
        ew__buf_init(&o.details, &t.env, SIZE_MAX / 2);
        bool written = ew__rrq_write_request(&head, &tail, &ask) == EW_OK;
        written = ew__rrq_write_fault(&fault, NULL, &(ew_fault){.status = EW_STATUS_INTERNAL}) == EW_OK && written;
        assert_null(ew__rrq_read(EW_STR(outcome), &m));
        bool told = ew__rrq_read_outcome(&m, &o) == NULL;
        failed = ew__test_env_failed(&t) > 0;
        assert_int_equal(failed, !written || !told);
        ew__buf_done(&head);
        ew__buf_done(&tail);
        ew__buf_done(&fault);
        ew__buf_done(&o.details);
        assert_int_equal(ew__test_env_live_blocks(&t), 0);
        assert_true(n < 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_rrq_codec_ask__plain),
        cmocka_unit_test(test_wire_rrq_codec_ask__everything),
        cmocka_unit_test(test_wire_rrq_codec_ask__there_and_back),
        cmocka_unit_test(test_wire_rrq_codec_ask__most),
        cmocka_unit_test(test_wire_rrq_codec_ask__contexts),
        cmocka_unit_test(test_wire_rrq_codec_ask__good_contexts_are_readable),
        cmocka_unit_test(test_wire_rrq_codec_ask__handlers),
        cmocka_unit_test(test_wire_rrq_codec_ask__no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
