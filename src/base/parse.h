/*
 * base/parse.h: durations, sizes and values of limits as people write them. Pure.
 */
#ifndef EW_BASE_PARSE_H
#define EW_BASE_PARSE_H

#include <everywire/base.h>

/* The longest duration that is understood: a hundred years, so that no sum of it with a clock overflows. */
#define EW__DURATION_MAX_MS ((uint64_t)100 * 365 * 24 * 3600 * 1000)

/*
 * "500ms", "2s", "1.5m", "1h", or a bare number of seconds. Parts of a millisecond count as a whole one, so that only
 * zero is zero. EW_OK, EW_EINVAL (not a duration) or EW_ELIMIT (too long).
 */
ew_err ew__duration_parse(ew_str text, uint64_t *ret_ms);

/* "4096", "64K", "1M", "2G": bytes. */
bool ew__size_parse(ew_str text, uint64_t *ret_bytes);

/*
 * The value of a limit (everywire/limits.h): a bare number in the unit that its name tells, or with a suffix of its kind,
 * K, M and G for NAME_bytes, those of a duration for NAME_ms.
 */
bool ew__limit_parse(const char *name, ew_str text, uint64_t *ret);

#endif
