/*
 * wire/jsonrpc/wire.c: the connection of the jsonrpc wire: messages to the role they are for, life; and its table.
 * Bytes become messages in wire/rpc_reader.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/cutter.h"
#include "wire/jsonrpc/jsonrpc.h"

static ew__jr_peer *jr_of(ew__peer *peer) { return (ew__jr_peer *)(void *)peer; }

static ew__jr_peer *jr_of_reader(ew__rpc_reader *reader) { return ew__container_of(reader, ew__jr_peer, reader); }

/* ---- what came ---- */

/* What the peer called invalid, or we do: if a call of ours is meant, that call has failed; else the peer is told. */
static void refuse_message(ew__jr_peer *peer, const ew__rpc *message, ew__jr_batch *batch) {
    ew__jr_call *sent = message->id.len ? ew__jr_find(&peer->calls.sent, message->id) : NULL;
    bool frame = message->stream < 0 || message->stream >= EW__RPC_STREAM_DATA;
    ew__jr_call *came = message->id.len && frame ? ew__jr_find(&peer->calls.served, message->id) : NULL;
    if (sent)
        ew__jr_fail(sent, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, message->problem);
    else if (came) /* a bad frame: the answer to its call is this error */
        ew__jr_give_up(came, EW__RPC_INVALID_REQUEST, EW_STATUS_INVALID_ARGUMENT, message->problem);
    else
        ew__jr_serve(peer, message, batch);
}

static void on_frame(ew__jr_peer *peer, const ew__rpc *message) {
    ew__jr_call *entry = message->id.len ? ew__jr_find(&peer->calls.sent, message->id) : NULL;
    if (entry) {
        ew__jr_answer_frame(entry, message);
        return;
    }
    entry = message->id.len ? ew__jr_find(&peer->calls.served, message->id) : NULL;
    if (entry)
        ew__jr_serve_frame(entry, message);
    else
        ew__jr_stray(peer, message);
}

static void on_answer(ew__jr_peer *peer, const ew__rpc *message) {
    ew__jr_call *entry = ew__jr_find(&peer->calls.sent, message->id);
    if (entry)
        ew__jr_answer(entry, message);
    else if (message->kind == EW__RPC_ERROR && ew__rpc_is_unnamed(message))
        ew__jr_unnamed_error(peer, message->error);
    else if (ew__jr_asked(peer, message->id))
        ew__jr_learn(peer, message->kind == EW__RPC_RESULT ? ew__jr_is_everywire(message->result)
                                                           : ew__jr_is_everywire_error(message->error));
    else
        ew__rpc_late(&peer->calls);
}

void ew__jr_take(ew__jr_peer *peer, const ew__json_doc *doc, ew__jr_batch *batch) {
    ew__rpc message;
    ew__rpc_read(doc, EW__RPC_WITH_STREAMS, &message);
    if (batch && message.kind != EW__RPC_INVALID && message.stream != 0) {
        message.kind = EW__RPC_INVALID;
        message.problem = "there are no streams in a batch";
    }
    switch (message.kind) {
    case EW__RPC_INVALID:
        refuse_message(peer, &message, batch);
        break;
    case EW__RPC_FRAME:
        on_frame(peer, &message);
        break;
    case EW__RPC_RESULT:
    case EW__RPC_ERROR:
        on_answer(peer, &message);
        break;
    default:
        ew__jr_serve(peer, &message, batch);
    }
}

/* Answers go out as the peer writes. One that mixes framings is understood, and told about. */
static void learn_framing(ew__jr_peer *peer) {
    uint8_t framing = peer->reader.line.framing;
    if (framing == EW__FRAMING_AUTO || framing == peer->framing)
        return;
    if (peer->peer.role == EW__CALL)
        ew__log(peer->peer.conn->executor->env, EW_LOG_WARN, "jsonrpc",
                "the peer writes Content-Length headers, we wrote lines: from now on we write headers too");
    peer->framing = framing;
}

static void on_text(ew__rpc_reader *reader, const ew__json_doc *doc) {
    ew__jr_peer *peer = jr_of_reader(reader);
    learn_framing(peer);
    ew__rpc_calls_mark_depth(&peer->calls, doc);
    if (doc->type == EW_JSON_NULL)
        ew__rpc_late(&peer->calls); /* the reference codec passes over it */
    else if (doc->type == EW_JSON_ARRAY)
        ew__jr_serve_batch(peer, doc->root);
    else
        ew__jr_take(peer, doc, NULL);
}

