/*
 * A plug-in: actions for a program that was built without them. It is not linked with the library: its host has that.
 *     cc -shared -fPIC plugin.c $(pkg-config --cflags everywire) -o plugin.so
 * A host loads it with ew_app_plugin(app, "./plugin.so", "{\"greeting\":\"Good day\"}"), and then:
 *     everywire call http://127.0.0.1:3400 welcome '"Ada"'
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>

static char greeting[64] = "Hello";

static void upper(ew_call *call, void *arg) {
    (void)arg;
    ew_str text = {0};
    if (!ew_call_input_str(call, "", &text))
        return; /* it is not a string: the call has failed with INVALID_ARGUMENT */
    char *result = ew_call_alloc(call, text.len + 1);
    if (!result) {
        ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, NULL);
        return;
    }
    for (size_t i = 0; i < text.len; i++)
        result[i] = text.ptr[i] >= 'a' && text.ptr[i] <= 'z' ? (char)(text.ptr[i] - 'a' + 'A') : text.ptr[i];
    ew_call_donef(call, "%q", ((ew_str){result, text.len}));
}

static void welcome(ew_call *call, void *arg) {
    ew_str name = {0};
    if (ew_call_input_str(call, "", &name))
        ew_call_donef(call, "{\"greeting\":%q,\"name\":%q}", (const char *)arg, name);
}

/* What the host calls once. An error keeps it from starting: better now than at the first call. */
EW_PLUGIN_EXPORT ew_err everywire_plugin(ew_app *app, const ew_plugin *plugin) {
    ew_str wanted = ew_json_get(plugin->config, "/greeting");
    size_t n = 0;
    if (plugin->abi != EW_PLUGIN_ABI)
        return EW_EUNSUPPORTED;
    if (wanted.len && ew_json_string(wanted, greeting, sizeof greeting - 1, &n) != EW_OK)
        return EW_ETYPE;
    if (wanted.len)
        greeting[n] = '\0';
    ew_err err = ew_app_action(app, "/tool/upper", upper, NULL, &(ew_action_options){.description = "In capitals"});
    return err ? err : ew_app_action(app, "/flow/welcome", welcome, greeting, NULL);
}
