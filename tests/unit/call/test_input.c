/*
 * tests/unit/call/test_input.c: a handler reads its input: decoded, typed, and never a default for a value that was sent.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/call/world.h"

typedef struct record {
    unsigned n_ends;
    ew_status status;
    char text[400]; /* the result, or the fault's message */
} record;

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

static void on_end(ew_call *call, const ew__end *end) {
    record *rec = call->caller_ud;
    ew_str text = end->status == EW_STATUS_OK ? end->result : end->fault.message;
    rec->n_ends++;
    rec->status = end->status;
    (void)snprintf(rec->text, sizeof rec->text, "%.*s", (int)text.len, text.ptr);
    ew__call_release(call);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};

static void greet(ew_call *call, void *arg) {
    ew_str name = EW_STR("world");
    (void)arg;
    if (ew_call_input_str(call, "/name", &name))
        (void)ew_call_donef(call, "%q", name);
}

static void whole(ew_call *call, void *arg) {
    ew_str text = EW_STR("none");
    (void)arg;
    if (ew_call_input_str(call, "", &text))
        (void)ew_call_donef(call, "%q", text);
}

static void count(ew_call *call, void *arg) {
    int64_t n = 10;
    (void)arg;
    if (ew_call_input_int(call, "/n", &n))
        (void)ew_call_donef(call, "%d", n);
}

static void share(ew_call *call, void *arg) {
    double part = 0.5;
    (void)arg;
    if (ew_call_input_double(call, "/a/0", &part))
        (void)ew_call_donef(call, "%g", part);
}

static void flag(ew_call *call, void *arg) {
    bool on = true;
    (void)arg;
    if (ew_call_input_bool(call, "/on", &on))
        (void)ew_call_donef(call, "%b", on);
}

static ew__registry registry;

static record run(world *w, const char *key, ew_str input) {
    record rec = {0};
    ew__action *action = NULL;
    ew_call *call = ew__call_new(&w->executor, &caller, &rec);
    assert_non_null(call);
    assert_int_equal(ew__actions_find(registry.current, ew_str_from(key), &action), EW_OK);
    call->input = input;
    ew__call_open(call, action);
    assert_int_equal(rec.n_ends, 1);
    return rec;
}

static void add(const char *key, ew_handler_fn handler) {
    assert_int_equal(ew__registry_add(&registry, key, &ew__local_callee, NULL, handler, NULL, NULL), EW_OK);
}

static void begin(world *w) {
    world_init(w, 1);
    assert_int_equal(ew__registry_init(&registry, &w->env.env), EW_OK);
    add("/t/greet", greet);
    add("/t/whole", whole);
    add("/t/count", count);
    add("/t/share", share);
    add("/t/flag", flag);
}

static void finish(world *w) {
    ew__registry_done(&registry);
    world_done(w);
}

static void check_done(world *w, const char *key, const char *input, const char *result) {
    record rec = run(w, key, ew_str_from(input));
    if (rec.status != EW_STATUS_OK || strcmp(rec.text, result) != 0)
        fail_msg("%s of %s: %s %s instead of %s", key, input, ew_status_name(rec.status), rec.text, result);
}

static void check_refused(world *w, const char *key, const char *input, const char *message) {
    record rec = run(w, key, ew_str_from(input));
    if (rec.status != EW_STATUS_INVALID_ARGUMENT || strcmp(rec.text, message) != 0)
        fail_msg("%s of %s: %s %s instead of %s", key, input, ew_status_name(rec.status), rec.text, message);
}

static void test_call_input__text(void **state) {
    (void)state;
    world w;
    begin(&w);
    check_done(&w, "/t/greet", "{\"name\":\"Ada\"}", "\"Ada\"");
    check_done(&w, "/t/greet", "{\"name\":\"Jos\\u00e9\"}", "\"Jos\xc3\xa9\"");
    check_done(&w, "/t/greet", "{\"name\":\"Jos\xc3\xa9\"}", "\"Jos\xc3\xa9\"");
    check_done(&w, "/t/greet", "{\"name\":\"\\\"Bob\\\"\"}", "\"\\\"Bob\\\"\"");
    check_done(&w, "/t/greet", "{\"name\":\"\\ud83d\\ude00\"}", "\"\xf0\x9f\x98\x80\"");
    check_done(&w, "/t/greet", "{\"name\":\"a\\u0000b\"}", "\"a\\u0000b\"");
    check_done(&w, "/t/greet", "{\"n\\u0061me\":\"\"}", "\"\"");
    check_done(&w, "/t/greet", "{}", "\"world\"");
    check_done(&w, "/t/greet", "null", "\"world\"");
    check_done(&w, "/t/whole", "\"x\\ty\"", "\"x\\ty\"");
    finish(&w);
}

