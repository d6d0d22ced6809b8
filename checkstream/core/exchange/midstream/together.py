"""What the calls of one choice say together: a value may be cut over members of one call, or over several calls.

Whoever answers the calls may put their parts together. So all strings of their arguments are read once more as one
text, with nothing between them and with a space, and with what was said before each. What counts is what stands
over a seam, and of which no part is such a thing by itself: an address with the word behind it is none. No edit can
mend it: the calls that it stands in don't leave.

Numbers of several calls are no number: 4 of 100 pairs of ids of eight figures would be a card. Nor are a call's own
numbers, amounts and dates, that are no strings.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator, Sequence
from itertools import accumulate

import msgspec

from checkstream.core.channel.actions import Halt
from checkstream.core.channel.brief import Manner
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.ingress.known import Search
from checkstream.core.exchange.meter import CHANNEL_WORK
from checkstream.core.exchange.midstream.choice import Choice
from checkstream.core.exchange.midstream.said import strings_of
from checkstream.core.terms import Channel, Span, Stage

_MOST_CHARS = 65_536
"""Of all arguments of a choice that are read together."""
_BETWEEN = ("", " ")
_APART = "\n|\n"
"""Stands between some parts that are read together and the next."""
_SOME = (2, 3, 4)
"""Parts in a row that are read without what follows them: a word there would hide a number or a key."""
_MOST_PARTS, _MOST_OF_A_PART = 256, 512
_TOGETHER = 1 << 20
"""Index of the channel that they are judged as; calls have lower ones."""
_NO_CALL = -1
"""Number of what is said beside the calls."""
_READ_WORK = 100
"""Of taking a call's arguments apart."""


class Condemned(msgspec.Struct, frozen=True):
    """What rules have found over the seams between the parts of calls."""

    calls: frozenset[int]
    """Numbers of those that it stands in."""
    rule_id: str
    halt: Halt | None = None
    """The choice is to end, too."""


def condemned(choice: Choice, number: int, checking: Checking) -> Generator[None, None, Condemned | None]:
    """Return, in steps, what rules find in what the calls of a choice say together; None: nothing.

    Args:
        choice: Whose calls; all of them are complete.
        number: Of the choice.
        checking: Makes judges and notes verdicts.
    """
    parts, room = list[tuple[int, str]](), _MOST_CHARS
    for call in choice.calls:
        if call in choice.dropped:
            continue
        for judge in choice.arguments_of(call):
            if judge.holdback.received > room:
                checking.degrade("calls_not_joined")
                continue
            room -= judge.holdback.received
            parts += ((_NO_CALL, said) for said in choice.border.before_calls.get(call, ()))
            text = choice.arguments(judge)
            parts += ((call, said) for said in (strings_of(text) if call in choice.functions else (text,)) if said)
            checking.meter.spend(_READ_WORK)
            yield
    if len(parts) < 2:
        return None
    rows = [_row(parts, between) for between in _BETWEEN]
    if len(parts) <= _MOST_PARTS:
        rows += _short_rows(parts)
    found = [part for row in rows for part in row]
    return (yield from _judged(found, Channel("tool_arguments", number, _TOGETHER), checking))


class _Part(msgspec.Struct, frozen=True):
    """A part of a call in a text of several."""

    call: int
    said: str
    between: str
    """Stands behind it."""


def _row(parts: Sequence[tuple[int, str]], between: str) -> list[_Part]:
    """Return parts that stand side by side."""
    return [*(_Part(call, said, between) for call, said in parts[:-1]), _Part(*parts[-1], _APART)]


def _short_rows(parts: Sequence[tuple[int, str]]) -> Iterator[list[_Part]]:
    """Yield each row of some parts that stand side by side."""
    for size in _SOME:
        for at in range(len(parts) - size + 1) if size < len(parts) else ():
            row = parts[at : at + size]
            if all(len(said) <= _MOST_OF_A_PART for _, said in row):
                yield _row(row, "")


def _judged(parts: Sequence[_Part], channel: Channel, checking: Checking) -> Generator[None, None, Condemned | None]:
    """Judge some parts of calls as one text."""
    text = "".join([part.said + part.between for part in parts])
    starts = [0, *accumulate(len(part.said) + len(part.between) for part in parts)][:-1]
    crossing = yield from _crossing(parts, starts, text, checking)
    if not crossing:
        return None
    seams = tuple(start + len(part.said) for start, part in zip(starts, parts, strict=True))
    judge = checking.judge(channel, Stage.MIDSTREAM, Manner(grid=False, asks=False, seams=seams))
    yield from checking.meter.feeding(judge, text)
    judge.holdback.end()
    checking.meter.spend(CHANNEL_WORK)
    rulings = yield from checking.advancing(judge)
    calls, rule_id, halt = set[int](), "", None
    for ruling in rulings:
        if not ruling.outcome.edits and ruling.halt is None and ruling.pivot is None:
            continue
        halt = halt or ruling.halt
        for verdict in ruling.outcome.verdicts:
            touched = crossing.keys() & set(verdict.spans)
            if verdict.mode == "enforce" and verdict.excepted_by is None and touched:
                rule_id = rule_id or verdict.rule_id
                calls.update(*(crossing[span] for span in touched))
    return Condemned(frozenset(calls), rule_id, halt) if calls else None


def _crossing(
    parts: Sequence[_Part], starts: Sequence[int], text: str, checking: Checking
) -> Generator[None, None, dict[Span, set[int]]]:
    """Return where something stands over a seam that no part has by itself, each with the calls that it stands in."""
    patterns = checking.program.scope(Stage.MIDSTREAM, "tool_arguments").hold
    search = Search(patterns)
    found = yield from checking.meter.feeding(search, text)
    found += search.end()
    checking.meter.spend(search.take_work())
    crossing: dict[Span, set[int]] = {}
    alone: dict[str, set[int]] = {}  # a part stands in many rows, and under many findings
    for finding in found:
        first, last = bisect_right(starts, finding.span.start) - 1, bisect_left(starts, finding.span.end) - 1
        touched = parts[first : last + 1]
        if first >= last or any(part.between == _APART for part in touched[:-1]) or _are_ids(touched):
            continue
        for part in touched:
            if part.said not in alone:
                own = Search(patterns)
                each = (yield from checking.meter.feeding(own, part.said)) + own.end()
                alone[part.said] = {one.signal for one in each}
                yield
        if all(finding.signal not in alone[part.said] for part in touched):
            calls = {part.call for part in touched if part.call != _NO_CALL}
            crossing.setdefault(finding.span, set()).update(calls)
    return crossing


def _are_ids(parts: Sequence[_Part]) -> bool:
    """Tell whether parts are numbers of several calls."""
    return (
        all(part.call != _NO_CALL for part in parts)
        and len({part.call for part in parts}) > 1
        and all(part.said.isdecimal() for part in parts)
    )
