/*
 * io/unix.c: Unix sockets: the file that stands for them. It is made readable and writable for its owner only before
 * anybody can connect; one that a dead server left is replaced, one that is in use or no socket is left alone.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/address.h"
#include "io/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096

static const char *path_of(const ew__address *address) {
    return ((const struct sockaddr_un *)&address->storage)->sun_path;
}

static int new_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

/* ---- one at a time ---- */

#define LOCK_TRIES 50
#define LOCK_WAIT_MS 10

/*
 * Between bind and listen a socket looks like one that a dead server left, so two servers that start together could
 * take each other's file away: they agree by a lock on the folder. Somebody else may hold that lock for reasons of his
 * own: after half a second we go on without it. -1: no lock.
 */
static int lock_folder(const ew__address *address) {
    char folder[sizeof((struct sockaddr_un *)0)->sun_path + 1];
    const char *path = path_of(address), *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 1; /* with its slash: "/" is a folder too */
    memcpy(folder, slash ? path : ".", n);
    folder[n] = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if (i == LOCK_TRIES || (errno != EWOULDBLOCK && errno != EINTR)) {
            close(fd);
            return -1;
        }
        (void)poll(NULL, 0, LOCK_WAIT_MS);
    }
    return fd;
}

static void unlock_folder(int fd) {
    if (fd >= 0)
        close(fd);
}

/* ---- what is at the path ---- */

/* EW_OK: nothing, or what a dead server left (then *ret_stale has its file). */
static ew_err look(const ew__address *address, bool *ret_stale, struct stat *ret_file) {
    *ret_stale = false;
    if (lstat(path_of(address), ret_file) != 0)
        return errno == ENOENT ? EW_OK : ew__err_from_errno();
    if (!S_ISSOCK(ret_file->st_mode))
        return EW_EEXISTS;
    int fd = new_socket();
    if (fd < 0)
        return ew__err_from_errno();
    bool refused = connect(fd, (const struct sockaddr *)&address->storage, sizeof(struct sockaddr_un)) != 0 &&
                   errno == ECONNREFUSED;
    close(fd);
    *ret_stale = refused;
    return refused ? EW_OK : EW_EADDRINUSE; /* also when its queue is full, or it is not ours to ask */
}

static bool same_file(const char *path, dev_t device, ino_t inode) {
    struct stat now;
    return lstat(path, &now) == 0 && now.st_dev == device && now.st_ino == inode;
}

ew_err ew__unix_probe(const ew__address *address) {
    bool stale;
    struct stat file;
    if (atomic_load_explicit(&address->listeners, memory_order_acquire) > 0)
        return EW_EADDRINUSE;
    return look(address, &stale, &file);
}

/* ---- binding ---- */

/* Nobody can connect before listen, so the mode is never wider than it looks; fchmod covers kernels that heed it. */
static ew_err bind_and_listen(ew__address *address, int fd) {
    const char *path = path_of(address);
    struct stat file;
    (void)fchmod(fd, S_IRUSR | S_IWUSR);
    if (bind(fd, (const struct sockaddr *)&address->storage, sizeof(struct sockaddr_un)) != 0)
        return ew__err_from_errno();
    if (chmod(path, S_IRUSR | S_IWUSR) != 0 || lstat(path, &file) != 0 || listen(fd, BACKLOG) != 0) {
        ew_err err = ew__err_from_errno();
        (void)unlink(path);
        return err;
    }
    address->device = file.st_dev;
    address->inode = file.st_ino;
    return EW_OK;
}

static ew_err bind_first(ew__address *address) {
    struct stat file;
    bool stale;
    int fd = new_socket();
    if (fd < 0)
        return ew__err_from_errno();
    int lock = lock_folder(address);
    ew_err err = look(address, &stale, &file);
    if (err == EW_OK && stale && same_file(path_of(address), file.st_dev, file.st_ino))
        (void)unlink(path_of(address)); /* if it cannot be, bind says so */
    if (err == EW_OK)
        err = bind_and_listen(address, fd);
    unlock_folder(lock);
    if (err != EW_OK) {
        close(fd);
        return err;
    }
    address->fd = fd;
    return EW_OK;
}

ew_err ew__unix_acquire(ew__address *address, int *ret_fd) {
    if (atomic_load_explicit(&address->listeners, memory_order_acquire) == 0) {
        ew_err err = bind_first(address);
        if (err != EW_OK)
            return err;
    }
    atomic_fetch_add_explicit(&address->listeners, 1, memory_order_acq_rel);
    *ret_fd = ew__fd_copy(address->fd);
    if (*ret_fd >= 0)
        return EW_OK;
    ew_err err = ew__err_from_errno();
    ew__unix_release(address);
    return err;
}

void ew__unix_release(ew__address *address) {
    if (atomic_fetch_sub_explicit(&address->listeners, 1, memory_order_acq_rel) != 1)
        return;
    int lock = lock_folder(address); /* so that it is not another server's file by the time it is unlinked */
    if (same_file(path_of(address), address->device, address->inode))
        (void)unlink(path_of(address));
    unlock_folder(lock);
    close(address->fd);
    address->fd = -1;
}

/* ---- peers ---- */

bool ew__unix_peer_allowed(int fd) {
    struct ucred peer;
    socklen_t n = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && (peer.uid == 0 || peer.uid == geteuid());
}
