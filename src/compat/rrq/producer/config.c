/*
 * compat/rrq/producer/config.c: a producer's configuration from JSON, and back. See config.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "compat/rrq/producer/config.h"

enum { DSN, QUEUE, RETRIES, TIMEOUT, RESULT_TTL, UNIQUE_TTL, MAPPINGS, MEMBERS };

static const ew__member members[MEMBERS] = {
    [DSN] = {"redis_dsn", EW__MEMBER_TEXT, true},
    [QUEUE] = {"queue_name", EW__MEMBER_TEXT, false},
    [RETRIES] = {"max_retries", EW__MEMBER_INT, false},
    [TIMEOUT] = {"job_timeout_seconds", EW__MEMBER_INT, false},
    [RESULT_TTL] = {"result_ttl_seconds", EW__MEMBER_INT, false},
    [UNIQUE_TTL] = {"idempotency_ttl_seconds", EW__MEMBER_INT, false},
    [MAPPINGS] = {"correlation_mappings", EW__MEMBER_STRINGS, false},
};

static int64_t or_else(const ew__member_value *value, int64_t usual) { return value->set ? value->integer : usual; }

bool ew__producer_config_json(ew__arena *arena, const char *json, ew__producer_config *ret, ew__trouble *trouble) {
    static const char what[] = "producer config";
    ew__member_value values[MEMBERS];
    if (!ew__request_check(json, what, trouble) ||
        !ew__request_read(arena, ew_str_from(json), what, members, MEMBERS, values, trouble)) {
        return false;
    }
    *ret = (ew__producer_config){
        .dsn = values[DSN].text,
        .queue = values[QUEUE].set ? values[QUEUE].text : EW__PRODUCER_QUEUE,
        .correlation_mappings = values[MAPPINGS].text,
        .max_retries = or_else(&values[RETRIES], EW__PRODUCER_RETRIES),
        .job_timeout_seconds = or_else(&values[TIMEOUT], EW__PRODUCER_TIMEOUT_S),
        .result_ttl_seconds = or_else(&values[RESULT_TTL], EW__PRODUCER_RESULT_TTL_S),
        .idempotency_ttl_seconds = or_else(&values[UNIQUE_TTL], EW__PRODUCER_UNIQUE_TTL_S),
    };
    return true;
}

void ew__producer_config_write(const ew__producer_config *config, ew__buf *out) {
    ew_str mappings = config->correlation_mappings;
    (void)ew__json_format(out,
                          "{\"redis_dsn\":%q,\"queue_name\":%q,\"max_retries\":%lld,\"job_timeout_seconds\":%lld,"
                          "\"result_ttl_seconds\":%lld,\"idempotency_ttl_seconds\":%lld,\"correlation_mappings\":%j}",
                          config->dsn, config->queue, (long long)config->max_retries,
                          (long long)config->job_timeout_seconds, (long long)config->result_ttl_seconds,
                          (long long)config->idempotency_ttl_seconds, mappings.len > 0 ? mappings : EW_STR("{}"));
}