/*
 * The stream that spoke last mostly goes on: then its id needs no looking up, and its frame no parsing. Most answers are
 * results: of those the result alone is parsed.
 */
static bool on_piece(ew__rpc_reader *reader, ew_str text) {
    ew__rpc_call *entry = reader->calls->speaks;
    ew__rpc message;
    ew_str data;
    if (entry && ew__rpc_is_data_frame(text, entry->id, &data)) {
        learn_framing(jr_of_reader(reader));
        ew__jr_answer_chunk(ew__jr_call_of(entry), data);
        return true;
    }
    entry = ew__rpc_call_of_result(reader->calls, text, &message);
    if (!entry)
        return false;
    learn_framing(jr_of_reader(reader));
    ew__jr_answer(ew__jr_call_of(entry), &message);
    return true;
}

/* The same for as many pieces of that stream as there are. */
static size_t on_row(ew__rpc_reader *reader, ew_str lines) {
    ew__rpc_call *entry = reader->calls->speaks;
    ew_str row[EW__ROW_MAX];
    size_t used = 0, n = ew__rpc_read_row(lines, entry->id, row, EW__ROW_MAX, &used), taken = n;
    if (n > 0)
        ew__jr_answer_row(ew__jr_call_of(entry), row, &taken);
    if (taken < n) /* the others wait: they are read again, after the brace and the newline of the last one taken */
        used = (size_t)(row[taken - 1].ptr + row[taken - 1].len + 2 - lines.ptr);
    return used;
}

/* It is answered, unless the answer could be taken for that to a call of the peer's own (a null id). */
static void on_no_text(ew__rpc_reader *reader, ew__line_event event, const char *problem, ew_str text) {
    ew__jr_peer *peer = jr_of_reader(reader);
    (void)event;
    (void)text;
    if (peer->peer.role == EW__SERVE)
        ew__jr_send_error(peer, ew__str(NULL, 0), EW__RPC_PARSE_ERROR, problem);
}

/* The call that a frame or an answer is for fails; a request is answered. */
static bool on_refused(ew__rpc_reader *reader, const ew__rpc *message, const char *problem) {
    ew__jr_peer *peer = jr_of_reader(reader);
    ew__jr_call *sent = message->id.len ? ew__jr_find(&peer->calls.sent, message->id) : NULL;
    ew__jr_call *came = message->id.len ? ew__jr_find(&peer->calls.served, message->id) : NULL;
    learn_framing(peer);
    switch (message->kind) {
    case EW__RPC_REQUEST:
        ew__jr_refuse_large(peer, message, problem);
        return true;
    case EW__RPC_RESULT:
    case EW__RPC_ERROR:
        came = NULL;
        break;
    case EW__RPC_FRAME:
        break;
    case EW__RPC_NOTIFICATION: /* nothing waits for an answer to it */
        ew__rpc_late(&peer->calls);
        return true;
    default:
        return false;
    }
    if (sent)
        ew__jr_fail_large(sent, problem);
    else if (came)
        ew__jr_give_up(came, 0, EW_STATUS_RESOURCE_EXHAUSTED, problem);
    else
        ew__rpc_late(&peer->calls);
    return true;
}

static void on_lost(ew__rpc_reader *reader, ew_origin origin, ew_status status, ew_str message) {
    ew__jr_fail_sent(jr_of_reader(reader), origin, status, message);
}

static ew__jr_call *first_with_input(const ew__jr_peer *peer) {
    for (ew__rpc_call *entry = peer->calls.served.first; entry; entry = entry->next)
        if (entry->input_open)
            return ew__jr_call_of(entry);
    return NULL;
}

static void on_ended(ew__rpc_reader *reader) {
    static const char why[] = "the connection ended before the input stream did";
    ew__jr_peer *peer = jr_of_reader(reader);
    ew__jr_call *entry;
    while (!reader->closed && (entry = first_with_input(peer)) != NULL)
        ew__jr_give_up(entry, 0, EW_STATUS_UNAVAILABLE, why);
}

