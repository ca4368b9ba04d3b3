/*
 * wire/rpc_reader.c: bytes to texts, and the life of a connection that carries them. See rpc_reader.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/rpc_reader.h"

#define BAD_MAX 100       /* unreadable texts of a process that is our only peer (stdio) */
#define EOF_GRACE_MS 1000 /* for calls of a peer that says no more and may have gone, on a socket */
#define LOST "the connection was lost before the end of the call"

static ew__timers *timers_of(const ew__rpc_reader *reader) { return &reader->peer->conn->executor->timers; }

static const ew_limits *limits_of(const ew__rpc_reader *reader) { return reader->peer->conn->executor->limits; }

/* ---- its end ---- */

void ew__rpc_reader_abort(ew__rpc_reader *reader) {
    reader->closed = true;
    reader->peer->conn->ops->abort(reader->peer->conn);
}

static void finish(ew__rpc_reader *reader) {
    reader->closed = true;
    reader->peer->conn->ops->finish(reader->peer->conn);
}

void ew__rpc_reader_break_off(ew__rpc_reader *reader, ew_str why) {
    ew__rpc_reader_abort(reader);
    reader->ops->lost(reader, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, why);
}

void ew__rpc_reader_check_drained(ew__rpc_reader *reader) {
    bool said_all = reader->eof && !reader->paused; /* what waits to be read was said before it */
    if ((reader->draining || said_all) && !reader->closed && !reader->reading && !reader->calls->served.first &&
        !reader->calls->sent.first)
        finish(reader);
}

void ew__rpc_reader_call_ended(ew__rpc_reader *reader) {
    ew__conn *conn = reader->peer->conn;
    ew__rpc_reader_check_drained(reader);
    if (!reader->closed && conn->ops->ready)
        conn->ops->ready(conn);
}

/* ---- what is no message ---- */

/* A process that is our own peer may print a line by mistake: reading goes on with the next, but not for ever. */
void ew__rpc_reader_bad(ew__rpc_reader *reader, const char *problem, ew_str text) {
    const ew__conn *conn = reader->peer->conn;
    int shown = (int)(text.len < 100 ? text.len : 100);
    if (conn->stdio)
        ew__log(conn->executor->env, EW_LOG_WARN, reader->peer->wire->name, "%s: %.*s", problem, shown,
                text.ptr ? text.ptr : "");
    if (conn->stdio && ++reader->n_bad < BAD_MAX)
        return;
    if (reader->peer->role == EW__CALL)
        ew__rpc_reader_break_off(reader, EW_STR("the peer sent something that is no JSON-RPC"));
    else
        finish(reader);
}

static void refuse_text(ew__rpc_reader *reader, ew__line_event event, const char *problem, ew_str bytes) {
    reader->ops->refuse(reader, event, problem, bytes);
    if (!reader->closed)
        ew__rpc_reader_bad(reader, problem, bytes);
}

static void on_foreign(ew__rpc_reader *reader, ew_str bytes) {
    bool http = bytes.len > 0 && bytes.ptr[0] >= 'A' && bytes.ptr[0] <= 'Z';
    if (reader->peer->role == EW__CALL)
        ew__rpc_reader_break_off(reader, EW_STR("the peer does not speak JSON-RPC"));
    else if (http) /* another protocol, perhaps of a browser: it learns nothing */
        ew__rpc_reader_abort(reader);
    else
        refuse_text(reader, EW__LINE_FOREIGN,
                    "the stream begins neither with an object or array nor with a Content-Length header", bytes);
}

/* bytes: from where it begins. */
static void on_no_message(ew__rpc_reader *reader, ew__line_event event, ew_str bytes) {
    switch (event) {
    case EW__LINE_FOREIGN:
        on_foreign(reader, bytes);
        break;
    case EW__LINE_TOO_LONG:
        refuse_text(reader, event, "the message is too long", bytes);
        break;
    case EW__LINE_BAD_HEADER:
        reader->n_bad = BAD_MAX; /* the framing is lost: no going on */
        refuse_text(reader, event, "the header is not usable", bytes);
        break;
    default:
        refuse_text(reader, EW__LINE_BAD, "not JSON", bytes);
    }
}

