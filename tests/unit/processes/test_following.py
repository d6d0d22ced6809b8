"""What the process beside a proxy is told, while there is something to tell."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from checkstream.config import load_config
from checkstream.control.attestation import Running
from checkstream.processes.following import _keep_told
from checkstream.processes.parent import Parent
from checkstream.telemetry.logs import open_log

END = object()
SAID = Running(configuration="b" * 64)


async def test_while_nobody_knows_what_is_in_force_nothing_is_told() -> None:
    known: Iterator[Running | None] = iter((None, SAID))
    told: asyncio.Event = asyncio.Event()

    async def tell() -> Running | None:
        if (running := next(known, END)) is END:
            told.set()
            await asyncio.Event().wait()
        return running if isinstance(running, Running) else None

    echo = [sys.executable, "-c", "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"]
    process = await asyncio.create_subprocess_exec(*echo, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    async with asyncio.TaskGroup() as tasks:
        telling = tasks.create_task(_keep_told(process, tell, open_log("json", io.BytesIO()), every_s=0.01))
        await asyncio.wait_for(told.wait(), 30)
        telling.cancel()
    lines = (await process.communicate(b""))[0].splitlines()
    assert [msgspec.json.decode(line, type=Running) for line in lines] == [SAID]


async def test_a_parent_without_a_worker_that_answers_knows_nothing(tmp_path: Path) -> None:
    file = tmp_path / "checkstream.yaml"
    file.write_text("upstreams: {local: {url: 'http://127.0.0.1:1'}}\n")
    parent = Parent(load_config(file), 1, (), file)
    assert await parent._told_of_all() is None
    assert parent._since.digests == (None, None), "its counts go on where they were"
