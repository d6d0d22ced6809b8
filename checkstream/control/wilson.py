"""The interval in which a share lies, as far as its count tells. Pure.

Source: Wilson 1927.
"""

from __future__ import annotations

import math


def interval(share: float, of: float, z: float) -> tuple[float, float]:
    """Return the ends between which a share is; of nothing it may be any.

    Args:
        share: 0..1.
        of: Cases that it is of; of weighted ones, as many of equal weight as would say as much.
        z: Standard deviations: 1.96 for 95 %.
    """
    if of <= 0:
        return 0.0, 1.0
    square = z * z / of
    middle = (share + square / 2) / (1 + square)
    half = z * math.sqrt(max(0.0, share * (1 - share) / of + square / (4 * of))) / (1 + square)
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))
