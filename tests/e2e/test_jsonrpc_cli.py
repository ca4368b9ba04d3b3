"""The command line on the jsonrpc wire, over sockets: call, list and describe with every form of target, every exit code, and
every kind of peer that is not everywire. Programs as peers are in test_jsonrpc_stdio.py.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import support
from support import FakeRpc, Server, cli, wait_until

server = folder = None
TARGETS = {}
DEMO = {"/flow/" + n for n in ("greet", "echo", "count", "sleep", "fail", "stream", "sum", "context", "big")} | {"/tool/sha256"}


def setUpModule():
    global server, folder
    folder = tempfile.TemporaryDirectory(prefix="ew")
    path = folder.name + "/s"
    server = Server(listen=("jsonrpc=127.0.0.1:0", "jsonrpc=unix:" + path, "127.0.0.1:0", "unix:" + path + "2")).start()
    ports = [e["port"] for e in server.listeners]
    server.port = ports[2]
    TARGETS.update({"tcp": "jsonrpc://127.0.0.1:%d" % ports[0], "name": "jsonrpc://localhost:%d" % ports[0],
                    "unix": "jsonrpc+unix:" + path, "one port": "jsonrpc://127.0.0.1:%d" % ports[2],
                    "one unix": "jsonrpc+unix:" + path + "2", "headers": "jsonrpc://127.0.0.1:%d?framing=lsp" % ports[0],
                    "unix headers": "jsonrpc+unix:" + path + "?framing=lsp"})


def tearDownModule():
    server.__exit__(None, None, None)
    folder.cleanup()


class Case(unittest.TestCase):
    maxDiff = 4000

    def done(self, r, out):
        self.assertEqual((r.code, r.out, r.err), (0, out, b""), r)

    def usage(self, r, *words):
        self.assertEqual((r.code, r.out), (2, b""), r)
        for word in words:
            self.assertIn(word.encode(), r.err, r)

    def failed(self, r, code, status=None, message=None):
        self.assertEqual(r.code, code, r)
        e = r.error()
        if status:
            self.assertEqual(e["status"], status, r)
        if message is not None:
            self.assertEqual(e["message"], message, r)
        return e

    def each(self):
        for name, target in TARGETS.items():
            with self.subTest(name):
                yield target


class Call(Case):
    def test_unary(self):
        for t in self.each():
            self.done(cli("call", t, "greet", '{"name":"Ada"}'), b'"Hello, Ada!"\n')
            self.done(cli("call", t, "/flow/echo"), b"null\n")
            self.done(cli("call", t, "echo", '{"b":9007199254740993,"a":1,"a":2}'), b'{"b":9007199254740993,"a":1,"a":2}\n')

    def test_input_from_elsewhere(self):
        for t in self.each():
            self.done(cli("call", t, "echo", "-", stdin=b'[1,\n"x"]'), b'[1,"x"]\n')
        with tempfile.NamedTemporaryFile() as f:
            text = b'"%s"' % (b"x" * 5000000)
            f.write(text)
            f.flush()
            self.assertTrue(cli("call", TARGETS["unix"], "echo", "@" + f.name).out == text + b"\n")

    def test_stream(self):
        for t in self.each():
            self.done(cli("call", t, "greet", '"Ada"', "--stream"),
                      b'{"chunk":"Hello,"}\n{"chunk":" Ada!"}\n{"result":"Hello, Ada!"}\n')
            self.done(cli("call", t, "echo", "1", "-s"), b'{"result":1}\n')
        r = cli("call", TARGETS["tcp"], "stream", '{"n":50000}', "--stream")
        lines = r.lines()
        self.assertEqual((r.code, len(lines), lines[-1]), (0, 50001, '{"result":{"n":50000}}'))
        self.assertEqual([json.loads(x)["chunk"]["index"] for x in lines[:-1]], list(range(50000)))

    def test_input_stream(self):
        for t in self.each():
            self.done(cli("call", t, "sum", "--input-stream", stdin=b"1\n2\n\n 39 \r\n"), b"42\n")
            self.done(cli("call", t, "sum", "--input-stream", stdin=b"1\n2"), b"3\n")  # no last newline
            self.done(cli("call", t, "sum", "--input-stream", stdin=b""), b"0\n")
            self.done(cli("call", t, "sum", "--input-stream", "--stream", stdin=b"1\n2\n"),
                      b'{"chunk":1}\n{"chunk":3}\n{"result":3}\n')

    def test_a_long_input_stream(self):
        for t in (TARGETS["tcp"], TARGETS["unix"]):
            text = b"".join(b"%d\n" % i for i in range(200000))
            self.done(cli("call", t, "sum", "--input-stream", stdin=text, timeout=60), b"19999900000\n")
        r = cli("call", TARGETS["tcp"], "sum", "--input-stream", "--stream", stdin=b"1\n" * 50000, timeout=60)
        lines = r.lines()
        self.assertEqual((r.code, len(lines), lines[-2:]), (0, 50001, ['{"chunk":50000}', '{"result":50000}']))

    def test_a_bad_line_in_it(self):
        for bad in (b"1\n2\n{\n4\n", b"nope\n", b"1 2\n"):
            with self.subTest(bad):
                self.usage(cli("call", TARGETS["tcp"], "sum", "--input-stream", stdin=bad), "input chunk")
        self.assertTrue(wait_until(lambda: server.metrics().total(support.IN_FLIGHT) == 0))

    def test_an_answer_before_the_input_ends(self):
        """The action fails at the second line; whoever types has not finished."""
        p = subprocess.Popen([support.BINARY, "call", TARGETS["tcp"], "sum", "--input-stream"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with p:
            p.stdin.write(b'1\n"x"\n')
            p.stdin.flush()
            self.assertEqual(p.wait(15 * support.SLOW), 1)
            self.assertIn(b'"INVALID_ARGUMENT"', p.stderr.read())

    def test_failures(self):
        for t in self.each():
            e = self.failed(cli("call", t, "fail", '{"status":"ABORTED","message":"so","details":{"x":[1]}}'), 1, "ABORTED", "so")
            self.assertEqual(e["details"], {"x": [1]})
            self.failed(cli("call", t, "fail", '{"status":"UNAVAILABLE"}', "--stream"), 1, "UNAVAILABLE")
            self.failed(cli("call", t, "fail", '{"status":"DEADLINE_EXCEEDED"}'), 1, "DEADLINE_EXCEEDED")
            self.failed(cli("call", t, "nothing"), 1, "NOT_FOUND")

    def test_our_deadline(self):
        for t in self.each():
            self.failed(cli("call", t, "sleep", '{"ms":60000}', "--timeout", "200ms"), 5, "DEADLINE_EXCEEDED")
        self.failed(cli("call", TARGETS["tcp"], "count", '{"n":9,"delay_ms":60000}', "-s", "-t", "300ms"), 5, "DEADLINE_EXCEEDED")
        self.assertTrue(wait_until(lambda: server.metrics().total(support.IN_FLIGHT) == 0))

    def test_what_the_wire_cannot_carry(self):
        for more in (["--context", "{}"], ["--label", "a=b"]):
            self.usage(cli("call", TARGETS["tcp"], "echo", "1", *more), "cannot carry", "no context and no labels")

    def test_bad_usage(self):
        for target in ("jsonrpc://", "jsonrpc://127.0.0.1", "jsonrpc://127.0.0.1:99999", "jsonrpc+unix:", "jsonrpc+stdio:",
                       "jsonrpc+tcp://127.0.0.1:1", "jsonrpc://127.0.0.1:1?framing=xml"):
            with self.subTest(target):
                self.usage(cli("call", target, "echo"), "target")
        self.usage(cli("call", TARGETS["tcp"], "echo", "{"), "not valid JSON")
        self.usage(cli("call", TARGETS["tcp"], "sum", "-", "--input-stream"), "standard input")
        self.usage(cli("call", TARGETS["tcp"], "echo", "--", "true"), "target")

    def test_not_reached(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            for target in ("jsonrpc://127.0.0.1:%d" % s.getsockname()[1], "jsonrpc+unix:/nowhere/at/all"):
                for verb in (("call", target, "echo"), ("list", target), ("describe", target, "echo")):
                    with self.subTest(verb):
                        self.failed(cli(*verb), 3, "UNAVAILABLE")


class Listing(Case):
    def test_list(self):
        for t in self.each():
            r = cli("list", t)
            self.assertEqual((r.code, r.err), (0, b""), r)
            self.assertEqual(json.loads(r.out), server.get("/api/actions").json())
            self.assertEqual(set(json.loads(r.out)), DEMO)

    def test_describe(self):
        listing = server.get("/api/actions").json()
        for t in self.each():
            for name in ("count", "/flow/count"):
                r = cli("describe", t, name)
                self.assertEqual((r.code, json.loads(r.out)), (0, listing["/flow/count"]), r)
        self.failed(cli("describe", TARGETS["tcp"], "nothing"), 1, "NOT_FOUND")


# ---- peers that are not everywire ------------------------------------------------------------------------------------

def say(peer, m, **members):
    """Answers a request."""
    peer.send(json.dumps(dict({"jsonrpc": "2.0", "id": m["id"]}, **members)).encode() + b"\n")


def take(peer, method=None):
    """The next request; a question for the actions is answered as a peer does that does not know it."""
    while True:
        m = peer.message()
        if method != "rpc.discover" and m.get("method") == "rpc.discover":
            say(peer, m, error={"code": -32601, "message": "Method not found"})
            continue
        if method and m["method"] != method:
            raise AssertionError("not %s: %r" % (method, m))
        return m


def until_gone(peer):
    """Everything else that it says until it leaves."""
    got = []
    try:
        while True:
            got.append(peer.message(15))
    except support.Closed:
        return got


class Peers(Case):
    def run_with(self, script, *args, stdin=b"", timeout=15.0, action="x", options=""):
        with FakeRpc(script) as fake:
            return cli("call", fake.target + options, action, *args, stdin=stdin, timeout=timeout)

    def test_what_is_sent(self):
        seen = []

        def script(peer):
            seen.append(peer.line())
            say(peer, json.loads(seen[0]), result=1)
            seen.append(until_gone(peer))
        self.done(self.run_with(script, '{"a":\n[1, 2]}', action="some/name"), b"1\n")
        m = json.loads(seen[0])
        self.assertEqual(list(m), ["jsonrpc", "id", "method", "params"])
        self.assertEqual((m["jsonrpc"], m["method"], m["params"]), ("2.0", "some/name", {"a": [1, 2]}))
        self.assertIsInstance(m["id"], str)
        self.assertFalse(m["id"].isdecimal())
        self.assertEqual(seen[1], [])

    def test_a_plain_peer_never_sees_a_stream(self):
        """It is asked what it is before anything that it would choke on; it says that it does not know."""
        seen = []

        def script(peer):
            for _ in range(2):
                m = peer.message()
                seen.append(m)
                if m["method"] == "rpc.discover":
                    say(peer, m, error={"code": -32601, "message": "Method not found"})
            say(peer, m, result="r")
            seen.extend(until_gone(peer))
        self.done(self.run_with(script, "{}", "--stream"), b'{"result":"r"}\n')
        self.assertEqual([m["method"] for m in seen], ["rpc.discover", "x"])
        for m in seen:
            self.assertFalse({"stream", "data"} & set(m), m)

    def test_answers(self):
        cases = [(dict(result={"a": 1}), b'{"a": 1}\n'), (dict(result=None), b"null\n"), (dict(result=1, error=None), b"1\n"),
                 (dict(result=1, extra=[1]), b"1\n")]
        for members, out in cases:
            with self.subTest(members):
                self.done(self.run_with(lambda p: (say(p, p.message(), **members), until_gone(p))), out)

    def test_errors(self):
        cases = [({"code": -32601, "message": "no"}, "NOT_FOUND", "no"), ({"code": -32602, "message": "no"}, "INVALID_ARGUMENT", "no"),
                 ({"code": 17, "message": "\u20ac\n"}, "UNKNOWN", "\u20ac\n"), ("bad", "UNKNOWN", "bad"), ("", "UNKNOWN", None),
                 (42, "UNKNOWN", None), (True, "UNKNOWN", None), ([1], "UNKNOWN", None), ({}, "UNKNOWN", None),
                 ({"code": -32000, "message": "m", "data": {"status": "ABORTED"}}, "ABORTED", "m"),
                 ({"code": "x", "message": 7}, "UNKNOWN", None), ({"code": -32603, "message": "m"}, "INTERNAL", "m"),
                 ({"code": 1e300, "message": "m"}, "UNKNOWN", "m")]
        for error, status, message in cases:
            with self.subTest(error):
                r = self.run_with(lambda p: (say(p, p.message(), error=error), until_gone(p)))
                e = self.failed(r, 1, status, message)
                self.assertIsInstance(e["message"], str)
        r = self.run_with(lambda p: (say(p, p.message(), error={"code": 1, "message": "m", "data": [7]}), until_gone(p)))
        self.assertEqual(self.failed(r, 1, "UNKNOWN")["details"], [7])

    def test_garbage(self):
        for text in (b"hello\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b'{"jsonrpc":"2.0",}\n', b"{]\n", b'["\xff"]\n',
                     b"Content-Length: x\r\n\r\n{}", b"[" * 100 + b"x\n"):
            with self.subTest(text[:30]):
                self.failed(self.run_with(lambda p: (p.message(), p.send(text), until_gone(p))), 4)

    def test_a_bad_answer(self):
        for members in (b"", b',"result":1,"result":2', b',"result":1,"stream":7', b',"result":1,"stream":"1"'):
            with self.subTest(members):
                def script(p):
                    p.send(b'{"jsonrpc":"2.0","id":%s%s}\n' % (json.dumps(p.message()["id"]).encode(), members))
                    until_gone(p)
                self.failed(self.run_with(script), 4)

    def test_an_answer_over_the_limit(self):
        def script(p):
            p.send(b'{"jsonrpc":"2.0","id":%s,"result":"' % json.dumps(p.message()["id"]).encode())
            for _ in range(20):
                p.try_send(b"x" * (1 << 20), 60)
            p.try_send(b'"}\n', 60)
            until_gone(p)
        self.failed(self.run_with(script), 4, "RESOURCE_EXHAUSTED")

    def test_lost(self):
        self.failed(self.run_with(lambda p: p.message()), 3, "UNAVAILABLE")
        self.failed(self.run_with(lambda p: None), 3, "UNAVAILABLE")
        self.failed(self.run_with(lambda p: (p.message(), p.send(b'{"jsonrpc":"2.0","id'))), 3, "UNAVAILABLE")
        self.failed(self.run_with(lambda p: (p.message(), p.send(b'{"jsonrpc":"2.0",'))), 3, "UNAVAILABLE")
        self.failed(self.run_with(lambda p: (p.message(), p.send(b"Content-Length: 50\r\n\r\n{"))), 3, "UNAVAILABLE")
        self.failed(self.run_with(lambda p: (p.message(), p.end_output(), until_gone(p))), 3, "UNAVAILABLE")
        self.failed(self.run_with(lambda p: (p.message(), p.abort())), 3, "UNAVAILABLE")

        def inside_a_stream(p):
            m = take(p)
            say(p, m, stream=1, result=None)
            say(p, m, stream=2, data=1)
        r = self.run_with(inside_a_stream, "--stream")
        self.failed(r, 3, "UNAVAILABLE")
        self.assertEqual(r.out, b'{"chunk":1}\n')

    def test_never_answers(self):
        """Our time is over: the peer is told, and we do not wait for it."""
        seen = []

        def script(p):
            m = p.message()
            seen.extend([m["id"], until_gone(p)])
        self.failed(self.run_with(script, "--timeout", "200ms"), 5, "DEADLINE_EXCEEDED")
        self.assertEqual([(m["method"], m["params"], "id" in m) for m in seen[1]], [("$/cancelRequest", {"id": seen[0]}, False)])

    def test_never_answers_what_it_is(self):
        """A peer that ignores methods it does not know: a call that wants chunks is not sent as one that does not."""
        seen = []

        def script(p):
            self.assertEqual(p.message()["method"], "rpc.discover")
            seen.extend(until_gone(p))
        self.failed(self.run_with(script, "--stream", "--timeout", "3s", timeout=60), 5, "DEADLINE_EXCEEDED")
        self.assertEqual(seen, [])

    def test_cannot_read_the_request(self):
        """A strict peer refuses params that are a bare value, and cannot name the call."""
        def script(p):
            p.message()
            p.send(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}\n')
            until_gone(p)
        r = self.run_with(script, "5")
        self.assertEqual(r.code, 1, r)
        self.assertIn(b"the peer reports an error without an id: code -32600, Invalid Request\n", r.err)
        self.assertIn(b'{"error":{"status":"INVALID_ARGUMENT","message":"Invalid Request"}}\n', r.err)

    def test_without_input(self):
        seen = []

        def script(p):
            seen.append(p.message())
            say(p, seen[-1], result=1)
            until_gone(p)
        self.done(self.run_with(script), b"1\n")
        self.done(self.run_with(script, "null", options="?params=null"), b"1\n")
        self.assertEqual([list(m) for m in seen], [["jsonrpc", "id", "method"], ["jsonrpc", "id", "method", "params"]])

    def test_is_not_asked_what_it_is(self):
        def script(p):
            m = p.message()
            self.assertEqual(m["method"], "x")
            say(p, m, result=1)
            until_gone(p)
        self.done(self.run_with(script, "--stream", options="?discover=no"), b'{"result":1}\n')

    def interrupt(self, script, number=signal.SIGINT, args=(), stdin=None):
        """Runs script, and sends the signal when the script has got its request."""
        ready = threading.Event()
        with FakeRpc(lambda p: script(p, ready)) as fake:
            p = subprocess.Popen([support.BINARY, "call", fake.target, "x", *args], stdin=stdin or subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertTrue(ready.wait(10 * support.SLOW))
            p.send_signal(number)
            out, err = p.communicate(timeout=15 * support.SLOW)
        return p.returncode, out, err

    def test_interrupt(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for answers in (True, False):
                with self.subTest((number, answers)):
                    seen = []

                    def script(p, ready):
                        m = p.message()
                        ready.set()
                        seen.append(p.message())
                        if answers:
                            say(p, m, error={"code": -32800, "message": "cancelled"})
                        seen.extend([m["id"], until_gone(p)])
                    code, out, err = self.interrupt(script, number)
                    self.assertEqual((code, out), (128 + number, b""), err)
                    self.assertEqual((seen[0]["method"], seen[0]["params"]), ("$/cancelRequest", {"id": seen[1]}))
                    self.assertNotIn("id", seen[0])

    def test_interrupt_of_an_input_stream(self):
        seen = []

        def script(p, ready):
            m = p.message()
            p.message()
            ready.set()
            while p.message().get("method") != "$/cancelRequest":
                pass
            say(p, m, error={"code": -32800, "message": "cancelled"})
            seen.append(until_gone(p))
        r, w = os.pipe()
        os.write(w, b"1\n")
        try:
            self.assertEqual(self.interrupt(script, args=("--input-stream",), stdin=r)[0], 130)
        finally:
            os.close(r)
            os.close(w)
        self.assertEqual([m.get("stream") for m in seen[0]], [3])  # it learns that no more input comes

    def test_strange_ids(self):
        """Answers to nobody are nothing; the right one still counts."""
        def script(p):
            m = p.message()
            for id in (b"0", b"1", b"null", b'""', b'"no"', b"1.5", json.dumps(m["id"] + "0").encode()):
                p.send(b'{"jsonrpc":"2.0","id":%s,"result":"wrong"}\n' % id)
                if id != b"null":  # that is for the only call in flight
                    p.send(b'{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"wrong"}}\n' % id)
                p.send(b'{"jsonrpc":"2.0","id":%s,"stream":2,"data":"wrong"}\n' % id)
            p.send(b"null\n\n[]\n[null,1]\n")
            say(p, m, result="right")
            until_gone(p)
        self.done(self.run_with(script), b'"right"\n')

    def test_the_id_in_another_spelling(self):
        def script(p):
            id = "".join("\\u%04x" % ord(c) for c in p.message()["id"])
            p.send(b'{"jsonrpc":"2.0","id":"%s","result":1}\n' % id.encode())
            until_gone(p)
        self.done(self.run_with(script), b"1\n")

    def test_two_answers(self):
        def script(p):
            m = p.message()
            p.send(b"".join(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": i}).encode() + b"\n" for i in (1, 2)))
            until_gone(p)
        self.done(self.run_with(script), b"1\n")

    def test_an_answer_in_a_batch(self):
        def script(p):
            p.send(json.dumps([{"jsonrpc": "2.0", "id": "no", "result": 2},
                               {"jsonrpc": "2.0", "id": p.message()["id"], "result": 1}]).encode() + b"\n")
            until_gone(p)
        self.done(self.run_with(script), b"1\n")

    def test_streams_of_another_program(self):
        """The reference codec opens streams unasked, sends a frame before its base, and ends with nothing in the close."""
        def base_first(p, m):
            say(p, m, stream=1, result={"r": 1})
            say(p, m, stream=2, data="a")
            say(p, m, stream=2, data=None)
            say(p, m, stream=2)
            say(p, m, stream=3)

        def frames_first(p, m):
            say(p, m, stream=2, data="a")
            say(p, m, stream=2, data=None)
            say(p, m, stream=1, result={"r": 1})
            say(p, m, stream=2)
            say(p, m, stream=3, data="ignored")

        def all_first(p, m):
            for d in ("a", None, None):
                say(p, m, stream=2, data=d)
            say(p, m, stream=3)
            say(p, m, stream=1, result={"r": 1})
        for order in (base_first, frames_first, all_first):
            with self.subTest(order.__name__):
                self.done(self.run_with(lambda p: (order(p, take(p)), until_gone(p)), "--stream"),
                          b'{"chunk":"a"}\n{"chunk":null}\n{"chunk":null}\n{"result":{"r": 1}}\n')
                self.done(self.run_with(lambda p: (order(p, take(p)), until_gone(p))), b'{"r": 1}\n')

    def test_frames_without_a_stream(self):
        """The answer opens none: what came before it is nothing."""
        def script(p):
            m = take(p)
            say(p, m, stream=2, data="a")
            say(p, m, result=1)
            until_gone(p)
        self.done(self.run_with(script, "--stream"), b'{"result":1}\n')

    def test_too_many_frames_before_the_base(self):
        def script(p):
            m = take(p)
            for i in range(100):
                say(p, m, stream=2, data=i)
            until_gone(p)
        self.failed(self.run_with(script, "--stream"), 4, "RESOURCE_EXHAUSTED")

    def test_the_end_in_the_close_frame(self):
        def ends(data):
            def script(p):
                m = take(p)
                say(p, m, stream=1, result="base")
                say(p, m, stream=3, data=data)
                until_gone(p)
            return self.run_with(script, "--stream")
        self.done(ends({"result": [1]}), b'{"result":[1]}\n')
        self.done(ends({"result": None}), b'{"result":null}\n')
        self.done(ends({}), b'{"result":"base"}\n')
        self.failed(ends({"error": {"code": -32000, "message": "m", "data": {"status": "ABORTED"}}}), 1, "ABORTED", "m")
        self.failed(ends({"error": "text"}), 1, "UNKNOWN", "text")

    def test_an_everywire_peer_is_asked_for_a_stream(self):
        doc = {"openrpc": "1.3.2", "info": {"title": "everywire", "version": "1", "x-everywire": {"streams": True}}, "methods": []}

        def script(p):
            say(p, take(p, "rpc.discover"), result=doc)
            m = take(p, "x?stream=true")
            say(p, m, stream=1, result=None)
            say(p, m, stream=2, data=1)
            say(p, m, stream=3, data={"result": 2})
            until_gone(p)
        self.done(self.run_with(script, "--stream"), b'{"chunk":1}\n{"result":2}\n')

    def test_what_an_input_stream_looks_like(self):
        seen = []

        def script(p):
            m = p.line()
            seen.append(m)
            while not seen[-1].endswith(b'"stream":3}\n'):
                seen.append(p.line())
            say(p, json.loads(m), result="r")
            until_gone(p)
        self.done(self.run_with(script, '{"p":1}', "--input-stream", stdin=b'1\n{"a": [1, 2]}\n'), b'"r"\n')
        id = json.dumps(json.loads(seen[0])["id"]).encode()
        head = b'{"jsonrpc":"2.0","id":' + id
        self.assertEqual(seen, [head + b',"method":"x","stream":1,"params":{"p":1}}\n', head + b',"stream":2,"data":1}\n',
                                head + b',"stream":2,"data":{"a": [1, 2]}}\n', head + b',"stream":3}\n'])

    def test_an_error_ends_the_input_stream(self):
        seen = []

        def script(p):
            m = p.message()
            p.message()
            say(p, m, error={"code": 5, "message": "enough"})
            seen.extend(until_gone(p))
        r, w = os.pipe()
        os.write(w, b"1\n")
        try:
            with FakeRpc(script) as fake:
                p = subprocess.run([support.BINARY, "call", fake.target, "x", "--input-stream"], stdin=r, capture_output=True,
                                   timeout=15 * support.SLOW)
        finally:
            os.close(r)
            os.close(w)
        self.assertEqual(p.returncode, 1, p)
        self.assertEqual([m.get("stream") for m in seen], [3])

    def test_content_length(self):
        """A peer that writes headers although we wrote lines is understood, and told about; then we write them too."""
        seen = []

        def script(p):
            m = p.message()
            for text in ({"jsonrpc": "2.0", "id": 1, "method": "hello"}, {"jsonrpc": "2.0", "id": m["id"], "result": "r"}):
                body = json.dumps(text).encode()
                p.send(b"Content-Length: %d\r\nContent-Type: x\r\n\r\n%s" % (len(body), body))
            try:
                while p.fill(support.time.monotonic() + 15 * support.SLOW):
                    pass
            finally:
                seen.append(bytes(p.buffer))
        r = self.run_with(script)
        self.assertEqual((r.code, r.out), (0, b'"r"\n'), r)
        self.assertIn(b"Content-Length", r.err)
        head, body = seen[0].split(b"\r\n\r\n")
        self.assertEqual(head, b"Content-Length: %d" % len(body))
        self.assertEqual(json.loads(body)["error"]["code"], -32601)

    def test_a_peer_that_calls_us(self):
        """It gets an answer, and its call is not taken for the answer to ours."""
        seen = []

        def script(p):
            m = p.message()
            p.send(b'{"jsonrpc":"2.0","method":"log","params":"x"}\n')
            for id in (b"7", b'"x"', json.dumps(m["id"]).encode(), b"null"):
                p.send(b'{"jsonrpc":"2.0","id":%s,"method":"ask","params":{}}\n' % id)
                seen.append((json.loads(id), p.message()))
            say(p, m, result="r")
            until_gone(p)
        self.done(self.run_with(script), b'"r"\n')
        self.assertEqual(len(seen), 4)
        for id, m in seen:
            self.assertEqual((m["id"], m["error"]["code"]), (id, -32601))

    def test_lists(self):
        def listing(*verb, **members):
            with FakeRpc(lambda p: (say(p, take(p, "rpc.discover"), **members), until_gone(p))) as fake:
                return cli(verb[0] if verb else "list", fake.target, *verb[1:])
        self.failed(listing(error={"code": -32601, "message": "Method not found"}), 1, "UNIMPLEMENTED")
        self.failed(listing("describe", "x", error={"code": -32601, "message": "Method not found"}), 1, "UNIMPLEMENTED")
        self.failed(listing(error={"code": -32000, "message": "busy"}), 1, "UNKNOWN", "busy")
        for doc in (None, 1, [], {}, {"openrpc": "1.3.2"}, {"openrpc": "1.3.2", "methods": 7}, {"methods": [{}]},
                    {"openrpc": "1.3.2", "methods": [{"name": 1}]}):
            with self.subTest(doc):
                self.failed(listing(result=doc), 4)
        doc = {"openrpc": "1.2.6", "info": {"title": "t", "version": "1"}, "methods": [
            {"name": "add", "summary": "Adds", "params": [{"name": "a", "required": True, "schema": {"type": "number"}},
                                                          {"name": "b", "schema": {"type": "number"}}],
             "result": {"name": "sum", "schema": {"type": "number"}}}, {"name": "bare", "params": []}]}
        r = listing(result=doc)
        self.assertEqual(r.code, 0, r)
        got = json.loads(r.out)
        self.assertEqual(len(got), 2)
        self.assertEqual({d["name"] for d in got.values()}, {"add", "bare"})
        add = next(d for d in got.values() if d["name"] == "add")
        self.assertEqual((add["outputSchema"], add["description"]), ({"type": "number"}, "Adds"))

    def test_a_list_that_does_not_come(self):
        with FakeRpc(lambda p: until_gone(p)) as fake:
            self.failed(cli("list", fake.target, "--timeout", "200ms"), 5, "DEADLINE_EXCEEDED")

    def test_over_a_unix_socket(self):
        path = folder.name + "/fake"
        with FakeRpc(lambda p: (say(p, p.message(), result=1), until_gone(p)), path) as fake:
            self.done(cli("call", fake.target, "x"), b"1\n")



class Paused(Case):
    def test_an_origin_that_is_paused(self):
        """Its silence decides nothing: the stream waits, and has its chunks when the origin goes on."""
        results = []
        with Server(listen=("jsonrpc=127.0.0.1:0",)) as origin:
            target = "jsonrpc://127.0.0.1:%d" % origin.listeners[0]["port"]
            origin.process.send_signal(signal.SIGSTOP)
            try:
                call = threading.Thread(target=lambda: results.append(
                    cli("call", target, "count", '{"n":3}', "--stream", "--timeout", "100s", timeout=120.0)))
                call.start()
                time.sleep(11)  # longer than any fixed time that was waited for the answer
                self.assertEqual(results, [])
            finally:
                origin.process.send_signal(signal.SIGCONT)
            call.join()
            self.done(results[0], b'{"chunk":{"i":1}}\n{"chunk":{"i":2}}\n{"chunk":{"i":3}}\n{"result":{"count":3}}\n')


if __name__ == "__main__":
    support.main()
