/*
 * cli/cmd_describe.c: everywire describe: one action, found by its key or by a name that only one action has: its
 * descriptor, or on a terminal what that says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/explain.h"
#include "cli/find.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

void ew__cmd_describe_help(FILE *out) {
    (void)fprintf(out, "Usage: everywire describe TARGET ACTION [OPTIONS] [-- COMMAND ARGS]\n\n"
                       "Shows one action of a peer: its description and the schemas of its input, output and "
                       "chunks.\n\n");
    ew__cli_target_help(out);
    (void)fputs("  ACTION  a key such as /flow/greet, or a name such as greet\n\nOptions:\n", out);
    ew__opts_help(out, ew__listing_table, ew__wire_option_text);
    ew__cli_wires(out, "\nExamples:\n<<describe>>");
}

static int report(const ew__cli_match *found, const char *wanted, const char *target) {
    ew__text message = {0}, details = {0};
    bool several = found->n > 1;
    ew_str list = ew__text_view(several ? &found->matches : &found->near);
    ew_status status = several ? EW_STATUS_INVALID_ARGUMENT : EW_STATUS_NOT_FOUND;
    (void)ew__text_cstr(&message, several ? "several actions are named " : "no action ");
    (void)ew__text_cstr(&message, wanted);
    if (list.len > 0) {
        (void)ew__text_cstr(&message, several ? "; one of " : "; did you mean ");
        (void)ew__cli_match_names(list, &message);
        (void)ew__text_cstr(&message, several ? "" : "?");
        (void)ew__cli_format(&details, several ? "{\"matches\":%j}" : "{\"near\":%j}", list);
    }
    ew__cli_error(
        &(ew_fault){.status = status, .message = ew__text_view(&message), .details = ew__text_view(&details)});
    if (!several) {
        ew__cli_hint("what is there shows: everywire list %s", target);
    }
    ew__text_free(&message);
    ew__text_free(&details);
    return EW__EXIT_FAILED;
}

static int show(const ew__listing *listing, const ew__cli_match *found) {
    if (!listing->json && isatty(STDOUT_FILENO)) {
        ew__explain(stdout, &(ew__explained){.target = listing->target,
                                             .action = listing->action,
                                             .command = listing->command,
                                             .key = found->key,
                                             .descriptor = found->descriptor});
        return fflush(stdout) == 0 ? EW__EXIT_OK : EW__EXIT_BROKEN_PIPE;
    }
    int err = ew__cli_line(STDOUT_FILENO, "", found->descriptor, "");
    return err == 0 ? EW__EXIT_OK : err == EPIPE ? EW__EXIT_BROKEN_PIPE : EW__EXIT_FAILED;
}

static int find_and_show(const ew__listing *listing) {
    ew__cli_match found;
    ew_err err = ew__find_action(ew__text_view(&listing->text), ew_str_from(listing->action), &found);
    int code;
    if (err != EW_OK) {
        ew__cli_error(&(ew_fault){.status = EW_STATUS_RESOURCE_EXHAUSTED, .message = ew_str_from(ew_err_text(err))});
        code = EW__EXIT_FAILED;
    } else {
        code = found.n == 1 ? show(listing, &found) : report(&found, listing->action, listing->target);
    }
    ew__cli_match_done(&found);
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
