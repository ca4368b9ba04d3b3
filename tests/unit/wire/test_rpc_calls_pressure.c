/*
 * tests/unit/wire/test_rpc_calls_pressure.c: the calls of one connection under back pressure, both ways: producers of
 * ours that wait for room, takers of ours that are behind.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/rpc_calls_world.h"

static unsigned times_told(const peer *p, const char *what) {
    unsigned n = 0;
    for (const char *at = p->told; (at = strstr(at, what)) != NULL; at += strlen(what))
        n++;
    return n;
}

/* Letter by letter, in turn: all of them wait. */
static void all_wait(peer *p, const char *letters) {
    queue_is(p, HIGH);
    for (; *letters; letters++)
        assert_int_equal(send_piece(p->party[*letters - 'a'], 1), EW_FULL);
}

/* Who waits, in turn. Both directions of the list say the same. */
static void check_waiting(const peer *p, const char *letters) {
    size_t n = strlen(letters);
    ew__rpc_call *forth = p->all.waiting, *back = p->all.waiting_last;
    assert_int_equal(p->all.n_waiting, n);
    for (size_t i = 0; i < n; i++, forth = forth->wait_next, back = back->wait_prev) {
        assert_true(forth && back && forth->waiting);
        assert_int_equal(((party *)(void *)forth)->letter, letters[i]);
        assert_int_equal(((party *)(void *)back)->letter, letters[n - 1 - i]);
    }
    assert_true(!forth && !back);
}

/* ---- producers of ours ---- */

static void test_wire_rpc_pressure__pace(void **state) {
    (void)state;
    for (int sent = 0; sent <= 1; sent++) {
        peer p;
        start(&p);
        party *a = add_with(&p, 'a', sent, "", 0), *b = add_with(&p, 'b', sent, "", 0);
        assert_int_equal(send_piece(a, HIGH - 1), EW_OK);
        check_waiting(&p, "");
        assert_int_equal(send_piece(a, 1), EW_FULL);
        check_waiting(&p, "a");
        assert_int_equal(send_piece(a, 1), EW_FULL); /* it need not listen; its turn stays the same */
        assert_int_equal(send_piece(b, 1), EW_FULL);
        assert_int_equal(send_piece(a, 1), EW_FULL);
        check_waiting(&p, "ab");
        check_told(&p, "");
        ew__rpc_calls_drained(&p.all); /* it is not short: nobody is told */
        check_told(&p, "resume");
        queue_is(&p, HIGH);
        ew__rpc_calls_drained(&p.all);
        check_told(&p, "resume");
        check_waiting(&p, "ab");
        queue_is(&p, HIGH - 1);
        ew__rpc_calls_drained(&p.all);
        check_told(&p, sent ? "input room a, input room b, resume" : "room a, room b, resume");
        check_waiting(&p, "");
        ew__rpc_calls_drained(&p.all);
        check_told(&p, "resume");
        finish(&p);
    }
}

/* Reading goes on only where nothing else forbids it. */
static void test_wire_rpc_pressure__drained_paused(void **state) {
    (void)state;
    peer p;
    start(&p);
    queue_is(&p, 4 * HIGH);
    ew__rpc_calls_drained(&p.all);
    check_told(&p, "");
    queue_is(&p, 4 * HIGH - 1);
    ew__rpc_calls_drained(&p.all);
    check_told(&p, "resume");
    add(&p, 'a');
    add(&p, 'b');
    all_wait(&p, "a");
    queue_is(&p, 0);
    block(p.party['b' - 'a']);
    ew__rpc_calls_drained(&p.all);
    check_told(&p, "room a"); /* one that is behind does not hold up those that send */
    finish(&p);
}

