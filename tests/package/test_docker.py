#!/usr/bin/env python3
"""The Dockerfile, without Docker: what it copies is there and reaches the builder, its packages are those of ./dev and cover what the program
needs, and its commands do here what they do there.

SPDX-License-Identifier: Apache-2.0
"""
import fnmatch
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EW_BUILD_DIR") or ROOT / "build" / "release")
BINARY = os.environ.get("EVERYWIRE") or str(BUILD / "everywire")


def read_stages(text):
    """Stages, each a list of (instruction, words as one string)."""
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    stages = []
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        if not line.strip():
            continue
        name, rest = line.split(None, 1)
        if name == "FROM":
            stages.append([])
        stages[-1].append((name, rest.strip()))
    return stages


def ignored(path, rules):
    """As Docker reads .dockerignore, for the few forms that ours has."""
    answer = False
    for rule in rules:
        keep = rule.startswith("!")
        pattern = rule.lstrip("!")
        parts = [str(p) for p in [pathlib.PurePath(path), *pathlib.PurePath(path).parents]]
        if any(fnmatch.fnmatch(part, pattern) for part in parts):
            answer = not keep
    return answer


class Dockerfile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stages = read_stages((ROOT / "Dockerfile").read_text(encoding="utf-8"))
        cls.rules = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]

    def all(self, stage, name):
        return [rest for kind, rest in self.stages[stage] if kind == name]

    def packages(self, stage):
        for line in self.all(stage, "RUN"):
            found = re.search(r"apt-get install -y --no-install-recommends ([^&]*)", line)
            if found:
                return set(found.group(1).split())
        self.fail("no packages")

    def test_instructions_are_known(self):
        known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
        self.assertEqual({name for stage in self.stages for name, _ in stage} - known, set())
        self.assertEqual(len(self.stages), 2)
        for stage in (0, 1):
            self.assertRegex(self.all(stage, "FROM")[0], r"^debian:\w+-slim")

    def test_what_is_copied_is_there(self):
        for stage in (0, 1):
            for line in self.all(stage, "COPY"):
                words = line.split()
                if words[0].startswith("--from="):
                    continue
                for source in words[:-1]:
                    self.assertTrue((ROOT / source).exists(), source)
                    self.assertFalse(ignored(source, self.rules), source + " is left out by .dockerignore")
        self.assertTrue(ignored("build", self.rules))
        self.assertTrue(ignored(".git", self.rules))

    def test_packages_are_those_of_dev(self):
        line = re.search(r"^    build\) echo (.*?) ;;", (ROOT / "dev").read_text(encoding="utf-8"), re.M).group(1)
        self.assertEqual(self.packages(0), {"node-llhttp" if name == "LLHTTP" else name for name in line.split()})

    @unittest.skipIf(os.environ.get("EW_SANITIZE") or not shutil.which("dpkg"), "sanitized, or not Debian")
    def test_the_program_finds_its_libraries(self):
        """What the program is linked with comes with a package that the image has."""
        base = {"libc6", "libgcc-s1"}
        for line in subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=True).stdout.splitlines():
            found = re.search(r"=> (/\S+)", line)
            if not found:
                continue
            path = os.path.realpath(found.group(1))
            names = [path] + ([path[4:]] if path.startswith("/usr/") else [])
            owner = next(o for o in (subprocess.run(["dpkg", "-S", n], capture_output=True, text=True, check=False).stdout for n in names) if o)
            self.assertIn(owner.split(":")[0], base | self.packages(1), path)

    def test_the_sources_are_enough(self):
        """What the image copies configures alone: nothing else of the repository is needed."""
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder) / "src"
            tree.mkdir()
            for line in self.all(0, "COPY"):
                words = line.split()
                for source in words[:-1]:
                    target = tree / (pathlib.Path(source).name if words[-1] == "./" else words[-1])
                    target.parent.mkdir(parents=True, exist_ok=True)
                    (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, target)
            command = next(c for c in self.all(0, "RUN") if "cmake --preset" in c).split("&&")[0]
            done = subprocess.run(shlex.split(command), cwd=tree, capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue((tree / "build" / "release" / "build.ninja").exists())

    def test_the_installation_has_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["cmake", "--install", str(BUILD), "--component", "program", "--prefix", folder], capture_output=True, text=True,
                                  timeout=120, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            copied = [line.split()[1] for line in self.all(1, "COPY") if line.startswith("--from=build")]
            for path in copied:
                self.assertTrue(os.path.exists(folder + path.removeprefix("/out/usr")), path)

    def test_it_runs_as_nobody_special(self):
        self.assertEqual(self.all(1, "USER"), ["everywire"])
        self.assertIn("useradd", " ".join(self.all(1, "RUN")))

    def test_the_sandbox_is_on(self):
        self.assertIn("EVERYWIRE_SANDBOX=auto", " ".join(self.all(1, "ENV")).split())

    def test_commands(self):
        """The words of ENTRYPOINT, CMD and HEALTHCHECK are verbs and options that there are."""
        self.assertEqual(json.loads(self.all(1, "ENTRYPOINT")[0]), ["everywire"])
        health = json.loads(re.search(r"CMD (\[.*\])", self.all(1, "HEALTHCHECK")[0]).group(1))
        for words in (json.loads(self.all(1, "CMD")[0]), health[1:]):
            text = subprocess.run([BINARY, words[0], "--help"], capture_output=True, text=True, check=True).stdout
            for word in words[1:]:
                if word.startswith("--"):
                    self.assertIn(word, text)
        done = subprocess.run([BINARY, "check", str(ROOT / "packaging" / "everywire.yaml")], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
