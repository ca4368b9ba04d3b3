/*
 * fuzz/fuzz_redis_reply.c: a Redis server that answers an operation of the job store with any bytes. The first byte of
 * the input chooses the operation and a variant of it; the rest is all that the server sends before it closes.
 *
 * Whatever comes: the operation ends with a result that keeps within what was asked for, or with an error; memory stays
 * in proportion to the bytes that came.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/json.h"
#include "store/redis/redis.h"
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define MAX 3         /* jobs that are asked for */
#define CHUNKS 256    /* of one GET, at most */
#define SENT_MAX 4096 /* larger inputs may not fit into the socket */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds)
        abort();
}

/* ---- a clock that always goes on: walks over all keys end by it ---- */

static uint64_t now_ns;

static uint64_t next_now(void *ud) {
    (void)ud;
    return now_ns += EW__MS(100);
}

/* ---- operations ---- */

static const ew__claim_queue queues[] = {{.name = {"q", 1}, .max = MAX}, {.name = {"p", 1}, .max = 1}};
static const ew_str chunks[] = {{"1", 1}};

static void fill_write(ew__store_request *op, ew__lease leases[2]) {
    switch (op->kind) {
    case EW__OP_ENQUEUE:
        op->u.enqueue.job = (ew__job){.id = EW_STR("j"), .function = EW_STR("f"), .queue = EW_STR("q")};
        op->u.enqueue.key = EW_STR("k");
        break;
    case EW__OP_CLAIM:
        op->u.claim = (ew__op_claim){
            .worker = EW_STR("w"), .queues = queues, .n_queues = 2, .max = MAX, .now = 2000, .lease_ms = 1000};
        break;
    case EW__OP_CHANGE:
        op->u.change = (ew__op_change){.id = EW_STR("j"), .queue = EW_STR("q"), .worker = EW_STR("w"), .epoch = 1};
        break;
    case EW__OP_RENEW:
        leases[0] = leases[1] = (ew__lease){.id = EW_STR("j"), .epoch = 1};
        op->u.renew = (ew__op_renew){.worker = EW_STR("w"), .record = EW_STR("{}"), .leases = leases, .n_leases = 2};
        break;
    default:
        op->u.chunks = (ew__op_chunks){.id = EW_STR("j"), .worker = EW_STR("w"), .chunks = chunks, .n = 1};
        break;
    }
}

static void fill(ew__store_request *op, unsigned variant, ew__lease leases[2]) {
    switch (op->kind) {
    case EW__OP_GET:
        op->u.get = (ew__op_get){.id = EW_STR("j"), .want_chunks = variant & 1};
        break;
    case EW__OP_LIST:
        op->u.list = (ew__op_list){.status = EW__JOB_STATUSES, .limit = MAX, .offset = variant & 1};
        op->u.list.queue = variant & 2 ? EW_STR("q") : ew__str(NULL, 0);
        op->u.list.waiting = (variant & 6) == 2;
        op->u.list.dlq = (variant & 6) == 6 ? EW_STR("d") : ew__str(NULL, 0);
        break;
    case EW__OP_CANCEL:
        op->u.cancel = (ew__op_cancel){.id = EW_STR("j"), .now = 2000};
        break;
    case EW__OP_REQUEUE:
        op->u.requeue = (ew__op_requeue){.id = EW_STR("j"), .now = 2000};
        break;
    case EW__OP_QUEUES:
        op->u.queues = (ew__op_queues){.counts = variant & 1, .max_scan = variant & 2 ? 2 : 0};
        break;
    case EW__OP_PAUSE:
        op->u.pause = (ew__op_pause){.queue = EW_STR("q"), .on = true};
        break;
    case EW__OP_EXPIRED:
        op->u.expired = (ew__op_expired){.now = 2000, .max = MAX};
        break;
    case EW__OP_WORKERS:
        break;
    case EW__OP_SWEEP:
        op->u.sweep.max = MAX;
        break;
    default:
        fill_write(op, leases);
    }
}

/* ---- what comes back ---- */

static void check_json(ew_str json) { check(json.len == 0 || ew_json_check(json, NULL) == EW_OK); }

/* Claimed jobs that cannot be run have no function; their params need not be JSON. */
static void check_job(const ew__job *job, bool claimed) {
    check((unsigned)job->status < EW__JOB_STATUSES && job->timeout_ms > 0 && job->result_ttl_ms >= 0);
    check_json(job->result);
    check_json(job->error);
    check_json(job->trace);
    check_json(job->correlation);
    if (claimed && job->function.len > 0)
        check(job->queue.len > 0 && job->epoch > 0 && ew_json_typeof(job->params) == EW_JSON_OBJECT);
}

