"""Drafts on trial: laid out in a folder and gone again, looked at once for each content, and never for too long."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from pathlib import Path

import pytest

from checkstream.control.drafts import trials as module
from checkstream.control.drafts.files import digest_of
from checkstream.control.drafts.found import Example, Found, WhatIf
from checkstream.control.drafts.sources import Sources
from checkstream.control.drafts.trials import Material, Trials, Tried, without_texts
from checkstream.errors import ActConflicts, ControlUnusable

TEXT = "pack: {}\r\n"
SAYS = (
    """n=$(cat "$0" 2>/dev/null | wc -l); echo >> "$0"; echo "{\\"before\\": \\"$n $(cat $3/ours.yaml | wc -c)\\"}" """
)
"""A command that counts how often it has run, and how long the file of the draft is."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which drafts are laid out, and nothing else is."""
    place = tmp_path / "laid"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def trials(tmp_path: Path, script: str) -> Trials:
    (tmp_path / "src").mkdir(exist_ok=True)
    (tmp_path / "src" / "list.fp").write_bytes(b"\0\xff")
    return Trials(("sh", "-c", script, str(tmp_path / "count")), Sources(tmp_path / "src"))


def material(text: str = TEXT, **more: bytes) -> Material:
    files = {"ours.yaml": digest_of(text.encode())} | {name.replace("_", "."): digest_of(c) for name, c in more.items()}
    return Material(files=files, base={}, texts={digest_of(text.encode()): text})


async def test_a_content_is_looked_at_once_and_its_folder_goes(tmp_path: Path, folder: Path) -> None:
    tried = trials(tmp_path, SAYS)
    first = await tried.check(material())
    assert first.found == Found(before=f"0 {len(TEXT)}")
    assert await tried.check(material()) == first
    assert (await tried.check(material("longer than that"))).found == Found(before="1 16")
    assert left_in(folder) == []


async def test_all_who_ask_for_the_same_at_a_time_wait_for_one_look(tmp_path: Path, folder: Path) -> None:
    tried = trials(tmp_path, f"sleep 0.2; {SAYS}")
    asking = [asyncio.ensure_future(tried.check(material())) for _ in range(30)]
    await asyncio.sleep(0.1)
    asking[0].cancel()
    found = await asyncio.gather(*asking[1:])
    assert {each.found.before for each in found if each.found is not None} == {f"0 {len(TEXT)}"}
    assert (tried._checking, dict(tried._waiting), left_in(folder)) == ({}, {}, [])


async def test_a_draft_is_laid_out_when_its_turn_has_come(tmp_path: Path, folder: Path) -> None:
    tried = trials(tmp_path, "sleep 0.3; echo '{}'")
    asking = [asyncio.ensure_future(tried.check(material(str(n)))) for n in range(20)]
    await asyncio.sleep(0.2)
    assert 0 < len(left_in(folder)) <= module.AT_ONCE
    for each in asking[4:]:
        each.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert left_in(folder) == []


async def test_what_is_remembered_has_a_bound(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REMEMBERED", 1)
    tried = trials(tmp_path, SAYS)
    for text in ("a", "b", "a"):
        found = (await tried.check(material(text))).found
    assert found == Found(before="2 1")
    assert left_in(folder) == []


async def test_files_that_are_no_text_come_from_the_sources_as_long_as_they_are_what_they_were(
    tmp_path: Path, folder: Path
) -> None:
    tried = trials(tmp_path, 'echo "{\\"before\\": \\"$(cat $3/list.fp | wc -c)\\"}"')
    assert (await tried.check(material(list_fp=b"\0\xff"))).found == Found(before="2")
    with pytest.raises(ActConflicts, match="is not what it was"):
        await tried.check(material("x", list_fp=b"\0\xfe"))
    with pytest.raises(ControlUnusable, match="can't be laid out"):
        await tried.check(material("x", gone_fp=b"\0\xfe"))
    assert left_in(folder) == []


async def test_what_was_typed_before_is_looked_at_no_more(tmp_path: Path, folder: Path) -> None:
    tried = trials(tmp_path, 'if grep -q slow $3/ours.yaml; then sleep 60; else echo "{}"; fi')
    slow = asyncio.ensure_future(tried.check_typed("eve", material("slow")))
    other = asyncio.ensure_future(tried.check_typed("eli", material("slow too")))
    await asyncio.sleep(0.2)
    assert (await tried.check_typed("eve", material("quick"))).found == Found()
    assert (await slow).failure == "something newer is being checked"
    other.cancel()  # whoever has left wants it no more either
    with pytest.raises(asyncio.CancelledError):
        await other
    await asyncio.sleep(0.3)
    assert left_in(folder) == []
    assert tried._typing == {}


@pytest.mark.parametrize("times", [1, 2])
async def test_whoever_leaves_while_a_draft_is_laid_out_leaves_no_folder(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    reads, goes_on = threading.Event(), threading.Event()

    def content(_: Sources, path: str) -> bytes:
        reads.set()
        assert goes_on.wait(10)
        return path.encode()

    monkeypatch.setattr(Sources, "content", content)
    tried = trials(tmp_path, SAYS)
    asking = asyncio.ensure_future(tried.check(material(a_fp=b"a.fp", b_fp=b"b.fp")))
    assert await asyncio.to_thread(reads.wait, 10)
    for _ in range(times):
        asking.cancel()
        await asyncio.sleep(0.01)
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asking
    while left := list(module._CLEARING):
        await asyncio.wait(left)
    assert left_in(folder) == []
    assert not (tmp_path / "count").exists()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo oh no >&2; echo MemoryError >&2; exit 1", "it could not be checked: MemoryError"),
        ("exit 7", "it ended with 7"),
        ("echo '{\"faults\": 3}'", "it could not be checked"),
        ("kill -9 $$", "it ended with -9"),
        ("sleep 60", "not done within 0 s"),
    ],
)
async def test_a_command_that_says_nothing_of_use_is_told_and_not_remembered(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    monkeypatch.setattr(module, "CHECK_S", 0.4)
    tried = trials(tmp_path, script)
    assert said in (await tried.check(material())).failure
    assert not tried._known
    assert left_in(folder) == []


async def test_there_are_recordings_to_try_or_it_is_said_how_to_have_some(tmp_path: Path) -> None:
    assert "policies.recordings" in (await trials(tmp_path, "exit 1").what_if(material())).failure


def test_counts_of_recorded_exchanges_can_be_told_without_their_texts() -> None:
    example = Example(file="a", why=("stop",), lines=("+ secret",))
    what_if = WhatIf(
        program="p", held_against="before", there=1, looked_at=1, changed=1, rules={"R": (0, 1)}, examples=(example,)
    )
    found = without_texts(Tried(found=Found(what_if=(what_if,)))).found
    assert found is not None
    assert (found.what_if[0].changed, found.what_if[0].examples[0].why, found.what_if[0].examples[0].lines) == (
        1, ("stop",), (),
    )  # fmt: skip
    assert without_texts(Tried(failure="x")) == Tried(failure="x")
