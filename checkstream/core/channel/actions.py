"""What follows from rules that fired: verdicts, edits of text, an end of the answer. The only such code.

The same function serves prompts, streams and whole answers. When several rules fire, the strictest wins per
span (`STRICTNESS`); what shapes the request or adds text composes. An `allow` rule of higher priority over
the same span makes an exception, which is recorded on the verdict that it set aside.

What stands in place of edited text is worked out in `redaction`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from checkstream.core.channel.redaction import Original, Region, Wanted, regions, written
from checkstream.core.channel.replacements import Alias, Replacement
from checkstream.core.match.segments import LINE_ENDS
from checkstream.core.policy.action import (
    Allow,
    AnyAction,
    LogEvent,
    Pseudonymise,
    Redact,
    Reject,
    RemoveMessage,
    RequireConfirmation,
    RewriteSpan,
    SafeMode,
    Stop,
)
from checkstream.core.policy.program import RuleMeta, Signal
from checkstream.core.terms import Channel, Recited, Span, Stage, Verdict

STRICTNESS = (
    "allow",
    "log_event",
    "attribute_sources",
    "inject_disclaimer",
    "require_disclaimer",
    "adapt_tone",
    "lower_temp",
    "constrain_tools",
    "allow_constrained",
    "rewrite_span",
    "pseudonymise",
    "redact",
    "remove_message",
    "require_confirmation",
    "safe_mode",
    "stop",
    "reject",
)
"""Actions from the mildest to the strictest."""


def strictest(actions: Sequence[str]) -> str:
    """Return the strictest of some actions by name; `allow` when there are none."""
    return max(actions, key=STRICTNESS.index, default="allow")


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that has fired, over one span."""

    rule: RuleMeta
    signal: Signal | None
    """What fired it; None: a rule without triggers."""
    span: Span
    mode: Literal["enforce", "shadow"]
    """As it counts in this exchange, which may make an enforced rule a shadow one."""
    confidence: float = 1.0
    undecided: bool = False
    """A condition could not be decided, and the fail mode lets it count as if it held."""
    recited: Recited | None = None
    """Of a recital."""

    @property
    def label(self) -> str:
        """What stands in place of redacted text unless the rule says otherwise."""
        return self.signal.placeholder if self.signal is not None else "[REDACTED]"


class Page(Original, Protocol):
    """All that may be known of the text that edits are made in."""

    def fill(self, template: str, firing: Firing) -> str:
        """Return a text of a rule's action with what it names put in."""

    def widen(self, span: Span, scope: Literal["span", "word", "sentence"]) -> Span:
        """Return a span with all of the words or the sentences that it touches."""


class Halt(msgspec.Struct, frozen=True):
    """The end of a choice: where, under which rule, with what message."""

    position: int
    rule: RuleMeta
    message: str
    status: int | None = None
    """Of an answer that is not streamed: the whole of it becomes an error with this status."""


class Pivot(NamedTuple):
    """The place from which on text is dropped and the answer continued under stricter parameters."""

    position: int
    rule: RuleMeta
    action: SafeMode
    """Its texts are filled."""


class Ask(msgspec.Struct, frozen=True):
    """An action that composes with all others and is carried out elsewhere. Its texts are not filled yet.

    Only who carries it out knows on which channel they are written, and what they name (`{sources}`).
    """

    firing: Firing
    action: AnyAction

    @property
    def rule(self) -> RuleMeta:
        """The rule that asks."""
        return self.firing.rule

    @property
    def span(self) -> Span:
        """The span that fired it."""
        return self.firing.span


class Refusing(NamedTuple):
    """A rule that refuses the request, and over what."""

    rule: RuleMeta
    action: Reject | RequireConfirmation
    """Its message is filled."""
    span: Span


_REMOVED = "[removed by policy]"
"""The note where a rule's own is empty: of a variable that has no value."""


