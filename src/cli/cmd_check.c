/*
 * cli/cmd_check.c: everywire check: what is wrong with a configuration file, one line for each thing; or, with --reference,
 * what such a file may hold.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "config/reference.h"
#include <string.h>
#include <unistd.h>

enum { OPT_JSON = 1, OPT_REFERENCE, OPT_HELP };

const ew__opt ew__cmd_check_options[] = {
    {"json", 0, NULL, "print each problem as one line of JSON: file, line, column, message", OPT_JSON},
    {"reference", 0, NULL, "print the page about the file instead, as Markdown", OPT_REFERENCE},
    {"help", 'h', NULL, "show this", OPT_HELP},
    {NULL, 0, NULL, NULL, 0},
};

void ew__cmd_check_help(FILE *out) {
    (void)fprintf(out, "Usage: everywire check FILE [--json]\n"
                       "       everywire check --reference\n\n"
                       "Tells every problem of a configuration file, as everywire serve --config takes it: one line\n"
                       "FILE:LINE:COLUMN: MESSAGE for each (without line and column where it is the file's as a\n"
                       "whole). A file named *.toml is RRQ's own, rrq.toml, for everywire worker. Nothing is opened,\n"
                       "started or loaded but the file.\n"
                       "\nOptions:\n");
    ew__opts_help(out, ew__cmd_check_options, ew__wire_option_text);
    (void)fprintf(out, "\nExit codes: 0 no problem, 1 problems, 2 bad usage.\n"
                       "\nExamples:\n"
                       "  everywire check everywire.yaml\n"
                       "  everywire check everywire.yaml --json | jq .message\n"
                       "  everywire check rrq.toml\n"
                       "  everywire check --reference >config.md\n");
}

typedef struct check {
    const char *file;
    bool json, reference;
} check;

/* -1: go on; else the exit code. */
static int read_words(check *c, int argc, char **argv) {
    ew__opts opts;
    ew__opts_init(&opts, ew__cmd_check_options, argc, argv, 0);
    for (;;) {
        int id = ew__opts_next(&opts);
        if (id == EW__OPT_END) {
            break;
        }
        if (id == EW__OPT_BAD) {
            return ew__cli_usage("check", opts.problem);
        }
        if (id == OPT_HELP) {
            ew__cmd_check_help(stdout);
            return EW__EXIT_OK;
        }
        if (id == EW__OPT_REST || (id == EW__OPT_WORD && c->file)) {
            return ew__cli_usage("check", "one FILE at a time");
        }
        c->file = id == EW__OPT_WORD ? opts.value : c->file;
        c->json = c->json || id == OPT_JSON;
        c->reference = c->reference || id == OPT_REFERENCE;
    }
    if (c->reference == (c->file != NULL)) {
        return ew__cli_usage("check",
                             c->file ? "--reference takes no FILE" : "which FILE? (everywire health tells of workers)");
    }
    return -1;
}

static void print_problem(const ew_config_problem *problem, void *ud) {
    const check *c = ud;
    ew__text line = {0};
    if (!c->json && problem->line) {
        (void)printf("%s:%u:%u: %s\n", problem->file, problem->line, problem->column, problem->message);
    } else if (!c->json) {
        (void)printf("%s: %s\n", problem->file, problem->message);
    } else if (ew__cli_format(&line, "{\"file\":%Q,\"line\":%u,\"column\":%u,\"message\":%Q}", problem->file,
                              problem->line, problem->column, problem->message) == EW_OK) {
        (void)printf("%.*s\n", (int)line.len, line.ptr);
    }
    ew__text_free(&line);
}

/* What standard output takes tells whether the answer has arrived. */
static int written(int code) { return fflush(stdout) == 0 ? code : EW__EXIT_BROKEN_PIPE; }

int ew__cmd_check(int argc, char **argv) {
    check c = {.file = NULL};
    int code = read_words(&c, argc, argv);
    if (code >= 0) {
        return code;
    }
    if (c.reference) {
        ew__config_reference(stdout);
        return written(EW__EXIT_OK);
    }
    ew_err err = ew_config_check(c.file, print_problem, &c);
    if (err == EW_OK && !c.json && isatty(STDOUT_FILENO)) {
        (void)printf("%s: fine\n", c.file);
    } else if (err == EW_ENOMEM) {
        (void)fprintf(stderr, "everywire check: %s\n", ew_err_text(err));
    }
    return written(err == EW_OK ? EW__EXIT_OK : EW__EXIT_FAILED);
}
