/*
 * gateway/run.c: an app's running life: loops and their threads, draining, the end.
 *
 * The end has three steps, each a letter to every loop: drain (no new calls), close (when the last call of all loops
 * has ended, or the time is up), and the loop's own end (when its connections are closed and no handler holds a call
 * any more, or after a grace).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "base/thread.h"
#include <stdio.h>

#define DEFAULT_LISTENER "127.0.0.1:3400"
#define DRAIN_MS 10000
#define GRACE_MS 2000 /* for handlers whose call was cut off */

/* ---- the end of a loop ---- */

static void loop_ended(ew__app_loop *loop) {
    ew_app *app = loop->app;
    pthread_mutex_lock(&app->lifecycle.lock);
    if (--app->lifecycle.running == 0)
        pthread_cond_broadcast(&app->lifecycle.changed);
    pthread_mutex_unlock(&app->lifecycle.lock);
}

static void on_handles_closed(ew__loop *handles, void *ud) {
    ew__app_loop *loop = ud;
    (void)handles;
    if (loop->app->host)
        loop_ended(loop);
}

static void close_loop_handles(ew__app_loop *loop) {
    if (loop == loop->app->loops) /* it lives on the first loop */
        ew__timer_stop(&loop->loop.executor.timers, &loop->app->lifecycle.drain_timer);
    ew__loop_close(&loop->loop, on_handles_closed, loop);
}

/* The last spans leave before the loop does. */
static void end_loop(ew__app_loop *loop) {
    ew__timer_stop(&loop->loop.executor.timers, &loop->grace);
    ew__app_telemetry_close(loop, close_loop_handles);
}

/* A handler did not end. The thread stops; what its answer would touch stays in memory. */
static void on_grace_over(ew__timer *timer, uint64_t now) {
    ew__app_loop *loop = ew__container_of(timer, ew__app_loop, grace);
    (void)now;
    loop->abandoned = true;
    ew__log(loop->app->env, EW_LOG_ERROR, "app", "%u calls did not end after they were cut off", loop->calls.live);
    if (loop->app->host)
        loop_ended(loop);
    else
        ew__loop_stop(&loop->loop);
}

/* One of its parts has closed. */
static void on_part_closed(ew__app_loop *loop) {
    ew__executor *executor = &loop->loop.executor;
    if (--loop->n_open > 0)
        return;
    if (executor->calls->live == 0)
        end_loop(loop);
    else if (ew__timer_set(&executor->timers, &loop->grace, executor->now + EW__MS(GRACE_MS), on_grace_over) != EW_OK)
        on_grace_over(&loop->grace, executor->now);
}

static void on_server_closed(ew__server *server) { on_part_closed(server->ud); }

/* ---- draining ---- */

static void close_loop(ew__task *task) {
    ew__app_loop *loop = ew__container_of(task, ew__app_loop, close_task);
    bool now = atomic_load(&loop->app->lifecycle.cut);
    if (!loop->closing)
        loop->n_open = 1 + ew__app_connects_count(loop) + ew__app_outbound_count(loop) + ew__parts_count(loop);
    loop->closing = true;
    ew__app_sources_silence(loop->app);
    ew__away_close(loop);
    ew__app_connects_close(loop, now, on_part_closed);
    ew__app_outbound_close(loop, on_part_closed);
    ew__parts_close(loop, on_part_closed);
    ew__server_close(&loop->server, now, on_server_closed);
}

/* A letter can be under way only once: a second close (now with `cut`) waits for the first to arrive. */
static void close_loop_and_reopen(ew__task *task) {
    ew__app_loop *loop = ew__container_of(task, ew__app_loop, close_task);
    atomic_store(&loop->close_sent, false);
    close_loop(task);
}

/* While the worker has jobs nothing closes; its end comes back here. */
static void close_all(ew_app *app) {
    atomic_store(&app->lifecycle.close_wanted, true);
    if (!ew__app_jobs_over(app))
        return;
    for (size_t i = 0; i < app->n_loops; i++) {
        ew__app_loop *loop = &app->loops[i];
        if (atomic_exchange(&loop->close_sent, true))
            continue;
        loop->close_task.fn = close_loop_and_reopen;
        ew__executor_post(&loop->loop.executor, &loop->close_task);
    }
}

