"""The http wire, one answer per request: envelope, faults, payload fidelity, HTTP framing, limits, deadlines, traces.

SPDX-License-Identifier: Apache-2.0
"""
import hashlib
import json
import re
import threading
import time
import unittest

import support
from support import Server, chunked, request

LIMIT = 16 * 1024 * 1024

STATUSES = {
    "CANCELLED": 499, "UNKNOWN": 500, "INVALID_ARGUMENT": 400, "DEADLINE_EXCEEDED": 504, "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409, "PERMISSION_DENIED": 403, "RESOURCE_EXHAUSTED": 429, "FAILED_PRECONDITION": 400, "ABORTED": 409,
    "OUT_OF_RANGE": 400, "UNIMPLEMENTED": 501, "INTERNAL": 500, "UNAVAILABLE": 503, "DATA_LOSS": 500, "UNAUTHENTICATED": 401,
}

server = None


def setUpModule():
    global server
    server = Server().start()


def tearDownModule():
    server.__exit__(None, None, None)


class Case(unittest.TestCase):
    maxDiff = None

    def trace(self, r):
        self.assertRegex(r.get("x-genkit-trace-id") or "", r"\A[0-9a-f]{32}\Z", r)
        self.assertRegex(r.get("x-genkit-span-id") or "", r"\A[0-9a-f]{16}\Z", r)
        self.assertNotEqual(r.get("x-genkit-trace-id"), "0" * 32)
        self.assertNotEqual(r.get("x-genkit-span-id"), "0" * 16)

    def ok(self, r, result):
        """200 and exactly this result, as bytes."""
        self.assertEqual(r.status, 200, r)
        self.assertRegex(r.get("content-type") or "", r"\Aapplication/json(; ?charset=utf-8)?\Z", r)
        self.trace(r)
        self.assertEqual(r.body.rstrip(b"\n"), b'{"result":' + result + b"}")

    def fault(self, r, http, status=None, message=None):
        self.assertEqual(r.status, http, r)
        self.assertRegex(r.get("content-type") or "", r"\Aapplication/json(; ?charset=utf-8)?\Z", r)
        body = r.json()
        self.assertEqual(body["code"], http)
        self.assertIn(body["status"], STATUSES)
        self.assertIsInstance(body["message"], str)
        self.assertNotEqual(body["message"], "")
        self.assertLessEqual(set(body), {"code", "status", "message", "details"})
        if status:
            self.assertEqual(body["status"], status)
        if message is not None:
            self.assertEqual(body["message"], message)
        return body


