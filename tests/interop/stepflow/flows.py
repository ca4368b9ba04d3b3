"""The real Stepflow orchestrator runs flows whose components are ours: it starts them (a command) or finds them (a URL). Each flow goes
through its REST API, and is looked at there.
Usage: flows.py SERVER-VERSION SERVER-PROGRAM KIND COMMAND [ARGS]      (EVERYWIRE is the program)
KIND is everywire for components.c, python for components.py, which proves this script: everything here holds for the real worker, too.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import signal
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from support import EVERYWIRE, Marks, Process, alive, check, equal, finish, free_ports, gone, listens, wait_until

VERSION = tuple(int(part) for part in sys.argv[1].split("."))
SERVER = sys.argv[2]
KIND = sys.argv[3]
COMMAND = sys.argv[4:]
TEXT = "Zoë 世界 \U0001f600 \" \\ / \n\t\u2028 ключ"
INPUT = {"$input": "$"}

# ---- the orchestrator and its workers -----------------------------------------------------------------------------


def to_listen(port):
    """How a worker is told where to listen."""
    return ["--port", str(port)] if KIND == "python" else ["--listen", "stepflow=127.0.0.1:%d" % port]


class StepflowMarks(Marks):
    def __init__(self, folder):
        super().__init__(folder)
        self.env = {"STEPFLOW_MARKS": self.path}


class Worker(Process):
    """A worker that was started by hand."""

    def __init__(self, marks, port, command=None):
        self.port = port
        super().__init__(*(command or [*COMMAND, *to_listen(port)]), env=marks.env)
        try:
            wait_until("a worker on port %d" % port, lambda: self.process.poll() is not None or listens(port))
            if self.process.poll() is not None:
                raise RuntimeError("the worker left:\n" + self.said())
        except Exception:
            self.__exit__()
            raise


class Orchestrator:
    """stepflow-server and the folder of its config; its components stand below /c/. plugin: how it gets at them."""

    def __init__(self, marks, plugin=None, retry_ms=200):
        self.folder = tempfile.TemporaryDirectory(prefix="ew-stepflow-")
        self.marks = marks
        if not plugin:  # the environment is all that the worker gets
            env = dict(marks.env, **{name: os.environ[name] for name in ("PYTHONPATH", "ASAN_OPTIONS") if name in os.environ})
            plugin = {"command": COMMAND[0], "args": [*COMMAND[1:], *to_listen(0)], "env": env}
        backoff = {"type": "constant", "delayMs": retry_ms}
        if VERSION[:2] == (0, 10):
            plugin = dict(plugin, retry={"maxAttempts": 3, "backoff": backoff})
        config = {
            "plugins": {"builtin": {"type": "builtin"}, "c": {"type": "stepflow", **plugin}},
            "routes": {"/c/{*component}": [{"plugin": "c"}], "/builtin/{*component}": [{"plugin": "builtin"}]},
            "stateStore" if VERSION < (0, 10) else "storageConfig": {"type": "inMemory"},
        }
        if VERSION >= (0, 11):
            config["retry"] = {"transportMaxRetries": 3, "backoff": backoff}
        path = os.path.join(self.folder.name, "stepflow-config.yml")
        with open(path, "w") as f:
            json.dump(config, f)
        self.process = Process(SERVER, "--port", "0", "--config", path, "--log-level", "info", cwd=self.folder.name)
        try:
            self.port = wait_until("the orchestrator's port", self._port, 40)
            wait_until("a healthy orchestrator", lambda: self.rest("GET", "/health")["status"] == "healthy")
        except Exception:
            self.__exit__(True)
            raise

    def _port(self):
        if self.process.process.poll() is not None:
            raise RuntimeError("the orchestrator left")
        for line in self.process.said().splitlines():
            if line.startswith('{"port"'):
                return json.loads(line)["port"]

    def __enter__(self):
        return self

    def __exit__(self, kind, *args):
        if kind:
            print("# the orchestrator said:\n# " + self.process.said()[-4000:].replace("\n", "\n# "))
        self.process.__exit__()
        for pid in self.marks.pids():
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        self.folder.cleanup()

    def rest(self, method, path, body=None):
        request = urllib.request.Request("http://127.0.0.1:%d/api/v1%s" % (self.port, path), method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=50) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as err:
            raise AssertionError("%s %s: %d %s" % (method, path, err.code, err.read())) from None

    def flow(self, steps, output):
        return self.rest("POST", "/flows", {"flow": {"name": "test", "steps": steps, "output": output}})["flowId"]

    def run(self, flow_id, *inputs):
        """Runs it once for each input, all at once; returns how each ended: {"outcome":...}."""
        body = {"flowId": flow_id, "input": list(inputs), "maxConcurrency": len(inputs)}
        if VERSION >= (0, 10):
            body.update(wait=True, timeoutSecs=45)
        run = self.rest("POST", "/runs", body)["runId"]
        return [item.get("result") for item in self.rest("GET", "/runs/%s/items" % run)["items"]]

    def steps(self, output, *inputs, **steps):
        """A flow whose steps are NAME=(component, input), run once for each input."""
        flow = self.flow([dict({"id": name, "component": step[0], "input": step[1]}, **dict(step[2:])) for name, step in steps.items()],
                         {"$step": output})
        return self.run(flow, *(inputs or [{}]))

    def one(self, component, value):
        """One component on a value; how it ended."""
        return self.steps("a", value, a=(component, INPUT))[0]

    def good(self, component, value, wanted):
        equal(self.one(component, value), {"outcome": "success", "result": wanted})

    def bad(self, component, value, code, text):
        """It fails, and the text is in the result. Up to 0.10 the code is in a text, too."""
        ended = self.one(component, value)
        equal(ended["outcome"], "failed")
        error = ended["error"]
        if VERSION >= (0, 11):
            assert error["code"] == code and text in error["message"], error
        else:
            assert any("(%d)" % code in entry["error"] and text in entry["error"] for entry in error["data"]["stack"]), error
        return error


# ---- flows --------------------------------------------------------------------------------------------------------


def listing(o):
    found = {entry["component"]: entry for entry in o.rest("GET", "/components")["components"] if "Greets" in entry["description"] or
             entry["description"] == "Returns its input."}
    names = {name.rpartition("/")[2]: name for name in found}
    equal(sorted(names), ["echo", "greet"])
    assert found[names["greet"]]["input_schema"] and found[names["greet"]]["output_schema"], found
    equal(o.one("/c" + names["greet"], {"name": "Ada", "times": 2}), {"outcome": "success", "result": {"text": "Hello, Ada! Hello, Ada!"}})


def chain(o):
    value = {"text": TEXT, "n": [18446744073709551615, -9223372036854775808, 0.1, 1e-7], "": {}, "null": None, "deep": [[[{"a": []}]]]}
    ended, = o.steps("c", value, a=("/c/echo", INPUT), b=("/c/echo", {"again": {"$step": "a"}}),
                     c=("/c/echo", {"first": {"$step": "a"}, "second": {"$step": "b", "path": "$.again.text"}}))
    equal(ended, {"outcome": "success", "result": {"first": value, "second": TEXT}})
    for plain in (None, True, 17, "", [], {}, [None]):
        ended, = o.steps("a", {"v": plain}, a=("/c/echo", {"$input": "v"}))
        equal(ended, {"outcome": "success", "result": plain})


def context(o):
    flow = o.flow([{"id": "the step", "component": "/c/where", "input": {}}], {"$step": "the step"})
    found = [ended["result"] for ended in o.run(flow, 1, 2)]
    for entry in found:
        equal((entry["flow_id"], entry["step_id"], entry["attempt"]), (flow, "the step", 1))
        equal(len(entry["run_id"]), 36)


def blobs(o):
    """An id is the hash of the text as it was received."""
    o.good("/c/put_blob", {"data": {"b": 2, "a": 1}}, {"blob_id": "3fb75453225c732a76b7899ea2096dda1455189c89817239732182f73fe5a09f"})
    o.good("/c/put_blob", {"data": "é"}, {"blob_id": "f2886017e9c7abacf804b54d64787dce2b611c9544ba21f3affdd126a6e50086"})
    data = {"text": TEXT, "list": [None, 1, {"k": []}]}
    ended, = o.steps("b", {"data": data}, a=("/c/put_blob", INPUT), b=("/builtin/get_blob", {"blob_id": {"$step": "a", "path": "blob_id"}}))
    equal(ended, {"outcome": "success", "result": {"data": data}})
    ended, = o.steps("b", {"data": data}, a=("/builtin/put_blob", {"data": {"$input": "data"}, "blob_type": "data"}),
                     b=("/c/get_blob", {"blob_id": {"$step": "a", "path": "blob_id"}}))
    equal(ended, {"outcome": "success", "result": {"data": data}})
    for value in (None, 0, "", [], {}):
        equal(o.one("/c/roundtrip", {"data": value})["result"]["equal"], True)


def no_blob(o):
    ended = o.one("/c/get_blob", {"blob_id": "0" * 64})
    equal(ended["outcome"], "failed")
    o.good("/c/echo", {"a": 1}, {"a": 1})


def many_blobs(o):
    o.good("/c/many_blobs", {"n": 30}, {"different": 30, "equal": True})
    flow = o.flow([{"id": "a", "component": "/c/roundtrip", "input": INPUT}], {"$step": "a"})
    found = [ended["result"] for ended in o.run(flow, *[{"data": {"i": i}, "ms": 50} for i in range(100)])]
    equal((len({entry["blob_id"] for entry in found}), {entry["equal"] for entry in found}), (100, {True}))


def evaluate(o):
    """A component that has the orchestrator run another flow, whose components are ours."""
    inner = o.flow([{"id": "a", "component": "/c/slow", "input": INPUT}], {"$step": "a"})
    flow = o.flow([{"id": "a", "component": "/c/evaluate", "input": {"flow_id": inner, "input": {"ms": {"$input": "ms"}}}}], {"$step": "a"})
    equal([ended["result"]["result"] for ended in o.run(flow, *[{"ms": i} for i in range(10)])], [{"slept_ms": i} for i in range(10)])


def failing(o):
    o.bad("/c/boom", {"message": "told why: " + TEXT}, -32003 if KIND == "python" and VERSION < (0, 10) else -32100, "told why: " + TEXT)
    error = o.bad("/c/nothing", {}, -32001, "")
    if VERSION >= (0, 11):
        assert "/nothing" in error["data"]["component"], error


def goes_on(o):
    ended, = o.steps("b", a=("/c/boom", {"message": "no"}, ("onError", {"action": "useDefault", "defaultValue": {"instead": 1}})),
                     b=("/c/echo", {"got": {"$step": "a"}}))
    equal(ended, {"outcome": "success", "result": {"got": {"instead": 1}}})


def parallel(o):
    flow = o.flow([{"id": "a", "component": "/c/slow", "input": {"ms": {"$input": "ms"}}},
                   {"id": "b", "component": "/c/echo", "input": {"i": {"$input": "i"}, "slept": {"$step": "a"}}}], {"$step": "b"})
    found = o.run(flow, *[{"i": i, "ms": 300 - i} for i in range(100)])
    equal([ended["result"] for ended in found], [{"i": i, "slept": {"slept_ms": 300 - i}} for i in range(100)])


def large(o):
    n = 1500000
    ended, = o.steps("b", a=("/c/big", {"bytes": n}), b=("/c/echo", {"text": {"$step": "a"}, "k": 1}))
    equal(ended, {"outcome": "success", "result": {"text": "x" * n, "k": 1}})


def flows(o):
    check(name("it lists the components"), listing, o)
    check(name("chains of components, values of all kinds"), chain, o)
    check(name("a component knows its run, flow, step and attempt"), context, o)
    check(name("blobs both ways"), blobs, o)
    check(name("a blob that is not there"), no_blob, o)
    check(name("30 blobs at once, 100 components with blobs at once"), many_blobs, o)
    check(name("components that have flows run"), evaluate, o)
    check(name("100 items at once"), parallel, o)
    check(name("a megabyte and a half"), large, o)
    check(name("a component that fails, one that is not there"), failing, o)
    check(name("a flow that goes on after a failure"), goes_on, o)


# ---- what goes wrong ----------------------------------------------------------------------------------------------


def behind(o, *args):
    """Runs one component in a thread; returns a function that waits for how it ended."""
    ended = []

    def body():
        try:
            ended.append(o.one(*args))
        except Exception as err:
            ended.append(err)
    thread = threading.Thread(target=body, daemon=True)
    thread.start()

    def wait():
        thread.join(50)
        assert ended, "no end"
        return ended[0]
    return wait


def killed(o):
    """SIGKILL of a worker in mid-run: the orchestrator starts another one, and runs the component again."""
    since = len(o.marks.read())
    wait = behind(o, "/c/where", {"ms": 1500})
    (mark,) = o.marks.wait(event="begin", since=since)
    os.kill(int(mark[4]), signal.SIGKILL)
    ended = wait()
    equal((ended["outcome"], ended["result"]["attempt"]), ("success", 2))
    pids = {int(mark[4]) for mark in o.marks.read(since=since)}
    equal(len(pids), 2)
    equal(alive(int(mark[4])), False)
    equal(o.one("/c/roundtrip", {"data": {"after": 1}})["result"]["equal"], True)


def crashes(o):
    """Three attempts or four, then it gives up; the next flow is well."""
    since = len(o.marks.read())
    ended = o.one("/c/crash", {})
    equal(ended["outcome"], "failed")
    pids = [mark[4] for mark in o.marks.read("begin", "crash", since=since)]
    equal(len(set(pids)), len(pids))
    assert len(pids) in (3, 4), pids
    o.good("/c/echo", {"a": 1}, {"a": 1})


def ends(o, worker=None):
    """SIGTERM of the orchestrator in mid-run: it goes (0.9 when the run has ended), and the worker that it started with it."""
    since = len(o.marks.read())
    behind(o, "/c/slow", {"ms": 20000 if VERSION >= (0, 10) else 2000})
    (mark,) = o.marks.wait(event="begin", handler="slow", since=since)
    equal(o.process.end(signal.SIGTERM), 0, "exit code")
    if worker:
        equal(alive(worker.pid), True)
    else:
        gone({int(mark[4])})


def drains(o, worker):
    """SIGTERM of a worker: what runs ends well, new connections are refused, and it goes."""
    since = len(o.marks.read())
    wait = behind(o, "/c/slow", {"ms": 1500})
    o.marks.wait(event="begin", since=since)
    worker.process.send_signal(signal.SIGTERM)
    wait_until("a port that nobody listens on", lambda: not listens(worker.port))
    equal(wait(), {"outcome": "success", "result": {"slept_ms": 1500}})
    code = worker.process.wait(20)
    assert code == 0 or KIND == "python" and code == -signal.SIGTERM, code


def comes_back(o, worker):
    """A worker that is killed in mid-run and started again at the same place; only newer orchestrators try again."""
    since = len(o.marks.read())
    wait = behind(o, "/c/where", {"ms": 1000})
    o.marks.wait(event="begin", since=since)
    equal(worker.end(signal.SIGKILL), -signal.SIGKILL)
    with Worker(o.marks, worker.port):
        ended = wait()
        if VERSION >= (0, 10):
            equal((ended["outcome"], ended["result"]["step_id"]), ("success", "a"))
            assert ended["result"]["attempt"] >= 2, ended
        else:
            equal(ended["outcome"], "failed")
        o.good("/c/echo", {"a": 1}, {"a": 1})


# ---- the program itself -------------------------------------------------------------------------------------------


def demo_flows(o):
    flow = o.flow([{"id": "a", "component": "/c/greet", "input": {"name": {"$input": "name"}}},
                   {"id": "b", "component": "/c/flow/echo", "input": {"said": {"$step": "a"}}}], {"$step": "b"})
    equal([ended["result"] for ended in o.run(flow, *[{"name": "N%d" % i} for i in range(20)])],
          [{"said": "Hello, N%d!" % i} for i in range(20)])
    o.bad("/c/fail", {"status": "ABORTED", "message": "as asked"}, -32100, "as asked")
    o.good("/c/sha256", {}, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a")


def demo(marks):
    with Orchestrator(marks, {"command": EVERYWIRE, "args": ["serve", "--demo", *to_listen(0)]}) as o:
        demo_flows(o)


def demo_port(marks):
    """A program that runs already, and speaks every wire on its port."""
    port = free_ports()
    with Worker(marks, port, [EVERYWIRE, "serve", "--demo", "--listen", "127.0.0.1:%d" % port]) as worker, \
            Orchestrator(marks, {"url": "http://127.0.0.1:%d" % port}) as o:
        demo_flows(o)
        equal(worker.end(), 0, "exit code")


# ---- all of it ----------------------------------------------------------------------------------------------------

_how = ""


def name(text):
    return "%s: %s" % (_how, text)


def in_order(what, part, *args):
    """Runs a part that has checks in it; what goes wrong around them is a failed check, too."""
    try:
        part(*args)
    except Exception as err:
        def fail(problem=err):
            raise problem
        check(what, fail)


def started(marks):
    with Orchestrator(marks) as o:
        flows(o)
        check(name("SIGKILL of the worker in mid-run: another one, attempt 2"), killed, o)
        check(name("a component that takes its worker down"), crashes, o)
        check(name("SIGTERM of the orchestrator in mid-run: the worker ends, too"), ends, o)


def found(marks):
    port = free_ports()
    url = {"url": "http://127.0.0.1:%d" % port}
    with Worker(marks, port) as worker, Orchestrator(marks, url) as o:
        flows(o)
        check(name("SIGTERM of the worker: what runs ends well"), drains, o, worker)
    with Worker(marks, port) as worker, Orchestrator(marks, url, retry_ms=2000) as o:
        check(name("SIGKILL of the worker in mid-run, started again"), comes_back, o, worker)
    with Worker(marks, port) as worker, Orchestrator(marks, url) as o:
        check(name("SIGTERM of the orchestrator in mid-run"), ends, o, worker)


def main():
    global _how
    print("# orchestrator %s, components %s" % (sys.argv[1], " ".join(COMMAND)), flush=True)
    with tempfile.TemporaryDirectory(prefix="ew-stepflow-") as folder:
        marks = StepflowMarks(folder)
        for _how, part in (("command", started), ("url", found)):
            in_order(name("orchestrator and worker start"), part, marks)
        if KIND == "everywire":
            check("everywire serve --demo, started", demo, marks)
            check("everywire serve, every wire on one port", demo_port, marks)
    finish("stepflow orchestrator %s" % sys.argv[1].replace(".", "-"))


main()
