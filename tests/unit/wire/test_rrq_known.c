/*
 * tests/unit/wire/test_rrq_known.c: the quick way to read a request, and a success, held against the ordinary one: whatever
 * it accepts, the other accepts with the same values.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/rrq_world.h"

#define HEAD                                                                                                           \
    "{\"type\":\"request\",\"payload\":{\"protocol_version\":\"2\",\"request_id\":\"3f0e8c1e-0000-4000-8000-"          \
    "000000000001\",\"job_id\":\"j-1\",\"function_name\":\"send_email\",\"params\":"
#define CONTEXT_HEAD                                                                                                   \
    ",\"context\":{\"job_id\":\"j-1\",\"attempt\":1,\"enqueue_time\":\"2026-03-01T10:00:00.123456789Z\",\"queue_"      \
    "name\":"                                                                                                          \
    "\"rrq:queue:default\""

/* As orchestrators write them: the Rust one, of today and of old, and ours. */
static const char *const good[] = {
    HEAD "{\"to\":\"a@b\"}" CONTEXT_HEAD ",\"deadline\":\"2026-03-01T10:05:00.223456789Z\",\"trace_context\":null,"
         "\"correlation_context\":null,\"worker_id\":\"rrq_worker_4242_a1b2c3\"}}}",
    HEAD
    "{}" CONTEXT_HEAD ",\"deadline\":null,\"trace_context\":{\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-"
    "b7ad6b7169203331-01\",\"tracestate\":\"a=b\"},\"correlation_context\":{\"tenant\":\"acme\"},\"worker_id\":null}}}",
    HEAD "{\"a\":[1,{\"context\":{\"job_id\":\"x\"}}],\"t\":\"\\u00e9 \xc3\xa9 \\\"}}}\"}" CONTEXT_HEAD "}}}",
    HEAD
    "{\"x\":1,\"context\":{\"job_id\":\"j\",\"attempt\":1,\"enqueue_time\":\"2026-03-01T10:00:00Z\",\"queue_name\":"
    "\"q\"}}" CONTEXT_HEAD ",\"trace_context\":{},\"correlation_context\":{}}}}",
    HEAD "{}" CONTEXT_HEAD ",\"trace_context\":{\"everywire-hops\":\"3\",\"everywire-hops\":\"0012\"},"
         "\"correlation_context\":{\"everywire-hops\":\"4\"}}}}",
    HEAD "{}" CONTEXT_HEAD ",\"deadline\":\"2026-03-01T10:05:00.223Z\",\"trace_context\":{\"traceparent\":\"00-p\"},"
         "\"correlation_context\":{\"tenant\":\"acme\",\"\":\"\"},\"worker_id\":\"\"}}}",
    HEAD "{}" CONTEXT_HEAD ",\"worker_id\":\"everywire\"}}}",
};
#define N_GOOD (sizeof good / sizeof *good)

#define OUTCOME_HEAD                                                                                                   \
    "{\"type\":\"response\",\"payload\":{\"job_id\":\"j-1\",\"request_id\":\"3f0e8c1e-0000-4000\",\"status\":"         \
    "\"success\",\"result\":"
static const char *const successes[] = {
    OUTCOME_HEAD "null}}",
    OUTCOME_HEAD "-1.50e3}}",
    OUTCOME_HEAD "{\"a\":[1,{\"status\":\"error\"}],\"t\":\"\\u00e9 \xc3\xa9 \\\"}}\"}}}",
    OUTCOME_HEAD "[ ]}}",
};
#define N_SUCCESSES (sizeof successes / sizeof *successes)

static size_t n_reused; /* contexts of which something could be copied */

static bool same_slice(ew_str a, ew_str b) { return a.len == b.len && (a.len == 0 || a.ptr == b.ptr); }

static void compare_context(ew_str context) {
    static const char *const names[EW__RRQ_N_CONTEXT] = {
        "job_id",   "attempt",       "enqueue_time",        "queue_name",
        "deadline", "trace_context", "correlation_context", "worker_id"};
    ew_str value[EW__RRQ_N_CONTEXT];
    if (!ew__rrq_split_known(context, value))
        fail_msg("not split: %.*s", (int)context.len, context.ptr);
    for (size_t i = 0; i < EW__RRQ_N_CONTEXT; i++) {
        ew_str other = ew_json_member(context, ew_str_from(names[i]));
        bool absent = other.len == 0 || other.ptr[0] == 'n';
        assert_true(absent ? value[i].len == 0 : same_slice(value[i], other));
    }
}