static void on_calls_idle(ew__executor *executor) {
    ew__app_loop *loop = ew__container_of(ew__loop_of(executor), ew__app_loop, loop);
    ew_app *app = loop->app;
    if (ew__timer_active(&loop->grace)) {
        end_loop(loop);
        return;
    }
    if (atomic_load(&app->lifecycle.draining) && atomic_load(&app->live_calls) == 0)
        close_all(app);
}

static void on_drain_over(ew__timer *timer, uint64_t now) {
    ew_app *app = ew__container_of(timer, ew_app, lifecycle.drain_timer);
    (void)now;
    if (atomic_load(&app->live_calls) > 0 && ew__app_jobs_over(app)) /* the worker's own end hands its jobs back */
        atomic_store(&app->lifecycle.cut, true);
    close_all(app);
}

uint64_t ew__app_drain_ms(const ew_app *app) { return app->drain_ms ? app->drain_ms : DRAIN_MS; }

void ew__app_worker_over(ew_app *app) {
    if (!atomic_load(&app->lifecycle.draining)) {
        ew__app_stop(app);
        return;
    }
    if (!atomic_load(&app->lifecycle.close_wanted))
        return; /* other calls have time left */
    if (atomic_load(&app->live_calls) > 0)
        atomic_store(&app->lifecycle.cut, true);
    close_all(app);
}

static void drain_loop(ew__task *task) {
    ew__app_loop *loop = ew__container_of(task, ew__app_loop, drain_task);
    ew_app *app = loop->app;
    ew__executor *executor = &loop->loop.executor;
    uint64_t end = executor->now + EW__MS(ew__app_drain_ms(app));
    ew__server_drain(&loop->server);
    ew__app_connects_drain(loop);
    ew__away_close(loop); /* runtimes that come back now are refused */
    if (atomic_load(&app->live_calls) == 0)
        close_all(app);
    else if (loop == app->loops &&
             ew__timer_set(&executor->timers, &app->lifecycle.drain_timer, end, on_drain_over) != EW_OK)
        on_drain_over(&app->lifecycle.drain_timer, executor->now);
}

static void drain_all(ew_app *app) {
    for (size_t i = 0; i < app->n_loops; i++) {
        ew__app_loop *loop = &app->loops[i];
        if (atomic_exchange(&loop->drain_sent, true))
            continue;
        loop->drain_task.fn = drain_loop;
        ew__executor_post(&loop->loop.executor, &loop->drain_task);
    }
}

/* Under the lock: the loops are freed only after `running` has become zero under it. */
void ew__app_stop(ew_app *app) {
    pthread_mutex_lock(&app->lifecycle.lock);
    if (app->lifecycle.started && app->lifecycle.running > 0) {
        ew__app_jobs_stop(app);
        if (!atomic_exchange(&app->lifecycle.draining, true)) {
            drain_all(app);
        } else { /* the second time */
            if (atomic_load(&app->live_calls) > 0 && ew__app_jobs_over(app))
                atomic_store(&app->lifecycle.cut, true);
            close_all(app);
        }
    }
    pthread_mutex_unlock(&app->lifecycle.lock);
}

/* ---- metrics ---- */

static ew_err write_metrics(struct ew__scrape *scrape, ew__buf *out) {
    ew_app *app = ew__container_of(scrape, ew_app, scrape);
    ew__metrics *sets[EW__THREADS_MAX];
    ew__metrics_extra extra = {.loops = app->n_loops,
                               .memory_bytes = ew__budget_used(app->budget),
                               .memory_max = atomic_load(&app->budget->max)};
    for (size_t i = 0; i < app->n_loops; i++) {
        const ew__traffic *traffic = &app->loops[i].server.traffic;
        sets[i] = &app->loops[i].metrics;
        extra.connections_open += atomic_load(&traffic->open);
        extra.connections_accepted += atomic_load(&traffic->accepted);
        extra.connections_refused += atomic_load(&traffic->refused);
        extra.bytes_in += atomic_load(&traffic->bytes_in);
        extra.bytes_out += atomic_load(&traffic->bytes_out);
        extra.events_dropped += atomic_load(&app->loops[i].calls.dropped);
    }
    ew__app_connects_measure(app, &extra);
    ew__app_telemetry_count(app, &extra.spans_exported, &extra.spans_dropped);
    ew_err err = ew__metrics_write(out, sets, app->n_loops, &extra);
    if (err != EW_OK)
        return err;
    ew__app_jobs_measure(app, out);
    return out->err;
}

/* ---- starting ---- */

