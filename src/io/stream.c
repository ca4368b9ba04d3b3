/*
 * io/stream.c: reading and writing of a connected stream. See stream.h.
 *
 * Writing: first what the socket takes at once (no request, no epoll change). The rest of a TCP stream goes through one
 * uv_write at a time, whose bytes stay in the owner's queue until they have left; the others wait until their
 * descriptor has room and try again.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/handle.h"
#include "io/fd.h"
#include "io/stream.h"
#include "io/tls.h"
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LINGER_MS 2000
#define VECTORS 16
#define STALL_CHECKS 4       /* samples of progress within stall_ms */
#define HANG_UP_CHECK_MS 100 /* while reading is stopped */
#define SOON_MS 1
#define EARLY_BYTES ((size_t)8 * 1024) /* of one turn: then they leave before its end */

static uv_stream_t *uv_of(ew__stream *stream) { return &ew__uv(&stream->handle)->stream; }

static ew__stream *stream_of(const void *handle) { return ew__container_of(handle, ew__stream, handle); }

/* ---- closing ---- */

void ew__stream_gone(ew__stream *stream) { stream->events->closed(stream, stream->why); }

static void on_closed(uv_handle_t *handle) {
    ew__stream *stream = stream_of(handle);
    struct ew__tls *tls = stream->tls;
    if (tls)
        ew__tls_closed(stream);
    if (stream->beside)
        stream->beside->closed(stream);
    else
        ew__stream_gone(stream);
    if (tls)
        ew__tls_free(tls);
}

static void leave_dirty_list(ew__stream *stream) {
    ew__fifo_node **at = &stream->loop->dirty;
    while (*at && *at != &stream->node)
        at = &(*at)->next;
    if (*at)
        *at = stream->node.next;
    stream->dirty = false;
}

/* Who came first mostly goes first: it is found at once. */
static void leave_soon_list(ew__stream *stream) {
    ew__fifo_remove(&stream->loop->soon, &stream->node);
    stream->soon = false;
}

static void stop_waiting(ew__stream *stream);

void ew__stream_close(ew__stream *stream, ew_err why) {
    if (stream->closing)
        return;
    if (stream->tls)
        ew__tls_closing(stream, why);
    stream->closing = true;
    stream->why = why;
    if (stream->dirty)
        leave_dirty_list(stream);
    if (stream->soon)
        leave_soon_list(stream);
    ew__timer_stop(&stream->loop->executor.timers, &stream->stall);
    if (stream->waiter)
        stop_waiting(stream);
    if (stream->beside)
        stream->beside->closing(stream);
    uv_close(&ew__uv(&stream->handle)->any, on_closed);
}

/*
 * Bytes that the peer has yet to take: those of the current write that the kernel has not taken, and those in the send
 * queue of the socket that the peer has not acknowledged. A write may be many megabytes, and the socket becomes writable
 * again only when a large part of its send queue has left, so neither event shows whether a slow peer reads.
 */
static uint32_t count_untaken(ew__stream *stream) {
    size_t n = stream->waiter ? stream->raw->bytes : uv_stream_get_write_queue_size(uv_of(stream));
    int in_socket = 0;
    if (!stream->no_socket && ioctl(stream->fd, SIOCOUTQ, &in_socket) == 0)
        n += (size_t)in_socket;
    return (uint32_t)n;
}

/* More than before: another write has begun, and progress_at is that of the one before it. */
static void note_progress(ew__stream *stream) {
    uint32_t untaken = count_untaken(stream);
    if ((int32_t)(untaken - stream->untaken) < 0)
        stream->progress_at = stream->loop->executor.now;
    stream->untaken = untaken;
}

/* Progress is sampled, so the time of a stall is exact to a quarter of its limit. */
static uint64_t next_check(uint64_t now, uint64_t end, uint64_t limit) {
    uint64_t at = now + limit / STALL_CHECKS;
    return at < end ? at : end;
}

/* The loop does not watch a socket that is neither read nor written: it is asked whether the peer has gone. */
static bool needs_hang_up_check(const ew__stream *stream) {
    bool socket = stream->kind == EW__STREAM_TCP || stream->kind == EW__STREAM_UNIX;
    return socket && !stream->reading && !stream->finishing && !stream->closing;
}

