/*
 * store/redis/notice.c: whether this Redis can lose what it has acknowledged, for people. See redis.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/redis/redis.h"
#include <stdio.h>

typedef struct facts {
    char name[16]; /* "redis", "valkey" */
    char version[24];
    char appendonly[16], appendfsync[16], save[64], policy[32]; /* "": not known */
    bool known;                                                 /* CONFIG answers */
} facts;

/* The line "NAME:VALUE" of INFO; empty if there is none. */
static ew_str info_line(ew_str info, const char *name) {
    size_t n = strlen(name);
    for (size_t at = 0; at + n < info.len;) {
        size_t end = at;
        while (end < info.len && info.ptr[end] != '\r' && info.ptr[end] != '\n') {
            end++;
        }
        if (end - at > n && memcmp(info.ptr + at, name, n) == 0 && info.ptr[at + n] == ':') {
            return ew__str(info.ptr + at + n + 1, end - at - n - 1);
        }
        at = end + 1;
    }
    return ew__str(NULL, 0);
}

static void keep(char *out, size_t size, ew_str text) {
    (void)snprintf(out, size, "%.*s", (int)(text.len < size ? text.len : size - 1), text.len > 0 ? text.ptr : "");
}

static void ask_info(ew__redis_link *link, facts *f) {
    static const char *const words[] = {"INFO"};
    redisReply *reply = NULL;
    if (ew__redis_ask(link, words, 1, &reply) == EW_OK && reply->type == REDIS_REPLY_STRING) {
        ew_str info = ew__redis_str(reply), valkey = info_line(info, "valkey_version");
        keep(f->name, sizeof f->name, valkey.len > 0 ? EW_STR("valkey") : EW_STR("redis"));
        keep(f->version, sizeof f->version, valkey.len > 0 ? valkey : info_line(info, "redis_version"));
        keep(f->policy, sizeof f->policy, info_line(info, "maxmemory_policy"));
        ew_str aof = info_line(info, "aof_enabled");
        keep(f->appendonly, sizeof f->appendonly,
             aof.len == 0                   ? aof
             : ew__str_is(aof, EW_STR("1")) ? EW_STR("yes")
                                            : EW_STR("no"));
    }
    freeReplyObject(reply);
}

static bool ask_config(ew__redis_link *link, const char *name, char *out, size_t size) {
    const char *const words[] = {"CONFIG", "GET", name};
    redisReply *reply = NULL;
    bool answered = ew__redis_ask(link, words, 3, &reply) == EW_OK && ew__redis_n(reply) == 2;
    if (answered) {
        keep(out, size, ew__redis_str(reply->element[1]));
    }
    freeReplyObject(reply);
    return answered;
}

/* What can be lost, by what it does with its files; "" for nothing. */
static const char *loss(const facts *f) {
    if (strcmp(f->appendonly, "yes") == 0) {
        if (!f->known) {
            return "whether a crash of Redis can lose acknowledged jobs is not known: it does not tell its appendfsync";
        }
        return strcmp(f->appendfsync, "always") == 0 ? ""
               : strcmp(f->appendfsync, "everysec") == 0
                   ? "appendfsync is everysec: a crash of Redis can lose jobs acknowledged within the last second"
                   : "appendfsync is no: a crash of the machine can lose jobs that were acknowledged";
    }
    if (!f->known && f->appendonly[0] == '\0') {
        return "whether it can lose acknowledged jobs is not known: it does not tell its configuration";
    }
    return f->known && f->save[0] == '\0'
               ? "appendonly is no, and nothing is saved: when Redis ends, all jobs are lost"
               : "appendonly is no: a crash of Redis can lose jobs acknowledged since its last snapshot";
}

void ew__redis_write_notice(ew__jobs_redis_store *self) {
    facts f = {.name = "redis"};
    ask_info(&self->link, &f);
    f.known = ask_config(&self->link, "appendfsync", f.appendfsync, sizeof f.appendfsync);
    if (f.known) {
        f.known = ask_config(&self->link, "appendonly", f.appendonly, sizeof f.appendonly) &&
                  ask_config(&self->link, "save", f.save, sizeof f.save) &&
                  ask_config(&self->link, "maxmemory-policy", f.policy, sizeof f.policy);
    }
    const char *lost = loss(&f);
    bool evicts = f.policy[0] != '\0' && strcmp(f.policy, "noeviction") != 0;
    self->notice[0] = '\0';
    if (lost[0] != '\0' || evicts) {
        (void)snprintf(self->notice, sizeof self->notice, "%s %s at %.60s: %s%s%s%s%s", f.name,
                       f.version[0] != '\0' ? f.version : "(of unknown version)", self->where.name, lost,
                       lost[0] != '\0' && evicts ? "; " : "", evicts ? "maxmemory-policy is " : "",
                       evicts ? f.policy : "", evicts ? ": it may drop jobs when memory is short" : "");
    }
}
