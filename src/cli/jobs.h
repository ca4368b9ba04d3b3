/*
 * cli/jobs.h: what the verbs about jobs share. A noun (job, queue, dlq, health) has verbs; a verb is a row of a table: its
 * words, its options, what it does. jobs_cmd.c reads and runs them, jobs_text.c shows answers to people.
 */
#ifndef EW_CLI_JOBS_H
#define EW_CLI_JOBS_H

#include "cli/cli.h"

/* Options of all verbs; each verb's table has some of them. */
enum {
    EW__JOPT_STORE = 1,
    EW__JOPT_CONFIG,
    EW__JOPT_JSON,
    EW__JOPT_HELP,
    EW__JOPT_QUEUE,
    EW__JOPT_QUEUES, /* may be repeated */
    EW__JOPT_TARGET_QUEUE,
    EW__JOPT_JOB_ID,
    EW__JOPT_FUNCTION,
    EW__JOPT_STATUS,
    EW__JOPT_DLQ,
    EW__JOPT_UNIQUE,
    EW__JOPT_DEBOUNCE,
    EW__JOPT_RATE_LIMIT,
    EW__JOPT_UNIQUE_TTL, /* durations from here */
    EW__JOPT_DEBOUNCE_WINDOW,
    EW__JOPT_RATE_LIMIT_WINDOW,
    EW__JOPT_DELAY,
    EW__JOPT_TIMEOUT,
    EW__JOPT_WAIT_TIMEOUT,
    EW__JOPT_RESULT_TTL, /* ... to here */
    EW__JOPT_RUN_AT,
    EW__JOPT_LIMIT, /* numbers from here */
    EW__JOPT_OFFSET,
    EW__JOPT_MAX_SCAN,
    EW__JOPT_MAX_RETRIES, /* ... to here */
    EW__JOPT_TRACE,
    EW__JOPT_WAIT, /* flags from here */
    EW__JOPT_STREAM,
    EW__JOPT_ALL,
    EW__JOPT_DRY_RUN,
    EW__JOPT_SHOW_EMPTY /* ... to here */
};

#define EW__JOPTS_COMMON                                                                                               \
    {"store", 0, "STORE", "where the jobs are: sqlite:PATH or redis://[USER:PASSWORD@]HOST:PORT/DB", EW__JOPT_STORE},  \
        {"config", 0, "FILE", "the file that says so: an everywire.yaml, or RRQ's rrq.toml", EW__JOPT_CONFIG},         \
        {"json", 'j', NULL, "print JSON also on a terminal", EW__JOPT_JSON},                                           \
        {"help", 'h', NULL, "show this", EW__JOPT_HELP}, {                                                             \
        NULL, 0, NULL, NULL, 0                                                                                         \
    }

#define EW__JOPT_LIMIT_ROW                                                                                             \
    { "limit", 0, "N", "show at most so many; 20", EW__JOPT_LIMIT }
#define EW__JOPT_OFFSET_ROW                                                                                            \
    { "offset", 0, "N", "leave out the first N", EW__JOPT_OFFSET }

struct ew__jobs_verb;

/* One run of a verb. */
typedef struct ew__jobs_cmd {
    const struct ew__jobs_verb *verb;
    char name[32]; /* "job enqueue": for messages */
    const char *store, *config;
    bool json;
    const char **words; /* operands */
    size_t n_words;
    const char **queues; /* --queue of those that take several */
    size_t n_queues;
    ew_jobs *jobs;
    /* what the options say */
    ew_job_options job;
    ew_jobs_filter filter;
    ew_str target_queue;
    unsigned numbers[4];   /* as EW__JOPT_LIMIT and on */
    bool given[4];         /* ... whether they were */
    uint64_t durations[7]; /* as EW__JOPT_UNIQUE_TTL and on */
    bool has_duration[7];  /* ... whether they were given */
    bool flags[5];         /* as EW__JOPT_WAIT and on */
    ew__text trace;        /* JSON */
    bool waits;            /* it may wait for long, and Ctrl-C ends that by way of ew__interrupt_start */
} ew__jobs_cmd;

