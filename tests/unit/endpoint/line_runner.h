/*
 * tests/unit/endpoint/line_runner.h: the program that the tests of pools start: the test itself, with --runner MODE. It
 * listens where --tcp-socket says (the last one), or on a port that it then says itself, or speaks on its standard input
 * and output ("stdio"), and answers "run N KEY" by "ok N TEXT". "aside TEXT" is printed.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_ENDPOINT_LINE_RUNNER_H
#define EW_TESTS_ENDPOINT_LINE_RUNNER_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RUNNER_CONNS 16

typedef struct line_runner {
    struct pollfd fds[1 + RUNNER_CONNS]; /* the first one listens; -1 where there is none */
    char line[1 + RUNNER_CONNS][512];
    size_t n[1 + RUNNER_CONNS];
    const char *socket; /* NULL: it was not told */
    bool rude;
    bool stdio; /* the first connection is standard input, and answers go to standard output */
} line_runner;

/* A process that does not hear SIGTERM, and has what this one has. */
static inline void runner_fork(void) {
    (void)signal(SIGTERM, SIG_IGN); /* before there is anybody who could be signalled */
    pid_t pid = fork();
    if (pid == 0)
        (void)alarm(100); /* it is not inherited */
    while (pid == 0)
        (void)pause();
    (void)signal(SIGTERM, SIG_DFL);
    (void)printf("child %ld\n", (long)pid);
}

/* Leaves a child in the process group for 300 ms, which delays the end of the whole group. */
static inline void runner_leave_child(void) {
    (void)signal(SIGTERM, SIG_IGN);
    if (fork() == 0) {
        (void)usleep(300 * 1000);
        _exit(0);
    }
}

static inline void runner_drop(line_runner *r, int i) {
    close(r->fds[i].fd);
    r->fds[i].fd = -1;
    r->n[i] = 0;
}

static inline void runner_answer(line_runner *r, int i, unsigned number, const char *text) {
    char line[400];
    int n = snprintf(line, sizeof line, "ok %u %s\n", number, text);
    if (write(r->stdio ? 1 : r->fds[i].fd, line, (size_t)n) != n)
        runner_drop(r, i);
}

static inline void runner_run(line_runner *r, int i, unsigned number, const char *key) {
    char text[300];
    const char *var = getenv("RRQ_RUNNER_TCP_SOCKET");
    (void)snprintf(text, sizeof text, "%ld", (long)getpid());
    if (strcmp(key, "socket") == 0)
        (void)snprintf(text, sizeof text, "%s %s", r->socket ? r->socket : "-", var ? var : "-");
    if (strcmp(key, "mute") == 0 || strcmp(key, "stuck") == 0)
        return;
    if (strcmp(key, "exit") == 0)
        _exit(4);
    if (strcmp(key, "print") == 0)
        (void)printf("{\"port\":1} again\n{\"port\":2}\n");
    if (strcmp(key, "shut") == 0) { /* says no more, and lives on */
        (void)close(1);
        return;
    }
    if (strcmp(key, "last") == 0) { /* the same, and ends a moment later */
        (void)close(1);
        (void)usleep(50 * 1000);
        _exit(5);
    }
    if (strcmp(key, "dying") ==
        0) { /* it is in its end: connections are gone, new ones get no further than the kernel */
        runner_drop(r, i);
        (void)usleep(400 * 1000);
        _exit(4);
    }
    if (strcmp(key, "heir") == 0) {
        runner_fork();
        _exit(5);
    }
    if (strcmp(key, "hangup") == 0 || strcmp(key, "deaf") == 0) {
        runner_drop(r, i);
        if (strcmp(key, "deaf") == 0)
            runner_drop(r, 0);
        return;
    }
    runner_answer(r, i, number, text);
    if (strcmp(key, "bye") == 0)
        _exit(0);
}

static inline void runner_line(line_runner *r, int i, const char *line) {
    unsigned number = 0;
    char key[100] = "";
    if (strncmp(line, "aside ", 6) == 0)
        (void)printf("%s\n", line);
    else if (sscanf(line, "run %u %99s", &number, key) == 2)
        runner_run(r, i, number, key);
}

static inline void runner_read(line_runner *r, int i) {
    char bytes[512];
    ssize_t got = read(r->fds[i].fd, bytes, sizeof bytes);
    if (got <= 0)
        runner_drop(r, i);
    for (ssize_t at = 0; at < got && r->fds[i].fd >= 0; at++) {
        r->line[i][r->n[i]++] = bytes[at];
        if (bytes[at] != '\n')
            continue;
        r->line[i][r->n[i] - 1] = '\0';
        r->n[i] = 0;
        runner_line(r, i, r->line[i]);
    }
}

