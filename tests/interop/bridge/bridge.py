"""One gateway between real peers. Behind it: Genkit apps (one dials it, one is started by it), Stepflow servers over pipes and over HTTP,
RRQ's Python runner, a script. Before it: `everywire call` over four wires, RRQ's worker, Stepflow's orchestrator, the genkit command.
Usage: bridge.py RRQ-WORKER STEPFLOW-PYTHON SDK-0.7 SDK-0.11 ORCHESTRATOR
    (with the Python in which rrq is installed, and tests/interop/rrq in PYTHONPATH; EVERYWIRE is the program)

SPDX-License-Identifier: Apache-2.0
"""
import collections
import json
import os
import signal
import sys
import tempfile

from peers import AllMarks, Gateway, Manager, Orchestrator, Worker, error_of
from support import Redis, check, equal, finish, gone, wait_until

RRQ, PYTHON, PIPE_SDK, WEB_SDK, ORCHESTRATOR = sys.argv[1:]
WIRES = ("http", "jsonrpc", "rrq", "stepflow+http")
STREAMS = ("http", "jsonrpc")
TEXT = "Zoë 世界 \U0001f600 \" \\ / \n\t\u2028 ключ"
LONG = 60000  # ms: nothing here waits for the end of it

# A peer behind the gateway, under its prefix. fail, who: what two actions are called; fault: the status of its failures; details: whether
# they have them; exact: a number that it keeps; text: how many letters of a long text, which has two bytes for each; chunks: whether it has
# them; stops: whether its handlers hear of a cancel (the SDK of Stepflow does not tell them).
Origin = collections.namedtuple("Origin", "name fail who fault details exact text chunks stops")
BIG = "123456789012345678901234567890"
ORIGINS = [
    Origin("js", "fail", "who", "ABORTED", False, "9007199254740991", 500000, True, True),
    Origin("own", "fail", "who", "ABORTED", False, "9007199254740991", 500000, True, True),
    Origin("pipe", "fail", "who", "UNKNOWN", False, BIG, 50000, False, False),  # it takes lines of 512 KiB
    Origin("web", "boom", "pid", "UNKNOWN", False, BIG, 500000, False, False),
    Origin("jobs", "fail", "who", "ABORTED", True, BIG, 500000, False, True),
    Origin("exec", "fail", "who", "ABORTED", True, BIG, 500000, True, True),
]
HOW = {True: " reaches the handler", False: ", and the handler runs on"}
TRACE = "0af7651916cd43dd8448eb211c80319c"
FAIL = {"status": "ABORTED", "code": "ABORTED", "message": "told why: " + TEXT, "details": {"k": [1]}}

# ---- everywire call, over each wire, of each peer -----------------------------------------------------------------


def results(gateway, wire, origin):
    value = {"text": TEXT, "": {}, "list": [None, True, 0.1, -1, []], "b": 1, "a": 2}
    for action in (origin.name + "/echo", "/flow/%s/echo" % origin.name):
        equal(gateway.call(wire, action, value).result(), value)
    ended = gateway.call(wire, origin.name + "/echo", None, text='{"n":%s}' % origin.exact)
    equal((ended.code, ended.out.replace(" ", "")), (0, '{"n":%s}\n' % origin.exact), repr(ended))


