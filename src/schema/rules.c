/*
 * schema/rules.c: the rules of one schema out of its keywords. Each function looks for its own keywords and says
 * what is wrong with them; what no function knows is ignored, as JSON Schema wants it.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "schema/program.h"
#include "json/sort.h"

#define RULES_MAX 48 /* there are fewer keywords than that */

typedef struct builder {
    ew__compiler *c;
    ew__schema_node *node;
    const ew__tape *tape;
    unsigned n;
    ew__rule rules[RULES_MAX];
} builder;

static uint32_t find(const builder *b, const char *keyword) {
    return ew__tape_member(b->tape, b->node->item, ew_str_from(keyword));
}

static ew_json_type type_of(const builder *b, uint32_t item) { return ew__tape_type(b->tape, item); }

static void refuse(builder *b, uint32_t item, const char *what) {
    ew__compiler_fail(b->c, EW_EINVAL, b->node->doc, item, NULL, "%s", what);
}

/* The value of a keyword that must be of a type; 0: it is not there, or wrong. */
static uint32_t find_typed(builder *b, const char *keyword, ew_json_type type, const char *what) {
    uint32_t item = find(b, keyword);
    if (item != 0 && type_of(b, item) != type) {
        refuse(b, item, what);
        return 0;
    }
    return item;
}

static void *get_memory(builder *b, size_t size) {
    void *memory = b->c->err == EW_OK ? ew__arena_alloc(&b->c->schema->arena, size != 0 ? size : 1) : NULL;
    if (memory == NULL) {
        ew__compiler_fail(b->c, EW_ENOMEM, NULL, 0, NULL, "out of memory");
    } else {
        memset(memory, 0, size);
    }
    return memory;
}

static ew__rule *add(builder *b, ew__rule_op op, const char *keyword) {
    ew__rule *rule = &b->rules[b->n < RULES_MAX - 1 ? b->n++ : b->n];
    *rule = (ew__rule){.op = op, .keyword = keyword};
    return rule;
}

static const ew__schema_node *sub(builder *b, uint32_t item, const char *keyword) {
    ew__resource *outer = (ew__resource *)(uintptr_t)b->node->resource;
    ew__resource *resource = ew__compiler_where(b->c, b->node->doc, item, outer);
    return b->c->err == EW_OK ? ew__compiler_node(b->c, resource, b->node->doc, item, keyword) : NULL;
}

/* ---- plain values ---- */

static unsigned type_bit(ew_str name) {
    static const struct {
        const char *name;
        unsigned bit;
    } types[] = {{"null", 1u << EW_JSON_NULL},     {"boolean", 1u << EW_JSON_BOOL}, {"number", 1u << EW_JSON_NUMBER},
                 {"string", 1u << EW_JSON_STRING}, {"array", 1u << EW_JSON_ARRAY},  {"object", 1u << EW_JSON_OBJECT},
                 {"integer", EW__TYPE_INTEGER}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (ew__json_name_is(name, ew_str_from(types[i].name))) {
            return types[i].bit;
        }
    }
    return 0;
}

static unsigned read_type(builder *b, uint32_t item) {
    unsigned bit = type_of(b, item) == EW_JSON_STRING ? type_bit(ew__tape_string(b->tape, item)) : 0;
    if (bit == 0) {
        refuse(b, item, "a type is one of null, boolean, number, integer, string, array, object");
    }
    return bit;
}

static void add_type(builder *b) {
    uint32_t item = find(b, "type");
    unsigned types = 0;
    if (item == 0) {
        return;
    }
    if (type_of(b, item) != EW_JSON_ARRAY) {
        types = read_type(b, item);
    } else {
        for (uint32_t i = item + 1; i < ew__tape_end(b->tape, item); i = ew__tape_next_element(b->tape, i)) {
            types |= read_type(b, i);
        }
    }
    add(b, EW__RULE_TYPE, "type")->u.types = types;
}

static void add_const(builder *b) {
    uint32_t item = find(b, "const");
    if (item != 0) {
        add(b, EW__RULE_CONST, "const")->u.item = item;
    }
}

