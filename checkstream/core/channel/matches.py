"""What patterns say of one text: what was found and is not decided, and what could still become a match."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Final

import msgspec

from checkstream.core.channel.seam import Seam, Stretch
from checkstream.core.channel.spaced import Spaced
from checkstream.core.match.patterns import LEFT_CONTEXT_CHARS, NOTHING, PatternSet
from checkstream.core.match.scan import AnyScan, scanning
from checkstream.core.match.work import Work
from checkstream.core.terms import Finding, Span

_STEP_CHARS = 256
"""Of text that is read once more."""
_LOOKED_BACK_CHARS, _RECITED_CHARS = 512, 4096
"""What is let go is read together with so much before it; with more where recitals are looked for."""

_MOST_CHAINED = 128
"""Findings that overlap, or touch, one the next, and are decided one by one. Of more, those of one detector are one."""
LOOKED_AT = 128
"""Findings of which it is asked at a time whether they overlap those before."""
_MANY = 64
"""Findings of a text of parts that are remembered before it is asked which of them may be found again."""


_NONE: Final[deque[Finding]] = deque(maxlen=0)
"""Of every text as long as nothing is found in it: an empty queue has room for 64, and a stream has many texts."""


class Cluster(msgspec.Struct, frozen=True):
    """Findings that overlap each other, all of them known: one decision is taken on them together.

    Those overlap too that touch the same word or sentence, where the channel is decided in words or sentences. Without
    findings: more of them are known than are looked at in one step (`LOOKED_AT`), so one asks again.
    """

    span: Span
    """With all of the words or sentences touched."""
    findings: tuple[Finding, ...]


class Matches:
    """The findings of one text that have not been handed out, in its order."""

    __slots__ = (
        "_alone", "_alone_at", "_group", "_known", "_known_most", "_own", "_own_most", "_patterns", "_read_again",
        "_scan", "_seams", "_sent", "_spaced", "_two", "found", "free", "heard",
    )  # fmt: skip

    def __init__(self, patterns: PatternSet, *, late: bool = False) -> None:
        """Start before the first character; `late`: nobody asks before the text's end what may leave of it."""
        self.found: deque[Finding] = _NONE
        self.heard: list[Finding] | None = None
        """All that was found, where somebody wants to know, in a text without parts."""
        self.free = 0
        """Text before this is not held for what may follow: it was let go."""
        self._patterns = patterns
        self._scan = scanning(patterns, late=late)
        self._alone: AnyScan | None = None
        """Reads the latest part of a text that has parts, as if it stood alone; `_scan` reads over their bounds."""
        self._alone_at = 0
        """Where that part starts."""
        self._read_again = 0, 0
        """From where to where the text was read once more when its first part had ended."""
        self._sent = 0
        """End of text that had been sent before this one began: what is found in it alone is nobody's to decide."""
        self._seams: list[Seam] = []
        """What stands before this text elsewhere, as long as a match could go over to it."""
        self._spaced: Spaced | None = None
        """Reads the parts with spaces between them, as long as a match could go over one."""
        self._own: list[tuple[int, Span]] = []
        """What parts have by themselves, as far as it may matter to that."""
        self._own_most = _MANY
        self._two = False
        """It is read in more than one way, so that one thing may be found twice."""
        self._known: set[tuple[int, Span]] = set()
        """What has been found since the text has parts and may be found again: once for both readings."""
        self._known_most = _MANY
        self._group = _Group()

    @property
    def work(self) -> Work:
        """What reading has cost."""
        return self._scan.work

    @property
    def live(self) -> int:
        """Oldest start that could still become a match, in either reading."""
        live = self._scan.live
        if not self._two:
            return live
        if self._alone is not None:
            live = min(live, self._alone_at + self._alone.live)
        if self._spaced is not None:
            live = min(live, self._spaced.live)
        for seam in self._seams:
            live = min(live, seam.at)
        return live

    @property
    def back(self) -> int:
        """Place from which what is live has to be read to be found again, in either reading."""
        live = self.live
        return min(live, self._scan.back) if self._patterns.recited else live

    @property
    def settled(self) -> int:
        """Text before this is held by no pattern: what could still match starts behind it, or was let go."""
        free, live = self.free, self.live
        return live if live > free else free

    @property
    def ahead(self) -> int:
        """How many characters can be read until each may be dear, in either reading."""
        ahead = self._scan.ahead
        if not self._two:
            return ahead
        if self._alone is not None:
            ahead = min(ahead, self._alone.ahead)
        if self._spaced is not None:
            ahead = min(ahead, self._spaced.ahead)
        return min([ahead, *[seam.ahead for seam in self._seams]]) if self._seams else ahead

    @property
    def patterns(self) -> PatternSet:
        """What is searched for."""
        return self._patterns

    @property
    def seamless(self) -> bool:
        """Nothing that stands before the text elsewhere could go over to it any more."""
        return not self._seams

    def feed(self, text: str) -> None:
        """Take the next piece of the text."""
        found = self._scan.feed(text)
        if self._two:
            alone = [] if self._alone is None else self._alone.feed(text)
            if alone:
                self._note_own(alone)
            if self._spaced is not None:
                found += self._spaced.feed(text, self._own)
                if self._spaced.over:
                    self._spaced = None
            if self._seams:
                found += self._over_seams(text)
            if found or alone:
                self._take(found, alone, self._alone_at)
        elif found:
            self._hear(found)

    def feed_words(self, text: str) -> bool:
        """Take the next piece, if nothing is found in it by words that are known; False: nothing was done."""
        return not self._two and self._scan.feed_words(text)

    def words_in(self, text: str) -> int:
        """Return how many characters of a text, which `feed_words` did not take, it may take."""
        return 0 if self._two else self._scan.words_in(text)

    def seed(self, text: str) -> None:
        """Begin behind a text that has been sent already (see `Holdback.seed`)."""
        self.feed(text)
        self._sent = len(text)

    def _hear(self, found: Sequence[Finding]) -> None:
        """Take findings that stand behind all others."""
        self.keep(found)
        if self.heard is not None:
            self.heard.extend(found)

    def keep(self, found: Sequence[Finding]) -> None:
        """Have findings wait to be handed out, behind all others."""
        if self.found is _NONE:
            self.found = deque()
        self.found.extend(found)

    def follow(self, before: Sequence[Stretch], received: int) -> None:
        """Read what comes together with what stands before it elsewhere, too.

        Args:
            before: The texts before, in order.
            received: Length of this text.
        """
        self._add(Seam(self._patterns, before, received, self._scan.work))

    def _add(self, seam: Seam) -> None:
        if not seam.over:
            self._two = True
            self._seams.append(seam)

    def _over_seams(self, text: str | None) -> list[Finding]:
        """Return what stands over the seams; None: the text has ended."""
        found: list[Finding] = []
        for seam in self._seams:
            found += seam.end() if text is None else seam.feed(text)
        self._seams = [seam for seam in self._seams if not seam.over]
        return found

    def end_seams(self) -> None:
        """Hold nothing for what may still stand over a seam."""
        if self._seams:
            self._take(self._over_seams(None), [], 0)

    def take_over_seam(self, finding: Finding) -> None:
        """Take what was found over the end of a stretch of this text; of what is not held nothing is edited."""
        start = max(finding.span.start, self.settled)
        if start < finding.span.end:
            self._two = True
            self._take([msgspec.structs.replace(finding, span=Span(start, finding.span.end))], [], 0)

    def parting(
        self, received: int, kept: Callable[[int], str], oldest: int, *, spaced: bool
    ) -> Generator[None, None, None]:
        """Take the end of a part of the text: what comes is another one, which readers may join to it or not.

        What stands in a part alone is found, whatever it touches, and what stands over their bounds.

        Args:
            received: Length of the text.
            kept: Returns the text from a place on.
            oldest: The first place that is kept.
            spaced: Readers may put a space between the two.
        """
        self._two = True
        self._scan.catch_up()
        if spaced:
            yield from self._space(received, kept, oldest)
        if self._alone is not None and received == self._alone_at:
            return  # nothing has come since the last one
        if self._alone is None and received == self._sent:
            undecided, least = list[Finding](), 0
        elif self._alone is None:
            # What has been decided is the same either way; what was still live is read again, with what stands before.
            start = max(self._scan.back - LEFT_CONTEXT_CHARS, oldest)
            self._alone, self._alone_at = scanning(self._patterns, self._scan.work), start
            undecided = yield from _reading(self._alone, kept(start))
            undecided += self._alone.end()
            least = self._scan.live
            self._read_again = start, received
        else:
            undecided, least = self._alone.end(), 0
        alone = [each for found in undecided if (each := _from(found, least - self._alone_at)) is not None]
        self._note_own(alone)
        self._take([], alone, self._alone_at)
        self._alone, self._alone_at = scanning(self._patterns, self._scan.work), received

    def _space(self, received: int, kept: Callable[[int], str], oldest: int) -> Generator[None, None, None]:
        """Read a space behind a part; the arguments are those of `parting`."""
        spaced = self._spaced
        if spaced is None:
            # No part before could go over to this one, so what is live here begins in it.
            live, back = self._scan.live, self._scan.back
            if self._alone is not None:
                live, back = self._alone_at + self._alone.live, self._alone_at + self._alone.back
            if live >= received:
                return
            start = max(back - LEFT_CONTEXT_CHARS, oldest)
            spaced = Spaced(self._patterns, start, live, self._scan.work)
            yield from spaced.begin(kept(start))
            self._spaced = spaced
        self._take(spaced.part(self._own), [], 0)
        if spaced.over:
            self._spaced = None

    def _note_own(self, found: Sequence[Finding]) -> None:
        """Remember what the latest part has by itself."""
        at = self._alone_at
        self._own += [(each.signal, Span(each.span.start + at, each.span.end + at)) for each in found]
        if len(self._own) > self._own_most:
            live = self.live
            self._own = [each for each in self._own if each[1].end > live]
            self._own_most = max(2 * len(self._own), _MANY)

    def letting_go(self, received: int, kept: Callable[[int], str], oldest: int) -> Generator[None, None, None]:
        """Hold nothing of what has come for what may follow; what is found only if nothing does is found now.

        Args:
            received: Length of the text, of which a part ends here.
            kept: Returns the text from a place on.
            oldest: The first place that is kept.
        """
        self._scan.catch_up()
        live = self._scan.live
        if live < received:
            back = _RECITED_CHARS if self._patterns.recited else _LOOKED_BACK_CHARS
            start = max(self._scan.back - LEFT_CONTEXT_CHARS, oldest, received - back)
            if self._read_again == (start, received):  # as its first part has been, just now
                self.free = received
                return
            look = scanning(self._patterns, self._scan.work)
            found = (yield from _reading(look, kept(start))) + look.end()
            self._take([], [own for each in found if (own := _from(each, live - start)) is not None], start)
        self.free = received

    def end(self) -> None:
        """Take the end of the text: every pattern is decided."""
        if self._two:
            over = self._over_seams(None)
            alone = [] if self._alone is None else self._alone.end()
            if self._spaced is not None:
                over += self._spaced.end(self._own)
            self._take(self._scan.end() + over, alone, self._alone_at)
            self._alone = self._spaced = None
        elif found := self._scan.end():
            self._hear(found)

    def stop(self) -> None:
        """Read nothing more, and forget what was found."""
        self.heard = None
        self.found.clear()
        self._group = _Group()
        self._scan.end()
        self._alone = self._spaced = None
        self._seams.clear()

    def _take(self, joined: Sequence[Finding], alone: Sequence[Finding], at: int) -> None:
        """Take what was found over the bounds of parts, and in one of them alone, which starts at `at`."""
        self.heard = None
        new: list[Finding] = []
        for each, by in (*((each, 0) for each in joined), *((each, at) for each in alone)):
            span = Span(max(each.span.start + by, self.free), each.span.end + by)  # what was let go is gone
            if span.start < span.end and (each.signal, span) not in self._known:
                self._known.add((each.signal, span))
                new.append(msgspec.structs.replace(each, span=span))
        if len(self._known) > self._known_most:
            live = self.live  # what is found from now on starts there
            self._known = {known for known in self._known if known[1].end > live}
            self._known_most = max(2 * len(self._known), _MANY)
        if new:
            first = _order(min(new, key=_order))
            while self.found and _order(self.found[-1]) > first:
                new.append(self.found.pop())
            self.keep(sorted(new, key=_order))
            self._group = _Group()

    def cluster(
        self, live: int, touched: Callable[[Span], Span | None], parts: Callable[[int], bool]
    ) -> Cluster | None:
        """Hand out the first findings that overlap, once all of them are known.

        Args:
            live: Nothing more will be found before this.
            touched: Returns a span with all that is decided together with it; None while that is not known.
            parts: Tells whether something must stay together over a place.
        """
        found, group = self.found, self._group
        looked = 0
        while group.size < len(found) and (group.size == 0 or found[group.size].span.start < group.end):
            each = found[group.size]
            whole = touched(each.span)
            if whole is None:
                return None
            if looked == LOOKED_AT:
                return Cluster(each.span, ())
            looked += 1
            group.add(each, whole.end)
            if group.size >= group.most and group.chained > _MOST_CHAINED:  # so that they never become many
                fewer = _merged([found.popleft() for _ in range(group.size)])
                found.extendleft(reversed(fewer))
                group.size, group.most = len(fewer), max(_MOST_CHAINED, 2 * len(fewer))
        if group.end > live or parts(group.end):
            return None
        first = touched(found[0].span) or found[0].span
        together = _merged([found.popleft() for _ in range(group.size)])
        self._group = _Group()
        return Cluster(Span(first.start, group.end), tuple(together))


