"""Handlers on the real Python runner, for the interop tests and the benchmarks:
    rrq-runner --settings handlers.settings --tcp-socket HOST:PORT      (with this folder in PYTHONPATH)
RRQ_MARKS names a file that gets a line when a handler begins, ends or is cancelled. The same handlers stand in runner.c and in rust_runner.

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import os

from rrq.exc import RetryJob
from rrq.registry import Registry
from rrq.runner import ExecutionError, ExecutionOutcome
from rrq.runner_settings import PythonRunnerSettings

_marks = os.environ.get("RRQ_MARKS")


def mark(event, request):
    if not _marks:
        return
    line = "%s %s %s %d %d\n" % (event, request.function_name, request.job_id, request.context.attempt, os.getpid())
    with open(_marks, "ab", buffering=0) as f:
        f.write(line.encode())


async def echo(request):
    mark("begin", request)
    return request.params


async def context(request):
    mark("begin", request)
    return request.context.model_dump(mode="json")


async def sleep(request):
    mark("begin", request)
    try:
        await asyncio.sleep(request.params["ms"] / 1000)
    except asyncio.CancelledError:
        mark("cancelled", request)
        raise
    mark("end", request)
    return {"slept_ms": request.params["ms"]}


async def fail(request):
    """Fails while the attempt is not past `times` (for ever without)."""
    mark("begin", request)
    params = request.params
    if request.context.attempt > params.get("times", 1 << 30):
        return {"attempt": request.context.attempt}
    if not params.keys() & {"type", "code", "details"}:
        raise RuntimeError(params.get("message", "it failed"))
    error = ExecutionError(message=params.get("message", "it failed"), type=params.get("type"), code=params.get("code"),
                           details=params.get("details"))
    return ExecutionOutcome(job_id=request.job_id, request_id=request.request_id, status="error", error=error)


async def retry(request):
    """Asks for another attempt after `after` seconds while the attempt is not past `times`."""
    mark("begin", request)
    if request.context.attempt > request.params.get("times", 1 << 30):
        return {"attempt": request.context.attempt}
    raise RetryJob(request.params.get("message", "try again"), request.params.get("after"))


async def late(request):
    mark("begin", request)
    raise TimeoutError("gave up by itself")


async def big(request):
    mark("begin", request)
    return "x" * request.params["bytes"]


async def pid(request):
    mark("begin", request)
    return {"pid": os.getpid()}


async def crash(request):
    """Takes the process down while the attempt is not past `times`."""
    mark("begin", request)
    if request.context.attempt > request.params.get("times", 1 << 30):
        return {"attempt": request.context.attempt}
    os._exit(7)


registry = Registry()
for handler in (echo, context, sleep, fail, retry, late, big, pid, crash):
    registry.register(handler.__name__, handler)
settings = PythonRunnerSettings(registry=registry)
