/*
 * tests/store/fault_vfs.h: SQLite's way to the disk, with faults: the n-th call fails, once or from then on; and a
 * memory of what has really reached the disk, for a power loss. One at a time; one thread. SPDX-License-Identifier:
 * Apache-2.0
 */
#ifndef EW_TESTS_STORE_FAULT_VFS_H
#define EW_TESTS_STORE_FAULT_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fault_kind {
    FAULT_NONE,
    FAULT_IO,     /* any call: reading, writing, flushing, cutting, locking, opening ... */
    FAULT_FULL,   /* writing: the disk is full */
    FAULT_MEMORY, /* allocations: SQLite's, and those by fault_alloc */
} fault_kind;

/* Lets SQLite's allocations go through here. Before its first use. */
void fault_memory_use(void);
/* The usual alloc of an env, with faults. */
void *fault_alloc(void *ud, void *ptr, size_t old_size, size_t new_size);

/* Registers it as the one that SQLite uses, or goes back to the usual one. */
void fault_vfs_use(bool on);

/* Call n from now on (1: the next) of those that such a fault can hit fails; on: all after it, too. */
void fault_vfs_set(fault_kind kind, uint64_t n, bool on);
/* How many have failed since then. */
uint64_t fault_vfs_hits(void);
/* Calls that a fault could have hit since then. */
uint64_t fault_vfs_calls(void);

/* ---- power loss ---- */

typedef enum fault_loss {
    LOSS_ALL,  /* whatever was not flushed is gone */
    LOSS_NONE, /* everything was written in the last moment */
    LOSS_SOME, /* some of it, by the seed, in any order; the last of each file in part */
    LOSS_KINDS
} fault_loss;

/* Forgets what it knows of files; from now on it remembers. */
void fault_vfs_remember(void);
/* Writes the files of path ("", "-wal") as they would be after a power loss to those of another path. */
void fault_vfs_lose(const char *path, const char *to, fault_loss loss, uint64_t seed);

#endif
