/*
 * cli/cmd_job.c: everywire job: enqueue one, see what has become of it, wait for it, cancel it, run it again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/jobs.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- options ---- */

static const ew__opt enqueue_options[] = {
    {"queue", 0, "QUEUE", "where to; default", EW__JOPT_QUEUE},
    {"job-id", 0, "ID", "its id; without it: a fresh one", EW__JOPT_JOB_ID},
    {"delay", 0, "DUR", "not before that has passed", EW__JOPT_DELAY},
    {"run-at", 0, "TIME", "not before that: 2026-03-01T10:00:00Z, or with an offset", EW__JOPT_RUN_AT},
    {"max-retries", 0, "N", "run it so often in all, as RRQ counts; 5", EW__JOPT_MAX_RETRIES},
    {"timeout", 't', "DUR", "for each attempt; 5m", EW__JOPT_TIMEOUT},
    {"result-ttl", 0, "DUR", "how long it is kept after its end; 24h; 0: for ever", EW__JOPT_RESULT_TTL},
    {"unique", 0, "KEY", "while a job of this key is known: its id, and no new job", EW__JOPT_UNIQUE},
    {"unique-ttl", 0, "DUR", "... for that time; 6h", EW__JOPT_UNIQUE_TTL},
    {"debounce", 0, "KEY", "takes the place of the job of this key that still waits", EW__JOPT_DEBOUNCE},
    {"debounce-window", 0, "DUR", "... and runs when that has passed since the last one", EW__JOPT_DEBOUNCE_WINDOW},
    {"rate-limit", 0, "KEY", "one job of this key at most", EW__JOPT_RATE_LIMIT},
    {"rate-limit-window", 0, "DUR", "... in that time", EW__JOPT_RATE_LIMIT_WINDOW},
    {"trace", 0, NULL, "begin a trace with it; --trace TRACEPARENT continues that one (W3C)", EW__JOPT_TRACE},
    {"wait", 'w', NULL, "wait for its end, as everywire job wait does", EW__JOPT_WAIT},
    {"wait-timeout", 0, "DUR", "... not longer than that", EW__JOPT_WAIT_TIMEOUT},
    {"stream", 's', NULL, "... and print what it says meanwhile: {\"chunk\":...} lines, then {\"job\":...}",
     EW__JOPT_STREAM},
    EW__JOPTS_COMMON,
};

static const ew__opt show_options[] = {
    {"raw", 0, NULL, "as --json", EW__JOPT_JSON},
    EW__JOPTS_COMMON,
};

static const ew__opt plain_options[] = {EW__JOPTS_COMMON};

static const ew__opt list_options[] = {
    {"status", 0, "STATUS", "only those: PENDING, ACTIVE, RETRYING, COMPLETED, FAILED or CANCELLED", EW__JOPT_STATUS},
    {"queue", 0, "QUEUE", "only those of this queue", EW__JOPT_QUEUE},
    {"function", 0, "NAME", "only those of this function", EW__JOPT_FUNCTION},
    EW__JOPT_LIMIT_ROW,
    EW__JOPT_OFFSET_ROW,
    EW__JOPTS_COMMON,
};

static const ew__opt wait_options[] = {
    {"timeout", 't', "DUR", "not longer than that; without it: as long as it takes", EW__JOPT_WAIT_TIMEOUT},
    {"stream", 's', NULL, "print what it says and has said: {\"chunk\":...} lines, then {\"job\":...}",
     EW__JOPT_STREAM},
    EW__JOPTS_COMMON,
};

static const ew__opt replay_options[] = {
    {"queue", 0, "QUEUE", "to this queue instead of the job's own", EW__JOPT_TARGET_QUEUE},
    EW__JOPTS_COMMON,
};

/* ---- waiting ---- */

typedef struct waiting {
    ew__jobs_cmd *cmd;
    int write_error; /* errno of standard output, or 0 */
} waiting;

