/*
 * tests/store/test_store_thread.c: the thread around a backend, with a backend that does nothing but what the test
 * says. SPDX-License-Identifier: Apache-2.0
 */
#include "base/thread.h"
#include "store/store_thread.h"
#include "support/fail_env.h"
#include <sys/eventfd.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define WAIT_MS 20000

/* ---- a backend ---- */

typedef struct fake {
    ew__backend backend;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool shut;   /* run waits */
    bool inside; /* run is being called */
    size_t n_runs, n_ops, largest;
    unsigned changes; /* the next look */
    size_t n_looks;
    unsigned want;
    int fd;
    ew_err err; /* of all operations */
    bool freed;
} fake;

static fake *fake_of(ew__backend *backend) { return ew__container_of(backend, fake, backend); }

static void fake_run(ew__backend *backend, ew__store_request *ops) {
    fake *f = fake_of(backend);
    size_t n = 0;
    pthread_mutex_lock(&f->lock);
    f->inside = true;
    pthread_cond_broadcast(&f->cond);
    while (f->shut)
        pthread_cond_wait(&f->cond, &f->lock);
    f->inside = false;
    for (ew__store_request *op = ops; op != NULL; op = ew__store_request_after(op), n++)
        op->err = f->err;
    f->n_runs++;
    f->n_ops += n;
    f->largest = n > f->largest ? n : f->largest;
    pthread_mutex_unlock(&f->lock);
}

static int fake_fd(ew__backend *backend) { return fake_of(backend)->fd; }

static unsigned fake_look(ew__backend *backend) {
    fake *f = fake_of(backend);
    uint64_t count;
    (void)!read(f->fd, &count, sizeof count);
    pthread_mutex_lock(&f->lock);
    unsigned changes = f->changes;
    f->changes = 0;
    f->n_looks++;
    pthread_cond_broadcast(&f->cond);
    pthread_mutex_unlock(&f->lock);
    return changes;
}

static void fake_want(ew__backend *backend, unsigned changes) {
    fake *f = fake_of(backend);
    pthread_mutex_lock(&f->lock);
    f->want = changes;
    pthread_cond_broadcast(&f->cond);
    pthread_mutex_unlock(&f->lock);
}

static const char *fake_notice(ew__backend *backend) {
    (void)backend;
    return "a notice";
}

static void fake_free(ew__backend *backend) { fake_of(backend)->freed = true; }

/* ---- an executor that the test drives ---- */

static bool never_here(const ew__executor *executor) {
    (void)executor;
    return false;
}

static size_t count_tasks(ew__executor *executor) {
    pthread_mutex_lock(&executor->mailbox.lock);
    size_t n = executor->mailbox.n;
    pthread_mutex_unlock(&executor->mailbox.lock);
    return n;
}

static void wait_for_tasks(ew__executor *executor, size_t n) {
    for (int i = 0; i < WAIT_MS && count_tasks(executor) < n; i++)
        (void)usleep(1000);
}

/* Waits until that many tasks have been posted since the last time, and runs them. */
static void run_tasks(ew__executor *executor, size_t n) {
    wait_for_tasks(executor, n);
    assert_int_equal(count_tasks(executor), n);
    (void)ew__executor_run_tasks(executor);
}

/* ---- the world ---- */

typedef struct world {
    ew__store_owner owner; /* of all requests */
    ew__test_env env;
    fake fake;
    ew__executor executor;
    ew_limits limits;
    ew__store *store;
    atomic_size_t n_done, n_limit, n_closed, n_invalid;
    atomic_bool disorder;
} world;

static int setup(void **state) {
    static const ew__backend_ops ops = {.run = fake_run,
                                        .watch_fd = fake_fd,
                                        .look = fake_look,
                                        .want = fake_want,
                                        .notice = fake_notice,
                                        .free = fake_free};
    static const ew__executor_ops executor_ops = {.here = never_here};
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    ew__test_env_init(&w->env, 1);
    w->fake.backend = (ew__backend){.ops = &ops, .env = &w->env.env, .name = "fake"};
    w->fake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&w->fake.lock, NULL);
    ew__cond_init(&w->fake.cond);
    ew_limits_complete(&w->limits);
    w->executor.ops = &executor_ops;
    ew__executor_init(&w->executor, &w->env.env, &w->limits);
    assert_int_equal(ew__jobs_thread(&w->env.env, &w->fake.backend, &w->store), EW_OK);
    *state = w;
    return 0;
}

