/*
 * jobs/cron_zone.c: see cron_zone.h. A zone file lists the changes of the past and those that are known to come; for
 * what is after the last of them its footer has a rule, in the syntax of the variable TZ.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/cron_zone.h"

#include "base/mem.h"

#define DAY INT64_C(86400)
#define TIME_MAX (INT64_C(1) << 59) /* RFC 8536: no file has earlier times; what is added to one must not overflow */
#define OFFSET_MAX (26 * 3600)      /* of RFC 8536: -25 h < offset < 26 h */

/* When the clocks change, in one year. */
typedef struct rule {
    char kind; /* 'M': month, week (5: the last), weekday; 'J': day 1-365, never February 29; 'N': day 0-365 */
    uint32_t month, week, day;
    int32_t time; /* seconds after local midnight; may be negative, or more than a day */
} rule;

struct ew__zone {
    size_t n;
    int64_t *times;   /* n changes, rising */
    int32_t *offsets; /* since then */
    int32_t first;    /* before the first of them */
    bool has_rule;    /* what follows */
    bool has_summer;
    int32_t standard, summer;
    rule begin, finish; /* of summer time */
};

/* ---- the calendar, in years that begin on March 1: the leap day is the last of its year ---- */

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

int64_t ew__days_of(int64_t year, uint32_t month, uint32_t day) {
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = floor_div(y, 400);
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (int64_t)(month > 2 ? month - 3 : month + 9) + 2) / 5 + (int64_t)day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void ew__days_to(int64_t days, int64_t *ret_year, uint32_t *ret_month, uint32_t *ret_day) {
    int64_t z = days + 719468;
    int64_t era = floor_div(z, 146097);
    int64_t of_era = z - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;
    *ret_day = (uint32_t)(of_year - (153 * month + 2) / 5 + 1);
    *ret_month = (uint32_t)(month < 10 ? month + 3 : month - 9);
    *ret_year = year + era * 400 + (*ret_month <= 2 ? 1 : 0);
}

static bool is_leap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

uint32_t ew__month_days(int64_t year, uint32_t month) {
    return month == 2 ? (is_leap(year) ? 29 : 28) : 30 + ((month + (month >> 3)) & 1);
}

/* ---- the rule at the end of a file: "CET-1CEST,M3.5.0,M10.5.0/3" ---- */

typedef struct text {
    const char *at, *end;
    bool bad;
} text;

static bool take(text *t, char c) {
    if (t->at >= t->end || *t->at != c)
        return false;
    t->at++;
    return true;
}

static int32_t number(text *t, int32_t max) {
    int32_t n = 0;
    const char *start = t->at;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9' && n <= max; t->at++)
        n = n * 10 + (*t->at - '0');
    t->bad = t->bad || t->at == start || n > max;
    return n;
}

/* [+-]hh[:mm[:ss]] */
static int32_t clock_time(text *t, int32_t max_hours) {
    bool minus = take(t, '-');
    if (!minus)
        (void)take(t, '+');
    int32_t s = number(t, max_hours) * 3600;
    if (take(t, ':'))
        s += number(t, 59) * 60;
    if (take(t, ':'))
        s += number(t, 59);
    return minus ? -s : s;
}

static void skip_name(text *t) {
    const char *start = t->at;
    if (take(t, '<')) {
        while (t->at < t->end && *t->at != '>')
            t->at++;
        t->bad = t->bad || !take(t, '>');
        return;
    }
    while (t->at < t->end && ((*t->at >= 'A' && *t->at <= 'Z') || (*t->at >= 'a' && *t->at <= 'z')))
        t->at++;
    t->bad = t->bad || t->at - start < 3;
}

static rule read_rule(text *t) {
    rule r = {.kind = 'N', .time = 2 * 3600};
    t->bad = t->bad || !take(t, ',');
    if (take(t, 'M')) {
        r.kind = 'M';
        r.month = (uint32_t)number(t, 12);
        t->bad = t->bad || !take(t, '.');
        r.week = (uint32_t)number(t, 5);
        t->bad = t->bad || !take(t, '.') || r.month == 0 || r.week == 0;
        r.day = (uint32_t)number(t, 6);
    } else {
        r.kind = take(t, 'J') ? 'J' : 'N';
        r.day = (uint32_t)number(t, 365);
        t->bad = t->bad || (r.kind == 'J' && r.day == 0);
    }
    if (take(t, '/'))
        r.time = clock_time(t, 167);
    return r;
}

/* A footer that cannot be read is as none: the last offset stays. */
static void read_footer(ew__zone *zone, const char *at, size_t n) {
    text t = {.at = at, .end = at + n};
    skip_name(&t);
    zone->standard = -clock_time(&t, 24); /* TZ counts westward */
    if (t.at < t.end) {
        zone->has_summer = true;
        skip_name(&t);
        zone->summer = zone->standard + 3600;
        if (t.at < t.end && *t.at != ',')
            zone->summer = -clock_time(&t, 24);
        zone->begin = read_rule(&t);
        zone->finish = read_rule(&t);
    }
    zone->has_rule = !t.bad && t.at == t.end;
}

/* The moment of the rule in this year, with the offset that holds until then. */
static int64_t rule_time(const rule *r, int64_t year, int32_t offset) {
    int64_t day;
    if (r->kind == 'M') {
        day = ew__days_of(year, r->month, 1);
        day += (r->day + 7 - ew__weekday(day)) % 7 + (r->week - 1) * 7;
        if (day >= ew__days_of(year, r->month, 1) + ew__month_days(year, r->month))
            day -= 7;
    } else {
        day = ew__days_of(year, 1, 1) + r->day;
        if (r->kind == 'J')
            day -= is_leap(year) && r->day >= 60 ? 0 : 1;
    }
    return day * DAY + r->time - offset;
}

