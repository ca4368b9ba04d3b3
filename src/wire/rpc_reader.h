/*
 * wire/rpc_reader.h: what comes on a connection that carries JSON-RPC as lines (or behind headers), and the life of
 * that connection: bytes to parsed texts, reading that pauses and goes on, patience, the end of input, draining. Shared
 * by the wires that speak JSON-RPC on a byte stream of their own; what a text says is theirs. May include: base, json,
 * frame, call.
 */
#ifndef EW_WIRE_RPC_READER_H
#define EW_WIRE_RPC_READER_H

#include "frame/line.h"
#include "wire/progress.h"
#include "wire/rpc_calls.h"

typedef struct ew__rpc_reader ew__rpc_reader;

/* What the wire does with what came. Each of them may close the connection. */
typedef struct ew__rpc_reader_ops {
    /*
     * One text that is not parsed yet, nor known to be JSON: true if it is a piece of a stream, or a result, that can be
     * told by its bytes, and was taken as such. May be NULL.
     */
    bool (*piece)(ew__rpc_reader *reader, ew_str text);
    /*
     * Lines, of which the first may be a piece of the stream that speaks: takes as many such pieces as stand one behind
     * the other and can be told by their bytes; returns how many bytes they have. May be NULL.
     */
    size_t (*row)(ew__rpc_reader *reader, ew_str lines);
    void (*text)(ew__rpc_reader *reader, const ew__json_doc *doc); /* one whole JSON text, of any type */
    /*
     * What came is no message, or none that is taken: BAD, TOO_LONG, FOREIGN, BAD_HEADER, or MORE (the input ended
     * inside it; only where we serve). text: so much of it as has come. Who serves says so; who calls had better say
     * nothing: an error with a null id could be taken for the answer to another call.
     */
    void (*refuse)(ew__rpc_reader *reader, ew__line_event event, const char *problem, ew_str text);
    /*
     * A message that is too large or nested too deep, and was not kept: what its envelope says. true: its sender was
     * told, or the call that it is for has failed, and the connection goes on. false: as `refuse`. May be NULL.
     */
    bool (*refuse_message)(ew__rpc_reader *reader, const ew__rpc *message, const char *problem);
    /* No answer will come any more: every call that left fails. message lasts for the call. */
    void (*lost)(ew__rpc_reader *reader, ew_origin origin, ew_status status, ew_str message);
    /* The other side says no more: calls that came and need more of it are given up. May be NULL. */
    void (*ended)(ew__rpc_reader *reader);
} ew__rpc_reader_ops;

/* A member of the wire's own struct. */
struct ew__rpc_reader {
    const ew__rpc_reader_ops *ops;
    ew__peer *peer;
    ew__rpc_calls *calls; /* of this connection; its resume and abort lead here */
    ew__line line;
    ew__buf in;         /* bytes that are no whole message yet, or wait because reading is paused */
    ew__timer patience; /* for the first message, for the rest of a message, after the other side's eof */
    ew__timer resume;   /* reading goes on in the next turn */
    ew__progress progress;
    ew__skim *skim;   /* of a message that is too long, while it is skipped; NULL: none is */
    uint64_t skipped; /* bytes of it */
    uint16_t n_bad;   /* texts in a row that were no messages */
    bool heard;       /* a message has come */
    bool reading;     /* messages are being taken: no second time from inside */
    bool paused;      /* not before there is room */
    bool eof;         /* the other side says no more */
    bool draining;    /* finish with the last call */
    bool closed;      /* nothing more is read or written */
};

/* framing: of what is read. The calls are initialised already. */
void ew__rpc_reader_init(ew__rpc_reader *reader, ew__peer *peer, ew__rpc_calls *calls, const ew__rpc_reader_ops *ops,
                         ew__framing framing);

/* ---- what the wire is told: handed on ---- */

void ew__rpc_reader_input(ew__rpc_reader *reader, const uint8_t *bytes, size_t n);
void ew__rpc_reader_eof(ew__rpc_reader *reader);
void ew__rpc_reader_drain(ew__rpc_reader *reader);
/* There is room again: calls that wait go on, and so does reading; the owner is told that a call may come. */
void ew__rpc_reader_drained(ew__rpc_reader *reader);
/*
 * The connection has gone: what left fails (`lost`), then everything is freed. The wire has let go of what came, with
 * `closed` set before that.
 */
void ew__rpc_reader_gone(ew__rpc_reader *reader, ew_err why);

/* For ew__rpc_calls_ops: nothing holds up reading any more. It goes on in the next turn. */
void ew__rpc_reader_resume(ew__rpc_reader *reader);

/* ---- what the wire asks for ---- */

/* The peer has presented a token: the limit of its messages is read again. */
void ew__rpc_reader_authenticated(ew__rpc_reader *reader);

/* A text came that is no message of this wire, and nobody can be told: counted as those that are no JSON. */
void ew__rpc_reader_bad(ew__rpc_reader *reader, const char *problem, ew_str text);
void ew__rpc_reader_abort(ew__rpc_reader *reader); /* closes now; its calls end when the connection has gone */
/* The peer broke the protocol: closes now, and the calls that left fail because of it. */
void ew__rpc_reader_break_off(ew__rpc_reader *reader, ew_str why);
void ew__rpc_reader_check_drained(ew__rpc_reader *reader); /* a call has gone: was it the last? */
void ew__rpc_reader_call_ended(ew__rpc_reader *reader);    /* the same for one that left: another may come now */

/*
 * Sends a message whose pieces hold no raw newline: behind a head (not empty), or as a line. owner: large pieces in its
 * memory are sent from there; may be NULL. Half a message must not leave: without memory for a whole one the connection
 * closes.
 */
void ew__rpc_reader_send(ew__rpc_reader *reader, ew_str head, const ew__rpc_out *message, ew_call *owner);
/* The same for a data frame as a line, of up to EW__RPC_SMALL bytes: most of what a busy connection sends. */
#define EW__RPC_SMALL ((size_t)4096)
void ew__rpc_reader_send_frame(ew__rpc_reader *reader, ew_str id, ew_str data);
/* And for the frames of a row of chunks (ew__call_chunk_row), each of them as short as that. */
void ew__rpc_reader_send_row(ew__rpc_reader *reader, ew_str id, const ew_str *row, size_t n);

#endif
