/*
 * gateway/import.h: what the files of imports share: import_options.c (reads targets and options), import.c (the peers, and
 * the calls to them), import_list.c (from the lists of the peers to actions). Used inside src/gateway only.
 */
#ifndef EW_GATEWAY_IMPORT_H
#define EW_GATEWAY_IMPORT_H

#include "gateway/app.h"
#include "client/client.h"
#include "bridge/cross_loop.h"

#define EW__IMPORT_TARGETS_MAX 16

typedef struct ew__import ew__import;

/* A name that was asked for: what it is there, and here. */
typedef struct ew__import_name {
    ew_str there; /* a name or a key */
    ew_str here;  /* a name or a key; empty: the same */
    bool found;   /* some target has it, or has not said what it has; under the lock */
    bool missed;  /* the log knows that none has */
} ew__import_name;

/* What calls to a target have on one loop. */
typedef struct ew__import_loop {
    ew__part part;
    struct ew__import_target *target;
    ew__pool *pool; /* NULL: no call has come from this loop, or it was closed */
    ew__task close_task;
} ew__import_loop;

/* One executor of the actions. */
typedef struct ew__import_target {
    ew__loop_upstream upstream; /* of a peer that is dialled only `base` is used */
    ew__import *import;
    const char *text;
    bool tls;        /* it speaks that */
    bool stopped;    /* under the lock of the sources, as what follows */
    unsigned n_open; /* of loops */
    ew__import_loop *loops;
    size_t n_loops;
    ew_client *client;
    ew__buf list; /* its last answer; JSON object, or empty */
    bool asked;
    bool answered;     /* it has said what it has, or that it cannot */
    bool cannot_list;  /* it said so */
    bool complained;   /* the log knows that it does not answer */
    uint32_t pause_ms; /* until it is asked again, when it has not answered */
    ew__timer again;   /* on the client's loop */
} ew__import_target;

struct ew__import {
    ew__source source;
    atomic_uint refs; /* the source's, and one for each target */
    ew__arena arena;  /* of all texts */
    ew__import_target *targets;
    uint32_t n_targets;
    ew__import_name *names;
    size_t n_names;
    ew_str prefix;
    ew_str label; /* what clashing keys are told apart by */
    uint64_t refresh_ms;
    ew_client_options client; /* its pointers are ours */
    bool runner;              /* it takes any name, so nobody asks for a list; and it is started at once */
    ew_str descriptor;        /* the members after "actionType" of the one name's, or empty */
};

/* ---- import.c ---- */

extern const ew__source_ops ew__import_ops;
/* Makes a target, whose `import` is set, an upstream; it takes a reference to the import. */
void ew__import_target_set(ew__import_target *target, const ew__target *parsed);

/* ---- import_list.c ---- */

/* Reads "NAME[:AS]" into *ret (slices of text). */
bool ew__import_name_read(ew_str text, ew__import_name *ret);
/*
 * What the targets' lists and the names make of the import: an array of actions for ew__source_offer. Under the lock.
 * EW_OK, EW_ENOMEM.
 */
ew_err ew__import_actions(ew__import *import, ew__action ***ret, size_t *ret_n);

#endif
