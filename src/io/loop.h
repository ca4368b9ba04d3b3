/*
 * io/loop.h: an event loop that is a executor for calls. io is the only room that knows libuv. May include: base.
 *
 * A turn of the loop: wait for events; their callbacks; timers that are due; then everything that wants to be sent is
 * sent, once per stream.
 */
#ifndef EW_IO_LOOP_H
#define EW_IO_LOOP_H

#include "base/executor.h"
#include <pthread.h>
#include <uv.h>

typedef struct ew__loop ew__loop;
typedef struct ew__stream ew__stream;
typedef struct ew__tapping ew__tapping; /* endpoint/tap.h */

/*
 * Looking before sleeping. To be woken up costs more than to answer a small call, on both sides: whoever sends pays for
 * the waking, whoever sleeps waits for it. A loop that has sent a call on looks for the answer for a moment
 * (limits->spin_us) instead, as long as that has paid of late.
 */
typedef struct ew__spin {
    atomic_bool *taken;  /* of the loops that share this one looks at a time; NULL: this loop never does */
    bool here;           /* it is this loop that does */
    bool expects;        /* a call was sent on, and no look has been in vain since */
    bool woken;          /* by another thread, in this turn */
    int8_t luck;         /* grows with short waits, falls with long ones; below 0 it is not worth looking */
    uint64_t last_event; /* when something came last */
} ew__spin;

struct ew__loop {
    ew__executor executor;
    uv_loop_t *uv;
    uv_loop_t own; /* when it is not the host's */
    bool owns_uv;
    bool closing;
    pthread_t thread; /* that runs it */
    atomic_bool running;
    uv_async_t wake;
    uv_prepare_t before_wait;
    uv_check_t after_wait;
    uv_timer_t timer;
    uv_idle_t idle;       /* active while something is due at once: the loop then does not wait */
    uint64_t timer_armed; /* what `timer` is set for, EW__NEVER for nothing */
    pthread_mutex_t lock; /* of the two below */
    ew__task *posted, *posted_last;
    bool own_posts;               /* the loop's thread itself has posted; its own */
    ew__stream *dirty;            /* streams with something to send */
    ew__stream *soon, *soon_last; /* those whose bytes may wait for others, in the order in which they began to */
    ew__timer soon_timer;         /* while there are any */
    char *read_buffer;            /* one for all streams: what is read is taken or copied at once */
    uint8_t *opened; /* the same for what TLS has opened, and for what it is about to seal; NULL until it is used */
    uint8_t *gathered;
    uint64_t tls_told_at; /* since then the log was told of so many failed handshakes, or would have been */
    unsigned tls_told;
    uint32_t turn;   /* counted from 1 */
    uint32_t n_read; /* reads of this turn */
    bool busy;       /* the last turn read from many streams */
    ew__spin look;
    unsigned n_handles;   /* of ours, still to be closed */
    ew__tapping *tapping; /* who looks at what its streams carry; NULL: nobody */
    void (*on_closed)(ew__loop *loop, void *ud);
    void *on_closed_ud;
};

#define EW__READ_BUFFER ((size_t)64 * 1024)

/* On the host's loop, or (host NULL) on one of its own. EW_OK, EW_ENOMEM, EW_EIO. */
ew_err ew__loop_init(ew__loop *loop, const ew_env *env, const ew_limits *limits, uv_loop_t *host);
/* Own loops: runs on the calling thread until ew__loop_close has done its work. */
void ew__loop_run(ew__loop *loop);
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
static inline void ew__loop_expect(ew__loop *loop) { loop->look.expects = true; }

/*
 * Between two callbacks: what this thread has posted to itself (a call that is begun at another's end) is done now, not
 * in the next turn, when much more may have been read.
 */
void ew__loop_run_own(ew__loop *loop);

static inline ew__loop *ew__loop_of(ew__executor *executor) { return ew__container_of(executor, ew__loop, executor); }

/* What libuv's error number is in our words. */
ew_err ew__err_from_uv(int error);

#endif
