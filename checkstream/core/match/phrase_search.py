"""The search of one lane for phrases: which are found, and the oldest place that could still become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from checkstream.core.match.phrases import Phrase, PhraseIndex
from checkstream.core.match.shapes import ASCII_LETTERS, LETTERS, folded, is_word, shaped

_FIRST_WINDOW: Final = 32
"""Characters that are compared at first; more only while they begin a phrase."""

Free = Callable[[int, int], bool]
"""`free(number, start)`: whether a candidate of that phrase counts when it starts at the index `start`."""


class Match(msgspec.Struct, frozen=True):
    """A phrase that was found, as indexes into the text."""

    start: int
    end: int
    phrase: Phrase


class PhraseSearch:
    """The search of one lane for phrases; mutable. Indexes are those of the lane's text.

    INVARIANT: it is a function of the text, of where the lane's candidates begin and of which of them are free:
    `at` and `found` only save work.
    """

    __slots__ = ("_end", "at", "found", "index")

    def __init__(self, index: PhraseIndex) -> None:
        """Start at the beginning of the text."""
        self.index = index
        self.at = 0
        """No phrase is live at a start before this, and those that match from one are in `found`."""
        self.found: list[Match] = []
        """In the order of their starts."""
        self._end = 0

    def leftmost(self, text: str, floor: int, end: int, free: Free | None) -> int:  # noqa: C901 - calls cost too much
        """Return the first index from `floor` on from which `text[:end]` could still become a match, else `end`.

        Args:
            text: The lane's text.
            floor: Index from which candidates are undecided.
            end: Where the text is taken to end for now.
            free: Which candidates count; None: all.
        """
        at = self.at
        if end < self._end or at < floor:
            at = self._again(floor, end)
        self._end = end
        if at >= end:
            return end
        index, piece = self.index, text[at:end]
        if free is not None or (index.leads and not index.leads.isdisjoint(folded(piece))):
            return self._search(text, end, free)
        letters = piece.encode().translate(ASCII_LETTERS).decode() if piece.isascii() else piece.translate(LETTERS)
        words = letters.split()
        live = end
        if not index.firsts.isdisjoint(words):
            pairs = index.pairs.intersection(zip(words, words[1:]))  # noqa: B905, RUF007 - these would cost a third more
            if pairs or index.singles:
                begun = {first for first, _ in pairs} | index.singles.intersection(words)
                live = self._first_begun(text, end, letters, begun)
        size = 0  # characters at the end that are the beginning of a phrase: of the last two words, if any
        if letters[-1] == " ":
            if words and words[-1] in index.firsts:
                size = self._ends_in_first(piece, letters, words[-1])
                if size == len(piece) and at and is_word(text[at - 1]):  # the search has got to within a word
                    size = 0
        else:
            last = words[-1]
            if len(words) > 1 and (
                " " + last in index.seconds.get(words[-2], "") or (index.odd and words[-2] in index.odd)
            ):
                size = self._ends_in_second(piece, letters, words[-2], last)
            if not size and last in index.beginnings:
                size = len(last)
            if size == len(piece) and at and is_word(text[at - 1]):
                size = len(last) if len(last) < size and last in index.beginnings else 0
        self.at = min(live, end - size)
        return self.at

    def _first_begun(self, text: str, end: int, letters: str, words: Iterable[str]) -> int:
        """Return the first place of one of `words` from which a phrase is live, else `end`; note what matches before.

        `letters` are those of the text that is still to be searched.
        """
        at, places = self.at, list[int]()
        letters = f"{'_' if at and is_word(text[at - 1]) else ' '}{letters} "
        for word in words:
            place = letters.find(f" {word} ")
            while place >= 0:
                places.append(at + place)
                place = letters.find(f" {word} ", place + 1)
        for start in sorted(places):
            if self._resolve(text, start, end, None, ended=False):
                return start
        return end

    def _ends_in_first(self, piece: str, letters: str, last: str) -> int:
        """Return the size of a phrase's beginning at the end: its first word, with what stands behind it; or 0."""
        index, size = self.index, len(letters) - letters.rindex(last)
        if last not in index.odd and not piece[len(last) - size :].isspace():
            return 0
        if piece[-1] == " " and size == len(last) + 1:
            return size if last in index.opens else 0
        return size if index.begins(shaped(piece[-size:])[0]) else 0

    def _ends_in_second(self, piece: str, letters: str, first: str, last: str) -> int:
        """Return the size of a phrase's beginning at the end: its first word and part of its second; or 0."""
        index, size = self.index, len(letters) - letters.rindex(first, 0, -len(last))
        if first not in index.odd:
            gap = piece[len(first) - size : -len(last)]
            if gap == " " or not gap.isspace():
                return size if gap == " " else 0  # there are such phrases
        return size if index.begins(shaped(piece[-size:])[0]) else 0

    def _again(self, floor: int, end: int) -> int:
        """Start at `floor` where that is further, or where less of the text is asked for than before."""
        if end < self._end:
            self.at = floor
            self.found.clear()
        self.at = max(self.at, floor)
        return self.at

    def take(self, text: str, floor: int, high: int) -> list[Match]:
        """Return what matches from a start before `high`, once; nothing that starts there is live."""
        at = max(self.at, floor)
        if at < high:  # the text has ended
            for start in self.index.candidates(text, at, len(text)):
                if start < high:
                    self._resolve(text, start, len(text), None, ended=True)
            self.at = high
        taken = [match for match in self.found if match.start < high]
        del self.found[: len(taken)]
        return taken

    def begun(self, text: str, end: int) -> Iterator[tuple[int, Phrase]]:
        """Yield, from left to right, each start from which a phrase is live in `text[:end]`, with the phrase."""
        for start in self.index.candidates(text, self.at, end):
            for place in self.index.begun(shaped(text[start:end])[0]):
                for phrase in self.index.phrases[place]:
                    yield start, phrase

    def trim(self, cut: int) -> None:
        """Follow a cut of the first `cut` characters of the text, before which all has been taken."""
        self.at -= cut
        self._end -= cut
        if self.found:
            self.found = [msgspec.structs.replace(m, start=m.start - cut, end=m.end - cut) for m in self.found]

    def _search(self, text: str, end: int, free: Free | None) -> int:
        for start in self.index.candidates(text, self.at, end):
            if self._resolve(text, start, end, free, ended=False):
                self.at = start
                return start
        self.at = end
        return end

    def _resolve(self, text: str, start: int, end: int, free: Free | None, *, ended: bool) -> bool:
        """Return whether a match from `start` is still possible; if not, note which phrases match from it."""
        index, size = self.index, _FIRST_WINDOW
        while True:
            stop = min(end, start + size)
            shape, ends = shaped(text[start:stop])
            live = index.begins(shape)
            if live and free is not None:
                begun = (phrase.number for place in index.begun(shape) for phrase in index.phrases[place])
                live = any(free(number, start) for number in begun)
            if stop == end or not live:
                break
            size *= 4
        if live and not ended:
            return True
        for place in index.within(shape):
            key = index.keys[place]
            after = start + (ends[len(key) - 1] if ends else len(key))
            if not (is_word(key[-1]) and is_word(text[after : after + 1])):
                self.found += [Match(start, after, phrase) for phrase in index.phrases[place]]
        return False
