/*
 * compat/rrq/producer/config_toml.c: a producer's configuration from rrq.toml. See config.h. The file is read here and not by
 * ew__config_load, which distrusts files that others may write to: a producer starts none of the programs in it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "compat/rrq/settings.h"
#include "compat/rrq/producer/config.h"
#include "jobs/job.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool read_bytes(int fd, ew__buf *out) {
    for (;;) {
        if (out->len > EW__CONFIG_BYTES || ew__buf_reserve(out, 4096) != EW_OK) {
            return false;
        }
        ssize_t n = read(fd, out->ptr + out->len, 4096);
        if (n == 0) {
            return true;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
        out->len += n > 0 ? (size_t)n : 0;
    }
}

static bool read_file(const char *path, ew__buf *out, ew__trouble *trouble) {
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe must not keep us waiting */
    bool ok = fd >= 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && read_bytes(fd, out);
    if (fd >= 0) {
        (void)close(fd);
    }
    return ok ? true : ew__trouble_set(trouble, "failed to read config at %s", path);
}

static bool text_of(ew__arena *arena, const char *prefix, const char *text, ew_str *ret) {
    size_t n = strlen(prefix), m = strlen(text);
    char *copy = ew__arena_alloc(arena, n + m + 1);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, prefix, n);
    memcpy(copy + n, text, m + 1);
    *ret = ew__str(copy, n + m);
    return true;
}

static int64_t seconds(uint64_t ms, int64_t usual) { return ms > 0 ? (int64_t)((ms + 999) / 1000) : usual; }

/* Copies what is needed: the file's own memory goes. */
static bool take(ew__arena *arena, const ew__config_jobs *jobs, ew__producer_config *ret, ew__trouble *trouble) {
    const ew_jobs_options *usual = &jobs->defaults.options;
    bool kept = usual->result_ttl_ms >= (uint64_t)EW__JOB_TTL_MAX_MS; /* how 0, for ever, was read */
    *ret = (ew__producer_config){
        .max_retries = usual->max_retries > 0 ? (int64_t)usual->max_retries : EW__PRODUCER_RETRIES,
        .job_timeout_seconds = seconds(usual->timeout_ms, EW__PRODUCER_TIMEOUT_S),
        .result_ttl_seconds = kept ? 0 : seconds(usual->result_ttl_ms, EW__PRODUCER_RESULT_TTL_S),
        .idempotency_ttl_seconds = seconds(usual->unique_ttl_ms, EW__PRODUCER_UNIQUE_TTL_S),
    };
    bool ok = text_of(arena, "", jobs->store, &ret->dsn) &&
              text_of(arena, "rrq:queue:", usual->queue != NULL ? usual->queue : EW__JOB_QUEUE, &ret->queue);
    if (ok && jobs->correlation_mappings != NULL) {
        ok = text_of(arena, "", jobs->correlation_mappings, &ret->correlation_mappings);
    }
    return ok ? true : ew__trouble_set(trouble, "out of memory");
}

static bool parse(ew__arena *arena, ew_str toml, const char *path, ew__rrq_variables *variables,
                  ew__producer_config *ret, ew__trouble *trouble) {
    ew__config *config = NULL;
    if (ew__rrq_parse(arena->env, toml, "", ew__rrq_variable, variables, &config) != EW_OK) {
        return ew__trouble_set(trouble, "out of memory");
    }
    const ew__problem *first = &config->problems.list[0];
    bool ok = config->problems.n == 0;
    if (ok) {
        ok = take(arena, &config->jobs, ret, trouble);
    } else if (config->node == NULL) {
        ew__trouble_set(trouble, "failed to parse TOML at %s:%u:%u: %s", path, first->line, first->column,
                        first->message);
    } else {
        ew__trouble_set(trouble, "invalid RRQ config: line %u: %s", first->line, first->message);
    }
    ew__config_free(config);
    return ok;
}

bool ew__producer_config_toml(ew__arena *arena, const char *path, ew__producer_config *ret, ew__trouble *trouble) {
    ew__rrq_variables variables;
    ew__buf bytes;
    if (ew__rrq_variables_init(&variables, arena->env) != EW_OK) {
        ew__rrq_variables_done(&variables);
        return ew__trouble_set(trouble, "out of memory");
    }
    path = path != NULL ? path : ew__rrq_find(&variables);
    bool ok = false;
    if (path == NULL) {
        ew__trouble_set(trouble, "RRQ config not found. Provide --config, set RRQ_CONFIG, or add rrq.toml.");
    } else {
        ew__buf_init(&bytes, arena->env, EW__CONFIG_BYTES + 8192);
        ok = read_file(path, &bytes, trouble) && parse(arena, ew__buf_view(&bytes), path, &variables, ret, trouble);
        ew__buf_done(&bytes);
    }
    ew__rrq_variables_done(&variables);
    return ok;
}
