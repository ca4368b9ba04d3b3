/*
 * wire/rrq/serve.c: requests that came: we are the runner. To the call model this is their caller's end: it opens them
 * and is told their end. Each gets exactly one outcome, on the connection that it came on.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/rrq/rrq.h"

#define NAME_ROOM 1024 /* names of functions with escapes are decoded, up to here */
#define CANCEL_MS 1000 /* for a handler that was told to stop, before its request is answered without it */
#define TOLD_MAX (2 * EW__RRQ_ID_MAX)

static ew__rrq_scratch *scratch_of(const ew__rrq_peer *peer) { return peer->peer.conn->scratch; }

/* ---- outcomes ---- */

/*
 * A fault as the rest of an outcome, in `buf` (to be freed by the caller in any case). around: bytes of the message
 * beside it.
 */
static ew_str fault_text(ew__rrq_peer *peer, ew__buf *buf, const char *type, const ew_fault *fault, size_t around) {
    ew_fault plain = {.status = fault->status, .retryable = fault->retryable, .retry_after_ms = fault->retry_after_ms};
    ew__buf_init(buf, peer->peer.conn->executor->env, SIZE_MAX / 2);
    ew_err err = ew__rrq_write_fault(buf, type, fault);
    size_t len = buf->len + around;
    if (err == EW_OK && !(ew__rpc_fits(&peer->calls, len) && ew__rpc_fault_has_place(&peer->calls, len))) {
        ew__buf_clear(buf);
        err = ew__rrq_write_fault(buf, type, &plain); /* the status is what matters */
    }
    return err == EW_OK ? ew__buf_view(buf)
                        : EW_STR("\"error\",\"error\":{\"message\":\"out of memory\",\"code\":\"RESOURCE_EXHAUSTED\"}");
}

static void send_fault(ew__rrq_peer *peer, const ew__rrq_ids *ids, const char *type, const ew_fault *fault) {
    ew__rpc_out message;
    ew__buf buf;
    ew__rrq_put_fault(&message, ids, fault_text(peer, &buf, type, fault, ids->job.len + ids->request.len + 100));
    ew__rrq_send(peer, &message, NULL);
    ew__buf_done(&buf);
}

static void refuse(ew__rrq_peer *peer, const ew__rrq_ids *ids, const char *type, ew_status status, ew_str message) {
    send_fault(peer, ids, type, &(ew_fault){.status = status, .message = message});
}

static void send_large(ew__rrq_call *entry, ew_str result) {
    ew__rpc_out message;
    ew__rrq_put_success(&message, &entry->ids, result);
    ew__rrq_send(ew__rrq_peer_of(entry), &message, entry->base.call);
}

static void send_result(ew__rrq_call *entry, ew_str result) {
    ew__rrq_peer *peer = ew__rrq_peer_of(entry);
    size_t len = ew__rrq_success_len(&entry->ids, result);
    bool fits = ew__rpc_fits(&peer->calls, len), place = ew__rpc_has_place(&peer->calls, len);
    if (EW__UNLIKELY(!fits || !place)) {
        refuse(peer, &entry->ids, NULL, EW_STATUS_RESOURCE_EXHAUSTED,
               fits ? EW_STR("the reader is too slow: too much waits for it")
                    : EW_STR("the result is too large for a frame"));
        return;
    }
    char *at = ew__rrq_message_room(peer, len);
    if (EW__LIKELY(at != NULL))
        ew__rrq_message_end(peer, at, ew__rrq_write_success(at, &entry->ids, result));
    else
        send_large(entry, result);
}

/* RRQ retries every error but those of one type: a fault that no further attempt can change is marked with that type. */
static const char *final_type(const ew__rrq_peer *peer, const ew_fault *fault) {
    bool retry = fault->retryable || fault->retry_after_ms;
    bool final = peer->peer.conn->site->final_statuses & EW_STATUS_BIT(fault->status);
    return final && !retry ? "handler_not_found" : NULL;
}

