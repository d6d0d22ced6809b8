"""Turns of parties: few at once, and nobody waits for all that another has asked for."""

from __future__ import annotations

import asyncio
import contextlib

from hypothesis import given
from hypothesis import strategies as st

from checkstream.listen.turns import Turns

ASKED = st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=30)


@given(at_once=st.integers(1, 3), asked=ASKED)
def test_g33_each_party_has_a_turn_between_two_of_another(at_once: int, asked: list[tuple[str, bool]]) -> None:
    """`asked` says who asks, and whether they leave while they wait."""

    async def run() -> None:
        turns, ended = Turns(at_once), asyncio.Event()
        running: list[str] = []
        served: list[str] = []
        most = 0

        async def ask(party: str) -> None:
            nonlocal most
            async with turns.taken(party):
                served.append(party)
                running.append(party)
                most = max(most, len(running))
                try:
                    await ended.wait()
                    await asyncio.sleep(0)
                finally:
                    running.remove(party)

        tasks = [asyncio.create_task(ask(party)) for party, _ in asked]
        await asyncio.sleep(0)
        before = len(served)
        assert before == min(at_once, len(asked)), "nobody waits while there is room"
        left = [task for task, (_, leaves) in zip(tasks, asked, strict=True) if leaves]
        for task in left[: len(left) // 2]:
            task.cancel()
        ended.set()
        for task in left[len(left) // 2 :]:
            await asyncio.sleep(0)
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        assert most <= at_once
        if not left:
            waiting = served[before:]
            first = list(dict.fromkeys(party for party, _ in asked[before:]))
            assert waiting[: len(first)] == first, "each has one before any has a second"
            assert len(served) == len(asked)
        async with asyncio.timeout(1), contextlib.AsyncExitStack() as free:
            for _ in range(at_once):
                await free.enter_async_context(turns.taken("e"))

    asyncio.run(run())
