from __future__ import annotations

import io

import msgspec

from checkstream.audit.entries import RescoredEntry
from checkstream.errors import StoreFailed
from checkstream.jobs.reaction import Reaction
from checkstream.jobs.rescored import RESCORE, Rescored, Violation
from checkstream.jobs.terms import Counts, Finished, Lease, Result
from checkstream.jobs.watching import Watching
from checkstream.telemetry import Metrics, open_log
from tests.jobs_store import job

ROUTES = {"loud": Reaction(high=70, on_high=("metric", "log")), "quiet": Reaction(high=70, on_high=())}


def watching() -> tuple[Watching, Metrics, io.BytesIO]:
    metrics, file = Metrics(), io.BytesIO()
    return Watching(metrics, open_log("json", file), ROUTES), metrics, file


def events(file: io.BytesIO) -> list[str]:
    return [msgspec.json.decode(line)["event"] for line in file.getvalue().splitlines()]


def scored(route: str, risk: float) -> Finished:
    made = Result(stream="s1", route=route, scorer="watchdog", version="1", risk=risk, report=b"{}", at_ms=0)
    return Finished(lease=Lease(job=job(1), token="t", attempt=1), result=made)


def test_jobs_are_counted_by_where_they_are() -> None:
    told, metrics, _ = watching()
    told.counted(Counts(waiting=3, delayed=2, leased=1, dead=4))
    told.buffered(7)
    text = metrics.render().decode()
    for state, number in (("waiting", 3), ("delayed", 2), ("leased", 1), ("dead", 4), ("buffered", 7)):
        assert f'checkstream_jobs{{state="{state}"}} {number}.0' in text


def test_a_high_risk_is_told_where_the_route_says_so() -> None:
    told, metrics, file = watching()
    for finished in (scored("loud", 90), scored("loud", 10), scored("quiet", 90), scored("gone", 90)):
        told.ended(job(1), "done", finished, "")
    told.ended(job(1), "duplicate", scored("loud", 90), "")
    text = metrics.render().decode()
    for route, answers in (("loud", 2), ("quiet", 1), ("gone", 1)):
        assert f'checkstream_grounding_risk_count{{profile="watchdog",route="{route}"}} {answers}.0' in text
    high = [line for line in text.splitlines() if line.startswith("checkstream_grounding_high_total{")]
    assert high == ['checkstream_grounding_high_total{profile="watchdog",route="loud"} 1.0']
    assert events(file) == ["grounding.high"]


def test_answers_that_were_judged_again_are_counted_by_what_came_of_it_and_never_as_risks() -> None:
    on_record: list[RescoredEntry] = []
    metrics, file = Metrics(), io.BytesIO()
    told = Watching(metrics, open_log("json", file), ROUTES, on_record.append)
    found = Violation(
        rule_id="R-1", action="redact", confidence=1.0, start=3, end=9, triggers=("entity:EMAIL",), model=""
    )
    reports = (
        Rescored(judged=True),
        Rescored(judged=False),
        *[Rescored(caller="ann", judged=True, violations=(found,), cutoff_ms=40.0)] * 2,
    )
    for report in reports:
        made = Result(
            stream="s1", route="loud", scorer=RESCORE, version="1", risk=100.0 * bool(report.violations),
            report=msgspec.json.encode(report), at_ms=0,
        )  # fmt: skip
        told.ended(job(1), "done", Finished(lease=Lease(job=job(1), token="t", attempt=1), result=made), "")
    text = metrics.render().decode()
    assert [(each.result, each.caller, each.rules, each.cutoff_ms) for each in on_record] == [
        ("clean", None, (), None),
        ("unjudged", None, (), None),
        *[("violation", "ann", ("R-1",), 40.0)] * 2,
    ]
    for result, count in (("clean", 1), ("unjudged", 1), ("violation", 2)):
        assert f'checkstream_rescored_total{{result="{result}",route="loud"}} {count}.0' in text
    assert 'checkstream_rescored_cutoff_seconds_bucket{le="0.05",route="loud"} 2.0' in text
    assert "checkstream_grounding_risk_count" not in text
    assert "checkstream_grounding_high_total{" not in text
    lines = [msgspec.json.decode(line) for line in file.getvalue().splitlines()]
    assert [(line["event"], line["rules"], line["stream"]) for line in lines] == [
        ("rescored.violation", ["R-1"], "s1")
    ] * 2


def test_a_failing_store_is_logged_once_until_it_works_again() -> None:
    told, _, file = watching()
    for _ in range(3):
        told.store_failed(StoreFailed("the disk is full; free it"))
    told.accepted([job(1)])
    told.store_failed(StoreFailed("the disk is full; free it"))
    assert events(file) == ["jobs.store_failed", "jobs.store_works", "jobs.store_failed"]


def test_what_an_error_may_quote_of_a_text_is_not_logged() -> None:
    told, _, file = watching()
    told.ended(job(1), "dead", None, "ValueError: my number is 4111 1111 1111 1111")
    assert b"4111" not in file.getvalue()
    assert events(file) == ["job.dead"]