/* What a fault is called where the protocol has words of its own for it. */
static void send_end(ew__rrq_call *entry, const ew__end *end) {
    ew_fault fault = end->fault;
    if (end->origin == EW_ORIGIN_DEADLINE)
        fault.message = EW_STR("Job execution timed out");
    else if (end->status == EW_STATUS_CANCELLED && entry->cancelling)
        fault.message = EW_STR("Job cancelled");
    ew__rrq_peer *peer = ew__rrq_peer_of(entry);
    send_fault(peer, &entry->ids, final_type(peer, &fault), &fault);
}

/* ---- what the call tells its caller: onto the wire ---- */

/* Takes a call off the connection; the caller's reference is given back, and entry goes with it. */
static void let_go(ew__rrq_call *entry) {
    ew__rrq_peer *peer = ew__rrq_peer_of(entry);
    if (entry->ended) { /* its handler is still being called: it never was on the list */
        *entry->ended = true;
    } else {
        ew__rrq_index_remove(entry);
        ew__rpc_call_remove(&entry->base);
    }
    ew__call_release(entry->base.call);
    ew__rrq_check_drained(peer);
}

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)call;
    (void)json;
    return EW_OK; /* nobody asks for chunks on this wire */
}

static void on_end(ew_call *call, const ew__end *end) {
    ew__rrq_call *entry = call->caller_ud;
    if (EW__LIKELY(end->status == EW_STATUS_OK))
        send_result(entry, end->result);
    else
        send_end(entry, end);
    let_go(entry);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};

const ew__rrq_call *ew__rrq_served(const ew_call *call) { return call->caller == &caller ? call->caller_ud : NULL; }

void ew__rrq_let_go_all(ew__rrq_peer *peer) {
    bool reading = peer->reading;
    peer->reading = true; /* whoever calls this looks himself what becomes of the connection */
    while (peer->calls.served.first)
        let_go(ew__rrq_call_of(peer->calls.served.first));
    peer->reading = reading;
}

/* ---- cancel ---- */

static void on_not_stopped(ew__timer *timer, uint64_t now) {
    ew__rrq_call *entry = ew__container_of(timer, ew__rrq_call, base.timer);
    (void)now;
    refuse(ew__rrq_peer_of(entry), &entry->ids, NULL, EW_STATUS_CANCELLED, EW_STR("Job cancelled"));
    let_go(entry);
}

/*
 * The request's own outcome answers it: what the handler says when it is told to stop, or, if it does not listen, that
 * it was cancelled. It is not in the index any more: cancelled twice is cancelled once.
 */
static void cancel_call(ew__rrq_call *entry) {
    ew_call *call = ew_call_ref(entry->base.call); /* it may end in the handler, and entry goes with it */
    ew__executor *executor = call->executor;
    ew__rrq_index_remove(entry);
    entry->cancelling = true;
    ew__call_cancel(call, EW__CANCEL_ASKED);
    if (call->caller_open && ew__timer_set(&executor->timers, &entry->base.timer, executor->now + EW__MS(CANCEL_MS),
                                           on_not_stopped) != EW_OK)
        on_not_stopped(&entry->base.timer, executor->now);
    ew_call_unref(call);
}

/*
 * Cancels the requests with these ids that this principal opened. One that is not here has ended, or its connection is
 * slower than that of the cancel.
 */
static void cancel_all(ew__rrq_scratch *scratch, const ew__executor *executor, uint64_t from,
                       const ew__principal *owner, const ew__rrq_ids *ids) {
    ew__rrq_call *entry = ew__rrq_index_find(scratch, ids, owner);
    if (!entry)
        ew__rrq_early_add(scratch, executor, from, ids, owner);
    for (; entry; entry = ew__rrq_index_find(scratch, ids, owner))
        cancel_call(entry);
}

