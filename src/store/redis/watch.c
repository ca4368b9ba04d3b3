/*
 * store/redis/watch.c: how we learn that others have changed something. See redis.h.
 *
 * A second connection asks the server to tell which keys change (CLIENT TRACKING in its broadcasting mode, since Redis
 * 6), only those that somebody wants to know of: any producer's new job then wakes us at once, and nothing of the
 * server's configuration is changed. Where that is refused, its keyspace notifications are used if they are on, else we
 * look every 20 ms.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/redis/redis.h"
#include <stdio.h>

#define DIAL_MS 1000
#define POLL_MS 20
#define POLLS_PER_SECOND (1000 / POLL_MS)
#define IDLE_MS 1000
#define MESSAGES_PER_LOOK 10000

typedef struct topic {
    unsigned change;
    const char *prefix;
    const char *events; /* classes of keyspace notifications that are needed */
} topic;

static const topic topics[] = {
    {EW__CHANGED_QUEUES, EW__RRQ_QUEUE, "z"},     {EW__CHANGED_QUEUES, EW__REDIS_PAUSED, "s"},
    {EW__CHANGED_JOBS, EW__RRQ_EVENTS, "t"},      {EW__CHANGED_JOBS, EW__REDIS_CHUNKS, "t"},
    {EW__CHANGED_CANCELS, EW__REDIS_CANCEL, "$"},
};

#define TOPICS (sizeof topics / sizeof topics[0])
#define WATCHED (EW__CHANGED_QUEUES | EW__CHANGED_JOBS | EW__CHANGED_CANCELS)

/* ---- asking the server to tell ---- */

/* EW_OK, or that it refuses or is lost (then the link is closed). */
static ew_err expect(ew__redis_link *link, int type) {
    redisReply *reply = NULL;
    ew_err err = ew__redis_reply(link, &reply);
    if (err == EW_OK && reply->type != type) {
        err = EW_EUNSUPPORTED;
    }
    freeReplyObject(reply);
    return err;
}

/* A connection may be told what it has asked for itself, if it then listens like a subscriber. */
static ew_err track(ew__jobs_redis_store *self) {
    static const char *const id_words[] = {"CLIENT", "ID"};
    ew__redis_link *link = &self->watch;
    redisReply *reply = NULL;
    ew_err err = ew__redis_ask(link, id_words, 2, &reply);
    int64_t id = err == EW_OK && reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
    freeReplyObject(reply);
    if (err != EW_OK || id < 0) {
        return err != EW_OK ? err : EW_EUNSUPPORTED;
    }
    ew__redis_word(link, "CLIENT");
    ew__redis_word(link, "TRACKING");
    ew__redis_word(link, "ON");
    ew__redis_word(link, "REDIRECT");
    ew__redis_int(link, id);
    ew__redis_word(link, "BCAST");
    for (size_t i = 0; i < TOPICS; i++) {
        if ((self->want & topics[i].change) != 0) {
            ew__redis_word(link, "PREFIX");
            ew__redis_word(link, topics[i].prefix);
        }
    }
    err = ew__redis_end(link);
    if (err == EW_OK) {
        err = expect(link, REDIS_REPLY_STATUS);
    }
    if (err != EW_OK) {
        return err;
    }
    ew__redis_word(link, "SUBSCRIBE");
    ew__redis_word(link, "__redis__:invalidate");
    err = ew__redis_end(link);
    return err == EW_OK ? expect(link, REDIS_REPLY_ARRAY) : err;
}

/*
 * Whether the server's notifications say all that is wanted: "K" for names of keys, and the classes ("A": nearly all).
 */
static bool notifies(const ew__jobs_redis_store *self, ew_str flags) {
    bool all = memchr(flags.ptr, 'A', flags.len) != NULL;
    if (memchr(flags.ptr, 'K', flags.len) == NULL) {
        return false;
    }
    for (size_t i = 0; i < TOPICS; i++) {
        bool wanted = (self->want & topics[i].change) != 0;
        if (wanted && !all && memchr(flags.ptr, topics[i].events[0], flags.len) == NULL) {
            return false;
        }
    }
    return true;
}

static ew_err listen_to_keyspace(ew__jobs_redis_store *self) {
    static const char *const words[] = {"CONFIG", "GET", "notify-keyspace-events"};
    ew__redis_link *link = &self->watch;
    redisReply *reply = NULL;
    ew_err err = ew__redis_ask(link, words, 3, &reply);
    ew_str flags = ew__redis_str(ew__redis_at(reply, 1));
    bool can = err == EW_OK && flags.len > 0 && notifies(self, flags);
    freeReplyObject(reply);
    if (err != EW_OK || !can) {
        return err != EW_OK ? err : EW_EUNSUPPORTED;
    }
    size_t n = 0;
    ew__redis_word(link, "PSUBSCRIBE");
    for (size_t i = 0; i < TOPICS; i++) {
        if ((self->want & topics[i].change) != 0) {
            char pattern[80];
            (void)snprintf(pattern, sizeof pattern, "__keyspace@%u__:%s*", (unsigned)self->where.db, topics[i].prefix);
            ew__redis_word(link, pattern);
            n++;
        }
    }
    err = ew__redis_end(link);
    for (; n > 0 && err == EW_OK; n--) {
        err = expect(link, REDIS_REPLY_ARRAY);
    }
    return err;
}

