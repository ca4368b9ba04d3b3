/*
 * config/fields.h: configuration as data. A table says of each key what it may hold, where that is stored, and what it is
 * for; one reader goes by the tables, and so does the page that describes the file (reference.c).
 */
#ifndef EW_CONFIG_FIELDS_H
#define EW_CONFIG_FIELDS_H

#include "config/tree.h"

/* What a key holds, and the C type that it is stored as. */
typedef enum ew__field_type {
    EW__FIELD_TEXT,      /* const char * */
    EW__FIELD_PATH,      /* const char *: a relative one counts from the file's folder */
    EW__FIELD_BOOL,      /* bool */
    EW__FIELD_NUMBER,    /* unsigned or uint64_t, min to max */
    EW__FIELD_DURATION,  /* uint64_t: milliseconds, min to max */
    EW__FIELD_SECONDS,   /* uint64_t: a duration in whole seconds */
    EW__FIELD_SIZE,      /* uint64_t: bytes, min to max */
    EW__FIELD_LIMIT,     /* uint64_t: its name tells whether it is a size, milliseconds or a number */
    EW__FIELD_WORD,      /* an enum: the place of the word in `words` */
    EW__FIELD_TEXTS,     /* const char **, NULL-ended: a list of texts; one text is a list of one */
    EW__FIELD_COMMAND,   /* the same: a program, as a path if it has a slash, and its arguments; no single text */
    EW__FIELD_PAIRS,     /* the same: a list of texts, or a map whose members are texts with `between` between them */
    EW__FIELD_JSON,      /* const char *: any value as JSON text */
    EW__FIELD_JSON_TEXT, /* the same, but a text is JSON already */
    EW__FIELD_GROUP,     /* a struct in place: a map with keys of its own */
    EW__FIELD_LIST,      /* ew__items: a list of such maps */
    EW__FIELD_NAMED,     /* ew__items: a map of such maps; node->key is the name */
    EW__FIELD_OWN        /* what `read` makes of it */
} ew__field_type;

typedef struct ew__items {
    void *items; /* structs of their group, one after the other */
    size_t n;
} ew__items;

typedef struct ew__reading {
    ew__arena *arena;
    ew__problems *problems;
    const char *folder; /* of the file */
} ew__reading;

typedef struct ew__group ew__group;
typedef struct ew__field ew__field;

struct ew__field {
    const char *name; /* NULL ends a table */
    ew__field_type type;
    size_t offset; /* in the group's struct */
    size_t size;   /* of what is stored */
    bool required;
    bool live;                /* of the file as a whole: a change counts without a restart */
    uint64_t min, max;        /* max 0: no maximum */
    const char *const *words; /* NULL-ended */
    char between;
    const ew__group *group;
    void (*read)(ew__reading *reading, const ew__field *field, const ew__node *node, void *item);
    const char *holds; /* OWN: what it holds, for people */
    const char *usual; /* without the key; for people. NULL: nothing to say */
    const char *help;
};

/* The struct of a group begins with `const ew__node *node`: where it stands; NULL: not in the file. */
struct ew__group {
    const char *title; /* what the page calls it */
    const char *help;
    size_t size;
    const ew__field *fields;
    const char *alone; /* a value that is no map is this key's; NULL: it must be a map */
    bool open;         /* keys that it does not know are fine */
    void (*check)(ew__reading *reading, const ew__node *node, void *item); /* what the table cannot say; may be NULL */
};

/* Reads a node into the struct at `item`, which is cleared first. Everything that is wrong becomes a problem. */
void ew__group_read(ew__reading *reading, const ew__group *group, const ew__node *node, void *item);

/* What a field holds, for messages and for the page. */
const char *ew__field_holds(const ew__field *field, char *buf, size_t size);
/* A limit, as the file would say it: 32K, 10s. */
void ew__limit_text(const char *name, uint64_t value, char *buf, size_t size);

/* ---- fields_values.c: values that stand for themselves ---- */

/* Problems about a node's value. */
void ew__field_wants(ew__reading *reading, const ew__field *field, const ew__node *node);
void ew__value_read(ew__reading *reading, const ew__field *field, const ew__node *node, void *item);
/* A text of the arena from two parts with a character between them (0: none). NULL when there is no memory. */
const char *ew__join(ew__reading *reading, ew_str a, char between, ew_str b);
const char *ew__path(ew__reading *reading, const char *path);

#endif
