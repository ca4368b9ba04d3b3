/*
 * A C function as an action. Run it, then:
 *     everywire call http://127.0.0.1:3400 greet '{"name":"Ada"}' --stream
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>

static void greet(ew_call *call, void *arg) {
    (void)arg;
    ew_str name = EW_STR("world"); /* unless the input has another */
    if (!ew_call_input_str(call, "/name", &name))
        return; /* it is not a string: the call has failed with INVALID_ARGUMENT */
    ew_call_chunkf(call, "{\"text\":%q}", name);
    ew_call_donef(call, "{\"greeted\":%q}", name);
}

int main(int argc, char **argv) {
    ew_app *app = ew_app_new("greeter");
    ew_app_action(app, "/flow/greet", greet, NULL, &(ew_action_options){.description = "Greets by name"});
    return ew_app_main(app, argc, argv);
}
