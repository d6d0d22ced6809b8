"""Every case of the corpus, whole, byte by byte and cut at random: the caller's bytes and the record stay the same."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from checkstream.cli.replay import replay
from tests.playbook import Played
from tests.transcripts.case import Audited, Case, audited, by_choice, cases, downstream, facts


@pytest.mark.parametrize("folder", cases(), ids=lambda folder: folder.name)
def test_g03_a_case_comes_to_its_golden_files_however_it_is_cut(folder: Path, request: pytest.FixtureRequest) -> None:
    case = Case(folder)
    plan = case.plan()
    if request.config.getoption("--update-transcripts", default=False):
        _update(case, case.play(plan, case.script.cuts[0])[0])
    (body,) = folder.glob("downstream.*")
    expected = body.read_bytes()
    record = msgspec.json.decode((folder / "audit.json").read_bytes(), type=Audited)
    forwarded = folder / "forwarded.json"
    for cut in case.script.cuts if case.upstream else case.script.cuts[:1]:
        played = case.play(plan, cut)[0]
        if case.script.overtakes and cut != "whole":
            assert by_choice(downstream(played)) == by_choice(expected), cut
        else:
            assert downstream(played) == expected, cut
        assert audited(played) == record, cut
        if played.forwarded is not None:
            assert played.forwarded == (forwarded.read_bytes() if forwarded.exists() else case.request), cut


@pytest.mark.parametrize(
    "folder", [folder for folder in cases() if Case(folder).replayable], ids=lambda folder: folder.name
)
def test_a_case_recorded_and_replayed_comes_to_the_same(folder: Path) -> None:
    case = Case(folder)
    played, transcript = case.play(case.plan(), "split-0" if case.upstream else "whole")
    outcome = replay(transcript, [str(folder / "policy.yaml")])
    assert _unmarked(outcome.downstream) == _unmarked(downstream(played).decode("utf-8", "replace"))
    assert outcome.record is not None
    assert played.record is not None
    assert facts(outcome.record) == facts(played.record)


def test_the_corpus_is_whole() -> None:
    """No folder without a script, no golden file that nothing reads."""
    folders = cases()
    assert {path.parent for path in folders[0].parent.glob("*/*")} == set(folders)
    for folder in folders:
        assert len(list(folder.glob("downstream.*"))) == 1, folder


def _unmarked(text: str) -> str:
    """Leave out what the names of events become, since that follows from a key which no recording has."""
    return re.sub(r"(?m)^id: [a-z]+~[a-z]+$", "id: ", text)


def _update(case: Case, played: Played) -> None:
    for stale in (*case.folder.glob("downstream.*"), case.folder / "forwarded.json"):
        stale.unlink(missing_ok=True)
    form = "json" if played.reply is not None else case.form
    (case.folder / f"downstream.{form}").write_bytes(downstream(played))
    pretty = msgspec.json.format(msgspec.json.encode(audited(played)), indent=1)
    (case.folder / "audit.json").write_bytes(pretty + b"\n")
    if played.forwarded is not None and played.forwarded != case.request:
        (case.folder / "forwarded.json").write_bytes(played.forwarded)
