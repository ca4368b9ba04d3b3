/*
 * program/serve_options.c: see serve_options.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/serve_options.h"
#include "wire/texts.h"
#include <string.h>

static const ew__opt first[] = {
    {"listen", 0, "[WIRE=]ADDR",
     "listen there; WIRE is any (default), <<listeners>>; with TLS: tls (any), "
     "<<secure listeners>>; ADDR is HOST:PORT (port 0 picks a free one), unix:PATH or stdio; may be repeated;\n"
     "without this and the next five: 127.0.0.1:3400",
     EW__SERVE_LISTEN},
    {"connect", 0, "URL",
     "dial a manager such as the Genkit CLI, ws://HOST:PORT[/PATH] (wss:// with TLS),\n"
     "and offer it the actions; for ever; may be repeated",
     EW__SERVE_CONNECT},
    {"config", 0, "FILE",
     "read this YAML file, which everywire check explains; the command line wins\n"
     "over it; SIGHUP reads it again",
     EW__SERVE_CONFIG},
    {"import", 0, "[PREFIX=]TARGET",
     "offer the actions behind TARGET, <<program targets>> and so on (what call takes),\n"
     "as actions here, PREFIX/NAME; TARGET,TARGET: the same actions at several;\n"
     "TARGET#NAME[:AS],...: only these; <<import>>may be repeated",
     EW__SERVE_IMPORT},
    {"store", 0, "STORE",
     "keep durable jobs there, sqlite:PATH or redis://HOST:PORT/DB, and serve them\n"
     "as /jobs over HTTP",
     EW__SERVE_STORE},
    {"worker", 0, NULL,
     "run jobs of that store, too (without --store: of the usual one); a worker\n"
     "opens no port unless --listen or the file asks",
     EW__SERVE_WORKER},
    {"queue", 0, "QUEUE", "... jobs of this queue; may be repeated; default", EW__SERVE_QUEUE},
    {"concurrency", 0, "N", "... so many at a time; 10, with runners what these can take", EW__SERVE_CONCURRENCY},
    {"burst", 0, NULL, "... and end when none is due", EW__SERVE_BURST},
    {"worker-id", 0, "ID", "... known to the store as ID; without it: made of the process id", EW__SERVE_WORKER_ID},
    {NULL, 0, NULL, NULL, 0},
};

/* Behind the words of the wires. */
static const ew__opt last[] = {
    {"stdio", 0, NULL,
     "serve whoever started this program, on standard input and output: <<stdio titles>>, told by the first line",
     EW__SERVE_STDIO},
    {"telemetry", 0, "URL",
     "send the spans of all calls to this Genkit telemetry server,\nhttp://HOST:PORT or https://HOST:PORT",
     EW__SERVE_TELEMETRY},
    {"runtime-id", 0, "ID", "what managers know this program by; without it: the process id", EW__SERVE_RUNTIME_ID},
    {"threads", 0, "N", "event loops; without it: one per core, or one if no port is open", EW__SERVE_THREADS},
    {"drain", 0, "DUR", "how long running calls may go on after the first signal; 10s<<drain>>", EW__SERVE_DRAIN},
    {"runtime-grace", 0, "DUR",
     "how long the actions of a runtime that dialled us and has left stay listed, and\n"
     "calls wait for it; 60s; 0: not at all",
     EW__SERVE_RUNTIME_GRACE},
    {"final-status", 0, "STATUS,...",
     "statuses that no further attempt changes: such a job is a dead letter at once;\n"
     "INVALID_ARGUMENT,UNIMPLEMENTED; none: every failure is tried again",
     EW__SERVE_FINAL_STATUS},
    EW__TLS_OPTIONS,
    {"allow-host", 0, "HOST",
     "a further host that HTTP requests may name: NAME or *.DOMAIN (every name below\n"
     "it), with :PORT if it is not the listener's; may be repeated",
     EW__SERVE_ALLOW_HOST},
    {"allow-remote", 0, NULL,
     "let listeners take other addresses than loopback ones; callers over TCP must\n"
     "then show a token (everywire token new)",
     EW__SERVE_ALLOW_REMOTE},
    {"tokens", 0, "FILE", "the file of tokens; callers over TCP must show one, on every address", EW__SERVE_TOKENS},
    {"require-token", 0, NULL, "the same with the usual file", EW__SERVE_REQUIRE_TOKEN},
    {"no-token", 0, NULL, "serve everybody who reaches a listener, without a token", EW__SERVE_NO_TOKEN},
    {"stack-traces", 0, "local|all|none",
     "which callers see the stack traces in errors of upstreams: those on this machine\n"
     "(default), all, or none",
     EW__SERVE_STACK_TRACES},
    {"sandbox", 0, "off|auto|on",
     "give up rights before serving: dangerous system calls, and writing outside the\n"
     "folders that are needed; auto: what the kernel supports; on: all of it, or no\n"
     "start; off (default)",
     EW__SERVE_SANDBOX},
    {"sandbox-write", 0, "PATH", "a further folder or file that may be written; may be repeated",
     EW__SERVE_SANDBOX_WRITE},
    {"limit", 0, "NAME=VALUE", "change a limit; --help limits lists them; may be repeated", EW__SERVE_LIMIT},
    {"log-level", 0, "LEVEL", "error, warn, info (default), debug, or trace: debug and --verbose", EW__SERVE_LOG_LEVEL},
    {"verbose", 'v', "[=full]", EW__VERBOSE_HELP, EW__SERVE_VERBOSE},
    {"quiet", 'q', NULL, "print nothing but errors", EW__SERVE_QUIET},
    {"help", 'h', NULL, "show this; --help limits shows the limits", EW__SERVE_HELP},
    {"version", 'V', NULL, "show the version", EW__SERVE_VERSION},
    {NULL, 0, NULL, NULL, 0},
};

