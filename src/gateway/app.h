/*
 * gateway/app.h: the app behind <everywire/app.h>.
 */
#ifndef EW_GATEWAY_APP_H
#define EW_GATEWAY_APP_H

#include "gateway/access.h"
#include "gateway/connect.h"
#include "gateway/jobs.h"
#include "gateway/broadcast.h"
#include "gateway/plugin.h"
#include "gateway/telemetry.h"
#include "gateway/tls.h"
#include "gateway/outbound.h"
#include "gateway/away.h"
#include "gateway/remote_runtimes.h"
#include "gateway/sources.h"
#include "endpoint/server.h"
#include "handler/workers.h"
#include "observe/metrics.h"
#include "wire/instance.h"
#include <everywire/app.h>

#define EW__LISTENERS_MAX 32
#define EW__THREADS_MAX 256

/* One loop of an app and what runs on it. */
typedef struct ew__app_loop {
    ew_app *app;
    ew__loop loop;
    ew__call_context calls;
    ew__server server;
    ew__metrics metrics;
    ew__app_tracing tracing;
    ew__broadcast_inbox broadcasts;
    ew__app_outbound outbound;
    ew__gate gate;
    ew__away_calls away; /* that wait for a runtime */
    ew__list parts;      /* of sources */
    size_t n_parts;
    void (*parts_told)(struct ew__app_loop *loop);
    pthread_t thread;
    bool has_thread;
    bool abandoned; /* a handler did not end: this memory is never freed, because its answer may still come */
    bool closing;
    size_t n_open;   /* of the server, the connectors, the outbound pools and the parts, once they are being closed */
    ew__timer grace; /* for handlers that do not end when their call is cut off */
    ew__task drain_task, close_task, refresh_task, pulse_task;
    atomic_bool drain_sent, close_sent, refresh_sent, pulse_sent;
} ew__app_loop;

typedef struct ew__app_listener {
    const ew__wire *wire; /* NULL: any */
    ew__address address;
    bool tls;
    bool for_peers; /* an import: those who have actions dial us there */
} ew__app_listener;

/* From the start to the end (run.c). */
typedef struct ew__app_lifecycle {
    bool only_stdio;       /* standard input is the only listener: the app ends with it */
    ew__timer drain_timer; /* on the first loop */
    atomic_bool draining;
    atomic_bool cut;          /* the end came before all calls had ended */
    atomic_bool close_wanted; /* all but the worker is ready for the end */
    pthread_mutex_t lock;     /* of the members below */
    pthread_cond_t changed;
    size_t running; /* loops that still run */
    bool started, stopped, leaked;
} ew__app_lifecycle;

struct ew_app {
    const ew_env *env; /* of the budget */
    ew__budget *budget;
    ew_limits limits;
    unsigned threads;
    struct uv_loop_s *host;
    uint64_t drain_ms;         /* 0: not set */
    uint32_t final_statuses;   /* as in the options; 0: the default */
    uint64_t runtime_grace_ms; /* as in the options; 0: the default */
    char **allow_hosts;        /* NULL-ended; the array and its strings are ours */
    size_t n_allow_hosts;
    bool allow_remote;
    ew_stack_traces stack_traces;
    ew__app_access access;
    ew__app_tls tls;
    ew__arena tls_texts; /* of its options */
    char *runtime_id;    /* NULL: the process id */
    char *telemetry_url; /* NULL: none of the program's own */
    char *name;
    ew__registry registry;
    ew__remotes remotes;
    ew__sources sources;
    size_t n_execs; /* that were started: on which loop the next one lives */
    ew__workers *workers;
    ew__app_plugins plugins;
    struct ew__app_jobs *jobs; /* NULL: it has none */
    ew__app_listener listeners[EW__LISTENERS_MAX];
    size_t n_listeners;
    ew__app_connect *connects[EW__CONNECTS_MAX];
    size_t n_connects;
    ew__app_loop *loops;
    size_t n_loops;
    struct ew__scrape scrape;
    struct ew__broadcast broadcast;
    struct ew__outbound outbound;
    ew__instance instance; /* what Stepflow's runtimes know this program by */
    ew__app_telemetry telemetry;
    atomic_uint live_calls, connections;
    atomic_bool spinning; /* one of the loops polls instead of sleeping */
    ew__app_lifecycle lifecycle;
    ew__tapping tapping;
    char error[512];
};

/*
 * Every public function that takes an app begins by forgetting the last error, and leaves a text if it fails.
 * ew__app_fail sets it and returns err. ew__app_failed sets one for an error that has none yet. ew__app_may_change
 * returns EW_OK, or EW_EINVAL with a text if the app has been started.
 */
ew_err ew__app_fail(ew_app *app, ew_err err, const char *format, ...) __attribute__((format(printf, 3, 4)));
ew_err ew__app_failed(ew_app *app, ew_err err, const char *what);
ew_err ew__app_may_change(ew_app *app, const char *what);

/*
 * Applies options to an app that was made before they were known; actions stay. Before the start. EW_OK, EW_EINVAL
 * (it runs), EW_ENOMEM.
 */
ew_err ew__app_configure(ew_app *app, const ew_app_options *options);

/* The list of actions has changed: all loops use the new version. Any thread, while the app runs. */
void ew__app_refresh(ew_app *app);

uint64_t ew__app_drain_ms(const ew_app *app); /* how long running calls may go on */
/* The statuses that no further attempt can change: a set of EW_STATUS_BIT, without that of OK. */
uint32_t ew__app_final_statuses(const ew_app *app);
/* How long actions of a runtime that has left stay listed; 0: not at all. */
uint64_t ew__app_runtime_grace_ms(const ew_app *app);
/* The worker has ended, on the first loop: by itself, then the app stops; or because the app does. */
void ew__app_worker_over(ew_app *app);

/* Stops without waiting for calls, and frees what runs. false: a handler did not end, the app must stay in memory. */
bool ew__app_end(ew_app *app);

/* The functions of the public headers, once src/api has checked their arguments. */
ew_app *ew__app_new(const char *name, const ew_app_options *options);
ew_app *ew__app_free(ew_app *app);
ew_err ew__app_add_action(ew_app *app, const char *key, ew_handler_fn handler, void *arg,
                          const ew_action_options *options);
ew_err ew__app_add_listener(ew_app *app, const char *address);
ew_err ew__app_add_manager(ew_app *app, const char *url);
ew_err ew__app_start(ew_app *app);
ew_err ew__app_renew_tls(ew_app *app);
size_t ew__app_n_listeners(const ew_app *app);
ew_err ew__app_listener_at(const ew_app *app, size_t index, const char **ret_wire, const char **ret_address,
                           int *ret_port);
bool ew__app_listener_is_tls(const ew_app *app, size_t index);
void ew__app_stop(ew_app *app);
ew_err ew__app_wait(ew_app *app);
ew_err ew__app_add_import(ew_app *app, const char *targets, const ew_import_options *options);
ew_err ew__app_wait_imports(ew_app *app, uint64_t ms);
ew_err ew__app_add_exec(ew_app *app, const char *key, const ew_exec_options *options, const ew_action_options *action);
ew_err ew__app_add_plugin(ew_app *app, const char *path, const char *config);

#endif
