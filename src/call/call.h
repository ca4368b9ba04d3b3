/*
 * call/call.h: the neutral call between a caller's end and a callee's end: eight events, one state machine.
 *
 *     caller -> callee   open  chunk-in  end-in  cancel         (ew__call_* below; the callee is told by ew__callee_ops)
 *     callee -> caller   accepted  chunk-out  done  fail        (ew_call_chunk, _done, _fail ...; the caller is told by ew__caller_ops)
 *
 * A wire that serves is the caller's end of the calls it received; a wire that calls is the callee's end of the calls
 * it sends. A handler is a callee's end, a program that uses a client is a caller's end, a bridge is both. May
 * include: base, json.
 *
 * Exactly one end: the caller is told `end` once, unless it let go before; what the callee says after that is dropped
 * and counted. All of it happens on the call's executor thread; the public functions of <everywire/call.h> come here from
 * any thread.
 */
#ifndef EW_CALL_CALL_H
#define EW_CALL_CALL_H

#include "call/access.h"
#include "base/executor.h"
#include "base/out.h"
#include "base/payload.h"
#include "call/span_style.h"
#include "call/trace.h"
#include "json/json.h"
#include <everywire/call.h>
#include <everywire/client.h>

typedef enum ew__call_kind {
    EW__CALL_RUN, /* run an action */
    EW__CALL_LIST /* list the peer's actions: the result is an object, key to descriptor */
} ew__call_kind;

typedef enum ew__cancel_why {
    EW__CANCEL_ASKED,    /* the caller asked; it still waits for the end */
    EW__CANCEL_GONE,     /* the caller has gone */
    EW__CANCEL_DEADLINE, /* the deadline has passed; the caller was told */
    EW__CANCEL_SHUTDOWN  /* we are going down */
} ew__cancel_why;

/*
 * How a call ended, as passed to ew__caller_ops.end. Slices are valid until that function returns: they may lie in the
 * buffer that was read, or in the memory of the upstream call of a bridge. A caller that needs them longer copies them.
 */
typedef struct ew__end {
    ew_status status;
    ew_str result; /* when status is OK */
    ew_fault fault;
    ew_origin origin;
} ew__end;

/* The caller's end. On the executor thread; none may block. */
typedef struct ew__caller_ops {
    void (*accepted)(ew_call *call); /* optional: the call runs; its trace is known */
    /*
     * EW_OK, EW_FULL (taken; ew__call_room follows), or an error (EW_ELIMIT, EW_ENOMEM): the chunk is lost and the
     * call will be failed
     */
    ew_err (*chunk)(ew_call *call, ew_str json);
    /* optional: several chunks at once, as ew__call_chunk_row says; at least the first is taken, *n: how many were */
    ew_err (*chunk_row)(ew_call *call, const ew_str *row, size_t *n);
    void (*end)(ew_call *call, const ew__end *end); /* once; the caller still has its reference */
    void (*input_room)(ew_call *call); /* optional: input may flow again (after ew__call_input answered EW_FULL) */
    /* optional: opens another call the other way, to whoever made this one; as ew__wire.open */
    ew_err (*call_back)(ew_call *call, ew_call *outgoing);
} ew__caller_ops;

/* The callee's end. On the executor thread; none may block. Optional ones may be NULL. */
struct ew__callee_ops {
    void (*open)(ew_call *call);                       /* owes the call one end */
    ew_err (*input)(ew_call *call, ew_str chunk);      /* optional: as the caller's chunk */
    void (*input_end)(ew_call *call);                  /* optional */
    void (*cancel)(ew_call *call, ew__cancel_why why); /* optional: at most once */
    void (*room)(ew_call *call);                       /* optional: chunks may flow again */
};

struct ew__input_item;
struct ew__call_sync;

