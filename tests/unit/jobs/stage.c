/*
 * tests/unit/jobs/stage.c: see stage.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/jobs/stage.h"

#include <stdlib.h>

stage *s;

void end(seen *run, ew__outcome outcome) {
    ew__run *it = run->run;
    assert_non_null(it);
    run->run = NULL;
    ew__run_end(it, &outcome);
}

void succeed(seen *run) { end(run, (ew__outcome){.kind = EW__OUTCOME_SUCCESS, .result = EW_STR("\"ok\"")}); }

static uint32_t room(ew__runs *runs, ew_str queue) {
    const actor *a = ew__container_of(runs, actor, runs);
    uint32_t taken = 0;
    (void)queue;
    for (int i = 0; i < s->n_runs; i++)
        taken += s->runs[i].run && s->runs[i].node == a->index;
    return s->room == 0 ? UINT32_MAX : taken < s->room ? s->room - taken : 0;
}

static void start(ew__runs *runs, ew__run *run) {
    actor *a = ew__container_of(runs, actor, runs);
    assert_true(s->n_runs < MAX_RUNS);
    seen *it = &s->runs[s->n_runs++];
    *it = (seen){.run = run, .node = a->index, .at = s->w.now, .stopped = -1};
    (void)snprintf(it->id, sizeof it->id, "%.*s", (int)run->job.id.len, run->job.id.ptr);
    (void)snprintf(it->queue, sizeof it->queue, "%.*s", (int)run->job.queue.len, run->job.queue.ptr);
    run->ud = it;
}

static void stop(ew__runs *runs, ew__run *run, ew__stop_why why) {
    seen *it = run->ud;
    (void)runs;
    assert_int_equal(it->stopped, -1);
    it->stopped = (int)why;
    it->stopped_at = s->w.now;
    if (s->obedient)
        end(it, (ew__outcome){.kind = EW__OUTCOME_ERROR});
}

static void chunk_room(ew__runs *runs, ew__run *run) {
    (void)runs;
    ((seen *)run->ud)->rooms++;
}

void on_ended(ew__worker *worker, void *ud) {
    (void)worker;
    ((actor *)ud)->ended = true;
}

ew__worker_options usual(void) {
    return (ew__worker_options){
        .concurrency = 4, .poll_ms = 3600000, .policy = {.base_retry_ms = 1000, .no_jitter = true}};
}

actor *begin(int index, const ew__worker_options *options) {
    static const ew__runs_ops ops = {room, start, stop, chunk_room};
    actor *a = &s->actors[index];
    char problem[200];
    node *n = node_start(&s->w, index);
    *a = (actor){.runs = {&ops}, .index = index};
    assert_int_equal(ew__worker_new(&n->executor, &n->line.store, &a->runs, options, on_ended, a, &a->worker, problem,
                                    sizeof problem),
                     EW_OK);
    n->worker = a->worker;
    ew__worker_start(a->worker);
    return a;
}

void stop_worker(actor *a, uint64_t grace_ms) {
    s->w.nodes[a->index].executor.now = s->w.now;
    ew__worker_stop(a->worker, grace_ms);
}

/* It must have ended; nothing of it is left. */
void release(actor *a) {
    assert_true(a->ended);
    ew__worker_free(a->worker);
    a->worker = NULL;
    for (int i = 0; i < s->n_runs; i++) {
        if (s->runs[i].run && s->runs[i].node == a->index)
            succeed(&s->runs[i]); /* one that was given up */
    }
    node_end(&s->w.nodes[a->index]);
}

void quit(actor *a) {
    s->obedient = true;
    stop_worker(a, 0);
    world_pass(&s->w, 100);
    release(a);
}

int stage_begin(void **state) {
    (void)state;
    s = calloc(1, sizeof *s);
    world_init(&s->w, 1);
    return s ? 0 : 1;
}

int stage_end(void **state) {
    (void)state;
    world_done(&s->w);
    free(s);
    return 0;
}

int64_t wall(void) { return (int64_t)(WORLD_WALL_MS + s->w.now / 1000000); }

/* By hand, at once, without a line. */
void do_now(ew__store_request *op) {
    ew__arena arena;
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    op->arena = &arena;
    s->w.store.now = s->w.now;
    model_do(&s->w.store, op);
    assert_int_equal(op->err, EW_OK);
    ew__arena_done(&arena);
}

void order(const char *id, const char *queue, int64_t delay_ms) {
    ew__store_request op = {.kind = EW__OP_ENQUEUE};
    op.u.enqueue.job = (ew__job){.id = ew_str_from(id),
                                 .function = EW_STR("f"),
                                 .queue = ew_str_from(queue),
                                 .params = EW_STR("{}"),
                                 .enqueued_at = wall(),
                                 .run_at = wall() + delay_ms,
                                 .timeout_ms = 60000,
                                 .max_retries = 3};
    do_now(&op);
}

ew__job *job(const char *id) {
    model_job *mj = model_find(&s->w.store, ew_str_from(id));
    assert_non_null(mj);
    return &mj->job;
}

seen *run_of(const char *id) {
    for (int i = s->n_runs - 1; i >= 0; i--) {
        if (strcmp(s->runs[i].id, id) == 0)
            return &s->runs[i];
    }
    fail_msg("%s was not begun", id);
    return NULL;
}
