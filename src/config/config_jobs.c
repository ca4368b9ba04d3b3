/*
 * config/config_jobs.c: what a configuration file may say of jobs. See config.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/parse.h"
#include "base/util.h"
#include "config/config.h"
#include "wire/texts.h"
#include <stdio.h>

#define AT(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)
#define END                                                                                                            \
    { .name = NULL }

static bool given(const ew__node *map, const char *name) {
    const ew__node *member = ew__node_get(map, name);
    return member && !ew__node_is_null(member);
}

static void problem_at(ew__reading *reading, const ew__node *node, const char *what, const char *why) {
    ew__problem_add(reading->problems, node->line, node->column, "%s%s%s", what, *what ? ": " : "", why);
}

/* ---- the worker ---- */

#define WORKER(member) AT(ew__config_worker, member)

static const ew__field worker_fields[] = {
    {.name = "enabled",
     .type = EW__FIELD_BOOL,
     WORKER(on),
     .usual = "true",
     .help = "run jobs, too, not only take them"},
    {.name = "concurrency",
     .type = EW__FIELD_NUMBER,
     WORKER(concurrency),
     .min = 1,
     .max = 100000,
     .usual = "10; with runners what all of them can take",
     .help = "jobs at a time"},
    {.name = "lease",
     .type = EW__FIELD_DURATION,
     WORKER(lease_ms),
     .min = 1000,
     .max = 3600000,
     .usual = "15s",
     .help = "how long a job stays with a worker that is not heard of any more"},
    {.name = "burst", .type = EW__FIELD_BOOL, WORKER(burst), .usual = "false", .help = "end when nothing is due"},
    {.name = "id", .type = EW__FIELD_TEXT, WORKER(id), .usual = "made of the process id", .help = "its name"},
    END,
};

/* A map says that there is one, unless it says that there is none. */
static void check_worker(ew__reading *reading, const ew__node *node, void *item) {
    ew__config_worker *worker = item;
    (void)reading;
    if (node->kind == EW__NODE_MAP && !given(node, "enabled")) {
        worker->on = true;
    }
}

static const ew__group worker_group = {
    .title = "jobs.worker",
    .help = "`true` alone is enough. Without it this program takes and shows jobs, and others run them.",
    .size = sizeof(ew__config_worker),
    .fields = worker_fields,
    .alone = "enabled",
    .check = check_worker,
};

/* ---- queues ---- */

#define QUEUE(member) AT(ew__config_queue, member)

/* "100/s", "20/m", "5/10s" */
static bool parse_rate(ew_str text, unsigned *ret_rate, uint64_t *ret_ms) {
    char period[64];
    const char *slash = memchr(text.ptr, '/', text.len);
    size_t n = slash ? (size_t)(slash - text.ptr) : 0;
    uint64_t rate;
    if (n == 0 || text.len - n - 1 > 30 || !ew__u64_parse(ew__str(text.ptr, n), &rate) || rate < 1 ||
        rate > UINT32_MAX) {
        return false;
    }
    ew_str rest = ew__str(slash + 1, text.len - n - 1);
    bool one = rest.len > 0 && (rest.ptr[0] < '0' || rest.ptr[0] > '9') && rest.ptr[0] != '.';
    int len = snprintf(period, sizeof period, "%s%.*s", one ? "1" : "", (int)rest.len, rest.ptr);
    *ret_rate = (unsigned)rate;
    return ew__duration_parse(ew__str(period, (size_t)len), ret_ms) == EW_OK && *ret_ms > 0;
}

static void read_rate(ew__reading *reading, const ew__field *field, const ew__node *node, void *item) {
    ew_worker_queue *queue = &((ew__config_queue *)item)->queue;
    if (node->kind != EW__NODE_TEXT || !parse_rate(node->text, &queue->rate, &queue->rate_ms)) {
        ew__field_wants(reading, field, node);
    }
}

static const ew__field queue_fields[] = {
    {.name = "name", .type = EW__FIELD_TEXT, QUEUE(queue.name), .required = true, .help = "its name"},
    {.name = "priority",
     .type = EW__FIELD_NUMBER,
     QUEUE(queue.priority),
     .max = 1000,
     .usual = "0",
     .help = "queues with greater ones are asked first; equal ones take turns"},
    {.name = "concurrency",
     .type = EW__FIELD_NUMBER,
     QUEUE(queue.concurrency),
     .min = 1,
     .max = 100000,
     .usual = "as many as the worker may",
     .help = "jobs of it at a time, in this worker"},
    {.name = "rate",
     .type = EW__FIELD_OWN,
     QUEUE(queue.rate),
     .read = read_rate,
     .holds = "a number and a time, such as 100/s, 20/m, 5/10s",
     .usual = "any",
     .help = "jobs that this worker begins in that time"},
    {.name = "runner",
     .type = EW__FIELD_TEXT,
     QUEUE(queue.runner),
     .usual = "`default_runner`",
     .help = "its jobs run there, unless they name one themselves"},
    END,
};

