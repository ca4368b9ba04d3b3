/*
 * schema/run.h: checking a text against a program. For the files json/schema_*.c.
 */
#ifndef EW_SCHEMA_RUN_H
#define EW_SCHEMA_RUN_H

#include "schema/program.h"

/* A step from the root of the text to the value that is being looked at; lies on the stack of whoever takes it. */
typedef struct ew__schema_path {
    const struct ew__schema_path *up;
    uint32_t name;  /* of a member: the item of its name; 0 for elements */
    uint32_t index; /* of an element */
} ew__schema_path;

/* Schemas with identifiers that were entered: where $dynamicRef looks. */
typedef struct ew__scope {
    const struct ew__scope *up;
    const ew__resource *resource;
} ew__scope;

/* Which members or elements of a value some schema has looked at. */
typedef struct ew__notes {
    uint64_t small; /* the bits, where there are few */
    uint64_t *bits;
    uint32_t n;
} ew__notes;

typedef struct ew__checking {
    const ew__schema *schema;
    const ew_env *env;
    ew__tape tape;
    ew__schema_report *report; /* NULL: nobody wants to know why */
    const ew__scope *scope;
    uint64_t left;  /* steps */
    unsigned quiet; /* above 0: what fails here need not fail all */
    unsigned depth;
    ew_err err;      /* no answer can be found */
    uint32_t *words; /* for patterns */
} ew__checking;

/* A value, the schema it is checked against, and what was noted of it (NULL: nobody needs to know). */
typedef struct ew__visit {
    const ew__schema_node *node;
    uint32_t item;
    const ew__schema_path *path;
    ew__notes *notes;
} ew__visit;

/* Takes steps; false: there are none left. */
static inline bool ew__checking_spend(ew__checking *run, uint64_t steps) {
    if (run->left < steps) {
        run->err = EW_ELIMIT;
        return false;
    }
    run->left -= steps;
    return true;
}

/* Whether nothing is to be found out any more once something has failed. */
static inline bool ew__checking_over(const ew__checking *run) {
    return run->err != EW_OK || run->quiet > 0 || run->report == NULL || run->report->n >= EW__SCHEMA_ERRORS_MAX;
}

/* Whether the value fits the schema. */
bool ew__checking_check(ew__checking *run, ew__visit visit);
/* Notes a failure; false. */
bool ew__checking_fail(ew__checking *run, const ew__visit *visit, const char *keyword, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool ew__checking_fail_false(ew__checking *run, const ew__visit *visit);
bool ew__checking_fail_type(ew__checking *run, const ew__visit *visit, unsigned types);
bool ew__checking_fail_choice(ew__checking *run, const ew__visit *visit, const ew__rule *rule);

/* Rules that look at the value alone: schema_values.c. */
bool ew__checking_value_rule(ew__checking *run, const ew__visit *visit, const ew__rule *rule);
bool ew__checking_matches(ew__checking *run, const ew__regex *regex, uint32_t item);
bool ew__checking_is_integer(const ew__checking *run, uint32_t item);

#endif
