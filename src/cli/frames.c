/*
 * cli/frames.c: --verbose: every frame as lines on standard error. What they look like is the library's own
 * (ew_frame_format); here they are printed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include <string.h>
#include <unistd.h>

#define CUT_BYTES 1024 /* of a frame that people look at; --verbose=full shows all */

/* Any thread: what is written at once stays together. */
static void print_frame(void *ud, const ew_frame *frame) {
    const ew__verbose *verbose = ud;
    unsigned flags = ew__cli_colour(STDERR_FILENO) ? EW_FRAME_COLOUR : 0;
    ew__text lines = {0};
    size_t n = ew_frame_format(frame, verbose->since_ns, flags, NULL, 0);
    if (n == 0 || ew__text_reserve(&lines, n + 1) != EW_OK) {
        return;
    }
    lines.len = ew_frame_format(frame, verbose->since_ns, flags, lines.ptr, n + 1);
    ew__cli_write(STDERR_FILENO, ew__text_view(&lines));
    ew__text_free(&lines);
}

int ew__verbose_take(ew__verbose *verbose, const char *verb, const char *value) {
    bool full = value && (strcmp(value, "full") == 0 || strcmp(value, "v") == 0); /* -vv */
    verbose->level = full ? 2 : 1;
    return !value || full ? 0 : ew__cli_usagef(verb, "--verbose %.80s: not full", value);
}

void ew__verbose_with(ew__verbose *verbose, ew_client_options *options) {
    const ew_env *env = ew_env_default();
    if (!verbose->level) {
        return;
    }
    verbose->since_ns = env->now_ns(env->ud);
    options->trace_frames = print_frame;
    options->trace_ud = verbose;
    options->trace_bytes = verbose->level > 1 ? SIZE_MAX / 4 : CUT_BYTES;
}
