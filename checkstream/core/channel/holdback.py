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

The holdback knows no rules, no wire and no clock: `Guard` asks it for decisions and tells it what follows.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from checkstream.core.channel.replacements import Replacements
from checkstream.core.events import EntityFound
from checkstream.core.match.language import UNDETERMINED
from checkstream.core.match.patterns import LEFT_CONTEXT_CHARS, PatternSet
from checkstream.core.match.scan import Scan
from checkstream.core.match.segments import Segments
from checkstream.core.match.tokens import TokenGrid
from checkstream.core.terms import Finding, Span

Scope = Literal["span", "word", "sentence"]
"""What of a text an edit takes: what was found, or all of the words or sentences that it touches."""

EVERYTHING = 1 << 62
"""Behind the end of any text."""


class HoldSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How much text waits behind classifiers. Patterns hold exactly what they must, whatever this says."""

    tokens: int = 16
    """The most tokens that wait, when risk is high."""
    calm_tokens: int = 3
    """Tokens that wait while risk is low."""
    check_every: int = 8
    """Tokens between two checks, after those at 1, 2, 4 and 8."""
    window: int = 64
    """Tokens that a check reaches back."""
    max_delay_ms: float = 250.0
    """Silence of the upstream after which what is there is checked early."""
    by_language: Mapping[str, int] = {}
    """Primary subtag of BCP 47 -> what counts in place of `tokens` in texts of that language."""

    @property
    def most_tokens(self) -> int:
        """The most that wait in any language."""
        return max((self.tokens, *self.by_language.values()))

    @property
    def entity_tokens(self) -> int:
        """The most tokens that wait, besides, for an entity to end which a model has seen begin.

        A window reaches back over all that waits, so that the model sees the entity whole when it is decided.
        """
        return max(min(_MAX_ENTITY_TOKENS, self.window - self.check_every - self.most_tokens), 0)

    def hold(self, risk: float, language: str = UNDETERMINED) -> int:
        """Return how many tokens wait at a risk of 0..1: few up to 0.3, all from 0.7 on."""
        most = self.by_language.get(language, self.tokens)
        calm = min(self.calm_tokens, most)
        return max(calm + round((most - calm) * min(max((risk - 0.3) / 0.4, 0.0), 1.0)), 0)


class Check(msgspec.Struct):
    """A window of text that classifiers are asked about, and their answer."""

    position: int
    """End of the checked text."""
    window: Span
    starts: tuple[int, ...]
    """Starts of the last tokens before `position`, oldest first: where a hold of n tokens begins."""
    final: bool = False
    """Nothing comes after it (end of the channel), or the upstream has stalled: clears all it covers."""
    fresh: int = 0
    """Start of the text that no earlier check of the channel was asked about."""
    open: int = 0
    """Start of the text in which entities may still be found: what stands before it is decided by then."""
    scores: dict[str, float] | None = None
    entities: tuple[EntityFound, ...] = ()
    failed: str | None = None
    spared: bool = False
    """The text is of a kind that classifiers have nothing to say about: a token, a number, a word of a protocol."""
    degraded: bool = False
    """Nobody waits for its classifiers any more: they passed their budget, and cheaper detectors decide alone."""

    @property
    def answered(self) -> bool:
        """The classifiers have answered, or failed, or are no longer waited for."""
        return self.scores is not None or self.failed is not None or self.degraded or self.spared


class Reach(msgspec.Struct, frozen=True):
    """How far a quiet check lets go of text."""

    end: int
    begun: int
    """Text from here on may still wait behind `end` for the end of an entity."""


class Cluster(msgspec.Struct, frozen=True):
    """Findings that overlap each other, all of them known: one decision is taken on them together.

    Those overlap too that touch the same word or sentence, where the channel is decided in words or sentences.
    """

    span: Span
    """With all of the words or sentences touched."""
    findings: tuple[Finding, ...]


class Joints(Protocol):
    """Tells what must stay together in a text, such as an escape of a JSON string."""

    def whole(self, position: int) -> int:
        """Return the last place at or before `position` at which the text may be parted."""

    def open(self, position: int) -> bool:
        """Tell whether `position` stands in something of which the end has not come yet."""

    def clip(self, whole: Span, span: Span) -> Span:
        """Return what of `whole`, which holds `span`, can be edited together with it."""


_LOOKED_BACK_CHARS = 512
"""What is let go is read together with so much before it."""
_EARLY_CHECKS = frozenset({1, 2, 4})
_MAX_ENTITY_TOKENS = 16
"""An address or a long name has no more; what goes on for longer is decided as it stands."""


class Holdback:
    """One channel's text on its way through the guard."""

    __slots__ = (
        "_alone",
        "_alone_at",
        "_base",
        "_checks",
        "_cluster",
        "_findings",
        "_floor",
        "_grid",
        "_joints",
        "_kept_tokens",
        "_known",
        "_last_check",
        "_patterns",
        "_scan",
        "_segments",
        "_settings",
        "_starts",
        "_taken",
        "_text",
        "_with_checks",
        "_words",
        "cleared",
        "cut",
        "ended",
        "fence",
        "free",
        "received",
        "replacements",
        "sent",
        "wanted",
    )

    def __init__(
        self,
        patterns: PatternSet,
        *,
        checks: bool,
        settings: HoldSettings,
        grid: bool = True,
        joints: Joints | None = None,
        grain: Scope = "span",
    ) -> None:
        """Start an empty channel.

        Args:
            patterns: What is searched for; text over which one could still match waits.
            checks: Classifiers must clear text before it is released.
            settings: Sizes of windows and holds.
            grid: Check at token positions as the text comes; False: once, over the whole text, at its end.
            joints: Where the text may be parted, None: anywhere. An edit takes all of what must stay together, so
                none of that may have left, and all of it must have come.
            grain: The largest scope of an edit: text is decided and released in whole words or sentences, so that all
                of one can be edited for what stands at its end.
        """
        self.received = 0
        self.sent = 0
        """End of the text that has been released."""
        self.ended = False
        self.cut: int | None = None
        """The channel was stopped here: text from here on is never sent."""
        self.cleared = 0 if checks else EVERYTHING
        """Classifiers have no say over text before this any more."""
        self.replacements = Replacements()
        self.free = 0
        """Text before this is not held for what may follow: it was let go."""
        self.fence = EVERYTHING
        """Text from here on waits for a decision that comes later than in its place."""
        self.wanted = EVERYTHING
        """Text from here on is still to be read by somebody else and must be kept."""
        self._text = ""
        self._base = 0
        self._patterns = patterns
        self._scan = Scan(patterns)
        self._alone: Scan | None = None
        """Reads the latest part of a text that has parts, as if it stood alone; `_scan` reads over their bounds."""
        self._alone_at = 0
        """Where that part starts."""
        self._known: set[tuple[int, Span]] = set()
        """What has been found since the text has parts: once for both readings."""
        self._findings: deque[Finding] = deque()
        self._checks: deque[Check] = deque()
        self._with_checks = checks
        self._joints = joints
        self._words = Segments("word") if grain != "span" else None
        self._segments = Segments("sentence") if grain == "sentence" else self._words
        """What text is decided and released in."""
        self._cluster = (0, 0)
        """How many of the first findings are known to overlap, and where they and what they touch end."""
        self._grid = TokenGrid() if grid and checks else None
        self._settings = settings
        self._starts = array("q")
        """Of the tokens that a check may still reach back to, wherever the channel will be cut."""
        self._floor = 0
        self._last_check = 0
        self._taken = 0
        """End of the last check that was handed out."""
        waiting = settings.check_every + settings.most_tokens + settings.entity_tokens
        self._kept_tokens = max(settings.window, waiting + 1)
        """The most tokens that a check asks back for."""

    # --- text in

    def feed(self, text: str) -> list[Check]:
        """Take text from the upstream; return the checks that it makes due."""
        self.received += len(text)
        self._text += text
        if self._segments is not None:
            self._segments.feed(text)
            self._scan.work.done += len(text) // 2
            if self._words is not None and self._words is not self._segments:
                self._words.feed(text)
        found = self._scan.feed(text)
        if self._alone is not None:
            self._find_apart(found, self._alone.feed(text), self._alone_at)
        elif found:
            self._findings.extend(found)
        if self._grid is None:
            return _NO_CHECKS
        due: list[Check] = []
        count = self._grid.count
        for start, end in self._grid.feed(text):
            self._starts.append(start)
            count += 1
            if count in _EARLY_CHECKS or count % self._settings.check_every == 0:
                due.append(self._check(end))
        return due

    def parting(self) -> Generator[None, None, None]:
        """Take the end of a part of the text: what comes is another one, which readers may join to it or not.

        What stands in a part alone is found, whatever it touches, and what stands over their bounds.
        """
        if self.ended or not self.received:
            return
        if self._alone is None:
            # What has been decided is the same either way; what was still live is read again, with what stands before.
            start = max(self._scan.live - LEFT_CONTEXT_CHARS, self._base)
            self._alone, self._alone_at = Scan(self._patterns, self._scan.work), start
            undecided = yield from _reading(self._alone, self._text[start - self._base :])
            least = self._scan.live
        else:
            undecided, least = [], 0
        undecided += self._alone.end()
        self._find_apart([], [each for each in undecided if each.span.start + self._alone_at >= least], self._alone_at)
        self._alone, self._alone_at = Scan(self._patterns, self._scan.work), self.received

    def letting_go(self) -> Generator[None, None, list[Check]]:
        """Hold nothing of what has come for what may follow: nobody knows that anything will.

        Returns:
            The check that is due now.
        """
        yield from self.parting()
        yield from self._finding_as_if_ended()
        self.free = self.received
        if not self._with_checks or self.ended or self.cleared >= self.received or self._covers(self.received):
            return _NO_CHECKS
        if self._checks and self._checks[-1].position >= self.received:
            self._checks[-1].final = True
            return _NO_CHECKS
        return [self._check(self.received, final=True)]

    def _finding_as_if_ended(self) -> Generator[None, None, None]:
        """Take what the joined text comes to if nothing follows: what is found only then would be found too late."""
        live = self._scan.live
        if self.ended or live >= self.received:
            return
        start = max(live - LEFT_CONTEXT_CHARS, self._base, self.received - _LOOKED_BACK_CHARS)
        look = Scan(self._patterns, self._scan.work)
        found = (yield from _reading(look, self._text[start - self._base :])) + look.end()
        self._find_apart([], [each for each in found if each.span.start + start >= live], start)

    def _find_apart(self, joined: Sequence[Finding], alone: Sequence[Finding], at: int) -> None:
        """Take what was found over the bounds of parts, and in one of them alone, which starts at `at`."""
        new = False
        for each, by in (*((each, 0) for each in joined), *((each, at) for each in alone)):
            span = Span(max(each.span.start + by, self.free), each.span.end + by)  # what was let go is gone
            if span.start < span.end and (each.signal, span) not in self._known:
                self._known.add((each.signal, span))
                self._findings.append(msgspec.structs.replace(each, span=span))
                new = True
        if new:
            self._findings = deque(sorted(self._findings, key=lambda each: (each.span, each.signal)))
            self._cluster = 0, 0

    @property
    def _live(self) -> int:
        """Oldest start that could still become a match, in either reading."""
        live = self._scan.live
        return live if self._alone is None else min(live, self._alone_at + self._alone.live)

    def seed(self, text: str) -> None:
        """Begin behind a text that has been sent already: what comes is matched and scored together with it."""
        self.received = self.sent = len(text)
        self._text = text
        self._findings.extend(self._scan.feed(text))
        if self._segments is not None:
            self._segments.feed(text)
            if self._words is not None and self._words is not self._segments:
                self._words.feed(text)
        if self._grid is not None:
            self._starts.extend(start for start, _ in self._grid.feed(text))
        if self._with_checks:
            self.cleared = self._last_check = self._taken = len(text)

    def end(self) -> list[Check]:
        """Take the end of the channel: every pattern is decided; return the last checks."""
        if self.ended:
            return _NO_CHECKS
        self.ended = True
        self._end_segments()
        if self._alone is not None:
            self._find_apart(self._scan.end(), self._alone.end(), self._alone_at)
            self._alone = None
        else:
            self._findings.extend(self._scan.end())
        if self.received == 0:
            self.cleared = EVERYTHING
            return _NO_CHECKS
        if not self._with_checks:
            return _NO_CHECKS
        if self._grid is not None:
            self._starts.extend(start for start, _ in self._grid.end())
        if self._last_check < self.received or (not self._checks and self.cleared < self.received):
            return [self._check(self.received, final=True)]
        if self._checks:
            self._checks[-1].final = True  # it already covers the end of the text
        return _NO_CHECKS

    def stall(self) -> list[Check]:
        """Return an early check of what is there, so that it can be released though nothing more comes."""
        position = min(max(self._live, self.free), self.received)
        if self._segments is not None:
            position = self._segments.floor(position)  # no more can be released
        if self._joints is not None:
            position = self._joints.whole(position)
        if not self._with_checks or self.ended or position <= self.cleared or self._checks:
            return _NO_CHECKS
        return [self._check(position, final=True)]

    def _check(self, position: int, *, final: bool = False) -> Check:
        self._last_check = max(self._last_check, position)
        recent = self._recent(position)
        if self._grid is not None and self._grid.begun is not None and self._grid.begun < position:
            recent.append(self._grid.begun)
        settings = self._settings
        first = recent[-settings.window :][0] if recent else self._base
        window = Span(min(max(first, self._floor), position), position)
        covered = self._checks[-1].position if self._checks else self._taken
        waiting = settings.most_tokens + settings.entity_tokens
        still_open = recent[-settings.check_every - waiting :][0] if recent else window.start
        check = Check(
            position=position,
            window=window,
            starts=tuple(recent[-waiting - 1 :]),
            final=final,
            fresh=min(max(window.start, covered), position),
            open=max(window.start, still_open),
        )
        self._checks.append(check)
        return check

    def _recent(self, position: int) -> array[int]:
        """Return the starts of the last tokens before `position`, as many as a check may ask for."""
        count = bisect_left(self._starts, position)
        return self._starts[max(count - self._kept_tokens, 0) : count]

    def take_work(self) -> int:
        """Return what reading has cost since this was last asked (see `match.work`)."""
        return self._scan.work.take()

    # --- decisions out

    def next_decision(self) -> Cluster | Check | None:
        """Return the next decision in the order of the text, or None while something before it is unknown."""
        live = self.received if self.ended else max(self._live, self.free)
        check = self._checks[0] if self._checks else None
        if check is None:
            return self._next_cluster(live) if self._findings else None
        position = check.position
        if self._segments is not None:
            # What stands in the word or sentence is decided first: the check may edit all of it.
            touched = self._touched(Span(max(position - 1, 0), position))
            if touched is None:
                return self._next_cluster(live) if self._findings else None
            position = touched.end
        if self._findings and self._findings[0].span.start < position:
            return self._next_cluster(live)
        if not check.answered or position > live or self._parts(position):
            return None
        self._taken = position = self._checks[0].position
        return self._checks.popleft()

    def _next_cluster(self, live: int) -> Cluster | None:
        findings = self._findings
        size, end = self._cluster
        while size < len(findings) and (size == 0 or findings[size].span.start < end):
            touched = self._touched(findings[size].span)
            if touched is None:
                return None
            size, end = size + 1, max(end, touched.end)
            self._cluster = size, end
        if end > live or self._parts(end):
            return None
        self._cluster = 0, 0
        first = self._touched(findings[0].span) or findings[0].span
        return Cluster(Span(first.start, end), tuple(findings.popleft() for _ in range(size)))

    def _parts(self, position: int) -> bool:
        """Tell whether a place stands in something that must stay together and whose end has not come."""
        return self._joints is not None and not self.ended and self._joints.open(position)

    def _touched(self, span: Span) -> Span | None:
        """Return a span with what it touches of the channel's grain; None while the end of that is not known."""
        return span if self._segments is None else self._clipped(self._segments.around(span), span)

    def _clipped(self, whole: Span | None, span: Span) -> Span | None:
        if whole is None:
            return None
        if self.cut is not None:
            whole = Span(whole.start, max(min(whole.end, self.cut), span.end))
        return whole if self._joints is None else self._joints.clip(whole, span)

    def widen(self, span: Span, scope: Scope) -> Span:
        """Return a span with all of the words or the sentences that it touches, as far as they have come.

        Args:
            span: Stands in a decision, so that what it touches is complete.
            scope: Has no effect beyond the channel's grain.
        """
        segments = self._words if scope == "word" else self._segments
        if segments is None or scope == "span":
            return span
        whole = segments.around(span) or Span(segments.floor(span.start), self.received)
        return self._clipped(whole, span) or span

    def expects(self, check: Check) -> bool:
        """Tell whether the answer to a check that holds text still matters."""
        return check in self._checks

    @property
    def releasable(self) -> int:
        """End of the text that may be sent now."""
        limit = self.received if self.ended else max(self._live, self.free)
        limit = min(limit, self.cleared, self.fence)
        if self._findings:
            limit = min(limit, self._findings[0].span.start)
        if self.cut is not None:
            limit = min(limit, self.cut)
        if not (self.ended and limit == (self.received if self.cut is None else self.cut)):
            if self._segments is not None:
                limit = self._segments.floor(limit)
            if self._joints is not None:
                limit = self._joints.whole(limit)
        if self.replacements.items and limit != self.cut:
            limit = self.replacements.whole(limit)
        return max(limit, self.sent)

    @property
    def kept(self) -> int:
        """Start of the text that is kept: nothing that begins before it will be handed out any more."""
        return self._base

    @property
    def decided(self) -> bool:
        """The channel has ended, and all that was found or checked in it has been handed out."""
        return self.ended and not self._findings and not self._checks

    @property
    def settled(self) -> bool:
        """Nothing of this channel waits for a decision any more."""
        end = self.received if self.cut is None else self.cut
        return self.ended and self.releasable >= end and not self._checks

    # --- what follows from a decision

    def reach(self, check: Check, risk: float, language: str = UNDETERMINED) -> Reach:
        """Return how far a quiet check lets go of text.

        Args:
            check: Has been handed out.
            risk: 0..1; the higher, the more tokens before the end of the check still wait.
            language: Of the text; how many wait depends on it.
        """
        hold = 0 if check.final else self._settings.hold(risk, language)
        starts, held = check.starts, hold + self._settings.entity_tokens
        end = (check.position if hold == 0 else starts[-hold]) if len(starts) >= hold else self.cleared
        begun = (end if held == 0 else starts[-held]) if len(starts) >= held else 0
        return Reach(max(end, self.cleared), begun)

    def clear(self, position: int) -> None:
        """Let go of the text before `position`: classifiers have no say over it any more."""
        self.cleared = max(self.cleared, position)

    def scored_through(self, position: int) -> list[Check]:
        """Leave text before `position` out of later windows: it is dealt with, and must not fire again.

        Returns:
            New checks in the place of those that were due already with that text in their windows. Whether a check
            was asked for before or after this decision depends on how the text was cut; what it reads must not.
        """
        self._floor = max(self._floor, position)
        self.cleared = max(self.cleared, position)
        self._checks = deque(check for check in self._checks if check.position > position)
        renewed: list[Check] = []
        for place, check in enumerate(self._checks):
            if check.window.start < position:
                self._checks[place] = msgspec.structs.replace(
                    check,
                    window=Span(position, check.position),
                    fresh=max(check.fresh, position),
                    open=max(check.open, position),
                    scores=None,
                    entities=(),
                    failed=None,
                    spared=False,
                    degraded=False,
                )
                renewed.append(self._checks[place])
        return renewed

    def stop(self, position: int) -> list[Check]:
        """Cut the channel at `position`; return the check of the text before it that is now the last one."""
        if self.cut is not None and self.cut <= position:
            return _NO_CHECKS
        self.cut = position
        self.replacements.cut(position)
        self._findings.clear()
        self._cluster = 0, 0
        self._end_segments()
        self._checks = deque(check for check in self._checks if check.position <= position)
        self._scan.end()
        self._alone = None
        self.ended = True
        if self._with_checks and self.cleared < position and not self._covers(position):
            return [self._check(position, final=True)]
        return _NO_CHECKS

    def abandon(self) -> list[Check]:
        """Cut the channel before the text that a pattern could still match, since it will not be decided any more.

        Returns:
            The check of the text before it that is now the last one, if one is due.
        """
        if self.ended:
            return _NO_CHECKS
        position = max(self._live, self.free)
        decided = deque(finding for finding in self._findings if finding.span.start < position)
        checks = self.stop(position)
        self._findings = decided
        return checks

    def _end_segments(self) -> None:
        if self._segments is not None:
            self._segments.end()
        if self._words is not None:
            self._words.end()

    def _covers(self, position: int) -> bool:
        return bool(self._checks) and self._checks[-1].final and self._checks[-1].position >= position

    # --- text out

    def text(self, span: Span) -> str:
        """Return the original text of a span that is not older than a window."""
        return self._text[max(span.start - self._base, 0) : max(span.end - self._base, 0)]

    def render(self, start: int, end: int) -> str:
        """Return what is sent for the original text `start..end`: a replacement stands where its span starts."""
        stop = max(end if self.cut is None else min(end, self.cut), start)
        if not self.replacements:
            return self.text(Span(start, stop))
        return self.replacements.render(start, stop, self.text, cut=self.cut is not None and start <= self.cut < end)

    def changed(self, start: int, end: int) -> bool:
        """Tell whether what is sent for `start..end` differs from what came."""
        return (self.cut is not None and end > self.cut) or self.replacements.touch(start, end)

    def torn_before(self, end: int) -> bool:
        """Tell whether the channel was cut before `end`."""
        return self.cut is not None and self.cut < end

    def release(self, end: int) -> None:
        """Note that the text up to `end` has been released, and forget what nothing needs any more."""
        self.sent = max(self.sent, end)
        if self._with_checks and self._grid is None:
            return
        if self._segments is not None and self._words is not None:
            self._segments.forget(self.sent)
            self._words.forget(self.sent)
        keep = min(self.sent, self._live - LEFT_CONTEXT_CHARS, self.wanted)
        if keep - self._base <= _TRIM_CHARS:
            return  # what else is needed can only be older
        if self._grid is not None:
            recent = self._recent(self.sent)
            keep = min(keep, recent[0] if recent else 0)
        if self._checks:
            keep = min(keep, self._checks[0].window.start)
        if self._findings:
            keep = min(keep, self._findings[0].span.start)
        if keep - self._base > _TRIM_CHARS:
            del self._starts[: bisect_left(self._starts, keep)]
            self._text = self._text[keep - self._base :]
            self._base = keep
            self.replacements.forget(self.sent)


def _reading(scan: Scan, text: str) -> Generator[None, None, list[Finding]]:
    """Read a text in steps; return what is decided in it."""
    found: list[Finding] = []
    for at in range(0, len(text), _STEP_CHARS):
        found += scan.feed(text[at : at + _STEP_CHARS])
        yield
    return found


_STEP_CHARS = 256
"""Of text that is read once more."""
_NO_CHECKS: list[Check] = []
_TRIM_CHARS = 512
