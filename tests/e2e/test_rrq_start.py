"""A program that is started as an RRQ runner: by an option or a variable, where it listens, whom it ends with, and that a
cancel finds its job on whatever loop that is.

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import support
from rrq_support import Rrq
from support import BINARY, Manager, SLOW, Server, alive, cli, free_ports, wait_until
from test_telemetry import Telemetry

VARIABLE = "RRQ_RUNNER_TCP_SOCKET"
CLEAN = {name: "" for name in (VARIABLE, "GENKIT_REFLECTION_V2_SERVER", "GENKIT_TELEMETRY_SERVER",
                               "GENKIT_ENABLE_REALTIME_TELEMETRY", "GENKIT_RUNTIME_ID", "GENKIT_ENV")}
WAIT = 20.0


def is_free(port, host="127.0.0.1"):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((host, port))
            return True
        except OSError:
            return False


def has_v6():
    return socket.has_ipv6 and is_free(0, "::1")


def runner(*args, env=None, listen=(), **kw):
    return Server(*args, listen=listen, env=dict(CLEAN, **(env or {})), **kw)


def ports_of(pid):
    """The TCP ports on which a process listens."""
    mine = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            m = re.match(r"socket:\[(\d+)\]", os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except FileNotFoundError:
            continue
        if m:
            mine.add(m.group(1))
    found = set()
    for table in ("tcp", "tcp6"):
        with open("/proc/%d/net/%s" % (pid, table)) as f:
            for line in f.readlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in mine:
                    found.add(int(fields[1].rsplit(":", 1)[1], 16))
    return found


def echo(port, host="127.0.0.1"):
    """Whether a runner there does its work."""
    with Rrq(port, host=host) as c:
        c.request("echo", {"a": [1]})
        r = c.outcome()
        if (r["status"], r["result"], r["request_id"], r["job_id"]) != ("success", {"a": [1]}, "r1", "j1"):
            raise AssertionError(r)
        return True


class Begin(unittest.TestCase):
    def check_only(self, s, port, address=None):
        self.assertEqual(s.listeners, [{"event": "listening", "wire": "rrq", "address": address or "127.0.0.1:%d" % port,
                                        "port": port}])
        self.assertEqual(ports_of(s.pid), {port})

    def test_option(self):
        port = free_ports()
        with runner("--tcp-socket", "127.0.0.1:%d" % port) as s:
            self.check_only(s, port)
            self.assertTrue(echo(port))
        self.assertTrue(wait_until(lambda: is_free(port)))

    def test_last_option_counts(self):
        first, second = free_ports(), free_ports()
        with runner("--tcp-socket", "127.0.0.1:%d" % first, "--tcp-socket=127.0.0.1:%d" % second) as s:
            self.check_only(s, second)
            self.assertTrue(echo(second))
        with runner("--tcp-socket=nonsense", "--tcp-socket", "127.0.0.1:%d" % first) as s:
            self.check_only(s, first)

    def test_variable(self):
        port, other = free_ports(), free_ports()
        with runner(env={VARIABLE: "127.0.0.1:%d" % port}) as s:
            self.check_only(s, port)
            self.assertTrue(echo(port))
        with runner("--tcp-socket", "127.0.0.1:%d" % port, env={VARIABLE: "127.0.0.1:%d" % other}) as s:
            self.check_only(s, port)
        with runner("--tcp-socket", "127.0.0.1:%d" % port, env={VARIABLE: "nonsense"}) as s:
            self.check_only(s, port)

    def test_empty_variable(self):
        for value in ("", " \n"):
            with self.subTest(value), runner(env={VARIABLE: value}, listen=("127.0.0.1:0",)) as s:
                self.assertEqual([x["wire"] for x in s.listeners], ["any"])

    def test_spellings(self):
        port = free_ports()
        spellings = [("localhost:%d", "127.0.0.1:%d"), (" \t127.0.0.1:%d \n", "127.0.0.1:%d"), ("127.9.8.7:%d", "127.9.8.7:%d")]
        if has_v6():
            spellings += [("[::1]:%d", "[::1]:%d"), ("::1:%d", "[::1]:%d")]
        for text, address in spellings:
            for args, env in ((("--tcp-socket", text % port), {}), ((), {VARIABLE: text % port})):
                with self.subTest((text, args)), runner(*args, env=env) as s:
                    self.check_only(s, port, address % port)
                    self.assertTrue(echo(port, (address % port).rsplit(":", 1)[0].strip("[]")))

    def test_refused(self):
        values = [("9000", "HOST:PORT"), ("stdio", "HOST:PORT"), ("x" * 300, "HOST:PORT"), (":9000", "host"), ("h:9000", "host"),
                  ("localhost.:9000", "host"), ("unix:9000", "host"), ("unix:/tmp/x:9000", "host"),
                  ("rrq=127.0.0.1:9000", "host"), ("[::1:9000", "host"), ("[127.0.0.1]:9000", "host"), ("127.1:9000", "host"),
                  ("127.0.0.1 :9000", "host"), ("127.0.0.1:0", "port"), ("127.0.0.1:65536", "port"), ("127.0.0.1:", "port"),
                  ("127.0.0.1:x", "port"), ("127.0.0.1:80abc", "port"), ("127.0.0.1:-1", "port"), ("127.0.0.1:+9", "port"),
                  ("127.0.0.1: 9", "port"), ("0.0.0.0:9000", "--allow-remote"), ("192.0.2.1:9000", "--allow-remote"),
                  ("[::]:9000", "--allow-remote"), (":::9000", "--allow-remote"), ("::ffff:192.0.2.1:9000", "--allow-remote")]
        for value, words in values + [("", "HOST:PORT"), (" ", "HOST:PORT")]:
            for name, args, env in (("--tcp-socket", ("--tcp-socket", value), {}), (VARIABLE, (), {VARIABLE: value})):
                if name == VARIABLE and not value.strip():
                    continue
                with self.subTest((value, name)):
                    r = cli("serve", *args, env=dict(CLEAN, **env))
                    self.assertEqual(r.code, 2, r)
                    self.assertIn(name + " " + value[:100], r.err.decode())
                    self.assertIn(words, r.err.decode())
                    self.assertEqual(r.out, b"")
        r = cli("serve", "--tcp-socket", env=CLEAN)
        self.assertEqual(r.code, 2)
        self.assertIn(b"--tcp-socket", r.err)

    def test_allowed_remote(self):
        port = free_ports()
        with runner("--tcp-socket", "0.0.0.0:%d" % port, "--allow-remote", "--no-token") as s:
            self.check_only(s, port, "0.0.0.0:%d" % port)
            self.assertTrue(echo(port))

    def test_taken(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen(1)
            address = "127.0.0.1:%d" % other.getsockname()[1]
            for args, env in ((("--tcp-socket", address), {}), ((), {VARIABLE: address})):
                with self.subTest(args):
                    r = cli("serve", *args, env=dict(CLEAN, **env))
                    self.assertEqual(r.code, 1, r)
                    self.assertIn(address, r.err.decode())

    def test_listen_beside(self):
        port = free_ports()
        with runner("--tcp-socket", "127.0.0.1:%d" % port, listen=("http=127.0.0.1:0",)) as s:
            self.assertEqual(sorted(x["wire"] for x in s.listeners), ["http", "rrq"])
            other = next(x["port"] for x in s.listeners if x["wire"] == "http")
            self.assertEqual(ports_of(s.pid), {port, other})
            self.assertEqual(s.call("/flow/echo", b"7").json(), {"result": 7})
            self.assertTrue(echo(port))

    def test_manager_beside(self):
        port = free_ports()
        with Manager() as manager, runner(env={VARIABLE: "127.0.0.1:%d" % port, "GENKIT_REFLECTION_V2_SERVER": manager.url}) as s:
            with manager.runtime()[0]:
                self.check_only(s, port)
                self.assertTrue(echo(port))

    def test_help(self):
        r = cli("serve", "--help", env=CLEAN)
        self.assertEqual(r.code, 0)
        self.assertIn(b"--tcp-socket HOST:PORT", r.out)
        self.assertIn(VARIABLE.encode(), r.out.split(b"Environment:")[1])


# Starts its arguments, says their process id, and stays until it is ended. With "thread" the thread that starts them
# ends at once.
PARENT = """
import subprocess, sys, threading, time
def start():
    p = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    print(p.pid, flush=True)
