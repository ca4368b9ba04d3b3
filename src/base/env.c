/*
 * base/env.c: the env that is used when a host brings none: the C library's allocator, the kernel's clocks and random
 * bytes, no log. The only file of the library that may call these.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/env.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/random.h>
#endif

static void *default_alloc(void *ud, void *ptr, size_t old_size, size_t new_size) {
    (void)ud;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static uint64_t read_clock(clockid_t id, uint64_t per_second, uint64_t ns_per_unit) {
    struct timespec t = {0, 0};
    (void)clock_gettime(id, &t); /* cannot fail for these two clocks */
    return (uint64_t)t.tv_sec * per_second + (uint64_t)t.tv_nsec / ns_per_unit;
}

static uint64_t default_now_ns(void *ud) {
    (void)ud;
    return read_clock(CLOCK_MONOTONIC, 1000000000u, 1);
}

static uint64_t default_wall_ms(void *ud) {
    (void)ud;
    return read_clock(CLOCK_REALTIME, 1000, 1000000);
}

/* How many of the n bytes the kernel's call filled. */
static size_t random_from_kernel(uint8_t *bytes, size_t n) {
    size_t done = 0;
#if defined(__linux__)
    while (done < n) {
        ssize_t got = getrandom(bytes + done, n - done, 0);
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            break;
        }
    }
#else
    (void)bytes;
    (void)n;
#endif
    return done;
}

/* The way of kernels and sandboxes without the call. */
static size_t random_from_file(uint8_t *bytes, size_t n) {
    int fd;
    do {
        fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return 0;
    }
    size_t done = 0;
    while (done < n) {
        ssize_t got = read(fd, bytes + done, n - done);
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            break;
        }
    }
    (void)close(fd);
    return done;
}

/* No source at all (a bare chroot under a strict filter): ids must still differ: clocks and the stack mix. */
static void random_from_clock(uint8_t *bytes, size_t n) {
    uint64_t x = default_now_ns(NULL) ^ (default_wall_ms(NULL) << 20) ^ (uint64_t)(uintptr_t)&x;
    for (size_t i = 0; i < n; i++) {
        x += 0x9e3779b97f4a7c15u;
        uint64_t z = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        bytes[i] = (uint8_t)(z >> 56);
    }
}

static void default_random(void *ud, void *bytes, size_t n) {
    (void)ud;
    uint8_t *at = bytes;
    size_t done = random_from_kernel(at, n);
    if (done < n) {
        done += random_from_file(at + done, n - done);
    }
    if (done < n) {
        random_from_clock(at + done, n - done);
    }
}

const ew_env *ew_env_default(void) {
    static const ew_env env = {
        .alloc = default_alloc,
        .now_ns = default_now_ns,
        .wall_ms = default_wall_ms,
        .random = default_random,
        .log = NULL,
        .ud = NULL,
    };
    return &env;
}
