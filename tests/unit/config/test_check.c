/*
 * tests/unit/config/test_check.c: ew_config_check on real files: what an app would say, who may write to the file and to
 * plug-ins, files that cannot be read, memory that fails.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "program/config.h"
#include "support/fail_env.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/ew_config_XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static const char *path_of(const char *name) {
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int remove_folder(void **state) {
    (void)state;
    (void)unlink(path_of("a.yaml"));
    (void)unlink(path_of("x.so"));
    (void)unlink(path_of("pipe"));
    return rmdir(folder);
}

static void write_file(const char *name, const char *text, mode_t mode) {
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

typedef struct told {
    const char *path;
    char text[16384];
    size_t n;
} told;

static void note(const ew_config_problem *problem, void *ud) {
    told *t = ud;
    size_t used = strlen(t->text);
    assert_string_equal(problem->file, t->path);
    t->n++;
    (void)snprintf(t->text + used, sizeof t->text - used, "%u:%u: %s\n", problem->line, problem->column,
                   problem->message);
}

static void expect(const char *yaml, mode_t mode, ew_err err, const char *expected) {
    told t = {.path = path_of("a.yaml")};
    write_file("a.yaml", yaml, mode);
    assert_int_equal(ew_config_check(t.path, note, &t), err);
    assert_string_equal(t.text, expected);
}

static void test_config_check__fine(void **state) {
    (void)state;
    expect("", 0666, EW_OK, "");
    expect("listen: [127.0.0.1:0, unix:/tmp/x.sock]\nconnect: ws://localhost:3100\nthreads: 2\n"
           "imports: [http://127.0.0.1:1, {targets: ['http://a:1', 'http://b:1'], names: {a: b}}]\n",
           0666, EW_OK, "");
    expect("actions:\n  /tool/a: {exec: [cat], metadata: {a: 1}, input_schema: '{}'}\n"
           "  /flow/b: {remote: {target: 'http://127.0.0.1:1', action: x}, description: d}\n"
           "imports: [{target: 'jsonrpc+stdio:', command: [cat]}]\n",
           0644, EW_OK, "");
}

/* One mistake is one problem. */
static void test_config_check__once(void **state) {
    (void)state;
    expect("actions:\n  greet: {exec: [x]}\n  /a: {remote: {target: 'http://a:1', action: b}}\n"
           "imports: [{target: 'jsonrpc+stdio:', command: x}]\n",
           0644, EW_ESYNTAX,
           "2:3: greet is no key of an action: want /TYPE/NAME, such as /flow/greet\n"
           "3:3: /a is no key of an action: want /TYPE/NAME, such as /flow/greet\n"
           "4:47: command wants a list such as [PROGRAM, ARGUMENT], not \"x\": no shell takes a text to pieces\n");
}

/* What only an app can tell is told at the place of the item. */
static void test_config_check__app(void **state) {
    (void)state;
    expect("listen:\n  - 127.0.0.1:0\n  - nowhere\n  - tcp=127.0.0.1:1\n", 0644, EW_ESYNTAX,
           "3:5: nowhere is no address: want HOST:PORT with a numeric host or localhost, unix:PATH, stdio or fd:N\n"
           "4:5: there is no wire tcp in this build\n");
    expect("listen: 0.0.0.0:80\n", 0644, EW_ESYNTAX,
           "1:9: 0.0.0.0:80 can be reached from other machines; --allow-remote (allow_remote) permits that\n");
    expect("listen: 0.0.0.0:80\nallow_remote: true\n", 0644, EW_OK, "");
    told t = {.path = path_of("a.yaml")};
    write_file("a.yaml",
               "threads: x\nconnect: [nowhere]\ntelemetry: {url: nowhere}\nimports:\n  - nowhere\n"
               "  - {target: 'http://127.0.0.1:1', command: [x]}\n"
               "actions:\n  /a/b: {remote: {target: nowhere, action: x}}\n  /a/c: {remote: {target: 'http://a:1', "
               "action: 'x:y'}}\n"
               "  /a/d: {exec: [x], input_schema: '{', metadata: [1]}\n",
               0644);
    assert_int_equal(ew_config_check(t.path, note, &t), EW_ESYNTAX);
    static const char *const parts[] = {"1:10: threads wants",
                                        "2:11: ",
                                        "3:18: nowhere: ",
                                        "5:5: ",
                                        "6:14: ",
                                        "8:27: ",
                                        "9:49: action: a name must not have a colon in it\n",
                                        "10:35: input_schema: this text is no JSON, from its byte 2 on\n",
                                        "10:50: metadata: this is no map\n"};
    const char *at = t.text;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *found = strstr(at, parts[i]);
        if (!found) {
            print_error("%s is missing in:\n%s", parts[i], t.text);
        }
        assert_non_null(found);
        at = found;
    }
    assert_int_equal(t.n, sizeof parts / sizeof *parts);
}