static void close_it(world *w) {
    if (w->store != NULL)
        w->store->ops->free(w->store);
    w->store = NULL;
}

static int teardown(void **state) {
    world *w = *state;
    close_it(w);
    (void)ew__executor_run_tasks(&w->executor); /* tasks that no test waited for */
    ew__executor_done(&w->executor);
    assert_true(w->fake.freed);
    assert_int_equal(ew__test_env_live_blocks(&w->env), 0);
    (void)close(w->fake.fd);
    free(w);
    return 0;
}

static void set_shut(world *w, bool shut) {
    pthread_mutex_lock(&w->fake.lock);
    w->fake.shut = shut;
    pthread_cond_broadcast(&w->fake.cond);
    pthread_mutex_unlock(&w->fake.lock);
}

/* Waits for a condition that the backend or a watcher changes under the lock. */
#define WAIT_FOR(w, condition)                                                                                         \
    do {                                                                                                               \
        struct timespec until_ = ew__cond_until(WAIT_MS);                                                              \
        pthread_mutex_lock(&(w)->fake.lock);                                                                           \
        while (!(condition) && pthread_cond_timedwait(&(w)->fake.cond, &(w)->fake.lock, &until_) == 0) {               \
        }                                                                                                              \
        bool ok_ = (condition);                                                                                        \
        pthread_mutex_unlock(&(w)->fake.lock);                                                                         \
        assert_true(ok_);                                                                                              \
    } while (0)

typedef struct numbered {
    ew__store_request op;
    size_t number;
} numbered;

static void count_done(ew__store_request *op) {
    world *w = ew__container_of(op->owner, world, owner);
    numbered *one = ew__container_of(op, numbered, op);
    if (op->err == EW_ELIMIT)
        atomic_fetch_add(&w->n_limit, 1);
    else if (one->number != atomic_load(&w->n_done) - atomic_load(&w->n_limit))
        atomic_store(&w->disorder, true);
    atomic_fetch_add(op->err == EW_ECLOSED ? &w->n_closed : &w->n_invalid,
                     op->err == EW_ECLOSED || op->err == EW_EINVAL);
    pthread_mutex_lock(&w->fake.lock);
    atomic_fetch_add(&w->n_done, 1);
    pthread_cond_broadcast(&w->fake.cond);
    pthread_mutex_unlock(&w->fake.lock);
}

static numbered *submit_many(world *w, size_t n, ew__executor *executor) {
    numbered *ops = calloc(n, sizeof *ops);
    assert_non_null(ops);
    for (size_t i = 0; i < n; i++) {
        ops[i].number = i;
        ops[i].op.kind = EW__OP_GET;
        ops[i].op.executor = executor;
        ops[i].op.done = count_done;
        ops[i].op.owner = &w->owner;
        w->store->ops->submit(w->store, &ops[i].op);
    }
    return ops;
}

/* ---- operations ---- */

static void test_store_thread__batches(void **state) {
    world *w = *state;
    enum { N = 5000 };
    set_shut(w, true);
    numbered *ops = submit_many(w, N, NULL);
    set_shut(w, false);
    WAIT_FOR(w, atomic_load(&w->n_done) == N);
    assert_false(atomic_load(&w->disorder));
    assert_int_equal(w->fake.n_ops, N);
    assert_int_equal(w->fake.largest, EW__STORE_BATCH);
    assert_true(w->fake.n_runs <= 1 + (N + EW__STORE_BATCH - 1) / EW__STORE_BATCH);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(ops[i].op.err, EW_OK);
    free(ops);
    assert_string_equal(w->store->ops->notice(w->store), "a notice");
    assert_string_equal(w->store->name, "fake");
}

static void test_store_thread__done_at_home(void **state) {
    world *w = *state;
    numbered *ops = submit_many(w, 100, &w->executor);
    run_tasks(&w->executor, 100);
    assert_int_equal(atomic_load(&w->n_done), 100);
    assert_false(atomic_load(&w->disorder));
    free(ops);
}