/*
 * A text is no JSON, from `used` on; rest begins with it. Returns how many bytes are done with: up to the newline
 * behind which reading goes on.
 */
static size_t on_bad(ew__rpc_reader *reader, ew_str rest, size_t used) {
    const char *newline = used < rest.len ? memchr(rest.ptr + used, '\n', rest.len - used) : NULL;
    size_t n = newline ? (size_t)(newline - rest.ptr) : rest.len, start = 0;
    while (start < n && (unsigned char)rest.ptr[start] <= ' ')
        start++;
    on_no_message(reader, EW__LINE_BAD, ew__str(rest.ptr + start, n - start));
    return n;
}

/* ---- messages that are refused unread ---- */

/* The end of it is known. bytes: what is shown of it if it shows no id. */
static void refuse_skimmed(ew__rpc_reader *reader, const ew__skim *skim, const char *problem, ew_str bytes) {
    ew__rpc message;
    ew__rpc_read_skim(skim, &message, NULL);
    message.problem = problem;
    if (!reader->ops->refuse_message(reader, &message, problem) && !reader->closed)
        refuse_text(reader, EW__LINE_TOO_LONG, problem, bytes);
}

static void end_skim(ew__rpc_reader *reader) {
    ew__skim *skim = reader->skim;
    reader->skim = NULL;
    reader->progress.reset = true;
    refuse_skimmed(reader, skim, EW__RPC_TOO_LARGE, ew__str(NULL, 0));
    ew__free(reader->peer->conn->executor->env, skim, sizeof *skim);
}

/* A peer without a token may not send that much: false. Without memory the connection closes: a call may wait for it. */
static bool begin_skim(ew__rpc_reader *reader) {
    ew__conn *conn = reader->peer->conn;
    if (!reader->ops->refuse_message || ew__conn_is_pending(conn))
        return false;
    reader->skim = ew__alloc(conn->executor->env, sizeof *reader->skim);
    reader->skipped = 0;
    if (reader->skim)
        ew__rpc_skim_init(reader->skim);
    else
        ew__rpc_reader_abort(reader);
    return true;
}

/* Looks at what the framing skips next; the framing itself consumes it. */
static void skim_on(ew__rpc_reader *reader, ew_str bytes) {
    bool end;
    size_t n = ew__line_skipped(&reader->line, bytes, &end);
    (void)ew__skim_feed(reader->skim, ew__str(bytes.ptr, n));
    reader->skipped += n;
    if (end || reader->skim->done) { /* what follows on its line is skipped, too */
        end_skim(reader);
    } else if (reader->skipped > ew__skip_bytes(reader->line.max)) {
        reader->n_bad = BAD_MAX; /* it may never end: no going on */
        end_skim(reader);
        if (!reader->closed)
            ew__rpc_reader_bad(reader, EW__RPC_TOO_LARGE, ew__str(NULL, 0));
    }
}

/* A whole text that is nested too deep. false: it is not one value. */
static bool refuse_deep(ew__rpc_reader *reader, ew_str text) {
    ew__skim skim;
    ew__rpc_skim_init(&skim);
    bool one = reader->ops->refuse_message && ew__skim_feed(&skim, text) == text.len && skim.done;
    if (one)
        refuse_skimmed(reader, &skim, EW__RPC_TOO_DEEP, text);
    return one;
}

/* Pieces of one stream that stand one behind the other; returns how many bytes they have, 0: there are none. */
static size_t take_row(ew__rpc_reader *reader, ew_str bytes) {
    if (!reader->calls->speaks || !reader->ops->row || !ew__line_is_between(&reader->line) ||
        reader->line.max < EW__RPC_SMALL) /* then each of them is measured */
        return 0;
    size_t used = reader->ops->row(reader, bytes);
    if (used > 0) {
        reader->heard = true;
        reader->n_bad = 0;
    }
    return used;
}

/* A text was handled. A peer without a token has a limited number of them. */
static void check_refusals(ew__rpc_reader *reader) {
    if (!reader->closed && ew__conn_is_last_refusal(reader->peer->conn))
        finish(reader);
}