/* Whether the request was cancelled before it arrived. */
static bool was_cancelled(ew__rrq_peer *peer, ew_str request) {
    ew__rrq_scratch *scratch = scratch_of(peer);
    ew__conn *conn = peer->peer.conn;
    if (EW__LIKELY(scratch->early_until < conn->executor->now))
        return false;
    ew__principal owner = ew__principal_of(conn->executor, ew__conn_who(conn));
    return ew__rrq_early_take(scratch, conn->executor, peer->number, request, &owner);
}

/* Sends the ids to the other loops, as an array. */
static void broadcast_cancel(ew__rrq_peer *peer, const ew__principal *owner, const ew__rrq_ids *ids) {
    struct ew__broadcast *broadcast = peer->peer.conn->site->broadcast;
    char text[TOLD_MAX + 16];
    size_t n = 0;
    if (!broadcast)
        return;
    text[n++] = '[';
    memcpy(text + n, ids->job.ptr, ids->job.len);
    n += ids->job.len;
    if (ids->request.len) {
        text[n++] = ',';
        memcpy(text + n, ids->request.ptr, ids->request.len);
        n += ids->request.len;
    }
    text[n++] = ']';
    (void)broadcast->send(broadcast, peer->peer.conn->executor, &ew__wire_rrq, EW__ALL_OTHER_LOOPS, owner,
                          ew__str(text, n));
}

void ew__rrq_on_broadcast(void *scratch, ew__executor *executor, const ew__principal *sender, ew_str text) {
    ew_json_iter it = {.offset_ = 0};
    ew__rrq_ids ids = {.job = {NULL, 0}};
    if (ew_json_next(text, &it))
        ids.job = it.value;
    if (ids.job.len && ew_json_next(text, &it))
        ids.request = it.value;
    if (ids.job.len)
        cancel_all(scratch, executor, 0, sender, &ids);
}

/*
 * A cancel may arrive on any connection. It applies only to requests of the principal that sends it. The job's id is not
 * compared when the request's is given.
 */
static const char *serve_cancel(ew__rrq_peer *peer, const ew__rrq_message *message) {
    ew__rrq_cancel cancel;
    const char *problem = ew__rrq_read_cancel(message, &cancel);
    if (problem || cancel.foreign)
        return problem;
    ew__conn *conn = peer->peer.conn;
    ew_fault fault;
    if (!ew__gate_is_authenticated(conn->executor, ew__conn_who(conn), &fault)) {
        ew__rpc_late(&peer->calls); /* a cancel has no answer that could carry the fault */
        return NULL;
    }
    ew__principal owner = ew__principal_of(conn->executor, ew__conn_who(conn));
    bool here = cancel.ids.request.len && ew__rrq_index_find(scratch_of(peer), &cancel.ids, &owner);
    if (!here)
        broadcast_cancel(peer, &owner, &cancel.ids); /* first: a call that ends may free the text of the frame */
    cancel_all(scratch_of(peer), conn->executor, peer->number, &owner, &cancel.ids);
    return NULL;
}

/* ---- requests ---- */

/* false: it has passed. */
static bool set_deadline(ew__rrq_peer *peer, ew_call *call, const ew__rrq_request *request) {
    ew__executor *executor = call->executor;
    uint64_t most = executor->limits->call_ms;
    if (most)
        call->deadline = executor->now + EW__MS(most);
    if (!request->has_deadline)
        return true;
    int64_t left = request->deadline_ms - (int64_t)ew__rrq_wall_ms(scratch_of(peer), executor);
    if (left <= 0)
        return false;
    if ((uint64_t)left < (EW__NEVER - executor->now) / EW__MS(1)) { /* further away is never */
        uint64_t at = executor->now + EW__MS(left);
        call->deadline = at < call->deadline ? at : call->deadline;
    }
    return true;
}

