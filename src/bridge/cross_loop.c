/*
 * bridge/cross_loop.c: see cross_loop.h. An inbound call on its own loop is mirrored by an outbound call on the loop of
 * the upstream. Each event on one side becomes a message in the mailbox of the other loop.
 *
 * All messages but input chunks are members of the cross_call, so that posting one cannot fail. The cross_call lives
 * until the end of the outbound call has been passed on, and each message to the outbound side holds a reference. The
 * inbound call does not end before that message, so its executor lives as long.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/cross_loop.h"

#define LARGE ((size_t)16 * 1024) /* results from here on are handed over, not copied into the inbound call */

typedef struct input_message {
    ew__task task; /* its node also links the messages that are held */
    struct cross_call *cross;
    size_t len;
    char bytes[];
} input_message;

typedef struct cross_call {
    atomic_uint refs;
    ew__loop_upstream *upstream; /* a reference */
    ew_call *inbound;            /* a reference until the end has been passed on */
    ew_call *outbound;           /* outbound loop; NULL before it is opened and after its end */
    pthread_mutex_t lock;        /* of `ended` */
    bool ended;                  /* the outbound call has: its executor may be gone */
    bool wants_room;             /* inbound loop: the outbound call waits until chunks may flow again */
    bool asked_room;             /* outbound loop: the inbound side was asked to report room */
    bool input_over;             /* outbound loop: no more input will come */
    uint8_t cancel_why;          /* ew__cancel_why */
    bool begun;                  /* of the outbound call */
    atomic_bool input_stalled;   /* the inbound side was asked to wait with its input */
    atomic_bool input_room_sent; /* input_room_task is under way */
    atomic_size_t input_bytes;   /* posted, and not yet passed to the outbound call */
    ew__fifo held;               /* outbound loop: input that waits until the outbound call takes it */
    ew__end end;
    ew_str trace_id;
    const ew_env *env;
    char *text; /* of `end` and `trace_id`; NULL: none, or the inbound call has adopted it */
    size_t text_size;
    ew__task open_task, input_end_task, cancel_task, room_task; /* to the outbound loop */
    ew__task ask_room_task, input_room_task, end_task;          /* to the inbound loop */
} cross_call;

static void ref(cross_call *c) { atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed); }

static void unref(cross_call *c) {
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    ew__upstream_unref(&c->upstream->base);
    pthread_mutex_destroy(&c->lock);
    ew__free(c->env, c->text, c->text_size);
    ew__free(c->env, c, sizeof *c);
}

/* Outbound loop, while the outbound call has not ended; the end itself comes last. */
static void post_to_inbound(cross_call *c, ew__task *task, void (*fn)(ew__task *task)) {
    ew__executor *executor = c->inbound->executor;
    task->fn = fn;
    ew__executor_post(executor, task);
}

/* Inbound loop. False: the outbound call has ended. */
static bool post_to_outbound(cross_call *c, ew__task *task, void (*fn)(ew__task *task)) {
    task->fn = fn;
    ref(c);
    pthread_mutex_lock(&c->lock);
    bool ended = c->ended;
    if (!ended)
        ew__executor_post(c->upstream->executor, task);
    pthread_mutex_unlock(&c->lock);
    if (ended)
        unref(c);
    return !ended;
}

/* ---- outbound to inbound: the end ---- */

static void on_end_message(ew__task *task) { /* inbound loop */
    cross_call *c = ew__container_of(task, cross_call, end_task);
    ew_call *inbound = c->inbound;
    c->inbound = NULL;
    inbound->outgoing.begun = c->begun;
    (void)ew__arena_str(&inbound->arena, c->trace_id,
                        &inbound->outgoing.remote_trace_id); /* for its span; may be missing */
    if (c->end.result.len >= LARGE && ew__arena_adopt(&inbound->arena, c->text, c->text_size) == EW_OK)
        c->text = NULL; /* it is sent from there */
    if (c->end.status == EW_STATUS_OK)
        (void)ew__call_done_valid(inbound, c->end.result);
    else
        ew__call_fault_as(inbound, c->end.origin, &c->end.fault);
    ew_call_unref(inbound);
    unref(c);
}

