/*
 * endpoint/runner.c: see runner.h. The first connection that succeeds is used at once: nothing is tried before. One that
 * replaces a lost connection carries calls once the process has answered on it: the kernel accepts connections for a
 * process that is dying, and calls on them would be lost.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/runner.h"
#include "base/list.h"
#include <stdio.h>
#include <unistd.h>

#define DIAL_MS 10 /* between two dials, doubling */
#define DIAL_MAX_MS 200
#define PAUSE_MS 100 /* between two starts, doubling */
#define PAUSE_MAX_MS 2000
#define WELL_MS 10000     /* who ran so long starts the pauses anew */
#define AGAIN_MS 50       /* from the end of a good connection: a process that dies may still accept for a moment */
#define STEADY_MS 1000    /* a connection that was good for so long starts the dials anew */
#define GRACE_MS 5000     /* from SIGTERM to SIGKILL */
#define LAST_WORDS_MS 500 /* from its end until we no longer read what it has sent before */
#define FAR_MS 3600000u   /* the timer when it means nothing */

static ew__executor *executor_of(const ew__runner *runner) { return &runner->pool->loop->executor; }

static const char *name_of(const ew__runner *runner) { return runner->argv[0]; }

static void tell(ew__runner *runner) { runner->pool->ops->serve(runner->pool, NULL); }

static void on_time(ew__timer *timer, uint64_t now);

static void set_timer(ew__runner *runner, uint64_t at) {
    (void)ew__timer_set(&executor_of(runner)->timers, &runner->timer, at, on_time); /* a move: cannot fail */
}

static void stop_timer(ew__runner *runner) { set_timer(runner, executor_of(runner)->now + EW__MS(FAR_MS)); }

static void release_port(ew__runner *runner) {
    if (runner->hold >= 0)
        close(runner->hold);
    runner->hold = -1;
}

/* ---- its end ---- */

/* runner->problem says why it did not come up. */
static void note_failure(ew__runner *runner) {
    ew_log_level level = runner->next == runner ? EW_LOG_DEBUG : EW_LOG_WARN; /* else the calls tell it */
    runner->failed_for = runner->pool->queue.n_ever;
    ew__log(executor_of(runner)->env, level, "runner", "%s", runner->problem);
}

static bool anything_left(const ew__runner *runner) {
    return runner->link || runner->dial || runner->process.dial || runner->process.open;
}

/* Something of it has gone: was it the last? */
static void check_down(ew__runner *runner) {
    if (runner->closing) {
        ew__pool_check_closed(runner->pool);
    } else if (runner->state == EW__RUNNER_ENDS && !anything_left(runner)) {
        runner->state = EW__RUNNER_DOWN;
        stop_timer(runner);
        if (runner->wanted)
            ew__runner_want(runner);
        tell(runner);
    }
}

/* The process has ended, or is about to. */
static void leave(ew__runner *runner) {
    ew__executor *executor = executor_of(runner);
    runner->state = EW__RUNNER_ENDS;
    if (runner->up_at && executor->now - runner->up_at >= EW__MS(WELL_MS))
        runner->pause_ms = 0;
    set_timer(runner, executor->now + EW__MS(LAST_WORDS_MS));
    if (runner->dial)
        ew__dial_cancel(runner->dial);
}

/* Makes it end; check_down follows. */
static void end_process(ew__runner *runner) {
    leave(runner);
    if (!ew__managed_process_close(&runner->process))
        check_down(runner);
}

static void on_process_ended(ew__managed_process *process) {
    ew__runner *runner = ew__container_of(process, ew__runner, process);
    bool early = runner->up_at == 0, held = runner->hold >= 0;
    leave(runner);
    if (early && held && process->ran) { /* perhaps it does not set SO_REUSEADDR: once more without the reservation */
        runner->unheld = true;
    } else if (early) {
        runner->unheld = false;
        (void)snprintf(runner->problem, sizeof runner->problem, "%s%s%s", process->line[0] ? process->line : "it ended",
                       process->ran ? " before it listened on " : "", process->ran ? runner->address.text : "");
        note_failure(runner);
        tell(runner);
    }
}

static void on_process_closed(ew__managed_process *process) {
    check_down(ew__container_of(process, ew__runner, process));
}

/* ---- the connection ---- */

static void dial_later(ew__runner *runner);

static void on_link_ready(ew__link *link) { tell(link->owner_ud); }

static ew_err on_link_one_shot(ew__link *link, const void *bytes, size_t n) {
    ew__runner *runner = link->owner_ud;
    if (runner->closing || runner->state != EW__RUNNER_UP)
        return EW_EBUSY;
    return ew__one_shot_send(&runner->pool->one_shots, &runner->where, bytes, n,
                             (runner->pool->wire->caps & EW__ONE_SHOTS_WAIT) != 0);
}

