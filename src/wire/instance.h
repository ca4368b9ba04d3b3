/*
 * wire/instance.h: this program as one of several servers that a workflow runtime may know: its id, by which replies
 * find it, and the blob URLs that runtimes have named. Requests arrive on connections of all loops, so a URL that one
 * of them brings applies to all; it applies to calls of the same principal only. Any thread. May include: base, call.
 */
#ifndef EW_WIRE_INSTANCE_H
#define EW_WIRE_INSTANCE_H

#include "call/access.h"
#include <pthread.h>

#define EW__INSTANCE_ID_LEN 16
#define EW__INSTANCE_URL_MAX 512
#define EW__INSTANCE_URLS_MAX 32 /* principals with a blob URL; a further one replaces the oldest */

typedef struct ew__instance_url {
    ew__principal owner;
    uint16_t len;      /* 0: the entry is free */
    uint64_t named_at; /* value of ew__instance.n_named */
    char text[EW__INSTANCE_URL_MAX];
} ew__instance_url;

typedef struct ew__instance {
    char id[EW__INSTANCE_ID_LEN]; /* random hex digits, drawn once */
    ew_str service;               /* the program's name; borrowed */
    pthread_mutex_t lock;         /* of the members below */
    uint64_t n_named;             /* counts ew__instance_set_blob_url */
    ew__instance_url urls[EW__INSTANCE_URLS_MAX];
} ew__instance;

/*
 * A runtime of this principal has named its Blob HTTP API. The URL is copied and replaces an earlier one. An empty URL,
 * or one of more than EW__INSTANCE_URL_MAX bytes, removes it: blobs are then reached by callbacks.
 */
void ew__instance_set_blob_url(ew__instance *instance, const ew__principal *owner, ew_str url);

/* The URL that this principal named last, copied to `out`; empty: none. */
ew_str ew__instance_blob_url(ew__instance *instance, const ew__principal *owner, char out[EW__INSTANCE_URL_MAX]);

#endif
