/*
 * endpoint/server.h: what one loop serves: its listeners, the connections they brought, and their common end. Loop
 * thread only, except where said.
 */
#ifndef EW_ENDPOINT_SERVER_H
#define EW_ENDPOINT_SERVER_H

#include "endpoint/runtimes.h"
#include "io/tls.h"

typedef struct ew__server ew__server;

/* A listening socket of one loop; or standard input and output, where one connection has come already. */
typedef struct ew__server_listener {
    ew__listener listener;
    ew__server *server;
    const ew__wire *wire; /* NULL: any */
    ew__tls_context *tls; /* NULL: plain */
    ew__site site;
    bool speaks_http; /* or anything, HTTP included */
    bool open;        /* it listens */
} ew__server_listener;

struct ew__server {
    ew__loop *loop;
    ew__registry *registry;
    ew__server_listener *listeners;
    size_t n_listeners, max_listeners;
    size_t n_closing;
    ew__link *links;
    uint32_t n_links;
    ew__clients *clients;     /* over all loops: who connects from where; NULL: nobody counts */
    atomic_uint *connections; /* over all loops: limits->connections holds for their sum */
    ew__scratches scratches;
    ew__traffic traffic;
    bool closing;
    void (*on_closed)(ew__server *server);
    void (*on_stdio_end)(ew__server *server); /* standard input has ended, or the other side has gone; may be NULL */
    /* As ew__runtimes_hooks.claim; may be NULL. */
    const char *(*on_runtime_claim)(ew__server *server, ew__runtime *runtime);
    /* a runtime that dialled us is new, or offers other things; and it has gone. Both may be NULL */
    void (*on_runtime)(ew__server *server, ew__runtime *runtime);
    void (*on_runtime_gone)(ew__server *server, ew__runtime *runtime);
    /* A runtime has answered the question for its list, changed or not; may be NULL. */
    void (*on_runtime_answered)(ew__server *server, ew__runtime *runtime);
    ew__runtimes runtimes;
    ew__timer access_check; /* once a second: closes connections whose token was revoked or has expired */
    void *ud;
};

/* max_listeners: how many listeners will be added. EW_OK or EW_ENOMEM. */
ew_err ew__server_init(ew__server *server, ew__loop *loop, ew__registry *registry, size_t max_listeners,
                       atomic_uint *connections);
/*
 * Binds and listens. site is copied (its port is filled in), address gets its port. wire NULL: any. tls (borrowed) is
 * what connections begin with; NULL: they are plain. Errors as ew__listen.
 */
ew_err ew__server_listen(ew__server *server, ew__address *address, const ew__wire *wire, const ew__site *site,
                         ew__tls_context *tls);
/*
 * Serves whoever started this program, on standard input and output. wire NULL: the one that `choose` finds. Errors as
 * ew__stream_open_stdio.
 */
ew_err ew__server_stdio(ew__server *server, const ew__wire *wire, ew__choose_wire choose, const ew__site *site);
/* Uses the newest version of the actions from now on. */
void ew__server_refresh(ew__server *server);
/* No new connections; calls on kept ones are refused. */
void ew__server_drain(ew__server *server);
/*
 * Closes everything: answers that wait to be sent still leave (now false) or not (now true). on_closed follows,
 * possibly at once.
 */
void ew__server_close(ew__server *server, bool now, void (*on_closed)(ew__server *server));
/* After on_closed. */
void ew__server_done(ew__server *server);

#endif
