/*
 * io/address.c: where to listen, read from text and written as text.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/address.h"
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

void ew__address_write_text(ew__address *address) {
    char host[48] = "?";
    if (address->storage.ss_family == AF_INET6) {
        (void)uv_ip6_name((struct sockaddr_in6 *)&address->storage, host, sizeof host);
        (void)snprintf(address->text, sizeof address->text, "[%s]:%u", host, address->port);
    } else {
        (void)uv_ip4_name((struct sockaddr_in *)&address->storage, host, sizeof host);
        (void)snprintf(address->text, sizeof address->text, "%s:%u", host, address->port);
    }
}

bool ew__is_loopback(const struct sockaddr *address) {
    if (address->sa_family == AF_INET6) {
        static const uint8_t one[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
        return memcmp(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, one, 16) == 0;
    }
    return address->sa_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
}

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET6) {
        const struct sockaddr_in6 *x = (const void *)a, *y = (const void *)b;
        return x->sin6_port == y->sin6_port && memcmp(&x->sin6_addr, &y->sin6_addr, sizeof x->sin6_addr) == 0;
    }
    const struct sockaddr_in *x = (const void *)a, *y = (const void *)b;
    return x->sin_port == y->sin_port && x->sin_addr.s_addr == y->sin_addr.s_addr;
}

bool ew__is_itself(int fd) {
    struct sockaddr_storage here, there;
    socklen_t n_here = sizeof here, n_there = sizeof there;
    memset(&here, 0, sizeof here);
    memset(&there, 0, sizeof there);
    return getsockname(fd, (struct sockaddr *)&here, &n_here) == 0 &&
           getpeername(fd, (struct sockaddr *)&there, &n_there) == 0 &&
           (here.ss_family == AF_INET || here.ss_family == AF_INET6) && same_address(&here, &there);
}

static const uint8_t v4_in_v6[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool ew__stream_origin(const ew__stream *stream, uint8_t key[16], bool *ret_loopback) {
    struct sockaddr_storage from;
    int n = sizeof from;
    if (stream->kind != EW__STREAM_TCP || uv_tcp_getpeername(&stream->handle.tcp, (struct sockaddr *)&from, &n) != 0)
        return false;
    *ret_loopback = ew__is_loopback((const struct sockaddr *)&from);
    memset(key, 0, 16);
    if (from.ss_family == AF_INET) {
        memcpy(key, v4_in_v6, sizeof v4_in_v6);
        memcpy(key + 12, &((const struct sockaddr_in *)(const void *)&from)->sin_addr, 4);
        return true;
    }
    const uint8_t *bytes = ((const struct sockaddr_in6 *)(const void *)&from)->sin6_addr.s6_addr;
    bool mapped = memcmp(bytes, v4_in_v6, sizeof v4_in_v6) == 0;
    memcpy(key, bytes, mapped ? 16 : 8);
    *ret_loopback = *ret_loopback || (mapped && bytes[12] == 127);
    return from.ss_family == AF_INET6;
}

static ew_err parse_unix(const char *path, ew__address *ret) {
    struct sockaddr_un *name = (struct sockaddr_un *)&ret->storage;
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof name->sun_path)
        return EW_EINVAL;
    name->sun_family = AF_UNIX;
    memcpy(name->sun_path, path, n + 1);
    ret->kind = EW__ADDR_UNIX;
    ret->loopback = true;
    (void)snprintf(ret->text, sizeof ret->text, "unix:%s", path);
    return EW_OK;
}

static ew_err parse_tcp(const char *text, ew__address *ret) {
    const char *colon = strrchr(text, ':');
    char host[64];
    uint64_t port = 0;
    size_t n = colon ? (size_t)(colon - text) : 0;
    if (!colon || n >= sizeof host || !ew__u64_parse(ew_str_from(colon + 1), &port) || port > 65535)
        return EW_EINVAL;
    bool v6 = n >= 2 && text[0] == '[' && text[n - 1] == ']';
    memcpy(host, text + (v6 ? 1 : 0), v6 ? n - 2 : n);
    host[v6 ? n - 2 : n] = '\0';
    if (!v6 && strcmp(host, "localhost") == 0)
        memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
    int err = v6 ? uv_ip6_addr(host, (int)port, (struct sockaddr_in6 *)&ret->storage)
                 : uv_ip4_addr(host, (int)port, (struct sockaddr_in *)&ret->storage);
    if (err != 0)
        return EW_EINVAL;
    ret->port = (uint16_t)port;
    ret->loopback = ew__is_loopback((const struct sockaddr *)&ret->storage);
    ew__address_write_text(ret);
    return EW_OK;
}

ew_err ew__address_parse(const char *text, ew__address *ret) {
    memset(ret, 0, sizeof *ret);
    ret->fd = -1;
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text + 5, ret);
    if (strcmp(text, "stdio") != 0)
        return parse_tcp(text, ret);
    ret->kind = EW__ADDR_STDIO;
    ret->loopback = true;
    memcpy(ret->text, "stdio", sizeof "stdio");
    return EW_OK;
}
