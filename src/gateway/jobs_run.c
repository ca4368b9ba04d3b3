/*
 * gateway/jobs_run.c: how a job becomes a call: which action or runner has it, what comes with it, and what its end
 * means for the job. All of it on the app's first loop. See jobs/worker.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "base/list.h"
#include "base/when.h"
#include <stdio.h>

#define WIRE "jobs"          /* the wire that ew_call_wire reports for a job */
#define BACK_MS 250          /* when a job that could not begin here may be claimed again, at first */
#define BACK_MAX_MS 10000    /* and later, while its action is not there */
#define BACK_FORGET_MS 30000 /* without such a job for so long the time begins anew */
#define HOLD_MS 2000         /* no job is claimed so long before each import has been asked for its list */

/* A chunk that the worker had no room for yet. */
typedef struct held {
    ew__fifo_node node;
    size_t len;
    char json[];
} held;

/* One attempt; in the memory of its call. */
typedef struct attempt {
    ew__app_jobs *self;
    ew__run *run;
    ew_call *call;
    ew__app_runner *runner; /* NULL: an action of the app */
    ew__upstream *upstream; /* of the runner: counts its calls */
    bool response_time;     /* the deadline is the runner's response time, and not the job's */
    ew__fifo held;          /* chunks that its handler sent without waiting for room */
    uint32_t n_held;
    size_t held_bytes;
    bool ended;          /* its end waits until these have been taken */
    ew__outcome outcome; /* then: in the call's memory */
} attempt;

/* ---- chunks ---- */

static void drop_first(attempt *a) {
    held *first = EW__ITEM(ew__fifo_pop(&a->held), held, node);
    if (!first)
        return;
    a->n_held--;
    a->held_bytes -= first->len;
    ew__free(a->self->env, first, sizeof *first + first->len);
}

/* Keeps as many chunks as a store does: the oldest are dropped. Without memory the chunk is lost, and not the job. */
static void hold(attempt *a, ew_str json) {
    held *item = ew__alloc(a->self->env, sizeof *item + json.len);
    if (!item)
        return;
    item->len = json.len;
    memcpy(item->json, json.ptr, json.len);
    ew__fifo_push(&a->held, &item->node);
    a->n_held++;
    a->held_bytes += json.len;
    while (a->n_held > EW__JOB_CHUNKS_MAX || a->held_bytes > EW__JOB_CHUNK_BYTES_MAX)
        drop_first(a);
}

/* EW_FULL asks the handler to wait; one that does not may go on for a while. */
static ew_err on_chunk(ew_call *call, ew_str json) {
    attempt *a = call->caller_ud;
    if (json.len > EW__JOB_CHUNK_BYTES_MAX)
        return EW_OK; /* no store keeps one like that */
    ew_err err = a->held.first ? EW_ELIMIT : ew__run_chunk(a->run, json);
    if (err == EW_ELIMIT)
        hold(a, json);
    return err == EW_ELIMIT || err == EW_FULL ? EW_FULL : EW_OK;
}

/* Whether there is room for more. */
static bool pass_held(attempt *a) {
    while (a->held.first) {
        const held *first = EW__ITEM(a->held.first, held, node);
        ew_err err = ew__run_chunk(a->run, ew__str(first->json, first->len));
        if (err == EW_ELIMIT)
            return false;
        drop_first(a);
        if (err == EW_FULL)
            return false;
    }
    return true;
}

/* ---- the end ---- */

/* Lets go of the place and of the call, and tells the worker. The outcome's texts last until then. */
static void end_attempt(attempt *a, const ew__outcome *outcome) {
    ew__run *run = a->run;
    ew_call *call = a->call;
    a->run = NULL;
    if (a->runner)
        a->runner->running--;
    if (a->upstream)
        atomic_fetch_sub_explicit(&a->upstream->calls, 1, memory_order_release);
    while (a->held.first)
        drop_first(a);
    run->ud = NULL;
    ew__run_end(run, outcome);
    if (call)
        ew__call_release(call);
}

