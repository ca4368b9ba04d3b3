/*
 * tests/store/test_store_sqlite_faults.c: the disk fails, is full, or loses its power, at every call in turn: what was
 * acknowledged stays, nothing is done twice, errors are told, and it goes on by itself.
 *
 * Memory fails likewise. The backend is driven without its thread. EW_FAULTS=all: every call of every scenario, not a
 * part of them. SPDX-License-Identifier: Apache-2.0
 */
#include "store/fault_vfs.h"
#include "store/sqlite_place.h"
#include <sqlite3.h>
#include <stdlib.h>

enum { JOBS = 64, LEASE_MS = 15000 };

/* What the outside world knows of a job. */
typedef struct known {
    char id[24];
    bool enqueued;  /* acknowledged */
    unsigned ended; /* acknowledged ends */
    char result[24];
} known;

typedef struct sim {
    place place;
    ew__backend *backend;
    ew__arena arena;  /* of the test */
    ew__arena answer; /* of what comes back, from memory that may fail */
    known jobs[JOBS];
    size_t n_jobs;
    unsigned troubles;
} sim;

/* ---- operations ---- */

static ew__store_request *op_new(sim *s, ew__op_kind kind) {
    ew__store_request *op = ew__arena_alloc(&s->arena, sizeof *op);
    assert_non_null(op);
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->arena = &s->answer;
    return op;
}

static bool is_trouble(ew_err err) {
    return err == EW_EIO || err == EW_ELIMIT || err == EW_EBUSY || err == EW_ENOMEM || err == EW_EACCESS;
}

/* Ops of a list, in one batch. False: there was trouble. */
static bool run(sim *s, ew__store_request *ops) {
    bool good = true;
    s->backend->ops->run(s->backend, ops);
    for (ew__store_request *op = ops; op != NULL; op = ew__store_request_after(op)) {
        if (is_trouble(op->err)) {
            assert_true(op->problem[0] != '\0');
            s->troubles++;
            good = false;
        }
    }
    return good;
}

/* Does it, a second time if it fails. */
static bool insist(sim *s, ew__store_request *op) { return run(s, op) || run(s, op); }

static int64_t now(const sim *s) { return (int64_t)s->place.env.wall_ms(s->place.env.ud); }

static known *known_of(sim *s, ew_str id) {
    for (size_t i = 0; i < s->n_jobs; i++) {
        if (ew__str_is(S(s->jobs[i].id), id))
            return &s->jobs[i];
    }
    return NULL;
}

static ew__store_request *enqueue_op(sim *s, ew_str params) {
    known *k = &s->jobs[s->n_jobs];
    assert_true(s->n_jobs < JOBS);
    (void)snprintf(k->id, sizeof k->id, "j%zu", s->n_jobs++);
    ew__store_request *op = op_new(s, EW__OP_ENQUEUE);
    op->u.enqueue.job = (ew__job){.id = S(k->id),
                                  .function = S("f"),
                                  .queue = S("q"),
                                  .params = params,
                                  .enqueued_at = now(s),
                                  .run_at = now(s),
                                  .timeout_ms = 1000,
                                  .max_retries = 3,
                                  .result_ttl_ms = 1000};
    return op;
}

static void note_enqueued(sim *s, const ew__store_request *op) {
    if (op->err == EW_OK && (op->u.enqueue.ret == EW__ENQUEUED_NEW || op->u.enqueue.ret == EW__ENQUEUED_DUPLICATE))
        known_of(s, op->u.enqueue.job.id)->enqueued = true; /* a duplicate is our own that nobody was sure of */
}

static bool enqueue(sim *s, ew_str params) {
    ew__store_request *op = enqueue_op(s, params);
    bool good = insist(s, op);
    note_enqueued(s, op);
    return good;
}

static ew__store_request *claim(sim *s, uint32_t max) {
    static const ew__claim_queue queues[] = {{{"q", 1}, 99}};
    ew__store_request *op = op_new(s, EW__OP_CLAIM);
    op->u.claim = (ew__op_claim){
        .worker = S("w"), .queues = queues, .n_queues = 1, .max = max, .now = now(s) + 1, .lease_ms = LEASE_MS};
    return run(s, op) && op->u.claim.ret_n > 0 ? op : NULL;
}

