/*
 * wire/http/wire.c: the table of the http wire. Both roles share it; a connection has one.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/cutter.h"
#include "wire/http/client.h"
#include "wire/http/serve.h"

/* An HTTP method begins with upper-case letters and is followed by a space. */
static int sniff(const uint8_t *bytes, size_t n) {
    size_t i = 0;
    while (i < n && i < 20 && bytes[i] >= 'A' && bytes[i] <= 'Z')
        i++;
    if (i == n && n < 20)
        return 0;
    return i >= 3 && i < n && bytes[i] == ' ' ? 1 : -1;
}

static ew_err init(ew__peer *peer) {
    return peer->role == EW__SERVE ? ew__http_server_init(peer) : ew__http_client_init(peer);
}

static uint8_t *reserve(ew__peer *peer, size_t *ret_size) {
    return peer->role == EW__SERVE ? ew__http_server_reserve(peer, ret_size) : NULL;
}

static void input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    if (peer->role == EW__SERVE)
        ew__http_server_input(peer, bytes, n);
    else
        ew__http_client_input(peer, bytes, n);
}

static void eof(ew__peer *peer) {
    if (peer->role == EW__SERVE)
        ew__http_server_eof(peer);
    else
        ew__http_client_eof(peer);
}

static void drained(ew__peer *peer) {
    if (peer->role == EW__SERVE)
        ew__http_server_drained(peer);
}

static void drain(ew__peer *peer) {
    (void)peer; /* a kept connection lives on: its next request is answered 503 and closes it */
}

static void gone(ew__peer *peer, ew_err why) {
    if (peer->role == EW__SERVE)
        ew__http_server_gone(peer, why);
    else
        ew__http_client_gone(peer, why);
}

static const char *refuses(const ew_request_options *options) {
    if (options->input_stream)
        return "the http wire carries no input stream";
    if (options->context.len || options->labels.len)
        return "the http wire carries no context and no labels";
    return NULL;
}

static const ew_wire_info info = {
    .name = "http",
    .title = "HTTP",
    .can = EW_WIRE_SERVES | EW_WIRE_CALLS | EW_WIRE_CHUNKS | EW_WIRE_DEADLINE | EW_WIRE_TRACE | EW_WIRE_LIST,
};

static const ew_scheme schemes[] = {
    {.text = "http://",
     .form = "http://HOST:PORT",
     .help = "the http wire: HOST:PORT[/BASE]",
     .wire = "http",
     .reach = EW_REACH_TCP,
     .http = true},
    {.text = "https://",
     .form = "https://HOST:PORT",
     .help = "the http wire with TLS",
     .wire = "http",
     .reach = EW_REACH_TCP,
     .tls = true,
     .http = true},
    {.text = NULL},
};

static const ew_listener_name listeners[] = {
    {.name = "http", .help = "the http wire only", .wire = "http"},
    {.name = "https", .help = "the http wire only, with TLS", .wire = "http", .tls = true},
    {.name = NULL},
};

static const ew__wire_note notes[] = {
    {"target", "http://HOST:PORT,", 0},
    {"call",
     "  everywire call http://127.0.0.1:3400 greet '{\"name\":\"Ada\"}'\n"
     "  everywire call http://127.0.0.1:3400 count '{\"n\":5,\"delay_ms\":200}' --stream\n"
     "  echo '[1,2,3]' | everywire call http://127.0.0.1:3400 sum - --timeout 2s\n",
     0},
    {"list",
     "  everywire list http://127.0.0.1:3400\n"
     "  everywire list http://127.0.0.1:3400 --json | jq 'keys'\n",
     0},
    {"describe",
     "  everywire describe http://127.0.0.1:3400 greet\n"
     "  everywire describe http://127.0.0.1:3400 /tool/sha256 --json\n",
     0},
    {"bench", "  everywire bench http://127.0.0.1:3400 echo '{\"a\":1}' -c 64\n", 0},
    {"bench",
     "  everywire bench http://127.0.0.1:3400 sleep '{\"ms\":5}' --rate 1000 -c 50 --plot sleep.svg\n"
     "  everywire bench http://127.0.0.1:3400 stream --stream -c 8 --json\n",
     1},
    {NULL, NULL, 0},
};

static const ew__descriptor about = {.info = &info, .schemes = schemes, .listeners = listeners, .notes = notes};

const ew__wire ew__wire_http = {
    .name = "http",
    .about = &about,
    .caps =
        EW__CAN_SERVE | EW__CAN_CALL | EW__CAN_CHUNKS | EW__CAN_DEADLINE | EW__CAN_TRACE | EW__CAN_LIST | EW__CAN_CARRY,
    .serve_size = sizeof(ew__http_server),
    .call_size = sizeof(ew__http_client),
    .scratch_size = sizeof(ew__http_scratch),
    .sniff = sniff,
    .host_problem = ew__http_host_problem,
    .frames = EW__FRAMES_HTTP,
    .init = init,
    .reserve = reserve,
    .input = input,
    .eof = eof,
    .hung_up = ew__http_server_hung_up,
    .drained = drained,
    .drain = drain,
    .gone = gone,
    .open = ew__http_client_open,
    .capacity = ew__http_client_capacity,
    .refuses = refuses,
};
