/*
 * fuzz/fuzz_zone.c: any bytes as a time-zone file, and the search of schedules on its clock. The first byte chooses the
 * schedule, the next eight (big endian, milliseconds) the time at which the search starts; the rest is the file.
 *
 * Whatever the file says: the spans of the zone cover all times that are asked for, the search ends, and its result is
 * a whole second after its start. Nothing is left behind.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "jobs/cron.h"
#include "jobs/cron_zone.h"
#include <stdlib.h>

#define YEARS_200_MS (INT64_C(200) * 366 * 86400 * 1000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds)
        abort();
}

static const char *const schedules[] = {
    "* * * * *",           "30 2 * * *",   "0 0 29 2 *",        "59 59 23 31 12 * 2100", "0 0 * * 0",  "@hourly",
    "*/7 */3 */5 */2 1-5", "0 30 1 * * 1", "0 0 12 1 1 ? 1970", "15 3 * 3,10 0",         "0 0 30 2 *",
};

static void check_span(const ew__zone *zone, int64_t t) {
    ew__zone_span span;
    ew__zone_at(zone, t, &span);
    check(span.start <= t && t < span.end);
}

static void search(const ew_env *env, const char *schedule, ew__zone *zone, int64_t after) {
    ew__cron *cron = NULL;
    check(ew__cron_parse(env, ew_str_from(schedule), NULL, NULL, &cron, NULL, 0) == EW_OK);
    ew__cron_set_zone(env, cron, zone);
    for (int i = 0; i < 4; i++) {
        int64_t next = ew__cron_next(cron, after);
        check(next == 0 || (next > after && next % 1000 == 0 && next - after <= YEARS_200_MS));
        if (next == 0)
            break;
        after = next;
    }
    ew__cron_free(env, cron);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const ew_env *env = ew_env_default();
    ew__zone *zone = NULL;
    int64_t after = 0;
    if (size < 9)
        return 0;
    for (size_t i = 1; i < 9; i++)
        after = after * 256 + (i == 1 ? (int8_t)data[i] : data[i]);
    after %= INT64_C(253402300800000); /* to the year 9999, and as far before 1970 */
    ew_err err = ew__zone_parse(env, data + 9, size - 9, &zone);
    check((err == EW_OK) == (zone != NULL) && (err == EW_OK || err == EW_ENOTFOUND));
    if (!zone)
        return 0;
    check_span(zone, after / 1000);
    check_span(zone, 0);
    search(env, schedules[data[0] % (sizeof schedules / sizeof *schedules)], zone, after);
    return 0;
}
