/*
 * tests/bridge/scenarios_plain.c: what goes well over a bridge, and what it cannot carry: calls, faults, streams both
 * ways, traces, contexts, lists.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/pairs.h"
#include "support/json_or.h"

/* ---- unary ---- */

static void unary(world *w) {
    outcome o = {.status = EW_STATUS_OK};
    ask(w, "/flow/echo", "{\"hello\":[1,2,3]}", &o);
    must_be(&o, "{\"hello\":[1,2,3]}");
    ask(w, "echo", "{\"by\":\"name\"}", &o);
    must_be(&o, "{\"by\":\"name\"}");
    ask(w, "/tool/sha256", "{}", &o); /* on a worker thread there */
    must_be(&o, "\"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\"");
    ask(w, "/flow/echo", NULL, &o);
    must_be(&o, w->near->objects || w->far->objects ? "{}" : "null");
    outcome_done(&o);
    w->crossed |= MARK_UNARY;
}

static void in_turn(world *w) {
    outcome o = {.status = EW_STATUS_OK};
    for (int i = 0; i < 50; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "{\"i\":%d}", i);
        ask(w, "/flow/echo", text, &o);
        must_be(&o, text);
    }
    outcome_done(&o);
}

static void list(world *w) {
    ew_request *request = NULL;
    ew_end end;
    assert_int_equal(ew_client_list(w->caller, &(ew_request_options){.timeout_ms = WAIT_MS}, &request), EW_OK);
    assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
    assert_int_equal(end.status, EW_STATUS_OK);
    ew_str echo = ew_json_get(end.result, "/~1flow~1echo"), sha = ew_json_get(end.result, "/~1tool~1sha256");
    assert_true(ew_str_eq(json_str_or(echo, "/name", EW_STR("")), EW_STR("echo")));
    assert_true(ew_str_eq(json_str_or(echo, "/description", EW_STR("")), EW_STR("Returns its input, byte for byte")));
    assert_true(ew_str_eq(json_str_or(sha, "/outputSchema/type", EW_STR("")), EW_STR("string")));
    assert_true(json_bool_or(end.result, "/~1flow~1sum/metadata/bidi", false)); /* it reads an input stream */
    assert_int_equal(ew_json_typeof(ew_json_get(end.result, "/~1flow~1echo/metadata/bidi")), EW_JSON_NONE);
    ew_request_free(request);
}

static void unknown(world *w) {
    outcome o = {.status = EW_STATUS_OK};
    ask(w, "/flow/missing", "{}", &o);
    must_fail(&o, EW_STATUS_NOT_FOUND);
    ask_stream(w, "missing", "{}", &o);
    must_fail(&o, EW_STATUS_NOT_FOUND);
    ask(w, "/flow/echo", "{}", &o);
    must_be(&o, "{}");
    outcome_done(&o);
}

/* ---- faults ---- */

/*
 * What is left of the advice to try again later. The http wire has a header for the time and none for the word, and no
 * place for either in a stream; that somebody is away may always change.
 */
static void must_advise(const world *w, const outcome *o, bool stream, bool retry) {
    bool near = strcmp(w->near->name, "http") == 0, far = strcmp(w->far->name, "http") == 0;
    bool lost = stream && (near || (far && (w->near->caps & EW__CAN_CHUNKS)));
    bool delay = retry && !lost;
    assert_int_equal(o->retry_after_ms, delay ? 3000 : 0);
    assert_int_equal(o->retryable, near || far ? delay || o->status == EW_STATUS_UNAVAILABLE : retry);
}

#define DETAILS "{\"n\":12345678901234567890,\"n\":1}"

static void one_status(const world *w, ew_status status, bool stream, bool retry) {
    char input[300], message[100];
    outcome o = {.status = EW_STATUS_OK};
    (void)snprintf(message, sizeof message, "it's \xc3\xa4 %s", ew_status_name(status));
    (void)snprintf(input, sizeof input, "{\"status\":\"%s\",\"message\":\"%s\",\"details\":" DETAILS "%s}",
                   ew_status_name(status), message, retry ? ",\"retry_after\":3" : "");
    if (stream)
        ask_stream(w, "/flow/fail", input, &o);
    else
        ask(w, "/flow/fail", input, &o);
    must_fail(&o, status);
    assert_string_equal(o.text, message);
    assert_string_equal(o.details, DETAILS);
    assert_int_equal(o.origin, EW_ORIGIN_ACTION);
    must_advise(w, &o, stream, retry);
    outcome_done(&o);
}

