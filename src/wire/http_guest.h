/*
 * wire/http_guest.h: a wire whose messages are the bodies of HTTP requests is a guest of the http wire, which reads and
 * writes HTTP, decides who may ask at all, keeps time and the connection. Which requests are the guest's is told by
 * their path; what they say and what they get is its business. May include: base, json, frame, call.
 */
#ifndef EW_WIRE_HTTP_GUEST_H
#define EW_WIRE_HTTP_GUEST_H

#include "frame/http1.h"
#include "wire/jsonrpc_envelope.h"
#include "wire/wire.h"

typedef struct ew__exchange ew__exchange;
typedef struct ew__http_guest ew__http_guest;

/* What the request's Accept fields name. */
enum { EW__ACCEPTS_JSON = 1, EW__ACCEPTS_STREAM = 2, EW__ACCEPTS_ANY = 4 /* everything, or there is none */ };

/* What a guest does with an exchange: one answer, or a stream of events. */
typedef struct ew__exchange_ops {
    /*
     * The whole answer: a JSON body (message NULL: none). Large pieces in the owner's memory are sent from there.
     * The exchange is over with it.
     */
    void (*answer)(ew__exchange *exchange, int status, const ew__rpc_out *message, ew_call *owner);
    /* Begins a stream instead. fields: header lines for it, each ending CRLF, or empty. */
    void (*begin)(ew__exchange *exchange, ew_str fields);
    /* One event of it, "data: " and a text without a raw newline. */
    void (*event)(ew__exchange *exchange, const ew__rpc_out *message, ew_call *owner);
    /* The same for one whose lines are written by the guest; the last one is ended here. */
    void (*block)(ew__exchange *exchange, const ew__rpc_out *lines, ew_call *owner);
    /* A sign of life in it, which readers pass over; between two events. */
    void (*comment)(ew__exchange *exchange);
    /* Its end; the exchange is over with it. */
    void (*end)(ew__exchange *exchange);
} ew__exchange_ops;

/* One request and its answer. */
struct ew__exchange {
    const ew__exchange_ops *ops;
    const ew__http_guest *guest; /* NULL: the present request is the http wire's own */
    ew__conn *conn;
    ew_call *call;   /* made for it; the body lies in its memory. The guest may open it, as its caller's end, or not */
    uint8_t method;  /* ew__http_method */
    uint8_t accepts; /* EW__ACCEPTS_... */
    ew_str path;     /* decoded; in the call's memory, as the two below */
    ew_str query;    /* as it came */
    const ew__http_field *fields; /* those of the head that the guest wants */
    uint32_t n_fields;
    ew_str extra;   /* header lines for the answer, each ending CRLF; the guest sets it before that */
    bool streaming; /* a stream was begun */
    void *ud;       /* the guest's, NULL at first */
};

struct ew__http_guest {
    /* Whether a request is this guest's. */
    bool (*takes)(const ew__site *site, ew__http_method method, ew_str path);
    /* Whether it wants to see a field of that name. May be NULL: none. */
    bool (*wants)(ew_str name);
    /* It has come, with all of its body. An answer follows, now or later. */
    void (*request)(ew__exchange *exchange, ew_str body);
    /*
     * The exchange is over: answered, or its client has gone. The call is released after that (which cancels what
     * runs). Once for each request; nothing may be said any more. May be NULL.
     */
    void (*over)(ew__exchange *exchange);
};

#endif
