/*
 * jobs/cron.h: schedules: when is the next time. Pure. May include: base.
 *
 * Five fields (minute hour day month weekday, as crontab(5): weekdays 0-7 from Sunday, and day and weekday of which
 * both are restricted match if one does), six (second first) or seven (year last) as RRQ reads them (weekdays 1-7 from
 * Sunday; day and weekday must both match), or @yearly @annually @monthly @weekly @daily @midnight @hourly. Fields: *,
 * ?, lists, ranges, steps, names of months and days (three letters or more). In UTC, or in a zone by its name
 * ("Europe/Berlin"): a time that a change of the clocks leaves out is run right after the gap; one that comes
 * twice is run once, the first time. A schedule of all hours ("*" and the like) goes by the time that passes instead:
 * nothing is left out or moved, and what the clock shows twice is run twice.
 */
#ifndef EW_JOBS_CRON_H
#define EW_JOBS_CRON_H

#include "jobs/cron_zone.h"

typedef struct ew__cron ew__cron;

/*
 * zone: NULL, "" or "UTC" is UTC; others are opened with open_zone (NULL: there are no others). EW_OK; EW_EINVAL, with a line for people in problem ("the month must be 1 to 12, not
 * '13'"); EW_ENOTFOUND: no such zone; EW_ENOMEM.
 */
ew_err ew__cron_parse(const ew_env *env, ew_str schedule, const char *zone, ew__zone_opener open_zone, ew__cron **ret,
                      char *problem, size_t problem_size);
/* Sets the zone of a schedule, which owns it from now on; NULL: UTC. */
void ew__cron_set_zone(const ew_env *env, ew__cron *cron, ew__zone *zone);
void ew__cron_free(const ew_env *env, ew__cron *cron);
/* The first time after `after` (ms since 1970; exclusive), a whole second; 0: never (within the next 200 years). */
int64_t ew__cron_next(const ew__cron *cron, int64_t after);

#endif
