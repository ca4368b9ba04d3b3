/*
 * endpoint/pool.h: the connections of a client to its target, and the calls that wait for one. Loop thread only.
 *
 * Most targets are dialled (pool.c). For some we listen, and peers that offer actions dial us (pool_listen.c). Some are
 * processes of ours, which are started, watched and started again: spoken with over their standard input and output
 * (pool_child.c), or dialled where they were told to listen (pool_manage.c) or have told us that they do
 * (pool_announce.c).
 */
#ifndef EW_ENDPOINT_POOL_H
#define EW_ENDPOINT_POOL_H

#include "endpoint/one_shot.h"
#include "endpoint/link.h"

typedef struct ew__pool ew__pool;

/* What a pool has whose peer is a process that it speaks with over standard input and output. */
typedef struct ew__pool_child {
    ew__timer pause;     /* until it may be started again */
    ew__timer last_word; /* from the end of its output until that is told, whatever became of the process */
    ew__link *at_end;    /* whose eof is held back until then; or NULL */
    uint64_t started_at; /* the last one */
    uint32_t pause_ms;   /* from one start to the next, at least */
    bool ended;
    char line[256]; /* "node ended with code 1", from its end to the next start */
} ew__pool_child;

struct ew__pool {
    const struct ew__pool_kind *kind; /* pool_kind.h */
    ew__loop *loop;
    const ew__wire *wire;
    ew__site site;
    ew__where where; /* what it points to is borrowed */
    ew__link *links;
    struct ew__pool_wait *first, *last; /* calls that wait, in order */
    struct ew__pool_wait *cursor;       /* of a walk over them: stays right when one leaves */
    uint32_t n_waiting;
    uint32_t n_streams_waiting; /* of them: calls that get a connection of their own if possible */
    uint64_t n_calls;           /* that ever waited */
    uint32_t n_dialling;
    uint32_t n_links;
    uint64_t most_links;          /* 0: limits->client_connections */
    bool apart;                   /* set by the owner: a stream gets a connection of its own, if the wire needs it */
    uint32_t fixed;               /* so many connections, and calls take turns on them; 0: as many as calls need */
    ew__link *roomy, *roomy_last; /* may take another call, in the order in which they are tried */
    uint64_t share_until;         /* a further connection was refused lately: streams share those that exist */
    struct ew__pool_dial *dials;
    ew__scratches scratches;
    ew__traffic traffic;
    ew__timer idle;     /* closes connections that nobody uses */
    ew__timer patience; /* calls that wait for a place have waited for a while */
    ew__pool_child child;
    struct ew__pool_listen *listen;     /* what a pool has that listens */
    struct ew__pool_announce *announce; /* what a pool has whose process says where it listens */
    struct ew__pool_manage *manage; /* what a pool has that manages processes; and how they are told where to listen */
    const char *told_option, *told_variable;
    ew__one_shots asides;
    bool opening; /* a call has just come: fixed connections that are missing are dialled, but for no other reason */
    bool closing;
    bool leaving;    /* closing, first part: the last cancels leave */
    ew__timer leave; /* leaving: the longest that this may take */
    void (*on_closed)(ew__pool *pool);
    void *ud;
};

/* where is copied, what it points to is borrowed. */
void ew__pool_init(ew__pool *pool, ew__loop *loop, const ew__wire *wire, const ew__site *site, const ew__where *where);
/*
 * The pool's peers dial address (borrowed; its port is filled in): begins to listen, before the loop runs or on its
 * thread. door: the wire that connections begin with, which hands them over to the pool's (site.upgrade); NULL: they
 * begin with the pool's own. The pool's where may name a program (argv, vars) that is started with the first call.
 * After ew__pool_init. Errors as ew__address_probe; EW_ENOMEM. ew__pool_close must follow in any case.
 */
ew_err ew__pool_listen(ew__pool *pool, ew__address *address, const ew__wire *door);
/*
 * The pool's peers are n processes of ours (1 or more): its where names the program (argv, vars, rules), and host and
 * port where the first of them is to listen, the next one port higher; port 0: on free ports. They are told so by
 * `option` HOST:PORT behind their arguments and by the environment's `variable` (both constant). All are started with
 * the first call, again when they have ended and a call comes, and end with the pool. After ew__pool_init. EW_OK;
 * EW_EINVAL: no numeric host (or localhost), or not so many ports; EW_ENOMEM. ew__pool_close must follow in any case.
 */
ew_err ew__pool_manage(ew__pool *pool, unsigned n, const char *option, const char *variable);
/* Such a pool starts its processes before anybody calls. Loop thread. */
void ew__pool_warm(ew__pool *pool);
/*
 * The pool's peer is a process of ours: its where names the program (argv), and the host where it listens; the port it
 * says itself, by a line of its standard output that is a JSON object with a member "port". It inherits our
 * environment. It is started with the first call and dialled once it has said so, by many connections; again when it
 * has ended and a call comes; and it ends with the pool. The site's authority is then HOST:PORT. After ew__pool_init.
 * EW_OK, EW_ENOMEM. ew__pool_close must follow in any case.
 */
ew_err ew__pool_announce(ew__pool *pool);
/* How many runtimes are connected to a pool that listens. Any thread. */
uint32_t ew__pool_runtimes(const ew__pool *pool);
/* Opens a call that was made with ew__call_new: it ends exactly once, whatever happens to the connections. */
void ew__pool_open(ew__pool *pool, ew_call *call);
/*
 * The same for a call that is open already, on a callee that lets go of it. EW_OK; EW_EBUSY, EW_ENOMEM: nothing
 * happened.
 */
ew_err ew__pool_take(ew__pool *pool, ew_call *call);
/* Whether no call waits or runs. For wires that carry one call on a connection. */
bool ew__pool_is_idle(const ew__pool *pool);
/* How the process has ended that was the peer, "node ended with code 1"; empty: it runs, or the peer is none. */
const char *ew__pool_child_end(const ew__pool *pool);
/*
 * Fails the calls that wait, cancels those that run and closes everything; on_closed follows, possibly at once.
 * Connections and processes are closed once the cancels have left, after a second at the latest.
 */
void ew__pool_close(ew__pool *pool, void (*on_closed)(ew__pool *pool));
void ew__pool_done(ew__pool *pool); /* after on_closed */

#endif
