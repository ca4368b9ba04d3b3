/*
 * frame/known_heads.c: heads that were read before. Peers repeat their heads, but for values that change from call to
 * call: a trace, a date, a length. Such a head is recognised by comparing it, and what was understood then holds again.
 * Nothing is guessed: a value may differ only where neither the guard nor llhttp asks what it is, has to pass the check
 * that it would have to pass otherwise, and keeps its length; everything else is read in full.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "frame/http1_state.h"

enum { KNOWN_LEN = 480, KNOWN_FIELDS = 16, LENGTH_DIGITS = 18 /* always fit */ };

typedef struct place {
    uint16_t name, name_len, value, value_len; /* offsets are from the head's first byte */
} place;

/* A head and everything that reading it came to. */
struct ew__known_head {
    const ew__http1_limits *limits; /* NULL: free */
    llhttp_t parser;
    ew__http_guard guard;
    ew__http_head head;
    uint16_t len, target, target_len;
    uint16_t varies; /* bit i: the value of field i is not always the same */
    uint8_t state;
    uint8_t length_at; /* which field is Content-Length, if its value may vary; else KNOWN_FIELDS */
    bool used;         /* since a place for a new head was looked for */
    place fields[KNOWN_FIELDS];
    char bytes[KNOWN_LEN];
};

enum { KNOWN = EW__HTTP_KNOWN_BYTES / sizeof(struct ew__known_head) };
_Static_assert(KNOWN >= 8, "room for eight heads");

static struct ew__known_head *known_heads(const ew__http1 *http) {
    return (struct ew__known_head *)(void *)http->scratch->known;
}

/* ---- remembering ---- */

static uint16_t offset_in(const char *bytes, const char *at) { return (uint16_t)(at - bytes); }

static void describe(struct ew__known_head *known, const ew__http1 *http, const char *bytes, size_t n) {
    const ew__http_head *head = &http->head;
    *known = (struct ew__known_head){.limits = http->limits,
                                     .parser = http->parser,
                                     .guard = http->guard,
                                     .head = *head,
                                     .len = (uint16_t)n,
                                     .target = head->target.len ? offset_in(bytes, head->target.ptr) : 0,
                                     .target_len = (uint16_t)head->target.len,
                                     .state = http->state,
                                     .length_at = KNOWN_FIELDS};
    for (uint32_t i = 0; i < head->n_fields; i++) {
        ew_str name = head->fields[i].name, value = head->fields[i].value;
        known->fields[i] = (place){.name = offset_in(bytes, name.ptr),
                                   .name_len = (uint16_t)name.len,
                                   .value = value.len ? offset_in(bytes, value.ptr) : 0,
                                   .value_len = (uint16_t)value.len};
        if (http->state == BODY_LENGTH && value.len <= LENGTH_DIGITS &&
            ew__str_is_nocase(name, EW_STR("content-length"))) {
            known->length_at = (uint8_t)i;
        }
    }
    memcpy(known->bytes, bytes, n);
}

static bool may_vary(const struct ew__known_head *known, uint32_t i) {
    return i == known->length_at ||
           !ew__http_guard_reads(ew__str(known->bytes + known->fields[i].name, known->fields[i].name_len));
}

/* Whether two heads differ in nothing but values that may; those vary from now on. */
static bool learn(struct ew__known_head *known, const struct ew__known_head *other) {
    uint32_t n = known->head.n_fields, varies = 0;
    size_t at = 0;
    if (known->limits != other->limits || known->guard.request != other->guard.request || known->len != other->len ||
        known->state != other->state || known->head.n_fields != other->head.n_fields ||
        memcmp(known->fields, other->fields, n * sizeof(place)) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        const place *field = &known->fields[i];
        if (memcmp(known->bytes + field->value, other->bytes + field->value, field->value_len) == 0) {
            continue;
        }
        if (!may_vary(known, i) || memcmp(known->bytes + at, other->bytes + at, field->value - at) != 0) {
            return false;
        }
        varies |= 1u << i;
        at = (size_t)field->value + field->value_len;
    }
    if (memcmp(known->bytes + at, other->bytes + at, known->len - at) != 0) {
        return false;
    }
    known->varies |= (uint16_t)varies;
    return true;
}

