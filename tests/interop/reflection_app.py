"""A Genkit app in Python, for the reflection wire: the real runtime. Started with GENKIT_ENV=dev and GENKIT_REFLECTION_V2_SERVER it
dials the manager; what happens inside is noted in the file EW_APP_LOG, one line each ("cancelled").

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import os
from typing import Any

from genkit import ActionRunContext, Genkit, GenkitError

ai = Genkit()


def note(text: str) -> None:
    path = os.environ.get("EW_APP_LOG")
    if path:
        with open(path, "a", encoding="utf-8") as log:
            log.write(text + "\n")


@ai.flow()
async def hello(name: str) -> str:
    return f"Hello, {name}!"


@ai.flow()
async def echo(value: Any) -> Any:
    return value


@ai.flow()
async def big(n: int) -> str:
    return "x" * n


@ai.flow()
async def who(_: Any, ctx: ActionRunContext) -> dict[str, Any]:
    return {"context": dict(ctx.context)}


@ai.flow()
async def failing(_: Any) -> None:
    raise GenkitError(status="FAILED_PRECONDITION", message="told why")


@ai.flow()
async def streamy(n: int, ctx: ActionRunContext) -> str:
    for i in range(n):
        ctx.send_chunk({"i": i})
    return f"done {n}"


@ai.flow()
async def slow(ms: int) -> str:
    note(f"slow begins in {os.getpid()}")
    try:
        await asyncio.sleep(ms / 1000)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "slept"


async def main() -> None:
    await asyncio.Event().wait()


ai.run_main(main())