/* Takes whole messages off the front; returns how many bytes are done with. */
static size_t take_messages(ew__rpc_reader *reader, ew_str bytes) {
    size_t done = 0;
    reader->reading = true;
    while (!reader->closed && !(reader->paused = ew__rpc_must_pause(reader->calls))) {
        ew__json_doc doc;
        ew_str value, rest = ew__str(bytes.ptr + done, bytes.len - done);
        ew_err err;
        if (EW__UNLIKELY(reader->skim != NULL)) {
            skim_on(reader, rest);
            if (reader->closed)
                break;
        }
        size_t used = take_row(reader, rest);
        if (used > 0) {
            done += used;
            continue;
        }
        ew__line_event event = ew__line_read(&reader->line, rest, &value, &used);
        if (event == EW__LINE_LIKELY || event == EW__LINE_VALUE) {
            if (reader->ops->piece && reader->ops->piece(reader, value)) {
                reader->heard = true;
                reader->n_bad = 0;
            } else if (EW__LIKELY((err = ew__json_parse(&doc, value)) == EW_OK)) {
                uint16_t n_bad = reader->n_bad;
                reader->heard = true;
                reader->ops->text(reader, &doc);
                if (reader->n_bad == n_bad) /* it was a message */
                    reader->n_bad = 0;
                check_refusals(reader);
            } else if (err == EW_ELIMIT && refuse_deep(reader, value)) {
                reader->heard = true;
                check_refusals(reader);
            } else if (event == EW__LINE_LIKELY) {
                ew__line_look_closer(&reader->line);
                continue;
            } else {
                ew__line_skip(&reader->line);
                used = on_bad(reader, rest, used);
            }
        } else if (event == EW__LINE_BAD) {
            used = on_bad(reader, rest, used);
        } else if (event == EW__LINE_TOO_LONG && begin_skim(reader)) {
            if (reader->skim)
                (void)ew__skim_feed(reader->skim, ew__str(rest.ptr, used));
            reader->skipped = used;
        } else if (event != EW__LINE_MORE) {
            on_no_message(reader, event, rest);
        }
        done += used;
        if (event == EW__LINE_MORE)
            break;
    }
    reader->reading = false;
    reader->progress.reset = reader->progress.reset || (done > 0 && !reader->skim);
    return done;
}

/* ---- patience ---- */

/* When the peer must have got on; EW__NEVER when nothing is expected of it. */
static uint64_t patience_until(const ew__rpc_reader *reader) {
    const ew_limits *limits = limits_of(reader);
    bool inside = ew__line_is_inside(&reader->line) || reader->skim;
    if (reader->peer->conn->stdio || reader->paused || (!reader->eof && reader->heard && !inside))
        return EW__NEVER;
    return reader->progress.at + EW__MS(reader->eof ? EOF_GRACE_MS : inside ? limits->body_stall_ms : limits->idle_ms);
}

static void on_patience(ew__timer *timer, uint64_t now) {
    ew__rpc_reader *reader = ew__container_of(timer, ew__rpc_reader, patience);
    uint64_t at = patience_until(reader);
    if (reader->closed || at == EW__NEVER)
        return;
    if (now >= at || ew__timer_set(timers_of(reader), timer, at, on_patience) != EW_OK)
        ew__rpc_reader_abort(reader);
}

/* A socket is not ours alone: whoever holds one without saying anything, or half a message, loses it. */
static void watch_patience(ew__rpc_reader *reader) {
    ew__progress_note(&reader->progress, reader->in.len + (reader->skim ? (size_t)reader->skipped : 0),
                      reader->peer->conn->executor->now);
    uint64_t at = patience_until(reader);
    if (at == EW__NEVER || (ew__timer_active(&reader->patience) && reader->patience.at <= at))
        return; /* it looks for itself when it fires */
    if (ew__timer_set(timers_of(reader), &reader->patience, at, on_patience) != EW_OK)
        ew__rpc_reader_abort(reader);
}

/* ---- bytes ---- */

