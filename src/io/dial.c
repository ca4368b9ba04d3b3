/*
 * io/dial.c: reaching a peer: resolve its name, try each address in turn, within one time limit for all of it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/stream.h"
#include <netdb.h>
#include <stdio.h>

struct ew__dial {
    ew__loop *loop;
    ew__stream *stream;
    ew__dial_done done;
    struct addrinfo *found;
    struct addrinfo *at; /* the one being tried */
    uv_getaddrinfo_t lookup;
    uv_connect_t connect;
    ew__timer timer;
    ew_err verdict; /* why it is being given up, EW_OK while it is not */
    int last_error; /* libuv's, of the last attempt */
    bool resolving;
    bool connected; /* stream->tcp is a live handle that must be closed on failure */
};

static void finish(ew__dial *dial, ew_err err) {
    ew__loop *loop = dial->loop;
    ew__stream *stream = dial->stream;
    ew__dial_done done = dial->done;
    const char *detail = err == EW_ETIMEOUT ? "timed out"
                         : dial->last_error ? uv_strerror(dial->last_error)
                                            : "cancelled";
    ew__timer_stop(&loop->home.timers, &dial->timer);
    uv_freeaddrinfo(dial->found);
    ew__free(loop->home.env, dial, sizeof *dial);
    done(stream, err, err == EW_OK ? NULL : detail);
}

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
    dial->stream->tcp.data = dial;
    if (!uv_is_closing((uv_handle_t *)&dial->stream->tcp))
        uv_close((uv_handle_t *)&dial->stream->tcp, on_attempt_closed);
}

static void on_connect(uv_connect_t *request, int status) {
    ew__dial *dial = request->data;
    if (status == UV_ECANCELED)
        return; /* the handle is being closed: on_attempt_closed goes on */
    if (status == 0 && dial->verdict == EW_OK) {
        finish(dial, EW_OK);
        return;
    }
    dial->last_error = status;
    close_attempt(dial);
}

static void try_address(ew__dial *dial) {
    if (!dial->at) {
        finish(dial, EW_ECONNECT);
        return;
    }
    (void)uv_tcp_init(dial->loop->uv, &dial->stream->tcp);
    dial->connect.data = dial;
    int err = uv_tcp_connect(&dial->connect, &dial->stream->tcp, dial->at->ai_addr, on_connect);
    if (err != 0) {
        dial->last_error = err;
        close_attempt(dial);
    } else {
        dial->connected = true;
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

static void give_up(ew__dial *dial, ew_err verdict) {
    if (dial->verdict != EW_OK)
        return;
    dial->verdict = verdict;
    if (dial->resolving)
        (void)uv_cancel((uv_req_t *)&dial->lookup); /* on_resolved follows, cancelled or not */
    else
        close_attempt(dial);
}

static void on_timeout(ew__timer *timer, uint64_t now) {
    (void)now;
    give_up(ew__container_of(timer, ew__dial, timer), EW_ETIMEOUT);
}

void ew__dial_cancel(ew__dial *dial) { give_up(dial, EW_ECANCELLED); }

ew_err ew__dial_start(ew__loop *loop, ew__stream *stream, const char *host, uint16_t port, uint64_t timeout_ms,
                      ew__dial_done done, ew__dial **ret_dial) {
    ew__dial *dial = ew__zalloc(loop->home.env, sizeof *dial);
    if (!dial)
        return EW_ENOMEM;
    dial->loop = loop;
    dial->stream = stream;
    dial->done = done;
    dial->resolving = true;
    dial->lookup.data = dial;
    char service[8];
    (void)snprintf(service, sizeof service, "%u", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP, .ai_flags = AI_NUMERICSERV};
    uint64_t at = ew__home_read_clock(&loop->home) + EW__MS(timeout_ms);
    ew_err err = ew__timer_set(&loop->home.timers, &dial->timer, at, on_timeout);
    if (err == EW_OK && uv_getaddrinfo(loop->uv, &dial->lookup, on_resolved, host, service, &hints) != 0) {
        ew__timer_stop(&loop->home.timers, &dial->timer);
        err = EW_ENOMEM;
    }
    if (err != EW_OK) {
        ew__free(loop->home.env, dial, sizeof *dial);
        return err;
    }
    *ret_dial = dial;
    return EW_OK;
}
