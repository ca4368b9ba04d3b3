/*
 * fuzz/fuzz_call.c: calls without a wire. The input is a script, one event on each line: a verb, a
 * digit that selects a call, and a text. Lower-case verbs are events of callers, upper-case verbs are
 * what handlers and upstreams do, signs are events of the process (see `verbs`). Handlers keep their
 * calls, so that any order of events occurs, on the loop thread or as if posted by a worker.
 *
 * Each call ends once. Payloads that arrive are JSON and fit the schemas of their action. No handler
 * runs for a caller without a valid token if one is required. No memory, timer or call is left.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/bridge.h"
#include "session.h"
#include <stdio.h>

#define CALLS 8
#define CALLS_IN_ALL 100
#define TOKEN "ewt_right"

typedef struct caller_end {
    ew_call *call; /* NULL: none is open */
    ew_err answer; /* to chunks */
    bool checked;  /* its action has schemas */
} caller_end;

typedef struct world world;

typedef struct upstream {
    ew__upstream base; /* first */
    world *w;
    bool down;
} upstream;

struct world {
    ew__executor executor; /* first */
    ew__call_context calls;
    ew__observer observer;
    ew__registry registry;
    ew__clients clients;
    ew__access access;
    ew__gate gate;
    ew__who who;
    upstream upstreams[2];
    caller_end callers[CALLS];
    ew_call *callees[CALLS]; /* references; what handlers and upstreams have */
    unsigned n_opened, n_kept, n_ended, n_left, n_waits;
    atomic_uint live;
    ew_str flags, carrier, context, labels; /* of the next call */
    ew_err input_answer;                    /* of upstreams */
    bool worker;                            /* handlers act on a worker thread */
    bool stubborn;                          /* handlers do not end when they are cancelled */
    bool elsewhere;                         /* the code that runs now is not on the loop thread */
};

static size_t in_use; /* bytes of memory */

static world *world_of(const ew_call *call) { return ew__container_of(call->executor, world, executor); }

static bool is_json(ew_str text) { return ew_json_check(text, NULL) == EW_OK; }

static bool has(ew_str text, char c) { return text.len > 0 && memchr(text.ptr, c, text.len) != NULL; }

/* ---- the process ---- */

static void *count_alloc(void *ud, void *ptr, size_t old_size, size_t new_size) {
    void *grown = ew_env_default()->alloc(NULL, ptr, old_size, new_size);
    (void)ud;
    if (grown || new_size == 0)
        in_use = in_use - old_size + new_size;
    return grown;
}

static uint64_t fuzz_wall(void *ud) { return fuzz_now(ud) / 1000000; }

static bool is_here(const ew__executor *executor) { return !((const world *)(const void *)executor)->elsewhere; }

static const ew__executor_ops queue_ops = {.here = is_here};

static void run_posted(world *w) {
    while (ew__executor_run_tasks(&w->executor)) {
    }
}

static void pass_time(world *w, uint64_t ms) {
    run_posted(w);
    now_ns += EW__MS(ms);
    ew__executor_read_clock(&w->executor);
    ew__timers_run(&w->executor.timers, w->executor.now);
}

static void on_ended(ew__observer *observer, ew_call *call, const ew__end *end, uint64_t duration_ns) {
    (void)call;
    (void)duration_ns;
    check(end->status == EW_STATUS_OK || end->fault.status == end->status);
    ew__container_of(observer, world, observer)->n_ended++;
}

static void on_left(ew__observer *observer, ew_call *call, uint64_t after_cancel_ns) {
    check(after_cancel_ns == 0 || ew_call_cancelled(call));
    ew__container_of(observer, world, observer)->n_left++;
}

static void on_opened(ew__observer *observer, ew_call *call) {
    (void)call;
    ew__container_of(observer, world, observer)->n_opened++;
}

/* ---- callers ---- */

static void check_payload(const caller_end *caller, ew_str json, ew_json_type type) {
    check(caller->call && is_json(json));
    check(!caller->checked || ew_json_typeof(json) == type);
}

static ew_err on_chunk(ew_call *call, ew_str json) {
    caller_end *caller = call->caller_ud;
    check_payload(caller, json, EW_JSON_STRING);
    return caller->answer;
}

