/*
 * wire/reflection/known.c: the two messages that a runtime sends for each call, told by their bytes: as our own runtimes
 * write them, with a trace id of 32 plain characters. Nothing of them is parsed but the result. A text that differs in
 * one byte is read in the ordinary way, so what is accepted here must be the same there (tests hold one against the
 * other).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/reflection/codec.h"

#define TRACE_LEN 32

#define STATE_HEAD EW_STR("{\"jsonrpc\":\"2.0\",\"method\":\"runActionState\",\"params\":{\"requestId\":")
#define STATE_MIDDLE EW_STR(",\"state\":{\"traceId\":\"")
#define STATE_END EW_STR("\"}}}")

#define RESULT_HEAD EW_STR("{\"jsonrpc\":\"2.0\",\"result\":{\"result\":")
#define RESULT_TRACE EW_STR(",\"telemetry\":{\"traceId\":\"")
#define RESULT_ID EW_STR("\"}},\"id\":")

static bool stands(const char *at, ew_str text) { return memcmp(at, text.ptr, text.len) == 0; }

bool ew__rf_is_state(ew_str text, ew_str *ret_id, ew_str *ret_trace) {
    const ew_str head = STATE_HEAD, middle = STATE_MIDDLE, end = STATE_END;
    size_t others = head.len + middle.len + TRACE_LEN + end.len;
    if (text.len < others + 2 || !stands(text.ptr, head))
        return false;
    const char *id = text.ptr + head.len, *behind = id + text.len - others;
    *ret_id = ew__str(id, (size_t)(behind - id));
    *ret_trace = ew__str(behind + middle.len, TRACE_LEN);
    return stands(behind, middle) && stands(ret_trace->ptr + TRACE_LEN, end) && id[0] == '"' &&
           ew__json_is_plain(ew__str(id + 1, ret_id->len - 2)) && behind[-1] == '"' && ew__json_is_plain(*ret_trace);
}

bool ew__rf_is_result(ew_str text, ew_str *ret_id, ew__rf_result *ret) {
    const ew_str head = RESULT_HEAD, trace = RESULT_TRACE, before_id = RESULT_ID;
    size_t others = head.len + trace.len + TRACE_LEN + before_id.len;
    if (text.len < others + 4 || !stands(text.ptr, head) || !stands(text.ptr + text.len - 2, EW_STR("\"}")))
        return false;
    const char *id = memrchr(text.ptr, '"', text.len - 2); /* there is one in the head */
    if ((size_t)(id - text.ptr) <= others)
        return false;
    size_t id_len = text.len - 1 - (size_t)(id - text.ptr), behind = trace.len + TRACE_LEN + before_id.len + id_len + 1;
    *ret_id = ew__str(id, id_len);
    ret->trace_id = ew__str(id - before_id.len - TRACE_LEN, TRACE_LEN);
    return stands(id - before_id.len, before_id) && stands(ret->trace_id.ptr - trace.len, trace) &&
           ew__json_is_plain(ew__str(id + 1, id_len - 2)) && ew__json_is_plain(ret->trace_id) &&
           ew__json_value_between(text, head.len, behind, &ret->result);
}