static const ew__group queue_group = {
    .title = "jobs.queues[]",
    .help = "A text alone is its `name`.",
    .size = sizeof(ew__config_queue),
    .fields = queue_fields,
    .alone = "name",
};

/* ---- runners ---- */

#define RUNNER(member) AT(ew__config_runner, member)

static const ew__field runner_fields[] = {
    {.name = "target",
     .type = EW__FIELD_TEXT,
     RUNNER(runner.target),
     .help = "where it is, `<<program targets>>`; any other target that takes names will do"},
    {.name = "port",
     .type = EW__FIELD_NUMBER,
     RUNNER(port),
     .min = 1,
     .max = 65535,
     .help = "instead of `target`: this port of 127.0.0.1; further processes take the ports behind it"},
    {.name = "command",
     .type = EW__FIELD_COMMAND,
     RUNNER(runner.command),
     .usual = "it runs already",
     .help = "starts it; `--tcp-socket HOST:PORT` is added. No shell"},
    {.name = "processes",
     .type = EW__FIELD_NUMBER,
     RUNNER(runner.processes),
     .min = 1,
     .max = 64,
     .usual = "1",
     .help = "how many of it"},
    {.name = "max_in_flight",
     .type = EW__FIELD_NUMBER,
     RUNNER(runner.max_in_flight),
     .min = 1,
     .max = 64,
     .usual = "1",
     .help = "jobs in each process at a time"},
    {.name = "env", .type = EW__FIELD_PAIRS, RUNNER(runner.env), .between = '=', .help = EW__ENVIRONMENT_HELP},
    {.name = "cwd",
     .type = EW__FIELD_PATH,
     RUNNER(runner.cwd),
     .usual = "where this program runs",
     .help = "where it runs"},
    {.name = "response_timeout",
     .type = EW__FIELD_DURATION,
     RUNNER(runner.response_timeout_ms),
     .min = 1,
     .usual = "none",
     .help = "for an answer, if the job's own time is not over sooner; the job is tried again"},
    END,
};

static void check_env(ew__reading *reading, const ew__node *map, const char *const *env) {
    for (size_t i = 0; env && env[i]; i++) {
        if (strcspn(env[i], "=") == 0) {
            problem_at(reading, ew__node_get(map, "env"), env[i], "not NAME or NAME=VALUE");
        }
    }
}

static void check_runner(ew__reading *reading, const ew__node *node, void *item) {
    ew__config_runner *runner = item;
    bool target = given(node, "target"), port = given(node, "port");
    char text[64];
    if (target == port) {
        problem_at(reading, node, "",
                   target ? "target and port are one too many" : "one of the keys target and port is missing");
        runner->runner.target = NULL;
    } else if (runner->port) {
        (void)snprintf(text, sizeof text, "%s127.0.0.1:%u", ew__wire_program_scheme()->text, runner->port);
        runner->runner.target = ew__join(reading, ew_str_from(text), 0, ew__str(NULL, 0));
    }
    runner->runner.name = node->key->text.ptr;
    if (node->key->text.len == 0 || strlen(node->key->text.ptr) != node->key->text.len ||
        strchr(node->key->text.ptr, '#')) {
        problem_at(reading, node->key, ew__show(node->key->text).text, "no name for a runner");
    }
    check_env(reading, node, runner->runner.env);
}

static const ew__group runner_group = {
    .title = "jobs.runners.NAME",
    .help =
        "Programs that run jobs by their names, as RRQ starts and calls them. A job says `NAME#FUNCTION`, its queue "
        "says `runner`, or `default_runner` it is; other jobs run on actions of this program.",
    .size = sizeof(ew__config_runner),
    .fields = runner_fields,
    .check = check_runner,
};

/* ---- schedules ---- */

#define SCHEDULE(member) AT(ew__config_schedule, member)

