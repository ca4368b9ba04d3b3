/*
 * schema/regex.c: from a pattern to its tree, and from that to states. The tree is as deep as groups are nested, which is
 * limited, and so is the recursion here.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "schema/regex_program.h"
#include "schema/regex_tree.h"
#include "json/text.h"

/* ---- states ---- */

#define NO_STATE UINT32_MAX
/* Parts of the tree that may be gone through: repetitions of what has no states must end too. */
#define VISITS_MAX ((uint32_t)8 * EW__REGEX_STATES_MAX)

typedef struct emitter {
    const ew__rx_tree *tree;
    ew__regex_state *states;
    uint32_t n;
    uint32_t visits;
    bool full;
} emitter;

static uint32_t put(emitter *e, ew__regex_op op, uint32_t x, uint32_t y) {
    if (e->n == EW__REGEX_STATES_MAX) {
        e->full = true;
        return e->n - 1;
    }
    e->states[e->n] = (ew__regex_state){(uint8_t)op, x, y};
    return e->n++;
}

static void emit(emitter *e, uint32_t at);

/* Each alternative but the last ends with a jump to the end; they are chained until that is known. */
static void emit_choice(emitter *e, const ew__rx_node *choice) {
    uint32_t chain = NO_STATE;
    for (uint32_t child = choice->first; child != 0 && !e->full; child = e->tree->nodes[child].next) {
        if (e->tree->nodes[child].next == 0) {
            emit(e, child);
            break;
        }
        uint32_t split = put(e, EW__RX_SPLIT, e->n + 1, 0);
        emit(e, child);
        chain = put(e, EW__RX_JUMP, chain, 0);
        e->states[split].y = e->n;
    }
    while (chain != NO_STATE && !e->full) {
        uint32_t before = e->states[chain].x;
        e->states[chain].x = e->n;
        chain = before;
    }
}

/* The copies that may be left out: each is behind a split, whose other side leads to the end. */
static void emit_optional(emitter *e, const ew__rx_node *repeat) {
    uint32_t chain = NO_STATE;
    for (uint32_t i = repeat->min; i < repeat->max && !e->full; i++) {
        chain = put(e, EW__RX_SPLIT, e->n + 1, chain);
        emit(e, repeat->first);
    }
    while (chain != NO_STATE && !e->full) {
        uint32_t before = e->states[chain].y;
        e->states[chain].y = e->n;
        chain = before;
    }
}

static void emit_repeat(emitter *e, const ew__rx_node *repeat) {
    uint32_t last = e->n;
    for (uint32_t i = 0; i < repeat->min && !e->full; i++) {
        last = e->n;
        emit(e, repeat->first);
    }
    if (repeat->max != EW__RX_NO_MAX) {
        emit_optional(e, repeat);
    } else if (repeat->min > 0) {
        (void)put(e, EW__RX_SPLIT, last, e->n + 1);
    } else {
        uint32_t split = put(e, EW__RX_SPLIT, e->n + 1, 0);
        emit(e, repeat->first);
        (void)put(e, EW__RX_JUMP, split, 0);
        e->states[split].y = e->n;
    }
}

static void emit(emitter *e, uint32_t at) {
    const ew__rx_node *node = &e->tree->nodes[at];
    if (++e->visits > VISITS_MAX) {
        e->full = true;
    }
    if (e->full) {
        return;
    }
    switch (node->kind) {
    case EW__RX_LEAF:
        (void)put(e, node->op, node->x, 0);
        break;
    case EW__RX_ROW:
        for (uint32_t child = node->first; child != 0 && !e->full; child = e->tree->nodes[child].next) {
            emit(e, child);
        }
        break;
    case EW__RX_CHOICE:
        emit_choice(e, node);
        break;
    default:
        emit_repeat(e, node);
    }
}

/* Whether nothing can match but at the beginning: ^ stands first, outside of a choice. */
static bool begins_with_anchor(const ew__rx_tree *tree, uint32_t at) {
    while (tree->nodes[at].kind == EW__RX_ROW && tree->nodes[at].first != 0) {
        at = tree->nodes[at].first;
    }
    return tree->nodes[at].kind == EW__RX_LEAF && tree->nodes[at].op == EW__RX_BEGIN;
}

static ew_err write_program(const ew__rx_tree *tree, ew__arena *arena, ew__regex_problem *problem,
                            const ew__regex **ret) {
    size_t size = EW__REGEX_STATES_MAX * sizeof(ew__regex_state);
    emitter e = {.tree = tree, .states = ew__alloc(arena->env, size)};
    if (e.states == NULL) {
        return EW_ENOMEM;
    }
    emit(&e, tree->root);
    (void)put(&e, EW__RX_MATCH, 0, 0);
    ew_err err = EW_OK;
    if (e.full) {
        *problem = (ew__regex_problem){"the pattern is too large once its repetitions are written out", 0};
        err = EW_ELIMIT;
    }
    ew__regex *regex = err == EW_OK ? ew__arena_alloc(arena, sizeof *regex) : NULL;
    if (regex != NULL) {
        *regex = (ew__regex){.n_states = e.n, .n_classes = tree->n_classes};
        regex->states = ew__arena_copy(arena, e.states, e.n * sizeof *e.states);
        if (tree->n_classes > 0) {
            regex->classes = ew__arena_copy(arena, tree->classes, tree->n_classes * sizeof *tree->classes);
        }
        regex->anchored = begins_with_anchor(tree, tree->root);
    }
    if (err == EW_OK && (regex == NULL || regex->states == NULL || (tree->n_classes > 0 && regex->classes == NULL))) {
        err = EW_ENOMEM;
    }
    ew__free(arena->env, e.states, size);
    *ret = regex;
    return err;
}

ew_err ew__regex_compile(ew__arena *arena, ew_str pattern, ew__regex_problem *problem, const ew__regex **ret) {
    ew__rx_tree tree = {.env = arena->env, .arena = arena};
    ew_err err = ew__rx_tree_read(&tree, pattern, problem);
    *ret = NULL;
    if (err == EW_OK) {
        err = write_program(&tree, arena, problem, ret);
    }
    ew__rx_tree_done(&tree);
    return err;
}
