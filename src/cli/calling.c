/*
 * cli/calling.c: what the verbs that call an action share: TARGET ACTION [INPUT], what goes along with the call, how the
 * peer is reached. An option that a client takes stands here once, and every such verb has it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include <string.h>

static int read_label(ew__calling *c, const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        return ew__cli_usagef(c->verb, "--label %.80s: not K=V", text);
    }
    ew_str name = {text, (size_t)(equals - text)};
    if (ew_json_member(ew__text_view(&c->labels), name).ptr) {
        return ew__cli_usagef(c->verb, "--label %.80s: that name stands twice", text);
    }
    if (c->labels.len > 0) {
        c->labels.len--; /* the closing brace comes again */
    }
    ew_err err = ew__cli_format(&c->labels, c->labels.len > 0 ? ",%q:%Q}" : "{%q:%Q}", name, equals + 1);
    return err == EW_OK ? 0 : ew__cli_usagef(c->verb, "--label: %s", ew_err_text(err));
}

/* VERSION-TRACE-SPAN-FLAGS in lower-case hex digits. The library would begin a new trace in place of a bad one. */
static int read_traceparent(ew__calling *c, const char *text) {
    static const char form[] = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    size_t i = 0;
    while (form[i] && text[i] && (form[i] == '-' ? text[i] == '-' : strchr("0123456789abcdef", text[i]) != NULL)) {
        i++;
    }
    if (form[i] || text[i]) {
        return ew__cli_usagef(c->verb, "--traceparent %.80s: not VERSION-TRACE-SPAN-FLAGS in hexadecimal digits", text);
    }
    c->traceparent = text;
    return 0;
}

static int take_word(ew__calling *c, const char *word) {
    if (c->n_words == 3) {
        char first = c->words[2][0];
        return ew__cli_usagef(c->verb, "unexpected word %.80s%s", word,
                              first == '{' || first == '[' ? "; INPUT is one word: put it in single quotes, '{...}'"
                                                           : "");
    }
    c->words[c->n_words++] = word;
    return -1;
}

int ew__calling_take(ew__calling *c, ew__opts *opts, int id) {
    int bad = 0;
    if (ew__tls_option(&c->tls, id, opts->value)) {
        return -1;
    }
    switch (id) {
    case EW__CALLING_TRACEPARENT:
        bad = read_traceparent(c, opts->value);
        break;
    case EW__CALLING_TELEMETRY:
        c->telemetry = opts->value;
        break;
    case EW__CALLING_TOKEN:
        c->token = opts->value;
        break;
    case EW__CALLING_BLOBS:
        c->blobs = opts->value;
        break;
    case EW__CALLING_TIMEOUT:
        bad = ew__cli_read_timeout(c->verb, opts->value, &c->timeout_ms);
        break;
    case EW__CALLING_LABEL:
        bad = read_label(c, opts->value);
        break;
    case EW__CALLING_CONTEXT:
        ew__text_free(&c->context);
        bad = ew__cli_read_json(c->verb, "--context", opts->value, false, &c->context);
        break;
    case EW__CALLING_VERBOSE:
        bad = ew__verbose_take(&c->verbose, c->verb, opts->value);
        break;
    case EW__OPT_WORD:
        return take_word(c, opts->value);
    case EW__OPT_BAD:
        return ew__cli_usage(c->verb, opts->problem);
    default:
        c->command = (char **)opts->argv + opts->at;
        opts->at = opts->argc; /* what follows -- is not ours */
    }
    return bad ? bad : -1;
}

int ew__calling_complete(ew__calling *c) {
    if (c->n_words < 2) {
        return ew__cli_usage(c->verb, c->n_words == 0 ? "TARGET and ACTION are missing" : "ACTION is missing");
    }
    int bad = c->n_words < 3 ? 0 : ew__cli_read_json(c->verb, "INPUT", c->words[2], true, &c->input);
    return bad ? bad : -1;
}

ew_client_options ew__calling_with(ew__calling *c) {
    ew_client_options with = {.command = (const char *const *)c->command,
                              .telemetry = c->telemetry,
                              .blobs = c->blobs,
                              .token = c->token,
                              .tls = c->tls};
    ew__verbose_with(&c->verbose, &with);
    return with;
}

ew_request_options ew__calling_request(const ew__calling *c) {
    return (ew_request_options){
        .action = ew_str_from(c->words[1]),
        .input = ew__text_view(&c->input),
        .context = ew__text_view(&c->context),
        .labels = ew__text_view(&c->labels),
        .traceparent = ew_str_from(c->traceparent),
        .timeout_ms = c->timeout_ms,
    };
}

int ew__calling_refused(const ew__calling *c, const ew_client *client, const ew_request_options *opts, ew_err err) {
    if (err == EW_EUNSUPPORTED) {
        const char *why = ew_client_refuses(client, opts);
        return ew__cli_usagef(c->verb, "%.200s cannot carry this: %s", c->words[0], why ? why : ew_err_text(err));
    }
    if (err == EW_EINVAL || err == EW_ESYNTAX || err == EW_ELIMIT) {
        return ew__cli_usagef(c->verb, "%s", err == EW_EINVAL ? "that is no name for an action" : ew_err_text(err));
    }
    ew__cli_error(&(ew_fault){.status = EW_STATUS_INTERNAL, .message = ew_str_from(ew_err_text(err))});
    return EW__EXIT_FAILED;
}

void ew__calling_done(ew__calling *c) {
    ew__text_free(&c->input);
    ew__text_free(&c->context);
    ew__text_free(&c->labels);
}
