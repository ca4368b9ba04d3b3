/*
 * cli/main.c: the everywire program: finds the verb and hands it the rest. Nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "cli/jobs.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define LISTED ew__listing_table
#define CALLED "TARGET ACTION [INPUT]"

static const ew__verb verbs[] = {
    {"serve", "offer actions on a port, or to a manager that is dialled", ew__cmd_serve, ew__cmd_serve_help,
     ew__cmd_serve_options, "", NULL},
    {"call", "call an action and print its result", ew__cmd_call, ew__cmd_call_help, ew__cmd_call_options, CALLED,
     NULL},
    {"list", "show the actions of a peer", ew__cmd_list, ew__cmd_list_help, LISTED, "TARGET", NULL},
    {"describe", "show one action of a peer", ew__cmd_describe, ew__cmd_describe_help, LISTED, "TARGET ACTION", NULL},
    {"bench", "call an action many times and tell how fast that was", ew__cmd_bench, ew__cmd_bench_help,
     ew__cmd_bench_options, CALLED, NULL},
    {"worker", "run durable jobs", ew__cmd_worker, ew__cmd_worker_help, ew__cmd_worker_options, "", NULL},
    {"job", "enqueue a job, show, wait for, cancel, replay jobs", ew__cmd_job, ew__cmd_job_help, NULL, NULL,
     &ew__noun_job},
    {"queue", "show queues of jobs, pause and resume them", ew__cmd_queue, ew__cmd_queue_help, NULL, NULL,
     &ew__noun_queue},
    {"dlq", "show jobs that have failed for good, and requeue them", ew__cmd_dlq, ew__cmd_dlq_help, NULL, NULL,
     &ew__noun_dlq},
    {"health", "tell whether a worker is alive", ew__cmd_health, ew__cmd_health_help, NULL, NULL, &ew__noun_health},
    {"token", "make, list and revoke the tokens that callers show", ew__cmd_token, ew__cmd_token_help,
     ew__cmd_token_options, "new|list|revoke [NAME]", NULL},
    {"check", "tell what is wrong with a configuration file", ew__cmd_check, ew__cmd_check_help, ew__cmd_check_options,
     "FILE", NULL},
    {"completion", "print a script that completes command lines in a shell", ew__cmd_completion,
     ew__cmd_completion_help, ew__cmd_completion_options, "SHELL", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};
#define N_VERBS (sizeof verbs / sizeof *verbs - 1)

static void help(FILE *out) {
    bool colour = ew__cli_colour(out == stderr ? STDERR_FILENO : STDOUT_FILENO);
    char text[EW__WIRE_TEXT_MAX];
    const char *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
    (void)fprintf(out, "%severywire%s: one action, every wire\n\nUsage: everywire VERB [OPTIONS] ...\n\nVerbs:\n", bold,
                  plain);
    for (size_t i = 0; i < N_VERBS; i++) {
        (void)fprintf(out, "  %s%-11s%s %s\n", bold, verbs[i].name, plain, verbs[i].summary);
    }
    (void)fputs("\nOptions:\n"
                "  -h, --help     show this; everywire VERB --help shows a verb's\n"
                "  -V, --version  show the version\n",
                out);
    (void)fputs(ew__wire_text("\nTARGET is where a peer is: <<targets>>; everywire call --help says more\n", 92, 0,
                              text, sizeof text),
                out);
    (void)fputs("\nExamples:\n"
                "  everywire serve --demo\n"
                "  everywire list http://127.0.0.1:3400\n"
                "  everywire call http://127.0.0.1:3400 greet '{\"name\":\"Ada\"}' --stream\n"
                "  everywire job enqueue greet '{\"name\":\"Ada\"}' && everywire worker --demo --burst\n"
                "\nExit codes: 0 done, 1 the action failed, 2 bad usage, 3 peer not reached or lost, 4 peer broke the\n"
                "protocol, 5 our deadline passed, 130 interrupted.\n",
                out);
}

static const ew__verb *find_verb(const char *name) {
    for (size_t i = 0; i < N_VERBS; i++) {
        if (strcmp(verbs[i].name, name) == 0) {
            return &verbs[i];
        }
    }
    return NULL;
}

static int unknown_verb(const char *word) {
    static const char *const options[] = {"--help", "--version", "help", "version"};
    ew__suggestion near;
    ew__suggestion_init(&near, ew_str_from(word));
    for (size_t i = 0; i < N_VERBS; i++) {
        ew__suggestion_try(&near, ew_str_from(verbs[i].name));
    }
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        ew__suggestion_try(&near, ew_str_from(options[i]));
    }
    const char *kind = word[0] == '-' ? "option" : "verb";
    if (near.best.ptr) {
        (void)fprintf(stderr, "everywire: unknown %s %.80s; did you mean %s?\n", kind, word, near.best.ptr);
    } else {
        (void)fprintf(stderr, "everywire: unknown %s %.80s\n", kind, word);
    }
    (void)fprintf(stderr, "Try: everywire --help\n");
    return EW__EXIT_USAGE;
}

/* "help", "help call", "help limits" */
static int help_verb(int argc, char **argv) {
    if (argc < 1) {
        help(stdout);
        return EW__EXIT_OK;
    }
    if (strcmp(argv[0], "limits") == 0) {
        char *words[] = {(char[]){"--help"}, (char[]){"limits"}, NULL};
        return ew__cmd_serve(2, words);
    }
    const ew__verb *verb = find_verb(argv[0]);
    if (!verb) {
        return unknown_verb(argv[0]);
    }
    verb->help(stdout);
    return EW__EXIT_OK;
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

int main(int argc, char **argv) {
    ew__standard_descriptors();
    ew__cmd_serve_prepare();
    ew__cmd_worker_prepare();
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL); /* a closed socket or pipe is an error to handle, not the end */
    if (argc < 2) {
        help(stderr);
        return EW__EXIT_USAGE;
    }
    const ew__verb *verb = find_verb(argv[1]);
    if (verb) {
        return verb->run(argc - 2, argv + 2);
    }
    if (strcmp(argv[1], "__complete") == 0) { /* for the scripts of completion.c: no verb for people */
        return ew__complete(verbs, argc - 2, argv + 2);
    }
    if (is_one_of(argv[1], "--help", "-h", "help")) {
        return help_verb(argc - 2, argv + 2);
    }
    if (is_one_of(argv[1], "--version", "-V", "version")) {
        (void)printf("everywire %s\n", ew_version());
        return EW__EXIT_OK;
    }
    return unknown_verb(argv[1]);
}
