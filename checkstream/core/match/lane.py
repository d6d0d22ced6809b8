"""The search over one view of one channel: what is decided, and what could still become a match.

INVARIANT: everything that a lane reports depends on the view's text alone. A candidate is decided only
when no text that may follow can change it, so it doesn't matter when that is noticed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import msgspec

from checkstream.core.match.asking import begun, first_from, first_live
from checkstream.core.match.engine import Regex
from checkstream.core.match.patterns import LEFT_CONTEXT_CHARS, Member, Table
from checkstream.core.match.phrase_search import Match, PhraseSearch
from checkstream.core.match.work import CANDIDATE, QUESTION, Work
from checkstream.core.terms import Recited

NEVER: Final = 1 << 62
"""An offset that no channel reaches."""
_MUCH_CHARS: Final = 512
"""Where so much text is held, patterns are decided ahead."""
_TRIM_CHARS: Final = 128
"""Text behind the context is dropped in pieces of this size."""


class Found(msgspec.Struct, frozen=True):
    """A decided hit, in original offsets."""

    start: int
    end: int
    signal: int
    capped: bool = False
    recited: Recited | None = None
    """Of a recital in a text that stands in this one: how much of that recites."""


_Hit = tuple[int, list[Found], int]
"""Index at which a candidate starts, what was found in it, and the original offset at which its member resumes."""


class _Ahead:
    """What is known of one member's candidates ahead of the lane's decisions; mutable, as indexes."""

    __slots__ = ("at", "end", "hits", "low")

    def __init__(self, low: int) -> None:
        self.low = low
        """Its candidates count from here on,"""
        self.at = low
        """and were looked at up to here."""
        self.hits: list[_Hit] = []
        self.end = 0
        """End of the text for which it was asked where the member is live: not before `at`."""

    def move(self, low: int, high: int) -> bool:
        """Begin at `low`, now that all before `high` is decided; return whether it still holds."""
        self.hits = [hit for hit in self.hits if hit[0] >= high]
        self.low = low
        return self.at >= low and not (self.hits and self.hits[0][0] < low)

    def trim(self, cut: int) -> None:
        self.low -= cut
        self.at -= cut
        self.end -= cut
        self.hits = [(start - cut, found, to) for start, found, to in self.hits]


class Lane:
    """A view's text from `LEFT_CONTEXT_CHARS` before the oldest undecided place, with its offset map.

    Positions inside are indexes into `text`; all that goes in or out is original code points.
    """

    __slots__ = (
        "_ahead",
        "_dead",
        "_looked",
        "_skipped",
        "base",
        "begun",
        "ends",
        "floor",
        "phrases",
        "read_to",
        "resume",
        "starts",
        "table",
        "text",
        "work",
    )

    def __init__(self, table: Table, at: int = 0, work: Work | None = None) -> None:
        """Start with no text at the original offset `at`, with the identity as offset map; its work goes to `work`."""
        self.table = table
        self.work = work if work is not None else Work()
        self.text = ""
        self.base = at
        self.starts: list[int] | None = None
        """Per character, where it starts in the original; None: the identity from `base` on."""
        self.ends: list[int] = []
        self.begun = True
        """`text` still begins where the view does."""
        self.floor = 0
        """Index from which candidates are undecided."""
        self.read_to = at
        """Original offset up to which the view has been read."""
        self.resume: dict[int, int] = {}
        """Member or phrase -> original offset before which no candidate of it counts any more."""
        self.phrases = None if table.phrases is None else PhraseSearch(table.phrases)
        self._ahead: dict[int, _Ahead] = {}
        self._looked = 0
        """Where the text ended when candidates were last looked at ahead of its decisions."""
        self._dead: dict[int, tuple[int, int]] = {}
        """Table, by identity -> an end of the text, and an index before which nothing that counts is live in it."""
        self._skipped: dict[int, int] = {}
        """Member -> original offset before which no candidate begins that it would take."""

    def branch(self, table: Table, behind: int, at: int) -> Lane:
        """Return a lane for a view equal to this one but for its last `behind` characters; it has read to `at`."""
        cut = len(self.text) - behind
        lane = Lane(table, at, self.work)
        lane.text = self.text[:cut]
        if self.starts is None:
            lane.starts = list(range(self.base, self.base + cut))
            lane.ends = list(range(self.base + 1, self.base + cut + 1))
        else:
            lane.starts, lane.ends = self.starts[:cut], self.ends[:cut]
        lane.begun = self.begun
        lane.floor = min(self.floor, cut)
        lane.resume = {index: to for index, to in self.resume.items() if index in table.numbers}
        lane._dead = {known: dead for known, dead in self._dead.items() if dead[0] <= cut}
        lane._skipped = {index: min(to, at) for index, to in self._skipped.items() if index in table.numbers}
        if self._ahead and self.floor < cut:
            lane._ahead = {m.index: self._known_before(m, cut) for m in table.members if m.index in self._ahead}
        return lane

    def _known_before(self, member: Member, end: int) -> _Ahead:
        """Return what is known of a member's candidates in `text[:end]` alone: of those before where it is live."""
        live = self._live_after(member, end, [])
        ahead = self._ahead[member.index]
        known = _Ahead(ahead.low)
        known.at, known.end = min(ahead.at, live), end
        known.hits = [hit for hit in ahead.hits if hit[0] < known.at]
        return known

    def append(self, text: str, starts: Sequence[int], ends: Sequence[int], read_to: int) -> None:
        """Add characters of the view; `read_to`: how far in the original the view has been read by now."""
        self.text += text
        self.read_to = read_to
        if self.starts is not None:
            self.starts += starts
            self.ends += ends

    def index(self, at: int) -> int:
        """Return the first index whose character starts at the original offset `at` or later."""
        if self.starts is None:
            return min(max(at - self.base, 0), len(self.text))
        return bisect_left(self.starts, at)

    def start(self, index: int) -> int:
        """Return the original offset at which the character at `index` starts, or how far the view was read."""
        if index >= len(self.text):
            return self.read_to
        return self.base + index if self.starts is None else self.starts[index]

    def _end(self, index: int) -> int:
        """Return the original offset at which the character before `index` ends."""
        return self.base + index if self.starts is None else self.ends[index - 1]

    def leftmost(self, end: int, table: Table) -> int:
        """Return the first index from which `text[:end]` could still become a match; `end` if there is none.

        `table`: the lane's own, or that of a view for which the lane stands.
        """
        best = self._first_live(end, table)
        if self.resume and best < end:
            first = self.start(best)
            if any(to > first for to in self.resume.values()):
                best = min((self._leftmost_of(member, best, end) for member in table.members), default=end)
        if end - self.floor >= _MUCH_CHARS:
            self._dead[id(table)] = end, best
        return best

    def _first_live(self, end: int, table: Table) -> int:
        """Return `leftmost` without regard to where members resume."""
        text, at = self.text, self.floor
        if at >= end or not table.companions:
            return end
        if end - at < _MUCH_CHARS:
            return first_live(text, at, end, table, self.work)
        known, dead = self._dead.get(id(table), (0, 0))
        if known <= end:  # what was not live is not, whatever follows
            at = max(at, dead)
        if at >= end:
            return end
        cut = max(at - 1, 0)
        return cut + first_live(text[cut:end], at - cut, end - cut, table, self.work)

    def live(self, stop: int, table: Table) -> int:
        """Return, in original offsets, from where the text up to the original offset `stop` could become a match."""
        end = self.index(stop)
        found = self.leftmost(end, table)
        return stop if found == end else self.start(found)

    def phrases_live(self, stop: int) -> int:
        """Return, in original offsets, from where the text up to the offset `stop` could become a phrase."""
        end = self.index(stop)
        found = self.leftmost_phrase(end)
        return stop if found == end else self.start(found)

    def leftmost_phrase(self, end: int) -> int:
        """Return the first index from which `text[:end]` could still become a phrase; `end` if there is none."""
        if self.phrases is None:
            return end
        return self.phrases.leftmost(self.text, self.floor, end, self.free if self.resume else None)

    def free(self, number: int, start: int) -> bool:
        """Whether a candidate of a phrase counts that starts at the index `start`."""
        to = self.resume.get(number)
        return to is None or self.start(start) >= to

    def _leftmost_of(self, member: Member, best: int, end: int) -> int:
        """Return `leftmost` of one member, which has no live start before `best`."""
        low = self._low(member)
        ahead = self._ahead.get(member.index)
        if ahead is not None and ahead.low == low and ahead.end <= end:
            low = max(low, ahead.at)
        low = max(low, best)
        if low >= end:
            return end
        cut = self._cut(low)
        text = self.text[cut:end] if cut else self.text
        if member.companion.match(text, low - cut, end - cut) is not None:
            return low
        hit = member.companion.search(text, low - cut, end - cut)
        return end if hit is None else cut + hit.start()

    def _low(self, member: Member) -> int:
        """Return the index from which candidates of a member count."""
        to = self.resume.get(member.index)
        return self.floor if to is None else max(self.floor, self.index(to))

    def decide(self, limit: int, out: list[Found]) -> bool:
        """Decide every candidate that starts before the original offset `limit`.

        Nothing that starts there may be live. Returns whether any was found.
        """
        high = self.index(limit)
        if high <= self.floor:
            return False
        found = False
        for member in self.table.members if self._ahead else begun(self.table, self.text, self.floor, high, self.work):
            resumed = self._chain(member, self._low(member), high, out)
            if resumed >= 0:
                found = True
                self.resume[member.index] = resumed
        if self.phrases is not None and (self.phrases.found or self.phrases.at < high):
            for match in self.phrases.take(self.text, self.floor, high):
                found |= self._claim(match, out)
        self.floor = high
        if self._ahead:
            kept = (member for member in self.table.members if member.index in self._ahead)
            self._ahead = {m.index: a for m in kept if (a := self._ahead[m.index]).move(self._low(m), high)}
        if self.resume:
            self.resume = {index: to for index, to in self.resume.items() if to > limit}
        if self._skipped:
            self._skipped = {index: to for index, to in self._skipped.items() if to > limit}
        if high >= _TRIM_CHARS + LEFT_CONTEXT_CHARS:
            self._trim()
        return found

    @property
    def calm(self) -> bool:
        """All before the floor is decided, and nothing is known of what begins behind it."""
        return not (self.resume or self._ahead or (self.phrases is not None and self.phrases.found))

    def pass_by(self, high: int) -> None:
        """Take all candidates before an index for decided, and refused, in calm text."""
        self.floor = high
        if high >= _TRIM_CHARS + LEFT_CONTEXT_CHARS:
            self._trim()

    def _chain(self, member: Member, low: int, high: int, out: list[Found]) -> int:
        """Decide one member's candidates from `low` to `high`; return where it resumes, -1 if nothing was found."""
        ahead = self._ahead.get(member.index)
        if ahead is None or ahead.low != low:
            ahead = _Ahead(low)
        if ahead.at < high:
            self._walk(member, ahead, high)
        resumed = -1
        for start, found, to in ahead.hits:
            if start >= high:
                break
            out += found
            resumed = to
        return resumed

    def _walk(self, member: Member, ahead: _Ahead, high: int) -> None:
        """Look at a member's candidates up to `high`."""
        refine, signal, skip = member.pattern.refine, member.pattern.signal, member.pattern.skip
        low = ahead.at
        if member.index in self._skipped:
            low = max(low, self.index(self._skipped[member.index]))
        while low < high:
            if member.lead is not None:
                low = self._led(member.lead, low)
            hit = self._next(member, low, high) if low < high else None
            if hit is None:
                low = high
                break
            start, end = hit
            self.work.done += CANDIDATE + len(self.text) // 1024
            spans: Sequence[tuple[int, int]] = ((start, end),)
            if refine is not None:
                left = max(0, start - LEFT_CONTEXT_CHARS)
                window = self.text[left : end + 1]
                spans = [(left + a, left + b) for a, b in refine(window, start - left, end - left)]
                if not spans and skip is not None:
                    low = max(start + 1, left + skip(window, start - left, end - left))
                    if low > high:
                        self._skipped[member.index] = self.start(low)
                    continue
            if not spans:
                low = start + 1
                continue
            found = [Found(self.start(a), self._end(b), signal) for a, b in spans]
            resumed = self._end(spans[-1][1])
            ahead.hits.append((start, found, resumed))
            low = self.index(resumed) if self.starts is not None else spans[-1][1]
        ahead.at = low

    def _led(self, lead: Regex, low: int) -> int:
        """Return the first index from `low` on behind a lead that is near enough, or the text's end."""
        cut = max(low - LEFT_CONTEXT_CHARS, 0)
        text = self.text[cut:]
        hit = lead.search(text)
        self.work.done += QUESTION + (len(text) if hit is None else hit.start()) // 64
        return len(self.text) if hit is None else max(low, cut + hit.start())

    def _next(self, member: Member, low: int, high: int) -> tuple[int, int] | None:
        """Return where the first candidate of a member starts and ends that starts from `low` on and before `high`."""
        self.work.done += QUESTION
        cut = self._cut(low)
        hit = first_from(member, self.text[cut:] if cut else self.text, low - cut, high - cut)
        return None if hit is None else (cut + hit.start(), cut + hit.end())

    def _cut(self, low: int) -> int:
        """Return an index from which on the text is all that is needed to search it from `low` on.

        The engine reads all of the text that it is given once, wherever it is to search it: no more than a bounded
        piece before that. One character is context for assertions.
        """
        return low - 1 if low > _MUCH_CHARS else 0

    def due(
        self, stop: int, table: Table, out: list[Found] | None, *, derived: bool, most: int | None = None
    ) -> tuple[bool, int]:
        """Look for members of `table` that are live over their cap, the view having been read to the offset `stop`.

        `most` is a cap for all of them in place of their own.

        With `out`, such a start is reported up to `stop`, capped, and the member resumes there; without,
        nothing is changed. Returns whether there is one, and the original offset at which the next may be
        (`NEVER`: nothing live has a cap).
        """
        capped, soonest = False, NEVER
        end = self.index(stop)
        for member in table.members:
            cap = (member.view_cap if derived else member.cap) if most is None else most
            if cap is None:
                continue
            found: list[Found] = []
            live = self._live_after(member, end, found)
            if live == end:
                continue
            first = self.start(live)
            if stop - first < cap:
                soonest = min(soonest, first + cap)
                continue
            capped = True
            if out is not None:
                out.extend(found)
                out.append(Found(first, stop, member.pattern.signal, capped=True))
                self.resume[member.index] = stop
        return capped, soonest

    def _claim(self, match: Match, out: list[Found]) -> bool:
        """Report a phrase, unless it began within an earlier one of its own; return whether it was."""
        number = match.phrase.number
        if not self.free(number, match.start):
            return False
        resumed = self._end(match.end)
        out.append(Found(self.start(match.start), resumed, match.phrase.signal))
        self.resume[number] = resumed
        return True

    def phrases_due(self, stop: int, out: list[Found] | None) -> tuple[bool, int]:
        """Look for phrases that are live over their cap in a derived view; see `due`."""
        search, end = self.phrases, self.index(stop)
        live = self.leftmost_phrase(end)
        if search is None or live == end:
            return False, NEVER
        soonest = self.start(live) + search.index.least_cap
        if stop < soonest:
            return False, soonest
        capped, soonest, seen = False, NEVER, set[int]()
        for start, phrase in search.begun(self.text, end):
            if phrase.number in seen or not self.free(phrase.number, start):
                continue
            seen.add(phrase.number)
            first = self.start(start)
            if stop - first < phrase.view_cap:
                soonest = min(soonest, first + phrase.view_cap)
                continue
            capped = True
            if out is not None:
                for match in PhraseSearch(search.index).take(self.text, self.floor, start):
                    if match.phrase.number == phrase.number:
                        self._claim(match, out)
                out.append(Found(first, stop, phrase.signal, capped=True))
                self.resume[phrase.number] = stop
        return capped, soonest

    def _live_after(self, member: Member, end: int, found: list[Found]) -> int:
        """Return where `text[:end]` is live for a member once all before that is decided (which goes to `found`)."""
        first = low = self._low(member)
        ahead = self._ahead.get(member.index)
        if ahead is None or ahead.low != first:
            ahead = self._ahead[member.index] = _Ahead(first)
        if ahead.end <= end:
            low, ahead.end = max(low, ahead.at), end
        while True:
            self.work.done += QUESTION + (end - low) // 64
            cut = self._cut(low)
            text = self.text[cut:end] if cut else self.text
            hit = member.companion.search(text, low - cut, end - cut) if low < end else None
            live = end if hit is None else cut + hit.start()
            found.clear()
            resumed = self._chain(member, first, live, found)
            if resumed < 0 or self.index(resumed) <= live:
                return live
            low = self.index(resumed)

    def look_ahead(self) -> None:
        """Decide for each pattern by itself what it has left behind, where much text is held for another one.

        Else all of that would fall due at the one moment at which the text is let go.
        """
        end = len(self.text)
        if end - self.floor < _MUCH_CHARS or 0 <= end - self._looked < _MUCH_CHARS // 2:
            return
        self._looked = end
        for member in self.table.members:
            self._live_after(member, end, [])

    def _trim(self) -> None:
        cut = self.floor - LEFT_CONTEXT_CHARS
        self.text = self.text[cut:]
        self._looked -= cut
        self._dead.clear()
        for ahead in self._ahead.values():
            ahead.trim(cut)
        self.begun = False
        self.floor -= cut
        if self.phrases is not None:
            self.phrases.trim(cut)
        if self.starts is None:
            self.base += cut
        else:
            del self.starts[:cut]
            del self.ends[:cut]

    def clean_since(self) -> int:
        """Return the original offset from which on the text matters to what will be decided; -1: all of it does.

        At the view's start also that nothing stands in front of it matters.
        """
        index = self.floor - LEFT_CONTEXT_CHARS
        return self.start(index) if index > 0 or not self.begun else -1
