/*
 * call/post.c: the public functions of a call. On the executor thread they act at once; from another thread each becomes
 * a message to the executor thread, which carries a copy of its payload. Messages arrive in the order in which they were
 * posted.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/call.h"
#include "call/input_queue.h"
#include "call/local.h"
#include "json/json.h"

#define OUT_OF_MEMORY EW_STR("out of memory")
#define DIGITS_(number) #number
#define DIGITS(number) DIGITS_(number)
#define TOO_DEEP "the result is nested too deep: the limit is " DIGITS(EW_PAYLOAD_DEPTH) " levels"

enum what { CHUNK, DEEP_CHUNK, DONE, FAIL, ON_CANCEL, ON_ROOM, AFTER, ON_INPUT };

struct message {
    ew__task task;
    ew_call *call;
    enum what what;
    ew_fault fault;
    ew_call_fn fn;
    ew_input_fn input_fn;
    void *arg;
    uint64_t ms;
    size_t size; /* of this allocation */
    ew_str payload;
    char bytes[];
};

/*
 * The thread was told EW_OK when it asked; without memory to keep the promise, the call ends rather than waits for
 * ever.
 */
static void must_keep(ew_call *call, ew_err err) {
    if (err == EW_ENOMEM)
        ew__call_fault(call, &(ew_fault){.status = EW_STATUS_INTERNAL, .message = OUT_OF_MEMORY});
}

static void receive(ew__task *task) {
    struct message *message = ew__container_of(task, struct message, task);
    ew_call *call = message->call;
    const ew_env *env = call->executor->env;
    switch (message->what) {
    case CHUNK:
        atomic_fetch_sub(&call->cross_thread.posted, message->payload.len);
        (void)ew__call_chunk_valid(call, message->payload);
        ew__call_wake_waiters(call); /* a thread may wait for its messages to be taken */
        break;
    case DEEP_CHUNK:
        call->deep = true;
        (void)ew__call_chunk_valid(call, message->payload);
        ew__call_wake_waiters(call);
        break;
    case DONE:
        (void)ew__call_done_valid(call, message->payload);
        break;
    case FAIL:
        ew__call_fault(call, &message->fault);
        break;
    case ON_CANCEL:
        (void)ew__local_on_cancel(call, message->fn, message->arg);
        break;
    case ON_ROOM:
        must_keep(call, ew__local_on_room(call, message->fn, message->arg));
        break;
    case AFTER:
        must_keep(call, ew__local_after(call, message->ms, message->fn, message->arg));
        break;
    case ON_INPUT:
        (void)ew__local_on_input(call, message->input_fn, message->arg);
        break;
    }
    ew_call_unref(call);
    ew__free(env, message, message->size);
}

static struct message *new_message(ew_call *call, enum what what, size_t bytes) {
    struct message *message = ew__zalloc(call->executor->env, sizeof *message + bytes);
    if (!message)
        return NULL;
    message->size = sizeof *message + bytes;
    message->task.fn = receive;
    message->call = ew_call_ref(call);
    message->what = what;
    return message;
}

/* ---- the call whose handler runs on this worker thread ---- */

static _Thread_local ew_call *held;

void ew__call_hold(ew_call *call) { held = ew_call_ref(call); }

ew_call *ew__call_unhold(void) {
    ew_call *call = held;
    held = NULL;
    return call;
}

/* An end is about to be posted; its message has a reference of its own. */
static void let_go(ew_call *call) {
    if (held == call) {
        held = NULL;
        ew_call_unref(call);
    }
}

/* ---- posting ---- */

static ew_err post(struct message *message) {
    if (message->what == DONE || message->what == FAIL)
        let_go(message->call);
    ew__executor_post(message->call->executor, &message->task);
    return EW_OK;
}

static ew_err post_payload(ew_call *call, enum what what, ew_str json) {
    struct message *message = new_message(call, what, json.len);
    if (!message)
        return EW_ENOMEM;
    memcpy(message->bytes, json.ptr, json.len);
    message->payload = ew__str(message->bytes, json.len);
    return post(message);
}

static ew_err post_fn(ew_call *call, enum what what, ew_call_fn fn, void *arg, uint64_t ms) {
    struct message *message = new_message(call, what, 0);
    if (!message)
        return EW_ENOMEM;
    message->fn = fn;
    message->arg = arg;
    message->ms = ms;
    return post(message);
}

/* ---- chunks ---- */

