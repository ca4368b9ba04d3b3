/*
 * io/listen.c: addresses and listening sockets. Each loop has a listening socket of its own on the same port
 * (SO_REUSEPORT); the kernel deals the connections out. libuv of 2023 cannot set that option, so the sockets are made
 * here.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/stream.h"
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 4096

/* ---- addresses ---- */

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

static void write_text(ew__address *address) {
    char host[48] = "?";
    if (address->storage.ss_family == AF_INET6) {
        (void)uv_ip6_name((struct sockaddr_in6 *)&address->storage, host, sizeof host);
        (void)snprintf(address->text, sizeof address->text, "[%s]:%u", host, address->port);
    } else {
        (void)uv_ip4_name((struct sockaddr_in *)&address->storage, host, sizeof host);
        (void)snprintf(address->text, sizeof address->text, "%s:%u", host, address->port);
    }
}

static bool is_loopback(const ew__address *address) {
    if (address->storage.ss_family == AF_INET6) {
        static const uint8_t one[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
        return memcmp(&((const struct sockaddr_in6 *)&address->storage)->sin6_addr, one, 16) == 0;
    }
    return ntohl(((const struct sockaddr_in *)&address->storage)->sin_addr.s_addr) >> 24 == 127;
}

ew_err ew__address_parse(const char *text, ew__address *ret) {
    const char *colon = strrchr(text, ':');
    char host[64];
    uint64_t port = 0;
    size_t n = colon ? (size_t)(colon - text) : 0;
    if (!colon || n >= sizeof host || !ew__u64_parse(ew_str_from(colon + 1), &port) || port > 65535)
        return EW_EINVAL;
    bool v6 = n >= 2 && text[0] == '[' && text[n - 1] == ']';
    memcpy(host, text + (v6 ? 1 : 0), v6 ? n - 2 : n);
    host[v6 ? n - 2 : n] = '\0';
    memset(ret, 0, sizeof *ret);
    if (!v6 && strcmp(host, "localhost") == 0)
        memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
    int err = v6 ? uv_ip6_addr(host, (int)port, (struct sockaddr_in6 *)&ret->storage)
                 : uv_ip4_addr(host, (int)port, (struct sockaddr_in *)&ret->storage);
    if (err != 0)
        return EW_EINVAL;
    ret->port = (uint16_t)port;
    ret->loopback = is_loopback(ret);
    write_text(ret);
    return EW_OK;
}

/* ---- sockets ---- */

static ew_err from_errno(void) { return ew__err_from_uv(uv_translate_sys_error(errno)); }

static ew_err bound_socket(const ew__address *address, bool share, int *ret_fd) {
    int one = 1;
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return from_errno();
    bool ok = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0;
    if (ok && share)
        ok = setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) == 0;
    if (ok && address->storage.ss_family == AF_INET6)
        ok = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0;
    if (!ok || bind(fd, (const struct sockaddr *)&address->storage, size_of(address)) != 0) {
        ew_err err = from_errno();
        close(fd);
        return err;
    }
    *ret_fd = fd;
    return EW_OK;
}

/* SO_REUSEPORT would let a second server of the same user bind silently beside us: ask without it first. */
ew_err ew__address_probe(const ew__address *address) {
    int fd = -1;
    ew_err err = address->port ? bound_socket(address, false, &fd) : EW_OK;
    if (fd < 0)
        return err;
    if (listen(fd, 1) != 0)
        err = from_errno();
    close(fd);
    return err;
}

static void learn_port(int fd, ew__address *address) {
    ew__address bound = *address;
    socklen_t n = sizeof bound.storage;
    if (address->port != 0 || getsockname(fd, (struct sockaddr *)&bound.storage, &n) != 0)
        return;
    struct sockaddr_in v4; /* the port has the same place in both families */
    memcpy(&v4, &bound.storage, sizeof v4);
    set_port(address, ntohs(v4.sin_port));
    write_text(address);
}

static void on_connection(uv_stream_t *handle, int status) {
    ew__listener *listener = ew__container_of(handle, ew__listener, tcp);
    if (status == 0) /* else no descriptor is left: libuv drops the connection by its reserve descriptor and goes on */
        listener->connection(listener);
}

static void closed_unused(uv_handle_t *handle) { (void)handle; }

ew_err ew__listen(ew__listener *listener, ew__loop *loop, ew__address *address,
                  void (*connection)(ew__listener *listener)) {
    int fd = -1;
    ew_err err = bound_socket(address, true, &fd);
    if (err != EW_OK)
        return err;
    learn_port(fd, address);
    listener->loop = loop;
    listener->connection = connection;
    (void)uv_tcp_init(loop->uv, &listener->tcp);
    int uv = uv_tcp_open(&listener->tcp, fd);
    if (uv != 0)
        close(fd);
    else
        uv = uv_listen((uv_stream_t *)&listener->tcp, BACKLOG, on_connection);
    if (uv != 0)
        uv_close((uv_handle_t *)&listener->tcp, closed_unused);
    return ew__err_from_uv(uv);
}

ew_err ew__accept(ew__listener *listener, ew__stream *stream) {
    (void)uv_tcp_init(listener->loop->uv, &stream->tcp);
    int err = uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)&stream->tcp);
    return ew__err_from_uv(err);
}

static void listener_closed(uv_handle_t *handle) {
    ew__listener *listener = ew__container_of(handle, ew__listener, tcp);
    listener->closed(listener);
}

/*
 * libuv hands out no further connection before the present one was taken, so refusing must not fail: the handle for it
 * is part of the listener.
 */
static void refused_closed(uv_handle_t *handle) {
    ew__listener *listener = ew__container_of(handle, ew__listener, refused);
    listener->refusing = false;
    if (listener->closed)
        uv_close((uv_handle_t *)&listener->tcp, listener_closed);
    else if (listener->refuse_again)
        ew__accept_refuse(listener);
}

void ew__accept_refuse(ew__listener *listener) {
    listener->refuse_again = listener->refusing;
    if (listener->refusing)
        return;
    listener->refusing = true;
    (void)uv_tcp_init(listener->loop->uv, &listener->refused);
    (void)uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)&listener->refused);
    uv_close((uv_handle_t *)&listener->refused, refused_closed);
}

void ew__listener_close(ew__listener *listener, void (*closed)(ew__listener *listener)) {
    listener->closed = closed;
    if (!listener->refusing) /* else refused_closed goes on */
        uv_close((uv_handle_t *)&listener->tcp, listener_closed);
}
