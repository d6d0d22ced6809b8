"""What follows from rules that fired: verdicts, edits of text, an end of the answer. The only such code.

The same function serves prompts, streams and whole answers. When several rules fire, the strictest wins per
span (`reject`/`stop` > `redact`); disclaimers and log entries compose. An `allow` rule of higher priority
over the same span makes an exception, which is recorded on the verdict that it set aside.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import msgspec

from checkstream.core.holdback import Replacement
from checkstream.core.policy.program import (
    Allow,
    InjectDisclaimer,
    LogEvent,
    Redact,
    Reject,
    RuleMeta,
    Signal,
    Stop,
)
from checkstream.core.terms import Channel, Span, Stage, Verdict

_STRICTNESS = {"allow": 0, "log_event": 1, "inject_disclaimer": 2, "redact": 3, "stop": 4, "reject": 5}


def strictest(actions: Sequence[str]) -> str:
    """Return the strictest of some actions by name; `allow` when there are none."""
    return max(actions, key=_STRICTNESS.__getitem__, default="allow")


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that one signal has fired, over one span."""

    rule: RuleMeta
    signal: Signal
    span: Span
    confidence: float = 1.0


class Halt(msgspec.Struct, frozen=True):
    """The end of a choice: where, under which rule, with what message."""

    position: int
    rule: RuleMeta
    message: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What some firings come to."""

    verdicts: tuple[Verdict, ...]
    edits: tuple[Replacement, ...] = ()
    halt: Halt | None = None
    reject: tuple[RuleMeta, Reject] | None = None
    disclaimers: tuple[InjectDisclaimer, ...] = ()


def resolve(firings: Sequence[Firing], stage: Stage, channel: Channel) -> Outcome:
    """Decide what firings over overlapping spans come to.

    Args:
        firings: Rules that fired, in the order of the text. Shadow rules are recorded and change nothing.
        stage: Where the text stands.
        channel: The channel that the spans are of.

    Returns:
        Verdicts for every firing, edits in the order of the text and disjoint, and what ends the answer.
    """
    allowed = [firing for firing in firings if _enforced(firing) and _has(firing.rule, Allow)]
    verdicts: list[Verdict] = []
    redactions: list[tuple[Span, str]] = []
    halts: list[tuple[Span, RuleMeta, Stop]] = []
    rejects: list[tuple[RuleMeta, Reject]] = []
    disclaimers: list[InjectDisclaimer] = []
    for firing in firings:
        exception = next((other for other in allowed if _excepts(other, firing)), None)
        verdicts.append(_verdict(firing, stage, channel, exception))
        if not _enforced(firing) or exception is not None:
            continue
        for action in firing.rule.actions:
            match action:
                case Redact():
                    text = action.text if action.text is not None else firing.signal.placeholder
                    redactions.append((firing.span, text))
                case Stop():
                    halts.append((firing.span, firing.rule, action))
                case Reject():
                    rejects.append((firing.rule, action))
                case InjectDisclaimer():
                    disclaimers.append(action)
                case Allow() | LogEvent():
                    pass
    return Outcome(
        verdicts=tuple(verdicts),
        edits=_merge(redactions),
        halt=_first_halt(halts, redactions),
        reject=rejects[0] if rejects else None,
        disclaimers=tuple(disclaimers),
    )


def _enforced(firing: Firing) -> bool:
    return firing.rule.mode == "enforce"


def _has(rule: RuleMeta, kind: type) -> bool:
    return any(isinstance(action, kind) for action in rule.actions)


def _excepts(allow: Firing, firing: Firing) -> bool:
    covers = allow.span.start <= firing.span.start and firing.span.end <= allow.span.end
    return covers and allow.rule.priority > firing.rule.priority


def _verdict(firing: Firing, stage: Stage, channel: Channel, exception: Firing | None) -> Verdict:
    rule = firing.rule
    return Verdict(
        action=strictest([action.name for action in rule.actions]),
        rule_id=rule.id,
        regulation=rule.regulation,
        confidence=firing.confidence,
        spans=(firing.span,),
        policy=rule.pack,
        version=rule.version,
        stage=stage,
        channel=channel,
        mode=rule.mode,
        triggers=(firing.signal.title,),
        excepted_by=exception.rule.id if exception is not None else None,
    )


def _merge(redactions: Sequence[tuple[Span, str]]) -> tuple[Replacement, ...]:
    """Join redactions that overlap; the text of the joined one is that of the longest span, the first if equal."""
    merged: list[tuple[Span, Span, str]] = []
    for span, text in sorted(redactions, key=lambda item: (item[0].start, -item[0].end)):
        if merged and span.start < merged[-1][0].end:
            whole, longest, kept = merged[-1]
            joined = Span(whole.start, max(whole.end, span.end))
            longer = span.end - span.start > longest.end - longest.start
            merged[-1] = (joined, span if longer else longest, text if longer else kept)
        else:
            merged.append((span, span, text))
    return tuple(Replacement(whole.start, whole.end, text) for whole, _, text in merged)


def _first_halt(halts: Sequence[tuple[Span, RuleMeta, Stop]], redactions: Sequence[tuple[Span, str]]) -> Halt | None:
    """Return where the answer ends: before the first stopping span and any redaction that runs into it."""
    if not halts:
        return None
    span, rule, action = min(halts, key=lambda halt: (halt[0].start, -halt[1].priority))
    position = span.start
    for edit in _merge(redactions):
        if edit.start < position < edit.end:
            position = edit.start
    return Halt(position, rule, action.message)


def disclaimer_text(disclaimer: InjectDisclaimer) -> str:
    """Return what is added to an answer for a disclaimer: its text, set off by a blank line."""
    return f"{disclaimer.text}\n\n" if disclaimer.position == "start" else f"\n\n{disclaimer.text}"


class _Ranges:
    """Half-open ranges in the order of the text that don't overlap: looked up by halving, kept as plain numbers."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts = array("q")
        self._ends = array("q")

    def add(self, start: int, end: int) -> None:
        """Add a range behind all others."""
        self._starts.append(start)
        self._ends.append(end)

    def around(self, position: int) -> Span | None:
        """Return the range that starts at or before `position` and is the last to do so."""
        place = bisect_right(self._starts, position) - 1
        return Span(self._starts[place], self._ends[place]) if place >= 0 else None

    def forget(self, position: int) -> None:
        """Drop what ends before `position`, when that is enough to be worth the work."""
        count = bisect_left(self._ends, position)
        if count > _MIN_FORGOTTEN and 2 * count >= len(self._ends):
            del self._starts[:count], self._ends[:count]


