"""A component server on HTTP, as Stepflow's runtimes of all generations meet it: raw POSTs, events, replies, health, the end.

SPDX-License-Identifier: Apache-2.0
"""
import http.server
import json
import os
import shutil
import signal
import socket
import tempfile
import threading
import unittest

import support
from stepflow_support import ACCEPT, ID, Blobs, Stream, blob_id, component_server, execute, in_threads, message, post, run
from support import CALLS, Conn, Server, request, wait_until


class Case(unittest.TestCase):
    maxDiff = 4000

    def result(self, r, id=ID):
        self.assertEqual((r.status, r.get("content-type")), (200, "application/json"), r)
        m = r.json()
        self.assertEqual((m["jsonrpc"], m["id"]), ("2.0", id), m)
        return m["result"]

    def error(self, r, status, code, id=ID):
        self.assertEqual((r.status, r.get("content-type")), (status, "application/json"), r)
        m = r.json()
        self.assertEqual((m["jsonrpc"], m.get("id"), m["error"]["code"]), ("2.0", id, code), m)
        return m["error"]


class Messages(Case):
    """One message, one POST; on a port for every wire, one for this wire, and a Unix socket for it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="ew")
        cls.server = Server(listen=("127.0.0.1:0", "stepflow=127.0.0.1:0", "stepflow=unix:%s/s" % cls.folder.name)).start()
        cls.any, cls.own = (e["port"] for e in cls.server.listeners[:2])

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)
        cls.folder.cleanup()

    def post(self, body, port=None, **kw):
        with Conn(port or self.own) as c:
            return post(c, body, port=port or self.own, **kw)

    def both(self, body, **kw):
        """The same answer on both ports."""
        a, b = (self.post(body, port=port, **kw) for port in (self.any, self.own))
        self.assertEqual((a.status, a.body), (b.status, b.body))
        return a

    def test_where(self):
        self.assertEqual([e["wire"] for e in self.server.listeners], ["any", "stepflow", "stepflow"])
        self.assertEqual(json.loads(self.server.lines[1]), {"event": "listening", "wire": "stepflow",
                                                            "address": "127.0.0.1:%d" % self.own, "port": self.own})

    def test_handshake(self):
        for params in ({"runtime_protocol_version": 1}, {"runtimeProtocolVersion": 1, "capabilities": {}}, {"runtime_protocol_version": 7}, {}):
            got = self.result(self.both(message("initialize", params)))
            self.assertEqual((got["server_protocol_version"], got["serverProtocolVersion"], got["supportsBlobRefs"]), (1, 1, False))
        for body in (message("initialized", id=None), {"jsonrpc": "2.0", "method": "initialized"}, message("other", id=None)):
            r = self.both(body)
            self.assertEqual((r.status, r.body), (202, b""), r)

    def test_list_and_info(self):
        got = self.result(self.both(message("components/list")))
        names = [c["component"] for c in got["components"]]
        self.assertEqual(sorted(names), sorted("/" + n for n in ("greet", "echo", "count", "sleep", "fail", "stream", "sum", "context", "big",
                                                                 "sha256")))
        got = self.result(self.both(message("components/info", {"component": "/greet"})))["info"]
        self.assertEqual((got["component"], got["description"]), ("/greet", "Greets by name, in two chunks"))
        self.assertIsInstance(got["input_schema"], dict)
        self.assertEqual(self.error(self.both(message("components/info", {"component": "/nope"})), 200, -32001)["data"]["component"], "/nope")

    def test_execute(self):
        for name in ("/echo", "echo", "/flow/echo", {"name": "echo"}):
            got = self.result(self.both(execute(name, {"b": 12345678901234567890, "a": "\u20ac"})))
            self.assertEqual(got, {"output": {"b": 12345678901234567890, "a": "\u20ac"}})
        r = self.post(execute("/echo", "\u20ac\U0001f600"))
        self.assertEqual(r.body.decode("ascii"), '{"jsonrpc":"2.0","id":"%s","result":{"output":"\\u20ac\\ud83d\\ude00"}}' % ID)
        for id in ("", 0, 7, -1, "a b", "\u20ac"):
            self.assertEqual(self.result(self.both(execute("/echo", None, id)), id), {"output": None})
        error = self.error(self.both(execute("/fail", {"status": "NOT_FOUND", "message": "no", "details": {"d": 1}})), 200, -32100)
        self.assertEqual((error["message"], error["data"]["status"], error["data"]["details"]), ("no", "NOT_FOUND", {"d": 1}))
        self.assertEqual(self.error(self.both(execute("/nope", {})), 200, -32001)["data"]["component"], "/nope")
        self.error(self.both(message("components/execute", {"input": 1})), 200, -32602)
        self.error(self.both(message("components/execute", {"component": 7, "input": 1})), 200, -32602)

    def test_observability(self):
        trace = "0af7651916cd43dd8448eb211c80319c"
        seen = {"trace_id": trace, "span_id": "b7ad6b7169203331", "run_id": "r", "flow_id": "f", "step_id": "s"}
        got = self.result(self.post(execute("/context", {}, attempt=3, observability=seen)))["output"]
        self.assertEqual((got["wire"], got["attempt"], got["trace_id"], got["context"]), ("stepflow", 3, trace, seen))
        got = self.result(self.post(execute("/context", {}, step_id="s", run_id="r", flow_id="f", attempt=1)))["output"]
        self.assertEqual(got["context"], {"step_id": "s", "run_id": "r", "flow_id": "f"})

    def test_headers(self):
        body = execute("/echo", 1)
        for accept in (ACCEPT[1], "text/event-stream, application/json", "application/json;q=0.9, text/event-stream;q=0.1, */*;q=0", "*/*"):
            self.assertEqual(self.result(self.both(body, headers=(("Accept", accept),))), {"output": 1})
        self.assertEqual(self.result(self.both(body, headers=())), {"output": 1})
        for accept in ("application/json", "text/event-stream", "text/html"):
            r = self.both(body, headers=(("Accept", accept),))
            self.assertEqual((r.status, r.json()["error"]), (406, "Accept header must include application/json and text/event-stream"))
        self.assertEqual(self.result(self.both(body, ctype="application/json; charset=utf-8")), {"output": 1})
        for ctype in ("text/plain", None, "application/jsonrpc"):
            self.assertEqual(self.both(body, ctype=ctype).status, 415)

    def test_malformed(self):
        for text in (b"this is not json", b"", b"{", b'{"a":1}x', b"[" * 200 + b"]" * 200):
            self.error(self.both(text), 400, -32700, None)
        for text in (b"{}", b"[]", b"1", b'{"jsonrpc":"1.0","id":1,"method":"x"}', b'{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}',
                     json.dumps([execute("/echo", 1)]).encode()):
            r = self.both(text)
            self.assertEqual((r.status, r.json()["error"]["code"]), (400, -32600), r)
        self.error(self.both(message("foo/bar")), 200, -32601)
        self.error(self.both(message("blobs/get", {"blob_id": "x"})), 200, -32601)
        self.error(self.both(message("components/infer_schema", {"component": "/echo", "input_schema": {}})), 200, -32601)
        for reply in ({"jsonrpc": "2.0", "id": "zzz", "result": {}}, {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}):
            r = self.both(reply)
            self.assertEqual((r.status, r.json()["error"]["code"]), (400, -32600), r)
        self.assertEqual(self.result(self.both(message("components/list", None))).keys(), {"components"})
        self.assertEqual(self.result(self.both({"jsonrpc": "2.0", "id": ID, "method": "components/list"})).keys(), {"components"})

    def test_where_not(self):
        """What else these ports have: the one for all wires everything, the other one nothing but health."""
        with Conn(self.any) as c:
            r = post(c, {"data": {"a": 1}}, path="/echo", headers=(), port=self.any)
            self.assertEqual((r.status, r.json()), (200, {"result": {"a": 1}}))
        self.assertEqual(self.result(self.post(execute("/echo", 1), path="/api/jsonrpc")), {"output": 1})
        for port in (self.any, self.own):
            for path, wanted in (("/health", 200), ("/healthz", 200), ("/readyz", 200), ("/", None), ("/x", None)):
                with Conn(port) as c:
                    c.send(request("GET", path, port=port))
                    self.assertEqual(c.response().status, wanted or 405, (port, path))
        with Conn(self.own) as c:
            c.send(request("GET", "/api/actions", port=self.own))
            self.assertEqual(c.response().status, 405)
        r = self.post({"data": 1}, path="/echo")
        self.assertEqual((r.status, r.json()["error"]["code"]), (400, -32600))
        self.assertEqual(self.post(execute("/echo", 1), headers=(ACCEPT, ("Origin", "http://evil.test"))).status, 403)

    def test_health(self):
        bodies = []
        for port in (self.any, self.own):
            with Conn(port) as c:
                c.send(request("GET", "/health", port=port))
                bodies.append(c.response().json())
        for body in bodies:
            self.assertEqual(sorted(body), ["instanceId", "service", "status", "timestamp"])
            self.assertEqual((body["status"], body["service"]), ("healthy", "everywire"))
            self.assertRegex(body["instanceId"], r"\A[0-9a-f]{16}\Z")
            self.assertRegex(body["timestamp"], r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
        self.assertEqual(bodies[0]["instanceId"], bodies[1]["instanceId"])

    def test_unix(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10 * support.SLOW)
            s.connect(self.folder.name + "/s")
            s.sendall(request("POST", "/", json.dumps(execute("/echo", 1)).encode(), (ACCEPT,), host="localhost"))
            self.assertIn(b'"result":{"output":1}', s.recv(65536))

    def test_keep_alive_and_pipelining(self):
        with Conn(self.own) as c:
            c.send(b"".join(request("POST", "/", json.dumps(execute("/echo", i, i)).encode(), (ACCEPT,), port=self.own) for i in range(20)))
            for i in range(20):
                self.assertEqual(c.response().json(), {"jsonrpc": "2.0", "id": i, "result": {"output": i}})

    def test_large(self):
        text = "x" * 8000000
        self.assertEqual(self.result(self.post(execute("/echo", text), timeout=30))["output"], text)
        with Conn(self.own) as c:
            c.try_send(request("POST", "/", b'"%s"' % (b"x" * 17000000), (ACCEPT,), port=self.own))
            self.assertEqual(c.response(30).status, 413)

    def test_metrics(self):
        before = self.server.metrics().total(CALLS, wire="stepflow", action="/flow/echo")
        self.result(self.both(execute("/echo", 1)))
        self.assertEqual(self.server.metrics().total(CALLS, wire="stepflow", action="/flow/echo"), before + 2)


class Callbacks(Case):
    """Components that call back: the answer becomes a stream, replies come on other connections, and so on other loops."""

    @classmethod
    def setUpClass(cls):
        cls.server = component_server("--threads", "4", listen=("stepflow=127.0.0.1:0", "http=127.0.0.1:0")).start()
        cls.port = cls.server.listeners[0]["port"]
        cls.server.port = cls.server.listeners[1]["port"]

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def setUp(self):
        self.store = Blobs()

    def test_round_trip(self):
        with Conn(self.port) as c:
            c.send(request("GET", "/health", port=self.port))
            instance = c.response().json()["instanceId"]
        for _ in range(20):  # each connection may be another loop's
            m, asked, told = run(self.port, execute("/roundtrip", {"data": {"k": "v"}}), self.store)
            self.assertEqual(m, {"jsonrpc": "2.0", "id": ID, "result": {"output": {"blob_id": blob_id({"k": "v"}), "same": True}}})
            self.assertEqual([a["method"] for a in asked], ["blobs/put", "blobs/get"])
            self.assertEqual(asked[0]["params"], {"data": {"k": "v"}, "blob_type": "data"})
            self.assertEqual(told, instance)
            self.assertTrue(all(isinstance(a["id"], str) for a in asked) and asked[0]["id"] != asked[1]["id"])

    def test_head(self):
        with Stream(self.port, execute("/roundtrip", {"data": 1})) as s:
            self.assertEqual((s.head.status, s.head.get("content-type"), s.head.get("cache-control")), (200, "text/event-stream", "no-cache"))
            self.assertEqual(s.next()["method"], "blobs/put")

    def test_only_when_needed(self):
        m, asked, _ = run(self.port, execute("/ctx_unused", {"message": "hi"}), self.store)
        self.assertEqual((m["result"], asked), ({"output": {"echo": "hi"}}, []))

    def test_trace(self):
        seen = {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331"}
        _, asked, _ = run(self.port, execute("/roundtrip", {"data": 1}, observability=seen), self.store)
        for a in asked:
            self.assertEqual(a["params"]["observability"]["trace_id"], seen["trace_id"])

    def test_several_at_once(self):
        m, asked, _ = run(self.port, execute("/parallel_blobs", {"data": 1}), self.store)
        self.assertEqual(m["result"]["output"]["ids"], [blob_id({"i": i}) for i in range(3)])
        self.assertEqual(len(asked), 3)

    def test_an_error_of_the_runtime(self):
        m, asked, _ = run(self.port, execute("/get_missing", {}), self.store)
        self.assertEqual((m["error"]["code"], m["error"]["message"]), (-32100, "Component execution failed: Failed to get blob"))
        self.assertEqual(asked[0]["params"]["blob_id"], "0" * 64)

    def test_other_methods(self):
        m, asked, _ = run(self.port, execute("/eval_flow", {"flow_id": "cd" * 32, "input": 2}), self.store)
        self.assertEqual((m["result"]["output"], asked[0]["method"]), ({"r": {"doubled": 4}}, "runs/submit"))

    def test_not_ascii(self):
        value = "\u20ac\U0001f600\u0000\n"
        m, asked, _ = run(self.port, execute("/roundtrip", {"data": value}), self.store)
        self.assertEqual((asked[0]["params"]["data"], m["result"]["output"]["same"]), (value, True))

    def test_many(self):
        def work(i):
            for k in range(10):
                m, _, _ = run(self.port, execute("/roundtrip", {"data": [i, k]}, "%d.%d" % (i, k)), self.store)
                if m["id"] != "%d.%d" % (i, k) or m["result"]["output"] != {"blob_id": blob_id([i, k]), "same": True}:
                    raise AssertionError(m)
        in_threads(12, work)

    def test_a_reply_twice(self):
        with Stream(self.port, execute("/roundtrip", {"data": 1})) as s:
            reply = self.store.answer(s.next())
            with Conn(self.port) as c:
                self.assertEqual(post(c, reply, port=self.port).status, 202)
            s.next()
            for _ in range(8):  # on whatever loop
                with Conn(self.port) as c:
                    self.assertIn(post(c, reply, port=self.port).status, (202, 400))
            with Conn(self.port) as c:
                post(c, dict(reply, id=reply["id"][:-1] + "x"), port=self.port)
            self.assertTrue(s.conn.quiet(0.1))

    def test_large(self):
        data = "x" * 5000000
        m, asked, _ = run(self.port, execute("/roundtrip", {"data": data}), self.store)
        self.assertEqual((m["result"]["output"]["same"], len(asked[0]["params"]["data"])), (True, 5000000))

    def test_the_runtime_leaves(self):
        """Its call is cancelled, what was asked fails; a late reply finds nobody."""
        before = self.server.stderr().count("cancelled")
        with Stream(self.port, execute("/wait", {"ask": True})) as s:
            ask = s.next()
        self.assertTrue(wait_until(lambda: self.server.stderr().count("cancelled") > before))
        self.assertTrue(wait_until(lambda: "asked UNAVAILABLE" in self.server.stderr()))
        with Conn(self.port) as c:
            self.assertIn(post(c, self.store.answer(ask), port=self.port).status, (202, 400))
        with Conn(self.port) as c:  # the same without a stream
            c.send(request("POST", "/", json.dumps(execute("/wait", {})).encode(), (ACCEPT,), port=self.port))
            self.assertTrue(wait_until(lambda: self.server.metrics().total(support.IN_FLIGHT, wire="stepflow") == 1))
        self.assertTrue(wait_until(lambda: self.server.stderr().count("cancelled") > before + 1))


class BlobApi(Case):
    """A runtime of 0.10 and later names a URL for blobs."""

    def setUp(self):
        test = self
        self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def reply(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                test.seen.append(("POST", self.path, body))
                id = blob_id(body["data"])
                test.values[id] = body["data"]
                self.reply(200, {"blobId": id})

            def do_GET(self):
                id = self.path.rsplit("/", 1)[1]
                test.seen.append(("GET", self.path, None))
                if id in test.values:
                    self.reply(200, {"data": test.values[id], "blobType": "data", "blobId": id})
                else:
                    self.reply(404, {"code": 404, "message": "Blob '%s' not found" % id})

            def log_message(self, *_):
                pass
        self.values = {}
        self.api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.api.daemon_threads = True
        threading.Thread(target=self.api.serve_forever, daemon=True).start()
        self.addCleanup(self.api.server_close)
        self.addCleanup(self.api.shutdown)

    def hello(self, server, url):
        with Conn(server.port) as c:
            params = {"runtimeProtocolVersion": 1}
            if url:
                params["capabilities"] = {"blobApiUrl": url}
            self.result(post(c, message("initialize", params), port=server.port))

    def test_by_url(self):
        base = "http://127.0.0.1:%d/api/v1/blobs" % self.api.server_address[1]
        with component_server("--threads", "2", listen=("stepflow=127.0.0.1:0",)) as s:
            self.hello(s, base)
            for _ in range(6):  # what was said on one connection holds on all loops
                m, asked, _ = run(s.port, execute("/roundtrip", {"data": {"k": "v"}}), Blobs())
                self.assertEqual((m["result"]["output"], asked), ({"blob_id": blob_id({"k": "v"}), "same": True}, []))
            self.assertEqual(self.seen[:2], [("POST", "/api/v1/blobs", {"data": {"k": "v"}, "blobType": "data"}),
                                             ("GET", "/api/v1/blobs/" + blob_id({"k": "v"}), None)])
            m, _, _ = run(s.port, execute("/get_missing", {}), Blobs())
            self.assertEqual(m["error"]["code"], -32100)
            self.assertIn("not found", m["error"]["message"])
            self.hello(s, None)  # another runtime, or the same with other words: the last one counts
            _, asked, _ = run(s.port, execute("/roundtrip", {"data": 1}), Blobs())
            self.assertEqual(len(asked), 2)

    def test_urls_that_are_not_used(self):
        with component_server(listen=("stepflow=127.0.0.1:0",)) as s:
            for url in ("http://10.0.0.1:1/blobs", "https://127.0.0.1:1/blobs", "http://blobs.internal/", "http://0.0.0.0:%d/" % s.port):
                self.hello(s, url)
                m, asked, _ = run(s.port, execute("/roundtrip", {"data": 1}), Blobs())
                self.assertEqual((m["error"]["code"], asked), (-32100, []), m)
                self.assertIn("not used here", m["error"]["message"])
            self.hello(s, "http://127.0.0.1:1/blobs")  # nobody listens there
            m, _, _ = run(s.port, execute("/roundtrip", {"data": 1}), Blobs())
            self.assertEqual((m["error"]["code"], m["error"]["data"]["status"]), (-32100, "UNAVAILABLE"), m)


class Principals(BlobApi):
    """Runtimes with tokens of their own: what one of them names or answers does not touch the others' calls."""

    def setUp(self):
        super().setUp()
        folder = tempfile.mkdtemp(prefix="ew-stepflow-")
        self.addCleanup(shutil.rmtree, folder)
        self.tokens = os.path.join(folder, "tokens")
        self.ada, self.bob, self.low = self.token("ada"), self.token("bob"), self.token("low", "--action", "/*/roundtrip")
        self.base = "http://127.0.0.1:%d/" % self.api.server_address[1]

    def token(self, name, *args):
        r = support.cli("token", "new", "--tokens", self.tokens, "--name", name, *args)
        self.assertEqual(r.code, 0, r)
        return (ACCEPT, ("Authorization", "Bearer " + r.out.decode().strip()))

    def server(self, *args):
        return component_server("--threads", "4", "--tokens", self.tokens, *args, listen=("stepflow=127.0.0.1:0",))

    def name_url(self, server, who, url):
        with Conn(server.port) as c:
            params = {"runtimeProtocolVersion": 1, "capabilities": {"blobApiUrl": url}}
            self.result(post(c, message("initialize", params), who, port=server.port))

    def roundtrip(self, server, who):
        """The error or result, and how many callbacks there were."""
        m, asked, _ = run(server.port, execute("/roundtrip", {"data": 1}), Blobs(), who)
        return m.get("error") or m["result"], len(asked)

    def test_by_url(self):
        good = {"output": {"blob_id": blob_id(1), "same": True}}
        with self.server() as s:
            self.name_url(s, self.ada, self.base + "ada")
            self.name_url(s, self.low, self.base + "low")
            for _ in range(6):  # on whatever loop
                self.assertEqual(self.roundtrip(s, self.bob), (good, 2))  # BOB has named none: callbacks
                self.assertEqual(self.roundtrip(s, self.ada), (good, 0))
            error, asked = self.roundtrip(s, self.low)
            self.assertEqual((error["data"]["status"], asked), ("PERMISSION_DENIED", 0), error)
            self.assertIn("/stepflow/blobs", error["message"])
        self.assertEqual({path.split("/")[1] for _, path, _ in self.seen}, {"ada"})

    def test_urls_that_are_not_used(self):
        with self.server("--allow-remote") as s:
            for host in ("169.254.169.254", "2852039166", "0xa9.0376.43518", "[::ffff:a9fe:a9fe]", "0", "[ff02::1]"):
                self.name_url(s, self.ada, "http://%s:1/" % host)
                error, asked = self.roundtrip(s, self.ada)
                self.assertEqual((error["data"]["status"], asked), ("UNAVAILABLE", 0), error)
            self.name_url(s, self.ada, self.base)
            self.assertEqual(self.roundtrip(s, self.ada)[1], 0)
        self.assertEqual(len(self.seen), 2)

    def test_replies(self):
        """Replies of another principal are refused on the loop that waits, and dropped if they arrive on another one."""
        with self.server() as s, Stream(s.port, execute("/roundtrip", {"data": 1}), self.ada) as stream:
            ask = stream.next()
            for who in (self.bob, self.low):
                for _ in range(8):  # on whatever loop
                    with Conn(s.port) as c:
                        forged = {"jsonrpc": "2.0", "id": ask["id"], "result": {"blob_id": "forged"}}
                        self.assertIn(post(c, forged, who, port=s.port).status, (202, 400))
            with Conn(s.port) as c:
                self.assertEqual(post(c, Blobs().answer(ask), self.ada, port=s.port).status, 202)
            self.assertEqual(stream.next()["params"]["blob_id"], blob_id(1))


