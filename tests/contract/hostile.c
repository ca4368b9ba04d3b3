/*
 * tests/contract/hostile.c: see hostile.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contract/hostile.h"
#include "frame/lenpfx.h"
#include "support/ws_peer.h"

#include <stdio.h>
#include <stdlib.h>

/* Far above what any scenario needs, far below what an unbounded queue would reach. */
#define MEMORY_MAX ((size_t)1024 * 1024)

/* ---- the program ---- */

typedef struct param {
    const hostile_wire *wire;
    const hostile_scenario *scenario;
    int raw;
    char name[80];
} param;

static void run_one(void **state) {
    const param *p = *state;
    hostile h;
    hostile_init(&h, p->wire, p->raw);
    p->scenario->run(&h);
    hostile_finish(&h);
}

static bool applies(const hostile_wire *w, const hostile_scenario *s) {
    unsigned has = HOSTILE_ANY;
    has |= w->framing == HOSTILE_HTTP ? HOSTILE_NEEDS_HTTP : HOSTILE_NEEDS_IDS;
    has |= w->handshake ? HOSTILE_NEEDS_HANDSHAKE : 0;
    has |= w->stdio ? 0 : HOSTILE_NEEDS_SOCKET;
    has |= w->framing != HOSTILE_WEBSOCKET ? HOSTILE_NEEDS_TOKENS : 0;
    return (w->wire->caps & s->caps) == s->caps && (has & s->needs) == s->needs;
}

int hostile_main(const char *group, const hostile_scenario *scenarios, size_t n, int raw, int argc, char **argv) {
    enum { MOST = 300 };
    static struct CMUnitTest tests[MOST];
    static param params[MOST];
    const char *only = argc > 1 ? argv[1] : "";
    size_t count = 0;
    for (size_t i = 0; i < n_hostile_wires * n && count < MOST; i++) {
        param *p = &params[count];
        *p = (param){.wire = &hostile_wires[i / n], .scenario = &scenarios[i % n], .raw = raw};
        (void)snprintf(p->name, sizeof p->name, "%s/%s/%s", group, p->wire->name, p->scenario->name);
        tests[count] = (struct CMUnitTest){.name = p->name, .test_func = run_one, .initial_state = p};
        count += applies(p->wire, p->scenario) && strstr(p->name, only);
    }
    return _cmocka_run_group_tests(group, tests, count, NULL, NULL);
}

/* ---- the world ---- */

void hostile_init(hostile *h, const hostile_wire *wire, int raw) {
    *h = (hostile){.wire = wire, .raw = raw, .memory_max = MEMORY_MAX};
    rig_options options = {.seed = 11, .serve = wire->serve, .guest = wire->guest, .stdio = wire->stdio};
    options.limits = (ew_limits){.frame_bytes = 64 * 1024,
                                 .out_high_bytes = 16 * 1024,
                                 .out_low_bytes = 4 * 1024,
                                 .out_max_bytes = 256 * 1024,
                                 .in_queue_bytes = 16 * 1024,
                                 .in_queue_items = 8,
                                 .pipeline_bytes = 4 * 1024,
                                 .calls_per_connection = 20,
                                 .runner_calls = 20};
    rig_init(&h->r, wire->wire, &options);
    h->r.strict = true;
}

void hostile_finish(hostile *h) {
    size_t peak = ew__test_env_peak_bytes(&h->r.env);
    if (peak > h->memory_max)
        fail_msg("%s: %zu bytes of memory were in use at once", h->wire->name, peak);
    rig_finish(&h->r);
}

bool hostile_over(const hostile *h, rig_pair *pair) {
    return pair->end[h->raw].saw_eof || pair->end[1 - h->raw].closing;
}

