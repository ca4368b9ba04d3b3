/*
 * jobs/service/write.c: what operations on jobs answer, as JSON.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/service/service.h"
#include "base/when.h"

void ew__jobs_write_time(int64_t ms, ew__buf *out) {
    char text[EW__WHEN_LEN];
    if (ms <= 0) {
        (void)ew__buf_cstr(out, "null");
        return;
    }
    ew__when_write((uint64_t)ms, text);
    (void)ew__json_format(out, "%q", ew__str(text, sizeof text));
}

void ew__jobs_write_enqueued(const ew__store_request *op, ew__buf *out) {
    const ew__op_enqueue *enqueue = &op->u.enqueue;
    switch (enqueue->ret) {
    case EW__ENQUEUED_LIMITED:
        (void)ew__buf_cstr(out, "{\"job_id\":null,\"status\":\"rate_limited\"}");
        break;
    case EW__ENQUEUED_KNOWN:
        (void)ew__json_format(out, "{\"job_id\":%q,\"status\":%Q}", enqueue->ret_id,
                              enqueue->dedup == EW__DEDUP_DEBOUNCE ? "debounced" : "existing");
        break;
    case EW__ENQUEUED_NEW:
    case EW__ENQUEUED_DUPLICATE:
        (void)ew__json_format(out, "{\"job_id\":%q,\"status\":\"enqueued\"}",
                              enqueue->ret_id.len ? enqueue->ret_id : enqueue->job.id);
        break;
    }
}

void ew__jobs_write_list(const ew__store_request *op, ew__buf *out) {
    const ew__op_list *list = &op->u.list;
    (void)ew__buf_cstr(out, "{\"jobs\":[");
    for (size_t i = 0; i < list->ret_n; i++) {
        (void)ew__buf_cstr(out, i ? "," : "");
        ew__job_write(&list->ret[i], out);
    }
    (void)ew__json_format(out, "],\"total\":%llu}", (unsigned long long)list->ret_total);
}

void ew__jobs_write_cancelled(const ew__store_request *op, ew__buf *out) {
    const ew__op_cancel *cancel = &op->u.cancel;
    ew_str status = cancel->ret == EW__CANCELLED_NOW     ? EW_STR("CANCELLED")
                    : cancel->ret == EW__CANCELLED_ASKED ? EW_STR("CANCELLING")
                                                         : ew__job_status_name(cancel->ret_status);
    (void)ew__json_format(out, "{\"job_id\":%q,\"status\":%q}", cancel->id, status);
}
