/*
 * store/redis/ops.c: operations that are one command each: what is sent, and what the reply means. See
 * redis.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/redis/redis.h"
#include <stdio.h>

#define CHUNKS_AT_A_TIME 256

bool ew__redis_is_plain(ew__op_kind kind) {
    switch (kind) {
    case EW__OP_LIST:
    case EW__OP_QUEUES:
    case EW__OP_WORKERS:
    case EW__OP_EXPIRED:
    case EW__OP_SWEEP:
        return false;
    default:
        return true;
    }
}

/* ---- what is sent ---- */

static ew_err refuse(ew__store_request *op, const char *why) {
    (void)snprintf(op->problem, sizeof op->problem, "%s", why);
    return EW_EINVAL;
}

ew_err ew__redis_pack_enqueue(ew__jobs_redis_store *self, ew__store_request *op) {
    static const struct {
        const char *mode, *prefix;
    } modes[] = {[EW__DEDUP_NONE] = {"none", "rrq:idempotency:"},
                 [EW__DEDUP_UNIQUE] = {"unique", "rrq:idempotency:"},
                 [EW__DEDUP_RATE] = {"rate", "rrq:rate_limit:"},
                 [EW__DEDUP_DEBOUNCE] = {"debounce", "rrq:debounce:"}};
    const ew__op_enqueue *enqueue = &op->u.enqueue;
    ew__redis_link *link = &self->link;
    ew__job job = enqueue->job;
    ew_str params = ew__str_trim(job.params);
    if (params.len > 0 && params.ptr[0] != '{' && params.ptr[0] != '\n' && params.ptr[0] != '\r') {
        return refuse(op, "params must be a JSON object");
    }
    if ((unsigned)enqueue->dedup > EW__DEDUP_DEBOUNCE) {
        return refuse(op, "no such dedup mode");
    }
    job.enqueued_at = job.enqueued_at > 0 ? job.enqueued_at : (int64_t)link->env->wall_ms(link->env->ud);
    job.run_at = job.run_at > 0 ? job.run_at : job.enqueued_at;
    bool carried = enqueue->dedup == EW__DEDUP_UNIQUE && ew__str_is(job.unique_key, enqueue->key);
    ew__redis_eval(self, EW__SCRIPT_ENQUEUE, 4);
    ew__redis_key(link, EW__RRQ_JOB, job.id);
    ew__redis_key(link, EW__RRQ_QUEUE, job.queue);
    ew__redis_key(link, modes[enqueue->dedup].prefix, enqueue->key);
    ew__redis_key(link, carried ? "rrq:lock:unique:" : "", carried ? enqueue->key : ew__str(NULL, 0));
    ew__redis_word(link, modes[enqueue->dedup].mode);
    ew__redis_text(link, job.id);
    ew__redis_int(link, job.run_at);
    ew__redis_int(link, enqueue->key_ttl_ms > 0 ? enqueue->key_ttl_ms : 0);
    ew__redis_write_job(link, &job);
    return ew__redis_end(link);
}

/* Dead letters stay for a week at least, as with RRQ. */
static int64_t ttl_of(const ew__op_change *change) {
    bool longer = change->result_ttl_ms <= 0 || change->result_ttl_ms > EW__JOB_DEAD_TTL_MS;
    int64_t ttl = change->status == EW__JOB_FAILED && !longer ? EW__JOB_DEAD_TTL_MS : change->result_ttl_ms;
    return ttl <= 0 ? 0 : ttl < EW__JOB_TTL_MAX_MS ? ttl : EW__JOB_TTL_MAX_MS;
}

ew_err ew__redis_pack_change(ew__jobs_redis_store *self, const ew__op_change *change) {
    ew__redis_link *link = &self->link;
    ew_str dlq = ew__dlq_name(change->dlq.len > 0 ? change->dlq : EW_STR(EW__JOB_DLQ));
    ew__redis_eval(self, EW__SCRIPT_CHANGE, 2);
    ew__redis_key(link, EW__RRQ_QUEUE, change->queue);
    ew__redis_key(link, EW__RRQ_DLQ, dlq);
    ew__redis_text(link, change->id);
    ew__redis_text(link, change->worker);
    ew__redis_uint(link, change->epoch);
    ew__redis_word(link, change->claim == EW__CLAIM_LOST ? "lost" : "held");
    ew__redis_text(link, ew__job_status_name(change->status));
    ew__redis_int(link, change->run_at);
    ew__redis_when(link, change->run_at);
    ew__redis_when(link, change->now);
    ew__redis_uint(link, change->retries);
    ew__redis_uint(link, change->lost);
    ew__redis_text(link, change->result.len > 0 ? change->result : EW_STR("null"));
    ew__redis_text(link, change->last_error);
    ew__redis_text(link, change->error);
    ew__redis_int(link, ttl_of(change));
    ew__redis_text(link, change->unique_key);
    ew__redis_text(link, dlq);
    return ew__redis_end(link);
}