/* Each of five in each place stops: the others keep their turn. */
static void test_wire_rpc_pressure__stop_waiting(void **state) {
    (void)state;
    static const char letters[] = "abcde";
    for (size_t gone = 0; gone < 5; gone++)
        for (int how = 0; how < 3; how++) { /* it sends no more; its call is taken off, or has ended */
            char left[6] = "", told[100] = "";
            peer p;
            start(&p);
            for (size_t i = 0; i < 5; i++)
                add_with(&p, letters[i], i % 2, "", 0);
            all_wait(&p, letters);
            party *one = p.party[gone];
            if (how == 0)
                ew__rpc_call_stop_waiting(&one->base);
            else if (how == 1)
                take_off(one);
            else
                end(one);
            for (size_t i = 0, n = 0; i < 5; i++)
                if (i != gone) {
                    left[n++] = letters[i];
                    (void)snprintf(told + strlen(told), sizeof told - strlen(told), "%s %c, ",
                                   i % 2 ? "input room" : "room", letters[i]);
                }
            check_waiting(&p, left);
            if (how < 2)
                ew__rpc_call_stop_waiting(&one->base); /* once more: nothing */
            check_waiting(&p, left);
            queue_is(&p, 0);
            ew__rpc_calls_drained(&p.all);
            (void)snprintf(told + strlen(told), sizeof told - strlen(told), "resume");
            check_told(&p, told);
            finish(&p);
        }
}

/* The only one that waits goes, then others come: the row begins anew. One that is on no list may wait, too. */
static void test_wire_rpc_pressure__waits_before_listed(void **state) {
    (void)state;
    peer p;
    start(&p);
    begin(&p, 'a', false, "");
    all_wait(&p, "a");
    assert_int_equal(p.all.served.n, 0);
    end_letter(&p, 'a');
    check_waiting(&p, "");
    add(&p, 'b');
    add(&p, 'c');
    all_wait(&p, "cb");
    queue_is(&p, 0);
    ew__rpc_calls_drained(&p.all);
    check_told(&p, "room c, room b, resume");
    finish(&p);
}

/* ---- who goes on may do anything ---- */

static void then_fill(party *self) { assert_int_equal(send_piece(self, HIGH), EW_FULL); }
static void then_fill_much(party *self) { assert_int_equal(send_piece(self, 4 * HIGH), EW_FULL); }

/* The socket takes everything at once: there is room again, and it waits all the same. */
static void then_fill_and_leave(party *self) {
    if (self->n_told > 9)
        return; /* a test that fails ends, too */
    assert_int_equal(send_piece(self, HIGH), EW_FULL);
    queue_is(self->peer, 0);
}

static void then_end(party *self) { end(self); }
static void then_end_other(party *self) { end_letter(self->peer, self->other); }

static void then_end_all(party *self) {
    peer *p = self->peer;
    for (char letter = 'a'; letter < 'a' + LETTERS; letter++)
        end_letter(p, letter);
}

/* Three that always have more to say: each gets its turn. */
static void test_wire_rpc_pressure__fair(void **state) {
    (void)state;
    static const char *const rows[] = {"bca", "cab", "abc"};
    static const char *const told[] = {"room a, resume", "input room b, resume", "room c, resume"};
    peer p;
    start(&p);
    for (char letter = 'a'; letter <= 'c'; letter++)
        add_with(&p, letter, letter == 'b', "", 0)->then = then_fill;
    all_wait(&p, "abc");
    for (size_t i = 0; i < 7; i++) {
        queue_is(&p, 0);
        ew__rpc_calls_drained(&p.all);
        check_told(&p, told[i % 3]);
        check_waiting(&p, rows[i % 3]);
    }
    finish(&p);
}

/* Once each, also if there is room for more: others want to go on with their own work. */
static void test_wire_rpc_pressure__once_each(void **state) {
    (void)state;
    peer p;
    start(&p);
    add(&p, 'a')->then = then_fill_and_leave;
    add(&p, 'b')->then = then_fill_and_leave;
    all_wait(&p, "ab");
    queue_is(&p, 0);
    for (int i = 0; i < 3; i++) {
        ew__rpc_calls_drained(&p.all);
        check_told(&p, "room a, room b, resume");
        check_waiting(&p, "ab");
    }
    finish(&p);
}

