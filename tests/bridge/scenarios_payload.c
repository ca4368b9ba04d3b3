/*
 * tests/bridge/scenarios_payload.c: payloads cross byte for byte: large ones, and those that a parser would spoil.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/pairs.h"
#include "json/json.h"

static const char *const payloads[] = {
    "12345678901234567890123456789012345678901234567890",
    "-0",
    "1e400",
    "-1E-400",
    "1.0000000000000000000000001e-7",
    "{\"b\":1,\"a\":2,\"b\":3,\"\":{}}",
    "{\"z\":{\"y\":[],\"x\":{}},\"a\":null,\"a\":null}",
    "\"\\u00e4\\ud83d\\ude00\\u0000\\/\\n\\r\\t\\\"\"",
    "\"\xc3\xa4\xf0\x9f\x98\x80\x7f\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800x\"",
    "\"\\u2028\\u2029\xe2\x80\xa8\"",
    "[ 1 ,\t2 , { \"a\" : [ ] } ]",
    "[\n  1,\r\n  2\n\n,3]",
    "\"data: {\\\"result\\\":1}\"",
    "{\"error\":{\"code\":-32000},\"result\":1,\"jsonrpc\":\"2.0\",\"stream\":2}",
    "[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]",
};
#define N_PAYLOADS (sizeof payloads / sizeof *payloads)

/* What is left of it behind both wires: white space goes where frames are lines, some write no letters but ASCII. */
static void behind(const world *w, bool lines, const char *sent, char *out, size_t size) {
    ew__buf ascii;
    int n = (int)strlen(sent);
    assert_true((size_t)n < size);
    memcpy(out, sent, (size_t)n + 1);
    if (lines && strpbrk(sent, "\r\n"))
        n = ew_json_minify(ew_str_from(sent), out, size);
    out[n] = '\0';
    if (!w->near->ascii && !w->far->ascii)
        return;
    ew__buf_init(&ascii, ew_env_default(), SIZE_MAX / 2);
    assert_int_equal(ew__json_write_ascii(&ascii, ew_str_from(out)), EW_OK);
    assert_true(ascii.len < size);
    memcpy(out, ascii.ptr, ascii.len);
    out[ascii.len] = '\0';
    ew__buf_done(&ascii);
}

static void exotic(world *w) {
    bool lines = w->near->all_lines || w->far->all_lines, objects = w->near->objects || w->far->objects;
    outcome o = {.status = EW_STATUS_OK};
    for (size_t i = 0; i < N_PAYLOADS; i++) {
        char input[300], expected[600];
        (void)snprintf(input, sizeof input, "{\"v\":%s,\"w\":2,\"v\":0}", payloads[i]);
        behind(w, lines, input, expected, sizeof expected);
        ask(w, "/flow/echo", input, &o);
        must_be(&o, expected);
        if (objects)
            continue;
        behind(w, lines, payloads[i], expected, sizeof expected);
        ask(w, "/flow/echo", payloads[i], &o);
        must_be(&o, expected);
    }
    outcome_done(&o);
}

static void exotic_chunks(world *w) {
    bool lines = w->near->lines || w->far->lines;
    outcome o = {.status = EW_STATUS_OK};
    for (size_t i = 0; i < N_PAYLOADS; i++) {
        char input[300], expected[600];
        (void)snprintf(input, sizeof input, "{\"v\":[%s]}", payloads[i]);
        ask_stream(w, "/flow/say", input, &o);
        behind(w, lines, input, expected, sizeof expected);
        must_be(&o, expected);
        assert_int_equal(atomic_load(&o.n_chunks), 1);
        behind(w, lines, payloads[i], expected, sizeof expected);
        assert_string_equal(o.chunks[0], expected);
    }
    outcome_done(&o);
}

static void exotic_input(world *w) {
    outcome o = {.status = EW_STATUS_OK};
    char text[64];
    gathered all = {0};
    atomic_store(&seen.look, 1);
    ew_request *request =
        begin_on(w->caller, &(ew_request_options){.action = EW_STR("/flow/gather"), .input_stream = true}, &o);
    for (size_t i = 0; i < N_PAYLOADS; i++) {
        char expected[600];
        behind(w, w->near->all_lines || w->far->all_lines, payloads[i], expected, sizeof expected);
        gathered_add(&all, ew_str_from(expected));
        assert_true(ew_request_send(request, ew_str_from(payloads[i])) >= EW_OK);
    }
    assert_int_equal(ew_request_send_end(request), EW_OK);
    finish(request, &o);
    must_be(&o, gathered_text(&all, text));
    outcome_done(&o);
}

/* 1 MB there and back; 1 MB back. */
static void large(world *w) {
    enum { SIZE = 1024 * 1024 };
    static char text[SIZE + 1];
    outcome o = {.status = EW_STATUS_OK};
    for (size_t i = 0; i < SIZE; i++)
        text[i] = "0123456789abcdef"[(i * 7 + i / 251) % 16];
    memcpy(text, "{\"v\":\"", 6);
    memcpy(text + SIZE - 2, "\"}", 3);
    for (int i = 0; i < 3; i++) {
        ask(w, "/flow/echo", text, &o);
        assert_int_equal(o.status, EW_STATUS_OK);
        assert_int_equal(strlen(o.text), SIZE);
        assert_memory_equal(o.text, text, SIZE);
    }
    ask(w, "/flow/big", "{\"bytes\":1048576}", &o);
    assert_int_equal(o.status, EW_STATUS_OK);
    assert_int_equal(strlen(o.text), SIZE + 2);
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(o.text[i + 1], 'a' + i % 26);
    outcome_done(&o);
}

