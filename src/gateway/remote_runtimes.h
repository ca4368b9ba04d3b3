/*
 * gateway/remote_runtimes.h: the runtimes that have dialled an app, as actions of the app. Each lives on the loop that its
 * connection is on; its actions can be called from any loop.
 */
#ifndef EW_GATEWAY_REMOTE_RUNTIMES_H
#define EW_GATEWAY_REMOTE_RUNTIMES_H

#include "endpoint/server.h"

typedef struct ew__remote ew__remote;
typedef struct ew__away ew__away;

/* All runtimes of an app, over all its loops. The lock of its sources is the lock of this, too. */
typedef struct ew__remotes {
    ew_app *app;
    ew__list list; /* newest first */
    ew__list away; /* what runtimes offered that have left and are expected back; newest first */
    size_t n_away;
} ew__remotes;

/* What they offer. Under the lock. */
size_t ew__remotes_count(const ew__remotes *all);
void ew__remotes_collect(const ew__remotes *all, ew__action **ret); /* borrowed */
/* Whether each of them has been asked for its list and has answered. Under the lock. */
bool ew__remotes_answered(const ew__remotes *all);

/*
 * Reserves the id of a runtime over all loops: the connection of another loop that has it is replaced
 * if it has the same identity. NULL, or why the runtime is refused. A hook as the ones below.
 */
const char *ew__remote_claim(ew__server *server, ew__runtime *runtime);
/* The hooks of a server of the app; on its loop's thread. server->ud is the ew__app_loop. */
void ew__remote_changed(ew__server *server, ew__runtime *runtime);
void ew__remote_answered(ew__server *server, ew__runtime *runtime);
void ew__remote_gone(ew__server *server, ew__runtime *runtime);

#endif
