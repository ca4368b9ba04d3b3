/*
 * endpoint/link.c: see link.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/link.h"
#include "io/tls.h"

static ew__link *link_of_stream(ew__stream *stream) { return ew__container_of(stream, ew__link, stream); }

static ew__link *link_of_conn(ew__conn *conn) { return ew__container_of(conn, ew__link, conn); }

/* ---- shared memory of wires ---- */

void *ew__scratch_get(ew__scratches *scratches, const ew_env *env, const ew__wire *wire) {
    const size_t n = sizeof scratches->wire / sizeof *scratches->wire;
    for (size_t i = 0; i < n; i++) {
        if (scratches->wire[i] == wire)
            return scratches->memory[i];
        if (scratches->wire[i])
            continue;
        scratches->memory[i] = ew__zalloc(env, wire->scratch_size ? wire->scratch_size : 1);
        if (scratches->memory[i])
            scratches->wire[i] = wire;
        return scratches->memory[i];
    }
    return NULL;
}

void *ew__scratch_find(const ew__scratches *scratches, const ew__wire *wire) {
    for (size_t i = 0; i < sizeof scratches->wire / sizeof *scratches->wire; i++)
        if (scratches->wire[i] == wire)
            return scratches->memory[i];
    return NULL;
}

void ew__scratches_done(ew__scratches *scratches, const ew_env *env) {
    for (size_t i = 0; i < sizeof scratches->wire / sizeof *scratches->wire; i++) {
        const ew__wire *wire = scratches->wire[i];
        if (!wire)
            continue;
        if (wire->scratch_done)
            wire->scratch_done(scratches->memory[i]);
        ew__free(env, scratches->memory[i], wire->scratch_size ? wire->scratch_size : 1);
    }
}

/* ---- the connection as the wire sees it ---- */

static void conn_send(ew__conn *conn) {
    if (EW__UNLIKELY(conn->unhurried))
        ew__stream_send_soon(&link_of_conn(conn)->stream);
    else
        ew__stream_send(&link_of_conn(conn)->stream);
}
static void conn_hurry(ew__conn *conn) { ew__stream_hurry(&link_of_conn(conn)->stream); }
static void conn_read(ew__conn *conn, bool on) { ew__stream_read(&link_of_conn(conn)->stream, on); }
static void conn_finish(ew__conn *conn) { ew__stream_finish(&link_of_conn(conn)->stream); }
static void conn_abort(ew__conn *conn) { ew__stream_close(&link_of_conn(conn)->stream, EW_OK); }

static void conn_ready(ew__conn *conn) {
    ew__link *link = link_of_conn(conn);
    if (link->owner->ready)
        link->owner->ready(link);
}

static const char *conn_greet(ew__conn *conn, const ew__runtime_identity *who) {
    ew__link *link = link_of_conn(conn);
    return link->owner->greet ? link->owner->greet(link, who) : NULL;
}

static ew_err conn_one_shot(ew__conn *conn, const void *bytes, size_t n) {
    ew__link *link = link_of_conn(conn);
    return link->owner->one_shot ? link->owner->one_shot(link, bytes, n) : EW_EBUSY;
}

static ew_err conn_again(ew__conn *conn, ew_call *call) {
    ew__link *link = link_of_conn(conn);
    return link->owner->again ? link->owner->again(link, call) : EW_EBUSY;
}

static void conn_acknowledge(ew__conn *conn) { ew__stream_acknowledge(&link_of_conn(conn)->stream); }

static void *conn_shared(ew__conn *conn, const ew__wire *wire) {
    return ew__scratch_get(link_of_conn(conn)->scratches, conn->executor->env, wire);
}

static void conn_become(ew__conn *conn, const ew__wire *wire, ew__role role, const uint8_t *rest, size_t n);

static const ew__conn_ops conn_ops = {.send = conn_send,
                                      .hurry = conn_hurry,
                                      .read = conn_read,
                                      .finish = conn_finish,
                                      .abort = conn_abort,
                                      .ready = conn_ready,
                                      .greet = conn_greet,
                                      .become = conn_become,
                                      .one_shot = conn_one_shot,
                                      .again = conn_again,
                                      .acknowledge = conn_acknowledge,
                                      .shared = conn_shared};

/* ---- which wire ---- */

