/*
 * json/skim.h: finds a few members of an object whose text arrives in pieces and is not kept: what an envelope says of
 * a message that is too large, or nested too deep, to be parsed. Constant memory for any number of bytes. It validates
 * only the values that it returns: they are good for refusing the message, not for using it. May include: base.
 */
#ifndef EW_JSON_SKIM_H
#define EW_JSON_SKIM_H

#include "base/util.h"

#define EW__SKIM_NAMES 8   /* members that one skim looks for, at most */
#define EW__SKIM_KEY 32    /* bytes of a name that is looked for, at most */
#define EW__SKIM_ROOM 1024 /* bytes of all values that are kept */

/* A member of the root; or, with a parent, of the object that is the root's member of that name. */
typedef struct ew__skim_name {
    const char *parent; /* NULL: the root */
    const char *name;
} ew__skim_name;

typedef struct ew__skim_slot {
    uint16_t at, len; /* in `text` */
    bool found;
    bool unusable; /* it occurs more than once, or is too long */
} ew__skim_slot;

typedef struct ew__skim {
    const ew__skim_name *names;
    size_t n;
    uint64_t depth;        /* containers that are open */
    uint8_t level_kind[3]; /* [1] and [2]: the container of that level is an object */
    bool want_key;         /* the next string is a name of level 1 or 2 */
    bool in_string, escaped, in_key;
    bool done;                 /* the root has ended */
    bool stray;                /* the first byte that is not white space does not begin an object or an array */
    int slot;                  /* that the value which is being read goes to; -1: none */
    char key[3][EW__SKIM_KEY]; /* [1] and [2]: the present name of that level */
    uint8_t key_len[3];        /* EW__SKIM_KEY: longer than any that is looked for, or with an escape */
    ew__skim_slot slots[EW__SKIM_NAMES];
    uint16_t used; /* of text */
    char text[EW__SKIM_ROOM];
} ew__skim;

/* names must stay valid; n <= EW__SKIM_NAMES. */
void ew__skim_init(ew__skim *skim, const ew__skim_name *names, size_t n);

/* The next bytes of the text, cut anywhere. Returns how many belong to the root value: fewer than all once it ended. */
size_t ew__skim_feed(ew__skim *skim, ew_str bytes);

/*
 * What names[i] was: a scalar as written in the text, which is valid JSON by itself; "{" or "[" for a container. Empty:
 * it was not found, is not valid, occurs more than once, is too long, or its name is written with escapes. Valid as long
 * as the skim.
 */
ew_str ew__skim_value(const ew__skim *skim, size_t i);

#endif
