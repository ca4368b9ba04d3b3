/*
 * jobs/service/http.c: requests under /jobs and their answers. See http.h. Requests that wait for a job query the store
 * in rounds: after each hint of the store, but less often the more requests wait, and once a second in any case.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/service/http.h"
#include "base/list.h"
#include "call/stack_trace.h"
#include "wire/rpc_calls.h"
#include <stdio.h>

#define FULL_PAGE 256     /* chunks that a store gives at a time */
#define QUIET_MS 15000    /* a stream gives a sign of life so often */
#define BLOCKED_MS 50     /* a client that does not read is looked at again then */
#define SPACE_PER_10_MS 1 /* from one round to the next, for every ten that wait */

static ew__executor *executor_of(const ew__jobs_http *http) { return http->requests.executor; }

static void plan(ew__jobs_http *http);

/* ---- life of an exchange ---- */

static void forget(ew__jobs_exchange *self) {
    ew__jobs_http *http = self->http;
    EW__LIST_REMOVE(http->first, self);
    http->n_waits -= self->waits;
    ew__store_request_end(&self->op);
    ew__free(http->requests.env, self, sizeof *self);
}

ew__jobs_exchange *ew__jobs_exchange_new(ew__exchange *exchange, ew__op_kind kind) {
    ew__jobs_http *http = ew__container_of(exchange->guest, ew__jobs_http, guest);
    ew__jobs_exchange *self = http->closing ? NULL : ew__zalloc(http->requests.env, sizeof *self);
    if (!self)
        return NULL;
    self->http = http;
    self->exchange = exchange;
    self->until = EW__NEVER;
    ew__store_request_begin(&self->op, &http->requests, kind);
    EW__LIST_ADD(http->first, self);
    exchange->ud = self;
    return self;
}

static void give_up(ew__jobs_exchange *self);

static void check_closed(ew__jobs_http *http) {
    if (!http->closing || http->requests.n_busy > 0)
        return;
    while (http->first)
        give_up(http->first);
    http->closed(http);
}

/* Errors of jobs are kept as they came from the upstream; a client may not see all of them. */
static void hide_stacks(ew__jobs_exchange *self) {
    const ew_env *env = self->http->requests.env;
    if (self->op.err != EW_OK || ew__stack_trace_is_shown(executor_of(self->http), self->exchange->call->served.who))
        return;
    if (self->op.kind == EW__OP_GET)
        ew__stack_trace_remove(&self->op.memory, env, &self->op.u.get.ret.error);
    for (size_t i = 0; self->op.kind == EW__OP_LIST && i < self->op.u.list.ret_n; i++)
        ew__stack_trace_remove(&self->op.memory, env, &self->op.u.list.ret[i].error);
}

static void on_done(ew__store_request *op) {
    ew__jobs_exchange *self = ew__container_of(op, ew__jobs_exchange, op);
    ew__jobs_http *http = self->http;
    ew__store_request_returned(op);
    if (self->exchange) {
        hide_stacks(self);
        self->reply(self);
    } else {
        forget(self);
    }
    check_closed(http);
}

void ew__jobs_exchange_submit(ew__jobs_exchange *self, void (*reply)(ew__jobs_exchange *self)) {
    self->reply = reply;
    ew__store_request_submit(&self->op, on_done);
}

/* The client has gone. A request that is under way keeps its memory until the store returns it. */
static void on_over(ew__exchange *exchange) {
    ew__jobs_exchange *self = exchange->ud;
    if (!self)
        return;
    exchange->ud = NULL;
    self->exchange = NULL;
    if (!self->op.busy)
        forget(self);
}

/* ---- answers ---- */

/* Called before the answer, which ends the exchange. */
static ew__exchange *detach(ew__jobs_exchange *self) {
    ew__exchange *exchange = self->exchange;
    exchange->ud = NULL;
    self->exchange = NULL;
    return exchange;
}

