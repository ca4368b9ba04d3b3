"""Runs every example against loopback and checks what it says. Needs EVERYWIRE (the program) and EW_EXAMPLES (their folder).

SPDX-License-Identifier: Apache-2.0
"""
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

EVERYWIRE = os.environ["EVERYWIRE"]
EXAMPLES = os.environ["EW_EXAMPLES"]
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(os.path.dirname(os.path.dirname(HERE)), "examples")
LIMIT = 30


class Server:
    """A serving program on a free port; it must end with 0 when it is asked to."""

    def __init__(self, *command):
        self.process = subprocess.Popen(list(command) + ["--listen", "127.0.0.1:0"], stdout=subprocess.PIPE)
        first = json.loads(self.process.stdout.readline())
        ready = json.loads(self.process.stdout.readline())
        assert first["event"] == "listening" and ready == {"event": "ready"}, (first, ready)
        self.port = first["port"]
        self.url = "http://127.0.0.1:%d" % self.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(LIMIT)
        self.process.stdout.close()
        if code != 0:
            raise AssertionError("%s ended with %d" % (self.process.args[0], code))


def call(server, *words):
    """The lines that `everywire call` prints."""
    done = subprocess.run([EVERYWIRE, "call", server.url] + list(words), stdout=subprocess.PIPE, timeout=LIMIT, check=True)
    return done.stdout.decode().splitlines()


def example(name):
    return os.path.join(EXAMPLES, name)


