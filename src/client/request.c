/*
 * client/request.c: requests of a client: the caller's end of an outgoing call, reachable from any thread.
 *
 * A request has two owners: the client until the call has ended, the user until ew_request_free. Everything the call
 * needs is copied into the request's memory, which outlives the call. Input streams are in request_input.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "client/request.h"
#include "base/thread.h"
#include "json/json.h"
#include <errno.h>
#include <stdio.h>

#define LARGE ((size_t)16 * 1024)

/* ---- memory ---- */

void ew__request_unref(ew_request *request) {
    if (atomic_fetch_sub_explicit(&request->refs, 1, memory_order_acq_rel) != 1)
        return;
    const ew_env *env = request->arena.env;
    if (request->origin)
        ew_call_unref(request->origin);
    pthread_cond_destroy(&request->changed);
    pthread_mutex_destroy(&request->lock);
    if (request->large)
        ew__free(env, request->large, request->options.input.len);
    ew__arena_done(&request->kept);
    ew__arena_done(&request->arena);
    ew__free(env, request, sizeof *request);
}

/* A large input has an allocation of its own, which the call adopts and sends from. */
static ew_err copy_input(ew_request *request) {
    ew_str *input = &request->options.input;
    if (input->len < LARGE)
        return ew__arena_str(&request->arena, *input, input);
    request->large = ew__alloc(request->arena.env, input->len);
    if (!request->large)
        return EW_ENOMEM;
    memcpy(request->large, input->ptr, input->len);
    input->ptr = request->large;
    return EW_OK;
}

static ew_err copy_options(ew_request *request, const ew_request_options *options) {
    request->options = *options;
    if (copy_input(request) != EW_OK)
        return EW_ENOMEM;
    ew_str *const slices[] = {&request->options.action, &request->options.context, &request->options.labels,
                              &request->options.traceparent, &request->options.id};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++)
        if (ew__arena_str(&request->arena, *slices[i], slices[i]) != EW_OK)
            return EW_ENOMEM;
    return EW_OK;
}

/* Keeps what the new call needs to know of the one it is made for, which may end before it is opened. */
static ew_err copy_parent(ew_request *request, const ew_call *parent) {
    ew__buf path;
    request->options.parent = NULL;
    if (!parent || request->options.traceparent.len)
        return EW_OK;
    request->above = *ew__call_trace((ew_call *)(uintptr_t)parent); /* that it is made late is its own affair */
    ew__buf_init(&path, request->arena.env, 64 * 1024);
    (void)ew__trace_path(&path, parent->outgoing.trace_path, parent->key, false);
    ew_err err =
        path.err == EW_OK ? ew__arena_str(&request->arena, ew__buf_view(&path), &request->above_path) : path.err;
    ew__buf_done(&path);
    return err == EW_ENOMEM ? EW_ENOMEM : EW_OK;
}

static ew_err new_request(ew__executor *executor, ew__call_kind kind, const ew_request_options *options,
                          ew_request **ret) {
    ew_request *request = ew__zalloc(executor->env, sizeof *request);
    if (!request)
        return EW_ENOMEM;
    atomic_init(&request->refs, 1);
    request->executor = executor;
    request->kind = kind;
    ew__arena_init(&request->arena, executor->env, NULL, 0);
    ew__arena_init(&request->kept, executor->env, NULL, 0);
    pthread_mutex_init(&request->lock, NULL);
    ew__cond_init(&request->changed);
    if (copy_options(request, options) != EW_OK || copy_parent(request, options->parent) != EW_OK) {
        ew__request_unref(request);
        return EW_ENOMEM;
    }
    *ret = request;
    return EW_OK;
}

/* ---- the caller's end; loop thread ---- */

static ew_err on_chunk(ew_call *call, ew_str json) {
    ew_request *request = call->caller_ud;
    if (request->options.on_chunk)
        request->options.on_chunk(request, json, request->options.ud);
    return EW_OK;
}

static ew_end public_end(const ew_call *call, const ew__end *end) {
    return (ew_end){.status = end->status,
                    .result = end->result,
                    .fault = end->fault,
                    .origin = end->origin,
                    .trace_id = call ? call->outgoing.remote_trace_id : ew__str(NULL, 0)};
}

