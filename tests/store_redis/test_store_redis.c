/*
 * tests/store_redis/test_store_redis.c: the suite of all stores, on a Redis server.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/contract.h"
#include "store_redis/server.h"

static ew__store *open_store(contract *c, bool fresh) {
    server *s = c->ud;
    if (fresh)
        (void)server_do(s, "FLUSHALL");
    return server_store(s, c->env);
}

static void close_store(contract *c, ew__store *store) {
    (void)c;
    store->ops->free(store);
}

int main(void) {
    server s;
    if (!server_exists())
        return 0;
    server_start(&s, NULL);
    contract c = {.name = "redis",
                  .env = ew_env_default(),
                  .open = open_store,
                  .close = close_store,
                  .ttl_ms = 500,
                  .kept = true,
                  .shared = true,
                  .threads = true,
                  .checks = true,
                  .ud = &s};
    int failed = contract_run(&c);
    server_stop(&s);
    return failed;
}
