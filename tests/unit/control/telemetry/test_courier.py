"""Sealed evidence on its way: the oldest first, gone when it was taken, and kept where it was not."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from checkstream.control.telemetry.courier import PATH, Carried, Courier
from checkstream.control.telemetry.evidence import MOST_PARCEL
from checkstream.control.telemetry.packing import unpacked
from checkstream.errors import ControlUnusable


class Answer(msgspec.Struct):
    status: int
    reason: str = "why"


class Server:
    """Answers what it is told to, in turn."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.got: list[int] = []

    async def post(self, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        assert (path, headers) == (PATH, {"content-type": "application/zstd"})
        self.got.append(json.loads(unpacked(body, MOST_PARCEL)))
        if not self.statuses:
            raise ControlUnusable("away")
        return Answer(self.statuses.pop(0))


def filled(folder: Path, count: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        (folder / f"{number:03}.sealed").write_text(str(number))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_the_oldest_go_first_and_are_gone_when_they_were_taken(tmp_path: Path) -> None:
    filled(tmp_path, 11)
    (tmp_path / "x.sealed.unfinished").write_text("being written")
    server = Server(*[200] * 11)
    courier = Courier(tmp_path, ".sealed", server.post)
    assert await courier.round() == Carried(sent=8, more=True)
    assert await courier.round() == Carried(sent=3)
    assert await courier.round() == Carried()
    assert server.got == list(range(11))
    assert names(tmp_path) == ["x.sealed.unfinished"]


@pytest.mark.parametrize("status", [400, 409, 413, 422])
async def test_what_no_server_will_have_goes(tmp_path: Path, status: int) -> None:
    filled(tmp_path, 2)
    assert await Courier(tmp_path, ".sealed", Server(status, 200).post).round() == Carried(sent=1, refused=1)
    assert names(tmp_path) == []


@pytest.mark.parametrize("status", [302, 401, 403, 404, 408, 429, 500, 503])
async def test_what_may_be_taken_later_stays(tmp_path: Path, status: int) -> None:
    filled(tmp_path, 3)
    assert await Courier(tmp_path, ".sealed", Server(200, status).post).round() == Carried(sent=1, reason="why")
    assert names(tmp_path) == ["001.sealed", "002.sealed"]


async def test_a_server_that_is_away_loses_nothing(tmp_path: Path) -> None:
    filled(tmp_path, 2)
    assert await Courier(tmp_path, ".sealed", Server().post).round() == Carried(reason="away")
    assert len(names(tmp_path)) == 2


async def test_what_is_no_parcel_is_not_sent_for_ever(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    (tmp_path / "000.sealed").write_bytes(b"x" * (MOST_PARCEL + 1))
    assert await Courier(tmp_path, ".sealed", Server().post).round() == Carried()
    assert names(tmp_path) == []
    assert await Courier(tmp_path / "none", ".sealed", Server().post).round() == Carried()


async def test_what_can_not_be_removed_goes_once_and_keeps_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, 10)
    server = Server(*[200] * 20)
    courier = Courier(tmp_path, ".sealed", server.post)

    def refused(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", refused)
    reason = "evidence that was sent can't be removed: Read-only file system"
    assert await courier.round() == Carried(sent=8, more=True, reason=reason)
    assert await courier.round() == Carried(sent=2, reason=reason)
    assert await courier.round() == Carried()
    assert server.got == list(range(10))
