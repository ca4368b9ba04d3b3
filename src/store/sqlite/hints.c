/*
 * store/sqlite/hints.c: how the SQLite store of jobs notices what other connections have done to its file. See
 * sqlite.h.
 *
 * Their writes to the log wake us (inotify), and SQLite's data_version says whether something was committed. A commit
 * can be seen only a flush later than its writes, and makes no further sign: so after a sign we look again a few times,
 * sooner first. Should signs not come (some file systems), a look a few times a second finds the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/sqlite.h"
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#define IDLE_MS 500    /* with signs */
#define BLIND_MS 200   /* without */
#define SOON_MAX_MS 64 /* looks after a sign: 1, 2, 4 ... that far apart */
#define ALL (EW__CHANGED_QUEUES | EW__CHANGED_JOBS | EW__CHANGED_CANCELS)

static void watch_log(ew__jobs_file *self) {
    size_t size = self->path_size + sizeof "-wal";
    char *name = ew__alloc(self->env, size);
    if (name == NULL) {
        return;
    }
    if (self->inotify < 0) {
        self->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    }
    (void)snprintf(name, size, "%s-wal", self->path);
    if (self->inotify >= 0) {
        self->watched = inotify_add_watch(self->inotify, name, IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF);
    }
    ew__free(self->env, name, size);
}

void ew__jobs_sqlite_unwatch(ew__jobs_file *self) {
    if (self->inotify >= 0) {
        (void)close(self->inotify);
    }
    self->inotify = self->watched = -1;
}

static void set_idle(ew__jobs_file *self) {
    uint64_t usual = self->want == 0 ? 0 : self->watched >= 0 ? IDLE_MS : BLIND_MS;
    self->backend.idle_ms = self->soon_ms > 0 ? self->soon_ms : usual;
}

int ew__jobs_sqlite_watch_fd(ew__backend *backend) {
    ew__jobs_file *self = ew__jobs_file_of(backend);
    return self->watched >= 0 ? self->inotify : -1;
}

/* Whether there was a sign. */
static bool read_signs(ew__jobs_file *self) {
    union {
        struct inotify_event event; /* for its alignment */
        char bytes[4096];
    } signs;
    bool any = false, gone = false;
    if (self->inotify < 0) {
        return false;
    }
    for (int i = 0; i < 16; i++) { /* what is left keeps the descriptor readable */
        ssize_t n = read(self->inotify, signs.bytes, sizeof signs.bytes);
        if (n <= 0) {
            break;
        }
        any = true;
        for (size_t at = 0; at + sizeof signs.event <= (size_t)n;) {
            struct inotify_event event;
            memcpy(&event, signs.bytes + at, sizeof event);
            gone = gone || (event.mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) != 0;
            at += sizeof event + event.len;
        }
    }
    if (gone) { /* it may be made anew */
        ew__jobs_sqlite_unwatch(self);
    }
    return any;
}

static int64_t read_version(ew__jobs_file *self) {
    self->code = SQLITE_OK;
    sqlite3_stmt *stmt = ew__sql_use(self, EW__SQL_VERSION);
    int64_t version = ew__sql_row(self, stmt) ? sqlite3_column_int64(stmt, 0) : self->version;
    ew__sql_end(stmt);
    return version;
}

unsigned ew__jobs_sqlite_look(ew__backend *backend) {
    ew__jobs_file *self = ew__jobs_file_of(backend);
    unsigned changes = self->back ? EW__CHANGED_BACK : 0;
    self->back = false;
    if (self->db != NULL && self->want != 0) {
        bool sign = read_signs(self);
        int64_t version = read_version(self);
        if (self->watched < 0) {
            watch_log(self);
        }
        if (version != self->version) {
            self->version = version;
            changes |= ALL;
        }
        self->soon_ms = sign ? 1 : self->soon_ms < SOON_MAX_MS ? 2 * self->soon_ms : 0;
    } else {
        self->soon_ms = 0;
    }
    set_idle(self);
    return changes;
}

void ew__jobs_sqlite_want(ew__backend *backend, unsigned changes) {
    ew__jobs_file *self = ew__jobs_file_of(backend);
    self->want = changes;
    if (changes == 0) {
        ew__jobs_sqlite_unwatch(self);
        self->soon_ms = 0;
    } else {
        self->version = -1; /* what happened before is not known: told as a change */
        self->soon_ms = 1;
    }
    set_idle(self);
}
