/*
 * tests/support/port.c: see port.h. A port is claimed by an abstract Unix socket with the port in its name, which the
 * kernel removes when the process ends. ports.py claims ports for the tests in Python by the same names.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/port.h"
#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define RANGE 8192u
#define MOST 16u /* consecutive ports */

/* The end of the range, which is the lowest port that the kernel assigns by itself. */
static unsigned range_end(void) {
    unsigned low = 0;
    char text[64] = "";
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
    if (file && fgets(text, sizeof text, file))
        low = (unsigned)strtoul(text, NULL, 10);
    if (file)
        (void)fclose(file);
    return low > 1024 + RANGE && low < 65536 ? low : 32768;
}

/* The socket that claims the port, or -1. */
static int claim(unsigned port) {
    struct sockaddr_un name = {.sun_family = AF_UNIX}; /* abstract: the path begins with a NUL */
    int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "everywire-test-port-%u", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&name, size) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static bool is_free(unsigned port) {
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    if (fd >= 0)
        (void)close(fd);
    return is;
}

/* All or none of them. */
static bool claim_all(unsigned first, unsigned n) {
    int fds[MOST];
    unsigned i = 0;
    while (i < n && (fds[i] = claim(first + i)) >= 0 && is_free(first + i))
        i++;
    if (i == n)
        return true; /* the sockets stay open until the process ends */
    for (unsigned k = 0; k <= i; k++)
        if (fds[k] >= 0)
            (void)close(fds[k]);
    return false;
}

uint16_t free_ports(unsigned n) {
    unsigned first = range_end() - RANGE, start = (unsigned)getpid() * 37;
    for (unsigned i = 0; i < RANGE && n <= MOST; i++) {
        unsigned at = (start + i) % (RANGE - MOST);
        if (claim_all(first + at, n))
            return (uint16_t)(first + at);
    }
    (void)fprintf(stderr, "no %u free ports\n", n);
    abort();
}

uint16_t free_port(void) { return free_ports(1); }
