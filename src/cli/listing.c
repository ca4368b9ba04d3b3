/*
 * cli/listing.c: asks a peer for its actions: what list and describe have in common. How they are shown is the verbs'
 * own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include <string.h>

enum { OPT_TIMEOUT = 1, OPT_JSON, OPT_TELEMETRY, OPT_TOKEN, OPT_VERBOSE, OPT_QUIET, OPT_HELP };

const ew__opt ew__listing_table[] = {
    {"json", 'j', NULL, "print JSON also on a terminal", OPT_JSON},
    {"timeout", 't', "DUR",
     "give up after that time; 500ms, 2s, 1m, 1h, or seconds; 10s, <<awaited>>, and\n<<slow>> with -- 45s",
     OPT_TIMEOUT},
    {"token", 0, "TOKEN|@FILE", EW__TOKEN_HELP, OPT_TOKEN},
    {"telemetry", 0, "URL", "the telemetry server that runtimes are told of (<<telemetry>>)", OPT_TELEMETRY},
    EW__TLS_OPTIONS,
    EW__VERBOSE_OPTION(OPT_VERBOSE),
    {"quiet", 'q', NULL, "no hints, and no line that tells what is waited for", OPT_QUIET},
    {"help", 'h', NULL, "show this", OPT_HELP},
    {NULL, 0, NULL, NULL, 0},
};

#define DEFAULT_TIMEOUT_MS (10 * 1000)
#define AWAITED_TIMEOUT_MS (45 * 1000) /* longer than the library waits for a peer to come up, which tells more */

static int take_word(ew__listing *listing, const char *word, bool with_action) {
    if (!listing->target) {
        listing->target = word;
    } else if (with_action && !listing->action) {
        listing->action = word;
    } else {
        return ew__cli_usagef(listing->verb, "unexpected word %.80s", word);
    }
    return -1;
}

int ew__listing_options(ew__listing *listing, int argc, char **argv, bool with_action, void (*help)(FILE *)) {
    ew__opts opts;
    ew__opts_init(&opts, ew__listing_table, argc, argv, 0);
    listing->timeout_ms = UINT64_MAX; /* not given */
    for (int id = ew__opts_next(&opts); id != EW__OPT_END; id = ew__opts_next(&opts)) {
        int code = -1;
        if (ew__tls_option(&listing->tls, id, opts.value)) {
            continue;
        }
        switch (id) {
        case OPT_TIMEOUT:
            code = ew__cli_read_timeout(listing->verb, opts.value, &listing->timeout_ms);
            code = code == 0 ? -1 : code;
            break;
        case OPT_VERBOSE:
            code = ew__verbose_take(&listing->verbose, listing->verb, opts.value);
            code = code == 0 ? -1 : code;
            break;
        case OPT_QUIET:
            ew__cli_quiet();
            break;
        case OPT_JSON:
            listing->json = true;
            break;
        case OPT_TELEMETRY:
            listing->telemetry = opts.value;
            break;
        case OPT_TOKEN:
            listing->token = opts.value;
            break;
        case OPT_HELP:
            help(stdout);
            return EW__EXIT_OK;
        case EW__OPT_WORD:
            code = take_word(listing, opts.value, with_action);
            break;
        case EW__OPT_BAD:
            return ew__cli_usage(listing->verb, opts.problem);
        default:
            listing->command = argv + opts.at;
            opts.at = argc; /* what follows -- is not ours */
        }
        if (code >= 0) {
            return code;
        }
    }
    if (!listing->target || (with_action && !listing->action)) {
        return ew__cli_usagef(listing->verb, "%s is missing", listing->target ? "ACTION" : "TARGET");
    }
    if (listing->timeout_ms == UINT64_MAX) {
        const ew_scheme *scheme = ew__cli_scheme(listing->target);
        bool slow = scheme->reach == EW_REACH_LISTEN || (listing->command && scheme->slow_start);
        listing->timeout_ms = slow ? AWAITED_TIMEOUT_MS : DEFAULT_TIMEOUT_MS;
    }
    return -1;
}

/* Reports the end of a list that failed. A deadline is usually the default one, so the message names it. */
static int report(const ew__listing *listing, const ew_end *end) {
    char text[160];
    ew_end shown = *end;
    if (end->origin == EW_ORIGIN_DEADLINE) {
        (void)snprintf(text, sizeof text,
                       "the peer did not send its list of actions within %g s; --timeout changes this",
                       (double)listing->timeout_ms / 1000);
        shown.fault.message = ew_str_from(text);
    }
    return ew__cli_ending(listing->verb, listing->target, NULL, &shown);
}

/* Keeps the answer; an answer that is no object breaks the protocol. */
static int keep(ew__listing *listing, const ew_end *end) {
    int code = report(listing, end);
    if (code != EW__EXIT_OK) {
        return code;
    }
    if (ew_json_typeof(end->result) != EW_JSON_OBJECT) {
        ew__cli_error(&(ew_fault){.status = EW_STATUS_INTERNAL,
                                  .message = EW_STR("the peer's list of actions is no JSON object")});
        return EW__EXIT_PROTOCOL;
    }
    if (ew__text_add(&listing->text, end->result) != EW_OK) {
        ew__cli_error(&(ew_fault){.status = EW_STATUS_RESOURCE_EXHAUSTED, .message = EW_STR("out of memory")});
        return EW__EXIT_FAILED;
    }
    return EW__EXIT_OK;
}

int ew__listing_fetch(ew__listing *listing) {
    ew_client *client = NULL;
    ew_request *request = NULL;
    ew_client_options with = {.command = (const char *const *)listing->command,
                              .telemetry = listing->telemetry,
                              .token = listing->token,
                              .tls = listing->tls};
    ew__waiting waiting = {.target = listing->target, .what = "the list of actions"};
    ew__verbose_with(&listing->verbose, &with);
    ew__waiting_with(&waiting, &with);
    int code = ew__cli_client(listing->verb, listing->target, &with, &client);
    if (code != EW__EXIT_OK) {
        return code;
    }
    ew_request_options opts = {.timeout_ms = listing->timeout_ms};
    ew_end end;
    ew_err err = ew_client_list(client, &opts, &request);
    if (err == EW_OK) {
        ew__waiting_begin(&waiting, client);
        err = ew_request_wait(request, 0, &end);
        ew__progress_end();
    }
    if (err == EW_OK) {
        code = keep(listing, &end);
    } else {
        ew__cli_error(&(ew_fault){.status = EW_STATUS_INTERNAL, .message = ew_str_from(ew_err_text(err))});
        code = EW__EXIT_FAILED;
    }
    (void)ew_request_free(request);
    (void)ew_client_free(client);
    return code;
}
