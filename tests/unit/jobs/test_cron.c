/*
 * tests/unit/jobs/test_cron.c: schedules: known next times, changes of the clocks, bad ones; random ones beside a
 * search that looks at every second.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/when.h"
#include "jobs/cron.h"
#include "gateway/zone_files.h"
#include "jobs/cron_zone.h"
#include "support/fail_env.h"

static int64_t at(const char *text) {
    int64_t ms = 0;
    if (!ew__when_parse(ew_str_from(text), &ms))
        fail_msg("no time: %s", text);
    return ms;
}

static ew__cron *parse(const char *schedule, const char *zone) {
    ew__cron *cron = NULL;
    char problem[200] = "";
    if (ew__cron_parse(ew_env_default(), ew_str_from(schedule), zone, ew__zone_open, &cron, problem, sizeof problem) !=
        EW_OK)
        fail_msg("%s: %s", schedule, problem);
    return cron;
}

/* The times after the first, in order; NULL ends the list; "never". */
static void expect(const char *schedule, const char *zone, const char *const *times) {
    ew__cron *cron = parse(schedule, zone);
    int64_t now = at(times[0]);
    for (size_t i = 1; times[i]; i++) {
        int64_t next = ew__cron_next(cron, now);
        bool never = strcmp(times[i], "never") == 0;
        if (next != (never ? 0 : at(times[i]))) {
            char text[EW__WHEN_LEN];
            ew__when_write((uint64_t)next, text);
            fail_msg("%s (%s), after %s: %.*s, not %s", schedule, zone ? zone : "UTC", times[i - 1], EW__WHEN_LEN, text,
                     times[i]);
        }
        now = next;
    }
    ew__cron_free(ew_env_default(), cron);
}

#define EXPECT(schedule, zone, ...) expect(schedule, zone, (const char *const[]){__VA_ARGS__, NULL})

static void test_jobs_cron__five_fields(void **state) {
    (void)state;
    EXPECT("* * * * *", NULL, "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z");
    EXPECT("* * * * *", "UTC", "2026-01-01T00:00:59.999Z", "2026-01-01T00:01:00Z");
    EXPECT("*/20 * * * *", NULL, "2026-01-01T00:50:00Z", "2026-01-01T01:00:00Z", "2026-01-01T01:20:00Z");
    EXPECT("5/20 3 * * *", NULL, "2026-01-01T00:50:00Z", "2026-01-01T03:05:00Z", "2026-01-01T03:25:00Z",
           "2026-01-01T03:45:00Z", "2026-01-02T03:05:00Z");
    EXPECT("0,30 9-10 * * mon-fri", NULL, "2026-01-02T10:00:00Z", "2026-01-02T10:30:00Z", "2026-01-05T09:00:00Z");
    EXPECT("0 0 * * 0", NULL, "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z");
    EXPECT("0 0 * * 7", NULL, "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z");
    EXPECT("0 0 * * Sat-Sun", NULL, "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z",
           "2026-01-10T00:00:00Z");
    EXPECT("0 0 * * */3", NULL, "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z",
           "2026-01-07T00:00:00Z");
    /* crontab(5): one of the two is enough if both are restricted */
    EXPECT("0 0 13 * 5", NULL, "2026-02-01T00:00:00Z", "2026-02-06T00:00:00Z", "2026-02-13T00:00:00Z",
           "2026-02-20T00:00:00Z", "2026-02-27T00:00:00Z", "2026-03-06T00:00:00Z", "2026-03-13T00:00:00Z");
    EXPECT("0 0 13 * ?", NULL, "2026-02-01T00:00:00Z", "2026-02-13T00:00:00Z", "2026-03-13T00:00:00Z");
    EXPECT("0 0 1 1 *", NULL, "2026-02-01T00:00:00Z", "2027-01-01T00:00:00Z");
    EXPECT("59 23 31 dec *", NULL, "2026-02-01T00:00:00Z", "2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z");
    EXPECT("0 0 29 2 *", NULL, "2026-02-01T00:00:00Z", "2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z");
    EXPECT("0 0 29 2 *", NULL, "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"); /* 2100 is no leap year */
    EXPECT("0 0 30 2 *", NULL, "2026-02-01T00:00:00Z", "never");
    EXPECT("0 0 31 4,6,9,11 *", NULL, "2026-02-01T00:00:00Z", "never");
    EXPECT("  0\t0  1 *  * ", NULL, "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z");
}