static void loop_done(ew__app_loop *loop) {
    ew__app_connects_done(loop);
    ew__server_done(&loop->server);
    ew__app_access_detach(loop);
    ew__app_telemetry_done(loop);
    ew__metrics_done(&loop->metrics);
    ew__broadcast_inbox_done(&loop->broadcasts, loop->app->env);
    ew__call_context_done(&loop->calls);
    ew__loop_done(&loop->loop);
}

/* Lets the closing of handles happen on a loop that no thread runs. */
static void turn_until_closed(ew__app_loop *loop) {
    while (loop->loop.n_handles > 0)
        ew__loop_turn(&loop->loop, false);
}

static ew_err init_loop(ew_app *app, ew__app_loop *loop) {
    loop->app = app;
    ew_err err = ew__loop_init(&loop->loop, app->env, &app->limits, app->host);
    if (err != EW_OK)
        return err;
    ew__call_context_init(&loop->calls, &loop->loop.executor);
    ew__metrics_init(&loop->metrics, app->env);
    loop->calls.observer = &loop->metrics.observer;
    loop->loop.tapping = app->tapping.fn ? &app->tapping : NULL;
    loop->calls.live_all = &app->live_calls;
    loop->loop.executor.budget = app->budget;
    /* Spinning is disabled on a single core, where it would starve the peer, and on a loop that the host owns. */
    if (!app->host && ew__cores() > 1)
        loop->loop.spin.taken = &app->spinning;
    loop->calls.on_idle = on_calls_idle;
    err = ew__app_telemetry_init(loop);
    if (err == EW_OK) {
        size_t n_listeners = app->n_listeners ? app->n_listeners : 1; /* an app that only dials has none */
        err = ew__server_init(&loop->server, &loop->loop, &app->registry, n_listeners, &app->connections);
        loop->server.ud = loop;
        loop->server.on_runtime_claim = ew__remote_claim;
        loop->server.on_runtime = ew__remote_changed;
        loop->server.on_runtime_answered = ew__remote_answered;
        loop->server.on_runtime_gone = ew__remote_gone;
        if (err != EW_OK)
            ew__app_telemetry_done(loop);
    }
    if (err != EW_OK) {
        ew__loop_close(&loop->loop, NULL, NULL);
        turn_until_closed(loop);
        ew__metrics_done(&loop->metrics);
        ew__call_context_done(&loop->calls);
        ew__loop_done(&loop->loop);
        return err;
    }
    ew__broadcast_inbox_init(&loop->broadcasts);
    ew__app_access_attach(loop);
    return EW_OK;
}

static void fail_start(ew_app *app, const ew__app_listener *listener, ew_err err) {
    (void)snprintf(app->error, sizeof app->error, "cannot listen on %s: %s", listener->address.text, ew_err_text(err));
}

/* Whoever started us has nothing more to say: what runs may finish. */
static void on_stdio_end(ew__server *server) {
    ew_app *app = ((ew__app_loop *)server->ud)->app;
    if (app->lifecycle.only_stdio && !atomic_load(&app->lifecycle.draining))
        ew__app_stop(app);
}

/* Some wires are carried by another: the one that a listener's connections begin with. */
static const ew__wire *prepare_site(const ew_app *app, const ew__app_listener *listener, ew__site *site) {
    const ew__wire *wire = listener->wire, *carrier = ew__wire_carrier(), *guest = ew__wire_guest();
    site->telemetry = ew_str_from(app->telemetry_url ? app->telemetry_url : ""); /* for runtimes that connect to us */
    if (!wire) {
        site->upgrade = ew__wire_upgrade();
        site->guest = guest ? guest->guest : NULL;
    } else if (wire->upgrade) { /* its WebSockets begin as HTTP, and nothing else is served */
        site->upgrade = wire;
        site->only_upgrade = true;
        return carrier;
    } else if (wire->guest && listener->address.kind != EW__ADDR_STDIO) {
        site->guest = wire->guest;
        site->only_guest = true;
        return carrier;
    }
    return wire;
}

/* The requests under /jobs of one loop; NULL: this listener does not serve them. */
static const ew__http_guest *jobs_guest(const ew_app *app, const ew__app_listener *listener, size_t loop) {
    bool serves = !listener->wire || listener->wire == ew__wire_carrier();
    return app->jobs && serves ? &app->jobs->http[loop].http.guest : NULL;
}

