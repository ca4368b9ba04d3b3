/*
 * handler/exec_process.c: one process of an exec action, from its start to its end. See exec_process.h.
 *
 * It is gone when its stream's closed says so: the process is reaped then, and nobody is left in its group. The stream
 * stays open until the process has ended, so that one that is told to stop can still write without being killed for it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "handler/exec_process.h"
#include "base/list.h"
#include <signal.h>
#include <stdio.h>

#define LAST_WORD_MS 1000 /* from its end to that of its output, and back: others may have it open, too */
#define LAST_WAITS 10 /* so often, if there still is something to read: whoever writes on and on is not waited for */
#define GONE_MS 1000  /* beyond the grace: then a call that was cancelled ends in any case */
#define READ_AHEAD (EW__READ_BUFFER * 2) /* of lines, while the caller is behind */

static ew__exec_process *process_of(ew__stream *stream) { return ew__container_of(stream, ew__exec_process, stream); }

static ew__executor *executor_of(const ew__exec_process *process) { return &process->exec->loop->executor; }

static void on_time(ew__timer *timer, uint64_t now);

static void wait_ms(ew__exec_process *process, uint64_t ms) { /* a move: cannot fail */
    uint64_t now = ew__executor_read_clock(executor_of(process));
    (void)ew__timer_set(&executor_of(process)->timers, &process->timer, now + EW__MS(ms), on_time);
}

/* ---- its end ---- */

static void log_end(const ew__exec_process *process, const char *when) {
    const ew__exec *exec = process->exec;
    char name[16];
    if (process->signal)
        ew__log(exec->env, EW_LOG_WARN, "exec", "%s was killed by %s %s", exec->program,
                ew__exec_signal_name(process->signal, name), when);
    else
        ew__log(exec->env, EW_LOG_WARN, "exec", "%s exited with code %d %s", exec->program, process->code, when);
}

/* What it did after its answer changes nothing for the call, but somebody should know. */
static void log_late_end(const ew__exec_process *process) {
    bool ours = process->signal == SIGTERM || process->signal == SIGKILL;
    if (process->answered && process->code != 0 && !ours && !process->exec->closing)
        log_end(process, "after its answer");
}

/* It has ended, and nothing that it could still say matters. */
static void bury(ew__exec_process *process) {
    if (process->stream.closing)
        return;
    process->state = EW__EXEC_LEAVES;
    log_late_end(process);
    ew__stream_close(&process->stream, EW_OK);
}

/* It has ended, and so has its output: its call, if it has one, is over with it. */
static void end(ew__exec_process *process) {
    if (process->job) {
        ew__exec_output_end(process);
    } else {
        log_end(process, "between calls");
        process->answered = false; /* that is said */
    }
    bury(process);
}

static void on_exited(void *ud, int code, int signal) {
    ew__exec_process *process = ud;
    process->exited = true;
    process->code = code;
    process->signal = signal;
    if (!process->open)
        return; /* we have not heard of its beginning yet */
    if (process->state == EW__EXEC_LEAVES)
        bury(process);
    else if (process->eof || !process->job)
        end(process);
    else
        wait_ms(process, LAST_WORD_MS);
}

static void cancelled(ew__exec_process *process) {
    ew__exec_job *job = process->job;
    process->job = NULL;
    if (job)
        ew__exec_fail_as(job, EW_STATUS_CANCELLED, "the call was cancelled");
}

/* A kept one that can say no more. */
static void give_up(ew__exec_process *process) {
    ew__exec *exec = process->exec;
    ew__exec_job *job = process->job;
    process->job = NULL;
    ew__log(exec->env, EW_LOG_WARN, "exec", "%s has closed its output", exec->program);
    ew__exec_process_terminate(process);
    if (!job)
        return;
    ew__exec_hold_back(exec);
    ew__exec_fail_as(job, EW_STATUS_UNAVAILABLE, "%.150s has closed its output", exec->program);
}

/* What it wrote before its end is read, however long that takes us. */
static bool has_more(ew__exec_process *process) {
    return process->full || (ew__stream_readable(&process->stream) && ++process->n_waits <= LAST_WAITS);
}

/* A wait is over: for the end of its output, for its end after that of its output, or for its end after a cancel. */
static void on_time(ew__timer *timer, uint64_t now) {
    ew__exec_process *process = ew__container_of(timer, ew__exec_process, timer);
    (void)ew__timer_set(&executor_of(process)->timers, timer, EW__NEVER - 1, on_time); /* there is room: it was set */
    (void)now;
    if (process->job && process->job->cancelled)
        cancelled(process);
    else if (process->state != EW__EXEC_RUNS)
        return;
    else if (process->exited && has_more(process))
        wait_ms(process, LAST_WORD_MS);
    else if (process->exited)
        end(process);
    else if (process->eof && process->exec->options.keep)
        give_up(process);
}

/* ---- the stream ---- */

