"""The real RRQ worker (Rust) with Redis and the real producer (Python) on one side, a runner of ours on the other: a thousand jobs of every
kind, each looked at in Redis afterwards; then timeouts, cancels, crashes and ends of the worker.
Usage: worker.py RRQ-PROGRAM RUNNER [ARGS]      (with the Python in which rrq is installed; EVERYWIRE is the program)

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import collections
import json
import os
import shutil
import signal
import sys
import tempfile
import time

import redis
from rrq.client import RRQClient

from support import EVERYWIRE, Marks, Process, Redis, alive, check, equal, finish, free_ports, gone, wait_until

RRQ = sys.argv[1]
RUNNER = sys.argv[2:]
TRACE = "0af7651916cd43dd8448eb211c80319c"
FINAL = ("COMPLETED", "FAILED")

# ---- a worker -----------------------------------------------------------------------------------------------------


class Worker:
    """A folder with rrq.toml, the worker that reads it, a client of it. The runner is called `everywire`."""

    number = 0

    def __init__(self, server, command=RUNNER, pool=2, in_flight=8, runner="", port=None, **settings):
        Worker.number += 1
        self.folder = tempfile.mkdtemp(prefix="ew-rrq-")
        self.marks = Marks(self.folder)
        self.redis = redis.Redis(port=server.port, db=Worker.number, decode_responses=True)
        self.config = os.path.join(self.folder, "rrq.toml")
        values = dict({"redis_dsn": "redis://127.0.0.1:%d/%d" % (server.port, Worker.number), "default_runner_name": "everywire",
                       "default_poll_delay_seconds": 0.02, "base_retry_delay_seconds": 0.05, "max_retry_delay_seconds": 0.1,
                       "runner_enable_inflight_cancel_hints": True, "worker_shutdown_grace_period_seconds": 5.0}, **settings)
        with open(self.config, "w") as f:
            f.write("[rrq]\n" + "".join("%s = %s\n" % (key, json.dumps(value)) for key, value in values.items()))
            f.write('[rrq.correlation_mappings]\n"session" = "params.session"\n')
            f.write("[rrq.runners.everywire]\ntype = \"socket\"\ntcp_port = %d\npool_size = %d\nmax_in_flight = %d\n%s\n" %
                    (port or free_ports(pool), pool, in_flight, runner))
            if command:
                f.write("cmd = %s\nenv = { RRQ_MARKS = %s }\n" % (json.dumps(list(command)), json.dumps(self.marks.path)))
        self.client = RRQClient(config_path=self.config)
        self.process = None

    def start(self):
        self.process = Process(RRQ, "worker", "run", "--config", self.config, cwd=self.folder)
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *args):
        if kind:
            print("# the worker said:\n# " + self.process.said()[-3000:].replace("\n", "\n# "))
        self.process.__exit__()
        for pid in self.marks.pids():
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def enqueue(self, *jobs):
        """Jobs are (function, params, options); returns their ids."""
        async def all_of_them():
            return await asyncio.gather(*[self.client.enqueue(function, dict(options, params=params))
                                          for function, params, options in jobs])
        return asyncio.run(all_of_them())

    def job(self, ident):
        return self.redis.hgetall("rrq:job:" + ident)

    def ended(self, idents, timeout=50):
        """Waits until all have ended; returns their hashes."""
        def statuses():
            pipe = self.redis.pipeline(transaction=False)
            for ident in idents:
                pipe.hget("rrq:job:" + ident, "status")
            return collections.Counter(pipe.execute())
        try:
            wait_until("the end of all jobs", lambda: sum(statuses()[status] for status in FINAL) == len(idents), timeout)
        except AssertionError as err:
            raise AssertionError("%s; they are %s" % (err, dict(statuses()))) from None
        return [self.job(ident) for ident in idents]

    def leaves(self, timeout=20):
        """Ends it with SIGTERM: it must go in order, and take its runners with it."""
        pids = self.marks.pids()
        equal(self.process.end(signal.SIGTERM, timeout), 0, "exit code")
        gone(pids)


# ---- a thousand jobs ----------------------------------------------------------------------------------------------

# One kind of job: how many; the function, its params and options by number; how each ends, how often it runs, what it leaves behind.
Kind = collections.namedtuple("Kind", "name n function params options status runs result error")


def kind(name, n, function, params, status, runs=1, result=None, error=None, **options):
    return Kind(name, n, function, params, options, status, runs, result, error)


def payload(i):
    return {"i": i, "text": "Zoë 世界 \U0001f600 \" \\ \n\t\u2028", "big": 18446744073709551615 - i, "small": -9223372036854775808 + i,
            "real": 0.1 + i, "deep": [{"a": [[], {}, None, True, "" * i]}], "": {"empty key": []}}


KINDS = [
    kind("echo", 400, "echo", payload, "COMPLETED", result=lambda i, attempt: payload(i)),
    kind("echo by the runner's name", 50, "everywire#echo", lambda i: {"i": i}, "COMPLETED", result=lambda i, attempt: {"i": i}),
    kind("no params", 20, "echo", lambda i: {}, "COMPLETED", result=lambda i, attempt: {}),
    kind("asks for one retry", 100, "retry", lambda i: {"times": 1, "after": 0.05, "message": "later, please"}, "COMPLETED", runs=2,
         result=lambda i, attempt: {"attempt": attempt}, error="later, please"),
    kind("asks for a retry for ever", 30, "retry", lambda i: {"after": 0.01}, "FAILED", runs=3, error="try again", max_retries=3),
    kind("fails once, may not again", 80, "fail", lambda i: {"message": "no %d ü" % i, "details": {"i": i}}, "FAILED",
         error=lambda i: "no %d ü" % i, max_retries=1),
    kind("fails three times", 40, "fail", lambda i: {"code": "ABORTED"}, "FAILED", runs=3, error="it failed", max_retries=3),
    kind("fails twice, then succeeds", 40, "fail", lambda i: {"times": 2}, "COMPLETED", runs=3,
         result=lambda i, attempt: {"attempt": attempt}, error="it failed"),
    kind("no such handler", 50, "nothing", lambda i: {}, "FAILED", runs=0, error="No handler registered for function 'nothing'"),
    kind("a handler that says NOT_FOUND itself", 20, "fail", lambda i: {"code": "NOT_FOUND", "message": "no such row", "times": 1},
         "COMPLETED", runs=2, result=lambda i, attempt: {"attempt": attempt}, error="no such row"),
    kind("gives up by itself", 30, "late", lambda i: {}, "FAILED", error="gave up by itself"),
    kind("takes a while", 60, "sleep", lambda i: {"ms": 10 + i}, "COMPLETED", result=lambda i, attempt: {"slept_ms": 10 + i}),
    kind("a result of a megabyte", 10, "big", lambda i: {"bytes": 1000000 + i}, "COMPLETED",
         result=lambda i, attempt: "x" * (1000000 + i)),
    kind("params of a megabyte", 10, "echo", lambda i: {"text": "ü" * 500000}, "COMPLETED",
         result=lambda i, attempt: {"text": "ü" * 500000}),
    kind("sees its context", 60, "context", lambda i: {"session": "s%d" % i}, "COMPLETED", max_retries=7,
         trace_context={"traceparent": "00-%s-b7ad6b7169203331-01" % TRACE}),
]


def check_kind(worker, which, hashes, runs):
    for i, (ident, found) in enumerate(hashes):
        def same(got, wanted, what):
            equal(got, wanted, "job %d (%s), %s" % (i, found, what) if got != wanted else "")
        same(found["status"], which.status, "status")
        same(runs[ident], list(range(1, which.runs + 1)), "attempts that ran")
        failed = which.runs if which.status == "COMPLETED" and which.runs == 0 else max(which.runs, 1)
        same(int(found["current_retries"]), failed - (which.status == "COMPLETED"), "current_retries")
        error = which.error(i) if callable(which.error) else which.error
        same(found.get("last_error"), error, "last_error")
        if which.name == "sees its context":
            check_context(ident, json.loads(found["result"]), i)
        elif which.status == "COMPLETED":
            same(json.loads(found["result"]), which.result(i, which.runs), "result")
        else:
            same(found["result"], "null", "result")


def check_context(ident, result, i):
    context = result.get("context", result)
    equal((context["job_id"], context["attempt"], context["queue_name"]), (ident, 1, "rrq:queue:default"))
    equal(context["trace_context"], {"traceparent": "00-%s-b7ad6b7169203331-01" % TRACE})
    equal(context["correlation_context"], {"session": "s%d" % i})
    assert context["worker_id"].startswith("rrq_worker_"), context
    if "trace_id" in result:
        equal((result["trace_id"], result["labels"], result["in_time"]), (TRACE, {"session": "s%d" % i}, True))


def thousand(server):
    with Worker(server) as worker:
        jobs = [(which, i) for which in KINDS for i in range(which.n)]
        jobs.sort(key=lambda job: (job[1] * 7919 + len(job[0].name)) % 1009)  # mixed, the same way each time
        state = {}

        def run():
            equal(len(jobs), 1000)
            idents = worker.enqueue(*[(which.function, which.params(i), which.options) for which, i in jobs])
            found = worker.ended(idents)
            state["hashes"] = {which.name: [None] * which.n for which in KINDS}
            for (which, i), ident, job in zip(jobs, idents, found):
                state["hashes"][which.name][i] = (ident, job)
            state["runs"] = collections.defaultdict(list)
            for mark in worker.marks.read("begin"):
                state["runs"][mark[2]].append(int(mark[3]))
        if not check("1000 jobs come to their ends", run):
            return
        for which in KINDS:
            check("%d x %s: %s after %d" % (which.n, which.name, which.status, which.runs), check_kind, worker, which,
                  state["hashes"][which.name], state["runs"])
        check("the dead letters are those that failed, each once", lambda: equal(
            sorted(worker.redis.lrange("rrq:dlq:default", 0, -1)),
            sorted(ident for jobs in state["hashes"].values() for ident, job in jobs if job["status"] == "FAILED")))
        check("nothing waits, runs or is locked any more", lambda: wait_until("an empty Redis", lambda: [
            key for key in worker.redis.keys("*") if not key.startswith(("rrq:job:", "rrq:dlq:", "rrq:events:", "rrq:health:"))] == []))
        check("a retry in an hour waits for that hour", in_an_hour, worker)
        check("two processes did it all", lambda: equal(len(worker.marks.pids()), 2))
        check("the worker ends in order, its runners with it", worker.leaves)


def in_an_hour(worker):
    now = time.time()
    (ident,) = worker.enqueue(("retry", {"after": 3600}, {}))
    wait_until("a retry", lambda: worker.job(ident)["status"] == "RETRYING")
    due = worker.redis.zscore("rrq:queue:default", ident) / 1000 - now
    assert 3590 < due < 3700, due


# ---- time and cancel ----------------------------------------------------------------------------------------------


def timeouts(server):
    """Jobs run into their timeout beside another one in the same process, which goes on: the worker sends cancels for them."""
    with Worker(server, pool=1) as worker:
        (anchor,) = worker.enqueue(("sleep", {"ms": 4000}, {}))
        pid = int(worker.marks.wait(event="begin", job=anchor)[0][4])
        late = worker.enqueue(*[("sleep", {"ms": 60000}, {"job_timeout_seconds": 1}) for _ in range(5)])
        for ident, job in zip(late, worker.ended(late)):
            equal(job["status"], "FAILED")
            assert job["last_error"].rstrip(".") in ("Job timed out after 1s", "Job execution timed out"), job
            equal(len(worker.marks.read("begin", job=ident)), 1)
            worker.marks.wait(event="cancelled", job=ident)
        (done,) = worker.ended([anchor])
        equal((done["status"], done["result"]), ("COMPLETED", '{"slept_ms":4000}'))
        (after,) = worker.enqueue(("echo", {"a": 1}, {}))
        equal(worker.ended([after])[0]["status"], "COMPLETED")
        equal(worker.marks.pids(), {pid})
        worker.leaves()


def cancel_hint(server):
    """The worker's patience ends long before the job's deadline, and other jobs keep the process in use: only a cancel frame can tell."""
    with Worker(server, pool=1, runner="response_timeout_seconds = 1.0") as worker:
        (slow,) = worker.enqueue(("sleep", {"ms": 60000}, {"max_retries": 1}))
        worker.marks.wait(event="begin", job=slow)
        beside = worker.enqueue(*[("sleep", {"ms": 500}, {"defer_by_seconds": 0.2 * i + 0.01}) for i in range(10)])
        job, *others = worker.ended([slow, *beside])
        equal((job["status"], job["last_error"]), ("FAILED", "Runner transport error: runner response timeout"))
        equal([mark[0] for mark in worker.marks.wait(2, job=slow)], ["begin", "cancelled"])
        equal({other["status"] for other in others}, {"COMPLETED"})
        equal(len(worker.marks.pids()), 1)
        worker.leaves()


def shutdown(server, hints):
    """SIGTERM while jobs run on: they are cancelled and go back to the queue, which the worker does if its runners end soon. Who answers a
    cancel before the worker has let go of the job has used up an attempt by it."""
    ways = [("PENDING", "0", "Job execution interrupted by worker shutdown. Re-queued."), ("RETRYING", "1", "Job cancelled")]
    with Worker(server, worker_shutdown_grace_period_seconds=1.0, runner_enable_inflight_cancel_hints=hints) as worker:
        idents = worker.enqueue(*[("sleep", {"ms": 60000}, {}) for i in range(4)])
        worker.marks.wait(4, event="begin")
        worker.leaves()
        equal(len(worker.marks.read("cancelled")), 4, "cancelled handlers")
        for ident in idents:
            job = worker.job(ident)
            assert (job["status"], job["current_retries"], job["last_error"]) in ways, job
            assert worker.redis.zscore("rrq:queue:default", ident) is not None, "not in the queue"


def killed(server):
    """SIGKILL of the worker: its runners notice."""
    with Worker(server) as worker:
        worker.enqueue(*[("sleep", {"ms": 60000}, {}) for i in range(8)])
        worker.marks.wait(8, event="begin")
        pids = worker.marks.pids()
        equal(len(pids), 2)
        assert all(alive(pid) for pid in pids)
        equal(worker.process.end(signal.SIGKILL), -signal.SIGKILL)
        gone(pids)
        equal(len(worker.marks.read("cancelled")), 8, "cancelled handlers")


def killed_idle(server):
    with Worker(server, pool=1, in_flight=1) as worker:
        worker.ended(worker.enqueue(("pid", {}, {})))
        equal(worker.process.end(signal.SIGKILL), -signal.SIGKILL)
        gone(worker.marks.pids())


# ---- what goes wrong ----------------------------------------------------------------------------------------------


def crash(server):
    with Worker(server, pool=1, in_flight=1) as worker:
        (ident,) = worker.enqueue(("crash", {"times": 2}, {}))
        (job,) = worker.ended([ident])
        equal((job["status"], job["result"], job["current_retries"]), ("COMPLETED", '{"attempt":3}', "2"))
        assert job["last_error"].startswith("Runner transport error: runner connection "), job
        equal(len(worker.marks.pids()), 3)
        worker.leaves()


def too_large(server):
    """A result that does not fit into a frame is an error of its job alone: the connection and what else runs on it go on."""
    with Worker(server, pool=1) as worker:
        beside, large = worker.enqueue(("sleep", {"ms": 1500}, {"max_retries": 1}), ("big", {"bytes": 17 << 20}, {"max_retries": 1}))
        slept, job = worker.ended([beside, large])
        equal((slept["status"], job["status"], job["result"]), ("COMPLETED", "FAILED", "null"))
        assert not job["last_error"].startswith("Runner transport error"), job
        equal(len(worker.marks.pids()), 1)
        worker.leaves()


def demo(server):
    """The program itself as the command of a runner, with an address of its own that the worker's overrides."""
    command = [EVERYWIRE, "serve", "--demo", "--tcp-socket", "127.0.0.1:1"]
    with Worker(server, command=command) as worker:
        demo_jobs(worker)
        equal(worker.process.end(), 0, "exit code")


