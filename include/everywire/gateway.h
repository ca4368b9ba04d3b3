/*
 * everywire/gateway.h: actions that are not functions of this program: those behind other peers (imports), programs
 * (exec actions), shared objects (plug-ins), and a file that names all of them.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_GATEWAY_H
#define EVERYWIRE_GATEWAY_H

#include <everywire/app.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- imports: every action behind a peer becomes an action here ---- */

/* Everything is optional; zero means the default. All strings are copied. */
typedef struct ew_import_options {
    const char *prefix; /* stands before the names: with "py" the peer's "/flow/greet" is "/flow/py/greet" here */
    /*
     * NULL-ended: only these of the peer's actions, each "NAME" or "NAME:AS", where NAME is a name or key there and AS a
     * name or key here (a name takes the type of the peer's key, or "flow"). For a peer that cannot list these are all
     * that there are. NULL: all that it lists.
     */
    const char *const *names;
    const char *const *command; /* the peer is this program: as ew_client_options.command */
    /*
     * What the command gets of this program's environment, as ew_client_options.environment; but
     * NULL is an empty list: PATH, HOME, USER, LANG, LC_ALL, TZ and TMPDIR only.
     */
    const char *const *environment;
    unsigned processes;  /* as ew_client_options.processes */
    uint64_t refresh_ms; /* how often the peer is asked for its list; 0: 5 s */
    const char *blobs;   /* as ew_client_options.blobs */
    /*
     * For one name: how its action is described here, in place of what the peer says. NULL: as the peer does. Borrowed
     * for the call.
     */
    const ew_action_options *describe;
    const char *token;  /* as ew_client_options.token */
    ew_tls_options tls; /* for targets that speak TLS; all zero: the app's */
} ew_import_options;

/*
 * Offers the actions behind a target (client.h says what targets are) as actions of this app, callable over all its
 * wires. Several targets, separated by commas, are several homes of the same actions: calls go to them in turn, and one
 * that could not begin at one of them goes to the next. "#NAME[:AS],..." behind the last target is another way to say
 * `names`. "reflection://HOST:PORT" listens there for runtimes.
 *
 * The peer need not be there: it is asked for its list at the start, then every refresh_ms, and until it answers what
 * it had last stays. An action whose key the app itself has is reached by "HOST:PORT:KEY" (or "PREFIX:KEY") only, and so
 * are both of two imports that have the same key. A call that has crossed 8 everywires ends with FAILED_PRECONDITION.
 *
 * Before the start. EW_OK; EW_EINVAL, EW_EUNSUPPORTED (not a target, or options that do not fit it), EW_ELIMIT (more than
 * 64), EW_ENOMEM. ew_app_error tells more.
 */
EW_API ew_err ew_app_import(ew_app *app, const char *targets, const ew_import_options *options);

/*
 * Waits until each import has been asked for its list once, with or without success, at most that many milliseconds.
 * EW_OK or EW_ETIMEOUT. After the start; not from a callback, not with a host loop.
 */
EW_API ew_err ew_app_wait_imports(ew_app *app, uint64_t ms);

/* ---- exec actions: any program is an action ---- */

/* What a program's standard output means. */
typedef enum ew_exec_output {
    /*
     * A line {"chunk":X} is a chunk, {"result":X} the result, {"error":{"status","message","details","retry_after"}} (or
     * {"error":"text"}) the fault. Any other line is text: a chunk that is a string; and if the program says no result,
     * these lines joined by newlines are it, as a string (null if there is none).
     */
    EW_EXEC_LINES,
    EW_EXEC_JSON, /* all of it is one JSON value: the result */
    EW_EXEC_TEXT  /* all of it is text: the result, as a string without the newline at its end */
} ew_exec_output;

/* What an exit code means, where that is not the usual. */
typedef struct ew_exec_exit {
    int code;
    ew_status status;
} ew_exec_exit;

