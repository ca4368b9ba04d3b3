/*
 * call/trace.c: see trace.h. Ids come from the executor's generator: they are names, not secrets.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/trace.h"

static void fresh_id(ew__rng *rng, char *out, size_t words) {
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        do {
            word = ew__rng_next(rng);
        } while (word == 0); /* an id of zeros is invalid */
        uint8_t bytes[8];
        memcpy(bytes, &word, 8);
        ew__hex(bytes, 8, out + 16 * i);
    }
}

void ew__trace_new(ew__trace *trace, ew__rng *rng) {
    fresh_id(rng, trace->trace_id, 2);
    fresh_id(rng, trace->span_id, 1);
    trace->has_parent = false;
    trace->sampled = true;
}

static bool all_zero(const char *digits, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (digits[i] != '0')
            return false;
    return true;
}

static bool is_hex(const char *digits, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!((digits[i] >= '0' && digits[i] <= '9') || (digits[i] >= 'a' && digits[i] <= 'f')))
            return false;
    return true;
}

#define EACH ((uint64_t)0x0101010101010101)

/* In each byte, all of which are below 0x80: its highest bit is set where it is at least `least`. */
static inline uint64_t at_least(uint64_t bytes, char least) { return bytes + EACH * (0x80u - (unsigned)least); }

/* Eight digits at a time: each bridged call brings a trace. */
static bool is_hex_words(const char *digits, size_t words) {
    const uint64_t high = EACH * 0x80;
    uint64_t wrong = 0;
    for (size_t i = 0; i < words; i++) {
        uint64_t bytes;
        memcpy(&bytes, digits + 8 * i, 8);
        uint64_t low = bytes & ~high;
        uint64_t decimal = at_least(low, '0') & ~at_least(low, '9' + 1);
        uint64_t letter = at_least(low, 'a') & ~at_least(low, 'f' + 1);
        wrong |= (bytes | ~(decimal | letter)) & high;
    }
    return wrong == 0;
}

/* version-traceid-parentid-flags; a higher version may carry more behind another dash. */
static bool well_formed(ew_str text) {
    const char *p = text.ptr;
    if (text.len < EW__TRACEPARENT_LEN || p[2] != '-' || p[35] != '-' || p[52] != '-')
        return false;
    if (!is_hex(p, 2) || !is_hex_words(p + 3, 4) || !is_hex_words(p + 36, 2) || !is_hex(p + 53, 2))
        return false;
    if (memcmp(p, "ff", 2) == 0 || all_zero(p + 3, 32) || all_zero(p + 36, 16))
        return false;
    if (memcmp(p, "00", 2) == 0)
        return text.len == EW__TRACEPARENT_LEN;
    return text.len == EW__TRACEPARENT_LEN || p[EW__TRACEPARENT_LEN] == '-';
}

ew_err ew__trace_continue(ew__trace *trace, ew__rng *rng, ew_str traceparent) {
    traceparent = ew__str_trim(traceparent);
    if (!well_formed(traceparent)) {
        ew__trace_new(trace, rng);
        return EW_ESYNTAX;
    }
    fresh_id(rng, trace->span_id, 1);
    memcpy(trace->trace_id, traceparent.ptr + 3, 32);
    memcpy(trace->parent_id, traceparent.ptr + 36, 16);
    trace->has_parent = true;
    uint8_t flags = 0;
    trace->sampled = ew__unhex(ew__str(traceparent.ptr + 53, 2), &flags, 1) && (flags & 1);
    return EW_OK;
}

void ew__trace_child(ew__trace *trace, ew__rng *rng, const ew__trace *parent) {
    fresh_id(rng, trace->span_id, 1);
    memcpy(trace->trace_id, parent->trace_id, sizeof trace->trace_id);
    memcpy(trace->parent_id, parent->span_id, sizeof trace->parent_id);
    trace->has_parent = true;
    trace->sampled = parent->sampled;
}

void ew__trace_parent(const ew__trace *trace, char out[EW__TRACEPARENT_LEN]) {
    memcpy(out, "00-", 3);
    memcpy(out + 3, trace->trace_id, 32);
    out[35] = '-';
    memcpy(out + 36, trace->span_id, 16);
    memcpy(out + 52, trace->sampled ? "-01" : "-00", 3);
}

void ew__key_split(ew_str key, ew_str *ret_type, ew_str *ret_name) {
    const char *slash = key.len > 1 && key.ptr[0] == '/' ? memchr(key.ptr + 1, '/', key.len - 1) : NULL;
    size_t n = slash ? (size_t)(slash - key.ptr) : 0;
    *ret_type = slash ? ew__str(key.ptr + 1, n - 1) : ew__str(NULL, 0);
    *ret_name = slash ? ew__str(slash + 1, key.len - n - 1) : key;
}

ew_err ew__trace_path(ew__buf *out, ew_str above, ew_str key, bool last) {
    ew_str type, name;
    ew__key_split(key, &type, &name);
    ew__buf_str(out, above);
    ew__buf_cstr(out, "/{");
    ew__buf_str(out, name);
    ew__buf_cstr(out, ew__str_is(type, EW_STR("flow")) ? ",t:flow" : ",t:action");
    if (last && above.len && type.len) {
        ew__buf_cstr(out, ",s:");
        ew__buf_str(out, type);
    }
    return ew__buf_char(out, '}');
}

static bool key_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '*' || c == '/' || c == '@';
}

static bool member_ok(ew_str member) {
    size_t eq = 0;
    if (member.len > 0 &&
        !((member.ptr[0] >= 'a' && member.ptr[0] <= 'z') || (member.ptr[0] >= '0' && member.ptr[0] <= '9')))
        return false; /* a key begins with a letter or digit */
    while (eq < member.len && key_char(member.ptr[eq]))
        eq++;
    if (eq == 0 || eq > 256 || eq == member.len || member.ptr[eq] != '=')
        return false;
    if (member.len - eq - 1 == 0 || member.len - eq - 1 > 256)
        return false;
    for (size_t i = eq + 1; i < member.len; i++)
        if (member.ptr[i] < 0x20 || member.ptr[i] > 0x7e || member.ptr[i] == ',' || member.ptr[i] == '=')
            return false;
    return true;
}

bool ew__tracestate_ok(ew_str tracestate) {
    unsigned members = 0;
    if (tracestate.len == 0 || tracestate.len > 512)
        return false;
    while (tracestate.len > 0) {
        const char *comma = memchr(tracestate.ptr, ',', tracestate.len);
        size_t n = comma ? (size_t)(comma - tracestate.ptr) : tracestate.len;
        ew_str member = ew__str_trim(ew__str(tracestate.ptr, n));
        if (member.len > 0 && (!member_ok(member) || ++members > 32))
            return false;
        size_t step = comma ? n + 1 : n;
        tracestate = ew__str(tracestate.ptr + step, tracestate.len - step);
    }
    return members > 0;
}
