/*
 * cli/cmd_describe.c: everywire describe: the descriptor of one action, found by its key or by a name that only one
 * action has.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

void ew__cmd_describe_help(FILE *out) {
    (void)fprintf(out, "Usage: everywire describe TARGET ACTION [OPTIONS] [-- COMMAND ARGS]\n\n"
                       "Shows one action of a peer: its description and the schemas of its input, output and "
                       "chunks.\n\n" EW__TARGET_HELP
                       "  ACTION  a key such as /flow/greet, or a name such as greet\n\nOptions:\n");
    ew__opts_help(out, ew__listing_table);
    (void)fprintf(out, "\nExamples:\n"
                       "  everywire describe http://127.0.0.1:3400 greet\n"
                       "  everywire describe http://127.0.0.1:3400 /tool/sha256 --json\n"
                       "  everywire describe reflection://127.0.0.1:0 greet -- node app.js\n"
                       "  everywire describe stepflow+http://127.0.0.1:8080 /my_component\n");
}

/* What the search has met. The lists are JSON arrays without their closing bracket. */
typedef struct search {
    ew_str wanted;
    ew_str found;
    unsigned n_found;
    unsigned n_near;
    ew__text key;     /* scratch: the key at hand, decoded */
    ew__text matches; /* keys with that name */
    ew__text near;    /* keys with a name like it */
} search;

/* "greet" of "/flow/greet", and of "/greet", which is how Stepflow's servers call theirs; else the key itself. */
static ew_str name_of(ew_str key) {
    if (key.len < 2 || key.ptr[0] != '/') {
        return key;
    }
    const char *slash = memchr(key.ptr + 1, '/', key.len - 1);
    slash = slash ? slash : key.ptr;
    return (ew_str){slash + 1, key.len - (size_t)(slash + 1 - key.ptr)};
}

static ew_err note(ew__text *list, unsigned count, ew_str raw_key) {
    return ew__cli_format(list, count == 0 ? "[%j" : ",%j", raw_key);
}

static ew_err note_if_near(search *s, const ew_json_iter *it, ew_str key) {
    ew__near by_key, by_name;
    ew__near_init(&by_key, s->wanted);
    ew__near_init(&by_name, name_of(s->wanted));
    ew__near_try(&by_key, key);
    ew__near_try(&by_name, name_of(key));
    return by_key.best.ptr || by_name.best.ptr ? note(&s->near, s->n_near++, it->key) : EW_OK;
}

/* Looks at one action; *ret_exact when its key is the wanted one, which ends the search. */
static ew_err look(search *s, const ew_json_iter *it, bool *ret_exact) {
    size_t len = 0;
    s->key.len = 0;
    ew_err err = ew__text_reserve(&s->key, it->key.len);
    if (err != EW_OK || ew_json_string(it->key, s->key.ptr, it->key.len, &len) != EW_OK) {
        return err; /* a key that is no text is none that could be asked for */
    }
    ew_str key = {s->key.ptr, len};
    *ret_exact = ew_str_eq(key, s->wanted);
    if (*ret_exact || ew_str_eq(name_of(key), s->wanted)) {
        s->found = it->value;
        return note(&s->matches, s->n_found++, it->key);
    }
    return note_if_near(s, it, key);
}

static int report(search *s, const char *target) {
    ew__text message = {0}, details = {0};
    ew__text *list = s->n_found > 1 ? &s->matches : &s->near;
    ew_err err = list->len > 0 ? ew__text_cstr(list, "]") : EW_OK;
    ew_status status = s->n_found > 1 ? EW_STATUS_INVALID_ARGUMENT : EW_STATUS_NOT_FOUND;
    (void)ew__text_cstr(&message, s->n_found > 1 ? "several actions are named " : "no action ");
    (void)ew__text_add(&message, s->wanted);
    if (err == EW_OK && list->len > 0) {
        ew_json_iter it = {.offset_ = 0};
        const char *between = s->n_found > 1 ? "; one of " : "; did you mean ";
        while (ew_json_next(ew__text_view(list), &it)) {
            (void)ew__text_cstr(&message, between);
            (void)ew__cli_plain(&message, it.value);
            between = ", ";
        }
        (void)ew__text_cstr(&message, s->n_found > 1 ? "" : "?");
        (void)ew__cli_format(&details, s->n_found > 1 ? "{\"matches\":%j}" : "{\"near\":%j}", ew__text_view(list));
    }
    ew__cli_error(
        &(ew_fault){.status = status, .message = ew__text_view(&message), .details = ew__text_view(&details)});
    if (status == EW_STATUS_NOT_FOUND) {
        ew__cli_hint("what is there shows: everywire list %s", target);
    }
    ew__text_free(&message);
    ew__text_free(&details);
    return EW__EXIT_FAILED;
}

static int show(const ew__listing *listing, ew_str descriptor) {
    if (!listing->json && isatty(STDOUT_FILENO)) {
        ew__cli_pretty(stdout, descriptor);
        return EW__EXIT_OK;
    }
    int err = ew__cli_line(STDOUT_FILENO, "", descriptor, "");
    return err == 0 ? EW__EXIT_OK : err == EPIPE ? EW__EXIT_BROKEN_PIPE : EW__EXIT_FAILED;
}

static int find_and_show(const ew__listing *listing) {
    search s = {.wanted = ew_str_from(listing->action)};
    ew_json_iter it = {.offset_ = 0};
    ew_err err = EW_OK;
    bool exact = false;
    while (err == EW_OK && !exact && ew_json_next(ew__text_view(&listing->text), &it)) {
        err = look(&s, &it, &exact);
    }
    int code;
    if (err != EW_OK) {
        ew__cli_error(&(ew_fault){.status = EW_STATUS_RESOURCE_EXHAUSTED, .message = ew_str_from(ew_err_text(err))});
        code = EW__EXIT_FAILED;
    } else if (exact || s.n_found == 1) {
        code = show(listing, s.found);
    } else {
        code = report(&s, listing->target);
    }
    ew__text_free(&s.key);
    ew__text_free(&s.matches);
    ew__text_free(&s.near);
    return code;
}

int ew__cmd_describe(int argc, char **argv) {
    ew__listing listing = {.verb = "describe"};
    int code = ew__listing_options(&listing, argc, argv, true, ew__cmd_describe_help);
    if (code >= 0) {
        return code;
    }
    code = ew__listing_fetch(&listing);
    if (code == EW__EXIT_OK) {
        code = find_and_show(&listing);
    }
    ew__text_free(&listing.text);
    return code;
}
