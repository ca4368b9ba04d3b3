/*
 * cli/text.c: see text.h. Grows by doubling.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/text.h"
#include <everywire/env.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *ew__cli_alloc(size_t size) {
    const ew_env *env = ew_env_default();
    void *ptr = env->alloc(env->ud, NULL, 0, size);
    return ptr ? memset(ptr, 0, size) : NULL;
}

void ew__cli_free(void *ptr, size_t size) {
    const ew_env *env = ew_env_default();
    if (ptr) {
        (void)env->alloc(env->ud, ptr, size, 0);
    }
}

ew_err ew__text_reserve(ew__text *text, size_t extra) {
    const ew_env *env = ew_env_default();
    if (extra <= text->cap - text->len) {
        return EW_OK;
    }
    if (extra > SIZE_MAX / 4 || text->len > SIZE_MAX / 4) {
        return EW_ENOMEM;
    }
    size_t cap = text->cap < 128 ? 256 : text->cap * 2;
    while (cap - text->len < extra) {
        cap *= 2;
    }
    char *ptr = env->alloc(env->ud, text->ptr, text->cap, cap);
    if (!ptr) {
        return EW_ENOMEM;
    }
    text->ptr = ptr;
    text->cap = cap;
    return EW_OK;
}

ew_err ew__text_add(ew__text *text, ew_str bytes) {
    ew_err err = ew__text_reserve(text, bytes.len);
    if (err == EW_OK && bytes.len > 0) {
        memcpy(text->ptr + text->len, bytes.ptr, bytes.len);
        text->len += bytes.len;
    }
    return err;
}

ew_err ew__text_cstr(ew__text *text, const char *bytes) { return ew__text_add(text, ew_str_from(bytes)); }

ew_err ew__text_printf(ew__text *text, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    ew_err err = n < 0 ? EW_EINVAL : ew__text_reserve(text, (size_t)n + 1);
    if (err == EW_OK) {
        (void)vsnprintf(text->ptr + text->len, (size_t)n + 1, format, again);
        text->len += (size_t)n;
    }
    va_end(again);
    va_end(args);
    return err;
}

void ew__text_drop(ew__text *text, size_t n) {
    if (n > 0) {
        text->len -= n;
        memmove(text->ptr, text->ptr + n, text->len);
    }
}

ew_str ew__text_view(const ew__text *text) { return (ew_str){text->ptr, text->len}; }

void ew__text_free(ew__text *text) {
    ew__cli_free(text->ptr, text->cap);
    *text = (ew__text){0};
}
