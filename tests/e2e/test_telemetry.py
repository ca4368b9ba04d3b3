"""The spans of all calls, at a telemetry server that is well, away, slow, unwilling or forgetful.

SPDX-License-Identifier: Apache-2.0
"""
import http.server
import json
import threading
import time
import unittest

import fake_runtime
import support
from support import Server, free_ports, wait_until

WAIT = 20.0
EXPORTED, DROPPED = "everywire_spans_exported_total", "everywire_spans_dropped_total"


class Telemetry:
    """A telemetry server that keeps what is posted to it, and answers as it is told."""

    def __init__(self, port=0):
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                super().setup()
                owner.connections += 1

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                owner.posts.append((self.path, dict(self.headers), json.loads(body)))
                time.sleep(owner.delay)
                text = b'{"code":13}' if owner.status >= 400 else b"OK"
                self.send_response(owner.status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
                self.close_connection = owner.closes  # without having said so

            def log_message(self, *_):
                pass

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

        self.posts, self.connections = [], 0
        self.status, self.delay, self.closes = 200, 0.0, False
        self.listener = Listener(("127.0.0.1", port), Handler)
        self.port = self.listener.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        threading.Thread(target=self.listener.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown()
        self.listener.server_close()

    def spans(self):
        return [s for _, _, body in list(self.posts) for s in body["spans"].values()]

    def wait(self, n):
        """The first n spans."""
        if not wait_until(lambda: len(self.spans()) >= n, WAIT):
            raise AssertionError("%d spans, not %d" % (len(self.spans()), n))
        return self.spans()


def serve(url, *args, env=None, **kw):
    return Server("--telemetry", url, "--threads", "1", *args,
                  env=dict({"GENKIT_ENABLE_REALTIME_TELEMETRY": "", "GENKIT_REFLECTION_V2_SERVER": ""}, **(env or {})), **kw)


def lines(server, text):
    return sum(text in line for line in server.stderr().splitlines())


class Spans(unittest.TestCase):
    def test_form(self):
        with Telemetry() as t, serve(t.url) as s:
            self.assertEqual(s.call("/echo", b'{"a": 1}').status, 200)
            root = t.wait(1)[0]
            path, headers, body = t.posts[0]
            self.assertEqual(path, "/api/traces")
            self.assertEqual(headers["Content-Type"], "application/json")
            self.assertEqual(headers["Accept"], "application/json")
            self.assertEqual(headers["Host"], t.url[7:])
            self.assertEqual(list(body["spans"]), [root["spanId"]])
            self.assertEqual((body["displayName"], body["startTime"], body["endTime"]),
                             ("echo", root["startTime"], root["endTime"]))
            self.assertNotIn("parentSpanId", root)
            self.assertLess(abs(time.time() * 1000 - root["startTime"]), 60000)
            self.assertEqual(root["attributes"],
                             {"genkit:type": "action", "genkit:metadata:subtype": "flow", "genkit:key": "/flow/echo",
                              "genkit:name": "echo", "genkit:isRoot": True, "genkit:path": "/{echo,t:flow}",
                              "genkit:input": '{"a": 1}', "genkit:output": '{"a": 1}', "genkit:state": "success"})

    def test_trace_and_fault(self):
        trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
        with Telemetry() as t, serve(t.url) as s:
            r = s.call("/fail", b'{"status":"NOT_FOUND","message":"nothing \\"here\\""}',
                       headers=[("traceparent", "00-%s-%s-01" % (trace, parent))])
            self.assertEqual(r.status, 404)
            span = t.wait(1)[0]
            body = t.posts[0][2]
            self.assertEqual((body["traceId"], span["traceId"], span["parentSpanId"]), (trace, trace, parent))
            self.assertNotIn("displayName", body)
            self.assertEqual(span["status"], {"code": 2, "message": 'nothing "here"'})
            event = span["timeEvents"]["timeEvent"][0]["annotation"]
            self.assertEqual(event["description"], "exception")
            self.assertEqual(event["attributes"]["exception.type"], "NOT_FOUND")
            self.assertEqual(span["attributes"]["genkit:state"], "error")
            self.assertIs(span["attributes"]["genkit:isFailureSource"], True)

    def test_realtime(self):
        with Telemetry() as t, serve(t.url, env={"GENKIT_ENABLE_REALTIME_TELEMETRY": "true"}) as s:
            with s.connect() as c:
                c.send(support.request("POST", "/sleep", b'{"data":{"ms":60000}}', port=s.port))
                start = t.wait(1)[0]
                self.assertEqual(start["endTime"], 0)
                self.assertNotIn("genkit:state", start["attributes"])
            end = t.wait(2)[1]  # the caller has gone
            self.assertEqual(end["spanId"], start["spanId"])
            self.assertGreaterEqual(end["endTime"], start["startTime"])
            self.assertEqual(end["attributes"]["genkit:state"], "error")

    def test_many(self):
        with Telemetry() as t, serve(t.url) as s:
            with s.connect() as c:
                for i in range(200):
                    c.send(support.request("POST", "/echo", b'{"data":%d}' % i, port=s.port))
                    self.assertEqual(c.response().status, 200)
            spans = t.wait(200)
            self.assertEqual([x["attributes"]["genkit:input"] for x in spans], [str(i) for i in range(200)])
            self.assertEqual(t.connections, 1)
            self.assertTrue(wait_until(lambda: s.metrics().total(EXPORTED) == 200))
            self.assertEqual(s.metrics().total(DROPPED), 0)


class Gateway(unittest.TestCase):
    def test_runtime_on_any_loop(self):
        """A call to a runtime has one CLIENT span, on whatever loop the runtime is, which names the app's own trace."""
        n = 24
        with Telemetry() as t:
            with serve(t.url, "--threads", "2") as s:
                runtime = fake_runtime.Runtime(s.port, flows={"/flow/mirror": fake_runtime.echo})
                try:
                    self.assertTrue(wait_until(lambda: s.call("/mirror", b"1").status == 200, WAIT))
                    for i in range(n):  # each on a connection of its own, which one of the loops accepts
                        self.assertEqual(s.call("/mirror", b'{"i":%d}' % i).status, 200)
                finally:
                    runtime.close()
            wanted = {'{"i":%d}' % i for i in range(n)}  # the server has ended, and flushed its spans
            clients = [x for x in t.spans() if x["spanKind"] == "CLIENT" and x["attributes"]["genkit:input"] in wanted]
            self.assertEqual(sorted(x["attributes"]["genkit:input"] for x in clients), sorted(wanted))
            for x in clients:
                trace = x["attributes"]["everywire:upstreamTraceId"]
                self.assertEqual(trace[:len(fake_runtime.TRACE) - 8], fake_runtime.TRACE[:-8])
                self.assertNotEqual(trace, x["traceId"])


class Trouble(unittest.TestCase):
    def calls(self, server, n):
        for _ in range(n):
            self.assertEqual(server.call("/echo", b"1").status, 200)

    def test_away_and_back(self):
        port = free_ports()
        with serve("http://localhost:%d" % port, "--log-level", "info") as s:
            self.calls(s, 20)
            self.assertTrue(wait_until(lambda: lines(s, "is away") == 1, WAIT))
            time.sleep(1.2)  # some tries more
            self.assertEqual(lines(s, "is away"), 1)
            with Telemetry(port) as t:
                t.wait(20)
                self.assertTrue(wait_until(lambda: lines(s, "is back") == 1, WAIT))
            self.assertEqual(s.metrics().total(DROPPED), 0)

    def test_refused(self):
        with Telemetry() as t, serve(t.url, "--log-level", "info") as s:
            t.status = 500
            self.calls(s, 10)
            self.assertTrue(wait_until(lambda: s.metrics().total(DROPPED) == 10, WAIT))
            self.assertEqual(lines(s, "telemetry"), 1)
            t.status = 200
            self.calls(s, 1)
            self.assertTrue(wait_until(lambda: s.metrics().total(EXPORTED) == 1, WAIT))
            self.assertEqual(len(t.posts), 11)

    def test_slow(self):
        with Telemetry() as t, serve(t.url) as s:
            t.delay = 0.5
            self.calls(s, 100)
            self.assertLess(len(t.posts), 100)  # no call has waited for its span
            t.delay = 0
            t.wait(100)

    def test_forgetful(self):
        with Telemetry() as t, serve(t.url) as s:
            t.closes = True
            for i in range(10):
                self.calls(s, 3)
                t.wait(3 * (i + 1))
            self.assertEqual(len({x["spanId"] for x in t.spans()}), 30)
            self.assertEqual(s.metrics().total(DROPPED), 0)

    def test_queue_is_bounded(self):
        with Telemetry() as t, serve(t.url, "--limit", "trace_queue_items=10") as s:
            t.delay = 2 * support.SLOW
            self.calls(s, 50)
            self.assertGreaterEqual(s.metrics().total(DROPPED), 30)
            t.delay = 0

    def test_flush(self):
        for threads in ("1", "2"):
            with Telemetry() as t:
                with serve(t.url, "--threads", threads) as s:
                    self.calls(s, 5)
                self.assertEqual(len(t.spans()), 5)


if __name__ == "__main__":
    support.main()