static ew__store_request *change_op(sim *s, const ew__job *job, ew__job_status status) {
    ew__store_request *op = op_new(s, EW__OP_CHANGE);
    op->u.change = (ew__op_change){.id = job->id,
                                   .queue = job->queue,
                                   .worker = job->worker,
                                   .epoch = job->epoch,
                                   .status = status,
                                   .run_at = now(s),
                                   .now = now(s),
                                   .retries = job->retries,
                                   .lost = job->lost,
                                   .result_ttl_ms = job->result_ttl_ms,
                                   .dlq = S("d")};
    return op;
}

/* Ends a job; each end has a result of its own, so that a second one would be seen. */
static bool complete(sim *s, const ew__job *job) {
    known *k = known_of(s, job->id);
    ew__store_request *op = change_op(s, job, EW__JOB_COMPLETED);
    char *text = ew__arena_alloc(&s->arena, 24);
    assert_non_null(text);
    assert_non_null(k);
    (void)snprintf(text, 24, "{\"epoch\":%llu}", (unsigned long long)job->epoch);
    op->u.change.result = S(text);
    bool first = run(s, op), good = first || run(s, op);
    if (good && op->err == EW_OK) {
        k->ended++;
        (void)snprintf(k->result, sizeof k->result, "%s", text);
    } else if (good) {
        assert_int_equal(op->err, EW_ESTALE);
        assert_false(first); /* the first try has done it after all */
    }
    return good;
}

static bool chunk(sim *s, const ew__job *job) {
    static const ew_str chunks[] = {{"1", 1}, {"[2]", 3}};
    ew__store_request *op = op_new(s, EW__OP_CHUNKS);
    op->u.chunks = (ew__op_chunks){.id = job->id, .worker = job->worker, .epoch = job->epoch, .chunks = chunks, .n = 2};
    return insist(s, op);
}

/* ---- scenarios: each ends early when the disk stays broken ---- */

static ew_str params_of(sim *s, size_t n) {
    char *text = ew__arena_alloc(&s->arena, n);
    assert_non_null(text);
    memset(text, 'p', n);
    text[0] = text[n - 1] = '"';
    return ew__str(text, n);
}

static bool scene_enqueue(sim *s) {
    for (int i = 0; i < 4; i++) {
        if (!enqueue(s, S("{}")))
            return false;
    }
    return true;
}

static bool scene_batch(sim *s) {
    ew__fifo list = {NULL, NULL};
    for (int i = 0; i < 12; i++) {
        ew__fifo_push(&list, &enqueue_op(s, S("[1,2,3]"))->node);
        ew__store_request *get = op_new(s, EW__OP_GET);
        get->u.get.id = S(s->jobs[s->n_jobs - 1].id);
        ew__fifo_push(&list, &get->node);
    }
    ew__store_request *first = EW__ITEM(list.first, ew__store_request, node);
    bool good = run(s, first);
    for (ew__store_request *op = first; op != NULL; op = ew__store_request_after(ew__store_request_after(op))) {
        note_enqueued(s, op);
        /* what came after it in the batch has seen it only if it is there to stay */
        if (!is_trouble(ew__store_request_after(op)->err))
            assert_int_equal(ew__store_request_after(op)->err, op->err == EW_OK ? EW_OK : EW_ENOTFOUND);
    }
    return good;
}

static bool scene_life(sim *s) {
    if (!enqueue(s, S("{}")) || !enqueue(s, S("{}")))
        return false;
    ew__store_request *op = claim(s, 2);
    if (op == NULL)
        return false;
    for (size_t i = 0; i < op->u.claim.ret_n; i++) {
        if (!chunk(s, &op->u.claim.ret[i]) || !complete(s, &op->u.claim.ret[i]))
            return false;
    }
    return true;
}

static bool scene_detours(sim *s) {
    if (!enqueue(s, S("{}")))
        return false;
    ew__store_request *op = claim(s, 1);
    if (op == NULL || !insist(s, change_op(s, &op->u.claim.ret[0], EW__JOB_RETRYING)))
        return false;
    op = claim(s, 1);
    if (op == NULL || !insist(s, change_op(s, &op->u.claim.ret[0], EW__JOB_FAILED)))
        return false;
    op = op_new(s, EW__OP_REQUEUE);
    op->u.requeue = (ew__op_requeue){.id = S("j0"), .now = now(s)};
    if (!insist(s, op))
        return false;
    op = claim(s, 1);
    return op != NULL && complete(s, &op->u.claim.ret[0]);
}

