/*
 * everywire/client.h: the other side: calling actions behind a target.
 *
 * A client has a target, such as "http://127.0.0.1:3400", and a pool of connections to it that are made when needed.
 * By default it has a loop thread of its own; callbacks run there and must not block.
 *
 * Targets: "http://HOST:PORT[/BASE]"; "jsonrpc://HOST:PORT", "jsonrpc+unix:PATH", "jsonrpc+stdio:" (a program that the
 * client starts, see `command`). Options behind a jsonrpc target, "?NAME=VALUE", joined by "&":
 * "framing=lsp" writes Content-Length headers instead of lines; "params=null" sends the member `params` also when there
 * is no input, as the Go codec requires; "stream=events" reads {"chunk":C}, {"result":R} and {"error":E} from the frames
 * of a stream; "discover=no" states that the peer is not everywire, so that it is not asked.
 * "reflection://HOST:PORT": the client is a manager that Genkit runtimes dial (port 0 picks a free one, see
 * ew_client_port); calls wait until one has connected, and reach the one that has the action. "rrq://HOST:PORT": an RRQ
 * runner, somebody else's or one that the client starts there (see `command`; then port 0 picks a free one).
 * "stepflow+http://HOST:PORT[/PATH]", "stepflow+http:" and "stepflow+stdio:": a Stepflow component server; the last two
 * are programs that the client starts.
 *
 * With TLS: "https://", "jsonrpcs://", "rrqs://", "stepflow+https://" (whose certificates are verified, see `tls`), and
 * "reflections://" (runtimes dial us there, and are shown our certificate).
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_CLIENT_H
#define EVERYWIRE_CLIENT_H

#include <everywire/call.h>
#include <everywire/env.h>
#include <everywire/frames.h>
#include <everywire/json.h>
#include <everywire/limits.h>
#include <everywire/status.h>
#include <everywire/tls.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ew_client ew_client;
typedef struct ew_request ew_request;
struct uv_loop_s;
struct ew_app;

/* Everything is optional; zero means the default. */
typedef struct ew_client_options {
    const ew_env *env;      /* borrowed for the life of the client; NULL: ew_env_default */
    ew_limits limits;       /* members that are zero take their default */
    struct uv_loop_s *loop; /* run on this libuv loop of the host, on its thread, instead of an own thread; borrowed */
    /*
     * For "jsonrpc+stdio:" and "stepflow+stdio:": the program and its arguments, NULL-ended; copied; no shell. It is
     * started with the first call, its standard error goes to the env's log, and it ends with the client. When it has
     * ended by itself, its calls fail and the next one starts it again (after 100 ms, doubling to 2 s).
     * For "reflection:" it is optional: a program that is told by GENKIT_REFLECTION_V2_SERVER to dial this client; its
     * standard output goes to the log too.
     * For "rrq:" it is optional, too: a runner on this machine (HOST is a loopback address or localhost) that is told
     * where to listen by --tcp-socket HOST:PORT behind its arguments. It leads a process group, which ends with the
     * client: SIGTERM, 5 s later SIGKILL. When it has ended by itself, the next call starts it again.
     * For "stepflow+http:" (or "stepflow+http://HOST:0") it is a server on this machine that chooses its port itself
     * and says so by a line {"port":N} on its standard output, within 30 s; what else it writes there goes to the log.
     * Its life is a runner's.
     */
    const char *const *command;
    /*
     * What the command gets of this program's environment, beside the variables that the wire
     * sets. NULL: all of it. Else a NULL-ended list, copied: "NAME" hands on a variable as it is
     * now, "NAME=VALUE" sets one, "*" hands on all of them; without "*" it gets PATH, HOME, USER,
     * LANG, LC_ALL, TZ and TMPDIR as well, and nothing else.
     */
    const char *const *environment;
    const char *folder; /* "rrq:" with a command: where it runs; copied. NULL: where this program does */
    /*
     * "rrq:" with a command: how many processes of it there are, on PORT and the ports above it (or each on a free
     * one); at most 64; 0: one. A call goes to the one that has the fewest.
     */
    unsigned processes;
    /*
     * What the peer may call on the same connection, where the wire has both roles: the actions that this app has now.
     * The app must outlive the client; it need not be started.
     */
    struct ew_app *actions;
    const char *telemetry; /* reflection: the telemetry server that runtimes are told of, "http://HOST:PORT"; copied */
    bool allow_remote;     /* reflection: let the target be another address than a loopback one; see token */
    /*
     * Stepflow: where blobs are kept that servers put and get while they run a component: "memory" (which NULL means,
     * too) or "sqlite:PATH"; copied. Servers call back for them; one on this machine is also told a URL, that of a
     * listener which this client opens on 127.0.0.1 for them and nothing else.
     */
    const char *blobs;
    const char *blob_api; /* Stepflow: servers are told this URL instead, "http://HOST:PORT/api/v1/blobs"; copied */
    /*
     * Told of every frame on every connection, decoded, in both directions (frames.h): for people who look for a fault.
     * NULL: nobody is, and it costs nothing.
     */
    ew_frame_fn trace_frames;
    void *trace_ud;
    size_t trace_bytes; /* how much of a frame is kept for that; 0: 4 KiB */
    /*
     * The token that the peer wants, over TCP (access.h): its text, or "@FILE" for the first line of a file that nobody
     * else can read; copied. For "reflection:" it is what runtimes must show that dial us, a program that is started is
     * told it by its URL; an address beyond this machine wants it.
     */
    const char *token;
    bool no_token; /* reflection: let everybody dial us, also from other machines */
    /*
     * For targets that are dialled: so many connections, all made when the first call comes (and again, where one was
     * lost, when the next one comes), and calls take turns on them. 0: as many as the calls need, up to
     * limits.client_connections. How many calls one carries at a time: limits.calls_per_connection, on rrq
     * limits.runner_calls, on http and stepflow+http one.
     */
    unsigned connections;
    ew_tls_options tls; /* for targets that speak TLS; its files are read at once */
} ew_client_options;

