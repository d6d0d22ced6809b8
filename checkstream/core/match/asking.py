"""Questions to the engine about a text: for all patterns at once in prose, for each by itself in anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkstream.core.match.engine import Hit, Regex, compile_regex
from checkstream.core.match.patterns import Member, PatternSet, Table
from checkstream.core.match.words import LONGEST
from checkstream.core.match.work import QUESTION, Work

_FEW_STARTS: Final = 2
_FEW_CHARS: Final = 12
"""As few starts of random text are asked by themselves: forward from one the engine meets few states and stops at once
where nothing begins."""
_WILD: Final = compile_regex(r"[0-9]|[^ \n]{20}")
"""What is no prose. The union of many patterns has a state of its own for nearly every character of random text
(hashes, keys, base64, digits), and building one takes the engine longer than asking every pattern by itself: those have
few. Of words it knows all states, and one question for all patterns is cheapest."""

BEFORE_WORDS: Final = ("boundaries", "boundarie.", "boundarie\n")
"""What may stand before a space, as far as an expression can tell; all are of one length."""


def tells_words(patterns: PatternSet) -> bool:
    """Tell whether words can be known by themselves: no match in progress is taken for one so soon."""
    caps = (patterns.min_cap, patterns.min_view_cap)
    return bool(patterns) and all(cap is None or cap > 2 * LONGEST for cap in caps)


def begins_in(patterns: PatternSet, word: str) -> bool:
    """Tell whether a match begins in a space and a word, between spaces, whatever a validator says of it."""
    gates, at = patterns.tables["raw"].gates, len(BEFORE_WORDS[0])
    return any(gate.search(f"{before}{word} ", at) is not None for gate in gates for before in BEFORE_WORDS)


def first_of(companion: Regex, text: str, at: int, end: int) -> int:
    """Return the first index from `at` on from which `text[:end]` could match one expression, else `end`."""
    hit = companion.search(text, at, end)
    return end if hit is None else hit.start()


def first_live(text: str, at: int, end: int, table: Table, work: Work) -> int:
    """Return the first index from `at` on from which `text[:end]` could still become a match, else `end`."""
    companions = table.companions
    if _WILD.search(text, at, end) is not None:
        near = end if end - at <= _FEW_CHARS else at + 1
        while at < near:
            for companion in companions:
                if companion.match(text, at, end) is not None:
                    return at
            at += 1
        companions = table.apart[1]
        work.done += 2 * len(companions) + 2 * (end - at)
    else:
        work.done += len(companions) + (end - at) // 32
    best = end
    if at < end:
        for companion in companions:
            hit = companion.search(text, at, end)
            if hit is not None:
                best = min(best, hit.start())
                if best == at:
                    break
    return best


def begun(table: Table, text: str, low: int, high: int, work: Work) -> Sequence[Member]:
    """Return the members of which one, at least, matches from `low` on and before `high`."""
    few = high - low
    if few <= _FEW_STARTS:
        return table.members if _starts(table.gates, text, low, high) else ()
    work.done += QUESTION + (len(text) - low) // 32
    if _WILD.search(text, low) is None:
        return table.members if any(_starts_by(gate, text, low, high) for gate in table.gates) else ()
    if few <= _FEW_CHARS:
        return table.members if _starts(table.gates, text, low, high) else ()
    work.done += 2 * len(table.members) + len(text) - low
    shares = zip(table.apart[0], table.shares, strict=True)
    return [
        member
        for gate, share in shares
        if (hit := gate.search(text, low)) is not None and hit.start() < high
        for member in share
    ]


def _starts(gates: Sequence[Regex], text: str, low: int, high: int) -> bool:
    """Whether one of `gates` matches from `low` on and before `high`; asks each place of the few there are."""
    return any(gate.match(text, at) is not None for gate in gates for at in range(low, high))


def _starts_by(gate: Regex, text: str, low: int, high: int) -> bool:
    """Whether `gate` matches from `low` on and before `high`."""
    hit = gate.search(text, low)
    return hit is not None and hit.start() < high


def first_from(member: Member, text: str, low: int, high: int) -> Hit | None:
    """Return the first match of a member that starts from `low` on and before `high`."""
    if high - low <= _FEW_STARTS:
        hits = (member.regex.match(text, at) for at in range(low, high))
        return next((hit for hit in hits if hit is not None), None)
    hit = member.gate.search(text, low)
    if hit is None or hit.start() >= high or member.gate is member.regex:
        return None if hit is None or hit.start() >= high else hit
    return member.regex.match(text, hit.start())
