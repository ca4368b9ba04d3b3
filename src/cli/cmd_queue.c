/*
 * cli/cmd_queue.c: everywire queue: what waits where, and whether it may go on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/jobs.h"
#include <string.h>

static const ew__opt list_options[] = {
    {"show-empty", 0, NULL, "show those, too, in which nothing waits", EW__JOPT_SHOW_EMPTY},
    EW__JOPTS_COMMON,
};

static const ew__opt stats_options[] = {
    {"queue", 0, "QUEUE", "this queue only; may be repeated", EW__JOPT_QUEUES},
    {"max-scan", 0, "N", "look at so many jobs at most; 1000, 0: all", EW__JOPT_MAX_SCAN},
    EW__JOPTS_COMMON,
};

static const ew__opt inspect_options[] = {EW__JOPT_LIMIT_ROW, EW__JOPT_OFFSET_ROW, EW__JOPTS_COMMON};

static const ew__opt plain_options[] = {EW__JOPTS_COMMON};

#define MAX_SCAN 1000

/* ---- list and stats ---- */

/* "rrq:queue:x" is x. */
static ew_str bare_name(const char *name) {
    static const char prefix[] = "rrq:queue:";
    size_t n = sizeof prefix - 1;
    return ew_str_from(strncmp(name, prefix, n) == 0 ? name + n : name);
}

static bool is_wanted(const ew__jobs_cmd *cmd, ew_str queue) {
    ew_str raw = ew_json_get(queue, "/name");
    char name[1024];
    size_t len = 0;
    if (cmd->n_queues == 0 && cmd->n_words == 0) {
        return true;
    }
    if (ew_json_string(raw, name, sizeof name, &len) != EW_OK) {
        return false;
    }
    for (size_t i = 0; i < cmd->n_queues + cmd->n_words; i++) {
        const char *word = i < cmd->n_queues ? cmd->queues[i] : cmd->words[i - cmd->n_queues];
        if (ew_str_eq(bare_name(word), (ew_str){name, len})) {
            return true;
        }
    }
    return false;
}

/* The queues that are wanted, as an array. */
static ew_err choose(const ew__jobs_cmd *cmd, ew_str queues, bool with_empty, ew__text *out) {
    ew_json_iter it = {.offset_ = 0};
    const char *before = "";
    ew_err err = ew__text_cstr(out, "[");
    while (err == EW_OK && ew_json_next(queues, &it)) {
        bool idle = ew__cli_count(it.value, "/pending") == 0 && !ew__cli_flag(it.value, "/paused");
        if (!is_wanted(cmd, it.value) || (idle && !with_empty)) {
            continue;
        }
        err = ew__text_cstr(out, before);
        err = err == EW_OK ? ew__text_add(out, it.value) : err;
        before = ",";
    }
    return err == EW_OK ? ew__text_cstr(out, "]") : err;
}

static const ew__column list_columns[] = {
    {"Queue", "/name", EW__COLUMN_TEXT, 30},   {"Pending", "/pending", EW__COLUMN_COUNT, 0},
    {"Oldest", "/oldest", EW__COLUMN_AGE, 0},  {"Newest", "/newest", EW__COLUMN_AGE, 0},
    {"Paused", "/paused", EW__COLUMN_BOOL, 0}, {NULL, NULL, EW__COLUMN_TEXT, 0},
};

static const ew__column stats_columns[] = {
    {"Queue", "/name", EW__COLUMN_TEXT, 30},
    {"Pending", "/pending", EW__COLUMN_COUNT, 0},
    {"Active", "/active", EW__COLUMN_COUNT, 0},
    {"Retrying", "/retrying", EW__COLUMN_COUNT, 0},
    {"Completed", "/completed", EW__COLUMN_COUNT, 0},
    {"Failed", "/failed", EW__COLUMN_COUNT, 0},
    {"Cancelled", "/cancelled", EW__COLUMN_COUNT, 0},
    {"DLQ", "/dlq", EW__COLUMN_COUNT, 0},
    {"Avg Wait", "/average_wait_ms", EW__COLUMN_MS, 0},
    {"Paused", "/paused", EW__COLUMN_BOOL, 0},
    {NULL, NULL, EW__COLUMN_TEXT, 0},
};

static ew_err show_list(ew__jobs_cmd *cmd, ew_str json) {
    ew__text some = {0};
    long long total = 0;
    ew_json_iter it = {.offset_ = 0};
    ew_err err = choose(cmd, ew_json_get(json, "/queues"), ew__jobs_flag(cmd, EW__JOPT_SHOW_EMPTY), &some);
    if (err == EW_OK) {
        err = ew__table_print(ew__text_view(&some), list_columns, "No active queues found");
    }
    while (err == EW_OK && ew_json_next(ew__text_view(&some), &it)) {
        total += ew__cli_count(it.value, "/pending");
    }
    if (err == EW_OK && some.len > 2) {
        (void)printf("\nTotal: %lld pending jobs\n", total);
    }
    ew__text_free(&some);
    return err;
}

static int run_list(ew__jobs_cmd *cmd) {
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_queues(cmd->jobs, false, 0, &answer);
    return ew__jobs_answer(cmd, err, answer, show_list);
}