void ew__jobs_exchange_answer(ew__jobs_exchange *self, int status, ew_str fields, const ew__buf *body) {
    const ew_str no_memory = EW_STR("{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":\"out of memory\"}");
    ew__exchange *exchange = detach(self);
    ew__rpc_out message;
    ew__rpc_out_begin(&message, body->err ? no_memory : ew__buf_view(body));
    exchange->extra = body->err ? ew__str(NULL, 0) : fields;
    exchange->ops->answer(exchange, body->err ? 503 : status, &message, NULL);
    forget(self);
}

void ew__jobs_exchange_answer_empty(ew__jobs_exchange *self, int status) {
    ew__exchange *exchange = detach(self);
    exchange->ops->answer(exchange, status, NULL, NULL);
    forget(self);
}

void ew__jobs_exchange_fail(ew__jobs_exchange *self, int status, ew_str fields, const char *message) {
    ew__buf out;
    ew__buf_init(&out, self->http->requests.env, SIZE_MAX / 2);
    (void)ew__json_format(&out, "{\"code\":%d,\"status\":%Q,\"message\":%Q}", status,
                          ew_status_name(status == 409 ? EW_STATUS_ALREADY_EXISTS : ew_status_from_http(status)),
                          message);
    ew__jobs_exchange_answer(self, status, fields, &out);
    ew__buf_done(&out);
}

