"""Components on the real Python SDK, for the interop tests and the benchmarks; the same stand in components.c.
    components.py                SDKs 0.2 to 0.7: over standard input and output; later ones: over HTTP, the port is said on standard output
    components.py --port PORT    over HTTP
STEPFLOW_MARKS names a file that gets a line when a component begins, ends or is cancelled.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import asyncio
import os
from typing import Any

import msgspec

try:
    from stepflow_py.worker import StepflowContext, StepflowServer
    OLD = False
except ImportError:
    from stepflow_py import StepflowContext
    from stepflow_py.server import StepflowServer
    OLD = True

server = StepflowServer()
_marks = os.environ.get("STEPFLOW_MARKS")


def mark(event, component, context=None):
    if _marks:
        line = "%s %s %s %d %d\n" % (event, component, getattr(context, "run_id", None) or "-", getattr(context, "attempt", 0), os.getpid())
        with open(_marks, "ab", buffering=0) as f:
            f.write(line.encode())


async def sleep(component, value, context=None):
    mark("begin", component, context)
    try:
        await asyncio.sleep(value.get("ms", 0) / 1000)
    except asyncio.CancelledError:
        mark("cancelled", component, context)
        raise
    mark("end", component, context)


class Greeting(msgspec.Struct):
    """Whom to greet."""
    name: str
    times: int = 1


class Greeted(msgspec.Struct):
    text: str


@server.component
def greet(value: Greeting) -> Greeted:
    """Greets somebody, more than once if need be."""
    return Greeted(text=" ".join(["Hello, %s!" % value.name] * value.times))


@server.component
def echo(value: Any) -> Any:
    """Returns its input."""
    mark("begin", "echo")
    return value


@server.component
def boom(value: Any) -> Any:
    """Fails with `message`."""
    mark("begin", "boom")
    raise RuntimeError(value["message"])


@server.component
async def slow(value: Any) -> Any:
    """Sleeps for `ms`."""
    await sleep("slow", value)
    return {"slept_ms": value["ms"]}


@server.component
def big(value: Any) -> Any:
    """Returns a string of `bytes` letters."""
    return "x" * value["bytes"]


@server.component
def pid(value: Any) -> Any:
    """Says which process it is in."""
    return {"pid": os.getpid()}


@server.component
def crash(value: Any) -> Any:
    """Takes the process down."""
    mark("begin", "crash")
    os._exit(7)


@server.component
async def where(value: Any, context: StepflowContext) -> Any:
    """Says what came with the call, after `ms`."""
    await sleep("where", value, context)
    return {name: getattr(context, name, None) for name in ("run_id", "flow_id", "step_id", "attempt")}


@server.component
async def put_blob(value: Any, context: StepflowContext) -> Any:
    """Has the runtime keep `data`."""
    return {"blob_id": await context.put_blob(value["data"])}


@server.component
async def get_blob(value: Any, context: StepflowContext) -> Any:
    """Has the runtime return what it keeps."""
    return {"data": await context.get_blob(value["blob_id"])}


@server.component
async def roundtrip(value: Any, context: StepflowContext) -> Any:
    """Puts `data`, gets it, and compares; waits for `ms` between the two."""
    ident = await context.put_blob(value["data"])
    await sleep("roundtrip", value, context)
    return {"blob_id": ident, "equal": await context.get_blob(ident) == value["data"]}


@server.component
async def many_blobs(value: Any, context: StepflowContext) -> Any:
    """Puts `n` blobs at once, then gets them all at once."""
    idents = await asyncio.gather(*[context.put_blob({"i": i}) for i in range(value["n"])])
    found = await asyncio.gather(*[context.get_blob(ident) for ident in idents])
    return {"different": len(set(idents)), "equal": found == [{"i": i} for i in range(value["n"])]}


@server.component
async def evaluate(value: Any, context: StepflowContext) -> Any:
    """Has the runtime run the flow that it keeps as `flow_id` (as `flow`, for SDK 0.2)."""
    if hasattr(context, "evaluate_flow_by_id"):
        return {"result": await context.evaluate_flow_by_id(value["flow_id"], value["input"])}
    return {"result": await context.evaluate_flow(value["flow"], value["input"])}


if not OLD:
    @server.component(name="wild/{*rest}")
    def wild(value: Any, rest: str) -> Any:
        """Answers to every name below its own."""
        return {"rest": rest, "value": value}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    port = parser.parse_args().port
    if not OLD:
        asyncio.run(server.run(port=port or 0))
    elif port:
        from stepflow_py.http_server import StepflowHttpServer
        asyncio.run(StepflowHttpServer(server, host="127.0.0.1", port=port).run())
    else:
        from stepflow_py import StepflowStdioServer
        StepflowStdioServer(server).run()


if __name__ == "__main__":
    main()
