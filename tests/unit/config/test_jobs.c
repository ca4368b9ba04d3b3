/*
 * tests/unit/config/test_jobs.c: jobs: in a configuration file: what each key becomes, every sort of problem at its place,
 * what a worker is told, memory that fails.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/default_store.h"
#include "base/util.h"
#include "unit/config/config_support.h"

static const char *variable(void *ud, const char *name) {
    (void)ud;
    (void)name;
    return NULL;
}

static ew__config *parse(ew__test_env *env, const char *yaml) {
    ew__config *config = NULL;
    ew__test_env_init(env, 1);
    assert_int_equal(ew__config_parse(&env->env, ew_str_from(yaml), "/etc/ew", variable, NULL, &config), EW_OK);
    return config;
}

/* All problems of a text, in order, also those that a worker would have. */
static void expect(const char *yaml, const char *expected) {
    ew__test_env env;
    char problems[4096];
    ew__config *config = parse(&env, yaml);
    ew__config_check_jobs(&env.env, config);
    ew__problems_sort(&config->problems);
    said(&config->problems, problems, sizeof problems);
    assert_string_equal(problems, expected);
    done(&env, config);
}

static ew__config *parse_fine(ew__test_env *env, const char *yaml) {
    char problems[4096];
    ew__config *config = parse(env, yaml);
    said(&config->problems, problems, sizeof problems);
    assert_string_equal(problems, "");
    return config;
}

static const char whole[] =
    "jobs:\n"
    "  store: sqlite:state/jobs.db\n"
    "  worker: {concurrency: 4, lease: 20s, burst: true, id: w1}\n"
    "  queues:\n"
    "    - default\n"
    "    - {name: mail, priority: 5, concurrency: 2, rate: 100/m, runner: py}\n"
    "    - {name: slow, rate: 5/10s}\n"
    "  runners:\n"
    "    py:\n"
    "      port: 9000\n"
    "      command: [./bin/runner, -v]\n"
    "      processes: 3\n"
    "      max_in_flight: 8\n"
    "      env: {A: 1}\n"
    "      cwd: work\n"
    "      response_timeout: 30s\n"
    "    there: {target: 'rrq://127.0.0.1:9100'}\n"
    "  default_runner: there\n"
    "  schedules:\n"
    "    - {schedule: 0 3 * * *, zone: UTC, function: clean, params: {deep: true}, queue: slow,\n"
    "       unique: true, name: nightly}\n"
    "  defaults: {queue: mail, max_retries: 3, timeout: 1m, result_ttl: 2h, unique_ttl: 10s}\n"
    "  retry: {base: 1s, max: 1m, jitter: false, timeouts: true}\n"
    "  poison_after: 2\n"
    "  dlq: dead\n"
    "  correlation_mappings: {user: account.id}\n";

static void test_jobs__all(void **state) {
    (void)state;
    ew__test_env env;
    ew__config *config = parse_fine(&env, whole);
    const ew__config_jobs *jobs = &config->jobs;
    const ew__config_queue *queues = jobs->queues.items;
    const ew__config_runner *runners = jobs->runners.items;
    const ew__config_schedule *schedules = jobs->schedules.items;
    assert_string_equal(jobs->store, "sqlite:/etc/ew/state/jobs.db");
    assert_true(jobs->worker.on && jobs->worker.burst && jobs->worker.concurrency == 4 &&
                jobs->worker.lease_ms == 20000);
    assert_string_equal(jobs->worker.id, "w1");
    assert_int_equal(jobs->queues.n, 3);
    assert_string_equal(queues[0].queue.name, "default");
    assert_true(queues[1].queue.priority == 5 && queues[1].queue.concurrency == 2 && queues[1].queue.rate == 100 &&
                queues[1].queue.rate_ms == 60000);
    assert_string_equal(queues[1].queue.runner, "py");
    assert_true(queues[2].queue.rate == 5 && queues[2].queue.rate_ms == 10000);
    assert_int_equal(jobs->runners.n, 2);
    assert_string_equal(runners[0].runner.name, "py");
    assert_string_equal(runners[0].runner.target, "rrq://127.0.0.1:9000");
    assert_string_equal(runners[0].runner.command[0], "/etc/ew/./bin/runner");
    assert_true(runners[0].runner.processes == 3 && runners[0].runner.max_in_flight == 8 &&
                runners[0].runner.response_timeout_ms == 30000);
    assert_string_equal(runners[0].runner.env[0], "A=1");
    assert_string_equal(runners[0].runner.cwd, "/etc/ew/work");
    assert_string_equal(runners[1].runner.target, "rrq://127.0.0.1:9100");
    assert_string_equal(jobs->default_runner, "there");
    assert_string_equal(schedules[0].cron.schedule, "0 3 * * *");
    assert_string_equal(schedules[0].cron.zone, "UTC");
    assert_string_equal(schedules[0].cron.params, "{\"deep\":true}");
    assert_string_equal(schedules[0].cron.queue, "slow");
    assert_string_equal(schedules[0].cron.name, "nightly");
    assert_true(schedules[0].cron.unique);
    assert_true(ew__config_runs_code(config));
    done(&env, config);
}

