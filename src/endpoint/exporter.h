/*
 * endpoint/exporter.h: sends texts to a telemetry server, POST {base}/api/traces over HTTP/1.1: one per loop, one
 * connection that is kept, one request in flight. Where the texts come from is the owner's affair. All on the loop
 * thread. May include: base, frame, call, wire, io.
 *
 * A server that is away costs one log line and a try now and then, half a second apart at first, half a minute at last.
 * A text that it refuses is lost; one whose connection dies is sent once more. While calls are served, exporting takes
 * a small share of the loop's time (exporter.c), whatever the load.
 */
#ifndef EW_ENDPOINT_EXPORTER_H
#define EW_ENDPOINT_EXPORTER_H

#include "io/stream.h"
#include "wire/http_ask.h"

/* ---- where to ---- */

typedef struct ew__export_target {
    char host[256];      /* a name or an address, without brackets */
    char authority[272]; /* "HOST:PORT" or "[V6]:PORT" */
    char path[272];      /* "/api/traces" or "/BASE/api/traces" */
    uint16_t port;
    bool loopback_only; /* connect to no other machine, whatever the name means */
    bool tls;
} ew__export_target;

/*
 * Reads "http://HOST:PORT[/BASE]" or "https://...". pushed: a peer told us, and not the program or its environment: then the host must
 * be localhost, 127.0.0.0/8 in four decimal numbers or [::1]. EW_OK; EW_EINVAL: no such URL; EW_EUNSUPPORTED: pushed, and https;
 * EW_EACCESS: pushed, and another host. *ret_problem gets a constant line for people.
 */
ew_err ew__export_target_parse(ew_str url, bool pushed, ew__export_target *ret, const char **ret_problem);

/* ---- sending ---- */

typedef struct ew__exporter_source {
    bool (*next)(void *ud, ew__buf *body); /* the next text, replacing what body holds; false: there is none now */
    void (*told)(void *ud, bool sent);     /* what became of it: taken by the server, or lost */
} ew__exporter_source;

/* What the exporters of all loops share, so that a server that is away is one log line and not one per loop. */
typedef struct ew__exporter_news {
    atomic_uint away, refusing; /* exporters that find it so */
} ew__exporter_news;

typedef enum ew__exporter_state {
    EW__EXPORTER_DOWN, /* no connection */
    EW__EXPORTER_DIALLING,
    EW__EXPORTER_UP,      /* a connection that waits for a text */
    EW__EXPORTER_WAITING, /* for an answer */
    EW__EXPORTER_CLOSING  /* the connection */
} ew__exporter_state;

typedef struct ew__exporter ew__exporter;
struct ew__exporter {
    ew__loop *loop;
    const ew__exporter_source *source;
    void *ud;
    ew__exporter_news *news;
    struct ew__tls_context *tls; /* for an aim with TLS; the owner's */
    ew__export_target aim;       /* where to, from the next dial on */
    ew__export_target dialled;   /* the connection's */
    ew__stream stream;
    ew__conn conn;    /* private: it has no site, and no call is counted for what is sent on it */
    ew__http_ask ask; /* its peer */
    ew__dial *dial;
    ew__http_reading *reading; /* made when there is an aim */
    ew__timer timer;           /* set as long as there is an aim: moving it cannot fail */
    ew__buf body;              /* the text in hand */
    uint64_t not_before;       /* back-off */
    uint64_t answer_until;
    uint64_t backoff_ms;
    int64_t credit_ns; /* time that exporting may take now */
    uint64_t credited_at;
    uint64_t flush_until;
    void (*on_closed)(ew__exporter *exporter);
    uint8_t state; /* ew__exporter_state */
    uint8_t tries; /* of the text in hand */
    bool has_text;
    bool aimed;
    bool stale; /* the connection goes where we no longer aim */
    bool away, refusing;
    bool closing;  /* what is queued still leaves */
    bool shutting; /* nothing does */
};

/* news must outlive the exporter. */
void ew__exporter_init(ew__exporter *exporter, ew__loop *loop, const ew__exporter_source *source, void *ud,
                       ew__exporter_news *news);
/* Texts go there from now on, the one that waits for its answer excepted. EW_OK or EW_ENOMEM. */
ew_err ew__exporter_aim(ew__exporter *exporter, const ew__export_target *aim);
/* There is a text. Cheap, and takes none before the next turn of the loop. */
void ew__exporter_wake(ew__exporter *exporter);
/*
 * Sends what is queued, for at most that long and only if the server was there lately; then closes. on_closed follows
 * once, maybe at once. Called again with 0 it closes now.
 */
void ew__exporter_close(ew__exporter *exporter, uint64_t flush_ms, void (*on_closed)(ew__exporter *exporter));
/* After on_closed (not in it), or when it was never woken. */
void ew__exporter_done(ew__exporter *exporter);

#endif