static const ew__rpc_reader_ops reader_ops = {.row = on_row,
                                              .piece = on_piece,
                                              .text = on_text,
                                              .refuse = on_no_text,
                                              .refuse_message = on_refused,
                                              .lost = on_lost,
                                              .ended = on_ended};

/* ---- life ---- */

static int sniff(const uint8_t *bytes, size_t n) { return ew__line_begins(ew__str(bytes, n)); }

static void overrun(ew__rpc_call *base) {
    static const char why[] = EW__RPC_OVERRUN;
    ew__jr_call *entry = ew__jr_call_of(base);
    if (ew__jr_peer_of(entry)->reader.closed)
        return; /* it ends with the connection */
    if (base->sent)
        ew__jr_overrun(entry);
    else
        ew__jr_give_up(entry, 0, EW_STATUS_RESOURCE_EXHAUSTED, why);
}

static void resume(ew__rpc_calls *all) { ew__rpc_reader_resume(&ew__container_of(all, ew__jr_peer, calls)->reader); }

static void abort_conn(ew__rpc_calls *all) { ew__rpc_reader_abort(&ew__container_of(all, ew__jr_peer, calls)->reader); }

static const ew__rpc_calls_ops calls_ops = {.overrun = overrun, .resume = resume, .abort = abort_conn};

/* Our extension: the first message shows the token, and wants no answer. */
static ew_err show_token(ew__jr_peer *peer) {
    ew_str token = peer->peer.conn->site->token;
    ew__rpc_out message;
    ew__buf params;
    if (peer->peer.role != EW__CALL || token.len == 0)
        return EW_OK;
    ew__buf_init(&params, peer->peer.conn->executor->env, SIZE_MAX / 2);
    ew_err err = ew__json_format(&params, "{\"token\":%q}", token);
    if (err == EW_OK) {
        ew__rpc_put_request(&message, ew__str(NULL, 0), EW_STR("\"" EW__AUTH_METHOD "\""), 0, ew__buf_view(&params));
        ew__jr_send(peer, &message, NULL);
    }
    ew__buf_done(&params);
    return err;
}

static ew_err init(ew__peer *base) {
    ew__jr_peer *peer = jr_of(base);
    ew__framing framing = (ew__framing)(base->conn->site->options & EW__JR_FRAMING);
    peer->framing = framing == EW__FRAMING_HEADERS ? EW__FRAMING_HEADERS : EW__FRAMING_LINES;
    if (base->role == EW__CALL && base->conn->site->options & EW__JR_PEER_FOREIGN)
        peer->kind = EW__JR_OTHER;
    ew__rpc_calls_init(&peer->calls, base->conn, &calls_ops);
    ew__rpc_ids_init(&peer->ids, base->conn->executor->env);
    ew__rpc_reader_init(&peer->reader, base, &peer->calls, &reader_ops,
                        base->role == EW__SERVE ? framing : EW__FRAMING_AUTO);
    return show_token(peer);
}

static void input(ew__peer *base, const uint8_t *bytes, size_t n) {
    ew__rpc_reader_input(&jr_of(base)->reader, bytes, n);
}

static void eof(ew__peer *base) { ew__rpc_reader_eof(&jr_of(base)->reader); }

static void drained(ew__peer *base) { ew__rpc_reader_drained(&jr_of(base)->reader); }

static void drain(ew__peer *base) { ew__rpc_reader_drain(&jr_of(base)->reader); }

static void gone(ew__peer *base, ew_err why) {
    ew__jr_peer *peer = jr_of(base);
    peer->reader.closed = true;
    while (peer->calls.served.first) {
        ew__jr_call *entry = ew__jr_call_of(peer->calls.served.first);
        ew_call *call = entry->base.call;
        ew__jr_batch *batch = entry->came.batch;
        ew__rpc_call_remove(&entry->base);
        if (batch)
            ew__jr_batch_unref(peer, batch);
        ew__call_release(call);
    }
    ew__rpc_reader_gone(&peer->reader, why);
    ew__jr_strays_free(peer);
    ew__rpc_calls_done(&peer->calls);
}

static const ew_wire_info info = {
    .name = "jsonrpc",
    .title = "JSON-RPC",
    .can = EW_WIRE_SERVES | EW_WIRE_CALLS | EW_WIRE_CHUNKS | EW_WIRE_INPUT | EW_WIRE_CANCEL | EW_WIRE_LIST |
           EW_WIRE_DUPLEX | EW_WIRE_STDIO,
};

