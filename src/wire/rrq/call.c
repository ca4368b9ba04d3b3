/*
 * wire/rrq/call.c: requests that leave: we are the orchestrator. To the call model this is their callee's end: it is
 * told their cancelling, and owes each of them one end, which the runner says, or the connection's death.
 *
 * A runner that was asked for an end gets some time for it. If it stays silent the call ends without it, but its
 * request still runs there and keeps its place. Once only such requests are left on the connection it is closed (which
 * cancels them), and a process of ours is ended; when they are many, no further ones are given to it, so that this
 * comes. So nobody else's request is lost with a stuck one.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/rrq/rrq.h"

#define FEW_PLACES 64 /* with fewer than that none is left alone */
#define SPARE_PLACES 4
#define STUCK_SHARE 4     /* one in so many places: then it is given no more */
#define MESSAGE_ROOM 1024 /* messages of errors with escapes are decoded, up to here */

static ew__executor *executor_of(const ew__rrq_call *entry) { return entry->base.call->executor; }

/* ---- the end of a call ---- */

/* A request ended: the next may come. */
static void tell_ready(ew__rrq_peer *peer) {
    ew__conn *conn = peer->peer.conn;
    ew__rrq_check_drained(peer);
    if (!peer->closed && conn->ops->ready)
        conn->ops->ready(conn);
}

static void check_stuck(ew__rrq_peer *peer) {
    if (peer->closed || peer->n_stuck == 0 || peer->calls.sent.n > peer->n_stuck)
        return;
    ew__log(peer->peer.conn->executor->env, EW_LOG_WARN, "rrq",
            "the runner does not end %u request(s) that it was asked to end: giving it up", peer->n_stuck);
    peer->peer.conn->stuck = true;
    ew__rrq_abort(peer);
}

/* Takes a request off the connection. The caller of this gives the reference back after it has ended the call. */
static ew_call *detach(ew__rrq_call *entry) {
    ew__rrq_peer *peer = ew__rrq_peer_of(entry);
    if (entry->phase == EW__RRQ_STUCK)
        peer->n_stuck--;
    ew__rpc_call_remove(&entry->base);
    return entry->base.call;
}

static void fail_as(ew__rrq_call *entry, ew_origin origin, ew_status status, ew_str message) {
    bool over = entry->phase == EW__RRQ_STUCK;
    ew_call *call = detach(entry);
    if (!over)
        ew__call_fail_as(call, origin, status, message);
    ew_call_unref(call);
}

void ew__rrq_fail_sent(ew__rrq_peer *peer, ew_origin origin, ew_status status, ew_str message) {
    while (peer->calls.sent.first)
        fail_as(ew__rrq_call_of(peer->calls.sent.first), origin, status, message);
}

static void fail_one(ew__rrq_call *entry, const char *problem) {
    ew__rrq_peer *peer = ew__rrq_peer_of(entry);
    fail_as(entry, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, ew_str_from(problem));
    check_stuck(peer);
    tell_ready(peer);
}

/* ---- what the call tells its callee: onto the wire ---- */

static void on_open(ew_call *call) { (void)call; /* calls reach a wire opened (wire.h) */ }

/* Whether the transport has taken all of the request. */
static bool has_left(const ew__rrq_call *entry) {
    const ew__rrq_peer *peer = ew__rrq_peer_of(entry);
    return entry->end_at + peer->peer.conn->out.bytes <= peer->n_queued;
}

/*
 * On a connection of its own, so that it overtakes whatever waits on this one; but not its request: while that waits,
 * the cancel follows it here. Here, too, where there is no other connection.
 */
static void send_cancel(ew__rrq_call *entry) {
    ew__rrq_peer *peer = ew__rrq_peer_of(entry);
    ew__conn *conn = peer->peer.conn;
    ew__rpc_out message;
    uint8_t frame[EW__LENPFX_HEAD + 2 * EW__RRQ_ID_MAX + 128];
    ew__rrq_put_cancel(&message, &entry->ids);
    bool alone =
        conn->ops->one_shot && !conn->site->token.len && has_left(entry); /* another one would need the token */
    if (alone && message.len + EW__LENPFX_HEAD <= sizeof frame && ew__lenpfx_head(message.len, message.len, frame)) {
        (void)ew__rpc_out_copy(&message, frame + EW__LENPFX_HEAD);
        if (conn->ops->one_shot(conn, frame, message.len + EW__LENPFX_HEAD) == EW_OK)
            return;
    }
    ew__rrq_send(peer, &message, NULL);
}

