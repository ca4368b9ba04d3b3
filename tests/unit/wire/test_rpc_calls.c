/*
 * tests/unit/wire/test_rpc_calls.c: the calls of one connection: how they are found again, when no more are taken, and
 * for how long one may be silent. In ids ' stands for ".
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/rpc_calls_world.h"

/* ---- which there are ---- */

static void test_wire_rpc_calls__lists(void **state) {
    (void)state;
    peer p;
    start(&p);
    party *a = add_with(&p, 'a', false, "1", 5), *b = add_with(&p, 'b', false, "2", 70);
    party *c = add_with(&p, 'c', false, "3", 900), *d = add_sent(&p, 'd');
    assert_ptr_equal(ew__rpc_list_of(&a->base), &p.all.served);
    assert_ptr_equal(ew__rpc_list_of(&d->base), &p.all.sent);
    assert_int_equal(p.all.served.n, 3);
    assert_int_equal(p.all.sent.n, 1);
    assert_ptr_equal(p.all.sent.first, &d->base);
    assert_ptr_equal(p.all.served.first, &c->base);
    assert_int_equal(p.all.served_bytes, 975);
    end(b);
    assert_int_equal(p.all.served.n, 2);
    assert_int_equal(p.all.served_bytes, 905);
    assert_ptr_equal(c->base.next, &a->base);
    assert_ptr_equal(a->base.prev, &c->base);
    end(c);
    assert_ptr_equal(p.all.served.first, &a->base);
    assert_int_equal(p.all.served_bytes, 5);
    end(d);
    assert_int_equal(p.all.sent.n, 0);
    assert_int_equal(p.all.served.n, 1);
    check_told(&p, ""); /* nobody was blocked: there is nothing to resume */
    ew__rpc_late(&p.all);
    ew__rpc_late(&p.all);
    assert_int_equal(atomic_load(&p.w.executor.calls->dropped), 2);
    finish(&p);
}

static ew__rpc_call *find(const ew__rpc_list *list, const char *id) {
    char raw[1000];
    assert_true(strlen(id) < sizeof raw);
    for (size_t i = 0; i <= strlen(id); i++)
        raw[i] = id[i] == '\'' ? '"' : id[i];
    return ew__rpc_call_find(list, ew_str_from(raw));
}

static void test_wire_rpc_calls__find(void **state) {
    (void)state;
    static const char *const ids[] = {"1", "'1'", "'ab'", "1.0", "'x\\u0079z'", "''", "-0", "'\\u0000'"};
    enum { N = sizeof ids / sizeof *ids };
    peer p;
    party *one[N];
    start(&p);
    assert_null(find(&p.all.served, "1")); /* before there is a table */
    for (size_t i = 0; i < N; i++) {
        one[i] = add_with(&p, (char)('a' + i), false, ids[i], 0);
        assert_null(find(&p.all.served, ids[i])); /* it is not to be found before it is said to be */
        assert_int_equal(ew__rpc_call_index(&one[i]->base), EW_OK);
    }
    for (size_t i = 0; i < N; i++) {
        assert_ptr_equal(find(&p.all.served, ids[i]), &one[i]->base);
        assert_null(find(&p.all.sent, ids[i]));
    }
    assert_ptr_equal(find(&p.all.served, "'\\u0061b'"), &one[2]->base); /* another spelling of a plain one */
    assert_ptr_equal(find(&p.all.served, "'xyz'"), &one[4]->base);      /* ... and of an escaped one */
    assert_ptr_equal(find(&p.all.served, "'\\u0078y\\u007a'"), &one[4]->base);
    assert_true(ew__call_owns(one[4]->base.call, one[4]->base.key));
    assert_null(find(&p.all.served, "2"));
    assert_null(find(&p.all.served, "1.00"));
    for (size_t i = 0; i < N; i += 2)
        end(one[i]);
    for (size_t i = 0; i < N; i++)
        assert_ptr_equal(find(&p.all.served, ids[i]), i % 2 ? &one[i]->base : NULL);
    assert_null(find(&p.all.served, "'xyz'"));
    for (size_t i = 1; i < N; i += 2)
        end(one[i]);
    assert_null(find(&p.all.served, ids[1])); /* the table is empty again */
    finish(&p);
}

