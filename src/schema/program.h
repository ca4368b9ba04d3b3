/*
 * schema/program.h: what a compiled schema is. For the files json/schema*.c.
 */
#ifndef EW_SCHEMA_PROGRAM_H
#define EW_SCHEMA_PROGRAM_H

#include "base/mem.h"
#include "json/equal.h"
#include "json/number.h"
#include "schema/regex.h"
#include "schema/schema.h"

typedef struct ew__schema_node ew__schema_node;

/* A text with schemas in it: the user's is 0, then meta-schemas that it refers to. */
typedef struct ew__schema_doc {
    ew__tape tape;
    const char *uri; /* of a meta-schema; "" for the user's */
} ew__schema_doc;

#define EW__SCHEMA_DOCS 3

typedef struct ew__anchor {
    struct ew__anchor *next;
    ew_str name;
    uint32_t item;
    bool dynamic;
    ew__schema_node *node; /* of dynamic ones, once compiled */
} ew__anchor;

/* A schema with an identifier of its own, or the root of a text. */
typedef struct ew__resource {
    struct ew__resource *next;
    ew_str uri;
    ew__draft draft;
    ew__schema_doc *doc;
    uint32_t item;
    ew__anchor *anchors;
} ew__resource;

typedef enum ew__rule_op {
    EW__RULE_TYPE,
    EW__RULE_CONST,
    EW__RULE_ENUM,
    EW__RULE_MULTIPLE,
    EW__RULE_BOUND,
    EW__RULE_COUNT,
    EW__RULE_PATTERN,
    EW__RULE_UNIQUE,
    EW__RULE_OBJECT,
    EW__RULE_NAMES,
    EW__RULE_NEEDS,
    EW__RULE_ARRAY,
    EW__RULE_CONTAINS,
    EW__RULE_ALL,
    EW__RULE_ANY,
    EW__RULE_ONE,
    EW__RULE_NOT,
    EW__RULE_IF,
    EW__RULE_REF,
    EW__RULE_DYNAMIC_REF,
    EW__RULE_WHEN_PRESENT,
    EW__RULE_OTHER_MEMBERS,
    EW__RULE_OTHER_ELEMENTS
} ew__rule_op;

/* Bits of EW__RULE_TYPE: 1 << ew_json_type, and one more. */
#define EW__TYPE_INTEGER (1u << 7)

typedef struct ew__property {
    ew_str name;                 /* decoded */
    const ew__schema_node *node; /* NULL: only required */
    bool required;
    uint32_t number; /* of the required ones: from 0 */
} ew__property;

typedef struct ew__pattern_property {
    const ew__regex *regex;
    const ew__schema_node *node;
} ew__pattern_property;

/* dependentRequired, dependentSchemas, dependencies: what must hold where there is such a member. */
typedef struct ew__when {
    ew_str name;
    const ew_str *needs;
    uint32_t n_needs;
    const ew__schema_node *node; /* or NULL */
} ew__when;

typedef struct ew__rule {
    ew__rule_op op;
    const char *keyword;
    union {
        unsigned types;
        uint32_t item; /* const, and the list of enum */
        struct {
            const ew__hashed *list;
            uint32_t n, item;
        } choice;
        struct {
            ew__divisor divisor;
            ew_str text;
        } multiple;
        struct {
            ew__decimal limit;
            ew_str text;
            bool lower, open; /* minimum; the limit itself is not allowed */
        } bound;
        struct {
            uint64_t n;
            ew_json_type of; /* strings, arrays, objects */
            bool lower;
        } count;
        struct {
            const ew__regex *regex;
        } pattern;
        struct {
            const ew__property *list; /* by length of name, then by its bytes */
            uint32_t n, n_required;
            size_t longest; /* name */
            const ew__pattern_property *patterns;
            uint32_t n_patterns;
            const ew__schema_node *rest;
        } object;
        struct {
            const ew__schema_node *const *list; /* prefixItems, allOf ... */
            uint32_t n;
            const ew__schema_node *rest;
        } nodes;
        struct {
            const ew__schema_node *node;
            uint64_t min, max;
        } contains;
        struct {
            const ew__schema_node *test, *then, *other;
        } branch;
        struct {
            const ew__schema_node *node; /* also of not, propertyNames, unevaluated... */
            ew_str anchor;               /* $dynamicRef */
        } one;
        struct {
            const ew__when *list;
            uint32_t n;
        } when;
    } u;
} ew__rule;

struct ew__schema_node {
    enum { EW__SCHEMA_RULES, EW__SCHEMA_TRUE, EW__SCHEMA_FALSE } kind;
    const ew__resource *resource;
    ew__schema_doc *doc;
    uint32_t item;
    const char *keyword; /* under which it was first met; "" for the root */
    const ew__rule *rules;
    uint32_t n_rules;
    bool notes;            /* has unevaluated...: what is looked at is noted */
    uint8_t mark;          /* while loops are looked for */
    ew__schema_node *next; /* of all, in the order in which they were met */
};

struct ew__schema {
    const ew_env *env;
    ew__arena arena;
    uint64_t seed[2]; /* of hashes */
    ew__schema_doc docs[EW__SCHEMA_DOCS];
    unsigned n_docs;
    size_t words; /* of memory that the largest pattern needs */
    const ew__schema_node *root;
    ew__resource *resources;
};

/* The text of a meta-schema, or empty; uri without fragment. */
ew_str ew__meta_schema(ew_str uri, const char **ret_uri, ew__draft *ret_draft);

/* ---- while compiling: schema_find.c, schema_compile.c, schema_rules.c ---- */

typedef struct ew__compiler {
    const ew_env *env;
    ew__schema *schema;
    ew__schema_problem *problem;
    ew_err err;                               /* the first; nothing goes on after it */
    ew__draft draft;                          /* where nothing says which */
    ew__resource **where[EW__SCHEMA_DOCS];    /* of each item that is a schema: its resource; NULL: not seen yet */
    ew__schema_node **nodes[EW__SCHEMA_DOCS]; /* of each item, once it is met */
    ew__schema_node *first, *last;
} ew__compiler;

/* Notes what went wrong, once. keyword may be NULL. */
void ew__compiler_fail(ew__compiler *c, ew_err err, const ew__schema_doc *doc, uint32_t item, const char *keyword,
                       const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Adds a text, valid JSON that lives long enough; NULL: c->err. */
ew__schema_doc *ew__compiler_add_doc(ew__compiler *c, ew_str text, const char *uri, ew__draft draft);
/* Where `ref`, the value of $ref or $dynamicRef in `from`, leads. *ret_anchor: the name, if that is a dynamic one. */
ew__schema_node *ew__compiler_resolve(ew__compiler *c, const ew__schema_node *from, uint32_t ref, const char *keyword,
                                      ew_str *ret_anchor);
/* The node of a schema; its rules are made later. */
ew__schema_node *ew__compiler_node(ew__compiler *c, const ew__resource *resource, ew__schema_doc *doc, uint32_t item,
                                   const char *keyword);
/* The resource of an item that is a schema, which is looked through if it has not been. */
ew__resource *ew__compiler_where(ew__compiler *c, ew__schema_doc *doc, uint32_t item, ew__resource *outer);
/* The rules of a node. */
void ew__compile_rules(ew__compiler *c, ew__schema_node *node);
/* The value of a string, in the arena. False: c->err. */
bool ew__compiler_text(ew__compiler *c, const ew__schema_doc *doc, uint32_t item, ew_str *ret);

static inline unsigned ew__doc_index(const ew__schema *schema, const ew__schema_doc *doc) {
    return (unsigned)(doc - schema->docs);
}

#endif