/* So much that reading must wait as well. */
static void test_wire_rpc_pressure__fills_past_the_pause(void **state) {
    (void)state;
    peer p;
    start(&p);
    add(&p, 'a')->then = then_fill_much;
    add(&p, 'b');
    all_wait(&p, "ab");
    queue_is(&p, 0);
    ew__rpc_calls_drained(&p.all);
    check_told(&p, "room a");
    check_waiting(&p, "ba");
    queue_is(&p, 0);
    ew__rpc_calls_drained(&p.all);
    check_told(&p, "room b, room a");
    check_waiting(&p, "a");
    finish(&p);
}

static void test_wire_rpc_pressure__ends_while_told(void **state) {
    (void)state;
    static const struct {
        void (*then)(party *self);
        char other;
        const char *told, *left;
    } rows[] = {
        {then_end, 0, "room a, input room b, room c, input room d, resume", "bcd"},
        {then_end_other, 'b', "room a, room c, input room d, resume", "acd"},
        {then_end_other, 'c', "room a, input room b, input room d, resume", "abd"},
        {then_end_other, 'd', "room a, input room b, room c, resume", "abc"},
        {then_end_all, 0, "room a, resume", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char left[8] = "";
        peer p;
        start(&p);
        for (char letter = 'a'; letter <= 'd'; letter++)
            add_with(&p, letter, letter % 2 == 0, "", 0);
        p.party[0]->then = rows[i].then;
        p.party[0]->other = rows[i].other;
        all_wait(&p, "abcd");
        queue_is(&p, 0);
        ew__rpc_calls_drained(&p.all);
        check_told(&p, rows[i].told);
        check_waiting(&p, "");
        for (size_t k = 0, n = 0; k < LETTERS; k++)
            if (p.party[k])
                left[n++] = (char)('a' + k);
        assert_string_equal(left, rows[i].left);
        finish(&p);
    }
}

/* ---- producers of the peer ---- */

static void test_wire_rpc_pressure__block(void **state) {
    (void)state;
    peer p;
    start(&p);
    party *a = add(&p, 'a'), *b = add_sent(&p, 'b');
    const uint64_t began = p.w.executor.now;
    a->base.heard_at = b->base.heard_at = began;
    ew__rpc_call_unblock(&a->base); /* it is not: nothing */
    check_told(&p, "");
    block(a);
    assert_true(p.all.guard.at == began + EW__MS(GUARD_MS) && ew__timer_active(&p.all.guard));
    block(a); /* it is already */
    block(b);
    assert_int_equal(p.all.n_blocked, 2);
    world_advance(&p.w, 1);
    ew__rpc_call_unblock(&a->base);
    ew__rpc_call_unblock(&a->base);
    assert_int_equal(p.all.n_blocked, 1);
    assert_true(ew__rpc_must_pause(&p.all) && ew__timer_active(&p.all.guard));
    assert_true(a->base.heard_at == began + EW__MS(1)); /* the silence was ours */
    assert_true(b->base.heard_at == began);
    check_told(&p, "");
    ew__rpc_call_unblock(&b->base);
    check_told(&p, "resume");
    assert_false(ew__timer_active(&p.all.guard));
    block(b);
    queue_is(&p, MOST / 2);
    ew__rpc_call_unblock(&b->base);
    check_told(&p, ""); /* too much waits to be sent: drained comes later */
    queue_is(&p, 0);
    ew__rpc_calls_drained(&p.all);
    check_told(&p, "resume");
    finish(&p);
}

/* One that ends holds up nobody any more. */
static void test_wire_rpc_pressure__blocked_ends(void **state) {
    (void)state;
    peer p;
    start(&p);
    party *a = add(&p, 'a'), *b = add_sent(&p, 'b');
    block(a);
    block(b);
    end(a);
    check_told(&p, "");
    assert_int_equal(p.all.n_blocked, 1);
    end(b);
    check_told(&p, "resume");
    assert_false(ew__rpc_must_pause(&p.all));
    world_advance(&p.w, 2 * GUARD_MS);
    check_told(&p, "");
    finish(&p);
}

static void test_wire_rpc_pressure__guard(void **state) {
    (void)state;
    peer p;
    start(&p);
    for (char letter = 'a'; letter <= 'f'; letter++)
        add_with(&p, letter, letter >= 'd', "", 0);
    block(p.party[1]);
    world_advance(&p.w, GUARD_MS - 1);
    ew__rpc_call_unblock(&p.party[1]->base);
    check_told(&p, "resume");
    for (size_t i = 0; i < 6; i += 2) /* a, c; e */
        block(p.party[i]);
    world_advance(&p.w, GUARD_MS / 2);
    block(p.party[5]); /* f: the connection's time counts, it is not given more */
    world_advance(&p.w, GUARD_MS / 2 - 1);
    check_told(&p, "");
    world_advance(&p.w, 1);
    assert_int_equal(times_told(&p, "overrun"), 4);
    assert_int_equal(times_told(&p, "overrun a"), 1);
    assert_int_equal(times_told(&p, "overrun c"), 1);
    assert_int_equal(times_told(&p, "overrun e"), 1);
    assert_int_equal(times_told(&p, "overrun f"), 1);
    assert_int_equal(times_told(&p, "resume"), 1);
    assert_true(p.party[1] && p.party[3]);
    assert_int_equal(p.all.n_blocked, 0);
    assert_false(ew__timer_active(&p.all.guard) || ew__rpc_must_pause(&p.all));
    p.told[0] = 0;
    world_advance(&p.w, 2 * GUARD_MS);
    check_told(&p, "");
    block(p.party[3]); /* the next one has its own time, which is shorter: no handler takes input */
    world_advance(&p.w, STREAM_HOLD_MS - 1);
    check_told(&p, "");
    world_advance(&p.w, 1);
    check_told(&p, "overrun d, resume");
    finish(&p);
}

/* The end of one may bring about that of others: those are not looked at again. */
static void test_wire_rpc_pressure__guard_ends_others(void **state) {
    (void)state;
    peer p;
    start(&p);
    party *a = add(&p, 'a'), *b = add_sent(&p, 'b');
    a->other = 'b';
    b->other = 'a';
    add(&p, 'c');
    block(a);
    block(b);
    world_advance(&p.w, GUARD_MS);
    assert_int_equal(times_told(&p, "overrun"), 1);
    assert_int_equal(times_told(&p, "resume"), 1);
    assert_true(!p.party[0] && !p.party[1] && p.party[2]);
    finish(&p);
}

/* Calls that delay no other call are not lost, however long their readers need. */
static void test_wire_rpc_pressure__guard_of_lonely(void **state) {
    (void)state;
    peer p;
    start(&p);
    party *a = add_sent(&p, 'a');
    ew__rpc_call_block(&a->base, 1, 1);
    assert_true(ew__rpc_must_pause(&p.all)); /* the peer is held back at once */
    world_advance(&p.w, 100 * GUARD_MS);
    check_told(&p, "");
    party *b = add_sent(&p, 'b'); /* it waits for an answer: so much is read that it may come */
    check_told(&p, "resume");
    assert_false(ew__rpc_must_pause(&p.all));
    world_advance(&p.w, 100 * GUARD_MS);
    check_told(&p, "");
    block(a);
    assert_true(ew__rpc_must_pause(&p.all));
    world_advance(&p.w, STREAM_HOLD_MS - 1);
    end(b);
    check_told(&p, "");
    world_advance(&p.w, 100 * GUARD_MS);
    check_told(&p, "");
    add_sent(&p, 'c');
    world_advance(&p.w, STREAM_HOLD_MS);
    check_told(&p, "overrun a, resume");
    finish(&p);
}

/* Of several takers that are behind the one that is furthest behind loses its call, and the others go on. */
static void test_wire_rpc_pressure__guard_takes_the_slowest(void **state) {
    (void)state;
    peer p;
    start(&p);
    size_t max = (size_t)ew__rpc_behind_max(&p.all);
    for (char letter = 'a'; letter <= 'd'; letter++)
        add_sent(&p, letter);
    ew__rpc_call_block(&p.party[0]->base, 1, max / 4);
    ew__rpc_call_block(&p.party[1]->base, 1, max / 2);
    assert_false(ew__rpc_must_pause(&p.all));
    ew__rpc_call_block(&p.party[2]->base, 1, max / 4);
    assert_true(ew__rpc_must_pause(&p.all));
    world_advance(&p.w, STREAM_HOLD_MS - 1);
    check_told(&p, "");
    world_advance(&p.w, 1);
    check_told(&p, "overrun b, resume");
    assert_int_equal(p.all.n_blocked, 2);
    ew__rpc_call_unblock(&p.party[0]->base);
    ew__rpc_call_unblock(&p.party[2]->base);
    assert_int_equal(p.all.behind_bytes, 0);
    finish(&p);
}

/* A wire that is closed already leaves them: it is not asked for ever. */
static void test_wire_rpc_pressure__guard_of_closed(void **state) {
    (void)state;
    peer p;
    start(&p);
    block(add(&p, 'a'));
    block(add_sent(&p, 'b'));
    add_sent(&p, 'c');
    p.closed = true;
    world_advance(&p.w, GUARD_MS);
    assert_in_range(times_told(&p, "overrun"), 1, 2);
    assert_int_equal(p.all.n_blocked, 2);
    assert_true(ew__rpc_must_pause(&p.all));
    p.told[0] = 0;
    world_advance(&p.w, 2 * GUARD_MS);
    check_told(&p, "");
    finish(&p);
}

static void test_wire_rpc_pressure__guard_no_memory(void **state) {
    (void)state;
    peer p;
    start(&p);
    party *a = add(&p, 'a');
    ew__test_env_fail_at(&p.w.env, 1, true);
    block(a);
    assert_int_equal(ew__test_env_failed(&p.w.env), 1);
    check_told(&p, "abort");
    assert_false(ew__timer_active(&p.all.guard));
    assert_true(a->base.blocked && ew__rpc_must_pause(&p.all)); /* nothing is read till the connection has closed */
    ew__test_env_fail_at(&p.w.env, 0, false);
    world_advance(&p.w, 2 * GUARD_MS);
    check_told(&p, "");
    end(a);
    check_told(&p, "resume");
    finish(&p);
}

/* ---- all of it, in random orders, against a small model ---- */

typedef struct model {
    char row[LETTERS + 1]; /* who waits, in turn */
    bool blocked[LETTERS];
    unsigned n_blocked;
    uint64_t guard_at;
} model;

static void model_unwait(model *m, char letter) {
    char *at = strchr(m->row, letter);
    if (at)
        memmove(at, at + 1, strlen(at));
}

static void model_unblock(model *m, char letter) {
    m->n_blocked -= m->blocked[letter - 'a'];
    m->blocked[letter - 'a'] = false;
}

/* The row once through: one that fills the queue waits again, and is the last that is told. */
static void step_drained(peer *p, model *m) {
    char expected[sizeof p->told] = "", now[LETTERS + 1];
    memcpy(now, m->row, sizeof now);
    for (const char *at = now; *at; at++) {
        const party *one = p->party[*at - 'a'];
        (void)snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s %c", at > now ? ", " : "",
                       one->base.sent ? "input room" : "room", *at);
        memmove(m->row, m->row + 1, LETTERS);
        if (one->then) {
            m->row[strlen(m->row)] = *at;
            break;
        }
    }
    if (m->n_blocked == 0)
        (void)snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%sresume", *now ? ", " : "");
    p->told[0] = 0;
    queue_is(p, 0);
    ew__rpc_calls_drained(&p->all);
    check_told(p, expected);
}