static void test_jobs_cron__six_and_seven_fields(void **state) {
    (void)state;
    EXPECT("*/15 * * * * *", NULL, "2026-01-01T00:00:01Z", "2026-01-01T00:00:15Z", "2026-01-01T00:00:30Z");
    EXPECT("30 5 1 * * *", NULL, "2026-01-01T00:00:01Z", "2026-01-01T01:05:30Z", "2026-01-02T01:05:30Z");
    EXPECT("0 0 0 * * 1", NULL, "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"); /* 1 is Sunday, as in RRQ */
    EXPECT("0 0 0 * * SUN", NULL, "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z");
    EXPECT("0 0 0 * * 7", NULL, "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z");
    EXPECT("0 0 0 ? * Thurs", NULL, "2026-01-01T00:00:00Z", "2026-01-08T00:00:00Z");
    /* both must match */
    EXPECT("0 0 0 13 * FRI", NULL, "2026-02-01T00:00:00Z", "2026-02-13T00:00:00Z", "2026-03-13T00:00:00Z",
           "2026-11-13T00:00:00Z");
    EXPECT("0 0 12 1 1 ? 2030", NULL, "2026-02-01T00:00:00Z", "2030-01-01T12:00:00Z", "never");
    EXPECT("0 0 12 1 September * 2027-2031/2", NULL, "2026-02-01T00:00:00Z", "2027-09-01T12:00:00Z",
           "2029-09-01T12:00:00Z", "2031-09-01T12:00:00Z", "never");
    EXPECT("0 0 0 1 1 * 2100", NULL, "2026-02-01T00:00:00Z", "2100-01-01T00:00:00Z", "never");
    EXPECT("0 0 0 1 1 * 1999", NULL, "2026-02-01T00:00:00Z", "never");
}