static ew_err attach(ew__link *link, const ew__wire *wire, ew__role role) {
    const ew_env *env = link->conn.executor->env;
    size_t size = role == EW__SERVE ? wire->serve_size : wire->call_size;
    link->conn.scratch = ew__scratch_get(link->scratches, env, wire);
    ew__peer *peer = link->conn.scratch ? ew__zalloc(env, size) : NULL;
    if (!peer)
        return EW_ENOMEM;
    peer->wire = wire;
    peer->conn = &link->conn;
    peer->role = role;
    ew_err err = wire->init(peer);
    if (err != EW_OK) {
        ew__free(env, peer, size);
        return err;
    }
    link->peer = peer;
    if (EW__UNLIKELY(link->tap != NULL))
        ew__tap_set_wire(link->tap, wire);
    return EW_OK;
}

static void detach(ew__link *link, ew_err why) {
    const ew__wire *wire = link->peer->wire;
    size_t size = link->peer->role == EW__SERVE ? wire->serve_size : wire->call_size;
    wire->gone(link->peer, why);
    ew__free(link->conn.executor->env, link->peer, size);
    link->peer = NULL;
}

/*
 * The wire whose first bytes these are. The first wire of the table is the fallback: it gets what no other claims,
 * and so answers strangers in its own language. NULL: not clear yet.
 */
static const ew__wire *recognise(const uint8_t *bytes, size_t n, bool decide) {
    const ew__wire *const *wires = ew__wires();
    bool unclear = false;
    for (size_t i = 1; wires[i]; i++) {
        int match = wires[i]->sniff(bytes, n);
        if (match > 0)
            return wires[i];
        unclear = unclear || match == 0;
    }
    return unclear && !decide ? NULL : wires[0];
}

static void becoming_data(ew__link *link, const uint8_t *bytes, size_t n);

static void deliver(ew__link *link, const uint8_t *bytes, size_t n) {
    if (EW__UNLIKELY(link->becoming != NULL))
        becoming_data(link, bytes, n);
    else
        link->peer->wire->input(link->peer, bytes, n);
}

static void begin(ew__link *link, const ew__wire *wire) {
    ew__timer_stop(&link->conn.executor->timers, &link->sniffing);
    if (attach(link, wire, EW__SERVE) != EW_OK) {
        ew__stream_close(&link->stream, EW_ENOMEM);
        return;
    }
    if (link->n_sniffed)
        link->peer->wire->input(link->peer, link->sniffed, link->n_sniffed);
}

/* The first bytes, as long as they do not tell the wire. */
struct ew__choosing {
    ew__choose_wire choose;
    ew__buf heard;
};

static void choosing_end(ew__link *link) {
    struct ew__choosing *choosing = link->choosing;
    if (!choosing)
        return;
    link->choosing = NULL;
    ew__buf_done(&choosing->heard);
    ew__free(link->conn.executor->env, choosing, sizeof *choosing);
}

/* It is clear, or must be: goes on with the bytes that were kept. */
static void choose(ew__link *link, bool last) {
    struct ew__choosing *choosing = link->choosing;
    ew__buf *heard = &choosing->heard;
    const uint8_t *bytes = (const uint8_t *)heard->ptr;
    const ew__wire *wire = choosing->choose(bytes, heard->len, last || heard->len >= EW__CHOICE_BYTES);
    if (!wire)
        return;
    begin(link, wire);
    if (link->peer)
        deliver(link, bytes, heard->len);
    choosing_end(link);
}

static void on_sniff_timeout(ew__timer *timer, uint64_t now) {
    ew__link *link = ew__container_of(timer, ew__link, sniffing);
    (void)now;
    if (link->choosing)
        choose(link, true);
    else if (link->n_sniffed)
        begin(link, recognise(link->sniffed, link->n_sniffed, true));
    else
        ew__stream_close(&link->stream, EW_ETIMEOUT);
}

/* There is a time for the rest of what has begun, not for the first byte. */
static void hear(ew__link *link, const uint8_t *bytes, size_t n) {
    ew__executor *executor = link->conn.executor;
    uint64_t at = executor->now + EW__MS(executor->limits->head_ms);
    ew_err err = ew__buf_add(&link->choosing->heard, bytes, n);
    if (err == EW_OK && !ew__timer_active(&link->sniffing))
        err = ew__timer_set(&executor->timers, &link->sniffing, at, on_sniff_timeout);
    if (err == EW_OK)
        choose(link, false);
    else
        ew__stream_close(&link->stream, EW_ENOMEM);
}

