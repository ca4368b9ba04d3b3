"""The jsonrpc wire while something goes on: streams of results and of input, many calls at once, cancelling. Over TCP, Unix
sockets, stdio and the one port.

SPDX-License-Identifier: Apache-2.0
"""
import random

import support
from support import frame, over_transports, result, rpc, wait_until

INVALID, PARAMS, SERVER, CANCELLED = -32600, -32602, -32000, -32800
LONG = b'{"ms":60000}'


class Results:
    def test_bytes(self):
        with self.transport.connect() as c:
            c.send(rpc("/flow/greet?stream=true", b'{"name":"Ada"}', b'"g"'))
            head = b'{"jsonrpc":"2.0","id":"g","stream":'
            self.assertEqual([c.line() for _ in range(4)],
                             [head + b'1,"result":null}\n', head + b'2,"data":"Hello,"}\n', head + b'2,"data":" Ada!"}\n',
                              head + b'3,"data":{"result":"Hello, Ada!"}}\n'])
            self.assertEqual(c.call("echo", b"1")["result"], 1)

    def test_base_first_then_in_order(self):
        with self.transport.connect() as c:
            c.send(rpc("stream?stream=true", b'{"n":20000}', b"9"))
            base, chunks, end = c.take_stream(9)
            self.assertEqual((base["stream"], base["result"]), (1, None))
            self.assertEqual([x["index"] for x in chunks], list(range(20000)))
            self.assertEqual(end, {"result": {"n": 20000}})

    def test_the_base_does_not_wait(self):
        with self.transport.connect() as c:
            c.send(rpc("sleep?stream=true", LONG, b"1"))
            self.assertEqual(c.line(), b'{"jsonrpc":"2.0","id":1,"stream":1,"result":null}\n')
            c.send(rpc("$/cancelRequest", b'{"id":1}', None))
            m = c.message()
            self.assertEqual((m["stream"], m["data"]["error"]["code"]), (3, CANCELLED))

    def test_without_chunks(self):
        with self.transport.connect() as c:
            for payload in (b"null", b'{"a":9007199254740993,"a":1}', b"[1,\n2]"):
                c.send(rpc("echo?stream=true", payload))
                c.line()
                self.assertEqual(c.line(), b'{"jsonrpc":"2.0","id":1,"stream":3,"data":{"result":%s}}\n' % payload.replace(b"\n", b""))

    def test_close_with_error(self):
        with self.transport.connect() as c:
            c.send(rpc("fail?stream=true", b'{"status":"ABORTED","message":"m","details":{"x":1}}', b"4"))
            base, chunks, end = c.take_stream(4)
            self.assertEqual((base["stream"], base["result"], chunks), (1, None, []))
            self.assertEqual(end, {"error": {"code": SERVER, "message": "m", "data": {"status": "ABORTED", "details": {"x": 1}}}})

    def test_refused_before_it_began(self):
        with self.transport.connect() as c:
            m = c.call("nothing?stream=true", b"1")
            self.assertEqual(m["error"]["code"], -32601)
            self.assertNotIn("stream", m)

    def test_notification(self):
        """There is nobody to stream to: it runs, and says nothing."""
        with self.transport.connect() as c:
            c.send(rpc("count?stream=true", b'{"n":3}', None))
            self.assertEqual(c.call("echo", b"1")["result"], 1)

    def test_large_chunks_and_results(self):
        with self.transport.connect() as c:
            c.send(rpc("big?stream=true", b'{"bytes":8000000}', b"1"))
            _, chunks, end = c.take_stream(1)
            self.assertEqual((chunks, len(end["result"])), ([], 8000000))

    def test_chunks_come_when_they_are_made(self):
        with self.transport.connect() as c:
            c.send(rpc("count?stream=true", b'{"n":2,"delay_ms":60000}', b"1"))
            self.assertEqual((c.message()["stream"], c.message()["data"]), (1, {"i": 1}))
            self.assertTrue(c.quiet(0.2))
            c.send(rpc("$/cancelRequest", b'{"id":1}', None))
            self.assertEqual(c.message()["stream"], 3)


