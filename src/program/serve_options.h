/*
 * program/serve_options.h: the options of programs that serve, and those of TLS, as data.
 */
#ifndef EW_PROGRAM_SERVE_OPTIONS_H
#define EW_PROGRAM_SERVE_OPTIONS_H

#include "base/opt.h"
#include <everywire/tls.h>

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

/* The words of the wires by which orchestrators start a program (ew_start_word_at) have ids from here on, by index. */
#define EW__SERVE_START 2000
#define EW__SERVE_OPTIONS_MAX 80

/* Fills a table: the program's own options, which come first, and those above. Ended as such tables are. */
void ew__serve_options(ew__opt out[EW__SERVE_OPTIONS_MAX], const ew__opt *own);
/* The help of such a table, and of the environment variables. */
void ew__serve_options_help(FILE *out, const ew__opt *table);
void ew__serve_environment_help(FILE *out);

#endif
