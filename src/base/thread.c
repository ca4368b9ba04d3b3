/*
 * base/thread.c: see thread.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/thread.h"
#include <signal.h>
#include <time.h>

bool ew__thread_start(pthread_t *ret_thread, void *(*main)(void *arg), void *arg) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all,
                    &old); /* allow-banned: a new thread inherits the mask; ours is put back at once */
    int err = pthread_create(ret_thread, NULL, main, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL); /* allow-banned: see above */
    return err == 0;
}

void ew__cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

struct timespec ew__cond_until(uint64_t ms) {
    const uint64_t year = (uint64_t)366 * 24 * 3600 * 1000; /* longer waits would overflow time_t somewhere */
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at); /* allow-banned: the condition's own clock */
    ms = ms < year ? ms : year;
    at.tv_sec += (time_t)(ms / 1000);
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}