static bool scene_lease(sim *s) {
    if (!enqueue(s, S("{}")))
        return false;
    ew__store_request *op = claim(s, 1);
    if (op == NULL)
        return false;
    ew__job job = op->u.claim.ret[0];
    ew__lease lease = {.id = job.id, .epoch = job.epoch};
    op = op_new(s, EW__OP_RENEW);
    op->u.renew = (ew__op_renew){
        .worker = S("w"), .record = S("{}"), .ttl_ms = 1000, .lease_ms = LEASE_MS, .leases = &lease, .n_leases = 1};
    if (!insist(s, op))
        return false;
    assert_int_equal(lease.ret, EW__LEASE_HELD);
    place_sleep(&s->place, LEASE_MS + 1);
    op = op_new(s, EW__OP_EXPIRED);
    op->u.expired.max = 5;
    if (!insist(s, op))
        return false;
    assert_int_equal(op->u.expired.ret_n, 1);
    op = change_op(s, &op->u.expired.ret[0], EW__JOB_PENDING);
    op->u.change.claim = EW__CLAIM_LOST;
    if (!insist(s, op) || (op = claim(s, 1)) == NULL)
        return false;
    ew__store_request *late = change_op(s, &job, EW__JOB_COMPLETED);
    if (!insist(s, late))
        return false;
    assert_int_equal(late->err, EW_ESTALE);
    return complete(s, &op->u.claim.ret[0]);
}

static bool scene_dedup(sim *s) {
    for (int i = 0; i < 6; i++) {
        ew__store_request *op = enqueue_op(s, S("{}"));
        op->u.enqueue.dedup = i % 2 == 0 ? EW__DEDUP_UNIQUE : EW__DEDUP_DEBOUNCE;
        op->u.enqueue.key = S("k");
        op->u.enqueue.key_ttl_ms = 1000;
        if (!insist(s, op))
            return false;
        note_enqueued(s, op);
    }
    return true;
}

static bool scene_sweep(sim *s) {
    if (!scene_life(s))
        return false;
    for (size_t i = 0; i < s->n_jobs; i++)
        s->jobs[i].enqueued = s->jobs[i].ended > 1; /* they may go now */
    place_sleep(&s->place, 5000);
    ew__store_request *op = op_new(s, EW__OP_SWEEP);
    op->u.sweep = (ew__op_sweep){.now = now(s), .max = 100};
    return insist(s, op) && enqueue(s, S("{}"));
}

static bool scene_large(sim *s) {
    for (int i = 0; i < 3; i++) {
        if (!enqueue(s, params_of(s, 60000)))
            return false;
    }
    ew__store_request *op = claim(s, 3);
    return op != NULL && complete(s, &op->u.claim.ret[0]);
}

/* The log is copied into the file, while there is a reader, and begun anew. */
static bool scene_checkpoint(sim *s) {
    for (int i = 0; i < 9; i++) {
        if (!enqueue(s, params_of(s, 2 << 20)))
            return false;
    }
    return scene_life(s);
}

static bool scene_look(sim *s) {
    if (!scene_batch(s))
        return false;
    ew__store_request *ops[] = {op_new(s, EW__OP_LIST), op_new(s, EW__OP_QUEUES), op_new(s, EW__OP_WORKERS)};
    ops[0]->u.list = (ew__op_list){.status = EW__JOB_STATUSES, .limit = 100};
    ops[1]->u.queues.counts = true;
    for (size_t i = 0; i < 3; i++) {
        if (!insist(s, ops[i]))
            return false;
    }
    assert_int_equal(ops[0]->u.list.ret_n, 12);
    assert_int_equal(ops[1]->u.queues.ret_n, 1);
    return true;
}

/* ---- the end of all of them ---- */

static void open_backend(sim *s) {
    char problem[200];
    if (ew__jobs_sqlite(&s->place.env, s->place.path, &s->backend, problem, sizeof problem) != EW_OK)
        fail_msg("%s", problem);
}

static void close_backend(sim *s) {
    if (s->backend != NULL)
        s->backend->ops->free(s->backend);
    s->backend = NULL;
}

