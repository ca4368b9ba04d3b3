/*
 * api/remote.h: the runtimes that have dialled an app, as actions of the app. Each lives on the loop that its
 * connection is on; its actions can be called from any loop. Used inside src/api only.
 */
#ifndef EW_API_REMOTE_H
#define EW_API_REMOTE_H

#include "endpoint/server.h"

typedef struct ew__remote ew__remote;

/* All runtimes of an app, over all its loops. */
typedef struct ew__remotes {
    ew_app *app;
    pthread_mutex_t lock; /* of the list and what hangs on it */
    ew__remote *first;
} ew__remotes;

void ew__remotes_init(ew__remotes *all, ew_app *app);
void ew__remotes_done(ew__remotes *all); /* no loop runs */

/* The hooks of a server of the app; on its loop's thread. server->ud is the ew__app_loop. */
void ew__remote_changed(ew__server *server, ew__runtime *runtime);
void ew__remote_gone(ew__server *server, ew__runtime *runtime);

/* ---- remote_call.c: one call ---- */

struct ew__remote {
    atomic_uint refs; /* the runtime's, and one for each action and call */
    ew__remotes *all;
    ew__remote *next, *prev; /* under all->lock */
    ew__home *home;          /* where the connection lives */
    ew__runtime *runtime;    /* home's thread only; NULL: it has gone */
    ew__action **actions;    /* what it offers; under all->lock */
    size_t n_actions;
    char id[257];  /* under all->lock */
    bool gone;     /* under all->lock; then nothing is posted to home any more */
    bool replaced; /* another connection has its id; under all->lock */
    ew__task leave_task;
};

ew__remote *ew__remote_ref(ew__remote *remote);
void ew__remote_unref(ew__remote *remote);
/* The callee's end of a call to a runtime: ops_ud is its ew__remote. */
extern const ew__callee_ops ew__remote_callee;

#endif
