/*
 * endpoint/exporter.c: see exporter.h. One timer drives it: the next step, the time for an answer, the end of flushing.
 *
 * Calls come first. Exporting shares the loop's thread with them, and a text costs more than a small call; so it has a
 * credit of time that grows with a SHARE of the clock. When it is used up the next text waits; the owner's queue then
 * fills, and what does not fit is dropped there, cheaply.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/exporter.h"
#include <stdio.h>

#define CONNECT_MS 5000
#define ANSWER_MS 10000
#define BACKOFF_MS 500
#define BACKOFF_MAX_MS 30000
#define FAR_MS (3600 * 1000) /* nothing to do: look again, in vain */
#define BODY_MAX ((size_t)32 * 1024 * 1024)
#define BODY_KEEP ((size_t)256 * 1024) /* more memory than this is given back after a text */
#define TRIES 2

#define SHARE 32                 /* one part in so many of the loop's time */
#define CREDIT_MAX_NS EW__MS(10) /* after a quiet time: some hundred texts in a row */
#define CREDIT_NEXT_NS 100000    /* what is waited for when it is used up */
#define KERNEL_NS 12000          /* of an answer: waking up and reading, which we do not see ourselves */

static ew__executor *executor_of(ew__exporter *exporter) { return &exporter->loop->executor; }

static void step(ew__exporter *exporter);
static void on_timer(ew__timer *timer, uint64_t now);

/* ---- time ---- */

static void arm(ew__exporter *exporter, uint64_t at) {
    if (exporter->closing && at > exporter->flush_until)
        at = exporter->flush_until;
    (void)ew__timer_set(&executor_of(exporter)->timers, &exporter->timer, at, on_timer); /* a move: cannot fail */
}

static bool has_credit(ew__exporter *exporter, uint64_t now) {
    int64_t credit = exporter->credit_ns + (int64_t)((now - exporter->credited_at) / SHARE);
    exporter->credit_ns = credit > (int64_t)CREDIT_MAX_NS ? (int64_t)CREDIT_MAX_NS : credit;
    exporter->credited_at = now;
    return exporter->credit_ns > 0 || exporter->closing;
}

/* ---- what people are told ---- */

static void say(ew__exporter *exporter, ew_log_level level, const char *what, const char *detail) {
    const ew__export_target *at = &exporter->dialled;
    ew__log(executor_of(exporter)->env, level, "telemetry", "the telemetry server http%s://%s %s%s", at->tls ? "s" : "",
            at->authority, what, detail);
}

static void set_away(ew__exporter *exporter, bool away, const char *why) {
    if (exporter->away == away)
        return;
    exporter->away = away;
    if (away && atomic_fetch_add(&exporter->news->away, 1) == 0)
        say(exporter, EW_LOG_WARN, "is away; spans wait for it and are dropped beyond a limit: ", why);
    else if (!away && atomic_fetch_sub(&exporter->news->away, 1) == 1 && why)
        say(exporter, EW_LOG_INFO, "is back", why);
}

static void set_refusing(ew__exporter *exporter, bool refusing) {
    char status[16];
    if (exporter->refusing == refusing)
        return;
    exporter->refusing = refusing;
    (void)snprintf(status, sizeof status, "%d", exporter->ask.status);
    if (refusing && atomic_fetch_add(&exporter->news->refusing, 1) == 0)
        say(exporter, EW_LOG_WARN, "refuses spans, which are dropped: HTTP ", status);
    else if (!refusing)
        (void)atomic_fetch_sub(&exporter->news->refusing, 1);
}

/* ---- the text in hand ---- */

static bool has_text(ew__exporter *exporter) {
    if (!exporter->has_text) {
        exporter->has_text = exporter->source->next(exporter->ud, &exporter->body);
        exporter->tries = 0;
    }
    return exporter->has_text;
}

static void end_text(ew__exporter *exporter, bool sent) {
    if (!exporter->has_text)
        return;
    exporter->has_text = false;
    if (exporter->body.cap > BODY_KEEP)
        ew__buf_done(&exporter->body);
    exporter->source->told(exporter->ud, sent);
}

/* ---- the end ---- */

static void finish_shutting(ew__exporter *exporter) {
    void (*on_closed)(ew__exporter * exporter) = exporter->on_closed;
    ew__timer_stop(&executor_of(exporter)->timers, &exporter->timer);
    set_away(exporter, false, NULL);
    set_refusing(exporter, false);
    exporter->on_closed = NULL;
    if (on_closed)
        on_closed(exporter);
}

