"""Policies come in force in all workers or in none, whatever becomes of one of them meanwhile (G25)."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import msgspec
import pytest

from checkstream.errors import ConfigError, NotReady
from checkstream.processes.child import Child
from checkstream.processes.frames import In, Ready
from checkstream.processes.rolling import Rolling
from checkstream.telemetry.logs import open_log


class Scripted:
    """A worker that answers what it is told to: a digest, or an error."""

    slot = 0

    class process:  # noqa: N801 - as the attribute is called
        pid = 1

    def __init__(self, load: str | Exception, enforce: str | Exception, *, serves: bool = True) -> None:
        self._says = {"load": load, "enforce": enforce, "forget": ""}
        self.serves = serves
        self.asked: list[str] = []

    async def ask(self, what: str, **_: float) -> bytes:
        self.asked.append(what)
        said = self._says[what]
        if isinstance(said, Exception):
            raise said
        return msgspec.msgpack.encode(In(said, ()))


GONE = NotReady("it has ended")


def rolling(children: Sequence[Scripted], config: Path | None = None) -> tuple[Rolling, list[Child]]:
    given_up: list[Child] = []
    serving = cast("Callable[[], Sequence[Child]]", lambda: children)
    return Rolling(serving, given_up.append, config, open_log("json", io.BytesIO())), given_up


async def test_g25_a_worker_that_can_not_put_in_force_what_the_others_have_serves_no_new_callers() -> None:
    good, failed, other, dead = (
        Scripted("new", "new"),
        Scripted("new", NotReady("it takes too long")),
        Scripted("new", "old"),
        Scripted("new", GONE, serves=False),
    )
    rolls, given_up = rolling([good, failed, other, dead])
    await rolls.load()
    assert cast("list[Scripted]", given_up) == [failed, other], "one that has ended begins with what the files say"
    assert not await rolls.is_stale(Ready("new", (), {}, ()))
    assert await rolls.is_stale(Ready("old", (), {}, ()))


async def test_g25_nobody_is_given_up_where_nothing_has_come_in_force() -> None:
    for children in ([Scripted("new", GONE), Scripted("new", "old")], []):
        rolls, given_up = rolling(children)
        with pytest.raises(NotReady):
            await rolls.load()
        assert given_up == []


async def test_g25_what_one_refuses_is_forgotten_by_all_that_had_it() -> None:
    first, second, third = Scripted("new", "new"), Scripted(ConfigError(()), "new"), Scripted("new", "new")
    rolls, given_up = rolling([first, second, third])
    with pytest.raises(ConfigError):
        await rolls.load()
    assert (first.asked, second.asked, third.asked) == (["load", "forget"], ["load", "forget"], ["forget"])
    assert given_up == []


async def test_files_that_nobody_could_load_in_time_are_read_again_and_wrong_ones_once(tmp_path: Path) -> None:
    file = tmp_path / "checkstream.yaml"
    file.write_text("{}")
    for error, again in ((NotReady("it takes too long"), True), (ConfigError(()), False)):
        rolls, _ = rolling([Scripted(error, "new")], file)
        await rolls.is_stale(Ready("old", (), {}, ()))
        await rolls.load_or_say()
        assert await rolls.is_news() == again