/* Copies an end into the request's memory, for those who wait. Without memory for it they learn that. */
static void keep_end(ew_request *request, const ew_end *end) {
    request->end = *end;
    ew_str *const slices[] = {&request->end.result, &request->end.fault.message, &request->end.fault.details,
                              &request->end.trace_id};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        if (ew__arena_str(&request->kept, *slices[i], slices[i]) == EW_OK)
            continue;
        request->end = (ew_end){.status = EW_STATUS_RESOURCE_EXHAUSTED,
                                .origin = EW_ORIGIN_LOCAL,
                                .fault = {.status = EW_STATUS_RESOURCE_EXHAUSTED, .message = EW_STR("out of memory")}};
        return;
    }
}

/* By a letter: an end that comes while the call is opened must not go deeper and deeper. */
static void open_again(ew_request *request) {
    atomic_store_explicit(&request->again, false, memory_order_relaxed);
    atomic_store_explicit(&request->telling, false, memory_order_relaxed);
    ew__executor_post(request->executor, &request->open_task);
}

static void tell_end(ew_request *request, const ew_end *end) {
    ew__request_drop_input(request);
    atomic_store_explicit(&request->telling, true, memory_order_relaxed);
    if (request->options.on_end)
        request->options.on_end(request, end, request->options.ud);
    if (atomic_load_explicit(&request->again, memory_order_acquire)) { /* whoever asked has prepared things before */
        open_again(request);
        return;
    }
    if (request->keep_end)
        keep_end(request, end);
    pthread_mutex_lock(&request->lock);
    if (atomic_load_explicit(&request->again, memory_order_relaxed)) { /* by another thread, meanwhile */
        pthread_mutex_unlock(&request->lock);
        ew__arena_done(&request->kept);
        ew__arena_init(&request->kept, request->arena.env, NULL, 0);
        open_again(request);
        return;
    }
    if (request->client)
        atomic_fetch_sub(&request->client->active, 1);
    request->ended = true;
    atomic_store_explicit(&request->telling, false, memory_order_relaxed);
    pthread_cond_broadcast(&request->changed);
    pthread_mutex_unlock(&request->lock);
    ew__request_unref(request);
}

/* The peer was a program of ours: how it has ended says more than that its connection was lost. */
static void say_how(const ew_request *request, ew_end *end, char *text, size_t size) {
    const char *how = request->client ? ew__pool_child_end(request->client->pool) : "";
    if (end->origin != EW_ORIGIN_CONNECT || !*how)
        return;
    (void)snprintf(text, size, "%s before the end of the call", how);
    end->fault.message = ew_str_from(text);
}

static void on_end(ew_call *call, const ew__end *end) {
    ew_request *request = call->caller_ud;
    ew_end told = public_end(call, end);
    char text[300];
    say_how(request, &told, text, sizeof text);
    request->call = NULL;
    tell_end(request, &told);
    ew__call_release(call);
}

static void on_input_room(ew_call *call) { ew__request_input_room(call->caller_ud); }

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end, .input_room = on_input_room};

/* EW_OK, EW_ENOMEM. */
static ew_err fill_call(ew_request *request, ew_call *call) {
    const ew_request_options *options = &request->options;
    ew__executor *executor = call->executor;
    bool has_above = request->above.trace_id[0] != '\0';
    call->kind = (uint8_t)request->kind;
    call->key = options->action;
    call->input = options->input.len ? options->input : EW_STR("null");
    if (request->large && options->repeat) {
        if (ew__arena_str(&call->arena, options->input, &call->input) != EW_OK)
            return EW_ENOMEM;
    } else if (request->large && ew__arena_adopt(&call->arena, request->large, options->input.len) == EW_OK) {
        request->large = NULL; /* else it stays with the request, which outlives the call */
    }
    call->context = options->context;
    call->labels = options->labels;
    call->wants_chunks = options->stream;
    call->has_input = options->input_stream;
    call->input_full = options->input_stream; /* the wire reports when it takes input */
    call->outgoing.notify = options->notify;
    call->outgoing.wire_id = options->id;
    if (options->traceparent.len > 0)
        (void)ew__trace_continue(&call->trace, &executor->rng, options->traceparent); /* a fresh one if it is none */
    else if (has_above && !executor->calls->observer)
        call->trace = request->above; /* it has no span of its own: the peer's is a child of the one above */
    else if (has_above)
        ew__trace_child(&call->trace, &executor->rng, &request->above);
    else
        ew__trace_new(&call->trace, &executor->rng);
    call->outgoing.trace_path = request->above_path;
    if (options->timeout_ms) {
        uint64_t now = ew__executor_read_clock(executor);
        call->deadline =
            options->timeout_ms >= (EW__NEVER - now) / 1000000 ? EW__NEVER - 1 : now + EW__MS(options->timeout_ms);
    }
    return EW_OK;
}

