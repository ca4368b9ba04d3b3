/*
 * tests/jobs_sim/sim.c: many lives of a few workers, each decided by its seed: producers, runs of all kinds, and
 * troubles: workers that crash or stall, a store that fails before or after it has done something, clocks that jump,
 * memory that is not there, shutdowns, cancels, pauses. Then everything is healed, and every job must come to its end.
 *
 *     EW_SIM_SEEDS=100000 EW_SIM_FIRST=1 test_jobs_sim        how many, and the first
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs_sim/sim.h"
#include "gateway/zone_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK_MS 4000 /* of the schedules */

const char *const sim_queues[SIM_QUEUES] = {"default", "small", "slow"};

int sim_queue(ew_str name) {
    for (int i = 0; i < SIM_QUEUES; i++) {
        if (ew__str_is(name, ew_str_from(sim_queues[i])))
            return i;
    }
    return -1;
}

/* ---- workers ---- */

static void on_birth(world *w, void *ud, uint64_t index);

static void on_ended(ew__worker *worker, void *ud) {
    node *n = ud;
    sim *s = sim_of(n->w);
    const ew__worker_stats *stats = ew__worker_stats_of(worker);
    world_trace(n->w, T_ENDED, n->index, 0, 0);
    if (stats->running || stats->waiting_ends)
        world_fail(n->w, "worker %d ended, and something runs", n->index);
    s->n_stale += stats->stale;
    ew__worker_free(worker);
    n->worker = NULL;
    sim_end_owed(s, n); /* late ends, of a worker that is gone */
    node_end(n);
    if (!s->over)
        world_at(n->w, n->w->now + EW__MS(world_draw(n->w, 3000)), NULL, on_birth, s, (uint64_t)n->index);
}

static void fill_options(const sim *s, ew__worker_options *o, ew__worker_queue *queues, ew__worker_cron *crons) {
    for (int i = 0; i < SIM_QUEUES; i++)
        queues[i] = (ew__worker_queue){.name = ew_str_from(sim_queues[i]), .priority = i == 1 ? 1 : 0};
    queues[1].concurrency = s->o.queue_concurrency;
    queues[2].rate = s->o.rate;
    ew__job job = {.function = EW_STR("tick"), .timeout_ms = 2000, .max_retries = 2, .result_ttl_ms = 5000};
    crons[0] = (ew__worker_cron){.name = EW_STR("plain"), .schedule = EW_STR("*/4 * * * * *"), .job = job};
    crons[1] = (ew__worker_cron){.name = EW_STR("unique"),
                                 .schedule = EW_STR("*/4 * * * * *"),
                                 .zone = EW_STR("Europe/Berlin"),
                                 .job = job,
                                 .unique = EW_STR("one-at-a-time"),
                                 .unique_ttl_ms = 60000};
    crons[1].job.result_ttl_ms = 0;
    *o = (ew__worker_options){.queues = queues,
                              .n_queues = SIM_QUEUES,
                              .crons = crons,
                              .n_crons = s->o.crons ? 2 : 0,
                              .open_zone = ew__zone_open,
                              .concurrency = s->o.concurrency,
                              .lease_ms = SIM_LEASE_MS,
                              .scan_ms = 1000,
                              .poll_ms = 1000,
                              .grace_ms = 1000};
    o->policy = (ew__policy){.base_retry_ms = 200,
                             .max_retry_ms = 2000,
                             .no_jitter = s->o.no_jitter,
                             .retry_timeouts = s->o.retry_timeouts,
                             .poison_after = SIM_POISON};
}

static void on_birth(world *w, void *ud, uint64_t index) {
    sim *s = ud;
    ew__worker_options options;
    ew__worker_queue queues[SIM_QUEUES];
    ew__worker_cron crons[2];
    if (w->nodes[index].alive || s->over)
        return;
    node *n = node_start(w, (int)index);
    s->stopping[index] = false;
    memset(s->rate_starts[index], 0, sizeof s->rate_starts[index]);
    sim_runs_init(s, (int)index);
    fill_options(s, &options, queues, crons);
    ew_err err = ew__worker_new(&n->executor, &n->line.store, &s->node_runs[index].runs, &options, on_ended, n,
                                &n->worker, NULL, 0);
    if (err == EW_ENOMEM) {
        node_end(n);
        world_at(w, w->now + EW__MS(50), NULL, on_birth, s, index);
        return;
    }
    if (err != EW_OK)
        world_fail(w, "no worker: %s", ew_err_name(err));
    ew__worker_start(n->worker);
    node_turn(n);
}

