"""The corpora of JSON-RPC and of its streams through the real server, on TCP (as the first thing that is said, and later) and
on stdio. Where the design says otherwise than the corpus, DIFFERENT has the case, what comes instead, and why: anything
else that differs is a failure.

SPDX-License-Identifier: Apache-2.0
"""
import json
import unittest

import support
from support import Closed, Transport, rpc

WAYS = ("tcp", "tcp-later", "stdio")
LAST = b'"the last"'
CLOSED = "closed"  # in place of a message: the connection ended


def error(code, id=None):
    return {"error": code, "id": id}


ANY_PARAMS = "any JSON is allowed as params"
FOREIGN = "on a socket a first line that begins neither an object nor an array closes"
DEPTH = "a payload has at most 120 levels; beyond 128 the call fails with RESOURCE_EXHAUSTED, and the connection goes on"
ENDS = "a value ends where its JSON ends, whatever follows"

# (corpus, case, way): (list of what comes, why). A way of None stands for all of them.
DIFFERENT = {
    ("own-jsonrpc", "params-string", None): ([{"result": "x", "id": 1}], ANY_PARAMS),
    ("own-jsonrpc", "params-number", None): ([{"result": 1, "id": 1}], ANY_PARAMS),
    ("own-jsonrpc", "text-trailing-garbage", "stdio"): ([{"result": {"x": 1}, "id": 1}, error(-32700)], ENDS),
    ("own-jsonrpc", "text-trailing-garbage", "tcp"): ([{"result": {"x": 1}, "id": 1}, error(-32700), CLOSED], ENDS),
    ("own-jsonrpc", "text-trailing-garbage", "tcp-later"): ([{"result": {"x": 1}, "id": 1}, error(-32700), CLOSED], ENDS),
    ("own-jsonrpc", "depth-128", None): ([{"error": -32000, "id": 1}], DEPTH),
    ("own-jsonrpc", "depth-512", None): ([{"error": -32000, "id": 1}], DEPTH),
    ("own-jsonrpc", "text-null", "stdio"): ([], "a null message is ignored, as the reference codec does"),
    ("own-jsonrpc", "text-null", "tcp-later"): ([], "a null message is ignored, as the reference codec does"),
    ("own-jsonrpc", "text-null", "tcp"): ([error(-32700), CLOSED], FOREIGN),
    ("own-jsonrpc", "text-string", "tcp"): ([error(-32700), CLOSED], FOREIGN),
    ("own-ndjson-stream", "null-message", "tcp"): ([error(-32700), CLOSED], FOREIGN),
}

# What a demo server cannot show: the actions are not there, or another wire is meant.
MISSING = ("subtract", "get_data")
CANNOT = {
    "unread-flood": "no demo action leaves its input untaken",
}

STREAM_IDLE = "ended by the idle stream timeout (30 s in the reference)"


def is_error(m, code):
    return m != CLOSED and isinstance(m, dict) and m.get("error", {}).get("code") == code


class Case(unittest.TestCase):
    def setUp(self):
        self.transports = {}
        self.addCleanup(self.close_all)

    def close_all(self):
        for t in self.transports.values():
            t.__exit__(None, None, None)

    def connect(self, way, args=()):
        key = (way.split("-")[0],) + args
        if key not in self.transports:
            self.transports[key] = Transport(*key).__enter__()
        return self.transports[key].connect()

    def say(self, way, text, args=()):
        """(lines, messages) that come for this text; both without the answer to a last request, which is not sent when an
        earlier message has closed the connection."""
        with self.connect(way, args) as c:
            c.streams = True  # what comes is judged here
            if way == "tcp-later":
                c.call("echo", b"1", b'"first"')
            c.send(text + b"\n" + rpc("echo", b"0", LAST))
            lines, messages = [], []
            while True:
                try:
                    line = c.line()
                except Closed:
                    return lines, messages + [CLOSED]
                m = json.loads(line)
                if isinstance(m, dict) and m.get("id") == json.loads(LAST):
                    return lines, messages
                lines.append(line)
                messages.append(m)

    def same(self, want, lines, got):
        """Whether that is what the corpus says; an end of the connection must be said too, but where unreadable text ends it
        anyhow."""
        if want is None:
            return got == []
        if isinstance(want, list):
            return len(got) == 1 and isinstance(got[0], list) and len(got[0]) == len(want) and \
                all(self.one(w, b"", m) for w, m in zip(want, got[0]))
        if isinstance(want, str):
            return self.words(want, got)
        if "any" in want:
            return any(self.same(w, lines, got) for w in want["any"])
        if want.get("error") == -32700 and got[-1:] == [CLOSED]:
            got = got[:-1]
        return len(got) == 1 and got[0] != CLOSED and self.one(want, lines[0], got[0])

    def words(self, want, got):
        if want == "ignored":
            return got == []
        if want == "two results":
            return len(got) == 2 and all("result" in m for m in got)
        if want == "10000 answers":
            return len(got) == 1 and len(got[0]) == 10000
        return self.fail("the corpus says %r, which this test does not know" % want)

    def one(self, want, line, m):
        if "error" in want:
            return is_error(m, want["error"]) and ("id" not in want or m["id"] == want["id"])
        if "id_text" in want:
            return line.startswith(b'{"jsonrpc":"2.0","id":%s,"result":' % want["id_text"].encode("utf-8", "surrogatepass"))
        return "result" in m and m["id"] == want["id"] and m["result"] == want["result"]

    def differs(self, corpus, case, way):
        return DIFFERENT.get((corpus, case, way)) or DIFFERENT.get((corpus, case, None))

    def exactly(self, want, got):
        self.assertEqual(len(got), len(want), got)
        for w, m in zip(want, got):
            self.assertTrue(m == w if w == CLOSED else m != CLOSED and self.one(w, b"", m), (w, m))