static void test_store_thread__full(void **state) {
    world *w = *state;
    enum { BEYOND = 20 };
    set_shut(w, true);
    numbered *first = submit_many(w, 1, NULL);
    WAIT_FOR(w, w->fake.inside); /* it holds one */
    numbered *ops = calloc(EW__STORE_QUEUE + BEYOND, sizeof *ops);
    assert_non_null(ops);
    for (size_t i = 0; i < EW__STORE_QUEUE + BEYOND; i++) {
        ops[i].number = i + 1;
        ops[i].op.kind = EW__OP_GET;
        ops[i].op.executor = i % 2 == 0 ? NULL : &w->executor;
        ops[i].op.done = count_done;
        ops[i].op.owner = &w->owner;
        if (i < EW__STORE_QUEUE)
            ops[i].op.executor = NULL;
        w->store->ops->submit(w->store, &ops[i].op);
    }
    run_tasks(&w->executor, BEYOND / 2); /* those with an executor are told at once */
    assert_int_equal(atomic_load(&w->n_limit), BEYOND / 2);
    set_shut(w, false);
    WAIT_FOR(w, atomic_load(&w->n_done) == 1 + EW__STORE_QUEUE + BEYOND);
    assert_int_equal(atomic_load(&w->n_limit), BEYOND);
    assert_int_equal(w->fake.n_ops, 1 + EW__STORE_QUEUE);
    for (size_t i = 0; i < EW__STORE_QUEUE + BEYOND; i++)
        assert_int_equal(ops[i].op.err, i < EW__STORE_QUEUE ? EW_OK : EW_ELIMIT);
    assert_true(ops[EW__STORE_QUEUE].op.problem[0] != '\0');
    free(ops);
    free(first);
    ops = submit_many(w, 1, NULL); /* and there is room again */
    WAIT_FOR(w, atomic_load(&w->n_done) == 2 + EW__STORE_QUEUE + BEYOND);
    assert_int_equal(ops[0].op.err, EW_OK);
    free(ops);
}

static void *let_go(void *arg) {
    world *w = arg;
    for (int i = 0; i < 1000 && atomic_load(&w->n_closed) == 0; i++) {
        struct timespec until = ew__cond_until(1);
        pthread_mutex_lock(&w->fake.lock);
        (void)pthread_cond_timedwait(&w->fake.cond, &w->fake.lock, &until);
        if (i == 20) { /* free has begun by then, or begins later: either is right */
            w->fake.shut = false;
            pthread_cond_broadcast(&w->fake.cond);
        }
        pthread_mutex_unlock(&w->fake.lock);
    }
    return NULL;
}

static void test_store_thread__closed(void **state) {
    world *w = *state;
    pthread_t helper;
    enum { N = 4000 };
    set_shut(w, true);
    numbered *ops = submit_many(w, N, NULL);
    WAIT_FOR(w, w->fake.inside);
    assert_true(ew__thread_start(&helper, let_go, w));
    close_it(w);
    assert_int_equal(atomic_load(&w->n_done), N);
    assert_false(atomic_load(&w->disorder));
    assert_true(w->fake.n_ops + atomic_load(&w->n_closed) == N);
    assert_int_equal(pthread_join(helper, NULL), 0);
    free(ops);
}

static void test_store_thread__what_no_store_can_do(void **state) {
    world *w = *state;
    numbered ops[6];
    memset(ops, 0, sizeof ops);
    const ew__job good = {.id = EW_STR("j"),
                          .function = EW_STR("f"),
                          .queue = EW_STR("q"),
                          .params = EW_STR(" \n{}"),
                          .timeout_ms = 1000,
                          .max_retries = 1};
    for (size_t i = 0; i < 6; i++) {
        ops[i].number = i;
        ops[i].op.kind = EW__OP_ENQUEUE;
        ops[i].op.done = count_done;
        ops[i].op.owner = &w->owner;
        ops[i].op.u.enqueue.job = good;
    }
    ops[1].op.u.enqueue.job.params = EW_STR("{");
    ops[2].op.u.enqueue.dedup = EW__DEDUP_UNIQUE;
    ops[2].op.u.enqueue.key_ttl_ms = 5;
    ops[3].op.u.enqueue.dedup = EW__DEDUP_UNIQUE;
    ops[3].op.u.enqueue.key = EW_STR("k");
    ops[4].op.u.enqueue.job.params = EW_STR("[1]");
    w->store->objects_only = true;
    for (size_t i = 0; i < 6; i++)
        w->store->ops->submit(w->store, &ops[i].op);
    WAIT_FOR(w, atomic_load(&w->n_done) == 6);
    assert_false(atomic_load(&w->disorder));
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(ops[i].op.err, i == 0 || i == 5 ? EW_OK : EW_EINVAL);
        assert_int_equal(ops[i].op.problem[0] == '\0', i == 0 || i == 5);
    }
    assert_int_equal(w->fake.n_ops, 2);
}

