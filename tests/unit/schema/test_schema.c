/*
 * tests/unit/schema/test_schema.c: what the public suite does not ask for: reports, what is refused and how it is said,
 * limits, bombs, memory that fails.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/json/verdict.h"

#include "schema/schema.h"
#include "support/fail_env.h"

static ew__schema *must_compile(const char *text) {
    ew__schema *schema = NULL;
    ew__schema_problem problem;
    ew_err err = ew__schema_compile(ew_env_default(), ew_str_from(text), EW__DRAFT_2020_12, &problem, &schema);
    if (err != EW_OK) {
        fail_msg("%s: %s: %s", ew_err_name(err), problem.pointer, problem.what);
    }
    return schema;
}

static ew_err check(const char *schema_text, ew_str json, ew__schema_report *report) {
    ew__schema *schema = must_compile(schema_text);
    ew_err err = ew__schema_check(schema, ew_env_default(), json, report);
    ew__schema_free(schema);
    return err;
}

static void test_json_schema__reports(void **state) {
    static const struct {
        const char *schema, *json, *line, *keyword, *schema_path;
    } rows[] = {
        {"{\"properties\":{\"name\":{\"type\":\"string\"}}}", "{\"name\":7}", "/name: expected string, got integer",
         "\"type\"", "\"/properties/name/type\""},
        {"{\"type\":[\"object\",\"null\",\"array\"]}", "1.5", "expected null, array or object, got number", "\"type\"",
         "\"/type\""},
        {"{\"type\":\"integer\"}", "1.5", "expected integer, got number", "\"type\"", "\"/type\""},
        {"{\"required\":[\"a\"]}", "{}", "the member \"a\" is missing", "\"required\"", "\"/required\""},
        {"{\"additionalProperties\":false}", "{\"x/y~\":\"secret\"}", "/x~1y~0: no such member is allowed",
         "\"additionalProperties\"", "\"/additionalProperties\""},
        {"{\"items\":{\"minimum\":3}}", "[3,2]", "/1: must be at least 3", "\"minimum\"", "\"/items/minimum\""},
        {"{\"exclusiveMaximum\":1e1}", "10", "must be below 1e1", "\"exclusiveMaximum\"", "\"/exclusiveMaximum\""},
        {"{\"enum\":[1, \"a\"]}", "\"secret\"", "must be one of 1,\"a\"", "\"enum\"", "\"/enum\""},
        {"{\"const\":1}", "\"secret\"", "is not the one value that is allowed", "\"const\"", "\"/const\""},
        {"{\"maxLength\":2}", "\"abc\"", "must have at most 2 characters, has 3", "\"maxLength\"", "\"/maxLength\""},
        {"{\"pattern\":\"^a\"}", "\"secret\"", "does not match the pattern", "\"pattern\"", "\"/pattern\""},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"string\"}]}", "1", "fits none of the 2 alternatives", "\"anyOf\"",
         "\"/anyOf\""},
        {"{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"type\":\"null\"}}}", "1", "expected null, got integer",
         "\"type\"", "\"/$defs/n/type\""},
        {"{\"$ref\":\"http://json-schema.org/draft-07/schema#\"}", "{\"type\":1}",
         "/type: fits none of the 2 alternatives", "\"anyOf\"",
         "\"http://json-schema.org/draft-07/schema/properties/type/anyOf\""},
        {"{\"unevaluatedProperties\":false}", "{\"a\":1}", "/a: no such member is allowed", "\"unevaluatedProperties\"",
         "\"/unevaluatedProperties\""},
        {"false", "1", "nothing is allowed here", "\"false\"", "\"\""},
        {"{\"propertyNames\":{\"maxLength\":1}}", "{\"ab\":1}", "/ab: must have at most 1 characters, has 2",
         "\"maxLength\"", "\"/propertyNames/maxLength\""},
        {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}", "with \"a\", the member \"b\" is missing",
         "\"dependentRequired\"", "\"/dependentRequired\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ew__schema_report report;
        ew__schema_report_init(&report, ew_env_default(), (ew_str){NULL, 0});
        assert_int_equal(check(rows[i].schema, ew_str_from(rows[i].json), &report), EW_ETYPE);
        ew_str line = ew__buf_view(&report.line), errors = ew__buf_view(&report.errors);
        if (!ew_str_eq(line, ew_str_from(rows[i].line))) {
            fail_msg("%.*s", (int)line.len, line.ptr);
        }
        assert_int_equal(ew__json_validate(errors, NULL), EW_OK);
        assert_true(ew_str_eq(ew_json_get(errors, "/errors/0/keyword"), ew_str_from(rows[i].keyword)));
        assert_true(ew_str_eq(ew_json_get(errors, "/errors/0/schema_path"), ew_str_from(rows[i].schema_path)));
        ew__buf_char(&report.errors, '\0');
        assert_null(strstr(report.errors.ptr, "secret")); /* what stands in a text is not told */
        ew__schema_report_done(&report);
    }
}

