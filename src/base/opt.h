/*
 * base/opt.h: how programs begin. Command lines as data: a table of options, one reader for all of them, their help,
 * durations, and the nearest name for a mistyped one. It prints only where a function takes a FILE. Libc only; no
 * state outside the caller's memory.
 */
#ifndef EW_BASE_OPT_H
#define EW_BASE_OPT_H

#include <everywire/tls.h>
#include <stdio.h>

/* One option. A table of them ends with an entry whose name is NULL. */
typedef struct ew__opt {
    const char *name; /* long name without its dashes */
    char letter;      /* 'h' for -h; 0 for none */
    const char *arg;  /* what the help calls its argument; NULL: it takes none; "[=...]": it may, in the same word */
    const char *help; /* for people; a newline goes on in the help's column */
    int id;           /* what ew__opts_next answers; above 0 */
} ew__opt;

#define EW__OPT_END 0     /* no more words */
#define EW__OPT_WORD (-1) /* an operand: opts.value */
#define EW__OPT_REST (-2) /* "--": what follows it starts at argv[opts.at] and is the caller's */
#define EW__OPT_BAD (-3)  /* opts.problem says what is wrong */

typedef struct ew__opts {
    const ew__opt *table;
    int argc;
    char *const *argv;
    int at;            /* the next word */
    const char *value; /* the option's argument, or the operand */
    char problem[256];
} ew__opts;

/* Reads argv from index `first` on. All pointers are borrowed. */
void ew__opts_init(ew__opts *opts, const ew__opt *table, int argc, char *const *argv, int first);

/*
 * The next option's id, or one of the EW__OPT_ values. "--name value", "--name=value", "-n value"; options and operands
 * may stand in any order. "-" and negative numbers are operands.
 */
int ew__opts_next(ew__opts *opts);

/* One line or more per option, in two columns. */
void ew__opts_help(FILE *out, const ew__opt *table);

/*
 * The first thing a program does: whoever started it may have closed a standard descriptor, and what is opened next
 * would get its number. Missing ones become /dev/null.
 */
void ew__standard_descriptors(void);

/* The longest duration that is understood: a hundred years, so that no sum of it with a clock overflows. */
#define EW__DURATION_MAX_MS ((uint64_t)100 * 365 * 24 * 3600 * 1000)

/*
 * "500ms", "2s", "1.5m", "1h", or a bare number of seconds. Parts of a millisecond count as a whole one, so that only
 * zero is zero. EW_OK, EW_EINVAL (not a duration) or EW_ELIMIT (too long).
 */
ew_err ew__duration_parse(ew_str text, uint64_t *ret_ms);

/* "4096", "64K", "1M", "2G": bytes. */
bool ew__size_parse(ew_str text, uint64_t *ret_bytes);

/*
 * The value of a limit (everywire/limits.h): a bare number in the unit that its name tells, or with a suffix of its kind,
 * K, M and G for NAME_bytes, those of a duration for NAME_ms.
 */
bool ew__limit_parse(const char *name, ew_str text, uint64_t *ret);

/*
 * Insertions, deletions, replacements and swaps of neighbours between two words; UINT_MAX when one has more than 63
 * bytes.
 */
unsigned ew__edit_distance(ew_str a, ew_str b);

/* Finds the nearest of many names: init, try each, read best (ptr NULL: none is near enough to be meant). */
typedef struct ew__suggestion {
    ew_str word;
    ew_str best;
    unsigned distance;
} ew__suggestion;

void ew__suggestion_init(ew__suggestion *near, ew_str word);
void ew__suggestion_try(ew__suggestion *near, ew_str candidate);

/*
 * The options of TLS, the same for those who serve and those who call; their ids are beyond all others. To be put into
 * the initialiser of a table.
 */
