/*
 * schema/compile.c: from a text to a program: what is a schema is found first, then each that the root leads to
 * gets its rules, one after the other, without recursion; then references that lead nowhere but back are refused.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "json/json.h"
#include "base/list.h"
#include "schema/program.h"
#include <stdio.h>

/* ---- what went wrong ---- */

static void note_place(ew__schema_problem *problem, const ew_env *env, const ew__schema_doc *doc, uint32_t item,
                       const char *keyword) {
    ew__buf out;
    uint32_t value = keyword != NULL ? ew__tape_member(&doc->tape, item, ew_str_from(keyword)) : item;
    value = value != 0 ? value : item;
    ew__buf_init(&out, env, EW__SCHEMA_BYTES_MAX);
    (void)ew__buf_cstr(&out, doc->uri);
    (void)ew__tape_pointer(&doc->tape, value, &out);
    int len = (int)(out.len < sizeof problem->pointer ? out.len : sizeof problem->pointer - 1);
    (void)snprintf(problem->pointer, sizeof problem->pointer, "%.*s", len, out.ptr != NULL ? out.ptr : "");
    ew__buf_done(&out);
    problem->at = doc->uri[0] == '\0' ? doc->tape.items[value].at : 0;
}

void ew__compiler_fail(ew__compiler *c, ew_err err, const ew__schema_doc *doc, uint32_t item, const char *keyword,
                       const char *format, ...) {
    va_list args;
    if (c->err != EW_OK) {
        return;
    }
    c->err = err;
    *c->problem = (ew__schema_problem){.at = 0};
    if (doc != NULL && err != EW_ENOMEM) {
        note_place(c->problem, c->env, doc, item, keyword);
    }
    va_start(args, format);
    (void)vsnprintf(c->problem->what, sizeof c->problem->what, err == EW_ENOMEM ? "out of memory" : format, args);
    va_end(args);
}

/* ---- nodes ---- */

ew__schema_node *ew__compiler_node(ew__compiler *c, const ew__resource *resource, ew__schema_doc *doc, uint32_t item,
                                   const char *keyword) {
    ew__schema_node **slot = &c->nodes[ew__doc_index(c->schema, doc)][item];
    ew_json_type type = ew__tape_type(&doc->tape, item);
    if (c->err != EW_OK || *slot != NULL) {
        return *slot;
    }
    if (type != EW_JSON_OBJECT && type != EW_JSON_BOOL) {
        ew__compiler_fail(c, EW_EINVAL, doc, item, NULL, "a schema must be an object, true or false");
        return NULL;
    }
    ew__schema_node *node = ew__arena_alloc(&c->schema->arena, sizeof *node);
    if (node == NULL) {
        ew__compiler_fail(c, EW_ENOMEM, doc, item, NULL, "out of memory");
        return NULL;
    }
    *node = (ew__schema_node){.resource = resource, .doc = doc, .item = item, .keyword = keyword};
    if (type == EW_JSON_BOOL) {
        node->kind = *ew__tape_at(&doc->tape, item) == 't' ? EW__SCHEMA_TRUE : EW__SCHEMA_FALSE;
    }
    EW__TAIL_ADD(c->first, c->last, node);
    *slot = node;
    return node;
}

/* Whatever a $dynamicRef may lead to. */
static void add_dynamic_anchors(ew__compiler *c) {
    for (ew__resource *resource = c->schema->resources; resource != NULL; resource = resource->next) {
        for (ew__anchor *anchor = resource->anchors; anchor != NULL && c->err == EW_OK; anchor = anchor->next) {
            if (anchor->dynamic) {
                anchor->node = ew__compiler_node(c, resource, resource->doc, anchor->item, "$dynamicAnchor");
            }
        }
    }
}

/* Rules bring new nodes; a reference may bring a meta-schema, and that new anchors. */
static void compile_nodes(ew__compiler *c) {
    unsigned n_docs = 0;
    ew__schema_node *node = c->first;
    while (node != NULL && c->err == EW_OK) {
        if (node->kind == EW__SCHEMA_RULES) {
            ew__compile_rules(c, node);
        }
        if (n_docs != c->schema->n_docs && c->err == EW_OK) {
            n_docs = c->schema->n_docs;
            add_dynamic_anchors(c);
        }
        node = node->next;
    }
}

/* ---- references in a circle ---- */

/*
 * Which nodes a rule applies to the value itself (not to a part of it): the k-th, or NULL. A circle of these would never
 * end. $dynamicRef leads where is known only later; the limit of depth holds there.
 */
static const ew__schema_node *applied(const ew__rule *rule, uint32_t k) {
    switch (rule->op) {
    case EW__RULE_ALL:
    case EW__RULE_ANY:
    case EW__RULE_ONE:
        return k < rule->u.nodes.n ? rule->u.nodes.list[k] : NULL;
    case EW__RULE_NOT:
    case EW__RULE_REF:
        return k == 0 ? rule->u.one.node : NULL;
    case EW__RULE_IF: {
        const ew__schema_node *three[3] = {rule->u.branch.test, NULL, NULL};
        unsigned n = 1;
        if (rule->u.branch.then != NULL) {
            three[n++] = rule->u.branch.then;
        }
        if (rule->u.branch.other != NULL) {
            three[n++] = rule->u.branch.other;
        }
        return k < n ? three[k] : NULL;
    }
    case EW__RULE_WHEN_PRESENT:
        for (uint32_t i = 0; i < rule->u.when.n; i++) {
            if (rule->u.when.list[i].node != NULL && k-- == 0) {
                return rule->u.when.list[i].node;
            }
        }
        return NULL;
    default:
        return NULL;
    }
}

