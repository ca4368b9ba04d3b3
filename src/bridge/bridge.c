/*
 * bridge/bridge.c: see bridge.h. The state of a bridged call lies in the memory of the inbound call. All events are on
 * one executor; they may be nested: an end inside an open, a cancel inside a chunk.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/bridge.h"
#include "call/input_queue.h"
#include "call/stack_trace.h"

typedef struct bridged_call {
    ew_call *inbound;  /* a reference until the outbound call has ended */
    ew_call *outbound; /* the caller's reference; or NULL */
    ew__bridge *bridge;
    uint32_t first, tried; /* index of the first upstream tried, and how many were */
    bool in_chunk;         /* a chunk of the outbound call is being passed on */
    bool cancelled;        /* the inbound call is */
    bool feeding;          /* queued input is being passed on */
    bool input_end_sent;   /* to the outbound call */
    bool committed;        /* an upstream has received input, or has sent a chunk: the call stays with it */
    bool hides_stack;      /* the caller must not see stack traces */
} bridged_call;

static void try_next(bridged_call *b);

/* ---- memory ---- */

ew__upstream *ew__upstream_ref(ew__upstream *upstream) {
    atomic_fetch_add_explicit(&upstream->refs, 1, memory_order_relaxed);
    return upstream;
}

void ew__upstream_unref(ew__upstream *upstream) {
    if (atomic_fetch_sub_explicit(&upstream->refs, 1, memory_order_acq_rel) == 1)
        upstream->free(upstream);
}

ew__bridge *ew__bridge_new(const ew_env *env, ew__upstream *const *upstreams, const ew_str *names, uint32_t n) {
    size_t size = sizeof(ew__bridge) + n * (sizeof(ew__upstream *) + sizeof(ew_str));
    for (uint32_t i = 0; i < n; i++)
        size += names[i].len;
    ew__bridge *bridge = ew__zalloc(env, size);
    if (!bridge)
        return NULL;
    atomic_init(&bridge->refs, 1);
    bridge->env = env;
    bridge->size = size;
    bridge->n_upstreams = n;
    bridge->names = (ew_str *)(void *)(bridge + 1);
    bridge->upstreams = (ew__upstream **)(void *)(bridge->names + n);
    char *text = (char *)(bridge->upstreams + n);
    for (uint32_t i = 0; i < n; i++) {
        bridge->upstreams[i] = ew__upstream_ref(upstreams[i]);
        memcpy(text, names[i].ptr, names[i].len);
        bridge->names[i] = ew__str(text, names[i].len);
        text += names[i].len;
    }
    return bridge;
}

