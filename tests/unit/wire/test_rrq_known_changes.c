/*
 * tests/unit/wire/test_rrq_known_changes.c: the short way to read a request (wire/rrq/known.c) beside the ordinary one,
 * where they could part: contexts inside params, limits, lengths around its words and vectors, every byte changed. What it
 * takes, the other takes too, and both say the same. Texts are written with ' for ".
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/rrq/codec.h"
#include <everywire/limits.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))

#define HEAD                                                                                                           \
    "{'type':'request','payload':{'protocol_version':'2','request_id':'r','job_id':'j','function_name':'f','params':"
#define BASE "'job_id':'j','attempt':1,'enqueue_time':'2023-11-14T22:00:00Z','queue_name':'q'"
#define CONTEXT ",'context':{" BASE "}}}"
#define FULL                                                                                                           \
    ",'context':{" BASE                                                                                                \
    ",'deadline':'2023-11-14T22:00:01.5Z','trace_context':{'traceparent':'00-p','everywire-hops':'7'},"                \
    "'correlation_context':{'k':'v'},'worker_id':'w'}}}"
#define NULLS ",'context':{" BASE ",'deadline':null,'trace_context':null,'correlation_context':null,'worker_id':null}}}"

static char *quoted(const char *text) {
    size_t n = strlen(text);
    char *copy = malloc(n + 1);
    assert_non_null(copy);
    for (size_t i = 0; i <= n; i++)
        copy[i] = text[i] == '\'' ? '"' : text[i];
    return copy;
}

static bool same(ew_str a, ew_str b) { return a.len == b.len && (a.len == 0 || a.ptr == b.ptr); }

static bool same_slices(const ew__rrq_request *a, const ew__rrq_request *b) {
    bool params = same(a->params, b->params) || (ew_str_eq(a->params, b->params) && a->params.len == 2);
    return params && same(a->ids.request, b->ids.request) && same(a->ids.job, b->ids.job) &&
           same(a->function, b->function) && same(a->context, b->context) && same(a->labels, b->labels) &&
           same(a->trace, b->trace);
}

/* Reads in both ways, in memory of exactly the size. Returns whether the short one took it. */
static bool read_both(const char *bytes, size_t n) {
    char *text = malloc(n ? n : 1);
    assert_non_null(text);
    memcpy(text, bytes, n);
    ew__rrq_request known, other;
    bool taken = ew__rrq_read_known(ew__str(text, n), &known);
    if (taken) {
        ew__rrq_message m;
        const char *problem = ew__rrq_read(ew__str(text, n), &m);
        problem = problem ? problem : ew__rrq_read_request(&m, &other);
        if (problem || other.foreign || known.foreign)
            fail_msg("%.*s: %s", (int)n, text, problem ? problem : "foreign");
        bool times =
            known.has_deadline == other.has_deadline && (!known.has_deadline || known.deadline_ms == other.deadline_ms);
        if (!times || known.attempt != other.attempt || known.hops != other.hops || !same_slices(&known, &other))
            fail_msg("%.*s: the two differ", (int)n, text);
    }
    free(text);
    return taken;
}

static void test_wire_rrq_known_changes__taken(void **state) {
    (void)state;
    static const char *const texts[] = {
        HEAD "{}" CONTEXT,
        HEAD "{'a':[1,{'b':'}'}],'u':'\xc3\xa9\\u0041'}" FULL,
        HEAD "{ 'a' : 1 }" NULLS,
        HEAD "{'context':{" BASE "}}" CONTEXT,
        HEAD "{'x':1,'context':{" BASE "},'y':2}" CONTEXT,
        HEAD "{}"
             ",'context':{" BASE ",'trace_context':{}}}}",
        HEAD "{}"
             ",'context':{" BASE ",'worker_id':''}}}",
    };
    for (size_t i = 0; i < N_OF(texts); i++) {
        char *text = quoted(texts[i]);
        if (!read_both(text, strlen(text)))
            fail_msg("%s is not known", text);
        free(text);
    }
}

