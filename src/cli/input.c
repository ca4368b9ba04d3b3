/*
 * cli/input.c: what the user gives: JSON from the command line, a file or standard input; durations; targets.
 * Everything that is wrong with it is said here and is bad usage.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INPUT_MAX                                                                                                      \
    ((size_t)256 * 1024 *                                                                                              \
     1024) /* peers have their own, lower limits; this only keeps a mistake from filling the memory */

#define AWAIT_STEPS 20
#define AWAIT_STEP_MS 50

static int read_fd(const char *verb, const char *name, int fd, ew__text *out) {
    for (;;) {
        ew_err err = out->len > INPUT_MAX ? EW_ELIMIT : ew__text_reserve(out, 64 * 1024);
        if (err != EW_OK) {
            return ew__cli_usagef(verb, "%s: %s", name, err == EW_ELIMIT ? "larger than 256 MiB" : ew_err_text(err));
        }
        ssize_t n = read(fd, out->ptr + out->len, 64 * 1024);
        if (n == 0) {
            return 0;
        }
        if (n < 0 && errno != EINTR) {
            return ew__cli_usagef(verb, "cannot read %s: %s", name, strerror(errno));
        }
        out->len += n > 0 ? (size_t)n : 0;
    }
}

static int read_path(const char *verb, const char *path, ew__text *out) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return ew__cli_usagef(verb, "cannot open %.400s: %s", path, strerror(errno));
    }
    int bad = read_fd(verb, path, fd, out);
    (void)close(fd);
    return bad;
}

static int check_json(const char *verb, const char *what, ew_str text) {
    size_t at = 0;
    ew_err err = ew_json_check(text, &at);
    if (err == EW_OK) {
        return 0;
    }
    int code = ew__cli_usagef(verb, "%s is not valid JSON (byte %zu): %s", what, at + 1,
                              err == EW_ELIMIT ? "nested too deeply"
                              : text.len == 0  ? "it is empty"
                                               : "syntax error");
    if (text.len > 0 && text.len < 100 && !memchr("{[\"", text.ptr[0], 3)) {
        ew__cli_hint("text needs its double quotes: '\"%.*s\"'", (int)text.len, text.ptr);
    }
    return code;
}

int ew__cli_read_json(const char *verb, const char *what, const char *text, bool files, ew__text *out) {
    int bad = 0;
    if (files && strcmp(text, "-") == 0) {
        bad = read_fd(verb, "standard input", STDIN_FILENO, out);
    } else if (files && text[0] == '@') {
        bad = read_path(verb, text + 1, out);
    } else if (ew__text_cstr(out, text) != EW_OK) {
        bad = ew__cli_usagef(verb, "%s: no memory for it", what);
    }
    return bad ? bad : check_json(verb, what, ew__text_view(out));
}

int ew__cli_read_timeout(const char *verb, const char *text, uint64_t *ret_ms) {
    ew_err err = ew__duration_parse(ew_str_from(text), ret_ms);
    if (err == EW_OK) {
        return 0;
    }
    return ew__cli_usagef(verb, "--timeout %.80s: %s", text,
                          err == EW_ELIMIT ? "too long" : "not a duration such as 500ms, 2s, 1m, 1h");
}

/* What the library and the peer's program have to say, on standard error. Any thread. */
static void log_line(void *ud, ew_log_level level, const char *room, ew_str line) {
    (void)ud;
    (void)room;
    if (level <= EW_LOG_INFO) {
        (void)fprintf(stderr, "%.*s\n", (int)line.len, line.ptr);
    }
}

void ew__cli_await(const char *target, const ew_client *client, ew_request *request) {
    ew_end end;
    if (!ew__cli_is_awaited(target)) {
        return;
    }
    for (int i = 0; i < AWAIT_STEPS; i++) {
        if (ew_client_runtimes(client) > 0 || ew_request_wait(request, AWAIT_STEP_MS, &end) != EW_ETIMEOUT) {
            return;
        }
    }
    const char *address = target + strlen("reflection://");
    int host = (int)strlen(address);
    while (host > 0 && address[host] != ':') {
        host--;
    }
    if (isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "waiting for a runtime on ws://%.*s:%d ...\n", host, address, ew_client_port(client));
    }
}

int ew__cli_client(const char *verb, const char *target, ew_client_options *options, ew_client **ret_client) {
    static ew_env env; /* outlives the client, and is the same for each */
    const char *problem = NULL;
    env = *ew_env_default();
    env.log = log_line;
    options->env = &env;
    if (!options->token) {
        options->token = getenv("EVERYWIRE_TOKEN");
    }
    ew_err err = ew_client_new(target, options, ret_client, &problem);
    if (err == EW_OK && options->tls.insecure) {
        (void)fprintf(stderr, "everywire %s: WARNING: --tls-insecure: whoever answers at %.200s is not verified\n",
                      verb, target);
    }
    if (err == EW_OK) {
        return 0;
    }
    const char *why = problem ? problem : ew_err_text(err);
    if (err == EW_EINVAL || err == EW_EUNSUPPORTED || ((err == EW_EACCESS || err == EW_ENOTFOUND) && problem)) {
        return ew__cli_usagef(verb, "target %.200s: %s", target, why);
    }
    ew_status status = err == EW_EADDRINUSE ? EW_STATUS_UNAVAILABLE : EW_STATUS_INTERNAL;
    ew__cli_error(&(ew_fault){.status = status, .message = ew_str_from(why)});
    return EW__EXIT_FAILED;
}
