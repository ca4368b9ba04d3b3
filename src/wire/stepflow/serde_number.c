/*
 * wire/stepflow/serde_number.c: see serde_number.h. Reading follows serde_json step by step, because where it stops to count
 * digits and how it scales decides about the last bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/serde_number.h"
#include "base/util.h"
#include "wire/stepflow/shortest.h"
#include <math.h>

static const double powers_of_ten[] = {
    1e0,   1e1,   1e2,   1e3,   1e4,   1e5,   1e6,   1e7,   1e8,   1e9,   1e10,  1e11,  1e12,  1e13,  1e14,  1e15,
    1e16,  1e17,  1e18,  1e19,  1e20,  1e21,  1e22,  1e23,  1e24,  1e25,  1e26,  1e27,  1e28,  1e29,  1e30,  1e31,
    1e32,  1e33,  1e34,  1e35,  1e36,  1e37,  1e38,  1e39,  1e40,  1e41,  1e42,  1e43,  1e44,  1e45,  1e46,  1e47,
    1e48,  1e49,  1e50,  1e51,  1e52,  1e53,  1e54,  1e55,  1e56,  1e57,  1e58,  1e59,  1e60,  1e61,  1e62,  1e63,
    1e64,  1e65,  1e66,  1e67,  1e68,  1e69,  1e70,  1e71,  1e72,  1e73,  1e74,  1e75,  1e76,  1e77,  1e78,  1e79,
    1e80,  1e81,  1e82,  1e83,  1e84,  1e85,  1e86,  1e87,  1e88,  1e89,  1e90,  1e91,  1e92,  1e93,  1e94,  1e95,
    1e96,  1e97,  1e98,  1e99,  1e100, 1e101, 1e102, 1e103, 1e104, 1e105, 1e106, 1e107, 1e108, 1e109, 1e110, 1e111,
    1e112, 1e113, 1e114, 1e115, 1e116, 1e117, 1e118, 1e119, 1e120, 1e121, 1e122, 1e123, 1e124, 1e125, 1e126, 1e127,
    1e128, 1e129, 1e130, 1e131, 1e132, 1e133, 1e134, 1e135, 1e136, 1e137, 1e138, 1e139, 1e140, 1e141, 1e142, 1e143,
    1e144, 1e145, 1e146, 1e147, 1e148, 1e149, 1e150, 1e151, 1e152, 1e153, 1e154, 1e155, 1e156, 1e157, 1e158, 1e159,
    1e160, 1e161, 1e162, 1e163, 1e164, 1e165, 1e166, 1e167, 1e168, 1e169, 1e170, 1e171, 1e172, 1e173, 1e174, 1e175,
    1e176, 1e177, 1e178, 1e179, 1e180, 1e181, 1e182, 1e183, 1e184, 1e185, 1e186, 1e187, 1e188, 1e189, 1e190, 1e191,
    1e192, 1e193, 1e194, 1e195, 1e196, 1e197, 1e198, 1e199, 1e200, 1e201, 1e202, 1e203, 1e204, 1e205, 1e206, 1e207,
    1e208, 1e209, 1e210, 1e211, 1e212, 1e213, 1e214, 1e215, 1e216, 1e217, 1e218, 1e219, 1e220, 1e221, 1e222, 1e223,
    1e224, 1e225, 1e226, 1e227, 1e228, 1e229, 1e230, 1e231, 1e232, 1e233, 1e234, 1e235, 1e236, 1e237, 1e238, 1e239,
    1e240, 1e241, 1e242, 1e243, 1e244, 1e245, 1e246, 1e247, 1e248, 1e249, 1e250, 1e251, 1e252, 1e253, 1e254, 1e255,
    1e256, 1e257, 1e258, 1e259, 1e260, 1e261, 1e262, 1e263, 1e264, 1e265, 1e266, 1e267, 1e268, 1e269, 1e270, 1e271,
    1e272, 1e273, 1e274, 1e275, 1e276, 1e277, 1e278, 1e279, 1e280, 1e281, 1e282, 1e283, 1e284, 1e285, 1e286, 1e287,
    1e288, 1e289, 1e290, 1e291, 1e292, 1e293, 1e294, 1e295, 1e296, 1e297, 1e298, 1e299, 1e300, 1e301, 1e302, 1e303,
    1e304, 1e305, 1e306, 1e307, 1e308,
};
#define LARGEST_POWER ((int)(sizeof powers_of_ten / sizeof *powers_of_ten) - 1)

/* ---- reading ---- */

typedef struct reader {
    const char *at, *end;
    uint64_t digits; /* the number is digits * 10^exponent */
    int64_t exponent;
} reader;