/* The last event of the outbound side: the cross_call may be freed meanwhile. */
static void post_end(cross_call *c) {
    pthread_mutex_lock(&c->lock);
    c->ended = true;
    pthread_mutex_unlock(&c->lock);
    post_to_inbound(c, &c->end_task, on_end_message);
}

static void set_local_fault(cross_call *c, ew_str message) {
    c->end = (ew__end){.status = EW_STATUS_RESOURCE_EXHAUSTED,
                       .origin = EW_ORIGIN_LOCAL,
                       .fault = {.status = EW_STATUS_RESOURCE_EXHAUSTED, .message = message}};
}

/* Copies the end: its texts are valid only now. */
static void keep_end(cross_call *c, const ew_call *outbound, const ew__end *end) {
    ew_str trace_id = outbound->outgoing.remote_trace_id;
    ew_str *const texts[] = {&c->end.result, &c->end.fault.message, &c->end.fault.details, &c->trace_id};
    c->text_size = end->result.len + end->fault.message.len + end->fault.details.len + trace_id.len;
    c->text = ew__alloc(c->env, c->text_size);
    if (!c->text) {
        set_local_fault(c, EW_STR("out of memory"));
        return;
    }
    c->end = *end;
    c->trace_id = trace_id;
    char *at = c->text;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; at += texts[i]->len, i++)
        if (texts[i]->len)
            texts[i]->ptr = memcpy(at, texts[i]->ptr, texts[i]->len);
}

static void free_input(cross_call *c, input_message *message) {
    atomic_fetch_sub(&c->input_bytes, message->len);
    ew__free(c->env, message, sizeof *message + message->len);
}

static input_message *take_held(cross_call *c) { return EW__ITEM(ew__fifo_pop(&c->held), input_message, task.node); }

static void on_outbound_end(ew_call *outbound, const ew__end *end) {
    cross_call *c = outbound->caller_ud;
    c->outbound = NULL;
    while (c->held.first)
        free_input(c, take_held(c));
    c->begun = outbound->outgoing.begun;
    keep_end(c, outbound, end);
    ew__call_release(outbound);
    post_end(c);
}

/* ---- outbound to inbound: chunks, and back that there is room ---- */

static void on_room_message(ew__task *task) { /* outbound loop */
    cross_call *c = ew__container_of(task, cross_call, room_task);
    c->asked_room = false;
    if (c->outbound)
        ew__call_room(c->outbound);
    unref(c);
}

static void report_room(cross_call *c) { /* inbound loop */
    c->wants_room = false;
    (void)post_to_outbound(c, &c->room_task, on_room_message);
}

/*
 * The outbound call waits because the reader of the inbound call is slow: its room follows. Or because many chunks were
 * under way: those have been passed on by now.
 */
static void on_ask_room_message(ew__task *task) { /* inbound loop */
    cross_call *c = ew__container_of(task, cross_call, ask_room_task);
    c->wants_room = true;
    if (!atomic_load(&c->inbound->full))
        report_room(c);
}

static ew_err on_outbound_chunk(ew_call *outbound, ew_str chunk) {
    cross_call *c = outbound->caller_ud;
    ew_err err = ew__call_pass_chunk(c->inbound, chunk);
    if (err == EW_ECANCELLED || err == EW_EENDED)
        return EW_OK; /* nothing reads it */
    if (err == EW_FULL && !c->asked_room) {
        c->asked_room = true;
        post_to_inbound(c, &c->ask_room_task, on_ask_room_message);
    }
    return err;
}

static void on_inbound_room(ew_call *inbound) {
    cross_call *c = inbound->callee_ud;
    if (c->wants_room)
        report_room(c);
}

/* ---- inbound to outbound: input, and back that there is room ---- */

static void on_input_room_message(ew__task *task) { /* inbound loop */
    cross_call *c = ew__container_of(task, cross_call, input_room_task);
    atomic_store(&c->input_room_sent, false);
    ew__call_input_room(c->inbound);
}

