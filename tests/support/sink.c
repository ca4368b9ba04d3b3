/*
 * tests/support/sink.c: see sink.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/sink.h"
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEERS 64
#define REQUEST_MAX ((size_t)8 * 1024 * 1024)

typedef struct peer {
    int fd;
    char *in;
    size_t n;
} peer;

static void send_text(int fd, const char *text) { (void)!send(fd, text, strlen(text), MSG_NOSIGNAL); }

static void keep(sink *s, const char *request, size_t head, size_t body) {
    pthread_mutex_lock(&s->lock);
    char **heads = realloc((void *)s->heads, sizeof(char *) * (s->n_kept + 1));
    s->heads = heads ? heads : s->heads;
    char **bodies = realloc((void *)s->bodies, sizeof(char *) * (s->n_kept + 1));
    s->bodies = bodies ? bodies : s->bodies;
    if (heads && bodies) {
        heads[s->n_kept] = strndup(request, head);
        bodies[s->n_kept++] = strndup(request + head, body);
    }
    pthread_mutex_unlock(&s->lock);
}

/* false: the connection is over. */
static bool answer(sink *s, int fd) {
    int mode = atomic_exchange(&s->once, -1);
    if (mode < 0)
        mode = atomic_load(&s->mode);
    for (unsigned waited = 0; waited < atomic_load(&s->delay_ms) && !atomic_load(&s->stopping); waited += 10)
        (void)usleep(10000);
    switch (mode) {
    case SINK_500:
        send_text(fd,
                  "HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n"
                  "{\"code\":13}");
        return true;
    case SINK_CLOSE_AFTER:
        send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK");
        return false;
    case SINK_CLOSE_BEFORE:
        return false;
    case SINK_SILENT:
        return true;
    case SINK_GARBAGE:
        send_text(fd, "220 mail.example.com ESMTP\r\n\r\n");
        return true;
    case SINK_CUT:
        send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nOK");
        return false;
    case SINK_UNTIL_CLOSE:
        send_text(fd, "HTTP/1.1 200 OK\r\n\r\nOK");
        return false;
    case SINK_CHUNKED:
        send_text(fd, "HTTP/1.1 200 OK\r\nTransfer-Enc");
        (void)usleep(20000);
        send_text(fd, "oding: chunked\r\n\r\n1\r\nO\r\n1\r\n");
        (void)usleep(20000);
        send_text(fd, "K\r\n0\r\n\r\n");
        return true;
    case SINK_EXTRA:
        send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOKHTTP/1.1 500 No\r\nx: ");
        return true;
    default:
        send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK");
        return true;
    }
}

/* Takes the whole requests that have come. false: the connection is over. */
static bool serve(sink *s, peer *p) {
    for (;;) {
        p->in[p->n] = '\0';
        const char *end = strstr(p->in, "\r\n\r\n"), *length = strstr(p->in, "Content-Length: ");
        if (!end || !length)
            return true;
        size_t head = (size_t)(end - p->in) + 4, body = strtoul(length + 16, NULL, 10);
        if (p->n < head + body)
            return true;
        if (s->keeps)
            keep(s, p->in, head, body);
        p->n -= head + body;
        memmove(p->in, p->in + head + body, p->n);
        atomic_fetch_add(&s->n_posts, 1); /* before its sender hears of it */
        if (!answer(s, p->fd))
            return false;
    }
}

static bool take(sink *s, peer *p) {
    if (p->n >= REQUEST_MAX)
        return false;
    ssize_t n = recv(p->fd, p->in + p->n, REQUEST_MAX - p->n, 0);
    if (n <= 0)
        return false;
    p->n += (size_t)n;
    return serve(s, p);
}

static size_t accept_one(sink *s, peer *peers, size_t n) {
    int fd = accept(s->listener, NULL, NULL);
    if (fd < 0)
        return n;
    peers[n] = (peer){.fd = fd, .in = n < PEERS ? malloc(REQUEST_MAX + 1) : NULL};
    atomic_fetch_add(&s->n_connections, 1);
    return n + 1;
}

static size_t drop(peer *peers, size_t n, size_t i) {
    close(peers[i].fd);
    free(peers[i].in);
    peers[i] = peers[n - 1];
    return n - 1;
}

static void *run(void *arg) {
    sink *s = arg;
    peer peers[PEERS];
    size_t n = 0;
    while (!atomic_load(&s->stopping)) {
        struct pollfd polls[PEERS + 1];
        for (size_t i = 0; i < n; i++)
            polls[i] = (struct pollfd){.fd = peers[i].fd, .events = POLLIN};
        polls[n] = (struct pollfd){.fd = n < PEERS ? s->listener : -1, .events = POLLIN};
        if (poll(polls, n + 1, 20) <= 0)
            continue;
        bool another = polls[n].revents != 0;
        for (size_t i = n; i-- > 0;)
            if (polls[i].revents && !take(s, &peers[i]))
                n = drop(peers, n, i);
        if (another)
            n = accept_one(s, peers, n);
    }
    while (n > 0)
        n = drop(peers, n, n - 1);
    return NULL;
}

static int bound(uint16_t port, uint16_t *ret_port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0) {
        close(fd);
        return -1;
    }
    *ret_port = ntohs(at.sin_port);
    return fd;
}

bool sink_start(sink *s, uint16_t port, bool keeps) {
    memset(s, 0, sizeof *s);
    atomic_store(&s->once, -1);
    s->keeps = keeps;
    s->listener = bound(port, &s->port);
    if (s->listener < 0 || listen(s->listener, 64) != 0)
        return false;
    pthread_mutex_init(&s->lock, NULL);
    return pthread_create(&s->thread, NULL, run, s) == 0;
}

void sink_stop(sink *s) {
    atomic_store(&s->stopping, true);
    pthread_join(s->thread, NULL);
    close(s->listener);
    for (size_t i = 0; i < s->n_kept; i++) {
        free(s->heads[i]);
        free(s->bodies[i]);
    }
    free((void *)s->heads);
    free((void *)s->bodies);
    pthread_mutex_destroy(&s->lock);
}

static const char *kept(sink *s, char ***texts, size_t i) {
    pthread_mutex_lock(&s->lock);
    const char *text = i < s->n_kept ? (*texts)[i] : NULL;
    pthread_mutex_unlock(&s->lock);
    return text;
}

const char *sink_head(sink *s, size_t i) { return kept(s, &s->heads, i); }
const char *sink_body(sink *s, size_t i) { return kept(s, &s->bodies, i); }

bool sink_wait(sink *s, unsigned n) {
    for (int i = 0; i < 3000 && atomic_load(&s->n_posts) < n; i++)
        (void)usleep(10000);
    return atomic_load(&s->n_posts) >= n;
}
