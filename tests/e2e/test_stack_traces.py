"""Stack traces in the errors of upstreams: which callers of a gateway see them.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import socket
import tempfile
import unittest

import support
from support import Server, cli, request, wait_until

STACK = "Error: no\n    at run (/srv/app.js:1:2)"
INPUT = json.dumps({"status": "ABORTED", "message": "no",
                    "details": {"stack": STACK, "k": 1, "cause": {"stack": STACK, "z": 2}}})
WITH = {"stack": STACK, "k": 1, "cause": {"stack": STACK, "z": 2}}
WITHOUT = {"k": 1, "cause": {"z": 2}}


def own_address():
    """An address of this machine that is not a loopback one, or None. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
            address = s.getsockname()[0]
        except OSError:
            return None
    return None if address.startswith("127.") or address == "0.0.0.0" else address


class StackTraces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.origin = Server().start()
        cls.addClassCleanup(cls.origin.stop)

    def gateway(self, *args, **kw):
        return Server("--import", self.origin.url, *args, demo=False, **kw)

    def wait_for_actions(self, server):
        self.assertTrue(wait_until(lambda: "/flow/fail" in server.get("/api/actions").json(), 60), server.stderr())

    def details(self, server, target):
        r = cli("call", target, "/flow/fail", INPUT, timeout=60)
        self.assertEqual(r.code, 1, r)
        return r.error()["details"]

    def check(self, server, expected):
        self.wait_for_actions(server)
        for scheme in ("http", "jsonrpc", "rrq", "stepflow+http"):
            with self.subTest(scheme):
                self.assertEqual(self.details(server, "%s://127.0.0.1:%d" % (scheme, server.port)), expected)
        r = server.call("/flow/fail", INPUT.encode(), [("Accept", "text/event-stream")])
        block = json.loads(r.body.decode().split("error: ", 1)[1])
        self.assertEqual(block["error"]["details"], expected)

    def test_callers_on_this_machine(self):
        with self.gateway() as server:
            self.check(server, WITH)

    def test_none(self):
        with self.gateway("--stack-traces", "none") as server:
            self.check(server, WITHOUT)

    def test_own_actions_are_not_touched(self):
        with Server("--stack-traces", "none") as server:
            self.assertEqual(self.details(server, server.url), WITH)

    def test_callers_on_other_machines(self):
        address = own_address()
        if not address:
            self.skipTest("this machine has loopback addresses only")
        for option, expected in ((), WITHOUT), (("--stack-traces", "all"), WITH), (("--stack-traces", "local"), WITHOUT):
            with self.subTest(option), self.gateway(
                    "--allow-remote", "--no-token", "--allow-host", address, *option, listen=("0.0.0.0:0",)) as server:
                self.wait_for_actions(server)
                with support.Conn(server.port, host=address) as c:
                    c.send(request("POST", "/flow/fail", b'{"data":%s}' % INPUT.encode(),
                                   host="%s:%d" % (address, server.port)))
                    self.assertEqual(c.response(60).json()["details"], expected)
                self.assertEqual(self.details(server, "jsonrpc://%s:%d" % (address, server.port)), expected)

    def test_configuration_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "everywire.yaml")
            for text, args, expected in (("stack_traces: none\n", (), WITHOUT),
                                         ("stack_traces: none\n", ("--stack-traces", "all"), WITH)):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                os.chmod(path, 0o600)
                with self.subTest(text=text, args=args), self.gateway("--config", path, *args) as server:
                    self.wait_for_actions(server)
                    self.assertEqual(self.details(server, server.url), expected)

    def test_bad_value(self):
        r = cli("serve", "--stack-traces", "maybe")
        self.assertEqual(r.code, 2, r)
        self.assertIn(b"expected local, all or none", r.err)

    def test_jobs(self):
        with tempfile.TemporaryDirectory() as folder:
            for policy, expected in (("none", WITHOUT), ("local", WITH)):
                with self.subTest(policy), self.gateway(
                        "--worker", "--store", "sqlite:%s/%s.db" % (folder, policy), "--stack-traces", policy) as server:
                    self.wait_for_actions(server)
                    r = server.post("/jobs/fail?id=a&max_retries=1", INPUT.encode())
                    self.assertEqual(r.status, 202, r)
                    r = server.get("/jobs/a?wait=100s", timeout=110)
                    self.assertEqual(r.json()["error"]["details"], expected)
                    self.assertEqual(server.get("/jobs").json()["jobs"][0]["error"]["details"], expected)
                    data = server.get("/jobs/a/stream").body.decode().split("data: ", 1)[1]
                    self.assertEqual(json.loads(data)["details"], expected)


if __name__ == "__main__":
    support.main()
