"""serve --sandbox: it serves, starts programs, keeps jobs and reloads as before; writing elsewhere and dangerous system
calls are denied, also to its child processes. What this kernel lacks is skipped aloud.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import errno
import json
import os
import platform
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

import support
from support import Server, cli, wait_until

LIBC = ctypes.CDLL(None, use_errno=True)
LANDLOCK = LIBC.syscall(444, None, ctypes.c_size_t(0), 1)  # the version; below 1: there is none
SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}.get(platform.machine())
TSAN = "thread" in os.environ.get("EW_SANITIZE", "")  # it has a thread of its own before main begins
WRITABLE = ("/tmp", "/var/tmp", "/dev/shm", os.environ.get("TMPDIR") or "/tmp")

# An exec action: tries what the sandbox should deny, and answers with what came of it.
PROBE = """
import ctypes, errno, json, sys
wanted = json.loads(sys.stdin.readline())
def attempt(path):
    try:
        with open(path, "w") as f:
            f.write("x")
        return "ok"
    except OSError as e:
        return errno.errorcode[e.errno]
libc = ctypes.CDLL(None, use_errno=True)
traced = libc.ptrace(0, 0, 0, 0)
print(json.dumps({"writes": [attempt(path) for path in wanted],
                  "ptrace": errno.errorcode.get(ctypes.get_errno(), "ok") if traced else "ok"}))
