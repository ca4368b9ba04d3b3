/*
 * gateway/broadcast.c: see broadcast.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"

typedef struct message {
    ew__fifo_node node;
    const ew__wire *wire;
    ew__principal sender;
    size_t len;
    char text[];
} message;

static void free_message(const ew_env *env, message *m) { ew__free(env, m, sizeof *m + m->len); }

/* ---- receiving ---- */

static void receive(ew__app_loop *loop, const message *m) {
    void *scratch = ew__scratch_find(&loop->server.scratches, m->wire);
    if (scratch && !loop->loop.closing) /* else this loop has no connection of that wire, or no longer */
        m->wire->on_broadcast(scratch, &loop->loop.executor, &m->sender, ew__str(m->text, m->len));
}

static void receive_all(ew__task *task) {
    ew__app_loop *loop = ew__container_of(task, ew__app_loop, broadcasts.task);
    ew__fifo messages = ew__mailbox_take(&loop->broadcasts.mailbox);
    for (ew__fifo_node *node; (node = ew__fifo_pop(&messages)) != NULL;) {
        message *m = ew__container_of(node, message, node);
        receive(loop, m);
        free_message(loop->app->env, m);
    }
}

static void wake(ew__mailbox *mailbox) {
    ew__app_loop *loop = ew__container_of(mailbox, ew__app_loop, broadcasts.mailbox);
    ew__executor_post(&loop->loop.executor, &loop->broadcasts.task);
}

/* ---- sending ---- */

static bool send_to(ew__app_loop *to, const ew__wire *wire, const ew__principal *sender, ew_str text) {
    const ew_env *env = to->app->env;
    bool fits =
        text.len <= EW__BROADCAST_BYTES_MORE || text.len - EW__BROADCAST_BYTES_MORE <= to->app->limits.frame_bytes;
    message *m = fits ? ew__alloc(env, sizeof *m + text.len) : NULL;
    if (!m)
        return false;
    *m = (message){.wire = wire, .sender = *sender, .len = text.len};
    if (text.len)
        memcpy(m->text, text.ptr, text.len);
    if (ew__mailbox_post(&to->broadcasts.mailbox, &m->node, m->len))
        return true;
    free_message(env, m);
    return false;
}

/*
 * The memory of all loops stays until the last of them has ended, so that it is safe to send to a loop that has ended:
 * the message is freed unread.
 */
bool ew__app_broadcast(struct ew__broadcast *broadcast, const ew__executor *from, const ew__wire *wire, unsigned to,
                       const ew__principal *sender, ew_str text) {
    ew_app *app = ew__container_of(broadcast, ew_app, broadcast);
    ew__call_context *own = NULL;
    unsigned n_dropped = 0;
    if (!wire->on_broadcast || (to != EW__ALL_OTHER_LOOPS && to >= app->n_loops))
        return false;
    for (size_t i = 0; i < app->n_loops; i++) {
        ew__app_loop *loop = &app->loops[i];
        bool is_own = &loop->loop.executor == from;
        if (is_own)
            own = &loop->calls;
        if ((to == EW__ALL_OTHER_LOOPS ? !is_own : to == i) && !send_to(loop, wire, sender, text))
            n_dropped++;
    }
    if (own && n_dropped)
        atomic_fetch_add_explicit(&own->dropped, n_dropped, memory_order_relaxed);
    return n_dropped == 0;
}

/* ---- life ---- */

void ew__broadcast_inbox_init(ew__broadcast_inbox *inbox) {
    inbox->task.fn = receive_all;
    ew__mailbox_init(&inbox->mailbox, wake);
    inbox->mailbox.max_n = EW__BROADCASTS_MAX;
    inbox->mailbox.max_bytes = EW__BROADCASTS_BYTES_MAX;
}

void ew__broadcast_inbox_done(ew__broadcast_inbox *inbox, const ew_env *env) {
    for (ew__fifo_node *node; (node = ew__fifo_pop(&inbox->mailbox.messages)) != NULL;)
        free_message(env, ew__container_of(node, message, node));
    ew__mailbox_done(&inbox->mailbox);
}
