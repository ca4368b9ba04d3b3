/*
 * tests/bridge/actions.c: what an origin offers: the demo's actions, and those that tell what happened to them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/pairs.h"
#include "cli/cli.h"
#include "cli/demo.h"
#include "support/json_or.h"

origin_seen seen;

void seen_reset(void) {
    atomic_int *const all[] = {&seen.opened,  &seen.running, &seen.cancelled, &seen.deadline_ms,
                               &seen.pouring, &seen.waits,   &seen.asked,     &seen.look};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        atomic_store(all[i], 0);
}

/* ---- forever: ends when it is told to ---- */

static void stopped(ew_call *call, void *arg) {
    (void)arg;
    atomic_fetch_add(&seen.cancelled, 1);
    atomic_fetch_sub(&seen.running, 1);
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, "stopped");
}

static void for_ever(ew_call *call, void *arg) {
    (void)arg;
    atomic_store(&seen.deadline_ms, (int)ew_call_deadline_ms(call));
    atomic_fetch_add(&seen.running, 1);
    atomic_fetch_add(&seen.opened, 1);
    (void)ew_call_chunk(call, EW_STR("\"begun\""));
    if (ew_call_cancelled(call))
        stopped(call, NULL);
    else
        (void)ew_call_on_cancel(call, stopped, NULL);
}

/* ---- pour: many large chunks, as fast as they are taken; {"n":N,"size":S,"only":"pour"} ---- */

typedef struct pouring {
    int64_t left, size;
    char *text;
} pouring;

static void poured(ew_call *call, ew_status status) {
    atomic_fetch_sub(&seen.pouring, 1);
    if (status == EW_STATUS_OK)
        (void)ew_call_done(call, EW_STR("\"all\""));
    else
        (void)ew_call_fail(call, status, NULL);
}

static void pour_stopped(ew_call *call, void *arg) {
    (void)arg;
    poured(call, EW_STATUS_CANCELLED);
}

static void pour_more(ew_call *call, void *arg) {
    pouring *p = arg;
    for (int i = 0; i < 64 && p->left > 0; i++) {
        ew_err err = ew_call_chunkf(call, "{\"left\":%lld,\"text\":%q}", (long long)p->left,
                                    ((ew_str){p->text, (size_t)p->size}));
        if (err < 0) { /* a cancel is told by its callback */
            if (err != EW_ECANCELLED && err != EW_EENDED)
                poured(call, EW_STATUS_ABORTED);
            return;
        }
        p->left--;
        if (err == EW_FULL && p->left > 0) {
            atomic_fetch_add(&seen.waits, 1);
            (void)ew_call_on_room(call, pour_more, p);
            return;
        }
    }
    if (p->left > 0)
        (void)ew_call_after(call, 0, pour_more, p);
    else
        poured(call, EW_STATUS_OK);
}

static void pour(ew_call *call, void *arg) {
    (void)arg;
    pouring *p = ew_call_alloc(call, sizeof *p);
    *p = (pouring){.left = json_int_or(ew_call_input(call), "/n", 10),
                   .size = json_int_or(ew_call_input(call), "/size", 100)};
    p->text = ew_call_alloc(call, (size_t)p->size);
    memset(p->text, 'x', (size_t)p->size);
    atomic_fetch_add(&seen.pouring, 1);
    if (ew_call_cancelled(call)) {
        poured(call, EW_STATUS_CANCELLED);
        return;
    }
    (void)ew_call_on_cancel(call, pour_stopped, NULL);
    pour_more(call, p);
}

/* ---- say: {"v":[...]}: each element is a chunk; returns its input ---- */

static void say(ew_call *call, void *arg) {
    ew_json_iter it = {.offset_ = 0};
    (void)arg;
    while (ew_json_next(ew_json_member(ew_call_input(call), EW_STR("v")), &it))
        (void)ew_call_chunk(call, it.value);
    (void)ew_call_done(call, ew_call_input(call));
}

/* ---- nested: {"depth":N,"as":"result"|"chunk"|"details"}: arrays in arrays; {"bytes":N}: a string of so many ---- */

static void say_bytes(ew_call *call, size_t n) {
    char *text = ew_call_alloc(call, n);
    memset(text, 'x', n);
    text[0] = text[n - 1] = '"';
    (void)ew_call_done(call, (ew_str){text, n});
}

static void nested(ew_call *call, void *arg) {
    (void)arg;
    ew_str input = ew_call_input(call), as = json_str_or(input, "/as", EW_STR("result"));
    size_t depth = (size_t)json_int_or(input, "/depth", 1), n = (size_t)json_int_or(input, "/bytes", 0);
    if (n > 0) {
        say_bytes(call, n);
        return;
    }
    char *text = ew_call_alloc(call, 2 * depth);
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    ew_str value = {text, 2 * depth};
    if (as.len == 7) {
        (void)ew_call_fail_with(
            call, &(ew_fault){.status = EW_STATUS_ABORTED, .message = EW_STR("aborted"), .details = value});
        return;
    }
    if (as.len == 5)
        (void)ew_call_chunk(call, value);
    (void)ew_call_done(call, as.len == 5 ? EW_STR("1") : value);
}

/* ---- gather: does not look at its input stream before it may; tells its length, and a hash for the order ---- */

void gathered_add(gathered *g, ew_str chunk) {
    g->bytes += chunk.len;
    for (size_t i = 0; i < chunk.len; i++)
        g->hash = (g->hash ^ (unsigned char)chunk.ptr[i]) * 0x100000001b3;
}

const char *gathered_text(const gathered *g, char out[64]) {
    (void)snprintf(out, 64, "[%llu,%llu]", (unsigned long long)g->bytes, (unsigned long long)g->hash);
    return out;
}

static void take(ew_call *call, ew_str chunk, bool end, void *arg) {
    char text[64];
    gathered_add(arg, chunk);
    if (end)
        (void)ew_call_done(call, ew_str_from(gathered_text(arg, text)));
}

static void look(ew_call *call, void *arg) {
    if (!atomic_load(&seen.look))
        (void)ew_call_after(call, 10, look, arg);
    else if (ew_call_on_input(call, take, arg) == EW_EUNSUPPORTED)
        (void)ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT, "no input stream");
}

static void gather(ew_call *call, void *arg) {
    gathered *g = ew_call_alloc(call, sizeof *g);
    (void)arg;
    *g = (gathered){0};
    look(call, g);
}

/* ---- who, seen ---- */

static void who(ew_call *call, void *arg) {
    atomic_fetch_add(&seen.asked, 1);
    (void)ew_call_donef(call, "{\"id\":%Q,\"pid\":%d}", (const char *)arg, (int)getpid());
}

static void tell(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_donef(call, "{\"opened\":%d,\"running\":%d,\"cancelled\":%d,\"deadline_ms\":%d,\"pouring\":%d}",
                        atomic_load(&seen.opened), atomic_load(&seen.running), atomic_load(&seen.cancelled),
                        atomic_load(&seen.deadline_ms), atomic_load(&seen.pouring));
}

void add_actions(ew_app *app, const char *id) {
    static const struct {
        const char *key;
        ew_handler_fn fn;
    } actions[] = {{"/flow/forever", for_ever}, {"/flow/pour", pour}, {"/flow/say", say},      {"/flow/gather", gather},
                   {"/flow/who", who},          {"/flow/seen", tell}, {"/flow/nested", nested}};
    if (ew__demo_register(app) != EW_OK)
        exit(3);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (ew_app_action(app, actions[i].key, actions[i].fn, (void *)(uintptr_t)id, NULL) != EW_OK)
            exit(3);
}
