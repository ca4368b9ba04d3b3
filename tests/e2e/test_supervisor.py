#!/usr/bin/env python3
"""Plays systemd: hands over sockets, listens to what the program says of itself, and looks after its watchdog.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import support

# Puts the sockets whose numbers it is given at 3 and on, says for whom they are, and becomes the program.
LAUNCHER = """
import fcntl, os, sys
n = int(sys.argv[1])
high = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 100) for fd in sys.argv[2:2 + n]]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i, inheritable=True)
    os.close(fd)
if n:
    os.environ["LISTEN_FDS"] = str(n)
    os.environ.setdefault("LISTEN_PID", str(os.getpid()))
os.execv(sys.argv[2 + n], sys.argv[2 + n:])
"""


class Supervisor:
    """One start of the program, with sockets and a place for its messages."""

    def __init__(self, *words, sockets=(), env=(), abstract=False):
        self.folder = tempfile.TemporaryDirectory()
        self.path = "\0everywire-test-%d-%d" % (os.getpid(), time.monotonic_ns()) if abstract else self.folder.name + "/notify"
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.path)
        self.messages = []
        fds = [s.fileno() for s in sockets]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(len(fds)), *map(str, fds), support.BINARY, *words], pass_fds=fds, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env={**os.environ, "NOTIFY_SOCKET": self.path.replace("\0", "@"), **dict(env)})

    def message(self, timeout=20.0):
        """The next one, as a dictionary."""
        self.notify.settimeout(timeout)
        lines = self.notify.recv(4096).decode().split("\n")
        return dict(line.split("=", 1) for line in lines if line)

    def until(self, name, timeout=20.0):
        end = time.monotonic() + timeout
        while True:
            message = self.message(max(0.01, end - time.monotonic()))
            if name in message:
                return message

    def lines(self):
        """What it prints up to ready."""
        result = []
        for line in self.process.stdout:
            result.append(json.loads(line))
            if result[-1]["event"] == "ready":
                return result
        raise AssertionError("not ready: " + self.process.stderr.read())

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.notify.close()
        self.folder.cleanup()


def tcp_socket(host="127.0.0.1"):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((host, 0))
    s.listen(16)
    return s


def unix_socket(path, mode=0o666):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    os.chmod(path, mode)
    s.listen(16)
    return s


def post(port, action, data):
    request = urllib.request.Request("http://127.0.0.1:%d/%s" % (port, action), json.dumps({"data": data}).encode(),
                                     {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read())["result"]


class Messages(unittest.TestCase):
    def test_life(self):
        for abstract in (False, True):
            with Supervisor("serve", "--demo", "--listen", "127.0.0.1:0", abstract=abstract) as s:
                ready = s.message()
                self.assertEqual((ready["READY"], ready["STATUS"]), ("1", "serving on 1 listener"))
                self.assertEqual(s.lines()[-1], {"event": "ready"})
                code, _, err = s.end()
                self.assertEqual(code, 0, err)
                self.assertEqual(s.message()["STOPPING"], "1")

    def test_not_ready_when_it_cannot_start(self):
        with contextlib.closing(tcp_socket()) as taken, Supervisor("serve", "--listen", "127.0.0.1:%d" % taken.getsockname()[1]) as s:
            self.assertEqual(s.process.wait(20), 1)
            with self.assertRaises(TimeoutError):
                s.message(0.05)

    def test_reload(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "everywire.yaml"
            file.write_text("listen: 127.0.0.1:0\n")
            file.chmod(0o644)
            with Supervisor("serve", "--demo", "--config", str(file)) as s:
                s.until("READY")
                for text in ("log: debug\nlisten: 127.0.0.1:0\n", "no such thing: 1\n"):  # also when the file is wrong it is over some time
                    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
                    file.write_text(text)
                    s.process.send_signal(signal.SIGHUP)
                    message = s.message()
                    self.assertEqual(message["RELOADING"], "1")
                    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
                    self.assertTrue(before <= int(message["MONOTONIC_USEC"]) <= now, message)
                    self.assertEqual(s.message()["READY"], "1")
                self.assertEqual(s.end()[0], 0)

    def test_end_by_itself(self):
        with tempfile.TemporaryDirectory() as folder, \
                Supervisor("worker", "--demo", "--burst", "--store", "sqlite:%s/jobs.db" % folder) as s:
            self.assertEqual(s.process.wait(20), 0)
            s.until("STOPPING")

    def test_a_socket_that_is_away_harms_nobody(self):
        with Supervisor("serve", "--demo", "--listen", "127.0.0.1:0", env={"NOTIFY_SOCKET": "/no/such/socket", "WATCHDOG_USEC": "100000"}) as s:
            self.assertEqual(s.lines()[-1], {"event": "ready"})
            self.assertEqual(s.end()[0], 0)


class Watchdog(unittest.TestCase):
    def test_told_while_loops_live(self):
        with Supervisor("serve", "--demo", "--listen", "127.0.0.1:0", "--threads", "2", env={"WATCHDOG_USEC": "400000"}) as s:
            s.until("READY")
            started = time.monotonic()
            for _ in range(5):
                s.until("WATCHDOG", 5)
            self.assertGreater(time.monotonic() - started, 0.25)
            self.assertEqual(s.end()[0], 0)

    def test_of_another_process(self):
        with Supervisor("serve", "--demo", "--listen", "127.0.0.1:0", env={"WATCHDOG_USEC": "40000", "WATCHDOG_PID": "1"}) as s:
            s.until("READY")
            with self.assertRaises(TimeoutError):
                s.until("WATCHDOG", 0.3)


class Sockets(unittest.TestCase):
    def test_one_for_all_wires(self):
        with contextlib.closing(tcp_socket()) as door, Supervisor("serve", "--demo", "--threads", "2", sockets=[door]) as s:
            port = door.getsockname()[1]
            lines = s.lines()
            self.assertEqual(lines, [{"event": "listening", "wire": "any", "address": "127.0.0.1:%d" % port, "port": port}, {"event": "ready"}])
            self.assertEqual([post(port, "echo", i) for i in range(20)], list(range(20)))
            self.assertEqual(s.end()[0], 0)
            socket.create_connection(("127.0.0.1", port), 5).close()  # the socket is not ours to close: who comes now waits for the next start

    def test_connections_wait_for_the_start(self):
        with contextlib.closing(tcp_socket()) as door, socket.create_connection(door.getsockname(), 20) as early:
            early.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nconnection: close\r\n\r\n" % door.getsockname()[1])
            with Supervisor("serve", "--demo", sockets=[door]):
                early.settimeout(20)
                self.assertTrue(early.recv(100).startswith(b"HTTP/1.1 200 "))

    def test_names_are_wires(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.closing(tcp_socket()) as http, \
                contextlib.closing(unix_socket(folder + "/s")) as line, contextlib.closing(tcp_socket()) as other, \
                Supervisor("serve", "--demo", sockets=[http, line, other], env={"LISTEN_FDNAMES": "http:jsonrpc:everywire.socket"}) as s:
            self.assertEqual([(x["wire"], x["address"].split(":")[0]) for x in s.lines()[:-1]],
                             [("http", "127.0.0.1"), ("jsonrpc", "unix"), ("any", "127.0.0.1")])
            with socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(20)
                peer.connect(folder + "/s")
                peer.sendall(b'{"jsonrpc":"2.0","id":1,"method":"echo","params":[7]}\n')
                self.assertEqual(json.loads(peer.makefile().readline())["result"], [7])
            self.assertEqual(s.end()[0], 0)
            self.assertTrue(os.path.exists(folder + "/s"), "the file is whoever made the socket's")

    def test_the_file_may_name_the_same_address(self):
        with contextlib.closing(tcp_socket()) as door:
            port = door.getsockname()[1]
            with Supervisor("serve", "--demo", "--listen", "http=127.0.0.1:%d" % port, sockets=[door]) as s:
                self.assertEqual([(x["wire"], x["port"]) for x in s.lines()[:-1]], [("http", port)])
                self.assertEqual(post(port, "echo", 1), 1)

    def test_beyond_loopback_is_refused(self):
        with contextlib.closing(tcp_socket("0.0.0.0")) as door, Supervisor("serve", "--demo", sockets=[door]) as s:
            self.assertEqual(s.process.wait(20), 2)
            self.assertIn("can be reached from other machines", s.process.stderr.read())

    def test_no_socket(self):
        with contextlib.closing(socket.socket()) as bare, Supervisor("serve", "--demo", sockets=[bare]) as s:
            self.assertEqual(s.process.wait(20), 2)
            self.assertIn("no socket that listens", s.process.stderr.read())

    def test_of_another_process(self):
        with contextlib.closing(tcp_socket()) as door, \
                Supervisor("serve", "--demo", "--listen", "127.0.0.1:0", sockets=[door], env={"LISTEN_PID": "1"}) as s:
            self.assertNotEqual(s.lines()[0]["port"], door.getsockname()[1])

    def test_children_know_nothing(self):
        """Neither variables nor descriptors reach an exec action."""
        with tempfile.TemporaryDirectory() as folder, contextlib.closing(tcp_socket()) as door:
            file = pathlib.Path(folder) / "everywire.yaml"
            file.write_text("actions:\n  /flow/look:\n    exec:\n      argv: [sh, -c, 'env; ls /proc/self/fd']\n      output: text\n"
                            "      environment: [LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES, NOTIFY_SOCKET, WATCHDOG_USEC]\n")
            file.chmod(0o644)
            with Supervisor("serve", "--config", str(file), sockets=[door], env={"WATCHDOG_USEC": "10000000", "LISTEN_FDNAMES": "any"}) as s:
                s.lines()
                said = post(door.getsockname()[1], "look", None)
            for name in ("LISTEN_", "NOTIFY_SOCKET", "WATCHDOG"):
                self.assertNotIn(name, said)
            self.assertLessEqual(len([line for line in said.split("\n") if line.isdigit()]), 4, said)  # 0, 1, 2 and the one of ls itself


if __name__ == "__main__":
    unittest.main()
