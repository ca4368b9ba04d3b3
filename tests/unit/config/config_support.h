/*
 * tests/unit/config/config_support.h: what the tests of configuration files share: their problems as text, and the end of
 * a configuration.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_UNIT_CONFIG_SUPPORT_H
#define EW_TESTS_UNIT_CONFIG_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/config.h"
#include "support/fail_env.h"
#include <stdio.h>

static inline void done(ew__test_env *env, ew__config *config) {
    ew__config_free(config);
    assert_int_equal(ew__test_env_live_blocks(env), 0);
}

/* All problems, in order, a line for each. */
static inline void said(const ew__problems *problems, char *out, size_t size) {
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < problems->n && n < size; i++) {
        const ew__problem *p = &problems->list[i];
        n += (size_t)snprintf(out + n, size - n, "%u:%u: %s\n", p->line, p->column, p->message);
    }
}

#endif
