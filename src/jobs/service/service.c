/*
 * jobs/service/service.c: handles of stores of jobs: opening, enqueueing, and how all of their functions ask. See
 * <everywire/jobs.h>.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/service/service.h"
#include "base/thread.h"
#include "base/when.h"
#include <stdio.h>

#define MAX_RETRIES 5
#define TIMEOUT_MS INT64_C(300000)
#define RESULT_TTL_MS INT64_C(86400000)
#define UNIQUE_TTL_MS INT64_C(21600000)
#define LABELS_MAX 16 /* of the mappings, as RRQ takes them */
#define LABEL_MAX 64
#define LABEL_VALUE_MAX 256

/* ---- answers ---- */

ew_answer *ew__answer_new(const ew_env *env) {
    ew_answer *answer = ew__zalloc(env, sizeof *answer);
    if (!answer)
        return NULL;
    answer->env = env;
    ew__buf_init(&answer->json, env, SIZE_MAX / 2);
    return answer;
}

ew_answer *ew__answer_free(ew_answer *answer) {
    if (!answer)
        return NULL;
    ew__buf_done(&answer->json);
    ew__free(answer->env, answer, sizeof *answer);
    return NULL;
}

/* ---- requests ---- */

ew_err ew__jobs_request_begin(ew__jobs_request *request, ew_jobs *jobs, ew__op_kind kind) {
    request->jobs = jobs;
    request->answer = ew__answer_new(jobs->env);
    if (!request->answer)
        return EW_ENOMEM;
    ew__store_request_begin(&request->op, &jobs->requests, kind);
    return EW_OK;
}

static void note_problem(ew_answer *answer, ew_err err, const char *problem) {
    (void)snprintf(answer->problem, sizeof answer->problem, "%s", *problem ? problem : ew_err_text(err));
}

ew_err ew__jobs_request_run(ew__jobs_request *request) {
    ew_err err = ew__store_do(request->jobs->requests.store, &request->op);
    if (err != EW_OK)
        note_problem(request->answer, err, request->op.problem);
    return err;
}

ew_err ew__jobs_request_refuse(ew__jobs_request *request, const char *problem) {
    note_problem(request->answer, EW_EINVAL, problem);
    return EW_EINVAL;
}

ew_err ew__jobs_request_end(ew__jobs_request *request, ew_err err, ew_answer **ret) {
    ew__store_request_end(&request->op);
    if (request->answer->json.err)
        err = EW_ENOMEM;
    if (err != EW_OK && !request->answer->problem[0])
        note_problem(request->answer, err, "");
    if (err == EW_ENOMEM || !ret)
        request->answer = ew__answer_free(request->answer);
    if (ret)
        *ret = request->answer;
    return err;
}

/* ---- opening ---- */

static ew_err fail(char *problem, size_t size, ew_err err, const char *text) {
    if (problem && size)
        (void)snprintf(problem, size, "%s", text);
    return err;
}

static bool is_map_of_strings(ew_str json) {
    ew_json_iter it = {.offset_ = 0};
    if (ew_json_check(json, NULL) != EW_OK || ew_json_typeof(json) != EW_JSON_OBJECT)
        return false;
    while (ew_json_next(json, &it))
        if (ew_json_typeof(it.value) != EW_JSON_STRING)
            return false;
    return true;
}

static ew_err copy(ew_jobs *jobs, const char *text, const char *usual, ew_str *ret) {
    return ew__arena_str(&jobs->arena, ew_str_from(text && *text ? text : usual), ret);
}

static int64_t or_usual(uint64_t given, int64_t usual) {
    return given == 0 ? usual : given > INT64_MAX ? INT64_MAX : (int64_t)given;
}

static ew_err read_options(ew_jobs *jobs, const ew_jobs_options *options, char *problem, size_t size) {
    static const ew_jobs_options none;
    if (!options)
        options = &none;
    jobs->max_retries = options->max_retries ? options->max_retries : MAX_RETRIES;
    jobs->timeout_ms = or_usual(options->timeout_ms, TIMEOUT_MS);
    jobs->result_ttl_ms = or_usual(options->result_ttl_ms, RESULT_TTL_MS);
    jobs->unique_ttl_ms = or_usual(options->unique_ttl_ms, UNIQUE_TTL_MS);
    ew_err err = copy(jobs, options->queue, EW__JOB_QUEUE, &jobs->queue);
    if (err == EW_OK)
        err = copy(jobs, options->dlq, EW__JOB_DLQ, &jobs->dlq);
    if (err == EW_OK)
        err = copy(jobs, options->correlation_mappings, "", &jobs->mappings);
    if (err != EW_OK)
        return fail(problem, size, err, ew_err_text(err));
    jobs->queue = ew__queue_name(jobs->queue);
    jobs->dlq = ew__dlq_name(jobs->dlq);
    if (jobs->mappings.len && !is_map_of_strings(jobs->mappings))
        return fail(problem, size, EW_EINVAL, "the correlation mappings must be a JSON object of strings");
    return EW_OK;
}