static void give_up(ew__rrq_call *entry) {
    ew__rrq_peer *peer = ew__rrq_peer_of(entry);
    entry->phase = EW__RRQ_STUCK;
    peer->n_stuck++;
    ew__call_fail_as(entry->base.call, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED,
                     EW_STR("the call was cancelled, and the runner has not ended it"));
    check_stuck(peer);
    tell_ready(peer);
}

static void on_no_end(ew__timer *timer, uint64_t now);

/* Without a timer it is as if the time were over. */
static void wait_for_end(ew__rrq_call *entry, uint8_t phase) {
    ew__executor *executor = executor_of(entry);
    uint64_t ms = executor->limits->runner_grace_ms;
    entry->phase = phase;
    if (phase == EW__RRQ_CANCELLING)
        send_cancel(entry);
    else
        ms /= 2; /* its own timeout should come now; then it is asked */
    if (ew__timer_set(&executor->timers, &entry->base.timer, executor->now + EW__MS(ms), on_no_end) != EW_OK)
        give_up(entry);
}

static void on_no_end(ew__timer *timer, uint64_t now) {
    ew__rrq_call *entry = ew__container_of(timer, ew__rrq_call, base.timer);
    (void)now;
    if (entry->phase == EW__RRQ_LATE)
        wait_for_end(entry, EW__RRQ_CANCELLING);
    else
        give_up(entry);
}

/* The runner knows the deadline: it is given the time to say so itself. */
static void on_cancel(ew_call *call, ew__cancel_why why) {
    wait_for_end(call->callee_ud, why == EW__CANCEL_DEADLINE ? EW__RRQ_LATE : EW__RRQ_CANCELLING);
}

void ew__rrq_leave(ew__peer *base) {
    ew__rrq_peer *peer = (ew__rrq_peer *)(void *)base;
    for (ew__rpc_call *at = peer->calls.sent.first; at && !peer->closed; at = at->next) {
        ew__rrq_call *entry = ew__rrq_call_of(at);
        if (entry->phase >= EW__RRQ_CANCELLING)
            continue;
        entry->phase = EW__RRQ_CANCELLING;
        send_cancel(entry);
    }
}

static const ew__callee_ops callee = {.open = on_open, .cancel = on_cancel};

/* ---- opening ---- */

static bool is_object(ew_str json) { return ew_json_typeof(json) == EW_JSON_OBJECT; }

const char *ew__rrq_refuses(const ew_request_options *options) {
    if (options->input_stream)
        return "the rrq wire carries no input stream";
    if (options->input.len && !is_object(options->input) && ew_json_typeof(options->input) != EW_JSON_NULL)
        return "the rrq wire carries only an object as input: it becomes the params of the job";
    if (ew__rrq_handler_of(options->action).len == 0)
        return "the name of the handler is missing";
    return ew__rrq_context_problem(options->context);
}

/*
 * RRQ's runners take 64 requests at a time, and the Rust one counts a request for a moment after it has answered it:
 * with all places in use the next one may be told that it is busy.
 */
uint64_t ew__rrq_most(const ew_limits *limits) {
    return limits->runner_calls >= FEW_PLACES ? limits->runner_calls - SPARE_PLACES : limits->runner_calls;
}

uint32_t ew__rrq_capacity(const ew__peer *base) {
    const ew__rrq_peer *peer = (const ew__rrq_peer *)(const void *)base;
    const ew_limits *limits = ew__rrq_limits(peer);
    bool full = base->conn->out.bytes >= limits->out_max_bytes / 2;
    bool sick = (uint64_t)peer->n_stuck * STUCK_SHARE >= limits->runner_calls;
    if (full || sick || peer->closed || peer->draining || peer->calls.sent.n >= ew__rrq_most(limits))
        return 0;
    return (uint32_t)(ew__rrq_most(limits) - peer->calls.sent.n);
}

/*
 * Ids of our own look like UUIDs: what is chance in them is drawn for each connection, and their last digits count up,
 * so that requests under way are found by those (rpc_calls.h).
 */
#define ID_DIGITS 12

static void init_id(ew__rrq_own_id *id, ew__rng *rng) {
    id->text[0] = id->text[EW__UUID_LEN + 1] = '"';
    ew__uuid_write(rng, id->text + 1);
    memset(id->text + 1 + EW__UUID_LEN - ID_DIGITS, '0', ID_DIGITS);
}

void ew__rrq_ids_init(ew__rrq_peer *peer) {
    ew__rng *rng = &peer->peer.conn->executor->rng;
    init_id(&peer->request, rng);
    init_id(&peer->job, rng);
}

