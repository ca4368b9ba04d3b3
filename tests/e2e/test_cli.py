"""The command line: call, list, describe, serve; every exit code; every shape of server that real clients meet.

SPDX-License-Identifier: Apache-2.0
"""
import json
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import support
from support import FakeServer, Server, canned, canned_stream, cli, free_ports, request, wait_until

DEMO_KEYS = {"/flow/echo", "/flow/greet", "/flow/count", "/flow/sleep", "/flow/fail", "/flow/stream", "/flow/sum", "/flow/context", "/flow/big",
             "/tool/sha256"}

server = None


def setUpModule():
    global server
    server = Server().start()


def tearDownModule():
    server.__exit__(None, None, None)


def call(*args, **kw):
    return cli("call", server.url, *args, **kw)


class Case(unittest.TestCase):
    maxDiff = None

    def done(self, r, out):
        self.assertEqual((r.code, r.out, r.err), (0, out, b""), r)

    def usage(self, r, *words):
        """Bad usage: 2, nothing on standard output, a line for people."""
        self.assertEqual(r.code, 2, r)
        self.assertEqual(r.out, b"", r)
        self.assertNotEqual(r.err, b"")
        for word in words:
            self.assertIn(word.encode(), r.err, r)

    def failed(self, r, code, status=None, message=None):
        self.assertEqual(r.code, code, r)
        error = r.error()
        self.assertEqual(len(r.err.decode().splitlines()), 1, r)
        self.assertIsInstance(error["message"], str)
        if status:
            self.assertEqual(error["status"], status, r)
        if message is not None:
            self.assertEqual(error["message"], message, r)
        return error


