/*
 * tests/unit/wire/test_rrq_principals.c: orchestrators with tokens of their own share a runner. A cancel applies to
 * requests of the principal that sends it, on every connection and loop.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/wire/principals.h"
#include "unit/wire/rrq_world.h"

#define AUTH(token) REQUEST("auth", "auth", "everywire.auth", "{'token':'" token "'}")

typedef struct scene {
    rig r;
    guarded_rig g;
} scene;

static void begin(scene *s) {
    rrq_init(&s->r, (ew_limits){0}, RIG_WHOLE);
    guard_rig(&s->g, &s->r, principals());
}

static void end(scene *s) {
    rig_finish(&s->r);
    unguard_rig(&s->g);
}

static rig_pair *connect_as(scene *s, const char *auth) {
    rig_pair *pair = rig_connect_raw(&s->r, RIG_CLIENT);
    say(pair, auth);
    hear(pair, SUCCESS("auth", "auth", "null"));
    return pair;
}

static void test_wire_rrq_principals__cancel(void **state) {
    (void)state;
    scene s;
    begin(&s);
    rig_pair *ada = connect_as(&s, AUTH(ADA)), *bob = connect_as(&s, AUTH(BOB)), *again = connect_as(&s, AUTH(ADA));
    rig_pair *stranger = rig_connect_raw(&s.r, RIG_CLIENT);
    say(ada, REQUEST("r", "j", "never", "{}"));
    say(bob, CANCEL("j", ",'request_id':'r'"));
    say(bob, CANCEL("j", ""));
    say(stranger, CANCEL("j", ",'request_id':'r'"));
    hear_nothing(ada);
    assert_int_equal(s.r.n_cancelled, 0);
    say(again, CANCEL("j", ",'request_id':'r'")); /* another connection with the same token */
    hear(ada, CANCELLED("r", "j"));
    end(&s);
}

/* Requests of others under the same ids neither hide a request from its owner nor end with it. */
static void test_wire_rrq_principals__same_ids(void **state) {
    (void)state;
    scene s;
    begin(&s);
    rig_pair *ada = connect_as(&s, AUTH(ADA)), *bob = connect_as(&s, AUTH(BOB));
    say(bob, REQUEST("r", "j", "never", "{}"));
    say(ada, REQUEST("r", "j", "never", "{}"));
    say(bob, REQUEST("r", "j", "never", "{}"));
    say(ada, CANCEL("j", ",'request_id':'r'"));
    hear(ada, CANCELLED("r", "j"));
    hear_nothing(bob);
    say(ada, REQUEST("s", "j", "never", "{}"));
    say(ada, CANCEL("j", ""));
    hear(ada, CANCELLED("s", "j"));
    hear_nothing(bob);
    say(bob, CANCEL("j", ""));
    hear(bob, CANCELLED("r", "j"));
    hear(bob, CANCELLED("r", "j"));
    assert_int_equal(s.r.n_cancelled, 4);
    end(&s);
}

typedef struct others {
    struct ew__broadcast base;
    unsigned n;
    ew__principal sender;
} others;

static bool on_tell(struct ew__broadcast *base, const ew__executor *from, const ew__wire *wire, unsigned to,
                    const ew__principal *sender, ew_str text) {
    others *o = (others *)(void *)base;
    (void)from;
    (void)wire;
    (void)to;
    assert_true(ew__str_is(text, EW_STR("[\"j\",\"r\"]")));
    o->n++;
    o->sender = *sender;
    return true;
}

static void test_wire_rrq_principals__other_loops(void **state) {
    (void)state;
    scene s;
    others o = {.base = {.send = on_tell}};
    begin(&s);
    s.r.side[RIG_SERVER].site.broadcast = &o.base;
    rig_pair *ada = connect_as(&s, AUTH(ADA)), *bob = connect_as(&s, AUTH(BOB));
    ew__principal is_ada = principal_with(ADA), is_bob = principal_with(BOB);
    say(bob, REQUEST("r", "j", "never", "{}"));
    say(ada, CANCEL("j", ",'request_id':'r'")); /* BOB's is here, ADA's may be elsewhere */
    assert_int_equal(o.n, 1);
    assert_true(ew__principal_equal(&o.sender, &is_ada));
    hear_nothing(bob);
    void *scratch = wire_end(bob)->conn.scratch;
    ew__rrq_on_broadcast(scratch, &s.r.side[RIG_SERVER].executor, &is_ada, EW_STR("[\"j\",\"r\"]"));
    rig_run(&s.r);
    hear_nothing(bob);
    ew__rrq_on_broadcast(scratch, &s.r.side[RIG_SERVER].executor, &is_bob, EW_STR("[\"j\",\"r\"]"));
    rig_run(&s.r);
    hear(bob, CANCELLED("r", "j"));
    end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_rrq_principals__cancel),
        cmocka_unit_test(test_wire_rrq_principals__same_ids),
        cmocka_unit_test(test_wire_rrq_principals__other_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
