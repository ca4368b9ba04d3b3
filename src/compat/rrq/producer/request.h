/*
 * compat/rrq/producer/request.h: the JSON objects that RRQ's clients send, by tables of their members, and what may be wrong with
 * them: the rules and the words are those of the reader that RRQ uses. May include: base json.
 */
#ifndef EW_COMPAT_RRQ_PRODUCER_REQUEST_H
#define EW_COMPAT_RRQ_PRODUCER_REQUEST_H

#include "base/mem.h"
#include "json/json.h"

typedef enum ew__member_type {
    EW__MEMBER_TEXT,    /* a string; `text` is its value */
    EW__MEMBER_INT,     /* an integer of 64 bits */
    EW__MEMBER_SECONDS, /* a number */
    EW__MEMBER_STRINGS, /* an object of strings; `text` is its JSON */
    EW__MEMBER_OBJECT,  /* any object; `text` is its JSON */
} ew__member_type;

/* Unknown members are ignored; null is as good as missing, unless the field is required. */
typedef struct ew__member {
    const char *name;
    ew__member_type type;
    bool required;
} ew__member;

typedef struct ew__member_value {
    bool set;
    ew_str text;
    int64_t integer;
    double seconds;
} ew__member_value;

/* A line for people; "" when nothing is wrong. */
typedef struct ew__trouble {
    char text[400];
} ew__trouble;

/* Sets the line. Always false. */
bool ew__trouble_set(ew__trouble *trouble, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether the whole text is UTF-8 and JSON that RRQ's programs can read. `what`: "producer config" and so on. */
bool ew__request_check(const char *text, const char *what, ew__trouble *trouble);

/*
 * Reads the members of a value that was checked, which must be an object, into values[n]; texts lie in the arena or in
 * the object.
 */
bool ew__request_read(ew__arena *arena, ew_str object, const char *what, const ew__member *members, size_t n,
                      ew__member_value *values, ew__trouble *trouble);

/* A number of seconds that is not negative (positive: nor 0) as milliseconds, rounded up. */
bool ew__request_ms(const ew__member_value *value, const char *name, bool positive, int64_t *ret_ms,
                    ew__trouble *trouble);
/* A point in time, with its offset (RFC 3339), in milliseconds since 1970. */
bool ew__request_when(const ew__member_value *value, const char *name, int64_t *ret_ms, ew__trouble *trouble);

/* Nothing in it but white space. */
bool ew__request_is_blank(ew_str text);

#endif
