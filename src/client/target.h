/*
 * client/target.h: what a target text such as "http://127.0.0.1:3400/base" or "jsonrpc+stdio:" says. Used inside src/api
 * only.
 */
#ifndef EW_CLIENT_TARGET_H
#define EW_CLIENT_TARGET_H

#include "io/stream.h"
#include "wire/wire.h"

/* Whether a program of ours stands behind a target. */
typedef enum ew__target_command {
    EW__COMMAND_NO,
    EW__COMMAND_MAY,       /* it dials us, or is told where to listen */
    EW__COMMAND_ANNOUNCES, /* if there is one, it says itself on which port it listens */
    EW__COMMAND_MUST       /* it is the peer */
} ew__target_command;

/* How RRQ tells a runner where to listen. */
#define EW__RUNNER_OPTION "--tcp-socket"
#define EW__RUNNER_VARIABLE "RRQ_RUNNER_TCP_SOCKET"

typedef struct ew__target {
    const ew__wire *wire;
    uint8_t kind;        /* ew__where_kind: how it is reached */
    uint8_t command;     /* ew__target_command */
    uint8_t framing;     /* jsonrpc: ew__framing */
    uint8_t dialect;     /* jsonrpc: EW__JSONRPC_NO_DISCOVER ... */
    bool tls;            /* inside TLS */
    bool http;           /* HTTP carries it */
    char host[256];      /* for the resolver: no brackets */
    char authority[280]; /* HOST:PORT as it goes into a Host field; what messages call it */
    char path[512];      /* http: "" or "/base", no slash at its end; stepflow+http: as it stands; of a Unix socket */
    uint16_t port;       /* 0 only where there may be a command */
    ew__address address; /* where it is listened for */
} ew__target;

/* EW_OK; EW_EINVAL or EW_EUNSUPPORTED with a constant line for people in *ret_problem. */
ew_err ew__target_parse(const char *text, ew__target *ret, const char **ret_problem);
/* Whether its host is an address that no other machine has, or localhost. */
bool ew__target_is_here(const ew__target *target);

#endif