enum { EW__OPT_TLS_CERT = 1000, EW__OPT_TLS_KEY, EW__OPT_TLS_CA, EW__OPT_TLS_CLIENT_CA, EW__OPT_TLS_INSECURE };
#define EW__TLS_OPTIONS                                                                                                \
    {"tls-cert", 0, "FILE",                                                                                            \
     "our certificate, PEM with its chain: shown by listeners that speak TLS, and to\n"                                \
     "servers that ask for one",                                                                                       \
     EW__OPT_TLS_CERT},                                                                                                \
        {"tls-key", 0, "FILE", "its private key, PEM", EW__OPT_TLS_KEY},                                               \
        {"tls-ca", 0, "FILE", "trust the issuers in this PEM file when dialling; without it: the system's",            \
         EW__OPT_TLS_CA},                                                                                              \
        {"tls-client-ca", 0, "FILE", "who dials us must show a certificate of one of these issuers, PEM",              \
         EW__OPT_TLS_CLIENT_CA},                                                                                       \
    {                                                                                                                  \
        "tls-insecure", 0, NULL, "when dialling, take any certificate: for experiments only", EW__OPT_TLS_INSECURE     \
    }
/* Whether it was one of these; then it is taken. */
bool ew__tls_option(ew_tls_options *options, int id, const char *value);

/*
 * The options that every serving program takes: ew_app_main reads them; the command line's serve verb, which adds its
 * own, shows and skips them.
 */
enum {
    EW__SERVE_LISTEN = 1,
    EW__SERVE_CONNECT,
    EW__SERVE_IMPORT,
    EW__SERVE_CONFIG,
    EW__SERVE_STORE,
    EW__SERVE_WORKER,
    EW__SERVE_QUEUE,
    EW__SERVE_CONCURRENCY,
    EW__SERVE_BURST,
    EW__SERVE_WORKER_ID,
    EW__SERVE_TCP_SOCKET,
    EW__SERVE_PORT,
    EW__SERVE_HOST,
    EW__SERVE_STDIO,
    EW__SERVE_TELEMETRY,
    EW__SERVE_RUNTIME_ID,
    EW__SERVE_THREADS,
    EW__SERVE_DRAIN,
    EW__SERVE_RUNTIME_GRACE,
    EW__SERVE_FINAL_STATUS,
    EW__SERVE_ALLOW_HOST,
    EW__SERVE_ALLOW_REMOTE,
    EW__SERVE_TOKENS,
    EW__SERVE_REQUIRE_TOKEN,
    EW__SERVE_NO_TOKEN,
    EW__SERVE_STACK_TRACES,
    EW__SERVE_SANDBOX,
    EW__SERVE_SANDBOX_WRITE,
    EW__SERVE_LIMIT,
    EW__SERVE_LOG_LEVEL,
    EW__SERVE_VERBOSE,
    EW__SERVE_QUIET,
    EW__SERVE_HELP,
    EW__SERVE_VERSION,
    EW__SERVE_OWN /* the first id that is free for a program's own options */
};

/* Of every verb that has connections. */
#define EW__VERBOSE_HELP                                                                                               \
    "show all frames, decoded and timed, both directions, on standard error; long\nones are cut, with =full (-vv) not"

