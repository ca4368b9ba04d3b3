/*
 * compat/rrq/producer/config.h: what a producer is made with. May include: base json config.
 */
#ifndef EW_COMPAT_RRQ_PRODUCER_CONFIG_H
#define EW_COMPAT_RRQ_PRODUCER_CONFIG_H

#include "compat/rrq/producer/request.h"

/* Texts lie in an arena, or in the JSON that was read. */
typedef struct ew__producer_config {
    ew_str dsn;
    ew_str queue;                /* as it was given; may be blank: then each job must name one */
    ew_str correlation_mappings; /* JSON; empty: none */
    int64_t max_retries, job_timeout_seconds, result_ttl_seconds, idempotency_ttl_seconds;
} ew__producer_config;

/* RRQ's own defaults, for what is not said. */
#define EW__PRODUCER_QUEUE EW_STR("rrq:queue:default")
#define EW__PRODUCER_RETRIES 5
#define EW__PRODUCER_TIMEOUT_S 300
#define EW__PRODUCER_RESULT_TTL_S 86400
#define EW__PRODUCER_UNIQUE_TTL_S 21600

bool ew__producer_config_json(ew__arena *arena, const char *json, ew__producer_config *ret, ew__trouble *trouble);
/* From rrq.toml; path NULL: where RRQ looks for it. */
bool ew__producer_config_toml(ew__arena *arena, const char *path, ew__producer_config *ret, ew__trouble *trouble);
/* As the JSON that ew__producer_config_json reads; the buffer keeps its error. */
void ew__producer_config_write(const ew__producer_config *config, ew__buf *out);

#endif
