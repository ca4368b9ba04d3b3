"""What a web page in the user's browser, or a rebound name, can send to a local server: the own-browser-attacks corpus.

SPDX-License-Identifier: Apache-2.0
"""
import re
import time
import unittest

import support
from support import Server, request

server = None


def setUpModule():
    global server
    server = Server().start()


def tearDownModule():
    server.__exit__(None, None, None)


def fields(row):
    """The header fields of a row, with our port in them."""
    out = []
    for name, value in row["headers"].items():
        if name == "path":
            continue
        for one in value if isinstance(value, list) else [value]:
            out.append((name, one.replace("PORT", str(server.port))))
    return out


def allowed(expect):
    """The statuses that a row's words allow, as a set; None when the words are about something else."""
    codes = set()
    if re.search(r"\ballow\b", expect):
        codes.add(200)
    m = re.search(r"deny ([0-9/]+)", expect)
    if m:
        codes |= {int(c) for c in m.group(1).split("/")}
    return codes or None


# RFC 9112 3.2 asks for 400 where the Host field names no host at all; that refuses as well.
MALFORMED = ("host-bad-empty", "host-bad-localhost:PORT@evil.example")


def needs_token(row):
    return "token" in row["id"] or "TOKEN" in str(row["headers"])


class Matrix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = support.corpus("own-browser-attacks", "origin-host-matrix.jsonl")

    def send(self, raw):
        with server.connect() as c:
            c.send(raw)
            return c.response()

    def handshake(self, raw):
        """The head of the answer."""
        with server.connect() as c:
            c.send(raw)
            return support.parse_head(c._until(b"\r\n\r\n", time.monotonic() + 10 * support.SLOW))

    def runs(self):
        return server.metrics().total(support.CALLS, action="/flow/echo")

    def test_http(self):
        n = 0
        for row in self.rows:
            if row["wire"] != "http":
                continue
            if needs_token(row):
                continue  # test_access.py has these, with a server that wants a token
            with self.subTest(row["id"]):
                n += 1
                before = self.runs()
                body = b'{"data":1}'
                r = self.send(request("POST", "/flow/echo", body, fields(row), host=False, ctype=None))
                codes = allowed(row["expect"]) | ({400} if row["id"] in MALFORMED else set())
                self.assertIn(r.status, codes, (row["headers"], r))
                self.assertFalse([h for h, _ in r.headers if h.startswith("access-control-")], r)
                self.assertEqual(self.runs() - before, 1 if r.status == 200 else 0)
                if r.status != 200:
                    self.assertEqual(r.json()["code"], r.status)
        print("own-browser-attacks: %d http rows" % n)

    def test_denied_whatever_the_path(self):
        for row in self.rows:
            if row["wire"] != "http" or needs_token(row) or not row["id"].startswith(("host-bad", "origin-")) or "allow" in row["expect"]:
                continue
            for method, path in (("GET", "/metrics"), ("GET", "/api/actions"), ("GET", "/"), ("POST", "/"), ("OPTIONS", "/flow/echo"), ("GET", "/healthz")):
                if row["id"].startswith("origin-") and method == "OPTIONS":
                    continue  # a preflight: the answer has no CORS fields, which is the refusal
                with self.subTest((row["id"], method, path)):
                    body = b"{}" if method == "POST" else None
                    given = [f for f in fields(row) if f[0] != "Content-Type" or body]
                    r = self.send(request(method, path, body, given, host=False, ctype=None))
                    self.assertGreaterEqual(r.status, 400, r)

    def test_preflights(self):
        for row in self.rows:
            if row["wire"] != "options":
                continue
            with self.subTest(row["id"]):
                r = self.send(request("OPTIONS", "/flow/echo", None, fields(row), host=False))
                self.assertFalse([h for h, _ in r.headers if h.startswith("access-control-")], r)

    def test_get(self):
        for row in self.rows:
            if row["wire"] != "http-get":
                continue
            if needs_token(row):
                continue  # test_access.py has these, with a server that wants a token
            with self.subTest(row["id"]):
                before = self.runs()
                r = self.send(request("GET", row["headers"]["path"], None, fields(row), host=False))
                self.assertIn(r.status, (404, 405))
                r = self.send(request("GET", row["headers"]["path"].replace("myFlow", "echo"), None, fields(row), host=False))
                self.assertEqual(r.status, 405)
                self.assertEqual(self.runs(), before)

    def test_websocket_upgrades(self):
        n = 0
        upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                   ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]
        for row in self.rows:
            if row["wire"] != "ws":
                continue
            # The server has no tokens, so a program without an Origin (every Genkit runtime) comes in; a page never does.
            codes = {101} if "allow" in row["expect"] or needs_token(row) else allowed(row["expect"])
            codes |= {400} if row["id"][3:] in MALFORMED else set()
            for path in ("/", "/flow/echo"):
                with self.subTest((row["id"], path)):
                    r = self.handshake(request("GET", path, None, fields(row) + upgrade, host=False))
                    self.assertIn(r.status, codes, (row["headers"], r))
                    if r.status != 101:
                        self.assertFalse(r.all("sec-websocket-accept"), r)
            n += 1
        print("own-browser-attacks: %d WebSocket rows" % n)