static void destroy(ew_jobs *jobs) {
    if (jobs->requests.store)
        jobs->requests.store->ops->free(jobs->requests.store);
    ew__arena_done(&jobs->arena);
    pthread_cond_destroy(&jobs->changed);
    pthread_mutex_destroy(&jobs->lock);
    ew__free(jobs->env, jobs, sizeof *jobs);
}

ew_err ew__jobs_service_open(const char *store, const ew_jobs_options *options, ew_jobs **ret_jobs, char *problem,
                             size_t problem_size) {
    const ew_env *env = options && options->env ? options->env : ew_env_default();
    if (!store || !ret_jobs)
        return fail(problem, problem_size, EW_EINVAL, "which store?");
    ew_jobs *jobs = ew__zalloc(env, sizeof *jobs);
    if (!jobs)
        return fail(problem, problem_size, EW_ENOMEM, ew_err_text(EW_ENOMEM));
    jobs->env = jobs->requests.env = env;
    ew__arena_init(&jobs->arena, env, NULL, 0);
    pthread_mutex_init(&jobs->lock, NULL);
    ew__cond_init(&jobs->changed);
    ew__rng_init(&jobs->rng, env);
    (void)fail(problem, problem_size, EW_OK, "");
    ew_err err = read_options(jobs, options, problem, problem_size);
    if (err == EW_OK)
        err = ew__jobs_open(env, store, &jobs->requests.store, problem, problem_size);
    if (err != EW_OK) {
        destroy(jobs);
        return problem && problem_size && *problem ? err : fail(problem, problem_size, err, ew_err_text(err));
    }
    *ret_jobs = jobs;
    return EW_OK;
}

ew_jobs *ew__jobs_service_free(ew_jobs *jobs) {
    if (!jobs)
        return NULL;
    if (jobs->watching)
        jobs->requests.store->ops->watch(jobs->requests.store, &jobs->watcher, false);
    destroy(jobs);
    return NULL;
}

/* ---- correlation: labels out of the params ---- */

/* The value at a dotted path, "customer.id"; empty: there is none. */
static ew_str value_at(ew_str params, ew_str path) {
    if (ew__str_has_prefix(path, EW_STR("params.")))
        path = ew__str(path.ptr + 7, path.len - 7);
    while (path.ptr && path.len && params.len) {
        const char *dot = memchr(path.ptr, '.', path.len);
        size_t n = dot ? (size_t)(dot - path.ptr) : path.len;
        params =
            ew_json_typeof(params) == EW_JSON_OBJECT ? ew_json_member(params, ew__str(path.ptr, n)) : ew__str(NULL, 0);
        path = ew__str(path.ptr + n + (dot != NULL), path.len - n - (dot != NULL));
    }
    return params;
}

/* A JSON string without quotes and escapes, in the arena where it has some. Empty: none, or no memory. */
static ew_str plain(ew__arena *arena, ew_str value) {
    size_t n = 0;
    if (!value.ptr || ew_json_typeof(value) != EW_JSON_STRING)
        return ew__str(NULL, 0);
    if (!memchr(value.ptr, '\\', value.len))
        return ew__str(value.ptr + 1, value.len - 2);
    char *text = ew__arena_alloc(arena, value.len);
    return text && ew_json_string(value, text, value.len, &n) == EW_OK ? ew__str(text, n) : ew__str(NULL, 0);
}

/* A scalar as text: strings, numbers and booleans. */
static ew_str scalar(ew__arena *arena, ew_str value) {
    ew_json_type type = ew_json_typeof(value);
    return type == EW_JSON_NUMBER || type == EW_JSON_BOOL ? value : plain(arena, value);
}

/* At most so many bytes, and no half of a character. */
static ew_str cut(ew_str text, size_t max) {
    if (text.len <= max)
        return text;
    while (max > 0 && ((unsigned char)text.ptr[max] & 0xc0) == 0x80)
        max--;
    return ew__str(text.ptr, max);
}

