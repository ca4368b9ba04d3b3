/*
 * compat/rrq/producer/enqueue.c: see enqueue.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "compat/rrq/producer/enqueue.h"
#include "jobs/job.h"
#include <limits.h>

static const char what[] = "enqueue request";

enum { MODE, FUNCTION, PARAMS, OPTIONS, MEMBERS };

static const ew__member members[MEMBERS] = {
    [MODE] = {"mode", EW__MEMBER_TEXT, false},
    [FUNCTION] = {"function_name", EW__MEMBER_TEXT, true},
    [PARAMS] = {"params", EW__MEMBER_OBJECT, false},
    [OPTIONS] = {"options", EW__MEMBER_OBJECT, false},
};

enum {
    QUEUE,
    JOB_ID,
    UNIQUE_KEY,
    UNIQUE_TTL,
    RETRIES,
    TIMEOUT,
    RESULT_TTL,
    TRACE,
    DEFER_BY,
    DEFER_UNTIL,
    ENQUEUE_TIME,
    RATE_KEY,
    RATE_SECONDS,
    DEBOUNCE_KEY,
    DEBOUNCE_SECONDS,
    OPTION_MEMBERS
};

static const ew__member option_members[OPTION_MEMBERS] = {
    [QUEUE] = {"queue_name", EW__MEMBER_TEXT, false},
    [JOB_ID] = {"job_id", EW__MEMBER_TEXT, false},
    [UNIQUE_KEY] = {"unique_key", EW__MEMBER_TEXT, false},
    [UNIQUE_TTL] = {"unique_ttl_seconds", EW__MEMBER_INT, false},
    [RETRIES] = {"max_retries", EW__MEMBER_INT, false},
    [TIMEOUT] = {"job_timeout_seconds", EW__MEMBER_INT, false},
    [RESULT_TTL] = {"result_ttl_seconds", EW__MEMBER_INT, false},
    [TRACE] = {"trace_context", EW__MEMBER_STRINGS, false},
    [DEFER_BY] = {"defer_by_seconds", EW__MEMBER_SECONDS, false},
    [DEFER_UNTIL] = {"defer_until", EW__MEMBER_TEXT, false},
    [ENQUEUE_TIME] = {"enqueue_time", EW__MEMBER_TEXT, false},
    [RATE_KEY] = {"rate_limit_key", EW__MEMBER_TEXT, false},
    [RATE_SECONDS] = {"rate_limit_seconds", EW__MEMBER_SECONDS, false},
    [DEBOUNCE_KEY] = {"debounce_key", EW__MEMBER_TEXT, false},
    [DEBOUNCE_SECONDS] = {"debounce_seconds", EW__MEMBER_SECONDS, false},
};

/* A request while it is read. */
typedef struct reading {
    const ew__producer_config *config;
    const ew__member_value *top, *values;
    int64_t now;
    ew__arena *arena;
    ew__enqueue *job;
    ew__trouble *trouble;
} reading;

/* ---- what kind of enqueue it is ---- */

typedef enum mode { MODE_PLAIN, MODE_RATE, MODE_DEBOUNCE } mode;

static bool read_mode(const reading *r, mode *ret) {
    static const struct {
        const char *name;
        mode mode;
    } modes[] = {{"enqueue", MODE_PLAIN},
                 {"unique", MODE_PLAIN},
                 {"deferred", MODE_PLAIN},
                 {"rate_limit", MODE_RATE},
                 {"debounce", MODE_DEBOUNCE}};
    if (!r->top[MODE].set) { /* then the options tell */
        bool rate = r->values[RATE_KEY].set || r->values[RATE_SECONDS].set;
        bool debounce = r->values[DEBOUNCE_KEY].set || r->values[DEBOUNCE_SECONDS].set;
        *ret = rate ? MODE_RATE : debounce ? MODE_DEBOUNCE : MODE_PLAIN;
        return rate && debounce ? ew__trouble_set(r->trouble, "rate_limit and debounce options are mutually exclusive")
                                : true;
    }
    ew_str name = r->top[MODE].text;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (ew__str_is(name, ew_str_from(modes[i].name))) {
            *ret = modes[i].mode;
            return true;
        }
    }
    return ew__trouble_set(r->trouble,
                           "invalid %s: unknown variant `%.*s`, expected one of `enqueue`, `unique`, `rate_limit`, "
                           "`debounce`, `deferred`",
                           what, name.len < 100 ? (int)name.len : 100, name.ptr);
}

