/*
 * tests/unit/json/test_secrets.c: which values are secret, and copies without them. Texts are written with ' for ".
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "json/secrets.h"
#include "support/fail_env.h"

static char texts[4][4096];

static ew_str json(int i, const char *text) {
    size_t n = strlen(text);
    assert_true(n < sizeof texts[i]);
    for (size_t k = 0; k <= n; k++) {
        texts[i][k] = (char)(text[k] == '\'' ? '"' : text[k]);
    }
    return ew__str(texts[i], n);
}

static void check(const char *schema, const char *pointers, const char *value, const char *want) {
    ew__test_env env;
    ew__arena arena;
    ew__secrets *secrets = NULL;
    ew__buf out;
    ew__test_env_init(&env, 1);
    ew__arena_init(&arena, &env.env, NULL, 0);
    ew__buf_init(&out, &env.env, 100000);
    assert_int_equal(ew__secrets_find(&arena, json(0, schema), json(1, pointers), &secrets), EW_OK);
    if (secrets) {
        assert_int_equal(ew__secrets_hide(&out, json(2, value), secrets), EW_OK);
    } else {
        (void)ew__buf_str(&out, json(2, value));
    }
    ew_str wanted = json(3, want);
    if (!ew__str_is(ew__buf_view(&out), wanted)) {
        print_message("%.*s\n", (int)out.len, out.ptr);
    }
    assert_true(ew__str_is(ew__buf_view(&out), wanted));
    ew__buf_done(&out);
    ew__arena_done(&arena);
    assert_int_equal(ew__test_env_live_blocks(&env), 0);
}

#define SECRET "{'x-everywire-secret':true}"

static void test_json_secrets__marks(void **state) {
    (void)state;
    check("{'properties':{'a':{'type':'string'},'format':{'type':'string'}}}", "", "{'a':'x'}", "{'a':'x'}");
    check("{'properties':{'pw':{'type':'string','format':'password'}}}", "", "{'a':1, 'pw' : 'x','b':[2]}",
          "{'a':1,'pw':'***','b':[2]}");
    check("{'properties':{'o':{'properties':{'k':" SECRET "}}}}", "", "{'o':{'k':{'deep':[1]},'l':1},'k':2}",
          "{'o':{'k':'***','l':1},'k':2}");
    check("{'items':{'properties':{'k':" SECRET "}}}", "", "[{'k':1},{'l':2},3]", "[{'k':'***'},{'l':2},3]");
    check("{'prefixItems':[{},{'properties':{'k':" SECRET "}}]}", "", "[{'k':1},{'k':2}]", "[{'k':'***'},{'k':'***'}]");
    check("{'additionalProperties':" SECRET "}", "", "{'a':1,'b':{}}", "{'a':'***','b':'***'}");
    check("{'anyOf':[{'type':'null'},{'allOf':[{'properties':{'k':" SECRET "}}]}]}", "", "{'k':1}", "{'k':'***'}");
    check("{'$ref':'#/$defs/x','$defs':{'x':{'properties':{'k':{'$ref':'#/$defs/s'}}},'s':" SECRET "}}", "",
          "{'k':1,'x':2}", "{'k':'***','x':2}");
    check(SECRET, "", "{'a':1}", "'***'");
    check("{'x-everywire-secret':false,'properties':{}}", "", "{'a':1}", "{'a':1}");
    check("true", "", "1", "1");
}

static void test_json_secrets__pointers(void **state) {
    (void)state;
    check("{}", "['/password']", "{'password':'x','b':{'password':'y'}}", "{'password':'***','b':{'password':'y'}}");
    check("{}", "['/users/*/pin','/list/1']", "{'users':[{'pin':1,'n':2}],'list':[1,2,3]}",
          "{'users':[{'pin':'***','n':2}],'list':[1,'***',3]}");
    check("{}", "['/a~1b','/c~0d']", "{'a/b':1,'c~d':2}", "{'a/b':'***','c~d':'***'}");
    check("{}", "['']", "{'a':1}", "'***'");
    check("{}", "['/a/b']", "{'a':1,'b':2}", "{'a':1,'b':2}");
    check("{}", "['/p']", "{'\\u0070':1,'q':2}", "{'\\u0070':'***','q':2}"); /* it is the same name */
}

/* What cannot be told for sure is left out, never shown. */
static void test_json_secrets__on_the_safe_side(void **state) {
    (void)state;
    check("{'properties':{'next':{'$ref':'#'},'k':" SECRET "}}", "", "{'k':1,'next':{'k':2,'next':{'k':3,'v':4}}}",
          "{'k':'***','next':{'k':'***','next':{'k':'***','v':4}}}");
    check("{'$ref':'#','x':" SECRET "}", "", "{'a':1}", "'***'"); /* it goes round and round */
    char many[4096] = "[", *at = many + 1;
    for (int i = 0; i < 65; i++) {
        at += snprintf(at, 16, "%s'/k%d'", i ? "," : "", i);
    }
    memcpy(at, "]", 2);
    check("{}", many, "{'a':1}", "'***'");
}

static void test_json_secrets__without_memory(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        ew__test_env env;
        ew__arena arena;
        ew__secrets *secrets = NULL;
        ew__test_env_init(&env, 1);
        ew__arena_init(&arena, &env.env, NULL, 0);
        ew__test_env_fail_at(&env, n, false);
        ew_err err =
            ew__secrets_find(&arena, json(0, "{'properties':{'k':" SECRET "}}"), json(1, "['/a/b']"), &secrets);
        uint64_t failed = ew__test_env_failed(&env);
        assert_int_equal(err, failed ? EW_ENOMEM : EW_OK);
        ew__arena_done(&arena);
        assert_int_equal(ew__test_env_live_blocks(&env), 0);
        if (!failed) {
            break;
        }
    }
}

static void check_names(const char *schema, const char *pointers, const char *secret, const char *plain, bool all) {
    ew__test_env env;
    ew__arena arena;
    ew__secrets *secrets = NULL;
    ew__test_env_init(&env, 1);
    ew__arena_init(&arena, &env.env, NULL, 0);
    assert_int_equal(ew__secrets_find(&arena, json(0, schema), json(1, pointers), &secrets), EW_OK);
    assert_true(ew__secrets_in(secrets, ew_str_from(secret)));
    assert_int_equal(ew__secrets_in(secrets, ew_str_from(plain)), all);
    assert_int_equal(ew__secrets_in(secrets, ew__str(NULL, 0)), all);
    ew__arena_done(&arena);
}

static void test_json_secrets__names(void **state) {
    (void)state;
    assert_false(ew__secrets_in(NULL, EW_STR("a")));
    check_names("{'properties':{'o':{'properties':{'k':" SECRET "}}}}", "", "k", "o", false);
    check_names("{'properties':{'o':{'items':" SECRET "}}}", "", "o", "k", false);
    check_names("{'properties':{'o':{'additionalProperties':" SECRET "}}}", "", "o", "k", false);
    check_names("", "['/a/b/0','/c/*']", "b", "a", false);
    check_names("", "['/a/b/0','/c/*']", "c", "0", false);
    check_names("", "['/k']", "\\u006b", "l", false); /* an escape may be anything */
    check_names(SECRET, "", "a", "b", true);
    check_names("{'items':" SECRET "}", "", "a", "b", true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_secrets__marks),
        cmocka_unit_test(test_json_secrets__pointers),
        cmocka_unit_test(test_json_secrets__on_the_safe_side),
        cmocka_unit_test(test_json_secrets__without_memory),
        cmocka_unit_test(test_json_secrets__names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