class Hosts(unittest.TestCase):
    def status(self, s, host, origin=None):
        with s.connect() as c:
            extra = [("Origin", origin)] if origin else []
            c.send(request("POST", "/flow/echo", b'{"data":1}', extra, host=host))
            return c.response().status

    def test_own_names(self):
        p = server.port
        for host in ("127.0.0.1:%d" % p, "localhost:%d" % p, "[::1]:%d" % p, "LocalHost:%d" % p):
            with self.subTest(host):
                self.assertEqual(self.status(server, host), 200)

    def test_foreign_ports_and_names(self):
        p = server.port
        for host in ("127.0.0.1:%d" % (p - 1), "localhost:1", "example.com:%d" % p, "localhost.:%d" % p, "127.0.0.2:%d" % p, "x.localhost:%d" % p):
            with self.subTest(host):
                self.assertEqual(self.status(server, host), 403)

    def test_malformed_hosts(self):
        p = server.port
        for host in ("localhost:%d:%d" % (p, p), "localhost:%d/" % p, "a b", "localhost:%dx" % p, "localhost:%d0" % p, "localhost:0%d" % p, "[::1:%d" % p,
                     "user@localhost:%d" % p):
            with self.subTest(host):
                self.assertIn(self.status(server, host), (400, 403))

    def test_two_hosts(self):
        with server.connect() as c:
            c.send(request("POST", "/flow/echo", b'{"data":1}', [("Host", "localhost:%d" % server.port)], port=server.port))
            self.assertEqual(c.response().status, 400)

    def test_absolute_form_does_not_bypass(self):
        with server.connect() as c:
            c.send(request("POST", "http://evil.example/flow/echo", b'{"data":1}', port=server.port))
            self.assertIn(c.response().status, (400, 403, 421))
        with server.connect() as c:
            c.send(request("POST", "http://127.0.0.1:%d/flow/echo" % server.port, b'{"data":1}', host="evil.example"))
            self.assertIn(c.response().status, (400, 403, 421))

    def test_http10_with_a_foreign_host(self):
        with server.connect() as c:
            c.send(request("POST", "/flow/echo", b'{"data":1}', host="evil.example", version="1.0"))
            self.assertEqual(c.response().status, 403)

    def test_allow_host(self):
        with Server("--allow-host", "dev.example", "--allow-host", "other.test:8443") as s:
            p = s.port
            for host, code in (("dev.example", 200), ("dev.example:%d" % p, 200), ("DEV.example", 200), ("other.test:8443", 200),
                               ("127.0.0.1:%d" % p, 200), ("evil.example", 403), ("xdev.example", 403), ("dev.example.evil", 403),
                               ("other.test:8444", 403)):
                with self.subTest(host):
                    self.assertEqual(self.status(s, host), code)
            self.assertEqual(self.status(s, "127.0.0.1:%d" % p, "https://evil.example"), 403)

    def test_allow_host_patterns(self):
        with Server("--allow-host", "*.dev.example", "--allow-host", "*.far.test:8443", "--allow-host", "gate.test:80",
                    "--allow-host", "http://url.test", "--allow-host", "*") as s:
            p = s.port
            for host, code in (("a.dev.example", 200), ("a.b.dev.example:%d" % p, 200), ("dev.example", 403),
                               ("xdev.example", 403), ("a.dev.example.evil", 403), ("a.dev.example:1", 403),
                               ("a.far.test:8443", 200), ("a.far.test:%d" % p, 403), ("gate.test", 200),
                               ("gate.test:80", 200), ("url.test", 403), ("evil.example", 403)):
                with self.subTest(host):
                    self.assertEqual(self.status(s, host), code)
            self.assertEqual(self.status(s, "a.far.test:8443", "http://a.far.test:8443"), 200)
            for extra, host in (((), "evil.example"), ((("Origin", "http://evil.example"),), "a.dev.example")):
                with self.subTest(extra=extra), s.connect() as c:
                    c.send(request("POST", "/flow/echo", b'{"data":1}', extra, host=host))
                    self.assertIn("--allow-host", c.response().json()["message"])
            log = s.stderr()
            for pattern in ('http://url.test', '*'):
                self.assertIn('allowed host \\"%s\\" matches no request' % pattern, log)
            self.assertEqual(log.count("matches no request"), 2, log)


if __name__ == "__main__":
    support.main()