/* Each side gives its own ids: the same one may stand for two calls. */
static void test_wire_rpc_calls__same_id_both_ways(void **state) {
    (void)state;
    peer p;
    start(&p);
    party *came = add_with(&p, 'a', false, "'x'", 0), *left = add_with(&p, 'b', true, "'x'", 0);
    assert_int_equal(ew__rpc_call_index(&came->base), EW_OK);
    assert_int_equal(ew__rpc_call_index(&left->base), EW_OK);
    assert_ptr_equal(find(&p.all.served, "'x'"), &came->base);
    assert_ptr_equal(find(&p.all.sent, "'x'"), &left->base);
    end(came);
    assert_null(find(&p.all.served, "'x'"));
    assert_ptr_equal(find(&p.all.sent, "'x'"), &left->base);
    finish(&p);
}

/* One that may not have its id is no danger to the one that has it. */
static void test_wire_rpc_calls__id_in_use(void **state) {
    (void)state;
    static const char *const spellings[][2] = {
        {"7", "7"}, {"'ab'", "'ab'"}, {"'ab'", "'\\u0061b'"}, {"'\\u0061b'", "'ab'"}, {"'\\u0061b'", "'a\\u0062'"}};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        peer p;
        start(&p);
        party *a = add_with(&p, 'a', false, spellings[i][0], 0), *b = add_with(&p, 'b', false, spellings[i][1], 0);
        assert_int_equal(ew__rpc_call_index(&a->base), EW_OK);
        assert_int_equal(ew__rpc_call_index(&b->base), EW_EEXISTS);
        assert_int_equal(b->base.key.len, 0);
        assert_ptr_equal(find(&p.all.served, spellings[i][1]), &a->base);
        end(b);
        assert_ptr_equal(find(&p.all.served, spellings[i][1]), &a->base);
        b = add_with(&p, 'b', false, spellings[i][1], 0);
        end(a);
        assert_int_equal(ew__rpc_call_index(&b->base), EW_OK); /* it is free again */
        assert_ptr_equal(find(&p.all.served, spellings[i][0]), &b->base);
        finish(&p);
    }
}

/* Long ids with escapes are found by every spelling up to a length, and by their own beyond it. */
static void test_wire_rpc_calls__long_ids(void **state) {
    (void)state;
    char plain[700], escaped[700];
    for (int n = 500; n <= 600; n += 100) {
        peer p;
        start(&p);
        (void)snprintf(plain, sizeof plain, "'x%0*d'", n, 7);
        (void)snprintf(escaped, sizeof escaped, "'\\u0078%0*d'", n, 7);
        party *a = add_with(&p, 'a', false, escaped, 0);
        assert_int_equal(ew__rpc_call_index(&a->base), EW_OK);
        assert_ptr_equal(find(&p.all.served, escaped), &a->base);
        assert_ptr_equal(find(&p.all.served, plain), n == 500 ? &a->base : NULL);
        end(a);
        assert_null(find(&p.all.served, escaped));
        finish(&p);
    }
}

/* Each allocation fails once: the call is there, but not to be found; later it may be. */
static void test_wire_rpc_calls__index_no_memory(void **state) {
    (void)state;
    char id[600];
    (void)snprintf(id, sizeof id, "'\\u0078%0*d'", 500, 7); /* too long for the memory that a call begins with */
    uint64_t n_failures = 0;
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        peer p;
        start(&p);
        party *a = add_with(&p, 'a', false, id, 0), *b = add_with(&p, 'b', false, "'007'", 0);
        assert_int_equal(ew__rpc_call_index(&b->base), EW_OK); /* has the place */
        ew__arena *arena = &a->base.call->arena;
        while (arena->end - arena->at >= 512) /* the key is to need memory of its own */
            assert_non_null(ew__arena_alloc(arena, 64));
        ew__test_env_fail_at(&p.w.env, n, true);
        ew_err err = ew__rpc_call_index(&a->base);
        failed = ew__test_env_failed(&p.w.env) > 0;
        ew__test_env_fail_at(&p.w.env, 0, false);
        assert_int_equal(err, failed ? EW_ENOMEM : EW_OK);
        n_failures += failed;
        assert_ptr_equal(find(&p.all.served, id), failed ? NULL : &a->base);
        assert_int_equal(a->base.key.len == 0, failed);
        if (n % 2 && failed)
            assert_int_equal(ew__rpc_call_index(&a->base), EW_OK);
        end(a);
        assert_null(find(&p.all.served, id));
        finish(&p);
    }
    assert_int_equal(n_failures, 3); /* the key, and the two parts of the table */
}

