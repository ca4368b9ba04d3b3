/*
 * tests/unit/base/test_mailbox.c: lists, and messages between threads: order, limits, when the receiver is woken.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mailbox.h"

typedef struct item {
    int number;
    ew__fifo_node node;
    ew__list_node place;
} item;

static void test_list__fifo(void **state) {
    item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    ew__fifo fifo = {NULL, NULL};
    (void)state;
    assert_null(ew__fifo_pop(&fifo));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            ew__fifo_push(&fifo, &items[i].node);
        ew__fifo_remove(&fifo, &items[round].node); /* the first, one between, the last */
        for (int i = 0; i < 3; i++)
            if (i != round)
                assert_int_equal(EW__ITEM(ew__fifo_pop(&fifo), item, node)->number, i);
        assert_null(EW__ITEM(ew__fifo_pop(&fifo), item, node));
    }
}

static void expect(const ew__list *list, const char *numbers) {
    ew__list_node *prev = NULL;
    for (ew__list_node *node = list->first; node; node = node->next) {
        assert_int_equal(EW__ITEM(node, item, place)->number, *numbers++ - '0');
        assert_ptr_equal(node->prev, prev);
        prev = node;
    }
    assert_int_equal(*numbers, '\0');
    assert_true(!list->first || list->last == prev);
}

static void test_list__doubly_linked(void **state) {
    item items[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    ew__list list = {NULL, NULL};
    (void)state;
    ew__list_add_last(&list, &items[1].place);
    ew__list_add_last(&list, &items[2].place);
    ew__list_add_first(&list, &items[0].place);
    ew__list_add_last(&list, &items[3].place);
    expect(&list, "0123");
    ew__list_remove(&list, &items[1].place);
    expect(&list, "023");
    ew__list_remove(&list, &items[3].place);
    ew__list_remove(&list, &items[0].place);
    expect(&list, "2");
    ew__list_remove(&list, &items[2].place);
    expect(&list, "");
    ew__list_add_first(&list, &items[3].place);
    expect(&list, "3");
}

/* ---- mailboxes ---- */

typedef struct receiver {
    ew__mailbox mailbox;
    int n_wakes;
} receiver;

static void wake(ew__mailbox *mailbox) { ew__container_of(mailbox, receiver, mailbox)->n_wakes++; }

static int count(ew__fifo messages, int first) {
    int n = 0;
    for (ew__fifo_node *node; (node = ew__fifo_pop(&messages)) != NULL; n++)
        assert_int_equal(EW__ITEM(node, item, node)->number, first + n);
    return n;
}

static void test_mailbox__wakes_once(void **state) {
    item items[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    receiver r = {.n_wakes = 0};
    (void)state;
    ew__mailbox_init(&r.mailbox, wake);
    assert_true(ew__mailbox_post(&r.mailbox, &items[0].node, 10));
    assert_true(ew__mailbox_post(&r.mailbox, &items[1].node, 10));
    assert_int_equal(r.n_wakes, 1);
    assert_int_equal(count(ew__mailbox_take(&r.mailbox), 0), 2);
    assert_int_equal(count(ew__mailbox_take(&r.mailbox), 0), 0);
    ew__mailbox_post_own(&r.mailbox, &items[2].node);
    assert_int_equal(r.n_wakes, 1);
    assert_int_equal(count(ew__mailbox_take(&r.mailbox), 2), 1);
    ew__mailbox_close(&r.mailbox);
    assert_true(ew__mailbox_post(&r.mailbox, &items[3].node, 10));
    assert_int_equal(r.n_wakes, 1);
    assert_int_equal(count(ew__mailbox_take(&r.mailbox), 3), 1);
    ew__mailbox_done(&r.mailbox);
}

static void test_mailbox__limits(void **state) {
    item items[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    receiver r = {.n_wakes = 0};
    (void)state;
    ew__mailbox_init(&r.mailbox, wake);
    r.mailbox.max_n = 3;
    r.mailbox.max_bytes = 100;
    assert_true(ew__mailbox_post(&r.mailbox, &items[0].node, 101)); /* a single one */
    assert_false(ew__mailbox_post(&r.mailbox, &items[1].node, 0));
    assert_int_equal(count(ew__mailbox_take(&r.mailbox), 0), 1);
    assert_true(ew__mailbox_post(&r.mailbox, &items[0].node, 60));
    assert_false(ew__mailbox_post(&r.mailbox, &items[1].node, 41));
    assert_true(ew__mailbox_post(&r.mailbox, &items[1].node, 40));
    assert_true(ew__mailbox_post(&r.mailbox, &items[2].node, 0));
    assert_false(ew__mailbox_post(&r.mailbox, &items[3].node, 0));
    assert_int_equal(r.n_wakes, 2);
    assert_int_equal(count(ew__mailbox_take(&r.mailbox), 0), 3);
    ew__mailbox_done(&r.mailbox);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list__fifo),
        cmocka_unit_test(test_list__doubly_linked),
        cmocka_unit_test(test_mailbox__wakes_once),
        cmocka_unit_test(test_mailbox__limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
