/*
 * cli/bench_run.c: the course of a run of everywire bench: the first call alone, the warm-up, the measured time, the
 * end. The calls are made in bench_lane.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench_lane.h"
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS ((uint64_t)100 * EW__BENCH_MS) /* how often those that rest are tried again */
#define LIVE_NS ((uint64_t)240 * EW__BENCH_MS)
#define DRAIN_CLOSED_MS 1000
#define DRAIN_OPEN_MS 2000
#define LOST_MS 5000 /* without any answer, when it is the number of calls that ends the run */
#define NEVER UINT64_MAX

static double cpu_seconds(void) {
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void *pace(void *arg) {
    ew__bench_course *r = arg;
    while (!atomic_load(&r->stopping)) {
        uint64_t until = ew__bench_now() + (uint64_t)10 * EW__BENCH_MS;
        for (unsigned i = 0; i < r->plan->clients; i++) {
            ew__bench_begin_idle(&r->lanes[i], &until);
        }
        struct timespec at = {.tv_sec = (time_t)(until / EW__BENCH_NS), .tv_nsec = (long)(until % EW__BENCH_NS)};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
    return NULL;
}

static void close_lanes(ew__bench_course *r) {
    for (unsigned i = 0; i < r->plan->clients; i++) {
        ew__bench_lane_close(&r->lanes[i]);
    }
    ew__cli_free(r->lanes, r->plan->clients * sizeof *r->lanes);
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->lock);
}

static int open_lanes(ew__bench_course *r) {
    ew__bench_plan *plan = r->plan;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < plan->links + 64) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    pthread_condattr_t clock;
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&r->changed, &clock);
    (void)pthread_condattr_destroy(&clock);
    (void)pthread_mutex_init(&r->lock, NULL);
    r->lanes = ew__cli_alloc(plan->clients * sizeof *r->lanes);
    if (!r->lanes) {
        plan->clients = 0;
        return EW__EXIT_FAILED;
    }
    for (unsigned i = 0; i < plan->clients; i++) {
        (void)pthread_mutex_init(&r->lanes[i].lock, NULL);
    }
    int code = 0;
    for (unsigned i = 0; i < plan->clients && code == 0; i++) {
        code = ew__bench_lane_open(r, i);
    }
    return code;
}

/* Waits until then, or until something has changed. Whether the user wants it to end. */
static bool wait_until(ew__bench_course *r, uint64_t until) {
    struct timespec at = {.tv_sec = (time_t)(until / EW__BENCH_NS), .tv_nsec = (long)(until % EW__BENCH_NS)};
    (void)pthread_mutex_lock(&r->lock);
    if (!r->interrupted) {
        (void)pthread_cond_timedwait(&r->changed, &r->lock, &at);
    }
    bool interrupted = r->interrupted;
    (void)pthread_mutex_unlock(&r->lock);
    return interrupted;
}

