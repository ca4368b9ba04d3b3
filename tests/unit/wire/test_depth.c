/*
 * tests/unit/wire/test_depth.c: the fast paths of all wires around the limit of a payload's depth: what a
 * fast path accepts, the general path accepts too, and a payload at the limit fits every envelope.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/json.h"
#include "wire/http/codec.h"
#include "wire/jsonrpc_envelope.h"
#include "wire/reflection/codec.h"
#include "wire/rrq/codec.h"
#include "wire/stepflow/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define ID "\"id-1\""
#define TRACE "00000000000000000000000000000001"
#define PARENT "00-" TRACE "-0000000000000001-01"

static bool http_answer(ew_str text) {
    ew__arena memory;
    ew__http_said said;
    ew__arena_init(&memory, ew_env_default(), NULL, 0);
    ew__http_read_answer(&memory, 200, text, &said);
    ew__arena_done(&memory);
    return said.meaning == EW__HTTP_RESULT && (!said.deep || ew__json_is_payload(said.payload));
}

static bool http_block(ew_str text) {
    ew__arena memory;
    ew__http_said said;
    ew__arena_init(&memory, ew_env_default(), NULL, 0);
    ew__http_read_block(&memory, text, false, &said);
    ew__arena_done(&memory);
    return said.meaning == EW__HTTP_CHUNK && (!said.deep || ew__json_is_payload(said.payload));
}

static bool rpc_result(ew_str text) {
    ew_str id, result;
    return ew__rpc_is_result(text, &id, &result);
}

static bool rpc_frame(ew_str text) {
    ew_str data;
    return ew__rpc_is_data_frame(text, EW_STR(ID), &data);
}

static bool reflection_chunk(ew_str text) {
    ew_str chunk;
    return ew__rf_is_chunk(text, EW_STR(ID), &chunk);
}

static bool reflection_simple_chunk(ew_str text) {
    ew_str chunk;
    return ew__rf_is_simple_chunk(text, EW_STR(ID), &chunk);
}

static bool reflection_run(ew_str text) {
    ew_str id, params;
    ew__rf_run run;
    return ew__rf_is_run(text, &id, &params, &run);
}

static bool reflection_result(ew_str text) {
    ew_str id;
    ew__rf_result result;
    return ew__rf_is_result(text, &id, &result);
}

static bool stepflow_output(ew_str text) {
    ew_str output;
    return ew__sf_read_output(text, EW_STR(ID), &output);
}

static bool rrq_request(ew_str text) {
    ew__rrq_request request;
    return ew__rrq_read_known(text, &request);
}

static bool rrq_success(ew_str text) {
    ew__rrq_ids ids;
    ew_str result;
    return ew__rrq_read_known_success(text, &ids, &result);
}

#define RPC "{\"jsonrpc\":\"2.0\","
#define RRQ_IDS "\"request_id\":\"r\",\"job_id\":\"j\",\"function_name\":\"f\","

static const struct path {
    const char *name;
    bool (*takes)(ew_str text);
    const char *before, *behind; /* the value */
    int levels;                  /* of containers around it */
    bool any_size;               /* takes every valid text of this form, also a long one */
} paths[] = {
    {"http answer", http_answer, "{\"result\":", "}", 1, true},
    {"http block", http_block, "{\"message\":", "}", 1, true},
    {"jsonrpc result", rpc_result, RPC "\"id\":" ID ",\"result\":", "}", 1, false},
    {"jsonrpc frame", rpc_frame, RPC "\"id\":" ID ",\"stream\":2,\"data\":", "}", 1, false},
    {"reflection chunk", reflection_chunk,
     RPC "\"method\":\"streamChunk\",\"params\":{\"requestId\":" ID ",\"chunk\":", "}}", 2, false},
    {"reflection simple chunk", reflection_simple_chunk,
     RPC "\"method\":\"streamChunk\",\"params\":{\"requestId\":" ID ",\"chunk\":", "}}", 2, false},
    {"reflection run", reflection_run,
     RPC "\"method\":\"runAction\",\"params\":{\"key\":\"/a\",\"traceparent\":\"" PARENT "\",\"input\":",
     "},\"id\":" ID "}", 2, false},
    {"reflection result", reflection_result,
     RPC "\"result\":{\"result\":", ",\"telemetry\":{\"traceId\":\"" TRACE "\"}},\"id\":" ID "}", 2, false},
    {"stepflow output", stepflow_output, RPC "\"id\":" ID ",\"result\":{\"output\":", "}}", 2, false},
    {"rrq request", rrq_request, "{\"type\":\"request\",\"payload\":{\"protocol_version\":\"2\"," RRQ_IDS "\"params\":",
     ",\"context\":{\"job_id\":\"j\",\"attempt\":1,\"enqueue_time\":\"2026-03-01T10:00:00Z\","
     "\"queue_name\":\"q\"}}}",
     2, true},
    {"rrq success", rrq_success,
     "{\"type\":\"response\",\"payload\":{\"job_id\":\"j\",\"request_id\":\"r\",\"status\":\"success\","
     "\"result\":",
     "}}", 2, true},
};

/* An object in which that many containers nest (itself included), with a string of `pad` bytes. */
static void write_value(FILE *out, int depth, bool objects, int pad) {
    (void)fprintf(out, "{\"p\":\"%*s\",\"a\":", pad, "");
    for (int d = 1; d < depth; d++)
        (void)fputs(objects ? "{\"a\":" : "[", out);
    (void)fputs("1", out);
    for (int d = 1; d < depth; d++)
        (void)fputs(objects ? "}" : "]", out);
    (void)fputs("}", out);
}

static void check_depth(const struct path *path, int depth, bool objects, int pad) {
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    (void)fputs(path->before, out);
    write_value(out, depth, objects, pad);
    (void)fputs(path->behind, out);
    assert_int_equal(fclose(out), 0);
    ew__json_doc doc;
    bool valid = ew__json_parse(&doc, ew__str(text, n)) == EW_OK;
    bool taken = path->takes(ew__str(text, n));
    assert_int_equal(valid, depth + path->levels <= EW_JSON_DEPTH);
    if (depth <= EW_PAYLOAD_DEPTH)
        assert_true(valid);
    if (valid)
        assert_int_equal(doc.deep, depth + path->levels > EW_PAYLOAD_DEPTH);
    bool good = depth <= EW_PAYLOAD_DEPTH;
    if (taken != good && (taken || path->any_size || depth < 4))
        fail_msg("%s: depth %d, pad %d: within the limit %d, taken %d", path->name, depth, pad, good, taken);
    free(text);
}

static void test_wire_depth__fast_paths(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        check_depth(&paths[i], 1, true, 0); /* the form itself is one that the fast path takes */
        for (int depth = EW_PAYLOAD_DEPTH - 4; depth <= EW_JSON_DEPTH + 3; depth++) {
            for (int pad = 0; pad <= 300; pad += 75) {
                check_depth(&paths[i], depth, false, pad);
                check_depth(&paths[i], depth, true, pad);
            }
        }
    }
}

static void test_wire_depth__payload(void **state) {
    (void)state;
    char text[2 * EW_JSON_DEPTH + 1];
    for (int depth = 1; depth <= EW_JSON_DEPTH; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        ew_str value = ew__str(text, 2 * (size_t)depth);
        ew_err err = depth <= EW_PAYLOAD_DEPTH ? EW_OK : EW_ELIMIT;
        assert_int_equal(ew__json_is_payload(value), err == EW_OK);
        assert_int_equal(ew_json_check(value, NULL), err);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_depth__fast_paths),
        cmocka_unit_test(test_wire_depth__payload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
