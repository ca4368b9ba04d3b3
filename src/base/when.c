/*
 * base/when.c: points in time as text, and ids. Plain arithmetic on the calendar instead of libc's time functions:
 * those know zones and locales, take locks, and stand on the path of every request that names a time.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/when.h"

/*
 * Days are counted in years that begin on March 1, so that the leap day is the last of its year, and from the year -400
 * on, so that no number is negative: January of the year 0 belongs to March's year -1.
 */
#define DAYS_TO_1970 719468u /* from March 1 of the year 0 */
#define DAYS_IN_400_YEARS 146097u
#define DAY_MS 86400000u
#define LAST_MS 253402300799999u /* the last moment of the year 9999 */

/* ---- reading ---- */

typedef struct fields {
    uint32_t year, month, day, hour, minute, second;
} fields;

/*
 * Whether eight bytes look like the form: digits where it has '0', the same byte where it has another. All at once: the
 * form cleared out of a word leaves the values of the digits and zeros, and what is more does not stay under 16.
 */
static inline bool has_form(const char *at, const char form[static 8], const char spare[static 8]) {
    uint64_t text, wanted, room;
    memcpy(&text, at, 8);
    memcpy(&wanted, form, 8);
    memcpy(&room, spare, 8); /* what may be added before a byte reaches 16: 6 to a digit, 15 to others */
    uint64_t rest = text ^ wanted;
    return ((rest | (rest + room)) & 0xf0f0f0f0f0f0f0f0u) == 0;
}

#define IS_YEAR_MONTH(at) has_form(at, "0000-00-", "\6\6\6\6\17\6\6\17")
#define IS_YEAR_MONTH_DAY(at) has_form(at, "00-00-00", "\6\6\17\6\6\17\6\6")
#define IS_TIME(at) has_form(at, "00:00:00", "\6\6\17\6\6\17\6\6")
#define IS_DIGITS(at) has_form(at, "00000000", "\6\6\6\6\6\6\6\6")

static inline uint32_t digit(char c) { return (uint32_t)(unsigned char)c - '0'; } /* more than 9: it is none */
static inline uint32_t pair(const char *at) { return digit(at[0]) * 10 + digit(at[1]); }

