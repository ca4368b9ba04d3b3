/*
 * tests/unit/io/test_sandbox.c: the sandbox as the kernel enforces it. Each test enters it in a
 * child process, because it cannot be left. What this kernel lacks is skipped aloud.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_THREAD__)
#define HELPER_THREAD 1 /* ThreadSanitizer has a thread of its own, which Landlock does not reach */
#else
#define HELPER_THREAD 0
#endif

/* In the child: a failed check ends it. */
#define CHECK(what) ((what) ? (void)0 : failed(#what, __LINE__))

static void failed(const char *what, int line) {
    (void)fprintf(stderr, "line %d: %s is false, errno is %s\n", line, what, strerror(errno));
    _exit(1);
}

typedef struct folders {
    char inside[64], outside[64]; /* may be written, may not */
} folders;

static int make_folders(void **state) {
    folders *f = calloc(1, sizeof *f);
    assert_non_null(f);
    (void)snprintf(f->inside, sizeof f->inside, "/tmp/everywire-inside-XXXXXX");
    (void)snprintf(f->outside, sizeof f->outside, "/tmp/everywire-outside-XXXXXX");
    assert_non_null(mkdtemp(f->inside));
    assert_non_null(mkdtemp(f->outside));
    *state = f;
    return 0;
}

static int remove_folders(void **state) {
    folders *f = *state;
    char command[256];
    (void)snprintf(command, sizeof command, "rm -rf %s %s", f->inside, f->outside);
    int code = system(command);
    free(f);
    return code;
}

static const char *path_in(const char *folder, const char *name) {
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static bool can_create(const char *folder, const char *name) {
    int fd = open(path_in(folder, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static ew__sandbox_report enter(const folders *f, bool children) {
    const char *writes[] = {f->inside, "/there/is/no/such/folder", "/dev/null", NULL};
    ew__sandbox_report report;
    ew__sandbox_enter(&(ew__sandbox_plan){writes, children}, &report);
    CHECK(report.privileges_error == 0);
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0L, 0L, 0L, 0L) == 1);
    if (report.landlock_version) {
        CHECK(report.files_error == 0 || (HELPER_THREAD && report.files_error == EBUSY));
        CHECK(report.n_writes == 2);
    } else {
        (void)printf("SKIP: Landlock: %s\n", strerror(report.files_error));
    }
    if (report.calls_error)
        (void)printf("SKIP: seccomp: %s\n", strerror(report.calls_error));
    (void)fflush(stdout);
    return report;
}

static void in_child(void **state, void (*body)(const folders *f)) {
    (void)fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        body(*state);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- files ---- */

static void write_files(const folders *f) {
    CHECK(can_create(f->outside, "old"));
    ew__sandbox_report report = enter(f, true);
    if (!report.landlock_version)
        return;
    CHECK(can_create(f->inside, "new"));
    CHECK(mkdir(path_in(f->inside, "folder"), 0700) == 0);
    CHECK(rename(path_in(f->inside, "new"), "/dev/null") != 0);
    CHECK(unlink(path_in(f->inside, "new")) == 0);
    CHECK(!can_create(f->outside, "new") && errno == EACCES);
    CHECK(!can_create(f->outside, "old") && errno == EACCES);
    CHECK(mkdir(path_in(f->outside, "folder"), 0700) != 0 && errno == EACCES);
    CHECK(unlink(path_in(f->outside, "old")) != 0 && errno == EACCES);
    if (report.landlock_version >= EW__LANDLOCK_TRUNCATE)
        CHECK(truncate(path_in(f->outside, "old"), 0) != 0 && errno == EACCES);
    CHECK(access(path_in(f->outside, "old"), R_OK) == 0);
    CHECK(open("/dev/null", O_RDWR | O_CLOEXEC) >= 0);
}

static void test_io_sandbox__files(void **state) { in_child(state, write_files); }

/* Standard output may be a log file anywhere. */
static void write_log(const folders *f) {
    int fd = open(path_in(f->outside, "log"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    (void)enter(f, true);
    CHECK(open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_CLOEXEC) >= 0);
}

static void test_io_sandbox__standard_error(void **state) { in_child(state, write_log); }

/* ---- system calls ---- */

static void *deny_in_thread(void *unused) {
    (void)unused;
    CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == -1 && errno == EPERM);
    return NULL;
}

static void deny_calls(const folders *f) {
    char *const words[] = {(char[]){"true"}, NULL};
    pthread_t thread;
    if (enter(f, false).calls_error)
        return;
    CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == -1 && errno == EPERM);
    CHECK(unshare(CLONE_NEWUSER) == -1 && errno == EPERM);
    CHECK(execv("/bin/true", words) == -1 && errno == EPERM);
    CHECK(pthread_create(&thread, NULL, deny_in_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
}

static void test_io_sandbox__calls(void **state) { in_child(state, deny_calls); }

/* ---- child processes ---- */

static int run_shell(const char *script, const char *folder) {
    pid_t child = fork();
    if (child == 0) {
        (void)execl("/bin/sh", "sh", "-c", script, "sh", folder, (char *)NULL);
        _exit(99);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void run_programs(const folders *f) {
    bool files = enter(f, true).landlock_version > 0;
    CHECK(run_shell("exit 3", "") == 3);
    CHECK(run_shell("echo x >\"$1/x\" && exit 4", f->inside) == 4);
    if (files)
        CHECK(run_shell("if (echo x >\"$1/x\") 2>/dev/null; then exit 5; else exit 6; fi", f->outside) == 6);
}

static void test_io_sandbox__programs(void **state) { in_child(state, run_programs); }

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folders, remove_folders)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_io_sandbox__files),
        TEST(test_io_sandbox__standard_error),
        TEST(test_io_sandbox__calls),
        TEST(test_io_sandbox__programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
