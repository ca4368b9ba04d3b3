/*
 * client/blobs.h: what a client has beside a target whose wire has blobs (ew__wire.blobs): a store of them, which
 * servers reach by calling back, and where they are on this machine an HTTP listener with the same blobs, for servers
 * that want a URL (0.10 and later).
 */
#ifndef EW_CLIENT_BLOBS_H
#define EW_CLIENT_BLOBS_H

#include "endpoint/server.h"
#include <everywire/client.h>

typedef struct ew__client_blobs {
    ew__blobs *store;        /* NULL: there is none */
    char url[512];           /* what servers are told; empty: nothing */
    char path[64];           /* of our own listener: nobody finds it by chance */
    ew__registry no_actions; /* a server wants one */
    bool has_actions;
    ew__server server; /* it listens */
    bool serves;       /* ... if this is true, and is to be closed */
    bool made;         /* ... and is to be freed */
    atomic_uint connections;
    void (*on_closed)(ew_client *client);
} ew__client_blobs;

/*
 * Opens the store and checks what options say of blobs. EW_OK; EW_EINVAL with a constant line for people in
 * *ret_problem; EW_ENOMEM, EW_EIO (the log says why).
 */
ew_err ew__client_blobs_open(ew_client *client, const ew_client_options *options, const char **ret_problem);
/* Listens if that is of use; if it cannot, the log says so and nothing else happens. The loop does not run yet. */
void ew__client_blobs_listen(ew_client *client);
/* closed follows, possibly at once. Loop thread. */
void ew__client_blobs_close(ew_client *client, void (*closed)(ew_client *client));
/* After closed, and before the loop is freed; or without a loop. */
void ew__client_blobs_done(ew_client *client);

#endif