/* ---- most are found by the end of their id ---- */

/* Two that are for one place are both found, and in nobody's way. */
static void test_wire_rpc_calls__one_place(void **state) {
    (void)state;
    peer p;
    start(&p);
    party *a = add_with(&p, 'a', true, "'x-001'", 0), *b = add_with(&p, 'b', true, "'x-129'", 0);
    assert_int_equal(ew__rpc_call_index(&a->base), EW_OK);
    assert_int_equal(ew__rpc_call_index(&b->base), EW_OK);
    assert_true(a->base.place > 0 && b->base.place == 0);
    assert_ptr_equal(find(&p.all.sent, "'x-001'"), &a->base);
    assert_ptr_equal(find(&p.all.sent, "'x-129'"), &b->base);
    assert_ptr_equal(find(&p.all.sent, "'\\u0078-00\\u0031'"), &a->base);
    assert_ptr_equal(find(&p.all.sent, "'x\\u002d129'"), &b->base);
    assert_null(find(&p.all.sent, "'x-257'"));
    assert_null(find(&p.all.sent, "'y-001'"));
    assert_null(find(&p.all.served, "'x-001'"));
    party *c = add_with(&p, 'c', true, "'\\u0078-001'", 0), *d = add_with(&p, 'd', true, "'x-129'", 0);
    assert_int_equal(ew__rpc_call_index(&c->base), EW_EEXISTS);
    assert_int_equal(ew__rpc_call_index(&d->base), EW_EEXISTS);
    end(a);
    assert_null(find(&p.all.sent, "'x-001'"));
    assert_int_equal(ew__rpc_call_index(&d->base), EW_EEXISTS); /* the place is free, the id is not */
    assert_int_equal(ew__rpc_call_index(&c->base), EW_OK);
    assert_ptr_equal(find(&p.all.sent, "'x-001'"), &c->base);
    end(b);
    assert_int_equal(ew__rpc_call_index(&d->base), EW_OK);
    assert_ptr_equal(find(&p.all.sent, "'x-129'"), &d->base);
    ew__rpc_call_remove(&c->base); /* it is asked again, by another id */
    c->base.id = EW_STR("\"x-130\"");
    c->base.key = ew__str(NULL, 0);
    ew__rpc_call_add(&c->base);
    assert_int_equal(ew__rpc_call_index(&c->base), EW_OK);
    assert_ptr_equal(find(&p.all.sent, "'x-130'"), &c->base);
    assert_null(find(&p.all.sent, "'x-001'"));
    finish(&p);
}

/* Ids that came, strings or numbers, have places too as long as they differ; a peer that chooses others gains nothing. */
static void test_wire_rpc_calls__places_of_served(void **state) {
    (void)state;
    static const char *const ids[] = {"1001", "1002", "'1003'", "'r-1004'", "4", "'5'", "2001", "'1001'"};
    enum { N = sizeof ids / sizeof *ids };
    peer p;
    party *one[N];
    start(&p);
    for (size_t i = 0; i < N; i++) {
        one[i] = add_with(&p, (char)('a' + i), false, ids[i], 0);
        assert_int_equal(ew__rpc_call_index(&one[i]->base), EW_OK);
        assert_int_equal(one[i]->base.place > 0, i < 6);
    }
    end(one[0]); /* its place is free, the ids that were for it are not */
    for (size_t i = 0; i < N; i++)
        assert_ptr_equal(find(&p.all.served, ids[i]), i == 0 ? NULL : &one[i]->base);
    party *again = add_with(&p, 'a', false, "2001", 0);
    assert_int_equal(ew__rpc_call_index(&again->base), EW_EEXISTS);
    finish(&p);
}

