/*
 * bridge/bridge.c: see bridge.h. One join for each call, in the near call's memory. Everything happens on one executor, so
 * that the only care is for what happens inside something else: an end inside an open, a cancel inside a chunk.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/bridge.h"
#include "call/input_queue.h"
#include "call/stack_trace.h"

typedef struct join {
    ew_call *near; /* a reference until the far side has ended */
    ew_call *far;  /* the caller's reference; NULL when there is none now */
    ew__bridge *bridge;
    uint32_t first, tried; /* of the bridge's fars: where it began, and how many had it */
    bool in_chunk;         /* a chunk of the far side is being passed on */
    bool cancelled;        /* near */
    bool feeding;          /* input that waited is being passed on */
    bool input_told;       /* the far side knows that no more will come */
    bool committed;        /* an upstream has received input, or has sent a chunk: the call stays with it */
    bool hides_stack;      /* the caller must not see stack traces */
} join;

static void try_next(join *j);

/* ---- memory ---- */

ew__upstream *ew__upstream_ref(ew__upstream *far) {
    atomic_fetch_add_explicit(&far->refs, 1, memory_order_relaxed);
    return far;
}

void ew__upstream_unref(ew__upstream *far) {
    if (atomic_fetch_sub_explicit(&far->refs, 1, memory_order_acq_rel) == 1)
        far->free(far);
}

