/*
 * everywire/call.h: a call as its handler sees it.
 *
 * A handler gets one ew_call and owes it exactly one end: ew_call_done or ew_call_fail (or a relative of them). It
 * may send chunks before that, answer at once, later, or from another thread. After its end the handler must not
 * touch the call any more, unless it holds a reference (ew_call_ref).
 *
 * Threads: all functions here may be used from any thread unless a line says otherwise. On the call's own loop thread
 * they act at once; from another thread they are handed over to it, in order. Callbacks always run on the loop thread
 * and must not block. Payloads are JSON text; a payload given by the program is validated before it leaves
 * (EW_ESYNTAX if it is none) and copied where needed: the caller keeps its memory.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_CALL_H
#define EVERYWIRE_CALL_H

#include <everywire/json.h>
#include <everywire/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ew_call ew_call;

/* The function behind an action. Owes the call one end, now or later. arg is what the action was registered with. */
typedef void (*ew_handler_fn)(ew_call *call, void *arg);

/* A callback of a call: cancelled, room again, time passed. */
typedef void (*ew_call_fn)(ew_call *call, void *arg);

/*
 * One chunk of the caller's input stream; end is true once, after the last (chunk is then empty). The slice is valid
 * during the callback.
 */
typedef void (*ew_input_fn)(ew_call *call, ew_str chunk, bool end, void *arg);

/* ---- what came with the call; all slices live as long as the call ---- */

/* The input as JSON text without white space around it; "null" when none was sent. */
EW_API ew_str ew_call_input(const ew_call *call);

/* The key of the action, such as "/flow/greet". */
EW_API ew_str ew_call_key(const ew_call *call);

/* The name of the wire it came on, such as "http". */
EW_API ew_str ew_call_wire(const ew_call *call);

/* The caller's context as JSON text, or empty. */
EW_API ew_str ew_call_context(const ew_call *call);

/* The caller's labels as a JSON object, or empty. */
EW_API ew_str ew_call_labels(const ew_call *call);

/* The trace this call belongs to: 32 lower-case hexadecimal digits. */
EW_API ew_str ew_call_trace_id(const ew_call *call);

/* The span of this call in its trace: 16 lower-case hexadecimal digits. */
EW_API ew_str ew_call_span_id(const ew_call *call);

/* Milliseconds left until the deadline, 0 when it has passed, -1 when there is none. */
EW_API int64_t ew_call_deadline_ms(const ew_call *call);

/* Which attempt this is, from 1; 0 when the wire does not say. */
EW_API uint32_t ew_call_attempt(const ew_call *call);

/* Whether the caller asked for chunks. Chunks sent to a caller that did not ask are dropped, which is no error. */
EW_API bool ew_call_wants_chunks(const ew_call *call);

/* Whether the caller sends an input stream: see ew_call_on_input. */
EW_API bool ew_call_has_input_stream(const ew_call *call);

/* ---- answering ---- */

/*
 * Sends one chunk. EW_OK; EW_FULL: taken, but the reader is behind: wait for ew_call_on_room (or ew_call_wait_room)
 * before the next; EW_ESYNTAX, EW_ENOMEM; EW_ELIMIT: a producer that did not wait has reached the hard limit, the
 * call fails RESOURCE_EXHAUSTED; EW_ETYPE: it breaks the action's stream_schema, the call fails INTERNAL (from another
 * thread that shows at the next one, as EW_ECANCELLED); EW_ECANCELLED: nobody listens any more (the call still wants its
 * end); EW_EENDED.
 */
EW_API ew_err ew_call_chunk(ew_call *call, ew_str json);

/* ew_call_chunk with the directives of ew_json_format. EW_EINVAL for a bad format. */
EW_API ew_err ew_call_chunkf(ew_call *call, const char *format, ...);

/*
 * Ends the call with a result (an empty slice means null). EW_OK, EW_EENDED; on EW_ESYNTAX, and on EW_ETYPE (it breaks
 * the action's output_schema), the call fails INTERNAL: it has ended too.
 */
EW_API ew_err ew_call_done(ew_call *call, ew_str json);

/* ew_call_done with the directives of ew_json_format. */
EW_API ew_err ew_call_donef(ew_call *call, const char *format, ...);

/*
 * Ends the call with a status and a message (NULL: the status' name). A status that is not a failure (EW_STATUS_OK, or a
 * value outside the enumeration) ends it with EW_STATUS_UNKNOWN. Any thread. EW_OK or EW_EENDED.
 */
EW_API ew_err ew_call_fail(ew_call *call, ew_status status, const char *message);

/*
 * Ends the call with a whole fault, which is copied; otherwise as ew_call_fail. Details that are not valid JSON are left
 * out. EW_OK or EW_EENDED.
 */
EW_API ew_err ew_call_fail_with(ew_call *call, const ew_fault *fault);

/* ---- being told ---- */

/* Whether the caller has cancelled or gone away, or the deadline has passed. Cheap enough for a loop. */
EW_API bool ew_call_cancelled(const ew_call *call);

/*
 * Has fn called once when the call is cancelled (see ew_call_cancelled), at once when it already is. fn usually ends
 * the call with CANCELLED. NULL takes it back. One per call. Not called after the end. EW_OK or EW_EENDED. Handlers
 * that register nothing and never look at ew_call_cancelled run on to their end; their result is then dropped.
 */
EW_API ew_err ew_call_on_cancel(ew_call *call, ew_call_fn fn, void *arg);

/*
 * Has fn called once when there is room for chunks, in a later turn of the loop; never when the call ends before.
 * EW_OK or EW_EENDED.
 */
EW_API ew_err ew_call_on_room(ew_call *call, ew_call_fn fn, void *arg);

/*
 * Has fn called once after that many milliseconds, unless the call ends before. One per call: a second request
 * replaces the first. EW_OK, EW_EENDED, EW_ENOMEM.
 */
EW_API ew_err ew_call_after(ew_call *call, uint64_t ms, ew_call_fn fn, void *arg);

/*
 * Has fn called for every chunk of the input stream, in order, those that came before included. EW_OK;
 * EW_EUNSUPPORTED when there is none; EW_EENDED.
 */
EW_API ew_err ew_call_on_input(ew_call *call, ew_input_fn fn, void *arg);

/*
 * For worker threads: sleeps that many milliseconds, less if the call is cancelled. EW_OK, EW_ECANCELLED, or
 * EW_EUNSUPPORTED on a loop thread, which must not block.
 */
EW_API ew_err ew_call_wait(ew_call *call, uint64_t ms);

/*
 * For worker threads: waits until there is room for chunks. EW_OK, EW_ECANCELLED, or EW_EUNSUPPORTED on a loop
 * thread. Bounded by the stall limit.
 */
EW_API ew_err ew_call_wait_room(ew_call *call);

/* ---- memory ---- */

/*
 * Memory that lives as long as the call, aligned for anything, not cleared; NULL when there is none. Only on the loop
 * thread, or in a worker's handler function.
 */
EW_API void *ew_call_alloc(ew_call *call, size_t size);

/* Takes a reference, so that the call can be used after its end (its functions then say EW_EENDED). Returns call. */
EW_API ew_call *ew_call_ref(ew_call *call);

/* Gives a reference back. NULL is fine. Returns NULL. */
EW_API ew_call *ew_call_unref(ew_call *call);

#ifdef __cplusplus
}
#endif
#endif
