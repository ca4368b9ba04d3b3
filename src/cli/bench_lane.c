/*
 * cli/bench_lane.c: how everywire bench makes calls. A slot's next call begins from the end of its last one, on the
 * thread of its lane's client, so that no other thread is woken.
 *
 * Closed loop: the next call begins at once. Open loop: calls have times at which they ought to begin, whatever became
 * of those before; a slot that ends while some are overdue takes the next one at once, else it is idle until the pacer
 * (bench_run.c) has one for it, and latency counts from the time that was meant.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench_lane.h"
#include <string.h>
#include <time.h>

#define LATE_NS ((uint64_t)EW__BENCH_MS)

uint64_t ew__bench_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * EW__BENCH_NS + (uint64_t)t.tv_nsec;
}

static void count(atomic_ullong *counter, uint64_t by) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by, memory_order_relaxed);
}

static void wake(ew__bench_course *r) {
    (void)pthread_mutex_lock(&r->lock);
    (void)pthread_cond_signal(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

/* ---- one call; the lane's thread, but for begin ---- */

/* Whether the end of this call belongs to the figures. */
static bool is_counted(const ew__bench_course *r, const ew__bench_slot *s, ew_origin origin, uint64_t now) {
    if (origin == EW_ORIGIN_CANCEL) {
        return false;
    }
    if (r->plan->calls > 0) {
        return s->ticket;
    }
    if (atomic_load_explicit(&r->probing, memory_order_relaxed)) {
        return false;
    }
    if (r->plan->rate > 0) {
        return s->began >= r->t0;
    }
    return now >= r->t0 && now < r->t1 && !atomic_load_explicit(&r->stopping, memory_order_relaxed);
}

static void note_failure(ew__bench_course *r, const ew_end *end) {
    ew__bench_result *result = r->result;
    (void)pthread_mutex_lock(&r->lock);
    if (!result->failed_first) {
        size_t n = end->fault.message.len < sizeof result->first_message ? end->fault.message.len
                                                                         : sizeof result->first_message - 1;
        result->failed_first = true;
        result->first_status = end->status;
        result->first_origin = end->origin;
        (void)snprintf(result->first_message, sizeof result->first_message, "%.*s", (int)n,
                       n > 0 ? end->fault.message.ptr : "");
    }
    (void)pthread_mutex_unlock(&r->lock);
}

static void note_end(ew__bench_lane *l, const ew__bench_slot *s, const ew_end *end, uint64_t now) {
    unsigned status = (unsigned)end->status < EW__BENCH_STATUSES ? (unsigned)end->status : EW_STATUS_UNKNOWN;
    count(&l->calls, 1);
    count(&l->statuses[status], 1);
    if (end->status != EW_STATUS_OK && (unsigned)end->origin < EW__BENCH_ORIGINS) {
        count(&l->origins[end->origin], 1);
    }
    if (s->chunks > 0) {
        count(&l->chunks, s->chunks);
        ew__hdr_record(l->first_chunk, s->first > s->began ? s->first - s->began : 0);
    }
    if (end->origin == EW_ORIGIN_ACTION || end->origin == EW_ORIGIN_DEADLINE) {
        ew__hdr_record(l->latency, now > s->began ? now - s->began : 0);
    }
}

/* Prepares the slot's next call of a closed loop. False: there is none. */
static bool prepare(ew__bench_course *r, ew__bench_slot *s, uint64_t now) {
    if (atomic_load_explicit(&r->stopping, memory_order_relaxed)) {
        return false;
    }
    s->ticket = r->plan->calls > 0 && now >= r->t0;
    if (s->ticket && atomic_fetch_sub(&r->tickets, 1) <= 0) {
        return false;
    }
    s->began = now;
    s->chunks = 0;
    return true;
}

uint64_t ew__bench_due(const ew__bench_lane *l) {
    const ew__bench_course *r = l->run;
    double number = (double)(l->sent * r->plan->clients + l->index);
    return r->schedule + (uint64_t)(number * (double)EW__BENCH_NS / r->plan->rate);
}

/* The same for an open loop: takes the next time of the schedule, if that has come. Under the lane's lock. */
static bool prepare_due(ew__bench_lane *l, ew__bench_slot *s, uint64_t now) {
    ew__bench_course *r = l->run;
    uint64_t due = ew__bench_due(l);
    if (due > now || due >= r->t1 || atomic_load_explicit(&r->stopping, memory_order_relaxed)) {
        return false;
    }
    s->ticket = r->plan->calls > 0 && due >= r->t0;
    if (s->ticket && atomic_fetch_sub(&r->tickets, 1) <= 0) {
        return false;
    }
    l->sent++;
    if (due >= r->t0 && now - due > LATE_NS) {
        l->late++;
    }
    if (due >= r->t0 && now - due > l->late_max) {
        l->late_max = now - due;
    }
    s->began = due;
    s->chunks = 0;
    return true;
}

static bool prepare_next(ew__bench_lane *l, ew__bench_slot *s, ew_origin origin, uint64_t now) {
    bool rests = origin != EW_ORIGIN_ACTION && origin != EW_ORIGIN_DEADLINE; /* not again and again at full speed */
    if (l->run->plan->rate <= 0) {
        return !rests && prepare(l->run, s, now);
    }
    (void)pthread_mutex_lock(&l->lock);
    bool more = prepare_due(l, s, now);
    (void)pthread_mutex_unlock(&l->lock);
    return more;
}

