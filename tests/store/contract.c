/*
 * tests/store/contract.c: words for the tests of the contract, and how they are run.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/contract.h"
#include "store/jobs.h"
#include <time.h>

int64_t contract_now(contract *c) { return c->now != NULL ? c->now(c) : (int64_t)c->env->wall_ms(c->env->ud); }

void contract_sleep(contract *c, uint64_t ms) {
    if (c->sleep != NULL) {
        c->sleep(c, ms);
        return;
    }
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

uint64_t contract_lease(const contract *c) { return c->lease_ms != 0 ? c->lease_ms : 300; }
uint64_t contract_ttl(const contract *c) { return c->ttl_ms != 0 ? c->ttl_ms : 1000; }

void contract_reopen(contract *c) {
    if (!c->kept)
        return;
    c->close(c, c->store);
    c->store = c->open(c, false);
    assert_non_null(c->store);
}

ew_str contract_text(contract *c, const char *format, ...) {
    char text[512];
    va_list args;
    ew_str copy;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < sizeof text);
    assert_int_equal(ew__arena_str(&c->arena, ew__str(text, (size_t)n), &copy), EW_OK);
    return copy;
}

/* ---- operations ---- */

ew__store_request *contract_op(contract *c, ew__op_kind kind) {
    ew__store_request *op = ew__arena_alloc(&c->arena, sizeof *op);
    assert_non_null(op);
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->arena = &c->arena;
    op->err = EW_EINVAL; /* the store must say so itself */
    return op;
}

ew_err contract_do(contract *c, ew__store_request *op) {
    ew_err err = c->run != NULL ? c->run(c, c->store, op) : ew__store_do(c->store, op);
    assert_int_equal(err, op->err);
    return err;
}

static void must(contract *c, ew__store_request *op) {
    ew_err err = contract_do(c, op);
    if (err != EW_OK)
        fail_msg("operation %d: %s: %s", (int)op->kind, ew_err_name(err), op->problem);
}

ew__job contract_job(contract *c, const char *id) {
    int64_t now = contract_now(c);
    return (ew__job){.id = S(id),
                     .function = S("f"),
                     .queue = S("q"),
                     .params = S("{}"),
                     .enqueued_at = now,
                     .run_at = now,
                     .timeout_ms = 5000,
                     .result_ttl_ms = 60000,
                     .max_retries = 5};
}

ew__store_request *contract_enqueue_op(contract *c, ew__job job) {
    ew__store_request *op = contract_op(c, EW__OP_ENQUEUE);
    op->u.enqueue.job = job;
    return op;
}

void contract_add(contract *c, ew__job job) {
    ew__store_request *op = contract_enqueue_op(c, job);
    must(c, op);
    assert_int_equal(op->u.enqueue.ret, EW__ENQUEUED_NEW);
    assert_true(ew__str_is(op->u.enqueue.ret_id, job.id));
}

void contract_add_id(contract *c, const char *id) { contract_add(c, contract_job(c, id)); }

ew__op_enqueue *contract_dedup_enqueue(contract *c, ew__job job, ew__dedup_mode dedup, const char *key) {
    ew__store_request *op = contract_enqueue_op(c, job);
    op->u.enqueue.dedup = dedup;
    op->u.enqueue.key = S(key);
    op->u.enqueue.key_ttl_ms = (int64_t)contract_ttl(c);
    must(c, op);
    return &op->u.enqueue;
}

ew__op_claim *contract_claim_of(contract *c, const char *worker, const char *queue, uint32_t max) {
    ew__store_request *op = contract_op(c, EW__OP_CLAIM);
    ew__claim_queue *one = ew__arena_alloc(&c->arena, sizeof *one);
    assert_non_null(one);
    *one = (ew__claim_queue){.name = S(queue), .max = max};
    op->u.claim = (ew__op_claim){.worker = S(worker),
                                 .queues = one,
                                 .n_queues = 1,
                                 .max = max,
                                 .now = contract_now(c),
                                 .lease_ms = contract_lease(c)};
    must(c, op);
    return &op->u.claim;
}

ew__job contract_claim(contract *c, const char *worker, const char *id) {
    ew__op_claim *claim = contract_claim_of(c, worker, "q", 1);
    assert_int_equal(claim->ret_n, 1);
    assert_text(claim->ret[0].id, id);
    return claim->ret[0];
}

ew__store_request *contract_change(contract *c, const ew__job *job, ew__job_status status) {
    ew__store_request *op = contract_op(c, EW__OP_CHANGE);
    op->u.change = (ew__op_change){.id = job->id,
                                   .queue = job->queue,
                                   .worker = job->worker,
                                   .epoch = job->epoch,
                                   .status = status,
                                   .run_at = contract_now(c),
                                   .now = contract_now(c),
                                   .retries = job->retries,
                                   .lost = job->lost,
                                   .result_ttl_ms = job->result_ttl_ms,
                                   .unique_key = job->unique_key};
    if (status == EW__JOB_COMPLETED)
        op->u.change.result = S("{\"ok\":true}");
    if (status == EW__JOB_FAILED)
        op->u.change.dlq = S("default");
    return op;
}

