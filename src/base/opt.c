/*
 * base/opt.c: see opt.h. Reads words, never acts on them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/opt.h"
#include "base/util.h"
#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* ---- nearest names ---- */

#define WORD_MAX 63

static unsigned min3(unsigned a, unsigned b, unsigned c) {
    unsigned low = a < b ? a : b;
    return low < c ? low : c;
}

unsigned ew__edit_distance(ew_str a, ew_str b) {
    unsigned rows[3][WORD_MAX + 1]; /* the row before the last, the last, the present one */
    if (a.len > WORD_MAX || b.len > WORD_MAX) {
        return UINT_MAX;
    }
    unsigned *older = rows[0], *old = rows[1], *row = rows[2];
    for (unsigned j = 0; j <= b.len; j++) {
        old[j] = j;
        older[j] = 0;
    }
    for (unsigned i = 1; i <= a.len; i++) {
        row[0] = i;
        for (unsigned j = 1; j <= b.len; j++) {
            bool same = a.ptr[i - 1] == b.ptr[j - 1];
            row[j] = min3(old[j] + 1, row[j - 1] + 1, old[j - 1] + (same ? 0 : 1));
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1]) {
                row[j] = min3(row[j], row[j], older[j - 2] + 1);
            }
        }
        unsigned *free_row = older;
        older = old;
        old = row;
        row = free_row;
    }
    return old[b.len];
}

void ew__suggestion_init(ew__suggestion *near, ew_str word) {
    *near = (ew__suggestion){.word = word, .distance = UINT_MAX};
}

void ew__suggestion_try(ew__suggestion *near, ew_str candidate) {
    unsigned limit = near->word.len < 6 ? 1 : (unsigned)(near->word.len > WORD_MAX ? 0 : near->word.len / 3);
    unsigned distance = ew__edit_distance(near->word, candidate);
    bool begun = near->word.len >= 3 && candidate.len > near->word.len &&
                 memcmp(candidate.ptr, near->word.ptr, near->word.len) == 0;
    if (begun) {
        distance = 1; /* a name that was only begun is as good as a single slip */
    }
    if (distance <= limit && distance < near->distance) {
        near->distance = distance;
        near->best = candidate;
    }
}

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

void ew__opts_help(FILE *out, const ew__opt *table) {
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
        help_text(out, o->help, column);
    }
}

/* ---- durations ---- */

static bool unit_ms(ew_str unit, uint64_t *ret_ms) {
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i].name) == unit.len && memcmp(units[i].name, unit.ptr, unit.len) == 0) {
            *ret_ms = units[i].ms;
            return true;
        }
    }
    return false;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Digits up to a limit; false when the number is larger. *at moves behind all of them in any case. */
static bool read_whole(ew_str text, size_t *at, uint64_t limit, uint64_t *ret) {
    uint64_t number = 0;
    bool fits = true;
    for (; *at < text.len && is_digit(text.ptr[*at]); (*at)++) {
        number = fits ? number * 10 + (uint64_t)(text.ptr[*at] - '0') : 0;
        fits = fits && number <= limit;
    }
    *ret = number;
    return fits;
}

ew_err ew__duration_parse(ew_str text, uint64_t *ret_ms) {
    uint64_t whole = 0, nanos = 0, unit = 0;
    size_t at = 0;
    bool beyond = false; /* something smaller than a billionth of the unit */
    bool fits = read_whole(text, &at, EW__DURATION_MAX_MS, &whole);
    bool digits = at > 0;
    if (at < text.len && text.ptr[at] == '.') {
        size_t start = ++at;
        uint64_t scale = 100000000;
        for (; at < text.len && is_digit(text.ptr[at]); at++, scale /= 10) {
            nanos += scale * (uint64_t)(text.ptr[at] - '0');
            beyond = beyond || (scale == 0 && text.ptr[at] != '0');
        }
        digits = digits && at > start;
    }
    if (!digits || !unit_ms((ew_str){text.ptr + at, text.len - at}, &unit)) {
        return EW_EINVAL;
    }
    if (!fits || whole > EW__DURATION_MAX_MS / unit) {
        return EW_ELIMIT;
    }
    uint64_t part = nanos * unit; /* in billionths of a millisecond: below 4e15 */
    uint64_t ms = whole * unit + part / 1000000000 + (part % 1000000000 != 0 || beyond ? 1 : 0);
    if (ms > EW__DURATION_MAX_MS) {
        return EW_ELIMIT;
    }
    *ret_ms = ms;
    return EW_OK;
}

/* ---- sizes and limits ---- */

bool ew__size_parse(ew_str text, uint64_t *ret_bytes) {
    uint64_t number;
    if (text.len == 0) {
        return false;
    }
    char suffix = text.ptr[text.len - 1];
    unsigned shift = suffix == 'K' ? 10 : suffix == 'M' ? 20 : suffix == 'G' ? 30 : 0;
    if (!ew__u64_parse((ew_str){text.ptr, text.len - (shift ? 1 : 0)}, &number) || number > UINT64_MAX >> shift) {
        return false;
    }
    *ret_bytes = number << shift;
    return true;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool ew__limit_parse(const char *name, ew_str text, uint64_t *ret) {
    if (ew__u64_parse(text, ret)) {
        return true;
    }
    return ends_with(name, "_ms") ? ew__duration_parse(text, ret) == EW_OK
                                  : ends_with(name, "_bytes") && ew__size_parse(text, ret);
}

/* ---- descriptors ---- */

void ew__standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)open("/dev/null", O_RDWR); /* the lowest free number: this one */
        }
    }
}

/* ---- TLS ---- */

bool ew__tls_option(ew_tls_options *options, int id, const char *value) {
    const char **file = id == EW__OPT_TLS_CERT        ? &options->certificate
                        : id == EW__OPT_TLS_KEY       ? &options->key
                        : id == EW__OPT_TLS_CA        ? &options->ca
                        : id == EW__OPT_TLS_CLIENT_CA ? &options->client_ca
                                                      : NULL;
    if (file) {
        *file = value;
    } else if (id == EW__OPT_TLS_INSECURE) {
        options->insecure = true;
    }
    return file || id == EW__OPT_TLS_INSECURE;
}
