/*
 * everywire/format.h: the arguments of a JSON format (json.h), each with its type, so that a directive and its argument
 * are compared before anything is read.
 *
 * In C the formatting functions are macros: each argument becomes an ew_arg by its type, at most 20 of them. A type that
 * no directive takes (a struct, a void pointer) does not compile. An argument with a comma outside parentheses needs
 * parentheses of its own: ((ew_str){ptr, len}). In C++ (11 and later) they are templates, with the same calls. Bindings
 * and wrappers fill an array of ew_arg themselves and call ew_json_format_args, ew_call_chunk_args or ew_call_done_args.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_FORMAT_H
#define EVERYWIRE_FORMAT_H

#include <everywire/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ew_arg_type {
    EW_ARG_STR,  /* an ew_str */
    EW_ARG_CSTR, /* a C string, or NULL */
    EW_ARG_INT,
    EW_ARG_UINT,
    EW_ARG_DOUBLE,
    EW_ARG_BOOL
} ew_arg_type;

/* One argument of a format. Texts are borrowed for the duration of the call. */
typedef struct ew_arg {
    ew_arg_type type;
    union {
        ew_str str;
        const char *cstr;
        int64_t i;
        uint64_t u;
        double d;
        bool b;
    } value;
} ew_arg;

static inline ew_arg ew_arg_str(ew_str value) {
    ew_arg arg;
    arg.type = EW_ARG_STR;
    arg.value.str = value;
    return arg;
}

static inline ew_arg ew_arg_cstr(const char *value) {
    ew_arg arg;
    arg.type = EW_ARG_CSTR;
    arg.value.cstr = value;
    return arg;
}

static inline ew_arg ew_arg_int(int64_t value) {
    ew_arg arg;
    arg.type = EW_ARG_INT;
    arg.value.i = value;
    return arg;
}

static inline ew_arg ew_arg_uint(uint64_t value) {
    ew_arg arg;
    arg.type = EW_ARG_UINT;
    arg.value.u = value;
    return arg;
}

static inline ew_arg ew_arg_double(double value) {
    ew_arg arg;
    arg.type = EW_ARG_DOUBLE;
    arg.value.d = value;
    return arg;
}

static inline ew_arg ew_arg_bool(bool value) {
    ew_arg arg;
    arg.type = EW_ARG_BOOL;
    arg.value.b = value;
    return arg;
}

static inline ew_arg ew_arg_same(ew_arg value) { return value; }

#ifdef __cplusplus
}

inline ew_arg ew_arg_of(ew_arg value) { return value; }
inline ew_arg ew_arg_of(ew_str value) { return ew_arg_str(value); }
inline ew_arg ew_arg_of(char *value) { return ew_arg_cstr(value); }
inline ew_arg ew_arg_of(const char *value) { return ew_arg_cstr(value); }
inline ew_arg ew_arg_of(bool value) { return ew_arg_bool(value); }
inline ew_arg ew_arg_of(int value) { return ew_arg_int(value); }
inline ew_arg ew_arg_of(long value) { return ew_arg_int(value); }
inline ew_arg ew_arg_of(long long value) { return ew_arg_int(value); }
inline ew_arg ew_arg_of(unsigned value) { return ew_arg_uint(value); }
inline ew_arg ew_arg_of(unsigned long value) { return ew_arg_uint(value); }
inline ew_arg ew_arg_of(unsigned long long value) { return ew_arg_uint(value); }
inline ew_arg ew_arg_of(double value) { return ew_arg_double(value); }
template <typename T> ew_arg ew_arg_of(T *value) = delete; /* would convert to bool */

template <typename... T> struct ew_arg_list {
    ew_arg items[sizeof...(T) + 1]; /* C++ has no empty arrays */
    explicit ew_arg_list(const T &...values) : items{ew_arg_of(values)..., ew_arg_bool(false)} {}
};
#else

/* The ew_arg of a value, by its type. */
#define EW_ARG(value)                                                                                                  \
    _Generic((value),                                                                                                  \
        ew_arg: ew_arg_same,                                                                                           \
        ew_str: ew_arg_str,                                                                                            \
        char *: ew_arg_cstr,                                                                                           \
        const char *: ew_arg_cstr,                                                                                     \
        bool: ew_arg_bool,                                                                                             \
        char: ew_arg_int,                                                                                              \
        signed char: ew_arg_int,                                                                                       \
        short: ew_arg_int,                                                                                             \
        int: ew_arg_int,                                                                                               \
        long: ew_arg_int,                                                                                              \
        long long: ew_arg_int,                                                                                         \
        unsigned char: ew_arg_uint,                                                                                    \
        unsigned short: ew_arg_uint,                                                                                   \
        unsigned: ew_arg_uint,                                                                                         \
        unsigned long: ew_arg_uint,                                                                                    \
        unsigned long long: ew_arg_uint,                                                                               \
        float: ew_arg_double,                                                                                          \
        double: ew_arg_double)(value)

