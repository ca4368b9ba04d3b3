/*
 * base/thread.h: the few words about threads that rooms share: threads that take no signals, and conditions that wait
 * on the monotonic clock.
 */
#ifndef EW_BASE_THREAD_H
#define EW_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Starts a thread with all signals blocked: they are the host's business. False when there can be none. */
bool ew__thread_start(pthread_t *ret_thread, void *(*main)(void *arg), void *arg);

/* A condition for ew__cond_until. */
void ew__cond_init(pthread_cond_t *cond);

/* The moment that many milliseconds from now (a year at most), for pthread_cond_timedwait on such a condition. */
struct timespec ew__cond_until(uint64_t ms);

#endif
