"""What the request path counts and logs: metrics by name, log lines by event, never any text of callers or models."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import UNSET

from checkstream.core.commands import Decided, Observe, StreamRecord
from checkstream.core.conversation import ALARM
from checkstream.core.terms import Recited, unknown_of
from checkstream.errors import CheckstreamError, ScoringReason, UpstreamError
from checkstream.proxy.ids import STREAM, identify, new_id
from checkstream.proxy.replies import row
from checkstream.proxy.spans import OF_VERDICT, VERDICT, told_of
from checkstream.telemetry.drift import Counts, Key
from checkstream.telemetry.logs import Log
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.traces import Trace, Tracer

NO_ROUTE = "-"
"""Route of requests that no route has taken, in metrics."""
_MOST_LOGGED = 16
"""Verdicts of one exchange that are logged one by one."""
_MOST_NAMED = 8
"""Fields of one exchange that a log names of a kind; the record has more."""
_LEAST_TOKENS = 16
"""Of a streamed answer whose speed is counted: shorter ones come in one piece or two."""
_NEWS_S = 60.0
_MOST_NEWS = 1000


class News:
    """Tells what has not been said for a minute. INVARIANT: remembers a bounded number of names."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._said: dict[str, float] = {}

    def is_news(self, name: str, now: float) -> bool:
        """Tell whether `name` was last said over a minute before `now` (monotonic seconds); it counts as said."""
        said = self._said.get(name)
        if said is not None and now - said < _NEWS_S:
            return False
        if len(self._said) >= _MOST_NEWS:
            self._said.clear()
        self._said[name] = now
        return True


def _told(record: StreamRecord) -> dict[str, object]:
    """Return what a log says of a record: how it ended, and fields that nobody knew, were not read, or are gone."""
    fields = {
        "unknown_fields": unknown_of(record.scanned),
        "not_read": record.unscanned,
        "removed_fields": record.removed,
    }
    named = {key: [*names[:_MOST_NAMED], *_more(len(names))] for key, names in fields.items() if names}
    return {"outcome": record.outcome, **named}


def _more(count: int) -> list[str]:
    return [f"{count - _MOST_NAMED} more"] if count > _MOST_NAMED else []


class _OfRoute:
    """What is counted by route alone, bound once."""

    __slots__ = ("added_ttft", "cutoff", "decision", "hold", "ingress", "inter_token", "policy")

    def __init__(self, metrics: Metrics, route: str) -> None:
        self.added_ttft = metrics.added_ttft.of(route)
        self.cutoff = metrics.cutoff.of(route)
        self.decision = metrics.decision.of(route, "midstream"), metrics.decision.of(route, "ingress")
        self.hold = metrics.hold.of(route)
        self.ingress = metrics.ingress.of(route)
        self.inter_token = metrics.inter_token.of(route)
        self.policy = metrics.policy.of(route)