/* back_ms: for EW__OUTCOME_BACK, or it would be claimed again at once. */
static void end_at_once(ew__run *run, ew__outcome_kind kind, ew_str message, ew_status status, uint64_t back_ms) {
    char text[700], json[2500];
    (void)snprintf(text, sizeof text, "%.*s", (int)(message.len < 600 ? message.len : 600), message.ptr);
    int n = ew_json_format(json, sizeof json, "{\"status\":%Q,\"message\":%Q}", ew_status_name(status), text);
    bool later = kind == EW__OUTCOME_BACK;
    ew__outcome outcome = {.kind = kind, .message = ew_str_from(text), .retry_after_ms = later ? (int64_t)back_ms : -1};
    if (n > 0 && (size_t)n < sizeof json)
        outcome.error = ew__str(json, (size_t)n);
    ew__run_end(run, &outcome);
}

/* A runner says that it has no such handler: trying again cannot help. An action's own NOT_FOUND is something else. */
static bool is_missing(const attempt *a, const ew__end *end) {
    char buf[32];
    return a->runner && end->status == EW_STATUS_NOT_FOUND && end->fault.details.len &&
           ew_str_eq(ew__json_text(ew_json_get(end->fault.details, "/type"), buf, sizeof buf),
                     EW_STR("handler_not_found"));
}

static ew__outcome_kind kind_of(const attempt *a, const ew__end *end) {
    bool late = end->status == EW_STATUS_DEADLINE_EXCEEDED;
    if (end->status == EW_STATUS_OK)
        return EW__OUTCOME_SUCCESS;
    if (late && end->origin == EW_ORIGIN_DEADLINE)
        return a->response_time ? EW__OUTCOME_ERROR : EW__OUTCOME_TIMEOUT;
    if (late && a->runner) /* its own clock was a little faster */
        return EW__OUTCOME_TIMEOUT;
    if (end->status == EW_STATUS_CANCELLED && atomic_load(&a->call->cancelled))
        return EW__OUTCOME_CANCELLED;
    if (end->fault.retryable)
        return EW__OUTCOME_RETRY;
    bool final = ew__app_final_statuses(a->self->app) & EW_STATUS_BIT(end->status);
    return final || is_missing(a, end) ? EW__OUTCOME_FATAL : EW__OUTCOME_ERROR;
}

/* What people read of a failure, in the call's memory where it is made here. */
static ew_str message_of(attempt *a, const ew__end *end, ew__outcome_kind kind) {
    ew_str message = end->fault.message.len ? end->fault.message : ew_str_from(ew_status_name(end->status));
    enum { ROOM = 600 };
    bool lost = end->origin == EW_ORIGIN_CONNECT || end->origin == EW_ORIGIN_PROTOCOL;
    bool no_answer = kind == EW__OUTCOME_ERROR && end->origin == EW_ORIGIN_DEADLINE;
    bool our_time = kind == EW__OUTCOME_TIMEOUT && (end->origin == EW_ORIGIN_DEADLINE || end->fault.message.len == 0);
    if (!our_time && !(a->runner && (lost || no_answer)))
        return message;
    char *text = ew_call_alloc(a->call, ROOM);
    if (!text)
        return message;
    int n;
    if (our_time)
        n = snprintf(text, ROOM, "Job timed out after %gs.", (double)a->run->job.timeout_ms / 1000);
    else if (no_answer)
        n = snprintf(text, ROOM, "Runner transport error: runner response timeout");
    else
        n = snprintf(text, ROOM, "Runner transport error: %.*s", (int)(message.len < 500 ? message.len : 500),
                     message.ptr);
    return ew__str(text, n > 0 ? (size_t)n : 0);
}

