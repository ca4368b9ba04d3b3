"""Jobs over HTTP: POST /jobs/<action>, GET and DELETE /jobs/<id>, GET /jobs/<id>/stream, GET /jobs.

SPDX-License-Identifier: Apache-2.0
"""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import support

PROGRAM = os.environ.get("EW_JOBS_SERVER")
WAIT = 20 * support.SLOW


class Program:
    """The jobs_server, which listens on a free port and says so."""

    def __init__(self, store, role="worker", *args):
        self.stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen([PROGRAM, store, role, "--listen", "127.0.0.1:0", "--threads", "2", *args],
                                        stdout=subprocess.PIPE, stderr=self.stderr, stdin=subprocess.DEVNULL)
        self.port = None
        self.events = []
        for line in self.process.stdout:
            event = json.loads(line)
            self.events.append(event)
            if event["event"] == "listening":
                self.port = event["port"]
            if event["event"] == "ready":
                break
        if self.port is None or self.events[-1]["event"] != "ready":
            raise AssertionError("it did not start: " + self.log())

    def log(self):
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace")

    def stop(self, expect=0):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(WAIT)
        self.process.stdout.close()
        log = self.log()
        self.stderr.close()
        for mark in support.SANITIZER_MARKS:
            if mark in log:
                raise AssertionError(log)
        if code != expect:
            raise AssertionError("it ended with %s: %s" % (code, log))

    def ask(self, method, path, body=None, headers=None):
        """One request; the status, the header fields (lower case) and the body, read as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        fields = dict(headers or {})
        if body is not None and "content-type" not in {k.lower() for k in fields}:
            fields["Content-Type"] = "application/json"
        connection.request(method, path, body=body, headers=fields)
        answer = connection.getresponse()
        text = answer.read()
        head = {k.lower(): v for k, v in answer.getheaders()}
        connection.close()
        return answer.status, head, json.loads(text)

    def enqueue(self, action, params="{}", query=""):
        status, head, body = self.ask("POST", "/jobs/%s%s" % (action, query), params)
        if status != 202:
            raise AssertionError((status, body))
        return body["job_id"]

    def stream_text(self, job, headers=None):
        """The status and the body of a stream."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        connection.request("GET", "/jobs/%s/stream" % job, headers=headers or {})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status == 200:
            assert answer.getheader("content-type") == "text/event-stream"
            assert all(byte < 0x80 for byte in text), "a stream is ASCII"
        connection.close()
        return answer.status, text.decode()

    def stream(self, job, headers=None):
        """All events of a stream, as (id, event, value)."""
        status, text = self.stream_text(job, headers)
        return parse_events(text) if status == 200 else (status, json.loads(text) if text else None)


def parse_events(text):
    """As the HTML standard says: (last event id, event, value) of each event that has data."""
    events, last, event, data = [], "", "", []
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "id":
            last = value
        elif name == "event":
            event = value
        elif name == "data":
            data.append(value)
        elif line == "":
            if data:
                events.append((last, event or "message", json.loads("\n".join(data))))
            event, data = "", []
        else:
            assert name in ("", "retry"), "unknown field in %r" % line
    return events


class Redis:
    """A server of its own, on a free port of this machine."""

    def __init__(self, folder):
        self.folder = folder
        self.port = support.free_ports()
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "yes", "--dir", self.folder],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def listens():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        if not support.wait_until(listens, 10):
            raise AssertionError("redis-server does not listen")

    def stop(self):
        self.process.terminate()
        self.process.wait(WAIT)


