/*
 * jobs/cron.c: reading schedules, and finding the next time. See cron.h.
 *
 * A schedule is a set of times of day on a set of days, on the clock of its zone. That clock is cut into spans without
 * a change (cron_zone.h); in each of them the next time is found by the calendar alone.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/cron.h"

#include <stdio.h>

#include "base/mem.h"

#define DAY INT64_C(86400)
#define FIRST_YEAR 1970u
#define LAST_YEAR 2100u
#define SEARCH_DAYS (200 * 366)

struct ew__cron {
    uint64_t seconds, minutes, hours, days, months, weekdays; /* bits */
    uint64_t years[3];                                        /* from FIRST_YEAR on */
    bool any_year;
    bool either; /* crontab: the day or the weekday */
    bool steady; /* every hour: goes by the time that passes, not by what the clock shows */
    ew__zone *zone;
};

/* ---- reading ---- */

typedef enum kind { SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, WEEKDAY, YEAR, KINDS } kind;

static const struct {
    const char *name;
    uint32_t min, max;
} kinds[KINDS] = {{"second", 0, 59},
                  {"minute", 0, 59},
                  {"hour", 0, 23},
                  {"day", 1, 31},
                  {"month", 1, 12},
                  {"weekday", 0, 7},
                  {"year", FIRST_YEAR, LAST_YEAR}};

static const char *const months[] = {"january", "february", "march",     "april",   "may",      "june",
                                     "july",    "august",   "september", "october", "november", "december"};
static const char *const weekdays[] = {"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"};

typedef struct reader {
    ew__cron *cron;
    bool crontab; /* five fields: weekdays from 0 */
    char *problem;
    size_t problem_size;
} reader;

static bool refuse(reader *r, const char *format, const char *name, ew_str what) {
    char shown[41];
    int n = (int)(what.len < sizeof shown - 1 ? what.len : sizeof shown - 1);
    if (n > 0)
        memcpy(shown, what.ptr, (size_t)n);
    shown[n] = 0;
    if (r->problem_size)
        (void)snprintf(r->problem, r->problem_size, format, name, shown);
    return false;
}

/* Three letters or more of a name; its place, or -1. */
static int find_name(const char *const *names, int n, ew_str text) {
    for (int i = 0; text.len >= 3 && i < n; i++) {
        if (text.len <= strlen(names[i]) && ew__str_is_nocase(ew__str(names[i], text.len), text))
            return i;
    }
    return -1;
}

static uint32_t least_of(const reader *r, kind k) { return k == WEEKDAY && !r->crontab ? 1 : kinds[k].min; }

/* A number or a name, as it is written in this kind of schedule. */
static bool read_value(reader *r, kind k, ew_str text, uint32_t *ret) {
    uint64_t number;
    int at = k == MONTH ? find_name(months, 12, text) : k == WEEKDAY ? find_name(weekdays, 7, text) : -1;
    uint32_t min = least_of(r, k), max = kinds[k].max;
    if (at >= 0) {
        *ret = (uint32_t)at + (k == MONTH || !r->crontab ? 1 : 0);
        return true;
    }
    if (ew__u64_parse(text, &number) && number >= min && number <= max) {
        *ret = (uint32_t)number;
        return true;
    }
    char format[64];
    (void)snprintf(format, sizeof format, "the %%s must be %u to %u, not '%%s'", (unsigned)min, (unsigned)max);
    return refuse(r, format, kinds[k].name, text);
}

static void set_bit(reader *r, kind k, uint32_t value) {
    ew__cron *c = r->cron;
    uint64_t *sets[] = {&c->seconds, &c->minutes, &c->hours, &c->days, &c->months, &c->weekdays};
    if (k == YEAR) {
        c->years[(value - FIRST_YEAR) / 64] |= UINT64_C(1) << (value - FIRST_YEAR) % 64;
        return;
    }
    if (k == WEEKDAY)
        value = r->crontab ? value % 7 : value - 1;
    *sets[k] |= UINT64_C(1) << value;
}

static ew_str until(ew_str text, char c, ew_str *ret_rest) {
    const char *at = text.len ? memchr(text.ptr, c, text.len) : NULL;
    *ret_rest = ew__str(NULL, 0);
    if (!at)
        return text;
    *ret_rest = ew__str(at + 1, text.len - (size_t)(at - text.ptr) - 1);
    return ew__str(text.ptr, (size_t)(at - text.ptr));
}

