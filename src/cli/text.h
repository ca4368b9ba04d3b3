/*
 * cli/text.h: a growing text of the program. The library's own buffer is not used, because the program stands on the
 * public headers alone: the memory comes from the public env.
 */
#ifndef EW_CLI_TEXT_H
#define EW_CLI_TEXT_H

#include <everywire/base.h>

/* Start with {0}; free when done. */
typedef struct ew__text {
    char *ptr;
    size_t len;
    size_t cap;
} ew__text;

void *ew__cli_alloc(size_t size); /* cleared; NULL when there is no memory */
void ew__cli_free(void *ptr, size_t size);

ew_err ew__text_reserve(ew__text *text, size_t extra); /* room for that many bytes: EW_OK or EW_ENOMEM */
ew_err ew__text_add(ew__text *text, ew_str bytes);
ew_err ew__text_cstr(ew__text *text, const char *bytes);
ew_err ew__text_printf(ew__text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ew__text_drop(ew__text *text, size_t n); /* removes the first n bytes */
ew_str ew__text_view(const ew__text *text);   /* borrowed; until the next change */
void ew__text_free(ew__text *text);

#endif
