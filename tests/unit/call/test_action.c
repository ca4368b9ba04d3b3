/*
 * tests/unit/call/test_action.c: keys, names, versions of the list.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/call.h"
#include "json/json.h"
#include "support/fail_env.h"
#include "support/json_or.h"

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

/* ---- other programs' actions ---- */

static int dropped;

static void drop(void *ud) {
    (void)ud;
    dropped++;
}

static ew__action *remote(const ew_env *env, const char *runtime, const char *key) {
    ew__action *action = NULL;
    (void)ew__action_new_remote(env, ew_str_from(runtime), ew_str_from(key), EW_STR("{\"key\":\"as it said\"}"),
                                &ew__local_callee, NULL, drop, &action);
    return action;
}

/* Publishes them and lets go of them. */
static ew__actions *publish(ew__registry *registry, ew__action **actions, size_t n) {
    assert_int_equal(ew__registry_set_remotes(registry, actions, n), EW_OK);
    for (size_t i = 0; i < n; i++)
        ew__action_unref(actions[i]);
    return ew__registry_get(registry);
}

static const char *find_long(const ew__actions *actions, const char *text) {
    ew__action *action = NULL;
    ew_err err = ew__actions_find(actions, ew_str_from(text), &action);
    return err == EW_OK ? action->long_key.ptr : ew_err_name(err);
}

