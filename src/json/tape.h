/*
 * json/tape.h: an index of all values of a valid JSON text: eight bytes each, in the order of the text, so that whoever
 * looks at a value many times skips over none of it twice. It holds no decoded value; those stay in the text.
 */
#ifndef EW_JSON_TAPE_H
#define EW_JSON_TAPE_H

#include "base/buf.h"
#include "json/text.h"
#include <everywire/json.h>

/* A value or the name of a member, by where it begins. The members of an object are name, value, name, value. */
typedef struct ew__tape_item {
    uint32_t at;    /* offset of its first byte */
    uint32_t after; /* the item that follows it and all that is in it */
} ew__tape_item;

#define EW__TAPE_SMALL 64u
#define EW__TAPE_MAX ((uint32_t)4 * 1024 * 1024) /* items: 32 MiB of index */

typedef struct ew__tape {
    const ew_env *env;
    ew_str text;
    ew__tape_item *items; /* item 0 is the root */
    uint32_t n;
    uint32_t cap;
    ew__tape_item small[EW__TAPE_SMALL]; /* most texts need no memory */
} ew__tape;

/*
 * Indexes a text that is known to be valid; it must outlive the tape, which must not be moved. EW_OK; EW_ELIMIT: more
 * than EW__TAPE_MAX values; EW_ENOMEM; EW_ESYNTAX: brackets do not fit. Done after a failure too.
 */
ew_err ew__tape_read(ew__tape *tape, const ew_env *env, ew_str text);
void ew__tape_done(ew__tape *tape);

/* The JSON pointer of a value, appended; of a name that of its value. Plain text, not the inside of a JSON string. */
ew_err ew__tape_pointer(const ew__tape *tape, uint32_t item, ew__buf *out);

/* "/" and a name (the inside of a string, as it stands in a text) as one step of a JSON pointer. */
void ew__json_pointer_add(ew__buf *out, ew_str raw);

/* The value of the first member of that name, or 0: no object, or no such member. */
uint32_t ew__tape_member(const ew__tape *tape, uint32_t object, ew_str name);

static inline const char *ew__tape_at(const ew__tape *tape, uint32_t item) {
    return tape->text.ptr + tape->items[item].at;
}

static inline ew_json_type ew__tape_type(const ew__tape *tape, uint32_t item) {
    return ew__json_type_of_byte(*ew__tape_at(tape, item));
}

/* The inside of a string, as it stands in the text. */
static inline ew_str ew__tape_string(const ew__tape *tape, uint32_t item) {
    const char *at = ew__tape_at(tape, item), *end = ew__json_skip_string(at, ew__json_end(tape->text));
    return ew__str(at + 1, (size_t)(end - at) - 2);
}

/* The text of a value without what it contains: of scalars. */
static inline ew_str ew__tape_scalar(const ew__tape *tape, uint32_t item) {
    const char *at = ew__tape_at(tape, item);
    return ew__str(at, (size_t)(ew__json_skip_value(at, ew__json_end(tape->text)) - at));
}

/* Walking: for (i = first(c); i != end(c); i = next(i)); in objects i is a name, and i + 1 its value. */
static inline uint32_t ew__tape_end(const ew__tape *tape, uint32_t container) { return tape->items[container].after; }
static inline uint32_t ew__tape_next_element(const ew__tape *tape, uint32_t item) { return tape->items[item].after; }
static inline uint32_t ew__tape_next_member(const ew__tape *tape, uint32_t name) { return tape->items[name + 1].after; }

/* How many members or elements. */
uint32_t ew__tape_count(const ew__tape *tape, uint32_t container);

#endif
