/*
 * program/options_retry.c: options about what is worth another attempt: statuses that are final, and how long a runtime
 * that has left is expected back. See main.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/config.h"
#include "program/main.h"
#include "base/parse.h"
#include "program/serve_options.h"

static bool read_status(ew_str name, uint32_t *set) {
    ew_status status;
    if (ew__str_is(name, EW_STR("none"))) {
        *set |= EW_FINAL_NONE;
        return true;
    }
    if (ew_status_from_name(name, &status) != EW_OK || status == EW_STATUS_OK) {
        return false;
    }
    *set |= EW_STATUS_BIT(status);
    return true;
}

bool ew__final_statuses_read(ew_str names, uint32_t *set) {
    for (;;) {
        const char *comma = names.len ? memchr(names.ptr, ',', names.len) : NULL;
        size_t n = comma ? (size_t)(comma - names.ptr) : names.len;
        if (!read_status(ew__str(names.ptr, n), set)) {
            return false;
        }
        if (!comma) {
            return true;
        }
        names = ew__str(comma + 1, names.len - n - 1);
    }
}

int ew__settings_retry(ew__settings *s, int id, const char *value) {
    uint32_t set = 0;
    uint64_t ms = 0;
    if (id == EW__SERVE_FINAL_STATUS) {
        if (!ew__final_statuses_read(ew_str_from(value), &set)) {
            return ew__settings_usage(s, "--final-status",
                                      "expected names of statuses such as INVALID_ARGUMENT, or none");
        }
        s->options.final_statuses = set;
        return 0;
    }
    if (ew__duration_parse(ew_str_from(value), &ms) != EW_OK) {
        return ew__settings_usage(s, "--runtime-grace", "expected a duration such as 500ms, 2s, 1m, 1h, or 0");
    }
    s->options.runtime_grace_ms = ms > 0 ? ms : EW_NO_GRACE;
    return 0;
}
