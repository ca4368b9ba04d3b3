"""The runner of the guide must see what is wrong with a page: each page here has one fault, or none.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import io
import os
import tempfile
import unittest

import run
from page import BadPage, Page, pattern


def block(text, kind="console"):
    return "```%s\n%s\n```\n" % (kind, text)


def state_of(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0]
    except OSError:
        return None


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run.NETWORK = run.own_network()
        cls.usual, cls.installed = run.install, tempfile.TemporaryDirectory()
        run.install(cls.installed.name)
        run.install = lambda prefix: os.symlink(cls.installed.name, prefix)  # once for all pages

    @classmethod
    def tearDownClass(cls):
        run.install = cls.usual
        cls.installed.cleanup()

    def outcome(self, text):
        """What the runner says of a page; None: it is content."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.md")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    run.run_page(path)
            except (run.Failed, BadPage) as problem:
                return str(problem)
        return None

    def late(self, text, *words):
        """A page that is bad because something does not come in time."""
        usual, run.LIMIT = run.LIMIT, 1
        try:
            self.bad(text, *words)
        finally:
            run.LIMIT = usual

    def bad(self, text, *words):
        said = self.outcome(text)
        self.assertIsNotNone(said, text)
        for word in words:
            self.assertIn(word, said)

    def good(self, text):
        self.assertIsNone(self.outcome(text))

    def test_output(self):
        self.good(block("$ echo a; echo b >&2\na\nb\n$ true"))
        self.good(block("$ printf 'no newline'\nno newline"))
        self.bad(block("$ echo a\nb"), "says something else", "-b", "+a")
        self.bad(block("$ echo a"), "+a")  # what is not shown must not be there
        self.bad(block("$ true\na"), "-a")

    def test_wildcards(self):
        self.good(block('$ seq 9\n1\n...\n9\n$ echo {"a":17,"b":2}\n{...:17,...}'.replace("{", "").replace("}", "")))
        self.bad(block("$ seq 9\n1\n...\n8"), "+9")
        self.assertTrue(pattern(["a.c..."], False).match("a.cde\n"))
        self.assertIsNone(pattern(["a.c"], False).match("abc\n"))
        self.assertIsNone(pattern(["a...c"], False).match("a\nc\n"))

    def test_a_line_that_is_written_again(self):
        self.good(block("$ printf '50 %%\\r\\033[Kdone\\n'\ndone\n$ printf 'abc\\rx\\n'\nxbc"))

    def test_exit_codes(self):
        self.bad(block("$ false"), "exit code 1")
        self.good(block("$ sh -c 'exit 3'\n$ echo $?\n3"))

    def test_one_shell(self):
        self.good(block("$ mkdir d\n$ cd d\n$ v=1\n$ echo $v $(basename $PWD)\n1 d"))
        self.good(block("$ cat <<'X'\n> two\n> lines\n> X\ntwo\nlines"))

    def test_files(self):
        self.good(block("hello\n", "text file=d/a.txt") + block("$ cat d/a.txt\nhello\n"))

    def test_interrupt(self):
        self.good(block("$ sh -c 'echo begun; exec sleep 60'\nbegun\n^C\n$ echo $?\n130"))

    def test_servers(self):
        server = block("$ python3 -u -c 'import time; print(\"up\"); time.sleep(60)'\nup", "console server")
        self.good(server + block("$ true"))
        self.bad(block("$ echo up\nup", "console server") + block("$ sleep 0.5"), "it has ended while the page went on")
        self.late(block("$ sleep 60\nup", "console server"), "has not said this")

    def test_behind(self):
        self.good(block("$ (echo up; sleep 60) &\n...\nup\n$ kill %1"))
        self.late(block("$ (sleep 60) &\nup"), "has not said this")

    def test_no_end(self):
        self.late(block("$ sleep 60"), "no end within 1 s")

    def test_installed(self):
        self.good(block("$ everywire --version\neverywire ..."))

    def test_not_run(self):
        self.good(block("# not run by the tests: why\n$ false"))
        self.bad(block("echo a"), "begins with a command")
        self.bad(block("$ a", "sh"), "```console")
        self.bad("    $ everywire serve\n", "a command that no test runs")
        self.bad("```console\n$ true\n", "without an end")
        self.bad(block("$ true", "console sever"), "what is 'sever'")

    def test_nothing_is_left(self):
        with tempfile.NamedTemporaryFile("r") as pids:
            self.good(block("$ sh -c 'echo $$; exec sleep 60' >%s &\n$ until [ -s %s ]; do sleep 0.05; done" % (pids.name, pids.name)))
            pid = int(pids.read())
            self.assertIn(state_of(pid), (None, "Z"))

    def test_peers(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.md")
            with open(path, "w", encoding="utf-8") as f:
                f.write("<!-- peers: rrq go -->\n[a](b.md#c)\n")
            page = Page(path)
        self.assertEqual((page.peers, page.links), (["rrq", "go"], [(2, "b.md#c")]))


if __name__ == "__main__":
    unittest.main()
