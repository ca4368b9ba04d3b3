/*
 * cli/cmd_list.c: everywire list: the actions of a peer, as one JSON object or, on a terminal, as a table.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

void ew__cmd_list_help(FILE *out) {
    (void)fprintf(out, "Usage: everywire list TARGET [OPTIONS] [-- COMMAND ARGS]\n\n"
                       "Shows the actions of a peer: one JSON object, key to descriptor; on a terminal a table.\n\n");
    ew__cli_target_help(out);
    (void)fputs("\nOptions:\n", out);
    ew__opts_help(out, ew__listing_table, ew__wire_option_text);
    ew__cli_wires(out, "\nExamples:\n<<list>>");
}

/* One row; the key column is `width` wide. */
static ew_err print_row(ew__text *row, const ew_json_iter *it, size_t width, const char *bold, const char *plain) {
    row->len = 0;
    ew_err err = ew__cli_plain(row, it->key);
    size_t key_len = row->len;
    if (err == EW_OK) {
        err = ew__cli_plain(row, ew_json_member(it->value, EW_STR("description")));
    }
    if (err != EW_OK) {
        return err;
    }
    (void)printf("%s%.*s%s", bold, (int)key_len, row->ptr, plain);
    (void)printf("%*s%.*s\n", (int)(key_len < width ? width - key_len + 2 : 2), "", (int)(row->len - key_len),
                 row->ptr + key_len);
    return EW_OK;
}

static int print_table(const ew__listing *listing) {
    bool colour = ew__cli_colour(STDOUT_FILENO);
    const char *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
    ew_str text = ew__text_view(&listing->text);
    size_t width = 0;
    ew__text row = {0};
    ew_json_iter it = {.offset_ = 0};
    ew_err err = EW_OK;
    while (ew_json_next(text, &it)) {
        width = it.key.len - 2 > width && it.key.len < 60 ? it.key.len - 2 : width;
    }
    it = (ew_json_iter){.offset_ = 0};
    while (err == EW_OK && ew_json_next(text, &it)) {
        err = print_row(&row, &it, width, bold, plain);
    }
    ew__text_free(&row);
    if (width == 0) {
        ew__cli_hint("%s offers no actions", listing->target);
    }
    return err == EW_OK ? EW__EXIT_OK : EW__EXIT_FAILED;
}

int ew__cmd_list(int argc, char **argv) {
    ew__listing listing = {.verb = "list"};
    int code = ew__listing_options(&listing, argc, argv, false, ew__cmd_list_help);
    if (code >= 0) {
        return code;
    }
    code = ew__listing_fetch(&listing);
    if (code == EW__EXIT_OK && !listing.json && isatty(STDOUT_FILENO)) {
        code = print_table(&listing);
    } else if (code == EW__EXIT_OK) {
        int err = ew__cli_line(STDOUT_FILENO, "", ew__text_view(&listing.text), "");
        code = err == 0 ? EW__EXIT_OK : err == EPIPE ? EW__EXIT_BROKEN_PIPE : EW__EXIT_FAILED;
    }
    ew__text_free(&listing.text);
    return code;
}
