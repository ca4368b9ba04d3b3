/*
 * call/input.c: the handler's readers of its input. A value of the wrong type fails the call: a handler never works with
 * a default in place of a value that its caller sent.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/call.h"
#include <stdio.h>

#define SHOWN 80 /* bytes of the pointer in a message */

/* Fails the call because of the value that the pointer's first `len` bytes lead to. */
static bool refuse(ew_call *call, ew_str pointer, const char *expected, const char *got) {
    char message[SHOWN + 160];
    (void)snprintf(message, sizeof message, "input%s%.*s: expected %s, got %s", pointer.len ? " " : "",
                   (int)(pointer.len < SHOWN ? pointer.len : SHOWN), pointer.ptr, expected, got);
    (void)ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT, message);
    return false;
}

static const char *type_text(ew_str value) {
    static const char *const texts[] = {
        [EW_JSON_NONE] = "nothing",     [EW_JSON_NULL] = "null",       [EW_JSON_BOOL] = "a boolean",
        [EW_JSON_NUMBER] = "a number",  [EW_JSON_STRING] = "a string", [EW_JSON_ARRAY] = "an array",
        [EW_JSON_OBJECT] = "an object",
    };
    return texts[ew_json_typeof(value)];
}

/*
 * Finds the value; *ret is empty if there is none. False: the value that should contain it is neither an object, an array
 * (for an index) nor null, and the call has failed.
 */
static bool find(ew_call *call, const char *pointer, ew_str *ret) {
    const char *rest = pointer;
    ew_str value = ew__json_follow(call->input, &rest);
    ew_json_type type = ew_json_typeof(value);
    bool found = *rest == '\0', index = !found && rest[1] >= '0' && rest[1] <= '9';
    *ret = found ? value : ew__str(NULL, 0);
    if (found || type == EW_JSON_NULL || type == EW_JSON_OBJECT || (type == EW_JSON_ARRAY && index))
        return true;
    return refuse(call, ew__str(pointer, (size_t)(rest - pointer)), index ? "an object or an array" : "an object",
                  type_text(value));
}

/* The readers' errors: true if the value is absent. */
static bool judge(ew_call *call, const char *pointer, const char *expected, ew_str value, ew_err err) {
    if (err == EW_OK || err == EW_ENOTFOUND)
        return true;
    return refuse(call, ew_str_from(pointer), expected, type_text(value));
}

bool ew_call_input_str(ew_call *call, const char *pointer, ew_str *ret_text) {
    ew_str value;
    if (!find(call, pointer, &value))
        return false;
    if (value.len == 0)
        return true; /* absent */
    if (ew_json_typeof(value) != EW_JSON_STRING)
        return judge(call, pointer, "a string", value, EW_ETYPE);
    if (!memchr(value.ptr, '\\', value.len)) { /* it is its own text */
        *ret_text = ew__str(value.ptr + 1, value.len - 2);
        return true;
    }
    char *text = ew_call_alloc(call, value.len);
    size_t len = 0;
    if (!text) {
        (void)ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
        return false;
    }
    if (ew_json_string(value, text, value.len, &len) != EW_OK)
        return refuse(call, ew_str_from(pointer), "a string", "one with an unpaired surrogate");
    *ret_text = ew__str(text, len);
    return true;
}

bool ew_call_input_int(ew_call *call, const char *pointer, int64_t *ret_number) {
    ew_str value;
    if (!find(call, pointer, &value))
        return false;
    bool number = ew_json_typeof(value) == EW_JSON_NUMBER;
    return judge(call, pointer, number ? "an integer of 64 bits" : "an integer", value,
                 ew_json_int64(value, ret_number));
}

bool ew_call_input_double(ew_call *call, const char *pointer, double *ret_number) {
    ew_str value;
    return find(call, pointer, &value) &&
           judge(call, pointer, "a number within the range of a double", value, ew_json_double(value, ret_number));
}

bool ew_call_input_bool(ew_call *call, const char *pointer, bool *ret_flag) {
    ew_str value;
    return find(call, pointer, &value) && judge(call, pointer, "a boolean", value, ew_json_bool(value, ret_flag));
}