static bool on_digit(const reader *r) { return r->at < r->end && *r->at >= '0' && *r->at <= '9'; }

static bool on(const reader *r, char c) { return r->at < r->end && *r->at == c; }

/* Takes digits while they fit; leaves the rest. Returns how many. */
static int64_t take_digits(reader *r) {
    const char *start = r->at;
    for (; on_digit(r); r->at++) {
        unsigned digit = (unsigned)(*r->at - '0');
        if (r->digits > (UINT64_MAX - digit) / 10) {
            break;
        }
        r->digits = r->digits * 10 + digit;
    }
    return r->at - start;
}

static int64_t skip_digits(reader *r) {
    const char *start = r->at;
    while (on_digit(r)) {
        r->at++;
    }
    return r->at - start;
}

/* The exponent after its letter; beyond 32 bits it stays there, far from every double either way. */
static int64_t take_exponent(reader *r) {
    int64_t exponent = 0;
    bool negative = on(r, '-');
    r->at += negative || on(r, '+');
    for (; on_digit(r); r->at++) {
        exponent = exponent * 10 + (*r->at - '0');
        exponent = exponent < INT32_MAX ? exponent : INT32_MAX;
    }
    return negative ? -exponent : exponent;
}

/* digits * 10^exponent, infinite when it is too large. */
static double scale(uint64_t digits, int64_t exponent) {
    double number = (double)digits;
    while (exponent < -LARGEST_POWER && number > 0) {
        number /= 1e308;
        exponent += 308;
    }
    if (!(number > 0)) {
        return 0;
    }
    if (exponent > LARGEST_POWER) {
        return INFINITY;
    }
    return exponent < 0 ? number / powers_of_ten[-exponent] : number * powers_of_ten[exponent];
}

/* Whether it is an integer of 64 bits; else *ret is the double. */
static bool read_number(ew_str text, bool negative, double *ret) {
    reader r = {text.ptr + negative, text.ptr + text.len, 0, 0};
    take_digits(&r);
    if (r.at == r.end) {
        *ret = (double)r.digits;
        return !negative || (r.digits > 0 && r.digits <= (uint64_t)INT64_MAX + 1);
    }
    r.exponent = skip_digits(&r);
    if (on(&r, '.')) {
        r.at++;
        r.exponent -= take_digits(&r); /* if the digits before the point did not fit, some behind it may */
        skip_digits(&r);
    }
    if (on(&r, 'e') || on(&r, 'E')) {
        r.at++;
        r.exponent += take_exponent(&r);
    }
    *ret = scale(r.digits, r.exponent);
    return false;
}

/* ---- writing ---- */

#define PLAIN_MAX 16 /* digits before the point of a number without an exponent */
#define PLAIN_MIN (-4)

static char *put(char *to, const char *bytes, int n) {
    memcpy(to, bytes, (size_t)n);
    return to + n;
}

static char *put_zeros(char *to, int n) {
    memset(to, '0', (size_t)n);
    return to + n;
}

/* A number above zero. */
static char *write_digits(char *to, double number) {
    char digits[20];
    int exponent;
    uint64_t shortest = ew__shortest(number, &exponent);
    int n = (int)ew__u64_text(shortest, digits);
    int whole = n + exponent; /* digits before the point; 0 or less: zeros after it */
    if (exponent >= 0 && whole <= PLAIN_MAX) {
        to = put_zeros(put(to, digits, n), exponent);
        return put(to, ".0", 2);
    }
    if (whole > 0 && whole <= PLAIN_MAX) {
        to = put(put(to, digits, whole), ".", 1);
        return put(to, digits + whole, n - whole);
    }
    if (whole <= 0 && whole >= PLAIN_MIN) {
        to = put_zeros(put(to, "0.", 2), -whole);
        return put(to, digits, n);
    }
    to = put(to, digits, 1);
    if (n > 1) {
        to = put(put(to, ".", 1), digits + 1, n - 1);
    }
    to = put(to, whole > 0 ? "e" : "e-", whole > 0 ? 1 : 2);
    return to + ew__u64_text((uint64_t)(whole > 0 ? whole - 1 : 1 - whole), to);
}

ew_str ew__serde_number(ew_str number, char room[EW__SERDE_NUMBER_MAX]) {
    double value;
    bool negative = number.len > 0 && number.ptr[0] == '-';
    if (read_number(number, negative, &value) || isinf(value)) {
        return number;
    }
    char *to = put(room, "-", negative);
    to = value > 0 ? write_digits(to, value) : put(to, "0.0", 3);
    return ew__str(room, (size_t)(to - room));
}
