/*
 * endpoint/pool_announce.c: targets that are a process of ours which chooses its port itself and says so on its
 * standard output. Calls wait for that, and for the first connection; from then on it is a target like any other that
 * is dialled. A call fails when the process did not come up while it waited; a later one makes it try again.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/managed_process.h"
#include "endpoint/pool_kind.h"
#include <everywire/json.h>
#include <stdio.h>

#define DIAL_MS 10 /* between two dials of one that does not accept yet, doubling */
#define DIAL_MAX_MS 200
#define PAUSE_MS 100 /* between two starts, doubling */
#define PAUSE_MAX_MS 2000
#define WELL_MS 10000 /* who ran so long starts the pauses anew */
#define AGAIN_MS 50   /* from a lost connection to the next dial: a process that dies may still accept for a moment */
#define GRACE_MS 5000 /* from SIGTERM to SIGKILL */
#define LAST_WORDS_MS 500 /* from its end until we no longer read what it has sent before */
#define FAR_MS 3600000u   /* the timer when it means nothing */

typedef enum state {
    DOWN,   /* there is no process */
    PAUSES, /* it is wanted, but was started a moment ago */
    STARTS,
    SILENT, /* it runs, and has not said yet where it listens */
    TRIES,  /* it has; it is dialled until it accepts */
    UP,
    ENDS /* it has ended, or is to: something of it, or a connection, is still there */
} state;

typedef struct announce_pool {
    ew__dial_pool dials;
    ew__managed_process process;
    ew__timer timer; /* set from the beginning to the end, so that moving it cannot fail */
    uint64_t started_at;
    uint64_t up_at; /* of this start, the first connection; 0: none yet */
    uint64_t until; /* it is given up then */
    uint64_t hold_until;
    uint32_t pause_ms;
    uint32_t dial_ms;
    uint8_t state; /* state */
    bool may_dial; /* it is time for the next try */
    bool later;    /* the timer is set for it */
    bool cut;      /* it has ended, and time is up: connections to it are closed */
    char authority[300];
} announce_pool;

static announce_pool *self_of(const ew__pool *pool) {
    return (announce_pool *)(uintptr_t)ew__container_of(pool, const announce_pool, dials.core);
}

static ew__executor *executor_of(const announce_pool *self) { return &self->dials.core.loop->executor; }

static const char *name_of(const announce_pool *self) { return self->dials.core.where.argv[0]; }

static void serve(ew__pool *pool, struct ew__pool_wait *fresh);
static void on_time(ew__timer *timer, uint64_t now);

static void set_timer(announce_pool *self, uint64_t at) {
    (void)ew__timer_set(&executor_of(self)->timers, &self->timer, at, on_time); /* a move: cannot fail */
}

static void stop_timer(announce_pool *self) { set_timer(self, executor_of(self)->now + EW__MS(FAR_MS)); }

/* ---- its end ---- */

static void close_links(ew__pool *pool) {
    for (ew__link *link = pool->links, *next; link; link = next) {
        next = link->next;
        ew__link_close(link, EW_ECLOSED);
    }
}

/* Something of it has gone: was it the last? */
static void check_down(announce_pool *self) {
    ew__pool *pool = &self->dials.core;
    if (pool->closing) {
        ew__pool_check_closed(pool);
        return;
    }
    if (self->state == ENDS && self->cut)
        close_links(pool);
    if (self->state != ENDS || pool->links || self->dials.dials || self->process.dial || self->process.open)
        return;
    self->state = DOWN;
    stop_timer(self);
    memset(pool->site.state, 0, sizeof pool->site.state); /* the next process has not been greeted */
    serve(pool, NULL);
}

/* The process has ended, or is about to. */
static void leave(announce_pool *self) {
    ew__executor *executor = executor_of(self);
    self->state = ENDS;
    self->cut = false;
    if (self->up_at && executor->now - self->up_at >= EW__MS(WELL_MS))
        self->pause_ms = 0;
    set_timer(self, executor->now + EW__MS(LAST_WORDS_MS));
    ew__dial_pool_cancel(&self->dials.core);
}

static void fail_waiting(announce_pool *self, const char *problem) {
    ew__log(executor_of(self)->env, EW_LOG_DEBUG, "pool", "%s", problem);
    ew__pool_fail_waiting(&self->dials.core, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, ew_str_from(problem));
}

