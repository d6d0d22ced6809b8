"""Scored answers and runs of the gate on a page: from real files, hostile ones too, and empty ones that teach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import pytest
from blockbuster import blockbuster_ctx

from checkstream.console.views.quality import over_time
from checkstream.errors import StoreFailed
from checkstream.gate.ledger import Ledger
from checkstream.gate.terms import Run
from checkstream.jobs.recent import recent_results
from checkstream.jobs.room import Load
from checkstream.jobs.sqlite_queue import SqliteQueue
from checkstream.jobs.terms import Finished, Job, Result
from tests.console_facts import HOSTILE, MadeUp, served

NAME = HOSTILE[:400].encode("utf-8", "replace").decode()


def scored(file: Path, *results: Result) -> None:
    queue = SqliteQueue(file, capacity=Load(100, 10**6), full="drop_new", lease_s=60, attempts=3)
    for number, result in enumerate(results):
        queue.put([Job(id=str(number), kind="score", stream=result.stream, body=b"{}", put_ms=1)])
        (lease,) = queue.lease(1)
        queue.done([Finished(lease=lease, result=result)])
    queue.close()


def result(at: int, risk: float, stream: str = "s1", scorer: str = "watchdog") -> Result:
    return Result(stream=stream, route="chat", scorer=scorer, version="1", risk=risk, report=b"{}", at_ms=at)


def run(at: float, decision: str, target: str = "m") -> Run:
    return Run(
        run_id=f"run-{at}", config_hash="c", target=target, verifier="v", snapshot="s", begun=at, ended=at + 1,
        decision=decision, risk=0.25, total_claims=8, supported=6, weakly_supported=1, unsupported=1,
    )  # fmt: skip


async def page_of(folder: Path, **places: Any) -> str:
    with blockbuster_ctx("checkstream"):
        async with (
            served(MadeUp(), folder, **places) as url,
            aiohttp.request("GET", f"{url}/console/quality") as response,
        ):
            assert response.status == 200
            return await response.text()


async def test_where_nothing_is_configured_the_page_teaches(tmp_path: Path) -> None:
    page = await page_of(tmp_path)
    assert "grounding: {sample: 0.2, profiles: [watchdog]}" in page
    assert "checkstream worker --config checkstream.yaml" in page
    assert "checkstream gate --reports reports/" in page
    assert not (tmp_path / "gate.db").exists()
    page = await page_of(tmp_path, scored=("chat",), jobs=None)
    assert "checkstream jobs list --config checkstream.yaml" in page
    page = await page_of(tmp_path, scored=("chat",))
    assert "Nothing has been scored yet" in page
    assert not (tmp_path / "jobs.db").exists()


async def test_results_and_runs_stand_there_over_time(tmp_path: Path) -> None:
    scored(tmp_path / "jobs.db", result(1000, 20), result(2000, 90, "s2"), result(3000, 40, "s3", "rag"))
    ledger = Ledger(tmp_path / "gate.db")
    for each in (run(1.0, "deploy"), run(2.0, "block")):
        ledger.begin(each)
        ledger.end(each, None)
    page = await page_of(tmp_path, scored=("chat",))
    assert 'href="/console/exchanges?stream=s2"' in page
    assert 'href="/console/exchanges?stream=s1"' not in page
    assert page.count('class="chart"') == 2
    assert [page.count(f">{decision}</span>") for decision in ("deploy", "block", "warn")] == [1, 1, 0]
    assert '<th scope="row"><bdi>watchdog@1</bdi></th><td class="n">2</td><td class="n">55.0</td>' in page


async def test_hostile_names_stand_there_as_text_and_files_of_others_are_told(tmp_path: Path) -> None:
    scored(tmp_path / "jobs.db", result(1000, 99, NAME, NAME))
    ledger = Ledger(tmp_path / "gate.db")
    ledger.begin(run(1.0, "deploy", NAME))
    page = await page_of(tmp_path, scored=(NAME,))
    for never in ("<script>alert", "\u202e", "\x00", "<b>"):
        assert never not in page
    (tmp_path / "other").mkdir()
    for name in ("jobs.db", "gate.db"):
        (tmp_path / "other" / name).write_bytes(b"no database at all " * 100)
    page = await page_of(tmp_path / "other", scored=("chat",))
    assert page.count('class="fault"') == 2


def test_who_only_looks_makes_no_file_and_changes_none(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    assert recent_results(file, 5) == []
    scored(file, *(result(at, 1, f"s{at}") for at in range(5)))
    before = file.read_bytes()
    assert [each.stream for each in recent_results(file, 3)] == ["s4", "s3", "s2"]
    assert file.read_bytes() == before
    file.write_bytes(b"x" * 5000)
    with pytest.raises(StoreFailed, match="can't be read"):
        recent_results(file, 3)


def test_a_chart_has_the_points_of_the_most_frequent_names_and_no_line_of_one_point() -> None:
    assert over_time("t", "u", [(1.0, "a", 5.0)]) is None
    chart = over_time("t", "u", [(3.0, "a", 5.0), (1.0, "b", 6.0), (2.0, "a", 7.0), (4.0, "c", 1.0), (5.0, "b", 2.0)])
    assert chart is not None
    assert chart.at == (1.0, 2.0, 3.0, 5.0)
    assert [(line.name, line.values) for line in chart.lines] == [
        ("a", (None, 7.0, 5.0, None)),
        ("b", (6.0, None, None, 2.0)),
    ]
