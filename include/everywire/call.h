/*
 * everywire/call.h: a call as its handler sees it.
 *
 * A handler gets one ew_call and owes it exactly one end: ew_call_done or ew_call_fail (or a relative of them). It
 * may send chunks before that, answer at once, later, or from another thread. After its end the handler must not
 * touch the call any more, unless it holds a reference (ew_call_ref).
 *
 * A handler on a worker thread (may_block) that returns before the end must have kept the call: taken a reference that
 * the other thread gives back after the end, or registered a callback (ew_call_on_cancel, _on_room, _on_input, _after).
 * Otherwise no end can come: the call fails at once with INTERNAL, and the message names its action. A handler on the
 * loop thread may hand the bare pointer on; there a missing end shows only when the app stops.
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

/*
 * Reads a value of the input at a JSON pointer ("/name"; "" is the whole input). True: *value is the value, or unchanged if the
 * input has none there, so that it may hold a default. False: the input has another type there, or the number does not
 * fit (ew_json_int64, ew_json_double); the call has failed with INVALID_ARGUMENT (RESOURCE_EXHAUSTED without memory for
 * the text), and the handler returns. A value of null is another type; an input or parent of null has no values.
 *
 * ew_call_input_str decodes escapes, if there are any, into the call's memory: the text may hold any character, NUL too.
 * Only on the loop thread, or in a worker's handler function, and before the end of the call.
 */
EW_API EW_MUST_USE bool ew_call_input_str(ew_call *call, const char *pointer, ew_str *value);
EW_API EW_MUST_USE bool ew_call_input_int(ew_call *call, const char *pointer, int64_t *value);
EW_API EW_MUST_USE bool ew_call_input_double(ew_call *call, const char *pointer, double *value);
EW_API EW_MUST_USE bool ew_call_input_bool(ew_call *call, const char *pointer, bool *value);

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
 * Sends one chunk. EW_OK; EW_FULL: taken, but the reader is behind: wait for ew_call_on_room (or
 * ew_call_wait_room) before the next; EW_ESYNTAX, EW_ENOMEM; EW_ELIMIT: the chunk exceeds the
 * limits of a payload (everywire/limits.h), or a producer that did not wait has reached the hard
 * limit: the call fails RESOURCE_EXHAUSTED for its caller; EW_ETYPE: it breaks the action's
 * stream_schema, the call fails INTERNAL (from another thread that shows at the next one, as
 * EW_ECANCELLED); EW_ECANCELLED: the caller has gone (the handler must still end the call);
 * EW_EENDED.
 */
EW_API ew_err ew_call_chunk(ew_call *call, ew_str json);

/*
 * ew_call_chunk with a format and its arguments (ew_json_format): ew_call_chunkf(call, "[%d]", n). EW_EINVAL for a format
 * that does not fit its arguments; nothing was sent then.
 */
EW_API ew_err ew_call_chunk_args(ew_call *call, const char *format, const ew_arg *args, size_t n_args);
#ifndef __cplusplus
#define ew_call_chunkf(call, ...) ew_call_chunk_args(call, EW_FORMAT(__VA_ARGS__))
#endif

/*
 * Ends the call with a result (an empty slice means null). EW_OK, EW_EENDED; on EW_ESYNTAX, and on EW_ETYPE (it breaks
 * the action's output_schema), the call fails INTERNAL: it has ended too; on EW_ELIMIT (it exceeds the limits of a
 * payload, everywire/limits.h) with RESOURCE_EXHAUSTED.
 */
EW_API ew_err ew_call_done(ew_call *call, ew_str json);

/*
 * ew_call_done with a format and its arguments (ew_json_format): ew_call_donef(call, "[%d]", n). On EW_EINVAL (the format
 * does not fit its arguments) and EW_ENOMEM the call fails INTERNAL: it has ended too.
 */
EW_API ew_err ew_call_done_args(ew_call *call, const char *format, const ew_arg *args, size_t n_args);
#ifndef __cplusplus
#define ew_call_donef(call, ...) ew_call_done_args(call, EW_FORMAT(__VA_ARGS__))
#endif

/*
 * Ends the call with a status and a message (NULL: the status' name). A status that is not a failure (EW_STATUS_OK, or a
 * value outside the enumeration) ends it with EW_STATUS_UNKNOWN. Any thread. EW_OK or EW_EENDED.
 */
EW_API ew_err ew_call_fail(ew_call *call, ew_status status, const char *message);

/*
 * Ends the call with a whole fault, which is copied; otherwise as ew_call_fail. Details that are not valid JSON, or
 * exceed the limits of a payload (everywire/limits.h), are left out. EW_OK or EW_EENDED.
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
 * For worker threads: waits until there is room for chunks, for stall_ms at most. EW_OK, EW_ECANCELLED, EW_ENOMEM, or
 * EW_EUNSUPPORTED on a loop thread. EW_ETIMEOUT: the reader is slow, the function may be called again. A reader that
 * takes nothing for that time loses its call, which is then cancelled.
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

template <typename... T> ew_err ew_call_chunkf(ew_call *call, const char *format, const T &...args) {
    return ew_call_chunk_args(call, format, ew_arg_list<T...>(args...).items, sizeof...(T));
}

template <typename... T> ew_err ew_call_donef(ew_call *call, const char *format, const T &...args) {
    return ew_call_done_args(call, format, ew_arg_list<T...>(args...).items, sizeof...(T));
}
#endif
#endif
