/*
 * fuzz/fuzz_schema.c: a schema on the first line, a text on the rest; and the first line as a pattern, the rest as a
 * text for it. What is refused must say why; what is checked must end; a report must be JSON.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/json.h"
#include "schema/regex.h"
#include "schema/schema.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds) {
        abort();
    }
}

static void check(const ew__schema *schema, ew_str json) {
    ew__schema_report report;
    uint64_t steps, quiet_steps;
    ew__schema_report_init(&report, ew_env_default(), (ew_str){NULL, 0});
    ew_err err = ew__schema_check_counting(schema, ew_env_default(), json, &report, &steps);
    must(err == EW_OK || err == EW_ETYPE || err == EW_ELIMIT);
    must(steps <= EW__SCHEMA_STEPS + json.len * EW__SCHEMA_STEPS_PER_BYTE);
    if (err == EW_ETYPE) {
        must(report.n > 0 && report.line.len > 0);
        must(report.errors.len == 0 || ew__json_validate(ew__buf_view(&report.errors), NULL) == EW_OK);
    }
    ew__schema_report_done(&report);
    if (err != EW_ELIMIT) { /* whoever asks for no reasons gets the same answer, no later */
        must(ew__schema_check_counting(schema, ew_env_default(), json, NULL, &quiet_steps) == err);
        must(quiet_steps <= steps);
    }
}

static void try_schema(ew_str text, ew__draft draft, ew_str json) {
    ew__schema *schema = NULL;
    ew__schema_problem problem = {.what = ""};
    ew_err err = ew__schema_compile(ew_env_default(), text, draft, &problem, &schema);
    must((err == EW_OK) == (schema != NULL));
    must(err == EW_OK || problem.what[0] != '\0');
    if (schema != NULL && ew__json_validate(json, NULL) == EW_OK) {
        check(schema, json);
    }
    ew__schema_free(schema);
}

static void try_pattern(ew_str pattern, ew_str text) {
    ew__arena arena;
    const ew__regex *regex = NULL;
    ew__regex_problem problem = {"", 0};
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    if (ew__regex_compile(&arena, pattern, &problem, &regex) == EW_OK) {
        uint32_t *words = malloc(ew__regex_words(regex) * sizeof *words);
        uint64_t steps = 1000000;
        bool matched;
        must(words != NULL);
        ew_err err = ew__regex_match(regex, text, words, &steps, &matched);
        must(err == EW_OK || (err == EW_ELIMIT && steps == 0));
        free(words);
    } else {
        must(problem.what[0] != '\0');
    }
    ew__arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *bytes = (const char *)data;
    const char *end = size > 0 ? memchr(bytes, '\n', size) : NULL;
    size_t n = end != NULL ? (size_t)(end - bytes) : size;
    ew_str first = {bytes, n}, rest = {bytes + (end != NULL ? n + 1 : n), end != NULL ? size - n - 1 : 0};
    try_schema(first, EW__DRAFT_2020_12, rest);
    try_schema(first, EW__DRAFT_07, rest);
    try_pattern(first, rest);
    return 0;
}