static ew_str error_of(attempt *a, const ew__end *end, ew_str message) {
    ew_str json = {NULL, 0};
    ew__buf out;
    ew__buf_init(&out, a->self->env, SIZE_MAX / 2);
    (void)ew__json_format(&out, "{\"status\":%Q,\"message\":%q", ew_status_name(end->status), message);
    if (end->fault.details.len)
        (void)ew__json_format(&out, ",\"details\":%j", end->fault.details);
    (void)ew__buf_char(&out, '}');
    if (!out.err)
        (void)ew__arena_str(&a->call->arena, ew__buf_view(&out), &json); /* without memory there is the message */
    ew__buf_done(&out);
    return json;
}

/* The result and the message may lie in memory that goes now. */
static bool keep_outcome(attempt *a, const ew__outcome *outcome) {
    ew__arena *arena = &a->call->arena;
    a->outcome = *outcome;
    return ew__arena_str(arena, outcome->result, &a->outcome.result) == EW_OK &&
           ew__arena_str(arena, outcome->message, &a->outcome.message) == EW_OK;
}

static void on_end(ew_call *call, const ew__end *end) {
    attempt *a = call->caller_ud;
    ew__outcome outcome = {.kind = kind_of(a, end), .retry_after_ms = -1};
    if (outcome.kind == EW__OUTCOME_SUCCESS) {
        outcome.result = end->result;
    } else {
        outcome.message = message_of(a, end, outcome.kind);
        outcome.error = error_of(a, end, outcome.message);
        if (end->fault.retry_after_ms && end->fault.retry_after_ms <= (uint64_t)EW__JOB_TIMEOUT_MAX_MS)
            outcome.retry_after_ms = (int64_t)end->fault.retry_after_ms;
    }
    if (a->held.first && keep_outcome(a, &outcome))
        a->ended = true; /* its chunks come first */
    else
        end_attempt(a, &outcome);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};

/* ---- what comes with it ---- */

static ew_err fill_context(ew_call *call, const ew__app_jobs *self, const ew__run *run) {
    char when[EW__WHEN_LEN];
    bool redis = strcmp(self->jobs->requests.store->name, "redis") == 0; /* there a queue is known by its whole key */
    ew__buf out, queue;
    ew__buf_init(&out, self->env, SIZE_MAX / 2);
    ew__buf_init(&queue, self->env, SIZE_MAX / 2);
    (void)ew__buf_cstr(&queue, redis ? "rrq:queue:" : "");
    (void)ew__buf_str(&queue, run->job.queue);
    ew__when_write((uint64_t)run->job.enqueued_at, when);
    (void)ew__json_format(&out, "{\"job_id\":%q,\"attempt\":%u,\"queue_name\":%q,\"enqueue_time\":%q,\"worker_id\":%q}",
                          run->job.id, (unsigned)run->attempt, ew__buf_view(&queue), ew__str(when, sizeof when),
                          ew__worker_id(run->worker));
    ew_err err = out.err || queue.err ? EW_ENOMEM : ew__arena_str(&call->arena, ew__buf_view(&out), &call->context);
    ew__buf_done(&queue);
    ew__buf_done(&out);
    return err;
}

/* All of it is copied: a handler may go on after its job has ended, and the run with it. */
static ew_err fill_call(ew_call *call, const ew__app_jobs *self, const ew__run *run, ew_str name) {
    ew_err err = ew__arena_str(&call->arena, name, &call->key);
    if (err == EW_OK)
        err = ew__arena_str(&call->arena, run->job.params, &call->input);
    if (err == EW_OK)
        err = ew__arena_str(&call->arena, run->job.correlation, &call->labels);
    if (err == EW_OK)
        err = ew__arena_str(&call->arena, run->job.trace, &call->served.carrier);
    call->wire = WIRE;
    call->attempt = run->attempt;
    call->wants_chunks = true;
    call->deadline = run->deadline;
    return err == EW_OK ? fill_context(call, self, run) : err;
}

