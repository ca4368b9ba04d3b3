/*
 * tests/unit/call/test_contract.c: calls of an action with schemas: what does not fit is refused, and how.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/call/world.h"

#include "json/json.h"

typedef struct book {
    ew_call *call;
    unsigned n_accepted, n_opens, n_chunks, n_ends, n_cancels;
    ew_status status;
    ew_origin origin;
    char message[256], details[1024];
} book;

static void on_accepted(ew_call *call) { ((book *)call->caller_ud)->n_accepted++; }

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)json;
    ((book *)call->caller_ud)->n_chunks++;
    return EW_OK;
}

static void on_end(ew_call *call, const ew__end *end) {
    book *b = call->caller_ud;
    b->n_ends++;
    b->status = end->status;
    b->origin = end->origin;
    (void)snprintf(b->message, sizeof b->message, "%.*s", (int)end->fault.message.len, end->fault.message.ptr);
    (void)snprintf(b->details, sizeof b->details, "%.*s", (int)end->fault.details.len, end->fault.details.ptr);
}

static const ew__caller_ops caller = {.accepted = on_accepted, .chunk = on_chunk, .end = on_end};

static void on_open(ew_call *call) { ((book *)call->caller_ud)->n_opens++; }

static void on_cancel(ew_call *call, ew__cancel_why why) {
    (void)why;
    ((book *)call->caller_ud)->n_cancels++;
}

static const ew__callee_ops callee = {.open = on_open, .cancel = on_cancel};

static void no_handler(ew_call *call, void *arg) {
    (void)call;
    (void)arg;
}

static const ew_action_options all = {.input_schema =
                                          "{\"properties\":{\"n\":{\"type\":\"integer\"}},\"type\":\"object\"}",
                                      .output_schema = "{\"type\":\"string\"}",
                                      .stream_schema = "{\"maximum\":3}"};

typedef struct stage {
    world w;
    ew__registry registry;
    ew__action *action;
    book book;
} stage;

static void stage_open(stage *s, const ew_action_options *options, const char *input, bool has_input) {
    memset(s, 0, sizeof *s);
    world_init(&s->w, 1);
    assert_int_equal(ew__registry_init(&s->registry, ew_env_default()), EW_OK);
    assert_int_equal(ew__registry_add(&s->registry, "/t/x", &callee, NULL, no_handler, NULL, options), EW_OK);
    ew__actions *actions = ew__registry_get(&s->registry);
    assert_int_equal(ew__actions_find(actions, EW_STR("x"), &s->action), EW_OK);
    ew_call *call = ew__call_new(&s->w.executor, &caller, &s->book);
    s->book.call = call;
    call->wants_chunks = true;
    call->has_input = has_input;
    if (input)
        call->input = ew_str_from(input);
    ew__call_open(call, s->action);
    ew__actions_unref(actions);
}

static void stage_close(stage *s) {
    if (s->book.call->callee_open) /* the handler still owes its end */
        (void)ew_call_fail(s->book.call, EW_STATUS_CANCELLED, NULL);
    ew__call_release(s->book.call);
    ew__registry_done(&s->registry);
    world_done(&s->w);
}