/*
 * A reset ends the stream. A peer that only sends no more may still read, and what it has sent may be unread. A Unix
 * socket reports whether its peer has closed altogether; the stream ends if all was read.
 */
static void check_hang_up(ew__stream *stream) {
    struct pollfd poll_fd = {.fd = stream->fd, .events = POLLRDHUP};
    if (poll(&poll_fd, 1, 0) <= 0)
        return;
    bool reset = (poll_fd.revents & POLLERR) != 0;
    bool closed = (poll_fd.revents & POLLHUP) != 0 && (stream->kind == EW__STREAM_TCP || stream->ended);
    if (reset || closed) {
        ew__stream_close(stream, EW_ECLOSED);
    } else if (!stream->hung_up && !stream->ended && stream->events->hung_up) {
        stream->hung_up = true;
        stream->events->hung_up(stream);
    }
}

static void on_stall(ew__timer *timer, uint64_t now);

static void watch_hang_up(ew__stream *stream) {
    ew__executor *executor = &stream->loop->executor;
    uint64_t at = executor->now + EW__MS(HANG_UP_CHECK_MS);
    if (!needs_hang_up_check(stream) || (ew__timer_active(&stream->stall) && stream->stall.at <= at))
        return;
    if (ew__timer_set(&executor->timers, &stream->stall, at, on_stall) != EW_OK)
        ew__stream_close(stream, EW_ENOMEM);
}

static void on_stall(ew__timer *timer, uint64_t now) {
    ew__stream *stream = ew__container_of(timer, ew__stream, stall);
    if (needs_hang_up_check(stream))
        check_hang_up(stream);
    watch_hang_up(stream);
    if (stream->closing || (!stream->lingering && (stream->raw->bytes == 0 || stream->patient)))
        return; /* it has caught up since, and may have been idle for long */
    uint64_t limit = EW__MS(stream->lingering ? LINGER_MS : stream->loop->executor.limits->stall_ms);
    if (!stream->lingering)
        note_progress(stream);
    uint64_t end = stream->progress_at + limit, at = next_check(now, end, limit);
    if (now >= end)
        ew__stream_close(stream, stream->lingering ? EW_OK : EW_ETIMEOUT);
    else if (!ew__timer_active(timer) || timer->at > at)
        (void)ew__timer_set(&stream->loop->executor.timers, timer, at, on_stall);
}

static void watch_progress(ew__stream *stream, uint64_t limit_ms) {
    ew__executor *executor = &stream->loop->executor;
    if (stream->patient && !stream->lingering)
        return;
    uint64_t limit = EW__MS(limit_ms), end = stream->progress_at + limit;
    uint64_t at = next_check(executor->now, end, limit);
    if (ew__timer_active(&stream->stall) && stream->stall.at <= at)
        return; /* it looks again when it fires */
    if (!ew__timer_active(&stream->stall) && !stream->lingering)
        note_progress(stream);
    if (ew__timer_set(&executor->timers, &stream->stall, at, on_stall) != EW_OK)
        ew__stream_close(stream, EW_ENOMEM);
}

/* All has left: shut our side and wait for the other's eof, so that the last answer is not lost to a reset. */
static void linger(ew__stream *stream) {
    if (stream->lingering || stream->closing)
        return;
    if (stream->tls && ew__tls_farewell(stream)) {
        ew__stream_flush(stream); /* which comes back here */
        return;
    }
    stream->lingering = true;
    if (stream->ended && !stream->beside) { /* its last word was read: there is nothing to wait for */
        ew__stream_close(stream, EW_OK);
        return;
    }
    if (stream->kind != EW__STREAM_STDIO)
        (void)shutdown(stream->fd, SHUT_WR);
    if (stream->beside)
        stream->beside->shut(stream);
    if (stream->kind == EW__STREAM_STDIO) { /* its other side is not one peer: nobody answers our eof by an eof */
        ew__stream_close(stream, EW_OK);
        return;
    }
    stream->progress_at = stream->loop->executor.now;
    watch_progress(stream, LINGER_MS);
    ew__stream_read(stream, true);
}

/* ---- writing ---- */

static void end_input(ew__stream *stream) {
    if (!stream->closing && stream->beside && stream->beside->end_input)
        stream->beside->end_input(stream);
}

