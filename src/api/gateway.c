/*
 * api/gateway.c: sources of actions and the configuration file (everywire/gateway.h): checks of arguments, then the
 * gateway or the program.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "program/config.h"

ew_err ew_app_import(ew_app *app, const char *targets, const ew_import_options *options) {
    return app ? ew__app_add_import(app, targets, options) : EW_EINVAL;
}

ew_err ew_app_wait_imports(ew_app *app, uint64_t ms) { return ew__app_wait_imports(app, ms); }

ew_err ew_app_exec(ew_app *app, const char *key, const ew_exec_options *options, const ew_action_options *action) {
    return app ? ew__app_add_exec(app, key, options, action) : EW_EINVAL;
}

ew_err ew_app_plugin(ew_app *app, const char *path, const char *config) {
    return app ? ew__app_add_plugin(app, path, config) : EW_EINVAL;
}

ew_err ew_config_check(const char *path, ew_config_problem_fn told, void *ud) {
    return path ? ew__app_config_check(ew_env_default(), path, told, ud) : EW_EINVAL;
}
