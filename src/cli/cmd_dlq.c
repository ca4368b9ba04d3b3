/*
 * cli/cmd_dlq.c: everywire dlq: jobs that have failed for good, and their second life.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/jobs.h"
#include <string.h>

#define DLQ_ROW                                                                                                        \
    { "dlq-name", 0, "NAME", "the dead-letter queue; default", EW__JOPT_DLQ }

static const ew__opt list_options[] = {
    DLQ_ROW,
    {"queue", 0, "QUEUE", "only those that came from this queue", EW__JOPT_QUEUE},
    {"function", 0, "NAME", "only those of this function", EW__JOPT_FUNCTION},
    EW__JOPT_LIMIT_ROW,
    EW__JOPT_OFFSET_ROW,
    {"raw", 0, NULL, "as --json", EW__JOPT_JSON},
    EW__JOPTS_COMMON,
};

static const ew__opt inspect_options[] = {
    {"raw", 0, NULL, "as --json", EW__JOPT_JSON},
    EW__JOPTS_COMMON,
};

static const ew__opt requeue_options[] = {
    DLQ_ROW,
    {"queue", 0, "QUEUE", "all that came from this queue", EW__JOPT_QUEUE},
    {"function", 0, "NAME", "all of this function", EW__JOPT_FUNCTION},
    {"job-id", 0, "ID", "this one; as ID", EW__JOPT_JOB_ID},
    {"all", 0, NULL, "all of them", EW__JOPT_ALL},
    {"limit", 0, "N", "so many at most", EW__JOPT_LIMIT},
    {"target-queue", 0, "QUEUE", "to this queue; without it: to their own", EW__JOPT_TARGET_QUEUE},
    {"dry-run", 0, NULL, "say which ones, and do nothing", EW__JOPT_DRY_RUN},
    EW__JOPTS_COMMON,
};

static const ew__opt stats_options[] = {DLQ_ROW, EW__JOPTS_COMMON};

/* ---- list ---- */

static const ew__column columns[] = {
    {"Job ID", "/id", EW__COLUMN_TEXT, 40},
    {"Function", "/function_name", EW__COLUMN_TEXT, 24},
    {"Queue", "/queue_name", EW__COLUMN_TEXT, 20},
    {"Error", "/last_error", EW__COLUMN_TEXT, 50},
    {"Failed", "/completion_time", EW__COLUMN_AGE, 0},
    {"Retries", "", EW__COLUMN_RETRIES, 0},
    {NULL, NULL, EW__COLUMN_TEXT, 0},
};

static ew_err show_list(ew__jobs_cmd *cmd, ew_str json) {
    ew_err err = ew__table_print(ew_json_get(json, "/jobs"), columns, "No dead letters");
    long long total = ew__cli_count(json, "/total"), shown = 0;
    ew_json_iter it = {.offset_ = 0};
    while (ew_json_next(ew_json_get(json, "/jobs"), &it)) {
        shown++;
    }
    if (err == EW_OK && shown) {
        (void)printf("\nShowing %u-%lld of %lld jobs\n", cmd->filter.offset + 1, cmd->filter.offset + shown, total);
    }
    if (err == EW_OK && shown && cmd->filter.offset + shown < total) {
        (void)printf("Use --offset %lld to see more\n", cmd->filter.offset + shown);
    }
    return err;
}

static int run_list(ew__jobs_cmd *cmd) {
    ew_answer *answer = NULL;
    cmd->filter.dlq = cmd->filter.dlq.len ? cmd->filter.dlq : ew_jobs_dlq(cmd->jobs);
    cmd->filter.limit = ew__jobs_number(cmd, EW__JOPT_LIMIT);
    cmd->filter.offset = ew__jobs_number(cmd, EW__JOPT_OFFSET);
    ew_err err = ew_jobs_list(cmd->jobs, &cmd->filter, &answer);
    return ew__jobs_answer(cmd, err, answer, show_list);
}

static int run_inspect(ew__jobs_cmd *cmd) {
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_show(cmd->jobs, ew_str_from(cmd->words[0]), &answer);
    return ew__jobs_answer(cmd, err, answer, ew__job_show);
}

/* ---- requeue ---- */

static bool names_some(const ew__jobs_cmd *cmd) { return cmd->n_words || cmd->job.id.len; }

static int check_requeue(ew__jobs_cmd *cmd) {
    bool filters = cmd->filter.queue.len || cmd->filter.function.len;
    if (!names_some(cmd) && !filters && !ew__jobs_flag(cmd, EW__JOPT_ALL)) {
        return ew__cli_usage(cmd->name, "refusing to requeue all jobs without --all or filters");
    }
    if (names_some(cmd) && (filters || ew__jobs_flag(cmd, EW__JOPT_ALL))) {
        return ew__cli_usage(cmd->name, "either ids, or filters and --all");
    }
    if (cmd->given[0] && ew__jobs_number(cmd, EW__JOPT_LIMIT) == 0) {
        return ew__cli_usage(cmd->name, "--limit must be above zero");
    }
    return 0;
}

static ew_err show_requeue(ew__jobs_cmd *cmd, ew_str json) {
    bool dry = ew__jobs_flag(cmd, EW__JOPT_DRY_RUN);
    (void)printf("%s %lld job(s)%s%.*s\n", dry ? "Would requeue" : "Requeued", ew__cli_count(json, "/requeued"),
                 cmd->target_queue.len ? " to " : "", (int)cmd->target_queue.len,
                 cmd->target_queue.len ? cmd->target_queue.ptr : "");
    return EW_OK;
}