/* ---- producers ---- */

typedef struct order {
    ew__store_request op;
    ew__arena arena;
    sim *s;
    char id[24];
    char key[16];
    unsigned tries;
} order;

static void send_order(order *o);

static void on_again(world *w, void *ud, uint64_t number) {
    (void)w;
    (void)number;
    send_order(ud);
}

static void on_taken(ew__store_request *op) {
    order *o = ew__container_of(op, order, op);
    sim *s = o->s;
    ew__enqueued ret = op->u.enqueue.ret;
    bool again = op->err == EW_ECONNECT && op->u.enqueue.dedup == EW__DEDUP_NONE && ++o->tries < 50;
    if (op->err == EW_OK && ret != EW__ENQUEUED_LIMITED) {
        record *r = sim_record(s, op->u.enqueue.ret_id);
        if (!r)
            world_fail(&s->w, "an enqueue was acknowledged, and there is no job");
        if (ret == EW__ENQUEUED_DUPLICATE && o->tries == 0)
            world_fail(&s->w, "a new id is said to be known");
        s->n_acked += !r->acked;
        r->acked = true;
    } else if (op->err != EW_OK && op->err != EW_ECONNECT) {
        world_fail(&s->w, "enqueue: %s", ew_err_name(op->err));
    }
    ew__arena_done(&o->arena);
    if (again)
        world_at(&s->w, s->w.now + EW__MS(200), NULL, on_again, o, 0);
    else
        free(o);
}

static void send_order(order *o) {
    sim *s = o->s;
    world *w = &s->w;
    ew__op_enqueue enqueue = o->op.u.enqueue;
    memset(&o->op, 0, sizeof o->op);
    ew__arena_init(&o->arena, ew_env_default(), NULL, 0);
    o->op.kind = EW__OP_ENQUEUE;
    o->op.arena = &o->arena;
    o->op.done = on_taken;
    o->op.u.enqueue = enqueue;
    o->op.u.enqueue.ret_id = EW_STR("");
    (void)w;
    s->producers.store.ops->submit(&s->producers.store, &o->op);
}

static void on_order(world *w, void *ud, uint64_t number) {
    sim *s = ud;
    order *o = calloc(1, sizeof *o);
    if (!o)
        abort();
    o->s = s;
    int n = snprintf(o->id, sizeof o->id, "job-%" PRIu64, number);
    int64_t now = (int64_t)(WORLD_WALL_MS + w->now / 1000000);
    ew__op_enqueue *e = &o->op.u.enqueue;
    e->job = (ew__job){.id = ew__str(o->id, (size_t)n),
                       .function = EW_STR("work"),
                       .params = EW_STR("{}"),
                       .enqueued_at = now,
                       .run_at = now,
                       .timeout_ms = 5000};
    e->job.queue = ew_str_from(sim_queues[world_draw(w, SIM_QUEUES)]);
    e->job.max_retries = (uint32_t)world_draw(w, 5);
    if (world_draw(w, 3) == 0)
        e->job.run_at += (int64_t)world_draw(w, 5000);
    if (world_draw(w, 4) == 0)
        e->job.timeout_ms = 1 + (int64_t)world_draw(w, 2000);
    if (s->o.dedup && world_draw(w, 3) == 0) {
        static const ew__dedup_mode modes[] = {EW__DEDUP_UNIQUE, EW__DEDUP_RATE, EW__DEDUP_DEBOUNCE};
        int k = snprintf(o->key, sizeof o->key, "key-%d", (int)world_draw(w, 3));
        e->dedup = modes[world_draw(w, 3)];
        e->key = ew__str(o->key, (size_t)k);
        e->key_ttl_ms = 500 + (int64_t)world_draw(w, 5000);
        e->job.result_ttl_ms = world_draw(w, 2) ? 0 : 3000; /* an order that is sent again needs its job to be there */
        if (e->dedup == EW__DEDUP_DEBOUNCE)
            e->job.run_at = now + e->key_ttl_ms;
    }
    send_order(o);
}

