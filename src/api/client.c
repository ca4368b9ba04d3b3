/*
 * api/client.c: clients (everywire/client.h): checks of arguments, then the client.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "client/client.h"
#include "gateway/app.h"

ew_err ew_client_new(const char *target, const ew_client_options *options, ew_client **ret_client,
                     const char **ret_problem) {
    const char *problem = NULL;
    ew_app *app = options ? options->actions : NULL;
    ew_err err = EW_EINVAL;
    if (target && ret_client)
        err = ew__client_new(target, options, app ? ew__registry_get(&app->registry) : NULL, ret_client, &problem);
    if (err != EW_OK && ret_problem)
        *ret_problem = problem ? problem : target ? ew_err_text(err) : "the target is NULL";
    return err;
}

ew_client *ew_client_free(ew_client *client) { return ew__client_free(client); }

ew_err ew_client_call(ew_client *client, const ew_request_options *options, ew_request **ret_request) {
    return ew__client_call(client, options, ret_request);
}

const char *ew_client_refuses(const ew_client *client, const ew_request_options *options) {
    return ew__client_refuses(client, options);
}

ew_err ew_client_list(ew_client *client, const ew_request_options *options, ew_request **ret_request) {
    return ew__client_list(client, options, ret_request);
}

int ew_client_port(const ew_client *client) {
    return client->target.kind == EW__WHERE_LISTEN ? client->target.address.port : 0;
}

unsigned ew_client_runtimes(const ew_client *client) { return ew__pool_runtimes(client->pool); }

void ew_client_traffic(const ew_client *client, ew_traffic *ret_traffic) {
    const ew__traffic *traffic = &client->pool->traffic;
    *ret_traffic = (ew_traffic){.bytes_in = atomic_load_explicit(&traffic->bytes_in, memory_order_relaxed),
                                .bytes_out = atomic_load_explicit(&traffic->bytes_out, memory_order_relaxed),
                                .connections = atomic_load_explicit(&traffic->dialled, memory_order_relaxed) +
                                               atomic_load_explicit(&traffic->accepted, memory_order_relaxed)};
}
