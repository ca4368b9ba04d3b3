/*
 * jobs/job.c: see job.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/job.h"

#include "base/when.h"
#include "json/json.h"
#include "json/text.h"

static const ew_str names[EW__JOB_STATUSES] = {{"PENDING", 7},   {"ACTIVE", 6}, {"RETRYING", 8},
                                               {"COMPLETED", 9}, {"FAILED", 6}, {"CANCELLED", 9}};

ew_str ew__job_status_name(ew__job_status status) {
    return (unsigned)status < EW__JOB_STATUSES ? names[status] : EW_STR("UNKNOWN");
}

bool ew__job_status_parse(ew_str name, ew__job_status *ret) {
    for (unsigned i = 0; i < EW__JOB_STATUSES; i++) {
        if (ew__str_is(name, names[i])) {
            *ret = (ew__job_status)i;
            return true;
        }
    }
    return false;
}

uint32_t ew__job_attempts(const ew__job *job) {
    bool counts = job->status == EW__JOB_ACTIVE || job->status == EW__JOB_COMPLETED;
    return job->retries + (counts ? 1 : 0);
}

/* ---- as JSON ---- */

static void put_name(ew__buf *out, const char *name) {
    (void)ew__buf_char(out, ',');
    (void)ew__json_write_str(out, ew_str_from(name), false);
    (void)ew__buf_char(out, ':');
}

static void put_text(ew__buf *out, const char *name, ew_str text) {
    put_name(out, name);
    if (text.len == 0)
        (void)ew__buf_cstr(out, "null");
    else
        (void)ew__json_write_str(out, text, false);
}

/* What is meant to be JSON. Others may have written it (Redis): what is none is shown as the text that it is. */
static void put_json(ew__buf *out, const char *name, ew_str json) {
    if (json.len == 0 || ew__json_validate(json, NULL) != EW_OK) {
        put_text(out, name, json);
        return;
    }
    put_name(out, name);
    if (ew__json_has_newline(json))
        (void)ew__json_minify(out, json);
    else
        (void)ew__buf_str(out, json);
}

static void put_number(ew__buf *out, const char *name, uint64_t number) {
    put_name(out, name);
    (void)ew__buf_u64(out, number);
}

/* Seconds; the thousandths only where there are any. */
static void put_seconds(ew__buf *out, const char *name, int64_t ms) {
    uint64_t number = ms > 0 ? (uint64_t)ms : 0;
    uint32_t rest = (uint32_t)(number % 1000);
    put_number(out, name, number / 1000);
    if (rest == 0)
        return;
    char digits[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10), (char)('0' + rest % 10)};
    size_t n = digits[3] != '0' ? 4 : digits[2] != '0' ? 3 : 2;
    (void)ew__buf_add(out, digits, n);
}

static void put_time(ew__buf *out, const char *name, int64_t ms) {
    char text[EW__WHEN_LEN];
    if (ms > 0)
        ew__when_write((uint64_t)ms, text);
    put_text(out, name, ew__str(text, ms > 0 ? sizeof text : 0));
}

void ew__job_write(const ew__job *job, ew__buf *out) {
    (void)ew__buf_cstr(out, "{\"id\":");
    (void)ew__json_write_str(out, job->id, false);
    put_text(out, "function_name", job->function);
    put_text(out, "queue_name", job->queue);
    put_text(out, "status", ew__job_status_name(job->status));
    put_json(out, "params", job->params);
    put_json(out, "result", job->result);
    put_text(out, "last_error", job->last_error);
    put_json(out, "error", job->error);
    put_number(out, "attempts", ew__job_attempts(job));
    put_number(out, "max_retries", job->max_retries);
    put_seconds(out, "timeout_seconds", job->timeout_ms);
    put_seconds(out, "result_ttl_seconds", job->result_ttl_ms);
    put_text(out, "worker_id", job->worker);
    put_number(out, "lost_workers", job->lost);
    put_number(out, "chunks", job->chunks);
    put_text(out, "unique_key", job->unique_key);
    put_json(out, "trace_context", job->trace);
    put_json(out, "correlation_context", job->correlation);
    put_time(out, "enqueue_time", job->enqueued_at);
    put_time(out, "next_scheduled_run_time", job->run_at);
    put_time(out, "start_time", job->started_at);
    put_time(out, "completion_time", job->ended_at);
    (void)ew__buf_char(out, '}');
}