static ew_err bind_listener(ew_app *app, ew__app_listener *listener) {
    ew__site site = {.allow_hosts = (const char *const *)app->allow_hosts,
                     .scrape = &app->scrape,
                     .broadcast = app->n_loops > 1 ? &app->broadcast : NULL,
                     .instance = &app->instance,
                     .outbound = &app->outbound,
                     .final_statuses = ew__app_final_statuses(app),
                     .jobs = jobs_guest(app, listener, 0)};
    const ew__wire *wire = prepare_site(app, listener, &site);
    bool stdio = listener->address.kind == EW__ADDR_STDIO;
    ew_err err = stdio ? ew__server_stdio(&app->loops[0].server, wire, ew__wire_choose_stdio, &site)
                       : ew__address_probe(&listener->address);
    app->loops[0].server.on_stdio_end = on_stdio_end;
    for (size_t i = 0; i < app->n_loops && err == EW_OK && !stdio; i++) {
        site.loop = (unsigned)i;
        site.jobs = jobs_guest(app, listener, i);
        err = ew__server_listen(&app->loops[i].server, &listener->address, wire, &site,
                                listener->tls ? app->tls.listens : NULL);
    }
    if (err != EW_OK)
        fail_start(app, listener, err);
    return err;
}

static void *thread_main(void *arg) {
    ew__app_loop *loop = arg;
    ew__loop_run(&loop->loop);
    loop_ended(loop);
    return NULL;
}

static ew_err start_thread(ew__app_loop *loop) {
    loop->has_thread = ew__thread_start(&loop->thread, thread_main, loop);
    return loop->has_thread ? EW_OK : EW_EIO;
}

/* Undoes a start that failed before any thread ran: the handles are closed by running each loop once more. */
static void nothing(ew__server *server) {
    ew__app_loop *loop = server->ud;
    ew__loop_close(&loop->loop, NULL, NULL);
}

static void no_more(ew__app_loop *loop) { (void)loop; }

static void undo_start(ew_app *app, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ew__app_loop *loop = &app->loops[i];
        ew__loop_adopt_thread(&loop->loop);
        ew__app_connects_done(loop); /* first: a turn would dial */
        ew__parts_close(loop, no_more);
        ew__server_close(&loop->server, true, nothing);
        turn_until_closed(loop);
        loop_done(loop);
    }
    ew__free(app->env, app->loops, sizeof *app->loops * app->n_loops);
    app->loops = NULL;
    app->n_loops = 0;
}

static unsigned loop_count(const ew_app *app) {
    if (app->host)
        return 1;
    unsigned n = app->threads;
    if (n == 0)
        n = ew__cores();
    return n < 1 ? 1 : n > EW__THREADS_MAX ? EW__THREADS_MAX : n;
}

static ew_err make_loops(ew_app *app, size_t *ret_made) {
    app->n_loops = loop_count(app);
    app->loops = ew__zalloc(app->env, sizeof *app->loops * app->n_loops);
    if (!app->loops)
        return EW_ENOMEM;
    for (*ret_made = 0; *ret_made < app->n_loops; ++*ret_made) {
        ew_err err = init_loop(app, &app->loops[*ret_made]);
        if (err != EW_OK)
            return err;
    }
    return EW_OK;
}

static ew_err start_loops(ew_app *app) {
    pthread_mutex_lock(&app->lifecycle.lock);
    app->lifecycle.started = true;
    app->lifecycle.running = app->n_loops;
    pthread_mutex_unlock(&app->lifecycle.lock);
    if (app->host) {
        ew__loop_adopt_thread(&app->loops[0].loop);
        return EW_OK;
    }
    for (size_t i = 0; i < app->n_loops; i++) {
        if (start_thread(&app->loops[i]) == EW_OK)
            continue;
        pthread_mutex_lock(&app->lifecycle.lock);
        app->lifecycle.running -= app->n_loops - i; /* those never ran */
        pthread_mutex_unlock(&app->lifecycle.lock);
        if (i == 0)
            ew__app_jobs_never(app);
        for (size_t k = i; k < app->n_loops; k++) {
            ew__loop_adopt_thread(&app->loops[k].loop);
            atomic_store(&app->loops[k].close_sent, true);
            atomic_store(&app->loops[k].drain_sent, true);
            app->loops[k].abandoned = true;
        }
        (void)snprintf(app->error, sizeof app->error, "cannot start a thread");
        return EW_EIO;
    }
    return EW_OK;
}

