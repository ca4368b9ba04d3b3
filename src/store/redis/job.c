/*
 * store/redis/job.c: a job and its hash in Redis. See redis.h.
 *
 * Read as RRQ's worker reads: what is missing or makes no sense has its usual value. With one difference: params that
 * do not parse are not taken as {}, but the job is not run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/when.h"
#include "json/json.h"
#include "store/redis/redis.h"

typedef enum field {
    F_FUNCTION_NAME,
    F_JOB_PARAMS,
    F_ENQUEUE_TIME,
    F_STATUS,
    F_CURRENT_RETRIES,
    F_MAX_RETRIES,
    F_NEXT_TIME,
    F_TIMEOUT,
    F_RESULT_TTL,
    F_QUEUE_NAME,
    F_RESULT,
    F_TRACE,
    F_CORRELATION,
    F_UNIQUE_KEY,
    F_START_TIME,
    F_WORKER_ID,
    F_COMPLETION_TIME,
    F_LAST_ERROR,
    F_DLQ_NAME,
    F_EW_EPOCH,
    F_EW_WORKER,
    F_EW_LOST,
    F_EW_CANCEL,
    F_EW_ERROR,
    F_EW_DLQ,
    F_EW_CHUNKS,
    F_EW_TIMEOUT_MS,
    F_EW_TTL_MS,
    FIELDS
} field;

static const char *const field_names[FIELDS] = {
    [F_FUNCTION_NAME] = "function_name",
    [F_JOB_PARAMS] = "job_params",
    [F_ENQUEUE_TIME] = "enqueue_time",
    [F_STATUS] = "status",
    [F_CURRENT_RETRIES] = "current_retries",
    [F_MAX_RETRIES] = "max_retries",
    [F_NEXT_TIME] = "next_scheduled_run_time",
    [F_TIMEOUT] = "job_timeout_seconds",
    [F_RESULT_TTL] = "result_ttl_seconds",
    [F_QUEUE_NAME] = "queue_name",
    [F_RESULT] = "result",
    [F_TRACE] = "trace_context",
    [F_CORRELATION] = "correlation_context",
    [F_UNIQUE_KEY] = "job_unique_key",
    [F_START_TIME] = "start_time",
    [F_WORKER_ID] = "worker_id",
    [F_COMPLETION_TIME] = "completion_time",
    [F_LAST_ERROR] = "last_error",
    [F_DLQ_NAME] = "dlq_name",
    [F_EW_EPOCH] = "ew_epoch",
    [F_EW_WORKER] = "ew_worker",
    [F_EW_LOST] = "ew_lost",
    [F_EW_CANCEL] = "ew_cancel",
    [F_EW_ERROR] = "ew_error",
    [F_EW_DLQ] = "ew_dlq",
    [F_EW_CHUNKS] = "ew_chunks",
    [F_EW_TIMEOUT_MS] = "ew_timeout_ms",
    [F_EW_TTL_MS] = "ew_result_ttl_ms",
};

/* ---- reading ---- */

static void find_fields(const redisReply *hash, ew_str values[FIELDS]) {
    memset(values, 0, FIELDS * sizeof *values);
    for (size_t i = 0; i + 1 < ew__redis_n(hash); i += 2) {
        ew_str name = ew__redis_str(hash->element[i]);
        for (size_t f = 0; f < FIELDS; f++) {
            if (ew__str_is(name, ew_str_from(field_names[f]))) {
                values[f] = ew__redis_str(hash->element[i + 1]);
                break;
            }
        }
    }
}

static int64_t when_of(ew_str text) {
    int64_t ms;
    return ew__when_parse(text, &ms) && ms > 0 ? ms : 0;
}