static void test_jobs__defaults(void **state) {
    (void)state;
    ew__test_env env;
    ew_jobs_options options;
    ew__config *config = parse_fine(&env, whole);
    ew__jobs_defaults(&config->jobs, &options);
    assert_string_equal(options.queue, "mail");
    assert_true(options.max_retries == 3 && options.timeout_ms == 60000 && options.result_ttl_ms == 7200000 &&
                options.unique_ttl_ms == 10000);
    assert_string_equal(options.dlq, "dead");
    assert_string_equal(options.correlation_mappings, "{\"user\":\"account.id\"}");
    done(&env, config);
}

static void test_jobs__little(void **state) {
    (void)state;
    ew__test_env env;
    ew__config *config = parse_fine(&env, "jobs: {worker: true}\n");
    assert_true(config->jobs.worker.on && config->jobs.retry.jitter && !config->jobs.store);
    done(&env, config);
    config = parse_fine(&env, "jobs: {worker: false, store: 'redis://localhost'}\n");
    assert_false(config->jobs.worker.on);
    assert_string_equal(config->jobs.store, "redis://localhost");
    done(&env, config);
    config = parse_fine(&env, "jobs: {worker: {enabled: false, concurrency: 2}}\n");
    assert_false(config->jobs.worker.on);
    done(&env, config);
    config = parse_fine(&env, "jobs: {}\n");
    assert_true(config->jobs.node && !config->jobs.worker.on && !ew__config_runs_code(config));
    done(&env, config);
    config = parse_fine(&env, "listen: a\n");
    assert_null(config->jobs.node);
    done(&env, config);
}

/* ---- what a worker is told ---- */

static void queue_names(const ew_worker_options *worker, char *out, size_t size) {
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < worker->n_queues && n < size; i++) {
        n += (size_t)snprintf(out + n, size - n, "%s%s%s|", worker->queues[i].name, worker->queues[i].runner ? ">" : "",
                              worker->queues[i].runner ? worker->queues[i].runner : "");
    }
}

static void test_jobs__worker(void **state) {
    (void)state;
    ew__test_env env;
    ew_worker_options worker;
    char names[256];
    ew__config *config = parse_fine(&env, whole);
    assert_int_equal(ew__worker_make(&config->arena, config, &(ew__worker_words){.n_queues = 0}, &worker), EW_OK);
    queue_names(&worker, names, sizeof names);
    assert_string_equal(names, "default|mail>py|slow|");
    assert_true(worker.n_runners == 2 && worker.n_crons == 1 && worker.concurrency == 4 && worker.lease_ms == 20000);
    assert_true(worker.base_retry_ms == 1000 && worker.max_retry_ms == 60000 && worker.no_jitter &&
                worker.retry_timeouts);
    assert_true(worker.poison_after == 2 && worker.burst);
    assert_string_equal(worker.default_runner, "there");
    assert_string_equal(worker.id, "w1");
    const char *const queues[] = {"rrq:queue:mail", "other", "mail"};
    ew__worker_words words = {.queues = queues, .n_queues = 3, .concurrency = 9, .id = "w2"};
    assert_int_equal(ew__worker_make(&config->arena, config, &words, &worker), EW_OK);
    queue_names(&worker, names, sizeof names);
    assert_string_equal(names, "mail>py|other|");
    assert_int_equal(worker.concurrency, 9);
    assert_string_equal(worker.id, "w2");
    assert_int_equal(ew__worker_make(&config->arena, NULL, &words, &worker), EW_OK);
    queue_names(&worker, names, sizeof names);
    assert_string_equal(names, "mail|other|");
    assert_true(worker.n_runners == 0 && !worker.default_runner);
    done(&env, config);
}

