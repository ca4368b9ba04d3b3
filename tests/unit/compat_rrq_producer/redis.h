/*
 * tests/unit/compat_rrq_producer/redis.h: a Redis server of the test's own, on a free port of this machine.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_PRODUCER_REDIS_H
#define EW_TESTS_PRODUCER_REDIS_H

#include "support/port.h"
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct redis_server {
    pid_t pid;
    int port;
    char folder[64];
    char dsn[64];
    redisContext *context;
} redis_server;

/* Whether it is there; false: there is no redis-server. */
static inline bool redis_start(redis_server *server) {
    char port[16];
    memset(server, 0, sizeof *server);
    strncpy(server->folder, "/tmp/ew-producer-XXXXXX", sizeof server->folder - 1);
    if (mkdtemp(server->folder) == NULL)
        return false;
    server->port = free_port();
    snprintf(port, sizeof port, "%d", server->port);
    snprintf(server->dsn, sizeof server->dsn, "redis://127.0.0.1:%d/0", server->port);
    server->pid = fork();
    if (server->pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        execlp("redis-server", "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly",
               "no", "--dir", server->folder, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 200; i++) {
        struct timeval second = {1, 0};
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid)
            break;
        server->context = redisConnectWithTimeout("127.0.0.1", server->port, second);
        if (server->context != NULL && server->context->err == 0)
            return true;
        redisFree(server->context);
        server->context = NULL;
        usleep(50000);
    }
    server->pid = 0;
    rmdir(server->folder);
    return false;
}

static inline void redis_stop(redis_server *server) {
    if (server->context != NULL)
        redisFree(server->context);
    if (server->pid > 0) {
        kill(server->pid, SIGTERM);
        waitpid(server->pid, NULL, 0);
        rmdir(server->folder);
    }
}

#endif
