/*
 * store/blobs/locked.c: a store that several threads may use at once; see store/blobs/blobs.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "base/util.h"
#include "store/blobs/blobs.h"
#include <pthread.h>

typedef struct locked {
    ew__blobs blobs;
    const ew_env *env;
    ew__blobs *inner;
    pthread_mutex_t lock;
} locked;

static ew_err put(ew__blobs *blobs, ew_str json, ew_str type, char ret_id[EW__BLOB_ID_LEN]) {
    locked *self = ew__container_of(blobs, locked, blobs);
    pthread_mutex_lock(&self->lock);
    ew_err err = self->inner->put(self->inner, json, type, ret_id);
    pthread_mutex_unlock(&self->lock);
    return err;
}

static ew_err get(ew__blobs *blobs, ew_str id, ew__buf *out, ew_str *ret_type) {
    locked *self = ew__container_of(blobs, locked, blobs);
    pthread_mutex_lock(&self->lock);
    ew_err err = self->inner->get(self->inner, id, out, ret_type);
    pthread_mutex_unlock(&self->lock);
    return err;
}

static void free_locked(ew__blobs *blobs) {
    locked *self = ew__container_of(blobs, locked, blobs);
    self->inner->free(self->inner);
    pthread_mutex_destroy(&self->lock);
    ew__free(self->env, self, sizeof *self);
}

ew_err ew__blobs_locked(const ew_env *env, ew__blobs *inner, ew__blobs **ret) {
    locked *self = ew__zalloc(env, sizeof *self);
    if (!self)
        return EW_ENOMEM;
    self->blobs = (ew__blobs){.put = put, .get = get, .free = free_locked};
    self->env = env;
    self->inner = inner;
    pthread_mutex_init(&self->lock, NULL);
    *ret = &self->blobs;
    return EW_OK;
}
