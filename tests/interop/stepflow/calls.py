"""`everywire list, describe, call stepflow+...` and a program on the library, with real component servers of the Python SDK: over standard
input and output, over HTTP to one that runs, and over HTTP to one that each call starts for itself.
Usage: calls.py SDK-VERSION COMMAND [ARGS]      (components.py; EVERYWIRE is the program, EW_STEPFLOW_MANY is many.c)

SPDX-License-Identifier: Apache-2.0
"""
import concurrent.futures
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

from support import EVERYWIRE, Marks, Process, Proxy, alive, check, equal, finish, free_ports, gone, listens, wait_until

VERSION = tuple(int(part) for part in sys.argv[1].split("."))
COMMAND = sys.argv[2:]
STDIO = VERSION < (0, 9)  # later ones have no stdio
HTTP = VERSION >= (0, 3)
ANNOUNCES = VERSION >= (0, 9)
LINE = 65536 if VERSION < (0, 4) else 524288  # a longer one takes the stdio server down
TEXT = "Zoë 世界 \U0001f600 \" \\ / \n\t\u2028 ключ"
COMPONENTS = ["big", "boom", "crash", "echo", "evaluate", "get_blob", "greet", "many_blobs", "pid", "put_blob", "roundtrip", "slow", "udf",
              "where"]

# ---- calling ------------------------------------------------------------------------------------------------------


class Ended:
    """How a call went: exit code, result, error, seconds."""

    def __init__(self, process, seconds):
        self.code = process.returncode
        self.out = process.stdout
        self.seconds = seconds
        self.said = process.stderr
        self.result = json.loads(self.out) if self.out.strip() else None
        lines = [line for line in self.said.decode("utf-8", "replace").split("\n") if line.startswith('{"error":')]
        self.error = json.loads(lines[-1])["error"] if lines else None

    def __repr__(self):
        return "exit %s, %.300r, %.900r" % (self.code, self.out, self.said)


class Peer:
    """A target: stepflow+stdio: or stepflow+http: with the server's command, or stepflow+http://..., which runs."""

    def __init__(self, target, marks, command=None):
        self.target, self.marks, self.command = target, marks, command

    def words(self, verb, *words):
        return [EVERYWIRE, verb, self.target, *words, *(["--", *self.command] if self.command else [])]

    def ask(self, verb, *words):
        before = time.monotonic()
        process = subprocess.run(self.words(verb, *words), stdin=subprocess.DEVNULL, capture_output=True, timeout=50,
                                 env=dict(os.environ, **self.marks.env))
        return Ended(process, time.monotonic() - before)

    def call(self, component, value=None, *options):
        given = [] if value is None else [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)]
        return self.ask("call", component, *given, *options)

    def good(self, component, value, wanted, *options):
        ended = self.call(component, value, *options)
        if ended.code != 0 or ended.result != wanted:
            raise AssertionError("%r; wanted %.300r" % (ended, wanted))

    def bad(self, component, value, code, status, text="", *options):
        ended = self.call(component, value, *options)
        if ended.code != code or not ended.error or ended.error["status"] != status or ended.out or text not in ended.error["message"]:
            raise AssertionError("%r; wanted exit %d, %s, %s" % (ended, code, status, text))
        return ended


class StepflowMarks(Marks):
    number = 0

    def __init__(self, folder):
        StepflowMarks.number += 1
        super().__init__(folder, "marks%d" % StepflowMarks.number)
        self.env = {"STEPFLOW_MARKS": self.path}


class Server(Process):
    """A server that runs."""

    def __init__(self, marks, port):
        self.port = port
        super().__init__(*COMMAND, "--port", str(port), env=marks.env)
        try:
            wait_until("a server on port %d" % port, lambda: self.process.poll() is not None or listens(port))
            if self.process.poll() is not None:
                raise RuntimeError("the server left:\n" + self.said())
        except Exception:
            self.__exit__()
            raise


class Recorder(Proxy):
    """Stands before a server and keeps the JSON-RPC methods of what goes there, in order."""

    def _keep(self, data, number):
        for found in re.finditer(rb'"method": ?"([^"]+)"', data):
            self.frames.append(found.group(1).decode())
        return b""


