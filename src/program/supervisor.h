/*
 * program/supervisor.h: systemd's side of ew_app_main, without its library: sockets that it has opened for us, and what
 * it wants to be told. Also what other supervisors that speak these protocols want.
 */
#ifndef EW_PROGRAM_SUPERVISOR_H
#define EW_PROGRAM_SUPERVISOR_H

#include "gateway/app.h"

typedef struct ew__supervisor {
    char notify[128];                     /* where messages go; "": nobody listens */
    uint64_t tick_ns;                     /* how often the watchdog is told that we live; 0: there is none */
    uint64_t due_ns;                      /* when it is told next */
    int n_sockets;                        /* from descriptor 3 on */
    const char *wires[EW__LISTENERS_MAX]; /* what each speaks; NULL: any */
    char names[1024];                     /* LISTEN_FDNAMES, cut into pieces; `wires` point into it */
    bool ending;                          /* it was told so */
} ew__supervisor;

/* Reads the environment and takes what it has read out of it, so that children are not misled. One thread only. */
void ew__supervisor_init(ew__supervisor *s);
/* Adds a listener for each socket. EW_OK, or what ew_app_listen says of *ret_text, the listener that it refuses. */
ew_err ew__supervisor_listen(const ew__supervisor *s, ew_app *app, char *ret_text, size_t size);

/* What it is told. All are without effect when nobody listens. */
void ew__supervisor_ready(ew__supervisor *s, const ew_app *app);
void ew__supervisor_reloading(ew__supervisor *s);
void ew__supervisor_ending(ew__supervisor *s, const char *why); /* once */
/* Tells the watchdog that we live, if that is due and so. From one thread, while it may not be waited for. */
void ew__supervisor_pulse(ew__supervisor *s, ew_app *app);

#endif
