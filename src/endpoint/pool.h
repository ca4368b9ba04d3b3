/*
 * endpoint/pool.h: the connections of a client to its target, and the queue of calls that wait for one. Loop thread only,
 * except where said.
 *
 * There are five kinds of pool. Each embeds ew__pool in a struct of its own (pool_kind.h). Most targets are dialled
 * (pool_dial.c). Some are a process that is spoken with over its standard input and output (pool_child.c). For some we
 * listen, and peers that offer actions dial us (pool_listen.c). Some are managed processes, which are dialled where they
 * were told to listen (pool_manage.c) or where they announce that they listen (pool_announce.c).
 */
#ifndef EW_ENDPOINT_POOL_H
#define EW_ENDPOINT_POOL_H

#include "base/list.h"
#include "endpoint/link.h"
#include "endpoint/one_shot.h"

typedef struct ew__pool ew__pool;

/* Calls that wait for a connection, in order. */
typedef struct ew__pool_queue {
    ew__list calls;        /* struct ew__pool_wait */
    ew__list_node *cursor; /* next node of a walk: stays valid when a call leaves */
    uint32_t n;
    uint32_t n_streams; /* of them: calls that get a connection of their own if possible */
    uint64_t n_ever;    /* calls that ever waited */
} ew__pool_queue;

/* What all kinds share. */
struct ew__pool {
    const struct ew__pool_ops *ops; /* pool_kind.h */
    ew__loop *loop;
    const ew__wire *wire;
    ew__site site;
    ew__where where; /* what it points to is borrowed */
    ew__pool_queue queue;
    ew__link *links;
    uint32_t n_links;
    bool apart; /* a stream gets a connection of its own, if the wire needs it */
    bool closing;
    bool leaving;    /* closing, first part: the last cancels leave */
    ew__timer leave; /* leaving: the longest that this may take */
    ew__one_shots one_shots;
    ew__scratches scratches;
    ew__traffic traffic;
    void (*on_closed)(ew__pool *pool);
    void *ud;
};

typedef struct ew__pool_config {
    ew__loop *loop;
    const ew__wire *wire;
    const ew__site *site;   /* copied */
    const ew__where *where; /* copied; what it points to is borrowed as long as the pool exists */
    uint64_t max_links;     /* dialled: at most so many connections; 0: limits->client_connections */
    uint32_t fixed;         /* dialled: so many connections, and calls take turns on them; 0: as many as calls need */
    bool apart;             /* a stream gets a connection of its own, if the wire needs it */
    void *ud;
} ew__pool_config;

/*
 * The functions that make a pool. On an error *ret is unchanged, and nothing is left. Else ew__pool_close and, after
 * on_closed, ew__pool_free must follow. Before the loop runs or on its thread.
 *
 * Dials, or (where->kind EW__WHERE_CHILD) starts a process with the first call and speaks with it over its standard
 * input and output. EW_OK, EW_ENOMEM.
 */
ew_err ew__pool_dial(const ew__pool_config *config, ew__pool **ret);
/*
 * The pool's peers dial address (borrowed; its port is filled in). first: the wire that connections begin with, which
 * hands them over to the pool's (site.upgrade); NULL: they begin with the pool's own. The pool's where may name a program
 * (argv, vars) that is started with the first call. Errors as ew__address_probe; EW_ENOMEM.
 */
ew_err ew__pool_listen(const ew__pool_config *config, ew__address *address, const ew__wire *first, ew__pool **ret);
/*
 * The pool's peers are n managed processes (1 or more): its where names the program (argv, vars, rules), and host and
 * port where the first of them is to listen, the next one port higher; port 0: on free ports. They are told so by
 * `option` HOST:PORT behind their arguments and by the environment's `variable` (both constant). All are started with
 * the first call, again when they have ended and a call comes, and end with the pool. EW_OK; EW_EINVAL: no numeric host
 * (or localhost), or not so many ports; EW_ENOMEM.
 */
ew_err ew__pool_manage(const ew__pool_config *config, unsigned n, const char *option, const char *variable,
                       ew__pool **ret);
/*
 * The pool's peer is a managed process: its where names the program (argv), and the host where it listens. The process
 * writes its port to its standard output, in a line that is a JSON object with a member "port". It inherits our
 * environment. It is started with the first call and dialled once it has announced its port, by many connections; again
 * when it has ended and a call comes; and it ends with the pool. The site's authority is then HOST:PORT. EW_OK,
 * EW_ENOMEM.
 */
ew_err ew__pool_announce(const ew__pool_config *config, ew__pool **ret);
/* Managed processes that ew__pool_manage starts: starts them before the first call. Others: does nothing. */
void ew__pool_warm(ew__pool *pool);
/* How many runtimes are connected to a pool that listens. Any thread. */
uint32_t ew__pool_runtimes(const ew__pool *pool);
/* Opens a call that was made with ew__call_new: it ends exactly once, whatever happens to the connections. */
void ew__pool_open(ew__pool *pool, ew_call *call);
/*
 * The same for a call that is open already, on a callee that lets go of it. EW_OK; EW_EBUSY, EW_ENOMEM: nothing
 * happened.
 */
ew_err ew__pool_take(ew__pool *pool, ew_call *call);
/* Dialled: whether no call waits or runs. For wires that carry one call on a connection. */
bool ew__pool_is_idle(const ew__pool *pool);
/* How the process has ended that was the peer, "node ended with code 1"; empty: it runs, or the peer is none. */
const char *ew__pool_child_end(const ew__pool *pool);
/*
 * Fails the calls that wait, cancels those that run and closes everything; on_closed follows, possibly at once, and may
 * free the pool. Connections and processes are closed once the cancels have left, after a second at the latest.
 */
void ew__pool_close(ew__pool *pool, void (*on_closed)(ew__pool *pool));
void ew__pool_free(ew__pool *pool); /* after on_closed; NULL is permitted */

#endif