class JsonStrings:
    """Where the strings of a JSON text stand that arrives in pieces, so that edits keep it valid.

    Tool-call arguments are such a text. It may be edited inside a string only, and never through an escape.
    """

    __slots__ = ("_escape_start", "_escapes", "_position", "_string_start", "_strings")

    def __init__(self) -> None:
        """Start before the text."""
        self._strings = _Ranges()
        """Insides of the complete strings."""
        self._escapes = _Ranges()
        """Escape sequences inside strings."""
        self._position = 0
        self._string_start: int | None = None
        self._escape_start: int | None = None

    def feed(self, text: str) -> None:
        """Take the next piece of the text."""
        for offset, char in enumerate(text, self._position):
            if self._escape_start is not None:
                size = offset - self._escape_start
                # `\u0041` has five characters after the backslash, any other escape has one.
                if size == 1 and char == "u":
                    continue
                if size == 1 or size == _UNICODE_ESCAPE_CHARS - 1:
                    self._escapes.add(self._escape_start, offset + 1)
                    self._escape_start = None
            elif self._string_start is None:
                if char == '"':
                    self._string_start = offset + 1
            elif char == "\\":
                self._escape_start = offset
            elif char == '"':
                self._strings.add(self._string_start, offset)
                self._string_start = None
        self._position += len(text)

    def whole(self, position: int) -> int:
        """Return `position`, or where the escape starts that it stands in: text may be parted there."""
        if self._escape_start is not None and position > self._escape_start:
            return self._escape_start
        escape = self._escapes.around(position)
        return escape.start if escape is not None and position < escape.end else position

    def open(self, position: int) -> bool:
        """Tell whether `position` stands in an escape that is not complete yet."""
        return self._escape_start is not None and position > self._escape_start

    def editable(self, start: int, end: int) -> Span | None:
        """Return the span widened to whole escapes if it lies inside one string, else None."""
        start = self.whole(start)
        escape = self._escapes.around(end)
        if escape is not None and escape.start < end < escape.end:
            end = escape.end
        string = self._strings.around(start)
        if string is not None and end <= string.end:
            return Span(start, end)
        if self._string_start is not None and self._string_start <= start:
            return Span(start, end)
        return None

    def forget(self, position: int) -> None:
        """Drop what ends before `position`."""
        self._strings.forget(position)
        self._escapes.forget(position)


_MIN_FORGOTTEN = 256
_UNICODE_ESCAPE_CHARS = 6


def inside_json_string(text: str) -> str:
    """Return `text` as it stands between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
