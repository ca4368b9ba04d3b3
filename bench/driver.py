#!/usr/bin/env python3
"""everywire bench beside a neutral load generator: how fast does each drive the same server, and at what cost?

Usage: driver.py PROGRAM LOADGEN [ROUNDS [SECONDS [ONLY]]]      ONLY: part of a row's name
Server on CPU 0, drivers on CPU 1 (where there are two), samples in turn, the order changes each round. Prints the ratio everywire bench /
generator of the rates (1.0 is as fast; wanted: 0.8), and the driver's own CPU time per call of both. The generator patches a
number into a prepared request and looks for the end of an answer; everywire bench is the whole client: its CPU time says what that is.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import socket
import statistics
import subprocess
import sys
import time

program, loadgen = sys.argv[1], sys.argv[2]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 9
seconds = sys.argv[4] if len(sys.argv) > 4 else "1.0"
only = sys.argv[5] if len(sys.argv) > 5 else ""
SERVER_CPU, DRIVER_CPU = ["taskset", "-c", "0"], ["taskset", "-c", "1" if os.cpu_count() > 1 else "0"]
TEXT = ("the quick brown fox jumps " * 5)[9:98]  # as the generator fills its 100 bytes
INPUT = '{"text":"%s"}' % TEXT

# What the generator must be told to get the same streams as ours; it counts their chunks.
STREAM = {"action": ["-S", "--chunks", "100", "--path", "/stream"], "ndjson": ["-S", "--chunks", "100", "--method", "stream?stream=true"]}

# name, the generator's wire, how the server listens, the target of ours, connections, depth, stream
ROWS = [
    ("http, 1 connection", "action", "http", "http://", 1, 1, False),
    ("http, 64 connections", "action", "http", "http://", 64, 1, False),
    ("http, streams of 100 chunks, 8", "action", "http", "http://", 8, 1, True),
    ("stepflow+http, 64 connections", "stepflow-http", "stepflow", "stepflow+http://", 64, 1, False),
    ("jsonrpc, 1 connection", "ndjson", "jsonrpc", "jsonrpc://", 1, 1, False),
    ("jsonrpc, 64 connections", "ndjson", "jsonrpc", "jsonrpc://", 64, 1, False),
    ("jsonrpc, 8 connections, 16 deep", "ndjson", "jsonrpc", "jsonrpc://", 8, 16, False),
    ("jsonrpc, 1 connection, 64 deep", "ndjson", "jsonrpc", "jsonrpc://", 1, 64, False),
    ("jsonrpc, streams of 100 chunks, 8", "ndjson", "jsonrpc", "jsonrpc://", 8, 1, True),
    ("rrq, 1 connection", "rrq", "rrq", "rrq://", 1, 1, False),
    ("rrq, 64 connections", "rrq", "rrq", "rrq://", 64, 1, False),
    ("rrq, 8 connections, 16 deep", "rrq", "rrq", "rrq://", 8, 16, False),
    ("rrq, 1 connection, 64 deep", "rrq", "rrq", "rrq://", 1, 64, False),
    ("reflection, 1 at a time", "reflection", "dial", "reflection://", 1, 1, False),
    ("reflection, 64 deep", "reflection", "dial", "reflection://", 1, 64, False),
    ("jsonrpc+stdio, 1 at a time", "ndjson", "stdio", "jsonrpc+stdio:", 1, 1, False),
    ("jsonrpc+stdio, 64 deep", "ndjson", "stdio", "jsonrpc+stdio:", 1, 64, False),
    ("stepflow+stdio, 64 deep", "stepflow-stdio", "stdio", "stepflow+stdio:", 1, 64, False),
]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(command):
    said = subprocess.run(DRIVER_CPU + command, capture_output=True, text=True, timeout=120)
    if said.returncode != 0:
        sys.exit("%s: %s" % (command[0], said.stderr or said.stdout))
    return json.loads(said.stdout.strip().split("\n")[-1])


def by_generator(row, place):
    """(calls a second, CPU microseconds of the driver per call)"""
    _, wire, _, _, connections, depth, stream = row
    got = run([loadgen, "-w", wire, "-c", str(connections), "-d", str(depth), "-t", seconds, *(STREAM[wire] if stream else []), place])
    if got["errors"] or got["mismatch"]:
        sys.exit("wrong answers: %s" % got)
    return got["rps"], got["gen_us_req"]


def by_bench(row, place, command=()):
    _, _, _, target, connections, depth, stream = row
    got = run([program, "bench", target + place, "stream" if stream else "echo", INPUT, "-c", str(connections), "-d", str(depth), "-t", seconds + "s",
               "-w", "300ms", "--json", *(["--stream"] if stream else []), *command])
    if got["errors"]:
        sys.exit("errors: %s" % got)
    return got["rps"], got["cpu_seconds"] * 1e6 / got["calls"]


def serve(*args):
    return [*SERVER_CPU, program, "serve", "--demo", "--quiet", "--threads", "1", *args]


def pair(row, turn):
    """One round of both against one server; over pipes, and where the server dials, one each."""
    order = (0, 1) if turn % 2 == 0 else (1, 0)
    got = [None, None]
    how, target = row[2], row[3]
    if how == "stdio":
        command = serve("--listen", target.split("+")[0] + "=stdio")
        for i in order:
            got[i] = by_bench(row, "", ["--", *command]) if i == 0 else by_generator(row, "exec:exec " + " ".join(command))
        return got
    port = free_port()
    place = "127.0.0.1:%d" % port
    args = ("--connect", "ws://" + place) if how == "dial" else ("--listen", "%s=%s" % (how, place))
    for i in order:
        server = subprocess.Popen(serve(*args), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            if how != "dial":
                time.sleep(0.2)
            got[i] = by_bench(row, place) if i == 0 else by_generator(row, "listen:%d" % port if how == "dial" else place)
        finally:
            server.kill()
            server.wait()
    return got


print("| what | rate / the generator's, median (best / best) | calls/s of the two, best | driver's CPU per call, us, median |\n|---|---:|---:|---:|")
for row in ROWS:
    if only not in row[0]:
        continue
    got = [pair(row, turn) for turn in range(rounds)]
    ours, other = zip(*got)
    print("| %s | %.2f (%.2f) | %.0f / %.0f | %.2f / %.2f |" % (
        row[0], statistics.median(a[0] / b[0] for a, b in got), max(a[0] for a in ours) / max(b[0] for b in other),
        max(a[0] for a in ours), max(b[0] for b in other),
        statistics.median(a[1] for a in ours), statistics.median(b[1] for b in other)), flush=True)
