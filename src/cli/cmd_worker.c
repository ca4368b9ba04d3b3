/*
 * cli/cmd_worker.c: everywire worker: an app that runs jobs, and serves only if it is told to.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include <string.h>

ew__opt ew__cmd_worker_options[EW__SERVE_OPTIONS_MAX];

void ew__cmd_worker_prepare(void) {
    static const ew__opt own[] = {{"demo", 0, NULL, EW__DEMO_HELP, EW__CLI_DEMO},
                                  {"id", 0, "ID", "as --worker-id", EW__CLI_ID},
                                  {NULL, 0, NULL, NULL, 0}};
    ew__serve_options(ew__cmd_worker_options, own);
}

/* Those that a worker is mostly given; the rest are serve's. */
static const ew__opt shown[] = {
    {"store", 0, "STORE", "where the jobs are: sqlite:PATH or redis://[USER:PASSWORD@]HOST:PORT/DB", 1},
    {"queue", 0, "QUEUE", "run jobs of this queue; may be repeated; default", 1},
    {"concurrency", 0, "N", "so many at a time; 10, with runners what these can take", 1},
    {"burst", 0, NULL, "end when no job is due and none runs", 1},
    {"demo", 0, NULL, EW__DEMO_HELP, 1},
    {"import", 0, "[PREFIX=]TARGET", "jobs may run on the actions behind TARGET, too; may be repeated", 1},
    {"config", 0, "FILE",
     "an everywire.yaml, with its jobs: (docs/config.md), or RRQ's rrq.toml; what\nstands here wins over it", 1},
    {"listen", 0, "[WIRE=]ADDR", "serve there, too, /jobs included; without it no port is opened", 1},
    {"drain", 0, "DUR", "how long running jobs may go on after the first signal; then they are handed\nback; 10s", 1},
    {"id", 0, "ID", "what the store knows this worker by; without it: made of the process id", 1},
    {"threads", 0, "N", "event loops; without it: one", 1},
    {"sandbox", 0, "off|auto|on", "give up rights before any job runs (docs/sandbox.md); off", 1},
    {"log-level", 0, "LEVEL", "error, warn, info (default) or debug", 1},
    {"quiet", 'q', NULL, "print nothing but errors", 1},
    {"help", 'h', NULL, "show this; everywire serve --help shows all further options", 1},
    {NULL, 0, NULL, NULL, 0},
};

void ew__cmd_worker_help(FILE *out) {
    (void)fprintf(out,
                  "Usage: everywire worker [run] [OPTIONS]\n\n"
                  "Runs durable jobs: on the demo actions, on those of --import and of the configuration file, on\n"
                  "RRQ runners that the file names. The first SIGINT or SIGTERM lets running jobs end, and hands back\n"
                  "those that do not; the second one ends at once. What a worker that dies has begun is taken up by\n"
                  "another one, or by itself when it is back, within 20 s.\n"
                  "\nOptions:\n");
    ew__opts_help(out, shown, ew__wire_option_text);
    (void)fprintf(
        out, "\nStandard output gets {\"event\":\"ready\"} once it works; logs go to standard error.\n"
             "\nThe store: --store, else EVERYWIRE_STORE, else what --config says, else RRQ's file (RRQ_CONFIG, or\n"
             "./rrq.toml) with RRQ_REDIS_DSN over it, which is then the configuration, too; else\n"
             "sqlite:~/.local/state/everywire/jobs.db (below XDG_STATE_HOME, if that is set).\n"
             "\nExamples:\n"
             "  everywire worker --demo\n"
             "  everywire worker --demo --store sqlite:jobs.db --queue mail --queue default --burst\n"
             "  everywire worker --store redis://localhost:6379/0 --import http://127.0.0.1:3400\n"
             "  everywire worker --config everywire.yaml\n"
             "  everywire worker run --config rrq.toml\n");
}

int ew__cmd_worker(int argc, char **argv) {
    if (argc > 0 && strcmp(argv[0], "run") == 0) {
        argc--;
        argv++;
    } else if (argc > 0 && strcmp(argv[0], "watch") == 0) {
        return ew__cli_usage("worker", "it does not watch files: there is only everywire worker [run]");
    } else if (argc > 0 && argv[0][0] != '-') {
        return ew__cli_usagef("worker", "unknown word %.80s; the only one is run", argv[0]);
    }
    return ew__cli_serve(&(ew__serving){"worker", ew__cmd_worker_options, ew__cmd_worker_help, true}, argc, argv);
}
