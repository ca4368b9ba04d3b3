/*
 * store/blobs/memory.c: blobs in memory. See blobs.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/map.h"
#include "base/mem.h"
#include "base/util.h"
#include "store/blobs/blobs.h"
#include <everywire/json.h>

/* What the map takes for a blob, about. */
#define MAP_BYTES (2 * sizeof(ew__map_entry))

typedef struct blob {
    ew_str type;
    size_t len;
    char id[EW__BLOB_ID_LEN];
    char json[]; /* exactly len bytes */
} blob;

typedef struct memory {
    ew__blobs blobs;
    const ew_env *env;
    ew__blob_id_fn id;
    ew__map by_id;
    size_t bytes, max_bytes;
} memory;

static memory *self_of(ew__blobs *blobs) { return ew__container_of(blobs, memory, blobs); }

/* The text without white space, in memory that fits. *ret is NULL unless EW_OK. */
static ew_err make_blob(const ew_env *env, ew_str json, blob **ret) {
    *ret = NULL;
    blob *made = ew__alloc(env, sizeof *made + json.len);
    if (made == NULL) {
        return EW_ENOMEM;
    }
    int len = ew_json_minify(json, made->json, json.len);
    if (len < 0) {
        ew__free(env, made, sizeof *made + json.len);
        return (ew_err)len;
    }
    made->len = (size_t)len;
    if (made->len < json.len) {
        blob *fitting = ew__realloc(env, made, sizeof *made + json.len, sizeof *made + made->len);
        if (fitting == NULL) {
            ew__free(env, made, sizeof *made + json.len);
            return EW_ENOMEM;
        }
        made = fitting;
    }
    *ret = made;
    return EW_OK;
}

static void free_blob(const ew_env *env, blob *old) {
    if (old != NULL) {
        ew__free(env, old, sizeof *old + old->len);
    }
}

static ew_err memory_put(ew__blobs *blobs, ew_str json, ew_str type, char ret_id[EW__BLOB_ID_LEN]) {
    memory *self = self_of(blobs);
    blob *made = NULL;
    ew_str known = ew__blob_type(type);
    if (known.len == 0) {
        return EW_EINVAL;
    }
    ew_err err = self->id(self->env, json, ret_id);
    if (err != EW_OK || ew__map_get(&self->by_id, ew__str(ret_id, EW__BLOB_ID_LEN)) != NULL) {
        return err;
    }
    err = make_blob(self->env, json, &made);
    size_t bytes = err == EW_OK ? sizeof *made + made->len + MAP_BYTES : 0;
    if (bytes > self->max_bytes - self->bytes) {
        err = EW_ELIMIT;
    }
    if (err == EW_OK) {
        made->type = known;
        memcpy(made->id, ret_id, sizeof made->id);
        err = ew__map_put(&self->by_id, ew__str(made->id, sizeof made->id), made);
    }
    if (err != EW_OK) {
        free_blob(self->env, made);
        return err;
    }
    self->bytes += bytes;
    return EW_OK;
}

static ew_err memory_get(ew__blobs *blobs, ew_str id, ew__buf *out, ew_str *ret_type) {
    const blob *found = ew__map_get(&self_of(blobs)->by_id, id);
    if (found == NULL) {
        return EW_ENOTFOUND;
    }
    *ret_type = found->type;
    return ew__buf_add(out, found->json, found->len);
}

static void memory_free(ew__blobs *blobs) {
    memory *self = self_of(blobs);
    for (uint32_t i = 0; i < self->by_id.n; i++) {
        free_blob(self->env, self->by_id.entries[i].value);
    }
    ew__map_done(&self->by_id);
    ew__free(self->env, self, sizeof *self);
}

ew_err ew__blobs_memory(const ew_env *env, ew__blob_id_fn id, size_t max_bytes, ew__blobs **ret) {
    memory *self = ew__zalloc(env, sizeof *self);
    *ret = NULL;
    if (self == NULL) {
        return EW_ENOMEM;
    }
    self->blobs = (ew__blobs){.put = memory_put, .get = memory_get, .free = memory_free};
    self->env = env;
    self->id = id;
    self->max_bytes = max_bytes;
    ew__map_init(&self->by_id, env);
    *ret = &self->blobs;
    return EW_OK;
}
