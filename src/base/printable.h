/*
 * base/printable.h: text of a peer or a child as a terminal may show it. Control characters move
 * the cursor, change the title or send input on the user's behalf, and bidirectional overrides show
 * text in another order than it has. All of them are escaped before they reach a terminal or a log.
 */
#ifndef EW_BASE_PRINTABLE_H
#define EW_BASE_PRINTABLE_H

#include <everywire/base.h>

/*
 * The size in bytes of the character at text.ptr[at] if it may be shown as it is. 0: it must be
 * escaped. That holds for C0 (tab and newline too), DEL, C1 (U+0080 to U+009F), bidirectional
 * embeddings, overrides and isolates (U+202A to U+202E, U+2066 to U+2069) and each byte that is not
 * part of valid UTF-8. `at` is less than text.len.
 */
size_t ew__printable_size(ew_str text, size_t at);

typedef enum ew__printable_form {
    EW__PRINTABLE_LINE,  /* one line: each byte that must be escaped becomes \xNN */
    EW__PRINTABLE_LINES, /* the same, but newlines and tabs stay */
    EW__PRINTABLE_JSON   /* valid JSON: the same value in one line, with \uNNNN inside strings */
} ew__printable_form;

/*
 * Writes `text` in that form, ended by NUL, as far as `size` allows, and returns the length of the
 * whole, as snprintf does. Never cuts through a character or an escape. Any thread.
 */
size_t ew__printable(ew_str text, ew__printable_form form, char *out, size_t size);

#endif
