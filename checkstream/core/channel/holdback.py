"""The holdback of one channel: its text, what is decided about it, and how far it may be released.

Offsets are code points from the channel's start. `received >= releasable`; text before `releasable` is
decided for good. Text waits only

- while a pattern is in a live partial match over it (`Scan.live`),
- while a finding over it has not been resolved,
- while the word or the sentence that it stands in may still be edited whole (`grain`), or
- while a classifier that applies has not scored a window with it and the hold's tokens to its right.

INVARIANT: decisions come in the order of the text (a finding by its start, a check by its end), and a
decision is handed out only when nothing that is still unknown could come before it. Hence what is decided
is a function of the text and the scores alone, never of how the text was cut.

What patterns say is in `matches`, what classifiers are asked in `checks`, what stays together in `grain`. The holdback
knows no rules, no wire and no clock: `Judge` asks it for decisions and tells it what follows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Sequence

from checkstream.core.channel.checks import CHECK_WORK, EVERYTHING, NO_CHECKS, Check, Checks, HoldSettings, Reach
from checkstream.core.channel.grain import Grain, Joints, Scope
from checkstream.core.channel.matches import Again, Cluster, Matches
from checkstream.core.channel.replacements import Replacements
from checkstream.core.match.language import UNDETERMINED
from checkstream.core.match.patterns import LEFT_CONTEXT_CHARS, PatternSet
from checkstream.core.terms import Finding, Span

_TRIM_CHARS = 512
_PIECE_CHARS = 65_536
"""Of a text that is kept in pieces."""


class Holdback:
    """One channel's text on its way through the guard."""

    __slots__ = (
        "_at",
        "_base",
        "_pieces",
        "_starts",
        "_text",
        "checks",
        "cut",
        "ended",
        "fence",
        "grain",
        "matches",
        "received",
        "replacements",
        "sent",
        "wanted",
    )

    def __init__(
        self,
        patterns: PatternSet,
        before: Sequence[Finding] | None = None,
        *,
        checks: bool,
        settings: HoldSettings,
        grid: bool = True,
        joints: Joints | None = None,
        grain: Scope = "span",
        late: bool = False,
    ) -> None:
        """Start an empty channel.

        Args:
            patterns: What is searched for; text over which one could still match waits.
            before: What is found, where that is known: nothing is searched for then. None: it isn't.
            checks: Classifiers must clear text before it is released.
            settings: Sizes of windows and holds.
            grid: Check at token positions as the text comes; False: once, over the whole text, at its end.
            joints: Where the text may be parted, None: anywhere.
            grain: The largest scope of an edit: text is decided and released in whole words or sentences.
            late: Nothing is to be released before the text's end.
        """
        self.received = 0
        self.sent = 0
        """End of the text that has been released."""
        self.ended = False
        self.cut: int | None = None
        """The channel was stopped here: text from here on is never sent."""
        self.replacements = Replacements()
        self.fence = EVERYTHING
        """Text from here on waits for a decision that comes later than in its place."""
        self.wanted = EVERYTHING
        """Text from here on is still to be read by somebody else and must be kept."""
        self.checks = Checks(settings, wanted=checks, grid=grid)
        self.matches = Matches(patterns, late=late) if before is None else Again(before)
        self.grain = Grain(grain, joints)
        self._text = ""
        """The end of what has come ..."""
        self._at = 0
        """... from here on."""
        self._pieces: list[str] = []
        """What is still needed of the text before that: one that grew as a whole would be copied as a whole ..."""
        self._starts: list[int] = []
        """... and where each begins."""
        self._base = 0
        """Text before it is not needed any more."""

    @property
    def cleared(self) -> int:
        """Classifiers have no say over text before this any more."""
        return self.checks.cleared

    # --- text in

    def feed(self, text: str) -> list[Check]:
        """Take text from the upstream; return the checks that it makes due."""
        self.matches.feed(text)
        return self._keep(text)

    def feed_words(self, text: str) -> list[Check] | None:
        """Take text if nothing is found in it by words that are known, as `feed` does; None: nothing was done."""
        return self._keep(text) if self.matches.feed_words(text) else None

    def _keep(self, text: str) -> list[Check]:
        """Keep text that has been searched; return the checks that it makes due."""
        self.received += len(text)
        held, self._text = self._text, ""  # nobody else has it: it grows in its place, and is not copied each time
        held += text
        self._text = held
        if len(held) > _PIECE_CHARS:
            self._pieces.append(held)
            self._starts.append(self._at)
            self._text, self._at = "", self.received
        if self.grain.segmented:
            self.grain.feed(text)
            self.matches.work.done += len(text) // 2
        if not self.checks.wanted:
            return NO_CHECKS
        due = self.checks.feed(text)
        if due:
            self.matches.work.done += CHECK_WORK * len(due) + len(text) // 16
        return due

    def ahead(self, text: str) -> list[Check]:
        """Return the check of a text that is known whole, before it is fed; none where checks come as it does."""
        return self.checks.ahead(text)

    def parting(self, *, spaced: bool = False) -> Generator[None, None, None]:
        """Take the end of a part of the text: what comes is another one, which readers may join to it or not.

        Args:
            spaced: They may put a space between the two.
        """
        if not self.ended and self.received:
            yield from self.matches.parting(self.received, self._from, self._base, spaced=spaced)

    def letting_go(self) -> Generator[None, None, list[Check]]:
        """Hold nothing of what has come for what may follow: nobody knows that anything will.

        Returns:
            The check that is due now.
        """
        yield from self.parting()
        if self.ended:
            self.matches.free = self.received
            return NO_CHECKS
        yield from self.matches.letting_go(self.received, self._from, self._base)
        return self.checks.let_go(self.received)

    def _from(self, start: int) -> str:
        return self._slice(start, self.received)

    def _slice(self, start: int, end: int) -> str:
        """Return the text between two places, as far as it is still there."""
        at = self._at
        start = max(start, self._base)
        if start >= at:
            return self._text[start - at : max(end - at, 0)]
        found: list[str] = []
        for place in range(max(bisect_right(self._starts, start) - 1, 0), len(self._pieces)):
            begins = self._starts[place]
            if begins >= end:
                break
            found.append(self._pieces[place][max(start - begins, 0) : end - begins])
        if end > at:
            found.append(self._text[: end - at])
        return "".join(found)

    def seed(self, text: str) -> None:
        """Begin behind a text that has been sent already: what comes is matched and scored together with it."""
        self.received = self.sent = len(text)
        self._text = text
        self.matches.seed(text)
        self.grain.feed(text)
        self.checks.seed(text)

    def end(self) -> list[Check]:
        """Take the end of the channel: every pattern is decided; return the last checks."""
        if self.ended:
            return NO_CHECKS
        self.ended = True
        self.grain.end()
        self.matches.end()
        return self.checks.end(self.received)

    def stall(self) -> list[Check]:
        """Return an early check of what is there, so that it can be released though nothing more comes."""
        if self.ended or self.checks.due or not self.checks.wanted:
            return NO_CHECKS
        position = self.grain.floor(min(self.matches.settled, self.received))  # no more can be released
        return NO_CHECKS if position <= self.cleared else [self.checks.ask(position, final=True)]

    def take_work(self) -> int:
        """Return what reading has cost since this was last asked (see `match.work`)."""
        return self.matches.work.take()

    # --- decisions out

    def next_decision(self) -> Cluster | Check | None:
        """Return the next decision in the order of the text, or None while something before it is unknown."""
        due, found = self.checks.due, self.matches.found
        if not due and not found:
            return None
        live = self.received if self.ended else self.matches.settled
        if not due:
            return self._next_cluster(live)
        check = due[0]
        position = self._end_of(check)
        if position is None:
            return self._next_cluster(live) if found else None
        if found and found[0].span.start < position:
            return self._next_cluster(live)
        if not check.answered or position > live or self._parts(position):
            return None
        return self.checks.take()

    @property
    def stirs(self) -> bool:
        """Something may be decided now: what `next_decision` returns tells whether it is."""
        if self.matches.found:
            return True
        due = self.checks.due
        if not due or not due[0].answered:
            return False
        position = self._end_of(due[0])
        live = self.received if self.ended else self.matches.settled
        return position is not None and position <= live and not self._parts(position)

    def _end_of(self, check: Check) -> int | None:
        """Return where the text ends that a check decides; None while that is not known.

        What stands in the word or sentence is decided first: the check may edit all of it.
        """
        if not self.grain.segmented:
            return check.position
        touched = self._touched(Span(max(check.position - 1, 0), check.position))
        return None if touched is None else touched.end

    def _next_cluster(self, live: int) -> Cluster | None:
        return self.matches.cluster(live, self._touched, self._parts)

    def _parts(self, position: int) -> bool:
        """Tell whether a place stands in something that must stay together and whose end has not come."""
        return not self.ended and self.grain.parts(position)

    def _touched(self, span: Span) -> Span | None:
        """Return a span with what it touches of the channel's grain; None while the end of that is not known."""
        return self.grain.touched(span, self.cut)

    def widen(self, span: Span, scope: Scope) -> Span:
        """Return a span with all of the words or the sentences that it touches, as far as they have come.

        Args:
            span: Stands in a decision, so that what it touches is complete.
            scope: Has no effect beyond the channel's grain.
        """
        return self.grain.widen(span, scope, self.cut, self.received)

    @property
    def releasable(self) -> int:
        """End of the text that may be sent now."""
        matches, limit, fence = self.matches, self.checks.cleared, self.fence
        settled = self.received if self.ended else matches.settled
        if settled < limit:
            limit = settled
        if fence < limit:
            limit = fence
        if matches.found:
            limit = min(limit, matches.found[0].span.start)
        if self.cut is not None:
            limit = min(limit, self.cut)
        if not self.grain.plain and not (self.ended and limit == (self.received if self.cut is None else self.cut)):
            limit = self.grain.floor(limit)
        if self.replacements.items and limit != self.cut:
            limit = self.replacements.whole(limit)
        sent = self.sent
        return limit if limit > sent else sent

    @property
    def kept(self) -> int:
        """Start of the text that is kept: nothing that begins before it will be handed out any more."""
        return self._base

    @property
    def decided(self) -> bool:
        """The channel has ended, and all that was found or checked in it has been handed out."""
        return self.ended and not self.matches.found and not self.checks.due

    @property
    def settled(self) -> bool:
        """Nothing of this channel waits for a decision any more."""
        end = self.received if self.cut is None else self.cut
        return self.ended and self.releasable >= end and not self.checks.due

    # --- what follows from a decision

    def reach(self, check: Check, risk: float, language: str = UNDETERMINED, *, entities: bool = False) -> Reach:
        """Return how far a quiet check lets go of text (see `Checks`)."""
        return self.checks.reach(check, risk, language, entities=entities)

    def clear(self, position: int) -> None:
        """Let go of the text before `position`: classifiers have no say over it any more."""
        self.checks.clear(position)

    def scored_through(self, position: int) -> list[Check]:
        """Leave text before `position` out of later windows; return the checks that take the place of others."""
        return self.checks.scored_through(position)

    def stop(self, position: int) -> list[Check]:
        """Cut the channel at `position`; return the check of the text before it that is now the last one."""
        if self.cut is not None and self.cut <= position:
            return NO_CHECKS
        self.cut = position
        self.replacements.cut(position)
        self.matches.stop()
        self.grain.end()
        self.checks.stop(position)
        self.ended = True
        if self.checks.wanted and self.cleared < position and not self.checks.covers(position):
            return [self.checks.ask(position, final=True)]
        return NO_CHECKS

    def abandon(self) -> list[Check]:
        """Cut the channel before the text that a pattern could still match, since it will not be decided any more.

        Returns:
            The check of the text before it that is now the last one, if one is due.
        """
        if self.ended:
            return NO_CHECKS
        position = self.matches.settled
        decided = [finding for finding in self.matches.found if finding.span.start < position]
        checks = self.stop(position)
        self.matches.keep(decided)
        return checks

    # --- text out

    def text(self, span: Span) -> str:
        """Return the original text of a span that is not older than a window."""
        return self._slice(span.start, span.end)

    def end_of(self, chars: int) -> str:
        """Return the end of what has been received, of no more than so many characters."""
        return self._slice(self.received - chars, self.received)

    def render(self, start: int, end: int, *, hidden: bool = False) -> str:
        """Return what is sent for the original text `start..end`: a replacement stands where its span starts.

        With `hidden`, values stand in it as the model has said them that it does not know.
        """
        stop = max(end if self.cut is None else min(end, self.cut), start)
        if not self.replacements:
            return self.text(Span(start, stop))
        cut = self.cut is not None and start <= self.cut < end
        return self.replacements.render(start, stop, self.text, cut=cut, hidden=hidden)

    def changed(self, start: int, end: int) -> bool:
        """Tell whether what is sent for `start..end` differs from what came."""
        return (self.cut is not None and end > self.cut) or self.replacements.touch(start, end)

    def torn_before(self, end: int) -> bool:
        """Tell whether the channel was cut before `end`."""
        return self.cut is not None and self.cut < end

    def release(self, end: int) -> bool:
        """Note that the text up to `end` has been released, and forget what nothing needs any more.

        Returns:
            Whether more is to be forgotten (see `forget`).
        """
        if end > self.sent:
            self.sent = end
        if self.checks.whole:
            return False
        if self.grain.segmented:
            self.grain.forget(self.sent)
        if self.sent - self._base <= _TRIM_CHARS:
            return False  # what else is needed can only be older
        keep = min(self.sent, self.matches.back - LEFT_CONTEXT_CHARS, self.wanted)
        if keep - self._base <= _TRIM_CHARS:
            return False
        keep = min(keep, self.checks.oldest(self.sent))
        if self.matches.found:
            keep = min(keep, self.matches.found[0].span.start)
        if keep - self._base > _TRIM_CHARS:
            self.checks.forget(keep)
            self._forget_text(keep)
            return self.forget()
        return False

    def _forget_text(self, keep: int) -> None:
        """Forget the text before a place."""
        self._base = keep
        if keep >= self._at:
            self._pieces.clear()
            self._starts.clear()
            self._text, self._at = self._text[keep - self._at :], keep
        else:
            gone = bisect_right(self._starts, keep) - 1
            del self._pieces[:gone], self._starts[:gone]

    def forget(self) -> bool:
        """Forget some of what was sent in place of text that has been released; return whether there is more."""
        return self.replacements.forget(self.sent)
