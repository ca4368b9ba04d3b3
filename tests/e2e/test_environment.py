"""What programs that are started get of the environment: those of a server a short list and what its configuration
names, one that a user starts on the command line all of it.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import socket
import sys
import tempfile
import unittest

from support import Server, cli, main, request, wait_until

# What a server might have, and a child has no business with.
SECRETS = {"EW_SECRET": "s3cret", "EVERYWIRE_TOKEN": "ewt_s3cret", "AWS_SECRET_ACCESS_KEY": "s3cret"}
SHORT = {"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"}
ADDED = {"LC_CTYPE"}  # Python's own, in a C locale

# A peer of JSON-RPC on pipes with one action, which answers with its environment.
PEER = """
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": dict(os.environ)}), flush=True)
"""
# A program that prints the names of its variables (a line of the log has 1 KiB) and stays.
NAMES = """
import os, sys
print("NAMES", *os.environ, "END", file=sys.stderr, flush=True)
sys.stdin.read()
"""


def logged(text):
    """The names that NAMES has printed; None: not yet."""
    found = re.search(r"NAMES (.*) END", text)
    return set(found.group(1).split()) if found else None


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o600)
        return path

    def serve(self, config):
        path = self.write("everywire.yaml", json.dumps(dict(config, listen=["127.0.0.1:0"])))
        return Server("--config", path, demo=False, listen=(), env=SECRETS)

    def of_peer(self, **options):
        """The environment of the program of an import."""
        peer = self.write("peer.py", PEER)
        of = {"target": "jsonrpc+stdio:", "command": [sys.executable, peer], "names": ["vars"], **options}
        with self.serve({"imports": [of]}) as server:
            answer = server.call("/flow/vars", b"null")
            self.assertEqual(answer.status, 200, server.stderr())
            return json.loads(answer.body)["result"]


class Imports(Case):
    def test_short_list(self):
        self.assertLessEqual(set(self.of_peer()), SHORT | ADDED)

    def test_named(self):
        got = self.of_peer(environment=["EW_SECRET", "EW_NOT_THERE", "EW_OWN=1", "HOME=/nowhere"])
        self.assertLessEqual(set(got), SHORT | ADDED | {"EW_SECRET", "EW_OWN"})
        self.assertEqual((got["EW_SECRET"], got["EW_OWN"], got["HOME"]), ("s3cret", "1", "/nowhere"))

    def test_map(self):
        got = self.of_peer(environment={"EW_SECRET": None, "EW_OWN": "a=b"})
        self.assertEqual((got["EW_SECRET"], got["EW_OWN"]), ("s3cret", "a=b"))
        self.assertNotIn("EVERYWIRE_TOKEN", got)

    def test_all(self):
        got = self.of_peer(environment=["EW_OWN=1", "*", "EW_SECRET=other"])
        expected = dict(SECRETS, PATH=os.environ["PATH"], EW_OWN="1", EW_SECRET="other")
        self.assertEqual({name: got.get(name) for name in expected}, expected)

    def test_refused(self):
        of = {"target": "jsonrpc+stdio:", "command": ["true"], "environment": ["=x"]}
        path = self.write("bad.yaml", json.dumps({"imports": [of]}))
        r = cli("check", path)
        self.assertEqual(r.code, 1, r)
        self.assertIn(b"a variable of the environment has no name", r.out)


class Managed(Case):
    """Programs that are reached by another way than their standard input and output."""

    def check(self, target, own):
        program = self.write("names.py", NAMES)
        of = {"target": target, "command": [sys.executable, program], "names": ["x"], "environment": ["EW_OWN=1"]}
        with self.serve({"imports": [of]}) as server:
            with socket.create_connection(("127.0.0.1", server.port)) as s:  # the call starts it
                s.sendall(request("POST", "/x", b'{"data":{}}', port=server.port))
                self.assertTrue(wait_until(lambda: logged(server.stderr()), timeout=20), server.stderr())
            got = logged(server.stderr())
        self.assertLessEqual(got, SHORT | ADDED | {"EW_OWN"} | own)
        self.assertLessEqual({"EW_OWN"} | own, got)

    def test_reflection(self):
        self.check("reflection://127.0.0.1:0", {"GENKIT_ENV", "GENKIT_REFLECTION_V2_SERVER"})

    def test_rrq(self):
        self.check("rrq://127.0.0.1:0", {"RRQ_RUNNER_TCP_SOCKET"})

    def test_stepflow(self):
        self.check("stepflow+http:", set())


class Runners(Case):
    def test_worker(self):
        program = self.write("names.py", NAMES)
        runner = {"target": "rrq://127.0.0.1:0", "command": [sys.executable, program], "env": {"EW_OWN": "1"}}
        jobs = {"store": "sqlite:jobs.db", "worker": True, "runners": {"r": runner}}
        with self.serve({"jobs": jobs}) as server:
            self.assertTrue(wait_until(lambda: logged(server.stderr()), timeout=20), server.stderr())
            got = logged(server.stderr())
        own = {"EW_OWN", "RRQ_RUNNER_TCP_SOCKET"}
        self.assertLessEqual(got, SHORT | ADDED | own)
        self.assertLessEqual(own, got)


class CommandLine(Case):
    def test_inherits(self):
        peer = self.write("peer.py", PEER)
        r = cli("call", "jsonrpc+stdio:", "vars", "--", sys.executable, peer, env=SECRETS)
        self.assertEqual(r.code, 0, r)
        got = json.loads(r.out)
        self.assertEqual({name: got.get(name) for name in SECRETS}, SECRETS)


class Actions(Case):
    def exec(self, *environment):
        script = self.write("script.py", "import json, os\nprint(json.dumps(dict(os.environ)))")
        program = {"argv": [sys.executable, script], "output": "json", "environment": environment}
        with self.serve({"actions": {"/flow/vars": {"exec": program}}}) as server:
            return json.loads(server.call("/flow/vars", b"null").body)["result"]

    def test_short_list(self):
        own = {"EVERYWIRE_KEY", "EVERYWIRE_TRACEPARENT"}
        self.assertLessEqual(set(self.exec()), SHORT | ADDED | own)

    def test_all(self):
        got = self.exec("*")
        self.assertEqual((got["EW_SECRET"], got["EVERYWIRE_KEY"]), ("s3cret", "/flow/vars"))


if __name__ == "__main__":
    main()
