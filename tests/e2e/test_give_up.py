#!/usr/bin/env python3
"""`everywire call` that gives up, by --timeout or an interrupt: on every wire the peer gets the cancel, although the program
exits. Each peer takes the call and never answers it.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import unittest

import support
from fake_runtime import Failure, connect
from rrq_support import FakeRunner
from support import BINARY, SLOW, free_ports, wait_until

LIMIT = 120  # for hangs only
TIMEOUTS = (2, 10, 60)  # seconds: the next one if a busy machine did not get the call to the peer within the first


class Peer:
    """called() and cancelled(): what has happened so far."""
    command = ()

    def arguments(self):
        return [self.target, "slow", '{"a":1}']

    def started(self):
        """The program runs."""

    def heard(self, program_errors):
        """The program has ended; what it wrote to standard error."""

    def close(self):
        pass


class Lines(Peer):
    """Takes whatever comes on TCP connections: JSON-RPC over lines, or HTTP, where the cancel is the end of a connection."""

    def __init__(self, scheme):
        self.http = scheme != "jsonrpc"
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(16)
        self.target = "%s://127.0.0.1:%d" % (scheme, self.sock.getsockname()[1])
        self.bytes, self.ended = b"", False
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                s, _ = self.sock.accept()
                threading.Thread(target=self.read, args=(s,), daemon=True).start()
        except OSError:
            pass

    def read(self, s):
        try:
            while more := s.recv(65536):
                self.bytes += more
                self.answer(s, more)
        except OSError:
            pass
        self.ended = True

    def answer(self, s, more):
        """Of Stepflow over HTTP: what comes before the call."""
        if b'"initialize"' in more:
            body = json.dumps({"jsonrpc": "2.0", "id": json.loads(more.split(b"\r\n\r\n")[1])["id"],
                               "result": {"server_protocol_version": 1}}).encode()
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        elif b'"initialized"' in more:
            s.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")

    def called(self):
        return b'{"a":1}' in self.bytes

    def cancelled(self):
        return self.ended if self.http else b"$/cancelRequest" in self.bytes

    def close(self):
        self.sock.close()


class Stdio(Peer):
    """A program that writes what it reads to standard error."""
    PROGRAM = """
import json, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a busy machine may need longer than the program waits; eof ends it
for line in sys.stdin:
    m = json.loads(line)
    print("got " + line, end="", file=sys.stderr, flush=True)
    if m.get("method") == "initialize":
        result = {"server_protocol_version": 1, "x-everywire": {}}
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
"""

    def __init__(self, scheme):
        self.target = scheme + "+stdio:"
        self.command = ("--", sys.executable, "-c", self.PROGRAM)
        self.text = ""

    def heard(self, program_errors):
        self.text = program_errors

    def called(self):
        return '{"a":1}' in self.text

    def cancelled(self):
        return "$/cancelRequest" in self.text


class Runner(Peer):
    """RRQ, dialled."""

    def __init__(self, _):
        self.runner = FakeRunner(lambda s, m: None)
        self.target = self.runner.url

    def seen(self, kind):
        return [m["payload"]["request_id"] for m in list(self.runner.messages) if m["type"] == kind]

    def called(self):
        return self.seen("request")

    def cancelled(self):
        return self.seen("cancel") and self.seen("cancel") == self.seen("request")

    def close(self):
        self.runner.sock.close()


class Managed(Stdio):
    """RRQ: a program of ours, told where to listen."""

    def __init__(self, _):
        self.target = "rrq://127.0.0.1:0"
        program = os.path.join(support.HERE, "fake_rrq_runner.py")
        self.command = ("--", sys.executable, program, "--ignore-deadlines", "--ignore-cancels",
                        "--ignore-term")
        self.text = ""

    def called(self):
        return ": request " in self.text

    def cancelled(self):
        return ": cancel " in self.text


class Runtime(Peer):
    """Reflection: a runtime that dials the program."""

    def __init__(self, _):
        self.port = free_ports()
        self.target = "reflection://127.0.0.1:%d" % self.port
        self.runtime, self.runs = None, []
        self.asked = threading.Event()

    def slow(self, run):
        self.runs.append(run)
        run.wait_cancel(LIMIT * SLOW)
        raise Failure(1, "cancelled")

    def started(self):
        self.runtime = connect(self.port, timeout=LIMIT * SLOW, flows={"/flow/slow": self.slow})
        plain = self.runtime.on_request

        def on_request(m):
            if m["method"] == "cancelAction":
                self.asked.set()
            plain(m)
        self.runtime.on_request = on_request

    def called(self):
        return self.runs

    def cancelled(self):
        return self.asked.is_set()

    def close(self):
        if self.runtime:
            self.runtime.close()


class GiveUp(unittest.TestCase):
    PEERS = ((Lines, "http"), (Lines, "jsonrpc"), (Lines, "stepflow+http"), (Stdio, "jsonrpc"), (Stdio, "stepflow"),
             (Runner, "rrq"), (Managed, "rrq managed"), (Runtime, "reflection"))

    def run_call(self, peer, *options):
        p = subprocess.Popen([BINARY, "call", *peer.arguments(), *options, *peer.command], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        errors = []
        reader = threading.Thread(target=lambda: [self.line(peer, errors, line) for line in p.stderr], daemon=True)
        reader.start()
        peer.started()
        return p, reader, errors

    @staticmethod
    def line(peer, errors, line):
        errors.append(line.decode())
        peer.heard("".join(errors))

    def check(self, peer, p, reader, code, errors):
        self.assertEqual(p.wait(LIMIT * SLOW), code, errors)
        reader.join(LIMIT * SLOW)
        self.assertTrue(wait_until(peer.cancelled, LIMIT), (errors, getattr(peer, "bytes", None)))

    def test_timeout(self):
        for make, name in self.PEERS:
            for seconds in TIMEOUTS:
                peer = make(name)
                with self.subTest(name, seconds=seconds):
                    p, reader, errors = self.run_call(peer, "--timeout", "%gs" % (seconds * SLOW))
                    self.assertEqual(p.wait(LIMIT * SLOW), 5, errors)
                    if peer.called() or seconds == TIMEOUTS[-1]:
                        self.check(peer, p, reader, 5, errors)
                peer.close()
                if peer.called():
                    break

    def test_interrupt(self):
        for make, name in self.PEERS:
            peer = make(name)
            with self.subTest(name):
                p, reader, errors = self.run_call(peer)
                self.assertTrue(wait_until(peer.called, LIMIT), errors)
                p.send_signal(signal.SIGINT)
                self.check(peer, p, reader, 130, errors)
            peer.close()

    def test_bench(self):
        peer = Runner(None)
        p = subprocess.Popen([BINARY, "bench", peer.target, "slow", "{}", "--duration", "%ds" % LIMIT, "-c", "3"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertTrue(wait_until(peer.called, LIMIT))  # the first one, which it waits for
        p.send_signal(signal.SIGINT)
        p.wait(LIMIT * SLOW)
        self.assertTrue(wait_until(peer.cancelled, LIMIT))
        peer.close()


if __name__ == "__main__":
    unittest.main()
