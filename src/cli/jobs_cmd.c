/*
 * cli/jobs_cmd.c: how the verbs about jobs are read and run: noun, verb, options, the store, the answer. See jobs.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/jobs.h"
#include "base/when.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- help ---- */

static bool is_noun_itself(const ew__jobs_noun *noun) { return !*noun->verbs[0].name; }

void ew__noun_help(const ew__jobs_noun *noun, FILE *out) {
    if (is_noun_itself(noun)) {
        (void)fprintf(out, "Usage: everywire %s [OPTIONS]\n\n%s\n%s\nOptions:\n", noun->name, noun->summary,
                      noun->verbs[0].more ? noun->verbs[0].more : "");
        ew__opts_help(out, noun->verbs[0].options, ew__wire_option_text);
    } else {
        bool colour = ew__cli_colour(out == stderr ? STDERR_FILENO : STDOUT_FILENO);
        (void)fprintf(out, "Usage: everywire %s VERB ...\n\n%s\n\nVerbs:\n", noun->name, noun->summary);
        for (const ew__jobs_verb *verb = noun->verbs; verb->name; verb++) {
            (void)fprintf(out, "  %s%-8s%s %-16s %s\n", colour ? "\033[1m" : "", verb->name, colour ? "\033[0m" : "",
                          verb->words, verb->summary);
        }
        (void)fprintf(out, "\neverywire %s VERB --help shows its options. Each takes --store STORE and --json.\n",
                      noun->name);
    }
    (void)fprintf(
        out,
        "\nThe store: --store, else EVERYWIRE_STORE, else what --config says, else RRQ's file (RRQ_CONFIG, or\n"
        "./rrq.toml) with RRQ_REDIS_DSN over it; else sqlite:~/.local/state/everywire/jobs.db.\n"
        "\nExamples:\n%s",
        noun->examples);
}

static void verb_help(const ew__jobs_noun *noun, const ew__jobs_verb *verb, FILE *out) {
    if (is_noun_itself(noun)) {
        ew__noun_help(noun, out);
        return;
    }
    (void)fprintf(out, "Usage: everywire %s %s%s%s [OPTIONS]\n\n%c%s.\n%s\nOptions:\n", noun->name, verb->name,
                  *verb->words ? " " : "", verb->words, verb->summary[0] & ~0x20, verb->summary + 1,
                  verb->more ? verb->more : "");
    ew__opts_help(out, verb->options, ew__wire_option_text);
}

/* ---- options ---- */

static int read_duration(ew__jobs_cmd *cmd, int id, const char *name, const char *text) {
    ew_err err = ew__duration_parse(ew_str_from(text), &cmd->durations[id - EW__JOPT_UNIQUE_TTL]);
    cmd->has_duration[id - EW__JOPT_UNIQUE_TTL] = true;
    return err == EW_OK ? 0
                        : ew__cli_usagef(cmd->name, "--%s %.80s: %s", name, text,
                                         err == EW_ELIMIT ? "too long" : "not a duration such as 500ms, 2s, 1m, 1h");
}

static int read_number(ew__jobs_cmd *cmd, int id, const char *name, const char *text) {
    unsigned long long value = 0;
    size_t i = 0;
    for (; text[i] >= '0' && text[i] <= '9' && value <= 1000000000; i++) {
        value = value * 10 + (unsigned long long)(text[i] - '0');
    }
    if (i == 0 || text[i] || value > 1000000000) {
        return ew__cli_usagef(cmd->name, "--%s %.80s: not a number", name, text);
    }
    cmd->numbers[id - EW__JOPT_LIMIT] = (unsigned)value;
    cmd->given[id - EW__JOPT_LIMIT] = true;
    return 0;
}

static int read_when(ew__jobs_cmd *cmd, const char *text) {
    if (!ew__when_parse(ew_str_from(text), &cmd->job.run_at_ms)) {
        return ew__cli_usagef(cmd->name, "--run-at %.80s: not a time such as 2026-03-01T10:00:00Z", text);
    }
    return 0;
}

/* VERSION-TRACE-SPAN-FLAGS in lower-case hex digits. */
static bool is_traceparent(const char *text) {
    static const char form[] = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    size_t i = 0;
    while (form[i] && text[i] && (form[i] == '-' ? text[i] == '-' : strchr("0123456789abcdef", text[i]) != NULL)) {
        i++;
    }
    return !form[i] && !text[i];
}

/* The next word, if it is a trace to be continued; else a new one. */
static int read_trace(ew__jobs_cmd *cmd, ew__opts *opts) {
    char fresh[64];
    const char *text = fresh;
    if (opts->at < opts->argc && is_traceparent(opts->argv[opts->at])) {
        text = opts->argv[opts->at++];
    } else {
        const ew_env *env = ew_env_default();
        unsigned char bytes[24];
        char hex[49];
        env->random(env->ud, bytes, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes; i++) {
            (void)snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
        }
        (void)snprintf(fresh, sizeof fresh, "00-%.32s-%.16s-01", hex, hex + 32);
    }
    cmd->trace.len = 0;
    return ew__cli_format(&cmd->trace, "{\"traceparent\":%Q}", text) == EW_OK ? 0 : EW__EXIT_FAILED;
}

