/*
 * gateway/plugin.c: plug-ins register their actions with an app.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/plugin.h"
#include "gateway/app.h"
#include <stdio.h>

/* Of a long path the end is shown. why may be the app's own error. */
static ew_err fail(ew_app *app, ew_err err, const char *path, const char *why) {
    enum { SHOWN = 100 };
    char text[sizeof app->error];
    size_t n = strlen(path);
    (void)snprintf(text, sizeof text, "plug-in %s%.100s: %.140s", n > SHOWN ? "..." : "",
                   n > SHOWN ? path + n - SHOWN : path, why);
    memcpy(app->error, text, sizeof text);
    return err;
}

static ew_err read_config(ew_app *app, const char *path, const char *config, ew_str *ret) {
    char why[100];
    size_t at = 0;
    *ret = config ? ew_str_from(config) : EW_STR("null");
    ew_err err = ew_json_check(*ret, &at);
    if (err == EW_OK) {
        *ret = ew_json_get(*ret, ""); /* without white space around it */
        return EW_OK;
    }
    (void)snprintf(why, sizeof why, "its configuration is no JSON: %s at byte %zu",
                   err == EW_ELIMIT ? "it nests too deep" : "an error", at);
    return fail(app, EW_ESYNTAX, path, why);
}

/* It stays loaded whatever it says: actions that it has registered already point into it. */
static ew_err enter(ew_app *app, const char *path, const ew__plugin *plugin, ew_str config) {
    const ew_plugin told = {.abi = EW_PLUGIN_ABI, .config = config};
    app->error[0] = '\0';
    ew_err err = ew__plugin_fn(plugin)(app, &told);
    return err == EW_OK ? EW_OK : fail(app, err, path, app->error[0] ? app->error : ew_err_text(err));
}

ew_err ew__app_add_plugin(ew_app *app, const char *path, const char *config) {
    char problem[sizeof app->error];
    ew__plugin *plugin = NULL;
    ew_str json;
    if (ew__app_may_change(app, "cannot load a plug-in") != EW_OK)
        return EW_EINVAL;
    if (!path)
        return ew__app_fail(app, EW_EINVAL, "cannot load a plug-in: the path is NULL");
    ew_err err = read_config(app, path, config, &json);
    if (err != EW_OK)
        return err;
    if (app->plugins.n == EW__PLUGINS_MAX)
        return fail(app, EW_ELIMIT, path, "there are 64 of them already");
    err = ew__plugin_load(app->env, path, &plugin, problem, sizeof problem);
    if (err != EW_OK)
        return fail(app, err, path, problem);
    app->plugins.all[app->plugins.n++] = plugin;
    return enter(app, path, plugin, json);
}

void ew__app_plugins_unload(ew__app_plugins *plugins) {
    while (plugins->n > 0)
        ew__plugin_unload(plugins->all[--plugins->n]);
}
