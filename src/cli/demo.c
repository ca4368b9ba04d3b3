/*
 * cli/demo.c: the demo actions that answer in one piece, the table of all of them, and the little helpers. The
 * streaming ones are in demo_stream.c and demo_sum.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/sha256.h"
#include "cli/cli.h"
#include "cli/demo.h"
#include <string.h>

/* ---- helpers ---- */

/* An integer; one with more digits than int64_t holds counts as the largest. */
static bool read_integer(ew_str value, int64_t *ret) {
    if (ew_json_int64(value, ret) == EW_OK) {
        return true;
    }
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9') {
            return false;
        }
    }
    *ret = INT64_MAX;
    return value.len > 0;
}

bool ew__demo_int(ew_call *call, const char *name, int64_t min, int64_t max, ew_status above_max, int64_t *ret) {
    ew_str input = ew_call_input(call);
    ew_json_type type = ew_json_typeof(input);
    char message[160];
    int64_t number = *ret;
    if (type == EW_JSON_NULL) {
        return true;
    }
    if (type != EW_JSON_OBJECT) {
        (void)snprintf(message, sizeof message, "the input must be an object such as {\"%s\":%lld}", name,
                       (long long)*ret);
        (void)ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT, message);
        return false;
    }
    ew_str value = ew_json_member(input, ew_str_from(name));
    if (value.ptr && (!read_integer(value, &number) || number < min || number > max)) {
        (void)snprintf(message, sizeof message, "%s must be an integer from %lld to %lld", name, (long long)min,
                       (long long)max);
        (void)ew_call_fail(call, number > max ? above_max : EW_STATUS_INVALID_ARGUMENT, message);
        return false;
    }
    *ret = number;
    return true;
}

bool ew__demo_sent(ew_call *call, ew_err err) {
    if (err >= EW_OK) {
        return true;
    }
    if (err == EW_ECANCELLED) {
        (void)ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
    } else if (err != EW_EENDED && err != EW_ELIMIT) {
        (void)ew_call_fail(call, EW_STATUS_INTERNAL, ew_err_text(err));
    }
    return false;
}

void ew__demo_later(ew_call *call, uint64_t ms, ew_call_fn fn, void *arg) {
    (void)ew__demo_sent(call, ew_call_after(call, ms, fn, arg));
}

void ew__demo_on_room(ew_call *call, ew_call_fn fn, void *arg) {
    (void)ew__demo_sent(call, ew_call_on_room(call, fn, arg));
}

static void cancelled(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_fail(call, EW_STATUS_CANCELLED, NULL);
}

/*
 * Asked before, because a call that is cancelled already would end inside ew_call_on_cancel and must not be touched
 * after it.
 */
bool ew__demo_mind_cancel(ew_call *call) {
    if (ew_call_cancelled(call)) {
        cancelled(call, NULL);
        return false;
    }
    return ew_call_on_cancel(call, cancelled, NULL) == EW_OK;
}

/* ---- echo ---- */

static void echo(ew_call *call, void *arg) {
    (void)arg;
    (void)ew_call_done(call, ew_call_input(call));
}

/* ---- greet ---- */

#define NAME_MAX_BYTES 4096
#define HELLO "Hello,"

/* The name's JSON string: the input itself or its member; ptr NULL when nobody is named. */
static ew_str greet_name(ew_str input) {
    return ew_json_typeof(input) == EW_JSON_OBJECT ? ew_json_member(input, EW_STR("name")) : input;
}

static void greet(ew_call *call, void *arg) {
    (void)arg;
    char text[sizeof HELLO + NAME_MAX_BYTES + 2] = HELLO " ";
    char *name = text + sizeof HELLO;
    ew_str value = greet_name(ew_call_input(call));
    size_t len = 5;
    if (!value.ptr || ew_json_typeof(value) == EW_JSON_NULL) {
        memcpy(name, "world", len);
    } else {
        ew_err err = ew_json_string(value, name, NAME_MAX_BYTES, &len);
        if (err != EW_OK) {
            (void)ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT,
                               err == EW_ELIMIT ? "the name is longer than 4096 bytes" : "the name must be a string");
            return;
        }
    }
    name[len] = '!';
    ew_str whole = {text, sizeof HELLO + len + 1};
    ew_str rest = {whole.ptr + sizeof HELLO - 1, whole.len - (sizeof HELLO - 1)};
    /* two small chunks: they may be sent without waiting for room */
    if (ew__demo_sent(call, ew_call_chunk(call, EW_STR("\"" HELLO "\""))) &&
        ew__demo_sent(call, ew_call_chunkf(call, "%q", rest))) {
        (void)ew_call_donef(call, "%q", whole);
    }
}