class Envelope(Case):
    def test_echo(self):
        r = server.call("/flow/echo", b'{"a":1}')
        self.ok(r, b'{"a":1}')
        self.assertEqual(r.version, 1)
        self.assertEqual(r.framing, "length")
        self.assertFalse(r.closes())

    def test_paths(self):
        for path in ("/echo", "/flow/echo", "/%65cho", "/flow/ech%6F", "/flow/ech%6f", "/flow%2Fecho", "/echo?x=1", "/flow/echo?"):
            with self.subTest(path):
                self.ok(server.call(path, b"[1]"), b"[1]")

    def test_a_name_of_another_type(self):
        text = b'{"b" : [1, 2]}'
        digest = b'"' + hashlib.sha256(text).hexdigest().encode() + b'"'
        self.ok(server.call("/tool/sha256", text), digest)
        self.ok(server.call("/sha256", text), digest)

    def test_missing_data_is_null(self):
        for body in (b"{}", b'{"data":null}', b' { } ', b'{"init":{}}'):
            with self.subTest(body):
                self.ok(server.post("/flow/echo", body), b"null")

    def test_input_outside_data(self):
        for body in (b'{"other":1}', b'{"name":"Ada"}', b'{"init":{},"name":"Ada"}', b'{"Data":1}'):
            for headers in ((), (("Accept", "text/event-stream"),)):
                with self.subTest(body=body, headers=headers):
                    r = server.post("/flow/echo", body, headers)
                    self.assertEqual((r.status, r.json()["status"]), (400, "INVALID_ARGUMENT"), r)
                    self.assertIn('{"data": INPUT}', r.json()["message"])

    def test_a_slash_at_the_end(self):
        for path in ("/flow/echo/", "/echo/", "/echo/?x=1"):
            with self.subTest(path):
                self.ok(server.post(path, b'{"data":1}'), b"1")
        for path in ("/echo//", "//", "/flow/"):
            with self.subTest(path):
                self.assertEqual(server.post(path, b'{"data":1}').status, 404, path)

    def test_other_members_are_ignored(self):
        self.ok(server.post("/flow/echo", b'{"x":[{"data":9}],"data":1,"y":null,"x":2}'), b"1")

    def test_an_escaped_member_name_is_the_same_name(self):
        self.ok(server.post("/flow/echo", b'{"d\\u0061ta":7}'), b"7")

    def test_white_space_around(self):
        self.ok(server.post("/flow/echo", b'\r\n\t {\n "data" :\t 5 \r\n} \n'), b"5")

    def test_repeated_data_is_refused(self):
        for body in (b'{"data":1,"data":2}', b'{"data":1,"x":0,"data":1}', b'{"data":1,"d\\u0061ta":2}'):
            with self.subTest(body):
                self.fault(server.post("/flow/echo", body), 400, "INVALID_ARGUMENT")

    def test_bad_json(self):
        bad = [b"{", b'{"data":}', b'{"data":1}x', b'{"data":1', b'{"data":1,}', b"{'data':1}", b'{"data":01}', b'{"data":+1}',
               b'{"data":.5}', b'{"data":1.}', b'{"data":NaN}', b'{"data":Infinity}', b'{"data":"a\nb"}', b'{"data":"\x00"}',
               b'{"data":"\\x41"}', b'{"data":"\\u12"}', b'{"data":"\xff"}', b'{"data":"\xc0\xaf"}', b'{"data":"\xed\xa0\x80"}',
               b'{"data":"\xf4\x90\x80\x80"}', b'{"data":[1,]}', b'{"data":tru}', b'{"data" 1}', b'{data:1}', b'{"data":1}{"data":2}',
               b'/**/{"data":1}', b'{"data":"a', b'{"data":1e}', b'\x00{"data":1}', b'{"data":1}\x00', b"\xef\xbb\xbf"]
        with server.connect() as c:
            for body in bad:
                with self.subTest(body):
                    c.send(request("POST", "/flow/echo", body, port=server.port))
                    r = c.response()
                    self.fault(r, 400, "INVALID_ARGUMENT")
                    self.trace(r)
                    self.assertFalse(r.closes(), "the framing is not lost")
            c.send(request("POST", "/flow/echo", b'{"data":1}', port=server.port))
            self.ok(c.response(), b"1")

    def test_a_body_that_is_no_object(self):
        for body in (b"[]", b"1", b'"x"', b"null", b"true", b'["data",1]'):
            with self.subTest(body):
                self.fault(server.post("/flow/echo", body), 400, "INVALID_ARGUMENT")

    def test_empty_body(self):
        for body in (b"", b" ", b"\r\n"):
            with self.subTest(body):
                self.fault(server.post("/flow/echo", body), 400, "INVALID_ARGUMENT")

    def test_no_body_at_all(self):
        with server.connect() as c:
            c.send(request("POST", "/flow/echo", None, [("Content-Type", "application/json")], port=server.port))
            self.fault(c.response(), 400, "INVALID_ARGUMENT")

    def test_depth(self):
        # an input has at most 120 levels
        for depth, code in ((100, 200), (119, 200), (120, 200), (121, 400), (128, 400), (129, 400), (5000, 400), (200000, 400)):
            with self.subTest(depth):
                data = b"[" * depth + b"]" * depth
                r = server.call("/flow/echo", data)
                self.assertEqual(r.status, code, (depth, r.status))
                if code == 200:
                    self.ok(r, data)
                else:
                    self.fault(r, 400, "INVALID_ARGUMENT")
        self.assertEqual(server.call("/flow/echo", b"[" * 100000).status, 400)

    def test_unknown_action(self):
        for path in ("/nothing", "/flow/nothing", "/tool/echo", "/flow/Echo", "/", "/flow", "/flow/", "/flow/echo/x", "/%E2%82%AC"):
            with self.subTest(path):
                r = server.call(path, b"1")
                if path == "/":  # it is Stepflow's, and this body is no message of JSON-RPC
                    self.assertEqual((r.status, json.loads(r.body)["error"]["code"]), (400, -32600))
                    continue
                self.fault(r, 404, "NOT_FOUND")
                self.trace(r)

    def test_unknown_action_with_stream_asked(self):
        self.fault(server.call("/nothing", b"1", [("Accept", "text/event-stream")]), 404, "NOT_FOUND")

    def test_a_foreign_stream_id_is_ignored(self):
        self.ok(server.call("/echo", b"1", [("x-genkit-stream-id", "abc")]), b"1")