/* ---- troubles ---- */

static node *any_node(sim *s, int from) {
    int i = from + (int)world_draw(&s->w, (uint64_t)(s->o.nodes - from > 0 ? s->o.nodes - from : 1));
    return i < s->o.nodes && s->w.nodes[i].alive && s->w.nodes[i].worker ? &s->w.nodes[i] : NULL;
}

static node *victim(sim *s) { return s->healed ? NULL : any_node(s, s->o.calm ? 1 : 0); }

static void on_crash(world *w, void *ud, uint64_t number) {
    sim *s = ud;
    node *n = victim(s);
    (void)number;
    if (!n)
        return;
    node_crash(n);
    world_at(w, w->now + EW__MS(world_draw(w, 5000)), NULL, on_birth, s, (uint64_t)n->index);
}

static void on_stall(world *w, void *ud, uint64_t number) {
    node *n = victim(ud);
    (void)number;
    if (n)
        node_stall(n, world_draw(w, 3 * SIM_LEASE_MS));
}

static void on_stop_in_turn(world *w, void *ud, uint64_t grace) {
    node *n = ud;
    if (!n->worker)
        return;
    world_trace(w, T_STOPPING, n->index, (int64_t)grace, 0);
    sim_of(w)->stopping[n->index] = true;
    ew__worker_stop(n->worker, grace);
}

static void on_stop(world *w, void *ud, uint64_t number) {
    static const uint64_t graces[] = {0, 500, 3000};
    node *n = victim(ud);
    (void)number;
    if (!n)
        return;
    world_at(w, w->now, n, on_stop_in_turn, n, graces[world_draw(w, 3)]);
    if (world_draw(w, 3) == 0)
        world_at(w, w->now + EW__MS(world_draw(w, 1500)), n, on_stop_in_turn, n, 0);
}

static void on_jump(world *w, void *ud, uint64_t number) {
    node *n = victim(ud);
    (void)number;
    if (!n)
        return;
    int64_t by = (int64_t)world_draw(w, world_draw(w, 2) ? 7200000 : 4000);
    n->skew_ms += world_draw(w, 2) ? by / 2 : -by / 2;
    world_trace(w, T_JUMP, n->index, n->skew_ms, 0);
}

static void on_up(world *w, void *ud, uint64_t number) {
    (void)ud;
    (void)number;
    w->faults.down = false;
    if (w->store.changed)
        w->store.changed(&w->store, EW__CHANGED_BACK);
}

static void on_down(world *w, void *ud, uint64_t number) {
    sim *s = ud;
    (void)number;
    if (s->healed)
        return;
    w->faults.down = true;
    world_at(w, w->now + EW__MS(world_draw(w, 3 * SIM_LEASE_MS)), NULL, on_up, s, 0);
}

/* What people do, without a line: it happens at once. */
static void by_hand(sim *s, ew__store_request *op) {
    ew__arena arena;
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    op->arena = &arena;
    s->w.store.now = s->w.now;
    model_do(&s->w.store, op);
    ew__arena_done(&arena);
}

static model_job *any_job(sim *s) {
    model *m = &s->w.store;
    return m->n_jobs ? m->jobs[world_draw(&s->w, m->n_jobs)] : NULL;
}

static void on_cancel(world *w, void *ud, uint64_t number) {
    sim *s = ud;
    model_job *mj = s->healed ? NULL : any_job(s);
    (void)number;
    if (!mj)
        return;
    record *r = mj->ud;
    r->cancel_asked = r->cancel_asked || !ew__job_is_final(mj->job.status);
    world_trace(w, T_CANCEL, r->number, mj->job.status, 0);
    ew__store_request op = {.kind = EW__OP_CANCEL};
    op.u.cancel = (ew__op_cancel){.id = mj->job.id, .now = (int64_t)(WORLD_WALL_MS + w->now / 1000000)};
    by_hand(s, &op);
}

