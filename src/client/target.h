/*
 * client/target.h: what a target text such as "http://127.0.0.1:3400/base" or "jsonrpc+stdio:" says. Used inside
 * src/client only.
 */
#ifndef EW_CLIENT_TARGET_H
#define EW_CLIENT_TARGET_H

#include "io/stream.h"
#include "wire/wire.h"

typedef struct ew__target {
    const ew__wire *wire;
    const ew_scheme *scheme;
    uint8_t kind;        /* ew__where_kind: how it is reached */
    uint32_t options;    /* ew__site.options */
    char host[256];      /* for the resolver: no brackets */
    char authority[280]; /* HOST:PORT as it goes into a Host field; what messages call it */
    char path[512];      /* "" or "/base", no slash at its end; scheme->verbatim_path: as it stands; of a Unix socket */
    uint16_t port;       /* 0 only where there may be a command */
    ew__address address; /* where it is listened for */
} ew__target;

/* EW_OK; EW_EINVAL with a line for people in *ret_problem, which lasts until the thread's next call. */
ew_err ew__target_parse(const char *text, ew__target *ret, const char **ret_problem);
/* Whether its host is an address that no other machine has, or localhost. */
bool ew__target_is_here(const ew__target *target);

#endif