class Demo(Case):
    def test_greet(self):
        self.ok(server.call("/flow/greet", b'{"name":"Ada"}'), b'"Hello, Ada!"')
        self.ok(server.call("/greet", b'"Ada"'), b'"Hello, Ada!"')

    def test_greet_escapes(self):
        for name in ("a\"b\\c\n\t\x01", "Zoë €  \U0001f600", "\x7f</script>"):
            with self.subTest(name):
                r = server.call("/flow/greet", json.dumps({"name": name}).encode())
                self.assertEqual(r.json(), {"result": "Hello, %s!" % name})

    def test_unary_drops_chunks(self):
        self.ok(server.call("/flow/count", b'{"n":3}'), b'{"count":3}')
        self.ok(server.call("/flow/stream", b'{"n":2}'), b'{"n":2}')

    def test_sum(self):
        self.ok(server.call("/flow/sum", b"[1,2,3]"), b"6")
        self.ok(server.call("/flow/sum", b"[]"), b"0")
        for bad in (b'["a"]', b'"x"', b"{}"):
            with self.subTest(bad):
                self.assertEqual(server.call("/flow/sum", bad).status, 400)

    def test_sleep(self):
        begin = time.monotonic()
        self.ok(server.call("/flow/sleep", b'{"ms":150}'), b'{"slept_ms":150}')
        self.assertGreaterEqual(time.monotonic() - begin, 0.145)

    def test_big(self):
        for n in (0, 1, 5, 1000, 1000000):
            with self.subTest(n):
                r = server.call("/flow/big", b'{"bytes":%d}' % n)
                self.assertEqual(r.status, 200)
                self.assertRegex(r.body, rb'\A\{"result":"[A-Za-z]{%d}"\}\n?\Z' % n if n < 60000 else rb'\A\{"result":"[A-Za-z]+"\}\n?\Z')
                self.assertEqual(len(r.json()["result"]), n)

    def test_context(self):
        r = server.call("/flow/context", b"null")
        got = r.json()["result"]
        self.assertEqual(set(got), {"wire", "key", "context", "labels", "trace_id", "span_id", "deadline_ms", "attempt"})
        self.assertEqual(got["wire"], "http")
        self.assertEqual(got["key"], "/flow/context")
        self.assertEqual(got["trace_id"], r.get("x-genkit-trace-id"))
        self.assertEqual(got["span_id"], r.get("x-genkit-span-id"))
        for name in ("context", "labels", "deadline_ms", "attempt"):
            self.assertIsNone(got[name], name)

    def test_bad_demo_input_is_an_answer(self):
        for path, data in (("/flow/sleep", b'{"ms":"x"}'), ("/flow/sleep", b'{"ms":-1}'), ("/flow/count", b'"x"'), ("/flow/big", b'{"bytes":-1}'),
                           ("/flow/big", b'{"bytes":1e400}'), ("/flow/fail", b"5"), ("/flow/fail", b'{"status":"NOPE"}'),
                           ("/flow/fail", b'{"status":"OK"}'), ("/flow/big", b'{"bytes":99999999999999999999}')):
            with self.subTest((path, data)):
                r = server.call(path, data)
                if r.status != 200:
                    self.fault(r, r.status)
        self.ok(server.call("/echo", b"1"), b"1")


class Faults(Case):
    def test_every_status(self):
        for status, http in STATUSES.items():
            with self.subTest(status):
                data = {"status": status, "message": "why: \"%s\"" % status, "details": {"k": [1, {"status": "x"}], "n": 1}}
                r = server.call("/flow/fail", json.dumps(data).encode())
                body = self.fault(r, http, status, data["message"])
                self.assertEqual(body["details"], data["details"])
                self.trace(r)

    def test_without_details(self):
        body = self.fault(server.call("/flow/fail", b'{"status":"NOT_FOUND","message":"m"}'), 404, "NOT_FOUND", "m")
        self.assertNotIn("details", body)

    def test_details_are_passed_on_as_text(self):
        r = server.call("/flow/fail", b'{"status":"ABORTED","message":"m","details":{"b":12345678901234567890,"a":1e400,"a":0.10}}')
        self.assertIn(b'"details":{"b":12345678901234567890,"a":1e400,"a":0.10}', r.body)

    def test_defaults(self):
        self.fault(server.call("/flow/fail", b"{}"), 500, "INTERNAL")
        self.fault(server.post("/flow/fail", b"{}"), 500, "INTERNAL")

    def test_messages_survive(self):
        for message in ("line\nbreak\r\n", "Grüße \U0001f600", "\"quoted\" \\ \x01 \x1b[31m", "x" * 100000):
            with self.subTest(message[:20]):
                r = server.call("/flow/fail", json.dumps({"status": "INTERNAL", "message": message}).encode())
                self.fault(r, 500, "INTERNAL", message)

    def test_retry_after(self):
        r = server.call("/flow/fail", b'{"status":"UNAVAILABLE","message":"m","retry_after":3}')
        self.fault(r, 503, "UNAVAILABLE", "m")
        if r.get("retry-after") is not None:
            self.assertEqual(r.get("retry-after"), "3")

    def test_the_connection_goes_on(self):
        with server.connect() as c:
            for status, http in STATUSES.items():
                c.send(request("POST", "/flow/fail", b'{"data":{"status":"%s"}}' % status.encode(), port=server.port))
                r = c.response()
                self.fault(r, http, status)
                self.assertFalse(r.closes(), status)


FIDELITY = [
    b"12345678901234567890", b"-0", b"0.10", b"1e400", b"1E+2", b"-123456789012345678901234567890.5e-7", b"9007199254740993",
    b'{"z":1,"a":2,"m":3}', b'{"a":1,"a":2,"a":{"a":1,"a":1}}', b'"\\u0041\\/\\n\\ud83d\\ude00"', b'"\\u0000"',
    '"Grüße, мир, 世界 \U0001f600"'.encode(), "{\"ключ\":\"\u2028\u2029\"}".encode(), b'{ "a" : [ 1 ,\t2 ] }', b'[\n  1,\r\n  2\n]',
    b'{\n  "text": "a\\nb"\n}', b"true", b"false", b"null", b'""', b"[]", b"{}", b'{"":""}', b'"\x7f"', b'"<script>&\'"',
    b'{"data":{"data":1,"data":2},"result":{"result":1}}', b"[" * 60 + b"]" * 60, b'"' + b"\\u00e9" * 3000 + b'"', b"0" , b"1.0", b"1.00",
]