/* The handshake of wires that begin with one: a runtime registers with its manager. */
rig_pair *hostile_connect(hostile *h) {
    rig_pair *pair = rig_connect_raw(&h->r, h->raw);
    if (h->wire->framing != HOSTILE_WEBSOCKET)
        return pair;
    hostile_values values = {.id = "\"1\""};
    if (h->raw == RIG_SERVER)
        hostile_say(h, pair,
                    "{'jsonrpc':'2.0','id':$I,'method':'register','params':{'id':'r','pid':1,'genkitVersion':'x'}}",
                    &values);
    rig_run(&h->r);
    char *text = hostile_take(h, pair);
    assert_non_null(text);
    if (h->raw == RIG_CLIENT) {
        ew_str id = ew_json_get(ew_str_from(text), "/id");
        char kept[80] = "";
        assert_true(id.len < sizeof kept);
        memcpy(kept, id.ptr, id.len);
        hostile_say(h, pair, "{'jsonrpc':'2.0','id':$I,'result':{}}", &(hostile_values){.id = kept});
    }
    free(text);
    return pair;
}

/* ---- messages ---- */

static const char *value_of(char letter, const hostile_values *values) {
    const char *value = letter == 'I'   ? values->id
                        : letter == 'J' ? values->job
                        : letter == 'K' ? values->key
                        : letter == 'V' ? values->value
                                        : NULL;
    return value ? value : letter == 'J' ? "\"j\"" : NULL;
}

char *hostile_text(const char *template, const hostile_values *values) {
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    for (const char *p = template; *p; p++) {
        const char *value = *p == '$' ? value_of(p[1], values) : NULL;
        for (const char *v = value; v && *v; v++)
            (void)fputc(*v == '\'' ? '"' : *v, out);
        if (value)
            p++;
        else
            (void)fputc(*p == '\'' ? '"' : *p, out);
    }
    assert_int_equal(fclose(out), 0);
    return text;
}

static void frame_http(const hostile *h, FILE *out, const char *text, const hostile_values *values) {
    if (h->raw == RIG_SERVER) {
        (void)fprintf(out, "HTTP/1.1 200 OK\r\n");
    } else {
        char *path = hostile_text(h->wire->path, values);
        (void)fprintf(out, "POST %s HTTP/1.1\r\nHost: 127.0.0.1:3400\r\nAccept: application/json%s\r\n", path,
                      h->wire->guest ? ", text/event-stream" : "");
        if (values->token)
            (void)fprintf(out, "Authorization: Bearer %s\r\n", values->token);
        free(path);
    }
    (void)fprintf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(text), text);
}

static void frame_text(const hostile *h, FILE *out, const char *text) {
    size_t n = strlen(text);
    uint8_t *bytes = malloc(n + WS_PEER_HEAD);
    assert_non_null(bytes);
    if (h->wire->framing == HOSTILE_WEBSOCKET) {
        size_t size = ws_peer_frame(bytes, WS_FIN | WS_TEXT, h->raw == RIG_SERVER, text, n);
        (void)fwrite(bytes, 1, size, out);
    } else if (h->wire->framing == HOSTILE_LENGTH) {
        uint8_t head[EW__LENPFX_HEAD];
        if (!ew__lenpfx_head(n, UINT32_MAX, head))
            memset(head, 0, sizeof head); /* a frame without content */
        (void)fwrite(head, 1, sizeof head, out);
        (void)fwrite(text, 1, n, out);
    } else {
        (void)fprintf(out, "%s\n", text);
    }
    free(bytes);
}

char *hostile_frame(const hostile *h, const char *template, const hostile_values *values, size_t *ret_len) {
    char *text = hostile_text(template, values), *bytes = NULL;
    FILE *out = open_memstream(&bytes, ret_len);
    assert_non_null(out);
    if (h->wire->framing == HOSTILE_HTTP)
        frame_http(h, out, text, values);
    else
        frame_text(h, out, text);
    assert_int_equal(fclose(out), 0);
    free(text);
    return bytes;
}

