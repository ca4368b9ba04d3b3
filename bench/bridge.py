#!/usr/bin/env python3
"""A call through a bridge beside the same call without it, for each of the 25 pairs of wires, in one run.

Usage: bridge.py PROGRAM LOADGEN [ROUNDS [SECONDS [NEAR,NEAR... [FAR,FAR...]]]]
The anchor of a pair is the slower of its two wires, called directly (generator, server), measured just before and just after the bridge: a machine that
others use as well changes its speed from minute to minute. Through the bridge there is a second server in between, so that a call crosses two sockets in
place of one. Figures: p50 one at a time, times that of the slower wire, and times that of both wires
together (the way there is both ways, one after the other); unary calls a second with 64 under way, and chunks a second where both wires carry
chunks, of the slower wire's. Nothing is pinned: three processes share the cores as the kernel sees fit, and keep their places for
seconds, so that servers are started anew in each round and measured twice. Medians of all samples; a run that is ended early
tells of what it has.
SPDX-License-Identifier: Apache-2.0
"""
import json
import signal
import socket
import statistics
import subprocess
import sys
import time

program, loadgen = sys.argv[1], sys.argv[2]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
seconds = sys.argv[4] if len(sys.argv) > 4 else "0.6"
WIRES = ["http", "reflection", "rrq", "stepflow", "jsonrpc"]
nears = sys.argv[5].split(",") if len(sys.argv) > 5 else WIRES
fars = sys.argv[6].split(",") if len(sys.argv) > 6 else WIRES
GENERATOR = {"http": "action", "reflection": "reflection", "rrq": "rrq", "stepflow": "stepflow-http", "jsonrpc": "ndjson"}
MANY = {"reflection", "rrq", "jsonrpc"}  # many calls on one connection
TARGET = {"http": "http://127.0.0.1:%d", "rrq": "rrq://127.0.0.1:%d", "jsonrpc": "jsonrpc://127.0.0.1:%d",
          "stepflow": "stepflow+http://127.0.0.1:%d/"}
STREAMS = {"http": "--path /stream", "reflection": "--key /flow/stream", "jsonrpc": "--method stream?stream=true"}
WARM = {"reflection": "0.8"}  # a runtime whose connections last less than a second comes back ever more slowly
SAMPLES = 2  # of each kind, in a round
WANTED = {"one": 1.6, "many": 0.45, "stream": 0.5}
started = []


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(*words):
    process = subprocess.Popen([program, "serve", "--quiet", "--threads", "1", *words], stdout=subprocess.DEVNULL)
    started.append(process)
    return process


class Way:
    """Where the generator measures: a port that is dialled, or one that it listens on (reflection)."""

    def __init__(self, near, words):
        self.near, self.port = near, free_port()
        if near == "reflection":
            self.process = start("--connect", "ws://127.0.0.1:%d" % self.port, *words)
        else:
            self.process = start("--listen", "%s=127.0.0.1:%d" % (near, self.port), *words)

    def measure(self, options):
        where = ("listen:%d" if self.near == "reflection" else "127.0.0.1:%d") % self.port
        command = [loadgen, "-w", GENERATOR[self.near], *options.split(), "-u", WARM.get(self.near, "0.15"), "-t", seconds, where]
        said = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if said.returncode != 0 or not said.stdout.strip():
            sys.exit("loadgen: %s %s" % (" ".join(command), said.stderr))
        row = json.loads(said.stdout.strip().split("\n")[-1])
        if row["errors"] or row["mismatch"]:
            sys.exit("wrong answers: %s" % row)
        return row


def bridge(near, far):
    port = free_port()
    if far == "reflection":
        gateway = Way(near, ["--import", "reflection://127.0.0.1:%d" % port])
        start("--demo", "--connect", "ws://127.0.0.1:%d" % port)
    else:
        start("--demo", "--listen", "%s=127.0.0.1:%d" % (far, port))
        time.sleep(0.2)
        gateway = Way(near, ["--import", TARGET[far] % port])
    return gateway


def load(near, kind):
    if kind == "one":
        return "-c 1"
    if kind == "many":
        return "-c 1 -d 64" if near in MANY else "-c 64"
    return "-c %d -d %d -S --chunks 100 %s" % (1 if near in MANY else 4, 4 if near in MANY else 1, STREAMS[near])


def sample(way, kind):
    row = way.measure(load(way.near, kind))
    return row["p50_us"] if kind == "one" else row["rps" if kind == "many" else "chunks_s"]


def stop(processes):
    for process in processes:
        process.kill()
        process.wait()
    del started[len(started) - len(processes):]


def kinds(*wires):
    return [kind for kind in ("one", "many", "stream") if kind != "stream" or all(wire in STREAMS for wire in wires)]


def measure_pair(near, far, row):
    """Each kind on the near wire directly, through the bridge, and on the far wire directly: the ratios go to row."""
    before = len(started)
    ways = [Way(near, ["--demo"]), bridge(near, far), Way(far, ["--demo"])]
    time.sleep(0.8)
    for kind in kinds(near, far) * SAMPLES:
        first, value, last = (sample(way, kind) for way in ways)
        slower = max(first, last) if kind == "one" else min(first, last)
        row.setdefault(kind, []).append(value / slower)
        if kind == "one":
            row.setdefault("sum", []).append(value / (first + last))
    stop(started[before:])


def report(got):
    print("| near | far | p50, times the slower | p50, times both | calls/s, of the slower | chunks/s, of the slower |\n|---|---|---|---|---|---|")
    columns = ("one", "sum", "many", "stream")
    for (near, far), row in got.items():
        print("| %s | %s | %s |" % (near, far, " | ".join("%.2f" % statistics.median(row[c]) if c in row else "-" for c in columns)))
    for c, pick in zip(columns, (max, max, min, min)):
        all_of = [statistics.median(row[c]) for row in got.values() if c in row]
        if not all_of:
            continue
        line = "%s: median of the pairs %.2f, worst %.2f" % (c, statistics.median(all_of), pick(all_of))
        if c in WANTED:
            good = sum(ratio <= WANTED[c] if c == "one" else ratio >= WANTED[c] for ratio in all_of)
            line += "; %d of %d as wanted (%.2f)" % (good, len(all_of), WANTED[c])
        print(line)


def main():
    got = {}
    try:
        for turn in range(rounds):
            print("round %d of %d" % (turn + 1, rounds), file=sys.stderr, flush=True)
            for near in nears:
                for far in fars:
                    measure_pair(near, far, got.setdefault((near, far), {}))
    finally:
        report({pair: row for pair, row in got.items() if row})


signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # the servers end with us
try:
    main()
finally:
    for process in started:
        process.send_signal(signal.SIGKILL)
        process.wait()
