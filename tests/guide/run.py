#!/usr/bin/env python3
"""Runs every command of a page of the guide, as it is printed, and compares what it says with what the page says.
    run.py PAGE...       each in a fresh folder, with everywire installed there and the ports that the page names
    run.py --interop PAGE...   the same, told as tests/interop tells it
    run.py --links       whether every relative link of the project's papers leads somewhere
Needs EW_BUILD_DIR (what is installed), EW_SOURCE_DIR; for pages with foreign peers EW_INTEROP_CACHE, where tests/interop installs them.
Says for each page how many commands were run and how many were not; page.py tells how a page is written.

SPDX-License-Identifier: Apache-2.0
"""
import difflib
import fcntl
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

from page import BadPage, Command, Page, pattern
from terminal import MARK, Terminal, own_network

ROOT = os.environ.get("EW_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("EW_BUILD_DIR") or os.path.join(ROOT, "build", "release")
CACHE = os.environ.get("EW_INTEROP_CACHE") or os.path.join(ROOT, "build", "interop")
LIMIT = 30 * float(os.environ.get("EW_TEST_SLOW", "1"))  # seconds for a command
PEER_LIMIT = 90  # genkit alone takes seconds to start
NOTICES = re.compile(r"^\[\d+\](?: \d+|[-+ ] +(?:Done|Exit \d+|Terminated|Killed|Interrupt).*)\n", re.M)
MARKS = re.compile(MARK + r"\d+" + MARK)
LOCK = os.path.join(tempfile.gettempdir(), "everywire-guide-%d.lock" % os.getuid())


class Failed(Exception):
    pass


# ---- the place ----

def install(prefix):
    done = subprocess.run([os.environ.get("EW_CMAKE", "cmake"), "--install", BUILD, "--prefix", prefix], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Failed("the installation failed:\n" + done.stdout + done.stderr)


def environment(place, prefix):
    env = {name: os.environ[name] for name in ("PATH", "USER", "LOGNAME", "SHELL") if name in os.environ}
    lib = os.path.dirname(glob.glob(prefix + "/**/libeverywire.so", recursive=True)[0])
    env.update(HOME=place + "/home", TMPDIR=place + "/tmp", PATH=prefix + "/bin:" + env.get("PATH", "/usr/bin:/bin"), LD_LIBRARY_PATH=lib,
               PKG_CONFIG_PATH=lib + "/pkgconfig", LC_ALL="C.UTF-8", TZ="UTC", TERM="xterm", NO_COLOR="1", PYTHONDONTWRITEBYTECODE="1")
    return env


def add_peer(peer, env, work):
    """Puts a foreign program where the reader would have it after the installation that the page tells of."""
    paths = {
        "genkit": ["node_modules/.bin"],
        "rrq": ["rrq/bin"],
        "stepflow": ["stepflow/python/bin", "stepflow/stepflow-orchestrator-0.11.1/stepflow_orchestrator/bin"],
        "go": [],
    }.get(peer)
    if paths is None:
        raise Failed("no such peer: " + peer)
    paths = [os.path.join(CACHE, path) for path in paths]
    for path in paths:
        if not os.path.isdir(path):
            raise Failed("%s is not installed (%s): ./dev interop guide installs it" % (peer, path))
    env["PATH"] = ":".join(paths + [env["PATH"]])
    if peer == "genkit":
        os.symlink(os.path.join(CACHE, "node_modules"), os.path.join(work, "node_modules"))
    elif peer == "go":
        env["PATH"] = os.pathsep.join(filter(None, [os.environ.get("EW_GO"), env["PATH"]]))
        asked = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, env=dict(os.environ, PATH=env["PATH"]))
        env.update(GOCACHE=asked.stdout.strip(), GOTOOLCHAIN="local")  # the standard library need not be compiled again


def as_clone(work):
    """A folder that looks like a clone of the project that has been built."""
    for name in os.listdir(ROOT):
        if name not in ("build", ".git"):
            os.symlink(os.path.join(ROOT, name), os.path.join(work, name))
    os.mkdir(work + "/build")
    os.symlink(BUILD, work + "/build/release")
    os.symlink("release/everywire", work + "/build/everywire")


# ---- one page ----

def ended(text):
    """The shell waits for the next command."""
    return text.count(MARK) >= 2


class Run:
    def __init__(self, page, place):
        self.page, self.place, self.work = page, place, os.path.join(place, "guide")
        for name in ("guide", "home", "tmp"):
            os.mkdir(os.path.join(place, name))
        install(place + "/usr")
        self.env = environment(place, place + "/usr")
        if os.path.dirname(os.path.abspath(page.path)) == os.path.abspath(ROOT):
            as_clone(self.work)
        for peer in page.peers:
            add_peer(peer, self.env, self.work)
        self.limit = PEER_LIMIT if page.peers else LIMIT
        self.shell = Terminal(self.work, self.env)
        self.shell.wait(ended, self.limit)
        self.servers = []
        self.ran = 0
        self.status = 0

    def close(self):
        for terminal in [self.shell] + [server for _, server in reversed(self.servers)]:
            terminal.close()

    def all(self):
        steps = self.page.steps
        for i, step in enumerate(steps):
            if not isinstance(step, Command):
                self.write(step)
            elif step.server:
                self.serve(step)
            else:
                self.command(step, steps[i + 1] if i + 1 < len(steps) else None)
            for command, server in self.servers:
                if not server.alive():
                    self.fail(command, "it has ended while the page went on", server.take())

    def fail(self, command, why, said):
        wanted = [line + "\n" for line in command.output]
        got = [line + "\n" for line in said.rstrip("\n").split("\n")]
        diff = "".join(difflib.unified_diff(wanted, got, "the page", "the program", n=20))
        others = "".join("\n# the server of line %d says since then:\n%s" % (c.line, "".join(s.take().splitlines(True)[-40:])) for c, s in self.servers if c is not command)
        raise Failed("%s:%d: $ %s\n%s\n%s%s" % (self.page.path, command.line, command.text, why, diff, others))

    def write(self, file):
        path = os.path.join(self.work, file.name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):  # a page may show a file again, changed
            os.remove(path)
        with open(path, "w", encoding="utf-8") as f:
            f.write(file.text)

    def script(self, command):
        path = os.path.join(self.place, "tmp", "line-%d" % command.line)
        with open(path, "w", encoding="utf-8") as f:
            f.write(command.text + "\n")
        return path

    def serve(self, command):
        server = Terminal(self.work, self.env, self.script(command))
        self.servers.append((command, server))
        wanted = pattern(command.output, True)
        if not server.wait(lambda text: wanted.match(text) is not None, self.limit):
            self.fail(command, "it has not said this within %g s" % self.limit, server.take())
        self.ran += 1

    def command(self, command, following):
        before, wanted = command.parts()
        self.shell.take()
        self.shell.run(self.script(command))
        if before is not None:
            self.until_said(command, before)
            self.shell.press(b"\x03")
        elif command.text.endswith("&"):  # the reader goes on when it has said what the page says
            self.until_said(command, wanted)
        if not self.shell.wait(ended, self.limit):
            self.fail(command, "no end within %g s" % self.limit, self.shell.take())
        said, status, rest = self.shell.take().split(MARK, 2)
        if command.text.endswith("&"):
            said += rest
        said = NOTICES.sub("", said)
        said = said.rstrip("\n") + "\n" if said.strip() else ""
        if not pattern(wanted, False).match(said):
            self.fail(command, "it says something else than the page", said)
        if status != "0" and not (following and isinstance(following, Command) and "$?" in following.text):
            self.fail(command, "exit code %s, and the next command does not ask for $?" % status, said)
        self.ran += 1

    def until_said(self, command, lines):
        wanted = pattern(lines, True)
        if not self.shell.wait(lambda text: wanted.match(MARKS.sub("", text)) is not None, self.limit):
            self.fail(command, "it has not said this within %g s" % self.limit, self.shell.take())


def run_page(path):
    page = Page(path)
    name = os.path.splitext(os.path.basename(path))[0].lower()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ew-guide-") as place, open(LOCK, "a") as lock:
        if not NETWORK:  # then pages take turns, and the ports that they name must be free
            fcntl.flock(lock, fcntl.LOCK_EX)
        run = Run(page, place)
        try:
            run.all()
        finally:
            run.close()
    print("guide %s: %d commands run, %d not run, %.1f s" % (name, run.ran, len(page.not_run), time.monotonic() - start), flush=True)
    for command in page.not_run:
        print("  not run: " + command.text.split("\n")[0])
    return run.ran


# ---- links ----

def papers():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True, text=True)
    names = listed.stdout.split() if listed.returncode == 0 else []
    return [os.path.join(ROOT, name) for name in names] or glob.glob(ROOT + "/*.md") + glob.glob(ROOT + "/[a-z]*/**/*.md", recursive=True)