/* What the wire to a runner does not carry stays here, as with every bridge. NULL, or why the job cannot go there. */
static const char *fit(ew_call *call, const ew__upstream *to) {
    ew_request_options ask = {.action = call->key, .input = call->input, .stream = true};
    const char *why = to->refuses ? to->refuses(&ask) : NULL;
    if (why || !to->refuses)
        return why;
    ask.labels = call->labels;
    if (to->refuses(&ask))
        ask.labels = call->labels = ew__str(NULL, 0);
    ask.context = call->context;
    if (to->refuses(&ask))
        call->context = ew__str(NULL, 0);
    return NULL;
}

/* ---- where it goes ---- */

static ew__app_runner *runner_of_queue(const ew__app_jobs *self, ew_str queue) {
    for (size_t i = 0; i < self->options.n_queues; i++)
        if (ew__str_is(self->options.queues[i].name, queue) && self->queue_runners[i])
            return self->queue_runners[i];
    return self->default_runner;
}

static ew__app_runner *runner_by_name(const ew__app_jobs *self, ew_str name) {
    for (size_t i = 0; i < self->n_runners; i++)
        if (ew__str_is(self->runners[i].name, name))
            return &self->runners[i];
    return NULL;
}

/* "RUNNER#NAME", "#NAME", "NAME": who has it, and what it is called there. NULL: fine; else a constant line why not. */
static const char *route(const ew__app_jobs *self, const ew__job *job, ew__app_runner **ret_runner, ew_str *ret_name) {
    ew_str function = job->function;
    const char *hash = function.len ? memchr(function.ptr, '#', function.len) : NULL;
    size_t n = hash ? (size_t)(hash - function.ptr) : 0;
    *ret_runner = runner_of_queue(self, job->queue);
    *ret_name = hash ? ew__str(hash + 1, function.len - n - 1) : function;
    if (ret_name->len == 0)
        return "Handler name is missing";
    if (n == 0)
        return NULL;
    *ret_runner = runner_by_name(self, ew__str(function.ptr, n));
    return *ret_runner || self->n_runners == 0 ? NULL : "no runner of this name is configured";
}

/* EW_OK and a reference; EW_ENOTFOUND; EW_EEXISTS: several actions are meant. */
static ew_err find_action(const ew__app_jobs *self, ew_str function, ew_str name, ew__action **ret) {
    ew__actions *actions = ew__registry_get(&self->app->registry);
    ew_err err = actions ? ew__actions_find(actions, function, ret) : EW_ENOTFOUND;
    if (actions && err != EW_OK && !ew__str_is(function, name))
        err = ew__actions_find(actions, name, ret);
    if (err == EW_OK)
        ew__action_ref(*ret);
    if (actions)
        ew__actions_unref(actions);
    return err;
}

/* ---- actions that are not there ---- */

/* Whether runtimes are expected that cannot have come yet: a listener is there for them, and the app has just started. */
static bool awaits_runtimes(const ew__app_jobs *self) {
    const ew_app *app = self->app;
    const ew__executor *executor = &app->loops[0].loop.executor;
    if (executor->now - self->started_at >= EW__MS(ew__app_runtime_grace_ms(app)))
        return false;
    for (size_t i = 0; i < app->n_listeners; i++)
        if (app->listeners[i].for_peers || (app->listeners[i].wire && app->listeners[i].wire->upgrade))
            return true;
    return false;
}

/*
 * When a job whose action is not there may be claimed again: later and later, so that many of them do not keep the store
 * busy, and at different times.
 */
static uint64_t back_ms(ew__app_jobs *self) {
    ew__executor *executor = &self->app->loops[0].loop.executor;
    if (self->unknown_since == 0 || executor->now - self->unknown_at > EW__MS(BACK_FORGET_MS))
        self->unknown_since = executor->now;
    self->unknown_at = executor->now;
    uint64_t ms = BACK_MS + (executor->now - self->unknown_since) / EW__MS(2);
    ms = ms < BACK_MAX_MS ? ms : BACK_MAX_MS;
    return ms * (80 + ew__rng_next(&executor->rng) % 41) / 100;
}