def large(gateway, wire, origin):
    value = {"text": "x€" * (origin.text // 2)}
    equal(gateway.call(wire, origin.name + "/echo", value).result(), value)


def faults(gateway, wire, origin):
    error = gateway.call(wire, "%s/%s" % (origin.name, origin.fail), FAIL).fails(1, origin.fault, FAIL["message"])
    if origin.details:
        equal(error["details"], FAIL["details"])
    gateway.call(wire, origin.name + "/nothing", {}).fails(1, "NOT_FOUND")


def chunks(gateway, wire, origin):
    """All of them in order where both wires carry them, else the result alone."""
    if origin.chunks:
        found = gateway.call(wire, origin.name + "/stream", {"n": 50}, "--stream").lines()
        sent = [{"chunk": {"i": i, "text": "Zoë \U0001f600 %d" % i}} for i in range(50)] if wire in STREAMS else []
        equal(found, [*sent, {"result": {"n": 50}}])
    else:
        equal(gateway.call(wire, origin.name + "/echo", {"a": 1}, "--stream").lines(), [{"result": {"a": 1}}])


def told(marks, origin, since, n=1):
    """The peer has noted that its handlers were stopped; one that is not told runs on to its end."""
    marks.wait(n, event="cancelled" if origin.stops else "end", since=since)
    equal(len(marks.read("begin", since=since)), n, "handlers that began")
    equal(len(marks.read("end" if origin.stops else "cancelled", since=since)), 0, "the other marks")


def all_of(running):
    """Ends what still runs of these."""
    for process in running:
        process.__exit__()


def slow(origin, ms):
    """What to ask a peer for that is to be stopped."""
    return {"ms": LONG if origin.stops else ms}


def cancel(gateway, marks, origin):
    since = len(marks.read())
    running = [gateway.begin(wire, origin.name + "/slow", slow(origin, 2000)) for wire in WIRES]
    try:
        marks.wait(len(WIRES), event="begin", since=since)
        for wire, process in zip(WIRES, running):
            equal((wire, process.end(signal.SIGINT)), (wire, 130), process.said())
    finally:
        all_of(running)
    told(marks, origin, since, len(WIRES))
    for wire in WIRES:
        equal(gateway.call(wire, origin.name + "/echo", {"after": 1}).result(), {"after": 1})


def deadline(gateway, marks, origins):
    """Of all of them at once."""
    since = len(marks.read())
    pairs = [(wire, origin) for origin in origins for wire in WIRES]
    running = [gateway.begin(wire, origin.name + "/slow", slow(origin, 4000), "--timeout", "2s") for wire, origin in pairs]
    try:
        for (wire, origin), process in zip(pairs, running):
            code = process.process.wait(20)
            equal((wire, origin.name, code, error_of(process.said())["status"]), (wire, origin.name, 5, "DEADLINE_EXCEEDED"))
    finally:
        all_of(running)
    told(marks, origins[0], since, len(pairs))


def pair(gateway, wire, origin):
    name = "%s to %s: " % (wire, origin.name)
    check(name + "results, a large number", results, gateway, wire, origin)
    check(name + "a long text", large, gateway, wire, origin)
    check(name + "failures", faults, gateway, wire, origin)
    check(name + "chunks", chunks, gateway, wire, origin)


def listing(gateway):
    """What each peer has, by its prefix; what a peer of RRQ cannot list is named in the file."""
    keys = set(gateway.listed())
    wanted = {"/flow/%s/%s" % (origin.name, name) for origin in ORIGINS for name in ("echo", "slow", origin.fail, origin.who)}
    assert wanted <= keys, sorted(wanted - keys)
    equal({key for key in keys if key.startswith("/flow/pipe/")},
          {"/flow/pipe/" + name for name in ("echo", "fail", "slow", "who", "where", "roundtrip")})
    assert {"/flow/web/greet", "/flow/js/sum", "/flow/own/stream", "/flow/jobs/context"} <= keys, sorted(keys)
    assert "Whom to greet" in json.dumps(gateway.listed()["/flow/web/greet"]), "no schema"


def crosses(gateway):
    for wire in WIRES:
        traced = ["--traceparent", "00-%s-b7ad6b7169203331-01" % TRACE] if wire != "jsonrpc" else []
        found = gateway.call(wire, "jobs/context", {}, "--timeout", "30s", *traced).result()
        equal((wire, found["deadline"] is not None), (wire, wire in ("http", "rrq")), repr(found))
        equal((wire, TRACE in json.dumps(found["trace_context"])), (wire, wire != "jsonrpc"), repr(found))


def input_stream(gateway):
    for name in ("js", "own"):
        equal(gateway.stream("jsonrpc", name + "/sum", "1\n2\n39\n", "--stream").lines(),
              [{"chunk": 1}, {"chunk": 3}, {"chunk": 42}, {"result": 42}])
    for name in ("pipe", "web", "jobs"):
        gateway.stream("jsonrpc", name + "/echo", "1\n").fails(1, "UNIMPLEMENTED")


def inputs(gateway):
    """Values that are no objects: RRQ has no place for them (no input at all is {} there), all others do."""
    for origin in ORIGINS:
        for text in ("null", "17", '"ü"', "[1,[2]]"):
            ended = gateway.call("http", origin.name + "/echo", None, text=text)
            if origin.name != "jobs":
                equal(ended.result(), json.loads(text))
            elif text == "null":
                equal(ended.result(), {})
            else:
                ended.fails(1, "INVALID_ARGUMENT")


def blobs(gateway):
    for name in ("pipe", "web"):
        for wire in WIRES:
            equal(gateway.call(wire, name + "/roundtrip", {"data": {"text": TEXT}, "ms": 1}).result()["equal"], True)


def at_once(gateway):
    """Sixty calls, of all peers over all wires."""
    jobs = [(wire, origin.name, i) for i, (wire, origin) in enumerate((w, o) for _ in range(5) for w in WIRES for o in ORIGINS)][:60]
    running = [(i, gateway.begin(wire, name + "/echo", {"i": i})) for wire, name, i in jobs]
    try:
        for i, process in running:
            equal((process.process.wait(30), json.loads(process.said())), (0, {"i": i}))
    finally:
        all_of(process for _, process in running)


def calls(gateway, marks):
    check("it offers what all of them have", listing, gateway)
    for origin in ORIGINS:
        for wire in WIRES:
            pair(gateway, wire, origin)
        check("all wires to %s: Ctrl-C%s" % (origin.name, HOW[origin.stops]), cancel, gateway, marks, origin)
    for stops, how in HOW.items():
        origins = [origin for origin in ORIGINS if origin.stops == stops]
        check("all wires to %s: the deadline%s" % (", ".join(origin.name for origin in origins), how), deadline, gateway, marks, origins)
    check("deadlines and traces reach RRQ's runner, where the wire says them", crosses, gateway)
    check("input streams, where the peer has them", input_stream, gateway)
    check("inputs that are no objects", inputs, gateway)
    check("blobs of Stepflow's servers", blobs, gateway)
    check("sixty calls at once", at_once, gateway)


# ---- RRQ's worker: the gateway is its runner ----------------------------------------------------------------------


def jobs_done(worker):
    values = [{"i": i, "text": TEXT, "n": 9007199254740991} for i in range(len(ORIGINS) * 5)]
    found = worker.run(*[(ORIGINS[i % len(ORIGINS)].name + "/echo", value) for i, value in enumerate(values)])
    for value, (_, job) in zip(values, found):
        equal((job["status"], json.loads(job["result"]), job["current_retries"]), ("COMPLETED", value, "0"))
    (_, streamed), (_, exact), (_, greeted) = worker.run(("js/stream", {"n": 3}), ("exec/echo", {"n": 18446744073709551615}),
                                                         ("/flow/web/greet", {"name": "Ada"}))
    equal([json.loads(job["result"]) for job in (streamed, exact, greeted)],
          [{"n": 3}, {"n": 18446744073709551615}, {"text": "Hello, Ada!"}])


def jobs_failed(worker):
    found = worker.run(*[("%s/%s" % (origin.name, origin.fail), FAIL, {"max_retries": 1}) for origin in ORIGINS], ("nothing", {}))
    for origin, (_, job) in zip(ORIGINS, found):
        equal((job["status"], job["current_retries"]), ("FAILED", "1"), repr(job))
        assert FAIL["message"] in job["last_error"], job
    _, job = found[-1]
    equal((job["status"], job["last_error"]), ("FAILED", "No handler registered for function 'nothing'"))


def jobs_stopped(worker, marks):
    for stops in HOW:
        origins = [origin for origin in ORIGINS if origin.stops == stops]
        since = len(marks.read())
        for _, job in worker.run(*[(origin.name + "/slow", slow(origin, 3000), {"job_timeout_seconds": 1}) for origin in origins]):
            equal(job["status"], "FAILED", repr(job))
        told(marks, origins[0], since, len(origins))


def job_context(worker):
    """What RRQ says about a job is the context of a flow, and crosses to another runner."""
    options = {"trace_context": {"traceparent": "00-%s-b7ad6b7169203331-01" % TRACE}}
    for name in ("js/who", "jobs/context"):
        ((ident, job),) = worker.run((name, {}, options))
        result = json.loads(job["result"])
        context = result.get("context", result)
        equal((context["job_id"], context["attempt"], context["queue_name"]), (ident, 1, "rrq:queue:default"), repr(context))
        assert TRACE in json.dumps(context["trace_context"]), context


def jobs(folder, server, gateway, marks):
    with Worker(RRQ, folder, server, gateway.port) as worker:
        check("RRQ's worker: flows, components and a script as jobs", jobs_done, worker)
        check("RRQ's worker: jobs that fail, one that nobody has", jobs_failed, worker)
        check("RRQ's worker: jobs that time out", jobs_stopped, worker, marks)
        check("RRQ's worker: a job's context", job_context, worker)
        check("RRQ's worker ends in order", lambda: equal(worker.process.end(), 0, "exit code"))


# ---- Stepflow's orchestrator: the gateway is its component server -------------------------------------------------


def flow(orchestrator):
    """Each step hands its result to the next peer."""
    steps, value = [], {"$input": "$"}
    for origin in ORIGINS:
        steps.append((origin.name, "/c/%s/echo" % origin.name, {"by": origin.name, "of": value}))
        value = {"$step": origin.name}
    data = [{"i": i, "text": TEXT} for i in range(10)]
    wanted = data
    for origin in ORIGINS:
        wanted = [{"by": origin.name, "of": entry} for entry in wanted]
    equal(orchestrator.run(steps, *data), [{"outcome": "success", "result": entry} for entry in wanted])


def flow_fails(orchestrator):
    for origin in ORIGINS:
        (ended,) = orchestrator.run([("a", "/c/%s/%s" % (origin.name, origin.fail), {"$input": "$"})], FAIL)
        equal((ended["outcome"], ended["error"]["code"]), ("failed", -32100), repr(ended))
        assert FAIL["message"] in ended["error"]["message"], ended


def flow_context(orchestrator):
    """What the orchestrator says about a step reaches a server of Stepflow behind the gateway."""
    for name in ("pipe", "web"):
        (ended,) = orchestrator.run([("the step", "/c/%s/where" % name, {})], {})
        found = ended["result"]
        equal((len(found["run_id"]), found["step_id"], found["attempt"]), (36, "the step", 1), repr(found))


def flow_lists(orchestrator):
    found = {entry["component"] for entry in orchestrator.rest("/components")["components"]}
    for origin in ORIGINS:
        assert any("%s/echo" % origin.name in name for name in found), sorted(found)


def flows(folder, gateway):
    with Orchestrator(ORCHESTRATOR, folder, gateway.port) as orchestrator:
        check("Stepflow's orchestrator: a flow through all peers", flow, orchestrator)
        check("Stepflow's orchestrator: steps that fail", flow_fails, orchestrator)
        check("Stepflow's orchestrator: a step's context", flow_context, orchestrator)
        check("Stepflow's orchestrator: it lists them", flow_lists, orchestrator)
        check("Stepflow's orchestrator ends in order", lambda: equal(orchestrator.process.end(), 0, "exit code"))


# ---- the genkit command: the gateway is its runtime ---------------------------------------------------------------


def genkit_runs(manager):
    wait_until("the gateway at the genkit command", lambda: manager.query("getCurrentRuntime").get("id"))
    assert {"/flow/%s/echo" % origin.name for origin in ORIGINS} <= set(manager.query("listActions"))
    for origin in ORIGINS:
        equal(manager.run("/flow/%s/echo" % origin.name, {"text": TEXT})["result"], {"text": TEXT})
        error = manager.run("/flow/%s/%s" % (origin.name, origin.fail), FAIL)["error"]
        equal(error["code"], {"ABORTED": 10, "UNKNOWN": 2}[origin.fault], repr(error))
        assert FAIL["message"] in error["message"], error


def genkit_streams(manager):
    for origin in ORIGINS:
        if origin.chunks:
            *found, end = manager.stream("/flow/%s/stream" % origin.name, {"n": 50})
            equal([chunk["i"] for chunk in found], list(range(50)))
            equal(end["result"], {"n": 50})
        else:
            (end,) = manager.stream("/flow/%s/echo" % origin.name, {"a": 1})
            equal(end["result"], {"a": 1})


def genkit_cancels(manager, marks):
    for origin in ORIGINS:
        since = len(marks.read())
        trace, wait = manager.begin("/flow/%s/slow" % origin.name, slow(origin, 1500))
        marks.wait(event="begin", since=since)
        equal(manager.cancel(trace), {"message": "Action cancelled"})
        equal(wait()["error"]["code"], 1)
        told(marks, origin, since)


# ---- peers that are lost, and the end -----------------------------------------------------------------------------


def killed(gateway, marks, origin, again):
    """SIGKILL of the peer while four calls run in it; again() starts it, where the gateway does not."""
    since = len(marks.read())
    running = [gateway.begin(wire, origin.name + "/slow", {"ms": LONG}) for wire in WIRES]
    try:
        pids = {int(mark[4]) for mark in marks.wait(len(WIRES), event="begin", since=since)}
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for wire, process in zip(WIRES, running):
            code = process.process.wait(10)
            wanted = "INTERNAL" if origin.name == "exec" else "UNAVAILABLE"  # of a script nothing is left to be reached
            equal((wire, code, error_of(process.said())["status"]), (wire, 1, wanted))
    finally:
        all_of(running)
    gone(pids)
    again()
    who = "%s/%s" % (origin.name, origin.who)
    wait_until("another process", lambda: gateway.call("http", who, {}).code == 0, 30)
    for wire in WIRES:
        assert gateway.call(wire, who, {}).result()["pid"] not in pids
        equal(gateway.call(wire, origin.name + "/echo", {"a": 1}).result(), {"a": 1})


class App:
    """The Genkit app that dials the gateway, and is started by hand."""

    def __init__(self, gateway, marks):
        self.start = lambda: gateway.app(marks)
        self.process = self.start()

    def again(self):
        self.process.end(signal.SIGKILL)
        self.process = self.start()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.process.end(signal.SIGKILL)


def ready(gateway, origins):
    for origin in origins:
        wait_until("an answer of " + origin.name, lambda: gateway.call("http", origin.name + "/echo", {}).code == 0, 30)


OURS = [origin for origin in ORIGINS if origin.name != "js"]  # whom the gateway starts


def leaves(gateway, marks, signum, code):
    """The gateway ends while calls run in every peer that it started: nobody is left."""
    ready(gateway, OURS)
    since = len(marks.read())
    running = [gateway.begin("jsonrpc", origin.name + "/slow", {"ms": LONG}) for origin in OURS]
    try:
        pids = {int(mark[4]) for mark in marks.wait(len(OURS), event="begin", since=since)}
        assert len(pids) == len(OURS) and pids <= set(marks.processes()), (pids, marks.processes())
        equal(gateway.end(signum), code, "exit code")
        wait_until("an end of all processes", lambda: not marks.processes())
        for process in running:
            assert process.process.wait(10) in (1, 3), process.said()
            equal(error_of(process.said())["status"], "UNAVAILABLE")
    finally:
        all_of(running)


def leaves_idle(gateway, marks):
    ready(gateway, OURS)
    assert len(marks.processes()) >= 5, marks.processes()  # the runner of RRQ is two
    equal(gateway.end(), 0, "exit code")
    wait_until("an end of all processes", lambda: not marks.processes())


def whole(folder, server, manager, marks):
    sdks = PYTHON, PIPE_SDK, WEB_SDK
    with Gateway(folder, marks, sdks, [manager.url]) as gateway:
        with App(gateway, marks) as app:
            ready(gateway, ORIGINS)
            calls(gateway, marks)
            jobs(folder, server, gateway, marks)
            flows(folder, gateway)
            check("the genkit command: runs, failures", genkit_runs, manager)
            check("the genkit command: streams", genkit_streams, manager)
            check("the genkit command: cancels", genkit_cancels, manager, marks)
            for origin in ORIGINS:
                check("SIGKILL of %s in mid-call, and calls after it" % origin.name, killed, gateway, marks, origin,
                      app.again if origin.name == "js" else lambda: None)
        check("SIGTERM of the gateway in mid-call: nobody is left", leaves, gateway, marks, signal.SIGTERM, 1)
    with Gateway(folder, marks, sdks) as gateway:
        check("SIGKILL of the gateway in mid-call: nobody is left", leaves, gateway, marks, signal.SIGKILL, -signal.SIGKILL)
    with Gateway(folder, marks, sdks) as gateway:
        check("SIGTERM of the gateway when it is idle: nobody is left", leaves_idle, gateway, marks)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # in order: whoever was started ends, too
    with tempfile.TemporaryDirectory(prefix="ew-bridge-") as folder:
        marks = AllMarks(folder)
        try:
            with Redis(folder) as server, Manager(folder) as manager:
                whole(folder, server, manager, marks)
        except Exception as err:
            def fail(problem=err):
                raise problem
            check("the peers start", fail)
        finally:
            marks.sweep()
    finish("bridge")


main()