/* ---- copies ---- */

ew_err ew__job_copy(const ew__job *job, ew__arena *arena, ew__job *ret) {
    ew__job copy = *job;
    ew_str *texts[] = {&copy.id,    &copy.function, &copy.queue, &copy.params,      &copy.result, &copy.last_error,
                       &copy.error, &copy.worker,   &copy.trace, &copy.correlation, &copy.dlq,    &copy.unique_key};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ew_err err = ew__arena_str(arena, *texts[i], texts[i]);
        if (err != EW_OK)
            return err;
    }
    *ret = copy;
    return EW_OK;
}

/* ---- names ---- */

static ew_str without(ew_str text, ew_str prefix) {
    return ew__str_has_prefix(text, prefix) ? ew__str(text.ptr + prefix.len, text.len - prefix.len) : text;
}

ew_str ew__queue_name(ew_str text) { return without(text, EW_STR("rrq:queue:")); }
ew_str ew__dlq_name(ew_str text) { return without(text, EW_STR("rrq:dlq:")); }

/* ---- what a job may be ---- */

typedef struct name_words {
    const char *empty, *too_long, *control, *no_utf8;
} name_words;

#define NAME_WORDS(name)                                                                                               \
    { name " cannot be empty", name " is too long", name " must not hold control bytes", name " must be UTF-8" }

static bool is_blank(ew_str text) {
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != ' ' && text.ptr[i] != '\t' && text.ptr[i] != '\n' && text.ptr[i] != '\r')
            return false;
    }
    return true;
}

static const char *name_problem(ew_str text, size_t max, const name_words *words) {
    if (is_blank(text))
        return words->empty;
    if (text.len > max)
        return words->too_long;
    const char *at = text.ptr, *end = text.ptr + text.len;
    while (at < end) {
        uint32_t point;
        size_t n = ew__json_utf8(at, end, &point);
        if (n == 0)
            return words->no_utf8;
        if (point < 0x20 || point == 0x7f)
            return words->control;
        at += n;
    }
    return NULL;
}

static const char *times_problem(const ew__job *job) {
    if (job->timeout_ms <= 0)
        return "job_timeout_seconds must be positive";
    if (job->timeout_ms > EW__JOB_TIMEOUT_MAX_MS)
        return "job_timeout_seconds must be a year at most";
    if (job->result_ttl_ms < 0)
        return "result_ttl_seconds must not be negative";
    if (job->result_ttl_ms > EW__JOB_TTL_MAX_MS)
        return "result_ttl_seconds must be ten years at most";
    return NULL;
}

static bool is_object_or_none(ew_str json) {
    return json.len == 0 || (ew__json_validate(json, NULL) == EW_OK && ew_json_typeof(json) == EW_JSON_OBJECT);
}

const char *ew__job_problem(const ew__job *job) {
    static const name_words function = NAME_WORDS("function_name"), queue = NAME_WORDS("queue_name"),
                            id = NAME_WORDS("job_id"), unique = NAME_WORDS("unique_key"), dlq = NAME_WORDS("dlq_name");
    const char *problem = name_problem(job->function, EW__JOB_NAME_MAX, &function);
    if (!problem)
        problem = name_problem(job->queue, EW__JOB_NAME_MAX, &queue);
    if (!problem)
        problem = name_problem(job->id, EW__JOB_ID_MAX, &id);
    if (!problem && job->unique_key.len)
        problem = name_problem(job->unique_key, EW__JOB_NAME_MAX, &unique);
    if (!problem && job->dlq.len)
        problem = name_problem(job->dlq, EW__JOB_NAME_MAX, &dlq);
    if (!problem)
        problem = times_problem(job);
    if (problem)
        return problem;
    if (ew__json_validate(job->params, NULL) != EW_OK)
        return "params must be JSON";
    if (!is_object_or_none(job->trace))
        return "trace_context must be a JSON object";
    return is_object_or_none(job->correlation) ? NULL : "correlation_context must be a JSON object";
}