static void test_config_check__modes(void **state) {
    (void)state;
    static const char *const texts[] = {
        "actions: {/a/b: {exec: [x]}}\n", "imports: [{target: 'jsonrpc+stdio:', command: [x]}]\n",
        "actions: {/a/b: {remote: {target: 'jsonrpc+stdio:', command: [x], action: y}}}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        expect(texts[i], 0644, EW_OK, "");
        expect(texts[i], 0600, EW_OK, "");
        expect(
            texts[i], 0620, EW_ESYNTAX,
            "0:0: it names programs or plug-ins, but others than its owner may write to it; chmod go-w mends that\n");
        expect(
            texts[i], 0602, EW_ESYNTAX,
            "0:0: it names programs or plug-ins, but others than its owner may write to it; chmod go-w mends that\n");
    }
    struct stat file = {.st_uid = geteuid(), .st_mode = S_IFREG | 0644};
    assert_null(ew__config_distrusts(&file));
    file.st_uid = 0;
    assert_null(ew__config_distrusts(&file));
    file.st_uid = geteuid() + 1;
    assert_string_equal(ew__config_distrusts(&file), "it belongs to another user");
}

static void test_config_check__plugins(void **state) {
    (void)state;
    char expected[512];
    static const char yaml[] = "plugins:\n  - x.so\n";
    (void)snprintf(expected, sizeof expected, "2:5: %s: there is no such file\n", path_of("x.so"));
    expect(yaml, 0644, EW_ESYNTAX, expected);
    write_file("x.so", "no shared object", 0644); /* it is not loaded */
    expect(yaml, 0644, EW_OK, "");
    write_file("x.so", "no shared object", 0646);
    (void)snprintf(expected, sizeof expected, "2:5: %s: others than its owner may write to it; chmod go-w mends that\n",
                   path_of("x.so"));
    expect(yaml, 0644, EW_ESYNTAX, expected);
    (void)snprintf(expected, sizeof expected, "1:11: %s: it is no regular file\n", folder);
    char list[128];
    (void)snprintf(list, sizeof list, "plugins: [%s]\n", folder);
    expect(list, 0644, EW_ESYNTAX, expected);
}

static void test_config_check__unreadable(void **state) {
    (void)state;
    told t = {.path = "/nowhere/at/all.yaml"};
    assert_int_equal(ew_config_check(t.path, note, &t), EW_EIO);
    assert_string_equal(t.text, "0:0: cannot be read: No such file or directory\n");
    assert_int_equal(ew_config_check(t.path, NULL, NULL), EW_EIO);
    t = (told){.path = folder};
    assert_int_equal(ew_config_check(t.path, note, &t), EW_EIO);
    assert_string_equal(t.text, "0:0: cannot be read: Is a directory\n");
    t = (told){.path = path_of("pipe")};
    assert_int_equal(mkfifo(t.path, 0600), 0);
    assert_int_equal(ew_config_check(t.path, note, &t), EW_EIO);
    assert_string_equal(t.text, "0:0: cannot be read: it is no regular file\n");
    assert_int_equal(ew_config_check(NULL, note, &t), EW_EINVAL);
}

static void test_config_check__many(void **state) {
    (void)state;
    static char yaml[4096];
    size_t n = (size_t)snprintf(yaml, sizeof yaml, "listen:\n");
    for (unsigned i = 0; i < 110; i++) {
        n += (size_t)snprintf(yaml + n, sizeof yaml - n, "  - [a, b%u]\n", i);
    }
    told t = {.path = path_of("a.yaml")};
    write_file("a.yaml", yaml, 0644);
    assert_int_equal(ew_config_check(t.path, note, &t), EW_ESYNTAX);
    assert_int_equal(t.n, 101);
    assert_non_null(strstr(t.text, "0:0: and 10 more problems\n"));
}

static void test_config_check__memory(void **state) {
    (void)state;
    unsigned failures = 0;
    write_file("a.yaml",
               "listen: [127.0.0.1:0, x]\nimports: ['http://a:1']\n"
               "actions: {/a/b: {exec: [cat], metadata: {a: 1}}, /a/c: {remote: {target: 'http://a:1', action: b}}}\n",
               0644);
    for (uint64_t n = 1;; n++) {
        ew__test_env env;
        told t = {.path = path_of("a.yaml")};
        ew__test_env_init(&env, 1);
        ew__test_env_fail_at(&env, n, false);
        ew_err err = ew__app_config_check(&env.env, t.path, note, &t);
        bool failed = ew__test_env_failed(&env) > 0;
        assert_true(err == EW_ESYNTAX || (failed && err == EW_ENOMEM)); /* what was not needed may be missing */
        assert_int_equal(t.n, err == EW_ENOMEM ? 0 : 1);
        assert_int_equal(ew__test_env_live_blocks(&env), 0);
        if (!failed) {
            break;
        }
        failures += err == EW_ENOMEM;
    }
    assert_true(failures > 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_check__fine),       cmocka_unit_test(test_config_check__app),
        cmocka_unit_test(test_config_check__once),       cmocka_unit_test(test_config_check__modes),
        cmocka_unit_test(test_config_check__plugins),    cmocka_unit_test(test_config_check__many),
        cmocka_unit_test(test_config_check__unreadable), cmocka_unit_test(test_config_check__memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