/* ---- the file ---- */

static int64_t big_endian(const uint8_t *at, size_t n) {
    uint64_t value = at[0] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | at[i];
    return (int64_t)value;
}

typedef struct header {
    size_t n_isut, n_isstd, n_leap, n_times, n_types, n_chars;
    size_t size; /* of what follows the header */
} header;

static bool read_header(const uint8_t *at, size_t n, size_t wide, header *h) {
    if (n < 44 || memcmp(at, "TZif", 4) != 0)
        return false;
    size_t *counts[] = {&h->n_isut, &h->n_isstd, &h->n_leap, &h->n_times, &h->n_types, &h->n_chars};
    for (size_t i = 0; i < 6; i++) {
        int64_t count = big_endian(at + 20 + i * 4, 4);
        if (count < 0 || count > 100000)
            return false;
        *counts[i] = (size_t)count;
    }
    h->size = h->n_times * (wide + 1) + h->n_types * 6 + h->n_chars + h->n_leap * (wide + 4) + h->n_isstd + h->n_isut;
    return h->n_types > 0 && h->size <= n - 44;
}

static bool read_times(ew__zone *zone, const uint8_t *at, const header *h, size_t wide) {
    const uint8_t *kinds = at + h->n_times * wide, *types = kinds + h->n_times;
    for (size_t i = 0; i < h->n_types; i++) {
        int64_t offset = big_endian(types + i * 6, 4);
        if (offset < -OFFSET_MAX || offset > OFFSET_MAX)
            return false;
    }
    zone->first = (int32_t)big_endian(types, 4);
    for (size_t i = 0; i < h->n_times; i++) {
        if (kinds[i] >= h->n_types)
            return false;
        zone->times[i] = big_endian(at + i * wide, wide);
        zone->offsets[i] = (int32_t)big_endian(types + (size_t)kinds[i] * 6, 4);
        if (zone->times[i] < -TIME_MAX || zone->times[i] > TIME_MAX || (i > 0 && zone->times[i] <= zone->times[i - 1]))
            return false;
    }
    zone->n = h->n_times;
    return true;
}

void ew__zone_free(const ew_env *env, ew__zone *zone) {
    if (zone)
        ew__free(env, zone, sizeof *zone + zone->n * (sizeof *zone->times + sizeof *zone->offsets));
}

ew_err ew__zone_parse(const ew_env *env, const uint8_t *bytes, size_t n, ew__zone **ret) {
    header h;
    size_t wide = 4;
    *ret = NULL;
    if (!read_header(bytes, n, 4, &h))
        return EW_ENOTFOUND;
    if (bytes[4] >= '2') { /* the same again, with times of 64 bits */
        bytes += 44 + h.size;
        n -= 44 + h.size;
        wide = 8;
        if (!read_header(bytes, n, 8, &h))
            return EW_ENOTFOUND;
    }
    ew__zone *zone = ew__zalloc(env, sizeof *zone + h.n_times * (sizeof *zone->times + sizeof *zone->offsets));
    if (!zone)
        return EW_ENOMEM;
    zone->n = h.n_times;
    zone->times = (int64_t *)(void *)(zone + 1);
    zone->offsets = (int32_t *)(void *)(zone->times + h.n_times);
    if (!read_times(zone, bytes + 44, &h, wide)) {
        ew__zone_free(env, zone);
        return EW_ENOTFOUND;
    }
    bytes += 44 + h.size;
    n -= 44 + h.size;
    if (wide == 8 && n > 2 && bytes[0] == '\n' && bytes[n - 1] == '\n')
        read_footer(zone, (const char *)bytes + 1, n - 2);
    *ret = zone;
    return EW_OK;
}

/* ---- queries ---- */

/* By the rule, for any time; the span is cut at the last change of the file by the caller. */
static void at_rule(const ew__zone *zone, int64_t t, ew__zone_span *ret) {
    int64_t year;
    uint32_t month, day;
    *ret = (ew__zone_span){INT64_MIN, INT64_MAX, zone->standard, zone->standard};
    if (!zone->has_summer)
        return;
    ew__days_to(floor_div(t, DAY), &year, &month, &day);
    /* Changes of the years around, in order: on the southern half summer time begins late in the year. */
    for (int64_t y = year - 1; y <= year + 1; y++) {
        int64_t times[2] = {rule_time(&zone->begin, y, zone->standard), rule_time(&zone->finish, y, zone->summer)};
        int32_t offsets[2] = {zone->summer, zone->standard};
        unsigned first = times[1] < times[0] ? 1 : 0;
        for (unsigned k = 0; k < 2; k++) {
            unsigned i = k ? 1 - first : first;
            if (times[i] > t) {
                ret->end = times[i];
                return;
            }
            ret->start = times[i];
            ret->before = offsets[1 - i];
            ret->offset = offsets[i];
        }
    }
}

void ew__zone_at(const ew__zone *zone, int64_t t, ew__zone_span *ret) {
    size_t low = 0, high = zone->n; /* how many changes are at or before t */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->times[middle] <= t)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == zone->n && zone->has_rule) {
        at_rule(zone, t, ret);
        if (low > 0 && ret->start < zone->times[low - 1]) {
            ret->start = zone->times[low - 1];
            ret->before = low > 1 ? zone->offsets[low - 2] : zone->first;
        }
        return;
    }
    ret->start = low > 0 ? zone->times[low - 1] : INT64_MIN;
    ret->end = low < zone->n ? zone->times[low] : INT64_MAX;
    ret->offset = low > 0 ? zone->offsets[low - 1] : zone->first;
    ret->before = low > 1 ? zone->offsets[low - 2] : zone->first;
}
