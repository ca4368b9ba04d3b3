/*
 * schema/values.c: rules that look at a value and at no other schema.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "schema/run.h"

bool ew__checking_is_integer(const ew__checking *run, uint32_t item) {
    ew__decimal number = ew__decimal_read(ew__tape_scalar(&run->tape, item));
    return ew__decimal_is_integer(&number);
}

static bool check_type(ew__checking *run, const ew__visit *visit, unsigned types) {
    ew_json_type type = ew__tape_type(&run->tape, visit->item);
    if ((types >> type & 1) != 0 ||
        (type == EW_JSON_NUMBER && (types & EW__TYPE_INTEGER) != 0 && ew__checking_is_integer(run, visit->item))) {
        return true;
    }
    return ew__checking_fail_type(run, visit, types);
}

/* Whether the value equals one of the schema. */
static bool equals(ew__checking *run, const ew__visit *visit, uint32_t item) {
    bool same = false;
    ew__value ours = {&visit->node->doc->tape, item}, theirs = {&run->tape, visit->item};
    uint32_t size = ew__tape_end(ours.tape, item) - item;
    if (!ew__checking_spend(run, size)) {
        return false;
    }
    ew_err err = ew__value_equal(run->schema->seed, run->env, ours, theirs, &same);
    run->err = run->err == EW_OK ? err : run->err;
    return same;
}

static bool check_enum(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    const ew__hashed *list = rule->u.choice.list;
    uint32_t n = rule->u.choice.n;
    if (!ew__checking_spend(run, ew__tape_end(&run->tape, visit->item) - visit->item)) {
        return false;
    }
    uint64_t hash = ew__value_hash(run->schema->seed, (ew__value){&run->tape, visit->item});
    for (size_t i = ew__hashed_find(list, n, hash); i < n && list[i].hash == hash; i++) {
        if (equals(run, visit, list[i].item)) {
            return true;
        }
    }
    return ew__checking_fail_choice(run, visit, rule);
}

#define SHOWN_MAX 40 /* bytes of a schema's number in a message */

static int shown(ew_str text) { return (int)(text.len < SHOWN_MAX ? text.len : SHOWN_MAX); }

static bool check_bound(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    ew__decimal number = ew__decimal_read(ew__tape_scalar(&run->tape, visit->item));
    int order = ew__decimal_compare(&number, &rule->u.bound.limit);
    bool lower = rule->u.bound.lower, open = rule->u.bound.open;
    if (lower ? order > 0 : order < 0) {
        return true;
    }
    return (order == 0 && !open) ||
           ew__checking_fail(run, visit, rule->keyword, "must be %s %.*s",
                             lower ? (open ? "above" : "at least") : (open ? "below" : "at most"),
                             shown(rule->u.bound.text), rule->u.bound.text.ptr);
}

static bool check_multiple(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    ew__decimal number = ew__decimal_read(ew__tape_scalar(&run->tape, visit->item));
    return ew__decimal_is_multiple(&number, &rule->u.multiple.divisor) ||
           ew__checking_fail(run, visit, rule->keyword, "must be a multiple of %.*s", shown(rule->u.multiple.text),
                             rule->u.multiple.text.ptr);
}

static uint64_t count_characters(ew_str raw) {
    uint64_t n = 0;
    const char *end = ew__json_end(raw);
    for (const char *at = raw.ptr; at < end; n++) {
        (void)ew__json_char(&at, end);
    }
    return n;
}

static bool check_count(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    bool string = rule->u.count.of == EW_JSON_STRING;
    uint64_t n =
        string ? count_characters(ew__tape_string(&run->tape, visit->item)) : ew__tape_count(&run->tape, visit->item);
    if (!ew__checking_spend(run, n / 8)) {
        return false;
    }
    const char *what = string ? "characters" : rule->u.count.of == EW_JSON_ARRAY ? "elements" : "members";
    bool lower = rule->u.count.lower;
    return (lower ? n >= rule->u.count.n : n <= rule->u.count.n) ||
           ew__checking_fail(run, visit, rule->keyword, "must have %s %llu %s, has %llu",
                             lower ? "at least" : "at most", (unsigned long long)rule->u.count.n, what,
                             (unsigned long long)n);
}

bool ew__checking_matches(ew__checking *run, const ew__regex *regex, uint32_t item) {
    bool matched = false;
    if (run->words == NULL) {
        run->words = ew__alloc(run->env, run->schema->words * sizeof *run->words);
    }
    ew_err err = run->words != NULL ? EW_OK : EW_ENOMEM;
    if (err == EW_OK) {
        err = ew__regex_match(regex, ew__tape_string(&run->tape, item), run->words, &run->left, &matched);
    }
    run->err = run->err == EW_OK ? err : run->err;
    return matched;
}

static bool check_unique(ew__checking *run, const ew__visit *visit) {
    bool unique = true;
    if (!ew__checking_spend(run, ew__tape_end(&run->tape, visit->item) - visit->item)) {
        return false;
    }
    ew_err err = ew__value_unique(run->schema->seed, run->env, (ew__value){&run->tape, visit->item}, &unique);
    run->err = run->err == EW_OK ? err : run->err;
    return unique || ew__checking_fail(run, visit, "uniqueItems", "two elements are equal");
}

bool ew__checking_value_rule(ew__checking *run, const ew__visit *visit, const ew__rule *rule) {
    ew_json_type type = ew__tape_type(&run->tape, visit->item);
    switch (rule->op) {
    case EW__RULE_TYPE:
        return check_type(run, visit, rule->u.types);
    case EW__RULE_CONST:
        return equals(run, visit, rule->u.item) ||
               ew__checking_fail(run, visit, "const", "is not the one value that is allowed");
    case EW__RULE_ENUM:
        return check_enum(run, visit, rule);
    case EW__RULE_BOUND:
        return type != EW_JSON_NUMBER || check_bound(run, visit, rule);
    case EW__RULE_MULTIPLE:
        return type != EW_JSON_NUMBER || check_multiple(run, visit, rule);
    case EW__RULE_COUNT:
        return type != rule->u.count.of || check_count(run, visit, rule);
    case EW__RULE_PATTERN:
        return type != EW_JSON_STRING || ew__checking_matches(run, rule->u.pattern.regex, visit->item) ||
               ew__checking_fail(run, visit, "pattern", "does not match the pattern");
    default:
        return type != EW_JSON_ARRAY || check_unique(run, visit);
    }
}
