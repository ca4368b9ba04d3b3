/*
 * base/opt.h: command lines as data: a table of options, one reader for all of them, and their help. It prints only
 * where a function takes a FILE. Libc only; no state outside the caller's memory.
 */
#ifndef EW_BASE_OPT_H
#define EW_BASE_OPT_H

#include <everywire/base.h>
#include <stdio.h>

/* One option. A table of them ends with an entry whose name is NULL. */
typedef struct ew__opt {
    const char *name; /* long name without its dashes */
    char letter;      /* 'h' for -h; 0 for none */
    const char *arg;  /* what the help calls its argument; NULL: it takes none; "[=...]": it may, in the same word */
    const char *help; /* for people; a newline goes on in the help's column */
    int id;           /* what ew__opts_next answers; above 0 */
} ew__opt;

#define EW__OPT_END 0     /* no more words */
#define EW__OPT_WORD (-1) /* an operand: opts.value */
#define EW__OPT_REST (-2) /* "--": what follows it starts at argv[opts.at] and is the caller's */
#define EW__OPT_BAD (-3)  /* opts.problem says what is wrong */

typedef struct ew__opts {
    const ew__opt *table;
    int argc;
    char *const *argv;
    int at;            /* the next word */
    const char *value; /* the option's argument, or the operand */
    char problem[256];
} ew__opts;

/* Reads argv from index `first` on. All pointers are borrowed. */
void ew__opts_init(ew__opts *opts, const ew__opt *table, int argc, char *const *argv, int first);

/*
 * The next option's id, or one of the EW__OPT_ values. "--name value", "--name=value", "-n value"; options and operands
 * may stand in any order. "-" and negative numbers are operands.
 */
int ew__opts_next(ew__opts *opts);

/* What is shown for an option's help; it may use `room`. */
typedef const char *(*ew__opt_text)(const char *help, char *room, size_t size);

/* One line or more per option, in two columns. text: NULL shows the helps as they are. */
void ew__opts_help(FILE *out, const ew__opt *table, ew__opt_text text);

/*
 * The first thing a program does: whoever started it may have closed a standard descriptor, and what is opened next
 * would get its number. Missing ones become /dev/null.
 */
void ew__standard_descriptors(void);

#endif