void hostile_put(hostile *h, rig_pair *pair, const char *template, const hostile_values *values) {
    size_t n = 0;
    char *bytes = hostile_frame(h, template, values, &n);
    rig_say(pair, bytes, n);
    free(bytes);
}

void hostile_say(hostile *h, rig_pair *pair, const char *template, const hostile_values *values) {
    hostile_put(h, pair, template, values);
    rig_run(&h->r);
}

void hostile_say_bytes(hostile *h, rig_pair *pair, const char *bytes, size_t n) {
    rig_say(pair, bytes, n);
    rig_run(&h->r);
}

static char *copy(const char *bytes, size_t n) {
    char *text = calloc(1, n + 1);
    assert_non_null(text);
    if (n)
        memcpy(text, bytes, n);
    return text;
}

/* A request is its body; a response is its head and body. */
static size_t take_http(const hostile *h, const rig_end *end, char **ret) {
    const char *blank = strstr(end->got, "\r\n\r\n"), *length = strstr(end->got, "Content-Length: ");
    if (!blank)
        return 0;
    size_t head = (size_t)(blank - end->got) + 4;
    size_t n = head + (length && length < blank ? strtoul(length + 16, NULL, 10) : 0);
    if (n > end->got_len)
        return 0;
    *ret = h->raw == RIG_SERVER ? copy(end->got + head, n - head) : copy(end->got, n);
    return n;
}

static size_t take_any(const hostile *h, const rig_end *end, char **ret) {
    ew_str body;
    size_t n = 0;
    int first;
    const char *newline;
    switch (h->wire->framing) {
    case HOSTILE_HTTP:
        return take_http(h, end, ret);
    case HOSTILE_WEBSOCKET:
        return ws_peer_read(end->got, end->got_len, &first, ret);
    case HOSTILE_LENGTH:
        if (ew__lenpfx_read(ew__str(end->got, end->got_len), UINT32_MAX, &body, &n) != EW__LENPFX_FRAME)
            return 0;
        *ret = copy(body.ptr, body.len);
        return n;
    default:
        newline = memchr(end->got, '\n', end->got_len);
        n = newline ? (size_t)(newline - end->got) + 1 : 0;
        if (n)
            *ret = copy(end->got, n - 1);
        return n;
    }
}

char *hostile_take(hostile *h, rig_pair *pair) {
    const rig_end *end = hostile_end(h, pair);
    char *text = NULL;
    size_t n = end->got_len ? take_any(h, end, &text) : 0;
    if (n)
        rig_forget(pair, n);
    return text;
}

#define DEEP 30000

#define LITERAL(text)                                                                                                  \
    { (text), sizeof(text) - 1 }

bool hostile_garbage(size_t i, ew_str *ret) {
    static char deep[DEEP];
    static const ew_str texts[] = {
        LITERAL("\0\0\0\0"),
        LITERAL("\xff\xff\xff\xff\xff\xff\xff\xff"),
        LITERAL("\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff"),
        LITERAL("{\n"),
        LITERAL("}\n"),
        LITERAL("]]]]\n"),
        LITERAL("{}\n"),
        LITERAL("[]\n"),
        LITERAL("null\n"),
        LITERAL("\"text\"\n"),
        LITERAL("{\"jsonrpc\":\"2.0\"}\n"),
        LITERAL("{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":1}\n"),
        LITERAL("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"result\":1}\n"),
        LITERAL("{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":1,\"error\":{}}\n"),
        LITERAL("{\"type\":\"response\",\"payload\":null}\n"),
        LITERAL("{\"type\":\"nope\",\"payload\":{}}\n"),
        LITERAL("\xc3\x28\xa0\xa1\n"),
        LITERAL("GET / HTTP/1.1\r\n\r\n"),
        LITERAL("HTTP/1.1 200 OK\r\n\r\n"),
        LITERAL("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\nnull"),
        LITERAL("Content-Length: -1\r\n\r\n"),
    };
    size_t n = sizeof texts / sizeof *texts;
    memset(deep, '[', sizeof deep);
    *ret = i < n ? texts[i] : ew__str(deep, sizeof deep);
    return i <= n;
}