static void statuses(world *w) {
    for (int status = 1; status < EW_STATUS_COUNT; status++)
        one_status(w, (ew_status)status, false, false);
    w->crossed |= MARK_STATUS;
}

static void statuses_streamed(world *w) {
    for (int status = 1; status < EW_STATUS_COUNT; status++)
        one_status(w, (ew_status)status, true, false);
}

static void retry_advice(world *w) {
    for (int status = 1; status < EW_STATUS_COUNT; status++)
        for (int stream = 0; stream < 2; stream++)
            one_status(w, (ew_status)status, stream, true);
}

/* ---- chunks ---- */

static void must_count(const outcome *o, int n) {
    assert_int_equal(atomic_load(&o->n_chunks), n);
    for (int i = 0; i < n && i < CHUNKS_KEPT; i++)
        assert_int_equal(json_int_or(ew_str_from(o->chunks[i]), "/i", -1), i + 1);
}

/* Where one of the wires has no chunks there are none, and the result comes all the same. */
static void stream(world *w) {
    bool chunks = both_carry(w->near, w->far, EW__CAN_CHUNKS);
    outcome o = {.status = EW_STATUS_OK};
    static const int sizes[] = {0, 1, 5, 120};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char input[40], result[40];
        (void)snprintf(input, sizeof input, "{\"n\":%d}", sizes[i]);
        (void)snprintf(result, sizeof result, "{\"count\":%d}", sizes[i]);
        ask_stream(w, "/flow/count", input, &o);
        must_be(&o, result);
        must_count(&o, chunks ? sizes[i] : 0);
    }
    outcome_done(&o);
    w->crossed |= chunks ? MARK_CHUNKS : 0;
}

/* Each chunk leaves when it is said, not with the next or the end. */
static void stream_at_once(world *w) {
    outcome o = {.status = EW_STATUS_OK};
    ew_request *request = begin_forever(w, &o, 0, true);
    assert_true(becomes(&o.n_chunks, 1));
    ew_request_cancel(request);
    finish(request, &o);
    must_fail(&o, EW_STATUS_CANCELLED);
    assert_string_equal(o.chunks[0], "\"begun\"");
    outcome_done(&o);
}

static void stream_unwanted(world *w) {
    outcome o = {.status = EW_STATUS_OK};
    ask(w, "/flow/count", "{\"n\":5}", &o);
    must_be(&o, "{\"count\":5}");
    assert_int_equal(atomic_load(&o.n_chunks), 0);
    outcome_done(&o);
}

/* Much more than fits anywhere, and a reader that holds at first: the producer waits, nothing is lost. */
static void stream_much(world *w) {
    outcome o = {.holds = true};
    atomic_store(&seen.waits, 0);
    ask_stream(w, "/flow/pour", "{\"n\":3000,\"size\":20000}", &o);
    must_be(&o, "\"all\"");
    assert_int_equal(atomic_load(&o.n_chunks), 3000);
    assert_true(atomic_load(&seen.waits) > 0);
    outcome_done(&o);
}

/* ---- input ---- */

static ew_request *begin_input(const world *w, const char *action, outcome *o) {
    return begin_on(w->caller,
                    &(ew_request_options){.action = ew_str_from(action), .stream = true, .input_stream = true}, o);
}

static void refused_input(const world *w) {
    outcome o = {.status = EW_STATUS_OK};
    ew_request_options options = {.action = EW_STR("/flow/sum"), .input_stream = true};
    if (!(w->near->caps & EW__CAN_INPUT)) {
        assert_int_equal(ew_client_call(w->caller, &options, NULL), EW_EUNSUPPORTED);
        return;
    }
    ask_on(w->caller, &options, &o); /* at once: nothing was sent yet */
    must_fail(&o, EW_STATUS_UNIMPLEMENTED);
    outcome_done(&o);
}

static void input(world *w) {
    outcome o = {.status = EW_STATUS_OK};
    if (!both_carry(w->near, w->far, EW__CAN_INPUT)) {
        refused_input(w);
        return;
    }
    ew_request *request = begin_input(w, "/flow/sum", &o);
    for (int i = 1; i <= 4; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%d", i);
        assert_true(ew_request_send(request, ew_str_from(text)) >= EW_OK);
        assert_true(becomes(&o.n_chunks, i)); /* both ways at once */
    }
    assert_int_equal(ew_request_send_end(request), EW_OK);
    finish(request, &o);
    must_be(&o, "10");
    assert_string_equal(o.chunks[3], "10");
    request = begin_input(w, "/flow/sum", &o);
    assert_int_equal(ew_request_send_end(request), EW_OK);
    finish(request, &o);
    must_be(&o, "0");
    outcome_done(&o);
    w->crossed |= MARK_INPUT;
}

