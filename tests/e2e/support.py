"""What the black-box tests share: a server process, a strict reader of HTTP answers and one of JSON-RPC lines, a runner for
the command line, fake peers, a reader of metrics. Not a test itself, and no HTTP library: the tests must see every byte.

SPDX-License-Identifier: Apache-2.0
"""
import base64
import collections
import hashlib
import json
import os
import queue
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from ports import free_ports  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import

SHARED = os.environ.get("EW_SHARED") or os.path.join(os.path.dirname(ROOT), "shared")
SLOW = float(os.environ.get("EW_TEST_SLOW", "1"))  # a factor for every deadline, for slow machines and sanitizers
PATIENCE = 60.0  # seconds: how long tests wait at least for what is to happen
LONG_ENOUGH = "%dms" % (2000 * SLOW)  # a deadline for calls to programs that must have begun before it passes


def _find_binary():
    named = os.environ.get("EVERYWIRE")
    candidates = [named] if named else [os.path.join(ROOT, "build", "everywire"),
                                        os.path.join(ROOT, "build", "release", "everywire")]
    for path in candidates:
        if path and os.access(path, os.X_OK):
            return os.path.abspath(path)
    sys.exit("no everywire binary: set EVERYWIRE (looked for %s)" % ", ".join(str(c) for c in candidates))


BINARY = _find_binary()


def _is_sanitized():
    with open(BINARY, "rb") as f:
        text = f.read()
    return any(mark in text for mark in (b"__asan_init", b"__tsan_init", b"__msan_init"))


# Memory figures mean nothing in a sanitizer build.
SANITIZED = _is_sanitized()
if SANITIZED and SLOW == 1:
    SLOW = 3.0


def corpus(*parts):
    """The lines of a corpus file as objects; skips the test aloud when it is not there."""
    path = os.path.join(SHARED, "corpora", *parts)
    if not os.path.exists(path):
        print("SKIP: corpus %s not present" % parts[0], flush=True)
        raise unittest.SkipTest("corpus %s not present" % parts[0])
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def refused(port):
    """Nobody listens there any more: every loop has been told to drain (the log says so before they are)."""
    try:
        Conn(port).close()
        return False
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        return False  # it was in the queue when the listener closed


def wait_until(check, timeout=PATIENCE, step=0.02):
    """Waits until check() is true; returns its last value. The time is for hangs: a busy machine does not reach it."""
    return happens(check, max(timeout, PATIENCE), step)


def happens(check, timeout, step=0.02):
    """Whether check() becomes true within this time; for what is expected not to happen."""
    end = time.monotonic() + timeout * SLOW
    while True:
        value = check()
        if value or time.monotonic() >= end:
            return value
        time.sleep(step)


