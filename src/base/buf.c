/*
 * base/buf.c: the growing buffer of base/buf.h. Bytes only: it knows no encoding and ends nothing with NUL.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/buf.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/util.h"

#define FIRST_CAP ((size_t)256)

void ew__buf_init(ew__buf *buf, const ew_env *env, size_t max) {
    *buf = (ew__buf){.env = env, .max = max, .err = EW_OK};
}

void ew__buf_done(ew__buf *buf) {
    ew__free(buf->env, buf->ptr, buf->cap);
    ew__buf_init(buf, buf->env, buf->max);
}

void ew__buf_clear(ew__buf *buf) {
    buf->len = 0;
    buf->err = EW_OK;
}

/* The smallest doubling of the present size that holds need bytes (need <= max), cut at max. */
static size_t next_cap(const ew__buf *buf, size_t need) {
    size_t cap = buf->cap == 0 ? FIRST_CAP : buf->cap;
    while (cap < need && cap <= buf->max / 2) {
        cap *= 2;
    }
    return cap < need || cap > buf->max ? buf->max : cap;
}

static ew_err grow(ew__buf *buf, size_t extra) {
    if (extra > buf->max - buf->len) {
        return buf->err = EW_ELIMIT;
    }
    size_t cap = next_cap(buf, buf->len + extra);
    char *ptr = ew__realloc(buf->env, buf->ptr, buf->cap, cap);
    if (ptr == NULL) {
        return buf->err = EW_ENOMEM;
    }
    buf->ptr = ptr;
    buf->cap = cap;
    return EW_OK;
}

ew_err ew__buf_reserve(ew__buf *buf, size_t extra) {
    if (EW__UNLIKELY(buf->err != EW_OK)) {
        return buf->err;
    }
    if (EW__LIKELY(extra <= buf->cap - buf->len)) {
        return EW_OK;
    }
    return grow(buf, extra);
}

ew_err ew__buf_grow_add(ew__buf *buf, const void *bytes, size_t n) {
    ew_err err = ew__buf_reserve(buf, n);
    if (err == EW_OK && n > 0 && buf->ptr != NULL) { /* it is not NULL any more: room for n bytes was made */
        memcpy(buf->ptr + buf->len, bytes, n);
        buf->len += n;
    }
    return err;
}

ew_err ew__buf_cstr(ew__buf *buf, const char *text) { return ew__buf_add(buf, text, strlen(text)); }

ew_err ew__buf_char(ew__buf *buf, char c) { return ew__buf_add(buf, &c, 1); }

ew_err ew__buf_u64(ew__buf *buf, uint64_t number) {
    char digits[20];
    return ew__buf_add(buf, digits, ew__u64_text(number, digits));
}

ew_err ew__buf_us_as_ms(ew__buf *out, uint64_t us) {
    ew__buf_u64(out, us / 1000);
    unsigned rest = (unsigned)(us % 1000);
    const char fraction[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10), (char)('0' + rest % 10)};
    if (rest)
        ew__buf_add(out, fraction, sizeof fraction);
    return out->err;
}

/* Longer than the stack's room: formatted aside, as the buffer may have room for the text but not for printf's NUL. */
static ew_err printf_long(ew__buf *buf, size_t n, const char *format, va_list args) {
    ew_err err = ew__buf_reserve(buf, n);
    if (err != EW_OK) {
        return err;
    }
    char *text = ew__alloc(buf->env, n + 1);
    if (text == NULL) {
        return buf->err = EW_ENOMEM;
    }
    (void)vsnprintf(text, n + 1, format, args);
    err = ew__buf_add(buf, text, n);
    ew__free(buf->env, text, n + 1);
    return err;
}

ew_err ew__buf_printf(ew__buf *buf, const char *format, ...) {
    if (buf->err != EW_OK) {
        return buf->err;
    }
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n < 0) {
        return buf->err = EW_EINVAL;
    }
    if ((size_t)n < sizeof(text)) {
        return ew__buf_add(buf, text, (size_t)n);
    }
    va_start(args, format);
    ew_err err = printf_long(buf, (size_t)n, format, args);
    va_end(args);
    return err;
}

void ew__buf_drop(ew__buf *buf, size_t n) {
    if (n >= buf->len) {
        buf->len = 0;
        return;
    }
    if (n > 0) {
        memmove(buf->ptr, buf->ptr + n, buf->len - n);
        buf->len -= n;
    }
}

ew_str ew__buf_view(const ew__buf *buf) { return ew__str(buf->ptr, buf->len); }

char *ew__buf_take(ew__buf *buf, size_t *ret_len, size_t *ret_cap) {
    if (buf->len == 0) {
        ew__buf_done(buf);
    }
    char *ptr = buf->ptr;
    *ret_len = buf->len;
    *ret_cap = buf->cap;
    ew__buf_init(buf, buf->env, buf->max);
    return ptr;
}
