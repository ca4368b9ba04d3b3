/*
 * tests/unit/wire/stepflow_http_call.h: calls over HTTP to a component server that is the test.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_STEPFLOW_HTTP_CALL_H
#define EW_TESTS_STEPFLOW_HTTP_CALL_H

#include "unit/wire/stepflow_http_world.h"

#define INITIALIZE                                                                                                     \
    RPC "'id':$9,'method':'initialize','params':{'runtime_protocol_version':1,'runtimeProtocolVersion':1,"             \
        "'protocol_prefix':'everywire'}}"
#define INITIALIZED RPC "'method':'initialized','params':{}}"
#define WELCOME "{'id':$9,'result':{'server_protocol_version':1},'jsonrpc':'2.0'}"
#define ACCEPTED "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
#define NO_SERVER "the server did not answer initialize as a Stepflow component server does"
#define LOST "the connection was lost before the end of the call"

static inline rig_call *open_call(rig_pair *pair, const char *key, const char *input) {
    rig_call *rc = rig_open(pair, &(rig_request){.key = key, .input = ew_str_from(input)});
    rig_run(pair->rig);
    return rc;
}

static inline rig_call *open_list(rig_pair *pair) {
    rig_call *rc = rig_open(pair, &(rig_request){.list = true});
    rig_run(pair->rig);
    return rc;
}

/* initialize has come, and nothing else. */
static inline void hear_initialize_at(world *w, rig_pair *pair, int line) {
    w->ids[9][0] = '\0';
    free(hear_post_head_at(w, pair, INITIALIZE, line));
    assert_int_equal(raw_end(pair)->got_len, 0);
}
#define hear_initialize(w, pair) hear_initialize_at((w), (pair), __LINE__)

/* A connection with a call, whose greeting is done; its request follows. */
static inline void shake_hands(world *w, rig_pair *pair) {
    hear_initialize(w, pair);
    answer(w, pair, WELCOME);
    hear_post(w, pair, INITIALIZED);
    hear_nothing(pair);
    say_text(pair, ACCEPTED);
}

/* components/execute has come; its id is $n from now on. */
static inline void hear_execute_at(world *w, rig_pair *pair, int n, const char *component, const char *input,
                                   int line) {
    char *head = take_head_at(pair, line), *body = take_body_at(pair, head, line), *name = expand(w, component);
    char *want = expand(w, input);
    ew_str text = ew_str_from(body), id = ew_json_get(text, "/id"), params = ew_json_get(text, "/params");
    assert_int_equal(ew_json_check(text, NULL), EW_OK);
    if (!ew__str_is(ew_json_get(text, "/method"), EW_STR("\"components/execute\"")) ||
        !ew__str_is(ew_json_get(params, "/component"), ew_str_from(name)) ||
        !ew__str_is(ew_json_get(params, "/input"), ew_str_from(want)))
        fail_msg("line %d: %s", line, body);
    assert_true(id.len > 2 && id.len < sizeof w->ids[0]);
    memcpy(w->ids[n], id.ptr, id.len);
    w->ids[n][id.len] = '\0';
    free(head);
    free(body);
    free(name);
    free(want);
}
#define hear_execute(w, pair, n, component, input) hear_execute_at((w), (pair), (n), (component), (input), __LINE__)

/* A connection that the server knows, with a call of "/e" on it whose id is $1. */
static inline rig_call *begin_call(world *w, rig_pair *pair) {
    rig_call *rc = open_call(pair, "/e", "1");
    if (raw_end(pair)->got_len && strstr(raw_end(pair)->got, "\"initialize\""))
        shake_hands(w, pair);
    hear_execute(w, pair, 1, "'/e'", "1");
    return rc;
}

#endif
