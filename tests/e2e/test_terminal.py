"""What somebody at a terminal sees: an action explained instead of called without its input, hints about what to do next,
a line about what takes long. And that none of it is there when nobody sits at one.

SPDX-License-Identifier: Apache-2.0
"""
import concurrent.futures
import fcntl
import json
import os
import pty
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

from support import BINARY, SLOW, FakeServer, Server, canned, canned_stream, cli, free_ports, read_terminal

server = None


def setUpModule():
    global server
    server = Server("--threads", "1").start()


def tearDownModule():
    server.__exit__(None, None, None)


class Seen:
    def __init__(self, code, out):
        self.code = code
        self.bytes = out
        self.raw = out.decode("utf-8", "replace")
        self.text = self.raw.replace("\r\n", "\n")

    def __repr__(self):
        return "code %s\n%s" % (self.code, self.text)


def terminal(*words, keys=b"", until=None, stdin=True, stdout=True, env=None, colour=False, timeout=15.0):
    """Runs the program on a terminal of its own; `until` (an expression) ends it by Ctrl-C once it was seen."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    pipes = [None if flag else subprocess.DEVNULL for flag in (stdin, stdout)]
    p = subprocess.Popen([BINARY, *words], stdin=follower if stdin else pipes[0], stdout=follower if stdout else pipes[1], stderr=follower,
                         env=dict(os.environ, TERM="xterm", **({} if colour else {"NO_COLOR": "1"}), **(env or {})), start_new_session=True)
    os.close(follower)
    if keys:
        os.write(leader, keys)

    def saw(out):
        nonlocal until
        if until and re.search(until, out):
            until = None
            p.send_signal(signal.SIGINT)

    out = read_terminal(leader, timeout * SLOW, saw)
    try:
        code = p.wait(timeout * SLOW)
    except subprocess.TimeoutExpired:
        p.kill()
        raise AssertionError("%s did not end; it wrote %r" % (words, out))
    return Seen(code, out)


def described(schema, **more):
    """A peer whose only action has that input schema."""
    actions = {"/flow/it": dict({"key": "/flow/it", "name": "it", "actionType": "flow", "description": "Does \x1b[2Jit", "inputSchema": schema}, **more)}
    calls = []

    def respond(sock, request):
        if request["method"] == "GET":
            return canned("200 OK", json.dumps(actions).encode())(sock, request)
        calls.append(request)
        return canned("200 OK", b'{"result":1}')(sock, request)

    fake = FakeServer(respond)
    fake.calls = calls
    return fake


class Case(unittest.TestCase):
    maxDiff = None

    def example(self, seen):
        """The words of the command line that it suggests."""
        return shlex.split(seen.text.split("Example:\n", 1)[1].strip().splitlines()[0])


class Explained(Case):
    NEEDS = {"type": "object", "properties": {"to": {"type": "string", "format": "email"}, "n": {"type": "integer", "minimum": 3, "description": "how often"},
                                              "kind": {"enum": ["it's", "b"]}, "list": {"type": "array", "items": {"$ref": "#/$defs/x"}}},
             "required": ["to"], "$defs": {"x": {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {}}, "required": ["a"]}}}

    def test_instead_of_a_call(self):
        with described(self.NEEDS, streamSchema={"type": "string"}) as fake:
            seen = terminal("call", fake.url, "it")
            self.assertEqual(seen.code, 2, seen)
            self.assertEqual(fake.calls, [])
            for line in ("everywire call: it wants an INPUT", "/flow/it", "Input: object", "  to (required): string, format email", "  n: integer, from 3: how often",
                         '  kind: one of "it\'s", "b"', "  list: array of object", "Chunks: string"):
                self.assertIn(line + "\n", seen.text)
            self.assertNotIn("\x1b", seen.text)
            words = self.example(seen)
            self.assertEqual(words[:4], ["everywire", "call", fake.url, "it"])
            self.assertEqual(json.loads(words[4]), {"to": "ada@example.com", "n": 3, "kind": "it's", "list": [{"a": True}]})
            self.assertEqual(words[5:], ["--stream"])

    def test_only_when_somebody_sits_there(self):
        with described(self.NEEDS) as fake:
            for ends in ({"stdin": False}, {"stdout": False}):
                self.assertEqual(terminal("call", fake.url, "it", **ends).code, 0)
            self.assertEqual(cli("call", fake.url, "it").code, 0)
            self.assertEqual(terminal("call", fake.url, "it", "{}").code, 0)
            self.assertEqual(len(fake.calls), 4)

    def test_what_needs_no_input_is_called(self):
        for schema in ({}, True, {"type": ["object", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}, {"properties": {"a": {}}}, {"enum": [1, None]}):
            with described(schema) as fake:
                seen = terminal("call", fake.url, "it")
                self.assertEqual((seen.code, len(fake.calls)), (0, 1), (schema, seen))
        for schema in ({"type": "string"}, {"anyOf": [{"type": "string"}, {"type": "number"}]}, {"required": ["a"]}, {"enum": [1]}, {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array"}}}):
            with described(schema) as fake:
                self.assertEqual((terminal("call", fake.url, "it").code, len(fake.calls)), (2, 0), schema)

    def test_schemas_that_never_end(self):
        for schema in ({"$ref": "#"}, {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}, {"anyOf": [{"$ref": "#"}]}, {"$ref": "#/none"}, {"type": 7}, [1]):
            with described(schema) as fake:
                self.assertIn(terminal("call", fake.url, "it").code, (0, 2), schema)
                self.assertEqual(terminal("describe", fake.url, "it").code, 0, schema)

    def test_a_peer_that_cannot_list_is_called(self):
        with FakeServer(lambda s, r: canned("404 Not Found", b"")(s, r) if r["method"] == "GET" else canned("200 OK", b'{"result":7}')(s, r)) as fake:
            seen = terminal("call", fake.url, "it")
            self.assertEqual((seen.code, seen.text), (0, "7\n"))

    def test_demo_actions_are_right(self):
        """Each example of the demo can be pasted, and does not fail for its input."""
        for key in json.loads(cli("list", server.url).out):
            seen = terminal("describe", server.url, key)
            self.assertEqual(seen.code, 0, seen)
            r = cli(*self.example(seen)[1:])
            self.assertEqual(r.code, 1 if key == "/flow/fail" else 0, (key, r.err))

    def test_describe(self):
        seen = terminal("describe", server.url, "count")
        for line in ("/flow/count", "Input: object or null", "  n: integer, from 0, to 10000000, default 10", "Output: object", "  count (required): integer"):
            self.assertIn(line + "\n", seen.text)
        self.assertIn("\x1b[1m/flow/count", terminal("describe", server.url, "count", colour=True).text)
        as_json = terminal("describe", server.url, "count", "--json")
        self.assertEqual(json.loads(as_json.text)["key"], "/flow/count")
        self.assertEqual(json.loads(cli("describe", server.url, "count").out)["key"], "/flow/count")


class Hostile(Case):
    """Text of a peer or a child that a terminal would obey, or show in another order, is escaped."""

    # DEL, C1 controls and bidirectional overrides: JSON may hold all of them unescaped
    TEXT = "a\x7f\u009b31m\u202eb\u2066c"
    BROKEN = b"\x9b31m\xc2\x9b32m\x1b]0;title\x07\xff"

    def clean(self, seen):
        """What was shown, without our own progress line."""
        text = seen.bytes.replace(b"\r\x1b[K", b"").replace(b"\r\n", b"\n").decode()
        self.assertNotRegex(text, "[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")
        return text

    def child(self, *lines):
        """The words of a program that writes these lines to its output and its error output."""
        code = "import os\nfor fd in 1, 2:\n os.write(fd, %r)" % b"".join(line + b"\n" for line in lines)
        return ["--", sys.executable, "-c", code]

    def fake(self, post):
        text = self.TEXT
        action = {"key": text, "name": text, "description": text, "actionType": "flow",
                  "inputSchema": {"const": text, "default": text, "description": text}}
        listed = canned("200 OK", json.dumps({text: action}, ensure_ascii=False).encode())
        return FakeServer(lambda s, r: (listed if r["method"] == "GET" else post)(s, r))

    def test_results(self):
        body = json.dumps({"result": self.TEXT}, ensure_ascii=False).encode()
        with self.fake(canned("200 OK", body)) as fake:
            seen = terminal("call", fake.url, "it", "{}")
            self.assertEqual(json.loads(self.clean(seen)), self.TEXT)
            r = cli("call", fake.url, "it", "{}")  # a pipe gets the bytes as they are
            self.assertEqual(r.out.decode(), '"%s"\n' % self.TEXT)

    def test_chunks(self):
        pieces = ['data: {"%s":"%s"}\n\n' % (name, self.TEXT) for name in ("message", "result")]
        with self.fake(canned_stream([piece.encode() for piece in pieces])) as fake:
            shown = self.clean(terminal("call", fake.url, "it", "{}", "--stream"))
            chunk, result = [json.loads(line) for line in shown.splitlines()]
            self.assertEqual((chunk, result), ({"chunk": self.TEXT}, {"result": self.TEXT}))

    def test_errors(self):
        error = '{"status":"NOT_FOUND","code":404,"message":"%s","details":{"%s":1}}' % (self.TEXT, self.TEXT)
        with self.fake(canned("404 Not Found", error.encode())) as fake:
            shown = self.clean(terminal("call", fake.url, "it", "{}"))
            self.assertEqual(json.loads(shown.splitlines()[0])["error"]["message"], self.TEXT)

    def test_lists(self):
        with self.fake(canned("200 OK", b'{"result":1}')) as fake:
            for verb, *words in (["list"], ["list", "--json"], ["describe", self.TEXT],
                                 ["describe", self.TEXT, "--json"]):
                with self.subTest(verb=verb, words=words):
                    seen = terminal(verb, fake.url, *words)
                    self.assertEqual(seen.code, 0, seen)
                    self.assertRegex(self.clean(seen), r"\\x7f|\\u007f")

    def test_frames(self):
        with self.fake(canned("200 OK", b'{"result":"' + self.TEXT.encode() + b'"}')) as fake:
            shown = self.clean(terminal("call", fake.url, "it", "{}", "-v"))
            self.assertIn("\\xc2\\x9b31m\\xe2\\x80\\xaeb", shown)
        with FakeServer(lambda s, r: s.sendall(self.BROKEN + b"\r\n\r\n")) as fake:
            self.clean(terminal("call", fake.url, "it", "{}", "-v"))

    def test_children(self):
        for target in ("jsonrpc+stdio:", "stepflow+stdio:"):
            with self.subTest(target):
                child = self.child(self.BROKEN, self.TEXT.encode())
                shown = self.clean(terminal("call", target, "it", "{}", *child))
                self.assertIn("\\x9b31m\\xc2\\x9b32m\\x1b]0;title\\x07\\xff", shown)

    def test_log_of_a_server(self):
        """What the program of an import writes is in the log."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "everywire.yaml")
            with open(path, "w") as f:
                of = {"target": "jsonrpc+stdio:", "command": self.child(self.BROKEN)[1:]}
                json.dump({"listen": ["127.0.0.1:0"], "imports": [of]}, f)
            os.chmod(path, 0o600)
            seen = terminal("serve", "--config", path, until=rb"title\\x07")
        self.assertIn("\\x9b31m\\xc2\\x9b32m\\x1b]0;title\\x07\\xff", self.clean(seen))

    def test_usage(self):
        seen = terminal("call", server.url, "greet", "{" + self.TEXT)
        self.assertEqual(seen.code, 2, seen)
        self.clean(seen)


