"""Runs recorded exchanges under policies, and says what another policy would have made of them.

The upstream's answer stays what was recorded: a prompt that another policy changes might have got another one.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from checkstream.core.commands import Score, StreamRecord
from checkstream.core.events import AnyEvent, Recalled, Scored, ScoringFailed
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.program import Program
from checkstream.core.steps import done
from checkstream.core.transcript import Header, Transcript, digest_of
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.places import NAMES
from checkstream.core.wire.surface import Surface
from checkstream.core.wire.surfaces import spoken
from checkstream.errors import RequestInvalid, WireError
from checkstream.trial.exchange import Came, Exchange, read_texts
from checkstream.trial.installed import InstalledModels

_CONTEXT_LINES = 2


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an exchange under one program."""

    downstream: bytes
    """What the caller would have received."""
    status: int
    closed: bool
    """The answer was brought to its end."""
    record: StreamRecord | None
    """None: the recording ends before the exchange does, since the recorded policy had cut it off."""
    shown: tuple[str, ...]
    """What caller and upstream would read, line by line."""

    @property
    def fired(self) -> Counter[str]:
        """Rules that fired -> how often; those that are only recorded say so."""
        verdicts = self.record.verdicts if self.record is not None else ()
        return Counter(
            verdict.rule_id if verdict.mode == "enforce" else f"{verdict.rule_id} ({verdict.mode})"
            for verdict in verdicts
            if verdict.excepted_by is None
        )


def takes_alike(transcript: Transcript, program: Program) -> bool:
    """Tell whether rules may spare another part of a recording than of what was recorded.

    Masking writes one specimen for all values of a kind, so what only the answer had looks like what the user wrote.
    """
    return transcript.header.masked and any(signal.spares is not None for signal in program.signals)


def replay(transcript: Transcript, program: Program, models: InstalledModels) -> Replayed:
    """Run a recorded exchange.

    A check gets what was recorded of the same text; else (in recordings that don't say what was asked) what was
    recorded under its number; else what the installed models say.

    Raises:
        WireError: the transcript's surface is not known.
        ModelError: a model can't be used.
    """
    surface = _surface(transcript.header)
    header = transcript.header
    plan = Plan(
        program=program,
        route=header.route,
        hold=header.hold,
        fail_mode=header.fail_mode,
        parts=header.parts,
        unknown_fields=header.unknown_fields,
        known_fields=frozenset(header.known_fields),
        recalls=any(isinstance(line.event, Recalled) for line in transcript.lines),
    )
    lines = [line for line in transcript.lines if line.asked is None or not _answers(line.event)]
    by_text = {line.asked: line.event for line in transcript.lines if line.asked is not None}
    numbered = {line.event.ticket for line in lines if isinstance(line.event, Scored | ScoringFailed)}

    def answer(score: Score) -> AnyEvent | None:
        known = by_text.get(digest_of(score))
        if isinstance(known, Scored | ScoringFailed):
            return msgspec.structs.replace(known, ticket=score.ticket)
        return None if score.ticket in numbered else models.answer(score)

    exchange = Exchange(surface, plan, answer)
    for line in lines:
        exchange.send(line.event, line.at)
    came = exchange.came
    downstream = b"".join(came.sent) + (came.reply.body if came.reply is not None else b"")
    return Replayed(
        downstream=downstream,
        status=came.status,
        closed=came.closed or came.reply is not None,
        record=came.record,
        shown=tuple(_shown(surface, came)),
    )


def _surface(header: Header) -> Surface | Mcp:
    if header.surface not in NAMES:
        raise WireError(f"line 1: there is no surface `{header.surface[:100]}`; known: {', '.join(NAMES)}")
    return spoken(header.surface)


def _answers(event: AnyEvent) -> bool:
    return isinstance(event, Scored | ScoringFailed)


def _shown(surface: Surface | Mcp, came: Came) -> Iterable[str]:
    """Yield what the upstream got and what the caller reads, so that two runs can be compared line by line."""
    yield f"status {came.status}"
    requests = surface.callers if isinstance(surface, Mcp) else surface
    for body in filter(None, came.forwarded):
        try:
            deltas = done(requests.reading_request(body)).unit.deltas
        except RequestInvalid as error:
            yield f"upstream: {error}"
            continue
        for delta in deltas:
            channel = delta.channel
            yield from _text(f"upstream: {channel.kind}/{channel.choice}/{channel.index}", delta.text)
    for name, text in read_texts(surface, came).items():
        yield from _text(f"caller: {name}", text)


