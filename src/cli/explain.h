/*
 * cli/explain.h: an action for people: its descriptor in words, with an example to paste. See explain.c.
 */
#ifndef EW_CLI_EXPLAIN_H
#define EW_CLI_EXPLAIN_H

#include "cli/cli.h"

typedef struct ew__explained {
    const char *target;
    const char *action; /* as the user has called it */
    char **command;     /* what stands behind --, or NULL */
    ew_str key;         /* a JSON string */
    ew_str descriptor;
} ew__explained;

void ew__explain(FILE *out, const ew__explained *what);

/* Whether a call without INPUT cannot be what is meant. empty_object: the wire sends {} for it instead of null. */
bool ew__explain_wants_input(ew_str descriptor, bool empty_object);

#endif
