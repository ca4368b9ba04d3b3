/*
 * gateway/broadcast.h: what a wire on one loop of an app has to tell its connections on the others (ew__broadcast): letters
 * into a box that each loop has. A letter belongs to its box until the loop opens it, so that none is lost with a loop
 * that has ended. Used inside src/api only.
 */
#ifndef EW_GATEWAY_BROADCAST_H
#define EW_GATEWAY_BROADCAST_H

#include "wire/wire.h"
#include <pthread.h>

#define EW__LETTERS_MAX 1024                             /* that wait in one box */
#define EW__LETTERS_BYTES_MAX ((size_t)64 * 1024 * 1024) /* of all their texts; one alone may be larger */
#define EW__LETTER_BYTES_MORE ((size_t)4 * 1024)         /* of one letter's text, beyond limits.frame_bytes */

/* What others have to say to one loop. */
typedef struct ew__mailbox {
    pthread_mutex_t lock; /* of the members below */
    struct ew__message *first, *last;
    uint32_t n;
    size_t bytes;
    bool told;     /* the task is under way */
    ew__task task; /* opens what is there */
} ew__mailbox;

void ew__mailbox_init(ew__mailbox *box);
/* Frees what was never opened. The loop has ended, and so have those that could write to it. */
void ew__mailbox_done(ew__mailbox *box, const ew_env *env);

/* The app's ew__broadcast.tell. Any thread, while the loops' memory stays: that of a loop which runs, say. */
bool ew__app_tell_others(struct ew__broadcast *others, const ew__executor *from, const ew__wire *wire, unsigned to,
                         const ew__principal *sender, ew_str text);

#endif
