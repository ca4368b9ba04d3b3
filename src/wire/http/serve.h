/*
 * wire/http/serve.h: the serving side of one HTTP connection, shared by serve.c (bytes and phases), request.c (what a
 * head asks for), upgrade.c (WebSockets), guest.c (requests of other
 * wires) and respond.c (answers). One exchange at a time: a request that comes behind
 * a running one waits.
 */
#ifndef EW_WIRE_HTTP_SERVE_H
#define EW_WIRE_HTTP_SERVE_H

#include "wire/http/codec.h"
#include "wire/http/http.h"
#include "wire/http_guest.h"

typedef enum ew__http_phase {
    EW__HTTP_READING, /* between requests, or in a head or body */
    EW__HTTP_RUNNING, /* a call runs; what arrives meanwhile waits in `ahead` */
    EW__HTTP_HELD,    /* too much output is queued: no request is taken until it has drained */
    EW__HTTP_CLOSED   /* nothing more will be read */
} ew__http_phase;

typedef struct ew__http_server {
    ew__peer peer;
    ew_call *call;      /* being filled in, or running */
    ew__action *action; /* a reference, from the head until the call is opened */
    ew__timer timer;
    uint64_t due;      /* when the present phase has lasted too long */
    uint32_t progress; /* body bytes since `due` was moved */
    uint8_t phase;     /* ew__http_phase */
    uint8_t minor;     /* HTTP/1.minor of the request */
    bool in_pump;
    bool keep_alive;
    bool is_head;     /* the request's method is HEAD: answers have no body */
    bool stream;      /* the answer is a stream */
    bool raw;         /* blocks may hold UTF-8 as it stands (x-everywire-raw: 1) */
    bool stream_open; /* its head was written */
    bool waiting;     /* the call was told to wait for room */
    bool body_known;  /* Content-Length body, collected in `body` */
    bool websocket;   /* the request wants to become a WebSocket; and, not rejected, it will */
    bool upgraded;    /* it was answered so: what follows is the next wire's */
    uint8_t page;     /* ew__http_page: what a request that runs nothing gets */
    uint16_t reject;  /* the answer to the request is this error, whatever its body */
    const char *reject_text;
    const char *reject_fields; /* header lines that belong to it, constant text; or NULL */
    ew__buf body;              /* a body that did not come in one piece */
    uint64_t body_left;        /* with body_known */
    ew_str whole;              /* a body that did: in the call's arena */
    ew__buf ahead;             /* bytes read while a call runs */
    ew__exchange exchange;     /* when the request is a guest's */
    ew__who who;               /* whose request it is */
    bool guest_asked;          /* the guest has got it */
    _Alignas(16) uint8_t reader[EW__HTTP_READER_BYTES];
} ew__http_server;

static inline ew__http1 *ew__http_reader(ew__http_server *server) { return (ew__http1 *)(void *)server->reader; }

/*
 * request.c: reads a head that has just come: prepares the call in server->call, names a page, or sets
 * server->reject. Answers nothing.
 */
void ew__http_on_head(ew__http_server *server, const ew__http_head *head);

/*
 * upgrade.c: WebSockets, which are handed to site->upgrade. Judges such a request: sets server->websocket, and
 * server->reject if it is refused.
 */
bool ew__http_can_upgrade(const ew__http_server *server);
void ew__http_judge_upgrade(ew__http_server *server, const ew__http_head *head);
/* A listener that takes nothing else refuses everything else. */
void ew__http_require_upgrade(ew__http_server *server);
/* The request is complete and was taken: answers it. */
void ew__http_answer_upgrade(ew__http_server *server, const ew__http_head *head);
/* The bytes behind it are the next wire's; the connection is too. */
void ew__http_hand_over(ew__http_server *server, const uint8_t *rest, size_t n);

/* guest.c: requests of a guest. A head that is one: prepares the exchange. */
void ew__http_invite(ew__http_server *server, const ew__http_guest *guest, const ew__http_head *head, ew_str path,
                     ew_str query, uint8_t accepts);
/* The request is complete. */
void ew__http_ask_guest(ew__http_server *server, ew_str body);
/* The exchange is over. */
void ew__http_leave_guest(ew__http_server *server);

/* admit.c: the identity of a request before its token was read: that of the connection without one. */
void ew__http_identify(ew__http_server *server);
/* Reads the token that the head presents; false: the request was rejected. */
typedef struct ew__http_shown {
    ew_str authorization; /* of the first field */
    uint32_t n_authorization;
    ew_str protocols; /* WebSocket: Sec-WebSocket-Protocol */
    ew_str query;
    bool websocket;
} ew__http_shown;
bool ew__http_admit(ew__http_server *server, const ew__http_shown *shown);
/* Whether he may use what is no action but has a path: metrics, jobs, the place of runtimes. Else it is rejected. */
bool ew__http_lets(ew__http_server *server, const char *wire, ew_str path);

/* request.c: the answer will be this error; the first reason counts. fields: header lines for it, or NULL. */
void ew__http_reject(ew__http_server *server, int status, const char *text, const char *fields);

/* serve.c: the connection says nothing more; its end is somebody else's. */
void ew__http_server_rest(ew__http_server *server);

/* serve.c: the answer was written in full: go on with the connection. */
void ew__http_exchange_done(ew__http_server *server);

/* pages.c: what is not a call: GET, HEAD, OPTIONS. */
typedef enum ew__http_page_id {
    EW__PAGE_NONE,
    EW__PAGE_HEALTH,
    EW__PAGE_INSTANCE, /* health, and who it is that is well */
    EW__PAGE_READY,
    EW__PAGE_METRICS,
    EW__PAGE_ACTIONS,
    EW__PAGE_OPTIONS,
    EW__PAGE_NOT_ALLOWED
} ew__http_page_id;
ew__http_page_id ew__http_page(ew__http_method method, ew_str path);
void ew__http_respond_page(ew__http_server *server, ew__http_page_id page);

/* respond.c */
void ew__http_respond(ew__http_server *server, int status, ew_str type, ew_str extra, ew_str body,
                      const ew__trace *trace);
void ew__http_respond_fault(ew__http_server *server, int status, ew_str extra, const ew_fault *fault,
                            const ew__trace *trace);
/* An error that no action chose: message for people; extra header lines or empty. */
void ew__http_respond_error(ew__http_server *server, int status, ew_str extra, const char *message);
const char *ew__http_date_now(ew__conn *conn);
#define EW__HTTP_UNBUFFERED EW_STR("Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n")
/* The head of a stream of events; trace may be NULL, fields are further header lines. */
void ew__http_open_stream(ew__http_server *server, const ew__trace *trace, ew_str fields);
void ew__http_send_out(ew__http_server *server);
ew__http_answer ew__http_answer_to(ew__http_server *server, int status, const ew__trace *trace);
extern const ew__caller_ops ew__http_caller;

#endif
