/*
 * wire/reflection/listing.c: the list of actions, in the shape of either generation: a flat map, or the same map as the
 * member `actions`.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/reflection/codec.h"

static bool is(ew_str quoted, const char *name) { return ew__str_is(quoted, ew_str_from(name)); }

static bool is_plain(ew_str value) {
    ew_json_type type = ew_json_typeof(value);
    return type == EW_JSON_STRING || type == EW_JSON_NUMBER || type == EW_JSON_BOOL || type == EW_JSON_OBJECT;
}

/* The CLI takes strings, numbers, booleans, objects and arrays of those as the values of metadata. */
static bool metadata_value_ok(ew_str value) {
    ew_json_iter it = {.offset_ = 0};
    if (ew_json_typeof(value) != EW_JSON_ARRAY)
        return is_plain(value);
    while (ew_json_next(value, &it))
        if (!is_plain(it.value))
            return false;
    return true;
}

static void write_metadata(ew__buf *out, ew_str metadata) {
    ew_json_iter it = {.offset_ = 0};
    const char *comma = "";
    ew__buf_char(out, '{');
    while (ew_json_next(metadata, &it)) {
        if (!metadata_value_ok(it.value))
            continue;
        (void)ew__json_format(out, "%s%j:%j", comma, it.key, it.value);
        comma = ",";
    }
    ew__buf_char(out, '}');
}

/* Whether the CLI would refuse a member, and with it the whole list. */
static bool unwelcome(ew_str key, ew_str value) {
    bool text = is(key, "\"key\"") || is(key, "\"actionType\"") || is(key, "\"description\"");
    if (text)
        return ew_json_typeof(value) != EW_JSON_STRING;
    return is(key, "\"metadata\"") && ew_json_typeof(value) != EW_JSON_OBJECT;
}

static void write_descriptor(ew__buf *out, ew_str descriptor) {
    ew_json_iter it = {.offset_ = 0};
    const char *comma = "";
    ew__buf_char(out, '{');
    while (ew_json_next(descriptor, &it)) {
        if (unwelcome(it.key, it.value))
            continue;
        (void)ew__json_format(out, "%s%j:", comma, it.key);
        if (is(it.key, "\"metadata\""))
            write_metadata(out, it.value);
        else
            ew__buf_str(out, it.value);
        comma = ",";
    }
    ew__buf_char(out, '}');
}

static void write_members(ew__buf *out, ew_str listing, const char *comma) {
    ew_json_iter it = {.offset_ = 0};
    while (ew_json_next(listing, &it)) {
        ew_str name = ew_json_member(it.value, EW_STR("name"));
        if (ew_json_typeof(it.value) != EW_JSON_OBJECT || ew_json_typeof(name) != EW_JSON_STRING)
            continue;
        (void)ew__json_format(out, "%s%j:", comma, it.key);
        write_descriptor(out, it.value);
        comma = ",";
    }
}

ew_err ew__rf_write_listing(ew__buf *out, ew_str listing, bool flat, bool wrapped) {
    ew__buf_char(out, '{');
    if (wrapped) {
        ew__buf_cstr(out, "\"actions\":{");
        write_members(out, listing, "");
        ew__buf_char(out, '}');
    }
    if (flat)
        write_members(out, listing, wrapped ? "," : "");
    return ew__buf_char(out, '}');
}

/* Keys begin with a slash, so that `actions` is no action. */
ew_str ew__rf_read_listing(ew_str result) {
    if (ew_json_typeof(result) != EW_JSON_OBJECT)
        return (ew_str){NULL, 0};
    ew_str actions = ew_json_member(result, EW_STR("actions"));
    if (ew_json_typeof(actions) == EW_JSON_NULL)
        return EW_STR("{}");
    return ew_json_typeof(actions) == EW_JSON_OBJECT ? actions : result;
}