/* Of any length and form; and where there is no memory for the places. */
static void test_wire_rpc_calls__places(void **state) {
    (void)state;
    static const char *const ids[] = {"1", "''", "'a'", "'ab'", "'abc'", "'\\u0000'", "-12", "'x-7'", "'y-7'", "12345"};
    enum { N = sizeof ids / sizeof *ids };
    for (int without = 0; without < 2; without++) {
        peer p;
        party *one[N];
        start(&p);
        for (size_t i = 0; i < N; i++) {
            one[i] = add_with(&p, (char)('a' + i), true, ids[i], 0);
            ew__test_env_fail_at(&p.w.env, without && i == 0 ? 1 : 0, false);
            assert_int_equal(ew__rpc_call_index(&one[i]->base), EW_OK);
            assert_true(!without || i > 0 || one[i]->base.place == 0);
        }
        for (size_t i = 0; i < N; i++)
            assert_ptr_equal(find(&p.all.sent, ids[i]), &one[i]->base);
        for (size_t i = 0; i < N; i++) {
            end(one[i]);
            assert_null(find(&p.all.sent, ids[i]));
        }
        finish(&p);
    }
}

/* What is told by its bytes must be the id of a call in each of them, as that stands on the wire. */
static void test_wire_rpc_calls__of_result(void **state) {
    (void)state;
#define RESULT(id) EW_STR("{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":[1]}")
    peer p;
    ew__rpc message;
    start(&p);
    assert_null(ew__rpc_call_of_result(&p.all, RESULT("\"x-1\""), &message)); /* nothing has left */
    party *a = add_with(&p, 'a', true, "'x-1'", 0), *b = add_with(&p, 'b', true, "'t\\tt'", 0);
    party *c = add_with(&p, 'c', false, "'z-1'", 0);
    assert_int_equal(ew__rpc_call_index(&a->base), EW_OK);
    assert_int_equal(ew__rpc_call_index(&b->base), EW_OK);
    assert_int_equal(ew__rpc_call_index(&c->base), EW_OK);
    assert_ptr_equal(ew__rpc_call_of_result(&p.all, RESULT("\"x-1\""), &message), &a->base);
    assert_true(message.kind == EW__RPC_RESULT && message.stream == 0 && !message.error.len);
    assert_true(ew_str_eq(message.id, a->base.id) && ew_str_eq(message.result, EW_STR("[1]")));
    assert_null(ew__rpc_call_of_result(&p.all, RESULT("\"t\\tt\""), &message)); /* read in the ordinary way */
    assert_null(ew__rpc_call_of_result(&p.all, RESULT("\"t\tt\""), &message));  /* no JSON, but its key */
    assert_null(ew__rpc_call_of_result(&p.all, RESULT("\"\\u0078-1\""), &message));
    assert_null(ew__rpc_call_of_result(&p.all, RESULT("\"x-2\""), &message));
    assert_null(ew__rpc_call_of_result(&p.all, RESULT("\"z-1\""), &message)); /* it came */
    assert_null(ew__rpc_call_of_result(&p.all, RESULT("1"), &message));
    finish(&p);
}

/* ---- limits ---- */

static void test_wire_rpc_calls__fits(void **state) {
    (void)state;
    peer p;
    start(&p);
    assert_true(ew__rpc_fits(&p.all, 0));
    assert_true(ew__rpc_fits(&p.all, FRAME - 1));
    assert_true(ew__rpc_fits(&p.all, FRAME));
    assert_false(ew__rpc_fits(&p.all, FRAME + 1));
    assert_false(ew__rpc_fits(&p.all, SIZE_MAX));
    finish(&p);
}

static void test_wire_rpc_calls__has_place(void **state) {
    (void)state;
    peer p;
    start(&p);
    assert_true(ew__rpc_has_place(&p.all, MOST - 1)); /* the first one always: else a large one would never leave */
    assert_true(ew__rpc_has_place(&p.all, MOST));
    assert_true(ew__rpc_has_place(&p.all, MOST + 1));
    for (size_t waits = 1; waits <= MOST; waits += waits == 1 ? 999 : 1000) { /* 1, 1000, 2000 */
        queue_is(&p, waits);
        if (waits < MOST)
            assert_true(ew__rpc_has_place(&p.all, MOST - waits - 1));
        assert_true(ew__rpc_has_place(&p.all, MOST - waits));
        assert_false(ew__rpc_has_place(&p.all, MOST - waits + 1));
    }
    queue_is(&p, MOST + 1);
    assert_false(ew__rpc_has_place(&p.all, 0));
    finish(&p);
}

