/*
 * tests/unit/wire/stepflow_texts.h: what tests of Stepflow's texts share: texts with ' for ", and lists of actions.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_STEPFLOW_TEXTS_H
#define EW_TESTS_STEPFLOW_TEXTS_H

#include "unit/wire/stepflow_http_world.h"

static inline char *quoted(const char *text) { return expand(&(world){.ids = {""}}, text); }

static inline void check_str_at(ew_str got, const char *expected, int line) {
    char *text = quoted(expected);
    if (!ew_str_eq(got, ew_str_from(text)))
        fail_msg("line %d: %.*s, not %s", line, (int)got.len, got.len ? got.ptr : "", text);
    free(text);
}
#define check_str(got, expected) check_str_at((got), (expected), __LINE__)

/* What was written; the buffer is freed. */
static inline void check_buf_at(ew__buf *buf, const char *expected, int line) {
    assert_int_equal(buf->err, EW_OK);
    check_str_at(ew__buf_view(buf), expected, line);
    ew__buf_done(buf);
}
#define check_buf(buf, expected) check_buf_at((buf), (expected), __LINE__)

static inline ew__buf fresh(void) {
    ew__buf buf;
    ew__buf_init(&buf, ew_env_default(), SIZE_MAX / 2);
    return buf;
}

/* ---- actions ---- */

typedef struct shelf {
    ew__registry registry;
    ew__actions *actions;
} shelf;

static inline void on_call(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, EW_STR("1"));
}

static inline void shelf_add(shelf *s, const char *key, const ew_action_options *options) {
    assert_int_equal(ew__registry_add(&s->registry, key, &ew__local_callee, NULL, on_call, NULL, options), EW_OK);
}

static inline void shelf_init(shelf *s) { assert_int_equal(ew__registry_init(&s->registry, ew_env_default()), EW_OK); }

static inline void shelf_done(shelf *s) {
    if (s->actions)
        ew__actions_unref(s->actions);
    ew__registry_done(&s->registry);
}

#endif
