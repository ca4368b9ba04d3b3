/*
 * jobs/worker_chunks.c: the chunk buffer of an attempt: one set is under way while the next is filled, so
 * that a slow store gets fewer and larger ones. Bounded; a set that may have been kept is sent again, in doubt twice.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/worker_state.h"

#define CHUNKS_MAX 64 /* in one set */
#define BYTES_MAX 65536

/* Chunks that are not stored yet: one set is filled while the other is under way. */
typedef struct ew__chunk_buffer {
    ew__store_request op;
    ew__attempt *attempt;
    struct {
        ew__buf text;
        size_t len[CHUNKS_MAX];
        uint32_t n;
    } set[2];
    ew_str slices[CHUNKS_MAX];
    unsigned filling; /* which set */
    uint32_t tries;
    ew__timer timer; /* the next try */
    bool full;       /* the runner was asked to wait */
    bool stuck;      /* the set under way waits for its next try */
} ew__chunk_buffer;

bool ew__chunk_buffer_is_busy(const ew__attempt *attempt) { return attempt->chunks && attempt->chunks->op.busy; }

static ew__chunk_buffer *chunks_of(ew__attempt *attempt) {
    ew__chunk_buffer *chunks = attempt->chunks;
    if (chunks)
        return chunks;
    chunks = ew__zalloc(attempt->env, sizeof *chunks);
    if (chunks) {
        for (size_t i = 0; i < 2; i++)
            ew__buf_init(&chunks->set[i].text, attempt->env, BYTES_MAX + EW__JOB_CHUNK_BYTES_MAX);
        chunks->attempt = attempt;
        attempt->chunks = chunks;
    }
    return chunks;
}

static void clear_set(ew__chunk_buffer *chunks, unsigned which) {
    ew__buf_clear(&chunks->set[which].text);
    chunks->set[which].n = 0;
}

void ew__chunk_buffer_drop(ew__attempt *attempt) {
    ew__chunk_buffer *chunks = attempt->chunks;
    if (!chunks || chunks->op.busy)
        return;
    ew__timer_stop(&attempt->run.worker->timers, &chunks->timer);
    chunks->stuck = false;
    clear_set(chunks, 0);
    clear_set(chunks, 1);
}

void ew__chunk_buffer_free(ew__attempt *attempt) {
    ew__chunk_buffer *chunks = attempt->chunks;
    if (!chunks)
        return;
    ew__buf_done(&chunks->set[0].text);
    ew__buf_done(&chunks->set[1].text);
    ew__free(attempt->env, chunks, sizeof *chunks);
    attempt->chunks = NULL;
}

static bool is_full(const ew__chunk_buffer *chunks) {
    unsigned i = chunks->filling;
    return chunks->set[i].n >= CHUNKS_MAX || chunks->set[i].text.len >= BYTES_MAX;
}

/* ---- to the store ---- */

static void on_kept(ew__store_request *op);

static void on_again(ew__timer *timer, uint64_t now);

/* Sends the set that is not being filled. */
static void send(ew__attempt *attempt) {
    ew__chunk_buffer *chunks = attempt->chunks;
    unsigned which = chunks->filling ^ 1u;
    const char *at = chunks->set[which].text.ptr;
    uint32_t n = chunks->set[which].n;
    for (uint32_t i = 0; i < n; i++) {
        chunks->slices[i] = ew__str(at, chunks->set[which].len[i]);
        at += chunks->set[which].len[i];
    }
    chunks->stuck = false;
    ew__store_request_begin(&chunks->op, &attempt->run.worker->requests, EW__OP_CHUNKS);
    chunks->op.u.chunks = (ew__op_chunks){.id = attempt->run.job.id,
                                          .worker = attempt->run.worker->id,
                                          .epoch = attempt->run.job.epoch,
                                          .chunks = chunks->slices,
                                          .n = n};
    ew__store_request_submit(&chunks->op, on_kept);
}

bool ew__chunk_buffer_flush(ew__attempt *attempt) {
    ew__chunk_buffer *chunks = attempt->chunks;
    if (!chunks)
        return false;
    if (chunks->op.busy || chunks->stuck)
        return true;
    if (chunks->set[chunks->filling].n == 0)
        return false;
    chunks->filling ^= 1u;
    send(attempt);
    return true;
}

static void on_again(ew__timer *timer, uint64_t now) {
    ew__chunk_buffer *chunks = ew__container_of(timer, ew__chunk_buffer, timer);
    (void)now;
    if (chunks->stuck)
        send(chunks->attempt);
}

/* Whether the set that was under way is done with. */
static bool settle(ew__attempt *attempt, ew_err err) {
    ew__chunk_buffer *chunks = attempt->chunks;
    ew__worker *worker = attempt->run.worker;
    if (ew__store_is_transient(err) && !worker->stop.drop_ends && !attempt->dropped) {
        chunks->stuck = true;
        ew__worker_alarm_in(worker, &chunks->timer, ew__worker_backoff(worker, &chunks->tries), on_again);
        return false;
    }
    clear_set(chunks, chunks->filling ^ 1u);
    chunks->tries = 0;
    if (err != EW_OK)
        clear_set(chunks, chunks->filling);
    return true;
}

static void on_kept(ew__store_request *op) {
    ew__chunk_buffer *chunks = ew__container_of(op, ew__chunk_buffer, op);
    ew__attempt *attempt = chunks->attempt;
    ew__worker *worker = attempt->run.worker;
    ew__store_request_returned(op);
    ew__store_request_end(op);
    if (!settle(attempt, op->err))
        return;
    if (attempt->dropped) {
        ew__attempt_leave(attempt);
        return;
    }
    if (attempt->state == EW__RUN_ENDING) {
        ew__attempt_send_end(attempt);
        return;
    }
    if (op->err == EW_ESTALE || op->err == EW_ENOTFOUND) {
        ew__attempt_stop(attempt, EW__STOP_LOST);
        return;
    }
    (void)ew__chunk_buffer_flush(attempt);
    if (chunks->full && !is_full(chunks)) {
        chunks->full = false;
        if (worker->runs->ops->chunk_room)
            worker->runs->ops->chunk_room(worker->runs, &attempt->run);
    }
}

ew_err ew__run_chunk(ew__run *run, ew_str json) {
    ew__attempt *attempt = ew__attempt_of(run);
    if (attempt->state > EW__RUN_STOPPING || (attempt->stopped && attempt->why == EW__STOP_LOST))
        return EW_EENDED;
    ew__chunk_buffer *chunks = chunks_of(attempt);
    if (!chunks)
        return EW_ENOMEM;
    if (is_full(chunks) || json.len > EW__JOB_CHUNK_BYTES_MAX)
        return EW_ELIMIT;
    unsigned i = chunks->filling;
    ew__buf *text = &chunks->set[i].text;
    if (ew__buf_str(text, json) != EW_OK) {
        text->err = EW_OK;
        return EW_ENOMEM;
    }
    chunks->set[i].len[chunks->set[i].n++] = json.len;
    (void)ew__chunk_buffer_flush(attempt);
    chunks->full = is_full(chunks);
    return chunks->full ? EW_FULL : EW_OK;
}
