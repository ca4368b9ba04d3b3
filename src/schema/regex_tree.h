/*
 * schema/regex_tree.h: a pattern as a tree. For schema/regex.c.
 */
#ifndef EW_SCHEMA_REGEX_TREE_H
#define EW_SCHEMA_REGEX_TREE_H

#include "schema/regex_program.h"

typedef enum ew__rx_kind {
    EW__RX_LEAF,   /* one state: op and x */
    EW__RX_ROW,    /* one after the other */
    EW__RX_CHOICE, /* one of them */
    EW__RX_REPEAT  /* the child, min to max times */
} ew__rx_kind;

#define EW__RX_NO_MAX UINT32_MAX

typedef struct ew__rx_node {
    ew__rx_kind kind;
    ew__regex_op op;
    uint32_t x;
    uint32_t first; /* child; 0: none */
    uint32_t next;  /* after it, of the same parent; 0: none */
    uint32_t min, max;
} ew__rx_node;

typedef struct ew__rx_tree {
    const ew_env *env;
    ew__arena *arena;   /* where the ranges of classes go */
    ew__rx_node *nodes; /* node 0 is not used */
    uint32_t n, cap;
    ew__regex_class *classes;
    uint32_t n_classes, cap_classes;
    uint32_t root;
} ew__rx_tree;

ew_err ew__rx_tree_read(ew__rx_tree *tree, ew_str pattern, ew__regex_problem *problem);
void ew__rx_tree_done(ew__rx_tree *tree);

#endif
