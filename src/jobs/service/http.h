/*
 * jobs/service/http.h: requests under /jobs, as a guest of the http wire (wire/http_guest.h). One ew__jobs_http per
 * loop; no request waits in a thread. Everything on the thread of its executor.
 */
#ifndef EW_JOBS_SERVICE_HTTP_H
#define EW_JOBS_SERVICE_HTTP_H

#include "jobs/service/service.h"
#include "wire/http_guest.h"

#define EW__JOBS_HTTP_WAITS_MAX 1000 /* requests that wait for a job, on one loop */

typedef struct ew__jobs_exchange ew__jobs_exchange;
typedef struct ew__jobs_http ew__jobs_http;

struct ew__jobs_http {
    ew__http_guest guest; /* ew__site.jobs of the loop's listeners */
    ew_jobs *jobs;
    ew__store_owner requests;
    /* Whether this program's worker runs the jobs of `queue`, with the actions of this program only. */
    bool (*is_local)(const ew__jobs_http *http, ew_str queue);
    void (*closed)(ew__jobs_http *http);
    ew__jobs_exchange *first;
    unsigned n_waits; /* requests that wait for a job */
    ew__watcher watcher;
    bool watching;
    bool changed; /* the store has reported a change since the last round */
    bool blocked; /* a client does not read its stream */
    bool closing;
    ew__timer timer;
    uint64_t last_round;
};

/* is_local and closed are set by the caller. */
void ew__jobs_http_init(ew__jobs_http *http, ew_jobs *jobs, ew__executor *executor);
/* Answers all requests that wait. `closed` follows when the store has returned the others; perhaps before this returns. */
void ew__jobs_http_close(ew__jobs_http *http);

/* ---- http.c and http_routes.c ---- */

/* One request under /jobs. */
struct ew__jobs_exchange {
    ew__jobs_exchange *next, *prev;
    ew__jobs_http *http;
    ew__exchange *exchange; /* NULL: the client has gone */
    ew__store_request op;
    void (*reply)(ew__jobs_exchange *self); /* the store has returned op, and the client is there */
    /* ---- of those that wait for a job ---- */
    bool waits;
    bool stream;
    bool has_events;  /* a stream: an event has been sent */
    bool last;        /* the next state of the job is the answer, final or not */
    uint64_t after;   /* the last chunk that was sent */
    uint64_t until;   /* monotonic ns; EW__NEVER */
    uint64_t sent_at; /* a stream: the time of its last event or comment */
    size_t id_len;
    char id[EW__JOB_ID_MAX];
};

#define EW__JOB_STREAM_END "end" /* the id of a stream's last event; those of chunks are numbers */

/* http_routes.c */
bool ew__jobs_http_takes(const ew__site *site, ew__http_method method, ew_str path);
bool ew__jobs_http_wants(ew_str name);
void ew__jobs_http_request(ew__exchange *exchange, ew_str body);

/* Returns NULL without memory. It ends with ew__jobs_exchange_answer, or when the client has gone. */
ew__jobs_exchange *ew__jobs_exchange_new(ew__exchange *exchange, ew__op_kind kind);
void ew__jobs_exchange_submit(ew__jobs_exchange *self, void (*reply)(ew__jobs_exchange *self));
/* Answers, and frees self. fields: header lines or empty. */
void ew__jobs_exchange_answer(ew__jobs_exchange *self, int status, ew_str fields, const ew__buf *body);
void ew__jobs_exchange_answer_empty(ew__jobs_exchange *self, int status); /* the same without a body */
void ew__jobs_exchange_fail(ew__jobs_exchange *self, int status, ew_str fields, const char *message);
void ew__jobs_exchange_fail_op(ew__jobs_exchange *self); /* with the error of op */
/* Copies the id of the job that _wait waits for. False: it is empty or too long. */
bool ew__jobs_exchange_name(ew__jobs_exchange *self, ew_str id);
/* Answers when the job has ended; or, if self->stream, sends its chunks and its end as events. */
void ew__jobs_exchange_wait(ew__jobs_exchange *self);

#endif