static void add_enum(builder *b) {
    uint32_t item = find_typed(b, "enum", EW_JSON_ARRAY, "enum must be an array of values");
    if (item == 0) {
        return;
    }
    uint32_t n = ew__tape_count(b->tape, item), k = 0;
    ew__hashed *list = get_memory(b, n * sizeof *list);
    if (list == NULL) {
        return;
    }
    for (uint32_t i = item + 1; k < n; i = ew__tape_next_element(b->tape, i)) {
        list[k++] = (ew__hashed){ew__value_hash(b->c->schema->seed, (ew__value){b->tape, i}), i};
    }
    ew__hashed_sort(list, n);
    ew__rule *rule = add(b, EW__RULE_ENUM, "enum");
    rule->u.choice.list = list;
    rule->u.choice.n = n;
    rule->u.choice.item = item;
}

static void add_bounds(builder *b) {
    static const struct {
        const char *keyword;
        bool lower, open;
    } bounds[] = {{"minimum", true, false},
                  {"exclusiveMinimum", true, true},
                  {"maximum", false, false},
                  {"exclusiveMaximum", false, true}};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        uint32_t item = find_typed(b, bounds[i].keyword, EW_JSON_NUMBER, "this must be a number");
        if (item != 0) {
            ew__rule *rule = add(b, EW__RULE_BOUND, bounds[i].keyword);
            rule->u.bound.text = ew__tape_scalar(b->tape, item);
            rule->u.bound.limit = ew__decimal_read(rule->u.bound.text);
            rule->u.bound.lower = bounds[i].lower;
            rule->u.bound.open = bounds[i].open;
        }
    }
}

static void add_multiple(builder *b) {
    uint32_t item = find_typed(b, "multipleOf", EW_JSON_NUMBER, "this must be a number");
    if (item == 0) {
        return;
    }
    ew__rule *rule = add(b, EW__RULE_MULTIPLE, "multipleOf");
    rule->u.multiple.text = ew__tape_scalar(b->tape, item);
    ew__decimal divisor = ew__decimal_read(rule->u.multiple.text);
    if (!ew__divisor_make(&divisor, &rule->u.multiple.divisor)) {
        refuse(b, item, "multipleOf must be above 0, with at most 18 significant digits");
    }
}

/* False: not there, or wrong. */
static bool read_count(builder *b, const char *keyword, uint64_t *ret) {
    uint32_t item = find_typed(b, keyword, EW_JSON_NUMBER, "this must be a whole number, 0 or more");
    if (item == 0) {
        return false;
    }
    ew__decimal number = ew__decimal_read(ew__tape_scalar(b->tape, item));
    if (!ew__decimal_count(&number, ret)) {
        refuse(b, item, "this must be a whole number, 0 or more");
        return false;
    }
    return true;
}

static void add_counts(builder *b) {
    static const struct {
        const char *keyword;
        ew_json_type of;
        bool lower;
    } counts[] = {{"minLength", EW_JSON_STRING, true},     {"maxLength", EW_JSON_STRING, false},
                  {"minItems", EW_JSON_ARRAY, true},       {"maxItems", EW_JSON_ARRAY, false},
                  {"minProperties", EW_JSON_OBJECT, true}, {"maxProperties", EW_JSON_OBJECT, false}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint64_t n;
        if (read_count(b, counts[i].keyword, &n)) {
            ew__rule *rule = add(b, EW__RULE_COUNT, counts[i].keyword);
            rule->u.count.n = n;
            rule->u.count.of = counts[i].of;
            rule->u.count.lower = counts[i].lower;
        }
    }
}

static const ew__regex *read_pattern(builder *b, uint32_t item) {
    const ew__regex *regex = NULL;
    ew__regex_problem problem = {"", 0};
    ew_err err = b->c->err;
    if (err == EW_OK) {
        err = ew__regex_compile(&b->c->schema->arena, ew__tape_string(b->tape, item), &problem, &regex);
    }
    if (err != EW_OK) {
        ew__compiler_fail(b->c, err, b->node->doc, item, NULL, "in the pattern, at character %zu: %s", problem.at,
                          problem.what);
        return NULL;
    }
    size_t words = ew__regex_words(regex);
    b->c->schema->words = words > b->c->schema->words ? words : b->c->schema->words;
    return regex;
}