static void must(sim *s, ew__store_request *op) {
    if (!run(s, op))
        fail_msg("operation %d: %s: %s", (int)op->kind, ew_err_name(op->err), op->problem);
}

static void give_back_lost(sim *s) {
    place_sleep(&s->place, LEASE_MS + 1);
    ew__store_request *op = op_new(s, EW__OP_EXPIRED);
    op->u.expired.max = 100;
    must(s, op);
    for (size_t i = 0; i < op->u.expired.ret_n; i++) {
        ew__store_request *back = change_op(s, &op->u.expired.ret[i], EW__JOB_PENDING);
        back->u.change.claim = EW__CLAIM_LOST;
        must(s, back);
        assert_int_equal(back->err, EW_OK);
    }
}

/* Everything that is there is done now, without a single failure; and what was promised is there. */
static void finish(sim *s) {
    give_back_lost(s);
    for (ew__store_request *op; (op = claim(s, 50)) != NULL;) {
        for (size_t i = 0; i < op->u.claim.ret_n; i++)
            assert_true(complete(s, &op->u.claim.ret[i]));
    }
    assert_int_equal(s->troubles, 0);
    for (size_t i = 0; i < s->n_jobs; i++) {
        const known *k = &s->jobs[i];
        ew__store_request *op = op_new(s, EW__OP_GET);
        op->u.get.id = S(k->id);
        must(s, op);
        assert_true(k->ended <= 1);
        if (!k->enqueued)
            continue;
        if (op->err != EW_OK)
            fail_msg("%s was acknowledged, and is lost", k->id);
        if (op->u.get.ret.status == EW__JOB_COMPLETED && k->ended == 1)
            assert_text(op->u.get.ret.result, k->result);
        else
            assert_true(ew__job_is_final(op->u.get.ret.status) && k->ended == 0);
    }
}

typedef struct scene {
    const char *name;
    bool (*play)(sim *s);
    uint64_t stride; /* in a short run: not every call */
} scene;

static const scene scenes[] = {
    {"enqueue", scene_enqueue, 2}, {"batch", scene_batch, 3},  {"life", scene_life, 5},
    {"detours", scene_detours, 7}, {"lease", scene_lease, 7},  {"dedup", scene_dedup, 7},
    {"sweep", scene_sweep, 11},    {"large", scene_large, 13}, {"checkpoint", scene_checkpoint, 9973},
    {"look", scene_look, 5},
};

static uint64_t stride_of(const scene *one) {
    const char *all = getenv("EW_FAULTS");
    return all != NULL && strcmp(all, "all") == 0 ? (one->stride > 100 ? 97 : 1) : one->stride;
}

static void begin(sim *s) {
    place_clear(&s->place);
    ew__arena_init(&s->arena, ew_env_default(), NULL, 0);
    ew__arena_init(&s->answer, &s->place.env, NULL, 0);
    memset(s->jobs, 0, sizeof s->jobs);
    s->n_jobs = s->troubles = 0;
    s->backend = NULL;
}

static void end(sim *s) {
    s->troubles = 0;
    finish(s);
    close_backend(s);
    assert_true(place_is_sound(&s->place));
    open_backend(s);
    finish(s);
    close_backend(s);
    ew__arena_done(&s->answer);
    ew__arena_done(&s->arena);
}

/* False: the fault came too late to hit anything. */
static bool play_with_fault(sim *s, const scene *one, fault_kind kind, uint64_t n, bool on) {
    begin(s);
    open_backend(s);
    fault_vfs_set(kind, n, on);
    bool good = one->play(s), was_hit = fault_vfs_hits() > 0;
    fault_vfs_set(FAULT_NONE, 0, false);
    assert_true(good || was_hit);
    end(s);
    return was_hit;
}

static void play_all(sim *s, fault_kind kind, bool on) {
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        uint64_t n = 1, stride = stride_of(&scenes[i]) * (kind == FAULT_MEMORY ? 13 : 1), runs = 1;
        for (; play_with_fault(s, &scenes[i], kind, n, on); runs++)
            n += stride;
        print_message("  %s: %llu calls, %llu runs\n", scenes[i].name, (unsigned long long)n, (unsigned long long)runs);
    }
}

