/*
 * tests/unit/compat_rrq/test_settings.c: RRQ's own configuration: what it becomes, what RRQ refuses, its variables and .env,
 * memory that fails.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/default_store.h"
#include "base/util.h"
#include "unit/config/config_support.h"
#include <stdlib.h>

static const char *variable(void *ud, const char *name) { return ud && strcmp(name, "RRQ_REDIS_DSN") == 0 ? ud : NULL; }

static ew__config *parse(ew__test_env *env, const char *toml, const char *dsn) {
    ew__config *config = NULL;
    char text[256];
    (void)snprintf(text, sizeof text, "%s", dsn ? dsn : "");
    ew__test_env_init(env, 1);
    assert_int_equal(ew__rrq_parse(&env->env, ew_str_from(toml), "/etc/ew", variable, dsn ? text : NULL, &config),
                     EW_OK);
    return config;
}

static void expect(const char *toml, const char *expected) {
    ew__test_env env;
    char problems[4096];
    ew__config *config = parse(&env, toml, NULL);
    said(&config->problems, problems, sizeof problems);
    assert_string_equal(problems, expected);
    done(&env, config);
}

static ew__config *parse_fine(ew__test_env *env, const char *toml, const char *dsn) {
    char problems[4096];
    ew__config *config = parse(env, toml, dsn);
    said(&config->problems, problems, sizeof problems);
    assert_string_equal(problems, "");
    return config;
}

static const char whole[] = "[rrq]\n"
                            "redis_dsn = \"redis://redis.example:6380/2\"\n"
                            "default_queue_name = \"rrq:queue:work\"\n"
                            "default_dlq_name = \"rrq:dlq:dead\"\n"
                            "default_max_retries = 7\n"
                            "default_job_timeout_seconds = 1_20\n"
                            "default_result_ttl_seconds = 0\n"
                            "default_unique_job_lock_ttl_seconds = 60\n"
                            "default_lock_timeout_extension_seconds = 60\n"
                            "default_poll_delay_seconds = 0.1\n"
                            "base_retry_delay_seconds = 0.5\n"
                            "max_retry_delay_seconds = 60.0\n"
                            "worker_shutdown_grace_period_seconds = 2.5\n"
                            "runner_connect_timeout_ms = 20000\n"
                            "runner_shutdown_term_grace_seconds = 0.0\n"
                            "default_runner_name = \"py\"\n"
                            "worker_concurrency = 10\n"
                            "something_else = [1, 2]\n"
                            "[rrq.runners.py]\n"
                            "type = \"socket\"\n"
                            "cmd = [\"rrq-runner\", \"--settings\", \"app.settings\"]\n"
                            "pool_size = 2\n"
                            "max_in_flight = 16\n"
                            "cwd = \"app\"\n"
                            "tcp_port = 9000\n"
                            "response_timeout_seconds = 30\n"
                            "[rrq.runners.py.env]\n"
                            "MODE = \"x\"\n"
                            "N = 5\n"
                            "[rrq.runners.mail]\n"
                            "cmd = [\"./mail\"]\n"
                            "tcp_port = 0x2329\n"
                            "tcp_host = \"10.0.0.1\"\n"
                            "[rrq.routing]\n"
                            "\"rrq:queue:mail\" = \"mail\"\n"
                            "[[rrq.cron_jobs]]\n"
                            "function_name = \"clean\"\n"
                            "schedule = \"0 0 3 * * *\"\n"
                            "params = { days = 3 }\n"
                            "queue_name = \"rrq:queue:slow\"\n"
                            "unique = true\n"
                            "[rrq.correlation_mappings]\n"
                            "user = \"account.id\"\n"
                            "[rrq.watch]\n"
                            "path = \".\"\n"
                            "[other]\n"
                            "x = 1\n";

static void test_rrq__all(void **state) {
    (void)state;
    ew__test_env env;
    char notes[512];
    ew__config *config = parse_fine(&env, whole, NULL);
    const ew__config_jobs *jobs = &config->jobs;
    const ew__config_runner *runners = jobs->runners.items;
    const ew__config_queue *queues = jobs->queues.items;
    const ew__config_schedule *crons = jobs->schedules.items;
    const ew_jobs_options *options = &jobs->defaults.options;
    assert_true(config->foreign && !jobs->worker.on && jobs->retry.jitter);
    assert_string_equal(jobs->store, "redis://redis.example:6380/2");
    assert_string_equal(options->queue, "work");
    assert_string_equal(jobs->dlq, "dead");
    assert_true(options->max_retries == 7 && options->timeout_ms == 120000 && options->unique_ttl_ms == 60000);
    assert_true(options->result_ttl_ms > UINT64_C(300000000000));
    assert_true(jobs->retry.base_ms == 500 && jobs->retry.max_ms == 60000);
    assert_int_equal(config->drain_ms, 2500);
    assert_int_equal(config->limits.values.runner_wait_ms, 20000);
    assert_int_equal(config->limits.values.runner_grace_ms, 1);
    assert_string_equal(jobs->default_runner, "py");
    assert_string_equal(runners[0].runner.name, "py");
    assert_string_equal(runners[0].runner.target, "rrq://127.0.0.1:9000");
    assert_string_equal(runners[0].runner.command[2], "app.settings");
    assert_null(runners[0].runner.command[3]);
    assert_true(runners[0].runner.processes == 2 && runners[0].runner.max_in_flight == 16 &&
                runners[0].runner.response_timeout_ms == 30000);
    assert_string_equal(runners[0].runner.env[0], "*"); /* RRQ's runners inherit */
    assert_string_equal(runners[0].runner.env[1], "MODE=x");
    assert_string_equal(runners[0].runner.env[2], "N=5");
    assert_string_equal(runners[0].runner.cwd, "app");
    assert_string_equal(runners[1].runner.target, "rrq://127.0.0.1:9001");
    assert_string_equal(runners[1].runner.command[0], "./mail");
    assert_true(runners[1].runner.processes >= 1);
    assert_int_equal(jobs->queues.n, 2);
    assert_string_equal(queues[0].queue.name, "work");
    assert_true(!queues[0].by_name && queues[1].by_name);
    assert_string_equal(queues[1].queue.name, "mail");
    assert_string_equal(queues[1].queue.runner, "mail");
    assert_string_equal(crons[0].cron.function, "clean");
    assert_string_equal(crons[0].cron.queue, "slow");
    assert_string_equal(crons[0].cron.params, "{\"days\":3}");
    assert_true(crons[0].cron.unique);
    assert_string_equal(jobs->correlation_mappings, "{\"user\":\"account.id\"}");
    said(&config->notes, notes, sizeof notes);
    assert_string_equal(notes, "44:6: watch is not used: this worker does not look for changes of files\n");
    done(&env, config);
}

