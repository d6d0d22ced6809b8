"""Loading anew in all workers: one at a time loads and checks, and only when all have, all put it in force.

While one worker compiles, the others serve; and what one of them refuses comes in force in none.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import msgspec

from checkstream.errors import ConfigError, Fault, FaultyFile, NotReady
from checkstream.processes.child import Child
from checkstream.processes.frames import In

_LOAD_S = 300.0
_TRIES = 3
_IN = msgspec.msgpack.Decoder(In)


async def load_anew(children: Sequence[Child]) -> In:
    """Put configuration and policies as they are now in force in all workers, or in none.

    Raises:
        FaultyFile: a file is wrong, or they change all the time; what was in force stays.
        NotReady: a worker has ended meanwhile; what was in force stays.
    """
    for _ in range(_TRIES):
        found = await _prepared(children)
        if len({each.digest for each in found}) == 1:
            enforced = await asyncio.gather(*(child.ask("enforce") for child in children), return_exceptions=True)
            told = [_IN.decode(each) for each in enforced if isinstance(each, bytes)]
            if not told:
                raise NotReady("no worker is left to load anything")
            return told[0]  # a worker that has ended meanwhile begins with what the files say
        await _forget(children)
    reason = "the configuration or its policies change while they are loaded"
    raise ConfigError((Fault(file="configuration", reason=reason, advice="load them when they are written"),))


async def _prepared(children: Sequence[Child]) -> list[In]:
    """Have each worker load what the files say.

    Raises:
        FaultyFile: as `load_anew`; nothing is left of it.
        NotReady: as `load_anew`; nothing is left of it.
    """
    found: list[In] = []
    try:
        for child in children:
            found.append(_IN.decode(await child.ask("load", timeout_s=_LOAD_S)))  # noqa: PERF401 - one at a time
    except (FaultyFile, NotReady):
        await _forget(children)
        raise
    return found


async def _forget(children: Sequence[Child]) -> None:
    for child in children:
        with contextlib.suppress(NotReady):
            await child.ask("forget")
