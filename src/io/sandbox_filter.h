/*
 * io/sandbox_filter.h: the system call filter of the sandbox as a BPF program. Makes the program
 * only, without any system call: io/sandbox.c installs it, and the test interprets it.
 */
#ifndef EW_IO_SANDBOX_FILTER_H
#define EW_IO_SANDBOX_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

#define EW__SANDBOX_FILTER_MAX 256 /* instructions */

/*
 * Writes the filter into `out`, which has room for EW__SANDBOX_FILTER_MAX instructions, and returns
 * their number; 0 if this processor is not supported. The filter is a deny list: it answers EPERM
 * to system calls that a server never needs, and ends a process that enters the kernel through
 * another architecture's table. children: child processes may be started; without it execve and new
 * namespaces are denied too.
 */
size_t ew__sandbox_filter(bool children, struct sock_filter *out);

#endif
