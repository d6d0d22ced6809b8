"""Models that read two texts together, a premise and a claim, and say whether the one follows from the other.

The claim is in every window, the premise goes through them in overlapping pieces. Both are framed as the model's own
`tokenizer.json` frames a pair: premise first, as models of natural language inference have it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from checkstream.errors import ModelError, ScoringError
from checkstream.scoring.catalog import Model
from checkstream.scoring.graph import Graph
from checkstream.scoring.manifest import ModelKind
from checkstream.scoring.sequence import activated
from checkstream.scoring.tokenizer import PairFrame, Tokenizer
from checkstream.scoring.windows import Piece, pieces

MOST_WINDOWS = 64
"""Of one premise; what stands behind them is not read."""


class PairReading(msgspec.Struct, frozen=True, eq=False):
    """What a model says of a claim and one piece of a premise."""

    start: int
    """Where the piece stands in the premise, code points."""
    end: int
    scores: dict[str, float]
    """Label -> 0..1."""


class PairSession:
    """A model of the kind `pair`, loaded. One thread at a time cuts; the graph may run on several."""

    def __init__(self, model: Model) -> None:
        """Load the graph and the tokenizer of a verified model, and warm up.

        Raises:
            ModelError: it is of another kind, or its files aren't sound, or don't fit each other or the manifest.
        """
        entry = model.entry
        if entry.kind is not ModelKind.PAIR:
            raise ModelError(f"model `{entry.name}` compares no texts; name one of the kind `pair`")
        self.name = entry.name
        self.version = entry.version
        self.labels = entry.labels
        columns = entry.columns or entry.labels
        self._columns = {label: [at for at, name in enumerate(columns) if name == label] for label in entry.labels}
        self._activation = entry.activation
        self._tokenizer = Tokenizer(model.contents["tokenizer"])
        self._frame: PairFrame = self._tokenizer.pair_frame()
        longest = entry.limits.window_tokens
        room = longest - self._frame.size
        self._claim_room = room // 2
        self._overlap = min(entry.limits.overlap_tokens, room // 4)
        self._room = room
        if self._claim_room < 1:
            raise ModelError(f"windows of model `{entry.name}` have no room for two texts; raise `window_tokens`")
        top = self._tokenizer.size - 1
        self._graph = Graph(
            model.contents["graph"], rank=2, columns=len(columns), top_id=top, longest=longest, shared=model.shared
        )

    def read(self, premise: str, claim: str) -> Iterator[PairReading]:
        """Read a claim with every piece of a premise; nothing where one of the two holds no token.

        Half a window is for the claim at most: what is longer is read to there.

        Raises:
            ScoringError: the graph failed, or gave what are no scores.
        """
        said = self._tokenizer.ids(claim)[: self._claim_room]
        if not said:
            return
        units = self._tokenizer.units(premise, placed=True)
        shown = pieces(units, room=self._room - len(said), overlap=self._overlap)
        for piece, _ in zip((piece for piece in shown if piece is not None), range(MOST_WINDOWS), strict=False):
            yield self._reading(piece, said)

    def _reading(self, piece: Piece, said: list[int]) -> PairReading:
        ids, types = self._frame.joined([token for _, unit in piece.units for token in unit.ids], said)
        try:
            scores = activated(self._graph.run(ids, types), self._activation)
        except Exception as error:  # the runtime raises many kinds, none of them public
            raise ScoringError(f"model `{self.name}` crashed: {error}; check its files", reason="crash") from error
        found = {label: _highest(scores, columns) for label, columns in self._columns.items()}
        if not all(0 <= score <= 1 for score in found.values()):  # so is NaN
            raise ScoringError(
                f"model `{self.name}` gave what are no scores; check `activation` and its files", reason="garbage"
            )
        start, last = piece.units[0][0], piece.units[-1]
        return PairReading(start, last[0] + max((word[2] for word in last[1].words), default=0), found)


def _highest(scores: NDArray[np.float32], columns: list[int]) -> float:
    return float(scores[columns].max())