static void test_json_schema__many_faults(void **state) {
    ew__schema_report report;
    (void)state;
    ew__schema_report_init(&report, ew_env_default(), (ew_str){NULL, 0});
    assert_int_equal(check("{\"items\":{\"type\":\"string\"}}", EW_STR("[1,2,3,4,5,6,7,8,9,10]"), &report), EW_ETYPE);
    assert_int_equal(report.n, EW__SCHEMA_ERRORS_MAX);
    assert_true(ew_str_eq(ew_json_get(ew__buf_view(&report.errors), "/errors/7/path"), EW_STR("\"/7\"")));
    assert_int_equal(ew_json_get(ew__buf_view(&report.errors), "/errors/8").len, 0);
    ew__schema_report_done(&report);
    assert_int_equal(check("{\"items\":{\"type\":\"string\"}}", EW_STR("[1]"), NULL), EW_ETYPE); /* nobody asks why */
}

static void test_json_schema__refused(void **state) {
    static const struct {
        const char *text;
        ew_err err;
        const char *pointer, *what;
    } rows[] = {
        {"{", EW_ESYNTAX, "", "not valid JSON"},
        {"1", EW_EINVAL, "", "an object, true or false"},
        {"{\"type\":\"text\"}", EW_EINVAL, "/type", "one of null"},
        {"{\"properties\":[]}", EW_EINVAL, "/properties", "object"},
        {"{\"properties\":{\"a\":{\"minLength\":-1}}}", EW_EINVAL, "/properties/a/minLength", "whole number"},
        {"{\"items\":[{}]}", EW_EINVAL, "/items", "prefixItems"},
        {"{\"allOf\":{}}", EW_EINVAL, "/allOf", "array of schemas"},
        {"{\"allOf\":[1]}", EW_EINVAL, "/allOf/0", "object, true or false"},
        {"{\"required\":[1]}", EW_EINVAL, "/required/0", "text"},
        {"{\"multipleOf\":0}", EW_EINVAL, "/multipleOf", "above 0"},
        {"{\"pattern\":\"(\"}", EW_EINVAL, "/pattern", "at character 1: a ( has no )"},
        {"{\"patternProperties\":{\"(?=a)\":{}}}", EW_EINVAL, "/patternProperties/(?=a)", "lookaround"},
        {"{\"patternProperties\":{\"x\":{\"type\":\"null\"},\"(\":{\"a\":[1]}},\"x\":1}", EW_EINVAL,
         "/patternProperties/(", "has no )"},
        {"{\"pattern\":\"a{100000}\"}", EW_ELIMIT, "/pattern", "too large"},
        {"{\"$ref\":\"http://example.com/a.json#/b\"}", EW_EINVAL, "/$ref",
         "http://example.com/a.json is not in this document"},
        {"{\"$ref\":\"#/nowhere\"}", EW_EINVAL, "/$ref", "nothing at #/nowhere"},
        {"{\"$ref\":\"#nobody\"}", EW_EINVAL, "/$ref", "nothing at #nobody"},
        {"{\"$ref\":\"#/%zz\"}", EW_EINVAL, "/$ref", "nothing at"},
        {"{\"$schema\":\"http://json-schema.org/draft-04/schema#\"}", EW_EINVAL, "/$schema", "dialect is not known"},
        {"{\"$ref\":\"#\"}", EW_EINVAL, "/$ref", "leads back to itself"},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"not\":{\"$ref\":\"#\"}}]}", EW_EINVAL, "/anyOf/1/not/$ref", "leads back"},
        {"{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/a\"}},\"$ref\":\"#/$defs/a\"}",
         EW_EINVAL, "/$defs/b/$ref", "leads back"},
        {"{\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"b\":{\"$anchor\":\"x\"}}}", EW_EINVAL, "/$defs/b", "anchor"},
        {"{\"$defs\":{\"a\":{\"$id\":\"x\"},\"b\":{\"$id\":\"x\"}}}", EW_EINVAL, "/$defs/b/$id", "identifier"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ew__schema *schema = NULL;
        ew__schema_problem problem;
        ew_err err =
            ew__schema_compile(ew_env_default(), ew_str_from(rows[i].text), EW__DRAFT_2020_12, &problem, &schema);
        bool pointer = rows[i].pointer[0] == '\0' || strcmp(problem.pointer, rows[i].pointer) == 0;
        if (err != rows[i].err || !pointer || strstr(problem.what, rows[i].what) == NULL) {
            fail_msg("%s: %s at '%s': %s", rows[i].text, ew_err_name(err), problem.pointer, problem.what);
        }
        assert_null(schema);
    }
}