static bool is_leap(uint32_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

static uint32_t month_days(uint32_t year, uint32_t month) {
    if (month == 2) {
        return is_leap(year) ? 29 : 28;
    }
    return 30 + ((month + (month >> 3)) & 1);
}

/* The 19 bytes "2026-03-01T10:00:00". */
static bool read_fields(const char *at, fields *f) {
    bool letter = at[10] == 'T' || at[10] == 't' || at[10] == ' ';
    if (!letter || !IS_YEAR_MONTH(at) || !IS_YEAR_MONTH_DAY(at + 2) || !IS_TIME(at + 11)) {
        return false;
    }
    f->year = pair(at) * 100 + pair(at + 2);
    f->month = pair(at + 5);
    f->day = pair(at + 8);
    f->hour = pair(at + 11);
    f->minute = pair(at + 14);
    f->second = pair(at + 17);
    if (f->month - 1 > 11 || f->hour > 23 || f->minute > 59 || f->second > 60) {
        return false;
    }
    f->second -= f->second == 60;
    return f->day >= 1 && f->day <= month_days(f->year, f->month);
}

/* An offset in minutes; false: it is neither that nor absent. */
static bool read_offset(ew_str text, int32_t *ret) {
    *ret = 0;
    if (text.len == 0) {
        return true;
    }
    if (text.len == 1) {
        return text.ptr[0] == 'Z' || text.ptr[0] == 'z';
    }
    if (text.len != 6 || (text.ptr[0] != '+' && text.ptr[0] != '-') || text.ptr[3] != ':') {
        return false;
    }
    uint32_t hours = pair(text.ptr + 1), minutes = pair(text.ptr + 4);
    if (digit(text.ptr[2]) > 9 || digit(text.ptr[5]) > 9 || hours > 23 || minutes > 59) {
        return false; /* tens that are no digit make the number too large, ones may not */
    }
    int32_t offset = (int32_t)(hours * 60 + minutes);
    *ret = text.ptr[0] == '-' ? -offset : offset;
    return true;
}

/* How many bytes the fraction has with its dot; *ret_ms is what is whole milliseconds of it. */
static size_t read_fraction(ew_str text, uint32_t *ret_ms) {
    size_t n = 1;
    while (text.len - n >= 8 && IS_DIGITS(text.ptr + n)) {
        n += 8;
    }
    while (n < text.len && digit(text.ptr[n]) <= 9) {
        n++;
    }
    *ret_ms = (n > 1 ? digit(text.ptr[1]) * 100 : 0) + (n > 2 ? digit(text.ptr[2]) * 10 : 0) +
              (n > 3 ? digit(text.ptr[3]) : 0);
    return n;
}

static int64_t days_since_1970(const fields *f) {
    bool early = f->month <= 2;
    uint32_t year = f->year + 400 - (early ? 1 : 0);
    uint32_t month = f->month + (early ? 12 : 0) - 3; /* 0 is March */
    uint32_t days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + f->day - 1;
    return (int64_t)days - (int64_t)(DAYS_TO_1970 + DAYS_IN_400_YEARS);
}

bool ew__when_parse(ew_str text, int64_t *ret_ms) {
    fields f;
    if (text.len < 19 || !read_fields(text.ptr, &f)) {
        return false;
    }
    ew_str rest = ew__str(text.ptr + 19, text.len - 19);
    uint32_t ms = 0;
    if (rest.len > 0 && rest.ptr[0] == '.') {
        size_t n = read_fraction(rest, &ms);
        if (n == 1) {
            return false; /* a dot and no digit */
        }
        rest = ew__str(rest.ptr + n, rest.len - n);
    }
    int32_t offset;
    if (!read_offset(rest, &offset)) {
        return false;
    }
    int64_t minutes = (days_since_1970(&f) * 24 + f.hour) * 60 + f.minute - offset;
    *ret_ms = minutes * 60000 + f.second * 1000 + ms;
    return true;
}

/* ---- writing ---- */

static inline void put_pair(char *out, uint32_t number) {
    out[0] = (char)('0' + number / 10);
    out[1] = (char)('0' + number % 10);
}

static inline void put_thousandths(char *out, uint32_t number) {
    out[0] = (char)('0' + number / 100);
    put_pair(out + 1, number % 100);
}

static void put_date(uint32_t days, char out[10]) {
    days += DAYS_TO_1970;
    uint32_t of_era = days % DAYS_IN_400_YEARS;
    uint32_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint32_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100); /* 0 is March 1 */
    uint32_t month = (5 * of_year + 2) / 153;
    uint32_t year = days / DAYS_IN_400_YEARS * 400 + year_of_era + (month >= 10 ? 1 : 0);
    put_pair(out, year / 100);
    put_pair(out + 2, year % 100);
    out[4] = '-';
    put_pair(out + 5, month < 10 ? month + 3 : month - 9);
    out[7] = '-';
    put_pair(out + 8, of_year - (153 * month + 2) / 5 + 1);
}

void ew__when_write(uint64_t ms, char out[EW__WHEN_LEN]) {
    ms = ms < LAST_MS ? ms : LAST_MS;
    uint32_t of_day = (uint32_t)(ms % DAY_MS), seconds = of_day / 1000, thousandths = of_day % 1000;
    put_date((uint32_t)(ms / DAY_MS), out);
    out[10] = 'T';
    put_pair(out + 11, seconds / 3600);
    out[13] = ':';
    put_pair(out + 14, seconds / 60 % 60);
    out[16] = ':';
    put_pair(out + 17, seconds % 60);
    out[19] = '.';
    put_thousandths(out + 20, thousandths);
    out[23] = 'Z';
}

void ew__when_write_again(ew__when_memo *memo, uint64_t ms, char out[EW__WHEN_LEN]) {
    uint64_t second = ms / 1000 + 1;
    if (memo->second != second || ms > LAST_MS) {
        ew__when_write(ms, memo->text);
        memo->second = second;
    } else {
        put_thousandths(memo->text + 20, (uint32_t)(ms % 1000));
    }
    memcpy(out, memo->text, EW__WHEN_LEN);
}

/* ---- ids ---- */

void ew__uuid_write(ew__rng *rng, char out[EW__UUID_LEN]) {
    uint8_t bytes[16];
    char digits[32];
    for (size_t i = 0; i < sizeof(bytes); i += 8) {
        uint64_t word = ew__rng_next(rng);
        memcpy(bytes + i, &word, 8);
    }
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40); /* version 4: by chance */
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80); /* the variant of RFC 9562 */
    ew__hex(bytes, sizeof(bytes), digits);
    memcpy(out, digits, 8);
    memcpy(out + 9, digits + 8, 4);
    memcpy(out + 14, digits + 12, 4);
    memcpy(out + 19, digits + 16, 4);
    memcpy(out + 24, digits + 20, 12);
    out[8] = out[13] = out[18] = out[23] = '-';
}
