/*
 * io/sandbox.c: see sandbox.h. Landlock has neither functions in the C library nor, on older
 * systems, a complete header: its three system calls and its structs are declared here.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/sandbox.h"
#include "io/sandbox_filter.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- files ---- */

#define LANDLOCK_CREATE 444 /* the same numbers on all architectures */
#define LANDLOCK_ADD 445
#define LANDLOCK_RESTRICT 446
#define LANDLOCK_ASK_VERSION 1U
#define LANDLOCK_BENEATH 1

#define ACCESS(bit) (UINT64_C(1) << (bit))
#define WRITE_FILE ACCESS(1)
#define CHANGE_FOLDER (ACCESS(4) | ACCESS(5) | ACCESS(7) | ACCESS(8) | ACCESS(9) | ACCESS(10) | ACCESS(12))
#define MAKE_DEVICE (ACCESS(6) | ACCESS(11))
#define REFER ACCESS(13)    /* version 2: rename and link between folders */
#define TRUNCATE ACCESS(14) /* version 3 */
#define FILE_ACCESS (WRITE_FILE | TRUNCATE)

typedef struct beneath_rule {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed)) beneath_rule;

/*
 * Only writing is restricted: certificates, libraries and plug-ins may be anywhere, and file modes
 * protect the rest.
 */
static uint64_t handled_access(int version) {
    return WRITE_FILE | CHANGE_FOLDER | MAKE_DEVICE | (version >= 2 ? REFER : 0) |
           (version >= EW__LANDLOCK_TRUNCATE ? TRUNCATE : 0);
}

/*
 * Allows that access to an open file, or beneath an open folder; 0: not at all. Whether the rule
 * was added: a pipe or socket has none and needs none.
 */
static bool add_rule(int ruleset, int fd, uint64_t in_folder, uint64_t to_file) {
    struct stat file;
    if (fstat(fd, &file) != 0)
        return false;
    beneath_rule rule = {S_ISDIR(file.st_mode) ? in_folder : to_file, fd};
    return rule.allowed && syscall(LANDLOCK_ADD, ruleset, LANDLOCK_BENEATH, &rule, 0U) == 0;
}

static size_t add_rules(int ruleset, const char *const *paths, uint64_t handled) {
    size_t n = 0;
    for (; *paths; paths++) {
        int fd = open(*paths, O_PATH | O_CLOEXEC);
        if (fd >= 0) {
            n += add_rule(ruleset, fd, handled & ~MAKE_DEVICE, handled & FILE_ACCESS);
            (void)close(fd);
        }
    }
    return n;
}

/* Landlock restricts the calling thread only. False also if the threads cannot be counted. */
static bool is_only_thread(void) {
    DIR *threads = opendir("/proc/self/task");
    size_t n = 0;
    for (const struct dirent *entry; threads && (entry = readdir(threads));)
        n += entry->d_name[0] != '.';
    if (threads)
        (void)closedir(threads);
    return n == 1;
}

static int restrict_files(const ew__sandbox_plan *plan, ew__sandbox_report *report) {
    long version = syscall(LANDLOCK_CREATE, NULL, (size_t)0, LANDLOCK_ASK_VERSION);
    if (version < 1)
        return version < 0 ? errno : ENOSYS;
    uint64_t handled = handled_access((int)version);
    int ruleset = (int)syscall(LANDLOCK_CREATE, &handled, sizeof handled, 0U);
    if (ruleset < 0)
        return errno;
    report->n_writes = add_rules(ruleset, plan->writes, handled);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        (void)add_rule(ruleset, fd, 0, handled & FILE_ACCESS);
    int error = syscall(LANDLOCK_RESTRICT, ruleset, 0U) == 0 ? 0 : errno;
    (void)close(ruleset);
    report->landlock_version = error ? 0 : (int)version;
    return error || is_only_thread() ? error : EBUSY;
}

/* ---- system calls ---- */

static int restrict_calls(bool children) {
    struct sock_filter code[EW__SANDBOX_FILTER_MAX];
    struct sock_fprog program = {.len = (unsigned short)ew__sandbox_filter(children, code), .filter = code};
    if (program.len == 0)
        return ENOSYS;
    long other = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    return other == 0 ? 0 : other > 0 ? EBUSY : errno; /* above 0: a thread with a filter of its own */
}

void ew__sandbox_enter(const ew__sandbox_plan *plan, ew__sandbox_report *report) {
    memset(report, 0, sizeof *report);
    report->privileges_error = prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0 ? 0 : errno;
    report->files_error = restrict_files(plan, report);
    report->calls_error = restrict_calls(plan->children);
}
