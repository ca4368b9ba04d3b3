/*
 * schema/regex_class.c: classes of characters as sorted ranges.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "schema/regex_program.h"
#include "json/sort.h"

static const ew__range digits[] = {{'0', '9'}};
static const ew__range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
/* White space and ends of lines as ECMA-262 has them. */
static const ew__range spaces[] = {{0x9, 0xd},       {0x20, 0x20},     {0xa0, 0xa0},     {0x1680, 0x1680},
                                   {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
                                   {0x3000, 0x3000}, {0xfeff, 0xfeff}};

void ew__ranges_done(ew__ranges *set) {
    ew__free(set->env, set->list, set->cap * sizeof *set->list);
    set->list = NULL;
    set->n = set->cap = 0;
}

ew_err ew__ranges_add(ew__ranges *set, uint32_t low, uint32_t high) {
    if (set->n == set->cap) {
        uint32_t cap = set->cap != 0 ? set->cap * 2 : 16;
        if (cap > EW__RANGES_MAX) {
            return EW_ELIMIT;
        }
        ew__range *list = ew__realloc(set->env, set->list, set->cap * sizeof *list, cap * sizeof *list);
        if (list == NULL) {
            return EW_ENOMEM;
        }
        set->list = list;
        set->cap = cap;
    }
    set->list[set->n++] = (ew__range){low, high};
    return EW_OK;
}

ew_err ew__ranges_add_all(ew__ranges *set, const ew__range *ranges, uint32_t n, bool others) {
    uint32_t from = 0;
    ew_err err = EW_OK;
    for (uint32_t i = 0; err == EW_OK && i < n; i++) {
        if (!others) {
            err = ew__ranges_add(set, ranges[i].low, ranges[i].high);
        } else if (ranges[i].low > from) {
            err = ew__ranges_add(set, from, ranges[i].low - 1);
        }
        from = ranges[i].high + 1;
    }
    return err == EW_OK && others && from <= EW__POINT_MAX ? ew__ranges_add(set, from, EW__POINT_MAX) : err;
}

#define COUNT(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

ew_err ew__ranges_add_escape(ew__ranges *set, char letter) {
    switch (letter) {
    case 'd':
    case 'D':
        return ew__ranges_add_all(set, digits, COUNT(digits), letter == 'D');
    case 'w':
    case 'W':
        return ew__ranges_add_all(set, words, COUNT(words), letter == 'W');
    default:
        return ew__ranges_add_all(set, spaces, COUNT(spaces), letter == 'S');
    }
}

static bool before(const void *a, const void *b) { return ((const ew__range *)a)->low < ((const ew__range *)b)->low; }

static void join(ew__ranges *set) {
    uint32_t kept = 0;
    ew__sort(set->list, set->n, sizeof *set->list, before);
    for (uint32_t i = 0; i < set->n; i++) {
        if (kept > 0 && set->list[i].low <= set->list[kept - 1].high + 1) {
            if (set->list[i].high > set->list[kept - 1].high) {
                set->list[kept - 1].high = set->list[i].high;
            }
        } else {
            set->list[kept++] = set->list[i];
        }
    }
    set->n = kept;
}

static void note_ascii(ew__regex_class *class) {
    for (uint32_t i = 0; i < class->n; i++) {
        for (uint32_t c = class->ranges[i].low; c <= class->ranges[i].high && c < 128; c++) {
            class->ascii[c / 64] |= UINT64_C(1) << c % 64;
        }
    }
}

ew_err ew__ranges_finish(ew__ranges *set, bool others, ew__arena *arena, ew__regex_class *ret) {
    ew__ranges turned = {.env = set->env};
    ew_err err = EW_OK;
    join(set);
    if (others) {
        err = ew__ranges_add_all(&turned, set->list, set->n, true);
    }
    const ew__ranges *from = others ? &turned : set;
    *ret = (ew__regex_class){.n = from->n};
    if (err == EW_OK && from->n > 0) {
        ret->ranges = ew__arena_copy(arena, from->list, from->n * sizeof *from->list);
        err = ret->ranges != NULL ? EW_OK : EW_ENOMEM;
    }
    if (err == EW_OK) {
        note_ascii(ret);
    }
    ew__ranges_done(&turned);
    set->n = 0;
    return err;
}
