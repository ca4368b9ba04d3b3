/*
 * compat/rrq/settings_toml.c: RRQ's rrq.toml becomes the jobs of an ew__config. See settings.h. The tables hold what has a meaning here; other keys
 * of [rrq] are left alone, as RRQ does itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "compat/rrq/settings.h"
#include "compat/rrq/toml.h"
#include <stdio.h>
#include <unistd.h>

#define AT(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)
#define END                                                                                                            \
    { .name = NULL }
#define FOR_EVER_MS ((uint64_t)10 * 365 * 24 * 3600 * 1000) /* RRQ's ttl of 0, as long as jobs can be kept */

/* ---- runners ---- */

typedef struct rrq_runner {
    const ew__node *node;
    unsigned type;
    const char **cmd;
    unsigned pool_size, max_in_flight, tcp_port;
    const char **env;
    const char *cwd, *tcp_host;
    const char **allowed_hosts;
    uint64_t response_timeout_ms;
} rrq_runner;

#define RUNNER(member) AT(rrq_runner, member)

static const char *const types[] = {"socket", NULL};

static void old_socket(ew__reading *reading, const ew__field *field, const ew__node *node, void *item) {
    (void)item;
    ew__problem_add(reading->problems, node->key->line, node->key->column,
                    "%s is of an older RRQ; tcp_host and tcp_port say it now", field->name);
}

static const ew__field runner_fields[] = {
    {.name = "type", .type = EW__FIELD_WORD, RUNNER(type), .words = types},
    {.name = "cmd", .type = EW__FIELD_TEXTS, RUNNER(cmd)},
    {.name = "pool_size", .type = EW__FIELD_NUMBER, RUNNER(pool_size), .min = 1, .max = 4096},
    {.name = "max_in_flight", .type = EW__FIELD_NUMBER, RUNNER(max_in_flight), .min = 1, .max = 64},
    {.name = "env", .type = EW__FIELD_PAIRS, RUNNER(env), .between = '='},
    {.name = "cwd", .type = EW__FIELD_TEXT, RUNNER(cwd)},
    {.name = "tcp_host", .type = EW__FIELD_TEXT, RUNNER(tcp_host)},
    {.name = "tcp_port", .type = EW__FIELD_NUMBER, RUNNER(tcp_port), .required = true, .min = 1, .max = 65535},
    {.name = "allowed_hosts", .type = EW__FIELD_TEXTS, RUNNER(allowed_hosts)},
    {.name = "response_timeout_seconds", .type = EW__FIELD_DURATION, RUNNER(response_timeout_ms), .min = 1},
    {.name = "tcp_socket", .type = EW__FIELD_OWN, RUNNER(tcp_host), .read = old_socket},
    END,
};

static const ew__group runner_group = {
    .title = "a runner",
    .size = sizeof(rrq_runner),
    .fields = runner_fields,
};

/* ---- schedules ---- */

#define CRON(member) AT(ew__config_schedule, cron.member)

static const ew__field cron_fields[] = {
    {.name = "function_name", .type = EW__FIELD_TEXT, CRON(function), .required = true},
    {.name = "schedule", .type = EW__FIELD_TEXT, CRON(schedule), .required = true},
    {.name = "params", .type = EW__FIELD_JSON, CRON(params)},
    {.name = "queue_name", .type = EW__FIELD_TEXT, CRON(queue)},
    {.name = "unique", .type = EW__FIELD_BOOL, CRON(unique)},
    END,
};

static const ew__group cron_group = {
    .title = "a cron job",
    .size = sizeof(ew__config_schedule),
    .fields = cron_fields,
    .open = true,
};

/* ---- [rrq] ---- */

typedef struct rrq {
    const ew__node *node;
    const char *redis_dsn, *queue, *dlq, *default_runner, *mappings;
    unsigned max_retries;
    uint64_t timeout_ms, result_ttl_ms, unique_ttl_ms, base_ms, max_ms, drain_ms, wait_ms, term_ms;
    unsigned mode;
    ew__items runners; /* rrq_runner */
    ew__items crons;   /* ew__config_schedule */
} rrq;

enum { MANAGED, EXTERNAL };
static const char *const modes[] = {"managed", "external", NULL};

#define RRQ(member) AT(rrq, member)

