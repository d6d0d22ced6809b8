"""Models that give a window of text one row of label scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from checkstream.errors import ModelError
from checkstream.scoring.catalog import Model
from checkstream.scoring.graph import Graph
from checkstream.scoring.manifest import Activation, ModelEntry, TokenTypes
from checkstream.scoring.session import Gate, Readings, Window, Word
from checkstream.scoring.tokenizer import Placed, Tokenizer
from checkstream.scoring.windows import Piece, pieces

_CHARS_PER_TOKEN = 8
"""Of a text's context, so much is read for each token that it may fill: ordinary words have four or five."""


class Cutter:
    """Cuts texts into the windows of one model."""

    def __init__(self, entry: ModelEntry, tokenizer: Tokenizer, *, words: bool) -> None:
        """Cut for a model's limits; `words`: windows name their words, for taggers.

        Raises:
            ModelError: a window has no room for a text.
        """
        self._tokenizer = tokenizer
        self._words = words
        self._room = entry.limits.window_tokens - len(tokenizer.before) - len(tokenizer.after)
        self._overlap = entry.limits.overlap_tokens
        if self._room - self._overlap < 1:
            raise ModelError(f"windows of model `{entry.name}` have no room for a text; raise `window_tokens`")

    def cut(self, text: str, fresh_chars: int) -> Iterator[Window | None]:
        """Cut a text; see `Session.cut`."""
        fresh = _word_start(text, len(text) - fresh_chars) if 0 < fresh_chars < len(text) else 0
        alone = None if self._words else self._alone(text, fresh)
        if alone is not None:
            yield alone
            return
        context = self._context(text, fresh) if fresh else []
        units = ((fresh + start, unit) for start, unit in self._tokenizer.units(text[fresh:], placed=self._words))
        begin = seen = 0
        empty = True
        for piece in pieces(units, room=self._room, overlap=self._overlap, context=context):
            if piece is None:
                yield None
                continue
            stop = len(text) if piece.turn is None else piece.turn
            window = self._window(piece, begin, stop, seen)
            yield window
            begin, empty = stop, False
            seen = window.words[-1].end if window.words else seen
        if empty:
            shown = pieces(context, room=self._room, overlap=self._overlap)
            *_, last = Piece((), 0, 0, None), *(piece for piece in shown if piece is not None)
            yield self._window(last, 0, len(text))

    def _alone(self, text: str, fresh: int) -> Window | None:
        """Return the window of a text whose fresh part fits in one; None where that can't be told by its words alone.

        What the long way comes to, which is for texts of any kind, at a third of its cost: nearly every check of a
        running answer is of this kind, and only as many words are looked up as the window holds.
        """
        before, after = self._tokenizer.before, self._tokenizer.after
        words = self._tokenizer.words(text[fresh:])
        new: list[int] = []
        for word in words or ():
            ids = self._tokenizer.word(word)
            if ids is None or len(new) + len(ids) > self._room:
                return None
            new += ids
        if not new:
            return None
        words = self._tokenizer.words(text[self._context_start(text, fresh) : fresh])
        if words is None:
            return None
        left = self._room - len(new)
        known: list[Sequence[int]] = []
        for word in reversed(words):
            ids = self._tokenizer.word(word)
            if ids is None:
                return None
            if len(ids) > left:
                break
            left -= len(ids)
            known.append(ids)
        inside = [token for part in reversed(known) for token in part]
        framed = [*before, *inside, *new, *after]
        return Window("", len(framed), framed, context=len(inside))

    def _context_start(self, text: str, end: int) -> int:
        begin = max(0, end - self._room * _CHARS_PER_TOKEN)
        return min(_word_end(text, begin), end) if begin else 0

    def _context(self, text: str, end: int) -> list[Placed]:
        begin = self._context_start(text, end)
        return [(begin + start, unit) for start, unit in self._tokenizer.units(text[begin:end], placed=self._words)]

    def _window(self, piece: Piece, begin: int, stop: int, seen: int = 0) -> Window:
        before, after = self._tokenizer.before, self._tokenizer.after
        inside = [token for _, unit in piece.units for token in unit.ids]
        ids = [*before, *inside, *after] or [0]
        if not self._words:
            return Window("", len(ids), ids, context=piece.context)
        cases = [0] * len(before) + [case for _, unit in piece.units for case in unit.cases] + [0] * len(after)
        words: list[Word] = []
        at = len(before)
        for start, unit in piece.units:
            words += [Word(at + first, start + head, start + tail) for first, head, tail in unit.words if head < tail]
            at += len(unit.ids)
        return Window("", len(ids), ids, cases, words, piece.context, begin, stop, seen)


class SequenceSession:
    """A sequence classifier: every window goes through its graph."""

    inline = False
    gate: Gate | None = None

    def __init__(self, model: Model) -> None:
        """Load the graph and the tokenizer of a verified model, and warm up.

        Raises:
            ModelError: they aren't sound, or don't fit each other or the manifest.
        """
        entry = model.entry
        self._activation = entry.activation
        self.tokenizer = Tokenizer(model.contents["tokenizer"])
        self._cutter = Cutter(entry, self.tokenizer, words=False)
        columns = entry.columns or entry.labels
        self._columns = [[at for at, name in enumerate(columns) if name == label] for label in entry.labels]
        self._straight = columns == entry.labels
        if entry.token_types is TokenTypes.CASE:
            raise ModelError(f"model `{entry.name}` tags no tokens; remove `token_types`")
        longest = entry.limits.window_tokens
        graph = model.contents["graph"]
        self._graph = Graph(
            graph, rank=2, columns=len(columns), top_id=self.tokenizer.size - 1, longest=longest, shared=model.shared
        )

    def cut(self, text: str, fresh_chars: int = 0) -> Iterator[Window | None]:
        """Cut into windows that overlap, the last one aligned at the end."""
        return self._cutter.cut(text, fresh_chars)

    def run(self, windows: Sequence[Window]) -> Readings:
        """Score windows."""
        return Readings(np.stack([self.score(window) for window in windows]))

    def score(self, window: Window) -> NDArray[np.float32]:
        """Return float32[label]: the scores of one window."""
        found = activated(self._graph.run(window.ids), self._activation)
        if self._straight:
            return found
        return np.array([found[columns].max() for columns in self._columns], np.float32)


def activated(logits: NDArray[np.float32], activation: Activation | None) -> NDArray[np.float32]:
    """Return scores of logits[..., column]."""
    if activation is Activation.SIGMOID:
        return np.asarray(1 / (1 + np.exp(-np.clip(logits, -60, 60))), np.float32)
    if activation is Activation.SOFTMAX:
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=-1, keepdims=True), np.float32)
    return logits


def _word_start(text: str, at: int) -> int:
    """Return where the word begins that stands at `at`, so that no word is parted; not far, for texts without space."""
    lowest = max(0, at - 64)
    start = at
    if text[at].isspace():
        return at
    while start > lowest and not text[start - 1].isspace():
        start -= 1
    return start if start > lowest or start == 0 else at


def _word_end(text: str, at: int) -> int:
    """Return where the word ends that `at` parts, if it parts one; not far either."""
    if text[at - 1].isspace():
        return at
    end = at
    while end < min(len(text), at + 64) and not text[end].isspace():
        end += 1
    return end
