/*
 * handler/exec_output.c: from what a program writes and how it ends to chunks, results and faults.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "handler/exec_line.h"
#include "handler/exec_process.h"
#include "json/json.h"
#include <signal.h>
#include <stdio.h>

/* ---- ends of the call, before that of the process ---- */

static ew__exec_job *release_job(ew__exec_process *process) {
    ew__exec_job *job = process->job;
    process->job = NULL;
    return job;
}

/* It is of no use any more. */
static void break_off(ew__exec_process *process, const char *why) {
    ew__exec_job *job = release_job(process);
    unsigned long long max = process->exec->options.output_bytes;
    ew__exec_process_terminate(process);
    if (why)
        ew__exec_fail_as(job, EW_STATUS_RESOURCE_EXHAUSTED, "%s of %.150s is longer than %llu bytes", why,
                         process->exec->program, max);
    else
        ew__exec_fail_as(job, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
}

/* It has said how the call ends: a kept one waits for the next, others may go. */
static ew__exec_job *answered(ew__exec_process *process) {
    ew__exec_job *job = release_job(process);
    process->answered = true;
    process->exec->pause_ms = 0;
    if (!process->exec->options.keep)
        ew__exec_process_dismiss(process);
    return job;
}

static void fail_by_line(ew__exec_process *process, ew_str value) {
    ew__exec_job *job = answered(process);
    ew_fault fault;
    ew__buf text;
    ew__buf_init(&text, process->exec->env, SIZE_MAX / 2);
    if (ew__exec_line_fault(value, &text, &fault) != EW_OK)
        fault.message = EW_STR("out of memory");
    ew__exec_fail(job, &fault);
    ew__buf_done(&text);
}

/* ---- lines ---- */

static void send_chunk(ew__exec_process *process, ew_str json) {
    if (ew__call_chunk_valid(process->job->call, json) == EW_FULL && process->job)
        process->full = true;
}

/* Keeps a line for the result; what is too long for one may still be followed by a line that says the result. */
static ew_err collect(ew__exec_process *process, ew_str line) {
    if (process->text_too_long)
        return EW_OK;
    if (process->has_text)
        (void)ew__buf_char(&process->text, '\n');
    process->has_text = true;
    ew_err err = ew__buf_str(&process->text, line);
    if (err == EW_ELIMIT) {
        process->text_too_long = true;
        ew__buf_done(&process->text);
        err = EW_OK;
    }
    return err;
}

static void take_text(ew__exec_process *process, ew_str line) {
    bool wanted = ew_call_wants_chunks(process->job->call);
    ew_err err = process->exec->options.keep ? EW_OK : collect(process, line);
    ew__buf json;
    ew__buf_init(&json, process->exec->env, SIZE_MAX / 2);
    if (err == EW_OK && wanted)
        err = ew__json_write_str(&json, line, false);
    if (err != EW_OK)
        break_off(process, NULL);
    else if (wanted)
        send_chunk(process, ew__buf_view(&json));
    ew__buf_done(&json);
}

static void take_line(ew__exec_process *process, ew_str line) {
    ew_str value = {0};
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (line.len > process->exec->options.output_bytes) {
        break_off(process, "a line");
        return;
    }
    switch (ew__exec_line_read(line, &value)) {
    case EW__EXEC_TEXT_LINE:
        take_text(process, line);
        break;
    case EW__EXEC_CHUNK:
        send_chunk(process, value);
        break;
    case EW__EXEC_RESULT:
        ew__exec_done(answered(process), value);
        break;
    case EW__EXEC_ERROR:
        fail_by_line(process, value);
        break;
    }
}

/* Nobody has asked for it. */
static void drop(ew__exec_process *process, ew_str bytes) {
    if (process->exec->options.keep && process->state == EW__EXEC_RUNS)
        ew__child_errors_take(&process->strays, bytes.ptr, bytes.len);
}

static bool wants_lines(const ew__exec_process *process) { return process->job && process->state == EW__EXEC_RUNS; }

/* Takes lines while the caller has room for them. Returns how much of the bytes is done with. */
static size_t work_on(ew__exec_process *process, ew_str bytes) {
    size_t used = 0;
    while (wants_lines(process) && !process->full) {
        const char *line = bytes.ptr + used;
        size_t left = bytes.len - used, old = process->scanned;
        const char *newline = left > old ? memchr(line + old, '\n', left - old) : NULL;
        if (!newline) {
            process->scanned = left;
            if (left > process->exec->options.output_bytes + 1) /* it may end with a CR */
                break_off(process, "a line");
            break;
        }
        process->scanned = 0;
        used += (size_t)(newline - line) + 1;
        take_line(process, ew__str(line, (size_t)(newline - line)));
    }
    if (wants_lines(process))
        return used;
    drop(process, ew__str(bytes.ptr + used, bytes.len - used));
    process->scanned = 0;
    return bytes.len;
}

static void work_on_kept(ew__exec_process *process) {
    ew__buf *line = &process->line;
    ew__buf_drop(line, work_on(process, ew__buf_view(line)));
    if (line->len == 0 && line->cap > EW__READ_BUFFER) /* a process that stays does not keep the room for a long line */
        ew__buf_done(line);
}

static void take_lines(ew__exec_process *process, ew_str bytes) {
    ew__buf *line = &process->line;
    ew_err err;
    if (line->len == 0) {
        size_t used = work_on(process, bytes);
        err = ew__buf_add(line, bytes.ptr + used, bytes.len - used);
    } else {
        err = ew__buf_str(line, bytes);
        if (err == EW_OK)
            work_on_kept(process);
    }
    if (err != EW_OK && wants_lines(process))
        break_off(process, NULL);
}

static void take_all(ew__exec_process *process, ew_str bytes) {
    uint64_t max = process->exec->options.output_bytes + 2; /* for a newline at the end, which does not count */
    if (process->line.len + bytes.len > max)
        break_off(process, "the output");
    else if (ew__buf_str(&process->line, bytes) != EW_OK)
        break_off(process, NULL);
}

void ew__exec_output_take(ew__exec_process *process, const char *bytes, size_t n) {
    process->busy = true;
    if (!process->job)
        drop(process, ew__str(bytes, n));
    else if (process->exec->options.output == EW_EXEC_LINES)
        take_lines(process, ew__str(bytes, n));
    else
        take_all(process, ew__str(bytes, n));
    process->busy = false;
}

void ew__exec_output_resume(ew__exec_process *process) {
    process->busy = true;
    if (process->line.len > 0)
        work_on_kept(process);
    process->busy = false;
}

/* ---- the end of the process ---- */

const char *ew__exec_signal_name(int number, char out[16]) {
    static const struct {
        int number;
        const char *name;
    } names[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},     {SIGILL, "SIGILL"},
                 {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},       {SIGFPE, "SIGFPE"},
                 {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"},     {SIGUSR2, "SIGUSR2"},
                 {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},     {SIGXCPU, "SIGXCPU"},
                 {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"},   {SIGVTALRM, "SIGVTALRM"}, {SIGPROF, "SIGPROF"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == number)
            return names[i].name;
    (void)snprintf(out, 16, "SIG%d", number);
    return out;
}

/* sysexits.h, and what timeout(1) answers. */
static ew_status usual_status(int code) {
    switch (code) {
    case 0:
        return EW_STATUS_OK;
    case 64:
    case 65:
        return EW_STATUS_INVALID_ARGUMENT;
    case 66:
        return EW_STATUS_NOT_FOUND;
    case 69:
    case 75:
        return EW_STATUS_UNAVAILABLE;
    case 77:
        return EW_STATUS_PERMISSION_DENIED;
    case 78:
        return EW_STATUS_FAILED_PRECONDITION;
    case 124:
        return EW_STATUS_DEADLINE_EXCEEDED;
    default:
        return EW_STATUS_INTERNAL;
    }
}

static ew_status status_of(const ew__exec_process *process) {
    const ew_exec_options *options = &process->exec->options;
    if (options->keep)
        return EW_STATUS_UNAVAILABLE; /* whatever its code: the call was not answered */
    for (size_t i = 0; i < options->n_exits; i++)
        if (options->exits[i].code == process->code)
            return options->exits[i].status;
    return usual_status(process->code);
}

static void fail_by_exit(ew__exec_process *process, ew_status status) {
    const char *program = process->exec->program;
    char message[240], details[48] = "", name[16];
    if (process->signal) {
        const char *signal = ew__exec_signal_name(process->signal, name);
        (void)snprintf(message, sizeof message, "%.150s was killed by %s", program, signal);
        (void)snprintf(details, sizeof details, "{\"signal\":\"%s\"}", signal);
    } else if (process->code >= 0) {
        (void)snprintf(message, sizeof message, "%.150s exited with code %d", program, process->code);
        (void)snprintf(details, sizeof details, "{\"exit\":%d}", process->code);
    } else { /* the host has taken it, by ignoring SIGCHLD or waiting for everybody */
        (void)snprintf(message, sizeof message, "%.150s ended, and its exit code was lost", program);
    }
    const ew_fault fault = {.status = status,
                            .message = ew_str_from(message),
                            .details = ew_str_from(details),
                            .retryable = status == EW_STATUS_UNAVAILABLE};
    if (process->exec->options.keep)
        ew__exec_hold_back(process->exec);
    ew__exec_fail(release_job(process), &fault);
}

static void done_with_string(ew__exec_process *process, ew_str text) {
    ew__buf json;
    ew__buf_init(&json, process->exec->env, SIZE_MAX / 2);
    if (ew__json_write_str(&json, text, false) == EW_OK)
        ew__exec_done(release_job(process), ew__buf_view(&json));
    else
        ew__exec_fail_as(release_job(process), EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
    ew__buf_done(&json);
}

static void done_with_json(ew__exec_process *process, ew_str text) {
    ew__json_doc doc;
    if (ew__json_parse(&doc, text) == EW_OK)
        ew__exec_done(release_job(process), doc.root);
    else
        ew__exec_fail_as(release_job(process), EW_STATUS_INTERNAL,
                         "the output of %.150s is not one JSON value: look at byte %zu", process->exec->program,
                         doc.error_at);
}

static ew_str without_newline(ew_str text) {
    if (text.len > 0 && text.ptr[text.len - 1] == '\n') {
        text.len--;
        if (text.len > 0 && text.ptr[text.len - 1] == '\r')
            text.len--;
    }
    return text;
}

static void done_by_output(ew__exec_process *process) {
    ew_exec_output output = process->exec->options.output;
    ew_str all = output == EW_EXEC_LINES ? ew__buf_view(&process->text) : ew__buf_view(&process->line);
    ew_str text = without_newline(all);
    if (process->text_too_long || (output != EW_EXEC_LINES && text.len > process->exec->options.output_bytes))
        break_off(process, "the output");
    else if (output == EW_EXEC_JSON)
        done_with_json(process, text);
    else if (output == EW_EXEC_TEXT)
        done_with_string(process, text);
    else if (process->has_text)
        done_with_string(process, all);
    else
        ew__exec_done(release_job(process), EW_STR("null"));
}

void ew__exec_output_end(ew__exec_process *process) {
    process->busy = true;
    if (process->exec->options.output == EW_EXEC_LINES && process->line.len > 0) /* the last line has no newline */
        take_line(process, ew__buf_view(&process->line));
    process->busy = false;
    if (!wants_lines(process))
        return;
    ew_status status = status_of(process);
    if (status == EW_STATUS_OK)
        done_by_output(process);
    else
        fail_by_exit(process, status);
}