static void retire(ew__bench_lane *l, ew__bench_slot *s) {
    ew__bench_course *r = l->run;
    (void)pthread_mutex_lock(&l->lock);
    s->next = l->idle;
    l->idle = s;
    (void)pthread_mutex_unlock(&l->lock);
    if (atomic_fetch_sub(&r->busy, 1) == 1) {
        wake(r);
    }
}

static void on_chunk(ew_request *request, ew_str chunk, void *ud) {
    ew__bench_slot *s = ud;
    (void)request;
    (void)chunk;
    if (s->chunks++ == 0) {
        s->first = ew__bench_now();
    }
}

static void on_end(ew_request *request, const ew_end *end, void *ud) {
    ew__bench_slot *s = ud;
    ew__bench_lane *l = s->lane;
    ew__bench_course *r = l->run;
    uint64_t now = ew__bench_now();
    if (end->status != EW_STATUS_OK && end->origin != EW_ORIGIN_CANCEL) {
        note_failure(r, end);
    }
    if (end->origin == EW_ORIGIN_ACTION) {
        atomic_store_explicit(&l->heard_at, now, memory_order_relaxed);
    }
    if (is_counted(r, s, end->origin, now)) {
        note_end(l, s, end, now);
    }
    bool more = !atomic_load_explicit(&r->probing, memory_order_relaxed) && prepare_next(l, s, end->origin, now);
    if (!more || ew_request_again(request) != EW_OK) {
        retire(l, s);
    }
}

ew_err ew__bench_begin(ew__bench_slot *s) {
    const ew__bench_plan *plan = s->lane->run->plan;
    atomic_fetch_add(&s->lane->run->busy, 1);
    if (s->request) {
        ew_err err = ew_request_again(s->request);
        if (err != EW_OK) {
            retire(s->lane, s);
        }
        return err;
    }
    ew_request_options opts = ew__calling_request(&plan->calling);
    opts.stream = plan->stream;
    opts.on_chunk = plan->stream ? on_chunk : NULL;
    opts.on_end = on_end;
    opts.ud = s;
    opts.repeat = true;
    ew_err err = ew_client_call(s->lane->client, &opts, &s->request);
    if (err != EW_OK) {
        retire(s->lane, s);
    }
    return err;
}

/* ---- those that wait ---- */

void ew__bench_begin_idle(ew__bench_lane *l, uint64_t *until) {
    ew__bench_course *r = l->run;
    ew__bench_slot *taken = NULL;
    uint64_t now = ew__bench_now();
    (void)pthread_mutex_lock(&l->lock);
    while (l->idle) {
        ew__bench_slot *s = l->idle;
        if (!(r->plan->rate > 0 ? prepare_due(l, s, now) : prepare(r, s, now))) {
            break;
        }
        l->idle = s->next;
        s->next = taken;
        taken = s;
    }
    if (until && l->idle && ew__bench_due(l) < *until) {
        *until = ew__bench_due(l);
    }
    (void)pthread_mutex_unlock(&l->lock);
    while (taken) {
        ew__bench_slot *s = taken;
        taken = s->next;
        (void)ew__bench_begin(s);
    }
}

/* ---- life ---- */

static unsigned share(unsigned all, unsigned n, unsigned i) { return all / n + (i < all % n ? 1 : 0); }

int ew__bench_lane_open(ew__bench_course *r, unsigned i) {
    ew__bench_plan *plan = r->plan;
    ew__bench_lane *l = &r->lanes[i];
    unsigned links = share(plan->links, plan->clients, i);
    l->run = r;
    l->index = i;
    l->n_slots = links * (plan->slots / plan->links);
    l->slots = ew__cli_alloc(l->n_slots * sizeof *l->slots);
    l->latency = ew__hdr_new();
    l->first_chunk = plan->stream ? ew__hdr_new() : NULL;
    if (!l->slots || !l->latency || (plan->stream && !l->first_chunk)) {
        ew__cli_error(&(ew_fault){.status = EW_STATUS_RESOURCE_EXHAUSTED, .message = EW_STR("out of memory")});
        return EW__EXIT_FAILED;
    }
    for (unsigned k = l->n_slots; k-- > 0;) {
        l->slots[k].lane = l;
        l->slots[k].next = l->idle;
        l->idle = &l->slots[k];
    }
    const char *target = plan->calling.words[0];
    ew_reach reach = ew__cli_scheme(target)->reach;
    bool dialled = reach == EW_REACH_TCP || reach == EW_REACH_UNIX;
    bool runner = ew__cli_has_processes(target) && plan->calling.command;
    ew_client_options with = ew__calling_with(&plan->calling);
    with.limits.calls_per_connection = plan->per_link + (plan->stream ? 1 : 0); /* one asks what the peer can do */
    with.limits.runner_calls = plan->per_link;
    with.limits.client_connections = links > 1 ? links : 1;
    with.limits.client_queue = l->n_slots + 1;
    with.limits.calls = l->n_slots + 16;
    with.connections = dialled && !runner ? links : 0;
    with.processes = runner ? links : 0;
    return ew__cli_client("bench", target, &with, &l->client);
}

void ew__bench_lane_close(ew__bench_lane *l) {
    for (unsigned k = 0; l->slots && k < l->n_slots; k++) {
        (void)ew_request_free(l->slots[k].request);
    }
    (void)ew_client_free(l->client);
    ew__cli_free(l->slots, l->n_slots * sizeof *l->slots);
    ew__hdr_free(l->latency);
    ew__hdr_free(l->first_chunk);
    (void)pthread_mutex_destroy(&l->lock);
}
