"""What an operator relies on: health, metrics, bounded memory and time under floods, no lines forged in the log.

SPDX-License-Identifier: Apache-2.0
"""
import errno
import json
import re
import resource
import socket
import threading
import time
import unittest
import urllib.parse

import support
from support import Server, request, wait_until

server = None


def setUpModule():
    global server
    server = Server().start()


def tearDownModule():
    server.__exit__(None, None, None)


class Health(unittest.TestCase):
    def test_health(self):
        for path in ("/healthz", "/readyz", "/health"):
            with self.subTest(path):
                r = server.get(path)
                self.assertEqual(r.status, 200, r)
                self.assertEqual(server.get(path + "?verbose").status, 200)

    def test_keep_alive(self):
        with server.connect() as c:
            for path in ("/healthz", "/readyz", "/metrics", "/api/actions", "/healthz"):
                c.send(request("GET", path, port=server.port))
                r = c.response()
                self.assertEqual(r.status, 200)
                self.assertFalse(r.closes())

    def test_not_cached(self):
        for path in ("/healthz", "/readyz"):
            cache = server.get(path).get("cache-control")
            self.assertTrue(cache is None or "no-" in cache, cache)


class Metrics(unittest.TestCase):
    def test_content_type(self):
        r = server.get("/metrics")
        self.assertEqual(r.status, 200)
        self.assertRegex(r.get("content-type"), r"\Atext/plain; ?version=0\.0\.4")

    def test_types(self):
        server.call("/flow/echo", b"1")
        m = server.metrics()
        self.assertEqual(m.types[support.CALLS], "counter")
        self.assertEqual(m.types[support.IN_FLIGHT], "gauge")
        self.assertEqual(m.types[support.DURATION], "histogram")
        self.assertEqual(m.types[support.CONNECTIONS], "gauge")
        for name in m.types:
            self.assertTrue(name.startswith("everywire_"), name)
            if m.types[name] == "counter":
                self.assertTrue(name.endswith("_total"), name)
        for name in ("everywire_bytes_received_total", support.SENT, "everywire_events_dropped_total",
                     "everywire_work_after_cancel_milliseconds_total", "everywire_connections_accepted_total"):
            self.assertIn(name, m.names())
            self.assertEqual(m.types[name], "counter")

    def test_calls_by_action_wire_status(self):
        def count(**labels):
            return server.metrics().total(support.CALLS, **labels)
        before = count(action="/flow/echo", wire="http", status="OK")
        fails = count(action="/flow/fail", wire="http", status="ABORTED")
        for _ in range(7):
            server.call("/flow/echo", b"1")
        server.call("/echo", b"1", [("Accept", "text/event-stream")])
        server.call("/flow/fail", b'{"status":"ABORTED"}')
        server.call("/flow/sleep", b'{"ms":5000}', [("x-everywire-timeout-ms", "30")])
        self.assertEqual(count(action="/flow/echo", wire="http", status="OK"), before + 8)
        self.assertEqual(count(action="/flow/fail", wire="http", status="ABORTED"), fails + 1)
        self.assertGreaterEqual(count(action="/flow/sleep", wire="http", status="DEADLINE_EXCEEDED"), 1)

    def test_callers_cannot_make_series(self):
        server.call("/flow/echo", b"1")
        before = len(server.metrics().samples)
        for i in range(300):
            server.call("/flow/no-such-%d" % i, b"1")
        after = server.metrics()
        self.assertLess(len(after.samples) - before, 40, "an unknown name must not become a label")
        self.assertFalse([n for n in after.samples if "no-such" in str(n)])

    def test_in_flight(self):
        self.assertTrue(wait_until(lambda: server.metrics().total(support.IN_FLIGHT) == 0))
        conns = [server.connect() for _ in range(5)]
        for c in conns:
            c.send(request("POST", "/flow/sleep", b'{"data":{"ms":700}}', port=server.port))
        self.assertTrue(wait_until(lambda: server.metrics().total(support.IN_FLIGHT) == 5))
        for c in conns:
            self.assertEqual(c.response().status, 200)
            c.close()
        self.assertTrue(wait_until(lambda: server.metrics().total(support.IN_FLIGHT) == 0))

    def test_durations(self):
        for ms in (0, 20, 120):
            server.call("/flow/sleep", b'{"ms":%d}' % ms)
        m = server.metrics()
        series = {}
        for (name, labels), value in m.samples.items():
            if name == support.DURATION + "_bucket":
                rest = tuple(x for x in labels if x[0] != "le")
                series.setdefault(rest, []).append((float(dict(labels)["le"].replace("+Inf", "inf")), value))
        self.assertTrue(series)
        for rest, buckets in series.items():
            with self.subTest(rest):
                self.assertEqual(buckets, sorted(buckets), "in order of le")
                values = [v for _, v in buckets]
                self.assertEqual(values, sorted(values), "cumulative")
                self.assertEqual(buckets[-1][0], float("inf"))
                count = m.samples[(support.DURATION + "_count", rest)]
                self.assertEqual(buckets[-1][1], count)
                total = m.samples[(support.DURATION + "_sum", rest)]
                self.assertTrue(0 <= total < 1e6)
        sleeps = [rest for rest in series if dict(rest).get("action") == "/flow/sleep"]
        self.assertTrue(sleeps, "durations are told by action")
        self.assertGreaterEqual(sum(m.samples[(support.DURATION + "_sum", r)] for r in sleeps), 0.139)
        # all calls of an action that ended are in its histogram
        self.assertEqual(sum(m.samples[(support.DURATION + "_count", r)] for r in sleeps), m.total(support.CALLS, action="/flow/sleep"))

    def test_bytes(self):
        def counters():
            m = server.metrics()
            return {k: v for k, v in m.samples.items() if "bytes" in k[0] and m.types.get(k[0]) == "counter"}
        before = counters()
        self.assertGreaterEqual(len(before), 2)
        server.call("/flow/echo", b'"' + b"x" * 100000 + b'"')

        def both_grown():  # each loop tells its own figures, a little later
            after = counters()
            return len([k for k in after if 100000 <= after[k] - before.get(k, 0) <= 150000]) >= 2
        self.assertTrue(wait_until(both_grown), (before, counters()))

    def test_connections(self):
        def count():
            return server.metrics().total(support.CONNECTIONS)
        # the scrape's own connection is one of them
        self.assertTrue(wait_until(lambda: count() == 1))
        conns = [server.connect() for _ in range(20)]
        self.assertTrue(wait_until(lambda: count() == 21))
        for c in conns:
            c.close()
        self.assertTrue(wait_until(lambda: count() == 1))

    def test_scrapes_are_no_calls(self):
        before = server.metrics().total(support.CALLS)
        for _ in range(5):
            server.get("/metrics")
            server.get("/healthz")
        self.assertEqual(server.metrics().total(support.CALLS), before)

    def test_many_scrapes_at_once(self):
        problems = []

        def work():
            try:
                for _ in range(20):
                    server.metrics()
                    server.call("/flow/echo", b"1")
            except Exception as e:  # pylint: disable=broad-except
                problems.append(repr(e))
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(30 * support.SLOW)
        self.assertEqual(problems, [])


