"""An RRQ runner as the tests want it: listens where --tcp-socket says (the last one), runs each request in a thread of its
own, and misbehaves as it is told. What it sees it says on standard output: "request ID 1", "cancel ID 2" (the number is that
of the connection), "child PID".

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import datetime
import json
import os
import signal
import socket
import struct
import sys
import threading
import time


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--tcp-socket", required=True)
    p.add_argument("--exit", type=int, help="ends with that code before it listens")
    p.add_argument("--never", action="store_true", help="never listens")
    p.add_argument("--start-after", type=float, default=0, help="seconds")
    p.add_argument("--exit-after", type=int, default=0, help="ends in the moment when that many requests are answered")
    p.add_argument("--no-reuse", action="store_true", help="does not set SO_REUSEADDR")
    p.add_argument("--ignore-term", action="store_true")
    p.add_argument("--ignore-deadlines", action="store_true")
    p.add_argument("--ignore-cancels", action="store_true")
    p.add_argument("--child", action="store_true", help="has a child that does not hear SIGTERM")
    return p.parse_args()


class Failure(Exception):
    def __init__(self, message, type=None, status="error"):
        super().__init__(message)
        self.type, self.status = type, status


class Request:
    def __init__(self, runner, connection, payload):
        self.runner, self.connection, self.payload = runner, connection, payload
        self.id, self.job = payload["request_id"], payload["job_id"]
        self.params, self.context = payload["params"], payload["context"]
        self.stopped = threading.Event()

    def seconds_left(self):
        deadline = self.context.get("deadline")
        if not deadline or self.runner.args.ignore_deadlines:
            return 60
        at = datetime.datetime.fromisoformat(deadline.replace("Z", "+00:00"))
        return max((at - datetime.datetime.now(datetime.timezone.utc)).total_seconds(), 0)


def echo(request):
    return request.params


def pid(request):
    return os.getpid()


def told(request):
    return {"socket": request.runner.args.tcp_socket, "variable": os.environ.get("RRQ_RUNNER_TCP_SOCKET"), "args": sys.argv[1:]}


def context(request):
    return request.context


def slow(request):
    if request.stopped.wait(request.seconds_left()):
        raise Failure("Job cancelled", "cancelled")
    raise Failure("Job execution timed out", "timeout", "timeout")


def fail(request):
    raise Failure("as asked", "Custom")


def die(request):
    os._exit(9)


def freeze(request):
    """Nothing of this process goes on."""
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(60)


def hang_up(request):
    request.connection.shutdown(socket.SHUT_RDWR)


FUNCTIONS = {f.__name__: f for f in (echo, pid, told, context, slow, fail, die, freeze, hang_up)}


class Runner:
    def __init__(self, args):
        self.args = args
        self.running = {}
        self.lock = threading.Lock()
        self.n_connections = self.n_answered = 0

    def say(self, *words):
        print(*words, flush=True)

    def send(self, connection, payload):
        text = json.dumps({"type": "response", "payload": payload}, separators=(",", ":")).encode()
        with self.lock:
            try:
                connection.sendall(struct.pack(">I", len(text)) + text)
            except OSError:
                pass
            self.n_answered += 1
            if self.n_answered == self.args.exit_after:
                os._exit(0)

    def run(self, request):
        outcome = {"job_id": request.job, "request_id": request.id, "status": "success", "result": None, "error": None,
                   "retry_after_seconds": None}
        try:
            name = request.payload["function_name"]
            if name not in FUNCTIONS:
                raise Failure(f"No handler registered for function '{name}'", "handler_not_found")
            outcome["result"] = FUNCTIONS[name](request)
        except Failure as f:
            outcome.update(status=f.status, error={"message": str(f), "type": f.type})
        self.running.pop(request.id, None)
        self.send(request.connection, outcome)

    def on_request(self, connection, number, payload):
        self.say("request", payload["request_id"], number)
        request = self.running[payload["request_id"]] = Request(self, connection, payload)
        threading.Thread(target=self.run, args=(request,), daemon=True).start()

    def on_cancel(self, number, payload):
        self.say("cancel", payload.get("request_id"), number)
        request = self.running.get(payload.get("request_id"))
        if request and not self.args.ignore_cancels:
            request.stopped.set()

    def serve(self, connection, number):
        f = connection.makefile("rb")
        mine = set()
        while True:
            head = f.read(4)
            if len(head) < 4:
                break
            message = json.loads(f.read(struct.unpack(">I", head)[0]))
            payload = message["payload"]
            if message["type"] == "cancel":
                self.on_cancel(number, payload)
            else:
                mine.add(payload["request_id"])
                self.on_request(connection, number, payload)
        for id in mine:
            request = self.running.get(id)
            if request:
                request.stopped.set()
        connection.close()

    def listen(self):
        host, port = self.args.tcp_socket.rsplit(":", 1)
        host = host.strip("[]")
        s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if not self.args.no_reuse:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((host, int(port)))
        s.listen(16)
        self.say("listening", self.args.tcp_socket)
        while True:
            connection, _ = s.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.n_connections += 1
            threading.Thread(target=self.serve, args=(connection, self.n_connections), daemon=True).start()


def main():
    args = options()
    signal.alarm(120)  # whatever goes wrong, it does not stay for ever
    runner = Runner(args)
    runner.say("pid", os.getpid())
    if args.exit is not None:
        sys.exit(args.exit)
    if args.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if args.child:
        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = os.fork()
        if child == 0:
            signal.alarm(120)
            while True:
                time.sleep(1)
        signal.signal(signal.SIGTERM, before)
        runner.say("child", child)
    time.sleep(args.start_after)
    while args.never:
        time.sleep(1)
    runner.listen()


if __name__ == "__main__":
    main()
