#!/usr/bin/env python3
"""The checks of tools/ on small trees: each finds what it is there for, and nothing in clean code.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


def check(tool, files, *options):
    """Runs a tool over a tree of {path: text}; returns its exit status and its output."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        done = subprocess.run([sys.executable, TOOLS / tool, *options, folder], capture_output=True, text=True, timeout=30)
        return done.returncode, done.stdout + done.stderr


class Layers(unittest.TestCase):
    def refused(self, path, line, why):
        status, output = check("check-layers", {path: line + "\n"})
        self.assertEqual((status, why in output), (1, True), output)

    def allowed(self, path, line):
        self.assertEqual(check("check-layers", {path: line + "\n"}), (0, ""))

    def test_modules(self):
        self.refused("src/base/a.c", '#include "json/json.h"', "base must not include json")
        self.refused("src/call/a.c", '#include "frame/http1.h"', "call must not include frame")
        self.refused("src/wire/http/a.c", '#include "io/tcp.h"', "wire must not include io")
        self.refused("src/cli/a.c", '#include "base/buf.h"', "public headers only")
        self.refused("src/attic/a.c", "", "belongs to no module")
        self.allowed("src/wire/http/a.c", '#include "call/call.h"')
        self.allowed("src/api/a.c", '#include "endpoint/listen.h"')
        self.allowed("src/store/a.c", '#include "call/blobs.h"')
        self.allowed("src/cli/a.c", '#include "base/sha256.h"')
        self.allowed("src/cli/a.c", '#include "config/reference.h"')
        self.refused("src/cli/a.c", '#include "config/config.h"', "public headers only")
        self.refused("src/config/a.c", '#include "json/json.h"', "config must not include json")
        self.allowed("src/cli/a.c", '#include "cli/verbs.h"\n#include <everywire/everywire.h>')

    def test_wires_are_strangers(self):
        self.refused("src/wire/http/a.c", '#include "wire/mem/mem.h"', "only wire/mem and wire/table.c may include wire/mem")
        self.refused("src/endpoint/a.c", '#include "wire/http/codec.h"', "only wire/http and wire/table.c")
        self.allowed("src/wire/http/a.c", '#include "wire/http/codec.h"\n#include "wire/wire.h"')

    def test_names_of_wires(self):
        tree = {"src/wire/rrq/wire.c": "", "src/wire/jsonrpc/wire.c": "", "src/wire/stepflow/wire.c": ""}
        for path, line in [
            ("src/client/a.c", 'static const char scheme[] = "rrq://";'), ("src/gateway/a.c", "x = &ew__wire_stepflow;"),
            ("src/io/a.c", "bool jsonrpc;"), ("src/wire/rrq/a.c", 'puts("stepflow");'), ("src/gateway/a.c", "ew__sf_sniff(b);"),
            ("src/cli/a.c", 'if (is("http", name)) x = EW_STR("http");'), ("src/wire/a.c", "unsigned jsonrpcs;"),
        ]:
            status, output = check("check-layers", {**tree, path: line + "\n"})
            self.assertEqual((status, f"{path}:1: names a particular wire" in output), (1, True), (path, line, output))
        for path, line in [
            ("src/wire/rrq/a.c", 'puts("rrq");'), ("src/wire/table.c", "&ew__wire_rrq,"), ("src/compat/rrq/a.c", "int rrq;"),
            ("src/wire/rrq/a.c", 'EW_STR("{\\"jsonrpc\\":\\"2.0\\"}");'), ("src/client/a.c", "/* rrq:// */"),
            ("src/store/redis/a.c", '"rrq:job:"'), ("src/jobs/a.c", 'EW_STR("rrq:queue:")'), ("src/io/a.c", "bool http;"),
        ]:
            self.assertEqual(check("check-layers", {**tree, path: line + "\n"}), (0, ""), (path, line))

    def test_calls_of_other_libraries(self):
        self.refused("src/gateway/a.c", "    uv_run(loop, UV_RUN_ONCE);", "gateway must not call uv_run")
        self.refused("src/endpoint/a.c", "    n = SSL_read(ssl, p, 1);", "endpoint must not call SSL_read")
        self.refused("src/jobs/a.c", "    sqlite3_step(s);", "jobs must not call sqlite3_step")
        self.allowed("src/io/a.c", "    uv_run(loop, UV_RUN_ONCE);")
        self.allowed("src/gateway/a.c", '    log("uv_run(loop)"); /* uv_run(loop) */')

    def test_spelling(self):
        self.refused("src/json/a.c", '#include "../base/buf.h"', "without '..'")
        self.refused("src/json/a.c", '#include "json.h"', "from the src root")
        self.refused("src/json/a.c", '#include "everywire/json.h"', "<everywire/...>")

    def test_foreign_libraries(self):
        self.refused("src/endpoint/a.c", "#include <uv.h>", "must not include <uv.h>")
        self.refused("src/wire/http/a.c", "#  include <llhttp.h>", "must not include <llhttp.h>")
        self.refused("src/frame/a.c", "#include <sys/socket.h>", "takes bytes")
        self.refused("include/everywire/a.h", "#include <uv.h>", "public header")
        self.allowed("src/io/a.c", "#include <uv.h>")
        self.allowed("src/frame/a.c", "#include <llhttp.h>\n#include <string.h>")
        self.refused("src/wire/http/a.c", "#include <wslay/wslay.h>", "must not include <wslay/wslay.h>")
        self.allowed("src/frame/a.c", "#include <wslay/wslay.h>")
        self.refused("src/api/a.c", "#include <sqlite3.h>", "must not include <sqlite3.h>")
        self.allowed("src/store/a.c", "#include <sqlite3.h>")
        self.refused("src/api/a.c", "#include <yaml.h>", "must not include <yaml.h>")
        self.allowed("src/config/a.c", "#include <yaml.h>")


