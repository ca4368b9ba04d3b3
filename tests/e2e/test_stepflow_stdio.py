"""A component server on its standard input and output, as a runtime that starts it sees it; and programs that find out by the first
line whether it is Stepflow or plain JSON-RPC that they were started for.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import signal
import subprocess
import time
import unittest

import support
from stepflow_support import ID, SERVER, Blobs, blob_id, execute, message
from support import SLOW, Closed, Rpc, cli, rpc, wait_until

DEMO = (support.BINARY, "serve", "--demo")


class Program:
    """A process with pipes; what it writes to standard output is read as lines, one message each."""

    def __init__(self, *command, **env):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=dict(os.environ, **env))
        self.peer = Rpc(self.process.stdout.fileno(), self.process.stdin.fileno(), self.process.stdin.close, self.process.stdout.close,
                        strict=False)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind and self.process.poll() is None:
            self.process.kill()
        self.end()
        self.process.stderr.close()

    def end(self):
        """Ends its input; everything that it still says, and its exit code."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        rest = []
        try:
            while not self.process.stdout.closed:
                rest.append(self.peer.message())
        except Closed:
            self.process.stdout.close()
        return rest, self.process.wait(20 * SLOW)

    def send(self, *messages):
        for m in messages:
            self.peer.send(m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n")

    def ask(self, m, timeout=15.0):
        self.send(m)
        return self.peer.message(timeout)

    def stderr(self):
        """After its end."""
        return self.process.stderr.read().decode()


class Case(unittest.TestCase):
    maxDiff = 4000


class Messages(Case):
    def start(self, *words):
        return Program(SERVER, *(words or ("--listen", "stepflow=stdio")))

    def test_a_session(self):
        with self.start() as p:
            got = p.ask(message("initialize", {"runtime_protocol_version": 1}))
            self.assertEqual((got["id"], got["result"]["server_protocol_version"]), (ID, 1))
            p.send(message("initialized", id=None))
            self.assertIn("/echo", [c["component"] for c in p.ask(message("components/list"))["result"]["components"]])
            self.assertEqual(p.ask(message("components/info", {"component": "/echo"}))["result"]["info"]["component"], "/echo")
            self.assertEqual(p.ask(execute("/echo", {"message": "hi"})), {"jsonrpc": "2.0", "id": ID, "result": {"output": {"echo": "hi"}}})
            self.assertEqual(p.ask(execute("/boom", {}))["error"]["code"], -32100)
            self.assertEqual(p.ask(execute("/nope", {}))["error"]["code"], -32001)
            self.assertEqual(p.end(), ([], 0))
            self.assertEqual([json.loads(line)["event"] for line in p.stderr().splitlines()][:2], ["listening", "ready"])

    def test_no_handshake(self):
        """A runtime that has started it again does not greet it again."""
        with self.start() as p:
            self.assertEqual(p.ask(execute("/echo", {"message": 1}, attempt=2))["result"], {"output": {"echo": 1}})

    def test_call_back(self):
        store = Blobs()
        with self.start() as p:
            for value in ({"k": "v"}, "\u20ac", [1] * 1000):
                p.send(execute("/roundtrip", {"data": value}))
                for method in ("blobs/put", "blobs/get"):
                    m = p.peer.message()
                    self.assertEqual(m["method"], method)
                    p.send(store.answer(m))
                got = p.peer.message()["result"]["output"]
                self.assertEqual(got["blob_id"], blob_id(value))
            p.send(execute("/parallel_blobs", {}))
            asked = [p.peer.message() for _ in range(3)]
            for m in reversed(asked):  # in any order
                p.send(store.answer(m))
            self.assertEqual(p.peer.message()["result"]["output"]["ids"], [blob_id({"i": i}) for i in range(3)])

    def test_an_end_while_it_asks(self):
        with self.start() as p:
            p.send(execute("/roundtrip", {"data": 1}))
            self.assertEqual(p.peer.message()["method"], "blobs/put")
            rest, code = p.end()
            self.assertEqual((len(rest) <= 1, code), (True, 0))

    def test_bad_lines(self):
        with self.start() as p:
            self.assertEqual(p.ask(b"no json\n")["error"]["code"], -32700)
            self.assertEqual(p.ask(b"[]\n")["error"]["code"], -32600)
            self.assertEqual(p.ask(message("foo"))["error"]["code"], -32601)
            self.assertEqual(p.ask(message("components/execute", {}))["error"]["code"], -32602)
            p.send({"jsonrpc": "2.0", "id": "nobody", "result": {}}, message("progress_update", id=None), execute("/echo", {"message": 1}, None))
            self.assertEqual(p.ask(execute("/echo", {"message": 2}))["result"], {"output": {"echo": 2}})

    def test_ascii(self):
        with self.start() as p:
            p.send(execute("/echo", {"message": "\u20ac\n"}, "\u20ac"))
            line = p.peer.line()
            self.assertEqual(json.loads(line), {"jsonrpc": "2.0", "id": "\u20ac", "result": {"output": {"echo": "\u20ac\n"}}})
            line.decode("ascii")

    def test_large(self):
        text = "x" * 5000000
        with self.start() as p:
            self.assertEqual(p.ask(execute("/echo", {"message": text}), 60)["result"]["output"]["echo"], text)

    def test_stdout_is_protected(self):
        """What a component prints does not get between the messages."""
        with Program(SERVER, "--stdio") as p:
            p.send(message("initialize", {"runtime_protocol_version": 1}))
            p.peer.message()
            self.assertEqual(os.readlink("/proc/%d/fd/1" % p.process.pid), os.readlink("/proc/%d/fd/2" % p.process.pid))
            self.assertEqual(os.readlink("/proc/%d/fd/0" % p.process.pid), "/dev/null")

    def test_signal(self):
        with self.start() as p:
            p.ask(execute("/echo", {"message": 1}))
            p.process.send_signal(signal.SIGTERM)
            self.assertEqual(p.process.wait(15 * SLOW), 0)

    def test_drain(self):
        with Program(*DEMO, "--stdio", "--drain", "20s") as p:
            p.send(execute("/sleep", {"ms": 1000}, "slow"))
            self.assertEqual(p.ask(execute("/echo", 1))["result"], {"output": 1})
            p.process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
            error = p.ask(execute("/echo", 1))
            self.assertEqual((error["error"]["code"], error["error"]["data"]["status"]), (-32300, "UNAVAILABLE"))
            self.assertEqual(p.peer.message(), {"jsonrpc": "2.0", "id": "slow", "result": {"output": {"slept_ms": 1000}}})
            self.assertEqual(p.process.wait(15 * SLOW), 0)

    def test_beside_a_port(self):
        with Program(*DEMO, "--stdio", "--port", "0") as p:
            self.assertEqual(p.ask(execute("/echo", 1))["result"], {"output": 1})
            p.process.stdin.close()
            time.sleep(0.2)
            self.assertIsNone(p.process.poll())  # the other listener goes on
            p.process.send_signal(signal.SIGTERM)
            self.assertEqual(p.process.wait(15 * SLOW), 0)


class WhichOne(Case):
    """--stdio: whatever the starter speaks."""

    def check_stepflow(self, *first):
        with Program(*DEMO, "--stdio") as p:
            for piece in first:
                p.send(piece)
                time.sleep(0.02)
            m = p.peer.message()
            self.assertIn("result", m)
            self.assertEqual(p.ask(execute("/echo", 1))["result"], {"output": 1})
            self.assertEqual(p.end(), ([], 0))
            return m

    def check_jsonrpc(self, *first):
        with Program(*DEMO, "--stdio") as p:
            for piece in first:
                p.send(piece)
                time.sleep(0.02)
            m = p.peer.message()
            self.assertEqual(p.ask(rpc("greet", b'"x"', b"9"))["result"], "Hello, x!")
            self.assertEqual(p.end(), ([], 0))
            return m

    def test_stepflow(self):
        for hello in ({"runtime_protocol_version": 1}, {"runtimeProtocolVersion": 1, "capabilities": {}},
                      {"observability": {}, "runtime_protocol_version": 1}):
            m = self.check_stepflow(json.dumps(message("initialize", hello)).encode() + b"\n")
            self.assertEqual(m["result"]["server_protocol_version"], 1)
        for first in (message("components/list"), execute("/echo", 1), message("components/info", {"component": "/echo"})):
            self.check_stepflow(json.dumps(first).encode() + b"\n")

    def test_stepflow_in_pieces(self):
        text = json.dumps(message("initialize", {"runtime_protocol_version": 1})).encode() + b"\n"
        self.check_stepflow(*[text[i:i + 7] for i in range(0, len(text), 7)])
        self.check_stepflow(text[:1], text[1:])

    def test_stepflow_large(self):
        m = self.check_stepflow(json.dumps(execute("/echo", "x" * 3000000)).encode() + b"\n")
        self.assertEqual(len(m["result"]["output"]), 3000000)

    def test_jsonrpc(self):
        self.assertEqual(self.check_jsonrpc(rpc("greet", b'"A"'))["result"], "Hello, A!")
        self.assertEqual(self.check_jsonrpc(rpc("echo", b'{"method":"components/list"}'))["result"], {"method": "components/list"})
        self.assertIn("error", self.check_jsonrpc(rpc("initialize", b'{"processId":1,"capabilities":{}}')))
        self.assertEqual(self.check_jsonrpc(b"  \n" + rpc("echo", b"1"))["result"], 1)
        self.assertIn("error", self.check_jsonrpc(b"hello\n"))
        self.assertEqual(self.check_jsonrpc(rpc("echo", b'"%s"' % (b"x" * 200000)))["result"], "x" * 200000)
        self.assertEqual(self.check_jsonrpc(b'{"params":"%s",' % (b"x" * 200000), b'"jsonrpc":"2.0","id":1,"method":"components/list"}\n')
                         ["error"]["code"], -32601)  # too late to be heard

    def test_jsonrpc_without_a_newline(self):
        with Program(*DEMO, "--stdio") as p:
            p.send(rpc("echo", b"1").rstrip())
            self.assertEqual(p.peer.message()["result"], 1)

    def test_jsonrpc_with_headers(self):
        body = rpc("echo", b"1").rstrip()
        with Program(*DEMO, "--stdio") as p:
            p.send(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self.assertIn(b"Content-Length", p.peer.line())
            self.assertEqual(p.peer.line(), b"\r\n")
            p.send(b"Content-Length: 0\r\n\r\n")
            p.process.kill()
            p.peer.close()

    def test_batch(self):
        with Program(*DEMO, "--stdio") as p:
            p.send(b"[" + rpc("echo", b"1").rstrip() + b"]\n")
            self.assertEqual(p.peer.message()[0]["result"], 1)

    def test_nothing(self):
        with Program(*DEMO, "--stdio") as p:
            self.assertEqual(p.end(), ([], 0))

    def test_half_a_line(self):
        with Program(*DEMO, "--stdio") as p:
            p.send(b'{"jsonrpc":"2.0","id":1,"met')
            rest, code = p.end()
            self.assertEqual(([m["error"]["code"] for m in rest], code), ([-32700], 0))

    def test_it_may_take_its_time(self):
        with Program(*DEMO, "--stdio", "--limit", "idle_ms=200", "--limit", "head_ms=200") as p:
            time.sleep(0.6)
            self.assertEqual(p.ask(execute("/echo", 1))["result"], {"output": 1})
        with Program(*DEMO, "--stdio", "--limit", "head_ms=100") as p:
            p.send(b'{"jsonrpc":"2.0","id":1,')  # not clear, for too long
            time.sleep(0.4)
            p.send(b'"method":"echo","params":5}\n')
            self.assertEqual(p.peer.message()["result"], 5)

    def test_listeners(self):
        for words in (("--listen", "stdio"), ("--listen", "any=stdio"), ("--stdio",)):
            with Program(*DEMO, *words) as p:
                self.assertEqual(p.ask(execute("/echo", 1))["result"], {"output": 1})
                p.end()
                self.assertIn('{"event":"listening","wire":"any","address":"stdio","port":0}', p.stderr())

    def test_only_once(self):
        for words in (("--stdio", "--listen", "jsonrpc=stdio"), ("--stdio", "--listen", "stepflow=stdio")):
            r = cli("serve", "--demo", *words)
            self.assertEqual((r.code, r.out), (1, b""), r)

    def test_a_pipe_alone_means_nothing(self):
        with support.Server("--port", "0", listen=()) as s:
            self.assertTrue(wait_until(lambda: s.running()))
            self.assertEqual(len(s.listeners), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