class Removal(NamedTuple):
    """Something that is taken out of the request for what stands in it."""

    rule: RuleMeta
    note: str
    """What stands in its place, where something must."""
    span: Span


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What some firings come to."""

    verdicts: tuple[Verdict, ...]
    edits: tuple[Replacement, ...] = ()
    """In the order of the text, disjoint, all before `halt` and `pivot`."""
    halt: Halt | None = None
    pivot: Pivot | None = None
    """Never beside a halt."""
    refusing: tuple[Refusing, ...] = ()
    """In the order of the firings."""
    removals: tuple[Removal, ...] = ()
    asks: tuple[Ask, ...] = ()


_MAX_EXCEPTIONS = 10_000
"""Of one text the last ones are kept, this many at least: what is forgotten excepts nothing that is decided later."""


class Exceptions:
    """The exceptions that rules have made in one text, in its order: for whatever is decided over it later."""

    __slots__ = ("_allowed", "_longest", "_starts")

    def __init__(self) -> None:
        """Start with none."""
        self._starts: list[int] = []
        self._allowed: list[Firing] = []
        self._longest = 0

    def note(self, firings: Iterable[Firing]) -> None:
        """Keep those of some firings that are enforced exceptions."""
        for firing in firings:
            if _enforced(firing) and firing.rule.excepts:
                place = bisect_right(self._starts, firing.span.start)
                self._starts.insert(place, firing.span.start)
                self._allowed.insert(place, firing)
                self._longest = max(self._longest, firing.span.end - firing.span.start)
        if len(self._starts) > 2 * _MAX_EXCEPTIONS:
            del self._starts[:-_MAX_EXCEPTIONS], self._allowed[:-_MAX_EXCEPTIONS]

    def over(self, firing: Firing, shift: int) -> Firing | None:
        """Return an exception of higher priority whose span has all of a firing's in it; the one that starts last.

        Args:
            firing: What may be set aside.
            shift: How far its text starts behind that of the exceptions.
        """
        start, end = firing.span.start + shift, firing.span.end + shift
        for place in range(bisect_right(self._starts, start) - 1, -1, -1):
            allowed = self._allowed[place]
            if allowed.span.start + self._longest < end:
                return None
            if end <= allowed.span.end and allowed.rule.priority > firing.rule.priority:
                return allowed
        return None


def resolve(
    firings: Sequence[Firing],
    stage: Stage,
    channel: Channel,
    page: Page,
    exceptions: Exceptions | None = None,
    *,
    shift: int = 0,
) -> Outcome:
    """Decide what firings over overlapping spans come to.

    Args:
        firings: Rules that fired, in the order of the text. Shadow ones are recorded and change nothing.
        stage: Where the text stands.
        channel: The channel that the spans are of.
        page: The text that the spans are of.
        exceptions: Those that were made in the text before; those of `firings` are added.
        shift: How far the text starts behind that of the exceptions.

    Returns:
        Verdicts for every firing, edits of the text, and what ends or turns the answer.
    """
    exceptions = exceptions if exceptions is not None else Exceptions()
    exceptions.note(firings)
    verdicts: list[Verdict] = []
    wanted: list[Wanted] = []
    halts: list[tuple[Firing, Stop]] = []
    pivots: list[tuple[Firing, SafeMode]] = []
    refusing: list[Refusing] = []
    removals: list[Removal] = []
    asks: list[Ask] = []
    for firing in firings:
        exception = exceptions.over(firing, shift) if firing.signal is not None else None
        verdicts.append(_verdict(firing, stage, channel, exception))
        if not _enforced(firing) or exception is not None:
            continue
        for action in firing.rule.actions:
            match action:
                case Redact() | Pseudonymise() | RewriteSpan():
                    wanted.append(_wanted(firing, action, page))
                case Stop():
                    halts.append((firing, action))
                case SafeMode() if stage is Stage.MIDSTREAM:
                    pivots.append((firing, action))
                case Reject() | RequireConfirmation():
                    filled = msgspec.structs.replace(action, message=page.fill(action.message, firing))
                    refusing.append(Refusing(firing.rule, filled, firing.span))
                case RemoveMessage():
                    note = page.fill(action.text, firing)  # APIs refuse texts that are empty
                    removals.append(Removal(firing.rule, note if note.strip() else _REMOVED, firing.span))
                case Allow() | LogEvent():
                    pass
                case _:
                    asks.append(Ask(firing, action))
    joined = regions(wanted, page)
    halt, pivot = _end(halts, pivots, joined, page)
    end = halt or pivot
    return Outcome(
        verdicts=tuple(verdicts),
        edits=tuple(
            edit
            for region in joined
            if end is None or region.span.end <= end.position
            for edit in written(region, page)
        ),
        halt=halt,
        pivot=pivot,
        refusing=tuple(refusing),
        removals=tuple(removals),
        asks=tuple(asks),
    )


def _enforced(firing: Firing) -> bool:
    return firing.mode == "enforce"


def _verdict(firing: Firing, stage: Stage, channel: Channel, exception: Firing | None) -> Verdict:
    rule = firing.rule
    return Verdict(
        action=strictest([action.name for action in rule.actions]),
        rule_id=rule.id,
        regulation=rule.regulation,
        citation=rule.citation,
        severity=rule.severity,
        confidence=firing.confidence,
        spans=(firing.span,) if firing.signal is not None else (),
        policy=rule.pack,
        version=rule.version,
        stage=stage,
        channel=channel,
        mode=firing.mode,
        triggers=(firing.signal.title,) if firing.signal is not None else (),
        model=(firing.signal.classifier if firing.signal is not None else "") or msgspec.UNSET,
        excepted_by=exception.rule.id if exception is not None else None,
        undecided=firing.undecided,
        recited=firing.recited or msgspec.UNSET,
    )


def _wanted(firing: Firing, action: Redact | Pseudonymise | RewriteSpan, page: Page) -> Wanted:
    text = page.fill(action.text or "", firing) if isinstance(action, Redact) and action.style == "text" else ""
    span, alias = firing.span, None
    if not isinstance(action, Pseudonymise):
        span = page.widen(span, action.scope)
    elif firing.signal is not None:
        alias = Alias(firing.signal, action)
    return Wanted(span=span, found=firing.span, action=action, label=firing.label, text=text, alias=alias)


def _end(
    halts: Sequence[tuple[Firing, Stop]],
    pivots: Sequence[tuple[Firing, SafeMode]],
    edited: Sequence[Region],
    page: Page,
) -> tuple[Halt | None, Pivot | None]:
    """Return where the answer ends or turns: before the first span that asks for it, and before any edit there.

    A stop is stricter than a turn over the same text; a turn before it drops the text that it would stop at.
    """
    halted = min(halts, key=_first) if halts else None
    turned = min(pivots, key=_first) if pivots else None
    if turned is not None and (halted is None or turned[0].span.end <= halted[0].span.start):
        firing, mode = turned
        instruction = page.fill(mode.instruction, firing) if mode.instruction is not None else None
        filled = msgspec.structs.replace(mode, message=page.fill(mode.message, firing), instruction=instruction)
        return None, Pivot(_before_edits(firing.span.start, edited, page), firing.rule, filled)
    if halted is None:
        return None, None
    firing, stop = halted
    start = firing.span.start if turned is None else min(firing.span.start, turned[0].span.start)
    position = _before_edits(start, edited, page)
    return Halt(position, firing.rule, page.fill(stop.message, firing), stop.status), None


def _first(wish: tuple[Firing, Stop] | tuple[Firing, SafeMode]) -> tuple[int, int]:
    firing, _ = wish
    return firing.span.start, -firing.rule.priority


def _before_edits(position: int, edited: Sequence[Region], page: Page) -> int:
    """Return the start of what is edited as one over `position`, if something is: no part of that may be left."""
    spans = [region.span for region in edited]
    while True:
        kept = [Span(edit.start, edit.end) for edit in page.edits(Span(position, position + 1)) if edit.rewritten]
        start = min((span.start for span in (*spans, *kept) if span.start < position < span.end), default=position)
        if start == position:
            return position
        position = start


def behind_sentence(text: str, following: str) -> str:
    """Return `text` as it is put behind a sentence: on a line of its own where the sentence ends one.

    Args:
        text: What is added.
        following: What stands behind the sentence, its first character at least.
    """
    return f"\n{text}" if following and following[0] in LINE_ENDS else f" {text}"


def refused_call(rule: RuleMeta, channel: Channel, span: Span) -> Verdict:
    """Return the verdict on the call of a tool that `rule` does not permit; `span` is the tool's name."""
    firing = Firing(rule=rule, signal=None, span=span, mode="enforce")
    return msgspec.structs.replace(_verdict(firing, Stage.MIDSTREAM, channel, None), action="stop", spans=(span,))
