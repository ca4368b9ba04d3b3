/*
 * gateway/away.h: actions of a runtime that has left and is expected back, and the calls that wait for it.
 *
 * Such an action is an action of its own (call/action.h, `away`), published in place of the runtime's. A call to it
 * waits on the loop that it came to, until an action of the same key is there, at most limits->reconnect_ms.
 */
#ifndef EW_GATEWAY_AWAY_H
#define EW_GATEWAY_AWAY_H

#include "call/call.h"

struct ew__app_loop;

#define EW__AWAY_RETRY_MS 1000 /* when a caller that was refused should try again */

/* The calls that wait on one loop, oldest first. Loop thread only. */
typedef struct ew__away_calls {
    ew__list waiting;
    ew__list_node *cursor; /* next node of the walk under way; NULL: none */
    uint32_t n;            /* at most limits->client_queue */
    ew__timer timer;
} ew__away_calls;

/* The action as it is listed while its runtime is away. Any thread. EW_OK, EW_ENOMEM. */
ew_err ew__away_action_new(const ew_env *env, ew_str runtime, const ew__action *action, ew__action **ret);
/* The list of actions has changed: calls whose action is there again go on. Loop thread. */
void ew__away_refresh(struct ew__app_loop *loop);
/* Fails all calls that wait. Loop thread. */
void ew__away_close(struct ew__app_loop *loop);
/* Fails a call because its runtime is not there: UNAVAILABLE, to be tried again after EW__AWAY_RETRY_MS. The executor's thread. */
void ew__away_fail(ew_call *call, ew_str message);

#endif
