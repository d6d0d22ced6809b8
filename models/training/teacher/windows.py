"""Texts -> windows of word pieces; of a pair, the claim stands in every window of the premise."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tokenizers import Tokenizer

from models.training.teacher.rows import Row

OVERLAP = 64
"""Pieces that two neighbouring windows share at least."""
_CLAIM = 160
"""Pieces of a claim at most: the premise must find room beside it."""
_MOST = 40
"""Windows of a text at most."""

Pieces = Sequence[int]


@dataclass(frozen=True, slots=True)
class Read:
    """A row in word pieces."""

    text: Pieces
    claim: Pieces
    span: tuple[int, int] | None = None
    """Pieces of the text that a window to learn from holds."""


class Cutter:
    """Cuts texts with the tokenizer of a base."""

    def __init__(self, described: str, frame: tuple[str, tuple[str, ...], str], length: int) -> None:
        """Read a tokenizer.

        Args:
            described: `tokenizer.json`.
            frame: pieces before, between and behind two texts.
            length: pieces of a window, frame included.

        Raises:
            ValueError: the tokenizer has no such pieces, or there is no room beside a claim.
        """
        self._tokenizer = Tokenizer.from_str(described)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        before, between, behind = frame
        self._before, *self._between, self._behind = (self._id(piece) for piece in (before, *between, behind))
        self._room = length - 2
        self._claim = min(_CLAIM, self._room // 2)

    def _id(self, piece: str) -> int:
        found = self._tokenizer.token_to_id(piece)
        if found is None:
            raise ValueError(f"the tokenizer has no piece `{piece}`")
        return int(found)

    def read(self, rows: Sequence[Row]) -> list[Read]:
        """Return the rows in word pieces."""
        result = list[Read]()
        for first in range(0, len(rows), 4096):
            some = rows[first : first + 4096]
            texts = self._tokenizer.encode_batch([row.text for row in some], add_special_tokens=False)
            claims = self._tokenizer.encode_batch([row.claim or "" for row in some], add_special_tokens=False)
            for row, text, claim in zip(some, texts, claims, strict=True):
                held = [
                    at for at, (a, b) in enumerate(text.offsets) if row.span and a < row.span[1] and b > row.span[0]
                ]
                span = (held[0], held[-1] + 1) if held else None
                result.append(Read(array("i", text.ids), array("i", claim.ids[: self._claim]), span))
        return result

    def _framed(self, read: Read, start: int, room: int) -> array[int]:
        text = read.text[start : start + room]
        if not read.claim:
            return array("i", [self._before, *text, self._behind])
        return array("i", [self._before, *read.claim, *self._between, *text, self._behind])

    def _size(self, read: Read) -> int:
        """Return how many pieces of the text a window has room for."""
        return self._room - (len(read.claim) + len(self._between) if read.claim else 0)

    def windows(self, read: Read) -> list[array[int]]:
        """Return the windows of a text; the last one ends with the text and is full, if the text is long."""
        room = self._size(read)
        if len(read.text) <= room:
            return [self._framed(read, 0, room)]
        step = max(room - OVERLAP, room // 2, 1)
        starts = [*range(0, len(read.text) - room, step), len(read.text) - room]
        return [self._framed(read, start, room) for start in starts[:_MOST]]

    def drawn(self, read: Read, random: Random) -> array[int]:
        """Return one window to learn from: one with the span, else the first as often as any other."""
        room = self._size(read)
        last = max(0, len(read.text) - room)
        if read.span is None:
            start = 0 if random.random() < 0.5 else random.randint(0, last)
        else:
            low = min(max(0, read.span[1] - room), last)
            start = random.randint(low, max(low, min(read.span[0], last)))
        return self._framed(read, start, room)
