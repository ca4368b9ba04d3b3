/*
 * cli/cmd_call.c: everywire call: one call, its chunks and its result as lines of JSON.
 *
 * Chunks are written on the client's loop thread, on purpose: when the reader of our output is slow, the loop stops
 * reading from the peer, and the peer is told to wait. The main thread watches the time, the signal thread the user, so
 * that a stalled output holds neither of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/explain.h"
#include "cli/find.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { OPT_STREAM = EW__CALLING_OWN, OPT_INPUT_STREAM, OPT_QUIET, OPT_HELP };

const ew__opt ew__cmd_call_options[] = {
    {"stream", 's', NULL, "print each chunk as it comes: {\"chunk\":...} lines, then {\"result\":...}", OPT_STREAM},
    {"input-stream", 0, NULL, "send each line of standard input as one input chunk (<<input>>)", OPT_INPUT_STREAM},
    EW__CALLING_OPTIONS('t'),
    {"quiet", 'q', NULL, "no hints, and no line that tells what is waited for", OPT_QUIET},
    {"help", 'h', NULL, "show this", OPT_HELP},
    {NULL, 0, NULL, NULL, 0},
};

#define LINE_MAX_BYTES ((size_t)16 * 1024 * 1024)
#define GRACE_MS 1000
#define LOOK_MS 5000 /* for a list of actions, before or after the call that is asked for */

/* One run of the verb. */
typedef struct job {
    ew__calling calling;
    bool stream;
    bool input_stream;
    ew__waiting waiting;
    atomic_bool ended;
    atomic_int write_error; /* errno of standard output, or 0 */
} job;

void ew__cmd_call_help(FILE *out) {
    (void)fprintf(out, "Usage: everywire call TARGET ACTION [INPUT] [OPTIONS] [-- COMMAND ARGS]\n\n"
                       "Calls an action and prints its result as one line of JSON.\n\n");
    ew__cli_target_help(out);
    ew__cli_wires(out, "  ACTION  a key such as /flow/greet, or a name such as greet<<action>>\n"
                       "  INPUT   JSON text, @file, or - for standard input; without it: null, on <<object>> {}; at a\n"
                       "          terminal an action that wants one is explained instead\n\nOptions:\n");
    ew__opts_help(out, ew__cmd_call_options, ew__wire_option_text);
    (void)fprintf(
        out, "\nExit codes: 0 done, 1 the action failed, 2 bad usage, 3 peer not reached or lost, 4 peer broke the\n"
             "protocol, 5 the timeout passed, 130 interrupted. A failed call prints {\"error\":{...}} on\n"
             "standard error.\n"
             "\nExamples:\n");
    ew__cli_wires(out, "<<call>>");
}

/* ---- options ---- */

/* -1: go on; else the exit code. */
static int take_option(job *j, ew__opts *opts, int id) {
    switch (id) {
    case OPT_STREAM:
        j->stream = true;
        return -1;
    case OPT_INPUT_STREAM:
        j->input_stream = true;
        return -1;
    case OPT_QUIET:
        ew__cli_quiet();
        return -1;
    case OPT_HELP:
        ew__cmd_call_help(stdout);
        return EW__EXIT_OK;
    default:
        return ew__calling_take(&j->calling, opts, id);
    }
}

static int read_options(job *j, int argc, char **argv) {
    ew__opts opts;
    ew__opts_init(&opts, ew__cmd_call_options, argc, argv, 0);
    for (int id = ew__opts_next(&opts); id != EW__OPT_END; id = ew__opts_next(&opts)) {
        int code = take_option(j, &opts, id);
        if (code >= 0) {
            return code;
        }
    }
    const char *input = j->calling.words[2];
    if (j->input_stream && input && strcmp(input, "-") == 0) {
        return ew__cli_usage("call", "standard input cannot be both INPUT and --input-stream");
    }
    return ew__calling_complete(&j->calling);
}

/* ---- the call ---- */

static void on_chunk(ew_request *request, ew_str chunk, void *ud) {
    job *j = ud;
    atomic_fetch_add(&j->waiting.chunks, 1);
    if (atomic_load(&j->write_error) != 0) {
        return;
    }
    int err = ew__cli_line(STDOUT_FILENO, "{\"chunk\":", chunk, "}");
    if (err != 0) {
        atomic_store(&j->write_error, err);
        ew_request_cancel(request); /* nobody reads on: the peer should not go on either */
    }
}

static void on_end(ew_request *request, const ew_end *end, void *ud) {
    (void)request;
    (void)end;
    atomic_store(&((job *)ud)->ended, true);
}