static void test_json_schema__problem_has_its_place(void **state) {
    static const char text[] = "{\n  \"type\": 7\n}";
    ew__schema *schema = NULL;
    ew__schema_problem problem;
    (void)state;
    assert_int_equal(ew__schema_compile(ew_env_default(), ew_str_from(text), EW__DRAFT_2020_12, &problem, &schema),
                     EW_EINVAL);
    assert_int_equal(problem.at, strchr(text, '7') - text);
}

/* Members that stand twice: every one of them must fit, for a handler may read any. */
static void test_json_schema__repeated_members(void **state) {
    static const char schema[] = "{\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]}";
    (void)state;
    assert_int_equal(check(schema, EW_STR("{\"a\":\"x\",\"a\":\"y\"}"), NULL), EW_OK);
    assert_int_equal(check(schema, EW_STR("{\"a\":\"x\",\"a\":1}"), NULL), EW_ETYPE);
    assert_int_equal(check(schema, EW_STR("{\"a\":1,\"a\":\"x\"}"), NULL), EW_ETYPE);
    assert_int_equal(check(schema, EW_STR("{\"\\u0061\":1,\"a\":\"x\"}"), NULL), EW_ETYPE);
    assert_int_equal(check("{\"const\":{\"a\":1,\"b\":2}}", EW_STR("{\"b\":2.0,\"\\u0061\":1}"), NULL), EW_OK);
    assert_int_equal(check("{\"const\":{\"a\":1}}", EW_STR("{\"a\":1,\"a\":1}"), NULL), EW_ETYPE);
}

/* ---- bombs ---- */

static char *repeat(const char *before, size_t n, const char *middle, const char *after) {
    size_t a = strlen(before), m = strlen(middle), b = strlen(after);
    char *text = malloc(n * (a + b) + m + 1), *at = text;
    for (size_t i = 0; i < n; i++, at += a) {
        memcpy(at, before, a);
    }
    memcpy(at, middle, m);
    at += m;
    for (size_t i = 0; i < n; i++, at += b) {
        memcpy(at, after, b);
    }
    *at = '\0';
    return text;
}

static void test_json_schema__deep(void **state) {
    ew__schema *schema = NULL;
    ew__schema_problem problem;
    (void)state;
    char *text = repeat("{\"not\":", EW_PAYLOAD_DEPTH - 1, "{}", "}");
    schema = must_compile(text);
    assert_int_equal(ew__schema_check(schema, ew_env_default(), EW_STR("1"), NULL), EW_ETYPE); /* odd */
    ew__schema_free(schema);
    free(text);
    text = repeat("{\"not\":", EW_PAYLOAD_DEPTH, "{}", "}");
    assert_int_equal(ew__schema_compile(ew_env_default(), ew_str_from(text), EW__DRAFT_2020_12, &problem, &schema),
                     EW_ELIMIT);
    free(text);
    /* a value as deep as can be, through several schemas at each level */
    schema = must_compile("{\"$ref\":\"#/$defs/t\",\"$defs\":{\"t\":{\"allOf\":[{\"anyOf\":[{\"type\":\"null\"},"
                          "{\"items\":{\"$ref\":\"#\"}}]}]}}}");
    text = repeat("[", EW_PAYLOAD_DEPTH, "", "]");
    assert_int_equal(ew__schema_check(schema, ew_env_default(), ew_str_from(text), NULL), EW_OK);
    free(text);
    ew__schema_free(schema);
}

