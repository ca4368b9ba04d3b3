/*
 * io/child_errors.c: see child_errors.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/child_errors.h"
#include "io/child.h"
#include <errno.h>
#include <unistd.h>

#define DRAIN_READS 32 /* more than a pipe holds: whoever still writes then does not keep us */

static void say_left_out(ew__child_errors *errors) {
    if (errors->n_left_out > 0)
        ew__log(errors->loop->executor.env, EW_LOG_WARN, "child", "%s: %llu lines left out", errors->name,
                (unsigned long long)errors->n_left_out);
    errors->n_left_out = 0;
}

/* What a program of ours tells whoever has started it to look for a port: nobody does here. */
static bool is_event(ew_str line) {
    return ew__str_has_prefix(line, EW_STR("{\"event\":\"listening\",\"wire\":")) ||
           ew__str_is(line, EW_STR("{\"event\":\"ready\"}"));
}

static void end_line(ew__child_errors *errors) {
    uint64_t now = errors->loop->executor.now;
    size_t n = errors->n;
    errors->n = 0;
    if (errors->heard && errors->heard(errors->heard_ud, ew__str(errors->line, n)))
        return;
    if (now - errors->second_at >= EW__MS(1000)) {
        say_left_out(errors);
        errors->second_at = now;
        errors->n_lines = 0;
    }
    if (errors->n_lines >= EW__CHILD_LINES) {
        errors->n_left_out++;
    } else {
        errors->n_lines++;
        ew__log(errors->loop->executor.env, is_event(ew__str(errors->line, n)) ? EW_LOG_DEBUG : EW_LOG_INFO, "child",
                "%s: %.*s", errors->name, (int)n, errors->line);
    }
}

void ew__child_errors_take(ew__child_errors *errors, const char *bytes, size_t n) {
    while (n > 0) {
        const char *newline = memchr(bytes, '\n', n);
        size_t part = newline ? (size_t)(newline - bytes) : n;
        size_t room = sizeof errors->line - errors->n; /* what does not fit is cut off */
        size_t keep = part < room ? part : room;
        memcpy(errors->line + errors->n, bytes, keep);
        errors->n += keep;
        if (!newline)
            return;
        end_line(errors);
        bytes += part + 1;
        n -= part + 1;
    }
}

void ew__child_errors_init(ew__child_errors *errors, ew__loop *loop, const char *name) {
    memset(errors, 0, sizeof *errors);
    errors->loop = loop;
    errors->name = name;
    errors->second_at = loop->executor.now;
}

bool ew__child_errors_read(ew__child_errors *errors, int fd) {
    ssize_t n = read(fd, errors->loop->read_buffer, EW__READ_BUFFER);
    if (n > 0)
        ew__child_errors_take(errors, errors->loop->read_buffer, (size_t)n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

void ew__child_errors_drain(ew__child_errors *errors, int fd) {
    for (int i = 0; fd >= 0 && i < DRAIN_READS; i++) {
        ssize_t n = read(fd, errors->loop->read_buffer, EW__READ_BUFFER);
        if (n <= 0)
            break;
        ew__child_errors_take(errors, errors->loop->read_buffer, (size_t)n);
    }
    if (errors->n > 0)
        end_line(errors);
}

void ew__child_errors_done(ew__child_errors *errors) {
    if (errors->n > 0)
        end_line(errors);
    say_left_out(errors);
}
