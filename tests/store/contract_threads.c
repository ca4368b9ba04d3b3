/*
 * tests/store/contract_threads.c: many operations at once: their order, several threads, hints, the end of a store.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/thread.h"
#include "store/contract.h"
#include "store/jobs.h"
#include <stdatomic.h>

#define WAIT_MS 20000

/* ---- order ---- */

typedef struct many {
    ew__store_owner owner;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    size_t n_done;
    size_t n_closed;
    bool in_order, closed_last;
} many;

typedef struct numbered {
    ew__store_request op;
    ew__arena arena;
    size_t number;
    char id[24];
} numbered;

static void many_done(ew__store_request *op) {
    numbered *one = ew__container_of(op, numbered, op);
    many *all = ew__container_of(op->owner, many, owner);
    pthread_mutex_lock(&all->lock);
    if (one->number != all->n_done++)
        all->in_order = false;
    if (op->err == EW_ECLOSED)
        all->n_closed++;
    else if (all->n_closed > 0)
        all->closed_last = false;
    pthread_cond_signal(&all->cond);
    pthread_mutex_unlock(&all->lock);
}

static bool many_wait(many *all, size_t n) {
    bool reached;
    struct timespec until = ew__cond_until(WAIT_MS);
    pthread_mutex_lock(&all->lock);
    while (all->n_done < n && pthread_cond_timedwait(&all->cond, &all->lock, &until) == 0) {
    }
    reached = all->n_done == n;
    pthread_mutex_unlock(&all->lock);
    return reached;
}

static numbered *many_submit(contract *c, many *all, size_t n) {
    numbered *ops = ew__zalloc(c->env, n * sizeof *ops);
    assert_non_null(ops);
    for (size_t i = 0; i < n; i++) {
        numbered *one = &ops[i];
        ew__arena_init(&one->arena, c->env, NULL, 0);
        (void)snprintf(one->id, sizeof one->id, "j%zu", i / 2);
        one->number = i;
        one->op = (ew__store_request){
            .kind = i % 2 == 0 ? EW__OP_ENQUEUE : EW__OP_GET, .arena = &one->arena, .done = many_done};
        one->op.owner = &all->owner;
        if (i % 2 == 0)
            one->op.u.enqueue.job = contract_job(c, one->id);
        else
            one->op.u.get.id = S(one->id);
        c->store->ops->submit(c->store, &one->op);
    }
    return ops;
}

static void many_free(contract *c, numbered *ops, size_t n) {
    for (size_t i = 0; i < n; i++)
        ew__arena_done(&ops[i].arena);
    ew__free(c->env, ops, n * sizeof *ops);
}

static void many_init(many *all) {
    memset(all, 0, sizeof *all);
    pthread_mutex_init(&all->lock, NULL);
    ew__cond_init(&all->cond);
    all->in_order = all->closed_last = true;
}

static void test_contract__in_order(void **state) {
    contract *c = *state;
    enum { N = 3000 };
    many all;
    if (!c->threads)
        skip();
    many_init(&all);
    numbered *ops = many_submit(c, &all, N);
    assert_true(many_wait(&all, N));
    assert_true(all.in_order);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(ops[i].op.err, EW_OK);
        if (i % 2 == 1) /* what came before is there for the next */
            assert_true(ew__str_is(ops[i].op.u.get.ret.id, S(ops[i].id)));
    }
    many_free(c, ops, N);
}

/* Free ends everything that waits; what it could not do any more is told so, and is not done. */
static void test_contract__freed_in_the_middle(void **state) {
    contract *c = *state;
    enum { N = 3000 };
    many all;
    if (!c->threads)
        skip();
    many_init(&all);
    numbered *ops = many_submit(c, &all, N);
    c->close(c, c->store);
    assert_int_equal(all.n_done, N); /* before free returns */
    assert_true(all.in_order);
    assert_true(all.closed_last);
    c->store = c->open(c, !c->kept);
    assert_non_null(c->store);
    for (size_t i = 0; i < N && c->kept; i += 2) {
        assert_true(ops[i].op.err == EW_OK || ops[i].op.err == EW_ECLOSED);
        assert_int_equal(contract_get_err(c, ops[i].id), ops[i].op.err == EW_OK ? EW_OK : EW_ENOTFOUND);
    }
    many_free(c, ops, N);
}

/* ---- several threads ---- */

