/*
 * store/redis/link.h: one connection to a Redis server: where it is, commands in a pipeline, replies with a time limit.
 * The connection and the reading of replies are hiredis'; commands are written here, because a write of hiredis to a
 * connection that the server has closed would raise a signal in the host's process. One thread at a time.
 */
#ifndef EW_STORE_REDIS_LINK_H
#define EW_STORE_REDIS_LINK_H

#include "base/buf.h"
#include "base/util.h"
#include <hiredis/hiredis.h>

#define EW__REDIS_PROBLEM 160

/* What a URL says. */
typedef struct ew__redis_where {
    char host[256];
    char path[108]; /* of a socket; "": host and port */
    char user[128];
    char password[512];
    char name[300]; /* for people: "127.0.0.1:6379" */
    uint16_t port;
    uint32_t db;
} ew__redis_where;

/*
 * redis:// and valkey:// with [[USER]:PASSWORD@]HOST[:PORT][/DB], unix: and redis+unix: with a path and
 * ?db=N&user=U&pass=P. EW_OK; EW_EUNSUPPORTED: it asks for TLS; EW_EINVAL. problem gets a line for people, which never
 * holds the password.
 */
ew_err ew__redis_where_parse(ew_str url, ew__redis_where *ret, char problem[EW__REDIS_PROBLEM]);

typedef struct ew__redis_link {
    const ew_env *env;
    const ew__redis_where *where;
    redisContext *ctx; /* NULL: not connected */
    ew__buf out;       /* commands that are not sent yet */
    ew__buf command;   /* the one that is being written */
    size_t n_args;
    size_t owed; /* replies that will come, once all is sent */
    char problem[EW__REDIS_PROBLEM];
    redisReplyObjectFunctions make; /* of ctx: hiredis' own, with a limit for arrays */
    const redisReplyObjectFunctions *hiredis_make;
    bool too_many; /* an array with too many elements came */
} ew__redis_link;

/* Elements of one array in a reply. hiredis allocates for all of them when it has read their number. */
#define EW__REDIS_ELEMENTS_MAX (1024 * 1024)

void ew__redis_init(ew__redis_link *link, const ew_env *env, const ew__redis_where *where);
void ew__redis_done(ew__redis_link *link);

/*
 * Connects, says who we are, chooses the database; all within about timeout_ms. Then commands have EW__REDIS_TIMEOUT_MS
 * for each reply. EW_OK, EW_ECONNECT, EW_ETIMEOUT, EW_EACCESS, EW_EIO, EW_ENOMEM; link->problem says why.
 */
#define EW__REDIS_TIMEOUT_MS 5000
ew_err ew__redis_open(ew__redis_link *link, uint64_t timeout_ms);
/* Uses this connection from now on, and owns it; the link must not move while it does. ew__redis_open calls this. */
void ew__redis_adopt(ew__redis_link *link, redisContext *ctx);
/* What was not sent is forgotten, what is owed does not come any more. */
void ew__redis_close(ew__redis_link *link);
static inline bool ew__redis_is_open(const ew__redis_link *link) { return link->ctx != NULL; }

/* ---- a command: its words, then end. A failure of memory is kept until then, and leaves nothing behind ---- */

void ew__redis_word(ew__redis_link *link, const char *word);
void ew__redis_text(ew__redis_link *link, ew_str text);
void ew__redis_key(ew__redis_link *link, const char *prefix, ew_str name); /* one argument of two parts */
void ew__redis_int(ew__redis_link *link, int64_t number);
void ew__redis_uint(ew__redis_link *link, uint64_t number);
void ew__redis_when(ew__redis_link *link, int64_t ms); /* RFC 3339 with +00:00, as RRQ writes times */
ew_err ew__redis_end(ew__redis_link *link);            /* EW_OK, EW_ENOMEM */

/* ---- replies ---- */

/*
 * Sends what waits, then the next reply, which the caller frees (freeReplyObject). EW_OK; else the connection is
 * closed: EW_ECONNECT, EW_ETIMEOUT, EW_EPROTO.
 */
ew_err ew__redis_reply(ew__redis_link *link, redisReply **ret);
/* The next reply if it is there already, without waiting; *ret is NULL if it is not. Errors as above. */
ew_err ew__redis_peek(ew__redis_link *link, redisReply **ret);
/* A command of words without spaces, and its reply. */
ew_err ew__redis_ask(ew__redis_link *link, const char *const *words, size_t n, redisReply **ret);

/* EW_OK, or what an error reply means; problem gets its text. */
ew_err ew__redis_err(const redisReply *reply, char problem[EW__REDIS_PROBLEM]);

/* Texts and whole numbers of replies; anything else is empty, or the fallback. Borrowed. */
ew_str ew__redis_str(const redisReply *reply);
int64_t ew__redis_number(const redisReply *reply, int64_t fallback);
uint64_t ew__redis_count(const redisReply *reply); /* 0 for what is not a number, or negative */
static inline size_t ew__redis_n(const redisReply *reply) {
    return reply != NULL && reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
}
/* Element i of an array; NULL when there is none. */
static inline const redisReply *ew__redis_at(const redisReply *reply, size_t i) {
    return i < ew__redis_n(reply) ? reply->element[i] : NULL;
}
/* Whole numbers with a sign. */
bool ew__redis_int_parse(ew_str text, int64_t *ret);

#endif
