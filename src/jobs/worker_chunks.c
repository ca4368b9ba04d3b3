/*
 * jobs/worker_chunks.c: what a run says, on its way to the store: one set is under way while the next is filled, so
 * that a slow store gets fewer and larger ones. Bounded; a set that may have been kept is sent again, in doubt twice.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/worker_state.h"

static ew__chunk_buffer *said_of(ew__attempt *attempt) {
    ew__chunk_buffer *said = attempt->said;
    if (said)
        return said;
    said = ew__zalloc(attempt->env, sizeof *said);
    if (said) {
        for (size_t i = 0; i < 2; i++)
            ew__buf_init(&said->set[i].text, attempt->env, EW__WORKER_CHUNK_BYTES + EW__JOB_CHUNK_BYTES_MAX);
        said->attempt = attempt;
        attempt->said = said;
    }
    return said;
}

static void clear_set(ew__chunk_buffer *said, unsigned which) {
    ew__buf_clear(&said->set[which].text);
    said->set[which].n = 0;
}

void ew__chunk_buffer_drop(ew__attempt *attempt) {
    ew__chunk_buffer *said = attempt->said;
    if (!said || said->op.busy)
        return;
    ew__timer_stop(&attempt->run.worker->timers, &said->timer);
    said->stuck = false;
    clear_set(said, 0);
    clear_set(said, 1);
}

void ew__chunk_buffer_free(ew__attempt *attempt) {
    ew__chunk_buffer *said = attempt->said;
    if (!said)
        return;
    ew__buf_done(&said->set[0].text);
    ew__buf_done(&said->set[1].text);
    ew__free(attempt->env, said, sizeof *said);
    attempt->said = NULL;
}

static bool is_full(const ew__chunk_buffer *said) {
    unsigned i = said->filling;
    return said->set[i].n >= EW__WORKER_CHUNKS || said->set[i].text.len >= EW__WORKER_CHUNK_BYTES;
}

/* ---- to the store ---- */

static void on_kept(ew__store_request *op);

static void on_again(ew__timer *timer, uint64_t now);

/* Sends the set that is not being filled. */
static void send(ew__attempt *attempt) {
    ew__chunk_buffer *said = attempt->said;
    unsigned which = said->filling ^ 1u;
    const char *at = said->set[which].text.ptr;
    uint32_t n = said->set[which].n;
    for (uint32_t i = 0; i < n; i++) {
        said->slices[i] = ew__str(at, said->set[which].len[i]);
        at += said->set[which].len[i];
    }
    said->stuck = false;
    ew__store_request_begin(&said->op, &attempt->run.worker->requests, EW__OP_CHUNKS);
    said->op.u.chunks = (ew__op_chunks){.id = attempt->run.job.id,
                                        .worker = attempt->run.worker->id,
                                        .epoch = attempt->run.job.epoch,
                                        .chunks = said->slices,
                                        .n = n};
    ew__store_request_submit(&said->op, on_kept);
}

bool ew__chunk_buffer_flush(ew__attempt *attempt) {
    ew__chunk_buffer *said = attempt->said;
    if (!said)
        return false;
    if (said->op.busy || said->stuck)
        return true;
    if (said->set[said->filling].n == 0)
        return false;
    said->filling ^= 1u;
    send(attempt);
    return true;
}

static void on_again(ew__timer *timer, uint64_t now) {
    ew__chunk_buffer *said = ew__container_of(timer, ew__chunk_buffer, timer);
    (void)now;
    if (said->stuck)
        send(said->attempt);
}

/* Whether the set that was under way is done with. */
static bool settle(ew__attempt *attempt, ew_err err) {
    ew__chunk_buffer *said = attempt->said;
    ew__worker *worker = attempt->run.worker;
    if (ew__store_is_transient(err) && !worker->no_more_ends && !attempt->dropped) {
        said->stuck = true;
        ew__worker_alarm_in(worker, &said->timer, ew__worker_backoff(worker, &said->tries), on_again);
        return false;
    }
    clear_set(said, said->filling ^ 1u);
    said->tries = 0;
    if (err != EW_OK)
        clear_set(said, said->filling);
    return true;
}

static void on_kept(ew__store_request *op) {
    ew__chunk_buffer *said = ew__container_of(op, ew__chunk_buffer, op);
    ew__attempt *attempt = said->attempt;
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
    if (said->full && !is_full(said)) {
        said->full = false;
        if (worker->runs->ops->chunk_room)
            worker->runs->ops->chunk_room(worker->runs, &attempt->run);
    }
}

ew_err ew__run_chunk(ew__run *run, ew_str json) {
    ew__attempt *attempt = ew__attempt_of(run);
    if (attempt->state > EW__RUN_STOPPING || (attempt->stopped && attempt->why == EW__STOP_LOST))
        return EW_EENDED;
    ew__chunk_buffer *said = said_of(attempt);
    if (!said)
        return EW_ENOMEM;
    if (is_full(said) || json.len > EW__JOB_CHUNK_BYTES_MAX)
        return EW_ELIMIT;
    unsigned i = said->filling;
    ew__buf *text = &said->set[i].text;
    if (ew__buf_str(text, json) != EW_OK) {
        text->err = EW_OK;
        return EW_ENOMEM;
    }
    said->set[i].len[said->set[i].n++] = json.len;
    (void)ew__chunk_buffer_flush(attempt);
    said->full = is_full(said);
    return said->full ? EW_FULL : EW_OK;
}