/* ---- checks ---- */

static bool not_blank(const reading *r, ew_str text, const char *name) {
    return ew__request_is_blank(text) ? ew__trouble_set(r->trouble, "%s cannot be empty", name) : true;
}

/* The key and the window of a rate limit or a debounce. */
static bool read_window(const reading *r, int key, int seconds, ew_str *ret_key, uint64_t *ret_ms) {
    int64_t ms = 0;
    if (!r->values[key].set) {
        return ew__trouble_set(r->trouble, "%s is required", option_members[key].name);
    }
    if (!not_blank(r, r->values[key].text, option_members[key].name)) {
        return false;
    }
    if (!r->values[seconds].set) {
        return ew__trouble_set(r->trouble, "%s is required", option_members[seconds].name);
    }
    if (!ew__request_ms(&r->values[seconds], option_members[seconds].name, true, &ms, r->trouble)) {
        return false;
    }
    *ret_key = r->values[key].text;
    *ret_ms = (uint64_t)ms;
    return true;
}

static int64_t option_or(const reading *r, int option, int64_t usual) {
    return r->values[option].set ? r->values[option].integer : usual;
}

static bool read_names(const reading *r) {
    ew_job_options *options = &r->job->options;
    options->function = r->top[FUNCTION].text;
    options->queue = r->values[QUEUE].set ? r->values[QUEUE].text : r->config->queue;
    options->id = r->values[JOB_ID].text;
    return not_blank(r, options->function, "function_name") && not_blank(r, options->queue, "queue_name") &&
           (!r->values[JOB_ID].set || options->id.len > 0 || not_blank(r, options->id, "job_id"));
}

static bool read_limits(const reading *r) {
    ew__enqueue *job = r->job;
    int64_t retries = option_or(r, RETRIES, r->config->max_retries);
    int64_t timeout = option_or(r, TIMEOUT, r->config->job_timeout_seconds);
    int64_t ttl = option_or(r, RESULT_TTL, r->config->result_ttl_seconds);
    if (timeout <= 0) {
        return ew__trouble_set(r->trouble, "job_timeout_seconds must be positive");
    }
    if (timeout > EW__JOB_TIMEOUT_MAX_MS / 1000) { /* the lock of such a job would stop RRQ's workers for good */
        return ew__trouble_set(r->trouble, "job_timeout_seconds is too large");
    }
    job->max_retries = retries < 0 ? 0 : retries > INT_MAX ? INT_MAX : (unsigned)retries;
    job->options.max_retries = &job->max_retries;
    job->options.timeout_ms = (uint64_t)timeout * 1000;
    ttl = ttl < 0 ? 0 : ttl; /* RRQ leaves such a job alone: for ever, too */
    job->result_ttl_ms = ttl > EW__JOB_TTL_MAX_MS / 1000 ? (uint64_t)EW__JOB_TTL_MAX_MS : (uint64_t)ttl * 1000;
    job->options.result_ttl_ms = &job->result_ttl_ms;
    return true;
}

static bool read_times(const reading *r) {
    ew_job_options *options = &r->job->options;
    int64_t enqueued = r->now, run_at = 0, delay = 0;
    if (r->values[ENQUEUE_TIME].set &&
        !ew__request_when(&r->values[ENQUEUE_TIME], "enqueue_time", &enqueued, r->trouble)) {
        return false;
    }
    if (r->values[DEFER_BY].set &&
        !ew__request_ms(&r->values[DEFER_BY], "defer_by_seconds", false, &delay, r->trouble)) {
        return false;
    }
    run_at = enqueued + delay;
    if (r->values[DEFER_UNTIL].set && !ew__request_when(&r->values[DEFER_UNTIL], "defer_until", &run_at, r->trouble)) {
        return false;
    }
    options->enqueued_at_ms = enqueued > 0 ? enqueued : 1; /* 0 would be now */
    options->run_at_ms = run_at > 0 ? run_at : 1;
    return true;
}

