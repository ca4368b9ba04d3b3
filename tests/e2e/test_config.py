"""The configuration file: check, serve --config, and SIGHUP while it serves.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pty
import signal
import subprocess
import tempfile
import threading
import unittest

import support
from support import BINARY, Server, cli, wait_until

PLUGIN = os.environ.get("EW_PLUGIN")


class Folder(unittest.TestCase):
    """A test with a folder of its own, and a file in it."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "everywire.yaml")

    def write(self, text, mode=0o644, name="everywire.yaml"):
        path = os.path.join(self.folder.name, name)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path + ".new", mode)
        os.rename(path + ".new", path)
        return path


class Check(Folder):
    def test_fine(self):
        self.write("listen: 127.0.0.1:0\nthreads: 2\n")
        r = cli("check", self.path)
        self.assertEqual((r.code, r.out, r.err), (0, b"", b""))

    def test_problems(self):
        self.write("lisen: x\nthreads: 0\nlisten:\n  - nowhere\n")
        r = cli("check", self.path)
        self.assertEqual((r.code, r.err), (1, b""))
        self.assertEqual(r.out.decode().splitlines(), [
            self.path + ":1:1: unknown key lisen; did you mean listen?",
            self.path + ":2:10: threads is out of range: it wants a number from 1 to 1024",
            self.path + ":4:5: nowhere is no address: want HOST:PORT with a numeric host or localhost, unix:PATH, stdio or fd:N"])

    def test_json(self):
        self.write("a\"\\\xe4: x\nthreads: 0\n")
        r = cli("check", "--json", self.path)
        self.assertEqual((r.code, r.err), (1, b""))
        lines = [json.loads(line) for line in r.out.decode().splitlines()]
        self.assertEqual([(p["file"], p["line"], p["column"]) for p in lines], [(self.path, 1, 1), (self.path, 2, 10)])
        self.assertTrue(lines[0]["message"].startswith("unknown key a\"\\\xe4; known here: version, listen"), lines[0])
        self.write("threads: 1\n")
        r = cli("check", "--json", self.path)
        self.assertEqual((r.code, r.out), (0, b""))

    def test_unreadable(self):
        r = cli("check", "/nowhere/at/all")
        self.assertEqual((r.code, r.out), (1, b"/nowhere/at/all: cannot be read: No such file or directory\n"))
        r = cli("check", "/nowhere/at/all", "--json")
        self.assertEqual(json.loads(r.out), {"file": "/nowhere/at/all", "line": 0, "column": 0,
                                             "message": "cannot be read: No such file or directory"})

    def test_usage(self):
        for words in ([], ["a", "b"], ["--jsno", "a"], ["a", "--reference"], ["a", "--", "b"]):
            r = cli("check", *words)
            self.assertEqual((r.code, r.out), (2, b""), words)
            self.assertIn(b"Try: everywire check --help", r.err)
        self.assertIn(b"did you mean --json", cli("check", "--jsno", "a").err)
        r = cli("check", "--help")
        self.assertEqual((r.code, r.err), (0, b""))
        self.assertIn(b"--reference", r.out)
        self.assertIn(b"  check ", cli("--help").out)
        self.assertEqual(cli("help", "check").out, r.out)

    def test_terminal(self):
        """On a terminal silence would be odd."""
        self.write("threads: 1\n")
        ours, theirs = pty.openpty()
        try:
            done = subprocess.run([BINARY, "check", self.path], stdout=theirs, timeout=20 * support.SLOW)
            os.close(theirs)
            self.assertEqual((done.returncode, os.read(ours, 1000).decode().strip()), (0, self.path + ": fine"))
        finally:
            os.close(ours)

    def test_variables(self):
        self.write("threads: ${EW_T_N}\nlisten: 127.0.0.1:${EW_T_PORT:-0}\n")
        r = cli("check", self.path)
        self.assertEqual(r.out.decode(), self.path + ":1:10: the variable EW_T_N is not set\n")
        self.assertEqual(cli("check", self.path, env={"EW_T_N": "3"}).code, 0)
        self.assertIn(b":1:10: threads wants a number", cli("check", self.path, env={"EW_T_N": "x"}).out)

    def test_options_that_fail(self):
        self.write("token_file: no-such-file\n")
        r = cli("check", self.path)
        self.assertEqual((r.code, r.out.decode()), (1, self.path + ": the file with the token cannot be read\n"))

    def test_mode(self):
        self.write("actions: {/tool/a: {exec: [cat]}}\n", mode=0o664)
        r = cli("check", self.path)
        self.assertEqual(r.code, 1)
        self.assertIn(b"chmod go-w", r.out)
        self.write("threads: 1\n", mode=0o666)  # nothing in it that runs
        self.assertEqual(cli("check", self.path).code, 0)


