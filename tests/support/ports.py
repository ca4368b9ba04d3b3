"""Ports for tests that must name one before anything listens there; see port.h and port.c, which claim ports by the same names.

SPDX-License-Identifier: Apache-2.0
"""
import os
import socket

RANGE = 8192
_claims = {}  # port: the socket that claims it until the process ends


def _range_end():
    """The lowest port that the kernel assigns by itself."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
            low = int(f.read().split()[0])
    except (OSError, ValueError, IndexError):
        low = 0
    return low if 1024 + RANGE < low < 65536 else 32768


def _claim(port, host):
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind("\0everywire-test-port-%d" % port)
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.bind((host, port))
    except OSError:
        claim.close()
        return False
    _claims[port] = claim
    return True


def free_ports(n=1, host="127.0.0.1"):
    """The first of n consecutive free ports; they belong to this process until it ends."""
    first, start = _range_end() - RANGE, os.getpid() * 37
    for i in range(RANGE):
        base = first + (start + i) % (RANGE - n)
        taken = 0
        while taken < n and _claim(base + taken, host):
            taken += 1
        if taken == n:
            return base
        for port in range(base, base + taken):
            _claims.pop(port).close()
    raise RuntimeError("no %d free ports" % n)
