/*
 * everywire/app.h: a program that offers actions. Register them, then let ew_app_main do the rest, or start, wait and
 * stop by hand.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_APP_H
#define EVERYWIRE_APP_H

#include <everywire/call.h>
#include <everywire/env.h>
#include <everywire/frames.h>
#include <everywire/limits.h>
#include <everywire/tls.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ew_app ew_app;
struct uv_loop_s;

/* Everything is optional; zero means the default. All slices and pointers are copied at registration. */
typedef struct ew_action_options {
    const char *description; /* one line for people */
    /*
     * JSON Schema, 2020-12 or draft-07 (docs/schema.md). They are compiled at registration. An input that does not fit
     * is refused with INVALID_ARGUMENT on every wire before the handler is called (one that is absent counts as null; a
     * call with an input stream may leave it out); a result or a chunk that does not fit fails the call with INTERNAL.
     */
    const char *input_schema;
    const char *output_schema;
    const char *stream_schema; /* of one chunk */
    const char *metadata;      /* JSON object text; handed out by listings */
    bool may_block; /* run the handler on a worker thread; it ends the call or keeps it before it returns (call.h) */
    /*
     * JSON pointers ("/password", * for any member or element), NULL-ended: values of the input and the result that reach
     * no trace. A schema can mark them, too: "x-everywire-secret": true, or "format": "password".
     */
    const char *const *secrets;
    bool unchecked_output; /* output_schema and stream_schema describe only: nothing is checked against them */
    /*
     * The handler reads an input stream (ew_call_on_input). Listings say it as Genkit does, "bidi":true in the metadata:
     * its Dev UI then offers to send one. It only describes: any action may be called with an input stream.
     */
    bool input_stream;
} ew_action_options;

/* Everything is optional; zero means the default. */
/* Which callers see the stack traces that upstreams put into the details of their faults. */
typedef enum ew_stack_traces {
    EW_STACK_TRACES_LOCAL, /* those on this machine: loopback, Unix sockets, pipes; and peers that the app dialled */
    EW_STACK_TRACES_ALL,
    EW_STACK_TRACES_NONE
} ew_stack_traces;

typedef struct ew_app_options {
    const ew_env *env;      /* memory, clock, random, log; borrowed for the life of the app. NULL: ew_env_default */
    ew_limits limits;       /* members that are zero take their default */
    unsigned threads;       /* event loops; 0: one per core */
    struct uv_loop_s *loop; /* run on this libuv loop of the host, on its thread, instead of own threads; borrowed */
    uint64_t drain_ms;      /* how long ew_app_stop lets running calls finish; 0: 10 s */
    const char *const *allow_hosts; /* further hosts accepted on HTTP: NAME or *.DOMAIN, [:PORT]; NULL-ended; copied */
    bool allow_remote;              /* let listeners bind other addresses than loopback ones; see tokens */
    const char *runtime_id;         /* what managers know this program by; copied. NULL: the process id */
    /*
     * Spans of all calls are sent to this Genkit telemetry server, "http(s)://HOST:PORT[/BASE]"; copied. NULL: none,
     * unless a reflection manager names one on this machine. It never delays a call: what the server does not take in
     * time is dropped and counted (/metrics).
     */
    const char *telemetry;
    bool telemetry_realtime; /* tell the telemetry server of starts too, not only of ends */
    /*
     * Told of every frame on every connection, decoded, in both directions (frames.h): for people who look for a fault.
     * NULL: nobody is, and it costs nothing.
     */
    ew_frame_fn trace_frames;
    void *trace_ud;
    size_t trace_bytes; /* how much of a frame is kept for that; 0: 4 KiB */
    /*
     * A file of tokens (access.h); copied. Each call over TCP must then show one of them, whatever the address; Unix
     * sockets and standard input are this user's own. A listener beyond loopback wants it, or no_token.
     */
    const char *tokens;
    bool no_token; /* serve everybody, also beyond this machine, without a token */
    const char
        *token; /* shown to imports that have none of their own and to managers that are dialled; as in client.h */
    ew_tls_options tls; /* for listeners, managers and imports that speak TLS; copied */
    ew_stack_traces stack_traces;
    /*
     * Statuses that another attempt cannot change, a set of EW_STATUS_BIT. A job that fails with one of them, and is not
     * marked as retryable, is a dead letter at once: in this app's worker, and in an RRQ worker that this app is a
     * runner of. 0: INVALID_ARGUMENT and UNIMPLEMENTED; EW_FINAL_NONE: none.
     */
    uint32_t final_statuses;
    /*
     * How long the actions of a runtime that dialled this app and has left stay listed, marked as away: calls to them
     * wait for it (limits.reconnect_ms), then fail with UNAVAILABLE. 0: 60 s; EW_NO_GRACE: they are removed at once.
     */
    uint64_t runtime_grace_ms;
} ew_app_options;