static ew_err show_stats(ew__jobs_cmd *cmd, ew_str json) {
    ew_err err = ew__table_print(ew_json_get(json, "/queues"), stats_columns, "No queues found");
    if (err == EW_OK && ew__cli_flag(json, "/partial")) {
        (void)printf("\nNot all jobs were looked at; --max-scan 0 does\n");
    }
    (void)cmd;
    return err;
}

static int run_stats(ew__jobs_cmd *cmd) {
    bool given = cmd->given[EW__JOPT_MAX_SCAN - EW__JOPT_LIMIT];
    ew_answer *answer = NULL;
    ew__text some = {0}, json = {0};
    ew_err err = ew_jobs_queues(cmd->jobs, true, given ? ew__jobs_number(cmd, EW__JOPT_MAX_SCAN) : MAX_SCAN, &answer);
    if (err != EW_OK) {
        return ew__jobs_failed(cmd, err, answer);
    }
    bool partial = ew__cli_flag(ew_answer_json(answer), "/partial");
    err = choose(cmd, ew_json_get(ew_answer_json(answer), "/queues"), true, &some);
    if (err == EW_OK) {
        err = ew__cli_format(&json, partial ? "{\"queues\":%j,\"partial\":true}" : "{\"queues\":%j}",
                             ew__text_view(&some));
    }
    int code = err == EW_OK ? ew__jobs_print(cmd, ew__text_view(&json), show_stats) : ew__jobs_failed(cmd, err, NULL);
    (void)ew_answer_free(answer);
    ew__text_free(&some);
    ew__text_free(&json);
    return code;
}

/* ---- one queue ---- */

static const ew__column inspect_columns[] = {
    {"Job ID", "/id", EW__COLUMN_TEXT, 40},    {"Function", "/function_name", EW__COLUMN_TEXT, 30},
    {"Status", "/status", EW__COLUMN_TEXT, 0}, {"Scheduled", "/next_scheduled_run_time", EW__COLUMN_AGE, 0},
    {"Retries", "", EW__COLUMN_RETRIES, 0},    {NULL, NULL, EW__COLUMN_TEXT, 0},
};

static ew_err show_inspect(ew__jobs_cmd *cmd, ew_str json) {
    ew_err err = ew__table_print(ew_json_get(json, "/jobs"), inspect_columns, "Nothing waits");
    if (err == EW_OK) {
        (void)printf("\n%lld in queue '%s'\n", ew__cli_count(json, "/total"), cmd->words[0]);
    }
    return err;
}

static int run_inspect(ew__jobs_cmd *cmd) {
    ew_answer *answer = NULL;
    ew_jobs_filter filter = {.queue = bare_name(cmd->words[0]),
                             .waiting = true,
                             .limit = ew__jobs_number(cmd, EW__JOPT_LIMIT),
                             .offset = ew__jobs_number(cmd, EW__JOPT_OFFSET)};
    ew_err err = ew_jobs_list(cmd->jobs, &filter, &answer);
    return ew__jobs_answer(cmd, err, answer, show_inspect);
}

static ew_err show_pause(ew__jobs_cmd *cmd, ew_str json) {
    bool paused = ew__cli_flag(json, "/paused");
    (void)printf("Queue '%s' %s\n", cmd->words[0],
                 paused ? "is paused: workers of everywire take nothing from it" : "goes on");
    return EW_OK;
}

static int pause_or_not(ew__jobs_cmd *cmd, bool on) {
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_pause(cmd->jobs, bare_name(cmd->words[0]), on, &answer);
    return ew__jobs_answer(cmd, err, answer, show_pause);
}

static int run_pause(ew__jobs_cmd *cmd) { return pause_or_not(cmd, true); }
static int run_resume(ew__jobs_cmd *cmd) { return pause_or_not(cmd, false); }

/* ---- the noun ---- */

static const ew__jobs_verb verbs[] = {
    {"list", "", "show queues in which jobs wait", NULL, 0, 0, list_options, NULL, run_list},
    {"stats", "[QUEUE]...", "count the jobs of queues by their status", NULL, 0, 1000, stats_options, NULL, run_stats},
    {"inspect", "QUEUE", "show what waits in a queue, in the order in which it is due", NULL, 1, 1, inspect_options,
     NULL, run_inspect},
    {"pause", "QUEUE", "let workers take nothing from a queue",
     "Jobs that run go on. RRQ's own workers know nothing of it.\n", 1, 1, plain_options, NULL, run_pause},
    {"resume", "QUEUE", "let workers take jobs of a queue again", NULL, 1, 1, plain_options, NULL, run_resume},
    {NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};

const ew__jobs_noun ew__noun_queue = {
    "queue",
    "Queues of durable jobs.",
    "  everywire queue list\n"
    "  everywire queue stats --queue mail --json\n"
    "  everywire queue inspect mail --limit 5\n"
    "  everywire queue pause mail\n",
    verbs,
};

int ew__cmd_queue(int argc, char **argv) { return ew__noun_run(&ew__noun_queue, argc, argv); }
void ew__cmd_queue_help(FILE *out) { ew__noun_help(&ew__noun_queue, out); }
