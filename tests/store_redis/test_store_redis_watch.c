/*
 * tests/store_redis/test_store_redis_watch.c: hints of what others do: by tracking, by notifications, by looking; and
 * what the store says of its server.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/thread.h"
#include "store_redis/world.h"

#define WAIT_MS 20000

typedef struct witness {
    ew__watcher watcher;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    unsigned seen;
} witness;

static void on_change(ew__watcher *watcher, unsigned what) {
    witness *self = watcher->ud;
    pthread_mutex_lock(&self->lock);
    self->seen |= what;
    pthread_cond_signal(&self->cond);
    pthread_mutex_unlock(&self->lock);
}

static void forget(witness *self) {
    pthread_mutex_lock(&self->lock);
    self->seen = 0;
    pthread_mutex_unlock(&self->lock);
}

static bool wait_for(witness *self, unsigned what) {
    struct timespec until = ew__cond_until(WAIT_MS);
    pthread_mutex_lock(&self->lock);
    while ((self->seen & what) != what && pthread_cond_timedwait(&self->cond, &self->lock, &until) == 0) {
    }
    bool came = (self->seen & what) == what;
    pthread_mutex_unlock(&self->lock);
    return came;
}

/* Watches, and waits for the hints that come with the beginning. */
static void begin(world *w, witness *self, unsigned want) {
    memset(self, 0, sizeof *self);
    pthread_mutex_init(&self->lock, NULL);
    ew__cond_init(&self->cond);
    self->watcher = (ew__watcher){.want = want, .changed = on_change, .ud = self};
    w->c.store->ops->watch(w->c.store, &self->watcher, true);
    assert_true(wait_for(self, want & ~(unsigned)EW__CHANGED_BACK));
    forget(self);
}

static void end(world *w, witness *self) { w->c.store->ops->watch(w->c.store, &self->watcher, false); }

static bool client_list_has(world *w, const char *text) {
    return strstr(server_text(&w->s, "CLIENT LIST"), text) != NULL;
}

static void sleep_ms(world *w, uint64_t ms) { contract_sleep(&w->c, ms); }

static void expect_hints(world *w, witness *who) {
    (void)server_do(&w->s, "ZINCRBY rrq:queue:any 1 x");
    assert_true(wait_for(who, EW__CHANGED_QUEUES));
    forget(who);
    (void)server_do(&w->s, "XADD rrq:events:job:x * event completed");
    assert_true(wait_for(who, EW__CHANGED_JOBS));
    forget(who);
    (void)server_do(&w->s, "XADD ew:chunks:x * chunk 1");
    assert_true(wait_for(who, EW__CHANGED_JOBS));
    forget(who);
    (void)server_do(&w->s, "SET ew:cancel x");
    assert_true(wait_for(who, EW__CHANGED_CANCELS));
    forget(who);
    (void)server_do(&w->s, "SREM ew:paused q");
    (void)server_do(&w->s, "SADD ew:paused q");
    assert_true(wait_for(who, EW__CHANGED_QUEUES));
}

#define ALL (EW__CHANGED_QUEUES | EW__CHANGED_JOBS | EW__CHANGED_CANCELS)

static void test_watch__tracking(void **state) {
    world *w = *state;
    witness who;
    assert_false(client_list_has(w, "sub=1")); /* nobody wants to know: nobody is asked */
    begin(w, &who, ALL);
    assert_true(client_list_has(w, "sub=1"));
    assert_true(client_list_has(w, "flags=PtB") || client_list_has(w, "flags=PBt")); /* not by looking all the time */
    expect_hints(w, &who);
    forget(&who);
    (void)server_do(&w->s, "FLUSHALL");
    assert_true(wait_for(&who, ALL));
    end(w, &who);
    for (int i = 0; client_list_has(w, "sub=1") && i < 1000; i++)
        sleep_ms(w, 10);
    assert_false(client_list_has(w, "sub=1"));
}

/* Only what is wanted is told; what is none of ours is not. */
static void test_watch__only_what_is_wanted(void **state) {
    world *w = *state;
    witness who;
    begin(w, &who, EW__CHANGED_CANCELS);
    (void)server_do(&w->s, "ZINCRBY rrq:queue:any 1 x");
    (void)server_do(&w->s, "SET ew:cance x");
    (void)server_do(&w->s, "SET other x");
    sleep_ms(w, 100);
    assert_int_equal(who.seen, 0);
    (void)server_do(&w->s, "SET ew:cancel x");
    assert_true(wait_for(&who, EW__CHANGED_CANCELS));
    end(w, &who);
}

/* A watcher that was cut off is told that it may have missed something, and then hears again. */
static void test_watch__is_made_again(void **state) {
    world *w = *state;
    witness who;
    begin(w, &who, ALL);
    for (int i = 0; i < 3; i++) {
        (void)server_do(&w->s, "CLIENT KILL TYPE pubsub");
        assert_true(wait_for(&who, ALL));
        for (int k = 0; !client_list_has(w, "sub=1") && k < 1000; k++)
            sleep_ms(w, 10);
        sleep_ms(w, 50);
        forget(&who);
        expect_hints(w, &who);
        forget(&who);
    }
    end(w, &who);
}

