/*
 * jobs/service/http.c: see app_jobs_desk.h. Those that wait are looked after in rounds: after a hint of the store, but
 * the more of them there are the less often, and once a second in any case.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/service/http.h"
#include "call/stack_trace.h"
#include "wire/rpc_calls.h"
#include <stdio.h>

#define FULL_PAGE 256     /* chunks that a store gives at a time */
#define QUIET_MS 15000    /* a stream gives a sign of life so often */
#define BLOCKED_MS 50     /* a client that does not read is looked at again then */
#define SPACE_PER_10_MS 1 /* from one round to the next, for every ten that wait */

static ew__executor *executor_of(const ew__jobs_http *desk) { return &desk->part.loop->loop.executor; }

static void plan(ew__jobs_http *desk);

/* ---- life of an inquiry ---- */

static void forget(ew__inquiry *it) {
    ew__jobs_http *desk = it->desk;
    EW__LIST_REMOVE(desk->first, it);
    desk->n_waits -= it->waits;
    ew__arena_done(&it->arena);
    ew__free(desk->jobs->env, it, sizeof *it);
}

static ew__jobs_http *desk_of(const ew__exchange *exchange) {
    ew__app_loop *loop = ew__container_of(ew__loop_of(exchange->conn->executor), ew__app_loop, loop);
    return &loop->app->jobs->desks[loop - loop->app->loops];
}

ew__inquiry *ew__inquiry_new(ew__exchange *exchange, ew__op_kind kind) {
    ew__jobs_http *desk = desk_of(exchange);
    ew__inquiry *it = desk->part.closing ? NULL : ew__zalloc(desk->jobs->env, sizeof *it);
    if (!it)
        return NULL;
    it->desk = desk;
    it->exchange = exchange;
    it->until = EW__NEVER;
    it->op.kind = kind;
    it->op.arena = &it->arena;
    ew__arena_init(&it->arena, desk->jobs->env, NULL, 0);
    EW__LIST_ADD(desk->first, it);
    exchange->ud = it;
    return it;
}

static void give_up(ew__inquiry *it);

static void check_closed(ew__jobs_http *desk) {
    if (!desk->part.closing || desk->n_busy > 0)
        return;
    while (desk->first)
        give_up(desk->first);
    ew__part_closed(&desk->part);
}

/* Errors of jobs are kept as they came from the upstream; a client may not see all of them. */
static void hide_stacks(ew__inquiry *it) {
    const ew_env *env = it->desk->jobs->env;
    if (it->op.err != EW_OK || ew__stack_trace_is_shown(executor_of(it->desk), it->exchange->call->who))
        return;
    if (it->op.kind == EW__OP_GET)
        ew__stack_trace_remove(&it->arena, env, &it->op.u.get.ret.error);
    for (size_t i = 0; it->op.kind == EW__OP_LIST && i < it->op.u.list.ret_n; i++)
        ew__stack_trace_remove(&it->arena, env, &it->op.u.list.ret[i].error);
}

static void on_done(ew__store_request *op) {
    ew__inquiry *it = ew__container_of(op, ew__inquiry, op);
    ew__jobs_http *desk = it->desk;
    it->busy = false;
    desk->n_busy--;
    if (it->exchange) {
        hide_stacks(it);
        it->answered(it);
    } else {
        forget(it);
    }
    check_closed(desk);
}

void ew__inquiry_submit(ew__inquiry *it, void (*answered)(ew__inquiry *it)) {
    ew__jobs_http *desk = it->desk;
    ew__store *store = desk->jobs->jobs->store;
    it->answered = answered;
    it->op.executor = executor_of(desk);
    it->op.done = on_done;
    it->busy = true;
    desk->n_busy++;
    store->ops->submit(store, &it->op);
}

/* The client has gone. What the store has stays until it is back. */
void ew__inquiry_over(ew__exchange *exchange) {
    ew__inquiry *it = exchange->ud;
    if (!it)
        return;
    exchange->ud = NULL;
    it->exchange = NULL;
    if (!it->busy)
        forget(it);
}

/* ---- answers ---- */

/* First it lets go of the exchange: answering ends that. */
static ew__exchange *detach(ew__inquiry *it) {
    ew__exchange *exchange = it->exchange;
    exchange->ud = NULL;
    it->exchange = NULL;
    return exchange;
}