/* What only looks like a request, or is one in another spelling, is left to the ordinary way. */
static void test_wire_rrq_known_changes__left(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        "{",
        HEAD,
        HEAD "{}",
        HEAD "[]" CONTEXT,
        HEAD "null" CONTEXT,
        HEAD "{" CONTEXT,
        HEAD "{}}" CONTEXT,
        HEAD "{'a':'\xff'}" CONTEXT,
        HEAD "{}" CONTEXT " ",
        HEAD "{}" CONTEXT "}",
        HEAD "{'a':1,'context':{" BASE "}}}}",
        HEAD "{'a':1,'context':{" BASE "}}}",
        HEAD "{'a':{},'context':{" BASE "}}}",
        HEAD "{},'params':{}" CONTEXT,
        HEAD "{},'context':{}" CONTEXT,
        HEAD "{}"
             ",'context':{" BASE ",'more':1}}}",
        HEAD "{}"
             ",'context':{" BASE ",'worker_id':'w','deadline':null}}}",
        HEAD "{}"
             ",'context':{" BASE ",'trace_context':{'a':1}}}}",
        HEAD "{}"
             ",'context':{" BASE ",'trace_context':{'a':'b',}}}}",
        HEAD "{}"
             ",'context':{" BASE ",'trace_context':{,}}}}",
        HEAD "{}"
             ",'context':{" BASE ",'deadline':'tomorrow'}}}",
        HEAD "{}"
             ",'context':{'job_id':'j','attempt':01,'enqueue_time':'2023-11-14T22:00:00Z','queue_name':'q'}}}",
        HEAD "{}"
             ",'context':{'job_id':'j','attempt':,'enqueue_time':'2023-11-14T22:00:00Z','queue_name':'q'}}}",
        HEAD "{}"
             ",'context':{'job_id':'j','attempt':-1,'enqueue_time':'2023-11-14T22:00:00Z','queue_name':'q'}}}",
        HEAD "{}"
             ",'context':{'job_id':'j\\u0041','attempt':1,'enqueue_time':'2023-11-14T22:00:00Z','queue_name':'q'}}}",
    };
    for (size_t i = 0; i < N_OF(texts); i++) {
        char *text = quoted(texts[i]);
        if (read_both(text, strlen(text)))
            fail_msg("%s was taken", text);
        free(text);
    }
}

/* A context inside the params, with everything in it, is none of the request's. */
static void test_wire_rrq_known_changes__nested_contexts(void **state) {
    (void)state;
    static const char *const inner[] = {
        ",'context':{" BASE ",'deadline':'2023-11-14T22:00:01Z'}",
        ",'context':{" BASE ",'trace_context':{'traceparent':'00-inner'}}",
        ",'context':{" BASE ",'correlation_context':{'inner':'1'}}",
        ",'context':{" BASE
        ",'deadline':null,'trace_context':{'a':'b'},'correlation_context':{'c':'d'},'worker_id':'x'}",
    };
    static const char *const outer[] = {CONTEXT, FULL, NULLS};
    for (size_t i = 0; i < N_OF(inner) * N_OF(outer); i++) {
        char form[1500];
        (void)snprintf(form, sizeof form, HEAD "{'a':1%s%s}%s", inner[i / N_OF(outer)], i % 2 ? ",'b':2" : "",
                       outer[i % N_OF(outer)]);
        char *text = quoted(form);
        assert_true(read_both(text, strlen(text)));
        free(text);
    }
}

static void test_wire_rrq_known_changes__attempts_and_ids(void **state) {
    (void)state;
    static const char *const attempts[] = {"0",          "9",          "10",         "999999999",
                                           "1000000000", "4294967295", "4294967296", "1.0"};
    for (size_t i = 0; i < N_OF(attempts); i++) {
        char form[600];
        (void)snprintf(form, sizeof form,
                       HEAD "{},'context':{'job_id':'j','attempt':%s,'enqueue_time':'2023-11-14T22:00:00Z',"
                            "'queue_name':'q'}}}",
                       attempts[i]);
        char *text = quoted(form);
        assert_int_equal(read_both(text, strlen(text)), i < 4);
        free(text);
    }
    for (int n = 1020; n < 1025; n++) {
        char form[2000], id[1100] = {0};
        memset(id, 'x', (size_t)n);
        (void)snprintf(form, sizeof form,
                       "{'type':'request','payload':{'protocol_version':'2','request_id':'%s','job_id':'j',"
                       "'function_name':'f','params':{}" CONTEXT,
                       id);
        char *text = quoted(form);
        assert_int_equal(read_both(text, strlen(text)), n <= 1022);
        free(text);
    }
}