static void test_store_thread__trouble_of_the_backend(void **state) {
    world *w = *state;
    w->fake.err = EW_EIO;
    ew__store_request op = {.kind = EW__OP_PAUSE};
    assert_int_equal(ew__store_do(w->store, &op), EW_EIO);
    w->fake.err = EW_OK;
    assert_int_equal(ew__store_do(w->store, &op), EW_OK);
}

/* ---- hints ---- */

typedef struct listener {
    ew__watcher watcher;
    world *w;
    unsigned seen;
    size_t times;
} listener;

static void on_changed(ew__watcher *watcher, unsigned what) {
    listener *l = ew__container_of(watcher, listener, watcher);
    pthread_mutex_lock(&l->w->fake.lock);
    l->seen |= what;
    l->times++;
    pthread_cond_broadcast(&l->w->fake.cond);
    pthread_mutex_unlock(&l->w->fake.lock);
}

static void watch(world *w, listener *l, ew__executor *executor, unsigned want) {
    *l = (listener){.watcher = {.executor = executor, .want = want, .changed = on_changed}, .w = w};
    w->store->ops->watch(w->store, &l->watcher, true);
}

static void announce(world *w, unsigned changes) {
    uint64_t one = 1;
    pthread_mutex_lock(&w->fake.lock);
    w->fake.changes |= changes;
    pthread_mutex_unlock(&w->fake.lock);
    assert_int_equal(write(w->fake.fd, &one, sizeof one), sizeof one);
}

static void test_store_thread__what_is_wanted(void **state) {
    world *w = *state;
    listener a, b;
    watch(w, &a, NULL, EW__CHANGED_JOBS);
    WAIT_FOR(w, w->fake.want == EW__CHANGED_JOBS);
    watch(w, &b, &w->executor, EW__CHANGED_QUEUES | EW__CHANGED_BACK);
    WAIT_FOR(w, w->fake.want == (EW__CHANGED_JOBS | EW__CHANGED_QUEUES | EW__CHANGED_BACK));
    announce(w, EW__CHANGED_JOBS | EW__CHANGED_BACK | EW__CHANGED_CANCELS);
    WAIT_FOR(w, a.seen == EW__CHANGED_JOBS);
    run_tasks(&w->executor, 1);
    assert_int_equal(b.seen, EW__CHANGED_BACK);
    w->store->ops->watch(w->store, &a.watcher, false);
    w->store->ops->watch(w->store, &b.watcher, false);
    WAIT_FOR(w, w->fake.want == 0);
}

static void test_store_thread__hints_gather(void **state) {
    world *w = *state;
    listener l;
    watch(w, &l, &w->executor, EW__CHANGED_JOBS | EW__CHANGED_QUEUES);
    for (size_t i = 1; i <= 5; i++) {
        announce(w, i % 2 == 0 ? EW__CHANGED_JOBS : EW__CHANGED_QUEUES);
        WAIT_FOR(w, w->fake.changes == 0);
    }
    ew__store_request op = {.kind = EW__OP_REQUEUE};
    assert_int_equal(ew__store_do(w->store, &op), EW_OK); /* the last look has been told by then */
    run_tasks(&w->executor, 1);
    assert_int_equal(l.times, 1);
    assert_int_equal(l.seen, EW__CHANGED_JOBS | EW__CHANGED_QUEUES);
    assert_int_equal(ew__store_do(w->store, &op), EW_OK);
    run_tasks(&w->executor, 1);
    assert_int_equal(l.times, 2);
    w->store->ops->watch(w->store, &l.watcher, false);
}

/* A letter that is under way when its watcher goes arrives for nobody, even if the store has gone as well. */
static void test_store_thread__gone_before_it_arrives(void **state) {
    world *w = *state;
    listener *l = malloc(sizeof *l);
    assert_non_null(l);
    watch(w, l, &w->executor, EW__CHANGED_QUEUES);
    announce(w, EW__CHANGED_QUEUES);
    wait_for_tasks(&w->executor, 1);
    w->store->ops->watch(w->store, &l->watcher, false);
    free(l);
    close_it(w);
    run_tasks(&w->executor, 1);
}