void ew__inquiry_answer(ew__inquiry *it, int status, ew_str fields, const ew__buf *body) {
    const ew_str no_memory = EW_STR("{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":\"out of memory\"}");
    ew__exchange *exchange = detach(it);
    ew__rpc_out message;
    ew__rpc_out_begin(&message, body->err ? no_memory : ew__buf_view(body));
    exchange->extra = body->err ? ew__str(NULL, 0) : fields;
    exchange->ops->answer(exchange, body->err ? 503 : status, &message, NULL);
    forget(it);
}

void ew__inquiry_answer_empty(ew__inquiry *it, int status) {
    ew__exchange *exchange = detach(it);
    exchange->ops->answer(exchange, status, NULL, NULL);
    forget(it);
}

void ew__inquiry_fail(ew__inquiry *it, int status, ew_str fields, const char *message) {
    ew__buf out;
    ew__buf_init(&out, it->desk->jobs->env, SIZE_MAX / 2);
    (void)ew__json_format(&out, "{\"code\":%d,\"status\":%Q,\"message\":%Q}", status,
                          ew_status_name(status == 409 ? EW_STATUS_ALREADY_EXISTS : ew_status_from_http(status)),
                          message);
    ew__inquiry_answer(it, status, fields, &out);
    ew__buf_done(&out);
}

void ew__inquiry_fail_op(ew__inquiry *it) {
    char problem[sizeof it->op.problem];
    ew_err err = it->op.err;
    int status = err == EW_EINVAL ? 400 : err == EW_ENOTFOUND ? 404 : err == EW_EEXISTS ? 409 : 503;
    memcpy(problem, it->op.problem, sizeof problem);
    ew__inquiry_fail(it, status, ew__str(NULL, 0),
                     err == EW_ENOTFOUND ? "there is no such job"
                     : *problem          ? problem
                                         : ew_err_text(err));
}

/* ---- streams ---- */

#define RETRY_MS 1000 /* a client that lost its connection comes back after this time */

/*
 * One event of SSE. The value is one line of ASCII (as in all streams of http). The first event carries the retry time:
 * a block of its own would be an empty event to some parsers.
 */
static bool send_event(ew__inquiry *it, const char *id, const char *event, ew_str json) {
    char head[96];
    ew__rpc_out lines;
    ew__buf line;
    ew_str plain;
    int n = it->has_events ? 0 : snprintf(head, sizeof head, "retry: %d\n", RETRY_MS);
    n += snprintf(head + n, sizeof head - (size_t)n, "id: %s\nevent: %s\ndata: ", id, event);
    bool ok = ew__json_line(it->desk->jobs->env, json.len ? json : EW_STR("null"), true, &line, &plain) == EW_OK;
    if (ok) {
        ew__rpc_out_begin(&lines, ew__str(head, (size_t)n));
        ew__rpc_out_add(&lines, plain);
        it->exchange->ops->block(it->exchange, &lines, NULL);
        it->said_at = executor_of(it->desk)->now;
        it->has_events = true;
    }
    ew__buf_done(&line);
    return ok;
}

static bool tell_chunks(ew__inquiry *it) {
    const ew__op_get *get = &it->op.u.get;
    bool ok = true;
    for (size_t i = 0; i < get->ret_n_chunks && ok; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "%llu", (unsigned long long)get->ret_chunks[i].seq);
        ok = send_event(it, id, "chunk", get->ret_chunks[i].json);
        it->after = get->ret_chunks[i].seq;
    }
    return ok;
}

/* Without its last block a stream must not look complete. */
static void end_stream(ew__inquiry *it, bool ok) {
    ew__exchange *exchange = detach(it);
    ew__conn *conn = exchange->conn;
    if (ok)
        exchange->ops->end(exchange);
    else
        conn->ops->abort(conn);
    forget(it);
}

/*
 * The job has not ended, but the stream does: without a result or an error, so that the client comes back with the id of
 * its last event.
 */
static void interrupt_stream(ew__inquiry *it) {
    it->exchange->ops->comment(it->exchange);
    end_stream(it, true);
}

/* The last event. Its id makes a client that comes back stop: it is answered with 204. */
static void end_with(ew__inquiry *it, const char *event, ew_str json) {
    end_stream(it, send_event(it, EW__JOB_STREAM_END, event, json));
}

