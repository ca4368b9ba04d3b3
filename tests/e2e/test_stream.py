"""The http wire, streamed: the exact form of the blocks, arrival in time, the end in every case, clients that leave or stop reading.

SPDX-License-Identifier: Apache-2.0
"""
import json
import time
import unittest

import support
from support import Server, blocks, request, wait_until

SSE = [("Accept", "text/event-stream")]

server = None


def setUpModule():
    global server
    server = Server().start()


def tearDownModule():
    server.__exit__(None, None, None)


def ask(path, data, headers=SSE, port=None, version="1.1"):
    return request("POST", path, b'{"data":' + data + b"}", headers, port=port or server.port, version=version)


def in_flight(s):
    return s.metrics().total(support.IN_FLIGHT)


class Case(unittest.TestCase):
    maxDiff = None

    def stream_head(self, r):
        self.assertEqual(r.status, 200, r)
        self.assertIn((r.get("content-type") or "").split(";")[0], ("text/event-stream", "text/plain"))
        self.assertRegex(r.get("x-genkit-trace-id") or "", r"\A[0-9a-f]{32}\Z")
        self.assertRegex(r.get("x-genkit-span-id") or "", r"\A[0-9a-f]{16}\Z")

    def run_stream(self, path, data, headers=SSE):
        with server.connect() as c:
            c.send(ask(path, data, headers))
            r = c.response()
        self.stream_head(r)
        self.assertEqual(r.framing, "chunked")
        return r


class Format(Case):
    def test_greet_bytes(self):
        r = self.run_stream("/flow/greet", b'{"name":"Ada"}')
        self.assertEqual(r.body, b'data: {"message":"Hello,"}\n\ndata: {"message":" Ada!"}\n\ndata: {"result":"Hello, Ada!"}\n\n')

    def test_a_result_without_chunks(self):
        self.assertEqual(self.run_stream("/flow/echo", b'{"a":1}').body, b'data: {"result":{"a":1}}\n\n')

    def test_a_null_result_is_sent(self):
        with server.connect() as c:
            c.send(request("POST", "/flow/echo", b"{}", SSE, port=server.port))
            self.assertEqual(c.response().body, b'data: {"result":null}\n\n')

    def test_count(self):
        r = self.run_stream("/flow/count", b'{"n":5}')
        self.assertEqual(r.body, b"".join(b'data: {"message":{"i":%d}}\n\n' % i for i in range(1, 6)) + b'data: {"result":{"count":5}}\n\n')

    def test_stream_100(self):
        got = blocks(self.run_stream("/flow/stream", b'{"x":1}').body)
        self.assertEqual(len(got), 101)
        for i in range(100):
            self.assertEqual(got[i], ("data", b'{"message":{"index":%d,"text":"chunk number %d"}}' % (i, i)))
        self.assertEqual(got[100], ("data", b'{"result":{"x":1}}'))

    def test_zero_chunks(self):
        self.assertEqual(self.run_stream("/flow/count", b'{"n":0}').body, b'data: {"result":{"count":0}}\n\n')

    def test_one_line_whatever_the_payload(self):
        payloads = [b'[\n1,\r\n2\n]', b'{\n  "a" : "x\\ny",\n\n\n  "b": [ ]\n}', b'{"a":"data: {}\\n\\nerror: {}"}', b'\n\n7\n\n', b'"\\n\\n"',
                    b'{"b":12345678901234567890,"a":1e400,"a":0.10}']
        for data in payloads:
            with self.subTest(data):
                got = blocks(self.run_stream("/flow/echo", data).body)
                self.assertEqual(len(got), 1)
                body = got[0][1]
                self.assertTrue(body.startswith(b'{"result":') and body.endswith(b"}"))
                # the same tokens in the same order: compare without white space outside of strings
                strip = lambda t: json.dumps(json.loads(t.decode(), object_pairs_hook=lambda p: p, parse_float=str, parse_int=str))
                self.assertEqual(strip(body[10:-1]), strip(data))

    def test_unicode(self):
        for text in ("Zoë €", "\U0001f600", "\u2028\u2029\x85", "a\"b\\c\n\x01"):
            with self.subTest(text):
                got = blocks(self.run_stream("/flow/greet", json.dumps({"name": text}, ensure_ascii=False).encode()).body)
                parts = [json.loads(b.decode())["message"] for _, b in got[:-1]]
                result = json.loads(got[-1][1].decode())["result"]
                self.assertEqual(result, "Hello, %s!" % text)
                self.assertEqual("".join(parts), result)

    def test_blocks_are_written_whole(self):
        # Genkit's client decodes each read for itself: a block must not be spread over HTTP chunks
        for path, data in (("/flow/greet", '{"name":"Zoë"}'.encode()), ("/flow/count", b'{"n":20,"delay_ms":5}'), ("/flow/stream", b"{}")):
            for payload, _ in self.run_stream(path, data).chunks:
                blocks(payload)

    def test_nothing_but_blocks(self):
        r = self.run_stream("/flow/count", b'{"n":3,"delay_ms":150}')
        self.assertNotIn(b"\r", r.body)
        self.assertEqual([p for p, _ in blocks(r.body)], ["data"] * 4)

    def test_large_blocks(self):
        r = self.run_stream("/flow/big", b'{"bytes":3000000}')
        got = blocks(r.body)
        self.assertEqual(len(got), 1)
        self.assertEqual(len(got[0][1]), 3000000 + len('{"result":""}'))


