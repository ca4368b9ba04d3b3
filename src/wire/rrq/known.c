/*
 * wire/rrq/known.c: fast path for requests as the existing orchestrators write them and for successes
 * as our runners write them: members in one order, no white space, plain ASCII around the params (the
 * result). Matched from front to back, each byte once. The params (the result) are JSON of any shape and
 * are validated as values inside the two containers around them. A frame that does not match in every
 * byte takes the general path, which must return the same for each frame that this file accepts.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/rrq/codec.h"
#include "json/note.h"
#include "wire/hops.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

typedef struct cursor {
    const char *at, *end;
} cursor;

/* Whether n bytes are the same: in words, which overlap at the end. n is a constant wherever it is used. */
INLINE bool same(const char *a, const char *b, size_t n) {
    uint64_t x, y, differ = 0;
    if (n < 8)
        return memcmp(a, b, n) == 0;
#pragma GCC unroll 8
    for (size_t i = 0; i < n; i += 8) {
        size_t at = i + 8 <= n ? i : n - 8;
        memcpy(&x, a + at, 8);
        memcpy(&y, b + at, 8);
        differ |= x ^ y;
    }
    return differ == 0;
}

INLINE bool skip(cursor *c, const char *text, size_t n) {
    if ((size_t)(c->end - c->at) < n || !same(c->at, text, n))
        return false;
    c->at += n;
    return true;
}
#define SKIP(c, text) skip(c, text, sizeof(text) - 1)

/* ---- strings ---- */

/*
 * The first byte that does not belong to a plain string: a quote, a backslash, a control byte, anything but ASCII. end
 * if there is none.
 */
static const char *plain_end(const char *at, const char *end) {
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), space = _mm_set1_epi8(' ');
    for (; end - at >= 16; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i stop = _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash));
        stop = _mm_or_si128(stop, _mm_cmplt_epi8(bytes, space)); /* signed: what is not ASCII is less, too */
        int mask = _mm_movemask_epi8(stop);
        if (mask)
            return at + __builtin_ctz((unsigned)mask);
    }
#endif
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)(*at - 0x20) < 0x60)
        at++;
    return at;
}

bool ew__rrq_is_plain(ew_str text) {
    return text.len == 0 || plain_end(text.ptr, text.ptr + text.len) == text.ptr + text.len;
}

/* A plain string, with its quotes. */
INLINE bool take_string(cursor *c, ew_str *ret) {
    const char *first = c->at;
    if (first == c->end || *first != '"')
        return false;
    const char *last = plain_end(first + 1, c->end);
    if (last == c->end || *last != '"')
        return false;
    c->at = last + 1;
    *ret = ew__str(first, (size_t)(c->at - first));
    return true;
}

INLINE bool take_id(cursor *c, ew_str *ret) { return take_string(c, ret) && ret->len <= EW__RRQ_ID_MAX; }

/* ---- other values ---- */

/* null is nothing. */
static bool take_string_or_null(cursor *c, ew_str *ret) { return SKIP(c, "null") || take_string(c, ret); }

/* An object of strings; null is nothing. *ret_hops: that member of it, or empty; may be NULL. */
static bool take_strings(cursor *c, ew_str *ret, ew_str *ret_hops) {
    static const char hops[] = "\"" EW__RRQ_HOPS "\"";
    const char *first = c->at;
    ew_str name, value;
    if (SKIP(c, "null"))
        return true;
    if (!SKIP(c, "{"))
        return false;
    bool more = c->at < c->end && *c->at == '"';
    while (more) {
        if (!take_string(c, &name) || !SKIP(c, ":") || !take_string(c, &value))
            return false;
        if (EW__UNLIKELY(name.len == sizeof hops - 1) && ret_hops && !ret_hops->len &&
            same(name.ptr, hops, sizeof hops - 1))
            *ret_hops = value;
        more = SKIP(c, ",");
    }
    *ret = ew__str(first, (size_t)(c->at - first) + 1);
    return SKIP(c, "}");
}

/* Nine digits at most: what is larger is read, and judged, elsewhere. */
static bool take_attempt(cursor *c, uint32_t *ret) {
    const char *first = c->at;
    uint32_t number = 0;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9' && c->at - first < 10)
        number = number * 10 + (uint32_t)(*c->at++ - '0');
    ptrdiff_t n = c->at - first;
    *ret = number;
    return n > 0 && n < 10 && (n == 1 || *first != '0');
}

static bool read_time(ew_str string, int64_t *ret_ms) {
    return ew__when_parse(ew__str(string.ptr + 1, string.len - 2), ret_ms);
}

/* ---- requests ---- */

/* The members of a context, from its brace to the last of them; null is absent. */
static bool split_context(cursor *c, ew_str value[EW__RRQ_N_CONTEXT]) {
    const char *number;
    uint32_t attempt;
    if (!SKIP(c, "{\"job_id\":") || !take_string(c, &value[EW__RRQ_JOB]) || !SKIP(c, ",\"attempt\":"))
        return false;
    number = c->at;
    if (!take_attempt(c, &attempt))
        return false;
    value[EW__RRQ_ATTEMPT] = ew__str(number, (size_t)(c->at - number));
    return SKIP(c, ",\"enqueue_time\":") && take_string(c, &value[EW__RRQ_ENQUEUED]) && SKIP(c, ",\"queue_name\":") &&
           take_string(c, &value[EW__RRQ_QUEUE]) &&
           (!SKIP(c, ",\"deadline\":") || take_string_or_null(c, &value[EW__RRQ_DEADLINE])) &&
           (!SKIP(c, ",\"trace_context\":") || take_strings(c, &value[EW__RRQ_TRACE], NULL)) &&
           (!SKIP(c, ",\"correlation_context\":") || take_strings(c, &value[EW__RRQ_CORRELATION], NULL)) &&
           (!SKIP(c, ",\"worker_id\":") || take_string_or_null(c, &value[EW__RRQ_WORKER]));
}

