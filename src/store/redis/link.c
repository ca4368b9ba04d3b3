/*
 * store/redis/link.c: one connection to a Redis server. See link.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/when.h"
#include "store/redis/link.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#define COMMAND_MAX ((size_t)512 * 1024 * 1024) /* Redis takes no longer text than that */

void ew__redis_init(ew__redis_link *link, const ew_env *env, const ew__redis_where *where) {
    memset(link, 0, sizeof *link);
    link->env = env;
    link->where = where;
    ew__buf_init(&link->out, env, 2 * COMMAND_MAX);
    ew__buf_init(&link->command, env, COMMAND_MAX);
}

void ew__redis_close(ew__redis_link *link) {
    if (link->ctx != NULL) {
        redisFree(link->ctx);
        link->ctx = NULL;
    }
    link->owed = 0;
    link->n_args = 0;
    ew__buf_clear(&link->out);
    ew__buf_clear(&link->command);
}

void ew__redis_done(ew__redis_link *link) {
    ew__redis_close(link);
    ew__buf_done(&link->out);
    ew__buf_done(&link->command);
}

/* Why it is over, with the server's name; closes. */
static ew_err lost(ew__redis_link *link, ew_err err, const char *why) {
    (void)snprintf(link->problem, sizeof link->problem, "redis at %.60s: %.80s", link->where->name, why);
    ew__redis_close(link);
    return err;
}

/* ---- writing ---- */

void ew__redis_text(ew__redis_link *link, ew_str text) { ew__redis_key(link, "", text); }
void ew__redis_word(ew__redis_link *link, const char *word) { ew__redis_key(link, word, ew__str(NULL, 0)); }

void ew__redis_key(ew__redis_link *link, const char *prefix, ew_str name) {
    ew__buf *out = &link->command;
    size_t n = strlen(prefix);
    link->n_args++;
    (void)ew__buf_char(out, '$');
    (void)ew__buf_u64(out, n + name.len);
    (void)ew__buf_add(out, "\r\n", 2);
    (void)ew__buf_add(out, prefix, n);
    (void)ew__buf_str(out, name);
    (void)ew__buf_add(out, "\r\n", 2);
}

void ew__redis_uint(ew__redis_link *link, uint64_t number) {
    char text[20];
    ew__redis_text(link, ew__str(text, ew__u64_text(number, text)));
}

void ew__redis_int(ew__redis_link *link, int64_t number) {
    if (number < 0) {
        char text[20];
        ew__redis_key(link, "-", ew__str(text, ew__u64_text(0 - (uint64_t)number, text)));
    } else {
        ew__redis_uint(link, (uint64_t)number);
    }
}

/* RRQ leaves out a fraction of zero. */
void ew__redis_when(ew__redis_link *link, int64_t ms) {
    char text[EW__WHEN_LEN + 6];
    ew__when_write(ms > 0 ? (uint64_t)ms : 0, text);
    size_t n = memcmp(text + 19, ".000", 4) == 0 ? 19 : 23;
    memcpy(text + n, "+00:00", 6);
    ew__redis_text(link, ew__str(text, n + 6));
}

ew_err ew__redis_end(ew__redis_link *link) {
    ew__buf *command = &link->command, *out = &link->out;
    size_t before = out->len;
    if (command->err == EW_OK) {
        (void)ew__buf_char(out, '*');
        (void)ew__buf_u64(out, link->n_args);
        (void)ew__buf_add(out, "\r\n", 2);
        (void)ew__buf_str(out, ew__buf_view(command));
    }
    ew_err err = command->err != EW_OK ? command->err : out->err;
    if (err == EW_OK) {
        link->owed++;
    } else {
        out->len = before; /* not half a command */
        out->err = EW_OK;
    }
    link->n_args = 0;
    if (command->cap > (size_t)1024 * 1024) {
        ew__buf_done(command);
    } else {
        ew__buf_clear(command);
    }
    return err == EW_ELIMIT ? EW_ELIMIT : err != EW_OK ? EW_ENOMEM : EW_OK;
}

