/*
 * cli/cli.h: what the verbs of the everywire program share. The program stands on the public headers, as any other
 * program could, and on the options and help texts that it shares with ew_app_main.
 */
#ifndef EW_CLI_CLI_H
#define EW_CLI_CLI_H

#include "base/parse.h"
#include "base/printable.h"
#include "base/suggestion.h"
#include "cli/text.h"
#include "program/serve_options.h"
#include "wire/texts.h"
#include <everywire/everywire.h>
#include <stdatomic.h>

/* Exit codes; they are part of the interface. */
enum {
    EW__EXIT_OK = 0,
    EW__EXIT_FAILED = 1,       /* the action failed, or something here did */
    EW__EXIT_USAGE = 2,        /* bad usage, bad input */
    EW__EXIT_UNREACHED = 3,    /* peer not reached, or lost before the end */
    EW__EXIT_PROTOCOL = 4,     /* peer broke the protocol */
    EW__EXIT_DEADLINE = 5,     /* our own deadline passed */
    EW__EXIT_SIGNAL = 128,     /* plus the number of the signal */
    EW__EXIT_BROKEN_PIPE = 141 /* nobody reads our output any more: what SIGPIPE would have made of it */
};

/* For the helps of the verbs that call: the paragraph about TARGET. */
void ew__cli_target_help(FILE *out);

#define EW__TOKEN_HELP                                                                                                 \
    "the token that the peer wants; EVERYWIRE_TOKEN is another way to say it, and\n"                                   \
    "@FILE keeps it out of the list of processes"

/* A verb gets the words after its own name. */
typedef struct ew__verb {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv);
    void (*help)(FILE *out);
    /* for the completion of command lines: */
    const ew__opt *options; /* its table; NULL for one that has verbs of its own */
    const char *words;      /* its operands, as in its usage: "TARGET ACTION [INPUT]"; "a|b" is one of these */
    const struct ew__jobs_noun *noun; /* whose verbs these are; or NULL */
} ew__verb;

/* __complete: prints what fits at the end of these words. verbs ends with a name that is NULL. The exit code. */
int ew__complete(const ew__verb *verbs, int argc, char **argv);
int ew__cmd_completion(int argc, char **argv);
void ew__cmd_completion_help(FILE *out);
extern const ew__opt ew__cmd_bench_options[], ew__cmd_call_options[], ew__cmd_check_options[],
    ew__cmd_completion_options[], ew__cmd_token_options[];
/* Filled by ew__cmd_serve_prepare and ew__cmd_worker_prepare, which main calls first. */
extern ew__opt ew__cmd_serve_options[EW__SERVE_OPTIONS_MAX], ew__cmd_worker_options[EW__SERVE_OPTIONS_MAX];
void ew__cmd_serve_prepare(void);
void ew__cmd_worker_prepare(void);

int ew__cmd_bench(int argc, char **argv);
void ew__cmd_bench_help(FILE *out);
int ew__cmd_call(int argc, char **argv);
void ew__cmd_call_help(FILE *out);
int ew__cmd_token(int argc, char **argv);
void ew__cmd_token_help(FILE *out);
int ew__cmd_check(int argc, char **argv);
void ew__cmd_check_help(FILE *out);
int ew__cmd_describe(int argc, char **argv);
void ew__cmd_describe_help(FILE *out);
int ew__cmd_list(int argc, char **argv);
void ew__cmd_list_help(FILE *out);
int ew__cmd_serve(int argc, char **argv);
void ew__cmd_serve_help(FILE *out);
int ew__cmd_worker(int argc, char **argv);
void ew__cmd_worker_help(FILE *out);
int ew__cmd_job(int argc, char **argv);
void ew__cmd_job_help(FILE *out);
int ew__cmd_queue(int argc, char **argv);
void ew__cmd_queue_help(FILE *out);
int ew__cmd_dlq(int argc, char **argv);
void ew__cmd_dlq_help(FILE *out);
int ew__cmd_health(int argc, char **argv);
void ew__cmd_health_help(FILE *out);

/* ---- cmd_serve.c: what serve and worker share ---- */

enum { EW__CLI_DEMO = EW__SERVE_OWN, EW__CLI_ID };
#define EW__DEMO_HELP "offer the demo actions: greet, echo, count, sleep, fail, stream, sum,\ncontext, big, sha256"

typedef struct ew__serving {
    const char *verb;
    const ew__opt *options; /* with EW__CLI_DEMO, and EW__CLI_ID of a worker */
    void (*help)(FILE *out);
    bool worker;
} ew__serving;

/* The words of such a verb, for ew_app_main. The exit code. */
int ew__cli_serve(const ew__serving *serving, int argc, char **argv);

/* Registers the demo actions. EW_OK, or what ew_app_action answered. */
ew_err ew__demo_register(ew_app *app);

/* ---- output.c: lines, errors, hints ---- */