static void close_stream(ew__exporter *exporter) {
    exporter->state = EW__EXPORTER_CLOSING;
    exporter->ask.closed = true;
    ew__stream_close(&exporter->stream, EW_OK);
}

static void shut(ew__exporter *exporter) {
    if (exporter->shutting)
        return;
    exporter->shutting = true;
    end_text(exporter, false);
    switch ((ew__exporter_state)exporter->state) {
    case EW__EXPORTER_DOWN:
        finish_shutting(exporter);
        break;
    case EW__EXPORTER_DIALLING:
        ew__dial_cancel(exporter->dial);
        break;
    case EW__EXPORTER_UP:
    case EW__EXPORTER_WAITING:
        close_stream(exporter);
        break;
    case EW__EXPORTER_CLOSING:
        break;
    }
}

/* ---- failures ---- */

/* The server is not there: the next try is later, and later each time. */
static void back_off(ew__exporter *exporter, const char *why) {
    ew__executor *executor = executor_of(exporter);
    set_away(exporter, true, why);
    uint64_t ms = exporter->backoff_ms ? exporter->backoff_ms : BACKOFF_MS;
    exporter->backoff_ms = ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : ms * 2;
    ms = ms - ew__rng_next(&executor->rng) % (ms / 4); /* many loops are not to knock all at once */
    exporter->not_before = ew__executor_read_clock(executor) + EW__MS(ms);
}

/* No answer will come on this connection. The text gets another one, unless it has had it. */
static void lose_answer(ew__exporter *exporter, const char *why) {
    if (exporter->tries < TRIES)
        return;
    end_text(exporter, false);
    back_off(exporter, why);
}

/* ---- answers ---- */

static ew__exporter *exporter_of(ew__http_ask *ask) { return ew__container_of(ask, ew__exporter, ask); }

static void on_head(ew__http_ask *ask, const ew__http_head *head) {
    (void)ask;
    (void)head;
}

static void on_answer(ew__http_ask *ask) {
    ew__exporter *exporter = exporter_of(ask);
    bool sent = ask->status >= 200 && ask->status < 300;
    if (exporter->conn.out.bytes > 0 || exporter->stream.closing)
        ask->keep_alive = false;
    exporter->backoff_ms = exporter->not_before = 0;
    set_away(exporter, false, "");
    set_refusing(exporter, !sent);
    end_text(exporter, sent);
    exporter->state = EW__EXPORTER_UP;
}

static void on_broken(ew__http_ask *ask, ew_origin origin) {
    lose_answer(exporter_of(ask), origin == EW_ORIGIN_PROTOCOL ? "its answer is no HTTP"
                                  : origin == EW_ORIGIN_LOCAL  ? "out of memory"
                                                               : "it closed the connection without an answer");
}

static const ew__http_ask_ops ask_ops = {.head = on_head, .end = on_answer, .broken = on_broken};

/* ---- the connection ---- */

static void conn_send(ew__conn *conn) {
    ew__stream_flush(&ew__container_of(conn, ew__exporter, conn)->stream); /* now: what it costs is ours */
}

static void conn_abort(ew__conn *conn) { close_stream(ew__container_of(conn, ew__exporter, conn)); }

static const ew__conn_ops conn_ops = {.send = conn_send, .abort = conn_abort};

static void on_data(ew__stream *stream, const uint8_t *bytes, size_t n) {
    ew__exporter *exporter = ew__container_of(stream, ew__exporter, stream);
    uint64_t before = executor_of(exporter)->now;
    ew__http_ask_input(&exporter->ask, bytes, n);
    if (exporter->state == EW__EXPORTER_UP)
        step(exporter);
    exporter->credit_ns -= (int64_t)(ew__executor_read_clock(executor_of(exporter)) - before) + KERNEL_NS;
}

static void on_eof(ew__stream *stream) { ew__http_ask_eof(&ew__container_of(stream, ew__exporter, stream)->ask); }

/* There is no connection, or no more. */
static void detach(ew__exporter *exporter, ew_err why) {
    ew__http_ask_gone(&exporter->ask, why);
    ew__out_done(&exporter->conn.out);
    exporter->state = EW__EXPORTER_DOWN;
}

