/*
 * wire/wire.h: what a wire is. A wire turns the bytes of one connection into calls and back; it owns no socket. Its
 * other half, the connection (ew__conn), moves the bytes: endpoint/conn.c in production, a scripted pair in tests.
 *
 * To add a wire: a folder with README.md (its map to the eight events and what it cannot carry), codec.[ch] (pure),
 * serve.c, call.c and wire.c (the table below), and a line in table.c. Everything runs on the executor thread of the
 * connection. May include: base, json, frame, call.
 */
#ifndef EW_WIRE_WIRE_H
#define EW_WIRE_WIRE_H

#include "base/buf.h"
#include "base/out.h"
#include "call/blobs.h"
#include "call/call.h"
#include "wire/descriptor.h"
#include <limits.h>

typedef struct ew__wire ew__wire;
typedef struct ew__conn ew__conn;
typedef struct ew__peer ew__peer;
typedef struct ew__runtime_identity ew__runtime_identity;

/* What a wire can carry. A bridge and the users' papers read these. */
enum {
    EW__CAN_SERVE = 1 << 0,
    EW__CAN_CALL = 1 << 1,
    EW__CAN_CHUNKS = 1 << 2,   /* chunk-out */
    EW__CAN_INPUT = 1 << 3,    /* chunk-in, end-in */
    EW__CAN_CANCEL = 1 << 4,   /* an explicit cancel (losing the connection always cancels) */
    EW__CAN_DEADLINE = 1 << 5, /* the deadline crosses */
    EW__CAN_TRACE = 1 << 6,
    EW__CAN_CONTEXT = 1 << 7, /* context and labels */
    EW__CAN_LIST = 1 << 8,
    EW__CAN_DUPLEX = 1 << 9,     /* both roles on one connection */
    EW__CAN_STDIO = 1 << 10,     /* it can be spoken with one process over its standard input and output */
    EW__CAN_MANY = 1 << 11,      /* many calls at once on one connection, which then stays open */
    EW__CAN_CARRY = 1 << 13,     /* it carries others: bodies of its requests, and connections that it hands over */
    EW__ONE_SHOTS_WAIT = 1 << 12 /* a one-shot message is answered: the connection stays whole until then */
};

typedef enum ew__role { EW__SERVE = 1, EW__CALL = 2 } ew__role;

#define EW__SITE_STATE 32 /* bytes of ew__site.state */

/*
 * What all connections of a listener or a client share. Read by wires; owned by the endpoint; never changes while a
 * connection lives, except `actions`, `draining` and `state`, which the executor thread itself changes.
 */
typedef struct ew__site {
    ew__actions *actions;            /* serving: the version this executor uses now */
    bool draining;                   /* no new calls */
    uint16_t port;                   /* serving: the port it listens on */
    bool secure;                     /* serving: it speaks TLS; calling: so does the peer */
    const char *const *allow_hosts;  /* serving HTTP: further Host names, NULL-ended; may be NULL */
    ew_str authority;                /* calling: HOST:PORT as written in the target */
    ew_str token;                    /* calling: what we show to the peer; may be empty */
    ew_str path;                     /* calling: what precedes an action's name, "" or "/base" */
    uint32_t options;                /* calling: those of the target (ew__target_option) */
    struct ew__scrape *scrape;       /* serving: who can tell the metrics; may be NULL */
    struct ew__broadcast *broadcast; /* serving: the other loops of this program; NULL: there are none */
    const ew__wire *upgrade;         /* serving HTTP: WebSockets are handed to this wire, on which we call; or NULL */
    bool only_upgrade;               /* ... and nothing else is served on this listener */
    const struct ew__http_guest *guest; /* serving HTTP: another wire, whose messages are bodies; or NULL */
    bool only_guest;                    /* ... and nothing but its messages and health is served on this listener */
    const struct ew__http_guest *jobs;  /* serving HTTP: the program's jobs, which are asked for before; or NULL */
    unsigned loop;                      /* serving: which of the program's loops this is, from 0 */
    /* What the program offers to a wire that can use it. */
    uint32_t final_statuses;              /* serving: statuses that no further attempt changes (EW_STATUS_BIT) */
    struct ew__instance *instance;        /* serving: this program among several that offer the same; may be NULL */
    struct ew__outbound *outbound;        /* serving: opens calls to URLs that a peer has named; may be NULL */
    ew__blobs *blobs;                     /* calling: what the peer may ask us for; may be NULL */
    ew_str blob_api;                      /* ... and the URL where it finds the same; may be empty */
    const ew__runtime_identity *identity; /* serving, where we have dialled: how we introduce ourselves */
    ew_str telemetry;                     /* calling: the telemetry server that peers are to use; may be empty */
    /* serving: the peer names a telemetry server (plain text, not checked yet); may be NULL */
    void (*on_telemetry)(struct ew__site *site, ew_str url);
    /* calling: the wire's own; zeros at first, and again once another process is the peer */
    _Alignas(8) unsigned char state[EW__SITE_STATE];
} ew__site;