/* What is copied from a context into a request of ours is what would be written anew from its members. */
static void compare_reuse(const ew__rrq_request *came) {
    ew__rrq_context copied, anew;
    char texts[2][4000];
    size_t lens[2];
    if (came->spans.rest == 0)
        return;
    ew__rrq_reuse_context(came->context, &came->spans, &copied);
    ew__rrq_read_context(came->context, &anew);
    assert_true(same_slice(copied.value[EW__RRQ_JOB], anew.value[EW__RRQ_JOB]));
    for (int i = 0; i < 2; i++) {
        ew__rrq_ask ask = {.ids = {EW_STR("\"r\""), anew.value[EW__RRQ_JOB]},
                           .function = EW_STR("f"),
                           .attempt = came->attempt,
                           .hops = 1,
                           .labels = came->labels,
                           .traceparent = EW_STR("00-p"),
                           .context = i == 0 ? &copied : &anew};
        assert_true(ew__rrq_ask_most(&ask) <= sizeof texts[i]);
        lens[i] = (size_t)(ew__rrq_put_tail(texts[i], &ask) - texts[i]);
    }
    if (lens[0] != lens[1] || memcmp(texts[0], texts[1], lens[0]) != 0)
        fail_msg("copied: %.*s\nanew:   %.*s", (int)lens[0], texts[0], (int)lens[1], texts[1]);
    n_reused++;
}

/* Whether the quick way took it. */
static bool compare(ew_str text) {
    ew__rrq_request quick, slow;
    ew__rrq_message message;
    if (!ew__rrq_read_known(text, &quick))
        return false;
    const char *problem = ew__rrq_read(text, &message);
    if (!problem && message.kind == EW__RRQ_REQUEST)
        problem = ew__rrq_read_request(&message, &slow);
    else if (!problem)
        problem = "no request";
    bool same = !problem && !slow.foreign && same_slice(quick.ids.request, slow.ids.request) &&
                same_slice(quick.ids.job, slow.ids.job) && same_slice(quick.function, slow.function) &&
                same_slice(quick.params, slow.params) && same_slice(quick.context, slow.context) &&
                same_slice(quick.labels, slow.labels) && same_slice(quick.trace, slow.trace) &&
                quick.has_deadline == slow.has_deadline && quick.deadline_ms == slow.deadline_ms &&
                quick.attempt == slow.attempt && quick.hops == slow.hops;
    if (!same)
        fail_msg("the two differ (%s) on %.*s", problem ? problem : "values", (int)text.len, text.ptr);
    compare_context(quick.context);
    compare_reuse(&quick);
    return true;
}

/* The same for outcomes. */
static bool compare_success(ew_str text) {
    ew__rrq_ids ids, slow_ids;
    ew__rrq_message message;
    ew__rrq_outcome slow = {.text = NULL};
    ew_str result;
    if (!ew__rrq_read_known_success(text, &ids, &result))
        return false;
    const char *problem = ew__rrq_read(text, &message);
    if (!problem) {
        ew__rrq_read_ids(&message, &slow_ids);
        problem = message.kind == EW__RRQ_RESPONSE ? ew__rrq_read_outcome(&message, &slow) : "no response";
    }
    bool same = !problem && slow.success && same_slice(ids.request, slow_ids.request) &&
                same_slice(ids.job, slow_ids.job) && same_slice(result, slow.result);
    if (!same)
        fail_msg("the two differ (%s) on %.*s", problem ? problem : "values", (int)text.len, text.ptr);
    return true;
}

static void test_wire_rrq__known_good(void **state) {
    (void)state;
    for (size_t i = 0; i < N_GOOD; i++)
        if (!compare(ew_str_from(good[i])))
            fail_msg("not taken: %s", good[i]);
    assert_int_equal(n_reused, 3);
}

