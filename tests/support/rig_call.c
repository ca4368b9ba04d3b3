/*
 * tests/support/rig_call.c: callers of the rig: what client/request.c and endpoint/pool.c do for a program, with a
 * record of everything that was told.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static char *copy(ew_str text) {
    if (!text.ptr)
        return NULL;
    char *bytes = malloc(text.len + 1);
    assert_non_null(bytes);
    if (text.len)
        memcpy(bytes, text.ptr, text.len);
    bytes[text.len] = '\0';
    return bytes;
}

/* ---- what a caller is told ---- */

static ew_err on_chunk(ew_call *call, ew_str json) {
    rig_call *rc = call->caller_ud;
    if (rc->ended || rc->released)
        rc->after_end++;
    size_t n = rc->n_chunks + 1;
    rc->chunks = realloc(rc->chunks, n * sizeof *rc->chunks);
    rc->chunk_len = realloc(rc->chunk_len, n * sizeof *rc->chunk_len);
    assert_true(rc->chunks && rc->chunk_len);
    rc->chunks[n - 1] = copy(json);
    rc->chunk_len[n - 1] = json.len;
    rc->n_chunks = n;
    return rc->full_after && n >= rc->full_after ? EW_FULL : EW_OK;
}

/* For wires whose inputs are objects: any value as a member of one. */
#define WRAP "{\"value\":"

static ew_str wrap(ew_call *call, ew_str input) {
    char *text = ew_call_alloc(call, sizeof WRAP + input.len + 1);
    if (!text)
        return EW_STR("{}");
    memcpy(text, WRAP, sizeof WRAP - 1);
    memcpy(text + sizeof WRAP - 1, input.ptr, input.len);
    text[sizeof WRAP - 1 + input.len] = '}';
    return ew__str(text, sizeof WRAP + input.len);
}

static ew_str unwrap(ew_str result) {
    size_t n = sizeof WRAP - 1;
    bool is = result.len > n && memcmp(result.ptr, WRAP, n) == 0;
    return is ? ew__str(result.ptr + n, result.len - n - 1) : result;
}

static void tell_end(rig_call *rc, const ew__end *end, ew_str trace_id) {
    if (rc->ended++ || rc->released) {
        rc->after_end++;
        return;
    }
    rc->status = end->status;
    rc->origin = end->origin;
    if (end->status == EW_STATUS_OK) {
        ew_str result = rc->wrapped ? unwrap(end->result) : end->result;
        rc->result = copy(result);
        rc->result_len = result.len;
    } else {
        rc->message = copy(end->fault.message);
        rc->details = copy(end->fault.details);
        rc->retryable = end->fault.retryable;
        rc->retry_after_ms = end->fault.retry_after_ms;
    }
    if (trace_id.len < sizeof rc->trace_id && trace_id.len)
        memcpy(rc->trace_id, trace_id.ptr, trace_id.len);
}

static void on_end(ew_call *call, const ew__end *end) {
    rig_call *rc = call->caller_ud;
    tell_end(rc, end, call->outgoing.remote_trace_id);
    rc->call = NULL;
    ew__call_release(call);
}

static void on_input_room(ew_call *call) {
    rig_call *rc = call->caller_ud;
    if (rc->ended || rc->released)
        rc->after_end++;
    rc->n_input_room++;
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end, .input_room = on_input_room};

/* ---- opening ---- */

/* The callee's end until a connection takes the call. */
static void on_open(ew_call *call) {
    rig_call *rc = call->callee_ud;
    rig_end *end = &rc->pair->end[rc->side];
    if (end->closing || !end->peer)
        ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("there is no connection"));
    else if (end->peer->wire->open(end->peer, call) != EW_OK)
        ew__call_fail_as(call, EW_ORIGIN_LOCAL, EW_STATUS_INTERNAL, EW_STR("the connection is busy"));
}

static const ew__callee_ops opening = {.open = on_open};

static void fill_call(ew_call *call, const rig_request *request) {
    call->kind = request->list ? EW__CALL_LIST : EW__CALL_RUN;
    call->key = ew_str_from(request->key);
    call->input = request->input.len ? request->input : EW_STR("null");
    call->context = ew_str_from(request->context);
    call->labels = ew_str_from(request->labels);
    call->wants_chunks = request->stream;
    call->has_input = request->input_stream;
    call->hops = request->hops;
    call->outgoing.notify = request->notify;
    ew__trace_new(&call->trace, &call->executor->rng);
    if (request->timeout_ms)
        call->deadline = ew__executor_read_clock(call->executor) + EW__MS(request->timeout_ms);
}

rig_call *rig_open_from(rig_pair *pair, int side, const rig_request *request) {
    rig *r = pair->rig;
    rig_call *rc = calloc(1, sizeof *rc);
    assert_non_null(rc);
    rc->rig = r;
    rc->pair = pair;
    rc->side = side;
    rc->key = request->key ? request->key : "(list)";
    rc->full_after = request->full_after;
    *r->last_call = rc;
    r->last_call = &rc->next;
    ew_call *call = ew__call_new(&r->side[side].executor, &caller, rc);
    if (!call) { /* as client/request.c: the program is told at once */
        ew__end end = {.status = EW_STATUS_RESOURCE_EXHAUSTED,
                       .origin = EW_ORIGIN_LOCAL,
                       .fault = {.message = EW_STR("out of memory")}};
        tell_end(rc, &end, ew__str(NULL, 0));
        return rc;
    }
    rc->call = call;
    fill_call(call, request);
    rc->wrapped = r->objects && request->input.len && request->input.ptr[0] != '{';
    if (rc->wrapped)
        call->input = wrap(call, request->input);
    ew__call_open_on(call, &opening, rc);
    return rc;
}

rig_call *rig_open(rig_pair *pair, const rig_request *request) { return rig_open_from(pair, RIG_CLIENT, request); }

rig_call *rig_nth(const rig *r, size_t i) {
    rig_call *rc = r->calls;
    while (rc && i-- > 0)
        rc = rc->next;
    assert_non_null(rc);
    return rc;
}

/* ---- what a caller may do; nothing once it was told the end ---- */

void rig_call_cancel(rig_call *rc) {
    if (rc->call)
        ew__call_cancel(rc->call, EW__CANCEL_ASKED);
}

void rig_call_release(rig_call *rc) {
    if (!rc->call)
        return;
    ew_call *call = rc->call;
    rc->call = NULL;
    rc->released = true;
    ew__call_release(call);
}

void rig_call_room(rig_call *rc) {
    rc->full_after = 0;
    if (rc->call)
        ew__call_room(rc->call);
}

ew_err rig_call_send(rig_call *rc, ew_str chunk) { return rc->call ? ew__call_input(rc->call, chunk) : EW_EENDED; }

void rig_call_send_end(rig_call *rc) {
    if (rc->call)
        ew__call_input_end(rc->call);
}