/*
 * As find_action. *ret_answered: every source had listed its actions before the search, so waiting would not help. An
 * action that is missing is searched for once more after that was read: a list may arrive between the two.
 */
static ew_err find_or_wait(const ew__app_jobs *self, ew_str function, ew_str name, ew__action **ret,
                           bool *ret_answered) {
    bool asked;
    ew_err err = find_action(self, function, name, ret);
    *ret_answered = true;
    if (err == EW_OK)
        return EW_OK;
    ew__app_sources_known(self->app, &asked, ret_answered);
    return *ret_answered ? find_action(self, function, name, ret) : err;
}

/*
 * A job whose action is not there. If that may change by itself the job is handed back, and the attempt does not count:
 * a runtime is away, or a source has not said what it has. Otherwise it fails, and is tried again as the policy says:
 * the action may still be defined.
 */
static void end_without_action(ew__app_jobs *self, ew__run *run, ew_err why, bool answered) {
    char text[700];
    ew_str name = run->job.function;
    int n = (int)(name.len < 500 ? name.len : 500);
    if (why == EW_OK || !answered || awaits_runtimes(self)) {
        (void)snprintf(text, sizeof text, "%s: %.*s",
                       why == EW_OK ? "waits for a runtime that is away"
                                    : "waits until all programs have listed their actions",
                       n, name.ptr);
        end_at_once(run, EW__OUTCOME_BACK, ew_str_from(text), EW_STATUS_UNAVAILABLE, back_ms(self));
    } else if (why == EW_EEXISTS) {
        (void)snprintf(text, sizeof text, "several actions have this name, use a key: %.*s", n, name.ptr);
        end_at_once(run, EW__OUTCOME_ERROR, ew_str_from(text), EW_STATUS_FAILED_PRECONDITION, 0);
    } else {
        (void)snprintf(text, sizeof text, "no such action: %.*s", n, name.ptr);
        end_at_once(run, EW__OUTCOME_ERROR, ew_str_from(text), EW_STATUS_NOT_FOUND, 0);
    }
}

/* ---- the beginning ---- */

/* A call that is to be made for the run; NULL: there can be none now. */
static attempt *make_attempt(ew__app_jobs *self, ew__run *run, ew__app_runner *runner, ew_str name) {
    ew__executor *executor = &self->app->loops[0].loop.executor;
    ew_call *call = ew__call_new(executor, &caller, NULL);
    attempt *a = call ? ew__arena_alloc(&call->arena, sizeof *a) : NULL;
    if (!a || fill_call(call, self, run, name) != EW_OK) {
        if (call)
            ew__call_release(call);
        return NULL;
    }
    *a = (attempt){.self = self, .run = run, .call = call, .runner = runner};
    call->caller_ud = a;
    return a;
}

static void start_at_runner(attempt *a) {
    ew__app_runner *runner = a->runner;
    uint64_t limit = a->call->executor->now + EW__MS(runner->response_timeout_ms);
    ew__upstream *upstream = ew__source_runner(runner->source);
    const char *why = fit(a->call, upstream);
    runner->running++;
    if (why) {
        ew__outcome outcome = {.kind = EW__OUTCOME_FATAL, .message = ew_str_from(why), .retry_after_ms = -1};
        end_attempt(a, &outcome);
        return;
    }
    if (runner->response_timeout_ms && limit < a->call->deadline) {
        a->call->deadline = limit;
        a->response_time = true;
    }
    a->upstream = upstream;
    atomic_fetch_add_explicit(&upstream->calls, 1, memory_order_relaxed);
    upstream->open(upstream, a->call);
}