static const ew__field rrq_fields[] = {
    {.name = "redis_dsn", .type = EW__FIELD_TEXT, RRQ(redis_dsn)},
    {.name = "default_queue_name", .type = EW__FIELD_TEXT, RRQ(queue)},
    {.name = "default_dlq_name", .type = EW__FIELD_TEXT, RRQ(dlq)},
    {.name = "default_max_retries", .type = EW__FIELD_NUMBER, RRQ(max_retries), .max = 1000000},
    {.name = "default_job_timeout_seconds", .type = EW__FIELD_DURATION, RRQ(timeout_ms), .min = 1},
    {.name = "default_result_ttl_seconds", .type = EW__FIELD_DURATION, RRQ(result_ttl_ms)},
    {.name = "default_unique_job_lock_ttl_seconds", .type = EW__FIELD_DURATION, RRQ(unique_ttl_ms), .min = 1},
    {.name = "base_retry_delay_seconds", .type = EW__FIELD_DURATION, RRQ(base_ms)},
    {.name = "max_retry_delay_seconds", .type = EW__FIELD_DURATION, RRQ(max_ms)},
    {.name = "worker_shutdown_grace_period_seconds", .type = EW__FIELD_DURATION, RRQ(drain_ms)},
    {.name = "runner_connect_timeout_ms", .type = EW__FIELD_NUMBER, RRQ(wait_ms)},
    {.name = "runner_shutdown_term_grace_seconds", .type = EW__FIELD_DURATION, RRQ(term_ms)},
    {.name = "default_runner_name", .type = EW__FIELD_TEXT, RRQ(default_runner)},
    {.name = "runner_management_mode", .type = EW__FIELD_WORD, RRQ(mode), .words = modes},
    {.name = "runners", .type = EW__FIELD_NAMED, RRQ(runners), .group = &runner_group},
    {.name = "cron_jobs", .type = EW__FIELD_LIST, RRQ(crons), .group = &cron_group},
    {.name = "correlation_mappings", .type = EW__FIELD_JSON, RRQ(mappings)},
    END,
};

static const ew__group rrq_group = {
    .title = "[rrq]",
    .size = sizeof(rrq),
    .fields = rrq_fields,
    .open = true,
};

/* ---- what it means here ---- */

typedef struct making {
    ew__reading reading;
    ew__config *config;
    rrq rrq;
} making;

static void problem_at(making *m, const ew__node *node, const char *what, const char *why) {
    ew__problem_add(&m->config->problems, node->line, node->column, "%s%s%s", what, *what ? ": " : "", why);
}

/* The member of a table, or the table itself: where to point. */
static const ew__node *place(const ew__node *map, const char *name) {
    const ew__node *member = ew__node_get(map, name);
    return member ? member : map;
}

/* "rrq:queue:x" and "x" are the same. */
static const char *without(const char *text, const char *prefix) {
    size_t n = strlen(prefix);
    return text && strncmp(text, prefix, n) == 0 ? text + n : text;
}

static const char *queue_name(const char *text) { return without(text, "rrq:queue:"); }

static bool is_loopback(const char *host) {
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, "[::1]") == 0;
}

static bool is_allowed(const rrq_runner *runner, const char *host) {
    for (size_t i = 0; runner->allowed_hosts && runner->allowed_hosts[i]; i++) {
        if (ew__str_is_nocase(ew_str_from(runner->allowed_hosts[i]), ew_str_from(host))) {
            return true;
        }
    }
    return is_loopback(host);
}

/* Where a runner is. NULL: a problem was added, or there is no memory. */
static const char *runner_target(making *m, const rrq_runner *runner) {
    const char *host = m->rrq.mode == EXTERNAL && runner->tcp_host ? runner->tcp_host : "127.0.0.1";
    char text[320];
    if (strlen(host) > 255 || !*host) {
        problem_at(m, place(runner->node, "tcp_host"), "tcp_host", "no host");
        return NULL;
    }
    if (!is_allowed(runner, host)) {
        problem_at(m, place(runner->node, "tcp_host"), host, "not a loopback address; allowed_hosts can allow it");
        return NULL;
    }
    bool bare = strchr(host, ':') && host[0] != '[';
    (void)snprintf(text, sizeof text, "rrq://%s%s%s:%u", bare ? "[" : "", host, bare ? "]" : "", runner->tcp_port);
    return ew__join(&m->reading, ew_str_from(text), 0, ew__str(NULL, 0));
}

static unsigned processors(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 1 && n < 4096 ? (unsigned)n : 1;
}

/* An array of the arena; cleared. */
static void *new_items(making *m, size_t n, size_t size) {
    void *items = ew__arena_alloc(&m->config->arena, (n + 1) * size);
    if (!items) {
        m->config->problems.no_memory = true;
        return NULL;
    }
    return memset(items, 0, (n + 1) * size);
}

