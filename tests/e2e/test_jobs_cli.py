#!/usr/bin/env python3
"""The command line of durable jobs: every verb on both stores, exit codes, help and bad usage, workers that drain, schedules
and runners of configuration files, RRQ's own file.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import support
from support import BINARY, SLOW, Server, cli, free_ports, read_terminal, wait_until

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")


def blocks_interrupts(pid):
    """Whether a process waits for SIGINT by itself."""
    with open("/proc/%d/status" % pid) as f:
        return bool(int(re.search(r"SigBlk:\s+(\w+)", f.read()).group(1), 16) & 1 << (signal.SIGINT - 1))


class Worker(Server):
    """`everywire worker`; as Server otherwise."""

    def __init__(self, *args, demo=True, **kw):
        super().__init__(*args, demo=False, listen=(), **kw)
        self.command = [BINARY, "worker"] + (["--demo"] if demo else []) + list(args)


class Redis:
    """A redis-server on a free port of this machine, in a folder of its own."""

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        self.port = free_ports()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self.folder],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not wait_until(self.answers, 10):
            self.stop()
            raise AssertionError("redis-server does not answer")

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as s:
                s.sendall(b"PING\r\n")
                return s.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)


class Jobs:
    """The tests that hold for every store; self.store is one that is empty."""

    def run_(self, *words, code=0, **kw):
        done = cli(*words, "--store", self.store, **kw)
        self.assertEqual(done.code, code, "%s: %r" % (" ".join(words), done))
        return done

    def ask(self, *words, **kw):
        """The one JSON document that a verb prints."""
        done = self.run_(*words, **kw)
        lines = done.out.decode().splitlines()
        self.assertEqual(len(lines), 1, done)
        return json.loads(lines[0])

    def refused(self, *words, code=1):
        """The error of a verb that fails."""
        done = self.run_(*words, code=code)
        self.assertEqual(done.out, b"")
        return json.loads(done.err.decode().splitlines()[0])["error"]

    def enqueue(self, *words, **kw):
        return self.ask("job", "enqueue", *words, **kw)["job_id"]

    def burst(self, *words):
        done = self.run_("worker", "--demo", "--burst", *words, timeout=30)
        self.assertEqual(json.loads(done.out.decode().splitlines()[-1]), {"event": "ready"})
        return done

    def status(self, job):
        return self.ask("job", "show", job)["status"]

    def until(self, job, status):
        self.assertTrue(wait_until(lambda: self.status(job) == status, 15), self.ask("job", "show", job))

    # ---- a job's life

    def test_done(self):
        job = self.enqueue("greet", '{"name":"Ada"}')
        self.assertRegex(job, UUID)
        before = self.ask("job", "show", job)
        self.assertEqual((before["id"], before["function_name"], before["queue_name"], before["status"], before["params"], before["attempts"]),
                         (job, "greet", "default", "PENDING", {"name": "Ada"}, 0))
        self.burst()
        after = self.ask("job", "wait", job)
        self.assertEqual((after["status"], after["result"], after["attempts"], after["last_error"]), ("COMPLETED", "Hello, Ada!", 1, None))
        self.assertRegex(after["worker_id"], r"rrq_worker_\d+_[0-9a-f]{6}\Z")
        self.assertEqual(self.ask("job", "show", job), after)
        trace = self.ask("job", "trace", job)
        self.assertEqual([e["event"] for e in trace["events"]], ["enqueued", "started", "completed"])
        self.assertEqual(trace["job_id"], job)

    def test_input(self):
        for words, stdin in ((["-"], b'{"a": [1,\n 2]}'), (["@" + self.path("in.json", '{"a":[1,2]}')], b""), (['{"a":[1,2]}'], b"")):
            job = self.enqueue("echo", *words, stdin=stdin)
            self.assertEqual(self.ask("job", "show", job)["params"], {"a": [1, 2]})
        self.assertEqual(self.ask("job", "show", self.enqueue("echo"))["params"], {})
        self.assertEqual(self.run_("job", "enqueue", "echo", "{", code=2).out, b"")
        self.assertEqual(self.run_("job", "enqueue", "echo", "@/none", code=2).out, b"")

    def test_options(self):
        job = self.enqueue("echo", "--job-id", "my-1", "--queue", "q1", "--max-retries", "2", "--timeout", "1500ms", "--result-ttl", "1h",
                           "--delay", "1h", "--trace", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
        self.assertEqual(job, "my-1")
        shown = self.ask("job", "show", job)
        self.assertEqual((shown["queue_name"], shown["max_retries"], shown["result_ttl_seconds"]), ("q1", 2, 3600))
        self.assertIn(shown["timeout_seconds"], (1.5, 2))
        self.assertEqual(shown["trace_context"], {"traceparent": "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"})
        due = time.strptime(shown["next_scheduled_run_time"][:19], "%Y-%m-%dT%H:%M:%S")
        self.assertGreater(time.mktime(due), time.mktime(time.gmtime()) + 3000)
        self.assertEqual(self.refused("job", "enqueue", "echo", "--job-id", "my-1")["status"], "ALREADY_EXISTS")
        later = self.enqueue("echo", "--run-at", "2099-01-01T00:00:00+02:00", "--trace")
        shown = self.ask("job", "show", later)
        self.assertEqual(shown["next_scheduled_run_time"], "2098-12-31T22:00:00.000Z")
        self.assertRegex(shown["trace_context"]["traceparent"], r"00-[0-9a-f]{32}-[0-9a-f]{16}-01\Z")

    def test_keys(self):
        first = self.enqueue("echo", '{"n":1}', "--unique", "k", "--unique-ttl", "1h")
        self.assertEqual(self.ask("job", "enqueue", "echo", '{"n":2}', "--unique", "k"), {"job_id": first, "status": "existing"})
        limited = self.ask("job", "enqueue", "echo", "--rate-limit", "r", "--rate-limit-window", "1h")
        self.assertEqual(list(limited), ["job_id"])
        self.assertEqual(self.ask("job", "enqueue", "echo", "--rate-limit", "r", "--rate-limit-window", "1h"),
                         {"job_id": None, "status": "rate_limited"})
        late = self.enqueue("echo", '{"n":1}', "--debounce", "d", "--debounce-window", "1h")
        again = self.ask("job", "enqueue", "echo", '{"n":2}', "--debounce", "d", "--debounce-window", "1h")
        self.assertEqual(again["job_id"], late)
        self.assertEqual(self.ask("job", "show", late)["params"], {"n": 2})

    def test_list(self):
        ids = [self.enqueue("echo", "--queue", "q%d" % (i % 2)) for i in range(4)]
        ids.append(self.enqueue("greet"))
        all_ = self.ask("job", "list")
        self.assertEqual(sorted(j["id"] for j in all_["jobs"]), sorted(ids))
        self.assertEqual(all_["jobs"][0]["id"], ids[4])
        some = self.ask("job", "list", "--queue", "q1", "--limit", "1", "--offset", "1")
        self.assertEqual([j["id"] for j in some["jobs"]], [ids[1]])
        self.assertEqual([j["id"] for j in self.ask("job", "list", "--function", "greet", "--status", "PENDING")["jobs"]], [ids[4]])
        self.assertEqual(self.ask("job", "list", "--status", "FAILED")["jobs"], [])
        self.run_("job", "list", "--status", "WRONG", code=2)

    def test_cancel(self):
        waits = self.enqueue("echo", "--delay", "1h")
        self.assertEqual(self.ask("job", "cancel", waits), {"job_id": waits, "status": "CANCELLED"})
        self.assertEqual(self.ask("job", "wait", waits, code=1)["status"], "CANCELLED")
        self.assertEqual(self.refused("job", "cancel", waits)["status"], "FAILED_PRECONDITION")
        with Worker("--store", self.store):
            runs = self.enqueue("sleep", '{"ms":60000}')
            self.until(runs, "ACTIVE")
            self.assertEqual(self.ask("job", "cancel", runs), {"job_id": runs, "status": "CANCELLING"})
            self.assertEqual(self.ask("job", "wait", runs, "--timeout", "20s", code=1, timeout=30)["status"], "CANCELLED")

    def test_replay(self):
        job = self.enqueue("greet", '{"name":"Bo"}', "--queue", "q1")
        self.burst("--queue", "q1")
        copy = self.ask("job", "replay", job)
        self.assertEqual(copy["replayed"], job)
        shown = self.ask("job", "show", copy["job_id"])
        self.assertEqual((shown["queue_name"], shown["params"], shown["status"]), ("q1", {"name": "Bo"}, "PENDING"))
        other = self.ask("job", "replay", job, "--queue", "q2")
        self.assertEqual(self.ask("job", "show", other["job_id"])["queue_name"], "q2")

    def test_wait(self):
        job = self.enqueue("echo", "--delay", "1h")
        error = self.refused("job", "wait", job, "--timeout", "100ms", code=5)
        self.assertEqual((error["status"], error["details"]), ("DEADLINE_EXCEEDED", {"job_id": job, "status": "PENDING"}))
        p = subprocess.Popen([BINARY, "job", "wait", job, "--store", self.store], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertTrue(wait_until(lambda: blocks_interrupts(p.pid)))
        time.sleep(0.2)
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=15 * SLOW)
        self.assertEqual((p.returncode, out), (130, b""))

    def test_stream(self):
        with Worker("--store", self.store):
            done = self.run_("job", "enqueue", "count", '{"n":3,"delay_ms":20}', "--wait", "--stream", timeout=30)
            lines = [json.loads(line) for line in done.out.decode().splitlines()]
            self.assertEqual(list(lines[0]), ["job_id"])
            self.assertEqual(lines[1:4], [{"chunk": {"i": i}} for i in (1, 2, 3)])
            self.assertEqual((lines[4]["job"]["status"], lines[4]["job"]["result"]), ("COMPLETED", {"count": 3}))
            done = self.run_("job", "enqueue", "fail", '{"message":"no"}', "--max-retries", "1", "--wait", code=1, timeout=30)
            job = json.loads(done.out.decode().splitlines()[1])
            self.assertEqual((job["status"], job["last_error"], job["error"]["status"]), ("FAILED", "no", "INTERNAL"))

    def test_not_found(self):
        for words in (("job", "show", "x"), ("job", "wait", "x"), ("job", "cancel", "x"), ("job", "replay", "x"), ("job", "trace", "x"),
                      ("dlq", "inspect", "x"), ("dlq", "requeue", "x")):
            self.assertEqual(self.refused(*words)["status"], "NOT_FOUND", words)

    # ---- queues

    def test_queues(self):
        job = self.enqueue("echo", "--queue", "q1")
        self.enqueue("echo", "--queue", "q1", "--delay", "1h")
        queues = self.ask("queue", "list")["queues"]
        self.assertEqual([(q["name"], q["pending"], q["paused"]) for q in queues if q["pending"]], [("q1", 2, False)])
        self.assertEqual(self.ask("queue", "pause", "q1"), {"queue": "q1", "paused": True})
        self.burst("--queue", "q1")
        self.assertEqual(self.status(job), "PENDING")
        self.assertTrue([q for q in self.ask("queue", "list")["queues"] if q["name"] == "q1"][0]["paused"])
        self.assertEqual(self.ask("queue", "resume", "rrq:queue:q1"), {"queue": "q1", "paused": False})
        self.assertEqual([j["id"] for j in self.ask("queue", "inspect", "q1", "--limit", "1")["jobs"]], [job])
        self.burst("--queue", "rrq:queue:q1")
        self.assertEqual(self.status(job), "COMPLETED")
        stats = self.ask("queue", "stats", "--queue", "q1", "--max-scan", "0")["queues"]
        self.assertEqual([(q["name"], q["pending"], q["completed"], q["failed"]) for q in stats], [("q1", 1, 1, 0)])
        self.assertEqual(self.ask("queue", "stats", "q9")["queues"], [])
        self.assertEqual(self.ask("queue", "inspect", "q1")["total"], 1)

    def test_dead_letters(self):
        ids = [self.enqueue("fail", '{"message":"no %d"}' % i, "--max-retries", "1", "--queue", "q%d" % i) for i in (0, 1, 2)]
        self.burst("--queue", "q0", "--queue", "q1", "--queue", "q2")
        dead = self.ask("dlq", "list")
        self.assertEqual((sorted(j["id"] for j in dead["jobs"]), dead["total"]), (sorted(ids), 3))
        self.assertEqual([j["id"] for j in self.ask("dlq", "list", "--queue", "q1")["jobs"]], [ids[1]])
        self.assertEqual(self.ask("dlq", "inspect", ids[0])["last_error"], "no 0")
        stats = self.ask("dlq", "stats")
        self.assertEqual((stats["total"], stats["functions"], stats["queues"]), (3, {"fail": 3}, {"q0": 1, "q1": 1, "q2": 1}))
        self.assertEqual(self.run_("dlq", "requeue", code=2).out, b"")
        self.run_("dlq", "requeue", ids[0], "--all", code=2)
        self.assertEqual(self.ask("dlq", "requeue", "--all", "--dry-run")["requeued"], 3)
        self.assertEqual(self.ask("dlq", "list")["total"], 3)
        self.assertEqual(self.ask("dlq", "requeue", ids[0]), {"requeued": 1, "job_ids": [ids[0]]})
        again = self.ask("job", "show", ids[0])
        self.assertEqual((again["status"], again["queue_name"], again["attempts"]), ("PENDING", "q0", 0))
        self.assertEqual(self.refused("dlq", "requeue", ids[0])["status"], "FAILED_PRECONDITION")
        self.assertEqual(self.ask("dlq", "requeue", "--queue", "q1", "--target-queue", "other")["job_ids"], [ids[1]])
        self.assertEqual(self.ask("job", "show", ids[1])["queue_name"], "other")
        self.assertEqual(self.ask("dlq", "requeue", "--all", "--limit", "5")["requeued"], 1)
        self.assertEqual(self.ask("dlq", "list"), {"jobs": [], "total": 0})

    # ---- workers

    def test_health(self):
        self.assertEqual(self.ask("health", code=1), {"workers": []})
        with Worker("--store", self.store, "--id", "me", "--queue", "a", "--queue", "b", "--concurrency", "3"):
            workers = []
            self.assertTrue(wait_until(lambda: workers.extend(json.loads(cli("health", "--store", self.store).out)["workers"]) or workers, 10))
            self.assertEqual((workers[0]["worker_id"], workers[0]["concurrency_limit"], workers[0]["active_jobs"]), ("me", 3, 0))
            self.assertEqual([q.replace("rrq:queue:", "") for q in workers[0]["queues"]], ["a", "b"])
            self.run_("health")
        self.assertEqual(self.ask("health", code=1), {"workers": []})

    def test_two_workers(self):
        ids = [self.enqueue("count", '{"n":1,"delay_ms":30}', "--max-retries", "1") for _ in range(24)]
        with Worker("--store", self.store, "--concurrency", "1"), Worker("--store", self.store, "--concurrency", "1"):
            for job in ids:
                self.ask("job", "wait", job, "--timeout", "30s", timeout=40)
            jobs = self.ask("job", "list", "--limit", "100")["jobs"]
            self.assertEqual(sorted(j["id"] for j in jobs), sorted(ids))
            self.assertEqual({(j["status"], j["attempts"], j["chunks"]) for j in jobs}, {("COMPLETED", 1, 1)})
            # one each: neither can have both
            both = [self.enqueue("sleep", '{"ms":60000}') for _ in range(2)]
            for job in both:
                self.until(job, "ACTIVE")
            self.assertEqual(len({self.ask("job", "show", job)["worker_id"] for job in both}), 2)
            for job in both:
                self.ask("job", "cancel", job)
                self.ask("job", "wait", job, "--timeout", "20s", code=1, timeout=30)

    def test_drain(self):
        with Worker("--store", self.store, "--drain", "20s") as worker:
            job = self.enqueue("sleep", '{"ms":700}')
            self.until(job, "ACTIVE")
            worker.signal(signal.SIGTERM)
            self.assertEqual(worker.wait(), 0)
        self.assertEqual(self.status(job), "COMPLETED")

    def test_hand_back(self):
        with Worker("--store", self.store, "--drain", "100ms") as worker:
            job = self.enqueue("sleep", '{"ms":60000}')
            self.until(job, "ACTIVE")
            worker.signal(signal.SIGTERM)
            self.assertEqual(worker.wait(), 0)
        shown = self.ask("job", "show", job)
        self.assertEqual((shown["status"], shown["attempts"], shown["lost_workers"]), ("PENDING", 0, 0))

    def test_config(self):
        path = self.path("jobs.yaml", "jobs:\n  store: %s\n  queues: [{name: tick, priority: 2}]\n  defaults: {queue: tick, max_retries: 1}\n"
                         "  schedules: [{name: s, schedule: '* * * * * *', function: echo, params: {n: 1}}]\n" % json.dumps(self.store))
        self.assertEqual(cli("check", path).code, 0)
        done = cli("job", "enqueue", "greet", "--config", path)
        self.assertEqual(done.code, 0, done)
        first = json.loads(done.out)["job_id"]
        self.assertEqual([self.ask("job", "show", first)[k] for k in ("queue_name", "max_retries")], ["tick", 1])
        with Worker("--config", path), Worker("--config", path):
            self.ask("job", "wait", first, "--timeout", "20s", timeout=30)
            self.assertTrue(wait_until(lambda: len(self.ask("job", "list", "--function", "echo", "--status", "COMPLETED")["jobs"]) >= 2, 20))
        ticks = self.ask("job", "list", "--function", "echo", "--limit", "1000")["jobs"]
        self.assertTrue(all(j["params"] == {"n": 1} for j in ticks))
        times = [j["enqueue_time"][:19] for j in ticks]
        self.assertLessEqual(len(times), len(set(times)) + 1, "one of each time, but for a late one: %s" % times)

    def test_serve(self):
        with Server("--store", self.store) as server:
            r = server.post("/jobs/greet", b'{"name":"Ada"}')
            self.assertEqual(r.status, 202, r)
            job = r.json()["job_id"]
            self.assertEqual(self.status(job), "PENDING")
        self.burst()
        self.assertEqual(self.ask("job", "wait", job)["result"], "Hello, Ada!")

    # ---- terminals

    def terminal(self, *words, env=None):
        """What a verb prints on one."""
        leader, follower = pty.openpty()
        p = subprocess.Popen([BINARY, *words, "--store", self.store], stdin=subprocess.DEVNULL, stdout=follower, stderr=subprocess.PIPE,
                             env=dict(os.environ, TERM="xterm", **(env or {})))
        os.close(follower)
        out = read_terminal(leader, 20 * SLOW)
        p.communicate(timeout=20 * SLOW)
        return out.decode("utf-8").replace("\r\n", "\n")

    def test_tables(self):
        name = "\u00fc\u6f22" * 30
        job = self.enqueue(name, "--queue", "h\u00f6h", "--delay", "1h")
        table = self.terminal("job", "list", env={"NO_COLOR": "1"})
        self.assertRegex(table, r"\AJob ID +Function +Queue +Status +Enqueued +Duration\n")
        self.assertIn(job, table)
        self.assertIn("\u2026", table)  # cut, and still UTF-8
        self.assertIn("\033[1m", self.terminal("job", "list"))
        self.assertRegex(self.terminal("job", "show", job, env={"NO_COLOR": "1"}), r"(?m)^queue_name +h\u00f6h$")
        self.assertIn("Total: 1 pending jobs", self.terminal("queue", "list"))
        self.assertIn("No dead letters", self.terminal("dlq", "list"))
        self.assertIn("FAIL (No active workers found)", self.terminal("health"))
        self.assertIn("1 in queue", self.terminal("queue", "inspect", "h\u00f6h"))
        self.assertIn("Avg Wait", self.terminal("queue", "stats"))
        self.assertIn("enqueued", self.terminal("job", "trace", job))
        self.assertEqual(json.loads(self.terminal("job", "list", "--json"))["jobs"][0]["function_name"], name)

    def path(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o600)
        return path


class OnSqlite(Jobs, unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.store = "sqlite:" + os.path.join(self.folder.name, "jobs.db")

    def test_any_input(self):
        job = self.enqueue("echo", "[1,2.50]")
        self.burst()
        self.assertEqual(self.ask("job", "wait", job)["result"], [1, 2.5])

    def test_file(self):
        self.enqueue("echo")
        self.assertEqual(os.stat(os.path.join(self.folder.name, "jobs.db")).st_mode & 0o777, 0o600)

    # ---- which store

    def test_environment(self):
        env = {"EVERYWIRE_STORE": self.store}
        job = json.loads(cli("job", "enqueue", "echo", env=env).out)["job_id"]
        self.assertEqual(self.status(job), "PENDING")
        self.assertEqual(cli("worker", "--demo", "--burst", env=env, timeout=30).code, 0)
        self.assertEqual(self.status(job), "COMPLETED")

    def test_usual_store(self):
        env = {"EVERYWIRE_STORE": "", "XDG_STATE_HOME": self.folder.name + "/a/b", "RRQ_CONFIG": ""}
        job = json.loads(cli("job", "enqueue", "echo", env=env).out)["job_id"]
        self.store = "sqlite:%s/a/b/everywire/jobs.db" % self.folder.name
        self.assertEqual(self.status(job), "PENDING")
        env = {"EVERYWIRE_STORE": "", "XDG_STATE_HOME": "", "HOME": self.folder.name + "/home"}
        job = json.loads(cli("job", "enqueue", "echo", env=env).out)["job_id"]
        self.store = "sqlite:%s/home/.local/state/everywire/jobs.db" % self.folder.name
        self.assertEqual(self.status(job), "PENDING")

    def test_not_reached(self):
        self.store = "redis://:secret@127.0.0.1:%d" % free_ports()
        for words in (("job", "list"), ("health",), ("queue", "list"), ("dlq", "stats")):
            error = self.refused(*words, code=3)
            self.assertEqual(error["status"], "UNAVAILABLE")
            self.assertNotIn("secret", json.dumps(error))
        done = self.run_("worker", "--demo", code=3)
        self.assertNotIn(b"secret", done.err)
        self.store = "sqlite:/proc/none/jobs.db"
        self.assertEqual(self.run_("job", "list", code=3).out, b"")
        for store in ("mysql:x", "rediss://h", "sqlite:", ""):
            self.store = store
            self.run_("job", "list", code=2)
            self.run_("worker", code=2)

    # ---- usage

    def test_help(self):
        for words in (["job"], ["queue"], ["dlq"], ["health"], ["worker"], ["worker", "run"], ["job", "enqueue"], ["job", "show"], ["job", "list"],
                      ["job", "wait"], ["job", "cancel"], ["job", "replay"], ["job", "trace"], ["queue", "list"], ["queue", "stats"],
                      ["queue", "inspect"], ["queue", "pause"], ["queue", "resume"], ["dlq", "list"], ["dlq", "inspect"], ["dlq", "requeue"],
                      ["dlq", "stats"]):
            done = cli(*words, "--help")
            self.assertEqual((done.code, done.err), (0, b""), words)
            usage = "Usage: everywire " + ("worker [run]" if words[0] == "worker" else " ".join(words))
            self.assertTrue(done.out.decode().startswith(usage), (words, done.out[:80]))
            self.assertTrue(all(len(line) <= 112 for line in done.out.decode().splitlines()), words)
        self.assertEqual(cli("help", "job").out, cli("job", "--help").out)
        for noun in (b"worker", b"job", b"queue", b"dlq", b"health"):
            self.assertIn(b"  " + noun, cli("--help").out)

    def test_bad_usage(self):
        for words, said in ((["job"], "one of enqueue, show, list, wait, cancel, replay, trace"), (["job", "enqeue"], "did you mean enqueue?"),
                            (["queue", "xxxxxxx"], "want one of list, stats, inspect, pause, resume"), (["dlq", "requeu"], "did you mean requeue?"),
                            (["job", "show"], "a word is missing: ID"), (["job", "show", "a", "b"], "unexpected word b"),
                            (["job", "list", "--lmit", "3"], "did you mean --limit?"), (["job", "list", "--limit", "x"], "not a number"),
                            (["job", "wait", "a", "--timeout", "soon"], "not a duration"), (["job", "enqueue", "a", "--run-at", "x"], "not a time"),
                            (["job", "enqueue", "a", "--debounce", "k"], "--debounce needs --debounce-window DUR"),
                            (["job", "enqueue", "a", "--unique-ttl", "1s"], "--unique-ttl goes with --unique KEY"),
                            (["job", "enqueue", "a", "--stream"], "--stream goes with --wait"), (["job", "enqueue", ""], "function"),
                            (["job", "enqueue", "a", "--timeout", "0"], "--timeout must be above zero"),
                            (["job", "enqueue", "a", "--queue", ""], "--queue must not be empty"),
                            (["worker", "watch"], "does not watch files"), (["worker", "--concurrency", "0"], "not a number from 1"),
                            (["worker", "--queue", ""], "a queue has a name"), (["health", "x"], "unexpected word x")):
            done = cli(*words, "--store", self.store)
            self.assertEqual((done.code, done.out), (2, b""), (words, done))
            self.assertIn(said, done.err.decode(), words)
        done = cli("serve", "--burst")
        self.assertEqual(done.code, 2)
        self.assertIn(b"--burst: it goes with --worker", done.err)

    # ---- configuration files

    def test_bad_config(self):
        path = self.path("bad.yaml", "jobs:\n  store: x\n  schedules: [{schedule: '61 * * * *', function: f}]\n")
        done = cli("check", path)
        self.assertEqual(done.code, 1)
        lines = done.out.decode().splitlines()
        self.assertTrue(lines[0].startswith(path + ":2:10: store: not a store"), lines)
        self.assertTrue(lines[1].startswith(path + ":3:26: schedule: "), lines)
        self.assertEqual(cli("worker", "--config", path).code, 2)
        path = self.path("bad.toml", "[rrq]\nredis_dsn = 5\n[rrq.runners.a]\ntcp_prt = 1\n")
        done = cli("check", path)
        self.assertEqual((done.code, done.out.decode().splitlines()[0]), (1, path + ":2:13: redis_dsn: not a store: sqlite:PATH or redis://HOST:PORT/DB"))
        self.assertIn("unknown key tcp_prt; did you mean tcp_port?", done.out.decode())
        done = cli("job", "list", "--config", path)
        self.assertEqual(done.code, 2)
        self.assertIn(path + ":", done.err.decode())

    def test_reload(self):
        text = "jobs: {store: %s, worker: true}\n" % json.dumps(self.store)
        path = self.path("w.yaml", text)
        with Worker("--config", path) as worker:
            self.path("w.yaml", text.replace("true", "{concurrency: 3}"))
            worker.signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: "jobs has changed, which needs a restart" in worker.stderr(), 10), worker.stderr())

    def test_runner(self):
        """A program that is started as RRQ starts its runners."""
        path = self.path("w.yaml", "jobs:\n  store: %s\n  runners:\n"
                         "    demo: {port: %d, command: [%s, serve, --demo], max_in_flight: 4, env: ['*']}\n"
                         "  default_runner: demo\n" % (json.dumps(self.store), free_ports(), BINARY))
        job = self.enqueue("greet", '{"name":"Ada"}')
        named = self.enqueue("demo#echo", '{"n":1}')
        with Worker("--config", path, demo=False):
            self.assertEqual(self.ask("job", "wait", job, "--timeout", "30s", timeout=40)["result"], "Hello, Ada!")
            self.assertEqual(self.ask("job", "wait", named, "--timeout", "30s", timeout=40)["result"], {"n": 1})


class OnRedis(Jobs, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("redis-server"):
            print("SKIP: no redis-server", flush=True)
            raise unittest.SkipTest("no redis-server")
        cls.redis = Redis()

    @classmethod
    def tearDownClass(cls):
        cls.redis.stop()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with socket.create_connection(("127.0.0.1", self.redis.port), 5) as s:
            s.sendall(b"FLUSHALL\r\n")
            s.recv(16)
        self.store = "redis://127.0.0.1:%d/1" % self.redis.port

    def rrq_toml(self, **more):
        text = ('[rrq]\nredis_dsn = "%s"\ndefault_queue_name = "work"\ndefault_runner_name = "demo"\nworker_shutdown_grace_period_seconds = 1.5\n'
                'default_max_retries = 2\n'
                '[rrq.runners.demo]\ntype = "socket"\ncmd = ["%s", "serve", "--demo"]\npool_size = 1\nmax_in_flight = 4\ntcp_port = %d\n'
                '[rrq.watch]\npath = "."\n' % (more.get("dsn", self.store), BINARY, free_ports()))
        return self.path("rrq.toml", text)

    def in_folder(self, *words, env=None, timeout=30):
        """Runs it where rrq.toml is."""
        p = subprocess.run([BINARY, *words], cwd=self.folder.name, capture_output=True, timeout=timeout * SLOW,
                           env=dict(os.environ, EVERYWIRE_STORE="", **(env or {})))
        return p

    def test_rrq_toml(self):
        path = self.rrq_toml()
        self.assertEqual(cli("check", path).out, b"")
        p = self.in_folder("job", "enqueue", "greet", '{"name":"Ada"}')
        self.assertEqual(p.returncode, 0, p)
        job = json.loads(p.stdout)["job_id"]
        self.assertEqual([self.ask("job", "show", job)[k] for k in ("queue_name", "max_retries", "status")], ["work", 2, "PENDING"])
        p = self.in_folder("worker", "run", "--burst")
        self.assertEqual(p.returncode, 0, p)
        self.assertIn("rrq.toml", p.stderr.decode())
        self.assertIn("watch is not used", p.stderr.decode())
        self.assertEqual(self.ask("job", "wait", job)["result"], "Hello, Ada!")
        # elsewhere: RRQ_CONFIG, and in .env
        self.rrq_toml(dsn="redis://127.0.0.1:1")
        self.assertEqual(self.in_folder("job", "list").returncode, 3)
        p = self.in_folder("job", "show", job, env={"RRQ_REDIS_DSN": self.store})
        self.assertEqual((p.returncode, json.loads(p.stdout)["id"]), (0, job))
        self.path(".env", "OTHER=1\nRRQ_REDIS_DSN='%s'\n" % self.store)
        p = self.in_folder("job", "show", job)
        self.assertEqual((p.returncode, json.loads(p.stdout)["id"]), (0, job))
        done = cli("job", "show", job, env={"RRQ_CONFIG": path, "EVERYWIRE_STORE": "", "RRQ_REDIS_DSN": self.store})
        self.assertEqual(done.code, 0, done)

    def test_object_only(self):
        done = self.run_("job", "enqueue", "echo", "[1]", code=2)
        self.assertIn(b"object", done.err)


if __name__ == "__main__":
    support.main()