/* From a thread: the messages on their way count as buffered, so that a thread that never waits is stopped too. */
static ew_err post_chunk(ew_call *call, ew_str json) {
    const ew_limits *limits = call->executor->limits;
    size_t posted = atomic_fetch_add(&call->cross_thread.posted, json.len) + json.len;
    ew_err err = posted > limits->out_max_bytes ? EW_ELIMIT : post_payload(call, CHUNK, json);
    if (err < 0) {
        atomic_fetch_sub(&call->cross_thread.posted, json.len);
        return err;
    }
    return posted > limits->out_high_bytes || atomic_load(&call->full) ? EW_FULL : EW_OK;
}

/*
 * A cancel is a request: the caller still waits for the end, and gets all chunks that precede it. What a caller that has
 * gone does not want is dropped by the executor thread.
 */
ew_err ew__call_pass_chunk(ew_call *call, ew_str json) {
    return ew__executor_here(call->executor) ? ew__call_chunk_valid(call, json) : post_chunk(call, json);
}

/* A thread that only sends chunks learns of the cancel by EW_ECANCELLED. */
static ew_err send_chunk(ew_call *call, ew_str json) {
    if (ew__executor_here(call->executor))
        return ew__call_chunk_valid(call, json);
    return atomic_load(&call->cancelled) ? EW_ECANCELLED : post_chunk(call, json);
}

/* A payload that is the call's own input was validated when it came. */
static bool is_own_input(const ew_call *call, ew_str json) {
    return json.ptr == call->input.ptr && json.len == call->input.len;
}

/* The check on the executor thread refuses it, and fails the call; the handler still owes the end. */
static ew_err send_deep_chunk(ew_call *call, ew_str json) {
    if (ew__executor_here(call->executor)) {
        call->deep = true;
        return ew__call_chunk_valid(call, json);
    }
    ew_err err = post_payload(call, DEEP_CHUNK, json);
    return err == EW_OK ? EW_ELIMIT : err;
}

ew_err ew_call_chunk(ew_call *call, ew_str json) {
    ew_err err = is_own_input(call, json) ? EW_OK : ew__json_validate(json, NULL);
    if (err == EW_ELIMIT)
        return send_deep_chunk(call, json);
    return err == EW_OK ? send_chunk(call, json) : EW_ESYNTAX;
}

/* A format and its arguments (json.h). */
typedef struct template {
    const char *format;
    const ew_arg *args;
    size_t n_args;
}
template;

/* Formats on the stack when it fits, else in `heap`. */
static ew_err format_payload(ew_call *call, char *stack, size_t size, ew__buf *heap, const template *from,
                             ew_str *ret) {
    int n = ew_json_format_args(stack, size, from->format, from->args, from->n_args);
    if (n == EW_EINVAL)
        return EW_EINVAL;
    if (n >= 0 && (size_t)n < size) {
        *ret = ew__str(stack, (size_t)n);
        return EW_OK;
    }
    ew__buf_init(heap, call->executor->env, SIZE_MAX / 2);
    ew_err err = ew__json_format_args(heap, from->format, from->args, from->n_args);
    *ret = ew__buf_view(heap);
    return err;
}

/* Formats and sends. EW_EINVAL (a bad format) and EW_ENOMEM mean that nothing was sent. */
static ew_err send_formatted(ew_call *call, ew_err (*send)(ew_call *call, ew_str json), const template *from) {
    char stack[512];
    ew__buf heap = {0};
    ew_str json = {0};
    ew_err err = format_payload(call, stack, sizeof stack, &heap, from, &json);
    if (err == EW_OK)
        err = send(call, json);
    if (heap.env)
        ew__buf_done(&heap);
    return err;
}

ew_err ew_call_chunk_args(ew_call *call, const char *format, const ew_arg *args, size_t n_args) {
    return send_formatted(call, ew_call_chunk, &(template){format, args, n_args});
}

/* ---- ends ---- */

static ew_err fail_internal(ew_call *call, ew_str message) {
    ew_fault fault = {.status = EW_STATUS_INTERNAL, .message = message};
    return ew_call_fail_with(call, &fault);
}

static ew_err send_done(ew_call *call, ew_str json) {
    if (ew__executor_here(call->executor))
        return ew__call_done_valid(call, json);
    ew_err err = post_payload(call, DONE, json);
    return err == EW_ENOMEM ? fail_internal(call, OUT_OF_MEMORY) : err;
}