/* It does not do what it is to do: makes it end. */
static void give_up(announce_pool *self, const char *problem) {
    leave(self);
    bool waits = ew__managed_process_close(&self->process);
    fail_waiting(self, problem);
    if (!waits)
        check_down(self);
}

static void on_process_ended(ew__managed_process *process) {
    announce_pool *self = ew__container_of(process, announce_pool, process);
    const char *line = process->line[0] ? process->line : "it ended";
    bool silent = self->state < TRIES, early = self->up_at == 0;
    char problem[400];
    (void)snprintf(problem, sizeof problem, "%s%s", line,
                   !process->ran ? ""
                   : silent      ? " before it said where it listens"
                                 : " before it accepted a connection");
    leave(self);
    if (early)
        fail_waiting(self, problem);
}

static void on_process_closed(ew__managed_process *process) {
    check_down(ew__container_of(process, announce_pool, process));
}

/* ---- where it listens ---- */

/* {"port":8080}, whatever else it says. 0: it is no such line. */
static uint16_t read_port(ew_str line) {
    uint64_t port = 0;
    if (line.len == 0 || line.ptr[0] != '{' || ew_json_check(line, NULL) != EW_OK ||
        !ew__u64_parse(ew_json_member(line, EW_STR("port")), &port) || port > 65535)
        return 0;
    return (uint16_t)port;
}

static void begin_to_dial(announce_pool *self) {
    ew__executor *executor = executor_of(self);
    self->state = TRIES;
    self->dial_ms = DIAL_MS;
    self->later = false;
    self->until = executor->now + EW__MS(executor->limits->runner_wait_ms);
}

static bool on_line(ew__managed_process *process, ew_str line) {
    announce_pool *self = ew__container_of(process, announce_pool, process);
    ew__pool *pool = &self->dials.core;
    uint16_t port = self->state == SILENT ? read_port(line) : 0;
    if (port == 0)
        return false;
    bool v6 = strchr(pool->where.host, ':') != NULL;
    (void)snprintf(self->authority, sizeof self->authority, "%s%.255s%s:%u", v6 ? "[" : "", pool->where.host,
                   v6 ? "]" : "", port);
    pool->where.port = pool->site.port = port;
    pool->site.authority = ew_str_from(self->authority);
    begin_to_dial(self);
    self->may_dial = true;
    stop_timer(self);
    serve(pool, NULL);
    return true;
}

static void lost(ew__pool *pool) {
    self_of(pool)->hold_until = ew__executor_read_clock(&pool->loop->executor) + EW__MS(AGAIN_MS);
}

/* While it has not accepted any connection there is one dial at a time. */
static bool may_dial(ew__pool *pool) {
    announce_pool *self = self_of(pool);
    if (self->state == UP && executor_of(self)->now < self->hold_until) {
        set_timer(self, self->hold_until);
        return false;
    }
    bool may = self->state == UP || (self->state == TRIES && self->may_dial);
    self->may_dial = false;
    return may;
}

static void dial_later(announce_pool *self) {
    uint64_t at = executor_of(self)->now + EW__MS(self->dial_ms);
    if (self->later)
        return;
    self->later = true;
    self->dial_ms = self->dial_ms * 2 < DIAL_MAX_MS ? self->dial_ms * 2 : DIAL_MAX_MS;
    set_timer(self, at < self->until ? at : self->until);
}

static bool dial_failed(ew__pool *pool, const char *detail) {
    announce_pool *self = self_of(pool);
    (void)detail;
    ew__executor_read_clock(executor_of(self));
    if (self->state == ENDS)
        check_down(self);
    if (self->state == UP)
        begin_to_dial(self);
    if (self->state == TRIES)
        dial_later(self);
    return true;
}

static void try_again(announce_pool *self) {
    char problem[450];
    self->later = false;
    if (!self->dials.core.queue.calls.first) { /* no call waits any more; the next one tries again */
        self->state = UP;
    } else if (executor_of(self)->now >= self->until) {
        (void)snprintf(problem, sizeof problem, "%.150s does not accept connections on %.200s after %g s",
                       name_of(self), self->authority, (double)executor_of(self)->limits->runner_wait_ms / 1000);
        give_up(self, problem);
    } else {
        self->may_dial = true;
        serve(&self->dials.core, NULL);
    }
}

/* ---- its beginning ---- */

static void on_process_started(ew__managed_process *process) {
    announce_pool *self = ew__container_of(process, announce_pool, process);
    ew__executor *executor = executor_of(self);
    self->state = SILENT;
    set_timer(self, executor->now + EW__MS(executor->limits->runtime_wait_ms));
}

