"""A component server that is not everywire, of the generation that --gen says (1: 2025-08, 2: late 2025, 3: 0.9, 4: 0.11), as strict
as Stepflow's own Python servers were: what lacks a param that its generation wants gets no answer on stdio, and on HTTP 400 without
an id. Started on HTTP it announces its port.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import hashlib
import http.client
import http.server
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

REQUIRED = {1: ("component", "input"), 2: ("component", "input", "attempt", "observability"),
            3: ("component", "input", "attempt", "observability"), 4: ("component", "input", "attempt", "observability")}
SCHEMA = {"type": "object", "properties": {"message": {"type": "string"}}}


class Failed(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message, "data": {} if data is None else data}


class Undecodable(Exception):
    pass


class Worker:
    """What it does, whatever carries it. ask(method, params) calls the runtime."""

    def __init__(self, options):
        self.options = options
        self.initialized = False
        self.greetings = 0
        self.blob_url = None
        self.executed = 0  # and answered

    # ---- components

    def blob(self, ask, data=None, id=None):
        if self.options.gen < 4:
            if id is None:
                return ask("blobs/put", {"data": data, "blob_type": "data"})["blob_id"]
            return ask("blobs/get", {"blob_id": id})["data"]
        url = urllib.parse.urlparse(self.blob_url)
        conn = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
        if id is None:
            conn.request("POST", url.path, json.dumps({"data": data, "blobType": "data"}), {"Content-Type": "application/json"})
        else:
            conn.request("GET", url.path + "/" + id)
        answer = conn.getresponse()
        body = json.loads(answer.read())
        conn.close()
        if answer.status != 200:
            raise Failed(-32100, "Component execution failed: blob API %d: %s" % (answer.status, body["message"]))
        return body["blobId"] if id is None else body["data"]

    def component(self, name, params, ask):
        value = params["input"]
        if name == "/echo":
            return {"echo": value["message"]}
        if name == "/mirror":
            return value
        if name == "/boom":
            raise ValueError("boom")
        if name == "/pid":
            return os.getpid()
        if name == "/observed":
            return {"params": {k: v for k, v in params.items() if k != "input"}, "greetings": self.greetings, "blob_url": self.blob_url,
                    "args": self.options.rest, "home": os.environ.get("EW_INHERITED")}
        if name == "/die":
            os._exit(9)
        if name == "/sleep":
            time.sleep(value["ms"] / 1000)
            return value
        if name == "/store":
            return {"blob_id": self.blob(ask, data=value)}
        if name == "/load":
            return self.blob(ask, id=value["blob_id"])
        if name == "/ask":
            return ask(value["method"], value["params"])
        if name == "/print":
            print("a stray print", flush=True)
            return 1
        raise Failed(-32001, "Component '%s' not found" % name, {"component": name})

    NAMES = ("echo", "mirror", "boom", "pid", "observed", "die", "sleep", "store", "load", "ask", "print")

    def calls_back(self, name):
        return self.options.gen < 4 and name in ("/store", "/load", "/ask")

    # ---- messages

    def info(self, name):
        return {"component": name, "description": "The component %s" % name[1:], "input_schema": SCHEMA, "output_schema": None}

    def hello(self, params):
        spelling = "runtimeProtocolVersion" if self.options.gen == 4 else "runtime_protocol_version"
        if spelling not in params:
            raise Undecodable("Object missing required field `%s`" % spelling)
        self.greetings += 1
        self.blob_url = params.get("capabilities", {}).get("blobApiUrl")
        return {"serverProtocolVersion": 1, "supportsBlobRefs": True} if self.options.gen == 4 else {"server_protocol_version": 1}

    def check(self, message):
        if not isinstance(message, dict) or not isinstance(message.get("params"), dict) or "method" not in message:
            raise Undecodable("no request")
        if message["method"] == "components/execute":
            for name in REQUIRED[self.options.gen]:
                if name not in message["params"]:
                    raise Undecodable("Object missing required field `%s`" % name)
        elif message["method"] not in ("initialize", "initialized", "components/list", "components/info"):
            raise Undecodable("Invalid enum value '%s'" % message["method"])

    def result(self, message, ask):
        method, params = message["method"], message["params"]
        if method == "initialize":
            return self.hello(params)
        if self.options.strict and not self.initialized:
            raise Failed(-32002, "Server not initialized")
        if method == "components/list":
            return {"components": [self.info("/" + name) for name in self.NAMES]}
        if method == "components/info":
            return {"info": self.info(params["component"])}
        try:
            return {"output": self.component(params["component"], params, ask)}
        except Failed:
            raise
        except Exception as e:  # pylint: disable=broad-except
            raise Failed(-32100 if self.options.gen == 4 else -32003, "Component execution failed: %s" % e)

    def answer(self, message, ask):
        """The answer to a request, or None to a notification."""
        self.check(message)
        if message.get("id") is None:
            self.initialized = self.initialized or message["method"] == "initialized"
            return None
        try:
            return {"id": message["id"], "result": self.result(message, ask), "jsonrpc": "2.0"}
        except Failed as e:
            return {"id": message["id"], "error": e.error, "jsonrpc": "2.0"}

    def count(self, message):
        """After its answer has left."""
        self.executed += message["method"] == "components/execute"
        if self.options.exit_after and self.executed >= self.options.exit_after:
            os._exit(0)


class Asking:
    """Requests of ours that wait for their answer."""

    def __init__(self):
        self.lock = threading.Lock()
        self.waiting = {}

    def ask(self, send, method, params):
        id, box = hashlib.md5(os.urandom(16)).hexdigest(), queue.Queue()
        with self.lock:
            self.waiting[id] = box
        send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        reply = box.get(timeout=20)
        if "error" in reply:
            raise ValueError("JSON-RPC error %d: %s" % (reply["error"]["code"], reply["error"]["message"]))
        return reply["result"]

    def take(self, message):
        """Whether it is an answer, and one that is waited for."""
        if not isinstance(message, dict) or "method" in message or not ("result" in message or "error" in message):
            return None
        with self.lock:
            box = self.waiting.pop(message["id"], None)
        if box:
            box.put(message)
        return box is not None


# ---- carriers

def serve_stdio(worker):
    lock, asking = threading.Lock(), Asking()

    def send(message):
        with lock:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def work(message):
        try:
            answer = worker.answer(message, lambda method, params: asking.ask(send, method, params))
        except Undecodable as e:
            print("undecodable: %s" % e, file=sys.stderr, flush=True)
            return
        if answer is not None:
            send(answer)
        worker.count(message)

    for line in sys.stdin:
        message = json.loads(line)
        if asking.take(message) is None:
            threading.Thread(target=work, args=(message,), daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asking = Asking()
    worker = None

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if self.worker.options.closes:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def chunk(self, text):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text.encode()))
        self.wfile.flush()

    def event(self, message):
        self.chunk("data: %s\n\n" % json.dumps(message))

    def stream(self, message):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Stepflow-Instance-Id", "0123456789abcdef")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.chunk(": keepalive\n\n")
        self.event(self.worker.answer(message, lambda method, params: self.asking.ask(self.event, method, params)))
        if self.worker.options.gen == 4:
            self.close_connection = True  # as 0.11.2: no last chunk
        else:
            self.wfile.write(b"0\r\n\r\n")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        accept = self.headers.get("Accept", "")
        if self.path != self.worker.options.path:
            self.reply(404, {"detail": "Not Found"})
        elif "application/json" not in accept or "text/event-stream" not in accept:
            self.reply(406, {"error": "Accept header must include application/json and text/event-stream"})
        else:
            self.take(json.loads(body))

    def take(self, message):
        found = self.asking.take(message)
        if found is not None:
            self.reply(202 if found else 400, "")
            return
        try:
            self.worker.check(message)
            execute = message["method"] == "components/execute"
            if execute and (self.worker.calls_back(message["params"]["component"]) or self.worker.options.always_stream):
                self.stream(message)
            else:
                answer = self.worker.answer(message, None)
                self.reply(200 if answer else 202, answer if answer else "")
            self.wfile.flush()
            self.worker.count(message)
        except Undecodable as e:
            self.reply(400, {"error": {"code": -32600, "message": str(e)}})

    def do_GET(self):
        self.reply(200 if self.path == "/health" else 404, {"status": "healthy"})

    def log_message(self, *_):
        pass


class HttpServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def serve_http(worker):
    options = worker.options
    Handler.worker = worker
    server = HttpServer(("127.0.0.1", options.port), Handler)
    if options.noise:
        print('starting\n{"level":"info","port":"none"}\n[1]', flush=True)
        print('{"port":1}', file=sys.stderr, flush=True)
    time.sleep(options.announce_after)
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    server.serve_forever()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--gen", type=int, default=2)
    p.add_argument("--stdio", action="store_true")
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--path", default="/")
    p.add_argument("--noise", action="store_true")
    p.add_argument("--strict", action="store_true", help="answers nothing before initialized")
    p.add_argument("--always-stream", action="store_true")
    p.add_argument("--closes", action="store_true", help="the connection, after each answer")
    p.add_argument("--announce-after", type=float, default=0)
    p.add_argument("--silent", action="store_true", help="never announces")
    p.add_argument("--exit-with", type=int, help="at once")
    p.add_argument("--exit-after", type=int, default=0, help="that many components")
    p.add_argument("--child", action="store_true", help="starts another process, which does not listen to SIGTERM")
    p.add_argument("--ignore-term", action="store_true")
    p.add_argument("rest", nargs="*")
    options = p.parse_args()
    signal.alarm(100)  # whatever goes wrong, it does not stay for ever
    print("pid %d" % os.getpid(), file=sys.stderr, flush=True)
    if options.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.child:
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(90)"
        child = subprocess.Popen([sys.executable, "-SE", "-c", code])
        print("child %d" % child.pid, file=sys.stderr, flush=True)
    if options.exit_with is not None:
        print("no licence", file=sys.stderr, flush=True)
        sys.exit(options.exit_with)
    while options.silent:
        time.sleep(1)
    worker = Worker(options)
    if options.stdio:
        serve_stdio(worker)
    else:
        serve_http(worker)


if __name__ == "__main__":
    main()
