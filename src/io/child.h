/*
 * io/child.h: a program of ours whose standard input and output are a stream. libuv's own way is not used: it installs
 * a handler of SIGCHLD, and the library touches no signal.
 *
 * The child has a socket (or a pipe: pipe_input) as descriptor 0 and pipes as 1 and 2; nothing else of ours. It leads
 * a process group and dies with the thread that started it. What it writes to 2 is logged line by line, lines cut at 1
 * KiB, at most EW__CHILD_LINES a second, the rest counted.
 *
 * Its end: when the stream is closed or finished, or it is dismissed, it sees eof; 500 ms later its group gets SIGTERM,
 * 2 s later (or after grace_ms) SIGKILL.
 * The stream's closed comes when it has been reaped. When it ends by itself, what it wrote is still read to the end,
 * and what is left of its group gets the same two signals.
 *
 * A managed process is a program that will reach us by another way: what it writes to 1 is logged as what it writes to 2 is,
 * 0 is a socket that stays open and silent, and because it does not look there, SIGTERM comes after farewell_ms. Of
 * one that tells, 1 is the stream.
 */
#ifndef EW_IO_CHILD_H
#define EW_IO_CHILD_H

#include "io/stream.h"

#define EW__CHILD_LINES 1000

typedef struct ew__child ew__child;

/* Told once, on the loop thread: 0, and the stream can be started; or an error of libuv, and nothing is left. */
typedef void (*ew__child_started)(void *ud, int error);

/*
 * Starts where->argv (borrowed as long as the stream lives, as vars is). 0, or an error of libuv: then started will not
 * be called.
 */
int ew__child_start(ew__loop *loop, ew__stream *stream, const ew__where *where, ew__child_started started, void *ud,
                    ew__child **ret_child);
/* Before started was called: gives it up. started(UV_ECANCELED) follows when it is gone. */
void ew__child_abandon(ew__child *child);

/* ---- while its stream is open; what it writes still comes, until the owner closes the stream ---- */

/* It is no longer needed: its end begins as if the stream were closed. */
void ew__child_dismiss(ew__stream *stream);
/* Its group gets SIGTERM now, and SIGKILL after grace_ms. */
void ew__child_terminate(ew__stream *stream);
/* Whether it has not ended, as the kernel knows it: we may hear of that later. */
bool ew__child_runs(const ew__stream *stream);

/* ---- making the process: spawn.c ---- */

typedef struct ew__spawned {
    pid_t pid;
    int input;   /* standard input, our end; -1: there is nothing but `output` */
    int output;  /* standard output, our end; of a managed process that does not announce, standard input */
    int errors;  /* standard error, to read */
    int verdict; /* eof when the program runs; errno as an int when it does not */
} ew__spawned;

/* The descriptors are non-blocking and close-on-exec. 0 or an error of libuv. */
int ew__spawn(const ew_env *env, const ew__where *where, ew__spawned *ret);

#endif