static void sniff(ew__link *link, const uint8_t *bytes, size_t n) {
    size_t room = sizeof link->sniffed - link->n_sniffed;
    size_t take = n < room ? n : room;
    const ew__wire *wire;
    if (link->n_sniffed == 0) { /* the usual case: look at the bytes where they are */
        wire = recognise(bytes, n, take < n);
        if (wire) {
            begin(link, wire);
            if (link->peer)
                deliver(link, bytes, n);
            return;
        }
    }
    memcpy(link->sniffed + link->n_sniffed, bytes, take);
    link->n_sniffed = (uint8_t)(link->n_sniffed + take);
    wire = recognise(link->sniffed, link->n_sniffed, take < n);
    if (!wire) {
        if (ew__timer_active(&link->sniffing) && link->n_sniffed > take)
            return;
        uint64_t at = link->conn.executor->now + EW__MS(link->conn.executor->limits->head_ms);
        if (ew__timer_set(&link->conn.executor->timers, &link->sniffing, at, on_sniff_timeout) != EW_OK)
            ew__stream_close(&link->stream, EW_ENOMEM);
        return;
    }
    begin(link, wire);
    if (link->peer && n > take)
        deliver(link, bytes + take, n - take);
}

/* ---- another wire ---- */

/*
 * From conn_become until the next turn. The present peer asks for it from inside its own functions, so it can be freed
 * only when they have returned.
 */
struct ew__becoming {
    ew__timer timer; /* due at once */
    ew__link *link;
    const ew__wire *wire;
    ew__role role;
    bool eof;     /* came meanwhile */
    ew__buf rest; /* the new peer's first bytes; bounded by becoming_data: it stops reading */
};

static void becoming_end(ew__link *link) {
    struct ew__becoming *becoming = link->becoming;
    if (!becoming)
        return;
    link->becoming = NULL;
    ew__timer_stop(&link->conn.executor->timers, &becoming->timer);
    ew__buf_done(&becoming->rest);
    ew__free(link->conn.executor->env, becoming, sizeof *becoming);
}

static void becoming_data(ew__link *link, const uint8_t *bytes, size_t n) {
    ew__buf *rest = &link->becoming->rest;
    if (ew__buf_add(rest, bytes, n) != EW_OK)
        ew__stream_close(&link->stream, EW_ENOMEM);
    else if (rest->len >= EW__READ_BUFFER)
        ew__stream_read(&link->stream, false);
}

static void tell_eof(ew__link *link) {
    if (link->peer)
        link->peer->wire->eof(link->peer);
    else
        ew__stream_close(&link->stream, EW_OK);
    if (link->owner->eof)
        link->owner->eof(link);
}

/* The new peer is there: what has come since it was asked for, in the order in which it came. */
static void catch_up(ew__link *link, const ew__buf *rest, bool eof) {
    const ew__wire *wire = link->peer->wire;
    if (rest->len && !link->stream.closing)
        wire->input(link->peer, (const uint8_t *)rest->ptr, rest->len);
    if (link->stream.closing || link->stream.finishing)
        return;
    if (eof)
        tell_eof(link);
    else if (link->conn.site->draining && wire->drain)
        wire->drain(link->peer); /* the owner told the former peer, which did not mind any more */
}

static void on_become(ew__timer *timer, uint64_t now) {
    struct ew__becoming *becoming = ew__container_of(timer, struct ew__becoming, timer);
    ew__link *link = becoming->link;
    (void)now;
    if (link->stream.closing || link->stream.finishing) {
        becoming_end(link);
        return;
    }
    detach(link, EW_OK);
    link->heard = false;
    link->conn.upgraded = true;
    if (!becoming->eof)
        ew__stream_read(&link->stream, true); /* what the former peer or a full rest has stopped */
    link->becoming = NULL;
    ew_err err = attach(link, becoming->wire, becoming->role);
    if (err == EW_OK)
        catch_up(link, &becoming->rest, becoming->eof);
    else
        ew__stream_close(&link->stream, err);
    ew__buf_done(&becoming->rest);
    ew__free(link->conn.executor->env, becoming, sizeof *becoming);
}

