/*
 * call/contract.h: what an action says of its input, its result and its chunks, compiled from its schemas: who breaks it
 * is told so on every wire alike. May include: base, json.
 */
#ifndef EW_CALL_CONTRACT_H
#define EW_CALL_CONTRACT_H

#include "schema/schema.h"
#include <everywire/app.h>

/* NULL: anything goes, and nothing is looked at. */
typedef struct ew__contract {
    ew__schema *input, *output, *chunk;
} ew__contract;

/* Which of the schemas is none, and why. */
typedef struct ew__contract_problem {
    const char *option; /* "input_schema" */
    ew__schema_problem schema;
} ew__contract_problem;

/*
 * Compiles the schemas of an action's options (may be NULL). EW_OK; EW_ESYNTAX, EW_EINVAL, EW_ELIMIT as
 * ew__schema_compile: *problem (may be NULL) says why; EW_ENOMEM.
 */
ew_err ew__contract_make(const ew_env *env, const ew_action_options *options, ew__contract *ret,
                         ew__contract_problem *problem);
void ew__contract_done(ew__contract *contract);

/* One line about options that were refused: "input_schema: /type: ..."; false: their schemas are fine. */
bool ew__contract_say(const ew_env *env, const ew_action_options *options, char *out, size_t size);

typedef enum ew__contract_part { EW__CONTRACT_INPUT, EW__CONTRACT_RESULT, EW__CONTRACT_CHUNK } ew__contract_part;

/*
 * Whether a value (valid JSON) fits a schema of a contract. If not, *fault says why; its texts lie in the report, which
 * the caller frees by ew__schema_report_done in any case.
 */
bool ew__contract_fits(const ew_env *env, const ew__schema *schema, ew__contract_part part, ew_str json,
                       ew__schema_report *report, ew_fault *fault);

#endif