static bool on_chunk(uint64_t seq, ew_str chunk, void *ud) {
    waiting *w = ud;
    (void)seq;
    w->write_error = ew__cli_line(STDOUT_FILENO, "{\"chunk\":", chunk, "}");
    return w->write_error == 0;
}

static void stop(void *ud) { ew_jobs_interrupt(ud); }

static int wait_failed(waiting *w, ew_err err, ew_answer *answer) {
    if (w->write_error) {
        (void)ew_answer_free(answer);
        return w->write_error == EPIPE ? EW__EXIT_BROKEN_PIPE : EW__EXIT_FAILED;
    }
    ew_str job = ew_answer_json(answer);
    if (err != EW_ETIMEOUT || job.len == 0) {
        return ew__jobs_failed(w->cmd, err, answer);
    }
    ew__text message = {0}, details = {0};
    ew_str status = ew_json_get(job, "/status");
    (void)ew__text_cstr(&message, "the timeout passed, and the job is ");
    (void)ew__cell_text(&message, status, "not over");
    (void)ew__cli_format(&details, "{\"job_id\":%j,\"status\":%j}", ew_json_get(job, "/id"), status);
    ew__cli_error(&(ew_fault){
        .status = EW_STATUS_DEADLINE_EXCEEDED, .message = ew__text_view(&message), .details = ew__text_view(&details)});
    ew__text_free(&message);
    ew__text_free(&details);
    (void)ew_answer_free(answer);
    return EW__EXIT_DEADLINE;
}

static int print_ended(ew__jobs_cmd *cmd, ew_answer *answer) {
    ew_str job = ew_answer_json(answer);
    bool fine = ew__cli_is(job, "/status", "COMPLETED");
    int code;
    if (ew__jobs_flag(cmd, EW__JOPT_STREAM)) {
        int bad = ew__cli_line(STDOUT_FILENO, "{\"job\":", job, "}");
        code = bad == 0 ? EW__EXIT_OK : bad == EPIPE ? EW__EXIT_BROKEN_PIPE : EW__EXIT_FAILED;
    } else {
        code = ew__jobs_print(cmd, job, ew__job_show);
    }
    (void)ew_answer_free(answer);
    return code != EW__EXIT_OK ? code : fine ? EW__EXIT_OK : EW__EXIT_FAILED;
}

static int wait_for(ew__jobs_cmd *cmd, ew_str id) {
    waiting w = {.cmd = cmd};
    ew_answer *answer = NULL;
    char what[120];
    ew__interrupt *interrupt = ew__interrupt_start(stop, cmd->jobs);
    (void)snprintf(what, sizeof what, "waiting for the end of job %.*s", (int)(id.len < 80 ? id.len : 80), id.ptr);
    ew__progress_start(ew__progress_text, what);
    ew_err err = ew_jobs_wait(cmd->jobs, id, ew__jobs_ms(cmd, EW__JOPT_WAIT_TIMEOUT),
                              ew__jobs_flag(cmd, EW__JOPT_STREAM) ? on_chunk : NULL, &w, &answer);
    ew__progress_end();
    int signal_number = ew__interrupt_end(interrupt);
    if (err == EW_OK) {
        return print_ended(cmd, answer);
    }
    if (err == EW_ECANCELLED && signal_number) {
        (void)ew_answer_free(answer);
        return EW__EXIT_SIGNAL + signal_number;
    }
    return wait_failed(&w, err, answer);
}

/* ---- enqueue ---- */