class Size(unittest.TestCase):
    @staticmethod
    def function(lines, head="static int walk(int a) {"):
        return head + "\n" + "    a++;\n" * (lines - head.count("\n") - 2) + "}\n"

    def test_function_limits(self):
        self.assertEqual(check("check-size", {"src/base/a.c": self.function(60)}), (0, ""))
        self.assertEqual(check("check-size", {"src/base/a.c": self.function(61)})[0], 0)
        self.assertIn("walk has 61 lines", check("check-size", {"src/base/a.c": self.function(61)})[1])
        self.assertEqual(check("check-size", {"src/base/a.c": self.function(100)})[0], 0)
        status, output = check("check-size", {"src/base/a.c": "\n" + self.function(101)})
        self.assertEqual((status, "error: src/base/a.c:2: walk has 101 lines" in output), (1, True), output)

    def test_heads_of_several_lines(self):
        head = "ew_err ew_walk(int a,\n               int b) {"
        self.assertEqual(check("check-size", {"src/base/a.c": self.function(101, head)})[0], 1)
        self.assertEqual(check("check-size", {"src/base/a.c": "int f(int a,\n      int b);\n" + self.function(60)}), (0, ""))

    def test_tables_are_no_functions(self):
        table = "static const int table[] = {\n" + "    F(1),\n" * 200 + "};\n"
        record = "typedef struct big {\n" + "    int a; /* (x) */\n" * 200 + "} big;\n"
        self.assertEqual(check("check-size", {"src/base/a.c": table + record}), (0, ""))

    def test_file_limits(self):
        self.assertEqual(check("check-size", {"src/base/a.c": "\n" * 600}), (0, ""))
        self.assertIn("601 lines", check("check-size", {"src/base/a.c": "\n" * 601})[1])
        self.assertEqual(check("check-size", {"src/base/a.c": "\n" * 1000})[0], 0)
        self.assertEqual(check("check-size", {"src/base/a.c": "\n" * 1001})[0], 1)