static void add_pattern(builder *b) {
    uint32_t item = find_typed(b, "pattern", EW_JSON_STRING, "a pattern must be a text");
    if (item != 0) {
        add(b, EW__RULE_PATTERN, "pattern")->u.pattern.regex = read_pattern(b, item);
    }
}

static void add_unique(builder *b) {
    uint32_t item = find_typed(b, "uniqueItems", EW_JSON_BOOL, "uniqueItems must be true or false");
    if (item != 0 && *ew__tape_at(b->tape, item) == 't') {
        (void)add(b, EW__RULE_UNIQUE, "uniqueItems");
    }
}

/* ---- members ---- */

static bool name_before(const void *first, const void *second) {
    const ew__property *a = first, *b = second;
    if (a->name.len != b->name.len) {
        return a->name.len < b->name.len;
    }
    return a->name.len != 0 && memcmp(a->name.ptr, b->name.ptr, a->name.len) < 0;
}

/* The same name may be in properties and in required: one entry for both. */
static uint32_t join_properties(ew__property *list, uint32_t n, uint32_t *ret_required) {
    uint32_t kept = 0, required = 0;
    ew__sort(list, n, sizeof *list, name_before);
    for (uint32_t i = 0; i < n; i++) {
        if (kept > 0 && ew__str_is(list[kept - 1].name, list[i].name)) {
            list[kept - 1].node = list[kept - 1].node != NULL ? list[kept - 1].node : list[i].node;
            list[kept - 1].required = list[kept - 1].required || list[i].required;
        } else {
            list[kept++] = list[i];
        }
    }
    for (uint32_t i = 0; i < kept; i++) {
        list[i].number = list[i].required ? required++ : 0;
    }
    *ret_required = required;
    return kept;
}

static void read_properties(builder *b, uint32_t properties, uint32_t required, ew__rule *rule) {
    uint32_t n = 0, n_properties = properties != 0 ? ew__tape_count(b->tape, properties) : 0;
    uint32_t n_required = required != 0 ? ew__tape_count(b->tape, required) : 0;
    ew__property *list = get_memory(b, (n_properties + n_required) * sizeof *list);
    if (list == NULL) {
        return;
    }
    uint32_t at = properties + 1;
    for (; n < n_properties && b->c->err == EW_OK; n++, at = ew__tape_next_member(b->tape, at)) {
        (void)ew__compiler_text(b->c, b->node->doc, at, &list[n].name);
        list[n].node = sub(b, at + 1, "properties");
    }
    at = required + 1;
    for (uint32_t i = 0; i < n_required && b->c->err == EW_OK; i++, n++, at = ew__tape_next_element(b->tape, at)) {
        list[n].required = true;
        (void)ew__compiler_text(b->c, b->node->doc, at, &list[n].name);
    }
    if (b->c->err != EW_OK) {
        return;
    }
    rule->u.object.n = join_properties(list, n, &rule->u.object.n_required);
    rule->u.object.list = list;
    rule->u.object.longest = rule->u.object.n > 0 ? list[rule->u.object.n - 1].name.len : 0;
}

static void read_patterns(builder *b, uint32_t item, ew__rule *rule) {
    uint32_t n = ew__tape_count(b->tape, item), at = item + 1;
    ew__pattern_property *list = get_memory(b, n * sizeof *list);
    for (uint32_t i = 0; list != NULL && i < n && b->c->err == EW_OK; i++, at = ew__tape_next_member(b->tape, at)) {
        list[i].regex = read_pattern(b, at);
        list[i].node = sub(b, at + 1, "patternProperties");
    }
    rule->u.object.patterns = list;
    rule->u.object.n_patterns = n;
}

static void add_object(builder *b) {
    static const char wanted[] = "this must be an object whose values are schemas";
    uint32_t properties = find_typed(b, "properties", EW_JSON_OBJECT, wanted);
    uint32_t required = find_typed(b, "required", EW_JSON_ARRAY, "required must be an array of names");
    uint32_t patterns = find_typed(b, "patternProperties", EW_JSON_OBJECT, wanted);
    uint32_t rest = find(b, "additionalProperties"), names = find(b, "propertyNames");
    if (properties != 0 || required != 0 || patterns != 0 || rest != 0) {
        ew__rule *rule = add(b, EW__RULE_OBJECT, "properties");
        read_properties(b, properties, required, rule);
        if (patterns != 0) {
            read_patterns(b, patterns, rule);
        }
        rule->u.object.rest = rest != 0 ? sub(b, rest, "additionalProperties") : NULL;
    }
    if (names != 0) {
        add(b, EW__RULE_NAMES, "propertyNames")->u.one.node = sub(b, names, "propertyNames");
    }
}