static const ew__field schedule_fields[] = {
    {.name = "schedule",
     .type = EW__FIELD_TEXT,
     SCHEDULE(cron.schedule),
     .required = true,
     .help = "five fields (minute hour day month weekday), six or seven as RRQ has them (second first, year last), or "
             "`@hourly`, `@daily` and so on; in quotes if it begins with `*`"},
    {.name = "zone", .type = EW__FIELD_TEXT, SCHEDULE(cron.zone), .usual = "UTC", .help = "such as `Europe/Berlin`"},
    {.name = "function",
     .type = EW__FIELD_TEXT,
     SCHEDULE(cron.function),
     .required = true,
     .help = "name or key of an action, or `RUNNER#NAME`"},
    {.name = "params", .type = EW__FIELD_JSON, SCHEDULE(cron.params), .usual = "{}", .help = "its input"},
    {.name = "queue", .type = EW__FIELD_TEXT, SCHEDULE(cron.queue), .usual = "`defaults.queue`", .help = "where to"},
    {.name = "unique",
     .type = EW__FIELD_BOOL,
     SCHEDULE(cron.unique),
     .usual = "false",
     .help = "not while the last one has not ended"},
    {.name = "name",
     .type = EW__FIELD_TEXT,
     SCHEDULE(cron.name),
     .usual = "made of all the rest",
     .help = "workers that have a schedule of the same name enqueue one job between them each time"},
    END,
};

static const ew__group schedule_group = {
    .title = "jobs.schedules[]",
    .help = "Jobs by the clock: one for each time, however many workers there are.",
    .size = sizeof(ew__config_schedule),
    .fields = schedule_fields,
};

/* ---- defaults ---- */

#define DEFAULT(member) AT(ew__config_job_defaults, options.member)

static const ew__field defaults_fields[] = {
    {.name = "queue", .type = EW__FIELD_TEXT, DEFAULT(queue), .usual = "default", .help = "where jobs go"},
    {.name = "max_retries",
     .type = EW__FIELD_NUMBER,
     DEFAULT(max_retries),
     .min = 1,
     .max = 1000000,
     .usual = "5",
     .help = "how often a job is run in all"},
    {.name = "timeout",
     .type = EW__FIELD_DURATION,
     DEFAULT(timeout_ms),
     .min = 1,
     .usual = "5m",
     .help = "for one attempt"},
    {.name = "result_ttl",
     .type = EW__FIELD_DURATION,
     DEFAULT(result_ttl_ms),
     .min = 1,
     .usual = "24h",
     .help = "how long a job is kept after its end"},
    {.name = "unique_ttl",
     .type = EW__FIELD_DURATION,
     DEFAULT(unique_ttl_ms),
     .min = 1,
     .usual = "6h",
     .help = "how long a unique key holds"},
    END,
};

static const ew__group defaults_group = {
    .title = "jobs.defaults",
    .help = "For jobs that do not say so themselves.",
    .size = sizeof(ew__config_job_defaults),
    .fields = defaults_fields,
};

#define RETRY(member) AT(ew__config_retry, member)

static const ew__field retry_fields[] = {
    {.name = "base",
     .type = EW__FIELD_DURATION,
     RETRY(base_ms),
     .min = 1,
     .usual = "5s",
     .help = "before the second attempt; then twice that, and so on"},
    {.name = "max", .type = EW__FIELD_DURATION, RETRY(max_ms), .min = 1, .usual = "1h", .help = "at most"},
    {.name = "jitter",
     .type = EW__FIELD_BOOL,
     RETRY(jitter),
     .usual = "true",
     .help = "wait for a random part of that time, so that not all come back at once"},
    {.name = "timeouts",
     .type = EW__FIELD_BOOL,
     RETRY(timeouts),
     .usual = "false",
     .help = "also after an attempt that took too long; else that is a dead letter at once"},
    END,
};

static void check_retry(ew__reading *reading, const ew__node *node, void *item) {
    ew__config_retry *retry = item;
    (void)reading;
    if (!given(node, "jitter")) {
        retry->jitter = true;
    }
}

static const ew__group retry_group = {
    .title = "jobs.retry",
    .help = "When a job that has failed is tried again.",
    .size = sizeof(ew__config_retry),
    .fields = retry_fields,
    .check = check_retry,
};

/* ---- all ---- */

#define JOBS(member) AT(ew__config_jobs, member)

