"""Shell completion: what `everywire __complete` offers, and that bash, zsh and fish really offer it.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

from support import BINARY, SLOW, Server, cli

server = None
FOLDER = os.path.dirname(BINARY)


def setUpModule():
    global server
    server = Server("--threads", "1").start()


def tearDownModule():
    server.__exit__(None, None, None)


def complete(*words, env=None):
    """(candidates with their descriptions, flags)"""
    r = cli("__complete", *words, env=env)
    assert (r.code, r.err) == (0, b""), r
    lines = r.out.decode().splitlines()
    assert lines and lines[-1].startswith(":"), r.out
    return dict(line.split("\t", 1) for line in lines[:-1]), lines[-1][1:].split()


class Protocol(unittest.TestCase):
    def offered(self, *words, **kw):
        return set(complete(*words, **kw)[0])

    def test_verbs(self):
        verbs = set(re.findall(r"(?m)^  ([a-z]+) +\S", cli("--help").out.decode().split("Options:")[0]))
        self.assertIn("call", verbs)
        self.assertEqual(self.offered(""), verbs)
        self.assertEqual(self.offered(), verbs)
        self.assertEqual(self.offered("de"), {"describe"})
        self.assertEqual(self.offered("help", "de"), {"describe"})
        self.assertEqual(self.offered("--"), {"--help", "--version"})
        self.assertEqual(self.offered("no-such-verb", ""), set())

    def test_every_verb_is_known(self):
        """A verb that is added without its table would offer nothing."""
        for verb in self.offered(""):
            if "VERB" in cli(verb, "--help").out.decode().splitlines()[0]:
                for inner in self.offered(verb, ""):
                    self.assertIn("--help", self.offered(verb, inner, "--"), (verb, inner))
            else:
                self.assertIn("--help", self.offered(verb, "--"), verb)

    def test_every_option_of_a_help_is_offered(self):
        for verb in (("serve",), ("call",), ("list",), ("describe",), ("check",), ("worker",), ("job", "enqueue"), ("dlq", "list")):
            text = cli(*verb, "--help").out.decode()
            options = set(re.findall(r"(?m)^  (?:-\w, |    )(--[a-z-]+)", text))
            self.assertTrue(options)
            self.assertEqual(options - self.offered(*verb, "--"), set(), verb)

    def test_options_have_descriptions(self):
        found, _ = complete("call", "--str")
        self.assertRegex(found["--stream"], "chunk")
        self.assertEqual(set(found), {"--stream"})

    def test_nouns(self):
        self.assertLessEqual({"enqueue", "show", "list", "wait", "cancel"}, self.offered("job", ""))
        self.assertEqual(self.offered("queue", "pa"), {"pause"})
        self.assertIn("--all", self.offered("dlq", "requeue", "--"))

    def test_values(self):
        self.assertEqual(self.offered("serve", "--log-level", ""), {"error", "warn", "info", "debug", "trace"})
        self.assertLessEqual({"any=", "http=", "rrq=", "unix:", "stdio"}, self.offered("serve", "--listen", ""))
        self.assertIn("nospace", complete("serve", "--listen", "ht")[1])
        self.assertEqual(self.offered("serve", "--listen=ht"), {"--listen=http="})
        self.assertLessEqual({"http://", "rrq://", "jsonrpc+unix:"}, self.offered("call", ""))
        self.assertIn("FAILED", self.offered("job", "list", "--status", "F"))
        self.assertEqual(self.offered("call", "--verbose="), {"--verbose=full"})
        self.assertIn("frame_bytes=", self.offered("serve", "--limit", "fr"))
        self.assertEqual(self.offered("completion", ""), {"bash", "zsh", "fish"})

    def test_files(self):
        for words in (("serve", "--config", ""), ("check", ""), ("call", "http://h:1", "greet", "@a"), ("serve", "--config=x"),
                      ("list", "jsonrpc+stdio:", "--", "")):
            self.assertIn("files", complete(*words)[1], words)
        self.assertNotIn("files", complete("call", "")[1])

    def test_actions_of_the_live_target(self):
        for target in (server.url, "jsonrpc://127.0.0.1:%d" % server.port, "rrq://127.0.0.1:%d" % server.port,
                       "stepflow+http://127.0.0.1:%d" % server.port):
            found, _ = complete("call", target, "")
            self.assertLessEqual({"greet", "echo", "sha256"}, {name.lstrip("/") for name in found}, target)
        self.assertEqual(complete("call", server.url, "gr")[0], {"greet": "Greets by name, in two chunks"})
        self.assertEqual(self.offered("describe", server.url, "/tool/"), {"/tool/sha256"})
        self.assertEqual(self.offered("call", "--stream", "--timeout", "2s", server.url, "gre"), {"greet"})

    def test_a_target_that_is_away_is_passed_over_in_silence(self):
        begin = time.monotonic()
        for target in ("http://127.0.0.1:1", "http://192.0.2.1:9", "jsonrpc+unix:/no/such", "nonsense", "reflection://127.0.0.1:0"):
            self.assertEqual(complete("call", target, "")[0], {}, target)
        self.assertLess(time.monotonic() - begin, 4 * SLOW)

    def test_nothing_is_started(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = os.path.join(folder, "started")
            for words in (("call", "jsonrpc+stdio:", "", "--", "touch", mark), ("call", "jsonrpc+stdio:", "g"), ("list", "rrq://127.0.0.1:0", "--", "touch", mark)):
                complete(*words)
            complete("job", "show", "", env={"EVERYWIRE_STORE": "sqlite:" + os.path.join(folder, "jobs.db")})
            self.assertEqual(os.listdir(folder), [])

    def test_jobs_and_queues(self):
        with tempfile.TemporaryDirectory() as folder:
            store = "sqlite:" + os.path.join(folder, "jobs.db")
            self.assertEqual(cli("job", "enqueue", "greet", "--job-id", "job-1", "--queue", "mail", "--store", store).code, 0)
            self.assertEqual(complete("job", "show", "", env={"EVERYWIRE_STORE": store})[0], {"job-1": "greet"})
            self.assertIn("mail", self.offered("queue", "pause", "--store", store, ""))
            self.assertEqual(self.offered("job", "show", "--store", store, "x"), set())

    def test_scripts(self):
        for shell in ("bash", "zsh", "fish"):
            r = cli("completion", shell)
            self.assertEqual((r.code, r.err), (0, b""))
            self.assertIn(b"__complete", r.out)
        self.assertEqual(cli("completion", "tcsh").code, 2)
        self.assertEqual(cli("completion").code, 2)


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, *command, env=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(PATH=FOLDER + ":" + os.environ["PATH"], TERM="dumb", COLUMNS="200", INPUTRC="/dev/null", **(env or {}))
            os.execvp(command[0], command)
        self.seen = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)  # the shell gets SIGHUP
        end = time.monotonic() + 3
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() >= end:
                os.kill(self.pid, 9)
            time.sleep(0.02)

    def type(self, text):
        self.seen = ""
        os.write(self.fd, text.encode())

    def expect(self, pattern, seconds=10.0):
        end = time.monotonic() + seconds * SLOW
        while not re.search(pattern, self.seen):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("%r did not come; there is %r" % (pattern, self.seen))
            self.seen += os.read(self.fd, 65536).decode("utf-8", "replace")
        return self.seen


class Shells(unittest.TestCase):
    """Real shells. One that is not installed is skipped aloud."""

    def need(self, shell):
        if not shutil.which(shell):
            print("SKIP: %s is not installed" % shell, flush=True)
            self.skipTest("%s is not installed" % shell)

    def words(self, t):
        """What holds in every shell that is typed to."""
        for typed, wanted in (("everywire descr\t", "everywire describe "), ("everywire call --timeo\t", "everywire call --timeout "),
                              ("everywire call http://127.0.0.1:%d gre\t" % server.port, "127.0.0.1:%d greet " % server.port),
                              ("everywire call jsonrpc+u\t", "everywire call jsonrpc\\\\?\\+unix:"),
                              ("everywire queue pau\t", "everywire queue pause ")):
            t.type(typed)
            t.expect(wanted if "\\" in wanted else re.escape(wanted))
            t.type("\x15")  # clears the line
            time.sleep(0.05)

    def test_bash(self):
        self.need("bash")
        with tempfile.TemporaryDirectory() as folder, Terminal("bash", "--norc", "--noprofile", "-i") as t:
            t.type("PS1='> '; bind 'set bell-style none'; cd %s; echo 1 >input.json; source <(everywire completion bash); echo REA''DY\n" % folder)
            t.expect("READY")
            self.words(t)
            t.type("everywire serve --config inp\t")
            t.expect("input.json")
            t.type("\x15everywire call http://h:1 greet @inp\t")
            t.expect("@input.json")
            t.type("\x15everywire call http://127.0.0.1:%d \t\t" % server.port)
            for name in ("count", "greet", "sha256"):
                t.expect(name)

    def test_bash_completion_finds_the_installed_file(self):
        """As it is installed, the script is loaded by its name when the first Tab comes."""
        loader = "/usr/share/bash-completion/bash_completion"
        if not os.path.exists(loader):
            print("SKIP: bash-completion is not installed", flush=True)
            self.skipTest("bash-completion is not installed")
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "bash-completion/completions"))
            with open(os.path.join(folder, "bash-completion/completions/everywire"), "wb") as f:
                f.write(cli("completion", "bash").out)
            with Terminal("bash", "--norc", "--noprofile", "-i", env={"XDG_DATA_DIRS": folder + ":/usr/share", "BASH_COMPLETION_USER_DIR": folder + "/bash-completion"}) as t:
                t.type("PS1='> '; bind 'set bell-style none'; source %s; echo REA''DY\n" % loader)
                t.expect("READY")
                self.words(t)

    def test_zsh(self):
        self.need("zsh")
        with tempfile.TemporaryDirectory() as folder, Terminal("zsh", "-f", "-i", env={"HOME": folder}) as t:
            t.type("PS1='> '; unsetopt zle_bracketed_paste beep; autoload -U compinit; compinit -u -D; source <(everywire completion zsh); bindkey -e; echo REA''DY\n")
            t.expect("READY")
            self.words(t)

    def test_zsh_finds_the_installed_file(self):
        self.need("zsh")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "_everywire"), "wb") as f:
                f.write(cli("completion", "zsh").out)
            with Terminal("zsh", "-f", "-i", env={"HOME": folder}) as t:
                t.type("PS1='> '; unsetopt beep; fpath=(%s $fpath); autoload -U compinit; compinit -u -D; bindkey -e; echo REA''DY\n" % folder)
                t.expect("READY")
                self.words(t)

    def test_fish(self):
        """Its own question for what it would offer; it reads the script as it would from its folder."""
        self.need("fish")
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "everywire.fish")
            with open(script, "wb") as f:
                f.write(cli("completion", "fish").out)
            with open(os.path.join(folder, "input.json"), "w") as f:
                f.write("1")

            def offers(line):
                r = subprocess.run(["fish", "--no-config", "-c", "source %s; complete -C '%s'" % (script, line)], cwd=folder, capture_output=True,
                                   timeout=20 * SLOW, env=dict(os.environ, HOME=folder, PATH=FOLDER + ":" + os.environ["PATH"]))
                self.assertEqual(r.returncode, 0, r)
                return r.stdout.decode()

            self.assertIn("describe\tshow one action of a peer\n", offers("everywire descr"))
            self.assertRegex(offers("everywire call --timeo"), r"(?m)^--timeout\tgive up")
            self.assertIn("greet\tGreets by name, in two chunks\n", offers("everywire call %s gre" % server.url))
            self.assertRegex(offers("everywire call http://h:1 greet @inp"), r"(?m)^@input\.json")
            self.assertIn("jsonrpc+unix:", offers("everywire call jsonrpc+u"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
