#!/usr/bin/env python3
"""Two of our own wires in the same run: what one costs beside the other.

Usage: pairs.py PROGRAM LOADGEN [ROUNDS [SECONDS]]
Prints a table: rate and server CPU of the second wire as a ratio of the first's (1.0 is as good), medians and best samples. The load generator is
that of bench/run. Samples are taken in turn, the order changes each round.
SPDX-License-Identifier: Apache-2.0
"""
import json
import socket
import statistics
import subprocess
import sys
import time

program, loadgen = sys.argv[1], sys.argv[2]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 9
seconds = sys.argv[4] if len(sys.argv) > 4 else "1.0"

# name, then for each of the two: (the generator's wire, how it listens)
PAIRS = [
    ("stepflow / http, c64", "-c 64", ("action", "http"), ("stepflow-http", "stepflow")),
    ("stepflow / http, c1", "-c 1", ("action", "http"), ("stepflow-http", "stepflow")),
    ("stepflow / http, 4 KB c8", "-c 8 -s 4096", ("action", "http"), ("stepflow-http", "stepflow")),
    ("stepflow / jsonrpc, stdio d1", "-c 1 -d 1", ("ndjson", "stdio"), ("stepflow-stdio", "stdio")),
    ("stepflow / jsonrpc, stdio d64", "-c 1 -d 64", ("ndjson", "stdio"), ("stepflow-stdio", "stdio")),
    ("stepflow / jsonrpc, stdio 4 KB d16", "-c 1 -d 16 -s 4096", ("ndjson", "stdio"), ("stepflow-stdio", "stdio")),
    ("stepflow / jsonrpc, stdio 1 MB d1", "-c 1 -s 1048576", ("ndjson", "stdio"), ("stepflow-stdio", "stdio")),
]
LINES = {"ndjson": "jsonrpc", "stepflow-stdio": "stepflow"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def measure(args, target, pid=None):
    command = [loadgen, *args, "-t", seconds, target] + (["--pid", str(pid)] if pid else [])
    said = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if said.returncode != 0 or not said.stdout.strip():
        sys.exit("loadgen: %s" % said.stderr)
    row = json.loads(said.stdout.strip().split("\n")[-1])
    if row["errors"] or row["mismatch"]:
        sys.exit("wrong answers: %s" % row)
    return row["rps"], row["srv_us_req"]


def sample(wire, how, options):
    args = ["-w", wire, *options.split()]
    if how == "stdio":  # both sides on the machine's choice of cores: the generator starts the server
        return measure(args, "exec:%s serve --demo --quiet --threads 1 --listen %s=stdio" % (program, LINES[wire]))
    port = free_port()
    server = subprocess.Popen(["taskset", "-c", "0", program, "serve", "--demo", "--quiet", "--threads", "1", "--listen",
                               "%s=127.0.0.1:%d" % (how, port)], stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        return measure(["-w", wire, *options.split()], "127.0.0.1:%d" % port, server.pid)
    finally:
        server.kill()
        server.wait()


print("| pair | rate, median (best) | server CPU, median | requests/s of the two, best |\n|---|---|---|---|")
for name, options, *wires in PAIRS:
    got = [[], []]
    for turn in range(rounds):
        for i in (0, 1) if turn % 2 == 0 else (1, 0):
            got[i].append(sample(*wires[i], options))
    rate = statistics.median(b[0] / a[0] for a, b in zip(*got))
    best = [max(r for r, _ in side) for side in got]
    cpu = [statistics.median(c for _, c in side) for side in got]
    print("| %s | %.2f (%.2f) | %s | %.0f, %.0f |" % (name, rate, best[1] / best[0], "%.2f" % (cpu[0] / cpu[1]) if all(cpu) else "-", *best), flush=True)
