/*
 * compat/rrq/producer/producer.c: the ABI: see producer.h. A handle is a store with a configuration; each function reads its request,
 * asks the store, and says the answer in RRQ's words.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "compat/rrq/producer/producer.h"
#include "base/util.h"
#include "compat/rrq/producer/config.h"
#include "compat/rrq/producer/enqueue.h"
#include "jobs/service/service.h"
#include <time.h>

#define ANSWER_MAX ((size_t)1 << 30)
#define POLL_MS 50 /* for a job that is not there yet */
#define WAIT_MAX_MS INT64_C(31536000000)

typedef struct producer {
    const ew_env *env;
    ew_jobs *jobs;
    ew__arena arena; /* of the configuration */
    ew__producer_config config;
} producer;

/* ---- texts that go out ---- */

/* Freed by nothing but its address, so it remembers its size. */
typedef struct parcel {
    size_t size;
    char text[];
} parcel;

static char *parcel_new(ew_str text) {
    size_t size = sizeof(parcel) + text.len + 1;
    parcel *box = ew__alloc(ew_env_default(), size);
    if (box == NULL) {
        return NULL;
    }
    box->size = size;
    if (text.len > 0) {
        memcpy(box->text, text.ptr, text.len);
    }
    box->text[text.len] = '\0';
    return box->text;
}

void rrq_string_free(char *text) {
    if (text != NULL) {
        parcel *box = ew__container_of(text, parcel, text);
        ew__free(ew_env_default(), box, box->size);
    }
}

static void *fail(char **error, const char *text) {
    if (error != NULL) {
        *error = parcel_new(ew_str_from(text));
    }
    return NULL;
}

/* What was written, or why not. Ends the buffer. */
static char *say(ew__buf *out, char **error) {
    char *text = out->err == EW_OK ? parcel_new(ew__buf_view(out)) : NULL;
    ew__buf_done(out);
    return text != NULL ? text : fail(error, "out of memory");
}

/* What the store says went wrong; ends the answer. */
static void *fail_by(char **error, ew_err err, ew_answer *answer) {
    const char *problem = ew_answer_problem(answer);
    fail(error, problem[0] != '\0' ? problem : ew_err_text(err));
    (void)ew__answer_free(answer);
    return NULL;
}

char *rrq_producer_version(void) { return parcel_new(EW_STR(EW__PRODUCER_VERSION)); }

char *rrq_producer_constants(char **error) {
    char *text = parcel_new(EW_STR("{\"job_key_prefix\":\"rrq:job:\",\"queue_key_prefix\":\"rrq:queue:\","
                                   "\"idempotency_key_prefix\":\"rrq:idempotency:\"}"));
    return text != NULL ? text : fail(error, "out of memory");
}

/* ---- the handle ---- */

void rrq_producer_free(void *handle) {
    producer *self = handle;
    if (self == NULL) {
        return;
    }
    (void)ew__jobs_service_free(self->jobs);
    ew__arena_done(&self->arena);
    ew__free(self->env, self, sizeof *self);
}

/* A C string of it in the arena; NULL: out of memory. */
static const char *c_str(ew__arena *arena, ew_str text) {
    char *copy = ew__arena_alloc(arena, text.len + 1);
    if (copy != NULL) {
        if (text.len > 0) {
            memcpy(copy, text.ptr, text.len);
        }
        copy[text.len] = '\0';
    }
    return copy;
}

static bool open_store(producer *self, ew__trouble *trouble) {
    char problem[256] = "";
    ew__producer_config *config = &self->config;
    ew_jobs_options options = {0};
    const char *dsn = c_str(&self->arena, config->dsn);
    if (config->correlation_mappings.len > 0) {
        options.correlation_mappings = c_str(&self->arena, config->correlation_mappings);
    }
    if (dsn == NULL || (config->correlation_mappings.len > 0 && options.correlation_mappings == NULL)) {
        return ew__trouble_set(trouble, "out of memory");
    }
    ew_err err = ew__jobs_service_open(dsn, &options, &self->jobs, problem, sizeof problem);
    if (err == EW_OK) {
        return true;
    }
    bool tried = err != EW_EINVAL && err != EW_EUNSUPPORTED && err != EW_ENOMEM;
    return ew__trouble_set(trouble, "failed to %s: %s", tried ? "connect to Redis" : "create Redis client",
                           problem[0] != '\0' ? problem : ew_err_text(err));
}