bool ew__rrq_split_known(ew_str context, ew_str ret[EW__RRQ_N_CONTEXT]) {
    cursor c = {context.ptr, context.ptr + context.len};
    memset(ret, 0, EW__RRQ_N_CONTEXT * sizeof *ret);
    return split_context(&c, ret) && SKIP(&c, "}") && c.at == c.end;
}

/* From its brace to the end of the frame. */
static bool take_context(cursor *c, ew__rrq_request *ret) {
    const char *first = c->at;
    ew_str job, time, queue, deadline = {NULL, 0}, worker = {NULL, 0}, hops = {NULL, 0};
    int64_t enqueued;
    if (!SKIP(c, "{\"job_id\":") || !take_string(c, &job) || !SKIP(c, ",\"attempt\":") ||
        !take_attempt(c, &ret->attempt) || !SKIP(c, ",\"enqueue_time\":") || !take_string(c, &time) ||
        !SKIP(c, ",\"queue_name\":") || !take_string(c, &queue) || !read_time(time, &enqueued))
        return false;
    uint32_t lead = (uint32_t)(c->at - first);
    if (SKIP(c, ",\"deadline\":") && !take_string_or_null(c, &deadline))
        return false;
    ret->has_deadline = deadline.len > 0;
    if (ret->has_deadline && !read_time(deadline, &ret->deadline_ms))
        return false;
    if (SKIP(c, ",\"trace_context\":") && !take_strings(c, &ret->trace, &hops))
        return false;
    if (EW__UNLIKELY(hops.len > 0))
        ret->hops = ew__hops_read(ew__str(hops.ptr + 1, hops.len - 2));
    const char *rest = c->at;
    if (SKIP(c, ",\"correlation_context\":") && !take_strings(c, &ret->labels, NULL))
        return false;
    if (ret->labels.len == 0)
        rest = c->at; /* null: we leave that out */
    if (SKIP(c, ",\"worker_id\":") && !take_string_or_null(c, &worker))
        return false;
    ret->context = ew__str(first, (size_t)(c->at - first) + 1);
    if (worker.len) /* as we write it */
        ret->spans = (ew__rrq_spans){.job = (uint32_t)job.len, .lead = lead, .rest = (uint32_t)(c->at - rest) + 1};
    return SKIP(c, "}}}") && c->at == c->end;
}

/*
 * The context is the last member, so it ends with the frame; where it begins is found from there: behind its brace come
 * at most those of the two objects in it. A member of that name in the params does not end the frame with three
 * braces, or what precedes it is no whole object.
 */
static bool take_params_and_context(cursor *c, ew__rrq_request *ret) {
    static const char name[] = ",\"context\":";
    const size_t n = sizeof name - 1;
    const char *params = c->at, *at = c->end;
    for (int tries = 0; tries < 3 && (at = memrchr(params, '{', (size_t)(at - params))) != NULL; tries++) {
        if ((size_t)(at - params) < n || !same(at - n, name, n))
            continue;
        c->at = at;
        ret->params = ew__str(params, (size_t)(at - params) - n);
        return take_context(c, ret) && ret->params.len > 1 && params[0] == '{' && params[ret->params.len - 1] == '}' &&
               ew__json_is_payload(ret->params);
    }
    return false;
}

bool ew__rrq_read_known(ew_str text, ew__rrq_request *ret) {
    cursor c = {text.ptr, text.ptr + text.len};
    memset(ret, 0, sizeof *ret);
    return SKIP(&c, "{\"type\":\"request\",\"payload\":{\"protocol_version\":\"2\",\"request_id\":") &&
           take_id(&c, &ret->ids.request) && SKIP(&c, ",\"job_id\":") && take_id(&c, &ret->ids.job) &&
           SKIP(&c, ",\"function_name\":") && take_string(&c, &ret->function) && SKIP(&c, ",\"params\":") &&
           take_params_and_context(&c, ret);
}

/* ---- outcomes ---- */

bool ew__rrq_read_known_success(ew_str text, ew__rrq_ids *ret_ids, ew_str *ret_result) {
    static const char end[] = "}}";
    const size_t n = sizeof end - 1;
    cursor c = {text.ptr, text.ptr + text.len};
    if (!SKIP(&c, "{\"type\":\"response\",\"payload\":{\"job_id\":") || !take_id(&c, &ret_ids->job) ||
        !SKIP(&c, ",\"request_id\":") || !take_id(&c, &ret_ids->request) ||
        !SKIP(&c, ",\"status\":\"success\",\"result\":") || (size_t)(c.end - c.at) <= n || !same(c.end - n, end, n))
        return false;
    *ret_result = ew__str(c.at, (size_t)(c.end - c.at) - n);
    if (ew__json_is_space(c.at[0]) || ew__json_is_space(c.end[-(ptrdiff_t)n - 1]))
        return false; /* the general path removes it: a payload must not begin or end with white space */
    return ew__json_is_payload(*ret_result);
}
