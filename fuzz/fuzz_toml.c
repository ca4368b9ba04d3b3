/*
 * fuzz/fuzz_toml.c: any bytes as RRQ's configuration file: read or refused, with problems in order at places that exist;
 * no table has a name twice, and what becomes JSON is JSON.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "compat/rrq/settings.h"
#include "config_tree.h"
#include <everywire/json.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *variable(void *ud, const char *name) {
    (void)ud;
    (void)name;
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const ew_env *env = ew_env_default();
    ew__config *config;
    must(ew__rrq_parse(env, ew__str(data, size), "/tmp", variable, NULL, &config) == EW_OK);
    check_problems(&config->problems, size);
    must(config->node ? walk(config->node, 0, true) <= EW__CONFIG_NODES : config->problems.n > 0);
    ew__buf json;
    ew__buf_init(&json, env, SIZE_MAX / 2);
    if (config->node && ew__node_json(config->node, &json, &config->problems) == EW_OK) {
        must(ew_json_check(ew__buf_view(&json), NULL) == EW_OK);
    }
    ew__buf_done(&json);
    ew__config_free(config);
    return 0;
}