/* The text of the frame becomes the call's: what was read from it moves along. */
static ew_err keep_text(ew__rrq_peer *peer, ew_call *call, ew_str text, ew__rrq_request *request) {
    const char *copy = text.ptr;
    if (!ew__rrq_give_frame(peer, call))
        copy = ew__arena_copy(&call->arena, text.ptr, text.len);
    if (!copy)
        return EW_ENOMEM;
    ew_str *const slices[] = {&request->ids.request, &request->ids.job, &request->params,
                              &request->context,     &request->labels,  &request->trace};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++)
        if (slices[i]->ptr >= text.ptr && slices[i]->ptr < text.ptr + text.len) /* no constant of the codec's */
            slices[i]->ptr = copy + (slices[i]->ptr - text.ptr);
    return EW_OK;
}

static ew__rrq_call *fill_call(ew__rrq_peer *peer, ew_call *call, ew_str text, ew__rrq_request *request) {
    ew__rrq_call *entry = ew_call_alloc(call, sizeof *entry);
    if (!entry || keep_text(peer, call, text, request) != EW_OK)
        return NULL;
    memset(entry, 0, sizeof *entry);
    entry->base.all = &peer->calls;
    entry->base.call = call;
    call->deep = peer->calls.deep;
    entry->base.id = request->ids.request;
    entry->base.size = (uint32_t)text.len;
    entry->ids = request->ids;
    entry->spans = request->spans;
    call->caller_ud = entry;
    call->wire = ew__wire_rrq.name;
    call->served.span_style = &ew__rrq_span_style;
    call->input = request->params;
    call->context = request->context;
    call->labels = request->labels;
    call->served.carrier = request->trace;
    call->attempt = request->attempt;
    call->hops = request->hops;
    return entry;
}

