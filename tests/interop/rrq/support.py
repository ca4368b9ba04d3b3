"""What the RRQ scripts share: checks that print a line each, processes, free ports, a Redis server, the marks that handlers leave, and a
proxy that keeps the frames.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
from ports import free_ports  # noqa: E402,F401

EVERYWIRE = os.environ.get("EVERYWIRE", "everywire")
LIMIT = 60  # seconds that one check may take
ONLY = os.environ.get("EW_ONLY", "")  # run only checks whose name has this in it

# ---- checks -------------------------------------------------------------------------------------------------------

_number = 0
_failed = 0


def _late(signum, frame):
    raise TimeoutError("no end within %d s" % LIMIT)


def check(name, body, *args):
    """Runs body(*args) and prints one line; returns whether it went well."""
    global _number, _failed
    if ONLY not in name:
        return False
    _number += 1
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(LIMIT)
    try:
        body(*args)
    except Exception:
        signal.alarm(0)
        _failed += 1
        print("FAIL %d - %s" % (_number, name))
        print("# " + traceback.format_exc().strip().replace("\n", "\n# "), flush=True)
        return False
    finally:
        signal.alarm(0)
    print("ok %d - %s" % (_number, name), flush=True)
    return True


def finish(name):
    print("interop %s: %d passed, %d failed" % (name, _number - _failed, _failed), flush=True)
    sys.exit(1 if _failed else 0)


def equal(got, wanted, what=""):
    if got != wanted:
        raise AssertionError("%s%.400r is not %.400r" % (what + ": " if what else "", got, wanted))


def wait_until(what, condition, timeout=20):
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError("not within %d s: %s" % (timeout, what))
        time.sleep(0.02)


# ---- processes ----------------------------------------------------------------------------------------------------


def alive(pid):
    """Whether that process runs; one that has ended and waits for its parent does not."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def gone(pids, timeout=20):
    wait_until("the end of process %s" % sorted(pids), lambda: not any(alive(pid) for pid in pids), timeout)


class Process:
    """A program with its output in a file; a context manager that ends it."""

    def __init__(self, *command, env=None, cwd=None):
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
                                        env=dict(os.environ, **(env or {})), cwd=cwd, start_new_session=True)
        self.pid = self.process.pid

    def said(self):
        self.output.seek(0)
        return self.output.read().decode("utf-8", "replace")

    def end(self, signum=signal.SIGTERM, timeout=20):
        """Sends the signal and waits; returns the exit code, negative for a signal."""
        if self.process.poll() is None:
            self.process.send_signal(signum)
        return self.process.wait(timeout)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        if self.process.poll() is None:
            try:
                self.end()
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)


def listens(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


class Redis(Process):
    def __init__(self, folder):
        self.port = free_ports()
        super().__init__("redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no",
                         "--dir", folder)
        wait_until("a Redis server on port %d" % self.port, lambda: self.process.poll() is not None or listens(self.port))
        if self.process.poll() is not None:
            raise RuntimeError("redis-server left:\n" + self.said())


class Server(Process):
    """A runner that was started by hand: COMMAND --tcp-socket 127.0.0.1:PORT."""

    def __init__(self, command, env=None):
        self.port = free_ports()
        super().__init__(*command, "--tcp-socket", "127.0.0.1:%d" % self.port, env=env)
        try:
            wait_until("%s on port %d" % (command[0], self.port), lambda: self.process.poll() is not None or listens(self.port))
            if self.process.poll() is not None:
                raise RuntimeError("%s left:\n%s" % (command[0], self.said()))
        except Exception:
            self.__exit__()
            raise


# ---- what handlers say --------------------------------------------------------------------------------------------


class Marks:
    """The file named by RRQ_MARKS. Each handler writes lines `EVENT HANDLER JOB ATTEMPT PID`; EVENT is begin, end or cancelled."""

    def __init__(self, folder, name="marks"):
        self.path = os.path.join(folder, name)
        open(self.path, "w").close()
        self.env = {"RRQ_MARKS": self.path}

    def read(self, event=None, handler=None, job=None, since=0):
        with open(self.path) as f:
            lines = [line.split() for line in f.read().splitlines()[since:]]
        return [mark for mark in lines if (event or mark[0]) == mark[0] and (handler or mark[1]) == mark[1] and
                (job or mark[2]) == mark[2]]

    def wait(self, n=1, timeout=20, **which):
        """Waits for at least that many marks of the kind, and returns them."""
        wait_until("%d marks of %s" % (n, which), lambda: len(self.read(**which)) >= n, timeout)
        return self.read(**which)

    def pids(self):
        return {int(mark[4]) for mark in self.read()}


# ---- a proxy ------------------------------------------------------------------------------------------------------


class Proxy:
    """Stands before a runner on a port of its own and keeps every whole frame that goes to it: (number of the connection, message)."""

    def __init__(self, port):
        self.target = port
        self.frames = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                return
            far.settimeout(None)
            self.connections += 1
            threading.Thread(target=self._copy, args=(near, far, self.connections), daemon=True).start()
            threading.Thread(target=self._copy, args=(far, near, None), daemon=True).start()

    def _copy(self, source, sink, number):
        pending = b""
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                if number:
                    pending = self._keep(pending + data, number)
                sink.sendall(data)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _keep(self, data, number):
        while len(data) >= 4:
            (length,) = struct.unpack(">I", data[:4])
            if len(data) < 4 + length:
                break
            self.frames.append((number, json.loads(data[4:4 + length])))
            data = data[4 + length:]
        return data

    def of(self, kind):
        return [(number, frame["payload"]) for number, frame in list(self.frames) if frame["type"] == kind]

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self._listener.close()
