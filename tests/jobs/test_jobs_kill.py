"""Workers, their runners and Redis are killed, and workers stopped for longer than their lease, at random moments while producers enqueue.
Afterwards: every job whose enqueue was acknowledged has come to its end, ran at least once, and its end is the one that was seen first.
Usage: test_jobs_kill.py redis|sqlite|stall      EVERYWIRE, EW_RUNNER (tests/interop/rrq/runner.c), EW_PRODUCER (librrq_producer.so);
       EW_KILLS=300 for a long run, EW_SEED=N for the same choices again

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from ports import free_ports  # noqa: E402

EVERYWIRE = os.environ["EVERYWIRE"]
RUNNER = os.environ["EW_RUNNER"]
PRODUCER = os.environ["EW_PRODUCER"]
SANITIZED = os.environ.get("EW_SANITIZE", "") != ""  # such a library cannot be loaded into Python: the program enqueues instead
KILLS = int(os.environ.get("EW_KILLS", "10"))
SEED = int(os.environ.get("EW_SEED", str(random.randrange(1 << 30))))
SLOW = 4.0 if SANITIZED else 1.0
FINAL = ("COMPLETED", "FAILED", "CANCELLED")

CONFIG = """
listen: [127.0.0.1:0]
jobs:
  store: "%(store)s"
  worker: {lease: 1s, id: %(name)s}
  runners:
    test: {port: %(port)d, command: ["%(runner)s"], processes: 2, max_in_flight: 8, env: ['*', "RRQ_MARKS=%(marks)s"]}
  default_runner: test
  retry: {base: 50ms, max: 300ms}
  poison_after: 1000
