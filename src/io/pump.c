/*
 * io/pump.c: see pump.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/pump.h"
#include "base/thread.h"
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER ((size_t)16 * 1024)

typedef enum state { RUNNING, ENDED, ABANDONED } state;

struct ew__pump {
    ew__task task; /* first: tells the loop of the end */
    ew__loop *loop;
    pthread_t thread;
    int from, to;
    atomic_int state;
    void (*ended)(void *ud);
    void *ud;
};

static bool write_all(int fd, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

/* Its signals are blocked, SIGPIPE too (ew__thread_start). */
static void *pump_main(void *arg) {
    ew__pump *pump = arg;
    char buffer[BUFFER];
    ssize_t n;
    do {
        n = read(pump->from, buffer, sizeof buffer);
    } while ((n < 0 && errno == EINTR) || (n > 0 && write_all(pump->to, buffer, (size_t)n)));
    close(pump->from);
    close(pump->to);
    int expected = RUNNING;
    if (atomic_compare_exchange_strong(&pump->state, &expected, ENDED))
        ew__executor_post(&pump->loop->executor, &pump->task);
    return NULL;
}

static void on_ended(ew__task *task) {
    ew__pump *pump = ew__container_of(task, ew__pump, task);
    void (*ended)(void *ud) = pump->ended;
    void *ud = pump->ud;
    pthread_join(pump->thread, NULL);
    ew__free(pump->loop->executor.env, pump, sizeof *pump);
    if (ended)
        ended(ud);
}

ew_err ew__pump_start(ew__loop *loop, int file, bool reading, void (*ended)(void *ud), void *ud, ew__pump **ret_pump,
                      int *ret_socket) {
    int pair[2] = {-1, -1};
    ew__pump *pump = ew__zalloc(loop->executor.env, sizeof *pump);
    if (!pump) {
        close(file);
        return EW_ENOMEM;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        close(file);
        ew__free(loop->executor.env, pump, sizeof *pump);
        return EW_EIO;
    }
    pump->task.fn = on_ended;
    pump->loop = loop;
    pump->from = reading ? file : pair[1];
    pump->to = reading ? pair[1] : file;
    pump->ended = ended;
    pump->ud = ud;
    if (!ew__thread_start(&pump->thread, pump_main, pump)) {
        close(file);
        close(pair[0]);
        close(pair[1]);
        ew__free(loop->executor.env, pump, sizeof *pump);
        return EW_EIO;
    }
    *ret_pump = pump;
    *ret_socket = pair[0];
    return EW_OK;
}

void ew__pump_forget(ew__pump *pump) { pump->ended = NULL; }

bool ew__pump_abandon(ew__pump *pump) {
    int expected = RUNNING;
    if (!atomic_compare_exchange_strong(&pump->state, &expected, ABANDONED))
        return false;
    pthread_detach(pump->thread); /* it keeps its memory: nobody knows when it is done with it */
    return true;
}