static void test_call_input__other_types(void **state) {
    (void)state;
    world w;
    begin(&w);
    check_refused(&w, "/t/greet", "{\"name\":5}", "input /name: expected a string, got a number");
    check_refused(&w, "/t/greet", "{\"name\":null}", "input /name: expected a string, got null");
    check_refused(&w, "/t/greet", "{\"name\":\"\\ud800\"}",
                  "input /name: expected a string, got one with an unpaired surrogate");
    check_refused(&w, "/t/greet", "\"Ada\"", "input: expected an object, got a string");
    check_refused(&w, "/t/greet", "[\"Ada\"]", "input: expected an object, got an array");
    check_refused(&w, "/t/whole", "null", "input: expected a string, got null");
    check_refused(&w, "/t/count", "{\"n\":\"5\"}", "input /n: expected an integer, got a string");
    check_refused(&w, "/t/count", "{\"n\":9223372036854775808}",
                  "input /n: expected an integer of 64 bits, got a number");
    check_refused(&w, "/t/count", "{\"n\":1.5}", "input /n: expected an integer of 64 bits, got a number");
    check_refused(&w, "/t/share", "{\"a\":[1e999]}",
                  "input /a/0: expected a number within the range of a double, got a number");
    check_refused(&w, "/t/share", "{\"a\":true}", "input /a: expected an object or an array, got a boolean");
    check_refused(&w, "/t/flag", "{\"on\":0}", "input /on: expected a boolean, got a number");
    finish(&w);
}

static void test_call_input__numbers_and_flags(void **state) {
    (void)state;
    world w;
    begin(&w);
    check_done(&w, "/t/count", "{\"n\":-9223372036854775808}", "-9223372036854775808");
    check_done(&w, "/t/count", "{\"n\":9223372036854775807}", "9223372036854775807");
    check_done(&w, "/t/count", "{\"m\":1}", "10");
    check_done(&w, "/t/share", "{\"a\":[0.25]}", "0.25");
    check_done(&w, "/t/share", "{\"a\":[]}", "0.5");
    check_done(&w, "/t/share", "{\"a\":null}", "0.5");
    check_done(&w, "/t/share", "{}", "0.5");
    check_done(&w, "/t/flag", "{\"on\":false}", "false");
    check_done(&w, "/t/flag", "{}", "true");
    finish(&w);
}

/* The text does not fit into the call's own memory, and no other memory is available. */
static void test_call_input__no_memory(void **state) {
    (void)state;
    world w;
    begin(&w);
    static char input[300000];
    size_t n = (size_t)snprintf(input, sizeof input, "{\"name\":\"\\n");
    memset(input + n, 'x', sizeof input - n);
    memcpy(input + sizeof input - 2, "\"}", 2);
    record rec = {0};
    ew__action *action = NULL;
    ew_call *call = ew__call_new(&w.executor, &caller, &rec);
    assert_non_null(call);
    assert_int_equal(ew__actions_find(registry.current, EW_STR("/t/greet"), &action), EW_OK);
    call->input = ew__str(input, sizeof input);
    ew__test_env_fail_at(&w.env, 1, true);
    ew__call_open(call, action);
    ew__test_env_fail_at(&w.env, 0, false);
    assert_int_equal(rec.n_ends, 1);
    assert_int_equal(rec.status, EW_STATUS_RESOURCE_EXHAUSTED);
    finish(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_input__text),
        cmocka_unit_test(test_call_input__other_types),
        cmocka_unit_test(test_call_input__numbers_and_flags),
        cmocka_unit_test(test_call_input__no_memory),
    };
    return cmocka_run_group_tests_name("call_input", tests, NULL, NULL);
}
