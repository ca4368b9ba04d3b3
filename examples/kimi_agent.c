/*
 * An agent for the Kimi wire: the program that a Kimi SDK starts and talks to on standard input and output. It shows a
 * server that speaks first: while `prompt` runs it sends events (notifications) and asks its client for leave (a
 * request), on the connection that the prompt came on.
 *     everywire call jsonrpc+stdio: prompt '{"user_input":"hi"}' -- kimi_agent --wire
 * The "model" repeats what it was told; its one tool counts letters. Everything runs on one loop, so nothing is locked.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/everywire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROTOCOL "1.7"
#define APPROVAL_MS ((uint64_t)10 * 60 * 1000) /* for somebody to read a question and to answer it */
#define UUID_LEN 36

typedef struct turn turn;

/* One per process: there is one client. */
typedef struct agent {
    turn *running;
    bool plan_mode;
    bool trusted; /* the tool was approved for the whole session */
} agent;

/* Lives in the memory of its prompt. */
struct turn {
    agent *agent;
    ew_call *call; /* the prompt */
    bool over;     /* it was answered */
    ew_str text;   /* what the user said, as a JSON string */
    char id[UUID_LEN + 1];
};

/* ---- speaking first ---- */

/* Sends {"type":TYPE,"payload":PAYLOAD} to the client, as a notification unless request says otherwise. */
static ew_err tell_args(turn *t, const char *type, ew_request_options request, const char *format, const ew_arg *args,
                        size_t n_args) {
    int n = ew_json_format_args(NULL, 0, format, args, n_args);
    size_t room = n < 0 ? 0 : (size_t)n + strlen(type) + 32;
    char *payload = room ? malloc(2 * room) : NULL;
    if (!payload)
        return n < 0 ? (ew_err)n : EW_ENOMEM;
    (void)ew_json_format_args(payload, room, format, args, n_args);
    char *params = payload + room;
    int len = ew_json_format(params, room, "{\"type\":%Q,\"payload\":%s}", type, payload);
    request.action = request.notify ? EW_STR("event") : EW_STR("request");
    request.input = (ew_str){params, (size_t)len};
    ew_err err = ew_call_back(t->call, &request, NULL);
    free(payload);
    return err;
}

#define tell(t, type, request, ...) tell_args(t, type, request, EW_FORMAT(__VA_ARGS__))
#define EVENT ((ew_request_options){.notify = true})

/* The text must be a JSON string already. */
static void tell_text(turn *t, ew_str text) {
    (void)tell(t, "ContentPart", EVENT, "{\"type\":\"text\",\"text\":%j}", text);
}

/* ---- a turn ---- */

/* The prompt's answer comes last: the client takes it for the end of the turn. */
static void end_turn(turn *t, const char *status) {
    (void)tell(t, "TurnEnd", EVENT, "{}");
    t->over = true;
    t->agent->running = NULL;
    ew_call_donef(t->call, "{\"status\":%Q}", status); /* t may be gone with it */
}

static void interrupt(turn *t) {
    (void)tell(t, "StepInterrupted", EVENT, "{}");
    end_turn(t, "cancelled");
}

/* The client has gone, or took its prompt back by $/cancelRequest. */
static void on_cancel(ew_call *call, void *arg) {
    (void)call;
    interrupt(arg);
}

