/*
 * cli/output.c: how the program talks: result lines on standard output, error lines and hints on standard error. It
 * decides what an ending looks like and which exit code it has; it calls nobody.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

bool ew__cli_colour(int fd) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fd) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

int ew__cli_usage(const char *verb, const char *problem) {
    (void)fprintf(stderr, "everywire %s: ", verb);
    ew__cli_print(stderr, ew_str_from(problem), EW__PRINTABLE_LINES);
    (void)fprintf(stderr, "\nTry: everywire %s --help\n", verb);
    return EW__EXIT_USAGE;
}

int ew__cli_usagef(const char *verb, const char *format, ...) {
    char problem[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(problem, sizeof problem, format, args);
    va_end(args);
    return ew__cli_usage(verb, problem);
}

static bool quiet; /* the user's wish, for the whole program */

void ew__cli_quiet(void) {
    quiet = true;
    ew__progress_forbid();
}

void ew__cli_hint(const char *format, ...) {
    if (quiet || !isatty(STDERR_FILENO)) {
        return;
    }
    bool colour = ew__cli_colour(STDERR_FILENO);
    char line[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    (void)fputs(colour ? "\033[2mhint:\033[0m " : "hint: ", stderr);
    ew__cli_print(stderr, ew_str_from(line), EW__PRINTABLE_LINE);
    (void)fputc('\n', stderr);
}

ew_err ew__cli_printable(ew__text *out, ew_str text, ew__printable_form form) {
    size_t n = ew__printable(text, form, NULL, 0);
    ew_err err = ew__text_reserve(out, n + 1);
    if (err == EW_OK) {
        out->len += ew__printable(text, form, out->ptr + out->len, n + 1);
    }
    return err;
}

void ew__cli_print(FILE *out, ew_str text, ew__printable_form form) {
    ew__text shown = {0};
    if (ew__cli_printable(&shown, text, form) == EW_OK) {
        (void)fwrite(shown.ptr, 1, shown.len, out);
    }
    ew__text_free(&shown);
}

ew_err ew__cli_format_args(ew__text *out, const char *format, const ew_arg *args, size_t n_args) {
    int n = ew_json_format_args(NULL, 0, format, args, n_args);
    ew_err err = n < 0 ? (ew_err)n : ew__text_reserve(out, (size_t)n + 1);
    if (err == EW_OK) {
        (void)ew_json_format_args(out->ptr + out->len, (size_t)n + 1, format, args, n_args);
        out->len += (size_t)n;
    }
    return err;
}

/* ---- values ---- */

long long ew__cli_count(ew_str json, const char *pointer) {
    int64_t number = 0;
    (void)ew_json_int64(ew_json_get(json, pointer), &number);
    return (long long)number;
}

bool ew__cli_flag(ew_str json, const char *pointer) {
    bool flag = false;
    (void)ew_json_bool(ew_json_get(json, pointer), &flag);
    return flag;
}

bool ew__cli_is(ew_str json, const char *pointer, const char *text) {
    char buf[64];
    size_t len = 0;
    return ew_json_string(ew_json_get(json, pointer), buf, sizeof buf, &len) == EW_OK &&
           ew_str_eq((ew_str){buf, len}, ew_str_from(text));
}

void ew__cli_wires(FILE *out, const char *template_text) {
    char text[EW__WIRE_TEXT_MAX];
    (void)fputs(ew__wire_text(template_text, 0, 0, text, sizeof text), out);
}

void ew__cli_target_help(FILE *out) {
    char text[EW__WIRE_TEXT_MAX];
    (void)fputs(ew__wire_text("  TARGET  where the peer is: <<target>> with TLS: <<secure schemes>>\n", 92, 10, text,
                              sizeof text),
                out);
}

/* ---- lines ---- */

/* Takes `done` bytes off the front. */
static void iov_advance(struct iovec *iov, int n, size_t done) {
    for (int i = 0; i < n && done > 0; i++) {
        size_t part = done < iov[i].iov_len ? done : iov[i].iov_len;
        if (part == 0) {
            continue; /* an empty one may be no place at all */
        }
        iov[i].iov_base = (char *)iov[i].iov_base + part;
        iov[i].iov_len -= part;
        done -= part;
    }
}

static int write_parts(int fd, struct iovec *iov, int n) {
    for (;;) {
        size_t left = 0;
        for (int i = 0; i < n; i++) {
            left += iov[i].iov_len;
        }
        if (left == 0) {
            return 0;
        }
        ssize_t done = writev(fd, iov, n);
        if (done >= 0) {
            iov_advance(iov, n, (size_t)done);
        } else if (errno == EAGAIN) {
            /* somebody made our output non-blocking: it is often shared with a shell or a parent */
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
    }
}

static struct iovec part(const char *ptr, size_t len) {
    union {
        const char *in;
        void *out;
    } cast = {ptr}; /* writev does not write there, its type only cannot say so */
    return (struct iovec){cast.out, len};
}

/* The same line as a terminal may show it: its JSON is the same value. 0, or an errno. */
static int show_line(int fd, const char *before, ew_str json, const char *after) {
    ew__text line = {0};
    ew_err err = ew__cli_printable(&line, ew_str_from(before), EW__PRINTABLE_JSON);
    err = err == EW_OK ? ew__cli_printable(&line, json, EW__PRINTABLE_JSON) : err;
    err = err == EW_OK ? ew__text_cstr(&line, after) : err;
    err = err == EW_OK ? ew__text_cstr(&line, "\n") : err;
    struct iovec whole = part(line.ptr, line.len);
    int bad = err == EW_OK ? write_parts(fd, &whole, 1) : ENOMEM;
    ew__text_free(&line);
    return bad;
}

int ew__cli_line(int fd, const char *before, ew_str json, const char *after) {
    ew__text flat = {0};
    if (json.len > 0 && (memchr(json.ptr, '\n', json.len) || memchr(json.ptr, '\r', json.len))) {
        if (ew__text_reserve(&flat, json.len) != EW_OK) {
            return ENOMEM;
        }
        int n = ew_json_minify(json, flat.ptr, json.len);
        flat.len = n > 0 ? (size_t)n : 0;
        json = ew__text_view(&flat);
    }
    struct iovec parts[] = {part(before, strlen(before)), part(json.ptr, json.len), part(after, strlen(after)),
                            part("\n", 1)};
    ew__progress_pause(true);
    int err = isatty(fd) ? show_line(fd, before, json, after) : write_parts(fd, parts, 4);
    ew__progress_pause(false);
    ew__text_free(&flat);
    return err;
}

void ew__cli_write(int fd, ew_str text) {
    struct iovec whole = part(text.ptr, text.len);
    ew__progress_pause(true);
    (void)write_parts(fd, &whole, 1);
    ew__progress_pause(false);
}

/* ---- errors and endings ---- */

void ew__cli_error(const ew_fault *fault) {
    ew__text head = {0};
    ew_err err = ew__cli_format(&head, "{\"error\":{\"status\":%Q,\"message\":%q", ew_status_name(fault->status),
                                fault->message);
    if (err == EW_OK) {
        err = ew__text_add(&head,
                           fault->details.len > 0 ? EW_STR(",\"details\":\0") : EW_STR("\0")); /* ends as a C string */
    }
    const char *before = err == EW_OK ? head.ptr : "{\"error\":{\"status\":\"INTERNAL\",\"message\":\"out of memory\"";
    (void)ew__cli_line(STDERR_FILENO, before, err == EW_OK ? fault->details : (ew_str){NULL, 0}, "}}");
    ew__text_free(&head);
}

static int exit_code(const ew_end *end) {
    switch (end->origin) {
    case EW_ORIGIN_CONNECT:
        return EW__EXIT_UNREACHED;
    case EW_ORIGIN_PROTOCOL:
        return EW__EXIT_PROTOCOL;
    case EW_ORIGIN_DEADLINE:
        return EW__EXIT_DEADLINE;
    case EW_ORIGIN_LOCAL:
        /* what this wire cannot carry is the user's to change; memory and limits are not */
        return end->status == EW_STATUS_INVALID_ARGUMENT || end->status == EW_STATUS_OUT_OF_RANGE ? EW__EXIT_USAGE
                                                                                                  : EW__EXIT_FAILED;
    case EW_ORIGIN_ACTION:
    case EW_ORIGIN_CANCEL:
    default:
        return EW__EXIT_FAILED;
    }
}

const ew_scheme *ew__cli_scheme(const char *target) {
    static const ew_scheme unknown = {.text = "", .reach = EW_REACH_TCP};
    const ew_scheme *scheme = ew_scheme_of(target);
    return scheme ? scheme : &unknown;
}

bool ew__cli_is_awaited(const char *target) { return ew__cli_scheme(target)->reach == EW_REACH_LISTEN; }

bool ew__cli_has_processes(const char *target) {
    const ew_scheme *scheme = ew__cli_scheme(target);
    return scheme->reach == EW_REACH_TCP && scheme->command == EW_SCHEME_COMMAND_MAY;
}

unsigned ew__cli_can(const char *target) {
    const ew_wire_info *info = ew_wire_info_of(ew__cli_scheme(target)->wire);
    return info ? info->can : UINT_MAX;
}

static bool says(const ew_end *end, const char *words) {
    ew_str message = end->fault.message;
    return message.len > 0 && memmem(message.ptr, message.len, words, strlen(words)) != NULL;
}

static void hint_wire(const char *verb) {
    ew__cli_hint("does it speak the wire that the target names? everywire %s -v shows what came; a server of everywire "
                 "speaks them all",
                 verb);
}

static void hint_unreached(const char *verb, const char *target, const ew_end *end) {
    const ew_scheme *scheme = ew__cli_scheme(target);
    bool awaited = scheme->reach == EW_REACH_LISTEN;
    if (says(end, "cannot start")) {
        ew__cli_hint("what stands behind -- is a program and its arguments, without a shell");
        return;
    }
    if (says(end, "ended with")) {
        ew__cli_hint("the program has ended by itself: what it had to say stands above; try it by hand");
        return;
    }
    if (!awaited && scheme->tls && !says(end, "refused")) {
        return; /* somebody is there: what is wrong with TLS was said */
    }
    if (says(end, "closed the connection") || says(end, "connection was lost")) {
        hint_wire(verb);
        return;
    }
    if (scheme->hint) {
        ew__cli_hint("%s%s", scheme->hint, awaited ? target + strlen(scheme->text) : "");
    } else {
        ew__cli_hint("is the server running there? one to try: everywire serve --demo");
    }
}

/* What to do next. */
static void hint_ending(const char *verb, const char *target, const char *action, const ew_end *end, int code) {
    if (code == EW__EXIT_UNREACHED) {
        hint_unreached(verb, target, end);
    } else if (code == EW__EXIT_PROTOCOL) {
        hint_wire(verb);
    } else if (code == EW__EXIT_DEADLINE) {
        ew__cli_hint("--timeout 1m gives it longer; everywire %s -v shows how far it came", verb);
    } else if (end->status == EW_STATUS_UNAUTHENTICATED) {
        ew__cli_hint("the server wants a token: --token @FILE shows one that everywire token new has made there");
    } else if (end->status == EW_STATUS_PERMISSION_DENIED) {
        ew__cli_hint("a token may be for other actions or wires only; everywire token list tells, where the server is");
    } else if (end->status == EW_STATUS_INVALID_ARGUMENT && action) {
        ew__cli_hint("what it takes shows: everywire describe %s %.200s", target, action);
    } else if (end->status == EW_STATUS_UNIMPLEMENTED) {
        ew__cli_hint("the peer or its wire cannot do that; the README has a table of what each wire carries");
    }
}

int ew__cli_ending(const char *verb, const char *target, const char *action, const ew_end *end) {
    if (end->status == EW_STATUS_OK) {
        return EW__EXIT_OK;
    }
    int code = exit_code(end);
    if (code == EW__EXIT_USAGE) {
        return ew__cli_usagef(verb, "%.*s", (int)(end->fault.message.len < 900 ? end->fault.message.len : 900),
                              end->fault.message.ptr);
    }
    ew__cli_error(&end->fault);
    hint_ending(verb, target, action, end, code);
    return code;
}

/* ---- for people ---- */

/* The white space of texts with several lines, so that they fit into one. */
static void flatten(char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
            text[i] = ' ';
        }
    }
}

ew_err ew__cli_plain(ew__text *out, ew_str json_string) {
    ew__text text = {0};
    size_t len = 0;
    ew_err err = ew__text_reserve(&text, json_string.len + 1);
    if (err != EW_OK) {
        return err;
    }
    /* an escape is never shorter than what it stands for, so the raw length is room enough */
    if (ew_json_string(json_string, text.ptr, json_string.len, &len) == EW_OK) {
        flatten(text.ptr, len);
        err = ew__cli_printable(out, (ew_str){text.ptr, len}, EW__PRINTABLE_LINE);
    } else {
        err = ew__cli_printable(out, json_string, EW__PRINTABLE_JSON);
    }
    ew__text_free(&text);
    return err;
}
