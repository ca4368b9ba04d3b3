/*
 * jobs/service/http.h: requests of HTTP that the store of jobs works on, or that wait for a job: one desk for each
 * loop, no thread for anybody. Used by app_jobs*.c only; loop thread.
 */
#ifndef EW_JOBS_SERVICE_HTTP_H
#define EW_JOBS_SERVICE_HTTP_H

#include "gateway/app.h"

#define EW__DESK_WAITS_MAX 1000 /* that wait for a job, on one loop */

typedef struct ew__inquiry ew__inquiry;

typedef struct ew__jobs_http {
    ew__part part;
    ew__app_jobs *jobs;
    ew__inquiry *first;
    unsigned n_busy;  /* that the store has */
    unsigned n_waits; /* that wait for a job */
    ew__watcher watcher;
    bool watching;
    bool changed; /* something may have, since the last round */
    bool blocked; /* a client does not read what it gets */
    ew__timer timer;
    uint64_t last_round;
} ew__jobs_http;

struct ew__inquiry {
    ew__inquiry *next, *prev;
    ew__jobs_http *desk;
    ew__exchange *exchange; /* NULL: the client has gone */
    ew__store_request op;
    ew__arena arena;
    bool busy;                         /* the store has op */
    void (*answered)(ew__inquiry *it); /* it has come back, and the client is there */
    /* ---- of those that wait ---- */
    bool waits;
    bool stream;
    bool has_events;  /* a stream: an event has been sent */
    bool last;        /* the next answer is told, whatever it says */
    uint64_t after;   /* the last chunk that was told */
    uint64_t until;   /* monotonic ns; EW__NEVER */
    uint64_t said_at; /* a stream: when it has said something */
    size_t id_len;
    char id[EW__JOB_ID_MAX];
};

#define EW__JOB_STREAM_END "end" /* the id of a stream's last event; those of chunks are numbers */

/* For the app: one for each loop, before the loops run. EW_OK, EW_ENOMEM. */
ew_err ew__jobs_http_open(ew__app_jobs *jobs);
void ew__jobs_http_free(ew__app_jobs *jobs);

/* A new one for an exchange; NULL: no memory. It ends with ew__inquiry_answer, or when the client has gone. */
ew__inquiry *ew__inquiry_new(ew__exchange *exchange, ew__op_kind kind);
void ew__inquiry_submit(ew__inquiry *it, void (*answered)(ew__inquiry *it));
/* The answer. fields: header lines or empty. The inquiry is gone. */
void ew__inquiry_answer(ew__inquiry *it, int status, ew_str fields, const ew__buf *body);
void ew__inquiry_answer_empty(ew__inquiry *it, int status); /* the same without a body */
void ew__inquiry_fail(ew__inquiry *it, int status, ew_str fields, const char *message);
/* As the error of op says. */
void ew__inquiry_fail_op(ew__inquiry *it);
/* Waits for the end of the job `id` (copied by ew__inquiry_name), or tells all that it says. */
bool ew__inquiry_name(ew__inquiry *it, ew_str id);
void ew__inquiry_wait(ew__inquiry *it);
/* The exchange is over by itself. */
void ew__inquiry_over(ew__exchange *exchange);

#endif
