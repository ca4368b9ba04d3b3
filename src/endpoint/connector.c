/*
 * endpoint/connector.c: see connector.h. Delays are those of Genkit's own runtimes (0.5 s doubling to 5 s), with chance
 * in them so that many programs do not all come back in the same moment.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/connector.h"

#define DELAY_MS 500
#define DELAY_MAX_MS 5000
#define STEADY_MS 1000  /* a connection that was good for so long starts the delays anew */
#define FAR_MS 3600000u /* the timer when it means nothing */

static void check_closed(ew__connector *connector) {
    if (!connector->closing || connector->link || !connector->on_closed)
        return;
    void (*on_closed)(ew__connector * connector) = connector->on_closed;
    connector->on_closed = NULL;
    ew__timer_stop(&connector->loop->executor.timers, &connector->timer);
    on_closed(connector);
}

/* ---- what people are told: the first failure, the success, the loss; never each attempt ---- */

static void say_away(ew__connector *connector, const char *what, const char *detail) {
    if (connector->told || connector->site.draining)
        return;
    connector->told = true;
    ew__log(connector->loop->executor.env, EW_LOG_WARN, "connect", "%s %.*s: %s; trying again until it is there", what,
            (int)connector->site.authority.len, connector->site.authority.ptr, detail);
}

static void say_connected(ew__connector *connector) {
    connector->told = false;
    ew__log(connector->loop->executor.env, EW_LOG_INFO, "connect", "connected to %.*s",
            (int)connector->site.authority.len, connector->site.authority.ptr);
}

/* ---- attempts ---- */

static void on_timer(ew__timer *timer, uint64_t now);

static ew_err set_timer(ew__connector *connector, uint64_t in_ms, bool waiting) {
    ew__executor *executor = &connector->loop->executor;
    connector->waiting = waiting;
    return ew__timer_set(&executor->timers, &connector->timer, executor->now + EW__MS(in_ms), on_timer);
}

/* A fifth more or less than the delay, which then grows. */
static void try_later(ew__connector *connector) {
    if (connector->closing || connector->site.draining)
        return;
    uint64_t percent = 80 + ew__rng_next(&connector->loop->executor.rng) % 41;
    uint64_t delay_ms = connector->delay_ms * percent / 100;
    connector->delay_ms = connector->delay_ms * 2 < DELAY_MAX_MS ? connector->delay_ms * 2 : DELAY_MAX_MS;
    (void)set_timer(connector, delay_ms, true); /* a move: cannot fail */
}

static void on_link_ready(ew__link *link) {
    ew__connector *connector = link->owner_ud;
    if (connector->opened_at)
        return;
    connector->opened_at = connector->loop->executor.now;
    say_connected(connector);
}

/* A wire need not say when its peer is ready: who has answered and was not dropped for it is one. */
static void check_opened(ew__connector *connector) {
    if (!connector->link || connector->dial || connector->opened_at)
        return;
    if (connector->link->stream.bytes_in > 0)
        on_link_ready(connector->link);
    else
        (void)set_timer(connector, STEADY_MS, false); /* a move: cannot fail */
}

static void on_link_closed(ew__link *link, ew_err why) {
    ew__connector *connector = link->owner_ud;
    const char *detail = why == EW_OK || why == EW_ECLOSED ? "it closed the connection" : ew_err_text(why);
    connector->link = NULL;
    if (connector->opened_at) {
        if (connector->loop->executor.now - connector->opened_at >= EW__MS(STEADY_MS))
            connector->delay_ms = DELAY_MS;
        say_away(connector, "lost", detail);
    } else {
        say_away(connector, "no manager at", detail);
    }
    connector->opened_at = 0;
    try_later(connector);
    check_closed(connector);
}

static const ew__link_owner owner = {.ready = on_link_ready, .closed = on_link_closed};

static void on_dialled(ew__stream *stream, ew_err err, const char *detail) {
    ew__link *link = ew__container_of(stream, ew__link, stream);
    ew__connector *connector = link->owner_ud;
    connector->dial = NULL;
    if (err == EW_OK) {
        ew__count(&connector->traffic.dialled, 1);
        ew__link_start(link, connector->loop, connector->wire, EW__SERVE);
        (void)set_timer(connector, STEADY_MS, false);       /* a move: cannot fail */
        if (connector->closing || connector->site.draining) /* it was cancelled too late */
            ew__link_close(link, EW_OK);
        return;
    }
    connector->link = NULL;
    ew__link_discard(link);
    say_away(connector, "cannot connect to", detail);
    try_later(connector);
    check_closed(connector);
}

static ew_err dial(ew__connector *connector) {
    ew__loop *loop = connector->loop;
    ew__link *link =
        ew__link_new_ours(loop, &connector->site, &connector->scratches, &connector->traffic, &owner, connector);
    if (!link)
        return EW_ENOMEM;
    ew_err err = ew__dial_start(loop, &link->stream, &connector->where, loop->executor.limits->connect_ms, on_dialled,
                                &connector->dial);
    if (err != EW_OK)
        ew__link_discard(link);
    else
        connector->link = link;
    return err;
}

static void on_timer(ew__timer *timer, uint64_t now) {
    ew__connector *connector = ew__container_of(timer, ew__connector, timer);
    bool due = connector->waiting;
    (void)now;
    (void)set_timer(connector, FAR_MS, false); /* its place has just become free: cannot fail */
    if (connector->closing || connector->site.draining)
        return;
    check_opened(connector);
    if (due && dial(connector) != EW_OK) {
        say_away(connector, "cannot connect to", "out of memory");
        try_later(connector);
    }
}

/* ---- life ---- */

ew_err ew__connector_init(ew__connector *connector, ew__loop *loop, const ew__wire *wire, const ew__site *site,
                          ew__registry *registry, const ew__where *where) {
    memset(connector, 0, sizeof *connector);
    if (!(wire->caps & EW__CAN_SERVE))
        return EW_EUNSUPPORTED;
    connector->loop = loop;
    connector->wire = wire;
    connector->registry = registry;
    connector->site = *site;
    connector->site.actions = ew__registry_get(registry);
    connector->where = *where;
    connector->delay_ms = DELAY_MS;
    return EW_OK;
}

ew_err ew__connector_start(ew__connector *connector) {
    ew__executor_read_clock(&connector->loop->executor);
    return set_timer(connector, 0, true);
}

void ew__connector_refresh(ew__connector *connector) {
    ew__actions *old = connector->site.actions;
    connector->site.actions = ew__registry_get(connector->registry);
    ew__actions_unref(old);
}

void ew__connector_drain(ew__connector *connector) {
    ew__link *link = connector->link;
    connector->site.draining = true;
    connector->waiting = false;
    if (connector->dial)
        ew__dial_cancel(connector->dial);
    else if (link && link->peer && link->peer->wire->drain)
        link->peer->wire->drain(link->peer);
}

void ew__connector_close(ew__connector *connector, bool now, void (*on_closed)(ew__connector *connector)) {
    if (!connector->closing) {
        connector->closing = true;
        connector->on_closed = on_closed;
    }
    connector->site.draining = true;
    connector->waiting = false;
    if (connector->dial)
        ew__dial_cancel(connector->dial);
    else if (connector->link && now)
        ew__link_close(connector->link, EW_OK);
    else if (connector->link)
        ew__link_finish(connector->link);
    check_closed(connector);
}

void ew__connector_done(ew__connector *connector) {
    ew__timer_stop(&connector->loop->executor.timers, &connector->timer);
    ew__actions_unref(connector->site.actions);
    ew__scratches_done(&connector->scratches, connector->loop->executor.env);
}
