/*
 * cli/cmd_token.c: everywire token: makes, lists and revokes the tokens that callers show.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/when.h"
#include "cli/cli.h"
#include <string.h>
#include <unistd.h>

enum { OPT_NAME = 1, OPT_ACTION, OPT_WIRE, OPT_EXPIRES, OPT_TOKENS, OPT_JSON, OPT_HELP };
#define LIST_MAX 64

const ew__opt ew__cmd_token_options[] = {
    {"name", 0, "NAME", "new: what it is listed and revoked by; without it: one is made up", OPT_NAME},
    {"action", 0, "PATTERN",
     "new: it is for this action only, a key such as /flow/greet or a pattern such as\n"
     "'/flow/*'; may be repeated; without it: for all",
     OPT_ACTION},
    {"wire", 0, "WIRE",
     "new: it is for this wire only, http, jsonrpc, reflection, rrq or stepflow; may be\nrepeated; without it: for all",
     OPT_WIRE},
    {"expires", 0, "DUR", "new: it ends after that time, 30m, 12h, 720h; without it: when it is revoked", OPT_EXPIRES},
    {"tokens", 0, "FILE",
     "the file of tokens; without it EVERYWIRE_TOKENS, or everywire/tokens in\nXDG_STATE_HOME or ~/.local/state",
     OPT_TOKENS},
    {"json", 'j', NULL, "print JSON also on a terminal", OPT_JSON},
    {"help", 'h', NULL, "show this", OPT_HELP},
    {NULL, 0, NULL, NULL, 0},
};

typedef struct wish {
    const char *words[2];
    size_t n_words;
    const char *file;
    const char *name;
    const char *actions[LIST_MAX + 1], *wires[LIST_MAX + 1];
    size_t n_actions, n_wires;
    uint64_t lasts_ms;
    bool json;
    bool table; /* list: for people */
    size_t n;   /* list: that were printed */
} wish;

void ew__cmd_token_help(FILE *out) {
    (void)fprintf(out, "Usage: everywire token new [OPTIONS]\n"
                       "       everywire token list [OPTIONS]\n"
                       "       everywire token revoke NAME [OPTIONS]\n\n"
                       "Tokens are what callers show to a server that asks for them (serve --tokens, or a\n"
                       "listener beyond loopback). A new one is printed once, and only its digest is kept.\n"
                       "Servers that run notice a change within a second.\n\nOptions:\n");
    ew__opts_help(out, ew__cmd_token_options, ew__wire_option_text);
    (void)fprintf(out, "\nExamples:\n"
                       "  everywire token new --name ci --action '/flow/*' --wire http --expires 720h\n"
                       "  everywire serve --demo --allow-remote --listen 0.0.0.0:3400\n"
                       "  everywire call http://host:3400 greet '{\"name\":\"Ada\"}' --token @ci.token\n"
                       "  everywire token revoke ci\n");
}

static int add(const char **list, size_t *n, const char *what, const char *value) {
    if (*n == LIST_MAX) {
        return ew__cli_usagef("token", "more than %d times %s", LIST_MAX, what);
    }
    list[(*n)++] = value;
    return -1;
}

static int read_expires(wish *w, const char *text) {
    if (ew__duration_parse(ew_str_from(text), &w->lasts_ms) != EW_OK || w->lasts_ms == 0) {
        return ew__cli_usagef("token", "--expires %.80s: not a duration such as 30m, 12h, 720h", text);
    }
    return -1;
}

/* -1: go on; else the exit code. */
static int take(wish *w, ew__opts *opts, int id) {
    switch (id) {
    case OPT_NAME:
        w->name = opts->value;
        return -1;
    case OPT_ACTION:
        return add(w->actions, &w->n_actions, "--action", opts->value);
    case OPT_WIRE:
        return add(w->wires, &w->n_wires, "--wire", opts->value);
    case OPT_EXPIRES:
        return read_expires(w, opts->value);
    case OPT_TOKENS:
        w->file = opts->value;
        return -1;
    case OPT_JSON:
        w->json = true;
        return -1;
    case OPT_HELP:
        ew__cmd_token_help(stdout);
        return EW__EXIT_OK;
    case EW__OPT_WORD:
        if (w->n_words < 2) {
            w->words[w->n_words++] = opts->value;
            return -1;
        }
        return ew__cli_usagef("token", "unexpected word %.80s", opts->value);
    case EW__OPT_BAD:
        return ew__cli_usage("token", opts->problem);
    default:
        return ew__cli_usage("token", "unexpected --");
    }
}

static int failed(ew_err err, const char *problem) {
    if (err == EW_EINVAL) {
        return ew__cli_usage("token", problem);
    }
    (void)fprintf(stderr, "everywire token: %s\n", *problem ? problem : ew_err_text(err));
    return EW__EXIT_FAILED;
}

