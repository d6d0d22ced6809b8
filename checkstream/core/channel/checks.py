"""What classifiers are asked about one text: windows of it, and how far their answers let go of text.

Offsets are code points from the channel's start. Checks come at token positions, in the order of the text, and what a
check reads does not depend on how the text was cut.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from typing import Final

import msgspec

from checkstream.core.events import EntityFound
from checkstream.core.match.language import UNDETERMINED
from checkstream.core.match.tokens import TokenGrid
from checkstream.core.terms import Span

EVERYTHING = 1 << 62
"""Behind the end of any text."""


class HoldSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How much text waits behind classifiers. Patterns hold exactly what they must, whatever this says."""

    tokens: int = 16
    """The most tokens that wait, when risk is high."""
    calm_tokens: int = 0
    """Tokens that wait while risk is low; three at least where classifiers find entities."""
    check_every: int = 6
    """Tokens between two checks, after those at 1, 2 and 4."""
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
    def left(self) -> float:
        """Share of the risk that is left after a quiet check: as much goes with a token, however often one comes."""
        return math.pow(_LEFT_OF_RISK, self.check_every / 8)

    @property
    def entity_tokens(self) -> int:
        """The most tokens that wait, besides, for an entity to end which a model has seen begin.

        A window reaches back over all that waits, so that the model sees the entity whole when it is decided.
        """
        return max(min(_MAX_ENTITY_TOKENS, self.window - self.check_every - self.most_tokens), 0)

    def hold(self, risk: float, language: str = UNDETERMINED, *, entities: bool = False) -> int:
        """Return how many tokens wait at a risk of 0..1: few up to 0.3, all from 0.7 on."""
        most = self.by_language.get(language, self.tokens)
        calm = min(max(self.calm_tokens, _ENTITY_CONTEXT if entities else 0), most)
        return max(calm + round((most - calm) * min(max((risk - 0.3) / 0.4, 0.0), 1.0)), 0)


class Ending(msgspec.Struct, eq=False):
    """Where a text ends, as all that is asked about it sees it."""

    at: int = EVERYTHING


class Check(msgspec.Struct):
    """A window of text that classifiers are asked about, and their answer."""

    position: int
    """End of the checked text."""
    window: Span
    starts: tuple[int, ...]
    """Starts of the last tokens before `position`, oldest first: where a hold of n tokens begins."""
    ending: Ending
    """Of the text that it is about."""
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
    done: bool = False
    """It was handed out, or its text is dealt with otherwise."""
    said: str | None = None
    """What classifiers are shown of the window, of a check that was asked for before its text came."""
    owed: int = 0
    """Questions about it, and about what stands encoded in it, that have not been answered."""
    heard: dict[str, float] | None = None
    """The highest scores that have come of these so far."""

    @property
    def behind(self) -> bool:
        """The text ends before it does."""
        return self.position > self.ending.at

    @property
    def over(self) -> bool:
        """What comes of it matters no more."""
        return self.done or self.behind

    @property
    def answered(self) -> bool:
        """The classifiers have answered, or failed, or are no longer waited for."""
        return self.scores is not None or self.failed is not None or self.degraded or self.spared

    def hear(self, scores: dict[str, float], entities: tuple[EntityFound, ...]) -> None:
        """Take the answer to one question about it: the highest scores of all count, and those that all have."""
        self.owed -= 1
        self.entities = entities
        if self.heard is not None:
            both = ((name, score, self.heard[name]) for name, score in scores.items() if name in self.heard)
            scores = {name: max(score, known) for name, score, known in both if score >= 0.0 and known >= 0.0}
        self.heard = scores
        if self.owed <= 0:
            self.scores = scores


class Reach(msgspec.Struct, frozen=True):
    """How far a quiet check lets go of text."""

    end: int
    begun: int
    """Text from here on may still wait behind `end` for the end of an entity."""