struct ew_call {
    atomic_uint refs;
    atomic_bool cancelled;
    atomic_bool full;         /* the last chunk met a reader that is behind */
    atomic_uchar trace_state; /* call.c */
    atomic_bool spare_used;   /* cross_thread.spare_task was posted */
    bool caller_open;         /* the caller wants to be told the end */
    bool callee_open;         /* the callee owes an end */
    uint8_t kind;             /* ew__call_kind */
    bool wants_chunks;
    bool has_input;
    bool input_ended;
    bool input_full; /* the caller was told to wait with its input */
    bool traced;     /* an observer has told of its start */
    bool deep;    /* the depth of its payloads is checked: a message may have had more than EW_PAYLOAD_DEPTH levels */
    uint8_t hops; /* everywires that it has crossed */
    uint32_t attempt;
    ew__executor *executor;
    const ew__caller_ops *caller;
    void *caller_ud;
    const ew__callee_ops *callee;
    void *callee_ud;
    /*
     * The call that this one is forwarded for: key, payloads and secrets may lie in its memory. A reference, which
     * goes with this call's memory: a callee may keep this call after its caller has been told the end. May be NULL.
     */
    ew_call *lender;
    const ew__secrets *secret_input, *secret_output; /* the action's, or of the call that this one goes on for */
    ew__action *action;                              /* a reference; NULL for outgoing calls */
    const char *wire;                                /* name of the wire it came on, or goes out on */
    ew_str key;
    ew_str input;
    ew_str context;
    ew_str labels;
    ew_str tracestate;
    ew__trace trace;   /* of a served call: made when somebody asks, unless its wire brought one; see ew__call_trace */
    uint64_t deadline; /* monotonic ns, EW__NEVER for none */
    uint64_t opened_at;
    uint64_t cancelled_at;
    uint64_t bytes_out;
    ew__timer deadline_timer;
    struct {                              /* set by the wire that received the call */
        const ew__who *who;               /* the caller's identity, until the call is opened; NULL: unauthenticated */
        const ew__span_style *span_style; /* NULL: the default */
        ew_str carrier;                   /* an object with the traceparent to continue, made on demand; or empty */
    } served;
    struct {              /* set by the client or the bridge before it opens the call, and by the wire that sends it */
        bool notify;      /* no answer is wanted, where the wire can express that */
        bool cross_loop;  /* the call of another loop that it mirrors has the span */
        bool begun;       /* it was given to a connection, so that the peer may have it */
        ew_origin origin; /* of the fault to come */
        ew_str remote_trace_id; /* the peer's name of the trace */
        ew_str wire_id;         /* the id on the wire, where that is a text; empty: any */
        ew_str trace_path;      /* ew__trace_path of the call it belongs to, or empty */
    } outgoing;
    struct { /* set by local.c for local handlers; the queue also by other callees (input_queue.h) */
        ew__timer after_timer;
        ew__timer room_timer;
        ew_call_fn on_cancel, on_room, on_after;
        ew_input_fn on_input;
        void *on_cancel_arg, *on_room_arg, *on_after_arg, *on_input_arg;
        struct ew__input_item *in_head, *in_tail; /* chunks that came before on_input */
        size_t in_bytes;
        uint32_t in_items;
    } local;
    struct {                                  /* set by post.c, sync.c and call.c on behalf of other threads */
        _Atomic(struct ew__call_sync *) sync; /* made when a thread other than the executor's waits on the call */
        atomic_size_t posted;                 /* bytes of chunks on their way from other threads */
        ew__task unref_task;
        ew__task spare_task; /* fails the call when there is no memory for a message */
    } cross_thread;
    ew__arena arena;
    /* the first piece of the arena follows */
};

/*
 * Limits of payloads. Every payload of a call is checked here, whichever wire or handler it came from: its bytes always,
 * its depth if the wire marked the call. A wire validates a message with ew__json_parse, which accepts EW_JSON_DEPTH
 * levels, and marks the call with the result before it passes a payload of that message on.
 */
static inline void ew__call_mark_depth(ew_call *call, const ew__json_doc *doc) { call->deep = call->deep || doc->deep; }

/* ---- for the caller's end ---- */

/*
 * A call that is being made: fill in the members (input, deadline, ...), then open it or release it. NULL: too many
 * calls are open, the memory budget of the executor is spent, or the allocation failed.
 */
EW__MUST_USE ew_call *ew__call_new(ew__executor *executor, const ew__caller_ops *caller, void *ud);
/*
 * Opens it: on an action's handler, if the executor's gate lets call->who use it (else it ends at once with that fault, and
 * is never accepted), or on any callee. Afterwards the caller may already have been told the end.
 */
void ew__call_open(ew_call *call, ew__action *action);
void ew__call_open_on(ew_call *call, const ew__callee_ops *callee, void *ud);
/* Asks the callee to stop. */
void ew__call_cancel(ew_call *call, ew__cancel_why why);
/*
 * The caller lets go: nothing more is told to it, a running callee is cancelled, the caller's reference is given
 * back.
 */
void ew__call_release(ew_call *call);
/* There is room for chunks again (after chunk answered EW_FULL). */
void ew__call_room(ew_call *call);
/*
 * One chunk of input, or its end. EW_OK, EW_FULL (taken, wait), EW_EENDED; EW_ENOMEM, EW_ELIMIT: it is lost, and the
 * caller has been told the end.
 */
