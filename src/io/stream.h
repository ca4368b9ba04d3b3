/*
 * io/stream.h: byte streams on a loop: TCP and Unix connections, accepted or dialled; children; standard input and
 * output. Sending is coalesced: what is queued during a turn of the loop leaves in one write; what the other side does
 * not take waits for it, with a limit on the time without progress.
 */
#ifndef EW_IO_STREAM_H
#define EW_IO_STREAM_H

#include "base/out.h"
#include "io/loop.h"
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

/* All on the loop thread. `ud` is the stream's owner. None may free the stream but closed. */
typedef struct ew__stream_events {
    uint8_t *(*reserve)(ew__stream *stream, size_t *ret_size); /* where to read to; NULL for the loop's buffer */
    void (*data)(ew__stream *stream, const uint8_t *bytes, size_t n);
    void (*eof)(ew__stream *stream);     /* the other side will send no more */
    void (*drained)(ew__stream *stream); /* what waits has fallen below out_low_bytes */
    /*
     * Once, while reading is stopped: the other side sends no more, though not all of it was read. Its eof still comes
     * if it is read on. May be NULL.
     */
    void (*hung_up)(ew__stream *stream);
    void (*secured)(ew__stream *stream);            /* TLS, accepted: the handshake is done, data may come; or NULL */
    void (*closed)(ew__stream *stream, ew_err why); /* last; the owner may free its memory now */
} ew__stream_events;

/* Memory for the libuv handle of a connection or listener (handle.h). libuv 1.x keeps the sizes of its handles. */
#define EW__HANDLE_SIZE 264
typedef union ew__handle {
    void *align;
    unsigned char memory[EW__HANDLE_SIZE];
} ew__handle;

typedef enum ew__stream_kind {
    EW__STREAM_TCP,
    EW__STREAM_UNIX,
    EW__STREAM_CHILD, /* a child's standard output; fd is its input */
    EW__STREAM_STDIO, /* two descriptors */
} ew__stream_kind;

/* What children and standard input and output have beside the handle: they keep it in front of their own memory. */
typedef struct ew__stream_ext {
    void (*ended)(ew__stream *stream);     /* no more will come in; may be NULL */
    void (*end_input)(ew__stream *stream); /* all has left after ew__stream_end; NULL: it is not for this kind */
    void (*shut)(ew__stream *stream);      /* all has left: tell the other side, as far as the stream has not */
    void (*closing)(ew__stream *stream);   /* the handle is about to be closed */
    void (*closed)(ew__stream *stream);    /* it is: free this when the rest is done, and call ew__stream_gone */
} ew__stream_ext;

/* Somebody who looks on: plain bytes that came or have left, in their order. He must not touch the stream. */
typedef struct ew__stream_tap {
    void (*saw)(struct ew__stream_tap *tap, bool out, const void *bytes, size_t n);
} ew__stream_tap;

struct ew__stream {
    ew__handle handle;
    ew__loop *loop;
    const ew__stream_events *events;
    ew__out *out;              /* the owner's queue */
    ew__out *raw;              /* what goes to the socket: the same, or the records of TLS */
    struct ew__tls *tls;       /* NULL: plain (tls.h) */
    ew__fifo_node node;        /* of loop->dirty while `dirty`, of loop->soon while `soon` */
    ew__stream_tap *tap;       /* NULL: nobody looks on */
    ew__stream_ext *beside;    /* NULL for connections */
    struct ew__waiter *waiter; /* waits until a full descriptor has room; not for TCP */
    ew__timer stall;           /* no progress in writing, or lingering too long */
    uint64_t progress_at;      /* when the peer was last known to have taken bytes */
    uint64_t soon_at;          /* soon: when they leave at the latest */
    size_t writing;            /* bytes handed to libuv, still in `out` */
    ew_err why;
    uint32_t head_start; /* the turn in which something left before its end */
    uint32_t untaken;    /* bytes that the peer had yet to take at the last sample (stream.c, note_progress) */
    int fd;              /* to write to */
    bool fd_apart;       /* it is not the handle's */
    uint8_t kind;        /* ew__stream_kind */
    bool no_socket;      /* fd knows no send */
    bool dirty;
    bool soon; /* *out has bytes that wait for others; never while it is dirty */
    bool reading;
    bool finishing; /* close when all has left */
    bool lingering; /* our side is shut: waiting for the other's eof */
    bool closing;
    bool ended;     /* the other side has said that no more will come */
    bool accepted;  /* TCP: its options are the listener's */
    bool was_full;  /* drained is owed */
    bool patient;   /* set by the owner: it may leave what waits for it as long as it likes */
    bool last_sent; /* ew__stream_end: nothing will be added to `out` */
    bool hung_up;   /* that event was sent */
    uint64_t bytes_in, bytes_out;
};