static int check_windows(ew__jobs_cmd *cmd) {
    static const struct {
        int window;
        const char *option, *name;
    } pairs[] = {
        {EW__JOPT_UNIQUE_TTL, "unique", "unique-ttl"},
        {EW__JOPT_DEBOUNCE_WINDOW, "debounce", "debounce-window"},
        {EW__JOPT_RATE_LIMIT_WINDOW, "rate-limit", "rate-limit-window"},
    };
    const ew_str *keys[] = {&cmd->job.unique_key, &cmd->job.debounce_key, &cmd->job.rate_limit_key};
    for (size_t i = 0; i < 3; i++) {
        bool has = cmd->has_duration[pairs[i].window - EW__JOPT_UNIQUE_TTL];
        if (has && !keys[i]->len) {
            return ew__cli_usagef(cmd->name, "--%s goes with --%s KEY", pairs[i].name, pairs[i].option);
        }
        if (i > 0 && keys[i]->len && !has) {
            return ew__cli_usagef(cmd->name, "--%s needs --%s DUR", pairs[i].option, pairs[i].name);
        }
        if (has && ew__jobs_ms(cmd, pairs[i].window) == 0) {
            return ew__cli_usagef(cmd->name, "--%s must be above zero", pairs[i].name);
        }
    }
    return 0;
}

static int check_enqueue(ew__jobs_cmd *cmd) {
    bool waits = cmd->waits = ew__jobs_flag(cmd, EW__JOPT_WAIT);
    if (cmd->has_duration[EW__JOPT_TIMEOUT - EW__JOPT_UNIQUE_TTL] && ew__jobs_ms(cmd, EW__JOPT_TIMEOUT) == 0) {
        return ew__cli_usage(cmd->name, "--timeout must be above zero");
    }
    if (!waits && (ew__jobs_flag(cmd, EW__JOPT_STREAM) || ew__jobs_ms(cmd, EW__JOPT_WAIT_TIMEOUT))) {
        return ew__cli_usagef(cmd->name, "--%s goes with --wait",
                              ew__jobs_flag(cmd, EW__JOPT_STREAM) ? "stream" : "wait-timeout");
    }
    return check_windows(cmd);
}

/* {"job_id":ID} is enough for the usual; the rest says what happened instead. */
static ew_err enqueued_text(ew_str answer, ew__text *out) {
    return ew__cli_is(answer, "/status", "enqueued")
               ? ew__cli_format(out, "{\"job_id\":%j}", ew_json_get(answer, "/job_id"))
               : ew__text_add(out, answer);
}

static ew_err show_enqueued(ew__jobs_cmd *cmd, ew_str json) {
    ew__text line = {0};
    ew_err err = ew__cell_text(&line, ew_json_get(json, "/job_id"), "no job");
    err = err == EW_OK ? ew__text_cstr(&line, " ") : err;
    err = err == EW_OK ? ew__cell_text(&line, ew_json_get(json, "/status"), "enqueued") : err;
    (void)cmd;
    if (err == EW_OK) {
        (void)printf("%.*s\n", (int)line.len, line.ptr);
    }
    ew__text_free(&line);
    return err;
}

static int print_enqueued(ew__jobs_cmd *cmd, ew_answer *answer, ew__text *id) {
    ew__text line = {0};
    ew_str json = ew_answer_json(answer), raw = ew_json_get(json, "/job_id");
    ew_err err = enqueued_text(json, &line);
    size_t len = 0;
    if (err == EW_OK && ew_json_typeof(raw) == EW_JSON_STRING) {
        err = ew__text_reserve(id, raw.len);
        if (err == EW_OK && ew_json_string(raw, id->ptr, raw.len, &len) == EW_OK) {
            id->len = len;
        }
    }
    int code =
        err == EW_OK ? ew__jobs_print(cmd, ew__text_view(&line), show_enqueued) : ew__jobs_failed(cmd, err, NULL);
    ew__text_free(&line);
    return code;
}

