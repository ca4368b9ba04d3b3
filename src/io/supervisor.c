/*
 * io/supervisor.c: see supervisor.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/supervisor.h"
#include "io/address.h"
#include "io/fd.h"
#include <stdio.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

/* ---- sockets ---- */

static bool has_option(int fd, int option, int want) {
    int value = 0;
    socklen_t n = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &n) == 0 && value == want;
}

/* Whether its file lets others than its owner and group in: then who connects is looked at, as on our own sockets. */
static bool is_for_all(const char *path) {
    struct stat file;
    return !*path || stat(path, &file) != 0 || file.st_mode & S_IWOTH;
}

static void describe_unix(ew__address *ret, socklen_t n) {
    char path[sizeof((struct sockaddr_un *)0)->sun_path + 1] = "";
    size_t head = offsetof(struct sockaddr_un, sun_path);
    if (n > head)
        memcpy(path, ((const struct sockaddr_un *)&ret->storage)->sun_path, n - head);
    bool abstract = n > head + 1 && path[0] == '\0';
    if (abstract)
        path[0] = '@';
    ret->kind = EW__ADDR_UNIX;
    ret->loopback = true;
    ret->any_user = !abstract && !is_for_all(path);
    (void)snprintf(ret->text, sizeof ret->text, "unix:%s", path);
}

static void describe_tcp(ew__address *ret) {
    struct sockaddr_in v4; /* the port has the same place in both families */
    memcpy(&v4, &ret->storage, sizeof v4);
    ret->kind = EW__ADDR_TCP;
    ret->port = ntohs(v4.sin_port);
    ret->loopback = ew__is_loopback((const struct sockaddr *)&ret->storage);
    ew__address_write_text(ret);
}

ew_err ew__address_passed(int fd, ew__address *ret) {
    socklen_t n = sizeof ret->storage;
    memset(ret, 0, sizeof *ret);
    ret->fd = fd;
    ret->passed = true;
    if (!has_option(fd, SO_TYPE, SOCK_STREAM) || !has_option(fd, SO_ACCEPTCONN, 1) ||
        getsockname(fd, (struct sockaddr *)&ret->storage, &n) != 0)
        return EW_EINVAL;
    sa_family_t family = ret->storage.ss_family;
    if (family == AF_UNIX)
        describe_unix(ret, n);
    else if (family == AF_INET || family == AF_INET6)
        describe_tcp(ret);
    else
        return EW_EINVAL;
    return EW_OK;
}

ew_err ew__passed_acquire(const ew__address *address, int *ret_fd) {
    *ret_fd = ew__fd_copy(address->fd);
    if (*ret_fd < 0)
        return ew__err_from_errno();
    if (address->kind == EW__ADDR_TCP)
        ew__socket_prepare(*ret_fd);
    return EW_OK;
}

/* ---- messages ---- */

ew_err ew__notify(const char *path, ew_str message) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || n < 2 || n >= sizeof name.sun_path)
        return EW_EINVAL;
    memcpy(name.sun_path, path, n + 1);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    if (path[0] == '@') { /* its name is all of it, and has no end */
        name.sun_path[0] = '\0';
        size--;
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return ew__err_from_errno();
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){.tv_sec = 1}, sizeof(struct timeval));
    ssize_t sent = sendto(fd, message.ptr, message.len, MSG_NOSIGNAL, (const struct sockaddr *)&name, size);
    ew_err err = sent < 0 ? ew__err_from_errno() : EW_OK;
    close(fd);
    return err;
}