/* Takes what ew__accept, ew__dial_start or ew__stream_open_stdio put into a stream that was zeros before. */
void ew__stream_start(ew__stream *stream, ew__loop *loop, const ew__stream_events *events, ew__out *out);
void ew__stream_send(ew__stream *stream); /* *out has bytes: send them in this turn */
/*
 * *out has bytes that tell the other side little by themselves: they leave with the next that are sent, so that it is
 * woken up once in place of twice; in a millisecond or two at the latest.
 */
void ew__stream_send_soon(ew__stream *stream);
/*
 * The beginning of something long: it leaves at once, so that the other side wakes up while we go on writing. Only
 * once in a turn, so that many beginnings still share a write.
 */
void ew__stream_hurry(ew__stream *stream);
void ew__stream_flush(ew__stream *stream); /* now, as far as the other side takes them */
void ew__stream_read(ew__stream *stream, bool on);
bool ew__stream_readable(const ew__stream *stream); /* something has come that was not read yet */
/*
 * A child: no more will be sent. It sees eof when it has taken what waits; at_once: what waits is dropped, and it sees
 * eof now. What it writes still comes. Nothing may be put into *out after that.
 */
void ew__stream_end(ew__stream *stream, bool at_once);
void ew__stream_finish(ew__stream *stream);            /* close when all has left */
void ew__stream_close(ew__stream *stream, ew_err why); /* now; closed follows */
/*
 * What every TCP socket has: nothing small is held back, and a silent peer is asked after a minute whether it is still
 * there, so that a session notices a lost one. Done by streams that are dialled; those that are accepted have it from
 * the listener.
 */
void ew__socket_prepare(int fd);
/*
 * TCP: acknowledges what has come at once, for a peer that holds small writes back until then. The kernel forgets it
 * soon: it is said after each read. Nothing on other streams.
 */
void ew__stream_acknowledge(ew__stream *stream);
/* For those below the stream: no more will come, by the other side's own word. */
void ew__stream_ended(ew__stream *stream);
/* For `beside`: all is done, the owner may have its memory back. */
void ew__stream_gone(ew__stream *stream);

/*
 * A stream on standard input and output: frames in, frames out. From then on descriptor 0 is /dev/null and 1 is what 2
 * is, so that a stray printf does not get between the frames. One at a time in a process: EW_EBUSY for a second;
 * EW_ENOMEM, EW_EIO. Then 0 and 1 are as they were and there is nothing to clean up.
 */
ew_err ew__stream_open_stdio(ew__stream *stream, ew__loop *loop);

/* ---- addresses ---- */

typedef enum ew__address_kind { EW__ADDR_TCP, EW__ADDR_UNIX, EW__ADDR_STDIO } ew__address_kind;

typedef struct ew__address {
    struct sockaddr_storage storage;
    char text[128]; /* "127.0.0.1:3400", "unix:/run/x.sock", "stdio" */
    uint8_t kind;   /* ew__address_kind */
    bool loopback;  /* cannot be reached from another machine */
    uint16_t port;  /* TCP; 0 for the others */
    bool passed;    /* fd is a socket that somebody else has bound, and stays theirs (supervisor.h) */
    bool any_user;  /* Unix: the mode of its file, which is not ours, says who may connect */
    /* Unix, while it is listened on: one socket for all loops, and the file that is taken away with the last of them */
    int fd;
    dev_t device;
    ino_t inode;
    atomic_uint listeners;
} ew__address;

/*
 * "HOST:PORT" with a numeric host, "localhost", or "[v6]"; "unix:PATH"; "stdio". EW_OK or EW_EINVAL (also for a path
 * that is empty or too long for a socket).
 */
ew_err ew__address_parse(const char *text, ew__address *ret);
/*
 * Is the address free to listen on? EW_OK, EW_EADDRINUSE, EW_EACCESS, EW_EEXISTS (a file that is no socket), EW_EIO.
 * Port 0 is always free; so is a socket file that nobody listens on.
 */
ew_err ew__address_probe(const ew__address *address);
/*
 * TCP: fills in a port that is free now, whatever it was before. *ret_hold is a socket that reserves the port until the
 * caller closes it: the kernel assigns the port to no other process. A program can listen there meanwhile if it sets
 * SO_REUSEADDR, as servers do. ret_hold NULL: the port is not reserved. Errors as ew__address_probe.
 */
ew_err ew__address_pick(ew__address *address, int *ret_hold);

/* ---- listening ---- */

typedef struct ew__listener ew__listener;
struct ew__listener {
    ew__handle handle;
    ew__loop *loop;
    ew__address *address;                       /* Unix: the owner's */
    void (*connection)(ew__listener *listener); /* one waits: ew__accept takes it */
    void (*closed)(ew__listener *listener);     /* set once it is being closed */
    ew__handle refused;                         /* a connection that is being refused */
    uint8_t kind;                               /* ew__stream_kind of its connections */
    bool refusing, refuse_again;
    bool any_user; /* Unix: as the address has it */
};

