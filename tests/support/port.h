/*
 * tests/support/port.h: ports for tests that must name one before anything listens there. The ports lie outside the
 * range from which the kernel assigns ports, and belong to the calling process until it ends, so that neither a test
 * beside it nor an outgoing connection can take one. A test that can bind port 0 does not need this.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_PORT_H
#define EW_TESTS_PORT_H

#include <stdint.h>

/* The first of n consecutive free ports on 127.0.0.1. Ends the process if there are none. One thread at a time. */
uint16_t free_ports(unsigned n);
uint16_t free_port(void);

#endif