/* Only runners that the worker's queues need are started. */
static void test_rrq__worker(void **state) {
    (void)state;
    ew__test_env env;
    ew_worker_options worker;
    ew__config *config = parse_fine(&env, whole, NULL);
    assert_int_equal(ew__worker_make(&config->arena, config, &(ew__worker_words){.n_queues = 0}, &worker), EW_OK);
    assert_true(worker.n_queues == 1 && worker.n_runners == 1 && worker.n_crons == 1);
    assert_string_equal(worker.queues[0].name, "work");
    assert_string_equal(worker.runners[0].name, "py");
    assert_string_equal(worker.default_runner, "py");
    const char *const mail[] = {"mail"};
    assert_int_equal(
        ew__worker_make(&config->arena, config, &(ew__worker_words){.queues = mail, .n_queues = 1}, &worker), EW_OK);
    assert_true(worker.n_queues == 1 && worker.n_runners == 1 && !worker.default_runner);
    assert_string_equal(worker.runners[0].name, "mail");
    done(&env, config);
}

static void test_rrq__little(void **state) {
    (void)state;
    ew__test_env env;
    ew__config *config = parse_fine(&env, "", NULL);
    assert_string_equal(config->jobs.store, "redis://localhost:6379/0");
    assert_true(config->jobs.node && !config->jobs.default_runner && config->jobs.queues.n == 1);
    done(&env, config);
    config = parse_fine(&env, "redis_dsn = 'redis://a'\ndefault_max_retries = 0\n", "redis://b");
    assert_string_equal(config->jobs.store, "redis://b");
    assert_int_equal(config->jobs.defaults.options.max_retries, 1);
    done(&env, config);
    config = parse_fine(&env, "[runners.python]\ncmd=['x']\ntcp_port=1\n[runner_routes]\ndefault='python'\n", NULL);
    const ew__config_queue *queues = config->jobs.queues.items;
    assert_string_equal(config->jobs.default_runner, "python");
    assert_true(config->jobs.queues.n == 1 && !queues[0].by_name);
    assert_string_equal(queues[0].queue.runner, "python");
    done(&env, config);
    config = parse_fine(&env,
                        "runner_management_mode='external'\n[runners.a]\ntcp_port=65535\npool_size=4\ntcp_host='::1'\n"
                        "[runners.b]\ntcp_port=2\ntcp_host='Host.example'\nallowed_hosts=['host.EXAMPLE']\n",
                        NULL);
    const ew__config_runner *runners = config->jobs.runners.items;
    assert_string_equal(runners[0].runner.target, "rrq://[::1]:65535");
    assert_true(runners[0].runner.processes == 1 && !runners[0].runner.command);
    assert_string_equal(runners[1].runner.target, "rrq://Host.example:2");
    assert_false(ew__config_runs_code(config));
    done(&env, config);
}

