/*
 * endpoint/tap.c: see tap.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "endpoint/tap.h"

static void tell(ew__tap *tap, ew_frame *frame) {
    frame->connection = tap->connection;
    frame->wire = tap->wire ? tap->wire : "?";
    frame->is_secret = tap->tapping->is_secret;
    frame->secrets = tap->tapping->secrets;
    frame->at_ns = tap->env->now_ns(tap->env->ud);
    tap->tapping->fn(tap->tapping->ud, frame);
}

static void on_frame(ew__cutter *cutter, const ew_frame *frame) {
    ew_frame copy = *frame;
    tell(ew__container_of(cutter, ew__tap, cutter), &copy);
}

static void saw(ew__stream_tap *stream, bool out, const void *bytes, size_t n) {
    ew__cutter_feed(&ew__container_of(stream, ew__tap, stream)->cutter, out, bytes, n);
}

ew__tap *ew__tap_new(ew__loop *loop, ew__stream *stream, const char *wire) {
    ew__tapping *tapping = loop->tapping;
    if (EW__LIKELY(!tapping))
        return NULL;
    ew__tap *tap = ew__zalloc(loop->executor.env, sizeof *tap);
    if (!tap)
        return NULL;
    tap->stream.saw = saw;
    tap->tapping = tapping;
    tap->env = loop->executor.env;
    tap->wire = wire;
    tap->connection = atomic_fetch_add_explicit(&tapping->connections, 1, memory_order_relaxed) + 1;
    ew__cutter_init(&tap->cutter, tap->env, tapping->keep, loop->executor.limits->frame_bytes, on_frame, NULL);
    stream->tap = &tap->stream;
    tell(tap, &(ew_frame){.kind = EW_FRAME_OPENED});
    return tap;
}

void ew__tap_end(ew__tap *tap, ew_err why) {
    if (EW__LIKELY(!tap))
        return;
    ew__cutter_end(&tap->cutter);
    tell(tap, &(ew_frame){.kind = EW_FRAME_CLOSED, .text = ew_str_from(why == EW_OK ? "" : ew_err_text(why))});
    ew__cutter_done(&tap->cutter);
    ew__free(tap->env, tap, sizeof *tap);
}
