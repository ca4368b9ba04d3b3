/*
 * io/stdio.c: a stream on standard input and output, whatever they are: pipes, terminals, sockets, files.
 *
 * O_NONBLOCK belongs to what a descriptor stands for, and that is shared with the shell or the parent: so pipes and
 * terminals are opened anew, sockets get their old flags back at the end, and what epoll does not take is left to a
 * pump.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/handle.h"
#include "io/fd.h"
#include "io/pump.h"
#include "io/stream.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PUMP_MS 5000              /* for a pump to end once its stream is closed */
#define ANONYMOUS_PIPE 0x50495045 /* PIPEFS_MAGIC */

typedef struct stdio stdio;

typedef struct side {
    stdio *stdio;
    ew__pump *pump; /* NULL: none, or ended */
    int fd;         /* ours; -1: closed */
    int old_flags;  /* to be put back; -1: nothing to do */
} side;

struct stdio {
    ew__stream_ext beside; /* first: the stream knows only this */
    ew__loop *loop;
    ew__stream *stream;
    side in, out;
    ew__timer timer; /* set from the beginning, so that moving it at the end cannot fail */
    uv_poll_t away;  /* after the end of input: tells that nobody reads our output any more */
    int away_fd;     /* a copy, because libuv watches a descriptor once; -1: not watched */
    bool away_open;  /* the handle is to be closed */
    bool closed;     /* the stream's handle is */
};

/*
 * The one mutable thing that is not in anybody's hands: descriptors 0 and 1 belong to the process, and two streams on
 * them, perhaps of two runtimes that know nothing of each other, would tear each other's frames apart.
 */
static atomic_bool taken;

static stdio *stdio_of(const ew__stream *stream) { return ew__container_of(stream->beside, stdio, beside); }

/* ---- the end ---- */

static void put_back_flags(side *s) {
    if (s->old_flags >= 0)
        (void)fcntl(s->fd, F_SETFL, s->old_flags);
    s->old_flags = -1;
}

static void close_side(side *s) {
    if (s->fd < 0)
        return;
    put_back_flags(s);
    close(s->fd);
    s->fd = -1;
}

static void check_gone(stdio *io) {
    ew__stream *stream = io->stream;
    if (!io->closed || io->away_open || io->in.pump || io->out.pump)
        return;
    ew__timer_stop(&io->loop->executor.timers, &io->timer);
    ew__free(io->loop->executor.env, io, sizeof *io);
    atomic_store(&taken, false);
    ew__stream_gone(stream);
}

static void on_pump_ended(void *ud) {
    side *s = ud;
    s->pump = NULL;
    check_gone(s->stdio);
}

static void on_time(ew__timer *timer, uint64_t now) {
    stdio *io = ew__container_of(timer, stdio, timer);
    (void)now;
    if (io->in.pump && ew__pump_abandon(io->in.pump))
        io->in.pump = NULL;
    if (io->out.pump && ew__pump_abandon(io->out.pump))
        io->out.pump = NULL;
    check_gone(io);
}

/* The other side sees eof. */
static void on_shut(ew__stream *stream) {
    close_side(&stdio_of(stream)->out);
    stream->fd = -1;
}

static void on_away_closed(uv_handle_t *handle) {
    stdio *io = ew__container_of(handle, stdio, away);
    io->away_open = false;
    check_gone(io);
}

static void stop_watching(stdio *io) {
    if (io->away_fd < 0)
        return;
    uv_close((uv_handle_t *)&io->away, on_away_closed);
    close(io->away_fd);
    io->away_fd = -1;
}

static void on_away(uv_poll_t *poll, int status, int events) {
    stdio *io = ew__container_of(poll, stdio, away);
    (void)status;
    (void)events;
    ew__stream_close(io->stream, EW_ECLOSED);
}

/*
 * Nothing more comes in, so nothing tells that the other side has gone for good: its end of our output does. (Asked for
 * urgent data, which never comes, the kernel reports only errors and hang-ups.)
 */
static void on_ended(ew__stream *stream) {
    stdio *io = stdio_of(stream);
    if (io->out.pump || io->out.fd < 0 || io->away_fd >= 0)
        return;
    int fd = ew__fd_copy(io->out.fd);
    if (fd < 0 || uv_poll_init(io->loop->uv, &io->away, fd) != 0) {
        if (fd >= 0)
            close(fd);
        return; /* then it is noticed when we write */
    }
    io->away_fd = fd;
    io->away_open = true;
    (void)uv_poll_start(&io->away, UV_PRIORITIZED, on_away);
}

static void on_closing(ew__stream *stream) {
    stdio *io = stdio_of(stream);
    stop_watching(io);
    on_shut(stream);
    put_back_flags(&io->in);
    io->in.fd = -1; /* the handle closes it */
}

