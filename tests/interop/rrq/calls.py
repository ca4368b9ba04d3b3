"""A real runner behind `everywire call rrq://...`: one that runs already, seen through a proxy that keeps the frames, and one that each call
starts for itself.
Usage: calls.py NAME RUNNER [ARGS]      (handlers.py or rust_runner; EVERYWIRE is the program, EW_RRQ_MANY is many.c)

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
from datetime import datetime, timezone

from support import EVERYWIRE, Marks, Process, Proxy, Server, alive, check, equal, finish, free_ports, gone, wait_until

NAME = sys.argv[1]
RUNNER = sys.argv[2:]
TRACE = "0af7651916cd43dd8448eb211c80319c"

# ---- calling ------------------------------------------------------------------------------------------------------


class Ended:
    """How a call went: exit code, result, error."""

    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout
        self.result = json.loads(self.out) if self.out.strip() else None
        lines = [line for line in process.stderr.decode("utf-8", "replace").splitlines() if line.startswith('{"error":')]
        self.error = json.loads(lines[-1])["error"] if lines else None
        self.said = process.stderr

    def __repr__(self):
        return "exit %s, %.300r, %.600r" % (self.code, self.out, self.said)


def words(port, action, value=None, options=(), command=None):
    given = [] if value is None else [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)]
    return [EVERYWIRE, "call", "rrq://127.0.0.1:%d" % port, action, *given, *options, *(["--", *command] if command else [])]


def call(port, action, value=None, *options, command=None, env=None):
    return Ended(subprocess.run(words(port, action, value, options, command), stdin=subprocess.DEVNULL, capture_output=True, timeout=50,
                                env=dict(os.environ, **(env or {}))))


def good(ended, result):
    if ended.code != 0 or ended.result != result:
        raise AssertionError("%r; wanted %.300r" % (ended, result))


def bad(ended, code, status, message=None, details=None):
    if ended.code != code or not ended.error or ended.error["status"] != status or ended.out:
        raise AssertionError("%r; wanted exit %d, %s" % (ended, code, status))
    if message is not None:
        equal(ended.error["message"], message)
    equal(ended.error.get("details"), details)


def many(*args):
    """Calls at once, by a program on the library."""
    process = subprocess.run([os.environ["EW_RRQ_MANY"], *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=50)
    equal((process.returncode, process.stdout), (0, b""))


# ---- a runner that runs already -----------------------------------------------------------------------------------


def values(port, folder):
    exact = ["12345678901234567890", "-9223372036854775808", "18446744073709551615", "0.1"]
    if NAME == "python":
        exact.append("1" + "0" * 40)  # Rust's reader makes a real number of it
    for number in exact:
        ended = call(port, "echo", '{"n":%s}' % number)
        equal((ended.code, ended.out.decode().replace(" ", "")), (0, '{"n":%s}\n' % number))
    text = {"text": "Zoë 世界 \U0001f600 \" \\ / \n\t\u2028\u0000", "": [], "ключ": {"a": [None, True, {}]}}
    good(call(port, "echo", text), text)
    good(call(port, "echo"), {})
    large = {"text": "x€" * 300000, "list": list(range(50000))}
    path = os.path.join(folder, "input")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(large, f)
    good(call(port, "echo", "@" + path), large)
    good(call(port, "big", {"bytes": 16000000}), "x" * 16000000)


def faults(port):
    bad(call(port, "fail", {"message": "told why ü"}), 1, "UNKNOWN", "told why ü")
    bad(call(port, "fail", {"code": "FAILED_PRECONDITION", "details": {"k": [1]}}), 1, "FAILED_PRECONDITION", "it failed", {"k": [1]})
    bad(call(port, "fail", {"type": "mine", "code": "E17"}), 1, "UNKNOWN", "it failed", {"type": "mine", "code": "E17"})
    bad(call(port, "retry", {"after": 1.5, "message": "later"}), 1, "UNAVAILABLE", "later")
    bad(call(port, "late", {}), 1, "DEADLINE_EXCEEDED", "gave up by itself")
    bad(call(port, "nothing", {}), 1, "NOT_FOUND", "No handler registered for function 'nothing'",
        {"type": "handler_not_found"})
    equal(call(port, "echo", [1]).code, 2)


def listing(port):
    for verb in (["list"], ["describe"]):
        process = subprocess.run([EVERYWIRE, *verb, "rrq://127.0.0.1:%d" % port, *(["echo"] if verb == ["describe"] else [])],
                                 stdin=subprocess.DEVNULL, capture_output=True, timeout=50)
        bad(Ended(process), 1, "UNIMPLEMENTED", json.loads(process.stderr)["error"]["message"])


def context(proxy):
    before = datetime.now(timezone.utc)
    ended = call(proxy.port, "context", {}, "--timeout", "30s", "--traceparent", "00-%s-b7ad6b7169203331-01" % TRACE, "--label", "k=v ü",
                 "--context", '{"job_id":"job 7","attempt":3,"queue_name":"orders"}')
    found = ended.result
    equal((ended.code, found["job_id"], found["attempt"], found["queue_name"]), (0, "job 7", 3, "orders"))
    equal(found["correlation_context"], {"k": "v ü"})
    equal(found["trace_context"]["traceparent"][:36], "00-%s-" % TRACE)
    seconds = (datetime.fromisoformat(found["deadline"].replace("Z", "+00:00")) - before).total_seconds()
    assert 20 < seconds < 60, found
    _, request = proxy.of("request")[-1]
    equal((request["protocol_version"], request["job_id"], request["context"]["job_id"]), ("2", "job 7", "job 7"))


def cancelled(proxy, marks, ended, code):
    """The handler was told, by a frame for its request on another connection."""
    mark = marks.wait(event="cancelled")[-1]
    number, request = proxy.of("request")[-1]
    equal((ended, mark[2]), (code, request["job_id"]))
    aside, cancel = wait_until("a cancel frame", lambda: proxy.of("cancel"))[-1]
    equal((cancel["protocol_version"], cancel["job_id"], cancel["request_id"], cancel.get("hard_kill", False)),
          ("2", request["job_id"], request["request_id"], False))
    assert aside != number, "it came on the connection of the request"


def interrupt(proxy, marks):
    since = len(marks.read())
    with Process(*words(proxy.port, "sleep", {"ms": 60000})) as process:
        marks.wait(event="begin", since=since)
        code = process.end(signal.SIGINT)
        cancelled(proxy, marks, code, 130)


def deadline(port, marks):
    since = len(marks.read())
    bad(call(port, "sleep", {"ms": 60000}, "--timeout", "1s"), 5, "DEADLINE_EXCEEDED")
    (mark,) = marks.wait(event="cancelled", since=since)
    equal(len(marks.read("begin", job=mark[2])), 1)


def killed(port, marks):
    """Our program goes without a word: the runner sees the connection end."""
    since = len(marks.read())
    with Process(*words(port, "sleep", {"ms": 60000})) as process:
        marks.wait(event="begin", since=since)
        process.end(signal.SIGKILL)
    marks.wait(event="cancelled", since=since)


def too_long(port):
    bad(call(port, "big", {"bytes": 17 << 20}), 4, "RESOURCE_EXHAUSTED",
        "the message is larger than this side accepts (limit frame_bytes)")
    good(call(port, "echo", {"a": 1}), {"a": 1})


def running(folder):
    marks = Marks(folder)
    with Server(RUNNER, env=marks.env) as server, Proxy(server.port) as proxy:
        port = server.port
        check("numbers, text and a megabyte, there and back", values, port, folder)
        check("errors, a retry, a timeout, no such handler", faults, port)
        check("it cannot list", listing, port)
        check("it sees job, attempt, queue, deadline, labels and trace", context, proxy)
        check("the deadline passes: exit 5, and the handler is stopped", deadline, port, marks)
        check("Ctrl-C: a cancel frame on another connection", interrupt, proxy, marks)
        check("we are killed: the handler is stopped", killed, port, marks)
        check("a result over 16 MiB: exit 4, the next call is well", too_long, port)
        check("200 calls at once on one connection, half of 200 cancelled, a retry", many, "rrq://127.0.0.1:%d" % port)
        check("it crashes while it works: exit 3", lambda: bad(call(port, "crash", {}), 3, "UNAVAILABLE"))
        check("nobody listens: exit 3", lambda: bad(call(port, "echo", {}), 3, "UNAVAILABLE"))


# ---- a runner of the call's own -----------------------------------------------------------------------------------


def managed(marks):
    port = free_ports()
    good(call(port, "echo", {"a": 1}, command=RUNNER), {"a": 1})
    good(call(port, "echo", {"a": 2}, command=[*RUNNER, "--tcp-socket", "127.0.0.1:1"]), {"a": 2})
    for action, value in (("sleep", {"ms": 1}), ("fail", {}), ("crash", {})):
        call(0, action, value, command=RUNNER, env=marks.env)
    equal(len(marks.pids()), 3)
    gone(marks.pids())


def managed_faults(marks):
    bad(call(0, "fail", {"code": "ABORTED"}, command=RUNNER), 1, "ABORTED", "it failed")
    bad(call(0, "crash", {}, command=RUNNER), 3, "UNAVAILABLE")
    bad(call(0, "sleep", {"ms": 60000}, "--timeout", "3s", command=RUNNER, env=marks.env), 5, "DEADLINE_EXCEEDED")
    gone(marks.pids())


def busy_port():
    with Server(RUNNER) as server:
        bad(call(server.port, "echo", {}, command=RUNNER), 3, "UNAVAILABLE")


def slow_start(marks):
    good(call(0, "echo", {"a": 1}, command=["sh", "-c", 'sleep 1; "$@"', "sh", *RUNNER], env=marks.env), {"a": 1})
    gone(marks.pids())  # a child of the shell: the whole group is ended


def stubborn(marks):
    """SIGTERM does nothing to it (what is ignored outlives exec)."""
    command = ["sh", "-c", 'trap "" TERM; exec "$@"', "sh", *RUNNER]
    with Process(*words(0, "sleep", {"ms": 1000}, command=command), env=marks.env) as process:
        pid = int(marks.wait(event="begin")[0][4])
        with open("/proc/%d/status" % pid) as f:
            ignored = int(next(line for line in f if line.startswith("SigIgn:")).split()[1], 16)
        assert ignored & 1 << (signal.SIGTERM - 1), "it does not ignore SIGTERM"
        equal((process.process.wait(30), json.loads(process.said())), (0, {"slept_ms": 1000}))
        gone({pid})


def ended_with(signum, code, marks):
    with Process(*words(0, "sleep", {"ms": 60000}, command=RUNNER), env=marks.env) as process:
        pid = int(marks.wait(event="begin")[0][4])
        assert alive(pid)
        equal(process.end(signum), code)
        gone({pid})


def own(folder):
    check("started for the call, and gone after it", managed, Marks(folder, "managed"))
    check("its faults, crash and deadline", managed_faults, Marks(folder, "faults"))
    check("a port that is taken: exit 3", busy_port)
    check("a slow start, and a runner below a shell", slow_start, Marks(folder, "slow"))
    check("a runner that ignores SIGTERM is killed", stubborn, Marks(folder, "stubborn"))
    check("Ctrl-C ends the runner too", ended_with, signal.SIGINT, 130, Marks(folder, "interrupt"))
    check("SIGKILL of ours ends the runner too", ended_with, signal.SIGKILL, -signal.SIGKILL, Marks(folder, "kill"))
    check("200 calls at once to three processes, one of which crashes", many, "rrq://127.0.0.1:0", "3", *RUNNER)


def main():
    print("# runner %s" % " ".join(RUNNER), flush=True)
    with tempfile.TemporaryDirectory(prefix="ew-rrq-") as folder:
        running(folder)
        own(folder)
    finish("rrq %s runner" % NAME)


main()