class Life(Case):
    """How it is started, and its end."""

    def test_port(self):
        with Server("--port", "0", listen=()) as s:
            first = json.loads(s.lines[0])
            self.assertEqual(first, {"event": "listening", "wire": "stepflow", "address": "127.0.0.1:%d" % s.port, "port": s.port})
            self.assertEqual(len(s.listeners), 1)
            with Conn(s.port) as c:
                self.assertEqual(self.result(post(c, execute("/echo", 1), port=s.port)), {"output": 1})
        with Server("--host", "localhost", "--port=0", listen=("http=127.0.0.1:0",)) as s:
            self.assertEqual([e["wire"] for e in s.listeners], ["http", "stepflow"])

    def test_usage(self):
        for words in (("--port", "x"), ("--port", "70000"), ("--host", "some.where"), ("--host", "0.0.0.0"),
                      ("--listen", "stepflow+http=127.0.0.1:0"), ("--listen", "blobs=127.0.0.1:0"), ("--listen", "stepflow=")):
            r = support.cli("serve", "--demo", *words)
            self.assertEqual((r.code, r.out), (2, b""), r)

    def test_drain(self):
        """What runs ends; what comes is told to try again; health says so."""
        with Server("--drain", "20s", listen=("stepflow=127.0.0.1:0",)) as s:
            with Conn(s.port) as busy, Conn(s.port) as kept, Conn(s.port) as health:
                for c in (kept, health):
                    self.assertEqual(self.result(post(c, execute("/echo", 1), port=s.port)), {"output": 1})
                busy.send(request("POST", "/", json.dumps(execute("/sleep", {"ms": 3000})).encode(), (ACCEPT,), port=s.port))
                self.assertTrue(busy.quiet(0.2))
                s.signal()
                self.assertTrue(wait_until(lambda: support.refused(s.port)))
                error = self.error(post(kept, execute("/echo", 1), port=s.port), 503, -32300)
                self.assertEqual(error["data"]["status"], "UNAVAILABLE")
                self.assertTrue(kept.closed())
                health.send(request("GET", "/health", port=s.port))
                self.assertEqual(health.response().status, 503)
                self.assertEqual(self.result(busy.response()), {"output": {"slept_ms": 3000}})
            self.assertEqual(s.wait(), 0)

    def test_busy(self):
        with Server("--limit", "calls=2", "--threads", "1", listen=("stepflow=127.0.0.1:0",)) as s:  # loops that count at the same moment may be one too many
            conns = [Conn(s.port) for _ in range(6)]
            for i, c in enumerate(conns):
                c.send(request("POST", "/", json.dumps(execute("/sleep", {"ms": 700}, i)).encode(), (ACCEPT,), port=s.port))
            answers = [c.response() for c in conns]
            self.assertEqual([r.status for r in answers].count(200), 2, answers)
            self.assertTrue(all(r.status in (429, 503) for r in answers if r.status != 200), answers)
            for c in conns:
                c.close()

    def test_killed_by_a_second_signal(self):
        with Server(listen=("stepflow=127.0.0.1:0",), check_exit=False) as s:
            with Conn(s.port) as c:
                c.send(request("POST", "/", json.dumps(execute("/sleep", {"ms": 60000})).encode(), (ACCEPT,), port=s.port))
                self.assertTrue(c.quiet(0.2))
                s.signal()
                self.assertTrue(wait_until(lambda: "draining" in s.stderr()))
                s.signal(signal.SIGINT)
                self.assertEqual(s.wait(), 130)


if __name__ == "__main__":
    unittest.main(verbosity=2)
