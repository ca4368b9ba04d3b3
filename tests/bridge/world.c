/*
 * tests/bridge/world.c: an origin, a gateway and a caller, joined by two wires; calls, and how they end; cutting cables.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/pairs.h"
#include "support/json_or.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define STEP_US 5000
#define STEPS (WAIT_MS * 1000 / STEP_US)
#define FDS 8192

/* ---- outcomes ---- */

static char *copy(ew_str text) {
    char *out = malloc(text.len + 1);
    assert_non_null(out);
    if (text.len)
        memcpy(out, text.ptr, text.len);
    out[text.len] = '\0';
    return out;
}

void outcome_done(outcome *o) {
    free(o->text);
    free(o->details);
    for (int i = 0; i < CHUNKS_KEPT; i++)
        free(o->chunks[i]);
    *o = (outcome){.holds = o->holds};
}

static void on_chunk(ew_request *request, ew_str chunk, void *ud) {
    outcome *o = ud;
    int n = atomic_load(&o->n_chunks);
    (void)request;
    if (n < CHUNKS_KEPT)
        o->chunks[n] = copy(chunk);
    for (int i = 0; n == 0 && o->holds && i < STEPS && atomic_load(&seen.waits) == 0; i++)
        (void)usleep(STEP_US);
    atomic_fetch_add(&o->n_chunks, 1);
}

static void keep(outcome *o, const ew_end *end) {
    bool ok = end->status == EW_STATUS_OK;
    o->status = end->status;
    o->origin = end->origin;
    o->text = copy(ok ? end->result : end->fault.message);
    o->details = copy(ok ? (ew_str){NULL, 0} : end->fault.details);
    o->retryable = !ok && end->fault.retryable;
    o->retry_after_ms = ok ? 0 : end->fault.retry_after_ms;
    (void)snprintf(o->trace_id, sizeof o->trace_id, "%.*s", (int)end->trace_id.len,
                   end->trace_id.ptr ? end->trace_id.ptr : "");
}

ew_request *begin_on(ew_client *client, const ew_request_options *options, outcome *o) {
    ew_request_options full = *options;
    ew_request *request = NULL;
    outcome_done(o);
    full.on_chunk = on_chunk;
    full.ud = o;
    ew_err err = ew_client_call(client, &full, &request);
    if (err != EW_OK)
        fail_msg("a call cannot begin: %s", ew_err_name(err));
    return request;
}

void finish(ew_request *request, outcome *o) {
    ew_end end;
    ew_err err = ew_request_wait(request, WAIT_MS, &end);
    if (err != EW_OK)
        fail_msg("a call does not end (%d chunks so far)", atomic_load(&o->n_chunks));
    keep(o, &end);
    ew_request_free(request);
}

void ask_on(ew_client *client, const ew_request_options *options, outcome *o) {
    finish(begin_on(client, options, o), o);
}

void ask(const world *w, const char *action, const char *input, outcome *o) {
    ask_on(w->caller, &(ew_request_options){.action = ew_str_from(action), .input = ew_str_from(input)}, o);
}

void ask_stream(const world *w, const char *action, const char *input, outcome *o) {
    ask_on(w->caller, &(ew_request_options){.action = ew_str_from(action), .input = ew_str_from(input), .stream = true},
           o);
}

void ask_until(ew_client *client, const char *action, ew_status status) {
    outcome o = {.status = EW_STATUS_OK};
    for (int i = 0; i < STEPS; i++) {
        ask_on(client, &(ew_request_options){.action = ew_str_from(action), .input = EW_STR("{}")}, &o);
        if (o.status == status) {
            outcome_done(&o);
            return;
        }
        (void)usleep(STEP_US);
    }
    fail_msg("%s never becomes %s: %s %s", action, ew_status_name(status), ew_status_name(o.status), o.text);
}

void must_be(const outcome *o, const char *result) {
    if (o->status != EW_STATUS_OK)
        fail_msg("ended %s: %s", ew_status_name(o->status), o->text);
    assert_string_equal(o->text, result);
    assert_int_equal(o->origin, EW_ORIGIN_ACTION);
}

