/*
 * io/tls.c: TLS of one connection. See tls.h. OpenSSL reads what has come from memory (BIO) and writes records into a
 * queue; nothing in it can block.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/tls_state.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>

#define RECORD_BYTES ((size_t)16 * 1024) /* of plain text, at most */
#define SEALED_BYTES ((size_t)64 * 1024) /* records that wait on a full socket; the rest stays plain */
#define RAW_MAX ((size_t)256 * 1024)     /* a peer that makes us answer without reading ends here */
#define OPENED_BYTES (EW__READ_BUFFER + RECORD_BYTES + 512) /* what one read can complete, with a record's beginning */
#define SETTLE_MS 500 /* for a server that has asked for our certificate to object to it */
#define TELL_MS 1000  /* in such a time the log hears of so many failed handshakes */
#define TELL_MAX 10
#define VECTORS 8

/* Only the subjectAltName counts (RFC 9525). A CN is free text: its issuer need not have verified it. */
#define HOST_FLAGS (X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

#define RECORD_HANDSHAKE 0x16
#define RECORD_ALERT 0x15
#define SSL2_HELLO 0x80 /* OpenSSL has words for it */

/* ---- where OpenSSL reads and writes ---- */

static int bio_read(BIO *bio, char *out, int size) {
    const char *why;
    const ew__openssl *lib = ew__openssl_get(&why);
    ew__tls *tls = lib->BIO_get_data(bio);
    lib->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (tls->n_in == 0) {
        lib->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
        return -1;
    }
    size_t n = (size_t)size < tls->n_in ? (size_t)size : tls->n_in;
    memcpy(out, tls->in, n);
    tls->in += n;
    tls->n_in -= n;
    return (int)n;
}

static int bio_write(BIO *bio, const char *bytes, int n) {
    const char *why;
    const ew__openssl *lib = ew__openssl_get(&why);
    ew__tls *tls = lib->BIO_get_data(bio);
    lib->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    ew__out_add(&tls->raw, bytes, (size_t)n);
    return tls->raw.err == EW_OK ? n : -1;
}