static void on_closed(ew__stream *stream) {
    stdio *io = stdio_of(stream);
    io->closed = true;
    if (io->in.pump || io->out.pump) /* a move, and so it cannot fail */
        (void)ew__timer_set(&io->loop->executor.timers, &io->timer, io->loop->executor.now + EW__MS(PUMP_MS), on_time);
    check_gone(io);
}

/* ---- opening ---- */

static bool can_poll(int fd) {
    struct epoll_event event = {.events = 0};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    bool can = epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
    if (epoll >= 0)
        close(epoll);
    return can;
}

static int above_two(int fd) {
    if (fd < 0 || fd > 2)
        return fd;
    int up = ew__fd_copy(fd);
    close(fd);
    return up;
}

/*
 * The same pipe or terminal with flags of our own; -1 if it cannot be had. Not for a pipe with a name: whoever opens
 * one after its last writer has gone waits for the next instead of seeing the end.
 */
static int open_anew(int number, int mode) {
    struct stat file;
    struct statfs system;
    char path[32];
    bool pipe = fstat(number, &file) == 0 && S_ISFIFO(file.st_mode) && fstatfs(number, &system) == 0 &&
                system.f_type == ANONYMOUS_PIPE;
    if (!pipe && !isatty(number))
        return -1;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", number);
    return above_two(open(path, mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

static ew_err open_side(side *s, int number) {
    s->fd = open_anew(number, number == 0 ? O_RDONLY : O_WRONLY);
    if (s->fd >= 0)
        return EW_OK;
    s->fd = ew__fd_copy(number);
    if (s->fd < 0)
        return EW_EIO;
    if (!can_poll(s->fd)) {
        int file = s->fd, socket = -1;
        s->fd = -1;
        ew_err err = ew__pump_start(s->stdio->loop, file, number == 0, on_pump_ended, s, &s->pump, &socket);
        s->fd = socket;
        return err != EW_OK || fcntl(socket, F_SETFL, O_RDWR | O_NONBLOCK) == 0 ? err : EW_EIO;
    }
    int flags = fcntl(s->fd, F_GETFL);
    if (flags < 0 || (!(flags & O_NONBLOCK) && fcntl(s->fd, F_SETFL, flags | O_NONBLOCK) != 0))
        return EW_EIO;
    s->old_flags = flags & O_NONBLOCK ? -1 : flags;
    return EW_OK;
}

/* What a stray printf, or a library that reads standard input, gets from now on. */
static ew_err replace_numbers(void) {
    int null = above_two(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (null < 0)
        return EW_EIO;
    bool ok = dup2(null, 0) == 0 && (dup2(2, 1) == 1 || dup2(null, 1) == 1);
    close(null);
    return ok ? EW_OK : EW_EIO;
}

static bool is_socket(int fd) {
    struct stat file;
    return fstat(fd, &file) == 0 && S_ISSOCK(file.st_mode);
}

static void become_stream(stdio *io) {
    ew__stream *stream = io->stream;
    (void)uv_pipe_init(io->loop->uv, &ew__uv(&stream->handle)->pipe, 0);
    if (uv_pipe_open(&ew__uv(&stream->handle)->pipe, io->in.fd) != 0)
        close_side(&io->in); /* reading will fail at once, and close the stream */
    stream->kind = EW__STREAM_STDIO;
    stream->fd = io->out.fd;
    stream->fd_apart = true;
    stream->no_socket = !is_socket(io->out.fd);
    stream->beside = &io->beside;
}

/* Before the stream has it. */
static void undo(stdio *io) {
    side *sides[] = {&io->in, &io->out};
    for (int i = 0; i < 2; i++) {
        close_side(sides[i]);
        if (sides[i]->pump)
            ew__pump_forget(sides[i]->pump);
    }
    ew__timer_stop(&io->loop->executor.timers, &io->timer);
    ew__free(io->loop->executor.env, io, sizeof *io);
    atomic_store(&taken, false);
}

ew_err ew__stream_open_stdio(ew__stream *stream, ew__loop *loop) {
    if (atomic_exchange(&taken, true))
        return EW_EBUSY;
    stdio *io = ew__zalloc(loop->executor.env, sizeof *io);
    if (!io) {
        atomic_store(&taken, false);
        return EW_ENOMEM;
    }
    io->beside = (ew__stream_ext){.ended = on_ended, .shut = on_shut, .closing = on_closing, .closed = on_closed};
    io->away_fd = -1;
    io->loop = loop;
    io->stream = stream;
    io->in = io->out = (side){.stdio = io, .fd = -1, .old_flags = -1};
    ew_err err = ew__timer_set(&loop->executor.timers, &io->timer, EW__NEVER - 1, on_time);
    if (err == EW_OK)
        err = open_side(&io->in, 0);
    if (err == EW_OK)
        err = open_side(&io->out, 1);
    if (err == EW_OK)
        err = replace_numbers();
    if (err != EW_OK) {
        undo(io);
        return err;
    }
    become_stream(io);
    return EW_OK;
}
