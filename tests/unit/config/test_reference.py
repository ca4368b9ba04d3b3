#!/usr/bin/env python3
"""docs/config.md is what `everywire check --reference` prints, and docs/everywire.yaml has no problem and names every key.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = os.environ.get("EVERYWIRE") or str(ROOT / "build" / "everywire")


def run(*words):
    return subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=60)


class Reference(unittest.TestCase):
    def test_page(self):
        done = run("check", "--reference")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, (ROOT / "docs" / "config.md").read_text(encoding="utf-8"),
                         "docs/config.md is old: everywire check --reference >docs/config.md")

    def test_example(self):
        with tempfile.TemporaryDirectory() as folder:  # a working copy may have been made for a group to write to
            path = pathlib.Path(folder) / "everywire.yaml"
            path.write_bytes((ROOT / "docs" / "everywire.yaml").read_bytes())
            path.chmod(0o644)
            done = run("check", str(path))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_example_names_all(self):
        text = (ROOT / "docs" / "everywire.yaml").read_text(encoding="utf-8")
        page = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
        sections = re.split(r"^## ", page, flags=re.M)
        for section in sections[2:]:
            if section.startswith("limits\n"):  # a few of them are enough
                continue
            for key in re.findall(r"^\| `(\w+)` \|", section, flags=re.M):
                self.assertTrue(re.search(r"(?m)(^|[ `{])%s:" % key, text), "%s of %s" % (key, section.split("\n")[0]))


if __name__ == "__main__":
    unittest.main()