static inline void runner_accept(line_runner *r) {
    int fd = accept(r->fds[0].fd, NULL, NULL);
    for (int i = 1; i <= RUNNER_CONNS && !r->rude; i++) {
        if (r->fds[i].fd >= 0)
            continue;
        r->fds[i] = (struct pollfd){.fd = fd, .events = POLLIN};
        return;
    }
    close(fd);
}

/* Bound; the port is chosen if nobody has said which. */
static inline int runner_bind(const char *text, unsigned *ret_port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    name.sin_port = htons((uint16_t)(text ? strtoul(strrchr(text, ':') + 1, NULL, 10) : 0));
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&name, sizeof name) != 0 || getsockname(fd, (struct sockaddr *)&name, &size) != 0)
        _exit(98);
    *ret_port = ntohs(name.sin_port);
    return fd;
}

static inline void runner_announce(const char *mode, unsigned port) {
    if (strcmp(mode, "noisy") == 0) {
        (void)fprintf(stderr, "{\"port\":1}\n"); /* that is not where it says so */
        (void)printf("hello\n\n[1]\n{\"port\":0}\n{\"port\":-1}\n{\"port\":65537}\n{\"port\":1.5}\n{\"port\":\"1\"}\n");
        (void)printf("{\"ports\":1}\n{\"port\":1\n {\"port\":1}x\n{\"port\":1}}\n");
        for (int i = 0; i < 3000; i++)
            (void)putchar('x');
        (void)printf("\n{\"event\":\"listening\",\"more\":{\"port\":1},\"port\":%u}\r\n", port);
        return;
    }
    (void)printf("{\"port\": %u}\n", port);
    if (strcmp(mode, "door") == 0) /* it says so, and does it later */
        (void)usleep(400 * 1000);
    while (strcmp(mode, "lies") == 0)
        (void)pause();
    if (strcmp(mode, "coward") == 0)
        _exit(6);
}

static inline int runner_listen(const line_runner *r, const char *mode) {
    unsigned port = 0;
    int fd = runner_bind(r->socket, &port);
    if (!r->socket)
        runner_announce(mode, port);
    if (listen(fd, 16) != 0)
        _exit(97);
    if (r->socket)
        (void)printf("listens on %s\n", r->socket);
    return fd;
}

/* What it does before it listens. */
static inline void runner_begin(line_runner *r, const char *mode) {
    if (strcmp(mode, "crash") == 0 || strcmp(mode, "stdio-crash") == 0)
        _exit(7);
    const char *flaky = strncmp(mode, "flaky", 5) == 0 ? strchr(mode, ':') : NULL;
    if (flaky && open(flaky + 1, O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0) { /* only the first start fails */
        if (strncmp(mode, "flaky-child:", 12) == 0)
            runner_leave_child();
        _exit(3);
    }
    if (strcmp(mode, "slow") == 0)
        (void)usleep(400 * 1000);
    if (strcmp(mode, "stubborn") == 0)
        (void)signal(SIGTERM, SIG_IGN);
    if (strcmp(mode, "parent") == 0)
        runner_fork();
    while (strcmp(mode, "silent") == 0)
        (void)pause();
    r->rude = strcmp(mode, "rude") == 0;
}

static inline _Noreturn void line_runner_main(int argc, char **argv) {
    static line_runner r;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)alarm(100); /* whatever goes wrong, it does not stay for ever */
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--tcp-socket") == 0)
            r.socket = argv[i + 1];
    runner_begin(&r, argv[2]);
    for (int i = 1; i <= RUNNER_CONNS; i++)
        r.fds[i].fd = -1;
    r.stdio = strncmp(argv[2], "stdio", 5) == 0;
    if (r.stdio) {
        r.fds[0].fd = -1;
        r.fds[1] = (struct pollfd){.fd = 0, .events = POLLIN};
    } else {
        r.fds[0] = (struct pollfd){.fd = runner_listen(&r, argv[2]), .events = POLLIN};
    }
    for (;;) {
        (void)poll(r.fds, 1 + RUNNER_CONNS, -1);
        if (r.fds[0].fd >= 0 && r.fds[0].revents)
            runner_accept(&r);
        for (int i = 1; i <= RUNNER_CONNS; i++)
            if (r.fds[i].fd >= 0 && r.fds[i].revents)
                runner_read(&r, i);
        if (r.stdio && r.fds[1].fd < 0)
            _exit(0);
    }
}

#endif