static void on_closed(ew__stream *stream, ew_err why) {
    ew__exporter *exporter = ew__container_of(stream, ew__exporter, stream);
    bool waiting = exporter->state == EW__EXPORTER_WAITING; /* the stream broke by itself */
    detach(exporter, why);
    if (waiting && !exporter->shutting)
        lose_answer(exporter, ew_err_text(why));
    if (exporter->shutting)
        finish_shutting(exporter);
    else
        step(exporter);
}

static uint8_t *on_reserve(ew__stream *stream, size_t *ret_size) {
    (void)stream;
    (void)ret_size;
    return NULL;
}

static void on_drained(ew__stream *stream) { (void)stream; }

static const ew__stream_events events = {
    .reserve = on_reserve, .data = on_data, .eof = on_eof, .drained = on_drained, .closed = on_closed};

/* ---- connecting ---- */

static void on_dialled(ew__stream *stream, ew_err err, const char *detail) {
    ew__exporter *exporter = ew__container_of(stream, ew__exporter, stream);
    exporter->dial = NULL;
    if (err == EW_OK) {
        exporter->state = EW__EXPORTER_UP;
        ew__stream_start(stream, exporter->loop, &events, &exporter->conn.out);
        if (exporter->shutting)
            close_stream(exporter);
        else
            step(exporter);
        return;
    }
    detach(exporter, err);
    if (exporter->shutting) {
        finish_shutting(exporter);
        return;
    }
    if (!exporter->stale)
        back_off(exporter, detail);
    step(exporter);
}

/* Makes the private connection, which has no stream yet. */
static ew_err attach(ew__exporter *exporter) {
    ew__executor *executor = executor_of(exporter);
    memset(&exporter->stream, 0, sizeof exporter->stream);
    exporter->conn = (ew__conn){.ops = &conn_ops, .executor = executor};
    ew__out_init(&exporter->conn.out, &executor->blocks);
    memset(&exporter->ask, 0, sizeof exporter->ask);
    exporter->ask.peer = (ew__peer){.conn = &exporter->conn, .role = EW__CALL};
    return ew__http_ask_init(&exporter->ask, &ask_ops, exporter->reading);
}

static void dial(ew__exporter *exporter) {
    exporter->dialled = exporter->aim;
    exporter->stale = false;
    ew__where where = {.kind = EW__WHERE_TCP,
                       .port = exporter->dialled.port,
                       .host = exporter->dialled.host,
                       .loopback_only = exporter->dialled.loopback_only,
                       .tls = exporter->dialled.tls ? exporter->tls : NULL,
                       .tls_http = true};
    if (attach(exporter) == EW_OK &&
        ew__dial_start(exporter->loop, &exporter->stream, &where, CONNECT_MS, on_dialled, &exporter->dial) == EW_OK) {
        exporter->state = EW__EXPORTER_DIALLING;
        return;
    }
    back_off(exporter, "out of memory");
    arm(exporter, exporter->not_before);
}

/* ---- sending ---- */

static void keep(void *ud) { (void)ud; /* the body stays in hand until its answer comes */ }

static void post(ew__exporter *exporter) {
    const ew__export_target *aim = &exporter->dialled;
    ew__out *out = &exporter->conn.out;
    exporter->tries++;
    exporter->state = EW__EXPORTER_WAITING;
    exporter->answer_until = executor_of(exporter)->now + EW__MS(ANSWER_MS);
    arm(exporter, exporter->answer_until);
    ew__http_write_post(out, ew_str_from(aim->path), ew_str_from(aim->authority), ew__str(NULL, 0), exporter->body.len);
    ew__out_ref(out, exporter->body.ptr, exporter->body.len, keep, NULL);
    ew__http_ask_send(&exporter->ask);
}

/* Does what can be done now, or sets the timer for when something can. */
static void step(ew__exporter *exporter) {
    uint64_t now = executor_of(exporter)->now;
    if (!exporter->aimed || (exporter->state != EW__EXPORTER_DOWN && exporter->state != EW__EXPORTER_UP))
        return;
    if (exporter->closing && exporter->away) {
        shut(exporter);
    } else if (exporter->stale && exporter->state == EW__EXPORTER_UP) {
        close_stream(exporter);
    } else if (now < exporter->not_before) {
        arm(exporter, exporter->not_before);
    } else if (!has_credit(exporter, now)) {
        arm(exporter, now + (uint64_t)(CREDIT_NEXT_NS - exporter->credit_ns) * SHARE);
    } else if (!has_text(exporter)) {
        if (exporter->closing)
            shut(exporter);
    } else if (exporter->state == EW__EXPORTER_DOWN) {
        dial(exporter);
    } else {
        post(exporter);
    }
}

