/*
 * cli/demo_sum.c: the demo action that reads: numbers of an input stream, or of an array. Integers are added exactly;
 * with the first number that has a fraction or an exponent the total becomes a double.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/demo.h"
#include <math.h>
#include <string.h>

typedef struct total {
    int64_t whole;
    double real;
    bool is_real;
    ew_json_iter it; /* where we are in an array */
} total;

static bool is_integer(ew_str number) {
    for (size_t i = 0; i < number.len; i++) {
        if (number.ptr[i] == '.' || number.ptr[i] == 'e' || number.ptr[i] == 'E') {
            return false;
        }
    }
    return true;
}

#if defined(__GNUC__)
static bool add_exact(int64_t a, int64_t b, int64_t *ret) { return !__builtin_add_overflow(a, b, ret); }
#else
static bool add_exact(int64_t a, int64_t b, int64_t *ret) {
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) {
        return false;
    }
    *ret = a + b;
    return true;
}
#endif

static bool out_of_range(ew_call *call) {
    (void)ew_call_fail(call, EW_STATUS_OUT_OF_RANGE, "the total does not fit");
    return false;
}

/* Adds one value. False: the call was ended. */
static bool add_value(ew_call *call, total *t, ew_str value) {
    int64_t whole = 0;
    if (ew_json_typeof(value) != EW_JSON_NUMBER) {
        (void)ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT, "only numbers can be added");
        return false;
    }
    bool exact = is_integer(value) && !t->is_real;
    if (exact) {
        return ew_json_int64(value, &whole) == EW_OK && add_exact(t->whole, whole, &t->whole) ? true
                                                                                              : out_of_range(call);
    }
    if (!t->is_real) {
        t->is_real = true;
        t->real = (double)t->whole;
    }
    double real;
    if (ew_json_double(value, &real) != EW_OK) {
        return out_of_range(call);
    }
    t->real += real;
    return isfinite(t->real) ? true : out_of_range(call);
}

static ew_err send_total(ew_call *call, const total *t) {
    return t->is_real ? ew_call_chunkf(call, "%g", t->real) : ew_call_chunkf(call, "%lld", (long long)t->whole);
}

static void return_total(ew_call *call, const total *t) {
    (void)(t->is_real ? ew_call_donef(call, "%g", t->real) : ew_call_donef(call, "%lld", (long long)t->whole));
}

/* The wire holds the sender when we are behind, so a full output needs no more than that: one total per input chunk. */
static void on_input(ew_call *call, ew_str chunk, bool end, void *arg) {
    total *t = arg;
    if (end) {
        return_total(call, t);
    } else if (add_value(call, t, chunk)) {
        (void)ew__demo_sent(call, send_total(call, t));
    }
}

static void array_turn(ew_call *call, void *arg) {
    total *t = arg;
    ew_str array = ew_call_input(call);
    for (int i = 0; i < EW__DEMO_PER_TURN; i++) {
        if (!ew_json_next(array, &t->it)) {
            return_total(call, t);
            return;
        }
        if (!add_value(call, t, t->it.value)) {
            return;
        }
        ew_err err = send_total(call, t);
        if (!ew__demo_sent(call, err)) {
            return;
        }
        if (err == EW_FULL) {
            ew__demo_on_room(call, array_turn, t);
            return;
        }
    }
    ew__demo_later(call, 0, array_turn, t);
}

void ew__demo_sum(ew_call *call, void *arg) {
    (void)arg;
    bool stream = ew_call_has_input_stream(call);
    if (!stream && ew_json_typeof(ew_call_input(call)) != EW_JSON_ARRAY) {
        (void)ew_call_fail(call, EW_STATUS_INVALID_ARGUMENT,
                           "the input must be an array of numbers, or an input stream of them");
        return;
    }
    total *t = ew_call_alloc(call, sizeof *t);
    if (!t) {
        (void)ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, NULL);
        return;
    }
    *t = (total){.whole = 0};
    if (!ew__demo_mind_cancel(call)) {
        return;
    }
    if (stream) {
        (void)ew__demo_sent(call, ew_call_on_input(call, on_input, t));
    } else {
        array_turn(call, t);
    }
}