/* Contexts of every length around the words and vectors that are compared, and beyond what is looked at. */
static void test_wire_rrq_known_changes__lengths(void **state) {
    (void)state;
    char pad[3000];
    memset(pad, 'w', sizeof pad);
    for (int n = 0; n < 2500; n += n < 100 || (n > 1800 && n < 2100) ? 1 : 37) {
        char *form = malloc(4000);
        assert_non_null(form);
        (void)snprintf(form, 4000, HEAD "{'a':1},'context':{" BASE ",'worker_id':'%.*s'}}}", n, pad);
        char *text = quoted(form);
        assert_true(read_both(text, strlen(text)) || n > 1800);
        free(text);
        free(form);
    }
}

/* Every byte of good texts replaced, left out, doubled; every beginning of them. */
static void test_wire_rrq_known_changes__every_change(void **state) {
    (void)state;
    static const char bytes[] = "\"\\{}[]:,0- aZ\x7f\x80\xff\n";
    static const char *const forms[] = {HEAD "{'a':1}" FULL, HEAD "{}" NULLS,
                                        HEAD "{'x':1,'context':{" BASE "},'y':{}}" CONTEXT};
    for (size_t f = 0; f < N_OF(forms); f++) {
        char *text = quoted(forms[f]);
        size_t n = strlen(text), taken = 0;
        char *copy = malloc(n + 1);
        assert_non_null(copy);
        for (size_t at = 0; at < n; at++) {
            for (size_t b = 0; b < sizeof bytes; b++) { /* NUL is one of them */
                memcpy(copy, text, n);
                copy[at] = bytes[b];
                taken += read_both(copy, n);
                memcpy(copy + at + 1, text + at, n - at);
                taken += read_both(copy, n + 1);
            }
            memcpy(copy, text, at);
            memcpy(copy + at, text + at + 1, n - at - 1);
            taken += read_both(copy, n - 1);
            assert_false(read_both(text, at));
        }
        assert_true(taken > 50); /* ids and names may be anything */
        free(copy);
        free(text);
    }
}

/* The general path accepts more levels than a payload may have, and marks the message; the fast path does not. */
static void test_wire_rrq_known_changes__depth(void **state) {
    (void)state;
    for (int depth = EW_PAYLOAD_DEPTH - 2; depth <= EW_JSON_DEPTH + 3; depth++) {
        char *form = NULL;
        size_t n;
        ew__rrq_request r;
        ew__rrq_message m;
        FILE *out = open_memstream(&form, &n);
        assert_non_null(out);
        (void)fputs(HEAD "{'a':", out);
        for (int d = 3; d < depth; d++)
            (void)fputc('[', out);
        for (int d = 3; d < depth; d++)
            (void)fputc(']', out);
        (void)fprintf(out, "%s}" CONTEXT, depth <= 3 ? "1" : "");
        (void)fclose(out);
        char *text = quoted(form);
        assert_int_equal(ew__rrq_read(ew_str_from(text), &m) == NULL, depth <= EW_JSON_DEPTH);
        assert_int_equal(ew__rrq_read_known(ew_str_from(text), &r), depth - 2 <= EW_PAYLOAD_DEPTH);
        free(text);
        free(form);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_rrq_known_changes__taken),
        cmocka_unit_test(test_wire_rrq_known_changes__left),
        cmocka_unit_test(test_wire_rrq_known_changes__nested_contexts),
        cmocka_unit_test(test_wire_rrq_known_changes__attempts_and_ids),
        cmocka_unit_test(test_wire_rrq_known_changes__lengths),
        cmocka_unit_test(test_wire_rrq_known_changes__every_change),
        cmocka_unit_test(test_wire_rrq_known_changes__depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
