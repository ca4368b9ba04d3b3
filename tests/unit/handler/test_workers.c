/*
 * tests/unit/handler/test_workers.c: handlers on worker threads: what they may leave open when they return.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "handler/workers.h"
#include "unit/call/world.h"

typedef struct record {
    unsigned n_ends, n_chunks;
    ew_status status;
    char text[200]; /* the result, or the fault's message */
    ew_call *call;
} record;

static ew_err on_chunk(ew_call *call, ew_str json) {
    (void)json;
    ((record *)call->caller_ud)->n_chunks++;
    return EW_OK;
}

static void on_end(ew_call *call, const ew__end *end) {
    record *rec = call->caller_ud;
    ew_str text = end->status == EW_STATUS_OK ? end->result : end->fault.message;
    rec->n_ends++;
    rec->status = end->status;
    (void)snprintf(rec->text, sizeof rec->text, "%.*s", (int)text.len, text.ptr);
    ew__call_release(call);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};

/* ---- handlers ---- */

static void done(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, EW_STR("1"));
}

static void abort_call(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_fail(call, EW_STATUS_ABORTED, "aborted");
}

static void forget(ew_call *call, void *arg) {
    (void)call;
    (void)arg;
}

static void chunks_only(ew_call *call, void *arg) {
    (void)arg;
    for (int i = 0; i < 10; i++)
        assert_int_equal(ew_call_chunk(call, EW_STR("1")), EW_OK);
}

static void ref_and_unref(ew_call *call, void *arg) {
    (void)arg;
    ew_call_unref(ew_call_ref(call));
}

static void by_timer(ew_call *call, void *arg) { assert_int_equal(ew_call_after(call, 5, done, arg), EW_OK); }

static void by_room(ew_call *call, void *arg) { assert_int_equal(ew_call_on_room(call, done, arg), EW_OK); }

static void by_cancel(ew_call *call, void *arg) { assert_int_equal(ew_call_on_cancel(call, abort_call, arg), EW_OK); }

static void at_input_end(ew_call *call, ew_str chunk, bool end, void *arg) {
    (void)chunk;
    if (end)
        done(call, arg);
}

static void by_input(ew_call *call, void *arg) { assert_int_equal(ew_call_on_input(call, at_input_end, arg), EW_OK); }

/* A thread of the program's own, which ends the call when the test lets it. */
static pthread_t thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool may_end, has_thread;

static void *end_later(void *arg) {
    ew_call *call = arg;
    pthread_mutex_lock(&lock);
    while (!may_end)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    (void)ew_call_done(call, EW_STR("2"));
    ew_call_unref(call);
    return NULL;
}