class Serve(Folder):
    def serve(self, *args, **kw):
        return Server("--config", self.path, *args, demo=False, listen=(), **kw)

    def refused(self, *args):
        """Problems at the start: on standard error, code 2, nothing else."""
        r = cli("serve", *args)
        self.assertEqual((r.code, r.out), (2, b""), r)
        return r.err.decode()

    def test_refused(self):
        self.write("listen: 127.0.0.1:0\nthreads: x\nimports: [nowhere]\n")
        lines = self.refused("--config", self.path).splitlines()
        self.assertEqual(lines[0], self.path + ':2:10: threads wants a number from 1 to 1024, not "x"')
        self.assertTrue(lines[1].startswith(self.path + ":3:11: "), lines)
        self.assertIn("a target looks like ", lines[1])
        self.assertEqual(len(lines), 2)
        self.write("listen: 127.0.0.1:0\nimports: [nowhere]\n")
        self.assertIn(self.path + ":2:11: ", self.refused("--config", self.path))
        self.assertIn("cannot be read", self.refused("--config", "/nowhere"))
        self.assertIn("once only", self.refused("--config", self.path, "--config", self.path))
        self.assertIn("needs an argument", self.refused("--config"))
        self.write("listen: 0.0.0.0:0\n")
        self.assertIn("allow_remote", self.refused("--config", self.path))
        self.write("plugins: [x.so]\n")
        self.assertIn(":1:11: %s/x.so: there is no such file" % self.folder.name, self.refused("--config", self.path))

    def test_mode(self):
        self.write("listen: 127.0.0.1:0\nactions: {/tool/a: {exec: [cat]}}\n", mode=0o620)
        self.assertEqual(self.refused("--config", self.path),
                         self.path + ": it names programs or plug-ins, but others than its owner may write to it; "
                         "chmod go-w mends that\n")

    def test_help_needs_no_file(self):
        r = cli("serve", "--config", "/nowhere", "--help")
        self.assertEqual(r.code, 0)
        self.assertIn(b"--config FILE", r.out)
        r = cli("serve", "--config", "/nowhere", "--version")
        self.assertEqual((r.code, r.err), (0, b""))
        self.assertIn("unknown option --bad", self.refused("--config", "/nowhere", "--bad"))

    def test_settings(self):
        self.write("listen: [127.0.0.1:0, http=127.0.0.1:0]\nallow_hosts: [one.example]\n"
                   "limits: {frame_bytes: 1K}\nlog: error\ndrain: 1s\n")
        with self.serve("--allow-host", "two.example") as server:
            self.assertEqual([e["wire"] for e in server.listeners], ["any", "http"])
            self.assertEqual(server.call("/flow/x", b'"%s"' % (b"x" * 2000)).status, 413)
            for host, status in (("one.example", 404), ("two.example", 404), ("three.example", 403)):
                r = server.post("/flow/x", b'{"data":1}', host="%s:%d" % (host, server.port))
                self.assertEqual(r.status, status, host)

    def test_command_line_wins(self):
        self.write("listen: 127.0.0.1:0\nlimits: {frame_bytes: 1K, head_bytes: 2K}\nlog: error\n")
        with self.serve("--limit", "frame_bytes=1M", "--log-level", "info", "--listen", "http=127.0.0.1:0") as server:
            self.assertEqual([e["wire"] for e in server.listeners], ["http", "any"])
            self.assertEqual(server.call("/flow/x", b'"%s"' % (b"x" * 2000)).status, 404)
            self.assertEqual(server.get("/healthz", [("x-pad", "x" * 3000)]).status, 431)
            for n in (1, 2):  # the file's level does not count the second time either
                server.signal(signal.SIGHUP)
                self.assertTrue(wait_until(lambda: server.stderr().count("was read again") >= n))

    def test_default_listener(self):
        """The environment decides about a port that is said in the file."""
        self.write("listen: 127.0.0.1:${EW_T_PORT}\n")
        with self.serve(env={"EW_T_PORT": "0"}) as server:
            self.assertEqual(server.get("/healthz").status, 200)

    def test_gateway(self):
        """Programs, a peer, one action of it, all in one file."""
        with Server() as peer:
            self.write("listen: 127.0.0.1:0\n"
                       "imports:\n  - {target: %s, prefix: far, names: [echo, /flow/greet]}\n"
                       "actions:\n"
                       "  /tool/upper:\n    description: makes it large\n    metadata: {n: 12345678901234567890}\n"
                       "    exec: {argv: [./upper.sh, -x], environment: {EW_T: hi}, output: text}\n"
                       "  /flow/hello: {description: greets, remote: {target: %s, action: greet}}\n" % (peer.url, peer.url))
            self.write("#!/bin/sh\nread line; printf '%s %s %s' \"$line\" \"$1\" \"$EW_T\"\n", 0o755, "upper.sh")
            with self.serve() as server:
                self.assertTrue(wait_until(lambda: server.call("/flow/far/echo", b"1").status == 200))
                self.assertEqual(server.call("/flow/far/echo", b'{"a":1}').json(), {"result": {"a": 1}})
                self.assertEqual(server.call("/flow/hello", b'"Ada"').json(), {"result": "Hello, Ada!"})
                self.assertEqual(server.call("/tool/upper", b"[1]").json(), {"result": "[1] -x hi"})
                listed = server.get("/api/actions").json()
                self.assertEqual(set(listed), {"/flow/far/echo", "/flow/far/greet", "/tool/upper", "/flow/hello"})
                self.assertEqual(listed["/tool/upper"]["description"], "makes it large")
                self.assertEqual(listed["/flow/hello"]["description"], "greets")
                self.assertIn(b"12345678901234567890", server.get("/api/actions").body)

    def test_names_with_slashes(self):
        """An exact key comes first; otherwise one slash at the end of the path is ignored."""
        self.write("listen: 127.0.0.1:0\nactions:\n" + "".join(
            "  %s: {exec: {argv: [printf, '%s'], output: text}}\n" % (key, key)
            for key in ("/tool/a", "/tool/a/", "/tool/b/c", "/tool/d/")))
        with self.serve() as server:
            for path, key in (("/tool/a", "/tool/a"), ("/a", "/tool/a"), ("/tool/a/", "/tool/a/"), ("/a/", "/tool/a/"),
                              ("/tool/a//", "/tool/a/"), ("/b/c/", "/tool/b/c"), ("/tool/b/c/", "/tool/b/c"),
                              ("/tool/d/", "/tool/d/")):
                with self.subTest(path):
                    self.assertEqual(server.call(path, b"1").json(), {"result": key})
            self.assertEqual(server.call("/tool/d", b"1").status, 404)

    @unittest.skipUnless(PLUGIN, "no plug-in was built")
    def test_plugin(self):
        self.write("listen: 127.0.0.1:0\nplugins: [{path: %s, config: {a: [1, 'two']}}]\n" % PLUGIN)
        if os.stat(PLUGIN).st_mode & 0o022:
            self.skipTest("the plug-in is for a group to write to")
        with self.serve() as server:
            self.assertEqual(server.call("/test/config", b"1").json(), {"result": {"a": [1, "two"]}})