void ew__jobs_exchange_fail_op(ew__jobs_exchange *self) {
    char problem[sizeof self->op.problem];
    ew_err err = self->op.err;
    int status = err == EW_EINVAL ? 400 : err == EW_ENOTFOUND ? 404 : err == EW_EEXISTS ? 409 : 503;
    memcpy(problem, self->op.problem, sizeof problem);
    ew__jobs_exchange_fail(self, status, ew__str(NULL, 0),
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
static bool send_event(ew__jobs_exchange *self, const char *id, const char *event, ew_str json) {
    char head[96];
    ew__rpc_out lines;
    ew__buf line;
    ew_str plain;
    int n = self->has_events ? 0 : snprintf(head, sizeof head, "retry: %d\n", RETRY_MS);
    n += snprintf(head + n, sizeof head - (size_t)n, "id: %s\nevent: %s\ndata: ", id, event);
    bool ok = ew__json_line(self->http->requests.env, json.len ? json : EW_STR("null"), true, &line, &plain) == EW_OK;
    if (ok) {
        ew__rpc_out_begin(&lines, ew__str(head, (size_t)n));
        ew__rpc_out_add(&lines, plain);
        self->exchange->ops->block(self->exchange, &lines, NULL);
        self->sent_at = executor_of(self->http)->now;
        self->has_events = true;
    }
    ew__buf_done(&line);
    return ok;
}

static bool send_chunks(ew__jobs_exchange *self) {
    const ew__op_get *get = &self->op.u.get;
    bool ok = true;
    for (size_t i = 0; i < get->ret_n_chunks && ok; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "%llu", (unsigned long long)get->ret_chunks[i].seq);
        ok = send_event(self, id, "chunk", get->ret_chunks[i].json);
        self->after = get->ret_chunks[i].seq;
    }
    return ok;
}

/* Without its last block a stream must not look complete. */
static void end_stream(ew__jobs_exchange *self, bool ok) {
    ew__exchange *exchange = detach(self);
    ew__conn *conn = exchange->conn;
    if (ok)
        exchange->ops->end(exchange);
    else
        conn->ops->abort(conn);
    forget(self);
}

/*
 * The job has not ended, but the stream does: without a result or an error, so that the client comes back with the id of
 * its last event.
 */
static void interrupt_stream(ew__jobs_exchange *self) {
    self->exchange->ops->comment(self->exchange);
    end_stream(self, true);
}

/* The last event. Its id makes a client that comes back stop: it is answered with 204. */
static void end_with(ew__jobs_exchange *self, const char *event, ew_str json) {
    end_stream(self, send_event(self, EW__JOB_STREAM_END, event, json));
}

static void end_with_job(ew__jobs_exchange *self, const ew__job *job) {
    if (job->status == EW__JOB_COMPLETED) {
        end_with(self, "result", job->result);
        return;
    }
    ew__buf error;
    ew__buf_init(&error, self->http->requests.env, SIZE_MAX / 2);
    bool cancelled = job->status == EW__JOB_CANCELLED;
    if (job->error.len && !cancelled)
        (void)ew__buf_str(&error, job->error);
    else
        (void)ew__json_format(&error, "{\"status\":%Q,\"message\":%q}", cancelled ? "CANCELLED" : "UNKNOWN",
                              job->last_error.len ? job->last_error : EW_STR("the job was cancelled"));
    if (error.err)
        end_stream(self, false);
    else
        end_with(self, "error", ew__buf_view(&error));
    ew__buf_done(&error);
}

static bool is_behind(const ew__jobs_exchange *self) {
    const ew__conn *conn = self->exchange->conn;
    return conn->out.bytes >= conn->executor->limits->out_high_bytes;
}

static void look(ew__jobs_exchange *self);

static void stream_on(ew__jobs_exchange *self) {
    const ew__op_get *get = &self->op.u.get;
    if (!self->exchange->streaming)
        self->exchange->ops->begin(self->exchange, EW_STR("Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"));
    bool more = get->ret_n_chunks >= FULL_PAGE;
    if (!send_chunks(self)) {
        end_stream(self, false);
    } else if (more && !is_behind(self)) {
        look(self);
    } else if (!more && ew__job_is_final(get->ret.status)) {
        end_with_job(self, &get->ret);
    } else {
        self->http->blocked = self->http->blocked || more;
        plan(self->http);
    }
}

/* ---- waiting ---- */

static void wait_on(ew__jobs_exchange *self) {
    if (!self->last && !ew__job_is_final(self->op.u.get.ret.status)) {
        plan(self->http);
        return;
    }
    ew__buf out;
    ew__buf_init(&out, self->http->requests.env, SIZE_MAX / 2);
    ew__job_write(&self->op.u.get.ret, &out);
    ew__jobs_exchange_answer(self, 200, ew__str(NULL, 0), &out);
    ew__buf_done(&out);
}

/* While a store cannot be reached, streams that have begun wait for it; other requests are answered with the error. */
static void on_looked(ew__jobs_exchange *self) {
    ew_err err = self->op.err;
    bool passing = ew__store_is_unknown(err);
    if (err == EW_OK && self->stream)
        stream_on(self);
    else if (err == EW_OK)
        wait_on(self);
    else if (self->exchange->streaming && err == EW_ENOTFOUND)
        end_with(self, "error", EW_STR("{\"status\":\"NOT_FOUND\",\"message\":\"the job is not kept any more\"}"));
    else if (self->exchange->streaming && !passing)
        interrupt_stream(self);
    else if (self->exchange->streaming)
        plan(self->http);
    else
        ew__jobs_exchange_fail_op(self);
}

static void look(ew__jobs_exchange *self) {
    ew__store_request_again(&self->op, EW__OP_GET);
    self->op.u.get =
        (ew__op_get){.id = ew__str(self->id, self->id_len), .want_chunks = self->stream, .after = self->after};
    ew__jobs_exchange_submit(self, on_looked);
}

bool ew__jobs_exchange_name(ew__jobs_exchange *self, ew_str id) {
    if (id.len == 0 || id.len > sizeof self->id)
        return false;
    memcpy(self->id, id.ptr, id.len);
    self->id_len = id.len;
    return true;
}

static void on_changed(ew__watcher *watcher, unsigned what) {
    ew__jobs_http *http = watcher->ud;
    (void)what;
    http->changed = true;
    plan(http);
}

void ew__jobs_exchange_wait(ew__jobs_exchange *self) {
    ew__jobs_http *http = self->http;
    if (http->n_waits >= EW__JOBS_HTTP_WAITS_MAX) {
        ew__jobs_exchange_fail(self, 429, EW_STR("Retry-After: 1\r\n"), "too many requests wait for jobs here");
        return;
    }
    self->waits = true;
    http->n_waits++;
    self->sent_at = executor_of(http)->now;
    if (!http->watching) {
        ew__store *store = http->requests.store;
        http->watching = true;
        http->watcher = (ew__watcher){.executor = executor_of(http),
                                      .want = EW__CHANGED_JOBS | EW__CHANGED_BACK,
                                      .changed = on_changed,
                                      .ud = http};
        store->ops->watch(store, &http->watcher, true);
    }
    look(self);
}

/* ---- rounds ---- */

static void attend(ew__jobs_exchange *self, uint64_t now, bool all) {
    ew__jobs_http *http = self->http;
    bool draining = self->exchange->conn->site->draining;
    if (draining && self->stream && self->exchange->streaming) {
        interrupt_stream(self);
    } else if (self->stream && is_behind(self)) {
        http->blocked = true;
    } else if (all || draining || now >= self->until) {
        self->last = self->last || draining || now >= self->until;
        if (self->stream && now - self->sent_at >= EW__MS(QUIET_MS)) {
            self->sent_at = now;
            self->exchange->ops->comment(self->exchange);
        }
        look(self);
    }
}

static uint64_t space_of(const ew__jobs_http *http) { return EW__MS(http->n_waits / 10 * SPACE_PER_10_MS); }

static void on_timer(ew__timer *timer, uint64_t now) {
    ew__jobs_http *http = ew__container_of(timer, ew__jobs_http, timer);
    bool all = (http->changed && now >= http->last_round + space_of(http)) || http->blocked ||
               now >= http->last_round + EW__MS(EW__JOBS_CHECK_MS);
    if (all) {
        http->last_round = now;
        http->changed = http->blocked = false;
    }
    for (ew__jobs_exchange *self = http->first, *next; self; self = next) {
        next = self->next;
        if (self->waits && !self->op.busy && self->exchange)
            attend(self, now, all);
    }
    plan(http);
}

/* When the next round is due. Without memory for a timer: with the next hint. */
static void plan(ew__jobs_http *http) {
    ew__executor *executor = executor_of(http);
    if (http->n_waits == 0 || http->closing)
        return;
    uint64_t at = http->last_round + EW__MS(EW__JOBS_CHECK_MS);
    if (http->changed && http->last_round + space_of(http) < at)
        at = http->last_round + space_of(http);
    if (http->blocked && executor->now + EW__MS(BLOCKED_MS) < at)
        at = executor->now + EW__MS(BLOCKED_MS);
    for (const ew__jobs_exchange *self = http->first; self; self = self->next)
        if (self->waits && !self->op.busy && self->until < at)
            at = self->until;
    if (!ew__timer_active(&http->timer) || http->timer.at > at)
        (void)ew__timer_set(&executor->timers, &http->timer, at, on_timer);
}

/* ---- beginning and end ---- */

static void give_up(ew__jobs_exchange *self) {
    if (!self->exchange)
        forget(self);
    else if (self->exchange->streaming)
        interrupt_stream(self);
    else
        ew__jobs_exchange_fail(self, 503, ew__str(NULL, 0), "the server is going down");
}

void ew__jobs_http_close(ew__jobs_http *http) {
    ew__store *store = http->requests.store;
    http->closing = true;
    ew__timer_stop(&executor_of(http)->timers, &http->timer);
    if (http->watching)
        store->ops->watch(store, &http->watcher, false);
    http->watching = false;
    for (ew__jobs_exchange *self = http->first, *next; self; self = next) {
        next = self->next;
        if (!self->op.busy)
            give_up(self);
    }
    check_closed(http);
}

void ew__jobs_http_init(ew__jobs_http *http, ew_jobs *jobs, ew__executor *executor) {
    *http = (ew__jobs_http){.guest = {.takes = ew__jobs_http_takes,
                                      .wants = ew__jobs_http_wants,
                                      .request = ew__jobs_http_request,
                                      .over = on_over},
                            .jobs = jobs,
                            .requests = {.store = jobs->requests.store, .env = executor->env, .executor = executor}};
}