/* A handler that does not look at its input holds the sender back; when it does, all of it arrives. */
static void input_much(world *w) {
    enum { SIZE = 4000, MOST = 20000, MORE = 1000 };
    static char chunk[SIZE];
    char text[64];
    gathered all = {0};
    outcome o = {.status = EW_STATUS_OK};
    memset(chunk, '7', sizeof chunk);
    atomic_store(&seen.look, 0);
    ew_request *request = begin_input(w, "/flow/gather", &o);
    for (int n = 0, end = MOST; n < end; n++) {
        (void)snprintf(text, sizeof text, "%d", 10000000 + n); /* each another one, for the order */
        memcpy(chunk, text, 8);
        gathered_add(&all, (ew_str){chunk, sizeof chunk});
        ew_err err = ew_request_send(request, (ew_str){chunk, sizeof chunk});
        if (err < 0)
            fail_msg("input is not taken: %s", ew_err_name(err));
        if (err != EW_FULL)
            continue;
        if (!atomic_exchange(&seen.look, 1)) /* nothing more fits: now it may look */
            end = n + MORE;
        assert_int_equal(ew_request_wait_room(request, WAIT_MS), EW_OK);
    }
    assert_int_equal(atomic_load(&seen.look), 1);
    assert_int_equal(ew_request_send_end(request), EW_OK);
    finish(request, &o);
    must_be(&o, gathered_text(&all, text));
    outcome_done(&o);
}

/* Sends 30 chunks without waiting for anything. What is to be gathered. */
static void send_at_once(const world *w, outcome *o, gathered *all) {
    ew_request *request = begin_input(w, "/flow/gather", o);
    *all = (gathered){0};
    for (int i = 0; i < 30; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "[%d]", i);
        gathered_add(all, ew_str_from(text));
        (void)ew_request_send(request,
                              ew_str_from(text)); /* all of it fits; an end that came meanwhile is seen below */
    }
    (void)ew_request_send_end(request);
    finish(request, o);
}

/* Input that comes before the gateway has reached the origin waits there, in order. */
static void input_early(world *w) {
    char text[64];
    gathered all = {0};
    outcome o = {.status = EW_STATUS_UNAVAILABLE};
    atomic_store(&seen.look, 1);
    cut_far(w, false);
    for (int i = 0; i < 4000 && (o.status == EW_STATUS_UNAVAILABLE || o.status == EW_STATUS_NOT_FOUND); i++) {
        (void)usleep(1000); /* until the gateway has noticed */
        send_at_once(w, &o, &all);
    }
    must_be(&o, gathered_text(&all, text));
    outcome_done(&o);
}

/* The handler fails in the middle of its input: the sender is told, and nothing hangs. */
static void input_refused_later(world *w) {
    outcome o = {.status = EW_STATUS_OK};
    ew_request *request = begin_input(w, "/flow/sum", &o);
    (void)ew_request_send(request, EW_STR("1"));
    (void)ew_request_send(request, EW_STR("\"no number\""));
    finish(request, &o);
    must_fail(&o, EW_STATUS_INVALID_ARGUMENT);
    outcome_done(&o);
}

/* ---- what goes along ---- */

#define TRACE_ID "0af7651916cd43dd8448eb211c80319c"

static void trace(world *w) {
    bool both = both_carry(w->near, w->far, EW__CAN_TRACE);
    outcome o = {.status = EW_STATUS_OK};
    ask_on(w->caller,
           &(ew_request_options){.action = EW_STR("/flow/context"),
                                 .input = EW_STR("{}"),
                                 .traceparent = EW_STR("00-" TRACE_ID "-b7ad6b7169203331-01")},
           &o);
    if (o.status != EW_STATUS_OK)
        fail_msg("ended %s: %s", ew_status_name(o.status), o.text);
    ew_str there = json_str_or(ew_str_from(o.text), "/trace_id", EW_STR(""));
    ew_str span = json_str_or(ew_str_from(o.text), "/span_id", EW_STR(""));
    assert_int_equal(there.len, 32);
    assert_false(ew_str_eq(span, EW_STR("b7ad6b7169203331"))); /* spans of its own, in that trace */
    assert_int_equal(ew_str_eq(there, EW_STR(TRACE_ID)), both);
    if ((w->near->caps & EW__CAN_TRACE) && !w->near->no_trace_back)
        assert_string_equal(o.trace_id, TRACE_ID);
    outcome_done(&o);
    w->crossed |= both ? MARK_TRACE : 0;
}

