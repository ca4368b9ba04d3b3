/*
 * endpoint/one_shot.h: a few bytes for a peer on a connection of their own (ew__conn_ops.one_shot): dialled, sent, closed.
 * Nobody is told how it went. Loop thread only. May include: base, io.
 */
#ifndef EW_ENDPOINT_ONE_SHOT_H
#define EW_ENDPOINT_ONE_SHOT_H

#include "base/list.h"
#include "base/out.h"
#include "io/stream.h"

#define EW__ONE_SHOTS_MAX 16                           /* at once */
#define EW__ONE_SHOTS_WAITING 512                      /* more wait for one of them to end, at most that many */
#define EW__ONE_SHOTS_BYTES ((size_t)64 * 1024 * 1024) /* of all of them; one alone may be larger */

typedef struct ew__one_shots ew__one_shots;

/* Those under way. */
struct ew__one_shots {
    ew__loop *loop;
    struct ew__one_shot *first;
    ew__fifo waiting; /* not dialled yet, in turn */
    uint32_t n;       /* of both */
    uint32_t n_waiting;
    size_t bytes;                     /* of all, as they were given */
    void (*gone)(ew__one_shots *all); /* the last of them is */
};

void ew__one_shots_init(ew__one_shots *all, ew__loop *loop, void (*gone)(ew__one_shots *all));
/*
 * where: TCP or Unix; what it points to is borrowed until all are gone. bytes are copied. wait: the peer answers, and
 * closes; until then we do not say that no more will come. EW_OK: begun. EW_EBUSY (too many, too much, or where is a
 * child), EW_ENOMEM: nothing happened.
 */
ew_err ew__one_shot_send(ew__one_shots *all, const ew__where *where, const void *bytes, size_t n, bool wait);
/* Gives all of them up; gone follows if there are any. */
void ew__one_shots_close(ew__one_shots *all);

#endif