static void finish(turn *t, bool approved) {
    int letters = 0;
    size_t len = 0;
    char *text = ew_call_alloc(t->call, t->text.len);
    if (!text || ew_json_string(t->text, text, t->text.len, &len) != EW_OK)
        len = 0; /* an unpaired surrogate is not text */
    for (size_t i = 0; i < len; i++)
        letters += (text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z';
    if (approved)
        (void)tell(t, "ToolResult", EVENT,
                   "{\"tool_call_id\":\"call-%s\",\"return_value\":{\"is_error\":false,\"output\":\"%d\","
                   "\"message\":\"counted\",\"display\":[]}}",
                   t->id, letters);
    else
        (void)tell(t, "ToolResult", EVENT,
                   "{\"tool_call_id\":\"call-%s\",\"return_value\":{\"is_error\":true,\"output\":\"\","
                   "\"message\":\"rejected by the user\",\"display\":[]}}",
                   t->id);
    (void)tell(t, "StepBegin", EVENT, "{\"n\":2}");
    tell_text(t, approved ? EW_STR("\"I have counted.\"") : EW_STR("\"Then I will not count.\""));
    (void)tell(t, "StatusUpdate", EVENT, "{\"context_usage\":0.0}");
    end_turn(t, "finished");
}

static bool is(ew_str string, const char *other) {
    char text[32];
    size_t n = 0;
    return ew_json_string(string, text, sizeof text, &n) == EW_OK && ew_str_eq((ew_str){text, n}, ew_str_from(other));
}

/* The client's word. It may come when the turn is over, or never: then the library ends the request. */
static void on_approval(ew_request *request, const ew_end *end, void *ud) {
    turn *t = ud;
    (void)request;
    if (!t->over) {
        ew_str word = end->status == EW_STATUS_OK ? ew_json_get(end->result, "/response") : EW_STR("");
        bool always = is(word, "approve_for_session");
        bool approved = always || is(word, "approve");
        t->agent->trusted = t->agent->trusted || always;
        (void)tell(t, "ApprovalResponse", EVENT, "{\"request_id\":%Q,\"response\":%j}", t->id,
                   approved ? word : EW_STR("\"reject\""));
        finish(t, approved);
    }
    ew_call_unref(t->call);
}

/* Clients answer an approval by the payload's id: the id of the request must be the same. */
static void ask(turn *t) {
    ew_call_ref(t->call); /* the turn lives in it, and must still be there when the answer comes */
    ew_request_options request = {.id = {t->id, UUID_LEN}, .timeout_ms = APPROVAL_MS, .on_end = on_approval, .ud = t};
    ew_err err = tell(t, "ApprovalRequest", request,
                      "{\"id\":%Q,\"tool_call_id\":\"call-%s\",\"sender\":\"Count\",\"action\":\"count letters\","
                      "\"description\":\"Count the letters of the prompt\",\"display\":[]}",
                      t->id, t->id);
    if (err != EW_OK) {
        finish(t, false);
        ew_call_unref(t->call);
    }
}

/* A trace id is 32 random digits: cut like a UUID of version 4 it is one. */
static void make_id(turn *t, ew_str digits) {
    size_t n = 0;
    for (size_t i = 0; i < digits.len && n < UUID_LEN; i++) {
        if (i == 8 || i == 12 || i == 16 || i == 20)
            t->id[n++] = '-';
        t->id[n++] = i == 12 ? '4' : i == 16 ? 'a' : digits.ptr[i];
    }
    t->id[n] = 0;
}

/* What the user said: a string, or the first text among the parts. */
static ew_str text_of(ew_str input) {
    ew_str said = ew_json_get(input, "/user_input");
    ew_json_iter part = {0};
    while (ew_json_typeof(said) == EW_JSON_ARRAY && ew_json_next(said, &part)) {
        ew_str text = ew_json_get(part.value, "/text");
        if (ew_json_typeof(text) == EW_JSON_STRING)
            return text;
    }
    return ew_json_typeof(said) == EW_JSON_STRING ? said : EW_STR("\"\"");
}

static void prompt(ew_call *call, void *arg) {
    agent *a = arg;
    turn *t = a->running ? NULL : ew_call_alloc(call, sizeof *t);
    if (!t) {
        ew_call_fail(call, a->running ? EW_STATUS_FAILED_PRECONDITION : EW_STATUS_RESOURCE_EXHAUSTED,
                     a->running ? "a turn is already running" : NULL);
        return;
    }
    *t = (turn){.agent = a, .call = call, .text = text_of(ew_call_input(call))};
    make_id(t, ew_call_trace_id(call));
    a->running = t;
    ew_call_on_cancel(call, on_cancel, t);
    (void)tell(t, "TurnBegin", EVENT, "{\"user_input\":%j}", ew_json_get(ew_call_input(call), "/user_input"));
    (void)tell(t, "StepBegin", EVENT, "{\"n\":1}");
    tell_text(t, EW_STR("\"You said: \""));
    tell_text(t, t->text);
    (void)tell(t, "ToolCall", EVENT,
               "{\"type\":\"function\",\"id\":\"call-%s\",\"function\":{\"name\":\"Count\",\"arguments\":\"{}\"}}",
               t->id);
    if (a->trusted)
        finish(t, true);
    else
        ask(t);
}

/* ---- the other methods ---- */

static void initialize(ew_call *call, void *arg) {
    (void)arg;
    ew_call_donef(call,
                  "{\"protocol_version\":%Q,\"server\":{\"name\":\"kimi_agent\",\"version\":%Q},"
                  "\"slash_commands\":[],\"capabilities\":{\"supports_question\":false}}",
                  PROTOCOL, EW_VERSION_STRING);
}

/* Answered in any case, also when nothing runs: clients send it after every turn. */
static void cancel(ew_call *call, void *arg) {
    agent *a = arg;
    ew_call_done(call, EW_STR("{}"));
    if (a->running)
        interrupt(a->running);
}

static void steer(ew_call *call, void *arg) {
    agent *a = arg;
    if (!a->running) {
        ew_call_fail(call, EW_STATUS_FAILED_PRECONDITION, "no turn is running");
        return;
    }
    tell_text(a->running, text_of(ew_call_input(call)));
    ew_call_done(call, EW_STR("{\"status\":\"steered\"}"));
}

static void set_plan_mode(ew_call *call, void *arg) {
    agent *a = arg;
    bool on = false;
    if (!ew_call_input_bool(call, "/enabled", &on))
        return; /* it is not a boolean: the call has failed */
    a->plan_mode = on;
    ew_call_donef(call, "{\"status\":\"ok\",\"plan_mode\":%b}", a->plan_mode);
}

/* This agent keeps nothing of former turns. */
static void replay(ew_call *call, void *arg) {
    (void)arg;
    ew_call_done(call, EW_STR("{\"status\":\"finished\",\"events\":0,\"requests\":0}"));
}

int main(int argc, char **argv) {
    agent a = {0};
    if (argc > 1 && strcmp(argv[1], "info") == 0) {
        puts("{\"wire_protocol_version\":\"" PROTOCOL "\"}");
        return 0;
    }
    ew_app *app = ew_app_new_with("kimi_agent", &(ew_app_options){.threads = 1});
    if (!app)
        return 1;
    ew_app_action(app, "/agent/initialize", initialize, &a, NULL);
    ew_app_action(app, "/agent/prompt", prompt, &a, NULL);
    ew_app_action(app, "/agent/cancel", cancel, &a, NULL);
    ew_app_action(app, "/agent/steer", steer, &a, NULL);
    ew_app_action(app, "/agent/set_plan_mode", set_plan_mode, &a, NULL);
    ew_app_action(app, "/agent/replay", replay, &a, NULL);
    ew_err err = ew_app_listen(app, "jsonrpc=stdio");
    if (err == EW_OK)
        err = ew_app_start(app);
    if (err == EW_OK)
        (void)ew_app_wait(app); /* until standard input ends; SIGTERM ends the process as it ends any other */
    else
        fprintf(stderr, "kimi_agent: %s\n", ew_app_error(app));
    ew_app_free(app);
    return err == EW_OK ? 0 : 1;
}