/* Whose fault an ending is. */
typedef enum ew_origin {
    EW_ORIGIN_ACTION,   /* the action's own end: done or failed */
    EW_ORIGIN_CONNECT,  /* the peer was not reached, or was lost before the end */
    EW_ORIGIN_PROTOCOL, /* the peer broke the protocol */
    EW_ORIGIN_DEADLINE, /* our own deadline passed */
    EW_ORIGIN_CANCEL,   /* we cancelled */
    EW_ORIGIN_LOCAL     /* we could not send it: bad input for this wire, a limit, no memory */
} ew_origin;

/* How a call ended. Slices are borrowed for the callback, or from the request for ew_request_wait. */
typedef struct ew_end {
    ew_status status; /* EW_STATUS_OK: result is valid; else fault is */
    ew_str result;    /* JSON text */
    ew_fault fault;
    ew_origin origin;
    ew_str trace_id; /* what the peer called the trace, or empty */
} ew_end;

/* What to call and how. Slices are copied. */
typedef struct ew_request_options {
    ew_str action;      /* key "/flow/greet" or name "greet"; reflection: also "RUNTIME:KEY" (its id or name) */
    ew_str input;       /* JSON text; empty: none */
    ew_str context;     /* JSON text; empty: none */
    ew_str labels;      /* JSON object; empty: none */
    ew_str traceparent; /* W3C trace context to continue; empty: a new trace */
    /*
     * The call that this one is made for: its trace goes on, its span is the parent. Borrowed while the request is
     * started. traceparent wins if both are given; ew_call_back takes the call it goes back on if neither is.
     */
    const ew_call *parent;
    uint64_t timeout_ms; /* our deadline, sent along where the wire can; 0: none */
    bool stream;         /* ask for chunks */
    bool input_stream;   /* ew_request_send and ew_request_send_end follow */
    bool notify;         /* want no answer, where the wire can say so: ends OK with null once it is on its way */
    ew_str id;           /* jsonrpc: the id to use, a string; empty: one of ours. It must not be in use */
    /*
     * Callbacks, on the loop thread; each may be NULL. Chunk slices are valid during the callback. on_end comes
     * exactly once.
     */
    void (*on_chunk)(ew_request *request, ew_str chunk, void *ud);
    void (*on_end)(ew_request *request, const ew_end *end, void *ud);
    void (*on_room)(ew_request *request, void *ud); /* input may flow again, after ew_request_send said EW_FULL */
    void *ud;
    bool repeat; /* ew_request_again may follow; not with input_stream */
} ew_request_options;

/*
 * A client for a target. options may be NULL. Nothing is connected yet; reflection: it listens. EW_OK; EW_EINVAL: not a
 * target, EW_EUNSUPPORTED: no such wire in this build, EW_EADDRINUSE, EW_EACCESS: it cannot listen there, or may not;
 * EW_ENOTFOUND, EW_EINVAL, EW_EACCESS also for the files of `tls`; EW_ENOMEM; EW_EIO. On failure
 * ret_problem, if not NULL, gets a line for people, which lasts until this thread's next call of this function.
 */
EW_API ew_err ew_client_new(const char *target, const ew_client_options *options, ew_client **ret_client,
                            const char **ret_problem);

/* The port that a "reflection:" client listens on; 0 for other targets. Any thread. */
EW_API int ew_client_port(const ew_client *client);

/* How many runtimes are connected to a "reflection:" client now; 0 for other targets. Any thread. */
EW_API unsigned ew_client_runtimes(const ew_client *client);

