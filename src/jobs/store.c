/*
 * jobs/store.c: the life of a request to a store. See store.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/store.h"

void ew__store_request_next(ew__store_request *op, ew__op_kind kind) {
    ew__store_owner *owner = op->owner;
    ew__arena memory = op->memory;
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->owner = owner;
    op->executor = owner->executor;
    op->memory = memory;
    op->arena = &op->memory;
}

void ew__store_request_begin(ew__store_request *op, ew__store_owner *owner, ew__op_kind kind) {
    op->owner = owner;
    ew__arena_init(&op->memory, owner->env, NULL, 0);
    ew__store_request_next(op, kind);
}

void ew__store_request_again(ew__store_request *op, ew__op_kind kind) {
    ew__arena_done(&op->memory);
    ew__store_request_begin(op, op->owner, kind);
}

void ew__store_request_submit(ew__store_request *op, void (*done)(ew__store_request *op)) {
    ew__store *store = op->owner->store;
    op->done = done;
    if (op->executor) {
        op->busy = true;
        op->owner->n_busy++;
    }
    store->ops->submit(store, op);
}

void ew__store_request_returned(ew__store_request *op) {
    op->busy = false;
    op->owner->n_busy--;
}

void ew__store_request_end(ew__store_request *op) { ew__arena_done(&op->memory); }
