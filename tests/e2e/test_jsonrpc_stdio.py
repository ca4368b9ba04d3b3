"""Programs that speak JSON-RPC on their standard input and output: as peers that `call`, `list` and `describe` start, and as what
`serve` is. Whatever they do, no process stays behind.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import support
from support import StdioServer, alive, cli, result, rpc, wait_until

SERVE = (support.BINARY, "serve", "--demo", "--listen", "jsonrpc=stdio")

# What a peer written in a few lines needs; its last result is its process id, so that a test can look for it.
PRELUDE = """
import json, os, signal, sys, time
def take():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)
def say(m, **members):
    sys.stdout.write(json.dumps(dict({"jsonrpc": "2.0", "id": m["id"]}, **members)) + "\\n")
    sys.stdout.flush()
"""


def program(code):
    return (sys.executable, "-SE", "-c", PRELUDE + code)


def call(*args, peer, **kw):
    return cli("call", "jsonrpc+stdio:", *args, "--", *peer, **kw)


class Case(unittest.TestCase):
    maxDiff = 4000

    def failed(self, r, code, status=None):
        self.assertEqual(r.code, code, r)
        self.assertEqual(r.out, b"", r)
        if status:
            self.assertEqual(r.error()["status"], status, r)

    def gone(self, pid):
        self.assertTrue(pid > 1 and wait_until(lambda: not alive(pid), 1), "process %d stays" % pid)


class Everywire(Case):
    """Both sides are ours."""

    def test_call(self):
        for args, stdin, out in ((("greet", '"Ada"'), b"", b'"Hello, Ada!"\n'), (("echo",), b"", b"null\n"),
                                 (("echo", "-"), b"[1,\n2]", b"[1,2]\n"),
                                 (("greet", '"A"', "--stream"), b"", b'{"chunk":"Hello,"}\n{"chunk":" A!"}\n{"result":"Hello, A!"}\n'),
                                 (("sum", "--input-stream"), b"1\n2\n", b"3\n"), (("sum", "--input-stream"), b"", b"0\n"),
                                 (("sum", "--input-stream", "-s"), b"4\n5", b'{"chunk":4}\n{"chunk":9}\n{"result":9}\n')):
            with self.subTest(args):
                r = call(*args, peer=SERVE, stdin=stdin)
                self.assertEqual((r.code, r.out), (0, out), r)
        r = cli("call", "jsonrpc+stdio:?framing=lsp", "echo", "7", "--", *SERVE)
        self.assertEqual((r.code, r.out), (0, b"7\n"), r)

    def test_large(self):
        text = b'"%s"' % (b"x" * 8000000)
        r = call("echo", "-", peer=SERVE, stdin=text, timeout=30)
        self.assertTrue(r.code == 0 and r.out == text + b"\n")
        r = call("sum", "--input-stream", peer=SERVE, stdin=b"".join(b"%d\n" % i for i in range(200000)), timeout=60)
        self.assertEqual((r.code, r.out), (0, b"19999900000\n"), r)

    def test_failures(self):
        self.failed(call("fail", '{"status":"ABORTED"}', peer=SERVE), 1, "ABORTED")
        self.failed(call("nothing", peer=SERVE), 1, "NOT_FOUND")
        self.failed(call("sleep", '{"ms":60000}', "--timeout", "200ms", peer=SERVE), 5, "DEADLINE_EXCEEDED")
        self.failed(call("sum", "--input-stream", peer=SERVE, stdin=b"1\nx\n"), 2)

    def test_list_and_describe(self):
        r = cli("list", "jsonrpc+stdio:", "--", *SERVE)
        self.assertEqual((r.code, len(json.loads(r.out))), (0, 10), r)
        r = cli("describe", "jsonrpc+stdio:", "count", "--", *SERVE)
        self.assertEqual((r.code, json.loads(r.out)["key"]), (0, "/flow/count"), r)

    def test_usage(self):
        for words in (("call", "jsonrpc+stdio:", "echo"), ("list", "jsonrpc+stdio:"), ("call", "jsonrpc+stdio:", "echo", "--"),
                      ("call", "jsonrpc+stdio:x", "echo", "--", "true")):
            with self.subTest(words):
                r = cli(*words)
                self.assertEqual((r.code, r.out), (2, b""), r)


class Children(Case):
    """Programs of other people."""

    def test_plain(self):
        r = call("x", peer=program("say(take(), result=os.getpid())\ntake()"))
        self.assertEqual(r.code, 0, r)
        self.gone(int(r.out))

    def test_arguments_are_passed_as_they_are(self):
        odd = ["a b", "", "$HOME", "--stream", "--", "'\"", "\u20ac"]
        r = cli("call", "jsonrpc+stdio:", "x", "--", *program("say(take(), result=sys.argv[1:])"), *odd)
        self.assertEqual((r.code, json.loads(r.out)), (0, odd), r)

    def test_it_is_found_in_the_path(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/my-peer", "w") as f:
                f.write('#!/bin/sh\nread line\nid=${line#*\\"id\\":}\necho "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":${id%%,*},\\"result\\":1}"\n')
            os.chmod(folder + "/my-peer", 0o755)
            r = call("x", peer=("my-peer",), env={"PATH": folder + ":" + os.environ["PATH"]})
            self.assertEqual((r.code, r.out), (0, b"1\n"), r)

    def test_a_banner(self):
        r = call("x", peer=program('print("Welcome to my server", flush=True)\nsay(take(), result=os.getpid())\ntake()'))
        self.assertEqual(r.code, 0, r)
        self.assertIn(b"Welcome to my server", r.err)
        self.gone(int(r.out))

    def test_nothing_but_banners(self):
        r = call("x", peer=program('m = take()\nwhile True:\n    print("hello", flush=True)'))
        self.failed(r, 4)

    def test_floods_of_stderr(self):
        """They do not stop it, hold nobody up, and do not bury us."""
        r = call("x", peer=program('for i in range(200000):\n    sys.stderr.write("noise %d\\n" % i)\nsys.stderr.flush()\n'
                                   "say(take(), result=os.getpid())\ntake()"), timeout=30)
        self.assertEqual(r.code, 0, r)
        self.assertIn(b"noise 0", r.err)
        self.assertIn(b"lines left out", r.err)
        self.assertLess(len(r.err), 1000000)
        self.gone(int(r.out))

    def test_one_endless_line_of_stderr(self):
        r = call("x", peer=program('sys.stderr.write("x" * 5000000)\nsys.stderr.flush()\nsay(take(), result=os.getpid())\ntake()'))
        self.assertEqual(r.code, 0, r)
        self.assertLess(len(r.err), 100000)
        self.gone(int(r.out))

    def test_its_errors_are_shown(self):
        r = call("x", peer=program('sys.stderr.write("no licence\\n")\nsys.exit(3)'))
        self.failed(r, 3, "UNAVAILABLE")
        self.assertIn(b"no licence", r.err)

    def test_ignores_eof_and_sigterm(self):
        begin = time.monotonic()
        r = call("x", peer=program("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsay(take(), result=os.getpid())\n"
                                   "while True:\n    time.sleep(1)"), timeout=20)
        self.assertEqual(r.code, 0, r)
        self.gone(int(r.out))
        self.assertLess(time.monotonic() - begin, 20 * support.SLOW)

    def test_processes_that_it_started(self):
        """They ignore everything too, and hold its pipes."""
        r = call("x", peer=program("signal.signal(signal.SIGTERM, signal.SIG_IGN)\npid = os.fork()\nif pid == 0:\n"
                                   "    while True:\n        time.sleep(1)\nsay(take(), result=pid)\ntake()"), timeout=20)
        self.assertEqual(r.code, 0, r)
        self.gone(int(r.out))

    def test_a_missing_program(self):
        with tempfile.TemporaryDirectory() as folder:
            plain = folder + "/plain"
            open(plain, "w").close()
            for peer in ("no-such-program-at-all", "/no/such/program", folder, plain):
                with self.subTest(peer):
                    self.failed(call("x", peer=(peer,)), 3, "UNAVAILABLE")
                    self.failed(cli("list", "jsonrpc+stdio:", "--", peer), 3, "UNAVAILABLE")

    def test_it_ends_before_the_answer(self):
        for code in ("sys.exit(3)", "take()\nsys.exit(3)", "take()\nsys.exit(0)", "take()\nos.kill(os.getpid(), signal.SIGKILL)",
                     'take()\nsys.stdout.write(\'{"jsonrpc":\')\nsys.stdout.flush()'):
            with self.subTest(code):
                self.failed(call("x", peer=program(code)), 3, "UNAVAILABLE")

    def test_it_closes_its_output_and_stays(self):
        with tempfile.NamedTemporaryFile() as f:
            r = call("x", peer=program('open(%r, "w").write(str(os.getpid()))\ntake()\nos.close(1)\nos.close(0)\ntime.sleep(60)' % f.name))
            self.failed(r, 3, "UNAVAILABLE")
            self.gone(int(f.read()))

    def test_it_never_answers(self):
        with tempfile.NamedTemporaryFile() as f:
            r = call("x", "--timeout", "500ms", peer=program('open(%r, "w").write(str(os.getpid()))\nwhile True:\n    take()' % f.name))
            self.failed(r, 5, "DEADLINE_EXCEEDED")
            pid = f.read()
            if pid:  # it may have been slower than that
                self.gone(int(pid))

    def signalled(self, number, code):
        """Signals a call once its peer has the request: (exit code, what the peer got after it, the peer's process)."""
        with tempfile.NamedTemporaryFile() as f:
            script = ('log = open(%r, "w")\nm = take()\nlog.write("%%d\\n" %% os.getpid())\nlog.flush()\n' % f.name) + code
            p = subprocess.Popen([support.BINARY, "call", "jsonrpc+stdio:", "x", "--", *program(script)], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

            def lines():
                with open(f.name) as log:
                    return log.read().splitlines()
            self.assertTrue(wait_until(lines, 10))
            p.send_signal(number)
            left = p.wait(15 * support.SLOW)
            self.gone(int(lines()[0]))
            return left, lines()[1:]

    def test_interrupt(self):
        code = "log.write(json.dumps([m['id'], take()]) + '\\n')\nlog.flush()\n"
        for number in (signal.SIGINT, signal.SIGTERM):
            for ending in ("say(m, error={'code': -32800, 'message': 'x'})\ntake()", "while True:\n    time.sleep(1)"):
                with self.subTest((number, ending)):
                    left, lines = self.signalled(number, code + ending)
                    self.assertEqual(left, 128 + number)
                    id, m = json.loads(lines[0])
                    self.assertEqual((m["method"], m["params"]), ("$/cancelRequest", {"id": id}))

    def test_our_own_are_closed(self):
        """What we open ourselves must not sit where standard input and output were."""
        for number in (0, 1, 2):
            with self.subTest(number):
                p = subprocess.run([support.BINARY, "call", "jsonrpc+stdio:", "x", "--", *program("say(take(), result=1)\ntake()")],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   preexec_fn=lambda: os.close(number), timeout=15 * support.SLOW)
                if number == 1:
                    self.assertIn(p.returncode, (0, 1), p)  # 1: the result could not be written
                else:
                    self.assertEqual((p.returncode, p.stdout), (0, b"1\n"), p)

    def test_we_are_killed(self):
        """Nobody can tell it, and still it does not stay."""
        self.assertEqual(self.signalled(signal.SIGKILL, "while True:\n    time.sleep(1)")[0], -signal.SIGKILL)


class Serve(Case):
    """`serve` on stdio alone."""

    def run_with(self, stdin, stdout=subprocess.PIPE, preexec=None, timeout=15):
        p = subprocess.Popen(SERVE, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, preexec_fn=preexec)
        try:
            out, err = p.communicate(timeout=timeout * support.SLOW)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            self.fail("it did not end: stdout %r, stderr %r" % (out, err))
        for mark in support.SANITIZER_MARKS:
            self.assertNotIn(mark.encode(), err)
        return p.returncode, out, err

    def file(self, text=b""):
        f = tempfile.TemporaryFile()
        self.addCleanup(f.close)
        f.write(text)
        f.seek(0)
        return f

    REQUESTS = rpc("echo", b"1", b"1") + rpc("sleep", b'{"ms":200}', b"2") + rpc("sum", b"{}", b"3", stream=1) + \
        b'{"jsonrpc":"2.0","id":3,"stream":2,"data":7}\n{"jsonrpc":"2.0","id":3,"stream":3}\n' + rpc("echo", b"4", b"4").strip()
    ANSWERS = result(b"1", b"1") + result(b"3", b"7") + result(b"4", b"4") + result(b"2", b'{"slept_ms":200}')

    def test_from_a_file(self):
        code, out, err = self.run_with(self.file(self.REQUESTS))
        self.assertEqual((code, out), (0, self.ANSWERS), err)

    def test_from_a_file_to_a_file(self):
        out = self.file()
        code, _, err = self.run_with(self.file(self.REQUESTS), out)
        out.seek(0)
        self.assertEqual((code, out.read()), (0, self.ANSWERS), err)

    def test_large_to_a_file(self):
        out = self.file()
        code, _, err = self.run_with(self.file(rpc("big", b'{"bytes":9000000}') * 4), out)
        out.seek(0)
        self.assertEqual((code, len(out.read())), (0, 4 * len(result(b"1", b'"%s"' % (b"x" * 9000000)))), err)

    def test_nothing(self):
        code, out, err = self.run_with(subprocess.DEVNULL)
        self.assertEqual((code, out), (0, b""), err)
        events = [json.loads(line) for line in err.splitlines()]
        self.assertEqual([e.get("event") for e in events][:2], ["listening", "ready"])
        self.assertEqual((events[0]["wire"], events[0]["address"]), ("jsonrpc", "stdio"))

    def test_closed(self):
        """Nothing to speak on: it leaves, with or without a word, but of its own will."""
        for number in (0, 1):
            with self.subTest(number):
                code, out, err = self.run_with(subprocess.DEVNULL, preexec=lambda: os.close(number))
                self.assertEqual(out, b"")
                self.assertIn(code, (0, 1), err)

    def test_nobody_reads(self):
        """The reader of our output has gone: the first answer ends it, without a signal and without noise."""
        r, w = os.pipe()
        os.close(r)
        try:
            p = subprocess.Popen(SERVE, stdin=subprocess.PIPE, stdout=w, stderr=subprocess.PIPE)
        finally:
            os.close(w)
        try:
            p.stdin.write(rpc("echo", b"1"))
            p.stdin.flush()
            self.assertEqual(p.wait(15 * support.SLOW), 0, "stdin is still open")
        finally:
            if p.poll() is None:
                p.kill()
            p.stdin.close()
            err = p.stderr.read()
            p.stderr.close()
            p.wait()
        self.assertNotIn(b"Sanitizer", err)

    def test_unreadable_lines(self):
        """Some are forgiven, a hundred are not."""
        code, out, err = self.run_with(self.file(b"nonsense\n" * 20 + rpc("echo", b"1")))
        self.assertEqual((code, len(out.splitlines())), (0, 21), err)
        self.assertTrue(out.endswith(result(b"1", b"1")))
        code, out, err = self.run_with(self.file(b"nonsense\n" * 1000 + rpc("echo", b"1")))
        self.assertEqual(len(out.splitlines()), 100)
        self.assertEqual(code, 0, err)

    def test_the_end_of_input_lets_calls_finish(self):
        with StdioServer(metrics=False) as s:
            c = s.peer()
            c.send(rpc("sleep", b'{"ms":300}') + rpc("stream?stream=true", b'{"n":1000}', b"2"))
            c.end_output()
            got = []
            while not got or got[-1]["id"] != 1:
                got.append(c.message())
            self.assertEqual(len(got), 1003)
            self.assertTrue(c.ended())
            self.assertEqual(s.wait(), 0)

    def test_the_parent_dies(self):
        """An idle server ends with its input; so does one whose call has no end in sight."""
        for text in (b"", rpc("sleep", b'{"ms":60000}')):
            with self.subTest(text), StdioServer("--drain", "1s", metrics=False, check_exit=False) as s:
                c = s.peer()
                c.send(text + rpc("echo", b"1", b"2"))
                c.message()
                c.close()
                self.assertIn(s.wait(), (0, 1))

    def test_one_at_a_time(self):
        r = cli("serve", "--demo", "--listen", "jsonrpc=stdio", "--listen", "jsonrpc=stdio")
        self.assertNotEqual(r.code, 0, r)
        self.assertIn(b"stdio", r.err)

    def test_wires_that_cannot(self):
        for wire in ("http=stdio", "rrq=stdio", "reflection=stdio"):
            with self.subTest(wire):
                r = cli("serve", "--demo", "--listen", wire)
                self.assertEqual((r.code, r.out), (2, b""), r)

    def test_beside_a_port(self):
        """The other listeners go on when the input has ended."""
        with StdioServer() as s:
            c = s.peer()
            self.assertEqual(c.call("echo", b"1")["result"], 1)
            c.end_output()
            self.assertTrue(c.ended())
            self.assertEqual(s.get("/healthz").status, 200)
            self.assertTrue(s.running())


if __name__ == "__main__":
    support.main()
