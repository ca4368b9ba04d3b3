/*
 * cli/completion.c: what a shell offers when the user presses Tab. A script of a few lines, which `everywire completion
 * SHELL` prints, asks `everywire __complete WORDS...` (WORDS: those behind the program's name, up to the one at the
 * cursor); all that it is told comes from the tables that read the command line, from the live target and from the
 * store of jobs.
 *
 * The answer: one line VALUE<TAB>DESCRIPTION for each candidate; the last line is a colon and flags: "files" (names of
 * files fit, too), "nospace" (the word goes on behind the candidate). Nothing is started, nothing is said about
 * failures, and nothing takes long.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/completion.h"
#include <string.h>

#define LINE_MAX_BYTES 400

/* ---- candidates ---- */

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* A description is one line: what stands before its first newline, without what a shell or terminal might mind. */
static void put_description(const char *text) {
    for (size_t i = 0; text[i] && text[i] != '\n' && i < LINE_MAX_BYTES; i++) {
        (void)putchar((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i]);
    }
}

void ew__offer(ew__completing *c, const char *value, const char *description) {
    if (!begins(value, c->word) || strpbrk(value, "\t\r\n")) {
        return;
    }
    (void)fwrite(c->before, 1, c->before_len, stdout);
    (void)fputs(value, stdout);
    (void)putchar('\t');
    put_description(description ? description : "");
    (void)putchar('\n');
    size_t n = strlen(value);
    c->nospace = c->nospace || (n > 0 && strchr("=:/@#", value[n - 1]));
}

static void offer_rows(ew__completing *c, const char *const *rows) {
    for (; rows[0]; rows += 2) {
        ew__offer(c, rows[0], rows[1]);
    }
}

/* ---- values that are known ---- */

static void offer_targets(ew__completing *c) {
    const ew_scheme *scheme;
    unsigned highest = 1;
    ew__offer(c, "http://127.0.0.1:3400", "an HTTP server, such as everywire serve");
    for (unsigned rank = 0; rank <= highest; rank++) {
        for (size_t i = 0; (scheme = ew_scheme_at(i)) != NULL; i++) {
            unsigned own = scheme->rank ? scheme->rank : scheme->tls;
            highest = own > highest ? own : highest;
            if (own == rank) {
                ew__offer(c, scheme->text, scheme->help);
            }
        }
    }
}

static const char *const addresses[] = {
    "127.0.0.1:", "HOST:PORT; port 0 picks a free one", "unix:", "a socket file for this user only",
    "stdio",      "whoever started this program",       "any=",  "every wire at one address",
    NULL};

static void offer_listeners(ew__completing *c) {
    const ew_listener_name *name;
    char text[64];
    for (size_t i = 0; (name = ew_listener_name_at(i)) != NULL; i++) {
        if (name->tls || !name->help) {
            continue;
        }
        (void)snprintf(text, sizeof text, "%s=", name->name);
        ew__offer(c, text, name->help);
        (void)snprintf(text, sizeof text, "%s=stdio", name->name);
        if (name->stdio) {
            ew__offer(c, text, name->stdio);
        }
    }
}

static const char *const levels[] = {
    "error", "only what went wrong",       "warn", "and what might", "info", "the default", "debug", "everything",
    "trace", "everything, and all frames", NULL};

static const char *const statuses[] = {"PENDING",   "waits",
                                       "ACTIVE",    "runs",
                                       "RETRYING",  "waits for its next attempt",
                                       "COMPLETED", "done",
                                       "FAILED",    "failed for good",
                                       "CANCELLED", "cancelled",
                                       NULL};

static const char *const stores[] = {"sqlite:", "a file of SQLite", "redis://", "HOST:PORT/DB, RRQ's keys",
                                     "memory",  "gone at the end",  NULL};

static const char *const durations[] = {"500ms", "half a second", "2s", "", "1m", "", "1h", "", NULL};

static const char *const urls[] = {"http://", "", "ws://", "", NULL};

static const char *const inputs[] = {"@", "JSON from a file", "-", "JSON from standard input", NULL};

static const char *const shells[] = {"bash", "", "zsh", "", "fish", "", NULL};

