/*
 * wire/put.h: texts written one behind the other into memory that is known to have room for all of them. Each returns
 * where the next one goes.
 */
#ifndef EW_WIRE_PUT_H
#define EW_WIRE_PUT_H

#include "base/out.h"
#include "base/util.h"

static inline uint8_t *ew__put(uint8_t *at, const void *bytes, size_t n) {
    if (n > 0)
        memcpy(at, bytes, n);
    return at + n;
}
static inline uint8_t *ew__put_str(uint8_t *at, ew_str text) { return ew__put(at, text.ptr, text.len); }

/* A literal. */
#define EW__PUT(at, text) ew__put((at), "" text, sizeof(text) - 1)

/* At most 20 digits. */
static inline uint8_t *ew__put_number(uint8_t *at, uint64_t number) {
    if (number < 10) {
        *at = (uint8_t)('0' + number);
        return at + 1;
    }
    char digits[20];
    return ew__put(at, digits, ew__u64_text(number, digits));
}

/*
 * Memory for a text of up to n bytes that goes out: the queue's own, or for long ones memory in between. NULL: there is
 * none, and out->err says so. ew__put_end, with the same n, once the text stands there: `end` is where it ends.
 */
uint8_t *ew__put_begin(ew__out *out, size_t n);
void ew__put_end(ew__out *out, uint8_t *start, size_t n, const uint8_t *end);

#endif