def _text(name: str, text: str) -> Iterable[str]:
    yield name
    yield from (f"  {line}" for line in text.split("\n"))


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange that would have gone another way."""

    file: str
    why: tuple[str, ...]
    """What differs, in words."""
    diff: tuple[str, ...] = ()
    """Of what caller and upstream would read, as a unified diff."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """In how many exchanges a rule fired."""

    before: int
    after: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What another policy would have made of many exchanges."""

    transcripts: int
    """Those that could be read."""
    rules: dict[str, Counts]
    changed: tuple[Change, ...]
    unfinished: tuple[str, ...]
    """Exchanges that the recorded policy had cut off, and this one would not: the rest was never recorded."""
    computed: int
    """Checks that the recordings don't answer, answered by the installed models."""
    unanswered: int
    """Checks that nobody could answer; the fail mode has decided."""
    unknown: int
    """Recordings that don't say what had come of them, compared with nothing."""
    lost: int
    """Recordings in which masking has hidden something from a detector."""
    alike: int = 0
    """Masked recordings that a policy with `unless: in_request` or `allow` ran over (see `takes_alike`)."""


class Comparing:
    """Compares exchanges one by one, and counts."""

    def __init__(self, after: Program, before: Program | None, models: InstalledModels) -> None:
        """Compare what `after` does with what `before` does; None: with what was recorded."""
        self._after = after
        self._before = before
        self._models = models
        self._counted: dict[str, list[int]] = {}
        self._changed: list[Change] = []
        self._unfinished: list[str] = []
        self._transcripts = self._lost = self._unknown = self._alike = 0

    def take(self, file: str, transcript: Transcript) -> None:
        """Run one exchange.

        Raises:
            WireError: the transcript's surface is not known.
            ModelError: a model can't be used.
        """
        after = replay(transcript, self._after, self._models)
        header = transcript.header
        if self._before is not None:
            before = replay(transcript, self._before, self._models)
            was, fired = (before.record.action if before.record else "", before.fired)
            diff = tuple(_diff(before.shown, after.shown))
        else:
            was, fired, diff = header.action, Counter(header.fired), ()
        self._transcripts += 1
        self._lost += bool(header.lost)
        self._alike += any(takes_alike(transcript, each) for each in (self._after, self._before) if each is not None)
        if after.record is None:
            self._unfinished.append(file)
        for place, rules in enumerate((fired, after.fired)):
            for rule in rules:
                self._counted.setdefault(rule, [0, 0])[place] += 1
        known = self._before is not None or bool(header.outcome)
        self._unknown += not known
        why = _why(was, fired, after, shadows=self._before is not None) if known else ()
        if why or diff:
            self._changed.append(Change(file=file, why=why or ("the output",), diff=diff))

    @property
    def against(self) -> bool:
        """Whether it is held against another program, not against what was recorded."""
        return self._before is not None

    @property
    def outcome(self) -> Comparison:
        """What all of them came to."""
        return Comparison(
            transcripts=self._transcripts,
            rules={rule: Counts(before=b, after=a) for rule, (b, a) in sorted(self._counted.items())},
            changed=tuple(self._changed),
            unfinished=tuple(self._unfinished),
            computed=self._models.computed,
            unanswered=self._models.unanswered,
            unknown=self._unknown,
            lost=self._lost,
            alike=self._alike,
        )


def _why(was: str, fired: Mapping[str, int], after: Replayed, *, shadows: bool) -> tuple[str, ...]:
    """Return in words what differs; of a recording only the rules that were enforced are known."""
    now = after.record.action if after.record is not None else ""
    words = [f"action {was or 'none'} -> {now or 'none'}"] if was != now else []
    rules = {rule: count for rule, count in after.fired.items() if shadows or not rule.endswith(" (shadow)")}
    words += [
        f"{rule} {fired.get(rule, 0)} -> {rules.get(rule, 0)}"
        for rule in sorted({*fired, *rules})
        if fired.get(rule, 0) != rules.get(rule, 0)
    ]
    return tuple(words)


def _diff(before: tuple[str, ...], after: tuple[str, ...]) -> Iterable[str]:
    return difflib.unified_diff(before, after, "before", "after", n=_CONTEXT_LINES, lineterm="")