/* The first n bytes of the queue have left, and are still there. */
static void show_sent(ew__stream *stream, size_t n) {
    ew__out_vec vec[VECTORS];
    unsigned count = ew__out_peek(stream->out, vec, VECTORS);
    for (unsigned i = 0; i < count && n > 0; i++) {
        size_t part = vec[i].len < n ? vec[i].len : n;
        stream->tap->saw(stream->tap, true, vec[i].ptr, part);
        n -= part;
    }
}

static void after_write(ew__stream *stream, size_t left) {
    ew__executor *executor = &stream->loop->executor;
    stream->bytes_out += left;
    if (EW__UNLIKELY(stream->tap != NULL) && !stream->tls) /* records are shown as what they hold, before that */
        show_sent(stream, left);
    if (left > 0)
        stream->progress_at = executor->now;
    ew__out_consume(stream->raw, left);
    if (stream->was_full && stream->out->bytes <= executor->limits->out_low_bytes) {
        stream->was_full = false;
        stream->events->drained(stream);
    }
    if (stream->out->bytes >= executor->limits->out_high_bytes)
        stream->was_full = true;
    if (stream->last_sent && stream->out->bytes == 0)
        end_input(stream);
    if (stream->finishing && stream->out->bytes == 0 && stream->raw->bytes == 0)
        linger(stream);
}

static unsigned fill_vectors(const ew__stream *stream, uv_buf_t *bufs, size_t *ret_bytes) {
    ew__out_vec vec[VECTORS];
    unsigned n = ew__out_peek(stream->raw, vec, VECTORS);
    *ret_bytes = 0;
    for (unsigned i = 0; i < n; i++) {
        bufs[i] = uv_buf_init((char *)(uintptr_t)vec[i].ptr, (unsigned)vec[i].len);
        *ret_bytes += vec[i].len;
    }
    return n;
}

/* A write that the socket did not take at once; made only then, so that an idle stream stays small. */
struct pending {
    uv_write_t request;
    ew__stream *stream;
};

static void on_written(uv_write_t *request, int status) {
    struct pending *pending = ew__container_of(request, struct pending, request);
    ew__stream *stream = pending->stream;
    size_t bytes = stream->writing;
    ew__free(stream->loop->executor.env, pending, sizeof *pending);
    stream->writing = 0;
    if (stream->closing)
        return;
    if (status < 0) {
        ew__stream_close(stream, ew__err_from_uv(status));
        return;
    }
    ew__executor_read_clock(&stream->loop->executor);
    after_write(stream, bytes);
    ew__stream_flush(stream);
}

/*
 * writev to a pipe whose reader has gone raises SIGPIPE, and there is no flag against it: it is kept from this thread
 * for the time of the call, and taken away if the call raised it.
 */
static ssize_t write_without_signal(int fd, const struct iovec *iov, unsigned count) {
    sigset_t pipe_only, pending, old;
    const struct timespec at_once = {0, 0};
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigemptyset(&pending);
    (void)sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &old);
    ssize_t n = writev(fd, iov, (int)count);
    int error = errno;
    if (n < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE))
        (void)sigtimedwait(&pipe_only, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = error;
    return n;
}

/*
 * What the socket takes now: how much, or a negative errno. Past libuv, because send is cheaper than the write it would
 * use, and because it raises no SIGPIPE in a host that does not ignore it.
 */
