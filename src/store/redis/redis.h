/*
 * store/redis/redis.h: what the files of the Redis store share. The keys and fields are RRQ's, so that its producers,
 * workers and tools work on the same data; ours beside them, which RRQ does not look at:
 *
 *     fields of rrq:job:ID    ew_epoch (grows with each claim of ours), ew_worker (who made the last one: if worker_id
 *                             is another, the job is with a worker of RRQ), ew_lost, ew_cancel, ew_error, ew_dlq (where
 *                             it was put), ew_chunks and ew_chunk_bytes, ew_timeout_ms and ew_result_ttl_ms (where
 *                             seconds are too coarse)
 *     ew:chunks:ID            stream: what a job has said; the id of an entry is 0-SEQ
 *     ew:paused               set of names of queues
 *     ew:workers              set of our workers that may have jobs
 *     ew:cancel               touched when a running job is to be cancelled
 *
 * A lease is RRQ's lock of the job, with a short life that is renewed. Everything that writes is one script.
 */
#ifndef EW_STORE_REDIS_REDIS_H
#define EW_STORE_REDIS_REDIS_H

#include "store/jobs.h"
#include "store/redis/link.h"

#define EW__RRQ_JOB "rrq:job:"
#define EW__RRQ_QUEUE "rrq:queue:"
#define EW__RRQ_DLQ "rrq:dlq:"
#define EW__RRQ_ACTIVE "rrq:active:jobs:"
#define EW__RRQ_HEALTH "rrq:health:worker:"
#define EW__RRQ_EVENTS "rrq:events:job:"
#define EW__REDIS_CHUNKS "ew:chunks:"
#define EW__REDIS_PAUSED "ew:paused"
#define EW__REDIS_WORKERS "ew:workers"
#define EW__REDIS_CANCEL "ew:cancel"

/* What RRQ takes when a job does not say it. */
#define EW__RRQ_MAX_RETRIES 5
#define EW__RRQ_TIMEOUT_MS 300000
#define EW__RRQ_TTL_MS 86400000

/* ---- scripts ---- */

typedef enum ew__redis_script {
    EW__SCRIPT_ENQUEUE,
    EW__SCRIPT_CLAIM,
    EW__SCRIPT_CHANGE,
    EW__SCRIPT_RENEW,
    EW__SCRIPT_CHUNKS,
    EW__SCRIPT_GET,
    EW__SCRIPT_CANCEL,
    EW__SCRIPT_REQUEUE,
    EW__SCRIPT_LOST,
    EW__SCRIPT_SWEEP,
    EW__SCRIPTS
} ew__redis_script;

extern const char *const ew__redis_scripts[EW__SCRIPTS];

/* ---- the backend ---- */

#define EW__REDIS_DLQS 32 /* names of dead-letter queues that are remembered between sweeps */

#define EW__REDIS_CURSOR 24

/* How we learn that others have changed something. */
typedef enum ew__redis_hints {
    EW__HINTS_NONE,     /* nobody wants to know, or the connection for it is lost */
    EW__HINTS_TRACKING, /* the server tells which keys have changed */
    EW__HINTS_KEYSPACE, /* likewise, by its notifications */
    EW__HINTS_POLL      /* it cannot: looking often enough */
} ew__redis_hints;

typedef struct ew__redis_retry {
    uint64_t at; /* monotonic ns: not before */
    uint64_t ms; /* the next pause */
} ew__redis_retry;

typedef struct ew__jobs_redis_store {
    ew__backend backend;
    ew__redis_where where;
    ew__redis_link link; /* for operations */
    ew__redis_link watch;
    ew__redis_retry link_retry, watch_retry;
    ew__redis_hints hints;
    unsigned want;
    unsigned news; /* to be told at the next look */
    unsigned polls;
    bool left; /* the server takes no writes any more: another connection */
    char shas[EW__SCRIPTS][41];
    char workers_cursor
        [EW__REDIS_CURSOR]; /* of walks over all keys that go on from call to call; "0": at their beginning */
    char dlqs_cursor[EW__REDIS_CURSOR];
    char *dlqs[EW__REDIS_DLQS];
    size_t n_dlqs;
    char notice[320];
} ew__jobs_redis_store;