def raise_file_limit(wanted):
    """Lets this process hold that many descriptors, as far as it may; returns what it got."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


# ---- the server ---------------------------------------------------------------------------------------------------

SANITIZER_MARKS = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "WARNING: ThreadSanitizer", "runtime error:")


class Server:
    """`everywire serve`; a context manager that ends it with SIGTERM and checks that it left with 0 and clean."""

    def __init__(self, *args, demo=True, listen=("127.0.0.1:0",), preexec=None, env=None, check_exit=True, ready=True):
        self.command = [BINARY, "serve"]
        if demo:
            self.command.append("--demo")
        for address in listen:
            self.command += ["--listen", address]
        self.command += list(args)
        self.preexec = preexec
        self.env = dict(os.environ, **(env or {}))
        self.check_exit = check_exit
        self.wait_ready = ready
        self.lines = []      # everything on standard output, as text
        self.listeners = []  # the "listening" events
        self.port = None
        self.process = None
        self._queue = queue.Queue()
        self._stderr = None

    def start(self):
        self._stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._stderr,
                                        preexec_fn=self.preexec, env=self.env)
        threading.Thread(target=self._read, daemon=True).start()
        if self.wait_ready:
            self._until_ready(10 * SLOW)
        return self

    def _read(self):
        for line in self.process.stdout:
            self._queue.put(line.decode("utf-8", "replace"))
        self._queue.put(None)

    def next_line(self, timeout):
        """The next line of standard output, or None at its end or when the time is over."""
        try:
            line = self._queue.get(timeout=max(timeout, 0.001))
        except queue.Empty:
            return None
        if line is not None:
            self.lines.append(line)
        return line

    def _until_ready(self, timeout):
        end = time.monotonic() + timeout
        while True:
            line = self.next_line(end - time.monotonic())
            if line is None:
                code = self.process.poll()
                self.process.kill()
                raise AssertionError("no ready line from %s: exit %s, stdout %r, stderr %r" %
                                     (self.command, code, self.lines, self.stderr()))
            event = json.loads(line)
            if event.get("event") == "listening":
                self.listeners.append(event)
                self.port = self.port or event["port"]
            elif event.get("event") == "ready":
                return

    @property
    def pid(self):
        return self.process.pid

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def stderr(self):
        self._stderr.flush()
        with open("/proc/self/fd/%d" % self._stderr.fileno(), "rb") as f:
            return f.read().decode("utf-8", "replace")

    def stderr_bytes(self):
        with open("/proc/self/fd/%d" % self._stderr.fileno(), "rb") as f:
            return f.read()

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, timeout=15.0):
        """The exit code; 128 + n when a signal ended it, as a shell would say."""
        code = self.process.wait(timeout * SLOW)
        return 128 - code if code < 0 else code

    def running(self):
        return self.process.poll() is None

    def stop(self):
        if self.running():
            self.signal()
        return self.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        try:
            code = self.stop()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "none: it had to be killed"
        text = self.stderr()
        self._stderr.close()
        self.process.stdout.close()
        if kind is None and self.check_exit:
            if code != 0:
                raise AssertionError("the server left with %s; stderr: %s" % (code, text[-4000:]))
            for mark in SANITIZER_MARKS:
                if mark in text:
                    raise AssertionError("sanitizer report: %s" % text[-8000:])
        return False

    # what the operating system says of it

    def rss(self):
        """Resident bytes."""
        with open("/proc/%d/status" % self.pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+) kB", f.read()).group(1)) * 1024

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def open_files(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    # shorthands

    def connect(self, **kw):
        return Conn(self.port, **kw)

    def post(self, path, body, headers=(), timeout=10.0, **kw):
        """One POST on its own connection; body is bytes of the whole envelope."""
        with self.connect() as c:
            c.send(request("POST", path, body, headers, port=self.port, **kw))
            return c.response(timeout)

    def get(self, path, headers=(), timeout=10.0):
        with self.connect() as c:
            c.send(request("GET", path, None, headers, port=self.port))
            return c.response(timeout)

    def call(self, action, data, headers=(), timeout=10.0):
        """Posts {"data":data} (data: bytes, JSON text)."""
        return self.post(action, b'{"data":' + data + b"}", headers, timeout)

    def metrics(self):
        r = self.get("/metrics")
        if r.status != 200:
            raise AssertionError("/metrics answered %d" % r.status)
        return Metrics(r.body.decode("utf-8"))


# ---- HTTP, by hand ------------------------------------------------------------------------------------------------

def request(method, path, body=None, headers=(), port=None, host=None, version="1.1", ctype="application/json", length=True):
    """The bytes of a request. headers: pairs, added after ours; a None ctype or host leaves that field out."""
    lines = ["%s %s HTTP/%s" % (method, path, version)]
    if host is None and port is not None:
        host = "127.0.0.1:%d" % port
    if host is not None and host is not False:
        lines.append("Host: " + host)
    if body is not None:
        if ctype is not None:
            lines.append("Content-Type: " + ctype)
        if length:
            lines.append("Content-Length: %d" % len(body))
    for name, value in headers:
        lines.append("%s: %s" % (name, value))
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")
    return head + (body if body is not None and length else b"")


def chunked(body, size):
    """body as chunks of that size, the end included."""
    out = []
    for i in range(0, len(body), size):
        part = body[i:i + size]
        out.append(b"%x\r\n%s\r\n" % (len(part), part))
    out.append(b"0\r\n\r\n")
    return b"".join(out)


class ProtocolError(AssertionError):
    """The server's answer is no proper HTTP."""


class Closed(Exception):
    """The peer closed where an answer could begin."""


class TimedOut(AssertionError):
    """Nothing came in time."""


class Response:
    def __init__(self, version, status, reason, headers):
        self.version, self.status, self.reason, self.headers = version, status, reason, headers
        self.body = b""
        self.chunks = []  # (payload, time of arrival) of a chunked body
        self.framing = None

    def all(self, name):
        return [v for n, v in self.headers if n == name.lower()]

    def get(self, name):
        """The value of a field that may occur once."""
        values = self.all(name)
        if len(values) > 1:
            raise ProtocolError("%s occurs %d times" % (name, len(values)))
        return values[0] if values else None

    def closes(self):
        return "close" in (self.get("connection") or "").lower()

    def json(self):
        return json.loads(self.body.decode("utf-8"))

    def __repr__(self):
        return "<%d %s %s %r>" % (self.status, self.reason, self.headers, self.body[:300])


_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9]) ([\x20-\x7e]*)\Z")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\t\x80-\xff]*?)[ \t]*\Z")


def parse_head(raw):
    lines = raw.split(b"\r\n")
    m = _STATUS_LINE.match(lines[0])
    if not m:
        raise ProtocolError("bad status line %r" % lines[0])
    fields = []
    for line in lines[1:]:
        f = _FIELD.match(line)
        if not f:
            raise ProtocolError("bad header line %r" % line)
        fields.append((f.group(1).decode().lower(), f.group(2).decode("latin-1")))
    return Response(int(m.group(1)), int(m.group(2)), m.group(3).decode(), fields)