class Input:
    def dropped(self, c):
        return c.server.metrics().total("everywire_events_dropped_total")

    def test_sum(self):
        with self.transport.connect() as c:
            c.send(rpc("sum", b"{}", b'"s"', stream=1) + frame(b'"s"', 2, b"1") + frame(b'"s"', 2, b"41") + frame(b'"s"', 3))
            self.assertEqual(c.line(), result(b'"s"', b"42"))

    def test_step_by_step(self):
        with self.transport.connect() as c:
            c.send(rpc("sum", None, b"1", stream=1))
            for i in range(10):
                c.send(frame(b"1", 2, b"%d" % i))
                self.assertEqual(c.call("echo", b"7", b"2")["result"], 7)  # the connection is free meanwhile
            c.send(frame(b"1", 3, b'"data of a close frame means nothing"'))
            self.assertEqual(c.line(), result(b"1", b"45"))

    def test_empty(self):
        with self.transport.connect() as c:
            c.send(rpc("sum", b"{}", b"1", stream=1) + frame(b"1", 3))
            self.assertEqual(c.line(), result(b"1", b"0"))

    def test_all_in_one_write_and_cut_anywhere(self):
        text = rpc("sum", b"{}", b"1", stream=1) + b"".join(frame(b"1", 2, b"%d" % i) for i in range(200)) + frame(b"1", 3)
        chance = random.Random(3)
        with self.transport.connect() as c:
            for size in (len(text), 7000, 997, 61):
                rest = text
                while rest:
                    n = chance.randint(1, size)
                    c.send(rest[:n])
                    rest = rest[n:]
                self.assertEqual(c.line(), result(b"1", b"19900"))

    def test_many_frames(self):
        n = 50000
        with self.transport.connect() as c:
            c.send(rpc("sum", b"{}", b"1", stream=1) + b"".join(frame(b"1", 2, b"1") for _ in range(n)) + frame(b"1", 3), 60)
            self.assertEqual(c.line(60), result(b"1", b"%d" % n))

    def test_the_id_in_another_spelling(self):
        with self.transport.connect() as c:
            c.send(rpc("sum", b"{}", b'"a"', stream=1) + frame(rb'"\u0061"', 2, b"5") + frame(b'"a"', 3))
            self.assertEqual(c.line(), result(b'"a"', b"5"))

    def test_a_bad_item_ends_the_call(self):
        with self.transport.connect() as c:
            c.send(rpc("sum", b"{}", b"1", stream=1) + frame(b"1", 2, b'"x"') + frame(b"1", 2, b"1") + frame(b"1", 3))
            m = c.message()
            self.assertEqual((m["id"], m["error"]["code"]), (1, PARAMS))
            self.assertEqual(c.call("echo", b"1", b"2")["result"], 1)  # the rest was dropped

    def test_an_action_that_takes_no_stream(self):
        with self.transport.connect() as c:
            m = c.call("echo", b'"params"', stream=1)
            self.assertEqual(m["result"], "params")
            c.send(frame(b"1", 2, b"1") + frame(b"1", 3))
            self.assertEqual(c.call("echo", b"2", b"1")["result"], 2)

    def test_an_unknown_method(self):
        with self.transport.connect() as c:
            m = c.call("nothing", b"{}", stream=1)
            self.assertEqual(m["error"]["code"], -32601)
            c.send(frame(b"1", 2, b"1") + frame(b"1", 3))
            self.assertEqual(c.call("echo", b"2", b"1")["result"], 2)

    def test_frames_nobody_waits_for_are_counted(self):
        with self.transport.connect() as c:
            before = self.dropped(c)
            c.send(rpc("sum", b"{}", b"1", stream=1) + frame(b"1", 2, b"1") + frame(b"1", 3) + frame(b"1", 2, b"5") +
                   frame(b"1", 3) + frame(b'"never"', 2, b"1"))
            self.assertEqual(c.line(), result(b"1", b"1"))
            self.assertTrue(wait_until(lambda: self.dropped(c) >= before + 3))

    def test_opened_twice(self):
        with self.transport.connect() as c:
            c.send(rpc("sum", b"{}", b"1", stream=1) + frame(b"1", 2, b"1") + rpc("sum", b"{}", b"1", stream=1))
            m = c.message()
            self.assertEqual((m["id"], m["error"]["code"]), (1, INVALID))
            c.send(frame(b"1", 2, b"2") + frame(b"1", 3))  # the first one is intact
            self.assertEqual(c.line(), result(b"1", b"3"))

    def test_a_bad_frame_ends_its_call(self):
        for bad in (b"4", b'"2"', b"-1", b"2.5"):
            with self.subTest(bad), self.transport.connect() as c:
                c.send(rpc("sum", b"{}", b"1", stream=1) + b'{"jsonrpc":"2.0","id":1,"stream":%s,"data":1}\n' % bad)
                m = c.message()
                self.assertEqual((m["id"], m["error"]["code"]), (1, INVALID))
                self.assertEqual(c.call("echo", b"1", b"1")["result"], 1)
                self.assertTrue(wait_until(lambda: c.in_flight() == 0))

    def test_both_at_once(self):
        with self.transport.connect() as c:
            c.send(rpc("sum?stream=true", b"{}", b"1", stream=1))
            self.assertEqual(c.line(), b'{"jsonrpc":"2.0","id":1,"stream":1,"result":null}\n')
            total = 0
            for i in (5, -2, 40):
                total += i
                c.send(frame(b"1", 2, b"%d" % i))
                self.assertEqual(c.line(), b'{"jsonrpc":"2.0","id":1,"stream":2,"data":%d}\n' % total)
            c.send(frame(b"1", 3))
            self.assertEqual(c.line(), b'{"jsonrpc":"2.0","id":1,"stream":3,"data":{"result":43}}\n')

    def test_both_at_once_in_bulk(self):
        n = 20000
        with self.transport.connect() as c:
            c.send(rpc("sum?stream=true", b"{}", b"1", stream=1) + b"".join(frame(b"1", 2, b"1") for _ in range(n)) +
                   frame(b"1", 3), 60)
            _, chunks, end = c.take_stream(1)
            self.assertEqual((chunks, end), (list(range(1, n + 1)), {"result": n}))


