/*
 * cli/demo.h: what the files of the demo actions share. Users try these actions, tests and benchmarks rely on them:
 * their answers are fixed.
 */
#ifndef EW_CLI_DEMO_H
#define EW_CLI_DEMO_H

#include <everywire/everywire.h>

/*
 * Reads an integer member of the input. A missing one (or an input of null) gives *ret its value from before. False:
 * the call was ended, with INVALID_ARGUMENT for what is no integer or below min, with above_max beyond max.
 */
bool ew__demo_int(ew_call *call, const char *name, int64_t min, int64_t max, ew_status above_max, int64_t *ret);

/*
 * What a chunk's answer means for a producer: true to go on (wait for room if it is EW_FULL); false: the call is over,
 * return at once.
 */
bool ew__demo_sent(ew_call *call, ew_err err);

/* Asks for fn to be called later, and ends the call if that cannot be had. */
void ew__demo_later(ew_call *call, uint64_t ms, ew_call_fn fn, void *arg);
void ew__demo_on_room(ew_call *call, ew_call_fn fn, void *arg);

/* Has the call end with CANCELLED as soon as it is cancelled. False: it was already, and has ended. */
bool ew__demo_mind_cancel(ew_call *call);

/* Handlers, see the table in demo.c. */
void ew__demo_count(ew_call *call, void *arg);
void ew__demo_stream(ew_call *call, void *arg);
void ew__demo_sum(ew_call *call, void *arg);

#define EW__DEMO_CHUNKS_MAX 10000000
#define EW__DEMO_MS_MAX 86400000
#define EW__DEMO_PER_TURN 256 /* chunks between two turns of the loop: other calls want their share */

#endif
