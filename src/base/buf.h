/*
 * base/buf.h: a growing run of bytes with a limit. Growing doubles; the limit is checked before memory is asked for.
 */
#ifndef EW_BASE_BUF_H
#define EW_BASE_BUF_H

#include <everywire/env.h>
#include <stdarg.h>
#include <string.h>

typedef struct ew__buf {
    const ew_env *env;
    char *ptr;
    size_t len;
    size_t cap;
    size_t max;
    ew_err err; /* first failure; later appends do nothing and return it, so that a row of appends needs one check */
} ew__buf;

void ew__buf_init(ew__buf *buf, const ew_env *env, size_t max);
void ew__buf_done(ew__buf *buf);                    /* frees; the buffer may be used again */
void ew__buf_clear(ew__buf *buf);                   /* empty, keeps its memory, forgets the error */
ew_err ew__buf_reserve(ew__buf *buf, size_t extra); /* room for extra bytes: EW_OK, EW_ELIMIT, EW_ENOMEM */
ew_err ew__buf_grow_add(ew__buf *buf, const void *bytes, size_t n); /* ew__buf_add, where there is no room yet */
ew_err ew__buf_cstr(ew__buf *buf, const char *text);
ew_err ew__buf_char(ew__buf *buf, char c);
ew_err ew__buf_u64(ew__buf *buf, uint64_t number);  /* decimal */
ew_err ew__buf_us_as_ms(ew__buf *out, uint64_t us); /* milliseconds, with a fraction if there is one */
ew_err ew__buf_printf(ew__buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ew__buf_drop(ew__buf *buf, size_t n); /* removes the first n bytes */
ew_str ew__buf_view(const ew__buf *buf);   /* borrowed; until the next change */
/* Hands the memory over: the caller owns *ret_cap bytes at the result (NULL if empty) and frees them by ew__free. */
char *ew__buf_take(ew__buf *buf, size_t *ret_len, size_t *ret_cap);

/* Most appends find room: those are a copy and no call. */
static inline ew_err ew__buf_add(ew__buf *buf, const void *bytes, size_t n) {
    if (buf->ptr == NULL || buf->err != EW_OK || n == 0 || n > buf->cap - buf->len)
        return ew__buf_grow_add(buf, bytes, n);
    memcpy(buf->ptr + buf->len, bytes, n);
    buf->len += n;
    return EW_OK;
}
static inline ew_err ew__buf_str(ew__buf *buf, ew_str text) { return ew__buf_add(buf, text.ptr, text.len); }

#endif