static void open_call(ew__rrq_peer *peer, ew_str text, ew__rrq_request *request, ew__action *action) {
    ew_call *call = ew__call_new(peer->peer.conn->executor, &caller, NULL);
    bool ended = false;
    if (call && !set_deadline(peer, call, request)) {
        refuse(peer, &request->ids, NULL, EW_STATUS_DEADLINE_EXCEEDED, EW_STR("Job deadline exceeded"));
        ew_call_unref(call);
        return;
    }
    ew__rrq_ids ids = request->ids; /* of the text, as long as it is not given away */
    ew__rrq_call *entry = call ? fill_call(peer, call, text, request) : NULL;
    if (!entry) {
        refuse(peer, &ids, NULL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory, or too many calls"));
        ew_call_unref(call);
        return;
    }
    entry->ended = &ended;
    call->served.who = ew__conn_who(peer->peer.conn);
    ew__call_open(call, action);
    if (ended)
        return;
    entry->ended = NULL;
    ew__rpc_call_add(&entry->base);
    ew__rrq_index_add(entry);
}

static void refuse_function(ew__rrq_peer *peer, const ew__rrq_ids *ids, ew_str name, ew_err why) {
    static const char several[] = "several actions have this name, use a key: ";
    char list[400];
    ew__buf text;
    ew__buf_init(&text, peer->peer.conn->executor->env, SIZE_MAX / 2);
    if (why == EW_ENOTFOUND) {
        ew__buf_cstr(&text, "No handler registered for function '");
        ew__buf_str(&text, name);
        ew__buf_char(&text, '\'');
        refuse(peer, ids, "handler_not_found", EW_STATUS_NOT_FOUND, ew__buf_view(&text));
    } else {
        ew__buf_cstr(&text, several);
        ew__buf_add(&text, list, ew__actions_matches(peer->peer.conn->site->actions, name, list, sizeof list));
        refuse(peer, ids, NULL, EW_STATUS_INVALID_ARGUMENT, ew__buf_view(&text));
    }
    ew__buf_done(&text);
}

static void list_actions(ew__rrq_peer *peer, const ew__rrq_ids *ids) {
    ew__conn *conn = peer->peer.conn;
    ew__rpc_out message;
    ew__buf own;
    ew_str list;
    ew_fault fault = {.status = EW_STATUS_RESOURCE_EXHAUSTED, .message = EW_STR("the list is too large for a frame")};
    ew_err err =
        ew__gate_list(conn->executor, ew__conn_who(conn), ew__wire_rrq.name, conn->site->actions, &own, &list, &fault);
    ew__rrq_put_success(&message, ids, list);
    if (err == EW_OK && ew__rpc_fits(&peer->calls, message.len))
        ew__rrq_send(peer, &message, NULL);
    else
        send_fault(peer, ids, NULL, &fault);
    ew__buf_done(&own);
}

/* Our extension: the first request on a connection may show a token. */
static void show_token(ew__rrq_peer *peer, const ew__rrq_request *request) {
    ew__conn *conn = peer->peer.conn;
    char buf[EW__TOKEN_LEN + 64];
    ew__rpc_out message;
    ew_fault fault;
    ew_str token = ew_json_typeof(request->params) == EW_JSON_OBJECT
                       ? ew__rpc_text(ew_json_member(request->params, EW_STR("token")), buf, sizeof buf)
                       : ew__str(NULL, 0);
    bool good = ew__gate_present_token(conn->executor, ew__conn_who(conn), token, &fault);
    peer->max = ew__conn_frame_max(conn);
    if (good) {
        ew__rrq_put_success(&message, &request->ids, EW_STR("null"));
        ew__rrq_send(peer, &message, NULL);
    } else {
        send_fault(peer, &request->ids, NULL, &fault);
    }
}

/* Whether the request is one of somebody who may ask; else it was answered. */
static bool admit(ew__rrq_peer *peer, const ew__rrq_request *request, ew_str name) {
    ew__conn *conn = peer->peer.conn;
    ew_fault fault;
    if (ew__str_is(name, EW_STR(EW__AUTH_METHOD))) {
        show_token(peer, request);
        return false;
    }
    if (ew__gate_is_authenticated(conn->executor, ew__conn_who(conn), &fault))
        return true;
    send_fault(peer, &request->ids, NULL, &fault);
    return false;
}

/* As it stands; else what stands behind "runner#": an orchestrator that does not take that off means us. */
static ew_err find_action(const ew__rrq_peer *peer, ew_str name, ew__action **ret) {
    const ew__actions *actions = peer->peer.conn->site->actions;
    ew_err err = actions ? ew__actions_find(actions, name, ret) : EW_ENOTFOUND;
    if (EW__LIKELY(err != EW_ENOTFOUND) || !actions)
        return err;
    ew_str handler = ew__rrq_handler_of(name);
    return handler.len && handler.len < name.len ? ew__actions_find(actions, handler, ret) : err;
}

/* Whether no request can be accepted now; *ret: the fault that refuses it. */
static bool busy(const ew__rrq_peer *peer, ew_fault *ret) {
    bool refused = ew__rpc_busy(&peer->calls, peer->draining, ret);
    if (!refused && peer->calls.served.n >= ew__rrq_limits(peer)->runner_calls) {
        *ret = ew__refusal(EW_STATUS_RESOURCE_EXHAUSTED, "Runner busy: too many in-flight requests");
        return true;
    }
    if (refused)
        ret->retryable = ret->status == EW_STATUS_UNAVAILABLE; /* RRQ puts the job back into its queue */
    return refused;
}

static void serve_request(ew__rrq_peer *peer, ew_str text, ew__rrq_request *request) {
    char buf[NAME_ROOM];
    ew_fault fault;
    ew__action *action = NULL;
    ew_str name = ew__rpc_text(request->function, buf, sizeof buf);
    if (EW__UNLIKELY(peer->peer.conn->executor->calls->gate != NULL) && !admit(peer, request, name))
        return;
    ew_err err = find_action(peer, name, &action);
    if (EW__UNLIKELY(busy(peer, &fault)))
        send_fault(peer, &request->ids, NULL, &fault);
    else if (EW__UNLIKELY(was_cancelled(peer, request->ids.request)))
        refuse(peer, &request->ids, NULL, EW_STATUS_CANCELLED, EW_STR("Job cancelled"));
    else if (EW__LIKELY(err == EW_OK))
        open_call(peer, text, request, action);
    else if (ew__str_is(name, EW_STR(EW__RRQ_LIST)))
        list_actions(peer, &request->ids);
    else if (ew__str_is(name, EW_STR(EW__AUTH_METHOD)))
        show_token(peer, request); /* nobody asks for it here */
    else
        refuse_function(peer, &request->ids, name, err);
}

/* ---- frames ---- */

/*
 * Something that we cannot make sense of: whoever sent it is told, if it says whom it is about. Then the connection is
 * of no more use; what runs on it still ends.
 */
static void refuse_message(ew__rrq_peer *peer, const ew__rrq_ids *ids, const char *problem) {
    ew__log(peer->peer.conn->executor->env, EW_LOG_WARN, "rrq", "bad message: %s", problem);
    if (ids && ids->request.len && ids->job.len)
        refuse(peer, ids, NULL, EW_STATUS_INVALID_ARGUMENT, ew_str_from(problem));
    peer->broken = true;
}

/* No message of ours. It is not answered if that could be taken for the outcome of a request that runs. */
static void refuse_unknown(ew__rrq_peer *peer, const ew__rrq_message *message, const char *problem) {
    ew__rrq_ids ids = {.job = {NULL, 0}};
    if (message->payload.len)
        ew__rrq_read_ids(message, &ids);
    bool runs = ids.request.len && ew__rrq_index_find(scratch_of(peer), &ids, NULL);
    refuse_message(peer, runs ? NULL : &ids, problem);
}

static void refuse_outcome(ew__rrq_peer *peer, const ew__rrq_message *message) {
    ew__rrq_ids ids;
    ew__rrq_read_ids(message, &ids);
    refuse(peer, &ids, NULL, EW_STATUS_INVALID_ARGUMENT, EW_STR("unexpected response message"));
}

bool ew__rrq_serve_large(ew__rrq_peer *peer, const ew__skim *skim, const char *problem) {
    ew__rrq_ids ids;
    ew__rrq_kind kind = ew__rrq_read_skim(skim, &ids);
    if (kind == EW__RRQ_NONE || !ids.request.len || !ids.job.len)
        return false;
    if (kind != EW__RRQ_REQUEST || ew__rrq_index_find(scratch_of(peer), &ids, NULL))
        ew__rpc_late(&peer->calls); /* an outcome with that id would be that of the request that runs */
    else
        refuse(peer, &ids, NULL, EW_STATUS_RESOURCE_EXHAUSTED, ew_str_from(problem));
    return true;
}

void ew__rrq_serve(ew__rrq_peer *peer, ew_str text) {
    ew__rrq_message message;
    ew__rrq_request request;
    if (EW__LIKELY(ew__rrq_read_known(text, &request))) {
        serve_request(peer, text, &request);
        return;
    }
    const char *problem = ew__rrq_read(text, &message);
    if (EW__UNLIKELY(problem == ew__rrq_too_deep)) {
        ew__rrq_refuse_deep(peer, text);
    } else if (EW__UNLIKELY(problem != NULL)) {
        refuse_unknown(peer, &message, problem);
    } else if (message.kind == EW__RRQ_REQUEST) {
        ew__rpc_calls_mark_depth(&peer->calls, &message.doc);
        problem = ew__rrq_read_request(&message, &request);
        if (EW__UNLIKELY(problem != NULL))
            refuse_message(peer, &request.ids, problem);
        else if (EW__UNLIKELY(request.foreign))
            refuse(peer, &request.ids, NULL, EW_STATUS_INVALID_ARGUMENT, EW_STR("Unsupported protocol version"));
        else
            serve_request(peer, text, &request);
    } else if (message.kind == EW__RRQ_CANCEL) {
        problem = serve_cancel(peer, &message);
        if (problem)
            refuse_message(peer, NULL, problem);
    } else {
        refuse_outcome(peer, &message);
    }
}