static void read_needs(builder *b, uint32_t item, ew__when *when) {
    uint32_t n = ew__tape_count(b->tape, item), at = item + 1;
    ew_str *needs = get_memory(b, n * sizeof *needs);
    for (uint32_t i = 0; needs != NULL && i < n && b->c->err == EW_OK; i++, at = ew__tape_next_element(b->tape, at)) {
        (void)ew__compiler_text(b->c, b->node->doc, at, &needs[i]);
    }
    when->needs = needs;
    when->n_needs = n;
}

/* names, schemas: whether values may be lists of names, and schemas. */
static void add_when(builder *b, const char *keyword, bool names, bool schemas) {
    uint32_t item =
        find_typed(b, keyword, EW_JSON_OBJECT, "this must be an object, from names to what they bring with them");
    if (item == 0) {
        return;
    }
    uint32_t n = ew__tape_count(b->tape, item), at = item + 1;
    ew__when *list = get_memory(b, n * sizeof *list);
    for (uint32_t i = 0; list != NULL && i < n && b->c->err == EW_OK; i++, at = ew__tape_next_member(b->tape, at)) {
        bool array = type_of(b, at + 1) == EW_JSON_ARRAY;
        (void)ew__compiler_text(b->c, b->node->doc, at, &list[i].name);
        if (array ? !names : !schemas) {
            refuse(b, at + 1, array ? "this must be a schema" : "this must be an array of names");
        } else if (array) {
            read_needs(b, at + 1, &list[i]);
        } else {
            list[i].node = sub(b, at + 1, keyword);
        }
    }
    ew__rule *rule = add(b, EW__RULE_WHEN_PRESENT, keyword);
    rule->u.when.list = list;
    rule->u.when.n = list != NULL ? n : 0;
}

static void add_whens(builder *b) {
    if (b->node->resource->draft == EW__DRAFT_2020_12) {
        add_when(b, "dependentRequired", true, false);
        add_when(b, "dependentSchemas", false, true);
    }
    add_when(b, "dependencies", true, true);
}

/* ---- elements ---- */

static void read_list(builder *b, uint32_t item, const char *keyword, ew__rule *rule) {
    uint32_t n = ew__tape_count(b->tape, item), at = item + 1;
    const ew__schema_node **list = get_memory(b, n * sizeof *list);
    for (uint32_t i = 0; list != NULL && i < n && b->c->err == EW_OK; i++, at = ew__tape_next_element(b->tape, at)) {
        list[i] = sub(b, at, keyword);
    }
    rule->u.nodes.list = list;
    rule->u.nodes.n = list != NULL ? n : 0;
}

static void add_array(builder *b) {
    bool old = b->node->resource->draft == EW__DRAFT_07;
    uint32_t items = find(b, "items");
    bool listed = items != 0 && type_of(b, items) == EW_JSON_ARRAY;
    uint32_t prefix = old ? (listed ? items : 0)
                          : find_typed(b, "prefixItems", EW_JSON_ARRAY, "prefixItems must be an array of schemas");
    uint32_t rest = old && listed ? find(b, "additionalItems") : items;
    const char *keyword = old && listed ? "additionalItems" : "items";
    if (!old && listed) {
        refuse(b, items, "items must be a schema: a list of them is prefixItems (or name draft-07 as $schema)");
        return;
    }
    if (prefix == 0 && rest == 0) {
        return;
    }
    ew__rule *rule = add(b, EW__RULE_ARRAY, keyword);
    if (prefix != 0) {
        read_list(b, prefix, old ? "items" : "prefixItems", rule);
    }
    rule->u.nodes.rest = rest != 0 ? sub(b, rest, keyword) : NULL;
}

