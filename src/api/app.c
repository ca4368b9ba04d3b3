/*
 * api/app.c: an app (everywire/app.h): checks of arguments, then the gateway, or the program for ew_app_main.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "program/main.h"

ew_app *ew_app_new(const char *name) { return ew__app_new(name, NULL); }

ew_app *ew_app_new_with(const char *name, const ew_app_options *options) { return ew__app_new(name, options); }

ew_app *ew_app_free(ew_app *app) { return ew__app_free(app); }

ew_err ew_app_action(ew_app *app, const char *key, ew_handler_fn handler, void *arg, const ew_action_options *options) {
    return app ? ew__app_add_action(app, key, handler, arg, options) : EW_EINVAL;
}

ew_err ew_app_listen(ew_app *app, const char *address) { return app ? ew__app_add_listener(app, address) : EW_EINVAL; }

ew_err ew_app_connect(ew_app *app, const char *url) { return app ? ew__app_add_manager(app, url) : EW_EINVAL; }

ew_err ew_app_start(ew_app *app) { return app ? ew__app_start(app) : EW_EINVAL; }

ew_err ew_app_renew_tls(ew_app *app) { return app ? ew__app_renew_tls(app) : EW_EINVAL; }

size_t ew_app_listeners(const ew_app *app) { return ew__app_n_listeners(app); }

ew_err ew_app_listener(const ew_app *app, size_t index, const char **ret_wire, const char **ret_address,
                       int *ret_port) {
    return ew__app_listener_at(app, index, ret_wire, ret_address, ret_port);
}

bool ew_app_listener_tls(const ew_app *app, size_t index) { return ew__app_listener_is_tls(app, index); }

void ew_app_stop(ew_app *app) { ew__app_stop(app); }

ew_err ew_app_wait(ew_app *app) { return ew__app_wait(app); }

const char *ew_app_error(const ew_app *app) { return app->error; }

int ew_app_main(ew_app *app, int argc, char **argv) { return ew__app_main(app, argc, argv); }
