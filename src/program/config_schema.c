/*
 * program/config_schema.c: the schemas of a configuration file's actions: those in files of their own are read, and what
 * is wrong with one is said at its place in the file. See config.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/config.h"
#include "schema/schema.h"
#include <stdio.h>

typedef struct item {
    const char *name;
    const char **text;
} item;

enum { N = 3 };

static void list(ew__config_action *action, item out[N]) {
    out[0] = (item){"input_schema", &action->describe.input_schema};
    out[1] = (item){"output_schema", &action->describe.output_schema};
    out[2] = (item){"stream_schema", &action->describe.stream_schema};
}

/* ---- files ---- */

/* "@FILE": its text takes the place of its name. */
static void load(ew__config *config, const ew__node *node, const item *it) {
    ew__reading reading = {&config->arena, &config->problems, config->folder};
    const char *name = *it->text, *path = ew__path(&reading, name + 1);
    char why[160];
    ew__buf text;
    ew__buf_init(&text, config->arena.env, EW__CONFIG_BYTES + 16384);
    *it->text = NULL;
    if (path && !ew__config_read_beside(path, &text, why, sizeof why)) {
        ew__problem_add(&config->problems, node ? node->line : 0, node ? node->column : 0, "%s: %s: %s", it->name,
                        ew__show(ew_str_from(name + 1)).text, why);
    } else if (path && text.len > 0 && memchr(text.ptr, 0, text.len)) {
        ew__problem_add(&config->problems, node ? node->line : 0, node ? node->column : 0, "%s: %s has a NUL in it",
                        it->name, ew__show(ew_str_from(name + 1)).text);
    } else if (path) {
        *it->text = ew__join(&reading, ew__buf_view(&text), 0, ew__str(NULL, 0));
    }
    ew__buf_done(&text);
}

void ew__app_config_load_schemas(ew__config *config, ew__config_action *action) {
    item items[N];
    list(action, items);
    for (size_t i = 0; i < N; i++) {
        if (*items[i].text && (*items[i].text)[0] == '@') {
            load(config, ew__node_get(action->node, items[i].name), &items[i]);
        }
    }
}

void ew__app_config_print_schemas(const ew__config_action *action, ew__buf *out) {
    const ew_action_options *say = &action->describe;
    const char *texts[N] = {say->input_schema, say->output_schema, say->stream_schema};
    for (size_t i = 0; i < N; i++) {
        (void)ew__buf_char(out, 0);
        (void)ew__buf_cstr(out, texts[i] ? texts[i] : "");
    }
}

/* ---- what is wrong ---- */

static const ew__node *child(const ew__node *node, ew_str token) {
    char name[256];
    size_t n = 0;
    uint64_t index;
    if (node->kind == EW__NODE_LIST) {
        return ew__u64_parse(token, &index) && index < node->n ? ew__node_at(node, (size_t)index) : NULL;
    }
    for (size_t i = 0; i < token.len && n + 1 < sizeof name; i++) {
        bool escaped = token.ptr[i] == '~' && i + 1 < token.len;
        name[n++] = !escaped ? token.ptr[i] : token.ptr[++i] == '1' ? '/' : '~';
    }
    name[n] = 0;
    return ew__node_get(node, name);
}

/* The part of a schema in YAML that a JSON pointer means, or as much of the way as there is. */
static const ew__node *place_of(const ew__node *node, const char *pointer) {
    while (node && *pointer == '/') {
        size_t n = strcspn(++pointer, "/");
        const ew__node *next = child(node, ew__str(pointer, n));
        if (!next) {
            break;
        }
        node = next;
        pointer += n;
    }
    return node;
}

static bool check(ew__config *config, const ew__node *node, const item *it) {
    ew__schema *schema = NULL;
    ew__schema_problem problem;
    if (!*it->text) {
        return true;
    }
    ew_err err = ew__schema_compile(config->arena.env, ew_str_from(*it->text), EW__DRAFT_2020_12, &problem, &schema);
    ew__schema_free(schema);
    if (err == EW_ENOMEM) {
        config->problems.no_memory = true;
    } else if (err != EW_OK) {
        const ew__node *at = place_of(node, problem.pointer);
        ew__problem_add(&config->problems, at ? at->line : 0, at ? at->column : 0, "%s: %s%s%s", it->name,
                        problem.pointer, problem.pointer[0] ? ": " : "", problem.what);
    }
    return err == EW_OK;
}

bool ew__app_config_check_schemas(ew__config *config, const ew__config_action *action) {
    ew__config_action copy = *action;
    item items[N];
    bool ok = true;
    list(&copy, items);
    for (size_t i = 0; i < N; i++) {
        ok = check(config, ew__node_get(action->node, items[i].name), &items[i]) && ok;
    }
    return ok;
}
