"""The jsonrpc wire when one side goes: peers that leave at every step, or say no more; a server that drains. Over TCP, Unix
sockets, stdio and the one port.

SPDX-License-Identifier: Apache-2.0
"""
import signal
import unittest

import support
from support import Transport, frame, over_transports, result, rpc, wait_until

SERVER = -32000
LONG = b'{"ms":60000}'


class Leaving:
    """A peer that goes away, at every step: its handlers stop, nothing of it stays."""

    STEPS = {
        "nothing said": b"",
        "half a request": rpc("sleep", LONG)[:30],
        "a call": rpc("sleep", LONG),
        "many calls": b"".join(rpc("sleep", LONG, b"%d" % i) for i in range(50)),
        "a notification": rpc("sleep", LONG, None),
        "a batch": b"[" + rpc("sleep", LONG, b"1").strip() + b"," + rpc("echo", b"1", b"2").strip() + b"]\n",
        "a stream": rpc("count?stream=true", b'{"n":1000,"delay_ms":60000}'),
        "a fast stream": rpc("stream?stream=true", b'{"n":10000000}'),
        "an input stream": rpc("sum", b"{}", b"1", stream=1) + frame(b"1", 2, b"1"),
        "half a frame": rpc("sum", b"{}", b"1", stream=1) + frame(b"1", 2, b"1")[:20],
        "both streams": rpc("sum?stream=true", b"{}", b"1", stream=1) + frame(b"1", 2, b"1"),
        "after the end of input": rpc("sleep", LONG, b"1", stream=1) + frame(b"1", 2, b"1") + frame(b"1", 3),
        "after cancelling": rpc("sleep", LONG) + rpc("$/cancelRequest", b'{"id":1}', None),
        "a large answer": rpc("big", b'{"bytes":15000000}'),
        "a thread": rpc("sha256", b'"%s"' % (b"x" * 100000)) * 5,
    }

    # On pipes, eof on one and nobody at the other end of the other are two things.
    SILENT = ("a call", "many calls", "a notification", "a batch", "a stream", "after the end of input")

    def leave(self, steps, how):
        for name in steps:
            with self.subTest(name):
                c = None if self.transport.socket else self.transport.connect()
                with self.transport.server.connect() as http:  # one for all questions: it counts itself

                    def read(metric, **labels):
                        http.send(support.request("GET", "/metrics", port=self.transport.server.port))
                        return support.Metrics(http.response().body.decode()).total(metric, **labels)

                    def open_ones(n):
                        return wait_until(lambda: read(support.CONNECTIONS) == n)
                    if not c:
                        self.assertTrue(open_ones(1))
                        c = self.transport.connect()
                    c.send(self.STEPS[name], take=False)
                    self.assertTrue(open_ones(2))
                    if name in self.SILENT:
                        self.assertTrue(wait_until(lambda: read(support.IN_FLIGHT) > 0))
                    if name in ("a stream", "a fast stream"):
                        c.message(), c.message()
                    how(c)
                    self.assertTrue(open_ones(1), "the connection stays")
                    self.assertTrue(wait_until(lambda: read(support.IN_FLIGHT) == 0), "the handler goes on")

    def steps(self):
        return [name for name in self.STEPS if self.transport.socket or name not in self.SILENT]

    def test_close(self):
        self.leave(self.steps(), lambda c: c.close())

    def test_reset(self):
        if self.transport.name in ("tcp", "port"):
            self.leave(self.STEPS, lambda c: c.abort())

    def test_a_close_stops_handlers_at_once(self):
        """The handler of a caller that has gone stops before a later call of 800 ms ends: not after a time of grace."""
        if not self.transport.socket:
            return
        with Transport(self.transport.name, "--threads", "1") as t, t.connect() as other:  # one loop: timers in order
            gone = t.connect()
            gone.send(rpc("sleep", LONG))
            self.assertTrue(wait_until(lambda: other.in_flight() == 1))
            gone.close()
            self.assertEqual(other.call("sleep", b'{"ms":800}')["result"], {"slept_ms": 800})
            self.assertEqual(other.in_flight(), 0)

    def test_half_close_after_a_request(self):
        for call, want in ((rpc("echo", b"7"), b"7"), (rpc("sleep", b'{"ms":200}'), b'{"slept_ms":200}'),
                           (rpc("sum", b"{}", stream=1) + frame(b"1", 2, b"7") + frame(b"1", 3), b"7"),
                           (rpc("echo", b'"%s"' % (b"x" * 3000000)), b'"%s"' % (b"x" * 3000000))):
            with self.subTest(call[:60]), self.transport.connect() as c:
                c.send(call)
                c.end_output()
                self.assertTrue(c.line() == result(b"1", want))
                self.assertTrue(c.ended())

    def test_half_close_without_the_last_newline(self):
        with self.transport.connect() as c:
            c.send(rpc("echo", b"7").strip())
            c.end_output()
            self.assertEqual(c.line(), result(b"1", b"7"))
            self.assertTrue(c.ended())

    def test_half_close_inside_a_stream(self):
        with self.transport.connect() as c:
            c.send(rpc("stream?stream=true", b'{"n":5000}'))
            c.end_output()
            _, chunks, end = c.take_stream(1)
            self.assertEqual((len(chunks), end), (5000, {"result": {"n": 5000}}))
            self.assertTrue(c.ended())

    def test_half_close_inside_an_input_stream(self):
        """Its end was not said: the sum would be a wrong one."""
        with self.transport.connect() as c:
            c.send(rpc("sum", b"{}", stream=1) + frame(b"1", 2, b"7"))
            c.end_output()
            m = c.message()
            self.assertEqual((m["id"], m["error"]["data"]["status"]), (1, "UNAVAILABLE"))
            self.assertTrue(c.ended())


