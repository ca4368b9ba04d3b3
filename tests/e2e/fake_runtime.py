"""A Genkit runtime as the tests want it: dials a manager over WebSocket, registers, and answers as it is told.

As a program it is what stands behind `--`: it reads GENKIT_REFLECTION_V2_SERVER as every runtime does.
SPDX-License-Identifier: Apache-2.0
"""
import base64
import json
import os
import socket
import struct
import sys
import threading
import time

TRACE = "0123456789abcdef0123456789abcdef"


class Gone(Exception):
    """The manager has closed the connection."""


class Socket:
    """The client's side of a WebSocket: text messages in and out."""

    def __init__(self, port, host="127.0.0.1", path="/", headers=(), timeout=20):
        self.sock = socket.create_connection((host, port), timeout=timeout)
        self.buffer = b""
        self.lock = threading.Lock()
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{port}", "Upgrade: websocket", "Connection: Upgrade",
                 "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", *headers]
        self.sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        self.status = int(head.split()[1])
        if self.status != 101:
            raise Gone(head.decode("latin-1"))

    def more(self):
        try:
            got = self.sock.recv(65536)
        except OSError as error:
            raise Gone(str(error)) from error
        if not got:
            raise Gone("eof")
        self.buffer += got

    def take(self, n):
        while len(self.buffer) < n:
            self.more()
        got, self.buffer = self.buffer[:n], self.buffer[n:]
        return got

    def send_frame(self, opcode, payload):
        mask = os.urandom(4)
        n = len(payload)
        head = bytes([0x80 | opcode])
        if n < 126:
            head += bytes([0x80 | n])
        elif n < 65536:
            head += bytes([0x80 | 126]) + struct.pack(">H", n)
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", n)
        key = (mask * (n // 4 + 1))[:n]
        body = (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(n, "big") if n else b""
        with self.lock:
            try:
                self.sock.sendall(head + mask + body)
            except OSError as error:
                raise Gone(str(error)) from error

    def send(self, message):
        self.send_frame(1, message if isinstance(message, bytes) else json.dumps(message).encode())

    def receive(self):
        """The next message; pings are answered, a close is the end."""
        whole = b""
        while True:
            first, second = self.take(2)
            n = second & 127
            if n == 126:
                n = struct.unpack(">H", self.take(2))[0]
            elif n == 127:
                n = struct.unpack(">Q", self.take(8))[0]
            payload = self.take(n)
            opcode = first & 15
            if opcode == 8:
                raise Gone("closed")
            if opcode == 9:
                self.send_frame(10, payload)
            elif opcode < 8:
                whole += payload
                if first & 128:
                    return json.loads(whole)

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()


class Run:
    """One runAction, in a thread of its own."""

    def __init__(self, runtime, id, params):
        self.runtime, self.id, self.params = runtime, id, params
        self.input = []
        self.changed = threading.Condition()
        self.ended = self.cancelled = False
        self.trace = TRACE[:-8] + f"{len(runtime.runs):08x}"

    def chunk(self, value):
        self.runtime.notify("streamChunk", {"requestId": self.id, "chunk": value})

    def take(self):
        """The next input chunk; None after the last."""
        with self.changed:
            self.changed.wait_for(lambda: self.input or self.ended or self.cancelled, 20)
            return self.input.pop(0) if self.input else None

    def wait_cancel(self, seconds=20):
        with self.changed:
            return self.changed.wait_for(lambda: self.cancelled, seconds)


class Failure(Exception):
    def __init__(self, code, message, details=None):
        super().__init__(message)
        self.code, self.details = code, details or {}


def echo(run):
    return run.params.get("input")


def stream(run):
    for i in range(run.params.get("input", {}).get("n", 3)):
        run.chunk({"i": i})
    return "streamed"


def fail(run):
    raise Failure(5, "no such thing", {"why": "test"})


def slow(run):
    run.chunk("started")
    if run.wait_cancel():
        raise Failure(1, "Action was cancelled")
    return "slept"


def total(run):
    result = 0
    while (chunk := run.take()) is not None:
        result += chunk
        run.chunk(result)
    return result


def params(run):
    return {k: v for k, v in run.params.items() if k != "input"}


def die(run):
    run.chunk(1)
    run.runtime.socket.close()
    raise Gone("as asked")


FLOWS = {"/flow/echo": echo, "/flow/stream": stream, "/flow/fail": fail, "/flow/slow": slow, "/flow/total": total,
         "/flow/params": params, "/flow/die": die}


class Runtime:
    """A connection that has registered. `flows` may grow while it lives."""

    def __init__(self, port, id="rt-1", name="fake", version="nodejs/1.42.0", flows=None, register=True):
        self.flows = dict(FLOWS if flows is None else flows)
        self.runs, self.lists, self.registered, self.gone = {}, 0, threading.Event(), threading.Event()
        self.id, self.name, self.version = id, name, version
        self.answer = None
        self.socket = Socket(port)
        self.thread = threading.Thread(target=self.loop, daemon=True)
        if register:
            self.register()
        self.thread.start()

    def register(self):
        self.socket.send({"jsonrpc": "2.0", "id": "1", "method": "register",
                          "params": {"id": self.id, "name": self.name, "pid": os.getpid(), "genkitVersion": self.version,
                                     "reflectionApiSpecVersion": 1, "envs": ["dev"]}})

    def notify(self, method, params):
        self.socket.send({"jsonrpc": "2.0", "method": method, "params": params})

    def reply(self, id, **members):
        self.socket.send({"jsonrpc": "2.0", **members, "id": id})

    def listing(self):
        return {k: {"key": k, "name": k.split("/", 2)[2]} for k in self.flows}

    def run(self, run):
        try:
            self.notify("runActionState", {"requestId": run.id, "state": {"traceId": run.trace}})
            self.reply(run.id, **self.outcome(run))
        except (Gone, OSError):
            pass

    def outcome(self, run):
        try:
            return {"result": {"result": self.flows[run.params["key"]](run), "telemetry": {"traceId": run.trace}}}
        except Failure as f:
            details = {**f.details, "traceId": run.trace}
            return {"error": {"code": -32000, "message": str(f), "data": {"code": f.code, "message": str(f), "details": details}}}

    def on_request(self, m):
        method, params, id = m["method"], m.get("params") or {}, m.get("id")
        if method == "listActions":
            self.lists += 1
            self.reply(id, result={"actions": self.listing()})
        elif method == "runAction" and params.get("key") not in self.flows:
            self.reply(id, error={"code": -32602, "message": f"action {params.get('key')} not found"})
        elif method == "runAction":
            run = self.runs[id] = Run(self, id, params)
            threading.Thread(target=self.run, args=(run,), daemon=True).start()
        elif method == "cancelAction":
            run = next((r for r in self.runs.values() if r.trace == params.get("traceId")), None)
            if run:
                with run.changed:
                    run.cancelled = True
                    run.changed.notify_all()
            self.reply(id, result={"message": "Action cancelled"})
        elif method in ("sendInputStreamChunk", "endInputStream"):
            run = self.runs[params["requestId"]]
            with run.changed:
                if method == "endInputStream":
                    run.ended = True
                else:
                    run.input.append(params["chunk"])
                run.changed.notify_all()
        elif id is not None:
            self.reply(id, error={"code": -32601, "message": f"Method not found: {method}"})

    def loop(self):
        try:
            while True:
                m = self.socket.receive()
                if "method" in m:
                    self.on_request(m)
                elif m.get("id") == "1":
                    self.answer = m
                    if "error" not in m:
                        self.registered.set()
        except Gone:
            pass
        finally:
            self.socket.close()
            self.gone.set()
            for run in list(self.runs.values()):
                with run.changed:
                    run.cancelled = True
                    run.changed.notify_all()

    def close(self):
        self.socket.close()


def connect(port, timeout=20, **options):
    """A runtime, as soon as somebody listens there."""
    until = time.monotonic() + timeout
    while True:
        try:
            return Runtime(port, **options)
        except (OSError, Gone):
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def main():
    """--exit CODE: ends at once; --late SECONDS: defines its flows that long after it has registered; --vars: says what
    it was started with; --exit-after SECONDS: ends so long after it has registered."""
    args = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    print("on standard output", flush=True)
    print("on standard error", file=sys.stderr, flush=True)
    if "--vars" in args:
        names = ("GENKIT_ENV", "GENKIT_REFLECTION_V2_SERVER", "GENKIT_TELEMETRY_SERVER", "GENKIT_ENABLE_REALTIME_TELEMETRY",
                 args["--vars"])
        print("vars " + json.dumps({k: os.environ.get(k) for k in names}), flush=True)
    if "--exit" in args:
        sys.exit(int(args["--exit"]))
    port = int(os.environ["GENKIT_REFLECTION_V2_SERVER"].rsplit(":", 1)[1])
    runtime = Runtime(port, id=args.get("--id", str(os.getpid())), flows={} if "--late" in args else None)
    if "--late" in args:
        time.sleep(float(args["--late"]))
        runtime.flows.update(FLOWS)
    if "--exit-after" in args:
        runtime.registered.wait(20)
        time.sleep(float(args["--exit-after"]))
        sys.exit(7)
    runtime.gone.wait()
    if "--stay" in args:
        time.sleep(60)


if __name__ == "__main__":
    main()
