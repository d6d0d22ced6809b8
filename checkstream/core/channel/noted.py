"""The findings of one channel: what each decides, and what the record keeps of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

import msgspec

from checkstream.core.channel.actions import Firing
from checkstream.core.channel.brief import Place
from checkstream.core.channel.decider import Decider
from checkstream.core.channel.holdback import Holdback
from checkstream.core.commands import FindingDigest
from checkstream.core.terms import Finding, Span

_MAX_DIGESTS = 32
"""Findings of one channel that the record keeps one by one; more are only counted."""


class Noted:
    """Takes findings in the order of the text."""

    __slots__ = ("_decider", "_holdback", "_place", "digests", "uncounted")

    def __init__(self, place: Place, decider: Decider, holdback: Holdback) -> None:
        """Start with none.

        Args:
            place: Which text it is, under which rules.
            decider: Says which rules a finding fires.
            holdback: Holds the text.
        """
        self.digests: list[FindingDigest] = []
        self.uncounted = 0
        """Findings beyond those that `digests` keeps."""
        self._place = place
        self._decider = decider
        self._holdback = holdback

    def take(self, finding: Finding, confidence: float, *, covered: bool) -> Iterable[Firing]:
        """Note that something has been found; return the firings of the rules that it decides."""
        place, signal = self._place, finding.signal
        self._decider.count(signal, finding.hits)
        if place.seams and not self._over_seam(finding.span):
            return ()
        if place.leads or signal not in place.scope.held:  # else the one that leads has it
            self._keep_digest(finding, place.program.signals[signal].title)
        span = Span(max(finding.span.start, place.prelude), finding.span.end)
        return self._decider.fired(
            signal, span, confidence, covered=covered, exact=finding.exact, recited=finding.recited
        ).values()

    def _over_seam(self, span: Span) -> bool:
        seams = self._place.seams
        number = bisect_right(seams, span.start)
        return number < len(seams) and seams[number] < span.end

    def _keep_digest(self, finding: Finding, detector: str) -> None:
        if len(self.digests) >= _MAX_DIGESTS:
            self.uncounted += 1
            return
        channel = self._place.channel
        self.digests.append(
            FindingDigest(
                detector=detector,
                channel=f"{channel.kind}/{channel.choice}/{channel.index}",
                span=finding.span.moved(self._place.base),
                view=finding.view,
                digest=self._place.brief.digest(self._holdback.text(finding.span)),
                recited=finding.recited or msgspec.UNSET,
            )
        )
