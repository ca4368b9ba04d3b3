/*
 * endpoint/managed_process.c: see managed_process.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/managed_process.h"
#include <stdio.h>

static ew__managed_process *process_of(ew__stream *stream) {
    return ew__container_of(stream, ew__managed_process, stream);
}

static void note_end(ew__managed_process *process) {
    process->state = EW__PROCESS_ENDED;
    if (process->ended && !process->closing)
        process->ended(process);
}

/* ---- its standard input ---- */

static uint8_t *on_reserve(ew__stream *stream, size_t *ret_size) {
    (void)stream;
    (void)ret_size;
    return NULL;
}

static void on_data(ew__stream *stream, const uint8_t *bytes, size_t n) {
    ew__managed_process *process = process_of(stream);
    if (process->heard)
        ew__child_errors_take(&process->said, (const char *)bytes, n);
}

static bool on_line(void *ud, ew_str line) {
    ew__managed_process *process = ud;
    return !process->closing && process->heard(process, line);
}

/* It closed what is ours, too, which says nothing; but if it has ended, that was the last of it. */
static void on_eof(ew__stream *stream) {
    ew__managed_process *process = process_of(stream);
    process->eof = true;
    if (process->state == EW__PROCESS_ENDED)
        ew__stream_close(stream, EW_OK);
}

static void on_drained(ew__stream *stream) { (void)stream; }

static void on_closed(ew__stream *stream, ew_err why) {
    ew__managed_process *process = process_of(stream);
    (void)why;
    process->open = false;
    ew__out_done(&process->out);
    if (process->heard)
        ew__child_errors_done(&process->said);
    if (process->state != EW__PROCESS_ENDED) /* the exit status is unknown */
        note_end(process);
    process->closed(process);
}

static const ew__stream_events events = {
    .reserve = on_reserve, .data = on_data, .eof = on_eof, .drained = on_drained, .closed = on_closed};

/* ---- beginning and end ---- */

static void on_child_ended(void *ud, const char *how) {
    ew__managed_process *process = ud;
    (void)snprintf(process->line, sizeof process->line, "%.150s %s", process->where.argv[0], how);
    note_end(process);
    if (process->open && (!process->heard || process->eof)) /* else what it has said is read to the end */
        ew__stream_close(&process->stream, EW_OK);
}

static void on_started(ew__stream *stream, ew_err err, const char *detail) {
    ew__managed_process *process = process_of(stream);
    process->dial = NULL;
    if (err == EW_OK) {
        process->state = EW__PROCESS_RUNS;
        process->open = process->ran = true;
        ew__stream_start(stream, process->loop, &events, &process->out);
        if (process->closing)
            ew__stream_close(stream, EW_OK);
        else if (process->started)
            process->started(process);
        return;
    }
    (void)snprintf(process->line, sizeof process->line, "%.250s", detail);
    note_end(process);
    process->closed(process);
}

void ew__managed_process_init(ew__managed_process *process, ew__loop *loop, const ew__where *where) {
    memset(process, 0, sizeof *process);
    process->loop = loop;
    process->where = *where;
    process->where.kind = EW__WHERE_CHILD;
    process->where.managed = true;
    process->where.ended = on_child_ended;
    process->where.ended_ud = process;
    ew__out_init(&process->out, &loop->executor.blocks);
}

void ew__managed_process_start(ew__managed_process *process) {
    if (!process->where.argv || process->state != EW__PROCESS_NONE)
        return;
    process->state = EW__PROCESS_STARTS;
    process->where.tells = process->heard != NULL;
    ew__child_errors_init(&process->said, process->loop, process->where.argv[0]);
    process->said.heard = on_line;
    process->said.heard_ud = process;
    if (ew__dial_start(process->loop, &process->stream, &process->where, process->loop->executor.limits->connect_ms,
                       on_started, &process->dial) == EW_OK)
        return;
    (void)snprintf(process->line, sizeof process->line, "cannot start %.150s: out of memory", process->where.argv[0]);
    process->state = EW__PROCESS_ENDED;
}

bool ew__managed_process_close(ew__managed_process *process) {
    process->closing = true;
    if (process->dial)
        ew__dial_cancel(process->dial);
    else if (process->open)
        ew__stream_close(&process->stream, EW_OK);
    return process->dial || process->open;
}