static size_t append(ew__opt *out, size_t n, const ew__opt *rows) {
    for (; rows->name && n + 1 < EW__SERVE_OPTIONS_MAX; rows++)
        out[n++] = *rows;
    return n;
}

void ew__serve_options(ew__opt out[EW__SERVE_OPTIONS_MAX], const ew__opt *own) {
    const ew_start_word *word;
    size_t n = append(out, append(out, 0, own), first);
    for (int i = 0; (word = ew_start_word_at((size_t)i)) != NULL; i++)
        if (word->argument)
            n = append(
                out, n,
                (const ew__opt[]){{word->name + strlen("--"), 0, word->argument, word->help, EW__SERVE_START + i},
                                  {NULL, 0, NULL, NULL, 0}});
    out[append(out, n, last)] = (ew__opt){NULL, 0, NULL, NULL, 0};
}

void ew__serve_options_help(FILE *out, const ew__opt *table) { ew__opts_help(out, table, ew__wire_option_text); }

void ew__serve_environment_help(FILE *out) {
    const ew_start_word *word;
    for (size_t i = 0; (word = ew_start_word_at(i)) != NULL; i++)
        if (!word->argument)
            (void)fprintf(out, "  %-34s%s\n", word->name, word->help);
    (void)fputs("  EVERYWIRE_TOKENS                  as --tokens\n"
                "  EVERYWIRE_SANDBOX                 as --sandbox, if neither that nor the file sets it\n"
                "  EVERYWIRE_TOKEN                   the token that imports and --connect show\n"
                "  EVERYWIRE_STORE                   where the jobs of a worker are, if --store is not given\n"
                "  RRQ_CONFIG, RRQ_REDIS_DSN         RRQ's own, for a worker without --store and --config\n"
                "  LISTEN_FDS, NOTIFY_SOCKET         systemd's: sockets to listen on, and where to say how it is\n",
                out);
}

bool ew__tls_option(ew_tls_options *options, int id, const char *value) {
    const char **file = id == EW__OPT_TLS_CERT        ? &options->certificate
                        : id == EW__OPT_TLS_KEY       ? &options->key
                        : id == EW__OPT_TLS_CA        ? &options->ca
                        : id == EW__OPT_TLS_CLIENT_CA ? &options->client_ca
                                                      : NULL;
    if (file) {
        *file = value;
    } else if (id == EW__OPT_TLS_INSECURE) {
        options->insecure = true;
    }
    return file || id == EW__OPT_TLS_INSECURE;
}