bool ew__cli_colour(int fd); /* a terminal that wants colours */
int ew__cli_usage(const char *verb,
                  const char *problem); /* "everywire call: ..." on standard error; returns EW__EXIT_USAGE */
int ew__cli_usagef(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * Writes before, json and after as one line, in one write; JSON with raw newlines loses its white
 * space. A terminal gets the same JSON value with \uNNNN for what it must not be sent; a pipe or a
 * file gets the bytes as they are. 0, or an errno.
 */
int ew__cli_line(int fd, const char *before, ew_str json, const char *after);
void ew__cli_wires(FILE *out, const char *template_text); /* a template of wire/texts.h, not wrapped */
void ew__cli_write(int fd, ew_str text);                  /* as it is, in one write if the kernel takes it so */
/* {"error":{...}} on standard error. */
void ew__cli_error(const ew_fault *fault);
/* One line for people; nothing unless standard error is a terminal. */
void ew__cli_quiet(void); /* from now on no hints, and no progress */
void ew__cli_hint(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * Values of answers of the library, whose types are known: a count (0 if absent), a flag (false), whether a string is
 * that text.
 */
long long ew__cli_count(ew_str json, const char *pointer);
bool ew__cli_flag(ew_str json, const char *pointer);
bool ew__cli_is(ew_str json, const char *pointer, const char *text);

/* ew_json_format, appended to a text. */
ew_err ew__cli_format_args(ew__text *out, const char *format, const ew_arg *args, size_t n_args);
#define ew__cli_format(out, ...) ew__cli_format_args(out, EW_FORMAT(__VA_ARGS__))
/* Text of a peer as a terminal may show it (base/printable.h), appended or printed. */
ew_err ew__cli_printable(ew__text *out, ew_str text, ew__printable_form form);
void ew__cli_print(FILE *out, ew_str text, ew__printable_form form);
/* A JSON string for people: decoded, in one line, and printable. */
ew_err ew__cli_plain(ew__text *out, ew_str json_string);

/* Whether that is a target that peers dial: it may take a while until one does. */
bool ew__cli_is_awaited(const char *target);
/* The scheme that a target begins with; never NULL: an unknown one is like one that is dialled. */
const ew_scheme *ew__cli_scheme(const char *target);
/* Whether the client can start several programs for the target. */
bool ew__cli_has_processes(const char *target);
/* Bits EW_WIRE_... of the wire of a target; all of them if it is unknown. */
unsigned ew__cli_can(const char *target);
/* The exit code of an end; prints its error line and a hint when it has failed. target and action (or NULL) are for it. */
int ew__cli_ending(const char *verb, const char *target, const char *action, const ew_end *end);

/* ---- input.c ---- */

/* JSON text, "@file" or "-", checked, into out (empty before). 0, or an exit code after a message that names `what`. */
int ew__cli_read_json(const char *verb, const char *what, const char *text, bool files, ew__text *out);
int ew__cli_read_timeout(const char *verb, const char *text, uint64_t *ret_ms);
/* options: what the verb has read; its env is filled in. 0, or an exit code after a message. */
int ew__cli_client(const char *verb, const char *target, ew_client_options *options, ew_client **ret_client);

/* ---- waiting.c: what is waited for ---- */

/* Start with target and what (an action, or "the list of actions") and zeros. */
typedef struct ew__waiting {
    const char *target, *what;
    const ew_client *client;
    bool starts; /* the peer is a program that is started */
    atomic_bool opened;
    atomic_ullong chunks; /* its owner counts */
} ew__waiting;

/* What the client needs to tell how far it is; w is borrowed for the client's life. After ew__verbose_with. */
void ew__waiting_with(ew__waiting *w, ew_client_options *options);
/* From now on a line tells of it on a terminal, if it takes long; until ew__progress_end. */
void ew__waiting_begin(ew__waiting *w, const ew_client *client);
/* Says on a terminal that we wait for a runtime, if that takes long. Returns when one is there, or soon. */
void ew__cli_await(const char *target, const ew_client *client, ew_request *request);

/* ---- progress.c: a line about what takes long, on a terminal ---- */

/* What there is to tell now, one line without the time; "" for nothing. On a thread of its own. */
typedef void (*ew__progress_fn)(void *ud, char *out, size_t size);
/* An ew__progress_fn for what is always the same: ud is the text. */
void ew__progress_text(void *ud, char *out, size_t size);
/* From now on, if it takes longer than a second. One at a time; a second one is not shown. */
void ew__progress_start(ew__progress_fn describe, void *ud);
void ew__progress_forbid(void); /* none at all, from now on */
void ew__progress_end(void);    /* the line goes; without a start nothing happens */
/* Somebody writes to the terminal: the line makes room as long as it is on. Any thread. */
void ew__progress_pause(bool on);

/* ---- frames.c: --verbose ---- */

#define EW__VERBOSE_OPTION(id)                                                                                         \
    { "verbose", 'v', "[=full]", EW__VERBOSE_HELP, id }

typedef struct ew__verbose {
    int level; /* 0: no frames; 1: cut; 2: whole */
    uint64_t since_ns;
} ew__verbose;

/* value: of the option, or NULL. 0, or an exit code after a message. */
int ew__verbose_take(ew__verbose *verbose, const char *verb, const char *value);
/* What a client needs for it; verbose is borrowed for the client's life. */
void ew__verbose_with(ew__verbose *verbose, ew_client_options *options);

/* ---- calling.c: what the verbs share that call an action ---- */

enum {
    EW__CALLING_CONTEXT = 1,
    EW__CALLING_LABEL,
    EW__CALLING_TIMEOUT,
    EW__CALLING_TRACEPARENT,
    EW__CALLING_TELEMETRY,
    EW__CALLING_BLOBS,
    EW__CALLING_VERBOSE,
    EW__CALLING_TOKEN,
    EW__CALLING_OWN /* the first id that is free for a verb's own options */
};

/* To be put into the initialiser of a table. timeout_letter: of --timeout, or 0. */
#define EW__CALLING_OPTIONS(timeout_letter)                                                                            \
    {"context", 0, "JSON", "context for the action (<<context>>)", EW__CALLING_CONTEXT},                               \
        {"label", 0, "K=V", "a label for traces; may be repeated (<<labels>>)", EW__CALLING_LABEL},                    \
        {"timeout", timeout_letter, "DUR", "give up after that time; 500ms, 2s, 1m, 1h, or seconds",                   \
         EW__CALLING_TIMEOUT},                                                                                         \
        {"traceparent", 0, "TEXT", "continue this W3C trace", EW__CALLING_TRACEPARENT},                                \
        {"token", 0, "TOKEN|@FILE", EW__TOKEN_HELP, EW__CALLING_TOKEN},                                                \
        {"telemetry", 0, "URL", "the telemetry server that runtimes are told of (<<telemetry>>)",                      \
         EW__CALLING_TELEMETRY},                                                                                       \
        {"blobs", 0, "STORE",                                                                                          \
         "where blobs are kept that the server puts and gets (<<blobs>>): memory (default)\nor sqlite:PATH",           \
         EW__CALLING_BLOBS},                                                                                           \
        EW__TLS_OPTIONS, EW__VERBOSE_OPTION(EW__CALLING_VERBOSE)

/* One call as the user wants it. Start with the verb and zeros; free with ew__calling_done. */
typedef struct ew__calling {
    const char *verb;
    const char *words[3]; /* TARGET ACTION INPUT; NULL: not given */
    int n_words;
    char **command; /* what stands behind --, or NULL */
    const char *telemetry;
    const char *blobs;
    uint64_t timeout_ms;
    const char *traceparent;
    ew_tls_options tls;
    ew__text input, context, labels;
    ew__verbose verbose;
    const char *token;
} ew__calling;

/* Takes one of the options above, a word, what is behind --, or a bad one. -1: go on; else the exit code. */
int ew__calling_take(ew__calling *calling, ew__opts *opts, int id);
/* All were read: are the words there; reads INPUT. -1: go on; else the exit code. */
int ew__calling_complete(ew__calling *calling);
ew_client_options ew__calling_with(ew__calling *calling);           /* borrows from calling */
ew_request_options ew__calling_request(const ew__calling *calling); /* borrows from calling */
/* ew_client_call was refused: says why. The exit code. */
int ew__calling_refused(const ew__calling *calling, const ew_client *client, const ew_request_options *opts,
                        ew_err err);
void ew__calling_done(ew__calling *calling);

/* ---- listing.c: what list and describe share ---- */

typedef struct ew__listing {
    const char *verb;
    const char *target;
    const char *action; /* describe only */
    char **command;     /* the peer's program, or NULL */
    const char *telemetry;
    const char *token;
    uint64_t timeout_ms;
    ew__verbose verbose;
    ew_tls_options tls;
    bool json;     /* JSON also on a terminal */
    ew__text text; /* the peer's answer */
} ew__listing;

/* Reads the words; -1: go on, else an exit code. Words: TARGET, and ACTION if with_action. */
int ew__listing_options(ew__listing *listing, int argc, char **argv, bool with_action, void (*help)(FILE *));
extern const ew__opt ew__listing_table[];
/* Asks the peer. 0, or an exit code after a message. */
int ew__listing_fetch(ew__listing *listing);

/* ---- signals.c: SIGINT and SIGTERM end what is waited for ---- */

typedef struct ew__interrupt ew__interrupt;
void ew__interrupt_block(void); /* before any thread is made */
/*
 * Starts to watch: stop is called once, on a thread of its own. NULL when there is no thread for it: then a signal ends
 * the program as it would without us.
 */
ew__interrupt *ew__interrupt_start(void (*stop)(void *ud), void *ud);
/* Ends the watch; the number of the signal that came, or 0. NULL is fine. */
int ew__interrupt_end(ew__interrupt *interrupt);

#endif