void contract_must_change(contract *c, const ew__job *job, ew__job_status status) {
    must(c, contract_change(c, job, status));
}

ew_err contract_chunk(contract *c, const ew__job *job, const char *json) {
    ew__store_request *op = contract_op(c, EW__OP_CHUNKS);
    ew_str *text = ew__arena_alloc(&c->arena, sizeof *text);
    assert_non_null(text);
    *text = S(json);
    op->u.chunks = (ew__op_chunks){.id = job->id, .worker = job->worker, .epoch = job->epoch, .chunks = text, .n = 1};
    return contract_do(c, op);
}

ew__lease_state contract_renew(contract *c, const ew__job *job) {
    ew__store_request *op = contract_op(c, EW__OP_RENEW);
    ew__lease *lease = ew__arena_alloc(&c->arena, sizeof *lease);
    assert_non_null(lease);
    *lease = (ew__lease){.id = job->id, .epoch = job->epoch};
    op->u.renew = (ew__op_renew){.worker = job->worker,
                                 .record = S("{\"status\":\"running\"}"),
                                 .ttl_ms = 60000,
                                 .lease_ms = contract_lease(c),
                                 .leases = lease,
                                 .n_leases = 1};
    must(c, op);
    return lease->ret;
}

ew__op_expired *contract_expired(contract *c, uint32_t max) {
    ew__store_request *op = contract_op(c, EW__OP_EXPIRED);
    op->u.expired = (ew__op_expired){.now = contract_now(c), .max = max};
    must(c, op);
    return &op->u.expired;
}

/* ---- looking ---- */

ew__job contract_get(contract *c, const char *id) {
    ew__store_request *op = contract_op(c, EW__OP_GET);
    op->u.get.id = S(id);
    must(c, op);
    return op->u.get.ret;
}

ew_err contract_get_err(contract *c, const char *id) {
    ew__store_request *op = contract_op(c, EW__OP_GET);
    op->u.get.id = S(id);
    return contract_do(c, op);
}

ew__op_list *contract_list(contract *c, const ew__op_list *filter) {
    ew__store_request *op = contract_op(c, EW__OP_LIST);
    op->u.list = *filter;
    must(c, op);
    return &op->u.list;
}

ew_str contract_ids(contract *c, const ew__job *jobs, size_t n) {
    char text[4096];
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        int added =
            snprintf(text + len, sizeof text - len, "%s%.*s", i > 0 ? " " : "", (int)jobs[i].id.len, jobs[i].id.ptr);
        assert_true(added >= 0 && (size_t)added < sizeof text - len);
        len += (size_t)added;
    }
    ew_str copy;
    assert_int_equal(ew__arena_str(&c->arena, ew__str(text, len), &copy), EW_OK);
    return copy;
}

void contract_pause(contract *c, const char *queue, bool on) {
    ew__store_request *op = contract_op(c, EW__OP_PAUSE);
    op->u.pause = (ew__op_pause){.queue = S(queue), .on = on};
    must(c, op);
}

const ew__queue_stats *contract_queue(contract *c, const char *name, bool counts) {
    ew__store_request *op = contract_op(c, EW__OP_QUEUES);
    op->u.queues.counts = counts;
    must(c, op);
    for (size_t i = 0; i < op->u.queues.ret_n; i++) {
        if (ew__str_is(op->u.queues.ret[i].name, S(name)))
            return &op->u.queues.ret[i];
    }
    return NULL;
}

uint64_t contract_sweep(contract *c, uint32_t max) {
    ew__store_request *op = contract_op(c, EW__OP_SWEEP);
    op->u.sweep = (ew__op_sweep){.now = contract_now(c), .max = max};
    must(c, op);
    return op->u.sweep.ret_removed;
}

/* ---- running ---- */

static int setup(void **state) {
    contract *c = *state;
    ew__arena_init(&c->arena, c->env, NULL, 0);
    c->store = c->open(c, true);
    return c->store != NULL ? 0 : -1;
}

static int teardown(void **state) {
    contract *c = *state;
    c->close(c, c->store);
    c->store = NULL;
    ew__arena_done(&c->arena);
    return 0;
}

int contract_run(contract *c) {
    const contract_tests parts[] = {
        contract_tests_jobs(),  contract_tests_claims(), contract_tests_leases(),  contract_tests_dedup(),
        contract_tests_looks(), contract_tests_lists(),  contract_tests_threads(),
    };
    struct CMUnitTest tests[128];
    size_t n = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        for (size_t k = 0; k < parts[i].n && n < sizeof tests / sizeof *tests; k++) {
            tests[n] = parts[i].tests[k];
            tests[n].setup_func = setup;
            tests[n].teardown_func = teardown;
            tests[n++].initial_state = c;
        }
    }
    return _cmocka_run_group_tests(c->name, tests, n, NULL, NULL);
}
