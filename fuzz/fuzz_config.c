/*
 * fuzz/fuzz_config.c: any bytes as a configuration file: read or refused, with problems in order at places that exist;
 * what becomes JSON is JSON, and an app that is never started takes or refuses the rest.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/config.h"
#include "config_tree.h"
#include <everywire/json.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *variable(void *ud, const char *name) {
    (void)ud;
    return name[0] == 'N' ? NULL : name[0] == 'E' ? "" : "127.0.0.1";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const ew_env *env = ew_env_default();
    ew__config *config;
    must(ew__config_parse(env, ew__str(data, size), "/tmp", variable, NULL, &config) == EW_OK);
    check_problems(&config->problems, size);
    must(!config->node || walk(config->node, 0, false) <= EW__CONFIG_NODES);
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