static void on_requeue(world *w, void *ud, uint64_t number) {
    sim *s = ud;
    model_job *mj = s->healed ? NULL : any_job(s);
    (void)number;
    if (!mj || (mj->job.status != EW__JOB_FAILED && mj->job.status != EW__JOB_CANCELLED))
        return;
    ew__store_request op = {.kind = EW__OP_REQUEUE};
    op.u.requeue = (ew__op_requeue){.id = mj->job.id, .now = (int64_t)(WORLD_WALL_MS + w->now / 1000000)};
    by_hand(s, &op);
}

static void set_pause(sim *s, int queue, bool on) {
    ew__store_request op = {.kind = EW__OP_PAUSE};
    op.u.pause = (ew__op_pause){.queue = ew_str_from(sim_queues[queue]), .on = on};
    world_trace(&s->w, T_PAUSE, queue, on, 0);
    by_hand(s, &op);
}

static void on_pause(world *w, void *ud, uint64_t number) {
    sim *s = ud;
    (void)number;
    if (s->healed)
        return;
    bool on = world_draw(w, 2) == 0;
    set_pause(s, (int)world_draw(w, SIM_QUEUES), on);
}

/* ---- a life ---- */

static unsigned some(world *w, unsigned most) { return world_draw(w, 2) ? (unsigned)world_draw(w, most + 1) : 0; }

static void draw_options(sim *s) {
    world *w = &s->w;
    sim_options *o = &s->o;
    memset(o, 0, sizeof *o); /* one draw in a statement: their order must not be the compiler's */
    o->nodes = 1 + (int)world_draw(w, 4);
    o->jobs = 3 + (int)world_draw(w, 30);
    o->length_ms = 5000 + world_draw(w, 20000);
    o->crashes = some(w, 6);
    o->stalls = some(w, 5);
    o->stops = some(w, 4);
    o->jumps = world_draw(w, 3) ? 0 : some(w, 4);
    o->downs = world_draw(w, 3) ? 0 : some(w, 3);
    o->cancels = some(w, 12);
    o->pauses = world_draw(w, 3) ? 0 : some(w, 6);
    o->requeues = some(w, 6);
    o->dedup = world_draw(w, 2);
    o->crons = world_draw(w, 3) == 0;
    o->calm = world_draw(w, 2);
    o->retry_timeouts = world_draw(w, 2);
    o->no_jitter = world_draw(w, 3) == 0;
    o->concurrency = 1 + (uint32_t)world_draw(w, 6);
    o->queue_concurrency = (uint32_t)world_draw(w, 3);
    o->rate = (uint32_t)world_draw(w, 4);
    o->room = (uint32_t)world_draw(w, 4);
    o->rude = some(w, 120);
    o->faults.delay_us = world_draw(w, 3) ? 2000 : 300000;
    o->faults.fail_before = some(w, 80);
    o->faults.fail_after = some(w, 80);
    o->faults.hint_lost = world_draw(w, 2) ? 0 : (unsigned)world_draw(w, 1001);
    o->faults.no_memory = world_draw(w, 5) ? 0 : (unsigned)world_draw(w, 40);
}

static void plan(sim *s, unsigned n, world_fn fn) {
    for (unsigned i = 0; i < n; i++)
        world_at(&s->w, s->w.now + EW__MS(world_draw(&s->w, s->o.length_ms)), NULL, fn, s, i);
}

static void begin(sim *s, uint64_t seed) {
    world *w = &s->w;
    memset(s, 0, sizeof *s);
    world_init(w, seed);
    draw_options(s);
    sim_watch(s);
    line_init(&s->producers, w, NULL);
    w->faults = s->o.faults;
    for (int i = 0; i < s->o.nodes; i++)
        on_birth(w, s, (uint64_t)i);
    plan(s, (unsigned)s->o.jobs, on_order);
    plan(s, s->o.crashes, on_crash);
    plan(s, s->o.stalls, on_stall);
    plan(s, s->o.stops, on_stop);
    plan(s, s->o.jumps, on_jump);
    plan(s, s->o.downs, on_down);
    plan(s, s->o.cancels, on_cancel);
    plan(s, s->o.pauses, on_pause);
    plan(s, s->o.requeues, on_requeue);
}