"""


def wait_until(what, condition, timeout=30):
    end = time.monotonic() + timeout * SLOW
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError("not within %d s: %s" % (timeout * SLOW, what))
        time.sleep(0.03)


def children(pid):
    found = []
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, task)) as f:
                found += [int(each) for each in f.read().split()]
    except OSError:
        pass
    return found


# ---- stores -------------------------------------------------------------------------------------------------------


class Sqlite:
    def __init__(self, folder):
        self.path = os.path.join(folder, "jobs.db")
        self.spec = "sqlite:" + self.path

    def is_free(self):
        """Whether nobody is in the middle of writing."""
        db = sqlite3.connect(self.path, timeout=0.1, isolation_level=None)
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
            return True
        except sqlite3.OperationalError:
            return False
        finally:
            db.close()

    def kill(self):
        return False

    def stop(self):
        pass


class Redis:
    """A server that writes each command to its disk before it answers."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "redis")
        os.mkdir(self.folder)
        self.port = free_ports(1)
        self.spec = "redis://127.0.0.1:%d/0" % self.port
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "yes", "--appendfsync", "always",
             "--dir", self.folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        wait_until("a Redis server", lambda: self.process.poll() is not None or self.ask("PING") == b"+PONG")
        assert self.process.poll() is None, "redis-server left"

    def ask(self, *words):
        """The first line of the answer; None: no answer."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 2) as s:
                s.sendall(b"".join([b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(w.encode()), w.encode()) for w in words]))
                return s.makefile("rb").readline().strip()
        except OSError:
            return None

    def is_free(self):
        return True

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.start()
        return True

    def stop(self):
        self.process.kill()
        self.process.wait()


# ---- workers ------------------------------------------------------------------------------------------------------


class Worker:
    def __init__(self, world, name):
        self.world, self.name, self.starts = world, name, 0
        self.path = os.path.join(world.folder, name + ".yaml")
        with open(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(CONFIG % {"store": world.store.spec, "name": name, "port": free_ports(2), "runner": RUNNER, "marks": world.marks})
        self.start()

    def start(self):
        self.starts += 1
        self.log = os.path.join(self.world.folder, "%s.%d.log" % (self.name, self.starts))
        with open(self.log, "w") as out:
            self.process = subprocess.Popen([EVERYWIRE, "worker", "--config", self.path], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=subprocess.STDOUT)
        try:
            wait_until("worker " + self.name, lambda: self.process.poll() is not None or '"ready"' in self.said())
            assert self.process.poll() is None, "worker %s left: %s" % (self.name, self.said())
        except AssertionError:
            self.process.kill()
            self.process.wait()
            raise

    def said(self):
        with open(self.log) as f:
            return f.read()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def kill_runner(self, rng):
        pids = children(self.process.pid)
        if pids:
            os.kill(rng.choice(pids), signal.SIGKILL)
        return bool(pids)

    def metrics(self):
        for line in self.said().splitlines():
            if '"listening"' in line:
                port = json.loads(line)["port"]
                with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=10) as answer:
                    return answer.read().decode()
        raise AssertionError("it does not listen: " + self.said())

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                return self.process.wait(30 * SLOW)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError("worker %s does not end: %s" % (self.name, self.said()[-2000:])) from None
        return self.process.returncode


# ---- producers ----------------------------------------------------------------------------------------------------


def cli(store, *words, timeout=60):
    done = subprocess.run([EVERYWIRE, *words, "--store", store.spec, "--json"], capture_output=True, text=True, timeout=timeout * SLOW,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


class Library:
    """librrq_producer.so; each thread its own."""

    def __init__(self, store):
        self.lib = ctypes.CDLL(PRODUCER)
        for name, args in (("new", 2), ("enqueue", 3)):
            function = getattr(self.lib, "rrq_producer_" + name)
            function.restype = ctypes.c_void_p
            function.argtypes = [ctypes.c_void_p] * (args - 2) + [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]
        self.lib.rrq_string_free.argtypes = [ctypes.c_void_p]
        self.lib.rrq_producer_free.argtypes = [ctypes.c_void_p]
        self.handle = self.lib.rrq_producer_new(json.dumps({"redis_dsn": store.spec}).encode(), None)
        assert self.handle, "no producer"

    def enqueue(self, function, params):
        """The id, once it is acknowledged; None: it was not."""
        request = {"function_name": function, "params": params, "options": {"max_retries": 1000}}
        answer = self.lib.rrq_producer_enqueue(self.handle, json.dumps(request).encode(), None)
        if not answer:
            return None
        text = ctypes.string_at(answer)
        self.lib.rrq_string_free(answer)
        return json.loads(text)["job_id"]

    def close(self):
        self.lib.rrq_producer_free(self.handle)


class Program:
    """`everywire job enqueue`, a process for each job."""

    def __init__(self, store):
        self.store = store

    def enqueue(self, function, params):
        code, out, _ = cli(self.store, "job", "enqueue", function, json.dumps(params), "--max-retries", "1000")
        return json.loads(out)["job_id"] if code == 0 else None

    def close(self):
        pass


# ---- the world ----------------------------------------------------------------------------------------------------


class World:
    def __init__(self, store):
        self.folder = tempfile.mkdtemp(prefix="ew-kill-")
        self.marks = os.path.join(self.folder, "marks")
        open(self.marks, "w").close()
        self.store = store(self.folder)
        self.rng = random.Random(SEED)
        self.lock = threading.Lock()
        self.acknowledged, self.refused, self.seen, self.problems = [], 0, {}, []
        self.over = threading.Event()
        self.workers = []

    def start(self, workers):
        for i in range(workers):
            self.workers.append(Worker(self, "worker%d" % i))

    def produce(self, number):
        rng = random.Random(SEED + 1 + number)
        try:
            producer = Program(self.store) if SANITIZED or number == 0 else Library(self.store)
            while not self.over.is_set():
                ms = rng.choice((0, 0, 0, 5, 50, 300))
                ident = producer.enqueue(*(("sleep", {"ms": ms}) if ms else ("pid", {})))
                with self.lock:
                    if ident:
                        self.acknowledged.append(ident)
                    else:
                        self.refused += 1
                time.sleep(0.02 if ident else 0.1)
            producer.close()
        except Exception as err:
            self.problems.append("producer %d: %r" % (number, err))

    def watch(self):
        """Looks at jobs now and then: what was seen to have ended must stay as it is."""
        rng = random.Random(SEED)
        while not self.over.is_set():
            with self.lock:
                ident = rng.choice(self.acknowledged) if self.acknowledged else None
            if ident:
                code, out, _ = cli(self.store, "job", "show", ident)
                if code == 0:
                    self.note(json.loads(out))
            time.sleep(0.05)

    def note(self, job):
        if job["status"] not in FINAL:
            return
        end = (job["status"], json.dumps(job["result"]), job["completion_time"], job["worker_id"])
        first = self.seen.setdefault(job["id"], end)
        if first != end:
            self.problems.append("job %s ended twice: %s, then %s" % (job["id"], first, end))

    def all_jobs(self):
        jobs, offset = {}, 0
        while True:
            code, out, err = cli(self.store, "job", "list", "--limit", "1000", "--offset", str(offset))
            assert code == 0, err
            page = json.loads(out)["jobs"]
            jobs.update((job["id"], job) for job in page)
            if len(page) < 1000:
                return jobs
            offset += len(page)

    def one_kill(self):
        worker = self.rng.choice(self.workers)
        what = self.rng.random()
        if what < 0.3 and self.store.kill():
            return "store"
        if what < 0.6 and worker.kill_runner(self.rng):
            return "runner"
        worker.kill()
        return "worker"

    def ends(self):
        """All that was acknowledged has ended."""
        jobs = self.all_jobs()
        return all(jobs.get(ident, {}).get("status") in FINAL for ident in self.acknowledged) and jobs

    def check(self):
        def late():
            jobs = self.all_jobs()
            return [(ident, jobs.get(ident, {}).get("status", "LOST")) for ident in self.acknowledged
                    if jobs.get(ident, {}).get("status") not in FINAL][:10]
        try:
            jobs = wait_until("the end of all jobs", self.ends, 60)
        except AssertionError as err:
            raise AssertionError("%s: %s" % (err, late())) from None
        with open(self.marks) as f:
            begun = {line.split()[2] for line in f if line.startswith("begin ")}
        for job in jobs.values():
            self.note(job)
        time.sleep(1.5)  # anybody who thinks that he has a job has said so by now
        for job in self.all_jobs().values():
            self.note(job)
        assert not self.problems, self.problems[:10]
        wrong = [(ident, jobs[ident]["status"], jobs[ident]["last_error"]) for ident in self.acknowledged
                 if jobs[ident]["status"] != "COMPLETED" or ident not in begun]
        assert not wrong, "did not complete, or never ran: %s" % wrong[:10]
        if isinstance(self.store, Redis):
            doubles = [ident for ident in self.acknowledged if self.store.ask("XLEN", "rrq:events:job:" + ident) != b":1"]
            assert not doubles, "more or less than one event of their end: %s" % doubles[:10]

    def close(self, failed):
        self.over.set()
        for worker in self.workers:
            try:
                worker.stop()
            except AssertionError as err:
                print(err)
            if failed:
                print("---- %s\n%s" % (worker.name, worker.said()[-2000:]))
        self.store.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- tests --------------------------------------------------------------------------------------------------------


def kill(world):
    threads = [threading.Thread(target=world.produce, args=(i,)) for i in range(3)] + [threading.Thread(target=world.watch)]
    for thread in threads:
        thread.start()
    counts = {}
    begin = time.monotonic()
    try:
        wait_until("the first jobs", lambda: len(world.acknowledged) > 5)
        for _ in range(KILLS):
            time.sleep(world.rng.uniform(0.05, 0.5))
            what = world.one_kill()
            counts[what] = counts.get(what, 0) + 1
    finally:
        world.over.set()
        for thread in threads:
            thread.join(100 * SLOW)
    world.check()
    print("%d kills %s in %.1f s: %d jobs acknowledged, %d not, none lost, none ended twice" % (
        KILLS, counts, time.monotonic() - begin, len(world.acknowledged), world.refused), flush=True)
    for worker in world.workers:
        assert worker.stop() == 0, "worker %s left with %s" % (worker.name, worker.process.returncode)


def stale(worker):
    """How many ends of that worker were refused."""
    return sum(float(line.rpartition(" ")[2]) for line in worker.metrics().splitlines() if "stale" in line and not line.startswith("#"))


def stand_still(store, process):
    """Stops it, but not in the middle of writing: it would keep a file locked until it goes on, and nobody can help that."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    if store.is_free():
        return True
    process.send_signal(signal.SIGCONT)
    return False


