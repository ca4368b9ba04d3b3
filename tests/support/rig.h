/*
 * tests/support/rig.h: a simulated world for wires: two executors (a client's and a server's) with one virtual clock, and
 * connections between them that are byte pipes in memory. It behaves as io/stream.c and endpoint/link.c do (sending
 * is coalesced, drained, finish and lingering, stalls), but everything is deterministic: what happens depends on the
 * options only.
 *
 * What the rig itself needs it takes from the C library, so that a failing env fails only what is under test.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_RIG_H
#define EW_TESTS_RIG_H

#include "support/fail_env.h"
#include "wire/wire.h"

typedef struct rig rig;
typedef struct rig_pair rig_pair;
typedef struct rig_call rig_call;

enum { RIG_CLIENT = 0, RIG_SERVER = 1 };

/* In which pieces bytes arrive. */
typedef enum rig_split { RIG_WHOLE, RIG_BYTES, RIG_RANDOM } rig_split;

/*
 * How a connection dies: both ends get an error; or the reading end sees an orderly end of input, the writing one an
 * error.
 */
typedef enum rig_cut_kind { RIG_RESET, RIG_EOF } rig_cut_kind;

typedef struct rig_side {
    ew__executor executor;
    ew__call_context calls;
    rig *rig;
    ew__site site;
    void *scratch;
    const ew__wire *other; /* whose memory `shared` is, once a connection has asked for another wire's */
    void *shared;
    bool elsewhere; /* play another thread: `here` is false, tasks wait for the next turn */
    bool frozen;    /* its timers do not run */
} rig_side;

/* Bytes on their way from one end to the other. */
typedef struct rig_pipe {
    uint8_t *bytes;
    size_t start, len, cap;
    size_t room;        /* what fits; 0: the socket takes nothing */
    uint64_t delivered; /* in all */
    uint64_t cut_at;    /* the connection is cut when that many bytes have arrived */
    rig_cut_kind cut_kind;
    bool eof;
} rig_pipe;

typedef struct rig_end {
    ew__conn conn;
    ew__peer *peer;
    rig_pair *pair;
    int side;
    bool dirty, blocked, reading, finishing, lingering, closing, gone, was_full, reset;
    ew_err why;
    ew__timer stall;
    uint64_t progress_at;
    bool raw;     /* no wire: the test itself is this end */
    bool saw_eof; /* raw: the other end has closed, or closed its side */
    char *got;    /* raw: bytes that arrived and were not yet dropped by the test */
    size_t got_len;
    size_t peak_out; /* most bytes that ever waited in conn.out */
    uint32_t n_drained;
} rig_end;

struct rig_pair {
    rig *rig;
    rig_pair *next;
    rig_end end[2];
    rig_pipe pipe[2]; /* [i]: what end i has sent */
    void *watched;    /* the watcher's own */
};

typedef struct rig_request {
    const char *key;
    ew_str input; /* empty: null */
    const char *context, *labels;
    bool list, stream, input_stream;
    uint64_t timeout_ms;
    uint8_t hops;
    bool notify;
    uint32_t full_after; /* the caller answers EW_FULL to its n-th chunk and all after it; 0: never */
} rig_request;

/* What a caller was told. Lives until rig_finish. */
struct rig_call {
    rig *rig;
    rig_call *next;
    ew_call *call; /* NULL once it has ended or was released */
    rig_pair *pair;
    const char *key;
    int side;
    uint32_t full_after;
    unsigned ended;
    bool wrapped;       /* its input was */
    bool released;      /* the caller let go: no end is told */
    unsigned after_end; /* events that came after the end: always an error */
    ew_status status;
    ew_origin origin;
    char *result, *message, *details; /* NULL if none */
    size_t result_len;
    bool retryable;
    uint64_t retry_after_ms;
    char trace_id[65];
    char **chunks;
    size_t *chunk_len;
    size_t n_chunks;
    unsigned n_input_room;
};

typedef struct rig_options {
    rig_split split;
    uint64_t seed;
    ew_limits limits;                   /* zero members: defaults */
    size_t pipe_room;                   /* what two sockets hold between them; 0: 256 KiB */
    bool handshake;                     /* a WebSocket's opening handshake is still to come */
    const ew__wire *serve;              /* what the server's end speaks, if that has another name there */
    const struct ew__http_guest *guest; /* ... and whose requests these are */
    bool stdio;                         /* the other end of every connection is one process */
    uint32_t options;                   /* of the client's site */
} rig_options;

