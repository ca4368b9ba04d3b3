/*
 * tests/unit/config/test_config.c: the tables of the configuration file: what each key becomes, every sort of problem at
 * its place, memory that fails.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "unit/config/config_support.h"

static const char *variable(void *ud, const char *name) {
    (void)ud;
    return strcmp(name, "N") == 0 ? "3" : NULL;
}

static ew__config *parse(ew__test_env *env, const char *yaml) {
    ew__config *config = NULL;
    ew__test_env_init(env, 1);
    assert_int_equal(ew__config_parse(&env->env, ew_str_from(yaml), "/etc/ew", variable, NULL, &config), EW_OK);
    assert_non_null(config);
    return config;
}

/* All problems of a text, in order. */
static void expect(const char *yaml, const char *expected) {
    ew__test_env env;
    char problems[4096];
    ew__config *config = parse(&env, yaml);
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

static void expect_texts(const char *const *texts, const char *expected) {
    char all[512];
    size_t n = 0;
    all[0] = 0;
    for (size_t i = 0; texts && texts[i] && n < sizeof all; i++) {
        n += (size_t)snprintf(all + n, sizeof all - n, "%s|", texts[i]);
    }
    assert_string_equal(all, expected);
}

/* ---- values ---- */

static void test_config__settings(void **state) {
    (void)state;
    ew__test_env env;
    ew__config *config =
        parse_fine(&env, "version: 1\n"
                         "listen: [127.0.0.1:0, http=127.0.0.1:8080]\n"
                         "connect: ws://localhost:3100\n"
                         "allow_hosts: [a.example]\n"
                         "allow_remote: true\n"
                         "threads: ${N}\n"
                         "drain: 1.5s\n"
                         "runtime_id: 42\n"
                         "log: {level: error}\n"
                         "telemetry: {url: 'http://localhost:4033', realtime: true}\n"
                         "limits: {frame_bytes: 1M, head_ms: 500, idle_ms: 1m, calls: 7, call_ms: 0}\n");
    expect_texts(config->listen, "127.0.0.1:0|http=127.0.0.1:8080|");
    expect_texts(config->connect, "ws://localhost:3100|");
    expect_texts(config->allow_hosts, "a.example|");
    assert_true(config->allow_remote && config->telemetry.realtime && config->log.has_level);
    assert_int_equal(config->threads, 3);
    assert_int_equal(config->drain_ms, 1500);
    assert_string_equal(config->runtime_id, "42");
    assert_int_equal(config->log.level, EW_LOG_ERROR);
    assert_string_equal(config->telemetry.url, "http://localhost:4033");
    assert_int_equal(config->limits.values.frame_bytes, 1 << 20);
    assert_int_equal(config->limits.values.head_ms, 500);
    assert_int_equal(config->limits.values.idle_ms, 60000);
    assert_int_equal(config->limits.values.calls, 7);
    assert_int_equal(config->limits.values.head_bytes, 0);
    assert_false(ew__config_runs_code(config));
    done(&env, config);
}

static void test_config__nothing(void **state) {
    (void)state;
    static const char *const texts[] = {"", "# only a comment\n", "~", "listen:\nimports:\nactions: ~\nlimits:\n",
                                        "{}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ew__test_env env;
        ew__config *config = parse_fine(&env, texts[i]);
        assert_null(config->listen);
        assert_int_equal(config->imports.n + config->actions.n + config->plugins.n, 0);
        assert_false(config->log.has_level);
        done(&env, config);
    }
}

static void test_config__alone(void **state) {
    (void)state;
    ew__test_env env;
    ew__config *config = parse_fine(&env, "log: debug\ntelemetry: http://localhost:1\n");
    assert_true(config->log.has_level && config->log.level == EW_LOG_DEBUG);
    assert_string_equal(config->telemetry.url, "http://localhost:1");
    done(&env, config);
}

static void test_config__imports(void **state) {
    (void)state;
    ew__test_env env;
    ew__config *config = parse_fine(&env, "imports:\n"
                                          "  - http://127.0.0.1:1\n"
                                          "  - {targets: ['http://a:1', 'http://b:2'], prefix: py, names: [x, 'y:z']}\n"
                                          "  - target: 'jsonrpc+stdio:'\n"
                                          "    command: [bin/peer, -v]\n"
                                          "    names: {/flow/a: b, c: }\n"
                                          "    processes: 2\n"
                                          "    refresh: 500ms\n"
                                          "    blobs: sqlite:x.db\n");
    const ew__config_import *imports = config->imports.items;
    assert_int_equal(config->imports.n, 3);
    assert_string_equal(imports[0].joined, "http://127.0.0.1:1");
    assert_int_equal(imports[0].node->line, 2);
    assert_string_equal(imports[1].joined, "http://a:1,http://b:2");
    assert_string_equal(imports[1].options.prefix, "py");
    expect_texts(imports[1].options.names, "x|y:z|");
    assert_string_equal(imports[2].joined, "jsonrpc+stdio:");
    expect_texts(imports[2].options.command, "/etc/ew/bin/peer|-v|");
    expect_texts(imports[2].options.names, "/flow/a:b|c|");
    assert_int_equal(imports[2].options.processes, 2);
    assert_int_equal(imports[2].options.refresh_ms, 500);
    assert_string_equal(imports[2].options.blobs, "sqlite:x.db");
    assert_true(ew__config_runs_code(config));
    done(&env, config);
}

static void test_config__exec(void **state) {
    (void)state;
    ew__test_env env;
    ew__config *config = parse_fine(&env, "actions:\n"
                                          "  /flow/a: {exec: [python3, ./x.py]}\n"
                                          "  /tool/b:\n"
                                          "    description: does b\n"
                                          "    input_schema: {type: object, max: 5}\n"
                                          "    output_schema: '{\"type\":\"string\"}'\n"
                                          "    stream_schema: true\n"
                                          "    metadata: {a: [1, 2.50], b: 'x'}\n"
                                          "    exec:\n"
                                          "      command: [./run, a b, '']\n"
                                          "      folder: work\n"
                                          "      environment: {A: 1, B: ~, C: x=y}\n"
                                          "      output: json\n"
                                          "      keep: false\n"
                                          "      processes: 3\n"
                                          "      queue: 9\n"
                                          "      timeout: 1m\n"
                                          "      grace: 250ms\n"
                                          "      output_bytes: 64K\n"
                                          "      cpu: 1500ms\n"
                                          "      memory: 1G\n"
                                          "      file_bytes: 10\n"
                                          "      open_files: 32\n"
                                          "      exits: {3: NOT_FOUND, 255: UNAVAILABLE}\n");
    const ew__config_action *actions = config->actions.items;
    const ew_exec_options *b = &actions[1].exec.options;
    expect_texts(actions[0].exec.options.argv, "python3|./x.py|");
    assert_string_equal(actions[1].node->key->text.ptr, "/tool/b");
    assert_string_equal(actions[1].describe.description, "does b");
    assert_string_equal(actions[1].describe.input_schema, "{\"type\":\"object\",\"max\":5}");
    assert_string_equal(actions[1].describe.output_schema, "{\"type\":\"string\"}");
    assert_string_equal(actions[1].describe.stream_schema, "true");
    assert_string_equal(actions[1].describe.metadata, "{\"a\":[1,2.50],\"b\":\"x\"}");
    expect_texts(b->argv, "/etc/ew/./run|a b||");
    assert_string_equal(b->folder, "/etc/ew/work");
    expect_texts(b->environment, "A=1|B|C=x=y|");
    assert_int_equal(b->output, EW_EXEC_JSON);
    assert_int_equal(b->processes, 3);
    assert_int_equal(b->queue, 9);
    assert_int_equal(b->timeout_ms, 60000);
    assert_int_equal(b->grace_ms, 250);
    assert_int_equal(b->output_bytes, 65536);
    assert_int_equal(b->cpu_s, 2);
    assert_int_equal(b->memory_bytes, 1 << 30);
    assert_int_equal(b->file_bytes, 10);
    assert_int_equal(b->open_files, 32);
    assert_int_equal(b->n_exits, 2);
    assert_true(b->exits[0].code == 3 && b->exits[0].status == EW_STATUS_NOT_FOUND);
    assert_true(b->exits[1].code == 255 && b->exits[1].status == EW_STATUS_UNAVAILABLE);
    assert_true(ew__config_runs_code(config));
    done(&env, config);
}

static void test_config__remote_and_plugins(void **state) {
    (void)state;
    ew__test_env env;
    ew__config *config = parse_fine(&env, "actions:\n"
                                          "  /flow/a: {remote: {target: 'http://a:1', action: greet}}\n"
                                          "plugins:\n"
                                          "  - x.so\n"
                                          "  - {path: /lib/y.so, config: {a: 'b', n: 1}}\n"
                                          "  - {path: z.so, config: text}\n"
                                          "  - {path: z.so, config: ~}\n");
    const ew__config_action *actions = config->actions.items;
    const ew__config_plugin *plugins = config->plugins.items;
    assert_null(actions[0].exec.node);
    assert_string_equal(actions[0].remote.joined, "http://a:1");
    assert_string_equal(actions[0].remote.action, "greet");
    assert_string_equal(plugins[0].path, "/etc/ew/x.so");
    assert_null(plugins[0].config);
    assert_string_equal(plugins[1].path, "/lib/y.so");
    assert_string_equal(plugins[1].config, "{\"a\":\"b\",\"n\":1}");
    assert_string_equal(plugins[2].config, "\"text\"");
    assert_string_equal(plugins[3].config, "null");
    assert_true(ew__config_runs_code(config));
    done(&env, config);
}

/* ---- problems ---- */

static void test_config__unknown(void **state) {
    (void)state;
    expect("lisen: x\nlimits:\n  frame_byte: 1\nimports:\n  - {target: 'x:', naems: []}\n",
           "1:1: unknown key lisen; did you mean listen?\n"
           "3:3: unknown key frame_byte; did you mean frame_bytes?\n"
           "5:20: unknown key naems; did you mean names?\n");
    expect("plugins: [{path: x, other: 1}]\n", "1:21: unknown key other; known here: path, config\n");
    expect("limits: {zzzzzzzz: 1}\n", "1:10: unknown key zzzzzzzz\n");
}

static void test_config__types(void **state) {
    (void)state;
    expect("- a\n", "1:1: The file wants a map of keys and values\n");
    expect("threads: many\ndrain: soon\nallow_remote: yes\n",
           "1:10: threads wants a number from 1 to 1024, not \"many\"\n"
           "2:8: drain wants a duration such as 500ms, 2s, 1m, 1h, not \"soon\"\n"
           "3:15: allow_remote wants true or false, not \"yes\"\n");
    expect("threads: [1]\nlisten: {a: b}\nruntime_id: {}\nallow_remote: 'true'\n",
           "1:10: threads wants a number from 1 to 1024, not a list\n"
           "2:9: listen wants a text or a list of texts, not a map\n"
           "3:13: runtime_id wants a text, not a map\n"
           "4:15: allow_remote wants true or false, not \"true\"\n");
    expect("imports: {a: b}\nactions: []\nplugins: x\nlimits: 5\nlog: {level: loud}\n",
           "1:10: imports wants a list, not a map\n"
           "2:10: actions wants a map, not a list\n"
           "3:10: plugins wants a list, not \"x\"\n"
           "4:9: limits wants a map of keys and values\n"
           "5:14: level wants one of error, warn, info, debug, not \"loud\"\n");
    expect("limits: {frame_bytes: 1X, idle_ms: 5d, calls: -1, head_bytes: 1.5K}\n",
           "1:23: frame_bytes wants a size such as 64K, 1M, 1G, not \"1X\"\n"
           "1:36: idle_ms wants a duration such as 500ms, 2s, 1m, 1h, not \"5d\"\n"
           "1:47: calls wants a number from 1 on, not \"-1\"\n"
           "1:63: head_bytes wants a size such as 64K, 1M, 1G, not \"1.5K\"\n");
    expect("listen: [a, [b]]\nimports: [~, [x]]\n", "1:13: listen wants a text or a list of texts, not a list\n"
                                                    "2:11: imports[] wants a map of keys and values\n"
                                                    "2:14: target wants a text, not a list\n");
    expect("actions: {/a/b: {exec: 'ls -l'}}\n",
           "1:24: argv wants a list such as [PROGRAM, ARGUMENT], not \"ls -l\": no shell takes a text to pieces\n");
    expect("listen: [\"a\\0b\"]\n", "1:10: listen: the text has a NUL in it\n");
}

static void test_config__ranges(void **state) {
    (void)state;
    expect("version: 2\nthreads: 0\ndrain: 0\nlimits: {calls: 0, head_ms: 0, call_ms: 0}\n",
           "1:10: version is out of range: it wants the number 1\n"
           "2:10: threads is out of range: it wants a number from 1 to 1024\n"
           "3:8: drain is out of range: it must be above zero\n"
           "4:17: calls is out of range: it must be above zero\n"
           "4:29: head_ms is out of range: it must be above zero\n");
    expect("threads: 1025\nimports: [{target: 'x:', processes: 65}]\nlimits: {calls: 99999999999999999999}\n",
           "1:10: threads is out of range: it wants a number from 1 to 1024\n"
           "2:37: processes is out of range: it wants a number from 1 to 64\n"
           "3:17: calls wants a number from 1 on, not \"99999999999999999999\"\n");
}

static void test_config__missing_and_clashes(void **state) {
    (void)state;
    expect("imports:\n  - prefix: a\n  - {target: 'x:', targets: ['y:']}\n  - targets: []\n",
           "2:5: one of the keys target and targets is missing\n"
           "3:20: target and targets are one too many\n"
           "4:14: targets is empty\n");
    expect("plugins:\n  - config: 1\n  - {path: ~}\n  - ''\n", "2:5: the key path is missing\n"
                                                               "3:5: the key path is missing\n"
                                                               "4:5: path wants a path, not \"\"\n");
    expect("actions:\n  /a/b: {}\n  /a/c: {exec: [x], remote: {target: 'y:', action: z}}\n  /a/d: {remote: {target: "
           "'y:'}}\n",
           "2:9: one of the keys exec and remote is missing\n"
           "3:21: exec and remote are one too many\n"
           "4:18: the key action is missing\n");
    expect("actions:\n  /a/b: {exec: {argv: [x], command: [y]}}\n  /a/c: {exec: {keep: true}}\n"
           "  /a/d: {exec: {argv: [x], keep: true, output: text}}\n  /a/e: {exec: []}\n",
           "2:28: argv and command are one too many\n"
           "3:16: one of the keys argv and command is missing\n"
           "4:48: keep goes with output: lines only, which tell where one call ends\n"
           "5:16: argv names no program\n");
    expect("actions:\n  greet: {exec: [x]}\n  /flow/: {exec: [x]}\n  //x: {exec: [x]}\n  /x: 5\n",
           "2:3: greet is no key of an action: want /TYPE/NAME, such as /flow/greet\n"
           "3:3: /flow/ is no key of an action: want /TYPE/NAME, such as /flow/greet\n"
           "4:3: //x is no key of an action: want /TYPE/NAME, such as /flow/greet\n"
           "5:7: actions.KEY wants a map of keys and values\n");
    expect(
        "actions: {/a/b: {exec: {argv: [x], exits: {0: INTERNAL, 3: OK, x: ABORTED, 4: Not, 256: ABORTED, 5: [a]}}}}\n",
        "1:44: 0 is no exit code: 1 to 255 are\n"
        "1:60: OK is no status of a failure, such as NOT_FOUND, UNAVAILABLE, INTERNAL\n"
        "1:64: x is no exit code: 1 to 255 are\n"
        "1:79: Not is no status of a failure, such as NOT_FOUND, UNAVAILABLE, INTERNAL\n"
        "1:84: 256 is no exit code: 1 to 255 are\n"
        "1:101: this is no status of a failure, such as NOT_FOUND, UNAVAILABLE, INTERNAL\n");
    expect("plugins: [{path: x, config: {a: .inf, b: .nan}}]\n",
           "1:33: JSON has no number .inf; quotes make a text of it\n"
           "1:42: JSON has no number .nan; quotes make a text of it\n");
}

/* What the reader of YAML has told of is not told again by the tables. */
static void test_config__once(void **state) {
    (void)state;
    expect("threads: ${NONE}\nlisten: ['${NONE}', x]\nactions: {/a/b: {exec: ['${NONE}', y]}, /a/c: *x}\n",
           "1:10: the variable NONE is not set\n"
           "2:11: the variable NONE is not set\n"
           "3:26: the variable NONE is not set\n"
           "3:47: aliases (*NAME) are not supported: write the value again\n");
    expect("threads: 1\nthreads: x\n", "2:1: the key threads is repeated; it is in line 1 already\n");
}

static void test_config__many(void **state) {
    (void)state;
    ew__test_env env;
    ew__buf yaml;
    ew__buf_init(&yaml, ew_env_default(), 1 << 20);
    for (unsigned i = 0; i < 150; i++) {
        (void)ew__buf_printf(&yaml, "zz%u: 1\n", i);
    }
    (void)ew__buf_cstr(&yaml, "threads: x");
    (void)ew__buf_char(&yaml, 0);
    ew__config *config = parse(&env, yaml.ptr);
    assert_int_equal(config->problems.n, EW__PROBLEMS_MAX);
    assert_int_equal(config->problems.left_out, 1); /* what is unknown beyond is not even looked at */
    done(&env, config);
    ew__buf_done(&yaml);
}

/* ---- memory ---- */

static void test_config__memory(void **state) {
    (void)state;
    static const char yaml[] = "listen: [a, b]\nthreads: x\nlimits: {calls: 0}\nimports: [{targets: [a, b], names: {a: "
                               "b}, command: [./x]}, y]\n"
                               "actions: {/a/b: {exec: {argv: [./a], folder: b, environment: {a: b}, exits: {3: "
                               "ABORTED}}, metadata: {a: [1]}}}\n"
                               "plugins: [x, {path: y, config: {a: text}}]\n";
    unsigned failures = 0;
    for (uint64_t n = 1;; n++) {
        ew__test_env env;
        ew__config *config = NULL;
        ew__test_env_init(&env, 1);
        ew__test_env_fail_at(&env, n, false);
        ew_err err = ew__config_parse(&env.env, EW_STR(yaml), "/etc", variable, NULL, &config);
        bool failed = ew__test_env_failed(&env) > 0;
        assert_int_equal(err, failed ? EW_ENOMEM : EW_OK);
        assert_int_equal(config == NULL, failed);
        done(&env, config);
        if (!failed) {
            break;
        }
        failures++;
    }
    assert_true(failures >= 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config__settings), cmocka_unit_test(test_config__nothing),
        cmocka_unit_test(test_config__alone),    cmocka_unit_test(test_config__imports),
        cmocka_unit_test(test_config__exec),     cmocka_unit_test(test_config__remote_and_plugins),
        cmocka_unit_test(test_config__unknown),  cmocka_unit_test(test_config__types),
        cmocka_unit_test(test_config__ranges),   cmocka_unit_test(test_config__missing_and_clashes),
        cmocka_unit_test(test_config__once),     cmocka_unit_test(test_config__many),
        cmocka_unit_test(test_config__memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