_MANY = 64
CHECK_WORK = 3
"""Of a check that is asked for (see `match.work`)."""
_EARLY_CHECKS = frozenset({1, 2, 4})
_LEFT_OF_RISK = 0.8
"""After eight quiet tokens."""
_ENTITY_CONTEXT = 3
"""So many tokens behind a name a model wants to see to know that it is one."""
_MAX_ENTITY_TOKENS = 16
"""An address or a long name has no more; what goes on for longer is decided as it stands."""


_NONE: Final[deque[Check]] = deque(maxlen=0)
"""Of every text of which nobody wants checks: an empty queue has room for 64, and a stream has many texts."""


class Checks:
    """The checks of one text, in its order."""

    __slots__ = (
        "_ending",
        "_entity_tokens",
        "_floor",
        "_grid",
        "_kept_tokens",
        "_last",
        "_settings",
        "_starts",
        "_taken",
        "_waiting",
        "cleared",
        "dropped",
        "due",
        "wanted",
    )

    def __init__(self, settings: HoldSettings, *, wanted: bool, grid: bool) -> None:
        """Start before the first character.

        Args:
            settings: Sizes of windows and holds.
            wanted: Classifiers must clear text before it is released; False: there are no checks.
            grid: Check at token positions as the text comes; False: once, over the whole text, at its end.
        """
        self.wanted = wanted
        self.cleared = 0 if wanted else EVERYTHING
        """Classifiers have no say over text before this any more."""
        self.due: deque[Check] = deque() if wanted else _NONE
        """Those that have been asked for and not handed out, oldest first."""
        self.dropped: deque[Check] = deque() if wanted else _NONE
        """Those behind the end of the text: they may be many, and are forgotten in steps."""
        self._ending = Ending()
        self._grid = TokenGrid() if grid and wanted else None
        self._settings = settings
        self._starts = array("q")
        """Of the tokens that a check may still reach back to, wherever the channel will be cut."""
        self._floor = 0
        self._last = 0
        """End of the last check that was asked for."""
        self._taken = 0
        """End of the last check that was handed out."""
        self._entity_tokens = settings.entity_tokens
        self._waiting = settings.most_tokens + self._entity_tokens
        """The most tokens that wait behind a check."""
        self._kept_tokens = max(settings.window, settings.check_every + self._waiting + 1)
        """The most tokens that a check asks back for."""

    @property
    def whole(self) -> bool:
        """There is one check, of the whole text."""
        return self.wanted and self._grid is None

    # --- text in

    def feed(self, text: str) -> list[Check]:
        """Take text; return the checks that it makes due."""
        if self._grid is None:
            return NO_CHECKS
        due: list[Check] = []
        count = self._grid.count
        for start, end in self._grid.feed(text):
            self._starts.append(start)
            count += 1
            if count in _EARLY_CHECKS or count % self._settings.check_every == 0:
                due.append(self.ask(end))
        return due

    def ahead(self, text: str) -> list[Check]:
        """Return the check of a text that is known whole and is about to come; none where checks come as it does."""
        if not text or not self.whole:
            return NO_CHECKS
        return [self.ask(len(text), final=True)]

    def seed(self, text: str) -> None:
        """Take a text that has been sent already: what comes is scored together with it."""
        if self._grid is not None:
            self._starts.extend(start for start, _ in self._grid.feed(text))
        if self.wanted:
            self.cleared = self._last = self._taken = len(text)

    def end(self, received: int) -> list[Check]:
        """Take the end of a text of so many characters; return the last check, if it is due now."""
        if received == 0:
            self.cleared = EVERYTHING
            return NO_CHECKS
        if not self.wanted:
            return NO_CHECKS
        if self._grid is not None:
            self._starts.extend(start for start, _ in self._grid.end())
        if self._last < received or (not self.due and self.cleared < received):
            return [self.ask(received, final=True)]
        if self.due:
            self.due[-1].final = True  # it already covers the end of the text
        return NO_CHECKS

    def let_go(self, received: int) -> list[Check]:
        """Hold nothing of what has come for what may follow; return the check that is due now."""
        if not self.wanted or self.cleared >= received or self.covers(received):
            return NO_CHECKS
        if self.due and self.due[-1].position >= received:
            self.due[-1].final = True
            return NO_CHECKS
        return [self.ask(received, final=True)]

    def ask(self, position: int, *, final: bool = False) -> Check:
        """Return a new check that ends at `position`."""
        self._last = max(self._last, position)
        recent = self._recent(position)
        if self._grid is not None and self._grid.begun is not None and self._grid.begun < position:
            recent.append(self._grid.begun)
        settings = self._settings
        first = recent[-settings.window :][0] if recent else 0
        window = Span(min(max(first, self._floor), position), position)
        covered = self.due[-1].position if self.due else self._taken
        waiting = self._waiting
        still_open = recent[-settings.check_every - waiting :][0] if recent else window.start
        check = Check(
            position=position,
            window=window,
            starts=tuple(recent[-waiting - 1 :]),
            ending=self._ending,
            final=final,
            fresh=min(max(window.start, covered), position),
            open=max(window.start, still_open),
        )
        if self.due is _NONE:
            raise AssertionError("nobody wants checks of this text")
        self.due.append(check)
        return check

    def _recent(self, position: int) -> array[int]:
        """Return the starts of the last tokens before `position`, as many as a check may ask for."""
        count = bisect_left(self._starts, position)
        return self._starts[max(count - self._kept_tokens, 0) : count]

    # --- answers out

    def take(self) -> Check:
        """Hand the oldest out."""
        check = self.due.popleft()
        check.done = True
        self._taken = check.position
        return check

    def reach(self, check: Check, risk: float, language: str = UNDETERMINED, *, entities: bool = False) -> Reach:
        """Return how far a quiet check lets go of text.

        Args:
            check: Has been handed out.
            risk: 0..1; the higher, the more tokens before the end of the check still wait.
            language: Of the text; how many wait depends on it.
            entities: Classifiers that find entities are asked.
        """
        hold = 0 if check.final else self._settings.hold(risk, language, entities=entities)
        starts, held = check.starts, hold + self._entity_tokens
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
        while self.due and self.due[0].position <= position:
            self.due.popleft().done = True
        renewed: list[Check] = []
        for place, check in enumerate(self.due):
            if check.window.start >= position:
                break  # windows begin in the order of their ends
            self.due[place] = msgspec.structs.replace(
                check,
                window=Span(position, check.position),
                fresh=max(check.fresh, position),
                open=max(check.open, position),
                scores=None,
                entities=(),
                failed=None,
                spared=False,
                degraded=False,
                said=None,
                owed=0,
                heard=None,
            )
            check.done = True
            renewed.append(self.due[place])
        return renewed

    def stop(self, position: int) -> None:
        """Drop the checks that end behind `position`: the text ends there."""
        self._ending.at = min(self._ending.at, position)
        if self.due and self.due[-1].behind:
            behind, self.due = self.due, deque[Check]()
            while not behind[0].behind:
                self.due.append(behind.popleft())  # what is decided goes before: these are few
            self.dropped, behind = behind, self.dropped
            self.dropped.extendleft(behind)

    def covers(self, position: int) -> bool:
        """Tell whether a check has been asked for that clears all before `position`."""
        return bool(self.due) and self.due[-1].final and self.due[-1].position >= position

    # --- what is still needed

    @property
    def memory(self) -> list[deque[Check]]:
        """What is taken apart in steps at the end, as far as it is much."""
        return [each for each in (self.due, self.dropped) if len(each) > _MANY]

    def oldest(self, sent: int) -> int:
        """Return the start of the text that checks may still read, when all before `sent` has been released."""
        keep = EVERYTHING
        if self._grid is not None:
            recent = self._recent(sent)
            keep = recent[0] if recent else 0
        return min(keep, self.due[0].window.start) if self.due else keep

    def forget(self, position: int) -> None:
        """Forget the tokens before `position`."""
        del self._starts[: bisect_left(self._starts, position)]


NO_CHECKS: list[Check] = []