static int enqueue(ew__jobs_cmd *cmd, ew_str params) {
    unsigned retries = ew__jobs_number(cmd, EW__JOPT_MAX_RETRIES);
    uint64_t ttl = ew__jobs_ms(cmd, EW__JOPT_RESULT_TTL);
    ew_job_options job = cmd->job;
    ew_answer *answer = NULL;
    ew__text id = {0};
    job.function = ew_str_from(cmd->words[0]);
    job.params = params;
    job.queue = cmd->filter.queue;
    job.delay_ms = ew__jobs_ms(cmd, EW__JOPT_DELAY);
    job.max_retries = cmd->given[EW__JOPT_MAX_RETRIES - EW__JOPT_LIMIT] ? &retries : NULL;
    job.timeout_ms = ew__jobs_ms(cmd, EW__JOPT_TIMEOUT);
    job.result_ttl_ms = cmd->has_duration[EW__JOPT_RESULT_TTL - EW__JOPT_UNIQUE_TTL] ? &ttl : NULL;
    job.unique_ttl_ms = ew__jobs_ms(cmd, EW__JOPT_UNIQUE_TTL);
    job.debounce_ms = ew__jobs_ms(cmd, EW__JOPT_DEBOUNCE_WINDOW);
    job.rate_limit_ms = ew__jobs_ms(cmd, EW__JOPT_RATE_LIMIT_WINDOW);
    job.trace = ew__text_view(&cmd->trace);
    ew_err err = ew_jobs_enqueue(cmd->jobs, &job, &answer);
    if (err != EW_OK) {
        return ew__jobs_failed(cmd, err, answer);
    }
    int code = print_enqueued(cmd, answer, &id);
    (void)ew_answer_free(answer);
    if (code == EW__EXIT_OK && id.len && ew__jobs_flag(cmd, EW__JOPT_WAIT)) {
        code = wait_for(cmd, ew__text_view(&id));
    }
    ew__text_free(&id);
    return code;
}

static int run_enqueue(ew__jobs_cmd *cmd) {
    ew__text params = {0};
    int code = cmd->n_words > 1 ? ew__cli_read_json(cmd->name, "INPUT", cmd->words[1], true, &params) : 0;
    code = code ? code : enqueue(cmd, ew__text_view(&params));
    ew__text_free(&params);
    return code;
}

/* ---- the others ---- */

static ew_str first_word(const ew__jobs_cmd *cmd) { return ew_str_from(cmd->words[0]); }

static int run_show(ew__jobs_cmd *cmd) {
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_show(cmd->jobs, first_word(cmd), &answer);
    return ew__jobs_answer(cmd, err, answer, ew__job_show);
}

static ew_err show_list(ew__jobs_cmd *cmd, ew_str json) {
    ew_err err = ew__table_print(ew_json_get(json, "/jobs"), ew__job_columns, "No jobs found");
    long long total = ew__cli_count(json, "/total"), shown = 0, end = cmd->filter.offset;
    ew_json_iter it = {.offset_ = 0};
    while (ew_json_next(ew_json_get(json, "/jobs"), &it)) {
        shown++;
    }
    end += shown;
    if (err == EW_OK && shown && end < total) {
        (void)printf("\n%lld of %lld; --offset %lld shows more\n", shown, total, end);
    }
    return err;
}

static int run_list(ew__jobs_cmd *cmd) {
    ew_answer *answer = NULL;
    cmd->filter.limit = ew__jobs_number(cmd, EW__JOPT_LIMIT);
    cmd->filter.offset = ew__jobs_number(cmd, EW__JOPT_OFFSET);
    ew_err err = ew_jobs_list(cmd->jobs, &cmd->filter, &answer);
    return ew__jobs_answer(cmd, err, answer, show_list);
}

static int check_wait(ew__jobs_cmd *cmd) {
    cmd->waits = true;
    return 0;
}

static int run_wait(ew__jobs_cmd *cmd) { return wait_for(cmd, first_word(cmd)); }

static ew_err show_cancel(ew__jobs_cmd *cmd, ew_str json) {
    bool now = ew__cli_is(json, "/status", "CANCELLED");
    (void)printf("Job '%s' %s\n", cmd->words[0], now ? "cancelled" : "runs; its worker is told to stop it");
    return EW_OK;
}

static int run_cancel(ew__jobs_cmd *cmd) {
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_cancel(cmd->jobs, first_word(cmd), &answer);
    return ew__jobs_answer(cmd, err, answer, show_cancel);
}