static void start(announce_pool *self) {
    self->started_at = ew__executor_read_clock(executor_of(self));
    self->up_at = 0;
    self->pause_ms = self->pause_ms * 2 < PAUSE_MAX_MS ? self->pause_ms * 2 : PAUSE_MAX_MS;
    if (self->pause_ms == 0)
        self->pause_ms = PAUSE_MS;
    stop_timer(self);
    const ew__where *where = &self->dials.core.where;
    ew__where program = {.argv = where->argv, .inherited = where->inherited, .vars = where->vars, .grace_ms = GRACE_MS};
    ew__managed_process_init(&self->process, self->dials.core.loop, &program);
    self->process.started = on_process_started;
    self->process.heard = on_line;
    self->process.ended = on_process_ended;
    self->process.closed = on_process_closed;
    self->state = STARTS;
    ew__managed_process_start(&self->process);
    if (self->process.state != EW__PROCESS_ENDED)
        return;
    self->state = DOWN;
    fail_waiting(self, self->process.line);
}

static void want(announce_pool *self) {
    uint64_t at = self->started_at + EW__MS(self->pause_ms);
    if (!self->dials.core.queue.calls.first)
        return;
    if (at <= ew__executor_read_clock(executor_of(self))) {
        start(self);
    } else {
        self->state = PAUSES;
        set_timer(self, at);
    }
}

static void on_time(ew__timer *timer, uint64_t now) {
    announce_pool *self = ew__container_of(timer, announce_pool, timer);
    char problem[300];
    (void)now;
    stop_timer(self); /* its place has just become free: cannot fail */
    switch ((state)self->state) {
    case PAUSES:
        start(self);
        break;
    case SILENT:
        (void)snprintf(problem, sizeof problem, "%.150s has not said where it listens after %g s", name_of(self),
                       (double)executor_of(self)->limits->runtime_wait_ms / 1000);
        give_up(self, problem);
        break;
    case TRIES:
        try_again(self);
        break;
    case ENDS: /* another process holds its ends of the connections, or of its output */
        self->cut = true;
        (void)ew__managed_process_close(&self->process);
        check_down(self);
        break;
    case UP:
        serve(&self->dials.core, NULL);
        break;
    case DOWN:
    case STARTS:
        break;
    }
}

/* ---- the kind ---- */

static void serve(ew__pool *pool, struct ew__pool_wait *fresh) {
    announce_pool *self = self_of(pool);
    (void)fresh;
    if (pool->closing)
        return;
    if (self->state == TRIES && pool->links) {
        self->state = UP;
        self->up_at = self->up_at ? self->up_at : executor_of(self)->now;
        stop_timer(self);
    }
    if (self->state == DOWN)
        want(self);
    else if (self->state == ENDS)
        check_down(self);
    else if (self->state == TRIES || self->state == UP)
        ew__dial_pool_serve(pool);
    if (self->state == TRIES && !self->dials.dials) /* it is not time yet, or there was no memory for a dial */
        dial_later(self);
}

static void close_all(ew__pool *pool) {
    ew__timer_stop(&executor_of(self_of(pool))->timers, &self_of(pool)->timer);
    ew__dial_pool_close(pool);
    (void)ew__managed_process_close(&self_of(pool)->process);
}

static bool is_closed(const ew__pool *pool) {
    const ew__managed_process *process = &self_of(pool)->process;
    return ew__dial_pool_is_closed(pool) && !process->dial && !process->open;
}

static void done(ew__pool *pool) { ew__timer_stop(&executor_of(self_of(pool))->timers, &self_of(pool)->timer); }

static const ew__pool_ops ops = {.size = sizeof(announce_pool),
                                 .serve = serve,
                                 .close = close_all,
                                 .is_closed = is_closed,
                                 .done = done,
                                 .may_dial = may_dial,
                                 .dial_failed = dial_failed,
                                 .lost = lost};

ew_err ew__pool_announce(const ew__pool_config *config, ew__pool **ret) {
    ew__executor *executor = &config->loop->executor;
    announce_pool *self = ew__dial_pool_new(&ops, config);
    if (!self)
        return EW_ENOMEM;
    ew_err err = ew__timer_set(&executor->timers, &self->timer, executor->now + EW__MS(FAR_MS), on_time);
    if (err == EW_OK)
        *ret = &self->dials.core;
    else
        ew__pool_free(&self->dials.core);
    return err;
}
