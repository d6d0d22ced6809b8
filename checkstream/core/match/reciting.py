"""A scan that looks for recitals beside all else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkstream.core.match.recital import Recital
from checkstream.core.terms import Finding

if TYPE_CHECKING:
    from checkstream.core.match.patterns import PatternSet
    from checkstream.core.match.scan import Scan
    from checkstream.core.match.work import Work


class Reciting:
    """Does what a `Scan` does, which it has for all that is no recital; mutable.

    It takes no words that are known: each is looked up in fingerprints.
    """

    __slots__ = ("_known", "_recital", "_scan")

    def __init__(self, scan: Scan, patterns: PatternSet) -> None:
        """Start before the first character; `scan` has read nothing."""
        self._scan = scan
        self._recital = Recital(patterns.recited, scan.work)
        self._known: list[Finding] = []
        """What was found and starts where something else may still start before it."""

    @property
    def live(self) -> int:
        """Oldest start that could still become a match; all before it is decided."""
        return min(self._scan.live, self._recital.live)

    @property
    def back(self) -> int:
        """Place from which what is live has to be read to be found again."""
        return min(self._scan.live, self._recital.back)

    @property
    def work(self) -> Work:
        """What the text has cost."""
        return self._scan.work

    @property
    def ahead(self) -> int:
        """How many characters can be read until caps may fall due at each."""
        return self._scan.ahead

    def feed(self, text: str) -> list[Finding]:
        """Read more text; return the findings decided by it, sorted by span and signal."""
        self._known += self._scan.feed(text)
        self._known += self._recital.feed(text)
        return self._taken(self.live) if self._known else []

    def feed_words(self, text: str) -> bool:  # noqa: ARG002 - as a scan's
        """Do nothing."""
        return False

    def words_in(self, text: str) -> int:  # noqa: ARG002 - as a scan's
        """Return 0."""
        return 0

    def wakes(self, text: str) -> bool:
        """Tell whether a view but the raw one would see something in a text that has not been read."""
        return self._scan.wakes(text)

    def catch_up(self) -> None:
        """Decide what can be decided of a text of which that was put off."""
        self._scan.catch_up()

    def end(self) -> list[Finding]:
        """The channel has ended: decide everything."""
        self._known += self._scan.end()
        self._known += self._recital.end()
        return self._taken(None)

    def give_up(self) -> list[Finding]:
        """Take what is live for what it may become, and decide all else: the text is over."""
        self._known += self._scan.give_up()
        self._known += self._recital.give_up()
        return self._taken(None)

    def _taken(self, live: int | None) -> list[Finding]:
        """Take out, in order, what starts before `live`; None: all."""
        found = sorted(self._known, key=_order)
        over = len(found) if live is None else sum(each.span.start < live for each in found)
        self._known = found[over:]
        return found[:over]


def _order(finding: Finding) -> tuple[int, int, int]:
    return finding.span.start, finding.span.end, finding.signal