class Concurrency:
    def test_500_calls_and_streams(self):
        """Each of them gets all of its own and nothing of the others."""
        kinds = ("echo", "sleep", "count", "sum", "both", "fail")
        with self.transport.connect() as c:
            first, later = [], []
            for i in range(500):
                id, kind = b'"%s%d"' % (kinds[i % 6].encode(), i), kinds[i % 6]
                frames = [frame(id, 2, b"%d" % (i + k)) for k in range(5)] + [frame(id, 3)]
                if kind == "echo":
                    first.append(rpc("echo", b"%d" % i, id))
                elif kind == "sleep":
                    first.append(rpc("sleep", b'{"ms":%d}' % (i % 50), id))
                elif kind == "count":
                    first.append(rpc("count?stream=true", b'{"n":5,"delay_ms":%d}' % (i % 7), id))
                elif kind == "fail":
                    first.append(rpc("fail?stream=true", b'{"message":"%d"}' % i, id))
                else:
                    first.append(rpc("sum?stream=true" if kind == "both" else "sum", b"{}", id, stream=1))
                    later.append(frames)
            mixed = [f for turn in zip(*later) for f in turn]  # the streams take turns
            c.send(b"".join(first + mixed), 60)
            self.check_all(kinds, self.collect(c, 500))

    def collect(self, c, n):
        got, ended = {}, 0
        while ended < n:
            m = c.message(30)
            got.setdefault(m["id"], []).append(m)
            ended += m.get("stream", 0) in (0, 3)
        return got

    def check_all(self, kinds, got):
        self.assertEqual(len(got), 500)
        for i in range(500):
            kind, messages = kinds[i % 6], got["%s%d" % (kinds[i % 6], i)]
            total = [sum(i + k for k in range(j + 1)) for j in range(5)]
            with self.subTest("%s%d" % (kind, i)):
                last = messages[-1]
                if kind in ("echo", "sleep", "sum"):
                    want = {"echo": i, "sleep": {"slept_ms": i % 50}, "sum": total[-1]}[kind]
                    self.assertEqual((len(messages), last["result"]), (1, want))
                    continue
                self.assertEqual((messages[0]["stream"], last["stream"]), (1, 3))
                chunks = [m["data"] for m in messages[1:-1]]
                if kind == "fail":
                    self.assertEqual((chunks, last["data"]["error"]["message"]), ([], str(i)))
                elif kind == "count":
                    self.assertEqual((chunks, last["data"]), ([{"i": k} for k in range(1, 6)], {"result": {"count": 5}}))
                else:
                    self.assertEqual((chunks, last["data"]), (total, {"result": total[-1]}))

    def test_too_many(self):
        """Past the limit of a connection new calls are refused, those that run are not touched."""
        with self.transport.connect() as c:
            n = 4096
            c.send(b"".join(rpc("sleep", LONG, b"%d" % i) for i in range(n + 3)))
            for i in range(3):
                m = c.message(30)
                self.assertEqual((m["id"], m["error"]["data"]["status"]), (n + i, "RESOURCE_EXHAUSTED"))
            c.send(b"".join(rpc("$/cancelRequest", b'{"id":%d}' % i, None) for i in range(n)))
            self.assertEqual({c.message(30)["id"] for _ in range(n)}, set(range(n)))
            self.assertEqual(c.call("echo", b"1")["result"], 1)