static void test_store_faults__io_once(void **state) { play_all(*state, FAULT_IO, false); }
static void test_store_faults__io_from_then_on(void **state) { play_all(*state, FAULT_IO, true); }
static void test_store_faults__full_once(void **state) { play_all(*state, FAULT_FULL, false); }
static void test_store_faults__full_from_then_on(void **state) { play_all(*state, FAULT_FULL, true); }

static void test_store_faults__memory_once(void **state) { play_all(*state, FAULT_MEMORY, false); }
static void test_store_faults__memory_from_then_on(void **state) { play_all(*state, FAULT_MEMORY, true); }

/* ---- opening ---- */

static bool open_with_fault(sim *s, fault_kind kind, uint64_t n, bool on) {
    char problem[200] = "";
    fault_vfs_set(kind, n, on);
    ew_err err = ew__jobs_sqlite(&s->place.env, s->place.path, &s->backend, problem, sizeof problem);
    bool was_hit = fault_vfs_hits() > 0;
    fault_vfs_set(FAULT_NONE, 0, false);
    assert_true(err == EW_OK || was_hit);
    if (err != EW_OK) {
        assert_true(is_trouble(err));
        assert_true(err == EW_ENOMEM || strstr(problem, s->place.path) == problem);
        assert_null(s->backend);
        open_backend(s);
    }
    return was_hit;
}

/* A new file, and one with a log that somebody has left behind. */
static void test_store_faults__opening(void **state) {
    sim *s = *state;
    for (int mode = 0; mode < 8; mode++) {
        bool on = mode % 2 == 1, old = mode / 2 % 2 == 1, more = true;
        fault_kind kind = mode < 4 ? FAULT_IO : FAULT_MEMORY;
        for (uint64_t n = 1; more; n += kind == FAULT_MEMORY ? 37 : 2) {
            begin(s);
            if (old) {
                open_backend(s);
                assert_true(scene_batch(s));
                ew__backend *left = s->backend; /* so that the log stays */
                more = open_with_fault(s, kind, n, on);
                left->ops->free(left);
            } else {
                more = open_with_fault(s, kind, n, on);
            }
            assert_true(scene_life(s));
            end(s);
        }
    }
}

/* ---- power loss ---- */

static bool lose_power(sim *s, const scene *one, uint64_t n, fault_loss loss) {
    char path[sizeof s->place.path];
    begin(s);
    fault_vfs_remember();
    open_backend(s);
    fault_vfs_set(FAULT_IO, n, true);
    (void)one->play(s);
    bool was_hit = fault_vfs_hits() > 0;
    close_backend(s); /* nothing of that reaches the disk */
    memcpy(path, s->place.path, sizeof path);
    (void)snprintf(s->place.path, sizeof s->place.path, "%s/after.db", s->place.folder);
    place_clear(&s->place);
    fault_vfs_lose(path, s->place.path, loss, n);
    fault_vfs_set(FAULT_NONE, 0, false);
    assert_true(place_is_sound(&s->place));
    open_backend(s);
    end(s);
    place_clear(&s->place);
    memcpy(s->place.path, path, sizeof path);
    return was_hit;
}

static void test_store_faults__power_loss(void **state) {
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        uint64_t n = 1, stride = stride_of(&scenes[i]);
        for (int turn = 0; lose_power(*state, &scenes[i], n, (fault_loss)(turn % LOSS_KINDS)); turn++)
            n += (turn + 1) % LOSS_KINDS == 0 ? stride : 0; /* each point in all ways */
    }
}

static int setup(void **state) {
    sim *s = calloc(1, sizeof *s);
    assert_non_null(s);
    place_make(&s->place);
    s->place.env.alloc = fault_alloc;
    fault_vfs_use(true);
    *state = s;
    return 0;
}

static int teardown(void **state) {
    sim *s = *state;
    fault_vfs_set(FAULT_NONE, 0, false);
    close_backend(s);
    fault_vfs_use(false);
    place_remove(&s->place);
    free(s);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_store_faults__opening, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_faults__io_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_faults__io_from_then_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_faults__full_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_faults__full_from_then_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_faults__memory_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_faults__memory_from_then_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_faults__power_loss, setup, teardown),
    };
    fault_memory_use();
    return cmocka_run_group_tests_name("store_sqlite_faults", tests, NULL, NULL);
}