/* One piece of a list: *, ?, a, a-b, each perhaps with /n; a/n goes on to the end. */
static bool read_piece(reader *r, kind k, ew_str piece) {
    ew_str step_text, high_text;
    ew_str range = until(piece, '/', &step_text);
    bool has_step = range.len < piece.len;
    ew_str low_text = until(range, '-', &high_text);
    uint64_t step = 1;
    uint32_t low = least_of(r, k), high = kinds[k].max;
    bool any = ew__str_is(range, EW_STR("*"));
    if (ew__str_is(range, EW_STR("?"))) {
        if (k != DAY_OF_MONTH && k != WEEKDAY)
            return refuse(r, "the %s cannot be '%s'", kinds[k].name, piece);
        any = true;
    }
    if (!any) {
        if (!read_value(r, k, low_text, &low))
            return false;
        high = has_step ? high : low;
        if (low_text.len < range.len && !read_value(r, k, high_text, &high))
            return false;
        if (r->crontab && k == WEEKDAY && high == 0 && low > 0)
            high = 7; /* to Sunday */
        if (high < low)
            return refuse(r, "the %s '%s' goes backwards", kinds[k].name, piece);
    }
    if (has_step && (!ew__u64_parse(step_text, &step) || step == 0 || step > 9999))
        return refuse(r, "the step of the %s must be 1 or more, not '%s'", kinds[k].name, step_text);
    if (r->crontab && k == WEEKDAY && any)
        high = 6; /* 7 is Sunday again */
    for (uint64_t value = low; value <= high; value += step)
        set_bit(r, k, (uint32_t)value);
    return true;
}