static bool has_member(const outcome *o, const char *pointer, const char *value) {
    ew_str found = ew_json_get(ew_str_from(o->text), pointer);
    return ew_str_eq(found, ew_str_from(value));
}

/* What the far wire cannot carry is left out; the call goes on without it. */
static void context(world *w) {
    bool both = both_carry(w->near, w->far, EW__CAN_CONTEXT), labels = w->near->labels && w->far->labels;
    bool sent = w->near->inside || (w->near->caps & EW__CAN_CONTEXT);
    outcome o = {.status = EW_STATUS_OK};
    ew_request_options options = {.action = EW_STR("/flow/context"), .input = EW_STR("{}")};
    if (sent)
        options.context = EW_STR("{\"user\": 1}");
    if (w->near->labels)
        options.labels = EW_STR("{\"a\":\"b\"}");
    ask_on(w->caller, &options, &o);
    if (o.status != EW_STATUS_OK)
        fail_msg("ended %s: %s", ew_status_name(o.status), o.text);
    assert_true(ew_str_eq(json_str_or(ew_str_from(o.text), "/wire", EW_STR("")), ew_str_from(w->far->serves)));
    assert_true(has_member(&o, "/key", "\"/flow/context\""));
    if (both)
        assert_true(has_member(&o, "/context", "{\"user\": 1}"));
    else if (sent && (w->far->inside || (w->far->caps & EW__CAN_CONTEXT)))
        assert_true(has_member(&o, "/context/user", "1"));
    else
        assert_true(has_member(&o, "/context/user", ""));
    assert_true(has_member(&o, "/labels/a", labels ? "\"b\"" : ""));
    outcome_done(&o);
    w->crossed |= both ? MARK_CONTEXT : 0;
}

/* Jobs and steps are tried several times; the handler may want to know. Only a job's context lets our caller say so. */
static void attempt(world *w) {
    bool far = w->far->inside; /* those two have a word for it, and begin with 1 */
    bool near = strcmp(w->near->name, "rrq") == 0;
    outcome o = {.status = EW_STATUS_OK};
    ew_request_options options = {.action = EW_STR("/flow/context"), .input = EW_STR("{}")};
    if (near)
        options.context = EW_STR("{\"attempt\":3}");
    ask_on(w->caller, &options, &o);
    assert_int_equal(o.status, EW_STATUS_OK);
    assert_true(has_member(&o, "/attempt", !far ? "null" : near ? "3" : "1"));
    outcome_done(&o);
}

const scenario scenarios_plain[] = {
    {.name = "unary", .run = unary},
    {.name = "in_turn", .run = in_turn},
    {.name = "list", .run = list},
    {.name = "unknown", .run = unknown},
    {.name = "statuses", .run = statuses},
    {.name = "statuses_streamed", .run = statuses_streamed},
    {.name = "retry_advice", .run = retry_advice},
    {.name = "stream", .run = stream},
    {.name = "stream_at_once", .run = stream_at_once, .near_needs = EW__CAN_CHUNKS, .far_needs = EW__CAN_CHUNKS},
    {.name = "stream_unwanted", .run = stream_unwanted},
    {.name = "stream_much", .run = stream_much, .near_needs = EW__CAN_CHUNKS, .far_needs = EW__CAN_CHUNKS},
    {.name = "input", .run = input},
    {.name = "input_much", .run = input_much, .near_needs = EW__CAN_INPUT, .far_needs = EW__CAN_INPUT},
    {.name = "input_early", .run = input_early, .near_needs = EW__CAN_INPUT, .far_needs = EW__CAN_INPUT},
    {.name = "input_refused_later",
     .run = input_refused_later,
     .near_needs = EW__CAN_INPUT,
     .far_needs = EW__CAN_INPUT},
    {.name = "trace", .run = trace},
    {.name = "context", .run = context},
    {.name = "attempt", .run = attempt},
    {.name = NULL},
};
