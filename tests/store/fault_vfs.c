/*
 * tests/store/fault_vfs.c: see fault_vfs.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/fault_vfs.h"
#include <everywire/env.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what has reached the disk ---- */

/* Something that was not flushed yet. */
typedef struct change {
    int64_t at;
    size_t n; /* bytes; 0: the file is cut at `at` */
    char *bytes;
} change;

typedef struct memory {
    char name[160];
    char *bytes; /* as of the last flush */
    size_t n, cap;
    change *changes;
    size_t n_changes, room;
} memory;

enum { MEMORIES = 4 };

static struct {
    sqlite3_vfs vfs, *real;
    sqlite3_mem_methods memory;
    fault_kind kind;
    uint64_t n, calls, hits;
    bool on;
    bool remembers;
    memory memories[MEMORIES];
} self;

static void forget(memory *m) {
    for (size_t i = 0; i < m->n_changes; i++)
        free(m->changes[i].bytes);
    free(m->changes);
    free(m->bytes);
    memset(m, 0, sizeof *m);
}

static memory *memory_of(const char *name) {
    for (size_t i = 0; i < MEMORIES && self.remembers; i++) {
        memory *m = &self.memories[i];
        if (m->name[0] == '\0')
            (void)snprintf(m->name, sizeof m->name, "%s", name);
        if (strcmp(m->name, name) == 0)
            return m;
    }
    return NULL;
}

static void apply(memory *m, const change *c, size_t n) {
    size_t end = (size_t)c->at + n;
    if (c->n == 0 && end >= m->n) /* cutting does not grow it */
        return;
    if (end > m->cap)
        m->bytes = realloc(m->bytes, m->cap = 2 * end);
    if (end > m->n)
        memset(m->bytes + m->n, 0, end - m->n);
    if (end > m->n || c->n == 0)
        m->n = end;
    if (n > 0)
        memcpy(m->bytes + c->at, c->bytes, n);
}

static void note(memory *m, int64_t at, const void *bytes, size_t n) {
    if (m == NULL)
        return;
    if (m->n_changes == m->room)
        m->changes = realloc(m->changes, (m->room = m->room > 0 ? 2 * m->room : 64) * sizeof *m->changes);
    change *c = &m->changes[m->n_changes++];
    *c = (change){.at = at, .n = n, .bytes = n > 0 ? malloc(n) : NULL};
    if (n > 0)
        memcpy(c->bytes, bytes, n);
}

static void flush(memory *m) {
    for (size_t i = 0; m != NULL && i < m->n_changes; i++) {
        apply(m, &m->changes[i], m->changes[i].n);
        free(m->changes[i].bytes);
    }
    if (m != NULL)
        m->n_changes = 0;
}

static uint64_t roll(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void lose(memory *m, fault_loss loss, uint64_t *seed) {
    if (loss == LOSS_ALL)
        return;
    for (size_t i = 0; i < m->n_changes; i++) {
        if (loss == LOSS_NONE)
            apply(m, &m->changes[i], m->changes[i].n);
        else if (roll(seed) % 2 == 0) /* a sector is written wholly or not at all */
            apply(m, &m->changes[i], roll(seed) % 3 == 0 ? m->changes[i].n / 1024 * 512 : m->changes[i].n);
    }
}

void fault_vfs_remember(void) {
    self.remembers = true;
    for (size_t i = 0; i < MEMORIES; i++)
        forget(&self.memories[i]);
}

void fault_vfs_lose(const char *path, const char *to, fault_loss loss, uint64_t seed) {
    static const char *const ends[] = {"", "-wal"};
    for (size_t i = 0; i < 2; i++) {
        char name[160];
        (void)snprintf(name, sizeof name, "%s%s", path, ends[i]);
        memory *m = memory_of(name);
        (void)snprintf(name, sizeof name, "%s%s", to, ends[i]);
        (void)remove(name);
        if (m == NULL)
            continue;
        lose(m, loss, &seed);
        FILE *file = m->n > 0 || i == 0 ? fopen(name, "wb") : NULL;
        if (file != NULL) {
            (void)fwrite(m->bytes, 1, m->n, file);
            (void)fclose(file);
        }
    }
    for (size_t i = 0; i < MEMORIES; i++)
        forget(&self.memories[i]);
    self.remembers = false;
}

/* ---- faults ---- */

void fault_vfs_set(fault_kind kind, uint64_t n, bool on) {
    self.kind = kind;
    self.n = n;
    self.on = on;
    self.calls = self.hits = 0;
}

uint64_t fault_vfs_hits(void) { return self.hits; }
uint64_t fault_vfs_calls(void) { return self.calls; }

static bool hit_call(void) {
    uint64_t call = ++self.calls;
    if (self.kind == FAULT_NONE || (self.on ? call < self.n : call != self.n))
        return false;
    self.hits++;
    return true;
}

static bool hit(bool writes) {
    return self.kind == FAULT_MEMORY || (self.kind == FAULT_FULL && !writes) ? false : hit_call();
}

/* ---- memory ---- */

static bool hit_memory(void) { return self.kind == FAULT_MEMORY && hit_call(); }

void *fault_alloc(void *ud, void *ptr, size_t old_size, size_t new_size) {
    (void)ud;
    return new_size > old_size && hit_memory() ? NULL : ew_env_default()->alloc(NULL, ptr, old_size, new_size);
}

static void *sqlite_malloc(int n) { return hit_memory() ? NULL : self.memory.xMalloc(n); }
static void *sqlite_realloc(void *ptr, int n) { return hit_memory() ? NULL : self.memory.xRealloc(ptr, n); }

void fault_memory_use(void) {
    (void)sqlite3_config(SQLITE_CONFIG_GETMALLOC, &self.memory);
    sqlite3_mem_methods mine = self.memory;
    mine.xMalloc = sqlite_malloc;
    mine.xRealloc = sqlite_realloc;
    (void)sqlite3_config(SQLITE_CONFIG_MALLOC, &mine);
}

/* ---- files ---- */

typedef struct fault_file {
    sqlite3_file file;
    memory *memory; /* NULL: not one of those that are remembered */
    sqlite3_file *real;
} fault_file;

static sqlite3_file *real_of(sqlite3_file *file) { return ((fault_file *)file)->real; }

static int file_close(sqlite3_file *file) {
    sqlite3_file *real = real_of(file);
    int code = real->pMethods != NULL ? real->pMethods->xClose(real) : SQLITE_OK;
    free(real);
    return code;
}

static int file_read(sqlite3_file *file, void *bytes, int n, sqlite3_int64 at) {
    return hit(false) ? SQLITE_IOERR_READ : real_of(file)->pMethods->xRead(real_of(file), bytes, n, at);
}

static int file_write(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at) {
    if (hit(true))
        return self.kind == FAULT_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    note(((fault_file *)file)->memory, at, bytes, (size_t)n);
    return real_of(file)->pMethods->xWrite(real_of(file), bytes, n, at);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
    if (hit(false))
        return SQLITE_IOERR_TRUNCATE;
    note(((fault_file *)file)->memory, size, NULL, 0);
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int file_sync(sqlite3_file *file, int flags) {
    if (hit(false))
        return SQLITE_IOERR_FSYNC;
    flush(((fault_file *)file)->memory);
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size) {
    return hit(false) ? SQLITE_IOERR_FSTAT : real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int file_lock(sqlite3_file *file, int lock) {
    return hit(false) ? SQLITE_IOERR_LOCK : real_of(file)->pMethods->xLock(real_of(file), lock);
}

static int file_unlock(sqlite3_file *file, int lock) { return real_of(file)->pMethods->xUnlock(real_of(file), lock); }

static int file_check_lock(sqlite3_file *file, int *ret) {
    return hit(false) ? SQLITE_IOERR_CHECKRESERVEDLOCK
                      : real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret);
}

static int file_control(sqlite3_file *file, int op, void *arg) {
    return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int file_sector(sqlite3_file *file) { return real_of(file)->pMethods->xSectorSize(real_of(file)); }
static int file_device(sqlite3_file *file) { return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file)); }

static int file_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret) {
    return hit(false) ? SQLITE_IOERR_SHMMAP : real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, ret);
}