# ---- what every server can do -------------------------------------------------------------------------------------


def listing(peer):
    ended = peer.ask("list")
    equal(ended.code, 0, repr(ended))
    keys = {key.rpartition("/")[2]: key for key in ended.result}
    equal(sorted(keys), COMPONENTS)
    one = peer.ask("describe", "greet")
    equal(one.code, 0, repr(one))
    assert "Greets somebody" in json.dumps(one.result) and "Whom to greet" in json.dumps(one.result), one
    equal(peer.ask("describe", keys["greet"]).result, one.result)
    missing = peer.ask("describe", "nothing")
    equal((missing.code, missing.error["status"]), (1, "NOT_FOUND"))
    peer.good(keys["greet"], {"name": "Ada", "times": 2}, {"text": "Hello, Ada! Hello, Ada!"})


def values(peer):
    value = {"text": TEXT, "n": [18446744073709551615, -9223372036854775808, 0.1], "": {}, "null": None, "deep": [[[{"a": []}]]]}
    for name in ("echo", "/echo"):
        peer.good(name, value, value)
    for plain in ("null", '""', "[]") if peer.command else ("null", "true", "17", '""', "[]", "{}", "[null]"):
        peer.good("echo", plain, json.loads(plain))
    peer.good("echo", None, None)
    peer.good("echo", {"text": "ü" * 10000}, {"text": "ü" * 10000})


def faults(peer):
    """The SDK has one code for whatever goes wrong in a component, bad input included."""
    peer.bad("boom", {"message": "told why: " + TEXT}, 1, "UNKNOWN", "told why: " + TEXT)
    peer.bad("greet", {"times": 1}, 1, "UNKNOWN", "name")
    peer.bad("nothing", {}, 1, "NOT_FOUND", "nothing")
    peer.bad("/echo/more", {}, 1, "NOT_FOUND", "/echo/more")


def context(peer):
    ended = peer.call("where", {}, "--context", '{"run_id":"the run","flow_id":"the flow","step_id":"the step"}')
    equal(ended.code, 0, repr(ended))
    if VERSION >= (0, 3):
        equal((ended.result["run_id"], ended.result["flow_id"], ended.result["step_id"]), ("the run", "the flow", "the step"))
    if VERSION >= (0, 4):
        equal(ended.result["attempt"], 1)
    equal(peer.call("where", {}).code, 0)


def blobs(peer, folder):
    peer.good("put_blob", {"data": {"b": 2, "a": 1}}, {"blob_id": "3fb75453225c732a76b7899ea2096dda1455189c89817239732182f73fe5a09f"})
    peer.good("put_blob", {"data": "é"}, {"blob_id": "f2886017e9c7abacf804b54d64787dce2b611c9544ba21f3affdd126a6e50086"})
    for data in (None, {"text": TEXT, "list": [None, 1, {"k": []}]}):
        ended = peer.call("roundtrip", {"data": data})
        equal((ended.code, ended.result and ended.result["equal"]), (0, True), repr(ended))
    peer.good("many_blobs", {"n": 30}, {"different": 30, "equal": True})
    equal(peer.call("get_blob", {"blob_id": "0" * 64}).code, 1)
    store = ["--blobs", "sqlite:" + os.path.join(folder, "blobs%d.db" % time.monotonic_ns())]
    kept = peer.call("put_blob", {"data": [TEXT]}, *store)
    equal(kept.code, 0, repr(kept))
    peer.good("get_blob", kept.result, {"data": [TEXT]}, *store)


def no_flows(peer):
    """We run no flows: whoever asks is told so, and does not wait."""
    ended = peer.call("evaluate", {"flow_id": "0" * 64, "flow": {"steps": []}, "input": {}}, "--timeout", "20s")
    equal(ended.code, 1, repr(ended))


def deadline(peer):
    peer.bad("slow", {"ms": 60000}, 5, "DEADLINE_EXCEEDED", "", "--timeout", "2s" if peer.command else "1s")