/* What waits for the time of a clock that was wrong when that was decided. */
static void mend_times(sim *s) {
    int64_t now = (int64_t)(WORLD_WALL_MS + s->w.now / 1000000);
    for (size_t i = 0; s->o.jumps && i < s->w.store.n_jobs; i++) {
        ew__job *job = &s->w.store.jobs[i]->job;
        if (job->run_at > now + 6000)
            job->run_at = now;
    }
}

static void heal(sim *s) {
    world *w = &s->w;
    world_trace(w, T_HEAL, 0, 0, 0);
    s->healed = true;
    w->faults = (world_faults){.delay_us = 2000};
    for (int i = 0; i < SIM_QUEUES; i++)
        set_pause(s, i, false);
    for (int i = 0; i < s->o.nodes; i++) {
        w->nodes[i].skew_ms = 0;
        w->nodes[i].stalled_until = 0;
        if (!w->nodes[i].alive)
            on_birth(w, s, (uint64_t)i);
    }
}

static void check_ticks(sim *s, uint64_t until) {
    bool fair = s->o.crons && s->o.calm && !s->o.faults.no_memory;
    if (!fair)
        return;
    int64_t from = (int64_t)WORLD_WALL_MS + 1000, to = (int64_t)(WORLD_WALL_MS + until / 1000000) - 4000;
    sim_check_ticks(s, "plain", from, to, TICK_MS);
}

static void finish(sim *s) {
    world *w = &s->w;
    uint64_t by = w->now + EW__MS(10 * SIM_LEASE_MS + 1000 * s->n_records); /* some queues let one begin in a second */
    for (uint64_t at = w->now; at < by && !sim_is_settled(s);) {
        mend_times(s);
        world_run(w, at += EW__MS(500));
    }
    sim_check_settled(s);
    if (s->o.crons)
        world_pass(w, 6000);
    check_ticks(s, w->now);
    s->over = true;
    for (int i = 0; i < s->o.nodes; i++) {
        node *n = &w->nodes[i];
        if (n->alive && n->worker)
            world_at(w, w->now, n, on_stop_in_turn, n, 0);
    }
    world_pass(w, 20000);
    for (int i = 0; i < s->o.nodes; i++) {
        if (w->nodes[i].alive)
            world_fail(w, "worker %d does not end", i);
    }
    for (size_t i = 0; i < w->store.n_jobs; i++) {
        if (w->store.jobs[i]->job.status == EW__JOB_ACTIVE)
            world_fail(w, "a job is still leased");
    }
}

typedef struct totals {
    uint64_t hash, all, events, acked, finals, stale;
} totals;

static void live(uint64_t seed, totals *t) {
    static sim s;
    begin(&s, seed);
    world_run(&s.w, s.w.now + EW__MS(s.o.length_ms));
    heal(&s);
    finish(&s);
    t->hash = s.w.hash;
    t->all = t->all * 31 + s.w.hash;
    t->events += s.w.n_done;
    t->acked += s.n_acked;
    t->finals += s.n_final;
    t->stale += s.n_stale;
    sim_free_records(&s);
    world_done(&s.w);
}

static uint64_t number_of(const char *name, uint64_t usual) {
    const char *text = getenv(name);
    uint64_t number;
    return text && ew__u64_parse(ew_str_from(text), &number) ? number : usual;
}

int main(void) {
    uint64_t n = number_of("EW_SIM_SEEDS", 2000), first = number_of("EW_SIM_FIRST", 1);
    totals t = {0};
    for (uint64_t seed = first; seed < first + n; seed++) {
        live(seed, &t);
        if (seed % 50 == 0) {
            totals again = {0};
            live(seed, &again);
            if (again.hash != t.hash) {
                (void)fprintf(stderr, "seed %" PRIu64 ": twice, and not the same\n", seed);
                return 1;
            }
        }
    }
    (void)printf("%" PRIu64 " seeds, %" PRIu64 " events, %" PRIu64 " jobs acknowledged, %" PRIu64 " ends, %" PRIu64
                 " late ends refused; trace %016" PRIx64 "\n",
                 n, t.events, t.acked, t.finals, t.stale, t.all);
    return 0;
}
