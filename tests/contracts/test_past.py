"""One contract for every history of runs: the file of runs, and Elasticsearch (a cluster where `CHECKSTREAM_ES_URL`
names one, else the fake that checks each request against Elastic's API specification)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from checkstream.errors import StoreUnusable
from checkstream.gate.history import NEWEST, ModelTotals
from checkstream.gate.ledger import Ledger
from checkstream.gate.past import LocalPast, Past
from checkstream.gate.shared_past import SharedPast
from checkstream.gate.terms import Run, Said
from tests.elastic.history import shared_history

Record = Callable[[Run, str, Sequence[Said]], Awaitable[None]]


@pytest_asyncio.fixture(params=["local", "shared"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Past, Record]]:
    if request.param == "local":
        ledger = Ledger(tmp_path / "gate.db")

        async def record(run: Run, report: str, said: Sequence[Said]) -> None:
            ledger.begin(msgspec.structs.replace(run, decision=None))
            ledger.end(run, report, said)

        yield LocalPast(ledger), record
        return
    async with shared_history() as url:
        shared = await SharedPast.open(url)
        yield shared, shared.record
        await shared.close()


def decided(run_id: str, begun: float, decision: str = "deploy", config: str = "c", target: str = "openai:m") -> Run:
    return Run(
        run_id=run_id, config_hash=config, target=target, verifier="v@1", snapshot="s", begun=begun, ended=begun + 1,
        decision=decision, risk=0.25, total_claims=4, supported=3, weakly_supported=0, unsupported=1,
    )  # fmt: skip


def said(run_id: str, text: str, at: float, kind: str = "response", item: str = "p1") -> Said:
    return Said(run_id=run_id, kind=kind, item=item, at=at, text=text)


async def test_a_run_and_its_report_are_told_as_they_were_kept(kept: tuple[Past, Record]) -> None:
    past, record = kept
    report = '{"run_id":"r1","details":[{"claim":"naïve \\u2028 \\u0000"}]}'
    await record(decided("r1", 100.0), report, [])
    assert await past.runs() == [decided("r1", 100.0)]
    assert await past.report("r1") == report
    assert await past.report("r2") is None


async def test_runs_are_the_newest_first_and_chosen_by_what_is_asked(kept: tuple[Past, Record]) -> None:
    past, record = kept
    for run in (
        decided("b", 200.0),
        decided("a", 200.0),
        decided("c", 100.0, config="d"),
        decided("d", 300.0, target="t"),
    ):
        await record(run, "{}", [])
    assert [run.run_id for run in await past.runs()] == ["d", "a", "b", "c"]
    assert [run.run_id for run in await past.runs(limit=2)] == ["d", "a"]
    assert [run.run_id for run in await past.runs(since=200.0)] == ["d", "a", "b"]
    assert [run.run_id for run in await past.runs(config_hash="d")] == ["c"]
    assert [run.run_id for run in await past.runs(target="t", decided=True)] == ["d"]
    assert await past.runs(target="' OR 1=1") == []


async def test_a_trend_tells_of_each_configuration_and_holds_its_models_side_by_side(
    kept: tuple[Past, Record],
) -> None:
    past, record = kept
    for run, risk in (
        (decided("a", 100.0), 0.05),
        (decided("b", 200.0, "block", target="bedrock:n"), 0.5),
        (decided("c", 300.0, "warn"), 0.2),
        (decided("d", 400.0, config="e"), 0.0),
    ):
        await record(msgspec.structs.replace(run, risk=risk), '{"long": "report"}', [])
    other, ours = await past.trends()
    assert (other.config_hash, len(other.points)) == ("e", 1)
    assert [(each.run_id, each.difference, each.regression) for each in ours.points] == [
        ("a", None, False),
        ("b", 0.45, True),
        ("c", 0.15, True),
    ]
    assert ours.models == (
        ModelTotals(
            target="openai:m", runs=2, decisions={"deploy": 1, "warn": 1}, least_risk=0.05, mean_risk=0.125,
            most_risk=0.2, total_claims=8, supported=6, weakly_supported=0, unsupported=2,
        ),
        ModelTotals(
            target="bedrock:n", runs=1, decisions={"block": 1}, least_risk=0.5, mean_risk=0.5, most_risk=0.5,
            total_claims=4, supported=3, weakly_supported=0, unsupported=1,
        ),
    )  # fmt: skip
    await record(msgspec.structs.replace(decided("0", 50.0, target="bedrock:n"), risk=0.02), "{}", [])
    for at in (None, 100.0):
        _, ours = await past.trends(target="openai:m", since=at)
        assert [point.difference for point in ours.points] == [0.03, 0.15]
    since = await past.trends(since=200.0, target="openai:m")
    assert [trend.models[0].runs for trend in since] == [1, 1]
    assert [(each.run_id, each.difference, each.regression) for each in since[1].points] == [("c", 0.15, True)]
    assert [trend.config_hash for trend in await past.trends(config_hash="e")] == ["e"]
    assert await past.trends(config_hash="none") == []


async def test_a_trend_is_of_every_configuration_and_its_totals_of_every_run(kept: tuple[Past, Record]) -> None:
    past, record = kept
    for number in range(NEWEST + 5):
        await record(decided(f"own{number:03}", 1000.0 + number, config="c"), "{}", [])
        await record(decided(f"other{number}", float(number), config=f"c{number:03}"), "{}", [])
    found = await past.trends()
    assert [trend.config_hash for trend in found] == ["c", *(f"c{number:03}" for number in range(NEWEST + 4, -1, -1))]
    assert [point.run_id for point in found[0].points] == [f"own{number:03}" for number in range(5, NEWEST + 5)]
    for since in (None, 1001.0):
        (cut,) = await past.trends(since=since, config_hash="c")
        assert [point.difference for point in cut.points] == [0.0] * NEWEST
    assert found[0].models[0].runs == NEWEST + 5


async def test_a_baseline_is_the_last_deployed_run_before(kept: tuple[Past, Record]) -> None:
    past, record = kept
    for run in (
        decided("a", 100.0),
        decided("b", 200.0),
        decided("c", 300.0, "block"),
        decided("d", 150.0, config="e"),
    ):
        await record(run, "{}", [])
    found = [await past.last_deployed("c", before) for before in (100.0, 200.0, 400.0)]
    assert [run and run.run_id for run in found] == [None, "a", "b"]


async def test_what_was_said_is_found_by_all_of_its_words_kind_and_time(kept: tuple[Past, Record]) -> None:
    past, record = kept
    await record(decided("march", 300.0), "{}", [said("march", "Refunds take 5 days, naïve one.", 300.0)])
    await record(
        decided("april", 400.0),
        "{}",
        [said("april", "refunds take 9 DAYS", 400.0), said("april", "refunds unsupported", 400.0, "verdict")],
    )
    assert {each.run_id for each in await past.search("refunds days")} == {"march", "april"}
    assert [each.run_id for each in await past.search("refunds", since=300.0, until=400.0)] == ["march"]
    assert [each.text for each in await past.search("refunds", kind="verdict")] == ["refunds unsupported"]
    assert await past.search("Naive REFUNDS") == [said("march", "Refunds take 5 days, naïve one.", 300.0)]
    assert len(await past.search("refunds", limit=1)) == 1
    for hostile in ('"', "NEAR(", "*", "", "   ", "\x00", "'; DROP TABLE runs; --", "text:refunds OR"):
        await past.search(hostile)


async def test_recording_again_changes_nothing() -> None:
    async with shared_history() as url:
        for _ in range(2):
            shared = await SharedPast.open(url)
            await shared.record(decided("r1", 100.0), "{}", [said("r1", f"refunds {n}", 100.0) for n in range(600)])
            assert len(await shared.runs()) == 1
            assert len(await shared.search("refunds", limit=1000)) == 600
            await shared.close()


async def test_a_history_that_nobody_has_written_to_is_empty_and_stays_unmade() -> None:
    async with shared_history() as url:
        shared = SharedPast.of(url)
        for _ in range(2):
            assert (await shared.runs(), await shared.trends(), await shared.search("refunds")) == ([], [], [])
            assert (await shared.report("r1"), await shared.last_deployed("c", 1.0)) == (None, None)
        await shared.close()


async def test_a_cluster_that_is_not_there_is_told() -> None:
    with pytest.raises(StoreUnusable, match="check its address"):
        await SharedPast.open("http://127.0.0.1:1/gate")
