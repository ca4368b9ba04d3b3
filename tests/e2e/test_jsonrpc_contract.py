"""The jsonrpc wire, one answer per request, over TCP, Unix sockets, stdio and the one port: payloads and ids byte for byte,
every status, envelopes, batches, notifications, framing, rpc.discover. What streams is in test_jsonrpc_stream.py.

SPDX-License-Identifier: Apache-2.0
"""
import json
import random

import support
from support import Closed, frame, over_transports, result, rpc

PARSE, INVALID, NO_METHOD, PARAMS, INTERNAL, SERVER, CANCELLED = -32700, -32600, -32601, -32602, -32603, -32000, -32800

STATUSES = {
    "CANCELLED": CANCELLED, "UNKNOWN": SERVER, "INVALID_ARGUMENT": PARAMS, "DEADLINE_EXCEEDED": SERVER, "NOT_FOUND": SERVER,
    "ALREADY_EXISTS": SERVER, "PERMISSION_DENIED": SERVER, "RESOURCE_EXHAUSTED": SERVER, "FAILED_PRECONDITION": SERVER,
    "ABORTED": SERVER, "OUT_OF_RANGE": SERVER, "UNIMPLEMENTED": SERVER, "INTERNAL": INTERNAL, "UNAVAILABLE": SERVER,
    "DATA_LOSS": SERVER, "UNAUTHENTICATED": SERVER}

PAYLOADS = [
    b"null", b"true", b"0", b"-0", b"-0.0", b'""', b"{}", b"[]", b'"x"', b"1e400", b"1E+2", b"0.10000000000000000000001",
    b"9007199254740993", b"18446744073709551615", b"-170141183460469231731687303715884105728", b"1" * 400,
    b'{"z":1,"a":2,"m":{"y":1,"b":2}}', b'{"a":1,"a":2,"a":1}', b'{"":0}', b'{"id":7,"method":"x","stream":9,"jsonrpc":"1"}',
    '"\u00e9\u20ac\U0001f600\u2028\u2029"'.encode(), '{"\u20ac":"\U0001f600"}'.encode(),
    rb'"\u00e9\u20ac\ud83d\ude00\/\b\f\n\r\t\"\\\u0000"', rb'{"\u0061":1,"a":2}', rb'"\ud800"', rb'"\u000a\u000d"',
    b"[1, 2,\t3]", b'{ "a" : [ ] }', b"[" * 120 + b"]" * 120, b'"' + b"\\n" * 3000 + b'"',
]

IDS = [b"0", b"1", b"-1", b"-0", b"1.0", b"1.5", b"1e3", b"1E+2", b"1e400", b"9007199254740993", b"18446744073709551616",
       b"1" * 300, b"null", b'""', b'"1"', b'"a b"', '"\u00e9\u20ac\U0001f600"'.encode(), rb'"\ud83d\ude00"', rb'"\u0031"',
       rb'"\/\n\"\\"', b'"' + b"i" * 10000 + b'"', b'"null"', b'"{}"', rb'"\u0000"']