static ew_str next_id(ew__rrq_own_id *id) {
    char *digit = id->text + EW__UUID_LEN, *first = digit - (ID_DIGITS - 1);
    for (; digit > first && *digit == '9'; digit--)
        *digit = '0';
    *digit = *digit == '9' ? '0' : (char)(*digit + 1);
    return ew__str(id->text, sizeof id->text);
}

/* The given text in quotes, in the call's memory. */
static ew_err quote_id(ew_call *call, ew_str given, ew_str *ret) {
    ew__buf quoted;
    ew__buf_init(&quoted, call->executor->env, EW__RRQ_ID_MAX);
    ew_err err = ew__json_write_str(&quoted, given, false);
    if (err == EW_OK)
        err = ew__arena_str(&call->arena, ew__buf_view(&quoted), ret);
    ew__buf_done(&quoted);
    return err;
}

/* A job that the caller's context names keeps its id; the request has a new one each time. */
static ew_err choose_ids(ew__rrq_peer *peer, ew_call *call, ew_str job, ew__rrq_ids *ret) {
    ew_err err = ew__arena_str(&call->arena, job.len ? job : next_id(&peer->job), &ret->job);
    if (err != EW_OK)
        return err;
    return call->outgoing.wire_id.len ? quote_id(call, call->outgoing.wire_id, &ret->request)
                                      : ew__arena_str(&call->arena, next_id(&peer->request), &ret->request);
}

static uint64_t wall_deadline(const ew_call *call, uint64_t wall_ms) {
    uint64_t now = call->executor->now;
    return wall_ms + (call->deadline > now ? (call->deadline - now) / EW__MS(1) : 0);
}

#define SCRATCH_KEPT ((size_t)16 * 1024)

/* A buffer for this turn, with the memory of the last one unless that was large. */
static ew__buf *empty(ew__buf *buf, const ew_env *env) {
    if (buf->cap > SCRATCH_KEPT)
        ew__buf_done(buf);
    if (!buf->env)
        ew__buf_init(buf, env, SIZE_MAX / 2);
    ew__buf_clear(buf);
    return buf;
}

/* In pieces, which the connection may send from where they are. EW_OK, EW_ENOMEM, EW_ELIMIT (too large). */
static ew_err send_large(ew__rrq_peer *peer, ew_call *call, const ew__rrq_ask *ask, ew_str input) {
    ew__rrq_scratch *scratch = peer->peer.conn->scratch;
    ew__buf *head = empty(&scratch->head, call->executor->env), *tail = empty(&scratch->tail, call->executor->env);
    ew__rpc_out message;
    ew_err err = ew__rrq_write_request(head, tail, ask);
    if (err != EW_OK)
        return err;
    ew__rpc_out_begin(&message, ew__buf_view(head));
    ew__rpc_out_add(&message, input);
    ew__rpc_out_add(&message, ew__buf_view(tail));
    if (!ew__rpc_fits(&peer->calls, message.len))
        return EW_ELIMIT;
    ew__rrq_send(peer, &message, call);
    return EW_OK;
}

static ew_err send_request(ew__rrq_peer *peer, ew_call *call, const ew__rrq_ids *ids, const ew__rrq_context *context) {
    bool list = call->kind == EW__CALL_LIST;
    ew_str input = list || !is_object(call->input) ? EW_STR("{}") : call->input;
    char parent[EW__TRACEPARENT_LEN];
    ew__rrq_scratch *scratch = peer->peer.conn->scratch;
    uint64_t wall = ew__rrq_wall_ms(scratch, call->executor);
    ew__trace_parent(ew__call_trace(call), parent);
    ew__rrq_ask ask = {.ids = *ids,
                       .function = list ? EW_STR(EW__RRQ_LIST) : ew__rrq_handler_of(call->key),
                       .now_ms = wall,
                       .has_deadline = call->deadline != EW__NEVER,
                       .attempt = call->attempt,
                       .hops = call->hops,
                       .context = context,
                       .labels = call->labels,
                       .traceparent = ew__str(parent, sizeof parent),
                       .tracestate = call->tracestate,
                       .memos = scratch->memos};
    if (ask.has_deadline)
        ask.deadline_ms = wall_deadline(call, wall);
    char *first = ew__rrq_message_room(peer, ew__rrq_ask_most(&ask) + input.len), *at = first;
    if (EW__UNLIKELY(!first))
        return send_large(peer, call, &ask, input);
    at = ew__rrq_put_head(at, &ask);
    memcpy(at, input.ptr, input.len);
    at = ew__rrq_put_tail(at + input.len, &ask);
    ew__rrq_message_end(peer, first, at);
    return EW_OK;
}

