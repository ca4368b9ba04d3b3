/*
 * endpoint/one_shot.c: see one_shot.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/one_shot.h"
#include "base/list.h"
#include "endpoint/tap.h"

#define SEND_MS 1000    /* for all that comes after the dial */
#define ANSWER_MS 10000 /* the same, where the peer answers */

struct ew__one_shot {
    struct ew__one_shot *next, *prev; /* while it is dialled or open */
    ew__fifo_node node;               /* while it waits */
    ew__one_shots *all;
    ew__where where;
    ew__dial *dial; /* NULL before it is dialled, and once it is connected */
    bool wait;
    size_t size; /* what it holds at most */
    ew__stream stream;
    ew__out out;
    ew__timer timer;
    ew__tap *tap; /* NULL: not observed */
};

typedef struct ew__one_shot one_shot;

static one_shot *one_shot_of(ew__stream *stream) { return ew__container_of(stream, one_shot, stream); }

static void dial_next(ew__one_shots *all);

static void release(one_shot *self) {
    ew__one_shots *all = self->all;
    ew__timer_stop(&all->loop->executor.timers, &self->timer);
    ew__out_done(&self->out);
    all->n--;
    all->bytes -= self->size;
    ew__free(all->loop->executor.env, self, sizeof *self);
}

static void end(one_shot *self) {
    ew__one_shots *all = self->all;
    EW__LIST_REMOVE(all->first, self);
    release(self);
    dial_next(all);
    if (all->n == 0)
        all->gone(all);
}

/* ---- the connection: what comes is thrown away ---- */

static uint8_t *on_reserve(ew__stream *stream, size_t *ret_size) {
    (void)stream;
    (void)ret_size;
    return NULL;
}

static void on_data(ew__stream *stream, const uint8_t *bytes, size_t n) {
    (void)stream;
    (void)bytes;
    (void)n;
}

static void on_nothing(ew__stream *stream) { (void)stream; }

/* The peer has said all. */
static void on_eof(ew__stream *stream) {
    if (one_shot_of(stream)->wait)
        ew__stream_close(stream, EW_OK);
}

static void on_closed(ew__stream *stream, ew_err why) {
    ew__tap_end(one_shot_of(stream)->tap, why);
    end(one_shot_of(stream));
}

static const ew__stream_events events = {
    .reserve = on_reserve, .data = on_data, .eof = on_eof, .drained = on_nothing, .closed = on_closed};

static void on_time(ew__timer *timer, uint64_t now) {
    (void)now;
    ew__stream_close(&ew__container_of(timer, one_shot, timer)->stream, EW_ETIMEOUT);
}

static void on_dialled(ew__stream *stream, ew_err err, const char *detail) {
    one_shot *self = one_shot_of(stream);
    ew__loop *loop = self->all->loop;
    (void)detail;
    self->dial = NULL;
    if (err != EW_OK) {
        end(self);
        return;
    }
    self->tap = ew__tap_new(loop, stream, "aside");
    ew__stream_start(stream, loop, &events, &self->out);
    uint64_t at = ew__executor_read_clock(&loop->executor) + EW__MS(self->wait ? ANSWER_MS : SEND_MS);
    if (ew__timer_set(&loop->executor.timers, &self->timer, at, on_time) != EW_OK)
        ew__stream_close(stream, EW_ENOMEM);
    else if (self->wait)
        ew__stream_send(stream);
    else
        ew__stream_finish(stream);
}

static ew_err dial(one_shot *self) {
    ew__one_shots *all = self->all;
    ew__loop *loop = all->loop;
    ew_err err =
        ew__dial_start(loop, &self->stream, &self->where, loop->executor.limits->connect_ms, on_dialled, &self->dial);
    if (err == EW_OK)
        EW__LIST_ADD(all->first, self);
    return err;
}

static void dial_next(ew__one_shots *all) {
    while (all->n_waiting > 0 && all->n - all->n_waiting < EW__ONE_SHOTS_MAX) {
        one_shot *self = EW__ITEM(ew__fifo_pop(&all->waiting), one_shot, node);
        all->n_waiting--;
        if (dial(self) != EW_OK)
            release(self);
    }
}

/* ---- beginning and end ---- */

void ew__one_shots_init(ew__one_shots *all, ew__loop *loop, void (*gone)(ew__one_shots *all)) {
    *all = (ew__one_shots){.loop = loop, .gone = gone};
}

static one_shot *make(ew__one_shots *all, const ew__where *where, const void *bytes, size_t n, bool wait) {
    ew__loop *loop = all->loop;
    one_shot *self = ew__zalloc(loop->executor.env, sizeof *self);
    if (!self)
        return NULL;
    self->all = all;
    self->where = *where;
    self->wait = wait;
    self->size = n;
    ew__out_init(&self->out, &loop->executor.blocks);
    ew__out_add(&self->out, bytes, n);
    all->n++;
    all->bytes += n;
    if (self->out.err == EW_OK)
        return self;
    release(self);
    return NULL;
}

ew_err ew__one_shot_send(ew__one_shots *all, const ew__where *where, const void *bytes, size_t n, bool wait) {
    bool full = all->n_waiting >= EW__ONE_SHOTS_WAITING || (all->n > 0 && all->bytes + n > EW__ONE_SHOTS_BYTES);
    if (full || (where->kind != EW__WHERE_TCP && where->kind != EW__WHERE_UNIX))
        return EW_EBUSY;
    bool now = all->n - all->n_waiting < EW__ONE_SHOTS_MAX;
    one_shot *self = make(all, where, bytes, n, wait);
    if (!self)
        return EW_ENOMEM;
    if (now) {
        ew_err err = dial(self);
        if (err != EW_OK)
            release(self);
        return err;
    }
    ew__fifo_push(&all->waiting, &self->node);
    all->n_waiting++;
    return EW_OK;
}

void ew__one_shots_close(ew__one_shots *all) {
    one_shot *waiting;
    while ((waiting = EW__ITEM(ew__fifo_pop(&all->waiting), one_shot, node)) != NULL)
        release(waiting);
    all->n_waiting = 0;
    for (one_shot *self = all->first, *next; self; self = next) {
        next = self->next;
        if (self->dial)
            ew__dial_cancel(self->dial);
        else
            ew__stream_close(&self->stream, EW_OK);
    }
}