struct rig {
    ew__test_env env;
    ew_limits limits;
    const ew__wire *wire;
    rig_split split;
    uint64_t chance;
    size_t pipe_room;
    void (*on_connect)(rig *r);     /* a connection was made; may be NULL */
    void (*on_ready)(rig_end *end); /* the wire says that it can take a call (or was taken on); may be NULL */
    const char *(*greet)(rig_end *end, const ew__runtime_identity *who); /* ew__conn_ops.greet; may be NULL */
    /* bytes arrive, which end `from` has sent; may be NULL */
    void (*watch)(rig_pair *pair, int from, const uint8_t *bytes, size_t n);
    bool handshake, stdio;
    const ew__wire *serve; /* the server's end; wire is the client's */
    bool objects;          /* inputs that are no objects are wrapped in one, and echoes of them unwrapped */
    bool strict;           /* nothing was made to fail: scenarios check what came out, too */
    rig_side side[2];
    rig_pair *pairs;
    bool asides;      /* wires that can do without may send on other connections, too, */
    unsigned n_aside; /* and have so often */
    rig_call *calls, **last_call;
    ew__actions *actions;
    /* what the test actions saw */
    unsigned n_opened, n_cancelled, n_waits;
    int64_t seen_deadline_ms;
    unsigned seen_hops;
    ew_call *held; /* a reference: the call of /test/hold */
};

void rig_init(rig *r, const ew__wire *wire, const rig_options *options);
/* A connection; under a failing env it may be closed at once. */
rig_pair *rig_connect(rig *r);
/*
 * A connection whose end `raw` is the test itself: it says bytes (rig_say) and looks at what came (end[raw].got,
 * rig_forget).
 */
rig_pair *rig_connect_raw(rig *r, int raw);
void rig_say(rig_pair *pair, const void *bytes, size_t n);
void rig_say_eof(rig_pair *pair);
void rig_forget(rig_pair *pair, size_t n);
/* Everything that can happen without time passing. */
void rig_run(rig *r);
/* Time passes; everything happens in its order. */
void rig_advance(rig *r, uint64_t ms);
void rig_cut(rig_pair *pair, int sender, rig_cut_kind kind);
/* The socket of that end takes no more bytes (or does again). */
void rig_stall(rig_pair *pair, int side, bool on);
/* The end's own program closes the connection. */
void rig_close(rig_pair *pair, int side);
/* How many calls the client's end takes now. */
uint32_t rig_capacity(const rig_pair *pair);
/*
 * Lets a minute pass with every hindrance gone: only calls that wait to be cancelled (/test/never, /test/hold) may
 * still run then.
 */
void rig_check_no_hang(rig *r);
/*
 * Closes everything, lets ten minutes pass, then checks what must hold after every scenario: each caller was told one
 * end and nothing after it, no call lives, no timer is set, no connection is left, no memory either. Frees the rig.
 */
void rig_finish(rig *r);
uint64_t rig_dropped(rig *r, int side);
rig_call *rig_nth(const rig *r, size_t i); /* in order of opening, from 0 */

/* ---- callers ---- */

rig_call *rig_open(rig_pair *pair, const rig_request *request);
rig_call *rig_open_from(rig_pair *pair, int side, const rig_request *request);
void rig_call_cancel(rig_call *rc);
void rig_call_release(rig_call *rc);
void rig_call_room(rig_call *rc); /* takes chunks again */
ew_err rig_call_send(rig_call *rc, ew_str chunk);
void rig_call_send_end(rig_call *rc);

/* ---- test actions (rig_actions.c) ---- */

/*
 * /test/echo: its input. /test/chunks {"n","size","every_ms"}: n chunks {"i":..,"pad":..}, waiting for room, then
 * {"n":n}. /test/say [...]: each element as a chunk, then the whole. /test/sum: adds up the input stream.
 * /test/relay: each input chunk as a chunk, then their number. /test/lazy {"after_ms"}: like sum, but looks at its
 * input late. /test/sleep {"ms","out"}. /test/fail {"status","message","details","retry_after_ms"}. /test/never: ends
 * when cancelled. /test/stubborn {"ms"}: does not mind being cancelled. /test/twice: ends twice. /test/invalid: its
 * result is no JSON. /test/about: context, labels, trace. /test/flood {"size"}: chunks without waiting.
 * /one/same, /two/same: one name. /test/elsewhere {"room"}: asks for time or room from another thread. /test/hold:
 * does nothing; its call is in rig->held.
 */
ew__actions *rig_actions(void); /* borrowed; made once per program */
static inline rig *rig_of(const ew_call *call) { return ew__container_of(call->executor, rig_side, executor)->rig; }

#endif
