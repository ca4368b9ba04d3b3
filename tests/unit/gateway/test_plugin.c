/*
 * tests/unit/gateway/test_plugin.c: plug-ins in an app: their actions, their configuration, their end; and every file that
 * is not loaded. The files are copies in a folder of the test's own: where this was built others may be able to write.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "handler/plugin.h"
#include "support/fail_env.h"
#include <dlfcn.h>
#include <everywire/everywire.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_MS 10000
#define ELSE 12345 /* somebody else's user id */

static char folder[] = "/tmp/ew-plugin-XXXXXX";
static char paths[20][PATH_MAX]; /* of the current test */
static size_t n_paths;

/* ---- files ---- */

static const char *inside(const char *name) {
    assert_true(n_paths < sizeof paths / sizeof *paths);
    char *path = paths[n_paths++];
    (void)snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

static void copy_file(const char *from, const char *to) {
    char bytes[65536];
    size_t n;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
        assert_int_equal(fwrite(bytes, 1, n, out), n);
    assert_int_equal(fclose(in) + fclose(out), 0);
    assert_int_equal(chmod(to, 0644), 0);
}

/* A copy of one of the samples, under another name. */
static const char *sample_as(const char *name, const char *file) {
    char from[PATH_MAX];
    (void)snprintf(from, sizeof from, EW_PLUGIN_SAMPLES "/sample_%s.so", name);
    const char *path = inside(file);
    copy_file(from, path);
    return path;
}

static const char *sample(const char *name) {
    char file[60];
    (void)snprintf(file, sizeof file, "%s.so", name);
    return sample_as(name, file);
}

static bool is_loaded(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (handle)
        dlclose(handle);
    return handle != NULL;
}

static int set_up(void **state) {
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/ew-plugin-XXXXXX");
    n_paths = 0;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *is, int kind, struct FTW *where) {
    (void)is;
    (void)kind;
    (void)where;
    return remove(path);
}

static int tear_down(void **state) {
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- apps ---- */

static void expect_result(ew_client *client, const char *action, const char *input, const char *result) {
    ew_request *request = NULL;
    ew_end end;
    ew_request_options options = {.action = ew_str_from(action), .input = ew_str_from(input)};
    assert_int_equal(ew_client_call(client, &options, &request), EW_OK);
    assert_int_equal(ew_request_wait(request, WAIT_MS, &end), EW_OK);
    if (end.status != EW_STATUS_OK || !ew_str_eq(end.result, ew_str_from(result)))
        fail_msg("%s: %s %.*s", action, ew_status_name(end.status), (int)end.result.len, end.result.ptr);
    ew_request_free(request);
}

static ew_client *start(ew_app *app) {
    char target[64];
    int port = 0;
    ew_client *client = NULL;
    assert_int_equal(ew_app_listen(app, "127.0.0.1:0"), EW_OK);
    assert_int_equal(ew_app_start(app), EW_OK);
    assert_int_equal(ew_app_listener(app, 0, NULL, NULL, &port), EW_OK);
    (void)snprintf(target, sizeof target, "http://127.0.0.1:%d", port);
    assert_int_equal(ew_client_new(target, NULL, &client, NULL), EW_OK);
    return client;
}

static void must_load(ew_app *app, const char *path, const char *config) {
    ew_err err = ew_app_plugin(app, path, config);
    if (err != EW_OK)
        fail_msg("%s: %s", ew_err_name(err), ew_app_error(app));
}

/* Not loaded, for that reason; and nothing of it stays. */
static void must_refuse(const char *path, ew_err expected, const char *why) {
    ew_app *app = ew_app_new("test");
    assert_non_null(app);
    ew_err err = ew_app_plugin(app, path, NULL);
    if (err != expected || !strstr(ew_app_error(app), why) || strncmp(ew_app_error(app), "plug-in ", 8) != 0)
        fail_msg("%s: %s, %s", path, ew_err_name(err), ew_app_error(app));
    ew_app_free(app);
}

/* ---- good ones ---- */

static void test_api_plugin__serves(void **state) {
    (void)state;
    ew_app *app = ew_app_new_with("test", &(ew_app_options){.threads = 2});
    const char *path = sample("config");
    assert_false(is_loaded(path));
    must_load(app, path, " {\"a\" : [1]}\n");
    assert_string_equal(ew_app_error(app), "");
    ew_client *client = start(app);
    expect_result(client, "/test/config", "1", "{\"a\" : [1]}");
    expect_result(client, "block", "1", "\"waited\"");
    ew_client_free(client);
    assert_true(is_loaded(path));
    ew_app_free(app);
    assert_false(is_loaded(path));
}

static void test_api_plugin__no_config(void **state) {
    (void)state;
    ew_app *app = ew_app_new("test");
    must_load(app, sample("config"), NULL);
    ew_client *client = start(app);
    expect_result(client, "config", "1", "null");
    ew_client_free(client);
    ew_app_free(app);
}

/* An app that never starts lets go of them, too; two plug-ins, and two apps, are strangers. */
static void test_api_plugin__several(void **state) {
    (void)state;
    ew_app *one = ew_app_new("one"), *two = ew_app_new("two");
    const char *config = sample("config"), *nothing = sample("nothing");
    must_load(one, config, "1");
    must_load(one, nothing, NULL);
    must_load(two, nothing, NULL);
    ew_app_free(one);
    assert_true(!is_loaded(config) && is_loaded(nothing));
    ew_app_free(two);
    assert_false(is_loaded(nothing));
}

static void test_api_plugin__by_link(void **state) {
    (void)state;
    const char *path = sample("config"), *link = inside("link.so");
    assert_int_equal(symlink(path, link), 0);
    ew_app *app = ew_app_new("test");
    must_load(app, link, NULL);
    ew_app_free(app);
    char here[PATH_MAX]; /* a slash is enough */
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    app = ew_app_new("test");
    must_load(app, "./config.so", NULL);
    ew_app_free(app);
    assert_int_equal(chdir(here), 0);
}

static ew__test_env *counted; /* the memory of the app whose plug-in tells when it goes */
static size_t left_at_end, n_gone;

EW_API void ew_test_plugin_gone(void);
void ew_test_plugin_gone(void) {
    left_at_end = ew__test_env_live_blocks(counted);
    n_gone++;
}

/* The library is unloaded when the app has no memory left but its record and the budget that counts it. */
static void test_api_plugin__goes_last(void **state) {
    (void)state;
    static ew__test_env env;
    ew__test_env_init(&env, 1);
    counted = &env;
    n_gone = 0;
    ew_app *app = ew_app_new_with("test", &(ew_app_options){.env = &env.env});
    must_load(app, sample("gone"), "[]");
    assert_true(ew__test_env_live_blocks(&env) > 3);
    ew_app_free(app);
    assert_int_equal(n_gone, 1);
    assert_int_equal(left_at_end, 2);
    assert_int_equal(ew__test_env_live_blocks(&env), 0);
}

/* The one that stands in examples/. */
static void test_api_plugin__example(void **state) {
    (void)state;
    const char *from = getenv("EW_EXAMPLE_PLUGIN"), *path = inside("example.so");
    if (!from || !*from) {
        print_message("SKIP: the examples are not built\n");
        skip();
    }
    copy_file(from, path);
    ew_app *app = ew_app_new("test");
    must_load(app, path, "{\"greeting\":\"Gr\\u00fc\\u00df Gott\"}");
    ew_client *client = start(app);
    expect_result(client, "/tool/upper", "\"ab\\u00e4 C1\"", "\"AB\xc3\xa4 C1\"");
    expect_result(client, "welcome", "\"Ada\"", "{\"greeting\":\"Gr\xc3\xbc\xc3\x9f Gott\",\"name\":\"Ada\"}");
    ew_client_free(client);
    ew_app_free(app);
    app = ew_app_new("test");
    must_load(app, path, NULL); /* loaded anew: what it kept has gone */
    client = start(app);
    expect_result(client, "welcome", "\"Ada\"", "{\"greeting\":\"Hello\",\"name\":\"Ada\"}");
    ew_client_free(client);
    ew_app_free(app);
    app = ew_app_new("test");
    assert_int_equal(ew_app_plugin(app, path, "{\"greeting\":7}"), EW_ETYPE);
    ew_app_free(app);
}

/* ---- what plug-ins answer ---- */

static void test_api_plugin__fails(void **state) {
    (void)state;
    must_refuse(sample("fails"), EW_EACCESS, "fails.so: permission denied");
    must_refuse(sample("twice"), EW_EEXISTS, "twice.so: action /test/config: it exists already");
}

/* What it has registered before points into it: it stays loaded. */
static void test_api_plugin__fails_late(void **state) {
    (void)state;
    const char *path = sample("half");
    ew_app *app = ew_app_new("test");
    assert_int_equal(ew_app_plugin(app, path, "7"), EW_EBUSY);
    assert_true(is_loaded(path));
    ew_client *client = start(app); /* a host that does not mind */
    expect_result(client, "config", "1", "7");
    ew_client_free(client);
    ew_app_free(app);
    assert_false(is_loaded(path));
}

/* ---- arguments ---- */

static void test_api_plugin__arguments(void **state) {
    (void)state;
    const char *path = sample("config");
    ew_app *app = ew_app_new("test");
    assert_int_equal(ew_app_plugin(NULL, path, NULL), EW_EINVAL);
    assert_int_equal(ew_app_plugin(app, NULL, NULL), EW_EINVAL);
    ew_client *client = start(app);
    assert_int_equal(ew_app_plugin(app, path, NULL), EW_EINVAL); /* it runs */
    ew_client_free(client);
    ew_app_free(app);
    assert_false(is_loaded(path));
}

static void test_api_plugin__config_no_json(void **state) {
    (void)state;
    static const char *const bad[] = {"", " ", "{", "{\"a\":1,}", "nul", "1 2", "'a'", "\"\xff\""};
    char deep[300];
    const char *path = sample("config");
    ew_app *app = ew_app_new("test");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(ew_app_plugin(app, path, bad[i]), EW_ESYNTAX);
        assert_non_null(strstr(ew_app_error(app), "config.so: its configuration is no JSON"));
    }
    memset(deep, '[', 140);
    memset(deep + 140, ']', 140);
    deep[280] = '\0';
    assert_int_equal(ew_app_plugin(app, path, deep), EW_ESYNTAX);
    assert_non_null(strstr(ew_app_error(app), "too deep"));
    assert_false(is_loaded(path)); /* not even looked at */
    ew_app_free(app);
}

static void test_api_plugin__too_many(void **state) {
    (void)state;
    const char *path = sample("nothing");
    ew_app *app = ew_app_new("test");
    for (int i = 0; i < 64; i++)
        must_load(app, path, NULL);
    assert_int_equal(ew_app_plugin(app, path, NULL), EW_ELIMIT);
    assert_non_null(strstr(ew_app_error(app), "64"));
    ew_app_free(app);
    assert_false(is_loaded(path));
}

static void test_api_plugin__no_memory(void **state) {
    (void)state;
    static ew__test_env env;
    const char *path = sample("config");
    uint64_t n = 0;
    bool failed = true;
    while (failed) {
        ew__test_env_init(&env, 1);
        ew_app *app = ew_app_new_with("test", &(ew_app_options){.env = &env.env});
        assert_non_null(app);
        ew__test_env_fail_at(&env, ++n, false);
        ew_err err = ew_app_plugin(app, path, NULL);
        failed = ew__test_env_failed(&env) > 0;
        assert_int_equal(err, failed ? EW_ENOMEM : EW_OK);
        ew__test_env_fail_at(&env, 0, false);
        ew_app_free(app);
        assert_int_equal(ew__test_env_live_blocks(&env), 0);
        assert_false(is_loaded(path));
    }
    assert_true(n > 2);
}

/* ---- files that are not loaded ---- */

static void test_api_plugin__no_such_file(void **state) {
    (void)state;
    char name[PATH_MAX], why[PATH_MAX];
    must_refuse("plugin.so", EW_EIO, "plugin.so: a plug-in is named by a path with a slash, such as ./plugin.so");
    must_refuse("", EW_EIO, "a path with a slash");
    must_refuse(inside("absent.so"), EW_EIO, "absent.so: No such file or directory");
    must_refuse(inside("absent/x.so"), EW_EIO, "No such file or directory");
    must_refuse(folder, EW_EIO, "it is no regular file");
    must_refuse("/", EW_EIO, "it is no regular file");
    must_refuse("/dev/null", EW_EIO, "it is no regular file");
    const char *pipe_path = inside("pipe.so"), *loop = inside("loop.so");
    assert_int_equal(mkfifo(pipe_path, 0644), 0);
    must_refuse(pipe_path, EW_EIO, "it is no regular file"); /* and nobody waits for who writes there */
    assert_int_equal(symlink(loop, loop), 0);
    must_refuse(loop, EW_EIO, "Too many levels of symbolic links");
    (void)snprintf(name, sizeof name, "%s/%0150d.so", folder, 7); /* of a long name the end is told, and the reason */
    (void)snprintf(why, sizeof why, "plug-in ...%s: No such file", name + strlen(name) - 100);
    must_refuse(name, EW_EIO, why);
}

static void test_api_plugin__no_library(void **state) {
    (void)state;
    const char *empty = inside("empty_file.so"), *text = inside("text.so");
    FILE *file = fopen(empty, "wb");
    assert_true(file && fclose(file) == 0 && chmod(empty, 0644) == 0);
    must_refuse(empty, EW_EIO, "empty_file.so: file too short");
    file = fopen(text, "wb");
    assert_non_null(file);
    for (int i = 0; i < 100; i++)
        (void)fputs("this is no shared object\n", file);
    assert_true(fclose(file) == 0 && chmod(text, 0644) == 0);
    must_refuse(text, EW_EIO, "text.so: invalid ELF header");
    const char *none = sample("empty"), *undefined = sample("undefined");
    must_refuse(none, EW_EIO, "it has no function everywire_plugin: it is no plug-in");
    assert_false(is_loaded(none));
    must_refuse(undefined, EW_EIO, "undefined.so: undefined symbol: ew_test_plugin_nowhere");
    assert_false(is_loaded(undefined));
}

/* Who may write the file, or put another one in its place, would run code here. */
static void test_api_plugin__writable(void **state) {
    (void)state;
    static const struct {
        mode_t mode;
        const char *why;
    } rows[] = {{0664, "it can be written by its group (mode 664)"},
                {0646, "it can be written by everybody (mode 646)"},
                {0622, "it can be written by everybody"},
                {0020 | 0444, "it can be written by its group"}};
    const char *path = sample("config");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(chmod(path, rows[i].mode), 0);
        must_refuse(path, EW_EIO, rows[i].why);
    }
    assert_int_equal(chmod(path, 0400), 0);
    assert_int_equal(chmod(folder, 0770), 0);
    must_refuse(path, EW_EIO, "its folder can be written by its group (mode 770)");
    assert_int_equal(chmod(folder, 01777), 0); /* as /tmp is: a link there can still be anybody's */
    must_refuse(path, EW_EIO, "its folder can be written by everybody (mode 1777)");
    assert_int_equal(chmod(folder, 0755), 0);
    ew_app *app = ew_app_new("test");
    must_load(app, path, NULL);
    ew_app_free(app);
}