static void test_watch__back_again(void **state) {
    world *w = *state;
    witness who;
    begin(w, &who, ALL | EW__CHANGED_BACK);
    server_kill(&w->s);
    ew__store_request *op = contract_op(&w->c, EW__OP_GET);
    op->u.get.id = S("x");
    assert_int_equal(contract_do(&w->c, op), EW_ECONNECT);
    assert_non_null(strstr(op->problem, "redis at 127.0.0.1"));
    sleep_ms(w, 300);
    forget(&who);
    server_again(&w->s);
    assert_true(wait_for(&who, ALL | EW__CHANGED_BACK)); /* without anybody asking */
    forget(&who);
    assert_int_equal(contract_get_err(&w->c, "x"), EW_ENOTFOUND);
    for (int k = 0; !client_list_has(w, "sub=1") && k < 1000; k++)
        sleep_ms(w, 10);
    expect_hints(w, &who);
    end(w, &who);
}

/* ---- servers that cannot tell ---- */

static void on_old_server(const char *events, const char *expected) {
    world w;
    witness who;
    const char *const args[] = {"--rename-command", "CLIENT", "", "--notify-keyspace-events", events, NULL};
    void *state = &w;
    memset(&w, 0, sizeof w);
    server_start(&w.s, args);
    w.c.env = ew_env_default();
    ew__arena_init(&w.c.arena, w.c.env, NULL, 0);
    w.c.store = server_store(&w.s, NULL);
    begin(&w, &who, ALL);
    long long patterns = server_int(&w.s, "PUBSUB NUMPAT");
    assert_int_equal(patterns, expected != NULL ? 5 : 0);
    expect_hints(&w, &who);
    end(&w, &who);
    assert_int_equal(world_teardown(&state), 0);
    server_stop(&w.s);
}

static void test_watch__notifications(void **state) {
    (void)state;
    on_old_server("KA", "__keyspace@0__:rrq:queue:*");
    on_old_server("Kzst$", "__keyspace@0__:rrq:queue:*");
}

static void test_watch__looks_by_itself(void **state) {
    (void)state;
    on_old_server("", NULL);
    on_old_server("Ez", NULL);
    on_old_server("Kz", NULL); /* not all that is wanted */
}

/* ---- what people should know ---- */

static void expect_notice(world *w, const char *part) {
    ew__store *store = server_store(&w->s, NULL);
    const char *notice = store->ops->notice(store);
    if (part == NULL ? notice[0] != '\0' : strstr(notice, part) == NULL)
        fail_msg("\"%s\", not \"%s\"", notice, part != NULL ? part : "");
    if (part != NULL)
        assert_non_null(strstr(notice, " at 127.0.0.1:"));
    store->ops->free(store);
}

static void test_watch__notice(void **state) {
    world *w = *state;
    expect_notice(w, "appendonly is no, and nothing is saved: when Redis ends, all jobs are lost");
    (void)server_do(&w->s, "CONFIG SET save %s", "3600 1");
    expect_notice(w, "appendonly is no: a crash of Redis can lose jobs acknowledged since its last snapshot");
    (void)server_do(&w->s, "CONFIG SET appendonly yes");
    (void)server_do(&w->s, "CONFIG SET appendfsync everysec");
    expect_notice(w, "appendfsync is everysec: a crash of Redis can lose jobs acknowledged within the last second");
    (void)server_do(&w->s, "CONFIG SET appendfsync no");
    expect_notice(w, "appendfsync is no");
    (void)server_do(&w->s, "CONFIG SET maxmemory-policy allkeys-lru");
    expect_notice(w, "; maxmemory-policy is allkeys-lru: it may drop jobs when memory is short");
    (void)server_do(&w->s, "CONFIG SET appendfsync always");
    expect_notice(w, ": maxmemory-policy is allkeys-lru");
    (void)server_do(&w->s, "CONFIG SET maxmemory-policy noeviction");
    expect_notice(w, NULL);
    (void)server_do(&w->s, "CONFIG SET appendonly no");
    (void)server_do(&w->s, "CONFIG SET save %s", "");
}

static void test_watch__notice_of_one_that_does_not_tell(void **state) {
    static const char *const quiet[] = {"--rename-command", "CONFIG", "", "--appendonly", "yes", NULL};
    static const char *const mute[] = {"--rename-command", "CONFIG", "", "--rename-command", "INFO", "", NULL};
    world w;
    (void)state;
    memset(&w, 0, sizeof w);
    server_start(&w.s, quiet);
    expect_notice(&w, "is not known: it does not tell its appendfsync");
    server_stop(&w.s);
    server_start(&w.s, mute);
    expect_notice(&w, "is not known: it does not tell its configuration");
    server_stop(&w.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_watch__tracking, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_watch__only_what_is_wanted, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_watch__is_made_again, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_watch__back_again, world_setup, world_teardown),
        cmocka_unit_test(test_watch__notifications),
        cmocka_unit_test(test_watch__looks_by_itself),
        cmocka_unit_test_setup_teardown(test_watch__notice, world_setup, world_teardown),
        cmocka_unit_test(test_watch__notice_of_one_that_does_not_tell),
    };
    if (!server_exists())
        return 0;
    server_start(&the_world.s, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    server_stop(&the_world.s);
    return failed;
}
