/*
 * base/limits.c: fills in the defaults of everywire/limits.h. It does not judge the values a host gives.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <everywire/limits.h>

void ew_limits_complete(ew_limits *limits) {
    const bool high_given = limits->out_high_bytes != 0;
    const bool low_given = limits->out_low_bytes != 0;
#define FILL(member, value, text)                                                                                      \
    if (limits->member == 0) {                                                                                         \
        limits->member = (value);                                                                                      \
    }
    EW_LIMITS_MAP(FILL)
#undef FILL
    /* A host that sets only one of three marks must not get the others' defaults in the wrong order: producers that are
       told to wait above a mark that lies below the mark of going on would never be woken in order. */
    if (!high_given && limits->out_high_bytes > limits->out_max_bytes) {
        limits->out_high_bytes = limits->out_max_bytes;
    }
    if (!low_given && limits->out_low_bytes > limits->out_high_bytes) {
        limits->out_low_bytes = limits->out_high_bytes / 4;
    }
}