class LeavingPipes(Leaving):
    """A process whose peer has died: nobody is left at the other end of both pipes, and nothing is to be written."""
    test_close = test_reset = test_half_close_after_a_request = test_half_close_without_the_last_newline = None
    test_half_close_inside_a_stream = test_half_close_inside_an_input_stream = None

    def test_both_closed_while_a_call_runs(self):
        self.leave(("a call", "a stream"), lambda c: c.close())


over_transports(Leaving)
over_transports(LeavingPipes, ("stdio",), ("--drain", "1s"))


class Draining(unittest.TestCase):
    def test_each(self):
        """A call that runs finishes, a new one is refused, the connection closes, the exit code is 0."""
        for name in Transport.NAMES:
            with self.subTest(name), Transport(name) as t, t.connect() as c:
                c.send(rpc("sleep", b'{"ms":%d}' % (800 * support.SLOW), b'"runs"') +
                       rpc("sum?stream=true", b"{}", b'"sum"', stream=1))
                self.assertTrue(wait_until(lambda: c.in_flight() == 2))
                c.server.signal(signal.SIGTERM)
                refused = None
                while refused is None:
                    c.send(rpc("echo", b"1", b'"new"'))
                    m = c.message()
                    while m["id"] == "sum":
                        m = c.message()
                    self.assertEqual(m["id"], "new")
                    refused = m.get("error")
                self.assertEqual((refused["code"], refused["data"]["status"]), (SERVER, "UNAVAILABLE"))
                c.send(frame(b'"sum"', 2, b"5") + frame(b'"sum"', 3))
                rest = [c.message() for _ in range(3)]
                self.assertEqual([m.get("stream") for m in rest], [2, 3, None])
                self.assertEqual((rest[0]["data"], rest[1]["data"]), (5, {"result": 5}))
                self.assertEqual(rest[2]["id"], "runs")
                self.assertIn("result", rest[2])
                self.assertTrue(c.ended())
                self.assertEqual(c.server.wait(), 0)

    def test_idle_connections_do_not_hold_it(self):
        for name in Transport.NAMES:
            with self.subTest(name), Transport(name) as t, t.connect() as c:
                self.assertEqual(c.call("echo", b"1")["result"], 1)
                c.server.signal(signal.SIGTERM)
                self.assertTrue(c.ended())
                self.assertEqual(c.server.wait(), 0)

    def test_the_second_signal_ends_it(self):
        for name in Transport.NAMES:
            with self.subTest(name):
                t = Transport(name).__enter__()
                try:
                    c = t.connect()
                    c.send(rpc("sleep", LONG))
                    self.assertTrue(wait_until(lambda: c.in_flight() == 1))
                    c.server.signal(signal.SIGTERM)
                    self.assertTrue(wait_until(lambda: "draining" in c.server.stderr()))
                    c.server.signal(signal.SIGTERM)
                    self.assertEqual(c.server.wait(), 128 + signal.SIGTERM)
                    c.close()
                finally:
                    for s in t.servers:
                        s.check_exit = False
                    t.__exit__(None, None, None)


if __name__ == "__main__":
    support.main()