/* Where the text of an option goes; NULL: it is none of these. */
static ew_str *text_of(ew__jobs_cmd *cmd, int id) {
    switch (id) {
    case EW__JOPT_QUEUE:
        return &cmd->filter.queue;
    case EW__JOPT_TARGET_QUEUE:
        return &cmd->target_queue;
    case EW__JOPT_JOB_ID:
        return &cmd->job.id;
    case EW__JOPT_FUNCTION:
        return &cmd->filter.function;
    case EW__JOPT_STATUS:
        return &cmd->filter.status;
    case EW__JOPT_DLQ:
        return &cmd->filter.dlq;
    case EW__JOPT_UNIQUE:
        return &cmd->job.unique_key;
    case EW__JOPT_DEBOUNCE:
        return &cmd->job.debounce_key;
    case EW__JOPT_RATE_LIMIT:
        return &cmd->job.rate_limit_key;
    default:
        return NULL;
    }
}

static const char *option_name(const ew__opt *table, int id) {
    while (table->name && table->id != id) {
        table++;
    }
    return table->name ? table->name : "";
}

/* 0: go on; else the exit code. */
static int take_option(ew__jobs_cmd *cmd, ew__opts *opts, int id) {
    const char *name = option_name(opts->table, id);
    ew_str *text = text_of(cmd, id);
    if (text) {
        *text = ew_str_from(opts->value);
        return *opts->value ? 0 : ew__cli_usagef(cmd->name, "--%s must not be empty", name);
    }
    if (id >= EW__JOPT_UNIQUE_TTL && id <= EW__JOPT_RESULT_TTL) {
        return read_duration(cmd, id, name, opts->value);
    }
    if (id >= EW__JOPT_LIMIT && id <= EW__JOPT_MAX_RETRIES) {
        return read_number(cmd, id, name, opts->value);
    }
    if (id >= EW__JOPT_WAIT) {
        cmd->flags[id - EW__JOPT_WAIT] = true;
        return 0;
    }
    switch (id) {
    case EW__JOPT_STORE:
        cmd->store = opts->value;
        return 0;
    case EW__JOPT_CONFIG:
        cmd->config = opts->value;
        return 0;
    case EW__JOPT_JSON:
        cmd->json = true;
        return 0;
    case EW__JOPT_QUEUES:
        cmd->queues[cmd->n_queues++] = opts->value;
        return 0;
    case EW__JOPT_RUN_AT:
        return read_when(cmd, opts->value);
    default:
        return read_trace(cmd, opts);
    }
}

static int count_words(const ew__jobs_cmd *cmd) {
    const ew__jobs_verb *verb = cmd->verb;
    return cmd->n_words < verb->min_words ? ew__cli_usagef(cmd->name, "a word is missing: %s", verb->words) : 0;
}

/* -1: go on; else the exit code. */
static int read_options(ew__jobs_cmd *cmd, const ew__jobs_noun *noun, int argc, char **argv) {
    ew__opts opts;
    ew__opts_init(&opts, cmd->verb->options, argc, argv, 0);
    for (int id = ew__opts_next(&opts); id != EW__OPT_END; id = ew__opts_next(&opts)) {
        int bad = 0;
        if (id == EW__JOPT_HELP) {
            verb_help(noun, cmd->verb, stdout);
            return EW__EXIT_OK;
        }
        if (id == EW__OPT_BAD) {
            return ew__cli_usage(cmd->name, opts.problem);
        }
        if (id == EW__OPT_REST) {
            return ew__cli_usage(cmd->name, "unexpected --");
        }
        if (id != EW__OPT_WORD) {
            bad = take_option(cmd, &opts, id);
        } else if (cmd->n_words == cmd->verb->max_words) {
            bad = ew__cli_usagef(cmd->name, "unexpected word %.80s", opts.value);
        } else {
            cmd->words[cmd->n_words++] = opts.value;
        }
        if (bad) {
            return bad;
        }
    }
    int bad = count_words(cmd);
    if (!bad && cmd->verb->check) {
        bad = cmd->verb->check(cmd);
    }
    return bad ? bad : -1;
}

/* ---- answers ---- */

static const struct {
    ew_err err;
    ew_status status;
    int code;
} failures[] = {
    {EW_ENOTFOUND, EW_STATUS_NOT_FOUND, EW__EXIT_FAILED},
    {EW_EEXISTS, EW_STATUS_ALREADY_EXISTS, EW__EXIT_FAILED},
    {EW_ESTALE, EW_STATUS_FAILED_PRECONDITION, EW__EXIT_FAILED},
    {EW_ELIMIT, EW_STATUS_RESOURCE_EXHAUSTED, EW__EXIT_FAILED},
    {EW_ENOMEM, EW_STATUS_RESOURCE_EXHAUSTED, EW__EXIT_FAILED},
    {EW_EACCESS, EW_STATUS_PERMISSION_DENIED, EW__EXIT_UNREACHED},
};