/* ---- sleep ---- */

static void slept(ew_call *call, void *arg) {
    (void)arg;
    int64_t ms = 1000;
    if (ew__demo_int(call, "ms", 0, EW__DEMO_MS_MAX, EW_STATUS_INVALID_ARGUMENT, &ms)) {
        (void)ew_call_donef(call, "{\"slept_ms\":%lld}", (long long)ms);
    }
}

static void sleep_action(ew_call *call, void *arg) {
    (void)arg;
    int64_t ms = 1000;
    if (ew__demo_int(call, "ms", 0, EW__DEMO_MS_MAX, EW_STATUS_INVALID_ARGUMENT, &ms) && ew__demo_mind_cancel(call)) {
        ew__demo_later(call, (uint64_t)ms, slept, NULL);
    }
}

/* ---- fail ---- */

/* A string member, decoded into the call's memory; fallback when it is missing. False: the call was ended. */
static bool fail_text(ew_call *call, const char *name, ew_str fallback, ew_str *ret) {
    ew_str value = ew_json_member(ew_call_input(call), ew_str_from(name));
    if (!value.ptr || ew_json_typeof(value) == EW_JSON_NULL) {
        *ret = fallback;
        return true;
    }
    char *text = ew_call_alloc(call, value.len + 1);
    size_t len = 0;
    ew_err err = text ? ew_json_string(value, text, value.len, &len) : EW_ENOMEM;
    if (err != EW_OK) {
        (void)ew_call_fail(call, err == EW_ENOMEM ? EW_STATUS_RESOURCE_EXHAUSTED : EW_STATUS_INVALID_ARGUMENT,
                           err == EW_ENOMEM ? NULL : "status and message must be strings");
        return false;
    }
    *ret = (ew_str){text, len};
    return true;
}

/* Seconds, also parts of one. False: the call was ended. */
static bool fail_retry(ew_call *call, ew_fault *fault) {
    ew_str value = ew_json_member(ew_call_input(call), EW_STR("retry_after"));
    if (!value.ptr || ew_json_typeof(value) == EW_JSON_NULL) {
        return true;
    }
    double seconds;
    if (ew_json_double(value, &seconds) != EW_OK || seconds < 0 || seconds > 86400 * 365) {
        (void)ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT, "retry_after must be a number of seconds, at most a year");
        return false;
    }
    fault->retryable = true;
    fault->retry_after_ms = (uint64_t)(seconds * 1000 + 0.5);
    return true;
}

static void fail(ew_call *call, void *arg) {
    (void)arg;
    ew_str input = ew_call_input(call), status;
    ew_fault fault = {.status = EW_STATUS_INTERNAL};
    ew_json_type type = ew_json_typeof(input);
    if (type != EW_JSON_OBJECT && type != EW_JSON_NULL) {
        (void)ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT,
                           "the input must be an object such as {\"status\":\"NOT_FOUND\"}");
        return;
    }
    if (!fail_text(call, "status", EW_STR("INTERNAL"), &status) ||
        !fail_text(call, "message", EW_STR("it was asked to fail"), &fault.message) || !fail_retry(call, &fault)) {
        return;
    }
    if (ew_status_from_name(status, &fault.status) != EW_OK || fault.status == EW_STATUS_OK) {
        (void)ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT, "status must be the name of a failure, such as NOT_FOUND");
        return;
    }
    fault.details = ew_json_member(input, EW_STR("details"));
    if (ew_json_typeof(fault.details) == EW_JSON_NULL) {
        fault.details = (ew_str){NULL, 0};
    }
    (void)ew_call_fail_with(call, &fault);
}

