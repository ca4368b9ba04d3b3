/*
 * gateway/broadcast.c: see app_others.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/app.h"

typedef struct ew__message {
    struct ew__message *next;
    const ew__wire *wire;
    ew__principal sender;
    size_t len;
    char text[];
} letter;

static void free_letter(const ew_env *env, letter *l) { ew__free(env, l, sizeof *l + l->len); }

/* ---- reading ---- */

static void read_letter(ew__app_loop *loop, const letter *l) {
    void *scratch = ew__scratch_find(&loop->server.scratches, l->wire);
    if (scratch && !loop->loop.closing) /* else no connection of that wire has ever been here, or all have gone */
        l->wire->told(scratch, &loop->loop.executor, &l->sender, ew__str(l->text, l->len));
}

static void open_box(ew__task *task) {
    ew__app_loop *loop = ew__container_of(task, ew__app_loop, box.task);
    ew__mailbox *box = &loop->box;
    pthread_mutex_lock(&box->lock);
    letter *l = box->first;
    box->first = box->last = NULL;
    box->n = 0;
    box->bytes = 0;
    box->told = false;
    pthread_mutex_unlock(&box->lock);
    for (letter *next; l; l = next) {
        next = l->next;
        read_letter(loop, l);
        free_letter(loop->app->env, l);
    }
}

/* ---- writing ---- */

/* false: it was not taken. */
static bool put(ew__app_loop *to, letter *l) {
    ew__mailbox *box = &to->box;
    pthread_mutex_lock(&box->lock);
    bool fits = l->len <= EW__LETTERS_BYTES_MAX && box->bytes <= EW__LETTERS_BYTES_MAX - l->len;
    bool room = box->n < EW__LETTERS_MAX && (fits || box->n == 0);
    bool tell = room && !box->told;
    if (room) {
        if (box->last)
            box->last->next = l;
        else
            box->first = l;
        box->last = l;
        box->n++;
        box->bytes += l->len;
        box->told = true;
    }
    pthread_mutex_unlock(&box->lock);
    if (tell)
        to->loop.executor.ops->post(&to->loop.executor, &box->task);
    return room;
}

static bool write_to(ew__app_loop *to, const ew__wire *wire, const ew__principal *sender, ew_str text) {
    const ew_env *env = to->app->env;
    bool fits = text.len <= EW__LETTER_BYTES_MORE || text.len - EW__LETTER_BYTES_MORE <= to->app->limits.frame_bytes;
    letter *l = fits ? ew__alloc(env, sizeof *l + text.len) : NULL;
    if (!l)
        return false;
    *l = (letter){.wire = wire, .sender = *sender, .len = text.len};
    if (text.len)
        memcpy(l->text, text.ptr, text.len);
    if (put(to, l))
        return true;
    free_letter(env, l);
    return false;
}

/*
 * The memory of all loops stays until the last of them has ended, so there is no harm in writing to one that has:
 * nobody will open the letter.
 */
bool ew__app_tell_others(struct ew__broadcast *others, const ew__executor *from, const ew__wire *wire, unsigned to,
                         const ew__principal *sender, ew_str text) {
    ew_app *app = ew__container_of(others, ew_app, others);
    ew__executor *own_home = NULL;
    unsigned n_dropped = 0;
    if (!wire->told || (to != EW__ALL_OTHER_LOOPS && to >= app->n_loops))
        return false;
    for (size_t i = 0; i < app->n_loops; i++) {
        ew__app_loop *loop = &app->loops[i];
        bool own = &loop->loop.executor == from;
        if (own)
            own_home = &loop->loop.executor;
        if ((to == EW__ALL_OTHER_LOOPS ? !own : to == i) && !write_to(loop, wire, sender, text))
            n_dropped++;
    }
    if (own_home && n_dropped)
        atomic_fetch_add_explicit(&own_home->dropped, n_dropped, memory_order_relaxed);
    return n_dropped == 0;
}

/* ---- life ---- */

void ew__mailbox_init(ew__mailbox *box) {
    *box = (ew__mailbox){.task.fn = open_box};
    pthread_mutex_init(&box->lock, NULL);
}

void ew__mailbox_done(ew__mailbox *box, const ew_env *env) {
    for (letter *l = box->first, *next; l; l = next) {
        next = l->next;
        free_letter(env, l);
    }
    pthread_mutex_destroy(&box->lock);
}
