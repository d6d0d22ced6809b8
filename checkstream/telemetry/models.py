"""Which models metrics tell apart. A request's model is whatever its caller writes, and labels are of a closed set.

A name is one of the set if the configuration has it, or if an upstream has answered to it and no rule fired. The second
kind is bounded in number, length and letters. All else is `other`.
"""

from __future__ import annotations

import string
from collections.abc import Iterable

MOST = 32
"""Names that are learned, of one process."""
NONE, OTHER = "-", "other"
"""In place of a name where a request has none, and where it is not told apart."""
_MOST_CHARS = 64
_CHARS = frozenset(string.ascii_letters + string.digits + "._:/@+-")


class ModelNames:
    """The models that one process has heard of. INVARIANT: no more than are configured, and `MOST`."""

    def __init__(self) -> None:
        """Know none, and learn none yet."""
        self._listed: frozenset[str] = frozenset()
        self._learned: set[str] = set()
        self._learns = False

    def expect(self, listed: Iterable[str], *, learns: bool) -> None:
        """Say which the configuration has (a pattern names none); what was learned stays, if it `learns`."""
        self._listed = frozenset(filter(_is_name, listed))
        self._learns = learns
        if not learns:
            self._learned.clear()

    def learn(self, model: str) -> None:
        """Hear that an upstream has answered to a name in which nothing was found."""
        if self._learns and len(self._learned) < MOST and _is_name(model):
            self._learned.add(model)

    def of(self, model: str) -> str:
        """Return the name of a model in metrics; empty: the request names none."""
        if not model:
            return NONE
        return model if model in self._listed or model in self._learned else OTHER


def _is_name(model: str) -> bool:
    return 0 < len(model) <= _MOST_CHARS and model[0].isalnum() and _CHARS.issuperset(model)