enum { THREADS = 6, EACH = 60 };

typedef struct party {
    contract *c;
    ew__store *store;
    atomic_uint *claimed; /* of each job */
    int number;
    ew_err err;
    bool wrong;
} party;

static ew_err party_do(party *p, ew__store_request *op) { return p->err = ew__store_do(p->store, op); }

static void party_take(party *p, ew__arena *arena, uint32_t max) {
    ew__claim_queue queue = {.name = S("q"), .max = max};
    char worker[16];
    (void)snprintf(worker, sizeof worker, "w%d", p->number);
    ew__store_request op = {.kind = EW__OP_CLAIM, .arena = arena};
    op.u.claim = (ew__op_claim){.worker = S(worker),
                                .queues = &queue,
                                .n_queues = 1,
                                .max = max,
                                .now = contract_now(p->c) + 1000,
                                .lease_ms = 60000};
    if (party_do(p, &op) != EW_OK)
        return;
    for (size_t i = 0; i < op.u.claim.ret_n; i++) {
        const ew__job *job = &op.u.claim.ret[i];
        uint64_t number = 0;
        if (!ew__u64_parse(ew__str(job->id.ptr + 1, job->id.len - 1), &number) || number >= THREADS * EACH ||
            atomic_fetch_add(&p->claimed[number], 1) != 0)
            p->wrong = true;
        ew__store_request end = {.kind = EW__OP_CHANGE, .arena = arena};
        end.u.change = (ew__op_change){.id = job->id,
                                       .queue = job->queue,
                                       .worker = job->worker,
                                       .epoch = job->epoch,
                                       .status = EW__JOB_COMPLETED,
                                       .now = contract_now(p->c),
                                       .result = S("1"),
                                       .result_ttl_ms = job->result_ttl_ms};
        if (party_do(p, &end) != EW_OK)
            return;
    }
}

static void *party_main(void *arg) {
    party *p = arg;
    ew__arena arena;
    for (int i = 0; i < EACH && p->err == EW_OK && !p->wrong; i++) {
        char id[24];
        ew__arena_init(&arena, p->c->env, NULL, 0);
        (void)snprintf(id, sizeof id, "j%d", p->number * EACH + i);
        ew__store_request op = {.kind = EW__OP_ENQUEUE, .arena = &arena};
        op.u.enqueue.job = contract_job(p->c, id);
        if (party_do(p, &op) == EW_OK && op.u.enqueue.ret != EW__ENQUEUED_NEW)
            p->wrong = true;
        if (p->err == EW_OK)
            party_take(p, &arena, 2);
        ew__arena_done(&arena);
    }
    return NULL;
}

static void run_party(contract *c, ew__store *second) {
    static atomic_uint claimed[THREADS * EACH];
    party parties[THREADS];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS * EACH; i++)
        atomic_store(&claimed[i], 0);
    for (int i = 0; i < THREADS; i++) {
        parties[i] = (party){.c = c, .store = i % 2 == 0 ? c->store : second, .claimed = claimed, .number = i};
        assert_true(ew__thread_start(&threads[i], party_main, &parties[i]));
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(parties[i].err, EW_OK);
        assert_false(parties[i].wrong);
    }
    party rest = {.c = c, .store = c->store, .claimed = claimed, .number = THREADS};
    party_take(&rest, &c->arena, THREADS * EACH);
    assert_int_equal(rest.err, EW_OK);
    assert_false(rest.wrong);
    for (size_t i = 0; i < THREADS * EACH; i++)
        assert_int_equal(atomic_load(&claimed[i]), 1);
    ew__op_list *list = contract_list(c, &(ew__op_list){.status = EW__JOB_COMPLETED, .limit = 2 * THREADS * EACH});
    assert_int_equal(list->ret_n, THREADS * EACH);
}

static void test_contract__each_job_once(void **state) {
    contract *c = *state;
    if (!c->threads)
        skip();
    run_party(c, c->store);
}

static void test_contract__each_job_once_over_two_stores(void **state) {
    contract *c = *state;
    if (!c->threads || !c->shared)
        skip();
    ew__store *second = c->open(c, false);
    assert_non_null(second);
    run_party(c, second);
    c->close(c, second);
}

/* ---- hints ---- */

typedef struct listener {
    ew__watcher watcher;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    unsigned seen;
} listener;