/* A $dynamicRef in a circle cannot be seen beforehand: it ends by the limit of depth. */
static void test_json_schema__dynamic_circle(void **state) {
    (void)state;
    assert_int_equal(check("{\"$dynamicAnchor\":\"a\",\"$dynamicRef\":\"#a\"}", EW_STR("1"), NULL), EW_ELIMIT);
}

/* Each level doubles the work: it must end by the limit of steps, and not pass. */
static void test_json_schema__exponential(void **state) {
    ew__buf text;
    (void)state;
    ew__buf_init(&text, ew_env_default(), 65536);
    ew__buf_cstr(&text, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
    for (int i = 0; i < 40; i++) {
        ew__buf_printf(&text, "\"d%d\":{\"allOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/$defs/d%d\"}]},", i, i + 1,
                       i + 1);
    }
    ew__buf_cstr(&text, "\"d40\":{}}}");
    ew__buf_char(&text, '\0');
    ew__schema *schema = must_compile(text.ptr);
    uint64_t steps = 0;
    ew_err err = ew__schema_check_counting(schema, ew_env_default(), EW_STR("1"), NULL, &steps);
    assert_int_equal(err, EW_ELIMIT);
    assert_true(steps <= EW__SCHEMA_STEPS + EW__SCHEMA_STEPS_PER_BYTE);
    ew__schema_free(schema);
    ew__buf_done(&text);
}

/* Sets are found by hashes: twice the elements are about twice the steps and no more. */
static void test_json_schema__large_sets(void **state) {
    ew__schema *schema = must_compile("{\"uniqueItems\":true}");
    ew__buf text;
    (void)state;
    ew__buf_init(&text, ew_env_default(), 16 << 20);
    ew__buf_char(&text, '[');
    for (unsigned i = 0; i < 100000; i++) {
        ew__buf_printf(&text, "%s{\"k\":%u}", i > 0 ? "," : "", i);
    }
    ew__buf_char(&text, ']');
    uint64_t steps = 0;
    ew_err err = ew__schema_check_counting(schema, ew_env_default(), ew__buf_view(&text), NULL, &steps);
    assert_int_equal(err, EW_OK);
    assert_true(steps < 10u * 100000);
    text.len--;
    ew__buf_cstr(&text, ",{\"\\u006b\":5.0e0}]"); /* one that is there already, in other words */
    assert_int_equal(ew__schema_check(schema, ew_env_default(), ew__buf_view(&text), NULL), EW_ETYPE);
    ew__schema_free(schema);
    ew__buf_done(&text);
}

static void test_json_schema__large_enum(void **state) {
    ew__buf text;
    (void)state;
    ew__buf_init(&text, ew_env_default(), 1 << 20);
    ew__buf_cstr(&text, "{\"enum\":[null");
    for (unsigned i = 0; i < 50000; i++) {
        ew__buf_printf(&text, ",\"value %u\"", i);
    }
    ew__buf_cstr(&text, "]}");
    ew__buf_char(&text, '\0');
    ew__schema *schema = must_compile(text.ptr);
    uint64_t steps = 0;
    ew_err err = ew__schema_check_counting(schema, ew_env_default(), EW_STR("\"value 49999\""), NULL, &steps);
    assert_int_equal(err, EW_OK);
    assert_true(steps < 20);
    assert_int_equal(ew__schema_check(schema, ew_env_default(), EW_STR("\"value 50000\""), NULL), EW_ETYPE);
    ew__schema_free(schema);
    ew__buf_done(&text);
}

static void test_json_schema__large_notes(void **state) {
    ew__schema *schema = must_compile("{\"patternProperties\":{\"^a\":true},\"anyOf\":[{\"properties\":{\"b\":true}}],"
                                      "\"unevaluatedProperties\":{\"type\":\"null\"}}");
    ew__buf text;
    (void)state;
    ew__buf_init(&text, ew_env_default(), 1 << 20);
    ew__buf_char(&text, '{');
    for (unsigned i = 0; i < 200; i++) {
        ew__buf_printf(&text, "\"a%u\":1,", i);
    }
    ew__buf_cstr(&text, "\"b\":1,\"c\":null}");
    assert_int_equal(ew__schema_check(schema, ew_env_default(), ew__buf_view(&text), NULL), EW_OK);
    text.len -= 5;
    ew__buf_cstr(&text, "true}");
    assert_int_equal(ew__schema_check(schema, ew_env_default(), ew__buf_view(&text), NULL), EW_ETYPE);
    ew__schema_free(schema);
    ew__buf_done(&text);
}

/* ---- memory ---- */

static const char everything[] =
    "{\"$id\":\"http://a/"
    "b\",\"type\":[\"object\",\"array\"],\"properties\":{\"a\":{\"$ref\":\"c\"},\"b\":{\"enum\":[1,2]},"
    "\"m\":{\"$ref\":\"http://json-schema.org/draft-07/"
    "schema#\"}},\"patternProperties\":{\"^x\":{\"pattern\":\"[a-z]+\"}},"
    "\"required\":[\"a\"],\"$defs\":{\"c\":{\"$id\":\"c\",\"$anchor\":\"x\",\"uniqueItems\":true,\"prefixItems\":[true]"
    ","
    "\"contains\":{\"const\":{\"k\":1}}}},\"dependentRequired\":{\"a\":[\"b\"]},\"if\":{\"minProperties\":2},"
    "\"then\":{\"$dynamicRef\":\"#d\"},\"allOf\":[{\"$dynamicAnchor\":\"d\"}],\"unevaluatedProperties\":false}";

static void test_json_schema__memory_fails(void **state) {
    ew__test_env t;
    (void)state;
    ew__test_env_init(&t, 7);
    for (uint64_t n = 1;; n++) {
        ew__schema *schema = NULL;
        ew__schema_problem problem;
        ew__test_env_fail_at(&t, n, false);
        ew_err err = ew__schema_compile(&t.env, ew_str_from(everything), EW__DRAFT_2020_12, &problem, &schema);
        bool failed = ew__test_env_failed(&t) != 0;
        assert_int_equal(err, failed ? EW_ENOMEM : EW_OK);
        ew__schema_free(schema);
        assert_int_equal(ew__test_env_live_blocks(&t), 0);
        if (!failed) {
            break;
        }
    }
}

static void test_json_schema__memory_fails_checking(void **state) {
    ew__test_env t;
    ew__schema *schema = must_compile(everything);
    ew__buf text;
    (void)state;
    ew__test_env_init(&t, 7);
    ew__buf_init(&text, ew_env_default(), 1 << 20);
    ew__buf_cstr(&text, "{\"a\":[{\"k\":1}");
    for (unsigned i = 0; i < 40; i++) {
        ew__buf_printf(&text, ",%u", i);
    }
    ew__buf_cstr(&text, "],\"b\":3,\"xx\":\"0\"");
    for (unsigned i = 0; i < 70; i++) {
        ew__buf_printf(&text, ",\"x%u\":\"a\"", i);
    }
    ew__buf_char(&text, '}');
    for (uint64_t n = 1;; n++) {
        ew__schema_report report;
        ew__schema_report_init(&report, &t.env, (ew_str){NULL, 0});
        ew__test_env_fail_at(&t, n, false);
        ew_err err = ew__schema_check(schema, &t.env, ew__buf_view(&text), &report);
        bool failed = ew__test_env_failed(&t) != 0;
        assert_int_equal(err, failed ? EW_ENOMEM : EW_ETYPE);
        ew__schema_report_done(&report);
        assert_int_equal(ew__test_env_live_blocks(&t), 0);
        if (!failed) {
            break;
        }
    }
    ew__schema_free(schema);
    ew__buf_done(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_schema__reports),
        cmocka_unit_test(test_json_schema__many_faults),
        cmocka_unit_test(test_json_schema__refused),
        cmocka_unit_test(test_json_schema__problem_has_its_place),
        cmocka_unit_test(test_json_schema__repeated_members),
        cmocka_unit_test(test_json_schema__deep),
        cmocka_unit_test(test_json_schema__dynamic_circle),
        cmocka_unit_test(test_json_schema__exponential),
        cmocka_unit_test(test_json_schema__large_sets),
        cmocka_unit_test(test_json_schema__large_enum),
        cmocka_unit_test(test_json_schema__large_notes),
        cmocka_unit_test(test_json_schema__memory_fails),
        cmocka_unit_test(test_json_schema__memory_fails_checking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
