/*
 * io/address.c: where to listen, read from text and written as text.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/handle.h"
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

/* ---- special addresses ---- */

typedef struct prefix {
    uint8_t bits;
    uint8_t bytes[16];
} prefix;

static bool begins_with(const uint8_t *address, const prefix *p) {
    unsigned n = p->bits / 8u, rest = p->bits % 8u;
    if (memcmp(address, p->bytes, n) != 0)
        return false;
    return rest == 0 || (address[n] ^ p->bytes[n]) >> (8u - rest) == 0;
}

static bool is_listed(const uint8_t *address, const prefix *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (begins_with(address, &list[i]))
            return true;
    return false;
}

static bool is_special_v4(const uint8_t address[4]) {
    static const prefix list[] = {
        {8, {0}},                   /* this network: 0.0.0.0 reaches this machine */
        {16, {169, 254}},           /* link-local, with the metadata of most clouds */
        {3, {224}},                 /* multicast, reserved, broadcast */
        {32, {100, 100, 100, 200}}, /* metadata: Alibaba Cloud */
        {32, {168, 63, 129, 16}},   /* Azure's platform services */
        {32, {192, 0, 0, 192}},     /* metadata: Oracle Cloud */
    };
    return is_listed(address, list, sizeof list / sizeof *list);
}

/* The IPv4 address that an IPv6 address carries; NULL: none. */
static const uint8_t *embedded_v4(const uint8_t address[16]) {
    static const prefix last_four[] = {
        {96, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}}, /* mapped */
        {96, {0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}},       /* translated, RFC 2765 */
        {96, {0}},                                        /* compatible */
        {96, {0, 0x64, 0xff, 0x9b}},                      /* NAT64 */
    };
    static const prefix six_to_four = {16, {0x20, 0x02}};
    if (is_listed(address, last_four, sizeof last_four / sizeof *last_four))
        return address + 12;
    return begins_with(address, &six_to_four) ? address + 2 : NULL;
}

static bool is_special_v6(const uint8_t address[16]) {
    static const prefix list[] = {
        {10, {0xfe, 0x80}},                                                        /* link-local */
        {8, {0xff}},                                                               /* multicast */
        {128, {0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}}, /* metadata: AWS */
        {128, {0xfd, 0x20, 0, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}},    /* metadata: Google Cloud */
    };
    const uint8_t *v4 = embedded_v4(address);
    return is_listed(address, list, sizeof list / sizeof *list) || (v4 && is_special_v4(v4));
}

bool ew__is_special_address(const struct sockaddr *address) {
    if (ew__is_loopback(address))
        return false;
    if (address->sa_family == AF_INET)
        return is_special_v4((const uint8_t *)&((const struct sockaddr_in *)(const void *)address)->sin_addr);
    return address->sa_family != AF_INET6 ||
           is_special_v6(((const struct sockaddr_in6 *)(const void *)address)->sin6_addr.s6_addr);
}

/* ---- both ends of a connection ---- */

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
    if (stream->kind != EW__STREAM_TCP ||
        uv_tcp_getpeername(&ew__uv(&stream->handle)->tcp, (struct sockaddr *)&from, &n) != 0)
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