static void test_call_action__remotes(void **state) {
    (void)state;
    ew__test_env t;
    ew__registry registry;
    char text[200] = "";
    ew__test_env_init(&t, 1);
    dropped = 0;
    assert_int_equal(ew__registry_init(&registry, &t.env), EW_OK);
    assert_int_equal(add(&registry, "/flow/ours", NULL), EW_OK);
    ew__action *some[] = {remote(&t.env, "a", "/flow/ours"), remote(&t.env, "a", "/flow/one"),
                          remote(&t.env, "a", "/flow/both"), remote(&t.env, "b", "/flow/both"),
                          remote(&t.env, "b", "/tool/ours")};
    ew__actions *now = publish(&registry, some, 5);
    assert_string_equal(find(now, "/flow/ours"), "/flow/ours"); /* ours win, by key and by name */
    assert_int_equal(strncmp(find_long(now, "/flow/one"), "a:/flow/one", 11), 0);
    assert_int_equal(strncmp(find_long(now, "one"), "a:/flow/one", 11), 0);
    assert_int_equal(strncmp(find_long(now, "a:/flow/ours"), "a:/flow/ours", 12), 0);
    assert_int_equal(strncmp(find_long(now, "/b:/flow/both"), "b:/flow/both", 12), 0);
    assert_int_equal(strncmp(find_long(now, "/tool/ours"), "b:/tool/ours", 12), 0);
    ew__action *ours = NULL;
    assert_int_equal(ew__actions_find(now, EW_STR("ours"), &ours), EW_OK);
    assert_int_equal(ours->long_key.len, 0);
    assert_string_equal(find_long(now, "/flow/both"), "EW_EEXISTS");
    assert_string_equal(find_long(now, "both"), "EW_EEXISTS");
    assert_string_equal(find_long(now, "c:/flow/both"), "EW_ENOTFOUND");
    text[ew__actions_matches(now, EW_STR("/flow/both"), text, sizeof text - 1)] = '\0';
    assert_string_equal(text, "a:/flow/both, b:/flow/both");
    assert_true(ew_json_member(now->listing, EW_STR("/flow/one")).len > 0);
    assert_true(ew_json_member(now->listing, EW_STR("a:/flow/ours")).len > 0);
    assert_true(ew_json_member(now->listing, EW_STR("b:/flow/both")).len > 0);
    assert_int_equal(ew_json_member(now->listing, EW_STR("/flow/both")).len, 0);
    assert_true(ew_str_eq(json_str_or(now->listing, "/~1flow~1one/key", EW_STR("")), EW_STR("as it said")));

    /* a key of our own that comes later wins too */
    assert_int_equal(add(&registry, "/flow/one", NULL), EW_OK);
    ew__actions *later = ew__registry_get(&registry);
    ew__action *one = NULL;
    assert_int_equal(ew__actions_find(later, EW_STR("/flow/one"), &one), EW_OK);
    assert_int_equal(one->long_key.len, 0);
    assert_int_equal(strncmp(find_long(later, "a:/flow/one"), "a:/flow/one", 11), 0);

    /* one leaves: what it shared is the other's alone; an old version still has it */
    ew__action *rest[] = {remote(&t.env, "b", "/flow/both")};
    ew__actions *last = publish(&registry, rest, 1);
    assert_int_equal(strncmp(find_long(last, "/flow/both"), "b:/flow/both", 12), 0);
    assert_string_equal(find_long(last, "a:/flow/ours"), "EW_ENOTFOUND");
    assert_int_equal(strncmp(find_long(now, "a:/flow/ours"), "a:/flow/ours", 12), 0);
    assert_int_equal(dropped, 0);
    ew__actions_unref(now);
    ew__actions_unref(later);
    assert_int_equal(dropped, 5);
    ew__actions_unref(last);
    ew__registry_done(&registry);
    assert_int_equal(dropped, 6);
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

/* The statistics of a key go on when its program comes back; a key that is none is refused. */
static void test_call_action__remote_ids(void **state) {
    (void)state;
    ew__registry registry;
    uint32_t ids[3];
    assert_int_equal(ew__registry_init(&registry, ew_env_default()), EW_OK);
    for (int i = 0; i < 3; i++) {
        char runtime[16];
        (void)snprintf(runtime, sizeof runtime, "r%d", i);
        ew__action *one[] = {remote(ew_env_default(), runtime, "/flow/x")}, *found = NULL;
        ew__actions *now = publish(&registry, one, 1);
        assert_int_equal(ew__actions_find(now, EW_STR("x"), &found), EW_OK);
        ids[i] = found->id;
        ew__actions_unref(now);
    }
    assert_int_equal(ids[0], ids[1]);
    assert_int_equal(ids[0], ids[2]);
    assert_null(remote(ew_env_default(), "r", "x"));
    assert_null(remote(ew_env_default(), "r", "/flow/a b"));
    assert_null(remote(ew_env_default(), "", "/flow/x"));
    ew__registry_done(&registry);
}

static void test_call_action__remotes_no_memory(void **state) {
    (void)state;
    for (int mode = 0; mode < 2; mode++) {
        for (uint64_t n = 1;; n++) {
            ew__test_env t;
            ew__registry registry;
            ew__test_env_init(&t, 1);
            ew__test_env_fail_at(&t, n, mode == 1);
            bool made = ew__registry_init(&registry, &t.env) == EW_OK;
            ew__action *some[2];
            size_t k = 0;
            if (made && (some[k] = remote(&t.env, "a", "/flow/x")) != NULL)
                k++;
            if (made && (some[k] = remote(&t.env, "b", "/flow/x")) != NULL)
                k++;
            ew_err err = made ? ew__registry_set_remotes(&registry, some, k) : EW_ENOMEM;
            uint64_t failed = ew__test_env_failed(&t);
            assert_true(!made || registry.current->by_long_key.n == (err == EW_OK ? k : 0));
            for (size_t i = 0; i < k; i++)
                ew__action_unref(some[i]);
            if (made)
                ew__registry_done(&registry);
            assert_int_equal(ew__test_env_live_blocks(&t), 0);
            if (failed == 0)
                break;
            assert_true(n < 1000);
        }
    }
}

static void test_call_action__list_limits(void **state) {
    (void)state;
    const ew_str list = EW_STR("{\"/a/1\":{},\"/a/2\":{},\"/a/3\":{}}");
    ew_limits limits = {.list_actions = 3, .list_bytes = list.len};
    assert_null(ew__actions_list_problem(&limits, list));
    limits.list_actions = 2;
    assert_non_null(strstr(ew__actions_list_problem(&limits, list), "list_actions"));
    limits = (ew_limits){.list_actions = 3, .list_bytes = list.len - 1};
    assert_non_null(strstr(ew__actions_list_problem(&limits, list), "list_bytes"));
    assert_null(ew__actions_list_problem(&limits, EW_STR("{}")));
}

/* An action that reads an input stream is marked as Genkit marks it, beside what the program says itself. */
static void test_call_action__input_stream(void **state) {
    (void)state;
    static const struct {
        const char *metadata, *expected;
    } rows[] = {{NULL, "{\"bidi\":true}"},
                {"{}", "{\"bidi\":true}"},
                {" { \"a\" : [ 1 ] , \"b\":2 } ", "{\"bidi\":true,\"a\":[1],\"b\":2}"},
                {"{\"bidi\":false,\"a\":1}", "{\"bidi\":true,\"a\":1}"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ew__registry registry;
        ew__action *action = NULL;
        ew_action_options options = {.metadata = rows[i].metadata, .input_stream = true};
        assert_int_equal(ew__registry_init(&registry, ew_env_default()), EW_OK);
        assert_int_equal(add(&registry, "/flow/x", &options), EW_OK);
        assert_int_equal(ew__actions_find(registry.current, EW_STR("/flow/x"), &action), EW_OK);
        assert_true(ew_str_eq(ew_json_get(action->descriptor, "/metadata"), ew_str_from(rows[i].expected)));
        ew__registry_done(&registry);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_action__keys),        cmocka_unit_test(test_call_action__input_stream),
        cmocka_unit_test(test_call_action__key_length),  cmocka_unit_test(test_call_action__find),
        cmocka_unit_test(test_call_action__versions),    cmocka_unit_test(test_call_action__listing),
        cmocka_unit_test(test_call_action__no_memory),   cmocka_unit_test(test_call_action__remotes),
        cmocka_unit_test(test_call_action__remote_ids),  cmocka_unit_test(test_call_action__remotes_no_memory),
        cmocka_unit_test(test_call_action__list_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