/* The key of an idempotent enqueue; it must outlive the wait of the job. */
static bool read_unique(const reading *r) {
    ew_job_options *options = &r->job->options;
    int64_t ttl = option_or(r, UNIQUE_TTL, r->config->idempotency_ttl_seconds);
    int64_t waits = (options->run_at_ms - options->enqueued_at_ms + 999) / 1000;
    if (!r->values[UNIQUE_KEY].set) {
        return true;
    }
    if (!not_blank(r, r->values[UNIQUE_KEY].text, "idempotency_key")) {
        return false;
    }
    if (ttl <= 0 || ttl > EW__JOB_TTL_MAX_MS / 1000) {
        ttl = EW__JOB_TTL_MAX_MS / 1000;
    }
    options->unique_key = r->values[UNIQUE_KEY].text;
    options->unique_ttl_ms = (uint64_t)(waits > ttl ? waits : ttl) * 1000;
    return true;
}

/* ---- all of it ---- */

/* JSON without white space, as RRQ keeps it. */
static bool compact(const reading *r, ew_str json, ew_str *ret) {
    *ret = json;
    if (json.len == 0) {
        return true;
    }
    char *text = ew__arena_alloc(r->arena, json.len);
    if (text == NULL) {
        return ew__trouble_set(r->trouble, "out of memory");
    }
    *ret = ew__str(text, (size_t)ew_json_minify(json, text, json.len));
    return true;
}

static bool read_job(const reading *r) {
    ew_job_options *options = &r->job->options;
    mode kind = MODE_PLAIN;
    if (r->values[UNIQUE_TTL].set && r->values[UNIQUE_TTL].integer <= 0) {
        return ew__trouble_set(r->trouble, "unique_ttl_seconds must be positive");
    }
    if (!read_mode(r, &kind) || !read_names(r) || !read_limits(r) || !read_times(r)) {
        return false;
    }
    if (!compact(r, r->top[PARAMS].text, &options->params)) {
        return false;
    }
    if (ew_json_next(r->values[TRACE].text, &(ew_json_iter){0}) && /* an empty one is none */
        !compact(r, r->values[TRACE].text, &options->trace)) {
        return false;
    }
    switch (kind) {
    case MODE_RATE:
        if (!read_window(r, RATE_KEY, RATE_SECONDS, &options->rate_limit_key, &options->rate_limit_ms)) {
            return false;
        }
        options->rate_limit_ms = (options->rate_limit_ms + 999) / 1000 * 1000; /* RRQ counts whole seconds */
        return true;
    case MODE_DEBOUNCE:
        options->run_at_ms = 0; /* the window tells when */
        return read_window(r, DEBOUNCE_KEY, DEBOUNCE_SECONDS, &options->debounce_key, &options->debounce_ms);
    case MODE_PLAIN:
        return read_unique(r);
    }
    return false;
}

bool ew__enqueue_read(ew__arena *arena, const char *request, const ew__producer_config *config, int64_t now,
                      ew__enqueue *ret, ew__trouble *trouble) {
    ew__member_value top[MEMBERS], values[OPTION_MEMBERS];
    memset(ret, 0, sizeof *ret);
    if (!ew__request_check(request, what, trouble) ||
        !ew__request_read(arena, ew_str_from(request), what, members, MEMBERS, top, trouble)) {
        return false;
    }
    ew_str options = top[OPTIONS].set ? top[OPTIONS].text : EW_STR("{}");
    if (!ew__request_read(arena, options, what, option_members, OPTION_MEMBERS, values, trouble)) {
        return false;
    }
    reading r = {config, top, values, now, arena, ret, trouble};
    return read_job(&r);
}
