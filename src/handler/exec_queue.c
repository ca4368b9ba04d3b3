/*
 * handler/exec_queue.c: the callee's end of exec actions: calls come, wait for a process, and leave.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "handler/exec_process.h"
#include "base/list.h"
#include "json/json.h"
#include <stdarg.h>
#include <stdio.h>

#define PAUSE_MS 100 /* keep: before the next start, when one has ended in a call; doubling */
#define PAUSE_MAX_MS 2000

static ew__executor *executor_of(const ew__exec *exec) { return &exec->loop->executor; }

/* ---- the queue ---- */

static void join_queue(ew__exec_job *job) {
    ew__exec *exec = job->exec;
    ew__list_add_last(&exec->waiting, &job->node);
    exec->n_waiting++;
}

void ew__exec_leave_queue(ew__exec_job *job) {
    ew__exec *exec = job->exec;
    ew__list_remove(&exec->waiting, &job->node);
    exec->n_waiting--;
}

/* ---- ends: the call's memory, and so the job, goes with them ---- */

void ew__exec_done(ew__exec_job *job, ew_str json) {
    ew__out_done(&job->early);
    (void)ew__call_done_valid(job->call, json);
}

void ew__exec_fail(ew__exec_job *job, const ew_fault *fault) {
    ew__out_done(&job->early);
    (void)ew_call_fail_with(job->call, fault);
}

void ew__exec_fail_as(ew__exec_job *job, ew_status status, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ew_fault fault = {.status = status, .message = ew_str_from(text), .retryable = status == EW_STATUS_UNAVAILABLE};
    ew__exec_fail(job, &fault);
}

/* ---- giving calls to processes ---- */

static void on_pause_over(ew__timer *timer, uint64_t now) {
    (void)now;
    ew__exec_serve(ew__container_of(timer, ew__exec, pause));
}

void ew__exec_hold_back(ew__exec *exec) {
    uint64_t twice = exec->pause_ms * 2 < PAUSE_MAX_MS ? exec->pause_ms * 2 : PAUSE_MAX_MS;
    exec->pause_ms = twice ? twice : PAUSE_MS;
    exec->start_at = ew__executor_read_clock(executor_of(exec)) + EW__MS(exec->pause_ms);
}

static bool may_start(ew__exec *exec) {
    if (exec->n_processes >= exec->options.processes)
        return false;
    if (exec->pause_ms == 0 || ew__executor_read_clock(executor_of(exec)) >= exec->start_at)
        return true;
    /* without memory for the timer: too early is better than never */
    return ew__timer_set(&executor_of(exec)->timers, &exec->pause, exec->start_at, on_pause_over) != EW_OK;
}

static ew__exec_process *free_process(const ew__exec *exec) {
    ew__exec_process *process = exec->options.keep ? exec->processes : NULL;
    while (process && !ew__exec_process_is_free(process))
        process = process->next;
    return process;
}

