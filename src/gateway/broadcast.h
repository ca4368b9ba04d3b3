/*
 * gateway/broadcast.h: messages of a wire on one loop of an app to its connections on the others (ew__broadcast). Each loop
 * has a mailbox, which owns the messages until the loop reads them.
 */
#ifndef EW_GATEWAY_BROADCAST_H
#define EW_GATEWAY_BROADCAST_H

#include "wire/wire.h"

#define EW__BROADCASTS_MAX 1024                             /* that wait for one loop */
#define EW__BROADCASTS_BYTES_MAX ((size_t)64 * 1024 * 1024) /* of all their texts; a single one may be larger */
#define EW__BROADCAST_BYTES_MORE ((size_t)4 * 1024)         /* of one message's text, beyond limits.frame_bytes */

/* The broadcasts that one loop receives. */
typedef struct ew__broadcast_inbox {
    ew__mailbox mailbox;
    ew__task task; /* reads the mailbox */
} ew__broadcast_inbox;

void ew__broadcast_inbox_init(ew__broadcast_inbox *inbox);
/* Frees what was not read. The loop has ended, and so have those that could send to it. */
void ew__broadcast_inbox_done(ew__broadcast_inbox *inbox, const ew_env *env);

/* The app's ew__broadcast.send. Any thread, while the loops' memory stays: that of a loop which runs, for example. */
bool ew__app_broadcast(struct ew__broadcast *broadcast, const ew__executor *from, const ew__wire *wire, unsigned to,
                       const ew__principal *sender, ew_str text);

#endif
