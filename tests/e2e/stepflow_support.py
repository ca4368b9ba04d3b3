"""What the Stepflow tests share: a server of ours, the runtime's side of HTTP by hand, and a store of blobs. Not a test itself.

SPDX-License-Identifier: Apache-2.0
"""
import hashlib
import json
import os
import threading
import time

import support
from support import SLOW, Conn, ProtocolError, Server, request

SERVER = os.environ.get("EW_STEPFLOW_SERVER", "")  # tests/e2e/stepflow_server.c
CALLS = os.environ.get("EW_STEPFLOW_CALLS", "")    # tests/e2e/stepflow_calls.c
ACCEPT = ("Accept", "application/json, text/event-stream")
ID = "5b5ef2a2-9d6c-4b8a-a2de-000000000001"


def message(method, params=None, id=ID):
    """A request as a runtime writes it; without an id a notification."""
    out = {"jsonrpc": "2.0"}
    if id is not None:
        out["id"] = id
    out.update(method=method, params={} if params is None else params)
    return out


def execute(component, input=None, id=ID, **more):
    return message("components/execute", dict({"component": component, "input": input}, **more), id)


def blob_id(value):
    return hashlib.sha256(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()


class Blobs:
    """A runtime's store, as its methods."""

    def __init__(self):
        self.values = {}

    def answer(self, ask):
        """The reply to a request of a server."""
        reply, params = {"jsonrpc": "2.0", "id": ask["id"]}, ask["params"]
        if ask["method"] == "blobs/put":
            id = blob_id(params["data"])
            self.values[id] = params["data"]
            reply["result"] = {"blob_id": id}
        elif ask["method"] == "blobs/get" and params["blob_id"] in self.values:
            reply["result"] = {"data": self.values[params["blob_id"]], "blob_type": "data"}
        elif ask["method"] == "blobs/get":
            reply["error"] = {"code": -32000, "message": "Failed to get blob", "data": None}
        elif ask["method"] == "runs/submit":
            reply["result"] = {"runId": "1", "status": "completed",
                               "results": [{"itemIndex": 0, "result": {"outcome": "success", "result": {"doubled": 4}}}]}
        else:
            reply["error"] = {"code": -32601, "message": "Method not found", "data": None}
        return reply


def component_server(*args, **kw):
    """The test's own component server."""
    s = Server(*args, demo=False, **kw)
    s.command = [SERVER] + s.command[2:]
    return s


def post(conn, body, headers=(ACCEPT,), path="/", ctype="application/json", timeout=10.0, port=None):
    """Posts bytes or an object on a connection; the whole answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    conn.send(request("POST", path, data, headers, port=port, ctype=ctype))
    return conn.response(timeout)


def parse_event(block):
    if not block.startswith("data: ") or "\n" in block:
        raise ProtocolError("bad event %r" % block)
    return json.loads(block[6:])


class Stream:
    """An answer that may be a stream: head first, then one event after the other."""

    def __init__(self, port, body, headers=(ACCEPT,), path="/"):
        self.conn = Conn(port)
        self.conn.send(request("POST", path, json.dumps(body).encode(), headers, port=port))
        self.head = self.conn.head(15.0)
        self.streams = self.head.get("content-type") == "text/event-stream"
        self.text = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.conn.close()

    def next(self, timeout=15.0):
        """The next message, or None at the end of the stream."""
        while "\n\n" not in self.text:
            data = self.conn.chunk(timeout)
            if data is None:
                if self.text:
                    raise ProtocolError("the stream ends inside an event: %r" % self.text)
                return None
            self.text += data.decode("ascii")
        block, self.text = self.text.split("\n\n", 1)
        return self.next(timeout) if block == ":" else parse_event(block)

    def body(self):
        """Of an answer that is no stream."""
        return self.conn.body(self.head).json()


def run(port, body, store, headers=(ACCEPT,), path="/"):
    """A runtime's whole part of components/execute: answers what the server asks, each reply on a connection of its own.
    (final message, requests of the server, instance id)"""
    asked = []
    with Stream(port, body, headers, path) as s:
        if not s.streams:
            return s.body(), asked, None
        instance = s.head.get("stepflow-instance-id")
        while True:
            m = s.next()
            if m is None:
                raise ProtocolError("the stream ends without an answer")
            if "method" not in m:
                if s.next() is not None:
                    raise ProtocolError("more behind the answer")
                return m, asked, instance
            asked.append(m)
            with Conn(port) as c:
                r = post(c, store.answer(m), headers + (("Stepflow-Instance-Id", instance),), path, port=port)
                if (r.status, r.body) != (202, b""):
                    raise ProtocolError("a reply was answered with %r" % r)


def in_threads(n, work):
    """Runs work(i) n times at once; raises what one of them raised."""
    problems = []

    def one(i):
        try:
            work(i)
        except Exception as e:  # pylint: disable=broad-except
            problems.append(e)
    threads = [threading.Thread(target=one, args=(i,), daemon=True) for i in range(n)]
    for t in threads:
        t.start()
    end = time.monotonic() + 60 * SLOW
    for t in threads:
        t.join(max(end - time.monotonic(), 0.01))
        if t.is_alive():
            raise support.TimedOut("a thread does not end")
    if problems:
        raise problems[0]
