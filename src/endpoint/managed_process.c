/*
 * endpoint/managed_process.c: see companion.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/managed_process.h"
#include <stdio.h>

static ew__managed_process *companion_of(ew__stream *stream) {
    return ew__container_of(stream, ew__managed_process, stream);
}

static void note_end(ew__managed_process *companion) {
    companion->state = EW__COMPANION_ENDED;
    if (companion->ended && !companion->closing)
        companion->ended(companion);
}

/* ---- its standard input ---- */

static uint8_t *on_reserve(ew__stream *stream, size_t *ret_size) {
    (void)stream;
    (void)ret_size;
    return NULL;
}

static void on_data(ew__stream *stream, const uint8_t *bytes, size_t n) {
    ew__managed_process *companion = companion_of(stream);
    if (companion->heard)
        ew__child_errors_take(&companion->said, (const char *)bytes, n);
}

static bool on_line(void *ud, ew_str line) {
    ew__managed_process *companion = ud;
    return !companion->closing && companion->heard(companion, line);
}

/* It closed what is ours, too, which says nothing; but if it has ended, that was the last of it. */
static void on_eof(ew__stream *stream) {
    ew__managed_process *companion = companion_of(stream);
    companion->eof = true;
    if (companion->state == EW__COMPANION_ENDED)
        ew__stream_close(stream, EW_OK);
}

static void on_drained(ew__stream *stream) { (void)stream; }

static void on_closed(ew__stream *stream, ew_err why) {
    ew__managed_process *companion = companion_of(stream);
    (void)why;
    companion->open = false;
    ew__out_done(&companion->out);
    if (companion->heard)
        ew__child_errors_done(&companion->said);
    if (companion->state != EW__COMPANION_ENDED) /* nobody told us how */
        note_end(companion);
    companion->closed(companion);
}

static const ew__stream_events events = {
    .reserve = on_reserve, .data = on_data, .eof = on_eof, .drained = on_drained, .closed = on_closed};

/* ---- beginning and end ---- */

static void on_child_ended(void *ud, const char *how) {
    ew__managed_process *companion = ud;
    (void)snprintf(companion->line, sizeof companion->line, "%.150s %s", companion->where.argv[0], how);
    note_end(companion);
    if (companion->open && (!companion->heard || companion->eof)) /* else what it has said is read to the end */
        ew__stream_close(&companion->stream, EW_OK);
}

static void on_started(ew__stream *stream, ew_err err, const char *detail) {
    ew__managed_process *companion = companion_of(stream);
    companion->dial = NULL;
    if (err == EW_OK) {
        companion->state = EW__COMPANION_RUNS;
        companion->open = companion->ran = true;
        ew__stream_start(stream, companion->loop, &events, &companion->out);
        if (companion->closing)
            ew__stream_close(stream, EW_OK);
        else if (companion->started)
            companion->started(companion);
        return;
    }
    (void)snprintf(companion->line, sizeof companion->line, "%.250s", detail);
    note_end(companion);
    companion->closed(companion);
}

void ew__managed_process_init(ew__managed_process *companion, ew__loop *loop, const ew__where *where) {
    memset(companion, 0, sizeof *companion);
    companion->loop = loop;
    companion->where = *where;
    companion->where.kind = EW__WHERE_CHILD;
    companion->where.companion = true;
    companion->where.ended = on_child_ended;
    companion->where.ended_ud = companion;
    ew__out_init(&companion->out, &loop->executor.blocks);
}

void ew__managed_process_start(ew__managed_process *companion) {
    if (!companion->where.argv || companion->state != EW__COMPANION_NONE)
        return;
    companion->state = EW__COMPANION_STARTS;
    companion->where.tells = companion->heard != NULL;
    ew__child_errors_init(&companion->said, companion->loop, companion->where.argv[0]);
    companion->said.heard = on_line;
    companion->said.heard_ud = companion;
    if (ew__dial_start(companion->loop, &companion->stream, &companion->where,
                       companion->loop->executor.limits->connect_ms, on_started, &companion->dial) == EW_OK)
        return;
    (void)snprintf(companion->line, sizeof companion->line, "cannot start %.150s: out of memory",
                   companion->where.argv[0]);
    companion->state = EW__COMPANION_ENDED;
}

bool ew__managed_process_close(ew__managed_process *companion) {
    companion->closing = true;
    if (companion->dial)
        ew__dial_cancel(companion->dial);
    else if (companion->open)
        ew__stream_close(&companion->stream, EW_OK);
    return companion->dial || companion->open;
}
