"""Schemas of actions: on every wire the same refusals, in every list; in the configuration file, and for jobs.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import socket
import tempfile
import unittest

import support
from support import BINARY, Server, cli, wait_until

CONFIG = """\
listen: 127.0.0.1:0
actions:
  /tool/add:
    exec: {argv: [./add.sh], output: lines}
    input_schema:
      type: object
      properties: {name: {type: string, maxLength: 5}, n: {type: integer, minimum: 0}}
      required: [name]
      additionalProperties: false
    output_schema: '@add.output.json'
    stream_schema: {type: integer}
"""
# gives its input's "name" back as a result: "chunk" and "bad" break the other two schemas
PROGRAM = """#!/bin/sh
read line
case $line in
*chunk*) echo '{"chunk":1}'; echo '{"chunk":"secret"}'; echo '{"result":"x"}' ;;
*bad*) echo '{"result":{"password":"secret"}}' ;;
*) echo '{"chunk":1}'; echo '{"result":"fine"}' ;;
esac
"""
UNFIT = {"name": 7, "n": -1, "colour": "secret"}
ERRORS = [
    {"path": "/name", "keyword": "type", "schema_path": "/properties/name/type", "message": "expected string, got integer"},
    {"path": "/n", "keyword": "minimum", "schema_path": "/properties/n/minimum", "message": "must be at least 0"},
    {"path": "/colour", "keyword": "additionalProperties", "schema_path": "/additionalProperties",
     "message": "no such member is allowed"}]


def error_of(r):
    """What the call ended with; programs that it has started log there too."""
    lines = [line for line in r.err.splitlines() if line.startswith(b'{"error":')]
    return json.loads(lines[-1])["error"]


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = self.write("everywire.yaml", CONFIG)
        self.write("add.sh", PROGRAM, 0o755)
        self.write("add.output.json", '{"type":"string","pattern":"^[a-z]*$"}')

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        return path


class Wires(Folder):
    def calls(self, call):
        """call(input) on some wire: what fits, what does not, what the program must not say."""
        good = call({"name": "ok"})
        self.assertEqual((good.code, good.out), (0, b'"fine"\n'), good)
        r = call(UNFIT)
        self.assertEqual(r.code, 1, r)
        error = error_of(r)
        self.assertEqual(error["status"], "INVALID_ARGUMENT")
        self.assertEqual(error["message"], "input does not match its schema: /name: expected string, got integer")
        self.assertEqual(error["details"]["errors"], ERRORS)
        r = call({"name": "bad"})
        error = error_of(r)
        self.assertEqual((r.code, error["status"]), (1, "INTERNAL"))
        self.assertIn("the action's result does not match its schema: expected string, got object", error["message"])
        self.assertEqual(error["details"]["errors"][0]["keyword"], "type")
        self.assertNotIn(b"secret", r.err)

    def test_all_wires(self):
        with Server("--config", self.path, demo=False, listen=()) as server:
            for target in ("http://", "rrq://", "stepflow+http://", "jsonrpc://"):
                with self.subTest(target):
                    url = "%s127.0.0.1:%d" % (target, server.port)
                    self.calls(lambda value: cli("call", url, "/tool/add", json.dumps(value)))
                    listed = json.loads(cli("list", url).out)["/tool/add"]
                    self.assertEqual(listed["inputSchema"]["required"], ["name"])
                    self.assertEqual(listed["outputSchema"], {"type": "string", "pattern": "^[a-z]*$"})
                    self.assertEqual(listed["streamSchema"], {"type": "integer"})

    def test_reflection(self):
        def ask(*args):
            return cli(*args, "--", BINARY, "serve", "--config", self.path, "--listen", "127.0.0.1:0", timeout=30)
        self.calls(lambda value: ask("call", "reflection://127.0.0.1:0", "/tool/add", json.dumps(value)))
        listed = json.loads(ask("list", "reflection://127.0.0.1:0").out)["/tool/add"]
        self.assertEqual(listed["inputSchema"]["required"], ["name"])
        self.assertEqual(listed["outputSchema"]["type"], "string")

    def test_as_the_wires_write_it(self):
        with Server("--config", self.path, demo=False, listen=()) as server:
            r = server.call("/tool/add", json.dumps(UNFIT).encode())
            self.assertEqual((r.status, r.json()["status"]), (400, "INVALID_ARGUMENT"))
            r = server.post("/tool/add?stream=true", b'{"data":{}}')
            self.assertEqual((r.status, r.get("content-type")), (400, "application/json"))  # before any stream
            info = server.post("/", b'{"jsonrpc":"2.0","id":"1","method":"components/list","params":{}}').json()
            component = info["result"]["components"][0]
            self.assertEqual(component["input_schema"]["required"], ["name"])
            self.assertEqual(component["output_schema"]["type"], "string")
            with support.Rpc.over(socket.create_connection(("127.0.0.1", server.port))) as peer:
                method = peer.call("rpc.discover")["result"]["methods"][0]
            self.assertEqual({p["name"]: p["required"] for p in method["params"]}, {"name": True, "n": False})
            self.assertEqual(method["result"]["schema"]["type"], "string")

    def test_chunks(self):
        with Server("--config", self.path, demo=False, listen=()) as server:
            r = cli("call", server.url, "/tool/add", '{"name":"chunk"}', "--stream")
            self.assertEqual((r.code, r.out), (1, b'{"chunk":1}\n'), r)
            error = error_of(r)
            self.assertEqual(error["status"], "INTERNAL")
            self.assertIn("a chunk of the action does not match its schema: expected integer, got string", error["message"])
            self.assertNotIn(b"secret", r.err)
            r = cli("call", server.url, "/tool/add", '{"name":"ok"}', "--stream")
            self.assertEqual((r.code, r.out), (0, b'{"chunk":1}\n{"result":"fine"}\n'), r)

    def test_a_gateway_leaves_it_to_the_home(self):
        with Server("--config", self.path, demo=False, listen=()) as home:
            with Server("--import", home.url, demo=False) as gateway:
                self.assertTrue(wait_until(lambda: gateway.call("/tool/add", b'{"name":"ok"}').status == 200))
                r = gateway.call("/tool/add", json.dumps(UNFIT).encode())
                self.assertEqual((r.status, r.json()["details"]["errors"]), (400, ERRORS))
                self.assertEqual(gateway.get("/api/actions").json()["/tool/add"]["inputSchema"]["required"], ["name"])


class Jobs(Folder):
    def test_unfit_params_are_refused(self):
        store = "sqlite:" + os.path.join(self.folder.name, "jobs.db")
        with Server("--config", self.path, "--store", store, "--worker", demo=False, listen=()) as server:
            r = server.post("/jobs/tool/add", json.dumps(UNFIT).encode())
            self.assertEqual((r.status, r.json()["status"], r.json()["details"]["errors"]), (400, "INVALID_ARGUMENT", ERRORS))
            # enqueued by somebody who does not know the action: it fails once, and is not tried again
            r = cli("job", "enqueue", "/tool/add", json.dumps(UNFIT), "--store", store, "--max-retries", "5", "--wait", "--json",
                    timeout=30)
            job = json.loads(r.lines()[-1])
            self.assertEqual((r.code, job["status"], job["attempts"]), (1, "FAILED", 1), job)
            self.assertIn("input does not match its schema: /name: expected string, got integer", job["last_error"])
            r = server.post("/jobs/tool/add", b'{"name":"ok"}')
            self.assertEqual(r.status, 202)


class Check(Folder):
    def lines(self):
        r = cli("check", self.path)
        return r.code, [line.split(":", 1)[1] for line in r.out.decode().replace(self.folder.name, "").splitlines()]

    def test_fine(self):
        self.assertEqual(self.lines(), (0, []))

    def test_place(self):
        self.write("everywire.yaml", CONFIG.replace("maxLength: 5", "maxLength: five"))
        self.assertEqual(self.lines(), (1, ["7:52: input_schema: /properties/name/maxLength: this must be a whole number, 0 or more"]))
        self.write("everywire.yaml", CONFIG.replace("{type: integer}\n", "{$ref: 'http://example.com/x'}\n"))
        self.assertEqual(self.lines(), (1, ["11:27: stream_schema: /$ref: http://example.com/x is not in this document, and no other is ever read"]))

    def test_files(self):
        self.write("add.output.json", '{"pattern":"(a)\\\\1"}')
        self.assertEqual(self.lines(), (1, ["10:20: output_schema: /pattern: in the pattern, at character 5: back-references are "
                                            "not supported: they cannot be matched in linear time"]))
        os.unlink(os.path.join(self.folder.name, "add.output.json"))
        self.assertEqual(self.lines(), (1, ["10:20: output_schema: add.output.json: it cannot be read: No such file or directory"]))

    def test_a_changed_file_counts(self):
        with Server("--config", self.path, demo=False, listen=()) as server:
            self.assertEqual(server.call("/tool/add", b'{"name":"ok"}').status, 200)
            self.write("add.output.json", '{"type":"null"}')
            server.signal(support.signal.SIGHUP)
            self.assertTrue(wait_until(lambda: server.call("/tool/add", b'{"name":"ok"}').status == 500))


if __name__ == "__main__":
    support.main()