static long bio_ctrl(BIO *bio, int command, long number, void *ptr) {
    (void)bio;
    (void)number;
    (void)ptr;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static BIO_METHOD *method;
static pthread_once_t method_once = PTHREAD_ONCE_INIT;

/* Like the library it is part of, it is one for the process, and stays. */
static void make_method(void) {
    const char *why;
    const ew__openssl *lib = ew__openssl_get(&why);
    method = lib->BIO_meth_new(BIO_TYPE_SOURCE_SINK, "everywire");
    if (!method)
        return;
    (void)lib->BIO_meth_set_read(method, bio_read);
    (void)lib->BIO_meth_set_write(method, bio_write);
    (void)lib->BIO_meth_set_ctrl(method, bio_ctrl);
}

/* ---- beginning ---- */

static void release(ew__tls *tls) {
    tls->lib->SSL_free(tls->ssl);
    tls->ssl = NULL;
    ew__out_done(&tls->raw);
    ew__out_done(&tls->nothing);
}

void ew__tls_free(ew__tls *tls) {
    ew__free(tls->env, tls->client_cert, tls->client_cert_size);
    ew__free(tls->env, tls, sizeof *tls);
}

static bool make_ssl(ew__tls *tls, ew__tls_context *context) {
    const ew__openssl *lib = tls->lib;
    (void)pthread_once(&method_once, make_method);
    pthread_mutex_lock(&context->lock);
    tls->ssl = lib->SSL_new(context->ssl);
    tls->has_cert = context->has_cert;
    pthread_mutex_unlock(&context->lock);
    BIO *bio = tls->ssl && method ? lib->BIO_new(method) : NULL;
    if (!bio)
        return false;
    lib->BIO_set_data(bio, tls);
    lib->BIO_set_init(bio, 1);
    lib->SSL_set_bio(tls->ssl, bio, bio);
    return lib->SSL_set_ex_data(tls->ssl, 0, tls) == 1;
}

static ew__tls *new_tls(ew__loop *loop, ew__tls_context *context, bool http) {
    const ew_env *env = loop->executor.env;
    ew__tls *tls = ew__zalloc(env, sizeof *tls);
    if (!tls)
        return NULL;
    tls->lib = context->lib;
    tls->env = env;
    tls->http = http;
    tls->serves = context->role == EW__TLS_LISTENS;
    ew__out_init(&tls->raw, &loop->executor.blocks);
    ew__out_init(&tls->nothing, &loop->executor.blocks);
    if (!loop->opened) /* one for all connections: what is opened is taken at once */
        loop->opened = ew__alloc(env, OPENED_BYTES);
    if (!loop->gathered)
        loop->gathered = ew__alloc(env, RECORD_BYTES);
    if (loop->opened && loop->gathered && make_ssl(tls, context))
        return tls;
    release(tls);
    ew__tls_free(tls);
    return NULL;
}

void ew__tls_loop_done(ew__loop *loop) {
    ew__free(loop->executor.env, loop->opened, OPENED_BYTES);
    ew__free(loop->executor.env, loop->gathered, RECORD_BYTES);
}

ew_err ew__stream_secure_accepted(ew__stream *stream, ew__loop *loop, ew__tls_context *context, bool http) {
    ew__tls *tls = new_tls(loop, context, http);
    if (!tls)
        return EW_ENOMEM;
    tls->lib->SSL_set_accept_state(tls->ssl);
    stream->tls = tls;
    return EW_OK;
}

const char *ew__stream_client_cert(const ew__stream *stream) { return stream->tls ? stream->tls->client_cert : NULL; }

/* ---- failing ---- */

/* " from 127.0.0.1:4711" */
static void write_peer(const ew__stream *stream, char *out, size_t size) {
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof peer;
    char text[INET6_ADDRSTRLEN];
    bool v6;
    out[0] = '\0';
    if (getpeername(stream->fd, (struct sockaddr *)&peer, &n) != 0 ||
        (peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
        return;
    v6 = peer.ss_family == AF_INET6;
    const void *at = v6 ? (const void *)&((struct sockaddr_in6 *)&peer)->sin6_addr
                        : (const void *)&((struct sockaddr_in *)&peer)->sin_addr;
    if (inet_ntop(peer.ss_family, at, text, sizeof text))
        (void)snprintf(out, size, " from %s%s%s:%u", v6 ? "[" : "", text, v6 ? "]" : "",
                       ntohs(((struct sockaddr_in *)&peer)->sin_port)); /* it has the same place in both */
}

/* Strangers must not be able to fill the log. */
void ew__tls_tell(ew__stream *stream, const char *why) {
    ew__loop *loop = stream->loop;
    char peer[64], more[64] = "";
    if (loop->executor.now - loop->tls_told_at >= EW__MS(TELL_MS)) {
        if (loop->tls_told > TELL_MAX)
            (void)snprintf(more, sizeof more, " (and %u before it)", loop->tls_told - TELL_MAX);
        loop->tls_told_at = loop->executor.now;
        loop->tls_told = 0;
    }
    if (loop->tls_told++ >= TELL_MAX)
        return;
    write_peer(stream, peer, sizeof peer);
    ew__log(loop->executor.env, EW_LOG_WARN, "tls", "a connection%s failed: %s%s", peer, why, more);
}

/* The handshake has failed. A client is given the time to read why. */
static void fail(ew__stream *stream, ew_err err, const char *why) {
    ew__tls *tls = stream->tls;
    if (why != tls->fault)
        (void)snprintf(tls->fault, sizeof tls->fault, "%s", why);
    tls->state = EW__TLS_BROKEN;
    ew__timer_stop(&stream->loop->executor.timers, &tls->timer);
    if (stream->closing)
        return;
    if (tls->serves) {
        ew__tls_tell(stream, tls->fault);
        ew__out_consume(stream->out, stream->out->bytes);
        ew__stream_finish(stream);
        return;
    }
    ew__stream_flush(stream);
    ew__stream_close(stream, err);
}

static void fail_shaking(ew__stream *stream) {
    char why[EW__TLS_PROBLEM];
    ew__tls_explain(stream->tls, why);
    fail(stream, EW_EPROTO, why);
}

static void on_late(ew__timer *timer, uint64_t now) {
    ew__tls *tls = ew__container_of(timer, ew__tls, timer);
    (void)now;
    fail(tls->stream, EW_ETIMEOUT, "the TLS handshake took too long");
}

/* ---- the handshake ---- */

static ew_err note_client(ew__tls *tls) {
    X509 *certificate = tls->lib->SSL_get1_peer_certificate(tls->ssl);
    if (!certificate)
        return EW_OK;
    ew_err err = ew__tls_subject(tls->lib, tls->env, certificate, &tls->client_cert, &tls->client_cert_size);
    tls->lib->X509_free(certificate);
    return err;
}

static void opened(ew__stream *stream) {
    ew__tls *tls = stream->tls;
    tls->state = EW__TLS_OPEN;
    ew__timer_stop(&stream->loop->executor.timers, &tls->timer);
    if (tls->serves && note_client(tls) != EW_OK) {
        fail(stream, EW_ELIMIT, "the subject of the client's certificate is too long");
        return;
    }
    if (tls->done) {
        ew__secured done = tls->done;
        tls->done = NULL;
        done(tls->ud, EW_OK, NULL); /* the owner starts the stream */
    } else if (stream->events->secured) {
        stream->events->secured(stream);
    }
    if (!stream->closing)
        ew__stream_flush(stream);
}

static void on_settled(ew__timer *timer, uint64_t now) {
    (void)now;
    opened(ew__container_of(timer, ew__tls, timer)->stream);
}

/*
 * A client of TLS 1.3 has shaken hands before the server has looked at its certificate. Where that was asked for, the
 * server's next word says whether it is content; it would else look like a lost call.
 */
static void settle(ew__stream *stream) {
    ew__executor *executor = &stream->loop->executor;
    ew__tls *tls = stream->tls;
    tls->state = EW__TLS_SETTLING;
    ew__stream_flush(stream);
    if (!stream->closing &&
        ew__timer_set(&executor->timers, &tls->timer, executor->now + EW__MS(SETTLE_MS), on_settled) != EW_OK)
        ew__stream_close(stream, EW_ENOMEM);
}

static void shake(ew__stream *stream) {
    ew__tls *tls = stream->tls;
    tls->lib->ERR_clear_error();
    int done = tls->lib->SSL_do_handshake(tls->ssl);
    if (done == 1 && tls->asked && tls->lib->SSL_version(tls->ssl) == TLS1_3_VERSION)
        settle(stream);
    else if (done == 1)
        opened(stream);
    else if (tls->lib->SSL_get_error(tls->ssl, done) == SSL_ERROR_WANT_READ)
        ew__stream_flush(stream);
    else
        fail_shaking(stream);
}

/* ---- what is no TLS ---- */

static const char plain_answer[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 43\r\n"
                                   "Connection: close\r\n\r\nThis port speaks TLS only: ask for https://";

static void meet_plain_client(ew__stream *stream, uint8_t first) {
    if (first >= 'A' && first <= 'Z')
        ew__out_add(&stream->tls->raw, plain_answer, sizeof plain_answer - 1);
    fail(stream, EW_EPROTO, "what came is no TLS; this port wants https://, wss://, rrqs:// or jsonrpcs://");
}

/* The first byte that ever comes tells. */
static bool is_tls(const ew__tls *tls, uint8_t first) {
    return first == RECORD_HANDSHAKE || first == (tls->serves ? SSL2_HELLO : RECORD_ALERT);
}

static void meet_plain_server(ew__stream *stream) {
    const ew__tls *tls = stream->tls;
    char why[160];
    const char *plain = tls->http ? NULL : tls->plain;
    (void)snprintf(why, sizeof why, "the server did not answer in TLS; is it %s%s%s?",
                   tls->http ? "http://" : "a target without the s", plain ? ", " : "", plain ? plain : "");
    fail(stream, EW_EPROTO, why);
}

static bool check_first(ew__stream *stream, uint8_t first) {
    ew__tls *tls = stream->tls;
    if (tls->begun)
        return true;
    tls->begun = true;
    if (is_tls(tls, first))
        return true;
    if (tls->serves)
        meet_plain_client(stream, first);
    else
        meet_plain_server(stream);
    return false;
}

/* ---- reading ---- */

/* Opens all that can be. Answers what SSL_get_error says of the end of it. */
static int open_records(ew__stream *stream, size_t *ret_n) {
    ew__tls *tls = stream->tls;
    const ew__openssl *lib = tls->lib;
    size_t got = 0, n = 0;
    lib->ERR_clear_error();
    while (got < OPENED_BYTES && lib->SSL_read_ex(tls->ssl, stream->loop->opened + got, OPENED_BYTES - got, &n) == 1)
        got += n;
    *ret_n = got;
    return got < OPENED_BYTES ? lib->SSL_get_error(tls->ssl, 0) : SSL_ERROR_SSL;
}

static void hand_over(ew__stream *stream, size_t n) {
    ew__tls *tls = stream->tls;
    stream->bytes_in += tls->uncounted;
    tls->uncounted = 0;
    stream->loop->n_read++;
    if (EW__UNLIKELY(stream->tap != NULL))
        stream->tap->saw(stream->tap, false, stream->loop->opened, n);
    stream->events->data(stream, stream->loop->opened, n);
}

static void break_off(ew__stream *stream) {
    ew__tls *tls = stream->tls;
    char why[EW__TLS_PROBLEM];
    ew__tls_explain(tls, why);
    if (tls->state == EW__TLS_SETTLING) {
        fail(stream, EW_EPROTO, why);
        return;
    }
    ew__log(tls->env, EW_LOG_INFO, "tls", "a connection was broken off: %s", why);
    tls->state = EW__TLS_BROKEN;
    ew__stream_flush(stream);
    ew__stream_close(stream, EW_EPROTO);
}

static void read_records(ew__stream *stream) {
    ew__tls *tls = stream->tls;
    size_t n = 0;
    int end = open_records(stream, &n);
    bool broken = end != SSL_ERROR_WANT_READ && end != SSL_ERROR_ZERO_RETURN;
    if (tls->state == EW__TLS_SETTLING && !broken)
        opened(stream);
    if (n > 0 && !stream->closing && !stream->finishing)
        hand_over(stream, n);
    if (stream->closing || stream->finishing)
        return;
    if (broken)
        break_off(stream);
    else if (end == SSL_ERROR_ZERO_RETURN)
        ew__stream_ended(stream);
    else if (tls->raw.bytes > RAW_MAX)
        ew__stream_close(stream, EW_ELIMIT);
    else if (tls->raw.bytes > 0)
        ew__stream_flush(stream);
}

void ew__tls_input(ew__stream *stream, const uint8_t *bytes, size_t n) {
    ew__tls *tls = stream->tls;
    if (tls->state == EW__TLS_BROKEN || (stream->finishing && tls->state == EW__TLS_OPEN) ||
        !check_first(stream, bytes[0]))
        return;
    tls->in = bytes;
    tls->n_in = n;
    tls->uncounted += n;
    if (tls->state == EW__TLS_SHAKING)
        shake(stream);
    if (!stream->closing && (tls->state == EW__TLS_OPEN || (tls->state == EW__TLS_SETTLING && tls->n_in > 0)))
        read_records(stream);
    tls->in = NULL;
    tls->n_in = 0;
}

/* Without close_notify the end may be anybody's doing: what was under way is lost, not complete. */
void ew__tls_end(ew__stream *stream, ew_err why) {
    ew__tls *tls = stream->tls;
    if (tls->state == EW__TLS_SHAKING && tls->serves && !tls->begun) {
        ew__stream_close(stream, EW_ECLOSED); /* somebody has looked whether the port is open */
    } else if (tls->state == EW__TLS_SHAKING || tls->state == EW__TLS_SETTLING) {
        fail(stream, EW_ECLOSED,
             tls->serves  ? "the client went away in the TLS handshake"
             : tls->begun ? "the server went away in the TLS handshake"
                          : "the server closed the connection at the first word of TLS; does it speak TLS there?");
        if (!stream->closing)
            ew__stream_close(stream, EW_ECLOSED);
    } else if (stream->finishing && why == EW_OK) {
        ew__stream_ended(stream);
    } else {
        ew__stream_close(stream, why == EW_OK ? EW_ECLOSED : why);
    }
}

/* ---- writing ---- */

/* The next bytes to be sealed: as they lie, if that is enough for a record; else gathered from several places. */
static size_t next_bytes(const ew__stream *stream, const uint8_t **ret) {
    ew__out_vec vec[VECTORS];
    unsigned count = ew__out_peek(stream->out, vec, VECTORS);
    uint8_t *gathered = stream->loop->gathered;
    size_t n = 0;
    if (count == 1 || vec[0].len >= RECORD_BYTES) {
        *ret = vec[0].ptr;
        return vec[0].len < RECORD_BYTES ? vec[0].len : RECORD_BYTES;
    }
    for (unsigned i = 0; i < count && n < RECORD_BYTES; i++) {
        size_t take = vec[i].len < RECORD_BYTES - n ? vec[i].len : RECORD_BYTES - n;
        memcpy(gathered + n, vec[i].ptr, take);
        n += take;
    }
    *ret = gathered;
    return n;
}

bool ew__tls_seal(ew__stream *stream) {
    ew__tls *tls = stream->tls;
    if (tls->state != EW__TLS_OPEN)
        return tls->raw.bytes > 0;
    while (stream->out->bytes > 0 && tls->raw.bytes < SEALED_BYTES) {
        const uint8_t *bytes;
        size_t done = 0, n = next_bytes(stream, &bytes);
        tls->lib->ERR_clear_error();
        if (tls->lib->SSL_write_ex(tls->ssl, bytes, n, &done) != 1) {
            tls->state = EW__TLS_BROKEN;
            ew__stream_close(stream, tls->raw.err != EW_OK ? tls->raw.err : EW_EPROTO);
            return false;
        }
        if (EW__UNLIKELY(stream->tap != NULL))
            stream->tap->saw(stream->tap, true, bytes, done);
        ew__out_consume(stream->out, done);
    }
    return tls->raw.bytes > 0;
}

bool ew__tls_farewell(ew__stream *stream) {
    ew__tls *tls = stream->tls;
    if (tls->state != EW__TLS_OPEN || tls->farewell)
        return false;
    tls->farewell = true;
    tls->lib->ERR_clear_error();
    (void)tls->lib->SSL_shutdown(tls->ssl);
    return tls->raw.bytes > 0;
}

void ew__tls_closing(ew__stream *stream, ew_err why) {
    ew__tls *tls = stream->tls;
    ew__out_vec vec[1];
    ew__timer_stop(&stream->loop->executor.timers, &tls->timer);
    if (why == EW_OK && stream->out->bytes == 0 && tls->raw.bytes == 0 && ew__tls_farewell(stream) &&
        ew__out_peek(&tls->raw, vec, 1) == 1)
        (void)send(stream->fd, vec[0].ptr, vec[0].len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ew__tls_closed(ew__stream *stream) { release(stream->tls); }

/* ---- starting ---- */

void ew__tls_start(ew__stream *stream) {
    ew__executor *executor = &stream->loop->executor;
    ew__tls *tls = stream->tls;
    tls->stream = stream;
    stream->raw = &tls->raw;
    uint64_t at = executor->now + EW__MS(executor->limits->handshake_ms);
    if (tls->serves && tls->state == EW__TLS_SHAKING &&
        ew__timer_set(&executor->timers, &tls->timer, at, on_late) != EW_OK)
        ew__stream_close(stream, EW_ENOMEM);
}

/* ---- dialling: before there is an owner ---- */

static void on_no_data(ew__stream *stream, const uint8_t *bytes, size_t n) {
    (void)stream;
    (void)bytes;
    (void)n;
}

static void on_nothing(ew__stream *stream) { (void)stream; }

static void on_dial_closed(ew__stream *stream, ew_err why) {
    ew__tls *tls = stream->tls;
    if (tls->done)
        tls->done(tls->ud, why == EW_OK ? EW_ECLOSED : why, tls->fault[0] ? tls->fault : ew_err_text(why));
}

static const ew__stream_events dial_events = {
    .data = on_no_data, .eof = on_nothing, .drained = on_nothing, .closed = on_dial_closed};

static bool is_address(const char *host) {
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

/* Whom we want to speak with: what the certificate must be for, and what a server of many names is told (SNI). */
static bool set_host(ew__tls *tls, const char *host) {
    const ew__openssl *lib = tls->lib;
    size_t n = strlen(host);
    if (n > 0 && host[n - 1] == '.')
        n--; /* "example.org." is the name "example.org" */
    if (n == 0 || n >= sizeof tls->host)
        return false;
    memcpy(tls->host, host, n);
    if (is_address(tls->host))
        return lib->X509_VERIFY_PARAM_set1_ip_asc(lib->SSL_get0_param(tls->ssl), tls->host) == 1;
    lib->SSL_set_hostflags(tls->ssl, HOST_FLAGS);
    return lib->SSL_set1_host(tls->ssl, tls->host) == 1 &&
           lib->SSL_ctrl(tls->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, tls->host) == 1;
}

static bool prepare_dialled(ew__tls *tls, const ew__where *where) {
    static const unsigned char protocols[] = "\x08http/1.1";
    tls->lib->SSL_set_connect_state(tls->ssl);
    return set_host(tls, where->host) &&
           (!where->tls_http || tls->lib->SSL_set_alpn_protos(tls->ssl, protocols, sizeof protocols - 1) == 0);
}

ew_err ew__stream_secure_dialled(ew__stream *stream, ew__loop *loop, const ew__where *where, ew__secured done,
                                 void *ud) {
    ew__tls *tls = new_tls(loop, where->tls, where->tls_http);
    if (!tls)
        return EW_ENOMEM;
    if (!prepare_dialled(tls, where)) {
        release(tls);
        ew__tls_free(tls);
        return EW_ENOMEM;
    }
    stream->tls = tls;
    tls->plain = where->tls_plain;
    tls->done = done;
    tls->ud = ud;
    ew__stream_start(stream, loop, &dial_events, &tls->nothing);
    shake(stream);
    return EW_OK;
}
