/*
 * base/home.c: see home.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/home.h"

#define FREE_BLOCKS EW__POOL_KEEP(64)
/* Kept for the next ones. A call through a bridge is two: 64 at a time must not ask the allocator for each. */
#define FREE_CALLS EW__POOL_KEEP(256)
#define FREE_PIECES EW__POOL_KEEP(128)
#define PIECE_BYTES 4096
/*
 * A call and the beginning of its memory. Small, because a connection may carry thousands of calls that wait: with what
 * finds it again such a call stays under 1 KiB.
 */
#define CALL_BYTES 920

void ew__home_init(ew__home *home, const ew_env *env, const ew_limits *limits) {
    const ew__home_ops *ops = home->ops;
    memset(home, 0, sizeof *home);
    home->ops = ops;
    home->env = env;
    home->limits = limits;
    home->calls = (ew__pieces){.env = env, .size = CALL_BYTES, .max_free = FREE_CALLS};
    home->pieces = (ew__pieces){.env = env, .size = PIECE_BYTES, .max_free = FREE_PIECES};
    ew__timers_init(&home->timers, env);
    ew__rng_init(&home->rng, env);
    ew__blocks_init(&home->blocks, env, FREE_BLOCKS);
    ew__home_read_clock(home);
}

void ew__home_trim(ew__home *home) {
    ew__pieces_trim(&home->calls);
    ew__pieces_trim(&home->pieces);
    ew__blocks_trim(&home->blocks, 0);
}

void ew__home_done(ew__home *home) {
    ew__home_trim(home);
    ew__blocks_done(&home->blocks);
    ew__timers_done(&home->timers);
}