static inline bool ew__jobs_flag(const ew__jobs_cmd *cmd, int id) { return cmd->flags[id - EW__JOPT_WAIT]; }
static inline uint64_t ew__jobs_ms(const ew__jobs_cmd *cmd, int id) { return cmd->durations[id - EW__JOPT_UNIQUE_TTL]; }
static inline unsigned ew__jobs_number(const ew__jobs_cmd *cmd, int id) { return cmd->numbers[id - EW__JOPT_LIMIT]; }

typedef struct ew__jobs_verb {
    const char *name;
    const char *words; /* "ID", "ACTION [INPUT]", "" */
    const char *summary;
    const char *more; /* of its help; may be NULL */
    size_t min_words, max_words;
    const ew__opt *options;
    int (*check)(ew__jobs_cmd *cmd); /* before the store is opened: 0 or an exit code; may be NULL */
    int (*run)(ew__jobs_cmd *cmd);
} ew__jobs_verb;

typedef struct ew__jobs_noun {
    const char *name;
    const char *summary;
    const char *examples;
    const ew__jobs_verb
        *verbs; /* ended by a name that is NULL. One without a name of its own ("") is the noun itself */
} ew__jobs_noun;

extern const ew__jobs_noun ew__noun_job, ew__noun_queue, ew__noun_dlq, ew__noun_health;

int ew__noun_run(const ew__jobs_noun *noun, int argc, char **argv);
void ew__noun_help(const ew__jobs_noun *noun, FILE *out);

/* ---- answers ---- */

/* How an answer is shown on a terminal. An error, or EW_OK. */
typedef ew_err (*ew__jobs_show)(ew__jobs_cmd *cmd, ew_str json);

/*
 * Prints an answer, which it frees: JSON, or (on a terminal, without --json) what show makes of it; or the error. The exit
 * code.
 */
int ew__jobs_answer(ew__jobs_cmd *cmd, ew_err err, ew_answer *answer, ew__jobs_show show);
/* The error alone; *answer is freed. The exit code. */
int ew__jobs_failed(ew__jobs_cmd *cmd, ew_err err, ew_answer *answer);
/* Prints JSON as ew__jobs_answer does. */
int ew__jobs_print(ew__jobs_cmd *cmd, ew_str json, ew__jobs_show show);
/* Whether people are shown a table. */
bool ew__jobs_for_people(const ew__jobs_cmd *cmd);

/* ---- jobs_text.c ---- */

typedef enum ew__column_kind {
    EW__COLUMN_TEXT,
    EW__COLUMN_COUNT,
    EW__COLUMN_AGE,     /* a time: "5s ago" */
    EW__COLUMN_MS,      /* a duration */
    EW__COLUMN_ELAPSED, /* of a job: from its start to its end, or till now */
    EW__COLUMN_RETRIES, /* of a job: attempts/max */
    EW__COLUMN_BOOL,    /* "yes" or "" */
} ew__column_kind;

typedef struct ew__column {
    const char *title; /* NULL ends a table */
    const char *pointer;
    ew__column_kind kind;
    size_t max; /* columns of a terminal; 0: any number */
} ew__column;

/* One line for each of an array; `none` if it is empty. EW_OK, EW_ENOMEM. */
ew_err ew__table_print(ew_str array, const ew__column *columns, const char *none);
/* The members of an object, one on each line. */
ew_err ew__fields_print(ew_str object);
/* "3s", "5m 12s", "2h 5m", "4d 1h", "12ms" */
void ew__cli_span(uint64_t ms, char *out, size_t size);
/* A member as text for people; `none` if it is missing or null. Appends. */
ew_err ew__cell_text(ew__text *out, ew_str value, const char *none);
/* Cuts the text's bytes from `start` on to so many columns, between characters; an ellipsis is the last one. */
ew_err ew__text_cut(ew__text *text, size_t start, size_t max);
size_t ew__width(ew_str text);
int64_t ew__now_ms(void);

/* A whole job, for people. */
ew_err ew__job_show(ew__jobs_cmd *cmd, ew_str json);
extern const ew__column ew__job_columns[];

#endif
