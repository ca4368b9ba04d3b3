/*
 * tests/jobs_sim/sim_runs.c: what runs do: succeed, fail, ask to be run again, hang, say things, mind a stop or not.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs_sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

static sim_runs *of(ew__runs *runs) { return ew__container_of(runs, sim_runs, runs); }

static bool is_live(const srun *r) { return r->run && r->n->alive && r->n->life == r->life; }

static void end_run(srun *r, ew__outcome_kind kind) {
    char result[64];
    int n = snprintf(result, sizeof result, "{\"job\":%d,\"epoch\":%llu}", r->r->number, (unsigned long long)r->epoch);
    ew__run *run = r->run;
    ew__outcome outcome = {.kind = kind, .retry_after_ms = r->retry_after_ms};
    if (kind == EW__OUTCOME_SUCCESS)
        outcome.result = ew__str(result, (size_t)n);
    else
        outcome.message = EW_STR("it did not work");
    r->ended = true;
    r->kind = kind;
    r->run = NULL;
    world_trace(&r->s->w, T_END, r->r->number, (int64_t)r->epoch, kind);
    ew__run_end(run, &outcome);
    memset(result, 'x', sizeof result); /* the worker must have its own */
}

static void on_end(world *w, void *ud, uint64_t kind) {
    (void)w;
    srun *r = ud;
    if (is_live(r))
        end_run(r, (ew__outcome_kind)kind);
}

static void say_one(srun *r) {
    char text[48];
    int n = snprintf(text, sizeof text, "[%llu,%u]", (unsigned long long)r->epoch, r->chunks_said + 1);
    ew_err err = ew__run_chunk(r->run, ew__str(text, (size_t)n));
    if (err == EW_OK || err == EW_FULL)
        r->chunks_said++;
}

static void on_say(world *w, void *ud, uint64_t number) {
    (void)w;
    (void)number;
    srun *r = ud;
    if (is_live(r) && !r->ended)
        say_one(r);
}

/* ---- what the worker asks ---- */

static uint32_t room(ew__runs *runs, ew_str queue) {
    sim *s = of(runs)->s;
    int i = of(runs)->index;
    if (sim_queue(queue) == 0 || s->o.room == 0)
        return UINT32_MAX;
    uint32_t taken = 0; /* the other queues share a few places */
    for (const srun *r = s->runs; r; r = r->next)
        taken += is_live(r) && r->n->index == i && r->queue != 0 && !r->stopped;
    return taken < s->o.room ? s->o.room - taken : 0;
}

static ew__outcome_kind choose(sim *s, srun *r, uint64_t *ret_ms) {
    world *w = &s->w;
    uint64_t dice = world_draw(w, 1000);
    *ret_ms = world_draw(w, 4) == 0 ? 0 : world_draw(w, world_draw(w, 3) ? 400 : 4000);
    if (s->healed) {
        *ret_ms = world_draw(w, 100);
        return EW__OUTCOME_SUCCESS;
    }
    if (dice < s->o.rude) {
        r->rude = true;
        *ret_ms = world_draw(w, 2) ? UINT64_MAX : world_draw(w, 20000);
        return EW__OUTCOME_SUCCESS;
    }
    dice = world_draw(w, 1000);
    if (dice < 600)
        return EW__OUTCOME_SUCCESS;
    if (dice < 750)
        return EW__OUTCOME_ERROR;
    if (dice < 830) {
        r->retry_after_ms = world_draw(w, 2) ? -1 : (int64_t)world_draw(w, 1500);
        return EW__OUTCOME_RETRY;
    }
    if (dice < 850)
        return EW__OUTCOME_FATAL;
    if (dice < 870) {
        r->retry_after_ms = 200;
        return EW__OUTCOME_BACK;
    }
    if (dice < 890)
        return EW__OUTCOME_CANCELLED; /* although nobody has asked for it */
    *ret_ms = UINT64_MAX;             /* until it is stopped */
    return EW__OUTCOME_SUCCESS;
}

static void start(ew__runs *runs, ew__run *run) {
    sim *s = of(runs)->s;
    int i = of(runs)->index;
    node *n = &s->w.nodes[i];
    srun *r = calloc(1, sizeof *r);
    if (!r)
        abort();
    sim_check_start(s, n, run);
    *r = (srun){.next = s->runs, .s = s, .r = sim_record(s, run->job.id), .n = n, .life = n->life, .run = run};
    r->epoch = run->job.epoch;
    r->queue = sim_queue(run->job.queue);
    r->started = s->w.now;
    r->retry_after_ms = -1;
    r->sibling = r->r->runs;
    r->r->runs = r;
    s->runs = r;
    run->ud = r;
    world_trace(&s->w, T_START, r->r->number, (int64_t)r->epoch, i);
    uint64_t ms;
    ew__outcome_kind kind = choose(s, r, &ms);
    if (world_draw(&s->w, 4) == 0) {
        uint64_t span = ms == UINT64_MAX ? 2000 : ms;
        r->chunks_wanted = (unsigned)world_draw(&s->w, 8);
        for (unsigned k = 0; k < r->chunks_wanted && ms > 0; k++)
            world_at(&s->w, s->w.now + EW__MS(world_draw(&s->w, span)), n, on_say, r, 0);
        for (unsigned k = 0; k < r->chunks_wanted && ms == 0; k++)
            say_one(r);
    }
    if (ms == 0)
        end_run(r, kind); /* inside of start */
    else if (ms != UINT64_MAX)
        world_at(&s->w, s->w.now + EW__MS(ms), n, on_end, r, kind);
}

static void stop(ew__runs *runs, ew__run *run, ew__stop_why why) {
    srun *r = run->ud;
    world *w = &r->s->w;
    (void)runs;
    sim_check_stop(r, why);
    r->stopped = true;
    r->why = why;
    r->stopped_at = w->now;
    world_trace(w, T_STOP, r->r->number, (int64_t)r->epoch, why);
    if (r->rude)
        return;
    ew__outcome_kind kind = world_draw(w, 4) ? EW__OUTCOME_ERROR : EW__OUTCOME_SUCCESS;
    uint64_t ms = world_draw(w, 3) ? world_draw(w, 300) : 0;
    if (ms == 0)
        end_run(r, kind); /* inside of stop */
    else
        world_at(w, w->now + EW__MS(ms), r->n, on_end, r, kind);
}

void sim_end_owed(sim *s, const node *n) {
    for (srun *r = s->runs; r; r = r->next) {
        if (r->n == n && is_live(r))
            end_run(r, EW__OUTCOME_SUCCESS);
    }
}

void sim_runs_init(sim *s, int index) {
    static const ew__runs_ops ops = {room, start, stop, NULL};
    s->node_runs[index] = (sim_runs){{&ops}, s, index};
}
