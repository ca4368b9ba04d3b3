/*
 * config/problem.h: what is wrong with a configuration file: all of it, not only the first thing, each with its place.
 */
#ifndef EW_CONFIG_PROBLEM_H
#define EW_CONFIG_PROBLEM_H

#include "base/mem.h"

/* More are counted only. */
#define EW__PROBLEMS_MAX 100

/* line and column count from 1; 0: of the file as a whole. */
typedef struct ew__problem {
    unsigned line, column;
    const char *message; /* the arena's */
} ew__problem;

typedef struct ew__problems {
    ew__arena *arena;
    ew__problem list[EW__PROBLEMS_MAX];
    size_t n;
    size_t left_out; /* beyond the maximum */
    bool no_memory;  /* one was lost, or what was read is not whole, for want of memory */
} ew__problems;

void ew__problems_init(ew__problems *problems, ew__arena *arena);
/* One line; bytes that a terminal must not show (base/printable.h) become question marks. */
void ew__problem_add(ew__problems *problems, unsigned line, unsigned column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* By line and column; those of one place stay in their order. */
void ew__problems_sort(ew__problems *problems);

/* A text of the file as messages show it: short, and cut between characters. */
typedef struct ew__shown {
    char text[72];
} ew__shown;
ew__shown ew__show(ew_str text);

#endif
