/*
 * observe/spans_text.c: the writing side of spans.h: records become one TraceData, with the attributes that Genkit's
 * own runtimes write and in their order.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/json.h"
#include "json/text.h"
#include "observe/spans_record.h"

ew_str ew__span_text(const ew__span *span, ew__span_part which) {
    const char *at = span->bytes;
    for (int i = 0; i < (int)which; i++)
        at += span->len[i];
    return ew__str(at, span->len[which]);
}

static ew_str id(const char *text, size_t n) { return ew__str(text, n); }
#define ID(member) id(member, sizeof(member))

void ew__span_write_ms(ew__buf *out, uint64_t us) {
    ew__buf_u64(out, us / 1000);
    unsigned rest = (unsigned)(us % 1000);
    const char fraction[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10), (char)('0' + rest % 10)};
    if (rest)
        ew__buf_add(out, fraction, sizeof fraction);
}

/* As those who started the call would call it: Genkit by the action, RRQ by what it is to them. */
static void write_name(ew__buf *out, const ew__span *span) {
    ew_str type, name = EW_STR("rrq.runner");
    if (!span->rrq)
        ew__key_split(ew__span_text(span, EW__SPAN_KEY), &type, &name);
    (void)ew__json_write_str(out, name, false);
}

void ew__span_write_text(ew__buf *out, const char *name, ew_str text) {
    ew__buf_cstr(out, ",\"");
    ew__buf_cstr(out, name);
    ew__buf_cstr(out, "\":");
    (void)ew__json_write_str(out, text, false);
}

static void write_labels(ew__buf *out, ew_str labels) {
    ew_json_iter it = {0};
    while (ew_json_typeof(labels) == EW_JSON_OBJECT && ew_json_next(labels, &it)) {
        ew__buf_char(out, ',');
        ew__buf_str(out, it.key);
        ew__buf_char(out, ':');
        ew__buf_str(out, it.value);
    }
}

static bool is_secret(ew_str key) {
    ew_str name = ew__str(key.ptr + 1, key.len - 2);
    return ew__json_name_is(name, EW_STR("auth")) || ew__json_name_is(name, EW_STR("secrets"));
}

/* The context without what is nobody's business, as JSON text. */
static void redact(ew__buf *out, ew_str context) {
    ew_json_iter it = {0};
    if (ew_json_typeof(context) != EW_JSON_OBJECT) {
        ew__buf_str(out, context);
        return;
    }
    bool first = true;
    ew__buf_char(out, '{');
    while (ew_json_next(context, &it)) {
        if (!first)
            ew__buf_char(out, ',');
        first = false;
        ew__buf_str(out, it.key);
        ew__buf_char(out, ':');
        ew__buf_str(out, is_secret(it.key) ? EW_STR("\"<redacted>\"") : it.value);
    }
    ew__buf_char(out, '}');
}

static void write_context(ew__buf *out, ew_str context) {
    ew__buf text;
    if (context.len == 0)
        return;
    ew__buf_init(&text, out->env, out->max);
    redact(&text, context);
    if (text.err == EW_OK)
        ew__span_write_text(out, "genkit:metadata:context", ew__buf_view(&text));
    else if (out->err == EW_OK)
        out->err = text.err;
    ew__buf_done(&text);
}

static void write_path(ew__buf *out, const ew__span *span) {
    ew__buf path;
    ew__buf_init(&path, out->env, out->max);
    (void)ew__trace_path(&path, ew__span_text(span, EW__SPAN_PATH), ew__span_text(span, EW__SPAN_KEY), true);
    if (path.err == EW_OK)
        ew__span_write_text(out, "genkit:path", ew__buf_view(&path));
    else if (out->err == EW_OK)
        out->err = path.err;
    ew__buf_done(&path);
}

static void write_attributes(ew__buf *out, const ew__span *span) {
    ew_str key = ew__span_text(span, EW__SPAN_KEY), type, name;
    bool ok = span->status == EW_STATUS_OK;
    ew__key_split(key, &type, &name);
    ew__buf_cstr(out, "{\"genkit:type\":\"action\"");
    if (type.len) {
        ew__span_write_text(out, "genkit:metadata:subtype", type);
        ew__span_write_text(out, "genkit:key", key);
    }
    write_labels(out, ew__span_text(span, EW__SPAN_LABELS));
    ew__span_write_text(out, "genkit:name", name);
    if (!span->trace.has_parent)
        ew__buf_cstr(out, ",\"genkit:isRoot\":true");
    write_path(out, span);
    if (span->end_us) /* an RRQ runner's start has it, too, for what is read from it */
        write_context(out, ew__span_text(span, EW__SPAN_CONTEXT));
    if (span->len[EW__SPAN_INPUT])
        ew__span_write_text(out, "genkit:input", ew__span_text(span, EW__SPAN_INPUT));
    if (span->end_us && ok)
        ew__span_write_text(out, "genkit:output", ew__span_text(span, EW__SPAN_OUTPUT));
    if (span->end_us)
        ew__span_write_text(out, "genkit:state", ok ? EW_STR("success") : EW_STR("error"));
    if (span->len[EW__SPAN_UPSTREAM])
        ew__span_write_text(out, "everywire:upstreamTraceId", ew__span_text(span, EW__SPAN_UPSTREAM));
    if (!ok)
        ew__buf_cstr(out, ",\"genkit:isFailureSource\":true");
    if (span->rrq)
        ew__span_write_rrq(out, span);
    ew__buf_char(out, '}');
}