class JsonRpc(Case):
    def test_all(self):
        cases, left_out = support.corpus("own-jsonrpc", "jsonrpc-cases.jsonl"), []
        known = {case for corpus, case, _ in DIFFERENT if corpus == "own-jsonrpc"}
        self.assertEqual(known - {c["id"] for c in cases}, set(), "cases that are not in the corpus")
        for case in cases:
            text = bytes.fromhex(case["send_hex"]) if "send_hex" in case else case["send"].encode()
            if case["wire"] != "any" or any(b'"%s"' % name.encode() in text for name in MISSING):
                left_out.append(case["id"])
                continue
            for way in WAYS:
                with self.subTest(case["id"], way=way):
                    lines, got = self.say(way, text)
                    other = self.differs("own-jsonrpc", case["id"], way)
                    if other:
                        self.exactly(other[0], got)
                    else:
                        self.assertTrue(self.same(case["expect"], lines, got), "%s: %r" % (case["expect"], str(got)[:500]))
        print("SKIP: own-jsonrpc: %d cases need actions or a wire that a demo server has not: %s" %
              (len(left_out), " ".join(left_out)), flush=True)
        self.assertLess(len(left_out), 10)


class Streams(Case):
    def test_all(self):
        cases = support.corpus("own-ndjson-stream", "ndjson-stream-cases.jsonl")
        known = {case for corpus, case, _ in DIFFERENT if corpus == "own-ndjson-stream"}
        self.assertEqual(known - {c["id"] for c in cases}, set(), "cases that are not in the corpus")
        for case in cases:
            if case["id"] in CANNOT:
                print("SKIP: own-ndjson-stream: %s: %s" % (case["id"], CANNOT[case["id"]]), flush=True)
                continue
            for way in WAYS:
                with self.subTest(case["id"], way=way):
                    self.run_case(case, way)

    def run_case(self, case, way):
        text = bytes.fromhex(case["send_hex"]).replace(b'"upload"', b'"sum"')  # the demo action that reads its stream
        want = case["expect"]
        other = self.differs("own-ndjson-stream", case["id"], way)
        if case["id"] == "http-get-on-port":
            self.http(way, text)
        elif case["id"] == "line-over-limit":
            self.over_limit(way, text)
        elif want == STREAM_IDLE:
            self.idle(way, text)
        elif other:
            self.exactly(other[0], self.say(way, text)[1])
        elif isinstance(want, str):
            self.spoken(want, way, text)
        else:
            self.told(want, *self.say(way, text), way)

    def told(self, want, lines, got, way):
        for w in want.get("any", [want]):
            if w == "two results":
                ok = len(got) == 2 and all("result" in m for m in got)
            elif "result" in w:
                ok = len(got) == 1 and "result" in got[0] and str(got[0]["id"]) == w["result"]
            elif "stream" in w:  # the items, and then the end: a sum of them
                ok = len(got) == 1 and got[0].get("result") == sum(int(x) for x in w["stream"])
            elif w.get("close"):
                # stdio is no socket: it goes on with the next line
                ok = is_error(got[0], w["error"]) and (got[1:] == [CLOSED] if way != "stdio" else "result" in got[1])
            else:
                ok = len(got) == 1 and is_error(got[0], w["error"])
            if ok:
                return
        self.fail("%s: %r" % (want, str(got)[:500]))

    def spoken(self, want, way, text):
        if want == "dropped and counted":
            with self.connect(way) as c:
                def dropped():
                    return c.server.metrics().total("everywire_events_dropped_total")
                c.streams = True
                before = dropped()
                c.send(text + rpc("echo", b"0", LAST))
                while c.message()["id"] != json.loads(LAST):
                    pass
                self.assertTrue(support.wait_until(lambda: dropped() == before + 1))
            return
        _, got = self.say(way, text)
        if want in ("protocol error, stream ended", "protocol error"):
            self.assertEqual([(m["id"], m["error"]["code"]) for m in got], [("s1", -32600)])
        elif want in ("a stream frame, never a call", "client side: result then stream of one item"):
            self.assertEqual(got, [])  # to a server that has not asked it is nothing; a client's view is in test_jsonrpc_cli.py
        else:
            self.fail("the corpus says %r, which this test does not know" % want)

    def http(self, way, text):
        _, got = self.say(way, text)
        if way == "tcp":
            self.assertEqual(got, [CLOSED])
        elif way == "tcp-later":
            self.assertTrue(is_error(got[0], -32700) and got[1:] == [CLOSED], got)
        else:  # no port: unreadable lines like any others
            self.assertTrue(got and all(is_error(m, -32700) for m in got), got)

    def over_limit(self, way, text):
        """Our limit is 16 MiB unless told otherwise."""
        _, got = self.say(way, text + b'"}\n', ("--limit", "frame_bytes=32K"))
        self.assertEqual((got[0]["id"], got[0]["error"]["data"]["status"]), ("1", "RESOURCE_EXHAUSTED"))

    def idle(self, way, text):
        with self.connect(way, ("--limit", "stream_idle_ms=200")) as c:
            c.send(text)
            m = c.message()
            self.assertEqual((m["id"], m["error"]["data"]["status"]), ("s1", "DEADLINE_EXCEEDED"))


if __name__ == "__main__":
    support.main()