class Fidelity(Case):
    def test_payloads_byte_for_byte(self):
        with server.connect() as c:
            for data in FIDELITY:
                with self.subTest(data[:60]):
                    c.send(request("POST", "/flow/echo", b'{"data":' + data + b"}", port=server.port))
                    self.ok(c.response(), data)

    def test_many_kinds_at_once(self):
        data = b"[" + b",".join(FIDELITY * 20) + b"]"
        self.ok(server.call("/flow/echo", data), data)

    def test_payload_sizes_round_buffer_limits(self):
        with server.connect() as c:
            for base in (256, 512, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144):
                for n in (base - 12, base - 11, base - 10, base - 1, base, base + 1):
                    data = b'"' + b"x" * n + b'"'
                    c.send(request("POST", "/flow/echo", b'{"data":' + data + b"}", port=server.port))
                    self.ok(c.response(), data)


class Connections(Case):
    def test_keep_alive(self):
        with server.connect() as c:
            seen = set()
            for i in range(100):
                c.send(request("POST", "/flow/echo", b'{"data":%d}' % i, port=server.port))
                r = c.response()
                self.ok(r, b"%d" % i)
                seen.add(r.get("x-genkit-trace-id"))
            self.assertEqual(len(seen), 100, "each call has its own trace")

    def test_connection_close(self):
        for value in ("close", "Close", "foo, close"):
            with self.subTest(value), server.connect() as c:
                c.send(request("POST", "/flow/echo", b'{"data":1}', [("Connection", value)], port=server.port))
                r = c.response()
                self.ok(r, b"1")
                self.assertTrue(r.closes())
                self.assertTrue(c.closed())

    def test_pipelining_16(self):
        with server.connect() as c:
            c.send(b"".join(request("POST", "/flow/echo", b'{"data":[%d]}' % i, port=server.port) for i in range(16)))
            for i in range(16):
                self.ok(c.response(), b"[%d]" % i)

    def test_pipelining_keeps_the_order(self):
        with server.connect() as c:
            parts = []
            for i in range(8):
                parts.append(request("POST", "/flow/sleep", b'{"data":{"ms":%d}}' % (80 - i * 10), port=server.port))
                parts.append(request("POST", "/flow/echo", b'{"data":%d}' % i, port=server.port))
                parts.append(request("POST", "/tool/sha256", b'{"data":%d}' % i, port=server.port))
            c.send(b"".join(parts))
            for i in range(8):
                self.ok(c.response(), b'{"slept_ms":%d}' % (80 - i * 10))
                self.ok(c.response(), b"%d" % i)
                self.ok(c.response(), b'"' + hashlib.sha256(b"%d" % i).hexdigest().encode() + b'"')

    def test_pipelining_mixed_answers(self):
        with server.connect() as c:
            c.send(request("POST", "/flow/echo", b'{"data":1}', port=server.port) + request("GET", "/flow/echo", port=server.port) +
                   request("POST", "/none", b'{"data":1}', port=server.port) + request("POST", "/flow/echo", b"{", port=server.port) +
                   request("GET", "/healthz", port=server.port) + request("POST", "/flow/echo", b'{"data":2}', port=server.port))
            self.assertEqual([c.response().status for _ in range(6)], [200, 405, 404, 400, 200, 200])

    def test_pipelining_beyond_the_read_ahead(self):
        # 400 KB of requests behind a call that runs: reading stops and goes on again
        n = 2000
        with server.connect() as c:
            first = request("POST", "/flow/sleep", b'{"data":{"ms":300}}', port=server.port)
            c.send_both_ways(first + b"".join(request("POST", "/flow/echo", b'{"data":"%s%d"}' % (b"x" * 40, i), port=server.port)
                                              for i in range(n)))
            self.ok(c.response(), b'{"slept_ms":300}')
            for i in range(n):
                r = c.response()
                self.assertEqual(r.body.rstrip(b"\n"), b'{"result":"%s%d"}' % (b"x" * 40, i))

    def test_half_sent_second_request(self):
        with server.connect() as c:
            one = request("POST", "/flow/echo", b'{"data":1}', port=server.port)
            c.send(one + one[:20])
            self.ok(c.response(), b"1")
            c.send(one[20:])
            self.ok(c.response(), b"1")

    def test_one_byte_at_a_time(self):
        with server.connect() as c:
            data = request("POST", "/flow/echo", b'{"data":{"a":[1,2]}}', port=server.port) * 2
            for i in range(len(data)):
                c.send(data[i:i + 1])
                if i % 7 == 0:
                    time.sleep(0.0005)
            for _ in range(2):
                self.ok(c.response(), b'{"a":[1,2]}')

    def test_random_splits(self):
        data = b"".join(request("POST", "/flow/echo", b'{"data":[%d]}' % i, port=server.port) for i in range(20))
        step = 1
        with server.connect() as c:
            at = 0
            while at < len(data):
                c.send(data[at:at + step])
                at += step
                step = step * 7 % 101 + 1
                time.sleep(0.0002)
            for i in range(20):
                self.ok(c.response(), b"[%d]" % i)

    def test_parallel_calls_do_not_wait_for_each_other(self):
        conns = [server.connect() for _ in range(60)]
        try:
            begin = time.monotonic()
            for c in conns:
                c.send(request("POST", "/flow/sleep", b'{"data":{"ms":300}}', port=server.port))
            for c in conns:
                self.ok(c.response(), b'{"slept_ms":300}')
            self.assertLess(time.monotonic() - begin, 2.0 * support.SLOW)
        finally:
            for c in conns:
                c.close()

    def test_parallel_answers_go_home(self):
        problems = []

        def work(k):
            try:
                with server.connect() as c:
                    for i in range(40):
                        path = "/flow/echo" if i % 3 else "/tool/sha256"
                        data = b'"%d-%d"' % (k, i)
                        c.send(request("POST", path, b'{"data":' + data + b"}", port=server.port))
                        r = c.response()
                        want = data if i % 3 else b'"' + hashlib.sha256(data).hexdigest().encode() + b'"'
                        if r.body.rstrip(b"\n") != b'{"result":' + want + b"}":
                            problems.append((k, i, r))
            except Exception as e:  # pylint: disable=broad-except
                problems.append((k, repr(e)))
        threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(30 * support.SLOW)
        self.assertEqual(problems, [])

    def test_a_client_that_vanishes(self):
        one = request("POST", "/flow/sleep", b'{"data":{"ms":50}}', port=server.port)
        for cut in (1, 10, 60, len(one) - 1, len(one)):
            for _ in range(5):
                c = server.connect()
                c.send(one[:cut])
                c.abort()
        self.ok(server.call("/echo", b"1"), b"1")

    def test_empty_connections(self):
        for _ in range(50):
            server.connect().close()
        self.ok(server.call("/echo", b"1"), b"1")