void must_fail(const outcome *o, ew_status status) {
    if (o->status != status)
        fail_msg("ended %s (%s), not %s", ew_status_name(o->status), o->text, ew_status_name(status));
}

/* ---- waiting ---- */

bool becomes(atomic_int *value, int wanted) {
    for (int i = 0; i < STEPS; i++) {
        if (atomic_load(value) == wanted)
            return true;
        (void)usleep(STEP_US);
    }
    return false;
}

static atomic_int *seen_here(const char *name) {
    static const char *const names[] = {"opened", "running", "cancelled", "deadline_ms", "pouring"};
    atomic_int *const values[] = {&seen.opened, &seen.running, &seen.cancelled, &seen.deadline_ms, &seen.pouring};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return values[i];
    fail_msg("nobody looks at %s", name);
    return NULL;
}

int seen_now(const world *w, const char *name) {
    char pointer[32];
    outcome o = {.status = EW_STATUS_OK};
    if (w->origin)
        return atomic_load(seen_here(name));
    (void)snprintf(pointer, sizeof pointer, "/%s", name);
    ask(w, "/flow/seen", "{}", &o);
    if (o.status != EW_STATUS_OK)
        fail_msg("ended %s: %s", ew_status_name(o.status), o.text);
    int number = (int)json_int_or(ew_str_from(o.text), pointer, -99);
    outcome_done(&o);
    return number;
}

void seen_becomes(const world *w, const char *name, int wanted) {
    int last = 0;
    for (int i = 0; i < STEPS; i++) {
        last = seen_now(w, name);
        if (last == wanted)
            return;
        (void)usleep(STEP_US);
    }
    fail_msg("the origin's handlers: %s is %d, not %d", name, last, wanted);
}

/* Requests that were given up may still be on their way to the origin: it is quiet when none has come for a while. */
void seen_settles(const world *w) {
    int opened = -1, last = seen_now(w, "opened");
    for (int i = 0; i < STEPS && last != opened; i++) {
        opened = last;
        (void)usleep(100000);
        last = seen_now(w, "opened");
    }
    assert_int_equal(last, opened);
    seen_becomes(w, "running", 0);
}

ew_request *begin_forever(const world *w, outcome *o, uint64_t timeout_ms, bool stream) {
    int before = seen_now(w, "opened");
    ew_request_options options = {
        .action = EW_STR("/flow/forever"), .input = EW_STR("{}"), .timeout_ms = timeout_ms, .stream = stream};
    ew_request *request = begin_on(w->caller, &options, o);
    if (timeout_ms == 0)
        seen_becomes(w, "opened", before + 1);
    return request;
}

/* ---- cutting ---- */

static bool is_to(int fd, int port) {
    struct sockaddr_in peer;
    socklen_t size = sizeof peer;
    memset(&peer, 0, sizeof peer);
    return getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.sin_family == AF_INET &&
           ntohs(peer.sin_port) == port;
}

void cut(int port, bool reset) {
    struct sockaddr nobody;
    int n = 0;
    memset(&nobody, 0, sizeof nobody);
    nobody.sa_family = AF_UNSPEC;
    for (int fd = 3; fd < FDS; fd++) {
        if (!is_to(fd, port))
            continue;
        n++;
        if (reset)
            /* The kernel's way to break a connection off; by a bare call, because sanitizers take it for a new one. */
            (void)syscall(SYS_connect, fd, &nobody, sizeof nobody);
        else
            (void)shutdown(fd, SHUT_RDWR);
    }
    assert_true(n > 0);
}

void cut_far(const world *w, bool reset) {
    outcome o = {.status = EW_STATUS_OK};
    if (!w->far->child) {
        cut(w->far_port, reset);
        return;
    }
    ask(w, "/flow/who", "{}", &o);
    int64_t pid = json_int_or(ew_str_from(o.text), "/pid", -1);
    assert_true(pid > 1);
    assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
    outcome_done(&o);
}

/* ---- apps ---- */