/* One by one; the first that cannot be requeued ends it, after what was done has been said. */
static int requeue_ids(ew__jobs_cmd *cmd) {
    ew__text ids = {0}, json = {0};
    ew_answer *answer = NULL;
    ew_err err = EW_OK;
    unsigned n = 0;
    for (size_t i = 0; i <= cmd->n_words && err == EW_OK; i++) {
        ew_str id = i < cmd->n_words ? ew_str_from(cmd->words[i]) : cmd->job.id;
        if (id.len) {
            answer = ew_answer_free(answer);
            err = ew_jobs_requeue(cmd->jobs, id, &cmd->filter, cmd->target_queue, ew__jobs_flag(cmd, EW__JOPT_DRY_RUN),
                                  &answer);
        }
        if (id.len && err == EW_OK && ew__cli_format(&ids, n++ ? ",%q" : "%q", id) != EW_OK) {
            err = EW_ENOMEM;
        }
    }
    int code = EW__EXIT_OK;
    if (err == EW_OK || n > 0) {
        (void)ew__text_add(&ids, (ew_str){"", 1});
        code = ew__cli_format(&json, "{\"requeued\":%u,\"job_ids\":[%s]}", n, ids.ptr) == EW_OK
                   ? ew__jobs_print(cmd, ew__text_view(&json), show_requeue)
                   : EW__EXIT_FAILED;
    }
    ew__text_free(&ids);
    ew__text_free(&json);
    if (err != EW_OK) {
        return ew__jobs_failed(cmd, err, answer);
    }
    (void)ew_answer_free(answer);
    return code;
}

static int run_requeue(ew__jobs_cmd *cmd) {
    ew_answer *answer = NULL;
    if (names_some(cmd)) {
        return requeue_ids(cmd);
    }
    cmd->filter.dlq = cmd->filter.dlq.len ? cmd->filter.dlq : ew_jobs_dlq(cmd->jobs);
    cmd->filter.limit = ew__jobs_number(cmd, EW__JOPT_LIMIT);
    static char what[] = "requeueing dead letters";
    ew__progress_start(ew__progress_text, what);
    ew_err err = ew_jobs_requeue(cmd->jobs, (ew_str){NULL, 0}, &cmd->filter, cmd->target_queue,
                                 ew__jobs_flag(cmd, EW__JOPT_DRY_RUN), &answer);
    ew__progress_end();
    return ew__jobs_answer(cmd, err, answer, show_requeue);
}

/* ---- stats ---- */

/* The members of an object of counts, one on each line. */
static ew_err show_counts(const char *title, ew_str counts) {
    ew__text line = {0};
    ew_json_iter it = {.offset_ = 0};
    ew_err err = EW_OK;
    bool any = false;
    while (err == EW_OK && ew_json_next(counts, &it)) {
        line.len = 0;
        err = ew__cli_plain(&line, it.key);
        err = err == EW_OK ? ew__text_cut(&line, 0, 60) : err;
        if (!any) {
            (void)printf("\n%s:\n", title);
        }
        any = true;
        long long count = ew__cli_count(it.value, "");
        (void)printf("  %6lld  %.*s\n", count, (int)line.len, line.ptr);
    }
    ew__text_free(&line);
    return err;
}

static ew_err show_stats(ew__jobs_cmd *cmd, ew_str json) {
    static const ew__column ages[] = {
        {"Dead letters", "/total", EW__COLUMN_COUNT, 0},
        {"Oldest", "/oldest", EW__COLUMN_AGE, 0},
        {"Newest", "/newest", EW__COLUMN_AGE, 0},
        {"Avg Retries", "/average_retries", EW__COLUMN_COUNT, 0},
        {NULL, NULL, EW__COLUMN_TEXT, 0},
    };
    ew__text row = {0};
    (void)cmd;
    ew_err err = ew__cli_format(&row, "[%j]", json);
    err = err == EW_OK ? ew__table_print(ew__text_view(&row), ages, "") : err;
    err = err == EW_OK ? show_counts("Queues", ew_json_get(json, "/queues")) : err;
    err = err == EW_OK ? show_counts("Functions", ew_json_get(json, "/functions")) : err;
    err = err == EW_OK ? show_counts("Errors", ew_json_get(json, "/errors")) : err;
    ew__text_free(&row);
    return err;
}

static int run_stats(ew__jobs_cmd *cmd) {
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_dlq_stats(cmd->jobs, cmd->filter.dlq, &answer);
    return ew__jobs_answer(cmd, err, answer, show_stats);
}

/* ---- the noun ---- */

static const ew__jobs_verb verbs[] = {
    {"list", "", "show dead letters, the newest first", NULL, 0, 0, list_options, NULL, run_list},
    {"inspect", "ID", "show one", NULL, 1, 1, inspect_options, NULL, run_inspect},
    {"requeue", "ID...", "let jobs be tried again, with all their attempts",
     "Either ids, or filters (--queue, --function), or --all.\n", 0, 1000, requeue_options, check_requeue, run_requeue},
    {"stats", "", "count dead letters by queue, function and error", NULL, 0, 0, stats_options, NULL, run_stats},
    {NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};

const ew__jobs_noun ew__noun_dlq = {
    "dlq",
    "Dead letters: jobs that have failed for good.",
    "  everywire dlq list --function send_email\n"
    "  everywire dlq requeue 3f0e8c1e-53a0-4a4e-9a34-2f6f3a0c9d11\n"
    "  everywire dlq requeue --queue mail --limit 100 --dry-run\n"
    "  everywire dlq requeue --all\n"
    "  everywire dlq stats --json\n",
    verbs,
};

int ew__cmd_dlq(int argc, char **argv) { return ew__noun_run(&ew__noun_dlq, argc, argv); }
void ew__cmd_dlq_help(FILE *out) { ew__noun_help(&ew__noun_dlq, out); }
