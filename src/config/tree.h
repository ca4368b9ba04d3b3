/*
 * config/tree.h: a YAML file as a tree of texts, lists and maps, each with its place. The one part of the project that
 * knows libyaml is tree.c. What YAML has beyond JSON's model is refused: aliases, tags, merge keys, keys that are no
 * texts, several documents. A text stays a text: what it means is for those to say who need a number or a truth value.
 */
#ifndef EW_CONFIG_TREE_H
#define EW_CONFIG_TREE_H

#include "base/buf.h"
#include "config/problem.h"

#define EW__CONFIG_BYTES ((size_t)1024 * 1024) /* of a file, and of all that variables bring into it */
#define EW__CONFIG_DEPTH 32
#define EW__CONFIG_NODES 100000

typedef enum ew__node_kind { EW__NODE_TEXT, EW__NODE_LIST, EW__NODE_MAP } ew__node_kind;

typedef struct ew__node {
    ew__node_kind kind;
    bool plain; /* a text without quotes, which may stand for a number and so on */
    bool bad;   /* a problem has been told of it; its value means nothing */
    unsigned line, column;
    ew_str text;                /* ended by NUL (not counted), and may hold others; empty for lists and maps */
    const struct ew__node *key; /* of a member of a map */
    struct ew__node *first;     /* of what a list or map holds, */
    struct ew__node *next;      /* one after the other, */
    size_t n;                   /* that many */
} ew__node;

/* The value of a variable, borrowed; NULL: it is not set. */
typedef const char *(*ew__variable_fn)(void *ud, const char *name);

/*
 * Reads a file's text into the arena. Variables are put in. EW_OK, also with problems, as long as there is a tree
 * (*ret_root is NULL for a file without a value); EW_ESYNTAX: there is none, a problem says why; EW_ENOMEM.
 */
ew_err ew__tree_read(ew__arena *arena, ew_str yaml, ew__variable_fn variable, void *ud, ew__problems *problems,
                     ew__node **ret_root);

/* The member of a map by its name; NULL if there is none, or if it is no map. */
const ew__node *ew__node_get(const ew__node *map, const char *name);
/* The i-th of a list; of anything else the node itself: there one value stands for a list of one. */
const ew__node *ew__node_at(const ew__node *node, size_t i);
/* Whether it says "nothing": null, ~ or no text at all, without quotes. */
bool ew__node_is_null(const ew__node *node);
/* true or false (or True, TRUE ...), without quotes. */
bool ew__node_bool(const ew__node *node, bool *ret);

/*
 * The value as JSON text, appended. Plain texts become null, true, false and numbers as YAML 1.2's core schema says, with
 * all their digits. What JSON cannot say is a problem. EW_OK, EW_ESYNTAX (a problem was added), EW_ENOMEM.
 */
ew_err ew__node_json(const ew__node *node, ew__buf *out, ew__problems *problems);
/* Whether a text is a string for JSON, and not a number and so on. */
bool ew__node_is_string(const ew__node *node);
/* A text that two nodes share only if they say the same; appended. EW_OK or EW_ENOMEM. */
ew_err ew__node_print(const ew__node *node, ew__buf *out);

/* ---- expand.c ---- */

/* What went wrong in a text with variables: the offset of the "${" that it begins with. */
typedef struct ew__expand_problem {
    size_t offset;
    char message[160];
} ew__expand_problem;

/*
 * Puts variables in: ${NAME}, ${NAME:-DEFAULT} (also for an empty variable), and $${ for ${ itself. Appends. EW_OK;
 * EW_EINVAL with *ret_problem; EW_ELIMIT, EW_ENOMEM as the buffer says.
 */
ew_err ew__expand(ew_str text, ew__variable_fn variable, void *ud, ew__buf *out, ew__expand_problem *ret_problem);

#endif
