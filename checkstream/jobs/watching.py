"""What operators see of the queue: metrics by state, log lines by event, never any text of callers and models."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import msgspec

from checkstream.audit.entries import RescoredEntry
from checkstream.errors import StoreFailed
from checkstream.jobs.feeder import Dropped
from checkstream.jobs.reaction import Reaction, is_high
from checkstream.jobs.rescored import RESCORE, Rescored
from checkstream.jobs.terms import Counts, Finished, Job, Result
from checkstream.jobs.worker import WorkerEnding
from checkstream.telemetry.logs import Log
from checkstream.telemetry.metrics import Metrics


class Watching:
    """Counts and logs for feeder and worker; from any thread."""

    def __init__(
        self,
        metrics: Metrics,
        log: Log,
        reactions: Mapping[str, Reaction],
        record: Callable[[RescoredEntry], None] | None = None,
    ) -> None:
        """Write to `metrics` and `log`.

        Args:
            metrics: Where all is counted.
            log: Where people read.
            reactions: By route, what counts as high and where it is told.
            record: Hears of each answer that was judged afresh, once its result is stored; None: nobody does.
        """
        self._metrics = metrics
        self._log = log
        self._reactions = reactions
        self._record = record
        self._lock = threading.Lock()
        self._failing = False

    def accepted(self, jobs: Sequence[Job]) -> None:
        """Count jobs that the store has committed."""
        self._metrics.job_events.of("accepted").inc(len(jobs))
        self._works()

    def dropped(self, why: Dropped, jobs: int) -> None:
        """Count jobs that were not accepted, and log it."""
        self._metrics.job_events.of(f"dropped_{why}").inc(jobs)
        self._log.warning("jobs.dropped", why=why, jobs=jobs)

    def evicted(self, jobs: int) -> None:
        """Count accepted jobs that had to make room."""
        self._metrics.job_events.of("evicted").inc(jobs)
        self._log.warning("jobs.evicted", jobs=jobs)

    def ended(self, job: Job, ending: WorkerEnding, outcome: Finished | None, error: str) -> None:
        """Count what became of a job, and log why one failed."""
        self._metrics.job_events.of(ending).inc()
        self._works()
        if ending in ("failed", "dead"):
            # of the error only its class or first words: what follows may quote text
            self._log.warning(f"job.{ending}", job=job.id, stream=job.stream, reason=error.partition(":")[0][:100])
        elif ending == "lost":
            self._log.warning("job.lost", job=job.id, stream=job.stream)
        if ending == "done" and outcome is not None and outcome.result is not None:
            self._scored(outcome)

    def counted(self, counts: Counts) -> None:
        """Note how many jobs are where."""
        for state in ("waiting", "delayed", "leased", "dead"):
            self._metrics.jobs.of(state).set(getattr(counts, state))

    def buffered(self, exchanges: int) -> None:
        """Note how many exchanges wait in memory."""
        self._metrics.jobs.of("buffered").set(exchanges)

    def store_failed(self, error: StoreFailed) -> None:
        """Log that the store can't be used, once until it works again."""
        self._metrics.job_events.of("store_failed").inc()
        with self._lock:
            first, self._failing = not self._failing, True
        if first:
            self._log.error("jobs.store_failed", detail=str(error))

    def _works(self) -> None:
        with self._lock:
            again, self._failing = self._failing, False
        if again:
            self._log.info("jobs.store_works")

    def _rescored(self, result: Result) -> None:
        """Count an answer that was judged afresh and put it on record; log what should not have left."""
        told = msgspec.json.decode(result.report, type=Rescored)
        self._metrics.rescored.of(result.route, told.result).inc()
        if told.cutoff_ms is not None:
            self._metrics.rescored_cutoff.of(result.route).observe(told.cutoff_ms / 1000)
        if told.violations:
            self._log.warning("rescored.violation", stream=result.stream, route=result.route, rules=told.rules)
        if self._record is not None:
            entry = RescoredEntry(
                stream=result.stream, route=result.route, caller=told.caller, result=told.result, rules=told.rules,
                cutoff_ms=told.cutoff_ms, policies=told.policies,
            )  # fmt: skip
            self._record(entry)

    def _scored(self, outcome: Finished) -> None:
        result = outcome.result
        if result is None:
            return
        if result.scorer == RESCORE:
            self._rescored(result)
            return
        self._metrics.grounding_risk.of(result.route, result.scorer).observe(result.risk)
        reaction = self._reactions.get(result.route)
        if reaction is None or not is_high(reaction, result):
            return
        if "metric" in reaction.on_high:
            self._metrics.grounding_high.of(result.route, result.scorer).inc()
        if "log" in reaction.on_high:
            self._log.warning(
                "grounding.high",
                stream=result.stream,
                route=result.route,
                profile=result.scorer,
                version=result.version,
                risk=result.risk,
            )