def external(server):
    """A program that runs already, and speaks every wire on its port."""
    port = free_ports()
    with Process(EVERYWIRE, "serve", "--demo", "--listen", "127.0.0.1:%d" % port) as serve:
        wait_until("the server", lambda: '"ready"' in serve.said())
        with Worker(server, command=None, port=port, pool=1, runner_management_mode="external") as worker:
            demo_jobs(worker)
            equal(worker.process.end(), 0, "exit code")
        equal(serve.end(), 0, "exit code of the server")


def demo_jobs(worker):
    idents = worker.enqueue(*[("echo", {"i": i}, {}) for i in range(50)], ("greet", {"name": "Ada"}, {}), ("/flow/greet", {"name": "Bo"}, {}),
                            ("fail", {"status": "ABORTED", "message": "why"}, {"max_retries": 1}),
                            ("fail", {"message": "busy", "retry_after": 0.05}, {"max_retries": 3}),
                            ("sha256", {}, {}))
    jobs = worker.ended(idents)
    equal([json.loads(job["result"]) for job in jobs[:52]], [{"i": i} for i in range(50)] + ["Hello, Ada!", "Hello, Bo!"])
    equal([(job["status"], job["last_error"], job["current_retries"]) for job in jobs[52:54]],
          [("FAILED", "why", "1"), ("FAILED", "busy", "3")])
    equal(json.loads(jobs[54]["result"]), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a")


def main():
    print("# worker %s, runner %s" % (RRQ, " ".join(RUNNER)), flush=True)
    with tempfile.TemporaryDirectory(prefix="ew-redis-") as folder, Redis(folder) as server:
        thousand(server)
        check("timeouts beside another job", timeouts, server)
        check("a cancel frame reaches the handler", cancel_hint, server)
        check("SIGTERM with jobs in flight: cancelled and queued again", shutdown, server, True)
        check("SIGTERM with jobs in flight, and no cancel frames", shutdown, server, False)
        check("SIGKILL of the worker: its runners end", killed, server)
        check("SIGKILL of an idle worker: its runner ends", killed_idle, server)
        check("a runner that crashes is started again, the job retried", crash, server)
        check("a result over 16 MiB", too_large, server)
        check("everywire serve --demo as the runner", demo, server)
        check("everywire serve in external mode", external, server)
    finish("rrq worker")


main()