/* ---- the test serves ---- */

/* Also skips cancels of earlier calls. false: the message is a request. */
static bool answer_handshake(hostile *h, rig_pair *pair, const char *id, const char *text) {
    static const char accepted[] = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
    ew_str method = ew_json_get(ew_str_from(text), "/method");
    if (ew__str_is(method, EW_STR("\"initialize\"")))
        hostile_say(h, pair, "{'jsonrpc':'2.0','id':$I,'result':{'server_protocol_version':1}}",
                    &(hostile_values){.id = id});
    else if (!ew__str_is(method, EW_STR("\"initialized\"")))
        return strstr(text, "cancel") != NULL;
    else if (h->wire->framing == HOSTILE_HTTP)
        hostile_say_bytes(h, pair, accepted, sizeof accepted - 1);
    return true;
}

static void keep(char *out, size_t size, ew_str text, const char *at) {
    ew_str value = at ? ew_json_get(text, at) : EW_STR("");
    assert_true(value.len < size);
    if (value.len)
        memcpy(out, value.ptr, value.len);
    out[value.len] = '\0';
}

void hostile_open(hostile *h, rig_pair *pair, const rig_request *request, hostile_call *ret) {
    *ret = (hostile_call){.pair = pair, .rc = rig_open_from(pair, 1 - h->raw, request)};
    for (bool greeting = true; greeting;) {
        rig_run(&h->r);
        char *text = hostile_take(h, pair);
        if (!text)
            fail_msg("%s: no request arrived", h->wire->name);
        keep(ret->id, sizeof ret->id, ew_str_from(text), h->wire->id_at);
        keep(ret->job, sizeof ret->job, ew_str_from(text), h->wire->job_at);
        greeting = answer_handshake(h, pair, ret->id, text);
        free(text);
    }
}

void hostile_call_plain(hostile *h, rig_pair *pair, hostile_call *ret) {
    hostile_open(h, pair, &(rig_request){.key = "/test/echo", .input = EW_STR("{\"a\":1}")}, ret);
}

void hostile_answer(hostile *h, const hostile_call *call, const char *template, const char *value) {
    hostile_say(h, call->pair, template, &(hostile_values){.id = call->id, .job = call->job, .value = value});
}

void hostile_check_answered(hostile *h, const hostile_call *call) {
    assert_int_equal(call->rc->ended, 0);
    hostile_answer(h, call, h->wire->result, "{'b':2}");
    hostile_check_done(call->rc, "{\"b\":2}");
}

/* ---- the test calls ---- */

void hostile_request(hostile *h, rig_pair *pair, const char *key, const char *id, const char *value) {
    hostile_say(h, pair, h->wire->request, &(hostile_values){.id = id, .job = id, .key = key, .value = value});
}

unsigned hostile_count(hostile *h, rig_pair *pair, const char *text) {
    unsigned n = 0;
    rig_run(&h->r);
    for (char *message; (message = hostile_take(h, pair)) != NULL; free(message))
        n += strstr(message, text) != NULL;
    return n;
}

void hostile_check_neighbour(hostile *h) {
    rig_pair *pair = hostile_connect(h);
    hostile_request(h, pair, "/test/echo", "\"neighbour\"", "{\"near\":7}");
    assert_int_equal(hostile_count(h, pair, "{\"near\":7}"), 1);
}

void hostile_check_done(const rig_call *rc, const char *result) {
    if (rc->ended != 1 || rc->status != EW_STATUS_OK)
        fail_msg("%u ends, %s: %s", rc->ended, rc->ended ? ew_status_name(rc->status) : "still open",
                 rc->message ? rc->message : "");
    assert_string_equal(rc->result, result);
}
