/*
 * cli/cmd_bench.c: everywire bench: makes the same call many times and tells how fast that went. This is what the user
 * asks and gets; the calls are made in bench_run.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPT_CONNECTIONS = EW__CALLING_OWN,
    OPT_DEPTH,
    OPT_DURATION,
    OPT_CALLS,
    OPT_RATE,
    OPT_WARMUP,
    OPT_STREAM,
    OPT_THREADS,
    OPT_JSON,
    OPT_PLOT,
    OPT_HELP
};

const ew__opt ew__cmd_bench_options[] = {
    {"connections", 'c', "N",
     "connections to the target; 10, or 1 where the peer is a program that is\n"
     "started, or dials us",
     OPT_CONNECTIONS},
    {"depth", 'd', "N",
     "calls under way at a time on each of them; 1. On <<single>>, where a\n"
     "connection carries one call, N times as many connections are made",
     OPT_DEPTH},
    {"duration", 't', "DUR", "measure that long; 10s, with -n until all are done", OPT_DURATION},
    {"calls", 'n', "N", "make so many calls, then stop", OPT_CALLS},
    {"rate", 'r', "N",
     "open loop: begin N calls a second in all, whether or not the ones before have\n"
     "ended (up to -c times -d); latency counts from when a call was to begin",
     OPT_RATE},
    {"warmup", 'w', "DUR", "make calls for that long before anything counts; 500ms, with -n none", OPT_WARMUP},
    {"stream", 's', NULL, "ask for chunks; count them, and measure the time to the first", OPT_STREAM},
    {"threads", 0, "N", "client threads, which share the connections; 1", OPT_THREADS},
    {"json", 'j', NULL, "print one JSON object; times are in microseconds", OPT_JSON},
    {"plot", 0, "FILE", "write latency by percentile there, as an SVG picture", OPT_PLOT},
    EW__CALLING_OPTIONS(0),
    {"help", 'h', NULL, "show this", OPT_HELP},
    {NULL, 0, NULL, NULL, 0},
};

#define DEFAULT_DURATION_MS (10 * 1000)
#define DEFAULT_WARMUP_MS 500
#define NOT_SAID UINT64_MAX

void ew__cmd_bench_help(FILE *out) {
    (void)fprintf(out, "Usage: everywire bench TARGET ACTION [INPUT] [OPTIONS] [-- COMMAND ARGS]\n\n"
                       "Makes the same call many times and prints how fast that went.\n\n");
    ew__cli_target_help(out);
    ew__cli_wires(
        out, "  ACTION  a key such as /flow/greet, or a name such as greet\n"
             "  INPUT   JSON text, @file, or - for standard input; without it: null, on <<object>> {}\n\nOptions:\n");
    ew__opts_help(out, ew__cmd_bench_options, ew__wire_option_text);
    (void)fprintf(
        out, "\nWithout --rate each connection's next call begins when its last one has ended (closed loop): that\n"
             "shows what the peer can do at most, but a peer that stalls is asked less while it stalls. With --rate\n"
             "calls come as users do, and a stall shows in the latency of all calls that were due. Latency is that\n"
             "of calls that the action ended, well or not, or that timed out. docs/bench.md says more.\n"
             "\nExit codes: 0 done (also when some calls failed), 2 bad usage; when none succeeded, that of the first\n"
             "error: 1 the action failed, 3 peer not reached or lost, 4 it broke the protocol, 5 the timeout passed;\n"
             "130 interrupted, after printing what there is.\n"
             "\nExamples:\n");
    ew__cli_wires(out, "<<bench>>");
}

/* ---- options ---- */

static int read_count(const char *name, const char *text, uint64_t most, uint64_t *ret) {
    char *end = NULL;
    errno = 0;
    unsigned long long n = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    if (n == 0 || errno || *end) {
        return ew__cli_usagef("bench", "%s %.80s: not a number above 0", name, text);
    }
    if (n > most) {
        return ew__cli_usagef("bench", "%s %.80s: at most %llu", name, text, (unsigned long long)most);
    }
    *ret = n;
    return 0;
}