class Asking(Case):
    def kind(self, path, headers):
        with server.connect() as c:
            c.send(ask(path, b"1", headers))
            r = c.response()
        self.assertEqual(r.status, 200, r)
        return "stream" if r.body.startswith(b"data: ") else "unary"

    def test_accept(self):
        for value, kind in (("text/event-stream", "stream"), ("TEXT/Event-Stream", "stream"), ("application/json, text/event-stream", "stream"),
                            ("text/event-stream;q=0.9", "stream"), ("text/event-stream, */*", "stream"), ("application/json", "unary"),
                            ("*/*", "unary"), ("", "unary"), ("text/plain", "unary")):
            with self.subTest(value):
                self.assertEqual(self.kind("/flow/echo", [("Accept", value)]), kind)
        self.assertEqual(self.kind("/flow/echo", []), "unary")

    def test_query(self):
        for query, kind in (("stream=true", "stream"), ("stream=1", "stream"), ("x=1&stream=true", "stream"), ("stream=true&x", "stream"),
                            ("stream=false", "unary"), ("stream=0", "unary"), ("stream=", "unary"), ("stream", "unary"), ("xstream=true", "unary"),
                            ("streams=true", "unary")):
            with self.subTest(query):
                self.assertEqual(self.kind("/flow/echo?" + query, []), kind)

    def test_refusals_come_before_the_stream(self):
        for path, body, ctype, code in (("/none", b'{"data":1}', "application/json", 404), ("/flow/echo", b"{", "application/json", 400),
                                        ("/flow/echo", b"", "application/json", 400), ("/flow/echo", b'{"data":1,"data":1}', "application/json", 400),
                                        ("/flow/echo", b'{"data":1}', "text/plain", 415)):
            with self.subTest(code), server.connect() as c:
                c.send(request("POST", path, body, SSE, port=server.port, ctype=ctype))
                r = c.response()
                self.assertEqual(r.status, code)
                self.assertEqual(r.json()["code"], code)
                self.assertRegex(r.get("content-type"), r"\Aapplication/json")