class Http(Case):
    def test_http10(self):
        with server.connect() as c:
            c.send(request("POST", "/flow/echo", b'{"data":1}', port=server.port, version="1.0"))
            r = c.response()
            self.ok(r, b"1")
            self.assertNotEqual(r.framing, "chunked")
            self.assertTrue(c.closed())

    def test_http10_without_host(self):
        with server.connect() as c:
            c.send(request("POST", "/flow/echo", b'{"data":1}', host=False, version="1.0"))
            self.ok(c.response(), b"1")
            self.assertTrue(c.closed())

    def test_http10_keep_alive(self):
        with server.connect() as c:
            one = request("POST", "/flow/echo", b'{"data":1}', [("Connection", "keep-alive")], port=server.port, version="1.0")
            c.send(one)
            r = c.response()
            self.ok(r, b"1")
            if "keep-alive" in (r.get("connection") or "").lower():
                c.send(one)
                self.ok(c.response(), b"1")
            else:
                self.assertTrue(c.closed(), "it neither promised to stay nor closed")

    def test_head(self):
        with server.connect() as c:
            for path, codes in (("/healthz", (200,)), ("/flow/echo", (405,)), ("/metrics", (200,)), ("/none", (404, 405))):
                c.send(request("HEAD", path, port=server.port))
                r = c.response(to_head=True)
                self.assertIn(r.status, codes, path)
            c.send(request("POST", "/flow/echo", b'{"data":1}', port=server.port))
            self.ok(c.response(), b"1")

    def test_other_methods(self):
        with server.connect() as c:
            for method in ("GET", "PUT", "DELETE", "PATCH"):
                with self.subTest(method):
                    body = b'{"data":1}' if method in ("PUT", "PATCH") else None
                    c.send(request(method, "/flow/echo", body, port=server.port))
                    r = c.response()
                    self.fault(r, 405)
                    self.assertIn("POST", re.split(r"[ ,]+", r.get("allow") or ""))
                    self.trace(r)
            c.send(request("POST", "/flow/echo", b'{"data":1}', port=server.port))
            self.ok(c.response(), b"1")

    def test_get_runs_nothing(self):
        before = server.metrics().total(support.CALLS, action="/flow/echo")
        for path in ("/flow/echo", "/flow/echo?data=1", "/flow/echo?stream=true", "/echo?data=%7B%7D"):
            r = server.get(path, [("Accept", "text/event-stream")])
            self.assertEqual(r.status, 405)
        with server.connect() as c:
            c.send(request("GET", "/flow/echo", b'{"data":1}', port=server.port))
            self.assertEqual(c.response().status, 405)
        self.assertEqual(server.metrics().total(support.CALLS, action="/flow/echo"), before)

    def test_post_to_the_pages(self):
        for path in ("/healthz", "/readyz", "/metrics", "/api/actions"):
            with self.subTest(path):
                self.assertIn(server.post(path, b"{}").status, (404, 405))

    def test_options(self):
        for path in ("/flow/echo", "*"):
            with self.subTest(path), server.connect() as c:
                c.send(request("OPTIONS", path, port=server.port))
                r = c.response()
                self.assertIn(r.status, (200, 204, 404, 405, 400) if path == "*" else (200, 204, 405))
                self.assertFalse([n for n, _ in r.headers if n.startswith("access-control-")], r)
                if path != "*":
                    self.assertIn("POST", r.get("allow") or "")

    def test_expect_continue(self):
        with server.connect() as c:
            for _ in range(2):
                body = b'{"data":"later"}'
                c.send(request("POST", "/flow/echo", body, [("Expect", "100-continue")], port=server.port)[:-len(body)])
                r = c.response(interim=True)
                self.assertEqual(r.status, 100)
                self.assertEqual(r.headers, [])
                self.assertTrue(c.quiet(0.05))
                c.send(body)
                self.ok(c.response(interim=True), b'"later"')

    def test_expect_continue_chunked(self):
        with server.connect() as c:
            c.send(request("POST", "/flow/echo", b"", [("Transfer-Encoding", "chunked"), ("Expect", "100-continue")], port=server.port, length=False))
            self.assertEqual(c.response(interim=True).status, 100)
            c.send(chunked(b'{"data":1}', 4))
            self.ok(c.response(interim=True), b"1")

    def test_expect_continue_with_the_body_at_once(self):
        with server.connect() as c:
            c.send(request("POST", "/flow/echo", b'{"data":1}', [("Expect", "100-Continue")], port=server.port))
            self.ok(c.response(), b"1")

    def test_expect_continue_http10(self):
        # RFC 9110 10.1.1: a 1.0 client gets no interim answer
        with server.connect() as c:
            c.send(request("POST", "/flow/echo", b'{"data":1}', [("Expect", "100-continue")], port=server.port, version="1.0"))
            self.ok(c.response(interim=True), b"1")

    def test_expect_refused_without_the_body(self):
        for path, ctype, n, code in (("/flow/echo", "application/json", LIMIT + 1, 413), ("/flow/echo", "text/plain", 10, 415),
                                     ("/none", "application/json", 10, 404)):
            with self.subTest(code), server.connect() as c:
                c.send(("POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n"
                        % (path, server.port, ctype, n)).encode())
                r = c.response(interim=True)
                if r.status == 100 and code == 404:
                    c.send(b'{"data":1}')
                    r = c.response(interim=True)
                self.assertEqual(r.status, code)

    def test_absolute_form(self):
        with server.connect() as c:
            c.send(request("POST", "http://127.0.0.1:%d/flow/echo" % server.port, b'{"data":1}', port=server.port))
            self.assertIn(c.response().status, (200, 400))

    def test_415(self):
        for ctype in (None, "text/plain", "text/json", "application/x-www-form-urlencoded", "application/jsonx", "application/json+x", "",
                      "application/json, text/plain", "*/*"):
            with self.subTest(ctype):
                with server.connect() as c:
                    c.send(request("POST", "/flow/echo", b'{"data":1}', port=server.port, ctype=ctype))
                    r = c.response()
                    self.fault(r, 415)
                    self.trace(r)
        for ctype in ("application/json", "application/json;charset=utf-8", "application/json ; charset=\"UTF-8\"", "APPLICATION/Json"):
            with self.subTest(ctype), server.connect() as c:
                c.send(request("POST", "/flow/echo", b'{"data":1}', port=server.port, ctype=ctype))
                self.ok(c.response(), b"1")

    def test_content_encoding(self):
        self.fault(server.call("/flow/echo", b"1", [("Content-Encoding", "gzip")]), 415)

    def test_two_content_types(self):
        self.assertIn(server.call("/flow/echo", b"1", [("Content-Type", "text/plain")]).status, (400, 415))