/* An input that one of the wires cannot carry is refused before anything runs. */
static void not_an_object(world *w) {
    static const char *const inputs[] = {"1", "\"text\"", "[{}]", "true", "[]"};
    outcome o = {.status = EW_STATUS_OK};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        ew_request_options options = {.action = EW_STR("/flow/echo"), .input = ew_str_from(inputs[i])};
        if (w->near->objects) {
            assert_int_equal(ew_client_call(w->caller, &options, NULL), EW_EUNSUPPORTED);
            continue;
        }
        ask_on(w->caller, &options, &o);
        if (w->far->objects)
            must_fail(&o, EW_STATUS_INVALID_ARGUMENT);
        else
            must_be(&o, inputs[i]);
    }
    outcome_done(&o);
}

/* ---- limits ---- */

static const char *brackets(size_t depth, char text[2 * EW_JSON_DEPTH + 1]) {
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    text[2 * depth] = '\0';
    return text;
}

static void ask_nested(const world *w, const char *as, size_t depth, outcome *o) {
    char input[80];
    (void)snprintf(input, sizeof input, "{\"depth\":%zu,\"as\":\"%s\"}", depth, as);
    if (strcmp(as, "chunk") == 0)
        ask_stream(w, "/flow/nested", input, o);
    else
        ask(w, "/flow/nested", input, o);
}

static void depth_out(const world *w, outcome *o) {
    char text[2 * EW_JSON_DEPTH + 1];
    ask_nested(w, "result", EW_PAYLOAD_DEPTH, o);
    must_be(o, brackets(EW_PAYLOAD_DEPTH, text));
    ask_nested(w, "result", EW_PAYLOAD_DEPTH + 1, o);
    must_fail(o, EW_STATUS_RESOURCE_EXHAUSTED);
    ask_nested(w, "details", EW_PAYLOAD_DEPTH, o);
    must_fail(o, EW_STATUS_ABORTED);
    assert_string_equal(o->details, text);
    ask_nested(w, "details", EW_PAYLOAD_DEPTH + 1, o);
    must_fail(o, EW_STATUS_ABORTED);
    if (!both_carry(w->near, w->far, EW__CAN_CHUNKS))
        return;
    ask_nested(w, "chunk", EW_PAYLOAD_DEPTH, o);
    must_be(o, "1");
    assert_string_equal(o->chunks[0], text);
    ask_nested(w, "chunk", EW_PAYLOAD_DEPTH + 1, o);
    must_fail(o, EW_STATUS_RESOURCE_EXHAUSTED);
}

static void depth_in(const world *w, outcome *o) {
    char text[2 * EW_JSON_DEPTH + 1], input[2 * EW_JSON_DEPTH + 16];
    (void)snprintf(input, sizeof input, "{\"v\":%s}", brackets(EW_PAYLOAD_DEPTH - 1, text));
    ask(w, "/flow/echo", input, o);
    must_be(o, input);
    (void)snprintf(input, sizeof input, "{\"v\":%s}", brackets(EW_PAYLOAD_DEPTH, text));
    ew_request_options options = {.action = EW_STR("/flow/echo"), .input = ew_str_from(input)};
    assert_int_equal(ew_client_call(w->caller, &options, NULL), EW_ELIMIT);
}

/* What is accepted by one wire fits the other; what is not costs its own call, and no other one on the connections. */
static void depth(world *w) {
    outcome o = {.status = EW_STATUS_OK}, other = {.status = EW_STATUS_OK};
    ew_request *request = begin_forever(w, &other, 0, false);
    depth_in(w, &o);
    depth_out(w, &o);
    assert_int_equal(seen_now(w, "running"), 1);
    ew_request_cancel(request);
    finish(request, &other);
    must_fail(&other, EW_STATUS_CANCELLED);
    seen_becomes(w, "running", 0);
    outcome_done(&other);
    outcome_done(&o);
}

/* Bytes likewise: a payload of the greatest size there and back; one byte more fails at its source. */
static void bytes(world *w) {
    enum { FRAME = 16 * 1024 * 1024, MOST = FRAME - EW_ENVELOPE_BYTES };
    outcome o = {.status = EW_STATUS_OK};
    char *text = malloc(MOST + 2), input[64];
    assert_non_null(text);
    memset(text, 'x', MOST + 1);
    memcpy(text, "{\"v\":\"", 6);
    memcpy(text + MOST - 2, "\"}", 3);
    ask(w, "/flow/echo", text, &o);
    assert_int_equal(o.status, EW_STATUS_OK);
    assert_string_equal(o.text, text);
    memcpy(text + MOST - 2, "x\"}", 4);
    ask(w, "/flow/echo", text, &o);
    must_fail(&o, EW_STATUS_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(o.text, "16711680"));
    (void)snprintf(input, sizeof input, "{\"bytes\":%d}", MOST + 1);
    ask(w, "/flow/nested", input, &o);
    must_fail(&o, EW_STATUS_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(o.text, "16711680"));
    free(text);
    outcome_done(&o);
}

const scenario scenarios_payload[] = {
    {.name = "exotic", .run = exotic},
    {.name = "exotic_chunks", .run = exotic_chunks, .near_needs = EW__CAN_CHUNKS, .far_needs = EW__CAN_CHUNKS},
    {.name = "exotic_input", .run = exotic_input, .near_needs = EW__CAN_INPUT, .far_needs = EW__CAN_INPUT},
    {.name = "large", .run = large},
    {.name = "not_an_object", .run = not_an_object},
    {.name = "depth", .run = depth},
    {.name = "bytes", .run = bytes},
    {.name = NULL},
};
