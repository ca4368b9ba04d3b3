"""everywire bench: every wire, its figures, errors by status, open loop, plots, the live line, signals, bad usage.

No figure is compared with a clock: the machine may be slow.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pty
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.request
import xml.dom.minidom

from support import BINARY, SLOW, FakeServer, Server, canned, cli, main, wait_until

SHORT = ("-t", "150ms", "--warmup", "20ms")


def bench(*args, code=0, **kw):
    got = cli("bench", *args, "--json", **kw)
    if got.code != code:
        raise AssertionError("exit %d wanted: %r" % (code, got))
    return json.loads(got.out) if got.out else got


def figure(server, name, action):
    """The sum of what a server's metrics say of an action."""
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % server.port, timeout=20) as answer:
        lines = answer.read().decode().split("\n")
    return sum(float(line.split()[-1]) for line in lines if line.startswith('everywire_%s{action="/flow/%s"' % (name, action)))


def wait_for_calls(server, action, more):
    """Until so many more calls have ended than when this was asked: the driver is under way then."""
    before = figure(server, "calls_total", action)
    return lambda: wait_until(lambda: figure(server, "calls_total", action) >= before + more, timeout=30 * SLOW)


class Bench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.socket = os.path.join(cls.folder.name, "s")
        cls.server = Server("--threads", "1", listen=("127.0.0.1:0", "jsonrpc=unix:" + cls.socket))
        cls.server.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)
        cls.folder.cleanup()

    def at(self, wire):
        return "%s://127.0.0.1:%d" % (wire, self.server.port)

    def check(self, got, some=True):
        """What holds for all results."""
        self.assertEqual(sum(got["status"].values()), got["calls"])
        self.assertEqual(got["calls"] - got["status"].get("OK", 0), got["errors"])
        self.assertEqual(sum(got["error_origin"].values()), got["errors"])
        if not some:
            return
        self.assertGreater(got["calls"], 0)
        for name in ("latency_us", "first_chunk_us"):
            times = got.get(name)
            if times:
                row = [times[k] for k in ("min", "p50", "p90", "p99", "p99.9", "max")]
                self.assertEqual(row, sorted(row), got)
                self.assertGreater(times["min"], 0)
                self.assertTrue(times["min"] <= times["mean"] <= times["max"], got)
        self.assertAlmostEqual(got["rps"], got["calls"] / got["seconds"], delta=got["rps"] * 0.001 + 1)
        self.assertGreater(got["bytes_in"], 0)
        self.assertGreater(got["bytes_out"], 0)

    # ---- every wire ----

    def test_dialled(self):
        for target, connections, made in ((self.at("http"), 6, 6), (self.at("stepflow+http"), 6, 6), (self.at("jsonrpc"), 2, 2),
                                          (self.at("rrq"), 2, 2), ("jsonrpc+unix:" + self.socket, 2, 2)):
            with self.subTest(target):
                got = bench(target, "echo", '{"a":1}', "-c", "2", "-d", "3", *SHORT)
                self.check(got)
                self.assertEqual(got["errors"], 0)
                self.assertEqual((got["connections"], got["connections_made"], got["in_flight"]), (connections, made, 6))

    def test_programs(self):
        for args in (("jsonrpc+stdio:", "echo", "--", BINARY, "serve", "--demo", "--listen", "jsonrpc=stdio"),
                     ("stepflow+stdio:", "/echo", "-c", "2", "--", BINARY, "serve", "--demo", "--stdio"),
                     ("rrq://127.0.0.1:0", "echo", "-c", "2", "--", BINARY, "serve", "--demo"),
                     ("stepflow+http:", "/echo", "-c", "2", "--", BINARY, "serve", "--demo", "--port", "0"),
                     ("reflection://127.0.0.1:0", "/flow/echo", "--", BINARY, "serve", "--demo")):
            with self.subTest(args[0]):
                at = args.index("--")
                got = cli("bench", *args[:at], "-d", "4", *SHORT, "--json", *args[at:], timeout=30)
                self.assertEqual(got.code, 0, got)
                row = json.loads(got.out)
                self.check(row)
                self.assertEqual(row["errors"], 0)

    def test_token_and_verbose(self):
        tokens = os.path.join(self.folder.name, "tokens")
        token = cli("token", "new", "--tokens", tokens, "--name", "bench").out.decode().strip()
        with Server("--tokens", tokens, "--threads", "1") as s:
            for wire in ("http", "jsonrpc", "rrq"):
                target = "%s://127.0.0.1:%d" % (wire, s.port)
                got = bench(target, "echo", "{}", "-n", "20", "--warmup", "0", env={"EVERYWIRE_TOKEN": token})
                self.assertEqual(got["status"], {"OK": 20}, wire)
            got = bench(target, "echo", "{}", "-n", "2", "--warmup", "0", code=1)
            self.assertEqual(got["status"], {"UNAUTHENTICATED": 2})
            with open(os.open(tokens + ".one", os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
                f.write(token)
            got = cli("bench", s.url, "greet", '"Ada"', "-n", "1", "-c", "1", "--warmup", "0", "--token", "@" + tokens + ".one", "-v")
            self.assertEqual(got.code, 0, got)
            self.assertIn(b"> POST /greet HTTP/1.1", got.err)
            self.assertNotIn(token.encode(), got.err)

    def test_streams(self):
        for wire in ("http", "jsonrpc"):
            with self.subTest(wire):
                got = bench(self.at(wire), "stream", '{"n":7}', "--stream", "-c", "2", *SHORT)
                self.check(got)
                self.assertEqual(got["chunks"], 7 * got["calls"])
                self.assertLessEqual(got["first_chunk_us"]["max"], got["latency_us"]["max"])

    def test_threads(self):
        got = bench(self.at("jsonrpc"), "echo", "1", "-c", "5", "-d", "2", "--threads", "2", *SHORT)
        self.check(got)
        self.assertEqual((got["threads"], got["connections_made"], got["in_flight"]), (2, 5, 10))

    def test_large_inputs_are_sent_each_time(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump("x" * 100000, f)
            f.flush()
            for wire in ("http", "jsonrpc"):
                got = bench(self.at(wire), "echo", "@" + f.name, "-c", "2", "-n", "20")
                self.check(got)
                self.assertEqual(got["status"], {"OK": 20})
                self.assertGreater(got["bytes_in"], 20 * 100000)

    # ---- how many, how fast ----

    def test_number_of_calls_is_exact(self):
        with Server(listen=("http=127.0.0.1:0",)) as server:
            for n in ("1", "3", "250"):
                got = bench(server.url, "echo", "1", "-n", n, "-c", "7")
                self.check(got)
                self.assertEqual(got["calls"], int(n))
            got = bench(server.url, "echo", "1", "-n", "20", "--rate", "2000", "-c", "3")
            self.assertEqual(got["calls"], 20)

    def test_open_loop(self):
        got = bench(self.at("http"), "echo", "1", "--rate", "200", "-t", "1s", "-c", "4", "--warmup", "0")
        self.check(got)
        self.assertEqual(got["loop"], "open")
        self.assertEqual(got["calls"] + got["unsent"] + got["unfinished"], 200)

    def test_open_loop_counts_from_the_time_that_was_meant(self):
        """One connection, calls of 50 ms, 100 a second: four of five wait, and that shows."""
        got = bench(self.at("http"), "sleep", '{"ms":50}', "--rate", "100", "-t", "600ms", "-c", "1", "--warmup", "0")
        self.check(got)
        self.assertGreater(got["late"], 0)
        self.assertGreater(got["unsent"], 0)
        self.assertGreater(got["latency_us"]["p90"], 100000)
        closed = bench(self.at("http"), "sleep", '{"ms":50}', "-t", "600ms", "-c", "1", "--warmup", "0")
        self.assertNotIn("late", closed)

    # ---- failures ----

    def test_errors_by_status(self):
        for wire in ("http", "rrq", "jsonrpc"):
            with self.subTest(wire):
                got = cli("bench", self.at(wire), "fail", '{"status":"NOT_FOUND","message":"gone"}', "-n", "30", "--json")
                self.assertEqual(got.code, 1, got)
                self.assertEqual((got.error()["status"], got.error()["message"]), ("NOT_FOUND", "gone"))
                row = json.loads(got.out)
                self.check(row)
                self.assertEqual((row["status"], row["error_origin"]), ({"NOT_FOUND": 30}, {"action": 30}))
                self.assertEqual(row["first_error"]["status"], "NOT_FOUND")

    def test_timeouts(self):
        got = cli("bench", self.at("http"), "sleep", '{"ms":60000}', "-n", "4", "-c", "2", "--timeout", "50ms", "--json")
        self.assertEqual(got.code, 5, got)
        row = json.loads(got.out)
        self.assertEqual((row["status"], row["error_origin"]), ({"DEADLINE_EXCEEDED": 4}, {"deadline": 4}))
        self.assertGreaterEqual(row["latency_us"]["min"], 49000)

    def test_some_failures_are_no_failure(self):
        answers = iter(range(1000))

        def answer(*args):
            good = next(answers) % 2 == 0
            return canned("200 OK", b'{"result":1}')(*args) if good else canned("500 Internal Server Error", b'{}')(*args)
        with FakeServer(answer) as peer:
            got = bench("http://127.0.0.1:%d" % peer.port, "x", "-n", "10", "-c", "1")
        self.check(got)
        self.assertEqual(got["status"]["OK"], 5)
        self.assertEqual(got["errors"], 5)

    def test_not_reached(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            got = cli("bench", "http://127.0.0.1:%d" % s.getsockname()[1], "echo")
        self.assertEqual((got.code, got.out), (3, b""), got)
        self.assertEqual(got.error()["status"], "UNAVAILABLE")

    def test_no_such_action(self):
        got = cli("bench", self.at("http"), "nope", *SHORT)
        self.assertEqual((got.code, got.error()["status"]), (1, "NOT_FOUND"), got)

    def test_none_in_time(self):
        got = cli("bench", self.at("http"), "sleep", '{"ms":1500}', "-t", "50ms", "-c", "1", "--warmup", "0")
        self.assertEqual(got.code, 0 if b"calls                    1" in got.out else 1, got)

    def test_peer_goes(self):
        """A peer that goes in the middle is an error of some calls, and no busy loop."""
        with Server(check_exit=False) as server:
            under_way = wait_for_calls(server, "echo", 20)
            p = subprocess.Popen([BINARY, "bench", "jsonrpc://127.0.0.1:%d" % server.port, "echo", "-t", "1s", "--warmup", "0", "--json"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            under_way()
            server.process.kill()
        out, err = p.communicate(timeout=20 * SLOW)
        row = json.loads(out)
        self.check(row)
        self.assertEqual(p.returncode, 0, err)
        self.assertIn("connect", row["error_origin"])
        self.assertLess(row["error_origin"]["connect"], 1000)

    # ---- usage ----

    def test_bad_usage(self):
        target = self.at("http")
        for args, said in (((target,), "ACTION is missing"), ((), "TARGET and ACTION are missing"),
                           ((target, "echo", "--conections", "3"), "--connections"), ((target, "echo", "-c", "0"), "-c 0: not a number"),
                           ((target, "echo", "-c", "x"), "-c x"), ((target, "echo", "-t", "fast"), "-t fast: not a duration"),
                           ((target, "echo", "-t", "0"), "nothing to measure"), ((target, "echo", "--rate", "-3"), "--rate"),
                           ((target, "echo", "--rate", "1e5"), "--rate 1e5"), ((target, "echo", "{"), "INPUT is not valid JSON"),
                           ((target, "echo", "--context", "{}"), "cannot carry this"), ((target, "echo", "1", "2"), "unexpected word 2"),
                           (("reflection://127.0.0.1:0", "echo", "-c", "2"), "dials us"),
                           ((target, "echo", "--plot", "/nowhere/at/all.svg"), "--plot: cannot write"),
                           (("gopher://x", "echo"), "target gopher://x")):
            with self.subTest(args):
                got = cli("bench", *args)
                self.assertEqual(got.code, 2, got)
                self.assertIn(said, got.err.decode())

    def test_help(self):
        got = cli("bench", "--help")
        self.assertEqual(got.code, 0)
        for word in ("--connections", "--rate", "--plot", "--warmup", "--timeout", "Examples:", "Exit codes:"):
            self.assertIn(word, got.out.decode())
        self.assertIn("bench", cli("--help").out.decode())

    # ---- what is shown ----

    def test_table(self):
        got = cli("bench", self.at("http"), "echo", "-n", "50", "-c", "2", "-d", "2")
        self.assertEqual(got.code, 0, got)
        for word in ("calls", "errors", "bytes", "mean", "p50", "p90", "p99", "p99.9", "max"):
            self.assertIn(word, got.out.decode())
        self.assertNotIn("by percentile", got.out.decode())  # no terminal
        self.assertIn("-d 2 makes 4 connections", got.err.decode())
        self.assertNotIn("\r", got.err.decode())

    def test_plot(self):
        path = os.path.join(self.folder.name, "a.svg")
        got = cli("bench", self.at("http"), "stream", "--stream", "-n", "50", "--plot", path)
        self.assertEqual(got.code, 0, got)
        svg = xml.dom.minidom.parse(path).documentElement
        self.assertEqual(svg.tagName, "svg")
        texts = [t.firstChild.data for t in svg.getElementsByTagName("text")]
        for wanted in ("0 %", "90 %", "99 %", "percentile", "to the first chunk"):
            self.assertIn(wanted, texts)
        self.assertGreaterEqual(len(svg.getElementsByTagName("path")), 4)

    def on_terminal(self, *args):
        pid, fd = pty.fork()
        if pid == 0:
            os.environ.update(LANG="C.UTF-8", LC_ALL="C.UTF-8", TERM="xterm")
            os.execv(BINARY, [BINARY, "bench", *args])
        return pid, fd

    def read_all(self, pid, fd):
        out = b""
        while True:
            try:
                piece = os.read(fd, 65536)
            except OSError:
                piece = b""
            if not piece:
                break
            out += piece
        os.close(fd)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out.decode()

    def test_terminal(self):
        pid, fd = self.on_terminal(self.at("http"), "echo", "-t", "900ms", "--warmup", "0")
        code, out = self.read_all(pid, fd)
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"\r\x1b\[K\d+\.\d of 0\.9 s  [\d,]+ calls/s  p50 .* p99 .* errors 0")
        self.assertIn("latency by percentile", out)
        self.assertIn("█", out)

    def test_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            under_way = wait_for_calls(self.server, "echo", 20)
            p = subprocess.Popen([BINARY, "bench", self.at("http"), "echo", "-t", "60s", "--warmup", "0", "--json"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
            under_way()
            p.send_signal(number)
            out, err = p.communicate(timeout=20 * SLOW)
            self.assertEqual(p.returncode, 128 + number, err)
            row = json.loads(out)
            self.check(row)
            self.assertTrue(row["interrupted"])
            self.assertLess(row["seconds"], 50)

    def test_interrupted_before_the_first_answer(self):
        p = subprocess.Popen([BINARY, "bench", self.at("http"), "sleep", '{"ms":60000}'], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: figure(self.server, "calls_in_flight", "sleep") >= 1, timeout=30 * SLOW)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=20 * SLOW)
        self.assertEqual((p.returncode, out), (130, b""), err)


if __name__ == "__main__":
    main()
