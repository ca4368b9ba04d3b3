/*
 * tests/store_redis/server.h: a redis-server of the test's own, in a folder that goes with it, and words for asking it
 * behind the store's back. It dies with the test program.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_STORE_REDIS_SERVER_H
#define EW_TESTS_STORE_REDIS_SERVER_H

#include "jobs/store.h"
#include "store/jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/types.h>

#include <cmocka.h>

#include <hiredis/hiredis.h>

#define SERVER_ARGS 24

typedef struct server {
    pid_t pid;
    int port;
    char folder[64];
    char url[128];
    char unix_url[128];
    const char *args[SERVER_ARGS]; /* besides the usual ones; NULL-ended */
    redisContext *control;
} server;

/* Whether there is a redis-server on this machine; says "SKIP: no redis-server" if not. */
bool server_exists(void);
/* Starts one; args: further options, NULL-ended, may be NULL. Ends the test program when that is not possible. */
void server_start(server *s, const char *const *args);
void server_kill(server *s);  /* by SIGKILL, and waits */
void server_again(server *s); /* starts it again with the same folder, port and options */
void server_stop(server *s);  /* kills it, if it runs, and removes its folder */

/* Any command; the reply lives until the next one. */
redisReply *server_do(server *s, const char *format, ...);
long long server_int(server *s, const char *format, ...);
/* A text, "" for nil; lives until the next one. */
const char *server_text(server *s, const char *format, ...);

/* A store on it, with its thread; NULL env: the usual one. Fails the test if that is not possible. */
ew__store *server_store(server *s, const ew_env *env);

#endif