static uint8_t *on_reserve(ew__stream *stream, size_t *ret_size) {
    (void)stream;
    (void)ret_size;
    return NULL;
}

static void after_output(ew__exec_process *process) {
    ew__stream_read(&process->stream, !process->full);
    if (!process->job && process->exec->options.keep)
        ew__exec_serve(process->exec);
}

static void on_data(ew__stream *stream, const uint8_t *bytes, size_t n) {
    ew__exec_process *process = process_of(stream);
    if (process->state == EW__EXEC_LEAVES)
        return;
    ew__exec_output_take(process, (const char *)bytes, n);
    after_output(process);
}

static void on_turn(ew__timer *timer, uint64_t now) {
    ew__exec_process *process = ew__container_of(timer, ew__exec_process, turn);
    (void)ew__timer_set(&executor_of(process)->timers, timer, EW__NEVER - 1, on_turn);
    (void)now;
    if (!process->full || process->state == EW__EXEC_LEAVES)
        return;
    process->full = false;
    ew__exec_output_resume(process);
    after_output(process);
}

void ew__exec_process_room(ew__exec_process *process) {
    (void)ew__timer_set(&executor_of(process)->timers, &process->turn, executor_of(process)->now, on_turn);
}

static void on_eof(ew__stream *stream) {
    ew__exec_process *process = process_of(stream);
    process->eof = true;
    if (process->state == EW__EXEC_LEAVES)
        return;
    if (process->exited)
        end(process);
    else if (process->exec->options.keep)
        wait_ms(process, LAST_WORD_MS); /* mostly because it is about to end */
}

static void on_drained(ew__stream *stream) {
    const ew__exec_process *process = process_of(stream);
    if (process->job && !process->job->cancelled)
        ew__call_input_room(process->job->call);
}

static void on_closed(ew__stream *stream, ew_err why) {
    ew__exec_process *process = process_of(stream);
    ew__exec_job *job = process->job;
    process->open = false;
    process->job = NULL;
    if (job && job->cancelled)
        ew__exec_fail_as(job, EW_STATUS_CANCELLED, "the call was cancelled");
    else if (job)
        ew__exec_fail_as(job, EW_STATUS_UNAVAILABLE, "%.150s was lost: %s", process->exec->program, ew_err_text(why));
    ew__exec_process_gone(process);
}

static const ew__stream_events events = {
    .reserve = on_reserve, .data = on_data, .eof = on_eof, .drained = on_drained, .closed = on_closed};

/* ---- input ---- */

void ew__exec_process_send(ew__exec_process *process) {
    if (process->open)
        ew__stream_send(&process->stream);
}

void ew__exec_process_end_input(ew__exec_process *process) {
    if (process->open && !process->exec->options.keep)
        ew__stream_end(&process->stream, false);
}

static void send_input(ew__exec_process *process) {
    const ew_call *call = process->job->call;
    if (process->out.bytes > 0)
        ew__stream_send(&process->stream);
    if (!call->has_input || call->input_ended)
        ew__exec_process_end_input(process);
}

