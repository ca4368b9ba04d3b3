/*
 * wire/stepflow/lines.c: the connection of the stepflow wire on standard input and output, one JSON object per line:
 * messages to the role they are for, life; and the wire's table. Bytes become messages in wire/rpc_reader.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/cutter.h"
#include "wire/stepflow/lines.h"
#include "wire/stepflow/sniff.h"

#define NONE ((ew_str){NULL, 0})
#define ID_MAX 512 /* of a message that is too long itself */

static ew__sl_peer *sl_of(ew__peer *peer) { return (ew__sl_peer *)(void *)peer; }

static ew__sl_peer *sl_of_reader(ew__rpc_reader *reader) { return ew__container_of(reader, ew__sl_peer, reader); }

/* ---- messages out ---- */

void ew__sl_send(ew__sl_peer *peer, const ew__rpc_out *message, ew_call *owner) {
    ew__rpc_reader_send(&peer->reader, NONE, message, owner);
}

void ew__sl_respond(ew__sl_peer *peer, ew_str id, ew_str text, bool is_error) {
    ew__rpc_out message;
    ew__buf line;
    ew_str plain = NONE;
    ew__buf_init(&line, peer->peer.conn->executor->env, 0);
    if (id.len && ew__sf_plain(line.env, id, &line, &plain) != EW_OK) {
        ew__rpc_reader_abort(&peer->reader); /* nobody could be told */
    } else {
        if (is_error)
            ew__rpc_put_error(&message, plain, text);
        else
            ew__rpc_put_result(&message, plain, 0, text);
        ew__sl_send(peer, &message, NULL);
    }
    ew__buf_done(&line);
}

void ew__sl_refuse(ew__sl_peer *peer, ew_str id, int64_t code, ew_status status, const char *message) {
    ew__buf buf;
    ew_str error = ew__sf_error(peer->peer.conn->executor->env, &buf, code, status, ew_str_from(message), NONE);
    ew__sl_respond(peer, id, error, true);
    ew__buf_done(&buf);
}

/* ---- messages in ---- */

/* If a call of ours is meant, that call has failed; else the peer is told, a server only about what it can find. */
static void refuse_message(ew__sl_peer *peer, const ew__json_doc *doc, const ew__rpc *message) {
    if (message->id.len &&
        ew__sl_misunderstood(peer, message->id, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, message->problem))
        return;
    if (message->id.len || peer->peer.role == EW__SERVE)
        ew__sl_refuse(peer, message->id, EW__RPC_INVALID_REQUEST, EW_STATUS_INVALID_ARGUMENT, message->problem);
    else
        ew__rpc_reader_bad(&peer->reader, message->problem, doc->root);
}

/* The envelope as this protocol's peers read it: `jsonrpc` may be missing, and a null id is none. */
static void read_message(const ew__json_doc *doc, ew__rpc *ret) {
    ew__rpc_read(doc, 0, ret);
    if (doc->type == EW_JSON_ARRAY)
        ret->problem = "this protocol has no batches";
    if (ew__str_is(ret->id, EW_STR("null")))
        ret->id = NONE;
    bool asks = ret->method.len > 2 && ret->method.ptr[0] == '"';
    if (ret->kind == EW__RPC_REQUEST ||
        (ret->kind == EW__RPC_INVALID && asks && ew__json_find(doc, EW_STR("jsonrpc"), NULL).len == 0))
        ret->kind = ret->id.len ? EW__RPC_REQUEST : EW__RPC_NOTIFICATION;
}

static void on_text(ew__rpc_reader *reader, const ew__json_doc *doc) {
    ew__sl_peer *peer = sl_of_reader(reader);
    bool serves = peer->peer.role == EW__SERVE;
    ew__rpc message;
    ew__rpc_calls_mark_depth(&peer->calls, doc);
    read_message(doc, &message);
    switch (message.kind) {
    case EW__RPC_REQUEST:
        if (serves)
            ew__sl_serve(peer, doc, &message);
        else
            ew__sl_asked(peer, &message);
        break;
    case EW__RPC_NOTIFICATION:
        if (serves)
            ew__sl_notified(peer, &message);
        else
            ew__rpc_late(&peer->calls); /* no server has any; the document shows some that tell of progress */
        break;
    case EW__RPC_RESULT:
    case EW__RPC_ERROR:
        ew__sl_answered(peer, &message);
        break;
    default:
        refuse_message(peer, doc, &message);
    }
}

/* Most answers are results: of those the result alone is parsed. */
static bool on_piece(ew__rpc_reader *reader, ew_str text) {
    ew__rpc message;
    if (!ew__rpc_call_of_result(reader->calls, text, &message))
        return false;
    ew__sl_answered(sl_of_reader(reader), &message);
    return true;
}

/* ---- what is no message ---- */

static size_t skip_space(ew_str text, size_t at) {
    while (at < text.len && (unsigned char)text.ptr[at] <= ' ')
        at++;
    return at;
}

