"""The jsonrpc wire with peers that do not read, do not go on, or do not finish: what they may hold up, and for how long. Over
TCP, Unix sockets, stdio and the one port.

SPDX-License-Identifier: Apache-2.0
"""
import time
import unittest

import support
from support import Closed, Transport, frame, over_transports, result, rpc, wait_until

LONG = b'{"ms":60000}'


class Stalling:
    """Peers that do not read: our memory stays where it is, the others go on."""
    ROOM = 64 << 20

    def bounded(self, c, act):
        before = c.server.rss()
        act()
        grown = c.server.rss() - before
        if not support.SANITIZED:
            self.assertLess(grown, self.ROOM)

    def others_go_on(self):
        for _ in range(20):
            self.assertEqual(self.transport.server.call("/flow/echo", b"1").status, 200)
        if self.transport.socket:
            with self.transport.connect() as other:
                for _ in range(20):
                    self.assertEqual(other.call("echo", b"1")["result"], 1)

    def test_a_stream_that_is_not_read(self):
        with self.transport.connect() as c:
            def act():
                c.send(b"".join(rpc("stream?stream=true", b'{"n":1000000}', b"%d" % i) for i in range(20)), take=False)
                chunks = None
                while chunks != c.server.metrics().total("everywire_chunks_total"):  # until they all wait
                    chunks = c.server.metrics().total("everywire_chunks_total")
                    time.sleep(0.05)
                self.others_go_on()
            self.bounded(c, act)
            self.assertLess(c.server.metrics().total("everywire_chunks_total", wire="jsonrpc"), 2000000)
            seen = {}
            for _ in range(20000):  # each of them goes on, in order, when we read at last
                m = c.message(30)
                if m["stream"] == 2:
                    self.assertEqual(m["data"]["index"], seen.get(m["id"], 0))
                    seen[m["id"]] = m["data"]["index"] + 1
            self.assertEqual(len(seen), 20)

    def test_answers_that_are_not_read(self):
        with self.transport.connect() as c:
            n = 300

            def act():
                c.try_send(b"".join(rpc("big", b'{"bytes":1000000}', b"%d" % i) for i in range(n)), 1.0, take=False)
                self.others_go_on()
            self.bounded(c, act)
            for i in range(n):
                self.assertTrue(c.line(30).startswith(b'{"jsonrpc":"2.0","id":%d,"result":"' % i))

    def test_an_upload_whose_taker_is_behind(self):
        """sum says a total for each number: if we do not read them, it does not read on, and we are held back."""
        text = b"".join(frame(b"1", 2, b"1") for _ in range(1000))
        with self.transport.connect() as c:
            sent = [0]

            def act():
                c.send(rpc("sum?stream=true", b"{}", b"1", stream=1))
                for _ in range(1000):
                    left = c.try_send(text, 0.5, take=False)
                    sent[0] += len(text) - left
                    if left:
                        break
                self.others_go_on()
            self.bounded(c, act)
            self.assertLess(sent[0], 1000 * len(text), "nothing held us back")
            n = sent[0] // len(frame(b"1", 2, b"1"))
            c.send(frame(b"1", 2, b"1")[sent[0] % len(frame(b"1", 2, b"1")):] + frame(b"1", 3), 30)
            n += 1
            _, chunks, end = c.take_stream(1, 30)
            self.assertEqual((len(chunks), end), (n, {"result": n}))


over_transports(Stalling)


class Limits(unittest.TestCase):
    def each(self, *args):
        for name in Transport.NAMES:
            with self.subTest(name), Transport(name, *args) as t:
                yield t

    def test_a_silent_input_stream(self):
        for t in self.each("--limit", "stream_idle_ms=300"):
            with t.connect() as c:
                c.send(rpc("sum", b"{}", b"1", stream=1) + rpc("sum?stream=true", b"{}", b"2", stream=1) + frame(b"1", 2, b"1"))
                got = {}
                while len(got) < 2:
                    m = c.message()
                    if m.get("stream") != 1:
                        got[m["id"]] = m.get("error") or m["data"]["error"]
                self.assertEqual([got[i]["data"]["status"] for i in (1, 2)], ["DEADLINE_EXCEEDED"] * 2)
                c.send(frame(b"1", 2, b"1") + frame(b"1", 3))
                self.assertEqual(c.call("echo", b"1", b"1")["result"], 1)
                self.assertEqual(c.in_flight(), 0)

    def test_a_slow_input_stream_is_not_silent(self):
        with Transport("tcp", "--limit", "stream_idle_ms=1500") as t:
            with t.connect() as c:
                c.send(rpc("sum", b"{}", b"1", stream=1))
                for _ in range(10):
                    time.sleep(0.2)
                    c.send(frame(b"1", 2, b"1"))
                c.send(frame(b"1", 3))
                self.assertEqual(c.line(), result(b"1", b"10"))

    def test_a_reader_that_stalls_loses_its_calls(self):
        for t in self.each("--limit", "stall_ms=300"):
            with t.connect() as c:
                c.send(rpc("stream?stream=true", b'{"n":10000000}', b"1") + rpc("sleep", LONG, b"2"), take=False)
                self.assertTrue(wait_until(lambda: c.in_flight() == 2))
                self.assertTrue(wait_until(lambda: c.in_flight() == 0, 20))
                with self.assertRaises((Closed, support.ProtocolError)):
                    while True:
                        c.line()

    def test_half_a_message(self):
        """A socket is not held for ever by who does not finish his sentence, or says nothing at all."""
        for t in self.each("--limit", "body_stall_ms=300", "--limit", "idle_ms=300"):
            if not t.socket:
                continue
            for text in (b"", b'{"jsonrpc":', rpc("echo", b"1") + b'{"json'):
                with t.connect() as c:
                    c.send(text)
                    if text.startswith(rpc("echo", b"1")):
                        c.message()
                    self.assertTrue(c.ended(), text)

    def test_a_deadline_of_the_server(self):
        for t in self.each("--limit", "call_ms=200"):
            with t.connect() as c:
                m = c.call("sleep", LONG)
                self.assertEqual(m["error"]["data"]["status"], "DEADLINE_EXCEEDED")
                c.send(rpc("sleep?stream=true", LONG, b"2"))
                self.assertEqual(c.take_stream(2)[2]["error"]["data"]["status"], "DEADLINE_EXCEEDED")
                self.assertTrue(wait_until(lambda: c.in_flight() == 0))


if __name__ == "__main__":
    support.main()