static inline uint64_t ew__redis_now(const ew__jobs_redis_store *self) {
    return self->backend.env->now_ns(self->backend.env->ud);
}
static inline ew__jobs_redis_store *ew__redis_self(ew__backend *backend) {
    return ew__container_of(backend, ew__jobs_redis_store, backend);
}

void ew__redis_retry_failed(const ew__jobs_redis_store *self, ew__redis_retry *retry);
/* Sets backend.idle_ms to when a look is needed next. */
void ew__redis_plan(ew__jobs_redis_store *self);

/* Begins EVALSHA of a script with this many keys. */
void ew__redis_eval(ew__jobs_redis_store *self, ew__redis_script script, size_t n_keys);
/*
 * The reply of the command that was ended last, which is no error: else the error is the result, and its text in problem.
 * A script that the server has forgotten is loaded again, for the next try. The caller frees the reply.
 */
ew_err ew__redis_do(ew__jobs_redis_store *self, redisReply **ret, char problem[EW__REDIS_PROBLEM]);
ew_err ew__redis_op_err(const redisReply *reply, char problem[EW__REDIS_PROBLEM]); /* as ew__redis_err */
ew_err ew__redis_load(ew__jobs_redis_store *self);
bool ew__redis_forgot(const redisReply *reply); /* the script */
/* Whether there is a connection; made if it is time. May wait for about a second. */
bool ew__redis_ready(ew__jobs_redis_store *self, bool patient);

/* Operations that are one command: `pack` adds it to the pipeline (EW_OK, or op->err), `unpack` reads its reply. */
bool ew__redis_is_plain(ew__op_kind kind);
ew_err ew__redis_pack(ew__jobs_redis_store *self, ew__store_request *op);
void ew__redis_unpack(ew__jobs_redis_store *self, ew__store_request *op, const redisReply *reply);
ew_err ew__redis_pack_claim(ew__jobs_redis_store *self, const ew__op_claim *claim);
ew_err ew__redis_pack_enqueue(ew__jobs_redis_store *self, ew__store_request *op);
ew_err ew__redis_pack_change(ew__jobs_redis_store *self, const ew__op_change *change);
ew_err ew__redis_unpack_claim(ew__jobs_redis_store *self, ew__store_request *op, const redisReply *reply);
/* After the replies of a pipeline: jobs that were claimed and make no sense become dead letters. */
void ew__redis_quarantine(ew__jobs_redis_store *self, ew__store_request *op);

/* Operations that take several: done at once. Set op->err. */
void ew__redis_list(ew__jobs_redis_store *self, ew__store_request *op);
void ew__redis_queues(ew__jobs_redis_store *self, ew__store_request *op);
void ew__redis_workers(ew__jobs_redis_store *self, ew__store_request *op);
void ew__redis_expired(ew__jobs_redis_store *self, ew__store_request *op);
void ew__redis_sweep(ew__jobs_redis_store *self, ew__store_request *op);

int ew__redis_watch_fd(ew__backend *backend);
unsigned ew__redis_look(ew__backend *backend);
void ew__redis_want(ew__backend *backend, unsigned changes);

/* Asks the server whether it can lose what it has acknowledged, and writes self->notice. */
void ew__redis_write_notice(ew__jobs_redis_store *self);

/* ---- jobs ---- */

/*
 * A job of its hash (names and values by turns). Texts are copied into the arena. What RRQ takes for granted is filled
 * in. ret_why, if not NULL, gets why it cannot be run, or NULL; its queue may then be empty. EW_OK; EW_EIO: it is no
 * job at all (no status, and nobody asks why); EW_ENOMEM.
 */
ew_err ew__redis_read_job(const redisReply *hash, ew_str id, ew__arena *arena, ew__job *ret, const char **ret_why);
/* Adds names and values of a new job to the command. */
void ew__redis_write_job(ew__redis_link *link, const ew__job *job);
/* A score as a time, rounded up; false: it is none. */
bool ew__redis_score(ew_str text, int64_t *ret_ms);

#endif