/* To be put into the initialiser of a table, before its end. */
#define EW__SERVE_OPTIONS                                                                                              \
    {"listen", 0, "[WIRE=]ADDR",                                                                                       \
     "listen there; WIRE is any (default), http, jsonrpc, reflection, rrq or\n"                                        \
     "stepflow; with TLS: tls (any), https, jsonrpcs, wss, rrqs or stepflows; ADDR is\n"                               \
     "HOST:PORT (port 0 picks a free one), unix:PATH or stdio; may be repeated;\n"                                     \
     "without this and the next five: 127.0.0.1:3400",                                                                 \
     EW__SERVE_LISTEN},                                                                                                \
        {"connect", 0, "URL",                                                                                          \
         "dial a manager such as the Genkit CLI, ws://HOST:PORT[/PATH] (wss:// with TLS),\n"                           \
         "and offer it the actions; for ever; may be repeated",                                                        \
         EW__SERVE_CONNECT},                                                                                           \
        {"config", 0, "FILE",                                                                                          \
         "read this YAML file, which everywire check explains; the command line wins\n"                                \
         "over it; SIGHUP reads it again",                                                                             \
         EW__SERVE_CONFIG},                                                                                            \
        {"import", 0, "[PREFIX=]TARGET",                                                                               \
         "offer the actions behind TARGET, rrq://HOST:PORT and so on (what call takes),\n"                             \
         "as actions here, PREFIX/NAME; TARGET,TARGET: the same actions at several;\n"                                 \
         "TARGET#NAME[:AS],...: only these; reflection://HOST:PORT: those of runtimes\n"                               \
         "that dial us there; may be repeated",                                                                        \
         EW__SERVE_IMPORT},                                                                                            \
        {"store", 0, "STORE",                                                                                          \
         "keep durable jobs there, sqlite:PATH or redis://HOST:PORT/DB, and serve them\n"                              \
         "as /jobs over HTTP",                                                                                         \
         EW__SERVE_STORE},                                                                                             \
        {"worker", 0, NULL,                                                                                            \
         "run jobs of that store, too (without --store: of the usual one); a worker\n"                                 \
         "opens no port unless --listen or the file asks",                                                             \
         EW__SERVE_WORKER},                                                                                            \
        {"queue", 0, "QUEUE", "... jobs of this queue; may be repeated; default", EW__SERVE_QUEUE},                    \
        {"concurrency", 0, "N", "... so many at a time; 10, with runners what these can take", EW__SERVE_CONCURRENCY}, \
        {"burst", 0, NULL, "... and end when none is due", EW__SERVE_BURST},                                           \
        {"worker-id", 0, "ID", "... known to the store as ID; without it: made of the process id",                     \
         EW__SERVE_WORKER_ID},                                                                                         \
        {"tcp-socket", 0, "HOST:PORT",                                                                                 \
         "be an RRQ runner there, as RRQ tells the programs that it starts: the last\n"                                \
         "one counts; the program ends with the one that started it",                                                  \
         EW__SERVE_TCP_SOCKET},                                                                                        \
        {"port", 0, "N", "be a Stepflow component server on that port; 0 picks a free one", EW__SERVE_PORT},           \
        {"host", 0, "HOST", "... at that address; 127.0.0.1", EW__SERVE_HOST},                                         \
        {"stdio", 0, NULL,                                                                                             \
         "serve whoever started this program, on standard input and output: Stepflow\n"                                \
         "or JSON-RPC, told by the first line",                                                                        \
         EW__SERVE_STDIO},                                                                                             \
        {"telemetry", 0, "URL",                                                                                        \
         "send the spans of all calls to this Genkit telemetry server,\nhttp://HOST:PORT or https://HOST:PORT",        \
         EW__SERVE_TELEMETRY},                                                                                         \
        {"runtime-id", 0, "ID", "what managers know this program by; without it: the process id",                      \
         EW__SERVE_RUNTIME_ID},                                                                                        \
        {"threads", 0, "N", "event loops; without it: one per core, or one if no port is open", EW__SERVE_THREADS},    \
        {"drain", 0, "DUR", "how long running calls may go on after the first signal; 10s, for an RRQ\nrunner 100ms",  \
         EW__SERVE_DRAIN},                                                                                             \
        {"runtime-grace", 0, "DUR",                                                                                    \
         "how long the actions of a runtime that dialled us and has left stay listed, and\n"                           \
         "calls wait for it; 60s; 0: not at all",                                                                      \
         EW__SERVE_RUNTIME_GRACE},                                                                                     \
        {"final-status", 0, "STATUS,...",                                                                              \
         "statuses that no further attempt changes: such a job is a dead letter at once;\n"                            \
         "INVALID_ARGUMENT,UNIMPLEMENTED; none: every failure is tried again",                                         \
         EW__SERVE_FINAL_STATUS},                                                                                      \
        EW__TLS_OPTIONS,                                                                                               \
        {"allow-host", 0, "HOST",                                                                                      \
         "a further host that HTTP requests may name: NAME or *.DOMAIN (every name below\n"                            \
         "it), with :PORT if it is not the listener's; may be repeated",                                               \
         EW__SERVE_ALLOW_HOST},                                                                                        \
        {"allow-remote", 0, NULL,                                                                                      \
         "let listeners take other addresses than loopback ones; callers over TCP must\n"                              \
         "then show a token (everywire token new)",                                                                    \
         EW__SERVE_ALLOW_REMOTE},                                                                                      \
        {"tokens", 0, "FILE", "the file of tokens; callers over TCP must show one, on every address",                  \
         EW__SERVE_TOKENS},                                                                                            \
        {"require-token", 0, NULL, "the same with the usual file", EW__SERVE_REQUIRE_TOKEN},                           \
        {"no-token", 0, NULL, "serve everybody who reaches a listener, without a token", EW__SERVE_NO_TOKEN},          \
        {"stack-traces", 0, "local|all|none",                                                                          \
         "which callers see the stack traces in errors of upstreams: those on this machine\n"                          \
         "(default), all, or none",                                                                                    \
         EW__SERVE_STACK_TRACES},                                                                                      \
        {"sandbox", 0, "off|auto|on",                                                                                  \
         "give up rights before serving: dangerous system calls, and writing outside the\n"                            \
         "folders that are needed; auto: what the kernel supports; on: all of it, or no\n"                             \
         "start; off (default)",                                                                                       \
         EW__SERVE_SANDBOX},                                                                                           \
        {"sandbox-write", 0, "PATH", "a further folder or file that may be written; may be repeated",                  \
         EW__SERVE_SANDBOX_WRITE},                                                                                     \
        {"limit", 0, "NAME=VALUE", "change a limit; --help limits lists them; may be repeated", EW__SERVE_LIMIT},      \
        {"log-level", 0, "LEVEL", "error, warn, info (default), debug, or trace: debug and --verbose",                 \
         EW__SERVE_LOG_LEVEL},                                                                                         \
        {"verbose", 'v', "[=full]", EW__VERBOSE_HELP, EW__SERVE_VERBOSE},                                              \
        {"quiet", 'q', NULL, "print nothing but errors", EW__SERVE_QUIET},                                             \
        {"help", 'h', NULL, "show this; --help limits shows the limits", EW__SERVE_HELP}, {                            \
        "version", 'V', NULL, "show the version", EW__SERVE_VERSION                                                    \
    }