/* Everything but argv is optional; zero means the default. All strings are copied. */
typedef struct ew_exec_options {
    const char *const *argv; /* the program and its arguments, NULL-ended; no shell. Looked up in PATH */
    const char *folder;      /* where it runs, and where "./NAME" is looked for; NULL: where this program does */
    /*
     * NULL-ended: "NAME" hands on a variable of this program's environment, as it is now, "NAME=VALUE" sets one; not
     * EVERYWIRE_... Beside these it has PATH, HOME, USER, LANG, LC_ALL, TZ and TMPDIR, and nothing else;
     * "*" hands on all variables.
     */
    const char *const *environment;
    ew_exec_output output;
    /*
     * Processes stay and run one call after the other: each call is one line in and lines out up to a result or error
     * line (EW_EXEC_LINES only; no input streams). Otherwise each call has a process of its own.
     */
    bool keep;
    unsigned processes;    /* at once, at most; 0: 16, or 1 with keep */
    unsigned queue;        /* calls that may wait for a process; RESOURCE_EXHAUSTED beyond. 0: 1024 */
    uint64_t timeout_ms;   /* for a call, if its caller's deadline is not sooner; 0: none */
    uint64_t grace_ms;     /* from SIGTERM to SIGKILL; 0: 2 s */
    uint64_t output_bytes; /* of one line, and of a result that is made of several; 0: limits.frame_bytes */
    /* What one process may use (setrlimit); 0: what this program may. */
    uint64_t cpu_s, memory_bytes, file_bytes, open_files;
    const ew_exec_exit *exits; /* n_exits of them */
    size_t n_exits;
} ew_exec_options;

/*
 * Registers an action whose handler is a program. It gets the input as one line of JSON on standard input, chunks of an
 * input stream as further lines, then end of file; its environment has EVERYWIRE_KEY and, without keep,
 * EVERYWIRE_TRACEPARENT and, with a deadline, EVERYWIRE_DEADLINE_MS (how many are left at its start). Standard error
 * goes to the log. It leads a process group: a cancel (or a deadline, or a caller that has gone) sends that SIGTERM,
 * and after grace_ms SIGKILL. Exit code 0 without an end is the end; others are faults: 64 and 65 INVALID_ARGUMENT, 66
 * NOT_FOUND, 69 and 75 UNAVAILABLE, 77 PERMISSION_DENIED, 78 FAILED_PRECONDITION, 124 DEADLINE_EXCEEDED, the rest and
 * signals INTERNAL.
 *
 * Before the start. Errors as ew_app_action; EW_EINVAL also for no argv, or output with keep that is not lines.
 */
EW_API ew_err ew_app_exec(ew_app *app, const char *key, const ew_exec_options *options,
                          const ew_action_options *action);

/* ---- plug-ins: a shared object with one entry point ---- */

/* What a plug-in is told. Borrowed for the call. */
typedef struct ew_plugin {
    unsigned abi;  /* EW_PLUGIN_ABI of the host */
    ew_str config; /* JSON, as the host's configuration has it; "null" if there is none */
} ew_plugin;

#define EW_PLUGIN_ABI 1

/*
 * The one function that a plug-in exports: registers its actions by ew_app_action and answers EW_OK, or an error: then
 * the host does not start. A plug-in is not linked with the library: its host has it. It stays loaded until the app is
 * freed.
 *
 *     EW_PLUGIN_EXPORT ew_err everywire_plugin(ew_app *app, const ew_plugin *plugin) {
 *         return ew_app_action(app, "/tool/upper", upper, NULL, NULL);
 *     }
 */
#ifdef __cplusplus
#define EW_PLUGIN_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define EW_PLUGIN_EXPORT __attribute__((visibility("default"))) extern
#endif
#define EW_PLUGIN_ENTRY "everywire_plugin"
typedef ew_err (*ew_plugin_fn)(ew_app *app, const ew_plugin *plugin);

/*
 * Loads a plug-in (a path with a slash; no search) and lets it register its actions. config is JSON text or NULL.
 * Before the start. EW_OK; EW_EIO: it cannot be loaded, or has no entry; EW_ESYNTAX: config is no JSON; EW_ELIMIT (more
 * than 64); EW_ENOMEM; or what the plug-in answers. ew_app_error tells more.
 */
EW_API ew_err ew_app_plugin(ew_app *app, const char *path, const char *config);

/* ---- the configuration file ---- */

/* One problem of a file. Borrowed for the callback. line and column count from 1; 0: of the file as a whole. */
typedef struct ew_config_problem {
    const char *file;
    unsigned line, column;
    const char *message;
} ew_config_problem;

typedef void (*ew_config_problem_fn)(const ew_config_problem *problem, void *ud);

/*
 * Reads a YAML file (docs/config.md), or one of RRQ's (*.toml), and tells every problem it has; nothing is opened, started or loaded but the file.
 * EW_OK: there is none; EW_ESYNTAX: there are; EW_EIO: it cannot be read; EW_ENOMEM. Any thread.
 */
EW_API ew_err ew_config_check(const char *path, ew_config_problem_fn told, void *ud);

#ifdef __cplusplus
}
#endif
#endif
