/*
 * cli/find.h: one action among those that a peer has listed. See find.c.
 */
#ifndef EW_CLI_FIND_H
#define EW_CLI_FIND_H

#include "cli/cli.h"

typedef struct ew__cli_match {
    unsigned n;        /* how many have that name; 1: it is this one */
    ew_str key;        /* a JSON string; borrowed from the list */
    ew_str descriptor; /* likewise */
    unsigned n_near;
    ew__text matches; /* n above 1: their keys, a JSON array */
    ew__text near;    /* n_near above 0: keys with a name like it, likewise */
} ew__cli_match;

/* list: key to descriptor. EW_OK or EW_ENOMEM; ew__cli_match_done in any case. */
ew_err ew__find_action(ew_str list, ew_str wanted, ew__cli_match *found);
/* The keys of such an array as text for people, "a, b". */
ew_err ew__cli_match_names(ew_str keys, ew__text *out);
void ew__cli_match_done(ew__cli_match *found);

#endif
