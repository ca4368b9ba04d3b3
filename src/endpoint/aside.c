/*
 * endpoint/aside.c: see aside.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/aside.h"

#define SEND_MS 1000 /* for all that comes after the dial */

struct ew__aside {
    struct ew__aside *next, *prev;
    ew__asides *asides;
    ew__dial *dial; /* NULL once it is connected */
    ew__stream stream;
    ew__out out;
    ew__timer timer;
};

typedef struct ew__aside aside;

static aside *aside_of(ew__stream *stream) { return ew__container_of(stream, aside, stream); }

static void end(aside *self) {
    ew__asides *asides = self->asides;
    EW__LIST_REMOVE(asides->first, self);
    asides->n--;
    ew__timer_stop(&asides->loop->home.timers, &self->timer);
    ew__out_done(&self->out);
    ew__free(asides->loop->home.env, self, sizeof *self);
    if (asides->n == 0)
        asides->gone(asides);
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

static void on_closed(ew__stream *stream, ew_err why) {
    (void)why;
    end(aside_of(stream));
}

static const ew__stream_events events = {
    .reserve = on_reserve, .data = on_data, .eof = on_nothing, .drained = on_nothing, .closed = on_closed};

static void on_time(ew__timer *timer, uint64_t now) {
    (void)now;
    ew__stream_close(&ew__container_of(timer, aside, timer)->stream, EW_ETIMEOUT);
}

static void on_dialled(ew__stream *stream, ew_err err, const char *detail) {
    aside *self = aside_of(stream);
    ew__loop *loop = self->asides->loop;
    (void)detail;
    self->dial = NULL;
    if (err != EW_OK) {
        end(self);
        return;
    }
    ew__stream_start(stream, loop, &events, &self->out);
    uint64_t at = ew__home_read_clock(&loop->home) + EW__MS(SEND_MS);
    if (ew__timer_set(&loop->home.timers, &self->timer, at, on_time) == EW_OK)
        ew__stream_finish(stream);
    else
        ew__stream_close(stream, EW_ENOMEM);
}

/* ---- beginning and end ---- */

void ew__asides_init(ew__asides *asides, ew__loop *loop, void (*gone)(ew__asides *asides)) {
    *asides = (ew__asides){.loop = loop, .gone = gone};
}

ew_err ew__aside_send(ew__asides *asides, const ew__where *where, const void *bytes, size_t n) {
    ew__loop *loop = asides->loop;
    if (asides->n >= EW__ASIDES_MAX || (where->kind != EW__WHERE_TCP && where->kind != EW__WHERE_UNIX))
        return EW_EBUSY;
    aside *self = ew__zalloc(loop->home.env, sizeof *self);
    if (!self)
        return EW_ENOMEM;
    self->asides = asides;
    ew__out_init(&self->out, &loop->home.blocks);
    ew__out_add(&self->out, bytes, n);
    ew_err err = self->out.err;
    if (err == EW_OK)
        err = ew__dial_start(loop, &self->stream, where, loop->home.limits->connect_ms, on_dialled, &self->dial);
    if (err != EW_OK) {
        ew__out_done(&self->out);
        ew__free(loop->home.env, self, sizeof *self);
        return err;
    }
    EW__LIST_ADD(asides->first, self);
    asides->n++;
    return EW_OK;
}

void ew__asides_close(ew__asides *asides) {
    for (aside *self = asides->first, *next; self; self = next) {
        next = self->next;
        if (self->dial)
            ew__dial_cancel(self->dial);
        else
            ew__stream_close(&self->stream, EW_OK);
    }
}
