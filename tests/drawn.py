"""What laws about streams draw: calm texts beside a secret, and cuts of bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Draw = Callable[..., Any]
RISK = "zero risk"
CALM = st.text(st.sampled_from(' .,\n\u00e9\U0001f600"\\{}'), max_size=12)


def split(draw: Draw, data: bytes) -> list[bytes]:
    edges = sorted({0, len(data), *draw(st.lists(st.integers(0, len(data)), max_size=6))})
    return [data[low:high] for low, high in itertools.pairwise(edges)]