static ew_err pack_renew(ew__jobs_redis_store *self, const ew__op_renew *renew) {
    ew__redis_link *link = &self->link;
    ew__redis_eval(self, EW__SCRIPT_RENEW, 0);
    ew__redis_text(link, renew->worker);
    ew__redis_text(link, renew->record);
    ew__redis_uint(link, renew->ttl_ms > 0 ? renew->ttl_ms : 1);
    ew__redis_uint(link, renew->lease_ms > 0 ? renew->lease_ms : 1);
    for (size_t i = 0; i < renew->n_leases; i++) {
        ew__redis_text(link, renew->leases[i].id);
        ew__redis_uint(link, renew->leases[i].epoch);
    }
    return ew__redis_end(link);
}

static ew_err pack_chunks(ew__jobs_redis_store *self, const ew__op_chunks *chunks) {
    ew__redis_link *link = &self->link;
    ew__redis_eval(self, EW__SCRIPT_CHUNKS, 0);
    ew__redis_text(link, chunks->id);
    ew__redis_text(link, chunks->worker);
    ew__redis_uint(link, chunks->epoch);
    ew__redis_uint(link, EW__JOB_CHUNKS_MAX);
    ew__redis_uint(link, EW__JOB_CHUNK_BYTES_MAX);
    for (size_t i = 0; i < chunks->n; i++) {
        ew__redis_text(link, chunks->chunks[i]);
    }
    return ew__redis_end(link);
}

static ew_err pack_get(ew__jobs_redis_store *self, const ew__op_get *get) {
    ew__redis_link *link = &self->link;
    char first[24] = "0-";
    if (!get->want_chunks) {
        ew__redis_word(link, "HGETALL");
        ew__redis_key(link, EW__RRQ_JOB, get->id);
        return ew__redis_end(link);
    }
    ew__redis_eval(self, EW__SCRIPT_GET, 2);
    ew__redis_key(link, EW__RRQ_JOB, get->id);
    ew__redis_key(link, EW__REDIS_CHUNKS, get->id);
    size_t n = ew__u64_text(get->after < UINT64_MAX ? get->after + 1 : UINT64_MAX, first + 2);
    ew__redis_text(link, ew__str(first, n + 2));
    ew__redis_uint(link, CHUNKS_AT_A_TIME);
    return ew__redis_end(link);
}

static ew_err pack_requeue(ew__jobs_redis_store *self, const ew__op_requeue *requeue) {
    ew__redis_link *link = &self->link;
    ew__redis_eval(self, EW__SCRIPT_REQUEUE, 0);
    ew__redis_text(link, requeue->id);
    ew__redis_key(link, requeue->queue.len > 0 ? EW__RRQ_QUEUE : "", requeue->queue);
    ew__redis_int(link, requeue->now);
    ew__redis_when(link, requeue->now);
    return ew__redis_end(link);
}

ew_err ew__redis_pack(ew__jobs_redis_store *self, ew__store_request *op) {
    ew__redis_link *link = &self->link;
    switch (op->kind) {
    case EW__OP_ENQUEUE:
        return ew__redis_pack_enqueue(self, op);
    case EW__OP_CLAIM:
        return ew__redis_pack_claim(self, &op->u.claim);
    case EW__OP_CHANGE:
        return ew__redis_pack_change(self, &op->u.change);
    case EW__OP_RENEW:
        return pack_renew(self, &op->u.renew);
    case EW__OP_CHUNKS:
        return pack_chunks(self, &op->u.chunks);
    case EW__OP_GET:
        return pack_get(self, &op->u.get);
    case EW__OP_CANCEL:
        ew__redis_eval(self, EW__SCRIPT_CANCEL, 0);
        ew__redis_text(link, op->u.cancel.id);
        ew__redis_when(link, op->u.cancel.now);
        return ew__redis_end(link);
    case EW__OP_REQUEUE:
        return pack_requeue(self, &op->u.requeue);
    case EW__OP_PAUSE:
        ew__redis_word(link, op->u.pause.on ? "SADD" : "SREM");
        ew__redis_word(link, EW__REDIS_PAUSED);
        ew__redis_text(link, op->u.pause.queue);
        return ew__redis_end(link);
    default:
        return EW_EINVAL;
    }
}

/* ---- what came back ---- */

static ew_err fenced(const redisReply *reply) {
    switch (ew__redis_number(reply, INT64_MIN)) {
    case 1:
        return EW_OK;
    case 0:
        return EW_ESTALE;
    case -1:
        return EW_ENOTFOUND;
    default:
        return EW_EPROTO;
    }
}

static ew_err unpack_enqueue(ew__store_request *op, const redisReply *reply) {
    ew__op_enqueue *enqueue = &op->u.enqueue;
    ew_str id = ew__redis_str(ew__redis_at(reply, 1));
    enqueue->ret_id = ew__str(NULL, 0);
    switch (ew__redis_number(ew__redis_at(reply, 0), INT64_MIN)) {
    case 1:
        enqueue->ret = EW__ENQUEUED_NEW;
        break;
    case 0:
        enqueue->ret = EW__ENQUEUED_KNOWN;
        break;
    case 2:
        enqueue->ret = EW__ENQUEUED_LIMITED;
        return EW_OK;
    case -1:
        enqueue->ret = EW__ENQUEUED_DUPLICATE;
        break;
    default:
        return EW_EPROTO;
    }
    return id.len > 0 ? ew__arena_str(op->arena, id, &enqueue->ret_id) : EW_EPROTO;
}

