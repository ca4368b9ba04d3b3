/*
 * store/file_identity.h: whether a path still names the database file that was opened. A file that
 * was removed or replaced stays usable for programs that have it open, but what they write is lost. May
 * include: base.
 */
#ifndef EW_STORE_FILE_IDENTITY_H
#define EW_STORE_FILE_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct ew__file_identity {
    dev_t device;
    ino_t inode; /* 0: there is no such file */
} ew__file_identity;

/* Reads the identity of the file at `path`, right after it was opened. Any thread. */
void ew__file_identity_read(const char *path, ew__file_identity *ret);
/* Whether `path` still names that file. One call of stat; uses no descriptor (trust.h). Any thread. */
bool ew__file_identity_holds(const char *path, const ew__file_identity *identity);

#endif
