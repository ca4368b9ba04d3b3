/*
 * gateway/telemetry.c: see telemetry.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"

#define FLUSH_MS 500

/* ---- between spans and exporter ---- */

static bool next_text(void *ud, ew__buf *body) { return ew__spans_next(ud, body); }

static void told(void *ud, bool sent) { ew__spans_told(ud, sent); }

static const ew__exporter_source source = {.next = next_text, .told = told};

static void on_wake(ew__spans *spans, void *ud) {
    (void)spans;
    ew__exporter_wake(ud);
}

/* ---- the program's own ---- */

void ew__app_telemetry_configure(ew_app *app, const char *url, bool realtime) {
    ew__app_telemetry *telemetry = &app->telemetry;
    telemetry->own = url != NULL && url[0] != '\0';
    telemetry->problem = NULL;
    telemetry->realtime = realtime;
    telemetry->aimed = telemetry->own &&
                       ew__export_target_parse(ew_str_from(url), false, &telemetry->aim, &telemetry->problem) == EW_OK;
}

/* ---- on a loop ---- */

static ew_err aim(ew__app_loop *loop, const ew__export_target *at) {
    ew_err err = ew__exporter_aim(&loop->tracing.exporter, at);
    if (err == EW_OK)
        ew__spans_enable(&loop->tracing.spans, true, loop->app->telemetry.realtime);
    return err;
}

ew_err ew__app_telemetry_init(ew__app_loop *loop) {
    ew__app_tracing *tracing = &loop->tracing;
    ew__app_telemetry *telemetry = &loop->app->telemetry;
    ew__spans_init(&tracing->spans, &loop->loop.executor);
    ew__exporter_init(&tracing->exporter, &loop->loop, &source, &tracing->spans, &telemetry->news);
    tracing->exporter.tls = loop->app->tls.dials;
    tracing->spans.wake = on_wake;
    tracing->spans.ud = &tracing->exporter;
    if (telemetry->problem && !atomic_exchange(&telemetry->complained, true))
        ew__log(loop->app->env, EW_LOG_WARN, "telemetry", "no spans are sent: %s", telemetry->problem);
    ew_err err = telemetry->aimed ? aim(loop, &telemetry->aim) : EW_OK;
    if (err != EW_OK)
        ew__app_telemetry_done(loop);
    return err;
}

static void on_exporter_closed(ew__exporter *exporter) {
    ew__app_loop *loop = ew__container_of(exporter, ew__app_loop, tracing.exporter);
    ew__spans_enable(&loop->tracing.spans, false, false);
    loop->tracing.on_closed(loop);
}

void ew__app_telemetry_close(ew__app_loop *loop, void (*on_closed)(ew__app_loop *loop)) {
    bool again = loop->tracing.on_closed != NULL;
    loop->tracing.on_closed = on_closed;
    ew__exporter_close(&loop->tracing.exporter, again ? 0 : FLUSH_MS, on_exporter_closed);
}

void ew__app_telemetry_done(ew__app_loop *loop) {
    ew__exporter_done(&loop->tracing.exporter);
    ew__spans_done(&loop->tracing.spans);
}

void ew__app_telemetry_count(const ew_app *app, uint64_t *ret_exported, uint64_t *ret_dropped) {
    *ret_exported = *ret_dropped = 0;
    for (size_t i = 0; i < app->n_loops; i++) {
        const ew__spans *spans = &app->loops[i].tracing.spans;
        *ret_exported += atomic_load_explicit(&spans->exported, memory_order_relaxed);
        *ret_dropped += atomic_load_explicit(&spans->dropped, memory_order_relaxed);
    }
}

/* ---- a peer's ---- */

static void aim_loop(ew__task *task) {
    ew__app_loop *loop = ew__container_of(task, ew__app_loop, tracing.aim_task);
    ew_app *app = loop->app;
    atomic_store(&loop->tracing.aim_sent, false); /* first: another aim from now on posts again */
    pthread_mutex_lock(&app->lifecycle.lock);
    ew__export_target at = app->telemetry.aim;
    pthread_mutex_unlock(&app->lifecycle.lock);
    if (aim(loop, &at) != EW_OK)
        ew__log(app->env, EW_LOG_WARN, "telemetry", "no spans are sent: out of memory");
}

void ew__app_telemetry_pushed(ew_app *app, ew_str url) {
    ew__app_telemetry *telemetry = &app->telemetry;
    const char *problem = NULL;
    ew__export_target at;
    if (telemetry->own || url.len == 0)
        return;
    if (ew__export_target_parse(url, true, &at, &problem) != EW_OK) {
        if (!atomic_exchange(&telemetry->complained, true)) /* a peer is not to fill the log */
            ew__log(app->env, EW_LOG_WARN, "telemetry", "a peer's telemetry server is not used: %s", problem);
        return;
    }
    pthread_mutex_lock(&app->lifecycle.lock); /* the loops are freed only after `running` has become zero under it */
    telemetry->aim = at;
    telemetry->aimed = true;
    for (size_t i = 0; i < app->n_loops && app->lifecycle.started && app->lifecycle.running > 0; i++) {
        ew__app_tracing *tracing = &app->loops[i].tracing;
        if (atomic_exchange(&tracing->aim_sent, true))
            continue;
        tracing->aim_task.fn = aim_loop;
        ew__executor_post(&app->loops[i].loop.executor, &tracing->aim_task);
    }
    pthread_mutex_unlock(&app->lifecycle.lock);
}
