#!/usr/bin/env python3
"""Our worker beside RRQ's own, in one run: the same Redis, the same jobs, the same runner program.

Usage: jobs_rrq.py RRQ-PROGRAM RUNNER [JOBS [ROUNDS]]      (with the Python in which rrq is installed; EVERYWIRE is the program; RUNNER is
tests/interop/rrq/runner.c, built: see tests/interop/README.md)

Both read the same rrq.toml: one pool of 2 processes, with 1 job in each at a time (what RRQ does if nothing is said), and with 8. Jobs a second: JOBS are
queued, then the worker is started; from the first start to the last completion, as the hashes of the jobs tell. Enqueue to start: one job at a time for an
idle worker, from the producer's enqueue_time to start_time. RRQ's worker runs as it comes (it looks every 0.1 s) and, to be fair, with a delay of 0.005 s.
Where it waits more than it works it gets fewer jobs. Medians of rounds.
SPDX-License-Identifier: Apache-2.0
"""
import collections
import datetime
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "interop", "rrq"))
import redis  # noqa: E402
from rrq.producer_ffi import RustProducer  # noqa: E402
from support import EVERYWIRE, Process, Redis, free_ports, wait_until  # noqa: E402

RRQ, RUNNER = sys.argv[1:3]
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 3000
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 3
ALONE = 60  # jobs for an idle worker
POOL = 2
IN_FLIGHT = [1, 8]
KINDS = ["rrq", "rrq 5 ms", "everywire"]


class Bench:
    def __init__(self, folder, server):
        self.folder, self.redis = folder, redis.Redis(port=server.port, decode_responses=True)
        self.dsn = "redis://127.0.0.1:%d/0" % server.port
        self.producer = RustProducer.from_config({"redis_dsn": self.dsn})

    def config(self, delay, in_flight):
        path = os.path.join(self.folder, "rrq.toml")
        with open(path, "w") as f:
            f.write('[rrq]\nredis_dsn = "%s"\ndefault_runner_name = "test"\ndefault_poll_delay_seconds = %s\n[rrq.runners.test]\n'
                    'type = "socket"\ncmd = %s\ntcp_port = %d\npool_size = %d\nmax_in_flight = %d\n'
                    % (self.dsn, delay, json.dumps([RUNNER]), free_ports(POOL), POOL, in_flight))
        return path

    def worker(self, kind, in_flight):
        path = self.config("0.005" if kind == "rrq 5 ms" else "0.1", in_flight)
        words = [EVERYWIRE, "worker"] if kind == "everywire" else [RRQ, "worker", "run"]
        return Process(*words, "--config", path, cwd=self.folder)

    def enqueue(self, i):
        return self.producer.enqueue({"function_name": "echo", "params": {"i": i}, "options": {}})["job_id"]

    def times(self, idents, *names):
        pipe = self.redis.pipeline(transaction=False)
        for ident in idents:
            pipe.hmget("rrq:job:" + ident, *names)
        return [[seconds(each) for each in row] for row in pipe.execute()]

    def done(self, idents):
        return all(status == "COMPLETED" for status in self.statuses(idents))

    def statuses(self, idents):
        pipe = self.redis.pipeline(transaction=False)
        for ident in idents:
            pipe.hget("rrq:job:" + ident, "status")
        return pipe.execute()

    def rate(self, kind, in_flight):
        self.redis.flushdb()
        n = JOBS // 20 if kind != "everywire" and in_flight == 1 else JOBS
        idents = [self.enqueue(i) for i in range(n)]
        with self.worker(kind, in_flight) as worker:
            left = worker.process.poll
            wait_until("an empty queue of " + kind, lambda: self.redis.zcard("rrq:queue:default") == 0 or left() is not None, 120)
            try:
                wait_until("the last job of " + kind, lambda: self.done(idents) or left() is not None, 15)
            except AssertionError as err:
                if kind == "everywire":
                    raise AssertionError("%s: %s" % (err, collections.Counter(self.statuses(idents)))) from None
                # RRQ's worker leaves a claimed job alone now and then, until its time is over; the runner does not have it
                print("%s left %s undone: once more" % (kind, collections.Counter(self.statuses(idents))), flush=True)
                return self.rate(kind, in_flight)
            if not self.done(idents):  # RRQ's worker does that when Redis takes more than half a second for an answer
                print("%s left with %s in the middle of it: once more" % (kind, left()), flush=True)
                return self.rate(kind, in_flight)
            times = self.times(idents, "start_time", "completion_time")
            worker.end(signal.SIGTERM)
        return n / (max(end for _, end in times) - min(start for start, _ in times))

    def delay(self, kind):
        self.redis.flushdb()
        with self.worker(kind, 8) as worker:
            wait_until("the worker", lambda: self.redis.keys("rrq:health:worker:*"))
            found = []
            for i in range(ALONE):
                time.sleep(0.05 + 0.1 * (i * 0.618 % 1))  # at no particular moment of its turn
                ident = self.enqueue(i)
                wait_until("a job", lambda: self.done([ident]))
                found.append(ident)
            times = self.times(found[5:], "enqueue_time", "start_time")
            worker.end(signal.SIGTERM)
        return 1000 * statistics.median(start - at for at, start in times)


def seconds(text):
    """Of RFC 3339 with any number of digits; where they end with the milliseconds, the end of that one."""
    date, _, rest = text.rpartition("+")[0].partition(".")
    return datetime.datetime.fromisoformat(date + "+00:00").timestamp() + float("0." + (rest or "0")) + (0.001 if len(rest) <= 3 else 0)


def main():
    for program in ("redis-server", RRQ, RUNNER, EVERYWIRE):
        if not shutil.which(program):
            sys.exit("jobs_rrq: no %s" % program)
    print("%s; %d jobs, %d processes, %d rounds" % (subprocess.run([RRQ, "--version"], capture_output=True, text=True).stdout.strip(), JOBS, POOL, ROUNDS))
    rates, delays = collections.defaultdict(list), collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="ew-bench-") as folder, Redis(folder) as server:
        bench = Bench(folder, server)
        for _ in range(ROUNDS):
            for kind in KINDS:
                for n in IN_FLIGHT:
                    rates[kind, n].append(bench.rate(kind, n))
                delays[kind].append(bench.delay(kind))
    rate = {key: statistics.median(found) for key, found in rates.items()}
    delay = {kind: statistics.median(delays[kind]) for kind in KINDS}
    print("%-12s %s %22s" % ("", "".join("%10s %10s" % ("%d a time" % n, "ours") for n in IN_FLIGHT), "enqueue to start, p50"))
    for kind in KINDS:
        print("%-12s %s %19.2f ms" % (kind, "".join("%8.0f/s %9.1fx" % (rate[kind, n], rate["everywire", n] / rate[kind, n]) for n in IN_FLIGHT),
                                      delay[kind]))
    ok = all(rate["everywire", n] >= 5 * rate["rrq", n] for n in IN_FLIGHT) and delay["everywire"] <= 5
    print("wanted: 5x the jobs a second of rrq, 5 ms: %s" % ("yes" if ok else "NO"))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
