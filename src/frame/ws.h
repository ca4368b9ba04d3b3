/*
 * frame/ws.h: WebSocket (RFC 6455) as a codec, both roles. Bytes in, events out; no socket, no clock, no JSON. No
 * extension is ever spoken, so every reserved bit is an error. The opening handshake is in frame/ws_handshake.h.
 *
 * The head of every frame is read by a guard of our own, which decides everything that can be decided there. A message
 * that is one frame and lies whole in the bytes given is handed out at once: without copying where it is not masked,
 * unmasked into the loop's scratch where it is. All other frames (cut by a read, fragments, control frames) are
 * decoded by wslay's frame layer, and what it understood is compared with the guard.
 * May include: base, wslay.
 */
#ifndef EW_FRAME_WS_H
#define EW_FRAME_WS_H

#include "base/buf.h"
#include "frame/utf8.h"

#define EW__WS_FRAMES_MAX 100000     /* data frames of one message; 1008 beyond */
#define EW__WS_CONTROLS_A_SECOND 100 /* pings and pongs taken in a second; 1008 beyond */
#define EW__WS_CONTROL_MAX 125       /* bytes in a control frame */
#define EW__WS_REASON_MAX (EW__WS_CONTROL_MAX - 2)
#define EW__WS_HEAD_ROOM 14
#define EW__WS_CONTROL_ROOM (6 + EW__WS_CONTROL_MAX)
#define EW__WS_WHOLE_MAX ((size_t)16 * 1024) /* masked frames up to this size are unmasked in the scratch */

/* Codes of a close frame (RFC 6455, section 7.4). */
enum {
    EW__WS_NORMAL = 1000,
    EW__WS_GOING_AWAY = 1001,
    EW__WS_PROTOCOL = 1002,
    EW__WS_NO_CODE = 1005, /* never sent: the frame had none */
    EW__WS_BAD_TEXT = 1007,
    EW__WS_POLICY = 1008,
    EW__WS_TOO_BIG = 1009,
    EW__WS_INTERNAL = 1011
};

typedef enum ew__ws_event {
    EW__WS_MORE,   /* nothing more to say: feed again */
    EW__WS_TEXT,   /* a whole message, valid UTF-8 */
    EW__WS_BINARY, /* a whole message */
    EW__WS_PING,   /* ew__ws_answer makes the pong */
    EW__WS_PONG,
    EW__WS_CLOSE,    /* ew__ws_code and the payload (a reason for people) say why; what follows is dropped unread */
    EW__WS_ERROR,    /* ew__ws_code is what to close with; every further call says the same */
    EW__WS_TOO_LARGE /* the end of a message over the limit, whose text went to ew__ws.skim */
} ew__ws_event;

struct ew__ws_decoder;

/*
 * What the connections of one event loop share, so that an idle one holds nothing: room to unmask a message, decoders
 * for frames that are cut, memory for a message that is cut, and mask keys (of env->random, fetched by the dozen: they
 * must not be guessed by whoever chooses the payload). What lies in it lasts until another connection of that loop is
 * asked for its next event.
 */
typedef struct ew__ws_scratch {
    const ew_env *env;
    struct ew__ws_decoder *decoders;
    char *memory; /* of a message that was handed out, for the next one */
    size_t memory_cap;
    uint32_t n_decoders;
    uint32_t n_keys;
    uint8_t keys[256];
    uint8_t bytes[EW__WS_WHOLE_MAX];
} ew__ws_scratch;

void ew__ws_scratch_init(ew__ws_scratch *scratch, const ew_env *env);
void ew__ws_scratch_done(ew__ws_scratch *scratch); /* after the last connection */

/* One connection, both directions. Less than 200 bytes; read its members by the functions below. */
typedef struct ew__ws {
    ew__ws_scratch *scratch;
    const uint8_t *in; /* bytes fed, not yet read */
    size_t in_len;
    ew__buf message; /* a message that is cut or fragmented */
    /*
     * Set by the owner, both or none: takes the pieces of a message over the limit, which is not kept. Without it, and
     * beyond skip_max bytes, such a message is an error.
     */
    void (*skim)(void *ud, ew_str piece);
    void *skim_ud;
    uint64_t skip_max;
    uint64_t skipped;               /* bytes of the message that is being skipped */
    struct ew__ws_decoder *decoder; /* while a frame is cut, and while what it decoded is handed out */
    ew_str payload;                 /* of the last event */
    const char *why;                /* after an error */
    uint64_t left;                  /* bytes of the frame that are not yet decoded */
    uint64_t second;                /* when the second began in which control frames are counted */
    uint32_t n_frames;              /* of the message */
    uint16_t code;                  /* after CLOSE and ERROR */
    ew__utf8 text;                  /* whole between two messages */
    uint8_t event;                  /* the last one */
    uint8_t opcode;                 /* of the message; 0: none has begun */
    uint8_t n_controls;             /* in this second */
    uint8_t n_head;                 /* bytes of a head that is cut */
    uint8_t head[EW__WS_HEAD_ROOM];
    bool server;
    bool in_frame;
    bool handed_message; /* `message` was handed out; it goes at the next call */
    bool skipping;       /* the message is over the limit */
    bool close_got, close_sent;
} ew__ws;

