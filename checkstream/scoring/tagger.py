"""Models that tag every token of a window: B-PERSON, I-PERSON, O; and the entities that the tags spell.

A word is tagged by its first token, with its likeliest column. An entity begins at B-X, and at I-X where no X goes on;
it goes on with I-X. It is told if the mean over its words of what B-X and I-X have together reaches the kind's
threshold.
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
    gate = None

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
        self._graph = Graph(
            graph, rank=3, columns=len(entry.columns), top_id=tokenizer.size - 1, longest=longest, shared=model.shared
        )
        self._cases = entry.token_types is TokenTypes.CASE
        if self._cases and not self._graph.typed:
            raise ModelError(f"the graph of model `{entry.name}` takes no token types; remove `token_types`")

    def cut(self, text: str, fresh_chars: int = 0) -> Iterator[Window | None]:
        """Cut into windows that overlap; each answers for the entities that start where it sees most around them."""
        return self._cutter.cut(text, fresh_chars)

    def run(self, windows: Sequence[Window]) -> Readings:
        """Tag windows."""
        return Readings(np.zeros((len(windows), 0), np.float32), [self._found(window) for window in windows])

    def _found(self, window: Window) -> list[EntityFound]:
        if not window.words:
            return []
        logits = self._graph.run(window.ids, window.cases if self._cases else None)
        firsts = [word.token for word in window.words]
        return self._tags.spell(activated(logits[firsts], self._activation), window)


class Tags:
    """What the columns of a tagger mean."""

    def __init__(self, entry: ModelEntry) -> None:
        """Read the columns of a model's entry."""
        self._kinds = {kind.entity: kind.threshold for kind in entry.entities}
        self._tags = [column.partition("-")[::2] for column in entry.columns]
        self._of_kind = {
            kind: np.array([float(tag in {("B", kind), ("I", kind)}) for tag in self._tags], np.float32)
            for kind in self._kinds
        }

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
        runs: list[tuple[str, int, int]] = []
        for at, column in enumerate(tags.argmax(axis=1).tolist()):
            part, kind = self._tags[column]
            if kind not in self._kinds:
                continue
            if part == "I" and runs and runs[-1][::2] == (kind, at):
                runs[-1] = (kind, runs[-1][1], at + 1)
            else:
                runs.append((kind, at, at + 1))
        found: list[EntityFound] = []
        for kind, first, stop in runs:
            score = min(float((tags[first:stop] @ self._of_kind[kind]).mean()), 1.0)
            start, end = window.words[first].start, window.words[stop - 1].end
            goes_on = start < window.begin and window.seen < end
            if score >= self._kinds[kind] and (goes_on or window.begin <= start < window.stop):
                found.append(EntityFound(kind, start, end, score))
        return found