class Conn:
    """A socket with a buffer, where every wait has a deadline."""

    def __init__(self, port, host="127.0.0.1", rcvbuf=None, timeout=5.0):
        self.sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.settimeout(timeout * SLOW)
        try:
            self.sock.connect((host, port))
        except OSError:
            self.sock.close()
            raise
        self.buffer = b""
        self.eof = False
        self.reset = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def abort(self):
        """Closes with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.sock.close()

    def send(self, data, timeout=20.0):
        self.sock.settimeout(timeout * SLOW)
        self.sock.sendall(data)

    def try_send(self, data, timeout=20.0):
        """Sends; false when the peer had closed before it took everything."""
        try:
            self.send(data, timeout)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def send_both_ways(self, data, timeout=20.0):
        """Sends while taking in what comes meanwhile, so that neither side waits for the other."""
        self.sock.settimeout(0)
        view, end = memoryview(data), time.monotonic() + timeout * SLOW
        while view:
            left = end - time.monotonic()
            if left <= 0:
                raise TimedOut("could not send all: %d bytes left" % len(view))
            readable, writable, _ = select.select([self.sock], [self.sock], [], left)
            try:
                if readable:
                    data_in = self.sock.recv(1 << 18)
                    self.buffer += data_in
                    if not data_in:
                        self.eof = True
                        return
                if writable:
                    view = view[self.sock.send(view):]
            except (BrokenPipeError, ConnectionResetError):
                self.eof = self.reset = True
                return

    def fill(self, end):
        """Takes in more bytes; false at the end of the stream. Raises TimedOut at that moment."""
        if self.eof:
            return False
        left = end - time.monotonic()
        if left <= 0:
            raise TimedOut("nothing in time; have %r" % self.buffer[:300])
        self.sock.settimeout(left)
        try:
            data = self.sock.recv(1 << 18)
        except socket.timeout:
            raise TimedOut("nothing in time; have %r" % self.buffer[:300])
        except ConnectionResetError:
            self.reset = True
            data = b""
        if not data:
            self.eof = True
            return False
        self.buffer += data
        return True

    def _until(self, mark, end, limit=1 << 20):
        while True:
            at = self.buffer.find(mark)
            if at >= 0:
                out, self.buffer = self.buffer[:at], self.buffer[at + len(mark):]
                return out
            if len(self.buffer) > limit:
                raise ProtocolError("no %r in %d bytes" % (mark, limit))
            if not self.fill(end):
                raise ProtocolError("closed inside a message; have %r" % self.buffer[:300])

    def exactly(self, n, end):
        parts, have = [], len(self.buffer)
        if have < n:
            parts.append(self.buffer)
            self.buffer = b""
            while have < n:
                if not self.fill(end):
                    raise ProtocolError("closed inside a body of %d, after %d" % (n, have))
                have += len(self.buffer)
                parts.append(self.buffer)
                self.buffer = b""
            self.buffer = b"".join(parts)
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def head(self, timeout=10.0):
        """The head of the next answer. Raises Closed when the peer closes before its first byte."""
        end = time.monotonic() + timeout * SLOW
        while not self.buffer:
            if not self.fill(end):
                raise Closed()
        r = parse_head(self._until(b"\r\n\r\n", end))
        te, cl = r.get("transfer-encoding"), r.get("content-length")
        if te is not None and cl is not None:
            raise ProtocolError("both Transfer-Encoding and Content-Length: %r" % r)
        if te is not None:
            if te.lower() != "chunked":
                raise ProtocolError("Transfer-Encoding: %s" % te)
            r.framing = "chunked"
        elif cl is not None:
            if not re.match(r"[0-9]+\Z", cl):
                raise ProtocolError("Content-Length: %s" % cl)
            r.framing = "length"
        else:
            r.framing = "close"
        return r

    def chunk(self, timeout=10.0):
        """The payload of the next HTTP chunk; None after the last one."""
        end = time.monotonic() + timeout * SLOW
        line = self._until(b"\r\n", end, 1024)
        if not re.match(rb"[0-9a-fA-F]{1,8}\Z", line):
            raise ProtocolError("bad chunk size line %r" % line)
        size = int(line, 16)
        if size == 0:
            if self._until(b"\r\n", end, 1024) != b"":
                raise ProtocolError("trailers")
            return None
        data = self.exactly(size, end)
        if self.exactly(2, end) != b"\r\n":
            raise ProtocolError("no CRLF after chunk data")
        return data

    def rest(self, timeout=10.0):
        """Everything up to the end of the connection."""
        end = time.monotonic() + timeout * SLOW
        parts = [self.buffer]
        self.buffer = b""
        while self.fill(end):
            parts.append(self.buffer)
            self.buffer = b""
        return b"".join(parts)

    def body(self, r, timeout=10.0, to_head=False):
        if to_head or r.status in (204, 304) or r.status < 200:
            if r.framing == "chunked" and r.status < 200:
                raise ProtocolError("a body in %d" % r.status)
            return r
        if r.framing == "length":
            r.body = self.exactly(int(r.get("content-length")), time.monotonic() + timeout * SLOW)
        elif r.framing == "chunked":
            while True:
                data = self.chunk(timeout)
                if data is None:
                    break
                r.chunks.append((data, time.monotonic()))
            r.body = b"".join(data for data, _ in r.chunks)
        else:
            r.body = self.rest(timeout)
        return r

    def response(self, timeout=10.0, to_head=False, interim=False):
        """The next whole answer; interim ones (1xx) are passed over unless asked for."""
        while True:
            r = self.body(self.head(timeout), timeout, to_head)
            if r.status >= 200 or interim:
                return r

    def closed(self, timeout=5.0):
        """Waits for the end of the connection; returns false when bytes come or nothing happens."""
        if self.buffer:
            return False
        try:
            return not self.fill(time.monotonic() + timeout * SLOW)
        except TimedOut:
            return False

    def quiet(self, seconds):
        """Whether nothing comes, not even the end, for that long."""
        if self.buffer or self.eof:
            return False
        try:
            self.fill(time.monotonic() + seconds)
            return False
        except TimedOut:
            return True

    def everything(self, quiet=0.3, timeout=5.0):
        """All answers until the peer closes or has been quiet for that long after at least one: (answers, closed)."""
        answers, end = [], time.monotonic() + timeout * SLOW
        while True:
            left = end - time.monotonic()
            try:
                wait = min(quiet * SLOW, left) if answers else left
                if not self.buffer and not self.fill(time.monotonic() + max(wait, 0.001)):
                    return answers, True
            except TimedOut:
                return answers, False
            answers.append(self.body(self.head(timeout), timeout))


# ---- blocks of a stream -------------------------------------------------------------------------------------------

def blocks(body):
    """Splits a streamed body into (prefix, payload bytes); strict about the form."""
    if not body.endswith(b"\n\n"):
        raise ProtocolError("the stream does not end with a blank line: %r" % body[-100:])
    out = []
    for block in body[:-2].split(b"\n\n"):
        m = re.match(rb"(data|error): (\{[^\r\n]*\})\Z", block)
        if not m:
            raise ProtocolError("bad block %r" % block[:200])
        json.loads(m.group(2).decode("utf-8"))
        out.append((m.group(1).decode(), m.group(2)))
    return out


# ---- metrics ------------------------------------------------------------------------------------------------------

_SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? '
                     r'([-+]?(?:[0-9.eE+-]+|Inf)|NaN)\Z')
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"')


class Metrics:
    """The Prometheus text format, read strictly."""

    def __init__(self, text):
        self.types, self.help, self.samples = {}, {}, collections.OrderedDict()
        if not text.endswith("\n"):
            raise ProtocolError("the last line has no newline")
        current, done = None, set()
        for line in text[:-1].split("\n"):
            if line.startswith("# HELP ") or line.startswith("# TYPE "):
                _, what, name, rest = (line.split(" ", 3) + [""])[:4]
                if name != current:
                    done.add(current)
                    if name in done:
                        raise ProtocolError("family %s comes twice" % name)
                    current = name
                table = self.help if what == "HELP" else self.types
                if name in table:
                    raise ProtocolError("%s of %s twice" % (what, name))
                table[name] = rest
            elif line == "" or line.startswith("#"):
                continue
            else:
                self._sample(line, current)

    def _sample(self, line, current):
        m = _SAMPLE.match(line)
        if not m:
            raise ProtocolError("bad sample line %r" % line)
        name, labels = m.group(1), tuple(sorted(_LABEL.findall(m.group(2) or "")))
        base = re.sub(r"_(bucket|sum|count)\Z", "", name) if self.types.get(current) == "histogram" else name
        if base != current:
            raise ProtocolError("sample %s inside family %s" % (name, current))
        if current not in self.types or current not in self.help:
            raise ProtocolError("%s has no TYPE or HELP" % current)
        if (name, labels) in self.samples:
            raise ProtocolError("%s twice" % line)
        self.samples[(name, labels)] = float(m.group(3))

    def select(self, name, **labels):
        """{labels: value} of the samples with that name and at least these labels."""
        wanted = set(labels.items())
        return {ls: v for (n, ls), v in self.samples.items() if n == name and wanted <= set(ls)}

    def total(self, name, **labels):
        return sum(self.select(name, **labels).values())

    def names(self):
        return set(n for n, _ in self.samples)


CALLS = "everywire_calls_total"
IN_FLIGHT = "everywire_calls_in_flight"
DURATION = "everywire_call_duration_seconds"
CONNECTIONS = "everywire_connections_open"
SENT = "everywire_bytes_sent_total"


# ---- the command line ---------------------------------------------------------------------------------------------

class Result:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def lines(self):
        return self.out.decode("utf-8").splitlines()

    def error(self):
        """The object of the {"error":...} line on standard error."""
        for line in self.err.decode("utf-8").splitlines():
            if line.startswith('{"error":'):
                return json.loads(line)["error"]
        raise AssertionError("no {\"error\":...} line: exit %d, stdout %r, stderr %r" % (self.code, self.out, self.err))

    def __repr__(self):
        return "<exit %s in %.2fs, stdout %r, stderr %r>" % (self.code, self.seconds, self.out[:2000], self.err[:2000])


def cli(*args, stdin=b"", timeout=PATIENCE, env=None):
    """Runs the binary; a run that does not end in time is a failure."""
    begin = time.monotonic()
    timeout = max(timeout, PATIENCE)
    p = subprocess.Popen([BINARY] + list(args), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=dict(os.environ, **(env or {})))
    try:
        out, err = p.communicate(stdin, timeout * SLOW)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
        raise AssertionError("%s did not end in %g s: stdout %r, stderr %r" % (args, timeout, out, err))
    code = 128 - p.returncode if p.returncode < 0 else p.returncode
    return Result(code, out, err, time.monotonic() - begin)


# ---- a peer that is not everywire ---------------------------------------------------------------------------------

class FakeServer:
    """Listens on loopback; for each request runs respond(sock, request) in a thread. The request is a dict with method,
    target, headers (lower-case names) and body. respond returns true to keep the connection."""

    def __init__(self, respond):
        self.respond = respond
        self.requests = []
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(128)
        self.port = self.sock.getsockname()[1]
        self.url = "http://127.0.0.1:%d" % self.port
        self._open = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()
        for s in list(self._open):
            try:
                s.close()
            except OSError:
                pass

    def _accept(self):
        while True:
            try:
                s, _ = self.sock.accept()
            except OSError:
                return
            self._open.add(s)
            threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s):
        try:
            s.settimeout(30 * SLOW)
            data = b""
            while True:
                while b"\r\n\r\n" not in data:
                    more = s.recv(65536)
                    if not more:
                        return
                    data += more
                head, data = data.split(b"\r\n\r\n", 1)
                lines = head.decode("latin-1").split("\r\n")
                method, target, _ = lines[0].split(" ", 2)
                headers = {}
                for line in lines[1:]:
                    name, value = line.split(":", 1)
                    headers[name.lower()] = value.strip()
                length = int(headers.get("content-length", "0"))
                while len(data) < length:
                    more = s.recv(65536)
                    if not more:
                        return
                    data += more
                body, data = data[:length], data[length:]
                got = {"method": method, "target": target, "headers": headers, "body": body}
                self.requests.append(got)
                if not self.respond(s, got):
                    return
        except (OSError, ValueError):
            pass
        finally:
            self._open.discard(s)
            s.close()


def read_terminal(leader, timeout, saw=None):
    """What is written to a terminal until nobody has it open any more or the time is over; closes it. saw(all so far) is told of each piece."""
    out, end = b"", time.monotonic() + timeout
    while select.select([leader], [], [], max(0, end - time.monotonic()))[0]:
        try:
            more = os.read(leader, 65536)
        except OSError:
            break
        if not more:
            break
        out += more
        if saw:
            saw(out)
    os.close(leader)
    return out


def canned(status, body, ctype="application/json", headers=(), keep=True):
    """A respond function that always gives this answer, with Content-Length."""
    text = "HTTP/1.1 %s\r\n" % status
    if ctype is not None:
        text += "Content-Type: %s\r\n" % ctype
    for name, value in headers:
        text += "%s: %s\r\n" % (name, value)
    text += "Content-Length: %d\r\n\r\n" % len(body)

    def respond(s, _):
        s.sendall(text.encode() + body)
        return keep
    return respond


def canned_stream(pieces, ctype="text/event-stream", delay=0.0, end=True):
    """A respond function that streams these pieces, each as one HTTP chunk; end=False breaks off without the last chunk."""
    def respond(s, _):
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: " + ctype.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            if piece:
                s.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            if delay:
                time.sleep(delay)
        if end:
            s.sendall(b"0\r\n\r\n")
        return end
    return respond


# ---- JSON-RPC, by hand ----------------------------------------------------------------------------------------------

MEMBERS = ("jsonrpc", "id", "method", "stream", "data", "params", "result", "error")  # the order in which they are written


def rpc(method, params=None, id=b"1", stream=None):
    """The line of a request: params and id are JSON text (bytes); without an id it is a notification."""
    out = b'{"jsonrpc":"2.0"'
    if id is not None:
        out += b',"id":' + id
    out += b',"method":' + json.dumps(method).encode()
    if stream is not None:
        out += b',"stream":%d' % stream
    if params is not None:
        out += b',"params":' + params
    return out + b"}\n"


def frame(id, stream, data=None):
    """The line of a stream frame: data (bytes) is JSON text, None leaves it out."""
    return b'{"jsonrpc":"2.0","id":%s,"stream":%d%s}\n' % (id, stream, b"" if data is None else b',"data":' + data)


def result(id, text):
    """The bytes of the line that answers with this result."""
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (id, text)


class Rpc:
    """One side of a JSON-RPC connection: bytes out, lines in, every wait with a deadline. It holds the other side to the
    form of the wire: one compact object or array a line, members in their order, and no `stream` or `data` to a peer
    that never used them."""

    def __init__(self, read_fd, write_fd, end, close, server=None, strict=True):
        self.read_fd, self.write_fd, self._end, self._close = read_fd, write_fd, end, close
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)
        self.server = server  # whose metrics and memory can be looked at
        self.strict = strict
        self.buffer = bytearray()
        self.eof = self.closed = False
        self.streams = False  # this side has used the stream extension
        self.seen = 0

    @classmethod
    def over(cls, sock, **kw):
        """On a connected socket, which it owns from now on."""
        self = cls(sock.fileno(), sock.fileno(), lambda: sock.shutdown(socket.SHUT_WR), sock.close, **kw)
        self.sock = sock
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if not self.closed:
            self.closed = True
            self._close()

    def abort(self):
        """Closes with a reset where there is such a thing."""
        if hasattr(self, "sock") and self.sock.family != socket.AF_UNIX:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.close()

    def end_output(self):
        """Says no more, and goes on listening."""
        self._end()

    def send(self, data, timeout=20.0, take=True):
        """Sends all of it; takes in meanwhile what comes (unless told not to), so that neither side waits for the other."""
        left = self.try_send(data, timeout, take)
        if left and not self.eof:
            raise TimedOut("could not send all: %d bytes left" % left)

    def try_send(self, data, timeout, take=True):
        """Sends for at most that long; returns how many bytes did not leave."""
        if b'"stream":' in data or b"?stream=true" in data:
            self.streams = True
        view, end = memoryview(data), time.monotonic() + timeout * SLOW
        while view:
            left = end - time.monotonic()
            if left <= 0:
                break
            wanted = [self.read_fd] if take and not self.eof else []
            readable, writable, _ = select.select(wanted, [self.write_fd], [], left)
            try:
                if readable:
                    self._take()
                if writable:
                    view = view[os.write(self.write_fd, view[:1 << 20]):]
            except BlockingIOError:
                pass
            except (BrokenPipeError, ConnectionResetError):
                self.eof = True
                break
        return len(view)

    def _take(self):
        try:
            data = os.read(self.read_fd, 1 << 20)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        self.eof = not data
        self.buffer += data

    def fill(self, end):
        """Takes in more bytes; false at the end of the stream. Raises TimedOut at that moment."""
        if self.eof:
            return False
        left = end - time.monotonic()
        if left <= 0 or not select.select([self.read_fd], [], [], left)[0]:
            raise TimedOut("nothing in time; have %r" % bytes(self.buffer[:300]))
        self._take()
        return not self.eof

    def line(self, timeout=10.0):
        """The next line with its newline; raises Closed at the end of the stream."""
        end = time.monotonic() + timeout * SLOW
        looked = 0
        while True:
            at = self.buffer.find(b"\n", looked)
            if at >= 0:
                out = bytes(self.buffer[:at + 1])
                del self.buffer[:at + 1]
                self.seen += 1
                return out
            looked = len(self.buffer)
            if not self.fill(end):
                if self.buffer:
                    raise ProtocolError("closed inside a line: %r" % bytes(self.buffer[:300]))
                raise Closed()

    def message(self, timeout=10.0):
        """The next message, as read by json."""
        line = self.line(timeout)
        if not self.strict:
            return json.loads(line)
        pairs = json.loads(line, object_pairs_hook=lambda p: p)
        value = json.loads(line)
        for m, p in zip(value, pairs) if isinstance(value, list) else [(value, pairs)]:
            self.check(m, [name for name, _ in p])
        return value

    def check(self, message, names):
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise ProtocolError("no JSON-RPC message: %r" % message)
        if names != sorted(names, key=MEMBERS.index):
            raise ProtocolError("members not in their order: %r" % names)
        if not self.streams and ("stream" in message or "data" in message):
            raise ProtocolError("a peer without streams got %r" % message)
        if "method" not in message and message.get("stream", 0) < 2 and ("result" in message) == ("error" in message):
            raise ProtocolError("neither or both of result and error: %r" % message)

    def call(self, method, params=None, id=b"1", timeout=10.0, stream=None):
        """Sends a request and returns the next message, which must have its id."""
        self.send(rpc(method, params, id, stream))
        m = self.message(timeout)
        if m.get("id") != json.loads(id):
            raise AssertionError("the answer to another request: %r" % m)
        return m

    def take_stream(self, id, timeout=20.0):
        """(base, data of each frame, data of the close frame) of a stream that has the connection for itself."""
        base, chunks = self.message(timeout), []
        while True:
            m = self.message(timeout)
            if m["id"] != id or m["stream"] not in (2, 3):
                raise AssertionError("not a frame of %r: %r" % (id, m))
            if m["stream"] == 3:
                return base, chunks, m["data"]
            chunks.append(m["data"])

    def in_flight(self):
        """How many calls of this wire the server is busy with."""
        return self.server.metrics().total(IN_FLIGHT, wire="jsonrpc")

    def ended(self, timeout=5.0):
        """Waits for the end of the connection; returns false when bytes come or nothing happens."""
        try:
            return not self.buffer and not self.fill(time.monotonic() + timeout * SLOW)
        except TimedOut:
            return False

    def quiet(self, seconds):
        """Whether nothing comes, not even the end, for that long."""
        if self.buffer or self.eof:
            return False
        try:
            self.fill(time.monotonic() + seconds)
            return False
        except TimedOut:
            return True


class StdioServer(Server):
    """`everywire serve` that speaks JSON-RPC on its standard input and output; its events come on standard error. A second
    listener for http shows its metrics, unless it is to have none."""

    def __init__(self, *args, wire="jsonrpc", metrics=True, **kw):
        listen = (wire + "=stdio",) + (("http=127.0.0.1:0",) if metrics else ())
        super().__init__(*args, listen=listen, **kw)
        self._text = []

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        preexec_fn=self.preexec, env=self.env)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if self.wait_ready:
            self._until_ready(10 * SLOW)
        self.port = next((e["port"] for e in self.listeners if e["port"]), None)
        self._stderr = self.process.stderr
        return self

    def _read(self):
        for line in self.process.stderr:
            text = line.decode("utf-8", "replace")
            self._text.append(text)
            if '"event"' in text:
                self._queue.put(text)
        self._queue.put(None)

    def stderr(self):
        if not self.running():
            self.reader.join(5 * SLOW)
        return "".join(self._text)

    def peer(self):
        """Its one connection."""
        return Rpc(self.process.stdout.fileno(), self.process.stdin.fileno(), self.process.stdin.close, self.close_pipes,
                   server=self)

    def close_pipes(self):
        self.process.stdin.close()
        self.process.stdout.close()

    def stop(self):
        self.close_pipes()
        return super().stop()


class Transport:
    """The ways to reach a JSON-RPC server, all alike to a test: connect() gives an Rpc whose server has metrics. On stdio
    each connection is a process of its own. Extra words go to `everywire serve`."""
    NAMES = ("tcp", "unix", "stdio", "port")

    def __init__(self, name, *args):
        self.name, self.args = name, args
        self.socket = name != "stdio"
        self.servers = []
        self.folder = None

    def __enter__(self):
        if self.name == "unix":
            self.folder = tempfile.TemporaryDirectory(prefix="ew")
        if self.socket:
            listen = {"tcp": "jsonrpc=127.0.0.1:0", "port": "127.0.0.1:0",
                      "unix": self.folder and "jsonrpc=unix:%s/s" % self.folder.name}[self.name]
            self.servers.append(Server(*self.args, listen=(listen, "http=127.0.0.1:0")).start())
            self.server.rpc_port = self.server.listeners[0]["port"]
            self.server.port = self.server.listeners[1]["port"]
        return self

    def __exit__(self, kind, value, trace):
        problems = []
        for s in self.servers:
            try:
                s.__exit__(kind, value, trace)
            except AssertionError as e:
                problems.append(str(e))
        if self.folder:
            self.folder.cleanup()
        if problems and kind is None:
            raise AssertionError("\n".join(problems))

    @property
    def server(self):
        return self.servers[-1]

    @property
    def target(self):
        return "jsonrpc+unix:%s/s" % self.folder.name if self.name == "unix" else "jsonrpc://127.0.0.1:%d" % self.server.rpc_port

    def connect(self):
        if self.name == "stdio":
            self.servers.append(StdioServer(*self.args).start())
            return self.server.peer()
        if self.name == "unix":
            s = socket.socket(socket.AF_UNIX)
            address = self.folder.name + "/s"
        else:
            s = socket.socket()
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            address = ("127.0.0.1", self.server.rpc_port)
        s.settimeout(5 * SLOW)
        s.connect(address)
        return Rpc.over(s, server=self.server)


def over_transports(base, names=Transport.NAMES, args=()):
    """One test class for each transport: base's tests with `transport`, a Transport that lives as long as the class."""
    def make(name):
        def up(cls):
            cls.transport = Transport(name, *args).__enter__()

        def down(cls):
            cls.transport.__exit__(None, None, None)
        return type("%s_%s" % (base.__name__, name), (base, unittest.TestCase),
                    {"setUpClass": classmethod(up), "tearDownClass": classmethod(down), "__module__": base.__module__,
                     "maxDiff": 2000})
    frames = sys.modules[base.__module__].__dict__
    for name in names:
        made = make(name)
        frames[made.__name__] = made


