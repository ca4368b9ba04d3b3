/*
 * tests/support/corpus.h: reads a corpus of cases, one JSON object on each line. Only for tests: a broken file ends the
 * test.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_CORPUS_H
#define EW_TESTS_CORPUS_H

#include <everywire/json.h>
#include <stdio.h>

typedef struct corpus {
    FILE *file;
    char *text; /* the line */
    size_t cap;
    ew_str row;   /* the same, checked */
    size_t n_row; /* counts from 1 */
} corpus;

/*
 * Opens EW_SHARED/corpora/<name>. When it is not there, says "SKIP: corpus <name> not present" and returns false: the
 * test then calls skip(). `shared` is the macro EW_SHARED of the test.
 */
bool corpus_open(corpus *c, const char *shared, const char *name);
void corpus_close(corpus *c);

/* The next case; false at the end. */
bool corpus_next(corpus *c);

/*
 * Members of the present case by JSON pointer. A string with an escape is decoded; the text lasts as long as the caller
 * keeps it.
 */
char *corpus_text(const corpus *c, const char *pointer); /* for free(); NULL if absent or null */
bool corpus_has(const corpus *c, const char *pointer);   /* present and not null */
/* Bytes of a hex string, or of an array of hex strings one after the other. For free(); never NULL. */
unsigned char *corpus_hex(const corpus *c, const char *pointer, size_t *ret_len);

#endif