static ew_err on_batch(ew_call *call, const ew_str *row, size_t *n) {
    ew_err err = EW_OK;
    size_t taken = 0;
    while (taken < *n && err == EW_OK)
        err = on_chunk(call, row[taken++]);
    *n = taken;
    return err;
}

static void on_end(ew_call *call, const ew__end *end) {
    caller_end *caller = call->caller_ud;
    check(caller->call == call);
    if (end->status == EW_STATUS_OK)
        check_payload(caller, end->result, EW_JSON_NUMBER);
    check(end->fault.details.len == 0 || is_json(end->fault.details));
    caller->call = NULL;
    ew__call_release(call);
}

static void on_input_room(ew_call *call) { check(!call->input_full); }

static const ew__caller_ops plain_caller = {.chunk = on_chunk, .end = on_end};
static const ew__caller_ops batch_caller = {
    .chunk = on_chunk, .chunk_row = on_batch, .end = on_end, .input_room = on_input_room};

static void fill_call(world *w, ew_call *call, ew_str input) {
    call->wire = has(w->flags, 'w') ? "rrq" : "mem";
    call->wants_chunks = has(w->flags, 's');
    call->has_input = has(w->flags, 'i');
    call->hops = has(w->flags, 'h') ? EW__HOPS_MAX : 0;
    call->deadline = has(w->flags, 'd') ? w->executor.now + EW__MS(1000) : EW__NEVER;
    call->served.who = has(w->flags, 'o') ? &ew__who_owner : &w->who;
    check(ew__arena_str(&call->arena, input, &call->input) == EW_OK);
    check(ew__arena_str(&call->arena, w->carrier, &call->served.carrier) == EW_OK);
    check(ew__arena_str(&call->arena, w->context, &call->context) == EW_OK);
    check(ew__arena_str(&call->arena, w->labels, &call->labels) == EW_OK);
}

static void open_call(world *w, unsigned n, ew_str text) {
    caller_end *caller = &w->callers[n];
    const char *space = text.len ? memchr(text.ptr, ' ', text.len) : NULL;
    size_t key_len = space ? (size_t)(space - text.ptr) : text.len;
    ew_str input = space ? ew__str(space + 1, text.len - key_len - 1) : ew__str(NULL, 0);
    ew__action *action = NULL;
    ew__actions *actions = ew__registry_get(&w->registry);
    if (!caller->call && w->n_opened < CALLS_IN_ALL && (input.len == 0 || is_json(input)) &&
        ew__actions_find(actions, ew__str(text.ptr, key_len), &action) == EW_OK) {
        ew_call *call = ew__call_new(&w->executor, has(w->flags, 'b') ? &batch_caller : &plain_caller, caller);
        check(call != NULL);
        fill_call(w, call, input);
        *caller = (caller_end){.call = call, .checked = ew__str_is(action->name, EW_STR("checked"))};
        ew__call_open(call, action);
    }
    ew__actions_unref(actions);
}

static void set_flags(world *w, unsigned n, ew_str text) {
    (void)n;
    w->flags = text;
}

/* 1: where its trace comes from; 2: context; 3: labels. */
static void set_extra(world *w, unsigned n, ew_str text) {
    ew_str *extra = n == 1 ? &w->carrier : n == 2 ? &w->context : &w->labels;
    if (is_json(text) && (n == 2 || ew_json_typeof(text) == EW_JSON_OBJECT))
        *extra = text;
}

static void set_answer(world *w, unsigned n, ew_str text) {
    w->callers[n].answer = has(text, 'f') ? EW_FULL : has(text, 'l') ? EW_ELIMIT : EW_OK;
}

static void cancel_call(world *w, unsigned n, ew_str text) {
    if (w->callers[n].call)
        ew__call_cancel(w->callers[n].call, has(text, 's') ? EW__CANCEL_SHUTDOWN : EW__CANCEL_ASKED);
}

static void leave_call(world *w, unsigned n, ew_str text) {
    ew_call *call = w->callers[n].call;
    (void)text;
    w->callers[n].call = NULL;
    if (call)
        ew__call_release(call);
}

static void make_room(world *w, unsigned n, ew_str text) {
    (void)text;
    if (w->callers[n].call)
        ew__call_room(w->callers[n].call);
}

static void send_input(world *w, unsigned n, ew_str text) {
    ew_call *call = w->callers[n].call;
    if (call && call->has_input && is_json(text))
        (void)ew__call_input(call, text);
}