static int read_duration(const char *name, const char *text, uint64_t *ret_ms) {
    ew_err err = ew__duration_parse(ew_str_from(text), ret_ms);
    if (err == EW_OK) {
        return 0;
    }
    return ew__cli_usagef("bench", "%s %.80s: %s", name, text,
                          err == EW_ELIMIT ? "too long" : "not a duration such as 500ms, 2s, 1m, 1h");
}

/* Digits and at most one point: strtod would depend on the locale. */
static int read_rate(const char *text, double *ret) {
    double value = 0, scale = 1;
    bool point = false, digits = false;
    const char *at = text;
    for (; (*at >= '0' && *at <= '9') || (*at == '.' && !point); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        digits = true;
        value = value * 10 + (*at - '0');
        scale *= point ? 10 : 1;
    }
    value /= scale;
    if (*at || !digits || value <= 0) {
        return ew__cli_usagef("bench", "--rate %.80s: not a number of calls a second", text);
    }
    if (value < 0.001 || value > 1e7) {
        return ew__cli_usagef("bench", "--rate %.80s: from 0.001 to 10000000", text);
    }
    *ret = value;
    return 0;
}

/* -1: go on; else the exit code. */
static int take_option(ew__bench_plan *plan, ew__opts *opts, int id) {
    int bad = 0;
    switch (id) {
    case OPT_CONNECTIONS:
        bad = read_count("-c", opts->value, UINT32_MAX, &plan->connections);
        break;
    case OPT_DEPTH:
        bad = read_count("-d", opts->value, UINT32_MAX, &plan->depth);
        break;
    case OPT_DURATION:
        bad = read_duration("-t", opts->value, &plan->duration_ms);
        break;
    case OPT_CALLS:
        bad = read_count("-n", opts->value, (uint64_t)1 << 50, &plan->calls);
        break;
    case OPT_RATE:
        bad = read_rate(opts->value, &plan->rate);
        break;
    case OPT_WARMUP:
        bad = read_duration("--warmup", opts->value, &plan->warmup_ms);
        break;
    case OPT_STREAM:
        plan->stream = true;
        break;
    case OPT_THREADS:
        bad = read_count("--threads", opts->value, UINT32_MAX, &plan->threads);
        break;
    case OPT_JSON:
        plan->json = true;
        break;
    case OPT_PLOT:
        plan->plot = opts->value;
        break;
    case OPT_HELP:
        ew__cmd_bench_help(stdout);
        return EW__EXIT_OK;
    default:
        return ew__calling_take(&plan->calling, opts, id);
    }
    return bad ? bad : -1;
}

static int read_options(ew__bench_plan *plan, int argc, char **argv) {
    ew__opts opts;
    ew__opts_init(&opts, ew__cmd_bench_options, argc, argv, 0);
    for (int id = ew__opts_next(&opts); id != EW__OPT_END; id = ew__opts_next(&opts)) {
        int code = take_option(plan, &opts, id);
        if (code >= 0) {
            return code;
        }
    }
    int code = ew__calling_complete(&plan->calling);
    if (code >= 0) {
        return code;
    }
    if (plan->duration_ms == 0) {
        return ew__cli_usage("bench", "-t 0: there would be nothing to measure");
    }
    if (plan->duration_ms == NOT_SAID) {
        plan->duration_ms = plan->calls > 0 ? 0 : DEFAULT_DURATION_MS;
    }
    if (plan->warmup_ms == NOT_SAID) {
        plan->warmup_ms = plan->calls > 0 ? 0 : DEFAULT_WARMUP_MS;
    }
    const char *problem = ew__bench_arrange(plan);
    return problem ? ew__cli_usage("bench", problem) : -1;
}

/* ---- what comes of it ---- */

/* Before the run: it would be a pity to find out after it. */
static FILE *open_plot(const ew__bench_plan *plan) {
    FILE *file = fopen(plan->plot, "we");
    if (!file) {
        (void)ew__cli_usagef("bench", "--plot: cannot write %.400s: %s", plan->plot, strerror(errno));
    }
    return file;
}

