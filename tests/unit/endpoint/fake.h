/*
 * tests/unit/endpoint/fake.h: a listener whose connections are links, and two tiny wires that keep a diary of what
 * happens to them. "front" hands its connection over to "back" at the first '!'; "back" sends back what it gets.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_ENDPOINT_FAKE_H
#define EW_TESTS_ENDPOINT_FAKE_H

#include "endpoint/link.h"
#include "unit/io/world.h"

typedef struct fake {
    char diary[4096]; /* "front+ back+ ..." */
    size_t n_diary;
    unsigned n_closed; /* links */
    ew_err why, back_init;
    bool abort_at_once;   /* front: closes right after it has handed over */
    bool more_meanwhile;  /* front: bytes and the end of input come right after that */
    bool drain_meanwhile; /* front: the site begins to drain right after that */
    bool greet_refused;
    unsigned n_front, n_back, n_ready, n_greet; /* peers alive; what the owner was told */
    ew__listener listener;
    ew__address address;
    ew__scratches scratches;
    ew__traffic traffic;
    ew__site site;
    const ew__wire *wire; /* of new links */
    ew__link *link;       /* the newest */
    world w;
    unsigned n_links, n_listener_closed;
} fake;

static fake *f; /* the fake of the running test */

static inline void note(const char *text) {
    assert_true(f->n_diary + strlen(text) + 2 < sizeof f->diary);
    f->n_diary +=
        (size_t)snprintf(f->diary + f->n_diary, sizeof f->diary - f->n_diary, "%s%s", f->n_diary ? " " : "", text);
}

/* ---- wires ---- */

static const ew__wire wire_back;

static inline ew_err front_init(ew__peer *peer) {
    assert_false(peer->conn->upgraded);
    assert_int_equal(peer->role, EW__SERVE);
    f->n_front++;
    note("front+");
    return EW_OK;
}

/* As every wire does: a connection whose output could not be queued is given up. */
static inline bool send_out(ew__conn *conn) {
    if (conn->out.err != EW_OK)
        conn->ops->abort(conn);
    else
        conn->ops->send(conn);
    return conn->out.err == EW_OK;
}

static inline void front_input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    ew__conn *conn = peer->conn;
    const uint8_t *mark = memchr(bytes, '!', n);
    note("front.input");
    if (!mark)
        return;
    ew__out_str(&conn->out, EW_STR("over;"));
    if (!send_out(conn))
        return;
    conn->ops->become(conn, &wire_back, EW__CALL, mark + 1, n - (size_t)(mark - bytes) - 1);
    if (f->abort_at_once)
        conn->ops->abort(conn);
    if (f->more_meanwhile) {
        ew__stream *stream = &f->link->stream;
        stream->events->data(stream, (const uint8_t *)"+mid", 4);
        stream->events->eof(stream);
    }
    if (f->drain_meanwhile)
        conn->site->draining = true;
}

static inline void front_eof(ew__peer *peer) {
    note("front.eof");
    peer->conn->ops->abort(peer->conn);
}

static inline void front_gone(ew__peer *peer, ew_err why) {
    (void)peer;
    f->n_front--;
    note(why == EW_OK ? "front-" : "front-lost");
}

static const ew__wire wire_front = {.name = "front",
                                    .serve_size = sizeof(ew__peer) + 100,
                                    .call_size = sizeof(ew__peer),
                                    .scratch_size = 10,
                                    .init = front_init,
                                    .input = front_input,
                                    .eof = front_eof,
                                    .gone = front_gone};

static inline ew_err back_init(ew__peer *peer) {
    assert_true(peer->conn->upgraded);
    assert_int_equal(peer->role, EW__CALL);
    assert_int_equal(f->n_front, 0);
    note("back+");
    if (f->back_init != EW_OK)
        return f->back_init;
    f->n_back++;
    memset(peer->conn->scratch, 7, 5000); /* its own, and as large as it said */
    ew__runtime_identity who = {.id = EW_STR("me"), .pid = 7};
    const char *no = peer->conn->ops->greet(peer->conn, &who);
    if (no)
        note(no);
    peer->conn->ops->ready(peer->conn);
    return EW_OK;
}