/* The context of a call that came by this wire has been read; what it is made of then can be copied. */
static void read_context(const ew_call *call, ew__rrq_context *ret) {
    const ew_call *near = call->lender && call->lender->executor == call->executor ? call->lender : NULL;
    const ew__rrq_call *came = near ? ew__rrq_served(near) : NULL;
    if (came && came->spans.rest && call->context.len && call->context.ptr == near->context.ptr &&
        call->labels.ptr == near->labels.ptr && call->attempt == near->attempt)
        ew__rrq_reuse_context(call->context, &came->spans, ret);
    else
        ew__rrq_read_context(call->context, ret);
}

static ew_err add_call(ew__rrq_peer *peer, ew__rrq_call *entry, ew_call *call, ew_str job) {
    memset(entry, 0, sizeof *entry);
    entry->base.all = &peer->calls;
    entry->base.call = call;
    ew_err err = choose_ids(peer, call, job, &entry->ids);
    entry->base.id = entry->ids.request;
    entry->base.own_id = call->outgoing.wire_id.len == 0;
    return err == EW_OK ? ew__rpc_call_send(&entry->base, &callee) : err;
}

static ew_str unsent_reason(ew_err err) {
    return err == EW_ELIMIT    ? EW_STR("the input, or an id, is too large for this connection")
           : err == EW_EEXISTS ? EW_STR("a call with this id still runs")
                               : EW_STR("out of memory");
}

/* What must never be sent is looked at in any case; but the context of a call that a bridge hands over was asked for. */
static const char *problem_of(const ew_call *call) {
    ew_request_options options = {.action = call->key, .input = call->input, .input_stream = call->has_input};
    if (!call->lender)
        options.context = call->context;
    return call->kind == EW__CALL_LIST ? NULL : ew__rrq_refuses(&options);
}

ew_err ew__rrq_open(ew__peer *base, ew_call *call) {
    ew__rrq_peer *peer = (ew__rrq_peer *)(void *)base;
    if (ew__rrq_capacity(base) == 0)
        return EW_EBUSY;
    call->wire = base->wire->name;
    const char *problem = problem_of(call);
    if (problem) {
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_INVALID_ARGUMENT, ew_str_from(problem));
        return EW_OK;
    }
    ew__rrq_context context;
    read_context(call, &context);
    ew__rrq_call *entry = ew_call_alloc(call, sizeof *entry);
    ew_err err = entry ? add_call(peer, entry, call, context.value[EW__RRQ_JOB]) : EW_ENOMEM;
    if (err != EW_OK) {
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, unsent_reason(err));
        return EW_OK;
    }
    err = send_request(peer, call, &entry->ids, &context);
    entry->end_at = peer->n_queued;
    if (err != EW_OK)
        fail_as(entry, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, unsent_reason(err));
    return EW_OK;
}

/* ---- what the runner says: into the call ---- */

/* Two spellings of one string are one id. */
static bool same_id(ew_str a, ew_str b) {
    char x[EW__RRQ_ID_MAX], y[EW__RRQ_ID_MAX];
    return ew__str_is(a, b) || ew__str_is(ew__rpc_key(a, x, sizeof x), ew__rpc_key(b, y, sizeof y));
}

static void end_call(ew__rrq_call *entry, const ew__rrq_outcome *outcome) {
    ew__rrq_peer *peer = ew__rrq_peer_of(entry);
    ew_call *call = detach(entry);
    ew_fault fault = outcome->fault;
    if (outcome->success && call->kind == EW__CALL_LIST && !is_object(outcome->result))
        ew__call_fail_as(call, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL,
                         EW_STR("the answer to " EW__RRQ_LIST " is no object"));
    else if (outcome->success)
        (void)ew__call_done_valid(call, outcome->result);
    else {
        if (call->kind == EW__CALL_LIST && outcome->no_handler)
            fault = (ew_fault){.status = EW_STATUS_UNIMPLEMENTED,
                               .message = EW_STR("the runner cannot list its actions: RRQ has no message for it")};
        ew__call_fault(call, &fault);
    }
    ew_call_unref(call);
    check_stuck(peer);
    tell_ready(peer);
}