static void end_input(world *w, unsigned n, ew_str text) {
    (void)text;
    if (w->callers[n].call && w->callers[n].call->has_input)
        ew__call_input_end(w->callers[n].call);
}

/* ---- handlers and upstreams ---- */

static bool holds_token(const ew__who *who) {
    uint8_t digest[EW__SHA256_SIZE];
    ew__sha256_of(TOKEN, strlen(TOKEN), digest);
    return who->kind == EW__WHO_TOKEN && memcmp(who->digest, digest, sizeof digest) == 0;
}

/* The call that was kept in this place before ends now. */
static void keep(ew_call *call, void *arg) {
    world *w = arg;
    ew_call **place = &w->callees[w->n_kept++ % CALLS], *old = *place;
    check(!call->action || !w->access.required || call->served.who == &ew__who_owner || holds_token(&w->who));
    *place = ew_call_ref(call);
    if (old)
        (void)ew_call_fail(old, EW_STATUS_ABORTED, "another call takes its place");
    ew_call_unref(old);
}

static void on_upstream_open(ew_call *call) {
    upstream *up = call->callee_ud;
    call->outgoing.begun = !up->down;
    if (up->down)
        ew__call_fail_as(call, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR("it is down"));
    else
        keep(call, up->w);
}

static ew_err on_upstream_input(ew_call *call, ew_str chunk) {
    check(is_json(chunk));
    return world_of(call)->input_answer;
}

static void on_upstream_cancel(ew_call *call, ew__cancel_why why) {
    (void)why;
    if (!world_of(call)->stubborn)
        ew__call_fail_as(call, EW_ORIGIN_CANCEL, EW_STATUS_CANCELLED, EW_STR("cancelled"));
}

static const ew__callee_ops upstream_callee = {
    .open = on_upstream_open, .input = on_upstream_input, .cancel = on_upstream_cancel};

static void open_upstream(ew__upstream *base, ew_call *call) { ew__call_open_on(call, &upstream_callee, base); }

static void free_upstream(ew__upstream *base) { (void)base; }

static const char *refuses(const ew_request_options *options) {
    if (options->labels.len)
        return "no labels";
    return ew__str_is(options->input, EW_STR("\"refused\"")) ? "not this input" : NULL;
}

static void on_call_cancel(ew_call *call, void *arg) {
    if (!((world *)arg)->stubborn)
        on_cancel(call, NULL);
}

static void on_room(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_chunkf(call, "{\"n\":%d,\"key\":%q}", 7, ew_call_key(call));
}

static void on_after(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_donef(call, "[%q,%lld]", ew_call_key(call), (long long)ew_call_deadline_ms(call));
}

static void listen_all(ew_call *call, ew_str text) {
    world *w = world_of(call);
    if (!has(text, 'i'))
        (void)ew_call_on_cancel(call, on_call_cancel, w);
    if (!has(text, 'c'))
        (void)ew_call_on_room(call, on_room, w);
    (void)ew_call_on_input(call, on_input, w);
}

static void send_fault(ew_call *call, ew_str text) {
    const char *bar = text.len ? memchr(text.ptr, '|', text.len) : NULL;
    size_t n = bar ? (size_t)(bar - text.ptr) : text.len;
    ew_fault fault = {.status = (ew_status)(n > 0 ? text.ptr[0] - 'a' : 0),
                      .message = ew__str(text.ptr, n),
                      .retryable = bar != NULL};
    if (bar)
        fault.details = ew__str(bar + 1, text.len - n - 1);
    (void)ew_call_fail_with(call, &fault);
}

static void send_batch(ew_call *call) {
    const ew_str chunks[] = {EW_STR("\"a\""), EW_STR("\"b\""), EW_STR("[3]"), EW_STR("\"d\"")};
    size_t n = sizeof chunks / sizeof chunks[0];
    if (ew__executor_here(call->executor))
        (void)ew__call_chunk_row(call, chunks, &n);
    check(n <= sizeof chunks / sizeof chunks[0]);
}

static void ask_call(ew_call *call) {
    check(ew_call_context(call).len == 0 || is_json(ew_call_context(call)));
    check(ew_call_labels(call).len == 0 || is_json(ew_call_labels(call)));
    check(ew_call_trace_id(call).len == 32 && ew_call_span_id(call).len == 16);
    check(call->tracestate.len == 0 || call->trace.has_parent);
    check(ew_call_deadline_ms(call) >= -1 && ew_call_attempt(call) == call->attempt);
    (void)ew_call_wire(call);
    check(ew_call_wants_chunks(call) == call->wants_chunks && ew_call_has_input_stream(call) == call->has_input);
}

