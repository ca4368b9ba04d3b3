/*
 * handler/exec_line.c: see exec_line.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "handler/exec_line.h"
#include "base/util.h"
#include "json/json.h"

#define LONGEST_WAIT_S 31622400.0 /* a year, and a day for leap years: more is no advice */

ew__exec_line_kind ew__exec_line_read(ew_str line, ew_str *ret_value) {
    static const struct {
        ew_str name;
        ew__exec_line_kind kind;
    } known[] = {{{"chunk", 5}, EW__EXEC_CHUNK}, {{"result", 6}, EW__EXEC_RESULT}, {{"error", 5}, EW__EXEC_ERROR}};
    ew__json_doc doc;
    ew_str trimmed = ew__str_trim(line);
    if (trimmed.len == 0 || trimmed.ptr[0] != '{' || ew__json_parse(&doc, trimmed) != EW_OK || doc.n_nodes < 2 ||
        doc.nodes[1].next != 0 || !doc.root_complete)
        return EW__EXEC_TEXT_LINE;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        ew_str value = ew__json_find(&doc, known[i].name, NULL);
        if (value.len == 0)
            continue;
        ew_json_type type = ew_json_typeof(value);
        if (known[i].kind == EW__EXEC_ERROR && type != EW_JSON_STRING && type != EW_JSON_OBJECT)
            break;
        *ret_value = value;
        return known[i].kind;
    }
    return EW__EXEC_TEXT_LINE;
}

/* A string's text; of other values what stands there. */
static ew_err decode(ew_str value, ew__buf *text, ew_str *ret) {
    size_t len = 0;
    *ret = value;
    if (ew_json_typeof(value) != EW_JSON_STRING)
        return EW_OK;
    *ret = ew__str(value.ptr + 1, value.len - 2); /* for one that has no UTF-8 form */
    ew_err err = ew__buf_reserve(text, value.len);
    if (err != EW_OK)
        return err;
    if (ew_json_string(value, text->ptr, value.len, &len) == EW_OK)
        *ret = ew__str(text->ptr, len);
    return EW_OK;
}

static ew_status status_of(ew_str value) {
    ew_status status = EW_STATUS_INTERNAL;
    char buf[32];
    if (ew_status_from_name(ew__json_text(value, buf, sizeof buf), &status) != EW_OK || status == EW_STATUS_OK)
        return EW_STATUS_INTERNAL;
    return status;
}

static void read_retry(ew_str value, ew_fault *fault) {
    double seconds = LONGEST_WAIT_S; /* of a number that is too large for a double */
    if (ew_json_typeof(value) != EW_JSON_NUMBER)
        return;
    (void)ew_json_double(value, &seconds);
    fault->retryable = true;
    if (seconds > 0.0)
        fault->retry_after_ms = (uint64_t)((seconds < LONGEST_WAIT_S ? seconds : LONGEST_WAIT_S) * 1000.0 + 0.5);
}

ew_err ew__exec_line_fault(ew_str value, ew__buf *text, ew_fault *ret) {
    *ret = (ew_fault){.status = EW_STATUS_INTERNAL};
    if (ew_json_typeof(value) == EW_JSON_STRING)
        return decode(value, text, &ret->message);
    ew_str message = ew_json_member(value, EW_STR("message"));
    ew_str details = ew_json_member(value, EW_STR("details"));
    ret->status = status_of(ew_json_member(value, EW_STR("status")));
    ret->message = ew_str_from(ew_status_name(ret->status));
    if (ew_json_typeof(details) != EW_JSON_NULL)
        ret->details = details;
    read_retry(ew_json_member(value, EW_STR("retry_after")), ret);
    return message.len ? decode(message, text, &ret->message) : EW_OK;
}
