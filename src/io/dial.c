/*
 * io/dial.c: reaching a peer: resolve its name and try each address in turn, and shake hands if TLS is spoken; connect
 * to a Unix socket; start a child.
 * There is one time limit for all of it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/handle.h"
#include "io/address.h"
#include "io/child.h"
#include "io/tls.h"
#include <netdb.h>
#include <stdio.h>
#include <sys/un.h>

struct ew__dial {
    ew__loop *loop;
    ew__stream *stream;
    ew__where where;
    ew__dial_done done;
    ew__child *child; /* while it is being started */
    struct addrinfo *found;
    struct addrinfo *at; /* the one being tried */
    uv_getaddrinfo_t lookup;
    uv_connect_t connect;
    ew__timer timer;
    ew_err verdict;    /* why it is being given up, EW_OK while it is not */
    int last_error;    /* libuv's, of the last attempt */
    const char *fault; /* of TLS, while it is told */
    bool resolving;
    bool securing; /* connected, shaking hands */
    bool failed;   /* before anything could begin: the timer tells it */
};

static void write_detail(const ew__dial *dial, ew_err err, char *out, size_t size) {
    const char *why = dial->fault          ? dial->fault
                      : err == EW_ETIMEOUT ? "timed out"
                      : dial->last_error   ? uv_strerror(dial->last_error)
                                           : "cancelled";
    if (dial->where.kind == EW__WHERE_CHILD && err == EW_ECONNECT)
        (void)snprintf(out, size, "cannot start %.100s: %s", dial->where.argv[0], why);
    else
        (void)snprintf(out, size, "%s", why);
}

static void finish(ew__dial *dial, ew_err err) {
    ew__loop *loop = dial->loop;
    ew__stream *stream = dial->stream;
    ew__dial_done done = dial->done;
    char detail[EW__TLS_PROBLEM];
    write_detail(dial, err, detail, sizeof detail);
    ew__timer_stop(&loop->executor.timers, &dial->timer);
    uv_freeaddrinfo(dial->found);
    ew__free(loop->executor.env, dial, sizeof *dial);
    done(stream, err, err == EW_OK ? NULL : detail);
}

/* ---- connecting ---- */

static void try_address(ew__dial *dial);

static void on_attempt_closed(uv_handle_t *handle) {
    ew__dial *dial = handle->data;
    if (dial->verdict != EW_OK) {
        finish(dial, dial->verdict);
        return;
    }
    dial->at = dial->at ? dial->at->ai_next : NULL;
    try_address(dial);
}

static void close_attempt(ew__dial *dial) {
    uv_handle_t *handle = &ew__uv(&dial->stream->handle)->any;
    handle->data = dial;
    if (!uv_is_closing(handle))
        uv_close(handle, on_attempt_closed);
}

static bool met_itself(const ew__dial *dial) {
    uv_os_fd_t fd = -1;
    return dial->stream->kind == EW__STREAM_TCP && uv_fileno(&ew__uv(&dial->stream->handle)->any, &fd) == 0 &&
           ew__is_itself(fd);
}

/* The socket is closed by now if that went wrong; another address of the same name would hardly do better. */
static void on_secured(void *ud, ew_err err, const char *detail) {
    ew__dial *dial = ud;
    dial->fault = dial->verdict == EW_OK ? detail : dial->verdict == EW_ETIMEOUT ? "the TLS handshake timed out" : NULL;
    finish(dial, err == EW_OK ? EW_OK : dial->verdict != EW_OK ? dial->verdict : EW_ECONNECT);
}

static void secure(ew__dial *dial) {
    if (ew__stream_secure_dialled(dial->stream, dial->loop, &dial->where, on_secured, dial) == EW_OK)
        return;
    dial->securing = false;
    dial->last_error = UV_ENOMEM;
    dial->verdict = EW_ECONNECT;
    close_attempt(dial);
}

static void on_connect(uv_connect_t *request, int status) {
    ew__dial *dial = request->data;
    if (status == 0 && met_itself(dial))
        status = UV_ECONNREFUSED;
    if (status == UV_ECANCELED)
        return; /* the handle is being closed: on_attempt_closed goes on */
    if (status == 0 && dial->verdict == EW_OK) {
        dial->securing = dial->where.tls != NULL;
        if (dial->securing)
            secure(dial);
        else
            finish(dial, EW_OK);
        return;
    }
    dial->last_error = status;
    close_attempt(dial);
}

/* Checks the resolved address that is connected to next: a name may resolve to another one a moment later. */
static bool may_try(const ew__dial *dial) {
    const struct sockaddr *address = dial->at->ai_addr;
    return (!dial->where.loopback_only || ew__is_loopback(address)) &&
           (!dial->where.named_by_peer || !ew__is_special_address(address));
}