static void conn_become(ew__conn *conn, const ew__wire *wire, ew__role role, const uint8_t *rest, size_t n) {
    ew__link *link = link_of_conn(conn);
    ew__executor *executor = conn->executor;
    if (link->becoming || link->stream.closing || link->stream.finishing)
        return;
    struct ew__becoming *becoming = ew__zalloc(executor->env, sizeof *becoming);
    if (!becoming) {
        ew__stream_close(&link->stream, EW_ENOMEM);
        return;
    }
    *becoming = (struct ew__becoming){.link = link, .wire = wire, .role = role};
    ew__buf_init(&becoming->rest, executor->env, SIZE_MAX / 2);
    link->becoming = becoming;
    if ((n > 0 && ew__buf_add(&becoming->rest, rest, n) != EW_OK) ||
        ew__timer_set(&executor->timers, &becoming->timer, executor->now, on_become) != EW_OK)
        ew__stream_close(&link->stream, EW_ENOMEM);
}

/* ---- the stream's events ---- */

static void count_bytes(ew__link *link) {
    ew__count(&link->traffic->bytes_in, link->stream.bytes_in - link->counted_in);
    ew__count(&link->traffic->bytes_out, link->stream.bytes_out - link->counted_out);
    link->counted_in = link->stream.bytes_in;
    link->counted_out = link->stream.bytes_out;
}

static uint8_t *on_reserve(ew__stream *stream, size_t *ret_size) {
    ew__link *link = link_of_stream(stream);
    bool asks = link->peer && link->peer->wire->reserve && !link->becoming;
    return asks ? link->peer->wire->reserve(link->peer, ret_size) : NULL;
}

/* A client that wants TLS where none is spoken gets what its bytes mean on the wire; its owner will look at our log. */
static void tell_tls(ew__link *link, const uint8_t *bytes, size_t n) {
    bool hello = n > 2 && bytes[0] == 0x16 && bytes[1] == 0x03 && bytes[2] <= 0x04;
    if (hello && !link->conn.site->secure && link->owner->greets_strangers)
        ew__tls_tell(&link->stream, "TLS came to a plain port: the client should use http://, or the listener tls=");
}

/* As long as it is not clear who speaks. */
static void first_data(ew__link *link, const uint8_t *bytes, size_t n) {
    if (link->stream.bytes_in == n)
        tell_tls(link, bytes, n);
    if (link->peer)
        deliver(link, bytes, n);
    else if (link->choosing)
        hear(link, bytes, n);
    else
        sniff(link, bytes, n);
    link->heard = link->peer != NULL;
}

static void on_data(ew__stream *stream, const uint8_t *bytes, size_t n) {
    ew__link *link = link_of_stream(stream);
    count_bytes(link); /* before anybody is told what they say */
    if (EW__LIKELY(link->heard))
        deliver(link, bytes, n);
    else
        first_data(link, bytes, n);
}

static void on_secured(ew__stream *stream) {
    const char *subject = ew__stream_client_cert(stream);
    if (subject)
        ew__who_set_certificate(&link_of_stream(stream)->conn.who, subject);
}

void ew__link_eof(ew__link *link) {
    if (link->choosing && link->choosing->heard.len > 0)
        choose(link, true);
    if (!link->stream.closing)
        tell_eof(link);
}

static void on_eof(ew__stream *stream) {
    ew__link *link = link_of_stream(stream);
    if (link->becoming)
        link->becoming->eof = true;
    else if (!link->owner->holds_eof || !link->owner->holds_eof(link))
        ew__link_eof(link);
}

static void on_hung_up(ew__stream *stream) {
    ew__link *link = link_of_stream(stream);
    ew__peer *peer = link->becoming ? NULL : link->peer;
    if (peer && peer->role == EW__SERVE && peer->wire->hung_up)
        peer->wire->hung_up(peer);
}

static void on_drained(ew__stream *stream) {
    ew__link *link = link_of_stream(stream);
    if (link->peer && link->peer->wire->drained && !link->becoming)
        link->peer->wire->drained(link->peer);
}

static void free_link(ew__link *link) {
    const ew_env *env = link->conn.executor->env;
    ew__out_done(&link->conn.out);
    ew__free(env, link, sizeof *link);
}

static void on_closed(ew__stream *stream, ew_err why) {
    ew__link *link = link_of_stream(stream);
    count_bytes(link);
    atomic_fetch_sub_explicit(&link->traffic->open, 1, memory_order_relaxed);
    ew__timer_stop(&link->conn.executor->timers, &link->sniffing);
    ew__timer_stop(&link->conn.executor->timers, &link->authenticating);
    becoming_end(link);
    choosing_end(link);
    ew__tap_end(link->tap, why);
    if (why != EW_OK && link->owner->lost)
        link->owner->lost(link);
    if (link->peer)
        detach(link, why);
    link->owner->closed(link, why);
    free_link(link);
}