static uint32_t small_of(ew_str text, uint32_t fallback) {
    int64_t number;
    if (!ew__redis_int_parse(text, &number) || number < 0) {
        return fallback;
    }
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static uint64_t count_of(ew_str text) {
    uint64_t number;
    return ew__u64_parse(text, &number) ? number : 0;
}

/* Seconds of RRQ's field, at most `max` ms; ours, which is finer, if it says the same. Not positive stays so. */
static int64_t span_of(ew_str seconds, ew_str fine, int64_t fallback, int64_t max) {
    int64_t number, ms;
    if (!ew__redis_int_parse(seconds, &number)) {
        return fallback;
    }
    if (ew__redis_int_parse(fine, &ms) && ms > 0 && ms <= max && (ms + 999) / 1000 == number) {
        return ms;
    }
    return number <= 0 ? number : number < max / 1000 ? number * 1000 : max;
}

/* A JSON object of texts, or nothing. */
static ew_str texts_of(ew_str json) {
    ew_json_iter it = {0};
    json = ew__str_trim(json);
    if (ew_json_check(json, NULL) != EW_OK || ew_json_typeof(json) != EW_JSON_OBJECT) {
        return ew__str(NULL, 0);
    }
    while (ew_json_next(json, &it)) {
        if (ew_json_typeof(it.value) != EW_JSON_STRING) {
            return ew__str(NULL, 0);
        }
    }
    return json;
}

static ew_str object_of(ew_str json) {
    return json.len > 0 && ew_json_check(json, NULL) == EW_OK && ew_json_typeof(json) == EW_JSON_OBJECT
               ? json
               : ew__str(NULL, 0);
}

/* RRQ writes "null" until there is a result; of a completed job that is one. */
static ew_str result_of(ew_str text, ew__job_status status) {
    if (status != EW__JOB_COMPLETED) {
        return ew__str(NULL, 0);
    }
    return text.len > 0 && ew_json_check(text, NULL) == EW_OK ? text : EW_STR("null");
}

static ew_str first_of(ew_str a, ew_str b) { return a.len > 0 ? a : b; }

static const char *why_not(const ew_str values[FIELDS], const ew__job *job) {
    int64_t ms;
    ew_str params = values[F_JOB_PARAMS];
    if (job->function.len == 0 || !ew__when_parse(values[F_ENQUEUE_TIME], &ms)) {
        return "Failed to parse claimed job definition. Moved to DLQ.";
    }
    if (params.ptr != NULL && (ew_json_check(params, NULL) != EW_OK || ew_json_typeof(params) != EW_JSON_OBJECT)) {
        return "job_params is not a JSON object. Moved to DLQ.";
    }
    return job->timeout_ms <= 0 ? "Invalid job timeout. Must be positive." : NULL;
}

static void read_texts(const ew_str values[FIELDS], ew__job *job) {
    job->function = values[F_FUNCTION_NAME];
    job->queue = ew__queue_name(values[F_QUEUE_NAME]);
    job->params = values[F_JOB_PARAMS].ptr != NULL ? values[F_JOB_PARAMS] : EW_STR("{}");
    job->result = result_of(values[F_RESULT], job->status);
    job->last_error = values[F_LAST_ERROR];
    job->error = object_of(values[F_EW_ERROR]);
    job->worker = first_of(values[F_WORKER_ID], values[F_EW_WORKER]);
    job->trace = texts_of(values[F_TRACE]);
    job->correlation = texts_of(values[F_CORRELATION]);
    job->unique_key = values[F_UNIQUE_KEY];
    job->dlq = ew__dlq_name(first_of(values[F_EW_DLQ], values[F_DLQ_NAME]));
}

static void read_numbers(const ew_str values[FIELDS], ew__job *job) {
    job->enqueued_at = when_of(values[F_ENQUEUE_TIME]);
    job->run_at = when_of(values[F_NEXT_TIME]);
    job->started_at = when_of(values[F_START_TIME]);
    job->ended_at = ew__job_is_final(job->status) ? when_of(values[F_COMPLETION_TIME]) : 0;
    job->timeout_ms = span_of(values[F_TIMEOUT], values[F_EW_TIMEOUT_MS], EW__RRQ_TIMEOUT_MS, EW__JOB_TIMEOUT_MAX_MS);
    job->result_ttl_ms = span_of(values[F_RESULT_TTL], values[F_EW_TTL_MS], EW__RRQ_TTL_MS, EW__JOB_TTL_MAX_MS);
    job->result_ttl_ms = job->result_ttl_ms > 0 ? job->result_ttl_ms : 0;
    job->max_retries = small_of(values[F_MAX_RETRIES], EW__RRQ_MAX_RETRIES);
    job->retries = small_of(values[F_CURRENT_RETRIES], 0);
    job->lost = small_of(values[F_EW_LOST], 0);
    job->epoch = count_of(values[F_EW_EPOCH]);
    job->chunks = count_of(values[F_EW_CHUNKS]);
    job->cancel = ew__str_is(values[F_EW_CANCEL], EW_STR("1"));
}

ew_err ew__redis_read_job(const redisReply *hash, ew_str id, ew__arena *arena, ew__job *ret, const char **ret_why) {
    ew_str values[FIELDS];
    ew__job job = {.id = id};
    const char *why = NULL;
    find_fields(hash, values);
    bool known = ew__job_status_parse(values[F_STATUS], &job.status);
    if (!known && ret_why == NULL) {
        return EW_EIO;
    }
    read_texts(values, &job);
    read_numbers(values, &job);
    if (ret_why == NULL) {
        job.queue = first_of(job.queue, EW_STR(EW__JOB_QUEUE));
    } else {
        why = why_not(values, &job);
        *ret_why = known || why != NULL ? why : "Failed to parse claimed job definition. Moved to DLQ.";
    }
    job.timeout_ms = job.timeout_ms > 0 ? job.timeout_ms : EW__RRQ_TIMEOUT_MS;
    return ew__job_copy(&job, arena, ret);
}

bool ew__redis_score(ew_str text, int64_t *ret_ms) {
    double number = -1;
    if (ew_json_check(text, NULL) != EW_OK || ew_json_double(text, &number) != EW_OK || number < 0 || number >= 9e15) {
        return false;
    }
    *ret_ms = (int64_t)number;
    *ret_ms += (double)*ret_ms < number;
    return true;
}

/* ---- writing ---- */

static void write_text(ew__redis_link *link, field f, ew_str text) {
    ew__redis_word(link, field_names[f]);
    ew__redis_text(link, text);
}

static void write_number(ew__redis_link *link, field f, int64_t number) {
    ew__redis_word(link, field_names[f]);
    ew__redis_int(link, number);
}

static void write_when(ew__redis_link *link, field f, int64_t ms) {
    ew__redis_word(link, field_names[f]);
    ew__redis_when(link, ms);
}

static void write_optional(ew__redis_link *link, field f, ew_str text) {
    if (text.len > 0) {
        write_text(link, f, text);
    }
}

/* RRQ's field has whole seconds, rounded up; the rest is in ours. */
static void write_span(ew__redis_link *link, field seconds, field fine, int64_t ms) {
    write_number(link, seconds, ms / 1000 + (ms % 1000 != 0));
    if (ms % 1000 != 0) {
        write_number(link, fine, ms);
    }
}

void ew__redis_write_job(ew__redis_link *link, const ew__job *job) {
    ew__redis_word(link, "id");
    ew__redis_text(link, job->id);
    write_text(link, F_FUNCTION_NAME, job->function);
    write_text(link, F_JOB_PARAMS, job->params.len > 0 ? job->params : EW_STR("{}"));
    write_when(link, F_ENQUEUE_TIME, job->enqueued_at);
    write_text(link, F_STATUS, EW_STR("PENDING"));
    write_number(link, F_CURRENT_RETRIES, 0);
    write_when(link, F_NEXT_TIME, job->run_at);
    write_number(link, F_MAX_RETRIES, job->max_retries);
    write_span(link, F_TIMEOUT, F_EW_TIMEOUT_MS, job->timeout_ms);
    write_span(link, F_RESULT_TTL, F_EW_TTL_MS, job->result_ttl_ms);
    ew__redis_word(link, field_names[F_QUEUE_NAME]);
    ew__redis_key(link, EW__RRQ_QUEUE, job->queue);
    write_text(link, F_RESULT, EW_STR("null"));
    write_optional(link, F_TRACE, job->trace);
    write_optional(link, F_CORRELATION, job->correlation);
    write_optional(link, F_UNIQUE_KEY, job->unique_key);
    write_optional(link, F_DLQ_NAME, job->dlq);
}
