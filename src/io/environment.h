/*
 * io/environment.h: which variables of this program's environment a child gets. A child that is not
 * started by a user at his shell gets a short list and what the configuration names, so that
 * secrets of this program (tokens, keys, passwords of stores) do not reach it. May include: base.
 */
#ifndef EW_IO_ENVIRONMENT_H
#define EW_IO_ENVIRONMENT_H

#include "base/mem.h"

/*
 * NULL if each entry of the NULL-ended list (which may be NULL) is "NAME", "NAME=VALUE" or "*";
 * else a constant text that tells the problem. Any thread.
 */
const char *ew__environment_problem(const char *const *wanted);

/*
 * A NULL-ended list of "NAME=VALUE" in the arena: PATH, HOME, USER, LANG, LC_ALL, TZ and TMPDIR as
 * far as this program has them (all of its variables if `wanted` holds "*"), then `wanted`: "NAME"
 * hands on a variable, "NAME=VALUE" sets one. A later entry replaces an earlier one. NULL: out of
 * memory. Reads the environment: any thread, while no other changes it.
 */
const char *const *ew__environment_make(ew__arena *arena, const char *const *wanted);

#endif