static void tell_unopened(ew_request *request, ew_origin origin, ew_status status, ew_str message) {
    ew_end end = {.status = status, .origin = origin, .fault = {.status = status, .message = message}};
    tell_end(request, &end);
}

/* The first callee of a call that goes back: hands it to the connection that the other one came on. */
static void open_back(ew_call *call) {
    const ew_request *request = call->caller_ud;
    ew_call *origin = request->origin;
    ew_err err = origin->caller_open ? origin->caller->call_back(origin, call) : EW_EENDED;
    if (err == EW_EBUSY)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                         EW_STR("the connection takes no further call"));
    else if (err != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                         EW_STR("the call that it was to go back on has ended"));
}

static const ew__callee_ops back = {.open = open_back};

static void open_request(ew_request *request) {
    ew_client *client = request->client;
    if (request->cancel_early) {
        tell_unopened(request, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, EW_STR("the call was cancelled"));
        return;
    }
    ew_call *call = ew__call_new(request->executor, &caller, request);
    if (call && fill_call(request, call) != EW_OK) {
        ew__call_release(call);
        call = NULL;
    }
    if (!call) {
        tell_unopened(request, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                      EW_STR("out of memory, or too many calls"));
        return;
    }
    request->call = call;
    if (client)
        ew__pool_open(client->pool, call);
    else
        ew__call_open_on(call, &back, NULL);
}

static void open_task(ew__task *task) { open_request(ew__container_of(task, ew_request, open_task)); }

/* ---- the public functions ---- */

static ew_err check_json(ew_str json) { return json.len == 0 ? EW_OK : ew__json_validate(json, NULL); }

static ew_err check_options(const ew_request_options *options) {
    if (options->action.len == 0 || options->action.len > 4096)
        return EW_EINVAL;
    if (options->input_stream && (options->notify || options->repeat))
        return EW_EINVAL;
    if (options->notify && options->stream)
        return EW_EINVAL;
    ew_err err = check_json(options->input);
    if (err == EW_OK)
        err = check_json(options->context);
    return err == EW_OK ? check_json(options->labels) : err;
}

/* Makes a request that is about to be opened; *ret_request (if not NULL) is the user's. */
static ew_err make(ew__executor *executor, ew__call_kind kind, const ew_request_options *options, ew_request **ret,
                   ew_request **ret_request) {
    ew_err err = new_request(executor, kind, options, ret);
    if (err != EW_OK || !ret_request)
        return err;
    (*ret)->keep_end = true;
    atomic_fetch_add(&(*ret)->refs, 1);
    *ret_request = *ret;
    return EW_OK;
}

static ew_err start(ew_client *client, ew__call_kind kind, const ew_request_options *options,
                    ew_request **ret_request) {
    ew_request *request = NULL;
    if (atomic_load(&client->closing))
        return EW_ECLOSED;
    if (atomic_fetch_add(&client->active, 1) >= client->limits.calls) {
        atomic_fetch_sub(&client->active, 1);
        return EW_ELIMIT;
    }
    ew_err err = make(&client->loop.executor, kind, options, &request, ret_request);
    if (err != EW_OK) {
        atomic_fetch_sub(&client->active, 1);
        return err;
    }
    request->client = client;
    request->open_task.fn = open_task;
    ew__executor_post(request->executor, &request->open_task);
    return EW_OK;
}

