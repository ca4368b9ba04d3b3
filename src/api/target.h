/*
 * api/target.h: what a target text such as "http://127.0.0.1:3400/base" says. Used inside src/api only.
 */
#ifndef EW_API_TARGET_H
#define EW_API_TARGET_H

#include "wire/wire.h"

typedef struct ew__target {
    const ew__wire *wire;
    char host[256];      /* for the resolver: no brackets */
    char authority[280]; /* HOST:PORT as it goes into a Host field */
    char path[512];      /* "" or "/base", no slash at its end */
    uint16_t port;
} ew__target;

/* EW_OK; EW_EINVAL or EW_EUNSUPPORTED with a constant line for people in *ret_problem. */
ew_err ew__target_parse(const char *text, ew__target *ret, const char **ret_problem);

#endif
