/*
 * fuzz/config_tree.h: what holds for every configuration file that was read, in whichever language: problems in order at
 * places that exist, a tree within its limits.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_FUZZ_CONFIG_TREE_H
#define EW_FUZZ_CONFIG_TREE_H

#include "base/util.h"
#include "config/tree.h"
#include <stdlib.h>

static inline void must(bool holds) {
    if (!holds) {
        abort();
    }
}

static inline void check_problems(const ew__problems *problems, size_t size) {
    must(problems->n <= EW__PROBLEMS_MAX && !problems->no_memory);
    for (size_t i = 0; i < problems->n; i++) {
        const ew__problem *p = &problems->list[i], *before = i ? p - 1 : p;
        must(p->line <= size + 1 && p->column <= size + 2 && (p->line == 0) == (p->column == 0));
        must(before->line < p->line || (before->line == p->line && before->column <= p->column));
        must(*p->message);
    }
}

/* How many nodes there are. once: no map has a name twice (the first few members are looked at). */
static inline size_t walk(const ew__node *node, size_t depth, bool once) {
    size_t n = 1, members = 0;
    must(depth <= EW__CONFIG_DEPTH && node->line >= 1 && node->column >= 1);
    for (const ew__node *item = node->first; item; item = item->next, members++) {
        must((item->key != NULL) == (node->kind == EW__NODE_MAP));
        for (const ew__node *other = item->next; once && item->key && other && members < 20; other = other->next) {
            must(!ew__str_is(item->key->text, other->key->text));
        }
        n += walk(item, depth + 1, once);
    }
    must(members == node->n && (node->kind != EW__NODE_TEXT || node->text.ptr[node->text.len] == 0));
    return n;
}

#endif