def at_once(peer):
    """Eight of us at the same time."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: peer.call("echo", {"i": i}), range(16)))
    equal([(ended.code, ended.result) for ended in found], [(0, {"i": i}) for i in range(16)])


def many(peer):
    """Calls at once by a program on the library; with a command it crashes the server, too, and goes on."""
    process = subprocess.run([os.environ["EW_STEPFLOW_MANY"], peer.target, *(peer.command or [])], stdin=subprocess.DEVNULL,
                             capture_output=True, timeout=55)
    equal((process.returncode, process.stdout), (0, b""), process.stderr.decode("utf-8", "replace")[-600:])


def killed(peer):
    """SIGKILL of the server in mid-call."""
    since = len(peer.marks.read())
    with Process(*peer.words("call", "slow", '{"ms":40000}'), env=peer.marks.env) as process:
        (mark,) = peer.marks.wait(event="begin", since=since)
        os.kill(int(mark[4]), signal.SIGKILL)
        equal(process.process.wait(10), 3)
        assert '"UNAVAILABLE"' in process.said(), process.said()


def crashes(peer):
    peer.bad("crash", {}, 3, "UNAVAILABLE")


def ended_with(peer, signum, code):
    """We are ended in mid-call; a server that is ours ends with us."""
    since = len(peer.marks.read())
    with Process(*peer.words("call", "slow", '{"ms":40000}'), env=peer.marks.env) as process:
        (mark,) = peer.marks.wait(event="begin", since=since)
        equal(process.end(signum), code)
        if peer.command:
            gone({int(mark[4])})
        else:
            equal(alive(int(mark[4])), True)


def wild(peer):
    peer.good("/wild/a/b", 7, {"rest": "a/b", "value": 7})


def once(peer):
    """A little of everything, for a server that takes its time to start."""
    equal(sorted(key.rpartition("/")[2] for key in peer.ask("list").result), COMPONENTS)
    peer.good("echo", {"text": TEXT}, {"text": TEXT})
    peer.bad("boom", {"message": TEXT}, 1, "UNKNOWN", TEXT)
    peer.good("many_blobs", {"n": 30}, {"different": 30, "equal": True})


def common(how, peer, folder):
    check(how + ": it lists and describes", listing, peer)
    check(how + ": values of all kinds", values, peer)
    check(how + ": failures, no such component", faults, peer)
    check(how + ": run, flow, step and attempt", context, peer)
    check(how + ": blobs", blobs, peer, folder)
    check(how + ": it asks for a flow", no_flows, peer)
    check(how + ": the deadline passes: exit 5", deadline, peer)
    check(how + ": 50 calls at once on the library", many, peer)
    check(how + ": Ctrl-C in mid-call: exit 130", ended_with, peer, signal.SIGINT, 130)
    if ANNOUNCES:
        check(how + ": a component with a pattern for its name", wild, peer)


# ---- standard input and output ------------------------------------------------------------------------------------


def handshake(peer, folder):
    path = os.path.join(folder, "frames")
    through = Peer(peer.target, peer.marks, ["sh", "-c", 'tee "$0" | ' + " ".join(map(shlex.quote, COMMAND)), path])
    equal(through.call("roundtrip", {"data": {"a": 1}}).code, 0)
    with open(path, encoding="ascii") as f:  # all that we write is
        frames = [json.loads(line) for line in f]
    equal([frame.get("method", "reply") for frame in frames], ["initialize", "initialized", "components/execute", "reply", "reply"])


def long_line(peer, folder):
    """A request that does not fit takes the server down: an error, and soon."""
    path = os.path.join(folder, "input")
    with open(path, "w") as f:
        json.dump({"text": "x" * (LINE + 10000)}, f)
    ended = peer.call("echo", "@" + path, "--timeout", "20s")
    assert ended.code == 3 and ended.seconds < 15, (ended, ended.seconds)
    with open(path, "w") as f:
        json.dump({"text": "x" * (LINE - 5000)}, f)
    equal(peer.call("pid", "@" + path).code, 0)


def long_reply(peer):
    """The SDK loses bytes of replies that do not fit into the pipe at once: we end in any case, and what we take is whole."""
    for n in (300000, 3000000) if LINE > 65536 else (300000,):
        ended = peer.call("big", {"bytes": n}, "--timeout", "3s")
        if ended.code == 0:
            equal(ended.result, "x" * n)
        allowed = (0,) if n < 1 << 20 else (0, 3, 4, 5)  # the pipe that we give it holds a mebibyte
        assert ended.code in allowed and ended.seconds < 20, (ended, ended.seconds)
        print("# a reply of %d bytes: exit %d after %.1f s" % (n, ended.code, ended.seconds), flush=True)


def over_stdio(folder):
    marks = StepflowMarks(folder)
    peer = Peer("stepflow+stdio:", marks, COMMAND)
    common("stdio", peer, folder)
    check("stdio: the handshake comes first, all is ASCII", handshake, peer, folder)
    check("stdio: SIGKILL of the server in mid-call: exit 3", killed, peer)
    check("stdio: it crashes: exit 3", crashes, peer)
    check("stdio: a request that is too long for it: exit 3", long_line, peer, folder)
    check("stdio: a reply that is too long for it", long_reply, peer)
    check("stdio: SIGKILL of ours ends the server", ended_with, peer, signal.SIGKILL, -signal.SIGKILL)


# ---- HTTP ---------------------------------------------------------------------------------------------------------


def large(peer, folder):
    path = os.path.join(folder, "input")
    value = {"text": "x€" * 500000, "list": list(range(50000))}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f)
    peer.good("echo", "@" + path, value)
    peer.good("big", {"bytes": 8000000}, "x" * 8000000)


def http_handshake(peer, port):
    with Recorder(port) as recorder:
        through = Peer("stepflow+http://127.0.0.1:%d/" % recorder.port, peer.marks)
        through.good("echo", {"a": 1}, {"a": 1})
        equal(recorder.frames[:3], ["initialize", "initialized", "components/execute"])


def no_server(marks):
    peer = Peer("stepflow+http://127.0.0.1:%d/" % free_ports(), marks)
    peer.bad("echo", {}, 3, "UNAVAILABLE")


def over_http(folder):
    marks = StepflowMarks(folder)
    port = free_ports()
    peer = Peer("stepflow+http://127.0.0.1:%d/" % port, marks)
    with Server(marks, port) as server:
        common("http", peer, folder)
        check("http: the handshake comes first", http_handshake, peer, port)
        check("http: eight processes at once", at_once, peer)
        check("http: megabytes", large, peer, folder)
        check("http: SIGKILL of ours leaves the server alone", ended_with, peer, signal.SIGKILL, -signal.SIGKILL)
        check("http: SIGKILL of the server in mid-call: exit 3", killed, peer)
        server.end()
    with Server(marks, port):
        check("http: started again: calls and blobs", again, peer)
        check("http: it crashes: exit 3", crashes, peer)
    check("http: nobody listens: exit 3", no_server, marks)


def again(peer):
    equal(peer.call("roundtrip", {"data": {"a": 1}}).result["equal"], True)


def started(folder):
    """A server that the call starts, and that says its port."""
    marks = StepflowMarks(folder)
    peer = Peer("stepflow+http:", marks, COMMAND)
    check("started: list, calls, a failure, blobs", once, peer)
    check("started: 50 calls at once on the library", many, peer)
    check("started: SIGKILL of the server in mid-call: exit 3", killed, peer)
    check("started: it crashes: exit 3", crashes, peer)
    check("started: SIGKILL of ours ends the server", ended_with, peer, signal.SIGKILL, -signal.SIGKILL)
    check("started: a program that says no port: an error", no_port, marks)


def no_port(marks):
    """It ends without a word, or waits."""
    for command, timeout in ((["false"], "20s"), (["sleep", "60"], "2s")):
        ended = Peer("stepflow+http:", marks, command).call("echo", {}, "--timeout", timeout)
        assert ended.code in (3, 5) and ended.seconds < 15, (ended, ended.seconds)


def main():
    print("# SDK %s: %s" % (sys.argv[1], " ".join(COMMAND)), flush=True)
    with tempfile.TemporaryDirectory(prefix="ew-stepflow-") as folder:
        if STDIO:
            over_stdio(folder)
        if HTTP:
            over_http(folder)
        if ANNOUNCES:
            started(folder)
    finish("stepflow sdk %s" % sys.argv[1].replace(".", "-"))


main()