/*
 * Cancels the calls that run, closes everything, frees. Returns once the cancels have left, which takes a second at
 * most; programs that the client has started end first. NULL is fine. Not from a callback. Returns NULL.
 */
EW_API ew_client *ew_client_free(ew_client *client);

/*
 * Starts a call. EW_OK: on_end will come once, and *ret_request (if not NULL) is the caller's until ew_request_free;
 * with ret_request NULL the client keeps it. EW_EINVAL, EW_ESYNTAX (input, context or labels are no JSON),
 * EW_ELIMIT (one of them has more than EW_PAYLOAD_DEPTH levels),
 * EW_EUNSUPPORTED (the wire cannot carry it: the client's README says what it can), EW_ENOMEM, EW_ECLOSED: nothing
 * was started. Any thread.
 */
EW_API ew_err ew_client_call(ew_client *client, const ew_request_options *options, ew_request **ret_request);

/*
 * Whether the client's wire can carry such a call: NULL, or a constant line for people that says why not (then
 * ew_client_call answers EW_EUNSUPPORTED). Any thread.
 */
EW_API const char *ew_client_refuses(const ew_client *client, const ew_request_options *options);

/*
 * Calls whoever made `call`, on the connection that it came on: an agent that asks its client for leave, a server that
 * sends a notification (notify) while it works. Only while `call` has not ended (later it ends UNAVAILABLE); the new
 * call may outlive it. On the loop thread it leaves at once, in order with the handler's chunks and end, and
 * callbacks may come before this returns. Callbacks, errors and *ret_request as in ew_client_call; EW_EUNSUPPORTED:
 * the wire has one role only (http). Any thread.
 */
EW_API ew_err ew_call_back(ew_call *call, const ew_request_options *options, ew_request **ret_request);

/*
 * Asks the peer for its actions: the result is one JSON object, key to descriptor. Callbacks, options and errors as
 * in ew_client_call (only timeout_ms, on_end and ud are read). A peer that cannot list ends with UNIMPLEMENTED.
 */
EW_API ew_err ew_client_list(ew_client *client, const ew_request_options *options, ew_request **ret_request);

/*
 * Makes the call of an ended request once more: the same options (which must have said `repeat`), a new call, with a new
 * trace if no traceparent was given. Nothing is copied or checked again, so this is the cheap way to make one call many
 * times. From on_end of that request, or any time after it, on any thread, while the client lives; outside of on_end
 * the request must be the caller's own (ret_request). EW_OK: on_end will come once more; EW_EINVAL: it has not ended,
 * or did not say repeat; EW_ECANCELLED: ew_request_cancel was used on it; EW_ELIMIT, EW_ECLOSED.
 */
EW_API ew_err ew_request_again(ew_request *request);

/* What went over a client's connections since it was made. */
typedef struct ew_traffic {
    uint64_t bytes_in, bytes_out; /* as the wire has them, framing included */
    uint64_t connections;         /* that were made, or came */
} ew_traffic;

/* Any thread, while the client lives. The figures are of about now, each by itself. */
EW_API void ew_client_traffic(const ew_client *client, ew_traffic *ret_traffic);

/*
 * Waits for the end, at most that many milliseconds (0: for ever). EW_OK and *ret_end (borrowed from the request);
 * EW_ETIMEOUT; EW_EUNSUPPORTED on the loop thread before the end, which would wait for itself.
 */
EW_API ew_err ew_request_wait(ew_request *request, uint64_t ms, ew_end *ret_end);

/* Asks for the call to stop; it still ends once, as CANCELLED if the peer does not end it first. Any thread. */
EW_API void ew_request_cancel(ew_request *request);

/*
 * Sends one input chunk. EW_OK; EW_FULL: taken, wait for on_room or ew_request_wait_room before the
 * next; EW_ELIMIT (not taken: a sender that never waits, or more than EW_PAYLOAD_DEPTH levels),
 * EW_ESYNTAX, EW_EUNSUPPORTED, EW_EENDED, EW_ENOMEM. Any thread.
 */
EW_API ew_err ew_request_send(ew_request *request, ew_str json);

/*
 * Waits until there is room for input, at most that many milliseconds (0: for ever). EW_OK, EW_ETIMEOUT, EW_EENDED,
 * EW_EUNSUPPORTED on the loop thread.
 */
EW_API ew_err ew_request_wait_room(ew_request *request, uint64_t ms);

/* Ends the input stream. EW_OK, EW_EUNSUPPORTED, EW_EENDED. Any thread. */
EW_API ew_err ew_request_send_end(ew_request *request);

/*
 * Lets go of a request: a call that still runs goes on to its end, callbacks included. NULL is fine. Returns NULL.
 * Any thread.
 */
EW_API ew_request *ew_request_free(ew_request *request);

#ifdef __cplusplus
}
#endif
#endif