static void test_call_contract__input(void **state) {
    static const struct {
        const char *input;
        bool has_input, ok;
        const char *message;
    } rows[] = {
        {"{\"n\":1}", false, true, ""},
        {"{\"n\":\"secret\"}", false, false, "input does not match its schema: /n: expected integer, got string"},
        {NULL, false, false, "input does not match its schema: expected object, got null"}, /* absent */
        {"null", true, true, ""},                                                           /* it comes as a stream */
        {"7", true, false, "input does not match its schema: expected object, got integer"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stage s;
        stage_open(&s, &all, rows[i].input, rows[i].has_input);
        assert_int_equal(s.book.n_opens, rows[i].ok);
        assert_int_equal(s.book.n_accepted, rows[i].ok); /* nothing was promised */
        assert_int_equal(s.book.n_ends, !rows[i].ok);
        if (!rows[i].ok) {
            assert_int_equal(s.book.status, EW_STATUS_INVALID_ARGUMENT);
            assert_string_equal(s.book.message, rows[i].message);
            assert_int_equal(ew__json_validate(ew_str_from(s.book.details), NULL), EW_OK);
            assert_null(strstr(s.book.details, "secret"));
        }
        stage_close(&s);
    }
}

static void test_call_contract__result(void **state) {
    stage s;
    (void)state;
    stage_open(&s, &all, "{}", false);
    assert_int_equal(ew_call_done(s.book.call, EW_STR("\"fine\"")), EW_OK);
    assert_int_equal(s.book.status, EW_STATUS_OK);
    stage_close(&s);
    stage_open(&s, &all, "{}", false);
    assert_int_equal(ew_call_donef(s.book.call, "{\"a\":%d}", 1), EW_ETYPE);
    assert_int_equal(s.book.n_ends, 1);
    assert_int_equal(s.book.status, EW_STATUS_INTERNAL);
    assert_string_equal(s.book.message, "the action's result does not match its schema: expected string, got object");
    assert_string_equal(s.book.details, "{\"errors\":[{\"path\":\"\",\"keyword\":\"type\",\"schema_path\":\"/type\","
                                        "\"message\":\"expected string, got object\"}]}");
    assert_int_equal(ew_call_done(s.book.call, EW_STR("1")), EW_EENDED);
    stage_close(&s);
}

static void test_call_contract__chunks(void **state) {
    stage s;
    (void)state;
    stage_open(&s, &all, "{}", false);
    assert_int_equal(ew_call_chunk(s.book.call, EW_STR("3")), EW_OK);
    assert_int_equal(ew_call_chunk(s.book.call, EW_STR("4")), EW_ETYPE);
    assert_int_equal(s.book.n_chunks, 1);
    assert_int_equal(s.book.n_ends, 1);
    assert_int_equal(s.book.n_cancels, 1); /* the handler is told to stop, and owes its end */
    assert_int_equal(s.book.status, EW_STATUS_INTERNAL);
    assert_string_equal(s.book.message, "a chunk of the action does not match its schema: must be at most 3");
    assert_int_equal(ew_call_chunk(s.book.call, EW_STR("1")), EW_ECANCELLED);
    stage_close(&s);
}

static void test_call_contract__unchecked(void **state) {
    ew_action_options options = all;
    stage s;
    (void)state;
    options.unchecked_output = true;
    stage_open(&s, &options, "{}", false);
    assert_int_equal(ew_call_chunk(s.book.call, EW_STR("4")), EW_OK);
    assert_int_equal(ew_call_done(s.book.call, EW_STR("4")), EW_OK);
    assert_int_equal(s.book.status, EW_STATUS_OK);
    stage_close(&s);
    stage_open(&s, &options, "1", false);
    assert_int_equal(s.book.status, EW_STATUS_INVALID_ARGUMENT); /* the input is */
    stage_close(&s);
}

/* What says nothing costs nothing. */
static void test_call_contract__open_schemas(void **state) {
    stage s;
    (void)state;
    stage_open(
        &s, &(ew_action_options){.input_schema = "{}", .output_schema = "true", .stream_schema = "{\"title\":\"x\"}"},
        "1", false);
    assert_null(s.action->contract.input);
    assert_null(s.action->contract.output);
    assert_null(s.action->contract.chunk);
    stage_close(&s);
}

static void test_call_contract__refused(void **state) {
    char why[300];
    const ew_env *env = ew_env_default();
    (void)state;
    assert_false(ew__contract_say(env, NULL, why, sizeof why));
    assert_false(ew__contract_say(env, &all, why, sizeof why));
    assert_true(
        ew__contract_say(env, &(ew_action_options){.output_schema = "{\"items\":{\"type\":1}}"}, why, sizeof why));
    assert_string_equal(why, "output_schema: /items/type: a type is one of null, boolean, number, integer, string, "
                             "array, object");
    assert_true(ew__contract_say(env, &(ew_action_options){.stream_schema = "{"}, why, sizeof why));
    assert_string_equal(why, "stream_schema: the schema is not valid JSON");
}

/* Too many steps are an error of their own: nobody knows whether it fits. */
static void test_call_contract__limit(void **state) {
    static const char schema[] = "{\"$dynamicAnchor\":\"a\",\"$dynamicRef\":\"#a\"}";
    stage s;
    (void)state;
    stage_open(&s, &(ew_action_options){.input_schema = schema}, "1", false);
    assert_int_equal(s.book.status, EW_STATUS_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(s.book.message, "within the limits"));
    stage_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_contract__input),        cmocka_unit_test(test_call_contract__result),
        cmocka_unit_test(test_call_contract__chunks),       cmocka_unit_test(test_call_contract__unchecked),
        cmocka_unit_test(test_call_contract__open_schemas), cmocka_unit_test(test_call_contract__refused),
        cmocka_unit_test(test_call_contract__limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
