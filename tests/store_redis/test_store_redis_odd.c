/*
 * tests/store_redis/test_store_redis_odd.c: a server that answers nonsense, one that closes in the middle, and no
 * memory: each operation ends with an error and nothing else happens.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/thread.h"
#include "store/redis/redis.h"
#include "store_redis/world.h"
#include "support/fail_env.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- operations of every kind ---- */

static const ew__claim_queue two_queues[] = {{.name = {"q", 1}, .max = 3}, {.name = {"p", 1}, .max = 3}};
static const ew_str two_chunks[] = {{"1", 1}, {"{}", 2}};

static void fill_write(ew__store_request *op, ew__lease *lease) {
    switch (op->kind) {
    case EW__OP_ENQUEUE:
        op->u.enqueue.job = (ew__job){.id = S("new"),
                                      .function = S("f"),
                                      .queue = S("q"),
                                      .params = S("{}"),
                                      .enqueued_at = 1000,
                                      .run_at = 1000,
                                      .timeout_ms = 1000,
                                      .unique_key = S("u")};
        op->u.enqueue.dedup = EW__DEDUP_UNIQUE;
        op->u.enqueue.key = S("u");
        op->u.enqueue.key_ttl_ms = 60000;
        break;
    case EW__OP_CLAIM:
        op->u.claim = (ew__op_claim){
            .worker = S("w"), .queues = two_queues, .n_queues = 2, .max = 5, .now = 2000, .lease_ms = 60000};
        break;
    case EW__OP_CHANGE:
        op->u.change = (ew__op_change){.id = S("new"),
                                       .queue = S("q"),
                                       .worker = S("w"),
                                       .epoch = 1,
                                       .now = 2000,
                                       .status = EW__JOB_FAILED,
                                       .dlq = S("default"),
                                       .result_ttl_ms = 60000};
        break;
    case EW__OP_RENEW:
        *lease = (ew__lease){.id = S("new"), .epoch = 1};
        op->u.renew = (ew__op_renew){
            .worker = S("w"), .record = S("{}"), .ttl_ms = 60000, .lease_ms = 60000, .leases = lease, .n_leases = 1};
        break;
    case EW__OP_CHUNKS:
        op->u.chunks = (ew__op_chunks){.id = S("new"), .worker = S("w"), .epoch = 1, .chunks = two_chunks, .n = 2};
        break;
    default:
        break;
    }
}

static void fill(ew__store_request *op, ew__op_kind kind, ew__arena *arena, ew__lease *lease) {
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->arena = arena;
    switch (kind) {
    case EW__OP_GET:
        op->u.get = (ew__op_get){.id = S("new"), .want_chunks = true};
        break;
    case EW__OP_LIST:
        op->u.list = (ew__op_list){.status = EW__JOB_STATUSES, .limit = 5};
        break;
    case EW__OP_CANCEL:
        op->u.cancel = (ew__op_cancel){.id = S("new"), .now = 2000};
        break;
    case EW__OP_REQUEUE:
        op->u.requeue = (ew__op_requeue){.id = S("new"), .now = 2000};
        break;
    case EW__OP_QUEUES:
        op->u.queues.counts = true;
        break;
    case EW__OP_PAUSE:
        op->u.pause = (ew__op_pause){.queue = S("z"), .on = true};
        break;
    case EW__OP_EXPIRED:
        op->u.expired = (ew__op_expired){.now = 2000, .max = 5};
        break;
    case EW__OP_SWEEP:
        op->u.sweep.max = 5;
        break;
    default:
        fill_write(op, lease);
        break;
    }
}

/* ---- a server that is none ---- */

typedef struct impostor {
    pthread_t thread;
    int fd;
    int port;
    const char *answer;   /* to what is not part of the greeting; "": closes */
    atomic_bool greeting; /* still answers as a Redis would */
    atomic_bool stop;
} impostor;

static const char *answer_to(impostor *self, const char *word) {
    if (strcmp(word, "PING") == 0)
        return "+PONG\r\n";
    if (strcmp(word, "SCRIPT") == 0)
        return "$40\r\n0123456789012345678901234567890123456789\r\n";
    if (atomic_load(&self->greeting))
        return "-ERR not here\r\n";
    return self->answer;
}

