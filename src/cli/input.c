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

#define EXCERPT 30 /* bytes of bad JSON that are shown on each side */

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

/* The bytes around the place, with a mark under it. Those that are not printable become spaces. */
static void show_place(ew_str text, size_t at) {
    size_t from = at > EXCERPT ? at - EXCERPT : 0, to = text.len - at > EXCERPT ? at + EXCERPT : text.len;
    char line[2 * EXCERPT + 16], mark[2 * EXCERPT + 16];
    size_t n = 0, m = 0;
    while (from > 0 && ((unsigned char)text.ptr[from] & 0xc0) == 0x80) {
        from--; /* not within a character */
    }
    for (size_t i = from; i < to || (i == at && i == text.len);) {
        size_t shown = i < text.len ? ew__printable_size(text, i) : 0, size = shown ? shown : 1;
        memcpy(line + n, shown ? text.ptr + i : " ", size);
        n += size;
        if (i <= at) {
            mark[m++] = at < i + size ? '^' : ' ';
        }
        i += size;
    }
    (void)fprintf(stderr, "  %.*s\n  %.*s\n", (int)n, line, (int)m, mark);
}

/* What a user has probably done, if the text is no JSON. NULL: nothing that is known. */
static const char *suspicion(ew_str text, size_t at) {
    bool container = text.len > 0 && (text.ptr[0] == '{' || text.ptr[0] == '[');
    char c = at < text.len ? text.ptr[at] : 0;
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (container && at == text.len) {
        return "the end is missing; did the shell cut it at a space? put INPUT in single quotes";
    }
    if (container && letter) {
        return "names and texts need double quotes; did the shell take them? put INPUT in single quotes: "
               "'{\"name\":\"Ada\"}'";
    }
    if (container && c == '\'') {
        return "JSON has double quotes only";
    }
    return container && (c == '}' || c == ']') ? "a comma or a value too few, or a comma too many before it" : NULL;
}

static int check_json(const char *verb, const char *what, ew_str text) {
    size_t at = 0;
    ew_err err = ew_json_check(text, &at);
    if (err == EW_OK) {
        return 0;
    }
    const char *why = err == EW_ELIMIT ? "nested too deeply" : text.len == 0 ? "it is empty" : "syntax error";
    const char *likely = err == EW_ELIMIT ? NULL : suspicion(text, at);
    (void)fprintf(stderr, "everywire %s: %s is not valid JSON (byte %zu): %s\n", verb, what, at + 1,
                  likely ? likely : why);
    if (text.len > 0 && at <= text.len) {
        show_place(text, at);
    }
    if (text.len > 0 && text.len < 100 && !memchr("{[\"", text.ptr[0], 3)) {
        (void)fputs("Text needs its double quotes: '\"", stderr);
        ew__cli_print(stderr, text, EW__PRINTABLE_LINE);
        (void)fputs("\"'\n", stderr);
    } else {
        (void)fprintf(stderr, "Try: everywire %s --help\n", verb);
    }
    return EW__EXIT_USAGE;
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
        ew__progress_pause(true);
        (void)fprintf(stderr, "%.*s\n", (int)line.len, line.ptr);
        ew__progress_pause(false);
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
