/*
 * jobs/cron_zone.h: the local time of a zone, by the bytes of its zone file (TZif, RFC 8536). libc's zone functions keep
 * one zone for the whole process. Pure. May include: base.
 */
#ifndef EW_JOBS_CRON_ZONE_H
#define EW_JOBS_CRON_ZONE_H

#include "base/util.h"

typedef struct ew__zone ew__zone;

/* Opens a zone by its name, "Europe/Berlin". EW_OK; EW_ENOTFOUND: no such zone; EW_ENOMEM. */
typedef ew_err (*ew__zone_opener)(const ew_env *env, const char *name, ew__zone **ret);
/* From the bytes of a zone file. EW_OK; EW_ENOTFOUND: it is invalid; EW_ENOMEM. */
ew_err ew__zone_parse(const ew_env *env, const uint8_t *bytes, size_t n, ew__zone **ret);
void ew__zone_free(const ew_env *env, ew__zone *zone);

/* A time during which the clocks are not changed: start <= t < end, in seconds since 1970. */
typedef struct ew__zone_span {
    int64_t start, end; /* INT64_MIN, INT64_MAX: for ever */
    int32_t offset;     /* local time - UTC, seconds */
    int32_t before;     /* what it was before start */
} ew__zone_span;

void ew__zone_at(const ew__zone *zone, int64_t t, ew__zone_span *ret);

/* ---- the calendar: days since 1970 ---- */

int64_t ew__days_of(int64_t year, uint32_t month, uint32_t day);
void ew__days_to(int64_t days, int64_t *ret_year, uint32_t *ret_month, uint32_t *ret_day);
uint32_t ew__month_days(int64_t year, uint32_t month);
static inline uint32_t ew__weekday(int64_t days) { return (uint32_t)(((days + 4) % 7 + 7) % 7); } /* 0: Sunday */

#endif