/* The call cannot have a line that is not whole. */
static void lose(ew__exec_process *process) {
    ew__exec_job *job = process->job;
    process->job = NULL;
    ew__exec_process_terminate(process);
    ew__exec_fail_as(job, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
}

static void take_job(ew__exec_process *process, ew__exec_job *job) {
    process->job = job;
    job->process = process;
    process->answered = false;
    ew__exec_write_input(job, &process->out);
}

/* ---- kept ones ---- */

bool ew__exec_process_is_free(const ew__exec_process *process) {
    return process->state == EW__EXEC_RUNS && !process->job && !process->busy && !process->eof && !process->exited &&
           !process->stream.closing && ew__child_runs(&process->stream);
}

void ew__exec_process_give(ew__exec_process *process, ew__exec_job *job) {
    ew__child_errors_done(&process->strays); /* half a line of before does not belong to the call */
    take_job(process, job);
    if (process->out.err)
        lose(process);
    else
        send_input(process);
}

/* ---- its beginning ---- */

static void on_started(ew__stream *stream, ew_err err, const char *detail) {
    ew__exec_process *process = process_of(stream);
    ew__exec *exec = process->exec;
    ew__exec_job *job = process->job;
    process->dial = NULL;
    if (err == EW_OK) {
        process->state = EW__EXEC_RUNS;
        process->open = true;
        stream->patient = true; /* its input is read when it likes: the call's time is the limit */
        ew__stream_start(stream, exec->loop, &events, &process->out);
        if (!stream->closing && process->job)
            send_input(process);
        if (process->exited)
            wait_ms(process, LAST_WORD_MS);
        return;
    }
    process->job = NULL;
    if (job && job->cancelled)
        ew__exec_fail_as(job, EW_STATUS_CANCELLED, "the call was cancelled");
    else if (job && err == EW_ETIMEOUT)
        ew__exec_fail_as(job, EW_STATUS_UNAVAILABLE, "cannot start %.150s: %s", exec->program, detail);
    else if (job && exec->options.folder)
        ew__exec_fail_as(job, EW_STATUS_FAILED_PRECONDITION, "%.200s (in %.150s)", detail, exec->options.folder);
    else if (job)
        ew__exec_fail_as(job, EW_STATUS_FAILED_PRECONDITION, "%.200s", detail);
    ew__exec_process_gone(process);
}

static void add_variables(ew__exec_process *process, const ew__exec_job *job) {
    const ew__exec *exec = process->exec;
    static const char trace[] = "EVERYWIRE_TRACEPARENT=";
    char parent[EW__TRACEPARENT_LEN];
    uint64_t now = ew__executor_read_clock(executor_of(process));
    uint64_t at = job->call->deadline < job->timeout_at ? job->call->deadline : job->timeout_at;
    size_t n = 0;
    process->vars[n++] = exec->key_var;
    if (!exec->options.keep) {
        ew__trace_parent(ew__call_trace(job->call), parent);
        (void)snprintf(process->trace, sizeof process->trace, "%s%.*s", trace, (int)sizeof parent, parent);
        process->vars[n++] = process->trace;
    }
    if (!exec->options.keep && at != EW__NEVER) {
        (void)snprintf(process->deadline, sizeof process->deadline, "EVERYWIRE_DEADLINE_MS=%llu",
                       (unsigned long long)(at > now ? (at - now) / 1000000 : 0));
        process->vars[n++] = process->deadline;
    }
    process->vars[n] = NULL;
}

static ew_err begin(ew__exec_process *process) {
    const ew__exec *exec = process->exec;
    ew__executor *executor = executor_of(process);
    const ew__where where = {.kind = EW__WHERE_CHILD,
                             .argv = exec->options.argv,
                             .inherited = exec->inherited,
                             .vars = process->vars,
                             .pipe_input = true,
                             .grace_ms = (uint32_t)exec->options.grace_ms,
                             .rules = &exec->rules,
                             .exited = on_exited,
                             .ended_ud = process};
    ew_err err = ew__timer_set(&executor->timers, &process->timer, EW__NEVER - 1, on_time);
    if (err == EW_OK)
        err = ew__timer_set(&executor->timers, &process->turn, EW__NEVER - 1, on_turn);
    if (err == EW_OK)
        err = process->out.err;
    if (err == EW_OK)
        err = ew__dial_start(exec->loop, &process->stream, &where, executor->limits->connect_ms, on_started,
                             &process->dial);
    return err;
}

ew_err ew__exec_process_start(ew__exec *exec, ew__exec_job *job) {
    ew__exec_process *process = ew__zalloc(exec->env, sizeof *process);
    size_t max = exec->options.output_bytes;
    if (!process)
        return EW_ENOMEM;
    process->exec = exec;
    process->code = -1;
    ew__out_init(&process->out, &exec->loop->executor.blocks);
    ew__buf_init(&process->line, exec->env, max + READ_AHEAD);
    ew__buf_init(&process->text, exec->env, max);
    ew__child_errors_init(&process->strays, exec->loop, exec->strays);
    add_variables(process, job);
    take_job(process, job);
    ew_err err = begin(process);
    if (err != EW_OK) {
        job->process = NULL;
        ew__exec_process_free(process);
        return EW_ENOMEM;
    }
    EW__LIST_ADD(exec->processes, process);
    exec->n_processes++;
    return EW_OK;
}

/* ---- to be rid of it ---- */

static void leave(ew__exec_process *process, void (*how)(ew__stream *stream)) {
    process->full = false;
    if (process->dial) {
        ew__dial_cancel(process->dial);
    } else if (process->open) {
        if (process->state == EW__EXEC_RUNS)
            process->state = EW__EXEC_LEAVES;
        ew__stream_read(&process->stream, !process->eof);
        how(&process->stream);
        if (process->exited)
            bury(process);
    }
}

void ew__exec_process_dismiss(ew__exec_process *process) { leave(process, ew__child_dismiss); }

void ew__exec_process_terminate(ew__exec_process *process) { leave(process, ew__child_terminate); }

void ew__exec_process_cancel(ew__exec_process *process) {
    wait_ms(process, process->exec->options.grace_ms + GONE_MS);
    ew__exec_process_terminate(process);
}

void ew__exec_process_free(ew__exec_process *process) {
    const ew__exec *exec = process->exec;
    ew__timers *timers = &exec->loop->executor.timers;
    ew__timer_stop(timers, &process->timer);
    ew__timer_stop(timers, &process->turn);
    ew__child_errors_done(&process->strays);
    ew__out_done(&process->out);
    ew__buf_done(&process->line);
    ew__buf_done(&process->text);
    ew__free(exec->env, process, sizeof *process);
}
