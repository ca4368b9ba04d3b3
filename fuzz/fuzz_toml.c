/*
 * fuzz/fuzz_toml.c: any bytes as RRQ's configuration file: read or refused, with problems in order at places that exist;
 * no table has a name twice, and what becomes JSON is JSON.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "config/rrq.h"
#include <everywire/json.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds) {
        abort();
    }
}

static const char *variable(void *ud, const char *name) {
    (void)ud;
    (void)name;
    return NULL;
}

static void check_problems(const ew__problems *problems, size_t size) {
    must(problems->n <= EW__PROBLEMS_MAX && !problems->no_memory);
    for (size_t i = 0; i < problems->n; i++) {
        const ew__problem *p = &problems->list[i], *before = i ? p - 1 : p;
        must(p->line <= size + 1 && p->column <= size + 2 && (p->line == 0) == (p->column == 0));
        must(before->line < p->line || (before->line == p->line && before->column <= p->column));
        must(*p->message);
    }
}

static size_t walk(const ew__node *node, size_t depth) {
    size_t n = 1, members = 0;
    must(depth <= EW__CONFIG_DEPTH && node->line >= 1 && node->column >= 1);
    for (const ew__node *item = node->first; item; item = item->next, members++) {
        must((item->key != NULL) == (node->kind == EW__NODE_MAP));
        for (const ew__node *other = item->next; item->key && other && members < 20; other = other->next) {
            must(!ew__str_is(item->key->text, other->key->text));
        }
        n += walk(item, depth + 1);
    }
    must(members == node->n && (node->kind != EW__NODE_TEXT || node->text.ptr[node->text.len] == 0));
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const ew_env *env = ew_env_default();
    ew__config *config;
    must(ew__rrq_parse(env, ew__str(data, size), "/tmp", variable, NULL, &config) == EW_OK);
    check_problems(&config->problems, size);
    must(config->node ? walk(config->node, 0) <= EW__CONFIG_NODES : config->problems.n > 0);
    ew__buf json;
    ew__buf_init(&json, env, SIZE_MAX / 2);
    if (config->node && ew__node_json(config->node, &json, &config->problems) == EW_OK) {
        must(ew_json_check(ew__buf_view(&json), NULL) == EW_OK);
    }
    ew__buf_done(&json);
    ew__config_free(config);
    return 0;
}
