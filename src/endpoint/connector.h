/*
 * endpoint/connector.h: one connection to a manager that calls our actions, kept for ever: dialled, and dialled again
 * when it is lost or cannot be reached. Loop thread only, except where said.
 */
#ifndef EW_ENDPOINT_CONNECTOR_H
#define EW_ENDPOINT_CONNECTOR_H

#include "endpoint/link.h"

typedef struct ew__connector ew__connector;

struct ew__connector {
    ew__loop *loop;
    const ew__wire *wire;
    ew__registry *registry;
    ew__site site;
    ew__where where; /* what it points to is borrowed */
    ew__dial *dial;  /* while one runs */
    ew__link *link;  /* of the dial, then the connection; NULL between attempts */
    ew__scratches scratches;
    ew__traffic traffic;
    ew__timer timer;    /* the next attempt; from the start to the end it is always set, so that setting cannot fail */
    uint64_t opened_at; /* when the peer was ready; 0: it is not */
    uint32_t delay_ms;  /* before the next attempt, without chance */
    bool waiting;       /* the timer means the next attempt; else it looks after the present one */
    bool told;          /* that the manager is away */
    bool closing;
    void (*on_closed)(ew__connector *connector);
    void *ud;
};

/*
 * site is copied (its actions come from the registry); what it points to is borrowed, and so is what where points to.
 * site->authority and site->path are HOST:PORT and the path with its query, for the request that opens the connection.
 * Before the loop runs, or on its thread. EW_OK, or EW_EUNSUPPORTED: the wire cannot serve.
 */
ew_err ew__connector_init(ew__connector *connector, ew__loop *loop, const ew__wire *wire, const ew__site *site,
                          ew__registry *registry, const ew__where *where);
/* Begins to dial, in the loop's next turn. EW_OK or EW_ENOMEM. Before the loop runs, or on its thread. */
ew_err ew__connector_start(ew__connector *connector);
/* Uses the newest version of the actions from now on. */
void ew__connector_refresh(ew__connector *connector);
/* Takes no new calls, and dials no more. */
void ew__connector_drain(ew__connector *connector);
/*
 * Closes: answers that wait to be sent still leave (now false) or not (now true; also as a second call). on_closed
 * follows, possibly at once.
 */
void ew__connector_close(ew__connector *connector, bool now, void (*on_closed)(ew__connector *connector));
/* After on_closed, or without ew__connector_start. */
void ew__connector_done(ew__connector *connector);

#endif
