/*
 * call/contract.c: see contract.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/contract.h"
#include <stdio.h>

static ew_err compile(const ew_env *env, const char *text, const char *option, ew__schema **ret,
                      ew__contract_problem *problem) {
    ew__contract_problem ignored;
    problem = problem ? problem : &ignored;
    problem->option = option;
    if (!text)
        return EW_OK;
    ew_err err = ew__schema_compile(env, ew_str_from(text), EW__DRAFT_2020_12, &problem->schema, ret);
    if (err == EW_OK && ew__schema_takes_all(*ret)) {
        ew__schema_free(*ret);
        *ret = NULL;
    }
    return err;
}

ew_err ew__contract_make(const ew_env *env, const ew_action_options *options, ew__contract *ret,
                         ew__contract_problem *problem) {
    *ret = (ew__contract){NULL, NULL, NULL};
    if (!options)
        return EW_OK;
    ew_err err = compile(env, options->input_schema, "input_schema", &ret->input, problem);
    if (err == EW_OK)
        err = compile(env, options->output_schema, "output_schema", &ret->output, problem);
    if (err == EW_OK)
        err = compile(env, options->stream_schema, "stream_schema", &ret->chunk, problem);
    if (err != EW_OK)
        ew__contract_done(ret);
    if (err == EW_OK && options->unchecked_output) { /* they had to be schemas all the same */
        ew__schema_free(ret->output);
        ew__schema_free(ret->chunk);
        ret->output = ret->chunk = NULL;
    }
    return err;
}

void ew__contract_done(ew__contract *contract) {
    ew__schema_free(contract->input);
    ew__schema_free(contract->output);
    ew__schema_free(contract->chunk);
    *contract = (ew__contract){NULL, NULL, NULL};
}

bool ew__contract_say(const ew_env *env, const ew_action_options *options, char *out, size_t size) {
    ew__contract contract;
    ew__contract_problem problem;
    ew_err err = ew__contract_make(env, options, &contract, &problem);
    ew__contract_done(&contract);
    if (err == EW_OK || err == EW_ENOMEM)
        return false;
    const char *pointer = problem.schema.pointer;
    (void)snprintf(out, size, "%s: %.120s%s%s", problem.option, pointer, *pointer ? ": " : "", problem.schema.what);
    return true;
}

static const struct {
    ew_status status;
    ew_str broken, unknown;
} parts[] = {
    [EW__CONTRACT_INPUT] = {EW_STATUS_INVALID_ARGUMENT,
                            {"input does not match its schema: ", 33},
                            {"the input cannot be checked against its schema within the limits", 64}},
    [EW__CONTRACT_RESULT] = {EW_STATUS_INTERNAL,
                             {"the action's result does not match its schema: ", 47},
                             {"the action's result cannot be checked against its schema within the limits", 74}},
    [EW__CONTRACT_CHUNK] = {EW_STATUS_INTERNAL,
                            {"a chunk of the action does not match its schema: ", 49},
                            {"a chunk of the action cannot be checked against its schema within the limits", 76}},
};

bool ew__contract_fits(const ew_env *env, const ew__schema *schema, ew__contract_part part, ew_str json,
                       ew__schema_report *report, ew_fault *fault) {
    ew__schema_report_init(report, env, parts[part].broken);
    ew_err err = ew__schema_check(schema, env, json.len ? json : EW_STR("null"), report);
    if (err == EW_OK)
        return true;
    *fault = (ew_fault){.status = parts[part].status};
    if (err == EW_ETYPE) {
        fault->message = ew__buf_view(&report->line);
        fault->details = ew__buf_view(&report->errors);
    } else {
        fault->status = EW_STATUS_RESOURCE_EXHAUSTED;
        fault->message = err == EW_ENOMEM ? EW_STR("out of memory") : parts[part].unknown;
    }
    return false;
}
