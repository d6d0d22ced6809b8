"""Vectors in memory, compared exactly. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_SLACK = 1e-4
"""More than what float32 sums of some hundred products are wrong by."""


class Matrix:
    """The vectors of a store's chunks."""

    def __init__(self, ids: Sequence[str], rows: NDArray[np.float32]) -> None:
        """Take float32[chunk, dimension] and the chunks' ids."""
        self._ids = ids
        self._rows = rows

    def nearest(self, vector: NDArray[np.float32], size: int) -> list[tuple[int, float]]:
        """Return the numbers of the closest rows and their inner products, the best first, equal ones by id.

        The float32 products choose who may be among the best, float64 ones say who is: so the answer is the same
        whatever library adds, and in whatever order.
        """
        if not len(self._ids) or size < 1 or not vector.any():
            return []
        rough = self._rows @ vector
        most = min(size, len(rough))
        floor = np.partition(rough, -most)[-most] - _SLACK
        chosen = np.flatnonzero(rough >= floor)
        exact = self._rows[chosen].astype(np.float64) @ vector.astype(np.float64)
        told = zip(chosen.tolist(), exact.tolist(), strict=True)
        return sorted(told, key=lambda one: (-round(one[1], 6), self._ids[one[0]]))[:most]