class _Group:
    """The first findings that overlap, as far as they were looked at, of which the last chain by themselves."""

    __slots__ = ("chained", "end", "most", "reach", "size")

    def __init__(self) -> None:
        """Start with none."""
        self.size = 0
        """Findings that are known to overlap."""
        self.end = 0
        """Where they and what they touch end."""
        self.reach = 0
        """Where those that chain end,"""
        self.chained = 0
        """and how many they stand for."""
        self.most = _MOST_CHAINED
        """Findings from which on fewer are made of them."""

    def add(self, finding: Finding, end: int) -> None:
        """Take the next finding, which touches text up to `end`."""
        if finding.span.start > self.reach:
            self.chained = 0
        self.size, self.end, self.reach = self.size + 1, max(self.end, end), max(self.reach, finding.span.end)
        self.chained += finding.hits


class Again(Matches):
    """What was found in a text when it came before: nothing is searched, and all of it is found at the end."""

    __slots__ = ("_before",)

    def __init__(self, before: Sequence[Finding]) -> None:
        """Start before the first character; `before`: all that will be found, in order."""
        super().__init__(NOTHING)
        self._before = before

    @property
    def live(self) -> int:
        """The first start of what will be found."""
        return self._before[0].span.start if self._before else super().live

    def end(self) -> None:
        """Take the end of the text: all of it is found."""
        super().end()
        found, self._before = self._before, ()
        if found:
            self._hear(found)

    def stop(self) -> None:
        """Find nothing more, and forget what was found."""
        super().stop()
        self._before = ()


