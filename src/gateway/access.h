/*
 * gateway/access.h: whom an app asks for a token, and those who connect by their address.
 */
#ifndef EW_GATEWAY_ACCESS_H
#define EW_GATEWAY_ACCESS_H

#include "client/own_token.h"
#include "gateway/tokens.h"
#include "call/access.h"
#include <everywire/app.h>

struct ew_app;
struct ew__app_loop;

typedef struct ew__app_access {
    char *path;                     /* the file of tokens; NULL: none are asked for */
    char shown[EW__OWN_TOKEN_SIZE]; /* what we show to those whom we dial; "": nothing */
    bool no_token;                  /* everybody may call, on every address */
    bool count_local;               /* a number of connections was asked for by hand: it holds for this machine, too */
    bool made, gated;               /* the two below are; and gates stand */
    ew__access shared;
    ew__clients clients;
    pthread_mutex_t look_lock;
    struct stat seen; /* the file as it was read; under look_lock */
    bool failing;     /* it could not be read the last time: said once */
} ew__app_access;

/* What the options say. EW_OK; EW_EINVAL: the token is none, ew_app_error tells more; EW_ENOMEM. */
ew_err ew__app_access_configure(struct ew_app *app, const ew_app_options *options);
/* The file of tokens, NULL for none. EW_OK, EW_ENOMEM. */
ew_err ew__app_access_tokens(struct ew_app *app, const char *tokens);
/*
 * Whether a listener can be reached from other machines by those who have shown nothing, not even a certificate. Its
 * address, for people; or NULL.
 */
const char *ew__app_reachable(const struct ew_app *app);
/*
 * Before anything listens: reads the tokens, and refuses to be open to everybody. EW_OK; EW_EACCESS and others:
 * ew_app_error tells more.
 */
ew_err ew__app_access_start(struct ew_app *app);
void ew__app_access_attach(struct ew__app_loop *loop); /* a loop that was made, before it runs */
void ew__app_access_detach(struct ew__app_loop *loop);
/* Reads the file again if it has changed (or in any case). Any thread. */
void ew__app_access_look(struct ew_app *app, bool in_any_case);
void ew__app_access_stop(struct ew_app *app); /* after the loops have gone */
void ew__app_access_free(struct ew_app *app);

#endif
