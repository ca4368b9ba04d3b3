/*
 * tests/store_redis/test_store_redis_faults.c: a server that is lost, killed, stopped, forgets, has keys of wrong
 * types.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/thread.h"
#include "store_redis/world.h"
#include <signal.h>
#include <stdlib.h>

#define WAIT_MS 60000

static void set_type(world *w, const char *key) {
    (void)server_do(&w->s, "DEL %s", key);
    (void)server_do(&w->s, "SET %s oops", key);
}

static void expect_trouble(contract *c, ew__store_request *op, const char *part) {
    ew_err err = contract_do(c, op);
    if (err != EW_EIO || strstr(op->problem, part) == NULL)
        fail_msg("%s: %s", ew_err_name(err), op->problem);
}

/* ---- keys of wrong types ---- */

static void test_faults__queue_of_a_wrong_type(void **state) {
    world *w = *state;
    contract *c = &w->c;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    set_type(w, "rrq:queue:q");
    expect_trouble(c, contract_enqueue_op(c, contract_job(c, "j2")), "WRONGTYPE");
    assert_int_equal(contract_get_err(c, "j2"), EW_ENOTFOUND); /* not half of it */
    expect_trouble(c, contract_change(c, &job, EW__JOB_RETRYING), "WRONGTYPE");
    assert_int_equal(contract_get(c, "j1").status, EW__JOB_ACTIVE); /* still ours */
    assert_int_equal(contract_renew(c, &job), EW__LEASE_HELD);
    ew__store_request *op = contract_op(c, EW__OP_CLAIM);
    ew__claim_queue queues[] = {{.name = S("q"), .max = 1}, {.name = S("p"), .max = 1}};
    op->u.claim = (ew__op_claim){.worker = S("w1"), .queues = queues, .n_queues = 1, .max = 1, .now = contract_now(c)};
    op->u.claim.lease_ms = 300;
    expect_trouble(c, op, "rrq:queue:q");
    /* another queue is not held up by it */
    ew__job other = contract_job(c, "j3");
    other.queue = S("p");
    contract_add(c, other);
    op = contract_op(c, EW__OP_CLAIM);
    op->u.claim = (ew__op_claim){.worker = S("w1"), .queues = queues, .n_queues = 2, .max = 2, .now = contract_now(c)};
    op->u.claim.lease_ms = 300;
    assert_int_equal(contract_do(c, op), EW_OK);
    assert_int_equal(op->u.claim.ret_n, 1);
    assert_int_equal(contract_queue(c, "q", true)->pending, 0);
    (void)server_do(&w->s, "DEL rrq:queue:q");
    contract_must_change(c, &job, EW__JOB_RETRYING);
}

static void test_faults__dead_letters_of_a_wrong_type(void **state) {
    world *w = *state;
    contract *c = &w->c;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    set_type(w, "rrq:dlq:default");
    expect_trouble(c, contract_change(c, &job, EW__JOB_FAILED), "WRONGTYPE");
    assert_int_equal(contract_get(c, "j1").status, EW__JOB_ACTIVE);
    ew__store_request *op = contract_op(c, EW__OP_LIST);
    op->u.list = (ew__op_list){.dlq = S("default"), .status = EW__JOB_STATUSES, .limit = 5};
    expect_trouble(c, op, "WRONGTYPE");
    assert_int_equal(contract_sweep(c, 10), 0);
    (void)server_do(&w->s, "DEL rrq:dlq:default");
    contract_must_change(c, &job, EW__JOB_FAILED);
}