class Endings(Case):
    def test_error_block(self):
        r = self.run_stream("/flow/fail", b'{"status":"NOT_FOUND","message":"no \\"such\\" thing","details":{"k":1}}')
        got = blocks(r.body)
        self.assertEqual(len(got), 1)
        self.assertEqual(got[0][0], "error")
        error = json.loads(got[0][1].decode())
        self.assertEqual(set(error), {"error"})
        self.assertEqual(error["error"].pop("code", 404), 404)
        self.assertEqual(error["error"], {"status": "NOT_FOUND", "message": "no \"such\" thing", "details": {"k": 1}})

    def test_error_without_details(self):
        error = json.loads(blocks(self.run_stream("/flow/fail", b'{"status":"ABORTED","message":"m"}').body)[0][1].decode())["error"]
        self.assertNotIn("details", error)

    def test_deadline(self):
        begin = time.monotonic()
        r = self.run_stream("/flow/sleep", b'{"ms":5000}', SSE + [("x-everywire-timeout-ms", "200")])
        self.assertLess(time.monotonic() - begin, 1.2 * support.SLOW)
        got = blocks(r.body)
        self.assertEqual([p for p, _ in got], ["error"])
        self.assertEqual(json.loads(got[0][1].decode())["error"]["status"], "DEADLINE_EXCEEDED")

    def test_deadline_between_chunks(self):
        r = self.run_stream("/flow/count", b'{"n":1000,"delay_ms":50}', SSE + [("x-everywire-timeout-ms", "220")])
        got = blocks(r.body)
        self.assertGreaterEqual(len(got), 3)
        self.assertEqual(got[-1][0], "error")
        self.assertEqual(json.loads(got[-1][1].decode())["error"]["status"], "DEADLINE_EXCEEDED")

    def test_the_connection_goes_on(self):
        with server.connect() as c:
            for path, data in (("/flow/count", b'{"n":3}'), ("/flow/fail", b"{}"), ("/flow/greet", b'"x"')):
                c.send(ask(path, data))
                r = c.response()
                self.assertFalse(r.closes())
                blocks(r.body)
            c.send(request("POST", "/flow/echo", b'{"data":1}', port=server.port))
            self.assertEqual(c.response().body.rstrip(b"\n"), b'{"result":1}')

    def test_pipelined_behind_a_stream(self):
        with server.connect() as c:
            c.send(ask("/flow/count", b'{"n":5,"delay_ms":30}') + ask("/flow/echo", b"[2]", []) + ask("/flow/greet", b'"Ada"') +
                   ask("/flow/echo", b"[3]", []))
            self.assertEqual(len(blocks(c.response().body)), 6)
            self.assertEqual(c.response().body.rstrip(b"\n"), b'{"result":[2]}')
            self.assertEqual(len(blocks(c.response().body)), 3)
            self.assertEqual(c.response().body.rstrip(b"\n"), b'{"result":[3]}')

    def test_connection_close(self):
        with server.connect() as c:
            c.send(ask("/flow/greet", b'"Ada"', SSE + [("Connection", "close")]))
            r = c.response()
            self.assertTrue(r.closes())
            self.assertEqual(len(blocks(r.body)), 3)
            self.assertTrue(c.closed())

    def test_http10_is_delimited_by_the_close(self):
        with server.connect() as c:
            c.send(ask("/flow/greet", b'"Ada"', version="1.0"))
            r = c.head()
            self.stream_head(r)
            self.assertIsNone(r.get("transfer-encoding"))
            self.assertEqual(len(blocks(c.body(r).body)), 3)
            self.assertTrue(c.eof)


class Live(Case):
    def test_the_head_does_not_wait(self):
        with server.connect() as c:
            begin = time.monotonic()
            c.send(ask("/flow/sleep", b'{"ms":800}'))
            self.stream_head(c.head())
            self.assertLess(time.monotonic() - begin, 0.5)
            payload = c.chunk()
            self.assertGreater(time.monotonic() - begin, 0.75)
            self.assertEqual(payload, b'data: {"result":{"slept_ms":800}}\n\n')
            self.assertIsNone(c.chunk())

    def test_chunks_arrive_one_by_one(self):
        r = self.run_stream("/flow/count", b'{"n":8,"delay_ms":100}')
        times = [t for _, t in r.chunks]
        self.assertGreaterEqual(len(times), 8)
        self.assertGreater(times[-1] - times[0], 0.5)
        gaps = [b - a for a, b in zip(times, times[1:])]
        self.assertLess(max(gaps), 0.5 * support.SLOW, gaps)

    def test_streams_take_turns(self):
        conns = [server.connect() for _ in range(32)]
        try:
            for c in conns:
                c.send(ask("/flow/stream", b'{"n":3000}'))
            begin = time.monotonic()
            firsts = []
            heads = [c.head() for c in conns]
            for c, head in zip(conns, heads):
                head.chunks.append((c.chunk(), time.monotonic()))
                firsts.append(head.chunks[0][1] - begin)
            print("32 streams at once: first chunks after %.0f to %.0f ms" % (min(firsts) * 1000, max(firsts) * 1000))
            self.assertLess(max(firsts), 3 * support.SLOW)
            for c, head in zip(conns, heads):
                self.assertEqual(len(blocks(c.body(head, 30).body)), 3001)
        finally:
            for c in conns:
                c.close()

    def test_every_block_of_many_streams(self):
        conns = [server.connect() for _ in range(16)]
        try:
            for k, c in enumerate(conns):
                c.send(ask("/flow/stream", b'{"n":3000,"k":%d}' % k))
            for k, c in enumerate(conns):
                got = blocks(c.response(30).body)
                self.assertEqual(len(got), 3001)
                for i in range(3000):
                    self.assertEqual(got[i][1], b'{"message":{"index":%d,"text":"chunk number %d"}}' % (i, i))
                self.assertEqual(got[-1][1], b'{"result":{"n":3000,"k":%d}}' % k)
        finally:
            for c in conns:
                c.close()


