/*
 * api/client.h: the client and request behind <everywire/client.h>. Used inside src/api only.
 */
#ifndef EW_API_CLIENT_H
#define EW_API_CLIENT_H

#include "api/target.h"
#include "endpoint/pool.h"
#include <everywire/client.h>

struct ew_client {
    const ew_env *env;
    ew_limits limits;
    ew__target target;
    ew__loop loop;
    ew__pool pool;
    pthread_t thread;
    bool host; /* on the host's loop: no thread of our own */
    bool loop_closed;
    ew__task close_task;
    atomic_bool closing;
    atomic_uint active; /* requests not yet ended */
};

struct ew_request {
    atomic_uint refs; /* the client's until the end, the user's until ew_request_free */
    ew_client *client;
    ew_call *call; /* loop thread; NULL before it is opened and after its end */
    ew__call_kind kind;
    ew_request_options options; /* its slices point to memory of this request */
    ew__arena arena;
    ew__task open_task, cancel_task;
    atomic_bool cancel_sent;
    bool cancel_early;     /* asked before the call was opened; loop thread */
    atomic_size_t sending; /* bytes of input on their way to the loop */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ended;    /* under lock */
    bool keep_end; /* the user may wait for it */
    ew_end end;
};

#endif