static void write_event(ew__buf *out, const ew__span *span) {
    ew_str message = ew__span_text(span, EW__SPAN_OUTPUT);
    const char *type = ew_status_name((ew_status)span->status);
    ew__buf_cstr(out, "{\"time\":");
    ew__span_write_ms(out, span->end_us);
    (void)ew__buf_printf(out, ",\"annotation\":{\"attributes\":{\"exception.type\":\"%s\"", type);
    ew__span_write_text(out, "exception.message", message);
    (void)ew__buf_printf(out, ",\"exception.stacktrace\":\"%s: ", type);
    size_t quote = out->len; /* the message goes on in the string that is open */
    (void)ew__json_write_str(out, message, false);
    if (out->err == EW_OK)
        memmove(out->ptr + quote, out->ptr + quote + 1, --out->len - quote);
    ew__buf_cstr(out, "},\"description\":\"exception\"}}");
}

static void write_outcome(ew__buf *out, const ew__span *span) {
    bool ok = span->status == EW_STATUS_OK;
    ew__buf_cstr(out, ok ? ",\"status\":{\"code\":0" : ",\"status\":{\"code\":2");
    if (!ok)
        ew__span_write_text(out, "message", ew__span_text(span, EW__SPAN_OUTPUT));
    ew__buf_cstr(out, "},\"timeEvents\":{\"timeEvent\":[");
    if (!ok)
        write_event(out, span);
    ew__buf_cstr(out, "]}");
}

static void write_span(ew__buf *out, const ew__span *span) {
    ew__buf_cstr(out, "{\"spanId\":\"");
    ew__buf_str(out, ID(span->trace.span_id));
    ew__buf_cstr(out, "\",\"traceId\":\"");
    ew__buf_str(out, ID(span->trace.trace_id));
    ew__buf_cstr(out, "\",\"startTime\":");
    ew__span_write_ms(out, span->start_us);
    ew__buf_cstr(out, ",\"endTime\":");
    ew__span_write_ms(out, span->end_us);
    ew__buf_cstr(out, ",\"attributes\":");
    write_attributes(out, span);
    ew__buf_cstr(out, ",\"displayName\":");
    write_name(out, span);
    ew__buf_cstr(out, span->outgoing ? ",\"links\":[],\"spanKind\":\"CLIENT\""
                      : span->rrq    ? ",\"links\":[],\"spanKind\":\"CONSUMER\""
                                     : ",\"links\":[],\"spanKind\":\"INTERNAL\"");
    if (span->trace.has_parent) {
        ew__buf_cstr(out, ",\"parentSpanId\":\"");
        ew__buf_str(out, ID(span->trace.parent_id));
        ew__buf_char(out, '"');
    }
    bool ours = !span->trace.has_parent || span->len[EW__SPAN_PATH] > 0;
    ew__buf_cstr(out, ours ? ",\"sameProcessAsParentSpan\":{\"value\":true}"
                           : ",\"sameProcessAsParentSpan\":{\"value\":false}");
    write_outcome(out, span);
    if (span->truncated)
        ew__buf_cstr(out, ",\"truncated\":true");
    ew__buf_cstr(out, ",\"instrumentationLibrary\":{\"name\":\"everywire\",\"version\":\"" EW_VERSION_STRING "\"}}");
}

void ew__spans_write(ew__buf *out, const ew__span *first, uint32_t n) {
    const ew__span *root = NULL, *span = first;
    ew__buf_cstr(out, "{\"traceId\":\"");
    ew__buf_str(out, ID(first->trace.trace_id));
    ew__buf_cstr(out, "\",\"spans\":{");
    for (uint32_t i = 0; i < n; i++, span = span->next) {
        ew__buf_cstr(out, i ? ",\"" : "\"");
        ew__buf_str(out, ID(span->trace.span_id));
        ew__buf_cstr(out, "\":");
        write_span(out, span);
        if (!span->trace.has_parent)
            root = span;
    }
    ew__buf_char(out, '}');
    if (root) {
        ew__buf_cstr(out, ",\"displayName\":");
        write_name(out, root);
        ew__buf_cstr(out, ",\"startTime\":");
        ew__span_write_ms(out, root->start_us);
        ew__buf_cstr(out, ",\"endTime\":");
        ew__span_write_ms(out, root->end_us);
    }
    ew__buf_char(out, '}');
}