ew_err ew_call_done(ew_call *call, ew_str json) {
    if (json.len == 0)
        json = EW_STR("null");
    ew_err err = is_own_input(call, json) ? EW_OK : ew__json_validate(json, NULL);
    if (err == EW_OK)
        return send_done(call, json);
    if (err == EW_ELIMIT) {
        err = ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, TOO_DEEP);
        return err == EW_OK ? EW_ELIMIT : err;
    }
    err = fail_internal(call, EW_STR("the action's result is not valid JSON"));
    return err == EW_OK ? EW_ESYNTAX : err;
}

ew_err ew_call_done_args(ew_call *call, const char *format, const ew_arg *args, size_t n_args) {
    ew_err err = send_formatted(call, ew_call_done, &(template){format, args, n_args});
    if (err == EW_EINVAL)
        (void)fail_internal(call, EW_STR("the format of the action's result does not fit its arguments"));
    else if (err == EW_ENOMEM)
        (void)fail_internal(call, OUT_OF_MEMORY);
    return err;
}

ew_err ew_call_fail(ew_call *call, ew_status status, const char *message) {
    ew_fault fault = {.status = status, .message = ew_str_from(message ? message : ew_status_name(status))};
    return ew_call_fail_with(call, &fault);
}

/* Without memory for the message the call must end all the same: the spare message inside the call says so. */
static void fail_unposted(ew__task *task) {
    ew_call *call = ew__container_of(task, ew_call, cross_thread.spare_task);
    ew_fault fault = {.status = EW_STATUS_INTERNAL, .message = OUT_OF_MEMORY};
    ew__call_fault(call, &fault);
    ew_call_unref(call);
}

static ew_err post_spare(ew_call *call) {
    if (atomic_exchange(&call->spare_used, true))
        return EW_EENDED;
    ew_call_ref(call);
    let_go(call);
    call->cross_thread.spare_task.fn = fail_unposted;
    ew__executor_post(call->executor, &call->cross_thread.spare_task);
    return EW_OK;
}

static ew_err post_fault(ew_call *call, const ew_fault *fault) {
    struct message *message = new_message(call, FAIL, fault->message.len + fault->details.len);
    if (!message)
        return post_spare(call);
    message->fault = *fault;
    memcpy(message->bytes, fault->message.ptr, fault->message.len);
    message->fault.message.ptr = message->bytes;
    if (fault->details.len) {
        memcpy(message->bytes + fault->message.len, fault->details.ptr, fault->details.len);
        message->fault.details.ptr = message->bytes + fault->message.len;
    }
    return post(message);
}

static ew_err fault_here(ew_call *call, const ew_fault *fault) {
    bool open = call->callee_open;
    ew__call_fault(call, fault);
    return open ? EW_OK : EW_EENDED;
}

ew_err ew_call_fail_with(ew_call *call, const ew_fault *fault) {
    ew_fault checked = *fault;
    checked.refused = false; /* the handler runs. Programs built before this member leave it uninitialised */
    if (checked.details.len && ew__json_validate(checked.details, NULL) != EW_OK)
        checked.details = ew__str(NULL, 0); /* details that are no JSON cannot be carried by any wire */
    if (!checked.message.ptr)
        checked.message = EW_STR("");
    return ew__executor_here(call->executor) ? fault_here(call, &checked) : post_fault(call, &checked);
}

/* ---- requests ---- */

ew_err ew_call_on_cancel(ew_call *call, ew_call_fn fn, void *arg) {
    return ew__executor_here(call->executor) ? ew__local_on_cancel(call, fn, arg)
                                             : post_fn(call, ON_CANCEL, fn, arg, 0);
}

ew_err ew_call_on_room(ew_call *call, ew_call_fn fn, void *arg) {
    return ew__executor_here(call->executor) ? ew__local_on_room(call, fn, arg) : post_fn(call, ON_ROOM, fn, arg, 0);
}

ew_err ew_call_after(ew_call *call, uint64_t ms, ew_call_fn fn, void *arg) {
    return ew__executor_here(call->executor) ? ew__local_after(call, ms, fn, arg) : post_fn(call, AFTER, fn, arg, ms);
}

ew_err ew_call_on_input(ew_call *call, ew_input_fn fn, void *arg) {
    if (!call->has_input)
        return EW_EUNSUPPORTED;
    if (ew__executor_here(call->executor))
        return ew__local_on_input(call, fn, arg);
    struct message *message = new_message(call, ON_INPUT, 0);
    if (!message)
        return EW_ENOMEM;
    message->input_fn = fn;
    message->arg = arg;
    return post(message);
}
