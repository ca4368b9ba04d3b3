#!/usr/bin/env python3
"""everywire as the orchestrator's side of RRQ: the targets rrq://H:P of the command line, with runners that it starts and
runners that are there already. They are those of fake_rrq_runner.py, and everywire itself.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import support
from support import BINARY, SLOW, Server, alive, cli, free_ports, wait_until

PROGRAM = [sys.executable, os.path.join(support.HERE, "fake_rrq_runner.py")]
ANY = "rrq://127.0.0.1:0"


def call(function, *args, program=(), target=ANY, **kw):
    return cli("call", target, function, *args, "--", *PROGRAM, *program, **kw)


def said(r, word):
    """The numbers that follow a word of the runner."""
    return [int(n) for n in re.findall(r": %s (\d+)" % word, r.err.decode())]


class Case(unittest.TestCase):
    def ok(self, r):
        self.assertEqual(r.code, 0, r)
        return r.lines()

    def failed(self, r, code, status):
        self.assertEqual(r.code, code, r)
        self.assertEqual(r.error()["status"], status, r)
        return r.error()["message"]

    def check_gone(self, r, word="pid"):
        pids = said(r, word)
        self.assertTrue(pids, r)
        for n in pids:
            self.assertFalse(alive(n), r)


class Started(Case):
    """The program behind --."""

    def test_call(self):
        r = call("echo", '{"b":[1,{}],"a":"\\u00e9"}')
        self.assertEqual([json.loads(line) for line in self.ok(r)], [{"b": [1, {}], "a": "é"}])
        self.check_gone(r)
        self.assertEqual(self.ok(call("echo")), ["{}"])
        self.assertEqual(self.failed(call("fail"), 1, "UNKNOWN"), "as asked")
        self.failed(call("nope"), 1, "NOT_FOUND")

    def test_what_it_is_told(self):
        port = free_ports()
        r = call("told", target="rrq://localhost:%d" % port, program=("--tcp-socket", "127.0.0.1:1"),
                 env={"RRQ_RUNNER_TCP_SOCKET": "127.0.0.1:2"})
        address = "127.0.0.1:%d" % port
        self.assertEqual(json.loads(self.ok(r)[0]), {"socket": address, "variable": address,
                                                     "args": ["--tcp-socket", "127.0.0.1:1", "--tcp-socket", address]})

    def test_everywire_is_one(self):
        target = (ANY, "--", BINARY, "serve", "--demo")
        self.assertEqual(self.ok(cli("call", ANY, "greet", '{"name":"Ada"}', *target[1:])), ['"Hello, Ada!"'])
        self.assertIn("/flow/echo", json.loads(self.ok(cli("list", *target))[0]))
        self.assertEqual(json.loads(self.ok(cli("describe", ANY, "echo", *target[1:]))[0])["key"], "/flow/echo")

    def test_cannot_list(self):
        self.failed(cli("list", ANY, "--", *PROGRAM), 1, "UNIMPLEMENTED")

    def test_bad_command(self):
        message = self.failed(cli("call", ANY, "echo", "--", "./no-such-program"), 3, "UNAVAILABLE")
        self.assertIn("cannot start ./no-such-program", message)

    def test_it_ends_early(self):
        for code in (0, 3):
            message = self.failed(call("echo", program=("--exit", str(code))), 3, "UNAVAILABLE")
            self.assertRegex(message, r" ended with code %d before it listened on 127\.0\.0\.1:[0-9]+$" % code)

    def test_it_never_listens(self):
        r = call("echo", "--timeout", support.LONG_ENOUGH, program=("--never",))
        self.failed(r, 5, "DEADLINE_EXCEEDED")
        self.check_gone(r)

    def test_its_port_is_reserved(self):
        """From the choice of port 0 until the program listens, which here it never does."""
        p = subprocess.Popen([BINARY, "call", ANY, "echo", "--", *PROGRAM, "--never"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            line = ""
            while ": pid " not in line:
                line = p.stderr.readline().decode()
                self.assertTrue(line)
            with open("/proc/%d/cmdline" % int(line.split()[-1]), "rb") as f:
                port = int(f.read().split(b"\0--tcp-socket\0")[1].split(b"\0")[0].rsplit(b":", 1)[1])
            with socket.socket() as s:
                self.assertRaises(OSError, s.bind, ("127.0.0.1", port))
        finally:
            p.send_signal(signal.SIGINT)
            p.communicate(timeout=120 * SLOW)

    def test_it_does_not_share_its_port(self):
        """A program that cannot listen while the port is reserved gets one that is not."""
        self.assertEqual(self.ok(call("echo", '{"a":1}', program=("--no-reuse",), timeout=60)), ['{"a":1}'])

    def test_it_starts_slowly(self):
        self.assertEqual(self.ok(call("echo", '{"a":1}', program=("--start-after", "1.2"))), ['{"a":1}'])

    def test_it_dies_in_mid_call(self):
        r = call("die")
        self.failed(r, 3, "UNAVAILABLE")
        self.check_gone(r)
        self.failed(call("hang_up"), 3, "UNAVAILABLE")

    def test_it_answers_and_ends(self):
        for _ in range(5):
            self.assertEqual(self.ok(call("echo", '{"a":1}', program=("--exit-after", "1"))), ['{"a":1}'])

    def test_nobody_is_left(self):
        r = call("echo", program=("--child", "--ignore-term"))
        self.ok(r)
        self.check_gone(r)
        self.check_gone(r, "child")
        r = call("die", program=("--child",))
        self.failed(r, 3, "UNAVAILABLE")
        self.check_gone(r, "child")

    def test_port_in_use(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen(1)
            port = s.getsockname()[1]
            r = call("echo", target="rrq://127.0.0.1:%d" % port)
            message = self.failed(r, 3, "UNAVAILABLE")
            self.assertEqual(message, "127.0.0.1:%d is in use: is another runner there?" % port)
            self.assertEqual(said(r, "pid"), [])

    def test_the_same_port_again(self):
        port = free_ports()
        for _ in range(5):
            self.assertEqual(self.ok(call("echo", target="rrq://127.0.0.1:%d" % port)), ["{}"])

    def test_v6(self):
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::1", 0))
        except OSError:
            self.skipTest("no IPv6 here")
        self.assertRegex(json.loads(self.ok(call("told", target="rrq://[::1]:0"))[0])["socket"], r"^\[::1\]:[0-9]+$")

    def test_deadline(self):
        for program in ((), ("--ignore-deadlines",), ("--ignore-deadlines", "--ignore-cancels")):
            r = call("slow", "--timeout", support.LONG_ENOUGH, program=program)
            self.failed(r, 5, "DEADLINE_EXCEEDED")
            self.check_gone(r)
        sent = json.loads(self.ok(call("context", "--timeout", "5s"))[0])
        self.assertRegex(sent["deadline"], r"^20[0-9-]+T[0-9:.]+Z$")

    def test_it_blocks_completely(self):
        r = call("freeze", "--timeout", support.LONG_ENOUGH, timeout=25)
        self.failed(r, 5, "DEADLINE_EXCEEDED")
        self.check_gone(r)

    def test_context_and_labels(self):
        sent = json.loads(self.ok(call("context", "--context", '{"queue_name":"q","attempt":3}'))[0])
        self.assertEqual((sent["queue_name"], sent["attempt"]), ("q", 3))


class Interrupted(Case):
    """Ctrl-C."""

    def interrupt(self, *program, until, function="slow"):
        """Starts a call, waits until the runner says that, and interrupts it."""
        with tempfile.TemporaryFile() as errors:
            p = subprocess.Popen([BINARY, "call", ANY, function, "--", *PROGRAM, *program], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=errors)

            def text():
                with open("/proc/self/fd/%d" % errors.fileno(), "rb") as f:
                    return f.read()
            try:
                self.assertTrue(wait_until(lambda: until in text(), 15 * SLOW), text())
                p.send_signal(signal.SIGINT)
                out, _ = p.communicate(timeout=25 * SLOW)
            finally:
                if p.poll() is None:
                    p.kill()
                    p.communicate()
            return support.Result(p.returncode, out, text(), 0)

    def test_cancels_on_another_connection(self):
        r = self.interrupt(until=b": request ")
        self.assertEqual(r.code, 130, r)
        text = r.err.decode()
        request, = re.findall(r": request (\S+) (\d+)", text)
        cancel, = re.findall(r": cancel (\S+) (\d+)", text)
        self.assertEqual(request[0], cancel[0])
        self.assertEqual((request[1], cancel[1]), ("1", "2"))
        self.check_gone(r)

    def test_it_does_not_care(self):
        r = self.interrupt("--ignore-cancels", "--ignore-term", until=b": request ")
        self.assertEqual(r.code, 130, r)
        self.check_gone(r)

    def test_while_it_starts(self):
        r = self.interrupt("--never", until=b": pid ")
        self.assertEqual(r.code, 130, r)
        self.check_gone(r)


class There(Case):
    """A runner that somebody else has started."""

    def runner(self, *args):
        port = free_ports()
        p = subprocess.Popen([*PROGRAM, *args, "--tcp-socket", "127.0.0.1:%d" % port], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE)
        self.addCleanup(p.communicate)
        self.addCleanup(p.kill)
        for line in p.stdout:
            if line.startswith(b"listening"):
                return p, "rrq://127.0.0.1:%d" % port
        self.fail("it did not come up")

    def test_call(self):
        p, target = self.runner()
        for _ in range(3):
            self.assertEqual(self.ok(cli("call", target, "pid")), [str(p.pid)])
        self.assertIsNone(p.poll())

    def test_it_dies(self):
        p, target = self.runner()
        self.failed(cli("call", target, "die"), 3, "UNAVAILABLE")
        self.failed(cli("call", target, "echo"), 3, "UNAVAILABLE")

    def test_cancelled_at_the_deadline(self):
        p, target = self.runner("--ignore-deadlines")
        self.failed(cli("call", target, "slow", "--timeout", "300ms"), 5, "DEADLINE_EXCEEDED")
        self.assertEqual(self.ok(cli("call", target, "echo")), ["{}"])

    def test_everywire_serves(self):
        with Server() as s:
            target = "rrq://127.0.0.1:%d" % s.port
            self.assertEqual(self.ok(cli("call", target, "greet", '{"name":"Ada"}')), ['"Hello, Ada!"'])


class Usage(Case):
    def test_targets(self):
        for target, command, word in (("rrq://127.0.0.1", False, "port"), (ANY, False, "command"), ("rrq://127.0.0.1:1/x", False, "path"),
                                      ("rrq://some.where:9000", True, "this machine"), ("rrq://10.1.2.3:9000", True, "this machine"),
                                      ("rrq:", False, "rrq://HOST:PORT")):
            r = cli("call", target, "echo", *(("--", "true") if command else ()))
            self.assertEqual(r.code, 2, r)
            self.assertIn(word, r.err.decode(), r)

    def test_what_it_cannot_carry(self):
        for args in (("[1]",), ('"x"',), ("--input-stream",)):
            r = cli("call", ANY, "echo", *args, "--", "false")
            self.assertEqual(r.code, 2, r)

    def test_help(self):
        for verb in ("call", "list", "describe"):
            self.assertIn(b"rrq://HOST:PORT", cli(verb, "--help").out)
        self.assertIn(b"rrq://HOST:PORT", cli("--help").out)


if __name__ == "__main__":
    support.main()
