/*
 * base/util.c: the small things of base/util.h. No state, no memory, no locale.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "base/printable.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <stdarg.h>
#include <stdio.h>

/* ---- slices ---- */

static unsigned char lower(char c) { return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c); }

static bool same_letters(const char *a, const char *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (a[i] != b[i] && lower(a[i]) != lower(b[i])) {
            return false;
        }
    }
    return true;
}

bool ew__str_is_nocase(ew_str a, ew_str b) {
    if (a.len != b.len) {
        return false;
    }
    size_t i = 0;
    /*
     * Eight at once: equal but for the bit that tells cases apart; only words that differ in it are looked at by
     * letter.
     */
    for (uint64_t x, y; i + 8 <= a.len; i += 8) {
        memcpy(&x, a.ptr + i, 8);
        memcpy(&y, b.ptr + i, 8);
        uint64_t differ = x ^ y;
        if ((differ & ~0x2020202020202020u) != 0) {
            return false;
        }
        if (differ != 0 && !same_letters(a.ptr + i, b.ptr + i, 8)) {
            return false;
        }
    }
    return same_letters(a.ptr + i, b.ptr + i, a.len - i);
}

bool ew__str_has_prefix(ew_str text, ew_str prefix) {
    return text.len >= prefix.len && (prefix.len == 0 || memcmp(text.ptr, prefix.ptr, prefix.len) == 0);
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

void ew__enumerate(char *out, size_t size, const char *const *items, size_t n, const char *last) {
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : last, items[i]);
}

ew_str ew__str_trim(ew_str text) {
    while (text.len > 0 && is_blank(text.ptr[text.len - 1])) {
        text.len--;
    }
    while (text.len > 0 && is_blank(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    return text;
}

/* ---- numbers ---- */

#define PAIRS_OF(tens) tens "0" tens "1" tens "2" tens "3" tens "4" tens "5" tens "6" tens "7" tens "8" tens "9"

static const char digit_pairs[] = PAIRS_OF("0") PAIRS_OF("1") PAIRS_OF("2") PAIRS_OF("3") PAIRS_OF("4") PAIRS_OF("5")
    PAIRS_OF("6") PAIRS_OF("7") PAIRS_OF("8") PAIRS_OF("9");

size_t ew__u64_text(uint64_t number, char out[20]) {
    char text[20];
    size_t at = sizeof(text);
    while (number >= 100) {
        at -= 2;
        memcpy(text + at, digit_pairs + number % 100 * 2, 2);
        number /= 100;
    }
    if (number >= 10) {
        at -= 2;
        memcpy(text + at, digit_pairs + number * 2, 2);
    } else {
        text[--at] = (char)('0' + number);
    }
    memcpy(out, text + at, sizeof(text) - at);
    return sizeof(text) - at;
}

bool ew__u64_parse(ew_str text, uint64_t *ret) {
    uint64_t number = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)(unsigned char)text.ptr[i] - '0';
        if (digit > 9 || (i >= 18 && number > (UINT64_MAX - digit) / 10)) { /* 18 digits always fit */
            return false;
        }
        number = number * 10 + digit;
    }
    if (text.len == 0) {
        return false;
    }
    *ret = number;
    return true;
}

/* ---- hex ---- */

#define EVERY_BYTE(value) (0x0101010101010101u * (value))

/* Four bytes to eight digits at once: the nibbles are spread over the bytes of a word and become letters together. */
static void hex4(const uint8_t *bytes, char *out) {
    uint64_t x = (uint64_t)bytes[0] | (uint64_t)bytes[1] << 16 | (uint64_t)bytes[2] << 32 | (uint64_t)bytes[3] << 48;
    uint64_t nibbles = ((x >> 4) & 0x000f000f000f000fu) | (x & 0x000f000f000f000fu) << 8;
    uint64_t letters = ((nibbles + EVERY_BYTE(6)) >> 4) & EVERY_BYTE(1); /* 1 in each byte that holds 10 or more */
    uint64_t text = nibbles + EVERY_BYTE('0') + letters * ('a' - '0' - 10);
    /* Written out because gcc makes one store of this, but not of a loop. */
    out[0] = (char)text;
    out[1] = (char)(text >> 8);
    out[2] = (char)(text >> 16);
    out[3] = (char)(text >> 24);
    out[4] = (char)(text >> 32);
    out[5] = (char)(text >> 40);
    out[6] = (char)(text >> 48);
    out[7] = (char)(text >> 56);
}