static void check_jobs(const ew__job *jobs, size_t n, size_t max, bool claimed) {
    check(n <= max);
    for (size_t i = 0; i < n; i++)
        check_job(&jobs[i], claimed);
}

static void check_result(const ew__store_request *op) {
    switch (op->kind) {
    case EW__OP_CLAIM:
        check_jobs(op->u.claim.ret, op->u.claim.ret_n, MAX, true);
        check(op->u.claim.ret_next >= 0);
        break;
    case EW__OP_GET:
        check_job(&op->u.get.ret, false);
        check(op->u.get.ret_n_chunks <= CHUNKS);
        break;
    case EW__OP_LIST:
        check_jobs(op->u.list.ret, op->u.list.ret_n, MAX, false);
        check(op->u.list.ret_total <= INT64_MAX);
        break;
    case EW__OP_EXPIRED:
        check_jobs(op->u.expired.ret, op->u.expired.ret_n, MAX, false);
        break;
    case EW__OP_QUEUES:
        for (size_t i = 0; i < op->u.queues.ret_n; i++)
            check(op->u.queues.ret[i].pending <= INT64_MAX && op->u.queues.ret[i].average_wait_ms >= -1);
        break;
    default:
        break;
    }
}

/* ---- one operation ---- */

static void run_plain(ew__jobs_redis_store *self, ew__store_request *op) {
    redisReply *reply = NULL;
    op->err = ew__redis_pack(self, op);
    if (op->err == EW_OK)
        op->err = ew__redis_reply(&self->link, &reply);
    if (op->err == EW_OK)
        ew__redis_unpack(self, op, reply);
    if (op->kind == EW__OP_CLAIM)
        ew__redis_quarantine(self, op);
    freeReplyObject(reply);
}

static void run_alone(ew__jobs_redis_store *self, ew__store_request *op) {
    switch (op->kind) {
    case EW__OP_LIST:
        ew__redis_list(self, op);
        break;
    case EW__OP_QUEUES:
        ew__redis_queues(self, op);
        break;
    case EW__OP_WORKERS:
        ew__redis_workers(self, op);
        break;
    case EW__OP_EXPIRED:
        ew__redis_expired(self, op);
        break;
    default:
        ew__redis_sweep(self, op);
        break;
    }
}

static void run(ew__jobs_redis_store *self, uint8_t what) {
    ew__lease leases[2];
    ew__arena arena;
    ew__store_request op = {.kind = (ew__op_kind)(what % (EW__OP_KINDS + 1)), .arena = &arena};
    if (op.kind == EW__OP_KINDS) { /* what is asked of a new connection */
        ew__redis_write_notice(self);
        (void)ew__redis_load(self);
        return;
    }
    ew__arena_init(&arena, self->backend.env, NULL, 0);
    fill(&op, what / (EW__OP_KINDS + 1), leases);
    if (ew__redis_is_plain(op.kind))
        run_plain(self, &op);
    else
        run_alone(self, &op);
    if (op.err == EW_OK)
        check_result(&op);
    ew__arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ew_env env = *ew_env_default();
    ew__jobs_redis_store self = {.backend = {.env = &env}, .where = {.name = "fuzz"}};
    struct timeval no_time = {.tv_usec = 1000};
    int fds[2];
    if (size < 1 || size > SENT_MAX)
        return 0;
    now_ns = 0;
    env.now_ns = next_now;
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    check(setsockopt(fds[0], SOL_SOCKET, SO_SNDTIMEO, &no_time, sizeof no_time) == 0);
    check(send(fds[1], data + 1, size - 1, MSG_NOSIGNAL) == (ssize_t)size - 1 && shutdown(fds[1], SHUT_WR) == 0);
    redisContext *ctx = redisConnectFd(fds[0]);
    check(ctx != NULL);
    self.workers_cursor[0] = self.dlqs_cursor[0] = '0';
    ew__redis_init(&self.link, &env, &self.where);
    ew__redis_adopt(&self.link, ctx);
    run(&self, data[0]);
    for (size_t i = 0; i < self.n_dlqs; i++)
        ew__free(&env, self.dlqs[i], strlen(self.dlqs[i]) + 1);
    ew__redis_done(&self.link);
    (void)close(fds[1]);
    return 0;
}