static void on_signal(void *ud) {
    ew__bench_course *r = ud;
    (void)pthread_mutex_lock(&r->lock);
    r->interrupted = true;
    (void)pthread_cond_signal(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

static ew_traffic traffic(const ew__bench_course *r) {
    ew_traffic all = {0}, one;
    for (unsigned i = 0; i < r->plan->clients; i++) {
        ew_client_traffic(r->lanes[i].client, &one);
        all.bytes_in += one.bytes_in;
        all.bytes_out += one.bytes_out;
        all.connections += one.connections;
    }
    return all;
}

/* ---- the course of it ---- */

/*
 * The first call goes alone: a peer that is not there, or cannot be asked that, is told of at once. -1: go on; else
 * the exit code.
 */
static int probe(ew__bench_course *r) {
    ew__bench_plan *plan = r->plan;
    ew__bench_result *result = r->result;
    ew__bench_lane *l = &r->lanes[0];
    ew__bench_slot *s = l->idle;
    l->idle = s->next;
    atomic_store(&r->probing, true);
    s->ticket = plan->calls > 0 && plan->warmup_ms == 0;
    if (s->ticket) {
        (void)atomic_fetch_sub(&r->tickets, 1);
    }
    s->began = r->t0 = ew__bench_now();
    ew_err err = ew__bench_begin(s);
    if (err != EW_OK) {
        ew_request_options opts = ew__calling_request(&plan->calling);
        opts.stream = plan->stream;
        return ew__calling_refused(&plan->calling, l->client, &opts, err);
    }
    ew__cli_await(plan->calling.words[0], l->client, s->request);
    while (atomic_load(&r->busy) > 0) {
        if (wait_until(r, ew__bench_now() + TICK_NS)) {
            ew_request_cancel(s->request);
            return EW__EXIT_SIGNAL + SIGINT;
        }
    }
    atomic_store(&r->probing, false);
    if (!result->failed_first || result->first_origin == EW_ORIGIN_ACTION ||
        result->first_origin == EW_ORIGIN_DEADLINE) {
        return -1;
    }
    return ew__bench_failed(plan, result);
}

static uint64_t errors_of(const ew__bench_lane *l) {
    uint64_t n = 0;
    for (unsigned i = 1; i < EW__BENCH_STATUSES; i++) {
        n += atomic_load_explicit(&l->statuses[i], memory_order_relaxed);
    }
    return n;
}

typedef struct live {
    ew__hdr *latency;
    uint64_t at, calls; /* of the line before */
} live;

static void show(ew__bench_course *r, live *shown, uint64_t now) {
    uint64_t calls = 0, errors = 0;
    memset(shown->latency, 0, sizeof *shown->latency);
    for (unsigned i = 0; i < r->plan->clients; i++) {
        ew__bench_lane *l = &r->lanes[i];
        calls += atomic_load_explicit(&l->calls, memory_order_relaxed);
        errors += errors_of(l);
        ew__hdr_add(shown->latency, l->latency);
    }
    double rps = shown->at ? (double)(calls - shown->calls) * EW__BENCH_NS / (double)(now - shown->at) : 0;
    bool warm = now < r->t0;
    uint64_t from = warm ? r->schedule : r->t0, to = warm ? r->t0 : r->t1;
    ew__bench_live(stderr, (double)(now - from) / EW__BENCH_NS, to == NEVER ? 0 : (double)(to - from) / EW__BENCH_NS,
                   rps, shown->latency, errors, warm ? "warm-up" : "");
    shown->at = now;
    shown->calls = calls;
}

/* Only calls that never come back are left of those that were asked for. */
static bool is_lost(const ew__bench_course *r, uint64_t now) {
    uint64_t heard = r->t0;
    for (unsigned i = 0; i < r->plan->clients; i++) {
        uint64_t at = atomic_load_explicit(&r->lanes[i].heard_at, memory_order_relaxed);
        heard = at > heard ? at : heard;
    }
    return r->plan->calls > 0 && atomic_load(&r->busy) == 0 && now > heard + (uint64_t)LOST_MS * EW__BENCH_MS;
}

static void begin_figures(ew__bench_course *r) {
    r->before = traffic(r);
    r->cpu_before = cpu_seconds();
}

static bool all_made(ew__bench_course *r) {
    return r->plan->calls > 0 && atomic_load(&r->tickets) <= 0 && atomic_load(&r->busy) == 0;
}

/* Until the time is over, the calls are made, or the user has enough. Returns when that was. */
static uint64_t watch(ew__bench_course *r) {
    live shown = {.latency = isatty(STDERR_FILENO) && !r->plan->json ? ew__hdr_new() : NULL};
    bool measuring = r->t0 <= r->schedule, over = false;
    uint64_t now = ew__bench_now(), tick = now + TICK_NS, line = now;
    while (!over) {
        uint64_t until = !measuring && tick > r->t0 ? r->t0 : tick > r->t1 ? r->t1 : tick;
        bool interrupted = wait_until(r, until);
        now = ew__bench_now();
        if (!measuring && now >= r->t0) {
            begin_figures(r);
            measuring = true;
        }
        over = interrupted || now >= r->t1 || is_lost(r, now) || all_made(r);
        for (unsigned i = 0; !over && now >= tick && r->plan->rate <= 0 && i < r->plan->clients; i++) {
            ew__bench_begin_idle(&r->lanes[i], NULL); /* those that rest */
        }
        tick = now >= tick ? now + TICK_NS : tick;
        if (shown.latency && (now >= line + LIVE_NS || over)) {
            show(r, &shown, now);
            line = now;
        }
    }
    if (shown.latency) {
        (void)fputs("\r\033[K", stderr);
    }
    ew__hdr_free(shown.latency);
    return now;
}

/* No more calls begin; those under way may end; then they are given up. */
static void drain(ew__bench_course *r) {
    const ew__bench_plan *plan = r->plan;
    uint64_t wait = plan->rate > 0 || plan->calls > 0 ? DRAIN_OPEN_MS : DRAIN_CLOSED_MS;
    uint64_t until = ew__bench_now() + wait * EW__BENCH_MS;
    atomic_store(&r->stopping, true);
    if (r->paced) {
        (void)pthread_join(r->pacer, NULL);
    }
    while (atomic_load(&r->busy) > 0 && ew__bench_now() < until && !wait_until(r, ew__bench_now() + TICK_NS)) {
    }
    r->result->unfinished = atomic_load(&r->busy);
    for (unsigned i = 0; i < plan->clients; i++) {
        for (unsigned k = 0; k < r->lanes[i].n_slots; k++) {
            if (r->lanes[i].slots[k].request) {
                ew_request_cancel(r->lanes[i].slots[k].request);
            }
        }
    }
}

static void collect(ew__bench_course *r, uint64_t ended) {
    const ew__bench_plan *plan = r->plan;
    ew__bench_result *result = r->result;
    uint64_t last = 0;
    for (unsigned i = 0; i < plan->clients; i++) {
        ew__bench_lane *l = &r->lanes[i];
        ew__hdr_add(result->latency, l->latency);
        if (result->first_chunk) {
            ew__hdr_add(result->first_chunk, l->first_chunk);
        }
        result->calls += l->calls;
        result->chunks += l->chunks;
        for (unsigned k = 0; k < EW__BENCH_STATUSES; k++) {
            result->statuses[k] += l->statuses[k];
        }
        for (unsigned k = 0; k < EW__BENCH_ORIGINS; k++) {
            result->origins[k] += l->origins[k];
        }
        result->late += l->late;
        result->late_max = l->late_max > result->late_max ? l->late_max : result->late_max;
        last = l->heard_at > last ? l->heard_at : last;
        while (plan->rate > 0 && plan->calls == 0 && ew__bench_due(l) < r->t1 && ew__bench_due(l) < ended) {
            result->unsent++;
            l->sent++;
        }
    }
    uint64_t end = plan->calls > 0 && last > r->t0 ? last : ended < r->t1 ? ended : r->t1;
    result->seconds = end > r->t0 ? (double)(end - r->t0) / EW__BENCH_NS : 0;
}

static void conduct(ew__bench_course *r) {
    ew__bench_plan *plan = r->plan;
    bool from_probe = plan->calls > 0 && plan->warmup_ms == 0;
    r->schedule = ew__bench_now();
    r->t0 = from_probe ? r->t0 : r->schedule + plan->warmup_ms * EW__BENCH_MS;
    r->t1 = plan->duration_ms > 0 ? r->t0 + plan->duration_ms * EW__BENCH_MS : NEVER;
    if (!from_probe) {
        begin_figures(r);
    }
    if (plan->rate > 0) {
        r->paced = pthread_create(&r->pacer, NULL, pace, r) == 0;
    }
    for (unsigned i = 0; i < plan->clients && plan->rate <= 0; i++) {
        ew__bench_begin_idle(&r->lanes[i], NULL);
    }
    uint64_t ended = watch(r);
    ew_traffic after = traffic(r);
    r->result->cpu_seconds = cpu_seconds() - r->cpu_before;
    r->result->bytes_in = after.bytes_in - r->before.bytes_in;
    r->result->bytes_out = after.bytes_out - r->before.bytes_out;
    r->result->connections = after.connections;
    drain(r);
    collect(r, ended);
}

int ew__bench_run(ew__bench_plan *plan, ew__bench_result *result) {
    ew__bench_course r = {.plan = plan, .result = result};
    *result = (ew__bench_result){.latency = ew__hdr_new(), .first_chunk = plan->stream ? ew__hdr_new() : NULL};
    atomic_init(&r.tickets, (long long)plan->calls);
    int code = result->latency && (result->first_chunk || !plan->stream) ? open_lanes(&r) : EW__EXIT_FAILED;
    if (code == 0) {
        ew__interrupt *interrupt = ew__interrupt_start(on_signal, &r);
        begin_figures(&r);
        code = probe(&r);
        if (code < 0) {
            conduct(&r);
        }
        atomic_store(&r.stopping, true);
        close_lanes(&r);
        result->signal_number = ew__interrupt_end(interrupt);
        return code > EW__EXIT_SIGNAL ? EW__EXIT_SIGNAL + result->signal_number : code;
    }
    close_lanes(&r);
    return code;
}
