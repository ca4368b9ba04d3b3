/*
 * client/client.h: the client and request behind <everywire/client.h>.
 */
#ifndef EW_CLIENT_CLIENT_H
#define EW_CLIENT_CLIENT_H

#include "client/blobs.h"
#include "client/own_token.h"
#include "client/target.h"
#include "endpoint/pool.h"
#include <everywire/client.h>

struct ew_client {
    const ew_env *env; /* of the budget */
    ew__budget *budget;
    ew_limits limits;
    ew__target target;
    char **command; /* NULL-ended; the array and its strings are ours */
    size_t command_size;
    unsigned processes;    /* of the command, at a target that is dialled; 0: none */
    unsigned connections;  /* fixed; 0: as many as calls need */
    bool announces;        /* there is a command that says itself where it listens */
    char plain[64];        /* ew__where.tls_plain */
    const char *telemetry; /* URL, or NULL */
    const char *vars[8];   /* "NAME=VALUE", NULL-ended: what the command's environment has beside what it inherits */
    size_t n_vars;
    ew__child_rules rules;        /* where the command runs */
    ew__arena own;                /* of the four above and below */
    const char *const *inherited; /* what the command has of our environment; NULL: all of it */
    ew__task warm_task;
    const char *own_hosts[2]; /* the names by which we may be asked for */
    ew__actions *actions;     /* what the peer may call; a reference, or NULL */
    ew__tls_context *tls;     /* if the target speaks it */
    ew__client_blobs blobs;
    char token[EW__OWN_TOKEN_SIZE]; /* "": none */
    ew__access access;              /* listening: those who dial us show it */
    ew__clients clients;
    ew__gate gate;
    ew__site site; /* as the pool began with */
    ew__where where;
    ew__tapping tapping;
    ew__loop loop;
    ew__call_context calls;
    ew__pool *pool; /* NULL: there is no connection to a target, nor will be */
    pthread_t thread;
    bool host; /* on the host's loop: no thread of our own */
    bool loop_closed;
    ew__task close_task;
    atomic_bool closing;
    atomic_uint active; /* requests not yet ended */
};

/*
 * What a target and its options say, and whether they go together; nothing is opened. Errors as ew_client_new's that
 * need no looking.
 */
ew_err ew__client_check(const char *target, const ew_client_options *options, ew__target *ret,
                        const char **ret_problem);

/* A line for people: which targets take an option (EW__TAKES_...) that was given for another one. */
const char *ew__client_refusal(unsigned option);

/* Its processes, if it has some, are started before anybody calls. Once; any thread, before it is freed. */
void ew__client_warm(ew_client *client);

/* A call of a client, or one that goes back to whoever made a call of ours. */
struct ew_request {
    atomic_uint refs;       /* the client's until the end, the user's until ew_request_free */
    ew__executor *executor; /* while it has not ended */
    ew_client *client;      /* NULL when it goes back */
    ew_call *origin;        /* the call it goes back on, a reference; else NULL */
    ew_call *call;          /* loop thread; NULL before it is opened and after its end */
    ew__call_kind kind;
    ew_request_options options; /* its slices point to memory of this request */
    ew__trace above;            /* the span it belongs to; without trace id: none */
    ew_str above_path;
    ew__arena arena;
    char *large; /* the input, if it is large and no call has adopted it */
    ew__task open_task, cancel_task;
    atomic_bool cancel_sent;
    bool cancel_early;     /* asked before the call was opened; loop thread */
    atomic_size_t sending; /* bytes of input that were taken and have not been handed to the wire */
    atomic_bool told_full; /* the sender was asked to wait */
    ew__fifo held;         /* input that waits for the wire; loop thread */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ended;          /* under lock */
    atomic_bool telling; /* on_end runs */
    atomic_bool again;   /* since then another call was asked for */
    bool keep_end;       /* the user may wait for it */
    ew_end end;
    ew__arena kept; /* of end */
};

/* The functions of the public headers, once src/api has checked their arguments. */
/*
 * actions: what the peer may call (options->actions is not read); the client takes over the reference, also on failure;
 * NULL: nothing. On failure *ret_problem, which was NULL, may have a line for people.
 */
ew_err ew__client_new(const char *target, const ew_client_options *options, ew__actions *actions,
                      ew_client **ret_client, const char **ret_problem);
ew_client *ew__client_free(ew_client *client);
ew_err ew__client_call(ew_client *client, const ew_request_options *options, ew_request **ret_request);
const char *ew__client_refuses(const ew_client *client, const ew_request_options *options);
ew_err ew__client_list(ew_client *client, const ew_request_options *options, ew_request **ret_request);
ew_err ew__client_call_back(ew_call *call, const ew_request_options *options, ew_request **ret_request);
ew_err ew__request_again(ew_request *request);
ew_err ew__request_wait(ew_request *request, uint64_t ms, ew_end *ret_end);
void ew__request_cancel(ew_request *request);
ew_err ew__request_send(ew_request *request, ew_str json);
ew_err ew__request_wait_room(ew_request *request, uint64_t ms);
ew_err ew__request_send_end(ew_request *request);

#endif
