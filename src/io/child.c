/*
 * io/child.c: the life of a child: see child.h. Its end is seen through a pidfd, or, where the kernel has none, by
 * asking twenty times a second.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/handle.h"
#include "io/child.h"
#include "io/child_errors.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EOF_MS 500    /* from eof to SIGTERM */
#define TERM_MS 2000  /* from SIGTERM to SIGKILL, where nobody says */
#define KILL_MS 5000  /* from SIGKILL to giving up: it hangs in the kernel */
#define SETTLE_MS 250 /* for a killed group to go; a zombie that nobody reaps looks like one of it */
#define LOOK_MS 50    /* how often we look where nobody tells us */

typedef enum stage { RUNS, SHUT, TERMED, KILLED } stage;

/* A watched descriptor; both are ours until it is closed. */
typedef struct watch {
    uv_poll_t poll;
    ew__child *child;
    int fd; /* -1: not open */
} watch;

struct ew__child {
    ew__stream_ext beside; /* first: the stream knows only this */
    ew__loop *loop;
    ew__stream *stream;
    const char *const *argv;
    ew__child_ended on_end;   /* may be NULL */
    ew__child_exited on_exit; /* may be NULL */
    void *on_end_ud;
    ew__child_started started; /* NULL once it was called */
    void *ud;
    ew__timer timer;  /* set from the beginning to the end, so that moving it cannot fail */
    uint64_t step_at; /* when the next stage begins, EW__NEVER for not by itself */
    watch verdict, errors, end;
    ew__child_errors lines;
    unsigned n_handles;
    pid_t pid;
    int input;  /* its standard input, if that is not `output` too; -1: closed */
    int output; /* its standard output, until the stream has it */
    int error;  /* why it could not be started */
    stage stage;
    bool managed;
    bool pipe_input;
    uint32_t eof_ms;  /* from eof to SIGTERM */
    uint32_t term_ms; /* from SIGTERM to SIGKILL */
    bool ended;       /* reaped, or given up */
    bool alone;       /* nobody is left in its group */
    bool released;    /* the stream, if it ever had one, is closed */
};

static ew__child *child_of(const ew__stream *stream) { return ew__container_of(stream->beside, ew__child, beside); }

static uint64_t now_of(const ew__child *child) { return child->loop->executor.now; }

/* ---- watching descriptors ---- */

static void check_gone(ew__child *child);
static void on_time(ew__timer *timer, uint64_t now);
static void read_verdict(ew__child *child);

static void on_watch_closed(uv_handle_t *handle) {
    watch *w = ew__container_of(handle, watch, poll);
    w->child->n_handles--;
    check_gone(w->child);
}

static void watch_stop(watch *w) {
    if (w->fd < 0)
        return;
    uv_close((uv_handle_t *)&w->poll, on_watch_closed);
    close(w->fd);
    w->fd = -1;
}

/* Takes fd, also on failure. */
static bool watch_start(watch *w, ew__child *child, int fd, uv_poll_cb fn) {
    w->child = child;
    w->fd = -1;
    if (fd < 0 || uv_poll_init(child->loop->uv, &w->poll, fd) != 0) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    w->fd = fd;
    child->n_handles++;
    (void)uv_poll_start(&w->poll, UV_READABLE, fn);
    return true;
}

/* ---- its end ---- */

static void arm(ew__child *child) {
    bool look = (!child->ended && child->end.fd < 0) || (child->ended && !child->alone);
    uint64_t at = look ? now_of(child) + EW__MS(LOOK_MS) : EW__NEVER - 1;
    at = child->step_at < at ? child->step_at : at;
    (void)ew__timer_set(&child->loop->executor.timers, &child->timer, at, on_time);
}

