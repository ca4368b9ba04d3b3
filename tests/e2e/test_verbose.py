"""--verbose: the frames of every wire, both directions, decoded and timed, on standard error; secrets left out.

SPDX-License-Identifier: Apache-2.0
"""
import re
import socket
import threading
import unittest

import support
from support import BINARY, Server, cli, wait_until

server = None
PREFIX = re.compile(r"^(?:\+\d+\.\dms #\d+| +) [<>*] ")


def setUpModule():
    global server
    server = Server("--threads", "1").start()


def tearDownModule():
    server.__exit__(None, None, None)


class Verbose(unittest.TestCase):
    maxDiff = None

    def frames(self, *words, code=0, own=True, **kw):
        """The lines of standard error, without their times; only frames unless others are expected there."""
        r = cli(*words, **kw)
        self.assertEqual(r.code, code, r.err)
        lines = r.err.decode().splitlines()
        if own:
            for line in lines:
                self.assertRegex(line, PREFIX)
        return [re.sub(r"^(\+\S+ #\d+|  +) ", "", line) for line in lines if PREFIX.match(line)], r

    def in_order(self, lines, *wanted):
        """Each of the expressions matches a line, in this order."""
        at = 0
        for want in wanted:
            while at < len(lines) and not re.search(want, lines[at]):
                at += 1
            self.assertLess(at, len(lines), "%s is not in (or not in this order)\n%s" % (want, "\n".join(lines)))
            at += 1

    def test_http(self):
        lines, r = self.frames("call", server.url, "greet", '{"name":"Ada","token":"CANARY"}', "-v")
        self.assertEqual(r.out, b'"Hello, Ada!"\n')
        self.in_order(lines, r"^\* connection opened, http$", r"^> POST /greet HTTP/1\.1$", r"^> Host: ", r"^> \{\"data\":\{\"name\":\"Ada\"",
                      r"^< HTTP/1\.1 200 OK$", r"^< Content-Type: ", r'^< \{"result":"Hello, Ada!"\}$', r"^\* connection closed$")
        self.assertNotIn(b"CANARY", r.err)
        self.assertIn(b'"token":"[redacted]"', r.err)

    def test_http_stream(self):
        lines, r = self.frames("call", server.url, "greet", '"Ada"', "--stream", "--verbose")
        self.in_order(lines, r'^< data: \{"message":"Hello,"\}$', r'^< data: \{"message":" Ada!"\}$', r'^< data: \{"result":"Hello, Ada!"\}$',
                      r"^< \(end of body\)$")
        self.assertEqual(len(r.out.splitlines()), 3)

    def test_jsonrpc(self):
        lines, _ = self.frames("call", "jsonrpc://127.0.0.1:%d" % server.port, "greet", '"Ada"', "-v")
        self.in_order(lines, r"opened, jsonrpc$", r'^> \{"jsonrpc":"2\.0","id":.*"method":"greet"', r'^< \{"jsonrpc":"2\.0".*"result":"Hello, Ada!"\}$')

    def test_rrq(self):
        lines, _ = self.frames("call", "rrq://127.0.0.1:%d" % server.port, "greet", "{}", "-v")
        self.in_order(lines, r"opened, rrq$", r'^> \[\d+\] \{"type":"request"', r'^< \[\d+\] \{"type":"response".*"status":"success"')

    def test_stepflow(self):
        lines, _ = self.frames("call", "stepflow+http://127.0.0.1:%d" % server.port, "greet", "{}", "-v")
        self.in_order(lines, r"opened, stepflow\+http$", r'^> \{.*"method":"initialize"', r'^> \{.*"method":"components/execute"', r'^< \{.*"output":"Hello, world!"')

    def test_stdio(self):
        for target, method in (("jsonrpc+stdio:", "greet"), ("stepflow+stdio:", "components/execute")):
            lines, _ = self.frames("call", target, "greet", "-v", "--", BINARY, "serve", "--demo", "--stdio", own=False)
            self.in_order(lines, r"opened, ", r'^> \{.*"method":"%s"' % method, r'^< \{.*"Hello, world!"')

    def test_reflection(self):
        lines, _ = self.frames("call", "reflection://127.0.0.1:0", "greet", '"Ada"', "--stream", "-v", "--", BINARY, "serve", "--demo", own=False)
        self.in_order(lines, r"^< GET / HTTP/1\.1$", r"^< Upgrade: websocket$", r"^> HTTP/1\.1 101 ", r'^< ws text \{.*"method":"register"',
                      r'^> ws text \{.*"method":"runAction"', r'^< ws text \{.*"method":"streamChunk"', r'^< ws text \{.*"result":"Hello, Ada!"')

    def test_list_and_describe(self):
        lines, _ = self.frames("list", server.url, "-v")
        self.in_order(lines, r"^> GET /api/actions HTTP/1\.1$", r"^< HTTP/1\.1 200 OK$")
        lines, _ = self.frames("describe", server.url, "greet", "-v")
        self.in_order(lines, r"^> GET /api/actions HTTP/1\.1$")

    def test_long_frames_are_cut(self):
        big = '{"bytes":5000}'
        _, r = self.frames("call", server.url, "big", big, "-v")
        self.assertRegex(r.err, rb"\.\.\. \(1024 of 5013 bytes\)\n")
        for full in ("-vv", "--verbose=full"):
            _, r = self.frames("call", server.url, "big", big, full)
            self.assertNotIn(b" bytes)", r.err)
            self.assertIn(r.out[1:-2], r.err)
        r = cli("call", server.url, "echo", "1", "--verbose=loud")
        self.assertEqual((r.code, b"not full" in r.err), (2, True), r.err)

    def test_a_peer_that_speaks_something_else(self):
        """What it said is shown, and nothing of it reaches a terminal as it is."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(1)

            def answer():
                conn, _ = listener.accept()
                with conn:
                    conn.recv(1000)
                    conn.sendall(b"\x07\x1b[2J\xff and so on")

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            lines, r = self.frames("call", "http://127.0.0.1:%d" % listener.getsockname()[1], "greet", "-v", code=4, own=False)
            thread.join(5)
        self.in_order(lines, r"^> POST /greet HTTP/1\.1$", r"^< bytes 07 1b 5b 32 4a ff 20 61")
        self.assertNotIn(b"\x1b[2J", r.err)

    def test_serve(self):
        """The other side sees the same, its own log beside it."""
        for flag in (("--verbose",), ("--log-level", "trace")):
            with Server("--threads", "1", *flag) as s:
                with support.Conn(s.port) as c:
                    c.send(support.request("POST", "/greet", b'{"data":"Ada"}', [("Authorization", "Bearer CANARY")], port=s.port))
                    self.assertTrue(wait_until(lambda: "Hello, Ada!" in s.stderr()))
                text = s.stderr()
                self.assertRegex(text, r"(?m)^\+\d+\.\dms #1 < POST /greet HTTP/1\.1$")
                self.assertRegex(text, r"(?mi)^ +< authorization: \[redacted\]$")
                self.assertRegex(text, r"(?m)^\+\d+\.\dms #1 > \{\"result\":\"Hello, Ada!\"\}$")
                self.assertNotIn("CANARY", text)

    def test_nothing_without_it(self):
        r = cli("call", server.url, "greet", '"Ada"')
        self.assertEqual((r.code, r.err), (0, b""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
