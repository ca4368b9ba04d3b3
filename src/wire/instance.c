/*
 * wire/instance.c: see instance.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/instance.h"

/* The entry of this principal, or NULL. Under the lock. */
static ew__instance_url *find(ew__instance *instance, const ew__principal *owner) {
    for (size_t i = 0; i < EW__INSTANCE_URLS_MAX; i++)
        if (instance->urls[i].len && ew__principal_equal(&instance->urls[i].owner, owner))
            return &instance->urls[i];
    return NULL;
}

/* A free entry, else the oldest. Under the lock. */
static ew__instance_url *make_room(ew__instance *instance) {
    ew__instance_url *oldest = &instance->urls[0];
    for (size_t i = 0; i < EW__INSTANCE_URLS_MAX; i++) {
        ew__instance_url *entry = &instance->urls[i];
        if (entry->len == 0)
            return entry;
        if (entry->named_at < oldest->named_at)
            oldest = entry;
    }
    return oldest;
}

void ew__instance_set_blob_url(ew__instance *instance, const ew__principal *owner, ew_str url) {
    bool keep = url.len > 0 && url.len <= EW__INSTANCE_URL_MAX;
    pthread_mutex_lock(&instance->lock);
    ew__instance_url *entry = find(instance, owner);
    if (keep && !entry)
        entry = make_room(instance);
    if (entry)
        entry->len = keep ? (uint16_t)url.len : 0;
    if (entry && keep) {
        entry->owner = *owner;
        entry->named_at = ++instance->n_named;
        memcpy(entry->text, url.ptr, url.len);
    }
    pthread_mutex_unlock(&instance->lock);
}

ew_str ew__instance_blob_url(ew__instance *instance, const ew__principal *owner, char out[EW__INSTANCE_URL_MAX]) {
    pthread_mutex_lock(&instance->lock);
    const ew__instance_url *entry = find(instance, owner);
    size_t n = entry ? entry->len : 0;
    if (entry)
        memcpy(out, entry->text, n);
    pthread_mutex_unlock(&instance->lock);
    return ew__str(out, n);
}
