#!/usr/bin/env python3
"""docs/api is what the headers say; every public function, every verb and the configuration file have a man page, and mandoc and man like them.
The table of threats names code and tests that exist. tests/README.md has a row for each module. ARCHITECTURE.md and
docs/internals name files and functions that exist.

SPDX-License-Identifier: Apache-2.0
"""
import functools
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


class Threats(unittest.TestCase):
    """Each row of docs/internals/threats.md names code and tests that exist."""

    HEAD = ["#", "threat", "what the program does", "code", "test"]
    FORMS = {".c": r"void %s\(void \*\*", ".py": r"def %s\(self"}

    @classmethod
    def setUpClass(cls):
        text = (ROOT / "docs" / "internals" / "threats.md").read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if line.startswith("|")]
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        cls.rows = [row for row in cells if row != cls.HEAD and set("".join(row)) != {"-"}]

    @staticmethod
    def names(cell):
        """The names of a cell, in backticks and separated by commas. None if it is malformed."""
        if cell == "none":
            return []
        names = [re.fullmatch(r"`([^`]+)`", part) for part in cell.split(", ")]
        return [name.group(1) for name in names] if all(names) else None

    def is_test(self, name):
        """Whether FILE or FILE::FUNCTION exists; a C function must also be in a table of tests."""
        path, _, function = name.partition("::")
        file = ROOT / path if path.startswith("fuzz/") else ROOT / "tests" / path
        if not file.is_file() or not function:
            return file.is_file()
        text = file.read_text(encoding="utf-8")
        used = file.suffix == ".py" or self.is_used(file, function)
        form = self.FORMS.get(file.suffix)
        return bool(form and used and re.search(form % re.escape(function), text))

    @staticmethod
    @functools.lru_cache(maxsize=None)
    def texts(folder):
        return "".join(file.read_text(encoding="utf-8") for file in folder.glob("*.[ch]"))

    def is_used(self, file, function):
        """By its name, or by the end of it in a macro: T(end) for test_module__end."""
        texts = self.texts(file.parent)
        end = re.escape(function.rpartition("__")[2])
        by_name = re.findall(r"\b%s\b" % re.escape(function), texts)
        return len(by_name) > 1 or bool(re.search(r"\b[A-Z]+\(%s\)" % end, texts))

    def test_numbers(self):
        self.assertEqual([row[0] for row in self.rows], [str(i + 1) for i in range(len(self.rows))])
        self.assertGreater(len(self.rows), 50)
        self.assertEqual([row for row in self.rows if len(row) != len(self.HEAD)], [])

    def test_files(self):
        bad = [(row[0], row[3]) for row in self.rows if self.names(row[3]) is None or
               not all((ROOT / name).is_file() for name in self.names(row[3]))]
        self.assertEqual(bad, [])

    def test_tests(self):
        bad = [(row[0], name) for row in self.rows for name in self.names(row[4]) or [row[4]]
               if name != "none" and not self.is_test(name)]
        self.assertEqual(bad, [])

    def test_gaps_are_marked(self):
        marked = re.compile(r"\*\*Open\*\*|Not applicable")
        gaps = [row for row in self.rows if row[4] == "none"]
        self.assertEqual([row for row in gaps if not marked.search(row[2])], [])

    def test_what_is_missing_is_found(self):
        good = "e2e/test_ops.py::test_trickling_heads_are_cut"
        seeds = "unit/base/test_map.c::test_base_map__seeds_differ"
        there = (good, seeds, "bridge/more_many.c::stall_http", "fuzz/fuzz_ws.c")
        absent = (good + "_x", seeds + "_x", "unit/base/test_map.c::check", "fuzz/none.c")
        self.assertEqual([name for name in there + absent if self.is_test(name)], list(there))


class TestsPage(unittest.TestCase):
    """tests/README.md: a row for each module of src/modules.txt, and only tests that exist."""

    @classmethod
    def setUpClass(cls):
        text = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
        table = text.split("## Where each module is tested", 1)[1].split("\n## ", 1)[0]
        cls.rows = re.findall(r"^\| `(\S+)` \| `(\S+)` \| (.*) \|$", table, re.M)

    def test_modules(self):
        lines = (ROOT / "src" / "modules.txt").read_text(encoding="utf-8").splitlines()
        modules = [line.partition("|")[0].strip() for line in lines if line and not line.startswith("#")]
        self.assertEqual([row[0] for row in self.rows], modules)

    def test_places(self):
        for module, unit, others in self.rows:
            self.assertEqual(unit, "unit/" + module.replace("/", "_"))
            self.assertTrue(list((ROOT / "tests" / unit).glob("test_*")), unit)
            for name in re.findall(r"`([^`]+)`", others.replace("`EW_SHARED`", "")):
                place = "../fuzz/%s.c" % name if name.startswith("fuzz_") else name
                self.assertTrue(list((ROOT / "tests").glob(place)), name)


class Internals(unittest.TestCase):
    """ARCHITECTURE.md and docs/internals name files and functions that exist."""

    FILE = r"`((?:src|tests|include|tools)/[\w./-]+)`"

    @classmethod
    def setUpClass(cls):
        cls.walks = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
        pages = [ROOT / "ARCHITECTURE.md", ROOT / "tests" / "README.md", *(ROOT / "docs" / "internals").glob("*.md")]
        cls.pages = {page.name: page.read_text(encoding="utf-8") for page in pages}
        files = [file for folder in ("src", "include") for file in (ROOT / folder).rglob("*.[ch]")]
        cls.code = "".join(file.read_text(encoding="utf-8") for file in files)

    def test_files(self):
        for page, text in self.pages.items():
            for name in re.findall(self.FILE, text):
                self.assertTrue((ROOT / name).exists(), "%s: %s" % (page, name))

    def test_names(self):
        for page, text in self.pages.items() - {("README.md", self.pages["README.md"])}:
            for name in re.findall(r"`(?:struct )?((?:ew_|ew__|EW_|EW__)\w+\w)", text):
                self.assertTrue(re.search(r"\b%s\b" % name, self.code), "%s: %s" % (page, name))

    def test_size(self):
        self.assertLessEqual(len(self.walks.splitlines()), 250)

    def test_walks(self):
        """Each function that a step names is defined in a file that the step names."""
        steps = re.findall(r"^\d+\. (.*(?:\n   +.*)*)", self.walks, re.M)
        self.assertGreater(len(steps), 20)
        for step in steps:
            code = "".join((ROOT / name).read_text(encoding="utf-8") for name in re.findall(self.FILE, step))
            for name in re.findall(r"`(\w+)`", step):
                self.assertTrue(re.search(r"(?m)^\w[^\n;=]*\b%s\(" % name, code), "%s: %s" % (name, step))


if __name__ == "__main__":
    unittest.main()
