"""Short texts in which nothing is found: whoever would only look for something need not be made for them."""

from __future__ import annotations

from collections.abc import Generator

from checkstream.core.exchange.meter import FEED_WORK, Meter
from checkstream.core.match.patterns import PatternSet
from checkstream.core.match.scan import scanning
from checkstream.core.terms import Finding

SHORT_CHARS = 512
"""Of a text that is decided in one step."""


class Look:
    """Reads a text until something is found in it."""

    def __init__(self, patterns: PatternSet, *, late: bool) -> None:
        """Begin with no text; `late`: nobody asks before its end what is found."""
        self._scan = scanning(patterns, late=late)
        self._found = False

    @property
    def ahead(self) -> int:
        """How many characters can be read until each may be dear."""
        return self._scan.ahead

    def feed(self, text: str) -> list[Finding]:
        """Read on; return what is decided."""
        findings = [] if self._found else self._scan.feed(text)
        self._found = self._found or bool(findings)
        return findings

    def put_off(self, text: str) -> bool:
        """Take a short text at once, if that is cheap since no view sees anything in it; False: nothing was done."""
        if self._scan.wakes(text):
            return False
        self.feed(text)
        return True

    def end(self) -> bool:
        """Tell whether something was found in all of it."""
        return self._found or bool(self._scan.end())

    def take_work(self) -> int:
        """Return what reading has cost since this was last asked (see `match.work`)."""
        return self._scan.work.take()


def finding_nothing(patterns: PatternSet, text: str, meter: Meter) -> Generator[None, None, bool]:
    """Tell, in steps, whether nothing is found in a short text."""
    if not len(patterns):
        return True
    look = Look(patterns, late=True)
    if not look.put_off(text):
        yield from meter.feeding(look, text)
    found = look.end()
    meter.spent += look.take_work() + FEED_WORK
    yield
    return not found