static void wait_for_room(ew_call *call) {
    world *w = world_of(call);
    ew_err err = w->n_waits++ < 4 ? ew_call_wait_room(call) : EW_OK;
    check(!w->elsewhere ? err != EW_ECANCELLED : err != EW_EUNSUPPORTED);
    if (w->n_waits < 4)
        (void)ew_call_wait(call, 0);
}

static void do_callee(ew_call *call, char verb, ew_str text) {
    if (verb == 'A')
        (void)ew_call_after(call, 100, on_after, NULL);
    else if (verb == 'B')
        send_batch(call);
    else if (verb == 'C')
        (void)ew_call_chunk(call, text);
    else if (verb == 'D')
        (void)ew_call_done(call, text);
    else if (verb == 'F')
        send_fault(call, text);
    else if (verb == 'I' && ew__executor_here(call->executor))
        ew__call_input_room(call);
    else if (verb == 'L')
        listen_all(call, text);
    else if (verb == 'Q')
        ask_call(call);
    else if (verb == 'W')
        wait_for_room(call);
    else if (verb == 'Z')
        on_room(call, NULL);
}

/* ---- events of the process ---- */

static void add_action(world *w, unsigned n, ew_str text) {
    char key[64], schema[64];
    const char *space = text.len ? memchr(text.ptr, ' ', text.len) : NULL;
    ew_str name = ew__str(text.ptr, space ? (size_t)(space - text.ptr) : text.len);
    ew_str rest = space ? ew__str(space + 1, text.len - name.len - 1) : EW_STR("");
    const char *secrets[] = {"/a", "/b/*", NULL};
    ew_action_options options = {.description = "new", .secrets = n & 1 ? secrets : NULL};
    if (has(text, 0) || name.len >= sizeof key || rest.len >= sizeof schema)
        return;
    (void)snprintf(key, sizeof key, "%.*s", (int)name.len, name.len ? name.ptr : "");
    (void)snprintf(schema, sizeof schema, "%.*s", (int)rest.len, rest.len ? rest.ptr : "");
    if (space)
        *(n & 2 ? &options.output_schema : n & 4 ? &options.metadata : &options.input_schema) = schema;
    ew_err err = ew__registry_add(&w->registry, key, &ew__local_callee, NULL, keep, w, &options);
    char why[300];
    check(err != EW_OK || !ew__contract_say(w->executor.env, &options, why, sizeof why));
    (void)ew__registry_is_secret(&w->registry, rest);
}

static void find_action(world *w, unsigned n, ew_str text) {
    char keys[64];
    ew__action *action = NULL;
    ew__actions *actions = ew__registry_get(&w->registry);
    size_t len = ew__actions_matches(actions, text, keys, sizeof keys);
    check(len <= sizeof keys);
    check(ew__actions_find(actions, text, &action) != EW_EEXISTS || n || len > 0);
    ew__actions_unref(actions);
}

static void list_actions(world *w, unsigned n, ew_str text) {
    ew__buf out;
    ew_str list;
    ew_fault fault;
    ew__actions *actions = ew__registry_get(&w->registry);
    ew_err err = ew__gate_list(&w->executor, &w->who, n ? "rrq" : "mem", actions, &out, &list, &fault);
    check(err == EW_OK ? ew_json_typeof(list) == EW_JSON_OBJECT : err == EW_EACCESS && fault.message.len > 0);
    ew__buf_done(&out);
    ew__actions_unref(actions);
    if (is_json(text))
        (void)ew__actions_list_problem(w->executor.limits, text);
    (void)ew__gate_changed(&w->executor);
    check(ew__gate_is_authenticated(&w->executor, &w->who, &fault) || !w->who.accepted || w->access.required);
    ew__principal principal = ew__principal_of(&w->executor, &w->who);
    check(ew__principal_equal(&principal, &principal));
}