/*
 * A runtime as it introduces itself to its manager. Slices; how long they last, the function says that hands them
 * out.
 */
struct ew__runtime_identity {
    ew_str id;      /* unique among the runtimes of a manager */
    ew_str name;    /* of the program, for people; may be empty */
    ew_str version; /* what it is made with, "everywire/0.1.0"; may be empty */
    int64_t pid;
};

/* Writes the metrics of the whole program as text. */
struct ew__scrape {
    ew_err (*write)(struct ew__scrape *scrape, ew__buf *out);
};

/* What came on one loop may concern connections of the same wire on the others (a cancel, say). */
struct ew__broadcast {
    /*
     * Calls ew__wire.on_broadcast on that loop (site.loop), or with EW__ALL_OTHER_LOOPS on each other one, later, if it has had
     * connections of this wire. sender: whose message it is; sender and text are copied. false: no memory, or the
     * queue of a loop is full; that loop does not receive it.
     */
    bool (*send)(struct ew__broadcast *broadcast, const ew__executor *from, const ew__wire *wire, unsigned to,
                 const ew__principal *sender, ew_str text);
};
#define EW__ALL_OTHER_LOOPS UINT_MAX

/* Opens calls on connections of another wire than the one they were made for: those to a URL that a peer has named. */
struct ew__outbound {
    /*
     * A call that was made with ew__call_new and opened: wire's peers take it over, as by ew__wire.open; it ends
     * exactly once. url is "http://HOST[:PORT][/PATH]", any text. EW_OK; EW_EINVAL: not such a URL, or not one that may be
     * used here; EW_EBUSY, EW_ENOMEM: nothing happened.
     */
    ew_err (*open)(struct ew__outbound *ways, ew__executor *executor, const ew__wire *wire, ew_str url, ew_call *call);
};

/* ---- the connection, as a wire sees it ---- */

typedef struct ew__conn_ops {
    /* There are bytes in conn->out: send them before this turn of the loop ends. */
    void (*send)(ew__conn *conn);
    /* The same, and more will follow in this turn: let the first bytes leave now. May be NULL. */
    void (*hurry)(ew__conn *conn);
    /* Stop or go on reading. Stopped, the peer is held back by its transport, and its going away is noticed late. */
    void (*read)(ew__conn *conn, bool on);
    /*
     * Nothing more will be sent: close once all of conn->out has left; what still arrives is thrown away, for a
     * bounded time.
     */
    void (*finish)(ew__conn *conn);
    /* Close now. The peer is told `gone` later, not from inside this call. */
    void (*abort)(ew__conn *conn);
    /*
     * Calling: the peer can take another call now (a client's queue moves on). Serving, where we have dialled: the
     * other side has taken us on, calls may come. May be NULL.
     */
    void (*ready)(ew__conn *conn);
    /*
     * Calling: the peer says who it is; possibly again, with another name. who lasts for the call. NULL: welcome;
     * else a line for it that says why not. May be NULL: everybody is.
     */
    const char *(*greet)(ew__conn *conn, const ew__runtime_identity *who);
    /*
     * The connection goes on as another wire's: in the next turn the present peer is told gone(EW_OK), one of that wire
     * is made (conn->upgraded is true for it), and it gets the `rest` bytes (copied now) and all that follow. What is
     * in conn->out still leaves. The present peer says nothing more after this. May be NULL.
     */
    void (*become)(ew__conn *conn, const ew__wire *wire, ew__role role, const uint8_t *rest, size_t n);
    /*
     * Calling: sends the bytes (copied) to the same peer on a connection of their own, which is then closed
     * (EW__ONE_SHOTS_WAIT: once the peer has answered); what the peer says there is thrown away. EW_OK: begun, and nobody
     * is told how it went; EW_EBUSY, EW_ENOMEM: nothing happened. May be NULL.
     */
    ew_err (*one_shot)(ew__conn *conn, const void *bytes, size_t n);
    /*
     * What came will not be answered now: let the transport acknowledge it at once. A peer that holds back small writes
     * until then (Nagle) would wait for our delayed one, 40 ms. May be NULL.
     */
    void (*acknowledge)(ew__conn *conn);
    /*
     * Calling: a call that was opened here, of which nothing has left: another connection is to have it. The peer lets go
     * of it. EW_OK; EW_EBUSY, EW_ENOMEM: nothing happened. May be NULL.
     */
    ew_err (*again)(ew__conn *conn, ew_call *call);
    /* What all connections of another wire share on this executor (its scratch); NULL: no memory. May be NULL. */
    void *(*shared)(ew__conn *conn, const ew__wire *wire);
} ew__conn_ops;

