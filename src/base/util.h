/*
 * base/util.h: small things that every room needs: slices, hex, numbers to text, a fast generator, log lines.
 */
#ifndef EW_BASE_UTIL_H
#define EW_BASE_UTIL_H

#include <everywire/env.h>
#include <string.h>

#define EW__MS(ms) ((uint64_t)(ms)*1000000u) /* milliseconds in nanoseconds */

/* The struct around a member. */
#define ew__container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#if defined(__GNUC__)
#define EW__LIKELY(x) __builtin_expect(!!(x), 1)
#define EW__UNLIKELY(x) __builtin_expect(!!(x), 0)
#else
#define EW__LIKELY(x) (x)
#define EW__UNLIKELY(x) (x)
#endif

/* The caller must use the result of this function. */
#if defined(__GNUC__)
#define EW__MUST_USE __attribute__((warn_unused_result))
#else
#define EW__MUST_USE
#endif

static inline ew_str ew__str(const void *ptr, size_t len) {
    ew_str s = {(const char *)ptr, len};
    return s;
}

static inline bool ew__str_is(ew_str a, ew_str b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}
bool ew__str_is_nocase(ew_str a, ew_str b); /* ASCII only, no locale */
bool ew__str_has_prefix(ew_str text, ew_str prefix);
/* "a, b or c" with last = " or "; cut at size. */
void ew__enumerate(char *out, size_t size, const char *const *items, size_t n, const char *last);
ew_str ew__str_trim(ew_str text); /* without spaces and tabs around it */

size_t ew__u64_text(uint64_t number, char out[20]);      /* decimal digits; returns how many */
bool ew__u64_parse(ew_str text, uint64_t *ret);          /* digits only, no sign, no overflow */
void ew__hex(const uint8_t *bytes, size_t n, char *out); /* 2n lower-case digits, no NUL */
bool ew__unhex(ew_str text, uint8_t *out, size_t n);     /* exactly 2n lower-case digits */

/* xoshiro256**: fast and good, not for secrets. Seeded from env->random. */
typedef struct ew__rng {
    uint64_t s[4];
} ew__rng;
void ew__rng_init(ew__rng *rng, const ew_env *env);
uint64_t ew__rng_next(ew__rng *rng);

/*
 * Formats one line, escapes what a terminal must not show (printable.h) and hands it to env->log
 * (if there is one). Never fails; long lines are cut at 1 KiB.
 */
void ew__log(const ew_env *env, ew_log_level level, const char *room, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