/* Each start is another one for those who knew the last. */
static void name_instance(ew_app *app) {
    uint8_t bytes[EW__INSTANCE_ID_LEN / 2];
    app->env->random(app->env->ud, bytes, sizeof bytes);
    ew__hex(bytes, sizeof bytes, app->instance.id);
    app->instance.service = ew_str_from(app->name);
}

static size_t served_listeners(const ew_app *app) {
    size_t n = 0;
    for (size_t i = 0; i < app->n_listeners; i++)
        n += !app->listeners[i].for_peers;
    return n;
}

static bool has_stdio(const ew_app *app) {
    for (size_t i = 0; i < app->n_listeners; i++)
        if (app->listeners[i].address.kind == EW__ADDR_STDIO)
            return true;
    return false;
}

static ew_err start(ew_app *app) {
    if (served_listeners(app) == 0 && app->n_connects == 0 && !ew__app_works(app)) {
        ew_err err = ew__app_add_listener(app, DEFAULT_LISTENER);
        if (err != EW_OK)
            return err;
    }
    ew_err err = ew__app_tls_start(app);
    if (err == EW_OK)
        err = ew__app_access_start(app);
    if (err != EW_OK) {
        ew__app_access_stop(app);
        return err;
    }
    size_t made = 0;
    app->scrape.write = write_metrics;
    app->broadcast.send = ew__app_broadcast;
    app->outbound.open = ew__app_outbound_open;
    name_instance(app);
    bool stdio = served_listeners(app) == 1 && has_stdio(app);
    app->lifecycle.only_stdio = stdio && app->n_connects == 0;
    if ((stdio || served_listeners(app) == 0) && app->threads == 0)
        app->threads = 1; /* one connection lives on one loop */
    err = make_loops(app, &made);
    if (err == EW_OK)
        err = ew__app_jobs_open_http(app);
    for (size_t i = 0; i < app->n_listeners && err == EW_OK; i++)
        err = bind_listener(app, &app->listeners[i]);
    if (err == EW_OK)
        err = ew__app_connects_start(app);
    if (err == EW_OK)
        err = ew__app_sources_start(app);
    if (err == EW_OK)
        err = ew__app_jobs_start(app);
    if (err != EW_OK) {
        undo_start(app, made);
        ew__app_sources_stop(app);
        ew__app_jobs_reap(app);
        ew__app_access_stop(app);
        return err;
    }
    return start_loops(app);
}

ew_err ew__app_start(ew_app *app) {
    ew_err err = ew__app_may_change(app, "cannot start");
    return err == EW_OK ? ew__app_failed(app, start(app), "cannot start") : err;
}

/* ---- the end of all ---- */

/* All loops have ended: joins their threads and frees them, once. false: some of it must stay. */
static bool reap(ew_app *app) {
    bool clean = !app->workers || ew__workers_free(app->workers, GRACE_MS);
    app->workers = NULL;
    for (size_t i = 0; i < app->n_loops; i++) {
        if (app->loops[i].has_thread)
            pthread_join(app->loops[i].thread, NULL);
        if (app->loops[i].abandoned)
            clean = false;
    }
    if (!clean)
        return false;
    ew__app_sources_stop(app);
    ew__app_jobs_reap(app);
    for (size_t i = 0; i < app->n_loops; i++)
        loop_done(&app->loops[i]);
    ew__free(app->env, app->loops, sizeof *app->loops * app->n_loops);
    app->loops = NULL;
    app->n_loops = 0;
    ew__app_access_stop(app);
    return true;
}

ew_err ew__app_wait(ew_app *app) {
    if (!app->lifecycle.started || app->host)
        return EW_EINVAL;
    pthread_mutex_lock(&app->lifecycle.lock);
    while (app->lifecycle.running > 0)
        pthread_cond_wait(&app->lifecycle.changed, &app->lifecycle.lock);
    bool first = !app->lifecycle.stopped;
    app->lifecycle.stopped = true;
    pthread_mutex_unlock(&app->lifecycle.lock);
    if (first)
        app->lifecycle.leaked = !reap(app);
    return atomic_load(&app->lifecycle.cut) ? EW_ETIMEOUT : EW_OK;
}

bool ew__app_end(ew_app *app) {
    ew__app_stop(app);
    ew__app_stop(app); /* twice: at once */
    if (!app->host) {
        (void)ew__app_wait(app);
        return !app->lifecycle.leaked;
    }
    while (app->lifecycle.running > 0) /* on the host's thread, not in a callback: its loop is ours to turn */
        ew__loop_turn(&app->loops[0].loop, true);
    return reap(app);
}