def anchors(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles} | set(re.findall(r'<a id="([^"]+)">', text))


def check_links():
    bad = links = 0
    guide = glob.glob(ROOT + "/docs/guide/*.md")
    for path in papers():
        strict = path in guide or os.path.basename(path) == "README.md" and os.path.dirname(path) == ROOT
        found = Page(path).links if strict else loose_links(path)
        for line, link in found:
            if re.match(r"[a-z]+:", link):
                continue
            links += 1
            name, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(target) or (anchor and target.endswith(".md") and anchor not in anchors(target)):
                print("%s:%d: nothing is at %s" % (os.path.relpath(path, ROOT), line, link))
                bad += 1
    index = open(ROOT + "/docs/guide/README.md", encoding="utf-8").read()
    for page in guide:
        if "(%s)" % os.path.basename(page) not in index and not page.endswith("/README.md"):
            print("%s is not in the index of the guide" % os.path.relpath(page, ROOT))
            bad += 1
    print("%d links, %d lead nowhere" % (links, bad))
    return 1 if bad else 0


def loose_links(path):
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"```.*?```", lambda m: "\n" * m.group().count("\n"), f.read(), flags=re.S)
    return [(number, link) for number, line in enumerate(text.splitlines(), 1) if not line.startswith("    ")
            for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line))]


def main(words):
    if words == ["--links"]:
        return check_links()
    global NETWORK
    NETWORK = own_network()
    if not NETWORK:
        print("no network of our own can be had here: pages take turns on the ports that they name")
    os.umask(0o022)
    status = 0
    interop = words[:1] == ["--interop"]
    for path in words[interop:]:
        try:
            ran = run_page(path)
            if interop:
                print("interop guide-%s: %d passed, 0 failed" % (os.path.splitext(os.path.basename(path))[0], ran))
        except (Failed, BadPage) as problem:
            print("FAIL %s" % problem, flush=True)
            if interop:
                print("interop guide-%s: 0 passed, 1 failed" % os.path.splitext(os.path.basename(path))[0])
            status = 1
    return status


NETWORK = False
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
