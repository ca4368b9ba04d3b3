/*
 * schema/regex_program.h: what a compiled pattern is. For the files json/regex*.c.
 */
#ifndef EW_SCHEMA_REGEX_PROGRAM_H
#define EW_SCHEMA_REGEX_PROGRAM_H

#include "schema/regex.h"

typedef enum ew__regex_op {
    EW__RX_CHAR,  /* x: the code point */
    EW__RX_CLASS, /* x: the class */
    EW__RX_SPLIT, /* goes on at x and at y */
    EW__RX_JUMP,  /* goes on at x */
    EW__RX_BEGIN, /* ^ */
    EW__RX_END,   /* $ */
    EW__RX_WORD,  /* \b */
    EW__RX_NO_WORD,
    EW__RX_MATCH
} ew__regex_op;

typedef struct ew__regex_state {
    uint8_t op;
    uint32_t x, y;
} ew__regex_state;

typedef struct ew__range {
    uint32_t low, high; /* both of them too */
} ew__range;

/* Sorted ranges that do not touch, and the first 128 code points as bits. */
typedef struct ew__regex_class {
    uint64_t ascii[2];
    const ew__range *ranges;
    uint32_t n;
} ew__regex_class;

struct ew__regex {
    const ew__regex_state *states;
    uint32_t n_states;
    const ew__regex_class *classes;
    uint32_t n_classes;
    bool anchored; /* begins with ^ */
};

#define EW__POINT_MAX 0x10ffffu

/* Ranges of a property such as "Lu" or "Letter"; NULL: not known. */
const ew__range *ew__unicode_property(ew_str name, uint32_t *ret_n);

/* ---- building: regex_class.c ---- */

typedef struct ew__ranges {
    const ew_env *env;
    ew__range *list;
    uint32_t n, cap;
} ew__ranges;

#define EW__RANGES_MAX 16384

ew_err ew__ranges_add(ew__ranges *set, uint32_t low, uint32_t high); /* EW_ELIMIT, EW_ENOMEM */
ew_err ew__ranges_add_all(ew__ranges *set, const ew__range *ranges, uint32_t n, bool others);
/* One of dDwWsS. */
ew_err ew__ranges_add_escape(ew__ranges *set, char letter);
void ew__ranges_done(ew__ranges *set);
/* Sorted, joined and (with others) turned into what is not in it; copied into the arena. Empties the set. */
ew_err ew__ranges_finish(ew__ranges *set, bool others, ew__arena *arena, ew__regex_class *ret);

#endif