#define EW_STATUS_BIT(status) (UINT32_C(1) << (status))
#define EW_FINAL_NONE EW_STATUS_BIT(EW_STATUS_OK)
#define EW_NO_GRACE UINT64_MAX

/*
 * A new app. name is for people (listings, logs). NULL when there is no memory. Any thread; from then on one thread
 * at a time.
 */
EW_API ew_app *ew_app_new(const char *name);

/* The same with options (NULL: defaults). */
EW_API ew_app *ew_app_new_with(const char *name, const ew_app_options *options);

/*
 * Stops the app if it runs (without waiting for calls) and frees it. NULL is fine. Not from a callback. Returns NULL.
 */
EW_API ew_app *ew_app_free(ew_app *app);

/*
 * Registers an action under "/<type>/<name>"; the name may hold slashes. options may be NULL. Allowed before the
 * start and while the app runs (a new version of the list is then published to all loops). EW_OK; EW_EINVAL: bad key
 * or handler, or a schema is none (ew_app_error names the keyword); EW_ESYNTAX: a schema or the metadata is no JSON;
 * EW_EEXISTS; EW_ELIMIT; EW_ENOMEM.
 */
EW_API ew_err ew_app_action(ew_app *app, const char *key, ew_handler_fn handler, void *arg,
                            const ew_action_options *options);

/*
 * Adds a listener: "[WIRE=]ADDRESS", for example "127.0.0.1:3400" (every wire on one port), "http=127.0.0.1:0" (that
 * wire only; port 0 picks a free one), "unix:/run/x.sock" (a socket file for this user only, mode 0600), or
 * "jsonrpc=stdio" (whoever started this program, on standard input and output; an app that listens there only stops
 * when standard input ends; "stepflow=stdio" likewise; "stdio" is one of the two, told by the first line), or "fd:N"
 * (a socket that listens already, as a supervisor hands it over; it stays the caller's, who may close it after the
 * start; a Unix socket whose file is not writable for everybody takes whomever its mode lets in). An address that such
 * a socket has already is that socket. Inside TLS: "https=ADDRESS", "jsonrpcs=", "rrqs=", "stepflows=", "wss="
 * (reflection), and "tls=" for every wire on one port; they want a certificate (the app's options), which is read at
 * the start. Before the start. EW_OK; EW_EINVAL: not an address, no such socket, or an unknown
 * wire; EW_EACCESS: not loopback and not allowed. ew_app_error tells more.
 */
EW_API ew_err ew_app_listen(ew_app *app, const char *address);

/*
 * Adds a manager to be dialled, such as the Genkit CLI: "ws://HOST:PORT[/PATH][?QUERY]", or "wss://..." with TLS
 * (http:// and https:// are other spellings of the two). It is dialled for ever: a manager that is away, or goes, is tried again after 0.5 s, doubling to 5 s. An app
 * that has managers and no listener opens no port. Before the start; at most 32. EW_OK; EW_EINVAL: not such a URL;
 * EW_EUNSUPPORTED; EW_ELIMIT; EW_ENOMEM. ew_app_error tells more.
 */
EW_API ew_err ew_app_connect(ew_app *app, const char *url);

