/*
 * program/status_output.c: what ew_app_main prints: where the app listens and whom it dials; frames, if they are asked for.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/main.h"
#include "base/printable.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- writing ---- */

/* Nobody is told of a failure: there is nobody left to tell. */
void ew__write_all(int fd, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno != EINTR) {
            return;
        }
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        }
    }
}

/* ---- frames ---- */

void ew__say_frame(void *ud, const ew_frame *frame) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    bool colour = isatty(STDERR_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
    unsigned flags = colour ? EW_FRAME_COLOUR : 0;
    char usual[8 * 1024];
    size_t n = ew_frame_format(frame, *(uint64_t *)ud, flags, usual, sizeof usual);
    if (n < sizeof usual) {
        ew__write_all(STDERR_FILENO, usual, n);
        return;
    }
    char *lines = ew__alloc(ew_env_default(), n + 1);
    if (lines) {
        (void)ew_frame_format(frame, *(uint64_t *)ud, flags, lines, n + 1);
        ew__write_all(STDERR_FILENO, lines, n);
        ew__free(ew_env_default(), lines, n + 1);
    }
}

/* ---- where it listens ---- */

/* The wire by which managers are dialled. */
static const char *manager_wire(void) {
    const ew_start_word *word;
    for (size_t i = 0; (word = ew_start_word_at(i)) != NULL; i++) {
        if (word->role == EW_START_CONNECT) {
            return word->wire;
        }
    }
    return "";
}

void ew__say_json(const ew_app *app) {
    char line[2048];
    for (size_t i = 0; i < ew__app_n_listeners(app); i++) {
        const char *wire, *address;
        int port;
        if (ew__app_listener_at(app, i, &wire, &address, &port) != EW_OK) {
            continue;
        }
        int n =
            ew_json_format(line, sizeof line, "{\"event\":\"listening\",\"wire\":%Q,\"address\":%Q,\"port\":%d%s}\n",
                           wire, address, port, ew__app_listener_is_tls(app, i) ? ",\"tls\":true" : "");
        if (n > 0 && (size_t)n < sizeof line) {
            ew__write_all(STDOUT_FILENO, line, (size_t)n);
        }
    }
    for (size_t i = 0; i < app->n_connects; i++) {
        int n = ew_json_format(line, sizeof line, "{\"event\":\"connecting\",\"wire\":%Q,\"address\":%Q}\n",
                               manager_wire(), app->connects[i]->text);
        if (n > 0 && (size_t)n < sizeof line) {
            ew__write_all(STDOUT_FILENO, line, (size_t)n);
        }
    }
    ew__buf imports;
    ew__buf_init(&imports, app->env, (size_t)1024 * 1024);
    ew__app_sources_say((ew_app *)(uintptr_t)app, &imports);
    ew__app_jobs_say(app, &imports);
    ew__write_all(STDOUT_FILENO, ew__buf_view(&imports).ptr, imports.err ? 0 : imports.len);
    ew__buf_done(&imports);
    static const char ready[] = "{\"event\":\"ready\"}\n";
    ew__write_all(STDOUT_FILENO, ready, sizeof ready - 1);
}

static bool colour_wanted(void) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && strcmp(term, "dumb") != 0;
}

/* The first action that was registered, and an input for it: the first example of its schema. False: there is none. */
static bool sample_call(ew_app *app, char *name, size_t name_size, char *input, size_t input_size) {
    (void)snprintf(input, input_size, "{}");
    ew__actions *actions = ew__registry_get(&app->registry);
    bool found = actions && actions->by_key.n > 0;
    if (found) {
        const ew__action *action = actions->by_key.entries[0].value;
        ew_str example = ew_json_get(action->descriptor, "/inputSchema/examples/0");
        /* both may be a peer's */
        (void)ew__printable(action->name, EW__PRINTABLE_LINE, name, name_size);
        if (example.len > 0 && !memchr(example.ptr, '\'', example.len) &&
            ew__printable(example, EW__PRINTABLE_JSON, NULL, 0) < input_size) {
            (void)ew__printable(example, EW__PRINTABLE_JSON, input, input_size);
        }
    }
    ew__actions_unref(actions);
    return found;
}