/* Half of what stalled the input must have been passed on, so that it does not resume for one chunk. */
static void report_input_room(cross_call *c) {
    size_t most = c->upstream->executor->limits->in_queue_bytes / 2;
    if (!c->outbound || !atomic_load(&c->input_stalled) || atomic_load(&c->input_bytes) > most)
        return;
    atomic_store(&c->input_stalled, false);
    if (!atomic_exchange(&c->input_room_sent, true))
        post_to_inbound(c, &c->input_room_task, on_input_room_message);
}

static bool takes_input(const cross_call *c) { return c->outbound && !c->outbound->input_full; }

static void pass_input(cross_call *c, input_message *message) {
    (void)ew__call_input(c->outbound, ew__str(message->bytes, message->len)); /* a lost chunk ends the call */
    free_input(c, message);
}

static void pass_input_end(cross_call *c) {
    if (c->input_over && !c->held.first && takes_input(c))
        ew__call_input_end(c->outbound);
}

static void on_input_message(ew__task *task) { /* outbound loop */
    input_message *message = ew__container_of(task, input_message, task);
    cross_call *c = message->cross;
    if (!c->outbound)
        free_input(c, message);
    else if (c->held.first || !takes_input(c))
        ew__fifo_push(&c->held, &message->task.node);
    else
        pass_input(c, message);
    report_input_room(c);
    unref(c);
}

static void on_outbound_input_room(ew_call *outbound) {
    cross_call *c = outbound->caller_ud;
    ref(c); /* the call may end while it is fed */
    while (c->held.first && takes_input(c))
        pass_input(c, take_held(c));
    pass_input_end(c);
    report_input_room(c);
    unref(c);
}

static void on_input_end_message(ew__task *task) { /* outbound loop */
    cross_call *c = ew__container_of(task, cross_call, input_end_task);
    c->input_over = true;
    pass_input_end(c);
    unref(c);
}

static ew_err on_inbound_input(ew_call *inbound, ew_str chunk) {
    cross_call *c = inbound->callee_ud;
    const ew_limits *limits = inbound->executor->limits;
    if (atomic_load(&c->input_bytes) + chunk.len > limits->out_max_bytes)
        return EW_ELIMIT;
    input_message *message = ew__alloc(c->env, sizeof *message + chunk.len);
    if (!message)
        return EW_ENOMEM;
    message->cross = c;
    message->len = chunk.len;
    memcpy(message->bytes, chunk.ptr, chunk.len);
    bool full = atomic_fetch_add(&c->input_bytes, chunk.len) + chunk.len > limits->in_queue_bytes;
    if (full) /* before the message is posted: its arrival may be what makes room */
        atomic_store(&c->input_stalled, true);
    if (post_to_outbound(c, &message->task, on_input_message))
        return full ? EW_FULL : EW_OK;
    free_input(c, message);
    return EW_OK; /* the end is under way */
}

static void on_inbound_input_end(ew_call *inbound) {
    cross_call *c = inbound->callee_ud;
    (void)post_to_outbound(c, &c->input_end_task, on_input_end_message);
}

/* ---- inbound to outbound: cancel ---- */

static void on_cancel_message(ew__task *task) { /* outbound loop */
    cross_call *c = ew__container_of(task, cross_call, cancel_task);
    if (c->outbound)
        ew__call_cancel(c->outbound, (ew__cancel_why)c->cancel_why);
    unref(c);
}

static void on_inbound_cancel(ew_call *inbound, ew__cancel_why why) {
    cross_call *c = inbound->callee_ud;
    c->cancel_why = (uint8_t)why;
    (void)post_to_outbound(c, &c->cancel_task, on_cancel_message);
}

/* ---- open ---- */

static void open_at_upstream(ew_call *outbound) {
    ew__loop_upstream *upstream = outbound->callee_ud;
    upstream->open(upstream, outbound);
}

static const ew__callee_ops upstream_callee = {.open = open_at_upstream};
static const ew__caller_ops outbound_caller = {
    .chunk = on_outbound_chunk, .end = on_outbound_end, .input_room = on_outbound_input_room};