static ew_err send_all(ew__redis_link *link) {
    ew__buf *out = &link->out;
    size_t sent = 0;
    while (sent < out->len) {
        ssize_t n = send(link->ctx->fd, out->ptr + sent, out->len - sent, MSG_NOSIGNAL);
        if (n >= 0) {
            sent += (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return lost(link, EW_ETIMEOUT, "it takes nothing any more");
        } else if (errno != EINTR) {
            return lost(link, EW_ECONNECT, strerror(errno));
        }
    }
    if (out->cap > (size_t)4 * 1024 * 1024) {
        ew__buf_done(out);
    } else {
        ew__buf_clear(out);
    }
    return EW_OK;
}

/* ---- reading ---- */

static ew_err read_failed(ew__redis_link *link) {
    const redisContext *ctx = link->ctx;
    char why[128];
    if (ctx->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        return lost(link, EW_ETIMEOUT, "no answer in time");
    }
    if (link->too_many) {
        return lost(link, EW_EPROTO, "its reply has too many elements");
    }
    (void)snprintf(why, sizeof why, "%.100s", ctx->errstr);
    return lost(link, ctx->err == REDIS_ERR_PROTOCOL ? EW_EPROTO : EW_ECONNECT, why);
}

ew_err ew__redis_reply(ew__redis_link *link, redisReply **ret) {
    void *reply = NULL;
    *ret = NULL;
    if (link->ctx == NULL) {
        return EW_ECONNECT;
    }
    ew_err err = link->out.len > 0 ? send_all(link) : EW_OK;
    if (err != EW_OK) {
        return err;
    }
    errno = 0;
    if (redisGetReply(link->ctx, &reply) != REDIS_OK || reply == NULL) {
        return read_failed(link);
    }
    link->owed -= link->owed > 0;
    *ret = reply;
    return EW_OK;
}

ew_err ew__redis_peek(ew__redis_link *link, redisReply **ret) {
    void *reply = NULL;
    *ret = NULL;
    if (link->ctx == NULL) {
        return EW_ECONNECT;
    }
    for (int i = 0; i < 2; i++) {
        if (redisGetReplyFromReader(link->ctx, &reply) != REDIS_OK) {
            return read_failed(link);
        }
        struct pollfd fd = {.fd = link->ctx->fd, .events = POLLIN};
        if (reply != NULL || i == 1 || poll(&fd, 1, 0) <= 0) {
            break;
        }
        errno = 0;
        if (redisBufferRead(link->ctx) != REDIS_OK) {
            return read_failed(link);
        }
    }
    *ret = reply;
    return EW_OK;
}

ew_err ew__redis_ask(ew__redis_link *link, const char *const *words, size_t n, redisReply **ret) {
    *ret = NULL;
    for (size_t i = 0; i < n; i++) {
        ew__redis_word(link, words[i]);
    }
    ew_err err = ew__redis_end(link);
    return err == EW_OK ? ew__redis_reply(link, ret) : err;
}

/* ---- opening ---- */

#if HIREDIS_MAJOR >= 1
typedef size_t n_elements;
#else
typedef int n_elements;
#endif

/* NULL ends the reading of replies with an error. */
static void *create_array(const redisReadTask *task, n_elements n) {
    ew__redis_link *link = task->privdata;
    link->too_many = n > EW__REDIS_ELEMENTS_MAX;
    return link->too_many ? NULL : link->hiredis_make->createArray(task, n);
}

void ew__redis_adopt(ew__redis_link *link, redisContext *ctx) {
    link->ctx = ctx;
    link->too_many = false;
    link->hiredis_make = ctx->reader->fn;
    link->make = *ctx->reader->fn;
    link->make.createArray = create_array;
    ctx->reader->fn = &link->make;
    ctx->reader->privdata = link;
}

static ew_err connect_to(ew__redis_link *link, uint64_t timeout_ms) {
    const ew__redis_where *where = link->where;
    struct timeval tv = {.tv_sec = (time_t)(timeout_ms / 1000), .tv_usec = (suseconds_t)(timeout_ms % 1000 * 1000)};
    redisContext *ctx = where->path[0] != '\0' ? redisConnectUnixWithTimeout(where->path, tv)
                                               : redisConnectWithTimeout(where->host, where->port, tv);
    if (ctx == NULL) {
        return EW_ENOMEM;
    }
    ew__redis_adopt(link, ctx);
    if (link->ctx->err != 0) {
        char why[128];
        (void)snprintf(why, sizeof why, "%.100s", link->ctx->errstr);
        return lost(link, errno == ETIMEDOUT ? EW_ETIMEOUT : EW_ECONNECT, why);
    }
    (void)fcntl(link->ctx->fd, F_SETFD, FD_CLOEXEC); /* programs that we start have no business here */
    if (redisSetTimeout(link->ctx, tv) != REDIS_OK ||
        (where->path[0] == '\0' && redisEnableKeepAlive(link->ctx) != REDIS_OK)) {
        return lost(link, EW_EIO, "its socket cannot be set up");
    }
    return EW_OK;
}

/* Who we are, and which database; the last answer tells whether it can be used now. */
static ew_err greet(ew__redis_link *link) {
    const ew__redis_where *where = link->where;
    ew_err err = EW_OK;
    size_t n = 1;
    if (where->password[0] != '\0') {
        ew__redis_word(link, "AUTH");
        if (where->user[0] != '\0') {
            ew__redis_word(link, where->user);
        }
        ew__redis_word(link, where->password);
        err = ew__redis_end(link);
        n++;
    }
    if (err == EW_OK && where->db != 0) {
        ew__redis_word(link, "SELECT");
        ew__redis_uint(link, where->db);
        err = ew__redis_end(link);
        n++;
    }
    if (err == EW_OK) {
        ew__redis_word(link, "PING");
        err = ew__redis_end(link);
    }
    for (; n > 0 && err == EW_OK; n--) {
        redisReply *reply;
        char why[EW__REDIS_PROBLEM];
        err = ew__redis_reply(link, &reply);
        if (err == EW_OK) {
            ew_err said = ew__redis_err(reply, why);
            freeReplyObject(reply);
            err = said != EW_OK ? lost(link, said, why) : EW_OK;
        }
    }
    return err;
}

ew_err ew__redis_open(ew__redis_link *link, uint64_t timeout_ms) {
    ew__redis_close(link);
    link->problem[0] = '\0';
    errno = 0;
    ew_err err = connect_to(link, timeout_ms);
    if (err == EW_OK) {
        err = greet(link);
    }
    if (err == EW_OK) {
        struct timeval tv = {.tv_sec = EW__REDIS_TIMEOUT_MS / 1000, .tv_usec = EW__REDIS_TIMEOUT_MS % 1000 * 1000};
        if (redisSetTimeout(link->ctx, tv) != REDIS_OK) {
            err = lost(link, EW_EIO, "its socket cannot be set up");
        }
    }
    if (err != EW_OK && link->ctx != NULL) {
        ew__redis_close(link);
    }
    return err;
}

/* ---- what replies mean ---- */

ew_err ew__redis_err(const redisReply *reply, char problem[EW__REDIS_PROBLEM]) {
    static const struct {
        const char *code;
        ew_err err;
    } codes[] = {
        {"NOAUTH", EW_EACCESS},
        {"WRONGPASS", EW_EACCESS},
        {"NOPERM", EW_EACCESS},
        {"DENIED", EW_EACCESS},
        {"LOADING", EW_ECONNECT},
        {"MASTERDOWN", EW_ECONNECT},
        {"READONLY", EW_ECONNECT},
        {"OOM", EW_ELIMIT},
        {"BUSY", EW_ETIMEOUT},
        {"ERR max number of clients", EW_ECONNECT},
        {"ERR invalid password", EW_EACCESS},
        {"ERR Client sent AUTH", EW_EACCESS},
        {"ERR AUTH", EW_EACCESS},
    };
    problem[0] = '\0';
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR) {
        return EW_OK;
    }
    ew_str text = ew__str(reply->str, reply->len);
    int n = text.len < 150 ? (int)text.len : 150;
    (void)snprintf(problem, EW__REDIS_PROBLEM, "redis: %.*s", n, text.ptr);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (ew__str_has_prefix(text, ew_str_from(codes[i].code))) {
            return codes[i].err;
        }
    }
    return EW_EIO;
}

ew_str ew__redis_str(const redisReply *reply) {
    bool text = reply != NULL && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS);
    return text ? ew__str(reply->str, reply->len) : ew__str(NULL, 0);
}

int64_t ew__redis_number(const redisReply *reply, int64_t fallback) {
    return reply != NULL && reply->type == REDIS_REPLY_INTEGER ? reply->integer : fallback;
}

uint64_t ew__redis_count(const redisReply *reply) {
    int64_t number = ew__redis_number(reply, 0);
    return number > 0 ? (uint64_t)number : 0;
}

bool ew__redis_int_parse(ew_str text, int64_t *ret) {
    uint64_t number;
    bool minus = text.len > 0 && text.ptr[0] == '-';
    ew_str digits = minus ? ew__str(text.ptr + 1, text.len - 1) : text;
    if (!ew__u64_parse(digits, &number) || number > (uint64_t)INT64_MAX) {
        return false;
    }
    *ret = minus ? -(int64_t)number : (int64_t)number;
    return true;
}