/* The address of a listener that speaks plain HTTP, in a form that can be called. */
static bool sample_address(const ew_app *app, char *out, size_t size) {
    for (size_t i = 0; i < ew__app_n_listeners(app); i++) {
        const char *wire, *address;
        int port;
        if (ew__app_listener_at(app, i, &wire, &address, &port) != EW_OK || ew__app_listener_is_tls(app, i) ||
            (strcmp(wire, "any") != 0 && strcmp(wire, "http") != 0)) {
            continue;
        }
        if (strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0) {
            (void)snprintf(out, size, "%s:%d", address[0] == '[' ? "[::1]" : "127.0.0.1", port);
        } else {
            (void)snprintf(out, size, "%s", address);
        }
        return true;
    }
    return false;
}

/* Targets, and how many actions they have; the store whose jobs are run. */
static void say_peers(ew_app *app) {
    ew__buf lines;
    ew__buf_init(&lines, app->env, (size_t)1024 * 1024);
    ew__app_sources_say(app, &lines);
    for (ew_str rest = ew__buf_view(&lines); rest.len > 0 && !lines.err;) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        ew_str line = ew__str(rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len);
        char text[2048];
        ew_str wire = ew__json_text(ew_json_get(line, "/wire"), NULL, 0),
               target = ew__json_text(ew_json_get(line, "/target"), text, sizeof text);
        int64_t n = 0;
        (void)ew_json_int64(ew_json_get(line, "/actions"), &n);
        (void)printf("  %-10.*s imports %.*s (%lld action%s)\n", (int)wire.len, wire.len ? wire.ptr : "",
                     (int)target.len, target.len ? target.ptr : "", (long long)n, n == 1 ? "" : "s");
        rest = ew__str(line.ptr + line.len + (end != NULL), rest.len - line.len - (end != NULL));
    }
    ew__buf_clear(&lines);
    ew__app_jobs_say(app, &lines);
    ew_str store = ew__json_text(ew_json_get(ew__buf_view(&lines), "/store"), NULL, 0);
    if (store.len > 0 && !lines.err) {
        (void)printf("  %-10s runs those of the %.*s store\n", "jobs", (int)store.len, store.ptr);
    }
    ew__buf_done(&lines);
}

void ew__say_table(ew_app *app, const char *name) {
    const char *bold = colour_wanted() ? "\033[1m" : "", *plain = colour_wanted() ? "\033[0m" : "";
    char address[128], action[128], input[256];
    (void)printf("%s%s%s is ready (everywire %s)\n\n  %-10s %s\n", bold, name, plain, ew_version(), "WIRE", "ADDRESS");
    for (size_t i = 0; i < ew__app_n_listeners(app); i++) {
        const char *wire, *at;
        if (ew__app_listener_at(app, i, &wire, &at, NULL) == EW_OK) {
            (void)printf("  %-10s %s%s%s%s\n", wire, bold, at, plain, ew__app_listener_is_tls(app, i) ? " (TLS)" : "");
        }
    }
    for (size_t i = 0; i < app->n_connects; i++) {
        (void)printf("  %-10s dials %s%s%s\n", manager_wire(), bold, app->connects[i]->text, plain);
    }
    say_peers(app);
    if (sample_address(app, address, sizeof address) && sample_call(app, action, sizeof action, input, sizeof input)) {
        (void)printf("\nTry in another terminal:\n\n  everywire list http://%s\n", address);
        (void)printf("  everywire call http://%s %s '%s' --stream\n", address, action, input);
        (void)printf("  curl http://%s/%s -H 'content-type: application/json' -d '{\"data\":%s}'\n", address, action,
                     input);
    }
    (void)printf("\nCtrl-C ends it.\n");
    (void)fflush(stdout);
}
