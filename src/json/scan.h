/*
 * json/scan.h: the pieces behind ew__json_parse: one scanner built for two instruction sets, and a plain byte by byte
 * checker that says where a refused text is wrong. Only this room and its tests include it.
 */
#ifndef EW_JSON_SCAN_H
#define EW_JSON_SCAN_H

#include "json/json.h"
#include <everywire/limits.h>

/* AVX2 is compiled in where the compiler can aim a single function at it; the processor is asked at run time. */
#if defined(__GNUC__) && defined(__x86_64__)
#define EW__JSON_AVX2 1
#else
#define EW__JSON_AVX2 0
#endif

/* Whether this processor has what the AVX2 scanner needs. Reads a table that the C runtime filled at start. */
static inline bool ew__json_has_avx2(void) {
#if EW__JSON_AVX2
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
#else
    return false;
#endif
}

/*
 * Is the text valid? Fills doc's nodes, escaped_keys, complete, root_complete, has_newline and n_nodes when doc is not
 * NULL. No position on failure: ew__json_locate finds it, and whether it is the depth. text.len < 4 GiB.
 * limit: of depth, at most EW_JSON_DEPTH.
 */
bool ew__json_scan_portable(ew__json_doc *doc, ew_str text, uint32_t limit);
#if EW__JSON_AVX2
bool ew__json_scan_avx2(ew__json_doc *doc, ew_str text, uint32_t limit);
#endif

/*
 * One byte at a time: EW_OK, EW_ESYNTAX or EW_ELIMIT (more than `limit` levels, at most EW_JSON_DEPTH), and the
 * offending byte (text.len when the text stops too early).
 */
ew_err ew__json_locate(ew_str text, unsigned limit, size_t *ret_position);

/* Whether a number or literal begins at `at` and something that may follow one comes after it. at < end. */
bool ew__json_scalar_ok(const char *at, const char *end);

/* ew__json_parse on the portable scanner, whatever the processor: for tests and measurements. */
ew_err ew__json_parse_portable(ew__json_doc *doc, ew_str text);

/*
 * The byte after the container that begins at `at` ('{' or '['), or `end` when it does not end before. Trusts the text
 * to be valid, but never reads outside [at, end).
 */
const char *ew__json_skip_container(const char *at, const char *end);
const char *ew__json_skip_container_portable(const char *at, const char *end);
#if EW__JSON_AVX2
const char *ew__json_skip_container_avx2(const char *at, const char *end);
#endif

#endif