/*
 * Binds all listeners (127.0.0.1:3400 if there is neither a listener nor a manager to be dialled) and starts the loops.
 * EW_OK, EW_EADDRINUSE, EW_EACCESS (also: a listener beyond this machine and no tokens; a file of tokens that others can
 * read), EW_ESYNTAX (that file), EW_EIO, EW_ENOMEM; where TLS is spoken also EW_ENOTFOUND, EW_EINVAL (a file of the
 * options is not there, or not what it should be) and EW_EUNSUPPORTED (there is no OpenSSL); on failure nothing runs,
 * and ew_app_error tells more.
 */
EW_API ew_err ew_app_start(ew_app *app);

/*
 * Reads the files of the TLS options again, for connections that begin from now on: a certificate was renewed.
 * Connections that there are go on. What cannot be read is told to the log, and stays as it was. EW_OK, or the first
 * error as of ew_app_start. After the start; any thread.
 */
EW_API ew_err ew_app_renew_tls(ew_app *app);

/* How many listeners there are after the start. */
EW_API size_t ew_app_listeners(const ew_app *app);

/*
 * A listener's wire ("any", "http") and bound address ("127.0.0.1:3400"); borrowed from the app. Port as a number.
 * EW_OK or EW_ENOTFOUND. Any argument may be NULL.
 */
EW_API ew_err ew_app_listener(const ew_app *app, size_t index, const char **ret_wire, const char **ret_address,
                              int *ret_port);

/* Whether a listener speaks TLS. False, too, if there is no such listener. */
EW_API bool ew_app_listener_tls(const ew_app *app, size_t index);

/*
 * Begins the end: listeners close, new calls are refused with UNAVAILABLE, running ones have drain_ms to finish, then
 * they are cancelled and cut off. Returns at once; any thread, also a callback. A second call cuts off at once.
 */
EW_API void ew_app_stop(ew_app *app);

/*
 * Waits until the app has stopped. EW_OK when all calls had ended by themselves, EW_ETIMEOUT when some were cut off.
 * Not from a callback, not with a host loop.
 */
EW_API ew_err ew_app_wait(ew_app *app);

/*
 * Why the last function that registers something with this app or starts it failed, one line for people; "" if it
 * succeeded. ew_app_wait, ew_app_wait_imports and ew_app_renew_tls leave it as it is: another thread may be in them.
 * Borrowed until the next call.
 */
EW_API const char *ew_app_error(const ew_app *app);

/*
 * The whole main function of a program: reads the usual options (--listen, --connect, --import, --config, --threads,
 * --drain, --help and so on) and the environment that the Genkit CLI gives to the programs it starts
 * (GENKIT_REFLECTION_V2_SERVER is a manager to be dialled), starts, prints where it listens, handles SIGINT and SIGTERM
 * (drain; the second one ends at once) and, with --config, SIGHUP (the file is read again), waits, frees the app. The
 * result is the exit code. This is the one function of the library that prints, touches signals and looks at the
 * environment (which ew_jobs_open_usual does, too).
 *
 * Started by RRQ, with --tcp-socket HOST:PORT or RRQ_RUNNER_TCP_SOCKET, the program is a runner there: it opens no
 * other port unless --listen asks, drains for 100 ms unless told otherwise, and drains also when its parent process
 * has gone (not if that is process 1).
 *
 * Started by systemd (or what speaks its protocols) it listens on the sockets that LISTEN_FDS tells of, on each the
 * wire that LISTEN_FDNAMES names, or all of them, and opens no other port unless --listen or the file asks. Where
 * NOTIFY_SOCKET is set it says when it is ready, reads its file again, or ends; where WATCHDOG_USEC is, that all its
 * loops are alive. These variables are taken out of the environment.
 *
 * Started by Stepflow, with --stdio, or with --port N (0 picks a free one) and perhaps --host HOST, the program is a
 * component server there, and opens no other port unless --listen asks. The first line of standard output says
 * "port":N. --stdio is for any starter that speaks Stepflow or JSON-RPC on pipes.
 *
 * With --store STORE it has durable jobs (jobs.h), and with --worker it runs them, of the queues that --queue names; the
 * variable EVERYWIRE_STORE and, with neither, RRQ's own file say where they are.
 */
EW_API int ew_app_main(ew_app *app, int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
