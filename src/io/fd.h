/*
 * io/fd.h: copies of descriptors.
 */
#ifndef EW_IO_FD_H
#define EW_IO_FD_H

#include <fcntl.h>
#include <unistd.h>

/* Close-on-exec, and above the three that have a meaning by their number. -1: errno says why. */
static inline int ew__fd_copy(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 3); }

#endif
