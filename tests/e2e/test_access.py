"""Who may call what: tokens over every wire, listeners beyond loopback, files of tokens, limits per address.

SPDX-License-Identifier: Apache-2.0
"""
import http.server
import json
import os
import re
import shutil
import signal
import socket
import stat
import tempfile
import threading
import time
import unittest

import rrq_support
import support
from support import Server, cli, request

WIRES = ("http", "jsonrpc", "rrq", "stepflow+http")
NAMES = {"http": "http", "jsonrpc": "jsonrpc", "rrq": "rrq", "stepflow+http": "stepflow"}
UPGRADE = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
           ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]


class Folder:
    """A folder of our own with a file of tokens in it."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="ew-access-")
        self.file = os.path.join(self.path, "tokens")

    def new(self, name, *args):
        r = cli("token", "new", "--tokens", self.file, "--name", name, *args)
        if r.code != 0:
            raise AssertionError(r)
        return r.out.decode().strip()

    def revoke(self, name):
        return cli("token", "revoke", name, "--tokens", self.file)

    def remove(self):
        shutil.rmtree(self.path)


def bearer(token):
    return [("Authorization", "Bearer " + token)] if token else []


class Matrix(unittest.TestCase):
    """5 wires x {no token, wrong, expired, revoked, for another action, for another wire, right}."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        new = cls.folder.new
        cls.right = new("right")
        cls.flows = new("flows", "--action", "/flow/e*", "--action", "/runtimes")
        cls.other = new("other", "--action", "/tool/*")
        cls.by_wire = {name: new("only-" + name, "--wire", name) for name in
                       ("http", "jsonrpc", "rrq", "stepflow", "reflection")}
        expired = new("expired", "--expires", "1ms")
        gone = new("gone")
        cls.folder.revoke("gone")
        cls.bad = {"none": None, "wrong": "ewt_" + "0" * 64, "expired": expired, "revoked": gone}

    @classmethod
    def tearDownClass(cls):
        cls.folder.remove()

    def setUp(self):
        self.start()

    def start(self):
        """A server of its own for each test and wire: wrong tokens are counted, and after ten in a second all wait."""
        self.server = Server("--allow-remote", "--tokens", self.folder.file, "--log-level", "debug",
                             listen=("0.0.0.0:0",)).start()

    def tearDown(self):
        text = self.server.stderr()
        self.server.__exit__(None, None, None)
        with open(self.folder.file) as f:
            text += f.read()
        for token in [self.right, self.flows, self.other] + list(self.by_wire.values()):
            self.assertNotIn(token, text, "a token was logged or kept")

    def target(self, wire):
        return "%s://127.0.0.1:%d" % (wire, self.server.port)

    def run_cli(self, verb, wire, token, *args):
        return cli(verb, self.target(wire), *args, env={"EVERYWIRE_TOKEN": token or ""})

    def status(self, r):
        return r.error()["status"]

    def test_calls_and_lists(self):
        for wire in WIRES:
            self.tearDown()
            self.start()
            for kind, token in self.bad.items():
                with self.subTest((wire, kind)):
                    r = self.run_cli("call", wire, token, "echo", '{"a":1}')
                    self.assertEqual((r.code, self.status(r)), (1, "UNAUTHENTICATED"), r)
                    r = self.run_cli("call", wire, token, "no-such-action", "{}")  # what there is, is not told
                    self.assertEqual(self.status(r), "UNAUTHENTICATED", r)
            r = self.run_cli("list", wire, None)
            self.assertEqual(self.status(r), "UNAUTHENTICATED", r)
            other_wire = self.by_wire["http" if wire != "http" else "rrq"]
            for kind, token in (("action", self.other), ("wire", other_wire)):
                with self.subTest((wire, kind)):
                    r = self.run_cli("call", wire, token, "echo", '{"a":1}')
                    self.assertEqual((r.code, self.status(r)), (1, "PERMISSION_DENIED"), r)
            for token in (self.right, self.flows, self.by_wire[NAMES[wire]]):
                r = self.run_cli("call", wire, token, "echo", '{"a":1}')
                self.assertEqual((r.code, r.out), (0, b'{"a":1}\n'), r)
            r = self.run_cli("list", wire, self.flows)
            self.assertEqual(list(json.loads(r.out)), ["/flow/echo"])
            self.assertIn("/tool/sha256", json.loads(self.run_cli("list", wire, self.right).out))

    def test_streams_are_refused_before_they_begin(self):
        for wire in ("http", "jsonrpc"):
            r = self.run_cli("call", wire, self.other, "count", '{"n":2}', "--stream")
            self.assertEqual((r.code, r.out, self.status(r)), (1, b"", "PERMISSION_DENIED"), r)

    def upgrade(self, path, headers):
        with self.server.connect() as c:
            c.send(request("GET", path, None, list(headers) + UPGRADE, port=self.server.port))
            return support.parse_head(c._until(b"\r\n\r\n", time.monotonic() + 10 * support.SLOW))

    def test_runtimes_that_dial_us(self):
        for kind, token in self.bad.items():
            r = self.upgrade("/", bearer(token))
            self.assertEqual((kind, r.status), (kind, 401))
            self.assertIn("Bearer", r.get("www-authenticate"))
        for token in (self.other, self.by_wire["http"]):
            self.assertEqual(self.upgrade("/", bearer(token)).status, 403)
        for token in (self.right, self.flows, self.by_wire["reflection"]):
            self.assertEqual(self.upgrade("/", bearer(token)).status, 101)
            self.assertEqual(self.upgrade("/?token=" + token, ()).status, 101)
            protocols = [("Sec-WebSocket-Protocol", "actions.v1, bearer." + token)]
            self.assertEqual(self.upgrade("/", protocols).status, 101)
        self.assertEqual(self.upgrade("/?token=a&token=" + self.right, ()).status, 401)

    def test_a_program_that_dials_us(self):
        url = "ws://127.0.0.1:%d/?token=%s" % (self.server.port, self.by_wire["reflection"])
        with Server(listen=(), env={"GENKIT_REFLECTION_V2_SERVER": url, "GENKIT_RUNTIME_ID": "dialler"}) as runtime:
            def offered():
                return b"dialler:/flow/echo" in self.server.get("/api/actions", bearer(self.right)).body
            support.wait_until(offered, 10)
            self.assertNotIn(self.by_wire["reflection"], runtime.stderr() + "".join(runtime.lines))
        with Server("--connect", "ws://127.0.0.1:%d" % self.server.port, listen=(),
                    env={"EVERYWIRE_TOKEN": self.right, "GENKIT_RUNTIME_ID": "second"}):
            support.wait_until(lambda: b"second:/flow/echo" in self.server.get("/api/actions", bearer(self.right)).body, 10)

    def test_an_import(self):
        secret = os.path.join(self.folder.path, "import.token")
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(self.right + "\n")
        config = os.path.join(self.folder.path, "import.yaml")
        with open(os.open(config, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write("imports:\n" + "".join("  - {target: '%s', prefix: %s, token_file: import.token}\n" %
                                           (self.target(w), NAMES[w]) for w in WIRES))
        with Server("--config", config, demo=False) as s:
            for wire in WIRES:
                r = cli("call", s.url, "/flow/%s/echo" % NAMES[wire], '{"a":2}')
                self.assertEqual((r.code, r.out), (0, b'{"a":2}\n'), (wire, r))
            with open("/proc/%d/cmdline" % s.pid) as f:
                self.assertNotIn(self.right, f.read())
        os.chmod(secret, 0o644)
        r = cli("check", config)
        self.assertEqual(r.code, 1, r)
        self.assertIn(b"chmod 600", r.out + r.err)

    def test_what_is_no_action(self):
        get = self.server.get
        for path in ("/healthz", "/readyz", "/health"):
            self.assertEqual(get(path).status, 200)
        for path in ("/metrics", "/api/actions", "/nothing"):
            r = get(path)
            self.assertEqual((r.status, r.json()["status"]), (401, "UNAUTHENTICATED"))
            self.assertEqual(r.get("www-authenticate"), 'Bearer realm="everywire"')
        self.assertEqual(get("/metrics", bearer(self.right)).status, 200)
        self.assertEqual(get("/metrics", bearer(self.flows)).status, 403)
        # Host and Origin are asked for whatever the token
        self.assertEqual(get("/metrics", bearer(self.right) + [("Origin", "http://evil.example")]).status, 403)

    def test_jobs(self):
        job = self.folder.new("job-" + os.urandom(3).hex(), "--action", "/jobs/flow/*")
        store = "sqlite:" + os.path.join(self.folder.path, "jobs.db")
        with Server("--tokens", self.folder.file, "--store", store) as s:
            for path in ("/jobs/flow/echo", "/jobs/tool/sha256"):
                self.assertEqual(s.post(path, b'{"data":{}}').status, 401)
                self.assertEqual(s.post(path, b'{"data":{}}', bearer(self.other)).status, 403)
            self.assertEqual(s.post("/jobs/tool/sha256", b'{"data":{}}', bearer(job)).status, 403)
            self.assertEqual(s.get("/jobs", bearer(job)).status, 403)
            r = s.post("/jobs/flow/echo", b'{"data":{}}', bearer(job))
            self.assertLess(r.status, 300, r)
            self.assertEqual(s.get("/jobs").status, 401)
            self.assertEqual(s.get("/jobs", bearer(self.right)).status, 200)

    def test_jobs_tell_schemas_to_those_who_may(self):
        """Who may not call an action does not learn what it takes, nor that an option is unknown; no fault quotes a value."""
        config = os.path.join(self.folder.path, "schema.yaml")
        with open(os.open(config, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write("actions:\n  /tool/strict:\n    exec: [cat]\n    input_schema: {type: object, properties: "
                    "{n: {enum: [1]}}, additionalProperties: false, propertyNames: {maxLength: 9}}\n")
        bad = b'{"data":{"n":"%s"}}' % CANARY.encode()
        with Server("--config", config, "--tokens", self.folder.file, "--store", "sqlite:" + config + ".db", "--worker", demo=False) as s:
            for path in ("/jobs/tool/strict", "/jobs/tool/strict?no_such=1", "/jobs/tool/none", "/jobs/x?wait=no"):
                for token, code in ((None, 401), (self.flows, 403)):
                    r = s.post(path, bad, bearer(token))
                    self.assertEqual(r.status, code, (path, r))
                    self.assertNotIn(b"schema", r.body)
            r = s.post("/jobs/tool/strict", bad, bearer(self.right))
            self.assertEqual((r.status, r.json()["status"]), (400, "INVALID_ARGUMENT"), r)
            self.assertIn(b"keyword", r.body)
            self.assertNotIn(CANARY.encode(), r.body)

    def test_rrq_cancels_need_a_token(self):
        port = self.server.port
        with rrq_support.Rrq(port) as c, rrq_support.Rrq(port) as stranger, rrq_support.Rrq(port) as other:
            c.request("everywire.auth", {"token": self.right})
            self.assertEqual(c.outcome()["status"], "success")
            c.request("sleep", {"ms": 700}, id="r2", job="j2")
            stranger.cancel("j2", "r2")
            other.request("everywire.auth", {"token": self.other})
            self.assertEqual(other.outcome()["status"], "success")
            other.cancel("j2", "r2")
            self.assertEqual(c.outcome()["status"], "success", "it was cancelled by somebody who may not")
            c.request("sleep", {"ms": 20000}, id="r3", job="j3")
            c.cancel("j3", "r3")
            self.assertEqual(c.outcome()["error"]["type"], "cancelled")

    def test_revocation_counts_at_once(self):
        token = self.folder.new("short")
        with self.server.connect() as c, self.server.connect() as rpc:
            ask = request("POST", "/flow/echo", b'{"data":1}', bearer(token), port=self.server.port)
            def works():
                try:
                    c.send(ask)
                    return c.response().status == 200
                except (support.Closed, OSError):  # a revoked token loses its connections, too
                    return False
            support.wait_until(works, 5)
            line = b'{"jsonrpc":"2.0","id":%d,"method":"echo","params":{}}\n'
            rpc.send(b'{"jsonrpc":"2.0","id":0,"method":"everywire.auth","params":{"token":"%s"}}\n' % token.encode())
            rpc.send(line % 1)
            answers = rpc.exactly(len(b'{"jsonrpc":"2.0","id":0,"result":null}\n{"jsonrpc":"2.0","id":1,"result":{}}\n'),
                                  time.monotonic() + 5)
            self.assertEqual(answers.count(b'"result"'), 2)
            self.assertEqual(self.folder.revoke("short").code, 0)
            self.server.signal(signal.SIGHUP)
            support.wait_until(lambda: not works(), 5)
            self.assertTrue(rpc.closed())
        self.assertEqual(self.server.call("/flow/echo", b"1", bearer(token)).status, 401)
        self.assertEqual(self.folder.revoke("short").code, 1)


class Rows(unittest.TestCase):
    """The rows of the corpus of browser attacks that are about tokens."""

    def test_rows(self):
        rows = support.corpus("own-browser-attacks", "origin-host-matrix.jsonl")
        folder = Folder()
        token = folder.new("one")
        n = 0
        try:
            with Server("--tokens", folder.file) as server:
                for row in rows:
                    if row["wire"] not in ("http", "ws"):
                        continue
                    about = "token" in row["id"] or "TOKEN" in str(row["headers"])
                    headers = []
                    for name, value in row["headers"].items():
                        for one in value if isinstance(value, list) else [value]:
                            headers.append((name, one.replace("PORT", str(server.port)).replace("TOKEN", token)
                                            .replace("TOKE", token[:-1])))
                    if not about:  # with a right token, too
                        headers += bearer(token)
                    codes = set()
                    if re.search(r"\ballow\b", row["expect"]):
                        codes.add(101 if row["wire"] == "ws" else 200)
                    m = re.search(r"deny ([0-9/]+)", row["expect"])
                    codes |= {int(c) for c in m.group(1).split("/")} if m else set()
                    if row["id"].endswith(("host-bad-empty", "host-bad-localhost:PORT@evil.example")):
                        codes.add(400)
                    with self.subTest(row["id"]), server.connect() as c:
                        if row["wire"] == "ws":
                            c.send(request("GET", "/", None, headers + UPGRADE, host=False))
                            r = support.parse_head(c._until(b"\r\n\r\n", time.monotonic() + 10))
                        else:
                            c.send(request("POST", "/flow/echo", b'{"data":1}', headers, host=False, ctype=None))
                            r = c.response()
                        self.assertIn(r.status, codes, (row, r))
                        n += 1
        finally:
            folder.remove()
        print("own-browser-attacks: %d rows with a server that wants a token" % n)


class Start(unittest.TestCase):
    """What is refused before anything listens, and files that others can touch."""

    def setUp(self):
        self.folder = Folder()
        self.env = {"XDG_STATE_HOME": self.folder.path, "HOME": self.folder.path, "EVERYWIRE_TOKENS": ""}

    def tearDown(self):
        self.folder.remove()

    def serve(self, *args):
        return cli("serve", "--demo", *args, env=self.env)

    def test_wide_open_is_refused(self):
        for args in (("--listen", "0.0.0.0:0"), ("--listen", "[::]:0"), ("--tcp-socket", "0.0.0.0:9"),
                     ("--port", "0", "--host", "0.0.0.0"), ("--import", "reflection://0.0.0.0:0"),
                     ("--listen", "127.0.0.1:0", "--listen", "rrq=0.0.0.0:0")):
            with self.subTest(args):
                r = self.serve(*args)
                self.assertIn(b"allow-remote", r.err, r)
                r = self.serve("--allow-remote", *args)
                self.assertEqual(r.code, 1, r)
                self.assertIn(b"everywire token new", r.err)
        r = self.serve("--no-token", "--require-token")
        self.assertEqual(r.code, 2, r)
        config = os.path.join(self.folder.path, "c.yaml")
        with open(config, "w") as f:
            f.write("listen: ['0.0.0.0:0']\nallow_remote: true\n")
        r = self.serve("--config", config)
        self.assertEqual(r.code, 1, r)
        self.assertIn(b"everywire token new", r.err)

    def test_told_so(self):
        with Server("--allow-remote", "--no-token", listen=("0.0.0.0:0",), env=self.env) as s:
            self.assertEqual(s.call("/flow/echo", b"1").status, 200)
            self.assertIn("EVERYBODY", s.stderr())

    def test_the_usual_file(self):
        r = cli("token", "new", env=self.env)
        token = r.out.decode().strip()
        self.assertRegex(token, "^ewt_[0-9a-f]{64}$")
        file = os.path.join(self.folder.path, "everywire", "tokens")
        self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(file)).st_mode), 0o700)
        with open(file) as f:
            text = f.read()
        self.assertNotIn(token[4:], text)
        listed = [json.loads(line) for line in cli("token", "list", env=self.env).lines()]
        self.assertEqual([t["actions"] for t in listed], [[]])
        with Server("--allow-remote", listen=("0.0.0.0:0", "127.0.0.1:0", "unix:" + self.folder.path + "/s"),
                    env=self.env) as s:
            for listener in s.listeners[:2]:  # on all of TCP
                r = cli("call", "http://127.0.0.1:%d" % listener["port"], "echo", "1")
                self.assertEqual(r.error()["status"], "UNAUTHENTICATED")
            r = cli("call", "jsonrpc+unix:" + self.folder.path + "/s", "echo", "1")  # it is the user's own
            self.assertEqual((r.code, r.out), (0, b"1\n"))
        with Server(env=self.env) as s:  # nobody asks on loopback
            self.assertEqual(s.call("/flow/echo", b"1").status, 200)
        with Server("--require-token", env=self.env) as s:
            self.assertEqual(s.call("/flow/echo", b"1").status, 401)
            self.assertEqual(s.call("/flow/echo", b"1", bearer(token)).status, 200)
        r = cli("call", "jsonrpc+stdio:", "echo", "1", "--", support.BINARY, "serve", "--demo", "--stdio", "--tokens", file)
        self.assertEqual((r.code, r.out), (0, b"1\n"), r)

    def test_files_that_others_can_touch(self):
        self.folder.new("one")
        for mode in (0o640, 0o604, 0o620, 0o602):
            os.chmod(self.folder.file, mode)
            for r in (cli("token", "list", "--tokens", self.folder.file), self.serve("--tokens", self.folder.file),
                      cli("token", "new", "--tokens", self.folder.file)):
                self.assertEqual(r.code, 1, r)
                self.assertIn(b"chmod 600", r.err)
        os.chmod(self.folder.file, 0o600)
        os.chmod(self.folder.path, 0o770)
        r = self.serve("--tokens", self.folder.file)
        self.assertIn(b"chmod 700", r.err, r)
        os.chmod(self.folder.path, 0o700)
        with open(self.folder.file, "a") as f:
            f.write("what is this\n")
        r = self.serve("--tokens", self.folder.file)
        self.assertIn(b"tokens:2: not a JSON object", r.err, r)

    def test_bad_words(self):
        for args in ((), ("new", "--name", "a b"), ("new", "--wire", "carrier-pigeon"), ("new", "--action", "greet"),
                     ("new", "--expires", "soon"), ("revoke",), ("burn",), ("list", "--name", "x"), ("new", "x")):
            r = cli("token", *args, env=self.env)
            self.assertEqual(r.code, 2, (args, r))
        self.folder.new("a")
        r = cli("token", "new", "--name", "a", "--tokens", self.folder.file)
        self.assertEqual(r.code, 1, r)

    def test_a_client_that_listens(self):
        r = cli("call", "reflection://0.0.0.0:0", "x")
        self.assertEqual(r.code, 2, r)


class Limits(unittest.TestCase):
    def test_connections_per_address(self):
        with Server("--limit", "connections_per_address=3", "--threads", "2") as s:
            kept = [s.connect() for _ in range(3)]
            for c in kept:
                c.send(request("POST", "/flow/echo", b'{"data":1}', port=s.port))
                self.assertEqual(c.response().status, 200)
            with s.connect() as fourth:
                self.assertTrue(fourth.closed())
            elsewhere = socket.create_connection(("127.0.0.1", s.port), source_address=("127.0.0.9", 0))
            elsewhere.sendall(request("GET", "/healthz", port=s.port))
            self.assertIn(b"200", elsewhere.recv(100))
            elsewhere.close()
            kept.pop().close()
            def room():
                try:
                    with s.connect() as c:
                        c.send(request("GET", "/healthz", port=s.port))
                        return c.response().status == 200
                except (support.Closed, OSError):
                    return False
            support.wait_until(room, 5)
            for c in kept:
                c.close()

    def test_calls_per_second(self):
        with Server("--limit", "calls_per_second_per_address=5", "--threads", "2") as s:
            begin = time.monotonic()
            answers = [s.call("/flow/echo", b"1") for _ in range(8)]
            taken = time.monotonic() - begin
            good = sum(a.status == 200 for a in answers)
            self.assertGreaterEqual(good, 5)
            self.assertLessEqual(good, 5 + int(taken * 5) + 1)
            if taken < 0.2:
                self.assertEqual([a.status for a in answers[:6]], [200] * 5 + [429])
                self.assertEqual(answers[5].json()["status"], "RESOURCE_EXHAUSTED")
                self.assertEqual(answers[5].get("retry-after"), "1")
            for wire in WIRES[1:]:  # the same bucket, whatever the wire
                codes = [cli("call", "%s://127.0.0.1:%d" % (wire, s.port), "echo", "{}") for _ in range(3)]
                self.assertTrue(all(r.code == 0 or r.error()["status"] == "RESOURCE_EXHAUSTED" for r in codes), codes)

    def test_guesses(self):
        folder = Folder()
        token = folder.new("one")
        try:
            with Server("--tokens", folder.file, "--limit", "auth_refusals=1000") as s, s.connect() as c:
                seen = []
                for i in range(40):
                    c.send(request("POST", "/flow/echo", b'{"data":1}', bearer("ewt_%064x" % i), port=s.port))
                    seen.append(c.response().status)
                self.assertEqual(set(seen[:10]), {401})
                self.assertIn(429, seen)
                r = s.call("/flow/echo", b"1", bearer(token))
                self.assertEqual(r.status, 200)  # a good one is not held up
        finally:
            folder.remove()


CANARY = "canary-7f3b9c"


class Collector:
    """A telemetry server that keeps all it is sent."""

    def __enter__(self):
        outer = self
        self.bodies = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                outer.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def text(self):
        return b"".join(self.bodies).decode()


class Canary(unittest.TestCase):
    """One secret field's value, sent over all wires: it is in no log, no span, no metric and no frame that is shown."""

    CONFIG = """
actions:
  /tool/login:
    input_schema: SCHEMA
    output_schema: SCHEMA
    secrets: [/password]
    exec: {argv: [cat], output: json}
  /tool/deny:
    secrets: [/password, /pin, "/deep/*/key"]
    exec: {argv: ["false"]}
""".replace("SCHEMA", "{properties: {pin: {type: string, format: password}, deep: {items: {properties: {key: {x-everywire-secret: true}}}}}}")

    def setUp(self):
        self.folder = Folder()

    def tearDown(self):
        self.folder.remove()

    def config(self, name, text):
        path = os.path.join(self.folder.path, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(text)
        return path

    def test_canary(self):
        secret = {"user": "ada", "password": CANARY, "pin": CANARY}
        full = dict(secret, deep=[{"key": CANARY, "n": 1}])
        quiet = ("--log-level", "trace", "--verbose=full", "--threads", "2")
        store = "sqlite:" + os.path.join(self.folder.path, "jobs.db")
        with Collector() as spans:
            home = Server("--config", self.config("home.yaml", self.CONFIG), "--telemetry", spans.url, "--store", store,
                          "--worker", *quiet)
            with home:
                imports = "imports:\n" + "".join("  - {target: '%s://127.0.0.1:%d', prefix: %s}\n" %
                                                 (w, home.port, NAMES[w]) for w in WIRES)
                gateway = Server("--config", self.config("gate.yaml", imports), "--telemetry", spans.url, *quiet, demo=False)
                with gateway:
                    calls = 0
                    for wire in WIRES:
                        for server, prefix in ((home, "/tool/"), (gateway, "/tool/%s/" % NAMES[wire])):
                            target = "%s://127.0.0.1:%d" % (wire, server.port)
                            r = cli("call", target, prefix + "login", json.dumps(secret))
                            self.assertEqual((r.code, json.loads(r.out)), (0, secret), r)  # the caller has all of it
                            r = cli("call", target, prefix + "login", json.dumps(full))
                            self.assertEqual(r.code, 0, r)
                            r = cli("call", target, prefix + "deny", json.dumps(full))
                            self.assertEqual(r.code, 1, r)
                            calls += 3 if server is home else 6
                    env = {"EVERYWIRE_STORE": store}
                    for action in ("/tool/login", "/tool/deny"):
                        cli("job", "enqueue", action, json.dumps(secret), "--wait", "--max-retries", "1", "--timeout", "5s", env=env)
                    support.wait_until(lambda: spans.text().count("genkit:input") >= calls, 10)
                    said = home.get("/metrics").body.decode() + gateway.get("/metrics").body.decode()
                    said += home.get("/api/actions").body.decode()
                    said += home.stderr() + gateway.stderr()
            text = spans.text()
        self.assertIn("***", text)
        self.assertIn("ada", text)  # spans do carry payloads
        for wire in ("POST /tool/login", '"method":', '"type":"request"'):  # and frames are shown
            self.assertRegex(said, r"#\d+ [<>] .*" + wire)
        self.assertRegex(said, r'[<>] .*"user": ?"ada"')
        for place, words in (("spans", text), ("elsewhere", said)):
            at = words.find(CANARY)
            self.assertEqual(at, -1, (place, words[max(at - 600, 0):at + 20]))


if __name__ == "__main__":
    unittest.main()