static void test_faults__locks_and_sets_of_a_wrong_type(void **state) {
    world *w = *state;
    contract *c = &w->c;
    contract_add_id(c, "j1");
    ew__job job = contract_claim(c, "w1", "j1");
    (void)server_do(&w->s, "DEL rrq:lock:job:j1");
    (void)server_do(&w->s, "LPUSH rrq:lock:job:j1 x");
    assert_int_equal(contract_renew(c, &job), EW__LEASE_HELD);
    (void)server_do(&w->s, "DEL rrq:lock:job:j1");
    (void)server_do(&w->s, "LPUSH rrq:lock:job:j1 x");
    set_type(w, "rrq:events:job:j1");
    set_type(w, "rrq:active:jobs:w1");
    set_type(w, "ew:chunks:j1");
    assert_int_equal(contract_chunk(c, &job, "1"), EW_OK);
    assert_int_equal(contract_expired(c, 9)->ret_n, 0);
    contract_must_change(c, &job, EW__JOB_COMPLETED);
    assert_int_equal(server_int(&w->s, "EXISTS rrq:lock:job:j1"), 0);
    assert_int_equal(server_int(&w->s, "XLEN rrq:events:job:j1"), 1);
    contract_add_id(c, "j2");
    ew__store_request *op = contract_op(c, EW__OP_CLAIM);
    ew__claim_queue queue = {.name = S("q"), .max = 1};
    op->u.claim = (ew__op_claim){.worker = S("w1"), .queues = &queue, .n_queues = 1, .max = 1, .now = contract_now(c)};
    op->u.claim.lease_ms = 300;
    expect_trouble(c, op, "WRONGTYPE");
    assert_int_equal(server_int(&w->s, "EXISTS rrq:lock:job:j2"), 0);
    (void)server_do(&w->s, "DEL rrq:active:jobs:w1");
    assert_text(contract_claim(c, "w1", "j2").id, "j2");
}

static void test_faults__jobs_of_a_wrong_type(void **state) {
    world *w = *state;
    contract *c = &w->c;
    ew__job job = contract_job(c, "bad");
    set_type(w, "rrq:job:bad");
    (void)server_do(&w->s, "ZADD rrq:queue:q 1 bad");
    contract_add_id(c, "j1");
    assert_text(contract_claim(c, "w1", "j1").id, "j1"); /* passed by */
    assert_int_equal(server_int(&w->s, "EXISTS rrq:lock:job:bad"), 0);
    job.worker = S("w1");
    ew__store_request *op = contract_op(c, EW__OP_GET);
    op->u.get.id = S("bad");
    expect_trouble(c, op, "WRONGTYPE");
    op = contract_op(c, EW__OP_GET);
    op->u.get.id = S("bad");
    op->u.get.want_chunks = true;
    expect_trouble(c, op, "WRONGTYPE");
    expect_trouble(c, contract_change(c, &job, EW__JOB_COMPLETED), "WRONGTYPE");
    assert_int_equal(contract_renew(c, &job), EW__LEASE_GONE);
    op = contract_enqueue_op(c, job);
    assert_int_equal(contract_do(c, op), EW_OK);
    assert_int_equal(op->u.enqueue.ret, EW__ENQUEUED_DUPLICATE);
    ew__op_list *list = contract_list(c, &(ew__op_list){.status = EW__JOB_STATUSES, .limit = 5});
    assert_text(contract_ids(c, list->ret, list->ret_n), "j1");
    (void)server_do(&w->s, "ZADD rrq:active:jobs:w1 1 bad");
    assert_int_equal(contract_expired(c, 9)->ret_n, 0);
}

/* ---- scripts that were forgotten ---- */

static void test_faults__scripts_are_loaded_again(void **state) {
    world *w = *state;
    contract *c = &w->c;
    (void)server_do(&w->s, "SCRIPT FLUSH");
    contract_add_id(c, "j1");
    (void)server_do(&w->s, "SCRIPT FLUSH");
    ew__job job = contract_claim(c, "w1", "j1");
    (void)server_do(&w->s, "SCRIPT FLUSH");
    assert_int_equal(contract_expired(c, 9)->ret_n, 0);
    (void)server_do(&w->s, "SCRIPT FLUSH");
    assert_int_equal(contract_sweep(c, 9), 0);
    (void)server_do(&w->s, "SCRIPT FLUSH");
    contract_must_change(c, &job, EW__JOB_COMPLETED);
}

