/*
 * schema/regex_run.c: matching. All states that the text so far may lead to are kept as a set; each character makes the
 * next set. The time is at most the length of the text times the number of states, whatever the pattern.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "schema/regex_program.h"
#include "json/text.h"

#define NO_POINT UINT32_MAX /* before the first and behind the last character */

/* Between two characters. */
typedef struct place {
    uint32_t before, behind;
} place;

typedef struct matcher {
    const ew__regex *regex;
    uint32_t *list; /* states at this place that read a character */
    uint32_t n_list;
    uint32_t *next;  /* those of the place after it */
    uint32_t *seen;  /* the turn in which a state was last added */
    uint32_t *stack; /* states whose followers are to be added */
    uint32_t turn;
    uint64_t left; /* steps */
    bool matched;
} matcher;

size_t ew__regex_words(const ew__regex *regex) { return (size_t)4 * regex->n_states; }

static bool is_word(uint32_t point) {
    return (point >= '0' && point <= '9') || (point >= 'a' && point <= 'z') || (point >= 'A' && point <= 'Z') ||
           point == '_';
}

static bool holds(ew__regex_op op, place at) {
    switch (op) {
    case EW__RX_BEGIN:
        return at.before == NO_POINT;
    case EW__RX_END:
        return at.behind == NO_POINT;
    default:
        return (is_word(at.before) != is_word(at.behind)) == (op == EW__RX_WORD);
    }
}

static void push(matcher *m, uint32_t *n_stack, uint32_t state) {
    if (m->seen[state] != m->turn) {
        m->seen[state] = m->turn;
        m->stack[(*n_stack)++] = state;
    }
}

/* Adds a state, or those that it leads to without reading anything. False: no steps are left. */
static bool add(matcher *m, uint32_t *list, uint32_t *n_list, uint32_t first, place at) {
    uint32_t n_stack = 0;
    push(m, &n_stack, first);
    while (n_stack > 0) {
        uint32_t state = m->stack[--n_stack];
        const ew__regex_state *s = &m->regex->states[state];
        if (m->left == 0) {
            return false;
        }
        m->left--;
        switch ((ew__regex_op)s->op) {
        case EW__RX_CHAR:
        case EW__RX_CLASS:
            list[(*n_list)++] = state;
            break;
        case EW__RX_MATCH:
            m->matched = true;
            return true;
        case EW__RX_SPLIT:
            push(m, &n_stack, s->y);
            push(m, &n_stack, s->x);
            break;
        case EW__RX_JUMP:
            push(m, &n_stack, s->x);
            break;
        default:
            if (holds((ew__regex_op)s->op, at)) {
                push(m, &n_stack, state + 1);
            }
        }
    }
    return true;
}

static bool in_class(const ew__regex_class *class, uint32_t point) {
    if (point < 128) {
        return (class->ascii[point / 64] >> point % 64 & 1) != 0;
    }
    uint32_t low = 0, high = class->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (class->ranges[middle].high < point) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < class->n && class->ranges[low].low <= point;
}

static bool reads(const ew__regex *regex, const ew__regex_state *s, uint32_t point) {
    return s->op == EW__RX_CHAR ? s->x == point : in_class(&regex->classes[s->x], point);
}

/* From this place over the character behind it to the next. */
static bool step(matcher *m, place next) {
    uint32_t n = 0;
    m->turn++;
    for (uint32_t i = 0; i < m->n_list; i++) {
        const ew__regex_state *s = &m->regex->states[m->list[i]];
        if (reads(m->regex, s, next.before) && !add(m, m->next, &n, m->list[i] + 1, next)) {
            return false;
        }
        if (m->matched) {
            return true;
        }
    }
    uint32_t *swapped = m->list;
    m->list = m->next;
    m->next = swapped;
    m->n_list = n;
    return true;
}

static uint32_t read_point(const char **at, const char *end) {
    if (*at == end) {
        return NO_POINT;
    }
    unsigned char c = (unsigned char)**at;
    if (c < 0x80 && c != '\\') {
        (*at)++;
        return c;
    }
    return ew__json_char(at, end);
}

ew_err ew__regex_match(const ew__regex *regex, ew_str text, uint32_t *words, uint64_t *steps, bool *ret) {
    uint32_t n = regex->n_states;
    const char *at = text.ptr, *end = ew__json_end(text);
    matcher m = {.regex = regex, .list = words, .next = words + n, .left = *steps, .turn = 1};
    m.seen = words + (size_t)2 * n;
    m.stack = words + (size_t)3 * n;
    memset(m.seen, 0, n * sizeof *m.seen);
    place here = {NO_POINT, read_point(&at, end)};
    bool more = true;
    while (more) {
        if (!(regex->anchored && here.before != NO_POINT)) {
            more = add(&m, m.list, &m.n_list, 0, here);
        }
        if (!more || m.matched || here.behind == NO_POINT || (regex->anchored && m.n_list == 0)) {
            break;
        }
        place next = {here.behind, read_point(&at, end)};
        more = step(&m, next);
        if (m.matched) {
            break;
        }
        here = next;
    }
    *ret = m.matched;
    *steps = m.left;
    return more ? EW_OK : EW_ELIMIT;
}