/* RRQ's runners inherit the environment of the worker, and have `env` beside it. */
static const char **inherit_all(making *m, const char *const *env) {
    size_t n = 0;
    while (env && env[n]) {
        n++;
    }
    const char **all = new_items(m, n + 1, sizeof *all);
    if (all) {
        all[0] = "*";
    }
    for (size_t i = 0; all && i < n; i++) {
        all[i + 1] = env[i];
    }
    return all;
}

static void make_runner(making *m, const rrq_runner *from, ew__config_runner *to) {
    bool managed = m->rrq.mode == MANAGED;
    *to = (ew__config_runner){.node = from->node, .port = from->tcp_port};
    if (from->node->bad || !from->tcp_port) {
        return;
    }
    to->runner = (ew_worker_runner){
        .name = from->node->key->text.ptr,
        .target = runner_target(m, from),
        .command = managed ? from->cmd : NULL,
        .processes = !managed          ? 1
                     : from->pool_size ? from->pool_size
                                       : processors(),
        .max_in_flight = from->max_in_flight,
        .env = inherit_all(m, from->env),
        .cwd = from->cwd,
        .response_timeout_ms = from->response_timeout_ms,
    };
    if (managed && (!from->cmd || !from->cmd[0] || !*from->cmd[0])) {
        char why[128];
        (void)snprintf(why, sizeof why, "must not be empty for runner '%s'", ew__show(from->node->key->text).text);
        problem_at(m, place(from->node, "cmd"), "cmd", why);
        to->runner.target = NULL;
    }
    if (from->tcp_port + to->runner.processes - 1 > 65535) {
        problem_at(m, place(from->node, "tcp_port"), "tcp_port", "with pool_size this goes beyond port 65535");
        to->runner.target = NULL;
    }
}

static void make_runners(making *m) {
    const rrq_runner *from = m->rrq.runners.items;
    ew__config_runner *to = new_items(m, m->rrq.runners.n, sizeof *to);
    for (size_t i = 0; to && i < m->rrq.runners.n; i++) {
        make_runner(m, &from[i], &to[i]);
    }
    m->config->jobs.runners = (ew__items){to, to ? m->rrq.runners.n : 0};
}

static bool has_runner(const making *m, ew_str name) {
    const rrq_runner *runners = m->rrq.runners.items;
    size_t i = 0;
    while (i < m->rrq.runners.n && !ew__str_is(runners[i].node->key->text, name)) {
        i++;
    }
    return i < m->rrq.runners.n;
}

/* RRQ calls it python if nothing is said; where there is none of that name, jobs run on actions of this program. */
static void make_default_runner(making *m) {
    const char *name = m->rrq.default_runner ? m->rrq.default_runner : "python";
    if (has_runner(m, ew_str_from(name))) {
        m->config->jobs.default_runner = name;
    } else if (m->rrq.default_runner && m->rrq.runners.n) {
        char what[128];
        (void)snprintf(what, sizeof what, "default runner '%s'", ew__show(ew_str_from(name)).text);
        problem_at(m, place(m->rrq.node, "default_runner_name"), what, "it is not configured");
    }
}

/* The runner of a queue by `routing` (or, its older name, runner_routes); NULL: none. */
static const ew__node *routes_of(const making *m) {
    const ew__node *routing = ew__node_get(m->rrq.node, "routing");
    return routing ? routing : ew__node_get(m->rrq.node, "runner_routes");
}

static bool is_route(making *m, const ew__node *route) {
    if (route->kind != EW__NODE_TEXT) {
        problem_at(m, route, ew__show(route->key->text).text, "a route wants the name of a runner");
        return false;
    }
    if (!has_runner(m, route->text)) {
        ew__problem_add(&m->config->problems, route->line, route->column,
                        "queue '%s' routes to runner '%s' but that runner is not configured",
                        ew__show(route->key->text).text, ew__show(route->text).text);
        return false;
    }
    return true;
}

