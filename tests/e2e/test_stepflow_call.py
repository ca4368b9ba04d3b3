"""`call`, `list` and `describe` as a workflow runtime: component servers of all generations, over HTTP and pipes, started or there
already; their blobs, their crashes, and that nobody is left.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import support
from stepflow_support import CALLS, SERVER, blob_id
from support import SLOW, alive, cli, wait_until

WORKER = (sys.executable, "-SE", os.path.join(support.HERE, "fake_stepflow_worker.py"))
HTTP, STDIO = "stepflow+http:", "stepflow+stdio:"


def worker(target, gen, *words):
    return WORKER + ("--gen", str(gen)) + (("--stdio",) if target == STDIO else ()) + words


def generations():
    """Each carrier with each generation that had it."""
    for gen in (1, 2, 3, 4):
        yield HTTP, gen
    for gen in (1, 2):
        yield STDIO, gen


def said(r, what):
    """The numbers behind a word that the worker wrote on its standard error."""
    return [int(n) for n in re.findall(r"\b%s (\d+)" % what, r.err.decode())]


class Case(unittest.TestCase):
    maxDiff = 4000

    def ok(self, r):
        self.assertEqual(r.code, 0, r)
        return json.loads(r.out)

    def failed(self, r, code, status):
        self.assertEqual((r.code, r.out), (code, b""), r)
        error = r.error()
        self.assertEqual(error["status"], status, r)
        return error["message"]

    def check_gone(self, r, what="pid"):
        pids = said(r, what)
        self.assertTrue(pids, r)
        for pid in pids:
            self.assertTrue(wait_until(lambda p=pid: not alive(p)), "process %d stays" % pid)


class Generations(Case):
    """One and the same call to each of them."""

    def each(self, *words, args=(), verb="call", **kw):
        for target, gen in generations():
            yield target, gen, cli(verb, target, *words, "--", *worker(target, gen, *args), timeout=30, **kw)

    def test_call(self):
        for _, _, r in self.each("/echo", '{"message":"\u20ac 12345678901234567890"}'):
            self.assertEqual(self.ok(r), {"echo": "\u20ac 12345678901234567890"})
            self.check_gone(r)

    def test_names(self):
        for name in ("echo", "/echo"):
            for _, _, r in self.each(name, '{"message":1}'):
                self.assertEqual(self.ok(r), {"echo": 1})

    def test_values(self):
        for _, _, r in self.each("mirror", "[null,true,1.50,12345678901234567890,\"\\u0000\"]"):
            self.assertEqual(self.ok(r), [None, True, 1.5, 12345678901234567890, "\0"])
        for _, _, r in self.each("mirror"):
            self.assertEqual(self.ok(r), None)

    def test_failures(self):
        for _, _, r in self.each("boom"):
            self.assertEqual(self.failed(r, 1, "UNKNOWN"), "Component execution failed: boom")
        for _, _, r in self.each("/nothing"):
            self.assertEqual(self.failed(r, 1, "NOT_FOUND"), "Component '/nothing' not found")

    def test_list_and_describe(self):
        for _, _, r in self.each(verb="list"):
            got = self.ok(r)
            self.assertEqual(got["/echo"]["description"], "The component echo")
            self.assertEqual(len(got), 11)
        for name in ("/echo", "echo"):
            for _, _, r in self.each(name, verb="describe"):
                got = self.ok(r)
                self.assertEqual((got["key"], got["name"], got["inputSchema"]["type"]), ("/echo", "echo", "object"))

    def test_strict_order(self):
        """One that serves nobody who has not introduced himself."""
        for _, _, r in self.each("mirror", "1", args=("--strict",)):
            self.assertEqual(self.ok(r), 1)

    def test_what_goes_along(self):
        trace = "0af7651916cd43dd8448eb211c80319c"
        for target, gen, r in self.each("observed", "--traceparent", "00-%s-b7ad6b7169203331-01" % trace, env={"EW_INHERITED": "yes"},
                                        args=("a b", "c")):
            got = self.ok(r)
            self.assertEqual((got["greetings"], got["args"], got["home"]), (1, ["a b", "c"], "yes"))
            self.assertEqual((got["params"]["attempt"], got["params"]["observability"]["trace_id"]), (1, trace))
            self.assertTrue(all(isinstance(got["params"][k], str) for k in ("step_id", "run_id", "flow_id")))
            if target == HTTP:
                self.assertRegex(got["blob_url"], r"\Ahttp://127\.0\.0\.1:\d+/[0-9a-f]{32}/api/v1/blobs\Z")
            else:
                self.assertIsNone(got["blob_url"])

    def test_blobs(self):
        value = {"b": [1.0, 2], "a": "\u20ac"}
        with tempfile.TemporaryDirectory() as folder:
            for n, store in enumerate(("memory", "sqlite:%s/blobs.db" % folder)):
                for _, _, r in self.each("store", json.dumps(value), "--blobs", store):
                    self.assertEqual(self.ok(r), {"blob_id": blob_id(value)})
                for _, _, r in self.each("load", '{"blob_id":"%s"}' % blob_id(value), "--blobs", store):
                    if n == 0:  # it went with the first process
                        self.assertIn("ot found" if b"blob API" in r.err else "Failed to get blob", self.failed(r, 1, "UNKNOWN"))
                    else:
                        self.assertEqual(self.ok(r), value)
            self.assertEqual(os.stat(folder + "/blobs.db").st_mode & 0o777, 0o600)

    def test_what_we_do_not_have(self):
        for target, gen in generations():
            if gen < 4:
                r = cli("call", target, "ask", '{"method":"runs/submit","params":{}}', "--", *worker(target, gen))
                self.assertIn("-32601", self.failed(r, 1, "UNKNOWN"))

    def test_streams_without_need(self):
        for gen in (1, 2, 3, 4):
            r = cli("call", HTTP, "mirror", "7", "--", *worker(HTTP, gen, "--always-stream"))
            self.assertEqual(self.ok(r), 7)

    def test_a_connection_for_each_answer(self):
        """One that closes after each: it is greeted over several connections, once."""
        for gen in (1, 3, 4):
            r = cli("call", HTTP, "mirror", "7", "--", *worker(HTTP, gen, "--closes", "--strict"))
            self.assertEqual(self.ok(r), 7)

    def test_stray_prints(self):
        r = cli("call", STDIO, "print", "--", *worker(STDIO, 2))
        self.assertEqual(self.ok(r), 1)
        self.assertIn(b"a stray print", r.err)


class Started(Case):
    """Programs that say where they listen, and those that do not."""

    def test_noise(self):
        r = cli("call", HTTP, "mirror", "1", "--", *worker(HTTP, 4, "--noise", "--announce-after", "0.5"))
        self.assertEqual(self.ok(r), 1)
        self.assertIn(b"starting", r.err)

    def test_other_spellings(self):
        for target in ("stepflow+http://127.0.0.1:0", "stepflow+http://localhost:0/"):
            self.assertEqual(self.ok(cli("call", target, "mirror", "1", "--", *worker(HTTP, 2))), 1)
        r = cli("call", "stepflow+http://127.0.0.1:0/api/jsonrpc/", "mirror", "1", "--", *worker(HTTP, 2, "--path", "/api/jsonrpc/"))
        self.assertEqual(self.ok(r), 1)

    def test_it_does_not_start(self):
        for target in (HTTP, STDIO):
            r = cli("call", target, "x", "--", "./no-such-program")
            self.assertIn("cannot start ./no-such-program", self.failed(r, 3, "UNAVAILABLE"))
            r = cli("call", target, "x", "--", *worker(target, 2, "--exit-with", "3"))
            self.assertIn("ended with code 3", self.failed(r, 3, "UNAVAILABLE"))
            self.assertIn(b"no licence", r.err)

    def test_it_says_nothing(self):
        r = cli("call", HTTP, "x", "--timeout", support.LONG_ENOUGH, "--", *worker(HTTP, 2, "--silent"))
        self.failed(r, 5, "DEADLINE_EXCEEDED")
        self.check_gone(r)

    def test_it_dies_in_mid_call(self):
        r = cli("call", HTTP, "die", "--", *worker(HTTP, 2))
        self.failed(r, 3, "UNAVAILABLE")
        self.check_gone(r)
        r = cli("call", STDIO, "die", "--", *worker(STDIO, 2))
        self.assertEqual(self.failed(r, 3, "UNAVAILABLE"), "%s ended with code 9 before the end of the call" % sys.executable)

    def test_it_answers_and_ends(self):
        for _ in range(5):
            for target in (HTTP, STDIO):
                self.assertEqual(self.ok(cli("call", target, "mirror", "1", "--", *worker(target, 2, "--exit-after", "1"))), 1)

    def test_nobody_is_left(self):
        for target in (HTTP, STDIO):
            r = cli("call", target, "mirror", "1", "--", *worker(target, 2, "--child", "--ignore-term"))
            self.ok(r)
            self.check_gone(r)
            self.check_gone(r, "child")

    def test_timeout(self):
        for target in (HTTP, STDIO):
            r = cli("call", target, "sleep", '{"ms":60000}', "--timeout", "1s", "--", *worker(target, 2))
            self.failed(r, 5, "DEADLINE_EXCEEDED")
            self.check_gone(r)


class Again(Case):
    """One client, many calls."""

    def session(self, target, *command):
        p = subprocess.Popen([CALLS, target, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def ask(*words):
            p.stdin.write(" ".join(words).encode() + b"\n")
            p.stdin.flush()
            return p.stdout.readline().decode().rstrip("\n")

        def end():
            p.stdin.close()
            code = p.wait(30 * SLOW)
            p.stdout.close()
            p.stderr.close()
            self.assertEqual(code, 0)
        self.addCleanup(lambda: p.poll() is None and p.kill())
        return ask, end

    def test_it_dies_and_comes_back(self):
        """With all that belongs to a start: it is greeted again."""
        for target, gen in generations():
            with self.subTest(target=target, gen=gen):
                ask, end = self.session(target, *worker(target, gen, "--strict"))
                pids = []
                for _ in range(3):
                    pids.append(int(ask("pid")))
                    self.assertEqual(int(ask("pid")), pids[-1])
                    self.assertEqual(json.loads(ask("observed"))["greetings"], 1)
                    self.assertTrue(ask("die").startswith("UNAVAILABLE: "))
                self.assertEqual(len(set(pids)), 3)
                last = int(ask("pid"))
                end()
                for pid in pids + [last]:
                    self.assertTrue(wait_until(lambda p=pid: not alive(p)))

    def test_one_that_never_comes_up(self):
        ask, end = self.session(HTTP, *worker(HTTP, 2, "--exit-with", "7"))
        for _ in range(3):
            self.assertIn("ended with code 7 before it said where it listens", ask("pid"))
        end()

    def test_ours(self):
        for target, words in ((HTTP, ("--port", "0")), (STDIO, ("--stdio",))):
            ask, end = self.session(target, SERVER, *words)
            for i in range(20):
                self.assertEqual(json.loads(ask("roundtrip", '{"data":%d}' % i)), {"blob_id": blob_id(i), "same": True})
            self.assertEqual(ask("boom"), "UNKNOWN: Component execution failed: boom: hi")
            end()


class There(Case):
    """Servers that nobody starts."""

    def test_dialled(self):
        p = subprocess.Popen(worker(HTTP, 4, "--path", "/a/b/"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.addCleanup(p.stdout.close)
        base = "stepflow+http://127.0.0.1:%d" % json.loads(p.stdout.readline())["port"]
        self.assertEqual(self.ok(cli("call", base + "/a/b/", "store", "1")), {"blob_id": blob_id(1)})
        r = cli("call", base + "/a/b", "store", "1")  # the path is taken as it stands
        self.assertEqual(r.code, 4, r)

    def test_nobody_there(self):
        r = cli("call", "stepflow+http://127.0.0.1:1", "x")
        self.assertIn("cannot connect to 127.0.0.1:1", self.failed(r, 3, "UNAVAILABLE"))

    def test_usage(self):
        program = worker(HTTP, 2)
        for words in ((HTTP, "x"), (STDIO, "x"), ("stepflow+http://127.0.0.1:0", "x"), ("stepflow+http://127.0.0.1:80", "x", "--", *program),
                      ("stepflow+http://10.0.0.1:0", "x", "--", *program), ("stepflow+stdio:x", "x", "--", *program),
                      ("stepflow+http:x", "x", "--", *program), (HTTP, "x", "--blobs", "redis:", "--", *program),
                      ("http://127.0.0.1:1", "x", "--blobs", "memory"), (HTTP, "x", "--stream", "--input-stream", "--", *program)):
            r = cli("call", *words)
            self.assertEqual((r.code, r.out), (2, b""), (words, r))
        r = cli("call", HTTP, "x", "--blobs", "sqlite:/nowhere/at/all.db", "--", *program)
        self.assertEqual((r.code, r.out), (1, b""), r)
        self.assertIn(b"/nowhere/at/all.db", r.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