static void test_jobs_cron__words(void **state) {
    (void)state;
    EXPECT("@hourly", NULL, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
    EXPECT("@Daily", NULL, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    EXPECT("@midnight", NULL, "2026-01-01T00:00:01Z", "2026-01-02T00:00:00Z");
    EXPECT("@weekly", NULL, "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z");
    EXPECT("@monthly", NULL, "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
    EXPECT("@yearly", NULL, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    EXPECT("@annually", NULL, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    EXPECT("@daily", NULL, "1969-12-30T11:00:00Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z");
}

static bool has_zones(void) {
    ew__zone *zone;
    if (ew__zone_open(ew_env_default(), "Europe/Berlin", &zone) != EW_OK) {
        (void)printf("SKIP: no zone files\n");
        return false;
    }
    ew__zone_free(ew_env_default(), zone);
    return true;
}

static void test_jobs_cron__berlin(void **state) {
    (void)state;
    if (!has_zones())
        return;
    const char *zone = "Europe/Berlin";
    EXPECT("0 12 * * *", zone, "2026-01-01T00:00:00Z", "2026-01-01T11:00:00Z", "2026-01-02T11:00:00Z");
    EXPECT("0 12 * * *", zone, "2026-07-01T00:00:00Z", "2026-07-01T10:00:00Z");
    /* 2026-03-29: 02:00 becomes 03:00 at 01:00 UTC. What is left out is done right after the gap, once. */
    EXPECT("30 2 * * *", zone, "2026-03-28T00:00:00Z", "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z",
           "2026-03-30T00:30:00Z");
    EXPECT("*/20 2 * * *", zone, "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z");
    EXPECT("30 2,3 * * *", zone, "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z");
    EXPECT("0 3 * * *", zone, "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z");
    EXPECT("30 2 * * *", zone, "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z");
    /* 2026-10-25: 03:00 becomes 02:00 at 01:00 UTC. What comes twice is done the first time. */
    EXPECT("30 2 * * *", zone, "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z");
    EXPECT("30 2 * * *", zone, "2026-10-25T01:10:00Z", "2026-10-26T01:30:00Z");
    EXPECT("0 3 * * *", zone, "2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z");
    /* All hours: by the time that passes. */
    EXPECT("30 * * * *", zone, "2026-03-29T00:00:00Z", "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z");
    EXPECT("30 * * * *", zone, "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z",
           "2026-10-25T02:30:00Z");
    /* Far beyond the table of the file: its rule. */
    EXPECT("30 2 * * *", zone, "2087-03-30T00:00:00Z", "2087-03-30T01:00:00Z", "2087-03-31T00:30:00Z");
    EXPECT("30 2 * * *", zone, "2088-03-28T00:00:00Z", "2088-03-28T01:00:00Z"); /* the fourth Sunday is the last */
    EXPECT("0 12 1 7 *", zone, "2150-01-01T00:00:00Z", "2150-07-01T10:00:00Z");
    EXPECT("0 12 1 1 *", zone, "2150-01-02T00:00:00Z", "2151-01-01T11:00:00Z");
    EXPECT("0 0 30 2 *", zone, "2026-02-01T00:00:00Z", "never");
}

static void test_jobs_cron__other_zones(void **state) {
    (void)state;
    if (!has_zones())
        return;
    const char *zone = "America/New_York";
    /* 2026-03-08: 02:00 becomes 03:00 at 07:00 UTC; 2026-11-01: 02:00 becomes 01:00 at 06:00 UTC */
    EXPECT("30 2 * * *", zone, "2026-03-07T12:00:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z");
    EXPECT("30 1 * * *", zone, "2026-11-01T00:00:00Z", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z");
    EXPECT("0 0 * * *", zone, "2026-11-01T00:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z");
    /* The other half of the world: summer time ends in April. */
    EXPECT("30 2 * * *", "Australia/Sydney", "2026-04-04T12:00:00Z", "2026-04-04T15:30:00Z", "2026-04-05T16:30:00Z");
    EXPECT("30 2 * * *", "Australia/Sydney", "2026-10-03T00:00:00Z", "2026-10-03T16:00:00Z", "2026-10-04T15:30:00Z");
    EXPECT("0 12 * * *", "Australia/Sydney", "2090-01-01T12:00:00Z", "2090-01-02T01:00:00Z");
    EXPECT("0 0 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", "2026-01-01T18:30:00Z");
    EXPECT("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", "2026-10-03T15:30:00Z"); /* half an hour */
    EXPECT("0 0 * * *", "Etc/UTC", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    /* A day that Samoa left out: at the change. */
    EXPECT("0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", "2011-12-30T10:00:00Z");
}

static void refuse(const char *schedule, const char *zone, ew_err expected, const char *words) {
    ew__cron *cron = (void *)&cron;
    char problem[200] = "";
    ew_err err =
        ew__cron_parse(ew_env_default(), ew_str_from(schedule), zone, ew__zone_open, &cron, problem, sizeof problem);
    if (err != expected || !strstr(problem, words) || cron)
        fail_msg("'%s': %s, '%s', not '%s'", schedule, ew_err_name(err), problem, words);
    assert_int_equal(ew__cron_parse(ew_env_default(), ew_str_from(schedule), zone, ew__zone_open, &cron, NULL, 0),
                     expected);
}

static void test_jobs_cron__bad_ones(void **state) {
    (void)state;
    refuse("", NULL, EW_EINVAL, "5, 6 or 7 fields");
    refuse("* * * *", NULL, EW_EINVAL, "5, 6 or 7 fields");
    refuse("* * * * * * * *", NULL, EW_EINVAL, "5, 6 or 7 fields");
    refuse("@often", NULL, EW_EINVAL, "'@often'");
    refuse("60 * * * *", NULL, EW_EINVAL, "the minute must be 0 to 59, not '60'");
    refuse("* 24 * * *", NULL, EW_EINVAL, "the hour must be 0 to 23, not '24'");
    refuse("* * 0 * *", NULL, EW_EINVAL, "the day must be 1 to 31, not '0'");
    refuse("* * * 13 *", NULL, EW_EINVAL, "the month must be 1 to 12, not '13'");
    refuse("* * * * 8", NULL, EW_EINVAL, "the weekday must be 0 to 7, not '8'");
    refuse("0 * * * * 0", NULL, EW_EINVAL, "the weekday must be 1 to 7, not '0'");
    refuse("60 * * * * *", NULL, EW_EINVAL, "the second must be 0 to 59");
    refuse("0 0 0 1 1 * 1969", NULL, EW_EINVAL, "the year must be 1970 to 2100");
    refuse("5-1 * * * *", NULL, EW_EINVAL, "goes backwards");
    refuse("*/0 * * * *", NULL, EW_EINVAL, "the step of the minute must be 1 or more");
    refuse("*/x * * * *", NULL, EW_EINVAL, "the step of the minute");
    refuse("*/ * * * *", NULL, EW_EINVAL, "the step of the minute");
    refuse("? * * * *", NULL, EW_EINVAL, "the minute cannot be '?'");
    refuse("1,,2 * * * *", NULL, EW_EINVAL, "the minute must be");
    refuse("1- * * * *", NULL, EW_EINVAL, "the minute must be");
    refuse("-1 * * * *", NULL, EW_EINVAL, "the minute must be");
    refuse("* * * ja *", NULL, EW_EINVAL, "the month must be");
    refuse("* * * januaryx *", NULL, EW_EINVAL, "the month must be");
    refuse("a%sb%n * * * *", NULL, EW_EINVAL, "not 'a%sb%n'");
    refuse("* * * * *", "Nowhere/Land", EW_ENOTFOUND, "no zone 'Nowhere/Land'");
    refuse("* * * * *", "../../../etc/passwd", EW_ENOTFOUND, "no zone");
    refuse("* * * * *", "/etc/localtime", EW_ENOTFOUND, "no zone");
    refuse("* * * * *", "Europe", EW_ENOTFOUND, "no zone"); /* a folder */
}

/* ---- beside a search of every second ---- */

static uint64_t chance = 77;

static unsigned draw(unsigned below) {
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (unsigned)(chance % below);
}

/* Fields as lists of numbers, so that matching them again is simple. */
typedef struct plan {
    bool set[6][64];
    bool any[6];
} plan;

static void write_field(plan *p, int field, unsigned min, unsigned max, char *out, size_t size) {
    size_t len = 0;
    memset(p->set[field], 0, sizeof p->set[field]);
    p->any[field] = draw(3) == 0;
    if (p->any[field]) {
        for (unsigned i = min; i <= max; i++)
            p->set[field][i] = true;
        (void)snprintf(out, size, "*");
        return;
    }
    for (unsigned n = 1 + draw(3); n > 0; n--) {
        unsigned a = min + draw(max - min + 1), b = a + draw(max - a + 1), step = 1 + draw(7);
        for (unsigned i = a; i <= b; i += step)
            p->set[field][i] = true;
        int wrote = snprintf(out + len, size - len, "%s%u-%u/%u", len ? "," : "", a, b, step);
        len += (size_t)wrote;
    }
}

static bool matches(const plan *p, bool crontab, int64_t s) {
    int64_t year, days = s / 86400;
    uint32_t month, day, weekday = ew__weekday(days);
    ew__days_to(days, &year, &month, &day);
    if (!p->set[0][s % 60] || !p->set[1][s / 60 % 60] || !p->set[2][s / 3600 % 24] || !p->set[4][month])
        return false;
    bool by_day = p->set[3][day], by_weekday = p->set[5][crontab ? weekday : weekday + 1];
    if (crontab && weekday == 0)
        by_weekday = by_weekday || p->set[5][7];
    return crontab && !p->any[3] && !p->any[5] ? by_day || by_weekday : by_day && by_weekday;
}

static void test_jobs_cron__random(void **state) {
    (void)state;
    static const unsigned min[] = {0, 0, 0, 1, 1, 0}, max[] = {59, 59, 23, 31, 12, 7};
    for (int round = 0; round < 3000; round++) {
        plan p = {0};
        char fields[6][160], text[1000];
        bool crontab = draw(2);
        p.set[0][0] = true;
        for (int i = crontab ? 1 : 0; i < 6; i++)
            write_field(&p, i, i == 5 && !crontab ? 1 : min[i], max[i], fields[i], sizeof fields[i]);
        (void)snprintf(text, sizeof text, "%s %s %s %s %s %s", crontab ? "" : fields[0], fields[1], fields[2],
                       fields[3], fields[4], fields[5]);
        ew__cron *cron = parse(text, NULL);
        int64_t now = INT64_C(1700000000) + draw(200000000);
        int64_t next = ew__cron_next(cron, now * 1000) / 1000;
        int64_t end = next && next < now + 10000 ? next : now + 10000;
        for (int64_t s = now + 1; s < end; s++) {
            if (matches(&p, crontab, s))
                fail_msg("%s: after %lld: %lld was left out", text, (long long)now, (long long)s);
        }
        if (next && !matches(&p, crontab, next))
            fail_msg("%s: %lld does not match", text, (long long)next);
        ew__cron_free(ew_env_default(), cron);
    }
}

static void test_jobs_cron__calendar(void **state) {
    (void)state;
    int64_t year = 1600;
    uint32_t month = 1, day = 1;
    for (int64_t days = ew__days_of(1600, 1, 1); year < 2500; days++) {
        int64_t y;
        uint32_t m, d;
        ew__days_to(days, &y, &m, &d);
        if (y != year || m != month || d != day || ew__days_of(year, month, day) != days)
            fail_msg("day %lld is %lld-%u-%u", (long long)days, (long long)y, (unsigned)m, (unsigned)d);
        if (++day > ew__month_days(year, month)) {
            day = 1;
            month = month % 12 + 1;
            year += month == 1;
        }
    }
    assert_int_equal(ew__weekday(0), 4);
    assert_int_equal(ew__weekday(-1), 3);
}

/* ---- zone files with odd times ---- */

static uint8_t *put_number(uint8_t *at, uint64_t number, size_t n) {
    for (size_t i = n; i-- > 0; number >>= 8)
        at[i] = (uint8_t)number;
    return at + n;
}

/* A header with so many times and one type. */
static uint8_t *put_header(uint8_t *at, uint32_t n_times) {
    memset(at, 0, 44);
    memcpy(at, "TZif2", 5);
    (void)put_number(at + 32, n_times, 4);
    (void)put_number(at + 36, 1, 4);
    return at + 44;
}

/* One change at that time, from and to an offset of -25 hours. */
static size_t zone_with(uint8_t bytes[200], int64_t time) {
    static const uint8_t type[6] = {0xff, 0xfe, 0xa0, 0x70}; /* -90000 */
    uint8_t *at = put_header(bytes, 0);
    memcpy(at, type, sizeof type);
    at = put_number(put_header(at + sizeof type, 1), (uint64_t)time, 8);
    *at++ = 0;
    memcpy(at, type, sizeof type);
    return (size_t)(at + sizeof type - bytes);
}

/* The search adds offsets to times: a file whose times leave no room for that is refused. */
static void test_jobs_cron__odd_times(void **state) {
    (void)state;
    static const int64_t good[] = {-(INT64_C(1) << 59), 0, INT64_C(1) << 59};
    static const int64_t bad[] = {INT64_MIN, INT64_MIN + 1, -(INT64_C(1) << 59) - 1, (INT64_C(1) << 59) + 1, INT64_MAX};
    const ew_env *env = ew_env_default();
    uint8_t bytes[200];
    ew__zone *zone;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(ew__zone_parse(env, bytes, zone_with(bytes, bad[i]), &zone), EW_ENOTFOUND);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ew__cron *cron;
        assert_int_equal(ew__zone_parse(env, bytes, zone_with(bytes, good[i]), &zone), EW_OK);
        assert_int_equal(ew__cron_parse(env, EW_STR("0 1 * * *"), NULL, NULL, &cron, NULL, 0), EW_OK);
        ew__cron_set_zone(env, cron, zone);
        assert_true(ew__cron_next(cron, 0) == 2 * 3600 * 1000); /* 1:00 there is 2:00 of the next day in UTC */
        ew__cron_free(env, cron);
    }
}

/* A zone file that is cut or damaged anywhere gives an error or a zone, and no wrong reads. */
static void test_jobs_cron__damaged_zones(void **state) {
    (void)state;
    static uint8_t bytes[65536];
    FILE *file = fopen("/usr/share/zoneinfo/Europe/Berlin", "rb");
    if (!file) {
        (void)printf("SKIP: no zone files\n");
        return;
    }
    size_t n = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    ew__test_env t;
    ew__test_env_init(&t, 1);
    for (size_t i = 0; i < 20000; i++) {
        size_t len = draw(2) ? n : draw((unsigned)n + 1), where = draw((unsigned)n);
        uint8_t old = bytes[where];
        uint8_t *copy = t.env.alloc(t.env.ud, NULL, 0, len + 1);
        ew__zone *zone = NULL;
        ew__zone_span span;
        if (len == n || draw(2))
            bytes[where] = (uint8_t)draw(256);
        memcpy(copy, bytes, len);
        if (ew__zone_parse(&t.env, copy, len, &zone) == EW_OK) {
            ew__zone_at(zone, (int64_t)draw(4000000) * 1000, &span);
            assert_true(span.start < span.end);
        }
        ew__zone_free(&t.env, zone);
        (void)t.env.alloc(t.env.ud, copy, len + 1, 0);
        bytes[where] = old;
    }
    assert_int_equal(ew__test_env_live_blocks(&t), 0);
}

static void test_jobs_cron__no_memory(void **state) {
    (void)state;
    ew__test_env t;
    ew__test_env_init(&t, 1);
    for (uint64_t n = 1;; n++) {
        ew__cron *cron;
        ew__test_env_fail_at(&t, n, false);
        ew_err err = ew__cron_parse(&t.env, EW_STR("@daily"), has_zones() ? "Europe/Berlin" : NULL, ew__zone_open,
                                    &cron, NULL, 0);
        bool failed = ew__test_env_failed(&t) > 0;
        assert_int_equal(err, failed ? EW_ENOMEM : EW_OK);
        ew__cron_free(&t.env, cron);
        assert_int_equal(ew__test_env_live_blocks(&t), 0);
        if (!failed)
            break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_cron__five_fields), cmocka_unit_test(test_jobs_cron__six_and_seven_fields),
        cmocka_unit_test(test_jobs_cron__words),       cmocka_unit_test(test_jobs_cron__berlin),
        cmocka_unit_test(test_jobs_cron__other_zones), cmocka_unit_test(test_jobs_cron__bad_ones),
        cmocka_unit_test(test_jobs_cron__random),      cmocka_unit_test(test_jobs_cron__calendar),
        cmocka_unit_test(test_jobs_cron__odd_times),   cmocka_unit_test(test_jobs_cron__damaged_zones),
        cmocka_unit_test(test_jobs_cron__no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