static void check_busy(const peer *p, bool draining, const char *why, ew_status status) {
    ew_fault got = {.status = EW_STATUS_OK};
    assert_int_equal(ew__rpc_busy(&p->all, draining, &got), why != NULL);
    if (why) {
        assert_true(ew__str_is(got.message, ew_str_from(why)));
        assert_int_equal(got.status, status);
        assert_true(got.refused);
    }
}

static void test_wire_rpc_calls__busy(void **state) {
    (void)state;
    static const char down[] = "going down", calls[] = "too many calls on this connection",
                      bytes[] = "too many bytes of calls on this connection";
    const ew_status full = EW_STATUS_RESOURCE_EXHAUSTED, gone = EW_STATUS_UNAVAILABLE;
    peer p;
    start(&p);
    check_busy(&p, false, NULL, full);
    check_busy(&p, true, down, gone);
    p.site.draining = true;
    check_busy(&p, false, down, gone);
    check_busy(&p, true, down, gone);
    p.site.draining = false;
    for (char letter = 'h'; letter < 'h' + CALLS + 1; letter++)
        add_sent(&p, letter); /* those that left do not count */
    for (char letter = 'a'; letter < 'a' + CALLS; letter++) {
        check_busy(&p, false, NULL, full); /* up to limit - 1 */
        add(&p, letter);
    }
    check_busy(&p, false, calls, full);
    check_busy(&p, true, down, gone); /* whoever goes down says that */
    party *last = add(&p, 'g');
    check_busy(&p, false, calls, full);
    end(last);
    check_busy(&p, false, calls, full);
    end_letter(&p, 'a');
    check_busy(&p, false, NULL, full);
    end_letter(&p, 'b');
    for (uint32_t size = 4 * FRAME - 1; size <= 4 * FRAME + 1; size++) {
        party *big = add_with(&p, 'a', false, "", size);
        check_busy(&p, false, size > 4 * FRAME ? bytes : NULL, full);
        check_busy(&p, true, down, gone);
        end(big);
    }
    add_with(&p, 'a', false, "", 2 * FRAME); /* of all together */
    check_busy(&p, false, NULL, full);
    end_letter(&p, 'c');
    add_with(&p, 'b', false, "", 2 * FRAME + 1);
    check_busy(&p, false, bytes, full);
    finish(&p);
}

static void test_wire_rpc_calls__must_pause(void **state) {
    (void)state;
    peer p;
    start(&p);
    for (size_t n = 4 * HIGH - 1; n <= 4 * HIGH + 1; n++) {
        queue_is(&p, n);
        assert_int_equal(ew__rpc_must_pause(&p.all), n >= 4 * HIGH);
    }
    party *a = add(&p, 'a');
    assert_true(ew__rpc_must_pause(&p.all)); /* one that came gives no room */
    party *b = add_sent(&p, 'b');
    assert_false(ew__rpc_must_pause(&p.all)); /* one that left does */
    for (size_t n = MOST / 2 - 1; n <= MOST / 2 + 1; n++) {
        queue_is(&p, n);
        assert_int_equal(ew__rpc_must_pause(&p.all), n >= MOST / 2);
    }
    queue_is(&p, MOST / 2 - 1);
    end(b);
    assert_true(ew__rpc_must_pause(&p.all));
    queue_is(&p, 0);
    assert_false(ew__rpc_must_pause(&p.all));
    block(a);
    assert_true(ew__rpc_must_pause(&p.all));
    ew__rpc_call_unblock(&a->base);
    assert_false(ew__rpc_must_pause(&p.all));
    finish(&p);
}

/* ---- silence ---- */

/* As the wires do: a piece only notes its time, so it looks again. */
static void on_silence(ew__timer *timer, uint64_t now) {
    party *self = ew__container_of(timer, party, base.timer);
    bool silent = now >= self->base.heard_at + EW__MS(IDLE_MS);
    tell(self->peer, silent ? "silent" : "look", self->letter);
    if (!silent)
        assert_int_equal(ew__rpc_call_watch_silence(&self->base, on_silence), EW_OK);
}

