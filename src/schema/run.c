/*
 * schema/run.c: checking a value against a schema and those within it. The recursion has a limit, and so has the
 * number of steps: what cannot be found out within them is an error, not a long wait.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "schema/run.h"

/* ---- notes ---- */

static bool notes_init(ew__checking *run, ew__notes *notes, uint32_t item) {
    ew_json_type type = ew__tape_type(&run->tape, item);
    bool container = type == EW_JSON_OBJECT || type == EW_JSON_ARRAY;
    *notes = (ew__notes){.n = container ? ew__tape_count(&run->tape, item) : 0};
    if (!ew__checking_spend(run, notes->n / 8 + 1)) {
        return false;
    }
    notes->bits = notes->n > 64 ? ew__zalloc(run->env, (notes->n + 63) / 64 * sizeof *notes->bits) : NULL;
    if (notes->n > 64 && notes->bits == NULL) {
        run->err = EW_ENOMEM;
        return false;
    }
    return true;
}

static void notes_done(ew__checking *run, ew__notes *notes) {
    ew__free(run->env, notes->bits, notes->bits != NULL ? (notes->n + 63) / 64 * sizeof *notes->bits : 0);
}

static void note(ew__notes *notes, uint32_t k) {
    if (notes != NULL) {
        uint64_t *word = notes->bits != NULL ? &notes->bits[k / 64] : &notes->small;
        *word |= UINT64_C(1) << k % 64;
    }
}

static bool is_noted(const ew__notes *notes, uint32_t k) {
    return ((notes->bits != NULL ? notes->bits[k / 64] : notes->small) >> k % 64 & 1) != 0;
}

static void notes_join(ew__notes *into, const ew__notes *from) {
    into->small |= from->small;
    for (uint32_t i = 0; from->bits != NULL && i < (from->n + 63) / 64; i++) {
        into->bits[i] |= from->bits[i];
    }
}

/* ---- parts of a value ---- */

static bool check_part(ew__checking *run, const ew__visit *visit, const ew__schema_node *node, uint32_t item,
                       uint32_t name, uint32_t index) {
    ew__schema_path path = {visit->path, name, index};
    return ew__checking_check(run, (ew__visit){node, item, &path, NULL});
}

/* The same value against another schema; what it has looked at counts only if it fits. */
static bool check_same(ew__checking *run, const ew__visit *visit, const ew__schema_node *node) {
    ew__notes notes;
    if (visit->notes == NULL) {
        return ew__checking_check(run, (ew__visit){node, visit->item, visit->path, NULL});
    }
    if (!notes_init(run, &notes, visit->item)) {
        return false;
    }
    bool fits = ew__checking_check(run, (ew__visit){node, visit->item, visit->path, &notes});
    if (fits) {
        notes_join(visit->notes, &notes);
    }
    notes_done(run, &notes);
    return fits;
}

static bool check_quietly(ew__checking *run, const ew__visit *visit, const ew__schema_node *node) {
    run->quiet++;
    bool fits = check_same(run, visit, node);
    run->quiet--;
    return fits;
}

/* ---- members ---- */

static int compare_name(ew_str a, ew_str b) {
    if (a.len != b.len) {
        return a.len < b.len ? -1 : 1;
    }
    return a.len == 0 ? 0 : memcmp(a.ptr, b.ptr, a.len);
}

