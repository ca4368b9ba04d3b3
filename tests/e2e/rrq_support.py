"""The RRQ runner protocol by hand, for black-box tests: an orchestrator's connection, and a runner that is not everywire.
Not a test itself.

SPDX-License-Identifier: Apache-2.0
"""
import json
import socket
import struct
import threading
import time

from support import Closed, Conn, ProtocolError, SLOW, TimedOut

ENQUEUED = "2025-01-01T12:00:00Z"
MEMBERS = ("job_id", "request_id", "status", "result", "error", "retry_after_seconds")  # the order in which we write them


def pack(text):
    """A frame of this text (bytes)."""
    return struct.pack(">I", len(text)) + text


def message(kind, payload):
    return pack(json.dumps({"type": kind, "payload": payload}).encode())


def request(function, params=None, id="r1", job="j1", **context):
    return message("request", {"protocol_version": "2", "request_id": id, "job_id": job, "function_name": function,
                               "params": params or {},
                               "context": dict({"job_id": job, "attempt": 1, "enqueue_time": ENQUEUED,
                                                "queue_name": "rrq:queue:default"}, **context)})


def frames(data):
    """The texts of whole frames, and what is left over."""
    out = []
    while len(data) >= 4 and len(data) - 4 >= struct.unpack(">I", data[:4])[0]:
        n = 4 + struct.unpack(">I", data[:4])[0]
        out.append(data[4:n])
        data = data[n:]
    return out, data


class Rrq(Conn):
    """A connection to our runner. It holds the runner to the form of the wire: compact JSON, members in their order, only
    those that are set."""

    def request(self, function, params, **more):
        self.send(request(function, params, **more))

    def cancel(self, job, id=None):
        self.send(message("cancel", {"protocol_version": "2", "job_id": job, "request_id": id, "hard_kill": False}))

    def outcome(self, timeout=20.0):
        """The payload of the next response; raises Closed when the runner closes before its first byte."""
        end = time.monotonic() + timeout * SLOW
        while not self.buffer:
            if not self.fill(end):
                raise Closed()
        n = struct.unpack(">I", self.exactly(4, end))[0]
        text = self.exactly(n, end)
        whole = json.loads(text.decode("utf-8"))
        if list(whole) != ["type", "payload"] or whole["type"] != "response":
            raise ProtocolError("no response: %r" % text[:300])
        payload = whole["payload"]
        if list(payload) != [m for m in MEMBERS if m in payload] or any(payload[m] is None for m in MEMBERS[:3] + MEMBERS[4:]
                                                                        if m in payload):
            raise ProtocolError("members: %r" % text[:300])
        if ("error" in payload) == ("result" in payload) or (payload["status"] == "success") != ("result" in payload):
            raise ProtocolError("neither or both of result and error: %r" % text[:300])
        return payload

    def outcomes(self, seconds):
        """Those that come until the connection closes, or for so long: (payloads, closed)."""
        out, end = [], time.monotonic() + seconds
        while True:
            try:
                if not self.buffer and not self.fill(end):
                    return out, True
            except TimedOut:
                return out, False
            out.append(self.outcome())

    def works(self, function="echo"):
        """Whether a request on this connection is answered, by one outcome."""
        self.send(request(function, {"a": 1}, id="still there?", job="still"))
        r = self.outcome()
        return (r["request_id"], r["status"]) == ("still there?", "success")


class FakeRunner:
    """Listens on loopback; respond(sock, message) is called in a thread for each message that comes. What it returns is
    sent: bytes, or the payload of a response."""

    def __init__(self, respond):
        self.respond = respond
        self.messages = []
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(16)
        self.port = self.sock.getsockname()[1]
        self.url = "rrq://127.0.0.1:%d" % self.port
        self._open = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()
        for s in list(self._open):
            s.close()

    def _accept(self):
        while True:
            try:
                s, _ = self.sock.accept()
            except OSError:
                return
            self._open.add(s)
            threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s):
        data = b""
        try:
            s.settimeout(30 * SLOW)
            while True:
                more = s.recv(65536)
                if not more:
                    return
                texts, data = frames(data + more)
                for text in texts:
                    m = json.loads(text.decode("utf-8"))
                    self.messages.append(m)
                    answer = self.respond(s, m)
                    if isinstance(answer, dict):
                        answer = message("response", answer)
                    if answer:
                        s.sendall(answer)
        except OSError:
            pass
        finally:
            self._open.discard(s)
            s.close()
