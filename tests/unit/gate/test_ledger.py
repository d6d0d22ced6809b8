from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import msgspec
import pytest

from checkstream.errors import GateError
from checkstream.gate.kept import Kept
from checkstream.gate.ledger import Ledger
from checkstream.gate.terms import ClaimVerdict, Prompt, Response, Run
from checkstream.grounding.terms import Verdict


def run(run_id: str = "r1", begun: float = 100.0, **more: object) -> Run:
    known: dict[str, object] = {"config_hash": "c", "target": "openai:m", "verifier": "v@1", "snapshot": "s"}
    return Run(run_id=run_id, begun=begun, **(known | more))  # type: ignore[arg-type]


def decided(each: Run, decision: str, risk: float) -> Run:
    return msgspec.structs.replace(each, ended=each.begun + 1, decision=decision, risk=risk, total_claims=1)


async def test_what_an_item_gave_is_known_after_a_new_start(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "gate.db")
    ledger.begin(run())
    prompts = (Prompt(id="p1", text="what of refunds?", category="x"),)
    await Kept(ledger, "r1", 100.0).keep("prompts", "all", prompts)
    again = Kept(Ledger(tmp_path / "gate.db"), "r1", 100.0)
    assert await again.recall("prompts", "all", tuple[Prompt, ...]) == prompts
    assert await again.recall("responses", "p1", Response) is None


async def test_an_item_is_kept_once_and_found_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "gate.db")
    ledger.begin(run())
    kept = Kept(ledger, "r1", 100.0)
    await kept.keep("responses", "p1", Response(prompt_id="p1", text="refunds take a week"))
    await kept.keep("responses", "p1", Response(prompt_id="p1", text="refunds take a month"))
    assert await kept.recall("responses", "p1", Response) == Response(prompt_id="p1", text="refunds take a week")
    assert [each.text for each in ledger.search("refunds")] == ["refunds take a week"]


async def test_a_search_finds_words_by_kind_and_time_and_reads_no_operators(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "gate.db")
    for name, at in (("march", 300.0), ("april", 400.0)):
        ledger.begin(run(name, at))
        kept = Kept(ledger, name, at)
        await kept.keep(
            "responses", "p1", Response(prompt_id="p1", text=f'Refunds in {name}: “naïve” AND "OR" (30) days*')
        )
        verdict = ClaimVerdict(claim_id="p1.c1", label=Verdict.UNSUPPORTED, justification="no refund in the documents")
        await kept.keep("verdicts", "p1.c1", verdict)
    assert {each.run_id for each in ledger.search("refunds")} == {"march", "april"}
    assert [each.run_id for each in ledger.search("refunds", since=300.0, until=400.0)] == ["march"]
    assert [each.kind for each in ledger.search("unsupported", kind="verdict", until=350.0)] == ["verdict"]
    assert [each.run_id for each in ledger.search("naive april")] == ["april"]
    for hostile in ('"', '" OR 1', "NEAR(", "text:x", "*", "", "   ", "\x00", "'; DROP TABLE runs; --"):
        ledger.search(hostile)
    assert len(ledger.runs()) == 2


def test_runs_are_listed_newest_first_and_filtered(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "gate.db")
    for name, at, config in (("a", 1.0, "c"), ("b", 2.0, "c"), ("d", 3.0, "e")):
        ledger.begin(run(name, at, config_hash=config))
    ledger.end(decided(run("a", 1.0), "deploy", 0.05), "{}")
    assert [each.run_id for each in ledger.runs()] == ["d", "b", "a"]
    assert [each.run_id for each in ledger.runs(since=2.0)] == ["d", "b"]
    assert [each.run_id for each in ledger.runs(config_hash="c")] == ["b", "a"]
    assert [each.run_id for each in ledger.runs(decided=True)] == ["a"]
    assert [each.run_id for each in ledger.runs(limit=1)] == ["d"]


def test_the_last_deployed_run_is_that_of_the_same_configuration_before(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "gate.db")
    for name, at, config, decision in (
        ("a", 1.0, "c", "deploy"), ("b", 2.0, "c", "block"), ("d", 3.0, "e", "deploy"), ("f", 9.0, "c", "deploy")
    ):  # fmt: skip
        each = run(name, at, config_hash=config)
        ledger.begin(each)
        ledger.end(decided(each, decision, 0.1), "{}")
    found = ledger.last_deployed("c", 5.0)
    assert found is not None
    assert found.run_id == "a"
    assert ledger.last_deployed("x", 5.0) is None


def test_a_decided_run_is_never_written_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "gate.db")
    ledger.begin(run())
    ledger.end(decided(run(), "block", 0.5), '{"decision":"block"}')
    with pytest.raises(GateError, match="no undecided run `r1`"):
        ledger.end(decided(run(), "deploy", 0.0), '{"decision":"deploy"}')
    assert ledger.report("r1") == '{"decision":"block"}'
    with pytest.raises(GateError, match="a run `r1` already"):
        ledger.begin(run())


def test_the_file_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    Ledger(tmp_path / "deep" / "gate.db")
    assert stat.S_IMODE((tmp_path / "deep" / "gate.db").stat().st_mode) == 0o600


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"not a database at all, by far" * 100)
    with pytest.raises(GateError, match="can't be used as the file of runs"):
        Ledger(tmp_path / "text")
    with pytest.raises(GateError, match="can't be used as the file of runs"):
        Ledger(tmp_path)
    later = sqlite3.connect(tmp_path / "later.db")
    later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(GateError, match="written by a later version"):
        Ledger(tmp_path / "later.db")