class FakeRpc:
    """A JSON-RPC peer that is not everywire: listens on loopback, or on a Unix socket, and runs script(peer) in a thread for
    each connection; what a script raises is kept for the test."""

    def __init__(self, script, path=None):
        self.script, self.problems = script, []
        self.sock = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.sock.bind(path or ("127.0.0.1", 0))
        self.sock.listen(16)
        self.target = "jsonrpc+unix:" + path if path else "jsonrpc://127.0.0.1:%d" % self.sock.getsockname()[1]
        self.threads = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
        for t in self.threads:
            t.join(10 * SLOW)
        if kind is None and self.problems:
            raise self.problems[0]

    def _accept(self):
        while True:
            try:
                s, _ = self.sock.accept()
            except OSError:
                return
            t = threading.Thread(target=self._run, args=(Rpc.over(s, strict=False),), daemon=True)
            self.threads.append(t)
            t.start()

    def _run(self, peer):
        with peer:
            try:
                self.script(peer)
            except Closed:
                pass
            except Exception as e:  # for the test to see
                self.problems.append(e)


# ---- WebSockets, by hand ------------------------------------------------------------------------------------------

WS_TEXT, WS_BINARY, WS_CLOSE, WS_PING, WS_PONG = 1, 2, 8, 9, 10