class Banned(unittest.TestCase):
    def test_found(self):
        for path, line in [
            ("src/json/a.c", "sprintf(a, b);"), ("tests/unit/a.c", "strcpy (a, b);"), ("examples/a.c", "x = atoi(y);"),
            ("src/wire/http/a.c", "p = malloc(3);"), ("src/io/a.c", "free(p);"), ("src/io/a.c", "l = uv_default_loop();"),
            ("src/call/a.c", "printf(x);"), ("src/call/a.c", "fprintf(stderr, x);"), ("src/call/a.c", "t = time(NULL);"),
        ]:
            status, output = check("check-banned", {path: "\n" + line + "\n"})
            self.assertEqual((status, f"{path}:2: " in output), (1, True), (line, output))

    def test_passed(self):
        for path, line in [
            ("src/base/a.c", "p = malloc(3);"), ("src/cli/a.c", "free(p);"), ("tests/unit/a.c", "p = calloc(3, 3);"),
            ("src/json/a.c", "/* no sprintf(x) here */ x(\"strcpy(a)\"); // atoi(y)"), ("src/json/a.c", "/*\n atoi(x)\n*/"),
            ("src/io/a.c", "ops->free(p); ops.free(p); ew__free(p); my_sprintf(x);"),
            ("src/io/a.c", "strcpy(a, b); /* allow-banned: both sizes are known */"), ("src/cli/a.c", "printf(x);"),
        ]:
            self.assertEqual(check("check-banned", {path: line + "\n"}), (0, ""), line)


class Docs(unittest.TestCase):
    HEADER = "/* head */\n\n/* One. */\nEW_API int ew_one(int a,\n               int b);\nEW_API int ew_pair(void);\n"

    def test_documented(self):
        self.assertEqual(check("check-docs", {"include/everywire/a.h": self.HEADER}), (0, ""))

    def test_undocumented(self):
        for text in ["\nEW_API int ew_two(void);\n", "int x;\nEW_API int ew_two(void);\n",
                     "\nEW_API int ew_zero(void);\nEW_API int ew_two(void);\n"]:
            status, output = check("check-docs", {"include/everywire/a.h": self.HEADER + text})
            self.assertEqual((status, "ew_two has no comment" in output), (1, True), (text, output))

    def test_list(self):
        self.assertEqual(check("check-docs", {"include/everywire/a.h": self.HEADER}, "--list"), (0, "ew_one\new_pair\n"))


class Localhost(unittest.TestCase):
    """./dev test with stand-ins for everything that it runs."""

    FAKES = {"dpkg-query": "printf installed", "cmake": "true",
             "ctest": "echo '100% tests passed, 0 tests failed out of 3'"}

    def run_dev(self, answer):
        """The output of ./dev test when getent answers this."""
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            shutil.copy(TOOLS.parent / "dev", tree)
            (tree / "bin").mkdir()
            for name, text in {**self.FAKES, "getent": answer}.items():
                file = tree / "bin" / name
                file.write_text("#!/bin/sh\n%s\n" % text)
                file.chmod(0o755)
            env = {**os.environ, "PATH": "%s:%s" % (tree / "bin", os.environ["PATH"])}
            done = subprocess.run([tree / "dev", "test"], capture_output=True, text=True,
                                  timeout=60, env=env)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertIn("test: 3 passed, 0 failed\n", done.stdout)
        return done.stdout

    def test_silent(self):
        answer = r"printf '::1 STREAM\n127.0.0.1 STREAM localhost\n::1 RAW\n'"
        self.assertNotIn("localhost", self.run_dev(answer))

    def test_reported_once(self):
        for answer, found in (("exit 2", "no address"),
                              (r"printf '127.0.0.1 RAW\n192.0.2.1 RAW\n'", "127.0.0.1 192.0.2.1")):
            output = self.run_dev(answer)
            lines = [line for line in output.splitlines() if "localhost" in line]
            self.assertEqual(len(lines), 1, output)
            self.assertIn("does not resolve to loopback (found: %s)," % found, lines[0])


if __name__ == "__main__":
    unittest.main()