static ew_err show_replay(ew__jobs_cmd *cmd, ew_str json) {
    ew__text id = {0};
    ew_err err = ew__cell_text(&id, ew_json_get(json, "/job_id"), "-");
    (void)cmd;
    if (err == EW_OK) {
        (void)printf("Job replayed with new ID: %.*s\n", (int)id.len, id.ptr);
    }
    ew__text_free(&id);
    return err;
}

static int run_replay(ew__jobs_cmd *cmd) {
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_replay(cmd->jobs, first_word(cmd), cmd->target_queue, &answer);
    return ew__jobs_answer(cmd, err, answer, show_replay);
}

static const ew__column trace_columns[] = {
    {"Event", "/event", EW__COLUMN_TEXT, 0},
    {"Time", "/time", EW__COLUMN_TEXT, 0},
    {"After", "/after_ms", EW__COLUMN_MS, 0},
    {NULL, NULL, EW__COLUMN_TEXT, 0},
};

static ew_err show_trace(ew__jobs_cmd *cmd, ew_str json) {
    ew_err err = ew__table_print(ew_json_get(json, "/events"), trace_columns, "Nothing has happened");
    int64_t total;
    char span[32];
    (void)cmd;
    if (err == EW_OK && ew_json_int64(ew_json_get(json, "/total_ms"), &total) == EW_OK && total >= 0) {
        ew__cli_span((uint64_t)total, span, sizeof span);
        (void)printf("\nTotal Duration: %s\n", span);
    }
    return err;
}

static int run_trace(ew__jobs_cmd *cmd) {
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_trace(cmd->jobs, first_word(cmd), &answer);
    return ew__jobs_answer(cmd, err, answer, show_trace);
}

/* ---- the noun ---- */

static const ew__jobs_verb verbs[] = {
    {"enqueue", "ACTION [INPUT]", "keep a call until a worker has made it",
     "ACTION is a name or key of an action, or RUNNER#NAME. INPUT is JSON text, @file, or - for standard\n"
     "input; without it: {}. Once the job is safe {\"job_id\":ID} is printed; with \"status\":\"existing\" when\n"
     "--unique had it, \"debounced\" when it took another one's place, and {\"job_id\":null,\n"
     "\"status\":\"rate_limited\"} when it was not taken. DUR is 500ms, 2s, 1m, 1h; a bare number is seconds.\n",
     1, 2, enqueue_options, check_enqueue, run_enqueue},
    {"show", "ID", "show a job", NULL, 1, 1, show_options, NULL, run_show},
    {"list", "", "show jobs, the newest first", NULL, 0, 0, list_options, NULL, run_list},
    {"wait", "ID", "wait for the end of a job, and show it",
     "Exit codes: 0 it has completed, 1 it has failed or was cancelled, 5 the timeout passed, 130 interrupted\n"
     "(the job goes on).\n",
     1, 1, wait_options, check_wait, run_wait},
    {"cancel", "ID", "cancel a job that waits or runs", NULL, 1, 1, plain_options, NULL, run_cancel},
    {"replay", "ID", "enqueue a copy of a job", NULL, 1, 1, replay_options, NULL, run_replay},
    {"trace", "ID", "show when what has happened to a job", NULL, 1, 1, plain_options, NULL, run_trace},
    {NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};

const ew__jobs_noun ew__noun_job = {
    "job",
    "Durable jobs: calls that are kept until a worker has made them (everywire worker).",
    "  everywire job enqueue greet '{\"name\":\"Ada\"}'\n"
    "  everywire job enqueue send_email @mail.json --queue mail --delay 10m --max-retries 3\n"
    "  everywire job enqueue count '{\"n\":5,\"delay_ms\":200}' --wait --stream\n"
    "  everywire job list --status FAILED --json\n"
    "  everywire job wait 3f0e8c1e-53a0-4a4e-9a34-2f6f3a0c9d11 --timeout 1m\n",
    verbs,
};

int ew__cmd_job(int argc, char **argv) { return ew__noun_run(&ew__noun_job, argc, argv); }
void ew__cmd_job_help(FILE *out) { ew__noun_help(&ew__noun_job, out); }