static ew_err make_labels(const ew_jobs *jobs, ew__job *job, ew__arena *arena) {
    ew_json_iter it = {.offset_ = 0};
    unsigned n = 0;
    ew__buf out;
    ew__buf_init(&out, jobs->env, SIZE_MAX / 2);
    while (n < LABELS_MAX && ew_json_next(jobs->mappings, &it)) {
        ew_str label = ew__str_trim(plain(arena, it.key));
        if (label.len == 0 || label.len > LABEL_MAX)
            continue;
        ew_str value = job->trace.len ? plain(arena, ew_json_member(job->trace, label)) : ew__str(NULL, 0);
        if (value.len == 0)
            value = scalar(arena, value_at(job->params, plain(arena, it.value)));
        if (value.len == 0)
            continue;
        (void)ew__json_format(&out, "%s%q:%q", n++ ? "," : "{", label, cut(value, LABEL_VALUE_MAX));
    }
    if (n)
        (void)ew__buf_char(&out, '}');
    ew_err err = out.err ? out.err : ew__arena_str(arena, ew__buf_view(&out), &job->correlation);
    ew__buf_done(&out);
    return err;
}

/* ---- enqueueing ---- */

/* At most one of the three, with its time. NULL, or why not. */
static const char *read_dedup(const ew_jobs *jobs, const ew_job_options *options, int64_t deferral,
                              ew__op_enqueue *ret) {
    if ((options->unique_key.len != 0) + (options->debounce_key.len != 0) + (options->rate_limit_key.len != 0) > 1)
        return "a job has a unique key, a debounce key or a rate limit key, and not two of them";
    if (options->unique_key.len) {
        ret->dedup = EW__DEDUP_UNIQUE;
        ret->key = options->unique_key;
        ret->key_ttl_ms = or_usual(options->unique_ttl_ms, jobs->unique_ttl_ms);
        if (ret->key_ttl_ms < deferral) /* else it could be enqueued again before it has run */
            ret->key_ttl_ms = deferral;
    } else if (options->debounce_key.len) {
        ret->dedup = EW__DEDUP_DEBOUNCE;
        ret->key = options->debounce_key;
        ret->key_ttl_ms = or_usual(options->debounce_ms, 0);
    } else if (options->rate_limit_key.len) {
        ret->dedup = EW__DEDUP_RATE;
        ret->key = options->rate_limit_key;
        ret->key_ttl_ms = or_usual(options->rate_limit_ms, 0);
    }
    if (ret->dedup == EW__DEDUP_NONE)
        return NULL;
    if (ret->key_ttl_ms <= 0)
        return ret->dedup == EW__DEDUP_RATE ? "a rate limit key wants its window" : "a debounce key wants its window";
    if (ew__str_trim(ret->key).len == 0 || ret->key.len > EW__JOB_NAME_MAX)
        return "a key cannot be blank, nor have more than 512 bytes";
    return ret->key_ttl_ms > EW__JOB_TTL_MAX_MS ? "the key would live for more than ten years" : NULL;
}

static int64_t later(int64_t at, uint64_t by) {
    return by > (uint64_t)EW__JOB_TTL_MAX_MS ? INT64_MAX : at + (int64_t)by;
}

static const char *read_times(const ew_jobs *jobs, const ew_job_options *options, ew__op_enqueue *ret) {
    int64_t now = (int64_t)jobs->env->wall_ms(jobs->env->ud);
    ew__job *job = &ret->job;
    job->enqueued_at = options->enqueued_at_ms ? options->enqueued_at_ms : now;
    job->run_at = options->run_at_ms ? options->run_at_ms : later(job->enqueued_at, options->delay_ms);
    job->max_retries = options->max_retries ? *options->max_retries : jobs->max_retries;
    job->timeout_ms = or_usual(options->timeout_ms, jobs->timeout_ms);
    job->result_ttl_ms = options->result_ttl_ms ? or_usual(*options->result_ttl_ms, 0) : jobs->result_ttl_ms;
    if (job->enqueued_at < 0 || job->run_at < 0)
        return "a time before 1970";
    if (job->run_at == INT64_MAX || job->result_ttl_ms > EW__JOB_TTL_MAX_MS)
        return "at most ten years";
    const char *problem = read_dedup(jobs, options, job->run_at - now, ret);
    if (!problem && ret->dedup == EW__DEDUP_DEBOUNCE)
        job->run_at = job->enqueued_at + ret->key_ttl_ms;
    return problem;
}

static ew_err make_id(ew_jobs *jobs, ew__arena *arena, ew_str *ret) {
    char id[EW__UUID_LEN];
    pthread_mutex_lock(&jobs->lock);
    ew__uuid_write(&jobs->rng, id);
    pthread_mutex_unlock(&jobs->lock);
    return ew__arena_str(arena, ew__str(id, sizeof id), ret);
}