static bool is_blank(ew_str line) {
    size_t i = 0;
    while (i < line.len && (line.ptr[i] == ' ' || line.ptr[i] == '\t' || line.ptr[i] == '\r')) {
        i++;
    }
    return i == line.len;
}

/* Sends the whole lines of the buffer and drops them. 0, or an exit code after a message. */
static int send_lines(ew_request *request, ew__text *pending, bool last) {
    for (;;) {
        ew_str all = ew__text_view(pending);
        const char *newline = all.len > 0 ? memchr(all.ptr, '\n', all.len) : NULL;
        if (!newline && !(last && all.len > 0)) {
            return 0;
        }
        ew_str line = {all.ptr, newline ? (size_t)(newline - all.ptr) : all.len};
        ew_err err = is_blank(line) ? EW_OK : ew_request_send(request, line);
        if (err < 0 && err != EW_EENDED) {
            ew_request_cancel(request);
            return ew__cli_usagef("call", "input chunk: %s", ew_err_text(err));
        }
        if (err == EW_FULL) {
            (void)ew_request_wait_room(request, 0);
        }
        ew__text_drop(pending, line.len + (newline ? 1 : 0));
    }
}

/* Standard input, line by line, until it ends or the call does. */
static int send_input(job *j, ew_request *request) {
    ew__text pending = {0};
    int bad = 0;
    bool open = true;
    while (open && !bad && !atomic_load(&j->ended)) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&in, 1, 100) <= 0) {
            continue; /* look whether the call has ended */
        }
        if (pending.len > LINE_MAX_BYTES || ew__text_reserve(&pending, 64 * 1024) != EW_OK) {
            ew_request_cancel(request);
            bad = ew__cli_usage("call", "a line of the input stream is too long");
            break;
        }
        ssize_t n = read(STDIN_FILENO, pending.ptr + pending.len, 64 * 1024);
        open = n > 0 || (n < 0 && errno == EINTR);
        pending.len += n > 0 ? (size_t)n : 0;
        bad = send_lines(request, &pending, !open);
    }
    if (!bad) {
        (void)ew_request_send_end(request);
    }
    ew__text_free(&pending);
    return bad;
}

/* The end of a call that did not come although its time was over: its loop hangs on our standard output. */
static void stalled(void) {
    ew__cli_error(&(ew_fault){.status = EW_STATUS_DEADLINE_EXCEEDED,
                              .message = EW_STR("the deadline passed while standard output was stalled")});
    _exit(EW__EXIT_DEADLINE);
}

static int finish(job *j, const ew_end *end, int signal_number) {
    int write_error = atomic_load(&j->write_error);
    if (end->status == EW_STATUS_OK && write_error == 0) {
        write_error = ew__cli_line(STDOUT_FILENO, j->stream ? "{\"result\":" : "", end->result, j->stream ? "}" : "");
    }
    if (write_error == EPIPE) {
        return EW__EXIT_BROKEN_PIPE;
    }
    if (write_error != 0) {
        (void)fprintf(stderr, "everywire call: cannot write to standard output: %s\n", strerror(write_error));
        return EW__EXIT_FAILED;
    }
    if (end->status != EW_STATUS_OK && signal_number != 0) {
        return EW__EXIT_SIGNAL + signal_number;
    }
    return ew__cli_ending("call", j->calling.words[0], j->calling.words[1], end);
}

static void stop(void *ud) { ew_request_cancel(ud); }

/* ---- with somebody at the terminal ---- */

/* What the peer lists, if it does so soon. The request is the caller's to free, in any case. The signal that came, or 0. */
static int look_at_list(ew_client *client, ew_request **ret_request, ew_end *ret_end) {
    *ret_end = (ew_end){.status = EW_STATUS_UNKNOWN};
    if (ew_client_list(client, &(ew_request_options){.timeout_ms = LOOK_MS}, ret_request) != EW_OK) {
        return 0;
    }
    ew__interrupt *interrupt = ew__interrupt_start(stop, *ret_request);
    (void)ew_request_wait(*ret_request, LOOK_MS + GRACE_MS, ret_end);
    return ew__interrupt_end(interrupt);
}

/* Whether there is such an action in a list that has come. */
static bool find(const job *j, const ew_end *end, ew__cli_match *found) {
    return end->status == EW_STATUS_OK && ew_json_typeof(end->result) == EW_JSON_OBJECT &&
           ew__find_action(end->result, ew_str_from(j->calling.words[1]), found) == EW_OK;
}

