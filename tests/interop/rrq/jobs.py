"""Our worker in RRQ's world: the real producer enqueues, `everywire worker` with RRQ's rrq.toml runs the jobs on RRQ's own Python runner or on
ours, beside the real worker on the same Redis and queue; either takes up what the other has left behind, and each command line reads what the
other side wrote.
Usage: jobs.py RRQ-PROGRAM RUNNER      (with the Python in which rrq is installed; EVERYWIRE is the program; RUNNER is runner.c, built)

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import redis
from rrq.client import RRQClient
from rrq.job import JobStatus

from support import EVERYWIRE, HERE, Marks, Process, Redis, alive, check, equal, finish, free_ports, gone, wait_until

RRQ, RUNNER = sys.argv[1:3]
PYTHON_RUNNER = [os.path.join(os.path.dirname(sys.executable), "rrq-runner"), "--settings", "handlers.settings"]
TRACE = "0af7651916cd43dd8448eb211c80319c"
MANY = int(os.environ.get("EW_MANY", "10000"))

# ---- a place for jobs ---------------------------------------------------------------------------------------------


class Site:
    """A database of Redis, a folder with an rrq.toml for each worker, a client of the real producer. Ends what it has started."""

    number = 0

    def __init__(self, server):
        Site.number += 1
        self.folder = tempfile.mkdtemp(prefix="ew-jobs-")
        self.marks = Marks(self.folder)
        self.redis = redis.Redis(port=server.port, db=Site.number, decode_responses=True)
        self.dsn = "redis://127.0.0.1:%d/%d" % (server.port, Site.number)
        self.processes = []
        self.configs = 0
        self.client = RRQClient(config={"redis_dsn": self.dsn, "correlation_mappings": {"session": "params.session"}})

    def config(self, command=(RUNNER,), name="test", pool=1, in_flight=8, more="", **settings):
        """The path of a new rrq.toml, whose runners have ports of their own."""
        self.configs += 1
        path = os.path.join(self.folder, "rrq%d.toml" % self.configs)
        values = dict({"redis_dsn": self.dsn, "default_runner_name": name, "default_poll_delay_seconds": 0.02,
                       "base_retry_delay_seconds": 0.05, "max_retry_delay_seconds": 0.1,
                       "worker_shutdown_grace_period_seconds": 5.0}, **settings)
        with open(path, "w") as f:
            f.write("# as RRQ reads it\n[rrq]\n" + "".join("%s = %s\n" % (key, json.dumps(value)) for key, value in values.items()))
            f.write("[rrq.runners.%s]\ntype = \"socket\"\ncmd = %s\ntcp_port = %d\npool_size = %d\nmax_in_flight = %d\n%s" %
                    (name, json.dumps(list(command)), free_ports(pool), pool, in_flight, more))
            f.write("env = { RRQ_MARKS = %s, PYTHONPATH = %s }\n" % (json.dumps(self.marks.path), json.dumps(HERE)))
        return path

    def ours(self, config, *args):
        process = Process(EVERYWIRE, "worker", "--config", config, *args, cwd=self.folder)
        self.processes.append(process)
        wait_until("our worker", lambda: '"ready"' in process.said() or process.process.poll() is not None)
        equal(process.process.poll(), None, "it left: " + process.said())
        return process

    def theirs(self, config):
        process = Process(RRQ, "worker", "run", "--config", config, cwd=self.folder)
        self.processes.append(process)
        wait_until("their worker", lambda: self.redis.exists(*["rrq:health:worker:" + each for each in self.workers(process)] or ["-"]))
        return process

    def workers(self, process):
        """The ids of that process as a worker."""
        return [key.rpartition(":")[2] for key in self.redis.scan_iter("rrq:health:worker:rrq_worker_%d_*" % process.pid)]

    def enqueue(self, *jobs):
        """Jobs are (function, params, options); returns their ids."""
        async def all_of_them():
            return await asyncio.gather(*[self.client.enqueue(function, dict(options, params=params))
                                          for function, params, options in jobs])
        return asyncio.run(all_of_them())

    def results(self, idents, timeout=30):
        """What the real client says of their ends."""
        async def all_of_them():
            found = []
            for ident in idents:
                found.append(await self.client.wait_for_completion(ident, timeout_seconds=timeout))
            return found
        return asyncio.run(all_of_them())

    def job(self, ident):
        return self.redis.hgetall("rrq:job:" + ident)

    def statuses(self, idents):
        pipe = self.redis.pipeline(transaction=False)
        for ident in idents:
            pipe.hget("rrq:job:" + ident, "status")
        return collections.Counter(pipe.execute())

    def runs(self):
        found = collections.defaultdict(list)
        for mark in self.marks.read("begin"):
            found[mark[2]].append(int(mark[3]))
        return found

    def clean(self):
        """Nothing waits, runs or is locked any more."""
        kept = ("rrq:job:", "rrq:dlq:", "rrq:events:", "rrq:health:", "rrq:idempotency:")
        wait_until("an empty Redis; there is %s" % self.redis.keys("*")[:10],
                   lambda: [key for key in self.redis.keys("rrq:*") if not key.startswith(kept)] == [])

    def __enter__(self):
        return self

    def __exit__(self, kind, *args):
        for process in self.processes:
            if kind:
                print("# process %d said:\n# %s" % (process.pid, process.said()[-1500:].replace("\n", "\n# ")))
            process.__exit__()
        for pid in self.marks.pids():
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def said(*command, status=0):
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    equal(done.returncode, status, "%s: %s%s" % (" ".join(command[1:]), done.stdout, done.stderr))
    return done.stdout


# ---- real producer, our worker, real runner -----------------------------------------------------------------------

PAYLOAD = {"text": "Zoë 世界 \U0001f600 \" \\ \n\t\u2028", "big": 18446744073709551615, "small": -9223372036854775808, "real": 0.1,
           "deep": [{"a": [[], {}, None, True, ""]}], "": {"empty key": []}}

# (name, how many, function, params, options, status, attempts, result, last_error)
KINDS = [
    ("echo", 100, "echo", PAYLOAD, {}, "COMPLETED", 1, PAYLOAD, None),
    ("echo by the runner's name", 20, "test#echo", {"i": 1}, {}, "COMPLETED", 1, {"i": 1}, None),
    ("no params", 5, "echo", {}, {}, "COMPLETED", 1, {}, None),
    ("asks for one retry", 20, "retry", {"times": 1, "after": 0.05, "message": "later"}, {}, "COMPLETED", 2, {"attempt": 2}, "later"),
    ("asks for a retry for ever", 5, "retry", {"after": 0.01}, {"max_retries": 3}, "FAILED", 3, None, "try again"),
    ("fails once, may not again", 20, "fail", {"message": "no ü"}, {"max_retries": 1}, "FAILED", 1, None, "no ü"),
    ("fails twice, then succeeds", 10, "fail", {"times": 2}, {}, "COMPLETED", 3, {"attempt": 3}, "it failed"),
    ("no such handler", 10, "nothing", {}, {}, "FAILED", 0, None, "No handler registered for function 'nothing'"),
    ("gives up by itself", 5, "late", {}, {}, "FAILED", 1, None, "gave up by itself"),
    ("takes a while", 10, "sleep", {"ms": 100}, {}, "COMPLETED", 1, {"slept_ms": 100}, None),
    ("a result of a megabyte", 3, "big", {"bytes": 1000000}, {}, "COMPLETED", 1, "x" * 1000000, None),
    ("runs into its timeout", 2, "sleep", {"ms": 20000}, {"job_timeout_seconds": 1}, "FAILED", 1, None, None),
]


def kinds(site, idents):
    runs = site.runs()
    at = 0
    for name, n, function, params, options, status, attempts, result, error in KINDS:
        mine, at = idents[at:at + n], at + n
        for ident, found in zip(mine, site.results(mine)):
            assert found is not None, "%s: %s has no end: %s" % (name, ident, site.job(ident))
            equal((found.status, found.result), (JobStatus(status), result), "%s: %s" % (name, site.job(ident)))
            if error or status == "COMPLETED":
                equal(found.last_error, error, name)
            else:
                assert "time" in found.last_error, found
            equal(runs[ident], list(range(1, attempts + 1)), "%s: attempts that ran" % name)
            job = site.job(ident)
            equal(int(job["current_retries"]), max(attempts, 1) - (status == "COMPLETED"), "%s: current_retries" % name)
            equal(job["result"] == "null", result is None, name)


def python_runner(server):
    with Site(server) as site:
        worker = site.ours(site.config(PYTHON_RUNNER, pool=2))
        jobs = [(function, params, options) for _, n, function, params, options, *_ in KINDS for _ in range(n)]
        idents = site.enqueue(*jobs)
        wait_until("the end of all jobs", lambda: sum(site.statuses(idents)[each] for each in ("COMPLETED", "FAILED")) == len(idents), 40)
        kinds(site, idents)
        failed = [ident for ident in idents if site.job(ident)["status"] == "FAILED"]
        equal(sorted(site.redis.lrange("rrq:dlq:default", 0, -1)), sorted(failed), "dead letters")
        site.clean()
        (ident,) = site.enqueue(("context", {"session": "s1"}, {"trace_context": {"traceparent": "00-%s-b7ad6b7169203331-01" % TRACE}}))
        context = site.results([ident])[0].result
        equal((context["job_id"], context["attempt"], context["queue_name"]), (ident, 1, "rrq:queue:default"))
        equal(context["trace_context"]["traceparent"][3:35], TRACE)
        equal(context["correlation_context"], {"session": "s1"})
        equal(context["worker_id"], site.workers(worker)[0])
        (ident,) = site.enqueue(("crash", {"times": 1}, {}))
        equal(site.results([ident])[0].result, {"attempt": 2})
        pids = site.marks.pids()
        equal(worker.end(signal.SIGTERM), 0, "exit code")
        gone(pids)


def handed_back(server):
    """SIGTERM with jobs in flight: they go back to the queue, and the real worker does them."""
    with Site(server) as site:
        config = site.config(worker_shutdown_grace_period_seconds=0.5, in_flight=4)
        worker = site.ours(config)
        idents = site.enqueue(*[("sleep", {"ms": 1500}, {}) for _ in range(4)])
        site.marks.wait(4, event="begin")
        equal(worker.end(signal.SIGTERM), 0, "exit code")
        for ident in idents:
            job = site.job(ident)
            equal((job["status"], job["current_retries"]), ("PENDING", "0"))
            assert site.redis.zscore("rrq:queue:default", ident) is not None, "not in the queue"
            equal(site.redis.exists("rrq:lock:job:" + ident), 0, "locks")
        site.theirs(site.config(in_flight=4))
        equal([found.status for found in site.results(idents)], [JobStatus.COMPLETED] * 4)


# ---- both on one queue --------------------------------------------------------------------------------------------


def left_alone(site, idents, theirs):
    """Jobs that the real worker has claimed and never gives to its runner, now and then one of ten thousand: a lost wake-up of its own."""
    try:
        wait_until("the last of them", lambda: site.statuses(idents)["COMPLETED"] == len(idents), 20)
        return set()
    except AssertionError:
        left = {ident for ident in idents if site.job(ident)["status"] != "COMPLETED"}
    begun = site.runs()
    for ident in left:
        job = site.job(ident)
        equal((job["status"], job["worker_id"], begun.get(ident)), ("ACTIVE", theirs, None), "a job that is not done")
    assert len(left) <= len(idents) // 1000, "%d jobs are not done" % len(left)
    print("# the real worker has left %d job(s) alone" % len(left))
    return left


def shared(server):
    with Site(server) as site:
        ours = site.ours(site.config(in_flight=4))
        theirs = site.theirs(site.config(in_flight=64, default_poll_delay_seconds=0.005))
        ids = {who: site.workers(process)[0] for who, process in (("ours", ours), ("theirs", theirs))}
        producer = site.client._producer
        begin = time.monotonic()
        idents = [producer.enqueue({"function_name": "echo", "params": {"i": i}, "options": {}})["job_id"] for i in range(MANY)]
        enqueued = time.monotonic()
        wait_until("the end of %d jobs" % MANY, lambda: site.redis.zcard("rrq:queue:default") == 0, 50)
        left = left_alone(site, idents, ids["theirs"])
        print("# %d jobs enqueued in %.1f s, done %.1f s later" % (MANY, enqueued - begin, time.monotonic() - enqueued))
        pipe = site.redis.pipeline(transaction=False)
        for ident in idents:
            pipe.hmget("rrq:job:" + ident, "worker_id", "result", "current_retries")
        share = collections.Counter()
        for i, (worker, result, retries) in enumerate(pipe.execute()):
            share[worker] += 1
            if idents[i] in left:
                continue
            equal((json.loads(result), retries), ({"i": i}, "0"))
        print("# ours %d, theirs %d" % (share[ids["ours"]], share[ids["theirs"]]))
        assert min(share[ids["ours"]], share[ids["theirs"]]) > MANY // 100, share
        equal(sum(share[each] for each in ids.values()), MANY)
        runs = site.runs()
        once = [ident for ident in idents if runs.get(ident) == [1]]
        equal((set(idents) - set(once), len(runs)), (left, MANY - len(left)), "jobs that did not run exactly once")
        equal(site.redis.llen("rrq:dlq:default"), 0)
        if not left:
            site.clean()
        equal(ours.end(signal.SIGTERM), 0, "exit code")
        if not left:  # with them the real one does not go in order
            equal(theirs.end(signal.SIGTERM), 0, "exit code")


def command_lines(server):
    """RRQ's command line reads what we wrote, and ours what they wrote."""
    with Site(server) as site:
        config = site.config()
        store = ("--store", site.dsn, "--json")
        worker = site.ours(config)
        done, failed = site.enqueue(("echo", {"a": 1}, {}), ("fail", {"message": "no ü"}, {"max_retries": 1}))
        (waiting,) = site.enqueue(("echo", {}, {"defer_by_seconds": 1000, "queue_name": "later"}))
        site.results([done, failed])
        text = said(RRQ, "job", "show", done, "--config", config, "--raw")
        shown = json.loads(text[text.index("{"):])
        equal((shown["status"], shown["result"], shown["function_name"]), ("COMPLETED", '{"a":1}', "echo"))
        listed = said(RRQ, "job", "list", "--config", config)
        assert all(each[:8] in listed for each in (done, failed, waiting)), listed
        listed = said(RRQ, "queue", "list", "--config", config)
        assert re.search(r"later\s+1\b", listed), listed
        assert "later" in said(RRQ, "queue", "stats", "--config", config)
        assert waiting[:8] in said(RRQ, "queue", "inspect", "later", "--config", config)
        assert failed[:8] in said(RRQ, "dlq", "list", "--config", config)
        assert "no ü" in said(RRQ, "dlq", "inspect", failed, "--config", config)
        assert site.workers(worker)[0] in said(RRQ, "check", "--config", config)
        assert "Total Duration" in said(RRQ, "job", "trace", done, "--config", config)
        site.redis.hset("rrq:job:" + failed, "job_params", '{"times":0}')
        assert "1 job" in said(RRQ, "dlq", "requeue", "--job-id", failed, "--config", config)
        equal(site.results([failed])[0].status, JobStatus.COMPLETED)
        equal(worker.end(signal.SIGTERM), 0, "exit code")
        # the other way round
        worker = site.theirs(config)
        done, failed = site.enqueue(("echo", {"a": 2}, {}), ("fail", {"message": "no"}, {"max_retries": 1}))
        site.results([done, failed])
        shown = json.loads(said(EVERYWIRE, "job", "show", done, *store))
        equal((shown["id"], shown["status"], shown["result"], shown["function_name"], shown["queue_name"]),
              (done, "COMPLETED", {"a": 2}, "echo", "default"))
        shown = json.loads(said(EVERYWIRE, "job", "show", failed, *store))
        equal((shown["status"], shown["last_error"], shown["attempts"]), ("FAILED", "no", 1))
        listed = {each["id"] for each in json.loads(said(EVERYWIRE, "job", "list", *store))["jobs"]}
        assert {done, failed, waiting} <= listed, listed
        queues = {each["name"]: each for each in json.loads(said(EVERYWIRE, "queue", "list", *store))["queues"]}
        equal(queues["later"]["pending"], 1)
        equal([each["id"] for each in json.loads(said(EVERYWIRE, "dlq", "list", *store))["jobs"]], [failed])
        assert site.workers(worker)[0] in said(EVERYWIRE, "health", *store)
        site.redis.hset("rrq:job:" + failed, "job_params", '{"times":0}')
        equal(json.loads(said(EVERYWIRE, "dlq", "requeue", failed, *store))["requeued"], 1)
        equal(site.results([failed])[0].status, JobStatus.COMPLETED)
        said(EVERYWIRE, "job", "cancel", waiting, *store)
        equal(site.job(waiting)["status"], "CANCELLED")
        assert "CANCELLED" in said(RRQ, "job", "show", waiting, "--config", config)
        made = json.loads(said(EVERYWIRE, "job", "enqueue", "echo", '{"from":"us"}', *store))["job_id"]
        equal(site.results([made])[0].result, {"from": "us"})