static void try_address(ew__dial *dial) {
    for (; dial->at && !may_try(dial); dial->at = dial->at->ai_next)
        dial->last_error = dial->last_error ? dial->last_error : UV_EADDRNOTAVAIL;
    if (!dial->at) {
        finish(dial, EW_ECONNECT);
        return;
    }
    (void)uv_tcp_init(dial->loop->uv, &ew__uv(&dial->stream->handle)->tcp);
    dial->stream->kind = EW__STREAM_TCP;
    dial->connect.data = dial;
    int err = uv_tcp_connect(&dial->connect, &ew__uv(&dial->stream->handle)->tcp, dial->at->ai_addr, on_connect);
    if (err != 0) {
        dial->last_error = err;
        close_attempt(dial);
    }
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found) {
    ew__dial *dial = request->data;
    dial->resolving = false;
    dial->found = dial->at = found;
    if (dial->verdict != EW_OK) {
        finish(dial, dial->verdict);
    } else if (status != 0) {
        dial->last_error = status;
        finish(dial, EW_ECONNECT);
    } else {
        try_address(dial);
    }
}

static void on_child_started(void *ud, int error) {
    ew__dial *dial = ud;
    dial->child = NULL;
    dial->last_error = dial->verdict == EW_OK ? error : 0;
    finish(dial, dial->verdict != EW_OK ? dial->verdict : error ? EW_ECONNECT : EW_OK);
}

/* ---- giving up ---- */

static void give_up(ew__dial *dial, ew_err verdict) {
    if (dial->verdict != EW_OK)
        return;
    dial->verdict = verdict;
    if (dial->resolving)
        (void)uv_cancel((uv_req_t *)&dial->lookup); /* on_resolved follows, cancelled or not */
    else if (dial->child)
        ew__child_abandon(dial->child);
    else if (dial->securing)
        ew__stream_close(dial->stream, verdict);
    else if (!dial->failed)
        close_attempt(dial);
}

static void on_timeout(ew__timer *timer, uint64_t now) {
    ew__dial *dial = ew__container_of(timer, ew__dial, timer);
    (void)now;
    if (dial->failed)
        finish(dial, dial->verdict != EW_OK ? dial->verdict : EW_ECONNECT);
    else
        give_up(dial, EW_ETIMEOUT);
}

void ew__dial_cancel(ew__dial *dial) { give_up(dial, EW_ECANCELLED); }

/* ---- beginning: 0 or an error of libuv ---- */

static int begin_tcp(ew__dial *dial) {
    char service[8];
    (void)snprintf(service, sizeof service, "%u", dial->where.port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP, .ai_flags = AI_NUMERICSERV};
    dial->lookup.data = dial;
    int err = uv_getaddrinfo(dial->loop->uv, &dial->lookup, on_resolved, dial->where.host, service, &hints);
    dial->resolving = err == 0;
    return err;
}

static int begin_unix(ew__dial *dial) {
    size_t n = strlen(dial->where.path);
    if (n == 0 || n >= sizeof((struct sockaddr_un *)0)->sun_path) /* libuv would cut it */
        return n ? UV_ENAMETOOLONG : UV_ENOENT;
    (void)uv_pipe_init(dial->loop->uv, &ew__uv(&dial->stream->handle)->pipe, 0);
    dial->stream->kind = EW__STREAM_UNIX;
    dial->connect.data = dial;
    uv_pipe_connect(&dial->connect, &ew__uv(&dial->stream->handle)->pipe, dial->where.path, on_connect);
    return 0;
}

static int begin(ew__dial *dial) {
    switch ((ew__where_kind)dial->where.kind) {
    case EW__WHERE_TCP:
        return begin_tcp(dial);
    case EW__WHERE_UNIX:
        return begin_unix(dial);
    case EW__WHERE_CHILD:
        return ew__child_start(dial->loop, dial->stream, &dial->where, on_child_started, dial, &dial->child);
    case EW__WHERE_LISTEN:
        break;
    }
    return UV_EINVAL;
}

ew_err ew__dial_start(ew__loop *loop, ew__stream *stream, const ew__where *where, uint64_t timeout_ms,
                      ew__dial_done done, ew__dial **ret_dial) {
    ew__dial *dial = ew__zalloc(loop->executor.env, sizeof *dial);
    if (!dial)
        return EW_ENOMEM;
    dial->loop = loop;
    dial->stream = stream;
    dial->where = *where;
    dial->done = done;
    uint64_t now = ew__executor_read_clock(&loop->executor);
    ew_err err = ew__timer_set(&loop->executor.timers, &dial->timer, now + EW__MS(timeout_ms), on_timeout);
    if (err != EW_OK) {
        ew__free(loop->executor.env, dial, sizeof *dial);
        return err;
    }
    dial->last_error = begin(dial);
    dial->failed = dial->last_error != 0;
    if (dial->failed) /* done must not be called before the caller has the dial: it is told in the next turn */
        (void)ew__timer_set(&loop->executor.timers, &dial->timer, now, on_timeout); /* a move: cannot fail */
    *ret_dial = dial;
    return EW_OK;
}