/* A link counts with its own folder and with that of what it leads to. */
static void test_api_plugin__writable_behind_links(void **state) {
    (void)state;
    const char *open = inside("open"), *good = sample("config"), *linked = inside("linked.so");
    assert_true(mkdir(open, 0755) == 0 && chmod(open, 0777) == 0);
    const char *bad = sample_as("config", "open/config.so"), *link = inside("open/link.so");
    assert_true(symlink(bad, linked) == 0 && symlink(good, link) == 0);
    must_refuse(linked, EW_EIO, "its folder can be written by everybody");
    must_refuse(link, EW_EIO, "its folder can be written by everybody");
    must_refuse(bad, EW_EIO, "its folder can be written by everybody");
    assert_int_equal(chmod(open, 0755), 0);
    ew_app *app = ew_app_new("test");
    must_load(app, linked, NULL);
    ew_app_free(app);
}

static void test_api_plugin__of_another_user(void **state) {
    (void)state;
    const char *path = sample("config");
    if (geteuid() != 0) {
        print_message("SKIP: only root can give a file away\n");
        skip();
    }
    assert_int_equal(chown(path, ELSE, (gid_t)-1), 0);
    must_refuse(path, EW_EIO, "it belongs to another user (12345)");
    assert_int_equal(chown(path, 0, (gid_t)-1), 0);
    assert_int_equal(chown(folder, ELSE, (gid_t)-1), 0);
    must_refuse(path, EW_EIO, "its folder belongs to another user (12345)");
    assert_int_equal(chown(folder, 0, (gid_t)-1), 0);
    ew_app *app = ew_app_new("test");
    must_load(app, path, NULL);
    ew_app_free(app);
}

/* ---- without an app ---- */

static void test_api_plugin__short_of_room(void **state) {
    (void)state;
    char problem[8] = "xxxxxxx";
    ew__plugin *plugin = NULL;
    assert_int_equal(ew__plugin_load(ew_env_default(), "./absent.so", &plugin, problem, sizeof problem), EW_EIO);
    assert_string_equal(problem, "No such");
    assert_null(plugin);
    ew__plugin_unload(NULL);
    assert_int_equal(ew__plugin_load(ew_env_default(), sample("nothing"), &plugin, problem, sizeof problem), EW_OK);
    assert_int_equal(ew__plugin_fn(plugin)(NULL, &(ew_plugin){.abi = EW_PLUGIN_ABI, .config = EW_STR("1")}), EW_OK);
    ew__plugin_unload(plugin);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_api_plugin__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(serves),        TEST(no_config),       TEST(several),        TEST(by_link),
        TEST(goes_last),     TEST(example),         TEST(fails),          TEST(fails_late),
        TEST(arguments),     TEST(too_many),        TEST(config_no_json), TEST(no_memory),
        TEST(no_such_file),  TEST(no_library),      TEST(writable),       TEST(writable_behind_links),
        TEST(short_of_room), TEST(of_another_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
