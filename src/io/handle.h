/*
 * io/handle.h: libuv's handles behind the loop, the streams and the listeners. Only files of io include it.
 */
#ifndef EW_IO_HANDLE_H
#define EW_IO_HANDLE_H

#include "io/stream.h"
#include <uv.h>

struct ew__loop_handles {
    uv_loop_t own; /* used if the host has no loop */
    uv_async_t wake;
    uv_prepare_t before_wait;
    uv_check_t after_wait;
    uv_timer_t timer;
    uv_idle_t idle; /* active while something is due at once: the loop then does not wait */
};

/* The content of ew__handle. The kind of the stream or listener selects the member. */
typedef union ew__uv_handle {
    uv_handle_t any;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
} ew__uv_handle;

_Static_assert(sizeof(ew__uv_handle) <= sizeof(ew__handle), "EW__HANDLE_SIZE is too small for this libuv");
_Static_assert(_Alignof(ew__uv_handle) <= _Alignof(ew__handle), "ew__handle is not aligned for this libuv");

static inline ew__uv_handle *ew__uv(const ew__handle *handle) { return (ew__uv_handle *)(uintptr_t)handle; }

/* The error that corresponds to a number of libuv. */
ew_err ew__err_from_uv(int error);

#endif