/* A format and its arguments, as three arguments of a function: the format, an array of ew_arg, how many. */
#define EW_FORMAT(...)                                                                                                 \
    EW_FORMAT_PICK_(__VA_ARGS__, EW_F20_, EW_F19_, EW_F18_, EW_F17_, EW_F16_, EW_F15_, EW_F14_, EW_F13_, EW_F12_,      \
                    EW_F11_, EW_F10_, EW_F9_, EW_F8_, EW_F7_, EW_F6_, EW_F5_, EW_F4_, EW_F3_, EW_F2_, EW_F1_, EW_F0_,  \
                    0)                                                                                                 \
    (__VA_ARGS__)
#define EW_FORMAT_PICK_(f, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20,  \
                        name, ...)                                                                                     \
    name
#define EW_F0_(f) (f), NULL, 0
#define EW_F1_(f, ...) (f), (const ew_arg[]){EW_A1_(__VA_ARGS__)}, 1
#define EW_F2_(f, ...) (f), (const ew_arg[]){EW_A2_(__VA_ARGS__)}, 2
#define EW_F3_(f, ...) (f), (const ew_arg[]){EW_A3_(__VA_ARGS__)}, 3
#define EW_F4_(f, ...) (f), (const ew_arg[]){EW_A4_(__VA_ARGS__)}, 4
#define EW_F5_(f, ...) (f), (const ew_arg[]){EW_A5_(__VA_ARGS__)}, 5
#define EW_F6_(f, ...) (f), (const ew_arg[]){EW_A6_(__VA_ARGS__)}, 6
#define EW_F7_(f, ...) (f), (const ew_arg[]){EW_A7_(__VA_ARGS__)}, 7
#define EW_F8_(f, ...) (f), (const ew_arg[]){EW_A8_(__VA_ARGS__)}, 8
#define EW_F9_(f, ...) (f), (const ew_arg[]){EW_A9_(__VA_ARGS__)}, 9
#define EW_F10_(f, ...) (f), (const ew_arg[]){EW_A10_(__VA_ARGS__)}, 10
#define EW_F11_(f, ...) (f), (const ew_arg[]){EW_A11_(__VA_ARGS__)}, 11
#define EW_F12_(f, ...) (f), (const ew_arg[]){EW_A12_(__VA_ARGS__)}, 12
#define EW_F13_(f, ...) (f), (const ew_arg[]){EW_A13_(__VA_ARGS__)}, 13
#define EW_F14_(f, ...) (f), (const ew_arg[]){EW_A14_(__VA_ARGS__)}, 14
#define EW_F15_(f, ...) (f), (const ew_arg[]){EW_A15_(__VA_ARGS__)}, 15
#define EW_F16_(f, ...) (f), (const ew_arg[]){EW_A16_(__VA_ARGS__)}, 16
#define EW_F17_(f, ...) (f), (const ew_arg[]){EW_A17_(__VA_ARGS__)}, 17
#define EW_F18_(f, ...) (f), (const ew_arg[]){EW_A18_(__VA_ARGS__)}, 18
#define EW_F19_(f, ...) (f), (const ew_arg[]){EW_A19_(__VA_ARGS__)}, 19
#define EW_F20_(f, ...) (f), (const ew_arg[]){EW_A20_(__VA_ARGS__)}, 20
#define EW_A1_(a) EW_ARG(a)
#define EW_A2_(a, ...) EW_ARG(a), EW_A1_(__VA_ARGS__)
#define EW_A3_(a, ...) EW_ARG(a), EW_A2_(__VA_ARGS__)
#define EW_A4_(a, ...) EW_ARG(a), EW_A3_(__VA_ARGS__)
#define EW_A5_(a, ...) EW_ARG(a), EW_A4_(__VA_ARGS__)
#define EW_A6_(a, ...) EW_ARG(a), EW_A5_(__VA_ARGS__)
#define EW_A7_(a, ...) EW_ARG(a), EW_A6_(__VA_ARGS__)
#define EW_A8_(a, ...) EW_ARG(a), EW_A7_(__VA_ARGS__)
#define EW_A9_(a, ...) EW_ARG(a), EW_A8_(__VA_ARGS__)
#define EW_A10_(a, ...) EW_ARG(a), EW_A9_(__VA_ARGS__)
#define EW_A11_(a, ...) EW_ARG(a), EW_A10_(__VA_ARGS__)
#define EW_A12_(a, ...) EW_ARG(a), EW_A11_(__VA_ARGS__)
#define EW_A13_(a, ...) EW_ARG(a), EW_A12_(__VA_ARGS__)
#define EW_A14_(a, ...) EW_ARG(a), EW_A13_(__VA_ARGS__)
#define EW_A15_(a, ...) EW_ARG(a), EW_A14_(__VA_ARGS__)
#define EW_A16_(a, ...) EW_ARG(a), EW_A15_(__VA_ARGS__)
#define EW_A17_(a, ...) EW_ARG(a), EW_A16_(__VA_ARGS__)
#define EW_A18_(a, ...) EW_ARG(a), EW_A17_(__VA_ARGS__)
#define EW_A19_(a, ...) EW_ARG(a), EW_A18_(__VA_ARGS__)
#define EW_A20_(a, ...) EW_ARG(a), EW_A19_(__VA_ARGS__)
#endif

#endif