/* The process runs on, as far as we know: it is dialled again, soon if the connection was a good one. */
static void dial_again(ew__runner *runner, bool was_good) {
    ew__executor *executor = executor_of(runner);
    runner->state = EW__RUNNER_DIALS;
    if (!was_good) {
        dial_later(runner);
        return;
    }
    runner->dial_ms = DIAL_MS;
    runner->dial_until = executor->now + EW__MS(executor->limits->runner_wait_ms);
    set_timer(runner, executor->now + EW__MS(AGAIN_MS));
}

static void on_link_closed(ew__link *link, ew_err why) {
    ew__runner *runner = link->owner_ud;
    ew__executor *executor = executor_of(runner);
    (void)why;
    EW__LIST_REMOVE(runner->pool->links, link);
    runner->pool->n_links--;
    runner->link = NULL;
    if (!runner->closing && runner->state == EW__RUNNER_PROVES) {
        dial_again(runner, false);
    } else if (runner->closing || runner->state != EW__RUNNER_UP) {
        check_down(runner);
    } else if (link->conn.stuck) {
        ew__log(executor->env, EW_LOG_WARN, "runner", "%s does not end a call on %s: it is ended", name_of(runner),
                runner->address.text);
        end_process(runner);
    } else {
        dial_again(runner, link->stream.bytes_in > 0 || executor->now - runner->linked_at >= EW__MS(STEADY_MS));
    }
}

static const ew__link_owner owner = {.ready = on_link_ready, .one_shot = on_link_one_shot, .closed = on_link_closed};

static void come_up(ew__runner *runner) {
    runner->state = EW__RUNNER_UP;
    runner->up_at = runner->up_at ? runner->up_at : runner->linked_at;
    runner->failed_for = 0;
    stop_timer(runner);
    tell(runner);
}

/* ---- whether it lives ---- */

static ew_err on_proof_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK;
}

/* Any answer will do. A connection that was lost reports that itself. */
static void on_proof_end(ew_call *call, const ew__end *end) {
    ew__runner *runner = call->caller_ud;
    ew__call_release(call);
    if (runner->closing || runner->state != EW__RUNNER_PROVES)
        return;
    if (end->origin == EW_ORIGIN_ACTION)
        come_up(runner);
    else if (end->origin != EW_ORIGIN_CONNECT)
        ew__link_close(runner->link, EW_OK);
}

static const ew__caller_ops prover = {.chunk = on_proof_chunk, .end = on_proof_end};