static void offer_wires(ew__completing *c) {
    const ew_wire_info *info;
    for (size_t i = 0; (info = ew_wire_info_at(i)) != NULL; i++) {
        ew__offer(c, info->name, "");
    }
}

static void offer_limits(ew__completing *c) {
#define LIMIT_ROW(member, value, help) ew__offer(c, #member "=", help);
    EW_LIMITS_MAP(LIMIT_ROW)
#undef LIMIT_ROW
}

/* What a help calls an argument or operand, and what fits there. */
static const struct {
    const char *name;
    const char *const *rows;
    void (*offer)(ew__completing *c);
    bool files;
} kinds[] = {
    {"TARGET", NULL, offer_targets, false},
    {"[PREFIX=]TARGET", NULL, offer_targets, false},
    {"ACTION", NULL, ew__offer_actions, false},
    {"INPUT", inputs, NULL, false},
    {"FILE", NULL, NULL, true},
    {"PATH", NULL, NULL, true},
    {"FOLDER", NULL, NULL, true},
    {"DIR", NULL, NULL, true},
    {"ID", NULL, ew__offer_jobs, false},
    {"QUEUE", NULL, ew__offer_queues, false},
    {"STATUS", statuses, NULL, false},
    {"LEVEL", levels, NULL, false},
    {"STORE", stores, NULL, false},
    {"DUR", durations, NULL, false},
    {"URL", urls, NULL, false},
    {"[WIRE=]ADDR", addresses, offer_listeners, false},
    {"NAME=VALUE", NULL, offer_limits, false},
    {"SHELL", shells, NULL, false},
    {"WIRE", NULL, offer_wires, false},
};

static void offer_kind(ew__completing *c, ew_str name) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!ew_str_eq(name, ew_str_from(kinds[i].name))) {
            continue;
        }
        if (kinds[i].rows) {
            offer_rows(c, kinds[i].rows);
        }
        if (kinds[i].offer) {
            kinds[i].offer(c);
        }
        c->files = c->files || kinds[i].files;
    }
    for (size_t at = 0; memchr(name.ptr ? name.ptr : "", '|', name.len) && at < name.len;) { /* one of these words */
        char word[32];
        size_t len = strcspn(name.ptr + at, "| ]");
        len = len < name.len - at ? len : name.len - at;
        (void)snprintf(word, sizeof word, "%.*s", (int)len, name.ptr + at);
        ew__offer(c, word, "");
        at += len + 1;
    }
    if (begins(c->word, "@") || begins(c->word, "sqlite:") || begins(c->word, "unix:") ||
        ew__cli_scheme(c->word)->reach == EW_REACH_UNIX) {
        c->files = true;
    }
}

/* ---- options and operands ---- */

static void offer_options(ew__completing *c, const ew__opt *table) {
    char word[80], help[1024];
    for (const ew__opt *o = table; o && o->name; o++) {
        (void)snprintf(word, sizeof word, "--%s", o->name);
        ew__offer(c, word, ew__wire_option_text(o->help, help, sizeof help));
    }
}

/* The n-th of the operands that a help's line names, "ACTION [INPUT]"; the last one with dots goes on for ever. */
static ew_str operand(const char *words, int n) {
    ew_str last = {NULL, 0};
    for (const char *at = words; *at; n--) {
        size_t len = strcspn(at, " ");
        ew_str name = {at, len};
        bool goes_on = len > 3 && strncmp(at + len - 3, "...", 3) == 0;
        name.len -= goes_on ? 3 : 0;
        if (name.len > 1 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']') {
            name = (ew_str){name.ptr + 1, name.len - 2};
        }
        if (n == 0) {
            return name;
        }
        last = goes_on ? name : (ew_str){NULL, 0};
        at += len + strspn(at + len, " ");
    }
    return last;
}