static void step_time(peer *p, model *m, uint64_t ms) {
    p->told[0] = 0;
    world_advance(&p->w, ms);
    if (m->n_blocked == 0 || p->w.executor.now < m->guard_at) {
        check_told(p, "");
        return;
    }
    assert_int_equal(times_told(p, "overrun"), m->n_blocked);
    for (char letter = 'a'; letter < 'a' + LETTERS; letter++)
        if (m->blocked[letter - 'a']) {
            assert_null(p->party[letter - 'a']);
            model_unwait(m, letter);
            model_unblock(m, letter);
        }
}

static void step_party(party *one, model *m, uint64_t what) {
    char letter = one->letter;
    switch (what) {
    case 0:
        end(one);
        model_unblock(m, letter);
        model_unwait(m, letter);
        break;
    case 1:
        ew__rpc_call_stop_waiting(&one->base);
        model_unwait(m, letter);
        break;
    case 2:
        ew__rpc_call_unblock(&one->base);
        model_unblock(m, letter);
        break;
    case 3:
        if (m->n_blocked == 0)
            m->guard_at = one->peer->w.executor.now + EW__MS(one->base.sent ? STREAM_HOLD_MS : GUARD_MS);
        m->n_blocked += !m->blocked[letter - 'a'];
        m->blocked[letter - 'a'] = true;
        block(one);
        break;
    default:
        all_wait(one->peer, (const char[]){letter, 0});
        if (!strchr(m->row, letter))
            m->row[strlen(m->row)] = letter;
    }
}

