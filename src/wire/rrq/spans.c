/*
 * wire/rrq/spans.c: the spans of jobs that an RRQ orchestrator has sent: the attributes that RRQ's own runners write, so
 * that the orchestrator's traces look the same for every runner. Most of them come from the call's context, which is
 * the job's.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/when.h"
#include "wire/rrq/rrq.h"

static void write_number(ew__buf *out, const char *name, uint64_t number) {
    (void)ew__buf_printf(out, ",\"%s\":%llu", name, (unsigned long long)number);
}

static void write_text(ew__buf *out, const char *name, ew_str text) {
    (void)ew__json_format(out, ",%Q:%q", name, text);
}

/* A member of the context: numbers and strings as they are, any other value as its text; null is left out. */
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
        write_text(out, name, value);
    }
}

/* The time from one moment to a later one. 0 if the clocks of two machines reverse their order. */
static uint64_t between(int64_t from_ms, int64_t to_ms) { return to_ms > from_ms ? (uint64_t)(to_ms - from_ms) : 0; }

static void write_job(ew__buf *out, const ew__span_facts *facts) {
    ew_str context = facts->context, queue, type, name;
    char buf[64];
    int64_t start = (int64_t)(facts->start_us / 1000), when;
    ew__key_split(facts->key, &type, &name);
    queue = ew_json_get(context, "/queue_name");
    ew__buf_cstr(out, ",\"messaging.system\":\"redis\"");
    write_member(out, "messaging.destination.name", queue);
    ew__buf_cstr(out, ",\"messaging.destination_kind\":\"queue\",\"messaging.operation\":\"process\"");
    write_member(out, "rrq.job_id", ew_json_get(context, "/job_id"));
    write_text(out, "rrq.function", name);
    write_member(out, "rrq.queue", queue);
    write_member(out, "rrq.attempt", ew_json_get(context, "/attempt"));
    write_member(out, "rrq.worker_id", ew_json_get(context, "/worker_id"));
    write_member(out, "rrq.deadline", ew_json_get(context, "/deadline"));
    if (ew__when_parse(ew__json_text(ew_json_get(context, "/deadline"), buf, sizeof buf), &when))
        write_number(out, "rrq.deadline_remaining_ms", between(start, when));
    if (ew__when_parse(ew__json_text(ew_json_get(context, "/enqueue_time"), buf, sizeof buf), &when))
        write_number(out, "rrq.queue_wait_ms", between(when, start));
}

/* In the order in which serve.c chooses the outcome. */
static const char *outcome(const ew__span_facts *facts) {
    if (facts->status == EW_STATUS_OK)
        return "success";
    if (facts->retry)
        return "retry";
    return facts->status == EW_STATUS_DEADLINE_EXCEEDED ? "timeout"
           : facts->status == EW_STATUS_CANCELLED       ? "cancelled"
                                                        : "error";
}

/* The error type that RRQ defines, otherwise the name of the status. */
static const char *error_type(const ew__span_facts *facts) {
    return facts->status == EW_STATUS_DEADLINE_EXCEEDED ? "timeout"
           : facts->status == EW_STATUS_CANCELLED       ? "cancelled"
                                                        : ew_status_name(facts->status);
}

static void write_end(ew__buf *out, const ew__span_facts *facts) {
    (void)ew__buf_printf(out, ",\"rrq.outcome\":\"%s\",\"rrq.duration_ms\":", outcome(facts));
    ew__buf_us_as_ms(out, facts->end_us > facts->start_us ? facts->end_us - facts->start_us : 0);
    if (facts->status == EW_STATUS_OK)
        return;
    if (facts->retry_after_ms)
        write_number(out, "rrq.retry_delay_ms", facts->retry_after_ms);
    write_text(out, "rrq.error_message", facts->message);
    write_text(out, "rrq.error_type", ew_str_from(error_type(facts)));
}

static void write_attributes(ew__buf *out, const ew__span_facts *facts) {
    write_job(out, facts);
    if (facts->end_us)
        write_end(out, facts);
}

const ew__span_style ew__rrq_span_style = {.name = "rrq.runner", .kind = "CONSUMER", .write = write_attributes};
