/*
 * cli/completion.h: what the files of shell completion share: completion.c (what fits at the cursor), completion_live.c
 * (what only a peer or a store can tell), completion_scripts.c (the scripts, and the verb that prints them).
 */
#ifndef EW_CLI_COMPLETION_H
#define EW_CLI_COMPLETION_H

#include "cli/jobs.h"

#define EW__OPERANDS_MAX 4

/* What is being completed. */
typedef struct ew__completing {
    const char *word;                       /* at the cursor, as far as it goes */
    const char *before;                     /* what stands before it in the same word, "--config=" */
    size_t before_len;                      /* ... so many bytes */
    const char *operands[EW__OPERANDS_MAX]; /* that stand before it; NULL behind the last one */
    const char *store;                      /* --store, or NULL */
    bool files, nospace;                    /* the flags of the answer */
} ew__completing;

/* Prints a candidate, if it begins with what is there. description may be NULL. */
void ew__offer(ew__completing *c, const char *value, const char *description);

/* ---- completion_live.c: silent if it cannot be had at once ---- */

void ew__offer_actions(ew__completing *c); /* of the target that is the first operand */
void ew__offer_jobs(ew__completing *c);    /* ids */
void ew__offer_queues(ew__completing *c);

#endif