if sys.argv[1] == "thread":
    t = threading.Thread(target=start)
    t.start()
    t.join()
else:
    start()
time.sleep(600)
"""


class Parent:
    """A process that starts a program, to be killed; what it started is ended at the latest with this."""

    def __init__(self, port, *args, kind="plain", env=None):
        self.stderr = tempfile.TemporaryFile()
        self.child = 0
        self.process = subprocess.Popen([sys.executable, "-c", PARENT, kind, BINARY, "serve", "--demo"] + list(args),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.stderr,
                                        env=dict(os.environ, **dict(CLEAN, **(env or {}))))
        if select.select([self.process.stdout], [], [], WAIT * SLOW)[0]:
            self.child = int(self.process.stdout.readline() or 0)
        self.port = port

    def __enter__(self):
        if not self.child or not wait_until(self.listens, WAIT):
            self.__exit__()
            raise AssertionError("nothing has been started")
        return self

    def listens(self):
        return not is_free(self.port)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def errors(self):
        with open("/proc/self/fd/%d" % self.stderr.fileno(), "rb") as f:
            return f.read().decode("utf-8", "replace")

    def gone(self):
        return wait_until(lambda: not alive(self.child), WAIT)

    def end_child(self, number=signal.SIGTERM):
        if self.child and alive(self.child):
            os.kill(self.child, number)

    def __exit__(self, *_):
        self.kill()
        self.process.stdout.close()
        self.end_child(signal.SIGKILL)
        self.stderr.close()


class Guard(unittest.TestCase):
    def test_ends_with_its_parent(self):
        for by in ("option", "variable"):
            port = free_ports()
            address = "127.0.0.1:%d" % port
            args, env = (("--tcp-socket", address), {}) if by == "option" else ((), {VARIABLE: address})
            with self.subTest(by), Parent(port, *args, env=env) as p:
                self.assertTrue(echo(port))
                p.kill()
                self.assertTrue(p.gone(), p.errors())
                self.assertTrue(wait_until(lambda: is_free(port)))
                self.assertIn("has gone: draining", p.errors())
                self.assertIn('"level":"warn"', p.errors())
                for mark in support.SANITIZER_MARKS:
                    self.assertNotIn(mark, p.errors())

    def test_lets_jobs_finish(self):
        port = free_ports()
        with Parent(port, "--tcp-socket", "127.0.0.1:%d" % port, "--drain", "1m") as p, Rrq(port) as c:
            c.request("sleep", {"ms": 1500})
            c.request("echo", {}, id="r2")
            self.assertEqual(c.outcome()["request_id"], "r2")  # so the other one has begun
            p.kill()
            self.assertTrue(wait_until(lambda: "has gone" in p.errors(), WAIT))
            r = c.outcome()
            self.assertEqual((r["status"], r["result"]), ("success", {"slept_ms": 1500}))
            self.assertTrue(p.gone(), p.errors())

    def test_outlives_the_thread_that_started_it(self):
        port = free_ports()
        with Parent(port, "--tcp-socket", "127.0.0.1:%d" % port, kind="thread") as p:
            time.sleep(1.0)  # four looks
            self.assertTrue(alive(p.child), p.errors())
            self.assertTrue(echo(port))
            p.kill()
            self.assertTrue(p.gone(), p.errors())

    def test_only_runners(self):
        port = free_ports()
        with Parent(port, "--listen", "rrq=127.0.0.1:%d" % port) as p:
            p.kill()
            time.sleep(1.0)
            self.assertTrue(alive(p.child), p.errors())
            self.assertTrue(echo(port))
            p.end_child()
            self.assertTrue(p.gone())

    def test_started_by_nobody(self):
        """Its parent has gone before it begins, as for what a container starts: it stays."""
        port = free_ports()
        with tempfile.TemporaryFile() as out:
            subprocess.run(["sh", "-c", "(sleep 0.3; exec \"$@\") & echo $!", "sh", BINARY, "serve", "--demo", "--tcp-socket",
                            "127.0.0.1:%d" % port], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL,
                           env=dict(os.environ, **CLEAN), check=True)
            out.seek(0)
            pid = int(out.readline())
        try:
            self.assertTrue(wait_until(lambda: not is_free(port), WAIT))
            time.sleep(1.0)
            self.assertTrue(alive(pid))
            self.assertTrue(echo(port))
            os.kill(pid, signal.SIGTERM)
            self.assertTrue(wait_until(lambda: not alive(pid), WAIT))
        finally:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


class End(unittest.TestCase):
    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            port = free_ports()
            with self.subTest(number), runner("--tcp-socket", "127.0.0.1:%d" % port) as s:
                s.signal(number)
                self.assertEqual(s.wait(), 0)
                self.assertTrue(wait_until(lambda: is_free(port)))
                self.assertIn("draining", s.stderr())

    def test_drains(self):
        port = free_ports()
        with runner("--tcp-socket", "127.0.0.1:%d" % port, "--drain", "1m") as s, Rrq(port) as c:
            c.request("sleep", {"ms": 1000})
            c.request("echo", {}, id="r2")
            self.assertEqual(c.outcome()["request_id"], "r2")
            s.signal()
            self.assertEqual(c.outcome()["result"], {"slept_ms": 1000})
            self.assertEqual(s.wait(), 0)

    def test_second_signal(self):
        port = free_ports()
        with runner("--tcp-socket", "127.0.0.1:%d" % port, "--drain", "1m", check_exit=False) as s, Rrq(port) as c:
            c.request("sleep", {"ms": 60000})
            c.request("echo", {}, id="r2")
            c.outcome()
            s.signal()
            self.assertTrue(wait_until(lambda: "draining" in s.stderr()))
            s.signal()
            self.assertEqual(s.wait(), 128 + signal.SIGTERM)


class Cancel(unittest.TestCase):
    """The kernel deals connections out to the loops: with many of each, requests and their cancels meet on different ones."""

    def test_from_any_loop(self):
        port, n = free_ports(), 16
        with runner("--tcp-socket", "127.0.0.1:%d" % port, "--threads", "4"):
            conns = [Rrq(port) for _ in range(n)]
            try:
                for i, c in enumerate(conns):
                    c.request("sleep", {"ms": 300000}, id="r%d" % i, job="j%d" % i)
                    c.request("echo", {}, id="e%d" % i, job="other")
                    self.assertEqual(c.outcome()["request_id"], "e%d" % i)
                for i in range(n):
                    with Rrq(port) as c:
                        c.cancel("j%d" % i, "r%d" % i if i % 2 else None)
                for i, c in enumerate(conns):
                    r = c.outcome()
                    self.assertEqual((r["request_id"], r["job_id"], r["status"]), ("r%d" % i, "j%d" % i, "error"))
                    self.assertEqual(r["error"]["type"], "cancelled")
            finally:
                for c in conns:
                    c.close()

    def test_all_of_a_job(self):
        port, n = free_ports(), 12
        with runner("--tcp-socket", "127.0.0.1:%d" % port, "--threads", "3"):
            conns = [Rrq(port) for _ in range(n)]
            try:
                for i, c in enumerate(conns):
                    c.request("sleep", {"ms": 300000}, id="r%d" % i, job="same")
                    c.request("echo", {}, id="e", job="other")
                    c.outcome()
                with Rrq(port) as c:
                    c.cancel("same")
                self.assertEqual({c.outcome()["error"]["type"] for c in conns}, {"cancelled"})
            finally:
                for c in conns:
                    c.close()


class Spans(unittest.TestCase):
    def test_runner_span(self):
        trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
        port = free_ports()
        with Telemetry() as t, runner("--tcp-socket", "127.0.0.1:%d" % port, "--telemetry", t.url, "--threads", "1"):
            with Rrq(port) as c:
                c.request("echo", {"a": 1}, job="job-7", attempt=3, worker_id="w1", deadline="2999-01-01T00:00:00Z",
                          trace_context={"traceparent": "00-%s-%s-01" % (trace, parent)},
                          correlation_context={"tenant": "t1"})
                self.assertEqual(c.outcome()["status"], "success")
                c.request("fail", {"status": "UNAVAILABLE", "message": "later", "retry_after": 2})
                self.assertEqual(c.outcome()["status"], "retry")
            spans = t.wait(2)
        first = next(s for s in spans if s["attributes"].get("rrq.job_id") == "job-7")
        other = next(s for s in spans if s is not first)
        self.assertEqual((first["displayName"], first["spanKind"]), ("rrq.runner", "CONSUMER"))
        self.assertEqual((first["traceId"], first["parentSpanId"]), (trace, parent))
        a = first["attributes"]
        wanted = {"messaging.system": "redis", "messaging.destination.name": "rrq:queue:default",
                  "messaging.destination_kind": "queue", "messaging.operation": "process", "rrq.function": "echo",
                  "rrq.queue": "rrq:queue:default", "rrq.attempt": 3, "rrq.worker_id": "w1",
                  "rrq.deadline": "2999-01-01T00:00:00Z", "rrq.outcome": "success", "tenant": "t1", "genkit:name": "echo"}
        self.assertEqual({k: a.get(k) for k in wanted}, wanted)
        for name in ("rrq.deadline_remaining_ms", "rrq.queue_wait_ms", "rrq.duration_ms"):
            self.assertGreaterEqual(a[name], 0, name)
        a = other["attributes"]
        wanted = {"rrq.outcome": "retry", "rrq.retry_delay_ms": 2000, "rrq.error_message": "later",
                  "rrq.error_type": "UNAVAILABLE"}
        self.assertEqual({k: a.get(k) for k in wanted}, wanted)


if __name__ == "__main__":
    support.main()