/* server: requires masked frames and sends plain ones; a client the other way round. max: bytes of one message. */
void ew__ws_init(ew__ws *ws, ew__ws_scratch *scratch, bool server, size_t max);
void ew__ws_done(ew__ws *ws);

/* ---- reading ---- */

/*
 * Gives the reader bytes; it keeps the pointer until all events were taken (ew__ws_next returned MORE).
 * EW_OK, or EW_EINVAL while unread bytes remain (then nothing changed).
 */
ew_err ew__ws_feed(ew__ws *ws, const void *bytes, size_t n);

/* The next event. now_ns is any clock that does not go back; it measures control frames only. */
ew__ws_event ew__ws_next(ew__ws *ws, uint64_t now_ns);

/*
 * The texts of as many messages as lie whole in the bytes fed, up to max of them, for those who take many at once; they
 * are good for as long as a payload is. 0: ew__ws_next tells what comes.
 */
size_t ew__ws_row(ew__ws *ws, ew_str *row, size_t max);
/* The last n of them are to be read again. Right after it. */
void ew__ws_row_back(ew__ws *ws, const ew_str *row, size_t n);

/*
 * After TEXT, BINARY, PING, PONG: what came; after CLOSE the reason. It lies in the fed bytes, in the connection or in
 * the scratch: good until the next call for any connection of the loop.
 */
static inline ew_str ew__ws_payload(const ew__ws *ws) { return ws->payload; }
/* After CLOSE: the peer's code, or EW__WS_NO_CODE. After ERROR: what to send (no memory: EW__WS_INTERNAL). */
static inline uint16_t ew__ws_code(const ew__ws *ws) { return ws->code; }
/* After ERROR: a reason for people. */
static inline const char *ew__ws_error_text(const ew__ws *ws) { return ws->why; }

/* Bytes fed but not yet looked at: the last ones of those fed. */
static inline size_t ew__ws_unread(const ew__ws *ws) { return ws->in_len; }
/* The owner keeps the unread bytes and feeds them again later: the reader lets go of them. */
void ew__ws_forget(ew__ws *ws);
/* Whether nothing has begun and nothing is held: between two messages. (A caller may want a deadline for the rest.) */
bool ew__ws_is_idle(const ew__ws *ws);

/* ---- writing: one message is one frame ---- */

/*
 * The head of a message of `len` bytes. Returns its size; 0: a close frame was sent, nothing may follow it. Servers
 * then send the payload as it is. Clients mask it first, by the key that is the last 4 bytes of the head.
 */
size_t ew__ws_head(ew__ws *ws, bool binary, uint64_t len, uint8_t out[EW__WS_HEAD_ROOM]);
/* Masks a slice of the payload in place; offset: how many bytes of the payload stand before it. */
void ew__ws_mask(void *bytes, size_t n, const uint8_t key[4], uint64_t offset);

/*
 * Whole frames. They return its size; 0: nothing may follow a close frame, or the payload is too long for one (125
 * bytes). Which pongs come back is the owner's book to keep.
 */
size_t ew__ws_ping(ew__ws *ws, ew_str payload, uint8_t out[EW__WS_CONTROL_ROOM]);
size_t ew__ws_pong(ew__ws *ws, ew_str payload, uint8_t out[EW__WS_CONTROL_ROOM]);

/*
 * Begins the closing handshake, or completes it. A code that may not be sent becomes EW__WS_INTERNAL (EW__WS_NO_CODE:
 * an empty frame); a reason that is too long is cut between two characters, one that is no UTF-8 is left out.
 */
size_t ew__ws_close(ew__ws *ws, uint16_t code, ew_str reason, uint8_t out[EW__WS_CONTROL_ROOM]);

/*
 * The frame that the last event asks for, if any (else 0): the pong to a ping, the echo of a close frame, the close
 * frame of an error. A peer that pings faster than it reads may be answered with the last pong only.
 */
size_t ew__ws_answer(ew__ws *ws, uint8_t out[EW__WS_CONTROL_ROOM]);

/*
 * The closing handshake. After our close frame nothing may be sent; messages that still come are handed out, and their
 * owner may drop them. After the peer's, nothing is read. Once both were sent the connection is over: a server closes
 * it at once, a client gives the server time to do so.
 */
static inline bool ew__ws_may_send(const ew__ws *ws) { return !ws->close_sent; }
static inline bool ew__ws_is_closed(const ew__ws *ws) { return ws->close_sent && ws->close_got; }

/* Whether a code may stand in a close frame. */
bool ew__ws_code_ok(uint16_t code);

/* ---- not for use outside frame ---- */

/* to = from, masked; `to` may be `from`. Returns whether the result is all ASCII. */
bool ew__ws_xor(uint8_t *to, const uint8_t *from, size_t n, const uint8_t key[4]);

#endif
