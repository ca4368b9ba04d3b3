/*
 * program/supervisor.c: see supervisor.h. Part of ew_app_main: nothing else of the library looks at the environment
 * for this.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/supervisor.h"
#include "io/supervisor.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FIRST_SOCKET 3
#define TICKS 4 /* so often in the watchdog's time it is told: a loop may be slow for most of it */

/* ---- the environment ---- */

static const char *const variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC",  "WATCHDOG_PID",
                                        "LISTEN_FDS",    "LISTEN_FDNAMES", "LISTEN_PID"};

/* A variable that is a number; `absent` when there is none, or no number. */
static uint64_t number(const char *name, uint64_t absent) {
    const char *text = getenv(name);
    uint64_t value;
    return text && ew__u64_parse(ew_str_from(text), &value) ? value : absent;
}

static bool is_wire(ew_str name) {
    const ew__wire *wire = ew__wire_by_name(name);
    return wire && wire->caps & EW__CAN_SERVE;
}

/* A socket's name is its wire; anything else, such as the name of the unit that it has by default, stands for any. */
static void read_names(ew__supervisor *s) {
    const char *names = getenv("LISTEN_FDNAMES");
    (void)snprintf(s->names, sizeof s->names, "%s", names ? names : "");
    char *at = s->names;
    for (int i = 0; i < s->n_sockets && at; i++) {
        char *name = strsep(&at, ":");
        s->wires[i] = is_wire(ew_str_from(name)) ? name : NULL;
    }
}

static void read_sockets(ew__supervisor *s) {
    uint64_t n = number("LISTEN_FDS", 0);
    if (number("LISTEN_PID", 0) != (uint64_t)getpid())
        return; /* they were somebody else's */
    s->n_sockets = n < EW__LISTENERS_MAX ? (int)n : EW__LISTENERS_MAX;
    for (int i = 0; i < s->n_sockets; i++)
        (void)fcntl(FIRST_SOCKET + i, F_SETFD, FD_CLOEXEC);
    read_names(s);
}

void ew__supervisor_init(ew__supervisor *s) {
    const char *notify = getenv("NOTIFY_SOCKET");
    memset(s, 0, sizeof *s);
    if (notify && strlen(notify) < sizeof s->notify)
        memcpy(s->notify, notify, strlen(notify) + 1);
    if (*s->notify && number("WATCHDOG_PID", (uint64_t)getpid()) == (uint64_t)getpid())
        s->tick_ns = number("WATCHDOG_USEC", 0) / TICKS * 1000;
    read_sockets(s);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        (void)unsetenv(variables[i]);
}

ew_err ew__supervisor_listen(const ew__supervisor *s, ew_app *app, char *ret_text, size_t size) {
    ew_err err = EW_OK;
    for (int i = 0; i < s->n_sockets && err == EW_OK; i++) {
        (void)snprintf(ret_text, size, "%s=fd:%d", s->wires[i] ? s->wires[i] : "any", FIRST_SOCKET + i);
        err = ew__app_add_listener(app, ret_text);
    }
    return err;
}

/* ---- messages ---- */

static void tell(const ew__supervisor *s, const char *message) {
    if (*s->notify)
        (void)ew__notify(s->notify, ew_str_from(message)); /* nobody is left to be told that it failed */
}

void ew__supervisor_ready(ew__supervisor *s, const ew_app *app) {
    char message[160];
    size_t n = ew__app_n_listeners(app);
    (void)snprintf(message, sizeof message, "READY=1\nSTATUS=serving on %zu %s", n, n == 1 ? "listener" : "listeners");
    if (app->n_connects > 0)
        (void)snprintf(message + strlen(message), sizeof message - strlen(message), ", %zu managers", app->n_connects);
    tell(s, message);
}

void ew__supervisor_reloading(ew__supervisor *s) {
    char message[128];
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* allow-banned: systemd compares it with the kernel's own clock */
    (void)snprintf(message, sizeof message, "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=reading its file again",
                   (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
    tell(s, message);
}

void ew__supervisor_ending(ew__supervisor *s, const char *why) {
    char message[160];
    if (s->ending)
        return;
    s->ending = true;
    (void)snprintf(message, sizeof message, "STOPPING=1\nSTATUS=%s", why);
    tell(s, message);
}

/* ---- the watchdog ---- */

static void on_pulse(ew__task *task) {
    ew__app_loop *loop = ew__container_of(task, ew__app_loop, pulse_task);
    atomic_store(&loop->pulse_sent, false);
}

/*
 * Whether every loop has answered the last letter; sends the next one. While loops end there is nothing to ask. The lock
 * keeps their memory: it is freed only after all of them have been counted as ended, under the same lock.
 */
static bool all_alive(ew_app *app) {
    bool alive = true;
    pthread_mutex_lock(&app->lifecycle.lock);
    for (size_t i = 0; i < app->n_loops && app->lifecycle.running == app->n_loops; i++) {
        ew__app_loop *loop = &app->loops[i];
        if (atomic_exchange(&loop->pulse_sent, true)) {
            alive = false;
            continue;
        }
        loop->pulse_task.fn = on_pulse;
        ew__executor_post(&loop->loop.executor, &loop->pulse_task);
    }
    pthread_mutex_unlock(&app->lifecycle.lock);
    return alive;
}

void ew__supervisor_pulse(ew__supervisor *s, ew_app *app) {
    uint64_t now = app->env->now_ns(app->env->ud);
    if (!s->tick_ns || now < s->due_ns)
        return;
    s->due_ns = now + s->tick_ns;
    if (all_alive(app))
        tell(s, "WATCHDOG=1");
}
