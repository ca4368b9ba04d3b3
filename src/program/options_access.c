/*
 * program/options_access.c: the tokens that ew_app_main asks for. See main.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"
#include "program/main.h"
#include "gateway/tokens.h"
#include <stdlib.h>

/* Named by hand; else where callers from elsewhere would otherwise be asked for nothing. */
static bool wants_usual(const ew__settings *s, const ew_app *app) {
    const char *variable = getenv("EVERYWIRE_TOKENS");
    return s->require_token || (variable && *variable) || ew__app_reachable(app);
}

int ew__settings_tokens(const ew__settings *s, ew_app *app) {
    char path[PATH_MAX], problem[PATH_MAX + 128];
    if (s->options.no_token) {
        return s->require_token || s->options.tokens
                   ? ew__settings_usage(s, "--no-token", "contradicts --tokens and --require-token")
                   : 0;
    }
    if (app->access.path || !wants_usual(s, app)) {
        return 0;
    }
    ew_err err = ew__tokens_usual(path, problem, sizeof problem);
    if (err != EW_OK) {
        return ew__settings_usage(s, "tokens", problem);
    }
    err = ew__app_access_tokens(app, path);
    return err == EW_OK ? 0 : ew__settings_usage(s, "tokens", ew_err_text(err));
}
