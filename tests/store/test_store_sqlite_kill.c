/*
 * tests/store/test_store_sqlite_kill.c: processes that share one file and are killed at random. Each notes in a file of
 * its own what the store has acknowledged; in the end all of that must be so, once.
 *
 * EW_KILLS: how many (30). The program starts itself again as a worker: test_store_sqlite_kill --worker FOLDER NUMBER.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite_place.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 2, LEASE_MS = 250 };

/* ---- a worker ---- */

typedef struct worker {
    ew__store *store;
    char name[32];
    int log; /* -1: none */
    ew__arena arena;
    unsigned n;
    bool failed;
} worker;

static int64_t now_ms(void) { return (int64_t)ew_env_default()->wall_ms(NULL); }

static bool do_op(worker *w, ew__store_request *op) {
    op->arena = &w->arena;
    ew_err err = ew__store_do(w->store, op);
    if (err != EW_OK && err != EW_ESTALE && err != EW_EBUSY) {
        (void)fprintf(stderr, "%s: operation %d: %s: %s\n", w->name, (int)op->kind, ew_err_name(err), op->problem);
        w->failed = true;
    }
    return err == EW_OK;
}

/* One line, in one write: what was acknowledged before a kill is in the file, or nobody knows of it. */
static void note(const worker *w, const char *what, ew_str id, uint64_t epoch) {
    char line[96];
    int n = snprintf(line, sizeof line, "%s %.*s %llu\n", what, (int)id.len, id.ptr, (unsigned long long)epoch);
    if (w->log >= 0 && write(w->log, line, (size_t)n) != n)
        abort();
}

static void produce(worker *w) {
    char id[64];
    (void)snprintf(id, sizeof id, "%s-%u", w->name, w->n++);
    ew__store_request op = {.kind = EW__OP_ENQUEUE};
    op.u.enqueue.job = (ew__job){.id = S(id),
                                 .function = S("f"),
                                 .queue = S("q"),
                                 .params = S("{}"),
                                 .enqueued_at = now_ms(),
                                 .run_at = now_ms(),
                                 .timeout_ms = 1000,
                                 .max_retries = 3};
    if (do_op(w, &op) && op.u.enqueue.ret == EW__ENQUEUED_NEW)
        note(w, "enqueued", S(id), 0);
}

static void end_job(worker *w, const ew__job *job, bool retry) {
    char result[96];
    (void)snprintf(result, sizeof result, "{\"epoch\":%llu}", (unsigned long long)job->epoch);
    ew__store_request op = {.kind = EW__OP_CHANGE};
    op.u.change = (ew__op_change){.id = job->id,
                                  .queue = job->queue,
                                  .worker = job->worker,
                                  .epoch = job->epoch,
                                  .status = retry ? EW__JOB_RETRYING : EW__JOB_COMPLETED,
                                  .run_at = now_ms(),
                                  .now = now_ms(),
                                  .result = S(result),
                                  .retries = job->retries + retry,
                                  .lost = job->lost};
    if (do_op(w, &op) && !retry)
        note(w, "completed", job->id, job->epoch);
}

/* How many there were. */
static size_t consume(worker *w) {
    ew__claim_queue queue = {.name = S("q"), .max = 3};
    ew__store_request op = {.kind = EW__OP_CLAIM};
    op.u.claim = (ew__op_claim){
        .worker = S(w->name), .queues = &queue, .n_queues = 1, .max = 3, .now = now_ms() + 1, .lease_ms = LEASE_MS};
    if (!do_op(w, &op))
        return 0;
    for (size_t i = 0; i < op.u.claim.ret_n; i++)
        end_job(w, &op.u.claim.ret[i], w->n % 7 == 0 && op.u.claim.ret[i].retries == 0);
    return op.u.claim.ret_n;
}

static size_t take_up_lost(worker *w) {
    ew__store_request op = {.kind = EW__OP_EXPIRED};
    op.u.expired = (ew__op_expired){.now = now_ms(), .max = 100};
    if (!do_op(w, &op))
        return 0;
    for (size_t i = 0; i < op.u.expired.ret_n; i++) {
        const ew__job *job = &op.u.expired.ret[i];
        ew__store_request back = {.kind = EW__OP_CHANGE};
        back.u.change = (ew__op_change){.id = job->id,
                                        .queue = job->queue,
                                        .worker = job->worker,
                                        .epoch = job->epoch,
                                        .claim = EW__CLAIM_LOST,
                                        .status = EW__JOB_PENDING,
                                        .run_at = now_ms(),
                                        .now = now_ms(),
                                        .retries = job->retries,
                                        .lost = job->lost + 1};
        (void)do_op(w, &back);
    }
    return op.u.expired.ret_n;
}

static void turn(worker *w, bool produces) {
    ew__arena_init(&w->arena, ew_env_default(), NULL, 0);
    if (produces)
        produce(w);
    (void)consume(w);
    (void)take_up_lost(w);
    ew__arena_done(&w->arena);
}

