/*
 * everywire/wires.h: the wires of this build as data: their names, how targets and listeners name them, and the options
 * and environment variables by which orchestrators start a program. Help texts, completion and hints are made from it.
 * All of it is constant; any thread may read it.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_WIRES_H
#define EVERYWIRE_WIRES_H

#include <everywire/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a wire carries: bits of ew_wire_info.can. */
enum {
    EW_WIRE_SERVES = 1 << 0,   /* it can be listened for */
    EW_WIRE_CALLS = 1 << 1,    /* its peers can be called */
    EW_WIRE_CHUNKS = 1 << 2,   /* chunks of a result */
    EW_WIRE_INPUT = 1 << 3,    /* an input stream */
    EW_WIRE_CANCEL = 1 << 4,   /* a message that cancels a call (a closed connection always does) */
    EW_WIRE_DEADLINE = 1 << 5, /* the deadline */
    EW_WIRE_TRACE = 1 << 6,    /* the trace */
    EW_WIRE_CONTEXT = 1 << 7,  /* context and labels */
    EW_WIRE_LIST = 1 << 8,     /* a list of the peer's actions */
    EW_WIRE_DUPLEX = 1 << 9,   /* both sides of a connection call */
    EW_WIRE_STDIO = 1 << 10,   /* it runs over standard input and output */
    EW_WIRE_LABELS = 1 << 11,  /* labels for traces */
    EW_WIRE_OBJECT = 1 << 12   /* an input is a JSON object; without an input it is {} */
};

/* A wire. Members may be added at the end. */
typedef struct ew_wire_info {
    const char *name;  /* "rrq" */
    const char *title; /* of the protocol: "RRQ" */
    unsigned can;      /* EW_WIRE_... */
} ew_wire_info;

/* How the peer of a target is reached. */
typedef enum ew_reach {
    EW_REACH_TCP,   /* a connection to HOST:PORT */
    EW_REACH_UNIX,  /* a connection to a Unix socket */
    EW_REACH_CHILD, /* standard input and output of a program that the client starts */
    EW_REACH_LISTEN /* the client listens, peers connect to it */
} ew_reach;

/* Whether the client starts a program for a target (ew_client_options.command). */
typedef enum ew_scheme_command {
    EW_SCHEME_COMMAND_NO,
    EW_SCHEME_COMMAND_MAY,       /* the program connects to the client, or is given an address to listen on */
    EW_SCHEME_COMMAND_ANNOUNCES, /* the program prints the port that it listens on */
    EW_SCHEME_COMMAND_MUST       /* the program is the peer */
} ew_scheme_command;

/* The beginning of a target. Members may be added at the end. */
typedef struct ew_scheme {
    const char *text; /* "rrq://" */
    const char *form; /* "rrq://HOST:PORT" */
    const char *help; /* one line: what the target reaches */
    /*
     * What to try if the peer is not reached; NULL: nothing special. EW_REACH_LISTEN: the rest of the target follows the
     * hint directly.
     */
    const char *hint;
    const char *wire; /* ew_wire_info.name */
    ew_reach reach;
    ew_scheme_command command;
    bool tls;
    bool http;          /* HTTP carries it; a port may be left out */
    bool slow_start;    /* a program that is started for it may take seconds until it answers */
    const char *rest;   /* the target is complete without a rest, which then is this one; NULL: it is not */
    bool verbatim_path; /* a path is a URL's, "/" at least; false: a base without a slash at its end */
    /* EW_REACH_LISTEN; else NULL: */
    const char *dialler;  /* the peer that connects to the client: "a Genkit runtime" */
    const char *dial_how; /* how to start that peer; the URL to connect to follows directly */
    const char *dial_url; /* the beginning of that URL: "ws://" */
    unsigned rank;        /* place in a list for people, the lowest first; 0: as the others with or without TLS */
} ew_scheme;

/* A name for ew_app_listen, which precedes "=ADDRESS". Members may be added at the end. */
typedef struct ew_listener_name {
    const char *name; /* "rrqs" */
    const char *help; /* one line; NULL: another name for the same, not to be shown */
    const char *wire; /* ew_wire_info.name */
    bool tls;
    const char *stdio; /* help of NAME=stdio; NULL: not to be shown */
} ew_listener_name;

/* What a word means by which an orchestrator starts a program. */
typedef enum ew_start_role {
    EW_START_LISTEN,    /* HOST:PORT to listen on for the wire */
    EW_START_PORT,      /* the port of such an address */
    EW_START_HOST,      /* the host of such an address */
    EW_START_CONNECT,   /* the URL of a manager to connect to */
    EW_START_TELEMETRY, /* the URL of a telemetry server */
    EW_START_REALTIME,  /* "true": spans are sent when calls begin, too */
    EW_START_RUNTIME_ID /* the name under which managers know the program */
} ew_start_role;

/* An option or an environment variable by which an orchestrator starts a program. Members may be added at the end. */
typedef struct ew_start_word {
    const char *name;     /* "--tcp-socket", or "RRQ_RUNNER_TCP_SOCKET" */
    const char *argument; /* of an option: "HOST:PORT"; NULL: a variable */
    const char *help;     /* may have several lines */
    const char *wire;     /* ew_wire_info.name */
    ew_start_role role;
} ew_start_word;

/* Returns the wire at an index, from 0, in a stable order; NULL behind the last one. */
EW_API const ew_wire_info *ew_wire_info_at(size_t index);
/* Returns the wire with this name; NULL if this build has no such wire, or name is NULL. */
EW_API const ew_wire_info *ew_wire_info_of(const char *name);

/* Returns the scheme of targets at an index, from 0, in the order of the wires; NULL behind the last one. */
EW_API const ew_scheme *ew_scheme_at(size_t index);
/* Returns the scheme that a target begins with; NULL if none matches, or target is NULL. Reads no more of the target. */
EW_API const ew_scheme *ew_scheme_of(const char *target);

/*
 * Returns the name for listeners at an index, from 0, in the order of the wires, without "any" and "tls"; NULL behind
 * the last one.
 */
EW_API const ew_listener_name *ew_listener_name_at(size_t index);

/* Returns the start word at an index, from 0, in the order of the wires; NULL behind the last one. */
EW_API const ew_start_word *ew_start_word_at(size_t index);

#ifdef __cplusplus
}
#endif

#endif