/* Behind the string or number that begins at `at`; `at` itself if none does, or its end has not come. */
static size_t skip_scalar(ew_str text, size_t at) {
    size_t end = at;
    if (at < text.len && text.ptr[at] == '"') {
        for (end++; end < text.len && text.ptr[end] != '"'; end++)
            end += text.ptr[end] == '\\';
        return end < text.len ? end + 1 : at;
    }
    while (end < text.len && text.ptr[end] && strchr("+-.0123456789eE", text.ptr[end]))
        end++;
    return end < text.len ? end : at;
}

/* The id of a message of which only the beginning is there: everybody writes it first, or behind the version. */
static ew_str early_id(ew_str text) {
    size_t at = skip_space(text, 0);
    for (int members = 0; members < 2 && at < text.len; members++) { /* a brace before the first, then a comma */
        size_t name = skip_space(text, at + 1), colon, value, end;
        colon = skip_space(text, skip_scalar(text, name));
        value = skip_space(text, colon + 1);
        end = skip_scalar(text, value);
        if (text.ptr[at] != (members ? ',' : '{') || colon >= text.len || text.ptr[colon] != ':' || end == value)
            return NONE;
        ew_str id = ew__str(text.ptr + value, end - value);
        if (ew__str_has_prefix(ew__str(text.ptr + name, text.len - name), EW_STR("\"id\"")))
            return id.len <= ID_MAX && ew__json_validate(id, NULL) == EW_OK ? id : NONE;
        at = skip_space(text, end);
    }
    return NONE;
}

/*
 * A runtime is told, with the id of its request if that can be seen: for an error with a null id the real ones give up
 * their connection.
 */
static void on_no_text(ew__rpc_reader *reader, ew__line_event event, const char *problem, ew_str text) {
    ew__sl_peer *peer = sl_of_reader(reader);
    bool too_long = event == EW__LINE_TOO_LONG;
    ew_str id = too_long ? early_id(text) : NONE;
    if (peer->peer.role != EW__SERVE && id.len)
        (void)ew__sl_misunderstood(peer, id, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                                   "the answer is too large for this connection");
    else if (peer->peer.role != EW__SERVE)
        ew__sl_damaged(peer, text);
    else if (id.len)
        ew__sl_refuse(peer, id, EW__RPC_INVALID_REQUEST, EW_STATUS_RESOURCE_EXHAUSTED, problem);
    else
        ew__sl_refuse(peer, NONE, EW__RPC_PARSE_ERROR, EW_STATUS_INVALID_ARGUMENT, problem);
}

/* A message that is too large or nested too deep, and whose id is known. */
static bool on_refused(ew__rpc_reader *reader, const ew__rpc *message, const char *problem) {
    ew__sl_peer *peer = sl_of_reader(reader);
    if (message->kind == EW__RPC_NOTIFICATION) {
        ew__rpc_late(&peer->calls);
        return true;
    }
    if (!message->id.len || message->kind == EW__RPC_INVALID)
        return false;
    if (message->kind == EW__RPC_REQUEST)
        ew__sl_refuse(peer, message->id, EW__RPC_INVALID_REQUEST, EW_STATUS_RESOURCE_EXHAUSTED, problem);
    else if (!ew__sl_misunderstood(peer, message->id, EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED,
                                   "the answer is too large for this connection"))
        ew__rpc_late(&peer->calls);
    return true;
}

static void on_lost(ew__rpc_reader *reader, ew_origin origin, ew_status status, ew_str message) {
    ew__sl_lost(sl_of_reader(reader), origin, status, message);
}

static const ew__rpc_reader_ops reader_ops = {
    .piece = on_piece, .text = on_text, .refuse = on_no_text, .refuse_message = on_refused, .lost = on_lost};

/* ---- life ---- */

/* Nobody streams on this wire, so nobody is behind. */
static void overrun(ew__rpc_call *entry) { (void)entry; }

static void resume(ew__rpc_calls *all) { ew__rpc_reader_resume(&ew__container_of(all, ew__sl_peer, calls)->reader); }

static void abort_conn(ew__rpc_calls *all) { ew__rpc_reader_abort(&ew__container_of(all, ew__sl_peer, calls)->reader); }

static const ew__rpc_calls_ops calls_ops = {.overrun = overrun, .resume = resume, .abort = abort_conn};

/* A connection of lines is not told from other JSON-RPC by its first bytes. */
static int sniff(const uint8_t *bytes, size_t n) {
    (void)bytes;
    (void)n;
    return -1;
}

static ew_err init(ew__peer *base) {
    ew__sl_peer *peer = sl_of(base);
    ew__rpc_calls_init(&peer->calls, base->conn, &calls_ops);
    ew__rpc_ids_init(&peer->ids, base->conn->executor->env);
    ew__rpc_reader_init(&peer->reader, base, &peer->calls, &reader_ops, EW__FRAMING_WHOLE_LINES);
    return EW_OK;
}

static void input(ew__peer *base, const uint8_t *bytes, size_t n) {
    ew__rpc_reader_input(&sl_of(base)->reader, bytes, n);
}

static void eof(ew__peer *base) { ew__rpc_reader_eof(&sl_of(base)->reader); }

