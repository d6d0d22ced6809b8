from __future__ import annotations

import math

import pytest

from checkstream.errors import JobError, JobInvalid
from checkstream.jobs.exchange import Exchange, scoring_jobs
from checkstream.jobs.reaction import Reaction
from checkstream.jobs.scoring import Assessment, Scorer, Scoring
from checkstream.jobs.terms import Job

EXCHANGE = Exchange(stream="s1", route="chat", surface="x", answer="An answer.", conversation="c")


def scoring(risk: float) -> Scoring:
    async def assess(exchange: Exchange) -> Assessment:
        return Assessment(risk=risk, report=exchange.answer.encode())

    reactions = {"chat": Reaction(on_high=("marker",))}
    return Scoring({"watchdog": Scorer(version="3", assess=assess)}, reactions, now_ms=lambda: 5)


def job_for(profile: str) -> Job:
    return scoring_jobs(EXCHANGE, [profile], 0, 1 << 20)[0]


async def test_an_exchange_is_scored_by_its_profile_and_the_route_reacts() -> None:
    outcome = await scoring(80)(job_for("watchdog"))
    assert outcome.result is not None
    assert (outcome.result.scorer, outcome.result.version, outcome.result.risk) == ("watchdog", "3", 80)
    assert (outcome.result.stream, outcome.result.route, outcome.result.at_ms) == ("s1", "chat", 5)
    assert outcome.result.report == b"An answer."
    assert outcome.marker is not None


async def test_a_profile_that_there_is_not_is_named_with_those_that_there_are() -> None:
    with pytest.raises(JobInvalid, match="no profile `judge` here; there is watchdog"):
        await scoring(1)(job_for("judge"))


@pytest.mark.parametrize("risk", [math.nan, math.inf, -1, 100.5])
async def test_what_is_no_risk_is_never_written(risk: float) -> None:
    with pytest.raises(JobError, match="not 0 to 100"):
        await scoring(risk)(job_for("watchdog"))
