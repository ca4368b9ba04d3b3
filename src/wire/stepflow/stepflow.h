/*
 * wire/stepflow/stepflow.h: the stepflow wire: its table and what its files share. See README.md beside it.
 *
 *   codec.c, codec_call.c   texts, pure
 *   serve.c                 what a runtime asks, whatever carries it
 *   call.c                  calls that leave, what comes back, what a server asks; whatever carries it
 *   serve_http.c            a guest of the http wire: POST, and events for callbacks
 *   call_http.c             a connection to a server's HTTP port
 *   lines.[ch], lines_*.c   standard input and output: both roles on one connection
 *   blob_api.c              the Blob HTTP API of 0.10 and later, both sides
 */
#ifndef EW_WIRE_STEPFLOW_STEPFLOW_H
#define EW_WIRE_STEPFLOW_STEPFLOW_H

#include "frame/http1.h"
#include "wire/http_guest.h"
#include "wire/instance.h"
#include "wire/stepflow/codec.h"

extern const ew__wire ew__wire_stepflow;        /* lines: both roles on one connection */
extern const ew__wire ew__wire_stepflow_http;   /* HTTP, calling */
extern const ew__http_guest ew__stepflow_guest; /* HTTP, serving */
#define EW__STEPFLOW_NAME "stepflow"            /* what calls are told, whatever carries them */

/* The Blob HTTP API: calls "blobs/put" and "blobs/get" leave by it; the guest serves site->blobs under site->path. */
extern const ew__wire ew__wire_blobs;
extern const ew__http_guest ew__blobs_guest;
extern const ew__blob_rules ew__sf_blobs;

#define EW__SF_BLOBS_REFUSAL "blobs are for Stepflow targets"
#define EW__SF_HINT                                                                                                    \
    "is the component server running? try: everywire call stepflow+http: echo -- everywire serve --demo --port 0"

#define EW__SF_BLOBS_KEY "/stepflow/blobs" /* access to the Blob HTTP API that a runtime names */

/* Calling over HTTP, ew__site.state: how far we are with the one server that stands behind all connections of a site. */
typedef struct ew__sf_greeting {
    uint8_t state;
    bool everywire;   /* the server is one of ours */
    uint32_t n_peers; /* connections to it */
    uint64_t until;   /* what is known holds so long without any; 0: not at all */
    void *waiting;    /* those whose calls wait for its answer */
} ew__sf_greeting;
_Static_assert(sizeof(ew__sf_greeting) <= EW__SITE_STATE, "state of a site");

static inline ew__sf_greeting *ew__sf_greeting_of(ew__site *site) { return (ew__sf_greeting *)(void *)site->state; }

#define EW__SF_NAME_ROOM 1024 /* names with escapes are decoded, up to here */

/* Per executor, of ew__wire_stepflow: calls back by HTTP that wait for their reply. */
typedef struct ew__sf_scratch {
    ew__map asked; /* by id; made when there is one */
    bool has_asked;
} ew__sf_scratch;

/* ---- serve.c ---- */

/*
 * A request that runs nothing (initialize, components/list, components/info, unknown ones): appends its result, or an
 * error object (*ret_error). The blob URL of initialize is stored in site->instance. Plain text. EW_OK or EW_ENOMEM.
 */
ew_err ew__sf_answer(ew__conn *conn, const ew__who *who, const ew__rpc *message, ew__sf_method method, ew__buf *out,
                     bool *ret_error);

/* An error object for what was refused, in buf (to be freed by the caller in any case); never empty. */
ew_str ew__sf_error(const ew_env *env, ew__buf *buf, int64_t code, ew_status status, ew_str message, ew_str component);
/* The same for a fault, one that fits into a frame. */
ew_str ew__sf_fault(const ew__executor *executor, ew__buf *buf, int64_t code, const ew_fault *fault);

/*
 * Finds the action for components/execute. NULL and *ret_error is an error object in buf (to be freed by the caller in
 * any case) if the params are bad or there is no such action.
 */
ew__action *ew__sf_find(const ew__site *site, const ew_env *env, const ew__json_doc *doc, const ew__rpc *message,
                        ew__sf_run *ret_run, char *name_buf, ew__buf *buf, ew_str *ret_error);

/*
 * A call back that is to leave: whether it can. NULL, or why not. It is a method of the runtime's with an object as its
 * params.
 */
const char *ew__sf_refuses_back(const ew_call *outgoing);
/* Its request: method and params, plain text. The params get the observability of the call if that came with one. */
ew_err ew__sf_write_back(ew__buf *out, const ew_call *origin, const ew_call *outgoing, ew_str id);
/*
 * Opens blobs/put and blobs/get at the Blob HTTP API that the caller's principal has named. who: the caller of the call
 * that calls back; it needs access to EW__SF_BLOBS_KEY. EW_OK: opened, or ended with a fault. EW_ENOTFOUND: no URL
 * applies, use a callback. EW_EBUSY, EW_ENOMEM: nothing has changed.
 */
ew_err ew__sf_back_by_url(const ew__site *site, ew__executor *executor, const ew__who *who, ew_call *outgoing);

/* ---- call.c ---- */

const char *ew__sf_refuses(const ew_request_options *options);
/*
 * Ends a call by the answer to it (a result or an error). false: it was a name without a slash that the server does not
 * know with one; not ended, ask again with the bare name. Afterwards the call's reference is the caller's to give back.
 */
bool ew__sf_end_call(ew_call *call, const ew__rpc *message, bool bare);
/* Ends a call back by its reply. */
void ew__sf_end_back(ew_call *call, const ew__rpc *message);

/*
 * What a server asks of us while it runs a component (a request): appends the result, or an error object. Plain text.
 * EW_OK or EW_ENOMEM.
 */
ew_err ew__sf_serve_ask(const ew__site *site, const ew__rpc *message, ew__buf *out, bool *ret_error);

/* Whether the answer to initialize comes from one of ours. */
bool ew__sf_is_everywire(ew_str result);

/* ---- lines.c: stdio ---- */

/* Defines ew__wire_stepflow; lines.h is its own. */

/* ---- serve_http.c ---- */

void ew__sf_on_broadcast(void *scratch, ew__executor *executor, const ew__principal *sender, ew_str text);
void ew__sf_scratch_done(void *scratch);

#endif
