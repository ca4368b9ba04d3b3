/*
 * A plug-in: actions for a program that was built without them. It is not linked with the library: its host has that.
 *     cc -shared -fPIC plugin.c $(pkg-config --cflags everywire) -o plugin.so
 * A host loads it with ew_app_plugin(app, "./plugin.so", "{\"greeting\":\"Good day\"}"), and then:
 *     everywire call http://127.0.0.1:3400 welcome '"Ada"'
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>

static char greeting[64] = "Hello";

/* The input as plain text, in the call's memory; NULL: the call has failed. */
static char *text_of(ew_call *call, size_t *ret_len) {
    ew_str input = ew_call_input(call);
    char *text = ew_call_alloc(call, input.len);
    if (!text)
        ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, NULL);
    else if (ew_json_string(input, text, input.len, ret_len) == EW_OK)
        return text;
    else
        ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT, "the input must be a string");
    return NULL;
}

static void upper(ew_call *call, void *arg) {
    (void)arg;
    size_t n = 0;
    char *text = text_of(call, &n);
    if (!text)
        return;
    for (size_t i = 0; i < n; i++)
        if (text[i] >= 'a' && text[i] <= 'z')
            text[i] = (char)(text[i] - 'a' + 'A');
    ew_call_donef(call, "%q", (ew_str){text, n});
}

static void welcome(ew_call *call, void *arg) {
    size_t n = 0;
    const char *name = text_of(call, &n);
    if (name)
        ew_call_donef(call, "{\"greeting\":%Q,\"name\":%q}", (const char *)arg, (ew_str){name, n});
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
