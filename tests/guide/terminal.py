"""A terminal with a shell in it, as a reader of the guide has one; and a network of its own, so that a page can use the ports that it names.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import time

MARK = "\x1e"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\x1b\][^\x07]*\x07")


def shown(line):
    """What a line looks like in the end: a carriage return goes to its beginning, and what follows overwrites or erases."""
    cells, at = [], 0
    for part in re.split(r"(\r|\x1b\[[012]?K)", line):
        if part == "\r":
            at = 0
        elif part.startswith("\x1b["):
            cells = cells[:at] if part != "\x1b[2K" else []
        else:
            part = ESCAPES.sub("", part)
            cells[len(cells):] = " " * (at - len(cells))
            cells[at:at + len(part)] = part
            at += len(part)
    return "".join(cells)


class Terminal:
    """A terminal of its own. While one is waited for, all are read: a program whose output nobody takes would stop.
    program: a script that runs there alone; without one there is an interactive shell, which says $? between two marks before it waits
    for the next command."""

    open = {}  # by descriptor

    def __init__(self, folder, env, program=None):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._quiet(slave)
        self._master, self._said = master, b""
        Terminal.open[master] = self
        words = [program] if program else ["--noprofile", "--norc", "--noediting", "-i"]
        env = dict(env, PS1="", PS2="", PROMPT_COMMAND="printf '\\036%s\\036' $?", HISTFILE="/dev/null")
        self.process = subprocess.Popen(["bash"] + words, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=env, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    @staticmethod
    def _quiet(slave):
        """No echo of what is typed."""
        modes = termios.tcgetattr(slave)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, modes)

    def run(self, path):
        self.press((". '%s'\n" % path).encode())

    def press(self, key):
        os.write(self._master, key)

    def wait(self, condition, limit):
        """Reads until condition(text so far) is true; false when the time is over or nobody is left."""
        end = time.monotonic() + limit
        while not condition(self.text()):
            left = end - time.monotonic()
            if left <= 0 or self._master not in Terminal.open:
                return False
            Terminal._read(left)
        return True

    @staticmethod
    def _read(limit):
        for master in select.select(list(Terminal.open), [], [], limit)[0]:
            try:
                data = os.read(master, 65536)
            except OSError:  # all that had the terminal have gone
                data = b""
            if data:
                Terminal.open[master]._said += data
            else:
                del Terminal.open[master]

    def text(self):
        lines = self._said.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        return "\n".join(shown(line) if "\r" in line or "\x1b" in line else line for line in lines)

    def take(self):
        """What was said since the last one."""
        text, self._said = self.text(), b""
        return text

    def alive(self):
        return self.process.poll() is None

    def members(self):
        """The ids of all processes of this terminal."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid) as f:
                    fields = f.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == self.process.pid and fields[0] not in "ZX":
                found.append(int(pid))
        return found

    def close(self):
        """Ends all that runs in it: asked first, then forced. An interactive shell is asked by SIGHUP."""
        for signum, limit in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            for pid in self.members():
                try:
                    os.kill(pid, signal.SIGHUP if pid == self.process.pid and signum == signal.SIGTERM else signum)
                except ProcessLookupError:
                    pass
            end = time.monotonic() + limit
            while self.members() and time.monotonic() < end:
                Terminal._read(0.05)
                self.process.poll()
        self.process.wait(10)
        Terminal.open.pop(self._master, None)
        os.close(self._master)


# ---- a network of its own ----

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def _unshare():
    """Root needs no user namespace, which some machines forbid."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if uid == 0 and libc.unshare(CLONE_NEWNET) == 0:
        return
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (uid, uid)), ("gid_map", "%d %d 1" % (gid, gid))):
        with open("/proc/self/" + name, "w") as f:
            f.write(text)


def _enter_network():
    _unshare()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        asked = struct.pack("16sH14s", b"lo", 0, b"")
        flags = struct.unpack("16sH14s", fcntl.ioctl(s, SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | IFF_UP, b""))


def own_network():
    """Moves this process into a network that has nothing but loopback. False: it may not, and stays where it is."""
    child = os.fork()
    if child == 0:  # a trial: half of it would leave us without any network
        try:
            _enter_network()
            os._exit(0)
        except OSError:
            os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        return False
    _enter_network()
    return True
