/*
 * io/supervisor.h: what passes between a program and the supervisor that started it, such as systemd: sockets that are
 * bound already, and messages about how the program is. No environment is looked at here: who calls it says which.
 */
#ifndef EW_IO_SUPERVISOR_H
#define EW_IO_SUPERVISOR_H

#include "io/stream.h"

/*
 * The address of a socket that listens already, TCP or Unix. It stays the caller's; each loop that listens there has a
 * copy of it, and nothing that is done here takes its file away. EW_OK; EW_EINVAL: no such descriptor, or it is no
 * socket that listens for streams.
 */
ew_err ew__address_passed(int fd, ew__address *ret);
/* A copy to listen on; the caller owns it. EW_OK, EW_EIO, EW_ELIMIT. */
ew_err ew__passed_acquire(const ew__address *address, int *ret_fd);

/*
 * Sends one message, lines of NAME=VALUE, to the datagram socket at path; '@' at its beginning is an abstract one.
 * Waits at most a second for room. EW_OK, EW_EINVAL (not such a path), EW_EIO.
 */
ew_err ew__notify(const char *path, ew_str message);

#endif