static void test_rrq__problems(void **state) {
    (void)state;
    expect("[rrq]\ndefault_max_retries = 'many'\ndefault_job_timeout_seconds = 0\n",
           "2:23: default_max_retries wants a number from 0 to 1000000, not \"many\"\n"
           "3:31: default_job_timeout_seconds is out of range: it must be above zero\n");
    expect("[rrq.runners.a]\ntcp_port = 1\ncmd = []\n[rrq.runners.b]\ntcp_port = 1\n",
           "3:7: cmd: must not be empty for runner 'a'\n4:14: cmd: must not be empty for runner 'b'\n");
    expect("[rrq.runners.a]\ncmd = ['x']\ntcp_prot = 1\n",
           "1:14: the key tcp_port is missing\n3:1: unknown key tcp_prot; did you mean tcp_port?\n");
    expect("[rrq.runners.a]\ncmd = ['x']\ntcp_port = 1\ntcp_socket = 'localhost:1'\n",
           "4:1: tcp_socket is of an older RRQ; tcp_host and tcp_port say it now\n");
    expect("[rrq.runners.a]\ncmd = ['x']\ntcp_port = 65535\npool_size = 2\nmax_in_flight = 65\ntype = 'pipe'\n",
           "3:12: tcp_port: with pool_size this goes beyond port 65535\n"
           "5:17: max_in_flight is out of range: it wants a number from 1 to 64\n"
           "6:8: type wants one of socket, not \"pipe\"\n");
    expect("[rrq]\nrunner_management_mode = 'external'\n[rrq.runners.a]\ntcp_port = 1\ntcp_host = '10.0.0.1'\n",
           "5:12: 10.0.0.1: not a loopback address; allowed_hosts can allow it\n");
    expect("[rrq]\nrunner_management_mode = 'some'\ndefault_runner_name = 'x'\n[rrq.runners.a]\ntcp_port = 1\ncmd = "
           "['x']\n"
           "[rrq.routing]\nq = 'b'\nr = 5\ns = []\n",
           "2:26: runner_management_mode wants one of managed, external, not \"some\"\n"
           "3:23: default runner 'x': it is not configured\n"
           "8:5: queue 'q' routes to runner 'b' but that runner is not configured\n"
           "9:5: queue 'r' routes to runner '5' but that runner is not configured\n"
           "10:5: s: a route wants the name of a runner\n");
    expect("[[rrq.cron_jobs]]\nschedule = '* * * * * *'\n[rrq.runner_routes]\n",
           "1:7: the key function_name is missing\n");
    expect("[rrq]\nrunners = 5\nrunner_routes = 1\n",
           "2:11: runners wants a map, not \"5\"\n3:17: runner_routes: this is no table\n");
    expect("[rrq\n", "1:5: the name of a table ends with ]\n");
}

/* ---- variables ---- */

static void test_rrq__variables(void **state) {
    (void)state;
    ew__test_env env;
    ew__test_env_init(&env, 1);
    ew__rrq_variables variables = {.env = &env.env};
    (void)unsetenv("RRQ_TEST_A");
    (void)setenv("RRQ_TEST_B", "outside", 1);
    (void)setenv("RRQ_TEST_C", "", 1);
    assert_int_equal(
        ew__rrq_variables_read(
            &variables,
            EW_STR("# RRQ_TEST_X=1\nEW_TEST_EVIL=/evil\nexport RRQ_TEST_A = 'a b' # c\r\nRRQ_TEST_B=inside\n"
                   "RRQ_TEST_C=inside\nRRQ_TEST_D=\"redis://h:1/0\"\n RRQ_TEST_E=x#y z # no\nRRQ_TEST_F\n"
                   "RRQ_TEST_G=\nRRQ_TEST_H='open\nRRQ_TEST_AB=2")),
        EW_OK);
    assert_string_equal(ew__rrq_variable(&variables, "RRQ_TEST_A"), "a b");
    assert_string_equal(ew__rrq_variable(&variables, "RRQ_TEST_B"), "outside");
    assert_null(ew__rrq_variable(&variables, "RRQ_TEST_C"));
    assert_string_equal(ew__rrq_variable(&variables, "RRQ_TEST_D"), "redis://h:1/0");
    assert_string_equal(ew__rrq_variable(&variables, "RRQ_TEST_E"), "x#y z");
    assert_null(ew__rrq_variable(&variables, "RRQ_TEST_F"));
    assert_null(ew__rrq_variable(&variables, "RRQ_TEST_G"));
    assert_null(ew__rrq_variable(&variables, "RRQ_TEST_H"));
    assert_null(ew__rrq_variable(&variables, "RRQ_TEST_X"));
    assert_string_equal(ew__rrq_variable(&variables, "RRQ_TEST_AB"), "2");
    assert_null(ew__rrq_variable(&variables, "EW_TEST_EVIL"));
    ew__rrq_variables_done(&variables);
    assert_int_equal(ew__test_env_live_blocks(&env), 0);
}

static void test_rrq__memory(void **state) {
    (void)state;
    unsigned failures = 0;
    for (uint64_t n = 1;; n++) {
        ew__test_env env;
        ew__config *config = NULL;
        char dsn[] = "redis://x";
        ew__test_env_init(&env, 1);
        ew__test_env_fail_at(&env, n, false);
        ew_err err = ew__rrq_parse(&env.env, EW_STR(whole), "/etc", variable, dsn, &config);
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
        cmocka_unit_test(test_rrq__all),      cmocka_unit_test(test_rrq__worker),    cmocka_unit_test(test_rrq__little),
        cmocka_unit_test(test_rrq__problems), cmocka_unit_test(test_rrq__variables), cmocka_unit_test(test_rrq__memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