class Programs(Folder):
    """Peers that the gateway starts come back when they have ended."""

    def children(self, server):
        """Processes of the server's, by their own words about their parent."""
        pids = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid) as f:
                    parent = f.read().rpartition(")")[2].split()[1]
            except OSError:
                continue  # it has just ended
            if int(parent) == server.process.pid:
                pids.append(int(pid))
        return pids

    def come_back(self, target):
        self.write("listen: 127.0.0.1:0\nimports:\n"
                   "  - {target: %s, prefix: own, environment: ['*'], command: [%s, serve, --demo%s]}\n"
                   % (target, BINARY, ", --stdio" if target.endswith("stdio:\"") else ""))
        with Server("--config", self.path, demo=False, listen=()) as server:
            answers = lambda: server.call("/flow/own/echo", b"7").status == 200
            self.assertTrue(wait_until(answers, timeout=20), server.stderr())
            for _ in range(2):
                self.assertEqual(len(self.children(server)), 1)
                os.kill(self.children(server)[0], signal.SIGKILL)
                self.assertTrue(wait_until(answers, timeout=20), server.stderr())

    def test_reflection(self):
        self.come_back("\"reflection://127.0.0.1:0\"")

    def test_stdio(self):
        self.come_back("\"jsonrpc+stdio:\"")

    def test_rrq(self):
        self.write("listen: 127.0.0.1:0\nimports:\n"
                   "  - {target: rrq://127.0.0.1:0, prefix: own, environment: ['*'], processes: 2,\n"
                   "     command: [%s, serve, --demo]}\n" % BINARY)
        with Server("--config", self.path, demo=False, listen=()) as server:
            answers = lambda: server.call("/flow/own/echo", b'{"a":1}').status == 200
            self.assertTrue(wait_until(answers, timeout=20), server.stderr())
            self.assertTrue(wait_until(lambda: len(self.children(server)) == 2, timeout=20))
            for pid in self.children(server):
                os.kill(pid, signal.SIGKILL)
            self.assertTrue(wait_until(answers, timeout=20), server.stderr())


