/*
 * tests/unit/schema/test_schema_suite.c: the public JSON-Schema-Test-Suite: all required cases of 2020-12 and draft-07.
 * Those that need another document are listed here by name, and must be refused.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/json/verdict.h"

#include "schema/schema.h"
#include "support/json_or.h"
#include <dirent.h>

#define SUITE EW_SHARED "/corpora/json-schema-test-suite/tests"

/* Groups whose schema refers to a document that the suite serves over HTTP, which we never fetch. */
static const struct {
    const char *file;
    const char *group;
} remote_2020_12[] =
    {
        {"dynamicRef.json", "strict-tree schema, guards against misspelled properties"},
        {"dynamicRef.json", "tests for implementation dynamic anchor and reference link"},
        {"dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $defs first"},
        {"dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $ref first"},
        {"dynamicRef.json", "$ref to $dynamicRef finds detached $dynamicAnchor"},
        {"refRemote.json", "remote ref"},
        {"refRemote.json", "fragment within remote ref"},
        {"refRemote.json", "anchor within remote ref"},
        {"refRemote.json", "ref within remote ref"},
        {"refRemote.json", "base URI change"},
        {"refRemote.json", "base URI change - change folder"},
        {"refRemote.json", "base URI change - change folder in subschema"},
        {"refRemote.json", "root ref in remote ref"},
        {"refRemote.json", "remote ref with ref to defs"},
        {"refRemote.json", "Location-independent identifier in remote ref"},
        {"refRemote.json", "retrieved nested refs resolve relative to their URI not $id"},
        {"refRemote.json", "remote HTTP ref with different $id"},
        {"refRemote.json", "remote HTTP ref with different URN $id"},
        {"refRemote.json", "remote HTTP ref with nested absolute ref"},
        {"refRemote.json", "$ref to $ref finds detached $anchor"},
        /* their $schema is such a document */
        {"vocabulary.json", "schema that uses custom metaschema with with no validation vocabulary"},
        {"vocabulary.json", "ignore unrecognized optional vocabulary"},
},
  remote_07[] = {
      {"refRemote.json", "remote ref"},
      {"refRemote.json", "fragment within remote ref"},
      {"refRemote.json", "ref within remote ref"},
      {"refRemote.json", "base URI change"},
      {"refRemote.json", "base URI change - change folder"},
      {"refRemote.json", "base URI change - change folder in subschema"},
      {"refRemote.json", "root ref in remote ref"},
      {"refRemote.json", "remote ref with ref to definitions"},
      {"refRemote.json", "Location-independent identifier in remote ref"},
      {"refRemote.json", "retrieved nested refs resolve relative to their URI not $id"},
      {"refRemote.json", "$ref to $ref finds location-independent $id"},
};

typedef struct tally {
    ew__draft draft;
    bool optional; /* counted, not required */
    unsigned groups, cases, held, refused, remote_groups, remote_cases;
} tally;

static bool needs_remote(ew__draft draft, const char *file, ew_str group) {
    bool old = draft == EW__DRAFT_07;
    size_t n = old ? sizeof remote_07 / sizeof remote_07[0] : sizeof remote_2020_12 / sizeof remote_2020_12[0];
    for (size_t i = 0; i < n; i++) {
        const char *listed_file = old ? remote_07[i].file : remote_2020_12[i].file;
        const char *listed = old ? remote_07[i].group : remote_2020_12[i].group;
        if (strcmp(file, listed_file) == 0 && ew_str_eq(group, ew_str_from(listed))) {
            return true;
        }
    }
    return false;
}

static size_t count(ew_str array) {
    ew_json_iter it = {{NULL, 0}, {NULL, 0}, 0};
    size_t n = 0;
    while (ew_json_next(array, &it)) {
        n++;
    }
    return n;
}

static void run_cases(tally *t, const ew__schema *schema, const char *file, ew_str group) {
    ew_json_iter it = {{NULL, 0}, {NULL, 0}, 0};
    ew_str cases = ew_json_get(group, "/tests");
    while (ew_json_next(cases, &it)) {
        ew__schema_report report;
        ew__schema_report_init(&report, ew_env_default(), (ew_str){NULL, 0});
        bool valid = json_bool_or(it.value, "/valid", false);
        ew_err err = ew__schema_check(schema, ew_env_default(), ew_json_get(it.value, "/data"), &report);
        t->cases++;
        if (err == (valid ? EW_OK : EW_ETYPE)) {
            t->held++;
        } else if (!t->optional) {
            ew_str name = ew_json_get(group, "/description"), which = ew_json_get(it.value, "/description");
            print_error("%s: %.*s: %.*s: expected %s, got %s %.*s\n", file, (int)name.len, name.ptr, (int)which.len,
                        which.ptr, valid ? "valid" : "invalid", ew_err_name(err), (int)report.line.len,
                        report.line.len > 0 ? report.line.ptr : "");
        }
        if (err == EW_ETYPE) { /* and the report is JSON, with a reason in it */
            assert_int_equal(ew__json_validate(ew__buf_view(&report.errors), NULL), EW_OK);
            assert_true(ew_json_get(ew__buf_view(&report.errors), "/errors/0/keyword").len > 2);
            assert_true(report.line.len > 0);
        }
        ew__schema_report_done(&report);
    }
}