static void make_queues(making *m) {
    const ew__node *routes = routes_of(m);
    if (routes && routes->kind != EW__NODE_MAP) {
        problem_at(m, routes, ew__show(routes->key->text).text, "this is no table");
        routes = NULL;
    }
    ew__config_queue *queues = new_items(m, (routes ? routes->n : 0) + 1, sizeof *queues);
    const char *usual = m->config->jobs.defaults.options.queue;
    size_t n = 1;
    if (!queues) {
        return;
    }
    queues[0] = (ew__config_queue){.node = m->rrq.node, .queue.name = usual ? usual : "default"};
    for (const ew__node *route = routes ? routes->first : NULL; route; route = route->next) {
        const char *name = queue_name(route->key->text.ptr);
        if (!is_route(m, route)) {
            continue;
        }
        ew__config_queue *queue = strcmp(name, queues[0].queue.name) == 0 ? &queues[0] : &queues[n++];
        *queue = (ew__config_queue){.node = route, .queue = {.name = name, .runner = route->text.ptr}};
        queue->by_name = queue != &queues[0];
    }
    m->config->jobs.queues = (ew__items){queues, n};
}

static uint64_t at_least_one(const ew__node *map, const char *name, uint64_t value) {
    return value ? value : ew__node_get(map, name) ? 1 : 0;
}

static void make_settings(making *m, ew__variable_fn variable, void *ud) {
    const rrq *r = &m->rrq;
    ew__config_jobs *jobs = &m->config->jobs;
    const char *dsn = variable(ud, "RRQ_REDIS_DSN");
    dsn = dsn && *dsn ? ew__join(&m->reading, ew_str_from(dsn), 0, ew__str(NULL, 0)) : r->redis_dsn;
    jobs->node = r->node;
    jobs->store = dsn ? dsn : "redis://localhost:6379/0";
    jobs->dlq = without(r->dlq, "rrq:dlq:");
    jobs->correlation_mappings = r->mappings;
    jobs->retry = (ew__config_retry){.node = r->node, .base_ms = r->base_ms, .max_ms = r->max_ms, .jitter = true};
    jobs->defaults.node = r->node;
    jobs->defaults.options = (ew_jobs_options){
        .queue = queue_name(r->queue),
        .max_retries = (unsigned)at_least_one(r->node, "default_max_retries", r->max_retries),
        .timeout_ms = r->timeout_ms,
        .result_ttl_ms = r->result_ttl_ms,
        .unique_ttl_ms = r->unique_ttl_ms,
    };
    if (!r->result_ttl_ms && ew__node_get(r->node, "default_result_ttl_seconds")) {
        jobs->defaults.options.result_ttl_ms = FOR_EVER_MS;
    }
    m->config->drain_ms = at_least_one(r->node, "worker_shutdown_grace_period_seconds", r->drain_ms);
    m->config->limits.values.runner_wait_ms = r->wait_ms;
    m->config->limits.values.runner_grace_ms = at_least_one(r->node, "runner_shutdown_term_grace_seconds", r->term_ms);
    const ew__node *watch = ew__node_get(r->node, "watch");
    if (watch) {
        ew__problem_add(&m->config->notes, watch->line, watch->column,
                        "watch is not used: this worker does not look for changes of files");
    }
}

static void make_schedules(making *m) {
    ew__config_schedule *crons = m->rrq.crons.items;
    for (size_t i = 0; i < m->rrq.crons.n; i++) {
        crons[i].cron.queue = queue_name(crons[i].cron.queue);
    }
    m->config->jobs.schedules = m->rrq.crons;
}

ew_err ew__rrq_parse(const ew_env *env, ew_str toml, const char *folder, ew__variable_fn variable, void *ud,
                     ew__config **ret_config) {
    ew__config *config = ew__config_new(env, folder);
    ew__node *root = NULL;
    *ret_config = NULL;
    if (!config) {
        return EW_ENOMEM;
    }
    config->foreign = true;
    ew_err err = ew__toml_read(&config->arena, toml, &config->problems, &root);
    if (err == EW_OK) {
        making m = {.reading = {&config->arena, &config->problems, config->folder}, .config = config};
        const ew__node *table = ew__node_get(root, "rrq");
        config->node = root;
        ew__group_read(&m.reading, &rrq_group, table && table->kind == EW__NODE_MAP ? table : root, &m.rrq);
        make_settings(&m, variable, ud);
        make_runners(&m);
        make_default_runner(&m);
        make_queues(&m);
        make_schedules(&m);
    }
    return ew__config_finish(config, err, ret_config);
}

ew_err ew__rrq_load(const ew_env *env, ew_str bytes, const char *folder, ew__config **ret_config) {
    ew__rrq_variables variables;
    ew_err err = ew__rrq_variables_init(&variables, env);
    if (err == EW_OK) {
        err = ew__rrq_parse(env, bytes, folder, ew__rrq_variable, &variables, ret_config);
    }
    ew__rrq_variables_done(&variables);
    return err;
}