def stall(world):
    """A worker that stands still for longer than its lease: another one does its jobs, and what it says afterwards is refused."""
    producer = Program(world.store)
    idents = [producer.enqueue("sleep", {"ms": int(2000 * SLOW)}) for _ in range(4)]  # it must not be done before it is stopped
    assert all(idents)
    world.acknowledged += idents
    world.start(1)
    asleep = world.workers[0]

    def begun(n):
        with open(world.marks) as f:
            return sum(line.startswith("begin ") for line in f) >= n
    wait_until("the beginning", lambda: begun(4))
    wait_until("a moment to stop it in", lambda: stand_still(world.store, asleep.process))
    other = Worker(world, "other")
    world.workers.append(other)
    wait_until("the end of all jobs by another worker", world.ends, 40)
    jobs = world.all_jobs()
    assert {job["worker_id"] for job in jobs.values()} == {"other"}, jobs
    for job in jobs.values():
        world.note(job)
    asleep.process.send_signal(signal.SIGCONT)
    wait_until("four refused ends", lambda: stale(asleep) >= 4, 15)
    world.check()
    assert other.stop() == 0
    again = producer.enqueue("pid", {})  # it goes on
    world.acknowledged.append(again)
    wait_until("one more", lambda: world.ends() and True)
    assert world.all_jobs()[again]["worker_id"] == asleep.name
    print("%s: %d late ends refused" % (world.store.spec.partition(":")[0], stale(asleep)), flush=True)


def run(test, store, workers):
    world = World(store)
    failed = True
    try:
        world.start(workers)
        test(world)
        failed = False
    finally:
        world.close(failed)


def both(tests):
    """Side by side: they wait more than they work."""
    failed = []

    def one(*words):
        try:
            run(*words)
        except BaseException:
            failed.append(traceback.format_exc())
    threads = [threading.Thread(target=one, args=words) for words in tests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        sys.exit("\n".join(failed))


def main():
    mode = sys.argv[1]
    print("seed %d" % SEED, flush=True)
    stores = {"redis": [Redis], "sqlite": [Sqlite], "stall": [Redis, Sqlite]}[mode]
    if Redis in stores and not shutil.which("redis-server"):
        print("SKIP: no redis-server", flush=True)
        stores.remove(Redis)
    both([(stall, store, 0) if mode == "stall" else (kill, store, 3) for store in stores])


main()
