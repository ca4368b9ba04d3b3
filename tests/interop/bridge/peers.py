"""The programs around the gateway: the gateway itself and the peers behind it, calls of it by `everywire call`, and the real orchestrators
that call it: RRQ's worker, Stepflow's orchestrator, the genkit command.

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import redis
from rrq.client import RRQClient

from support import EVERYWIRE, Marks, Process, free_ports, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
NODE_MODULES = os.path.join(os.environ["EW_INTEROP_CACHE"], "node_modules")
APP = ["node", os.path.join(HERE, "app.mjs")]
EXEC = ("echo", "fail", "stream", "slow", "who")  # what script.py can do

# ---- what the peers say, and who is left of them -------------------------------------------------------------------


class AllMarks(Marks):
    """One file for the handlers of all peers. All that the gateway starts has its name in the environment."""

    def __init__(self, folder):
        super().__init__(folder)
        self.env = {name: self.path for name in ("EW_MARKS", "RRQ_MARKS", "STEPFLOW_MARKS")}

    def processes(self):
        """Who runs with this file, and is not the gateway: id and command."""
        wanted = b"EW_MARKS=" + self.path.encode()
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as f:
                    if wanted not in f.read().split(b"\0"):
                        continue
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    command = f.read().split(b"\0")
            except OSError:
                continue
            if command[0] != EVERYWIRE.encode():
                found[int(pid)] = b" ".join(command).decode("utf-8", "replace")
        return found

    def sweep(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


# ---- the gateway --------------------------------------------------------------------------------------------------


def imports(runtimes, python, pipe_sdk, web_sdk):
    """Every kind of peer. Stepflow's servers are called pipe and web, by what they speak on."""
    def components(sdk):
        return ["env", "PYTHONPATH=" + sdk, python, os.path.join(os.path.dirname(HERE), "stepflow", "components.py")]
    runner = [os.path.join(os.path.dirname(sys.executable), "rrq-runner"), "--settings", "handlers.settings"]
    return [
        {"target": "reflection://127.0.0.1:%d" % runtimes, "prefix": "js"},
        {"target": "reflection://127.0.0.1:0", "prefix": "own", "command": APP, "environment": ["*"]},
        {"target": "stepflow+stdio:", "prefix": "pipe", "command": components(pipe_sdk), "environment": ["*"],
         "names": ["echo", "boom:fail", "slow", "pid:who", "where", "roundtrip"]},
        {"target": "stepflow+http:", "prefix": "web", "command": components(web_sdk), "environment": ["*"]},
        {"target": "rrq://127.0.0.1:0#echo,fail,sleep:slow,pid:who,context", "prefix": "jobs", "command": runner,
         "processes": 2, "environment": ["*"]},
    ]


class Gateway(Process):
    """`everywire serve` with a file that names all of them. runtimes: the port that Genkit apps dial."""

    def __init__(self, folder, marks, sdks, connect=()):
        self.port, self.runtimes = free_ports(), free_ports()
        script = [sys.executable, os.path.join(HERE, "script.py")]
        config = {
            "listen": ["127.0.0.1:%d" % self.port],
            "connect": list(connect),
            "drain": "1s",
            "imports": imports(self.runtimes, *sdks),
            "actions": {"/flow/exec/" + name: {"exec": {"argv": [*script, name], "environment": ["EW_MARKS"], "grace": "5s"}}
                        for name in EXEC},
        }
        path = os.path.join(folder, "gateway-%d.yaml" % self.port)
        with open(path, "w") as f:
            json.dump(config, f)  # which is YAML
        os.chmod(path, 0o600)
        super().__init__(EVERYWIRE, "serve", "--config", path, env=marks.env)
        try:
            wait_until("the gateway", lambda: self.process.poll() is not None or '"ready"' in self.said(), 30)
            if self.process.poll() is not None:
                raise RuntimeError("the gateway left:\n" + self.said()[-3000:])
        except Exception:
            self.__exit__()
            raise

    def words(self, wire, action, *words):
        return [EVERYWIRE, "call", "%s://127.0.0.1:%d" % (wire, self.port), action, *words]

    def call(self, wire, action, value, *options, text=None):
        """One call by the program; its input is the value, or the text."""
        given = text if text is not None else json.dumps(value, ensure_ascii=False)
        return Ended(subprocess.run(self.words(wire, action, *([] if given == "" else ["-"]), *options), input=given.encode(),
                                    capture_output=True, timeout=40))

    def stream(self, wire, action, lines, *options):
        """One call with an input stream."""
        return Ended(subprocess.run(self.words(wire, action, "--input-stream", *options), input=lines.encode(), capture_output=True,
                                    timeout=40))

    def begin(self, wire, action, value, *options):
        return Process(*self.words(wire, action, json.dumps(value), *options))

    def listed(self):
        process = subprocess.run([EVERYWIRE, "list", "http://127.0.0.1:%d" % self.port], stdin=subprocess.DEVNULL, capture_output=True,
                                 timeout=40)
        return json.loads(process.stdout or "{}")

    def app(self, marks):
        """A Genkit app that dials it."""
        return Process(*APP, env=dict(marks.env, GENKIT_ENV="dev", NO_COLOR="1",
                                      GENKIT_REFLECTION_V2_SERVER="ws://127.0.0.1:%d" % self.runtimes))