/* Bits of the digit: actions that the text names, one wire, expiry. */
static void set_tokens(world *w, unsigned n, ew_str text) {
    const ew_str wires[] = {EW_STR("rrq"), EW_STR("http")};
    ew__token token = {.name = EW_STR("n"), .expires_ms = n & 4 ? 2000 : INT64_MAX};
    ew__tokens *tokens = NULL;
    unsigned line;
    const char *problem;
    ew__buf out;
    ew__sha256_of(TOKEN, strlen(TOKEN), token.digest);
    token.actions = &text;
    token.n_actions = n & 1;
    token.wires = wires;
    token.n_wires = n & 2;
    ew__buf_init(&out, w->executor.env, SIZE_MAX / 2);
    ew__token_write(&out, &token);
    w->access.required = true;
    if (ew__tokens_parse(w->executor.env, ew__buf_view(&out), &tokens, &line, &problem) == EW_OK)
        ew__access_set(&w->access, tokens);
    ew__buf_done(&out);
}

static void on_look(ew__access *access) { check(access->required); }

static void show_token(world *w, unsigned n, ew_str text) {
    ew_fault fault;
    bool valid = ew__gate_present_token(&w->executor, &w->who, text, &fault);
    check(!w->access.required || valid == w->who.accepted);
    check(valid || fault.status == EW_STATUS_UNAUTHENTICATED || fault.status == EW_STATUS_RESOURCE_EXHAUSTED);
    if (!valid && n)
        (void)ew__gate_is_last_refusal(&w->executor, &w->who);
    check(ew__gate_is_pending(&w->executor, &w->who) == (w->access.required && !w->who.accepted));
}

static void set_process(world *w, unsigned n, ew_str text) {
    w->upstreams[0].down = has(text, '0');
    w->upstreams[1].down = has(text, '1');
    w->observer.spans = has(text, 's');
    w->worker = has(text, 'w');
    w->stubborn = has(text, 'c');
    w->input_answer = n == 0 ? EW_OK : n == 1 ? EW_FULL : EW_ELIMIT;
}

static void wait_time(world *w, unsigned n, ew_str text) {
    (void)text;
    pass_time(w, n ? (uint64_t)1 << (2 * n) : 0);
}

static const struct verb {
    char name;
    void (*run)(world *w, unsigned n, ew_str text);
} verbs[] = {{'a', set_answer},  {'e', end_input},  {'f', set_flags},   {'i', send_input},
             {'k', cancel_call}, {'l', leave_call}, {'m', make_room},   {'o', open_call},
             {'x', set_extra},   {'+', add_action}, {'?', find_action}, {'*', list_actions},
             {'=', set_tokens},  {'!', show_token}, {'#', set_process}, {'.', wait_time}};