/* A node on the way from where the search began, and which of those it applies comes next. */
typedef struct step {
    ew__schema_node *node;
    uint32_t rule, k;
} step;

enum { FRESH, ON_THE_WAY, DONE };

static ew__schema_node *next_applied(step *at) {
    for (; at->rule < at->node->n_rules; at->rule++, at->k = 0) {
        const ew__schema_node *node = applied(&at->node->rules[at->rule], at->k);
        if (node != NULL) {
            at->k++;
            return (ew__schema_node *)(uintptr_t)node;
        }
    }
    return NULL;
}

static void search_from(ew__compiler *c, ew__schema_node *first, step *way) {
    size_t n = 0;
    first->mark = ON_THE_WAY;
    way[n++] = (step){first, 0, 0};
    while (n > 0) {
        ew__schema_node *node = next_applied(&way[n - 1]);
        if (node == NULL) {
            way[--n].node->mark = DONE;
        } else if (node->mark == ON_THE_WAY) {
            const char *keyword = way[n - 1].node->rules[way[n - 1].rule].keyword;
            ew__compiler_fail(c, EW_EINVAL, way[n - 1].node->doc, way[n - 1].node->item, keyword,
                              "this leads back to itself without looking into the value: checking would never end");
            return;
        } else if (node->mark == FRESH) {
            node->mark = ON_THE_WAY;
            way[n++] = (step){node, 0, 0};
        }
    }
}

static void refuse_circles(ew__compiler *c) {
    size_t n = 0;
    for (const ew__schema_node *node = c->first; node != NULL; node = node->next) {
        n++;
    }
    step *way = ew__alloc(c->env, n * sizeof *way);
    if (way == NULL) {
        ew__compiler_fail(c, EW_ENOMEM, NULL, 0, NULL, "out of memory");
        return;
    }
    for (ew__schema_node *node = c->first; node != NULL && c->err == EW_OK; node = node->next) {
        if (node->mark == FRESH) {
            search_from(c, node, way);
        }
    }
    ew__free(c->env, way, n * sizeof *way);
}

/* ---- all of it ---- */

static void compile(ew__compiler *c, ew_str text) {
    size_t position = 0;
    ew_str copy;
    ew_err err = text.len > EW__SCHEMA_BYTES_MAX ? EW_ELIMIT : ew__json_validate(text, &position);
    if (err != EW_OK) {
        ew__compiler_fail(c, err, NULL, 0, NULL,
                          err == EW_ELIMIT ? "the schema is too large or too deep" : "the schema is not valid JSON");
        c->problem->at = position;
        return;
    }
    if (ew__arena_str(&c->schema->arena, text, &copy) != EW_OK) {
        ew__compiler_fail(c, EW_ENOMEM, NULL, 0, NULL, "out of memory");
        return;
    }
    ew__schema_doc *doc = ew__compiler_add_doc(c, copy, "", c->draft);
    if (doc != NULL) {
        c->schema->root = ew__compiler_node(c, c->where[0][0], doc, 0, "");
    }
    compile_nodes(c);
    if (c->err == EW_OK) {
        refuse_circles(c);
    }
}

ew_err ew__schema_compile(const ew_env *env, ew_str text, ew__draft draft, ew__schema_problem *problem,
                          ew__schema **ret) {
    ew__compiler c = {.env = env, .problem = problem, .draft = draft, .schema = ew__zalloc(env, sizeof *c.schema)};
    *ret = NULL;
    if (c.schema == NULL) {
        return EW_ENOMEM;
    }
    c.schema->env = env;
    ew__arena_init(&c.schema->arena, env, NULL, 0);
    env->random(env->ud, c.schema->seed, sizeof c.schema->seed);
    compile(&c, text);
    for (unsigned i = 0; i < c.schema->n_docs; i++) {
        ew__free(env, c.where[i], c.schema->docs[i].tape.n * sizeof(void *));
        ew__free(env, c.nodes[i], c.schema->docs[i].tape.n * sizeof(void *));
    }
    if (c.err != EW_OK) {
        ew__schema_free(c.schema);
        return c.err;
    }
    *ret = c.schema;
    return EW_OK;
}

bool ew__schema_takes_all(const ew__schema *schema) {
    return schema->root->kind == EW__SCHEMA_TRUE ||
           (schema->root->kind == EW__SCHEMA_RULES && schema->root->n_rules == 0);
}

void ew__schema_free(ew__schema *schema) {
    if (schema == NULL) {
        return;
    }
    for (unsigned i = 0; i < schema->n_docs; i++) {
        ew__tape_done(&schema->docs[i].tape);
    }
    ew__arena_done(&schema->arena);
    ew__free(schema->env, schema, sizeof *schema);
}