static void print_explanation(const ew__calling *calling, const ew__cli_match *found) {
    (void)fprintf(stderr, "everywire call: %.200s wants an INPUT\n\n", calling->words[1]);
    ew__explain(stderr, &(ew__explained){.target = calling->words[0],
                                         .action = calling->words[1],
                                         .command = calling->command,
                                         .key = found->key,
                                         .descriptor = found->descriptor});
}

/*
 * Without INPUT an action that wants one is explained, not called; only where somebody sits at both ends, so that scripts
 * get what they always got. -1: go on with the call; else the exit code.
 */
static int explain(job *j, ew_client *client) {
    const ew__calling *calling = &j->calling;
    ew_request *request = NULL;
    ew__cli_match found = {.n = 0};
    ew_end end;
    int code = -1;
    if (calling->n_words > 2 || j->input_stream || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return -1;
    }
    ew__waiting_begin(&j->waiting, client);
    int signal_number = look_at_list(client, &request, &end);
    ew__progress_end();
    bool object = ew__cli_can(calling->words[0]) & EW_WIRE_OBJECT;
    if (signal_number) {
        code = EW__EXIT_SIGNAL + signal_number;
    } else if (end.status != EW_STATUS_OK && end.origin == EW_ORIGIN_CONNECT) {
        code = ew__cli_ending("call", calling->words[0], calling->words[1], &end); /* the call would not get further */
    } else if (find(j, &end, &found) && found.n == 1 && ew__explain_wants_input(found.descriptor, object)) {
        print_explanation(calling, &found);
        code = EW__EXIT_USAGE;
    }
    ew__cli_match_done(&found);
    (void)ew_request_free(request);
    return code;
}

/* There is no such action, or it has not found something: only the list tells. In the first case, what there is. */
static void suggest(job *j, ew_client *client) {
    ew_request *request = NULL;
    ew__cli_match found = {.n = 0};
    ew__text names = {0};
    ew_end end;
    if (!isatty(STDERR_FILENO)) {
        return;
    }
    (void)look_at_list(client, &request, &end);
    if (find(j, &end, &found) && found.n == 0) {
        if (found.n_near > 0 && ew__cli_match_names(ew__text_view(&found.near), &names) == EW_OK) {
            ew__cli_hint("did you mean %.*s?", (int)names.len, names.ptr);
        }
        ew__cli_hint("what is there shows: everywire list %s", j->calling.words[0]);
    }
    ew__text_free(&names);
    ew__cli_match_done(&found);
    (void)ew_request_free(request);
}

/* ---- all ---- */

static int run(job *j, ew_client *client) {
    ew__calling *calling = &j->calling;
    ew_request *request = NULL;
    ew_request_options opts = ew__calling_request(calling);
    opts.stream = j->stream;
    opts.input_stream = j->input_stream;
    opts.on_chunk = j->stream ? on_chunk : NULL;
    opts.on_end = on_end;
    opts.ud = j;
    ew_err err = ew_client_call(client, &opts, &request);
    if (err != EW_OK) {
        return ew__calling_refused(calling, client, &opts, err);
    }
    ew__text_free(&calling->input); /* the request has its own copy */
    ew__interrupt *interrupt = ew__interrupt_start(stop, request);
    ew__waiting_begin(&j->waiting, client);
    int bad = j->input_stream ? send_input(j, request) : 0;
    ew_end end;
    if (ew_request_wait(request, calling->timeout_ms > 0 ? calling->timeout_ms + GRACE_MS : 0, &end) != EW_OK) {
        stalled();
    }
    ew__progress_end();
    int signal_number = ew__interrupt_end(interrupt);
    int code = bad ? bad : finish(j, &end, signal_number);
    if (code == EW__EXIT_FAILED && end.status == EW_STATUS_NOT_FOUND) {
        suggest(j, client);
    }
    (void)ew_request_free(request);
    return code;
}

int ew__cmd_call(int argc, char **argv) {
    job j = {.calling = {.verb = "call"}};
    ew_client *client = NULL;
    int code = read_options(&j, argc, argv);
    if (code < 0) {
        ew__interrupt_block(); /* before the client makes its thread */
        ew_client_options with = ew__calling_with(&j.calling);
        j.waiting = (ew__waiting){.target = j.calling.words[0], .what = j.calling.words[1]};
        ew__waiting_with(&j.waiting, &with);
        code = ew__cli_client("call", j.calling.words[0], &with, &client);
    }
    if (client) {
        code = explain(&j, client);
        code = code < 0 ? run(&j, client) : code;
        (void)ew_client_free(client);
    }
    ew__calling_done(&j.calling);
    return code;
}