static void open_proof(ew_call *call) {
    const ew__runner *runner = call->caller_ud;
    if (!runner->link->peer || runner->pool->wire->open(runner->link->peer, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_INTERNAL, EW_STR("the connection refused the call"));
}

static const ew__callee_ops proof = {.open = open_proof};

/* Asks for its actions, whatever it may answer. false: the call table is full. */
static bool ask_for_proof(ew__runner *runner) {
    ew_call *call = ew__call_new(executor_of(runner), &prover, runner);
    if (!call)
        return false;
    call->kind = EW__CALL_LIST;
    call->key = EW_STR("everywire.actions");
    runner->state = EW__RUNNER_PROVES;
    set_timer(runner, runner->dial_until);
    ew__call_open_on(call, &proof, NULL);
    return true;
}

static void adopt(ew__runner *runner) {
    ew__pool *pool = runner->pool;
    ew__link *link = runner->link;
    EW__LIST_ADD(pool->links, link);
    pool->n_links++;
    ew__count(&pool->traffic.dialled, 1);
    ew__link_start(link, pool->loop, pool->wire, EW__CALL);
    if (runner->closing || runner->state != EW__RUNNER_DIALS) { /* it was cancelled too late */
        ew__link_close(link, EW_OK);
        return;
    }
    runner->linked_at = executor_of(runner)->now;
    if (!runner->up_at || !ask_for_proof(runner))
        come_up(runner);
}

static void give_up(ew__runner *runner) {
    (void)snprintf(runner->problem, sizeof runner->problem, "%.150s does not %s on %s after %g s", name_of(runner),
                   runner->state == EW__RUNNER_PROVES ? "answer" : "listen", runner->address.text,
                   (double)executor_of(runner)->limits->runner_wait_ms / 1000);
    note_failure(runner);
    end_process(runner);
    tell(runner);
}

static void dial_later(ew__runner *runner) {
    uint64_t at = executor_of(runner)->now + EW__MS(runner->dial_ms);
    runner->dial_ms = runner->dial_ms * 2 < DIAL_MAX_MS ? runner->dial_ms * 2 : DIAL_MAX_MS;
    set_timer(runner, at < runner->dial_until ? at : runner->dial_until);
}

static void on_dialled(ew__stream *stream, ew_err err, const char *detail) {
    ew__link *link = ew__container_of(stream, ew__link, stream);
    ew__runner *runner = link->owner_ud;
    (void)detail;
    ew__executor_read_clock(executor_of(runner));
    runner->dial = NULL;
    if (err == EW_OK) {
        adopt(runner);
        return;
    }
    runner->link = NULL;
    ew__link_discard(link);
    if (!runner->closing && runner->state == EW__RUNNER_DIALS)
        dial_later(runner);
    else
        check_down(runner);
}

static void dial(ew__runner *runner) {
    ew__pool *pool = runner->pool;
    ew__executor *executor = executor_of(runner);
    uint64_t left = runner->dial_until > executor->now ? (runner->dial_until - executor->now) / EW__MS(1) + 1 : 1;
    uint64_t ms = left < executor->limits->connect_ms ? left : executor->limits->connect_ms;
    ew__link *link = ew__link_new_ours(pool->loop, &runner->site, &pool->scratches, &pool->traffic, &owner, runner);
    ew_err err =
        link ? ew__dial_start(pool->loop, &link->stream, &runner->where, ms, on_dialled, &runner->dial) : EW_ENOMEM;
    if (err == EW_OK) {
        runner->link = link;
        return;
    }
    if (link)
        ew__link_discard(link);
    dial_later(runner);
}

/* ---- its beginning ---- */

static void on_process_started(ew__managed_process *process) {
    ew__runner *runner = ew__container_of(process, ew__runner, process);
    ew__executor *executor = executor_of(runner);
    runner->state = EW__RUNNER_DIALS;
    runner->dial_ms = DIAL_MS;
    runner->dial_until = executor->now + EW__MS(executor->limits->runner_wait_ms);
    set_timer(runner, executor->now + EW__MS(DIAL_MS));
}

/* The port stays reserved until the next start, so that no other process listens there before the program does. */
static ew_err find_port(ew__runner *runner) {
    release_port(runner);
    return runner->any_port ? ew__address_pick(&runner->address, runner->unheld ? NULL : &runner->hold)
                            : ew__address_probe(&runner->address);
}

static void fail_to_start(ew__runner *runner) {
    runner->state = EW__RUNNER_DOWN;
    note_failure(runner);
}

static void start(ew__runner *runner) {
    ew__executor *executor = executor_of(runner);
    runner->started_at = ew__executor_read_clock(executor);
    runner->up_at = 0;
    runner->pause_ms = runner->pause_ms * 2 < PAUSE_MAX_MS ? runner->pause_ms * 2 : PAUSE_MAX_MS;
    if (runner->pause_ms == 0)
        runner->pause_ms = PAUSE_MS;
    stop_timer(runner);
    ew_err err = find_port(runner);
    if (err != EW_OK) {
        const char *why = err == EW_EADDRINUSE ? "is in use: is another runner there?" : ew_err_text(err);
        (void)snprintf(runner->problem, sizeof runner->problem, "%s%s %s", runner->address.text,
                       err == EW_EADDRINUSE ? "" : ":", why);
        fail_to_start(runner);
        return;
    }
    runner->where.port = runner->address.port;
    runner->site.authority = ew_str_from(runner->address.text);
    (void)snprintf(runner->var, sizeof runner->var, "%.60s=%s", runner->variable, runner->address.text);
    ew__where program = {.argv = runner->argv,
                         .inherited = runner->pool->where.inherited,
                         .vars = runner->vars,
                         .grace_ms = GRACE_MS,
                         .rules = runner->pool->where.rules};
    ew__managed_process_init(&runner->process, runner->pool->loop, &program);
    runner->process.started = on_process_started;
    runner->process.ended = on_process_ended;
    runner->process.closed = on_process_closed;
    runner->state = EW__RUNNER_STARTS;
    ew__managed_process_start(&runner->process);
    if (runner->process.state == EW__PROCESS_ENDED) {
        (void)snprintf(runner->problem, sizeof runner->problem, "%s", runner->process.line);
        fail_to_start(runner);
    }
}

void ew__runner_want(ew__runner *runner) {
    uint64_t at = runner->started_at + EW__MS(runner->pause_ms);
    runner->wanted = runner->state == EW__RUNNER_ENDS;
    if (runner->state != EW__RUNNER_DOWN || runner->closing)
        return;
    if (at <= ew__executor_read_clock(executor_of(runner))) {
        start(runner);
    } else {
        runner->state = EW__RUNNER_PAUSES;
        set_timer(runner, at);
    }
}

static void on_time(ew__timer *timer, uint64_t now) {
    ew__runner *runner = ew__container_of(timer, ew__runner, timer);
    (void)now;
    stop_timer(runner); /* its place has just become free: cannot fail */
    switch ((ew__runner_state)runner->state) {
    case EW__RUNNER_PAUSES:
        start(runner);
        if (runner->state == EW__RUNNER_DOWN)
            tell(runner);
        break;
    case EW__RUNNER_DIALS:
        if (!runner->dial && now >= runner->dial_until)
            give_up(runner);
        else if (!runner->dial)
            dial(runner);
        break;
    case EW__RUNNER_PROVES:
        give_up(runner);
        break;
    case EW__RUNNER_ENDS: /* another process holds its end of the connection */
        if (runner->link && !runner->dial)
            ew__link_close(runner->link, EW_ECLOSED);
        break;
    default:
        break;
    }
}

/* ---- life ---- */

/* The program, its arguments, its variables, and where it is to listen. */
static ew_err make_command(ew__runner *runner, const char *const *argv, const char *const *vars, const char *option) {
    size_t n = 0, n_vars = 0;
    while (argv[n])
        n++;
    while (vars && vars[n_vars])
        n_vars++;
    runner->argv_size = (n + 3 + n_vars + 2) * sizeof *runner->argv;
    runner->argv = ew__alloc(executor_of(runner)->env, runner->argv_size);
    if (!runner->argv)
        return EW_ENOMEM;
    memcpy((void *)runner->argv, argv, n * sizeof *argv);
    runner->argv[n] = option;
    runner->argv[n + 1] = runner->address.text;
    runner->argv[n + 2] = NULL;
    runner->vars = runner->argv + n + 3;
    if (n_vars)
        memcpy((void *)runner->vars, vars, n_vars * sizeof *vars);
    runner->vars[n_vars] = runner->var;
    runner->vars[n_vars + 1] = NULL;
    return EW_OK;
}

/* The host as a dial wants it: in the address's own spelling, without brackets. */
static void set_host(ew__runner *runner) {
    const char *text = runner->address.text;
    size_t skip = text[0] == '[' ? 1 : 0;
    (void)snprintf(runner->host, sizeof runner->host, "%.*s", (int)strcspn(text + skip, skip ? "]" : ":"), text + skip);
}

ew_err ew__runner_init(ew__runner *runner, ew__pool *pool, uint16_t port, const char *option, const char *variable) {
    const char *host = pool->where.host;
    bool v6 = strchr(host, ':') != NULL;
    char text[128];
    runner->pool = pool;
    runner->variable = variable;
    runner->hold = -1;
    runner->any_port = port == 0;
    (void)snprintf(text, sizeof text, "%s%.100s%s:%u", v6 ? "[" : "", host, v6 ? "]" : "", port);
    if (ew__address_parse(text, &runner->address) != EW_OK || runner->address.kind != EW__ADDR_TCP)
        return EW_EINVAL;
    set_host(runner);
    runner->where = (ew__where){.kind = EW__WHERE_TCP, .host = runner->host, .port = port};
    runner->site = pool->site;
    ew_err err = make_command(runner, pool->where.argv, pool->where.vars, option);
    if (err == EW_OK)
        err = ew__timer_set(&executor_of(runner)->timers, &runner->timer, executor_of(runner)->now + EW__MS(FAR_MS),
                            on_time);
    return err;
}

uint32_t ew__runner_capacity(const ew__runner *runner) {
    const ew__link *link = runner->link;
    bool up = runner->state == EW__RUNNER_UP && link->peer && !link->stream.closing;
    return up ? runner->pool->wire->capacity(link->peer) : 0;
}

void ew__runner_close(ew__runner *runner) {
    runner->closing = true;
    ew__timer_stop(&executor_of(runner)->timers, &runner->timer);
    if (runner->dial)
        ew__dial_cancel(runner->dial);
    (void)ew__managed_process_close(&runner->process);
}

bool ew__runner_is_closed(const ew__runner *runner) {
    return !runner->dial && !runner->process.dial && !runner->process.open;
}

void ew__runner_done(ew__runner *runner) {
    if (!runner->pool)
        return;
    release_port(runner);
    ew__timer_stop(&executor_of(runner)->timers, &runner->timer);
    ew__free(executor_of(runner)->env, (void *)runner->argv, runner->argv_size);
}