class Cancelling:
    def test_sleep_ends_at_once(self):
        with self.transport.connect() as c:
            c.send(rpc("/flow/sleep", LONG, b'"z"'))
            self.assertTrue(wait_until(lambda: c.in_flight() == 1))
            c.send(rpc("$/cancelRequest", b'{"id":"z"}', None))
            m = c.message()
            self.assertEqual((m["id"], m["error"]["code"], m["error"]["data"]["status"]), ("z", CANCELLED, "CANCELLED"))
            self.assertTrue(wait_until(lambda: c.in_flight() == 0))

    def test_twice_late_and_unknown(self):
        with self.transport.connect() as c:
            c.send(rpc("sleep", LONG, b"1") + rpc("$/cancelRequest", b'{"id":1}', None) * 2 +
                   rpc("$/cancelRequest", b'{"id":2}', None) + rpc("$/cancelRequest", b'{"id":null}', None))
            self.assertEqual(c.message()["error"]["code"], CANCELLED)
            c.send(rpc("$/cancelRequest", b'{"id":1}', None))
            self.assertEqual(c.call("echo", b"1", b"1")["result"], 1)

    def test_streams(self):
        with self.transport.connect() as c:
            c.send(rpc("count?stream=true", b'{"n":10000000}', b"1"))
            for _ in range(50):
                c.message()
            c.send(rpc("$/cancelRequest", b'{"id":1}', None))
            while True:
                m = c.message()
                if m["stream"] == 3:
                    break
            self.assertEqual(m["data"]["error"]["data"]["status"], "CANCELLED")
            self.assertEqual(c.call("echo", b"1")["result"], 1)

    def test_input_streams(self):
        with self.transport.connect() as c:
            c.send(rpc("sum", b"{}", b"1", stream=1) + frame(b"1", 2, b"1") + rpc("$/cancelRequest", b'{"id":1}', None) +
                   frame(b"1", 2, b"1") + frame(b"1", 3))
            self.assertEqual(c.message()["error"]["code"], CANCELLED)
            self.assertEqual(c.call("echo", b"1")["result"], 1)


for _group in (Results, Input, Concurrency, Cancelling):
    over_transports(_group)

if __name__ == "__main__":
    support.main()