/* json, or, if toml is set, the path of a file. */
static void *producer_new(const char *json, const char *path, bool toml, char **error) {
    ew__trouble trouble = {""};
    const ew_env *env = ew_env_default();
    producer *self = ew__zalloc(env, sizeof *self);
    if (error != NULL) {
        *error = NULL;
    }
    if (self == NULL) {
        return fail(error, "out of memory");
    }
    self->env = env;
    ew__arena_init(&self->arena, env, NULL, 0);
    bool ok = toml ? ew__producer_config_toml(&self->arena, path, &self->config, &trouble)
                   : ew__producer_config_json(&self->arena, json, &self->config, &trouble);
    if (ok && !toml) { /* slices of the caller's text must outlive this call */
        ok =
            ew__arena_str(&self->arena, self->config.correlation_mappings, &self->config.correlation_mappings) == EW_OK;
    }
    if (!ok || !open_store(self, &trouble)) {
        rrq_producer_free(self);
        return fail(error, trouble.text[0] != '\0' ? trouble.text : "out of memory");
    }
    return self;
}

void *rrq_producer_new(const char *config, char **error) { return producer_new(config, NULL, false, error); }

void *rrq_producer_new_from_toml(const char *path, char **error) { return producer_new(NULL, path, true, error); }

char *rrq_producer_config_from_toml(const char *path, char **error) {
    ew__arena arena;
    ew__buf out;
    ew__trouble trouble = {""};
    ew__producer_config config;
    char *text = NULL;
    if (error != NULL) {
        *error = NULL;
    }
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    if (ew__producer_config_toml(&arena, path, &config, &trouble)) {
        ew__buf_init(&out, ew_env_default(), ANSWER_MAX);
        ew__producer_config_write(&config, &out);
        text = say(&out, error);
    } else {
        fail(error, trouble.text);
    }
    ew__arena_done(&arena);
    return text;
}

/* ---- enqueue ---- */

static char *say_enqueued(ew_answer *answer, char **error) {
    ew__buf out;
    ew_str json = ew_answer_json(answer);
    bool limited = ew__str_is(ew_json_get(json, "/status"), EW_STR("\"rate_limited\""));
    ew__buf_init(&out, ew_env_default(), ANSWER_MAX);
    (void)ew__json_format(&out, "{\"status\":\"%s\",\"job_id\":%j}", limited ? "rate_limited" : "enqueued",
                          ew_json_get(json, "/job_id"));
    (void)ew__answer_free(answer);
    return say(&out, error);
}

char *rrq_producer_enqueue(void *handle, const char *request, char **error) {
    producer *self = handle;
    ew__trouble trouble = {""};
    ew__enqueue job;
    ew__arena arena;
    ew_answer *answer = NULL;
    char *text = NULL;
    if (error != NULL) {
        *error = NULL;
    }
    if (self == NULL) {
        return fail(error, "producer handle is null");
    }
    ew__arena_init(&arena, self->env, NULL, 0);
    if (!ew__enqueue_read(&arena, request, &self->config, (int64_t)self->env->wall_ms(self->env->ud), &job, &trouble)) {
        fail(error, trouble.text);
    } else {
        ew_err err = ew__jobs_enqueue(self->jobs, &job.options, &answer);
        if (err == EW_OK) {
            text = say_enqueued(answer, error);
        } else if (err == EW_EEXISTS) {
            fail(error, "job_id already exists");
            (void)ew__answer_free(answer);
        } else {
            fail_by(error, err, answer);
        }
    }
    ew__arena_done(&arena);
    return text;
}

/* ---- what became of a job ---- */

enum { ASK_ID, ASK_TIMEOUT, ASK_INTERVAL, ASK_MEMBERS };

static const ew__member ask_members[ASK_MEMBERS] = {
    [ASK_ID] = {"job_id", EW__MEMBER_TEXT, true},
    [ASK_TIMEOUT] = {"timeout_seconds", EW__MEMBER_SECONDS, true},
    [ASK_INTERVAL] = {"block_interval_seconds", EW__MEMBER_SECONDS, false},
};

static bool read_ask(ew__arena *arena, const char *request, const char *what, size_t n,
                     ew__member_value values[ASK_MEMBERS], ew__trouble *trouble) {
    return ew__request_check(request, what, trouble) &&
           ew__request_read(arena, ew_str_from(request), what, ask_members, n, values, trouble);
}

