/*
 * tests/unit/wire/test_rrq_known.c: the quick way to read a request held against the ordinary one: whatever it accepts,
 * the other accepts with the same values.
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
};
#define N_GOOD (sizeof good / sizeof *good)

static bool same_slice(ew_str a, ew_str b) { return a.len == b.len && (a.len == 0 || a.ptr == b.ptr); }

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
    return true;
}

static void test_wire_rrq__known_good(void **state) {
    (void)state;
    for (size_t i = 0; i < N_GOOD; i++)
        if (!compare(ew_str_from(good[i])))
            fail_msg("not taken: %s", good[i]);
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
static void test_wire_rrq__known_changed(void **state) {
    (void)state;
    static const char bytes[] = "\"\\{}[]:,0123456789ntef \t-+.Zz\x01\x7f\xc3\xa9";
    uint64_t chance = 88172645463325252u;
    size_t taken = 0;
    for (int round = 0; round < 60000; round++) {
        char text[1200];
        const char *from = good[(size_t)round % N_GOOD];
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
        taken += compare(ew__str(exact, n));
        free(exact);
    }
    assert_true(taken > 10000 && taken < 50000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wire_rrq__known_good),
                                       cmocka_unit_test(test_wire_rrq__known_others),
                                       cmocka_unit_test(test_wire_rrq__known_changed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