class Hints(Case):
    def hint(self, *words, code, error=True, contains=()):
        seen = terminal("call", *words)
        self.assertEqual(seen.code, code, seen)
        if error:
            lines = seen.text.replace("\r\x1b[K", "").splitlines()
            self.assertIn("error", json.loads(lines[0]), seen)
        for text in contains:
            self.assertIn(text, seen.text)
        return seen

    def test_what_to_do_next(self):
        self.hint("http://127.0.0.1:%d" % free_ports(), "greet", "{}", code=3, contains=["hint: is the server running there?", "everywire serve --demo"])
        self.hint(server.url, "gret", "{}", code=1, contains=["hint: did you mean /flow/greet?", "everywire list " + server.url])
        self.hint(server.url, "sleep", '{"ms":5000}', "--timeout", "100ms", code=5, contains=["hint: --timeout"])
        self.hint(server.url, "count", '{"n":"x"}', code=1, contains=["hint: what it takes shows: everywire describe %s count\n" % server.url])
        missing = canned("404 Not Found", b'{"code":404,"status":"NOT_FOUND","message":"no such user"}')
        listed = canned("200 OK", b'{"/flow/user":{"key":"/flow/user","name":"user"}}')
        with FakeServer(lambda sock, r: (missing if r["method"] == "POST" else listed)(sock, r)) as users:
            seen = self.hint(users.url, "user", "{}", code=1, contains=["no such user"])
            self.assertNotIn("everywire list", seen.text)  # it is there, it has not found something
        with FakeServer(lambda sock, r: sock.sendall(b"220 mail.example ESMTP\r\n")) as mail:
            self.hint(mail.url, "greet", "{}", code=4, contains=["hint: does it speak the wire", "-v"])
        with FakeServer(lambda sock, r: False) as leaves:
            self.hint(leaves.url, "greet", "{}", code=3, contains=["hint: does it speak the wire"])
        self.hint("jsonrpc+stdio:", "greet", "{}", "--", "/no/such/program", code=3, contains=["hint: what stands behind --"])
        self.hint("jsonrpc+stdio:", "greet", "{}", "--", "false", code=3, error=False, contains=["hint: the program has ended by itself"])
        self.assertNotIn("hint", terminal("call", server.url, "gret", "{}", "--quiet").text)

    def test_a_program_on_pipes_does_not_talk_in_between(self):
        seen = terminal("call", "jsonrpc+stdio:", "greet", '"Ada"', "--", BINARY, "serve", "--demo", "--stdio", colour=False)
        self.assertEqual((seen.code, seen.text), (0, '"Hello, Ada!"\n'), seen)

    def test_bad_json(self):
        for text, words in (("{name:Ada}", ["(byte 2)", "did the shell take them", "  {name:Ada}\n   ^\n"]),
                            ('{"name":Ada}', ["(byte 9)", '  {"name":Ada}\n          ^\n', "single quotes"]),
                            ('{"name":', ["the end is missing", "single quotes"]), ("{'a':1}", ["double quotes only"]),
                            ("Ada", ["Text needs its double quotes: '\"Ada\"'"]), ('{"\u00e4\u00e4":x}', ["  {\"\u00e4\u00e4\":x}\n        ^\n"]),
                            ("[" + "1," * 100 + "x]", ["  " + "1," * 15 + "x]\n" + " " * 32 + "^\n"]), ("[1,]", ["^"]), ("[1\x1b,,]", ["^"])):
            r = cli("call", server.url, "greet", text)
            self.assertEqual((r.code, r.out), (2, b""), text)
            for word in words:
                self.assertIn(word, r.err.decode(), text)
            self.assertNotIn(b"\x1b", r.err)
        r = cli("call", server.url, "greet", "{name:", "Ada}")
        self.assertEqual((r.code, b"single quotes" in r.err), (2, True), r.err)
        with tempfile.NamedTemporaryFile() as f:
            f.write(b'{\n "a": 1,\n}')
            f.flush()
            self.assertIn(b"^", cli("call", server.url, "greet", "@" + f.name).err)
        self.assertIn(b"No such file", cli("call", server.url, "greet", "@/no/such/file").err)

    def test_a_port_that_is_taken(self):
        seen = terminal("serve", "--demo", "--listen", "127.0.0.1:%d" % server.port)
        self.assertEqual(seen.code, 1, seen)
        self.assertIn("127.0.0.1:%d" % server.port, seen.text)
        self.assertRegex(seen.text, r"ss -ltnp .*--listen 127\.0\.0\.1:0 takes a free port")

    def test_none_without_a_terminal(self):
        r = cli("call", server.url, "gret", "{}")
        self.assertEqual((r.code, len(r.err.splitlines())), (1, 1), r.err)