/* An option at the cursor that has its value in the same word: "--config=FI". */
static bool offer_joined(ew__completing *c, const ew__opt *table) {
    const char *equals = strchr(c->word, '=');
    if (!begins(c->word, "--") || !equals) {
        return false;
    }
    ew_str name = {c->word + 2, (size_t)(equals - c->word) - 2};
    for (const ew__opt *o = table; o && o->name; o++) {
        if (o->arg && ew_str_eq(name, ew_str_from(o->name))) {
            c->before = c->word;
            c->before_len = name.len + 3;
            c->word = equals + 1;
            if (strcmp(o->arg, "[=full]") == 0) {
                ew__offer(c, "full", "nothing is cut");
            }
            offer_kind(c, ew_str_from(o->arg));
        }
    }
    return true;
}

/* Whether the word is an option of the table that takes the next word for its value. */
static const ew__opt *takes_next(const ew__opt *table, const char *word) {
    for (const ew__opt *o = table; o && o->name; o++) {
        bool is_it = begins(word, "--") ? strcmp(word + 2, o->name) == 0
                                        : word[0] == '-' && o->letter && word[1] == o->letter && !word[2];
        if (is_it) {
            return o->arg && !begins(o->arg, "[=") ? o : NULL;
        }
    }
    return NULL;
}

/* The words of a verb, the one at the cursor last. */
static void complete_verb(ew__completing *c, const ew__opt *table, const char *words, int argc, char **argv) {
    int n = 0;
    for (int i = 0; i + 1 < argc; i++) {
        const ew__opt *o = takes_next(table, argv[i]);
        if (o && i + 2 == argc) {
            offer_kind(c, ew_str_from(o->arg));
            return;
        }
        if (o && strcmp(o->name, "store") == 0) {
            c->store = argv[i + 1];
        }
        i += o != NULL;
        if (strcmp(argv[i], "--") == 0) { /* a program and its arguments */
            c->files = true;
            return;
        }
        if (!o && argv[i][0] != '-') {
            c->operands[n < EW__OPERANDS_MAX ? n : EW__OPERANDS_MAX - 1] = argv[i];
            n++;
        }
    }
    if (c->word[0] == '-' && c->word[1]) {
        if (!offer_joined(c, table)) {
            offer_options(c, table);
        }
        return;
    }
    offer_kind(c, operand(words, n));
    if (!*c->word && operand(words, n).len == 0) {
        offer_options(c, table); /* nothing else can follow */
    }
}

static void complete_noun(ew__completing *c, const ew__jobs_noun *noun, int argc, char **argv) {
    bool itself = !*noun->verbs[0].name;
    if (itself) {
        complete_verb(c, noun->verbs[0].options, "", argc, argv);
        return;
    }
    for (const ew__jobs_verb *verb = noun->verbs; verb->name; verb++) {
        if (argc == 1) {
            ew__offer(c, verb->name, verb->summary);
        } else if (strcmp(verb->name, argv[0]) == 0) {
            complete_verb(c, verb->options, verb->words, argc - 1, argv + 1);
        }
    }
}

static void offer_verbs(ew__completing *c, const ew__verb *verbs) {
    for (const ew__verb *verb = verbs; verb->name; verb++) {
        ew__offer(c, verb->name, verb->summary);
    }
}

int ew__complete(const ew__verb *verbs, int argc, char **argv) {
    static char empty[] = "";
    static char *none[] = {empty};
    if (argc < 1) {
        argc = 1;
        argv = none;
    }
    ew__completing c = {.word = argv[argc - 1], .before = ""};
    const ew__verb *verb = verbs;
    while (argc > 1 && verb->name && strcmp(verb->name, argv[0]) != 0) {
        verb++;
    }
    if (argc == 1) {
        offer_verbs(&c, verbs);
        if (c.word[0] == '-') {
            ew__offer(&c, "--help", "show what there is");
            ew__offer(&c, "--version", "show the version");
        }
    } else if (strcmp(argv[0], "help") == 0) {
        offer_verbs(&c, verbs);
    } else if (verb->name && verb->noun) {
        complete_noun(&c, verb->noun, argc - 1, argv + 1);
    } else if (verb->name) {
        complete_verb(&c, verb->options, verb->words ? verb->words : "", argc - 1, argv + 1);
    }
    (void)printf(":%s%s\n", c.files ? " files" : "", c.nospace ? " nospace" : "");
    return EW__EXIT_OK;
}
