/*
 * store/trust.h: whether a database file can be trusted. A job store decides what runs, so a file
 * that another user can write is a way to run calls as this user. May include: base.
 */
#ifndef EW_STORE_TRUST_H
#define EW_STORE_TRUST_H

#include <stdbool.h>
#include <sys/types.h>

#define EW__TRUST_WHY 160

/*
 * True if the SQLite database at `path` may be used by the user `uid`. False: `why` holds the
 * reason and what to do, to follow "PATH: ". Refused are a symbolic link as the last component, a
 * file that is not regular, belongs to a user other than `uid` (root is not excepted) or is
 * writable for others, the same for its -wal, -shm and -journal files, and a folder that every user
 * may write to and that has no sticky bit. A file that does not exist is trusted: opening it reports
 * that. Any thread; uses no descriptor, because closing one would drop SQLite's locks on the file.
 */
bool ew__trust_database(const char *path, uid_t uid, char why[EW__TRUST_WHY]);

#endif
