/*
 * An action that answers later, from a thread of the program's own. The functions of a call may be used from any
 * thread, and the handler is free to return before the call has its end.
 *     everywire call http://127.0.0.1:3400 slow '"work"' --stream
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <pthread.h>

static void *work(void *arg) {
    ew_call *call = arg;
    for (int percent = 0; percent <= 100; percent += 50) {
        ew_call_chunkf(call, "{\"percent\":%d}", percent);
        if (ew_call_wait(call, 20) == EW_ECANCELLED) { /* sleeps, but not longer than anybody waits for the result */
            ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
            ew_call_unref(call);
            return NULL;
        }
    }
    ew_call_donef(call, "{\"did\":%j}", ew_call_input(call));
    ew_call_unref(call);
    return NULL;
}

static void slow(ew_call *call, void *arg) {
    (void)arg;
    pthread_t thread;
    ew_call_ref(call); /* for the thread */
    if (pthread_create(&thread, NULL, work, call) != 0) {
        ew_call_unref(call);
        ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, "no thread");
        return;
    }
    pthread_detach(thread);
}

int main(int argc, char **argv) {
    ew_app *app = ew_app_new("later");
    ew_app_action(app, "/flow/slow", slow, NULL, &(ew_action_options){.description = "Works on a thread of its own"});
    return ew_app_main(app, argc, argv);
}
