/*
 * cli/bench.h: what the files of everywire bench share: what was asked (cmd_bench.c), the driver that makes the calls
 * (bench_run.c, bench_lane.c), what it has seen, and how that is shown (bench_report.c, bench_plot.c).
 */
#ifndef EW_CLI_BENCH_H
#define EW_CLI_BENCH_H

#include "cli/cli.h"
#include "cli/hdr.h"

#define EW__BENCH_STATUSES 17 /* of <everywire/status.h>, OK included */
#define EW__BENCH_ORIGINS 6   /* of ew_origin */

typedef struct ew__bench_plan {
    ew__calling calling;
    uint64_t connections; /* as asked; 0: not said */
    uint64_t depth;
    uint64_t threads;
    uint64_t duration_ms; /* 0: until `calls` are made */
    uint64_t warmup_ms;
    uint64_t calls; /* 0: until the time is over */
    double rate;    /* calls a second, all connections; 0: closed loop */
    bool stream;
    bool json;
    const char *plot; /* a file, or NULL */

    /* made of it by ew__bench_arrange */
    unsigned clients;  /* each with a thread */
    unsigned per_link; /* calls on one connection at a time */
    unsigned links;    /* of all clients */
    unsigned slots;    /* calls under way at a time */
    const char *note;  /* what people should know of it, or NULL */
    char note_room[160];
} ew__bench_plan;

/* What was seen. */
typedef struct ew__bench_result {
    ew__hdr *latency;     /* of all answers, and of those that did not come in time; ns */
    ew__hdr *first_chunk; /* NULL without --stream */
    uint64_t calls;
    uint64_t statuses[EW__BENCH_STATUSES];
    uint64_t origins[EW__BENCH_ORIGINS]; /* of the failed ones */
    uint64_t chunks;
    uint64_t late;       /* open loop: begun more than a millisecond after their time */
    uint64_t late_max;   /* ns */
    uint64_t unsent;     /* open loop: their time came, their turn did not */
    uint64_t unfinished; /* under way at the end, and given up */
    uint64_t connections;
    uint64_t bytes_in, bytes_out;
    double seconds;     /* the measured time */
    double cpu_seconds; /* of this program in it */
    int signal_number;
    bool failed_first; /* first_* are valid */
    ew_status first_status;
    ew_origin first_origin;
    char first_message[400];
} ew__bench_result;

/* ---- bench_plan.c ---- */

/*
 * Connections, threads and calls at a time for what was asked of this target. NULL, or what is wrong with it, for
 * people; the text is the plan's.
 */
const char *ew__bench_arrange(ew__bench_plan *plan);

/* ---- bench_run.c ---- */

/* Makes the calls. -1: result is filled in (free it); else an exit code after a message. */
int ew__bench_run(ew__bench_plan *plan, ew__bench_result *result);

/* ---- bench_report.c ---- */

void ew__bench_result_free(ew__bench_result *result); /* what it points to */
/* Nothing has succeeded: says what happened first. The exit code. */
int ew__bench_failed(const ew__bench_plan *plan, const ew__bench_result *result);
/* "76 us", "1.24 ms", "12.3 s": three digits. */
void ew__bench_time(char *out, size_t size, double ns);
/* The line that a terminal shows while it runs. */
void ew__bench_live(FILE *out, double seconds, double total_seconds, double rps, const ew__hdr *latency,
                    uint64_t errors, const char *phase);
ew_err ew__bench_json(const ew__bench_plan *plan, const ew__bench_result *result, ew__text *out);
ew_err ew__bench_table(const ew__bench_plan *plan, const ew__bench_result *result, ew__text *out);

/* ---- bench_plot.c: latency by percentile, as HdrHistogram draws it ---- */

ew_err ew__bench_plot_text(const ew__bench_result *result, bool utf8, ew__text *out);
ew_err ew__bench_plot_svg(const ew__bench_plan *plan, const ew__bench_result *result, ew__text *out);

#endif