class Chunked(Case):
    def send(self, raw, headers=()):
        with server.connect() as c:
            c.send(request("POST", "/flow/echo", b"", [("Transfer-Encoding", "chunked")] + list(headers), port=server.port, length=False) + raw)
            return c.response()

    def test_sizes(self):
        data = b'{"a":"%s"}' % (b"y" * 300)
        for size in (1, 2, 7, 16, 255, 256, 1000):
            with self.subTest(size):
                self.ok(self.send(chunked(b'{"data":' + data + b"}", size)), data)

    def test_forms_of_the_size_line(self):
        for raw in (b'A\r\n{"data":1}\r\n0\r\n\r\n', b'00a\r\n{"data":1}\r\n000\r\n\r\n', b'a;x=y\r\n{"data":1}\r\n0;z\r\n\r\n',
                    b'a;q="a b"\r\n{"data":1}\r\n0\r\n\r\n', b'a\r\n{"data":1}\r\n0\r\nX-Trailer: 1\r\nY: 2\r\n\r\n'):
            with self.subTest(raw):
                self.ok(self.send(raw), b"1")

    def test_keep_alive_after_chunked(self):
        with server.connect() as c:
            one = request("POST", "/flow/echo", b"", [("Transfer-Encoding", "chunked")], port=server.port, length=False)
            c.send((one + chunked(b'{"data":1}', 1)) * 5)
            for _ in range(5):
                self.ok(c.response(), b"1")

    def test_one_byte_at_a_time(self):
        data = request("POST", "/flow/echo", b"", [("Transfer-Encoding", "chunked")], port=server.port, length=False) + chunked(b'{"data":[1,2]}', 3)
        with server.connect() as c:
            for i in range(len(data)):
                c.send(data[i:i + 1])
                if i % 5 == 0:
                    time.sleep(0.0005)
            self.ok(c.response(), b"[1,2]")

    def test_empty(self):
        self.fault(self.send(b"0\r\n\r\n"), 400, "INVALID_ARGUMENT")

    def test_extensions_are_bounded(self):
        r = self.send(b"".join(b"1;" + b"e" * 500 + b"\r\n \r\n" for _ in range(20)))
        self.assertEqual(r.status // 100, 4)
        self.assertTrue(r.closes())


class Limits(Case):
    def envelope(self, n):
        """An envelope of exactly n bytes; an eighth of it is white space, since an input is smaller than a body may be."""
        return b'{"data":"' + b"z" * (n - n // 8 - 11) + b'"' + b" " * (n // 8) + b"}"

    def test_one_megabyte(self):
        body = self.envelope(1 << 20)
        self.ok(server.post("/flow/echo", body), body[8:-1].rstrip())

    def test_input_limit(self):
        """An input leaves 64 KiB of the limit of a message to its envelope. The connection goes on."""
        with server.connect() as c:
            for n, code in ((LIMIT - 65536, 200), (LIMIT - 65536 + 1, 413), (100, 200)):
                body = b'{"data":"' + b"z" * (n - 2) + b'"}'
                c.send_both_ways(request("POST", "/flow/echo", body, port=server.port))
                r = c.response(30)
                self.assertEqual(r.status, code, n)
                self.assertFalse(r.closes())

    def test_body_limit_by_length(self):
        for n in (LIMIT - 1, LIMIT):
            with self.subTest(n), server.connect() as c:
                body = self.envelope(n)
                c.send_both_ways(request("POST", "/flow/echo", body, port=server.port))
                self.ok(c.response(30), body[8:-1].rstrip())
        with server.connect() as c:
            # refused from the head alone
            c.send(("POST /flow/echo HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                    % (server.port, LIMIT + 1)).encode())
            r = c.response()
            self.fault(r, 413)
            self.assertTrue(r.closes())
        with server.connect() as c:
            # and the answer arrives although the client goes on sending
            c.send_both_ways(request("POST", "/flow/echo", self.envelope(LIMIT + 1), port=server.port))
            self.fault(c.response(), 413)

    def test_other_limits_chunked(self):
        """The limit is exact whatever it is, also below the step by which a body's memory grows."""
        for limit in (4096, 5 * 1024 * 1024 // 4):
            with self.subTest(limit), support.Server("--limit", "frame_bytes=%d" % limit) as s:
                for n, code in ((limit - 1, 200), (limit, 200), (limit + 1, 413)):
                    with s.connect() as c:
                        head = request("POST", "/flow/echo", b"", [("Transfer-Encoding", "chunked")], port=s.port, length=False)
                        c.send_both_ways(head + chunked(self.envelope(n), 1000))
                        self.assertEqual(c.response(30).status, code, n)

    def test_body_limit_chunked(self):
        for n, code in ((LIMIT, 200), (LIMIT + 1, 413)):
            with self.subTest(n), server.connect() as c:
                body = self.envelope(n)
                c.send_both_ways(request("POST", "/flow/echo", b"", [("Transfer-Encoding", "chunked")], port=server.port, length=False) +
                                 chunked(body, 65536))
                r = c.response(30)
                self.assertEqual(r.status, code)
                if code == 413:
                    self.fault(r, 413)
                    self.assertTrue(r.closes())
                else:
                    self.assertEqual(len(r.body.rstrip(b"\n")), n - n // 8 + 2)

    def test_header_fields(self):
        # Host, Content-Type and Content-Length are three of them
        for n, code in ((99, 200), (100, 200), (101, 431), (500, 431)):
            with self.subTest(n):
                r = server.call("/flow/echo", b"1", [("X-%d" % i, "y") for i in range(n - 3)])
                self.assertEqual(r.status, code, r)
                if code == 431:
                    self.fault(r, 431)
                    self.assertTrue(r.closes())

    def test_head_bytes(self):
        for n, code in ((32 * 1024 - 16, 200), (32 * 1024 + 16, 431), (100 * 1024, 431)):
            with self.subTest(n), server.connect() as c:
                body = b'{"data":1}'
                empty = len(request("POST", "/flow/echo", body, [("X-Pad", "")], port=server.port)) - len(body)
                c.try_send(request("POST", "/flow/echo", body, [("X-Pad", "p" * (n - empty))], port=server.port))
                r = c.response()
                self.assertEqual(r.status, code)
                if code == 431:
                    self.fault(r, 431)
                    self.assertTrue(c.closed())

    def test_a_head_without_end(self):
        with server.connect() as c:
            c.try_send(b"POST /flow/echo HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % server.port + b"X: y\r\n" * 200000)
            r = c.response()
            self.fault(r, 431)

    def test_target_bytes(self):
        for n, codes in ((8 * 1024, (404,)), (8 * 1024 + 1, (414,)), (20 * 1024, (414, 431))):
            with self.subTest(n):
                r = server.call("/" + "a" * (n - 1), b"1")
                self.assertIn(r.status, codes)
                self.fault(r, r.status)

    def test_long_query(self):
        self.ok(server.call("/flow/echo?" + "x=y&" * 1500, b"1"), b"1")


class Deadlines(Case):
    def test_a_deadline_ends_the_call(self):
        for ms in (100, 400):
            with self.subTest(ms):
                begin = time.monotonic()
                r = server.call("/flow/sleep", b'{"ms":8000}', [("x-everywire-timeout-ms", str(ms))])
                took = time.monotonic() - begin
                self.fault(r, 504, "DEADLINE_EXCEEDED")
                self.trace(r)
                self.assertGreaterEqual(took, ms / 1000 - 0.02)
                self.assertLess(took, ms / 1000 + 0.6 * support.SLOW)

    def test_the_connection_goes_on(self):
        with server.connect() as c:
            c.send(request("POST", "/flow/sleep", b'{"data":{"ms":5000}}', [("x-everywire-timeout-ms", "50")], port=server.port) +
                   request("POST", "/flow/echo", b'{"data":1}', port=server.port))
            self.fault(c.response(), 504, "DEADLINE_EXCEEDED")
            self.ok(c.response(), b"1")

    def test_a_call_in_time(self):
        self.ok(server.call("/flow/sleep", b'{"ms":50}', [("x-everywire-timeout-ms", "5000")]), b'{"slept_ms":50}')

    def test_the_handler_sees_it(self):
        r = server.call("/flow/context", b"null", [("X-Everywire-Timeout-Ms", "5000")])
        left = r.json()["result"]["deadline_ms"]
        self.assertGreater(left, 3000)
        self.assertLessEqual(left, 5000)

    def test_bad_values_never_run_without_a_limit(self):
        for value in ("abc", "-1", "1.5", "", "99999999999999999999999", "1 2", "0x10"):
            with self.subTest(value):
                r = server.call("/flow/echo", b"1", [("x-everywire-timeout-ms", value)])
                self.fault(r, 400, "INVALID_ARGUMENT")


class Traces(Case):
    def test_traceparent_is_continued(self):
        trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
        for path, data in (("/flow/context", b"null"), ("/flow/fail", b"{}"), ("/none", b"1")):
            r = server.call(path, data, [("traceparent", "00-%s-%s-01" % (trace, parent))])
            self.assertEqual(r.get("x-genkit-trace-id"), trace, path)
            self.assertRegex(r.get("x-genkit-span-id"), r"\A[0-9a-f]{16}\Z")
            self.assertNotEqual(r.get("x-genkit-span-id"), parent)

    def test_corpus(self):
        cases = support.corpus("trace-context", "trace-context-cases.jsonl")
        for case in cases:
            with self.subTest(case["id"]):
                for _ in range(case["count"]):
                    r = server.call("/flow/context", b"null", [tuple(h) for h in case["headers"]])
                    self.assertEqual(r.status, 200, r)
                    got = r.json()["result"]["trace_id"]
                    self.assertEqual(got, r.get("x-genkit-trace-id"))
                    self.assertRegex(got, r"\A[0-9a-f]{32}\Z")
                    self.assertNotEqual(got, "0" * 32)
                    if case["expect"]["trace_id"] == "new":
                        for _, value in case["headers"]:
                            self.assertNotIn(got, value)
                    else:
                        self.assertEqual(got, case["expect"]["trace_id"])
        print("trace-context: %d cases" % len(cases))

    def test_nothing_is_echoed_into_our_headers(self):
        r = server.call("/flow/echo", b"1", [("traceparent", "00-<b>-\x80\xff-01"), ("X-Genkit-Trace-Id", "evil"), ("tracestate", "a=b\tc")])
        self.ok(r, b"1")
        for name, value in r.headers:
            self.assertNotIn("evil", value, name)
            self.assertNotIn("<b>", value, name)


class OtherVersions(Case):
    def test_http2_with_prior_knowledge(self):
        """The refusal is in HTTP/2, so that the client can read it, and the log names the reason."""
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
        with support.Server() as s:
            for size in (1, len(preface)):
                with self.subTest(size=size), s.connect() as c:
                    for i in range(0, len(preface), size):
                        c.try_send(preface[i:i + size])
                    end = support.time.monotonic() + 60 * support.SLOW
                    while c.fill(end):
                        pass
                    settings, goaway = c.buffer[:9], c.buffer[9:]
                    self.assertEqual(settings, b"\0\0\0\x04\0\0\0\0\0")
                    self.assertEqual(goaway[:9], (len(goaway) - 9).to_bytes(3, "big") + b"\x07\0\0\0\0\0")
                    self.assertEqual(goaway[9:17], b"\0\0\0\0\0\0\0\x0d")
            self.assertIn("HTTP/2", s.stderr())
            self.assertEqual(s.call("/echo", b"1").status, 200)


class Listing(Case):
    KEYS = {"/flow/echo", "/flow/greet", "/flow/count", "/flow/sleep", "/flow/fail", "/flow/stream", "/flow/sum", "/flow/context", "/flow/big",
            "/tool/sha256"}

    def test_api_actions(self):
        r = server.get("/api/actions")
        self.assertEqual(r.status, 200)
        self.assertRegex(r.get("content-type"), r"\Aapplication/json")
        got = r.json()
        self.assertLessEqual(self.KEYS, set(got))
        for key, descriptor in got.items():
            self.assertEqual(descriptor["key"], key)
            self.assertEqual(descriptor["name"], key.split("/", 2)[2])


if __name__ == "__main__":
    support.main()
