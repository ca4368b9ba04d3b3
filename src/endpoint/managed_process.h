/*
 * endpoint/managed_process.h: a program of ours that is reached by another way than its standard input and output: it is
 * started beside a listener and will dial it, or it listens and is dialled. Loop thread only. May include: base, io.
 */
#ifndef EW_ENDPOINT_MANAGED_PROCESS_H
#define EW_ENDPOINT_MANAGED_PROCESS_H

#include "base/out.h"
#include "io/child_errors.h"
#include "io/stream.h"

typedef struct ew__managed_process ew__managed_process;

typedef enum ew__managed_process_state {
    EW__PROCESS_NONE, /* not started yet, or there is none */
    EW__PROCESS_STARTS,
    EW__PROCESS_RUNS,
    EW__PROCESS_ENDED
} ew__managed_process_state;

struct ew__managed_process {
    ew__loop *loop;
    ew__where where; /* what it points to is borrowed */
    ew__dial *dial;
    ew__stream stream; /* its standard input: nothing is ever sent; with `heard` its standard output, too */
    ew__out out;
    ew__child_errors said;                         /* with `heard`: what comes on the stream, as lines */
    bool eof;                                      /* nothing more comes */
    uint8_t state;                                 /* ew__managed_process_state */
    bool open;                                     /* the stream is */
    bool ran;                                      /* it could be started */
    bool closing;                                  /* it is to end */
    char line[256];                                /* once it has ended: "node ended with code 1", for people */
    void (*started)(ew__managed_process *process); /* it runs; may be NULL */
    /*
     * A line of its standard output, up to 1 KiB of it: true if it was meant for us, else it goes to the log. May be
     * NULL: then all of them do, as those of its standard error.
     */
    bool (*heard)(ew__managed_process *process, ew_str line);
    /*
     * By itself, or it could not be started. With `heard` it stays open until all that it has said was read, or
     * ew__managed_process_close.
     */
    void (*ended)(ew__managed_process *process);
    void (*closed)(ew__managed_process *process); /* last: nothing is left of it, nor of what it has started */
};

/* where: argv, inherited, vars, farewell_ms, grace_ms. To be started again it is initialised again, after closed. */
void ew__managed_process_init(ew__managed_process *process, ew__loop *loop, const ew__where *where);
/* Once. ended and closed may follow, not from inside this call, unless its state is ended already then. */
void ew__managed_process_start(ew__managed_process *process);
/* Ends it if it runs. True: closed will follow; false: there is nothing to wait for. */
bool ew__managed_process_close(ew__managed_process *process);

#endif
