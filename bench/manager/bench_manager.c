/*
 * bench/manager/bench_manager.c: a manager of a Genkit runtime under load: waits for one runtime, keeps DEPTH calls in
 * flight, each begun from the end of the one before it, and prints one line of JSON.
 *
 *     bench_manager PORT DEPTH SECONDS [unary|stream] [WARM-UP SECONDS]      KEY=/flow/echo SIZE=100
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define MOST_SAMPLES ((size_t)1 << 23)
#define NS 1000000000u

/* All of it is the loop thread's until `over`. */
typedef struct bench {
    ew_client *client;
    ew_request_options request;
    uint64_t warm_ns, run_ns, began, ended; /* began: of the measured time; 0: not yet */
    uint64_t first;                         /* end of the first call; 0: none yet */
    uint64_t reqs, chunks, errors;
    uint64_t chunks_before;
    double cpu_before, cpu;
    uint32_t *samples; /* ns */
    size_t n_samples;
    size_t in_flight;
    ew_str expected; /* empty: not looked at */
    bool lost;       /* there is no runtime */
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool over; /* guarded */
    char problem[200];
} bench;

typedef struct slot {
    bench *b;
    uint64_t began;
} slot;

static uint64_t now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

static double cpu_seconds(void) {
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void finish(bench *b) {
    (void)pthread_mutex_lock(&b->mutex);
    b->over = true;
    (void)pthread_cond_signal(&b->cond);
    (void)pthread_mutex_unlock(&b->mutex);
}

static void begin(slot *s) {
    bench *b = s->b;
    ew_request_options request = b->request;
    request.ud = s;
    s->began = now_ns();
    ew_err err = ew_client_call(b->client, &request, NULL);
    if (err == EW_OK) {
        b->in_flight++;
        return;
    }
    b->errors++;
    (void)snprintf(b->problem, sizeof b->problem, "%s", ew_err_text(err));
}

static void on_chunk(ew_request *request, ew_str chunk, void *ud) {
    (void)request;
    (void)chunk;
    ((slot *)ud)->b->chunks++;
}

static void note_end(bench *b, const ew_end *end) {
    if (end->status != EW_STATUS_OK) {
        b->errors++;
        b->lost = b->lost || end->origin == EW_ORIGIN_CONNECT;
        (void)snprintf(b->problem, sizeof b->problem, "%s: %.*s", ew_status_name(end->status),
                       (int)end->fault.message.len, end->fault.message.ptr);
    } else if (b->expected.len &&
               (end->result.len != b->expected.len || memcmp(end->result.ptr, b->expected.ptr, end->result.len) != 0)) {
        b->errors++;
        (void)snprintf(b->problem, sizeof b->problem, "the result is not what was sent");
    }
}

static void measure(bench *b, uint64_t began, uint64_t now) {
    if (!b->first)
        b->first = now;
    if (!b->began && now - b->first >= b->warm_ns) {
        b->began = now;
        b->cpu_before = cpu_seconds();
        b->chunks_before = b->chunks;
        return;
    }
    if (!b->began)
        return;
    b->reqs++;
    if (b->n_samples < MOST_SAMPLES)
        b->samples[b->n_samples++] = now - began < UINT32_MAX ? (uint32_t)(now - began) : UINT32_MAX;
    if (now - b->began >= b->run_ns) {
        b->ended = now;
        b->cpu = cpu_seconds() - b->cpu_before;
        b->chunks -= b->chunks_before;
    }
}

static void on_end(ew_request *request, const ew_end *end, void *ud) {
    (void)request;
    slot *s = ud;
    bench *b = s->b;
    b->in_flight--;
    if (!b->ended) {
        note_end(b, end);
        measure(b, s->began, now_ns());
    }
    if (!b->ended && !b->lost && b->errors < 1000)
        begin(s);
    if (b->in_flight == 0)
        finish(b);
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double quantile_us(const bench *b, double q) {
    return b->n_samples ? b->samples[(size_t)((double)b->n_samples * q)] / 1e3 : 0;
}

static int report(bench *b, unsigned depth, size_t size) {
    struct rusage u;
    if (!b->ended) {
        (void)fprintf(stderr, "bench_manager: %s\n", *b->problem ? b->problem : "no end");
        return 3;
    }
    if (*b->problem)
        (void)fprintf(stderr, "bench_manager: %s\n", b->problem);
    double seconds = (double)(b->ended - b->began) / NS;
    (void)getrusage(RUSAGE_SELF, &u);
    qsort(b->samples, b->n_samples, sizeof *b->samples, by_size);
    printf("{\"label\":\"manager\",\"wire\":\"reflection\",\"stream\":%d,\"conns\":1,\"depth\":%u,\"size\":%zu,"
           "\"secs\":%.4f,"
           "\"reqs\":%llu,\"rps\":%.1f,\"chunks_s\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"errors\":%llu,"
           "\"gen_cpu\":%.3f,\"rss_kb\":%ld}\n",
           b->request.stream, depth, size, seconds, (unsigned long long)b->reqs, (double)b->reqs / seconds,
           (double)b->chunks / seconds, quantile_us(b, 0.5), quantile_us(b, 0.99), (unsigned long long)b->errors,
           b->cpu / seconds, u.ru_maxrss);
    return b->errors ? 1 : 0;
}

/* {"text":"the quick ..."}, SIZE bytes in all, like the load generator's. */
static char *make_input(size_t size) {
    static const char words[] = "the quick brown fox jumps ";
    char *text = malloc(size + 1);
    if (!text)
        return NULL;
    (void)memcpy(text, "{\"text\":\"", 9);
    for (size_t i = 9; i < size - 2; i++)
        text[i] = words[(i - 9) % (sizeof words - 1)];
    (void)memcpy(text + size - 2, "\"}", 3);
    return text;
}

/* Begins all calls (they wait for the runtime) and waits for the last of them. */
static void run(bench *b, slot *slots, unsigned depth) {
    for (unsigned i = 0; i < depth; i++) {
        slots[i].b = b;
        slots[i].began = 0;
    }
    b->in_flight = depth; /* the loop thread has them as soon as they are begun */
    for (unsigned i = 0; i < depth; i++) {
        ew_request_options request = b->request;
        request.ud = &slots[i];
        slots[i].began = now_ns();
        if (ew_client_call(b->client, &request, NULL) != EW_OK)
            exit(1);
    }
    (void)pthread_mutex_lock(&b->mutex);
    while (!b->over)
        (void)pthread_cond_wait(&b->cond, &b->mutex);
    (void)pthread_mutex_unlock(&b->mutex);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        (void)fprintf(stderr, "bench_manager PORT DEPTH SECONDS [unary|stream] [WARM-UP SECONDS]\n");
        return 2;
    }
    unsigned depth = (unsigned)strtoul(argv[2], NULL, 10);
    bool stream = argc > 4 && strcmp(argv[4], "stream") == 0;
    const char *key = getenv("KEY"), *bytes = getenv("SIZE"), *problem = NULL;
    size_t size = bytes && strtoul(bytes, NULL, 10) > 11 ? strtoul(bytes, NULL, 10) : 100;
    char target[60], *input = make_input(size);
    slot *slots = calloc(depth + 1u, sizeof *slots);
    bench b = {.warm_ns = (uint64_t)((argc > 5 ? strtod(argv[5], NULL) : 1) * NS),
               .run_ns = (uint64_t)(strtod(argv[3], NULL) * NS),
               .samples = malloc(MOST_SAMPLES * sizeof *b.samples),
               .mutex = PTHREAD_MUTEX_INITIALIZER,
               .cond = PTHREAD_COND_INITIALIZER};
    if (!input || !slots || !b.samples || depth == 0)
        return 1;
    b.request = (ew_request_options){.action = ew_str_from(key      ? key
                                                           : stream ? "/flow/stream"
                                                                    : "/flow/echo"),
                                     .input = ew_str_from(input),
                                     .stream = stream,
                                     .on_chunk = on_chunk,
                                     .on_end = on_end};
    b.expected = ew_str_from(strcmp(key ? key : "/flow/echo", "/flow/echo") == 0 ? input : "");
    (void)snprintf(target, sizeof target, "reflection://127.0.0.1:%s", argv[1]);
    if (ew_client_new(target, NULL, &b.client, &problem) != EW_OK) {
        (void)fprintf(stderr, "bench_manager: %s\n", problem ? problem : "no client");
        return 1;
    }
    run(&b, slots, depth);
    int code = report(&b, depth, size);
    b.client = ew_client_free(b.client);
    free(b.samples);
    free(slots);
    free(input);
    return code;
}
