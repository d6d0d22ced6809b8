"""Where one text of a choice goes over to another: thoughts to speech, the arguments of a call to the words behind it.

Who reads them in the order in which they came puts a value together that is cut there. So how a text begins, or goes
on, is read with what came before it; and that is held no longer once nothing can go over any more.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import permutations

from checkstream.core.channel.judge import Judge
from checkstream.core.channel.seam import BEFORE_CHARS, Stretch, reading_as_one
from checkstream.core.exchange.midstream.said import strings_of
from checkstream.core.match.work import Work
from checkstream.core.terms import Span

SPOKEN = frozenset({"content", "refusal", "reasoning"})
BORDERING = SPOKEN | {"tool_arguments"}
"""Channels that readers read in the order in which they come."""
_MOST_SPOKEN = 3
_END_CHARS = 128
"""Of a text's end that is read with another's beginning when both have ended."""
_MOST_OF_A_CALL = 4096
"""Of a call's arguments that are read for what they say."""
_MOST_FRESH = 8
"""Texts before a call that are known."""
_FREE_TURNS = 8
"""So often a text goes over to another as soon as nothing can go over; then only ..."""
_LEAST_CHARS = 32
"""... when the other has so many characters: events may speak of both, turn by turn."""


class Border:
    """What stands before the text of a choice that speaks last."""

    __slots__ = ("_before", "_fresh", "_since", "_turns", "before_calls", "latest", "owed")

    def __init__(self, latest: Judge | None = None, said: str = "") -> None:
        """Begin before any text, or behind what was said of an answer that goes on.

        Args:
            latest: Has the text that goes on; None: there is none.
            said: What has been sent of it.
        """
        self.latest = latest
        """Has the text that speaks last."""
        self.owed: list[Judge] = []
        """Texts before it that are held for what may follow them."""
        self.before_calls: dict[int, tuple[str, ...]] = {}
        """Number of a call -> what was said before it, and behind the call before."""
        self._fresh = [said[-_END_CHARS:]] if said else []
        self._before = [Stretch(said[-BEFORE_CHARS:], cut=len(said) > BEFORE_CHARS)] if said else []
        self._since = 0 if latest is None else latest.holdback.received
        self._turns = 0

    def cross(self, judge: Judge) -> None:
        """Note that another text goes on."""
        last = self.latest
        if last is not None:
            self._turns += 1
            last.holdback.matches.end_seams()
            self._add(last)
            if last.channel.kind in SPOKEN and last not in self.owed:
                self.owed.append(last)
        self.latest, self._since = judge, judge.holdback.received
        if judge in self.owed:
            self.owed.remove(judge)
        if judge.channel.kind not in SPOKEN:
            self.before_calls.setdefault(judge.channel.call, tuple(self._fresh))
            self._fresh.clear()
        elif self._before:
            judge.holdback.matches.follow(tuple(self._before), judge.holdback.received)

    def _add(self, last: Judge) -> None:
        """Add what a text has said since it began to speak."""
        holdback = last.holdback
        if last.channel.kind in SPOKEN:
            size = holdback.received - self._since
            if not size:
                return  # what it has said was sent before the answer went on
            said = holdback.end_of(min(size, BEFORE_CHARS))
            stretch = Stretch(said, holdback.received - len(said), holdback.matches, cut=len(said) < size)
            self._before.append(stretch)
            self._fresh = [*self._fresh[-_MOST_FRESH + 1 :], said[-_END_CHARS:]]
        else:
            arguments = strings_of(holdback.end_of(_MOST_OF_A_CALL))
            self._before += [Stretch(each[-BEFORE_CHARS:], cut=len(each) > BEFORE_CHARS) for each in arguments]
        room, kept = BEFORE_CHARS, list[Stretch]()
        for stretch in reversed(self._before):
            if room <= 0:
                break
            kept.append(stretch)
            room -= len(stretch.text) + 1
        self._before = kept[::-1]

    @property
    def is_crossed(self) -> bool:
        """Nothing can go over any more to the text that speaks last, so that what is owed can be let go."""
        latest = self.latest
        if latest is None or not self.owed or not latest.holdback.matches.seamless:
            return False
        return self._turns <= _FREE_TURNS or latest.holdback.received - self._since >= _LEAST_CHARS

    def take_owed(self) -> Sequence[Judge]:
        """Return the texts that are let go."""
        owed, self.owed = self.owed, []
        return owed

    def ending(self, judges: Sequence[Judge], work: Work) -> Generator[None, None, None]:
        """Take the end of the choice, in steps: nothing more goes over.

        Whatever came first, readers see thoughts above what is said, or beside it: a text that is still held is read
        with the beginnings of the others, too.

        Args:
            judges: Of the choice.
            work: Takes what that costs.
        """
        if self.latest is not None:
            self.latest.holdback.matches.end_seams()
        self.latest = None
        self.owed.clear()
        self._before.clear()
        spoken = [judge for judge in judges if judge.channel.kind in SPOKEN and judge.holdback.received > judge.prelude]
        if 1 < len(spoken) <= _MOST_SPOKEN:
            for size in range(2, len(spoken) + 1):
                for texts in permutations(spoken, size):
                    yield from self._reading_as_one(texts, work)

    @staticmethod
    def _reading_as_one(judges: Sequence[Judge], work: Work) -> Generator[None, None, None]:
        """Read some texts one behind the other, in steps."""
        *before, last = judges
        beginning = last.holdback
        if beginning.kept > last.prelude or any(each.holdback.ended for each in judges):
            return
        head = beginning.text(Span(last.prelude, last.prelude + BEFORE_CHARS))
        stretches: list[Stretch] = []
        for judge in before:
            holdback = judge.holdback
            said = holdback.end_of(min(holdback.received - judge.prelude, _END_CHARS))
            start = holdback.received - len(said)
            stretches.append(Stretch(said, start, holdback.matches, cut=start > judge.prelude))
        texts = [*stretches, Stretch(head, last.prelude, beginning.matches)]
        yield from reading_as_one(texts, beginning.matches.patterns, work)