static int file_shm_lock(sqlite3_file *file, int at, int n, int flags) {
    bool fails = (flags & SQLITE_SHM_LOCK) != 0 && hit(false);
    return fails ? SQLITE_IOERR_SHMLOCK : real_of(file)->pMethods->xShmLock(real_of(file), at, n, flags);
}

static void file_shm_barrier(sqlite3_file *file) { real_of(file)->pMethods->xShmBarrier(real_of(file)); }
static int file_shm_unmap(sqlite3_file *file, int gone) {
    return real_of(file)->pMethods->xShmUnmap(real_of(file), gone);
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags) {
    static const sqlite3_io_methods methods = {
        2,           file_close,   file_read,     file_write,       file_truncate,  file_sync,
        file_size,   file_lock,    file_unlock,   file_check_lock,  file_control,   file_sector,
        file_device, file_shm_map, file_shm_lock, file_shm_barrier, file_shm_unmap, NULL,
        NULL};
    fault_file *one = (fault_file *)file;
    (void)vfs;
    file->pMethods = NULL;
    if (hit(false))
        return SQLITE_CANTOPEN;
    one->real = calloc(1, (size_t)self.real->szOsFile);
    if (one->real == NULL)
        return SQLITE_NOMEM;
    int code = self.real->xOpen(self.real, name, one->real, flags, ret_flags);
    if (code != SQLITE_OK) {
        free(one->real);
        return code;
    }
    one->memory = name != NULL && (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) != 0 ? memory_of(name) : NULL;
    file->pMethods = &methods;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync) {
    (void)vfs;
    if (hit(false))
        return SQLITE_IOERR_DELETE;
    for (size_t i = 0; i < MEMORIES; i++) {
        if (strcmp(self.memories[i].name, name) == 0) { /* the name stays: files that are open point here */
            char kept[sizeof self.memories[i].name];
            memcpy(kept, self.memories[i].name, sizeof kept);
            forget(&self.memories[i]);
            memcpy(self.memories[i].name, kept, sizeof kept);
        }
    }
    return self.real->xDelete(self.real, name, sync);
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret) {
    (void)vfs;
    return hit(false) ? SQLITE_IOERR_ACCESS : self.real->xAccess(self.real, name, flags, ret);
}

void fault_vfs_use(bool on) {
    if (self.real == NULL) {
        self.real = sqlite3_vfs_find("unix");
        self.vfs = *self.real; /* what is not replaced is called with this one, and does not mind */
        self.vfs.zName = "fault";
        self.vfs.pNext = NULL;
        self.vfs.szOsFile = (int)sizeof(fault_file);
        self.vfs.xOpen = vfs_open;
        self.vfs.xDelete = vfs_delete;
        self.vfs.xAccess = vfs_access;
    }
    (void)sqlite3_vfs_register(on ? &self.vfs : self.real, 1);
}
