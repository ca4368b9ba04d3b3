/*
 * tests/unit/call/test_post.c: a call used from other threads: order, ends, limits, waiting. Real threads; made for
 * TSan too.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/call/world.h"
#include "support/json_or.h"

#define THREADS 4
#define EACH 200

typedef struct record {
    atomic_uint n_ends;
    unsigned n_chunks;
    int64_t last[THREADS]; /* the last number of each thread: they must rise */
    bool ordered, full;
} record;

static ew_err on_chunk(ew_call *call, ew_str json) {
    record *rec = call->caller_ud;
    int64_t thread = json_int_or(json, "/0", 0), number = json_int_or(json, "/1", 0);
    rec->ordered = rec->ordered && rec->last[thread] + 1 == number;
    rec->last[thread] = number;
    rec->n_chunks++;
    return rec->full ? EW_FULL : EW_OK;
}

static void on_end(ew_call *call, const ew__end *end) {
    record *rec = call->caller_ud;
    (void)end;
    atomic_fetch_add(&rec->n_ends, 1);
    ew__call_release(call);
}

static const ew__caller_ops caller = {.chunk = on_chunk, .end = on_end};

static void on_open(ew_call *call) { (void)call; }

static const ew__callee_ops callee = {.open = on_open};

static ew_call *open_call(world *w, record *rec) {
    ew_call *call = ew__call_new(&w->executor, &caller, rec);
    assert_non_null(call);
    call->wants_chunks = true;
    rec->ordered = true;
    ew__call_open_on(call, &callee, NULL);
    return call;
}

typedef struct job {
    ew_call *call;
    int number;
    ew_err err;
    atomic_bool ready;
} job;

static void *talk(void *arg) {
    job *j = arg;
    for (int i = 1; i <= EACH; i++)
        (void)ew_call_chunkf(j->call, "[%d,%d]", j->number, i);
    j->err = ew_call_done(j->call, EW_STR("1")); /* every thread tries to end it */
    ew_call_unref(j->call);
    return NULL;
}

/* Chunks of one thread arrive in order; of many ends one counts. */
static void test_call_post__order(void **state) {
    (void)state;
    world w;
    record rec = {0};
    pthread_t threads[THREADS];
    job jobs[THREADS];
    world_init(&w, 1);
    ew_call *call = open_call(&w, &rec);
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){.call = ew_call_ref(call), .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, talk, &jobs[i]), 0);
    }
    while (atomic_load(&rec.n_ends) == 0)
        world_run_tasks(&w, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].err, EW_OK); /* handed over: it learns nothing */
    }
    world_run_tasks(&w, false);
    assert_int_equal(atomic_load(&rec.n_ends), 1);
    assert_true(rec.ordered && rec.n_chunks >= EACH && rec.n_chunks <= THREADS * EACH);
    assert_int_equal(atomic_load(&w.executor.calls->dropped), THREADS - 1); /* late ends */
    world_done(&w);
}

static void *wait_long(void *arg) {
    job *j = arg;
    atomic_store(&j->ready, true);
    j->err = ew_call_wait(j->call, 60 * 1000);
    (void)ew_call_fail(j->call, EW_STATUS_CANCELLED, NULL);
    ew_call_unref(j->call);
    return NULL;
}

static void test_call_post__wait_cancelled(void **state) {
    (void)state;
    for (int i = 0; i < 50; i++) {
        world w;
        record rec = {0};
        pthread_t thread;
        world_init(&w, 1);
        ew_call *call = open_call(&w, &rec);
        job j = {.call = ew_call_ref(call)};
        assert_int_equal(ew_call_wait(call, 1), EW_EUNSUPPORTED); /* a loop thread must not block */
        assert_int_equal(ew_call_wait_room(call), EW_EUNSUPPORTED);
        assert_int_equal(pthread_create(&thread, NULL, wait_long, &j), 0);
        while (i % 2 && !atomic_load(&j.ready))
            sched_yield();
        ew__call_cancel(call, EW__CANCEL_ASKED);
        while (atomic_load(&rec.n_ends) == 0)
            world_run_tasks(&w, true);
        pthread_join(thread, NULL);
        world_run_tasks(&w, false);
        assert_int_equal(j.err, EW_ECANCELLED);
        world_done(&w);
    }
}

static void *wait_short(void *arg) {
    job *j = arg;
    j->err = ew_call_wait(j->call, 5);
    (void)ew_call_done(j->call, EW_STR("1"));
    ew_call_unref(j->call);
    return NULL;
}

