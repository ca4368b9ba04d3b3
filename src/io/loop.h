/*
 * io/loop.h: an event loop, which is an executor of calls. Only the files of io use libuv (io/handle.h).
 *
 * A turn of the loop: wait for events; run their callbacks; run the timers that are due; then write the queued output,
 * once per stream.
 */
#ifndef EW_IO_LOOP_H
#define EW_IO_LOOP_H

#include "base/executor.h"
#include <pthread.h>

typedef struct ew__loop ew__loop;
typedef struct ew__stream ew__stream;
typedef struct ew__tapping ew__tapping; /* endpoint/tap.h */

/*
 * Polling for readiness before sleeping. A wake-up costs more than the answer to a small call, for the sender and for the
 * thread that sleeps. A loop that has forwarded a call polls for the answer for at most limits->spin_us, as long as
 * recent waits were short enough.
 */
typedef struct ew__spin {
    atomic_bool *taken;  /* shared by loops, of which one spins at a time; NULL disables spinning */
    bool here;           /* this loop holds *taken */
    bool expects;        /* a call was forwarded, and no spin has timed out since */
    bool woken;          /* by another thread, in this turn */
    int8_t score;        /* grows with short waits, falls with long ones; the loop does not spin below 0 */
    uint64_t last_event; /* time of the last read or wake-up */
} ew__spin;

struct ew__loop_handles; /* handle.h */

struct ew__loop {
    ew__executor executor;
    struct uv_loop_s *uv; /* the host's, or one of *handles */
    struct ew__loop_handles *handles;
    bool owns_uv;
    bool closing;
    pthread_t thread; /* that runs it */
    atomic_bool running;
    uint64_t timer_armed; /* due time of handles->timer; EW__NEVER: stopped */
    ew__fifo_node *dirty; /* streams with something to send */
    ew__fifo soon;        /* those whose bytes may wait for others, in the order in which they began to */
    ew__timer soon_timer; /* while there are any */
    char *read_buffer;    /* one for all streams: what is read is taken or copied at once */
    uint8_t *opened; /* the same for what TLS has opened, and for what it is about to seal; NULL until it is used */
    uint8_t *gathered;
    uint64_t tls_told_at; /* since then the log was told of so many failed handshakes, or would have been */
    unsigned tls_told;
    uint32_t turn;   /* counted from 1 */
    uint32_t n_read; /* reads of this turn */
    bool busy;       /* the last turn read from many streams */
    ew__spin spin;
    unsigned n_handles;   /* of ours, still to be closed */
    ew__tapping *tapping; /* who looks at what its streams carry; NULL: nobody */
    void (*on_closed)(ew__loop *loop, void *ud);
    void *on_closed_ud;
};

#define EW__READ_BUFFER ((size_t)64 * 1024)

/* On the host's loop, or (host NULL) on one of its own. EW_OK, EW_ENOMEM, EW_EIO. */
ew_err ew__loop_init(ew__loop *loop, const ew_env *env, const ew_limits *limits, struct uv_loop_s *host);
/* Own loops: runs on the calling thread until ew__loop_close has done its work. */
void ew__loop_run(ew__loop *loop);
/* Runs one turn on the calling thread; wait: until an event comes or a timer is due. */
void ew__loop_turn(ew__loop *loop, bool wait);
/* ew__loop_run returns after this turn, with handles left open. Loop thread. */
void ew__loop_stop(ew__loop *loop);
/* The calling thread is the one that runs it (a host's loop, or before ew__loop_run in a new thread). */
void ew__loop_adopt_thread(ew__loop *loop);
/*
 * Closes the loop's own handles; on_closed follows when they are. Streams and listeners must be closed already. Loop
 * thread.
 */
void ew__loop_close(ew__loop *loop, void (*on_closed)(ew__loop *loop, void *ud), void *ud);
/* Frees the rest. After on_closed (a host's loop), or after ew__loop_run returned. */
void ew__loop_done(ew__loop *loop);

/* A call was sent on to another program, whose answer is likely to come soon. Loop thread. */
static inline void ew__loop_expect(ew__loop *loop) { loop->spin.expects = true; }

/*
 * Between two callbacks: what this thread has posted to itself (a call that is begun at another's end) is done now, not
 * in the next turn, when much more may have been read.
 */
void ew__loop_run_own(ew__loop *loop);

static inline ew__loop *ew__loop_of(ew__executor *executor) { return ew__container_of(executor, ew__loop, executor); }

/* Cores that this process may use, at least 1. */
unsigned ew__cores(void);

#endif
