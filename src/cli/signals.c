/*
 * cli/signals.c: an interrupted call, or wait for a job: the first SIGINT or SIGTERM asks for its end and gives it a moment, the second
 * one does not wait. A thread waits for the signals, so that nothing has to be safe inside a signal handler.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/*
 * A peer that does not react, or an output that nobody reads, must not hold the user. More than runner_grace_ms: then a
 * process that we have started is still ended by us, with all that it has started.
 */
#define GRACE_SECONDS 3

struct ew__interrupt {
    void (*stop)(void *ud);
    void *ud;
    pthread_t thread;
    atomic_int number; /* the signal that came, or 0 */
    atomic_bool over;
};

static void fill_set(sigset_t *set) {
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGTERM);
}

static void *watch(void *arg) {
    ew__interrupt *in = arg;
    sigset_t set;
    int number = 0;
    fill_set(&set);
    while (sigwait(&set, &number) != 0) {
    }
    if (atomic_load(&in->over)) {
        return NULL;
    }
    atomic_store(&in->number, number);
    in->stop(in->ud);
    struct timespec grace = {.tv_sec = GRACE_SECONDS};
    (void)sigtimedwait(&set, NULL, &grace);
    if (!atomic_load(&in->over)) {
        _exit(EW__EXIT_SIGNAL + number);
    }
    return NULL;
}

/*
 * A shell script starts its background jobs with SIGINT ignored, and what is ignored never reaches sigwait: hence the
 * default action.
 */
void ew__interrupt_block(void) {
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t set;
    fill_set(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)sigaction(SIGINT, &plain, NULL);
    (void)sigaction(SIGTERM, &plain, NULL);
}

static void unblock(void) {
    sigset_t set;
    fill_set(&set);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

ew__interrupt *ew__interrupt_start(void (*stop)(void *ud), void *ud) {
    ew__interrupt *in = ew__cli_alloc(sizeof *in);
    if (in) {
        in->stop = stop;
        in->ud = ud;
        if (pthread_create(&in->thread, NULL, watch, in) == 0) {
            return in;
        }
        ew__cli_free(in, sizeof *in);
    }
    unblock();
    return NULL;
}

int ew__interrupt_end(ew__interrupt *in) {
    if (!in) {
        return 0;
    }
    atomic_store(&in->over, true);
    (void)pthread_kill(in->thread, SIGTERM); /* wakes it from its wait; it is gone only after the join */
    (void)pthread_join(in->thread, NULL);
    int number = atomic_load(&in->number);
    ew__cli_free(in, sizeof *in);
    return number;
}
