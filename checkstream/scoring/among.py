"""The highest score of a text of many windows: among many some are high by chance, and that chance is reckoned.

The largest of n draws from a tail that falls by e for each `rise` of the logit grows by `rise * ln n`. So much is taken
off the highest logit of a text that has more windows than the texts that the thresholds were measured on. Source:
extreme values of the Gumbel kind (Gumbel, Statistics of Extremes, 1958, section 5.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores: TypeAlias = NDArray[np.float32]


class Among(msgspec.Struct, frozen=True):
    """How a score of one window counts among those of a text."""

    rise: float
    windows: int
    """Of the longest texts for which a score is what it is."""
    least: float
    """No score falls below this for their number, 0..1: the lowest threshold, which rules ask for with other signs."""

    def reckoned(self, score: float, windows: int) -> float:
        """Return what the highest score of so many windows comes to; more windows never make it higher."""
        if windows <= self.windows or score <= self.least:
            return score
        logit = math.log(score / (1 - score)) if score < 1 else math.inf
        logit -= self.rise * math.log(windows / self.windows)
        return max(self.least, 1 / (1 + math.exp(-min(logit, 60.0))) if logit < math.inf else 1.0)


def highest(rows: Sequence[Scores], among: Sequence[Among | None]) -> Scores:
    """Return the highest scores of a text: float32[label].

    Args:
        rows: what was said of its windows, float32[label] each.
        among: of each window how it counts; None, or nothing: as it is.
    """
    rule = next((each for each in among if each is not None), None)
    if rule is None:
        return _tops(rows)
    import numpy as np  # noqa: PLC0415 - not for a process whose policies ask no model

    counted = [row for row, each in zip(rows, among, strict=True) if each is not None]
    others = [row for row, each in zip(rows, among, strict=True) if each is None]
    held = np.array([rule.reckoned(float(top), len(counted)) for top in _tops(counted)], np.float32)
    return _tops([held, *others])


def _tops(rows: Sequence[Scores]) -> Scores:
    import numpy as np  # noqa: PLC0415

    return np.asarray(np.max(rows, axis=0, initial=0.0), np.float32)