/*
 * TCP: binds with SO_REUSEPORT (each loop has its own socket) and fills in the port if it was 0. Unix: the first binds,
 * others share its socket; the address must stay where it is until the last is closed. Before the loop runs, or on its
 * thread; for one address not on two threads at once. Errors as ew__address_probe; EW_EINVAL for stdio.
 */
ew_err ew__listen(ew__listener *listener, ew__loop *loop, ew__address *address,
                  void (*connection)(ew__listener *listener));
/*
 * Accepts into a stream. EW_OK; EW_EIO; EW_EACCESS (a Unix socket's peer that is another user): start the stream in any
 * case and then close it.
 */
ew_err ew__accept(ew__listener *listener, ew__stream *stream);
/*
 * Where an accepted TCP connection comes from, as call/clients.h counts it: 16 bytes, of IPv6 the network's half. false:
 * it has no address.
 */
bool ew__stream_origin(const ew__stream *stream, uint8_t key[16], bool *ret_loopback);
/* Accepts and drops a connection. */
void ew__accept_refuse(ew__listener *listener);
void ew__listener_close(ew__listener *listener, void (*closed)(ew__listener *listener));

/* ---- dialling ---- */

typedef enum ew__where_kind {
    EW__WHERE_TCP,
    EW__WHERE_UNIX,
    EW__WHERE_CHILD,
    EW__WHERE_LISTEN /* peers dial us: nothing that a dial could reach */
} ew__where_kind;

/* A child is told about when it has ended, on the loop thread. how: "ended with code 1"; it lasts for the call. */
typedef void (*ew__child_ended)(void *ud, const char *how);
/* The same in numbers: the exit code or -1, the signal that killed it or 0; -1 and 0: nobody knows. */
typedef void (*ew__child_exited)(void *ud, int code, int signal);

/* Where a child runs and what it may use (setrlimit; never more than we may). NULL and 0: as we do. */
typedef struct ew__child_rules {
    const char *folder; /* a program with a slash in its name that is no whole path is looked for there */
    uint64_t cpu_s, memory_bytes, file_bytes, open_files;
} ew__child_rules;

/*
 * Whom to reach. It is copied; what it points to is borrowed while the dial runs, argv, inherited and vars as long as
 * the stream lives.
 */
typedef struct ew__where {
    uint8_t kind; /* ew__where_kind */
    uint16_t port;
    const char *host;             /* TCP */
    const char *path;             /* Unix */
    const char *const *argv;      /* child: the program and its arguments, NULL-ended */
    bool loopback_only;           /* TCP: of the addresses found, try only those that no other machine has */
    bool named_by_peer;           /* TCP: never try special addresses (io/address.h) */
    const char *const *inherited; /* child: its environment (environment.h); NULL: this program's */
    const char *const *vars;      /* child: "VAR=VALUE" beside what it inherits, NULL-ended; may be NULL */
    bool managed;                 /* child: it is not the peer, but will dial us, or is dialled (child.h) */
    bool tells;                   /* managed: what it writes to its standard output comes on the stream */
    uint16_t farewell_ms;         /* managed: how long it may go on when it is no longer needed */
    uint32_t grace_ms;            /* child: from SIGTERM to SIGKILL; 0: 2 s */
    bool pipe_input;              /* child: its standard input is a pipe, which it may open again as /dev/stdin */
    const ew__child_rules *rules; /* child; may be NULL */
    ew__child_ended ended;        /* child; may be NULL */
    ew__child_exited exited;      /* child: in place of a line in the log; may be NULL */
    void *ended_ud;               /* of both */
    struct ew__tls_context *tls;  /* TCP: speak TLS with it, which must be the one whom `host` names; NULL: plain */
    bool tls_http;                /* ... and HTTP inside */
    const char *tls_plain;        /* ... else schemes without TLS, "a:// or b://", for messages; may be NULL */
} ew__where;

typedef struct ew__dial ew__dial;

/*
 * TCP: resolves host, tries its addresses in turn until one connects. Unix: connects. Child: starts the program; its
 * standard input and output are the stream, its standard error goes to the log line by line (child.h). All of it within
 * the time given; so does the TLS handshake, if there is to be one. done is called once, on the loop thread: EW_OK; EW_ECONNECT (detail says why; it lives until done
 * returns), EW_ETIMEOUT, EW_ECANCELLED. EW_ENOMEM now: done will not be called.
 */
typedef void (*ew__dial_done)(ew__stream *stream, ew_err err, const char *detail);
ew_err ew__dial_start(ew__loop *loop, ew__stream *stream, const ew__where *where, uint64_t timeout_ms,
                      ew__dial_done done, ew__dial **ret_dial);
/* done(EW_ECANCELLED) follows. */
void ew__dial_cancel(ew__dial *dial);

#endif