struct ew__conn {
    const ew__conn_ops *ops;
    ew__executor *executor;
    ew__site *site;
    ew__out out;
    bool unhurried; /* set for the time of a send: its bytes may wait a moment for others that leave with them */
    bool upgraded;  /* the opening handshake of a WebSocket is behind us: frames follow */
    bool stdio;     /* the peer is one process at the other end of pipes, no stranger: a bad line does not end it */
    bool stuck;     /* calling, set before abort: the peer does not end calls; if it is ours, it is to be ended */
    ew__who who;    /* at the other end; zeros: a stranger. A wire stores a token here (ew__gate_present_token) */
    void *
        scratch; /* wire->scratch_size bytes, cleared at first, shared by all connections of this wire on this executor */
};

/* The identity of the peer: for ew_call.who, ew__gate_authorize and ew__gate_list. */
static inline ew__who *ew__conn_who(ew__conn *conn) { return &conn->who; }

/* Whether the peer has yet to present a valid token (limits->auth_bytes, auth_ms, auth_refusals). */
static inline bool ew__conn_is_pending(ew__conn *conn) {
    return EW__UNLIKELY(conn->executor->calls->gate != NULL) && ew__gate_is_pending(conn->executor, ew__conn_who(conn));
}

/* A request was handled. true: the peer was refused for the last time, the wire closes the connection. */
static inline bool ew__conn_is_last_refusal(ew__conn *conn) {
    return ew__conn_is_pending(conn) && ew__gate_is_last_refusal(conn->executor, &conn->who);
}

/* Bytes that one message of the peer may have now. */
static inline size_t ew__conn_frame_max(ew__conn *conn) {
    const ew_limits *limits = conn->executor->limits;
    bool small = limits->auth_bytes < limits->frame_bytes && ew__conn_is_pending(conn);
    return (size_t)(small ? limits->auth_bytes : limits->frame_bytes);
}

/*
 * Another program runs the action of a call that came: nothing more of it follows in this turn. That it was accepted
 * leaves unhurried: the caller waits for what comes next.
 */
static inline bool ew__call_is_elsewhere(const ew_call *call) { return call->action && call->action->long_key.len; }

/* The method or function by which a peer shows its token on a wire that has no place for one. */
#define EW__AUTH_METHOD "everywire.auth"

/* ---- the wire's end of a connection ---- */

struct ew__peer {
    const ew__wire *wire;
    ew__conn *conn;
    ew__role role;
};

/* How the calls that left on a connection share it (ew__wire.sharing). */
typedef enum ew__sharing {
    EW__SHARING_IDLE,   /* the connection carries no call */
    EW__SHARING_CALLS,  /* it carries calls without streams: they do not hold each other up */
    EW__SHARING_STREAM, /* it carries a stream, whose reader may be slow and hold up every other call */
    EW__SHARING_ANY,    /* the peer takes everything on one connection */
} ew__sharing;

/* Blobs: JSON values that the peers of a client may store with it, by calling back or at the URL ew__site.blob_api. */
typedef struct ew__blob_rules {
    ew__blob_id_fn id;
    const struct ew__http_guest *guest; /* serves ew__site.blobs under ew__site.path */
} ew__blob_rules;

struct ew__wire {
    const char *name;
    const ew__descriptor *about; /* NULL: neither targets nor listeners name it */
    /*
     * How the carrier brings it (EW__CAN_CARRY), other than on standard input and output. upgrade: peers connect by the
     * opening handshake of a WebSocket, and we call them. guest: its messages are bodies of requests; may be NULL.
     */
    bool upgrade;
    const struct ew__http_guest *guest;
    const ew__blob_rules *blobs; /* NULL: the wire has none */
    unsigned caps;
    size_t serve_size;   /* of the peer when it serves; the connection's owner allocates it, cleared, aligned to 16 */
    size_t call_size;    /* when it calls */
    size_t scratch_size; /* conn->scratch */
    void (*scratch_done)(void *scratch); /* frees what hangs on it, after the last connection; may be NULL */
    /* A message of another loop (ew__broadcast); scratch is this loop's. May be NULL. */
    void (*on_broadcast)(void *scratch, ew__executor *executor, const ew__principal *sender, ew_str text);