ew_err ew__call_input(ew_call *call, ew_str chunk);
void ew__call_input_end(ew_call *call);

/* ---- for a callee's end (beside the public functions) ---- */

/*
 * Ends the call with a fault that the action or the peer reported. The executor's thread only. It cannot fail: a status
 * that is not a failure (OK, or out of range) becomes UNKNOWN, and a call that has ended counts the fault as dropped.
 * The fault is borrowed for the duration of the call; its details must be valid JSON.
 */
void ew__call_fault(ew_call *call, const ew_fault *fault);
/* Likewise, with an origin other than the action. */
void ew__call_fault_as(ew_call *call, ew_origin origin, const ew_fault *fault);
void ew__call_fail_as(ew_call *call, ew_origin origin, ew_status status, ew_str message);
/*
 * The present callee gives the call up: no event reaches it any more. It must end the call, or pass it to another
 * callee, before it returns to the loop. Ending a call detaches its callee.
 */
void ew__call_detach(ew_call *call);
/*
 * The present callee, which has said nothing yet, passes the call to another program's action (references are taken).
 * The input that has come is in the call's queue. The executor's thread.
 */
void ew__call_pass(ew_call *call, ew__action *action);
/*
 * For worker threads: this thread holds a reference of the call while its handler runs, up to the end that it posts.
 * ew__call_unhold returns the call, and hands the reference over, if this thread has posted no end; else NULL: the call
 * may be gone.
 */
void ew__call_hold(ew_call *call);
ew_call *ew__call_unhold(void);
/* Results and chunks that were validated already (a wire's payloads): executor thread only. */
ew_err ew__call_chunk_valid(ew_call *call, ew_str json);
/*
 * Chunks that came one right behind the other, so that whoever takes them need not be told of each: what is around a
 * small chunk costs more than the chunk. Each is one line of printable ASCII, as ew__json_simple_end knows them. Answers
 * as for one chunk. *n: how many there are, and then how many were taken: after EW_FULL the others may wait with their
 * producer, after an error nobody wants them.
 */
#define EW__ROW_MAX 64                    /* chunks */
#define EW__ROW_CHUNK EW__JSON_SIMPLE_MAX /* bytes of each */
ew_err ew__call_chunk_row(ew_call *call, const ew_str *row, size_t *n);
static inline size_t ew__row_bytes(const ew_str *row, size_t n) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += row[i].len;
    return bytes;
}
/* Whatever it returns (EW_OK, EW_EENDED, EW_ETYPE: failed by the output schema), the call has ended. */
ew_err ew__call_done_valid(ew_call *call, ew_str json);
/* ew_call_chunk for a payload that was validated already. Any thread. */
ew_err ew__call_pass_chunk(ew_call *call, ew_str json);
/* There is room for input again (after the callee's input answered EW_FULL). */
void ew__call_input_room(ew_call *call);
/* The call's trace; a fresh one is made if it has none. Any thread. */
const ew__trace *ew__call_trace(ew_call *call);
/* Whether a slice lies in the call's own memory and so lives as long as the call. */
bool ew__call_owns(const ew_call *call, ew_str slice);
/*
 * Queues a payload: a large one that lies in the owner's memory (NULL: nobody's) is sent from there, and the call stays
 * until it has left.
 */
void ew__call_write(ew_call *owner, ew__out *out, ew_str payload);
void ew__call_wake_waiters(ew_call *call); /* sync.c */
void ew__call_sync_free(ew_call *call);    /* sync.c */

/* ---- who looks on ---- */

/* All observers of an executor (a chain, rarely more than two) are told, on its thread. A hook may be NULL. */
struct ew__observer {
    ew__observer *next;
    bool spans; /* each call is to have a span of its own */
    void (*opened)(ew__observer *observer, ew_call *call);
    void (*chunks)(ew__observer *observer, ew_call *call, size_t n); /* of calls with an action */
    /* as the caller was told; CANCELLED when it let go before that. Once for each call that was opened */
    void (*ended)(ew__observer *observer, ew_call *call, const ew__end *end, uint64_t duration_ns);
    /* the callee is done; 0 if not cancelled */
    void (*left)(ew__observer *observer, ew_call *call, uint64_t after_cancel_ns);
};

/* Local handlers: call/local.c. The handler function runs on the executor thread. */
extern const ew__callee_ops ew__local_callee;

#endif
