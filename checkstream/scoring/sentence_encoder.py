"""The embedding model: a graph reads a text window by window, and the mean of what it says of the tokens is its vector.

A text is read by itself, never in a batch with others: an INT8 graph has one scale for the activations of all that it
is given, so a vector would depend on its neighbours. The event loop never waits: texts are read on threads, a few at a
time, so that a call which nobody waits for any more ends soon.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from checkstream.core.terms import Span
from checkstream.errors import ModelError, ScoringError
from checkstream.scoring.catalog import Model
from checkstream.scoring.embedding import unit_rows
from checkstream.scoring.graph import Graph
from checkstream.scoring.manifest import ModelKind
from checkstream.scoring.tokenizer import Placed, Tokenizer
from checkstream.scoring.windows import pieces

MOST_WINDOWS = 16
"""Of one text; what stands behind them is not read. A chunk of evidence has two or three."""
_STEP_TEXTS = 4
"""So many go to a thread at once."""

_Float = NDArray[np.float32]


class _Window(msgspec.Struct, frozen=True, eq=False):
    ids: Sequence[int]
    """With the tokens that frame it."""
    skipped: int
    """Tokens at its start that an earlier window has too, frame included."""


class SentenceEncoder:
    """Vectors of texts, by a model of the kind `embedding`.

    INVARIANT: a vector depends on its text and the model's bytes alone; `name` says both. Processors with other INT8
    instructions may differ in the third place of a cosine.
    """

    def __init__(self, model: Model, *, text_s: float = 30.0) -> None:
        """Load the graph and the tokenizer of a verified model, and warm up.

        Args:
            model: of the kind `embedding`.
            text_s: how long the few texts of one step may take; a text is late only where the machine is swamped.

        Raises:
            ModelError: it is of another kind, or its files aren't sound, or don't fit each other or the manifest.
        """
        entry = model.entry
        if entry.kind is not ModelKind.EMBEDDING:
            raise ModelError(f"model `{entry.name}` gives no vectors; name one of the kind `embedding`")
        self.dimensions = entry.dimensions
        self.name = f"{entry.name}-{entry.version}-{hashlib.sha256(model.contents['graph']).hexdigest()[:8]}"
        self._tokenizer = Tokenizer(model.contents["tokenizer"])
        self._lock = threading.Lock()
        """Of the tokenizer, which is for one thread."""
        longest = entry.limits.window_tokens
        self._room = longest - len(self._tokenizer.before) - len(self._tokenizer.after)
        if self._room < 1:
            raise ModelError(f"windows of model `{entry.name}` have no room for a text; raise `window_tokens`")
        top = self._tokenizer.size - 1
        self._graph = Graph(
            model.contents["graph"], rank=3, columns=self.dimensions, top_id=top, longest=longest, shared=model.shared
        )
        self._text_s = text_s

    async def embed(self, texts: Sequence[str]) -> _Float:
        """Return float32[text, dimension], each row of length 1; all zeros for a text that holds nothing.

        Raises:
            ScoringError: the graph failed or gave no numbers, or took too long.
        """
        rows = await self._each(texts)
        return unit_rows(np.stack(rows)) if rows else np.zeros((0, self.dimensions), np.float32)

    def tokens(self, text: str) -> list[Span]:
        """Return the places of a text's tokens, for whoever cuts it to a size. May be called on any thread."""
        with self._lock:
            units = list(self._tokenizer.units(text, placed=True))
        return [part for placed in units for word, count in _counted(placed) for part in _parted(word, count)]

    async def _each(self, texts: Sequence[str]) -> list[_Float]:
        """Read one after the other, off the loop."""
        found: list[_Float] = []
        for at in range(0, len(texts), _STEP_TEXTS):
            step = texts[at : at + _STEP_TEXTS]
            try:
                async with asyncio.timeout(self._text_s):
                    found += await asyncio.to_thread(self._vectors, step)
            except TimeoutError as error:
                raise ScoringError(
                    f"model `{self.name}` took more than {self._text_s:g} s; give the machine less to do",
                    reason="deadline",
                ) from error
        return found

    def _vectors(self, texts: Sequence[str]) -> list[_Float]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> _Float:
        total = np.zeros(self.dimensions, np.float32)
        for window in self._windows(text):
            states = self._run(window)
            framed = np.concatenate([states[: len(self._tokenizer.before)], states[window.skipped :]])
            total += framed.sum(axis=0)
        return total

    def _windows(self, text: str) -> Iterator[_Window]:
        with self._lock:
            units = self._tokenizer.units(text, placed=True)
            found = (piece for piece in pieces(units, room=self._room, overlap=0) if piece is not None)
            taken = [piece for _, piece in zip(range(MOST_WINDOWS), found, strict=False)]
        before, after = self._tokenizer.before, self._tokenizer.after
        for piece in taken:
            ids = [*before, *(token for _, unit in piece.units for token in unit.ids), *after]
            yield _Window(ids, len(before) + piece.context)

    def _run(self, window: _Window) -> _Float:
        try:
            states = self._graph.run(window.ids)
        except Exception as error:  # the runtime raises many kinds, none of them public
            raise ScoringError(f"model `{self.name}` crashed: {error}; check its files", reason="crash") from error
        if not np.isfinite(states).all():
            raise ScoringError(f"model `{self.name}` gave what is no number; check its files", reason="garbage")
        return states


def _counted(placed: Placed) -> Iterator[tuple[Span, int]]:
    """Yield the words of a unit and how many tokens each has; tokens of a word that a window parts have no place."""
    start, unit = placed
    lead = unit.words[0][0] if unit.words else len(unit.ids)
    if lead:
        yield Span(start, start), lead
    stops = (*(first for first, _, _ in unit.words[1:]), len(unit.ids))
    for (first, begin, end), stop in zip(unit.words, stops, strict=False):
        yield Span(start + begin, start + end), stop - first


def _parted(word: Span, count: int) -> Iterator[Span]:
    """Yield a word in as many parts as it has tokens, or letters where these are fewer."""
    size = word.end - word.start
    count = min(count, size)
    for part in range(count):
        yield Span(word.start + part * size // count, word.start + (part + 1) * size // count)