static void on_changed(ew__watcher *watcher, unsigned what) {
    listener *l = ew__container_of(watcher, listener, watcher);
    pthread_mutex_lock(&l->lock);
    l->seen |= what;
    pthread_cond_signal(&l->cond);
    pthread_mutex_unlock(&l->lock);
}

static void listen_for(listener *l, ew__store *store, unsigned want) {
    memset(l, 0, sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    ew__cond_init(&l->cond);
    l->watcher.want = want;
    l->watcher.changed = on_changed;
    store->ops->watch(store, &l->watcher, true);
}

static bool heard(listener *l, unsigned what) {
    struct timespec until = ew__cond_until(WAIT_MS);
    pthread_mutex_lock(&l->lock);
    while ((l->seen & what) != what && pthread_cond_timedwait(&l->cond, &l->lock, &until) == 0) {
    }
    bool ok = (l->seen & what) == what;
    l->seen = 0;
    pthread_mutex_unlock(&l->lock);
    return ok;
}

/* The life of a job, with what each step must be announced as to somebody who watches `store`. */
static void live_and_listen(contract *c, listener *queues, listener *jobs, listener *cancels) {
    contract_add_id(c, "j1");
    assert_true(heard(queues, EW__CHANGED_QUEUES));
    ew__job job = contract_claim(c, "w", "j1");
    assert_int_equal(contract_chunk(c, &job, "1"), EW_OK);
    assert_true(heard(jobs, EW__CHANGED_JOBS));
    contract_must_change(c, &job, EW__JOB_RETRYING);
    assert_true(heard(queues, EW__CHANGED_QUEUES));
    job = contract_claim(c, "w", "j1");
    ew__store_request *op = contract_op(c, EW__OP_CANCEL);
    op->u.cancel = (ew__op_cancel){.id = S("j1"), .now = contract_now(c)};
    assert_int_equal(contract_do(c, op), EW_OK);
    assert_true(heard(cancels, EW__CHANGED_CANCELS));
    (void)heard(jobs, 0);
    contract_must_change(c, &job, EW__JOB_FAILED);
    assert_true(heard(jobs, EW__CHANGED_JOBS));
    (void)heard(queues, 0);
    op = contract_op(c, EW__OP_REQUEUE);
    op->u.requeue = (ew__op_requeue){.id = S("j1"), .now = contract_now(c)};
    assert_int_equal(contract_do(c, op), EW_OK);
    assert_true(heard(queues, EW__CHANGED_QUEUES));
    contract_pause(c, "q", true);
    (void)heard(queues, 0);
    contract_pause(c, "q", false);
    assert_true(heard(queues, EW__CHANGED_QUEUES));
}

static void watch_life(contract *c, ew__store *watched) {
    listener queues, jobs, cancels, nothing;
    listen_for(&queues, watched, EW__CHANGED_QUEUES);
    listen_for(&jobs, watched, EW__CHANGED_JOBS);
    listen_for(&cancels, watched, EW__CHANGED_CANCELS);
    listen_for(&nothing, watched, 0);
    live_and_listen(c, &queues, &jobs, &cancels);
    listener *all[] = {&queues, &jobs, &cancels, &nothing};
    for (size_t i = 0; i < 4; i++)
        watched->ops->watch(watched, &all[i]->watcher, false);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(all[i]->seen & ~all[i]->watcher.want, 0);
        all[i]->seen = 0;
    }
    contract_add_id(c, "after"); /* nobody listens any more */
    assert_int_equal(queues.seen, 0);
}

static void test_contract__hints_of_its_own_doing(void **state) {
    contract *c = *state;
    if (!c->threads)
        skip();
    watch_life(c, c->store);
}

static void test_contract__hints_of_others_doing(void **state) {
    contract *c = *state;
    if (!c->threads || !c->shared)
        skip();
    ew__store *watched = c->open(c, false);
    assert_non_null(watched);
    watch_life(c, watched);
    c->close(c, watched);
}

contract_tests contract_tests_threads(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract__in_order),
        cmocka_unit_test(test_contract__freed_in_the_middle),
        cmocka_unit_test(test_contract__each_job_once),
        cmocka_unit_test(test_contract__each_job_once_over_two_stores),
        cmocka_unit_test(test_contract__hints_of_its_own_doing),
        cmocka_unit_test(test_contract__hints_of_others_doing),
    };
    return (contract_tests){tests, sizeof tests / sizeof *tests};
}
