/*
 * client/blobs.c: see blobs.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "client/blobs.h"
#include "client/client.h"
#include "store/blobs/blobs.h"
#include <stdio.h>

#define DEFAULT_STORE "memory"
#define ADDRESS "127.0.0.1:0"

static ew_err fail(ew_err err, const char *text, const char **ret_problem) {
    *ret_problem = text;
    return err;
}

/* ---- what was asked for ---- */

static bool has_scheme(const char *url) { return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0; }

/* It is only passed on: what is wrong with it beyond its form, servers find out. */
static ew_err take_url(ew__client_blobs *blobs, const char *url, const char **ret_problem) {
    size_t n = strlen(url);
    bool ok = has_scheme(url) && n < sizeof blobs->url;
    for (size_t i = 0; i < n && ok; i++)
        ok = url[i] > ' ' && url[i] <= '~';
    if (!ok)
        return fail(EW_EINVAL, "a blob API looks like http://HOST:PORT/api/v1/blobs", ret_problem);
    memcpy(blobs->url, url, n + 1);
    return EW_OK;
}

ew_err ew__client_blobs_open(ew_client *client, const ew_client_options *options, const char **ret_problem) {
    ew__client_blobs *blobs = &client->blobs;
    const char *spec = options ? options->blobs : NULL, *url = options ? options->blob_api : NULL;
    char problem[256] = "";
    if (!(client->target.wire->blobs))
        return spec || url ? fail(EW_EINVAL, ew__client_refusal(EW__TAKES_BLOBS), ret_problem) : EW_OK;
    ew_err err = url ? take_url(blobs, url, ret_problem) : EW_OK;
    if (err != EW_OK)
        return err;
    err = ew__blobs_open(client->env, client->target.wire->blobs->id, &client->limits, spec ? spec : DEFAULT_STORE,
                         &blobs->store, problem, sizeof problem);
    if (err == EW_EINVAL)
        return fail(err, "blobs are kept in \"memory\" or in \"sqlite:PATH\"", ret_problem);
    if (err != EW_OK && problem[0]) {
        ew__log(client->env, EW_LOG_ERROR, "client", "%s", problem);
        return fail(err, "the store of blobs cannot be opened", ret_problem);
    }
    /* the loops of an app that imports from this target use it, too */
    return err == EW_OK ? ew__blobs_locked(client->env, blobs->store, &blobs->store) : err;
}

/* ---- the listener ---- */

static ew_err begin_to_listen(ew_client *client) {
    ew__client_blobs *blobs = &client->blobs;
    ew__address address;
    uint8_t secret[16];
    char hex[2 * sizeof secret];
    client->env->random(client->env->ud, secret, sizeof secret);
    ew__hex(secret, sizeof secret, hex);
    (void)snprintf(blobs->path, sizeof blobs->path, "/%.*s/api/v1/blobs", (int)sizeof hex, hex);
    ew_err err = ew__registry_init(&blobs->no_actions, client->env);
    blobs->has_actions = err == EW_OK;
    if (err == EW_OK)
        err = ew__server_init(&blobs->server, &client->loop, &blobs->no_actions, 1, &blobs->connections);
    blobs->made = err == EW_OK;
    if (err == EW_OK)
        err = ew__address_parse(ADDRESS, &address);
    ew__site site = {.guest = client->target.wire->blobs->guest,
                     .only_guest = true,
                     .blobs = blobs->store,
                     .path = ew_str_from(blobs->path)};
    if (err == EW_OK)
        err = ew__server_listen(&blobs->server, &address, ew__wire_carrier(), &site, NULL);
    blobs->serves = err == EW_OK;
    if (err == EW_OK)
        (void)snprintf(blobs->url, sizeof blobs->url, "http://127.0.0.1:%u%s", address.port, blobs->path);
    return err;
}

void ew__client_blobs_listen(ew_client *client) {
    ew__client_blobs *blobs = &client->blobs;
    if (!blobs->store || blobs->url[0] || client->target.kind != EW__WHERE_TCP ||
        !ew__target_is_here(&client->target)) /* who is not here cannot come here */
        return;
    ew_err err = begin_to_listen(client);
    if (err != EW_OK)
        ew__log(client->env, EW_LOG_WARN, "client", "servers get no URL for blobs: %s", ew_err_text(err));
}

/* ---- the end ---- */

static void on_closed(ew__server *server) {
    ew_client *client = ew__container_of(server, ew_client, blobs.server);
    client->blobs.on_closed(client);
}

void ew__client_blobs_close(ew_client *client, void (*closed)(ew_client *client)) {
    ew__client_blobs *blobs = &client->blobs;
    if (!blobs->serves) {
        closed(client);
        return;
    }
    blobs->serves = false;
    blobs->on_closed = closed;
    ew__server_close(&blobs->server, true, on_closed);
}

void ew__client_blobs_done(ew_client *client) {
    ew__client_blobs *blobs = &client->blobs;
    if (blobs->made)
        ew__server_done(&blobs->server);
    if (blobs->has_actions)
        ew__registry_done(&blobs->no_actions);
    if (blobs->store)
        blobs->store->free(blobs->store);
    memset(blobs, 0, sizeof *blobs);
}
