/*
 * io/listen.c: listening sockets. Each loop has a listening socket of its own on the same TCP port (SO_REUSEPORT); the
 * kernel deals the connections out. libuv of 2023 cannot set that option, so the sockets are made here. A Unix socket
 * is one for all loops: whoever is first takes the connection.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/handle.h"
#include "io/address.h"
#include "io/supervisor.h"
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 4096

/* ---- sockets ---- */

ew_err ew__err_from_errno(void) { return ew__err_from_uv(uv_translate_sys_error(errno)); }

static socklen_t size_of(const ew__address *address) {
    return address->storage.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static void set_port(ew__address *address, uint16_t port) {
    address->port = port;
    if (address->storage.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address->storage)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)&address->storage)->sin_port = htons(port);
}

static ew_err bound_socket(const ew__address *address, bool share, int *ret_fd) {
    int one = 1;
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return ew__err_from_errno();
    bool ok = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0;
    if (ok && share)
        ok = setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) == 0;
    if (ok && address->storage.ss_family == AF_INET6)
        ok = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0;
    if (!ok || bind(fd, (const struct sockaddr *)&address->storage, size_of(address)) != 0) {
        ew_err err = ew__err_from_errno();
        close(fd);
        return err;
    }
    *ret_fd = fd;
    return EW_OK;
}

/* SO_REUSEPORT would let a second server of the same user bind silently beside us: ask without it first. */
ew_err ew__address_probe(const ew__address *address) {
    int fd = -1;
    if (address->passed)
        return EW_OK;
    if (address->kind != EW__ADDR_TCP)
        return address->kind == EW__ADDR_UNIX ? ew__unix_probe(address) : EW_OK;
    ew_err err = address->port ? bound_socket(address, false, &fd) : EW_OK;
    if (fd < 0)
        return err;
    if (listen(fd, 1) != 0)
        err = ew__err_from_errno();
    close(fd);
    return err;
}

static void learn_port(int fd, ew__address *address) {
    struct sockaddr_storage bound;
    socklen_t n = sizeof bound;
    if (address->port != 0 || getsockname(fd, (struct sockaddr *)&bound, &n) != 0)
        return;
    struct sockaddr_in v4; /* the port has the same place in both families */
    memcpy(&v4, &bound, sizeof v4);
    set_port(address, ntohs(v4.sin_port));
    ew__address_write_text(address);
}

/*
 * A bound socket that does not listen keeps the kernel from giving the port to others, and permits a program that sets
 * SO_REUSEADDR (or, as the same user, SO_REUSEPORT) to listen there.
 */
ew_err ew__address_pick(ew__address *address, int *ret_hold) {
    int fd = -1;
    if (address->kind != EW__ADDR_TCP)
        return EW_EINVAL;
    set_port(address, 0);
    ew_err err = bound_socket(address, true, &fd);
    if (err != EW_OK)
        return err;
    learn_port(fd, address);
    if (ret_hold)
        *ret_hold = fd;
    else
        close(fd);
    return EW_OK;
}

static ew_err tcp_acquire(ew__address *address, int *ret_fd) {
    ew_err err = bound_socket(address, true, ret_fd);
    if (err != EW_OK)
        return err;
    learn_port(*ret_fd, address);
    ew__socket_prepare(*ret_fd);
    return EW_OK;
}

/* ---- listening ---- */

static void init_handle(const ew__listener *listener, ew__handle *handle) {
    if (listener->kind == EW__STREAM_TCP)
        (void)uv_tcp_init(listener->loop->uv, &ew__uv(handle)->tcp);
    else
        (void)uv_pipe_init(listener->loop->uv, &ew__uv(handle)->pipe, 0);
}

static void on_connection(uv_stream_t *handle, int status) {
    ew__listener *listener = ew__container_of(handle, ew__listener, handle);
    if (status == 0) /* else no descriptor is left: libuv drops the connection by its reserve descriptor and goes on */
        listener->connection(listener);
}

static void closed_unused(uv_handle_t *handle) { (void)handle; }

static int listen_on(ew__listener *listener, int fd) {
    init_handle(listener, &listener->handle);
    int err = listener->kind == EW__STREAM_TCP ? uv_tcp_open(&ew__uv(&listener->handle)->tcp, fd)
                                               : uv_pipe_open(&ew__uv(&listener->handle)->pipe, fd);
    if (err != 0)
        close(fd);
    else
        err = uv_listen(&ew__uv(&listener->handle)->stream, BACKLOG, on_connection);
    if (err != 0)
        uv_close(&ew__uv(&listener->handle)->any, closed_unused);
    return err;
}

ew_err ew__listen(ew__listener *listener, ew__loop *loop, ew__address *address,
                  void (*connection)(ew__listener *listener)) {
    int fd = -1;
    if (address->kind == EW__ADDR_STDIO)
        return EW_EINVAL;
    bool tcp = address->kind == EW__ADDR_TCP;
    ew_err err = address->passed ? ew__passed_acquire(address, &fd)
                 : tcp           ? tcp_acquire(address, &fd)
                                 : ew__unix_acquire(address, &fd);
    if (err != EW_OK)
        return err;
    listener->loop = loop;
    listener->address = tcp || address->passed ? NULL : address;
    listener->any_user = address->any_user;
    listener->kind = tcp ? EW__STREAM_TCP : EW__STREAM_UNIX;
    listener->connection = connection;
    int uv = listen_on(listener, fd);
    if (uv != 0 && listener->address)
        ew__unix_release(address);
    return ew__err_from_uv(uv);
}

ew_err ew__accept(ew__listener *listener, ew__stream *stream) {
    uv_os_fd_t fd = -1;
    init_handle(listener, &stream->handle);
    stream->kind = listener->kind;
    stream->accepted = true;
    int err = uv_accept(&ew__uv(&listener->handle)->stream, &ew__uv(&stream->handle)->stream);
    if (err != 0 || listener->kind == EW__STREAM_TCP || listener->any_user)
        return ew__err_from_uv(err);
    return uv_fileno(&ew__uv(&stream->handle)->any, &fd) == 0 && ew__unix_peer_allowed(fd) ? EW_OK : EW_EACCESS;
}

/* ---- closing ---- */

static void listener_closed(uv_handle_t *handle) {
    ew__listener *listener = ew__container_of(handle, ew__listener, handle);
    listener->closed(listener);
}

static void close_listener(ew__listener *listener) {
    uv_close(&ew__uv(&listener->handle)->any, listener_closed);
    if (listener->address)
        ew__unix_release(listener->address);
    listener->address = NULL;
}

/*
 * libuv hands out no further connection before the present one was taken, so refusing must not fail: the handle for it
 * is part of the listener.
 */
static void refused_closed(uv_handle_t *handle) {
    ew__listener *listener = ew__container_of(handle, ew__listener, refused);
    listener->refusing = false;
    if (listener->closed)
        close_listener(listener);
    else if (listener->refuse_again)
        ew__accept_refuse(listener);
}

void ew__accept_refuse(ew__listener *listener) {
    listener->refuse_again = listener->refusing;
    if (listener->refusing)
        return;
    listener->refusing = true;
    init_handle(listener, &listener->refused);
    (void)uv_accept(&ew__uv(&listener->handle)->stream, &ew__uv(&listener->refused)->stream);
    uv_close(&ew__uv(&listener->refused)->any, refused_closed);
}

void ew__listener_close(ew__listener *listener, void (*closed)(ew__listener *listener)) {
    listener->closed = closed;
    if (!listener->refusing) /* else refused_closed goes on */
        close_listener(listener);
}
