/*
 * base/opt.c: see opt.h. Reads words, never acts on them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/opt.h"
#include "base/suggestion.h"
#include <fcntl.h>
#include <string.h>

/* ---- options ---- */

void ew__opts_init(ew__opts *opts, const ew__opt *table, int argc, char *const *argv, int first) {
    *opts = (ew__opts){.table = table, .argc = argc, .argv = argv, .at = first};
}

static int bad_unknown(ew__opts *opts, ew_str name) {
    ew__suggestion near;
    ew__suggestion_init(&near, name);
    for (const ew__opt *o = opts->table; o->name; o++) {
        ew__suggestion_try(&near, ew_str_from(o->name));
    }
    int shown = name.len > 80 ? 80 : (int)name.len;
    if (near.best.ptr) {
        (void)snprintf(opts->problem, sizeof opts->problem, "unknown option --%.*s; did you mean --%s?", shown,
                       name.ptr, near.best.ptr);
    } else {
        (void)snprintf(opts->problem, sizeof opts->problem, "unknown option --%.*s", shown, name.ptr);
    }
    return EW__OPT_BAD;
}

static bool is_optional(const ew__opt *o) { return o->arg[0] == '[' && o->arg[1] == '='; }

/* An option was found; `inner` is what stood in the same word after it, or NULL. */
static int take_value(ew__opts *opts, const ew__opt *o, const char *inner) {
    if (!o->arg && inner) {
        (void)snprintf(opts->problem, sizeof opts->problem, "--%s takes no argument", o->name);
        return EW__OPT_BAD;
    }
    if (o->arg && !inner && !is_optional(o)) {
        if (opts->at >= opts->argc) {
            (void)snprintf(opts->problem, sizeof opts->problem, "--%s needs an argument %s", o->name, o->arg);
            return EW__OPT_BAD;
        }
        inner = opts->argv[opts->at++];
    }
    opts->value = inner;
    return o->id;
}

static int long_option(ew__opts *opts, const char *text) {
    const char *equals = strchr(text, '=');
    ew_str name = {text, equals ? (size_t)(equals - text) : strlen(text)};
    for (const ew__opt *o = opts->table; o->name; o++) {
        if (strlen(o->name) == name.len && memcmp(o->name, name.ptr, name.len) == 0) {
            return take_value(opts, o, equals ? equals + 1 : NULL);
        }
    }
    return bad_unknown(opts, name);
}

static int short_option(ew__opts *opts, const char *text) {
    for (const ew__opt *o = opts->table; o->name; o++) {
        if (o->letter != 0 && o->letter == text[0]) {
            return take_value(opts, o, text[1] != 0 ? text + 1 : NULL);
        }
    }
    /* "-stream" is a long option with a dash missing more often than a row of letters. */
    for (const ew__opt *o = opts->table; o->name; o++) {
        if (strcmp(o->name, text) == 0) {
            (void)snprintf(opts->problem, sizeof opts->problem, "unknown option -%s; did you mean --%s?", text, text);
            return EW__OPT_BAD;
        }
    }
    (void)snprintf(opts->problem, sizeof opts->problem, "unknown option -%.80s", text);
    return EW__OPT_BAD;
}

int ew__opts_next(ew__opts *opts) {
    opts->value = NULL;
    if (opts->at >= opts->argc) {
        return EW__OPT_END;
    }
    const char *word = opts->argv[opts->at++];
    bool number = word[0] == '-' && word[1] >= '0' && word[1] <= '9';
    if (word[0] != '-' || word[1] == 0 || number) {
        opts->value = word;
        return EW__OPT_WORD;
    }
    if (word[1] != '-') {
        return short_option(opts, word + 1);
    }
    return word[2] == 0 ? EW__OPT_REST : long_option(opts, word + 2);
}

/* ---- help ---- */

static size_t label_width(const ew__opt *o) {
    return 6 + strlen(o->name) + (o->arg ? strlen(o->arg) + (is_optional(o) ? 0 : 1) : 0);
}

/* Lines after the first start in the help's column. */
static void help_text(FILE *out, const char *text, size_t column) {
    for (const char *line = text; line;) {
        const char *end = strchr(line, '\n');
        int n = end ? (int)(end - line) : (int)strlen(line);
        (void)fprintf(out, "%.*s\n", n, line);
        line = end ? end + 1 : NULL;
        if (line) {
            (void)fprintf(out, "%*s", (int)column, "");
        }
    }
}

void ew__opts_help(FILE *out, const ew__opt *table, ew__opt_text text) {
    char room[1024];
    size_t column = 0;
    for (const ew__opt *o = table; o->name; o++) {
        column = label_width(o) > column ? label_width(o) : column;
    }
    column += 4;
    for (const ew__opt *o = table; o->name; o++) {
        char letter[5] = "    ";
        if (o->letter) {
            (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
        }
        (void)fprintf(out, "  %s--%s%s%s", letter, o->name, o->arg && !is_optional(o) ? " " : "", o->arg ? o->arg : "");
        (void)fprintf(out, "%*s", (int)(column - 2 - label_width(o)), "");
        help_text(out, text ? text(o->help, room, sizeof room) : o->help, column);
    }
}

/* ---- descriptors ---- */

void ew__standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)open("/dev/null", O_RDWR); /* the lowest free number: this one */
        }
    }
}