/* Outside of on_end: it has ended, or is about to. */
static ew_err start_again(ew_request *request) {
    ew_client *client = request->client;
    pthread_mutex_lock(&request->lock);
    bool ended = request->ended, telling = atomic_load_explicit(&request->telling, memory_order_relaxed);
    bool room = !ended || atomic_fetch_add(&client->active, 1) < client->limits.calls;
    if (!room)
        atomic_fetch_sub(&client->active, 1);
    else if (ended)
        request->ended = false;
    else if (telling)
        atomic_store_explicit(&request->again, true, memory_order_release);
    pthread_mutex_unlock(&request->lock);
    if (!room)
        return EW_ELIMIT;
    if (!ended)
        return telling ? EW_OK : EW_EINVAL;
    ew__arena_done(&request->kept);
    ew__arena_init(&request->kept, request->arena.env, NULL, 0);
    atomic_fetch_add(&request->refs, 1);
    ew__executor_post(request->executor, &request->open_task);
    return EW_OK;
}

ew_err ew__request_again(ew_request *request) {
    ew_client *client = request->client;
    if (!request->options.repeat || !client)
        return EW_EINVAL;
    if (atomic_load(&request->cancel_sent))
        return EW_ECANCELLED;
    if (atomic_load(&client->closing))
        return EW_ECLOSED;
    if (!atomic_load_explicit(&request->telling, memory_order_relaxed) || !ew__executor_here(request->executor))
        return start_again(request);
    atomic_store_explicit(&request->again, true, memory_order_relaxed);
    return EW_OK;
}

const char *ew__client_refuses(const ew_client *client, const ew_request_options *options) {
    return client->target.wire->refuses ? client->target.wire->refuses(options) : NULL;
}

ew_err ew__client_call(ew_client *client, const ew_request_options *options, ew_request **ret_request) {
    ew_err err = check_options(options);
    if (err == EW_OK && ew__client_refuses(client, options))
        err = EW_EUNSUPPORTED;
    return err == EW_OK ? start(client, EW__CALL_RUN, options, ret_request) : err;
}

ew_err ew__client_list(ew_client *client, const ew_request_options *options, ew_request **ret_request) {
    ew_request_options list = {.timeout_ms = options->timeout_ms, .on_end = options->on_end, .ud = options->ud};
    return start(client, EW__CALL_LIST, &list, ret_request);
}

ew_err ew__client_call_back(ew_call *call, const ew_request_options *options, ew_request **ret_request) {
    ew_request *request = NULL;
    if (!call->caller->call_back || options->context.len || options->labels.len)
        return EW_EUNSUPPORTED;
    ew_err err = check_options(options);
    ew_request_options with_parent = *options;
    if (!with_parent.parent)
        with_parent.parent = call;
    if (err == EW_OK)
        err = make(call->executor, EW__CALL_RUN, &with_parent, &request, ret_request);
    if (err != EW_OK)
        return err;
    request->origin = ew_call_ref(call);
    request->open_task.fn = open_task;
    if (ew__executor_here(request->executor)) /* in order with what the handler does next */
        open_request(request);
    else
        ew__executor_post(request->executor, &request->open_task);
    return EW_OK;
}

ew_err ew__request_wait(ew_request *request, uint64_t ms, ew_end *ret_end) {
    struct timespec until = ew__cond_until(ms);
    int err = 0;
    pthread_mutex_lock(&request->lock);
    if (!request->ended && ew__executor_here(request->executor)) { /* it would wait for itself */
        pthread_mutex_unlock(&request->lock);
        return EW_EUNSUPPORTED;
    }
    while (!request->ended && err != ETIMEDOUT)
        err = ms ? pthread_cond_timedwait(&request->changed, &request->lock, &until)
                 : pthread_cond_wait(&request->changed, &request->lock);
    bool ended = request->ended;
    pthread_mutex_unlock(&request->lock);
    if (!ended)
        return EW_ETIMEOUT;
    if (ret_end)
        *ret_end = request->end;
    return EW_OK;
}

static void cancel_request(ew__task *task) {
    ew_request *request = ew__container_of(task, ew_request, cancel_task);
    if (request->call)
        ew__call_cancel(request->call, EW__CANCEL_ASKED);
    else
        request->cancel_early = true;
    ew__request_unref(request);
}

void ew__request_cancel(ew_request *request) {
    if (atomic_exchange(&request->cancel_sent, true))
        return;
    request->cancel_task.fn = cancel_request;
    pthread_mutex_lock(&request->lock);
    if (!request->ended) { /* else the client may be gone */
        atomic_fetch_add(&request->refs, 1);
        ew__executor_post(request->executor, &request->cancel_task);
    }
    pthread_mutex_unlock(&request->lock);
}