static ssize_t send_now(ew__stream *stream) {
    ew__out_vec vec[VECTORS];
    struct iovec iov[VECTORS];
    ssize_t n;
    unsigned count = ew__out_peek(stream->raw, vec, VECTORS);
    do {
        if (count == 1 && !stream->no_socket) {
            n = send(stream->fd, vec[0].ptr, vec[0].len, MSG_NOSIGNAL | MSG_DONTWAIT);
            continue;
        }
        for (unsigned i = 0; i < count; i++)
            iov[i] = (struct iovec){(void *)(uintptr_t)vec[i].ptr, vec[i].len};
        if (stream->no_socket) {
            n = write_without_signal(stream->fd, iov, count);
            continue;
        }
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
        n = sendmsg(stream->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static ew_err begin_write(ew__stream *stream) {
    uv_buf_t bufs[VECTORS];
    size_t bytes = 0;
    unsigned n = fill_vectors(stream, bufs, &bytes);
    struct pending *pending = ew__alloc(stream->loop->executor.env, sizeof *pending);
    if (!pending)
        return EW_ENOMEM;
    pending->stream = stream;
    int err = uv_write(&pending->request, uv_of(stream), bufs, n, on_written);
    if (err != 0) {
        ew__free(stream->loop->executor.env, pending, sizeof *pending);
        return ew__err_from_uv(err);
    }
    stream->writing = bytes;
    return EW_OK;
}

/*
 * Waiting for room without libuv's write, which raises SIGPIPE when the other side has gone: with Unix sockets and
 * pipes that is the usual way to learn of it. A descriptor of its own, because the loop watches the stream's already;
 * TCP does not get one, because many slow readers would double the number of descriptors.
 */
struct ew__waiter {
    uv_poll_t poll;
    ew__stream *stream; /* NULL: it has let go */
    const ew_env *env;
    int fd;
};

static void on_waiter_closed(uv_handle_t *handle) {
    struct ew__waiter *waiter = ew__container_of(handle, struct ew__waiter, poll);
    ew__free(waiter->env, waiter, sizeof *waiter);
}

static void stop_waiting(ew__stream *stream) {
    struct ew__waiter *waiter = stream->waiter;
    stream->waiter = NULL;
    stream->writing = 0;
    waiter->stream = NULL;
    uv_close((uv_handle_t *)&waiter->poll, on_waiter_closed);
    close(waiter->fd);
}

static void on_room(uv_poll_t *poll, int status, int events) {
    struct ew__waiter *waiter = ew__container_of(poll, struct ew__waiter, poll);
    ew__stream *stream = waiter->stream;
    (void)status; /* an error shows when we write */
    (void)events;
    if (!stream)
        return;
    ew__executor_read_clock(&stream->loop->executor);
    stop_waiting(stream);
    ew__stream_flush(stream);
}

static ew_err begin_wait(ew__stream *stream) {
    struct ew__waiter *waiter = ew__alloc(stream->loop->executor.env, sizeof *waiter);
    if (!waiter)
        return EW_ENOMEM;
    int fd = ew__fd_copy(stream->fd);
    if (fd < 0 || uv_poll_init(stream->loop->uv, &waiter->poll, fd) != 0) {
        if (fd >= 0)
            close(fd);
        ew__free(stream->loop->executor.env, waiter, sizeof *waiter);
        return EW_EIO;
    }
    waiter->stream = stream;
    waiter->env = stream->loop->executor.env;
    waiter->fd = fd;
    stream->waiter = waiter;
    stream->writing = stream->raw->bytes;
    (void)uv_poll_start(&waiter->poll, UV_WRITABLE, on_room);
    return EW_OK;
}

/* The other side is full: the rest leaves when it has room. */
static void write_later(ew__stream *stream) {
    ew_err err = stream->kind == EW__STREAM_TCP ? begin_write(stream) : begin_wait(stream);
    if (err != EW_OK) {
        ew__stream_close(stream, err);
        return;
    }
    if (stream->out->bytes >= stream->loop->executor.limits->out_high_bytes)
        stream->was_full = true;
    watch_progress(stream, stream->loop->executor.limits->stall_ms);
}

/*
 * A child that has ended takes no more, but what it wrote before is still to be read: what waits for it is dropped, and
 * the end comes with its eof.
 */
static void drop_output(ew__stream *stream) {
    ew__out_consume(stream->out, stream->out->bytes);
    after_write(stream, 0);
}

static bool has_bytes(ew__stream *stream) {
    return EW__UNLIKELY(stream->tls != NULL) ? ew__tls_seal(stream) : stream->out->bytes > 0;
}

void ew__stream_flush(ew__stream *stream) {
    if (stream->soon)
        leave_soon_list(stream);
    while (!stream->closing && stream->writing == 0 && has_bytes(stream)) {
        ssize_t done = send_now(stream);
        if (done == -EAGAIN || done == -EWOULDBLOCK || done == -ENOBUFS) {
            stream->progress_at = stream->loop->executor.now;
            write_later(stream);
            return;
        }
        if (stream->kind == EW__STREAM_CHILD && (done == -EPIPE || done == -ECONNRESET)) {
            drop_output(stream);
            return;
        }
        if (done < 0) {
            ew__stream_close(stream, ew__err_from_uv(uv_translate_sys_error((int)-done)));
            return;
        }
        after_write(stream, (size_t)done);
    }
}

void ew__stream_hurry(ew__stream *stream) {
    if (stream->head_start == stream->loop->turn || stream->was_full || stream->closing || stream->writing)
        return;
    stream->head_start = stream->loop->turn;
    ew__stream_flush(stream);
}

/*
 * What is queued in a turn leaves at its end; but a good part of it leaves early, so that the other side works on it
 * while we go on: two that answer each other in long rows would else take turns in sleeping. Where many streams are
 * busy nobody sleeps, and a write more is only a write more.
 */
void ew__stream_send(ew__stream *stream) {
    if (stream->out->bytes >= stream->loop->executor.limits->out_high_bytes)
        stream->was_full = true;
    if (stream->closing || stream->writing)
        return;
    if (stream->out->bytes >= EARLY_BYTES && !stream->was_full && !stream->loop->busy) {
        ew__stream_flush(stream);
        return;
    }
    if (stream->dirty)
        return;
    if (stream->soon)
        leave_soon_list(stream);
    stream->dirty = true;
    stream->node.next = stream->loop->dirty;
    stream->loop->dirty = &stream->node;
}

static void on_soon(ew__timer *timer, uint64_t now) {
    ew__loop *loop = ew__container_of(timer, ew__loop, soon_timer);
    ew__stream *stream;
    while ((stream = EW__ITEM(loop->soon.first, ew__stream, node)) != NULL && stream->soon_at <= now)
        ew__stream_flush(stream);
    if (stream) /* it has its place: this cannot fail */
        (void)ew__timer_set(&loop->executor.timers, timer, stream->soon_at, on_soon);
}

void ew__stream_send_soon(ew__stream *stream) {
    ew__loop *loop = stream->loop;
    if (stream->dirty || stream->soon || stream->closing || stream->writing)
        return; /* they go along, or nowhere */
    uint64_t at = loop->executor.now + EW__MS(SOON_MS);
    bool timed = ew__timer_active(&loop->soon_timer) ||
                 ew__timer_set(&loop->executor.timers, &loop->soon_timer, at, on_soon) == EW_OK;
    if (!timed || stream->out->bytes >= EARLY_BYTES) {
        ew__stream_send(stream);
        return;
    }
    stream->soon = true;
    stream->soon_at = at;
    ew__fifo_push(&loop->soon, &stream->node);
}

void ew__stream_end(ew__stream *stream, bool at_once) {
    if (stream->closing || (stream->last_sent && !at_once))
        return;
    stream->last_sent = true;
    if (at_once) {
        if (stream->waiter)
            stop_waiting(stream);
        if (stream->dirty)
            leave_dirty_list(stream);
        drop_output(stream);
    } else if (stream->out->bytes > 0) {
        ew__stream_send(stream);
    } else {
        end_input(stream);
    }
}

void ew__stream_finish(ew__stream *stream) {
    if (stream->finishing || stream->closing)
        return;
    stream->finishing = true;
    if (stream->out->bytes > 0 || stream->raw->bytes > 0)
        ew__stream_send(stream);
    else
        linger(stream);
}

/* ---- reading ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
    ew__stream *stream = stream_of(handle);
    size_t size = 0;
    (void)suggested;
    uint8_t *place = stream->finishing ? NULL : stream->events->reserve(stream, &size);
    if (place)
        *buf = uv_buf_init((char *)place, (unsigned)size);
    else
        *buf = uv_buf_init(stream->loop->read_buffer, (unsigned)EW__READ_BUFFER);
}

/*
 * The end of input does not show whether a TCP peer has closed its socket or only its own direction. A closed socket
 * answers data with a reset, which check_hang_up finds. An urgent byte is data that a peer which still reads does not
 * find in its input. A TCP stack without urgent data delivers a space, so none is sent within a message or a TLS record.
 */
static void probe(ew__stream *stream) {
    if (!stream->tls && stream->raw->bytes == 0)
        (void)send(stream->fd, " ", 1, MSG_OOB | MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ew__stream_ended(ew__stream *stream) {
    (void)uv_read_stop(uv_of(stream));
    stream->reading = false;
    stream->ended = true;
    if (stream->lingering)
        ew__stream_close(stream, EW_OK);
    else if (!stream->finishing)
        stream->events->eof(stream);
    if (stream->kind == EW__STREAM_TCP && needs_hang_up_check(stream))
        probe(stream);
    watch_hang_up(stream);
    if (stream->beside && stream->beside->ended && !stream->closing)
        stream->beside->ended(stream);
}

/* Answers that are ready leave now: waiting for the end of the turn would only add latency. */
static void answer_now(ew__stream *stream) {
    ew__loop_run_own(stream->loop);
    if (stream->dirty && !stream->closing) {
        leave_dirty_list(stream);
        ew__stream_flush(stream);
    }
}

static void on_read(uv_stream_t *handle, ssize_t n, const uv_buf_t *buf) {
    ew__stream *stream = stream_of(handle);
    if (n == 0 || stream->closing)
        return;
    ew__executor_read_clock(&stream->loop->executor);
    if (n == UV_EOF || (n == UV_ECONNRESET && stream->kind == EW__STREAM_CHILD)) { /* reset: it left input unread */
        ew__stream_ended(stream);
    } else if (n < 0) {
        ew__stream_close(stream, ew__err_from_uv((int)n));
    } else if (!stream->finishing) {
        stream->bytes_in += (uint64_t)n;
        stream->loop->n_read++;
        if (EW__UNLIKELY(stream->tap != NULL))
            stream->tap->saw(stream->tap, false, buf->base, (size_t)n);
        stream->events->data(stream, (const uint8_t *)buf->base, (size_t)n);
        answer_now(stream);
    }
}

static void on_alloc_records(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
    (void)suggested;
    *buf = uv_buf_init(stream_of(handle)->loop->read_buffer, (unsigned)EW__READ_BUFFER);
}

static void on_read_records(uv_stream_t *handle, ssize_t n, const uv_buf_t *buf) {
    ew__stream *stream = stream_of(handle);
    if (n == 0 || stream->closing)
        return;
    ew__executor_read_clock(&stream->loop->executor);
    if (n < 0) {
        ew__tls_end(stream, n == UV_EOF ? EW_OK : ew__err_from_uv((int)n));
        return;
    }
    ew__tls_input(stream, (const uint8_t *)buf->base, (size_t)n);
    answer_now(stream);
}

void ew__stream_read(ew__stream *stream, bool on) {
    if (stream->closing || stream->reading == on)
        return;
    stream->reading = on;
    if (on && uv_read_start(uv_of(stream), stream->tls ? on_alloc_records : on_alloc,
                            stream->tls ? on_read_records : on_read) != 0)
        ew__stream_close(stream, EW_EIO);
    else if (!on)
        (void)uv_read_stop(uv_of(stream));
    if (!on)
        watch_hang_up(stream);
}

bool ew__stream_readable(const ew__stream *stream) {
    uv_os_fd_t fd = -1;
    int n = 0;
    return !stream->closing && uv_fileno(&ew__uv(&stream->handle)->any, &fd) == 0 && ioctl(fd, FIONREAD, &n) == 0 &&
           n > 0;
}

void ew__stream_start(ew__stream *stream, ew__loop *loop, const ew__stream_events *events, ew__out *out) {
    stream->loop = loop;
    stream->events = events;
    stream->out = stream->raw = out;
    stream->progress_at = loop->executor.now;
    uv_os_fd_t fd = -1;
    if (!stream->fd_apart) {
        (void)uv_fileno(&ew__uv(&stream->handle)->any, &fd);
        stream->fd = fd;
    }
    if (stream->kind == EW__STREAM_TCP && !stream->accepted)
        ew__socket_prepare(fd);
    if (stream->tls)
        ew__tls_start(stream);
    ew__stream_read(stream, true);
}

#define KEEPALIVE_SECONDS 60
#define KEEPALIVE_INTERVAL 10
#define KEEPALIVE_PROBES 6

void ew__socket_prepare(int fd) {
    const struct {
        int level, option, value;
    } wanted[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                  {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_SECONDS},
                  {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL},
                  {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES},
                  {IPPROTO_TCP, TCP_NODELAY, 1}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        (void)setsockopt(fd, wanted[i].level, wanted[i].option, &wanted[i].value, sizeof wanted[i].value);
}

void ew__stream_acknowledge(ew__stream *stream) {
    int on = 1;
    if (stream->kind == EW__STREAM_TCP && !stream->closing)
        (void)setsockopt(stream->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}
