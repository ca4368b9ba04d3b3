/*
 * compat/rrq/producer/producer.h: librrq_producer.so: the C ABI of RRQ's producer, on which its clients in Python and TypeScript
 * stand, over the jobs of this library. A room of its own: not part of libeverywire, and nothing but these functions is
 * exported. May include: base json queue store config api.
 *
 * All texts are UTF-8 and end with NUL; requests and answers are JSON. What is returned is the caller's, and goes back
 * by rrq_string_free. A function that fails returns NULL and sets *error (which may be NULL itself) to a line for people.
 * A handle may be used by several threads at once, but not while it is freed.
 */
#ifndef EW_COMPAT_RRQ_PRODUCER_PRODUCER_H
#define EW_COMPAT_RRQ_PRODUCER_PRODUCER_H

#include <everywire/base.h>

/* The version of RRQ whose ABI and rules these are. */
#define EW__PRODUCER_VERSION "0.11.1"

/*
 * {"redis_dsn" (any store of jobs will do), "queue_name", "max_retries", "job_timeout_seconds", "result_ttl_seconds",
 * "idempotency_ttl_seconds", "correlation_mappings"}; all but the first may be missing or null.
 */
EW_API void *rrq_producer_new(const char *config, char **error);
/* From rrq.toml; path NULL: where RRQ looks for it. */
EW_API void *rrq_producer_new_from_toml(const char *path, char **error);
EW_API void rrq_producer_free(void *producer); /* NULL is fine */

EW_API char *rrq_producer_version(void);
/* {"job_key_prefix","queue_key_prefix","idempotency_key_prefix"} */
EW_API char *rrq_producer_constants(char **error);
/* The file as the object that rrq_producer_new takes. */
EW_API char *rrq_producer_config_from_toml(const char *path, char **error);

/* {"mode","function_name","params","options"}: {"status":"enqueued"|"rate_limited","job_id"} */
EW_API char *rrq_producer_enqueue(void *producer, const char *request, char **error);
/* {"job_id"}: {"found","job":null|{"status","result","last_error"}} */
EW_API char *rrq_producer_get_job_status(void *producer, const char *request, char **error);
/* {"job_id","timeout_seconds","block_interval_seconds"}: {"completed","job"} */
EW_API char *rrq_producer_wait_for_completion(void *producer, const char *request, char **error);

EW_API void rrq_string_free(char *text); /* NULL is fine */

#endif