static int write_plot(const ew__bench_plan *plan, const ew__bench_result *result, FILE *file) {
    ew__text svg = {0};
    ew_err err = ew__bench_plot_svg(plan, result, &svg);
    bool written = err == EW_OK && fwrite(svg.ptr, 1, svg.len, file) == svg.len && fflush(file) == 0;
    int why = err == EW_OK ? errno : ENOMEM;
    ew__text_free(&svg);
    if (!written) {
        (void)fprintf(stderr, "everywire bench: --plot: cannot write %.400s: %s\n", plan->plot, strerror(why));
    }
    return written ? EW__EXIT_OK : EW__EXIT_FAILED;
}

static bool is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) {
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "utf-8") || strstr(value, "UTF8");
        }
    }
    return false;
}

/* The message of the first error is the peer's: a terminal gets it escaped. */
static ew_err add_json(const ew__bench_plan *plan, const ew__bench_result *result, ew__text *out) {
    ew__text json = {0};
    ew_err err = ew__bench_json(plan, result, &json);
    ew_str text = ew__text_view(&json);
    if (err == EW_OK && isatty(STDOUT_FILENO)) {
        err = ew__cli_printable(out, text, EW__PRINTABLE_JSON);
    } else if (err == EW_OK) {
        err = ew__text_add(out, text);
    }
    ew__text_free(&json);
    return err == EW_OK ? ew__text_cstr(out, "\n") : err;
}

static int print(const ew__bench_plan *plan, const ew__bench_result *result) {
    ew__text out = {0};
    ew_err err = plan->json ? add_json(plan, result, &out) : ew__bench_table(plan, result, &out);
    if (err == EW_OK && !plan->json && isatty(STDOUT_FILENO)) {
        err = ew__bench_plot_text(result, is_utf8(), &out);
    }
    bool written = err == EW_OK && fwrite(out.ptr, 1, out.len, stdout) == out.len && fflush(stdout) == 0;
    int why = errno;
    ew__text_free(&out);
    if (written) {
        return EW__EXIT_OK;
    }
    if (err == EW_OK && why == EPIPE) {
        return EW__EXIT_BROKEN_PIPE;
    }
    (void)fprintf(stderr, "everywire bench: cannot write to standard output: %s\n",
                  err == EW_OK ? strerror(why) : ew_err_text(err));
    return EW__EXIT_FAILED;
}

static int ending(const ew__bench_plan *plan, const ew__bench_result *result) {
    if (result->signal_number) {
        return EW__EXIT_SIGNAL + result->signal_number;
    }
    if (result->statuses[EW_STATUS_OK] > 0) {
        return EW__EXIT_OK;
    }
    if (result->failed_first) {
        return ew__bench_failed(plan, result);
    }
    (void)fprintf(stderr, "everywire bench: no call ended in that time; -t is how long is measured\n");
    return EW__EXIT_FAILED;
}

static int report(const ew__bench_plan *plan, const ew__bench_result *result, FILE *plot) {
    int code = print(plan, result);
    if (plot && code == EW__EXIT_OK) {
        code = write_plot(plan, result, plot);
    }
    return code == EW__EXIT_OK ? ending(plan, result) : code;
}

int ew__cmd_bench(int argc, char **argv) {
    ew__bench_plan plan = {
        .calling = {.verb = "bench"}, .depth = 1, .threads = 1, .duration_ms = NOT_SAID, .warmup_ms = NOT_SAID};
    ew__bench_result result = {0};
    FILE *plot = NULL;
    int code = read_options(&plan, argc, argv);
    if (code < 0 && plan.plot && !(plot = open_plot(&plan))) {
        code = EW__EXIT_USAGE;
    }
    if (code < 0) {
        if (plan.note && !plan.json) {
            (void)fprintf(stderr, "%s\n", plan.note);
        }
        ew__interrupt_block(); /* before any client makes its thread */
        code = ew__bench_run(&plan, &result);
        code = code < 0 ? report(&plan, &result, plot) : code;
    }
    if (plot) {
        (void)fclose(plot);
    }
    ew__bench_result_free(&result);
    ew__calling_done(&plan.calling);
    return code;
}