static void test_call_post__wait_time(void **state) {
    (void)state;
    world w;
    record rec = {0};
    pthread_t thread;
    world_init(&w, 1);
    job j = {.call = ew_call_ref(open_call(&w, &rec)), .err = EW_EIO};
    assert_int_equal(pthread_create(&thread, NULL, wait_short, &j), 0);
    while (atomic_load(&rec.n_ends) == 0)
        world_run_tasks(&w, true);
    pthread_join(thread, NULL);
    world_run_tasks(&w, false);
    assert_int_equal(j.err, EW_OK);
    world_done(&w);
}

static void *fill_and_wait(void *arg) {
    job *j = arg;
    char text[2000];
    memset(text, ' ', sizeof text);
    memcpy(text, "[0,1]", 5);
    ew_err err = EW_OK;
    int n = 0;
    while (err == EW_OK && n++ < 1000)
        err = ew_call_chunk(j->call, ew__str(text, sizeof text));
    j->number = n;
    atomic_store(&j->ready, true);
    j->err = err == EW_FULL ? ew_call_wait_room(j->call) : EW_EINVAL;
    (void)ew_call_done(j->call, EW_STR("1"));
    ew_call_unref(j->call);
    return NULL;
}

/*
 * Letters on their way count as buffered: a thread is told to wait although the executor thread sleeps, and goes on when
 * they were taken.
 */
static void test_call_post__wait_room(void **state) {
    (void)state;
    world w;
    record rec = {0};
    pthread_t thread;
    world_init(&w, 1);
    w.limits.out_high_bytes = 20000;
    w.limits.out_low_bytes = 5000;
    job j = {.call = ew_call_ref(open_call(&w, &rec))};
    assert_int_equal(pthread_create(&thread, NULL, fill_and_wait, &j), 0);
    while (!atomic_load(&j.ready))
        sched_yield();
    while (atomic_load(&rec.n_ends) == 0)
        world_run_tasks(&w, true);
    pthread_join(thread, NULL);
    world_run_tasks(&w, false);
    assert_int_equal(j.err, EW_OK);
    assert_int_equal(j.number, 11); /* 22000 bytes: the first over 20000 */
    assert_int_equal(rec.n_chunks, 11);
    world_done(&w);
}

static void *fill_to_the_limit(void *arg) {
    job *j = arg;
    int n = 0;
    do {
        j->err = ew_call_chunk(j->call, EW_STR("[0,123456]"));
    } while (j->err >= 0 && ++n < 100000);
    j->number = n;
    ew_call_unref(j->call);
    return NULL;
}

static void test_call_post__hard_limit(void **state) {
    (void)state;
    world w;
    record rec = {0};
    pthread_t thread;
    world_init(&w, 1);
    w.limits.out_max_bytes = 1000;
    w.limits.out_high_bytes = 500;
    ew_call *call = open_call(&w, &rec);
    job j = {.call = ew_call_ref(call)};
    assert_int_equal(pthread_create(&thread, NULL, fill_to_the_limit, &j), 0);
    pthread_join(thread, NULL); /* nobody opens letters meanwhile */
    assert_int_equal(j.err, EW_ELIMIT);
    assert_int_equal(j.number, 100);
    world_run_tasks(&w, false);
    assert_int_equal(rec.n_chunks, 100);
    (void)ew_call_done(call, EW_STR("1"));
    world_done(&w);
}

static void *end_without_memory(void *arg) {
    job *j = arg;
    j->err = ew_call_done(j->call, EW_STR("1"));
    ew_call_unref(j->call);
    return NULL;
}

/* There is no memory for the letter: the call ends all the same. */
static void test_call_post__no_memory(void **state) {
    (void)state;
    world w;
    record rec = {0};
    pthread_t thread;
    world_init(&w, 1);
    job j = {.call = ew_call_ref(open_call(&w, &rec))};
    ew__test_env_fail_at(&w.env, 1, true);
    assert_int_equal(pthread_create(&thread, NULL, end_without_memory, &j), 0);
    pthread_join(thread, NULL);
    assert_int_equal(j.err, EW_OK);
    world_run_tasks(&w, true);
    assert_int_equal(atomic_load(&rec.n_ends), 1);
    world_run_tasks(&w, false);
    world_done(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_post__order),      cmocka_unit_test(test_call_post__wait_cancelled),
        cmocka_unit_test(test_call_post__wait_time),  cmocka_unit_test(test_call_post__wait_room),
        cmocka_unit_test(test_call_post__hard_limit), cmocka_unit_test(test_call_post__no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
