"""The corpus of RRQ frames against the real program: as runner (`--listen rrq=`), and as orchestrator (`call rrq://`) for what
a runner says; and what a handler sees of a request's context. Where the design says otherwise than the corpus, DIFFERENT has
the case, what comes instead, and why.

SPDX-License-Identifier: Apache-2.0
"""
import datetime
import json
import unittest

import support
from rrq_support import FakeRunner, Rrq, frames, message, pack, request
from support import Server, cli, wait_until

STALL_MS = 700
QUIET = 0.3  # how long nothing must come where nothing may
TOLD = "we say whose request was refused, and why, before we close"

# case: (the outcome that comes before the end of the connection, why)
DIFFERENT = {
    "deadline-bad": ({"status": "error", "request_id": "r1", "job_id": "j1", "error.code": "INVALID_ARGUMENT"}, TOLD),
    "attempt-2^63": ({"status": "error", "request_id": "r1", "job_id": "j1", "error.code": "INVALID_ARGUMENT"}, TOLD),
}


def member(payload, path):
    for name in path.split("."):
        payload = payload.get(name) if isinstance(payload, dict) else None
    return payload


def matches(want, payload):
    return all(member(payload, path) == value for path, value in want.items())


def with_our_names(chunk):
    """The corpus' handler `slow` is our `sleep` for two seconds. Chunks that are no whole frames stay as they are."""
    texts, rest = frames(chunk)
    if rest or not texts or b'"slow"' not in chunk:
        return chunk
    out = b""
    for text in texts:
        m = json.loads(text.decode("utf-8"))
        if m["payload"].get("function_name") == "slow":
            m["payload"].update(function_name="sleep", params={"ms": 2000})
            text = json.dumps(m).encode()
        out += pack(text)
    return out


class Corpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cases = support.corpus("own-rrq-frames", "rrq-frames.jsonl")
        cls.server = Server("--limit", "body_stall_ms=%d" % STALL_MS, listen=("http=127.0.0.1:0", "rrq=127.0.0.1:0")).start()
        cls.port = next(e["port"] for e in cls.server.listeners if e["wire"] == "rrq")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def test_all(self):
        kinds = {"close": self.closes, "wait then close": self.waits, None: self.nothing,
                 "exactly one answer per request, or the second refused; never three": self.duplicate,
                 "one outcome only: error/cancelled or success": self.one_outcome,
                 "on disconnect the task is aborted, counted and freed": self.aborted,
                 "orchestrator side: clamped to policy": self.clamped,
                 "orchestrator side: an outcome for a lease that expired changes nothing (fencing)": self.late}
        self.assertEqual(set(DIFFERENT) - {c["id"] for c in self.cases}, set(), "cases that are not in the corpus")
        for case in self.cases:
            want, chunks = case["expect"], [with_our_names(bytes.fromhex(c)) for c in case["chunks_hex"]]
            with self.subTest(case["id"]):
                if case["id"] in DIFFERENT:
                    self.told(DIFFERENT[case["id"]][0], chunks, closes=True)
                elif isinstance(want, dict):
                    self.any_of(want.get("any", [want]), chunks)
                else:
                    self.assertIn(want, kinds, "the corpus says what this test does not know")
                    kinds[want](chunks)
        print("own-rrq-frames: %d cases" % len(self.cases))

    def say(self, c, chunks):
        for chunk in chunks:
            if not c.try_send(chunk):
                break

    # as runner

    def told(self, want, chunks, closes=False):
        """One outcome, and then the connection closes, or lives."""
        with Rrq(self.port) as c:
            self.say(c, chunks)
            payload = c.outcome()
            self.assertTrue(matches(want, payload), "%s: %s" % (want, payload))
            self.assertTrue(c.closed() if closes else c.works())

    def any_of(self, wants, chunks):
        with Rrq(self.port) as c:
            self.say(c, chunks)
            try:
                payload = c.outcome()
            except support.Closed:
                self.assertIn("close", wants)
                return
            self.assertTrue(any(w != "close" and matches(w, payload) for w in wants), "%s: %s" % (wants, payload))
            self.assertTrue(c.works())

    def closes(self, chunks):
        with Rrq(self.port) as c:
            self.say(c, chunks)
            self.assertTrue(c.closed(), c.buffer[:300])

    def waits(self, chunks):
        with Rrq(self.port) as c:
            self.say(c, chunks)
            self.assertTrue(c.quiet(STALL_MS / 1000 * 0.4))
            self.assertTrue(c.closed(), c.buffer[:300])

    def nothing(self, chunks):
        with Rrq(self.port) as c:
            self.say(c, chunks)
            self.assertTrue(c.quiet(QUIET), c.buffer[:300])
            self.assertTrue(c.works())

    def duplicate(self, chunks):
        with Rrq(self.port) as c:
            self.say(c, chunks)
            got = [c.outcome(), c.outcome()]
            self.assertEqual({p["request_id"] for p in got}, {"r1"})
            self.assertTrue(c.quiet(QUIET) and c.works())

    def one_outcome(self, chunks):
        with Rrq(self.port) as c:
            self.say(c, chunks)
            payload = c.outcome()
            self.assertEqual((payload["status"], member(payload, "error.type")), ("error", "cancelled"))
            self.assertTrue(c.quiet(QUIET) and c.works())

    def aborted(self, chunks):
        def cancelled():
            return self.server.metrics().total(support.CALLS, action="/flow/sleep", status="CANCELLED")

        def running():
            return self.server.metrics().total(support.IN_FLIGHT)
        before = cancelled()
        with Rrq(self.port) as c:
            self.say(c, chunks)
            self.assertTrue(wait_until(lambda: running() == 1))
        self.assertTrue(wait_until(lambda: cancelled() == before + 1 and running() == 0))

    # as orchestrator

    def answer(self, chunks, before=False, **changes):
        """What `call` says when a runner answers so with the ids of the request; or says it before its real answer."""
        texts, rest = frames(b"".join(chunks))
        self.assertEqual((len(texts), rest), (1, b""))
        payload = json.loads(texts[0].decode("utf-8"))["payload"]

        def respond(_, m):
            if m["type"] != "request":
                return None
            ids = {"job_id": m["payload"]["job_id"], "request_id": m["payload"]["request_id"]}
            if before:
                return message("response", dict(payload, job_id=ids["job_id"])) + message("response", dict(ids, **changes))
            return dict(payload, **ids)
        with FakeRunner(respond) as runner:
            return cli("call", runner.url, "f", "{}", "--timeout", "20s")

    def clamped(self, chunks):
        """It is a fault that a retry may help, and no delay that makes no sense: there is no policy here yet."""
        r = self.answer(chunks)
        self.assertEqual((r.code, r.error()["status"]), (1, "UNAVAILABLE"), r)

    def late(self, chunks):
        r = self.answer(chunks, before=True, status="success", result="mine")
        self.assertEqual((r.code, r.out), (0, b'"mine"\n'), r)


class Context(unittest.TestCase):
    """What a handler is given of a request's context."""

    def test_all_of_it(self):
        in_an_hour = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)).isoformat()
        context = {"job_id": "j1", "attempt": 7, "enqueue_time": "2025-01-01T12:00:00Z", "queue_name": "q", "worker_id": "w",
                   "deadline": in_an_hour, "correlation_context": {"tenant": "t"}, "more": [1],
                   "trace_context": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
        with Server(listen=("rrq=127.0.0.1:0",)) as server, Rrq(server.port) as c:
            c.send(request("context", {}, **context))
            r = c.outcome()["result"]
            self.assertEqual((r["wire"], r["key"], r["attempt"], r["labels"], r["trace_id"], r["context"]),
                             ("rrq", "/flow/context", 7, {"tenant": "t"}, "0af7651916cd43dd8448eb211c80319c", context))
            self.assertTrue(0 < r["deadline_ms"] <= 3600000, r)

    def test_nothing_but_what_must_be(self):
        with Server(listen=("rrq=127.0.0.1:0",)) as server, Rrq(server.port) as c:
            c.send(request("context", {}, attempt=0))
            r = c.outcome()["result"]
            self.assertEqual((r["labels"], r["deadline_ms"]), (None, None))


if __name__ == "__main__":
    support.main()