static void run_group(tally *t, const char *file, ew_str group) {
    ew__schema *schema = NULL;
    ew__schema_problem problem;
    ew_str name = json_str_or(group, "/description", ew_str_from(""));
    ew_err err = ew__schema_compile(ew_env_default(), ew_json_get(group, "/schema"), t->draft, &problem, &schema);
    t->groups++;
    if (!t->optional && needs_remote(t->draft, file, name)) {
        assert_int_equal(err, EW_EINVAL); /* refused, and it says what it would have needed */
        assert_true(strstr(problem.what, "not in this document") || strstr(problem.what, "dialect is not known"));
        t->remote_groups++;
        t->remote_cases += (unsigned)count(ew_json_get(group, "/tests"));
    } else if (err != EW_OK) {
        t->refused++;
        t->cases += (unsigned)count(ew_json_get(group, "/tests"));
        if (!t->optional) {
            print_error("%s: %.*s: refused: %s: %s: %s\n", file, (int)name.len, name.ptr, ew_err_name(err),
                        problem.pointer, problem.what);
        }
    } else {
        run_cases(t, schema, file, group);
    }
    ew__schema_free(schema);
}

static void run_file(tally *t, const char *folder, const char *file) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    char *text = malloc(1 << 20);
    assert_non_null(text);
    ew_str json = ew__str(text, fread(text, 1, 1 << 20, stream));
    fclose(stream);
    assert_int_equal(ew__json_validate(json, NULL), EW_OK);
    ew_json_iter it = {{NULL, 0}, {NULL, 0}, 0};
    while (ew_json_next(json, &it)) {
        run_group(t, file, it.value);
    }
    free(text);
}

static bool run_folder(tally *t, const char *folder) {
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        print_message("SKIP: corpus %s not present\n", folder);
        return false;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        size_t len = strlen(entry->d_name);
        if (len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0) {
            run_file(t, folder, entry->d_name);
        }
    }
    closedir(dir);
    return true;
}

static void run_required(ew__draft draft, const char *folder, unsigned cases, unsigned remote_groups,
                         unsigned remote_cases) {
    tally t = {.draft = draft};
    if (!run_folder(&t, folder)) {
        skip();
    }
    print_message("%s: %u of %u cases hold; %u groups (%u cases) need another document\n", folder, t.held, t.cases,
                  t.remote_groups, t.remote_cases);
    assert_int_equal(t.refused, 0);
    assert_int_equal(t.held, t.cases);
    assert_int_equal(t.remote_groups, remote_groups);
    assert_int_equal(t.remote_cases, remote_cases);
    assert_int_equal(t.cases + t.remote_cases, cases);
}

static void test_json_schema_suite__draft_2020_12(void **state) {
    (void)state;
    run_required(EW__DRAFT_2020_12, SUITE "/draft2020-12", 1299, sizeof remote_2020_12 / sizeof remote_2020_12[0], 49);
}

static void test_json_schema_suite__draft_07(void **state) {
    (void)state;
    run_required(EW__DRAFT_07, SUITE "/draft7", 927, sizeof remote_07 / sizeof remote_07[0], 23);
}

/* Not required, and format is an annotation here: how many hold is said, not asked for. */
static void test_json_schema_suite__optional(void **state) {
    (void)state;
    tally t[2] = {{.draft = EW__DRAFT_2020_12, .optional = true}, {.draft = EW__DRAFT_07, .optional = true}};
    const char *folders[] = {SUITE "/draft2020-12/optional", SUITE "/draft7/optional"};
    for (size_t i = 0; i < 2; i++) {
        if (!run_folder(&t[i], folders[i])) {
            skip();
        }
        print_message("%s: %u of %u optional cases hold, %u of %u schemas are refused\n", folders[i], t[i].held,
                      t[i].cases, t[i].refused, t[i].groups);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_schema_suite__draft_2020_12),
        cmocka_unit_test(test_json_schema_suite__draft_07),
        cmocka_unit_test(test_json_schema_suite__optional),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
