"""Commands in processes of their own: one that takes too much of anything is ended, and whoever asked is told."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from checkstream import own_process
from checkstream.own_process import OwnProcesses

WAITS = "import time; time.sleep(60)"


def python(*, at_once: int = 1, waiting: int = 0) -> OwnProcesses:
    return OwnProcesses((sys.executable, "-c"), at_once=at_once, waiting=waiting)


async def test_what_is_said_comes_back_with_how_it_ended() -> None:
    code = "import sys; print(sys.stdin.read()[::-1]); sys.stderr.write('so'); sys.exit(3)"
    ran = await python().run([code], b"abc", most_s=30)
    assert (ran.out, ran.err, ran.code, ran.failure) == (b"cba\n", b"so", 3, "")


async def test_a_command_that_reads_nothing_is_no_fault() -> None:
    ran = await python().run(["print('read nothing')"], bytes(4 << 20), most_s=30)
    assert (ran.out, ran.failure) == (b"read nothing\n", "")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (WAITS, "not done within 0 s"),
        ("while True: print('x' * 65536)", "more was said"),
        ("import sys\nwhile True: sys.stderr.write('x' * 65536)", "more was said"),
    ],
)
async def test_what_takes_too_long_or_says_too_much_is_ended(code: str, said: str) -> None:
    ran = await python().run([code], most_s=0.4 if code == WAITS else 30)
    assert said in ran.failure


async def test_memory_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_process, "_MEMORY", 1 << 29)
    ran = await python().run(["import time; time.sleep(.2); len(bytearray(1 << 30))"], most_s=30)
    assert ran.code == 1
    assert b"MemoryError" in ran.err


async def test_so_many_run_so_many_wait_and_others_are_told() -> None:
    commands = python(at_once=1, waiting=1)
    asked = [asyncio.ensure_future(commands.run([WAITS], most_s=0.3)) for _ in range(3)]
    ended = [ran.failure.partition(" ")[0] for ran in await asyncio.gather(*asked)]
    assert sorted(ended) == ["another", "not", "not"]


async def test_whoever_is_cancelled_ends_the_command_and_gives_the_place_back(tmp_path: Path) -> None:
    commands, mark = python(), tmp_path / "mark"
    code = f"import pathlib, time; pathlib.Path({str(mark)!r}).touch(); time.sleep(60)"
    asking = asyncio.ensure_future(commands.run([code], most_s=30))
    while not mark.exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert (await commands.run(["print(1)"], most_s=30)).out == b"1\n"


async def test_what_runs_ends_with_who_has_started_it() -> None:
    commands = python()
    running = asyncio.ensure_future(commands.run([WAITS], most_s=30))
    await asyncio.sleep(0.1)
    await commands.close()
    assert (await asyncio.wait_for(running, 5)).code == -9


async def test_what_a_command_has_started_ends_with_it() -> None:
    begun = asyncio.get_running_loop().time()
    ran = await python().run([f"import subprocess; subprocess.Popen(['sleep', '60']); {WAITS}"], most_s=0.5)
    assert "not done within" in ran.failure
    assert asyncio.get_running_loop().time() - begun < 20  # the pipe would be open for a minute


async def test_time_of_the_processor_has_a_bound_that_the_system_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_process, "_SLACK_S", 0.0)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    code = "import resource, time; time.sleep(.2); print(resource.getrlimit(resource.RLIMIT_CPU))"
    assert (await python().run([code], most_s=29.5)).out == b"(30, 30)\n"
