/*
 * handler/exec.c: an action's programs: their options, their environment, beginning and end. See exec.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "handler/exec_process.h"
#include "io/environment.h"

#define PROCESSES 16
#define QUEUE 1024
#define GRACE_MS 2000
#define OUTPUT_MAX (SIZE_MAX / 8) /* so that sums of a few sizes do not overflow */

#define OWN_PREFIX "EVERYWIRE_"

/* ---- checking ---- */

static const char *problem_of_environment(const char *const *environment) {
    for (const char *const *at = environment; at && *at; at++)
        if (strncmp(*at, OWN_PREFIX, sizeof OWN_PREFIX - 1) == 0)
            return "variables that begin with EVERYWIRE_ are not for the environment option";
    return ew__environment_problem(environment);
}

static const char *problem_of_exits(const ew_exec_options *options) {
    if (options->n_exits > 0 && !options->exits)
        return "n_exits without exits";
    for (size_t i = 0; i < options->n_exits; i++) {
        const ew_exec_exit *e = &options->exits[i];
        if (e->code < 0 || e->code > 255)
            return "an exit code is a number from 0 to 255";
        if ((int)e->status < 0 || e->status >= EW_STATUS_COUNT)
            return "an exit code has a status that does not exist";
    }
    return NULL;
}

static const char *problem_of(const ew_exec_options *options) {
    if (!options || !options->argv || !options->argv[0] || !options->argv[0][0])
        return "no program: argv is empty";
    if ((int)options->output < EW_EXEC_LINES || options->output > EW_EXEC_TEXT)
        return "output is not one of lines, json and text";
    if (options->keep && options->output != EW_EXEC_LINES)
        return "a process that stays answers in lines: no other output with keep";
    if (options->folder && !options->folder[0])
        return "the folder has no name";
    const char *problem = problem_of_environment(options->environment);
    return problem ? problem : problem_of_exits(options);
}

/* ---- copying ---- */

static char *copy_text(ew__exec *exec, const char *text) {
    return ew__arena_copy(&exec->arena, text, strlen(text) + 1);
}

static char *join(ew__exec *exec, const char *a, const char *between, const char *b) {
    size_t n_a = strlen(a), n_between = strlen(between), n_b = strlen(b);
    char *text = ew__arena_alloc(&exec->arena, n_a + n_between + n_b + 1);
    if (!text)
        return NULL;
    memcpy(text, a, n_a);
    memcpy(text + n_a, between, n_between);
    memcpy(text + n_a + n_between, b, n_b + 1);
    return text;
}

static size_t count(const char *const *texts) {
    size_t n = 0;
    while (texts && texts[n])
        n++;
    return n;
}

static const char *const *copy_texts(ew__exec *exec, const char *const *texts) {
    size_t n = count(texts);
    const char **copy = ew__arena_alloc(&exec->arena, (n + 1) * sizeof *copy);
    for (size_t i = 0; copy && i < n; i++)
        if (!(copy[i] = copy_text(exec, texts[i])))
            return NULL;
    if (copy)
        copy[n] = NULL;
    return copy;
}

/* ---- life ---- */

static void complete(ew_exec_options *options) {
    if (options->processes == 0)
        options->processes = options->keep ? 1 : PROCESSES;
    if (options->queue == 0)
        options->queue = QUEUE;
    if (options->grace_ms == 0)
        options->grace_ms = GRACE_MS;
    if (options->grace_ms > UINT32_MAX)
        options->grace_ms = UINT32_MAX;
}

static bool copy_options(ew__exec *exec, const char *key, const ew_exec_options *options) {
    ew_exec_options *own = &exec->options;
    *own = *options;
    own->argv = copy_texts(exec, options->argv);
    own->environment = NULL; /* it is in inherited */
    own->folder = options->folder ? copy_text(exec, options->folder) : NULL;
    own->exits = ew__arena_copy(&exec->arena, options->exits, options->n_exits * sizeof *options->exits);
    complete(own);
    if (!own->argv || (options->folder && !own->folder) || (options->n_exits > 0 && !own->exits))
        return false;
    exec->program = own->argv[0];
    exec->strays = join(exec, exec->program, " ", "(outside of calls)");
    exec->rules = (ew__child_rules){.folder = own->folder,
                                    .cpu_s = own->cpu_s,
                                    .memory_bytes = own->memory_bytes,
                                    .file_bytes = own->file_bytes,
                                    .open_files = own->open_files};
    exec->inherited = ew__environment_make(&exec->arena, options->environment);
    exec->key_var = join(exec, OWN_PREFIX "KEY", "=", key);
    return exec->strays && exec->inherited && exec->key_var;
}

ew_err ew__exec_new(const ew_env *env, const ew_limits *limits, const char *key, const ew_exec_options *options,
                    ew__exec **ret, const char **ret_problem) {
    const char *problem = problem_of(options);
    if (problem) {
        *ret_problem = problem;
        return EW_EINVAL;
    }
    ew__exec *exec = ew__zalloc(env, sizeof *exec);
    if (!exec)
        return EW_ENOMEM;
    exec->env = env;
    exec->limits = limits;
    ew__arena_init(&exec->arena, env, NULL, 0);
    if (!copy_options(exec, key, options)) {
        ew__exec_free(exec);
        return EW_ENOMEM;
    }
    *ret = exec;
    return EW_OK;
}

void ew__exec_settle(ew__exec *exec, ew__loop *loop) {
    ew_exec_options *options = &exec->options;
    exec->loop = loop;
    if (options->output_bytes == 0)
        options->output_bytes = exec->limits->frame_bytes;
    if (options->output_bytes == 0) /* they are not complete */
        options->output_bytes = loop->executor.limits->frame_bytes;
    if (options->output_bytes > OUTPUT_MAX)
        options->output_bytes = OUTPUT_MAX;
}

void ew__exec_check_closed(ew__exec *exec) {
    if (!exec->closing || exec->serving || exec->n_processes > 0 || !exec->on_closed)
        return;
    void (*on_closed)(void *ud) = exec->on_closed;
    exec->on_closed = NULL;
    on_closed(exec->on_closed_ud);
}

static void let_go(ew__exec_process *process) {
    ew__exec_job *job = process->job;
    process->job = NULL;
    ew__exec_process_dismiss(process);
    if (!job)
        return;
    if (job->cancelled)
        ew__exec_fail_as(job, EW_STATUS_CANCELLED, "the call was cancelled");
    else
        ew__exec_fail_as(job, EW_STATUS_UNAVAILABLE, "%.150s is being stopped", process->exec->program);
}

void ew__exec_close(ew__exec *exec, void (*on_closed)(void *ud), void *ud) {
    exec->closing = true;
    if (exec->loop)
        ew__timer_stop(&exec->loop->executor.timers, &exec->pause);
    while (exec->waiting.first) {
        ew__exec_job *job = EW__ITEM(exec->waiting.first, ew__exec_job, node);
        ew__exec_leave_queue(job);
        ew__exec_fail_as(job, EW_STATUS_UNAVAILABLE, "%.150s is being stopped", exec->program);
    }
    for (ew__exec_process *process = exec->processes; process; process = process->next)
        let_go(process);
    exec->on_closed = on_closed;
    exec->on_closed_ud = ud;
    ew__exec_check_closed(exec);
}

void ew__exec_free(ew__exec *exec) {
    if (!exec)
        return;
    ew__arena_done(&exec->arena);
    ew__free(exec->env, exec, sizeof *exec);
}