static void by_thread(ew_call *call, void *arg) {
    (void)arg;
    pthread_mutex_lock(&lock);
    has_thread = pthread_create(&thread, NULL, end_later, ew_call_ref(call)) == 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- running them ---- */

static ew__registry registry;
static ew__workers *workers;

static void begin(world *w) {
    static const struct {
        const char *key;
        ew_handler_fn fn;
    } rows[] = {{"/t/done", done},          {"/t/fail", abort_call}, {"/t/forget", forget}, {"/t/chunks", chunks_only},
                {"/t/refs", ref_and_unref}, {"/t/timer", by_timer},  {"/t/room", by_room},  {"/t/cancel", by_cancel},
                {"/t/input", by_input},     {"/t/thread", by_thread}};
    world_init(w, 1);
    may_end = has_thread = false;
    assert_int_equal(ew__registry_init(&registry, &w->env.env), EW_OK);
    workers = ew__workers_new(&w->env.env, &w->limits);
    assert_non_null(workers);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(
            ew__registry_add(&registry, rows[i].key, ew__workers_callee(workers), workers, rows[i].fn, NULL, NULL),
            EW_OK);
}

static void finish(world *w) {
    assert_true(ew__workers_free(workers, 60000));
    world_run_tasks(w, false); /* what the threads have posted last */
    ew__registry_done(&registry);
    world_done(w);
}

static void open_call(world *w, const char *key, record *rec) {
    ew__action *action = NULL;
    *rec = (record){.call = ew__call_new(&w->executor, &caller, rec)};
    assert_non_null(rec->call);
    assert_int_equal(ew__actions_find(registry.current, ew_str_from(key), &action), EW_OK);
    rec->call->wants_chunks = rec->call->has_input = true;
    ew__call_open(rec->call, action);
}

static void run_to_end(world *w, const record *rec) {
    while (rec->n_ends == 0)
        world_run_tasks(w, true);
    assert_int_equal(rec->n_ends, 1);
}

static void check_unended(world *w, const char *key, unsigned n_chunks) {
    record rec;
    char message[100];
    open_call(w, key, &rec);
    run_to_end(w, &rec);
    (void)snprintf(message, sizeof message, "the handler of %s returned without ending the call", key);
    assert_int_equal(rec.status, EW_STATUS_INTERNAL);
    assert_string_equal(rec.text, message);
    assert_string_equal(w->env.log_line, message);
    assert_int_equal(rec.n_chunks, n_chunks);
}

static void test_handler_workers__unended(void **state) {
    (void)state;
    world w;
    begin(&w);
    check_unended(&w, "/t/forget", 0);
    check_unended(&w, "/t/chunks", 10);
    check_unended(&w, "/t/refs", 0);
    finish(&w);
}

static void test_handler_workers__ended(void **state) {
    (void)state;
    world w;
    record rec;
    begin(&w);
    for (int i = 0; i < 200; i++) {
        open_call(&w, "/t/done", &rec);
        run_to_end(&w, &rec);
        assert_string_equal(rec.text, "1");
        open_call(&w, "/t/fail", &rec);
        run_to_end(&w, &rec);
        assert_string_equal(rec.text, "aborted");
    }
    finish(&w);
    assert_int_equal(w.env.n_logged, 0);
}

/* The caller leaves while the handler runs: no caller is left, but the call must not stay open. */
static void test_handler_workers__unended_and_gone(void **state) {
    (void)state;
    world w;
    record rec;
    begin(&w);
    open_call(&w, "/t/forget", &rec);
    ew__call_release(rec.call);
    finish(&w);
    assert_int_equal(rec.n_ends, 0);
}

static bool is_registered(const ew_call *call) {
    return call->local.on_after || call->local.on_room || call->local.on_cancel || call->local.on_input;
}

static bool is_threaded(const ew_call *call) {
    (void)call;
    pthread_mutex_lock(&lock);
    bool is = has_thread;
    pthread_mutex_unlock(&lock);
    return is;
}

/* Runs a handler that keeps its call, until it has returned: the references that are left show it. */
static void run_kept(world *w, const char *key, bool (*is_kept)(const ew_call *call), unsigned refs, record *rec) {
    open_call(w, key, rec);
    while (!is_kept(rec->call) || atomic_load(&rec->call->refs) != refs)
        world_run_tasks(w, true);
    assert_int_equal(rec->n_ends, 0);
}

static void test_handler_workers__kept_by_callback(void **state) {
    (void)state;
    static const char *const keys[] = {"/t/timer", "/t/room", "/t/cancel", "/t/input"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        world w;
        record rec;
        begin(&w);
        run_kept(&w, keys[i], is_registered, 2, &rec); /* the caller's and the callee's */
        if (i < 2)
            world_advance(&w, 5);
        else if (i == 2)
            ew__call_cancel(rec.call, EW__CANCEL_ASKED);
        else
            ew__call_input_end(rec.call);
        assert_int_equal(rec.n_ends, 1);
        assert_int_equal(rec.status, i == 2 ? EW_STATUS_ABORTED : EW_STATUS_OK);
        finish(&w);
    }
}

static void test_handler_workers__kept_by_reference(void **state) {
    (void)state;
    world w;
    record rec;
    begin(&w);
    run_kept(&w, "/t/thread", is_threaded, 3, &rec); /* these, and the thread's */
    pthread_mutex_lock(&lock);
    may_end = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    run_to_end(&w, &rec);
    assert_string_equal(rec.text, "2");
    finish(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handler_workers__unended),
        cmocka_unit_test(test_handler_workers__ended),
        cmocka_unit_test(test_handler_workers__unended_and_gone),
        cmocka_unit_test(test_handler_workers__kept_by_callback),
        cmocka_unit_test(test_handler_workers__kept_by_reference),
    };
    return cmocka_run_group_tests_name("handler_workers", tests, NULL, NULL);
}
