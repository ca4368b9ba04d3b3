/*
 * gateway/tls.c: see tls.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include <stdio.h>

ew_err ew__app_tls_configure(ew_app *app, const ew_tls_options *options) {
    ew__arena fresh;
    ew_tls_options copy;
    ew__arena_init(&fresh, app->env, NULL, 0);
    if (ew__tls_copy(&fresh, options, &copy) != EW_OK) {
        ew__arena_done(&fresh);
        return EW_ENOMEM;
    }
    ew__arena_done(&app->tls_texts); /* second: they may be what was given */
    app->tls_texts = fresh;
    app->tls.options = copy;
    return EW_OK;
}

static ew_err open_context(ew_app *app, ew__tls_role role, bool wanted, ew__tls_context **context) {
    char problem[EW__TLS_PROBLEM];
    if (!wanted || *context)
        return EW_OK;
    ew_err err = ew__tls_context_new(app->env, role, &app->tls.options, context, problem);
    if (err != EW_OK)
        (void)snprintf(app->error, sizeof app->error, "%s", problem);
    return err;
}

static bool some_listener(const ew_app *app) {
    for (size_t i = 0; i < app->n_listeners; i++)
        if (app->listeners[i].tls)
            return true;
    return false;
}

static bool some_manager(const ew_app *app) {
    for (size_t i = 0; i < app->n_connects; i++)
        if (app->connects[i]->url.tls)
            return true;
    return false;
}

ew_err ew__app_tls_start(ew_app *app) {
    ew_err err = open_context(app, EW__TLS_LISTENS, some_listener(app), &app->tls.listens);
    bool dials = some_manager(app) || (app->telemetry.aimed && app->telemetry.aim.tls);
    return err == EW_OK ? open_context(app, EW__TLS_DIALS, dials, &app->tls.dials) : err;
}

static ew_err renew(ew_app *app, ew__tls_context *context, const char *what) {
    char problem[EW__TLS_PROBLEM];
    ew_err err = context ? ew__tls_context_renew(context, &app->tls.options, problem) : EW_OK;
    if (err != EW_OK)
        ew__log(app->env, EW_LOG_ERROR, "tls", "%s; %s go on with the certificate that they have", problem, what);
    return err;
}

ew_err ew__app_renew_tls(ew_app *app) {
    if (!app->lifecycle.started)
        return EW_EINVAL;
    ew_err listens = renew(app, app->tls.listens, "listeners");
    ew_err dials = renew(app, app->tls.dials, "managers and telemetry");
    ew_err imports = ew__app_sources_renew_tls(app);
    ew_err err = listens != EW_OK ? listens : dials != EW_OK ? dials : imports;
    if (err == EW_OK && app->tls.listens)
        ew__log(app->env, EW_LOG_INFO, "tls", "the certificate %s was read again: new connections are shown it",
                app->tls.options.certificate);
    return err;
}

void ew__app_tls_free(ew_app *app) {
    ew__tls_context_free(app->tls.listens);
    ew__tls_context_free(app->tls.dials);
    ew__arena_done(&app->tls_texts);
}
