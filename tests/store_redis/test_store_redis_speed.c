/*
 * tests/store_redis/test_store_redis_speed.c: many jobs through the store, each phase with many operations under way;
 * prints how many a second. Nothing is asserted about that. EW_SPEED_JOBS: how many jobs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/thread.h"
#include "store_redis/world.h"
#include <stdlib.h>

#define UNDER_WAY 512
#define PER_CLAIM 64

typedef struct slot {
    ew__store_request op;
    ew__arena arena;
    char id[40];
    bool used;
} slot;

typedef struct meter {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    size_t n_free, failed;
    slot *free[UNDER_WAY];
    slot slots[UNDER_WAY];
} meter;

static meter the_meter;

static void on_done(ew__store_request *op) {
    slot *one = ew__container_of(op, slot, op);
    meter *m = &the_meter;
    ew__arena_done(&one->arena);
    pthread_mutex_lock(&m->lock);
    m->failed += op->err != EW_OK;
    m->free[m->n_free++] = one;
    pthread_cond_signal(&m->cond);
    pthread_mutex_unlock(&m->lock);
}

static slot *take(meter *m, ew__op_kind kind) {
    pthread_mutex_lock(&m->lock);
    while (m->n_free == 0)
        pthread_cond_wait(&m->cond, &m->lock);
    slot *one = m->free[--m->n_free];
    pthread_mutex_unlock(&m->lock);
    memset(&one->op, 0, sizeof one->op);
    one->op.kind = kind;
    one->op.done = on_done;
    one->op.arena = &one->arena;
    ew__arena_init(&one->arena, ew_env_default(), NULL, 0);
    return one;
}

static void wait_all(meter *m) {
    pthread_mutex_lock(&m->lock);
    while (m->n_free < UNDER_WAY)
        pthread_cond_wait(&m->cond, &m->lock);
    pthread_mutex_unlock(&m->lock);
    assert_int_equal(m->failed, 0);
}

static double since(uint64_t begin) {
    const ew_env *env = ew_env_default();
    return (double)(env->now_ns(env->ud) - begin) / 1e9;
}

static void enqueue_all(world *w, size_t n) {
    for (size_t i = 0; i < n; i++) {
        slot *one = take(&the_meter, EW__OP_ENQUEUE);
        (void)snprintf(one->id, sizeof one->id, "job-%zu", i);
        one->op.u.enqueue.job = contract_job(&w->c, one->id);
        one->op.u.enqueue.job.params = S("{\"to\":\"somebody@example.com\",\"n\":12345}");
        w->c.store->ops->submit(w->c.store, &one->op);
    }
    wait_all(&the_meter);
}

static size_t run_all(world *w) {
    size_t n = 0;
    for (;;) {
        ew__op_claim *got = contract_claim_of(&w->c, "w1", "q", PER_CLAIM);
        for (size_t i = 0; i < got->ret_n; i++) {
            slot *one = take(&the_meter, EW__OP_CHANGE);
            ew__job *job = &got->ret[i];
            one->op.u.change = (ew__op_change){.id = job->id,
                                               .queue = job->queue,
                                               .worker = job->worker,
                                               .epoch = job->epoch,
                                               .status = EW__JOB_COMPLETED,
                                               .now = contract_now(&w->c),
                                               .result = S("{\"ok\":true}"),
                                               .result_ttl_ms = 60000};
            w->c.store->ops->submit(w->c.store, &one->op);
        }
        n += got->ret_n;
        if (got->ret_n == 0)
            break;
    }
    wait_all(&the_meter);
    return n;
}

static void test_speed(void **state) {
    world *w = *state;
    const ew_env *env = ew_env_default();
    const char *wanted = getenv("EW_SPEED_JOBS");
    size_t n = wanted != NULL ? (size_t)strtoul(wanted, NULL, 10) : 2000;
    pthread_mutex_init(&the_meter.lock, NULL);
    ew__cond_init(&the_meter.cond);
    for (size_t i = 0; i < UNDER_WAY; i++)
        the_meter.free[the_meter.n_free++] = &the_meter.slots[i];
    uint64_t begin = env->now_ns(env->ud);
    enqueue_all(w, n);
    double enqueued = since(begin);
    begin = env->now_ns(env->ud);
    assert_int_equal(run_all(w), n);
    double ran = since(begin);
    (void)printf("%zu jobs: %.0f enqueues/s, %.0f claims and ends/s, %.0f jobs/s in all\n", n, (double)n / enqueued,
                 (double)n / ran, (double)n / (enqueued + ran));
    ew__job got = contract_get(&w->c, "job-0");
    assert_int_equal(got.status, EW__JOB_COMPLETED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_speed, world_setup, world_teardown),
    };
    if (!server_exists())
        return 0;
    server_start(&the_world.s, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    server_stop(&the_world.s);
    return failed;
}
