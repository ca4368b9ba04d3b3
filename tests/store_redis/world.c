/*
 * tests/store_redis/world.c: a server and a store on it. See world.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store_redis/world.h"
#include <stdlib.h>

world the_world;

int world_setup(void **state) {
    world *w = &the_world;
    (void)server_do(&w->s, "FLUSHALL");
    w->c.env = ew_env_default();
    ew__arena_init(&w->c.arena, w->c.env, NULL, 0);
    w->c.store = server_store(&w->s, NULL);
    *state = w;
    return 0;
}

int world_teardown(void **state) {
    world *w = *state;
    if (w->c.store != NULL)
        w->c.store->ops->free(w->c.store);
    w->c.store = NULL;
    ew__arena_done(&w->c.arena);
    return 0;
}

static int compare(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

const char *world_keys(world *w) {
    static char text[4096];
    redisReply *reply = server_do(&w->s, "KEYS *");
    const char *names[64];
    size_t n = reply->elements < 64 ? reply->elements : 64, len = 0;
    for (size_t i = 0; i < n; i++)
        names[i] = reply->element[i]->str;
    qsort(names, n, sizeof *names, compare);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        int added = snprintf(text + len, sizeof text - len, "%s ", names[i]);
        assert_true(added > 0 && (size_t)added < sizeof text - len);
        len += (size_t)added;
    }
    return text;
}

void world_expect_hash(world *w, const char *key, ...) {
    redisReply *reply = server_do(&w->s, "HGETALL %s", key);
    size_t n = 0;
    va_list args;
    va_start(args, key);
    for (const char *name; (name = va_arg(args, const char *)) != NULL; n++) {
        const char *value = va_arg(args, const char *), *found = NULL;
        for (size_t i = 0; i + 1 < reply->elements; i += 2) {
            if (strcmp(reply->element[i]->str, name) == 0)
                found = reply->element[i + 1]->str;
        }
        if (found == NULL || (strcmp(value, "*") != 0 && strcmp(found, value) != 0))
            fail_msg("%s: %s is %s, not %s", key, name, found != NULL ? found : "absent", value);
    }
    va_end(args);
    for (size_t i = 0; i + 1 < reply->elements && n != reply->elements / 2; i += 2)
        print_error("%s: %s\n", reply->element[i]->str, reply->element[i + 1]->str);
    assert_int_equal(n, reply->elements / 2);
}

void world_rrq_job(world *w, const char *id, ...) {
    long long now = (long long)contract_now(&w->c);
    va_list args;
    (void)server_do(
        &w->s,
        "HSET rrq:job:%s id %s function_name f job_params {\"a\":1} enqueue_time 2026-03-01T10:00:00.123456789+00:00 "
        "status PENDING current_retries 0 next_scheduled_run_time 2026-03-01T10:00:00.123456789+00:00 "
        "max_retries 5 job_timeout_seconds 300 result_ttl_seconds 86400 queue_name rrq:queue:q result null",
        id, id);
    (void)server_do(&w->s, "ZADD rrq:queue:q %lld.0 %s", now - 1000, id);
    va_start(args, id);
    for (const char *name; (name = va_arg(args, const char *)) != NULL;) {
        const char *value = va_arg(args, const char *);
        if (value != NULL)
            (void)server_do(&w->s, "HSET rrq:job:%s %s %s", id, name, value);
        else
            (void)server_do(&w->s, "HDEL rrq:job:%s %s", id, name);
    }
    va_end(args);
}

void world_rrq_claim(world *w, const char *id, const char *worker, const char *lock) {
    (void)server_do(&w->s, "ZREM rrq:queue:q %s", id);
    (void)server_do(&w->s, "HSET rrq:job:%s status ACTIVE start_time 2026-03-01T10:00:01+00:00 worker_id %s", id,
                    worker);
    (void)server_do(&w->s, "ZADD rrq:active:jobs:%s 1772359201 %s", worker, id);
    if (lock != NULL)
        (void)server_do(&w->s, "SET rrq:lock:job:%s %s PX 360000", id, lock);
}