void ew__exec_serve(ew__exec *exec) {
    if (exec->serving || exec->closing)
        return;
    exec->serving = true;
    while (exec->waiting.first && !exec->closing) {
        ew__exec_job *job = EW__ITEM(exec->waiting.first, ew__exec_job, node);
        ew__exec_process *process = free_process(exec);
        if (!process && !may_start(exec))
            break;
        ew__exec_leave_queue(job);
        if (process)
            ew__exec_process_give(process, job);
        else if (ew__exec_process_start(exec, job) != EW_OK)
            ew__exec_fail_as(job, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
    }
    exec->serving = false;
    ew__exec_check_closed(exec); /* a caller that was told an end may have closed it */
}

void ew__exec_process_gone(ew__exec_process *process) {
    ew__exec *exec = process->exec;
    EW__LIST_REMOVE(exec->processes, process);
    exec->n_processes--;
    ew__exec_process_free(process);
    if (exec->closing)
        ew__exec_check_closed(exec);
    else
        ew__exec_serve(exec);
}

/* ---- input ---- */

static ew_err write_line(ew_call *call, ew__out *out, ew_str json) {
    ew__buf buf;
    ew_str line;
    ew_err err = ew__json_line(call->executor->env, json, false, &buf, &line);
    if (err == EW_OK) {
        ew__call_write(call, out, line);
        ew__out_str(out, EW_STR("\n"));
        err = out->err;
    }
    ew__buf_done(&buf);
    return err;
}

void ew__exec_write_input(ew__exec_job *job, ew__out *out) {
    if (!job->early.head) {
        ew_err err = write_line(job->call, out, job->call->input);
        out->err = out->err ? out->err : err;
        return;
    }
    *out = job->early; /* all of it, in order */
    ew__out_init(&job->early, out->pool);
}

static ew_err on_input(ew_call *call, ew_str chunk) {
    ew__exec_job *job = call->callee_ud;
    const ew_limits *limits = executor_of(job->exec)->limits;
    ew__out *out = job->process ? &job->process->out : &job->early;
    ew_err err = EW_OK;
    if (job->cancelled)
        return EW_OK; /* nobody will read it */
    if (out->bytes + chunk.len > limits->out_max_bytes)
        return EW_ELIMIT;
    if (!job->process && !out->head)
        err = write_line(call, out, call->input);
    if (err == EW_OK)
        err = write_line(call, out, chunk);
    if (err != EW_OK)
        return EW_ENOMEM;
    if (job->process)
        ew__exec_process_send(job->process);
    return out->bytes >= limits->out_high_bytes ? EW_FULL : EW_OK;
}

static void on_input_end(ew_call *call) {
    ew__exec_job *job = call->callee_ud;
    if (job->process && !job->cancelled)
        ew__exec_process_end_input(job->process);
}

/* ---- opening, cancelling ---- */

static void on_timeout(ew_call *call, void *arg) {
    ew__exec_job *job = arg;
    ew__exec_process *process = job->process;
    (void)call;
    if (job->cancelled)
        return;
    if (process) {
        process->job = NULL;
        ew__exec_process_terminate(process);
    } else {
        ew__exec_leave_queue(job);
    }
    ew__exec_fail_as(job, EW_STATUS_DEADLINE_EXCEEDED, "%.150s took longer than %llu ms", job->exec->program,
                     (unsigned long long)job->exec->options.timeout_ms);
}

static ew__exec_job *new_job(ew_call *call, ew__exec *exec) {
    ew__exec_job *job = ew_call_alloc(call, sizeof *job);
    uint64_t ms = exec->options.timeout_ms;
    if (!job)
        return NULL;
    *job = (ew__exec_job){.exec = exec, .call = call, .timeout_at = EW__NEVER};
    ew__out_init(&job->early, &executor_of(exec)->blocks);
    if (ms > 0 && ew_call_after(call, ms, on_timeout, job) != EW_OK)
        return NULL;
    if (ms > 0)
        job->timeout_at = call->local.after_timer.at;
    return job;
}

static void on_open(ew_call *call) {
    ew__exec *exec = call->callee_ud;
    ew__exec_job *job = new_job(call, exec);
    if (!job) {
        ew__call_fail_as(call, EW_ORIGIN_ACTION, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
        return;
    }
    call->callee_ud = job;
    call->deep = true; /* lines are validated as messages are */
    if (exec->closing) {
        ew__exec_fail_as(job, EW_STATUS_UNAVAILABLE, "%.150s is being stopped", exec->program);
        return;
    }
    if (exec->options.keep && call->has_input) {
        ew__exec_fail_as(job, EW_STATUS_UNIMPLEMENTED, "%.150s takes no input stream", exec->program);
        return;
    }
    ew_call_ref(call); /* it may be over when it has been served */
    join_queue(job);
    ew__exec_serve(exec);
    if (call->callee_open && !job->process && exec->n_waiting > exec->options.queue) {
        ew__exec_leave_queue(job);
        ew__exec_fail_as(job, EW_STATUS_RESOURCE_EXHAUSTED, "too many calls wait for %.150s", exec->program);
    }
    ew_call_unref(call);
}

static void on_cancel(ew_call *call, ew__cancel_why why) {
    ew__exec_job *job = call->callee_ud;
    (void)why;
    job->cancelled = true;
    if (job->process) {
        ew__exec_process_cancel(job->process);
        return;
    }
    ew__exec_leave_queue(job);
    ew__exec_fail_as(job, EW_STATUS_CANCELLED, "cancelled before it began");
}

static void on_room(ew_call *call) {
    const ew__exec_job *job = call->callee_ud;
    if (job->process)
        ew__exec_process_room(job->process);
}

const ew__callee_ops ew__exec_callee = {
    .open = on_open, .input = on_input, .input_end = on_input_end, .cancel = on_cancel, .room = on_room};
