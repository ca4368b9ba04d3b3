#!/usr/bin/env python3
"""Reads the built program and library with readelf: position independent, relocations read-only after
the start, no writable and executable memory, stack protector, fortified calls, the mark of CET.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

PROGRAM = pathlib.Path(os.environ["EVERYWIRE"])
LIBRARY = pathlib.Path(os.environ["EW_LIBRARY"])
ENDBR64 = b"\xf3\x0f\x1e\xfa"  # where an indirect branch may land
READELF = os.environ.get("EW_READELF") or "readelf"


def readelf(option, path):
    done = subprocess.run([READELF, "-W", option, str(path)], capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"})
    return done.stdout


class Hardening(unittest.TestCase):
    def each(self, option):
        for path in (PROGRAM, LIBRARY):
            with self.subTest(file=path.name):
                yield readelf(option, path)

    def test_the_program_is_position_independent(self):
        self.assertRegex(readelf("-h", PROGRAM), r"Type:\s+DYN")
        self.assertRegex(readelf("-d", PROGRAM), r"\(FLAGS_1\).*\bPIE\b")

    def test_relocations_are_read_only_after_the_start(self):
        for text in self.each("-l"):
            self.assertIn("GNU_RELRO", text)
        for text in self.each("-d"):
            self.assertRegex(text, r"BIND_NOW|\(FLAGS_1\).*\bNOW\b")
            self.assertNotIn("TEXTREL", text)

    def test_no_memory_is_writable_and_executable(self):
        for text in self.each("-l"):
            segments = re.findall(r"^\s+(LOAD|GNU_STACK)\s+(?:0x\w+\s+){5}([RWE ]{3})\s", text, re.M)
            self.assertIn("GNU_STACK", [name for name, _ in segments])
            for name, flags in segments:
                self.assertFalse("W" in flags and "E" in flags, (name, flags))

    def test_stack_protector_and_fortified_calls(self):
        for text in self.each("--dyn-syms"):
            wanted = set(re.findall(r"\bUND (\w+)", text))
            self.assertIn("__stack_chk_fail", wanted)
            self.assertTrue([name for name in wanted if name.endswith("_chk")])

    def test_cet(self):
        """Our own code has the mark. The program has it where the start files of the C library do."""
        if os.environ.get("EW_PROCESSOR") not in ("x86_64", "AMD64"):
            print("SKIP: CET is a feature of x86-64", flush=True)
            return
        self.assertIn(ENDBR64, PROGRAM.read_bytes())
        if os.environ.get("EW_CET") != "ON":
            print("SKIP: the start files of this C library lack the mark of CET", flush=True)
            return
        self.assertRegex(readelf("-n", PROGRAM), r"x86 feature: .*IBT.*SHSTK")


if __name__ == "__main__":
    if os.environ.get("EW_HARDENED") != "ON":
        print("SKIP: this build is not hardened (sanitizers, or not a release)", flush=True)
        sys.exit(0)
    unittest.main()
