/*
 * bench/jobs/bench_jobs.c: what durable jobs cost in SQLite. 16 producers enqueue and wait for each acknowledgement,
 * one worker claims and completes; beside it, in the same round, plain commits of SQLite with the same durability (WAL,
 * synchronous=FULL, one small row each). Prints jobs per plain commit. Then the time of a claim with 1,000 and with
 * many jobs in the queue, and of the counts that people look at.
 *
 *     bench_jobs [ROUNDS] [JOBS] [QUEUED] [FOLDER]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/thread.h"
#include "store/jobs.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PRODUCERS 16
#define ROUNDS_MAX 99
#define CLAIM_MAX 64
#define SAMPLES 300

static char path[200];

static void die(const char *what) {
    (void)fprintf(stderr, "bench_jobs: %s\n", what);
    exit(1);
}

static double now_s(void) { return (double)ew_env_default()->now_ns(NULL) / 1e9; }
static int64_t wall(void) { return (int64_t)ew_env_default()->wall_ms(NULL); }

static void remove_files(void) {
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[220];
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, ends[i]);
        (void)unlink(name);
    }
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, by_size);
    return values[n / 2];
}

/* ---- plain commits ---- */

static void sql(sqlite3 *db, const char *text) {
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(db));
}

static double plain_commits(unsigned n) {
    sqlite3 *db = NULL;
    sqlite3_stmt *insert = NULL;
    static const char text[200] = "";
    remove_files();
    if (sqlite3_open(path, &db) != SQLITE_OK)
        die("the file cannot be made");
    sql(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(id INTEGER PRIMARY KEY, text BLOB)");
    if (sqlite3_prepare_v2(db, "INSERT INTO t(text) VALUES(?1)", -1, &insert, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(db));
    double begin = now_s();
    for (unsigned i = 0; i < n; i++) {
        (void)sqlite3_bind_blob(insert, 1, text, sizeof text, SQLITE_STATIC);
        if (sqlite3_step(insert) != SQLITE_DONE)
            die(sqlite3_errmsg(db));
        (void)sqlite3_reset(insert);
    }
    double rate = n / (now_s() - begin);
    (void)sqlite3_finalize(insert);
    (void)sqlite3_close(db);
    return rate;
}

/* ---- jobs ---- */

typedef struct producer {
    ew__store *store;
    unsigned number, n;
} producer;

static void enqueue(ew__store *store, unsigned producer_number, unsigned i, int64_t run_at) {
    char id[40];
    (void)snprintf(id, sizeof id, "%08x-%u-job-%08x", i * 2654435761u, producer_number, i);
    ew__arena arena;
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    ew__store_request op = {.kind = EW__OP_ENQUEUE, .arena = &arena};
    op.u.enqueue.job = (ew__job){.id = ew_str_from(id),
                                 .function = EW_STR("echo"),
                                 .queue = EW_STR("default"),
                                 .params = EW_STR("{\"text\":\"a few words that somebody wants to have done\"}"),
                                 .enqueued_at = wall(),
                                 .run_at = run_at,
                                 .timeout_ms = 300000,
                                 .result_ttl_ms = 86400000,
                                 .max_retries = 5};
    if (ew__store_do(store, &op) != EW_OK)
        die(op.problem);
    ew__arena_done(&arena);
}

static void *produce(void *arg) {
    producer *p = arg;
    for (unsigned i = 0; i < p->n; i++)
        enqueue(p->store, p->number, i, wall());
    return NULL;
}

/* A worker that is told what changes, claims what there is and ends all of it; the ends of a claim go out together. */
typedef struct worker {
    ew__store_owner owner;
    ew__store *store;
    ew__watcher watcher;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool hint;
    unsigned open, done;
} worker;

static void on_changed(ew__watcher *watcher, unsigned what) {
    worker *w = watcher->ud;
    (void)what;
    pthread_mutex_lock(&w->lock);
    w->hint = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

static void on_end(ew__store_request *op) {
    worker *w = ew__container_of(op->owner, worker, owner);
    if (op->err != EW_OK)
        die(op->problem);
    pthread_mutex_lock(&w->lock);
    w->done++;
    w->open--;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
    ew__free(ew_env_default(), op, sizeof *op);
}

static void complete(worker *w, const ew__job *job) {
    ew__store_request *op = ew__zalloc(ew_env_default(), sizeof *op);
    if (op == NULL)
        die("no memory");
    op->kind = EW__OP_CHANGE;
    op->done = on_end;
    op->owner = &w->owner;
    op->u.change = (ew__op_change){.id = job->id,
                                   .queue = job->queue,
                                   .worker = EW_STR("w"),
                                   .epoch = job->epoch,
                                   .status = EW__JOB_COMPLETED,
                                   .now = wall(),
                                   .result = EW_STR("{\"ok\":true}"),
                                   .result_ttl_ms = job->result_ttl_ms};
    pthread_mutex_lock(&w->lock);
    w->open++;
    pthread_mutex_unlock(&w->lock);
    w->store->ops->submit(w->store, op);
}

static size_t claim(ew__store *store, ew__arena *arena, uint32_t max, ew__job **ret) {
    ew__claim_queue queue = {EW_STR("default"), max};
    ew__store_request op = {.kind = EW__OP_CLAIM, .arena = arena};
    op.u.claim = (ew__op_claim){
        .worker = EW_STR("w"), .queues = &queue, .n_queues = 1, .max = max, .now = wall() + 1, .lease_ms = 15000};
    if (ew__store_do(store, &op) != EW_OK)
        die(op.problem);
    *ret = op.u.claim.ret;
    return op.u.claim.ret_n;
}

static void work(worker *w, unsigned n) {
    while (w->done < n) {
        ew__arena arena;
        ew__job *jobs;
        ew__arena_init(&arena, ew_env_default(), NULL, 0);
        pthread_mutex_lock(&w->lock);
        w->hint = false;
        pthread_mutex_unlock(&w->lock);
        size_t got = claim(w->store, &arena, CLAIM_MAX, &jobs);
        for (size_t i = 0; i < got; i++)
            complete(w, &jobs[i]);
        pthread_mutex_lock(&w->lock);
        while (w->open > 0) /* the jobs lie in the arena */
            pthread_cond_wait(&w->cond, &w->lock);
        while (got == 0 && !w->hint && w->done < n)
            pthread_cond_wait(&w->cond, &w->lock);
        pthread_mutex_unlock(&w->lock);
        ew__arena_done(&arena);
    }
}

static ew__store *open_store(void) {
    char spec[220], problem[200] = "";
    ew__store *store = NULL;
    (void)snprintf(spec, sizeof spec, "sqlite:%s", path);
    if (ew__jobs_open(ew_env_default(), spec, &store, problem, sizeof problem) != EW_OK)
        die(problem);
    return store;
}

static double jobs_done(unsigned n) {
    producer producers[PRODUCERS];
    pthread_t threads[PRODUCERS];
    worker w = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    remove_files();
    w.store = open_store();
    w.watcher = (ew__watcher){.want = EW__CHANGED_QUEUES, .changed = on_changed, .ud = &w};
    w.store->ops->watch(w.store, &w.watcher, true);
    double begin = now_s();
    for (unsigned i = 0; i < PRODUCERS; i++) {
        producers[i] = (producer){.store = w.store, .number = i, .n = n / PRODUCERS};
        if (!ew__thread_start(&threads[i], produce, &producers[i]))
            die("no thread");
    }
    work(&w, n / PRODUCERS * PRODUCERS);
    double rate = n / PRODUCERS * PRODUCERS / (now_s() - begin);
    for (unsigned i = 0; i < PRODUCERS; i++)
        (void)pthread_join(threads[i], NULL);
    w.store->ops->watch(w.store, &w.watcher, false);
    w.store->ops->free(w.store);
    return rate;
}

/* ---- a long queue ---- */

static void *fill(void *arg) {
    producer *p = arg;
    for (unsigned i = 0; i < p->n; i++)
        enqueue(p->store, p->number, i, wall() - 1000000 + i);
    return NULL;
}

static void fill_up(ew__store *store, unsigned from, unsigned to) {
    enum { THREADS = 64 }; /* so that many of them share a flush */
    static producer producers[THREADS];
    static unsigned number = 1000;
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        producers[i] = (producer){.store = store, .number = number++, .n = (to - from) / THREADS};
        if (!ew__thread_start(&threads[i], fill, &producers[i]))
            die("no thread");
    }
    for (unsigned i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
}

static double claim_us(ew__store *store) {
    ew__arena arena;
    ew__job *jobs;
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    double begin = now_s();
    if (claim(store, &arena, 1, &jobs) != 1)
        die("nothing to claim");
    double us = (now_s() - begin) * 1e6;
    ew__arena_done(&arena);
    return us;
}

/* Claims from both in turn, so that the same neighbours disturb both. */
static void compare_claims(ew__store *few, ew__store *many, unsigned queued) {
    double times[2][SAMPLES];
    for (size_t i = 0; i < SAMPLES; i++) {
        times[0][i] = claim_us(few);
        times[1][i] = claim_us(many);
    }
    double a = median(times[0], SAMPLES), b = median(times[1], SAMPLES);
    (void)printf("claim of one job, durable: %.0f us with 1,000 queued, %.0f us with %u: %.2f (wanted 2 at most)\n", a,
                 b, queued, b / a);
}

static double queues_ms(ew__store *store, bool counts) {
    ew__arena arena;
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    ew__store_request op = {.kind = EW__OP_QUEUES, .arena = &arena};
    op.u.queues.counts = counts;
    double begin = now_s();
    if (ew__store_do(store, &op) != EW_OK)
        die(op.problem);
    double ms = (now_s() - begin) * 1e3;
    ew__arena_done(&arena);
    return ms;
}

static void long_queue(unsigned queued) {
    char large[sizeof path];
    remove_files();
    ew__store *few = open_store();
    fill_up(few, 0, 1024);
    memcpy(large, path, sizeof large);
    (void)snprintf(path, sizeof path, "%.180s.large", large);
    ew__store *many = open_store();
    fill_up(many, 0, queued);
    compare_claims(few, many, queued);
    (void)printf("with %u queued: queue list %.1f ms, queue stats %.1f ms\n", queued, queues_ms(many, false),
                 queues_ms(many, true));
    many->ops->free(many);
    double begin = now_s();
    many = open_store();
    (void)printf("opened again in %.0f ms%s%s\n", (now_s() - begin) * 1e3,
                 many->ops->notice(many)[0] != '\0' ? "; " : "", many->ops->notice(many));
    many->ops->free(many);
    remove_files();
    memcpy(path, large, sizeof path);
    few->ops->free(few);
}

/* ---- two connections ---- */

/* From the acknowledgement of an enqueue to the hint at a store of another connection. */
static double hint_ms(void) {
    double times[SAMPLES];
    worker w = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    remove_files();
    ew__store *other = open_store();
    w.store = open_store();
    w.watcher = (ew__watcher){.want = EW__CHANGED_QUEUES, .changed = on_changed, .ud = &w};
    w.store->ops->watch(w.store, &w.watcher, true);
    for (unsigned i = 0; i < SAMPLES; i++) {
        (void)usleep(15000 + i % 7 * 1000); /* let it become idle */
        pthread_mutex_lock(&w.lock);
        w.hint = false;
        pthread_mutex_unlock(&w.lock);
        enqueue(other, 1, i, wall());
        double begin = now_s();
        pthread_mutex_lock(&w.lock);
        while (!w.hint)
            pthread_cond_wait(&w.cond, &w.lock);
        pthread_mutex_unlock(&w.lock);
        times[i] = (now_s() - begin) * 1e3;
    }
    w.store->ops->watch(w.store, &w.watcher, false);
    w.store->ops->free(w.store);
    other->ops->free(other);
    return median(times, SAMPLES);
}

static unsigned number_at(int argc, char **argv, int at, unsigned usual) {
    uint64_t number = usual;
    if (argc > at && !ew__u64_parse(ew_str_from(argv[at]), &number))
        die("bench_jobs [ROUNDS] [JOBS] [QUEUED] [FOLDER]");
    return (unsigned)number;
}

int main(int argc, char **argv) {
    double ratios[ROUNDS_MAX];
    unsigned rounds = number_at(argc, argv, 1, 5), jobs = number_at(argc, argv, 2, 8000);
    unsigned queued = number_at(argc, argv, 3, 1000000);
    rounds = rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    (void)snprintf(path, sizeof path, "%.150s/bench_jobs.%ld.db", argc > 4 ? argv[4] : "/tmp", (long)getpid());
    for (unsigned i = 0; i < rounds; i++) {
        double plain = plain_commits(jobs / 4), done = jobs_done(jobs);
        ratios[i] = done / plain;
        (void)printf("plain commits %.0f/s, jobs from enqueue to done %.0f/s: %.2f\n", plain, done, ratios[i]);
    }
    if (rounds > 0)
        (void)printf("jobs per plain commit: %.2f (wanted 0.6)\n", median(ratios, rounds));
    (void)printf("from an enqueue to the hint at another connection: %.2f ms (median)\n", hint_ms());
    if (queued > 0)
        long_queue(queued);
    remove_files();
    return 0;
}