/* Reads the options of the job itself. Returns NULL, or why they are invalid. */
static const char *read_job(const ew_jobs *jobs, const ew_job_options *options, ew__job *job) {
    job->function = options->function;
    job->queue = options->queue.len ? ew__queue_name(options->queue) : jobs->queue;
    job->params = options->params.len ? options->params : EW_STR("{}");
    job->id = options->id;
    job->trace = options->trace;
    job->correlation = options->correlation;
    if (!ew__str_is(jobs->dlq, EW_STR(EW__JOB_DLQ)))
        job->dlq = jobs->dlq;
    job->status = EW__JOB_PENDING;
    if (job->trace.len && !is_map_of_strings(job->trace))
        return "trace must be a JSON object of strings";
    if (job->correlation.len && !is_map_of_strings(job->correlation))
        return "correlation must be a JSON object of strings";
    return NULL;
}

ew_err ew__jobs_prepare(ew_jobs *jobs, const ew_job_options *options, ew__store_request *op, char *problem,
                        size_t problem_size) {
    ew__op_enqueue *enqueue = &op->u.enqueue;
    ew__job *job = &enqueue->job;
    *enqueue = (ew__op_enqueue){.dedup = EW__DEDUP_NONE};
    op->kind = EW__OP_ENQUEUE;
    const char *why = read_job(jobs, options, job);
    if (!why)
        why = read_times(jobs, options, enqueue);
    ew_err err = EW_OK;
    if (!why && job->id.len == 0)
        err = make_id(jobs, op->arena, &job->id);
    if (!why && err == EW_OK)
        why = ew__job_problem(job);
    if (!why && jobs->requests.store->objects_only && ew_json_typeof(job->params) != EW_JSON_OBJECT)
        why = "params must be a JSON object: this store keeps no others";
    if (why)
        return fail(problem, problem_size, EW_EINVAL, why);
    if (err == EW_OK)
        err = ew__job_copy(job, op->arena, job);
    if (err == EW_OK)
        err = ew__arena_str(op->arena, enqueue->key, &enqueue->key);
    if (err == EW_OK && job->correlation.len == 0 && jobs->mappings.len)
        err = make_labels(jobs, job, op->arena);
    return err == EW_OK ? EW_OK : fail(problem, problem_size, EW_ENOMEM, ew_err_text(EW_ENOMEM));
}

static ew_err enqueued(const ew__store_request *op, ew_answer *answer) {
    if (op->err != EW_OK) {
        note_problem(answer, op->err, op->problem);
        return op->err;
    }
    if (op->u.enqueue.ret == EW__ENQUEUED_DUPLICATE) {
        note_problem(answer, EW_EEXISTS, "there is a job of this id already");
        return EW_EEXISTS;
    }
    ew__jobs_write_enqueued(op, &answer->json);
    return EW_OK;
}

ew_err ew__jobs_enqueue(ew_jobs *jobs, const ew_job_options *options, ew_answer **ret) {
    ew__jobs_request request;
    ew_err err = ew__jobs_request_begin(&request, jobs, EW__OP_ENQUEUE);
    if (err != EW_OK)
        return err;
    err = ew__jobs_prepare(jobs, options, &request.op, request.answer->problem, sizeof request.answer->problem);
    if (err == EW_OK && (err = ew__jobs_request_run(&request)) == EW_OK)
        err = enqueued(&request.op, request.answer);
    return ew__jobs_request_end(&request, err, ret);
}

/* ---- without waiting ---- */

typedef struct pending {
    ew__jobs_request request;
    ew_jobs_done done;
    void *ud;
} pending;

static void tell(ew__store_request *op) {
    pending *p = ew__container_of(op, pending, request.op);
    const ew_env *env = p->request.jobs->env;
    ew_jobs_done done = p->done;
    void *ud = p->ud;
    ew_answer *answer = NULL;
    ew_err err = ew__jobs_request_end(&p->request, enqueued(op, p->request.answer), &answer);
    ew__free(env, p, sizeof *p);
    done(err, answer, ud);
}

/* On an error of this function itself done is never called. */
ew_err ew__jobs_enqueue_async(ew_jobs *jobs, const ew_job_options *options, ew_jobs_done done, void *ud) {
    pending *p = ew__alloc(jobs->env, sizeof *p);
    if (!p)
        return EW_ENOMEM;
    ew_err err = ew__jobs_request_begin(&p->request, jobs, EW__OP_ENQUEUE);
    if (err == EW_OK) {
        err = ew__jobs_prepare(jobs, options, &p->request.op, NULL, 0);
        if (err != EW_OK)
            (void)ew__jobs_request_end(&p->request, err, NULL);
    }
    if (err != EW_OK) {
        ew__free(jobs->env, p, sizeof *p);
        return err;
    }
    p->done = done;
    p->ud = ud;
    ew__store_request_submit(&p->request.op, tell);
    return EW_OK;
}
