#!/usr/bin/env python3
"""tools/check-abi and tools/symbols find what they are there for: in a small tree with the shape of this one, with and without a release tag.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

CMAKE = """cmake_minimum_required(VERSION 3.22)
project(small C)
add_library(everywire SHARED lib.c)
target_include_directories(everywire PRIVATE include)
set_target_properties(everywire PROPERTIES SOVERSION %d LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
target_link_options(everywire PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/map)
"""
HEADER = """#define EW_VERSION_STRING "%s"
typedef struct ew_thing { int a; %s} ew_thing;
int ew_one(const ew_thing *thing);
"""
ONE = '#include "everywire/base.h"\nint ew_one(const ew_thing *thing) { return thing->a; }\n'
TWO = "int ew_two(void);\nint ew_two(void) { return 2; }\n"


@unittest.skipUnless(shutil.which("abidiff"), "no abidiff: ./dev install package")
class Abi(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.tree = pathlib.Path(self.folder.name) / "tree"
        for part in ("tools", "include/everywire", "packaging/debian"):
            (self.tree / part).mkdir(parents=True)
        for tool in ("check-abi", "symbols"):
            shutil.copy(ROOT / "tools" / tool, self.tree / "tools")
        self.write("map", "EVERYWIRE_0 { global: ew_*; local: *; };\n")
        self.put(version="1.0.0")
        self.git("init", "-q")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        (self.tree / path).write_text(text, encoding="utf-8")

    def put(self, version, member="", source=ONE, soname=0):
        self.write("CMakeLists.txt", CMAKE % soname)
        self.write("include/everywire/base.h", HEADER % (version, member))
        self.write("lib.c", source)

    def git(self, *words):
        subprocess.run(["git", "-C", self.tree, "-c", "user.name=t", "-c", "user.email=t@localhost", *words], check=True, capture_output=True)

    def release(self):
        library = self.tree / "build" / "abi" / "now" / "lib" / "libeverywire.so"
        self.check()
        subprocess.run([self.tree / "tools" / "symbols", "--update", library], check=True)
        self.git("add", "tools", "include", "packaging", "map", "CMakeLists.txt", "lib.c")
        self.git("commit", "-q", "-m", "release")
        self.git("tag", "v1.0.0")

    def check(self):
        done = subprocess.run([self.tree / "tools" / "check-abi"], capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr

    def update(self):
        subprocess.run([self.tree / "tools" / "symbols", "--update", self.tree / "build" / "abi" / "now" / "lib" / "libeverywire.so"], check=True)

    def test_before_the_first_release(self):
        status, said = self.check()
        self.assertEqual((status, "not in libeverywire0.symbols" in said), (1, True), said)
        self.update()
        status, said = self.check()
        self.assertEqual((status, "NO RELEASE TAG" in said), (0, True), said)

    def test_after_it(self):
        self.release()
        status, said = self.check()
        self.assertEqual((status, "as it was" in said), (0, True), said)

        self.put("1.1.0", source=ONE + TWO)  # a new function wants to be listed, with its version, and that is all
        status, said = self.check()
        self.assertEqual((status, "ew_two@EVERYWIRE_0" in said), (1, True), said)
        self.update()
        self.assertIn(" ew_two@EVERYWIRE_0 1.1.0\n", (self.tree / "packaging/debian/libeverywire0.symbols").read_text(encoding="utf-8"))
        self.assertEqual(self.check()[0], 0)

        self.put("1.1.0", member="int b; ", source=ONE + TWO)  # a struct that has grown
        status, said = self.check()
        self.assertEqual((status, "new soname" in said), (1, True), said)

        self.put("1.1.0", source=TWO)  # a function that has gone
        status, said = self.check()
        self.assertEqual((status, "no longer exported" in said), (1, True), said)

        self.put("2.0.0", member="int b; ", source=ONE, soname=1)
        self.assertIn("libeverywire1.symbols", self.check()[1])
        self.update()
        status, said = self.check()
        self.assertEqual((status, "soname is new" in said), (0, True), said)


if __name__ == "__main__":
    unittest.main()
