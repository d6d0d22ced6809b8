from __future__ import annotations

import asyncio
import os

import pytest

from checkstream.demo.child import ChildFailed, child


def _gone(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_a_child_says_where_it_listens_and_is_gone_afterwards() -> None:
    async with child("checkstream.demo.llm", ["--port", "0"]) as running:
        row = await running.said(lambda row: row.get("event") == "listening")
        assert str(row["url"]).startswith("http://127.0.0.1:")
        pid = running._process.pid
        assert not _gone(pid)
    assert _gone(pid)
    assert await running.ended() == 0


async def test_a_child_that_does_not_start_says_why() -> None:
    async with child("checkstream.demo.llm", ["--scenarios", "/nowhere"]) as running:
        with pytest.raises(ChildFailed, match=r"(?s)ended with 2.*can't list the scenario folder"):
            await running.said(lambda _: True)


async def test_a_child_is_stopped_when_its_user_is_cancelled() -> None:
    started = asyncio.Event()
    pids = []

    async def use() -> None:
        async with child("checkstream.demo.llm", []) as running:
            await running.said(lambda row: row.get("event") == "listening")
            pids.append(running._process.pid)
            started.set()
            await asyncio.Event().wait()

    using = asyncio.get_running_loop().create_task(use())
    await started.wait()
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using
    assert _gone(pids[0])