    /* How its bytes are cut into frames for an observer: EW__FRAMES_... (frame/cutter.h). 0: it has no connections. */
    unsigned frames;

    /* Do these first bytes of a connection begin this wire? 1 yes, 0 not yet clear, -1 no. */
    int (*sniff)(const uint8_t *bytes, size_t n);
    /* The same for standard input (EW__CAN_STDIO). NULL: it gets what no other wire recognises there. */
    int (*sniff_stdio)(const uint8_t *bytes, size_t n);
    /* What is wrong with a member of ew__site.allow_hosts, for people; NULL: nothing. The carrier's. */
    const char *(*host_problem)(ew_str pattern);

    /* The members of ew__peer are set. On failure nothing is left behind. */
    ew_err (*init)(ew__peer *peer);

    /*
     * Optional: where the next bytes would best be read to (memory of the peer), *ret_size of them; NULL for no wish.
     */
    uint8_t *(*reserve)(ew__peer *peer, size_t *ret_size);

    /* Bytes came (into the reserved memory if there was any). All of them are taken. */
    void (*input)(ew__peer *peer, const uint8_t *bytes, size_t n);

    /* The other side will send no more. */
    void (*eof)(ew__peer *peer);

    /*
     * Serving, while the peer has stopped reading: the other side sends no more, though not all of it was read. For
     * wires on which that cancels the calls that run. May be NULL.
     */
    void (*hung_up)(ew__peer *peer);

    /* What waited to be sent has fallen below limits->out_low_bytes. */
    void (*drained)(ew__peer *peer);

    /* The site drains: finish (conn->ops->finish) as soon as no call runs. */
    void (*drain)(ew__peer *peer);

    /*
     * The connection is gone: cancel or fail every call on it, free everything. why is EW_OK when we closed it.
     * Always the last.
     */
    void (*gone)(ew__peer *peer, ew_err why);

    /*
     * Calling: sends an opened call; the peer becomes its callee's end (sets call->callee, call->callee_ud), and says
     * ew__call_input_room when it can take input. EW_OK, or EW_EBUSY: not now; then nothing happened.
     */
    ew_err (*open)(ew__peer *peer, ew_call *call);

    /*
     * Calling: we are about to close the connection. Sends the cancels of the calls that still run, as far as they were
     * not sent; ends no call and closes nothing itself. NULL: closing the connection is the cancel.
     */
    void (*leave)(ew__peer *peer);

    /* Calling: how many more calls could be opened now. */
    uint32_t (*capacity)(const ew__peer *peer);

    /*
     * Calling, where a connection carries many calls: how many it is likely to take, so that no more are dialled than
     * are needed. NULL: limits->calls_per_connection.
     */
    uint64_t (*most)(const ew_limits *limits);

    /*
     * Calling, where a connection carries many calls, and streams among them: how its calls share it. While more
     * connections may be dialled, a stream gets one of its own. NULL: calls do not hold each other up.
     */
    ew__sharing (*sharing)(const ew__peer *peer);

    /*
     * Calling, before anything is connected, any thread: can this wire carry such a call at all? NULL for yes, else a
     * line for people.
     */
    const char *(*refuses)(const ew_request_options *options);
};

/* All wires, NULL-ended, in the order of help texts. The first one gets connections that no other recognises. */
const ew__wire *const *ew__wires(void);
/* The wire that carries others (EW__CAN_CARRY). */
const ew__wire *ew__wire_carrier(void);
/* The first wire whose peers are called on connections that they have opened (upgrade); NULL: there is none. */
const ew__wire *ew__wire_upgrade(void);
/* The first wire that is a guest of the carrier; NULL: there is none. */
const ew__wire *ew__wire_guest(void);
/* The wire of a listener's name (ew_listener_name), NULL: there is none. */
const ew__wire *ew__wire_of_listener(ew_str name, bool *ret_tls);
/* The wire that these first bytes of standard input begin. last: no more will come. NULL: not clear yet. */
const ew__wire *ew__wire_choose_stdio(const uint8_t *bytes, size_t n, bool last);
/* The wire of a target and the scheme that the target begins with. NULL: none, *ret_scheme is NULL. */
const ew__wire *ew__wire_of_target(const char *target, const ew_scheme **ret_scheme);
/* By name ("http"), or NULL. */
const ew__wire *ew__wire_by_name(ew_str name);

#endif
