"""Texts that rules put behind the sentence in which they fired: each once, where that sentence ends."""

from __future__ import annotations

from checkstream.core.channel.actions import behind_sentence
from checkstream.core.channel.checks import EVERYTHING
from checkstream.core.channel.holdback import Holdback
from checkstream.core.channel.replacements import Replacement
from checkstream.core.match.segments import Segments
from checkstream.core.terms import Span


class Insertions:
    """The texts to be put into one channel."""

    __slots__ = ("_holdback", "_pending", "_sentences", "_trailing", "done")

    def __init__(self, holdback: Holdback) -> None:
        """Put texts into what `holdback` holds."""
        self.done: set[str] = set()
        """Texts that have been put in, in this choice."""
        self._holdback = holdback
        self._sentences = Segments("sentence")
        self._pending: list[tuple[int, str]] = []
        self._trailing: list[str] = []

    def feed(self, text: str) -> None:
        """Read along."""
        self._sentences.feed(text)

    def end(self) -> None:
        """Take the end of the text."""
        self._sentences.end()

    def add(self, position: int, text: str) -> None:
        """Put a text behind the sentence that ends at `position` or goes on there, if it has not been put in yet."""
        if text not in self.done:
            self.done.add(text)
            self._pending.append((position, text))

    @property
    def waiting(self) -> bool:
        """A text is still to be put in."""
        return bool(self._pending)

    @property
    def fence(self) -> int:
        """Start of the text that may turn out to stand behind a text that is still to be put in."""
        return self._sentences.earliest_end if self._pending else EVERYTHING

    def place(self) -> None:
        """Put in the texts of which it is known where their sentences end."""
        waiting: list[tuple[int, str]] = []
        holdback = self._holdback
        for position, text in self._pending:
            sentence = self._sentences.around(Span(max(position - 1, 0), position))
            if sentence is None:
                waiting.append((position, text))
                continue
            end, last = sentence.end, holdback.received if holdback.cut is None else holdback.cut
            if not holdback.ended or end < last:
                behind = behind_sentence(text, holdback.text(Span(end, end + 1)))
                holdback.replacements.add(Replacement(end, end, behind), holdback.sent)
            elif position <= last:  # else what it is about is cut off too
                self._trailing.append(behind_sentence(text, ""))
        self._pending = waiting

    def take_trailing(self) -> list[str]:
        """Return the texts that stand behind the last sentence: no text is left that could carry them."""
        trailing, self._trailing = self._trailing, []
        return trailing