static void test_store_thread__no_memory_for_a_letter(void **state) {
    world *w = *state;
    listener l;
    watch(w, &l, &w->executor, EW__CHANGED_QUEUES);
    ew__test_env_fail_at(&w->env, 1, true);
    announce(w, EW__CHANGED_QUEUES);
    WAIT_FOR(w, w->fake.n_looks >= 3 && ew__test_env_failed(&w->env) >= 2);
    ew__test_env_fail_at(&w->env, 0, false);
    run_tasks(&w->executor, 1); /* late, but not lost */
    assert_int_equal(l.seen, EW__CHANGED_QUEUES);
    w->store->ops->watch(w->store, &l.watcher, false);
}

static void test_store_thread__looks_now_and_then(void **state) {
    world *w = *state;
    listener l;
    close_it(w);
    (void)close(w->fake.fd);
    w->fake.fd = -1;
    w->fake.freed = false;
    w->fake.backend.idle_ms = 2;
    assert_int_equal(ew__jobs_thread(&w->env.env, &w->fake.backend, &w->store), EW_OK);
    watch(w, &l, NULL, EW__CHANGED_CANCELS);
    pthread_mutex_lock(&w->fake.lock);
    w->fake.changes = EW__CHANGED_CANCELS;
    pthread_mutex_unlock(&w->fake.lock);
    WAIT_FOR(w, l.seen == EW__CHANGED_CANCELS && w->fake.n_looks > 5);
    w->store->ops->watch(w->store, &l.watcher, false);
}

/* Watchers that come and go while they are told. */
static void test_store_thread__come_and_go(void **state) {
    world *w = *state;
    for (int i = 0; i < 300; i++) {
        listener a, b;
        watch(w, &a, NULL, EW__CHANGED_QUEUES);
        watch(w, &b, &w->executor, EW__CHANGED_QUEUES);
        announce(w, EW__CHANGED_QUEUES);
        if (i % 3 == 0)
            WAIT_FOR(w, a.seen != 0);
        w->store->ops->watch(w->store, &a.watcher, false);
        w->store->ops->watch(w->store, &b.watcher, false);
        a.w = b.w = NULL; /* nobody may use them any more */
    }
}

static void test_store_thread__hints_of_operations(void **state) {
    (void)state;
    ew__store_request op = {.kind = EW__OP_ENQUEUE, .err = EW_OK};
    op.u.enqueue.ret = EW__ENQUEUED_NEW;
    assert_int_equal(ew__store_thread_hints(&op), EW__CHANGED_QUEUES);
    op.u.enqueue.ret = EW__ENQUEUED_LIMITED;
    assert_int_equal(ew__store_thread_hints(&op), 0);
    op.u.enqueue.ret = EW__ENQUEUED_KNOWN;
    assert_int_equal(ew__store_thread_hints(&op), 0);
    op.u.enqueue.dedup = EW__DEDUP_DEBOUNCE; /* it may be due at another time now */
    assert_int_equal(ew__store_thread_hints(&op), EW__CHANGED_QUEUES);
    op.err = EW_EIO;
    assert_int_equal(ew__store_thread_hints(&op), 0);
    op = (ew__store_request){.kind = EW__OP_PAUSE};
    assert_int_equal(ew__store_thread_hints(&op), EW__CHANGED_QUEUES);
    op.u.pause.on = true;
    assert_int_equal(ew__store_thread_hints(&op), 0);
    op = (ew__store_request){.kind = EW__OP_CANCEL};
    op.u.cancel.ret = EW__CANCELLED_LATE;
    assert_int_equal(ew__store_thread_hints(&op), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_store_thread__batches, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_thread__done_at_home, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_thread__full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_thread__closed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_thread__what_no_store_can_do, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_thread__trouble_of_the_backend, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_thread__what_is_wanted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_thread__hints_gather, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_thread__gone_before_it_arrives, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_thread__no_memory_for_a_letter, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_thread__looks_now_and_then, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_thread__come_and_go, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_thread__hints_of_operations, setup, teardown),
    };
    return cmocka_run_group_tests_name("store_thread", tests, NULL, NULL);
}