static void after_messages(ew__rpc_reader *reader) {
    ew__conn *conn = reader->peer->conn;
    if (reader->closed)
        return;
    conn->ops->read(conn, !reader->paused && !reader->eof);
    if (!reader->paused)
        watch_patience(reader);
    ew__rpc_reader_check_drained(reader);
}

static void take_buffered(ew__rpc_reader *reader) {
    ew__buf_drop(&reader->in, take_messages(reader, ew__buf_view(&reader->in)));
    if (reader->in.len == 0)
        ew__buf_done(&reader->in); /* an idle connection holds no memory */
}

void ew__rpc_reader_input(ew__rpc_reader *reader, const uint8_t *bytes, size_t n) {
    if (reader->closed)
        return;
    if (reader->in.len == 0) { /* nothing is left over: messages are read where they are */
        size_t done = take_messages(reader, ew__str(bytes, n));
        bytes += done;
        n -= done;
        if (n > 0 && !reader->closed && ew__buf_add(&reader->in, bytes, n) != EW_OK)
            ew__rpc_reader_abort(reader);
    } else if (ew__buf_add(&reader->in, bytes, n) != EW_OK) {
        ew__rpc_reader_abort(reader);
    } else {
        take_buffered(reader);
    }
    after_messages(reader);
}

static void resume(ew__timer *timer, uint64_t now);

void ew__rpc_reader_resume(ew__rpc_reader *reader) {
    if (!reader->paused || reader->closed || reader->reading)
        return; /* there is nothing to resume; or the loop that reads looks for itself */
    if (ew__timer_set(timers_of(reader), &reader->resume, reader->peer->conn->executor->now, resume) != EW_OK)
        ew__rpc_reader_abort(reader);
}

void ew__rpc_reader_drained(ew__rpc_reader *reader) {
    ew__conn *conn = reader->peer->conn;
    ew__rpc_calls_drained(reader->calls);
    if (!reader->closed && conn->ops->ready)
        conn->ops->ready(conn);
}

/* ---- the end of input ---- */

/* A number or null ends with the stream; half a message is an error, to a caller that of a lost connection. */
static void end_text(ew__rpc_reader *reader) {
    bool serves = reader->peer->role == EW__SERVE;
    if (serves && reader->line.framing != EW__FRAMING_HEADERS && ew__line_is_inside(&reader->line) &&
        ew__buf_char(&reader->in, '\n') == EW_OK)
        take_buffered(reader);
    if (!reader->closed && ew__line_is_inside(&reader->line) && serves)
        reader->ops->refuse(reader, EW__LINE_MORE, "the stream ended inside a message", ew__buf_view(&reader->in));
    ew__line_init(&reader->line, EW__FRAMING_LINES, 0, false);
    ew__buf_done(&reader->in);
}

/* What runs may still be answered: the other side may have closed only its own half. */
static void end_of_input(ew__rpc_reader *reader) {
    if (!reader->eof || reader->paused || reader->closed)
        return;
    end_text(reader);
    if (reader->closed)
        return;
    reader->ops->lost(reader, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW_STR(LOST));
    if (reader->ops->ended)
        reader->ops->ended(reader);
    watch_patience(reader);
    ew__rpc_reader_check_drained(reader);
}

static void resume(ew__timer *timer, uint64_t now) {
    ew__rpc_reader *reader = ew__container_of(timer, ew__rpc_reader, resume);
    (void)now;
    if (reader->closed || ew__rpc_must_pause(reader->calls))
        return;
    reader->paused = false;
    reader->progress.reset = true; /* the peer could not get on */
    if (reader->in.len)
        take_buffered(reader);
    after_messages(reader);
    end_of_input(reader);
}

void ew__rpc_reader_eof(ew__rpc_reader *reader) {
    reader->eof = true;
    end_of_input(reader);
}

/* ---- life ---- */

