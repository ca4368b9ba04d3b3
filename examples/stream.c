/*
 * An action that streams, and waits when its reader is slower than itself: nothing piles up, however many numbers are
 * asked for.
 *     everywire call http://127.0.0.1:3400 numbers '{"n":1000000}' --stream
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>

typedef struct state {
    int64_t next;
    int64_t n;
} state;

static void cancelled(ew_call *call, void *arg) {
    (void)arg;
    ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
}

/* Sends until the reader is behind; then the library calls it again as soon as there is room. */
static void send_some(ew_call *call, void *arg) {
    state *s = arg;
    while (s->next <= s->n) {
        ew_err err = ew_call_chunkf(call, "%lld", (long long)s->next);
        if (err < 0) {
            return; /* nobody listens any more: `cancelled` gives the call its end */
        }
        s->next++;
        if (err == EW_FULL) {
            ew_call_on_room(call, send_some, s);
            return;
        }
    }
    ew_call_donef(call, "{\"sent\":%lld}", (long long)s->n);
}

static void numbers(ew_call *call, void *arg) {
    (void)arg;
    state *s = ew_call_alloc(call, sizeof *s); /* lives as long as the call */
    if (!s) {
        ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, NULL);
        return;
    }
    *s = (state){.next = 1, .n = 10};
    if (!ew_call_input_int(call, "/n", &s->n)) {
        return; /* it is not an integer: the call has failed with INVALID_ARGUMENT */
    }
    ew_call_on_cancel(call, cancelled, NULL);
    ew_call_on_room(call, send_some, s); /* the first time there is room at once */
}

int main(int argc, char **argv) {
    ew_app *app = ew_app_new("numbers");
    ew_app_action(app, "/flow/numbers", numbers, NULL, &(ew_action_options){.description = "Streams 1 to n"});
    return ew_app_main(app, argc, argv);
}
