/*
 * base/mailbox.h: messages from any thread to one receiving thread, in the order of posting. A message is memory of the
 * sender with an ew__fifo_node in it, and belongs to the mailbox until the receiver takes it. The limits are optional.
 */
#ifndef EW_BASE_MAILBOX_H
#define EW_BASE_MAILBOX_H

#include "base/list.h"
#include <pthread.h>

typedef struct ew__mailbox ew__mailbox;

struct ew__mailbox {
    pthread_mutex_t lock; /* of all members that follow */
    ew__fifo messages;
    size_t n, bytes;         /* of the messages that wait */
    size_t max_n, max_bytes; /* 0: no limit. A single message may exceed max_bytes */
    bool closed;             /* messages are stored, but wake is not called */
    void (*wake)(ew__mailbox *mailbox);
};

/*
 * wake: makes the receiver take its messages soon. Called by the posting thread, with the lock held, when a message
 * arrives in an empty mailbox. Must not post to the same mailbox. The limits may be set before the first message.
 */
void ew__mailbox_init(ew__mailbox *mailbox, void (*wake)(ew__mailbox *mailbox));
/* The mailbox must be empty. */
void ew__mailbox_done(ew__mailbox *mailbox);

/* Any thread. Returns false, and the sender keeps the message, if a limit is exceeded. */
EW__MUST_USE bool ew__mailbox_post(ew__mailbox *mailbox, ew__fifo_node *message, size_t bytes);
/* The receiver's thread, which takes its messages soon without a call of wake. Ignores the limits. */
void ew__mailbox_post_own(ew__mailbox *mailbox, ew__fifo_node *message);
/* All messages, the oldest first. The receiver's thread, or any thread when the receiver has ended. */
ew__fifo ew__mailbox_take(ew__mailbox *mailbox);
/* From its return on wake is not called any more. */
void ew__mailbox_close(ew__mailbox *mailbox);

#endif