static void tell_end(const ew__child *child, bool known, int status) {
    char how[64] = "ended, somebody else took its code";
    ew_log_level level = child->on_exit ? EW_LOG_DEBUG : EW_LOG_WARN;
    if (known && WIFSIGNALED(status)) {
        (void)snprintf(how, sizeof how, "was killed by signal %d", WTERMSIG(status));
        if (child->managed && child->stage != RUNS) /* that is how we end it */
            level = EW_LOG_DEBUG;
    } else if (known) {
        (void)snprintf(how, sizeof how, "ended with code %d", WEXITSTATUS(status));
        if (child->stage != RUNS && (WEXITSTATUS(status) == 0 || child->managed))
            level = EW_LOG_DEBUG;
    }
    ew__log(child->loop->executor.env, level, "child", "%s %s", child->argv[0], how);
    if (child->on_end)
        child->on_end(child->on_end_ud, how);
    if (child->on_exit)
        child->on_exit(child->on_end_ud, known && WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                       known && WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/*
 * A signal to what is left of the group. While its leader is not reaped, or anybody else is in it, the kernel does not
 * give its number to others.
 */
static void signal_group(const ew__child *child, int number) { (void)kill(-child->pid, number); }

/* *ret_failed: nobody knows any more. */
static bool has_not_ended(const ew__child *child, bool *ret_failed) {
    siginfo_t info;
    int result;
    memset(&info, 0, sizeof info);
    do {
        result = waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    } while (result && errno == EINTR);
    *ret_failed = result != 0;
    return !result && info.si_pid == 0;
}

/*
 * Asks whether it has ended and reaps it. A host that ignores SIGCHLD, or waits for everything, may have been faster.
 */
static void look_for_end(ew__child *child) {
    int status = 0;
    bool failed = false;
    if (has_not_ended(child, &failed))
        return;
    if (child->verdict.fd >= 0)
        read_verdict(child); /* its end may be seen before what it said about its beginning */
    if (!failed)
        signal_group(child, child->stage == KILLED ? SIGKILL : SIGTERM);
    bool known = !failed && waitpid(child->pid, &status, WNOHANG) == child->pid;
    child->ended = true;
    child->alone = !known;
    watch_stop(&child->end);
    ew__child_errors_drain(&child->lines, child->errors.fd);
    if (child->error == 0)
        tell_end(child, known, status);
    if (child->stage == KILLED) {
        child->step_at = now_of(child) + EW__MS(SETTLE_MS);
    } else if (child->stage < TERMED) {
        child->stage = TERMED;
        child->step_at = now_of(child) + EW__MS(child->term_ms);
    }
}

static void look_for_group(ew__child *child) {
    if (child->ended && !child->alone)
        child->alone = kill(-child->pid, 0) != 0; /* nobody, or nobody whom we may signal */
}

static void give_up(ew__child *child) {
    ew__log(child->loop->executor.env, EW_LOG_ERROR, "child", "%s does not end", child->argv[0]);
    child->ended = true;
    if (child->on_exit && child->error == 0)
        child->on_exit(child->on_end_ud, -1, 0);
}

static void next_stage(ew__child *child) {
    switch (child->stage) {
    case RUNS:
        break;
    case SHUT:
        signal_group(child, SIGTERM);
        child->stage = TERMED;
        child->step_at = now_of(child) + EW__MS(child->term_ms);
        break;
    case TERMED:
        if (!child->alone)
            signal_group(child, SIGKILL);
        child->stage = KILLED;
        child->step_at = now_of(child) + EW__MS(child->ended ? SETTLE_MS : KILL_MS);
        break;
    case KILLED:
        watch_stop(&child->end);
        child->step_at = EW__NEVER;
        if (!child->ended)
            give_up(child);
        child->alone = true;
        break;
    }
}

static void on_time(ew__timer *timer, uint64_t now) {
    ew__child *child = ew__container_of(timer, ew__child, timer);
    if (!child->ended && child->end.fd < 0)
        look_for_end(child);
    look_for_group(child);
    if (now >= child->step_at)
        next_stage(child);
    arm(child);
    check_gone(child);
}

static void on_end(uv_poll_t *poll, int status, int events) {
    ew__child *child = ew__container_of(poll, watch, poll)->child;
    (void)status;
    (void)events;
    ew__executor_read_clock(&child->loop->executor);
    look_for_end(child);
    look_for_group(child);
    arm(child);
    check_gone(child);
}

/* It has been told that there is no more input. */
static void begin_end(ew__child *child) {
    if (child->stage != RUNS)
        return;
    child->stage = SHUT;
    child->step_at = ew__executor_read_clock(&child->loop->executor) + EW__MS(child->eof_ms);
    arm(child);
}

static void kill_now(ew__child *child) {
    if (!child->ended)
        signal_group(child, SIGKILL);
    child->stage = KILLED;
    child->step_at = ew__executor_read_clock(&child->loop->executor) + EW__MS(KILL_MS);
    arm(child);
}

/* Everything is over: the stream's owner, or the dial, hears of it. */
static void check_gone(ew__child *child) {
    if (!child->ended || !child->alone || !child->released || (child->started && child->error == 0))
        return;
    watch_stop(&child->verdict);
    watch_stop(&child->errors);
    watch_stop(&child->end);
    if (child->n_handles > 0)
        return;
    ew__stream *stream = child->stream;
    ew__child_started started = child->started;
    void *ud = child->ud;
    int error = child->error;
    if (child->output >= 0)
        close(child->output);
    if (child->input >= 0)
        close(child->input);
    ew__child_errors_done(&child->lines);
    ew__timer_stop(&child->loop->executor.timers, &child->timer);
    ew__free(child->loop->executor.env, child, sizeof *child);
    if (started)
        started(ud, error);
    else
        ew__stream_gone(stream);
}

/* ---- beside the stream ---- */

static void on_end_input(ew__stream *stream) {
    ew__child *child = child_of(stream);
    if (child->input < 0)
        return;
    close(child->input);
    child->input = stream->fd = -1;
}

static void on_shut(ew__stream *stream) {
    on_end_input(stream);
    begin_end(child_of(stream));
}

static void on_stream_closed(ew__stream *stream) {
    ew__child *child = child_of(stream);
    child->released = true;
    check_gone(child);
}

void ew__child_dismiss(ew__stream *stream) {
    if (stream->closing)
        return;
    ew__stream_end(stream, true);
    begin_end(child_of(stream));
}

void ew__child_terminate(ew__stream *stream) {
    ew__child *child = child_of(stream);
    if (child->ended || child->stage >= TERMED)
        return; /* what is left of the group has the signal already */
    signal_group(child, SIGTERM);
    child->stage = TERMED;
    child->step_at = ew__executor_read_clock(&child->loop->executor) + EW__MS(child->term_ms);
    arm(child);
}

bool ew__child_runs(const ew__stream *stream) {
    const ew__child *child = child_of(stream);
    bool failed = false;
    return !child->ended && has_not_ended(child, &failed);
}

/* ---- its standard error ---- */

static void on_errors(uv_poll_t *poll, int status, int events) {
    ew__child *child = ew__container_of(poll, watch, poll)->child;
    (void)status;
    (void)events;
    ew__executor_read_clock(&child->loop->executor);
    if (!ew__child_errors_read(&child->lines, child->errors.fd))
        watch_stop(&child->errors);
}

/* ---- its beginning ---- */

static void become_stream(ew__child *child) {
    ew__stream *stream = child->stream;
    (void)uv_pipe_init(child->loop->uv, &ew__uv(&stream->handle)->pipe, 0);
    if (uv_pipe_open(&ew__uv(&stream->handle)->pipe, child->output) != 0)
        close(child->output); /* reading will fail at once, and close the stream */
    child->output = -1;
    stream->kind = EW__STREAM_CHILD;
    stream->fd_apart = child->input >= 0;
    if (stream->fd_apart)
        stream->fd = child->input;
    stream->no_socket = child->pipe_input;
    stream->beside = &child->beside;
    child->released = false;
    ew__child_started started = child->started;
    child->started = NULL;
    started(child->ud, 0);
}

static void read_verdict(ew__child *child) {
    int error = 0;
    ssize_t n = read(child->verdict.fd, &error, sizeof error);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    watch_stop(&child->verdict);
    if (n == 0) {
        become_stream(child);
        return;
    }
    child->error = n == (ssize_t)sizeof error && error > 0 ? uv_translate_sys_error(error) : UV_EIO;
    kill_now(child);
}

static void on_verdict(uv_poll_t *poll, int status, int events) {
    ew__child *child = ew__container_of(poll, watch, poll)->child;
    (void)status;
    (void)events;
    ew__executor_read_clock(&child->loop->executor);
    read_verdict(child);
    check_gone(child);
}

void ew__child_abandon(ew__child *child) {
    if (child->error != 0)
        return; /* it ends already */
    child->error = UV_ECANCELED;
    watch_stop(&child->verdict);
    kill_now(child);
}

static int open_pidfd(pid_t pid) {
#if defined(SYS_pidfd_open)
    return (int)syscall(SYS_pidfd_open, pid, 0); /* it is close-on-exec by itself */
#else
    (void)pid;
    return -1;
#endif
}

int ew__child_start(ew__loop *loop, ew__stream *stream, const ew__where *where, ew__child_started started, void *ud,
                    ew__child **ret_child) {
    ew__child *child = ew__zalloc(loop->executor.env, sizeof *child);
    if (!child)
        return UV_ENOMEM;
    ew__spawned spawned;
    int err = ew__timer_set(&loop->executor.timers, &child->timer, EW__NEVER - 1, on_time) == EW_OK ? 0 : UV_ENOMEM;
    if (err == 0)
        err = ew__spawn(loop->executor.env, where, &spawned);
    if (err != 0) {
        ew__timer_stop(&loop->executor.timers, &child->timer);
        ew__free(loop->executor.env, child, sizeof *child);
        return err;
    }
    child->beside =
        (ew__stream_ext){.end_input = on_end_input, .shut = on_shut, .closing = on_shut, .closed = on_stream_closed};
    child->loop = loop;
    child->stream = stream;
    child->argv = where->argv;
    child->managed = where->managed;
    child->eof_ms = where->managed ? where->farewell_ms : EOF_MS;
    child->term_ms = where->grace_ms ? where->grace_ms : TERM_MS;
    child->on_end = where->ended;
    child->on_exit = where->exited;
    child->pipe_input = where->pipe_input;
    child->on_end_ud = where->ended_ud;
    child->started = started;
    child->ud = ud;
    child->pid = spawned.pid;
    child->input = spawned.input;
    child->output = spawned.output;
    child->step_at = EW__NEVER;
    child->released = true; /* there is no stream yet */
    ew__child_errors_init(&child->lines, loop, where->argv[0]);
    bool told = watch_start(&child->verdict, child, spawned.verdict, on_verdict);
    (void)watch_start(&child->errors, child, spawned.errors, on_errors);
    (void)watch_start(&child->end, child, open_pidfd(spawned.pid), on_end);
    if (told) {
        arm(child);
    } else {
        child->error = UV_EMFILE;
        kill_now(child);
    }
    *ret_child = child;
    return 0;
}