int port_of(const ew_app *app, const char *wire) {
    int port = 0;
    for (size_t i = 0; i < ew_app_listeners(app); i++) {
        const char *name = NULL;
        assert_int_equal(ew_app_listener(app, i, &name, NULL, &port), EW_OK);
        if (!wire || strcmp(name, wire) == 0)
            return port;
    }
    fail_msg("nobody listens for %s", wire ? wire : "anything");
    return 0;
}

/* Serves a wire: where it listens, or where it dials. */
static void serve_on(ew_app *app, const bridge_wire *wire, int port) {
    char text[64];
    (void)snprintf(text, sizeof text, "%s:%d", wire->listen ? wire->listen : "ws://127.0.0.1", port);
    ew_err err = wire->listen ? ew_app_listen(app, text) : ew_app_connect(app, text);
    if (err != EW_OK)
        fail_msg("%s: %s", text, ew_app_error(app));
}

static void start(ew_app *app) {
    ew_err err = ew_app_start(app);
    if (err != EW_OK)
        fail_msg("cannot start: %s: %s", ew_err_name(err), ew_app_error(app));
}

ew_app *start_origin(const bridge_wire *wire, const char *id, int port) {
    ew_app *app = ew_app_new_with("origin", &(ew_app_options){.threads = 1, .runtime_id = id});
    assert_non_null(app);
    add_actions(app, id);
    serve_on(app, wire, port);
    start(app);
    return app;
}

void import(ew_app *app, const char *target, const ew_import_options *options) {
    ew_err err = ew_app_import(app, target, options ? options : &(ew_import_options){.refresh_ms = REFRESH_MS});
    if (err != EW_OK)
        fail_msg("%s cannot be imported: %s: %s", target, ew_err_name(err), ew_app_error(app));
}

ew_client *client_to(const char *target) {
    ew_client *client = NULL;
    const char *problem = "";
    if (ew_client_new(target, &(ew_client_options){.limits = {.client_connections = 256}}, &client, &problem) != EW_OK)
        fail_msg("%s: %s", target, problem);
    return client;
}

static ew_client *client_of(const bridge_wire *wire, int port) {
    char target[64];
    (void)snprintf(target, sizeof target, "%s:%d", wire->target, port);
    return client_to(target);
}

/* The far side of the gateway, as far as it can be there before the gateway has started. */
static void prepare_far(world *w) {
    const char *const command[] = {BRIDGE_CHILD, "--stdio", NULL};
    const char *const all[] = {"*", NULL}; /* the options of sanitizers among them */
    ew_import_options options = {.refresh_ms = REFRESH_MS};
    if (w->far->child) {
        options.command = command;
        options.environment = all;
        (void)snprintf(w->far_target, sizeof w->far_target, "%s", w->far->target);
    } else {
        if (w->far->listen) {
            w->origin = start_origin(w->far, "origin", 0);
            w->far_port = port_of(w->origin, NULL);
        }
        (void)snprintf(w->far_target, sizeof w->far_target, "%s:%d", w->far->target, w->far_port);
    }
    import(w->gateway, w->far_target, &options);
}

void world_open(world *w, const bridge_wire *near, const bridge_wire *far) {
    seen_reset();
    *w = (world){.near = near, .far = far};
    w->gateway = ew_app_new_with("gateway", &(ew_app_options){.threads = 2, .runtime_id = "gateway"});
    assert_non_null(w->gateway);
    prepare_far(w);
    if (!near->listen) {
        w->caller = client_of(near, 0);
        w->near_port = ew_client_port(w->caller);
    }
    serve_on(w->gateway, near, w->near_port);
    start(w->gateway);
    if (!far->listen && !far->child) {
        w->far_port = port_of(w->gateway, far->serves);
        w->origin = start_origin(far, "origin", w->far_port);
    }
    assert_int_equal(ew_app_wait_imports(w->gateway, WAIT_MS), EW_OK);
    if (near->listen) {
        w->near_port = port_of(w->gateway, near->serves);
        w->caller = client_of(near, w->near_port);
    }
    ask_until(w->caller, "/flow/echo", EW_STATUS_OK);
}

void world_close(world *w) {
    ew_client_free(w->caller);
    ew_app_free(w->gateway);
    ew_app_free(w->origin);
    memset(w, 0, sizeof *w);
}
