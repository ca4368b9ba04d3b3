/*
 * compat/rrq/toml.h: a TOML 1.0 file as the same tree that a YAML file becomes (tree.h), with the same limits. Strings and dates
 * are texts in quotes; integers are plain texts in decimal digits, whatever base they had, floats and truth values plain
 * texts, inf and nan what YAML calls .inf and .nan. No variables are put in.
 */
#ifndef EW_COMPAT_RRQ_TOML_H
#define EW_COMPAT_RRQ_TOML_H

#include "config/tree.h"

/*
 * Reads a file's text into the arena. EW_OK, also with problems (repeated keys), as long as there is a tree: *ret_root is
 * a map; EW_ESYNTAX: there is none, a problem says why; EW_ENOMEM.
 */
ew_err ew__toml_read(ew__arena *arena, ew_str toml, ew__problems *problems, ew__node **ret_root);

/* ---- between toml.c (tables and keys) and toml_values.c ---- */

typedef struct ew__toml {
    ew__arena *arena;
    ew__problems *problems;
    ew_str text;
    size_t at;        /* the next byte */
    unsigned line;    /* of `at` */
    size_t start;     /* of that line */
    size_t mark;      /* a byte of that line ... */
    unsigned columns; /* ... with that many characters before it there */
    size_t n_nodes;
    ew__buf scratch;
    struct ew__toml_table *indexed; /* tables whose maps are to be freed */
} ew__toml;

/* Adds a problem at byte `at` of the current line. Always false. */
bool ew__toml_bad(ew__toml *toml, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));
unsigned ew__toml_column(ew__toml *toml, size_t at);
/* The byte at `at` + ahead; 0 at the end. (A NUL is no byte of TOML.) */
char ew__toml_peek(const ew__toml *toml, size_t ahead);
/* If a line ends here: goes behind it. */
bool ew__toml_newline(ew__toml *toml);
/* A string that begins here, appended to toml->scratch, which is cleared; multi: """ and ''' are fine. */
bool ew__toml_string(ew__toml *toml, bool multi);
/* A number, truth value or date that begins here; into scratch, as the tree has it. */
bool ew__toml_scalar(ew__toml *toml, bool *ret_plain);

#endif