static void do_line(world *w, ew_str line) {
    unsigned n = line.len > 1 ? (unsigned)line.ptr[1] % CALLS : 0;
    ew_str text = line.len > 2 ? ew__str(line.ptr + 2, line.len - 2) : ew__str("", 0);
    char name = line.len > 0 ? line.ptr[0] : '.';
    if (name >= 'A' && name <= 'Z') {
        w->elsewhere = w->worker;
        if (w->callees[n])
            do_callee(w->callees[n], name, text);
        w->elsewhere = false;
        return;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (verbs[i].name == name)
            verbs[i].run(w, n, text);
}

/* ---- one input ---- */

static void add_remote(world *w, const char *runtime, const char *key, uint32_t n_upstreams, ew__action **ret) {
    const ew_env *env = w->executor.env;
    ew__upstream *upstreams[] = {&w->upstreams[0].base, &w->upstreams[1].base};
    const ew_str names[] = {ew_str_from(key), EW_STR("/flow/other")};
    ew__bridge *bridge = ew__bridge_new(env, upstreams, names, n_upstreams);
    check(bridge && ew__action_new_remote(env, ew_str_from(runtime), ew_str_from(key), EW_STR("{}"), &ew__bridge_callee,
                                          bridge, ew__bridge_drop, ret) == EW_OK);
}

static void add_actions(world *w) {
    ew__action *remotes[4];
    const char *secrets[] = {"/password", NULL};
    ew_action_options checked = {.input_schema = "{\"type\":\"object\"}",
                                 .output_schema = "{\"type\":\"number\"}",
                                 .stream_schema = "{\"type\":\"string\"}",
                                 .secrets = secrets};
    for (size_t i = 0; i < 2; i++) {
        atomic_init(&w->upstreams[i].base.refs, 1);
        w->upstreams[i].w = w;
        w->upstreams[i].base.open = open_upstream;
        w->upstreams[i].base.free = free_upstream;
        w->upstreams[i].base.refuses = i == 0 ? refuses : NULL;
        w->upstreams[i].base.wire = i == 0 ? "rrq" : "mem";
        w->upstreams[i].base.traces = i == 0;
    }
    check(ew__registry_add(&w->registry, "/flow/plain", &ew__local_callee, NULL, keep, w, NULL) == EW_OK);
    check(ew__registry_add(&w->registry, "/tool/plain", &ew__local_callee, NULL, keep, w, NULL) == EW_OK);
    check(ew__registry_add(&w->registry, "/flow/checked", &ew__local_callee, NULL, keep, w, &checked) == EW_OK);
    add_remote(w, "a", "/flow/far", 1, &remotes[0]);
    add_remote(w, "a", "/flow/two", 2, &remotes[1]);
    add_remote(w, "a", "/flow/shared", 1, &remotes[2]);
    add_remote(w, "b", "/flow/shared", 1, &remotes[3]);
    check(ew__registry_set_remotes(&w->registry, remotes, 4) == EW_OK);
    for (size_t i = 0; i < 4; i++)
        ew__action_unref(remotes[i]);
}

static void begin(world *w, const ew_env *env, const ew_limits *limits) {
    static const uint8_t address[EW__CLIENT_KEY] = {1};
    w->executor.ops = &queue_ops;
    check(ew__registry_init(&w->registry, env) == EW_OK);
    ew__executor_init(&w->executor, env, limits);
    ew__call_context_init(&w->calls, &w->executor);
    w->executor.calls->live_all = &w->live;
    w->observer = (ew__observer){.opened = on_opened, .ended = on_ended, .left = on_left};
    w->executor.calls->observer = &w->observer;
    ew__clients_init(&w->clients, env);
    w->clients.calls_per_second = 20;
    w->who.client = ew__clients_enter(&w->clients, address, false);
    ew__access_init(&w->access, env, &w->clients);
    w->access.look = on_look;
    ew__gate_init(&w->gate, &w->access);
    w->executor.calls->gate = &w->gate;
    add_actions(w);
}

static void finish(world *w) {
    w->worker = false;
    for (unsigned i = 0; i < CALLS; i++)
        leave_call(w, i, EW_STR(""));
    pass_time(w, 1000);
    for (unsigned i = 0; i < CALLS; i++) {
        if (w->callees[i])
            (void)ew_call_fail(w->callees[i], EW_STATUS_ABORTED, "over");
        w->elsewhere = true; /* a worker may have the last reference */
        ew_call_unref(w->callees[i]);
        w->elsewhere = false;
    }
    pass_time(w, 1000);
    check(w->executor.calls->live == 0 && atomic_load(&w->live) == 0 &&
          ew__timers_next(&w->executor.timers) == EW__NEVER);
    check(w->n_opened == w->n_ended && w->n_opened == w->n_left);
    check(atomic_load(&w->upstreams[0].base.calls) == 0 && atomic_load(&w->upstreams[1].base.calls) == 0);
    ew__clients_leave(&w->clients, w->who.client);
    ew__gate_done(&w->gate);
    ew__access_done(&w->access);
    ew__registry_done(&w->registry);
    ew__clients_done(&w->clients);
    ew__call_context_done(&w->calls);
    ew__executor_done(&w->executor);
    check(atomic_load(&w->upstreams[0].base.refs) == 1 && in_use == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ew_env env = *ew_env_default();
    ew_limits limits = {.out_high_bytes = 512,
                        .out_low_bytes = 128,
                        .out_max_bytes = 2048,
                        .in_queue_items = 4,
                        .stall_ms = 1,
                        .list_actions = 3};
    world w = {.executor = {.ops = &queue_ops}};
    env.now_ns = fuzz_now;
    env.wall_ms = fuzz_wall;
    env.random = fuzz_random;
    env.alloc = count_alloc;
    ew_limits_complete(&limits);
    now_ns = 1000000000;
    in_use = 0;
    begin(&w, &env, &limits);
    for (size_t at = 0; at < size;) {
        const uint8_t *newline = memchr(data + at, '\n', size - at);
        size_t n = newline ? (size_t)(newline - data) - at : size - at;
        do_line(&w, ew__str((const char *)data + at, n));
        at += n + 1;
    }
    finish(&w);
    return 0;
}