static void check_model(const peer *p, const model *m) {
    uint32_t n[2] = {0, 0};
    check_waiting(p, m->row);
    assert_int_equal(p->all.n_blocked, m->n_blocked);
    assert_int_equal(ew__timer_active(&p->all.guard), m->n_blocked > 0);
    for (size_t i = 0; i < LETTERS; i++)
        if (p->party[i]) {
            n[p->party[i]->base.sent]++;
            assert_int_equal(p->party[i]->base.blocked, m->blocked[i]);
        }
    assert_int_equal(p->all.served.n, n[0]);
    assert_int_equal(p->all.sent.n, n[1]);
}

/* The first party always waits for its answer, so that the others delay a call. */
static void test_wire_rpc_pressure__random(void **state) {
    (void)state;
    peer p;
    model m = {.n_blocked = 0};
    start(&p);
    add_sent(&p, 'a');
    for (int i = 0; i < 50000; i++) {
        uint64_t chance = ew__rng_next(&p.w.executor.rng), which = (chance >> 8) % LETTERS, what = (chance >> 16) % 12;
        if (what == 11)
            step_time(&p, &m, (chance >> 24) % 3000);
        else if (what == 10)
            step_drained(&p, &m);
        else if (which == 0 && (what == 0 || what == 3))
            continue;
        else if (p.party[which])
            step_party(p.party[which], &m, what);
        else
            add_with(&p, (char)('a' + which), chance >> 63, "", 0)->then = chance >> 61 & 1 ? then_fill : NULL;
        check_model(&p, &m);
    }
    finish(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_rpc_pressure__pace),
        cmocka_unit_test(test_wire_rpc_pressure__drained_paused),
        cmocka_unit_test(test_wire_rpc_pressure__stop_waiting),
        cmocka_unit_test(test_wire_rpc_pressure__waits_before_listed),
        cmocka_unit_test(test_wire_rpc_pressure__fair),
        cmocka_unit_test(test_wire_rpc_pressure__once_each),
        cmocka_unit_test(test_wire_rpc_pressure__fills_past_the_pause),
        cmocka_unit_test(test_wire_rpc_pressure__ends_while_told),
        cmocka_unit_test(test_wire_rpc_pressure__block),
        cmocka_unit_test(test_wire_rpc_pressure__blocked_ends),
        cmocka_unit_test(test_wire_rpc_pressure__guard),
        cmocka_unit_test(test_wire_rpc_pressure__guard_ends_others),
        cmocka_unit_test(test_wire_rpc_pressure__guard_of_lonely),
        cmocka_unit_test(test_wire_rpc_pressure__guard_takes_the_slowest),
        cmocka_unit_test(test_wire_rpc_pressure__guard_of_closed),
        cmocka_unit_test(test_wire_rpc_pressure__guard_no_memory),
        cmocka_unit_test(test_wire_rpc_pressure__random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