static void start_at(ew__app_jobs *self, ew__run *run, ew__app_runner *runner, ew_str name, ew__action *action) {
    attempt *a = make_attempt(self, run, runner, name);
    if (!a) {
        end_at_once(run, EW__OUTCOME_BACK, EW_STR("too many calls are running, or no memory is left for another"),
                    EW_STATUS_RESOURCE_EXHAUSTED, BACK_MS);
        return;
    }
    run->ud = a;
    if (runner) {
        start_at_runner(a);
        return;
    }
    a->call->served.who = &ew__who_owner; /* who may enqueue was asked before */
    ew__call_open(a->call, action);
}

static void start_run(ew__runs *runs, ew__run *run) {
    ew__app_jobs *self = ew__container_of(runs, ew__app_jobs, runs);
    ew__app_runner *runner = NULL;
    ew__action *action = NULL;
    ew_str name;
    char text[700];
    const char *why = route(self, &run->job, &runner, &name);
    if (why) {
        (void)snprintf(text, sizeof text, "%s: %.*s", why, (int)run->job.function.len, run->job.function.ptr);
        end_at_once(run, EW__OUTCOME_FATAL, ew_str_from(text), EW_STATUS_NOT_FOUND, 0);
        return;
    }
    bool answered = true;
    ew_err err = runner ? EW_OK : find_or_wait(self, run->job.function, name, &action, &answered);
    if (err != EW_OK || (action && action->away))
        end_without_action(self, run, err, answered);
    else
        start_at(self, run, runner, name, action);
    if (action)
        ew__action_unref(action);
}

/* ---- what the worker asks ---- */

/* Whether an import has not been asked for its list yet. One that does not answer holds no job up for longer. */
static bool is_held(ew__app_jobs *self) {
    uint64_t now = self->app->loops[0].loop.executor.now;
    bool asked, answered;
    ew__app_sources_known(self->app, &asked, &answered);
    self->held_since = asked ? 0 : self->held_since ? self->held_since : now;
    return !asked && now - self->held_since < EW__MS(HOLD_MS);
}

static uint32_t room(ew__runs *runs, ew_str queue) {
    ew__app_jobs *self = ew__container_of(runs, ew__app_jobs, runs);
    const ew__executor *executor = &self->app->loops[0].loop.executor;
    if (is_held(self))
        return 0;
    const ew__app_runner *runner = runner_of_queue(self, queue);
    if (atomic_load_explicit(executor->calls->live_all, memory_order_relaxed) >= executor->limits->calls)
        return 0; /* what is claimed could not start */
    if (!runner)
        return UINT32_MAX;
    return runner->running < runner->places ? runner->places - runner->running : 0;
}

/* A job whose time is over has ended, whatever its handler still does: as with every deadline. */
static void stop_run(ew__runs *runs, ew__run *run, ew__stop_why why) {
    static const ew__cancel_why as[] = {[EW__STOP_CANCELLED] = EW__CANCEL_ASKED,
                                        [EW__STOP_TIMEOUT] = EW__CANCEL_DEADLINE,
                                        [EW__STOP_LOST] = EW__CANCEL_GONE,
                                        [EW__STOP_SHUTDOWN] = EW__CANCEL_SHUTDOWN};
    attempt *a = run->ud;
    (void)runs;
    if (!a)
        return;
    if (a->ended) {
        end_attempt(a, &a->outcome);
        return;
    }
    ew_call *call = ew_call_ref(a->call); /* the end may come from inside */
    ew__call_cancel(call, as[why]);
    if (a->run && why == EW__STOP_TIMEOUT) {
        ew__end end = {.status = EW_STATUS_DEADLINE_EXCEEDED, .origin = EW_ORIGIN_DEADLINE};
        a->response_time = false;
        on_end(call, &end);
    }
    ew_call_unref(call);
}

static void chunk_room(ew__runs *runs, ew__run *run) {
    attempt *a = run->ud;
    (void)runs;
    if (!a || !pass_held(a))
        return;
    if (a->ended)
        end_attempt(a, &a->outcome);
    else
        ew__call_room(a->call);
}

const ew__runs_ops ew__app_runs = {.room = room, .start = start_run, .stop = stop_run, .chunk_room = chunk_room};
