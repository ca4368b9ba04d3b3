/*
 * tests/package/test_fortify.c: a hardened build ends a process that writes past a buffer. Level 2 of
 * _FORTIFY_SOURCE knows the size of the fixed buffer only, level 3 also that of the allocated one.
 * Exit code 0: passed, or this build is not hardened (standard output says so).
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile size_t room = 16; /* volatile: the compiler must not know it */
static volatile char kept;        /* read from the buffers, so that the writes are not removed */

static void overflow_fixed(size_t n) {
    char buffer[16];
    memset(buffer, 'x', n);
    kept = buffer[n / 2];
}

static void overflow_allocated(size_t n) {
    size_t size = room;
    char *buffer = malloc(size);
    if (buffer) {
        memset(buffer, 'x', n);
        kept = buffer[n / 2];
        free(buffer);
    }
}

/* Runs the function in a child. Returns the signal that ended the child, 0 if it returned. */
static int signal_of(void (*function)(size_t n), size_t n) {
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        (void)dup2(null, STDERR_FILENO); /* glibc prints "*** buffer overflow detected ***" there */
        function(n);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("test_fortify");
        exit(EXIT_FAILURE);
    }
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static int check(const char *name, void (*function)(size_t n)) {
    int within = signal_of(function, room), past = signal_of(function, room + 1);
    printf("%s: signal %d within the buffer, %d past it\n", name, within, past);
    return within == 0 && past == SIGABRT;
}

int main(void) {
#if !defined(__USE_FORTIFY_LEVEL) || __USE_FORTIFY_LEVEL < 2
    (void)check;
    (void)overflow_fixed;
    (void)overflow_allocated;
    puts("SKIP: this build is not hardened");
    return EXIT_SUCCESS;
#else
    int ok = check("fixed size", overflow_fixed);
#if __USE_FORTIFY_LEVEL >= 3
    ok = check("allocated", overflow_allocated) && ok;
#else
    puts("SKIP: this compiler or C library lacks _FORTIFY_SOURCE=3");
#endif
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
#endif
}