def _from(finding: Finding, least: int) -> Finding | None:
    """Return what is found from a place on: what begins before it is decided, but a recital goes on behind that."""
    if finding.span.start >= least:
        return finding
    if finding.recited is None or finding.span.end <= least:
        return None
    return msgspec.structs.replace(finding, span=Span(least, finding.span.end))


def _merged(findings: list[Finding]) -> list[Finding]:
    """Return findings, those of one detector as one where very many chain; how many were so before matters not."""
    if sum(each.hits for each in findings) <= _MOST_CHAINED:
        return findings
    merged: list[Finding] = []
    chain: list[Finding] = []
    reach = 0
    for each in findings:
        if each.span.start > reach:
            merged += _of_each_detector(chain)
            chain = []
        chain.append(each)
        reach = max(reach, each.span.end)
    return merged + _of_each_detector(chain)


def _of_each_detector(chain: list[Finding]) -> list[Finding]:
    if sum(each.hits for each in chain) <= _MOST_CHAINED:
        return chain
    first: dict[int, Finding] = {}
    for each in chain:
        known = first.get(each.signal)
        if known is not None:
            span = Span(known.span.start, max(known.span.end, each.span.end))
            known = msgspec.structs.replace(known, span=span, hits=known.hits + each.hits)
        first[each.signal] = known if known is not None else each
    return sorted(first.values(), key=_order)


def _order(finding: Finding) -> tuple[Span, int]:
    return finding.span, finding.signal


def _reading(scan: AnyScan, text: str) -> Generator[None, None, list[Finding]]:
    """Read a text in steps; return what is decided in it."""
    found: list[Finding] = []
    for at in range(0, len(text), _STEP_CHARS):
        found += scan.feed(text[at : at + _STEP_CHARS])
        yield
    return found
