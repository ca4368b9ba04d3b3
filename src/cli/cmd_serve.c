/*
 * cli/cmd_serve.c: everywire serve: an app with the demo actions on request, run by ew_app_main. Only what ew_app_main
 * does not know is done here: --demo, and a help that shows it. A worker is the same with --worker.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include <string.h>
#include <unistd.h>

ew__opt ew__cmd_serve_options[EW__SERVE_OPTIONS_MAX];

void ew__cmd_serve_prepare(void) {
    static const ew__opt own[] = {{"demo", 0, NULL, EW__DEMO_HELP, EW__CLI_DEMO}, {NULL, 0, NULL, NULL, 0}};
    ew__serve_options(ew__cmd_serve_options, own);
}

void ew__cmd_serve_help(FILE *out) {
    (void)fprintf(out,
                  "Usage: everywire serve [OPTIONS]\n\n"
                  "Offers actions on a port that speaks every wire, or to a manager that it dials, until a signal\n"
                  "ends it. The first SIGINT or SIGTERM lets running calls finish, the second one ends at once.\n"
                  "\nOptions:\n");
    ew__opts_help(out, ew__cmd_serve_options, ew__wire_option_text);
    (void)fprintf(out, "\nDUR is 500ms, 2s, 1m, 1h; a bare number is seconds. Standard output says where it listens:\n"
                       "a table on a terminal, else one JSON line per listener and manager and {\"event\":\"ready\"}.\n"
                       "Logs go to standard error.\n"
                       "\nEnvironment:\n");
    ew__serve_environment_help(out);
    ew__cli_wires(out, "\nExamples:\n"
                       "  everywire serve --demo\n"
                       "  everywire serve --demo --listen 127.0.0.1:0\n"
                       "  everywire serve --demo --listen http=127.0.0.1:8080 --limit frame_bytes=1M --drain 2s\n"
                       "<<serve>>"
                       "  everywire serve --demo --stdio\n"
                       "  everywire serve --demo --store sqlite:jobs.db --worker --listen 127.0.0.1:3400\n"
                       "<<serve import>>");
}

/* What the words say to us, and those that are for ew_app_main. */
typedef struct sorted {
    char **rest;
    int n_rest;
    bool demo;
    bool others; /* there may be actions of others */
} sorted;

/* -1: go on; else the exit code. */
static int sort_words(const ew__serving *serving, int argc, char **argv, sorted *to) {
    static char worker_id[] = "--worker-id";
    ew__opts opts;
    ew__opts_init(&opts, serving->options, argc, argv, 0);
    for (;;) {
        int first = opts.at;
        int id = ew__opts_next(&opts);
        if (id == EW__OPT_END) {
            return -1;
        }
        if (id == EW__OPT_BAD) {
            return ew__cli_usage(serving->verb, opts.problem);
        }
        if (id == EW__SERVE_HELP && (opts.at >= argc || strcmp(argv[opts.at], "limits") != 0)) {
            serving->help(stdout);
            return EW__EXIT_OK;
        }
        if (id == EW__CLI_DEMO) {
            to->demo = true;
            continue;
        }
        if (id == EW__CLI_ID) {
            union {
                const char *in;
                char *out;
            } value = {opts.value}; /* a word of argv */
            to->rest[to->n_rest++] = worker_id;
            to->rest[to->n_rest++] = value.out;
            continue;
        }
        to->others = to->others || id == EW__SERVE_IMPORT || id == EW__SERVE_CONFIG;
        for (int i = first; i < opts.at; i++) {
            to->rest[to->n_rest++] = argv[i];
        }
    }
}

static int serve(const ew__serving *serving, const sorted *words) {
    ew_app *app = ew_app_new("everywire");
    ew_err err = app ? EW_OK : EW_ENOMEM;
    if (err == EW_OK && words->demo) {
        err = ew__demo_register(app);
    }
    if (err != EW_OK) {
        (void)fprintf(stderr, "everywire %s: %s\n", serving->verb,
                      app && *ew_app_error(app) ? ew_app_error(app) : ew_err_text(err));
        (void)ew_app_free(app);
        return EW__EXIT_FAILED;
    }
    if (!words->demo && !words->others && !serving->worker) {
        ew__cli_hint("there are no actions to serve; --import offers those of others, --demo some to try");
    }
    return ew_app_main(app, words->n_rest, words->rest);
}

int ew__cli_serve(const ew__serving *serving, int argc, char **argv) {
    static char worker[] = "--worker";
    char name[64];
    size_t size = ((size_t)argc * 2 + 4) * sizeof(char *); /* one word may become two */
    sorted words = {.rest = ew__cli_alloc(size)};
    if (!words.rest) {
        return EW__EXIT_FAILED;
    }
    (void)snprintf(name, sizeof name, "everywire %s", serving->verb);
    words.rest[words.n_rest++] = name;
    if (serving->worker) {
        words.rest[words.n_rest++] = worker;
    }
    int code = sort_words(serving, argc, argv, &words);
    if (code < 0) {
        code = serve(serving, &words);
    }
    ew__cli_free(words.rest, size);
    return code;
}

int ew__cmd_serve(int argc, char **argv) {
    return ew__cli_serve(&(ew__serving){"serve", ew__cmd_serve_options, ew__cmd_serve_help, false}, argc, argv);
}