static void end_with_job(ew__inquiry *it, const ew__job *job) {
    if (job->status == EW__JOB_COMPLETED) {
        end_with(it, "result", job->result);
        return;
    }
    ew__buf error;
    ew__buf_init(&error, it->desk->jobs->env, SIZE_MAX / 2);
    bool cancelled = job->status == EW__JOB_CANCELLED;
    if (job->error.len && !cancelled)
        (void)ew__buf_str(&error, job->error);
    else
        (void)ew__json_format(&error, "{\"status\":%Q,\"message\":%q}", cancelled ? "CANCELLED" : "UNKNOWN",
                              job->last_error.len ? job->last_error : EW_STR("the job was cancelled"));
    if (error.err)
        end_stream(it, false);
    else
        end_with(it, "error", ew__buf_view(&error));
    ew__buf_done(&error);
}

static bool is_behind(const ew__inquiry *it) {
    const ew__conn *conn = it->exchange->conn;
    return conn->out.bytes >= conn->executor->limits->out_high_bytes;
}

static void look(ew__inquiry *it);

static void stream_on(ew__inquiry *it) {
    const ew__op_get *get = &it->op.u.get;
    if (!it->exchange->streaming)
        it->exchange->ops->begin(it->exchange, EW_STR("Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"));
    bool more = get->ret_n_chunks >= FULL_PAGE;
    if (!tell_chunks(it)) {
        end_stream(it, false);
    } else if (more && !is_behind(it)) {
        look(it);
    } else if (!more && ew__job_is_final(get->ret.status)) {
        end_with_job(it, &get->ret);
    } else {
        it->desk->blocked = it->desk->blocked || more;
        plan(it->desk);
    }
}

/* ---- waiting ---- */

static void wait_on(ew__inquiry *it) {
    if (!it->last && !ew__job_is_final(it->op.u.get.ret.status)) {
        plan(it->desk);
        return;
    }
    ew__buf out;
    ew__buf_init(&out, it->desk->jobs->env, SIZE_MAX / 2);
    ew__job_write(&it->op.u.get.ret, &out);
    ew__inquiry_answer(it, 200, ew__str(NULL, 0), &out);
    ew__buf_done(&out);
}

/* A store that cannot be reached comes back, one may hope: those who have not been told anything yet are told so. */
static void on_looked(ew__inquiry *it) {
    ew_err err = it->op.err;
    bool passing = err == EW_ECONNECT || err == EW_ETIMEOUT || err == EW_EIO;
    if (err == EW_OK && it->stream)
        stream_on(it);
    else if (err == EW_OK)
        wait_on(it);
    else if (it->exchange->streaming && err == EW_ENOTFOUND)
        end_with(it, "error", EW_STR("{\"status\":\"NOT_FOUND\",\"message\":\"the job is not kept any more\"}"));
    else if (it->exchange->streaming && !passing)
        interrupt_stream(it);
    else if (it->exchange->streaming)
        plan(it->desk);
    else
        ew__inquiry_fail_op(it);
}

static void look(ew__inquiry *it) {
    ew__arena_done(&it->arena);
    ew__arena_init(&it->arena, it->desk->jobs->env, NULL, 0);
    it->op = (ew__store_request){.kind = EW__OP_GET, .arena = &it->arena};
    it->op.u.get = (ew__op_get){.id = ew__str(it->id, it->id_len), .want_chunks = it->stream, .after = it->after};
    ew__inquiry_submit(it, on_looked);
}

bool ew__inquiry_name(ew__inquiry *it, ew_str id) {
    if (id.len == 0 || id.len > sizeof it->id)
        return false;
    memcpy(it->id, id.ptr, id.len);
    it->id_len = id.len;
    return true;
}

static void on_changed(ew__watcher *watcher, unsigned what) {
    ew__jobs_http *desk = watcher->ud;
    (void)what;
    desk->changed = true;
    plan(desk);
}

void ew__inquiry_wait(ew__inquiry *it) {
    ew__jobs_http *desk = it->desk;
    if (desk->n_waits >= EW__DESK_WAITS_MAX) {
        ew__inquiry_fail(it, 429, EW_STR("Retry-After: 1\r\n"), "too many requests wait for jobs here");
        return;
    }
    it->waits = true;
    desk->n_waits++;
    it->said_at = executor_of(desk)->now;
    if (!desk->watching) {
        ew__store *store = desk->jobs->jobs->store;
        desk->watching = true;
        desk->watcher = (ew__watcher){.executor = executor_of(desk),
                                      .want = EW__CHANGED_JOBS | EW__CHANGED_BACK,
                                      .changed = on_changed,
                                      .ud = desk};
        store->ops->watch(store, &desk->watcher, true);
    }
    look(it);
}