static const ew__stream_events stream_events = {.reserve = on_reserve,
                                                .data = on_data,
                                                .eof = on_eof,
                                                .drained = on_drained,
                                                .hung_up = on_hung_up,
                                                .secured = on_secured,
                                                .closed = on_closed};

/* ---- life ---- */

ew__link *ew__link_new(ew__loop *loop, ew__site *site, ew__scratches *scratches, ew__traffic *traffic,
                       const ew__link_owner *owner, void *ud) {
    ew__link *link = ew__zalloc(loop->executor.env, sizeof *link);
    if (!link)
        return NULL;
    link->conn.ops = &conn_ops;
    link->conn.executor = &loop->executor;
    link->conn.site = site;
    ew__out_init(&link->conn.out, &loop->executor.blocks);
    link->owner = owner;
    link->owner_ud = ud;
    link->scratches = scratches;
    link->traffic = traffic;
    return link;
}

ew__link *ew__link_new_ours(ew__loop *loop, ew__site *site, ew__scratches *scratches, ew__traffic *traffic,
                            const ew__link_owner *owner, void *ud) {
    ew__link *link = ew__link_new(loop, site, scratches, traffic, owner, ud);
    if (link)
        link->conn.who = ew__who_owner;
    return link;
}

void ew__link_discard(ew__link *link) { free_link(link); }

/* A connection on which nothing ever comes is closed like an idle one. */
static void watch_silence(ew__link *link) {
    uint64_t at = link->conn.executor->now + EW__MS(link->conn.executor->limits->idle_ms);
    if (ew__timer_set(&link->conn.executor->timers, &link->sniffing, at, on_sniff_timeout) != EW_OK)
        ew__stream_close(&link->stream, EW_ENOMEM);
}

static void on_authentication_timeout(ew__timer *timer, uint64_t now) {
    ew__link *link = ew__container_of(timer, ew__link, authenticating);
    (void)now;
    if (ew__conn_is_pending(&link->conn))
        ew__stream_close(&link->stream, EW_ETIMEOUT);
}

/* The time does not depend on the wire, nor on what the peer sends: a refusal does not extend it. */
static void watch_authentication(ew__link *link) {
    ew__executor *executor = link->conn.executor;
    uint64_t at = executor->now + EW__MS(executor->limits->auth_ms);
    if (link->owner->greets_strangers && ew__conn_is_pending(&link->conn) &&
        ew__timer_set(&executor->timers, &link->authenticating, at, on_authentication_timeout) != EW_OK)
        ew__stream_close(&link->stream, EW_ENOMEM);
}

void ew__link_start(ew__link *link, ew__loop *loop, const ew__wire *wire, ew__role role) {
    atomic_fetch_add_explicit(&link->traffic->open, 1, memory_order_relaxed);
    link->tap = ew__tap_new(loop, &link->stream, wire ? wire->name : NULL);
    ew__stream_start(&link->stream, loop, &stream_events, &link->conn.out);
    watch_authentication(link);
    if (!wire)
        watch_silence(link);
    else if (attach(link, wire, role) != EW_OK)
        ew__stream_close(&link->stream, EW_ENOMEM);
}

void ew__link_start_choosing(ew__link *link, ew__loop *loop, ew__choose_wire choose_wire) {
    struct ew__choosing *choosing = ew__zalloc(loop->executor.env, sizeof *choosing);
    atomic_fetch_add_explicit(&link->traffic->open, 1, memory_order_relaxed);
    link->tap = ew__tap_new(loop, &link->stream, NULL);
    ew__stream_start(&link->stream, loop, &stream_events, &link->conn.out);
    if (!choosing) {
        ew__stream_close(&link->stream, EW_ENOMEM);
        return;
    }
    choosing->choose = choose_wire;
    ew__buf_init(&choosing->heard, loop->executor.env, SIZE_MAX / 2); /* bounded: it is asked to decide */
    link->choosing = choosing;
}

void ew__link_finish(ew__link *link) {
    if (link->conn.out.bytes > 0 || link->stream.raw->bytes > 0)
        ew__stream_finish(&link->stream);
    else
        ew__stream_close(&link->stream, EW_OK);
}

void ew__link_close(ew__link *link, ew_err why) { ew__stream_close(&link->stream, why); }