void ew__bridge_drop(void *ud) {
    ew__bridge *bridge = ud;
    if (atomic_fetch_sub_explicit(&bridge->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < bridge->n_upstreams; i++)
        ew__upstream_unref(bridge->upstreams[i]);
    ew__free(bridge->env, bridge, bridge->size);
}

/* ---- outbound to inbound ---- */

/*
 * The inbound call may be cancelled while it takes the chunk. The cancel is not passed on then, because the outbound call
 * is still delivering the chunk: the return value stops it.
 */
static ew_err on_outbound_batch(ew_call *outbound, const ew_str *row, size_t *n) {
    bridged_call *b = outbound->caller_ud;
    bool before = b->cancelled;
    b->in_chunk = b->committed = true;
    ew_err err = *n == 1 ? ew__call_chunk_valid(b->inbound, row[0]) : ew__call_chunk_row(b->inbound, row, n);
    b->in_chunk = false;
    if (b->cancelled && !before)
        return err < 0 ? err : EW_ECANCELLED;
    return err == EW_ECANCELLED || err == EW_EENDED ? EW_OK : err; /* late: the cancel is under way */
}

static ew_err on_outbound_chunk(ew_call *outbound, ew_str chunk) {
    size_t n = 1;
    return on_outbound_batch(outbound, &chunk, &n);
}

/* The upstream was not reached, or refuses calls at the moment: others are tried first for EW__UPSTREAM_PAUSE_MS. */
static bool is_away(const ew__end *end) {
    return end->origin == EW_ORIGIN_CONNECT || (end->fault.refused && end->fault.status == EW_STATUS_UNAVAILABLE);
}

/* No handler was started: the call never reached a connection, or the upstream refused it. */
static bool may_go_elsewhere(const bridged_call *b, const ew_call *outbound, const ew__end *end) {
    bool local = end->origin == EW_ORIGIN_CONNECT || end->origin == EW_ORIGIN_LOCAL;
    bool unstarted = (local && !outbound->outgoing.begun) || end->fault.refused;
    return unstarted && !b->committed && !b->cancelled && b->inbound->caller_open && b->tried < b->bridge->n_upstreams;
}

static ew__upstream *upstream_of(const bridged_call *b) {
    return b->bridge->upstreams[(b->first + b->tried - 1) % b->bridge->n_upstreams];
}

static void note_health(const bridged_call *b, const ew__end *end) {
    atomic_ullong *down_until = &upstream_of(b)->down_until;
    if (is_away(end))
        atomic_store_explicit(down_until, b->inbound->executor->now + EW__MS(EW__UPSTREAM_PAUSE_MS),
                              memory_order_relaxed);
    else if (atomic_load_explicit(down_until, memory_order_relaxed))
        atomic_store_explicit(down_until, 0, memory_order_relaxed);
}

/* The one place where every fault of an upstream passes, whichever wires it crosses. */
static void pass_fault(const bridged_call *b, const ew_fault *from) {
    ew_fault fault = *from;
    if (b->hides_stack && fault.details.len)
        ew__stack_trace_remove(&b->inbound->arena, b->inbound->executor->env, &fault.details);
    ew__call_fault(b->inbound, &fault);
}

static void pass_end(bridged_call *b, ew_call *outbound, const ew__end *end) {
    ew_call *inbound = b->inbound, *lender = inbound->lender;
    inbound->lender = outbound; /* borrowed: b holds a reference to inbound, so inbound outlives this function */
    if (end->status == EW_STATUS_OK)
        (void)ew__call_done_valid(inbound, end->result);
    else
        pass_fault(b, &end->fault);
    inbound->lender = lender;
}

static void on_outbound_end(ew_call *outbound, const ew__end *end) {
    bridged_call *b = outbound->caller_ud;
    ew_call *inbound = b->inbound; /* b lies in its memory */
    note_health(b, end);
    atomic_fetch_sub_explicit(&upstream_of(b)->calls, 1, memory_order_release);
    b->outbound = NULL;
    if (may_go_elsewhere(b, outbound, end)) {
        ew__call_release(outbound);
        try_next(b);
        return;
    }
    pass_end(b, outbound, end);
    ew__call_release(outbound);
    ew_call_unref(inbound);
}

/* ---- inbound to outbound ---- */

/* Passes on queued input until the outbound call is full. */
static void feed(bridged_call *b) {
    ew_call *inbound = ew_call_ref(b->inbound);
    b->feeding = true;
    while (b->outbound && !b->outbound->input_full && inbound->local.in_head) {
        struct ew__input_item *item = ew__input_queue_take(inbound);
        b->committed = true;
        (void)ew__call_input(b->outbound, ew__input_item_text(item)); /* a lost chunk ends both calls */
        ew__input_item_free(inbound, item);
    }
    b->feeding = false;
    if (b->outbound && !inbound->local.in_head && inbound->input_ended && !b->outbound->input_full &&
        !b->input_end_sent) {
        b->input_end_sent = b->committed = true;
        ew__call_input_end(b->outbound);
    }
    if (b->outbound && !inbound->local.in_head && !b->outbound->input_full)
        ew__call_input_room(inbound);
    ew_call_unref(inbound);
}

static void on_outbound_input_room(ew_call *outbound) {
    bridged_call *b = outbound->caller_ud;
    if (!b->feeding)
        feed(b);
}

static ew_err on_inbound_input(ew_call *inbound, ew_str chunk) {
    bridged_call *b = inbound->callee_ud;
    if (!b->outbound || inbound->local.in_head || b->outbound->input_full)
        return ew__input_queue_add(inbound, chunk);
    b->committed = true;
    ew_err err = ew__call_input(b->outbound, chunk);
    return err < 0 ? EW_OK : err; /* the outbound call has ended, or is about to */
}

static void on_inbound_input_end(ew_call *inbound) { feed(inbound->callee_ud); }

static void on_inbound_cancel(ew_call *inbound, ew__cancel_why why) {
    bridged_call *b = inbound->callee_ud;
    ew_call_ref(inbound); /* b lies in its memory, and the outbound call may end in here */
    b->cancelled = true;
    if (b->outbound && !b->in_chunk)
        ew__call_cancel(b->outbound, why);
    if (b->outbound) /* nothing reads its chunks any more, and the cancel may be queued behind them */
        ew__call_room(b->outbound);
    ew_call_unref(inbound);
}

static void on_inbound_room(ew_call *inbound) {
    bridged_call *b = inbound->callee_ud;
    if (b->outbound)
        ew__call_room(b->outbound);
}

/* ---- open ---- */

static const ew__caller_ops outbound_caller = {.chunk = on_outbound_chunk,
                                               .chunk_row = on_outbound_batch,
                                               .end = on_outbound_end,
                                               .input_room = on_outbound_input_room};

static void fail_inbound(bridged_call *b, ew_status status, ew_str message) {
    ew_call *inbound = b->inbound;
    ew__call_fail_as(inbound, EW_ORIGIN_LOCAL, status, message);
    ew_call_unref(inbound);
}

/* The next upstream in turn; at first the next one that is not marked as down. */
static ew__upstream *choose(bridged_call *b) {
    const ew__bridge *bridge = b->bridge;
    uint64_t now = b->inbound->executor->now;
    if (b->tried == 0 && bridge->n_upstreams > 1) {
        b->first = atomic_fetch_add_explicit(&b->bridge->turn, 1, memory_order_relaxed) % bridge->n_upstreams;
        for (uint32_t i = 0; i < bridge->n_upstreams; i++) {
            uint32_t at = (b->first + i) % bridge->n_upstreams;
            if (atomic_load_explicit(&bridge->upstreams[at]->down_until, memory_order_relaxed) <= now) {
                b->first = at;
                break;
            }
        }
    }
    b->tried++;
    return upstream_of(b);
}

static bool spans_wanted(const ew__executor *executor) {
    const ew__observer *observer = executor->calls->observer;
    while (observer && !observer->spans)
        observer = observer->next;
    return observer != NULL;
}

/* Sets the path of the outbound call's span. Without memory the span has no path. */
static void fill_path(ew_call *inbound, ew_call *outbound) {
    ew__buf path;
    ew__buf_init(&path, inbound->executor->env, (size_t)64 * 1024);
    if (ew__trace_path(&path, inbound->outgoing.trace_path, inbound->key, false) == EW_OK)
        (void)ew__arena_str(&inbound->arena, ew__buf_view(&path), &outbound->outgoing.trace_path);
    ew__buf_done(&path);
}

/*
 * Continues the trace of the inbound call. The outbound call has a span of its own if an observer records spans; else the
 * upstream's span is a child of the inbound call's.
 */
static void fill_trace(ew_call *inbound, ew_call *outbound, bool traces) {
    bool own = spans_wanted(inbound->executor);
    if (!traces && !own)
        return;
    const ew__trace *above = ew__call_trace(inbound);
    outbound->trace = *above;
    outbound->tracestate = inbound->tracestate;
    if (own) {
        ew__trace_child(&outbound->trace, &outbound->executor->rng, above);
        fill_path(inbound, outbound);
    }
}

static void fill(bridged_call *b, ew_call *outbound, const ew__upstream *to) {
    ew_call *inbound = b->inbound;
    outbound->key = b->bridge->names[(b->first + b->tried - 1) % b->bridge->n_upstreams];
    outbound->input = inbound->input;
    outbound->lender = ew_call_ref(inbound);
    outbound->secret_input = inbound->secret_input; /* of the action that inbound holds */
    outbound->secret_output = inbound->secret_output;
    outbound->wants_chunks = inbound->wants_chunks;
    outbound->has_input = inbound->has_input;
    outbound->input_full = inbound->has_input; /* the wire reports when it takes input */
    outbound->attempt = inbound->attempt;
    outbound->deadline = inbound->deadline;
    outbound->hops = (uint8_t)(inbound->hops + 1);
    fill_trace(inbound, outbound, to->traces);
}

static bool carries(const ew__upstream *to, ew_request_options *ask, ew_str context, ew_str labels) {
    ask->context = context;
    ask->labels = labels;
    return !to->refuses(ask);
}

/*
 * Passes on context and labels if the wire of the upstream carries them (docs/bridge.md). NULL, or why the upstream cannot
 * carry the call at all.
 */
static const char *carry(ew_call *outbound, const ew_call *inbound, const ew__upstream *to) {
    const ew_str none = {NULL, 0};
    ew_request_options ask = {.action = outbound->key,
                              .input = outbound->input,
                              .stream = outbound->wants_chunks,
                              .input_stream = outbound->has_input};
    const char *why = to->refuses ? to->refuses(&ask) : NULL;
    if (why || (inbound->context.len == 0 && inbound->labels.len == 0))
        return why;
    bool same_wire = to->wire && strcmp(inbound->wire, to->wire) == 0;
    bool both = !to->refuses || same_wire || carries(to, &ask, inbound->context, inbound->labels);
    if (both || carries(to, &ask, inbound->context, none))
        outbound->context = inbound->context;
    if (both || carries(to, &ask, none, inbound->labels))
        outbound->labels = inbound->labels;
    return NULL;
}

static void try_next(bridged_call *b) {
    ew__upstream *to = choose(b);
    ew_call *outbound = ew__call_new(b->inbound->executor, &outbound_caller, b);
    if (!outbound) {
        fail_inbound(b, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory, or too many calls"));
        return;
    }
    fill(b, outbound, to);
    const char *why = carry(outbound, b->inbound, to);
    if (why) {
        ew_call_unref(outbound);
        fail_inbound(b, b->inbound->has_input ? EW_STATUS_UNIMPLEMENTED : EW_STATUS_INVALID_ARGUMENT, ew_str_from(why));
        return;
    }
    b->outbound = outbound;
    atomic_fetch_add_explicit(&to->calls, 1, memory_order_relaxed);
    to->open(to, outbound);
}

static void on_inbound_open(ew_call *inbound) {
    ew__bridge *bridge = inbound->callee_ud;
    if (inbound->hops >= EW__HOPS_MAX && !bridge->upstreams[0]->terminal) {
        ew__call_fail_as(inbound, EW_ORIGIN_LOCAL, EW_STATUS_FAILED_PRECONDITION,
                         EW_STR("the call has crossed 8 everywires: do they import each other?"));
        return;
    }
    bridged_call *b = ew__arena_alloc(&inbound->arena, sizeof *b);
    if (!b) {
        ew__call_fail_as(inbound, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
        return;
    }
    *b = (bridged_call){.inbound = ew_call_ref(inbound),
                        .bridge = bridge,
                        .hides_stack = !ew__stack_trace_is_shown(inbound->executor, inbound->served.who)};
    inbound->callee_ud = b;
    try_next(b);
}

const ew__callee_ops ew__bridge_callee = {.open = on_inbound_open,
                                          .input = on_inbound_input,
                                          .input_end = on_inbound_input_end,
                                          .cancel = on_inbound_cancel,
                                          .room = on_inbound_room};
