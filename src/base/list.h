/*
 * base/list.h: intrusive lists. A node is a member of its item; EW__ITEM returns the item. A list does not own its items.
 * All zero is an empty list. An item may be in one list per node.
 */
#ifndef EW_BASE_LIST_H
#define EW_BASE_LIST_H

#include "base/util.h"

/* The item around a node; NULL for NULL. */
#define EW__ITEM(node, type, member) ((type *)ew__item_of((node), offsetof(type, member)))

static inline void *ew__item_of(void *node, size_t offset) { return node ? (char *)node - offset : NULL; }

/* ---- singly linked, first in first out ---- */

typedef struct ew__fifo_node {
    struct ew__fifo_node *next;
} ew__fifo_node;

typedef struct ew__fifo {
    ew__fifo_node *first, *last; /* last is undefined while first is NULL */
} ew__fifo;

static inline void ew__fifo_push(ew__fifo *fifo, ew__fifo_node *node) {
    node->next = NULL;
    if (fifo->first)
        fifo->last->next = node;
    else
        fifo->first = node;
    fifo->last = node;
}

/* Removes the first node. Returns NULL if there is none. */
static inline ew__fifo_node *ew__fifo_pop(ew__fifo *fifo) {
    ew__fifo_node *node = fifo->first;
    if (node)
        fifo->first = node->next;
    return node;
}

/* Removes a node that is in the list. Linear. */
static inline void ew__fifo_remove(ew__fifo *fifo, ew__fifo_node *node) {
    ew__fifo_node *before = NULL;
    for (ew__fifo_node *at = fifo->first; at != node; at = at->next)
        before = at;
    if (before)
        before->next = node->next;
    else
        fifo->first = node->next;
    if (fifo->last == node)
        fifo->last = before;
}

/* Moves all nodes out of the list. */
static inline ew__fifo ew__fifo_take(ew__fifo *fifo) {
    ew__fifo all = *fifo;
    fifo->first = NULL;
    return all;
}

/* ---- doubly linked ---- */

typedef struct ew__list_node {
    struct ew__list_node *next, *prev;
} ew__list_node;

typedef struct ew__list {
    ew__list_node *first, *last;
} ew__list;

static inline void ew__list_add_first(ew__list *list, ew__list_node *node) {
    node->prev = NULL;
    node->next = list->first;
    if (list->first)
        list->first->prev = node;
    else
        list->last = node;
    list->first = node;
}

static inline void ew__list_add_last(ew__list *list, ew__list_node *node) {
    node->next = NULL;
    node->prev = list->last;
    if (list->last)
        list->last->next = node;
    else
        list->first = node;
    list->last = node;
}

static inline void ew__list_remove(ew__list *list, ew__list_node *node) {
    if (node->prev)
        node->prev->next = node->next;
    else
        list->first = node->next;
    if (node->next)
        node->next->prev = node->prev;
    else
        list->last = node->prev;
}

/* ---- linked by a member next of the item's own type; last is undefined while first is NULL ---- */

#define EW__TAIL_ADD(first, last, item)                                                                                \
    do {                                                                                                               \
        (item)->next = NULL;                                                                                           \
        if (first)                                                                                                     \
            (last)->next = (item);                                                                                     \
        else                                                                                                           \
            (first) = (item);                                                                                          \
        (last) = (item);                                                                                               \
    } while (0)

/* ---- doubly linked by members next and prev of the item's own type; head is the first item or NULL ---- */

#define EW__LIST_ADD(head, item)                                                                                       \
    do {                                                                                                               \
        (item)->prev = NULL;                                                                                           \
        (item)->next = (head);                                                                                         \
        if (head)                                                                                                      \
            (head)->prev = (item);                                                                                     \
        (head) = (item);                                                                                               \
    } while (0)
#define EW__LIST_REMOVE(head, item)                                                                                    \
    do {                                                                                                               \
        if ((item)->prev)                                                                                              \
            (item)->prev->next = (item)->next;                                                                         \
        else                                                                                                           \
            (head) = (item)->next;                                                                                     \
        if ((item)->next)                                                                                              \
            (item)->next->prev = (item)->prev;                                                                         \
    } while (0)

#endif