def error_of(text):
    lines = [line for line in text.split("\n") if line.startswith('{"error":')]
    return json.loads(lines[-1])["error"] if lines else None


class Ended:
    """How a call went: exit code, lines, error."""

    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout.decode()
        self.said = process.stderr.decode("utf-8", "replace")
        self.error = error_of(self.said)

    def __repr__(self):
        return "exit %s, %.300r, %.900r" % (self.code, self.out, self.said)

    def lines(self):
        if self.code != 0:
            raise AssertionError(repr(self))
        return [json.loads(line) for line in self.out.split("\n") if line]

    def result(self):
        (value,) = self.lines()
        return value

    def fails(self, code, status, text=""):
        if self.code != code or self.out or not self.error or self.error["status"] != status or text not in self.error["message"]:
            raise AssertionError("%r; wanted exit %d, %s, %s" % (self, code, status, text))
        return self.error


# ---- who calls it -------------------------------------------------------------------------------------------------


def rest(url, body=None, method=None):
    """One request with JSON both ways; returns the body and the headers. A fault of HTTP counts as an answer."""
    request = urllib.request.Request(url, method=method, data=None if body is None else json.dumps(body).encode(),
                                     headers={"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=40) as reply:
            return reply.read().decode(), reply.headers
    except urllib.error.HTTPError as err:
        return err.read().decode(), err.headers


class Worker:
    """RRQ's worker and producer. Its runner is the gateway, which runs already."""

    def __init__(self, program, folder, server, port):
        self.redis = redis.Redis(port=server.port, decode_responses=True)
        config = os.path.join(folder, "rrq.toml")
        with open(config, "w") as f:
            f.write('[rrq]\nredis_dsn = "redis://127.0.0.1:%d/0"\ndefault_runner_name = "gateway"\ndefault_poll_delay_seconds = 0.02\n'
                    'base_retry_delay_seconds = 0.05\nmax_retry_delay_seconds = 0.1\nrunner_enable_inflight_cancel_hints = true\n'
                    'runner_management_mode = "external"\n[rrq.runners.gateway]\ntype = "socket"\ntcp_port = %d\npool_size = 1\n'
                    'max_in_flight = 16\n' % (server.port, port))
        self.client = RRQClient(config_path=config)
        self.process = Process(program, "worker", "run", "--config", config, cwd=folder)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.process.__exit__()

    def run(self, *jobs):
        """Jobs are (function, params[, options]); waits for their ends and returns (id, hash) of each."""
        async def enqueue():
            return [await self.client.enqueue(job[0], dict(*job[2:], params=job[1])) for job in jobs]
        idents = asyncio.run(enqueue())

        def found():
            return [self.redis.hgetall("rrq:job:" + ident) for ident in idents]
        wait_until("the ends of all jobs", lambda: all(job["status"] in ("COMPLETED", "FAILED") for job in found()), 30)
        return list(zip(idents, found()))


class Orchestrator:
    """Stepflow's orchestrator (0.11). The gateway's actions are components below /c/."""

    def __init__(self, program, folder, port):
        config = os.path.join(folder, "stepflow-config.yml")
        with open(config, "w") as f:
            json.dump({"plugins": {"c": {"type": "stepflow", "url": "http://127.0.0.1:%d" % port}},
                       "routes": {"/c/{*component}": [{"plugin": "c"}]}, "storageConfig": {"type": "inMemory"},
                       "retry": {"transportMaxRetries": 1, "backoff": {"type": "constant", "delayMs": 100}}}, f)
        self.process = Process(program, "--port", "0", "--config", config, "--log-level", "info", cwd=folder)
        try:
            self.url = "http://127.0.0.1:%d/api/v1" % wait_until("the orchestrator's port", self._port, 30)
            wait_until("a healthy orchestrator", lambda: self.rest("/health").get("status") == "healthy")
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
            print("# the orchestrator said:\n# " + self.process.said()[-3000:].replace("\n", "\n# "))
        self.process.__exit__()

    def rest(self, path, body=None):
        return json.loads(rest(self.url + path, body)[0])

    def run(self, steps, *inputs):
        """A flow of steps (id, component, input), whose result is the last one's, once for each input; how each ended."""
        flow = {"name": "bridge", "steps": [dict(zip(("id", "component", "input"), step)) for step in steps],
                "output": {"$step": steps[-1][0]}}
        ident = self.rest("/flows", {"flow": flow})["flowId"]
        run = self.rest("/runs", {"flowId": ident, "input": list(inputs), "maxConcurrency": len(inputs), "wait": True, "timeoutSecs": 30})
        return [item.get("result") for item in self.rest("/runs/%s/items" % run["runId"])["items"]]


class Manager(Process):
    """`genkit start` alone, in a home of its own; its API runs actions of the runtimes that dial it. url: where they do."""

    def __init__(self, folder):
        port = free_ports()
        home = os.path.join(folder, "genkit")
        os.mkdir(home)
        with open(os.path.join(home, "package.json"), "w") as f:
            f.write('{"name":"interop","private":true}')
        variables = os.path.join(home, "variables")
        super().__init__("node", os.path.join(NODE_MODULES, "genkit-cli", "dist", "bin", "genkit.js"), "start", "--non-interactive",
                         "--experimental-reflection-v2", "-p", str(port), "--write-env-file", variables, cwd=home,
                         env={"HOME": home, "GENKIT_CLI_DISABLE_UPDATE_NOTIFICATIONS": "true", "NO_COLOR": "1"})
        self.api = "http://127.0.0.1:%d/api/" % port
        try:
            wait_until("the API of genkit start", self._healthy, 40)
            with open(variables) as f:
                self.url = dict(line.strip().split("=", 1) for line in f if "=" in line)["GENKIT_REFLECTION_V2_SERVER"]
        except Exception:
            print("# genkit start said:\n# " + self.said()[-2000:].replace("\n", "\n# "))
            self.__exit__()
            raise

    def __exit__(self, *args):
        self.end(signal.SIGINT)  # SIGTERM would take it long

    def _healthy(self):
        if self.process.poll() is not None:
            raise RuntimeError("genkit start left")
        try:
            rest(self.api + "__health")
            return True
        except OSError:
            return False

    def query(self, name):
        return json.loads(rest(self.api + name)[0])["result"]["data"]

    def run(self, key, value):
        return json.loads(rest(self.api + "runAction", {"key": key, "input": value})[0])

    def stream(self, key, value):
        return [json.loads(line) for line in rest(self.api + "streamAction", {"key": key, "input": value})[0].split("\n") if line]

    def begin(self, key, value):
        """Runs an action and does not wait for its end; returns its trace and a function that reads the rest."""
        request = urllib.request.Request(self.api + "runAction", data=json.dumps({"key": key, "input": value}).encode(),
                                         headers={"content-type": "application/json"})
        reply = urllib.request.urlopen(request, timeout=40)
        return reply.headers["x-genkit-trace-id"], lambda: json.loads(reply.read())

    def cancel(self, trace):
        return json.loads(rest(self.api + "cancelAction", {"traceId": trace})[0])["result"]["data"]