/* ---- context ---- */

static ew_str number_or_null(bool known, long long number, char *buf, size_t size) {
    int n = known ? ew_json_format(buf, size, "%lld", number) : 0;
    return (ew_str){n > 0 ? buf : NULL, n > 0 ? (size_t)n : 0}; /* an empty slice is written as null */
}

static void context(ew_call *call, void *arg) {
    (void)arg;
    char deadline[24], attempt[24];
    int64_t ms = ew_call_deadline_ms(call);
    uint32_t n = ew_call_attempt(call);
    (void)ew_call_donef(
        call,
        "{\"wire\":%q,\"key\":%q,\"context\":%j,\"labels\":%j,\"trace_id\":%q,\"span_id\":%q,\"deadline_ms\":%j,"
        "\"attempt\":%j}",
        ew_call_wire(call), ew_call_key(call), ew_call_context(call), ew_call_labels(call), ew_call_trace_id(call),
        ew_call_span_id(call), number_or_null(ms >= 0, ms, deadline, sizeof deadline),
        number_or_null(n > 0, n, attempt, sizeof attempt));
}

/* ---- big ---- */

#define BIG_MAX (15 * 1024 * 1024) /* with its envelope still below the 16 MiB that one message may have */

static void big(ew_call *call, void *arg) {
    (void)arg;
    int64_t bytes = 1024;
    if (!ew__demo_int(call, "bytes", 0, BIG_MAX, EW_STATUS_OUT_OF_RANGE, &bytes)) {
        return;
    }
    size_t n = (size_t)bytes;
    char *text = ew_call_alloc(call, n + 2);
    if (!text) {
        (void)ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, "no memory for that many bytes");
        return;
    }
    text[0] = text[n + 1] = '"';
    for (size_t i = 0; i < n; i++) {
        text[1 + i] = (char)('a' + i % 26);
    }
    (void)ew_call_done(call, (ew_str){text, n + 2});
}

/* ---- sha256: runs on a worker thread ---- */

static void sha256(ew_call *call, void *arg) {
    (void)arg;
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[EW__SHA256_SIZE];
    char text[66] = "\"";
    ew_str input = ew_call_input(call);
    ew__sha256_of(input.ptr, input.len, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        text[1 + 2 * i] = digits[digest[i] >> 4];
        text[2 + 2 * i] = digits[digest[i] & 15];
    }
    text[65] = '"';
    (void)ew_call_done(call, (ew_str){text, sizeof text});
}

/* ---- the table: greet comes first, because ew_app_main suggests to call the first action ---- */