static const ew__property *find_decoded(const ew__rule *rule, ew_str name) {
    uint32_t low = 0, high = rule->u.object.n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare_name(rule->u.object.list[middle].name, name);
        if (order == 0) {
            return &rule->u.object.list[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* A name with escapes is compared one by one: that is rare, and the names are the schema's. */
static const ew__property *find_property(ew__checking *run, const ew__rule *rule, ew_str raw) {
    if (raw.len == 0 || memchr(raw.ptr, '\\', raw.len) == NULL) {
        return find_decoded(rule, raw);
    }
    for (uint32_t i = 0; i < rule->u.object.n && ew__checking_spend(run, 1); i++) {
        if (ew__json_name_is(raw, rule->u.object.list[i].name)) {
            return &rule->u.object.list[i];
        }
    }
    return NULL;
}

/* One member: by its name, by patterns, else by additionalProperties. Which of the required ones it is goes to `seen`. */
static bool check_member(ew__checking *run, const ew__visit *visit, const ew__rule *rule, uint32_t name, uint32_t k,
                         ew__notes *seen) {
    const ew__property *property = find_property(run, rule, ew__tape_string(&run->tape, name));
    bool known = property != NULL && property->node != NULL, fits = true;
    if (property != NULL && property->required) {
        note(seen, property->number);
    }
    if (known) {
        fits = check_part(run, visit, property->node, name + 1, name, 0);
    }
    for (uint32_t i = 0; i < rule->u.object.n_patterns && run->err == EW_OK; i++) {
        if (ew__checking_matches(run, rule->u.object.patterns[i].regex, name)) {
            known = true;
            fits = check_part(run, visit, rule->u.object.patterns[i].node, name + 1, name, 0) && fits;
        }
    }
    if (!known && rule->u.object.rest != NULL && run->err == EW_OK) {
        known = true;
        fits = check_part(run, visit, rule->u.object.rest, name + 1, name, 0);
    }
    if (known) {
        note(visit->notes, k);
    }
    return fits && run->err == EW_OK;
}

static bool check_required(ew__checking *run, const ew__visit *visit, const ew__rule *rule, const ew__notes *seen) {
    bool fits = true;
    for (uint32_t i = 0; i < rule->u.object.n; i++) {
        const ew__property *property = &rule->u.object.list[i];
        if (property->required && !is_noted(seen, property->number)) {
            fits = ew__checking_fail(run, visit, "required", "the member \"%.*s\" is missing",
                                     (int)(property->name.len < 128 ? property->name.len : 128), property->name.ptr);
            if (ew__checking_over(run)) {
                return false;
            }
        }
    }
    return fits;
}

static bool check_object(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    const ew__tape *tape = &run->tape;
    uint32_t words = (rule->u.object.n_required + 63) / 64, k = 0, end = ew__tape_end(tape, visit->item);
    ew__notes seen = {.n = rule->u.object.n_required};
    bool fits = true;
    if (seen.n > 64) {
        seen.bits = ew__zalloc(run->env, words * sizeof *seen.bits);
        if (seen.bits == NULL) {
            run->err = EW_ENOMEM;
            return false;
        }
    }
    for (uint32_t i = visit->item + 1; i < end && ew__checking_spend(run, 1); i = ew__tape_next_member(tape, i)) {
        fits = check_member(run, visit, rule, i, k++, &seen) && fits;
        if (!fits && ew__checking_over(run)) {
            break;
        }
    }
    if (run->err == EW_OK && (fits || !ew__checking_over(run))) {
        fits = check_required(run, visit, rule, &seen) && fits;
    }
    notes_done(run, &seen);
    return fits && run->err == EW_OK;
}

static bool check_names(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    const ew__tape *tape = &run->tape;
    bool fits = true;
    uint32_t end = ew__tape_end(tape, visit->item);
    for (uint32_t i = visit->item + 1; i < end && ew__checking_spend(run, 1); i = ew__tape_next_member(tape, i)) {
        fits = check_part(run, visit, rule->u.one.node, i, i, 0) && fits;
        if (!fits && ew__checking_over(run)) {
            break;
        }
    }
    return fits;
}

static bool has_member(ew__checking *run, uint32_t object, ew_str name) {
    return ew__checking_spend(run, ew__tape_end(&run->tape, object) - object) &&
           ew__tape_member(&run->tape, object, name) != 0;
}

static bool check_when(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    bool fits = true;
    for (uint32_t i = 0; i < rule->u.when.n && run->err == EW_OK && (fits || !ew__checking_over(run)); i++) {
        const ew__when *when = &rule->u.when.list[i];
        if (!has_member(run, visit->item, when->name)) {
            continue;
        }
        if (when->node != NULL) {
            fits = check_same(run, visit, when->node) && fits;
        }
        for (uint32_t k = 0; k < when->n_needs && (fits || !ew__checking_over(run)); k++) {
            if (!has_member(run, visit->item, when->needs[k])) {
                fits = ew__checking_fail(run, visit, rule->keyword, "with \"%.*s\", the member \"%.*s\" is missing",
                                         (int)(when->name.len < 64 ? when->name.len : 64), when->name.ptr,
                                         (int)(when->needs[k].len < 64 ? when->needs[k].len : 64), when->needs[k].ptr);
            }
        }
    }
    return fits;
}

/* ---- elements ---- */

static bool check_array(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    const ew__tape *tape = &run->tape;
    uint32_t k = 0, end = ew__tape_end(tape, visit->item);
    bool fits = true;
    for (uint32_t i = visit->item + 1; i < end && ew__checking_spend(run, 1); i = ew__tape_next_element(tape, i), k++) {
        const ew__schema_node *node = k < rule->u.nodes.n ? rule->u.nodes.list[k] : rule->u.nodes.rest;
        if (node == NULL) {
            break;
        }
        note(visit->notes, k);
        fits = check_part(run, visit, node, i, 0, k) && fits;
        if (!fits && ew__checking_over(run)) {
            break;
        }
    }
    return fits;
}

static bool check_contains(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    const ew__tape *tape = &run->tape;
    uint64_t found = 0, min = rule->u.contains.min, max = rule->u.contains.max;
    uint32_t k = 0, end = ew__tape_end(tape, visit->item);
    run->quiet++;
    for (uint32_t i = visit->item + 1; i < end && ew__checking_spend(run, 1); i = ew__tape_next_element(tape, i), k++) {
        if (check_part(run, visit, rule->u.contains.node, i, 0, k)) {
            note(visit->notes, k);
            found++;
        }
        if (found > max || (found >= min && max == UINT64_MAX && visit->notes == NULL)) {
            break;
        }
    }
    run->quiet--;
    if (found < min) {
        return ew__checking_fail(run, visit, min > 1 ? "minContains" : "contains",
                                 "must hold at least %llu elements of a certain kind, holds %llu",
                                 (unsigned long long)min, (unsigned long long)found);
    }
    return found <= max ||
           ew__checking_fail(run, visit, "maxContains", "must hold at most %llu elements of a certain kind",
                             (unsigned long long)max);
}

/* ---- schemas for the same value ---- */

static bool check_all(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    bool fits = true;
    for (uint32_t i = 0; i < rule->u.nodes.n && (fits || !ew__checking_over(run)); i++) {
        fits = check_same(run, visit, rule->u.nodes.list[i]) && fits;
    }
    return fits;
}

static bool check_any(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    bool fits = false;
    for (uint32_t i = 0; i < rule->u.nodes.n && run->err == EW_OK && (!fits || visit->notes != NULL); i++) {
        fits = check_quietly(run, visit, rule->u.nodes.list[i]) || fits;
    }
    return fits || ew__checking_fail(run, visit, "anyOf", "fits none of the %u alternatives", rule->u.nodes.n);
}

static bool check_one(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    unsigned found = 0;
    for (uint32_t i = 0; i < rule->u.nodes.n && run->err == EW_OK && found < 2; i++) {
        found += check_quietly(run, visit, rule->u.nodes.list[i]);
    }
    return found == 1 || ew__checking_fail(run, visit, "oneOf", "fits %s of the %u alternatives, not exactly one",
                                           found == 0 ? "none" : "more than one", rule->u.nodes.n);
}

static bool check_not(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    run->quiet++;
    bool fits = ew__checking_check(run, (ew__visit){rule->u.one.node, visit->item, visit->path, NULL});
    run->quiet--;
    return !fits || ew__checking_fail(run, visit, "not", "fits a schema that it must not fit");
}

static bool check_if(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    bool holds = check_quietly(run, visit, rule->u.branch.test);
    const ew__schema_node *node = holds ? rule->u.branch.then : rule->u.branch.other;
    return run->err == EW_OK && (node == NULL || check_same(run, visit, node));
}

/* The outermost of the schemas entered that has such an anchor. */
static const ew__schema_node *find_dynamic(ew__checking *run, const ew__rule *rule) {
    const ew__schema_node *found = rule->u.one.node;
    for (const ew__scope *scope = run->scope; scope != NULL && ew__checking_spend(run, 1); scope = scope->up) {
        for (const ew__anchor *anchor = scope->resource->anchors; anchor != NULL; anchor = anchor->next) {
            if (anchor->dynamic && ew__str_is(anchor->name, rule->u.one.anchor)) {
                found = anchor->node;
            }
        }
    }
    return found;
}

static bool check_others(ew__checking *run, const ew__visit *visit, const ew__rule *rule, unsigned name) {
    const ew__tape *tape = &run->tape;
    uint32_t k = 0, end = ew__tape_end(tape, visit->item);
    bool fits = true;
    for (uint32_t i = visit->item + 1; i < end && ew__checking_spend(run, 1);
         i = ew__tape_next_element(tape, i + name)) {
        if (!is_noted(visit->notes, k)) {
            note(visit->notes, k);
            fits = check_part(run, visit, rule->u.one.node, i + name, name != 0 ? i : 0, k) && fits;
        }
        k++;
        if (!fits && ew__checking_over(run)) {
            break;
        }
    }
    return fits;
}

/* ---- all ---- */

static bool check_rule(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    ew_json_type type = ew__tape_type(&run->tape, visit->item);
    switch (rule->op) {
    case EW__RULE_OBJECT:
        return type != EW_JSON_OBJECT || check_object(run, visit, rule);
    case EW__RULE_NAMES:
        return type != EW_JSON_OBJECT || check_names(run, visit, rule);
    case EW__RULE_WHEN_PRESENT:
        return type != EW_JSON_OBJECT || check_when(run, visit, rule);
    case EW__RULE_ARRAY:
        return type != EW_JSON_ARRAY || check_array(run, visit, rule);
    case EW__RULE_CONTAINS:
        return type != EW_JSON_ARRAY || check_contains(run, visit, rule);
    case EW__RULE_ALL:
        return check_all(run, visit, rule);
    case EW__RULE_ANY:
        return check_any(run, visit, rule);
    case EW__RULE_ONE:
        return check_one(run, visit, rule);
    case EW__RULE_NOT:
        return check_not(run, visit, rule);
    case EW__RULE_IF:
        return check_if(run, visit, rule);
    case EW__RULE_REF:
        return check_same(run, visit, rule->u.one.node);
    case EW__RULE_DYNAMIC_REF:
        return check_same(run, visit, find_dynamic(run, rule));
    case EW__RULE_OTHER_MEMBERS:
        return type != EW_JSON_OBJECT || check_others(run, visit, rule, 1);
    case EW__RULE_OTHER_ELEMENTS:
        return type != EW_JSON_ARRAY || check_others(run, visit, rule, 0);
    default:
        return ew__checking_value_rule(run, visit, rule);
    }
}

static bool check_rules(ew__checking *run, const ew__visit *visit) {
    bool fits = true;
    for (uint32_t i = 0; i < visit->node->n_rules && ew__checking_spend(run, 1); i++) {
        const ew__rule *rule = &visit->node->rules[i];
        bool last = rule->op == EW__RULE_OTHER_MEMBERS || rule->op == EW__RULE_OTHER_ELEMENTS;
        if (last && !fits) {
            break; /* what has failed may not have noted all that it would have */
        }
        fits = check_rule(run, visit, rule) && fits;
        if (run->err != EW_OK || (!fits && ew__checking_over(run))) {
            break;
        }
    }
    return fits && run->err == EW_OK;
}

/* With notes of its own where the schema needs to know what has been looked at. */
static bool check_noting(ew__checking *run, const ew__visit *visit) {
    ew__notes notes;
    ew__visit own = *visit;
    if (!notes_init(run, &notes, visit->item)) {
        return false;
    }
    own.notes = &notes;
    bool fits = check_rules(run, &own);
    if (fits && visit->notes != NULL) {
        notes_join(visit->notes, &notes);
    }
    notes_done(run, &notes);
    return fits;
}

bool ew__checking_check(ew__checking *run, ew__visit visit) {
    const ew__schema_node *node = visit.node;
    if (node->kind != EW__SCHEMA_RULES) {
        return (ew__checking_spend(run, 1) && node->kind == EW__SCHEMA_TRUE) || ew__checking_fail_false(run, &visit);
    }
    if (run->depth == EW__SCHEMA_DEPTH_MAX) {
        run->err = EW_ELIMIT;
    }
    if (!ew__checking_spend(run, 1) || run->err != EW_OK) {
        return false;
    }
    ew__scope scope = {run->scope, node->resource};
    const ew__scope *outer = run->scope;
    if (outer == NULL || outer->resource != node->resource) {
        run->scope = &scope;
    }
    run->depth++;
    bool fits = node->notes ? check_noting(run, &visit) : check_rules(run, &visit);
    run->depth--;
    run->scope = outer;
    return fits;
}

ew_err ew__schema_check_counting(const ew__schema *schema, const ew_env *env, ew_str json, ew__schema_report *report,
                                 uint64_t *ret_steps) {
    ew__checking run = {.schema = schema, .env = env, .report = report};
    uint64_t allowed = EW__SCHEMA_STEPS + (uint64_t)json.len * EW__SCHEMA_STEPS_PER_BYTE;
    run.left = allowed;
    run.err = ew__tape_read(&run.tape, env, json);
    bool fits = run.err == EW_OK && ew__checking_check(&run, (ew__visit){schema->root, 0, NULL, NULL});
    ew__free(env, run.words, run.words != NULL ? schema->words * sizeof *run.words : 0);
    ew__tape_done(&run.tape);
    if (report != NULL && report->n > 0) {
        (void)ew__buf_cstr(&report->errors, "]}");
        ew_err err = report->errors.err != EW_OK ? report->errors.err : report->line.err;
        run.err = run.err == EW_OK && err == EW_ENOMEM ? err : run.err;
        if (report->errors.err != EW_OK) {
            ew__buf_clear(&report->errors); /* half a list is none */
        }
    }
    *ret_steps = allowed - run.left;
    if (run.err != EW_OK) {
        return run.err;
    }
    return fits ? EW_OK : EW_ETYPE;
}

ew_err ew__schema_check(const ew__schema *schema, const ew_env *env, ew_str json, ew__schema_report *report) {
    uint64_t steps;
    return ew__schema_check_counting(schema, env, json, report, &steps);
}
