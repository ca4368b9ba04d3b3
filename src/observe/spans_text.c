/*
 * observe/spans_text.c: the writing side of spans.h: records become one TraceData, with the attributes that Genkit's
 * own runtimes write and in their order.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/json.h"
#include "json/text.h"
#include "observe/spans_record.h"

static ew_str text_of(const ew__span *span, ew__span_part which) {
    const char *at = span->bytes;
    for (int i = 0; i < (int)which; i++)
        at += span->len[i];
    return ew__str(at, span->len[which]);
}

static ew_str id(const char *text, size_t n) { return ew__str(text, n); }
#define ID(member) id(member, sizeof(member))

/* The style's, otherwise the name of the action as Genkit writes it. */
static void write_name(ew__buf *out, const ew__span *span) {
    ew_str type, name;
    ew__key_split(text_of(span, EW__SPAN_KEY), &type, &name);
    (void)ew__json_write_str(out, span->style ? ew_str_from(span->style->name) : name, false);
}

static void write_text(ew__buf *out, const char *name, ew_str text) {
    (void)ew__json_format(out, ",%Q:%q", name, text);
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
        write_text(out, "genkit:metadata:context", ew__buf_view(&text));
    else if (out->err == EW_OK)
        out->err = text.err;
    ew__buf_done(&text);
}

static void write_path(ew__buf *out, const ew__span *span) {
    ew__buf path;
    ew__buf_init(&path, out->env, out->max);
    (void)ew__trace_path(&path, text_of(span, EW__SPAN_PATH), text_of(span, EW__SPAN_KEY), true);
    if (path.err == EW_OK)
        write_text(out, "genkit:path", ew__buf_view(&path));
    else if (out->err == EW_OK)
        out->err = path.err;
    ew__buf_done(&path);
}

static void write_style(ew__buf *out, const ew__span *span) {
    ew__span_facts facts = {.key = text_of(span, EW__SPAN_KEY),
                            .context = text_of(span, EW__SPAN_CONTEXT),
                            .message = text_of(span, EW__SPAN_OUTPUT),
                            .start_us = span->start_us,
                            .end_us = span->end_us,
                            .retry_after_ms = span->retry_after_ms,
                            .status = (ew_status)span->status,
                            .retry = span->retry};
    span->style->write(out, &facts);
}

static void write_attributes(ew__buf *out, const ew__span *span) {
    ew_str key = text_of(span, EW__SPAN_KEY), type, name;
    bool ok = span->status == EW_STATUS_OK;
    ew__key_split(key, &type, &name);
    ew__buf_cstr(out, "{\"genkit:type\":\"action\"");
    if (type.len) {
        write_text(out, "genkit:metadata:subtype", type);
        write_text(out, "genkit:key", key);
    }
    write_labels(out, text_of(span, EW__SPAN_LABELS));
    write_text(out, "genkit:name", name);
    if (!span->trace.has_parent)
        ew__buf_cstr(out, ",\"genkit:isRoot\":true");
    write_path(out, span);
    if (span->end_us) /* with a style, the record of a start has a context too: its attributes are read from it */
        write_context(out, text_of(span, EW__SPAN_CONTEXT));
    if (span->len[EW__SPAN_INPUT])
        write_text(out, "genkit:input", text_of(span, EW__SPAN_INPUT));
    if (span->end_us && ok)
        write_text(out, "genkit:output", text_of(span, EW__SPAN_OUTPUT));
    if (span->end_us)
        write_text(out, "genkit:state", ok ? EW_STR("success") : EW_STR("error"));
    if (span->len[EW__SPAN_UPSTREAM])
        write_text(out, "everywire:upstreamTraceId", text_of(span, EW__SPAN_UPSTREAM));
    if (!ok)
        ew__buf_cstr(out, ",\"genkit:isFailureSource\":true");
    if (span->style)
        write_style(out, span);
    ew__buf_char(out, '}');
}

static void write_event(ew__buf *out, const ew__span *span) {
    ew_str message = text_of(span, EW__SPAN_OUTPUT);
    const char *type = ew_status_name((ew_status)span->status);
    ew__buf_cstr(out, "{\"time\":");
    ew__buf_us_as_ms(out, span->end_us);
    (void)ew__buf_printf(out, ",\"annotation\":{\"attributes\":{\"exception.type\":\"%s\"", type);
    write_text(out, "exception.message", message);
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
        write_text(out, "message", text_of(span, EW__SPAN_OUTPUT));
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
    ew__buf_us_as_ms(out, span->start_us);
    ew__buf_cstr(out, ",\"endTime\":");
    ew__buf_us_as_ms(out, span->end_us);
    ew__buf_cstr(out, ",\"attributes\":");
    write_attributes(out, span);
    ew__buf_cstr(out, ",\"displayName\":");
    write_name(out, span);
    const char *kind = span->outgoing ? "CLIENT" : span->style ? span->style->kind : "INTERNAL";
    (void)ew__buf_printf(out, ",\"links\":[],\"spanKind\":\"%s\"", kind);
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
        ew__buf_us_as_ms(out, root->start_us);
        ew__buf_cstr(out, ",\"endTime\":");
        ew__buf_us_as_ms(out, root->end_us);
    }
    ew__buf_char(out, '}');
}
