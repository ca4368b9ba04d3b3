/*
 * gateway/tls.h: the certificates of an app: for its listeners, and for the peers that it dials.
 */
#ifndef EW_GATEWAY_TLS_H
#define EW_GATEWAY_TLS_H

#include "base/mem.h"
#include "io/tls.h"

struct ew_app;

typedef struct ew__app_tls {
    ew_tls_options options;   /* its strings are ours */
    ew__tls_context *listens; /* from the start on, if some listener speaks TLS */
    ew__tls_context *dials;   /* likewise, for managers and a telemetry server */
} ew__app_tls;

/* Takes options in place of those that there are. Before the start. EW_OK, EW_ENOMEM. */
ew_err ew__app_tls_configure(struct ew_app *app, const ew_tls_options *options);
/* Reads the files that are needed. Errors as ew__tls_context_new, in the app's own words. */
ew_err ew__app_tls_start(struct ew_app *app);
/* With the app. */
void ew__app_tls_free(struct ew_app *app);

#endif
