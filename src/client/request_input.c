/*
 * client/request_input.c: input streams of requests. A chunk is a message to the loop. When the wire asks to wait,
 * messages that arrive are held, and the sender is asked to wait once too many bytes are under way.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "client/request.h"
#include "base/thread.h"
#include "json/json.h"
#include <errno.h>

struct ew__request_piece {
    ew__task task; /* its node also links the pieces that are held */
    ew_request *request;
    size_t len;
    bool end;
    char bytes[];
};

static void free_piece(ew_request *request, struct ew__request_piece *piece) {
    atomic_fetch_sub(&request->sending, piece->len);
    ew__free(request->arena.env, piece, sizeof *piece + piece->len);
}

/* ---- on the loop ---- */

/* Half of what made it wait must have gone, so that it does not go on for one chunk. */
static void tell_room(ew_request *request, bool over) {
    if (!atomic_load(&request->told_full))
        return;
    if (!over && atomic_load(&request->sending) > request->executor->limits->in_queue_bytes / 2)
        return;
    pthread_mutex_lock(&request->lock);
    atomic_store(&request->told_full, false);
    pthread_cond_broadcast(&request->changed);
    pthread_mutex_unlock(&request->lock);
    if (!over && request->options.on_room)
        request->options.on_room(request, request->options.ud);
}

static void give(ew_request *request, struct ew__request_piece *piece) {
    if (request->call && piece->end)
        ew__call_input_end(request->call);
    else if (request->call)
        (void)ew__call_input(request->call, ew__str(piece->bytes, piece->len));
    free_piece(request, piece);
}

static struct ew__request_piece *take_held(ew_request *request) {
    return EW__ITEM(ew__fifo_pop(&request->held), struct ew__request_piece, task.node);
}

static void send_piece(ew__task *task) {
    struct ew__request_piece *piece = ew__container_of(task, struct ew__request_piece, task);
    ew_request *request = piece->request;
    if (request->call && (request->call->input_full || request->held.first))
        ew__fifo_push(&request->held, &piece->task.node);
    else
        give(request, piece);
    tell_room(request, false);
    ew__request_unref(request);
}

void ew__request_input_room(ew_request *request) {
    atomic_fetch_add(&request->refs, 1); /* the call may end while it is fed */
    while (request->held.first && !(request->call && request->call->input_full))
        give(request, take_held(request));
    tell_room(request, false);
    ew__request_unref(request);
}

void ew__request_drop_input(ew_request *request) {
    while (request->held.first)
        free_piece(request, take_held(request));
    tell_room(request, true);
}

/* ---- from any thread ---- */

static struct ew__request_piece *new_piece(ew_request *request, ew_str json, bool end) {
    struct ew__request_piece *piece = ew__alloc(request->arena.env, sizeof *piece + json.len);
    if (!piece)
        return NULL;
    *piece = (struct ew__request_piece){.task = {.fn = send_piece}, .request = request, .len = json.len, .end = end};
    if (json.len)
        memcpy(piece->bytes, json.ptr, json.len);
    return piece;
}

static ew_err post_piece(ew_request *request, ew_str json, bool end) {
    ew_err err = EW_OK;
    if (!request->options.input_stream)
        return EW_EUNSUPPORTED;
    struct ew__request_piece *piece = new_piece(request, json, end);
    if (!piece)
        return EW_ENOMEM;
    pthread_mutex_lock(&request->lock);
    if (request->ended) {
        err = EW_EENDED; /* and the client may be gone */
    } else if (atomic_load(&request->sending) + json.len > request->executor->limits->out_max_bytes) {
        err = EW_ELIMIT; /* a sender that did not wait when it was told to */
    } else {
        atomic_fetch_add(&request->refs, 1);
        size_t sending = atomic_fetch_add(&request->sending, json.len) + json.len;
        err = sending > request->executor->limits->in_queue_bytes ? EW_FULL : EW_OK;
        if (err == EW_FULL) /* before the letter is under way: its arrival may be what makes room */
            atomic_store(&request->told_full, true);
        ew__executor_post(request->executor, &piece->task);
    }
    pthread_mutex_unlock(&request->lock);
    if (err < 0)
        ew__free(request->arena.env, piece, sizeof *piece + json.len);
    return err;
}

ew_err ew__request_send(ew_request *request, ew_str json) {
    ew_err err = json.len == 0 ? EW_ESYNTAX : ew__json_validate(json, NULL);
    return err == EW_OK ? post_piece(request, json, false) : err;
}

ew_err ew__request_send_end(ew_request *request) { return post_piece(request, ew__str(NULL, 0), true); }

ew_err ew__request_wait_room(ew_request *request, uint64_t ms) {
    struct timespec until = ew__cond_until(ms);
    int err = 0;
    pthread_mutex_lock(&request->lock);
    if (!request->ended && ew__executor_here(request->executor)) { /* it would wait for itself */
        pthread_mutex_unlock(&request->lock);
        return EW_EUNSUPPORTED;
    }
    while (!request->ended && atomic_load(&request->told_full) && err != ETIMEDOUT)
        err = ms ? pthread_cond_timedwait(&request->changed, &request->lock, &until)
                 : pthread_cond_wait(&request->changed, &request->lock);
    bool ended = request->ended, full = atomic_load(&request->told_full);
    pthread_mutex_unlock(&request->lock);
    return ended ? EW_EENDED : full ? EW_ETIMEOUT : EW_OK;
}
