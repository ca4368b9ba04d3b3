/*
 * call/clients.h: those who connect, by their address: how many connections each has, how fast it calls, how often it
 * has guessed a token wrong. One table for all loops of a program, of bounded size. A row is found once, when a
 * connection comes, and then held by it; taking a call needs no lock.
 *
 * An IPv4 address is one client. Of an IPv6 address the first 64 bits are: nobody is given less.
 */
#ifndef EW_CALL_CLIENTS_H
#define EW_CALL_CLIENTS_H

#include "base/list.h"
#include "base/map.h"
#include <pthread.h>
#include <stdatomic.h>

#define EW__CLIENT_KEY 16

/* One address. It stays as long as somebody is connected from there, and a while longer. */
typedef struct ew__client_row {
    ew__list_node node; /* in the list of rows without a connection */
    uint8_t key[EW__CLIENT_KEY];
    bool local;           /* an address of this very machine */
    uint32_t connections; /* under the lock, as the three below */
    uint32_t failures;    /* since failing_since */
    uint64_t failing_since;
    uint64_t shut_until;     /* too many: until then a wrong token is answered with "wait" */
    atomic_ullong next_call; /* when the bucket would be full again (GCRA) */
} ew__client_row;

typedef struct ew__clients {
    const ew_env *env;
    pthread_mutex_t lock;
    ew__map rows;
    ew__list idle; /* rows without a connection, the oldest first */
    uint32_t n_idle;
    uint64_t connections;      /* from one address; 0: any number */
    bool count_local;          /* also of those on this machine */
    uint64_t calls_per_second; /* from one address; 0: any number */
} ew__clients;

#define EW__CLIENTS_IDLE 4096   /* rows that are kept without a connection */
#define EW__CLIENT_FAILURES 10  /* wrong tokens in a second: further wrong ones are to wait */
#define EW__CLIENT_SHUT_MS 1000 /* so long */

void ew__clients_init(ew__clients *clients, const ew_env *env);
void ew__clients_done(ew__clients *clients);

/*
 * A connection comes from that address. NULL: it has too many, or there is no memory; else ew__clients_leave follows.
 * Any thread, like all below.
 */
ew__client_row *ew__clients_enter(ew__clients *clients, const uint8_t key[EW__CLIENT_KEY], bool local);
void ew__clients_leave(ew__clients *clients, ew__client_row *row);

/* One more call at `now` (monotonic ns). 0: it may go on; else after how many milliseconds to try again. */
uint64_t ew__clients_take_call(const ew__clients *clients, ew__client_row *row, uint64_t now);

/* For a wrong token. 0: it is an ordinary failure; else how many milliseconds the client is to wait. */
uint64_t ew__clients_shut(ew__clients *clients, const ew__client_row *row, uint64_t now);
void ew__clients_failed(ew__clients *clients, ew__client_row *row, uint64_t now); /* it was wrong */

#endif
