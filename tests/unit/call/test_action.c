/*
 * tests/unit/call/test_action.c: keys, names, versions of the list.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/call.h"
#include "json/json.h"
#include "support/fail_env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void handler(ew_call *call, void *arg) {
    (void)call;
    (void)arg;
}

static ew_err add(ew__registry *registry, const char *key, const ew_action_options *options) {
    return ew__registry_add(registry, key, &ew__local_callee, NULL, handler, NULL, options);
}

static void test_call_action__keys(void **state) {
    (void)state;
    static const char *const good[] = {"/a/b", "/flow/greet", "/flow/a/b/c", "/t/\xc3\xa4", "/a//b", "/t/x/"};
    static const char *const bad[] = {"",    "/",          "//",     "/a",     "/a/",     "//b",
                                      "a/b", "flow/greet", "/a b/c", "/a/b\n", "/a/\x7f", "/a/ "};
    ew__test_env t;
    ew__registry registry;
    ew__test_env_init(&t, 1);
    assert_int_equal(ew__registry_init(&registry, &t.env), EW_OK);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(add(&registry, good[i], NULL), EW_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(add(&registry, bad[i], NULL), EW_EINVAL);
    assert_int_equal(add(&registry, "/flow/greet", NULL), EW_EEXISTS);
    ew__registry_done(&registry);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_call_action__key_length(void **state) {
    (void)state;
    ew__registry registry;
    char key[520];
    assert_int_equal(ew__registry_init(&registry, ew_env_default()), EW_OK);
    memset(key, 'k', sizeof key);
    memcpy(key, "/t/", 3);
    for (size_t n = 511; n <= 513; n++) {
        key[n] = '\0';
        assert_int_equal(add(&registry, key, NULL), n <= 512 ? EW_OK : EW_EINVAL);
        key[n] = 'k';
    }
    ew__registry_done(&registry);
}

static const char *find(const ew__actions *actions, const char *text) {
    static char found[100];
    ew__action *action = NULL;
    ew_err err = ew__actions_find(actions, ew_str_from(text), &action);
    if (err != EW_OK)
        return ew_err_name(err);
    (void)snprintf(found, sizeof found, "%.*s", (int)action->key.len, action->key.ptr);
    return found;
}

static void test_call_action__find(void **state) {
    (void)state;
    ew__registry registry;
    assert_int_equal(ew__registry_init(&registry, ew_env_default()), EW_OK);
    assert_int_equal(add(&registry, "/flow/greet", NULL), EW_OK);
    assert_int_equal(add(&registry, "/tool/same", NULL), EW_OK);
    assert_int_equal(add(&registry, "/flow/same", NULL), EW_OK);
    assert_int_equal(add(&registry, "/model/google/gemini", NULL), EW_OK);
    ew__actions *actions = ew__registry_get(&registry);
    assert_string_equal(find(actions, "/flow/greet"), "/flow/greet");
    assert_string_equal(find(actions, "greet"), "/flow/greet");
    assert_string_equal(find(actions, "/greet"), "/flow/greet");
    assert_string_equal(find(actions, "/model/google/gemini"), "/model/google/gemini");
    assert_string_equal(find(actions, "google/gemini"), "/model/google/gemini");
    assert_string_equal(find(actions, "/google/gemini"), "/model/google/gemini");
    assert_string_equal(find(actions, "/flow/same"), "/flow/same");
    assert_string_equal(find(actions, "same"), "EW_EEXISTS");
    assert_string_equal(find(actions, "/same"), "EW_EEXISTS");
    assert_string_equal(find(actions, "gemini"), "EW_ENOTFOUND");
    assert_string_equal(find(actions, "/flow/gree"), "EW_ENOTFOUND");
    assert_string_equal(find(actions, ""), "EW_ENOTFOUND");
    assert_string_equal(find(actions, "/"), "EW_ENOTFOUND");
    char text[100];
    size_t n = ew__actions_matches(actions, EW_STR("/same"), text, sizeof text);
    assert_true(ew_str_eq(ew__str(text, n), EW_STR("/tool/same, /flow/same")));
    for (size_t room = 0; room <= 24; room++)
        assert_true(ew__actions_matches(actions, EW_STR("same"), text, room) <= room);
    ew__actions_unref(actions);
    ew__registry_done(&registry);
}

/* A version does not change under its readers; an action lives as long as somebody holds it. */
static void test_call_action__versions(void **state) {
    (void)state;
    ew__test_env t;
    ew__registry registry;
    ew__action *action = NULL;
    ew__test_env_init(&t, 1);
    assert_int_equal(ew__registry_init(&registry, &t.env), EW_OK);
    ew__actions *empty = ew__registry_get(&registry);
    assert_int_equal(add(&registry, "/a/one", NULL), EW_OK);
    ew__actions *one = ew__registry_get(&registry);
    assert_int_equal(add(&registry, "/b/one", NULL), EW_OK);
    assert_string_equal(find(empty, "/a/one"), "EW_ENOTFOUND");
    assert_string_equal(find(one, "one"), "/a/one");
    ew__actions *two = ew__registry_get(&registry);
    assert_string_equal(find(two, "one"), "EW_EEXISTS");
    assert_int_equal(ew__actions_find(two, EW_STR("/b/one"), &action), EW_OK);
    assert_int_equal(action->id, 1);
    ew__action_ref(action);
    ew__actions_unref(empty);
    ew__actions_unref(one);
    ew__actions_unref(two);
    ew__registry_done(&registry);
    assert_true(ew_str_eq(action->name, EW_STR("one")) && ew_str_eq(action->type, EW_STR("b")));
    ew__action_unref(action);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_call_action__listing(void **state) {
    (void)state;
    ew__registry registry;
    assert_int_equal(ew__registry_init(&registry, ew_env_default()), EW_OK);
    ew__actions *none = ew__registry_get(&registry);
    assert_true(ew_str_eq(none->listing, EW_STR("{}")));
    ew__actions_unref(none);
    ew_action_options options = {
        .description = "says \"hi\"\n", .input_schema = "{ \"type\" : \"object\" }", .metadata = "{\"a\":1}"};
    assert_int_equal(add(&registry, "/flow/a/b", &options), EW_OK);
    assert_int_equal(add(&registry, "/flow/x", &(ew_action_options){.input_schema = "{"}), EW_ESYNTAX);
    assert_int_equal(add(&registry, "/flow/x", &(ew_action_options){.metadata = "[]"}), EW_ESYNTAX);
    ew__actions *actions = ew__registry_get(&registry);
    const char *expected = "{\"/flow/a/b\":{\"key\":\"/flow/a/b\",\"name\":\"a/"
                           "b\",\"actionType\":\"flow\",\"description\":\"says \\\"hi\\\"\\n\","
                           "\"inputSchema\":{\"type\":\"object\"},\"metadata\":{\"a\":1}}}";
    assert_true(ew_str_eq(actions->listing, ew_str_from(expected)));
    ew__actions_unref(actions);
    ew__registry_done(&registry);
}

static void test_call_action__no_memory(void **state) {
    (void)state;
    for (int mode = 0; mode < 2; mode++) {
        for (uint64_t n = 1;; n++) {
            ew__test_env t;
            ew__registry registry;
            ew__test_env_init(&t, 1);
            ew__test_env_fail_at(&t, n, mode == 1);
            bool made = ew__registry_init(&registry, &t.env) == EW_OK;
            ew_err first = made ? add(&registry, "/a/one", &(ew_action_options){.description = "x"}) : EW_ENOMEM;
            ew_err second = made ? add(&registry, "/b/two", NULL) : EW_ENOMEM;
            uint64_t failed = ew__test_env_failed(&t);
            assert_true(failed == 0 || first == EW_ENOMEM || second == EW_ENOMEM);
            assert_true(!made || registry.current->by_key.n == (uint32_t)((first == EW_OK) + (second == EW_OK)));
            if (made)
                ew__registry_done(&registry);
            assert_int_equal(ew__test_env_live_blocks(&t), 0);
            if (failed == 0)
                break;
            assert_true(n < 1000);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_action__keys),    cmocka_unit_test(test_call_action__key_length),
        cmocka_unit_test(test_call_action__find),    cmocka_unit_test(test_call_action__versions),
        cmocka_unit_test(test_call_action__listing), cmocka_unit_test(test_call_action__no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