static const ew__field jobs_fields[] = {
    {.name = "store",
     .type = EW__FIELD_TEXT,
     JOBS(store),
     .usual = "`sqlite:` and `everywire/jobs.db` in the folder for state (`$XDG_STATE_HOME`, or `~/.local/state`)",
     .help = "where jobs are kept: `sqlite:PATH` or `redis://HOST:PORT/DB`. `--store` and `EVERYWIRE_STORE` win over "
             "it"},
    {.name = "worker", .type = EW__FIELD_GROUP, JOBS(worker), .group = &worker_group, .help = "run them, too"},
    {.name = "queues",
     .type = EW__FIELD_LIST,
     JOBS(queues),
     .group = &queue_group,
     .usual = "`defaults.queue`",
     .help = "whose jobs the worker runs; `--queue` chooses others"},
    {.name = "runners",
     .type = EW__FIELD_NAMED,
     JOBS(runners),
     .group = &runner_group,
     .help = "programs that run jobs"},
    {.name = "default_runner",
     .type = EW__FIELD_TEXT,
     JOBS(default_runner),
     .usual = "actions of this program",
     .help = "for jobs that name no runner, in queues that have none"},
    {.name = "schedules",
     .type = EW__FIELD_LIST,
     JOBS(schedules),
     .group = &schedule_group,
     .help = "jobs by the clock"},
    {.name = "defaults", .type = EW__FIELD_GROUP, JOBS(defaults), .group = &defaults_group, .help = "of all jobs"},
    {.name = "retry", .type = EW__FIELD_GROUP, JOBS(retry), .group = &retry_group, .help = "of failed ones"},
    {.name = "poison_after",
     .type = EW__FIELD_NUMBER,
     JOBS(poison_after),
     .min = 1,
     .max = 1000,
     .usual = "3",
     .help = "a job with which so many workers were lost is a dead letter"},
    {.name = "dlq", .type = EW__FIELD_TEXT, JOBS(dlq), .usual = "default", .help = "the queue of dead letters"},
    {.name = "correlation_mappings",
     .type = EW__FIELD_JSON,
     JOBS(correlation_mappings),
     .help = "labels of jobs from their params, as RRQ has them: a map `{LABEL: path.into.params}`"},
    END,
};

static const ew__config_runner *find_runner(const ew__config_jobs *jobs, const char *name) {
    const ew__config_runner *runners = jobs->runners.items;
    for (size_t i = 0; i < jobs->runners.n; i++) {
        if (runners[i].node->key && ew__str_is(runners[i].node->key->text, ew_str_from(name))) {
            return &runners[i];
        }
    }
    return NULL;
}

static void check_queues(ew__reading *reading, ew__config_jobs *jobs) {
    ew__config_queue *queues = jobs->queues.items;
    size_t n = 0;
    for (size_t i = 0; i < jobs->queues.n; i++) {
        const char *name = queues[i].queue.name, *runner = queues[i].queue.runner;
        bool twice = false;
        for (size_t k = 0; k < n && name; k++) {
            twice = twice || strcmp(queues[k].queue.name, name) == 0;
        }
        if (!name || !*name) {
            if (name) {
                problem_at(reading, queues[i].node, "name", "a queue needs one");
            }
            continue;
        }
        if (twice) {
            problem_at(reading, queues[i].node, name, "this queue is there already");
            continue;
        }
        if (runner && !find_runner(jobs, runner)) {
            problem_at(reading, ew__node_get(queues[i].node, "runner"), runner, "there is no such runner");
            continue;
        }
        queues[n++] = queues[i];
    }
    jobs->queues.n = n;
}

/* {LABEL: text} */
static void check_mappings(ew__reading *reading, const ew__node *map) {
    if (!map || ew__node_is_null(map) || map->bad) {
        return;
    }
    if (map->kind != EW__NODE_MAP) {
        problem_at(reading, map, "correlation_mappings", "this is no map");
        return;
    }
    for (const ew__node *member = map->first; member; member = member->next) {
        if (!ew__node_is_string(member)) {
            problem_at(reading, member, ew__show(member->key->text).text, "a path is a text");
        }
    }
}

static void check_jobs(ew__reading *reading, const ew__node *node, void *item) {
    ew__config_jobs *jobs = item;
    check_queues(reading, jobs);
    check_mappings(reading, ew__node_get(node, "correlation_mappings"));
    if (jobs->default_runner && !find_runner(jobs, jobs->default_runner)) {
        problem_at(reading, ew__node_get(node, "default_runner"), jobs->default_runner, "there is no such runner");
        jobs->default_runner = NULL;
    }
    if (jobs->correlation_mappings && strcmp(jobs->correlation_mappings, "null") == 0) {
        jobs->correlation_mappings = NULL;
    }
    if (jobs->store && strncmp(jobs->store, "sqlite:", 7) == 0 && jobs->store[7]) {
        const char *path = ew__path(reading, jobs->store + 7);
        jobs->store = path ? ew__join(reading, EW_STR("sqlite:"), 0, ew_str_from(path)) : NULL;
    }
    if (!jobs->retry.node) {
        jobs->retry.jitter = true;
    }
}

const ew__group ew__config_jobs_group = {
    .title = "jobs",
    .help =
        "Durable jobs ([jobs.md](jobs.md)). With this key the http wire serves `/jobs`, and with `worker` this program "
        "runs jobs, too. A relative `sqlite:PATH` counts from the file's folder.",
    .size = sizeof(ew__config_jobs),
    .fields = jobs_fields,
    .check = check_jobs,
};
