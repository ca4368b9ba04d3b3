/*
 * handler/exec.h: programs as handlers. One ew__exec is one action's programs: a process for each call, or a few that
 * stay. It lives on one loop; calls of other loops are cross-loop calls. May include: base, json, call, io.
 */
#ifndef EW_HANDLER_EXEC_H
#define EW_HANDLER_EXEC_H

#include "call/call.h"
#include "io/loop.h"
#include <everywire/gateway.h>

typedef struct ew__exec ew__exec;

/*
 * Checks and copies the options; limits is borrowed until it has settled. Any thread. EW_OK; EW_EINVAL with a constant
 * line for people; EW_ENOMEM.
 */
ew_err ew__exec_new(const ew_env *env, const ew_limits *limits, const char *key, const ew_exec_options *options,
                    ew__exec **ret, const char **ret_problem);
/* The loop that it lives on: before the first call, once. No process is started yet. */
void ew__exec_settle(ew__exec *exec, ew__loop *loop);
/* The callee's table; its ud is the ew__exec. On the loop's thread. */
extern const ew__callee_ops ew__exec_callee;
/*
 * Ends all processes (eof, SIGTERM, SIGKILL: child.h); calls that run or wait fail UNAVAILABLE; later ones, too.
 * on_closed follows when no process is left, possibly at once. On the loop's thread, once.
 */
void ew__exec_close(ew__exec *exec, void (*on_closed)(void *ud), void *ud);
/* Never settled, or closed. Any thread. */
void ew__exec_free(ew__exec *exec);

#endif
