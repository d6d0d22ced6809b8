"""One event loop for the whole program: clients keep connections for later, and a connection belongs to its loop.

A library with a client for threads and one for coroutines is asked by one piece of code: it awaits what can be awaited.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

run = asyncio.Runner().run


async def settled(value: Any) -> Any:
    """Return what a call gives, or what it gives when it is awaited."""
    return await value if inspect.isawaitable(value) else value


async def every(stream: Any) -> list[Any]:
    """Read a stream of either kind to its end."""
    if hasattr(stream, "__aiter__"):
        return [each async for each in stream]
    return list(stream)


@asynccontextmanager
async def entered(manager: Any) -> AsyncIterator[Any]:
    """Enter a context manager of either kind."""
    if hasattr(manager, "__aenter__"):
        async with manager as value:
            yield value
    else:
        with manager as value:
            yield value