static bool read_field(reader *r, kind k, ew_str field) {
    ew_str rest = field;
    do {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        size_t n = comma ? (size_t)(comma - rest.ptr) : rest.len;
        if (!read_piece(r, k, ew__str(rest.ptr, n)))
            return false;
        if (!comma)
            return true;
        rest = ew__str(comma + 1, rest.len - n - 1);
    } while (true);
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* The fields; more than 7 count as 8. */
static size_t split(ew_str text, ew_str fields[8]) {
    size_t n = 0, at = 0;
    while (n < 8) {
        while (at < text.len && is_space(text.ptr[at]))
            at++;
        size_t start = at;
        while (at < text.len && !is_space(text.ptr[at]))
            at++;
        if (at == start)
            break;
        fields[n++] = ew__str(text.ptr + start, at - start);
    }
    return n;
}

static ew_str known(ew_str text) {
    static const char *const words[][2] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
        {"@daily", "0 0 * * *"},  {"@midnight", "0 0 * * *"}, {"@hourly", "0 * * * *"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (ew__str_is_nocase(text, ew_str_from(words[i][0])))
            return ew_str_from(words[i][1]);
    }
    return text;
}

static bool is_open(ew_str field) { return field.ptr[0] == '*' || field.ptr[0] == '?'; }

static bool read_schedule(reader *r, ew_str text) {
    ew_str fields[8], whole = EW_STR("");
    size_t n = split(text, fields);
    if (n == 1) {
        whole = fields[0];
        n = split(known(whole), fields);
    }
    if (n == 1 && whole.ptr[0] == '@')
        return refuse(r, "%s'%s' is none of @yearly, @monthly, @weekly, @daily and @hourly", "", whole);
    if (n < 5 || n > 7)
        return refuse(r, "a schedule has 5, 6 or 7 fields%s, not '%s'", "", text);
    r->crontab = n == 5;
    const ew_str *field = fields;
    if (r->crontab)
        set_bit(r, SECOND, 0);
    else if (!read_field(r, SECOND, *field++))
        return false;
    for (kind k = MINUTE; k <= WEEKDAY; k = (kind)(k + 1)) {
        if (!read_field(r, k, *field++))
            return false;
    }
    r->cron->any_year = n < 7;
    if (n == 7 && !read_field(r, YEAR, *field))
        return false;
    r->cron->either = r->crontab && !is_open(fields[2]) && !is_open(fields[4]);
    r->cron->steady = r->cron->hours == (UINT64_C(1) << 24) - 1;
    return true;
}

ew_err ew__cron_parse(const ew_env *env, ew_str schedule, const char *zone, ew__zone_opener open_zone, ew__cron **ret,
                      char *problem, size_t problem_size) {
    ew__cron *cron = ew__zalloc(env, sizeof *cron);
    reader r = {.cron = cron, .problem = problem, .problem_size = problem ? problem_size : 0};
    *ret = NULL;
    if (r.problem_size)
        problem[0] = 0;
    if (!cron)
        return EW_ENOMEM;
    ew_err err = read_schedule(&r, schedule) ? EW_OK : EW_EINVAL;
    if (err == EW_OK && zone && zone[0] && strcmp(zone, "UTC") != 0) {
        ew__zone *opened = NULL;
        err = open_zone ? open_zone(env, zone, &opened) : EW_ENOTFOUND;
        ew__cron_set_zone(env, cron, opened);
        if (err == EW_ENOTFOUND)
            (void)refuse(&r, "%sthere is no zone '%s'", "", ew_str_from(zone));
    }
    if (err != EW_OK) {
        ew__cron_free(env, cron);
        return err;
    }
    *ret = cron;
    return EW_OK;
}

void ew__cron_set_zone(const ew_env *env, ew__cron *cron, ew__zone *zone) {
    ew__zone_free(env, cron->zone);
    cron->zone = zone;
}

void ew__cron_free(const ew_env *env, ew__cron *cron) {
    if (!cron)
        return;
    ew__zone_free(env, cron->zone);
    ew__free(env, cron, sizeof *cron);
}

/* ---- the calendar: seconds since 1970 on the zone's clock ---- */

static bool has(uint64_t bits, uint32_t i) { return bits >> i & 1; }

static bool has_year(const ew__cron *cron, int64_t year) {
    if (cron->any_year)
        return true;
    if (year < FIRST_YEAR || year > LAST_YEAR)
        return false;
    uint32_t i = (uint32_t)(year - FIRST_YEAR);
    return has(cron->years[i / 64], i % 64);
}

/* The first day from `day` on that matches; more than `last`: there is none. */
static int64_t next_day(const ew__cron *cron, int64_t day, int64_t last) {
    while (day <= last) {
        int64_t year;
        uint32_t month, dom;
        ew__days_to(day, &year, &month, &dom);
        if (!has_year(cron, year)) {
            day = ew__days_of(year + 1, 1, 1);
        } else if (!has(cron->months, month)) {
            day += ew__month_days(year, month) - dom + 1;
        } else {
            bool by_dom = has(cron->days, dom), by_weekday = has(cron->weekdays, ew__weekday(day));
            if (cron->either ? by_dom || by_weekday : by_dom && by_weekday)
                return day;
            day++;
        }
    }
    return day;
}

/* The first set bit from i on; 64: none. */
static uint32_t next_bit(uint64_t bits, uint32_t i) {
    for (; i < 64; i++) {
        if (has(bits, i))
            return i;
    }
    return 64;
}

/* The first time of day from `s` on, in seconds; DAY: none. */
static int64_t next_time(const ew__cron *cron, int64_t s) {
    uint32_t hour = (uint32_t)(s / 3600), minute = (uint32_t)(s / 60 % 60), second = (uint32_t)(s % 60);
    uint32_t h = next_bit(cron->hours, hour);
    if (h == hour) {
        uint32_t m = next_bit(cron->minutes, minute);
        uint32_t sec = m == minute ? next_bit(cron->seconds, second) : 64;
        if (sec == 64 && m < 64) {
            m = next_bit(cron->minutes, m == minute ? m + 1 : m);
            sec = next_bit(cron->seconds, 0);
        }
        if (m < 64)
            return (int64_t)h * 3600 + m * 60 + sec;
        h = next_bit(cron->hours, hour + 1);
    }
    if (h == 64)
        return DAY;
    return (int64_t)h * 3600 + next_bit(cron->minutes, 0) * 60 + next_bit(cron->seconds, 0);
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/* The first match in [from, end); end: none. */
static int64_t next_local(const ew__cron *cron, int64_t from, int64_t end) {
    int64_t last = floor_div(end - 1, DAY);
    if (from >= end)
        return end;
    int64_t first = floor_div(from, DAY), day = next_day(cron, first, last);
    int64_t time = next_time(cron, day == first ? from - first * DAY : 0);
    if (time == DAY) { /* not on the first day any more */
        day = next_day(cron, day + 1, last);
        time = next_time(cron, 0);
    }
    int64_t at = day * DAY + time;
    return day <= last && at < end ? at : end;
}

/* ---- on the clock of a zone ---- */

static int64_t next_in_zone(const ew__cron *cron, int64_t after, int64_t end) {
    ew__zone_span span;
    int64_t from = after + 1;
    for (ew__zone_at(cron->zone, after, &span);; ew__zone_at(cron->zone, span.end, &span)) {
        int64_t stop = span.end < end ? span.end : end;
        int64_t local = from + span.offset;
        /* What the clock has shown before, until it was put back, does not count again. */
        if (!cron->steady && span.start != INT64_MIN && local < span.start + span.before)
            local = span.start + span.before;
        int64_t at = next_local(cron, local, stop + span.offset);
        if (at < stop + span.offset)
            return at - span.offset;
        if (span.end >= end)
            return end;
        /* What is left out because the clock is put forward is done right then. */
        ew__zone_span next;
        ew__zone_at(cron->zone, span.end, &next);
        int64_t gap = span.end + span.offset, gap_end = span.end + next.offset;
        if (!cron->steady && gap_end > gap && next_local(cron, gap, gap_end) < gap_end)
            return span.end;
        from = span.end;
    }
}

int64_t ew__cron_next(const ew__cron *cron, int64_t after) {
    int64_t seconds = floor_div(after, 1000);
    int64_t end = seconds + SEARCH_DAYS * DAY;
    int64_t at = cron->zone ? next_in_zone(cron, seconds, end) : next_local(cron, seconds + 1, end);
    return at < end ? at * 1000 : 0;
}
