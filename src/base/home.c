/*
 * base/home.c: see home.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/home.h"

#define FREE_BLOCKS 64
#define FREE_PIECES 64

void *ew__piece_get(ew__pieces *pieces) {
    void *piece = pieces->free;
    if (!piece)
        return ew__alloc(pieces->env, EW__PIECE_SIZE);
    memcpy(&pieces->free, piece, sizeof pieces->free);
    pieces->n_free--;
    return piece;
}

void ew__piece_put(ew__pieces *pieces, void *piece) {
    if (pieces->n_free >= pieces->max_free) {
        ew__free(pieces->env, piece, EW__PIECE_SIZE);
        return;
    }
    memcpy(piece, &pieces->free, sizeof pieces->free);
    pieces->free = piece;
    pieces->n_free++;
}

void ew__home_init(ew__home *home, const ew_env *env, const ew_limits *limits) {
    const ew__home_ops *ops = home->ops;
    memset(home, 0, sizeof *home);
    home->ops = ops;
    home->env = env;
    home->limits = limits;
    home->pieces = (ew__pieces){.env = env, .max_free = FREE_PIECES};
    ew__timers_init(&home->timers, env);
    ew__rng_init(&home->rng, env);
    ew__blocks_init(&home->blocks, env, FREE_BLOCKS);
    ew__home_read_clock(home);
}

void ew__home_trim(ew__home *home) {
    uint32_t max = home->pieces.max_free;
    home->pieces.max_free = 0;
    while (home->pieces.free)
        ew__piece_put(&home->pieces, ew__piece_get(&home->pieces));
    home->pieces.max_free = max;
    ew__blocks_trim(&home->blocks, 0);
}

void ew__home_done(ew__home *home) {
    ew__home_trim(home);
    ew__blocks_done(&home->blocks);
    ew__timers_done(&home->timers);
}