static int run_worker(const char *folder, const char *number) {
    char path[128], problem[200] = "";
    worker w = {.n = 0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(w.name, sizeof w.name, "w%.20s", number);
    (void)snprintf(path, sizeof path, "%s/%s.log", folder, w.name);
    w.log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    (void)snprintf(path, sizeof path, "sqlite:%s/jobs.db", folder);
    if (ew__jobs_open(ew_env_default(), path, &w.store, problem, sizeof problem) != EW_OK) {
        (void)fprintf(stderr, "%s: %s\n", w.name, problem);
        return 3;
    }
    int64_t until = now_ms() + 60000; /* should nobody kill us */
    while (!w.failed && now_ms() < until)
        turn(&w, true);
    return w.failed ? 4 : 0;
}

/* ---- those who kill ---- */

static pid_t start_worker(const place *p, unsigned number) {
    char text[16];
    (void)snprintf(text, sizeof text, "%u", number);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl("/proc/self/exe", "test_store_sqlite_kill", "--worker", p->folder, text, (char *)NULL);
        _exit(9);
    }
    assert_true(pid > 0);
    return pid;
}

static void kill_worker(pid_t pid) {
    int status = 0;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status))
        fail_msg("a worker ended by itself: %d", WEXITSTATUS(status));
}

typedef struct tally {
    size_t enqueued, completed;
} tally;

/* What the notes of one worker say must be so. */
static void check_notes(worker *w, const place *p, unsigned number, tally *sum) {
    char path[128], line[128], what[16], id[64];
    unsigned long long epoch;
    (void)snprintf(path, sizeof path, "%s/w%u.log", p->folder, number);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return; /* it was killed before it could open it */
    while (fgets(line, sizeof line, file) != NULL) {
        assert_int_equal(sscanf(line, "%15s %63s %llu", what, id, &epoch), 3);
        ew__arena_init(&w->arena, ew_env_default(), NULL, 0);
        ew__store_request op = {.kind = EW__OP_GET, .arena = &w->arena};
        op.u.get.id = S(id);
        if (ew__store_do(w->store, &op) != EW_OK)
            fail_msg("%s was %s, and is not there", id, what);
        assert_int_equal(op.u.get.ret.status, EW__JOB_COMPLETED);
        char result[64];
        bool completed = strcmp(what, "completed") == 0;
        (void)snprintf(result, sizeof result, "{\"epoch\":%llu}",
                       completed ? epoch : (unsigned long long)op.u.get.ret.epoch);
        assert_text(op.u.get.ret.result, result); /* the one end that was acknowledged, of the last claim */
        sum->completed += completed;
        sum->enqueued += !completed;
        ew__arena_done(&w->arena);
    }
    (void)fclose(file);
    (void)unlink(path);
}

static void finish_all(worker *w) {
    size_t left = 1;
    for (int i = 0; i < 2000 && left > 0; i++) {
        turn(w, false);
        ew__arena_init(&w->arena, ew_env_default(), NULL, 0);
        ew__store_request op = {.kind = EW__OP_QUEUES, .arena = &w->arena};
        op.u.queues.counts = true;
        assert_int_equal(ew__store_do(w->store, &op), EW_OK);
        left = 0;
        for (size_t k = 0; k < op.u.queues.ret_n; k++)
            left += op.u.queues.ret[k].pending + op.u.queues.ret[k].active;
        ew__arena_done(&w->arena);
        if (left > 0)
            (void)poll(NULL, 0, 10);
    }
    assert_int_equal(left, 0);
    assert_false(w->failed);
}

static void test_store_kill__nothing_is_lost(void **state) {
    (void)state;
    place p;
    pid_t pids[WORKERS];
    unsigned started = 0, kills = 30;
    const char *wanted = getenv("EW_KILLS");
    uint64_t chance = 1;
    ew_env_default()->random(NULL, &chance, sizeof chance);
    if (wanted != NULL)
        kills = (unsigned)strtoul(wanted, NULL, 10);
    place_make(&p);
    for (unsigned i = 0; i < WORKERS; i++)
        pids[i] = start_worker(&p, started++);
    for (unsigned i = 0; i < kills; i++) {
        chance = chance * 6364136223846793005u + 1442695040888963407u;
        (void)poll(NULL, 0, (int)(chance >> 33) % 80);
        unsigned which = (unsigned)(chance >> 60) % WORKERS;
        kill_worker(pids[which]);
        pids[which] = start_worker(&p, started++);
    }
    (void)poll(NULL, 0, 300); /* so that there was something even on a slow machine */
    for (unsigned i = 0; i < WORKERS; i++)
        kill_worker(pids[i]);
    worker w = {.name = "last", .log = -1};
    assert_int_equal(ew__jobs_open(ew_env_default(), p.spec, &w.store, NULL, 0), EW_OK);
    finish_all(&w);
    tally sum = {0, 0};
    for (unsigned i = 0; i < started; i++)
        check_notes(&w, &p, i, &sum);
    w.store->ops->free(w.store);
    print_message("  %u kills: %zu enqueued, %zu completed before the end\n", kills + WORKERS, sum.enqueued,
                  sum.completed);
    assert_true(sum.enqueued > 0);
    assert_int_equal(place_number(&p, "SELECT count(*) FROM jobs WHERE status<>3"), 0);
    assert_true(place_is_sound(&p));
    place_remove(&p);
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "--worker") == 0)
        return run_worker(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_store_kill__nothing_is_lost)};
    return cmocka_run_group_tests_name("store_sqlite_kill", tests, NULL, NULL);
}