def silent():
    """Accepts connections and says nothing."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(8)
    return listener, "http://127.0.0.1:%d" % listener.getsockname()[1]


class Progress(Case):
    """What takes longer than a second. All of it runs at the same time, for it would else take long."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        store = "sqlite:" + os.path.join(cls.folder.name, "jobs.db")
        cli("job", "enqueue", "greet", "--job-id", "a", "--store", store)
        cls.listener, nobody = silent()
        runs = {
            "call": lambda: terminal("call", server.url, "sleep", '{"ms":1250}'),
            "chunks": lambda: terminal("call", server.url, "count", '{"n":4,"delay_ms":350}', "--stream", stdout=False),
            "list": lambda: terminal("list", nobody, "--timeout", "1300ms"),
            "runtime": lambda: terminal("call", "reflection://127.0.0.1:0", "greet", "{}", until=rb"REFLECTION_V2_SERVER=ws://127\.0\.0\.1:\d+ \("),
            "job": lambda: terminal("job", "wait", "a", "--timeout", "1300ms", "--store", store),
            "imports": lambda: terminal("serve", "--listen", "127.0.0.1:0", "--import", nobody, until=rb"imports \.\.\.\r\x1b\[K"),
            "quiet": lambda: terminal("call", server.url, "sleep", '{"ms":1250}', "-q"),
            "script": lambda: cli("call", server.url, "sleep", '{"ms":1250}'),
        }
        with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
            started = {name: pool.submit(run) for name, run in runs.items()}
        cls.seen = {name: future.result() for name, future in started.items()}

    @classmethod
    def tearDownClass(cls):
        cls.listener.close()
        cls.folder.cleanup()

    def shown(self, name, code, line):
        """The line came, and nothing of it is left at the end."""
        seen = self.seen[name]
        self.assertEqual(seen.code, code, seen)
        self.assertRegex(seen.raw, r"\r\x1b\[K" + line)
        last = seen.raw.rsplit("\r\x1b[K", 1)[1]
        self.assertNotRegex(last, "waiting|so far")
        return last.replace("\r\n", "\n")

    def test_a_slow_call(self):
        last = self.shown("call", 0, r"waiting for sleep at http://127\.0\.0\.1:\d+ \(1\.\ds\)")
        self.assertEqual(last, '{"slept_ms":1250}\n')

    def test_chunks(self):
        self.shown("chunks", 0, r"count: [234] chunks so far \(1\.\ds\)")

    def test_a_peer_that_does_not_answer(self):
        self.shown("list", 5, "waiting for the list of actions")

    def test_a_runtime_that_has_to_be_started(self):
        self.shown("runtime", 130, r"waiting for a Genkit runtime to dial ws://127\.0\.0\.1:(\d+): start it with GENKIT_ENV=dev "
                                   r"GENKIT_REFLECTION_V2_SERVER=ws://127\.0\.0\.1:\1 ")

    def test_a_job(self):
        self.shown("job", 5, r"waiting for the end of job a \(1\.\ds\)")

    def test_imports(self):
        self.assertIn("waiting for the lists of imports ...\r\x1b[K", self.seen["imports"].raw)

    def test_none(self):
        self.assertEqual((self.seen["script"].code, self.seen["script"].err), (0, b""))
        self.assertEqual((self.seen["quiet"].code, self.seen["quiet"].text), (0, '{"slept_ms":1250}\n'))


if __name__ == "__main__":
    unittest.main(verbosity=2)
