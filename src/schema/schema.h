/*
 * schema/schema.h: JSON Schema, 2020-12 and draft-07. A schema is compiled once into a program that never changes; texts
 * are checked against it from any thread, in bounded time. Nothing is ever fetched: what a schema refers to is in its
 * own text, or one of the two meta-schemas. docs/schema.md says what is supported.
 */
#ifndef EW_SCHEMA_SCHEMA_H
#define EW_SCHEMA_SCHEMA_H

#include "base/buf.h"
#include <everywire/json.h>

typedef struct ew__schema ew__schema;

typedef enum ew__draft { EW__DRAFT_2020_12, EW__DRAFT_07 } ew__draft;

#define EW__SCHEMA_BYTES_MAX ((size_t)1024 * 1024)
#define EW__SCHEMA_ERRORS_MAX 8   /* faults told of one text */
#define EW__SCHEMA_DEPTH_MAX 1024 /* schemas within each other while a text is checked */
/* Steps that checking a text may take: a schema looked at, a member, a state of a pattern and so on are one each. */
#define EW__SCHEMA_STEPS ((uint64_t)16 * 1024 * 1024)
#define EW__SCHEMA_STEPS_PER_BYTE 64u

/* Why a schema is none. */
typedef struct ew__schema_problem {
    char pointer[256]; /* JSON pointer to the keyword at fault; cut if it is longer */
    char what[256];    /* one line for people */
    size_t at;         /* where it begins in the text */
} ew__schema_problem;

/*
 * Compiles a schema. draft: the dialect where the text has no $schema. EW_OK; EW_ESYNTAX: no JSON; EW_EINVAL: no schema,
 * or one that needs another document; EW_ELIMIT: too large; EW_ENOMEM. *problem is set but for the last.
 */
ew_err ew__schema_compile(const ew_env *env, ew_str text, ew__draft draft, ew__schema_problem *problem,
                          ew__schema **ret);
void ew__schema_free(ew__schema *schema); /* NULL is fine */

/* Whether it says nothing that a value could break, as {} does. */
bool ew__schema_takes_all(const ew__schema *schema);

/* How a text fails: a line for people, and the list for programs. No value of the text is in it; names of members are. */
typedef struct ew__schema_report {
    ew_str before;
    ew__buf line;   /* "/name: expected string, got integer" */
    ew__buf errors; /* {"errors":[{"path":..,"keyword":..,"schema_path":..,"message":..}, ...]} */
    unsigned n;
} ew__schema_report;

/* The line begins with `before`, borrowed until the check. Allocates nothing. */
void ew__schema_report_init(ew__schema_report *report, const ew_env *env, ew_str before);
void ew__schema_report_done(ew__schema_report *report);

/*
 * Checks a valid JSON text. EW_OK: it fits; EW_ETYPE: it does not, and the report (may be NULL) says why; EW_ELIMIT: it
 * could not be found out within the limits above; EW_ENOMEM. Any thread, many at once; memory comes from env.
 */
ew_err ew__schema_check(const ew__schema *schema, const ew_env *env, ew_str json, ew__schema_report *report);

/* The same, saying how many steps it took. */
ew_err ew__schema_check_counting(const ew__schema *schema, const ew_env *env, ew_str json, ew__schema_report *report,
                                 uint64_t *ret_steps);

#endif
