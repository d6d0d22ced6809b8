"""What runs a model: texts in, scores out. One interface for every kind of model.

A session knows its model's tokens and window; it knows nothing of queues, deadlines or streams. A session
with `inline` set is cheap pure Python and runs on the event loop, slice by slice; every other session
releases the GIL while it runs and gets a thread of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray


class Window(msgspec.Struct, frozen=True):
    """A piece of a text that the model reads at once."""

    text: str
    tokens: int
    """Size in the model's tokens, at least 1."""


class Session(Protocol):
    """A model that is loaded and ready to run. Used by one thread at a time."""

    @property
    def inline(self) -> bool:
        """True: `run` is pure Python and short enough for the event loop."""

    def cut(self, text: str) -> Sequence[Window]:
        """Cut a text into windows that together cover it; at least one, for the empty text too."""

    def run(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Score windows: float32[batch, label], every value 0..1."""