class StreamCounts:
    """Counts and logs one exchange, under its stream id."""

    def __init__(
        self,
        metrics: Metrics,
        log: Log,
        news: News,
        stream: str,
        route: str,
        *,
        of: _OfRoute,
        trace: Trace | None = None,
        candidate: bool = False,
    ) -> None:
        """Begin now; `trace` is the exchange's span, if spans are told; `candidate`: a candidate bundle decides it."""
        self._candidate = candidate
        self._trace = trace
        self._news = news
        self._metrics = metrics
        self._log = log
        self._stream = stream
        self._route = route
        self._of = of
        self._begun = time.monotonic()
        self._first = 0.0
        """When the first text of a stream left; 0: none has."""
        self._wrote = 0.0
        self._answered = False
        """An upstream has answered, and well."""
        self._tokens_in = self._tokens_out = 0.0
        self._verdicts = 0
        self._record: StreamRecord | None = None
        self._model = ""

    def decided(self, command: Decided) -> None:
        """Count a verdict, and log it: a text may be made of findings, so of many only how many there were."""
        verdict = command.verdict
        labels = verdict.action, verdict.rule_id, str(verdict.stage), verdict.mode, verdict.policy
        self._metrics.verdicts.of(*labels).inc()
        took = {} if verdict.latency_ms is UNSET else {"latency_ms": verdict.latency_ms}
        if self._trace is not None:
            told = {f"checkstream.{name}": ms for name, ms in took.items()}
            self._trace.happened(VERDICT, {**dict(zip(OF_VERDICT, labels, strict=True)), **told})
        self._verdicts += 1
        if self._verdicts > _MOST_LOGGED:
            return
        recited = verdict.recited
        more = {"words": recited.words, "share": round(recited.share, 3)} if isinstance(recited, Recited) else {}
        self._log.info(
            "verdict",
            stream=self._stream,
            action=verdict.action,
            rule_id=verdict.rule_id,
            stage=str(verdict.stage),
            channel=verdict.channel.kind,
            mode=verdict.mode,
            **took,
            **more,
        )

    def degraded(self, reason: str) -> None:
        """Count and log a degradation: as a warning where it is news, for one busy minute has thousands."""
        self._metrics.degraded.of(reason).inc()
        if self._news.is_news(f"degraded:{reason}", time.monotonic()):
            self._log.warning("degraded", stream=self._stream, reason=reason)
        else:
            self._log.debug("degraded", stream=self._stream, reason=reason)

    def observe(self, command: Observe) -> None:
        """Note a measurement of the guard."""
        match command.metric:
            case "hold_seconds":
                self._of.hold.observe(command.value)
            case "added_ttft_seconds":
                self._of.added_ttft.observe(command.value)
                self._first = time.monotonic()
            case "cutoff_seconds":
                self._of.cutoff.observe(command.value)
            case "tokens_in":
                self._tokens_in = command.value
            case "tokens_out":
                self._tokens_out = command.value

    def guarded(self, seconds: float) -> None:
        """Note how long the guard itself took over the exchange, which is over: all that was done of it is done."""
        self._of.policy.observe(seconds)
        if self._candidate:
            self._metrics.candidate_policy.of().observe(seconds)
        if self._record is not None:
            self._count_by_model(self._record)

    @property
    def traceparent(self) -> str | None:
        """By which the upstream is told of which trace its request is; None: as the caller has said."""
        return None if self._trace is None else self._trace.context.header

    def forwarded(self) -> None:
        """Note that the prompt has passed its checks."""
        self._of.ingress.observe(time.monotonic() - self._begun)

    def judged(self, seconds: float, *, ingress: bool) -> None:
        """Note how long it took from asking classifiers about a text to what came of it."""
        self._of.decision[ingress].observe(seconds)

    def wrote(self) -> None:
        """Note a write to the caller."""
        now = time.monotonic()
        if self._wrote:
            self._of.inter_token.observe(now - self._wrote)
        self._wrote = now

    def upstream_answered(self, status: int) -> None:
        """Count an answer of the upstream."""
        self._answered = status < 300
        self._metrics.upstream_responses.of(self._route, str(status)).inc()

    def recorded(self, record: StreamRecord, model: str = "") -> None:
        """Count how the exchange came out, and whether all of it was read.

        Args:
            record: What is kept of it.
            model: What the request names; empty: none.
        """
        self._record, self._model = record, model
        self._metrics.exchanges.of(self._route, record.outcome).inc()
        if self._candidate:
            self._metrics.candidate_exchanges.of(record.outcome).inc()
        if isinstance(record.method, str):
            self._metrics.messages.of(self._route, record.method, record.outcome).inc()
        for stage in sorted({name.partition(":")[0] for name in record.unscanned}):
            self._metrics.unscanned.of(stage).inc()
        for what, count in (
            ("given", sum((record.pseudonyms or {}).values())),
            ("restored", record.restored or 0),
            ("not_given", record.not_given or 0),
        ):
            if count:
                self._metrics.pseudonyms.of(what).inc(count)
        if record.conversation is not UNSET:
            if max(record.conversation.risks.values(), default=0.0) >= ALARM:
                self._metrics.alarms.of(self._route).inc()
            for rule_id in record.conversation.rules:
                self._metrics.added_up.of(rule_id).inc()

    def _count_by_model(self, record: StreamRecord) -> None:
        metrics, route = self._metrics, self._route
        if self._answered and record.outcome == "complete" and not record.verdicts:
            metrics.models.learn(self._model)
        model = metrics.models.of(self._model)
        metrics.actions.of(route, model, record.action).inc()
        if self._tokens_in:
            metrics.tokens.of(route, model, "in").inc(self._tokens_in)
        if self._tokens_out:
            metrics.tokens.of(route, model, "out").inc(self._tokens_out)
        if self._first:
            metrics.ttft.of(route, model).observe(self._first - self._begun)
            seconds = time.monotonic() - self._first
            if seconds and self._tokens_out >= _LEAST_TOKENS:
                metrics.speed.of(route, model).observe(self._tokens_out / seconds)

    def looked_up(self, *, asked: int, known: int) -> None:
        """Count texts of a prompt that were looked up, and those that had come before."""
        self._metrics.texts_again.of("yes").inc(known)
        self._metrics.texts_again.of("no").inc(asked - known)

    def upstream_failed(self, error: UpstreamError) -> None:
        """Count a failure of the upstream, and log what its operator needs to mend it."""
        self._metrics.upstream_errors.of(self._route, error.kind).inc()
        cause = type(error.__cause__).__name__ if error.__cause__ is not None else None
        self._log.warning(
            "upstream.failed",
            stream=self._stream,
            route=self._route,
            kind=error.kind,
            detail=str(error),
            cause=cause,
        )

    def scored(self, scores: Mapping[str, float], *, ingress: bool) -> None:
        """Note what classifiers said of a text, each under its own name (`model.label`)."""
        stage = "ingress" if ingress else "midstream"
        self._metrics.scores.count(scores, stage)
        if self._candidate:
            for name, score in scores.items():
                self._metrics.candidate_scores.of(name, stage).observe(score)

    def crashed(self, error: BaseException) -> None:
        """Log a bug, or an audit chain that can't be written."""
        self._log.error("failed", stream=self._stream, exc_info=error)

    def ended(self, status: int) -> None:
        """Count and log the end."""
        self._metrics.requests.of(self._route, str(status)).inc()
        told = _told(self._record) if self._record is not None else {}
        if self._verdicts:
            told["verdicts"] = self._verdicts
        seconds = round(time.monotonic() - self._begun, 4)
        self._log.info("request.ended", stream=self._stream, route=self._route, status=status, seconds=seconds, **told)
        if self._trace is not None and self._record is not None:
            model = self._metrics.models.of(self._model)
            told_of(self._trace, self._record, stream=self._stream, route=self._route, model=model, status=status)


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """What gauges tell of a process."""

    streams: int
    most_streams: int
    held_bytes: int
    most_held_bytes: int
    conversations: int
    audit_failed: bool
    policies: tuple[tuple[str, str], ...]
    """(route, `name@version`) of each that is in force."""


