/*
 * endpoint/runner.h: one process of a pool that manages processes (pool_manage.c): it is started, dialled until it
 * listens, dialled again when the connection is lost, ended, and started again when it is wanted. There is one
 * connection to it, for all its calls. Loop thread only.
 *
 * What changes by itself is told to the pool (ops->serve with NULL).
 */
#ifndef EW_ENDPOINT_RUNNER_H
#define EW_ENDPOINT_RUNNER_H

#include "endpoint/managed_process.h"
#include "endpoint/pool_kind.h"

typedef enum ew__runner_state {
    EW__RUNNER_DOWN,   /* there is no process; ew__runner_want */
    EW__RUNNER_PAUSES, /* it is wanted, but was started a moment ago */
    EW__RUNNER_STARTS,
    EW__RUNNER_DIALS,  /* the process runs; without a connection, not yet or no longer */
    EW__RUNNER_PROVES, /* it was dialled again; it has yet to answer on that connection */
    EW__RUNNER_UP,
    EW__RUNNER_ENDS /* it has ended, or is to: something of it, or its connection, is still there */
} ew__runner_state;

typedef struct ew__runner ew__runner;

struct ew__runner {
    ew__pool *pool;
    const ew__runner *next; /* the others of the pool, in a ring */
    ew__managed_process process;
    ew__address address; /* where it listens */
    ew__where where;     /* the same, for a dial */
    ew__site site;       /* the pool's, with its own authority */
    char host[64];
    const char *variable; /* that tells it where to listen */
    char var[192];        /* "VARIABLE=127.0.0.1:9000" */
    const char **argv;    /* the pool's, and two more; its last points to address.text */
    const char **vars;    /* the pool's, and `var`; the same piece of memory */
    size_t argv_size;
    ew__link *link; /* while it is dialled, and as long as it is open */
    ew__dial *dial;
    ew__timer timer; /* set from the beginning to the end, so that moving it cannot fail */
    uint64_t started_at;
    uint64_t up_at;      /* of this start, the first connection; 0: none yet */
    uint64_t linked_at;  /* the connection */
    uint64_t dial_until; /* it is given up then */
    uint64_t failed_for; /* its last start failed, while calls up to that number waited; 0: it was good */
    uint32_t pause_ms;   /* from one start to the next, at least */
    uint32_t dial_ms;    /* from one dial to the next */
    uint8_t state;       /* ew__runner_state */
    bool any_port;
    bool unheld; /* the program does not start while its port is reserved */
    int hold;    /* reserves the port (ew__address_pick); -1: not reserved */
    bool wanted; /* calls arrived while it was ending: check_down starts it again */
    bool closing;
    char problem[420]; /* why the last start failed */
};

/* port: 0 for any. option, variable: as ew__pool_manage. EW_OK; EW_EINVAL: the pool's host is no address; EW_ENOMEM. ew__runner_done in any case. */
ew_err ew__runner_init(ew__runner *runner, ew__pool *pool, uint16_t port, const char *option, const char *variable);
/*
 * Starts the process if it is down; if it is ending, starts it as soon as it is down. Called when calls need it. A start
 * may fail at once (failed_for, problem). Does not notify the pool.
 */
void ew__runner_want(ew__runner *runner);
/* How many calls it can take now. */
uint32_t ew__runner_capacity(const ew__runner *runner);
/* Ends it. Its link is the pool's to close. ew__pool_check_closed follows. */
void ew__runner_close(ew__runner *runner);
bool ew__runner_is_closed(const ew__runner *runner);
void ew__runner_done(ew__runner *runner);

#endif
