"""Work that is done again and again beside a server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from checkstream.errors import CheckstreamError
from checkstream.telemetry.logs import Log


async def keep(work: Callable[[], Awaitable[object]], every_s: float, what: str, log: Log) -> None:
    """Do some work by the clock, until cancelled. That it fails is said once for each reason, and it is done again.

    Args:
        work: What is done.
        every_s: How long it rests between.
        what: Names it in the log.
        log: Hears of failures, and that they are over.
    """
    failing = ""
    while True:
        try:
            await work()
        except Exception as error:
            if str(error) != failing:
                known = isinstance(error, CheckstreamError)
                log.error("control.failing", what=what, detail=str(error), exc_info=None if known else error)  # noqa: TRY400 - what is known says all
            failing = str(error) or type(error).__name__
        else:
            if failing:
                log.info("control.recovered", what=what)
            failing = ""
        await asyncio.sleep(every_s)
