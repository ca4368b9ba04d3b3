#!/usr/bin/env python3
"""What the server costs when it does little: start-up, resident memory idle, per idle connection and stream, per stalled reader of a stream, and after a burst
of large bodies. Loopback only; standard library only.

    bench/memory.py [--binary build/everywire] [--connections 10000] [--stalled 1000]
"""
import argparse
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    raise SystemExit("the server is gone")


class Server:
    def __init__(self, binary, *options):
        self.started = time.perf_counter()
        self.process = subprocess.Popen([binary, "serve", "--demo", "--listen", "127.0.0.1:0", *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        while True:
            event = json.loads(self.process.stdout.readline())
            if event["event"] == "listening":
                self.port = event["port"]
            elif event["event"] == "ready":
                break

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), 10)

    def post(self, sock, path, data, extra=""):
        body = json.dumps({"data": data}).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
        sock.sendall(head.encode() + body)

    def answer(self, sock):
        data = b""
        while b"\r\n\r\n" not in data:
            data += sock.recv(65536)
        head, body = data.split(b"\r\n\r\n", 1)
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += sock.recv(1 << 20)
        return body

    def rss(self):
        return rss_kib(self.process.pid)

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


def start_up(binary, rounds=11):
    times, sizes = [], []
    for _ in range(rounds):
        server = Server(binary, "--threads", "1")
        with server.connect() as sock:
            server.post(sock, "/echo", 1)
            server.answer(sock)
            times.append((time.perf_counter() - server.started) * 1000)
            sizes.append(server.rss())
        server.stop()
    print(f"start to first answered request: median {statistics.median(times):.1f} ms, best {min(times):.1f} ms ({rounds} rounds, python's fork and pipe included)")
    print(f"resident after it, one loop: {statistics.median(sizes) / 1024:.2f} MiB")


def idle_connections(binary, n):
    server = Server(binary, "--threads", "1")
    before = server.rss()
    socks = []
    for _ in range(n):
        socks.append(server.connect())
    time.sleep(0.5)
    silent = server.rss()
    for sock in socks:
        server.post(sock, "/echo", {"a": 1})
    for sock in socks:
        server.answer(sock)
    time.sleep(0.5)
    used = server.rss()
    print(f"{n} connections: {(silent - before) / n * 1024:.0f} bytes each before their first request, {(used - before) / n * 1024:.0f} after one each "
          f"(resident {used / 1024:.1f} MiB)")
    for sock in socks:
        sock.close()
    server.stop()


def stalled_readers(binary, n):
    server = Server(binary, "--threads", "1")
    before = server.rss()
    socks = []
    for _ in range(n):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", server.port))
        server.post(sock, "/stream", {"n": 10000000}, "Accept: text/event-stream\r\n")
        socks.append(sock)
    time.sleep(1)
    with server.connect() as sock:
        t0 = time.perf_counter()
        server.post(sock, "/echo", 1)
        server.answer(sock)
        print(f"another call while {n} streams run at full speed: {(time.perf_counter() - t0) * 1000:.1f} ms")
    for _ in range(60):  # the kernel's buffers fill first; then ours; then the server has nothing to do
        before_cpu = server.cpu()
        time.sleep(0.5)
        if server.cpu() - before_cpu < 0.05:
            break
    print(f"{n} readers that stopped reading an endless stream: {(server.rss() - before) / n:.0f} KiB each")
    with server.connect() as sock:
        t0 = time.perf_counter()
        server.post(sock, "/echo", 1)
        server.answer(sock)
        print(f"another call beside them: {(time.perf_counter() - t0) * 1000:.1f} ms")
    for sock in socks:
        sock.close()
    server.stop()


def idle_streams(binary, n):
    """Open streams on one connection of the jsonrpc wire on which nothing happens: uploads, then downloads."""
    kinds = {"input": '{"jsonrpc":"2.0","id":"%d","method":"sum","stream":1,"params":{}}\n',
             "result": '{"jsonrpc":"2.0","id":"%d","method":"count?stream=true","params":{"n":2,"delay_ms":600000}}\n'}
    for kind, request in kinds.items():
        server = Server(binary, "--threads", "1", "--limit", f"calls_per_connection={n + 10}", "--limit", "stream_idle_ms=1h")
        with server.connect() as sock, sock.makefile("r") as answers:
            ask = '{"jsonrpc":"2.0","id":"last","method":"echo"}\n'.encode()
            sock.sendall(ask)
            answers.readline()
            before = server.rss()
            sock.sendall("".join(request % i for i in range(n)).encode() + ask)
            while '"last"' not in answers.readline():
                pass
            print(f"{n} idle {kind} streams on one connection: {(server.rss() - before) / n * 1024:.0f} bytes each")
        server.stop()


def stalled_stream(binary):
    """One connection whose reader stopped, with an endless result stream on it."""
    server = Server(binary, "--threads", "1")
    before = server.rss()
    with server.connect() as sock:
        sock.sendall(b'{"jsonrpc":"2.0","id":1,"method":"stream?stream=true","params":{"n":100000000}}\n')
        time.sleep(3)
        print(f"a stalled reader of an endless jsonrpc stream: {server.rss() - before} KiB")
    server.stop()


def burst(binary):
    server = Server(binary, "--threads", "1")
    with server.connect() as sock:
        server.post(sock, "/echo", 1)
        server.answer(sock)
    before = server.rss()
    socks = [server.connect() for _ in range(8)]
    text = "x" * (1 << 20)
    for _ in range(20):
        for sock in socks:
            server.post(sock, "/echo", text)
        for sock in socks:
            server.answer(sock)
    during = server.rss()
    for sock in socks:
        sock.close()
    time.sleep(3)
    print(f"burst of 160 bodies of 1 MiB on 8 connections: {before / 1024:.1f} MiB before, {during / 1024:.1f} during, {server.rss() / 1024:.1f} after")
    server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=os.path.join(HERE, "..", "build", "everywire"))
    parser.add_argument("--connections", type=int, default=10000)
    parser.add_argument("--stalled", type=int, default=1000)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(f"binary: {os.path.getsize(os.path.realpath(options.binary)) / 1024:.0f} KiB")
    start_up(options.binary)
    idle_connections(options.binary, options.connections)
    stalled_readers(options.binary, options.stalled)
    idle_streams(options.binary, options.connections)
    stalled_stream(options.binary)
    burst(options.binary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
