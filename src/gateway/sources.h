/*
 * gateway/sources.h: where an app's actions come from that are not functions of its own: imports and exec actions. Each
 * source has a list of actions, which may change while the app runs; all lists together are published as one.
 *
 * A source is made, then belongs to the app (ew__app_sources_add, or _replace), which starts it with its loops. One that
 * is taken away while the app runs retires: its actions go at once, what it has beside them when its last call has
 * ended.
 */
#ifndef EW_GATEWAY_SOURCES_H
#define EW_GATEWAY_SOURCES_H

#include "call/action.h"
#include <everywire/gateway.h>
#include <everywire/jobs.h>

struct ew__app_loop;

#define EW__SOURCES_MAX 4096
#define EW__IMPORTS_MAX 64

typedef struct ew__source ew__source;

typedef struct ew__source_ops {
    /* The app has its loops, which may run. EW_OK, or an error that the app's error line tells of. */
    ew_err (*start)(ew__source *source);
    bool (*is_busy)(const ew__source *source); /* calls are on their way. Any thread */
    /* Ends everything that it has, and waits for that. Not on a loop's thread. After start only. */
    void (*stop)(ew__source *source);
    void (*free)(ew__source *source);
    void (*say)(const ew__source *source, ew__buf *out); /* a JSON line of what it is; may be NULL */
    ew_err (*renew_tls)(ew__source *source);             /* under the lock: certificates are read again; may be NULL */
} ew__source_ops;

/* Its owner keeps it in front of its own memory. */
struct ew__source {
    const ew__source_ops *ops;
    ew_app *app;
    ew__fifo_node node;   /* under the lock, as the two below */
    ew__action **actions; /* what it offers; references */
    size_t n_actions;
    bool import;
    bool started;
    bool leaving;     /* its successors are there already; under the lock, as those that follow */
    bool provisional; /* it offers what the configuration names, and no peer has answered yet */
    bool asked;       /* its list has been asked for */
    bool answered;    /* and each of its targets has said what it has, or that it cannot */
    pthread_t retiring;
};

/* The app's. */
typedef struct ew__sources {
    pthread_mutex_t lock;   /* of the lists, and of what the runtimes that dialled us offer (remote.h) */
    pthread_cond_t changed; /* something was asked for, or has closed */
    ew__fifo list;          /* in the order in which they were added */
    ew__fifo retired;
    bool silent; /* the loops are about to close: nothing more is posted to them */
} ew__sources;

static inline ew__source *ew__sources_first(const ew__sources *sources) {
    return EW__ITEM(sources->list.first, ew__source, node);
}
static inline ew__source *ew__source_next(const ew__source *source) {
    return EW__ITEM(source->node.next, ew__source, node);
}
void ew__sources_init(ew__sources *sources);
void ew__sources_done(ew_app *app); /* frees all; they have been stopped, or were never started */

/* Both check and copy their arguments; ew_app_error tells what is wrong. Errors as ew_app_import and ew_app_exec. */
ew_err ew__source_new_import(ew_app *app, const char *targets, const ew_import_options *options, ew__source **ret);
ew_err ew__source_new_exec(ew_app *app, const char *key, const ew_exec_options *options,
                           const ew_action_options *action, ew__source **ret);
/*
 * An RRQ runner of a worker (or another target), which takes any name: it offers no actions, and is kept by its owner,
 * who starts and stops it by its ops. ew__source_runner: where calls to it go; borrowed.
 */
ew_err ew__source_new_runner(ew_app *app, const ew_worker_runner *runner, ew__source **ret);
struct ew__upstream *ew__source_runner(ew__source *source);
/* ew__upstream.open of an ew__loop_upstream of an app. */
void ew__source_open_upstream(struct ew__upstream *upstream, ew_call *call);
void ew__source_free(ew__source *source); /* one that was never added */

/* Before the start. */
ew_err ew__app_sources_add(ew_app *app, ew__source *source);
/*
 * These are all now, in this order (those that were there already stay as they are): new ones start, others retire. One
 * that cannot start is logged and freed. The last n_leaving of them are about to retire: a key that another source has,
 * too, is that one's as soon as its peer has answered, and theirs until then. While the app runs, or before its start;
 * one thread at a time, no loop's.
 */
void ew__app_sources_replace(ew_app *app, ew__source *const *sources, size_t n, size_t n_leaving);

/* ---- for ew_app_start and the end ---- */

ew_err ew__app_sources_start(ew_app *app); /* before the loops run. In any case _stop follows, after their end */
/* No loop's thread. The loops are about to close, or have: nothing more is posted to them. */
void ew__app_sources_silence(ew_app *app);
/* Appends a JSON line for each target, {"event":"importing","wire","target","actions"}. */
void ew__app_sources_say(ew_app *app, ew__buf *out);
/*
 * Whether an action that is in no list is really not there: *ret_asked: each import has been asked once, well or not;
 * *ret_answered: each import, and each runtime that has dialled us, has said what it has. Any thread.
 */
void ew__app_sources_known(ew_app *app, bool *ret_asked, bool *ret_answered);
/* Certificates are read again. EW_OK, or the first error; the log has been told. Any thread. */
ew_err ew__app_sources_renew_tls(ew_app *app);
void ew__app_sources_stop(ew_app *app); /* the loops have ended, with all their parts */

/* ---- for sources ---- */

/* Under the lock: offers these from now on (references are taken over; the array is freed), and publishes. */
void ew__source_offer(ew__source *source, ew__action **actions, size_t n);
/*
 * The end of making an array: n of `room` are there, and err is EW_ENOMEM if there was no memory for the rest: then, or
 * if there is none now, all of it is freed. EW_OK or EW_ENOMEM.
 */
ew_err ew__actions_fit(const ew_env *env, ew__action **actions, size_t room, size_t n, ew_err err, ew__action ***ret,
                       size_t *ret_n);
/* Under the lock: what all offer becomes what the app has, and its loops are told. */
void ew__app_publish(ew_app *app);

/* ---- parts: what a source, or another thing, has on one loop, and is closed before the loop is ---- */

typedef struct ew__part ew__part;
struct ew__part {
    ew__list_node node;
    struct ew__app_loop *loop;
    void (*close)(ew__part *part); /* ew__part_closed follows. Loop thread, once */
    bool closing;
};

/* Loop thread, or before it runs. */
void ew__part_add(struct ew__app_loop *loop, ew__part *part);
void ew__part_close(ew__part *part); /* if it is not being closed already */
void ew__part_closed(ew__part *part);
size_t ew__parts_count(const struct ew__app_loop *loop);
void ew__parts_close(struct ew__app_loop *loop, void (*told)(struct ew__app_loop *loop));

#endif
