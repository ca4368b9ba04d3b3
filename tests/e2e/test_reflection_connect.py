"""A program that dials a reflection manager: how it begins, comes back, and ends.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import signal
import socket
import unittest

import support
from support import Closed, FakeServer, Manager, Server, TimedOut, WebSocket, canned, cli, free_ports, wait_until

CLEAN = {name: "" for name in ("GENKIT_REFLECTION_V2_SERVER", "GENKIT_TELEMETRY_SERVER", "GENKIT_ENABLE_REALTIME_TELEMETRY",
                               "GENKIT_RUNTIME_ID", "GENKIT_ENV")}


def runtime(*args, env=None, listen=(), **kw):
    """A program that does not listen unless told to."""
    return Server(*args, listen=listen, env=dict(CLEAN, **(env or {})), **kw)


def events(server, name):
    return [e for e in map(json.loads, server.lines) if e["event"] == name]


def listening_sockets(pid):
    """Inodes of the TCP sockets on which a process listens."""
    mine = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            m = re.match(r"socket:\[(\d+)\]", os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except FileNotFoundError:
            continue
        if m:
            mine.add(m.group(1))
    found = set()
    for table in ("tcp", "tcp6"):
        with open("/proc/%d/net/%s" % (pid, table)) as f:
            for line in f.readlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in mine:
                    found.add(fields[9])
    return found


def lines_with(server, text):
    return [line for line in server.stderr().splitlines() if text in line]


def answer(ws, id, timeout=10.0):
    """The response with that id; (it, the notifications before it)."""
    before = []
    while True:
        m = ws.message(timeout)
        if m.get("id") == id and "method" not in m:
            return m, before
        before.append(m)


class Begin(unittest.TestCase):
    def test_registers_and_serves(self):
        with Manager() as manager, runtime("--connect", manager.url + "/some/path?token=x%20y") as s:
            ws, who = manager.runtime()
            with ws:
                self.assertEqual(ws.request, "GET /some/path?token=x%20y HTTP/1.1")
                self.assertEqual(ws.fields["host"], "127.0.0.1:%d" % manager.port)
                self.assertNotIn("origin", ws.fields)
                self.assertEqual(who["id"], str(s.pid))
                self.assertEqual(who["pid"], s.pid)
                self.assertEqual(who["name"], "everywire")
                self.assertRegex(who["genkitVersion"], r"^everywire/\d")
                ws.tell({"jsonrpc": "2.0", "id": "1", "method": "runAction", "params": {"key": "/flow/echo", "input": {"a": [1]}}})
                m, _ = answer(ws, "1")
                self.assertEqual(m["result"]["result"], {"a": [1]})
                ws.tell({"jsonrpc": "2.0", "id": "2", "method": "runAction",
                         "params": {"key": "/flow/greet", "input": "Ada", "stream": True}})
                m, before = answer(ws, "2")
                self.assertEqual(m["result"]["result"], "Hello, Ada!")
                self.assertEqual([n["params"]["chunk"] for n in before if n["method"] == "streamChunk"], ["Hello,", " Ada!"])
                self.assertTrue(wait_until(lambda: lines_with(s, "connected to")), s.stderr())
            self.assertEqual(events(s, "connecting"),
                             [{"event": "connecting", "wire": "reflection", "address": manager.url + "/some/path?token=***"}])  # no secret is printed
            self.assertEqual(events(s, "listening"), [])

    def test_opens_no_port(self):
        with Manager() as manager, runtime("--connect", manager.url) as s:
            with manager.runtime()[0]:
                self.assertEqual(listening_sockets(s.pid), set())
        with Manager() as manager, runtime("--connect", manager.url, listen=("127.0.0.1:0",)) as s:
            with manager.runtime()[0]:
                self.assertTrue(listening_sockets(s.pid))
                self.assertEqual(s.call("/flow/echo", b"7").json(), {"result": 7})

    def test_environment(self):
        for scheme in ("ws", "http", "WS"):
            with self.subTest(scheme), Manager() as manager:
                url = "%s://localhost:%d" % (scheme, manager.port)
                with runtime(env={"GENKIT_REFLECTION_V2_SERVER": url, "GENKIT_ENV": "dev", "GENKIT_RUNTIME_ID": "me/1"}) as s:
                    ws, who = manager.runtime()
                    with ws:
                        self.assertEqual(who["id"], "me/1")
                        self.assertEqual(ws.fields["host"], "localhost:%d" % manager.port)
                        self.assertEqual(ws.request, "GET / HTTP/1.1")
                        self.assertEqual(listening_sockets(s.pid), set())
                    self.assertEqual(events(s, "connecting"), [{"event": "connecting", "wire": "reflection",
                                                                "address": "ws://localhost:%d" % manager.port}])

    def test_several_managers(self):
        with Manager() as a, Manager() as b:
            with runtime("--connect", a.url, "--connect", b.url, "--connect", a.url, "--runtime-id", "x",
                         env={"GENKIT_REFLECTION_V2_SERVER": b.url, "GENKIT_RUNTIME_ID": "ignored"}) as s:
                first, second = a.runtime(), a.runtime()
                other = b.runtime()
                ids = {who["id"] for _, who in (first, second)}
                self.assertEqual(ids, {"x", "x-3"})
                self.assertEqual(other[1]["id"], "x-2")
                self.assertTrue(b.quiet(0.3), "the one of the environment was named by hand")
                self.assertEqual(len(events(s, "connecting")), 3)
                for ws, _ in (first, second, other):
                    ws.close()

    def test_bad_urls(self):
        for url, words in (("wss://", "host"), ("https://x:0", "port"), ("localhost:3200", "ws://HOST:PORT"), ("ws://", "host"),
                           ("ws://h:0", "port"), ("ws://h:70000", "port"), ("ws://u@h:1", "host"), ("ws://h:1/#x", "path"),
                           ("ws://[::1", "host"), ("ws://h:1/a b", "path"), ("ftp://h:1", "ws://HOST:PORT")):
            for words_of, args, env in (("--connect", ("--connect", url), {}),
                                        ("GENKIT_REFLECTION_V2_SERVER", (), {"GENKIT_REFLECTION_V2_SERVER": url})):
                with self.subTest((url, words_of)):
                    r = cli("serve", *args, env=dict(os.environ, **dict(CLEAN, **env)))
                    self.assertEqual(r.code, 2, r)
                    err = r.err.decode()
                    self.assertIn(words_of + " " + url, err)
                    self.assertIn(words, err)

    def test_reflection_listener(self):
        with runtime(listen=("reflection=127.0.0.1:0",)) as s:
            self.assertEqual(s.listeners[0]["wire"], "reflection")
            r = s.call("/flow/echo", b"1")
            self.assertEqual(r.status, 426)
            self.assertEqual(r.get("upgrade"), "websocket")
            self.assertEqual(r.json()["code"], 426)
            self.assertEqual(s.get("/healthz").status, 200)
            self.assertEqual(s.get("/readyz").status, 200)
            self.assertEqual(s.get("/api/actions").status, 426)
            WebSocket.dial(s.port, "/any?x").close()


class Telemetry(unittest.TestCase):
    """Whose telemetry server is told of the calls."""

    def spans(self, sink):
        return [span for r in sink.requests for span in json.loads(r["body"])["spans"].values()]

    def run_one(self, ws):
        ws.tell({"jsonrpc": "2.0", "id": "1", "method": "runAction", "params": {"key": "/flow/echo", "input": 1}})
        self.assertEqual(answer(ws, "1")[0]["result"]["result"], 1)

    def test_the_managers(self):
        with FakeServer(canned("200 OK", b"{}")) as sink, Manager() as manager, runtime("--connect", manager.url):
            ws, _ = manager.runtime(answer={"telemetryServerUrl": sink.url})
            with ws:
                def arrived():
                    self.run_one(ws)
                    return self.spans(sink)
                self.assertTrue(wait_until(arrived, step=0.2))
                self.assertEqual(sink.requests[0]["target"], "/api/traces")

    def test_the_environments(self):
        with FakeServer(canned("200 OK", b"{}")) as sink, FakeServer(canned("200 OK", b"{}")) as other, Manager() as manager:
            env = {"GENKIT_REFLECTION_V2_SERVER": manager.url, "GENKIT_TELEMETRY_SERVER": sink.url,
                   "GENKIT_ENABLE_REALTIME_TELEMETRY": "true"}
            with runtime(env=env):
                ws, _ = manager.runtime(answer={"telemetryServerUrl": other.url})
                with ws:
                    self.run_one(ws)
                    self.assertTrue(wait_until(lambda: len(self.spans(sink)) >= 2), "its start and its end")
            self.assertIn(0, [span["endTime"] for span in self.spans(sink)])
            self.assertEqual(other.requests, [])

    def test_by_hand(self):
        with FakeServer(canned("200 OK", b"{}")) as sink, FakeServer(canned("200 OK", b"{}")) as other:
            with runtime("--telemetry", sink.url, listen=("127.0.0.1:0",), env={"GENKIT_TELEMETRY_SERVER": other.url}) as s:
                self.assertEqual(s.call("/flow/echo", b"1").status, 200)
                self.assertTrue(wait_until(lambda: self.spans(sink)))
            self.assertEqual(other.requests, [])

    def test_bad(self):
        r = cli("serve", "--telemetry", "ftp://x", env=dict(os.environ, **CLEAN))
        self.assertEqual(r.code, 2, r)
        self.assertIn(b"--telemetry ftp://x", r.err)


class Again(unittest.TestCase):
    def test_comes_back(self):
        with Manager() as manager, runtime("--connect", manager.url) as s:
            for i in range(3):
                ws, who = manager.runtime()
                self.assertEqual(who["id"], str(s.pid))
                ws.tell({"jsonrpc": "2.0", "id": "1", "method": "runAction", "params": {"key": "/flow/echo", "input": i}})
                self.assertEqual(answer(ws, "1")[0]["result"]["result"], i)
                if i == 1:
                    ws.frame(support.WS_CLOSE, b"\x03\xe9")
                ws.close()
            manager.runtime()[0].close()

    def test_manager_comes_late(self):
        port = free_ports()
        with runtime("--connect", "ws://127.0.0.1:%d" % port) as s:
            self.assertTrue(wait_until(lambda: lines_with(s, "cannot connect")))
            self.assertFalse(support.happens(lambda: len(s.stderr().splitlines()) > 1, 2.5), s.stderr())
            with Manager(port) as manager:
                ws, _ = manager.runtime()
                self.assertTrue(wait_until(lambda: lines_with(s, "connected to")))
                ws.close()
                self.assertTrue(wait_until(lambda: lines_with(s, "lost")))
            self.assertEqual(len(lines_with(s, "cannot connect")), 1)

    def test_no_manager_at_all(self):
        """Something listens there that is no WebSocket: it is left and tried again, with few words."""
        with Manager() as manager, runtime("--connect", manager.url) as s:
            for _ in range(3):
                manager.sock.settimeout(15 * support.SLOW)
                c, _ = manager.sock.accept()
                with c:
                    c.recv(4096)
                    c.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    c.settimeout(10 * support.SLOW)
                    self.assertEqual(c.recv(10), b"")
            self.assertEqual(len(lines_with(s, "no manager at")), 1, s.stderr())
            self.assertEqual(lines_with(s, "connected"), [])

    def test_a_lost_call_is_not_answered_elsewhere(self):
        with Manager() as manager, runtime("--connect", manager.url):
            ws, _ = manager.runtime()
            ws.tell({"jsonrpc": "2.0", "id": "1", "method": "runAction", "params": {"key": "/flow/sleep", "input": {"ms": 1200}}})
            self.assertEqual(ws.message()["method"], "runActionState")
            ws.close()
            ws, _ = manager.runtime()
            with ws:
                with self.assertRaises(TimedOut):
                    ws.message(1.5 / support.SLOW)


class End(unittest.TestCase):
    def test_idle(self):
        with Manager() as manager, runtime("--connect", manager.url) as s:
            ws, _ = manager.runtime()
            s.signal(signal.SIGTERM)
            with ws, self.assertRaises(Closed):
                ws.message()
            self.assertIn(ws.close_code, (1000, 1001))
            self.assertEqual(s.wait(), 0)
            self.assertTrue(manager.quiet(0.2))

    def test_running_call_finishes(self):
        with Manager() as manager, runtime("--connect", manager.url, "--drain", "20s") as s:
            ws, _ = manager.runtime()
            with ws:
                run = {"jsonrpc": "2.0", "method": "runAction", "params": {"key": "/flow/sleep", "input": {"ms": 700}}}
                ws.tell(dict(run, id="1"))
                self.assertEqual(ws.message()["method"], "runActionState")
                s.signal(signal.SIGTERM)
                self.assertTrue(wait_until(lambda: lines_with(s, "draining")))
                ws.tell(dict(run, id="2"))
                answers = {}
                with self.assertRaises(Closed):
                    while True:
                        m = ws.message()
                        if "method" not in m:
                            answers[m["id"]] = m
                self.assertEqual(answers["1"]["result"]["result"], {"slept_ms": 700})
                if "error" in answers.get("2", {}):  # or it came before the loop was told, or after the end
                    self.assertEqual(answers["2"]["error"]["data"]["code"], 14)
                self.assertIn(ws.close_code, (1000, 1001))
            self.assertEqual(s.wait(), 0)

    def test_while_nobody_is_there(self):
        with runtime("--connect", "ws://127.0.0.1:1") as s:
            self.assertTrue(wait_until(lambda: lines_with(s, "cannot connect")))
            s.signal(signal.SIGTERM)
            self.assertEqual(s.wait(), 0)

    def test_manager_that_never_closes(self):
        with Manager() as manager, runtime("--connect", manager.url) as s:
            ws, _ = manager.runtime()
            with ws:
                s.signal(signal.SIGTERM)
                self.assertEqual(s.wait(), 0)


if __name__ == "__main__":
    support.main()