class Floods(unittest.TestCase):
    def test_out_of_descriptors(self):
        limit = 64

        def few_files():
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        with Server("--threads", "1", preexec=few_files) as s:
            conns = []
            for _ in range(200):
                c = socket.socket()
                c.setblocking(False)
                try:
                    c.connect(("127.0.0.1", s.port))
                except BlockingIOError:
                    pass
                conns.append(c)
            time.sleep(0.5)
            cpu, begin = s.cpu_seconds(), time.monotonic()
            time.sleep(1.5)
            used = (s.cpu_seconds() - cpu) / (time.monotonic() - begin)
            print("out of descriptors: CPU %.0f%%, %d files open" % (used * 100, s.open_files()))
            self.assertTrue(s.running())
            self.assertLess(used, 0.2)
            for c in conns:
                c.close()
            begin = time.monotonic()

            def works():
                try:
                    with support.Conn(s.port, timeout=1.0) as c:
                        c.send(request("POST", "/flow/echo", b'{"data":1}', port=s.port))
                        return c.response(1.0).status == 200
                except (OSError, AssertionError, support.Closed):
                    return False
            self.assertTrue(wait_until(works, 5))
            print("recovered after %.2f s" % (time.monotonic() - begin))
            self.assertLess(time.monotonic() - begin, 2.0 * support.SLOW)
            # and stays well
            for _ in range(100):
                self.assertEqual(s.call("/echo", b"1").status, 200)

    def test_connections_limit(self):
        with Server("--threads", "1", "--limit", "connections=20") as s:
            conns = [s.connect() for _ in range(40)]
            alive = 0
            for c in conns:
                try:
                    c.send(request("POST", "/flow/echo", b'{"data":1}', port=s.port))
                    r = c.response(3.0)
                    alive += r.status == 200
                    if r.status != 200:
                        self.assertEqual(r.status, 503)
                except (support.Closed, OSError, AssertionError):
                    pass
            self.assertLessEqual(alive, 20)
            self.assertGreaterEqual(alive, 15)
            for c in conns:
                c.close()
            self.assertTrue(wait_until(lambda: self.answers(s), 3))

    @staticmethod
    def answers(s):
        try:
            return s.call("/echo", b"1").status == 200
        except (support.Closed, OSError, AssertionError):
            return False

    def test_idle_connections(self):
        n = 2000
        if support.raise_file_limit(n + 200) < n + 200:
            self.skipTest("not enough descriptors here")
        with Server("--threads", "1") as s:
            for _ in range(20):
                s.call("/echo", b"1")
            before = s.rss()
            conns = [s.connect() for _ in range(n)]
            one = request("POST", "/flow/echo", b'{"data":"%s"}' % (b"x" * 100), port=s.port)
            for c in conns:
                c.send(one)
            for c in conns:
                self.assertEqual(c.response().status, 200)
            time.sleep(0.3)
            each = (s.rss() - before) / n
            print("%d idle connections: %.2f KiB each; at rest %.2f MB" % (n, each / 1024, before / 1e6))
            if not support.SANITIZED:
                self.assertLess(each, 6 * 1024)
                self.assertLess(before, 8e6)
            begin = time.monotonic()
            for c in conns:
                c.send(one)
            for c in conns:
                self.assertEqual(c.response().status, 200)
            self.assertLess(time.monotonic() - begin, 5 * support.SLOW)
            for c in conns:
                c.close()
            self.assertTrue(wait_until(lambda: s.metrics().total(support.CONNECTIONS) <= 1))

    def test_lying_lengths_cost_nothing(self):
        with Server("--threads", "1") as s:
            for _ in range(20):
                s.call("/echo", b"1")
            before = s.rss()
            conns = []
            for _ in range(100):
                c = s.connect()
                c.send(("POST /flow/echo HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{"
                        % (s.port, 16 * 1024 * 1024)).encode())
                conns.append(c)
            time.sleep(0.5)
            each = (s.rss() - before) / 100
            print("100 announced bodies of 16 MiB: %.1f KiB each" % (each / 1024))
            if not support.SANITIZED:
                self.assertLess(each, 64 * 1024)
            for c in conns:
                c.close()

    def test_trickling_heads_are_cut(self):
        self.trickle(b"POST /flow/echo HTTP/1.1\r\nX: " + b"y" * 10000)

    def test_trickling_bodies_are_cut(self):
        self.trickle(b"POST /flow/echo HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n" + b" " * 8999, 150)

    def trickle(self, data, at_once=1):
        with Server("--threads", "1", "--limit", "head_ms=800", "--limit", "body_stall_ms=800") as s:
            data = data.replace(b"PORT", b"%d" % s.port)
            conns = [s.connect() for _ in range(100)]
            begin = time.monotonic()
            for c in conns:
                c.send(data[:at_once])
                c.sock.setblocking(False)
            alive, i = list(conns), at_once
            while alive and time.monotonic() - begin < 6 * support.SLOW:
                time.sleep(0.1)
                for c in list(alive):
                    try:
                        c.sock.recv(65536)  # an answer or the end: it was cut
                        alive.remove(c)
                    except BlockingIOError:
                        if c.sock.send(data[i:i + 1]) != 1:
                            alive.remove(c)
                    except OSError:
                        alive.remove(c)
                i += 1
            took = time.monotonic() - begin
            print("100 trickling clients: the last was cut after %.2f s" % took)
            self.assertEqual(len(alive), 0, "%d of 100 still there after %.1f s" % (len(alive), took))
            self.assertGreater(took, 0.6)
            self.assertEqual(s.call("/echo", b"1").status, 200)
            for c in conns:
                c.close()

    def test_idle_timeout(self):
        with Server("--limit", "idle_ms=600") as s:
            with s.connect() as fresh, s.connect() as used, s.connect() as busy:
                begin = time.monotonic()
                used.send(request("POST", "/flow/echo", b'{"data":1}', port=s.port))
                self.assertEqual(used.response().status, 200)
                busy.send(request("POST", "/flow/sleep", b'{"data":{"ms":1500}}', port=s.port))
                self.assertTrue(used.closed(5))
                self.assertGreater(time.monotonic() - begin, 0.5)
                self.assertTrue(fresh.closed(5))
                self.assertLess(time.monotonic() - begin, 3 * support.SLOW)
                self.assertEqual(busy.response().status, 200, "a running call is not idle")

    def test_flood_of_bad_requests(self):
        bad = [b"\x00" * 50, b"GET\r\n\r\n", b"POST /x HTTP/1.1\r\n\r\n", b"A" * 3000 + b"\r\n\r\n", b"POST /flow/echo HTTP/1.1\r\nHost: evil\r\n\r\n",
               b"{\"jsonrpc\":\"2.0\"}\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", b"",
               b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n" * 500]
        with Server("--threads", "1") as s:
            for _ in range(300):
                self.fire(s, bad[_ % len(bad)])
            before, files = s.rss(), s.open_files()
            begin = time.monotonic()
            for i in range(2000):
                self.fire(s, bad[i % len(bad)])
                if i % 500 == 0:
                    self.assertEqual(s.call("/echo", b"1").status, 200)
            grown = s.rss() - before
            print("2000 bad requests in %.1f s: %d KiB more" % (time.monotonic() - begin, grown // 1024))
            if not support.SANITIZED:
                self.assertLess(grown, 1024 * 1024)
            self.assertTrue(wait_until(lambda: s.open_files() <= files + 2))
            self.assertEqual(s.call("/echo", b"1").status, 200)

    @staticmethod
    def fire(s, data):
        try:
            with socket.create_connection(("127.0.0.1", s.port), 5) as c:
                c.sendall(data)
                c.shutdown(socket.SHUT_WR)
                c.settimeout(5 * support.SLOW)
                while c.recv(65536):
                    pass
        except OSError as e:
            if isinstance(e, socket.timeout):
                raise AssertionError("no answer and no close to %r" % data[:60])
            if e.errno not in (errno.ECONNRESET, errno.EPIPE):
                raise

    def test_connect_and_leave(self):
        with Server("--threads", "1") as s:
            s.call("/echo", b"1")
            files = s.open_files()
            for _ in range(1500):
                socket.create_connection(("127.0.0.1", s.port), 5).close()
            self.assertEqual(s.call("/echo", b"1").status, 200)
            self.assertTrue(wait_until(lambda: s.open_files() <= files + 2))

    def test_load_beside_slow_clients(self):
        with Server("--threads", "1") as s:
            slow = [s.connect() for _ in range(300)]
            for c in slow:
                c.send(b"POST /flow/echo HTTP/1.1\r\nX: ")
            with s.connect() as c:
                worst = 0.0
                for i in range(300):
                    begin = time.monotonic()
                    c.send(request("POST", "/flow/echo", b'{"data":%d}' % i, port=s.port))
                    self.assertEqual(c.response().status, 200)
                    worst = max(worst, time.monotonic() - begin)
            self.assertLess(worst, 0.5 * support.SLOW)
            for c in slow:
                c.close()


NAUGHTY = ["\x1b[31mred\x1b[0m", "a\r\nlevel=error forged", "a\nb", "\x00", "\x07\x08\x7f", "\u202ereversed", "\u2028\u2029\x85", "%s%n%x", "${jndi:ldap://x}",
           "'; DROP TABLE x; --", "<script>alert(1)</script>", "../../etc/passwd", "\ufeff", "\U0001f4a9", "田中さん", "{\"event\":\"ready\"}", "\\x1b[2J",
           "`touch /tmp/x`", "nil", "NaN", "\u0007", "á" * 200, "A" * 3000, "\x9b31m", "\ufffe", "\x1b]0;title\x07"]


class Logs(unittest.TestCase):
    def test_no_line_is_forged(self):
        with Server("--threads", "1", "--log-level", "debug") as s:
            for text in NAUGHTY:
                quoted = urllib.parse.quote(text.encode("utf-8", "surrogatepass"), safe="")
                for path in ("/" + quoted, "/flow/" + quoted, "/echo?" + quoted):
                    r = s.call(path, b"1")
                    self.assertIn(r.status, (200, 400, 404), text)
                    for name, value in r.headers:
                        self.assertNotRegex(value, r"[\x00-\x08\x0a-\x1f\x7f]", name)
                r = s.call("/flow/fail", json.dumps({"status": "INTERNAL", "message": text}).encode())
                self.assertEqual(r.json()["message"], text)
                octets = text.encode("utf-8", "surrogatepass")
                self.raw(s, b"POST /flow/echo HTTP/1.1\r\nHost: " + octets + b"\r\nContent-Length: 0\r\n\r\n")
                self.raw(s, b"POST /flow/echo HTTP/1.1\r\nHost: localhost\r\nOrigin: " + octets + b"\r\nContent-Length: 0\r\n\r\n")
                self.raw(s, octets + b" / HTTP/1.1\r\n\r\n")
            text = s.stderr_bytes()
            bad = re.findall(rb"[\x00-\x08\x0b-\x1f\x7f]", text)
            self.assertEqual(bad, [], "raw control bytes in the log")
            self.assertNotIn("\x9b".encode(), text)
            self.assertNotIn(b"\nlevel=error forged", text)
            self.assertFalse([line for line in text.split(b"\n") if line.startswith((b"b", b"level=error forged", b"{\"event\":\"ready\"}"))])
            self.assertTrue(all(line.startswith('{"event":') for line in s.lines))

    @staticmethod
    def raw(s, data):
        with s.connect() as c:
            c.try_send(data)
            c.sock.shutdown(socket.SHUT_WR)
            try:
                c.rest(3)
            except AssertionError:
                pass

    def test_standard_output_has_events_only(self):
        with Server() as s:
            s.call("/echo", b"1")
            s.call("/none", b"1")
            lines = s.lines
        self.assertEqual([json.loads(line)["event"] for line in lines], ["listening", "ready"])


if __name__ == "__main__":
    support.main()