class Again(Folder):
    """SIGHUP."""
    BASE = "listen: 127.0.0.1:0\n"

    def serve(self, *args, **kw):
        return Server("--config", self.path, *args, demo=False, listen=(), **kw)

    def exec_action(self, name, text):
        return "  /tool/%s: {exec: {argv: [printf, '%s'], output: text}}\n" % (name, text)

    def hup(self, server):
        """Sends SIGHUP and waits until it has had its effect; the log since."""
        before = len(server.stderr())
        server.signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: any(mark in server.stderr()[before:] for mark in (
            "was read again", "stays as it is", "no configuration file")), timeout=10), server.stderr())
        return server.stderr()[before:]

    def result(self, server, action):
        r = server.call(action, b"1")
        return r.json()["result"] if r.status == 200 else r.status

    def becomes(self, server, action, value):
        self.assertTrue(wait_until(lambda: self.result(server, action) == value, timeout=10),
                        "%s is %s" % (action, self.result(server, action)))

    def test_without_file(self):
        with Server(check_exit=False) as server:  # then it is as for every program
            server.signal(signal.SIGHUP)
            self.assertEqual(server.process.wait(timeout=10), -signal.SIGHUP)

    def test_added_changed_removed(self):
        self.write(self.BASE + "actions:\n" + self.exec_action("a", "1") + self.exec_action("b", "1"))
        with self.serve() as server:
            self.becomes(server, "/tool/a", "1")
            self.becomes(server, "/tool/b", "1")
            self.assertEqual(self.result(server, "/tool/c"), 404)
            self.write("# new\n" + self.BASE + "actions:\n" + self.exec_action("b", "2") + self.exec_action("c", "1"))
            log = self.hup(server)
            self.assertIn("0 stay, 2 come, 2 go", log)
            self.becomes(server, "/tool/b", "2")
            self.becomes(server, "/tool/c", "1")
            self.becomes(server, "/tool/a", 404)
            self.assertEqual(set(server.get("/api/actions").json()), {"/tool/b", "/tool/c"})
            self.write(self.BASE)
            self.assertIn("0 stay, 0 come, 2 go", self.hup(server))
            self.becomes(server, "/tool/b", 404)
            self.assertNotIn("restart", server.stderr())

    def test_unchanged_stays(self):
        """A process that stays is not started anew for a change elsewhere."""
        self.write("#!/bin/sh\nwhile read line; do echo \"{\\\"result\\\":$$}\"; done\n", 0o755, "pid.sh")
        keep = "  /tool/pid: {exec: {argv: [./pid.sh], keep: true}}\n"
        self.write(self.BASE + "actions:\n" + keep)
        with self.serve() as server:
            pid = self.result(server, "/tool/pid")
            self.assertGreater(pid, 1)
            self.write(self.BASE + "actions:\n" + self.exec_action("a", "1") + "\n  # moved\n" + keep)
            self.assertIn("1 stay, 1 come, 0 go", self.hup(server))
            self.becomes(server, "/tool/a", "1")
            self.assertEqual(self.result(server, "/tool/pid"), pid)
            self.write(self.BASE + "actions:\n  /tool/pid: {exec: {argv: [./pid.sh, x], keep: true}}\n")
            self.assertIn("0 stay, 1 come, 2 go", self.hup(server))
            self.assertTrue(wait_until(lambda: self.result(server, "/tool/pid") not in (pid, 404)))

    def test_moved_folder(self):
        """The same words in another folder name another program."""
        for name in ("one", "two"):
            os.mkdir(os.path.join(self.folder.name, name))
            self.write("#!/bin/sh\nprintf %s\n" % name, 0o755, name + "/say.sh")
            self.write(self.BASE + "actions: {/tool/say: {exec: {argv: [./say.sh], output: text}}}\n",
                       name=name + "/everywire.yaml")
        now = os.path.join(self.folder.name, "now")
        os.symlink("one", now)
        self.path = os.path.join(now, "everywire.yaml")
        with self.serve() as server:
            self.becomes(server, "/tool/say", "one")
            os.unlink(now)
            os.symlink("two", now)
            self.assertIn("0 stay, 1 come, 1 go", self.hup(server))
            self.becomes(server, "/tool/say", "two")

    def test_running_call_ends(self):
        """What runs when its action goes is not cut off."""
        gate = os.path.join(self.folder.name, "gate")
        os.mkfifo(gate)
        self.write(self.BASE + "actions:\n  /tool/slow: {exec: {argv: [cat, %s], output: text}}\n" % gate)
        with self.serve() as server:
            answers = []
            caller = threading.Thread(target=lambda: answers.append(server.call("/tool/slow", b"1", timeout=30)))
            caller.start()
            with open(gate, "w") as f:  # opens when the program reads
                self.write(self.BASE)
                self.hup(server)
                self.becomes(server, "/tool/slow", 404)
                f.write("done")
            caller.join(30 * support.SLOW)
            self.assertEqual(answers[0].json(), {"result": "done"})

    def test_imports(self):
        with Server() as one, Server() as two:
            self.write(self.BASE + "imports: [{target: %s, prefix: one}]\n" % one.url)
            with self.serve("--import", two.url) as server:
                self.becomes(server, "/flow/one/echo", 1)
                self.becomes(server, "/flow/echo", 1)
                self.write(self.BASE + "imports: [{target: %s, prefix: two}]\n" % two.url)
                self.assertIn("0 stay, 1 come, 1 go", self.hup(server))
                self.becomes(server, "/flow/two/echo", 1)
                self.becomes(server, "/flow/one/echo", 404)
                self.write(self.BASE)
                self.hup(server)
                self.becomes(server, "/flow/two/echo", 404)
                self.assertEqual(self.result(server, "/flow/echo"), 1)  # the command line's stays

    def test_changed_import_is_always_there(self):
        """One version goes when the next one knows its peer's actions."""
        with Server() as one, Server() as two:
            texts = [self.BASE + "imports: [{target: %s, prefix: p}]\n" % peer.url for peer in (one, two)]
            self.write(texts[0])
            with self.serve() as server:
                self.becomes(server, "/flow/p/echo", 1)
                for i in range(1, 9):
                    self.write(texts[i % 2])
                    server.signal(signal.SIGHUP)
                    for _ in range(5):
                        self.assertEqual(self.result(server, "/flow/p/echo"), 1)
                self.assertTrue(wait_until(lambda: server.stderr().count("was read again") > 0))

    def test_listener_for_runtimes(self):
        """An import that is a listener needs a restart to go, and is still there when the file has it again."""
        with_it = self.BASE + "imports: ['reflection://127.0.0.1:0']\n"
        self.write(with_it)
        with self.serve() as server:
            self.assertEqual(sorted(e["wire"] for e in server.listeners), ["any", "reflection"])
            self.write(self.BASE)
            log = self.hup(server)
            self.assertIn("1 stay, 0 come, 0 go", log)
            self.assertIn("listens for runtimes is gone, which needs a restart", log)
            self.write(with_it + "actions:\n" + self.exec_action("a", "1"))
            log = self.hup(server)
            self.assertIn("1 stay, 1 come, 0 go", log)
            self.becomes(server, "/tool/a", "1")
            self.assertEqual(server.stderr().count("which needs a restart"), 1)

    def test_bad_file_keeps_the_old(self):
        self.write(self.BASE + "actions:\n" + self.exec_action("a", "1"))
        with self.serve() as server:
            self.becomes(server, "/tool/a", "1")
            for text, mode, why in (
                    (self.BASE + "actions:\n" + self.exec_action("b", "1") + "threads: x\n", 0o644, ":4:10: threads wants"),
                    (self.BASE + "actions:\n" + self.exec_action("b", "1") + "imports: [nowhere]\n", 0o644, ":4:11: "),
                    (self.BASE + "actions:\n" + self.exec_action("b", "1"), 0o666, "chmod go-w"),
                    ("listen: [\n", 0o644, ":2:1: "),
                    ("actions: {/a: {exec: [x]}}\n", 0o644, "no key of an action")):
                self.write(text, mode)
                log = self.hup(server)
                self.assertIn(why, log)
                self.assertIn("everything stays as it is", log)
                self.assertEqual(self.result(server, "/tool/a"), "1")
                self.assertEqual(self.result(server, "/tool/b"), 404)
            os.unlink(self.path)
            self.assertIn("No such file", self.hup(server))
            self.write(self.BASE + "actions:\n" + self.exec_action("b", "1"))
            self.hup(server)
            self.becomes(server, "/tool/b", "1")

    def test_needs_restart(self):
        self.write(self.BASE + "threads: 2\n")
        with self.serve() as server:
            self.write("listen: 127.0.0.1:1\nlimits: {calls: 5}\n" + "actions:\n" + self.exec_action("a", "1"))
            log = self.hup(server)
            self.assertIn(self.path + ":1:1: listen has changed, which needs a restart", log)
            self.assertIn(self.path + ":2:1: limits has changed, which needs a restart", log)
            self.assertIn(self.path + ": threads is gone, which needs a restart", log)
            self.assertEqual(log.count("needs a restart"), 3)
            self.becomes(server, "/tool/a", "1")
            self.assertEqual(log.count("needs a restart"), self.hup(server).count("needs a restart"))

    def test_log_level(self):
        self.write(self.BASE + "log: error\n")
        with self.serve() as server:
            self.write(self.BASE + "log: info\n")
            server.signal(signal.SIGHUP)  # still silent
            self.assertTrue(wait_until(lambda: self.later(server)))
            self.write(self.BASE + "log: error\nactions:\n" + self.exec_action("a", "1"))
            server.signal(signal.SIGHUP)
            self.becomes(server, "/tool/a", "1")
            before = len(server.stderr())
            self.write(self.BASE + "log: error\n")
            server.signal(signal.SIGHUP)
            self.becomes(server, "/tool/a", 404)
            self.assertEqual(server.stderr()[before:], "")

    def later(self, server):
        server.signal(signal.SIGHUP)
        return "was read again" in server.stderr()

    def test_many_times(self):
        """Signals in a row, calls meanwhile: each call is answered by one of the versions."""
        texts = [self.BASE + "actions:\n" + self.exec_action("a", str(i)) for i in range(2)]
        self.write(texts[0])
        with self.serve() as server:
            self.becomes(server, "/tool/a", "0")
            for i in range(1, 31):
                self.write(texts[i % 2])
                server.signal(signal.SIGHUP)
                for _ in range(3):
                    self.assertIn(self.result(server, "/tool/a"), ("0", "1"))
            self.becomes(server, "/tool/a", "0")

    def test_while_draining(self):
        """The end is not disturbed, and a SIGHUP is no second signal."""
        gate = os.path.join(self.folder.name, "gate")
        os.mkfifo(gate)
        self.write(self.BASE + "actions:\n  /tool/slow: {exec: {argv: [cat, %s], output: text}}\n" % gate)
        with self.serve() as server:
            answers = []
            caller = threading.Thread(target=lambda: answers.append(server.call("/tool/slow", b"1", timeout=30)))
            caller.start()
            with open(gate, "w") as f:
                server.signal(signal.SIGTERM)
                self.assertTrue(wait_until(lambda: "draining" in server.stderr()))
                server.signal(signal.SIGHUP)
                f.write("done")
            caller.join(30 * support.SLOW)
            self.assertEqual(answers[0].json(), {"result": "done"})
            self.assertEqual(server.wait(), 0)


if __name__ == "__main__":
    unittest.main()