/* ---- rounds ---- */

static void attend(ew__inquiry *it, uint64_t now, bool all) {
    ew__jobs_http *desk = it->desk;
    bool draining = it->exchange->conn->site->draining;
    if (draining && it->stream && it->exchange->streaming) {
        interrupt_stream(it);
    } else if (it->stream && is_behind(it)) {
        desk->blocked = true;
    } else if (all || draining || now >= it->until) {
        it->last = it->last || draining || now >= it->until;
        if (it->stream && now - it->said_at >= EW__MS(QUIET_MS)) {
            it->said_at = now;
            it->exchange->ops->comment(it->exchange);
        }
        look(it);
    }
}

static uint64_t space_of(const ew__jobs_http *desk) { return EW__MS(desk->n_waits / 10 * SPACE_PER_10_MS); }

static void on_timer(ew__timer *timer, uint64_t now) {
    ew__jobs_http *desk = ew__container_of(timer, ew__jobs_http, timer);
    bool all = (desk->changed && now >= desk->last_round + space_of(desk)) || desk->blocked ||
               now >= desk->last_round + EW__MS(EW__JOBS_CHECK_MS);
    if (all) {
        desk->last_round = now;
        desk->changed = desk->blocked = false;
    }
    for (ew__inquiry *it = desk->first, *next; it; it = next) {
        next = it->next;
        if (it->waits && !it->busy && it->exchange)
            attend(it, now, all);
    }
    plan(desk);
}

/* When the next round is due. Without memory for a timer: with the next hint. */
static void plan(ew__jobs_http *desk) {
    ew__executor *executor = executor_of(desk);
    if (desk->n_waits == 0 || desk->part.closing)
        return;
    uint64_t at = desk->last_round + EW__MS(EW__JOBS_CHECK_MS);
    if (desk->changed && desk->last_round + space_of(desk) < at)
        at = desk->last_round + space_of(desk);
    if (desk->blocked && executor->now + EW__MS(BLOCKED_MS) < at)
        at = executor->now + EW__MS(BLOCKED_MS);
    for (const ew__inquiry *it = desk->first; it; it = it->next)
        if (it->waits && !it->busy && it->until < at)
            at = it->until;
    if (!ew__timer_active(&desk->timer) || desk->timer.at > at)
        (void)ew__timer_set(&executor->timers, &desk->timer, at, on_timer);
}

/* ---- life of a desk ---- */

/* The server goes down: it waits in vain. */
static void give_up(ew__inquiry *it) {
    if (!it->exchange)
        forget(it);
    else if (it->exchange->streaming)
        interrupt_stream(it);
    else
        ew__inquiry_fail(it, 503, ew__str(NULL, 0), "the server is going down");
}

/* What waits is told so; what the store has is waited for. */
static void close_desk(ew__part *part) {
    ew__jobs_http *desk = ew__container_of(part, ew__jobs_http, part);
    ew__store *store = desk->jobs->jobs->store;
    ew__timer_stop(&executor_of(desk)->timers, &desk->timer);
    if (desk->watching)
        store->ops->watch(store, &desk->watcher, false);
    desk->watching = false;
    for (ew__inquiry *it = desk->first, *next; it; it = next) {
        next = it->next;
        if (!it->busy)
            give_up(it);
    }
    check_closed(desk);
}

ew_err ew__jobs_http_open(ew__app_jobs *jobs) {
    ew_app *app = jobs->app;
    jobs->desks = ew__zalloc(jobs->env, app->n_loops * sizeof *jobs->desks);
    if (!jobs->desks)
        return EW_ENOMEM;
    jobs->n_desks = app->n_loops;
    for (size_t i = 0; i < jobs->n_desks; i++) {
        jobs->desks[i].jobs = jobs;
        jobs->desks[i].part.close = close_desk;
        ew__part_add(&app->loops[i], &jobs->desks[i].part);
    }
    return EW_OK;
}

void ew__jobs_http_free(ew__app_jobs *jobs) {
    ew__free(jobs->env, jobs->desks, jobs->n_desks * sizeof *jobs->desks);
    jobs->desks = NULL;
    jobs->n_desks = 0;
}