# ---- left behind --------------------------------------------------------------------------------------------------

# A worker counts as dead after two seconds; a job of one second is free again a second after that.
SHORT = {"worker_health_check_interval_seconds": 1.0, "worker_health_check_ttl_buffer_seconds": 1.0, "default_lock_timeout_extension_seconds": 1}


def taken_up(server, first, second):
    with Site(server) as site:
        killed = getattr(site, first)(site.config(**SHORT))
        (ident,) = site.enqueue(("sleep", {"ms": 500}, {"job_timeout_seconds": 1}))
        site.marks.wait(event="begin")
        dead = site.workers(killed)[0]
        equal(killed.end(signal.SIGKILL), -signal.SIGKILL)
        getattr(site, second)(site.config(**SHORT))
        if site.redis.ttl("rrq:health:worker:" + dead) > 3:  # ours says so for longer: as if that time had passed
            site.redis.expire("rrq:health:worker:" + dead, 1)
        (found,) = site.results([ident], 30)
        equal((found.status, found.result), (JobStatus.COMPLETED, {"slept_ms": 500}))
        equal(len(site.marks.read("begin")), 2)
        assert site.job(ident)["worker_id"] != dead
        wait_until("no active job", lambda: site.redis.keys("rrq:active:jobs:*") == [])


def main():
    print("# worker %s, runner %s, %s" % (RRQ, RUNNER, EVERYWIRE), flush=True)
    with tempfile.TemporaryDirectory(prefix="ew-redis-") as folder, Redis(folder) as server:
        check("real producer, our worker, real Python runner", python_runner, server)
        check("%d jobs, our worker and the real one on one queue: each done once" % MANY, shared, server)
        check("each command line reads what the other side wrote", command_lines, server)
        check("SIGTERM: our jobs go back, the real worker does them", handed_back, server)
        check("SIGKILL of the real worker in mid-job: ours takes it up", taken_up, server, "theirs", "ours")
        check("SIGKILL of ours in mid-job: the real worker takes it up", taken_up, server, "ours", "theirs")
    finish("rrq jobs")


main()
