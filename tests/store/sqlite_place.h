/*
 * tests/store/sqlite_place.h: a folder for the file of a store, and clocks that the test moves: time passes when it
 * says so. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_STORE_SQLITE_PLACE_H
#define EW_TESTS_STORE_SQLITE_PLACE_H

#include "store/contract.h"
#include "store/jobs.h"
#include <stdatomic.h>

typedef struct place {
    ew_env env;            /* the usual one, but for its clocks */
    atomic_llong ahead_ms; /* of the real ones */
    atomic_llong wall_ms;  /* the wall clock alone, beside that */
    char folder[64];
    char path[96]; /* folder/jobs.db */
    char spec[112];
} place;

void place_make(place *p);
void place_clear(place *p); /* the files of the store go */
void place_remove(place *p);
ew__store *place_open(place *p);
void place_sleep(place *p, uint64_t ms);

/* ---- SQL on the file, by a connection of the test's own ---- */

void place_sql(const place *p, const char *sql);
int64_t place_number(const place *p, const char *sql);
/* PRAGMA integrity_check says "ok". */
bool place_is_sound(const place *p);

#endif