/* Length of the first whole command, 0 if there is none; its first word. */
static size_t read_command(const char *in, size_t n, char word[16]) {
    size_t at = 0;
    long args = -1;
    for (long i = -1; i < args || i < 0; i++) {
        const char *end = n > at ? memchr(in + at, '\n', n - at) : NULL;
        if (end == NULL)
            return 0;
        long number = strtol(in + at + 1, NULL, 10);
        at = (size_t)(end - in) + 1;
        if (i < 0) {
            args = number;
            continue;
        }
        if (at + (size_t)number + 2 > n)
            return 0;
        if (i == 0)
            (void)snprintf(word, 16, "%.*s", (int)(number < 15 ? number : 15), in + at);
        at += (size_t)number + 2;
    }
    return at;
}

typedef struct visitor {
    int fd;
    size_t n;
    char in[1 << 18];
} visitor;

/* False: it is to be closed. */
static bool serve(impostor *self, visitor *v) {
    char word[16];
    ssize_t got = read(v->fd, v->in + v->n, sizeof v->in - v->n);
    if (got <= 0)
        return false;
    v->n += (size_t)got;
    for (size_t used; (used = read_command(v->in, v->n, word)) > 0;) {
        const char *text = answer_to(self, word);
        memmove(v->in, v->in + used, v->n - used);
        v->n -= used;
        if (text[0] == '\0' || send(v->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
            return false;
    }
    return true;
}

#define VISITORS 8

static void *impostor_main(void *arg) {
    static visitor all[VISITORS];
    impostor *self = arg;
    struct pollfd fds[VISITORS + 1];
    for (size_t i = 0; i < VISITORS; i++)
        all[i].fd = -1;
    while (!atomic_load(&self->stop)) {
        for (size_t i = 0; i < VISITORS; i++)
            fds[i] = (struct pollfd){.fd = all[i].fd, .events = POLLIN};
        fds[VISITORS] = (struct pollfd){.fd = self->fd, .events = POLLIN};
        if (poll(fds, VISITORS + 1, 20) <= 0)
            continue;
        for (size_t i = 0; i < VISITORS; i++) {
            if (all[i].fd >= 0 && fds[i].revents != 0 && !serve(self, &all[i])) {
                (void)close(all[i].fd);
                all[i].fd = -1;
            }
        }
        for (size_t i = 0; i < VISITORS && fds[VISITORS].revents != 0; i++) {
            if (all[i].fd < 0) {
                int on = 1;
                all[i].fd = accept(self->fd, NULL, NULL);
                all[i].n = 0;
                (void)setsockopt(all[i].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                break;
            }
        }
    }
    for (size_t i = 0; i < VISITORS; i++) {
        if (all[i].fd >= 0)
            (void)close(all[i].fd);
    }
    return NULL;
}

static void impostor_start(impostor *self) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof at;
    self->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(self->fd >= 0);
    assert_int_equal(bind(self->fd, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(self->fd, 8), 0);
    assert_int_equal(getsockname(self->fd, (struct sockaddr *)&at, &n), 0);
    self->port = ntohs(at.sin_port);
    assert_true(ew__thread_start(&self->thread, impostor_main, self));
}

static void impostor_stop(impostor *self) {
    atomic_store(&self->stop, true);
    (void)pthread_join(self->thread, NULL);
    (void)close(self->fd);
}

static void try_answer(impostor *self, const char *answer, const char *url) {
    ew__arena arena;
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    self->answer = answer;
    for (int kind = 0; kind < EW__OP_KINDS; kind++) {
        ew__backend *backend = NULL;
        ew__store_request op;
        ew__lease lease;
        char problem[200];
        atomic_store(&self->greeting, true);
        if (ew__jobs_redis(ew_env_default(), url, &backend, problem, sizeof problem) != EW_OK)
            fail_msg("%s", problem);
        atomic_store(&self->greeting, false);
        fill(&op, (ew__op_kind)kind, &arena, &lease);
        backend->ops->run(backend, &op);
        /* a PAUSE is done when the server says anything; lists of what is no list are empty */
        bool may = kind == EW__OP_PAUSE || kind == EW__OP_LIST || kind == EW__OP_QUEUES || kind == EW__OP_WORKERS ||
                   kind == EW__OP_EXPIRED || kind == EW__OP_SWEEP || kind == EW__OP_GET || kind == EW__OP_CLAIM;
        bool number = answer[0] == ':' && (kind == EW__OP_CHANGE || kind == EW__OP_CHUNKS || kind == EW__OP_REQUEUE);
        if (!may && !number && op.err == EW_OK)
            fail_msg("operation %d took %s", kind, answer);
        if (op.err != EW_OK)
            assert_true(op.problem[0] != '\0' || op.err == EW_ENOTFOUND || op.err == EW_ESTALE);
        backend->ops->want(backend, EW__CHANGED_QUEUES);
        (void)backend->ops->look(backend);
        backend->ops->free(backend);
    }
    ew__arena_done(&arena);
}

static void test_odd__answers(void **state) {
    static const char *const answers[] = {
        "+OK\r\n",
        ":1\r\n",
        ":-7\r\n",
        ":99999\r\n",
        "$-1\r\n",
        "$3\r\nabc\r\n",
        "*0\r\n",
        "*-1\r\n",
        "*1\r\n*1\r\n*1\r\n:1\r\n",
        "*2\r\n:5\r\n$-1\r\n",
        "*2\r\n$1\r\n0\r\n*2\r\n:1\r\n$-1\r\n",
        "*2\r\n$30\r\n012345678901234567890123456789\r\n*0\r\n",
        "*4\r\n$0\r\n\r\n$0\r\n\r\n:1\r\n:1\r\n",
        "*4\r\n$0\r\n\r\n$0\r\n\r\n:1\r\n*4\r\n:0\r\n$1\r\nx\r\n:1\r\n*1\r\n$6\r\nstatus\r\n",
        "*4\r\n$0\r\n\r\n$0\r\n\r\n:1\r\n*4\r\n:9\r\n$1\r\nx\r\n:1\r\n*0\r\n",
        "-ERR no\r\n",
        "-NOSCRIPT no\r\n",
        "-LOADING later\r\n",
        "-\r\n",
        "what is this\r\n",
        "*1000000\r\n",
        "$99999999999999999999\r\n",
        "",
    };
    impostor self = {.answer = ""};
    char url[64];
    (void)state;
    atomic_init(&self.greeting, true);
    atomic_init(&self.stop, false);
    impostor_start(&self);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", self.port);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        if (strcmp(answers[i], "*1000000\r\n") != 0) /* this one takes as long as patience */
            try_answer(&self, answers[i], url);
    }
    impostor_stop(&self);
}

/* ---- a server that sends too much ---- */

#define JOB "*4\r\n:0\r\n$1\r\nx\r\n:1\r\n*0\r\n" /* of a claim: queue, id, epoch, hash */

/* Runs one operation whose first reply is this one; its error. */
static ew_err take_reply(ew__op_kind kind, const char *reply, ew__store_request *op) {
    int fds[2];
    ew__lease lease;
    redisReply *got = NULL;
    ew__jobs_redis_store self = {.backend = {.env = ew_env_default()}, .where = {.name = "nowhere"}};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ew__redis_init(&self.link, ew_env_default(), &self.where);
    ew__redis_adopt(&self.link, redisConnectFd(fds[0]));
    ew__arena *arena = op->arena;
    fill(op, kind, arena, &lease);
    assert_true(send(fds[1], reply, strlen(reply), MSG_NOSIGNAL) == (ssize_t)strlen(reply));
    assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
    ew_err err = ew__redis_pack(&self, op);
    if (err == EW_OK)
        err = ew__redis_reply(&self.link, &got);
    if (err == EW_OK) {
        ew__redis_unpack(&self, op, got);
        err = op->err;
    } else {
        (void)snprintf(op->problem, sizeof op->problem, "%s", self.link.problem);
    }
    freeReplyObject(got);
    ew__redis_done(&self.link);
    (void)close(fds[1]);
    return err;
}

static void test_odd__too_much(void **state) {
    (void)state;
    static const char *const large[] = {"*2147483647\r\n", "*1048577\r\n", "*1\r\n*2\r\n*2000000000\r\n:1\r\n"};
    ew__arena arena;
    ew__store_request op = {.arena = &arena};
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) { /* refused before memory is asked for */
        assert_int_equal(take_reply(EW__OP_CLAIM, large[i], &op), EW_EPROTO);
        assert_non_null(strstr(op.problem, "too many elements"));
    }
    const char *claimed = "*8\r\n$0\r\n\r\n$0\r\n\r\n:5\r\n" JOB JOB JOB JOB JOB;
    assert_int_equal(take_reply(EW__OP_CLAIM, claimed, &op), EW_OK);
    assert_int_equal(op.u.claim.ret_n, 5);
    claimed = "*9\r\n$0\r\n\r\n$0\r\n\r\n:6\r\n" JOB JOB JOB JOB JOB JOB; /* one more than was asked for */
    assert_int_equal(take_reply(EW__OP_CLAIM, claimed, &op), EW_EIO);
    ew__arena_done(&arena);
}

/* ---- no memory ---- */

/* All kinds, twice, on a real server; whether the store could be opened. */
static bool all_kinds(world *w, ew__test_env *env) {
    static const ew__op_kind kinds[] = {
        EW__OP_ENQUEUE, EW__OP_CLAIM,   EW__OP_RENEW,   EW__OP_CHUNKS, EW__OP_CANCEL,  EW__OP_GET,   EW__OP_LIST,
        EW__OP_QUEUES,  EW__OP_WORKERS, EW__OP_EXPIRED, EW__OP_CHANGE, EW__OP_REQUEUE, EW__OP_PAUSE, EW__OP_SWEEP,
    };
    enum { N = sizeof kinds / sizeof *kinds };
    ew__backend *backend = NULL;
    ew__store_request ops[N];
    ew__lease lease;
    ew__arena arena;
    char problem[200];
    ew_err err = ew__jobs_redis(&env->env, w->s.unix_url, &backend, problem, sizeof problem);
    if (err != EW_OK) {
        assert_null(backend);
        assert_true(err == EW_ENOMEM || err == EW_ECONNECT || err == EW_EIO);
        return false;
    }
    ew__arena_init(&arena, &env->env, NULL, 0);
    for (size_t i = 0; i < N; i++) {
        fill(&ops[i], kinds[i], &arena, &lease);
        ops[i].node.next = i + 1 < N ? &ops[i + 1].node : NULL;
        ops[i].err = EW_FULL;
    }
    backend->ops->run(backend, ops);
    for (size_t i = 0; i < N; i++)
        assert_int_not_equal(ops[i].err, EW_FULL);
    backend->ops->want(backend, EW__CHANGED_QUEUES);
    (void)backend->ops->look(backend);
    backend->ops->free(backend);
    ew__arena_done(&arena);
    return true;
}

static void test_odd__no_memory(void **state) {
    world *w = *state;
    ew__test_env env;
    uint64_t n = 0;
    bool failed = true;
    while (failed) {
        assert_true(++n < 2000);
        (void)server_do(&w->s, "FLUSHALL");
        world_rrq_job(w, "here", NULL, NULL);
        (void)server_do(&w->s, "SET rrq:health:worker:r1 {} EX 70");
        (void)server_do(&w->s, "LPUSH rrq:dlq:other gone");
        ew__test_env_init(&env, n);
        ew__test_env_fail_at(&env, n, false);
        (void)all_kinds(w, &env);
        failed = ew__test_env_failed(&env) > 0;
        assert_int_equal(ew__test_env_live_blocks(&env), 0);
    }
    assert_true(n > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_odd__answers),
        cmocka_unit_test(test_odd__too_much),
    };
    const struct CMUnitTest real[] = {
        cmocka_unit_test_setup_teardown(test_odd__no_memory, world_setup, world_teardown),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (!server_exists())
        return failed;
    server_start(&the_world.s, NULL);
    failed += cmocka_run_group_tests(real, NULL, NULL);
    server_stop(&the_world.s);
    return failed;
}
