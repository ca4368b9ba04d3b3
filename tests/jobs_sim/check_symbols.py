#!/usr/bin/env python3
"""The objects of src/jobs use nothing of the C library that tells the time, throws dice, waits or talks to anybody.

What is in the project is fine (ew_...).
Usage: check_symbols.py NM OBJECT...        SPDX-License-Identifier: Apache-2.0
"""
import re
import subprocess
import sys

ALLOWED = {"memchr", "memcmp", "memcpy", "memmove", "memset", "strcmp", "strlen", "snprintf"}
# What compilers add by themselves: checked versions of the above, the stack protector, sanitizers, coverage.
COMPILER = re.compile(
    r"__stack_chk_fail|__(a|ub|t|l)san_\w+|__sanitizer_\w+|__llvm_\w+|__gcov_\w+|__cyg_\w+|_GLOBAL_OFFSET_TABLE_|bcmp|"
    r"__asan\w*|__ubsan\w*|__msan\w*"
)
CHECKED = re.compile(r"^__(\w+)_chk$")


def used(nm, path):
    """The undefined symbols of an object, without versions."""
    lines = subprocess.run([nm, "-u", path], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.strip() and not line.endswith(":")}


def problems(nm, path):
    for name in sorted(used(nm, path)):
        checked = CHECKED.match(name)
        plain = checked.group(1) if checked else name
        if plain.startswith(("ew_", "ew__")) or plain in ALLOWED or COMPILER.fullmatch(name):
            continue
        yield f"{path}: uses {name}"


def main():
    nm, objects = sys.argv[1], sys.argv[2:]
    if not objects:
        print("no objects were given", file=sys.stderr)
        return 1
    found = [line for path in objects for line in problems(nm, path)]
    print("\n".join(found) if found else f"{len(objects)} objects use nothing that they should not")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