static void drained(ew__peer *base) { ew__rpc_reader_drained(&sl_of(base)->reader); }

static void drain(ew__peer *base) { ew__rpc_reader_drain(&sl_of(base)->reader); }

static void gone(ew__peer *base, ew_err why) {
    ew__sl_peer *peer = sl_of(base);
    peer->reader.closed = true;
    while (peer->calls.served.first) {
        ew__rpc_call *entry = peer->calls.served.first;
        ew_call *call = entry->call;
        ew__rpc_call_remove(entry);
        ew__call_release(call);
    }
    ew__rpc_reader_gone(&peer->reader, why);
    ew__timer_stop(&base->conn->executor->timers, &peer->answer);
    ew__rpc_calls_done(&peer->calls);
}

static const ew_wire_info info = {
    .name = EW__STEPFLOW_NAME,
    .title = "Stepflow",
    .can = EW_WIRE_SERVES | EW_WIRE_CALLS | EW_WIRE_TRACE | EW_WIRE_CONTEXT | EW_WIRE_LIST | EW_WIRE_DUPLEX |
           EW_WIRE_STDIO,
};

static const ew_scheme schemes[] = {
    {.text = "stepflow+stdio:",
     .form = "stepflow+stdio:",
     .help = "the same over pipes, a program behind --",
     .hint = EW__SF_HINT,
     .wire = EW__STEPFLOW_NAME,
     .reach = EW_REACH_CHILD,
     .command = EW_SCHEME_COMMAND_MUST,
     .slow_start = true,
     .rest = "",
     .rank = 2},
    {.text = NULL},
};

static const ew_listener_name listeners[] = {
    {.name = EW__STEPFLOW_NAME, .help = "the stepflow wire only", .wire = EW__STEPFLOW_NAME},
    {.name = "stepflows", .help = "the stepflow wire only, with TLS", .wire = EW__STEPFLOW_NAME, .tls = true},
    {.name = NULL},
};

/* As Stepflow's own servers have them. */
static const ew_start_word start[] = {
    {.name = "--port",
     .argument = "N",
     .help = "be a Stepflow component server on that port; 0 picks a free one",
     .wire = EW__STEPFLOW_NAME,
     .role = EW_START_PORT},
    {.name = "--host",
     .argument = "HOST",
     .help = "... at that address; 127.0.0.1",
     .wire = EW__STEPFLOW_NAME,
     .role = EW_START_HOST},
    {.name = NULL},
};

static const ew__wire_note notes[] = {
    {"target",
     " stepflow+http://HOST:PORT[/PATH] is a Stepflow component server, and so is the program behind -- after "
     "stepflow+stdio:, or after stepflow+http:, where it says by a line {\"port\":N} on its standard output where it "
     "listens;",
     0},
    {"serve", "  everywire serve --demo --port 8080\n", 0},
    {"call",
     "  everywire call stepflow+http://127.0.0.1:8080 /my_component '{\"text\":\"hi\"}'\n"
     "  everywire call stepflow+stdio: /my_component '{\"text\":\"hi\"}' --blobs sqlite:blobs.db -- python "
     "server.py\n",
     0},
    {"list",
     "  everywire list stepflow+stdio: -- python server.py\n"
     "  everywire list stepflow+http: -- stepflow_worker\n",
     0},
    {"describe", "  everywire describe stepflow+http://127.0.0.1:8080 /my_component\n", 0},
    {"bench", "  everywire bench stepflow+stdio: /my_component '{\"text\":\"hi\"}' -d 8 -- python server.py\n", 2},
    {NULL, NULL, 0},
};

static const ew__descriptor about = {.info = &info,
                                     .schemes = schemes,
                                     .listeners = listeners,
                                     .start = start,
                                     .notes = notes,
                                     .takes = EW__TAKES_BLOBS,
                                     .refusal = EW__SF_BLOBS_REFUSAL};

const ew__wire ew__wire_stepflow = {
    .name = EW__STEPFLOW_NAME,
    .about = &about,
    .guest = &ew__stepflow_guest,
    .blobs = &ew__sf_blobs,
    .caps = EW__CAN_SERVE | EW__CAN_CALL | EW__CAN_TRACE | EW__CAN_LIST | EW__CAN_DUPLEX | EW__CAN_MANY | EW__CAN_STDIO,
    .serve_size = sizeof(ew__sl_peer),
    .call_size = sizeof(ew__sl_peer),
    .scratch_size = sizeof(ew__sf_scratch),
    .scratch_done = ew__sf_scratch_done,
    .on_broadcast = ew__sf_on_broadcast,
    .sniff = sniff,
    .sniff_stdio = ew__sf_sniff_line,
    .frames = EW__FRAMES_LINES,
    .init = init,
    .input = input,
    .eof = eof,
    .drained = drained,
    .drain = drain,
    .gone = gone,
    .open = ew__sl_open,
    .leave = ew__sl_leave,
    .capacity = ew__sl_capacity,
    .refuses = ew__sf_refuses,
};
