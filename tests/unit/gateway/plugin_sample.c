/*
 * tests/unit/gateway/plugin_sample.c: the plug-ins of test_plugin.c, good and bad ones: one is made for each SAMPLE_...
 * that CMakeLists.txt names.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>

/* The test program has it: a plug-in of this program tells when its code goes. */
EW_API void ew_test_plugin_gone(void);
/* Nobody has it. */
EW_API int ew_test_plugin_nowhere(void);

#ifndef SAMPLE_EMPTY
#ifndef SAMPLE_NOTHING
static char kept[1000]; /* its configuration */

static void config(ew_call *call, void *arg) { (void)ew_call_done(call, ew_str_from(arg)); }

static void blocking(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_wait(call, 5);
    (void)ew_call_done(call, EW_STR("\"waited\""));
}

static ew_err add(ew_app *app, const ew_plugin *plugin) {
    if (plugin->abi != 1 || plugin->config.len >= sizeof kept)
        return EW_EUNSUPPORTED;
    for (size_t i = 0; i < plugin->config.len; i++)
        kept[i] = plugin->config.ptr[i];
    kept[plugin->config.len] = '\0';
    ew_err err = ew_app_action(app, "/test/config", config, kept, &(ew_action_options){.description = "of a plug-in"});
    return err ? err : ew_app_action(app, "/test/block", blocking, NULL, &(ew_action_options){.may_block = true});
}
#endif

EW_PLUGIN_EXPORT ew_err everywire_plugin(ew_app *app, const ew_plugin *plugin) {
#if defined(SAMPLE_NOTHING)
    (void)app;
    return plugin->config.len ? EW_OK : EW_EINVAL;
#elif defined(SAMPLE_FAILS)
    (void)add;
    (void)app;
    (void)plugin;
    return EW_EACCESS;
#elif defined(SAMPLE_HALF)
    ew_err err = add(app, plugin);
    return err ? err : EW_EBUSY;
#elif defined(SAMPLE_TWICE)
    ew_err err = add(app, plugin);
    return err ? err : add(app, plugin);
#elif defined(SAMPLE_UNDEFINED)
    return ew_test_plugin_nowhere() ? EW_EINVAL : add(app, plugin);
#else
    return add(app, plugin);
#endif
}
#endif

#ifdef SAMPLE_GONE
__attribute__((destructor)) static void gone(void) { ew_test_plugin_gone(); }
#endif
