/*
 * wire/reflection/known.c: the messages of most calls between two of us, told by their bytes: the request as our own
 * managers write it, and the two that a runtime sends for it, with a trace id of 32 plain characters. Nothing of them is
 * parsed but the input and the result. A text that differs in one byte is read in the ordinary way, so what is accepted
 * here must be the same there (tests hold one against the other).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/hops.h"
#include "wire/reflection/codec.h"

#define TRACE_LEN 32
#define RUN_MAX ((size_t)2048) /* longer ones cost more for themselves than for what is around them */

#define STATE_HEAD EW_STR("{\"jsonrpc\":\"2.0\",\"method\":\"runActionState\",\"params\":{\"requestId\":")
#define STATE_MIDDLE EW_STR(",\"state\":{\"traceId\":\"")
#define STATE_END EW_STR("\"}}}")

#define RESULT_HEAD EW_STR("{\"jsonrpc\":\"2.0\",\"result\":{\"result\":")
#define RESULT_TRACE EW_STR(",\"telemetry\":{\"traceId\":\"")
#define RESULT_ID EW_STR("\"}},\"id\":")

#define RUN_HEAD EW_STR("{\"jsonrpc\":\"2.0\",\"method\":\"runAction\",\"params\":{\"key\":\"")
#define RUN_PARENT EW_STR("\",\"traceparent\":\"")
#define RUN_HOPS EW_STR("\",\"everywireHops\":")
#define RUN_INPUT EW_STR(",\"input\":")
#define RUN_CONTEXT EW_STR(",\"context\":")
#define RUN_ID EW_STR("},\"id\":")
#define RUN_PARAMS EW_STR("{\"key\":\"")

/* Plain ASCII that stands in a string as it is, as ew__json_is_plain says; of a length that compilers make few steps of. */
static bool is_plain_32(const char *at) {
    uint8_t bad = 0;
    for (int i = 0; i < 32; i++) {
        uint8_t c = (uint8_t)at[i];
        bad |= (uint8_t)((c < 0x20) | (c > 0x7e) | (c == '"') | (c == '\\'));
    }
    return bad == 0;
}

/* Keys and ids are short: what is not there of 32 is as good as plain. */
bool ew__rf_is_plain(ew_str text) {
    char padded[32] = "00000000000000000000000000000000";
    if (EW__UNLIKELY(text.len > sizeof padded))
        return ew__json_is_plain(text);
    memcpy(padded, text.ptr, text.len);
    return is_plain_32(padded);
}

static bool stands(const char *at, ew_str text) { return memcmp(at, text.ptr, text.len) == 0; }

bool ew__rf_is_state(ew_str text, ew_str *ret_id, ew_str *ret_trace) {
    const ew_str head = STATE_HEAD, middle = STATE_MIDDLE, end = STATE_END;
    size_t others = head.len + middle.len + TRACE_LEN + end.len;
    if (text.len < others + 2 || !stands(text.ptr, head))
        return false;
    const char *id = text.ptr + head.len, *behind = id + text.len - others;
    *ret_id = ew__str(id, (size_t)(behind - id));
    *ret_trace = ew__str(behind + middle.len, TRACE_LEN);
    return stands(behind, middle) && stands(ret_trace->ptr + TRACE_LEN, end) && is_plain_32(ret_trace->ptr);
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
           is_plain_32(ret->trace_id.ptr) && ew__json_value_between(text, head.len, behind, &ret->result);
}

/* Passes over the text, if it stands there. */
static bool pass(const char **at, const char *end, ew_str text) {
    if (end - *at < (ptrdiff_t)text.len || !stands(*at, text))
        return false;
    *at += text.len;
    return true;
}

/* A number that JSON allows, of few digits. */
static bool pass_hops(const char **at, const char *end, ew_str *ret) {
    const char *from = *at;
    while (*at < end && **at >= '0' && **at <= '9')
        (*at)++;
    *ret = ew__str(from, (size_t)(*at - from));
    return ret->len > 0 && ret->len <= 3 && *from != '0';
}

/* `","traceparent":"..."`, with the number of hops or without: what stands between the key and the input. */
static bool pass_between(const char **at, const char *end, ew__rf_run *ret) {
    ew_str hops = EW_STR("");
    if (!pass(at, end, RUN_PARENT) || end - *at <= EW__TRACEPARENT_LEN || !is_plain_32(*at) ||
        !is_plain_32(*at + EW__TRACEPARENT_LEN - 32))
        return false;
    ret->traceparent = ew__str(*at, EW__TRACEPARENT_LEN);
    *at += EW__TRACEPARENT_LEN;
    if (pass(at, end, RUN_HOPS) ? !pass_hops(at, end, &hops) : !pass(at, end, EW_STR("\"")))
        return false;
    ret->hops = ew__hops_read(hops);
    return true;
}

/* Where the context may begin; NULL: nowhere. */
static const char *find_context(const char *at, const char *end) {
    const ew_str name = RUN_CONTEXT;
    while ((at = memchr(at, ',', (size_t)(end - at))) && (end - at < (ptrdiff_t)name.len || !stands(at, name)))
        at++;
    return at;
}

/*
 * The payloads, from `at` to `end`: an input, or that and a context. The input may have in it what the context begins
 * with: then the part before that is no value, and the text is read in the ordinary way.
 */
static bool take_payloads(ew_str text, const char *at, const char *end, ew__rf_run *ret) {
    const char *context = find_context(at, end), *text_end = text.ptr + text.len;
    size_t before = (size_t)(at - text.ptr), behind = (size_t)(text_end - end);
    ret->init = ret->context = ret->labels = ew__str(NULL, 0);
    ret->stream = ret->stream_input = false;
    if (!context)
        return ew__json_value_between(text, before, behind, &ret->input);
    return ew__json_value_between(text, before, (size_t)(text_end - context), &ret->input) &&
           ew__json_value_between(text, (size_t)(context - text.ptr) + RUN_CONTEXT.len, behind, &ret->context) &&
           ret->context.ptr[0] != 'n'; /* a null is none */
}

bool ew__rf_is_run(ew_str text, ew_str *ret_id, ew_str *ret_params, ew__rf_run *ret) {
    const ew_str head = RUN_HEAD, before_id = RUN_ID;
    if (text.len < head.len + before_id.len + 4 || text.len > RUN_MAX || !stands(text.ptr, head))
        return false;
    const char *key = text.ptr + head.len, *end = text.ptr + text.len;
    const char *at = memchr(key, '"', text.len - head.len);
    ret->key = ew__str(key, at ? (size_t)(at - key) : 0);
    if (ret->key.len == 0 || !pass_between(&at, end, ret) || !pass(&at, end, RUN_INPUT) ||
        !stands(end - 2, EW_STR("\"}")))
        return false;
    const char *id = memrchr(text.ptr, '"', text.len - 2),
               *params = key - RUN_PARAMS.len; /* there is one in the head */
    *ret_id = ew__str(id, (size_t)(end - 1 - id));
    end = id - before_id.len; /* of the payloads */
    if (end <= at || !stands(end, before_id))
        return false;
    *ret_params = ew__str(params, (size_t)(end + 1 - params));
    return ew__rf_is_plain(ret->key) && ew__rf_is_plain(ew__str(id + 1, ret_id->len - 2)) &&
           take_payloads(text, at, end, ret);
}
