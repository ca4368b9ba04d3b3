"""Unix sockets: the file that stands for them, who may use it, what is in the way, what is left behind.

SPDX-License-Identifier: Apache-2.0
"""
import os
import signal
import socket
import stat
import tempfile
import unittest

import support
from support import Rpc, Server, cli, rpc, wait_until


class Unix(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ew")
        self.addCleanup(folder.cleanup)
        self.path = folder.name + "/s"

    def serve(self, *args, listen=None, **kw):
        return Server(*args, listen=listen or ("jsonrpc=unix:" + self.path,), **kw)

    def connect(self, path=None):
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(path or self.path)
        except OSError:
            s.close()
            raise
        return Rpc.over(s)

    def refused(self, *words, listen=None):
        """It does not start, says why, and touches nothing."""
        r = cli("serve", "--demo", "--listen", listen or "jsonrpc=unix:" + self.path)
        self.assertEqual((r.code, r.out), (1, b""), r)
        for word in words:
            self.assertIn(word.encode(), r.err, r)

    def test_the_file(self):
        old = os.umask(0)
        try:
            with self.serve() as s:
                event = s.listeners[0]
                self.assertEqual((event["wire"], event["address"], event["port"]), ("jsonrpc", "unix:" + self.path, 0))
                file = os.lstat(self.path)
                self.assertTrue(stat.S_ISSOCK(file.st_mode))
                self.assertEqual(stat.S_IMODE(file.st_mode), 0o600)
                with self.connect() as c:
                    self.assertEqual(c.call("echo", b"1")["result"], 1)
        finally:
            os.umask(old)
        self.assertFalse(os.path.lexists(self.path))

    def test_removed_after_each_end(self):
        for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 0)):
            with self.serve() as s:
                s.signal(number)
                self.assertEqual(s.wait(), code)
            self.assertFalse(os.path.lexists(self.path))

    def test_removed_before_the_second_signal(self):
        with self.serve(check_exit=False) as s, self.connect() as c:
            c.send(rpc("sleep", b'{"ms":60000}'))
            self.assertEqual(c.call("echo", b"1", b"2")["result"], 1)  # it runs
            s.signal()
            self.assertTrue(wait_until(lambda: not os.path.lexists(self.path)))  # the first one takes it away
            s.signal()
            self.assertEqual(s.wait(), 128 + signal.SIGTERM)

    def test_gone_while_draining(self):
        """New connections are refused while the last calls finish."""
        with self.serve() as s, self.connect() as c:
            c.send(rpc("sleep", b'{"ms":%d}' % (700 * support.SLOW)))
            self.assertEqual(c.call("echo", b"1", b"2")["result"], 1)
            s.signal()

            def refused():
                try:
                    self.connect().close()
                    return False
                except OSError:
                    return True
            self.assertTrue(wait_until(refused))
            self.assertIn("result", c.message())
            self.assertEqual(s.wait(), 0)

    def test_a_stale_file_is_replaced(self):
        with self.serve(check_exit=False) as s:
            s.process.kill()
            s.process.wait()
        self.assertTrue(os.path.lexists(self.path))
        with self.serve(), self.connect() as c:
            self.assertEqual(c.call("echo", b"1")["result"], 1)
        self.assertFalse(os.path.lexists(self.path))

    def test_a_live_one_is_refused(self):
        with self.serve():
            self.refused("cannot listen on unix:" + self.path, "in use")
            with self.connect() as c:
                self.assertEqual(c.call("echo", b"1")["result"], 1)
            self.assertTrue(os.path.lexists(self.path))

    def test_a_live_one_of_somebody_else_is_refused(self):
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(self.path)
            other.listen(1)
            self.refused("in use")
            self.assertTrue(os.path.lexists(self.path))

    def test_no_socket_is_left_alone(self):
        with open(self.path, "w") as f:
            f.write("precious")
        self.refused("cannot listen on unix:" + self.path)
        with open(self.path) as f:
            self.assertEqual(f.read(), "precious")
        os.unlink(self.path)
        os.mkdir(self.path)
        self.refused("cannot listen on")
        self.assertTrue(os.path.isdir(self.path))

    def test_a_link_is_left_alone(self):
        os.symlink("/nowhere/else", self.path)
        self.refused("cannot listen on")
        self.assertTrue(os.path.islink(self.path))

    def test_what_cannot_be(self):
        self.refused("cannot listen on", listen="jsonrpc=unix:%s/no/such/folder/s" % self.path)
        for bad in ("unix:", "unix:" + "x" * 200):
            r = cli("serve", "--demo", "--listen", "jsonrpc=" + bad)
            self.assertEqual((r.code, r.out), (2, b""), r)
            self.assertIn(b"--listen", r.err)

    def test_a_file_of_a_later_server_is_not_removed(self):
        with self.serve() as s:
            os.unlink(self.path)
            with self.serve() as later:
                s.stop()
                self.assertTrue(os.path.lexists(self.path))
                with self.connect() as c:
                    self.assertEqual(c.call("echo", b"1")["result"], 1)
                self.assertTrue(later.running())
        self.assertFalse(os.path.lexists(self.path))

    def test_two_listeners(self):
        with self.serve(listen=("jsonrpc=unix:" + self.path, "unix:" + self.path + "2", "127.0.0.1:0")) as s:
            self.assertEqual([e["wire"] for e in s.listeners], ["jsonrpc", "any", "any"])
            with self.connect() as a, self.connect(self.path + "2") as b:
                for c in (a, b, a):
                    self.assertEqual(c.call("context")["result"]["wire"], "jsonrpc")
        self.assertFalse(os.path.lexists(self.path) or os.path.lexists(self.path + "2"))

    def test_the_same_twice(self):
        r = cli("serve", "--demo", "--listen", "jsonrpc=unix:" + self.path, "--listen", "jsonrpc=unix:" + self.path)
        self.assertEqual(r.code, 1, r)
        self.assertIn(b"in use", r.err)
        self.assertFalse(os.path.lexists(self.path))

    def test_one_of_two_in_use(self):
        """What was opened before is taken back."""
        with self.serve():
            r = cli("serve", "--demo", "--listen", "jsonrpc=unix:" + self.path + "2", "--listen", "jsonrpc=unix:" + self.path)
            self.assertEqual(r.code, 1, r)
            self.assertFalse(os.path.lexists(self.path + "2"))
            self.assertTrue(os.path.lexists(self.path))

    def test_many_connections_on_all_loops(self):
        with self.serve("--threads", "4"):
            peers = [self.connect() for _ in range(100)]
            for c in peers:
                c.send(rpc("echo", b"7"))
            for c in peers:
                self.assertEqual(c.message()["result"], 7)
                c.close()

    def test_relative_path(self):
        folder, name = os.path.split(self.path)
        old = os.getcwd()
        os.chdir(folder)
        try:
            with self.serve(listen=("jsonrpc=unix:" + name,)):
                self.assertEqual(cli("call", "jsonrpc+unix:" + name, "echo", "1").out, b"1\n")
            self.assertFalse(os.path.lexists(self.path))
        finally:
            os.chdir(old)


if __name__ == "__main__":
    support.main()