ew__bridge *ew__bridge_new(const ew_env *env, ew__upstream *const *fars, const ew_str *names, uint32_t n) {
    size_t size = sizeof(ew__bridge) + n * (sizeof(ew__upstream *) + sizeof(ew_str));
    for (uint32_t i = 0; i < n; i++)
        size += names[i].len;
    ew__bridge *bridge = ew__zalloc(env, size);
    if (!bridge)
        return NULL;
    atomic_init(&bridge->refs, 1);
    bridge->env = env;
    bridge->size = size;
    bridge->n_fars = n;
    bridge->names = (ew_str *)(void *)(bridge + 1);
    bridge->fars = (ew__upstream **)(void *)(bridge->names + n);
    char *text = (char *)(bridge->fars + n);
    for (uint32_t i = 0; i < n; i++) {
        bridge->fars[i] = ew__upstream_ref(fars[i]);
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
    for (uint32_t i = 0; i < bridge->n_fars; i++)
        ew__upstream_unref(bridge->fars[i]);
    ew__free(bridge->env, bridge, bridge->size);
}

/* ---- far to near ---- */

/*
 * A near call that is cancelled from inside does not reach into the far one, which is busy with this chunk: the answer
 * tells it to stop.
 */
static ew_err on_far_row(ew_call *far, const ew_str *row, size_t *n) {
    join *j = far->caller_ud;
    bool before = j->cancelled;
    j->in_chunk = j->committed = true;
    ew_err err = *n == 1 ? ew__call_chunk_valid(j->near, row[0]) : ew__call_chunk_row(j->near, row, n);
    j->in_chunk = false;
    if (j->cancelled && !before)
        return err < 0 ? err : EW_ECANCELLED;
    return err == EW_ECANCELLED || err == EW_EENDED ? EW_OK : err; /* late: nobody listens, and it was told to stop */
}

static ew_err on_far_chunk(ew_call *far, ew_str chunk) {
    size_t n = 1;
    return on_far_row(far, &chunk, &n);
}

/* The upstream could not be reached, or refuses calls at the moment: others are tried first for a while. */
static bool is_away(const ew__end *end) {
    return end->origin == EW_ORIGIN_CONNECT || (end->fault.refused && end->fault.status == EW_STATUS_UNAVAILABLE);
}

/* No handler was started: the call never reached a connection, or the upstream refused it. */
static bool may_go_elsewhere(const join *j, const ew_call *far, const ew__end *end) {
    bool local = end->origin == EW_ORIGIN_CONNECT || end->origin == EW_ORIGIN_LOCAL;
    bool unstarted = (local && !far->begun) || end->fault.refused;
    return unstarted && !j->committed && !j->cancelled && j->near->caller_open && j->tried < j->bridge->n_fars;
}

static ew__upstream *far_of(const join *j) { return j->bridge->fars[(j->first + j->tried - 1) % j->bridge->n_fars]; }

static void note_health(const join *j, const ew__end *end) {
    atomic_ullong *down_until = &far_of(j)->down_until;
    if (is_away(end))
        atomic_store_explicit(down_until, j->near->executor->now + EW__MS(EW__FAR_PAUSE_MS), memory_order_relaxed);
    else if (atomic_load_explicit(down_until, memory_order_relaxed))
        atomic_store_explicit(down_until, 0, memory_order_relaxed);
}

/* The one place where every fault of an upstream passes, whichever wires it crosses. */
static void pass_fault(const join *j, const ew_fault *from) {
    ew_fault fault = *from;
    if (j->hides_stack && fault.details.len)
        ew__stack_trace_remove(&j->near->arena, j->near->executor->env, &fault.details);
    ew__call_fault(j->near, &fault);
}

static void pass_end(join *j, ew_call *far, const ew__end *end) {
    ew_call *near = j->near, *lender = near->lender;
    near->lender = far; /* borrowed: the join holds near, so near is not destroyed meanwhile */
    if (end->status == EW_STATUS_OK)
        (void)ew__call_done_valid(near, end->result);
    else
        pass_fault(j, &end->fault);
    near->lender = lender;
}

static void on_far_end(ew_call *far, const ew__end *end) {
    join *j = far->caller_ud;
    ew_call *near = j->near; /* the join lies in its memory */
    note_health(j, end);
    atomic_fetch_sub_explicit(&far_of(j)->calls, 1, memory_order_release);
    j->far = NULL;
    if (may_go_elsewhere(j, far, end)) {
        ew__call_release(far);
        try_next(j);
        return;
    }
    pass_end(j, far, end);
    ew__call_release(far);
    ew_call_unref(near);
}

/* ---- near to far ---- */

/* As much of what waits as the far side takes. */
static void feed(join *j) {
    ew_call *near = ew_call_ref(j->near);
    j->feeding = true;
    while (j->far && !j->far->input_full && near->in_head) {
        struct ew__input_item *item = ew__input_queue_take(near);
        j->committed = true;
        (void)ew__call_input(j->far, ew__input_item_text(item)); /* what is lost ends the far call, and so this one */
        ew__input_item_free(near, item);
    }
    j->feeding = false;
    if (j->far && !near->in_head && near->input_ended && !j->far->input_full && !j->input_told) {
        j->input_told = j->committed = true;
        ew__call_input_end(j->far);
    }
    if (j->far && !near->in_head && !j->far->input_full)
        ew__call_input_room(near);
    ew_call_unref(near);
}

static void on_far_input_room(ew_call *far) {
    join *j = far->caller_ud;
    if (!j->feeding)
        feed(j);
}

static ew_err on_near_input(ew_call *near, ew_str chunk) {
    join *j = near->callee_ud;
    if (!j->far || near->in_head || j->far->input_full)
        return ew__input_queue_add(near, chunk);
    j->committed = true;
    ew_err err = ew__call_input(j->far, chunk);
    return err < 0 ? EW_OK : err; /* its end is told, or under way */
}

static void on_near_input_end(ew_call *near) { feed(near->callee_ud); }

static void on_near_cancel(ew_call *near, ew__cancel_why why) {
    join *j = near->callee_ud;
    ew_call_ref(near); /* the join lies in its memory, and the end may come from inside */
    j->cancelled = true;
    if (j->far && !j->in_chunk)
        ew__call_cancel(j->far, why);
    if (j->far) /* nobody reads what it still sends, so it need not be held back: the cancel may be behind that */
        ew__call_room(j->far);
    ew_call_unref(near);
}

static void on_near_room(ew_call *near) {
    join *j = near->callee_ud;
    if (j->far)
        ew__call_room(j->far);
}

/* ---- the beginning ---- */

static const ew__caller_ops far_caller = {
    .chunk = on_far_chunk, .chunk_row = on_far_row, .end = on_far_end, .input_room = on_far_input_room};

static void fail_near(join *j, ew_status status, ew_str message) {
    ew_call *near = j->near;
    ew__call_fail_as(near, EW_ORIGIN_LOCAL, status, message);
    ew_call_unref(near);
}

/* The one whose turn it is, unless it was not reached lately and another was. */
static ew__upstream *choose(join *j) {
    const ew__bridge *bridge = j->bridge;
    uint64_t now = j->near->executor->now;
    if (j->tried == 0 && bridge->n_fars > 1) {
        j->first = atomic_fetch_add_explicit(&j->bridge->turn, 1, memory_order_relaxed) % bridge->n_fars;
        for (uint32_t i = 0; i < bridge->n_fars; i++) {
            uint32_t at = (j->first + i) % bridge->n_fars;
            if (atomic_load_explicit(&bridge->fars[at]->down_until, memory_order_relaxed) <= now) {
                j->first = at;
                break;
            }
        }
    }
    j->tried++;
    return far_of(j);
}

static bool spans_wanted(const ew__executor *executor) {
    const ew__observer *observer = executor->observer;
    while (observer && !observer->spans)
        observer = observer->next;
    return observer != NULL;
}

/* Where the far call stands in its trace. Without memory it stands at the beginning. */
static void fill_path(ew_call *near, ew_call *far) {
    ew__buf path;
    ew__buf_init(&path, near->executor->env, (size_t)64 * 1024);
    if (ew__trace_path(&path, near->trace_path, near->key, false) == EW_OK)
        (void)ew__arena_str(&near->arena, ew__buf_view(&path), &far->trace_path);
    ew__buf_done(&path);
}

/* The trace goes on: a span of its own if somebody here tells of it, else the peer's hangs on that of the near call. */
static void fill_trace(ew_call *near, ew_call *far, bool traces) {
    bool own = spans_wanted(near->executor);
    if (!traces && !own)
        return;
    const ew__trace *above = ew__call_trace(near);
    far->trace = *above;
    far->tracestate = near->tracestate;
    if (own) {
        ew__trace_child(&far->trace, &far->executor->rng, above);
        fill_path(near, far);
    }
}

static void fill(join *j, ew_call *far, const ew__upstream *to) {
    ew_call *near = j->near;
    far->key = j->bridge->names[(j->first + j->tried - 1) % j->bridge->n_fars];
    far->input = near->input;
    far->lender = ew_call_ref(near);
    far->secret_input = near->secret_input; /* they are near's action's, which it holds */
    far->secret_output = near->secret_output;
    far->wants_chunks = near->wants_chunks;
    far->has_input = near->has_input;
    far->input_full = near->has_input; /* the wire says when it takes some */
    far->attempt = near->attempt;
    far->deadline = near->deadline;
    far->hops = (uint8_t)(near->hops + 1);
    fill_trace(near, far, to->traces);
}

/*
 * What came with the call goes along if the wire takes it; docs/bridge.md says which does. NULL, or why it cannot carry
 * the call at all.
 */
static const char *carry(ew_call *far, const ew_call *near, const ew__upstream *to) {
    ew_request_options ask = {
        .action = far->key, .input = far->input, .stream = far->wants_chunks, .input_stream = far->has_input};
    const char *why = to->refuses ? to->refuses(&ask) : NULL;
    bool extras = near->context.len || near->labels.len;
    if (why || !extras)
        return why;
    if (!to->refuses || (to->wire && strcmp(near->wire, to->wire) == 0)) { /* they came by the same wire */
        far->context = near->context;
        far->labels = near->labels;
        return NULL;
    }
    ask.context = near->context;
    ask.labels = near->labels;
    bool both = !to->refuses(&ask);
    ask.labels = ew__str(NULL, 0);
    if (both || (near->context.len && near->labels.len && !to->refuses(&ask)))
        far->context = near->context;
    ask.context = ew__str(NULL, 0);
    ask.labels = near->labels;
    if (both || (near->context.len && near->labels.len && !to->refuses(&ask)))
        far->labels = near->labels;
    return NULL;
}

static void try_next(join *j) {
    ew__upstream *to = choose(j);
    ew_call *far = ew__call_new(j->near->executor, &far_caller, j);
    if (!far) {
        fail_near(j, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory, or too many calls"));
        return;
    }
    fill(j, far, to);
    const char *why = carry(far, j->near, to);
    if (why) {
        ew_call_unref(far);
        fail_near(j, j->near->has_input ? EW_STATUS_UNIMPLEMENTED : EW_STATUS_INVALID_ARGUMENT, ew_str_from(why));
        return;
    }
    j->far = far;
    atomic_fetch_add_explicit(&to->calls, 1, memory_order_relaxed);
    to->open(to, far);
}

static void on_near_open(ew_call *near) {
    ew__bridge *bridge = near->callee_ud;
    if (near->hops >= EW__HOPS_MAX && !bridge->fars[0]->here) {
        ew__call_fail_as(near, EW_ORIGIN_LOCAL, EW_STATUS_FAILED_PRECONDITION,
                         EW_STR("the call has crossed 8 everywires: do they import each other?"));
        return;
    }
    join *j = ew__arena_alloc(&near->arena, sizeof *j);
    if (!j) {
        ew__call_fail_as(near, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
        return;
    }
    *j = (join){.near = ew_call_ref(near),
                .bridge = bridge,
                .hides_stack = !ew__stack_trace_is_shown(near->executor, near->who)};
    near->callee_ud = j;
    try_next(j);
}

const ew__callee_ops ew__bridge_callee = {.open = on_near_open,
                                          .input = on_near_input,
                                          .input_end = on_near_input_end,
                                          .cancel = on_near_cancel,
                                          .room = on_near_room};