/* What went wrong with the store, or with what was asked of it. */
static int tell_error(ew__jobs_cmd *cmd, ew_err err, const char *problem, ew_str details) {
    const char *why = problem && *problem ? problem : ew_err_text(err);
    if (err == EW_EINVAL || err == EW_EUNSUPPORTED || err == EW_ESYNTAX) {
        return ew__cli_usage(cmd->name, why);
    }
    ew_fault fault = {.status = EW_STATUS_UNAVAILABLE, .message = ew_str_from(why), .details = details};
    int code = EW__EXIT_UNREACHED;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        if (failures[i].err == err) {
            fault.status = failures[i].status;
            code = failures[i].code;
        }
    }
    ew__cli_error(&fault);
    return code;
}

int ew__jobs_failed(ew__jobs_cmd *cmd, ew_err err, ew_answer *answer) {
    int code = tell_error(cmd, err, ew_answer_problem(answer), ew_answer_json(answer));
    (void)ew_answer_free(answer);
    return code;
}

bool ew__jobs_for_people(const ew__jobs_cmd *cmd) { return !cmd->json && isatty(STDOUT_FILENO); }

int ew__jobs_print(ew__jobs_cmd *cmd, ew_str json, ew__jobs_show show) {
    if (show && ew__jobs_for_people(cmd)) {
        ew_err err = show(cmd, json);
        return err != EW_OK          ? tell_error(cmd, err, NULL, (ew_str){NULL, 0})
               : fflush(stdout) == 0 ? EW__EXIT_OK
                                     : EW__EXIT_BROKEN_PIPE;
    }
    int bad = ew__cli_line(STDOUT_FILENO, "", json, "");
    return bad == 0 ? EW__EXIT_OK : bad == EPIPE ? EW__EXIT_BROKEN_PIPE : EW__EXIT_FAILED;
}

int ew__jobs_answer(ew__jobs_cmd *cmd, ew_err err, ew_answer *answer, ew__jobs_show show) {
    if (err != EW_OK) {
        return ew__jobs_failed(cmd, err, answer);
    }
    int code = ew__jobs_print(cmd, ew_answer_json(answer), show);
    (void)ew_answer_free(answer);
    return code;
}

/* ---- all ---- */

static int run(ew__jobs_cmd *cmd, const ew__jobs_noun *noun, int argc, char **argv) {
    char problem[512] = "";
    int code = read_options(cmd, noun, argc, argv);
    if (code >= 0) {
        return code;
    }
    if (cmd->waits) {
        ew__interrupt_block(); /* before the store makes its thread */
    }
    ew_err err = ew_jobs_open_usual(cmd->store, cmd->config, &cmd->jobs, problem, sizeof problem);
    if (err != EW_OK) {
        return tell_error(cmd, err, problem, (ew_str){NULL, 0});
    }
    code = cmd->verb->run(cmd);
    (void)ew_jobs_free(cmd->jobs);
    return code;
}

static const ew__jobs_verb *find_verb(const ew__jobs_noun *noun, const char *word) {
    const ew__jobs_verb *verb = noun->verbs;
    while (verb->name && strcmp(verb->name, word) != 0) {
        verb++;
    }
    return verb->name ? verb : NULL;
}

/* Names the one that was probably meant, or all. */
static int unknown_verb(const ew__jobs_noun *noun, const char *word) {
    char all[160] = "";
    size_t n = 0;
    ew__suggestion near;
    ew__suggestion_init(&near, ew_str_from(word ? word : ""));
    for (const ew__jobs_verb *verb = noun->verbs; verb->name; verb++) {
        ew__suggestion_try(&near, ew_str_from(verb->name));
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", verb->name);
    }
    if (!word) {
        return ew__cli_usagef(noun->name, "a verb is missing: one of %s", all);
    }
    return near.best.ptr ? ew__cli_usagef(noun->name, "unknown verb %.80s; did you mean %s?", word, near.best.ptr)
                         : ew__cli_usagef(noun->name, "unknown verb %.80s: want one of %s", word, all);
}

static bool is_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

int ew__noun_run(const ew__jobs_noun *noun, int argc, char **argv) {
    bool itself = is_noun_itself(noun);
    ew__jobs_cmd cmd = {.verb = itself ? noun->verbs : argc > 0 ? find_verb(noun, argv[0]) : NULL};
    if (!itself && argc > 0 && is_help(argv[0])) {
        ew__noun_help(noun, stdout);
        return EW__EXIT_OK;
    }
    if (!cmd.verb) {
        return unknown_verb(noun, argc > 0 ? argv[0] : NULL);
    }
    (void)snprintf(cmd.name, sizeof cmd.name, "%s%s%s", noun->name, itself ? "" : " ", cmd.verb->name);
    size_t size = ((size_t)argc + 1) * 2 * sizeof(char *);
    cmd.words = ew__cli_alloc(size);
    if (!cmd.words) {
        return EW__EXIT_FAILED;
    }
    cmd.queues = cmd.words + argc + 1;
    int code = run(&cmd, noun, itself ? argc : argc - 1, itself ? argv : argv + 1);
    ew__text_free(&cmd.trace);
    ew__cli_free((void *)cmd.words, size);
    return code;
}
