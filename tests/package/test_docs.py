#!/usr/bin/env python3
"""docs/api is what the headers say; every public function, every verb and the configuration file have a man page, and mandoc and man like them.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("EVERYWIRE") or str(ROOT / "build" / "everywire")


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, check=False)


def verbs_of(*words):
    """The verbs that a help names in its list."""
    text = run(BINARY, *words, "--help").stdout
    block = re.search(r"^Verbs:\n((?:  .*\n)+)", text, re.M)
    return re.findall(r"^  (\S+)", block.group(1), re.M) if block else []


class Api(unittest.TestCase):
    def test_pages_are_new(self):
        done = run(sys.executable, ROOT / "tools" / "make-docs", "api", "--check")
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_links(self):
        """Every link of the pages leads to a page and an anchor that are there."""
        pages = {file.name: file.read_text(encoding="utf-8") for file in (ROOT / "docs" / "api").glob("*.md")}
        for name, text in pages.items():
            for page, anchor in re.findall(r"\]\((\w+\.md)?(?:#(\w+))?\)", text):
                self.assertIn(page or name, pages)
                if anchor:
                    self.assertIn('<a id="%s"></a>' % anchor, pages[page or name], "%s: %s#%s" % (name, page, anchor))

    def test_old_pages_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            for part in ("include", "docs/api"):
                shutil.copytree(ROOT / part, tree / part)
            header = tree / "include" / "everywire" / "base.h"
            header.write_text(header.read_text(encoding="utf-8").replace("Any thread. */", "Any thread at all. */", 1), encoding="utf-8")
            done = run(sys.executable, ROOT / "tools" / "make-docs", "--root", tree, "api", "--check")
        self.assertEqual((done.returncode, "base.md" in done.stdout), (1, True), done.stdout + done.stderr)


class Man(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        done = run(sys.executable, ROOT / "tools" / "make-docs", "man", "--out", cls.folder.name, "--program", BINARY)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.pages = {file.name: file for file in pathlib.Path(cls.folder.name).glob("man*/*")}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_functions(self):
        names = run(sys.executable, ROOT / "tools" / "check-docs", "--list").stdout.split()
        self.assertGreater(len(names), 100)
        self.assertEqual([name for name in names if name + ".3" not in self.pages], [])

    def test_verbs(self):
        verbs = verbs_of()
        self.assertIn("serve", verbs)
        self.assertIn("enqueue", verbs_of("job"))
        for verb in verbs:
            self.assertIn("everywire-%s.1" % verb, self.pages)
            for sub in verbs_of(verb):
                self.assertIn("everywire-%s-%s.1" % (verb, sub), self.pages)

    def test_options_are_there(self):
        """Each option that a verb's help shows stands on its page."""
        for verb in verbs_of():
            text = self.pages["everywire-%s.1" % verb].read_text(encoding="utf-8").replace("\\-", "-")
            for option in re.findall(r"^ {2}(?:-\w, | {4})--([\w-]+)", run(BINARY, verb, "--help").stdout, re.M):
                self.assertIn("Fl -" + option, text, verb)

    def test_file(self):
        page = self.pages["everywire.yaml.5"].read_text(encoding="utf-8")
        for key in re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "config.md").read_text(encoding="utf-8"), re.M):
            self.assertIn('.It "%s"\n' % key, page)

    def test_links(self):
        for file in self.pages.values():
            text = file.read_text(encoding="utf-8")
            for target in re.findall(r"^\.so man\d/(\S+)$", text, re.M):
                self.assertIn(target, self.pages, file.name)
            for name, section in re.findall(r"^\.(?:It )?Xr (\S+) (\d)", text, re.M):
                self.assertIn("%s.%s" % (name, section), self.pages, file.name)

    def test_mandoc(self):
        whole = [file for file in self.pages.values() if not file.read_text(encoding="utf-8").startswith(".so ")]
        done = run("mandoc", "-Tlint", "-Wwarning", *whole)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_man(self):
        for name, words in [("ew_app_main.3", "SIGTERM"), ("everywire-serve.1", "--listen"), ("everywire.yaml.5", "allow_hosts")]:
            done = subprocess.run(["man", "--warnings", "-l", str(self.pages[name])], capture_output=True, text=True, timeout=60, check=False,
                                  env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"})
            self.assertEqual((done.returncode, words in done.stdout), (0, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
