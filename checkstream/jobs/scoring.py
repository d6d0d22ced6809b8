"""Handles jobs of kind `score`: has one profile score one exchange, and reacts to what it says."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from checkstream.errors import JobError, JobInvalid
from checkstream.jobs.clock import wall_ms
from checkstream.jobs.exchange import Exchange, read_scoring_job
from checkstream.jobs.reaction import Reaction, react
from checkstream.jobs.rescored import RESCORE
from checkstream.jobs.terms import Job, Result
from checkstream.jobs.worker import Outcome


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """What a profile says of an exchange."""

    risk: float
    """0 (sound) to 100."""
    report: bytes
    """Its own output, JSON."""


class Scorer(msgspec.Struct, frozen=True, kw_only=True):
    """A profile that scores exchanges in the background."""

    version: str
    """A new one scores anew."""
    assess: Callable[[Exchange], Awaitable[Assessment]]
    """Whatever it raises is the job's failure, and is tried again."""


class Scoring:
    """Handles jobs of kind `score`."""

    def __init__(
        self,
        scorers: Mapping[str, Scorer],
        reactions: Mapping[str, Reaction],
        *,
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        """Score by `scorers` (by profile) and react as `reactions` (by route) say; `now_ms` is the wall clock."""
        self._scorers = scorers
        self._reactions = reactions
        self._now_ms = now_ms

    async def __call__(self, job: Job) -> Outcome:
        """Score.

        Raises:
            JobInvalid: the job can't be read, or no such profile is here.
            JobError: the profile said something that is no risk.
        """
        profile, exchange = read_scoring_job(job)
        scorer = self._scorers.get(profile)
        if scorer is None:
            known = ", ".join(sorted(self._scorers)) or "none"
            raise JobInvalid(f"there is no profile `{profile}` here; there is {known}")
        said = await scorer.assess(exchange)
        if not (math.isfinite(said.risk) and 0 <= said.risk <= 100):
            raise JobError(f"the profile `{profile}` gave the risk {said.risk}, which is not 0 to 100")
        result = Result(
            stream=exchange.stream,
            route=exchange.route,
            scorer=profile,
            version=scorer.version,
            risk=said.risk,
            report=said.report,
            at_ms=self._now_ms(),
        )
        if profile == RESCORE:  # it is counted; the reactions are to what evidence says
            return Outcome(result=result)
        jobs, marker = react(self._reactions.get(exchange.route, Reaction(on_high=())), exchange, result)
        return Outcome(result=result, jobs=jobs, marker=marker)
