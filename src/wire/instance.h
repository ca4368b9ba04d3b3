/*
 * wire/instance.h: this program as one of several servers that a workflow runtime may know: its id, by which replies
 * find it, and what runtimes have told it. Requests come on connections of all loops, so what one of them brings holds
 * for all. Any thread. May include: base.
 */
#ifndef EW_WIRE_INSTANCE_H
#define EW_WIRE_INSTANCE_H

#include "base/util.h"
#include <pthread.h>

#define EW__INSTANCE_ID_LEN 16
#define EW__INSTANCE_URL_MAX 512

typedef struct ew__instance {
    char id[EW__INSTANCE_ID_LEN]; /* hex digits, by chance, once */
    ew_str service;               /* the program's name; borrowed */
    pthread_mutex_t lock;         /* of what follows */
    size_t blob_url_len;          /* 0: runtimes keep blobs behind callbacks */
    char blob_url[EW__INSTANCE_URL_MAX];
} ew__instance;

/* A runtime has said where its blobs are; empty (or too long to be kept): behind callbacks. The last word counts. */
static inline void ew__instance_told(ew__instance *instance, ew_str blob_url) {
    pthread_mutex_lock(&instance->lock);
    instance->blob_url_len = blob_url.len <= sizeof instance->blob_url ? blob_url.len : 0;
    if (instance->blob_url_len)
        memcpy(instance->blob_url, blob_url.ptr, blob_url.len);
    pthread_mutex_unlock(&instance->lock);
}

/* What was told last, in `out`. */
static inline ew_str ew__instance_blob_url(ew__instance *instance, char out[EW__INSTANCE_URL_MAX]) {
    pthread_mutex_lock(&instance->lock);
    size_t n = instance->blob_url_len;
    if (n)
        memcpy(out, instance->blob_url, n);
    pthread_mutex_unlock(&instance->lock);
    return ew__str(out, n);
}

#endif
