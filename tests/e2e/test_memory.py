"""The limit memory_bytes: however many connections send large messages or open calls, the server's memory stays
bounded, other callers are served, and everything works again when the attackers have gone.

SPDX-License-Identifier: Apache-2.0
"""
import itertools
import json
import struct
import time
import unittest

import support
from support import Conn, Server, request, wait_until

MIB = 1 << 20
MAX = 24 * MIB
PART = 6 * MIB  # of one unfinished message
HEAD = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":"'


def unfinished(wire, port):
    if wire == "rrq":
        return struct.pack(">I", PART + 1) + b'{"type":"request","payload":"'.ljust(PART, b"x")
    if wire == "http":
        head = request("POST", "/flow/echo", b"", port=port).replace(b"Content-Length: 0", b"Content-Length: %d" % (PART + 1))
        return head + b'{"data":"'.ljust(PART, b"x")
    return HEAD.ljust(PART, b"x")


class Memory(unittest.TestCase):
    def server(self, *args):
        return Server("--threads", "1", *args)

    def gauge(self, s, c=None):
        """Bytes in use; asked for on an open connection if there is one."""
        if c is None:
            return s.metrics().total("everywire_memory_bytes")
        c.send(request("GET", "/metrics", port=s.port))
        return support.Metrics(c.response().body.decode()).total("everywire_memory_bytes")

    def check_large(self, wire):
        with self.server("--limit", "memory_bytes=%d" % MAX) as s:
            idle = s.rss()
            conns = [s.connect() for _ in range(12)]
            with s.connect() as neighbour:
                for c in conns:
                    c.try_send(unfinished(wire, s.port))
                    self.assertLessEqual(self.gauge(s, neighbour), MAX * 9 // 8)  # with the reserve
                    neighbour.send(request("POST", "/flow/echo", b'{"data":1}', port=s.port))
                    self.assertEqual(neighbour.response().status, 200)
                if not support.SANITIZED:
                    self.assertLess(s.rss() - idle, MAX * 3)  # the allocator's own overhead is not counted
                for c in conns:
                    c.close()
                self.assertTrue(wait_until(lambda: self.gauge(s, neighbour) < 2 * MIB))
            self.assertEqual(s.call("/echo", b'"%s"' % (b"y" * PART)).status, 200)

    def test_unfinished_lines(self):
        self.check_large("jsonrpc")

    def test_unfinished_frames(self):
        self.check_large("rrq")

    def test_unfinished_bodies(self):
        self.check_large("http")

    def test_many_calls(self):
        """Small calls that wait: beyond the limit a call is refused, and a connection closed; those in flight end."""
        limits = ["--limit", "memory_bytes=4M", "--limit", "calls_per_connection=100000"]
        line = b'{"jsonrpc":"2.0","id":%d,"method":"sleep","params":{"ms":3600000,"pad":"' + b"p" * 300 + b'"}}\n'
        ids = itertools.count()
        with self.server(*limits) as s, s.connect() as neighbour, s.connect() as c:
            def fill():
                """Opens 100 calls; the answers to those that were refused. A method that does not exist is last."""
                end = time.monotonic() + 30 * support.SLOW
                c.send(b"".join(line % next(ids) for _ in range(100)) + b'{"jsonrpc":"2.0","id":"last","method":"no"}\n')
                answers = []
                while not answers or answers[-1]["id"] != "last":
                    answers.append(json.loads(c._until(b"\n", end)))
                return answers[:-1]

            def is_refused():
                fill()  # output that was read has left room for a few
                neighbour.send(request("POST", "/flow/echo", b'{"data":1}', port=s.port))
                return neighbour.response().status == 429

            def is_closed():
                fill()
                with Conn(s.port) as late:
                    return late.closed(0.2)

            refused = []
            while not refused and next(ids) < 20000:
                refused = fill()
            error = refused[0]["error"]
            self.assertEqual(error["data"]["status"], "RESOURCE_EXHAUSTED", error)
            self.assertIn("out of memory", error["message"])
            self.assertTrue(wait_until(is_refused, 20))
            self.assertTrue(wait_until(is_closed, 20))
            c.close()
            self.assertTrue(wait_until(lambda: self.answers(s)))
            self.assertTrue(wait_until(lambda: self.gauge(s) < 3 * MIB))

    def answers(self, s):
        try:
            return s.call("/echo", b"1").status == 200
        except (support.Closed, ConnectionError):
            return False


if __name__ == "__main__":
    unittest.main(verbosity=2)
