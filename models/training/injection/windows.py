"""Texts -> windows of word-piece ids, cut as the proxy cuts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from models.training.encoder import SPECIALS

WINDOW = 128
"""Word pieces of a window, frame included."""
OVERLAP = 32
FIRST, LAST = SPECIALS.index("[CLS]"), SPECIALS.index("[SEP]")
"""Ids of the frame: a pruned vocabulary begins with them."""


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts texts with one tokenizer."""

    tokenizer: Tokenizer

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, without frame."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def framed(self, ids: Sequence[int]) -> list[int]:
        """Put [CLS] before and [SEP] after."""
        return [FIRST, *ids, LAST]

    def windows(self, ids: Sequence[int], size: int = WINDOW, overlap: int = OVERLAP) -> list[list[int]]:
        """Return the framed windows of a text; the last one ends with the text and is full, if the text is long.

        Args:
            ids: of the text, without frame.
            size: ids of a window, frame included.
            overlap: ids that two neighbours share at least.
        """
        room = size - 2
        if len(ids) <= room:
            return [self.framed(ids)]
        starts = [*range(0, len(ids) - room, room - overlap), len(ids) - room]
        return [self.framed(ids[start : start + room]) for start in starts]

    def places(self, text: str, part: str) -> tuple[list[int], int, int]:
        """Return a text's ids, and the ids from..to that hold a part of it; from = to where the part isn't found."""
        encoding = self.tokenizer.encode(text, add_special_tokens=False)
        # What stands in JSON is escaped: the longest line of the part is enough to find it.
        line = max(part.split("\n"), key=len).split('"')[0][:200].strip()
        start = text.find(line) if len(line) > 8 else -1
        if start < 0:
            return encoding.ids, 0, 0
        end = start + len(line)
        held = [number for number, (a, b) in enumerate(encoding.offsets) if a < end and b > start]
        return encoding.ids, (held[0] if held else 0), (held[-1] + 1 if held else 0)