/* ---- problems ---- */

static void test_jobs__problems(void **state) {
    (void)state;
    expect(whole, "");
    expect("jobs: true\n", "1:7: jobs wants a map of keys and values\n");
    expect("jobs: {quues: []}\n", "1:8: unknown key quues; did you mean queues?\n");
    expect("jobs: {worker: maybe}\n", "1:16: enabled wants true or false, not \"maybe\"\n");
    expect("jobs:\n  worker: {lease: 1ms}\n", "2:19: lease is out of range: it wants a number from 1000 to 3600000\n");
    expect("jobs:\n  queues: [a, {name: a}, {priority: 1}, '', {name: b, rate: 5}, {name: c, rate: 0/s}, {name: d, "
           "runner: x}]\n",
           "2:15: a: this queue is there already\n"
           "2:26: the key name is missing\n"
           "2:41: name: a queue needs one\n"
           "2:61: rate wants a number and a time, such as 100/s, 20/m, 5/10s, not \"5\"\n"
           "2:81: rate wants a number and a time, such as 100/s, 20/m, 5/10s, not \"0/s\"\n"
           "2:105: x: there is no such runner\n");
    expect("jobs:\n  runners:\n    a: {}\n    b: {port: 1, target: 'rrq://127.0.0.1:1'}\n    c: {port: 70000}\n    d: "
           "{port: 1, env: [X, =1]}\n"
           "    e#f: {port: 1}\n    g: {target: nothing}\n  default_runner: z\n",
           "3:8: one of the keys target and port is missing\n"
           "4:8: target and port are one too many\n"
           "5:15: port is out of range: it wants a number from 1 to 65535\n"
           "6:23: =1: not NAME or NAME=VALUE\n"
           "7:5: e#f: no name for a runner\n"
           "8:17: nothing: a target looks like http://HOST:PORT, jsonrpc://HOST:PORT, jsonrpc+unix:PATH, "
           "jsonrpc+stdio:, stepflow+http://HOST:PORT, stepflow+stdio:, reflection://HOST:PORT or rrq://HOST:PORT; "
           "with TLS https://, jsonrpcs://, stepflow+https://, reflections:// or rrqs://\n"
           "9:19: z: there is no such runner\n");
    expect("jobs:\n  schedules:\n    - {function: a}\n    - {schedule: '* *', function: b}\n    - {schedule: '@daily', "
           "function: c, zone: No/Where}\n",
           "3:7: the key schedule is missing\n"
           "4:18: schedule: a schedule has 5, 6 or 7 fields, not '* *'\n"
           "5:47: zone: there is no zone 'No/Where'\n");
    expect("jobs: {correlation_mappings: [a]}\n", "1:30: correlation_mappings: this is no map\n");
    expect("jobs: {correlation_mappings: {a: 1}}\n", "1:34: a: a path is a text\n");
    expect("jobs: {store: 'mysql:x'}\n", "1:15: store: not a store: sqlite:PATH or redis://HOST:PORT/DB\n");
    expect("jobs: {store: 'rediss://u:secret@h'}\n", "1:15: store: a Redis that needs TLS is not supported\n");
}

/* ---- memory ---- */

static void test_jobs__memory(void **state) {
    (void)state;
    unsigned failures = 0;
    for (uint64_t n = 1;; n++) {
        ew__test_env env;
        ew__config *config = NULL;
        ew__test_env_init(&env, 1);
        ew__test_env_fail_at(&env, n, false);
        ew_err err = ew__config_parse(&env.env, EW_STR(whole), "/etc", variable, NULL, &config);
        bool failed = ew__test_env_failed(&env) > 0;
        assert_int_equal(err, failed ? EW_ENOMEM : EW_OK);
        assert_int_equal(config == NULL, failed);
        done(&env, config);
        if (!failed) {
            break;
        }
        failures++;
    }
    assert_true(failures >= 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs__all),    cmocka_unit_test(test_jobs__defaults), cmocka_unit_test(test_jobs__little),
        cmocka_unit_test(test_jobs__worker), cmocka_unit_test(test_jobs__problems), cmocka_unit_test(test_jobs__memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
