"""Programs that are away for a moment: runtimes that left a gateway, origins of a worker that are not there yet.

SPDX-License-Identifier: Apache-2.0
"""
import http.client
import json
import os
import shutil
import signal
import tempfile
import threading
import unittest

from fake_runtime import Runtime, echo, total
from rrq_support import Rrq
from support import IN_FLIGHT, SLOW, Server, cli, free_ports, main, wait_until

LONG = 60 * SLOW  # for hangs only
AWAY = "everywireAway"


def post(port, path, body, headers=None):
    """Status, header fields (lower case) and body of one request."""
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
    try:
        conn.request("POST" if body is not None else "GET", path, None if body is None else json.dumps(body),
                     {"Content-Type": "application/json", **(headers or {})})
        answer = conn.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, json.loads(answer.read() or b"null")
    finally:
        conn.close()


def listing(server):
    return post(server.port, "/api/actions", None)[2]


def outcome(server, function, params=None):
    """What an RRQ orchestrator is answered."""
    conn = Rrq(server.port)
    try:
        conn.request(function, params or {})
        return conn.outcome(LONG)
    finally:
        conn.close()


class Case(unittest.TestCase):
    def runtime(self, server, key="/flow/mine", **kw):
        runtime = Runtime(server.port, flows={key: echo}, **kw)
        self.addCleanup(runtime.close)
        self.until(lambda: key in listing(server) and AWAY not in listing(server)[key])
        return runtime

    def leave(self, server, runtime, key="/flow/mine"):
        """The runtime goes; until all loops know."""
        runtime.close()
        self.until(lambda: all(AWAY in listing(server).get(key, {}) for _ in range(8)))

    def until(self, check):
        self.assertTrue(wait_until(check, LONG))

    def folder(self):
        path = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, path, True)
        return path

    def store(self):
        return "sqlite:" + os.path.join(self.folder(), "jobs.db")


class Runtimes(Case):
    def test_calls_fail_with_a_delay(self):
        """On every wire: UNAVAILABLE, to be tried again; never that there is no such action."""
        with Server("--threads", "2", "--limit", "reconnect_ms=50ms", demo=False) as s:
            self.leave(s, self.runtime(s, id="r"))
            for path in ("/flow/mine", "/mine", "/r:/flow/mine"):
                status, fields, body = post(s.port, path, {"data": None})
                self.assertEqual((status, fields.get("retry-after"), body["status"]), (503, "1", "UNAVAILABLE"), path)
            got = outcome(s, "mine")
            self.assertEqual((got["status"], got["retry_after_seconds"], got["error"]["code"]), ("retry", 1, "UNAVAILABLE"))
            self.assertNotIn("type", got["error"])
            for target in ("jsonrpc://127.0.0.1:%d", "stepflow+http://127.0.0.1:%d", "rrq://127.0.0.1:%d", "http://127.0.0.1:%d"):
                r = cli("call", target % s.port, "mine", "{}", timeout=LONG)
                self.assertEqual(r.error()["status"], "UNAVAILABLE", (target, r))

    def test_calls_wait(self):
        """The next runtime that offers the action takes them, also under another id."""
        with Server("--threads", "2", "--limit", "reconnect_ms=%dms" % (LONG * 1000), demo=False) as s:
            for round in range(4):
                self.leave(s, self.runtime(s, id="a%d" % round))
                answers = []
                threads = [threading.Thread(target=lambda i=i: answers.append(post(s.port, "/mine", {"data": i}))) for i in range(8)]
                for t in threads:
                    t.start()
                self.until(lambda: s.metrics().total(IN_FLIGHT) >= 8)
                again = self.runtime(s, id="b%d" % round)
                for t in threads:
                    t.join(LONG)
                self.assertEqual(sorted((a[0], a[2]["result"]) for a in answers), [(200, i) for i in range(8)])
                self.assertEqual(len(again.runs), 8)
                self.leave(s, again)

    def test_input_waits(self):
        with Server("--threads", "2", "--limit", "reconnect_ms=%dms" % (LONG * 1000), demo=False) as s:
            self.leave(s, self.runtime(s))
            answers = []
            thread = threading.Thread(target=lambda: answers.append(
                cli("call", "jsonrpc://127.0.0.1:%d" % s.port, "mine", "--input-stream", timeout=LONG,
                    stdin=b"".join(b"%d\n" % i for i in range(50)))))
            thread.start()
            self.until(lambda: s.metrics().total(IN_FLIGHT) >= 1)
            again = Runtime(s.port, flows={"/flow/mine": total})
            self.addCleanup(again.close)
            thread.join(LONG)
            self.assertEqual((answers[0].code, answers[0].lines()), (0, ["1225"]), answers)

    def test_a_caller_that_leaves(self):
        with Server("--threads", "2", "--limit", "reconnect_ms=%dms" % (LONG * 1000), demo=False) as s:
            self.leave(s, self.runtime(s))
            for wire in ("http", "jsonrpc"):
                r = cli("call", "%s://127.0.0.1:%d" % (wire, s.port), "mine", "1", "--timeout", "100ms", timeout=LONG)
                self.assertEqual(r.code, 5, r)
            self.until(lambda: s.metrics().total(IN_FLIGHT) == 0)

    def test_the_grace_time_ends(self):
        with Server("--threads", "2", "--runtime-grace", "300ms", demo=False) as s:
            self.runtime(s).close()
            self.until(lambda: listing(s) == {})
            self.until(lambda: post(s.port, "/mine", {"data": None})[0] == 404)

    def test_it_can_be_switched_off(self):
        with Server("--threads", "2", "--runtime-grace", "0", demo=False) as s:
            runtime = self.runtime(s)
            runtime.close()
            seen = []
            self.until(lambda: seen.append(listing(s)) or seen[-1] == {})
            self.assertFalse([actions for actions in seen for d in actions.values() if AWAY in d])

    def test_one_that_is_there_wins(self):
        """Another runtime has the key too: an away one takes nothing from it."""
        with Server("--threads", "2", "--limit", "reconnect_ms=50ms", demo=False) as s:
            first = self.runtime(s, id="a")
            other = Runtime(s.port, id="b", flows={"/flow/mine": lambda run: "b"})
            self.addCleanup(other.close)
            self.until(lambda: "b:/flow/mine" in listing(s))
            first.close()
            self.until(lambda: all(list(listing(s)) == ["/flow/mine"] for _ in range(8)))
            self.assertEqual(post(s.port, "/mine", {"data": None})[2], {"result": "b"})
            self.assertEqual(post(s.port, "/a:/flow/mine", {"data": None})[0], 503)

    def test_the_program_ends_meanwhile(self):
        with Server("--threads", "2", "--limit", "reconnect_ms=%dms" % (LONG * 1000), demo=False, check_exit=False) as s:
            self.leave(s, self.runtime(s))
            answers = []
            thread = threading.Thread(target=lambda: answers.append(post(s.port, "/mine", {"data": 1})))
            thread.start()
            self.until(lambda: s.metrics().total(IN_FLIGHT) >= 1)
            s.process.send_signal(signal.SIGTERM)
            thread.join(LONG)
            self.assertEqual((answers[0][0], answers[0][2]["status"]), (503, "UNAVAILABLE"))
            self.assertEqual(s.process.wait(LONG), 0)