class Leaving(Case):
    def cancelled(self, action):
        return server.metrics().total(support.CALLS, action=action, status="CANCELLED")

    def left(self, action, data, headers, chunks, how):
        self.assertTrue(wait_until(lambda: in_flight(server) == 0), "calls of another test still run")
        before = self.cancelled(action)
        c = server.connect()
        c.send(ask(action, data, headers))
        if chunks:
            c.head()
            for _ in range(chunks):
                c.chunk()
        else:
            self.assertTrue(wait_until(lambda: in_flight(server) == 1))
        begin = time.monotonic()
        getattr(c, how)()
        self.assertTrue(wait_until(lambda: in_flight(server) == 0), "the call goes on after its caller left")
        self.assertLess(time.monotonic() - begin, 2 * support.SLOW)
        self.assertEqual(self.cancelled(action), before + 1)

    def test_stream_closed(self):
        self.left("/flow/count", b'{"n":100000,"delay_ms":20}', SSE, 3, "close")

    def test_stream_reset(self):
        self.left("/flow/count", b'{"n":100000,"delay_ms":20}', SSE, 3, "abort")

    def test_stream_without_chunks_closed(self):
        self.left("/flow/sleep", b'{"ms":60000}', SSE, 0, "close")

    def test_unary_closed(self):
        self.left("/flow/sleep", b'{"ms":60000}', [], 0, "close")

    def test_unary_reset(self):
        self.left("/flow/sleep", b'{"ms":60000}', [], 0, "abort")

    def test_many_leave_at_once(self):
        self.assertTrue(wait_until(lambda: in_flight(server) == 0))
        conns = [server.connect() for _ in range(100)]
        for i, c in enumerate(conns):
            c.send(ask("/flow/sleep" if i % 2 else "/flow/count", b'{"ms":60000,"n":1000000,"delay_ms":10}'))
        self.assertTrue(wait_until(lambda: in_flight(server) == 100))
        for c in conns:
            c.close()
        self.assertTrue(wait_until(lambda: in_flight(server) == 0))


