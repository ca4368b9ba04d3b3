#!/usr/bin/env python3
"""everywire as the manager of Genkit runtimes: the targets reflection://H:P of the command line, and `serve`, whose ports
runtimes may dial. The runtimes are those of fake_runtime.py.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import support
from fake_runtime import FLOWS, Runtime, connect, echo
from support import SLOW, Server, WebSocket, cli, free_ports, wait_until

PROGRAM = [sys.executable, os.path.join(support.HERE, "fake_runtime.py")]
ANY = "reflection://127.0.0.1:0"


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def command_of(pid):
    try:
        with open("/proc/%s/cmdline" % pid, "rb") as f:
            return f.read()
    except OSError:
        return b""


def call(action, *args, program=(), target=ANY, **kw):
    return cli("call", target, action, *args, "--", *PROGRAM, *program, **kw)


class Started(unittest.TestCase):
    """The program behind -- dials us."""

    def ok(self, r):
        self.assertEqual(r.code, 0, r)
        return r.lines()

    def failed(self, r, code, status):
        self.assertEqual(r.code, code, r)
        self.assertEqual(r.error()["status"], status, r)
        return r.error()

    def test_call(self):
        self.assertEqual(self.ok(call("/flow/echo", '{"a":[1,2]}')), ['{"a": [1, 2]}'])
        self.assertEqual(self.ok(call("echo", '7')), ["7"])

    def test_list_and_describe(self):
        r = cli("list", ANY, "--", *PROGRAM)
        self.assertEqual(set(json.loads(self.ok(r)[0])), set(FLOWS))
        r = cli("describe", ANY, "echo", "--", *PROGRAM)
        self.assertEqual(json.loads(self.ok(r)[0]), {"key": "/flow/echo", "name": "echo"})

    def test_stream(self):
        lines = [json.loads(line) for line in self.ok(call("stream", '{"n":200}', "--stream"))]
        self.assertEqual(lines, [{"chunk": {"i": i}} for i in range(200)] + [{"result": "streamed"}])

    def test_failure(self):
        error = self.failed(call("fail"), 1, "NOT_FOUND")
        self.assertEqual(error["message"], "no such thing")
        self.assertEqual(error["details"]["why"], "test")

    def test_input_stream(self):
        r = call("total", "--input-stream", "--stream", stdin=b"1\n2\n3\n")
        self.assertEqual([json.loads(line) for line in self.ok(r)], [{"chunk": 1}, {"chunk": 3}, {"chunk": 6}, {"result": 6}])

    def test_context_and_labels(self):
        r = call("params", "--context", '{"auth":{"uid":"u"}}', "--label", "team=blue", "--label", "x=y")
        params = json.loads(self.ok(r)[0])
        self.assertEqual(params["context"], {"auth": {"uid": "u"}})
        self.assertEqual(params["telemetryLabels"], {"team": "blue", "x": "y"})

    def test_what_it_is_told(self):
        telemetry = "http://127.0.0.1:%d" % free_ports()
        r = call("echo", "1", "--telemetry", telemetry, program=("--vars", "EW_OTHER"),
                 env={"GENKIT_REFLECTION_V2_SERVER": "ws://127.0.0.1:1", "EW_OTHER": "inherited"})
        self.ok(r)
        line = next(line for line in r.err.decode().splitlines() if ": vars " in line)
        seen = json.loads(line.split(": vars ", 1)[1])
        self.assertRegex(seen.pop("GENKIT_REFLECTION_V2_SERVER"), r"^ws://127\.0\.0\.1:[0-9]+$")
        self.assertEqual(seen, {"GENKIT_ENV": "dev", "GENKIT_TELEMETRY_SERVER": telemetry,
                                "GENKIT_ENABLE_REALTIME_TELEMETRY": "true", "EW_OTHER": "inherited"})

    def test_its_output_is_logged(self):
        r = call("echo", "1")
        self.assertEqual(self.ok(r), ["1"])
        self.assertIn(b"on standard output", r.err)
        self.assertIn(b"on standard error", r.err)

    def test_actions_that_come_late(self):
        self.assertEqual(self.ok(call("/flow/echo", "5", program=("--late", "1.2"))), ["5"])
        self.assertEqual(self.ok(call("echo", "6", program=("--late", "0.3"))), ["6"])

    def test_no_such_action(self):
        error = self.failed(call("/flow/ecko"), 1, "NOT_FOUND")
        self.assertIn("did you mean /flow/echo", error["message"])

    def test_it_ends_at_once(self):
        error = self.failed(call("echo", program=("--exit", "3")), 3, "UNAVAILABLE")
        self.assertIn("ended with code 3 before it connected", error["message"])
        self.assertEqual(cli("list", ANY, "--", *PROGRAM, "--exit", "0").code, 3)
        self.failed(cli("call", ANY, "echo", "--", "./no-such-program"), 3, "UNAVAILABLE")

    def test_it_ends_in_mid_call(self):
        r = call("slow", "--stream", program=("--exit-after", "0.2"))
        self.failed(r, 3, "UNAVAILABLE")
        self.failed(call("die", "--stream"), 3, "UNAVAILABLE")

    def test_it_does_not_outlive_us(self):
        r = call("echo", "1", program=("--stay", "1", "--vars", "X"))
        self.ok(r)
        self.assertEqual([pid for pid in os.listdir("/proc") if pid.isdigit() and b"--stay\0001\0--vars\0X" in command_of(pid)], [])

    def test_interrupted(self):
        p = subprocess.Popen([support.BINARY, "call", ANY, "slow", "--stream", "--", *PROGRAM], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(json.loads(p.stdout.readline()), {"chunk": "started"})
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=15 * SLOW)
        self.assertEqual(p.returncode, 130, (out, err))


class Awaited(unittest.TestCase):
    """Runtimes that dial by themselves."""

    def start(self, port, *args):
        p = subprocess.Popen([support.BINARY, *args[:1], f"reflection://127.0.0.1:{port}", *args[1:]], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, p)
        return p

    def end(self, p):
        if p.poll() is None:
            p.kill()
        p.communicate()

    def result(self, p):
        out, err = p.communicate(timeout=20 * SLOW)
        return support.Result(p.returncode, out, err, 0)

    def runtime(self, port, **kw):
        r = connect(port, timeout=20 * SLOW, **kw)
        self.addCleanup(r.close)
        return r

    def test_waits_for_it(self):
        port = free_ports()
        p = self.start(port, "call", "echo", '"hi"')
        time.sleep(0.3)
        self.runtime(port)
        self.assertEqual(self.result(p).lines(), ['"hi"'])

    def test_nobody_comes(self):
        r = cli("call", ANY, "echo", "--timeout", "300ms")
        self.assertEqual(r.code, 5, r)

    def test_two_with_one_key(self):
        port = free_ports()
        two = {"/flow/echo": echo, "/flow/mine": lambda run: "mine"}
        for action, wanted in (("b:/flow/echo", b"1\n"), ("b:echo", b"1\n"), ("mine", b'"mine"\n'),
                               ("second:/flow/mine", b'"mine"\n')):
            with self.subTest(action):
                p = self.start(port, "call", action, "1")
                a = self.runtime(port, id="a", flows={"/flow/echo": lambda run: "wrong"})
                b = self.runtime(port, id="b", name="second", flows=two)
                r = self.result(p)
                self.assertEqual((r.code, r.out), (0, wanted), r)
                a.close()
                b.close()

    def test_list_of_two(self):
        port = free_ports()
        p = self.start(port, "list")
        self.runtime(port, id="a", flows={"/flow/x": echo, "/flow/y": echo})
        self.runtime(port, id="b", flows={"/flow/x": echo})
        self.assertEqual(set(json.loads(self.result(p).lines()[0])), {"a:/flow/x", "b:/flow/x", "/flow/y"})

    def test_same_id(self):
        """The second connection wins; the call on the first is lost."""
        port = free_ports()
        p = self.start(port, "call", "slow", "--stream")
        first = self.runtime(port, id="x")
        self.assertEqual(json.loads(p.stdout.readline()), {"chunk": "started"})
        second = self.runtime(port, id="x")
        self.assertTrue(first.gone.wait(10 * SLOW))
        r = self.result(p)
        self.assertEqual((r.code, r.error()["status"]), (3, "UNAVAILABLE"), r)
        self.assertTrue(second.registered.wait(1))

    def test_port_in_use(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            r = cli("call", "reflection://127.0.0.1:%d" % s.getsockname()[1], "echo")
        self.assertEqual(r.code, 1, r)
        self.assertIn("in use", r.error()["message"])

    def test_bad_targets(self):
        for target in ("reflection://", "reflection://127.0.0.1", "reflection://0.0.0.0:0", "reflection://example.com:1"):
            r = cli("call", target, "echo")
            self.assertEqual(r.code, 2, r)

    def test_what_is_no_runtime(self):
        port = free_ports()
        p = self.start(port, "call", "echo", "1")
        self.assertTrue(wait_until(lambda: listens(port)))
        c = support.Conn(port)
        c.send(support.request("POST", "/flow/echo", b'{"data":1}', port=port))
        self.assertEqual(c.response().status, 426)
        c.close()
        with self.assertRaises(AssertionError):
            WebSocket.dial(port, headers=[("Origin", "https://evil.example")])
        self.runtime(port)
        self.assertEqual(self.result(p).lines(), ["1"])


class Served(unittest.TestCase):
    """`everywire serve`: what runtimes offer is offered on every wire, from every loop."""

    def ok(self, *args, **kw):
        r = cli(*args, **kw)
        self.assertEqual(r.code, 0, r)
        return r.lines()

    def wait_for(self, s, action):
        self.assertTrue(wait_until(lambda: action in json.loads(cli("list", self.http(s)).out), 10 * SLOW), action)

    def http(self, s):
        return "http://127.0.0.1:%d" % s.port

    def runtime(self, s, **kw):
        r = Runtime(s.port, **kw)
        self.addCleanup(r.close)
        return r

    def test_called_from_every_loop(self):
        with Server("--threads", "2") as s:
            self.runtime(s, id="r")
            self.wait_for(s, "/flow/total")
            for _ in range(8):  # the kernel deals connections out to both loops
                self.assertEqual(self.ok("call", self.http(s), "r:/flow/echo", '{"a":1}'), ['{"a": 1}'])
                lines = self.ok("call", self.http(s), "r:/flow/stream", '{"n":50}', "--stream")
                self.assertEqual(len(lines), 51)
                lines = self.ok("call", "jsonrpc://127.0.0.1:%d" % s.port, "total", "--input-stream", "--stream",
                                stdin=b"".join(b"%d\n" % i for i in range(50)))
                self.assertEqual(lines[-1], '{"result":1225}')
            r = cli("call", self.http(s), "r:/flow/fail")
            self.assertEqual((r.code, r.error()["message"], r.error()["details"]["why"]), (1, "no such thing", "test"))

    def test_local_ones_win(self):
        with Server("--threads", "2") as s:
            self.runtime(s, id="r", flows={"/flow/greet": lambda run: "theirs", "/flow/mine": echo})
            self.wait_for(s, "r:/flow/greet")
            self.assertEqual(self.ok("call", self.http(s), "/flow/greet", '"Ada"'), ['"Hello, Ada!"'])
            self.assertEqual(self.ok("call", self.http(s), "greet", '"Ada"'), ['"Hello, Ada!"'])
            self.assertEqual(self.ok("call", self.http(s), "r:/flow/greet"), ['"theirs"'])

    def test_two_with_one_key(self):
        with Server("--threads", "2", demo=False) as s:
            self.runtime(s, id="a", flows={"/flow/who": lambda run: "a"})
            self.wait_for(s, "/flow/who")
            b = self.runtime(s, id="b", flows={"/flow/who": lambda run: "b"})
            self.wait_for(s, "b:/flow/who")
            self.assertEqual(self.ok("call", self.http(s), "b:/flow/who"), ['"b"'])
            for action in ("/flow/who", "who"):
                r = cli("call", self.http(s), action)
                self.assertEqual(r.error()["status"], "INVALID_ARGUMENT", r)
                self.assertIn("a:/flow/who", r.error()["message"])
                self.assertIn("b:/flow/who", r.error()["message"])
            b.close()
            self.wait_for(s, "/flow/who")
            self.assertEqual(self.ok("call", self.http(s), "who"), ['"a"'])

    def test_same_id_on_any_loop(self):
        with Server("--threads", "2", demo=False) as s:
            for _ in range(6):
                older = self.runtime(s, id="x", flows={"/flow/old": echo})
                self.wait_for(s, "/flow/old")
                newer = self.runtime(s, id="x", flows={"/flow/new": echo})
                self.assertTrue(older.gone.wait(10 * SLOW))
                self.wait_for(s, "/flow/new")
                self.assertEqual(self.ok("call", self.http(s), "new", "1"), ["1"])
                self.assertEqual(cli("call", self.http(s), "old").code, 1)
                newer.close()

    def test_it_dies(self):
        with Server("--threads", "2", "--runtime-grace", "0", demo=False) as s:
            for i in range(4):
                self.runtime(s, id="d%d" % i)
                self.wait_for(s, "/flow/die")
                r = cli("call", self.http(s), "die", "--stream")
                self.assertEqual((r.code, r.error()["status"]), (1, "UNAVAILABLE"), r)
                self.assertTrue(wait_until(lambda: cli("list", self.http(s)).out == b"{}\n", 10 * SLOW))

    def test_cancel(self):
        with Server("--threads", "2", demo=False) as s:
            r = self.runtime(s)
            self.wait_for(s, "/flow/slow")
            for _ in range(6):
                seen = set(r.runs)
                result = cli("call", self.http(s), "slow", "--timeout", "300ms")
                self.assertEqual(result.code, 5, result)
                new = [r.runs[k] for k in set(r.runs) - seen]
                self.assertEqual(len(new), 1)
                self.assertTrue(new[0].wait_cancel(10 * SLOW))

    def test_slow_reader(self):
        """Who calls a stream and reads slowly holds the runtime back, and gets all of it."""
        def much(run):
            for i in range(300):
                run.chunk("x" * 20000)
            return 300
        with Server("--threads", "2", demo=False) as s:
            self.runtime(s, id="m", flows={"/flow/much": much})
            self.wait_for(s, "/flow/much")
            for _ in range(2):
                p = subprocess.Popen([support.BINARY, "call", self.http(s), "much", "--stream"], stdout=subprocess.PIPE)
                time.sleep(1)
                out, _ = p.communicate(timeout=20 * SLOW)
                lines = out.splitlines()
                self.assertEqual((len(lines), lines[-1]), (301, b'{"result":300}'))

    def test_only_runtimes(self):
        port = free_ports()
        with Server("--threads", "2", listen=("127.0.0.1:0", "reflection=127.0.0.1:%d" % port), demo=False) as s:
            r = Runtime(port, id="only")
            self.wait_for(s, "/flow/echo")
            self.assertEqual(self.ok("call", self.http(s), "echo", "2"), ["2"])
            r.close()

    def test_drains(self):
        with Server("--threads", "2", demo=False) as s:
            began = threading.Event()
            self.runtime(s, flows={"/flow/nap": lambda run: began.set() or time.sleep(1) or "rested"})
            self.wait_for(s, "/flow/nap")
            results = []
            thread = threading.Thread(target=lambda: results.append(cli("call", self.http(s), "nap")))
            thread.start()
            self.assertTrue(began.wait(120 * SLOW))
            s.process.send_signal(signal.SIGTERM)
            thread.join()
            self.assertEqual((results[0].code, results[0].lines()), (0, ['"rested"']), results)
            self.assertEqual(s.process.wait(10 * SLOW), 0)

    def test_it_comes_back(self):
        """The runtime of a manager that starts again on the same port."""
        port = free_ports()
        for _ in range(2):
            with Server(listen=("127.0.0.1:%d" % port,), demo=False) as s:
                r = connect(port, id="back")
                self.wait_for(s, "/flow/echo")
                self.assertEqual(self.ok("call", self.http(s), "echo", "3"), ["3"])
            self.assertTrue(r.gone.wait(10 * SLOW))


if __name__ == "__main__":
    support.main()