static const struct {
    const char *key;
    ew_handler_fn handler;
    ew_action_options options;
} actions[] = {
    {"/flow/greet",
     greet,
     {.description = "Greets by name, in two chunks",
      .input_schema = "{\"anyOf\":[{\"type\":\"object\",\"properties\":{\"name\":{\"type\":[\"string\",\"null\"],"
                      "\"default\":\"world\"}}},"
                      "{\"type\":\"string\"},{\"type\":\"null\"}],\"examples\":[{\"name\":\"Ada\"}]}",
      .output_schema = "{\"type\":\"string\"}",
      .stream_schema = "{\"type\":\"string\"}"}},
    {"/flow/echo",
     echo,
     {.description = "Returns its input, byte for byte", .input_schema = "{}", .output_schema = "{}"}},
    {"/flow/count",
     ew__demo_count,
     {.description = "Counts from 1 to n, one chunk each, with a pause between them",
      .input_schema = "{\"type\":[\"object\",\"null\"],\"properties\":{"
                      "\"n\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":10000000,\"default\":10},"
                      "\"delay_ms\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":86400000,\"default\":0}},"
                      "\"examples\":[{\"n\":5,\"delay_ms\":200}]}",
      .output_schema =
          "{\"type\":\"object\",\"properties\":{\"count\":{\"type\":\"integer\"}},\"required\":[\"count\"]}",
      .stream_schema = "{\"type\":\"object\",\"properties\":{\"i\":{\"type\":\"integer\"}},\"required\":[\"i\"]}"}},
    {"/flow/sleep",
     sleep_action,
     {.description = "Waits without a thread; ends at once when cancelled",
      .input_schema = "{\"type\":[\"object\",\"null\"],\"properties\":{"
                      "\"ms\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":86400000,\"default\":1000}},\"examples\":"
                      "[{\"ms\":500}]}",
      .output_schema =
          "{\"type\":\"object\",\"properties\":{\"slept_ms\":{\"type\":\"integer\"}},\"required\":[\"slept_ms\"]}"}},
    {"/flow/fail",
     fail,
     {.description = "Fails as it is told to",
      .input_schema = "{\"type\":[\"object\",\"null\"],\"properties\":{\"status\":{\"type\":[\"string\",\"null\"],"
                      "\"default\":\"INTERNAL\"},"
                      "\"message\":{\"type\":[\"string\",\"null\"]},\"details\":{},"
                      "\"retry_after\":{\"type\":[\"number\",\"null\"],\"minimum\":0,\"description\":\"seconds; marks "
                      "it retryable\"}},"
                      "\"examples\":[{\"status\":\"NOT_FOUND\",\"message\":\"no such thing\"}]}",
      .output_schema = "{}"}},
    {"/flow/stream",
     ew__demo_stream,
     {.description = "Streams n chunks as fast as they are taken, returns its input",
      .input_schema =
          "{\"description\":\"any JSON, which is returned; only an object can say how many\",\"properties\":{"
          "\"n\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":10000000,\"default\":100}},\"examples\":[{\"n\":3}]}",
      .output_schema = "{}",
      .stream_schema =
          "{\"type\":\"object\",\"properties\":{\"index\":{\"type\":\"integer\"},\"text\":{\"type\":\"string\"}},"
          "\"required\":[\"index\",\"text\"]}",
      .unchecked_output = true}}, /* benchmarks count its chunks, not the checking of them */
    {"/flow/sum",
     ew__demo_sum,
     {.description = "Adds the numbers of its input stream, or of an array; streams the running total",
      .input_schema =
          "{\"items\":{\"type\":\"number\"},\"description\":\"an array of numbers; with an input stream it is not "
          "looked at\",\"examples\":[[1,2,3]]}",
      .output_schema = "{\"type\":\"number\"}",
      .stream_schema = "{\"type\":\"number\"}",
      .input_stream = true}},
    {"/flow/context",
     context,
     {.description = "Returns what arrived with the call",
      .input_schema = "{}",
      .output_schema =
          "{\"type\":\"object\",\"properties\":{\"wire\":{\"type\":\"string\"},\"key\":{\"type\":\"string\"},"
          "\"context\":{},"
          "\"labels\":{\"type\":[\"object\",\"null\"]},\"trace_id\":{\"type\":[\"string\",\"null\"]},\"span_id\":{"
          "\"type\":"
          "[\"string\",\"null\"]},"
          "\"deadline_ms\":{\"type\":[\"integer\",\"null\"]},\"attempt\":{\"type\":[\"integer\",\"null\"]}}}"}},
    {"/flow/big",
     big,
     {.description = "Returns a string of that many letters",
      .input_schema =
          "{\"type\":[\"object\",\"null\"],\"properties\":{"
          "\"bytes\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"at most 15 MiB\",\"default\":1024}},"
          "\"examples\":[{\"bytes\":100}]}",
      .output_schema = "{\"type\":\"string\"}"}},
    {"/tool/sha256",
     sha256,
     {.description = "The SHA-256 digest of the input's JSON text, made on a worker thread",
      .input_schema = "{}",
      .output_schema = "{\"type\":\"string\",\"pattern\":\"^[0-9a-f]{64}$\"}",
      .may_block = true}},
};

ew_err ew__demo_register(ew_app *app) {
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        ew_err err = ew_app_action(app, actions[i].key, actions[i].handler, NULL, &actions[i].options);
        if (err != EW_OK) {
            return err;
        }
    }
    return EW_OK;
}
