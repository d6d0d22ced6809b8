"""What a run knows so far: a mapping that only grows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from checkstream.errors import GateError

_V = TypeVar("_V")
_V_co = TypeVar("_V_co", covariant=True)


class Key(Generic[_V_co]):
    """The name of something that a step writes, with its type."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        """Name it."""
        self.name = name


class State(Mapping[str, object]):
    """Frozen; `with_` returns a larger one. INVARIANT: a key that was written never changes."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        """Start with some keys."""
        self._values = dict(values or {})

    def with_(self, key: Key[_V], value: _V) -> State:
        """Return a state that knows one thing more.

        Raises:
            GateError: the key is written already.
        """
        if key.name in self._values:
            raise GateError(f"`{key.name}` is written already; each step writes a key of its own")
        return State({**self._values, key.name: value})

    def of(self, key: Key[_V]) -> _V:
        """Return what a step before wrote.

        Raises:
            GateError: no step has.
        """
        try:
            return self._values[key.name]  # type: ignore[return-value]  # `with_` wrote it with the key's type
        except KeyError:
            raise GateError(f"no step has written `{key.name}` yet; run the steps in their order") from None

    def __getitem__(self, name: str) -> object:
        """Return what was written under a name."""
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        """Go over the names in the order in which they were written."""
        return iter(self._values)

    def __len__(self) -> int:
        """Count the names."""
        return len(self._values)