class Counted:
    """Counts and logs for the whole process; also the scorer's observer."""

    def __init__(self, metrics: Metrics, log: Log, tracer: Tracer | None = None) -> None:
        """Write to `metrics` and `log`; `tracer` begins a span of each exchange, if spans are told."""
        self._tracer = tracer
        self._metrics = metrics
        self._log = log
        self._recording = "written"
        self._witnessed = "sealed"
        self._news = News()
        self._routes: dict[str, _OfRoute] = {}

    def begun(
        self,
        stream: str,
        route: str,
        caller: str | None,
        traceparent: Sequence[str] = (),
        *,
        candidate: bool = False,
    ) -> StreamCounts:
        """Log a request that a route has taken; return what counts its exchange.

        Args:
            stream: Its id.
            route: Which route has.
            caller: Who asks.
            traceparent: The headers by which it says of which trace it is.
            candidate: A candidate bundle decides it.
        """
        self._log.info("request.begun", stream=stream, route=route, caller=caller)
        trace = None if self._tracer is None else self._tracer.begin(traceparent)
        of = self._routes.get(route)
        if of is None:
            of = self._routes[route] = _OfRoute(self._metrics, route)
        return StreamCounts(
            self._metrics, self._log, self._news, stream, route, of=of, trace=trace, candidate=candidate
        )

    def recorded(self) -> None:
        """Count an entry of the audit chain."""
        self._metrics.audit_entries.inc()

    def recording(self, outcome: str, stream: str, error: BaseException | None = None) -> None:
        """Count a recording; log why one was not written, and of failures that repeat the first."""
        self._metrics.recordings.of(outcome).inc()
        if outcome not in ("written", self._recording):
            detail = error.strerror if isinstance(error, OSError) else None
            self._log.warning("recording.failed", stream=stream, outcome=outcome, detail=detail, exc_info=error)
        self._recording = outcome

    def evidence(self, outcome: str, stream: str, error: BaseException | None = None) -> None:
        """Count a piece of evidence; log why one was not kept, and of failures that repeat the first."""
        self._metrics.evidence.of(outcome).inc()
        if outcome not in ("sealed", self._witnessed):
            detail = error.strerror if isinstance(error, OSError) else type(error).__name__ if error else None
            self._log.warning("evidence.failed", stream=stream, outcome=outcome, detail=detail)
        self._witnessed = outcome

    def refused(self, stream: str, error: CheckstreamError, route: str | None = None) -> None:
        """Count and log a request that was not taken.

        Args:
            stream: Its id.
            error: Why.
            route: Whose it was to be; None: there was none, or several could have been.
        """
        self.answered(route, row(error).status)
        self._log.info("request.refused", stream=stream, route=route, kind=row(error).kind, status=row(error).status)

    def crashed(self, stream: str, error: BaseException, route: str | None = None) -> None:
        """Count and log a request that was answered with a failure, since there is a bug."""
        self.answered(route, row(error).status)
        self._log.error("failed", stream=stream, exc_info=error)

    def answered(self, route: str | None, status: int) -> None:
        """Count an answer that no exchange has given, such as that to a browser's preflight."""
        self._metrics.requests.of(route or NO_ROUTE, str(status)).inc()

    def unheard(self, status: int, kind: str) -> Mapping[str, str]:
        """Count and log a request that was refused before a route was looked for: unreadable, or foreign.

        Returns the headers that tell the caller under which id.
        """
        told = {STREAM: new_id()}
        identify(told)
        self.answered(None, status)
        self._log.info("request.refused", stream=told[STREAM], route=None, kind=kind, status=status)
        return told

    def checked(self, detector: str, seconds: float, failure: ScoringReason | None) -> None:
        """Note a check by a classifier."""
        self._metrics.check.of(detector).observe(seconds)
        if failure is not None:
            self._log.debug("check.failed", detector=detector, reason=failure)

    def breaker(self, detector: str, lane: str, state: str) -> None:
        """Log that a classifier's circuit changed."""
        self._log.warning("breaker", detector=detector, lane=lane, state=state)

    def reloaded(self, *, accepted: bool) -> None:
        """Count a load of configuration and policies."""
        self._metrics.reloads.of("accepted" if accepted else "refused").inc()

    def expect(self, reference: Mapping[Key, Counts], models: Iterable[str], *, learns: bool) -> None:
        """Say what is in force: what classifiers' scores are held against, and which models are told apart.

        Args:
            reference: What classifiers say of calm texts.
            models: Those that routes name.
            learns: Others are told apart as well once an upstream has answered to them.
        """
        self._metrics.scores.expect(reference)
        self._metrics.models.expect(models, learns=learns)

    def observe(self, now: Now) -> None:
        """Set the gauges to what they are now."""
        metrics = self._metrics
        metrics.workers.set(1)
        metrics.streams.set(now.streams)
        metrics.held_bytes.set(now.held_bytes)
        metrics.conversations.set(now.conversations)
        metrics.capacity.of("streams").set(now.most_streams)
        metrics.capacity.of("held_bytes").set(now.most_held_bytes)
        metrics.audit_failed.set(now.audit_failed)
        metrics.in_force(now.policies)