/* What such a program looks at besides; for its help. */
#define EW__SERVE_ENVIRONMENT                                                                                          \
    "  GENKIT_REFLECTION_V2_SERVER       as --connect; set by the Genkit CLI for the program it starts\n"              \
    "  GENKIT_TELEMETRY_SERVER           as --telemetry\n"                                                             \
    "  GENKIT_ENABLE_REALTIME_TELEMETRY  true: send spans when calls begin, too\n"                                     \
    "  GENKIT_RUNTIME_ID                 as --runtime-id\n"                                                            \
    "  RRQ_RUNNER_TCP_SOCKET             as --tcp-socket, if that is not given\n"                                      \
    "  EVERYWIRE_TOKENS                  as --tokens\n"                                                                \
    "  EVERYWIRE_SANDBOX                 as --sandbox, if neither that nor the file sets it\n"                         \
    "  EVERYWIRE_TOKEN                   the token that imports and --connect show\n"                                  \
    "  EVERYWIRE_STORE                   where the jobs of a worker are, if --store is not given\n"                    \
    "  RRQ_CONFIG, RRQ_REDIS_DSN         RRQ's own, for a worker without --store and --config\n"                       \
    "  LISTEN_FDS, NOTIFY_SOCKET         systemd's: sockets to listen on, and where to say how it is\n"

#endif