/* RRQ's clients know five of the states; of the others this is all that they are told. */
static const char *status_of(ew_str json) {
    static const char *const known[] = {"PENDING", "ACTIVE", "COMPLETED", "FAILED", "RETRYING"};
    char buf[16];
    ew_str status = ew__json_text(ew_json_get(json, "/status"), buf, sizeof buf);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (ew__str_is(status, ew_str_from(known[i]))) {
            return known[i];
        }
    }
    return "UNKNOWN";
}

/* {"found":true,"job":{...}}, or, without an answer, {"found":false,"job":null}. Ends the answer. */
static char *say_job(const char *word, bool there, ew_answer *answer, char **error) {
    ew__buf out;
    ew__buf_init(&out, ew_env_default(), ANSWER_MAX);
    if (there) {
        ew_str json = ew_answer_json(answer);
        (void)ew__json_format(&out, "{\"%s\":true,\"job\":{\"status\":\"%s\",\"result\":%j,\"last_error\":%j}}", word,
                              status_of(json), ew_json_get(json, "/result"), ew_json_get(json, "/last_error"));
    } else {
        (void)ew__json_format(&out, "{\"%s\":false,\"job\":null}", word);
    }
    (void)ew__answer_free(answer);
    return say(&out, error);
}

char *rrq_producer_get_job_status(void *handle, const char *request, char **error) {
    producer *self = handle;
    ew__trouble trouble = {""};
    ew__member_value values[ASK_MEMBERS];
    ew__arena arena;
    ew_answer *answer = NULL;
    char *text = NULL;
    if (error != NULL) {
        *error = NULL;
    }
    if (self == NULL) {
        return fail(error, "producer handle is null");
    }
    ew__arena_init(&arena, self->env, NULL, 0);
    if (!read_ask(&arena, request, "job status request", ASK_ID + 1, values, &trouble)) {
        fail(error, trouble.text);
    } else {
        ew_err err = ew__jobs_show_job(self->jobs, values[ASK_ID].text, &answer);
        text = err == EW_OK || err == EW_ENOTFOUND ? say_job("found", err == EW_OK, answer, error)
                                                   : fail_by(error, err, answer);
    }
    ew__arena_done(&arena);
    return text;
}

static void pause_ms(int64_t ms) {
    struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&t, NULL);
}

/* Waits for the end of a job, which, as with RRQ, need not be there yet. EW_OK or EW_ETIMEOUT; else an error. */
static ew_err wait_for(producer *self, ew_str id, int64_t timeout_ms, ew_answer **ret) {
    uint64_t end = self->env->now_ns(self->env->ud) + EW__MS(timeout_ms < WAIT_MAX_MS ? timeout_ms : WAIT_MAX_MS);
    for (;;) {
        uint64_t now = self->env->now_ns(self->env->ud);
        int64_t left = now < end ? (int64_t)((end - now + 999999) / 1000000) : 0;
        ew_err err = ew__jobs_wait(self->jobs, id, (uint64_t)(left > 0 ? left : 1), NULL, NULL, ret);
        if (err != EW_ENOTFOUND) {
            return err;
        }
        *ret = ew__answer_free(*ret);
        if (left == 0) {
            return EW_ETIMEOUT;
        }
        pause_ms(left < POLL_MS ? left : POLL_MS);
    }
}

char *rrq_producer_wait_for_completion(void *handle, const char *request, char **error) {
    producer *self = handle;
    ew__trouble trouble = {""};
    ew__member_value values[ASK_MEMBERS];
    ew__arena arena;
    ew_answer *answer = NULL;
    int64_t timeout = 0, interval = 0;
    char *text = NULL;
    if (error != NULL) {
        *error = NULL;
    }
    if (self == NULL) {
        return fail(error, "producer handle is null");
    }
    ew__arena_init(&arena, self->env, NULL, 0);
    if (!read_ask(&arena, request, "wait for completion request", ASK_MEMBERS, values, &trouble) ||
        !ew__request_ms(&values[ASK_TIMEOUT], "timeout_seconds", true, &timeout, &trouble) ||
        !ew__request_ms(&values[ASK_INTERVAL], "block_interval_seconds", false, &interval, &trouble)) {
        fail(error, trouble.text);
    } else {
        ew_err err = wait_for(self, values[ASK_ID].text, timeout, &answer);
        text = err == EW_OK || err == EW_ETIMEOUT ? say_job("completed", err == EW_OK, answer, error)
                                                  : fail_by(error, err, answer);
    }
    ew__arena_done(&arena);
    return text;
}