class Call(Case):
    def test_unary(self):
        self.done(call("echo", '{"a":1}'), b'{"a":1}\n')
        self.done(call("/flow/echo", "[1,2]"), b"[1,2]\n")
        self.done(call("greet", '{"name":"Ada"}'), b'"Hello, Ada!"\n')
        self.done(call("sha256", "1"), b'"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"\n')

    def test_target_forms(self):
        for target in ("http://localhost:%d" % server.port, "http://127.0.0.1:%d/" % server.port):
            with self.subTest(target):
                self.done(cli("call", target, "echo", "1"), b"1\n")

    def test_no_input_is_null(self):
        self.done(call("echo"), b"null\n")

    def test_fidelity(self):
        for text in ("12345678901234567890", "-5", "1e400", '{"b":1,"a":2,"a":3}', '"Grüße \U0001f600"', '"\\u0041\\n"', '""', "-0.10"):
            with self.subTest(text):
                self.done(call("echo", text), text.encode() + b"\n")

    def test_one_line_also_for_many(self):
        r = call("echo", '{\n  "a": [\n 1,\r\n 2 ],\n "b": "x\\ny"\n}')
        self.assertEqual(r.code, 0)
        self.assertEqual(r.out.count(b"\n"), 1, r)
        self.assertEqual(json.loads(r.out.decode()), {"a": [1, 2], "b": "x\ny"})

    def test_input_from_standard_input(self):
        self.done(call("echo", "-", stdin=b'{"from":"stdin"}\n'), b'{"from":"stdin"}\n')
        self.usage(call("echo", "-", stdin=b"{"))
        self.usage(call("echo", "-", stdin=b""))

    def test_input_from_a_file(self):
        with tempfile.NamedTemporaryFile() as f:
            f.write(b' {"from":"file"}\n')
            f.flush()
            self.done(call("echo", "@" + f.name), b'{"from":"file"}\n')
        self.usage(call("echo", "@" + f.name), f.name)
        with tempfile.NamedTemporaryFile() as f:
            f.write(b'{"a":1}}')
            f.flush()
            self.usage(call("echo", "@" + f.name))
        with tempfile.TemporaryDirectory() as folder:
            self.usage(call("echo", "@" + folder))

    def test_large_input_and_output(self):
        text = b'"' + b"x" * 3000000 + b'"'
        r = call("echo", "-", stdin=text)
        self.assertEqual((r.code, r.err), (0, b""))
        self.assertEqual(r.out, text + b"\n")

    def test_options_stand_anywhere(self):
        self.done(cli("call", "--timeout", "5s", server.url, "echo", "1"), b"1\n")
        self.done(cli("call", server.url, "--timeout=5s", "echo", "1"), b"1\n")
        self.done(call("echo", "1", "--timeout", "5"), b"1\n")

    def test_stream(self):
        self.done(call("greet", '{"name":"Ada"}', "--stream"), b'{"chunk":"Hello,"}\n{"chunk":" Ada!"}\n{"result":"Hello, Ada!"}\n')
        self.done(call("echo", "--stream"), b'{"result":null}\n')

    def test_stream_without_the_option_shows_the_result_only(self):
        self.done(call("count", '{"n":3}'), b'{"count":3}\n')

    def test_a_long_stream(self):
        r = call("stream", '{"n":20000}', "--stream")
        self.assertEqual(r.code, 0)
        lines = r.lines()
        self.assertEqual(len(lines), 20001)
        for i in range(0, 20000, 501):
            self.assertEqual(lines[i], '{"chunk":{"index":%d,"text":"chunk number %d"}}' % (i, i))
        self.assertEqual(lines[-1], '{"result":{"n":20000}}')

    def test_chunks_are_shown_when_they_come(self):
        p = subprocess.Popen([support.BINARY, "call", server.url, "count", '{"n":6,"delay_ms":150}', "--stream"], stdout=subprocess.PIPE)
        times = []
        for _ in p.stdout:
            times.append(time.monotonic())
        self.assertEqual(p.wait(10), 0)
        p.stdout.close()
        self.assertEqual(len(times), 7)
        self.assertGreater(times[-1] - times[0], 0.5)

    def test_failures(self):
        r = call("fail", '{"status":"NOT_FOUND","message":"no such","details":{"k":[1]}}')
        error = self.failed(r, 1, "NOT_FOUND", "no such")
        self.assertEqual(error["details"], {"k": [1]})
        self.assertEqual(r.out, b"")
        error = self.failed(call("fail", '{"status":"ABORTED","message":"m"}'), 1, "ABORTED", "m")
        self.assertIsNone(error.get("details"))

    def test_every_status_is_1_when_the_action_says_it(self):
        for status in ("CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
                       "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"):
            for extra in ((), ("--stream",)):
                with self.subTest((status, extra)):
                    self.failed(call("fail", '{"status":"%s","message":"m"}' % status, *extra), 1, status, "m")

    def test_unknown_action(self):
        self.failed(call("nothing"), 1, "NOT_FOUND")
        self.failed(call("nothing", "--stream"), 1, "NOT_FOUND")

    def test_messages_stay_on_one_line(self):
        r = call("fail", '{"status":"INTERNAL","message":"a\\nb\\r\\u001b[31m"}')
        self.failed(r, 1, "INTERNAL", "a\nb\r\x1b[31m")
        self.assertNotIn(b"\x1b", r.err)

    def test_our_deadline(self):
        for extra in ((), ("--stream",)):
            for dur, low, high in (("300ms", 0.28, 2.0), ("0.4", 0.38, 2.0), ("0.3s", 0.28, 2.0)):
                with self.subTest((dur, extra)):
                    r = call("sleep", '{"ms":20000}', "--timeout", dur, *extra)
                    self.failed(r, 5, "DEADLINE_EXCEEDED")
                    self.assertGreaterEqual(r.seconds, low)
                    self.assertLess(r.seconds, high * support.SLOW)

    def test_durations(self):
        for dur in ("500ms", "2s", "1m", "1h", "3"):
            with self.subTest(dur):
                self.done(call("echo", "1", "--timeout", dur), b"1\n")
        for dur in ("5x", "", "-1s", "s", "1 s", "abc", "1ss"):
            with self.subTest(dur):
                self.usage(call("echo", "1", "--timeout", dur))

    def test_the_deadline_goes_along(self):
        r = call("context", "--timeout", "9s")
        left = json.loads(r.out.decode())["deadline_ms"]
        self.assertGreater(left, 5000)
        self.assertLessEqual(left, 9000)

    def test_bad_usage(self):
        self.usage(cli("call"))
        self.usage(cli("call", server.url))
        self.usage(call("echo", "1", "2"))
        self.usage(call("echo", "{"))
        self.usage(call("echo", ""))
        self.usage(call("echo", "nope"))
        self.usage(call("echo", "--timeout"))
        self.usage(cli("call", "nonsense", "echo"))
        self.usage(cli("call", "ftp://127.0.0.1:1", "echo"))
        self.usage(cli("call", "http://", "echo"))
        self.usage(cli("call", "http://127.0.0.1:99999", "echo"))

    def test_what_the_wire_cannot_carry(self):
        self.usage(call("echo", "1", "--context", '{"auth":1}'))
        self.usage(call("sum", "--input-stream", stdin=b"1\n2\n"))
        self.usage(call("echo", "1", "--label", "a=b"))

    def test_wrong_flags_name_the_right_one(self):
        self.usage(call("echo", "--steam"), "--stream")
        self.usage(call("echo", "--timeot", "1s"), "--timeout")
        self.usage(cli("serve", "--demmo"), "--demo")
        self.usage(cli("serve", "--lisen", "x"), "--listen")
        self.usage(cli("cal", server.url, "echo"), "call")
        self.usage(cli("srve"), "serve")

    def test_interrupt(self):
        for extra in ([], ["--stream"]):
            for number, code in ((signal.SIGINT, 130),):
                with self.subTest((extra, number)):
                    count = lambda: server.metrics().total(support.CALLS, action="/flow/sleep", status="CANCELLED")
                    self.assertTrue(wait_until(lambda: server.metrics().total(support.IN_FLIGHT) == 0))
                    before = count()
                    p = subprocess.Popen([support.BINARY, "call", server.url, "sleep", '{"ms":60000}'] + extra, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE)
                    self.assertTrue(wait_until(lambda: server.metrics().total(support.IN_FLIGHT) == 1))
                    p.send_signal(number)
                    _, err = p.communicate(timeout=5 * support.SLOW)
                    self.assertEqual(p.returncode, code, err)
                    self.assertTrue(wait_until(lambda: server.metrics().total(support.IN_FLIGHT) == 0), "the call was not cancelled")
                    self.assertEqual(count(), before + 1)

    def test_a_reader_that_closes_the_pipe(self):
        p = subprocess.Popen([support.BINARY, "call", server.url, "count", '{"n":1000000,"delay_ms":1}', "--stream"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        p.stdout.readline()
        p.stdout.close()
        p.wait(10 * support.SLOW)
        self.assertNotEqual(p.returncode, 0)
        p.stderr.close()
        self.assertTrue(wait_until(lambda: server.metrics().total(support.IN_FLIGHT) == 0))


class Listing(Case):
    def test_list(self):
        r = cli("list", server.url)
        self.assertEqual((r.code, r.err), (0, b""), r)
        got = json.loads(r.out.decode())
        self.assertEqual(set(got), DEMO_KEYS)
        for key, one in got.items():
            self.assertEqual(one["key"], key)
        self.assertNotIn(b"\x1b", r.out)

    def test_describe(self):
        for name in ("greet", "/flow/greet"):
            with self.subTest(name):
                r = cli("describe", server.url, name)
                self.assertEqual((r.code, r.err), (0, b""), r)
                one = json.loads(r.out.decode())
                self.assertEqual(one["key"], "/flow/greet")
                self.assertEqual(one["name"], "greet")
                self.assertTrue(one["description"])
        self.failed(cli("describe", server.url, "nothing"), 1, "NOT_FOUND")

    def test_a_peer_that_cannot_list(self):
        for answer in (canned("404 Not Found", b"<html>Cannot GET /api/actions</html>", "text/html"), canned("405 Method Not Allowed", b"no", "text/plain"),
                       canned("501 Not Implemented", b"")):
            with FakeServer(answer) as fake:
                self.failed(cli("list", fake.url), 1, "UNIMPLEMENTED")
                self.failed(cli("describe", fake.url, "x"), 1, "UNIMPLEMENTED")

    def test_peer_that_never_answers(self):
        """A default deadline, which the error names; both verbs at the same time, since it is 10 s long."""
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen(16)
            for scheme, timeout, words in (("jsonrpc", (), "within 10 s"), ("http", ("--timeout", "250ms"), "within 0.25 s")):
                target = "%s://127.0.0.1:%d" % (scheme, silent.getsockname()[1])
                running = [subprocess.Popen([support.BINARY, *verb, *timeout], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
                           for verb in (("list", target), ("describe", target, "x"))]
                for p in running:
                    errors = p.communicate(timeout=120 * support.SLOW)[1].decode()
                    self.assertEqual(p.returncode, 5, errors)
                    self.assertIn(words, errors)
                    self.assertIn("--timeout", errors)

    def test_unreachable(self):
        self.failed(cli("list", "http://127.0.0.1:%d" % free_ports()), 3, "UNAVAILABLE")
        self.failed(cli("describe", "http://127.0.0.1:%d" % free_ports(), "x"), 3, "UNAVAILABLE")

    def test_usage(self):
        self.usage(cli("list"))
        self.usage(cli("describe", server.url))
        self.usage(cli("list", server.url, "x", "y"))


class WhatIsSent(Case):
    def test_unary_request(self):
        with FakeServer(canned("200 OK", b'{"result":1}')) as fake:
            self.done(cli("call", fake.url, "greet", '{"name":"Ada"}', "--timeout", "7s"), b"1\n")
            got = fake.requests[0]
        self.assertEqual((got["method"], got["target"]), ("POST", "/greet"))
        self.assertEqual(json.loads(got["body"].decode()), {"data": {"name": "Ada"}})
        self.assertEqual(got["headers"]["content-type"].split(";")[0], "application/json")
        self.assertEqual(got["headers"]["host"], "127.0.0.1:%d" % fake.port)
        self.assertNotIn("event-stream", got["headers"].get("accept", ""))
        self.assertRegex(got["headers"]["x-everywire-timeout-ms"], r"\A(6[5-9]\d\d|7000)\Z")
        self.assertRegex(got["headers"].get("traceparent", "00-" + "1" * 32 + "-" + "1" * 16 + "-01"), r"\A00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}\Z")

    def test_streaming_request(self):
        with FakeServer(canned_stream([b'data: {"result":1}\n\n'])) as fake:
            self.done(cli("call", fake.url, "/flow/greet", "--stream"), b'{"result":1}\n')
            got = fake.requests[0]
        self.assertEqual(got["target"], "/flow/greet")
        self.assertEqual(got["headers"]["accept"], "text/event-stream", "several servers compare it exactly")
        self.assertIn(json.loads(got["body"].decode()), ({"data": None}, {}))

    def test_names_are_escaped(self):
        with FakeServer(canned("200 OK", b'{"result":1}')) as fake:
            self.done(cli("call", fake.url, "a b/ü?x#y%z", "1"), b"1\n")
            self.assertEqual(fake.requests[0]["target"], "/a%20b/%C3%BC%3Fx%23y%25z")


class UnaryServers(Case):
    """Servers of genkit.md 4.1, and worse ones, answering one call."""

    def ask(self, respond, *extra, action="x"):
        with FakeServer(respond) as fake:
            return cli("call", fake.url, action, "1", *extra)

    def test_successes(self):
        for name, respond, out in (
                ("express", canned("200 OK", b'{"result":"Hello"}', "application/json; charset=utf-8"), b'"Hello"\n'),
                ("go, with a newline", canned("200 OK", b'{"result":{"a":[1,2]}}\n'), b'{"a":[1,2]}\n'),
                ("undefined result", canned("200 OK", b"{}"), b"null\n"),
                ("spaces", canned("200 OK", b' { "x" : 1 , "result" :\n 5 } \n'), b"5\n"),
                ("big integers", canned("200 OK", b'{"result":{"z":12345678901234567890,"a":1e400}}'), b'{"z":12345678901234567890,"a":1e400}\n'),
        ):
            with self.subTest(name):
                self.done(self.ask(respond), out)

    def raw(self, data, pause=0.0):
        def respond(s, _):
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in data if isinstance(data, list) else [data]:
                s.sendall(part)
                if pause:
                    time.sleep(pause)
            return False
        return respond

    def test_http_forms(self):
        rest = b'\r\nContent-Length: 12\r\nContent-Type: application/json\r\n\r\n{"result":1}'
        for name, data in (
                ("close-delimited", b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{"result":1}'),
                ("HTTP/1.0", b'HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{"result":1}'),
                ("chunked", b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
                            b'5;x=y\r\n{"res\r\n7\r\nult":1}\r\n0\r\nT: 1\r\n\r\n'),
                ("100 first", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK" + rest),
                ("103 first", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK" + rest),
                ("no reason", b"HTTP/1.1 200 " + rest),
        ):
            with self.subTest(name):
                self.done(self.ask(self.raw(data)), b"1\n")
            with self.subTest(name + ", byte by byte"):
                self.done(self.ask(self.raw([data[i:i + 1] for i in range(len(data))], 0.0003)), b"1\n")

    def test_failures(self):
        for name, respond, status, message in (
                ("the specification", canned("404 Not Found", b'{"code":404,"status":"NOT_FOUND","message":"gone","details":{"k":1}}'), "NOT_FOUND", "gone"),
                ("express", canned("409 Conflict", b'{"details":{"k":1},"status":"ABORTED","message":"again"}'), "ABORTED", "again"),
                ("express, cancelled", canned("499 unknown", b'{"status":"CANCELLED","message":"stop"}'), "CANCELLED", "stop"),
                ("express, its typo", canned("400 Bad Request", b'{"message":"Error: body","status":"INVALID ARGUMENT"}'), "INVALID_ARGUMENT", "Error: body"),
                ("next", canned("403 Forbidden", b'{"error":{"status":"PERMISSION_DENIED","message":"no"}}'), "PERMISSION_DENIED", "no"),
                ("python: always 500", canned("500 Internal", b'{"message":"gone","status":"NOT_FOUND","details":{"stack":"x"}}'), "NOT_FOUND", "gone"),
                ("go: text", canned("500 Internal Server Error", b"boom\n", "text/plain; charset=utf-8"), "INTERNAL", None),
                ("go: text 404", canned("404 Not Found", b"404 page not found\n", "text/plain"), "NOT_FOUND", None),
                ("html", canned("404 Not Found", b"<!DOCTYPE html><pre>Cannot POST /x</pre>", "text/html"), "NOT_FOUND", None),
                ("html, body limit", canned("413 Payload Too Large", b"<html>PayloadTooLargeError<br>   at readStream</html>", "text/html"), None, None),
                ("a proxy", canned("502 Bad Gateway", b"<html><h1>502 Bad Gateway</h1></html>", "text/html"), None, None),
                ("unauthorised, empty", canned("401 Unauthorized", b"", None), "UNAUTHENTICATED", None),
                ("too many, empty", canned("429 Too Many Requests", b"", None), "RESOURCE_EXHAUSTED", None),
                ("unavailable, empty", canned("503 Service Unavailable", b""), "UNAVAILABLE", None),
                ("gateway timeout", canned("504 Gateway Timeout", b"slow", "text/plain"), "DEADLINE_EXCEEDED", None),
                ("an unknown status name", canned("418 I'm a teapot", b'{"status":"TEAPOT","message":"short"}'), None, "short"),
                ("json of another kind", canned("500 Internal", b'["x"]'), "INTERNAL", None),
                ("broken json", canned("500 Internal", b'{"status":'), "INTERNAL", None),
                ("bad bytes", canned("500 Internal", b"\xff\xfe\x00\x1b[31m", "text/plain"), "INTERNAL", None),
        ):
            for extra in ((), ("--stream",)):
                with self.subTest((name, extra)):
                    r = self.ask(respond, *extra)
                    self.failed(r, 1, status, message)
                    self.assertNotIn(b"\x1b", r.err)
                    self.assertEqual(r.out, b"")

    def test_details_come_along(self):
        r = self.ask(canned("404 Not Found", b'{"details":{"k":12345678901234567890},"status":"NOT_FOUND","message":"m"}'))
        self.assertIn(b'"details":{"k":12345678901234567890}', r.err)

    def test_text_messages_come_along(self):
        r = self.ask(canned("500 Internal Server Error", b"boom\n", "text/plain; charset=utf-8"))
        self.assertIn("boom", self.failed(r, 1, "INTERNAL")["message"])

    def test_not_a_success(self):
        for name, respond, codes in (
                ("204", self.raw(b"HTTP/1.1 204 No Content\r\n\r\n"), (1, 4)),
                ("302", canned("302 Found", b"", None, [("Location", "http://127.0.0.1:1/")]), (1, 4)),
                ("error member with 200", canned("200 OK", b'{"error":{"status":"INTERNAL","message":"x"}}'), (1,)),
        ):
            with self.subTest(name):
                r = self.ask(respond)
                self.assertIn(r.code, codes, r)
                r.error()

    def test_broken_protocol(self):
        for name, respond in (
                ("garbage", self.raw(b"\x00\x01\x02garbage\r\n\r\n")),
                ("ssh", self.raw(b"SSH-2.0-OpenSSH_9.2\r\n")),
                ("smtp", self.raw(b"220 mail ready\r\n\r\n")),
                ("html with 200", canned("200 OK", b"<html>hello</html>", "text/html")),
                ("text with 200", canned("200 OK", b"hello", "text/plain")),
                ("broken json", canned("200 OK", b'{"result":')),
                ("an array", canned("200 OK", b"[1]")),
                ("null", canned("200 OK", b"null")),
                ("empty", canned("200 OK", b"")),
                ("two results", canned("200 OK", b'{"result":1,"result":2}')),
                ("bad utf-8", canned("200 OK", b'{"result":"\xff"}')),
                ("HTTP/2", self.raw(b"HTTP/2.0 200 OK\r\nContent-Length: 12\r\n\r\n{\"result\":1}")),
                ("bad chunk size", self.raw(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{"result":1}\r\n0\r\n\r\n')),
                ("length and chunked", self.raw(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n{"result":1}\r\n0\r\n\r\n')),
                ("two lengths", self.raw(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\nContent-Length: 13\r\n\r\n{"result":1}')),
                ("a head without end", self.raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20000)),
                ("101", self.raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")),
        ):
            with self.subTest(name):
                r = self.ask(respond)
                self.failed(r, 4)
                self.assertEqual(r.out, b"")

    def test_an_answer_beyond_the_limit(self):
        def respond(s, _):
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999999999999\r\n\r\n")
            try:
                for _ in range(400):
                    s.sendall(b"x" * 65536)
            except OSError:
                pass
            return False
        r = self.ask(respond)
        self.assertIn(r.code, (1, 4), r)
        r.error()

    def test_lost(self):
        for name, respond in (
                ("closed at once", self.raw(b"")),
                ("closed in the status line", self.raw(b"HTTP/1.1 20")),
                ("closed in the head", self.raw(b"HTTP/1.1 200 OK\r\nContent-Ty")),
                ("closed in the body", self.raw(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\nContent-Type: application/json\r\n\r\n{"resu')),
                ("closed in a chunk", self.raw(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n{"resu')),
                ("closed before the last chunk", self.raw(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n{"result":1}\r\n')),
        ):
            for extra in ((), ("--stream",)):
                with self.subTest((name, extra)):
                    self.failed(self.ask(respond, *extra), 3, "UNAVAILABLE")

    def test_reset(self):
        def respond(s, _):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            return False
        self.failed(self.ask(respond), 3, "UNAVAILABLE")

    def test_refused(self):
        self.failed(cli("call", "http://127.0.0.1:%d" % free_ports(), "x"), 3, "UNAVAILABLE")
        self.failed(cli("call", "http://127.0.0.1:%d" % free_ports(), "x", "--stream"), 3, "UNAVAILABLE")

    def test_unknown_name(self):
        self.failed(cli("call", "http://no-such-host.invalid:3400", "x"), 3, "UNAVAILABLE")

    def test_never_answers(self):
        for extra in ((), ("--stream",)):
            def respond(s, _):
                s.recv(1)  # until the client leaves
                return False
            r = self.ask(respond, "--timeout", "300ms", *extra)
            self.failed(r, 5, "DEADLINE_EXCEEDED")
            self.assertLess(r.seconds, 3 * support.SLOW)

    def test_never_accepts(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen(0)
            r = cli("call", "http://127.0.0.1:%d" % s.getsockname()[1], "x", "--timeout", "300ms")
            self.failed(r, 5, "DEADLINE_EXCEEDED")

    def test_interrupt_against_a_silent_server(self):
        gone = threading.Event()

        def respond(s, _):
            if s.recv(1) == b"":
                gone.set()
            return False
        with FakeServer(respond) as fake:
            p = subprocess.Popen([support.BINARY, "call", fake.url, "x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertTrue(wait_until(lambda: fake.requests))
            p.send_signal(signal.SIGINT)
            p.communicate(timeout=5 * support.SLOW)
            self.assertEqual(p.returncode, 130)
            self.assertTrue(gone.wait(3 * support.SLOW))


class StreamServers(Case):
    """Bodies of streamed answers, as real servers send them."""

    OK = b'{"chunk":1}\n{"result":2}\n'

    def ask(self, respond):
        with FakeServer(respond) as fake:
            return cli("call", fake.url, "x", "1", "--stream")

    def test_successes(self):
        for name, pieces, out in (
                ("express", [b'data: {"message":1}\n\n', b'data: {"result":2}\n\n'], self.OK),
                ("spaces in the JSON", [b'data: {"message": 1}\n\n', b'data: { "result" : 2 }\n\n'], self.OK),
                ("no space", [b'data:{"message":1}\n\ndata:{"result":2}\n\n'], self.OK),
                ("next: END", [b'data: {"message":1}\n\n', b'data: {"result":2}\n\n', b"END"], self.OK),
                ("END in one piece", [b'data: {"message":1}\n\ndata: {"result":2}\n\nEND'], self.OK),
                ("no blank line at the end", [b'data: {"message":1}\n\ndata: {"result":2}'], self.OK),
                ("one newline at the end", [b'data: {"message":1}\n\ndata: {"result":2}\n'], self.OK),
                ("CRLF", [b'data: {"message":1}\r\n\r\ndata: {"result":2}\r\n\r\n'], self.OK),
                ("comments and fields", [b': hello\n\nevent: message\nid: 7\nretry: 100\ndata: {"message":1}\n\n',
                                         b':\n\n: keep\ndata: {"result":2}\n\n'], self.OK),
                ("a byte order mark", [b'\xef\xbb\xbfdata: {"message":1}\n\ndata: {"result":2}\n\n'], self.OK),
                ("empty blocks", [b'\n\n\ndata: {"message":1}\n\n\n\n\ndata: {"result":2}\n\n'], self.OK),
                ("blocks in small pieces", [bytes([b]) for b in b'data: {"message":1}\n\ndata: {"result":2}\n\n'], self.OK),
                ("split UTF-8", [b'data: {"message":"\xf0\x9f', b'\x98\x80"}\n\ndata: {"result":"\xe2', b'\x82\xac"}\n\n'],
                 '{"chunk":"\U0001f600"}\n{"result":"€"}\n'.encode()),
                ("a null result", [b'data: {"result":null}\n\n'], b'{"result":null}\n'),
                ("express, undefined result", [b'data: {"message":1}\n\n', b"data: {}\n\n"], b'{"chunk":1}\n{"result":null}\n'),
                ("a second result is nothing", [b'data: {"message":1}\n\ndata: {"result":2}\n\ndata: {"result":3}\n\n'], self.OK),
                ("payloads as text", [b'data: {"message":12345678901234567890}\n\ndata: {"result":{"b":1e400,"a":1}}\n\n'],
                 b'{"chunk":12345678901234567890}\n{"result":{"b":1e400,"a":1}}\n'),
        ):
            for ctype in ("text/event-stream", "text/plain"):
                with self.subTest((name, ctype)):
                    self.done(self.ask(canned_stream(pieces, ctype, delay=0.002)), out)

    def test_close_delimited(self):
        def respond(s, _):
            s.sendall(b'HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {"message":1}\n\ndata: {"result":2}\n\n')
            return False
        self.done(self.ask(respond), self.OK)

    def test_the_result_ends_the_call(self):
        # a server that does not close its stream after the result
        def respond(s, _):
            s.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n14\r\ndata: {"result":2}\n\n\r\n')
            s.recv(1)
            return False
        r = self.ask(respond)
        self.done(r, b'{"result":2}\n')
        self.assertLess(r.seconds, 3 * support.SLOW)

    def test_failures(self):
        for name, pieces, status, message, out in (
                ("express", [b'data: {"message":1}\n\n', b'error: {"error":{"message":"Internal Error","status":"INTERNAL"}}\n\n'],
                 "INTERNAL", "Internal Error", b'{"chunk":1}\n'),
                ("go, python: data:", [b'data: {"message":1}\n\n', b'data: {"error":{"status":"NOT_FOUND","message":"gone"}}\n\n'], "NOT_FOUND", "gone",
                 b'{"chunk":1}\n'),
                ("next: no envelope, END", [b'error: {"status":"ABORTED","message":"again"}\n\n', b"END"], "ABORTED", "again", b""),
                ("dart: a code", [b'error: {"error":{"code":404,"status":"NOT_FOUND","message":"gone"}}\n\n'], "NOT_FOUND", "gone", b""),
                ("no space, no blank line", [b'error:{"error":{"status":"NOT_FOUND","message":"gone"}}'], "NOT_FOUND", "gone", b""),
                ("CRLF", [b'error: {"error":{"status":"NOT_FOUND","message":"gone"}}\r\n\r\n'], "NOT_FOUND", "gone", b""),
        ):
            with self.subTest(name):
                r = self.ask(canned_stream(pieces))
                self.failed(r, 1, status, message)
                self.assertEqual(r.out, out)

    def test_next_before_the_first_chunk(self):
        body = b'error: {"status":"PERMISSION_DENIED","message":"no"}\n\nEND'
        self.failed(self.ask(canned("403 Forbidden", body, "text/event-stream")), 1, "PERMISSION_DENIED")

    def test_broken(self):
        for name, pieces in (
                ("bad json", [b"data: {oops}\n\n"]), ("text", [b"hello world\n\n"]), ("an unknown member", [b'data: {"foo":1}\n\n']),
                ("bad utf-8", [b'data: {"message":"\xff"}\n\ndata: {"result":2}\n\n']), ("html", [b"<html>\n\n"]), ("an array", [b"data: [1]\n\n"]),
        ):
            with self.subTest(name):
                self.failed(self.ask(canned_stream(pieces)), 4)

    def test_cut(self):
        for name, respond in (
                ("closed after a chunk", canned_stream([b'data: {"message":1}\n\n'], end=False)),
                ("closed in a block", canned_stream([b'data: {"message":1}\n\n', b'data: {"res'], end=False)),
        ):
            with self.subTest(name):
                r = self.ask(respond)
                self.failed(r, 3, "UNAVAILABLE")
                self.assertEqual(r.out, b'{"chunk":1}\n')

    def test_a_proper_end_without_a_result(self):
        for name, pieces in (("after a chunk", [b'data: {"message":1}\n\n']), ("in a block", [b'data: {"message":1}\n\ndata: {"res']), ("empty", [])):
            with self.subTest(name):
                r = self.ask(canned_stream(pieces))
                self.assertIn(r.code, (3, 4), r)
                r.error()

    def test_stalled_with_a_deadline(self):
        def respond(s, _):
            s.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n15\r\ndata: {"message":1}\n\n\r\n')
            s.recv(1)
            return False
        with FakeServer(respond) as fake:
            r = cli("call", fake.url, "x", "--stream", "--timeout", "400ms")
        self.failed(r, 5, "DEADLINE_EXCEEDED")
        self.assertEqual(r.out, b'{"chunk":1}\n')

    def test_corpus(self):
        cases = support.corpus("own-genkit-stream", "genkit-stream-cases.jsonl")
        for case in cases:
            body = bytes.fromhex(case["body_hex"])
            for split in (None, 1, 3):
                with self.subTest((case["id"], split)):
                    pieces = [body] if split is None else [body[i:i + split] for i in range(0, len(body), split)]
                    r = self.ask(canned_stream(pieces))
                    wanted = case["expect"].get("any", [case["expect"]])
                    self.assertTrue(any(self.agrees(r, w) for w in wanted), (case["id"], case["expect"], r))

    def agrees(self, r, want):
        lines = [json.loads(line) for line in r.lines()]
        chunks = [line["chunk"] for line in lines if "chunk" in line]
        if chunks != want.get("messages", []):
            return False
        if "result" in want:
            return r.code == 0 and lines[-1] == {"result": want["result"]}
        if "error" in want:
            return r.code == 1 and r.error()["status"] == want["error"]
        return r.code in (3, 4) and bool(r.error())


class Help(Case):
    def test_help_of_each_verb(self):
        for args, words in ((["--help"], ["serve", "call", "list", "describe", "--version"]),
                            (["serve", "--help"], ["--listen", "--demo", "--threads", "--drain", "--allow-host", "--allow-remote", "--limit", "--log-level"]),
                            (["call", "--help"], ["--stream", "--timeout", "TARGET", "ACTION", "INPUT", "@"]),
                            (["list", "--help"], ["TARGET"]), (["describe", "--help"], ["TARGET", "ACTION"])):
            with self.subTest(args):
                r = cli(*args)
                self.assertEqual((r.code, r.err), (0, b""), r)
                for word in words:
                    self.assertIn(word, r.out.decode())
                self.assertNotIn(b"\x1b", r.out)
                self.assertTrue(r.out.endswith(b"\n"))
                self.assertLessEqual(max(len(line) for line in r.lines()), 120)

    def test_version(self):
        r = cli("--version")
        self.assertEqual((r.code, r.err), (0, b""), r)
        self.assertRegex(r.out.decode(), r"\Aeverywire \d+\.\d+\.\d+[^\n]*\n\Z")

    def test_no_verb(self):
        self.usage(cli())
        self.usage(cli("frobnicate"))
        self.usage(cli("--frobnicate"))

    def test_no_colour_in_pipes(self):
        for env in ({}, {"NO_COLOR": "1"}, {"TERM": "xterm-256color"}):
            self.assertNotIn(b"\x1b", cli("nonsense", env=env).err)


class Serve(Case):
    def test_lines(self):
        with Server(listen=("127.0.0.1:0", "http=127.0.0.1:0")) as s:
            self.assertEqual(len(s.lines), 3)
            one, two, ready = [json.loads(line) for line in s.lines]
            self.assertEqual(one, {"event": "listening", "wire": "any", "address": "127.0.0.1:%d" % one["port"], "port": one["port"]})
            self.assertEqual(two, {"event": "listening", "wire": "http", "address": "127.0.0.1:%d" % two["port"], "port": two["port"]})
            self.assertEqual(ready, {"event": "ready"})
            self.assertNotEqual(one["port"], two["port"])
            self.assertGreater(one["port"], 0)
            for event in (one, two):
                self.done(cli("call", "http://127.0.0.1:%d" % event["port"], "echo", "1"), b"1\n")

    def test_ipv6(self):
        try:
            with socket.socket(socket.AF_INET6) as probe:
                probe.bind(("::1", 0))
        except OSError:
            self.skipTest("no IPv6 loopback here")
        with Server(listen=("[::1]:0",)) as s:
            self.assertEqual(s.listeners[0]["address"], "[::1]:%d" % s.port)
            self.done(cli("call", "http://[::1]:%d" % s.port, "echo", "1"), b"1\n")

    def test_without_demo(self):
        with Server(demo=False) as s:
            self.failed(cli("call", s.url, "echo", "1"), 1, "NOT_FOUND")
            r = cli("list", s.url)
            self.assertEqual((r.code, json.loads(r.out.decode())), (0, {}))

    def test_threads(self):
        for n in ("1", "3"):
            with Server("--threads", n) as s:
                for _ in range(20):
                    self.assertEqual(s.call("/echo", b"1").status, 200)

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen(1)
            port = taken.getsockname()[1]
            r = cli("serve", "--demo", "--listen", "127.0.0.1:%d" % port)
            self.assertNotIn(r.code, (0, 130, 143), r)
            self.assertIn(b"%d" % port, r.err)
            self.assertIn(b"in use", r.err.lower())
            self.assertNotIn(b"ready", r.out)

    def test_port_in_use_by_another_everywire(self):
        # SO_REUSEPORT must not let two servers share a port unnoticed
        r = cli("serve", "--demo", "--listen", "127.0.0.1:%d" % server.port, timeout=5)
        self.assertNotIn(r.code, (0, 130, 143), r)
        self.assertIn(b"in use", r.err.lower())

    def test_one_of_two_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen(1)
            r = cli("serve", "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:%d" % taken.getsockname()[1])
            self.assertNotIn(r.code, (0, 130, 143), r)
            self.assertNotIn(b"ready", r.out)

    def test_loopback_only(self):
        for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:0"):
            with self.subTest(address):
                r = cli("serve", "--listen", address)
                self.assertNotIn(r.code, (0, 130, 143), r)
                self.assertIn(b"--allow-remote", r.err)
                self.assertNotIn(b"listening", r.out)
        with Server("--allow-remote", "--no-token", listen=("0.0.0.0:0",)) as s:
            self.done(cli("call", s.url, "echo", "1"), b"1\n")

    def test_bad_options(self):
        for args in (["--listen", "nonsense"], ["--listen", "127.0.0.1:99999"], ["--listen", "nope=127.0.0.1:0"], ["--threads", "x"],
                     ["--limit", "nope=1"], ["--limit", "head_ms"], ["--limit", "head_ms=x"], ["--drain", "x"], ["--log-level", "nope"], ["extra"]):
            with self.subTest(args):
                self.usage(cli("serve", *args))

    def test_a_nearly_right_limit(self):
        self.usage(cli("serve", "--limit", "heads_ms=1"), "head_ms")


class Drain(Case):
    def start(self, *args):
        s = Server(*args, check_exit=False).start()
        self.addCleanup(s.__exit__, None, None, None)
        return s

    def running_call(self, s, ms, headers=()):
        c = s.connect()
        self.addCleanup(c.close)
        c.send(request("POST", "/flow/sleep", b'{"data":{"ms":%d}}' % ms, headers, port=s.port))
        self.assertTrue(wait_until(lambda: s.metrics().total(support.IN_FLIGHT) >= 1))
        return c

    def test_idle_ends_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            s = self.start()
            idle = s.connect()
            self.assertEqual(s.call("/echo", b"1").status, 200)
            begin = time.monotonic()
            s.signal(number)
            self.assertEqual(s.wait(5), 0)
            self.assertLess(time.monotonic() - begin, 2 * support.SLOW)
            idle.close()

    def test_running_calls_finish(self):
        s = self.start()
        kept = s.connect()
        self.addCleanup(kept.close)
        kept.send(request("POST", "/flow/echo", b'{"data":1}', port=s.port))
        self.assertEqual(kept.response().status, 200)
        c = self.running_call(s, 1500)
        stream = s.connect()
        self.addCleanup(stream.close)
        stream.send(request("POST", "/flow/count", b'{"data":{"n":12,"delay_ms":100}}', [("Accept", "text/event-stream")], port=s.port))
        stream_head = stream.head()
        s.signal()
        self.assertTrue(wait_until(lambda: support.refused(s.port), 1.0), "new connections are still taken")
        # a request on a kept connection is refused, and the connection ends
        kept.send(request("POST", "/flow/echo", b'{"data":1}', port=s.port))
        r = kept.response()
        self.assertEqual(r.status, 503, r)
        self.assertEqual(r.json()["status"], "UNAVAILABLE")
        self.assertTrue(r.closes())
        self.assertTrue(kept.closed())
        self.assertTrue(s.running())
        # what ran goes on to its end
        self.assertEqual(len(support.blocks(stream.body(stream_head).body)), 13)
        r = c.response()
        self.assertEqual((r.status, r.body.rstrip(b"\n")), (200, b'{"result":{"slept_ms":1500}}'))
        self.assertTrue(c.closed())
        self.assertEqual(s.wait(5), 0)

    def test_readyz_while_draining(self):
        s = self.start()
        kept = s.connect()
        self.addCleanup(kept.close)
        kept.send(request("GET", "/readyz", port=s.port))
        self.assertEqual(kept.response().status, 200)
        self.running_call(s, 1000)
        s.signal()
        self.assertTrue(wait_until(lambda: support.refused(s.port), 1.0))
        kept.send(request("GET", "/readyz", port=s.port))
        self.assertEqual(kept.response().status, 503)
        self.assertEqual(s.wait(5), 0)

    def test_the_time_is_bounded(self):
        s = self.start("--drain", "400ms")
        c = self.running_call(s, 60000)
        begin = time.monotonic()
        s.signal()
        s.wait(8)
        took = time.monotonic() - begin
        self.assertGreater(took, 0.35)
        self.assertLess(took, 3 * support.SLOW)
        try:
            r = c.response()
            self.assertIn(r.status, (499, 503, 504), r)
        except (support.Closed, AssertionError):
            pass

    def test_second_signal(self):
        for first, second, code in ((signal.SIGTERM, signal.SIGTERM, 143), (signal.SIGINT, signal.SIGINT, 130), (signal.SIGTERM, signal.SIGINT, 130)):
            with self.subTest((first, second)):
                s = self.start()
                self.running_call(s, 60000)
                s.signal(first)
                self.assertTrue(wait_until(lambda: support.refused(s.port), 2.0))
                begin = time.monotonic()
                s.signal(second)
                self.assertEqual(s.wait(5), code)
                self.assertLess(time.monotonic() - begin, 1.5 * support.SLOW)

    def test_the_caller_sees_a_drained_call(self):
        s = self.start()
        p = subprocess.Popen([support.BINARY, "call", s.url, "sleep", '{"ms":1000}'], stdout=subprocess.PIPE)
        self.assertTrue(wait_until(lambda: s.metrics().total(support.IN_FLIGHT) == 1))
        s.signal()
        out, _ = p.communicate(timeout=10)
        self.assertEqual((p.returncode, out), (0, b'{"slept_ms":1000}\n'))
        self.assertEqual(s.wait(5), 0)

    def test_drain_with_calls_on_several_loops(self):
        for i in range(8):
            s = self.start("--threads", "3")
            conns = [s.connect() for _ in range(1 + i)]
            for c in conns:
                c.send(request("POST", "/flow/sleep", b'{"data":{"ms":150}}', port=s.port))
            self.assertTrue(wait_until(lambda: s.metrics().total(support.IN_FLIGHT) == len(conns)))
            s.signal()
            for c in conns:
                self.assertEqual(c.response().status, 200)
                c.close()
            self.assertEqual(s.wait(5), 0, s.stderr())

    def test_a_killed_server(self):
        s = self.start()
        p = subprocess.Popen([support.BINARY, "call", s.url, "count", '{"n":100000,"delay_ms":20}', "--stream"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        p.stdout.readline()
        s.process.kill()
        _, err = p.communicate(timeout=5 * support.SLOW)
        self.assertEqual(p.returncode, 3, err)
        self.assertIn(b'"UNAVAILABLE"', err)


if __name__ == "__main__":
    support.main()