static void hear(party *self) { self->base.heard_at = self->peer->w.executor.now; }

static void test_wire_rpc_calls__silence(void **state) {
    (void)state;
    peer p;
    start(&p);
    party *a = add(&p, 'a'), *b = add_sent(&p, 'b');
    hear(a);
    hear(b);
    assert_int_equal(ew__rpc_call_watch_silence(&a->base, on_silence), EW_OK);
    assert_int_equal(ew__rpc_call_watch_silence(&b->base, on_silence), EW_OK);
    world_advance(&p.w, IDLE_MS - 1);
    check_told(&p, "");
    hear(a);
    end(b); /* its timer goes with it */
    world_advance(&p.w, 1);
    check_told(&p, "look a");
    world_advance(&p.w, IDLE_MS - 2);
    check_told(&p, "");
    world_advance(&p.w, 1);
    check_told(&p, "silent a");
    world_advance(&p.w, 2 * IDLE_MS);
    check_told(&p, "");
    hear(a); /* begun twice: the later one counts */
    assert_int_equal(ew__rpc_call_watch_silence(&a->base, on_silence), EW_OK);
    world_advance(&p.w, 10);
    hear(a);
    assert_int_equal(ew__rpc_call_watch_silence(&a->base, on_silence), EW_OK);
    world_advance(&p.w, IDLE_MS - 1);
    check_told(&p, "");
    world_advance(&p.w, 1);
    check_told(&p, "silent a");
    finish(&p);
}

/* While our own taker is behind the peer cannot be heard: it gets its whole time afterwards. */
static void test_wire_rpc_calls__silence_of_blocked(void **state) {
    (void)state;
    peer p;
    start(&p);
    party *a = add(&p, 'a');
    hear(a);
    assert_int_equal(ew__rpc_call_watch_silence(&a->base, on_silence), EW_OK);
    block(a);
    world_advance(&p.w, IDLE_MS - 1);
    ew__rpc_call_unblock(&a->base);
    check_told(&p, "resume");
    world_advance(&p.w, 1);
    check_told(&p, "look a");
    world_advance(&p.w, IDLE_MS - 1);
    check_told(&p, "silent a");
    finish(&p);
}

static void test_wire_rpc_calls__silence_no_memory(void **state) {
    (void)state;
    peer p;
    start(&p);
    party *a = add(&p, 'a');
    hear(a);
    ew__test_env_fail_at(&p.w.env, 1, false);
    assert_int_equal(ew__rpc_call_watch_silence(&a->base, on_silence), EW_ENOMEM);
    assert_false(ew__timer_active(&a->base.timer));
    check_told(&p, ""); /* it is the wire's to end its call */
    assert_int_equal(ew__rpc_call_watch_silence(&a->base, on_silence), EW_OK);
    world_advance(&p.w, IDLE_MS);
    check_told(&p, "silent a");
    finish(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_rpc_calls__one_place),
        cmocka_unit_test(test_wire_rpc_calls__places),
        cmocka_unit_test(test_wire_rpc_calls__places_of_served),
        cmocka_unit_test(test_wire_rpc_calls__of_result),
        cmocka_unit_test(test_wire_rpc_calls__lists),
        cmocka_unit_test(test_wire_rpc_calls__find),
        cmocka_unit_test(test_wire_rpc_calls__same_id_both_ways),
        cmocka_unit_test(test_wire_rpc_calls__id_in_use),
        cmocka_unit_test(test_wire_rpc_calls__long_ids),
        cmocka_unit_test(test_wire_rpc_calls__index_no_memory),
        cmocka_unit_test(test_wire_rpc_calls__fits),
        cmocka_unit_test(test_wire_rpc_calls__has_place),
        cmocka_unit_test(test_wire_rpc_calls__busy),
        cmocka_unit_test(test_wire_rpc_calls__must_pause),
        cmocka_unit_test(test_wire_rpc_calls__silence),
        cmocka_unit_test(test_wire_rpc_calls__silence_of_blocked),
        cmocka_unit_test(test_wire_rpc_calls__silence_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