/* Makes the connection. What changed before is not told: so everything may have. */
static void begin(ew__jobs_redis_store *self) {
    ew_err err = ew__redis_open(&self->watch, DIAL_MS);
    if (err == EW_OK) {
        err = track(self);
        self->hints = EW__HINTS_TRACKING;
    }
    if (err == EW_EUNSUPPORTED) {
        err = listen_to_keyspace(self);
        self->hints = EW__HINTS_KEYSPACE;
    }
    if (err == EW_EUNSUPPORTED) {
        err = EW_OK;
        self->hints = EW__HINTS_POLL;
        ew__redis_close(&self->watch);
    }
    if (err != EW_OK) {
        self->hints = EW__HINTS_NONE;
        ew__redis_close(&self->watch);
        ew__redis_retry_failed(self, &self->watch_retry);
        return;
    }
    self->watch_retry = (ew__redis_retry){0};
    self->news |= self->want & WATCHED;
}

/* ---- what it tells ---- */

static unsigned change_of(ew_str key) {
    unsigned changes = 0;
    for (size_t i = 0; i < TOPICS; i++) {
        changes |= ew__str_has_prefix(key, ew_str_from(topics[i].prefix)) ? topics[i].change : 0;
    }
    return changes;
}

/*
 * ["message", channel, [key, ...]]; no keys: everything was thrown away. ["pmessage", pattern, "__keyspace@0__:KEY",
 * event].
 */
static unsigned read_message(const redisReply *message) {
    ew_str kind = ew__redis_str(ew__redis_at(message, 0));
    unsigned changes = 0;
    if (ew__str_is(kind, EW_STR("pmessage"))) {
        ew_str channel = ew__redis_str(ew__redis_at(message, 2));
        const char *colon = channel.len > 0 ? memchr(channel.ptr, ':', channel.len) : NULL;
        return colon != NULL ? change_of(ew__str(colon + 1, channel.len - (size_t)(colon + 1 - channel.ptr))) : 0;
    }
    const redisReply *keys = ew__redis_at(message, 2);
    if (!ew__str_is(kind, EW_STR("message"))) {
        return 0;
    }
    if (ew__redis_n(keys) == 0) {
        return WATCHED;
    }
    for (size_t i = 0; i < keys->elements && changes != WATCHED; i++) {
        changes |= change_of(ew__redis_str(keys->element[i]));
    }
    return changes;
}

static unsigned read_messages(ew__jobs_redis_store *self) {
    unsigned changes = 0;
    for (size_t i = 0; i < MESSAGES_PER_LOOK; i++) {
        redisReply *reply = NULL;
        if (ew__redis_peek(&self->watch, &reply) != EW_OK) {
            self->hints = EW__HINTS_NONE;
            self->watch_retry.at = 0;
            return WATCHED;
        }
        if (reply == NULL) {
            break;
        }
        changes |= read_message(reply);
        freeReplyObject(reply);
    }
    return changes;
}

/* ---- the backend's ---- */

static unsigned wanted(const ew__jobs_redis_store *self) { return self->want & WATCHED; }

/* Milliseconds until that moment, rounded up. */
static uint64_t ms_until(const ew__jobs_redis_store *self, uint64_t at) {
    uint64_t now = ew__redis_now(self);
    return at > now ? (at - now + EW__MS(1) - 1) / EW__MS(1) : 1;
}

void ew__redis_plan(ew__jobs_redis_store *self) {
    uint64_t idle = self->hints == EW__HINTS_POLL && wanted(self) != 0 ? POLL_MS : IDLE_MS;
    if (!ew__redis_is_open(&self->link)) {
        uint64_t ms = ms_until(self, self->link_retry.at);
        idle = ms < idle ? ms : idle;
    } else if (wanted(self) != 0 && self->hints == EW__HINTS_NONE) {
        uint64_t ms = ms_until(self, self->watch_retry.at);
        idle = ms < idle ? ms : idle;
    }
    self->backend.idle_ms = self->news != 0 ? 1 : idle;
}

int ew__redis_watch_fd(ew__backend *backend) {
    ew__jobs_redis_store *self = ew__redis_self(backend);
    return ew__redis_is_open(&self->watch) ? self->watch.ctx->fd : -1;
}

/* Without a server that tells: whatever is wanted may have changed; cancels, which cost more, once a second. */
static unsigned poll_changes(ew__jobs_redis_store *self) {
    unsigned changes = EW__CHANGED_QUEUES | EW__CHANGED_JOBS;
    return self->polls++ % POLLS_PER_SECOND == 0 ? changes | EW__CHANGED_CANCELS : changes;
}

unsigned ew__redis_look(ew__backend *backend) {
    ew__jobs_redis_store *self = ew__redis_self(backend);
    unsigned changes = 0;
    if (ew__redis_is_open(&self->watch)) {
        changes |= read_messages(self);
    }
    (void)ew__redis_ready(self, false);
    bool due = self->watch_retry.at <= ew__redis_now(self);
    if (wanted(self) != 0 && self->hints == EW__HINTS_NONE && ew__redis_is_open(&self->link) && due) {
        begin(self);
    }
    if (self->hints == EW__HINTS_POLL) {
        changes |= poll_changes(self);
    }
    changes |= self->news;
    self->news = 0;
    ew__redis_plan(self);
    return changes & (self->want | EW__CHANGED_BACK);
}

void ew__redis_want(ew__backend *backend, unsigned changes) {
    ew__jobs_redis_store *self = ew__redis_self(backend);
    if (self->want == changes) {
        return;
    }
    self->want = changes;
    ew__redis_close(&self->watch);
    self->hints = EW__HINTS_NONE;
    if (wanted(self) != 0 && ew__redis_is_open(&self->link)) {
        begin(self);
    }
    ew__redis_plan(self);
}
