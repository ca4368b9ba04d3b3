/*
 * base/timer.h: a heap of timers on a caller-given clock. No clock inside: `now` is an argument.
 * Setting a timer allocates only when there are more set timers than ever before; ew__timers_reserve makes that an
 * early error.
 */
#ifndef EW_BASE_TIMER_H
#define EW_BASE_TIMER_H

#include <everywire/env.h>

typedef struct ew__timer ew__timer;
typedef void (*ew__timer_fn)(ew__timer *timer, uint64_t now);

/* Starts as zeros. It must live while it is set. */
struct ew__timer {
    ew__timer_fn fn;
    uint64_t at;    /* nanoseconds on the owner's clock */
    uint64_t order; /* of being set: decides between timers of the same time */
    uint32_t index; /* place in the heap's array + 1; 0 = not set */
};

typedef struct ew__timers {
    const ew_env *env;
    ew__timer **heap; /* n in heap order at the start; n_late in no order at the end of the array */
    uint64_t order;   /* of the timer set last */
    uint64_t run_now; /* while running: its `now` */
    uint32_t n;
    uint32_t n_late; /* set for now or earlier by a callback of the present run */
    uint32_t cap;
    bool running;
} ew__timers;

#define EW__NEVER UINT64_MAX

void ew__timers_init(ew__timers *timers, const ew_env *env);
void ew__timers_done(ew__timers *timers); /* stops the timers that are still set, then frees */
/* Makes room for n set timers in all: setting up to n cannot fail then. EW_OK or EW_ENOMEM. */
ew_err ew__timers_reserve(ew__timers *timers, uint32_t n);
/* Sets or moves a timer. EW_OK or EW_ENOMEM (only for a timer that was not set; it stays so). */
ew_err ew__timer_set(ew__timers *timers, ew__timer *timer, uint64_t at, ew__timer_fn fn);
void ew__timer_stop(ew__timers *timers, ew__timer *timer); /* not set: nothing */
static inline bool ew__timer_active(const ew__timer *timer) { return timer->index != 0; }
uint64_t ew__timers_next(const ew__timers *timers); /* when the earliest is due, or EW__NEVER */
/*
 * Runs every timer due at `now`, earliest first, those of the same time in the order they were set; ones set by a
 * callback for now or earlier wait for the next run. A callback may set, stop and free any timer (its own too, which is
 * no longer set when it runs); a run inside a run does nothing.
 */
void ew__timers_run(ew__timers *timers, uint64_t now);
/* The same for at most max of them; the others stay due. */
void ew__timers_run_some(ew__timers *timers, uint64_t now, uint32_t max);

#endif
