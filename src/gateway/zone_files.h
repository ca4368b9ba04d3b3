/*
 * gateway/zone_files.h: reads the system's time zone files for schedules (jobs/cron.h).
 */
#ifndef EW_GATEWAY_ZONE_FILES_H
#define EW_GATEWAY_ZONE_FILES_H

#include "jobs/cron_zone.h"

/* An ew__zone_opener. EW_ENOTFOUND also if the file cannot be read. */
ew_err ew__zone_open(const ew_env *env, const char *name, ew__zone **ret);

#endif
