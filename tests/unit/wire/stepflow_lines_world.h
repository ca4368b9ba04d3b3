/*
 * tests/unit/wire/stepflow_lines_world.h: one end of the stepflow wire on pipes, and a test that is its peer, line by
 * line: the world of jsonrpc_world.h with another wire in it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_STEPFLOW_LINES_WORLD_H
#define EW_TESTS_STEPFLOW_LINES_WORLD_H

#include "unit/wire/jsonrpc_world.h"
#include "wire/stepflow/lines.h"
#include "support/json_or.h"

#define INVALID(problem) FAULT(-32600, problem, "INVALID_ARGUMENT")
#define NOT_JSON RPC "'id':null,'error':" FAULT(-32700, "not JSON", "INVALID_ARGUMENT") "}"
#define LOST "the connection was lost before the end of the call"

static inline void lines_with(world *w, int raw, rig_options options) {
    options.stdio = true;
    world_start(w, &ew__wire_stepflow, raw, &options);
}

/* The wire serves (with the actions of the rig), the test is a runtime. */
static inline void lines_serve(world *w) { lines_with(w, RIG_CLIENT, (rig_options){.seed = 1}); }
/* The wire calls, the test is a server. */
static inline void lines_call(world *w) { lines_with(w, RIG_SERVER, (rig_options){.seed = 1}); }

static inline ew__sl_peer *lines_peer(const world *w) { return (ew__sl_peer *)(void *)world_wire(w); }

/* The first of the lines that came, for free(). */
static inline char *next_line_at(world *w, int at_line) {
    ew_str got = heard_so_far(w);
    const char *end = got.len ? memchr(got.ptr, '\n', got.len) : NULL;
    if (!end)
        fail_msg("line %d: no line came", at_line);
    size_t n = (size_t)(end - got.ptr);
    char *copy = calloc(1, n + 1);
    assert_non_null(copy);
    memcpy(copy, got.ptr, n);
    rig_forget(w->pair, n + 1);
    return copy;
}

/* It is that; others may follow. */
static inline void hear_line_at(world *w, const char *pattern, int at_line) {
    char *line = next_line_at(w, at_line);
    peer_check_text(w->ids, pattern, line, strlen(line), at_line);
    free(line);
}

/* It is a request of that kind, with an id that is $n from now on. For free(). */
static inline char *hear_request_at(world *w, int n, const char *method, int at_line) {
    char *line = next_line_at(w, at_line);
    ew_str text = ew_str_from(line), id = ew_json_get(text, "/id");
    assert_int_equal(ew_json_check(text, NULL), EW_OK);
    if (!ew_str_eq(json_str_or(text, "/method", EW_STR("")), ew_str_from(method)))
        fail_msg("line %d: %s", at_line, line);
    assert_true(id.len > 2 && id.len < sizeof w->ids[0]);
    memcpy(w->ids[n], id.ptr, id.len);
    w->ids[n][id.len] = '\0';
    return line;
}

static inline void hear_execute_at(world *w, int n, const char *component, const char *input, int at_line) {
    char *line = hear_request_at(w, n, "components/execute", at_line);
    ew_str text = ew_str_from(line), got = ew_json_get(text, "/params/input");
    if (!ew_str_eq(json_str_or(text, "/params/component", EW_STR("")), ew_str_from(component)) ||
        !ew_str_eq(got, ew_str_from(input)))
        fail_msg("line %d: %s", at_line, line);
    free(line);
}
#define hear_line(w, pattern) hear_line_at((w), (pattern), __LINE__)
#define hear_request(w, n, method) free(hear_request_at((w), (n), (method), __LINE__))
#define hear_execute(w, n, component, input) hear_execute_at((w), (n), (component), (input), __LINE__)

#define INITIALIZE                                                                                                     \
    "'method':'initialize','params':{'runtime_protocol_version':1,'runtimeProtocolVersion':1,"                         \
    "'protocol_prefix':'everywire'}}"
#define INITIALIZED RPC "'method':'initialized','params':{}}"

/* The test answers initialize, as one of ours or as another server; $9 is its id. */
static inline void shake_hands(world *w, bool everywire) {
    rig_run(&w->r);
    hear_request(w, 9, "initialize");
    say(w, everywire ? RPC "'id':$9,'result':{'server_protocol_version':1,'x-everywire':{'version':'0'}}}"
                     : "{'id':$9,'result':{'server_protocol_version':1},'jsonrpc':'2.0'}");
    hear_line(w, INITIALIZED);
}

/* A world in which a call has left with the id $1. */
static inline rig_call *call_known(world *w, bool everywire) {
    lines_call(w);
    rig_call *rc = call_plain(w, "/echo", "[1]");
    shake_hands(w, everywire);
    hear_execute(w, 1, "/echo", "[1]");
    hear_nothing(w);
    return rc;
}

/* The beginning of a long line. */
static inline void say_much(world *w, const char *before, size_t n) {
    char *text = malloc(n + 200);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, 150, "%s", before);
    memset(text + len, 'x', n);
    text[len + n] = '\0';
    say_part(w, text);
    free(text);
}

#endif