static void on_outcome(ew__rrq_call *entry, const ew__rrq_message *message, const ew__rrq_ids *ids) {
    char text[MESSAGE_ROOM];
    ew__rrq_outcome outcome = {.ids = *ids, .text = text, .room = sizeof text};
    if (entry->phase == EW__RRQ_STUCK) { /* at last; its call has ended long ago */
        ew__rrq_peer *peer = ew__rrq_peer_of(entry);
        ew__rpc_late(&peer->calls);
        ew_call_unref(detach(entry));
        check_stuck(peer);
        tell_ready(peer);
        return;
    }
    if (!same_id(ids->job, entry->ids.job)) {
        fail_one(entry, "the outcome is for another job");
        return;
    }
    ew__buf_init(&outcome.details, executor_of(entry)->env, SIZE_MAX / 2);
    const char *problem = ew__rrq_read_outcome(message, &outcome);
    if (problem)
        fail_one(entry, problem);
    else
        end_call(entry, &outcome);
    ew__buf_done(&outcome.details);
}

/* Whose it is cannot be told by its request: the job's, or the only one that there is. NULL: nobody knows. */
static ew__rrq_call *whose(const ew__rrq_peer *peer, const ew__rrq_ids *ids) {
    ew__rpc_call *found = NULL;
    unsigned n = 0;
    if (peer->calls.sent.n == 1)
        return ew__rrq_call_of(peer->calls.sent.first);
    for (ew__rpc_call *at = peer->calls.sent.first; at && ids->job.len; at = at->next) {
        if (same_id(ew__rrq_call_of(at)->ids.job, ids->job)) {
            found = at;
            n++;
        }
    }
    return n == 1 ? ew__rrq_call_of(found) : NULL;
}

static void on_nameless(ew__rrq_peer *peer, const ew__rrq_ids *ids) {
    ew__rrq_call *entry = whose(peer, ids);
    if (entry)
        fail_one(entry, "the outcome has no request_id");
    else if (peer->calls.sent.n)
        ew__rrq_break_off(peer, EW_STR("the runner sent an outcome without a request_id"));
    else
        ew__rpc_late(&peer->calls);
}

/* A success in the usual form, for a request that waits for it: no more is to be looked at. */
static bool on_known_success(ew__rrq_peer *peer, ew_str text) {
    ew__rrq_outcome outcome = {.success = true};
    if (!ew__rrq_read_known_success(text, &outcome.ids, &outcome.result))
        return false;
    ew__rrq_call *entry = ew__rrq_call_of(ew__rpc_call_sent(&peer->calls, outcome.ids.request));
    if (!entry || entry->phase == EW__RRQ_STUCK || !ew__str_is(outcome.ids.job, entry->ids.job))
        return false;
    end_call(entry, &outcome);
    return true;
}

bool ew__rrq_answer_large(ew__rrq_peer *peer, const ew__skim *skim, const char *problem) {
    ew__rrq_ids ids;
    ew__rrq_kind kind = ew__rrq_read_skim(skim, &ids);
    if (kind != EW__RRQ_RESPONSE || !ids.request.len)
        return false;
    ew__rrq_call *entry = ew__rrq_call_of(ew__rpc_call_find(&peer->calls.sent, ids.request));
    if (!entry) {
        ew__rpc_late(&peer->calls);
        return true;
    }
    fail_as(entry, EW_ORIGIN_PROTOCOL, EW_STATUS_RESOURCE_EXHAUSTED, ew_str_from(problem));
    check_stuck(peer);
    tell_ready(peer);
    return true;
}

void ew__rrq_answer(ew__rrq_peer *peer, ew_str text) {
    ew__rrq_message message;
    ew__rrq_ids ids;
    if (on_known_success(peer, text))
        return;
    const char *problem = ew__rrq_read(text, &message);
    if (EW__UNLIKELY(problem == ew__rrq_too_deep)) {
        ew__rrq_refuse_deep(peer, text);
        return;
    }
    if (problem) {
        ew__rrq_break_off(peer, EW_STR("the runner sent something that is no message of RRQ's"));
        return;
    }
    if (message.kind != EW__RRQ_RESPONSE) {
        ew__rpc_late(&peer->calls); /* a runner asks nothing */
        return;
    }
    ew__rpc_calls_mark_depth(&peer->calls, &message.doc);
    ew__rrq_read_ids(&message, &ids);
    ew__rpc_call *entry = ids.request.len ? ew__rpc_call_find(&peer->calls.sent, ids.request) : NULL;
    if (entry)
        on_outcome(ew__rrq_call_of(entry), &message, &ids);
    else if (ids.request.len)
        ew__rpc_late(&peer->calls); /* late, or of nobody */
    else
        on_nameless(peer, &ids);
}
