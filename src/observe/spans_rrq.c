/*
 * observe/spans_rrq.c: the writing side of spans.h for jobs that RRQ has given us: what RRQ's own runners write about
 * them, so that their orchestrator's traces look the same whatever runs a job. Most of it comes from the call's
 * context, which is the job's.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/when.h"
#include "json/json.h"
#include "observe/spans_record.h"

static void write_number(ew__buf *out, const char *name, uint64_t number) {
    (void)ew__buf_printf(out, ",\"%s\":%llu", name, (unsigned long long)number);
}

/* A member of the context: numbers and strings as they stand, else its text; null is nothing. */
static void write_member(ew__buf *out, const char *name, ew_str value) {
    switch (ew_json_typeof(value)) {
    case EW_JSON_NONE:
    case EW_JSON_NULL:
        break;
    case EW_JSON_NUMBER:
    case EW_JSON_STRING:
        (void)ew__buf_printf(out, ",\"%s\":", name);
        ew__buf_str(out, value);
        break;
    default:
        ew__span_write_text(out, name, value);
    }
}

/* How much later `to` is; clocks of two machines differ, and nothing lasts less than no time. */
static uint64_t between(int64_t from_ms, int64_t to_ms) { return to_ms > from_ms ? (uint64_t)(to_ms - from_ms) : 0; }

static void write_job(ew__buf *out, const ew__span *span) {
    ew_str context = ew__span_text(span, EW__SPAN_CONTEXT), queue, type, name;
    char buf[64];
    int64_t start = (int64_t)(span->start_us / 1000), when;
    ew__key_split(ew__span_text(span, EW__SPAN_KEY), &type, &name);
    queue = ew_json_get(context, "/queue_name");
    ew__buf_cstr(out, ",\"messaging.system\":\"redis\"");
    write_member(out, "messaging.destination.name", queue);
    ew__buf_cstr(out, ",\"messaging.destination_kind\":\"queue\",\"messaging.operation\":\"process\"");
    write_member(out, "rrq.job_id", ew_json_get(context, "/job_id"));
    ew__span_write_text(out, "rrq.function", name);
    write_member(out, "rrq.queue", queue);
    write_member(out, "rrq.attempt", ew_json_get(context, "/attempt"));
    write_member(out, "rrq.worker_id", ew_json_get(context, "/worker_id"));
    write_member(out, "rrq.deadline", ew_json_get(context, "/deadline"));
    if (ew__when_parse(ew__json_text(ew_json_get(context, "/deadline"), buf, sizeof buf), &when))
        write_number(out, "rrq.deadline_remaining_ms", between(start, when));
    if (ew__when_parse(ew__json_text(ew_json_get(context, "/enqueue_time"), buf, sizeof buf), &when))
        write_number(out, "rrq.queue_wait_ms", between(when, start));
}

/* In the order in which the wire decides what to answer. */
static const char *outcome(const ew__span *span) {
    if (span->status == EW_STATUS_OK)
        return "success";
    if (span->retry)
        return "retry";
    return span->status == EW_STATUS_DEADLINE_EXCEEDED ? "timeout"
           : span->status == EW_STATUS_CANCELLED       ? "cancelled"
                                                       : "error";
}

/* The type that RRQ knows, else the status. */
static const char *error_type(const ew__span *span) {
    return span->status == EW_STATUS_DEADLINE_EXCEEDED ? "timeout"
           : span->status == EW_STATUS_CANCELLED       ? "cancelled"
                                                       : ew_status_name((ew_status)span->status);
}

static void write_end(ew__buf *out, const ew__span *span) {
    (void)ew__buf_printf(out, ",\"rrq.outcome\":\"%s\",\"rrq.duration_ms\":", outcome(span));
    ew__span_write_ms(out, span->end_us > span->start_us ? span->end_us - span->start_us : 0);
    if (span->status == EW_STATUS_OK)
        return;
    if (span->retry_after_ms)
        write_number(out, "rrq.retry_delay_ms", span->retry_after_ms);
    ew__span_write_text(out, "rrq.error_message", ew__span_text(span, EW__SPAN_OUTPUT));
    ew__span_write_text(out, "rrq.error_type", ew_str_from(error_type(span)));
}

void ew__span_write_rrq(ew__buf *out, const ew__span *span) {
    write_job(out, span);
    if (span->end_us)
        write_end(out, span);
}
