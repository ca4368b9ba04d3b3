/*
 * A Stepflow component server. Its two components keep values in the blob store of the runtime that calls them: while a
 * component runs, it calls back. Any workflow runtime can start it or reach it, over pipes or HTTP; so can everywire:
 *     everywire call stepflow+stdio: store '{"a":1}' --blobs sqlite:blobs.db -- ./components --stdio
 *     everywire call stepflow+http: load '{"blob_id":"015abd7f..."}' --blobs sqlite:blobs.db -- ./components --port 0
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdlib.h>

#define ASK_MS 30000 /* for the runtime's answer */

/* Calls the runtime; answered is told how that ended, and ends the call. format: the method's params, around value. */
static void ask(ew_call *call, const char *method, const char *format, ew_str value,
                void (*answered)(ew_request *request, const ew_end *end, void *ud)) {
    size_t room = value.len + 64;
    char *params = malloc(room);
    int n = params ? ew_json_format(params, room, format, value) : 0;
    ew_request_options options = {.action = ew_str_from(method),
                                  .input = {params, (size_t)n},
                                  .timeout_ms = ASK_MS,
                                  .on_end = answered,
                                  .ud = ew_call_ref(call)};
    ew_err err = n > 0 ? ew_call_back(call, &options, NULL) : EW_ENOMEM;
    free(params);
    if (err == EW_OK)
        return;
    ew_call_fail(call, err == EW_EUNSUPPORTED ? EW_STATUS_FAILED_PRECONDITION : EW_STATUS_INTERNAL,
                 err == EW_EUNSUPPORTED ? "whoever called has no blob store" : ew_err_text(err));
    ew_call_unref(call);
}

static void finish(ew_call *call, const ew_end *end, ew_str result) {
    if (end->status == EW_STATUS_OK)
        ew_call_done(call, result);
    else
        ew_call_fail_with(call, &end->fault);
    ew_call_unref(call);
}

static void on_stored(ew_request *request, const ew_end *end, void *ud) {
    (void)request;
    finish(ud, end, end->result); /* {"blob_id":...} */
}

static void on_loaded(ew_request *request, const ew_end *end, void *ud) {
    (void)request;
    finish(ud, end, ew_json_get(end->result, "/data"));
}

static void store(ew_call *call, void *arg) {
    (void)arg;
    ask(call, "blobs/put", "{\"data\":%j,\"blob_type\":\"data\"}", ew_call_input(call), on_stored);
}

static void load(ew_call *call, void *arg) {
    (void)arg;
    ew_str id = ew_json_get(ew_call_input(call), "/blob_id");
    if (ew_json_typeof(id) != EW_JSON_STRING)
        ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT, "blob_id is missing");
    else
        ask(call, "blobs/get", "{\"blob_id\":%j}", id, on_loaded);
}

int main(int argc, char **argv) {
    ew_app *app = ew_app_new("components");
    ew_app_action(app, "/component/store", store, NULL,
                  &(ew_action_options){.description = "Keeps its input as a blob"});
    ew_app_action(app, "/component/load", load, NULL,
                  &(ew_action_options){.description = "Gives the blob with that id"});
    return ew_app_main(app, argc, argv);
}
