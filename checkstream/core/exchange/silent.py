"""Short texts in which nothing is found: whoever would only look for something need not be made for them."""

from __future__ import annotations

from collections.abc import Generator

from checkstream.core.exchange.meter import FEED_WORK, Meter
from checkstream.core.match.patterns import PatternSet
from checkstream.core.match.scan import Scan

SHORT_CHARS = 512
"""Of a text that is read in one step."""


def finding_nothing(patterns: PatternSet, text: str, meter: Meter) -> Generator[None, None, bool]:
    """Tell, in a step, whether nothing is found in a short text."""
    if not len(patterns):
        return True
    scan = Scan(patterns, late=True)
    found = scan.feed(text) or scan.end()
    meter.spent += scan.work.take() + FEED_WORK
    yield
    return not found