static ew_err unpack_renew(ew__op_renew *renew, const redisReply *reply) {
    static const ew__lease_state states[] = {EW__LEASE_HELD, EW__LEASE_CANCEL, EW__LEASE_GONE};
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != renew->n_leases) {
        return EW_EPROTO;
    }
    for (size_t i = 0; i < renew->n_leases; i++) {
        int64_t state = ew__redis_number(reply->element[i], -1);
        if (state < 0 || state > 2) {
            return EW_EPROTO;
        }
        renew->leases[i].ret = states[state];
    }
    return EW_OK;
}

/* Entries of the stream: [id, ["chunk", json]]. */
static ew_err read_chunks(ew__store_request *op, const redisReply *entries) {
    ew__op_get *get = &op->u.get;
    size_t n = ew__redis_n(entries);
    if (n > CHUNKS_AT_A_TIME) {
        return EW_EPROTO;
    }
    get->ret_chunks = ew__arena_alloc(op->arena, (n + 1) * sizeof *get->ret_chunks);
    if (get->ret_chunks == NULL) {
        return EW_ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        const redisReply *entry = entries->element[i];
        ew_str id = ew__redis_str(ew__redis_at(entry, 0));
        ew__chunk *chunk = &get->ret_chunks[get->ret_n_chunks];
        if (!ew__str_has_prefix(id, EW_STR("0-")) || !ew__u64_parse(ew__str(id.ptr + 2, id.len - 2), &chunk->seq)) {
            continue; /* not ours */
        }
        if (ew__arena_str(op->arena, ew__redis_str(ew__redis_at(ew__redis_at(entry, 1), 1)), &chunk->json) != EW_OK) {
            return EW_ENOMEM;
        }
        get->ret_n_chunks++;
    }
    return EW_OK;
}

static ew_err unpack_get(ew__store_request *op, const redisReply *reply) {
    ew__op_get *get = &op->u.get;
    const redisReply *hash = get->want_chunks ? ew__redis_at(reply, 0) : reply;
    get->ret_chunks = NULL;
    get->ret_n_chunks = 0;
    if (ew__redis_n(hash) == 0) {
        return EW_ENOTFOUND;
    }
    ew_err err = ew__redis_read_job(hash, get->id, op->arena, &get->ret, NULL);
    if (err == EW_EIO) {
        (void)snprintf(op->problem, sizeof op->problem, "this job has no status that can be read");
    }
    return err == EW_OK && get->want_chunks ? read_chunks(op, ew__redis_at(reply, 1)) : err;
}

static ew_err unpack_cancel(ew__store_request *op, const redisReply *reply) {
    ew__op_cancel *cancel = &op->u.cancel;
    ew_str status = ew__redis_str(ew__redis_at(reply, 1));
    switch (ew__redis_number(ew__redis_at(reply, 0), INT64_MIN)) {
    case 1:
        cancel->ret = EW__CANCELLED_NOW;
        break;
    case 2:
        cancel->ret = EW__CANCELLED_ASKED;
        break;
    case 3:
        cancel->ret = EW__CANCELLED_LATE;
        break;
    case -1:
        return EW_ENOTFOUND;
    case -2:
        return refuse(op, "it runs on an RRQ worker, which cannot cancel");
    default:
        return EW_EPROTO;
    }
    return ew__job_status_parse(status, &cancel->ret_status) ? EW_OK : EW_EIO;
}

static ew_err unpack(ew__jobs_redis_store *self, ew__store_request *op, const redisReply *reply) {
    switch (op->kind) {
    case EW__OP_ENQUEUE:
        return unpack_enqueue(op, reply);
    case EW__OP_CLAIM:
        return ew__redis_unpack_claim(self, op, reply);
    case EW__OP_CHANGE:
    case EW__OP_CHUNKS:
    case EW__OP_REQUEUE:
        return fenced(reply);
    case EW__OP_RENEW:
        return unpack_renew(&op->u.renew, reply);
    case EW__OP_GET:
        return unpack_get(op, reply);
    case EW__OP_CANCEL:
        return unpack_cancel(op, reply);
    default:
        return EW_OK;
    }
}

void ew__redis_unpack(ew__jobs_redis_store *self, ew__store_request *op, const redisReply *reply) {
    op->err = ew__redis_op_err(reply, op->problem);
    if (op->err == EW_OK) {
        op->err = unpack(self, op, reply);
    }
    if (op->err == EW_EPROTO) {
        op->err = EW_EIO;
        (void)snprintf(op->problem, sizeof op->problem, "redis gave an answer that makes no sense");
    }
}