static inline void back_input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    note("back.input");
    ew__out_add(&peer->conn->out, bytes, n);
    (void)send_out(peer->conn);
}

static inline void back_eof(ew__peer *peer) {
    note("back.eof");
    peer->conn->ops->finish(peer->conn);
}

static inline void back_drain(ew__peer *peer) {
    note("back.drain");
    peer->conn->ops->finish(peer->conn);
}

static inline void back_gone(ew__peer *peer, ew_err why) {
    (void)peer;
    f->n_back--;
    note(why == EW_OK ? "back-" : "back-lost");
}

static inline void back_scratch_done(void *scratch) {
    assert_int_equal(((uint8_t *)scratch)[4999], f->n_ready ? 7 : 0);
    note("scratch-");
}

static const ew__wire wire_back = {.name = "back",
                                   .serve_size = sizeof(ew__peer),
                                   .call_size = sizeof(ew__peer) + 3000,
                                   .scratch_size = 5000,
                                   .scratch_done = back_scratch_done,
                                   .init = back_init,
                                   .input = back_input,
                                   .eof = back_eof,
                                   .drain = back_drain,
                                   .gone = back_gone};

/* ---- the owner of the links ---- */

static inline void owner_ready(ew__link *link) {
    assert_ptr_equal(link->owner_ud, f);
    f->n_ready++;
}

static inline const char *owner_greet(ew__link *link, const ew__runtime_identity *who) {
    assert_ptr_equal(link->owner_ud, f);
    assert_true(ew__str_is(who->id, EW_STR("me")));
    f->n_greet++;
    return f->greet_refused ? "unwelcome" : NULL;
}

static inline void owner_closed(ew__link *link, ew_err why) {
    assert_null(link->peer);
    f->n_closed++;
    f->why = why;
}

static const ew__link_owner fake_owner = {.ready = owner_ready, .greet = owner_greet, .closed = owner_closed};

static inline void on_connection(ew__listener *listener) {
    fake *here = ew__container_of(listener, fake, listener);
    here->n_links++;
    here->link = ew__link_new(&here->w.loop, &here->site, &here->scratches, &here->traffic, &fake_owner, here);
    if (!here->link) {
        here->n_closed++;
        ew__accept_refuse(listener);
        return;
    }
    ew_err err = ew__accept(listener, &here->link->stream);
    ew__link_start(here->link, &here->w.loop, here->wire, EW__SERVE);
    assert_int_equal(err, EW_OK);
}

static inline void fake_init(fake *fake_, const ew__wire *wire) {
    f = fake_;
    memset(f, 0, sizeof *f);
    world_init(&f->w);
    f->wire = wire;
    assert_int_equal(ew__address_parse("127.0.0.1:0", &f->address), EW_OK);
    assert_int_equal(ew__listen(&f->listener, &f->w.loop, &f->address, on_connection), EW_OK);
    f->site.port = f->address.port;
}

static inline void on_listener_closed(ew__listener *listener) {
    ew__container_of(listener, fake, listener)->n_listener_closed = 1;
}

static inline void fake_close_listener(void) {
    ew__listener_close(&f->listener, on_listener_closed);
    run_until(&f->w, &f->n_listener_closed, 1);
}

static inline void fake_done(void) {
    if (!f->n_listener_closed)
        fake_close_listener();
    run_until(&f->w, &f->n_closed, f->n_links);
    assert_int_equal(f->n_front + f->n_back, 0);
    ew__scratches_done(&f->scratches, f->w.loop.executor.env);
    world_done(&f->w);
}

/* A connection of a client that only looks at bytes. */
static inline void fake_dial(end *client) {
    ew__where where = {.kind = EW__WHERE_TCP, .port = f->address.port, .host = "127.0.0.1"};
    end_init(client, &f->w);
    assert_int_equal(end_dial(client, &where), EW_OK);
}

#endif