static const ew_scheme schemes[] = {
    {.text = "jsonrpc://",
     .form = "jsonrpc://HOST:PORT",
     .help = "JSON-RPC over TCP: HOST:PORT",
     .wire = "jsonrpc",
     .reach = EW_REACH_TCP},
    {.text = "jsonrpc+unix:",
     .form = "jsonrpc+unix:PATH",
     .help = "JSON-RPC over a Unix socket: PATH",
     .wire = "jsonrpc",
     .reach = EW_REACH_UNIX},
    {.text = "jsonrpc+stdio:",
     .form = "jsonrpc+stdio:",
     .help = "JSON-RPC with a program behind --",
     .wire = "jsonrpc",
     .reach = EW_REACH_CHILD,
     .command = EW_SCHEME_COMMAND_MUST,
     .rest = ""},
    {.text = "jsonrpcs://",
     .form = "jsonrpcs://HOST:PORT",
     .help = "JSON-RPC with TLS",
     .wire = "jsonrpc",
     .reach = EW_REACH_TCP,
     .tls = true},
    {.text = NULL},
};

static const ew_listener_name listeners[] = {
    {.name = "jsonrpc",
     .help = "the jsonrpc wire only",
     .wire = "jsonrpc",
     .stdio = "JSON-RPC with whoever started this program"},
    {.name = "jsonrpcs", .help = "the jsonrpc wire only, with TLS", .wire = "jsonrpc", .tls = true},
    {.name = NULL},
};

static const ew__target_option options[] = {
    {"framing=lsp", EW__JR_FRAMING, EW__FRAMING_HEADERS},
    {"framing=lines", EW__JR_FRAMING, EW__FRAMING_LINES},
    {"params=null", 0, EW__JR_PEER_PARAMS},
    {"stream=events", 0, EW__JR_PEER_EVENTS},
    {"discover=no", 0, EW__JR_PEER_FOREIGN},
    {NULL, 0, 0},
};

static const ew__wire_note notes[] = {
    {"target",
     " jsonrpc://HOST:PORT, jsonrpc+unix:PATH, or jsonrpc+stdio: with the peer's program behind -- (options behind a "
     "jsonrpc target: ?framing=lsp Content-Length headers instead of lines, ?params=null send the\nmember params "
     "without "
     "input too, as the Go codec requires, ?stream=events the frames of a stream are {\"chunk\":C}, {\"result\":R} or "
     "{\"error\":E}, ?discover=no\nthe peer is not everywire; join several by &);",
     0},
    {"call",
     "  printf '1\\n2\\n' | everywire call jsonrpc://127.0.0.1:3400 sum --input-stream --stream\n"
     "  everywire call jsonrpc+stdio: initialize '{}' -- ./my-server --stdio\n",
     0},
    {"list", "  everywire list jsonrpc+stdio: -- ./my-server --stdio\n", 0},
    {"bench", "  everywire bench jsonrpc://127.0.0.1:3400 echo '{\"a\":1}' -c 4 -d 16 -t 30s\n", 0},
    {NULL, NULL, 0},
};

static const ew__descriptor about = {
    .info = &info, .schemes = schemes, .listeners = listeners, .notes = notes, .options = options};

const ew__wire ew__wire_jsonrpc = {
    .name = "jsonrpc",
    .about = &about,
    .caps = EW__CAN_SERVE | EW__CAN_CALL | EW__CAN_CHUNKS | EW__CAN_INPUT | EW__CAN_CANCEL | EW__CAN_LIST |
            EW__CAN_DUPLEX | EW__CAN_MANY | EW__CAN_STDIO,
    .serve_size = sizeof(ew__jr_peer),
    .call_size = sizeof(ew__jr_peer),
    .sniff = sniff,
    .frames = EW__FRAMES_HTTP | EW__FRAMES_LINES,
    .init = init,
    .input = input,
    .eof = eof,
    .drained = drained,
    .drain = drain,
    .gone = gone,
    .open = ew__jr_open,
    .leave = ew__jr_leave,
    .capacity = ew__jr_capacity,
    .sharing = ew__jr_sharing,
    .refuses = ew__jr_refuses,
};
