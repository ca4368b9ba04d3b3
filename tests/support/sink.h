/*
 * tests/support/sink.h: a telemetry server on loopback that a test scripts: it keeps what is posted to it, and answers
 * as it is told. One thread, which serves one connection at a time in turn.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_SINK_H
#define EW_TESTS_SINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sink_mode {
    SINK_OK,
    SINK_500,          /* with a body, as the real one says to a trace that it does not understand */
    SINK_CLOSE_AFTER,  /* answers, then closes without having said so */
    SINK_CLOSE_BEFORE, /* closes instead of an answer */
    SINK_SILENT,       /* no answer */
    SINK_GARBAGE,      /* an answer that is no HTTP */
    SINK_CUT,          /* closes in the middle of an answer */
    SINK_UNTIL_CLOSE,  /* an answer that ends with the connection */
    SINK_CHUNKED,      /* an answer in pieces and chunks */
    SINK_EXTRA         /* an answer, and the beginning of a refusal that nobody asked for */
} sink_mode;

typedef struct sink {
    atomic_int mode;      /* of the requests to come */
    atomic_int once;      /* this mode for one request only, then SINK_OK; -1: none */
    atomic_uint delay_ms; /* before each answer */
    atomic_uint n_posts;  /* whole requests so far */
    atomic_uint n_connections;
    atomic_bool stopping;
    int listener;
    uint16_t port;
    bool keeps; /* the texts; else it counts only */
    pthread_t thread;
    pthread_mutex_t lock; /* of the two below */
    char **heads, **bodies;
    size_t n_kept;
} sink;

/* port 0: any. false: it is in use. */
bool sink_start(sink *s, uint16_t port, bool keeps);
void sink_stop(sink *s); /* also frees what it kept */
/* The head or body of the i-th post, or NULL. They live until sink_stop. */
const char *sink_head(sink *s, size_t i);
const char *sink_body(sink *s, size_t i);
/* Whether that many posts have come, waiting up to 30 s. */
bool sink_wait(sink *s, unsigned n);

#endif