class Payloads:
    def test_exact(self):
        with self.transport.connect() as c:
            for payload in PAYLOADS:
                with self.subTest(payload[:60]):
                    c.send(rpc("/flow/echo", payload, b"7"))
                    self.assertEqual(c.line(), result(b"7", payload))

    def test_raw_newlines_in_a_payload(self):
        """They mean nothing in JSON and would end the line: the value is the same without them."""
        for payload in (b"[1,\n 2]", b'{\r\n\t"a" : "x\\ny" ,\n"b":[\n]\n}', b"\n7\r\n", b"[\n" * 90 + b"\n]" * 90):
            with self.subTest(payload[:60]), self.transport.connect() as c:
                c.send(b'{"jsonrpc":"2.0",\n"id":7,"method":"echo","params":' + payload + b"}\n" + rpc("echo", b"8", b"8"))
                line = c.line()
                self.assertTrue(line.startswith(b'{"jsonrpc":"2.0","id":7,"result":'), line[:200])
                self.assertEqual(json.loads(line)["result"], json.loads(payload))
                self.assertNotIn(b"\r", line)
                self.assertEqual(c.line(), result(b"8", b"8"))

    def test_large(self):
        with self.transport.connect() as c:
            for size in (1 << 20, 8 << 20):
                text = ('"%s\u20ac\\n"' % ("0123456789abcde\u00e9" * (size // 17))).encode()
                c.send(rpc("echo", text, b'"big"'))
                self.assertTrue(c.line(30) == result(b'"big"', text), "an echo of %d bytes came back changed" % size)
            m = c.call("big", b'{"bytes":8388608}', timeout=30)
            self.assertEqual(len(m["result"]), 8388608)
            self.assertEqual(c.call("echo", b"1")["result"], 1)

    def test_many_large_at_once(self):
        texts = [b'"%s"' % (b"%d" % i * 200000) for i in range(10)]
        with self.transport.connect() as c:
            c.send(b"".join(rpc("echo", t, b"%d" % i) for i, t in enumerate(texts)))
            got = {json.loads(line)["id"]: line for line in (c.line(30) for _ in texts)}
            for i, t in enumerate(texts):
                self.assertTrue(got[i] == result(b"%d" % i, t))

    def test_over_the_limit(self):
        """The call fails, and the connection goes on."""
        with self.transport.connect() as c:
            c.send(rpc("echo", b'"' + b"x" * (17 << 20) + b'"'), timeout=30)
            m = c.message(30)
            self.assertEqual((m["id"], m["error"]["data"]["status"]), (1, "RESOURCE_EXHAUSTED"))
            self.assertEqual(c.call("echo", b"1")["result"], 1)

    def test_no_params_is_null(self):
        with self.transport.connect() as c:
            c.send(rpc("echo"))
            self.assertEqual(c.line(), result(b"1", b"null"))

    def test_other_actions(self):
        with self.transport.connect() as c:
            self.assertEqual(c.call("greet", b'{"name":"Ada"}')["result"], "Hello, Ada!")
            self.assertEqual(c.call("/flow/count", b'{"n":3}')["result"], {"count": 3})
            self.assertEqual(c.call("sum", b"[1,2,4]")["result"], 7)
            self.assertEqual(c.call("stream", b'{"n":3}')["result"], {"n": 3})
            self.assertEqual(c.call("/flow/sleep", b'{"ms":1}')["result"], {"slept_ms": 1})
            self.assertEqual(c.call("/tool/sha256", b"1")["result"],
                             "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b")
            seen = c.call("context")["result"]
            self.assertEqual((seen["wire"], seen["key"], seen["context"], seen["labels"], seen["deadline_ms"]),
                             ("jsonrpc", "/flow/context", None, None, None))
            self.assertRegex(seen["trace_id"], r"\A[0-9a-f]{32}\Z")


class Errors:
    def error(self, m, code, status):
        self.assertEqual((m["error"]["code"], m["error"]["data"]["status"]), (code, status), m)
        self.assertTrue(m["error"]["message"])
        return m["error"]

    def test_each_status(self):
        self.assertEqual(len(STATUSES), 16)
        with self.transport.connect() as c:
            for status, code in STATUSES.items():
                with self.subTest(status):
                    details = b'{"big":9007199254740993, "z":1,"a":[],"a":1}'
                    c.send(rpc("fail", b'{"status":"%s","message":"so \\u00e9","details":%s}' % (status.encode(), details)))
                    line = c.line()
                    e = self.error(json.loads(line), code, status)
                    self.assertEqual(e["message"], "so \u00e9")
                    self.assertIn(b'"details":' + details + b"}}", line)
                    self.assertEqual(set(e["data"]), {"status", "details"})
                    e = self.error(c.call("fail", b'{"status":"%s"}' % status.encode()), code, status)
                    self.assertEqual(set(e["data"]), {"status"})

    def test_retry(self):
        with self.transport.connect() as c:
            e = self.error(c.call("fail", b'{"status":"UNAVAILABLE","retry_after":1.5}'), SERVER, "UNAVAILABLE")
            self.assertEqual(e["data"], {"status": "UNAVAILABLE", "retryable": True, "retry_after_ms": 1500})

    def test_details_with_newlines(self):
        with self.transport.connect() as c:
            e = self.error(c.call("fail", b'{"details":{"a":\n[1,\r\n2]},"message":"x\\ny"}'), INTERNAL, "INTERNAL")
            self.assertEqual((e["message"], e["data"]["details"]), ("x\ny", {"a": [1, 2]}))

    def test_unknown_methods(self):
        with self.transport.connect() as c:
            for method in ("foobar", "/flow/nothing", "Echo", "/flow/echo/", "echo?stream=false", "$/unknown", "rpc.unknown",
                           "rpc.", "$/", "x" * 5000, "a\0b", "../../x", "$/cancelRequest"):
                with self.subTest(method[:40]):
                    self.error(c.call(method, b"{}"), NO_METHOD, "NOT_FOUND")

    def test_invalid_envelopes(self):
        cases = [(b'{"jsonrpc":"1.0","id":1,"method":"echo"}', 1), (b'{"id":1,"method":"echo"}', 1),
                 (b'{"jsonrpc":2.0,"id":1,"method":"echo"}', 1), (b'{"jsonrpc":"2.0","id":1,"method":7}', 1),
                 (b'{"jsonrpc":"2.0","id":1,"method":"echo","method":"echo"}', 1),
                 (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":1,"params":2}', 1),
                 (rb'{"jsonrpc":"2.0","id":1,"method":"echo","\u0070arams":1,"params":2}', 1),
                 (b'{"jsonrpc":"2.0","id":true,"method":"echo"}', None), (b'{"jsonrpc":"2.0","id":[1],"method":"echo"}', None),
                 (b'{"jsonrpc":"2.0","id":{},"method":"echo"}', None)]
        with self.transport.connect() as c:
            for line, id in cases:
                with self.subTest(line):
                    c.send(line + b"\n")
                    m = c.message()
                    self.assertEqual((m["id"], m["error"]["code"]), (id, INVALID), m)
            self.assertEqual(c.call("echo", b"1")["result"], 1)

    def test_bad_stream_values(self):
        with self.transport.connect() as c:
            for value in (b"4", b"-1", b'"1"', b"1.5", b"true", b"[]", b"99999999999999999999"):
                with self.subTest(value):
                    c.send(b'{"jsonrpc":"2.0","id":5,"method":"echo","stream":%s}\n' % value)
                    m = c.message()
                    self.assertEqual((m["id"], m["error"]["code"]), (5, INVALID), m)
            self.assertEqual(c.call("echo", b"1")["result"], 1)

    def test_unreadable(self):
        """-32700 with a null id; then a socket closes, and stdio goes on with the next line."""
        for bad in (b'{"a":tru}', b'{"jsonrpc":"2.0","id":1,}', b'{"a":01}', b'["\xff"]', b'{"x":"\xc0\xa2"}', b"{]", b"[1,2",
                    b'{"a":1}}', b'{"a" 1}', b"[" * 200 + b"]" * 200, b'{"a":"\x01"}', b"[NaN]"):
            with self.subTest(bad[:40]), self.transport.connect() as c:
                c.send(rpc("echo", b"1"))
                c.message()
                c.send(bad + b"\n")
                if bad == b'{"a":1}}':  # the value ends before what is wrong
                    self.assertEqual(c.message()["error"]["code"], INVALID)
                if bad == b"[1,2":  # nothing is wrong yet
                    c.send(b"}\n")
                m = c.message()
                self.assertEqual((m["id"], m["error"]["code"]), (None, PARSE), m)
                if self.transport.socket:
                    self.assertTrue(c.ended())
                else:
                    self.assertEqual(c.call("echo", b"2", b"2")["result"], 2)


class Ids:
    def test_echoed_exactly(self):
        with self.transport.connect() as c:
            for id in IDS:
                with self.subTest(id[:40]):
                    c.send(rpc("echo", b"[]", id))
                    self.assertEqual(c.line(), result(id, b"[]"))
                    c.send(rpc("nothing", b"[]", id))
                    self.assertTrue(c.line().startswith(b'{"jsonrpc":"2.0","id":%s,"error":{' % id))

    def test_echoed_by_calls_that_wait(self):
        with self.transport.connect() as c:
            distinct = [id for id in IDS if id != rb'"\u0031"']  # is "1", and would be refused beside it
            c.send(b"".join(rpc("sleep", b'{"ms":20}', id) for id in distinct))
            got = sorted(c.line() for _ in distinct)
            self.assertEqual(got, sorted(result(id, b'{"slept_ms":20}') for id in distinct))

    def test_reuse_in_flight_is_refused(self):
        with self.transport.connect() as c:
            for first, second in ((b"5", b"5"), (b'"a"', b'"a"'), (b'"1"', rb'"\u0031"')):
                with self.subTest(second):
                    c.send(rpc("sleep", b'{"ms":60000}', first) + rpc("echo", b"1", second) +
                           rpc("echo", b"1", second, stream=1))
                    for _ in range(2):
                        line = c.line()
                        self.assertTrue(line.startswith(b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32600' % second), line)
                    c.send(rpc("$/cancelRequest", b'{"id":%s}' % first, None))
                    line = c.line()
                    self.assertTrue(line.startswith(b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32800' % first), line)
                    c.send(rpc("echo", b"3", second))  # free again
                    self.assertEqual(c.line(), result(second, b"3"))

    def test_numbers_and_strings_are_different_ids(self):
        with self.transport.connect() as c:
            c.send(rpc("sleep", b'{"ms":60000}', b"5") + rpc("sleep", b'{"ms":60000}', b'"5"') +
                   rpc("$/cancelRequest", b'{"id":"5"}', None))
            m = c.message()
            self.assertEqual((m["id"], m["error"]["code"]), ("5", CANCELLED))
            self.assertEqual(c.call("echo", b"1", b"6")["result"], 1)
            c.send(rpc("$/cancelRequest", b'{"id":5}', None))
            self.assertEqual(c.message()["id"], 5)

    def test_null_ids_may_run_beside_each_other(self):
        with self.transport.connect() as c:
            c.send(rpc("sleep", b'{"ms":30}', b"null") * 3)
            self.assertEqual([c.line() for _ in range(3)], [result(b"null", b'{"slept_ms":30}')] * 3)


class Batches:
    def batch(self, c, text):
        c.send(text + b"\n")
        return c.message()

    def test_of_the_specification(self):
        """Its examples, with sum and echo for what a demo server has not."""
        with self.transport.connect() as c:
            got = self.batch(c, b'[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},'
                                b'{"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},'
                                b'{"jsonrpc": "2.0", "method": "echo", "params": [42,23], "id": "2"},{"foo": "boo"},'
                                b'{"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},'
                                b'{"jsonrpc": "2.0", "method": "echo", "id": "9"}]')
            self.assertEqual([(m["id"], m.get("result"), m.get("error", {}).get("code")) for m in got],
                             [("1", 7, None), ("2", [42, 23], None), (None, None, INVALID), ("5", None, NO_METHOD),
                              ("9", None, None)])
            self.assertIn("result", got[4])
            got = self.batch(c, b"[]")
            self.assertEqual((got["id"], got["error"]["code"]), (None, INVALID))
            for n in (1, 3):
                got = self.batch(c, b"[" + b",".join(b"%d" % i for i in range(n)) + b"]")
                self.assertEqual([(m["id"], m["error"]["code"]) for m in got], [(None, INVALID)] * n)
            c.send(b'[{"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},'
                   b'{"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}]\n')
            self.assertEqual(c.call("echo", b"1")["result"], 1)  # no answer to that

    def test_unreadable(self):
        with self.transport.connect() as c:
            m = self.batch(c, b'[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"]')
            self.assertEqual((m["id"], m["error"]["code"]), (None, PARSE))

    def test_answers_leave_together(self):
        with self.transport.connect() as c:
            c.send(b"[" + rpc("sleep", b'{"ms":60}', b"1").strip() + b"," + rpc("echo", b"2", b"2").strip() + b"]\n" +
                   rpc("echo", b"3", b"3"))
            self.assertEqual(c.message()["id"], 3)
            self.assertEqual(sorted(m["id"] for m in c.message()), [1, 2])

    def test_one_of_them_can_be_cancelled(self):
        with self.transport.connect() as c:
            c.send(b"[" + rpc("sleep", b'{"ms":60000}', b"1").strip() + b"," + rpc("echo", b"2", b"2").strip() + b"]\n" +
                   rpc("$/cancelRequest", b'{"id":1}', None))
            got = {m["id"]: m for m in c.message()}
            self.assertEqual((got[1]["error"]["code"], got[2]["result"]), (CANCELLED, 2))

    def test_no_streams_inside(self):
        with self.transport.connect() as c:
            got = self.batch(c, b"[%s,%s,%s]" % (rpc("sum", b"{}", b"1", stream=1).strip(),
                                                 rpc("count?stream=true", b"{}", b"2").strip(), rpc("echo", b"3", b"3").strip()))
            self.assertEqual([m.get("error", {}).get("code") for m in got], [INVALID, INVALID, None])

    def test_sizes(self):
        with self.transport.connect() as c:
            many = b"[" + b",".join(rpc("echo", b"%d" % i, b"%d" % i).strip() for i in range(1000)) + b"]"
            self.assertEqual([m["result"] for m in self.batch(c, many)], list(range(1000)))
            m = self.batch(c, b"[" + b",".join([rpc("echo", b"1", b"1").strip()] * 1001) + b"]")
            self.assertEqual((m["id"], m["error"]["code"]), (None, INVALID))
            got = self.batch(c, b"[[" + rpc("echo").strip() + b"]]")
            self.assertEqual([(m["id"], m["error"]["code"]) for m in got], [(None, INVALID)])

    def test_answers_that_are_too_large_together(self):
        with self.transport.connect() as c:
            got = self.batch(c, b"[" + b",".join(rpc("big", b'{"bytes":9000000}', b"%d" % i).strip() for i in range(3)) + b"]")
            self.assertEqual([m["id"] for m in got], [0, 1, 2])
            self.assertEqual([len(m.get("result", "")) for m in got], [9000000, 0, 0])
            self.assertEqual(got[2]["error"]["data"]["status"], "RESOURCE_EXHAUSTED")


class Silence:
    """What must not be answered."""

    def test_notifications(self):
        with self.transport.connect() as c:
            for method, params in (("echo", b"1"), ("fail", b'{"status":"ABORTED"}'), ("nothing", b"1"), ("sleep", b'{"ms":1}'),
                                   ("sum", b'"no array"'), ("$/unknown", b"{}"), ("$/cancelRequest", b'{"id":"none"}'),
                                   ("$/cancelRequest", b"[]"), ("$/cancelRequest", None), ("rpc.discover", None),
                                   ("big", b'{"bytes":100000}'), ("greet", b'"x"')):
                c.send(rpc(method, params, None))
            c.send(b"[%s,%s]\n" % (rpc("echo", b"1", None).strip(), rpc("fail", b"{}", None).strip()))
            c.send(rpc("sleep", b'{"ms":100}', b'"last"'))
            self.assertEqual(c.line(), result(b'"last"', b'{"slept_ms":100}'))

    def test_notifications_run(self):
        with self.transport.connect() as c:
            def count():
                return c.server.metrics().total(support.CALLS, action="/flow/greet", wire="jsonrpc", status="OK")
            before = count()
            c.send(rpc("greet", b'"x"', None) * 5)
            self.assertTrue(support.wait_until(lambda: count() == before + 5))

    def test_answers_and_null(self):
        with self.transport.connect() as c:
            c.send(b'{"jsonrpc":"2.0","id":"x","result":1}\n{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}\n'
                   b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}\nnull\n\n \r\n')
            self.assertEqual(c.call("echo", b"1")["result"], 1)

    def test_frames_of_no_stream(self):
        with self.transport.connect() as c:
            c.send(frame(b'"s9"', 2, b"1") + frame(b'"s9"', 3) +
                   b'{"jsonrpc":"2.0","id":"s1","stream":2,"method":"echo","data":1}\n')
            self.assertEqual(c.call("echo", b"1")["result"], 1)

    def test_a_peer_without_streams_never_sees_one(self):
        """Everything that can be said without `stream` is answered without `stream` and `data`: also by actions that
        produce chunks. (Rpc holds all other tests to the same.)"""
        with self.transport.connect() as c:
            calls = [("greet", b'"x"'), ("count", b'{"n":50}'), ("stream", b'{"n":500}'), ("sum", b"[1,2,3]"), ("sum", b"1"),
                     ("echo", b'["stream",2,"data",1]'), ("fail", b"{}"), ("nothing", b"{}"), ("rpc.discover", None),
                     ("context", None), ("/tool/sha256", b"1")]
            for i, (method, params) in enumerate(calls):
                c.send(rpc(method, params, b"%d" % i))
            c.send(b"[" + b",".join(rpc(m, p, b'"b%d"' % i).strip() for i, (m, p) in enumerate(calls)) + b"]\n")
            answers, waiting = [], {str(i) for i in range(len(calls))} | {"batch"}
            while waiting:
                m = c.message()
                waiting.discard("batch" if isinstance(m, list) else str(m["id"]))
                answers += m if isinstance(m, list) else [m]
            self.assertEqual(len(answers), 2 * len(calls))
            for m in answers:
                self.assertFalse({"stream", "data"} & set(m), m)
            self.assertFalse(c.streams)


class Framing:
    TWO = rpc("echo", b'"\xe2\x82\xac"', b"1") + rpc("echo", b"2", b"2")

    def expect_two(self, c):
        self.assertEqual(c.line(), result(b"1", b'"\xe2\x82\xac"'))
        self.assertEqual(c.line(), result(b"2", b"2"))

    def test_values_need_no_newline(self):
        with self.transport.connect() as c:
            c.send(self.TWO.replace(b"\n", b""))
            self.expect_two(c)
            c.send(b"[" + rpc("echo", b"1").strip() + b"]")
            self.assertEqual(c.message(), [{"jsonrpc": "2.0", "id": 1, "result": 1}])

    def test_white_space(self):
        with self.transport.connect() as c:
            c.send(b"\n\r\n \t" + self.TWO.replace(b"\n", b"\r\n\r\n"))
            self.expect_two(c)

    def test_over_many_lines(self):
        with self.transport.connect() as c:
            c.send(self.TWO.replace(b",", b"\n,\r\n"))
            self.expect_two(c)

    def test_byte_by_byte(self):
        with self.transport.connect() as c:
            for i in range(len(self.TWO)):
                c.send(self.TWO[i:i + 1])
            self.expect_two(c)

    def test_any_cut(self):
        chance = random.Random(7)
        with self.transport.connect() as c:
            for _ in range(20):
                text = self.TWO * 3
                while text:
                    n = chance.randint(1, 40)
                    c.send(text[:n])
                    text = text[n:]
                for _ in range(3):
                    self.expect_two(c)

    def test_headers(self):
        """Whoever writes Content-Length headers is answered in them."""
        with self.transport.connect() as c:
            body = rpc("echo", b'"\xe2\x82\xac"', b"1").strip()
            c.send(b"Content-Length: %d\r\n\r\n" % len(body) + body + b"content-length:%d\nX: y\n\n" % len(body) + body)
            want = result(b"1", b'"\xe2\x82\xac"').strip()
            want = (b"Content-Length: %d\r\n\r\n" % len(want) + want) * 2
            while len(c.buffer) < len(want):
                self.assertTrue(c.fill(support.time.monotonic() + 10 * support.SLOW))
            self.assertEqual(bytes(c.buffer), want)

    def test_headers_with_the_type_first(self):
        """creachadair/jrpc2 writes Content-Type before Content-Length."""
        body = rpc("echo", b"[1]", b"1").strip()
        want = result(b"1", b"[1]").strip()
        for field in (b"Content-Type: application/vscode-jsonrpc; charset=utf-8", b"content-type:application/json"):
            for size in (1, 1000):
                with self.subTest(field=field, size=size), self.transport.connect() as c:
                    text = field + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body
                    for i in range(0, len(text), size):
                        c.send(text[i:i + size])
                    answer = b"Content-Length: %d\r\n\r\n" % len(want) + want
                    while len(c.buffer) < len(answer):
                        self.assertTrue(c.fill(support.time.monotonic() + 60 * support.SLOW), bytes(c.buffer))
                    self.assertEqual(bytes(c.buffer), answer)

    def test_a_foreign_first_line(self):
        """A socket closes at once (the one port takes it for bad HTTP); stdio says so and goes on."""
        for first in (b"hello\n", b"\x16\x03\x01\x02\x00\x01\n", b"<xml/>\n", b"1\n", b'"x"\n'):
            with self.subTest(first), self.transport.connect() as c:
                c.send(first + rpc("echo", b"1", b'"x"'))
                if self.transport.name == "port":
                    self.assertTrue(c.line().startswith(b"HTTP/1.1 400 "))
                    continue
                got = []
                try:
                    while True:
                        got.append(c.message())
                        if got[-1]["id"] == "x":
                            break
                except Closed:
                    pass
                ids = [m["id"] for m in got]
                self.assertEqual("x" in ids, not self.transport.socket, got)
                for m in got:
                    self.assertTrue(m["id"] == "x" or m["error"]["code"] in (PARSE, INVALID), m)

    def test_http_on_the_wire(self):
        """On a port of its own, a browser learns nothing; on the one port it is HTTP."""
        if not self.transport.socket:
            return
        with self.transport.connect() as c:
            c.send(b'GET /?{"jsonrpc":"2.0","id":1,"method":"echo"} HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n' %
                   (c.server.rpc_port or 1))
            if self.transport.name == "port":
                self.assertTrue(c.line().startswith(b"HTTP/1.1 4"))
            else:
                self.assertTrue(c.ended())


class Discover:
    def test_document(self):
        with self.transport.connect() as c:
            doc = c.call("rpc.discover")["result"]
            self.assertRegex(doc["openrpc"], r"\A1\.[0-9]+\.[0-9]+\Z")
            self.assertIsInstance(doc["info"]["title"], str)
            self.assertIsInstance(doc["info"]["version"], str)
            names = [m["name"] for m in doc["methods"]]
            self.assertEqual(len(set(names)), len(names))
            self.assertEqual(set(names), {"/flow/" + n for n in ("greet", "echo", "count", "sleep", "fail", "stream", "sum",
                                                                 "context", "big")} | {"/tool/sha256"})
            listing = c.server.get("/api/actions").json()
            for m in doc["methods"]:
                with self.subTest(m["name"]):
                    self.method(m, listing[m["name"]])

    def method(self, m, descriptor):
        self.assertIsInstance(m["result"]["name"], str)
        self.assertEqual(m["result"]["schema"], descriptor["outputSchema"])
        seen, optional = set(), False
        for p in m["params"]:
            self.assertIsInstance(p["schema"], (dict, bool))
            self.assertNotIn(p["name"], seen)
            seen.add(p["name"])
            self.assertIn(p.get("required", False), (True, False))
            self.assertFalse(p.get("required") and optional, "a required parameter after an optional one")
            optional = optional or not p.get("required")
        properties = descriptor["inputSchema"].get("properties")
        if properties:
            self.assertEqual({p["name"]: p["schema"] for p in m["params"]}, properties)
        else:
            self.assertEqual([p["schema"] for p in m["params"]], [descriptor["inputSchema"]])
        self.assertEqual(m["x-everywire"], descriptor)

    def test_params_do_not_matter(self):
        with self.transport.connect() as c:
            first = c.call("rpc.discover")["result"]
            for params in (b"null", b"{}", b"[]", b'"x"'):
                self.assertEqual(c.call("rpc.discover", params)["result"], first)
            self.assertEqual(c.call("rpc.discover", None, b'"\xe2\x82\xac"')["result"], first)


for _group in (Payloads, Errors, Ids, Batches, Silence, Framing, Discover):
    over_transports(_group)

if __name__ == "__main__":
    support.main()