class Examples(unittest.TestCase):
    def test_every_example_is_tested_and_listed(self):
        names = {os.path.splitext(f)[0] for f in os.listdir(SOURCES) if f.endswith(".c")}
        self.assertEqual(names, {"serve", "stream", "later", "call", "manager", "jobs", "worker", "components", "kimi_agent", "plugin"}, "a new example wants a test here")
        with open(os.path.join(SOURCES, "README.md"), encoding="utf-8") as f:
            text = f.read()
        for name in names:
            self.assertIn("(%s.c)" % name, text)

    def test_they_stay_small(self):
        for name, limit in (("serve", 22), ("stream", 60), ("later", 50), ("call", 60), ("manager", 65), ("jobs", 65), ("worker", 65), ("components", 85), ("kimi_agent", 260), ("plugin", 65)):
            with open(os.path.join(SOURCES, name + ".c"), encoding="utf-8") as f:
                self.assertLessEqual(len(f.readlines()), limit, name)

    def test_serve(self):
        with Server(example("serve")) as server:
            self.assertEqual(call(server, "greet", '{"name":"Ada"}'), ['{"greeted":"Ada"}'])
            self.assertEqual(call(server, "greet", "--stream"), ['{"chunk":{"text":"world"}}', '{"result":{"greeted":"world"}}'])
            for name in ("Jos\u00e9", 'Bob "the builder"', "\U0001f600", "a\0b", "back\\slash\n"):
                for escaped in (True, False):
                    lines = call(server, "greet", json.dumps({"name": name}, ensure_ascii=escaped), "--stream")
                    self.assertEqual([json.loads(line) for line in lines], [{"chunk": {"text": name}}, {"result": {"greeted": name}}])
            for bad in ('{"name":5}', '{"name":null}', '"Ada"', '{"name":"\\ud800"}'):
                done = subprocess.run([EVERYWIRE, "call", server.url, "greet", bad], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
                self.assertEqual((done.returncode, done.stdout, b"INVALID_ARGUMENT" in done.stderr), (1, b"", True), bad)

    def test_serve_help(self):
        done = subprocess.run([example("serve"), "--help"], stdout=subprocess.PIPE, timeout=LIMIT, check=True)
        self.assertIn(b"Usage: serve [OPTIONS]", done.stdout)
        self.assertIn(b"--listen", done.stdout)
        done = subprocess.run([example("serve"), "--lissten", "x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"did you mean --listen?", done.stderr)

    def test_manager(self):
        done = subprocess.run([example("manager"), "greet", '{"name":"Ada"}', example("serve")], stdout=subprocess.PIPE,
                              timeout=LIMIT, check=True)
        lines = done.stdout.decode().splitlines()
        self.assertEqual(list(json.loads(lines[0].split(" ", 1)[1])), ["/flow/greet"])
        self.assertEqual(lines[1:], ['chunk  {"text":"Ada"}', 'result {"greeted":"Ada"}'])
        done = subprocess.run([example("manager"), "nothing", "1", example("serve")], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=LIMIT)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"failed NOT_FOUND", done.stderr)

    def test_jobs(self):
        done = subprocess.run([example("jobs"), "greet", "20", example("serve")], stdout=subprocess.PIPE, timeout=LIMIT, check=True)
        self.assertEqual(sorted(done.stdout.decode().splitlines()), sorted('done   {"greeted":"number %d"}' % i for i in range(20)))
        done = subprocess.run([example("jobs"), "nothing", "2", example("serve")], stdout=subprocess.PIPE, timeout=LIMIT)
        self.assertEqual((done.returncode, done.stdout.count(b"failed NOT_FOUND: No handler registered for function 'nothing'")), (1, 2))

    def test_worker(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [example("worker"), "sqlite:%s/jobs.db" % folder, "Ada", "Grace"]
            wanted = b'greet-Ada {"greeted":"Ada"}\ngreet-Grace {"greeted":"Grace"}\n'
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT, check=True)
            self.assertEqual((done.stdout, done.stderr.count(b"enqueued")), (wanted, 2))
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT, check=True)
            self.assertEqual((done.stdout, done.stderr.count(b"already")), (wanted, 2))

    def test_components(self):
        """Both carriers, blobs by calling back and by URL, and a store that outlives the runtime."""
        program = example("components")
        value = '{"b":[1.0,12345678901234567890],"a":"\\u20ac"}'
        targets = (("stepflow+stdio:", "--stdio"), ("stepflow+stdio:", "--listen", "stepflow=stdio"), ("stepflow+http:", "--port", "0"))
        with tempfile.TemporaryDirectory() as folder:
            for target, *words in targets:
                def run(*args):
                    command = [EVERYWIRE, "call", target, *args, "--blobs", "sqlite:%s/blobs.db" % folder, "--", program, *words]
                    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
                done = run("store", value)
                self.assertEqual(done.returncode, 0, done.stderr)
                blob_id = json.loads(done.stdout)["blob_id"]
                self.assertEqual(len(blob_id), 64)
                done = run("load", '{"blob_id":"%s"}' % blob_id)
                self.assertEqual((done.returncode, json.loads(done.stdout)), (0, json.loads(value)), done.stderr)
                self.assertIn(b"12345678901234567890", done.stdout)
                done = run("load", '{"blob_id":"%s"}' % ("0" * 64))
                self.assertEqual(done.returncode, 1)
                self.assertEqual(run("load", "{}").returncode, 1)
        with Server(program) as server:
            done = subprocess.run([EVERYWIRE, "call", server.url, "store", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"has no blob store", done.stderr)

    def test_stream(self):
        with Server(example("stream")) as server:
            lines = call(server, "numbers", '{"n":5}', "--stream")
            self.assertEqual(lines, ['{"chunk":%d}' % i for i in range(1, 6)] + ['{"result":{"sent":5}}'])
            lines = call(server, "numbers", '{"n":200000}', "--stream")
            self.assertEqual(len(lines), 200001)
            self.assertEqual(lines[-2:], ['{"chunk":200000}', '{"result":{"sent":200000}}'])
            self.leave_early(server)
            self.assertEqual(call(server, "numbers", '{"n":1}'), ['{"sent":1}'])

    def leave_early(self, server):
        """A reader that goes away must not keep the program from its other work, nor from its end."""
        conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT)
        conn.request("POST", "/numbers", b'{"data":{"n":100000000}}', {"Content-Type": "application/json", "Accept": "text/event-stream"})
        answer = conn.getresponse()
        self.assertEqual(answer.status, 200)
        answer.read(1000)
        answer.close()
        conn.close()

    def test_later(self):
        with Server(example("later")) as server:
            lines = call(server, "slow", '{"a":1}', "--stream")
            self.assertEqual(lines, ['{"chunk":{"percent":%d}}' % i for i in (0, 50, 100)] + ['{"result":{"did":{"a":1}}}'])

    def test_call(self):
        with Server(EVERYWIRE, "serve", "--demo") as server:
            done = subprocess.run([example("call"), server.url], stdout=subprocess.PIPE, timeout=LIMIT, check=True)
            self.assertEqual(done.stdout.decode().splitlines(),
                             ['result "Hello, Ada!"', 'chunk  "Hello,"', 'chunk  " Ada!"', 'result "Hello, Ada!"'])
            gone = server.url
        done = subprocess.run([example("call"), gone], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"failed UNAVAILABLE", done.stderr)

    def test_plugin(self):
        with tempfile.TemporaryDirectory() as folder:  # nobody else can write there, whatever the build folder is like
            plugin = os.path.join(folder, "plugin.so")
            shutil.copyfile(example("plugin.so"), plugin)
            os.chmod(plugin, 0o644)
            with Server(os.environ["EW_PLUGIN_HOST"], plugin, '{"greeting":"Good day"}') as server:
                self.assertEqual(call(server, "upper", '"abc"'), ['"ABC"'])
                self.assertEqual(call(server, "welcome", '"Ada"'), ['{"greeting":"Good day","name":"Ada"}'])
                done = subprocess.run([EVERYWIRE, "call", server.url, "upper", "7"], stderr=subprocess.PIPE, timeout=LIMIT)
                self.assertEqual((done.returncode, b"INVALID_ARGUMENT" in done.stderr), (1, True))
            os.chmod(plugin, 0o666)
            done = subprocess.run([os.environ["EW_PLUGIN_HOST"], plugin, "null"], stderr=subprocess.PIPE, timeout=LIMIT)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"plugin.so: it can be written by everybody (mode 666): not loaded", done.stderr)

    def test_kimi_agent(self):
        done = subprocess.run([example("kimi_agent"), "info", "--json"], stdout=subprocess.PIPE, timeout=LIMIT, check=True)
        self.assertEqual(json.loads(done.stdout), {"wire_protocol_version": "1.7"})
        agent = subprocess.Popen([example("kimi_agent"), "--wire", "--unknown"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def send(**message):
            agent.stdin.write(json.dumps(dict(message, jsonrpc="2.0")).encode() + b"\n")
            agent.stdin.flush()

        def until(wanted):
            types = []
            while True:
                message = json.loads(agent.stdout.readline())
                if message.get("id") == wanted:
                    return types, message
                types.append(message["params"]["type"])
                if message["method"] == "request":
                    self.assertEqual(message["id"], message["params"]["payload"]["id"])
                    return types, message

        send(id="0", method="initialize", params={})
        self.assertEqual(until("0")[1]["result"]["protocol_version"], "1.7")
        send(id="1", method="prompt", params={"user_input": "hi"})
        types, asked = until("1")
        self.assertEqual(types, ["TurnBegin", "StepBegin", "ContentPart", "ContentPart", "ToolCall", "ApprovalRequest"])
        send(id="2", method="prompt", params={"user_input": "too early"})
        self.assertEqual(until("2")[1]["error"]["code"], -32000)
        send(id=asked["id"], result={"request_id": asked["id"], "response": "approve"})
        types, done = until("1")
        self.assertEqual(types, ["ApprovalResponse", "ToolResult", "StepBegin", "ContentPart", "StatusUpdate", "TurnEnd"])
        self.assertEqual(done["result"], {"status": "finished"})
        send(id="3", method="cancel", params={})
        self.assertEqual(until("3")[1]["result"], {})
        agent.stdin.close()
        self.assertEqual((agent.stdout.read(), agent.wait(LIMIT)), (b"", 0))
        agent.stdout.close()


if __name__ == "__main__":
    for variable in ("EVERYWIRE", "EW_EXAMPLES"):
        print(variable, os.environ[variable], file=sys.stderr)
    unittest.main()
