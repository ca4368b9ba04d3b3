/*
 * io/address.h: what the files that listen share about addresses (the type is in stream.h).
 */
#ifndef EW_IO_ADDRESS_H
#define EW_IO_ADDRESS_H

#include "io/stream.h"

void ew__address_write_text(ew__address *address); /* TCP: after its port has changed */

bool ew__is_loopback(const struct sockaddr *address); /* 127.0.0.0/8 or ::1 */

/*
 * Addresses that a URL of a peer must not lead to: unspecified, link-local, multicast, reserved ones, and those at which
 * cloud providers serve instance metadata. IPv6 addresses that carry an IPv4 address (mapped, compatible, NAT64, 6to4)
 * are judged by it, too. true for an address family other than IPv4 and IPv6. Pure.
 */
bool ew__is_special_address(const struct sockaddr *address);

/*
 * Whether both ends of a TCP connection are one and the same. That happens when nobody listens on a port from which the
 * kernel also takes those of outgoing connections: dialled often enough, a socket meets itself, and keeps the port.
 */
bool ew__is_itself(int fd);

/* What errno is in our words. */
ew_err ew__err_from_errno(void);

/* ---- Unix sockets: unix.c ---- */

ew_err ew__unix_probe(const ew__address *address);
/*
 * A descriptor to listen on (the caller owns it): the address's socket, bound by the first who asks. Each success is
 * followed by one ew__unix_release, which takes the file away when it is the last.
 */
ew_err ew__unix_acquire(ew__address *address, int *ret_fd);
void ew__unix_release(ew__address *address);
/* Whether the process at the other end is the same user's, or root's. */
bool ew__unix_peer_allowed(int fd);

#endif