static int make(wish *w) {
    char token[EW_TOKEN_SIZE], problem[512] = "";
    ew_token_options options = {.name = w->name,
                                .actions = w->n_actions ? w->actions : NULL,
                                .wires = w->n_wires ? w->wires : NULL,
                                .lasts_ms = w->lasts_ms};
    ew_err err = ew_token_new(w->file, &options, token, problem, sizeof problem);
    if (err != EW_OK) {
        return failed(err, problem);
    }
    int bad = ew__cli_line(STDOUT_FILENO, token, EW_STR(""), "");
    ew__cli_hint("this is the only time it is shown; callers give it as --token @FILE or EVERYWIRE_TOKEN");
    return bad ? EW__EXIT_FAILED : EW__EXIT_OK;
}

static ew_err add_texts(ew__text *out, const ew_str *texts, size_t n) {
    ew_err err = ew__cli_format(out, "[");
    for (size_t i = 0; i < n && err == EW_OK; i++) {
        err = ew__cli_format(out, "%s%q", i ? "," : "", texts[i]);
    }
    return err == EW_OK ? ew__cli_format(out, "]") : err;
}

static void when_text(int64_t ms, char out[EW__WHEN_LEN + 1]) {
    ew__when_write(ms > 0 ? (uint64_t)ms : 0, out);
    out[EW__WHEN_LEN] = 0;
}

static void print_json(const ew_token_info *token) {
    char created[EW__WHEN_LEN + 1], expires[EW__WHEN_LEN + 1];
    ew__text line = {0};
    when_text(token->created_ms, created);
    ew_err err = ew__cli_format(&line, "{\"name\":%q,\"created\":%Q,\"expires\":", token->name, created);
    if (err == EW_OK && token->expires_ms == INT64_MAX) {
        err = ew__cli_format(&line, "null");
    } else if (err == EW_OK) {
        when_text(token->expires_ms, expires);
        err = ew__cli_format(&line, "%Q", expires);
    }
    if (err == EW_OK) {
        err = ew__cli_format(&line, ",\"expired\":%s,\"actions\":", token->expired ? "true" : "false");
    }
    if (err == EW_OK) {
        err = add_texts(&line, token->actions, token->n_actions);
    }
    if (err == EW_OK) {
        err = ew__cli_format(&line, ",\"wires\":");
    }
    if (err == EW_OK) {
        err = add_texts(&line, token->wires, token->n_wires);
    }
    if (err == EW_OK) {
        (void)ew__cli_line(STDOUT_FILENO, "", ew__text_view(&line), "}");
    }
    ew__text_free(&line);
}

static void print_texts(const ew_str *texts, size_t n) {
    (void)printf("%s", n ? "" : "all");
    for (size_t i = 0; i < n; i++) {
        (void)printf("%s%.*s", i ? "," : "", (int)texts[i].len, texts[i].ptr);
    }
}

static void print_row(const ew_token_info *token) {
    char expires[EW__WHEN_LEN + 1] = "never";
    if (token->expires_ms != INT64_MAX) {
        when_text(token->expires_ms, expires);
    }
    (void)printf("%-20.*s  %-24s  ", (int)token->name.len, token->name.ptr, token->expired ? "expired" : expires);
    print_texts(token->wires, token->n_wires);
    (void)printf("  ");
    print_texts(token->actions, token->n_actions);
    (void)printf("\n");
}

static void each(const ew_token_info *token, void *ud) {
    wish *w = ud;
    if (w->table && w->n == 0) {
        (void)printf("%-20s  %-24s  %s  %s\n", "NAME", "EXPIRES", "WIRES", "ACTIONS");
    }
    w->n++;
    if (w->table) {
        print_row(token);
    } else {
        print_json(token);
    }
}

static int list(wish *w) {
    char problem[512] = "";
    w->table = !w->json && isatty(STDOUT_FILENO);
    ew_err err = ew_token_list(w->file, each, w, problem, sizeof problem);
    if (err == EW_OK && w->n == 0) {
        ew__cli_hint("there are no tokens; everywire token new makes one");
    }
    return err == EW_OK ? EW__EXIT_OK : failed(err, problem);
}

static int remove_one(wish *w) {
    char problem[512] = "";
    if (w->n_words < 2) {
        return ew__cli_usage("token", "revoke what? everywire token list shows the names");
    }
    ew_err err = ew_token_revoke(w->file, w->words[1], problem, sizeof problem);
    return err == EW_OK ? EW__EXIT_OK : failed(err, problem);
}

int ew__cmd_token(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(wish *w);
    } verbs[] = {{"new", make}, {"list", list}, {"revoke", remove_one}};
    wish w = {.n_words = 0};
    ew__opts opts;
    ew__opts_init(&opts, ew__cmd_token_options, argc, argv, 0);
    for (int id = ew__opts_next(&opts); id != EW__OPT_END; id = ew__opts_next(&opts)) {
        int code = take(&w, &opts, id);
        if (code >= 0) {
            return code;
        }
    }
    bool making = w.name || w.n_actions || w.n_wires || w.lasts_ms;
    for (size_t i = 0; w.n_words && i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(w.words[0], verbs[i].name) != 0) {
            continue;
        }
        if ((i != 2 && w.n_words > 1) || (i != 0 && making)) {
            return ew__cli_usagef("token", "%s takes no such words or options; everywire token --help", w.words[0]);
        }
        return verbs[i].run(&w);
    }
    return ew__cli_usage("token", "want new, list or revoke NAME");
}