@unittest.skipUnless(PROGRAM, "EW_JOBS_SERVER is not set")
class JobsTest(unittest.TestCase):
    kind = "sqlite"

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="ew-jobs-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.program = Program(cls.open_store())

    @classmethod
    def open_store(cls):
        return "sqlite:" + os.path.join(cls.folder, "jobs.db")

    @classmethod
    def tearDownClass(cls):
        cls.program.stop()

    def wait(self, job):
        status, _, body = self.program.ask("GET", "/jobs/%s?wait=20s" % job)
        self.assertEqual(status, 200)
        return body

    def test_says_that_it_works(self):
        kinds = [event["event"] for event in self.program.events]
        self.assertEqual(kinds, ["listening", "working", "ready"])
        self.assertEqual(self.program.events[1]["queues"], ["default"])
        self.assertEqual(self.program.events[1]["store"], self.kind)

    def test_enqueue_and_wait(self):
        status, head, body = self.program.ask("POST", "/jobs/echo", '{"a":1}')
        self.assertEqual(status, 202)
        self.assertEqual(body["status"], "enqueued")
        self.assertEqual(head["location"], "/jobs/" + body["job_id"])
        job = self.wait(body["job_id"])
        self.assertEqual((job["status"], job["result"], job["attempts"]), ("COMPLETED", {"a": 1}, 1))
        status, _, again = self.program.ask("GET", "/jobs/" + body["job_id"])
        self.assertEqual((status, again["result"]), (200, {"a": 1}))

    def test_keys_and_empty_bodies(self):
        job = self.wait(self.program.enqueue("flow/echo", ""))
        self.assertEqual((job["function_name"], job["result"]), ("/flow/echo", {}))

    def test_options_by_query_and_header(self):
        status, _, body = self.program.ask(
            "POST", "/jobs/echo?queue=later%20on&delay=1h&id=by%2Fquery", "{}",
            {"Everywire-Job-Max-Retries": "2", "Everywire-Job-Timeout": "1500ms", "Everywire-Job-Result-TTL": "10m"})
        self.assertEqual((status, body["job_id"]), (202, "by/query"))
        status, _, job = self.program.ask("GET", "/jobs/by%2Fquery")
        self.assertEqual(status, 200)
        self.assertEqual((job["queue_name"], job["status"], job["max_retries"]), ("later on", "PENDING", 2))
        self.assertEqual((job["timeout_seconds"], job["result_ttl_seconds"]), (1.5, 600))
        status, _, body = self.program.ask("POST", "/jobs/echo?run_at=2199-01-01T00:00:00Z&queue=q", "{}")
        _, _, job = self.program.ask("GET", "/jobs/" + body["job_id"])
        self.assertTrue(job["next_scheduled_run_time"].startswith("2199-01-01T00:00:00"), job)

    def test_size_of_the_input(self):
        """A job that is accepted fits a call on every wire, so its limit is that of a payload, not of a body."""
        program = Program("sqlite:" + os.path.join(self.folder, "size.db"), "worker", "--limit", "frame_bytes=8000")
        try:
            for size, wanted in ((7000, 202), (7001, 413), (8000, 413)):
                status, _, body = program.ask("POST", "/jobs/echo", json.dumps({"a": "x" * (size - 9)}, separators=(",", ":")).ljust(size))
                self.assertEqual(status, wanted, (size, body))
            self.assertIn("frame_bytes", program.ask("POST", "/jobs/echo", "{}".ljust(7001))[2]["message"])
        finally:
            program.stop()

    def test_bad_requests(self):
        for path, body, wanted in [("echo?delay=soon", "{}", "delay"), ("echo?dely=1s", "{}", "dely"),
                                   ("echo?max_retries=-1", "{}", "max_retries"), ("echo", "{", ""),
                                   ("echo?rate_limit=k", "{}", "window"), ("echo?run_at=x", "{}", "run_at"),
                                   ("echo?id=%zz", "{}", "id"), ("echo?id=a&id=b", "{}", "id")]:
            status, _, answer = self.program.ask("POST", "/jobs/" + path, body)
            self.assertEqual((status, answer["code"], answer["status"]), (400, 400, "INVALID_ARGUMENT"), path)
            self.assertIn(wanted, answer["message"])
        self.assertEqual(self.program.ask("POST", "/jobs/echo", "{}", {"Content-Type": "text/plain"})[0], 415)
        self.assertEqual(self.program.ask("POST", "/jobs/echo", "{}", {"Host": "evil.example"})[0], 403)
        self.assertEqual(self.program.ask("GET", "/jobs", headers={"Origin": "http://evil.example"})[0], 403)
        self.assertEqual(self.program.ask("POST", "/jobs", "{}")[0], 405)
        self.assertEqual(self.program.ask("PUT", "/jobs/echo", "{}")[0], 405)
        self.assertEqual(self.program.ask("GET", "/jobs/nobody")[0], 404)
        self.assertEqual(self.program.ask("DELETE", "/jobs/nobody")[0], 404)
        self.assertEqual(self.program.ask("GET", "/jobs/" + "x" * 600)[0], 404)
        self.assertEqual(self.program.stream("nobody")[0], 404)

    def test_an_unknown_action(self):
        self.assertEqual(self.program.ask("POST", "/jobs/nothing", "{}")[0], 404)
        # on another queue another worker may have it
        self.assertEqual(self.program.ask("POST", "/jobs/nothing?queue=theirs", "{}")[0], 202)

    def test_keys_that_guard(self):
        first = self.program.enqueue("echo", "{}", "?unique=u1&queue=q")
        status, _, body = self.program.ask("POST", "/jobs/echo?unique=u1&queue=q", "{}")
        self.assertEqual((status, body), (202, {"job_id": first, "status": "existing"}))
        self.program.enqueue("echo", "{}", "?rate_limit=r1&rate_limit_window=90s")
        status, head, body = self.program.ask("POST", "/jobs/echo?rate_limit=r1&rate_limit_window=90s", "{}")
        self.assertEqual((status, body["job_id"], body["status"]), (429, None, "rate_limited"))
        self.assertEqual(head["retry-after"], "90")
        self.program.enqueue("echo", "{}", "?id=mine&queue=q")
        status, _, body = self.program.ask("POST", "/jobs/echo?id=mine&queue=q", "{}")
        self.assertEqual((status, body["status"]), (409, "ALREADY_EXISTS"))
        first = self.program.enqueue("echo", '{"n":1}', "?debounce=d1&debounce_window=1h&queue=q")
        status, _, body = self.program.ask("POST", "/jobs/echo?debounce=d1&debounce_window=1h&queue=q", '{"n":2}')
        self.assertEqual((status, body), (202, {"job_id": first, "status": "debounced"}))

    def test_the_trace_goes_on(self):
        trace = "0af7651916cd43dd8448eb211c80319c"
        status, _, body = self.program.ask("POST", "/jobs/trace", "{}",
                                           {"traceparent": "00-%s-b7ad6b7169203331-01" % trace})
        job = self.wait(body["job_id"])
        self.assertEqual(job["result"], trace)

    def test_cancel(self):
        waiting = self.program.enqueue("echo", "{}", "?delay=1h")
        status, _, body = self.program.ask("DELETE", "/jobs/" + waiting)
        self.assertEqual((status, body["status"]), (200, "CANCELLED"))
        status, _, body = self.program.ask("DELETE", "/jobs/" + waiting)
        self.assertEqual((status, body["status"]), (409, "CANCELLED"))
        running = self.program.enqueue("forever")
        self.assertTrue(support.wait_until(
            lambda: self.program.ask("GET", "/jobs/" + running)[2]["status"] == "ACTIVE", 20))
        status, _, body = self.program.ask("DELETE", "/jobs/" + running)
        self.assertEqual((status, body["status"]), (202, "CANCELLING"))
        self.assertEqual(self.wait(running)["status"], "CANCELLED")
        events = self.program.stream(running)
        self.assertEqual(events[-1], ("end", "error", {"status": "CANCELLED", "message": events[-1][2]["message"]}))

    def test_a_wait_has_an_end(self):
        waiting = self.program.enqueue("echo", "{}", "?delay=1h")
        status, _, job = self.program.ask("GET", "/jobs/%s?wait=50ms" % waiting)
        self.assertEqual((status, job["status"]), (200, "PENDING"))

    def test_stream_joins_and_replays(self):
        job = self.program.enqueue("count", '{"n":20,"ms":10}')
        events = self.program.stream(job)
        self.assertEqual([value["i"] for _, _, value in events[:-1]], list(range(1, 21)))
        self.assertEqual([event[:2] for event in events[:-1]], [(str(i), "chunk") for i in range(1, 21)])
        self.assertEqual(events[0][2]["text"], "ä")
        self.assertEqual(events[-1], ("end", "result", {"counted": 20}))
        self.assertEqual(self.program.stream(job), events)  # the job has ended; its chunks are kept
        rest = self.program.stream(job, {"Last-Event-ID": "15"})
        self.assertEqual([event[0] for event in rest], ["16", "17", "18", "19", "20", "end"])
        self.assertEqual(self.program.stream(job, {"Last-Event-ID": "x"})[0], 400)
        status, text = self.program.stream_text(job)
        self.assertTrue(text.startswith("retry: 1000\nid: 1\nevent: chunk\ndata: "), text[:100])
        self.assertEqual(text.count("retry:"), 1)

    def test_a_reader_that_comes_back_after_the_end(self):
        for action, kind in (("echo", "result"), ("fail", "error")):
            with self.subTest(action):
                job = self.program.enqueue(action, "{}", "?max_retries=1")
                (last, event, _), = self.program.stream(job)
                self.assertEqual(event, kind)
                for _ in range(2):
                    self.assertEqual(self.program.stream_text(job, {"Last-Event-ID": last}), (204, ""))

    def test_a_reader_that_is_cut_sees_everything_once(self):
        """What EventSource does: the connection is lost after every event, and the next one names the last event."""
        job = self.program.enqueue("count", '{"n":12,"ms":5}')
        seen, last = [], ""
        for _ in range(100):
            connection = http.client.HTTPConnection("127.0.0.1", self.program.port, timeout=WAIT)
            connection.request("GET", "/jobs/%s/stream" % job, headers={"Last-Event-ID": last} if last else {})
            answer = connection.getresponse()
            if answer.status == 204:
                connection.close()
                break
            text = b""
            while not (text.endswith(b"\n\n") and b"data:" in text):
                line = answer.readline()
                self.assertTrue(line, "the stream ended before an event: %r" % text)
                text += line
            connection.close()
            event, = parse_events(text.decode())
            seen.append(event)
            last = event[0]
        self.assertEqual([event[0] for event in seen], [str(i) for i in range(1, 13)] + ["end"])
        self.assertEqual(seen[-1], ("end", "result", {"counted": 12}))

    def test_many_chunks(self):
        job = self.program.enqueue("count", '{"n":900,"ms":0}')
        events = self.program.stream(job)
        ids = [int(event[0]) for event in events[:-1]]
        self.assertEqual(ids, sorted(ids))
        self.assertEqual(ids[-1], 900)
        self.assertEqual(events[-1][2], {"counted": 900})

    def test_a_stream_of_a_failure(self):
        job = self.program.enqueue("fail", "{}", "?max_retries=2")
        events = self.program.stream(job)
        self.assertEqual(events, [("end", "error", {"status": "PERMISSION_DENIED", "message": "no", "details": {"why": 1}})])
        self.assertEqual(self.wait(job)["attempts"], 2)

    def test_many_wait_at_once(self):
        job = self.program.enqueue("count", '{"n":10,"ms":30}')
        got = []

        def listen(i):
            got.append(self.program.stream(job)[-1] if i % 2 else self.wait(job)["result"])

        threads = [threading.Thread(target=listen, args=(i,)) for i in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        self.assertEqual(len(got), 40)
        self.assertTrue(all(g in (("end", "result", {"counted": 10}), {"counted": 10}) for g in got), got)

    def test_who_leaves_cancels_nothing(self):
        job = self.program.enqueue("count", '{"n":20,"ms":20}')
        connection = http.client.HTTPConnection("127.0.0.1", self.program.port, timeout=WAIT)
        connection.request("GET", "/jobs/%s/stream" % job)
        answer = connection.getresponse()
        answer.fp.readline()
        connection.sock.close()
        connection.close()
        self.assertEqual(self.wait(job)["status"], "COMPLETED")

    def test_list(self):
        for i in range(3):
            self.program.enqueue("echo", '{"i":%d}' % i, "?queue=listed&delay=1h")
            time.sleep(0.005)  # the order is by milliseconds
        status, _, body = self.program.ask("GET", "/jobs?queue=listed&status=PENDING&limit=2")
        self.assertEqual(status, 200)
        self.assertEqual([job["params"]["i"] for job in body["jobs"]], [2, 1])
        self.assertEqual(self.program.ask("GET", "/jobs?status=DONE")[0], 400)
        self.assertEqual(self.program.ask("GET", "/jobs?limit=100000")[0], 400)

    def test_metrics(self):
        self.wait(self.program.enqueue("echo"))

        def completed():
            connection = http.client.HTTPConnection("127.0.0.1", self.program.port, timeout=WAIT)
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
            connection.close()
            numbers = dict(line.split(" ") for line in text.splitlines() if line.startswith("everywire_jobs_"))
            return int(numbers["everywire_jobs_completed_total"]) > 0 and int(numbers["everywire_jobs_claimed_total"]) > 0

        self.assertTrue(support.wait_until(completed, 10))


class JobsOnRedisTest(JobsTest):
    kind = "redis"

    @classmethod
    def open_store(cls):
        if not shutil.which("redis-server"):
            print("SKIP: no redis-server", flush=True)
            raise unittest.SkipTest("no redis-server")
        cls.redis = Redis(cls.folder)
        cls.addClassCleanup(cls.redis.stop)
        return "redis://127.0.0.1:%d/0" % cls.redis.port

    def test_a_store_that_is_away(self):
        kept = self.program.enqueue("echo", '{"kept":1}', "?delay=1h")
        self.redis.stop()
        status, _, answer = self.program.ask("POST", "/jobs/echo", "{}")
        self.assertEqual((status, answer["status"]), (503, "UNAVAILABLE"))
        self.redis.start()
        self.assertTrue(support.wait_until(lambda: self.program.ask("GET", "/jobs/" + kept)[0] == 200, 20))
        self.assertEqual(self.wait(self.program.enqueue("echo", '{"again":1}'))["result"], {"again": 1})

    def test_params_are_objects(self):
        status, _, answer = self.program.ask("POST", "/jobs/echo", "[1]")
        self.assertEqual(status, 400)
        self.assertIn("object", answer["message"])


@unittest.skipUnless(PROGRAM, "EW_JOBS_SERVER is not set")
class EndsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="ew-jobs-")
        self.store = "sqlite:" + os.path.join(self.folder, "jobs.db")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def start(self, *words):
        program = Program(self.store, *words)
        self.addCleanup(lambda: program.process.poll() is None and program.process.kill())
        return program

    def test_a_producer_and_a_worker(self):
        producer = self.start("producer")
        job = producer.enqueue("elsewhere")  # it does not know who has what
        job = producer.enqueue("echo", '{"x":1}')
        worker = self.start("worker")
        status, _, body = producer.ask("GET", "/jobs/%s?wait=20s" % job)
        self.assertEqual((status, body["result"]), (200, {"x": 1}))
        worker.stop()
        producer.stop()

    def test_sigterm_hands_back_and_ends_streams(self):
        program = self.start("worker", "--drain", "100ms")
        job = program.enqueue("forever")
        events = []
        listener = threading.Thread(target=lambda: events.extend(program.stream(job)))
        listener.start()
        self.assertTrue(support.wait_until(lambda: program.ask("GET", "/jobs/" + job)[2]["chunks"] == 1, 20))
        time.sleep(0.2)
        program.stop()
        listener.join(WAIT)
        # The job has not ended: its reader comes back, here or to another program on the store, with the last id.
        self.assertEqual(events, [("1", "chunk", {"i": 1})])
        again = self.start("producer")
        _, _, body = again.ask("GET", "/jobs/" + job)
        self.assertEqual((body["status"], body["attempts"]), ("PENDING", 0))
        again.stop()

    def test_runners(self):
        program = self.start("runner")
        jobs = [program.enqueue("where") for _ in range(8)] + [program.enqueue("self%23where")]
        results = [program.ask("GET", "/jobs/%s?wait=20s" % job)[2]["result"] for job in jobs]
        for result in results:
            self.assertEqual((result["folder"], result["var"], result["wire"]), ("/", "set", "rrq"))
            self.assertNotEqual(result["pid"], program.process.pid)
        status, _, job = program.ask("GET", "/jobs/%s?wait=20s" % program.enqueue("nothing"))
        self.assertEqual((job["status"], job["attempts"]), ("FAILED", 1))
        os.kill(results[0]["pid"], signal.SIGKILL)  # it is started again
        job = program.enqueue("where")
        _, _, body = program.ask("GET", "/jobs/%s?wait=20s" % job)
        self.assertEqual((body["status"], body["result"]["var"]), ("COMPLETED", "set"))
        program.stop()
        for pid in {result["pid"] for result in results}:
            self.assertFalse(os.path.exists("/proc/%d" % pid))

    def test_kill_and_resume(self):
        program = self.start("producer")
        job = program.enqueue("echo", '{"x":2}')
        program.process.kill()
        program.stop(expect=-9)
        again = self.start("worker")
        _, _, body = again.ask("GET", "/jobs/%s?wait=20s" % job)
        self.assertEqual(body["result"], {"x": 2})
        again.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
