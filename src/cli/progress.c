/*
 * cli/progress.c: one line on standard error that tells of something that takes longer than a second: drawn again and
 * again by a thread of its own, gone when it is over. Nothing at all unless standard error is a terminal. There is one
 * such line in a program, so its state is the program's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "cli/jobs.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define FIRST_MS 1000
#define NEXT_MS 200
#define ERASE "\r\033[K"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    ew__progress_fn describe;
    void *ud;
    uint64_t since_ms;
    pthread_t thread;
    unsigned paused;
    bool runs, over, drawn, forbidden;
} line = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void write_some(const char *bytes, size_t n) {
    ssize_t done = write(STDERR_FILENO, bytes, n);
    (void)done; /* what a terminal does not take is not missed */
}

static void erase(void) {
    if (line.drawn) {
        write_some(ERASE, sizeof ERASE - 1);
        line.drawn = false;
    }
}

static unsigned columns(void) {
    struct winsize size = {0};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

static void draw(void) {
    ew__text text = {0};
    char what[400] = "", span[32], out[600];
    line.describe(line.ud, what, sizeof what);
    ew__cli_span((uint64_t)ew__now_ms() - line.since_ms, span, sizeof span);
    if (*what && ew__text_cstr(&text, what) == EW_OK && ew__text_cstr(&text, " (") == EW_OK &&
        ew__text_cstr(&text, span) == EW_OK && ew__text_cstr(&text, ")") == EW_OK &&
        ew__text_cut(&text, 0, columns() - 1) == EW_OK) {
        int n = snprintf(out, sizeof out, ERASE "%.*s", (int)text.len, text.ptr);
        write_some(out, n < (int)sizeof out ? (size_t)n : sizeof out - 1);
        line.drawn = true;
    }
    ew__text_free(&text);
}

static void *run(void *arg) {
    struct timespec next;
    (void)arg;
    (void)clock_gettime(CLOCK_MONOTONIC, &next);
    next.tv_sec += FIRST_MS / 1000;
    (void)pthread_mutex_lock(&line.lock);
    while (!line.over) {
        if (pthread_cond_timedwait(&line.changed, &line.lock, &next) != ETIMEDOUT) {
            continue;
        }
        if (!line.paused) {
            draw();
        }
        next.tv_nsec += NEXT_MS * 1000000L;
        next.tv_sec += next.tv_nsec / 1000000000L;
        next.tv_nsec %= 1000000000L;
    }
    erase();
    (void)pthread_mutex_unlock(&line.lock);
    return NULL;
}

void ew__progress_text(void *ud, char *out, size_t size) { (void)snprintf(out, size, "%s", (const char *)ud); }

void ew__progress_forbid(void) { line.forbidden = true; }

void ew__progress_start(ew__progress_fn describe, void *ud) {
    pthread_condattr_t clock;
    sigset_t all, old;
    if (line.runs || line.forbidden || !isatty(STDERR_FILENO)) {
        return;
    }
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&line.changed, &clock);
    (void)pthread_condattr_destroy(&clock);
    line.describe = describe;
    line.ud = ud;
    line.since_ms = (uint64_t)ew__now_ms();
    line.over = false;
    (void)sigfillset(&all); /* signals are for the threads that wait for them */
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    line.runs = pthread_create(&line.thread, NULL, run, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!line.runs) {
        (void)pthread_cond_destroy(&line.changed);
    }
}

void ew__progress_end(void) {
    if (!line.runs) {
        return;
    }
    (void)pthread_mutex_lock(&line.lock);
    line.over = true;
    (void)pthread_cond_signal(&line.changed);
    (void)pthread_mutex_unlock(&line.lock);
    (void)pthread_join(line.thread, NULL);
    (void)pthread_cond_destroy(&line.changed);
    line.runs = false;
}

/* The lock is not held while somebody writes: what he writes to may be stalled, and the end must not wait for it. */
void ew__progress_pause(bool on) {
    (void)pthread_mutex_lock(&line.lock);
    if (on) {
        erase();
        line.paused++;
    } else {
        line.paused--;
    }
    (void)pthread_mutex_unlock(&line.lock);
}
