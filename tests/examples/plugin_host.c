/*
 * tests/examples/plugin_host.c: a program that loads a plug-in: plugin_host PATH CONFIG [OPTIONS]. It uses the shared
 * library, as most hosts do.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdio.h>

int main(int argc, char **argv) {
    ew_app *app = argc > 2 ? ew_app_new("host") : NULL;
    if (!app)
        return 2;
    if (ew_app_plugin(app, argv[1], argv[2]) == EW_OK)
        return ew_app_main(app, argc - 2, argv + 2);
    (void)fprintf(stderr, "host: %s\n", ew_app_error(app));
    ew_app_free(app);
    return 1;
}
