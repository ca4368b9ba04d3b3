/*
 * api/client.c: clients: a target, a loop, a pool of connections. Requests are in request.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/client.h"
#include "base/thread.h"

static void *thread_main(void *arg) {
    ew_client *client = arg;
    ew__loop_run(&client->loop);
    return NULL;
}

static void on_loop_closed(ew__loop *loop, void *ud) {
    ew_client *client = ud;
    (void)loop;
    client->loop_closed = true;
}

static void discard(ew_client *client) {
    ew__pool_done(&client->pool);
    ew__loop_done(&client->loop);
    ew__free(client->env, client, sizeof *client);
}

static void close_and_discard(ew_client *client) {
    ew__loop_close(&client->loop, on_loop_closed, client);
    while (!client->loop_closed)
        (void)uv_run(client->loop.uv, UV_RUN_NOWAIT);
    discard(client);
}

ew_err ew_client_new(const char *target, const ew_client_options *options, ew_client **ret_client,
                     const char **ret_problem) {
    const ew_env *env = options && options->env ? options->env : ew_env_default();
    ew_client *client = ew__zalloc(env, sizeof *client);
    if (!client)
        return EW_ENOMEM;
    client->env = env;
    if (options)
        client->limits = options->limits;
    ew_limits_complete(&client->limits);
    client->host = options && options->loop;
    ew_err err = ew__target_parse(target, &client->target, ret_problem);
    if (err == EW_OK)
        err = ew__loop_init(&client->loop, env, &client->limits, options ? options->loop : NULL);
    if (err != EW_OK) {
        ew__free(env, client, sizeof *client);
        return err;
    }
    ew__site site = {.port = client->target.port,
                     .authority = ew_str_from(client->target.authority),
                     .path = ew_str_from(client->target.path)};
    ew__pool_init(&client->pool, &client->loop, client->target.wire, &site, client->target.host, client->target.port);
    client->pool.ud = client;
    if (client->host) {
        ew__loop_adopt_thread(&client->loop);
    } else if (!ew__thread_start(&client->thread, thread_main, client)) {
        close_and_discard(client);
        return EW_EIO;
    }
    *ret_client = client;
    return EW_OK;
}

static void on_pool_closed(ew__pool *pool) {
    ew_client *client = pool->ud;
    ew__loop_close(&client->loop, on_loop_closed, client);
}

static void close_task(ew__task *task) {
    ew_client *client = ew__container_of(task, ew_client, close_task);
    ew__pool_close(&client->pool, on_pool_closed);
}

ew_client *ew_client_free(ew_client *client) {
    if (!client)
        return NULL;
    atomic_store(&client->closing, true);
    client->close_task.fn = close_task;
    client->loop.home.ops->post(&client->loop.home, &client->close_task);
    if (client->host) {
        while (!client->loop_closed) /* on the host's thread, not in a callback: its loop is ours to turn */
            (void)uv_run(client->loop.uv, UV_RUN_ONCE);
    } else {
        pthread_join(client->thread, NULL);
    }
    discard(client);
    return NULL;
}