def ws_accept(key):
    """The value of Sec-WebSocket-Accept for a key."""
    digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    return base64.b64encode(digest).decode()


def ws_frame(opcode, payload=b"", mask=False, fin=True, rsv=0):
    """The bytes of a frame."""
    n = len(payload)
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    bit = 0x80 if mask else 0
    if n < 126:
        head += bytes([bit | n])
    elif n < 65536:
        head += struct.pack(">BH", bit | 126, n)
    else:
        head += struct.pack(">BQ", bit | 127, n)
    if not mask:
        return head + payload
    key = os.urandom(4)
    body = bytes(b ^ key[i & 3] for i, b in enumerate(payload))
    return head + key + body


class WebSocket(Conn):
    """A Conn past its opening handshake, on either side; strict about what the other side sends."""

    @classmethod
    def over(cls, sock, client, buffer=b""):
        """On a connected socket, which it owns from now on. client: we are the side that masks."""
        self = cls.__new__(cls)
        self.sock, self.client, self.buffer = sock, client, buffer
        self.eof = self.reset = False
        self.close_code = None  # of the close frame that came
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self

    @classmethod
    def dial(cls, port, path="/", headers=(), timeout=10.0):
        """As a client; raises AssertionError when the upgrade is refused."""
        key = base64.b64encode(os.urandom(16)).decode()
        c = Conn(port)
        c.send(request("GET", path, None, [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"),
                                           ("Sec-WebSocket-Key", key)] + list(headers), port=port))
        head = parse_head(c._until(b"\r\n\r\n", time.monotonic() + timeout * SLOW))
        if head.status != 101 or head.get("sec-websocket-accept") != ws_accept(key):
            c.close()
            raise AssertionError("not upgraded: %r" % head)
        return cls.over(c.sock, True, c.buffer)

    @classmethod
    def accept(cls, sock, timeout=10.0):
        """As a server: reads the request (kept as .request, .fields), answers 101."""
        self = cls.over(sock, False)
        head = self._until(b"\r\n\r\n", time.monotonic() + timeout * SLOW)
        self.request, *lines = head.decode("latin-1").split("\r\n")
        self.fields = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        self.send(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Accept: %s\r\n\r\n" % ws_accept(self.fields["sec-websocket-key"])).encode())
        return self

    def frame(self, opcode, payload=b"", **kw):
        self.send(ws_frame(opcode, payload, mask=self.client, **kw))

    def _exactly(self, n, end):
        while len(self.buffer) < n:
            if not self.fill(end):
                if self.buffer:
                    raise ProtocolError("closed inside a frame: %r" % self.buffer[:300])
                raise Closed()
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def next_frame(self, end):
        """(opcode, payload, fin), checked."""
        first, second = self._exactly(2, end)
        n, masked = second & 0x7f, second >> 7
        if first & 0x70:
            raise ProtocolError("reserved bits in a frame: %#x" % first)
        if bool(masked) == self.client:
            raise ProtocolError("a frame that is masked, or not, against the rules")
        if n >= 126:
            size = 2 if n == 126 else 8
            long = int.from_bytes(self._exactly(size, end), "big")
            if long < (126 if size == 2 else 65536):
                raise ProtocolError("a length that is longer than need be")
            n = long
        key = self._exactly(4, end) if masked else b""
        body = self._exactly(n, end)
        if masked:
            pad = (key * (n // 4 + 1))[:n]
            body = (int.from_bytes(body, "big") ^ int.from_bytes(pad, "big")).to_bytes(n, "big")
        if first & 8 and (n > 125 or not first & 0x80):
            raise ProtocolError("a control frame that is long or in pieces")
        return first & 15, body, bool(first & 0x80)

    def text(self, timeout=10.0):
        """The next message as text; pings are answered. Raises Closed at the end, with the code of a close frame in
        close_code."""
        end, whole = time.monotonic() + timeout * SLOW, None
        while True:
            opcode, body, fin = self.next_frame(end)
            if opcode == WS_PING:
                self.frame(WS_PONG, body)
            elif opcode == WS_CLOSE:
                self.close_code = int.from_bytes(body[:2], "big") if body else 1005
                raise Closed()
            elif opcode in (WS_TEXT, 0):
                if (opcode == 0) == (whole is None):
                    raise ProtocolError("a message inside another, or the rest of none")
                whole = (whole or b"") + body
                if fin:
                    return whole.decode("utf-8")
            elif opcode != WS_PONG:
                raise ProtocolError("unexpected opcode %d" % opcode)

    def message(self, timeout=10.0):
        return json.loads(self.text(timeout))

    def tell(self, value):
        """Sends JSON (or text as it is)."""
        self.frame(WS_TEXT, (value if isinstance(value, str) else json.dumps(value)).encode())


class Manager:
    """A listening port of a reflection manager; accept() gives the next runtime's WebSocket."""

    def __init__(self, port=0):
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind(("127.0.0.1", port))
        self.sock.listen(16)
        self.port = self.sock.getsockname()[1]
        self.url = "ws://127.0.0.1:%d" % self.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def accept(self, timeout=15.0):
        self.sock.settimeout(timeout * SLOW)
        try:
            s, _ = self.sock.accept()
        except socket.timeout:
            raise TimedOut("nobody came")
        return WebSocket.accept(s)

    def runtime(self, timeout=15.0, answer=None):
        """The next runtime and the params of its register, which is answered."""
        ws = self.accept(timeout)
        m = ws.message()
        if m.get("method") != "register" or "id" not in m:
            raise AssertionError("not a register: %r" % m)
        ws.tell({"jsonrpc": "2.0", "id": m["id"], "result": answer})
        return ws, m["params"]

    def quiet(self, seconds):
        """Whether nobody comes for that long."""
        return not select.select([self.sock], [], [], seconds)[0]


def alive(pid):
    """Whether a process runs (one that waits to be reaped does not)."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def main():
    unittest.main(verbosity=2)
