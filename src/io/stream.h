/*
 * io/stream.h: byte streams on a loop: TCP connections, accepted or dialled. Sending is coalesced: what is queued
 * during a turn of the loop leaves in one write; what the socket does not take waits for it, with a limit on the time
 * without progress.
 */
#ifndef EW_IO_STREAM_H
#define EW_IO_STREAM_H

#include "base/out.h"
#include "io/loop.h"

/* All on the loop thread. `ud` is the stream's owner. None may free the stream but closed. */
typedef struct ew__stream_events {
    uint8_t *(*reserve)(ew__stream *stream, size_t *ret_size); /* where to read to; NULL for the loop's buffer */
    void (*data)(ew__stream *stream, const uint8_t *bytes, size_t n);
    void (*eof)(ew__stream *stream);                /* the other side will send no more */
    void (*drained)(ew__stream *stream);            /* what waits has fallen below out_low_bytes */
    void (*closed)(ew__stream *stream, ew_err why); /* last; the owner may free its memory now */
} ew__stream_events;

struct ew__stream {
    uv_tcp_t tcp;
    ew__loop *loop;
    const ew__stream_events *events;
    ew__out *out; /* the owner's queue */
    ew__stream *next_dirty;
    ew__timer stall;      /* no progress in writing, or lingering too long */
    uint64_t progress_at; /* when the last bytes left */
    size_t writing;       /* bytes handed to libuv, still in `out` */
    ew_err why;
    int fd;
    bool dirty;
    bool reading;
    bool finishing; /* close when all has left */
    bool lingering; /* our side is shut: waiting for the other's eof */
    bool closing;
    bool was_full; /* drained is owed */
    uint64_t bytes_in, bytes_out;
};

/* Takes an accepted or connected socket that sits in stream->tcp. */
void ew__stream_start(ew__stream *stream, ew__loop *loop, const ew__stream_events *events, ew__out *out);
void ew__stream_send(ew__stream *stream);  /* *out has bytes: send them in this turn */
void ew__stream_flush(ew__stream *stream); /* now, as far as the socket takes them */
void ew__stream_read(ew__stream *stream, bool on);
void ew__stream_finish(ew__stream *stream);            /* close when all has left */
void ew__stream_close(ew__stream *stream, ew_err why); /* now; closed follows */

/* ---- listening ---- */

typedef struct ew__listener ew__listener;
struct ew__listener {
    uv_tcp_t tcp;
    ew__loop *loop;
    void (*connection)(ew__listener *listener); /* one waits: ew__accept takes it */
    void (*closed)(ew__listener *listener);     /* set once it is being closed */
    uv_tcp_t refused;                           /* a connection that is being refused */
    bool refusing, refuse_again;
};

typedef struct ew__address {
    struct sockaddr_storage storage;
    char text[64]; /* "127.0.0.1:3400" */
    uint16_t port;
    bool loopback;
} ew__address;

/* "HOST:PORT" with a numeric host, "localhost", or "[v6]". EW_OK or EW_EINVAL. */
ew_err ew__address_parse(const char *text, ew__address *ret);
/* Is the address free to listen on? EW_OK, EW_EADDRINUSE, EW_EACCESS, EW_EIO. Port 0 is always free. */
ew_err ew__address_probe(const ew__address *address);
/*
 * Binds with SO_REUSEPORT (each loop has its own) and fills in the port if it was 0. Before the loop runs, or on its
 * thread.
 */
ew_err ew__listen(ew__listener *listener, ew__loop *loop, ew__address *address,
                  void (*connection)(ew__listener *listener));
/* Accepts into stream->tcp. EW_OK or EW_EIO (nothing to clean up). */
ew_err ew__accept(ew__listener *listener, ew__stream *stream);
/* Accepts and drops a connection. */
void ew__accept_refuse(ew__listener *listener);
void ew__listener_close(ew__listener *listener, void (*closed)(ew__listener *listener));

/* ---- dialling ---- */

typedef struct ew__dial ew__dial;

/*
 * Resolves host, tries its addresses in turn until one connects (into stream->tcp), within the time given. done is
 * called once, on the loop thread: EW_OK; EW_ECONNECT (detail says why), EW_ETIMEOUT, EW_ECANCELLED. EW_ENOMEM now:
 * done will not be called.
 */
typedef void (*ew__dial_done)(ew__stream *stream, ew_err err, const char *detail);
ew_err ew__dial_start(ew__loop *loop, ew__stream *stream, const char *host, uint16_t port, uint64_t timeout_ms,
                      ew__dial_done done, ew__dial **ret_dial);
/* done(EW_ECANCELLED) follows. */
void ew__dial_cancel(ew__dial *dial);

#endif
