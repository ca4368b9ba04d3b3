/*
 * frame/known_heads.c: heads that were read before. A client repeats its heads to the byte, as long as nothing but
 * the body changes; such a head is recognised by comparing it, and what was understood then holds again. Nothing is
 * guessed: other bytes are read in full.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "frame/http1_state.h"

enum { KNOWN_LEN = 480, KNOWN_FIELDS = 16 };

/* A head and everything that reading it came to. Offsets are from its first byte. */
struct ew__known_head {
    const ew__http1_limits *limits; /* NULL: free */
    llhttp_t parser;
    ew__guard guard;
    ew__http_head head;
    uint16_t len, target, target_len;
    uint8_t state;
    struct {
        uint16_t name, name_len, value, value_len;
    } fields[KNOWN_FIELDS];
    char bytes[KNOWN_LEN];
};

enum { KNOWN = EW__HTTP_KNOWN_BYTES / sizeof(struct ew__known_head) };
_Static_assert(KNOWN >= 4, "room for four heads");

static struct ew__known_head *known_heads(const ew__http1 *http) {
    return (struct ew__known_head *)(void *)http->scratch->known;
}

static uint16_t offset_in(const char *bytes, const char *at) { return (uint16_t)(at - bytes); }

/* Only plain requests whose head came whole: what is kept must not depend on anything but its bytes. */
void ew__http1_remember(ew__http1 *http, const char *bytes, size_t n) {
    const ew__http_head *head = &http->head;
    if (!http->guard.request || n > KNOWN_LEN || head->n_fields > KNOWN_FIELDS || head->chunked || !head->keep_alive ||
        head->upgrade) {
        return;
    }
    struct ew__known_head *known = &known_heads(http)[http->scratch->next_known++ % KNOWN];
    *known = (struct ew__known_head){.limits = http->limits,
                                     .parser = http->parser,
                                     .guard = http->guard,
                                     .head = *head,
                                     .len = (uint16_t)n,
                                     .target = offset_in(bytes, head->target.ptr),
                                     .target_len = (uint16_t)head->target.len,
                                     .state = http->state};
    for (uint32_t i = 0; i < head->n_fields; i++) {
        known->fields[i].name = offset_in(bytes, head->fields[i].name.ptr);
        known->fields[i].name_len = (uint16_t)head->fields[i].name.len;
        known->fields[i].value = head->fields[i].value.len ? offset_in(bytes, head->fields[i].value.ptr) : 0;
        known->fields[i].value_len = (uint16_t)head->fields[i].value.len;
    }
    memcpy(known->bytes, bytes, n);
}

const struct ew__known_head *ew__http1_recall(const ew__http1 *http) {
    const struct ew__known_head *known = known_heads(http), *end = known + KNOWN;
    for (; known < end; known++) {
        if (known->limits == http->limits && known->len <= http->in_len &&
            memcmp(known->bytes, http->in, known->len) == 0) {
            return known;
        }
    }
    return NULL;
}

int ew__http1_take_known(ew__http1 *http, const struct ew__known_head *known) {
    const char *bytes = http->in;
    ew__http_field *fields = http->scratch->fields;
    http->parser = known->parser;
    http->guard = known->guard;
    http->head = known->head;
    http->head.fields = fields;
    http->head.target = ew__str(bytes + known->target, known->target_len);
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
    return EW__HTTP_HEAD_DONE;
}
