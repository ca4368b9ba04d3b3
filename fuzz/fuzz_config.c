/*
 * fuzz/fuzz_config.c: any bytes as a configuration file: read or refused, with problems in order at places that exist;
 * what becomes JSON is JSON, and an app that is never started takes or refuses the rest.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/app_config.h"
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
    return name[0] == 'N' ? NULL : name[0] == 'E' ? "" : "127.0.0.1";
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
        n += walk(item, depth + 1);
    }
    must(members == node->n && (node->kind != EW__NODE_TEXT || node->text.ptr[node->text.len] == 0));
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const ew_env *env = ew_env_default();
    ew__config *config;
    must(ew__config_parse(env, ew__str(data, size), "/tmp", variable, NULL, &config) == EW_OK);
    check_problems(&config->problems, size);
    must(!config->node || walk(config->node, 0) <= EW__CONFIG_NODES);
    ew__buf json;
    ew__buf_init(&json, env, SIZE_MAX / 2);
    size_t before = config->problems.n;
    if (config->node && ew__node_json(config->node, &json, &config->problems) == EW_OK) {
        must(ew_json_check(ew__buf_view(&json), NULL) == EW_OK);
    }
    ew__buf_done(&json);
    if (before == 0) {
        ew__app_config_rehearse(env, config, false);
        check_problems(&config->problems, size);
    }
    ew__config_free(config);
    return 0;
}