static void on_timer(ew__timer *timer, uint64_t now) {
    ew__exporter *exporter = ew__container_of(timer, ew__exporter, timer);
    arm(exporter, now + EW__MS(FAR_MS)); /* its place in the heap has just become free */
    if (exporter->closing && now >= exporter->flush_until) {
        shut(exporter);
    } else if (exporter->state == EW__EXPORTER_WAITING) {
        if (now < exporter->answer_until) {
            arm(exporter, exporter->answer_until);
            return;
        }
        lose_answer(exporter, "it does not answer");
        close_stream(exporter);
    } else {
        uint64_t before = ew__executor_read_clock(executor_of(exporter));
        step(exporter);
        exporter->credit_ns -= (int64_t)(ew__executor_read_clock(executor_of(exporter)) - before);
    }
}

/* ---- for the owner ---- */

void ew__exporter_init(ew__exporter *exporter, ew__loop *loop, const ew__exporter_source *source, void *ud,
                       ew__exporter_news *news) {
    memset(exporter, 0, sizeof *exporter);
    exporter->loop = loop;
    exporter->source = source;
    exporter->ud = ud;
    exporter->news = news;
    exporter->credit_ns = (int64_t)CREDIT_MAX_NS;
    ew__buf_init(&exporter->body, loop->executor.env, BODY_MAX);
}

static ew_err prepare(ew__exporter *exporter) {
    ew__executor *executor = executor_of(exporter);
    if (!exporter->reading)
        exporter->reading = ew__zalloc(executor->env, sizeof *exporter->reading);
    if (!exporter->reading)
        return EW_ENOMEM;
    return ew__timer_set(&executor->timers, &exporter->timer, executor->now + EW__MS(FAR_MS), on_timer);
}

static bool is_same(const ew__export_target *a, const ew__export_target *b) {
    return strcmp(a->authority, b->authority) == 0 && strcmp(a->path, b->path) == 0 &&
           a->loopback_only == b->loopback_only && a->tls == b->tls;
}

ew_err ew__exporter_aim(ew__exporter *exporter, const ew__export_target *aim) {
    if (exporter->closing)
        return EW_OK;
    if (exporter->aimed && is_same(aim, &exporter->aim))
        return EW_OK;
    ew_err err = exporter->aimed ? EW_OK : prepare(exporter);
    if (err != EW_OK)
        return err;
    exporter->stale = exporter->aimed;
    exporter->aimed = true;
    exporter->aim = *aim;
    exporter->not_before = exporter->backoff_ms = 0;
    if (exporter->state == EW__EXPORTER_DIALLING)
        ew__dial_cancel(exporter->dial);
    else
        ew__exporter_wake(exporter);
    return EW_OK;
}

void ew__exporter_wake(ew__exporter *exporter) {
    bool idle = exporter->state == EW__EXPORTER_DOWN || exporter->state == EW__EXPORTER_UP;
    if (exporter->aimed && idle && !exporter->shutting)
        arm(exporter,
            exporter->not_before > executor_of(exporter)->now ? exporter->not_before : executor_of(exporter)->now);
}

void ew__exporter_close(ew__exporter *exporter, uint64_t flush_ms, void (*on_closed_fn)(ew__exporter *exporter)) {
    ew__executor *executor = executor_of(exporter);
    if (!exporter->closing) {
        exporter->closing = true;
        exporter->on_closed = on_closed_fn;
        exporter->flush_until = ew__executor_read_clock(executor) + EW__MS(flush_ms);
    }
    if (!exporter->aimed || flush_ms == 0 || exporter->away) {
        shut(exporter);
        return;
    }
    arm(exporter, exporter->flush_until);
    step(exporter);
}

void ew__exporter_done(ew__exporter *exporter) {
    const ew_env *env = executor_of(exporter)->env;
    ew__timer_stop(&executor_of(exporter)->timers, &exporter->timer);
    ew__buf_done(&exporter->body);
    ew__free(env, exporter->reading, sizeof *exporter->reading);
}