class SlowReaders(Case):
    """A server of their own: memory is measured."""

    def test_a_stalled_reader_does_not_grow(self):
        with Server("--threads", "1") as s:
            for _ in range(50):
                s.call("/echo", b"1")
            before = s.rss()
            c = support.Conn(s.port, rcvbuf=4096)
            c.send(ask("/flow/stream", b'{"n":10000000}', port=s.port))
            time.sleep(1.0)
            cpu = s.cpu_seconds()
            sizes = []
            for _ in range(10):
                time.sleep(0.1)
                sizes.append(s.rss())
                begin = time.monotonic()
                self.assertEqual(s.call("/echo", b"1").status, 200)
                self.assertLess(time.monotonic() - begin, 0.5 * support.SLOW, "another call waits for the stalled one")
            used = s.cpu_seconds() - cpu
            grown = max(sizes) - before
            print("one stalled reader: %d KiB more, CPU %.0f%%" % (grown // 1024, used * 100))
            if not support.SANITIZED:
                self.assertLess(grown, 2 * 1024 * 1024)
                self.assertLess(used, 0.5, "the server works although nobody reads")
            self.assertEqual(in_flight(s), 1)
            c.close()
            self.assertTrue(wait_until(lambda: in_flight(s) == 0))

    @staticmethod
    def stands_still(s):
        before = s.metrics().total(support.SENT)
        time.sleep(0.3)
        return s.metrics().total(support.SENT) - before < 20000  # the metrics themselves

    def test_many_stalled_readers(self):
        with Server("--threads", "1") as s:
            s.call("/echo", b"1")
            before = s.rss()
            conns = []
            for _ in range(100):
                c = support.Conn(s.port, rcvbuf=4096)
                c.send(ask("/flow/stream", b'{"n":10000000}', port=s.port))
                conns.append(c)
            self.assertTrue(wait_until(lambda: in_flight(s) == 100))
            self.assertTrue(wait_until(lambda: self.stands_still(s), 20), "the server still sends although nobody reads")
            each = (s.rss() - before) / 100
            print("100 stalled readers: %.0f KiB each" % (each / 1024))
            if not support.SANITIZED:
                self.assertLess(each, 512 * 1024)
            self.assertEqual(s.call("/echo", b"1").status, 200)
            for c in conns:
                c.close()
            self.assertTrue(wait_until(lambda: in_flight(s) == 0, 10))

    def test_a_slow_reader_gets_everything(self):
        n = 20000
        c = support.Conn(server.port, rcvbuf=4096)
        try:
            c.send(ask("/flow/stream", b'{"n":%d}' % n))
            time.sleep(0.5)
            for _ in range(30):  # a trickle first
                time.sleep(0.01)
                c.buffer += c.sock.recv(200)
            got = blocks(c.response(40).body)
        finally:
            c.close()
        self.assertEqual(len(got), n + 1)
        for i in range(0, n, 97):
            self.assertEqual(json.loads(got[i][1].decode())["message"]["index"], i)
        self.assertEqual(got[-1][1], b'{"result":{"n":%d}}' % n)

    def test_a_stalled_reader_loses_its_call(self):
        with Server("--limit", "stall_ms=700") as s:
            c = support.Conn(s.port, rcvbuf=4096)
            c.send(ask("/flow/stream", b'{"n":10000000}', port=s.port))
            self.assertTrue(wait_until(lambda: in_flight(s) == 1))
            self.assertTrue(wait_until(lambda: in_flight(s) == 0, 8), "a reader that takes nothing keeps its call")
            # and the connection: what is left in the buffers, then its end, and no proper end of the body
            data = c.rest(10)
            self.assertFalse(data.endswith(b"0\r\n\r\n"))
            c.close()
            self.assertEqual(s.call("/echo", b"1").status, 200)

    def test_a_stalled_reader_of_one_large_answer(self):
        with Server("--limit", "stall_ms=700") as s:
            c = support.Conn(s.port, rcvbuf=4096)
            c.send(ask("/flow/big", b'{"bytes":15000000}', [], port=s.port))
            time.sleep(0.2)
            connections = lambda: s.metrics().total(support.CONNECTIONS)
            self.assertTrue(wait_until(lambda: connections() <= 1, 8), "the connection of a reader that takes nothing stays")
            c.close()


class Pipelining(Case):
    def test_a_client_that_leaves_with_much_pipelined(self):
        """More than is read ahead: the call of a client that has gone is cancelled before a later call of 3 s ends."""
        for n in (200, 330):
            with self.subTest(n), Server("--threads", "1") as s, s.connect() as other:
                gone = s.connect()
                gone.send(ask("/flow/sleep", b'{"ms":600000}', port=s.port))
                self.assertTrue(wait_until(lambda: in_flight(s) == 1))
                gone.send(ask("/flow/echo", b'"%s"' % (b"x" * (n * 1000)), port=s.port))
                gone.close()
                other.send(ask("/flow/sleep", b'{"ms":3000}', headers=[], port=s.port))
                self.assertEqual(other.response().status, 200)
                self.assertEqual(in_flight(s), 0)


if __name__ == "__main__":
    support.main()