"""


def deny(number, error):
    """A function for a new process: this system call fails with that error, as on a kernel that lacks it."""
    rows = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))

    def install():
        if LIBC.prctl(38, 1, 0, 0, 0) or LIBC.prctl(22, 2, program, 0, 0):
            os._exit(99)
        assert code  # the kernel reads it: it must live until here
    return install


class Sandbox(unittest.TestCase):
    def setUp(self):
        self.inner = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.inner)
        # /tmp may be written in the sandbox: the build folder is outside of it.
        self.outer = tempfile.mkdtemp(dir=os.environ.get("EW_BUILD_DIR") or support.ROOT, prefix="sandbox-")
        self.addCleanup(shutil.rmtree, self.outer)
        self.path = os.path.join(self.inner, "everywire.yaml")
        self.env = {"HOME": self.inner, "XDG_STATE_HOME": os.path.join(self.inner, "state"),
                    # the leak check at the end of a process uses ptrace, which the sandbox denies
                    "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}

    def outside(self, name):
        return os.path.join(self.outer, name)

    def need_landlock(self):
        if LANDLOCK < 1 or os.path.realpath(self.outer).startswith(WRITABLE):
            print("SKIP: this kernel lacks Landlock, or the build folder is one for temporary files", flush=True)
            self.skipTest("no Landlock, or no folder outside")

    def write(self, text, path=None):
        with open((path or self.path) + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod((path or self.path) + ".new", 0o600)
        os.rename((path or self.path) + ".new", path or self.path)

    def probe(self, name="probe"):
        script = os.path.join(self.inner, "probe.py")
        self.write(PROBE, script)
        return "  /tool/%s: {exec: {argv: [%s, %s], output: json}}\n" % (name, sys.executable, script)

    def serve(self, *args, **kw):
        return Server(*args, demo=False, env=self.env, **kw)

    def attempt(self, server, *paths, name="probe"):
        r = server.call("/tool/" + name, json.dumps(paths).encode(), timeout=30 * support.SLOW)
        self.assertEqual(r.status, 200, r)
        return r.json()["result"]

    # ---- what is denied ----

    def test_child_processes(self):
        self.need_landlock()
        self.write("actions:\n" + self.probe() + "sandbox: auto\n")
        with self.serve("--config", self.path, "--sandbox-write", self.outside("allowed")) as server:
            got = self.attempt(server, self.outside("x"), os.path.join(self.inner, "x"), "/dev/null")
            self.assertEqual(got, {"writes": ["EACCES", "ok", "ok"], "ptrace": "EPERM"})
            self.assertIn("cannot allow writing to %s" % self.outside("allowed"), server.stderr())
        os.mkdir(self.outside("allowed"))
        self.write("actions:\n" + self.probe() + "sandbox: {mode: auto, write: [%s]}\n" % self.outside("allowed"))
        with self.serve("--config", self.path) as server:
            self.assertEqual(self.attempt(server, self.outside("x"), self.outside("allowed/x"))["writes"], ["EACCES", "ok"])

    def test_who_decides(self):
        """The command line, else the file, else the environment; without a word it is off."""
        for variable, file, words, used in ((None, "", [], False), ("auto", "", [], True), ("auto", "sandbox: off\n", [], False),
                                            ("auto", "sandbox: {write: /tmp}\n", [], True),
                                            ("off", "sandbox: auto\n", [], True),
                                            ("auto", "sandbox: auto\n", ["--sandbox", "off"], False)):
            self.write("threads: 1\n" + file)
            env = dict(self.env, **({"EVERYWIRE_SANDBOX": variable} if variable else {}))
            with Server("--config", self.path, *words, env=env) as server:
                with self.subTest(variable=variable, file=file, words=words):
                    self.assertEqual("system calls restricted" in server.stderr(), used, server.stderr())
        r = cli("serve", env={"EVERYWIRE_SANDBOX": "maybe"})
        self.assertEqual((r.code, r.out), (2, b""))
        self.assertIn(b"EVERYWIRE_SANDBOX maybe: expected off, auto or on", r.err)

    def test_every_thread(self):
        with Server("--sandbox", "auto", "--threads", "2", env=self.env) as server:
            self.assertEqual(server.call("/flow/greet", b'{"name":"Ada"}').status, 200)
            tasks = "/proc/%d/task" % server.pid
            for thread in os.listdir(tasks):
                try:
                    with open(os.path.join(tasks, thread, "status"), encoding="utf-8") as f:
                        status = f.read()
                except (FileNotFoundError, ProcessLookupError):
                    continue  # it has ended since
                self.assertRegex(status, r"NoNewPrivs:\s+1\n")
                self.assertRegex(status, r"Seccomp:\s+2\n")

    # ---- what goes on working ----

    def test_store_and_socket(self):
        """A store and a Unix socket outside of the usual folders; jobs are kept and run."""
        store, path = "sqlite:" + self.outside("deep/jobs.db"), self.outside("s")
        if len(path) > 100:
            path = os.path.join(self.inner, "s")  # too long for the address of a socket
        with Server("--sandbox", "auto", "--store", store, "--worker", env=self.env,
                    listen=("127.0.0.1:0", "jsonrpc=unix:" + path)) as server:
            r = server.post("/jobs/greet", b'{"name":"Ada"}')
            self.assertEqual(r.status, 202, r)
            where = "/jobs/" + r.json()["job_id"]
            self.assertTrue(wait_until(lambda: server.get(where).json()["status"] == "COMPLETED", 20), server.stderr())
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
        self.assertTrue(os.path.exists(self.outside("deep/jobs.db")))
        self.assertFalse(os.path.exists(path))

    def test_reload(self):
        self.write("actions:\n" + self.probe() + "sandbox: auto\n")
        with self.serve("--config", self.path) as server:
            self.write("actions:\n" + self.probe() + self.probe("later") + "sandbox: auto\n")
            server.signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: "/tool/later" in server.get("/api/actions").json(), 20), server.stderr())
            self.assertEqual(self.attempt(server, "/dev/null", name="later")["writes"], ["ok"])

    def test_reload_with_programs(self):
        """The first version of the file starts nothing: the sandbox denies programs, and so does the reload."""
        self.write("sandbox: auto\n")
        with self.serve("--config", self.path) as server:
            self.assertIn("child processes denied", server.stderr())
            self.write("actions:\n" + self.probe() + "sandbox: auto\n")
            server.signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: "need a restart: the sandbox" in server.stderr(), 20), server.stderr())
            self.assertNotIn("/tool/probe", server.get("/api/actions").json())

    def make_certificate(self, name):
        """Returns its path; the key is beside it."""
        path = self.outside(name + ".pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", self.outside("server.key"), "-out", path], stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=60, check=True)
        return path

    def test_certificates_and_tokens(self):
        """They are read from folders that may not be written, also when they are renewed."""
        first, tokens = self.make_certificate("server"), self.outside("tokens")
        token = cli("token", "new", "--tokens", tokens, "--name", "a").out.decode().split()[0]
        with Server("--sandbox", "auto", "--tokens", tokens, "--tls-cert", first, "--tls-key", self.outside("server.key"),
                    listen=("https=127.0.0.1:0",), env=self.env) as server:

            def call(with_token):
                return cli("call", "https://127.0.0.1:%d" % server.port, "greet", '{"name":"Ada"}', "--tls-ca", first,
                           "--token", with_token).code
            self.assertEqual(call(token), 0)
            later = cli("token", "new", "--tokens", tokens, "--name", "b").out.decode().split()[0]
            self.make_certificate("server")
            server.signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: call(later) == 0, 20), server.stderr())

    @unittest.skipUnless(os.environ.get("EW_PLUGIN"), "no plug-in")
    def test_plugin(self):
        plugin = os.environ["EW_PLUGIN"]
        if os.stat(plugin).st_mode & 0o022:
            self.skipTest("the plug-in is for a group to write to")
        self.write("plugins: [{path: %s, config: {a: 1}}]\nsandbox: auto\n" % plugin)
        with self.serve("--config", self.path) as server:
            self.assertEqual(server.call("/test/config", b"1").json(), {"result": {"a": 1}})

    # ---- kernels that lack something ----

    def test_on(self):
        if TSAN or LANDLOCK < 3:
            print("SKIP: Landlock is older than version 3, or a thread runs before main", flush=True)
            self.skipTest("not everything can be enforced")
        with Server("--sandbox", "on", env=self.env) as server:
            self.assertEqual(server.call("/flow/greet", b'{"name":"Ada"}').status, 200)

    def test_kernel_without_landlock(self):
        missing = deny(444, errno.EOPNOTSUPP)
        with Server("--sandbox", "auto", env=self.env, preexec=missing) as server:
            self.assertEqual(server.call("/flow/greet", b'{"name":"Ada"}').status, 200)
            self.assertIn("this kernel lacks Landlock", server.stderr())
        self.refused(missing, "this kernel lacks Landlock")

    @unittest.skipUnless(SECCOMP_CALL, "the number of seccomp is not known here")
    def test_kernel_without_seccomp(self):
        self.refused(deny(SECCOMP_CALL, errno.EINVAL), "the system call filter (seccomp) is not in force")

    def refused(self, preexec, why):
        server = Server("--sandbox", "on", env=self.env, preexec=preexec, ready=False, check_exit=False)
        with server:
            self.assertEqual(server.wait(), 1)
            self.assertIn(why, server.stderr())
            self.assertIn("--sandbox auto", server.stderr())

    def test_usage(self):
        for words in (["--sandbox", "maybe"], ["--sandbox"]):
            self.assertEqual(cli("serve", *words).code, 2)
        self.write("sandbox: maybe\n")
        self.assertIn(b"off, auto, on", cli("check", self.path).out)


if __name__ == "__main__":
    support.main()