class Jobs(Case):
    def job(self, server, id):
        return post(server.port, "/jobs/" + id, None)[2]

    def enqueue(self, server, action, query=""):
        status, _, body = post(server.port, "/jobs/%s%s" % (action, query), {"data": {}})
        self.assertEqual(status, 202, body)
        return body["job_id"]

    def assert_no_attempt(self, server, ids):
        """No attempt of these has counted. One that is claimed just now counts as running until it is handed back."""
        for job in (self.job(server, id) for id in ids):
            self.assertIn((job["status"], job["attempts"]), (("PENDING", 0), ("ACTIVE", 1)), job)

    def test_a_runtime_restarts(self):
        """Jobs wait for it without losing an attempt."""
        with Server("--threads", "2", "--store", self.store(), "--worker", demo=False) as s:
            self.leave(s, self.runtime(s, id="a"))
            ids = [self.enqueue(s, "mine", "?max_retries=1") for _ in range(20)]
            self.until(lambda: all("away" in (self.job(s, id).get("last_error") or "") for id in ids))
            self.assert_no_attempt(s, ids)
            self.runtime(s, id="b")
            for id in ids:
                self.until(lambda: self.job(s, id)["status"] == "COMPLETED")
                self.assertEqual(self.job(s, id)["attempts"], 1)

    def test_an_origin_is_down(self):
        """A worker that starts before its origin: nothing is lost, and other jobs are not held up."""
        store, port = self.store(), free_ports()
        with Server("--store", store) as producer:
            ids = [self.enqueue(producer, "count", "?max_retries=1") for _ in range(50)]
            with Server("--store", store, "--worker", "--import", "py=http://127.0.0.1:%d" % port, demo=False, ready=False) as s:
                self.until(lambda: all((self.job(producer, id).get("last_error") or "").startswith("waits until") for id in ids))
                self.assert_no_attempt(producer, ids)
                self.assertTrue(s.running())

    def test_the_origin_comes(self):
        store, port = self.store(), free_ports()
        with Server("--store", store) as producer:
            ids = [self.enqueue(producer, "greet", "?max_retries=1") for _ in range(50)]
            with Server("--store", store, "--worker", "--import", "http://127.0.0.1:%d" % port, demo=False, ready=False):
                self.until(lambda: (self.job(producer, ids[0]).get("last_error") or "").startswith("waits until"))
                with Server(listen=("127.0.0.1:%d" % port,)):
                    for id in ids:
                        self.until(lambda: self.job(producer, id)["status"] == "COMPLETED")
                        self.assertEqual(self.job(producer, id)["attempts"], 1)

    def test_an_import_moves(self):
        """SIGHUP moves it to an origin that is not there yet: no job fails meanwhile."""
        path, store, port = os.path.join(self.folder(), "everywire.yaml"), self.store(), free_ports()

        def write(origin):
            with open(path + ".new", "w") as f:
                f.write("imports: [{target: 'http://127.0.0.1:%d'}]\n" % origin)
            os.replace(path + ".new", path)

        with Server("--store", store) as one:
            write(one.port)
            with Server("--store", store, "--worker", "--config", path, demo=False) as s:
                self.until(lambda: "/flow/greet" in listing(s))
                write(port)
                s.process.send_signal(signal.SIGHUP)
                self.until(lambda: "127.0.0.1:%d does not say what it has" % port in s.stderr())
                ids = [self.enqueue(one, "greet", "?max_retries=1") for _ in range(20)]
                self.until(lambda: all(self.job(s, id).get("last_error") or self.job(s, id)["status"] == "COMPLETED" for id in ids))
                with Server(listen=("127.0.0.1:%d" % port,)):
                    for id in ids:
                        self.until(lambda: self.job(s, id)["status"] not in ("PENDING", "ACTIVE"))
                        self.assertEqual(self.job(s, id)["status"], "COMPLETED", self.job(s, id))

    def test_an_action_that_never_was(self):
        """It fails when its attempts are used up, and says why."""
        path = os.path.join(self.folder(), "everywire.yaml")
        with open(path, "w") as f:
            f.write("jobs: {retry: {base: 10ms}}\n")
        store = self.store()
        with Server("--store", store, "--worker", "--config", path) as s:
            for retries in (1, 3):
                out = json.loads(cli("job", "enqueue", "nothing", "{}", "--max-retries", str(retries), "--store", store, "--json").out)
                self.until(lambda: self.job(s, out["job_id"])["status"] == "FAILED")
                job = self.job(s, out["job_id"])
                self.assertEqual((job["attempts"], job["last_error"]), (retries, "no such action: nothing"))

    def test_final_statuses_of_a_runner(self):
        """RRQ gives up a job at once only for one type of error."""
        for args, types in (((), {"INVALID_ARGUMENT": True, "UNIMPLEMENTED": True, "NOT_FOUND": False, "INTERNAL": False}),
                            (("--final-status", "NOT_FOUND,INTERNAL"), {"INVALID_ARGUMENT": False, "NOT_FOUND": True, "INTERNAL": True}),
                            (("--final-status", "none"), {"INVALID_ARGUMENT": False, "UNIMPLEMENTED": False})):
            with Server(*args) as s:
                for status, final in types.items():
                    got = outcome(s, "fail", {"status": status, "message": "no", "details": {"a": 1}})
                    self.assertEqual((got["status"], got["error"]["code"], got["error"]["message"], got["error"]["details"]),
                                     ("error", status, "no", {"a": 1}))
                    self.assertEqual(got["error"].get("type"), "handler_not_found" if final else None)
                    if status == "NOT_FOUND" and final:
                        continue  # for our own caller, too, it is now a handler that is not there
                    r = cli("call", "rrq://127.0.0.1:%d" % s.port, "fail", '{"status":"%s","details":{"a":1}}' % status)
                    self.assertEqual((r.error()["status"], r.error()["details"]), (status, {"a": 1}))
                got = outcome(s, "fail", {"status": "INVALID_ARGUMENT", "retry_after": 2})
                self.assertEqual((got["status"], got["retry_after_seconds"]), ("retry", 2))

    def test_final_statuses(self):
        """What cannot get better is not tried again; which statuses these are can be chosen."""
        fail = '{"status":"%s","message":"no"}'
        for args, status, attempts in (((), "INVALID_ARGUMENT", 1), ((), "UNIMPLEMENTED", 1), ((), "NOT_FOUND", 2),
                                       (("--final-status", "NOT_FOUND"), "NOT_FOUND", 1),
                                       (("--final-status", "none"), "INVALID_ARGUMENT", 2)):
            path = os.path.join(self.folder(), "everywire.yaml")
            with open(path, "w") as f:
                f.write("jobs: {retry: {base: 10ms}}\n")
            store = self.store()
            with Server("--store", store, "--worker", "--config", path, *args) as s:
                out = json.loads(cli("job", "enqueue", "fail", fail % status, "--max-retries", "2", "--store", store, "--json").out)
                self.until(lambda: self.job(s, out["job_id"])["status"] == "FAILED")
                job = self.job(s, out["job_id"])
                self.assertEqual((job["attempts"], job["error"]["status"]), (attempts, status), job)


if __name__ == "__main__":
    main()
