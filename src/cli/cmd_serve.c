/*
 * cli/cmd_serve.c: everywire serve: an app with the demo actions on request, run by ew_app_main. Only what ew_app_main
 * does not know is done here: --demo, and a help that shows it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/opt.h"
#include "cli/cli.h"
#include <string.h>
#include <unistd.h>

enum { OPT_DEMO = EW__SERVE_OWN };

static const ew__opt options[] = {
    {"demo", 0, NULL, "offer the demo actions: greet, echo, count, sleep, fail, stream, sum,\ncontext, big, sha256",
     OPT_DEMO},
    EW__SERVE_OPTIONS,
    {NULL, 0, NULL, NULL, 0},
};

void ew__cmd_serve_help(FILE *out) {
    (void)fprintf(out,
                  "Usage: everywire serve [OPTIONS]\n\n"
                  "Offers actions on a port that speaks every wire, or to a manager that it dials, until a signal\n"
                  "ends it. The first SIGINT or SIGTERM lets running calls finish, the second one ends at once.\n"
                  "\nOptions:\n");
    ew__opts_help(out, options);
    (void)fprintf(out, "\nDUR is 500ms, 2s, 1m, 1h; a bare number is seconds. Standard output says where it listens:\n"
                       "a table on a terminal, else one JSON line per listener and manager and {\"event\":\"ready\"}.\n"
                       "Logs go to standard error.\n"
                       "\nEnvironment:\n" EW__SERVE_ENVIRONMENT "\nExamples:\n"
                       "  everywire serve --demo\n"
                       "  everywire serve --demo --listen 127.0.0.1:0\n"
                       "  everywire serve --demo --listen http=127.0.0.1:8080 --limit frame_bytes=1M --drain 2s\n"
                       "  everywire serve --demo --connect ws://localhost:3200\n"
                       "  genkit start -- everywire serve --demo\n"
                       "  everywire serve --demo --tcp-socket 127.0.0.1:9000\n"
                       "  everywire serve --demo --port 8080\n"
                       "  everywire serve --demo --stdio\n"
                       "  everywire serve --import rrq://127.0.0.1:9000 --import py=http://127.0.0.1:8080\n"
                       "  everywire serve --import 'rrq://127.0.0.1:9000#send_email,resize'\n");
}

/* Copies the words that are for ew_app_main. -1: go on; else the exit code. */
static int sort_words(int argc, char **argv, char **rest, int *n_rest, bool *demo, bool *others) {
    ew__opts opts;
    ew__opts_init(&opts, options, argc, argv, 0);
    for (;;) {
        int first = opts.at;
        int id = ew__opts_next(&opts);
        if (id == EW__OPT_END) {
            return -1;
        }
        if (id == EW__OPT_BAD) {
            return ew__cli_usage("serve", opts.problem);
        }
        if (id == EW__SERVE_HELP && (opts.at >= argc || strcmp(argv[opts.at], "limits") != 0)) {
            ew__cmd_serve_help(stdout);
            return EW__EXIT_OK;
        }
        if (id == OPT_DEMO) {
            *demo = true;
            continue;
        }
        *others = *others || id == EW__SERVE_IMPORT || id == EW__SERVE_CONFIG;
        for (int i = first; i < opts.at; i++) {
            rest[(*n_rest)++] = argv[i];
        }
    }
}

static int serve(int argc, char **argv, bool demo, bool others) {
    ew_app *app = ew_app_new("everywire");
    ew_err err = app ? EW_OK : EW_ENOMEM;
    if (err == EW_OK && demo) {
        err = ew__demo_register(app);
    }
    if (err != EW_OK) {
        (void)fprintf(stderr, "everywire serve: %s\n",
                      app && *ew_app_error(app) ? ew_app_error(app) : ew_err_text(err));
        (void)ew_app_free(app);
        return EW__EXIT_FAILED;
    }
    if (!demo && !others) {
        ew__cli_hint("there are no actions to serve; --import offers those of others, --demo some to try");
    }
    return ew_app_main(app, argc, argv);
}

int ew__cmd_serve(int argc, char **argv) {
    char name[] = "everywire serve";
    size_t size = ((size_t)argc + 2) * sizeof(char *);
    char **rest = ew__cli_alloc(size);
    int n_rest = 1;
    bool demo = false, others = false; /* actions of the demo, and of others */
    if (!rest) {
        return EW__EXIT_FAILED;
    }
    rest[0] = name;
    int code = sort_words(argc, argv, rest, &n_rest, &demo, &others);
    if (code < 0) {
        code = serve(n_rest, rest, demo, others);
    }
    ew__cli_free(rest, size);
    return code;
}
