"""Peers of a server that requires tokens, over real sockets: what strangers may send and for how long, that a valid
token is always accepted, and what becomes of runtimes whose token is revoked or whose id another client registers.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import shutil
import struct
import tempfile
import threading
import time
import unittest

import rrq_support
import support
from support import Conn, Server, WebSocket, cli, request

UPGRADE = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
           ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]
HEALTH = ("/healthz", "/readyz", "/health")
BAD = "ewt_" + "0" * 64


def bearer(token):
    return [("Authorization", "Bearer " + token)]


def auth_line(token):
    return b'{"jsonrpc":"2.0","id":0,"method":"everywire.auth","params":{"token":"%s"}}\n' % token.encode()


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="ew-peers-")
        self.file = os.path.join(self.folder, "tokens")
        self.right = self.new("right")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def new(self, name, *args):
        r = cli("token", "new", "--tokens", self.file, "--name", name, *args)
        self.assertEqual(r.code, 0, r)
        return r.out.decode().strip()

    def server(self, *args, **kw):
        return Server("--tokens", self.file, *args, **kw)


class Strangers(Case):
    def strangers(self, port):
        """(name, bytes): each is refused, or has not said what it wants."""
        refused = rrq_support.request("echo", {})
        return [
            ("silent", b""),
            ("jsonrpc", b'{"jsonrpc":"2.0","id":1,"method":"echo"}\n'),
            ("jsonrpc, wrong token", auth_line(BAD)),
            ("jsonrpc, half a message", b'{"jsonrpc":'),
            ("rrq", refused),
            ("rrq, half a frame", refused[:9]),
            ("http", request("GET", "/metrics", port=port)),
            ("http, wrong token", request("GET", "/metrics", None, bearer(BAD), port=port)),
            ("http, health", request("GET", "/healthz", port=port)),
            ("reflection", request("GET", "/", None, UPGRADE, port=port)),
            ("reflection at a health page", request("GET", "/healthz", None, UPGRADE, port=port)),
        ]

    def test_they_are_closed_in_time(self):
        with self.server("--limit", "auth_ms=300", "--threads", "2") as s:
            for name, data in self.strangers(s.port):
                with self.subTest(name), s.connect() as c:
                    c.try_send(data)
                    c.rest(20)  # everything up to the end, which comes

    def test_they_do_not_use_up_the_connections(self):
        with self.server("--limit", "auth_ms=500", "--limit", "connections=11") as s:
            held = []
            for _, data in self.strangers(s.port):
                held.append(s.connect())
                held[-1].try_send(data)

            def works():
                try:
                    return s.call("/flow/echo", b"1", bearer(self.right)).status == 200
                except (support.Closed, OSError, AssertionError):
                    return False
            support.wait_until(works, 20)
            for c in held:
                c.close()

    def test_they_send_little(self):
        long = b"x" * 70000
        with self.server() as s:
            for name, data in (
                    ("jsonrpc", b'{"jsonrpc":"2.0","id":1,"method":"echo","params":["' + long),
                    ("jsonrpc, announced", b"Content-Length: 70000\r\n\r\n"),
                    ("rrq", struct.pack(">I", 16 << 20)),
                    ("http", request("POST", "/flow/echo", long, port=s.port)),
                    ("http, announced", b"POST /flow/echo HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 9999999\r\n\r\n"
                     % s.port)):
                with self.subTest(name), s.connect() as c:
                    c.try_send(data)
                    c.rest(20)

    def test_they_are_refused_a_few_times(self):
        with self.server("--limit", "auth_refusals=3") as s:
            for name, data in (("jsonrpc", b'{"jsonrpc":"2.0","id":1,"method":"echo"}\n'),
                               ("rrq", rrq_support.request("echo", {})),
                               ("http", request("GET", "/metrics", port=s.port))):
                with self.subTest(name), s.connect() as c:
                    c.try_send(data * 5)
                    said = c.rest(20)
                    self.assertEqual(said.count(b'UNAUTHENTICATED"'), 3, said)

    def test_a_token_lifts_the_limits(self):
        pad = "x" * 200000
        with self.server() as s:
            with s.connect() as c:
                c.send(auth_line(self.right) + b'{"jsonrpc":"2.0","id":1,"method":"echo","params":["%s"]}\n' % pad.encode())
                self.assertIn(b'"result":null', c._until(b"\n", time.monotonic() + 20 * support.SLOW))
                self.assertIn(pad.encode(), c._until(b"\n", time.monotonic() + 20 * support.SLOW))
            with rrq_support.Rrq(s.port) as c:
                c.request("everywire.auth", {"token": self.right})
                self.assertEqual(c.outcome()["status"], "success")
                c.request("echo", {"pad": pad})
                self.assertEqual(c.outcome()["result"], {"pad": pad})
            r = s.call("/flow/echo", json.dumps(pad).encode(), bearer(self.right))
            self.assertEqual((r.status, r.json()["result"]), (200, pad))


class Guesses(Case):
    def test_a_valid_token_always_passes(self):
        """Many wrong tokens from the same address: the valid one is accepted at any time, on every wire."""
        with self.server("--threads", "2") as s:
            for _ in range(4):
                for i in range(16):
                    with s.connect() as c:
                        c.send(request("GET", "/metrics", None, bearer("ewt_%064x" % i), port=s.port))
                        self.assertIn(c.response().status, (401, 429))
                self.assertEqual(s.call("/flow/echo", b"1", bearer(self.right)).status, 200)
                with rrq_support.Rrq(s.port) as c:
                    c.request("everywire.auth", {"token": self.right})
                    self.assertEqual(c.outcome()["status"], "success")
                with s.connect() as c:
                    c.send(auth_line(self.right))
                    self.assertIn(b'"result":null', c._until(b"\n", time.monotonic() + 20 * support.SLOW))
                WebSocket.dial(s.port, headers=bearer(self.right)).close()


class Runtimes(Case):
    def register(self, ws, id):
        ws.frame(1, b'{"jsonrpc":"2.0","id":"1","method":"register","params":{"id":"%s","pid":1}}' % id.encode())
        return ws.message()

    def test_health_pages_do_not_upgrade(self):
        with self.server() as s:
            for path in HEALTH:
                for token, status in ((None, 401), (BAD, 401), (self.right, 101)):
                    with self.subTest((path, token)), s.connect() as c:
                        c.send(request("GET", path, None, UPGRADE + (bearer(token) if token else []), port=s.port))
                        r = support.parse_head(c._until(b"\r\n\r\n", time.monotonic() + 10 * support.SLOW))
                        self.assertEqual(r.status, status)
                self.assertEqual(s.get(path).status, 200)

    def test_an_id_belongs_to_who_registered_it(self):
        other = self.new("other")
        with self.server("--threads", "2") as s, WebSocket.dial(s.port, headers=bearer(self.right)) as first:
            self.assertIn("result", self.register(first, "mine"))
            for _ in range(8):  # the kernel distributes them to both loops
                with WebSocket.dial(s.port, headers=bearer(other)) as thief:
                    answer = self.register(thief, "mine")
                    self.assertIn("another identity", answer["error"]["message"])
                    self.assertIn("result", self.register(thief, "theirs"))
            first.frame(1, b'{"jsonrpc":"2.0","id":"2","method":"register","params":{"id":"mine","pid":1}}')
            while first.message().get("id") != "2":  # questions for its actions may come first
                pass
            with WebSocket.dial(s.port, headers=bearer(self.right)) as second:  # the same client connects again
                self.assertIn("result", self.register(second, "mine"))
                first.rest(20)

    def test_a_revoked_runtime_is_disconnected(self):
        mine = self.new("runtime", "--wire", "reflection")
        with self.server("--threads", "2", demo=False) as s:
            url = "ws://127.0.0.1:%d/?token=%s" % (s.port, mine)
            env = {"GENKIT_REFLECTION_V2_SERVER": url, "GENKIT_RUNTIME_ID": "rt"}
            with Server(listen=(), env=env):
                def offered():
                    return b"/flow/echo" in s.get("/api/actions", bearer(self.right)).body

                def running():
                    text = s.get("/metrics", bearer(self.right)).body.decode()
                    return support.Metrics(text).total("everywire_calls_in_flight") > 0
                support.wait_until(offered, 20)
                results = []
                call = threading.Thread(target=lambda: results.append(
                    cli("call", s.url, "sleep", '{"ms":600000}', timeout=60, env={"EVERYWIRE_TOKEN": self.right})))
                call.start()
                support.wait_until(running, 20)
                self.assertEqual(cli("token", "revoke", "runtime", "--tokens", self.file).code, 0)
                call.join()
                self.assertEqual(results[0].error()["status"], "UNAVAILABLE", results)
                support.wait_until(lambda: not offered(), 20)


if __name__ == "__main__":
    unittest.main()
