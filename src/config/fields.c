/*
 * config/fields.c: goes through a tree by tables. See fields.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "config/fields.h"
#include "base/suggestion.h"
#include "base/util.h"
#include <stdio.h>

static const ew__field *find_field(const ew__group *group, ew_str name) {
    for (const ew__field *field = group->fields; field->name; field++) {
        if (ew__str_is(name, ew_str_from(field->name))) {
            return field;
        }
    }
    return NULL;
}

/* Names the one that was probably meant, or all that there are. */
static void unknown_key(ew__reading *reading, const ew__group *group, const ew__node *key) {
    ew__suggestion near;
    char all[320] = "";
    size_t n = 0;
    ew__suggestion_init(&near, key->text);
    for (const ew__field *field = group->fields; field->name; field++) {
        ew__suggestion_try(&near, ew_str_from(field->name));
        if (n < sizeof all) {
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", field->name);
        }
    }
    ew__shown shown = ew__show(key->text);
    if (near.best.ptr) {
        ew__problem_add(reading->problems, key->line, key->column, "unknown key %s; did you mean %s?", shown.text,
                        near.best.ptr);
    } else if (n < sizeof all) {
        ew__problem_add(reading->problems, key->line, key->column, "unknown key %s; known here: %s", shown.text, all);
    } else {
        ew__problem_add(reading->problems, key->line, key->column, "unknown key %s", shown.text);
    }
}

/* Reads what a list or map holds into an array of the group's structs. */
static void read_items(ew__reading *reading, const ew__field *field, const ew__node *node, ew__items *out) {
    char *items = ew__arena_alloc(reading->arena, (node->n + 1) * field->group->size);
    size_t n = 0;
    if (!items) {
        reading->problems->no_memory = true;
        return;
    }
    for (const ew__node *item = node->first; item; item = item->next) {
        ew__group_read(reading, field->group, item, items + n++ * field->group->size);
    }
    *out = (ew__items){items, n};
}

static void read_field(ew__reading *reading, const ew__field *field, const ew__node *node, void *item) {
    bool json = field->type == EW__FIELD_JSON || field->type == EW__FIELD_JSON_TEXT;
    char *at = (char *)item + field->offset;
    if (node->bad || (!json && ew__node_is_null(node))) {
        return;
    }
    switch (field->type) {
    case EW__FIELD_GROUP:
        ew__group_read(reading, field->group, node, at);
        break;
    case EW__FIELD_LIST:
    case EW__FIELD_NAMED:
        if (node->kind != (field->type == EW__FIELD_LIST ? EW__NODE_LIST : EW__NODE_MAP)) {
            ew__field_wants(reading, field, node);
            break;
        }
        read_items(reading, field, node, (ew__items *)(void *)at);
        break;
    case EW__FIELD_OWN:
        field->read(reading, field, node, item);
        break;
    default:
        ew__value_read(reading, field, node, item);
        break;
    }
}

static void read_members(ew__reading *reading, const ew__group *group, const ew__node *map, void *item) {
    for (const ew__node *member = map->first; member; member = member->next) {
        const ew__field *field = find_field(group, member->key->text);
        if (field) {
            read_field(reading, field, member, item);
        } else if (!group->open && reading->problems->n < EW__PROBLEMS_MAX) {
            unknown_key(reading, group, member->key);
        }
    }
    for (const ew__field *field = group->fields; field->name; field++) {
        const ew__node *member = field->required ? ew__node_get(map, field->name) : NULL;
        if (field->required && (!member || ew__node_is_null(member))) {
            ew__problem_add(reading->problems, map->line, map->column, "the key %s is missing", field->name);
        }
    }
}

void ew__group_read(ew__reading *reading, const ew__group *group, const ew__node *node, void *item) {
    memset(item, 0, group->size);
    *(const ew__node **)item = node;
    if (node->bad) {
        return;
    }
    const ew__field *alone = group->alone ? find_field(group, ew_str_from(group->alone)) : NULL;
    if (node->kind == EW__NODE_MAP) {
        read_members(reading, group, node, item);
    } else if (alone && !ew__node_is_null(node)) {
        read_field(reading, alone, node, item);
    } else {
        ew__problem_add(reading->problems, node->line, node->column, "%s wants a map of keys and values", group->title);
        return;
    }
    if (group->check) {
        group->check(reading, node, item);
    }
}