/* The next one that was of no use since it was passed last. */
static struct ew__known_head *least_useful(ew__http1 *http) {
    for (;;) {
        struct ew__known_head *known = &known_heads(http)[http->scratch->next_known++ % KNOWN];
        if (!known->used) {
            return known;
        }
        known->used = false;
    }
}

/* Only heads that came whole and keep the connection: what is kept must not depend on anything but its bytes. */
void ew__http1_remember(ew__http1 *http, const char *bytes, size_t n) {
    const ew__http_head *head = &http->head;
    if (n > KNOWN_LEN || head->n_fields > KNOWN_FIELDS || http->skip_body || !head->keep_alive || head->upgrade) {
        return;
    }
    struct ew__known_head fresh, *known = known_heads(http);
    describe(&fresh, http, bytes, n);
    for (size_t i = 0; i < KNOWN; i++) {
        if (learn(&known[i], &fresh)) {
            return;
        }
    }
    *least_useful(http) = fresh;
}

/* ---- recognising ---- */

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* Whether the value would have been taken, and taken from its first byte to its last. */
static bool value_fits(const struct ew__known_head *known, uint32_t i, const char *value, uint64_t *length) {
    size_t n = known->fields[i].value_len;
    if (i == known->length_at) {
        return ew__u64_parse(ew__str(value, n), length) && *length > 0;
    }
    return !is_blank(value[0]) && !is_blank(value[n - 1]) && ew__http_guard_value_clean(value, n);
}

static bool fits(const struct ew__known_head *known, const char *bytes, uint64_t *length) {
    size_t at = 0;
    uint32_t i = 0;
    for (uint32_t left = known->varies; left != 0; left >>= 1, i++) {
        const place *field = &known->fields[i];
        if ((left & 1) == 0) {
            continue;
        }
        if (memcmp(known->bytes + at, bytes + at, field->value - at) != 0 ||
            !value_fits(known, i, bytes + field->value, length)) {
            return false;
        }
        at = (size_t)field->value + field->value_len;
    }
    return memcmp(known->bytes + at, bytes + at, known->len - at) == 0;
}

static void take(ew__http1 *http, const struct ew__known_head *known, uint64_t length) {
    const char *bytes = http->in;
    ew__http_field *fields = http->scratch->fields;
    http->guard = known->guard;
    http->head = known->head;
    http->head.fields = fields;
    http->guard.length = http->head.length = length;
    if (known->state == BODY_CHUNKED) {
        http->parser = known->parser; /* it reads the chunks */
    }
    if (known->target_len > 0) {
        http->head.target = ew__str(bytes + known->target, known->target_len);
    }
    for (uint32_t i = 0; i < known->head.n_fields; i++) {
        fields[i].name = ew__str(bytes + known->fields[i].name, known->fields[i].name_len);
        fields[i].value = ew__str(bytes + known->fields[i].value, known->fields[i].value_len);
    }
    http->head_at = bytes;
    http->head_len = known->len;
    http->state = known->state;
    http->head_done = true;
    http->message_done = known->state == ENDING;
    http->in += known->len;
    http->in_len -= known->len;
}

bool ew__http1_take_known(ew__http1 *http) {
    struct ew__known_head *known = known_heads(http), *end = known + KNOWN;
    for (; known < end; known++) {
        uint64_t length = known->head.length;
        if (known->limits == http->limits && known->len <= http->in_len &&
            known->guard.request == http->guard.request && fits(known, http->in, &length)) {
            known->used = true;
            take(http, known, length);
            return true;
        }
    }
    return false;
}
