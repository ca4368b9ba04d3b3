/*
 * tests/unit/compat_rrq_producer/rig.h: librrq_producer.so, loaded as RRQ's clients load it, with a Redis server; and short words for
 * what the tests do with both.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_PRODUCER_RIG_H
#define EW_TESTS_PRODUCER_RIG_H

#include "base/util.h"
#include "unit/compat_rrq_producer/redis.h"
#include "support/json_or.h"
#include <everywire/json.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dlfcn.h>

typedef struct library {
    void *object;
    void *(*new)(const char *, char **);
    void *(*new_from_toml)(const char *, char **);
    void (*free)(void *);
    char *(*version)(void);
    char *(*constants)(char **);
    char *(*config_from_toml)(const char *, char **);
    char *(*enqueue)(void *, const char *, char **);
    char *(*get_job_status)(void *, const char *, char **);
    char *(*wait_for_completion)(void *, const char *, char **);
    void (*string_free)(char *);
} library;

static library lib;
static redis_server server;

#define LOAD(member, name)                                                                                             \
    do {                                                                                                               \
        *(void **)&lib.member = dlsym(lib.object, name);                                                               \
        assert_non_null(lib.member);                                                                                   \
    } while (0)

static inline int group_setup(void **state) {
    (void)state;
    const char *path = getenv("EW_PRODUCER");
    if (path == NULL || (lib.object = dlopen(path, RTLD_NOW | RTLD_LOCAL)) == NULL) {
        print_message("EW_PRODUCER names no library: %s\n", path == NULL ? "not set" : dlerror());
        return -1;
    }
    LOAD(new, "rrq_producer_new");
    LOAD(new_from_toml, "rrq_producer_new_from_toml");
    LOAD(free, "rrq_producer_free");
    LOAD(version, "rrq_producer_version");
    LOAD(constants, "rrq_producer_constants");
    LOAD(config_from_toml, "rrq_producer_config_from_toml");
    LOAD(enqueue, "rrq_producer_enqueue");
    LOAD(get_job_status, "rrq_producer_get_job_status");
    LOAD(wait_for_completion, "rrq_producer_wait_for_completion");
    LOAD(string_free, "rrq_string_free");
    if (!redis_start(&server))
        print_message("SKIP: no redis-server\n");
    return 0;
}

static inline int group_teardown(void **state) {
    (void)state;
    redis_stop(&server);
    return 0; /* the object stays loaded: a leak report without its names says nothing */
}

static inline void need_redis(void) {
    if (server.pid == 0)
        skip();
    freeReplyObject(redisCommand(server.context, "FLUSHALL"));
}

/* ---- words ---- */

/* The text is the library's; the copy is a static one, good until the next but three. */
static inline const char *taken(char *text) {
    static char copies[4][4096];
    static int next;
    if (text == NULL)
        return NULL;
    char *copy = copies[next++ % 4];
    snprintf(copy, sizeof copies[0], "%s", text);
    lib.string_free(text);
    return copy;
}

static inline void expect_text(const char *got, const char *wanted) {
    assert_non_null(got);
    assert_string_equal(got, wanted);
}

/* A text that begins with it. */
static inline void expect_words(const char *got, const char *words) {
    assert_non_null(got);
    if (strncmp(got, words, strlen(words)) != 0)
        fail_msg("'%s' does not begin with '%s'", got, words);
}

static inline void *open_with(const char *more) {
    char config[512], *error = NULL;
    snprintf(config, sizeof config, "{\"redis_dsn\":\"%s\"%s%s}", server.dsn, more[0] != '\0' ? "," : "", more);
    void *handle = lib.new(config, &error);
    if (handle == NULL)
        fail_msg("%s: %s", config, taken(error));
    assert_null(error);
    return handle;
}

static inline void refused(const char *config, const char *words) {
    char *error = NULL;
    assert_null(lib.new(config, &error));
    expect_words(taken(error), words);
    assert_null(lib.new(config, NULL));
}

/* The id of the new job, or NULL and the error. */
static inline const char *enqueue(void *handle, const char *request) {
    char *error = NULL;
    const char *answer = taken(lib.enqueue(handle, request, &error));
    if (answer == NULL)
        fail_msg("%s: %s", request, taken(error));
    assert_null(error);
    static char ids[4][64];
    static int next;
    char *id = ids[next++ % 4];
    ew_str text = json_str_or(ew_str_from(answer), "/job_id", EW_STR(""));
    assert_true(ew_str_eq(json_str_or(ew_str_from(answer), "/status", EW_STR("")), EW_STR("enqueued")));
    assert_true(text.len > 0 && text.len < sizeof ids[0]);
    snprintf(id, sizeof ids[0], "%.*s", (int)text.len, text.ptr);
    return id;
}

static inline void not_enqueued(void *handle, const char *request, const char *words) {
    char *error = NULL;
    assert_null(lib.enqueue(handle, request, &error));
    expect_words(taken(error), words);
}

/* What a command of Redis says as text; "" for nothing. */
static inline const char *ask(const char *format, ...) {
    static char texts[4][512];
    static int next;
    char *text = texts[next++ % 4];
    va_list args;
    va_start(args, format);
    redisReply *reply = redisvCommand(server.context, format, args);
    va_end(args);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_INTEGER)
        snprintf(text, sizeof texts[0], "%lld", reply->integer);
    else
        snprintf(text, sizeof texts[0], "%s", reply->str != NULL ? reply->str : "");
    freeReplyObject(reply);
    return text;
}

static inline const char *field(const char *id, const char *name) { return ask("HGET rrq:job:%s %s", id, name); }

#endif