/* ---- a connection that is lost ---- */

/* Operations in order, by one who does not wait for their ends. */
typedef struct one {
    ew__store_request op;
    ew__arena arena;
    char id[40];
    struct all *all;
} one;

typedef struct all {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    size_t n_done, n;
    one *ops;
} all;

static void on_done(ew__store_request *op) {
    all *a = ew__container_of(op, one, op)->all;
    pthread_mutex_lock(&a->lock);
    a->n_done++;
    pthread_cond_signal(&a->cond);
    pthread_mutex_unlock(&a->lock);
}

static void wait_done(all *a, size_t n) {
    struct timespec until = ew__cond_until(WAIT_MS);
    pthread_mutex_lock(&a->lock);
    while (a->n_done < n && pthread_cond_timedwait(&a->cond, &a->lock, &until) == 0) {
    }
    bool reached = a->n_done >= n;
    pthread_mutex_unlock(&a->lock);
    assert_true(reached);
}

static void all_init(all *a, size_t n) {
    memset(a, 0, sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
    ew__cond_init(&a->cond);
    a->n = n;
    a->ops = calloc(n, sizeof *a->ops);
    assert_non_null(a->ops);
    for (size_t i = 0; i < n; i++) {
        a->ops[i].all = a;
        a->ops[i].op.done = on_done;
        a->ops[i].op.arena = &a->ops[i].arena;
        ew__arena_init(&a->ops[i].arena, ew_env_default(), NULL, 0);
    }
}

static void all_free(all *a) {
    for (size_t i = 0; i < a->n; i++)
        ew__arena_done(&a->ops[i].arena);
    free(a->ops);
}

/* Enqueues and ends, half of each, while the server is killed: what was acknowledged is there afterwards. */
static void kill_in_the_middle(world *w, int round) {
    enum { N = 200 };
    contract *c = &w->c;
    all a;
    for (int i = 0; i < N; i++) {
        ew__job job = contract_job(c, "");
        job.id = contract_text(c, "old-%d-%d", round, i);
        contract_add(c, job);
    }
    ew__op_claim *got = contract_claim_of(c, "w1", "q", N);
    all_init(&a, 2 * N);
    for (size_t i = 0; i < 2 * N; i++) {
        one *o = &a.ops[i];
        if (i % 2 == 0) {
            (void)snprintf(o->id, sizeof o->id, "new-%d-%zu", round, i);
            o->op.kind = EW__OP_ENQUEUE;
            o->op.u.enqueue.job = contract_job(c, o->id);
            o->op.u.enqueue.job.queue = S("other");
        } else {
            o->op.kind = EW__OP_CHANGE;
            o->op.u.change = contract_change(c, &got->ret[i / 2], EW__JOB_COMPLETED)->u.change;
        }
    }
    for (size_t i = 0; i < 2 * N; i++) {
        c->store->ops->submit(c->store, &a.ops[i].op);
        if (i % 16 == 15)
            wait_done(&a, i > 64 ? i - 64 : 0);
        if (i == (size_t)(2 * N / 4 + round * 37 % N)) {
            server_kill(&w->s);
            server_again(&w->s);
        }
    }
    wait_done(&a, 2 * N);
    size_t acknowledged = 0;
    for (size_t i = 0; i < 2 * N; i++) {
        const one *o = &a.ops[i];
        if (o->op.err != EW_OK) {
            assert_true(o->op.err == EW_ECONNECT || o->op.err == EW_ETIMEOUT);
            assert_true(o->op.problem[0] != '\0');
            continue;
        }
        acknowledged++;
        ew_str id = i % 2 == 0 ? S(o->id) : got->ret[i / 2].id;
        char text[40];
        (void)snprintf(text, sizeof text, "%.*s", (int)id.len, id.ptr);
        assert_says(server_text(&w->s, "HGET rrq:job:%s status", text), i % 2 == 0 ? "PENDING" : "COMPLETED");
    }
    assert_true(acknowledged >= N / 4); /* 64 may have been under way */
    all_free(&a);
}

static void test_faults__killed(void **state) {
    (void)state;
    static const char *const args[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    const char *kills = getenv("EW_KILLS");
    int n = kills != NULL ? (int)strtol(kills, NULL, 10) : 2;
    world *w = &the_world;
    server first = w->s;
    server_start(&w->s, args);
    void *own;
    (void)world_setup(&own);
    for (int round = 0; round < n; round++) {
        kill_in_the_middle(w, round);
        /* and it goes on by itself */
        for (int i = 0; contract_get_err(&w->c, "nobody") != EW_ENOTFOUND; i++)
            assert_true(i < 100);
    }
    (void)world_teardown(&own);
    server_stop(&w->s);
    w->s = first;
}

static void test_faults__cut_off(void **state) {
    world *w = *state;
    contract *c = &w->c;
    contract_add_id(c, "j1");
    for (int i = 0; i < 5; i++) {
        (void)server_do(&w->s, "CLIENT KILL TYPE normal");
        ew_err err = contract_get_err(c, "j1");
        assert_true(err == EW_ECONNECT || err == EW_OK);
        assert_int_equal(contract_get_err(c, "j1"), EW_OK);
    }
}

/* Nobody waits for ever, and a server that went on is used again. */
static void test_faults__stopped(void **state) {
    world *w = *state;
    contract *c = &w->c;
    contract_add_id(c, "j1");
    assert_int_equal(kill(w->s.pid, SIGSTOP), 0);
    ew__store_request *op = contract_op(c, EW__OP_GET);
    op->u.get.id = S("j1");
    ew_err err = contract_do(c, op);
    assert_int_equal(kill(w->s.pid, SIGCONT), 0);
    assert_int_equal(err, EW_ETIMEOUT);
    assert_true(op->problem[0] != '\0');
    for (int i = 0; contract_get_err(c, "j1") != EW_OK; i++)
        assert_true(i < 100);
}

static void test_faults__without_memory(void **state) {
    world *w = *state;
    contract *c = &w->c;
    (void)server_do(&w->s, "CONFIG SET maxmemory 1");
    ew__store_request *op = contract_enqueue_op(c, contract_job(c, "j1"));
    ew_err err = contract_do(c, op);
    (void)server_do(&w->s, "CONFIG SET maxmemory 0");
    assert_int_equal(err, EW_ELIMIT);
    assert_non_null(strstr(op->problem, "OOM"));
    contract_add_id(c, "j1");
}

static void test_faults__a_replica(void **state) {
    world *w = *state;
    contract *c = &w->c;
    (void)server_do(&w->s, "REPLICAOF 127.0.0.1 1");
    ew__store_request *op = contract_enqueue_op(c, contract_job(c, "j1"));
    ew_err err = contract_do(c, op);
    (void)server_do(&w->s, "REPLICAOF NO ONE");
    assert_int_equal(err, EW_ECONNECT);
    assert_non_null(strstr(op->problem, "READONLY"));
    contract_add_id(c, "j1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_faults__queue_of_a_wrong_type, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_faults__dead_letters_of_a_wrong_type, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_faults__locks_and_sets_of_a_wrong_type, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_faults__jobs_of_a_wrong_type, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_faults__scripts_are_loaded_again, world_setup, world_teardown),
        cmocka_unit_test(test_faults__killed),
        cmocka_unit_test_setup_teardown(test_faults__cut_off, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_faults__stopped, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_faults__without_memory, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_faults__a_replica, world_setup, world_teardown),
    };
    if (!server_exists())
        return 0;
    server_start(&the_world.s, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    server_stop(&the_world.s);
    return failed;
}
