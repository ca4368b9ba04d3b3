/*
 * base/mailbox.c: see mailbox.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mailbox.h"

void ew__mailbox_init(ew__mailbox *mailbox, void (*wake)(ew__mailbox *mailbox)) {
    *mailbox = (ew__mailbox){.wake = wake};
    pthread_mutex_init(&mailbox->lock, NULL);
}

void ew__mailbox_done(ew__mailbox *mailbox) { pthread_mutex_destroy(&mailbox->lock); }

static bool has_room(const ew__mailbox *mailbox, size_t bytes) {
    if (mailbox->max_n && mailbox->n >= mailbox->max_n)
        return false;
    bool fits = bytes <= mailbox->max_bytes && mailbox->bytes <= mailbox->max_bytes - bytes;
    return !mailbox->max_bytes || mailbox->n == 0 || fits;
}

static void add(ew__mailbox *mailbox, ew__fifo_node *message, size_t bytes) {
    ew__fifo_push(&mailbox->messages, message);
    mailbox->n++;
    mailbox->bytes += bytes;
}

bool ew__mailbox_post(ew__mailbox *mailbox, ew__fifo_node *message, size_t bytes) {
    pthread_mutex_lock(&mailbox->lock);
    bool taken = has_room(mailbox, bytes), first = mailbox->n == 0;
    if (taken)
        add(mailbox, message, bytes);
    if (taken && first && !mailbox->closed)
        mailbox->wake(mailbox);
    pthread_mutex_unlock(&mailbox->lock);
    return taken;
}

void ew__mailbox_post_own(ew__mailbox *mailbox, ew__fifo_node *message) {
    pthread_mutex_lock(&mailbox->lock);
    add(mailbox, message, 0);
    pthread_mutex_unlock(&mailbox->lock);
}

ew__fifo ew__mailbox_take(ew__mailbox *mailbox) {
    pthread_mutex_lock(&mailbox->lock);
    ew__fifo messages = ew__fifo_take(&mailbox->messages);
    mailbox->n = mailbox->bytes = 0;
    pthread_mutex_unlock(&mailbox->lock);
    return messages;
}

void ew__mailbox_close(ew__mailbox *mailbox) {
    pthread_mutex_lock(&mailbox->lock);
    mailbox->closed = true;
    pthread_mutex_unlock(&mailbox->lock);
}