static void test_wire_rrq__known_others(void **state) {
    (void)state;
    static const char *const others[] = {
        HEAD "[1]" CONTEXT_HEAD "}}}",
        HEAD "{\"a\":1}}" CONTEXT_HEAD "}}}",
        HEAD "{\"a\":1" CONTEXT_HEAD "}}}",
        HEAD "{}" CONTEXT_HEAD "}}}}",
        HEAD "{}" CONTEXT_HEAD "}}",
        HEAD "{}" CONTEXT_HEAD ",\"worker_id\":\"w\\u0041\"}}}",
        HEAD "{}" CONTEXT_HEAD ",\"worker_id\":\"w\xc3\xa9\"}}}",
        HEAD "{}" CONTEXT_HEAD ",\"worker_id\":1}}}",
        HEAD "{}" CONTEXT_HEAD ",\"deadline\":\"soon\"}}}",
        HEAD "{}" CONTEXT_HEAD ",\"correlation_context\":{\"a\":1}}}}",
        HEAD "{}" CONTEXT_HEAD ",\"correlation_context\":{\"a\":\"b\",}}}}",
        HEAD "{}" CONTEXT_HEAD ",\"worker_id\":\"w\",\"deadline\":null}}}",
        HEAD "{}" CONTEXT_HEAD "}} }",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (compare(ew_str_from(others[i])))
            fail_msg("taken: %s", others[i]);
}

/* One or two changes of each kind, anywhere: most make it bad, some do not, and both ways must agree. */
static size_t change_them(const char *const *texts, size_t n_texts, bool (*taken_by)(ew_str text)) {
    static const char bytes[] = "\"\\{}[]:,0123456789ntef \t-+.Zz\x01\x7f\xc3\xa9";
    uint64_t chance = 88172645463325252u;
    size_t taken = 0;
    for (int round = 0; round < 60000; round++) {
        char text[1200];
        const char *from = texts[(size_t)round % n_texts];
        size_t n = strlen(from);
        memcpy(text, from, n);
        for (int change = 0; change < 1 + round % 2; change++) {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            size_t at = (size_t)(chance >> 8) % n;
            char byte = bytes[(chance >> 40) % (sizeof bytes - 1)];
            switch (chance & 3) {
            case 0:
                text[at] = byte;
                break;
            case 1:
                memmove(text + at + 1, text + at, n - at);
                text[at] = byte;
                n++;
                break;
            case 2:
                memmove(text + at, text + at + 1, n - at - 1);
                n--;
                break;
            default:
                text[at] = text[(size_t)(chance >> 24) % n];
            }
        }
        char *exact = malloc(n); /* so that a sanitizer sees a byte too far */
        assert_non_null(exact);
        memcpy(exact, text, n);
        taken += taken_by(ew__str(exact, n));
        free(exact);
    }
    return taken;
}

static void test_wire_rrq__known_changed(void **state) {
    (void)state;
    size_t taken = change_them(good, N_GOOD, compare);
    assert_true(taken > 10000 && taken < 50000);
    taken = change_them(successes, N_SUCCESSES, compare_success);
    assert_true(taken > 5000 && taken < 50000);
}

static void test_wire_rrq__known_successes(void **state) {
    (void)state;
    static const char *const others[] = {
        OUTCOME_HEAD "}}",
        OUTCOME_HEAD "1,\"error\":null}}",
        OUTCOME_HEAD "{}}}}",
        OUTCOME_HEAD "{}}",
        OUTCOME_HEAD "[1}}",
        OUTCOME_HEAD "1}} ",
        OUTCOME_HEAD " 1}}",
        OUTCOME_HEAD "1\n}}",
        OUTCOME_HEAD "\t[ ]\r}}",
        "{\"type\":\"response\",\"payload\":{\"job_id\":\"j\",\"request_id\":\"r\",\"status\":\"error\",\"result\":1}}",
        "{\"type\":\"response\",\"payload\":{\"job_id\":1,\"request_id\":\"r\",\"status\":\"success\",\"result\":1}}",
    };
    for (size_t i = 0; i < N_SUCCESSES; i++)
        if (!compare_success(ew_str_from(successes[i])))
            fail_msg("not taken: %s", successes[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (compare_success(ew_str_from(others[i])))
            fail_msg("taken: %s", others[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_rrq__known_good), cmocka_unit_test(test_wire_rrq__known_others),
        cmocka_unit_test(test_wire_rrq__known_changed), cmocka_unit_test(test_wire_rrq__known_successes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