#if defined(__SSE2__)
/* The same for eight bytes. */
static void hex8(const uint8_t *bytes, char *out) {
    const __m128i low = _mm_set1_epi8(15);
    __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)bytes);
    __m128i digits = _mm_unpacklo_epi8(_mm_and_si128(_mm_srli_epi16(x, 4), low), _mm_and_si128(x, low));
    __m128i letters = _mm_and_si128(_mm_cmpgt_epi8(digits, _mm_set1_epi8(9)), _mm_set1_epi8('a' - '0' - 10));
    __m128i text = _mm_add_epi8(_mm_add_epi8(digits, _mm_set1_epi8('0')), letters);
    _mm_storeu_si128((__m128i *)(void *)out, text);
}
#endif

void ew__hex(const uint8_t *bytes, size_t n, char *out) {
#if defined(__SSE2__)
    for (; n >= 8; n -= 8, bytes += 8, out += 16) {
        hex8(bytes, out);
    }
#endif
    for (; n >= 4; n -= 4, bytes += 4, out += 8) {
        hex4(bytes, out);
    }
    for (; n > 0; n--, bytes++, out += 2) {
        out[0] = "0123456789abcdef"[*bytes >> 4];
        out[1] = "0123456789abcdef"[*bytes & 15];
    }
}

/* The value of a digit, or more than 15. */
static unsigned unhex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0');
    }
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

bool ew__unhex(ew_str text, uint8_t *out, size_t n) {
    if (text.len % 2 != 0 || text.len / 2 != n) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (unhex_digit(text.ptr[i]) > 15) {
            return false; /* before anything is written */
        }
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = (uint8_t)(unhex_digit(text.ptr[2 * i]) << 4 | unhex_digit(text.ptr[2 * i + 1]));
    }
    return true;
}

/* ---- the generator ---- */

static uint64_t rotate(uint64_t x, unsigned bits) { return (x << bits) | (x >> (64 - bits)); }

void ew__rng_init(ew__rng *rng, const ew_env *env) {
    env->random(env->ud, rng->s, sizeof(rng->s));
    if ((rng->s[0] | rng->s[1] | rng->s[2] | rng->s[3]) == 0) {
        rng->s[0] = 1; /* from all zeros it would never leave */
    }
}

uint64_t ew__rng_next(ew__rng *rng) {
    uint64_t *s = rng->s;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

/* ---- log lines ---- */

#define LINE_BYTES ((size_t)1024)

/* A cut text without the character that the cut went through. */
static size_t whole_characters(const unsigned char *text, size_t n) {
    size_t tail = 0;
    while (tail < 3 && tail < n && (text[n - 1 - tail] & 0xc0) == 0x80) {
        tail++;
    }
    if (tail == n || text[n - 1 - tail] < 0xc0) {
        return n;
    }
    unsigned char lead = text[n - 1 - tail];
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    return tail + 1 < length ? n - 1 - tail : n;
}

/*
 * Writes a byte that must not be shown as \xNN while the rest of the line still fits after it, else
 * as '?'. Returns how many bytes.
 */
static size_t put_escaped(char *out, size_t room, size_t rest, unsigned char c) {
    if (room < 4 + rest) {
        out[0] = '?';
        return 1;
    }
    out[0] = '\\';
    out[1] = 'x';
    ew__hex(&c, 1, out + 2);
    return 4;
}

void ew__log(const ew_env *env, ew_log_level level, const char *room, const char *format, ...) {
    if (env->log == NULL) {
        return;
    }
    unsigned char text[LINE_BYTES + 1];
    va_list args;
    va_start(args, format);
    int printed = vsnprintf((char *)text, sizeof(text), format, args);
    va_end(args);
    size_t n = printed < 0 ? 0 : (size_t)printed;
    if (n > LINE_BYTES) {
        n = whole_characters(text, LINE_BYTES);
    }
    char line[LINE_BYTES];
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        size_t shown = ew__printable_size(ew__str(text, n), i);
        if (shown == 0) {
            len += put_escaped(line + len, sizeof(line) - len, n - i - 1, text[i]);
            i++;
        }
        memcpy(line + len, text + i, shown);
        len += shown;
        i += shown;
    }
    env->log(env->ud, level, room, ew__str(line, len));
}