static void add_contains(builder *b) {
    uint32_t item = find(b, "contains");
    uint64_t min = 1, max = UINT64_MAX;
    if (b->node->resource->draft == EW__DRAFT_2020_12) {
        (void)read_count(b, "minContains", &min);
        (void)read_count(b, "maxContains", &max);
    }
    if (item != 0) {
        ew__rule *rule = add(b, EW__RULE_CONTAINS, "contains");
        rule->u.contains.node = sub(b, item, "contains");
        rule->u.contains.min = min;
        rule->u.contains.max = max;
    }
}

/* ---- schemas for the same value ---- */

static void add_groups(builder *b) {
    static const struct {
        const char *keyword;
        ew__rule_op op;
    } groups[] = {{"allOf", EW__RULE_ALL}, {"anyOf", EW__RULE_ANY}, {"oneOf", EW__RULE_ONE}};
    for (size_t i = 0; i < 3; i++) {
        uint32_t item = find_typed(b, groups[i].keyword, EW_JSON_ARRAY, "this must be an array of schemas");
        if (item != 0) {
            read_list(b, item, groups[i].keyword, add(b, groups[i].op, groups[i].keyword));
        }
    }
    uint32_t item = find(b, "not");
    if (item != 0) {
        add(b, EW__RULE_NOT, "not")->u.one.node = sub(b, item, "not");
    }
}

static void add_if(builder *b) {
    uint32_t test = find(b, "if"), then = find(b, "then"), other = find(b, "else");
    if (test != 0) {
        ew__rule *rule = add(b, EW__RULE_IF, "if");
        rule->u.branch.test = sub(b, test, "if");
        rule->u.branch.then = then != 0 ? sub(b, then, "then") : NULL;
        rule->u.branch.other = other != 0 ? sub(b, other, "else") : NULL;
    }
}

static void add_refs(builder *b) {
    ew_str anchor;
    uint32_t item = find(b, "$ref");
    if (item != 0) {
        ew__rule *rule = add(b, EW__RULE_REF, "$ref");
        rule->u.one.node = ew__compiler_resolve(b->c, b->node, item, "$ref", &anchor);
    }
    item = b->node->resource->draft == EW__DRAFT_2020_12 ? find(b, "$dynamicRef") : 0;
    if (item != 0) {
        const ew__schema_node *node = ew__compiler_resolve(b->c, b->node, item, "$dynamicRef", &anchor);
        ew__rule *rule = add(b, anchor.len > 0 ? EW__RULE_DYNAMIC_REF : EW__RULE_REF, "$dynamicRef");
        rule->u.one.node = node;
        rule->u.one.anchor = anchor;
    }
}

/* Last, for they want to know what all others have looked at. */
static void add_unevaluated(builder *b) {
    uint32_t members = find(b, "unevaluatedProperties"), elements = find(b, "unevaluatedItems");
    if (b->node->resource->draft != EW__DRAFT_2020_12) {
        return;
    }
    if (members != 0) {
        ew__rule *rule = add(b, EW__RULE_OTHER_MEMBERS, "unevaluatedProperties");
        rule->u.one.node = sub(b, members, "unevaluatedProperties");
    }
    if (elements != 0) {
        ew__rule *rule = add(b, EW__RULE_OTHER_ELEMENTS, "unevaluatedItems");
        rule->u.one.node = sub(b, elements, "unevaluatedItems");
    }
    b->node->notes = members != 0 || elements != 0;
}

void ew__compile_rules(ew__compiler *c, ew__schema_node *node) {
    static void (*const adders[])(builder *) = {
        add_type,  add_const, add_enum,     add_bounds, add_multiple, add_counts, add_pattern, add_object,
        add_whens, add_array, add_contains, add_unique, add_refs,     add_groups, add_if,      add_unevaluated};
    builder b = {.c = c, .node = node, .tape = &node->doc->tape};
    if (node->resource->draft == EW__DRAFT_07 && find(&b, "$ref") != 0) {
        add_refs(&b); /* what stands beside it is not looked at */
    } else {
        for (size_t i = 0; i < sizeof adders / sizeof adders[0] && c->err == EW_OK; i++) {
            adders[i](&b);
        }
    }
    if (c->err != EW_OK) {
        return;
    }
    ew__rule *rules = get_memory(&b, b.n * sizeof *rules);
    if (rules != NULL) {
        memcpy(rules, b.rules, b.n * sizeof *rules);
        node->rules = rules;
        node->n_rules = b.n;
    }
}
