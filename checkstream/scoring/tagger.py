"""Models that tag every token of a window: B-PERSON, I-PERSON, O; and the entities that the tags spell.

A word is tagged by its first token. It belongs to the kind of entity whose tags, B and I together, are likeliest, if
they reach the kind's threshold; words of one kind side by side are one entity, unless one of them is rather a
beginning than a continuation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from checkstream.core.events import EntityFound
from checkstream.errors import ModelError
from checkstream.scoring.catalog import Model
from checkstream.scoring.graph import Graph
from checkstream.scoring.manifest import ModelEntry, TokenTypes
from checkstream.scoring.sequence import Cutter, activated
from checkstream.scoring.session import Readings, Window
from checkstream.scoring.tokenizer import Tokenizer


class TaggerSession:
    """A token classifier."""

    inline = False

    def __init__(self, model: Model) -> None:
        """Load the graph and the tokenizer of a verified model, and warm up.

        Raises:
            ModelError: they aren't sound, or don't fit each other or the manifest.
        """
        entry = model.entry
        tokenizer = Tokenizer(model.contents["tokenizer"])
        self._activation = entry.activation
        self._cutter = Cutter(entry, tokenizer, words=True)
        self._tags = Tags(entry)
        longest = entry.limits.window_tokens
        graph = model.contents["graph"]
        self._graph = Graph(graph, rank=3, columns=len(entry.columns), top_id=tokenizer.size - 1, longest=longest)
        self._cases = entry.token_types is TokenTypes.CASE
        if self._cases and not self._graph.typed:
            raise ModelError(f"the graph of model `{entry.name}` takes no token types; remove `token_types`")

    def cut(self, text: str, fresh_chars: int = 0) -> Iterator[Window]:
        """Cut into windows that overlap; each answers for the entities that start where it sees most around them."""
        return self._cutter.cut(text, fresh_chars)

    def run(self, windows: Sequence[Window]) -> Readings:
        """Tag windows."""
        ids = [window.ids for window in windows]
        logits = self._graph.run(ids, [window.cases for window in windows] if self._cases else None)
        found = [
            self._tags.spell(activated(row[[word.token for word in window.words]], self._activation), window)
            if window.words
            else []
            for row, window in zip(logits, windows, strict=True)
        ]
        return Readings(np.zeros((len(windows), 0), np.float32), found)


class Tags:
    """What the columns of a tagger mean."""

    def __init__(self, entry: ModelEntry) -> None:
        """Read the columns of a model's entry."""
        self._names = tuple(kind.entity for kind in entry.entities)
        self._thresholds = np.array([kind.threshold for kind in entry.entities], np.float32)
        self._begins = _members(entry.columns, [f"B-{name}" for name in self._names])
        self._continues = _members(entry.columns, [f"I-{name}" for name in self._names])

    def spell(self, tags: NDArray[np.float32], window: Window) -> list[EntityFound]:
        """Return the entities that a window answers for.

        Args:
            tags: float32[word, column], probabilities of the tags of its words.
            window: the window.

        Raises:
            ValueError: a probability is not a finite number of 0..1.
        """
        if not ((tags >= 0) & (tags <= 1)).all():  # False for NaN too
            raise ValueError("a tag's probability is not within 0..1")
        begins, continues = tags @ self._begins, tags @ self._continues
        likely = np.minimum(begins + continues, 1.0)
        kinds = likely.argmax(axis=1)
        every = np.arange(len(kinds))
        sure = likely[every, kinds]
        anew = begins[every, kinds] > continues[every, kinds]
        found: list[EntityFound] = []
        before = -1
        for at in np.flatnonzero(sure >= self._thresholds[kinds]).tolist():
            word, kind, score = window.words[at], int(kinds[at]), float(sure[at])
            joins = bool(found) and before == at - 1 and found[-1].entity == self._names[kind] and not anew[at]
            start = found[-1].start if joins else word.start
            score = max(found[-1].score, score) if joins else score
            found[len(found) - joins :] = [EntityFound(self._names[kind], start, word.end, score)]
            before = at
        return [entity for entity in found if window.begin <= entity.start < window.stop]


def _members(columns: Sequence[str], names: Sequence[str]) -> NDArray[np.float32]:
    """Return float32[column, name], 1 where a column has that name."""
    return np.array([[float(column == name) for name in names] for column in columns], np.float32)