void ew__rpc_reader_init(ew__rpc_reader *reader, ew__peer *peer, ew__rpc_calls *calls, const ew__rpc_reader_ops *ops,
                         ew__framing framing) {
    ew__conn *conn = peer->conn;
    *reader = (ew__rpc_reader){.ops = ops, .peer = peer, .calls = calls};
    ew__line_init(&reader->line, framing, ew__conn_frame_max(conn), !conn->stdio);
    ew__buf_init(&reader->in, conn->executor->env, SIZE_MAX / 2); /* a message's length is checked as it comes */
    if (peer->role == EW__SERVE)
        watch_patience(reader);
    else
        reader->heard = true; /* a server may be silent until it is asked */
}

void ew__rpc_reader_authenticated(ew__rpc_reader *reader) { reader->line.max = ew__conn_frame_max(reader->peer->conn); }

void ew__rpc_reader_drain(ew__rpc_reader *reader) {
    reader->draining = true;
    ew__rpc_reader_check_drained(reader);
}

void ew__rpc_reader_gone(ew__rpc_reader *reader, ew_err why) {
    reader->closed = true;
    reader->ops->lost(reader, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                      why == EW_ETIMEOUT ? EW_STR("the connection stalled") : EW_STR(LOST));
    ew__timer_stop(timers_of(reader), &reader->patience);
    ew__timer_stop(timers_of(reader), &reader->resume);
    ew__free(reader->peer->conn->executor->env, reader->skim, sizeof *reader->skim);
    reader->skim = NULL;
    ew__buf_done(&reader->in);
}

/* ---- messages out ---- */

static void write_small(ew__out *out, ew_str head, const ew__rpc_out *message, size_t tail) {
    uint8_t *at = ew__out_room(out, head.len + message->len + tail);
    if (!at)
        return;
    if (head.len)
        memcpy(at, head.ptr, head.len);
    at = ew__rpc_out_copy(message, at + head.len);
    if (tail)
        *at = '\n';
    ew__out_commit(out, head.len + message->len + tail);
}

static void written(ew__rpc_reader *reader) {
    ew__conn *conn = reader->peer->conn;
    if (EW__UNLIKELY(conn->out.err != EW_OK))
        ew__rpc_reader_abort(reader);
    else
        conn->ops->send(conn);
}

void ew__rpc_reader_send(ew__rpc_reader *reader, ew_str head, const ew__rpc_out *message, ew_call *owner) {
    ew__conn *conn = reader->peer->conn;
    size_t tail = head.len ? 0 : 1;
    if (reader->closed)
        return;
    if (EW__LIKELY(message->len <= EW__RPC_SMALL)) {
        write_small(&conn->out, head, message, tail);
    } else {
        if (head.len)
            ew__out_str(&conn->out, head);
        ew__rpc_write(&conn->out, message, owner);
        ew__out_add(&conn->out, "\n", tail);
    }
    written(reader);
}

/* As many frames as there is room for in one run of the queue; returns how many, n if there is no memory. */
static size_t write_frames(ew__out *out, ew_str id, const ew_str *row, size_t n) {
    size_t around = ew__rpc_data_frame_len(id, ew__str(NULL, 0)) + 1, len = 0, k = 0;
    for (; k < n && len + around + row[k].len <= EW__RPC_SMALL; k++)
        len += around + row[k].len;
    uint8_t *start = ew__out_room(out, len), *at = start;
    if (!start)
        return n;
    for (size_t i = 0; i < k; i++) {
        at = ew__rpc_write_data_frame(at, id, row[i]);
        *at++ = '\n';
    }
    ew__out_commit(out, len);
    return k;
}

void ew__rpc_reader_send_row(ew__rpc_reader *reader, ew_str id, const ew_str *row, size_t n) {
    if (reader->closed)
        return;
    for (size_t i = 0; i < n;)
        i += write_frames(&reader->peer->conn->out, id, row + i, n - i);
    written(reader);
}

void ew__rpc_reader_send_frame(ew__rpc_reader *reader, ew_str id, ew_str data) {
    ew__out *out = &reader->peer->conn->out;
    size_t len = ew__rpc_data_frame_len(id, data) + 1;
    uint8_t *at = reader->closed ? NULL : ew__out_room(out, len);
    if (at) {
        *ew__rpc_write_data_frame(at, id, data) = '\n';
        ew__out_commit(out, len);
    }
    if (!reader->closed)
        written(reader);
}