/*
 * Outbound loop. The inbound call is open until the end has been passed on, so what was set before it was opened can be
 * read here. It is copied: the outbound call may outlive the inbound one. EW_OK, EW_ENOMEM.
 */
static ew_err fill(ew_call *outbound, const ew_call *inbound) {
    const ew_str from[] = {inbound->key, inbound->input, inbound->context, inbound->labels};
    ew_str *const to[] = {&outbound->key, &outbound->input, &outbound->context, &outbound->labels};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++)
        if (from[i].len && ew__arena_str(&outbound->arena, from[i], to[i]) != EW_OK)
            return EW_ENOMEM;
    outbound->secret_input = inbound->secret_input;
    outbound->secret_output = inbound->secret_output;
    outbound->wants_chunks = inbound->wants_chunks;
    outbound->has_input = inbound->has_input;
    outbound->input_full = inbound->has_input; /* the wire reports when it takes input */
    outbound->attempt = inbound->attempt;
    outbound->deadline = inbound->deadline;
    outbound->hops = inbound->hops;
    outbound->trace = inbound->trace;
    outbound->outgoing.cross_loop = true;
    return EW_OK;
}

static void on_open_message(ew__task *task) { /* outbound loop */
    cross_call *c = ew__container_of(task, cross_call, open_task);
    ew_call *outbound = ew__call_new(c->upstream->executor, &outbound_caller, c);
    if (outbound && fill(outbound, c->inbound) == EW_OK) {
        ref(c); /* the call may end while it is opened */
        c->outbound = outbound;
        ew__call_open_on(outbound, &upstream_callee, c->upstream);
        unref(c);
        return;
    }
    if (outbound)
        ew__call_release(outbound);
    set_local_fault(c, EW_STR("out of memory, or too many calls"));
    post_end(c);
}

static cross_call *new_cross_call(ew_call *inbound, ew__loop_upstream *upstream) {
    cross_call *c = ew__zalloc(inbound->executor->env, sizeof *c);
    if (!c)
        return NULL;
    c->env = inbound->executor->env;
    atomic_init(&c->refs, 1);
    c->upstream = upstream;
    (void)ew__upstream_ref(&upstream->base);
    pthread_mutex_init(&c->lock, NULL);
    c->inbound = ew_call_ref(inbound);
    (void)ew__call_trace(inbound);                      /* the outbound loop reads it */
    atomic_init(&c->input_stalled, inbound->has_input); /* no input before the upstream takes it: the call may move */
    return c;
}

/* False: the upstream has gone, and its loop may have ended. */
static bool post_open(cross_call *c) {
    ew__loop_upstream *upstream = c->upstream;
    c->open_task.fn = on_open_message;
    pthread_mutex_lock(upstream->lock);
    bool gone = upstream->gone;
    if (!gone)
        ew__executor_post(upstream->executor, &c->open_task);
    pthread_mutex_unlock(upstream->lock);
    return !gone;
}

static void on_inbound_open(ew_call *inbound) {
    ew__loop_upstream *upstream = inbound->callee_ud;
    if (inbound->executor == upstream->executor) {
        upstream->open(upstream, inbound);
        return;
    }
    cross_call *c = new_cross_call(inbound, upstream);
    if (!c) {
        ew__call_fail_as(inbound, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW_STR("out of memory"));
        return;
    }
    inbound->callee_ud = c;
    if (post_open(c))
        return;
    ew__call_fail_as(inbound, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("the peer has gone"));
    ew_call_unref(inbound);
    unref(c);
}

static const ew__callee_ops inbound_callee = {.open = on_inbound_open,
                                              .input = on_inbound_input,
                                              .input_end = on_inbound_input_end,
                                              .cancel = on_inbound_cancel,
                                              .room = on_inbound_room};

void ew__loop_upstream_open(ew__upstream *upstream, ew_call *call) {
    ew__call_open_on(call, &inbound_callee, ew__container_of(upstream, ew__loop_upstream, base));
}
